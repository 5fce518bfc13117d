"""A small module in the form of pyzmq, on a libzmq that was built with its drafts (`tools/libzmq_drafts.py`)."""

import contextlib
import ctypes
import errno
import os

from libzmq_library import LIBRARY

RCVTIMEO, SNDTIMEO, LINGER, LAST_ENDPOINT, RCVMORE = 27, 28, 17, 32, 13
DONTWAIT, SNDMORE = 1, 2
MESSAGE_BYTES = 64

OPTIONS = {
    "subscribe": 6,
    "linger": LINGER,
    "rcvtimeo": RCVTIMEO,
    "sndtimeo": SNDTIMEO,
    "sndhwm": 23,
    "rcvhwm": 24,
    "reconnect_ivl": 18,
    "heartbeat_ivl": 75,
    "heartbeat_timeout": 77,
    "router_notify": 97,
    "ipv6": 42,
    "multicast_loop": 96,
    "curve_server": 47,
    "curve_publickey": 48,
    "curve_secretkey": 49,
    "curve_serverkey": 50,
    "hello_msg": 110,
    "disconnect_msg": 111,
    "hiccup_msg": 114,
}

_zmq = ctypes.CDLL(str(LIBRARY), use_errno=True)
_zmq.zmq_ctx_new.restype = ctypes.c_void_p
_zmq.zmq_ctx_term.argtypes = [ctypes.c_void_p]
_zmq.zmq_socket.restype = ctypes.c_void_p
_zmq.zmq_socket.argtypes = [ctypes.c_void_p, ctypes.c_int]
_zmq.zmq_close.argtypes = [ctypes.c_void_p]
_zmq.zmq_msg_data.restype = ctypes.c_void_p
_zmq.zmq_msg_size.restype = ctypes.c_size_t
_zmq.zmq_msg_routing_id.restype = ctypes.c_uint32
_zmq.zmq_msg_set_routing_id.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
_zmq.zmq_msg_group.restype = ctypes.c_char_p
_zmq.zmq_connect_peer.restype = ctypes.c_uint32
_zmq.zmq_connect_peer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_zmq.zmq_msg_init_size.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_zmq.zmq_msg_send.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
_zmq.zmq_msg_recv.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
for _name in ("bind", "connect", "disconnect", "join", "leave"):
    getattr(_zmq, f"zmq_{_name}").argtypes = [ctypes.c_void_p, ctypes.c_char_p]
for _name in ("setsockopt", "getsockopt"):
    _size = ctypes.c_size_t if _name == "setsockopt" else ctypes.c_void_p
    getattr(_zmq, f"zmq_{_name}").argtypes = [
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_void_p,
        _size,
    ]


def has(capability: str) -> bool:
    """Whether this libzmq was built with it."""
    return bool(_zmq.zmq_has(capability.encode()))


class ZMQError(OSError):
    """A call of libzmq failed."""


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise ZMQError(number, os.strerror(number))
    return result


class Context:
    """A context, whose sockets end with it."""

    def __init__(self) -> None:
        self._handle = _zmq.zmq_ctx_new()
        self._sockets: list[Socket] = []

    def socket(self, kind: int) -> "Socket":
        """Makes a socket."""
        socket = Socket(_zmq.zmq_socket(self._handle, kind))
        self._sockets.append(socket)
        return socket

    def destroy(self, linger: int) -> None:
        """Closes everything."""
        for socket in self._sockets:
            socket.close()
        _zmq.zmq_ctx_term(self._handle)


class Socket:
    """A socket; options that have a name here are attributes."""

    def __init__(self, handle: int | None) -> None:
        if not handle:
            _check(-1)
        self.__dict__["_handle"] = handle

    def __setattr__(self, name: str, value: "int | bytes") -> None:
        if isinstance(value, int):
            number = ctypes.c_int(value)
            pointer, size = ctypes.byref(number), ctypes.sizeof(number)
        else:
            pointer, size = ctypes.create_string_buffer(value, len(value)), len(value)
        _check(_zmq.zmq_setsockopt(self._handle, OPTIONS[name], pointer, size))

    def set(self, name: str, value: "int | bytes") -> None:
        """Sets an option, for callers in another process."""
        setattr(self, name, value)

    def get(self, option: int) -> bytes:
        """An option of text."""
        buffer, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
        _check(_zmq.zmq_getsockopt(self._handle, option, buffer, ctypes.byref(size)))
        return buffer.value

    def close(self) -> None:
        """Closes the socket, once."""
        handle, self.__dict__["_handle"] = self._handle, None
        if handle is not None:
            _zmq.zmq_close(handle)

    def bind(self, addr: str) -> None:
        """Binds the socket."""
        _check(_zmq.zmq_bind(self._handle, addr.encode()))

    def connect(self, addr: str) -> None:
        """Connects the socket."""
        _check(_zmq.zmq_connect(self._handle, addr.encode()))

    def connect_peer(self, addr: str) -> int:
        """Connects a PEER; returns the routing id of the other one."""
        return _zmq.zmq_connect_peer(self._handle, addr.encode()) or _check(-1)

    def join(self, group: bytes) -> None:
        """Joins a group."""
        _check(_zmq.zmq_join(self._handle, group))

    def leave(self, group: bytes) -> None:
        """Leaves a group."""
        _check(_zmq.zmq_leave(self._handle, group))

    def send(self, data: bytes, flags: int = 0, routing_id: int = 0, group: bytes = b"") -> None:
        """Sends a part."""
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        _check(_zmq.zmq_msg_init_size(message, len(data)))
        ctypes.memmove(_zmq.zmq_msg_data(message), data, len(data))
        if routing_id:
            _check(_zmq.zmq_msg_set_routing_id(message, routing_id))
        if group:
            _check(_zmq.zmq_msg_set_group(message, group))
        while _zmq.zmq_msg_send(message, self._handle, flags) < 0:
            if ctypes.get_errno() != errno.EINTR:
                _zmq.zmq_msg_close(message)
                _check(-1)

    def recv_labelled(self, flags: int = 0) -> list:
        """Receives a part; returns it with its routing id, which may be 0, and its group."""
        message = ctypes.create_string_buffer(MESSAGE_BYTES)
        _zmq.zmq_msg_init(message)
        try:
            while _zmq.zmq_msg_recv(message, self._handle, flags) < 0:
                if ctypes.get_errno() != errno.EINTR:
                    _check(-1)
            body = ctypes.string_at(_zmq.zmq_msg_data(message), _zmq.zmq_msg_size(message))
            return [body, _zmq.zmq_msg_routing_id(message), _zmq.zmq_msg_group(message)]
        finally:
            _zmq.zmq_msg_close(message)

    def look(self) -> None:
        """Lets libzmq do what waits for a call, while nothing can be received."""
        with contextlib.suppress(ZMQError):
            self.recv(DONTWAIT)

    def recv(self, flags: int = 0) -> bytes:
        """Receives a part."""
        return self.recv_labelled(flags)[0]

    def recv_multipart(self, flags: int = 0) -> list[bytes]:
        """Receives a message."""
        parts = [self.recv(flags)]
        more, size = ctypes.c_int(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
        while True:
            _check(
                _zmq.zmq_getsockopt(self._handle, RCVMORE, ctypes.byref(more), ctypes.byref(size))
            )
            if not more.value:
                return parts
            parts.append(self.recv(flags))
