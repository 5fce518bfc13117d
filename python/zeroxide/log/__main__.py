"""Prints the messages that a `PUBHandler` publishes.

python -m zeroxide.log tcp://127.0.0.1:12345 --timestamp --align
"""

import argparse
import contextlib
from datetime import datetime

from .._arguments import Parser
from ..constants import SUB
from ..context import Context

_COLORS = {
    "DEBUG": "\033[96m",
    "INFO": "\033[97m",
    "WARNING": "\033[33m",
    "ERROR": "\033[91m",
    "CRITICAL": "\033[91m",
}
_RESET = "\033[39m"


def main(arguments: list[str] | None = None) -> None:
    """Prints messages until Ctrl-C."""
    options = _parser().read(arguments)
    show = Printer(options)
    with Context() as context, context.socket(SUB) as sub:
        sub.linger = 0
        sub.subscribe(options.topic)
        sub.connect(options.zmq_pub_url)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                topic, message, *_ = sub.recv_multipart()
                print(show.line(topic.decode(), message.decode()), flush=True)


class Printer:
    """Formats messages as lines, according to the options."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        # The maximum widths of the parts of topics so far.
        self._widths: list[int] = []

    def line(self, topic: str, message: str) -> str:
        """One line without a newline."""
        options = self._options
        topics = topic.strip().split(".")
        level = next((part for part in topics if part in _COLORS), "")
        shown = self._aligned(topics) if options.align else topic.strip()
        line = f"{shown}{options.separator}{message.strip()}"
        if options.color and level:
            line = f"{_COLORS[level]}{line}{_RESET}"
        if options.timestamp:
            line = f"{datetime.now().strftime(options.dateformat)} {line}"
        return line

    def _aligned(self, topics: list[str]) -> str:
        self._widths += [0] * (len(topics) - len(self._widths))
        topics = topics + [" "] * (len(self._widths) - len(topics))
        self._widths = [
            max(len(part), width) for part, width in zip(topics, self._widths, strict=True)
        ]
        return ".".join(part.ljust(width) for part, width in zip(topics, self._widths, strict=True))


def _parser() -> Parser:
    parser = Parser(
        prog=f"python3 -m {__package__}", description="Prints the records of a PUBHandler."
    )
    parser.add_argument("zmq_pub_url", help="the publisher's endpoint, as in tcp://127.0.0.1:12345")
    parser.add_argument(
        "-t", "--topic", default="", help="show only messages whose topic begins with this"
    )
    parser.add_argument("--timestamp", action="store_true", help="show the time of receipt")
    parser.add_argument(
        "--separator", default=" | ", help="text between topic and message (default: %(default)r)"
    )
    parser.add_argument(
        "--dateformat",
        default="%Y-%m-%d %H:%M",
        help="format of --timestamp, as for strftime",
    )
    parser.add_argument("--align", action="store_true", help="align the parts of topics in columns")
    parser.add_argument("--color", action="store_true", help="color the messages by level")
    return parser


if __name__ == "__main__":
    main()
