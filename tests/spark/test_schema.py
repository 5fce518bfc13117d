"""Columns, exactly as Spark expects them."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from zeroxide.spark._schema import (
    COLUMNS,
    arrow_schema,
    check_readable,
    check_writable,
    spark_schema,
    to_arrow,
)
from zeroxide.spark.source import ZeroMQDataSource


def test_arrow_schema_is_the_one_spark_derives():
    schema = spark_schema(COLUMNS)
    assert arrow_schema(schema).equals(to_arrow(schema))


def test_arrow_schema_follows_order_and_nullability():
    schema = StructType(
        [StructField("timestamp", COLUMNS["timestamp"], False), StructField("value", BinaryType())]
    )
    assert arrow_schema(schema).equals(to_arrow(schema))


LOG = "key value topic partition offset timestamp timestampType receive_time producer seq"


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        ({"mode": "live"}, "value topic timestamp"),
        ({"mode": "live", "includeFrames": "true"}, "value topic timestamp frames"),
        ({"MODE": "Live", "framing": "envelope"}, "key value topic timestamp"),
        (
            {"mode": "live", "FRAMING": "Envelope", "includeHeaders": "true"},
            "key value topic timestamp headers",
        ),
        ({}, LOG),
        ({"includeFrames": "true", "includeHeaders": "true"}, LOG + " headers frames"),
    ],
)
def test_columns_by_options(options, columns):
    source = ZeroMQDataSource(options | {"endpoint": "tcp://a:1"})
    assert source.schema().names == columns.split()


def test_the_schema_of_a_sink_needs_no_options():
    sink = {"endpoint": "tcp://a:1", "socket": "push", "waitPeers": "2"}
    assert ZeroMQDataSource(sink).schema().names == LOG.split()


def test_reading_fewer_columns():
    check_readable(spark_schema(["value"]), ["value", "topic"])
    with pytest.raises(ValueError, match="no columns: name at least one, such as"):
        ZeroMQDataSource({"endpoint": "tcp://a:1"}).reader(StructType([]))
    with pytest.raises(ValueError, match="has column 'value' more than once: name it once"):
        check_readable(spark_schema(["value", "topic", "value"]), ["value", "topic"])
    with pytest.raises(ValueError, match="no column 'key' to read"):
        check_readable(spark_schema(["key"]), ["value", "topic"])
    with pytest.raises(ValueError, match="column 'value' is binary, not string"):
        check_readable(StructType([StructField("value", StringType())]), ["value"])
    with pytest.raises(ValueError, match="column 'topic' may be null"):
        check_readable(StructType([StructField("topic", StringType(), False)]), ["topic"])


def test_writable_columns():
    headers = ArrayType(
        StructType([StructField("key", StringType()), StructField("value", BinaryType(), False)])
    )
    schema = StructType(
        [
            StructField("extra", LongType()),
            StructField("headers", headers),
            StructField("topic", StringType()),
            StructField("value", StringType()),
        ]
    )
    assert check_writable(schema) == ["value", "topic", "headers"]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (StructType([StructField("id", LongType())]), "needs a column 'value'; there is id"),
        (StructType([StructField("value", LongType())]), "'value' is bigint, not string or binary"),
        (
            StructType([StructField("value", StringType()), StructField("Topic", StringType())]),
            "column 'Topic' would not be sent: rename it to 'topic', or drop it",
        ),
        (
            StructType(
                [
                    StructField("value", StringType()),
                    StructField("headers", MapType(StringType(), StringType())),
                ]
            ),
            "'headers' is map<string,string>, not array<struct<key:string,value:binary>>",
        ),
    ],
)
def test_unwritable_columns(schema, said):
    with pytest.raises(ValueError, match="column") as error:
        check_writable(schema)
    assert said in str(error.value)
