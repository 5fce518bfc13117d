"""Logging over PUB sockets."""

import importlib
import logging
import os
import re
import signal
import subprocess
import sys

import pytest
from support import PATIENCE


@pytest.fixture
def handlers(zmq):
    return importlib.import_module(f"{zmq.__name__}.log.handlers")


@pytest.fixture
def published(zmq, sockets):
    """A PUB socket with a subscriber, and a function that receives its messages."""
    pub = sockets.bound(zmq.XPUB, "inproc")
    sub = sockets.connected(zmq.SUB, pub)
    sub.subscribe(b"")
    assert pub.recv() == b"\x01"
    return pub, sub.recv_multipart


@pytest.fixture
def logger():
    logger = logging.Logger("test", logging.DEBUG)
    yield logger
    for handler in list(logger.handlers):
        logger.removeHandler(handler)


def test_topics(handlers, published, logger):
    pub, seen = published
    handler = handlers.PUBHandler(pub)
    assert handler.socket is pub and handler.ctx is pub.context
    logger.addHandler(handler)
    logger.info("hello %s", "world")
    assert seen() == [b"INFO", b"hello world\n"]
    handler.root_topic = "app"
    logger.info("disk.sda::almost full")
    assert seen() == [b"app.INFO.disk.sda", b"almost full\n"]
    handler.setRootTopic("")
    logger.warning("a::b::c")
    topic, text = seen()
    assert topic == b"WARNING.a"
    assert re.fullmatch(rb"WARNING test_log.py:\d+ - b::c\n", text)
    assert handlers.TOPIC_DELIM == "::"


def test_anything_can_be_logged(handlers, published, logger):
    pub, seen = published
    logger.addHandler(handlers.PUBHandler(pub, root_topic="r"))
    logger.info({"a": 1})
    assert seen() == [b"r.INFO", b"{'a': 1}\n"]
    logger.info("Ørsted")
    assert seen()[1] == "Ørsted\n".encode()


def test_other_handlers_get_the_record_unchanged(handlers, published, logger):
    pub, seen = published
    records = []

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    logger.addHandler(handlers.PUBHandler(pub))
    logger.addHandler(Keep())
    logger.info("topic::text")
    assert seen() == [b"INFO.topic", b"text\n"]
    assert records == ["topic::text"]


def test_formatters(handlers, published, logger):
    pub, seen = published
    handler = handlers.PUBHandler(pub)
    logger.addHandler(handler)
    handler.setFormatter(logging.Formatter("debug %(message)s"), logging.DEBUG)
    logger.debug("x")
    assert seen()[1] == b"debug x"
    logger.info("x")
    assert seen()[1] == b"x\n"
    handler.setFormatter(logging.Formatter("all %(message)s"))
    logger.debug("x")
    logger.critical("x")
    assert [seen()[1] for _ in range(2)] == [b"all x"] * 2


@pytest.mark.zeroxide_only
def test_levels_of_the_program(handlers, published, logger):
    pub, seen = published
    logger.addHandler(handlers.PUBHandler(pub))
    logging.addLevelName(25, "NOTICE")
    logger.log(25, "x")
    assert seen() == [b"NOTICE", b"x"]


def test_handler_that_binds_its_socket(zmq, handlers, context, logger):
    handler = handlers.PUBHandler("inproc://log-test", context)
    assert handler.socket.type == zmq.PUB and handler.ctx is context
    handler.socket.close()


def test_topic_logger(handlers, published):
    pub, seen = published
    logger = handlers.TopicLogger("topics", logging.DEBUG)
    logger.addHandler(handlers.PUBHandler(pub))
    logger.log(logging.INFO, "some.topic", "text %d", 5)
    assert seen() == [b"INFO.some.topic", b"text 5\n"]


@pytest.mark.zeroxide_only  # pyzmq's methods all log as critical
def test_topic_logger_methods(handlers, published):
    pub, seen = published
    logger = handlers.TopicLogger("topics", logging.DEBUG)
    logger.addHandler(handlers.PUBHandler(pub))
    for name in ("debug", "info", "warning", "error", "critical"):
        getattr(logger, name)("topic", "text %d", 5)
        topic, text = seen()
        assert topic == f"{name.upper()}.topic".encode()
        assert b"text 5" in text
        # The location of the logging call, not of this package's code.
        assert name == "info" or b" test_log.py:" in text


def test_the_watcher(zmq, sockets):
    pub = sockets.bound(zmq.XPUB)
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            f"{zmq.__name__}.log",
            pub.last_endpoint.decode(),
            "-t",
            "app",
            "--separator",
            " > ",
            "--align",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert pub.recv() == b"\x01app"
    pub.send_multipart([b"app.INFO", b"short\n"])
    pub.send_multipart([b"app.WARNING.disk", b"long\n"])
    pub.send_multipart([b"app.INFO", b"aligned\n"])
    lines = [process.stdout.readline() for _ in range(3)]
    assert lines[0] == "app.INFO > short\n"
    assert lines[1] == "app.WARNING.disk > long\n"
    assert lines[2] == "app.INFO   .     > aligned\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=PATIENCE)[1] == ""


@pytest.mark.zeroxide_only
def test_lines_of_the_watcher(zmq):
    main = importlib.import_module(f"{zmq.__name__}.log.__main__")
    parser = main._parser()
    plain = main.Printer(parser.parse_args(["tcp://x"]))
    assert plain.line("a.INFO", "text\n") == "a.INFO | text"
    colored = main.Printer(parser.parse_args(["tcp://x", "--color", "--timestamp"]))
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d \033\[91mERROR \| x\033\[39m", colored.line("ERROR", "x")
    )
