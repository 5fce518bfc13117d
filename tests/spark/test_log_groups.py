"""The positions of consumer groups, which retention may follow; these tests need no JVM."""

import json

import pytest
from logs import Log, Opener, at, columns, options, run, stream

from zeroxide.spark._log_reader import PlainStreamReader

pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs Spark 4.2")


def restarted(kind, log, **given):
    """A reader of a new process, before Spark's first call."""
    if kind == "4.2":
        return stream(Opener(a=log), consumerGroup="g", **given)
    return PlainStreamReader(options(consumerGroup="g", **given), columns(), Opener(a=log))


def first_calls(kind, reader, *, available_now):
    """Spark's calls before the first batch of a query, old or new, is planned."""
    if available_now and kind == "4.2":
        reader.prepareForTriggerAvailableNow()
    if available_now and kind == "4.0":
        reader.latestOffset()


def new_end(kind, reader):
    """The end of the first batch of a new query."""
    if kind == "4.0":
        end = reader.latestOffset()
        reader.initialOffset()
    else:
        end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    return json.loads(json.dumps(end))


@pytest.mark.parametrize("available_now", [False, True])
@pytest.mark.parametrize("kind", ["4.0", "4.2"])
class TestFirstBatch:
    def test_a_new_query_keeps_its_rows_from_the_beginning(self, kind, available_now):
        log = Log(latest=100)
        reader = restarted(kind, log)
        first_calls(kind, reader, available_now=available_now)
        assert at(reader.initialOffset()) == 100
        log.latest += 1000
        assert new_end(kind, reader)
        assert log.commits == {"g": [100]}

    def test_a_first_batch_that_is_repeated_still_has_its_rows(self, kind, available_now):
        """While the query was down, rows arrived, so a new query would begin after the batch."""
        log = Log(latest=100)
        reader = restarted(kind, log)
        start = reader.initialOffset()
        log.latest += 1000
        end = new_end(kind, reader)
        reader.partitions(start, end)
        log.latest += 1000
        reader = restarted(kind, log)
        first_calls(kind, reader, available_now=available_now)
        reader.partitions(end, end)  # how Spark passes the position to continue from
        start = reader.initialOffset()
        assert at(start) == 2100
        assert len(reader.partitions(start, end)) == 1
        assert max(log.commits["g"]) <= 100

    def test_a_later_batch_that_is_repeated_still_has_its_rows(self, kind, available_now):
        log = Log(latest=100)
        log.commits["g"] = [60]
        before = stream(Opener(a=log)).initialOffset()
        log.latest += 10
        end = stream(Opener(a=log)).latestOffset(before, None)
        log.latest += 1000
        reader = restarted(kind, log)
        first_calls(kind, reader, available_now=available_now)
        reader.partitions(end, end)
        reader.partitions(before, end)
        assert log.commits["g"] == [60]


def test_a_batch_without_a_position_is_held():
    """As after an upgrade, or if the collector could not record it at the beginning."""
    log = Log(latest=5)
    reader = stream(Opener(a=log))
    start = reader.initialOffset()
    log.latest += 10
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    for ahead in ([], [35]):
        log.commits["g"] = list(ahead)
        reader = stream(Opener(a=log), consumerGroup="g")
        reader.partitions(reader.initialOffset(), end)
        assert log.commits["g"][-1] == 5


def test_the_recorded_position_stays_behind():
    log = Log(latest=10)
    reader = stream(Opener(a=log), startingOffsets="earliest", consumerGroup="g")
    end = reader.initialOffset()
    ends = []
    for _ in range(5):
        end, _ = run(reader, end)
        ends.append(end)
        reader.commit(end)
        log.latest += 10
    assert log.commits == {"g": [0, 10, 20, 30]}


def test_short_runs_also_record_the_position():
    log = Log(latest=10)
    end = stream(Opener(a=log), startingOffsets="earliest").initialOffset()
    for _ in range(4):
        reader = stream(Opener(a=log), consumerGroup="g")
        end, _ = run(reader, end)
        log.latest += 10
    assert log.commits == {"g": [0, 10, 20]}


@pytest.mark.parametrize(("sizes", "recorded"), [((80, 1, 5), [0, 80]), ((1, 80, 5), [0, 1])])
def test_the_previous_batch_of_a_short_run_may_be_repeated(sizes, recorded):
    """However large it was."""
    log = Log()
    end = stream(Opener(a=log), startingOffsets="earliest").initialOffset()
    for number, size in enumerate(sizes):
        log.latest += size
        reader = stream(Opener(a=log), consumerGroup="g")
        start, (end, _) = end, run(reader, end)
        assert log.commits["g"][-1] <= sum(sizes[: max(number - 1, 0)])
        assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end
    assert log.commits == {"g": recorded}
    # Of offsets without a record, as those of older versions, nothing is assumed.
    log.commits["g"] = [7]
    del start["collectors"]["tcp://a:1"]["since"]
    stream(Opener(a=log), consumerGroup="g").partitions(start, end)
    assert log.commits["g"] == [7]


def test_without_a_group_no_position_is_recorded():
    log = Log(latest=10)
    reader = stream(Opener(a=log), startingOffsets="earliest")
    end, _ = run(reader, reader.initialOffset())
    for _ in range(5):
        reader.commit(end)
    assert log.commits == {}


def test_a_collector_that_was_briefly_unavailable_records_the_position():
    """The first offset, from which on its rows must be kept."""

    class Faltering(Log):
        def offset_at(self, timestamp):
            if "offset_at" not in self.asked:
                self.refuses = ["closing"]
            return super().offset_at(timestamp)

    log = Faltering(latest=50)
    given = {"consumerGroup": "g", "startingTimestamp": "20000", "collector_graceMs": 60_000}
    assert at(stream(Opener(a=log), **given).initialOffset()) == 20
    assert log.commits == {"g": [20]}


def test_a_collector_that_cannot_record_the_position():
    log = Log(latest=10)
    given = {"startingOffsets": "earliest", "consumerGroup": "g", "collector_graceMs": 9999}
    reader = stream(Opener(a=log), **given)
    end, _ = run(reader, reader.initialOffset())
    log.away = True
    for _ in range(5):
        reader.commit(end)
