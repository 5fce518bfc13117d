"""An endpoint: one node of a cluster, with sockets, threads and a clock."""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol, Self

import zeroxide as zmq

from . import commands
from .channels import Channels
from .document import Merged
from .listener import ChannelListener, Frames
from .message import Member, Message, Work
from .node import Node
from .pool import HandlerPool
from .timing import Timing

LOG = logging.getLogger(__name__)

# The errors of a malformed frame. ZMQError: it has an address that no socket accepts.
_OF_FRAMES = (ArithmeticError, LookupError, TypeError, ValueError, zmq.ZMQError)

# The channel of the replica, and the lane of all that reads or changes it.
DOCUMENT = "document"

# How long a leaving endpoint may take to deliver its last frames, in ms.
LINGER = 200

# A handler gets the messages of one channel, in the order in which they arrive.
MessageHandler = Callable[[Message], Any]


class Replica(Protocol):
    """The shared state of a cluster. `Document` is one."""

    def vector(self) -> bytes:
        """Returns how much this replica has."""

    def missing(self, vector: bytes) -> bytes:
        """Returns a fragment with everything that a replica with this vector lacks, empty if it lacks nothing."""

    def merge(self, body: bytes) -> Merged:
        """Merges a fragment."""


class Endpoint:
    """Sends messages to all endpoints of its cluster, and handles theirs. Any thread may call any method.

    Without `join`, it is the host of a new cluster. `join` is the address of any of its endpoints.
    """

    def __init__(
        self,
        address: str = "tcp://127.0.0.1:*",
        *,
        join: str = "",
        name: str = "",
        web: str = "",
        replica: Replica | None = None,
        breadth: int = 4,
        timing: Timing | None = None,
        threads: int = 4,
    ) -> None:
        timing = timing or Timing()
        self.id = uuid.uuid4().hex
        self._replica = replica
        self._handlers: dict[str, MessageHandler] = {}
        self._workers: dict[str, Callable[[bytes], bytes]] = {}
        self._confirmations: dict[int, Callable[[], Any]] = {}
        self._futures: dict[str, Future[bytes]] = {}
        self._watchers: list[Callable[[], Any]] = []
        self._is_closed = False
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._pool = HandlerPool(threads)
        self._context = zmq.Context()
        self._channels = Channels(self._context, address, self.id)
        self.address = self._channels.address
        self.name = name or self.id[:8]
        me = Member(self.id, self.name, self.address, web)
        self._node = Node(me, join, time.monotonic(), breadth=breadth, timing=timing)
        self._obey()
        self._listener = ChannelListener(self, timing.beat / 4)

    def start(self) -> Self:
        """Opens the channels. Handlers that are added before miss no message."""
        self._listener.start()
        return self

    def close(self) -> None:
        """Leaves the cluster. Calls that still wait for work to be done are cancelled."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        if self._listener.is_alive():
            self._listener.close()
        with self._using() as node:
            node.leave()
        self._pool.close()
        for future in self._futures.values():
            future.cancel()
        self._channels.close(LINGER)
        self._context.term()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def is_host(self) -> bool:
        return self._node.is_host

    @property
    def is_synced(self) -> bool:
        """Whether it is in a tree with a host, and misses no publication of its parent."""
        return self._node.is_synced

    @property
    def epoch(self) -> int:
        """The number of hosts that the cluster has had."""
        return self._node.epoch

    @property
    def members(self) -> list[Member]:
        """The cluster: the host first, and parents before children."""
        return self._node.members

    @property
    def pending(self) -> int:
        """The number of own messages that the host has not published yet."""
        return self._node.pending

    @property
    def load(self) -> int:
        """The number of calls of handlers that wait or run."""
        return self._pool.load

    def handle(self, channel: str, handler: MessageHandler) -> None:
        """Sets the handler of a channel. It runs on the pool, and does not get this endpoint's own messages."""
        self._handlers[channel] = handler

    def offer(self, task: str, worker: Callable[[bytes], bytes]) -> None:
        """Sets the function that does a kind of work, which is the same on all endpoints."""
        self._workers[task] = worker

    def watch(self, watcher: Callable[[], Any]) -> None:
        """Calls a function after a change of the members or the replica. It must not block."""
        self._watchers.append(watcher)

    def send(self, channel: str, body: bytes, confirmed: Callable[[], Any] | None = None) -> None:
        """Sends a message to all other endpoints. `confirmed` is called when the host has published it."""
        with self._using() as node:
            # A host publishes at once.
            serial = node.send(channel, body, time.monotonic())
            if confirmed is not None:
                self._confirmations[serial] = confirmed

    def share(self, fragment: bytes, confirmed: Callable[[], Any] | None = None) -> None:
        """Merges a fragment into the own replica, and sends it to the others."""
        self._merge_and_fill(fragment, is_known=True)
        self.send(DOCUMENT, fragment, confirmed)

    def submit(self, task: str, body: bytes) -> Future[bytes]:
        """Has work done by the endpoint that has the least to do."""
        future: Future[bytes] = Future()
        work = Work(uuid.uuid4().hex, self.id, task, body)
        with self._using() as node:
            self._futures[work.id] = future
            node.submit(work, time.monotonic())
        return future

    def wait_for(self, condition: Callable[[], Any], timeout: float | None = None) -> bool:
        """Waits until a condition is true, which is looked at after each change; returns whether it is."""
        with self._changed:
            return bool(self._changed.wait_for(condition, timeout))

    # Called by the listener.

    def inbound(self) -> tuple[zmq.Socket | None, zmq.Socket]:
        with self._lock:
            return self._channels.sub, self._channels.pull

    def wait_for_room(self, seconds: float) -> bool:
        has_room = self._pool.wait_for_room(seconds)
        if not has_room:
            with self._using() as node:
                node.handle_pause(time.monotonic())
                node.handle_tick(time.monotonic())
        return has_room

    def on_frames(self, above: Frames, below: Frames) -> None:
        with self._using() as node:
            node.load = self._pool.load
            for frames, handle in ((above, node.handle_above), (below, node.handle_below)):
                for frame in frames:
                    try:
                        if frame is None:
                            raise ValueError("no frame")
                        handle(frame, time.monotonic())
                        self._obey()
                    except _OF_FRAMES as error:
                        node.malformed += 1
                        LOG.warning("a malformed frame was ignored: %r", error)
            node.handle_tick(time.monotonic())

    # The node's commands.

    @contextmanager
    def _using(self) -> Iterator[Node]:
        with self._changed:
            yield self._node
            self._obey()
            self._changed.notify_all()

    def _obey(self) -> None:
        call = self._pool.call
        while (command := self._node.poll_command()) is not None:
            match command:
                case commands.Publish(topic, frame):
                    self._channels.publish(topic, frame)
                case commands.Push(frame):
                    self._channels.push(frame)
                case commands.Tell(address, frame):
                    self._channels.tell(address, frame)
                case commands.Connect(address):
                    self._channels.connect(address)
                case commands.Deliver(message):
                    call(message.channel, self._deliver, message)
                case commands.Confirm(serial):
                    call("confirmations", self._confirm, serial)
                case commands.Offer():
                    call(DOCUMENT, self._offer_replica)
                case commands.Snapshot():
                    call(DOCUMENT, self._take_snapshot, command)
                case commands.Merge(body, vector):
                    call(DOCUMENT, self._merge, body, vector)
                case commands.Run(work):
                    # Every piece of work has its own lane.
                    call(work.id, self._work, work)
                case commands.Finish():
                    call("results", self._finish, command)
                case commands.Tree():
                    call("members", self._notify)

    # Calls on the pool.

    def _deliver(self, message: Message) -> None:
        if message.channel == DOCUMENT:
            self._merge_and_fill(message.body, is_known=True)
        elif handler := self._handlers.get(message.channel):
            handler(message)

    def _confirm(self, serial: int) -> None:
        with self._lock:
            confirmed = self._confirmations.pop(serial, None)
        if confirmed is not None:
            confirmed()

    def _offer_replica(self) -> None:
        vector = self._replica.vector() if self._replica else b""
        with self._using() as node:
            node.sync(vector)

    def _take_snapshot(self, snapshot: commands.Snapshot) -> None:
        body = vector = b""
        if self._replica:
            body, vector = self._replica.missing(snapshot.vector), self._replica.vector()
        with self._using() as node:
            node.state(snapshot, body, vector)

    def _merge(self, body: bytes, vector: bytes | None) -> None:
        self._merge_and_fill(body, is_known=False)
        if self._replica and vector and (mine := self._replica.missing(vector)):
            self.send(DOCUMENT, mine)

    def _merge_and_fill(self, body: bytes, *, is_known: bool) -> None:
        """Merges a fragment, and passes on the news, except for the fragment itself if the children have it."""
        if self._replica is None:
            return
        merged = self._replica.merge(body)
        with self._using() as node:
            if merged.is_held:
                node.doubt()
            if merged.news and (merged.has_released or not is_known):
                node.fill(merged.news)
        self._notify()

    def _work(self, work: Work) -> None:
        result, problem = b"", ""
        try:
            result = self._workers[work.task](work.body)
        except Exception as error:
            problem = f"{work.task} failed on {self._node.me.name}: {error!r}"
        with self._using() as node:
            node.done(work, result, problem)

    def _finish(self, finish: commands.Finish) -> None:
        with self._lock:
            future = self._futures.pop(finish.id)
        if finish.error:
            future.set_exception(RuntimeError(finish.error))
        else:
            future.set_result(finish.result)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
        for watcher in self._watchers:
            watcher()
