"""The ZAP handler, without the thread or loop that drives it."""

import hmac
import inspect
import logging
import os
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from .. import Context, Socket, _checks, _native, constants
from .._exports import exports_only
from ..constants import Errno
from ..error import ZMQError, failure
from ..utils import z85
from .certs import load_certificates

__all__ = ["CURVE_ALLOW_ANY", "Authenticator"]


def __dir__() -> list[str]:
    return exports_only(globals())


# Used instead of a folder of certificates, this accepts every client key.
CURVE_ALLOW_ANY = "*"

ENDPOINT = "inproc://zeromq.zap.01"
VERSION = b"1.0"

# The domain of sockets without one.
_DEFAULT_DOMAIN = "*"


# What `domain` takes.
_DOMAIN = "the domain of sockets"

# A private key: digests are compared instead of passwords, whose lengths would be visible.
_SALT = os.urandom(32)


def _is_same(expected: str, got: str) -> bool:
    """Compares in a time that depends neither on the first difference nor on the lengths."""
    left, right = (
        hmac.digest(_SALT, text.encode("utf-8", "surrogatepass"), "sha256")
        for text in (expected, got)
    )
    return hmac.compare_digest(left, right)


def _addresses(call: str, addresses: tuple[Any, ...]) -> tuple[str, ...]:
    """Checks addresses, and writes them as they are compared."""
    import ipaddress

    checked = []
    for address in addresses:
        if not isinstance(address, str):
            raise TypeError(
                f"{call} takes addresses, each a str such as '127.0.0.1', not"
                f" {_checks.shown(address)}; unpack a list: {call}(*addresses)"
            )
        try:
            # Over ipc, an address is the numbers of a user, a group and a process.
            checked.append(
                address
                if address.startswith(":") and address.count(":") == 3
                else str(ipaddress.ip_address(address))
            )
        except ValueError:
            raise ValueError(
                f"{call} takes numeric IP addresses such as '127.0.0.1', not"
                f" {_checks.shown(address)}: no peer has such an address"
            ) from None
    return tuple(checked)


def _check_plain(domain: Any, passwords: Any) -> None:
    """Checks users. No error shows a password."""
    if not isinstance(domain, str):
        hint = "; passwords is the second argument" if isinstance(domain, Mapping) else ""
        raise TypeError(
            f"domain takes {_DOMAIN}, which is a str, not a {type(domain).__name__}{hint}"
        )
    if passwords is None:
        return
    if not isinstance(passwords, Mapping):
        raise TypeError(
            f"passwords takes a dict {{user: password}}, not a {type(passwords).__name__}"
        )
    for user, password in passwords.items():
        if not isinstance(user, str):
            raise TypeError(f"passwords takes users as str, not {_checks.shown(user)}")
        if not isinstance(password, str):
            raise TypeError(
                f"passwords takes passwords as str, and that of {user!r} is of type"
                f" {type(password).__name__}"
            )


class CredentialsProvider(Protocol):
    """Decides about keys, see `Authenticator.configure_curve_callback`."""

    def callback(self, domain: str, key: bytes) -> bool | Awaitable[bool]:
        """Returns whether the owner of the public `key`, in Z85, is accepted."""


class Authenticator:
    """Decides which peers may connect to the sockets of a context.

    This class decides; `ThreadAuthenticator` and `AsyncioAuthenticator` also run it. A
    socket asks the authenticator if the socket is a PLAIN or CURVE server, or has a ``zap_domain``. Domains are
    compared literally; ``"*"`` stands for sockets without one. `Socket.secure_server` needs
    no authenticator.

    Without settings, an authenticator accepts every NULL peer, and no peer by PLAIN or
    CURVE.

    Args:
        context: The context whose sockets ask; None for ``Context.instance()``.
        encoding: The encoding of domains, addresses, user names and passwords.
        log: A logger; None for ``logging.getLogger("zmq.auth")``.

    Raises:
        TypeError: An argument is of the wrong type.
        LookupError: There is no such encoding.

    Source:
        27/ZAP, section "Message Format"; pyzmq's ``zmq.auth.Authenticator``
    """

    context: "Context[Any]"
    """The context whose sockets ask the authenticator."""
    encoding: str
    """The encoding of domains, addresses, user names and passwords."""
    allow_any: bool
    """Whether every CURVE key is accepted."""
    credentials_providers: dict[str, Any]
    """The objects of `configure_curve_callback`, by domain."""
    zap_socket: "Socket[Any]"
    """The socket that requests arrive at; None while the authenticator is stopped."""
    passwords: dict[str, dict[str, str]]
    """The password of each user, by domain."""
    certs: dict[str, dict[bytes, Any]]
    """The accepted CURVE keys, by domain."""
    log: Any
    """The logger."""
    _allowed: set[str]
    _denied: set[str]

    def __init__(
        self,
        context: "Context[Any] | None" = None,
        encoding: str = "utf-8",
        log: Any = None,
    ) -> None:
        if context is not None and not isinstance(context, _native.Context):
            raise TypeError(
                "context takes a zmq.Context, or None for Context.instance(), not"
                f" {_checks.shown(context)}"
            )
        if log is not None and not callable(getattr(log, "debug", None)):
            raise TypeError(
                f"log takes a logger such as logging.getLogger('auth'), not {_checks.shown(log)}"
            )
        self.context = Context.instance() if context is None else context
        self.encoding = _checks.encoding(encoding)
        self.allow_any = False
        self.credentials_providers = {}
        self.zap_socket = None  # type: ignore[assignment]
        self.passwords = {}
        self.certs = {}
        self.log = log or logging.getLogger("zmq.auth")
        self._allowed = set()
        self._denied = set()

    # ---- life -----------------------------------------------------------------------

    def start(self) -> None:
        """Makes the socket that requests arrive at. A context can have one.

        Raises:
            ZMQError: ``EADDRINUSE`` if the context has an authenticator already.
        """
        # This socket is used directly, so it does not have the class of the context's sockets.
        socket = self.context.socket(constants.REP, socket_class=Socket)
        socket.linger = 1
        # Not the context's defaults, because there may be long pauses between requests.
        socket.rcvtimeo = socket.sndtimeo = -1
        try:
            socket.bind(ENDPOINT)
        except ZMQError as error:
            socket.close()
            if error.errno != Errno.EADDRINUSE:
                raise
            taken = "this context has an authenticator already; stop that one first"
            raise failure(Errno.EADDRINUSE, taken) from None
        self.zap_socket = socket
        self.log.debug("Starting")

    def stop(self) -> None:
        """Closes the socket. Later requests get no answer."""
        if self.zap_socket:
            self.zap_socket.close()
        self.zap_socket = None  # type: ignore[assignment]

    # ---- settings -------------------------------------------------------------------

    def allow(self, *addresses: str) -> None:
        """Accepts only these IP addresses. A further call adds addresses.

        Args:
            *addresses: The addresses, as text.

        Raises:
            TypeError: An address is not text.
            ValueError: An address is not an IP address, or `deny` was called before.
        """
        addresses = _addresses("allow", addresses)
        if self._denied:
            raise ValueError("Only use allow or deny, not both")
        self.log.debug("Allowing %s", ",".join(addresses))
        self._allowed.update(addresses)

    def deny(self, *addresses: str) -> None:
        """Rejects these IP addresses. A further call adds addresses.

        Args:
            *addresses: The addresses, as text.

        Raises:
            TypeError: An address is not text.
            ValueError: An address is not an IP address, or `allow` was called before.
        """
        addresses = _addresses("deny", addresses)
        if self._allowed:
            raise ValueError("Only use allow or deny, not both")
        self.log.debug("Denying %s", ",".join(addresses))
        self._denied.update(addresses)

    def configure_plain(
        self, domain: str = _DEFAULT_DOMAIN, passwords: dict[str, str] | None = None
    ) -> None:
        """Sets the users of a domain and their passwords, in place of those it had.

        Args:
            domain: The domain; ``"*"`` for sockets without one.
            passwords: A dict from user names to passwords. None changes nothing.

        Raises:
            TypeError: An argument is of the wrong type.

        Source:
            27/ZAP, section "The PLAIN Mechanism"; 24/ZMTP-PLAIN
        """
        # An empty dict is also a setting: no user is accepted.
        _check_plain(domain, passwords)
        if passwords is not None:
            self.passwords[domain] = passwords
        self.log.debug("Configure plain: %s", domain)

    def configure_curve(
        self, domain: str = _DEFAULT_DOMAIN, location: "str | os.PathLike[str]" = "."
    ) -> None:
        """Accepts the owners of a folder of certificates in a domain.

        Call it again when files were added or removed.

        Args:
            domain: The domain; ``"*"`` for sockets without one.
            location: The folder, or `CURVE_ALLOW_ANY` to accept every key in all domains.

        Raises:
            TypeError: An argument is of the wrong type. A folder that cannot be read is logged.

        Source:
            27/ZAP, section "The CURVE Mechanism"; 25/ZMTP-CURVE
        """
        _checks.name("domain", domain, _DOMAIN)
        _checks.path("location", location)
        self.log.debug("Configure curve: %s[%s]", domain, location)
        if location == CURVE_ALLOW_ANY:
            self.allow_any = True
            return
        self.allow_any = False
        try:
            self.certs[domain] = load_certificates(location)
        except Exception as error:
            # Previous keys may no longer be valid.
            self.certs.pop(domain, None)
            self.log.error("Failed to load CURVE certs from %s: %s", location, error)

    def configure_curve_callback(
        self,
        domain: str = _DEFAULT_DOMAIN,
        credentials_provider: CredentialsProvider | None = None,
    ) -> None:
        """Lets an object decide about the keys of a domain.

        Args:
            domain: The domain; ``"*"`` for sockets without one.
            credentials_provider: An object with ``callback(domain, key)``, which returns whether
                the owner of `key` (Z85, as `bytes`) may connect. It may be a coroutine function.

        Raises:
            TypeError: An argument is of the wrong type.
        """
        _checks.name("domain", domain, _DOMAIN)
        if credentials_provider is not None and not callable(
            getattr(credentials_provider, "callback", None)
        ):
            raise TypeError(
                "credentials_provider takes an object with a method callback(domain, key), not"
                f" {_checks.shown(credentials_provider)}"
            )
        self.allow_any = False
        if credentials_provider is None:
            self.log.error("None credentials_provider provided for domain:%s", domain)
        else:
            self.credentials_providers[domain] = credentials_provider

    def configure_gssapi(self, domain: str = _DEFAULT_DOMAIN, location: str | None = None) -> None:
        """Does nothing: GSSAPI is not built in.

        Args:
            domain: Ignored.
            location: Ignored.
        """

    def curve_user_id(self, client_public_key: bytes) -> str:
        """Returns the ``User-Id`` of the owner of a key. Override it to name clients.

        Args:
            client_public_key: The key, 32 bytes.

        Returns:
            The key in Z85.

        Raises:
            TypeError: The key is not bytes.
        """
        return z85.encode(client_public_key).decode("ascii")

    # ---- requests -------------------------------------------------------------------

    async def handle_zap_message(self, msg: list[bytes]) -> None:
        """Answers a request.

        Args:
            msg: The parts of the request.

        Raises:
            TypeError: `msg` is not a list of parts.
            RuntimeError: `start` was not called.
        """
        msg = _checks.items("msg", msg, "the parts of a request, a list of bytes")
        if not all(isinstance(part, bytes) for part in msg):
            raise TypeError(f"msg takes a list of bytes, not {_checks.shown(msg)}")
        if self.zap_socket is None:
            raise RuntimeError("this authenticator is not started; call start() first")
        # A peer that did not number its request does not understand the answer; later requests get theirs.
        request_id = msg[1] if len(msg) > 1 else b""
        try:
            status, reason, user_id = await self._decide(msg)
        except BaseException as error:
            if not (isinstance(error, Exception | SystemExit) or _is_of_callback(error)):
                raise
            # There must be an answer, because this peer and all later ones wait.
            self._send_zap_reply(request_id, b"500", b"Internal error", "")
            address = msg[3].decode("utf-8", "replace") if len(msg) > 3 else "an unknown address"
            self.log.exception("the question about %s cannot be answered", address)
            if isinstance(error, SystemExit):
                raise
            return
        self._send_zap_reply(request_id, status, reason, user_id)

    async def _answer(self, request: list[bytes]) -> None:
        """Handles a request. A replaced method or a logger that fails does not end the caller's loop."""
        try:
            await self.handle_zap_message(request)
        except Exception as error:
            if isinstance(error, ZMQError) and error.errno in (Errno.ENOTSOCK, Errno.ETERM):
                return  # if the socket is closed, the next call to receive raises this, too
            self._answer_failure(request)
            with suppress(Exception):
                self.log.exception("a request to the authenticator failed")

    async def _answer_apart(self, request: list[bytes]) -> None:
        """Handles a request in a task of its own, which a provider may end by cancelling it or by `sys.exit`."""
        import asyncio

        answering = asyncio.ensure_future(self._answer(request))
        try:
            await asyncio.wait([answering])
        except asyncio.CancelledError:
            answering.cancel()
            raise
        if answering.cancelled() or answering.exception() is not None:
            self._answer_failure(request)
            with suppress(Exception):
                self.log.error("a provider has ended the task of a request to the authenticator")

    def _answer_failure(self, request: list[bytes]) -> None:
        # This raises EFSM if the request was answered before.
        with suppress(Exception):
            self._send_zap_reply(b"".join(request[1:2]), b"500", b"Internal error", "")

    async def _decide(self, msg: list[bytes]) -> tuple[bytes, bytes, bytes]:
        """Returns the status, the reason and the User-Id of the answer to a request."""
        if len(msg) < 6:
            self.log.error("Invalid ZAP message, not enough frames: %r", msg)
            return b"400", b"Not enough frames", b""
        version, request_id, domain_, address_, identity, mechanism = msg[:6]
        credentials = msg[6:]
        if version != VERSION:
            self.log.error("Invalid ZAP version: %r", version)
            return b"400", b"Invalid version", b""
        domain = domain_.decode(self.encoding, "replace")
        address = address_.decode(self.encoding, "replace")
        self.log.debug(
            "version: %r, request_id: %r, domain: %r, address: %r, identity: %r, mechanism: %r",
            version,
            request_id,
            domain,
            address,
            identity,
            mechanism,
        )
        if reason := self._check_address(address):
            return b"400", reason, b""
        reason, user_id = await self._authenticate(domain, mechanism, credentials)
        if reason:
            return b"400", reason, b""
        return b"200", b"OK", self._encoded("curve_user_id", user_id)

    def _encoded(self, method: str, text: Any) -> bytes:
        """Returns what a method, which may be a replacement, has returned, in the form in which it is sent."""
        if isinstance(text, str):
            return text.encode(self.encoding, "replace")
        if not isinstance(text, bytes):
            raise TypeError(f"{method} returns a str or bytes, not {_checks.shown(text)}")
        return text

    def _check_address(self, address: str) -> bytes:
        """The reason why an address is rejected; empty if it is accepted."""
        if self._allowed:
            if address not in self._allowed:
                self.log.debug("DENIED (not allowed) address=%s", address)
                return b"Address not allowed"
            self.log.debug("PASSED (allowed) address=%s", address)
        elif self._denied:
            if address in self._denied:
                self.log.debug("DENIED (denied) address=%s", address)
                return b"Address denied"
            self.log.debug("PASSED (not denied) address=%s", address)
        return b""

    async def _authenticate(
        self, domain: str, mechanism: bytes, credentials: list[bytes]
    ) -> tuple[bytes, str | bytes]:
        """The reason why a peer is rejected, empty if it is accepted, and its User-Id."""
        name = mechanism.decode("ascii", "replace")
        expected = {"NULL": 0, "PLAIN": 2, "CURVE": 1, "GSSAPI": 1}.get(name)
        if expected is None:
            return b"NO ACCESS", ""
        if name == "NULL":
            # Only the address can be checked.
            self.log.debug("ALLOWED (NULL)")
            return b"", "anonymous"
        if len(credentials) != expected:
            self.log.error("Invalid %s credentials: there are %d", name, len(credentials))
            return b"Invalid credentials", ""
        if name == "PLAIN":
            user, password = (part.decode(self.encoding, "replace") for part in credentials)
            allowed, reason = self._authenticate_plain(domain, user, password)
            return self._verdict("_authenticate_plain", allowed, reason), user
        if name == "CURVE":
            key = credentials[0]
            if len(key) != 32:
                self.log.error("Invalid CURVE credentials: a key of %d bytes", len(key))
                return b"Invalid credentials", ""
            allowed, reason = await self._authenticate_curve(domain, key)
            refusal = self._verdict("_authenticate_curve", allowed, reason)
            return refusal, "" if refusal else self.curve_user_id(key)
        principal = credentials[0]
        allowed, reason = self._authenticate_gssapi(domain, principal)
        refusal = self._verdict("_authenticate_gssapi", allowed, reason)
        return refusal, principal.decode(self.encoding, "replace")

    def _verdict(self, method: str, allowed: object, reason: Any) -> bytes:
        """Returns the reason why a peer is rejected, which is never empty; empty if it is accepted."""
        return b"" if allowed else self._encoded(method, reason) or b"NO ACCESS"

    def _authenticate_plain(self, domain: str, username: str, password: str) -> tuple[bool, bytes]:
        """Returns whether the password is right, and the reason if not."""
        if not self.passwords:
            reason = b"No passwords defined"
        elif (users := self.passwords.get(domain or _DEFAULT_DOMAIN)) is None:
            reason = b"Invalid domain"
        # An unknown user takes as long as a wrong password.
        elif not _is_same(users.get(username, ""), password):
            reason = b"Invalid password" if username in users else b"Invalid username"
        elif username not in users:
            reason = b"Invalid username"
        else:
            self.log.debug("ALLOWED (PLAIN) domain=%s username=%s", domain, username)
            return True, b""
        self.log.debug("DENIED (PLAIN) domain=%s username=%s: %r", domain, username, reason)
        return False, reason

    async def _authenticate_curve(self, domain: str, client_key: bytes) -> tuple[bool, bytes]:
        """Returns whether a key is accepted, and the reason if not."""
        domain = domain or _DEFAULT_DOMAIN
        if self.allow_any:
            self.log.debug("ALLOWED (CURVE allow any client)")
            return True, b""
        z85_key = z85.encode(client_key)
        if self.credentials_providers:
            provider = self.credentials_providers.get(domain)
            if provider is None:
                return False, b"Unknown domain"
            allowed = provider.callback(domain, z85_key)
            if inspect.isawaitable(allowed):
                allowed = await allowed
        else:
            if domain not in self.certs:
                return False, b"Unknown domain"
            allowed = z85_key in self.certs[domain]
        verdict = "ALLOWED" if allowed else "DENIED"
        self.log.debug("%s (CURVE) domain=%s client_key=%r", verdict, domain, z85_key)
        return (True, b"") if allowed else (False, b"Unknown key")

    def _authenticate_gssapi(self, domain: str, principal: bytes) -> tuple[bool, bytes]:
        """The mechanism has already authenticated the peer."""
        self.log.debug("ALLOWED (GSSAPI) domain=%s principal=%s", domain, principal)
        return True, b""

    def _send_zap_reply(
        self,
        request_id: bytes,
        status_code: bytes,
        status_text: bytes,
        user_id: str | bytes = "anonymous",
    ) -> None:
        """Answers the request with the number `request_id`."""
        user = user_id if status_code == b"200" else ""
        name = user.encode(self.encoding, "replace") if isinstance(user, str) else user
        reply = [VERSION, request_id, status_code, status_text, name, b""]
        self.zap_socket.send_multipart(reply)
        self.log.debug("ZAP reply code=%r text=%r", status_code, status_text)


def _is_of_callback(error: BaseException) -> bool:
    """Returns whether what a callback waited for was cancelled, and not the task that handles the request."""
    import asyncio

    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is None or not task.cancelling()
