"""Options: names, defaults, and errors about wrong ones."""

import pickle

import pytest

from zeroxide.spark.options import LogWriteOptions, ReadOptions, WriteOptions, is_for_log

ENDPOINT = {"endpoint": "tcp://127.0.0.1:5555"}


def test_defaults_of_reading():
    read = ReadOptions.parse(ENDPOINT)
    assert read.attachment.endpoints == ("tcp://127.0.0.1:5555",)
    assert not read.attachment.bind
    assert (read.socket, read.framing, read.timeout_ms) == ("pull", "single", 10_000)
    assert read.max_rows is read.max_bytes is read.end_of_stream is None


def test_defaults_of_writing():
    write = WriteOptions.parse(ENDPOINT)
    assert (write.socket, write.frame, write.framing) == ("push", "message", None)
    assert (write.wait_peers, write.flush_timeout_ms) == (1, 30_000)


def test_names_in_any_case():
    read = ReadOptions.parse({"ENDPOINT": "ipc:///tmp/x", "maxrows": "3", "TIMEOUTMS": "5"})
    assert (read.max_rows, read.timeout_ms) == (3, 5)


def test_lists():
    read = ReadOptions.parse(
        {"endpoint": "tcp://a:1, tcp://b:2,", "socket": "SUB", "subscribe": "x,y"}
    )
    assert read.attachment.endpoints == ("tcp://a:1", "tcp://b:2")
    assert read.subscribe == ("x", "y")
    assert read.framing == "topic-first"


@pytest.mark.parametrize(
    ("given", "prefixes"),
    [
        (str(["a", "b"]), ("a", "b")),  # as Spark turns lists into text
        (str(("it's", "b, c")), ("it's", "b, c")),
        ('["a", "\\ud83d\\ude00"]', ("a", "\N{GRINNING FACE}")),
        (' ["[a]"] ', ("[a]",)),
        (str([""]), ("",)),
        ("[a,(b", ("[a", "(b")),
    ],
)
def test_lists_of_python_and_json(given, prefixes):
    options = {"endpoint": str(["tcp://a:1", "tcp://b:2"]), "socket": "sub", "subscribe": given}
    read = ReadOptions.parse(options)
    assert read.attachment.endpoints == ("tcp://a:1", "tcp://b:2")
    assert read.subscribe == prefixes


def test_sub_without_prefixes_subscribes_to_everything():
    assert ReadOptions.parse(ENDPOINT | {"socket": "sub"}).subscribe == ("",)


def test_options_travel_to_executors():
    read = ReadOptions.parse(ENDPOINT | {"zmq.rcvhwm": "7"})
    assert pickle.loads(pickle.dumps(read)) == read


def test_options_that_spark_adds_are_ignored():
    assert WriteOptions.parse(ENDPOINT | {"checkpointlocation": "/x", "path": "/y"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "'endpoint' is missing"),
        ({"endpoint": " , "}, "'endpoint' is missing"),
        ({"endpoint": "127.0.0.1:5555"}, "tcp://host:port"),
        ({"endpoint": "inproc://x"}, "only its own process"),
        (ENDPOINT | {"maxRow": "1"}, "no option 'maxRow'; did you mean 'maxRows'?"),
        (ENDPOINT | {"maxRows": "0"}, "a whole number of at least 1"),
        (ENDPOINT | {"timeoutMs": "soon"}, "'timeoutMs' is 'soon'"),
        (ENDPOINT | {"includeFrames": "yes"}, "true or false"),
        (ENDPOINT | {"socket": "push"}, "reading has: pull, sub"),
        (ENDPOINT | {"subscribe": "a"}, "needs socket=sub"),
        (ENDPOINT | {"socket": "sub", "subscribe": "[a, b]"}, "should be 'a,b' or a list of texts"),
        (ENDPOINT | {"socket": "sub", "subscribe": "[b'a']"}, "should be 'a,b' or a list of texts"),
        (ENDPOINT | {"socket": "sub", "subscribe": "{'a'}"}, "should be 'a,b' or a list of texts"),
        (ENDPOINT | {"socket": "sub", "subscribe": "[" * 9999 + "]"}, "a list of texts"),
        (ENDPOINT | {"socket": "sub", "subscribe": "[]"}, "'subscribe' is an empty list"),
        (ENDPOINT | {"includeHeaders": "true"}, "needs framing=envelope"),
        (ENDPOINT | {"mode": "log"}, "'mode' is 'log' but reading has: live"),
        (ENDPOINT | {"startingOffsets": "earliest"}, "is for reading with mode=log"),
        (ENDPOINT | {"zmq.rcvhmw": "1"}, "no such socket option; did you mean 'zmq.rcvhwm'"),
        (ENDPOINT | {"zmq.rcvhwm": "lots"}, "should be a whole number"),
        ({"endpoint": "tpc://a:1"}, "Spark's tasks use tcp or ipc, not 'tpc'"),
        ({"endpoint": "tls+tcp://a:1"}, "Spark's tasks use tcp or ipc, not 'tls+tcp'"),
        (ENDPOINT | {"zmq.rcvtimeo": "1"}, "set by option 'timeoutMs'"),
        (ENDPOINT | {"zmq.curve_secretkey": "x" * 40}, "env:NAME or file:PATH"),
    ],
)
def test_wrong_options_of_reading(options, said):
    with pytest.raises(ValueError, match=r"option|mode") as error:
        ReadOptions.parse(options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"socket": "pull"}, "writing has: push, dealer, pub, log"),
        ({"socket": "push", "delivery": "exactly-once"}, "needs socket=log"),
        ({"socket": "push", "mode": "log"}, "'mode' is 'log', but writing goes over a socket"),
        ({"frame": "arrow", "framing": "envelope"}, "'framing' is for frame=message"),
        ({"delivery": "at-most-once"}, "writing has: at-least-once, exactly-once"),
        ({"waitPeers": "-1"}, "at least 0"),
        ({"frame": "json"}, "message, arrow"),
        ({"includeHeaders": "true", "framing": "single"}, "needs framing=envelope"),
        ({"maxRows": "1"}, "writing zeromq has no option 'maxRows'"),
    ],
)
def test_wrong_options_of_writing(options, said):
    with pytest.raises(ValueError, match=r"option|socket|delivery") as error:
        WriteOptions.parse(ENDPOINT | options)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("options", "log"),
    [
        ({}, False),
        ({"socket": "LOG"}, True),
        ({"delivery": "exactly-once"}, True),
        ({"delivery": "at-least-once"}, False),
        ({"mode": "log"}, True),
        ({"socket": "push", "delivery": "exactly-once"}, False),
    ],
)
def test_options_that_select_a_log(options, log):
    assert is_for_log(ENDPOINT | options) == log


def test_defaults_of_writing_to_a_log():
    write = LogWriteOptions.parse(ENDPOINT | {"checkpointlocation": "/x"})
    assert (write.endpoint, write.frame, write.checkpoint) == (*ENDPOINT.values(), "message", "/x")
    assert write.ack_timeout_ms == 30_000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"endpoint": "tcp://a:1,tcp://b:2"}, "in one log only"),
        ({"attach": "bind"}, "it is the collector that binds"),
        ({"waitPeers": "2"}, "writing zeromq with socket=log has no option 'waitPeers'"),
        ({"mode": "live"}, "'mode' is 'live', but writing goes to a log"),
        ({"framing": "envelope"}, "writing zeromq with socket=log has no option 'framing'"),
        ({"zmq.sndhwm": "2"}, "which takes zmq.curve_serverkey"),
        ({"zmq.curve_secretkey": "x" * 40}, "env:NAME or file:PATH"),
        ({"batchId": "1"}, "needs 'queryName'"),
        ({"batchId": "-1", "queryName": "q"}, "at least 0"),
    ],
)
def test_wrong_options_of_writing_to_a_log(options, said):
    with pytest.raises(ValueError, match="option") as error:
        LogWriteOptions.parse(ENDPOINT | options)
    assert said in str(error.value)
