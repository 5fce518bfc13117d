"""The readers of logs as plain Python: start offsets, batches, filters and recorded positions."""

import json
import pickle

import pytest
from logs import (
    SECOND,
    A,
    B,
    C,
    Log,
    Opener,
    at,
    columns,
    offsets_of,
    options,
    read_all,
    run,
    stream,
)
from pyspark.sql import datasource

from zeroxide.pipeline import CollectorGone, DataLoss, Refused
from zeroxide.spark import _collectors as collectors
from zeroxide.spark import _log_reader as log_reader
from zeroxide.spark import _planning as planning
from zeroxide.spark._log_reader import LogBatchReader, PlainStreamReader, PushdownReader
from zeroxide.spark._schema import arrow_schema, spark_schema

limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs Spark 4.2")

ALL = limits.ReadAllAvailable()


class TestBeginning:
    def test_latest_by_default(self):
        assert at(stream(Opener(a=Log(latest=9))).initialOffset()) == 9

    def test_earliest(self):
        reader = stream(Opener(a=Log(earliest=3, latest=9)), startingOffsets="earliest")
        start = reader.initialOffset()
        assert start["collectors"][A] == {"log": "a1", "offset": 3, "partition": 0}

    def test_by_collector(self):
        logs = Opener(a=Log(latest=9), b=Log("b1", 2, 9), c=Log("c1", 2, 9))
        text = json.dumps({A: 5, B: "earliest", C: "latest"})
        start = stream(logs, "a", "b", "c", startingOffsets=text).initialOffset()
        assert [at(start, name) for name in (A, B, C)] == [5, 2, 9]

    def test_every_collector_must_be_named(self):
        logs = Opener(a=Log(), b=Log("b1"))
        reader = stream(logs, "a", "b", startingOffsets=json.dumps({A: 5, "tcp://d:1": 3}))
        with pytest.raises(ValueError, match="tcp://b:1 missing, tcp://d:1 unknown"):
            reader.initialOffset()

    def test_trimmed_and_future_offsets(self):
        logs = Opener(a=Log(earliest=5, latest=9))
        with pytest.raises(DataLoss, match=r"rows \[3, 5\).*'failOnDataLoss'"):
            stream(logs, startingOffsets=json.dumps({A: 3})).initialOffset()
        text = json.dumps({A: 3})
        assert at(stream(logs, startingOffsets=text, failOnDataLoss="false").initialOffset()) == 5
        with pytest.raises(ValueError, match="has offsets 5 to 9"):
            stream(logs, startingOffsets=json.dumps({A: 10})).initialOffset()

    def test_out_of_a_checkpoint(self):
        """Its offsets apply to its log, and to no other log at the same address."""
        log = Log(earliest=2, latest=9)
        text = json.dumps({"version": 1, "collectors": {A: {"log": "a1", "offset": 5}}})
        assert at(stream(Opener(a=log), startingOffsets=text).initialOffset()) == 5
        log.log_id = "a2"
        with pytest.raises(DataLoss, match=r"from 5 on.* log a1.* log a2 with offsets 2 to 9"):
            stream(Opener(a=log), startingOffsets=text).initialOffset()
        lossy = stream(Opener(a=log), startingOffsets=text, failOnDataLoss="false")
        assert at(lossy.initialOffset()) == 2

    def test_by_time(self):
        logs = Opener(a=Log(latest=100), b=Log("b1", latest=10))
        reader = stream(logs, "a", "b", startingTimestamp="20500", startingOffsets="earliest")
        start = reader.initialOffset()
        assert (at(start), at(start, B)) == (21, 10)

    def test_an_unavailable_collector(self):
        with pytest.raises(CollectorGone, match=r"'collector\.graceMs'"):
            stream(Opener(a=Log(away=True))).initialOffset()


class TestFirstBatchAgain:
    """Spark keeps the end of a batch, but not the start of the first one."""

    def planned(self, log, **given):
        reader = stream(Opener(a=log), **given)
        start = reader.initialOffset()
        log.latest += 10
        return json.loads(json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit())))

    @pytest.mark.parametrize("given", [{}, {"maxOffsetsPerTrigger": 10}])
    @pytest.mark.parametrize("more", [0, 20])
    def test_from_latest(self, given, more):
        log = Log(latest=100)
        end = self.planned(log, **given)
        log.latest += more
        reader = stream(Opener(a=log), **given)
        start = reader.initialOffset()
        assert at(start) == 110 + more
        rows, _ = read_all(reader, reader.partitions(start, end))
        assert offsets_of(rows) == list(range(100, 110))
        # The query then continues from there, without a batch if there are no rows.
        end, rows = run(reader, end)
        assert offsets_of(rows) == list(range(110, 110 + min(more, 10 if given else more)))

    def test_from_earliest_that_retention_has_moved(self):
        log = Log(latest=0)
        end = self.planned(log, startingOffsets="earliest")
        log.earliest = 5
        reader = stream(Opener(a=log), startingOffsets="earliest")
        with pytest.raises(DataLoss, match=r"rows \[0, 5\)"):
            read_all(reader, reader.partitions(reader.initialOffset(), end))

    def test_old_spark(self):
        log = Log(latest=100)
        reader = PlainStreamReader(options(), columns(), Opener(a=log))
        start = reader.initialOffset()
        log.latest = 110
        end = reader.latestOffset()
        assert len(reader.partitions(start, end)) == 1
        assert reader.latestOffset() == end
        log.latest = 130
        again = PlainStreamReader(options(), columns(), Opener(a=log))
        rows, _ = read_all(again, again.partitions(again.initialOffset(), end))
        assert offsets_of(rows) == list(range(100, 110))
        assert again.partitions(end, end) == []
        later = again.latestOffset()
        rows, _ = read_all(again, again.partitions(end, later))
        assert offsets_of(rows) == list(range(110, 130))

    def test_no_new_rows_make_no_batch(self):
        log, other = Log(latest=100), Log("b1", latest=10)
        reader = stream(Opener(a=log, b=other), "a", "b", collector_graceMs=60_000)
        start = reader.initialOffset()
        assert reader.latestOffset(start, ALL) == start
        log.latest = 110
        end, _ = run(reader, start)
        assert [entry.get("from") for entry in end["collectors"].values()] == [100, None]
        log.away = True
        assert run(reader, end) == (end, [])
        other.latest = 12
        end, rows = run(reader, end)
        assert offsets_of(rows) == [10, 11]
        log.away = False
        assert run(reader, end) == (end, [])
        log.latest = 111
        assert offsets_of(run(reader, end)[1]) == [110]

    def test_available_now_ends(self):
        log = Log(latest=100)
        reader = stream(Opener(a=log), startingOffsets="earliest")
        start = reader.initialOffset()
        reader.prepareForTriggerAvailableNow()
        log.latest = 500
        end, rows = run(reader, start)
        assert len(rows) == 100
        assert run(reader, end) == (end, [])


class TestBatches:
    def test_ranges_follow_each_other(self):
        log = Log(latest=40)
        reader = stream(Opener(a=log), startingOffsets="earliest")
        start = reader.initialOffset()
        end, rows = run(reader, start)
        assert offsets_of(rows) == list(range(40))
        assert run(reader, end) == (end, [])
        log.latest = 50
        end, rows = run(reader, end)
        assert offsets_of(rows) == list(range(40, 50))
        assert {row["partition"] for row in rows} == {0}

    def test_the_same_range_again_gives_the_same(self):
        log = Log(latest=40)
        reader = stream(Opener(a=log), startingOffsets="earliest")
        start = reader.initialOffset()
        end, rows = run(reader, start)
        log.latest = 90
        again = stream(Opener(a=log))
        assert read_all(again, again.partitions(start, end))[0] == rows

    def test_record_batches_are_exact_and_large(self):
        reader = stream(Opener(a=Log(latest=1000)), startingOffsets="earliest", minPartitions=1)
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        rows, batches = read_all(reader, reader.partitions(start, end))
        assert [batch.num_rows for batch in batches] == [1000]
        assert batches[0].schema.equals(arrow_schema(columns()))
        batches[0].validate(full=True)
        assert rows[7]["value"] == b"7"

    @pytest.mark.parametrize(("frame", "sizes"), [(3000, [15000, 15000]), (5000, [5000] * 6)])
    def test_small_record_batches_are_combined(self, frame, sizes):
        log = Log(latest=30_000, frame=frame)
        reader = stream(Opener(a=log), startingOffsets="earliest", minPartitions=1)
        start = reader.initialOffset()
        _, batches = read_all(reader, reader.partitions(start, reader.latestOffset(start, ALL)))
        assert [batch.num_rows for batch in batches] == sizes

    def test_some_columns_in_another_order(self):
        schema = spark_schema(["offset", "value"])
        opener = Opener(a=Log(latest=5))
        reader = LogBatchReader(options(streaming=False), schema, opener)
        rows, batches = read_all(reader, reader.partitions())
        assert batches[0].schema.equals(arrow_schema(schema))
        assert rows[4] == {"offset": 4, "value": b"4"}

    def test_limit_by_rows(self):
        logs = Opener(a=Log(latest=300), b=Log("b1", latest=100))
        reader = stream(logs, "a", "b", startingOffsets="earliest", maxOffsetsPerTrigger=40)
        assert reader.getDefaultReadLimit() == limits.ReadMaxRows(40)
        end, rows = run(reader, reader.initialOffset())
        assert (at(end), at(end, B)) == (30, 10)
        assert len(rows) == 40
        end, rows = run(reader, end)
        assert offsets_of(rows) == [*range(30, 60), *range(10, 20)]

    def test_limit_by_bytes(self):
        log = Log(latest=300, row_bytes=100)
        reader = stream(Opener(a=log), startingOffsets="earliest", maxBytesPerTrigger=1000)
        assert reader.getDefaultReadLimit() == limits.ReadMaxBytes(1000)
        end, _ = run(reader, reader.initialOffset())
        assert at(end) == 10
        log.row_bytes = 5000
        end, _ = run(reader, end)
        assert at(end) == 11

    def test_limit_by_bytes_with_the_sizes_from_the_log(self):
        class Weighed(Log):
            def offset_after(self, start, size):
                if self.is_old:
                    raise Refused("no such request", code="malformed")
                # Rows up to 100 have 10 bytes, later ones 500.
                small = min(size // 10, max(100 - start, 0))
                return min(start + small + (size - 10 * small) // 500, self.latest)

            is_old = False

        log = Weighed(latest=300, row_bytes=100)
        reader = stream(Opener(a=log), startingOffsets="earliest", maxBytesPerTrigger=900)
        end, _ = run(reader, reader.initialOffset())
        assert at(end) == 90
        end, _ = run(reader, end)
        assert at(end) == 101
        end, _ = run(reader, end)
        assert at(end) == 102
        end, _ = run(reader, end)
        assert at(end) == 103
        log.is_old = True
        end, _ = run(reader, end)
        assert at(end) == 112, "the mean"

    def test_the_smaller_of_two_limits(self):
        given = {"maxOffsetsPerTrigger": 50, "maxBytesPerTrigger": 1000}
        reader = stream(Opener(a=Log(latest=300)), startingOffsets="earliest", **given)
        assert at(run(reader, reader.initialOffset())[0]) == 10

    def test_trigger_once_has_no_limit(self):
        log = Opener(a=Log(latest=300))
        reader = stream(log, startingOffsets="earliest", maxOffsetsPerTrigger=50)
        assert at(run(reader, reader.initialOffset(), ALL)[0]) == 300

    def test_enough_rows_or_enough_time(self, monkeypatch):
        now = [1000.0]
        monkeypatch.setattr(log_reader.time, "monotonic", lambda: now[0])
        log = Log(latest=10)
        given = {"minOffsetsPerTrigger": 100, "maxTriggerDelay": "20s"}
        reader = stream(Opener(a=log), startingOffsets="earliest", **given)
        end, _ = run(reader, reader.initialOffset())
        assert at(end) == 10  # the first batch does not wait
        log.latest = 60
        now[0] += 19
        assert run(reader, end) == (end, [])
        log.latest = 110
        end, _ = run(reader, end)
        assert at(end) == 110
        log.latest = 111
        now[0] += 20
        assert at(run(reader, end)[0]) == 111

    def test_available_now(self):
        log = Log(latest=100)
        given = {"maxOffsetsPerTrigger": 40, "minOffsetsPerTrigger": 40}
        reader = stream(Opener(a=log), startingOffsets="earliest", **given)
        start = reader.initialOffset()
        reader.prepareForTriggerAvailableNow()
        log.latest = 500
        sizes = []
        end, rows = run(reader, start)
        while rows:
            sizes.append(len(rows))
            end, rows = run(reader, end)
        assert sizes == [40, 40, 20]

    @pytest.mark.parametrize("given", [{}, {"startingTimestamp": 104_000}])
    def test_available_now_begins_at_its_end_however_many_rows_arrive(self, given):
        log = Log(latest=100)
        reader = stream(Opener(a=log), **given)
        reader.prepareForTriggerAvailableNow()
        log.latest = 105
        start = reader.initialOffset()
        assert at(start) == 100
        assert run(reader, start) == (start, [])

    def test_available_now_does_not_stop_early(self):
        log = Log(latest=100)
        reader = stream(Opener(a=log), startingOffsets="earliest")
        start = reader.initialOffset()
        reader.prepareForTriggerAvailableNow()
        log.away = True
        assert at(reader.latestOffset(start, ALL)) == 100

    def test_lag(self):
        logs = Opener(a=Log(latest=100), b=Log("b1", latest=7))
        reader = stream(logs, "a", "b", startingOffsets="earliest", maxOffsetsPerTrigger=10)
        assert reader.reportLatestOffset() is None
        end, _ = run(reader, reader.initialOffset())
        newest = reader.reportLatestOffset()
        assert (at(newest), at(newest, B)) == (100, 7)
        assert at(newest) + at(newest, B) - at(end) - at(end, B) == 97

    @pytest.mark.parametrize("frame", [7, 1])
    def test_topics(self, frame):
        """Also if stored batches, or their parts in the range, have no row of the topics."""
        log = Log(latest=40, frame=frame)
        reader = stream(Opener(a=log), startingOffsets="earliest", subscribe="t1")
        _, rows = run(reader, reader.initialOffset())
        assert offsets_of(rows) == list(range(1, 40, 2))
        reader = stream(Opener(a=log), startingOffsets="earliest", subscribe="t2")
        assert run(reader, reader.initialOffset())[1] == []

    def test_pieces(self):
        def count(**given):
            reader = stream(Opener(a=Log(latest=100)), startingOffsets="earliest", **given)
            start = reader.initialOffset()
            return len(reader.partitions(start, reader.latestOffset(start, ALL)))

        assert count() == 1
        assert count(minPartitions=7) == 7
        assert count(minPartitions=700) == 100
        assert count(maxRecordsPerPartition=30) == 4

    def test_a_copy_for_tasks_has_no_connections(self):
        reader = stream(Opener(a=Log(latest=4)), startingOffsets="earliest")
        start = reader.initialOffset()
        parts = reader.partitions(start, reader.latestOffset(start, ALL))
        copy = pickle.loads(pickle.dumps(reader))
        assert copy._collectors is None
        assert len(read_all(copy, pickle.loads(pickle.dumps(parts)))[0]) == 4


class TestOldSpark:
    """Spark 4.0 and 4.1, which do not pass the start of a batch."""

    def reader(self, log, **given):
        return PlainStreamReader(options(**given), columns(), Opener(a=log))

    def test_a_new_query(self):
        log = Log(latest=100)
        reader = self.reader(log, startingOffsets="latest", maxOffsetsPerTrigger=10)
        log.latest = 115
        end = reader.latestOffset()  # before the first request for an offset
        start = reader.initialOffset()
        assert (at(start), at(end)) == (115, 115)
        log.latest = 200
        assert at(reader.initialOffset()) == 115
        for expected in (125, 135):
            end = reader.latestOffset()
            assert at(end) == at(reader.latestOffset()) == expected
            reader.partitions(start, end)
            start = end

    def test_a_query_that_continues(self):
        reader = self.reader(Log(latest=100), maxOffsetsPerTrigger=10)
        before = stream(Opener(a=Log(latest=60))).initialOffset()
        assert reader.partitions(before, before) == []  # how Spark passes its position
        assert at(reader.latestOffset()) == 70


class TestBatchReads:
    def read(self, *names, reader=LogBatchReader, logs=None, **given):
        made = reader(options(*names, streaming=False, **given), columns(), logs)
        return made, read_all(made, made.partitions())[0]

    def test_everything(self):
        logs = Opener(a=Log(latest=10), b=Log("b1", 5, 9))
        _, rows = self.read("a", "b", logs=logs)
        assert [(r["partition"], r["offset"]) for r in rows] == [
            *((0, n) for n in range(10)),
            *((1, n) for n in range(5, 9)),
        ]

    def test_between_offsets(self):
        given = {"startingOffsets": json.dumps({A: 3}), "endingOffsets": json.dumps({A: 6})}
        _, rows = self.read("a", logs=Opener(a=Log(latest=10)), **given)
        assert offsets_of(rows) == [3, 4, 5]

    def test_between_times(self):
        given = {"startingTimestamp": 3000, "endingTimestamp": "1970-01-01T00:00:06Z"}
        _, rows = self.read("a", logs=Opener(a=Log(latest=10)), **given)
        assert offsets_of(rows) == [3, 4, 5]

    def test_nothing(self):
        made, rows = self.read("a", logs=Opener(a=Log()))
        assert (made.partitions(), rows) == ([], [])

    def test_the_end_before_the_beginning(self):
        logs = Opener(a=Log(latest=50))
        for given in (
            {"startingOffsets": json.dumps({A: 40}), "endingOffsets": json.dumps({A: 30})},
            {"startingTimestamp": "40000", "endingTimestamp": "30000"},
        ):
            reader = LogBatchReader(options(streaming=False, **given), columns(), logs)
            with pytest.raises(ValueError, match=r"mean offset 40, but .* mean offset 30, which"):
                reader.partitions()

    def test_beyond_the_end(self):
        with pytest.raises(ValueError, match="'endingOffsets' is 11"):
            self.read("a", logs=Opener(a=Log(latest=10)), endingOffsets=json.dumps({A: 11}))

    def test_filters_are_not_taken_unless_requested(self):
        taken = PushdownReader.pushFilters is not datasource.DataSourceReader.pushFilters
        untouched = LogBatchReader.pushFilters is datasource.DataSourceReader.pushFilters
        assert taken and untouched

    @pytest.mark.parametrize(
        ("filters", "left"),
        [
            ([datasource.GreaterThanOrEqual(("offset",), 5)], [5, 6, 7, 8, 9]),
            ([datasource.GreaterThan(("offset",), 5)], [6, 7, 8, 9]),
            ([datasource.LessThan(("offset",), 2)], [0, 1]),
            ([datasource.LessThanOrEqual(("offset",), 2)], [0, 1, 2]),
            ([datasource.EqualTo(("offset",), 2)], [2]),
            ([datasource.EqualTo(("partition",), 1)], []),
            ([datasource.EqualTo(("topic",), "t1")], [1, 3, 5, 7, 9]),
            ([datasource.In(("topic",), ("t0", "x"))], [0, 2, 4, 6, 8]),
            ([datasource.StringStartsWith(("topic",), "t0")], [0, 2, 4, 6, 8]),
            ([datasource.IsNotNull(("offset",))], list(range(10))),
            (
                [datasource.GreaterThan(("offset",), 3), datasource.LessThan(("offset",), 6)],
                [4, 5],
            ),
        ],
    )
    def test_filters_narrow_and_stay_with_spark(self, filters, left):
        made = PushdownReader(options(streaming=False), columns(), Opener(a=Log(latest=10)))
        assert list(made.pushFilters(filters)) == filters
        assert offsets_of(read_all(made, made.partitions())[0]) == left

    def test_a_filter_on_the_time_of_receipt(self):
        made = PushdownReader(options(streaming=False), columns(), Opener(a=Log(latest=10)))
        time = made.opener.logs[A]._batch([6], 0).column(7)[0].as_py()
        list(made.pushFilters([datasource.GreaterThanOrEqual(("receive_time",), time)]))
        assert offsets_of(read_all(made, made.partitions())[0]) == [6, 7, 8, 9]
        assert SECOND == 1_000_000


def test_the_mean_of_an_empty_log_is_defined():
    assert planning.mean_size(None) == 1.0
    assert planning.mean_size(Log().info()) == 1.0


def test_a_connection_that_no_other_task_can_use_is_closed(monkeypatch):
    monkeypatch.setattr(collectors, "_idle", {})
    given = options("a", collector_graceMs=60_000)
    ends = []

    class Connection(Log):
        def close(self):
            ends.append(self)

    def opener(*_):
        return Connection()

    with collectors.opened(given, A, opener, 1.0) as short:
        assert not ends
    assert ends == [short]
    with collectors.opened(given, A, opener) as shared:
        pass
    with collectors.opened(given, A, opener) as again:
        assert again is shared
    assert ends == [short]
