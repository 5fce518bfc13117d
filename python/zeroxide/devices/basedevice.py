"""The device: two sockets, created and served in the thread or process where it runs."""

import threading
from collections.abc import Callable
from multiprocessing import Process
from threading import Thread
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from .. import _checks
from .._exports import exports_only
from ..constants import ETERM, PUSH, DeviceType, Errno
from ..context import Context
from ..error import ZMQBindError, ZMQError
from ..proxy import proxy
from ..socket import Socket
from .side import Side

if TYPE_CHECKING:
    from .._typing import PortArguments

__all__ = ["BackgroundDevice", "Device", "ProcessDevice", "ThreadDevice"]


def __dir__() -> list[str]:
    return exports_only(globals())


class Device:
    """Makes two sockets and passes messages between them, until their context ends.

    `start` runs it in the calling thread. Addresses and options are set before that.

    Args:
        device_type: Has no effect.
        in_type: The type of the in-socket: a `SocketType` such as ``zmq.PULL``.
        out_type: The type of the out-socket; a negative number if there is only one socket.

    Raises:
        TypeError: A type is missing, or is not a number.
        ValueError: There is no such type.

    Source:
        pyzmq's ``zmq.devices.Device``
    """

    context_factory: Callable[[], Context[Any]] = Context.instance
    """Creates the context where the device runs. A subclass or an instance may replace it."""
    daemon: bool
    """Whether the device's thread or process ends with the program."""
    done: bool
    """Whether the device has ended."""

    def __init__(
        self,
        device_type: int = DeviceType.QUEUE,
        in_type: int | None = None,
        out_type: int | None = None,
    ) -> None:
        if in_type is None:
            raise TypeError("in_type must be specified: a zmq.SocketType such as zmq.PULL")
        if out_type is None:
            raise TypeError("out_type must be specified: a zmq.SocketType such as zmq.PUSH")
        self.device_type = device_type
        self.in_type = in_type
        self.out_type = out_type
        self.daemon = True
        self.done = False
        self._in = Side("in_type", in_type)
        self._out = Side("out_type", out_type)
        self._reserved: set[str] = set()
        self._sockets: list[Socket[Any]] = []
        self._over = threading.Event()

    # ---- the socket that messages come from -----------------------------------------

    def bind_in(self, addr: str) -> None:
        """Binds the in-socket once the device runs.

        Args:
            addr: The address, as in `Socket.bind`.

        Raises:
            TypeError: `addr` is not text.
            ValueError: `addr` is not an endpoint.
        """
        self._in.add_bind(addr)

    def bind_in_to_random_port(
        self, addr: str, *args: int, **kwargs: "Unpack[PortArguments]"
    ) -> int:
        """Binds the in-socket to a free port once the device runs.

        Args:
            addr: The address without the port: ``tcp://127.0.0.1``.
            *args: Further arguments of `Socket.bind_to_random_port`.
            **kwargs: Further arguments of `Socket.bind_to_random_port`.

        Returns:
            The port.
        """
        return self._bind_to_random_port(self._in, addr, *args, **kwargs)

    def connect_in(self, addr: str) -> None:
        """Connects the in-socket once the device runs.

        Args:
            addr: The address, as in `Socket.connect`.

        Raises:
            TypeError: `addr` is not text.
            ValueError: `addr` is not an endpoint.
        """
        self._in.add_connect(addr)

    def setsockopt_in(self, opt: int, value: Any) -> None:
        """Sets an option of the in-socket.

        Args:
            opt: The number of the option: a `SocketOption`.
            value: The value.

        Raises:
            TypeError: The option takes another type.
            ZMQError: As in `Socket.set`.
        """
        self._in.add_option(opt, value)

    # ---- the socket that messages go to ---------------------------------------------

    def bind_out(self, addr: str) -> None:
        """Binds the out-socket once the device runs.

        Args:
            addr: The address, as in `Socket.bind`.

        Raises:
            TypeError: `addr` is not text.
            ValueError: `addr` is not an endpoint.
        """
        self._out.add_bind(addr)

    def bind_out_to_random_port(
        self, addr: str, *args: int, **kwargs: "Unpack[PortArguments]"
    ) -> int:
        """Binds the out-socket to a free port once the device runs.

        Args:
            addr: The address without the port: ``tcp://127.0.0.1``.
            *args: Further arguments of `Socket.bind_to_random_port`.
            **kwargs: Further arguments of `Socket.bind_to_random_port`.

        Returns:
            The port.
        """
        return self._bind_to_random_port(self._out, addr, *args, **kwargs)

    def connect_out(self, addr: str) -> None:
        """Connects the out-socket once the device runs.

        Args:
            addr: The address, as in `Socket.connect`.

        Raises:
            TypeError: `addr` is not text.
            ValueError: `addr` is not an endpoint.
        """
        self._out.add_connect(addr)

    def setsockopt_out(self, opt: int, value: Any) -> None:
        """Sets an option of the out-socket.

        Args:
            opt: The number of the option: a `SocketOption`.
            value: The value.

        Raises:
            TypeError: The option takes another type.
            ZMQError: As in `Socket.set`.
        """
        self._out.add_option(opt, value)

    def _bind_to_random_port(
        self, side: Side, addr: str, *args: int, **kwargs: "Unpack[PortArguments]"
    ) -> int:
        """Finds a port that is currently free, because the socket that will use it does not exist yet."""
        with Context() as context, context.socket(PUSH) as probe:
            for _ in range(5):
                port = probe.bind_to_random_port(addr, *args, **kwargs)
                if f"{addr}:{port}" not in self._reserved:
                    break
            else:
                raise ZMQBindError(f"no free port for {addr} besides those already reserved")
        self._reserved.add(f"{addr}:{port}")
        side.binds.append(f"{addr}:{port}")
        return port

    # ---- running --------------------------------------------------------------------

    def _setup_sockets(self) -> tuple[Socket[Any], ...]:
        """Creates the sockets in the thread or process where the device runs."""
        self._context = self.context_factory()
        ins = self._in.make(self._context)
        self._sockets.append(ins)
        outs = ins
        if self.out_type >= 0:
            outs = self._out.make(self._context)
            self._sockets.append(outs)
        ends = ((self._in, ins), (self._out, outs))
        for side, socket in ends:
            side.set_options(socket)
        for side, socket in ends:
            side.bind(socket)
        for side, socket in ends:
            side.connect(socket)
        return ins, outs

    def _setup_side(self, side: Side) -> Socket[Any]:
        """Creates a third socket."""
        socket = side.make(self._context)
        self._sockets.append(socket)
        side.set_options(socket)
        side.bind(socket)
        side.connect(socket)
        return socket

    def _close_sockets(self) -> None:
        for socket in self._sockets:
            socket.close()

    def run_device(self) -> None:
        """Makes the sockets and serves them until the context ends."""
        ins, outs = self._setup_sockets()
        proxy(ins, outs)

    def run(self) -> None:
        """Calls `run_device`, and treats the end of the context as a normal end."""
        try:
            self.run_device()
        except ZMQError as error:
            if error.errno not in (ETERM, Errno.ENOTSOCK):
                raise
        finally:
            self.done = True
            self._over.set()
            self._close_sockets()

    def start(self) -> None:
        """Runs the device in the calling thread. Subclasses run it in a thread or process."""
        self.run()

    def join(self, timeout: float | None = None) -> None:
        """Waits until the device has ended.

        Args:
            timeout: How long to wait, in seconds (not ms); None waits without limit.
        """
        self._over.wait(_checks.seconds(timeout))


class BackgroundDevice(Device):
    """A device that runs somewhere else; `start` returns at once.

    Source:
        pyzmq's ``zmq.devices.basedevice.BackgroundDevice``
    """

    launcher: Any = None
    """The thread or process; None before `start`."""
    _launch_class: ClassVar[Any] = None

    def start(self) -> None:
        """Starts the thread or process.

        Raises:
            RuntimeError: It runs already.
        """
        if self.launcher is not None and self.launcher.is_alive():
            raise RuntimeError("this device runs already; make another one to run two")
        self.launcher = self._launch_class(target=self.run)
        self.launcher.daemon = self.daemon
        self.launcher.start()

    def join(self, timeout: float | None = None) -> None:
        """Waits for the thread or process to end.

        Args:
            timeout: How long to wait, in seconds (not ms); None waits without limit.

        Raises:
            RuntimeError: It was not started.
        """
        limit = _checks.seconds(timeout)
        if self.launcher is None:
            raise RuntimeError("this device was not started; call start() first")
        self.launcher.join(timeout=limit)


class ThreadDevice(BackgroundDevice):
    """A device in a thread.

    Source:
        pyzmq's ``zmq.devices.ThreadDevice``
    """

    _launch_class = Thread


class ProcessDevice(BackgroundDevice):
    """A device in a process, with a separate context.

    Source:
        pyzmq's ``zmq.devices.ProcessDevice``
    """

    _launch_class = Process
    context_factory: Callable[[], Context[Any]] = Context

    def __getstate__(self) -> dict[str, Any]:
        # For processes that are not forked: these can be neither sent there nor used.
        state = self.__dict__.copy()
        state.pop("launcher", None)
        del state["_over"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _over=threading.Event())
