"""Last value cache: a proxy that gives each new subscriber the last message of each of its topics."""

from collections import OrderedDict
from typing import Any

from .. import _checks
from ..constants import SocketType
from ..context import Context
from ._driver import AsyncRunner, Configure, Driver, Runner, opener
from ._machine import Machine, Subscribe

__all__ = ["AsyncLastValueCache", "LastValueCache"]

# Room in a subscriber's queue beside the whole cache.
_ROOM = 1000


class LastValueMachine(Machine):
    """The proxy.

    Args:
        max_topics: How many topics are kept: those that were updated last.
    """

    def __init__(self, max_topics: int) -> None:
        super().__init__()
        self._max_topics = max_topics
        # The topic updated last is at the end.
        self._last: OrderedDict[bytes, list[bytes]] = OrderedDict()

    def handle_message(self, link: str, parts: list[bytes], now: float) -> None:
        if link == "publishers":
            self._update(parts)
            return
        match parts:
            case [request] if request[:1] in (b"\x00", b"\x01"):
                topic, is_on = request[1:], request[:1] == b"\x01"
                self._commands.append(Subscribe("subscribers", topic, is_on))
                if is_on:
                    self._repeat(topic)
            case _:
                self.drop()

    def _update(self, parts: list[bytes]) -> None:
        topic = parts[0]
        self._last[topic] = parts
        self._last.move_to_end(topic)
        if len(self._last) > self._max_topics:
            self._last.popitem(last=False)
        self._send("subscribers", *parts)

    def _repeat(self, prefix: bytes) -> None:
        """Sends what is known of a prefix. The socket sends the first of these messages to the new subscriber only."""
        for topic, parts in self._last.items():
            if topic.startswith(prefix):
                self._send("subscribers", *parts)


class _LastValueCache:
    def __init__(
        self,
        publishers: str,
        subscribers: str,
        *,
        max_topics: int = 10_000,
        context: Context[Any] | None = None,
        configure: Configure | None = None,
    ) -> None:
        machine = LastValueMachine(_checks.whole("max_topics", max_topics, 1))
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
    If there are several, other subscribers get all but one of these messages again.

    Args:
        publishers: Where to bind for publishers: ``"tcp://*:5557"``.
        subscribers: Where to bind for subscribers.
        max_topics: How many topics are kept: those that were updated last.
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
