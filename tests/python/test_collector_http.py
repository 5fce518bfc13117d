"""A collector over HTTP, and malicious or slow clients."""

import contextlib
import errno
import json
import os
import re
import socket
import struct
import threading
import time
from urllib.parse import quote

import pytest
from support import PATIENCE, Background, eventually

pytestmark = pytest.mark.zeroxide_only

collectors = pytest.importorskip("zeroxide.pipeline")
http = pytest.importorskip("zeroxide.collector.http")

PLAIN = {"Content-Type": "application/octet-stream"}


class Served:
    """A collector with HTTP, in this process."""

    def __init__(self, directory, collector=None, **options):
        self.is_own = collector is None
        self.collector = collector or collectors.Collector(directory / "log")
        self.server = http.HttpServer(self.collector, ("127.0.0.1", 0), **options)
        self.server.start()
        host, port = self.server.endpoint.removeprefix("http://").split(":")
        self.address = (host, int(port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()
        if self.is_own:
            self.collector.close()

    def connect(self):
        return socket.create_connection(self.address, timeout=PATIENCE)

    def say(self, *pieces):
        """Sends these bytes, and returns all bytes received until the other side closes."""
        with self.connect() as client:
            for piece in pieces:
                client.sendall(piece)
            client.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: client.recv(65536), b""))

    def ask(self, method, path, body=b"", **fields):
        """Makes a request on a new connection; returns the status and the body of the answer."""
        fields = {"Host": "127.0.0.1", "Connection": "close"} | {
            name.replace("_", "-"): value for name, value in fields.items()
        }
        if body or method == "POST":
            fields.setdefault("Content-Length", len(body))
        lines = [f"{method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in fields.items()), "", ""]
        answer = self.say("\r\n".join(lines).encode(), body)
        head, _, rest = answer.partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]), rest

    def values(self):
        client = collectors.Client(self.collector.endpoint, timeout_s=PATIENCE)
        info = client.info()
        batches = client.fetch(info.earliest, info.latest)
        return [value for batch in batches for value in batch["value"].to_pylist()]


@pytest.fixture
def served(directory):
    with Served(directory) as served:
        yield served


def statuses(answers):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", answers)]


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\nContent-Length: 0\r\n\r\nabc",
        b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3, 3\r\n\r\nabc",
        b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: +3\r\n\r\nabc",
        b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3_0\r\n\r\nabc",
        b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length : 3\r\n\r\nabc",
        b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /pub HTTP/1.0\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /pub HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        b"POST /pub HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 3\r\n\r\nabc",
        b"POST /pub HTTP/1.1\r\nHost: a b\r\nContent-Length: 3\r\n\r\nabc",
        b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\n Content-Length: 3\r\n\r\nabc",
        b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\nContent-Length: 3\r\n\r\nabc",
        b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nX: \0\r\nContent-Length: 3\r\n\r\nabc",
        b"POST  /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\nabc",
        b"POST /pub HTTP/2.0\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\nabc",
        b"POST pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\nabc",
        b"POST http:///pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\nabc",
    ],
)
def test_an_ambiguous_request_is_not_served(served, request_):
    follower = b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    answers = served.say(request_ + follower)
    assert statuses(answers) == [400], "and what follows is not a request"
    assert b"Connection: close" in answers
    assert served.values() == []


def test_a_transfer_coding_is_refused(served):
    head = "POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: {}\r\n\r\n"
    for coding, status in [("chunked", 411), ("gzip, chunked", 501), ("identity", 501)]:
        assert statuses(served.say(head.format(coding).encode() + b"3\r\nabc\r\n0\r\n\r\n")) == [
            status
        ]
    assert served.values() == []


def test_a_body_is_never_the_next_request(served):
    smuggled = b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\nabc"
    for method, path, status in [
        (b"GET", b"/live", 200),
        (b"HEAD", b"/live", 200),
        (b"GET", b"/pub", 405),
        (b"GET", b"/nowhere", 404),
        (b"POST", b"/stats", 405),
        (b"DELETE", b"/pub", 501),
    ]:
        head = b"%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n"
        answers = served.say(head % (method, path, len(smuggled)) + smuggled)
        assert statuses(answers) == [status], (method, path)
    assert served.values() == []


def test_requests_follow_each_other_on_a_connection(served):
    requests = (
        b"\r\nGET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n\r\nbody"
        b"POST http://127.0.0.1/pub?topic=t HTTP/1.1\r\nHost: else\r\nContent-Length: 3\r\n\r\none"
        b"GET /pub HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"
        b"HEAD /stats HTTP/1.1\r\nHost: localhost:1\r\n\r\n"
        b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n"
        b"Expect: 100-continue\r\n\r\ntwo"
        b"GET /live HTTP/1.0\r\n\r\n"
        b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    )
    # Requests are sent one by one, or a byte at a time.
    for pieces in [[requests], [requests[at : at + 1] for at in range(len(requests))]]:
        assert statuses(served.say(*pieces)) == [200, 200, 405, 200, 100, 200, 200]
    assert served.values() == [b"one", b"two"] * 2


def test_a_head_that_does_not_end_is_too_large(served):
    assert statuses(served.say(b"GET /live HTTP/1.1\r\nX: " + b"x" * 100_000)) == [431]
    many = b"".join(b"X%d: x\r\n" % number for number in range(200))
    assert statuses(served.say(b"GET /live HTTP/1.1\r\nHost: a\r\n" + many + b"\r\n")) == [431]


def test_pages_of_other_origins_can_do_nothing(served):
    for status, fields in [
        (200, {}),
        (200, {"Host": "localhost:8080"}),
        (200, {"Host": "[::1]:80"}),
        (421, {"Host": "rebound.example.org"}),
        (421, {"Host": "127.0.0.1.example.org"}),
        (403, {"Origin": "http://evil.example.org"}),
        (403, {"Origin": "null"}),
        (403, {"Sec-Fetch-Site": "cross-site"}),
    ]:
        assert served.ask("GET", "/stats", **fields)[0] == status, fields
        assert served.ask("POST", "/pub", b"x", **fields)[0] == status, fields
    for kind in [
        "text/plain;charset=utf-8",
        "multipart/form-data",
        "Application/x-www-form-urlencoded",
    ]:
        assert served.ask("POST", "/pub", b"x", Content_Type=kind)[0] == 415, kind
    assert served.ask("POST", "/pub", b"x", Content_Type="application/json")[0] == 200
    assert len(served.values()) == 4
    # It reveals nothing about the log, and orchestrators use it.
    assert served.ask("GET", "/live", Host="rebound.example.org")[0] == 200


def test_hosts_may_have_names(directory):
    with Served(directory, hosts=["Collector-0.example.org"]) as served:
        assert served.ask("GET", "/stats", Host="collector-0.EXAMPLE.org:80")[0] == 200
        assert served.ask("GET", "/stats", Host="collector-1.example.org")[0] == 421


def test_a_token_is_required_for_every_read_and_write(directory):
    with Served(directory, token="secret") as served:
        for method, path in [
            ("GET", "/metrics"),
            ("GET", "/stats"),
            ("HEAD", "/stats"),
            ("GET", "/rows"),
            ("POST", "/pub"),
            ("POST", "/mpub"),
        ]:
            for given in [
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": "Bearer sécret"},
            ]:
                assert served.ask(method, path, **given)[0] == 401, (path, given)
            # With the token, any host name is accepted.
            fields = {
                "Authorization": "Bearer secret",
                "Host": "collector",
                "Content_Type": "text/plain",
            }
            assert served.ask(method, path, **fields)[0] == 200, path
        assert served.ask("GET", "/health") == (200, b'{"state": "fine", "reason": ""}\n')
        assert served.ask("GET", "/live")[0] == 200


def test_a_server_that_cannot_begin_raises(directory, monkeypatch):
    def fail():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with collectors.Collector(directory / "log") as collector:
        server = http.HttpServer(collector, ("127.0.0.1", 0))
        address = server._socket.getsockname()
        with monkeypatch.context() as patch:
            patch.setattr("asyncio.events.new_event_loop", fail)
            with pytest.raises(OSError, match="Too many open files"):
                Background(server.start).result()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=PATIENCE)


def test_a_public_address_needs_a_token_or_an_option(directory):
    with collectors.Collector(directory / "log") as collector:
        for host in ["0.0.0.0", "::", "192.0.2.1"]:
            with pytest.raises(collectors.CollectorError, match="--open-to-network") as error:
                http.HttpServer(collector, (host, 0))
            assert "--http-token" in str(error.value)
        http.HttpServer(collector, ("0.0.0.0", 0), token="secret").close()
        http.HttpServer(collector, ("0.0.0.0", 0), open_to_network=True).close()


def rows(served, query=""):
    status, answer = served.ask("GET", f"/rows{query}")
    assert status == 200, answer
    return json.loads(answer)


def test_the_last_rows_can_be_seen(served):
    assert rows(served) == {"searched_from": 0, "end": 0, "rows": []}
    text = "<script>alert(1)</script>\u202e\0"
    served.collector.append([b"first", {"value": text, "topic": "a&b", "key": b"\xff\x00"}])
    with collectors.Producer(served.collector.endpoint, name="<i>p</i>") as producer:
        producer.send(b"\x80" * 1000, topic="a&b")
        producer.flush(PATIENCE)
    found = rows(served)
    assert (found["searched_from"], found["end"]) == (0, 3)
    last, second, first = found["rows"]
    assert all(re.fullmatch(r"20\d\d-[^ ]+\+00:00", row.pop("received")) for row in found["rows"])
    assert last == {
        "offset": 2,
        "topic": "a&b",
        "producer": "<i>p</i>",
        "seq": 0,
        "key": None,
        "value": {"hex": "80" * 256, "bytes": 1000, "shown": 256},
    }
    assert second["value"] == {"text": text, "bytes": 29, "shown": 29}
    assert second["key"] == {"hex": "ff00", "bytes": 2, "shown": 2}
    assert (first["topic"], first["producer"], first["seq"]) == (None, "", None)
    # The topic must be equal, not a prefix; the empty topic, too.
    topics = [("a%26b", [2, 1]), ("a", []), ("", [0])]
    for topic, offsets in topics:
        found = rows(served, f"?topic={topic}")["rows"]
        assert [row["offset"] for row in found] == offsets, topic
    # A character at the end of what is shown is left out as a whole.
    served.collector.append(["a" * 255 + "é" * 9])
    (last,) = rows(served, "?rows=1")["rows"]
    assert last["value"] == {"text": "a" * 255, "bytes": 273, "shown": 255}


def test_few_rows_are_served_at_a_time(served):
    topic = "t" * 20_000
    served.collector.append([{"value": b"v" * 1000, "topic": topic, "key": topic}] * 150)
    for query, count in [("", 20), ("?rows=0", 0), ("?rows=7", 7), ("?rows=99999999", 100)]:
        assert len(rows(served, query)["rows"]) == count
    assert len(served.ask("GET", "/rows?rows=100")[1]) < 200_000
    for wrong in ["-1", "x", "1e3", "\u0663", "9" * 5000, ""]:
        assert served.ask("GET", f"/rows?rows={quote(wrong)}")[0] == 400, wrong


def test_of_many_topics_and_producers_few_are_served(served):
    served.collector.append([{"value": b"v", "topic": f"{n}" + "\0" * 200} for n in range(3000)])
    stats = json.loads(served.ask("GET", "/stats")[1])
    assert len(stats["topics"]) == 100
    assert stats["topics_unlisted"] == {"topics": 924, "rows": 2900, "bytes": 2900}
    assert len(served.ask("GET", "/stats")[1]) < 200_000


def test_rows_that_need_a_key_need_a_token_over_http(directory):
    import zeroxide as zmq

    public, secret = zmq.curve_keypair()
    for options, is_served in [
        ({}, True),
        ({"secret_key": secret, "allow": [public]}, False),
        ({"bind": f"ipc://{directory}/collector"}, False),
    ]:
        with collectors.Collector(directory / "log", **options) as collector:
            collector.append([b"secret"])
            for token, given, status in [
                (None, {}, 200 if is_served else 403),
                ("token", {"Authorization": "Bearer token"}, 200),
            ]:
                with Served(directory, collector=collector, token=token) as served:
                    answer = served.ask("GET", "/rows", **given)
                    assert answer[0] == status, (options, token)
                    assert (b"secret" in answer[1]) is (status == 200)
                    assert status == 200 or b"--http-token" in answer[1]
                    # Requests for counters do not count as requests for rows.
                    assert served.ask("GET", "/stats", **given)[0] == 200


def test_slow_clients_do_not_block_others(served):
    with contextlib.ExitStack() as stack:
        heads = [b"GET /stats HT", b"POST /pub HTTP/1.1\r\nHost: a\r\n", b"", b"x"]
        body = b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf"
        for number in range(400):
            client = stack.enter_context(served.connect())
            client.sendall((*heads, body)[number % 5])
        # This holds for any number of clients, whichever bytes they hold back.
        for _ in range(3):
            assert served.ask("GET", "/health")[0] == 200
            assert served.ask("POST", "/pub", b"row", **PLAIN)[0] == 200
        stats = json.loads(served.ask("GET", "/stats")[1])
        assert stats["http_evicted"] >= 100 and stats["http_connections"] <= 256


def test_bodies_must_arrive_in_time(directory, monkeypatch):
    connection = pytest.importorskip("zeroxide.collector.connection")
    monkeypatch.setattr(connection, "_GRACE", 0.2)
    monkeypatch.setattr(connection, "_PATIENCE", 0.2)
    with Served(directory) as served:
        for half in [
            b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf",
            b"POST /pub HTT",
        ]:
            with served.connect() as client:
                client.sendall(half)
                assert statuses(client.recv(1000)) == [408]
                assert client.recv(1000) == b""
        assert served.ask("GET", "/live")[0] == 200


def rss(pid="self"):
    with open(f"/proc/{pid}/status") as file:
        (line,) = [line for line in file if line.startswith("VmRSS")]
    return int(line.split()[1]) << 10


def test_a_body_of_short_lines_takes_no_more_memory_than_it_has_bytes(served):
    lines = b"x\n" * (2 << 20)
    before, most, is_over = rss(), 0, threading.Event()

    def watch():
        nonlocal most
        while not is_over.wait(0.005):
            most = max(most, rss())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        status, answer = served.ask("POST", "/mpub?topic=t", lines, **PLAIN)
    finally:
        is_over.set()
        watcher.join()
    assert (status, json.loads(answer)) == (200, {"first": 0, "end": 2 << 20})
    assert most - before < 50 << 20


def test_large_bodies_are_parsed_as_they_arrive(served):
    values = [b"%d" % number * (number % 50) for number in range(100_000)]
    assert len(b"".join(values)) > 4 << 20
    lines = b"\n".join(values) + b"\n" + b"y" * (3 << 20) + b"\nlast"
    status, answer = served.ask("POST", "/mpub?key=k", lines, **PLAIN)
    expected = [*filter(None, values), b"y" * (3 << 20), b"last"]
    assert (status, json.loads(answer)) == (200, {"first": 0, "end": len(expected)})
    assert served.values() == expected
    values.insert(7, b"z" * (2 << 20))
    binary = struct.pack(">I", len(values))
    binary += b"".join(struct.pack(">I", len(value)) + value for value in values)
    status, answer = served.ask("POST", "/mpub?binary=true", binary, **PLAIN)
    assert (status, json.loads(answer)["end"]) == (200, len(expected) + len(values))
    assert served.values()[len(expected) :] == values
    assert served.ask("POST", "/mpub?binary=true", binary + b"!", **PLAIN)[0] == 400


def test_many_bodies_at_once_take_bounded_memory(served):
    half = b"POST /pub HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 16000000\r\n\r\n"
    before = rss()
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            client = stack.enter_context(served.connect())
            client.settimeout(0.5)
            with contextlib.suppress(OSError):
                client.sendall(half + bytes(15_000_000))
        eventually(lambda: served.ask("POST", "/pub", b"row", **PLAIN)[0] == 200)
        assert rss() - before < 400 << 20
    assert served.values()[-1] == b"row"


@pytest.mark.parametrize(
    ("method", "path", "fields", "status", "text"),
    [
        ("POST", "/pub?topics=t", {}, 400, "/pub has no parameter 'topics'; it takes topic, key"),
        ("POST", "/pub?Topic=t", {}, 400, "/pub has no parameter 'Topic'"),
        ("POST", "/mpub?binary=yes", {}, 400, "binary is true or false, not 'yes'"),
        ("GET", "/rows?last=3", {}, 400, "/rows has no parameter 'last'; it takes topic, rows"),
        ("POST", "/pub", {"Content-Encoding": "gzip"}, 415, "send it without Content-Encoding"),
        ("GET", "/rowz", {}, 404, "no such path; the paths are /, /pub, /mpub, /metrics"),
        ("PUT", "/pub", {}, 501, "the method PUT is not supported"),
        ("POST", "/stats", {}, 405, "/stats takes GET and HEAD, not POST"),
        ("GET", "/stats", {"Origin": "http://x"}, 403, "cross-origin requests are refused; see"),
        ("POST", "/pub", {"Content-Type": "text/plain"}, 415, "Content-Type text/plain is refused"),
        ("POST", "/pub", {"Transfer-Encoding": "gzip"}, 501, "coding gzip is not supported"),
    ],
)
def test_refusals_say_what_is_possible(served, method, path, fields, status, text):
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    answer = served.say("\r\n".join([*lines, "", ""]).encode())
    assert statuses(answer) == [status]
    assert text in json.loads(answer.partition(b"\r\n\r\n")[2])["error"]


def test_a_refusal_names_the_header_with_the_token(directory):
    with Served(directory, token="secret") as served:
        status, body = served.ask("GET", "/stats")
    expected = "this request needs the header Authorization: Bearer TOKEN"
    assert (status, json.loads(body)["error"]) == (401, expected)


@pytest.mark.parametrize("ends", ["Connection: close", "the client's side"])
def test_a_slow_client_gets_all_of_an_answer(served, monkeypatch, ends):
    client = collectors.Client(served.collector.endpoint, timeout_s=PATIENCE)
    for number in range(400):
        client.commit(f"{number:04}" + "g" * 240, 0)

    async def let_go(connection):
        """Does not wait, as if the client had sent nothing for a second."""

    monkeypatch.setattr("zeroxide.collector.connection.Connection._let_go", let_go)
    # Connections inherit it, so that the kernel has no room for the answer.
    served.server._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    field = f"{ends}\r\n" if ends.startswith("Connection") else ""
    with socket.socket() as reader:
        reader.settimeout(PATIENCE)
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(served.address)
        reader.sendall(f"GET /stats HTTP/1.1\r\nHost: 127.0.0.1\r\n{field}\r\n".encode())
        if not field:
            reader.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: reader.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert len(body) == int(re.search(rb"Content-Length: (\d+)", head)[1]) > 100_000


def test_clients_that_do_not_read_take_bounded_memory(served):
    client = collectors.Client(served.collector.endpoint, timeout_s=PATIENCE)
    for number in range(1000):
        client.commit(f"{number:04}" + "g" * 240, 0)
    page = served.ask("GET", "/stats")[1]
    assert len(page) > 200_000
    before = rss()
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            reader = stack.enter_context(socket.socket())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(served.address)
            reader.sendall(b"GET /stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20)
        for _ in range(10):
            assert served.ask("GET", "/health")[0] == 200
            time.sleep(0.1)
        assert rss() - before < 200 << 20


def test_noise_does_not_affect_other_clients(served):
    for _ in range(50):
        with contextlib.suppress(OSError):
            served.say(os.urandom(2000) + b"\r\n\r\n")
    assert served.ask("GET", "/health")[0] == 200


def test_connections_that_end_with_the_server_are_no_errors(directory, caplog):
    with Served(directory) as served, contextlib.ExitStack() as clients:
        for request in (
            b"GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            b"GET /",
        ):
            client = clients.enter_context(served.connect())
            client.sendall(request)
        eventually(lambda: len(served.server._connections) == 2)
        eventually(lambda: served.server._counts["http_requests"] == 1)
        served.server.close()
    assert not [record for record in caplog.records if record.name == "asyncio"]
