"""The socket's calls about options, and those that stand for one option each."""

from typing import TYPE_CHECKING, Any, cast

from ._hints import encoded
from ._options import OptionAttributes
from .constants import RCVHWM, SNDHWM, SUBSCRIBE, UNSUBSCRIBE, SocketOption
from .error import ZMQError

__all__ = ["OptionCalls"]


class OptionCalls(OptionAttributes):
    """The part of `Socket` that sets and reads options."""

    def setsockopt(self, option: int, optval: int | bytes) -> None:
        """The same as `set`.

        Args:
            option: The number of the option.
            optval: The value.

        Source:
            pyzmq's ``Socket.setsockopt``
        """
        self.set(option, optval)

    def getsockopt(self, option: int) -> Any:
        """The same as `get`.

        Args:
            option: The number of the option.

        Returns:
            The value: an int, or `bytes`.

        Source:
            pyzmq's ``Socket.getsockopt``
        """
        return self.get(option)

    def set_string(self, option: int, optval: str, encoding: str = "utf-8") -> None:
        """Sets an option that takes bytes to encoded text.

        Args:
            option: The number of the option.
            optval: The text.
            encoding: How to encode it.

        Raises:
            TypeError: `optval` is not text.
            ZMQError: As in `set`.

        Example:
            >>> dealer.set_string(zmq.ROUTING_ID, "worker-1")
            >>> dealer.routing_id
            b'worker-1'

        Source:
            pyzmq's ``Socket.set_string``
        """
        if not isinstance(optval, str):
            raise TypeError(f"set_string takes str, not {optval!r}")
        self.set(option, encoded(optval, encoding))

    setsockopt_string = set_string
    setsockopt_unicode = set_string

    def get_string(self, option: int, encoding: str = "utf-8") -> str:
        """Reads an option that holds bytes as text.

        Args:
            option: The number of the option.
            encoding: How to decode it.

        Returns:
            The text.

        Raises:
            TypeError: The option is a number.
            ZMQError: As in `get`.

        Source:
            pyzmq's ``Socket.get_string``
        """
        value = self.get(option)
        if not isinstance(value, bytes):
            name = SocketOption(option).name
            raise TypeError(f"{name} is a number, not text: use get(zmq.{name})")
        return value.decode(encoding)

    getsockopt_string = get_string
    getsockopt_unicode = get_string

    def get_hwm(self) -> int:
        """Returns the high-water mark.

        Returns:
            ``SNDHWM``, in messages per peer.

        Source:
            pyzmq's ``Socket.get_hwm``
        """
        try:
            return cast(int, self.get(SNDHWM))
        except ZMQError:
            return cast(int, self.get(RCVHWM))

    def set_hwm(self, value: int) -> None:
        """Sets both high-water marks, ``SNDHWM`` and ``RCVHWM``.

        Args:
            value: How many messages may be queued per peer and direction; 0 means no limit.

        Source:
            pyzmq's ``Socket.set_hwm``
        """
        self.set(SNDHWM, value)
        self.set(RCVHWM, value)

    @property
    def hwm(self) -> int:
        """Both high-water marks at once."""
        return self.get_hwm()

    @hwm.setter
    def hwm(self, value: int) -> None:
        self.set_hwm(value)

    if not TYPE_CHECKING:
        HWM = hwm

    def subscribe(self, topic: str | bytes) -> None:
        """Subscribes to messages that begin with a topic (SUB, XPUB with ``XPUB_MANUAL``).

        Args:
            topic: What the first part of the messages begins with; text is sent as UTF-8. The
                empty topic subscribes to everything.

        Raises:
            ZMQError: ``EINVAL`` if the socket has another type.

        Example:
            >>> sub.subscribe("weather")
            >>> pub.wait_subscribed("weather", timeout=1000)
            1

        Source:
            29/PUBSUB, section "The SUB Socket Type"; ``ZMQ_SUBSCRIBE`` of zmq_setsockopt(3)
        """
        self.set(SUBSCRIBE, encoded(topic) if isinstance(topic, str) else topic)

    def unsubscribe(self, topic: str | bytes) -> None:
        """Undoes one `subscribe` with the same topic.

        Args:
            topic: The topic, as passed to `subscribe`.

        Raises:
            ZMQError: ``EINVAL`` if the socket has another type, or is not subscribed to `topic`.

        Source:
            29/PUBSUB, section "The SUB Socket Type"; ``ZMQ_UNSUBSCRIBE`` of zmq_setsockopt(3)
        """
        self.set(UNSUBSCRIBE, encoded(topic) if isinstance(topic, str) else topic)
