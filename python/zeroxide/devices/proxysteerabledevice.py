"""Proxies that obey commands."""

from typing import TYPE_CHECKING, Any, Unpack

from .._exports import exports_only
from ..constants import PAIR, PUB
from ..proxy import proxy_steerable
from ..socket import Socket
from .proxydevice import ProcessProxy, Proxy, ProxyBase, ThreadProxy
from .side import Side

if TYPE_CHECKING:
    from .._typing import PortArguments

__all__ = [
    "ProcessProxySteerable",
    "ProxySteerable",
    "ProxySteerableBase",
    "ThreadProxySteerable",
]


def __dir__() -> list[str]:
    return exports_only(globals())


class ProxySteerableBase(ProxyBase):
    """A proxy with a control socket, which receives commands: see `zeroxide.proxy_steerable`.

    Args:
        in_type: The type of the in-socket: a `SocketType`.
        out_type: The type of the out-socket.
        mon_type: The type of the monitor socket.
        ctrl_type: The type of the control socket; None for PAIR.

    Source:
        pyzmq's ``zmq.devices.proxysteerabledevice.ProxySteerableBase``
    """

    def __init__(
        self,
        in_type: int,
        out_type: int,
        mon_type: int = PUB,
        ctrl_type: int | None = None,
    ) -> None:
        super().__init__(in_type=in_type, out_type=out_type, mon_type=mon_type)
        self.ctrl_type = PAIR if ctrl_type is None else ctrl_type
        self._ctrl = Side("ctrl_type", self.ctrl_type)

    def bind_ctrl(self, addr: str) -> None:
        """Binds the control socket once the device runs.

        Args:
            addr: The address, as in `Socket.bind`.
        """
        self._ctrl.add_bind(addr)

    def bind_ctrl_to_random_port(
        self, addr: str, *args: int, **kwargs: "Unpack[PortArguments]"
    ) -> int:
        """Binds the control socket to a free port once the device runs.

        Args:
            addr: The address without the port: ``tcp://127.0.0.1``.
            *args: Further arguments of `Socket.bind_to_random_port`.
            **kwargs: Further arguments of `Socket.bind_to_random_port`.

        Returns:
            The port.
        """
        return self._bind_to_random_port(self._ctrl, addr, *args, **kwargs)

    def connect_ctrl(self, addr: str) -> None:
        """Connects the control socket once the device runs.

        Args:
            addr: The address, as in `Socket.connect`.
        """
        self._ctrl.add_connect(addr)

    def setsockopt_ctrl(self, opt: int, value: Any) -> None:
        """Sets an option of the control socket.

        Args:
            opt: The number of the option: a `SocketOption`.
            value: The value.
        """
        self._ctrl.add_option(opt, value)

    def _setup_sockets(self) -> tuple[Socket[Any], ...]:
        return (*super()._setup_sockets(), self._setup_side(self._ctrl))

    def run_device(self) -> None:
        """Makes the sockets and serves them until TERMINATE or the context's end."""
        ins, outs, mons, ctrls = self._setup_sockets()
        proxy_steerable(ins, outs, mons, ctrls)


class ProxySteerable(ProxySteerableBase, Proxy):
    """`zeroxide.proxy_steerable` as a device.

    Source:
        zmq_proxy_steerable(3); pyzmq's ``zmq.devices.ProxySteerable``
    """


class ThreadProxySteerable(ProxySteerableBase, ThreadProxy):
    """A `ProxySteerable` in a thread.

    Source:
        pyzmq's ``zmq.devices.ThreadProxySteerable``
    """


class ProcessProxySteerable(ProxySteerableBase, ProcessProxy):
    """A `ProxySteerable` in a process.

    Source:
        pyzmq's ``zmq.devices.ProcessProxySteerable``
    """
