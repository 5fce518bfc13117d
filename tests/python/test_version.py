"""Versions, and the list of public names."""


def test_versions_are_what_programs_compare_with(zmq):
    assert (4, 3) <= zmq.zmq_version_info() < (4, 4)
    assert zmq.zmq_version() == "{}.{}.{}".format(*zmq.zmq_version_info())
    assert zmq.pyzmq_version_info() >= (27,)
    assert zmq.pyzmq_version().startswith("27.")
    assert isinstance(zmq.__version__, str)
    assert isinstance(zmq.__revision__, str)


def test_all_names_exist(zmq):
    for name in zmq.__all__:
        assert hasattr(zmq, name), name


def test_core_names(zmq):
    names = """
        Context Socket Frame Message Poller select zmq_poll MessageTracker proxy proxy_steerable
        has curve_keypair curve_public strerror zmq_errno zmq_version zmq_version_info
        pyzmq_version pyzmq_version_info COPY_THRESHOLD DRAFT_API PYZMQ_DRAFT_API
        IPC_PATH_MAX_LEN SyncContext SyncSocket device
        ZMQError ZMQBindError NotDone ContextTerminated Again InterruptedSystemCall
        ZMQVersionError DraftFDWarning
    """
    for name in names.split():
        assert name in zmq.__all__, name
    assert zmq.Message is zmq.Frame
    assert zmq.COPY_THRESHOLD == 65536
    assert zmq.DRAFT_API is True and zmq.PYZMQ_DRAFT_API is True
    assert zmq.IPC_PATH_MAX_LEN == 107


def test_star_import(zmq):
    names: dict[str, object] = {}
    exec(f"from {zmq.__name__} import *", names)
    assert names["PUSH"] is zmq.PUSH
    assert names["Context"] is zmq.Context


def test_has(zmq):
    assert all(zmq.has(scheme) for scheme in ("tcp", "inproc", "ipc"))
    assert zmq.has("draft")
    assert not zmq.has("no such thing")
