r"""Sends, receives and answers messages with a socket of any type, in a pipe.

A type that sends reads messages from stdin, one per line, unless --data or --file gives one.
A type that receives writes messages to stdout, one per line. REQ sends each message and writes its
reply. REP writes each request, and replies with --data, with the next line of stdin, or with the
output of the command of --exec. A type that does both, such as DEALER or PAIR, does both at once,
and goes on after the end of stdin: --count, --timeout or Ctrl-C ends it.

The group is the first part of a message of RADIO, unless --group names it, and of DISH. The number
of the peer is the first part of a message of SERVER and PEER. A PEER that connects sends messages
of one part to the first peer of --connect.

formats, for both directions unless a direction is named:
  lines    the bytes of a message and a line break; tabs between parts (see --separator)
  raw      only the bytes, without anything between messages; stdin as a whole is one message
  ascii    as lines, with a dot for each byte that is not printable ASCII; output only
  quoted   one line of "strings" with the escapes of C, one string per part
  hex      the same with \x68\x65\x78 for every byte; input may also be bare digits: 686578
  json     one list per line: ["text", {"base64": "/wA="}], with a string or an object per part
  msgpack  bin, or an array of bin for several parts
  length   the number of parts, and each part after its length, as 4-byte big-endian numbers
  no       nothing; output only
All formats but lines, raw, ascii and no keep every byte and the boundaries of parts.

exit codes:
  0    everything was sent and received
  1    an error, or a command of --exec that failed
  2    a mistake in the arguments
  124  a timeout
  A signal (Ctrl-C, SIGTERM, SIGPIPE) ends the command quietly; a shell adds 128 to its number.

examples:
  zeroxide cat push --connect tcp://127.0.0.1:5555 < lines.txt
  zeroxide cat pull --bind tcp://127.0.0.1:5555 | grep error
  zeroxide cat sub --connect tcp://feed:5556 --subscribe weather --count 10 --json
  zeroxide cat radio --bind tcp://*:5556 --group weather --wait 1 < lines.txt
  zeroxide cat dish --connect tcp://feed:5556 --join weather
  zeroxide cat pub --bind tcp://*:5556 --data weather --data sunny --interval 1
  zeroxide cat req --connect tcp://127.0.0.1:5557 --data "what time is it?" --timeout 2
  zeroxide cat rep --bind tcp://127.0.0.1:5557 --exec date
  zeroxide cat rep --bind ipc:///tmp/upper --exec "tr a-z A-Z"
  zeroxide cat pull --bind-local 5555 --length | zeroxide cat push --connect tcp://b:1 --length

with CURVE (see zeroxide keygen --name):
  zeroxide cat pull --bind tcp://*:5555 --key keys/server.key_secret --allow clients/
  zeroxide cat push --connect tcp://server:5555 --key alice.key_secret --server-key server.key

Options of nanocat and nngcat work under their names; types may be given as options (--push).
"""

import argparse
import os
import sys
from typing import Any

from ..._arguments import above, file, text
from ..._native import __version__
from ...context import Context
from ..formats import INPUT, OUTPUT, Malformed, make_decoder, make_encoder
from ..keys import add_keys
from ..streams import FAILED, TIMED_OUT, TimedOut, read_all
from .handler import Handler
from .sockets import Abilities, Types, names, open_socket, option_value
from .sockets import password as password_in
from .sockets import passwords as passwords_in
from .source import Fixed, Source, Typed
from .talk import Limits, Talk

__all__ = ["add_arguments", "run"]

# Options that stand for a format, and the short ones of nanocat.
_SHORT = {"ascii": "-A", "quoted": "-Q"}


def add_arguments(parser: Any) -> None:
    """Adds the arguments of ``zeroxide cat``."""
    kinds = Types(*names())
    parser.add_argument(
        "type",
        nargs="?",
        metavar="TYPE",
        type=kinds,
        choices=kinds.values,
        help=f"the socket's type: {', '.join(kinds.values)}",
    )
    flags = parser.add_argument_group("types as options")
    for name in kinds.values:
        for flag in (name, f"{name}0", "pair1") if name == "pair" else (name, f"{name}0"):
            flags.add_argument(
                f"--{flag}",
                dest="type_option",
                action="store_const",
                const=name,
                help=f"the same as the type {name}" if flag == name else argparse.SUPPRESS,
            )
    _add_peers(parser.add_argument_group("peers"))
    _add_sending(parser.add_argument_group("sending"))
    _add_receiving(parser.add_argument_group("receiving"))
    _add_limits(parser.add_argument_group("limits"))
    _add_security(parser.add_argument_group("security"))


def _add_peers(group: Any) -> None:
    for side, other, short in (("bind", "listen", "LX"), ("connect", "dial", "lx")):
        append: dict[str, Any] = {"dest": side, "action": "append", "default": []}
        group.add_argument(
            f"--{side}",
            f"--{other}",
            metavar="ENDPOINT",
            help=f"{side} to this endpoint, as in tcp://127.0.0.1:5555 (repeatable)",
            **append,
        )
        group.add_argument(
            f"-{short[0]}",
            f"--{side}-local",
            metavar="PORT",
            type=lambda port: f"tcp://127.0.0.1:{port}",
            help=f"{side} to tcp://127.0.0.1:PORT",
            **append,
        )
        group.add_argument(
            f"-{short[1]}",
            f"--{side}-ipc",
            f"--{side}-unix",
            metavar="PATH",
            type=lambda path: f"ipc://{path}",
            help=f"{side} to ipc://PATH",
            **append,
        )
    group.add_argument(
        "--identity",
        "--socket-name",
        metavar="TEXT",
        type=os.fsencode,
        help="the socket's routing id, by which a ROUTER addresses it",
    )
    group.add_argument(
        "--option",
        metavar="NAME=VALUE",
        type=option_value,
        action="append",
        default=[],
        help="set a socket option, as in rcvhwm=10 (repeatable)",
    )
    group.add_argument(
        "--compat",
        action="store_true",
        help="accepted for scripts of nngcat: connections are always made in the background",
    )
    group.add_argument("-v", "--verbose", action="store_true", help="write endpoints to stderr")
    group.add_argument(
        "-V", "--version", action="version", version=__version__, help="print the version and exit"
    )
    group.add_argument(
        "-q",
        "--silent",
        action="store_true",
        help="do not write the endpoints that the system chose",
    )


def _add_sending(group: Any) -> None:
    parts: dict[str, Any] = {"dest": "parts", "action": "append", "default": []}
    group.add_argument(
        "-D",
        "--data",
        metavar="TEXT",
        type=os.fsencode,
        help="the message to send; repeat it for a message of several parts",
        **parts,
    )
    group.add_argument(
        "-F",
        "--file",
        metavar="FILE",
        type=_contents,
        help="the same with a file's contents; - is stdin",
        **parts,
    )
    group.add_argument(
        "--input",
        metavar="FORMAT",
        type=INPUT,
        choices=INPUT.values,
        help=f"format of stdin: {', '.join(INPUT.values)} (default: that of the output, or lines)",
    )
    group.add_argument(
        "--exec",
        metavar="COMMAND",
        help="run this for each message: its stdin is the message, its stdout the reply",
    )
    group.add_argument(
        "--shell", action="store_true", help="let /bin/sh run --exec; otherwise no shell does"
    )
    group.add_argument(
        "--recv-only", action="store_true", help="with a type that does both: do not read stdin"
    )
    group.add_argument(
        "-i",
        "--interval",
        metavar="SEC",
        type=above(0.0, "seconds"),
        help="seconds between messages; --data is then repeated",
    )
    group.add_argument(
        "-d",
        "--delay",
        metavar="SEC",
        type=above(0.0, "seconds"),
        default=0.0,
        help="seconds to wait before the first message",
    )
    group.add_argument(
        "--wait",
        metavar="N",
        type=above(0, "peers"),
        default=0,
        help="before the first message, wait for N peers, for publishers N subscribers to it",
    )
    group.add_argument(
        "--group",
        metavar="GROUP",
        type=text,
        help="the group that RADIO sends all messages to",
    )
    group.add_argument(
        "--send-only", action="store_true", help="with a type that does both: end after sending"
    )


def _add_receiving(group: Any) -> None:
    group.add_argument(
        "--join",
        metavar="GROUP",
        type=os.fsencode,
        action="append",
        default=[],
        help="receive the messages to this group, with DISH (repeatable)",
    )
    group.add_argument(
        "--subscribe",
        metavar="TOPIC",
        type=os.fsencode,
        action="append",
        default=[],
        help="receive messages that begin with this (repeatable; default of SUB: all)",
    )
    group.add_argument(
        "--format",
        metavar="FORMAT",
        type=OUTPUT,
        choices=OUTPUT.values,
        help=f"format of stdout: {', '.join(OUTPUT.values)} (default: lines)",
    )
    for name in OUTPUT.values[:-1]:
        flags = [_SHORT[name], f"--{name}"] if name in _SHORT else [f"--{name}"]
        group.add_argument(
            *flags,
            dest="format",
            action="store_const",
            const=name,
            help=f"the same as --format {name}",
        )
    group.add_argument(
        "--separator",
        metavar="TEXT",
        type=os.fsencode,
        help="what is between parts in lines (default: tabs; input is split only with this option)",
    )
    group.add_argument(
        "--recv-maxsz",
        metavar="BYTES",
        type=above(0, "bytes"),
        help="disconnect peers that send larger messages; 0 for no limit",
    )


def _add_limits(group: Any) -> None:
    seconds: dict[str, Any] = {"metavar": "SEC", "type": above(0.0, "seconds")}
    group.add_argument(
        "--count",
        metavar="N",
        type=above(0, "messages"),
        help="end after N messages were received (sent, if the type only sends; exchanged, with REQ"
        " and REP); 0 for no limit",
    )
    group.add_argument(
        "--timeout", help="the default of --recv-timeout and --send-timeout", **seconds
    )
    group.add_argument(
        "--recv-timeout",
        "--receive-timeout",
        help="seconds without a message after which it ends",
        **seconds,
    )
    group.add_argument(
        "--send-timeout",
        help="seconds to wait for room, and at the end until messages are delivered",
        **seconds,
    )


def _add_security(group: Any) -> None:
    add_keys(group)
    group.add_argument("--user", metavar="NAME", type=text, help="be a PLAIN client with this name")
    group.add_argument(
        "--password-file", metavar="FILE", type=password_in, help="file with the password of --user"
    )
    group.add_argument(
        "--passwords",
        metavar="FILE",
        type=passwords_in,
        help="be a PLAIN server for the users in this file of lines NAME:PASSWORD",
    )


def _contents(path: str) -> bytes:
    if path == "-":
        return read_all()
    with open(file(path), "rb") as opened:
        return opened.read()


def run(options: argparse.Namespace) -> int:
    """Talks until the count, the end of the input, a timeout or a signal."""
    if options.type and options.type_option:
        options.fail(f"there are two types, {options.type} and {options.type_option}")
    kind = options.type or options.type_option
    if not kind:
        options.fail(f"TYPE is required: {', '.join(names())}")
    if not options.bind and not options.connect:
        options.fail("--bind or --connect is required")
    for name in ("recv_timeout", "send_timeout"):
        if getattr(options, name) is None:
            setattr(options, name, options.timeout)
    try:
        return _talk(kind, options)
    except TimedOut as error:
        print(f"zeroxide: {error}", file=sys.stderr)
        return TIMED_OUT
    except Malformed as error:
        print(f"zeroxide: {error}", file=sys.stderr)
        return FAILED


def _talk(kind: str, options: argparse.Namespace) -> int:
    handler = _handler(options)
    limits = Limits(
        count=options.count or None,
        interval=options.interval,
        delay=options.delay,
        recv_timeout=options.recv_timeout,
        send_timeout=options.send_timeout,
        peers=options.wait,
    )
    context: Context[Any] = Context()
    try:
        socket, can, labels = open_socket(context, kind, options)
        if handler is not None and (can.asks or not can.receives):
            options.fail(f"--exec answers messages, and {kind.upper()} receives none unasked")
        if options.send_only and can.sends:
            can = can._replace(receives=False)
        source = None if handler is not None else _source(options, can)
        # The output of a command has its own line breaks.
        shown = "lines" if handler is None or can.sends else "raw"
        encode = make_encoder(options.format or shown, options.separator)
        talk = Talk(socket, can, labels, source, encode, limits)
        talk.run(handler, shows_requests=options.format is not None)
        # The messages are flushed, so this does not wait.
        socket.close(linger=-1)
        context.term()
    except BaseException:
        context.destroy(linger=0)
        raise
    return FAILED if handler is not None and handler.failures else 0


def _handler(options: argparse.Namespace) -> Handler | None:
    if options.exec is None:
        if options.shell:
            options.fail("--shell requires --exec")
        return None
    if options.parts:
        options.fail("--exec makes the replies, so --data and --file are not possible")
    try:
        handler = Handler(
            options.exec,
            shell=options.shell,
            reads=_input_format(options) or "raw",
            writes=options.format or "raw",
        )
    except ValueError as error:
        options.fail(f"--exec: {options.exec!r} is no command: {str(error).lower()}")
    missing = handler.missing()
    if missing is not None:
        options.fail(f"--exec: there is no program {missing!r}")
    return handler


def _source(options: argparse.Namespace, can: Abilities) -> Source | None:
    """Where the messages come from; None if there are none to send."""
    if not can.sends:
        if options.parts:
            options.fail("--data and --file are for types that send")
        return None
    if options.parts:
        message = options.parts[0] if len(options.parts) == 1 else options.parts
        repeats = options.interval is not None or can.answers
        # Of a type that does both, the count is that of the messages received.
        times = options.count if can.asks or not can.receives else None
        if times is None:
            return Fixed(message, None if repeats else 1)
        return Fixed(message, times or None)
    if options.recv_only:
        return None
    decoder = make_decoder(_input_format(options) or "lines", options.separator)
    return Typed(decoder, watches=can.receives)


def _input_format(options: argparse.Namespace) -> str | None:
    if options.input is None and options.format in INPUT.values:
        return str(options.format)
    return None if options.input is None else str(options.input)
