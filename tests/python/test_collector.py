"""A collector in this process, through the public interface."""

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import pytest
from support import PATIENCE, Background, eventually

pytestmark = pytest.mark.zeroxide_only

collectors = pytest.importorskip("zeroxide.pipeline")
pa = pytest.importorskip("pyarrow")


@pytest.fixture
def collector(directory):
    with collectors.Collector(directory / "log") as collector:
        yield collector


def rows_of(collector, **options):
    """All rows as a table."""
    client = collectors.Client(collector.endpoint, timeout_s=PATIENCE)
    info = client.info()
    return pa.Table.from_batches(list(client.fetch(info.earliest, info.latest, **options)))


def values_of(collector):
    return rows_of(collector)["value"].to_pylist()


def test_rows_are_durable_when_append_returns(collector):
    assert collector.append([b"a", "b", bytearray(b"c"), memoryview(b"d")]) == (0, 4)
    row = {"value": b"e", "key": b"k", "topic": "t", "headers": {"h": b"1"}, "timestamp": 1.5}
    assert collector.append([row]) == (4, 5)
    assert collector.append([]) == (5, 5)
    table = rows_of(collector, headers=True)
    assert table["value"].to_pylist() == [b"a", b"b", b"c", b"d", b"e"]
    last = table.slice(4).to_pylist()[0]
    assert (last["key"], last["topic"], last["timestamp"].timestamp()) == (b"k", "t", 1.5)
    assert last["headers"] == [{"key": "h", "value": b"1"}]
    assert table["timestampType"].to_pylist() == [1, 1, 1, 1, 0]
    assert table["producer"].null_count == table["seq"].null_count == 5


def test_times_far_in_the_future_are_refused(directory):
    when = datetime.now(UTC) + timedelta(hours=2)
    row = {"value": b"x", "timestamp": when}
    with collectors.Collector(directory / "log", max_ahead_hours=1) as collector:
        with pytest.raises(collectors.Refused, match="max_ahead_hours"):
            collector.append([row])
        producer = collectors.Producer(collector.endpoint, name="p")
        producer.send(b"x", timestamp=when)
        producer.send(b"y")
        with pytest.raises(
            collectors.Refused, match=r"1 row has a time .*max_ahead_hours"
        ) as refused:
            producer.flush(20)
        assert refused.value.code == "invalid"
        producer.close()
        stats = collector.stats()
        # The batch was refused as a whole, and then sent without the row.
        assert (stats["rows_ahead"], stats["rows"], stats["clock_ahead_seconds"]) == (3, 1, 0)
    with collectors.Collector(directory / "log", max_ahead_hours=3) as collector:
        assert collector.append([row]) == (1, 2)


def test_a_file_of_staged_rows_that_cannot_be_read_is_set_aside(directory):
    (directory / "log/staged/5.stage").mkdir(parents=True)
    with collectors.Collector(directory / "log") as collector:
        [note] = collector.recovery.notes
        assert str(directory / "log/staged/5.stage") in note
        assert collector.stats()["staged_lost"] == 1
    assert os.listdir(directory / "log/staged") == ["5.stage.aside"]


def test_tables_are_appended(collector):
    table = pa.table(
        {
            "value": pa.array([b"%d" % n for n in range(200_000)], pa.binary()),
            "topic": pa.array(["even", "odd"] * 100_000),
        }
    )
    assert collector.append(table) == (0, 200_000)
    assert (
        rows_of(collector, topics=["odd"])["value"].to_pylist() == table["value"].to_pylist()[1::2]
    )


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (b"one", "many rows"),
        ({"value": b"one"}, "many rows"),
        ([{"key": b"k"}], "without a value"),
        ([{"value": b"v", "tpoic": "t"}], "a row has value, key, topic.* not 'tpoic'"),
        ([MappingProxyType({"value": b"v", "tpoic": "t"})], "not 'tpoic'"),
        ([3], "bytes or str, not int"),
        ([{"value": b"v", "topic": b"\xff"}], "UTF-8"),
    ],
)
def test_objects_that_are_not_rows_are_refused(collector, rows, text):
    with pytest.raises((TypeError, ValueError), match=text):
        collector.append(rows)
    assert collector.append([b"next"]) == (0, 1)


def test_a_folder_belongs_to_one_collector(collector, directory):
    with pytest.raises(collectors.Refused, match="in use by process") as refused:
        collectors.Collector(directory / "log")
    assert refused.value.code == "locked"
    collector.close()
    with collectors.Collector(directory / "log") as again:
        assert again.log_id == collector.log_id


def test_mistakes_are_named(zmq, directory):
    for options in ({"framing": "odd"}, {"allow": "*"}):
        with pytest.raises(ValueError, match=r"framing|secret_key"):
            collectors.Collector(directory / "log", **options)
    with pytest.raises(TypeError, match="list"):
        collectors.Collector(directory / "log", pull="tcp://127.0.0.1:*")
    with pytest.raises(zmq.ZMQError, match=r"tcp://127\.0\.0\.1:x"):
        collectors.Collector(directory / "log", "tcp://127.0.0.1:x")
    (directory / "file").write_text("")
    with pytest.raises((collectors.CollectorError, OSError)):
        collectors.Collector(directory / "file")


@pytest.mark.parametrize("option", ["bind", "pull", "dealer", "subscribe"])
def test_it_is_not_open_to_other_machines_by_default(directory, option):
    where = "tcp://0.0.0.0:*"
    given = {"bind": where} if option == "bind" else {option: [f"bind:{where}"]}
    with pytest.raises(collectors.CollectorError, match="reachable from other") as error:
        collectors.Collector(directory / "log", **given)
    assert "secret_key" in str(error.value) and "open_to_network" in str(error.value)
    collectors.Collector(directory / "log", **given, open_to_network=True).close()


def test_closed_is_closed(directory):
    collector = collectors.Collector(directory / "log")
    assert collector.running and repr(collector.endpoint)[1:-1] in repr(collector)
    collector.close()
    collector.close()
    assert not collector.running and "closed" in repr(collector)
    with pytest.raises(collectors.CollectorError, match="closed"):
        collector.append([b"a"])
    with pytest.raises(collectors.CollectorError, match="closed"):
        collector.stats()


def test_the_tail_left_by_a_crash_is_reported(directory):
    with collectors.Collector(directory / "log") as collector:
        collector.append([b"whole"])
    (segment,) = (directory / "log").glob("*.zlog")
    whole = segment.read_bytes()
    segment.write_bytes(whole + b"half a frame")
    with collectors.Collector(directory / "log") as collector:
        assert collector.recovery.dropped_bytes == 12
        assert not collector.recovery.damaged
        assert values_of(collector) == [b"whole"]


def test_a_flipped_bit_is_reported_with_the_affected_offsets(directory):
    with collectors.Collector(directory / "log", segment_bytes=1) as collector:
        for value in (b"first", b"second", b"third"):
            collector.append([value])
    damaged = sorted((directory / "log").glob("*.zlog"))[1]
    content = bytearray(damaged.read_bytes())
    content[content.index(b"second")] ^= 1
    damaged.write_bytes(content)
    with collectors.Collector(directory / "log") as collector:
        client = collectors.Client(collector.endpoint, timeout_s=PATIENCE)
        with pytest.raises(collectors.CollectorError, match=r"offsets 1 to 2 .*read on at 2"):
            list(client.fetch(0, 3))
        assert [b["value"].to_pylist() for b in client.fetch(2, 3)] == [[b"third"]]


def test_retention_by_size_and_by_groups(directory):
    def fill(collector):
        for _ in range(10):
            collector.append([b"x" * 10_000])

    settings = {"segment_bytes": 20_000}
    with collectors.Collector(directory / "a", retention_bytes=50_000, **settings) as collector:
        client = collectors.Client(collector.endpoint, timeout_s=PATIENCE)
        fill(collector)
        # Retention runs every second, even in the middle of this.
        eventually(lambda: client.info().earliest > 0 and client.info().bytes <= 60_000)
        with pytest.raises(collectors.DataLoss) as lost:
            list(client.fetch(0, 10))
        assert (lost.value.asked, lost.value.latest) == (0, 10)
    settings |= {"retention_groups": True}
    with collectors.Collector(directory / "b", **settings) as collector:
        client = collectors.Client(collector.endpoint, timeout_s=PATIENCE)
        fill(collector)
        client.commit("slow", 2)
        client.commit("fast", 9)
        assert collector.stats()["groups"] == {"fast": 9, "slow": 2}
        client.commit("slow", 8)
        eventually(lambda: client.info().earliest > 0)
        assert client.info().earliest <= 8


def test_an_archive_outlives_the_disk(directory):
    archive = directory / "archive"
    with collectors.Collector(directory / "log", segment_bytes=1000, archive=archive) as collector:
        for number in range(20):
            collector.append([b"%d" % number + b"x" * 200])
        assert collector.stats()["archive_failure"] == ""
    shutil.rmtree(directory / "log")
    with collectors.FilesLog(archive) as log:
        assert log.info().latest == 20
        values = [v for b in log.fetch(0, 20) for v in b["value"].to_pylist()]
    assert [int(value.rstrip(b"x")) for value in values] == list(range(20))


def test_plain_peers_of_any_zeromq(zmq, context, directory):
    with context.socket(zmq.PUB) as publisher:
        publisher.bind("tcp://127.0.0.1:*")
        address = publisher.last_endpoint.decode()
        with collectors.Collector(
            directory / "log",
            pull=["tcp://127.0.0.1:*"],
            subscribe=[f"{address} tick"],
            dealer=["tcp://127.0.0.1:*"],
            framing="envelope",
        ) as collector:
            pull, _, dealer = collector.plain_endpoints
            with context.socket(zmq.PUSH) as push, context.socket(zmq.DEALER) as deal:
                push.connect(pull)
                push.send(b"alone")
                push.send_multipart([b"t", b"k", b"value", b"name", b"1"])
                push.send_multipart([b"odd", b"one"])
                eventually(lambda: collector.stats()["durable"] == 3)
                deal.connect(dealer)
                deal.send_multipart([b"", b"d", b"", b"dealt"])
                eventually(lambda: collector.stats()["durable"] == 4)
                publisher.wait_subscribed(b"tick", timeout=PATIENCE * 1000)
                publisher.send_multipart([b"tick", b"", b"heard"])
                eventually(lambda: collector.stats()["durable"] == 5)
            rows = rows_of(collector, headers=True, frames=True).to_pylist()
    seen = [(row["topic"], row["key"], row["value"], row["frames"]) for row in rows]
    assert seen == [
        (None, None, b"alone", None),
        ("t", b"k", b"value", None),
        (None, None, b"one", [b"odd", b"one"]),
        ("d", None, b"dealt", None),
        ("tick", None, b"heard", None),
    ]
    assert rows[1]["headers"] == [{"key": "name", "value": b"1"}]


def test_keep_frames_keeps_all(zmq, context, directory):
    with collectors.Collector(
        directory / "log",
        pull=["tcp://127.0.0.1:*"],
        framing="topic-first",
        keep_frames=True,
    ) as collector:
        with context.socket(zmq.PUSH) as push:
            push.connect(collector.plain_endpoints[0])
            push.send_multipart([b"t", b"v"])
            eventually(lambda: collector.stats()["durable"] == 1)
        assert rows_of(collector, frames=True)["frames"].to_pylist() == [[b"t", b"v"]]


def test_only_listed_clients_are_accepted(zmq, directory):
    server, secret = zmq.curve_keypair()
    public, private = zmq.curve_keypair()
    with collectors.Collector(directory / "log", secret_key=secret, allow=[public]) as collector:
        client = collectors.Client(collector.endpoint, server_key=server, secret_key=private)
        assert client.info().log_id == collector.log_id
        stranger = collectors.Client(
            collector.endpoint, server_key=server, timeout_s=0.5, retries=0
        )
        with pytest.raises(collectors.CollectorError):
            stranger.info()


def test_many_threads_append(collector):
    def work(name):
        for number in range(50):
            collector.append([f"{name} {number}"])

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    values = [value.decode().split() for value in values_of(collector)]
    for name in "abcd":
        assert [int(number) for own, number in values if own == name] == list(range(50))


def test_a_forked_child_has_no_collector(collector):
    child = os.fork()
    if child == 0:
        try:
            collector.stats()
        except RuntimeError as error:
            os._exit(0 if "fork" in str(error) and not collector.running else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert collector.append([b"a"]) == (0, 1)


def test_it_is_closed_when_the_interpreter_ends(zmq, directory):
    import subprocess

    program = (
        "import sys, zeroxide.pipeline as c\n"
        "collector = c.Collector(sys.argv[1])\n"
        "collector.append([b'kept'])\n"
    )
    subprocess.run([sys.executable, "-c", program, str(directory / "log")], check=True, timeout=60)
    with collectors.Collector(directory / "log") as collector:
        assert values_of(collector) == [b"kept"]


def test_stats_are_complete(collector):
    from zeroxide.collector import metrics

    collector.append([b"a"])
    collectors.Client(collector.endpoint).commit('a "group"\n', 0)
    stats = collector.stats()
    assert json.loads(json.dumps(stats)) == stats
    page = metrics.render(stats)
    assert 'zeroxide_collector_group_lag_rows{group="a \\"group\\"\\n"} 1' in page
    assert "zeroxide_collector_rows_total 1" in page
    assert "zeroxide_collector_groups_unlisted 0" in page
    assert 'zeroxide_collector_sync_seconds_bucket{le="+Inf"}' in page
    # Every number that is counted is on the page.
    for name, value in stats.items():
        if isinstance(value, int) and name not in ("syncs", "producers_unlisted"):
            assert f"zeroxide_collector_{name}" in page, name
    families = [line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families))


def test_interrupted_while_the_disk_is_slow(directory):
    with collectors.Collector(directory / "log", flush_ms=3_600_000) as collector:

        class Woken(Exception):
            pass

        def handler(number, frame):
            raise Woken

        def wake():
            eventually(lambda: collector.stats()["rows"] == 1)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)

        before = signal.signal(signal.SIGALRM, handler)
        try:
            waker = Background(wake)
            with pytest.raises(Woken):
                collector.append([b"a"], timeout_s=None)
            waker.result()
        finally:
            signal.signal(signal.SIGALRM, before)
        with pytest.raises(collectors.CollectorError, match="within"):
            collector.append([b"b"], timeout_s=0.05)
    with collectors.Collector(directory / "log") as collector:
        assert values_of(collector) == [b"a", b"b"], "an orderly end writes what was waiting"


def test_a_fetch_that_another_thread_waits_for_can_be_interrupted(directory):
    with collectors.Collector(directory / "log") as collector:
        collector.append([b"a"])
        collector.append([b"b"])
        endpoint = collector.endpoint
    # No collector listens there now.
    fetching = collectors.Client(endpoint, timeout_s=PATIENCE).fetch_tables(0, 2, max_bytes=1)
    first = Background(lambda: next(fetching))

    class Woken(Exception):
        pass

    def handler(number, frame):
        raise Woken

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(3):
            with pytest.raises(Woken):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                next(fetching)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert first.is_alive(), "it has its turn for as long as it waits"
    with collectors.Collector(directory / "log", bind=endpoint):
        both = [first.result(), next(fetching)]
    assert sorted(pa.record_batch(table)["value"][0].as_py() for table in both) == [b"a", b"b"]


def test_keys_have_roles_and_names(zmq, directory):
    auth = pytest.importorskip("zeroxide.auth")
    keys = {name: zmq.curve_keypair() for name in ("server", "alice", "bob", "reader")}
    allow = auth.AllowList()
    for name in ("alice", "bob", "reader"):
        allow.add(keys[name][0], name)
    options = {
        "secret_key": keys["server"][1],
        "allow": allow,
        "roles": {
            "alice": {"roles": ["produce"], "names": ["sensor-*"]},
            "reader": ["fetch", "commit"],
            "*": ["produce"],
        },
    }

    def own(name):
        return {"server_key": keys["server"][0], "secret_key": keys[name][1]}

    with collectors.Collector(directory / "log", **options) as collector:
        with zmq.Producer(collector.endpoint, name="sensor-7", **own("alice")) as producer:
            producer.send(b"21.5")
            producer.flush(timeout_s=PATIENCE)
        for name, taken in [("bob", "sensor-7"), ("alice", "other")]:
            producer = zmq.Producer(collector.endpoint, name=taken, **own(name))
            with pytest.raises(collectors.Refused, match=f"{name}.*--roles") as refused:
                producer.send(b"x")
                producer.flush(timeout_s=PATIENCE)
            assert refused.value.code == "denied" and taken in str(refused.value)
            with contextlib.suppress(collectors.CollectorError):
                producer.close(0)
        reader = collectors.Client(collector.endpoint, **own("reader"))
        assert reader.info().latest == 1
        reader.commit("g", 1)
        with pytest.raises(collectors.Refused, match="role admin") as refused:
            reader.stats()
        assert refused.value.code == "denied"
        with pytest.raises(collectors.Refused, match="role commit"):
            collectors.Client(collector.endpoint, **own("bob")).commit("g", 0)


@pytest.mark.parametrize(
    ("roles", "error"),
    [
        ({"a": ["rule"]}, "no role"),
        ({"a": {"role": []}}, "has roles and names"),
        ({"a": "produce"}, "lists"),
        ({"a": {"roles": "produce"}}, "lists"),
    ],
)
def test_contradictory_roles_are_refused(zmq, directory, roles, error):
    secret = zmq.curve_keypair()[1]
    with pytest.raises((TypeError, ValueError), match=error):
        collectors.Collector(directory / "log", secret_key=secret, allow="*", roles=roles)
    with pytest.raises(ValueError, match="secret_key"):
        collectors.Collector(directory / "log", roles={})


def test_rows_are_split_to_the_largest_batch(directory):
    with collectors.Collector(directory / "log", max_batch_bytes=100_000) as collector:
        rows = [b"%01000d" % number for number in range(5000)]
        assert collector.append(rows) == (0, 5000)
        assert collector.append(pa.table({"value": pa.array(rows, pa.binary())})) == (5000, 10_000)
        with pytest.raises(collectors.Refused, match="100000") as raised:
            collector.append([b"small", bytes(200_000)])
        assert raised.value.code == "too-big"
        assert values_of(collector) == rows * 2
