"""Proxies in the background, in their own threads and processes."""

from .._exports import exports_only
from ..constants import DeviceType
from ..proxy import proxy
from .basedevice import Device, ProcessDevice, ThreadDevice
from .monitoredqueue import monitored_queue
from .monitoredqueuedevice import MonitoredQueue, ProcessMonitoredQueue, ThreadMonitoredQueue
from .proxydevice import ProcessProxy, Proxy, ThreadProxy
from .proxysteerabledevice import ProcessProxySteerable, ProxySteerable, ThreadProxySteerable

__all__ = [
    "Device",
    "DeviceType",
    "MonitoredQueue",
    "ProcessDevice",
    "ProcessMonitoredQueue",
    "ProcessProxy",
    "ProcessProxySteerable",
    "Proxy",
    "ProxySteerable",
    "ThreadDevice",
    "ThreadMonitoredQueue",
    "ThreadProxy",
    "ThreadProxySteerable",
    "monitored_queue",
    "proxy",
]


def __dir__() -> list[str]:
    return exports_only(
        globals(),
        "basedevice",
        "monitoredqueue",
        "monitoredqueuedevice",
        "proxydevice",
        "proxysteerabledevice",
    )
