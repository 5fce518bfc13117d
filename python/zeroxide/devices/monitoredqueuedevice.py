"""Devices around `monitored_queue`."""

from .. import _checks
from .._exports import exports_only
from ..constants import PUB
from .monitoredqueue import monitored_queue
from .proxydevice import ProcessProxy, Proxy, ProxyBase, ThreadProxy

__all__ = [
    "MonitoredQueue",
    "MonitoredQueueBase",
    "ProcessMonitoredQueue",
    "ThreadMonitoredQueue",
]


def __dir__() -> list[str]:
    return exports_only(globals())


class MonitoredQueueBase(ProxyBase):
    """A proxy whose monitor learns where messages came from: see `monitored_queue`.

    Args:
        in_type: The type of the in-socket: a `SocketType`.
        out_type: The type of the out-socket.
        mon_type: The type of the monitor socket.
        in_prefix: The first part of copies from the in-socket.
        out_prefix: The first part of copies from the out-socket.

    Source:
        pyzmq's ``zmq.devices.monitoredqueuedevice.MonitoredQueueBase``
    """

    def __init__(
        self,
        in_type: int,
        out_type: int,
        mon_type: int = PUB,
        in_prefix: bytes = b"in",
        out_prefix: bytes = b"out",
    ) -> None:
        super().__init__(in_type=in_type, out_type=out_type, mon_type=mon_type)
        for argument, prefix in (("in_prefix", in_prefix), ("out_prefix", out_prefix)):
            if not isinstance(prefix, bytes):
                raise TypeError(f"{argument} takes bytes, not {_checks.shown(prefix)}")
        self._in_prefix = in_prefix
        self._out_prefix = out_prefix

    def run_device(self) -> None:
        """Makes the sockets and serves them until the context ends."""
        ins, outs, mons = self._setup_sockets()
        monitored_queue(ins, outs, mons, self._in_prefix, self._out_prefix)


class MonitoredQueue(MonitoredQueueBase, Proxy):
    """`monitored_queue` as a device: a proxy, which also works between two ROUTER sockets.

    Before the copy of each message, the monitor gets a frame that names the socket the message
    came from.

    Source:
        pyzmq's ``zmq.devices.MonitoredQueue``
    """


class ThreadMonitoredQueue(MonitoredQueueBase, ThreadProxy):
    """A `MonitoredQueue` in a thread.

    Source:
        pyzmq's ``zmq.devices.ThreadMonitoredQueue``
    """


class ProcessMonitoredQueue(MonitoredQueueBase, ProcessProxy):
    """A `MonitoredQueue` in a process.

    Source:
        pyzmq's ``zmq.devices.ProcessMonitoredQueue``
    """
