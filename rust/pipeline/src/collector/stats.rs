//! Counters of a collector. Any thread may count, and any thread may read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(super) use zeroxide::binding::Json;

use crate::wire::Code;

/// The upper bounds of the histogram of syncs, in microseconds. One more bucket holds longer ones.
const SYNC_BUCKETS: [u64; 10] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 2_000_000,
];

/// A number that only grows, or is set.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub fn add(&self, more: u64) {
        // Relaxed, here and below, because no other memory depends on a counter.
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Times of syncs.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    buckets: [Count; SYNC_BUCKETS.len() + 1],
    microseconds: Count,
}

impl Histogram {
    pub fn add(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = SYNC_BUCKETS.iter().position(|end| time <= *end);
        self.buckets[bucket.unwrap_or(SYNC_BUCKETS.len())].add(1);
        self.microseconds.add(time);
    }
}

/// Declares each counter once, and publishes it under its name.
macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// The counters.
        #[derive(Debug, Default)]
        pub(super) struct Stats {
            $($(#[doc = $doc])+ pub $name: Count,)*
            /// Refusals by code.
            pub refused: [Count; Code::ALL.len()],
            /// The duration of syncs.
            pub sync_times: Histogram,
        }

        impl Stats {
            fn write_counters(&self, json: &mut Json) {
                $(json.number(stringify!($name), self.$name.get());)*
            }
        }
    };
}

counters! {
    /// Rows appended, of all kinds.
    rows,
    /// Their encoded size.
    bytes,
    /// Batches of producers that were appended.
    batches,
    /// Batches whose rows were in the log already.
    duplicates,
    /// Batches that were dropped because nothing could be written.
    turned_back,
    /// Rows that plain peers sent.
    plain_rows,
    /// Messages of plain peers that did not match the framing.
    plain_unframed,
    /// Rows of plain peers that were appended but lost before they were on disk.
    plain_lost,
    /// Rows that were refused because a time in their batch was too far ahead.
    rows_ahead,
    /// Rows through `append`, HTTP among them.
    local_rows,
    /// HELLOs.
    hellos,
    /// Fetch requests answered.
    fetches,
    /// Frames sent in these replies.
    fetched_frames,
    /// Bytes of these frames.
    fetched_bytes,
    /// Times that a reply had to wait until the reader took earlier ones.
    fetch_waits,
    /// Parts that were staged.
    staged_parts,
    /// Bytes that are staged now.
    staged_bytes,
    /// Batches with staged parts now.
    staged_batches,
    /// Staged batches that were not published in time.
    staged_expired,
    /// Staged parts that were damaged or could not be read when the collector started, as far as they are known.
    staged_lost,
    /// Batches of sinks that were published.
    published,
    /// Rows of published batches.
    published_rows,
    /// Batches of sinks that were repeated after they were published.
    published_again,
    /// Replies that could not be delivered.
    undelivered,
    /// Messages that did not follow the protocol.
    malformed,
    /// Syncs.
    syncs,
    /// Failures of writing, syncing or reading.
    failures,
    /// Recoveries of the log after a failure.
    recoveries,
}

impl Stats {
    pub fn refuse(&self, code: Code) {
        self.refused[code as usize].add(1);
    }

    /// Writes all counters into an object.
    pub fn write(&self, json: &mut Json) {
        self.write_counters(json);
        json.object("refused", |json| {
            for code in Code::ALL {
                let count = self.refused[code as usize].get();
                if count > 0 {
                    json.number(code.name(), count);
                }
            }
        });
        json.object("sync_seconds", |json| {
            let mut count = 0;
            json.object("buckets", |json| {
                for (end, bucket) in SYNC_BUCKETS.iter().zip(&self.sync_times.buckets) {
                    count += bucket.get();
                    json.number(&seconds(*end), count);
                }
            });
            count += self.sync_times.buckets[SYNC_BUCKETS.len()].get();
            json.number("count", count);
            json.raw("sum", &seconds(self.sync_times.microseconds.get()));
        });
    }
}

/// Formats microseconds as seconds.
fn seconds(microseconds: u64) -> String {
    format!(
        "{}.{:06}",
        microseconds / 1_000_000,
        microseconds % 1_000_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_every_counter_once() {
        let stats = Stats::default();
        stats.rows.add(3);
        stats.refuse(Code::Gap);
        stats.sync_times.add(Duration::from_micros(700));
        stats.sync_times.add(Duration::from_secs(9));
        let text = Json::build(|json| {
            stats.write(json);
            json.text("odd", "a\"b\\c\n{");
            json.list("some", [1, 2], |json, value| {
                json.number("value", value);
                json.flag("even", value % 2 == 0);
            });
            json.list("none", [0; 0], |_, _| {});
            json.number("last", 1);
        });
        let lists =
            ",\"some\":[{\"value\":1,\"even\":false},{\"value\":2,\"even\":true}],\"none\":[]";
        assert!(text.contains(lists), "{text}");
        let text = text.replace(lists, "");
        assert!(text.starts_with("{\"rows\":3,\"bytes\":0,"), "{text}");
        assert!(text.contains("\"refused\":{\"gap\":1}"), "{text}");
        assert!(text.contains("\"0.000500\":0,\"0.001000\":1,"), "{text}");
        assert!(text.contains("\"count\":2,\"sum\":9.000700}"), "{text}");
        assert!(
            text.ends_with("\"odd\":\"a\\\"b\\\\c\\u000a{\",\"last\":1}"),
            "{text}"
        );
    }
}
