"""Beacons over UDP: broadcasts on the interfaces of this machine, with their IPv4 addresses."""

import contextlib
import fcntl
import socket
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface

__all__ = ["Beacon", "Interface", "interfaces", "own_address"]

# linux/sockios.h, linux/if.h and linux/in.h
_SIOCGIFFLAGS, _SIOCGIFADDR, _SIOCGIFNETMASK = 0x8913, 0x8915, 0x891B
_IFF_UP, _IFF_BROADCAST, _IFF_LOOPBACK = 0x1, 0x2, 0x8
_IP_PKTINFO = 8

_NAME_SIZE = 16
_REQUEST_SIZE = 40
_PACKET_INFO = struct.Struct("=i4s4s")

# A larger datagram is no beacon.
_DATAGRAM = 256


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface that broadcasts."""

    index: int
    name: str
    address: str
    broadcast: str
    is_loopback: bool


def interfaces(chosen: str | None) -> list[Interface]:
    """Returns the interfaces that are up, or the one that has a name or address.

    Without a choice, the loopback interface is left out unless there is no other one.
    """
    found = [
        interface for index, name in socket.if_nameindex() if (interface := _read(index, name))
    ]
    if chosen is not None:
        return [interface for interface in found if chosen in (interface.name, interface.address)]
    return [interface for interface in found if not interface.is_loopback] or found


def own_address(host: str) -> str:
    """Returns the address from which this machine reaches a host; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, 9))
            address: str = probe.getsockname()[0]
        except (OSError, UnicodeError):
            return ""
        return address


class Beacon:
    """The UDP socket of a node.

    Args:
        port: The port of the beacons.
        interface: The name or address of an interface; None for all.
    """

    def __init__(self, port: int, interface: str | None) -> None:
        self._port = port
        self._chosen = interface
        # The address is not bound, because a socket with an address receives no broadcasts.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            for option in (socket.SO_BROADCAST, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
                self._socket.setsockopt(socket.SOL_SOCKET, option, 1)
            self._socket.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
            self._socket.setblocking(False)
            self._socket.bind(("", port))
        except BaseException:
            self._socket.close()
            raise

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, beacon: bytes) -> None:
        """Broadcasts a beacon. Interfaces are looked up each time, because they come and go."""
        for interface in self._interfaces():
            source = IPv4Address(interface.address).packed
            information = _PACKET_INFO.pack(interface.index, source, bytes(4))
            with contextlib.suppress(OSError):  # the next beacon is due soon
                self._socket.sendmsg(
                    [beacon],
                    [(socket.IPPROTO_IP, _IP_PKTINFO, information)],
                    0,
                    (interface.broadcast, self._port),
                )

    def receive(self) -> tuple[bytes, str] | None:
        """Returns a datagram and its host; None if there is none. Those of other interfaces are ignored."""
        while True:
            try:
                data, more, _, (host, _) = self._socket.recvmsg(
                    _DATAGRAM, socket.CMSG_SPACE(_PACKET_INFO.size)
                )
            except OSError:  # none, or the error of an earlier broadcast
                return None
            if self._chosen is None or self._index(more) in self._indices():
                return data, host

    def close(self) -> None:
        self._socket.close()

    def _indices(self) -> set[int]:
        return {interface.index for interface in self._interfaces()}

    def _interfaces(self) -> list[Interface]:
        """Returns the interfaces; none if there is no descriptor left to look them up with."""
        try:
            return list(interfaces(self._chosen))
        except OSError:
            return []

    @staticmethod
    def _index(more: list[tuple[int, int, bytes]]) -> int:
        for level, kind, data in more:
            if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO):
                index: int = _PACKET_INFO.unpack(data[: _PACKET_INFO.size])[0]
                return index
        return 0


def _read(index: int, name: str) -> Interface | None:
    """Returns an interface, if it is up, broadcasts, and has an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:

        def ask(request: int) -> bytes:
            named = name.encode().ljust(_REQUEST_SIZE, b"\0")
            return fcntl.ioctl(probe, request, named)[_NAME_SIZE:]

        try:
            flags = struct.unpack_from("=H", ask(_SIOCGIFFLAGS))[0]
            address = socket.inet_ntoa(ask(_SIOCGIFADDR)[4:8])
            mask = socket.inet_ntoa(ask(_SIOCGIFNETMASK)[4:8])
        except OSError:
            return None
    if not flags & _IFF_UP or not flags & (_IFF_BROADCAST | _IFF_LOOPBACK):
        return None
    broadcast = IPv4Interface(f"{address}/{mask}").network.broadcast_address
    return Interface(index, name, address, str(broadcast), bool(flags & _IFF_LOOPBACK))
