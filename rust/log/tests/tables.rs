//! Tables as messages: encoded tables can be decoded, and forged ones are refused without a panic.

use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use arrow_array::builder::{ListBuilder, StringDictionaryBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, Int32Array, Int64Array, NullArray,
    RecordBatch, StringArray, StringViewArray, StructArray, UnionArray,
};
use bytes::Bytes;
use proptest::prelude::*;
use zeroxide_log::{Batch, Table};

/// A column of every shape that metadata has a word for.
fn table() -> Table {
    let mut list = ListBuilder::new(arrow_array::builder::Int32Builder::new());
    list.append_value([Some(1), None, Some(3)]);
    list.append_null();
    list.append_value([]);
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    words.extend(["a", "b", "a"].map(Some));
    let texts = StringArray::from(vec![Some("x"), None, Some("a longer text")]);
    let inner = StructArray::from(vec![(
        Arc::new(arrow_schema::Field::new(
            "inner",
            arrow_schema::DataType::Utf8,
            true,
        )),
        Arc::new(texts.clone()) as ArrayRef,
    )]);
    let views = StringViewArray::from(vec!["short", "a text that is too long to be inline", ""]);
    let fixed = FixedSizeBinaryArray::try_from_iter([b"abc", b"def", b"ghi"].iter()).unwrap();
    let one = arrow_schema::Field::new("one", arrow_schema::DataType::Int32, true);
    let union = |offsets: Option<Vec<i32>>| {
        UnionArray::try_new(
            [(0, Arc::new(one.clone()))].into_iter().collect(),
            vec![0_i8; 3].into(),
            offsets.map(Into::into),
            vec![Arc::new(Int32Array::from(vec![1, 2, 3]))],
        )
        .unwrap()
    };
    let columns: [(&str, ArrayRef); 11] = [
        ("number", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        (
            "flag",
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        ),
        ("text", Arc::new(texts)),
        ("list", Arc::new(list.finish())),
        ("word", Arc::new(words.finish())),
        ("struct", Arc::new(inner)),
        ("view", Arc::new(views)),
        ("fixed", Arc::new(fixed)),
        ("nothing", Arc::new(NullArray::new(3))),
        ("dense", Arc::new(union(Some(vec![0, 1, 2])))),
        ("sparse", Arc::new(union(None))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    Table {
        schema: batch.schema(),
        batches: vec![batch.clone(), batch.slice(1, 2)],
    }
}

#[test]
fn a_table_comes_back() {
    let table = table();
    let message = table.encode().unwrap();
    // A message begins at any address.
    for before in 0..8 {
        let bytes = [vec![0; before], message.clone()].concat();
        let back = Table::decode(Bytes::from(bytes).slice(before..)).unwrap();
        assert_eq!(back.schema, table.schema);
        assert_eq!(back.batches, table.batches);
        assert_eq!(back.to_batch().unwrap().num_rows(), 5);
    }
}

#[test]
fn truncated_tables_are_refused_or_shorter() {
    let message = table().encode().unwrap();
    for end in 0..message.len() {
        if let Ok(part) = Table::decode(message[..end].to_vec().into()) {
            assert!(part.rows() <= 5);
        }
    }
}

#[test]
fn a_schema_that_arrow_cannot_make_a_column_of_is_refused() {
    use arrow_schema::{DataType, Field, Schema};
    let field = |name, data_type| Arc::new(Field::new(name, data_type, false));
    let encoded = |ends| {
        let runs = DataType::RunEndEncoded(field("ends", ends), field("values", DataType::Utf8));
        let table = Table {
            schema: Arc::new(Schema::new(vec![field("runs", runs)])),
            batches: Vec::new(),
        };
        Table::decode(table.encode().unwrap().into())
    };
    let empty = encoded(DataType::Int32).unwrap().to_batch().unwrap();
    assert_eq!(empty.num_rows(), 0);
    let error = encoded(DataType::Utf8).unwrap_err().to_string();
    assert!(error.contains("run ends that are not integers"), "{error}");
}

#[test]
fn columns_that_would_be_lost_or_do_not_fit_are_refused_with_advice() {
    use arrow_schema::{Field, Schema};
    let refusal = |columns: Vec<(&str, ArrayRef)>| {
        let field = |(name, array): &(&str, ArrayRef)| {
            Arc::new(Field::new(*name, array.data_type().clone(), true))
        };
        let fields: Vec<_> = columns.iter().map(field).collect();
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let table = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
        let refused = Batch::from_record_batch(&table).err();
        refused.map(|error| error.to_string()).unwrap_or_default()
    };
    let text = || Arc::new(StringArray::from(vec!["x"])) as ArrayRef;
    let number = || Arc::new(Int64Array::from(vec![1])) as ArrayRef;
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    words.append_value("a");
    let words = Arc::new(words.finish()) as ArrayRef;
    assert_eq!(refusal(vec![("value", text())]), "");
    for (columns, said) in [
        (
            vec![("value", text()), ("value", text())],
            "one column of each name",
        ),
        (
            vec![("value", text()), ("price", number())],
            "there are value, key",
        ),
        (
            vec![("value", text()), ("__index_level_0__", number())],
            "reset_index",
        ),
        (
            vec![("value", text()), ("topic", words)],
            "cast it from a dictionary",
        ),
        (vec![("topic", text())], "it must be there"),
    ] {
        let refusal = refusal(columns);
        assert!(refusal.contains(said), "{refusal}");
    }
}

/// The panics of this thread, caught or not. Other tests may have caught ones at the same time.
fn counting_panics(run: impl FnOnce()) -> usize {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let before = PANICS.load(Ordering::SeqCst);
    let hook = panic::take_hook();
    let this = thread::current().id();
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == this {
            PANICS.fetch_add(1, Ordering::SeqCst);
        }
        hook(info);
    }));
    run();
    let _ = panic::take_hook();
    PANICS.load(Ordering::SeqCst) - before
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("ZEROXIDE_FULL").is_some() { 200_000 } else { 1000 }))]

    #[test]
    fn bytes_that_were_changed_are_refused_or_read(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut message = table().encode().unwrap();
        for (at, byte) in changes {
            let at = at.index(message.len());
            message[at] = byte;
        }
        if let Ok(table) = Table::decode(message.into()) {
            // Whatever it is now, it can be looked at.
            for column in table.batches.iter().flat_map(RecordBatch::columns) {
                column.to_data().validate_full().unwrap();
            }
        }
    }
}

#[test]
fn nothing_that_was_changed_panics_on_the_way() {
    let message = table().encode().unwrap();
    let panics = counting_panics(|| {
        for at in 0..message.len() {
            for byte in [0, 0x81] {
                let mut changed = message.clone();
                changed[at] = byte;
                let _ = Table::decode(changed.into());
            }
        }
    });
    assert_eq!(panics, 0);
}
