"""A worker that exchanges heartbeats with its queue, and opens a new connection when the queue is silent."""

import enum
from abc import abstractmethod
from typing import TypeVar

from ._heartbeat import Backoff, Heartbeat
from ._waiting import Waiting, weight
from ._worker import WorkerMachine

__all__ = ["LINK", "BeatingWorker", "Word"]

R = TypeVar("R")

LINK = "queue"


class Word(enum.Enum):
    """What a queue may say beside requests."""

    HEARTBEAT = enum.auto()
    DISCONNECT = enum.auto()
    INVALID = enum.auto()


class BeatingWorker(WorkerMachine[R]):
    """The state of such a worker; the subclass knows the words of its protocol.

    Args:
        ready: The message that opens a conversation.
        beat: A heartbeat.
        heartbeat: How long the worker is silent at most, in ms.
        liveness: A queue that is silent for this many heartbeats is dead.
        backoff: The times between a queue's death and the next connection.
        now: The time.
    """

    def __init__(
        self,
        ready: list[bytes],
        beat: list[bytes],
        heartbeat: float,
        liveness: int,
        backoff: Backoff,
        now: float,
    ) -> None:
        super().__init__()
        self._hello = ready
        self._sign = beat
        self._beat = Heartbeat(heartbeat, liveness)
        self._backoff = backoff
        self._reconnects: float | None = None
        self._is_welcome = False
        # Whether the queue does not know this worker, because an exception has ended `run`.
        self._is_gone = False
        # Requests with their clients' addresses, and the one that is being answered.
        self._requests: Waiting[tuple[bytes, R]] = Waiting()
        self._current: tuple[bytes, R] | None = None
        self._start(now)

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        if self._reconnects is not None:
            return  # late: the worker has given up on this connection
        match self._read(parts):
            case Word.INVALID:
                self.drop()
                return
            case Word.DISCONNECT:
                # A queue that does not know this worker may be new. One that refused READY would refuse it again.
                self._lose(now + (0 if self._is_welcome else self._backoff.wait()))
                self.handle_timeout(now)
                return
            case (client, request):
                if self._requests.has_room:
                    self._requests.push((client, request), weight(parts))
                else:
                    self.drop()
        self._is_welcome = True
        self._beat.received(now)
        self._backoff.reset()

    def handle_timeout(self, now: float) -> None:
        if self._reconnects is not None:
            if now >= self._reconnects:
                self._reconnects = None
                self._reopen(LINK)
                self._start(now)
        elif self._beat.is_dead(now):
            self._lose(now + self._backoff.wait())
        elif self._beat.is_due(now):
            self._beat.sent(now)
            self._send(LINK, *self._sign)

    def poll_timeout(self) -> float | None:
        return self._beat.next() if self._reconnects is None else self._reconnects

    def poll_request(self) -> R | None:
        self._current = self._requests.pop()
        return None if self._current is None else self._current[1]

    def handle_reply(self, request: R, parts: list[bytes], now: float) -> None:
        if self._current is None or self._current[1] is not request:
            return  # for a queue that has died meanwhile
        self._beat.sent(now)
        self._send(LINK, *self._write(self._current[0], parts))
        self._current = None

    def handle_start(self, now: float) -> None:
        if self._is_gone:
            self._is_gone = False
            self._start(now)

    def handle_end(self, now: float) -> None:
        if self._is_gone:
            return
        self._forget_sends()
        self._requests.clear()
        self._current = None
        if self._reconnects is None:
            self._say_goodbye()
        self._reconnects = None
        self._reopen(LINK, lingers=True)
        self._is_gone = True

    def _say_goodbye(self) -> None:
        """Ends the conversation, if the protocol has a word for it."""

    @abstractmethod
    def _read(self, parts: list[bytes]) -> Word | tuple[bytes, R]:
        """Returns what the queue says, or a request with its client's address."""

    @abstractmethod
    def _write(self, client: bytes, parts: list[bytes]) -> list[bytes]:
        """Returns the message with the reply to a client."""

    def _start(self, now: float) -> None:
        self._is_welcome = False
        self._send(LINK, *self._hello)
        self._beat.start(now)

    def _lose(self, until: float) -> None:
        self._reconnects = until
        # Their clients ask again, and other workers may already have these requests.
        self._requests.clear()
        self._current = None
