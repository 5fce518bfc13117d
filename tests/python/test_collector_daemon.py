"""The command `zeroxide collector`: its promises when it is killed, and when the disk fails."""

import contextlib
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading

import pytest
from support import PATIENCE, eventually, lasting_endpoint

pytestmark = pytest.mark.zeroxide_only

collectors = pytest.importorskip("zeroxide.pipeline")
pa = pytest.importorskip("pyarrow")


class Daemon:
    """A running `zeroxide collector`, with its endpoints by name."""

    def __init__(self, directory, *arguments, prefix=(), environment=None, bind=None):
        command = [*prefix, sys.executable, "-m", "zeroxide", "collector", "--dir", directory]
        command += ["--bind", bind or lasting_endpoint(), "--log-format", "json", *arguments]
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self.events = []
        self.listening = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        assert self.listening.wait(60), "it does not start"
        (start,) = [event for event in self.events if event["event"] == "listening"] or [None]
        assert start, self.events
        self.start = start
        self.endpoint = start["bind"][0]
        self.http = start.get("http", [""])[0].removeprefix("http://")

    def _read(self):
        for line in self.process.stderr:
            try:
                self.events.append(json.loads(line))
            except ValueError:
                self.events.append({"event": "noise", "text": line})
            if self.events[-1]["event"] == "listening":
                self.listening.set()
        self.listening.set()

    def saw(self, event):
        return [one for one in self.events if one["event"] == event]

    def kill(self):
        """Kills the process, as a crash would."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        assert self.process.wait(PATIENCE) == 0, self.events
        self.reader.join(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Under strace, the collector is another process, which would survive strace.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.start["pid"], signal.SIGKILL)
        self.process.kill()
        self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        self.process.stderr.close()

    def client(self):
        return collectors.Client(self.endpoint, timeout_s=PATIENCE)

    def values(self):
        client = self.client()
        info = client.info()
        batches = client.fetch(info.earliest, info.latest)
        return [value for batch in batches for value in batch["value"].to_pylist()]

    def request(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.http, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()


def sent(producer, first, count):
    for number in range(first, first + count):
        producer.send(b"%d" % number)


def whole(count):
    return [b"%d" % number for number in range(count)]


def test_a_killed_collector_has_everything_that_it_acknowledged(zmq, directory):
    with Daemon(directory / "log") as daemon:
        endpoint, log_id = daemon.endpoint, daemon.start["log_id"]
        with zmq.Producer(endpoint, name="p") as producer:
            sent(producer, 0, 1000)
            producer.flush(PATIENCE)
            daemon.kill()
            # No collector runs yet, so the producer keeps this row.
            sent(producer, 1000, 1000)
            with Daemon(directory / "log", bind=endpoint) as again:
                assert again.start["log_id"] == log_id
                producer.flush(PATIENCE)
                again.kill()
                with Daemon(directory / "log", bind=endpoint) as last:
                    sent(producer, 2000, 10)
                    producer.flush(PATIENCE)
                    assert last.values() == whole(2010)
                    last.end()


def test_killed_again_and_again_under_load(zmq, directory):
    stop = threading.Event()
    count = 0

    def load():
        nonlocal count
        while not stop.is_set():
            sent(producer, count, 100)
            count += 100
            # No faster than the rows arrive, so that there is load during each kill.
            if count % 1000 == 0:
                producer.flush(PATIENCE)

    with Daemon(directory / "log") as daemon:
        endpoint = daemon.endpoint
        with zmq.Producer(endpoint, name="p", batch_rows=50) as producer:
            thread = threading.Thread(target=load)
            thread.start()
            try:
                for _ in range(3):
                    eventually(lambda daemon=daemon: daemon.client().stats()["rows"] > 500)
                    daemon.kill()
                    daemon = Daemon(directory / "log", bind=endpoint)
            finally:
                stop.set()
            with daemon:
                thread.join(PATIENCE)
                producer.flush(PATIENCE)
                assert daemon.values() == whole(count)


def test_staged_rows_survive_a_kill_and_are_published_once(directory):
    def batch(*values):
        return pa.record_batch({"value": pa.array(values, pa.binary())})

    with Daemon(directory / "log") as daemon:
        endpoint, client = daemon.endpoint, daemon.client()
        client.stage("q", 3, 0, 10, 0, batch(b"a", b"b"))
        client.stage("q", 3, 0, 10, 1, batch(b"c"))
        client.stage("q", 3, 1, 11, 0, batch(b"from an attempt that lost"))
        client.stage("q", 3, 1, 12, 0, batch(b"d"))
        daemon.kill()
        with Daemon(directory / "log", bind=endpoint) as again:
            assert again.client().info().latest == 0
            won = [(0, 10, 2), (1, 12, 1)]
            assert again.client().publish("q", 3, won) == (0, 4, False)
            again.kill()
            with Daemon(directory / "log", bind=endpoint) as last:
                assert last.client().publish("q", 3, won) == (0, 4, True)
                assert last.client().publish("q", 2, won).already
                assert last.values() == [b"a", b"b", b"c", b"d"]
                assert last.client().stats()["staged_batches"] == 0
                with pytest.raises(collectors.Refused, match="not staged") as refused:
                    last.client().publish("q", 4, won)
                assert refused.value.code == "not-staged"


def test_a_full_disk_holds_producers_back_and_loses_nothing(zmq, directory):
    with Daemon(
        directory / "log", "--http", "127.0.0.1:*", "--pull", "tcp://127.0.0.1:*"
    ) as daemon:
        pid = daemon.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (200_000, hard))
        context = zmq.Context()
        with (
            zmq.Producer(daemon.endpoint, name="p", batch_rows=100) as producer,
            context.socket(zmq.PUSH) as push,
        ):
            push.connect(daemon.start["pull"][0])
            for number in range(400):
                producer.send(b"%d " % number + b"x" * 1000)
            eventually(lambda: daemon.saw("cannot_write"))
            assert daemon.saw("cannot_write")[0]["state"] == "full"
            assert "no room" in daemon.saw("cannot_write")[0]["reason"]
            status, body = daemon.request("GET", "/health")
            assert (status, json.loads(body)["state"]) == (503, "full")
            status, body = daemon.request("POST", "/pub", b"y" * 1000)
            assert (status, json.loads(body)["code"]) == (503, "full")
            assert b"zeroxide_collector_writable 0" in daemon.request("GET", "/metrics")[1]
            eventually(
                lambda: next(iter(producer.stats()["collectors"].values()))["obstacle"] == "full"
            )
            # Rows in the log can be read, and plain peers wait like producers.
            some = daemon.values()
            assert [int(value.split()[0]) for value in some] == list(range(len(some)))
            assert 0 < len(some) < 400
            for number in range(20):
                push.send(b"plain %d" % number)
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
            producer.flush(PATIENCE)
            eventually(lambda: daemon.client().info().latest == 420)
            values = daemon.values()
            own = [value for value in values if not value.startswith(b"plain")]
            assert [int(value.split()[0]) for value in own] == list(range(400))
            assert len(values) == 420
            eventually(lambda: daemon.saw("writing_again"))
            assert daemon.request("GET", "/health")[0] == 200
        context.term()
        daemon.end()


def strace(*injections):
    """Runs a program whose system calls fail as given."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("needs strace (apt install strace)")
    calls = ",".join(injection.partition(":")[0] for injection in injections)
    command = [program, "-f", "-qq", "-o", os.devnull, "-e", f"trace={calls}"]
    for injection in injections:
        command += ["-e", f"inject={injection}"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace may not trace here")
    return command


@pytest.mark.parametrize("injection", ["fdatasync:error=EIO:when=3", "pwrite64:error=EIO:when=9"])
def test_a_failing_disk_loses_nothing_that_was_acknowledged(zmq, directory, injection):
    prefix = strace(injection)
    with Daemon(directory / "log", prefix=prefix) as daemon:
        with zmq.Producer(daemon.endpoint, name="p", batch_rows=10) as producer:
            for first in range(0, 300, 10):
                sent(producer, first, 10)
                producer.flush(PATIENCE)
        stats = daemon.client().stats()
        assert stats["failures"] >= 1 and stats["recoveries"] >= 1, stats
        assert daemon.values() == whole(300)


def test_a_folder_that_becomes_read_only(zmq, directory):
    prefix = strace("pwrite64:error=EROFS:when=9..12")
    with Daemon(directory / "log", prefix=prefix) as daemon:
        with zmq.Producer(daemon.endpoint, name="p", batch_rows=10) as producer:
            for first in range(0, 200, 10):
                sent(producer, first, 10)
                producer.flush(PATIENCE)
        assert daemon.client().stats()["refused"]["read-only"] >= 1
        assert daemon.values() == whole(200)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_normal_end_writes_all_received_rows(zmq, directory, number):
    with Daemon(directory / "log", "--flush-ms", "3600000") as daemon:
        with zmq.Producer(daemon.endpoint, name="p") as producer:
            sent(producer, 0, 10)
            eventually(lambda: daemon.client().stats()["rows"] == 10)
            daemon.end(number)
            producer.flush(PATIENCE)
        assert daemon.saw("stopping")
    with Daemon(directory / "log") as daemon:
        assert daemon.values() == whole(10)


def test_http(directory):
    with Daemon(directory / "log", "--http", "127.0.0.1:*", "--http-body-bytes", "1K") as daemon:
        status, body = daemon.request("POST", "/pub?topic=t%2F1&key=k", b"one")
        assert (status, json.loads(body)) == (200, {"first": 0, "end": 1})
        assert json.loads(daemon.request("POST", "/mpub", b"two\n\nthree\n")[1])["end"] == 3
        parts = [b"fo\nur", b""]
        binary = struct.pack(">I", 2) + b"".join(struct.pack(">I", len(p)) + p for p in parts)
        status, body = daemon.request("POST", "/mpub?binary=true&topic=b", binary)
        assert (status, json.loads(body)) == (200, {"first": 3, "end": 5})
        (batch, *_), rows = list(daemon.client().fetch(0, 1)), daemon.values()
        assert rows == [b"one", b"two", b"three", b"fo\nur", b""]
        assert (batch["topic"][0].as_py(), batch["key"][0].as_py()) == ("t/1", b"k")

        for method, path, body, expected in [
            ("POST", "/pub", b"x" * 2000, 413),
            ("POST", "/mpub?binary=true", b"\xff" * 12, 400),
            ("POST", "/mpub?binary=true", binary + b"!", 400),
            ("POST", "/mpub?binary=true", b"", 400),
            ("POST", "/pub?topic=%ff", b"x", 400),
            ("POST", "/nowhere", b"x", 404),
            ("GET", "/pub", None, 405),
            ("POST", "/stats", b"", 405),
            ("PUT", "/pub", b"", 501),
        ]:
            status, answer = daemon.request(method, path, body)
            assert status == expected, (method, path, answer)
        assert daemon.request("POST", "/pub", iter([b"chunked"]))[0] == 411
        status, page = daemon.request("GET", "/metrics")
        assert status == 200 and b"zeroxide_collector_local_rows_total 5" in page
        assert json.loads(daemon.request("GET", "/stats")[1])["durable"] == 5
        assert daemon.request("GET", "/health") == (200, b'{"state": "fine", "reason": ""}\n')

        # Garbage and half a request do not affect other clients.
        host, port = daemon.http.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as half:
            half.sendall(b"POST /pub HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf")
            assert daemon.request("GET", "/health")[0] == 200
        with socket.create_connection((host, int(port))) as noise:
            noise.sendall(os.urandom(1000) + b"\r\n\r\n")
        assert daemon.request("POST", "/pub", b"last")[0] == 200
        assert daemon.values()[-1] == b"last"


def test_http_with_a_token(directory):
    (directory / "token").write_text("secret\n")
    with Daemon(
        directory / "log", "--http", "127.0.0.1:*", "--http-token", directory / "token"
    ) as daemon:
        assert daemon.request("POST", "/pub", b"x")[0] == 401
        assert daemon.request("POST", "/pub", b"x", Authorization="Bearer wrong")[0] == 401
        assert daemon.request("POST", "/pub", b"x", Authorization="Bearer secret")[0] == 200
        assert daemon.request("GET", "/stats")[0] == 401
        assert daemon.request("GET", "/stats", Authorization="Bearer secret")[0] == 200
        assert daemon.request("GET", "/health")[0] == 200


def test_an_open_network_is_stated(directory):
    arguments = ["--http", "0.0.0.0:*", "--http-host", "collector"]
    environment = {"ZEROXIDE_COLLECTOR_OPEN_TO_NETWORK": "true"}
    with Daemon(
        directory / "log", *arguments, bind="tcp://0.0.0.0:*", environment=environment
    ) as daemon:
        assert daemon.request("POST", "/pub", b"x", Host="collector")[0] == 200
        assert daemon.saw("open_to_network")


def test_options_from_the_environment(directory):
    environment = {
        "ZEROXIDE_COLLECTOR_RETENTION_BYTES": "1G",
        "ZEROXIDE_COLLECTOR_PULL": "tcp://127.0.0.1:*, tcp://127.0.0.1:*",
        "ZEROXIDE_COLLECTOR_ADVERTISE": "tcp://collector.example.org:5555",
    }
    with Daemon(directory / "log", environment=environment) as daemon:
        assert len(daemon.start["pull"]) == 2
        assert daemon.client().info().advertise == "tcp://collector.example.org:5555"


def test_keys_by_file_and_by_environment(zmq, directory):
    from zeroxide.auth import create_certificates

    (directory / "clients").mkdir()
    _own, own_secret = create_certificates(directory, "collector")
    alice, alice_secret = create_certificates(directory, "alice")
    shutil.copy(alice, directory / "clients")
    load = zmq.auth.load_certificate
    server, secret = load(own_secret)

    def ask(daemon, private, **options):
        return collectors.Client(
            daemon.endpoint, server_key=server, secret_key=private, **options
        ).info()

    for arguments, environment in [
        (["--key", own_secret], {}),
        ([], {"ZEROXIDE_COLLECTOR_SECRET_KEY": secret.decode()}),
    ]:
        allow = ["--allow", directory / "clients"]
        with Daemon(directory / "log", *allow, *arguments, environment=environment) as daemon:
            private = load(alice_secret)[1]
            assert ask(daemon, private).latest == 0
            bob, bob_secret = create_certificates(directory, "bob")
            private = load(bob_secret)[1]
            with pytest.raises(collectors.CollectorError):
                ask(daemon, private, timeout=1.0, retries=0)
            shutil.copy(bob, directory / "clients")
            daemon.process.send_signal(signal.SIGHUP)
            eventually(lambda daemon=daemon: daemon.saw("keys_read"))
            assert ask(daemon, private).latest == 0
            os.remove(directory / "clients" / os.path.basename(bob))


def test_roles_by_file(zmq, directory):
    from zeroxide.auth import create_certificates

    (directory / "clients").mkdir()
    _own, own_secret = create_certificates(directory, "collector")
    alice, alice_secret = create_certificates(directory, "alice")
    shutil.copy(alice, directory / "clients")
    load = zmq.auth.load_certificate
    keys = {"server_key": load(own_secret)[0], "secret_key": load(alice_secret)[1]}
    (directory / "roles.toml").write_text('[alice]\nroles = ["fetch"]\nnames = []\n')
    arguments = ["--key", own_secret, "--allow", directory / "clients"]
    with Daemon(directory / "log", *arguments, "--roles", directory / "roles.toml") as daemon:
        client = collectors.Client(daemon.endpoint, timeout_s=PATIENCE, **keys)
        assert client.info().latest == 0
        with pytest.raises(collectors.Refused, match=r"\(alice\) does not have the role commit"):
            client.commit("g", 0)


def test_systemd_is_notified(directory):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(directory / "notify"))
        notify.settimeout(PATIENCE)
        environment = {"NOTIFY_SOCKET": str(directory / "notify")}
        with Daemon(directory / "log", environment=environment) as daemon:
            assert notify.recv(100) == b"READY=1"
            daemon.end()
            assert notify.recv(100) == b"STOPPING=1"


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["--bind", "tcp://127.0.0.1:*"], 2, "--dir is required"),
        (["--dir", "{}", "--retention-bytes", "lots"], 2, "--retention-bytes"),
        (["--dir", "{}", "--framing", "odd"], 2, "--framing"),
        (["--dir", "{}", "--allow", "*"], 2, "--key"),
        (["--dir", "{}", "--bind", "nowhere"], 1, "nowhere"),
        (["--dir", "/proc/nowhere"], 1, "/proc/nowhere"),
        (["--dir", "{}", "--roles", "/dev/null"], 2, "--key"),
        (["--dir", "{}", "--bind", "tcp://*:*"], 1, "--open-to-network"),
        (["--dir", "{}", "--bind", "tcp://*:*"], 1, "--key and --allow"),
        (["--dir", "{}", "--pull", "tcp://*:*"], 1, "--open-to-network"),
        (["--dir", "{}", "--http", "0.0.0.0:*"], 1, "--http-token"),
        (["--dir", "{}", "--archive", "s4://bucket"], 2, "--archive: an archive is a folder"),
        (["--dir", "{}", "--archive", "{}/../log"], 2, "--archive: the archive"),
    ],
)
def test_mistakes(directory, arguments, status, text):
    arguments = [argument.format(directory / "log") for argument in arguments]
    result = subprocess.run(
        [sys.executable, "-m", "zeroxide.collector", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, text in result.stderr) == (status, True), result.stderr
    assert "Traceback" not in result.stderr


def test_an_address_for_http_that_is_taken(directory):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        command = [sys.executable, "-m", "zeroxide", "collector", "--dir", directory / "log"]
        result = subprocess.run(
            [*command, "--bind", "tcp://127.0.0.1:*", "--http", where],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert result.returncode == 1
    assert f"cannot listen for HTTP at {where}: Address already in use" in result.stderr


def test_two_collectors_cannot_share_a_folder(directory):
    with Daemon(directory / "log"):
        result = subprocess.run(
            [
                sys.executable,
                "-m",
                "zeroxide",
                "collector",
                "--dir",
                directory / "log",
                "--bind",
                "tcp://127.0.0.1:*",
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert result.returncode == 1 and "in use by process" in result.stderr


def test_a_clock_far_ahead_is_logged_once(directory, monkeypatch, caplog):
    from zeroxide.collector import daemon

    stop, ahead = threading.Event(), iter([0, 60, 3600, 3601, 90_000])

    class Collector:
        running = True

        def stats(self):
            seconds = next(ahead, None)
            if seconds is None:
                stop.set()
            return {**stats, "clock_ahead_seconds": seconds or 0}

    with collectors.Collector(directory / "log") as collector:
        stats = collector.stats()
    monkeypatch.setattr(daemon, "_LOOK_EVERY", 0)
    with caplog.at_level("INFO", "zeroxide.collector"):
        assert daemon._watch(Collector(), stop, threading.Event(), None) == 0
    assert [record.getMessage() for record in caplog.records] == ["clock_ahead", "stopping"]
    assert caplog.records[0].fields["seconds"] == 3601


def test_text_for_people(directory):
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "zeroxide.collector",
            "--dir",
            directory / "log",
            "--bind",
            "tcp://127.0.0.1:*",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline().startswith("bind is bound to tcp://127.0.0.1:")
            assert "info listening bind=tcp://127.0.0.1:" in process.stderr.readline()
        finally:
            process.terminate()
