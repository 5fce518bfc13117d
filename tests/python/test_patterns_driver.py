"""What runs the patterns: the ends of its blocking form."""

import os

import pytest
from support import Background

from zeroxide import patterns

pytestmark = pytest.mark.zeroxide_only


@pytest.fixture
def cache(context):
    with patterns.LastValueCache("inproc://in", "inproc://out", context=context) as cache:
        # What `run` does first.
        cache._driver.prepare_stop()
        yield cache


def test_stop_never_waits(cache):
    """A pipe has room for 65,536 bytes."""

    def stop():
        for _ in range(70_000):
            cache.stop()

    Background(stop).result()
    cache.run()


def test_stop_does_not_use_what_close_has_closed(cache, monkeypatch):
    """The descriptor may belong to another file by then."""
    closed = []

    def close(descriptor, real=os.close):
        real(descriptor)
        closed.append(descriptor)
        cache.stop()

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", close)
        cache.close()
    assert len(closed) == 2
    cache.stop()
