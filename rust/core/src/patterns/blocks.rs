//! A queue that may become long for a while.

use std::collections::VecDeque;

/// Items in one block: small enough that an allocator keeps freed blocks together.
const BLOCK: usize = 256;

/// A queue that grows by blocks and frees them one by one. A queue that doubles leaves holes of every size in the heap,
/// and glibc then raises its threshold for keeping memory to the largest of them.
pub(super) struct Blocks<T> {
    blocks: VecDeque<VecDeque<T>>,
}

impl<T> Default for Blocks<T> {
    fn default() -> Blocks<T> {
        Blocks {
            blocks: VecDeque::new(),
        }
    }
}

impl<T> Blocks<T> {
    pub(super) fn push_back(&mut self, item: T) {
        match self.blocks.back_mut() {
            Some(last) if last.len() < BLOCK => last.push_back(item),
            _ => self.blocks.push_back(VecDeque::from([item])),
        }
    }

    pub(super) fn pop_front(&mut self) -> Option<T> {
        let item = self.blocks.front_mut()?.pop_front();
        if self.blocks.len() > 1 && self.blocks.front().is_some_and(VecDeque::is_empty) {
            self.blocks.pop_front();
        }
        item
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.front().is_none_or(VecDeque::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_in_order_and_one_block_remains() {
        let mut queue = Blocks::default();
        for round in 0..3 {
            for n in 0..10_000 {
                queue.push_back(n);
                if n % 3 == 0 {
                    assert_eq!(queue.pop_front(), Some(n / 3), "{round}");
                }
            }
            for n in 3334..10_000 {
                assert!(!queue.is_empty());
                assert_eq!(queue.pop_front(), Some(n));
            }
            assert!(queue.is_empty() && queue.pop_front().is_none());
            assert_eq!(queue.blocks.len(), 1);
        }
    }
}
