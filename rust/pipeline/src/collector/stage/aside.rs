//! The parts in files that were set aside, for simulations, which know what their sinks have staged.

use zeroxide_log::disk::simulated::quietly;

use super::format::{self, Found};
use super::recovery::open;
use super::{BatchOf, Stage};
use crate::wire::Attempt;

impl Stage {
    /// The attempts that have parts in files that were set aside, and their batches.
    pub fn attempts_aside(&self) -> Vec<(BatchOf, Attempt)> {
        let mut all = Vec::new();
        for path in &self.aside {
            quietly(|| {
                let Ok((file, end)) = open(path) else { return };
                let Ok(Some((of, mut position))) = format::read_head(&file, end) else {
                    return;
                };
                while let Ok(Some((found, next))) = format::read_record(&file, position, end) {
                    position = next;
                    if let Found::Part((attempt, _), _) = found {
                        all.push((of.clone(), attempt));
                    }
                }
            });
        }
        all
    }
}
