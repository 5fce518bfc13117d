"""Fixtures. The same tests run against zeroxide and, to prove the tests, against pyzmq:

ZEROXIDE_TEST_MODULE=zmq pytest tests/python
"""

import gc
import importlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from cells import Cells
from faults.machines import Machines
from pattern_peers import Peers
from programs import Programs
from support import PATIENCE, Sockets

MODULE = os.environ.get("ZEROXIDE_TEST_MODULE", "zeroxide")

# The allocator of free-threaded Python keeps a gigabyte of address space in reserve, and keeps freed memory until it is
# called again. Tests limit the address space of child processes, and wait for their memory to go back to the system.
os.environ |= {"MIMALLOC_ARENA_RESERVE": "0", "MIMALLOC_PURGE_DELAY": "0"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "zeroxide_only: about something pyzmq does not have, or does otherwise"
    )
    config.addinivalue_line("markers", "cell: a cell of the matrix; see cells.py")
    if MODULE == "zeroxide" and not config.option.collectonly:
        config.pluginmanager.register(Cells())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if MODULE == "zeroxide":
        return
    skip = pytest.mark.skip(reason=f"not for {MODULE}")
    for item in items:
        if item.get_closest_marker("zeroxide_only"):
            item.add_marker(skip)


def pytest_collection_finish() -> None:
    """Keeps the thousands of collected tests out of every later collection of garbage: most tests ask for one or more."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def zmq() -> ModuleType:
    """The module under test."""
    return importlib.import_module(MODULE)


@pytest.fixture
def directory() -> Iterator[Path]:
    """An empty directory with a short name: an ipc path must fit into 107 bytes."""
    path = Path(tempfile.mkdtemp(prefix="zx"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def context(zmq):
    """A context whose sockets time out eventually instead of hanging the test."""
    context = zmq.Context()
    context.linger = 0
    context.rcvtimeo = context.sndtimeo = int(PATIENCE * 1000)
    yield context
    context.destroy(linger=0)
    gc.collect()


@pytest.fixture
def sockets(zmq, context, directory) -> Sockets:
    return Sockets(zmq, context, directory)


@pytest.fixture
def programs() -> Iterator[Programs]:
    """Starts examples, on the module under test."""
    programs = Programs(MODULE)
    yield programs
    programs.end()


@pytest.fixture
def peers() -> Iterator[Peers]:
    """Starts peers of `zeroxide.patterns` in processes of their own."""
    peers = Peers()
    yield peers
    peers.end()


@pytest.fixture
def machines() -> Iterator[Machines]:
    """Starts programs on machines of their own, which are network namespaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the program ip")
    try:
        machines = Machines()
    except OSError as error:
        pytest.skip(f"no network namespaces here: {error}")
    yield machines
    machines.end()


@pytest.fixture(params=["tcp", "ipc", "inproc"])
def transport(request) -> str:
    return request.param
