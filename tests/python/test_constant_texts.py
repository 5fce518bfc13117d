"""The sentence about each constant: in `help()`, in an editor, and the same in both."""

import enum
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.zeroxide_only

ROOT = Path(__file__).parents[2]


def members(zmq):
    found = vars(zmq.constants).items()
    kinds = [kind for name, kind in found if isinstance(kind, enum.EnumType) and name[0] != "_"]
    assert len(kinds) > 10
    return [member for kind in kinds for member in kind]


def test_every_member_has_a_text_of_its_own(zmq):
    for member in members(zmq):
        text = inspect.getdoc(member)
        assert text and text != inspect.getdoc(type(member)), member


def test_the_texts_of_options_are_those_of_the_table(zmq):
    from zeroxide import _native

    for name, _, _, sentence in _native.socket_option_texts():
        assert zmq.SocketOption[name].__doc__.startswith(sentence), name
    for name, _, _, sentence in _native.context_option_texts():
        if name in zmq.ContextOption.__members__:
            assert sentence in zmq.ContextOption[name].__doc__, name


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("RCVHWM", "Type: int, in messages. Default: 1000."),
        ("RCVTIMEO", "Type: int, in ms. Default: -1."),
        ("ROUTING_ID", "Type: bytes. Default: empty."),
        ("XPUB_VERBOSE", "Type: int, 0 or 1. Default: 0. Sockets: PUB, XPUB. It can only be set."),
        ("EVENTS", "Type: int. It can only be read."),
        (
            "HELLO_MSG",
            "Type: bytes. Default: empty. Sockets: DEALER, ROUTER, SERVER, CLIENT, PEER.",
        ),
        ("IO_THREADS", "Type: int, in threads. Default: 1."),
    ],
)
def test_an_option_names_its_type_unit_and_default(zmq, name, facts):
    assert getattr(zmq, name).__doc__.split("\n\n")[1] == facts


def test_a_constant_names_its_specification(zmq):
    sources = {
        "XPUB": '29/PUBSUB, section "The XPUB Socket Type"; ``ZMQ_XPUB`` of zmq_socket(3)',
        "LINGER": "``ZMQ_LINGER`` of zmq_setsockopt(3)",
        "HEARTBEAT_IVL": '37/ZMTP, section "Connection Heartbeating"; ``ZMQ_HEARTBEAT_IVL`` of'
        " zmq_setsockopt(3)",
        "LAST_ENDPOINT": "``ZMQ_LAST_ENDPOINT`` of zmq_getsockopt(3)",
        "STALL_IVL": "zeroxide only",
        "IO_THREADS": "``ZMQ_IO_THREADS`` of zmq_ctx_set(3)",
        "EVENT_CONNECTED": "``ZMQ_EVENT_CONNECTED`` of zmq_socket_monitor(3)",
        "CURVE": '25/ZMTP-CURVE, section "Implementation"; zmq_curve(7)',
    }
    texts = {name: getattr(zmq, name).__doc__ for name in sources}
    assert {name: text.partition("Source: ")[2] for name, text in texts.items()} == sources


def test_help_shows_the_sentences(zmq, capsys):
    help(zmq.SocketOption)
    assert "How many messages queue per peer on the way in" in capsys.readouterr().out


def test_flags_that_are_combined_have_the_text_of_their_class(zmq):
    assert (zmq.SNDMORE | zmq.DONTWAIT).__doc__ == zmq.Flag.__doc__


def test_editors_show_the_same_texts():
    """`python tools/constants_stub.py` brings the stubs up to date."""
    path = ROOT / "tools" / "constants_stub.py"
    spec = importlib.util.spec_from_file_location("constants_stub", path)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    for path, text in tool.stubs().items():
        assert path.read_text() == text, path.name


def test_an_attribute_has_the_text_of_its_option(zmq):
    assert zmq.Socket.rcvhwm.__doc__ == zmq.Socket.RCVHWM.__doc__ == zmq.RCVHWM.__doc__
    assert zmq.Socket.identity.__doc__ == zmq.ROUTING_ID.__doc__
    assert zmq.Socket.events.__doc__ == zmq.EVENTS.__doc__


def test_an_import_does_not_load_the_texts():
    code = (
        "import sys, zeroxide\n"
        "assert 'zeroxide._constant_texts' not in sys.modules\n"
        "zeroxide.LINGER.__doc__\n"
        "assert 'zeroxide._constant_texts' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
