"""Replies of services that do not fit the schema: each is an error that names the column and the remedy."""

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from zeroxide.spark import RpcError
from zeroxide.spark._ipc import to_stream
from zeroxide.spark._replies import fit, parse


def schema(kind, nullable=True):
    return StructType([StructField("a", kind, nullable)])


def struct(kind, nullable=True):
    return StructType([StructField("x", kind, nullable)])


def fitted(values, target):
    """The values of column `a` after a reply with these was fitted to a schema."""
    return fit(pa.record_batch({"a": values}), target).column("a").to_pylist()


DOUBLES = pa.struct([("x", pa.float64())])


@pytest.mark.parametrize(
    ("values", "target", "said"),
    [
        (
            pa.array([1, None, 3]),
            schema(LongType(), nullable=False),
            "'a' is null in 1 of 3 values .* leave NOT NULL out",
        ),
        (
            pa.nulls(2),
            schema(StringType(), nullable=False),
            "'a' is null in 2 of 2 values .* leave NOT NULL out",
        ),
        (
            pa.array([[1, None], [2]]),
            schema(ArrayType(IntegerType(), containsNull=False)),
            "'a.element' is null in 1 of 3 values",
        ),
        (
            pa.array([[("k", None)], None], pa.map_(pa.string(), pa.int64())),
            schema(MapType(StringType(), LongType(), valueContainsNull=False)),
            "'a.value' is null in 1 of 1 values",
        ),
        (
            pa.array([[{"x": None}], [{"x": 1}]]),
            schema(ArrayType(struct(LongType(), nullable=False))),
            "does not fit .* 'x' of type int64 has nulls.* column 'a'",
        ),
        (
            pa.array([0.1, 1e300, -1e300]),
            schema(FloatType()),
            r"'a' has numbers that are too large for a float in 2 of 3 .* such as 1e\+300: use double",
        ),
        (pa.array(["1e300"]), schema(FloatType()), r"'a' has numbers .* such as 1e\+300"),
        (pa.array([[1e300]]), schema(ArrayType(FloatType())), "'a.element' has numbers"),
        (
            pa.array([{"x": 1.0}, {"x": 1e39}], DOUBLES),
            schema(struct(FloatType())),
            r"'a.x' has numbers .* in 1 of 2 .* such as 1e\+39",
        ),
        (
            pa.array([[("k", 1e39)]], pa.map_(pa.string(), pa.float64())),
            schema(MapType(StringType(), FloatType())),
            "'a.value' has numbers",
        ),
        (
            pa.array([{"x": 1}]),
            schema(LongType()),
            "Unsupported cast .* Convert column 'a', which is struct<x: int64>, in the service",
        ),
        (pa.array([[1]]), schema(StringType()), "Unsupported cast .* or change the schema"),
        (pa.array(["x"]), schema(LongType()), "does not fit struct<a:bigint>: .* column 'a'"),
        (pa.array([{"y": 1}]), schema(struct(LongType())), "'a' has no field x, only y"),
        (
            pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]),
            schema(struct(LongType())),
            "'a' has 2 fields 'x': rename or drop all but one",
        ),
        (
            pa.array([[1], [2, 3]], pa.list_view(pa.int64())),
            schema(ArrayType(LongType())),
            "'a' is a list view: return a list",
        ),
    ],
)
def test_values_that_do_not_fit(values, target, said):
    with pytest.raises(RpcError, match=said):
        fitted(values, target)


@pytest.mark.parametrize(
    ("values", "target", "result"),
    [
        (pa.array([1, 2]), schema(LongType(), nullable=False), [1, 2]),
        (pa.array([1.5, float("inf"), None]), schema(FloatType()), [1.5, float("inf"), None]),
        (pa.array(["inf"]), schema(FloatType()), [float("inf")]),
        (
            pa.array([[{"x": None}], [{"x": 1e300}], [{"x": 1.0}, None]]).slice(2),
            schema(ArrayType(struct(FloatType(), nullable=False))),
            [[{"x": 1.0}, None]],
        ),
        # Values below null do not count.
        (
            pa.StructArray.from_arrays(
                [pa.array([1e300, 1.0])], names=["x"], mask=pa.array([True, False])
            ),
            schema(struct(FloatType(), nullable=False)),
            [None, {"x": 1.0}],
        ),
        (
            pa.array([[("k", None)], None, [("l", 2)]], pa.map_(pa.string(), pa.int64())).slice(1),
            schema(MapType(StringType(), LongType(), valueContainsNull=False)),
            [None, [("l", 2)]],
        ),
        (pa.array([{"y": "s", "x": 1}]), schema(struct(LongType())), [{"x": 1}]),
        (pa.array([1.0]).dictionary_encode(), schema(FloatType(), nullable=False), [1.0]),
        (pa.array([]), schema(FloatType(), nullable=False), []),
    ],
)
def test_values_that_fit(values, target, result):
    assert fitted(values, target) == result


def test_columns_of_one_name():
    ones, twos = pa.array([1]), pa.array([2])
    batch = pa.RecordBatch.from_arrays([ones, twos, ones, twos], ["a", "b", "a", "a"])
    with pytest.raises(RpcError, match="has 3 columns 'a': rename or drop all but one"):
        fit(batch, schema(LongType()))
    # Columns that are not requested may have any names.
    assert fit(batch, StructType([StructField("b", LongType())])).to_pylist() == [{"b": 2}]


def test_missing_columns():
    with pytest.raises(RpcError, match="has no column a, only A"):
        fit(pa.record_batch({"A": [1]}), schema(LongType()))
    with pytest.raises(RpcError, match="has no column a, and no others"):
        fit(pa.RecordBatch.from_arrays([], []), schema(LongType()))


def test_replies_that_are_not_streams():
    good = bytes(to_stream(pa.record_batch({"name": ["text"]})))
    assert parse(good).to_pylist() == [{"name": "text"}]
    wrong_name = good.replace(b"name", b"n\xffme")
    for body in (b"", b"hello", good[: len(good) // 2], bytes(100), b"\xff" * 100, wrong_name):
        with pytest.raises(RpcError, match=r"not a record batch as an Arrow IPC stream.*message"):
            parse(body)
