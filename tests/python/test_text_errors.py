"""Text that cannot be encoded: the error names the character, its position, and what to do about it."""

import pytest

pytestmark = pytest.mark.zeroxide_only

# A byte that is not UTF-8, as `os.fsdecode` and `sys.argv` give it.
BYTE = "ab\udcffc"

# Half of a character, as `json.loads` gives it.
HALF = "ab\ud83dc"

CALLS = {
    "send_string": lambda zmq, socket, text: socket.send_string(text),
    "send_typed": lambda zmq, socket, text: socket.send_typed({"a": text}),
    "subscribe": lambda zmq, socket, text: socket.subscribe(text),
    "unsubscribe": lambda zmq, socket, text: socket.unsubscribe(text),
    "subscribe as an attribute": lambda zmq, socket, text: setattr(socket, "subscribe", text),
    "set_string": lambda zmq, socket, text: socket.set_string(zmq.ROUTING_ID, text),
    "a key": lambda zmq, socket, text: socket.secure_client(text),
    "count_subscribed": lambda zmq, socket, text: socket.count_subscribed(text),
    "connect": lambda zmq, socket, text: socket.connect(text),
    "password_client": lambda zmq, socket, text: socket.password_client("user", text),
    "password_server": lambda zmq, socket, text: socket.password_server({"user": text}),
    "thread names": lambda zmq, socket, text: zmq.Context().set(zmq.THREAD_NAME_PREFIX, text),
    "has": lambda zmq, socket, text: zmq.has(text),
    "Frame.get": lambda zmq, socket, text: zmq.Frame(b"x").get(text),
}

PRODUCERS = {
    "send": lambda producer, text: producer.send(text),
    "a key": lambda producer, text: producer.send("x", key=text),
    "a topic": lambda producer, text: producer.send("x", topic=text),
    "a header": lambda producer, text: producer.send("x", headers={"a": text}),
    "the name of a header": lambda producer, text: producer.send("x", headers={text: "a"}),
    "send_batch": lambda producer, text: producer.send_batch([text]),
    "a dict": lambda producer, text: producer.send_batch([{"value": text}]),
    "an iterable": lambda producer, text: producer.send_batch(iter([text])),
    "a name": lambda producer, text: type(producer)("tcp://127.0.0.1:1", name=text),
    "an endpoint": lambda producer, text: type(producer)(text),
}

CLIENTS = {
    "committed": lambda client, text: client.committed(text),
    "follow": lambda client, text: client.follow(text),
    "fetch_tables": lambda client, text: client.fetch_tables(0, 1, topics=["x", text]),
}


def check(call):
    """Calls with both kinds of surrogates."""
    with pytest.raises(UnicodeEncodeError) as caught:
        call(BYTE)
    assert (caught.value.object, caught.value.start) == (BYTE, 2)
    assert str(caught.value) == (
        "'utf-8' codec can't encode character '\\udcff' in position 2: surrogates not allowed: it"
        " stands for the byte 0xff, which was not UTF-8 in its source;"
        " text.encode('utf-8', 'surrogateescape') restores the bytes"
    )
    with pytest.raises(UnicodeEncodeError) as caught:
        call(HALF)
    assert str(caught.value) == (
        "'utf-8' codec can't encode character '\\ud83d' in position 2: surrogates not allowed: it"
        " is half of a character; text.encode('utf-8', 'replace').decode() puts '?' there"
    )


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_surrogates_given_to_a_socket(zmq, context, call):
    if "send_typed" in call.__code__.co_names:
        pytest.importorskip("msgspec")
    with context.socket(zmq.XPUB) as socket:
        check(lambda text: call(zmq, socket, text))


@pytest.mark.parametrize("call", PRODUCERS.values(), ids=PRODUCERS)
def test_surrogates_in_rows(call):
    pipeline = pytest.importorskip("zeroxide.pipeline")
    producer = pipeline.Producer("tcp://127.0.0.1:1")
    check(lambda text: call(producer, text))
    producer.close(0)


@pytest.mark.parametrize("call", CLIENTS.values(), ids=CLIENTS)
def test_surrogates_given_to_a_client(call):
    pipeline = pytest.importorskip("zeroxide.pipeline")
    with pipeline.Client("tcp://127.0.0.1:1") as client:
        check(lambda text: call(client, text))


def test_the_bytes_of_the_cure(zmq, context):
    assert BYTE.encode("utf-8", "surrogateescape") == b"ab\xffc"
    with context.socket(zmq.SUB) as socket:
        socket.subscribe(BYTE.encode("utf-8", "surrogateescape"))


def test_another_encoding_without_the_character(zmq, context):
    with context.socket(zmq.PUSH) as socket:
        with pytest.raises(UnicodeEncodeError) as caught:
            socket.send_string("a€", encoding="latin-1")
        assert str(caught.value).endswith(
            "in position 1: ordinal not in range(256): encoding='utf-8' has every character"
        )


# ---- received ------------------------------------------------------------------------

RECEIVED = {
    "recv_string": (UnicodeDecodeError, "text in utf-8", "recv receives any bytes"),
    "recv_json": (ValueError, "JSON", "recv_json what send_json sends"),
    "recv_pyobj": (Exception, "a pickle", "recv_pyobj what send_pyobj sends"),
}


@pytest.mark.parametrize("call", RECEIVED)
@pytest.mark.parametrize("message", [b"\xffhello", b"hello\xff", b"\xff"])
def test_a_message_that_is_something_else(zmq, context, call, message):
    kind, expected, cure = RECEIVED[call]
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.bind("inproc://something-else")
        push.connect("inproc://something-else")
        push.send(message)
        with pytest.raises(kind) as caught:
            getattr(pull, call)()
    text = str(caught.value)
    assert "zmq.PULL" in text and "inproc://something-else" in text
    assert f"a message of {len(message)} bytes that is not {expected}, {message!r}" in text
    assert cure in text


@pytest.mark.parametrize("name", ["bind", "connect", "unbind", "disconnect"])
def test_bytes_given_for_an_endpoint(zmq, context, name):
    """Another name in their place would be another endpoint."""
    expected = pytest.raises(zmq.ZMQError, match=r"'ipc:///tmp/\\xff' is not UTF-8")
    with context.socket(zmq.PUSH) as socket, expected as caught:
        getattr(socket, name)(b"ipc:///tmp/\xff")
    assert caught.value.errno == zmq.EINVAL
