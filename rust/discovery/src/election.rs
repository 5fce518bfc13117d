//! The election of a group's leader, as Zyre holds it: the lowest identity wins.
//!
//! Each contestant starts a wave of ELECT messages with its identity. A wave with a lower identity extinguishes the
//! others, and its echoes tell its starter that it has won (the echo algorithm with extinction). LEADER messages spread
//! the result.

use crate::id::NodeId;

/// One group's election, in one of its members.
pub(crate) struct Election {
    own: NodeId,
    wave: Option<NodeId>,
    father: Option<NodeId>,
    echoes: usize,
    verdicts: usize,
}

/// A message of an election: an ELECT or a LEADER with the identity of `member`.
pub(crate) struct Ballot {
    pub(crate) to: NodeId,
    pub(crate) is_leader: bool,
    pub(crate) member: NodeId,
}

impl Election {
    pub(crate) fn new(own: NodeId) -> Election {
        Election {
            own,
            wave: None,
            father: None,
            echoes: 0,
            verdicts: 0,
        }
    }

    /// Starts a wave of this member.
    pub(crate) fn start(&mut self, members: &[NodeId]) -> Vec<Ballot> {
        self.wave = Some(self.own);
        ballots(members, false, self.own)
    }

    /// Takes an ELECT message of a peer.
    pub(crate) fn handle_elect(
        &mut self,
        peer: NodeId,
        challenger: NodeId,
        members: &[NodeId],
    ) -> Vec<Ballot> {
        let mut sends = Vec::new();
        if self.wave.is_none_or(|wave| challenger < wave) {
            (self.wave, self.father) = (Some(challenger), Some(peer));
            (self.echoes, self.verdicts) = (0, 0);
            sends = ballots(members, false, challenger);
            sends.retain(|ballot| ballot.to != peer);
        }
        if self.wave == Some(challenger) {
            self.echoes += 1;
            if self.echoes == members.len() {
                if challenger == self.own {
                    sends.extend(ballots(members, true, self.own));
                } else if let Some(father) = self.father {
                    sends.push(Ballot {
                        to: father,
                        is_leader: false,
                        member: challenger,
                    });
                }
            }
        }
        sends
    }

    /// Takes a LEADER message. Returns what to send, and whether the election is over.
    pub(crate) fn handle_leader(
        &mut self,
        leader: NodeId,
        members: &[NodeId],
    ) -> (Vec<Ballot>, bool) {
        let Some(wave) = self.wave else {
            return (Vec::new(), false);
        };
        let is_first = leader != self.own && self.verdicts == 0;
        let sends = if is_first {
            ballots(members, true, wave)
        } else {
            Vec::new()
        };
        self.verdicts += 1;
        (sends, self.verdicts == members.len())
    }
}

fn ballots(members: &[NodeId], is_leader: bool, member: NodeId) -> Vec<Ballot> {
    let ballot = |to: &NodeId| Ballot {
        to: *to,
        is_leader,
        member,
    };
    members.iter().map(ballot).collect()
}
