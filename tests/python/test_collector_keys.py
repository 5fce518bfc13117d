"""Wrong and missing keys: both sides report them at once."""

import time

import pytest
from support import eventually

import zeroxide as zmq

pytestmark = pytest.mark.zeroxide_only

collectors = pytest.importorskip("zeroxide.pipeline")

from zeroxide import Producer  # noqa: E402

# A later report could be the timeout for a silent collector, which is far longer.
SOON = 5.0

SERVER = zmq.curve_keypair()
OTHER = zmq.curve_keypair()
OWN = zmq.curve_keypair()


@pytest.fixture
def curve(directory):
    with collectors.Collector(directory / "log", secret_key=SERVER[1], allow=[OWN[0]]) as collector:
        yield collector


@pytest.fixture
def plain(directory):
    with collectors.Collector(directory / "log") as collector:
        yield collector


CASES = [
    ("curve", {}, "requires CURVE", "mechanism"),
    ("curve", {"server_key": OTHER[0], "secret_key": OWN[1]}, "server_key is not", "server-key"),
    ("curve", {"server_key": SERVER[0], "secret_key": OTHER[1]}, "client's public key", "key"),
    ("plain", {"server_key": SERVER[0], "secret_key": OWN[1]}, "does not use CURVE", "mechanism"),
]


@pytest.mark.parametrize(("kind", "keys", "text", "reason"), CASES)
def test_both_sides_report_what_is_wrong(request, kind, keys, text, reason):
    collector = request.getfixturevalue(kind)
    began = time.monotonic()
    with pytest.raises(collectors.Refused, match=text) as raised:
        collectors.Client(collector.endpoint, timeout_s=60, **keys).info()
    assert raised.value.code == "denied"
    producer = Producer(collector.endpoint, **keys)
    producer.send(b"a row")
    with pytest.raises(collectors.Refused, match=text):
        producer.flush(60)
    with pytest.raises(collectors.Refused, match=text):
        producer.close()
    assert time.monotonic() - began < 2 * SOON
    counted = eventually(lambda: collector.stats()["turned_away"][reason])
    assert counted
    assert "127.0.0.1" in collector.stats()["turned_away_last"]


def test_a_producer_continues_once_it_is_accepted(directory):
    from zeroxide.auth import AllowList

    allow = AllowList([OTHER[0]])
    with collectors.Collector(directory / "log", secret_key=SERVER[1], allow=allow) as collector:
        producer = Producer(collector.endpoint, server_key=SERVER[0], secret_key=OWN[1])
        producer.send(b"a row")
        with pytest.raises(collectors.Refused, match="public key"):
            producer.flush(60)
        allow.add(OWN[0])
        eventually(lambda: _flushed(producer))
        producer.close()
        assert collector.stats()["rows"] == 1


def _flushed(producer):
    try:
        producer.flush(5)
    except collectors.Refused:
        return False
    return True
