"""The same program on both libraries.

Each test here runs on zeroxide and, in a separate stage, on pyzmq, with the same result. Where zeroxide is better on
purpose, the test is marked: `differs` names the improvement, and on pyzmq the test must fail.
"""

import asyncio
import importlib
import os
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any

import pytest
from support import PATIENCE

MODULE = os.environ.get("ZEROXIDE_TEST_MODULE", "zeroxide")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "differs(reason): an improvement over pyzmq")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if MODULE != "zmq":
        return
    for item in items:
        if better := item.get_closest_marker("differs"):
            # Strict, because a difference that no longer exists must not stay documented.
            item.add_marker(pytest.mark.xfail(reason=better.args[0], strict=True))


@pytest.fixture(scope="session")
def part() -> Callable[[str], ModuleType]:
    """Imports a submodule of the module under test."""
    return lambda name: importlib.import_module(f"{MODULE}.{name}")


@pytest.fixture
def context(zmq):
    """The usual context, but without a garbage check, because there are many tests here."""
    context = zmq.Context()
    context.linger = 0
    context.rcvtimeo = context.sndtimeo = 20_000
    yield context
    context.destroy(linger=0)


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine to its end in a new loop, with a time limit."""

    def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))

    return run
