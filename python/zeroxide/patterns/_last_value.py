"""Last value cache: a proxy that gives each new subscriber the last message of each of its topics."""

from typing import Any

from .. import _checks
from ..constants import SocketType
from ..context import Context
from ._driver import AsyncRunner, Configure, Driver, Runner, opener
from ._last_values import LastValues
from ._machine import Machine, Subscribe, ToAll

__all__ = ["AsyncLastValueCache", "LastValueCache"]

# Room in a subscriber's queue beside the whole cache.
_ROOM = 1000

# The memory for values by default.
_MAX_BYTES = 256 << 20

# The time in ms that has to pass for each message that is sent again, and for each of its bytes: a subscription of three bytes
# repeats the whole cache to all who want everything.
_MESSAGE = 0.2
_BYTE = 0.0001

# The time that may be owed before repetitions have to wait, so that small ones never do.
_CREDIT = 200.0


class LastValueMachine(Machine):
    """The proxy.

    Args:
        max_topics: How many topics are kept: those that were updated last.
        max_bytes: How much memory their messages take.
    """

    def __init__(self, max_topics: int, max_bytes: int = _MAX_BYTES) -> None:
        super().__init__()
        self._values = LastValues(max_topics, max_bytes)
        # Prefixes whose messages are repeated to all their subscribers as soon as the last repetition is paid for.
        self._waiting: set[bytes] = set()
        self._paid_at = 0.0

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        if link == "publishers":
            self._values.update(parts)
            self._send("subscribers", *parts)
            return
        is_answered = False
        match parts:
            case [request] if request[:1] in (b"\x00", b"\x01"):
                topic, is_on = request[1:], request[:1] == b"\x01"
                self._commands.append(Subscribe("subscribers", topic, is_on))
                is_answered = is_on and self._repeat(topic, now)
            case _:
                self.drop()
        if not is_answered:
            # The next message is an update, and not only for this subscriber.
            self._commands.append(ToAll("subscribers"))

    def handle_timeout(self, now: float) -> None:
        if self._waiting and self._may_repeat(now):
            prefixes, self._waiting = self._waiting, set()
            self._send_again(self._values.under(prefixes), now)

    def poll_timeout(self) -> float | None:
        return self._paid_at - _CREDIT if self._waiting else None

    def _repeat(self, prefix: bytes, now: float) -> bool:
        """Sends what is known of a prefix, and returns whether there is anything.

        The socket sends the first of these messages to the new subscriber only, and the others to all. So the others may
        have to wait, together with those of other subscriptions.
        """
        count = self._values.count(prefix)
        if count == 1 or (count and not self._may_repeat(now)):
            self._send("subscribers", *self._values.first(prefix))
            if count > 1:
                self._waiting.add(prefix)
                if len(self._waiting) > _ROOM:
                    self._waiting = {b""}
        elif count:
            self._send_again(self._values.under({prefix}), now)
        return count > 0

    def _may_repeat(self, now: float) -> bool:
        return now >= self._paid_at - _CREDIT

    def _send_again(self, messages: list[list[bytes]], now: float) -> None:
        self._paid_at = max(self._paid_at, now)
        for parts in messages:
            self._paid_at += _MESSAGE + _BYTE * sum(map(len, parts))
            self._send("subscribers", *parts)


class _LastValueCache:
    def __init__(
        self,
        publishers: str,
        subscribers: str,
        *,
        max_topics: int = 10_000,
        max_bytes: int = _MAX_BYTES,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        machine = LastValueMachine(
            _checks.whole("max_topics", max_topics, 1), _checks.whole("max_bytes", max_bytes, 1)
        )
        inputs = opener(
            context, SocketType.SUB, bind=publishers, configure=configure, subscribe=b""
        )
        outputs = opener(
            context,
            SocketType.XPUB,
            bind=subscribers,
            configure=configure,
            xpub_manual_last_value=True,
            sndhwm=max_topics + _ROOM,
        )
        self._driver = Driver(machine, {"publishers": inputs, "subscribers": outputs})

    @property
    def publishers(self) -> str:
        """Where publishers connect, with the port that the system chose."""
        return self._driver.endpoint("publishers")

    @property
    def subscribers(self) -> str:
        """Where subscribers connect, with the port that the system chose."""
        return self._driver.endpoint("subscribers")


class LastValueCache(_LastValueCache, Runner):
    """A proxy between publishers and subscribers that gives a new subscriber the last values at once.

    The first part of a message is its topic. A new subscription gets the last message of each topic
    that begins with it. If there is one such topic, other subscribers get nothing again.
    If there are several, other subscribers get all but one of these messages again. At most 5,000
    messages per second, or 10 MB, are repeated in this way. Beyond that, a new subscription gets one
    message at once, and the others a little later, together with other new subscriptions.

    Args:
        publishers: Where to bind for publishers: ``"tcp://*:5557"``.
        subscribers: Where to bind for subscribers.
        max_topics: How many topics are kept: those that were updated last.
        max_bytes: How much memory their messages take, about. Those of the topics that were not
            updated for the longest time are dropped.
        context: The context of the sockets; None for `Context.instance`.
        configure: A function that sets options, such as keys, of each socket before it binds.

    Example:
        ```python
        with LastValueCache("tcp://*:5557", "tcp://*:5558") as cache:
            cache.run()
        ```

    Source:
        The guide, chapter 5: Last Value Caching
    """


class AsyncLastValueCache(_LastValueCache, AsyncRunner):
    """A `LastValueCache` for asyncio.

    The options are those of `LastValueCache`.

    Source:
        The guide, chapter 5: Last Value Caching
    """
