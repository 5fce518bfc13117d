"""The socket's calls that send and receive Arrow tables."""

from typing import TYPE_CHECKING, cast

from . import _native
from ._native import ArrowTable
from ._objects import ObjectMessages
from ._tracker import MessageTracker

if TYPE_CHECKING:
    from ._typing import ArrowData

__all__ = ["TableMessages"]


class TableMessages(ObjectMessages):
    """The part of `Socket` that sends and receives tables."""

    def send_arrow(self, data: "ArrowData", flags: int = 0) -> MessageTracker | None:
        """Sends a table as one message, in Arrow's IPC stream format.

        Args:
            data: A table, batch or array of pyarrow, polars, nanoarrow or DuckDB, a pandas data
                frame, or what `recv_arrow` returned: any object with Arrow's PyCapsule
                interface. An array that is not of structs becomes a column named ``value``.
            flags: As in `send`.

        Returns:
            None.

        Raises:
            TypeError: `data` does not have Arrow's interface.
            ZMQError: As in `send`.

        Example:
            >>> push.send_batch([b"one", b"two"])
            2
            >>> push.send_arrow(pull.recv_batch_arrow())
            >>> pull.recv_arrow().num_rows
            2

        Source:
            Arrow IPC streaming format; zeroxide only
        """
        return self.send(_native.arrow_encode(data), flags)

    def recv_arrow(self, flags: int = 0) -> ArrowTable:
        """Receives a table that was sent as one message. Safe with any peer.

        Args:
            flags: As in `recv`.

        Returns:
            The table. Arrow libraries take it without a copy: ``pyarrow.table(table)``,
            ``polars.from_arrow(table)``.

        Raises:
            ValueError: The message is not a table in Arrow's IPC stream format.
            ZMQError: As in `recv`.

        Source:
            Arrow IPC streaming format; zeroxide only
        """
        frame = self.recv(flags, copy=False)
        return cast(ArrowTable, self._deserialize(frame, _native.arrow_decode))

    def send_batch_arrow(self, data: "ArrowData", flags: int = 0) -> int:
        """Sends every row of a table as a message of its own.

        Args:
            data: A table with a column ``value`` of bytes or text, or with a column ``frames``
                of lists of bytes for messages of several parts. As in `send_arrow`, any object
                with Arrow's interface will do.
            flags: 0, or ``DONTWAIT`` to stop instead of waiting for room.

        Returns:
            How many rows were sent, as in `send_batch`.

        Raises:
            Again: There was no room for even the first row.
            TypeError: `data` does not have Arrow's interface.
            ValueError: `data` has neither of the columns.
            ZMQError: As in `send`.

        Source:
            zeroxide only
        """
        return self._send_rows(data, flags)

    def recv_batch_arrow(
        self,
        max_rows: int = 10_000,
        timeout: float | None = None,
        flags: int = 0,
        *,
        max_bytes: int = 64 << 20,
        frames: bool = False,
    ) -> ArrowTable:
        """Receives the messages that have arrived, at least one, as rows of a table.

        Does what `recv_batch` does, but makes no Python object of each message.

        Args:
            max_rows: How many messages to return at most; 1 or more.
            timeout: How long to wait for the first message, in ms. None waits as `recv` does,
                for ``RCVTIMEO`` ms.
            flags: 0, or ``DONTWAIT`` to raise `Again` instead of waiting.
            max_bytes: The size to stop at, in bytes.
            frames: Whether to add a column ``frames`` with the lists of all parts.

        Returns:
            A table with a column ``value`` of bytes: the last part of every message.

        Raises:
            Again: Nothing arrived in time.
            ValueError: `max_rows` or `max_bytes` is below 1, or a message is larger than 1 GiB.
            ZMQError: As in `recv`.

        Example:
            >>> push.send_batch([b"one", b"two"])
            2
            >>> pull.recv_batch_arrow(timeout=1000).num_rows
            2

        Source:
            zeroxide only
        """
        return self._recv_rows(max_rows, max_bytes, timeout, flags, frames)
