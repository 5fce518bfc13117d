"""Messages as columns and columns as messages."""

from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql.types import StructField, StructType

from zeroxide.spark._framing import join, least_framing, split, to_record_batch, to_rows
from zeroxide.spark._schema import COLUMNS, arrow_schema, spark_schema


def reading(framing, include_frames=False):
    return SimpleNamespace(framing=framing, include_frames=include_frames)


def test_single():
    assert split([b"a", b""], reading("single")) == {"value": [b"a", b""]}


def test_single_of_several_frames_is_refused_unless_frames_are_kept():
    with pytest.raises(ValueError, match="message of 3 frames, but framing=single"):
        split([b"a", [b"x", b"y", b"z"]], reading("single"))
    messages = [[b"a"], [b"x", b"y"]]
    assert split(messages, reading("single", include_frames=True)) == {
        "value": [b"a", b"y"],
        "frames": messages,
    }


def test_topic_first():
    columns = split([[b"t", b"v"], [b"alone"]], reading("topic-first"))
    assert columns == {"value": [b"v", b"alone"], "topic": [b"t", None]}
    with pytest.raises(ValueError, match="one or two frames"):
        split([[b"t", b"v", b"more"]], reading("topic-first"))


def test_envelope():
    columns = split([[b"t", b"", b"v", b"h", b"1"], [b"end"]], reading("envelope"))
    assert columns == {
        "topic": [b"t", None],
        "key": [None, None],
        "value": [b"v", b"end"],
        "headers": [[{"key": "h", "value": b"1"}], []],
    }
    with pytest.raises(ValueError, match="pairs of header frames"):
        split([[b"t", b"k", b"v", b"h"]], reading("envelope"))


def test_record_batch_is_exact():
    columns = {
        "value": [b"a", b"b", b"c"],
        "topic": [b"t", None, b"\xff"],
        "headers": [[{"key": "h", "value": b"1"}], [], []],
        "frames": [[b"a"], [b"t", b"b"], []],
    }
    schema = spark_schema(COLUMNS)
    batch = to_record_batch(columns, [(1, 1_000_000), (2, 2_000_001)], schema)
    assert batch.schema.equals(arrow_schema(schema))
    batch.validate(full=True)
    rows = batch.to_pydict()
    assert rows["value"] == columns["value"]
    assert rows["key"] == [None, None, None]
    assert rows["topic"] == ["t", None, "\N{REPLACEMENT CHARACTER}"]
    assert rows["frames"] == columns["frames"]
    assert rows["headers"] == columns["headers"]
    assert [stamp.timestamp() for stamp in rows["timestamp"]] == [1.0, 2.000001, 2.000001]


def test_record_batch_of_chosen_columns():
    schema = StructType([StructField("value", COLUMNS["value"], nullable=False)])
    batch = to_record_batch({"value": [b"a"], "topic": [b"t"]}, [(1, 0)], schema)
    assert batch.schema == pa.schema([pa.field("value", pa.binary(), nullable=False)])


@pytest.mark.parametrize(
    ("columns", "topic", "header", "framing"),
    [
        (["value"], False, False, "single"),
        (["value"], True, False, "topic-first"),
        (["value", "topic"], False, False, "topic-first"),
        (["value", "key"], False, False, "envelope"),
        (["value", "headers"], False, False, "envelope"),
        (["value"], False, True, "envelope"),
    ],
)
def test_least_framing(columns, topic, header, framing):
    assert least_framing(columns, topic=topic, header=header) == framing


def test_join():
    columns = {"value": [b"a", b"b"], "topic": [b"t", None]}
    assert join(columns, "single", None, None) == [b"a", b"b"]
    assert join(columns, "topic-first", None, None) == [(b"t", b"a"), (b"", b"b")]
    assert join(columns, "topic-first", b"T", None) == [(b"T", b"a"), (b"T", b"b")]
    assert join(columns, "envelope", None, [b"q,1,2,3,0", b"q,1,2,3,1"]) == [
        (b"t", b"", b"a", b"spark", b"q,1,2,3,0"),
        (b"", b"", b"b", b"spark", b"q,1,2,3,1"),
    ]
    columns = {"value": [b"a"], "key": [b"k"], "headers": [[b"h", b"1"]]}
    assert join(columns, "envelope", None, None) == [(b"", b"k", b"a", b"h", b"1")]


def test_null_is_not_a_message():
    with pytest.raises(ValueError, match="null in 1 of 2 rows"):
        join({"value": [b"a", None]}, "single", None, None)


def test_rows_of_a_batch_with_an_offset():
    batch = pa.record_batch(
        {
            "headers": [None, [{"key": "h", "value": b"1"}], [None, {"key": None, "value": None}]],
            "value": ["x", "ü", "z"],
            "key": pa.array([b"0", None, b"2"], pa.binary()),
        }
    )
    assert to_rows(batch.slice(1), ["value", "key", "headers"]) == {
        "value": ["ü".encode(), b"z"],
        "key": [None, b"2"],
        "headers": [[b"h", b"1"], [b"", b""]],
    }
