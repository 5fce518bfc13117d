"""Producers and clients for gevent: a call that waits lets other greenlets run."""

import inspect

import pytest
from support import PATIENCE

gevent = pytest.importorskip("gevent")

import zeroxide.green as green  # noqa: E402
import zeroxide.pipeline  # noqa: E402
from zeroxide.pipeline import Collector, CollectorGone, NotAcknowledged  # noqa: E402


@pytest.fixture(autouse=True)
def patience():
    with gevent.Timeout(PATIENCE):
        yield


@pytest.fixture
def collector(tmp_path):
    with Collector(tmp_path / "log", "tcp://127.0.0.1:*") as collector:
        yield collector


@pytest.fixture
def silent():
    """The address of a socket that takes requests and never answers."""
    with green.Context() as context, context.socket(green.ROUTER) as router:
        router.linger = 0
        router.bind("tcp://127.0.0.1:*")
        yield router.last_endpoint.decode()


def test_names():
    for name in ("Client", "Follower", "Producer"):
        form = getattr(green, name)
        assert form.__module__ == "zeroxide.green" and name in green.__all__ and name in dir(green)
        assert issubclass(form, getattr(zeroxide.pipeline, name))
        assert form is not getattr(zeroxide.pipeline, name)


@pytest.mark.parametrize("name", ["Client", "Follower", "Producer"])
def test_the_methods_have_the_signatures_and_docstrings_of_the_blocking_ones(name):
    form, blocking = getattr(green, name), getattr(zeroxide.pipeline, name)
    methods = [
        method
        for method in dir(blocking)
        if not method.startswith("_") and callable(getattr(blocking, method))
    ]
    assert len(methods) > 3
    for method in methods:
        signature = inspect.signature(getattr(form, method))
        expected = inspect.signature(getattr(blocking, method))
        shown = [(one.name, one.kind, one.default) for one in signature.parameters.values()]
        # Native methods take `self` by position alone.
        assert shown[1:] == [
            (one.name, one.kind, one.default) for one in list(expected.parameters.values())[1:]
        ], method
        assert inspect.getdoc(getattr(form, method)), method


class Ticker:
    """A greenlet that shows that the hub runs."""

    def __enter__(self):
        self.ticks = 0
        self._greenlet = gevent.spawn(self._tick)
        return self

    def _tick(self):
        while True:
            self.ticks += 1
            gevent.sleep(0.001)

    def wait(self, count=20):
        """Waits until the greenlet has run `count` times from now on."""
        until = self.ticks + count
        while self.ticks < until:
            gevent.sleep(0.001)

    def __exit__(self, *_):
        self._greenlet.kill()


CALLS = {
    "info": lambda client: client.info(),
    "groups": lambda client: client.groups(),
    "drop_group": lambda client: client.drop_group("g"),
    "committed": lambda client: client.committed("g"),
    "commit": lambda client: client.commit("g", 1),
    "offset_at": lambda client: client.offset_at(1),
    "offset_after": lambda client: client.offset_after(1, 1),
    "fetch": lambda client: next(client.fetch(0, 1)),
    "fetch_tables": lambda client: next(client.fetch_tables(0, 1)),
    "follow": lambda client: client.follow(),
    "publish": lambda client: client.publish("q", 1, []),
    "abort": lambda client: client.abort("q", 1),
    "stats": lambda client: client.stats(),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_silent_collector_does_not_hold_up_other_greenlets(silent, name):
    client = green.Client(silent, timeout_s=10 * PATIENCE)
    waiting = gevent.spawn(CALLS[name], client)
    with Ticker() as ticker:
        ticker.wait()
        assert not waiting.ready()
        waiting.kill()
        assert isinstance(waiting.value, gevent.GreenletExit)
        with pytest.raises(gevent.Timeout), gevent.Timeout(0.05):
            CALLS[name](client)
    client.close()


def test_killed_calls_free_their_threads(silent):
    """There are more calls than threads, which run them one after the other."""
    with green.Client(silent, timeout_s=10 * PATIENCE) as client:
        for _ in range(4):
            greenlets = [gevent.spawn(client.info) for _ in range(8)]
            gevent.sleep(0.01)
            gevent.killall(greenlets)


def test_a_collector_that_is_gone(silent):
    with green.Client(silent, timeout_s=0.05, retries=0) as client, Ticker() as ticker:
        with pytest.raises(CollectorGone):
            client.info()
        assert ticker.ticks > 1


def test_rows_from_one_greenlet_to_another(collector):
    def produce():
        with green.Producer(collector.endpoint) as producer:
            for number in range(10):
                producer.send(b"%d" % number, topic="t")
                gevent.sleep(0.001)
            producer.send_batch([b"10", b"11"], topic="t")
            producer.send_batch((b"%d" % number for number in (12, 13)), topic="t")
            producer.flush()

    with green.Client(collector.endpoint) as client, Ticker() as ticker:
        with client.follow("t", group="g") as rows:
            producing = gevent.spawn(produce)
            values = [next(rows).value for _ in range(14)]
            rows.commit()
        producing.get()
        assert ticker.ticks > 1
        assert values == [b"%d" % number for number in range(14)]
        assert client.committed("g") == 14
        assert sum(table.num_rows for table in client.fetch_tables(0, 14)) == 14
        with client.follow(timeout_s=0) as rows:
            assert [row.value for row in rows] == values
        with client.follow(start="latest", timeout_s=0.05) as rows:
            assert list(rows) == []


def test_a_follower_lets_other_greenlets_run(collector):
    with (
        green.Client(collector.endpoint) as client,
        client.follow() as rows,
        Ticker() as ticker,
    ):
        waiting = gevent.spawn(next, rows)
        ticker.wait()
        assert not waiting.ready()
        waiting.kill()
        with pytest.raises(gevent.Timeout), gevent.Timeout(0.05):
            next(rows)
        # No row is lost.
        collector.append([b"1", b"2"])
        assert next(rows).value == b"1"
        assert next(rows).value == b"2"


def test_a_follower_that_is_closed_wakes_its_greenlet(collector):
    with green.Client(collector.endpoint) as client, Ticker() as ticker:
        rows = client.follow()
        waiting = gevent.spawn(list, rows)
        ticker.wait()
        rows.close()
        assert waiting.get() == []


def test_a_client_that_is_closed_ends_its_followers(collector):
    with green.Client(collector.endpoint) as client, Ticker() as ticker:
        early, late = client.follow(), client.follow(start="latest")
        collector.append([b"x"])
        waiting = [gevent.spawn(list, early), gevent.spawn(list, late)]
        tables = client.follow(start=1).tables()
        waiting.append(gevent.spawn(list, tables))
        ticker.wait()
        assert not any(one.ready() for one in waiting)
        client.close()
        read = [[row.value for row in one.get()] for one in waiting]
        assert read == [[b"x"], [b"x"], []]
        assert early.closed and late.closed
        assert list(early) == []
        # A later call makes a new connection.
        assert client.info().latest == 1


def test_a_producer_without_room_lets_other_greenlets_run(silent):
    producer = green.Producer(silent, max_unacked_rows=1)
    producer.send(b"1")
    for call in (
        lambda: producer.send(b"2"),
        lambda: producer.send_batch([b"2"]),
        lambda: producer.send_batch(iter([b"2"])),
        lambda: producer.flush(),
    ):
        waiting = gevent.spawn(call)
        with Ticker() as ticker:
            ticker.wait()
            assert not waiting.ready()
            waiting.kill()
            with pytest.raises(gevent.Timeout), gevent.Timeout(0.05):
                call()
    with pytest.raises(NotAcknowledged):
        producer.close(0.01)


def test_a_producer_whose_close_is_killed_can_be_closed_again(silent):
    producer = green.Producer(silent)
    producer.send(b"x")
    closing = gevent.spawn(producer.close)
    while not producer.closed:
        gevent.idle()
    closing.kill()
    with pytest.raises(NotAcknowledged) as error:
        producer.close(0)
    assert error.value.remaining == {silent: 1}
    producer.close()


def test_deliveries_are_reported_in_a_greenlet(collector):
    seen = []

    def report(delivery):
        seen.append((delivery.offset, gevent.getcurrent(), gevent.get_hub()))

    with green.Producer(collector.endpoint, on_delivery=report) as producer:
        producer.send(b"1")
        while not seen:
            gevent.sleep(0.001)
        offset, greenlet, hub = seen[0]
        assert offset == 0 and hub is gevent.get_hub()
        assert greenlet is not gevent.getcurrent()
        producer.send(b"2")
        producer.flush()
        assert [offset for offset, *_ in seen] == [0, 1]
