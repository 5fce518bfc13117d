"""The exporters: OpenMetrics and Prometheus' format over HTTP, and OpenTelemetry."""

import contextlib
import errno
import http.client
import os
import socket as tcp
import socketserver
import threading
import time
from urllib.request import Request, urlopen

import pytest
from support import PATIENCE, eventually, run_script

pytestmark = pytest.mark.zeroxide_only

metrics = pytest.importorskip("zeroxide.metrics")


@pytest.fixture
def pair(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(b"12345")
    pull.recv()
    with sockets.context.socket(zmq.ROUTER) as router:
        for _ in range(3):
            router.send_multipart([b"nobody", b""])
        yield pull, push


def parsed(text, module="prometheus_client.openmetrics.parser"):
    """The families of a text, by Prometheus' own parser."""
    parser = pytest.importorskip(module)
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


def values(families, name, **labels):
    """The values of the samples with these labels."""
    samples = [sample for family in families.values() for sample in family.samples]
    return [
        sample.value
        for sample in samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]


def test_openmetrics_has_the_numbers_of_this_process(pair):
    families = parsed(metrics.openmetrics())
    at = pair[0].last_endpoint.decode()
    mine = {"pid": str(os.getpid()), "endpoint": at}
    assert values(families, "zeroxide_sent_messages_total", type="PUSH", **mine) == [1]
    assert values(families, "zeroxide_received_bytes_total", type="PULL", **mine) == [5]
    assert values(families, "zeroxide_connected_peers", type="PULL", **mine) == [1]
    assert values(families, "zeroxide_queued_out_messages", type="PUSH", **mine) == [0]
    assert values(families, "zeroxide_dropped_messages_total", reason="unroutable") == [3]
    assert values(families, "zeroxide_program_info", pid=mine["pid"]) == [1]


def test_the_table_is_what_is_published(pair):
    snapshot, stats = metrics.snapshot(), _collector_stats()
    from zeroxide.metrics._text import render

    families = parsed(render([snapshot], {"tcp://c:1": stats}, is_open=True))
    assert len({metric.name for metric in metrics.METRICS}) == len(metrics.METRICS)
    for metric in metrics.METRICS:
        if metric.field == "dropped" and metric.of == "peer":
            continue  # no peer of this test has lost a message
        family = families[metric.name]
        assert (family.type, family.documentation) == (metric.kind, metric.help)
        assert family.unit == metric.unit
        assert metric.name.endswith(metric.unit)
    assert set(families) <= {metric.name for metric in metrics.METRICS}


def _collector_stats():
    return {
        **dict.fromkeys(("rows", "bytes", "log_bytes", "earliest", "connected_producers"), 1),
        "durable": 7,
        "topics": [{"topic": "a", "rows": 1, "bytes": 2}],
        "groups": {"etl": 3, "ahead": 9},
    }


def test_lag_is_what_a_group_has_not_read():
    from zeroxide.metrics._text import render

    families = parsed(render([], {"tcp://c:1": _collector_stats()}, is_open=True))
    name = "zeroxide_collector_group_lag_rows"
    assert values(families, name, group="etl", endpoint="tcp://c:1") == [4]
    assert values(families, name, group="ahead") == [0]


def test_prometheus_older_format_has_the_same_numbers(pair):
    from zeroxide.metrics._text import render

    older = parsed(render([metrics.snapshot()], is_open=False), "prometheus_client.parser")
    newer = parsed(render([metrics.snapshot()], is_open=True))
    assert values(older, "zeroxide_sent_messages_total") == values(
        newer, "zeroxide_sent_messages_total"
    )
    assert values(older, "zeroxide_program_info") == [1]
    assert older["zeroxide_queued_out_messages"].type == "gauge"


def test_text_in_labels_is_escaped(pair):
    snapshot = metrics.snapshot()
    snapshot["command"] = 'a "b" \\ \n c'
    families = parsed(metrics.openmetrics([snapshot]))
    assert values(families, "zeroxide_program_info", command=snapshot["command"]) == [1]


def test_snapshots_have_the_memory_that_peers_use(pair):
    _, push = pair
    push.send(b"x" * 1_000_000)

    def is_counted():
        found = [context for context in metrics.snapshot()["contexts"] if context["sockets"]]
        return any(1_000_000 < context["memory"] < context["memory_budget"] for context in found)

    eventually(is_counted)


def fetch(url, **headers):
    with urlopen(Request(url, headers=headers), timeout=PATIENCE) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_http_serves_the_format_that_is_asked_for(pair):
    with metrics.serve("127.0.0.1:*") as server:
        kind, text = fetch(server.url)
        assert kind.startswith("text/plain; version=0.0.4") and "# EOF" not in text
        kind, text = fetch(server.url, Accept="application/openmetrics-text;version=1.0.0")
        assert kind.startswith("application/openmetrics-text") and text.endswith("# EOF\n")
        assert "zeroxide_peer_" not in text
        kind, text = fetch(server.url.removesuffix("metrics"))
        assert "/metrics" in text
        connection = http.client.HTTPConnection(server.url.split("/")[2], timeout=PATIENCE)
        connection.request("GET", "/other")
        assert connection.getresponse().status == 404
        connection.close()
    with pytest.raises(OSError):
        fetch(server.url)
    server.close()


def test_peers_have_metrics_on_request(pair):
    with metrics.serve("127.0.0.1:*", peers=5) as server:
        _, text = fetch(server.url)
    families = parsed(text, "prometheus_client.parser")
    assert 1 in values(families, "zeroxide_peer_sent_messages_total", type="PUSH")


def test_a_client_that_sends_nothing_does_not_stop_the_others(pair):
    with metrics.serve("127.0.0.1:*") as server:
        host, _, port = server.url.split("/")[2].partition(":")
        with tcp.create_connection((host, int(port))):
            assert "zeroxide_sent_messages_total" in fetch(server.url)[1]


def _connect(server):
    host, _, port = server.url.split("/")[2].partition(":")
    return tcp.create_connection((host, int(port)), timeout=PATIENCE)


def test_further_clients_take_the_place_of_those_that_came_first():
    with metrics.serve("127.0.0.1:*") as server, contextlib.ExitStack() as opened:
        clients = [opened.enter_context(_connect(server)) for _ in range(100)]
        # Those that were dropped have got nothing.
        for client in clients[:84]:
            assert client.recv(1) == b""
        assert "zeroxide_program_info" in fetch(server.url)[1]
        assert server.dropped >= 85
        serving = [thread for thread in threading.enumerate() if "process_request" in thread.name]
        assert len(serving) <= 16


def test_refused_clients_are_asked_for_with_pauses(monkeypatch):
    """A process without free descriptors cannot accept a client that waits, and select returns at once."""
    attempts, asked, free = [], threading.Event(), threading.Event()

    def refuse(self):
        if free.is_set():
            return original(self)
        attempts.append(time.monotonic())
        if len(attempts) == 3:
            asked.set()
        raise OSError(errno.EMFILE, "too many open files")

    original = socketserver.TCPServer.get_request
    monkeypatch.setattr(socketserver.TCPServer, "get_request", refuse)
    with metrics.serve("127.0.0.1:*") as server, _connect(server) as client:
        assert asked.wait(PATIENCE)
        free.set()
        # A pause is never shorter.
        assert attempts[2] - attempts[0] >= 0.2
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.0 200"


def test_a_request_has_limited_time_and_size(monkeypatch):
    monkeypatch.setattr("zeroxide.metrics._http._PATIENCE", 0.5)
    with metrics.serve("127.0.0.1:*") as server:
        with _connect(server) as slow:
            slow.sendall(b"GET /metrics HTTP/1.0\r\n")
            slow.settimeout(0.05)
            # It never falls silent for long.
            while True:
                with contextlib.suppress(OSError):
                    slow.sendall(b"A: b\r\n")
                try:
                    assert slow.recv(1) == b""
                    break
                except TimeoutError:
                    pass
                except ConnectionError:
                    break
        with _connect(server) as large:
            with contextlib.suppress(OSError):
                large.sendall(b"GET /metrics HTTP/1.0\r\n" + b"A: b\r\n" * 10_000)
            with contextlib.suppress(ConnectionError):
                answer = b"".join(iter(lambda: large.recv(4096), b""))
                assert answer == b"" or b" 431 " in answer.splitlines()[0]
        assert "zeroxide_program_info" in fetch(server.url)[1]


def test_serving_over_ipv6():
    try:
        server = metrics.serve("[::1]:*")
    except OSError:
        pytest.skip("no IPv6 here")
    with server:
        assert server.url.startswith("http://[::1]:")
        assert "zeroxide_program_info" in fetch(server.url)[1]


@pytest.mark.parametrize("address", ["9100", "127.0.0.1:http", ""])
def test_an_address_has_a_host_and_a_port(address):
    with pytest.raises(ValueError, match="address: expected HOST:PORT"):
        metrics.serve(address)


def test_a_program_ends_although_it_serves():
    script = "zmq.metrics.serve('127.0.0.1:*'); print('end')"
    assert run_script("zeroxide", script) == ("end\n", "")


def test_opentelemetry_gets_the_same_numbers(pair):
    sdk = pytest.importorskip("opentelemetry.sdk.metrics")
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    provider = sdk.MeterProvider(metric_readers=[reader])
    metrics.instrument(provider)
    found = _collected(reader)
    own = [metric for metric in metrics.METRICS if metric.of in ("program", "socket")]
    assert set(found) == {metric.name.replace("zeroxide_", "zeroxide.", 1) for metric in own}
    sent = found["zeroxide.sent_messages"]
    assert (sent.unit, sent.data.is_monotonic) == ("{message}", True)
    assert _value(sent, type="PUSH") == 1
    assert found["zeroxide.sent_bytes"].unit == "By"
    assert _value(found["zeroxide.dropped_messages"], reason="unroutable") == 3
    # The next collection takes new numbers.
    pair[1].send(b"more")
    assert _value(_collected(reader)["zeroxide.sent_messages"], type="PUSH") == 2
    provider.shutdown()


def _collected(reader):
    [resource] = reader.get_metrics_data().resource_metrics
    [scope] = resource.scope_metrics
    assert scope.scope.name == "zeroxide"
    return {metric.name: metric for metric in scope.metrics}


def _value(metric, **labels):
    [value] = [
        point.value
        for point in metric.data.data_points
        if labels.items() <= dict(point.attributes).items()
    ]
    return value
