"""The other process, and its endpoints."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from peer import Peer
from support import lasting_endpoint


@pytest.fixture(scope="session")
def lasting_peer() -> Iterator[Peer]:
    """One process for all tests that do not kill it."""
    peer = Peer()
    yield peer
    peer.close()


@pytest.fixture
def new_peer() -> Iterator[Callable[[], Peer]]:
    """Makes processes that the test may kill."""
    peers = []

    def make() -> Peer:
        peers.append(Peer())
        return peers[-1]

    yield make
    for peer in peers:
        peer.thaw() if peer._process.poll() is None else None
        peer.close()


@pytest.fixture(params=["tcp", "ipc"])
def transport(request) -> str:
    return request.param


@pytest.fixture
def fixed_endpoint(directory) -> Callable[[str], str]:
    """An endpoint that may be bound again and again."""
    numbers = itertools.count()

    def make(transport: str) -> str:
        if transport == "ipc":
            return f"ipc://{directory}/fixed-{next(numbers)}"
        return lasting_endpoint().replace("tcp", transport)

    return make
