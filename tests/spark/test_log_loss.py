"""The readers of logs as plain Python: collectors that disappear, refuse or have lost rows, and no silent gap."""

import json

import pytest
from logs import SECOND, A, B, Log, Opener, at, columns, offsets_of, options, read_all, run, stream
from pyspark.sql import datasource

from zeroxide.pipeline import CollectorGone, DataLoss, Refused
from zeroxide.spark import _collectors as collectors
from zeroxide.spark import _log_tasks as log_tasks
from zeroxide.spark._log_reader import LogBatchReader

limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs Spark 4.2")

ALL = limits.ReadAllAvailable()


class TestCollectorsComeAndGo:
    def begun(self, *names, **logs):
        reader = stream(Opener(**logs), *names, startingOffsets="earliest")
        return run(reader, reader.initialOffset())[0]

    def test_unavailable_for_a_short_time(self):
        log, other = Log(latest=10), Log("b1", latest=10)
        given = {"startingOffsets": "earliest", "collector_graceMs": 60_000}
        reader = stream(Opener(a=log, b=other), "a", "b", **given)
        end, _ = run(reader, reader.initialOffset())
        log.away, log.latest, other.latest = True, 20, 15
        end, rows = run(reader, end)
        assert (at(end), at(end, B), len(rows)) == (10, 15, 5)
        log.away = False
        assert len(run(reader, end)[1]) == 10

    def test_unavailable_for_too_long(self):
        log = Log(latest=10)
        reader = stream(Opener(a=log), startingOffsets="earliest")
        start = reader.initialOffset()
        log.away = True
        with pytest.raises(CollectorGone, match=r"'collector\.graceMs' \(0 ms\)"):
            reader.latestOffset(start, ALL)

    def test_a_new_collector_is_read_from_its_beginning(self):
        a, b = Log(latest=10), Log("b1", 3, 9)
        start = self.begun("a", a=a)
        reader = stream(Opener(a=a, b=b), "b", "a")
        end, rows = run(reader, start)
        assert offsets_of(rows) == list(range(3, 9))
        assert {row["partition"] for row in rows} == {1}
        assert run(reader, end)[1] == []

    def test_a_collector_that_moved_keeps_its_position_and_number(self):
        a, b = Log(latest=10), Log("b1", latest=10)
        start = self.begun("a", "b", a=a, b=b)
        b.latest = 20
        reader = stream(Opener(a=a, c=b), "c", "a")
        _, rows = run(reader, start)
        assert offsets_of(rows) == list(range(10, 20))
        assert {row["partition"] for row in rows} == {1}

    def test_a_batch_of_a_collector_that_moved_is_read_again(self):
        log = Log(latest=10)
        reader = stream(Opener(a=log), startingOffsets="earliest")
        start = reader.initialOffset()
        end, rows = run(reader, start)
        again = stream(Opener(c=log), "c")
        assert read_all(again, again.partitions(start, end))[0] == rows

    @pytest.mark.parametrize("lossy", [False, True])
    def test_a_batch_is_read_again_after_two_collectors_exchanged_their_addresses(self, lossy):
        a, b = Log(latest=30), Log("b1", latest=40)
        start = stream(Opener(a=a, b=b), "a", "b", startingOffsets="earliest").initialOffset()
        end, rows = run(stream(Opener(a=a, b=b), "a", "b"), start)
        given = {"consumerGroup": "g", "failOnDataLoss": str(not lossy).lower()}
        again = stream(Opener(a=b, b=a), "a", "b", **given)
        assert read_all(again, again.partitions(start, end))[0] == rows
        end["collectors"][A]["from"], end["collectors"][B]["from"] = 25, 32
        start["collectors"][A]["since"], start["collectors"][B]["since"] = 20, 24
        again = stream(Opener(a=b, b=a), "a", "b", **given)
        again.partitions(start, end)
        assert (a.commits, b.commits) == ({"g": [0, 20]}, {"g": [0, 24]})

    def test_a_collector_that_is_no_longer_listed(self, caplog):
        a, b = Log(latest=10), Log("b1", latest=10)
        start = self.begun("a", "b", a=a, b=b)
        with pytest.raises(DataLoss, match=r"offset 10 of collector tcp://b:1.*'failOnDataLoss'"):
            stream(Opener(a=a)).latestOffset(start, ALL)
        lossy = stream(Opener(a=a), failOnDataLoss="false")
        end, _ = run(lossy, start)
        assert list(end["collectors"]) == [A]
        assert "if it is listed again, it is read from its earliest row on" in caplog.text
        end, rows = run(stream(Opener(a=a, b=b), "a", "b"), end)
        assert offsets_of(rows) == list(range(10))
        assert "if this query has read it before, its rows are delivered again" in caplog.text

    def test_a_pending_batch_of_a_collector_that_was_removed(self, caplog):
        """It is read if the collector still answers at its previous address."""
        a, b = Log(latest=10), Log("b1", latest=5)
        logs = Opener(a=a, b=b)
        start = stream(logs, "a", "b", startingOffsets="earliest").initialOffset()
        end, _ = run(stream(logs, "a", "b"), start)
        for lossy in (False, True):
            for is_away in (False, True):
                reader = stream(logs, "a", failOnDataLoss=str(not lossy).lower())
                b.away = is_away
                parts = reader.partitions(start, end)
                if is_away and not lossy:
                    with pytest.raises(DataLoss, match=r"offset 0 of collector tcp://b:1.*Add it"):
                        read_all(reader, parts)
                    continue
                rows, _ = read_all(reader, parts)
                assert len(rows) == (10 if is_away else 15)
        assert "going on without rows" in caplog.text
        assert "set option 'failOnDataLoss'" not in caplog.text, "it is set"

    def test_the_grace_of_a_task(self, monkeypatch):
        """No request takes longer than the rest of it."""
        now = [1000.0]
        for module in (log_tasks, collectors):
            monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
            monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
        log = Log(latest=10)
        requests = []

        class Slow(Opener):
            def __call__(self, options, address, timeout, retries):
                if log.away:
                    requests.append((timeout, retries))
                    now[0] += timeout * (retries + 1)
                return super().__call__(options, address, timeout, retries)

        for grace, timeout, retries, expected in (
            (5000, 10_000, 3, [(5, 0)]),
            (60_000, 10_000, 3, [(10, 3), (10, 1)]),
            (0, 10_000, 3, [(2, 0)]),
        ):
            given = {
                "collector_graceMs": grace,
                "fetch.timeoutMs": timeout,
                "fetch.retries": retries,
            }
            reader = stream(Slow(a=log), startingOffsets="earliest", **given)
            log.away = False
            start = reader.initialOffset()
            parts = reader.partitions(start, reader.latestOffset(start, ALL))
            log.away = True
            requests.clear()
            with pytest.raises(CollectorGone, match="did not deliver rows"):
                read_all(reader, parts)
            assert requests == expected

    def test_an_unlisted_collector_may_be_the_unavailable_one(self):
        a, b = Log(latest=10), Log("b1", latest=10)
        start = self.begun("a", "b", a=a, b=b)
        b.away = True
        reader = stream(Opener(a=a, c=b), "a", "c", collector_graceMs=60_000)
        end, _ = run(reader, start)
        assert at(end, B) == 10
        b.away, b.latest = False, 12
        assert offsets_of(run(reader, end)[1]) == [10, 11]

    @pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
    def test_the_previous_and_the_present_address_of_a_log(self, names):
        log = Log(latest=10)
        start = self.begun("a", a=log)
        logs = Opener(a=Log(away=True), b=log)
        reader = stream(logs, *names, collector_graceMs=60_000)
        for latest in (20, 30):
            log.latest = latest
            start, rows = run(reader, start)
            assert offsets_of(rows) == list(range(latest - 10, latest))
            assert list(start["collectors"]) == [B]

    @pytest.mark.parametrize("names", [(A, B), (B, A)])
    def test_a_checkpoint_that_has_a_log_twice(self, names):
        positions = {
            A: {"log": "a1", "offset": 10, "partition": 0},
            B: {"log": "a1", "offset": 20, "partition": 0},
        }
        start = {"version": 1, "collectors": {name: positions[name] for name in names}}
        reader = stream(Opener(a=Log(away=True), b=Log(latest=25)), "b")
        assert offsets_of(run(reader, start)[1]) == list(range(20, 25))

    def test_one_collector_under_two_names(self):
        log = Log(latest=10)
        logs = Opener(a=log, b=log)
        start = self.begun("a", a=log)
        with pytest.raises(ValueError, match="are both log a1"):
            stream(logs, "a", "b").latestOffset(start, ALL)
        with pytest.raises(ValueError, match="are both log a1"):
            stream(logs, "a", "b").initialOffset()
        batch = LogBatchReader(options("a", "b", streaming=False), columns(), logs)
        with pytest.raises(ValueError, match="are both log a1"):
            batch.partitions()


class TestRefusals:
    """A collector that temporarily cannot answer counts as unavailable; other refusals are final."""

    @pytest.mark.parametrize("code", ["failed", "too-many", "full", "read-only", "closing"])
    def test_refused_temporarily(self, code):
        log = Log(latest=10)
        given = {"startingTimestamp": "0", "collector_graceMs": 60_000}
        log.refuses = [code]
        reader = stream(Opener(a=log), **given)
        start = reader.initialOffset()
        log.refuses = [code]
        assert reader.latestOffset(start, ALL) == start
        parts = reader.partitions(start, reader.latestOffset(start, ALL))
        log.refuses = [code] * 2
        assert len(read_all(reader, parts)[0]) == 10
        log.refuses = [code]
        assert reader._reach().offset_at(A, 3 * SECOND) == 3

    def test_refused_for_too_long(self):
        log = Log(latest=10, refuses=["full"])
        with pytest.raises(CollectorGone, match=r"'collector\.graceMs'.*not now"):
            stream(Opener(a=log)).initialOffset()
        reader = stream(Opener(a=log), startingOffsets="earliest")
        start = reader.initialOffset()
        parts = reader.partitions(start, reader.latestOffset(start, ALL))
        log.refuses = ["full"]
        with pytest.raises(CollectorGone, match=r"'collector\.graceMs'.*not now"):
            read_all(reader, parts)

    @pytest.mark.parametrize("code", ["denied", "version", "malformed", "corrupt"])
    def test_refused_permanently(self, code):
        log = Log(latest=10)
        given = {"startingOffsets": "earliest", "collector_graceMs": 60_000}
        reader = stream(Opener(a=log), **given)
        start = reader.initialOffset()
        parts = reader.partitions(start, reader.latestOffset(start, ALL))
        for request in (
            lambda: reader.latestOffset(start, ALL),
            lambda: read_all(reader, parts),
            lambda: reader._reach().offset_at(A, 0),
        ):
            log.refuses = [code]
            with pytest.raises(Refused, match="not now"):
                request()


class TestLoss:
    """There is no silent gap: each text names the offsets, the option and the setting."""

    def started(self, log, **given):
        reader = stream(Opener(a=log), startingOffsets="earliest", **given)
        return reader, run(reader, reader.initialOffset())[0]

    def test_retention_removed_unread_rows(self):
        log = Log(latest=10)
        reader, end = self.started(log)
        log.earliest, log.latest = 15, 30
        with pytest.raises(DataLoss) as error:
            reader.latestOffset(end, ALL)
        for said in ("rows [10, 15)", A, "15 to 30", "failOnDataLoss", "--retention-bytes"):
            assert said in str(error.value)
        assert (error.value.asked, error.value.earliest, error.value.latest) == (10, 15, 30)

    def test_retention_removed_unread_rows_and_loss_is_allowed(self):
        log = Log(latest=10)
        reader, end = self.started(log, failOnDataLoss="false")
        log.earliest, log.latest = 15, 30
        end, rows = run(reader, end)
        assert offsets_of(rows) == list(range(15, 30))

    def test_a_limit_counts_only_existing_rows(self):
        log = Log(latest=10)
        reader, end = self.started(log, failOnDataLoss="false", maxOffsetsPerTrigger=10)
        log.earliest, log.latest = 150, 300
        end, rows = run(reader, end)
        assert offsets_of(rows) == list(range(150, 160))
        assert offsets_of(run(reader, end)[1]) == list(range(160, 170))

    def test_replaced_by_an_empty_collector(self):
        log = Log(latest=10)
        reader, end = self.started(log)
        log.log_id, log.latest = "a2", 0
        with pytest.raises(DataLoss) as error:
            reader.latestOffset(end, ALL)
        for said in ("rows from 10 on", "log a1", "log a2", "folder", "failOnDataLoss"):
            assert said in str(error.value)

    def test_replaced_by_an_empty_collector_and_loss_is_allowed(self):
        log = Log(latest=10)
        reader, end = self.started(log, failOnDataLoss="false")
        log.log_id, log.latest = "a2", 5
        end, rows = run(reader, end)
        assert offsets_of(rows) == list(range(5))
        assert {row["partition"] for row in rows} == {0}
        log.latest = 7
        assert offsets_of(run(reader, end)[1]) == [5, 6]

    def test_an_older_copy_of_the_log(self):
        log = Log(latest=10)
        reader, end = self.started(log)
        log.latest = 4
        with pytest.raises(DataLoss, match=r"rows \[4, 10\) are gone.*'failOnDataLoss'"):
            reader.latestOffset(end, ALL)
        reader, _ = self.started(log, failOnDataLoss="false")
        back, rows = run(reader, end)
        assert (at(back), rows) == (4, [])
        log.latest = 6
        assert offsets_of(run(reader, back)[1]) == [4, 5]

    def test_an_older_copy_of_the_log_that_has_grown(self):
        """Without the check, 500 of 800 new rows would be silently missing."""
        log = Log(latest=800, generations=((0, "a"),))
        _, end = self.started(log)
        assert end["collectors"][A]["generation"] == "a"
        log.latest, log.generations = 1300, ((0, "a"), (500, "b"))
        reader = stream(Opener(a=log))
        with pytest.raises(DataLoss, match=r"from offset 500 on.*older copy.*'failOnDataLoss'"):
            reader.latestOffset(end, ALL)
        lossy = stream(Opener(a=log), failOnDataLoss="false")
        back, rows = run(lossy, end)
        assert offsets_of(rows) == list(range(500, 1300))
        assert run(lossy, back)[1] == []
        # Equally long, but different.
        log.latest = 800
        with pytest.raises(DataLoss, match="older copy"):
            stream(Opener(a=log)).latestOffset(end, ALL)
        # A checkpoint from before generations existed does not contain them.
        del end["collectors"][A]["generation"]
        log.latest = 801
        assert offsets_of(run(reader, end)[1]) == [800]

    def test_an_older_copy_between_planning_and_reading(self):
        log = Log(latest=20, generations=((0, "a"),))
        reader, parts = self.planned(log)
        lossy, lossy_parts = self.planned(log, failOnDataLoss="false")
        log.latest, log.generations = 30, ((0, "a"), (5, "b"))
        with pytest.raises(DataLoss, match="from offset 5 on"):
            read_all(reader, parts)
        assert offsets_of(read_all(lossy, lossy_parts)[0]) == list(range(5))

    def test_offsets_of_a_checkpoint_of_an_older_copy_that_has_grown(self):
        log = Log(latest=20, generations=((0, "a"),))
        _, end = self.started(log)
        log.latest, log.generations = 30, ((0, "a"), (5, "b"))
        text = json.dumps(end)
        with pytest.raises(DataLoss, match="from offset 5 on"):
            stream(Opener(a=log), startingOffsets=text).initialOffset()
        lossy = stream(Opener(a=log), startingOffsets=text, failOnDataLoss="false")
        assert at(lossy.initialOffset()) == 5

    def planned(self, log, **given):
        reader = stream(Opener(a=log), startingOffsets="earliest", minPartitions=1, **given)
        start = reader.initialOffset()
        return reader, reader.partitions(start, reader.latestOffset(start, ALL))

    def test_trimmed_before_the_task_reads(self):
        log = Log(latest=20)
        reader, parts = self.planned(log)
        log.earliest = 5
        with pytest.raises(DataLoss, match=r"rows \[0, 5\)"):
            read_all(reader, parts)
        log.earliest = 0
        reader, parts = self.planned(log, failOnDataLoss="false")
        log.earliest = 5
        assert offsets_of(read_all(reader, parts)[0]) == list(range(5, 20))

    def test_replaced_before_the_task_reads(self):
        log = Log(latest=20)
        reader, parts = self.planned(log)
        lossy, lossy_parts = self.planned(log, failOnDataLoss="false")
        log.log_id, log.latest = "a2", 100
        with pytest.raises(DataLoss, match=r"rows \[0, 20\).*log a1.*log a2"):
            read_all(reader, parts)
        assert read_all(lossy, lossy_parts)[0] == []

    @pytest.mark.parametrize("missing", [0, 8, 13, 19])
    def test_a_row_is_missing(self, missing):
        reader, parts = self.planned(Log(latest=20, leaves_out=missing))
        said = rf"offset {missing} .* should come next|rows \[{missing}, 20\) .* not delivered"
        with pytest.raises(DataLoss, match=said):
            read_all(reader, parts)

    def test_rows_after_a_missing_one(self):
        log = Log(latest=20, leaves_out=8)
        reader, parts = self.planned(log, failOnDataLoss="false")
        assert offsets_of(read_all(reader, parts)[0]) == [*range(7), *range(14, 20)]

    def test_an_older_copy_before_the_task_reads(self):
        log = Log(latest=20)
        reader, parts = self.planned(log)
        lossy, lossy_parts = self.planned(log, failOnDataLoss="false")
        log.latest = 12
        with pytest.raises(DataLoss, match=r"rows \[12, 20\)"):
            read_all(reader, parts)
        assert offsets_of(read_all(lossy, lossy_parts)[0]) == list(range(12))

    def test_a_damaged_segment(self):
        log = Log(latest=40, damaged=(14, 28))
        reader, parts = self.planned(log)
        with pytest.raises(DataLoss) as error:
            read_all(reader, parts)
        for said in ("rows from 14 on", "damaged at byte 5", "'failOnDataLoss'", "at 28"):
            assert said in str(error.value)
        reader, parts = self.planned(log, failOnDataLoss="false")
        assert offsets_of(read_all(reader, parts)[0]) == [*range(14), *range(28, 40)]


class TestTasks:
    def planned(self, log, **given):
        given = {"startingOffsets": "earliest", "minPartitions": 1} | given
        reader = stream(Opener(a=log), **given)
        start = reader.initialOffset()
        return reader, reader.partitions(start, reader.latestOffset(start, ALL))

    def test_continues_where_the_collector_died(self, monkeypatch):
        log = Log(latest=60, fails_after=[0, 20, 0, 21])
        reader, parts = self.planned(log, collector_graceMs=60_000)
        rows, _ = read_all(reader, parts)
        assert offsets_of(rows) == list(range(60))
        assert log.asked.count("fetch") == 5

    def test_waits_no_longer_than_allowed(self):
        log = Log(latest=60)
        reader, parts = self.planned(log)
        log.away = True
        with pytest.raises(CollectorGone, match=r"rows \[0, 60\).*'collector\.graceMs'"):
            read_all(reader, parts)

    def test_the_empty_partition_of_spark(self):
        reader, _ = self.planned(Log())
        assert list(reader.read(datasource.InputPartition(None))) == []
