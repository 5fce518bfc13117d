"""The commands that ask a collector: `produce`, `tail`, `topics`, `lag` and `check`, from outside."""

import argparse
import json
import os
import signal
from datetime import UTC, datetime, timedelta

import pytest
from collecting import process
from commands import Command, run
from support import PATIENCE, eventually

pytestmark = pytest.mark.zeroxide_only

pipeline = pytest.importorskip("zeroxide.pipeline")

EVERY_BYTE = bytes(range(256))


@pytest.fixture
def collector(tmp_path):
    with pipeline.Collector(tmp_path / "log") as collector:
        yield collector


@pytest.fixture
def at(collector):
    return collector.endpoint


def rows(endpoint):
    with pipeline.Client(endpoint) as client:
        return list(client.follow(timeout_s=0))


def test_lines_are_rows(at):
    _, errors = run("produce", at, "--topic", "t", "-v", data=b"one\n\nlast")
    assert errors == "on the collector's disk: 3 rows\n"
    assert [(row.value, row.topic) for row in rows(at)] == [
        (b"one", "t"),
        (b"", "t"),
        (b"last", "t"),
    ]


def test_rows_are_sent_before_the_input_ends(at):
    with Command("produce", at) as produce, pipeline.Client(at) as client:
        follower = client.follow()
        for value in (b"first", b"second"):
            produce.write(value + b"\n")
            assert next(follower).value == value
        produce.finish()


def test_rows_of_arguments(at):
    row = ("--row-key", "k", "--header", "a=1", "--header", "a=2", "--name", "me")
    run("produce", at, "--data", "x", "-D", "y", *row)
    one, two = rows(at)
    assert (one.value, two.value) == (b"x", b"y")
    assert one.key == b"k" and one.producer == "me" and two.seq == 1
    assert one.headers == (("a", b"1"), ("a", b"2"))


def test_rows_of_fields(at):
    run("produce", at, "--fields", "topic,key,value", data=b"t\tk\tv\tw\n\t\tonly\n")
    one, two = rows(at)
    assert (one.topic, one.key, one.value) == ("t", b"k", b"v\tw")
    assert (two.topic, two.key, two.value) == (None, None, b"only")
    when = ("--fields", "timestamp,value", "--separator", "|")
    run("produce", at, *when, data=b"2020-01-31T12:00:00+00:00|v\n")
    assert rows(at)[-1].timestamp == datetime(2020, 1, 31, 12, tzinfo=UTC)


def test_rows_before_a_malformed_one_are_written(at):
    error = run("produce", at, "--fields", "key,value", data=b"a\tb\nc\nd\te\n", status=1)[1]
    assert "row 2 of the input: expected 2 fields (key, value), got 1" in error
    assert [row.value for row in rows(at)] == [b"b"]
    error = run("produce", at, "--json", data=b'{"value": "c"}\n{"body": "d"}\n', status=1)[1]
    assert 'row 2 of the input: expected an object with "value"' in error
    error = run("produce", at, "--format", "hex", data=b"64\nx\n", status=1)[1]
    assert "line 2 of the input" in error
    assert [row.value for row in rows(at)] == [b"b", b"c", b"d"]


MALFORMED = {
    '{"value": "x", "headers": 5}': "expected headers such as",
    '{"value": "x", "headers": [5]}': "expected headers such as",
    '{"value": "x", "topic": ["a"]}': "expected a string or",
    '{"value": "x", "topic": "\\ud800"}': "a topic is text in UTF-8",
    '{"value": "x", "timestamp": "soon"}': "expected a time such as",
    '{"value": "x", "timestamp": 1612010112345}': "expected a time such as",
    '{"value": "x", "timestamp": "20260131"}': "expected a time such as",
    '{"value": "x", "timestamp": "0001-01-01T00:00+14:00"}': "expected a time such as",
    "[" * 200_000: "expected JSON",
}


@pytest.mark.parametrize("line", MALFORMED, ids=lambda line: line[:40])
def test_malformed_objects_are_reported(at, line):
    data = b'{"value": "good"}\n\n' + line.encode()
    error = run("produce", at, "--json", data=data, status=1)[1]
    assert f"row 3 of the input: {MALFORMED[line]}" in error and error.count("\n") == 1
    assert [row.value for row in rows(at)] == [b"good"]


def test_a_row_that_is_too_large_is_reported(at):
    data = b"one\ntwo\n" + b"x" * (17 << 20) + b"\nfour\n"
    error = run("produce", at, data=data, status=1)[1]
    assert "row 3 cannot be sent: " in error and error.count("\n") == 1
    assert [row.value for row in rows(at)] == [b"one", b"two"]


def test_a_topic_that_is_no_text_is_reported(at):
    error = run("produce", at, "--fields", "topic,value", data=b"\xff\tx\n", status=1)[1]
    assert "row 1 of the input: a topic is text in UTF-8, got b'\\xff'" in error


@pytest.mark.parametrize("name", ["quoted", "hex", "json", "msgpack", "length"])
def test_rows_are_copied_between_logs(collector, tmp_path, name):
    given = [
        {"value": EVERY_BYTE, "topic": "t", "key": b"\xff"},
        {"value": b"", "topic": "u", "key": b"k"},
    ]
    collector.append(given)
    with pipeline.Collector(tmp_path / "copy") as copy:
        fields = () if name == "json" else ("--fields", "topic,key,value")
        with (
            Command("tail", collector.endpoint, "--format", name, *fields) as tail,
            Command(
                "produce", copy.endpoint, "--format", name, *fields, stdin=tail.process.stdout
            ) as produce,
        ):
            assert produce.process.wait(PATIENCE) == tail.process.wait(PATIENCE) == 0
        copied = [{"value": r.value, "topic": r.topic, "key": r.key} for r in rows(copy.endpoint)]
        assert copied == given


def test_json_keeps_everything(collector, tmp_path):
    when = datetime(2020, 1, 31, 12, 0, 0, 5, tzinfo=UTC)
    headers = [("n", b"1"), ("n", b"\xff")]
    collector.append([{"value": b"v", "headers": headers, "timestamp": when}])
    (line,) = run("tail", collector.endpoint, "--json")[0].splitlines()
    shown = json.loads(line)
    assert shown.pop("headers") == [["n", "1"], ["n", {"base64": "/w=="}]]
    assert shown == {
        "offset": 0,
        "timestamp": "2020-01-31T12:00:00.000005+00:00",
        "topic": None,
        "key": None,
        "value": "v",
        "producer": None,
        "seq": None,
    }
    with pipeline.Collector(tmp_path / "copy") as copy:
        run("produce", copy.endpoint, "--json", data=line + b'\n"text"\n')
        one, two = rows(copy.endpoint)
        assert (one.timestamp, list(one.headers), two.value) == (when, headers, b"text")


def test_a_producer_that_is_interrupted_writes_what_it_has(at):
    with Command("produce", at) as produce, pipeline.Client(at) as client:
        produce.write(b"one\n")
        assert next(client.follow()).value == b"one"
        produce.process.send_signal(signal.SIGINT)
        assert produce.finish(-signal.SIGINT) == (b"", "")


def test_a_spool_keeps_rows_while_the_collector_is_away(directory, tmp_path):
    with process(directory / "log") as collector:
        collector.kill()
        spool = ("--name", "me", "--spool", tmp_path / "spool", "--timeout", 0.2)
        run("produce", collector.endpoint, *spool, data=b"kept\n")
        collector.start()
        run("produce", collector.endpoint, *spool[:4], data=b"next\n")
        assert [row.value for row in rows(collector.endpoint)] == [b"kept", b"next"]


def test_rows_that_are_not_acknowledged_are_an_error():
    error = run("produce", "tcp://127.0.0.1:1", "--timeout", 0.1, "-D", "x", status=1)[1]
    assert "tcp://127.0.0.1:1" in error and error.count("\n") == 1


def tail(at, *arguments):
    return run("tail", at, *arguments)[0].decode().split()


def test_where_tail_begins(collector, at):
    collector.append(
        [{"value": str(n), "topic": "even" if n % 2 == 0 else "odd"} for n in range(50)]
    )
    assert tail(at) == [str(n) for n in range(40, 50)]
    assert tail(at, "-n", "2") == tail(at, "--offset", "-2") == ["48", "49"]
    assert tail(at, "-n", "0") == []
    assert tail(at, "--offset", "47") == ["47", "48", "49"]
    assert tail(at, "--offset", "earliest", "--count", "2") == ["0", "1"]
    assert tail(at, "--offset", "latest") == []
    assert tail(at, "--topic", "odd", "-n", "3") == ["45", "47", "49"]
    assert tail(at, "--topic", "odd", "--topic", "ev", "-n", "2") == ["48", "49"]
    assert tail(at, "--topic", "odd", "-n", "1000") == [str(n) for n in range(1, 50, 2)]
    assert tail(at, "--fields", "offset,topic,value", "-n", "1") == [
        "49",
        "odd",
        "49",
    ]
    assert len(tail(at, "--since", "1h")) == 50
    later = datetime.now() + timedelta(hours=1)
    assert tail(at, "--since", later.isoformat()) == []


def test_tail_prints_only_rows_however_many_it_leaves_out(collector, at):
    """The last rows of a topic are searched backwards in growing steps."""
    values = [b"%d" % number for number in range(1500)]
    collector.append([{"value": value, "topic": "T"} for value in values])
    collector.append([{"value": b"", "topic": "other"}] * 1000)
    assert run("tail", at, "--topic", "T", "-n", "3")[0] == b"1497\n1498\n1499\n"


def test_tail_follows(collector, at):
    collector.append([b"old", b"older"])
    with Command("tail", at, "-n", 1, "--follow", "--count", 3) as command:
        assert command.read(6) == b"older\n"
        collector.append([b"new"])
        assert command.read(4) == b"new\n"
        collector.append([b"newer", b"too much"])
        assert command.finish()[0] == b"newer\n"


def test_tail_continues_for_a_group(collector, at):
    collector.append([b"one", b"two", b"three"])
    assert tail(at, "--group", "g", "--count", "2") == ["one", "two"]
    assert tail(at, "--group", "g") == ["three"]
    assert tail(at, "--group", "g") == []
    assert collector.groups() == {"g": 3}
    with Command("tail", at, "--group", "g", "--follow", "--count", 1) as command:
        collector.append([b"four", b"five"])
        assert command.finish()[0] == b"four\n"
    assert collector.groups() == {"g": 4}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_tail_quietly(collector, at, number):
    collector.append([b"one"])
    with Command("tail", at, "--follow") as command:
        assert command.read(4) == b"one\n"
        command.process.send_signal(number)
        assert command.finish(-number) == (b"", "")


def test_tail_ends_quietly_when_its_reader_ends(collector, at):
    collector.append([b"one"])
    with Command("tail", at, "--follow") as command:
        assert command.read(4) == b"one\n"
        command.process.stdout.close()
        assert command.process.wait(PATIENCE) == -signal.SIGPIPE
        assert command.process.stderr.read() == b""


def test_tail_waits_for_a_collector_that_was_killed(directory):
    with process(directory / "log") as collector:
        run("produce", collector.endpoint, data=b"one\n")
        follow = ("--follow", "--count", 2, "--timeout", 0.5, "--group", "g")
        with Command("tail", collector.endpoint, *follow) as command:
            assert command.read(4) == b"one\n"
            collector.kill()
            assert b"did not answer for 0.5 s" in command.process.stderr.readline()
            collector.start()
            run("produce", collector.endpoint, data=b"two\n")
            assert command.finish() == (b"two\n", "")


class Relay:
    """Passes all answers of a collector, and a given number of requests."""

    def __init__(self, zmq, context, endpoint, at):
        self.endpoint, self._at, self._zmq, self._context = endpoint, at, zmq, context
        self._front, self._backs = context.socket(zmq.ROUTER), {}
        self._front.bind(endpoint)

    def run(self, command, requests, *, until_it_complains=False):
        """Drops the requests after these, until the command ends or prints an error."""
        poller = self._zmq.Poller()
        for socket in (self._front, *self._backs.values()):
            poller.register(socket, self._zmq.POLLIN)
        errors = command.process.stderr
        poller.register(errors, self._zmq.POLLIN)
        while command.process.poll() is None:
            ready = dict(poller.poll(20))
            if errors.fileno() in ready and until_it_complains:
                return
            if self._front in ready:
                name, *request = self._front.recv_multipart()
                if requests > 0:
                    requests -= 1
                    if name not in self._backs:
                        self._backs[name] = self._context.socket(self._zmq.DEALER)
                        self._backs[name].connect(self._at)
                        poller.register(self._backs[name], self._zmq.POLLIN)
                    self._backs[name].send_multipart(request)
            for name, back in self._backs.items():
                if back in ready:
                    self._front.send_multipart([name, *back.recv_multipart()])


@pytest.mark.parametrize("answered", range(8))
def test_tail_outlasts_silence_after_any_answer(zmq, context, directory, collector, at, answered):
    collector.append([b"one"])
    relay = Relay(zmq, context, f"ipc://{directory}/relay", at)
    follow = ("--follow", "--count", 2, "--timeout", 0.5, "--group", "g")
    with Command("tail", relay.endpoint, *follow) as command:
        relay.run(command, answered, until_it_complains=True)
        assert b"did not answer for 0.5 s" in command.process.stderr.readline()
        has_begun = answered >= 3  # the log, the position of the group, the rows
        if has_begun:
            collector.append([b"two"])
            relay.run(command, 1000)
        assert command.finish(0 if has_begun else 1) == (b"one\ntwo\n" if has_begun else b"", "")


@pytest.mark.parametrize("name", ["lag", "check", "topics", "groups"])
def test_signals_end_questions_quietly(zmq, context, directory, name):
    with context.socket(zmq.ROUTER) as silent:
        silent.bind(f"ipc://{directory}/silent")
        with Command(name, f"ipc://{directory}/silent") as command:
            silent.recv_multipart()
            command.process.send_signal(signal.SIGINT)
            assert command.finish(-signal.SIGINT) == (b"", "")


def test_output_that_cannot_be_written(at):
    reader, writer = os.pipe()
    os.close(reader)
    with Command("topics", at, stdout=writer) as command:
        os.close(writer)
        assert command.finish(-signal.SIGPIPE) == (b"", "")
    with open("/dev/full", "wb") as full, Command("topics", at, stdout=full) as command:
        error = command.finish(1)[1]
        assert error.endswith("No space left on device\n") and error.count("\n") == 1


def test_topics(collector, at):
    collector.append([{"value": b"abc", "topic": "a b"}, {"value": b"x", "topic": "a b"}, b"yy"])
    lines = run("topics", at)[0].decode().splitlines()
    assert lines == ["rows  bytes  topic", "   2      4  a b", "   1      2  (none)"]
    assert json.loads(run("topics", at, "--json")[0])["topics"][0] == {
        "topic": "a b",
        "rows": 2,
        "bytes": 4,
    }


def test_lag(collector, at):
    collector.append([b"x"] * 5)
    with pipeline.Client(at) as client:
        client.commit("slow", 1)
        client.commit("quick", 5)
    text = run("lag", at)[0].decode()
    assert {tuple(line.split()) for line in text.splitlines()} == {
        ("lag", "offset", "group"),
        ("4", "1", "slow"),
        ("0", "5", "quick"),
    }
    assert run("lag", at, "--group", "quick", "--max", 0)[0].split()[-1] == b"quick"
    assert "slow has not read 4 rows" in run("lag", at, "--max", 3, status=1)[1]
    assert "there is no group 'other'" in run("lag", at, "--group", "other", status=1)[1]
    shown = json.loads(run("lag", at, "--json")[0])
    assert (shown["earliest"], shown["latest"]) == (0, 5)
    assert shown["groups"]["slow"] == {"offset": 1, "lag": 4, "missed": 0}


@pytest.fixture
def trimmed(tmp_path):
    """A collector whose retention removed rows that a group had not read, and its bounds."""
    small = {"segment_bytes": 4096, "retention_bytes": 8192}
    with pipeline.Collector(tmp_path / "trimmed", **small) as collector:
        collector.append([bytes(1000)] * 5)
        with pipeline.Client(collector.endpoint) as client:
            client.commit("slow", 1)
            for _ in range(50):
                collector.append([bytes(1000)])
            client.commit("quick", 55)
            eventually(lambda: client.info().bytes <= small["retention_bytes"])
            info = client.info()
            yield collector, info.earliest, info.latest


def test_the_lag_has_only_rows_that_the_log_has(trimmed):
    collector, earliest, latest = trimmed
    at = collector.endpoint
    text, error = run("lag", at)
    assert [str(latest - earliest), "1", "slow"] in [
        line.split() for line in text.decode().splitlines()
    ]
    assert error == (
        f"zeroxide: slow has missed {earliest - 1} rows: retention removed them from the log before"
        " the group had read them\n"
    )
    shown = json.loads(run("lag", at, "--json")[0])
    assert shown["groups"] == {
        "slow": {"offset": 1, "lag": latest - earliest, "missed": earliest - 1},
        "quick": {"offset": 55, "lag": 0, "missed": 0},
    }
    # An alert for a large lag must not stop because retention has made it smaller.
    assert "slow has missed" in run("lag", at, "--max", 1000, status=1)[1]
    assert run("lag", at, "--max", 1000, "--group", "quick")[1] == ""
    facts = json.loads(run("check", at, "--max-lag", 1000, "--json", status=1)[0])
    assert [problem[:21] for problem in facts["problems"]] == ["group slow has missed"]
    run("check", at)


def test_rows_that_a_group_has_missed_are_shown_wherever_its_lag_is(trimmed):
    from zeroxide.collector.metrics import render
    from zeroxide.metrics import _text

    collector, earliest, latest = trimmed
    stats = collector.stats()
    own, named = render(stats), _text.render([], {"tcp://c:1": stats}, is_open=True)
    for name, slow in (("lag", latest - earliest), ("missed", earliest - 1)):
        name = f"zeroxide_collector_group_{name}_rows"
        assert f'{name}{{group="slow"}} {slow}' in own
        assert f'{name}{{group="quick"}} 0' in own
        assert f'{name}{{endpoint="tcp://c:1",group="slow"}} {slow}' in named
    table = run("top", collector.endpoint, "--count", 1)[0].decode()
    assert f"{latest - earliest} (missed {earliest - 1})" in table
    [found] = json.loads(run("top", collector.endpoint, "--count", 1, "--json")[0])["collectors"]
    assert found["groups"]["slow"]["missed"] == earliest - 1


def test_of_many_groups_those_furthest_behind_are_listed(collector, at):
    collector.append([b"x"] * 5)
    with pipeline.Client(at) as client:
        for number in range(1000):
            client.commit(f"group {number}", 1)
        client.commit("ahead", 5)
        assert len(client.groups()) == 1000 and client.committed("ahead") == 5
        assert client.stats()["groups_unlisted"] == 1
    for name in ("lag", "groups"):
        text, error = run(name, at)
        assert b"ahead" not in text and b"group 999" in text
        assert "1 group not listed, not further behind" in error
    assert json.loads(run("lag", at, "--json")[0])["unlisted"] == 1
    assert json.loads(run("lag", at, "--json", "--group", "ahead")[0])["unlisted"] == 0
    assert run("lag", at, "--group", "ahead")[0].split()[-3:] == [b"0", b"5", b"ahead"]


def test_the_lag_of_a_group_that_has_just_read_more_is_not_negative(monkeypatch, capsys):
    from zeroxide.cli import lag

    class Client:
        def __init__(self):
            # A group that read 7 rows after the collector had counted 5.
            self.stats = lambda: {
                "earliest": 0,
                "durable": 5,
                "groups": {},
                "groups_unlisted": 1,
            }
            self.committed = {"quick": 7}.get

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = lambda self, *_: None  # noqa: E731

    monkeypatch.setattr(lag, "make_client", lambda options: Client())
    options = argparse.Namespace(group=["quick"], json=False, max=None)
    assert lag.run(options) == 0
    assert capsys.readouterr().out.split()[-3:] == ["0", "7", "quick"]


def test_check(collector, at):
    assert "no rows" in run("check", at, "--max-silence", 60, status=1)[0].decode()
    collector.append([b"x"] * 5)
    assert run("check", at, "--max-silence", 600)[0].startswith(b"healthy: ")
    with pipeline.Client(at) as client:
        client.commit("slow", 1)
    run("check", at, "--max-lag", 4)
    assert b"group slow has not read 4 rows" in run("check", at, "--max-lag", 3, status=1)[0]
    facts = json.loads(run("check", at, "--json")[0])
    assert facts["healthy"] and facts["latest"] == 5 and facts["problems"] == []
    late = json.loads(run("check", at, "--max-silence", 0, "--json", status=1)[0])
    assert not late["healthy"]


def test_check_of_a_collector_that_does_not_answer(directory):
    with process(directory / "log") as collector:
        run("check", collector.endpoint)
        collector.stop_for_now()
        output = run("check", collector.endpoint, "--timeout", 0.2, status=1)[0]
        assert b"not healthy" in output and b"did not answer" in output
        collector.go_on()
        run("check", collector.endpoint)
        collector.kill()
        run("check", collector.endpoint, "--timeout", 0.2, status=1)


@pytest.fixture
def secure(tmp_path):
    for name in ("collector", "alice", "probe"):
        run("keygen", "--name", name, "--directory", tmp_path / name)

    def keys(name):
        mine = ("--key", tmp_path / name / f"{name}.key_secret")
        return (*mine, "--server-key", tmp_path / "collector" / "collector.key")

    return keys


def test_keys(secure, tmp_path):
    from zeroxide.auth import load_certificate

    secret = load_certificate(tmp_path / "collector" / "collector.key_secret")[1]
    allowed = {
        load_certificate(tmp_path / name / f"{name}.key")[0]: name for name in ("alice", "probe")
    }
    roles = {"alice": ["produce", "fetch", "commit", "admin"], "probe": ["fetch"]}
    with pipeline.Collector(
        tmp_path / "log", secret_key=secret, allow=allowed, roles=roles
    ) as collector:
        at, alice, probe = collector.endpoint, secure("alice"), secure("probe")
        run("produce", at, *alice, "--topic", "t", data=b"secret\n")
        assert run("tail", at, *alice, "--group", "g")[0] == b"secret\n"
        assert b"t" in run("topics", at, *alice)[0]
        assert run("lag", at, *alice)[0].split()[-3:] == [b"0", b"1", b"g"]
        run("check", at, *alice, "--max-lag", 0)
        run("check", at, *probe)
        assert b"admin" in run("check", at, *probe, "--max-lag", 0, status=1)[0]
        assert "admin" in run("topics", at, *probe, status=1)[1]
        run("check", at, "--timeout", 0.2, status=1)
    assert "--key requires --server-key" in run("tail", "ipc://x", *alice[:2], status=2)[1]


MISTAKES = {
    "produce": "required: ENDPOINT",
    "produce x --fields value,body": "expected value, key, topic or timestamp",
    "produce x --fields key,key": "each at most once",
    "produce x --header a": "expected NAME=VALUE",
    "produce x --header \udcff=a": "--header: expected text in UTF-8",
    "produce x --topic \udcff": "--topic: expected text in UTF-8",
    "produce x --separator=": "--separator: expected at least one character",
    "produce x --name=": "--name: expected a name of 1 to 255 bytes",
    "tail x --timeout 0": "--timeout: expected a number of seconds, 0.001 or more",
    f"tail x --offset {10**20}": "expected an offset, earliest",
    "tail x --offset soon": "expected an offset, earliest, latest, or -N",
    "tail x --since soon": "expected an age such as 10m",
    "tail x --since 1h -n 3": "not allowed with argument",
    "tail x --fields offset,size": "expected value, key, topic, timestamp, offset, producer or seq",
    "tail x --count 0": "--count: expected a whole number of rows, 1 or more",
    "lag x --max few": "--max: expected a whole number of rows",
    "check x --max-silence -1": "--max-silence: expected a number of seconds",
    "verify": "required: FOLDER",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_have_the_code_2(line):
    error = run(*line.split(), status=2)[1]
    assert MISTAKES[line] in error and error.count("\n") == 1
