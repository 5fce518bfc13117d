//! Limits how many attempts to connect to one address are under way at once.
//!
//! A listener has room for a limited number of connections that it has not accepted yet, a hundred by default. The
//! kernel drops further attempts and retries them a second later. So if many sessions connect at once, they take turns
//! in the order in which they asked. The peer accepts them as quickly as before, because it is never idle.

use std::collections::{BTreeMap, HashMap};

use slab::Slab;
use socket2::SockAddr;

use super::Token;

/// Maximum number of attempts to connect to one address that are under way at once.
const UNDER_WAY_MAX: usize = 64;

/// See the module text.
#[derive(Default)]
pub(super) struct Attempts {
    crowds: Slab<Crowd>,
    by_address: HashMap<SockAddr, usize>,
    /// Number of turns requested so far.
    asked: u64,
}

struct Crowd {
    address: SockAddr,
    under_way: usize,
    /// Sessions whose turn has not come yet, in the order in which they asked.
    waiting: BTreeMap<u64, Token>,
}

/// A place among the sessions that connect to an address. It must be given back.
#[derive(Debug)]
pub(crate) struct Turn {
    crowd: usize,
    number: u64,
}

impl Attempts {
    /// Asks for a turn for the handler `token`.
    pub(super) fn ask(&mut self, address: &SockAddr, token: Token) -> Turn {
        let index = match self.by_address.get(address) {
            Some(index) => *index,
            None => {
                let index = self.crowds.insert(Crowd {
                    address: address.clone(),
                    under_way: 0,
                    waiting: BTreeMap::new(),
                });
                self.by_address.insert(address.clone(), index);
                index
            }
        };
        self.asked += 1;
        let crowd = &mut self.crowds[index];
        if crowd.under_way < UNDER_WAY_MAX {
            crowd.under_way += 1;
        } else {
            crowd.waiting.insert(self.asked, token);
        }
        Turn {
            crowd: index,
            number: self.asked,
        }
    }

    /// Whether the turn has come.
    pub(super) fn has_come(&self, turn: &Turn) -> bool {
        !self.crowds[turn.crowd].waiting.contains_key(&turn.number)
    }

    /// Ends a turn, whether or not the attempt was made. Returns the session whose turn it is now.
    pub(super) fn give_back(&mut self, turn: Turn) -> Option<Token> {
        let crowd = &mut self.crowds[turn.crowd];
        if crowd.waiting.remove(&turn.number).is_some() {
            return None;
        }
        if let Some((_, next)) = crowd.waiting.pop_first() {
            return Some(next);
        }
        crowd.under_way -= 1;
        if crowd.under_way == 0 {
            let crowd = self.crowds.remove(turn.crowd);
            self.by_address.remove(&crowd.address);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn address(port: u16) -> SockAddr {
        SocketAddr::from(([127, 0, 0, 1], port)).into()
    }

    #[test]
    fn turns_above_the_limit_come_in_the_order_of_asking() {
        let mut attempts = Attempts::default();
        let mut ask = |n| attempts.ask(&address(1), Token(n));
        let mut first: Vec<_> = (0..UNDER_WAY_MAX).map(&mut ask).collect();
        let second: Vec<_> = (100..103).map(&mut ask).collect();
        assert!(first.iter().all(|turn| attempts.has_come(turn)));
        assert!(!second.iter().any(|turn| attempts.has_come(turn)));
        let elsewhere = attempts.ask(&address(2), Token(7));
        assert!(attempts.has_come(&elsewhere));
        let [one, two, three] = <[Turn; 3]>::try_from(second).unwrap();
        // A session that leaves while it waits has no turn to pass on.
        assert_eq!(attempts.give_back(one), None);
        let mut done = || first.pop().unwrap();
        assert_eq!(attempts.give_back(done()), Some(Token(101)));
        assert!(attempts.has_come(&two) && !attempts.has_come(&three));
        assert_eq!(attempts.give_back(two), Some(Token(102)));
        assert!(attempts.has_come(&three));
        assert_eq!(attempts.give_back(three), None);
        assert_eq!(attempts.give_back(elsewhere), None);
    }

    #[test]
    fn addresses_without_attempts_are_removed() {
        let mut attempts = Attempts::default();
        for port in 1..1000 {
            let turn = attempts.ask(&address(port), Token(1));
            attempts.give_back(turn);
        }
        assert!(attempts.crowds.is_empty() && attempts.by_address.is_empty());
    }
}
