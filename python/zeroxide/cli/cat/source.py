"""Where the messages to send come from: the command line, or stdin."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from ..formats import Decoder, Message
from ..streams import STDIN, read_some

__all__ = ["Fixed", "Source", "Typed"]

# Repeated messages are sent this many at once.
_BATCH = 1024


class Source(ABC):
    """Messages to send, in batches."""

    descriptor: int | None = None
    """What becomes readable when the next batch can be taken; None if it always can."""

    @abstractmethod
    def batches(self) -> Iterator[list[Message]]:
        """The messages in batches, each as soon as it is there. A batch can be empty."""

    def messages(self) -> Iterator[Message]:
        """The messages one by one."""
        for batch in self.batches():
            yield from batch


class Fixed(Source):
    """One message, given as an argument, for a number of times; None means without end."""

    def __init__(self, message: Message, times: int | None) -> None:
        self._message = message
        self._times = times

    def batches(self) -> Iterator[list[Message]]:
        if self._times is None:
            while True:
                yield [self._message] * _BATCH
        for start in range(0, self._times, _BATCH):
            yield [self._message] * min(_BATCH, self._times - start)


class Typed(Source):
    """The messages on stdin."""

    descriptor: int | None = STDIN

    def __init__(self, decoder: Decoder, *, watches: bool) -> None:
        self._decoder = decoder
        self._watches = watches

    def batches(self) -> Iterator[list[Message]]:
        while data := read_some(watches=self._watches):
            yield self._decoder.feed(data)
            self._decoder.check()
        yield self._decoder.end()
        self._decoder.check()
