"""What ``zeroxide cat`` does with its socket: sends, receives, asks, answers, or converses."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from ...constants import DONTWAIT, EFSM, ETIMEDOUT, POLLERR, POLLIN, POLLOUT, REQ, STREAM
from ...error import Again, NotFlushed, ZMQError
from ...poll import Poller
from ...socket import Socket
from ..formats import Encoder, Malformed, Message, parts_of
from ..streams import LOOK_EVERY, STDOUT, TimedOut, check_reader, write_all
from .handler import Handler, envelope_and_body
from .labels import Labels
from .sockets import Abilities, milliseconds
from .source import Source

__all__ = ["Limits", "Talk"]

# The most messages that one call receives.
_BATCH = 4096


class Limits:
    """The limits of a conversation. Times are in seconds; None is no limit."""

    def __init__(
        self,
        *,
        count: int | None = None,
        interval: float | None = None,
        delay: float = 0.0,
        recv_timeout: float | None = None,
        send_timeout: float | None = None,
        peers: int = 0,
    ) -> None:
        self.count = count
        self.interval = interval
        self.delay = delay
        self.recv_timeout = recv_timeout
        self.send_timeout = send_timeout
        self.peers = peers


class Talk:
    """The messages that pass between a socket, the source, stdout and a command."""

    def __init__(
        self,
        socket: Socket[Any],
        abilities: Abilities,
        labels: Labels | None,
        source: Source | None,
        encode: Encoder,
        limits: Limits,
    ) -> None:
        self._socket = socket
        self._labels = labels
        messages: Any = labels or socket
        self._recv_batch: Callable[..., list[Message]] = messages.recv_batch
        self._send_batch: Callable[..., int] = messages.send_batch
        self._abilities = abilities
        self._source = source
        self._encode = encode
        self._limits = limits
        self._left = limits.count
        self._has_begun = False
        if abilities.asks or abilities.answers:
            socket.rcvtimeo = int(LOOK_EVERY * 1000)

    def run(self, handler: Handler | None, *, shows_requests: bool) -> None:
        """Goes on until the count, the end of the input or a timeout.

        Raises:
            TimedOut: If a message was not there, or could not be sent, in time.
            BrokenPipeError: If the reader of stdout has gone.
        """
        try:
            self._talk(handler, shows_requests)
        except Malformed:
            # The messages before it are sent.
            self._flush()
            raise
        self._flush()

    def _talk(self, handler: Handler | None, shows_requests: bool) -> None:
        can = self._abilities
        if handler is not None:
            self._serve(handler, shows_requests)
        elif not can.sends:
            self._receive()
        elif not can.receives:
            self._send()
        elif can.answers:
            self._answer()
        elif can.asks:
            self._ask()
        elif self._source is None:
            self._receive()
        else:
            self._converse(self._source)

    def _receive(self) -> None:
        for messages in self._arriving(_BATCH):
            self._write(messages)

    def _send(self) -> None:
        for messages in self._leaving():
            self._put(messages)

    def _ask(self) -> None:
        has_one_reply = self._socket.type == REQ
        for messages in self._leaving():
            for message in messages:
                if has_one_reply:
                    self._put_one(message)
                    self._write(self._next_one("reply"))
                    continue
                self._put([message])
                for reply in self._replies():
                    self._write([reply])

    def _answer(self) -> None:
        replies = iter(()) if self._source is None else self._source.messages()
        while self._left != 0:
            requests = self._next_one("message")
            self._count(requests)
            self._write(requests)
            reply = next(replies, None)
            if reply is None:
                return
            self._put_one(reply)

    def _serve(self, handler: Handler, shows_requests: bool) -> None:
        for requests in self._arriving(1):
            if shows_requests and self._abilities.sends:
                self._write(requests)
            envelope, body = envelope_and_body(self._socket.type, parts_of(requests[0]))
            if self._socket.type == STREAM and body == [b""]:
                continue  # a connection begins or ends; an empty reply would close it
            reply = handler.reply(body)
            if self._abilities.sends:
                self._put([[*envelope, *parts_of(reply)] if envelope else reply])
            else:
                self._write([reply])

    def _converse(self, source: Source) -> None:
        """Sends and receives at the same time. The end of the input does not end it."""
        limits = self._limits
        poller: Poller[Any] = Poller()
        # The end of the reader is noticed although nothing is written.
        poller.register(STDOUT, POLLERR)
        batches: Iterator[list[Message]] | None = source.batches()
        pending: list[Message] = []
        heard = time.monotonic()
        due = stuck = heard + limits.delay
        while True:
            now = time.monotonic()
            wants = not pending and batches is not None and now >= due
            if wants and source.descriptor is None:
                batches, pending = self._more(batches)
                stuck = now
                continue
            may_send = bool(pending) and now >= due
            poller.register(self._socket, POLLIN | (POLLOUT if may_send else 0))
            if source.descriptor is not None:
                poller.register(source.descriptor, POLLIN if wants else 0)
            ends = [] if limits.recv_timeout is None else [heard + limits.recv_timeout]
            if may_send and limits.send_timeout is not None:
                ends.append(stuck + limits.send_timeout)
            if now < due:
                ends.append(due)
            ready = self._wait(poller, min(ends) - now if ends else None)
            now = time.monotonic()
            if ready.get(self._socket, 0) & POLLIN:
                most = _BATCH if self._left is None else min(_BATCH, self._left)
                messages = self._recv_batch(most, flags=DONTWAIT)
                self._count(messages)
                self._write(messages)
                if self._left == 0:
                    return
                heard = time.monotonic()
            elif limits.recv_timeout is not None and now >= heard + limits.recv_timeout:
                raise TimedOut(f"no message within {limits.recv_timeout:g} s")
            if ready.get(self._socket, 0) & POLLOUT and may_send:
                self._begin(pending[0])
                sent = self._try_put(pending if limits.interval is None else pending[:1])
                if sent:
                    del pending[:sent]
                    stuck = now
                    due = max(due, now) + (limits.interval or 0.0)
            elif (
                may_send and limits.send_timeout is not None and now >= stuck + limits.send_timeout
            ):
                raise TimedOut(f"no peer took a message within {limits.send_timeout:g} s")
            if ready.get(source.descriptor):
                batches, pending = self._more(batches)
                stuck = now

    def _more(
        self, batches: Iterator[list[Message]] | None
    ) -> tuple[Iterator[list[Message]] | None, list[Message]]:
        batch = None if batches is None else next(batches, None)
        return (None, []) if batch is None else (batches, list(batch))

    def _arriving(self, most: int) -> Iterator[list[Message]]:
        """Batches of messages, until the count."""
        while self._left != 0:
            messages = self._next(most if self._left is None else min(most, self._left), "message")
            self._count(messages)
            yield messages

    def _replies(self) -> Iterator[Message]:
        """The replies to a request: as many as there are to a survey."""
        while True:
            try:
                yield from self._next(1, "reply")
            except ZMQError as error:
                if error.errno in (EFSM, ETIMEDOUT):
                    return
                raise

    def _next(self, most: int, what: str) -> list[Message]:
        """Waits for messages, and now and then looks whether stdout still has a reader."""
        timeout = self._limits.recv_timeout
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            pause = LOOK_EVERY
            if end is not None:
                pause = min(pause, max(0.0, end - time.monotonic()))
            try:
                return self._recv_batch(most, pause * 1000)
            except Again:
                check_reader()
            if end is not None and time.monotonic() >= end:
                raise TimedOut(f"no {what} within {timeout:g} s")

    def _next_one(self, what: str) -> list[Message]:
        """Like `_next` for REQ and REP. Half of a round trip's cost here would be that of batches of one."""
        if self._limits.recv_timeout is not None:
            return self._next(1, what)
        try:
            parts = self._socket.recv_multipart()
        except Again:
            check_reader()
            return self._next(1, what)
        return parts if len(parts) == 1 else [parts]  # type: ignore[return-value]

    def _count(self, messages: list[Message]) -> None:
        if self._left is not None:
            self._left -= len(messages)

    def _wait(self, poller: Poller[Any], seconds: float | None) -> dict[Any, int]:
        """Waits for what is registered; returns what is ready."""
        ready = dict(poller.poll(None if seconds is None else max(0.0, seconds * 1000)))
        if ready.get(STDOUT):
            raise BrokenPipeError
        return ready

    def _leaving(self) -> Iterator[list[Message]]:
        """Batches of messages of the source, at their times, until the count."""
        if self._source is None:
            return
        left, interval, due = self._limits.count, self._limits.interval, 0.0
        for batch in self._source.batches():
            if left is not None:
                batch = batch[:left]
                left -= len(batch)
            if interval is None:
                if batch:
                    yield batch
            else:
                for message in batch:
                    now = time.monotonic()
                    time.sleep(max(0.0, due - now))
                    due = max(due, now) + interval
                    yield [message]
            if left == 0:
                return

    def _put(self, messages: list[Message]) -> None:
        """Sends messages; waits until there is room."""
        if not self._has_begun:
            if self._limits.delay:
                time.sleep(self._limits.delay)
            self._begin(messages[0])
        try:
            sent = self._send_batch(messages)
        except Again as error:
            raise TimedOut(str(error)) from None
        if sent < len(messages):
            raise TimedOut(
                f"{sent} of {len(messages)} messages were sent, and there was no room for the next"
                f" one within {self._limits.send_timeout:g} s"
            )

    def _put_one(self, message: Message) -> None:
        """Like `_put` for REQ and REP."""
        if not self._has_begun or not isinstance(message, bytes):
            self._put([message])
            return
        try:
            self._socket.send(message)
        except Again as error:
            raise TimedOut(str(error)) from None

    def _try_put(self, messages: list[Message]) -> int:
        try:
            return self._send_batch(messages, DONTWAIT)
        except Again:
            return 0

    def _begin(self, message: Message) -> None:
        """Waits for the peers, before the first message: those that subscribed to it, if it is published."""
        if self._has_begun:
            return
        self._has_begun = True
        if not self._limits.peers:
            return
        timeout = self._limits.send_timeout
        wait = None if timeout is None else milliseconds(timeout)
        topic = parts_of(message)[0] if self._labels is None else self._labels.topic(message)
        try:
            try:
                self._socket.wait_subscribed(topic, self._limits.peers, wait)
            except Again:
                raise
            except ZMQError:  # the type has no subscribers
                self._socket.wait_connected(count=self._limits.peers, timeout=wait)
        except Again as error:
            raise TimedOut(str(error)) from None

    def _flush(self) -> None:
        """Waits until the peers' kernels have what was sent."""
        timeout = self._limits.send_timeout
        if not self._abilities.sends:
            return
        try:
            self._socket.flush(None if timeout is None else milliseconds(timeout))
        except NotFlushed as error:
            raise TimedOut(str(error)) from None

    def _write(self, messages: list[Message]) -> None:
        if messages:
            write_all(self._encode(messages))
