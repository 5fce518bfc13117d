"""Parses HTTP requests strictly according to RFC 9112.

If two readers disagree about the end of a request, requests can be smuggled past
a proxy. Ambiguous requests are therefore refused, and their connections closed.
"""

import re
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs

__all__ = ["HEAD_MAX", "Request", "Wrong", "parse"]

#: The maximum number of bytes of a request line and its header fields.
HEAD_MAX = 16 << 10

_FIELDS_MAX = 100

_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP/1\.([01])")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[\x21-\x7e\x80-\xff \t]*))")
_LENGTH = re.compile(r"[0-9]{1,18}")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._~!$&'()*+,;=%-]+)(?::[0-9]*)?")


class Wrong(Exception):
    """The answer to a request that cannot be served."""

    def __init__(
        self, status: HTTPStatus, text: str, code: str = "", *, is_over: bool = False, **fields: str
    ) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        #: Whether the connection is closed, because the start of the next request is unknown or too far away.
        self.is_over = is_over
        #: Further header fields of the answer; ``_`` stands for ``-``.
        self.fields = fields


@dataclass
class Request:
    """The head of a request."""

    method: str
    path: str
    query: str
    #: The requested host, without a port; empty in HTTP/1.0, where it may be missing.
    host: str
    fields: dict[str, list[str]] = field(default_factory=dict)
    #: The number of bytes of the body that follows.
    length: int = 0
    has_length: bool = False
    #: Whether another request may follow on the connection.
    is_kept: bool = True
    #: Whether the client waits for permission to send its body.
    waits: bool = False

    def one(self, name: str) -> str:
        """A field that occurs at most once; empty if it is missing."""
        values = self.fields.get(name, [])
        if len(values) > 1:
            raise _bad(f"more than one {name}")
        return values[0] if values else ""

    def parameters(self, *known: str) -> dict[str, str]:
        """The parameters of the query; the last of each name counts.

        Raises `Wrong` for others than the known ones: a misspelled topic must not be lost.
        """
        try:
            found = parse_qs(self.query, keep_blank_values=True, errors="strict", max_num_fields=16)
        except ValueError as error:
            raise Wrong(HTTPStatus.BAD_REQUEST, f"the query cannot be read: {error}") from None
        if unknown := found.keys() - known:
            takes = f"takes {', '.join(known)}" if known else "takes none"
            text = f"{self.path} has no parameter {min(unknown)!r}; it {takes}"
            raise Wrong(HTTPStatus.BAD_REQUEST, text, "invalid")
        return {name: values[-1] for name, values in found.items()}


def parse(head: bytes) -> Request:
    """Parses the head of a request, without the empty line that ends it.

    Raises `Wrong` for invalid and for ambiguous heads.
    """
    # An empty line before a request is ignored.
    first, *rest = head.removeprefix(b"\r\n").split(b"\r\n")
    line = _LINE.fullmatch(first)
    if line is None:
        raise _bad("the request line is not METHOD /path HTTP/1.1")
    method, target, minor = line[1].decode(), line[2].decode(), line[3]
    if len(rest) > _FIELDS_MAX:
        raise Wrong(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            f"a request has at most {_FIELDS_MAX} header fields",
            is_over=True,
        )
    fields: dict[str, list[str]] = {}
    for one in rest:
        found = _FIELD.fullmatch(one)
        if found is None:
            raise _bad("a header field is not NAME: VALUE on a line of its own")
        value = found[2].decode("latin-1").rstrip(" \t")
        fields.setdefault(found[1].decode().lower(), []).append(value)

    authority, place = "", target
    if target.lower().startswith("http://"):
        authority, slash, place = target[len("http://") :].partition("/")
        place = slash + place
        if not authority:
            raise _bad("an http:// target names a host")
    if not place.startswith("/"):
        raise _bad("the target is neither a path nor an http:// address")
    path, _, query = place.partition("?")
    request = Request(method, path, query, "", fields)
    host = request.one("host")
    if not host and (minor == b"1" or "host" in fields):
        raise _bad("a Host is needed")
    if authority or host:
        named = _HOST.fullmatch(authority or host)
        if named is None:
            raise _bad("Host is not the name of one")
        request.host = named[1].lower()
    _frame(request, minor == b"1")
    return request


def _frame(request: Request, is_newer: bool) -> None:
    """Sets the length of the body, and whether another request may follow."""
    codings = request.fields.get("transfer-encoding")
    length = request.one("content-length")
    request.has_length = "content-length" in request.fields
    if codings is not None:
        if request.has_length or not is_newer:
            raise _bad("Transfer-Encoding and Content-Length exclude each other")
        if [coding.lower() for coding in codings] == ["chunked"]:
            raise Wrong(
                HTTPStatus.LENGTH_REQUIRED, "send the body with a Content-Length", is_over=True
            )
        text = f"the transfer coding {', '.join(codings)} is not supported"
        raise Wrong(HTTPStatus.NOT_IMPLEMENTED, text, is_over=True)
    if request.has_length:
        if _LENGTH.fullmatch(length) is None:
            raise _bad("Content-Length is not a number")
        request.length = int(length)
    options = ",".join(request.fields.get("connection", [])).lower().split(",")
    request.is_kept = is_newer and "close" not in [option.strip() for option in options]
    expected = request.one("expect").lower()
    if expected not in ("", "100-continue"):
        text = f"nothing is known of Expect: {expected}"
        raise Wrong(HTTPStatus.EXPECTATION_FAILED, text, is_over=True)
    request.waits = is_newer and bool(expected) and request.length > 0


def _bad(text: str) -> Wrong:
    return Wrong(HTTPStatus.BAD_REQUEST, text, "malformed", is_over=True)
