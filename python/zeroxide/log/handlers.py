"""A handler that publishes log records, and a logger for messages with topics.

    handler = PUBHandler("tcp://127.0.0.1:12345", root_topic="app")
    logging.getLogger("app").addHandler(handler)

A subscriber gets two parts: the topic, such as ``app.INFO.disk``, and the text.
"""

import logging
from collections.abc import Callable
from copy import copy
from typing import Any

from .._exports import exports_only
from ..constants import PUB
from ..context import Context
from ..socket import Socket

__all__ = ["TOPIC_DELIM", "PUBHandler", "TopicLogger"]


def __dir__() -> list[str]:
    return exports_only(globals())


# Between topic and text: ``log.info("disk::almost full")``.
TOPIC_DELIM = "::"


class PUBHandler(logging.Handler):
    """Publishes log records on a PUB socket.

    A subscriber gets two parts: the topic ``root.LEVEL.topic``, and the text. Text before
    ``::`` in a message is its topic.

    Args:
        interface_or_socket: A PUB socket that is bound or connected, or an address to bind
            one to.
        context: The context that makes the socket; None makes a new one.
        root_topic: The beginning of every topic.

    Source:
        pyzmq's ``zmq.log.handlers.PUBHandler``
    """

    formatters: dict[int, logging.Formatter | None]
    """The formatters by level; other levels have the default of `logging`."""
    ctx: Context[Any]
    """The context of the socket."""
    socket: Socket[Any]
    """The PUB socket."""

    def __init__(
        self,
        interface_or_socket: "str | Socket[Any]",
        context: Context[Any] | None = None,
        root_topic: str = "",
    ) -> None:
        super().__init__()
        if context is not None and not isinstance(context, Context):
            raise TypeError(f"context takes a zmq.Context, not {context!r}")
        self.root_topic = root_topic
        where = "%(levelname)s %(filename)s:%(lineno)d - %(message)s"
        self.formatters = {
            logging.DEBUG: logging.Formatter(f"{where}\n"),
            logging.INFO: logging.Formatter("%(message)s\n"),
            logging.WARNING: logging.Formatter(f"{where}\n"),
            logging.ERROR: logging.Formatter(f"{where} - %(exc_info)s\n"),
            logging.CRITICAL: logging.Formatter(f"{where}\n"),
        }
        if isinstance(interface_or_socket, Socket):
            self.socket = interface_or_socket
            self.ctx = self.socket.context
        else:
            self.ctx = context or Context()
            self.socket = self.ctx.socket(PUB)
            self.socket.bind(interface_or_socket)

    @property
    def root_topic(self) -> str:
        """The beginning of every topic."""
        return self._root_topic

    @root_topic.setter
    def root_topic(self, value: str) -> None:
        self.setRootTopic(value)

    def setRootTopic(self, root_topic: str | bytes) -> None:
        """Sets `root_topic`.

        Args:
            root_topic: The beginning of every topic; empty if topics begin with the level.

        Raises:
            TypeError: It is not text.
        """
        if isinstance(root_topic, bytes):
            root_topic = root_topic.decode()
        if not isinstance(root_topic, str):
            raise TypeError(f"root_topic takes text, not {root_topic!r}")
        self._root_topic = root_topic

    def setFormatter(self, fmt: logging.Formatter | None, level: int = logging.NOTSET) -> None:
        """Sets the formatter.

        Args:
            fmt: The formatter; None for the default of `logging`.
            level: The level it is for; ``logging.NOTSET`` means all.

        Raises:
            TypeError: `level` is not a number.
        """
        if not isinstance(level, int):
            raise TypeError(f"level takes a number such as logging.INFO, not {level!r}")
        if level == logging.NOTSET:
            self.formatters = dict.fromkeys(self.formatters, fmt)
        else:
            self.formatters[level] = fmt

    def format(self, record: logging.LogRecord) -> str:
        """Makes the text of a record.

        Args:
            record: The record.

        Returns:
            The text.
        """
        formatter = self.formatters.get(record.levelno) or logging.Formatter()
        return formatter.format(record)

    def emit(self, record: logging.LogRecord) -> None:
        """Publishes a record.

        Args:
            record: The record.
        """
        topic, delimiter, message = str(record.msg).partition(TOPIC_DELIM)
        if delimiter:
            # Other handlers get the record unchanged.
            record = copy(record)
            record.msg = message
        try:
            body = self.format(record).encode()
        except Exception:
            self.handleError(record)
            return
        topics = [self.root_topic, record.levelname, topic if delimiter else ""]
        name = ".".join(part for part in topics if part)
        self.socket.send_multipart([name.encode("utf-8", "replace"), body])


class TopicLogger(logging.Logger):
    """A logger whose methods take a topic before the message.

    ``logger.info("disk", "almost full")`` is ``logging``'s ``info("disk::almost full")``.

    Source:
        pyzmq's ``zmq.log.handlers.TopicLogger``
    """

    def log(  # type: ignore[override]
        self, level: int, topic: str, msg: str, *args: Any, **kwargs: Any
    ) -> None:
        """Logs a message under a topic.

        Args:
            level: The level, as in `logging`.
            topic: The topic.
            msg: The message.
            *args: The values for the message's placeholders.
            **kwargs: Further arguments of `logging.Logger.log`.
        """
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        super().log(level, f"{topic}{TOPIC_DELIM}{msg}", *args, **kwargs)


def _with_topic(name: str) -> Callable[..., None]:
    method = getattr(logging.Logger, name)

    def log(self: TopicLogger, topic: str, msg: str, *args: Any, **kwargs: Any) -> None:
        # The caller is one frame further up than `logging` assumes.
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        method(self, f"{topic}{TOPIC_DELIM}{msg}", *args, **kwargs)

    log.__name__ = name
    log.__doc__ = f"`logging.Logger.{name}`, with a topic in front."
    return log


for _name in ("debug", "info", "warn", "warning", "error", "exception", "critical", "fatal"):
    # Python 3.13 has removed `warn`.
    if hasattr(logging.Logger, _name):
        setattr(TopicLogger, _name, _with_topic(_name))
