"""The proxy of the fault matrix: what it does to bytes, before any socket is blamed for it."""

import socket
import threading

import pytest
from faults.proxy import CLEAN, Path, Proxy
from support import PATIENCE, eventually

pytestmark = pytest.mark.zeroxide_only

TEXT = bytes(range(256)) * 4


@pytest.fixture
def joined():
    """Makes two streams with a proxy between them."""
    made = []

    def join(up=CLEAN, down=CLEAN, **options):
        listener = socket.create_server(("127.0.0.1", 0))
        proxy = Proxy("tcp://{}:{}".format(*listener.getsockname()), up, down, **options)
        host, port = proxy.endpoint.removeprefix("tcp://").split(":")
        near = socket.create_connection((host, int(port)), timeout=PATIENCE)
        far, _ = listener.accept()
        far.settimeout(PATIENCE)
        eventually(lambda: proxy.connections)
        made.extend((proxy, near, far, listener))
        return proxy, near, far

    yield join
    for each in made:
        each.close()


def read(stream, length):
    data = b""
    while len(data) < length and (more := stream.recv(length - len(data))):
        data += more
    return data


@pytest.mark.parametrize(
    "path", [Path(), Path(piece=1), Path(ragged=7), Path(latency=0.001, jitter=0.001)], ids=str
)
def test_bytes_pass_in_both_directions(joined, path):
    _, near, far = joined(path, path)
    near.sendall(TEXT)
    assert read(far, len(TEXT)) == TEXT
    far.sendall(TEXT)
    assert read(near, len(TEXT)) == TEXT


def test_the_seed_decides_where_a_stream_is_split():
    def pieces(seed):
        proxy = Proxy("tcp://127.0.0.1:1", up=Path(ragged=9), seed=seed)
        proxy.close()
        return Proxy._pieces(TEXT, proxy._directions["up"])

    assert pieces(1) == pieces(1) != pieces(2)
    assert b"".join(pieces(1)) == TEXT


def test_bits_are_flipped_and_bytes_rewritten_and_put_before(joined):
    proxy, near, far = joined(Path(flip=frozenset({0, 3, 9}), garbage=b"??"))
    near.sendall(b"abcd")
    assert read(far, 6) == b"??`bce"
    assert proxy.flipped == 2
    _, near, far = joined(down=Path(rewrite=lambda gone, data: data.upper()))
    far.sendall(b"abcd")
    assert read(near, 4) == b"ABCD"


def test_the_ends_of_directions_are_counted(joined):
    proxy, near, far = joined()
    near.shutdown(socket.SHUT_WR)
    eventually(lambda: proxy.ended == 1)
    far.close()
    eventually(lambda: proxy.ended == 2)


def test_a_connection_is_reset_after_some_bytes(joined):
    _, near, far = joined(Path(cut=10))
    near.sendall(TEXT)
    with pytest.raises(ConnectionResetError):
        assert len(read(far, len(TEXT))) <= 10
        read(far, 1)
        raise AssertionError("an ordinary end instead of a reset")
    with pytest.raises(ConnectionResetError):
        read(near, 1)


def test_one_direction_ends_and_the_other_goes_on(joined):
    _, near, far = joined(Path(half_close=10))
    near.sendall(TEXT)
    assert read(far, len(TEXT)) == TEXT[:10]
    far.sendall(TEXT)
    assert read(near, len(TEXT)) == TEXT
    proxy, near, far = joined()
    proxy.end("down")
    assert near.recv(1) == b""
    near.sendall(b"x")
    assert far.recv(1) == b"x"


def test_one_direction_stalls_and_the_other_goes_on(joined):
    proxy, near, far = joined()
    proxy.stall("up")
    near.sendall(b"x")
    far.sendall(b"y")
    assert near.recv(1) == b"y"
    far.settimeout(0.05)
    with pytest.raises(TimeoutError):
        far.recv(1)
    far.settimeout(PATIENCE)
    proxy.resume("up")
    assert far.recv(1) == b"x"


def test_a_stream_stalls_after_some_bytes(joined):
    proxy, near, far = joined(Path(piece=1, stall=3))
    near.sendall(b"abcdef")
    assert read(far, 3) == b"abc"
    eventually(lambda: not proxy._directions["up"].open.is_set())
    assert proxy.passed["up"] == 3
    proxy.resume("up")
    assert read(far, 3) == b"def"


def test_connections_are_refused(joined):
    proxy, near, _ = joined()
    proxy.refuse()
    host, port = proxy.endpoint.removeprefix("tcp://").split(":")
    # The reset may arrive before the connection is reported as made.
    with pytest.raises(ConnectionResetError):
        socket.create_connection((host, int(port)), timeout=PATIENCE).recv(1)
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        near.recv(1)


def test_no_thread_remains(joined):
    before = threading.active_count()
    proxy, near, far = joined()
    near.sendall(b"x")
    assert far.recv(1) == b"x"
    proxy.close()
    near.close()
    far.close()
    eventually(lambda: threading.active_count() <= before)
