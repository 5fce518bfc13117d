"""Moves messages between the machines of a node and its sockets, in a thread.

The thread keeps a node alive for its peers while the program does something else. Calls of the
program run in its own threads: they take the lock, change the machine, and send what it says,
which never waits.
"""

import contextlib
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

from .._native import zmq_poll
from ..constants import DONTWAIT, POLLIN, Errno
from ..context import Context
from ..error import Again, ContextTerminated, ZMQError, failure
from ..socket import Socket
from ._beacon import Beacon
from ._events import Event, Shout, Whisper
from ._gossip_machine import GossipMachine, ToClient
from ._node_machine import Connect, Disconnect, Forget, NodeMachine, Send

__all__ = ["Driver", "clock"]

_T = TypeVar("_T")

# Events that the program has not read, at most, and the bytes of their messages.
_MAX_EVENTS = 10_000
_MAX_BYTES = 64 * 1024 * 1024

# Messages taken from one socket before the other sockets and the timers have their turn.
_TURN = 100

# How long the mailbox of a peer keeps sending after this node has said goodbye, in ms.
_LINGER = 1000

# How long `close` waits for the thread, in seconds. It only has to say goodbye.
_PATIENCE = 5


def clock() -> float:
    """Returns the time that machines use."""
    return time.monotonic() * 1000


class Driver:
    """The sockets of a node, and the thread that serves them.

    Args:
        machine: The node.
        inbox: Its ROUTER.
        open_mailbox: Returns a DEALER for a peer, which is not connected yet.
        beacon: Its UDP socket; None if it sends no beacons.
        gossip: Its place in the gossip network, if it has one.
        gossip_clients: The ROUTER of the nodes that connect to it there; None if none can.
        gossip_remotes: The DEALERs of those that it connects to.
        context: The context of the sockets, if it is the node's own and ends with it.
    """

    def __init__(
        self,
        machine: NodeMachine,
        inbox: Socket[Any],
        open_mailbox: Callable[[], Socket[Any]],
        beacon: Beacon | None,
        gossip: GossipMachine | None,
        gossip_clients: Socket[Any] | None,
        gossip_remotes: Sequence[Socket[Any]],
        context: Context[Any] | None,
    ) -> None:
        self.machine = machine
        self._inbox = inbox
        self._open_mailbox = open_mailbox
        self._beacon = beacon
        self._gossip = gossip
        self._gossip_clients = gossip_clients
        self._gossip_remotes = list(gossip_remotes)
        self._context = context
        self._mailboxes: dict[UUID, Socket[Any]] = {}
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._events: deque[Event] = deque()
        self._bytes = 0
        self._is_read = False
        self._watchers: dict[object, Callable[[Event | None], None]] = {}
        self._wakers: dict[object, Callable[[], None]] = {}
        self._is_closing = False
        self._is_closed = False
        self._error: BaseException | None = None
        self._process = os.getpid()
        self._wake = os.pipe()
        for descriptor in self._wake:
            os.set_blocking(descriptor, False)
        self._thread = threading.Thread(
            target=self._run, name=f"zeroxide_node_{machine.name}", daemon=True
        )
        self._thread.start()

    @property
    def dropped(self) -> int:
        return self.machine.dropped + (self._gossip.dropped if self._gossip is not None else 0)

    def check(self) -> None:
        """Raises the error of a node that is closed or has failed."""
        with self._own_lock:
            self._check()

    def call(self, function: Callable[[NodeMachine], _T]) -> _T:
        """Calls a function with the machine, and carries out the machine's commands."""
        with self._own_lock:
            self._check()
            result = function(self.machine)
            self._carry_out()
            return result

    def look(self, function: Callable[[NodeMachine], _T]) -> _T:
        """Calls a function that only looks at the machine, which works on a closed node, too."""
        with self._own_lock:
            return function(self.machine)

    def watch(self, key: object, watcher: Callable[[Event | None], None]) -> None:
        """Calls a function with each event from now on, and with None at the end, under the lock of the node."""
        with self._own_lock:
            self._check()
            self._watchers[key] = watcher

    def unwatch(self, key: object) -> None:
        with self._own_lock:
            self._watchers.pop(key, None)

    def take(self) -> Event | None:
        """Returns the next event, or None if there is none now.

        Raises:
            ZMQError: The node is closed, and there is no event any more.
        """
        with self._own_lock:
            self._is_read = True
            if not self._events:
                self._check()
                return None
            was_stalled = self._is_stalled
            event = self._events.popleft()
            self._bytes -= _size(event)
            if was_stalled and not self._is_stalled:
                self._nudge()
            return event

    def wait(self, timeout: float | None) -> Event | None:
        """Waits for the next event, up to `timeout` ms."""
        end = None if timeout is None else clock() + timeout
        with self._own_lock:
            while (event := self.take()) is None:
                left = None if end is None else (end - clock()) / 1000
                if left is not None and left <= 0:
                    return None
                self._changed.wait(left)
            return event

    def wait_for(self, condition: Callable[[NodeMachine], bool], timeout: float) -> None:
        """Waits until a condition is true, up to `timeout` ms."""
        end = clock() + timeout
        with self._own_lock:
            while not condition(self.machine) and (left := end - clock()) > 0:
                self._check()
                self._changed.wait(left / 1000)

    def wake_later(self, key: object, waker: Callable[[], None]) -> None:
        """Calls a function once, when there is an event or the end."""
        with self._own_lock:
            if self._events or self._is_closed:
                waker()
            else:
                self._wakers[key] = waker

    def forget_waker(self, key: object) -> None:
        with self._own_lock:
            self._wakers.pop(key, None)

    def close(self) -> None:
        """Says goodbye, and waits until the sockets are closed."""
        if self._process != os.getpid():
            return
        with self._own_lock:
            self._is_closing = True
            self._nudge()
        if threading.current_thread() is not self._thread:
            self._thread.join(_PATIENCE)

    # The thread.

    def _run(self) -> None:
        try:
            while not self._is_closing:
                self._step()
            with self._lock:
                self.machine.handle_close()
                self._carry_out()
        except ContextTerminated:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._end()
            if self._context is not None:
                self._context.term(timeout=2 * _LINGER)

    def _step(self) -> None:
        with self._lock:
            self._carry_out()
            sources: list[tuple[Any, int]] = [(self._wake[0], POLLIN)]
            sources += [(socket, POLLIN) for socket in self._sockets()]
            due = self.machine.poll_timeout()
            if self._gossip is not None:
                due = min(due, self._gossip.poll_timeout())
        zmq_poll(sources, max(0, math.ceil(due - clock())))
        with self._lock:
            self._take_everything()

    def _sockets(self) -> list[Any]:
        sockets: list[Any] = [*self._gossip_remotes]
        if not self._is_stalled:
            sockets.append(self._inbox)
        if self._beacon is not None:
            sockets.append(self._beacon)
        if self._gossip_clients is not None:
            sockets.append(self._gossip_clients)
        return sockets

    def _take_everything(self) -> None:
        # Messages first: a peer whose answer has arrived is alive, however late this process reads it.
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake[0], 1024)
        has_read = not self._is_stalled
        self._take_messages()
        self._take_gossip()
        if self._beacon is not None:
            for _ in range(_TURN):
                if (received := self._beacon.receive()) is None:
                    break
                self.machine.handle_beacon(*received, clock())
        self.machine.handle_timeout(clock(), has_read=has_read)
        self._carry_out()

    def _take_messages(self) -> None:
        for _ in range(_TURN):
            if self._is_stalled:
                break
            try:
                parts = self._inbox.recv_multipart(DONTWAIT)
            except Again:
                break
            self.machine.handle_message(parts, clock())
            self._carry_out()

    def _take_gossip(self) -> None:
        if self._gossip is None:
            return
        if self._gossip_clients is not None:
            for parts in _messages(self._gossip_clients):
                self._gossip.handle_client(parts[0], parts[1:], clock())
                self._carry_out()
        for number, remote in enumerate(self._gossip_remotes):
            for parts in _messages(remote):
                self._gossip.handle_remote(number, parts, clock())
                self._carry_out()
        self._gossip.handle_timeout(clock())

    # Commands and events, under the lock.

    def _carry_out(self) -> None:
        if self._gossip is not None:
            self._carry_out_gossip(self._gossip)
        while (command := self.machine.poll_command()) is not None:
            if isinstance(command, Send):
                self._send(command)
            elif isinstance(command, Connect):
                self._connect(command)
            elif isinstance(command, Disconnect):
                mailbox = self._mailboxes.pop(command.peer, None)
                if mailbox is not None:
                    mailbox.close(linger=_LINGER if command.drains else 0)
            elif isinstance(command, Forget):
                if self._gossip is not None:
                    self._gossip.forget(command.peer.hex.upper())
            elif self._beacon is not None:
                self._beacon.send(command.beacon)
        while (event := self.machine.poll_event()) is not None:
            self._report(event)

    def _carry_out_gossip(self, gossip: GossipMachine) -> None:
        while (command := gossip.poll_command()) is not None:
            try:
                if not isinstance(command, ToClient):
                    self._gossip_remotes[command.remote].send(command.frame, DONTWAIT)
                elif self._gossip_clients is not None:
                    self._gossip_clients.send_multipart([command.client, command.frame], DONTWAIT)
            except Again:
                gossip.handle_full(command, clock())
            except ZMQError as error:
                if error.errno != Errno.EHOSTUNREACH or not isinstance(command, ToClient):
                    raise
                gossip.handle_gone(command.client)
        while (news := gossip.poll_news()) is not None:
            self.machine.handle_announcement(*news, clock())

    def _connect(self, command: Connect) -> None:
        mailbox = None
        try:
            mailbox = self._open_mailbox()
            mailbox.connect(command.endpoint)
        except ContextTerminated:
            raise
        except (ZMQError, UnicodeError):  # a peer may name any bytes as its endpoint
            if mailbox is not None:
                mailbox.close(linger=0)
            self.machine.handle_failure(command.peer)
        else:
            self._mailboxes[command.peer] = mailbox

    def _send(self, command: Send) -> None:
        mailbox = self._mailboxes.get(command.peer)
        if mailbox is None:
            return
        try:
            mailbox.send_multipart(command.parts, DONTWAIT)
        except Again:
            self.machine.handle_full(command.peer)

    def _report(self, event: Event) -> None:
        for watcher in list(self._watchers.values()):
            watcher(event)
        if self._is_full and not self._is_read:
            self.machine.dropped += 1
        else:
            self._events.append(event)
            self._bytes += _size(event)
        self._notify()

    def _notify(self) -> None:
        self._changed.notify_all()
        wakers, self._wakers = self._wakers, {}
        for waker in wakers.values():
            waker()

    @property
    def _is_full(self) -> bool:
        return len(self._events) >= _MAX_EVENTS or self._bytes >= _MAX_BYTES

    @property
    def _is_stalled(self) -> bool:
        """Whether messages wait in the inbox until the program reads. They do not wait for one that never reads."""
        return self._is_read and self._is_full

    @property
    def _own_lock(self) -> threading.RLock:
        """The lock, in the process that made the node: after a fork, it may be held by a thread that does not exist."""
        if self._process != os.getpid():
            raise failure(
                Errno.ENOTSOCK,
                f"this node belongs to process {self._process}; make a new one after fork()",
            )
        return self._lock

    def _check(self) -> None:
        if self._error is not None:
            raise self._error
        if self._is_closing or self._is_closed:
            raise failure(Errno.ENOTSOCK, "this node is closed")

    def _nudge(self) -> None:
        if self._is_closed:
            return
        with contextlib.suppress(OSError):  # a full pipe wakes the thread, too
            os.write(self._wake[1], b"\0")

    def _end(self) -> None:
        with self._lock:
            self._is_closed = True
            sockets = [*self._mailboxes.values(), *self._gossip_remotes, self._inbox]
            if self._gossip_clients is not None:
                sockets.append(self._gossip_clients)
            # A peer that cannot be reached must not keep the context from ending.
            for socket in sockets:
                socket.close(linger=_LINGER)
            if self._beacon is not None:
                self._beacon.close()
            self._mailboxes.clear()
            for descriptor in self._wake:
                os.close(descriptor)
            for watcher in list(self._watchers.values()):
                watcher(None)
            self._notify()


def _messages(socket: Socket[Any]) -> list[list[bytes]]:
    messages: list[list[bytes]] = []
    with contextlib.suppress(Again):
        for _ in range(_TURN):
            messages.append(socket.recv_multipart(DONTWAIT))
    return messages


def _size(event: Event) -> int:
    return sum(map(len, event.content)) if isinstance(event, (Whisper, Shout)) else 0
