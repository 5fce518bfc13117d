"""Sockets of nanomsg's C library, through ctypes."""

import ctypes
import ctypes.util
import os
from typing import Any

# The numbers of nanomsg's headers.
_AF_SP = 1
_SOCKETS = {
    "PAIR": 0x10,
    "PUB": 0x20,
    "SUB": 0x21,
    "REQ": 0x30,
    "REP": 0x31,
    "PUSH": 0x50,
    "PULL": 0x51,
    "SURVEYOR": 0x62,
    "RESPONDENT": 0x63,
    "BUS": 0x70,
}
_SOL_SOCKET, _SNDTIMEO, _RCVTIMEO, _RCVMAXSIZE = 0, 4, 5, 16
_SUBSCRIBE, _SURVEYOR_DEADLINE = 1, 1
_STATISTIC_CONNECTIONS = 201
_MESSAGE = ctypes.c_size_t(-1).value


def find() -> str | None:
    """The library, if it is installed. `NANOMSG_LIBRARY` names another one."""
    return os.environ.get("NANOMSG_LIBRARY") or ctypes.util.find_library("nanomsg")


class Library:
    """The loaded library."""

    def __init__(self, name: str) -> None:
        self._functions = ctypes.CDLL(name, use_errno=True)
        self._functions.nn_get_statistic.restype = ctypes.c_uint64

    def call(self, name: str, *arguments: Any) -> int:
        """Calls a function. Raises `OSError` if it fails."""
        result = getattr(self._functions, name)(*arguments)
        if result < 0:
            number = ctypes.get_errno()
            text = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_int)(
                ("nn_strerror", self._functions)
            )(number)
            raise OSError(number, f"{name}: {text.decode()}")
        return int(result)


class NanomsgSocket:
    """A socket of nanomsg, with the methods of pynng's that the tests use."""

    def __init__(self, library: Library, kind: str, patience: float) -> None:
        self._library = library
        self._number = library.call("nn_socket", _AF_SP, _SOCKETS[kind])
        for option in (_SNDTIMEO, _RCVTIMEO):
            self._set(_SOL_SOCKET, option, int(patience * 1000))
        self._set(_SOL_SOCKET, _RCVMAXSIZE, -1)
        if kind == "SUB":
            self._library.call("nn_setsockopt", self._number, _SOCKETS[kind], _SUBSCRIBE, b"", 0)
        if kind == "SURVEYOR":
            self._set(_SOCKETS[kind], _SURVEYOR_DEADLINE, int(patience * 1000))

    def _set(self, level: int, option: int, value: int) -> None:
        number = ctypes.c_int(value)
        size = ctypes.c_size_t(ctypes.sizeof(number))
        arguments = (self._number, level, option, ctypes.byref(number), size)
        self._library.call("nn_setsockopt", *arguments)

    def bind(self, address: str) -> None:
        self._library.call("nn_bind", self._number, address.encode())

    def connect(self, address: str) -> None:
        self._library.call("nn_connect", self._number, address.encode())

    def connections(self) -> int:
        """How many connections there are."""
        return self._library.call("nn_get_statistic", self._number, _STATISTIC_CONNECTIONS)

    def send(self, body: bytes) -> None:
        self._library.call("nn_send", self._number, body, len(body), 0)

    def recv(self) -> bytes:
        buffer = ctypes.c_void_p()
        arguments = (self._number, ctypes.byref(buffer), ctypes.c_size_t(_MESSAGE), 0)
        size = self._library.call("nn_recv", *arguments)
        body = ctypes.string_at(buffer, size)
        self._library.call("nn_freemsg", buffer)
        return body

    def close(self) -> None:
        self._library.call("nn_close", self._number)
