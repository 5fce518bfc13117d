//! Nodes that take turns, each with a number. A node that is inserted again goes to the end.

use std::collections::BTreeMap;

use super::Place;

#[derive(Default)]
pub(super) struct Turns {
    by_place: BTreeMap<Place, (u64, u64)>,
    by_turn: BTreeMap<u64, Place>,
    turn: u64,
}

impl Turns {
    pub(super) fn insert(&mut self, place: Place, number: u64) {
        self.remove(&place);
        self.turn += 1;
        self.by_turn.insert(self.turn, place.clone());
        self.by_place.insert(place, (self.turn, number));
    }

    /// Removes a node, and returns its number.
    pub(super) fn remove(&mut self, place: &Place) -> Option<u64> {
        let (turn, number) = self.by_place.remove(place)?;
        self.by_turn.remove(&turn);
        Some(number)
    }

    /// Removes the node whose turn it is.
    pub(super) fn next(&mut self) -> Option<(Place, u64)> {
        let (_, place) = self.by_turn.pop_first()?;
        let (_, number) = self.by_place.remove(&place)?;
        Some((place, number))
    }

    pub(super) fn contains(&self, place: &Place) -> bool {
        self.by_place.contains_key(place)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }
}
