//! Groups: who is in which, and the elections of their leaders.

use std::sync::Arc;

use super::Machine;
use crate::election::{Ballot, Election};
use crate::event::Event;
use crate::id::NodeId;
use crate::wire::{Body, MAX_GROUPS};

impl Machine {
    /// Joins a group. The caller checks how many there are.
    pub(crate) fn join(&mut self, group: &str) {
        if self.groups.iter().any(|own| own == group) {
            return;
        }
        self.groups.push(group.to_owned());
        self.status = self.status.wrapping_add(1);
        let (group, status) = (group.to_owned(), self.status);
        self.tell_all(&Body::Join { group, status });
    }

    /// Leaves a group.
    pub(crate) fn leave(&mut self, group: &str) {
        let Some(place) = self.groups.iter().position(|own| own == group) else {
            return;
        };
        self.groups.remove(place);
        self.contested.remove(group);
        self.end_election(group);
        self.status = self.status.wrapping_add(1);
        let (group, status) = (group.to_owned(), self.status);
        self.tell_all(&Body::Leave { group, status });
    }

    /// Makes this node a candidate for the leader of a group that it is in.
    pub(crate) fn contest(&mut self, group: &str) {
        self.contested.insert(group.to_owned());
        if !self.members_of(group).is_empty() {
            self.elect(group);
        }
    }

    /// The peers in a group.
    pub(super) fn members_of(&self, group: &str) -> Vec<NodeId> {
        let members = self.members.iter();
        let members = members.filter(|(_, member)| member.groups.contains(group));
        members.map(|(node, _)| *node).collect()
    }

    pub(super) fn on_join(&mut self, peer: NodeId, group: String) {
        let Some(member) = self.members.get_mut(&peer) else {
            return;
        };
        if member.groups.contains(&group) {
            return;
        }
        if member.groups.len() >= MAX_GROUPS {
            self.dropped += 1;
            return;
        }
        member.groups.insert(group.clone());
        let is_contested = self.contested.contains(&group);
        let (name, joined) = (member.name.clone(), group.clone());
        self.events.push_back(Event::Join {
            peer,
            name,
            group: joined,
        });
        if is_contested {
            self.elect(&group);
        }
    }

    pub(super) fn on_leave(&mut self, peer: NodeId, group: String) {
        let Some(member) = self.members.get_mut(&peer) else {
            return;
        };
        if member.groups.remove(&group) {
            let (name, left) = (member.name.clone(), group.clone());
            self.events.push_back(Event::Leave {
                peer,
                name,
                group: left,
            });
            self.elect_again(&group, peer);
        }
    }

    pub(super) fn on_elect(&mut self, peer: NodeId, group: &str, challenger: &str) {
        let members = self.members_of(group);
        let Some(challenger) = self.checked(peer, group, challenger, &members) else {
            return;
        };
        if !self.elections.contains_key(group) && self.contested.contains(group) {
            // The last one is over, and this contestant may be the better one.
            self.elect(group);
        }
        let own = self.own.id;
        let election = self
            .elections
            .entry(group.to_owned())
            .or_insert_with(|| Election::new(own));
        let ballots = election.handle_elect(peer, challenger, &members);
        self.campaign(group, ballots);
    }

    pub(super) fn on_leader(&mut self, peer: NodeId, group: &str, leader: &str) {
        let members = self.members_of(group);
        let Some(leader) = self.checked(peer, group, leader, &members) else {
            return;
        };
        let Some(election) = self.elections.get_mut(group) else {
            return;
        };
        let (ballots, is_over) = election.handle_leader(leader, &members);
        self.campaign(group, ballots);
        if is_over {
            self.end_election(group);
            if leader == self.own.id {
                self.crown(group, leader, self.own.name.clone().into());
            } else if members.contains(&leader) {
                let name = self.members.get(&leader).map(|member| member.name.clone());
                self.crown(group, leader, name.unwrap_or_default());
            }
        }
    }

    /// Holds another election if a member has left that mattered for the last one.
    pub(super) fn elect_again(&mut self, group: &str, gone: NodeId) {
        let was_running = self.elections.remove(group).is_some();
        if self.leaders.get(group) == Some(&gone) {
            self.leaders.remove(group);
        } else if !was_running {
            return;
        }
        if !self.contested.contains(group) {
            return;
        }
        if self.members_of(group).is_empty() {
            self.crown(group, self.own.id, self.own.name.clone().into());
        } else {
            self.elect(group);
        }
    }

    fn tell_all(&mut self, body: &Body) {
        let nodes: Vec<NodeId> = self.members.keys().copied().collect();
        for node in nodes {
            self.send(node, body.clone());
        }
    }

    fn elect(&mut self, group: &str) {
        self.leaders.remove(group);
        let mut election = Election::new(self.own.id);
        let ballots = election.start(&self.members_of(group));
        self.elections.insert(group.to_owned(), election);
        self.campaign(group, ballots);
    }

    /// The identity in a message of an election. `None`, and counted, if the message is not about a group that both
    /// nodes are in, or the identity is none.
    fn checked(
        &mut self,
        peer: NodeId,
        group: &str,
        member: &str,
        members: &[NodeId],
    ) -> Option<NodeId> {
        let is_ours = self.groups.iter().any(|own| own == group) && members.contains(&peer);
        let member = NodeId::parse(member.as_bytes()).filter(|_| is_ours);
        self.dropped += u64::from(member.is_none());
        member
    }

    fn campaign(&mut self, group: &str, ballots: Vec<Ballot>) {
        for ballot in ballots {
            let (group, member) = (group.to_owned(), ballot.member.digits());
            let body = match ballot.is_leader {
                true => Body::Leader { group, member },
                false => Body::Elect { group, member },
            };
            self.send(ballot.to, body);
        }
    }

    fn crown(&mut self, group: &str, leader: NodeId, name: Arc<str>) {
        self.leaders.insert(group.to_owned(), leader);
        let group = group.to_owned();
        self.events.push_back(Event::Leader {
            peer: leader,
            name,
            group,
        });
    }

    fn end_election(&mut self, group: &str) {
        self.elections.remove(group);
        self.leaders.remove(group);
    }
}
