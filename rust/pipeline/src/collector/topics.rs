//! Rows and bytes by topic, for the collector's page.
//!
//! Peers choose topics, and may choose another one for each row. Therefore only the first topics have counters of their
//! own, and the rows of all others are counted together.

use std::collections::HashMap;

use zeroxide_log::Batch;

use crate::collector::stats::Json;

/// The most topics with counters of their own, and the most bytes of their names.
const COUNTED: usize = 1024;
const NAME_MAX: usize = 255;

/// The most topics that are listed: those with the most rows.
const LISTED: usize = 100;

/// See the module text.
#[derive(Debug, Default)]
pub(super) struct Topics {
    by_name: HashMap<Box<str>, Tally>,
    /// Of all other topics.
    others: Tally,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    rows: u64,
    bytes: u64,
}

impl Tally {
    fn add(&mut self, more: Tally) {
        self.rows += more.rows;
        self.bytes += more.bytes;
    }
}

impl Topics {
    /// Counts the rows of a batch.
    pub fn add(&mut self, batch: &Batch) {
        for (topic, rows, bytes) in batch.topic_runs() {
            let tally = Tally {
                rows: rows as u64,
                bytes: bytes as u64,
            };
            self.count(topic, tally);
        }
    }

    /// Adds counts that were taken elsewhere.
    pub fn merge(&mut self, more: &Topics) {
        for (topic, tally) in &more.by_name {
            self.count(topic, *tally);
        }
        self.others.add(more.others);
    }

    fn count(&mut self, topic: &str, tally: Tally) {
        if let Some(own) = self.by_name.get_mut(topic) {
            own.add(tally);
        } else if self.by_name.len() < COUNTED && topic.len() <= NAME_MAX {
            self.by_name.insert(topic.into(), tally);
        } else {
            self.others.add(tally);
        }
    }

    /// Writes the topics with the most rows, and the sum of all others.
    pub fn write(&self, json: &mut Json) {
        let mut all: Vec<(&str, Tally)> = self
            .by_name
            .iter()
            .map(|(topic, tally)| (&**topic, *tally))
            .collect();
        all.sort_unstable_by_key(|(topic, tally)| (std::cmp::Reverse(tally.rows), *topic));
        let (listed, unlisted) = all.split_at(all.len().min(LISTED));
        json.list("topics", listed, |json, (topic, tally)| {
            json.text("topic", topic);
            json.number("rows", tally.rows);
            json.number("bytes", tally.bytes);
        });
        let mut others = self.others;
        unlisted.iter().for_each(|(_, tally)| others.add(*tally));
        json.object("topics_unlisted", |json| {
            json.number("topics", unlisted.len() as u64);
            json.number("rows", others.rows);
            json.number("bytes", others.bytes);
        });
    }
}

#[cfg(test)]
mod tests {
    use zeroxide_log::{BatchBuilder, Row};

    use super::*;

    fn batch<'a>(rows: impl IntoIterator<Item = (Option<&'a str>, &'a str)>) -> Batch {
        let mut builder = BatchBuilder::new();
        for (topic, value) in rows {
            let value = value.as_bytes();
            builder
                .push(Row {
                    value,
                    topic,
                    ..Row::default()
                })
                .unwrap();
        }
        builder.finish()
    }

    fn written(topics: &Topics) -> String {
        Json::build(|json| topics.write(json))
    }

    #[test]
    fn rows_count_under_their_topics() {
        let mut topics = Topics::default();
        topics.add(&batch([(None, "12"), (None, "3")]));
        topics.add(&batch([
            (Some("b"), "1"),
            (Some("b"), ""),
            (Some("a"), "123"),
            (None, "1"),
            (Some("b"), "1234"),
        ]));
        // Of a slice, the offsets of values do not begin with 0.
        let rows = batch([(Some("x"), "left out"), (Some("a"), "12345")]);
        topics.add(&rows.slice(1, 1));
        let mut more = Topics::default();
        more.add(&batch([(Some("b"), "1")]));
        topics.merge(&more);
        assert_eq!(
            written(&topics),
            r#"{"topics":[{"topic":"b","rows":4,"bytes":6},{"topic":"","rows":3,"bytes":4},{"topic":"a","rows":2,"bytes":8}],"#
                .to_owned()
                + r#""topics_unlisted":{"topics":0,"rows":0,"bytes":0}}"#
        );
    }

    #[test]
    fn however_many_topics_there_are_few_are_kept_and_all_rows_count() {
        let mut topics = Topics::default();
        let many = COUNTED * 3;
        topics.add(&batch([(Some("often"), "1"); 9]));
        for number in 0..many {
            topics.add(&batch([(Some(&*format!("topic {number}")), "12")]));
        }
        topics.add(&batch([(Some(&*"long".repeat(NAME_MAX)), "1")]));
        assert_eq!(topics.by_name.len(), COUNTED);
        let text = written(&topics);
        assert!(text.starts_with(r#"{"topics":[{"topic":"often","rows":9,"#));
        assert_eq!(text.matches(r#"{"topic":"#).count(), LISTED);
        let unlisted = many - (LISTED - 1);
        let sum = format!(
            r#""topics_unlisted":{{"topics":{},"rows":{},"bytes":{}}}"#,
            COUNTED - LISTED,
            unlisted + 1,
            2 * unlisted + 1
        );
        assert!(text.contains(&sum), "{text}");
    }
}
