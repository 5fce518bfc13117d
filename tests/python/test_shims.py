"""Names that programs import from pyzmq's internal modules."""

import importlib
import warnings

import pytest


def module(zmq, name):
    return importlib.import_module(f"{zmq.__name__}.{name}")


def test_jsonapi(zmq):
    jsonapi = module(zmq, "utils.jsonapi")
    assert jsonapi.dumps({"a": "é"}) == b'{"a": "\\u00e9"}'
    assert jsonapi.dumps([1], indent=1) == b"[\n 1\n]"
    assert jsonapi.loads(b'{"a": 1}') == jsonapi.loads('{"a": 1}') == {"a": 1}
    assert jsonapi.loads(b"1.5", parse_float=str) == "1.5"


def test_win32(zmq):
    allow_interrupt = module(zmq, "utils.win32").allow_interrupt
    with allow_interrupt(), allow_interrupt(lambda: None):
        pass


def test_interop(zmq):
    cast_int_addr = module(zmq, "utils.interop").cast_int_addr
    assert cast_int_addr(5) == 5
    for wrong in ("5", 5.0, None, object()):
        with pytest.raises(ValueError, match="Cannot cast"):
            cast_int_addr(wrong)


def test_strtypes(zmq):
    strtypes = module(zmq, "utils.strtypes")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert strtypes.cast_bytes("é") == strtypes.asbytes("é") == strtypes.b("é") == b"\xc3\xa9"
        assert strtypes.cast_unicode(b"\xc3\xa9") == strtypes.u("é") == "é"
        assert strtypes.cast_bytes("é", "latin-1") == b"\xe9"
        for cast in (strtypes.cast_bytes, strtypes.cast_unicode):
            with pytest.raises(TypeError):
                cast(1)
    assert {warning.category for warning in seen} == {DeprecationWarning}
    assert strtypes.unicode is str and strtypes.bytes is bytes
    assert isinstance("", strtypes.basestring)


def test_stopwatch(zmq):
    with pytest.warns(DeprecationWarning):
        watch = zmq.Stopwatch()
    watch.start()
    assert 0 <= watch.stop() < 20_000_000


def test_sugar_and_backend(zmq):
    sugar, backend = module(zmq, "sugar"), module(zmq, "backend")
    assert sugar.Context is sugar.context.Context is zmq.Context
    assert sugar.Socket is sugar.socket.Socket is zmq.Socket
    assert sugar.Poller is sugar.poll.Poller is zmq.Poller
    assert sugar.Frame is zmq.Frame and sugar.MessageTracker is zmq.MessageTracker
    assert sugar.version.zmq_version is zmq.zmq_version
    for name in ("Context", "Socket", "Frame"):
        assert issubclass(getattr(zmq, name), getattr(backend, name))
        assert getattr(module(zmq, "backend.cython"), name) is getattr(backend, name)
    select = module(zmq, "backend.select")
    chosen = select.select_backend(f"{zmq.__name__}.backend.cython")
    assert set(select.public_api) <= set(chosen)
    assert all(hasattr(backend, name) for name in select.public_api)
    assert backend.zmq_version_info() == zmq.zmq_version_info()


def test_garbage(zmq):
    garbage = module(zmq, "utils.garbage")
    collector = garbage.GarbageCollector()
    collector.stop()
    assert not collector.is_alive() and len(collector.refs) == 0
    assert garbage.gc.url.startswith("inproc://")
    context = zmq.Context()
    collector.context = context
    assert collector.context is context
    context.term()


def test_the_folders_of_headers(zmq):
    assert isinstance(zmq.get_includes(), list)
    assert isinstance(zmq.get_library_dirs(), list)
