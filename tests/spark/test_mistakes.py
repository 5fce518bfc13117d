"""Mistakes with options, as a user of Spark sees them: the sentence about the mistake comes last."""

from tempfile import TemporaryDirectory

import pytest
from pyspark.errors import PySparkException

ENDPOINT = "tcp://127.0.0.1:5999"


def last_line(error):
    """The last line of an error that is not of Spark's own making."""
    text = str(error).partition("=== Streaming Query ===")[0]
    lines = [line.partition(" SQLSTATE:")[0].strip() for line in text.splitlines()]
    return [line for line in lines if line][-1]


def read(spark, **options):
    return spark.read.format("zeromq").options(**options).load()


def read_columns(spark, **options):
    frame = spark.read.format("zeromq").schema("value binary").options(**options).load()
    # With columns of the user, Spark does not make the source before it is needed.
    return frame.collect()


def read_stream(spark, **options):
    return spark.readStream.format("zeromq").options(**options).load()


def start(spark, **options):
    stream = spark.readStream.format("zeromq").options(**options).load()
    query = stream.writeStream.format("noop").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def read_twice(spark, **options):
    reader = spark.read.format("zeromq").schema("offset bigint, offset bigint")
    reader.options(**options).load().collect()


def start_twice(spark, **options):
    reader = spark.readStream.format("zeromq").schema("offset bigint, offset bigint")
    query = reader.options(**options).load().writeStream.format("noop").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def start_sink(spark, **options):
    rows = spark.readStream.format("rate").load().selectExpr("cast(value AS string) AS value")
    with TemporaryDirectory() as folder:
        writer = rows.writeStream.format("zeromq").options(**options)
        # Spark makes the writer in the query's thread, so this call does not raise.
        query = writer.option("checkpointLocation", folder).start()
        try:
            query.awaitTermination(60)
        except PySparkException:
            assert last_line(query.exception()).startswith("ValueError: ")
            raise
        finally:
            query.stop()


def save(spark, **options):
    rows = spark.createDataFrame([(b"x",)], "value binary")
    rows.write.format("zeromq").mode("append").options(**options).save()


def create_table(spark, **options):
    text = ", ".join(f"{name} '{value}'" for name, value in options.items())
    spark.sql(f"CREATE TABLE taken_from_zeromq USING zeromq OPTIONS ({text})")


TABLES = (
    "Spark does not pass the options of CREATE TABLE to the reads and writes of the table. Use CREATE"
    " TEMPORARY VIEW name USING zeromq OPTIONS (endpoint '...')"
)
TWICE = "the schema has column 'offset' more than once: name it once"
NO_ENDPOINT = "option 'endpoint' is missing, for example tcp://127.0.0.1:5555"

MISTAKES = {
    "no option": (read, {}, f"{NO_ENDPOINT}. If this is a table: {TABLES}"),
    "no endpoint": (read, {"maxRecordsPerPartition": "5"}, NO_ENDPOINT),
    "a table": (create_table, {"endpoint": ENDPOINT}, f"CREATE TABLE: {TABLES}"),
    "a socket's option": (
        read,
        {"endpoint": ENDPOINT, "maxRows": "5"},
        "option 'maxrows' is for mode=live, which reads from sockets; without it, rows are read"
        " from a collector's log",
    ),
    "a typo": (
        read,
        {"endpoint": ENDPOINT, "mode": "live", "maxRow": "5"},
        "reading zeromq has no option 'maxrow'; did you mean 'maxRows'?",
    ),
    "a typo, with columns": (
        read_columns,
        {"endpoint": ENDPOINT, "mode": "live", "maxRow": "5"},
        "reading zeromq has no option 'maxrow'; did you mean 'maxRows'?",
    ),
    "a column twice": (read_twice, {"endpoint": ENDPOINT, "collector.graceMs": "1"}, TWICE),
    "a column twice, live": (read_twice, {"endpoint": ENDPOINT, "mode": "live"}, TWICE),
    "a column twice in a stream": (
        start_twice,
        {"endpoint": ENDPOINT, "collector.graceMs": "1"},
        TWICE,
    ),
    "a typo in a stream": (
        read_stream,
        {"endpoint": ENDPOINT, "startingOffset": "latest"},
        "reading zeromq has no option 'startingoffset'; did you mean 'startingOffsets'?",
    ),
    "a typo of a write": (
        save,
        {"endpoint": ENDPOINT, "frme": "arrow"},
        "writing zeromq has no option 'frme'; did you mean 'frame'?",
    ),
    "a write without an endpoint": (
        save,
        {"socket": "push"},
        NO_ENDPOINT,
    ),
    "a typo of a stream's sink": (
        start_sink,
        {"endpoint": ENDPOINT, "frme": "arrow"},
        "writing zeromq has no option 'frme'; did you mean 'frame'?",
    ),
    "a stream's sink without an endpoint": (
        start_sink,
        {"socket": "push"},
        NO_ENDPOINT,
    ),
    "a live stream": (
        start,
        {"endpoint": ENDPOINT, "mode": "live"},
        "option 'mode' is 'live', which spark.readStream cannot have: a stream reads ranges again"
        " after a failure, and a socket gives nothing twice. Leave it out, and read from a"
        " collector",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_sentence_comes_last(spark, mistake):
    make, options, expected = MISTAKES[mistake]
    with pytest.raises(PySparkException) as caught:
        make(spark, **options)
    assert last_line(caught.value) == f"ValueError: {expected}"
    assert "UnboundLocalError" not in str(caught.value)
