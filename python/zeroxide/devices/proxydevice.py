"""Devices that copy every message to a third socket."""

from typing import TYPE_CHECKING, Any, Unpack

from .._exports import exports_only
from ..constants import PUB
from ..proxy import proxy
from ..socket import Socket
from .basedevice import Device, ProcessDevice, ThreadDevice
from .side import Side

if TYPE_CHECKING:
    from .._typing import PortArguments

__all__ = ["ProcessProxy", "Proxy", "ProxyBase", "ThreadProxy"]


def __dir__() -> list[str]:
    return exports_only(globals())


class ProxyBase(Device):
    """A device with a monitor socket, which gets a copy of every message.

    Args:
        in_type: The type of the in-socket: a `SocketType`.
        out_type: The type of the out-socket.
        mon_type: The type of the monitor socket. A socket of another type than PUB delays the
            messages while its queue is full.

    Source:
        pyzmq's ``zmq.devices.proxydevice.ProxyBase``
    """

    def __init__(self, in_type: int, out_type: int, mon_type: int = PUB) -> None:
        super().__init__(in_type=in_type, out_type=out_type)
        self.mon_type = mon_type
        self._mon = Side("mon_type", mon_type)

    def bind_mon(self, addr: str) -> None:
        """Binds the monitor socket once the device runs.

        Args:
            addr: The address, as in `Socket.bind`.
        """
        self._mon.add_bind(addr)

    def bind_mon_to_random_port(
        self, addr: str, *args: int, **kwargs: "Unpack[PortArguments]"
    ) -> int:
        """Binds the monitor socket to a free port once the device runs.

        Args:
            addr: The address without the port: ``tcp://127.0.0.1``.
            *args: Further arguments of `Socket.bind_to_random_port`.
            **kwargs: Further arguments of `Socket.bind_to_random_port`.

        Returns:
            The port.
        """
        return self._bind_to_random_port(self._mon, addr, *args, **kwargs)

    def connect_mon(self, addr: str) -> None:
        """Connects the monitor socket once the device runs.

        Args:
            addr: The address, as in `Socket.connect`.
        """
        self._mon.add_connect(addr)

    def setsockopt_mon(self, opt: int, value: Any) -> None:
        """Sets an option of the monitor socket.

        Args:
            opt: The number of the option: a `SocketOption`.
            value: The value.
        """
        self._mon.add_option(opt, value)

    def _setup_sockets(self) -> tuple[Socket[Any], ...]:
        return (*super()._setup_sockets(), self._setup_side(self._mon))

    def run_device(self) -> None:
        """Makes the sockets and serves them until the context ends."""
        ins, outs, mons = self._setup_sockets()
        proxy(ins, outs, mons)


class Proxy(ProxyBase, Device):
    """`zeroxide.proxy` as a device; use a PUB as the monitor socket.

    A socket of another type delays the messages if it has no peer, or a slow one.

    Source:
        zmq_proxy(3); pyzmq's ``zmq.devices.Proxy``
    """


class ThreadProxy(ProxyBase, ThreadDevice):
    """A `Proxy` in a thread.

    Source:
        pyzmq's ``zmq.devices.ThreadProxy``
    """


class ProcessProxy(ProxyBase, ProcessDevice):
    """A `Proxy` in a process.

    Source:
        pyzmq's ``zmq.devices.ProcessProxy``
    """
