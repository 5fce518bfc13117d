//! Tables of Arrow, as peers send them, and their import into the log.

use bytes::Bytes;
use zeroxide_log::{Batch, Table};

use super::batch;
use crate::{Target, guard};

pub(super) const TARGET: Target = Target {
    name: "arrow",
    about: "Arrow's IPC streams, as peers send them, and their import into the log",
    run,
    seeds,
    words: &[
        b"\xff\xff\xff\xff",
        b"\0\0\0\0\0\0\0\0",
        b"value",
        b"key",
        b"topic",
        b"timestamp",
        b"headers",
    ],
    longest: 6000,
};

/// The bytes of the columns of one row that hold no text: offsets, times and numbers.
const ROW: usize = 64;

fn run(input: &[u8]) {
    let Ok(table) = guard::bounded(input.len(), || Table::decode(Bytes::copy_from_slice(input)))
    else {
        return;
    };
    let Ok(rows) = guard::bounded(input.len(), || table.to_batch()) else {
        return;
    };
    // A column of nulls or of nothing has any number of rows, which an encoder may write out.
    if rows.num_rows() <= input.len() {
        let again = encoded_again(&table);
        assert_eq!(again.rows(), table.rows());
        // Arrow's writer omits some of what its reader accepts, such as an empty time zone, but only once.
        assert_eq!(encoded_again(&again).schema, again.schema);
        // A row that takes no byte in the input has offsets in the log.
        let bytes = input.len() + rows.num_rows() * ROW;
        if let Ok(batch) = guard::bounded(bytes, || Batch::from_record_batch(&rows)) {
            batch::touch(&batch);
            let encoded = guard::bounded(bytes, || {
                let mut encoded = Vec::new();
                batch.encode(&mut encoded);
                encoded
            });
            assert_eq!(
                Batch::decode(Bytes::from(encoded)).expect("what was encoded"),
                batch
            );
        }
    }
}

fn encoded_again(table: &Table) -> Table {
    let encoded = table.encode().expect("a table that was decoded");
    Table::decode(Bytes::from(encoded)).expect("what was encoded")
}

fn seeds() -> Vec<Vec<u8>> {
    let streams = batch::samples()
        .into_iter()
        .map(|batch| batch.to_stream().expect("columns of Arrow"));
    streams.collect()
}
