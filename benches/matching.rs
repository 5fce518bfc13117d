//! Matching: the cost for a publisher of finding the subscribers of a message, by the number of topics.

use std::hint::black_box;

use zeroxide_proto::subscription::SubscriberTable;

mod timing;

use timing::{Rows, measure};

fn main() {
    timing::run("matching", subscriptions);
}

fn subscriptions(rows: &mut Rows<'_>) {
    for count in [1, 1000, 100_000] {
        let mut table = SubscriberTable::new();
        for topic in 0..count {
            table.add(format!("topic {topic} ").as_bytes(), topic % 10);
        }
        let text = format!("topic {} and a message's body", count / 2);
        measure(rows, &format!("one topic of {count} matched"), 1000, || {
            for _ in 0..1000 {
                table.for_each_match(black_box(text.as_bytes()), |peer| {
                    black_box(peer);
                });
            }
        });
    }
}
