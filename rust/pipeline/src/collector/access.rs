//! Access rights: what the owner of a key may do, and to which key each producer name belongs.
//!
//! Without keys, clients cannot be distinguished, and all of them may do everything. With keys, a name belongs to the
//! key that used it first, even after a restart, unless the configuration assigns it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::collector::owners::{Owners, Take};
use crate::collector::refusal::Refusal;
use crate::wire::{Code, Request};

/// A kind of operation that a client may be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Sending rows under a producer's name.
    Produce,
    /// Reading rows.
    Fetch,
    /// Committing the position of a group.
    Commit,
    /// Staging and publishing batches of a query.
    Publish,
    /// Reading counters.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 5] = [
        Role::Produce,
        Role::Fetch,
        Role::Commit,
        Role::Publish,
        Role::Admin,
    ];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Role::Produce => "produce",
            Role::Fetch => "fetch",
            Role::Commit => "commit",
            Role::Publish => "publish",
            Role::Admin => "admin",
        }
    }

    /// The role of that name.
    pub fn parse(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }

    /// The role that a request requires; None if every client may make it.
    fn of(request: &Request) -> Option<Role> {
        match request {
            Request::Hello { .. } | Request::Append { .. } => Some(Role::Produce),
            Request::Info | Request::Limits => None,
            Request::OffsetAt { .. }
            | Request::Weigh { .. }
            | Request::Fetch { .. }
            | Request::Follow { .. }
            | Request::Position { .. } => Some(Role::Fetch),
            Request::Commit { .. } => Some(Role::Commit),
            Request::Stage { .. } | Request::Publish { .. } | Request::Abort { .. } => {
                Some(Role::Publish)
            }
            Request::Stats | Request::DropGroup { .. } => Some(Role::Admin),
        }
    }
}

/// The rights of one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The roles of the key.
    pub roles: Vec<Role>,
    /// Producer names that are reserved for the key. A name that ends in `*` stands for all names with that beginning.
    /// None: all names that no other key has.
    pub names: Vec<String>,
}

/// Grants by the name of a certificate, or by a public key in Z85. `*` applies to all other keys.
pub type Grants = HashMap<String, Grant>;

/// The authenticated peer of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Client {
    /// The name from the allow-list.
    pub user: Arc<str>,
    /// Its public key in Z85.
    pub key: Arc<str>,
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.user == self.key {
            true => write!(f, "the key {}", self.key),
            false => write!(f, "the key {} ({})", self.key, self.user),
        }
    }
}

/// See the module text.
pub(super) struct Access {
    /// If None, every key may do everything.
    grants: Option<Grants>,
    owners: Owners,
}

impl Access {
    pub fn new(grants: Option<Grants>, owners: Owners) -> Access {
        Access { grants, owners }
    }

    /// Whether a client may make a request.
    pub fn check(&self, client: &Client, request: &Request) -> Result<(), Refusal> {
        let Some(grants) = &self.grants else {
            return Ok(());
        };
        let roles = grant(grants, client).map_or(&[][..], |grant| &grant.roles);
        let missing = match Role::of(request) {
            Some(role) if !roles.contains(&role) => format!("the role {}", role.name()),
            None if roles.is_empty() => "any role".to_owned(),
            _ => return Ok(()),
        };
        let has = match roles {
            [] => "none".to_owned(),
            _ => roles
                .iter()
                .map(|role| role.name())
                .collect::<Vec<_>>()
                .join(", "),
        };
        Err(denied(format!(
            "{client} does not have {missing}: it has {has}, according to --roles of the collector"
        )))
    }

    /// Checks whether a client may produce under a name. If it may, the name belongs to its key from then on.
    pub fn take(&mut self, client: &Client, name: &str) -> Result<(), Refusal> {
        let grants = self.grants.as_ref();
        let own = grants.and_then(|grants| grant(grants, client));
        let own = own.map_or(&[][..], |grant| &grant.names);
        let is_given = covers(own, name);
        let others = || {
            let mut others = grants.into_iter().flatten();
            others.any(|(_, grant)| covers(&grant.names, name))
        };
        if !is_given && (!own.is_empty() || others()) {
            return Err(denied(format!(
                "the producer name {name:?} is not one of {client}: it has {}, according to --roles of the collector",
                match own {
                    [] => "those that no other key has".to_owned(),
                    _ => own.join(", "),
                }
            )));
        }
        match self.owners.take(name, &client.key, is_given) {
            Ok(Take::Theirs) => Ok(()),
            Ok(Take::Others) => Err(denied(format!(
                "the producer name {name:?} belongs to another key than {client}: take another name, or name this one for \
                 the key in the collector's --roles"
            ))),
            Ok(Take::TooMany) => {
                let text = format!("{client} has as many producer names as a key may have");
                Err(Refusal::new(Code::TooMany, 0, text))
            }
            Err(error) => {
                let text = format!("whose the name {name:?} is cannot be written down: {error}");
                Err(Refusal::new(Code::Failed, 0, text))
            }
        }
    }
}

fn grant<'a>(grants: &'a Grants, client: &Client) -> Option<&'a Grant> {
    let named = [&*client.key, &*client.user, "*"];
    named.into_iter().find_map(|name| grants.get(name))
}

/// Whether the patterns include a name.
fn covers(names: &[String], name: &str) -> bool {
    names.iter().any(|one| match one.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => one == name,
    })
}

fn denied(text: String) -> Refusal {
    Refusal::new(Code::Denied, 0, text)
}

// In folders of the system.
#[cfg(all(test, not(zeroxide_disk)))]
mod tests {
    use super::*;

    fn client(user: &str, key: &str) -> Client {
        Client {
            user: user.into(),
            key: key.into(),
        }
    }

    fn grants(given: &[(&str, &[Role], &[&str])]) -> Option<Grants> {
        let grants = given.iter().map(|(who, roles, names)| {
            let grant = Grant {
                roles: roles.to_vec(),
                names: names.iter().map(|name| name.to_string()).collect(),
            };
            (who.to_string(), grant)
        });
        Some(grants.collect())
    }

    fn code(result: Result<(), Refusal>) -> Option<Code> {
        result.err().map(|refusal| refusal.code)
    }

    #[test]
    fn a_name_belongs_to_the_key_that_took_it_first() {
        let dir = tempfile::tempdir().unwrap();
        let (alice, bob) = (client("alice", "A"), client("bob", "B"));
        for _ in 0..2 {
            let mut access = Access::new(None, Owners::open(dir.path()).unwrap());
            assert_eq!(code(access.take(&alice, "p")), None);
            let refusal = access.take(&bob, "p").unwrap_err();
            assert_eq!(refusal.code, Code::Denied);
            assert!(refusal.text.contains("\"p\"") && refusal.text.contains("the key B (bob)"));
            assert!(
                !refusal.text.contains("alice"),
                "whose it is is nobody's business"
            );
            // A client that calls itself alice does not get her rights.
            assert_eq!(
                code(access.take(&client("alice", "B"), "p")),
                Some(Code::Denied)
            );
            assert_eq!(code(access.take(&bob, "q")), None);
        }
    }

    #[test]
    fn names_that_were_reserved_cannot_be_used_by_other_keys() {
        let dir = tempfile::tempdir().unwrap();
        let owners = || Owners::open(dir.path()).unwrap();
        let (alice, bob, eve) = (client("alice", "A"), client("bob", "B"), client("E", "E"));
        let mut access = Access::new(None, owners());
        access.take(&eve, "sensor-1").unwrap();
        drop(access);
        let all = &Role::ALL[..];
        let given = grants(&[
            ("alice", all, &["sensor-*"]),
            ("B", all, &["bus"]),
            ("*", all, &[]),
        ]);
        let mut access = Access::new(given, owners());
        assert_eq!(
            code(access.take(&alice, "sensor-1")),
            None,
            "even if another key had it before"
        );
        assert_eq!(code(access.take(&alice, "other")), Some(Code::Denied));
        assert_eq!(code(access.take(&eve, "sensor-2")), Some(Code::Denied));
        assert_eq!(code(access.take(&eve, "other")), None);
        assert_eq!(code(access.take(&bob, "bus")), None);
        assert_eq!(code(access.take(&bob, "sensor-2")), Some(Code::Denied));
        drop(access);
        let mut access = Access::new(None, owners());
        assert_eq!(
            code(access.take(&eve, "sensor-1")),
            Some(Code::Denied),
            "it changed hands"
        );
    }

    #[test]
    fn a_request_takes_its_role() {
        let dir = tempfile::tempdir().unwrap();
        let given = grants(&[("alice", &[Role::Fetch, Role::Commit], &[])]);
        let access = Access::new(given, Owners::open(dir.path()).unwrap());
        let (alice, bob) = (client("alice", "A"), client("bob", "B"));
        let commit = Request::Commit {
            group: "g".to_owned(),
            offset: 0,
            generation: 0,
        };
        assert_eq!(code(access.check(&alice, &commit)), None);
        assert_eq!(code(access.check(&alice, &Request::Info)), None);
        let refusal = access.check(&alice, &Request::Stats).unwrap_err();
        assert_eq!(refusal.code, Code::Denied);
        assert!(
            refusal
                .text
                .contains("(alice) does not have the role admin: it has fetch, commit")
        );
        let refusal = access.check(&bob, &Request::Info).unwrap_err();
        assert!(
            refusal.text.contains("any role: it has none"),
            "{}",
            refusal.text
        );
    }
}
