# Written by tools/constants_stub.py. A docstring below a name is what editors show for it.

from enum import Enum, IntEnum, IntFlag

class _OptType(Enum):
    int = "int"
    int64 = "int64"
    bytes = "bytes"
    fd = "fd"

class ContextOption(IntEnum):
    """Options of `Context.set` and `Context.get`.

    Each has a text of its own with its unit and default, for example
    ``help(zmq.ContextOption.IO_THREADS)``. The page "Options" lists them.

    Source:
        zmq_ctx_set(3), zmq_ctx_get(3)
    """

    IO_THREADS = 1
    """How many I/O threads serve the sockets; fixed when the first socket is created. 0 is enough
    for inproc.

    Type: int, in threads. Default: 1.

    Source: ``ZMQ_IO_THREADS`` of zmq_ctx_set(3)
    """
    MAX_SOCKETS = 2
    """How many sockets may be open at a time.

    Type: int, in sockets. Default: 1023.

    Source: ``ZMQ_MAX_SOCKETS`` of zmq_ctx_set(3)
    """
    SOCKET_LIMIT = 3
    """SOCKET_LIMIT: libzmq's maximum number of sockets; MAX_SOCKETS may be larger.

    Type: int, in sockets. Default: 65535. It can only be read.

    Source: ``ZMQ_SOCKET_LIMIT`` of zmq_ctx_get(3)

    THREAD_PRIORITY: The scheduling priority of the I/O threads; the default is the system's.

    Type: int. It can only be set.

    Source: ``ZMQ_THREAD_PRIORITY`` of zmq_ctx_set(3)
    """
    THREAD_PRIORITY = SOCKET_LIMIT
    """SOCKET_LIMIT: libzmq's maximum number of sockets; MAX_SOCKETS may be larger.

    Type: int, in sockets. Default: 65535. It can only be read.

    Source: ``ZMQ_SOCKET_LIMIT`` of zmq_ctx_get(3)

    THREAD_PRIORITY: The scheduling priority of the I/O threads; the default is the system's.

    Type: int. It can only be set.

    Source: ``ZMQ_THREAD_PRIORITY`` of zmq_ctx_set(3)
    """
    THREAD_SCHED_POLICY = 4
    """The scheduling policy of the I/O threads (SCHED_*); -1, the system's, can only be read.

    Type: int. Default: -1.

    Source: ``ZMQ_THREAD_SCHED_POLICY`` of zmq_ctx_set(3)
    """
    MAX_MSGSZ = 5
    """Stored without effect, for programs that read it back; the socket option MAXMSGSIZE is the
    limit.

    Type: int, in bytes. Default: 2147483647.

    Source: ``ZMQ_MAX_MSGSZ`` of zmq_ctx_set(3)
    """
    MSG_T_SIZE = 6
    """The size of libzmq's message structure, 64; zeroxide does not use it.

    Type: int, in bytes. Default: 64. It can only be read.

    Source: ``ZMQ_MSG_T_SIZE`` of zmq_ctx_get(3)
    """
    THREAD_AFFINITY_CPU_ADD = 7
    """One more CPU for the I/O threads to run on.

    Type: int. It can only be set.

    Source: ``ZMQ_THREAD_AFFINITY_CPU_ADD`` of zmq_ctx_set(3)
    """
    THREAD_AFFINITY_CPU_REMOVE = 8
    """One CPU less for the I/O threads to run on.

    Type: int. It can only be set.

    Source: ``ZMQ_THREAD_AFFINITY_CPU_REMOVE`` of zmq_ctx_set(3)
    """
    THREAD_NAME_PREFIX = 9
    """The prefix of the I/O threads' names; a number or up to 16 bytes.

    Type: int.

    Source: ``ZMQ_THREAD_NAME_PREFIX`` of zmq_ctx_set(3)
    """
    ZERO_COPY_RECV = 10
    """Stored without effect, for programs that read it back; large messages are always received
    without a copy.

    Type: int. Default: 1.

    Source: ``ZMQ_ZERO_COPY_RECV`` of zmq_ctx_set(3)
    """
    MEMORY_BUDGET = 1101
    """How many bytes the messages and topics of all peers together may take: incomplete messages,
    those not received yet, and topics that peers have subscribed to. 0 = no limit.

    Type: int. Default: three quarters of the memory the process may have, in bytes.

    Source: zeroxide only
    """

class DeviceType(IntEnum):
    """The first argument of `device`, which has no effect.

    Attributes:
        STREAMER: PULL to PUSH.
        FORWARDER: XSUB to XPUB.
        QUEUE: ROUTER to DEALER.

    Source:
        pyzmq's ``DeviceType``
    """

    STREAMER = 1
    """PULL to PUSH."""
    FORWARDER = 2
    """XSUB to XPUB."""
    QUEUE = 3
    """ROUTER to DEALER."""

class Errno(IntEnum):
    """Error numbers that `ZMQError.errno` may hold.

    The numbers of the system, as in the module `errno`, and four of ZeroMQ's own.

    Attributes:
        EAGAIN: The call would have to wait, or timed out: raised as `Again`.
        EFAULT: The context is closed, or does not exist.
        EINVAL: An option, a value or an address is invalid.
        ENOTSUP: The socket's type cannot do this.
        EPROTONOSUPPORT: There is no such transport.
        ENOBUFS: There is no buffer space.
        ENETDOWN: The network is down.
        EADDRINUSE: Another socket is bound to the address.
        EADDRNOTAVAIL: The address is not one of this machine.
        ECONNREFUSED: No process listens at the address.
        EINPROGRESS: The connection is being made.
        ENOTSOCK: The socket is closed, or belongs to another process.
        EMSGSIZE: The message is too large.
        EAFNOSUPPORT: The address family is not supported.
        ENETUNREACH: The network cannot be reached.
        ECONNABORTED: The connection was aborted.
        ECONNRESET: The peer reset the connection.
        ENOTCONN: The socket is not connected.
        ETIMEDOUT: The connection timed out.
        EHOSTUNREACH: No peer has the routing id (ROUTER with ``ROUTER_MANDATORY``).
        ENETRESET: The network dropped the connection.
        EFSM: The socket cannot do this in its state: a REQ or REP has to send or receive first.
        ENOCOMPATPROTO: The transport does not fit the type of the socket.
        ETERM: The context was shut down or terminated: raised as `ContextTerminated`.
        EMTHREAD: There is no I/O thread, or the system could not start one.
        ETOOSLOW: A SUB has not kept up with its publishers: raised as `TooSlow`. Not a number of libzmq.

    Source:
        zmq_errno(3)
    """

    EAGAIN = ...
    """The call would have to wait, or timed out: raised as `Again`."""
    EFAULT = ...
    """The context is closed, or does not exist."""
    EINVAL = ...
    """An option, a value or an address is invalid."""
    ENOTSUP = ...
    """The socket's type cannot do this."""
    EPROTONOSUPPORT = ...
    """There is no such transport."""
    ENOBUFS = ...
    """There is no buffer space."""
    ENETDOWN = ...
    """The network is down."""
    EADDRINUSE = ...
    """Another socket is bound to the address."""
    EADDRNOTAVAIL = ...
    """The address is not one of this machine."""
    ECONNREFUSED = ...
    """No process listens at the address."""
    EINPROGRESS = ...
    """The connection is being made."""
    ENOTSOCK = ...
    """The socket is closed, or belongs to another process."""
    EMSGSIZE = ...
    """The message is too large."""
    EAFNOSUPPORT = ...
    """The address family is not supported."""
    ENETUNREACH = ...
    """The network cannot be reached."""
    ECONNABORTED = ...
    """The connection was aborted."""
    ECONNRESET = ...
    """The peer reset the connection."""
    ENOTCONN = ...
    """The socket is not connected."""
    ETIMEDOUT = ...
    """The connection timed out."""
    EHOSTUNREACH = ...
    """No peer has the routing id (ROUTER with ``ROUTER_MANDATORY``)."""
    ENETRESET = ...
    """The network dropped the connection."""
    EFSM = ...
    """The socket cannot do this in its state: a REQ or REP has to send or receive first."""
    ENOCOMPATPROTO = ...
    """The transport does not fit the type of the socket."""
    ETERM = ...
    """The context was shut down or terminated: raised as `ContextTerminated`."""
    EMTHREAD = ...
    """There is no I/O thread, or the system could not start one."""
    ETOOSLOW = ...
    """A SUB has not kept up with its publishers: raised as `TooSlow`. Not a number of libzmq."""

class Event(IntFlag):
    """Events of connections, and the codes that a protocol failure has as its value.

    Attributes:
        CONNECTED: A connection was made.
        CONNECT_DELAYED: A connection is being made.
        CONNECT_RETRIED: A connection failed and is tried again; the value is the delay in ms.
        LISTENING: The socket listens at an address.
        BIND_FAILED: The socket cannot listen at an address; the value is an errno.
        ACCEPTED: A connection was accepted.
        ACCEPT_FAILED: A connection could not be accepted; the value is an errno.
        CLOSED: A connection or listener was closed.
        CLOSE_FAILED: A descriptor could not be closed; the value is an errno.
        DISCONNECTED: A connection ended.
        MONITOR_STOPPED: The monitor ended.
        HANDSHAKE_FAILED_NO_DETAIL: The handshake failed; the value is an errno.
        HANDSHAKE_SUCCEEDED: The handshake is complete: messages can flow.
        HANDSHAKE_FAILED_PROTOCOL: The peer broke the protocol; the value is one of the codes.
        HANDSHAKE_FAILED_AUTH: The peer was refused; the value is the status code of ZAP.
        GAP: Packets of epgm or pgm were lost; the value is their number. Only in zeroxide.
        ALL_V1: All of the above.
        ALL: All of the above.
        PIPES_STATS: A draft, never sent.
        ALL_V2: All, drafts included.
        PROTOCOL_ERROR_ZMTP_UNSPECIFIED: The peer broke ZMTP in a way that has no code of its
            own.
        PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND: A command came at the wrong time.
        PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE: A frame came at the wrong time.
        PROTOCOL_ERROR_ZMTP_KEY_EXCHANGE: The exchange of keys failed.
        PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED: A command is malformed.
        PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_MESSAGE: A MESSAGE command is malformed.
        PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_HELLO: A HELLO command is malformed.
        PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_INITIATE: An INITIATE command is malformed.
        PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR: An ERROR command is malformed.
        PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_READY: A READY command is malformed.
        PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_WELCOME: A WELCOME command is malformed.
        PROTOCOL_ERROR_ZMTP_INVALID_METADATA: The metadata is malformed.
        PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC: A box could not be opened: wrong keys.
        PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH: The peers use different mechanisms.
        PROTOCOL_ERROR_ZAP_UNSPECIFIED: The handler broke ZAP in a way that has no code of its
            own.
        PROTOCOL_ERROR_ZAP_MALFORMED_REPLY: The handler's reply is malformed.
        PROTOCOL_ERROR_ZAP_BAD_REQUEST_ID: The handler replied to another request.
        PROTOCOL_ERROR_ZAP_BAD_VERSION: The handler replied in another version.
        PROTOCOL_ERROR_ZAP_INVALID_STATUS_CODE: The handler's status is none of ZAP's.
        PROTOCOL_ERROR_ZAP_INVALID_METADATA: The handler's metadata is malformed.
        PROTOCOL_ERROR_WS_UNSPECIFIED: For WebSockets, which are not built in.

    Source:
        zmq_socket_monitor(3); 37/ZMTP, sections "Error Handling" and "Commands"; 27/ZAP, section "Message Format"
    """

    PROTOCOL_ERROR_ZMTP_UNSPECIFIED = 0x10000000
    """The peer broke ZMTP in a way that has no code of its own.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_UNSPECIFIED`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND = 0x10000001
    """A command came at the wrong time.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE = 0x10000002
    """A frame came at the wrong time.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZMTP_KEY_EXCHANGE = 0x10000003
    """The exchange of keys failed.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_KEY_EXCHANGE`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED = 0x10000011
    """A command is malformed.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_MESSAGE = 0x10000012
    """A MESSAGE command is malformed.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_MESSAGE`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_HELLO = 0x10000013
    """A HELLO command is malformed.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_HELLO`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_INITIATE = 0x10000014
    """An INITIATE command is malformed.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_INITIATE`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR = 0x10000015
    """An ERROR command is malformed.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_READY = 0x10000016
    """A READY command is malformed.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_READY`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_WELCOME = 0x10000017
    """A WELCOME command is malformed.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_WELCOME`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZMTP_INVALID_METADATA = 0x10000018
    """The metadata is malformed.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_INVALID_METADATA`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC = 0x11000001
    """A box could not be opened: wrong keys.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH = 0x11000002
    """The peers use different mechanisms.

    Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZAP_UNSPECIFIED = 0x20000000
    """The handler broke ZAP in a way that has no code of its own.

    Source: ``ZMQ_PROTOCOL_ERROR_ZAP_UNSPECIFIED`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZAP_MALFORMED_REPLY = 0x20000001
    """The handler's reply is malformed.

    Source: ``ZMQ_PROTOCOL_ERROR_ZAP_MALFORMED_REPLY`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZAP_BAD_REQUEST_ID = 0x20000002
    """The handler replied to another request.

    Source: ``ZMQ_PROTOCOL_ERROR_ZAP_BAD_REQUEST_ID`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZAP_BAD_VERSION = 0x20000003
    """The handler replied in another version.

    Source: ``ZMQ_PROTOCOL_ERROR_ZAP_BAD_VERSION`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZAP_INVALID_STATUS_CODE = 0x20000004
    """The handler's status is none of ZAP's.

    Source: ``ZMQ_PROTOCOL_ERROR_ZAP_INVALID_STATUS_CODE`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_ZAP_INVALID_METADATA = 0x20000005
    """The handler's metadata is malformed.

    Source: ``ZMQ_PROTOCOL_ERROR_ZAP_INVALID_METADATA`` of zmq_socket_monitor(3)
    """
    PROTOCOL_ERROR_WS_UNSPECIFIED = 0x30000000
    """For WebSockets, which are not built in.

    Source: ``ZMQ_PROTOCOL_ERROR_WS_UNSPECIFIED`` of zmq_socket_monitor(3)
    """
    CONNECTED = 0x1
    """A connection was made.

    Source: ``ZMQ_EVENT_CONNECTED`` of zmq_socket_monitor(3)
    """
    CONNECT_DELAYED = 0x2
    """A connection is being made.

    Source: ``ZMQ_EVENT_CONNECT_DELAYED`` of zmq_socket_monitor(3)
    """
    CONNECT_RETRIED = 0x4
    """A connection failed and is tried again; the value is the delay in ms.

    Source: ``ZMQ_EVENT_CONNECT_RETRIED`` of zmq_socket_monitor(3)
    """
    LISTENING = 0x8
    """The socket listens at an address.

    Source: ``ZMQ_EVENT_LISTENING`` of zmq_socket_monitor(3)
    """
    BIND_FAILED = 0x10
    """The socket cannot listen at an address; the value is an errno.

    Source: ``ZMQ_EVENT_BIND_FAILED`` of zmq_socket_monitor(3)
    """
    ACCEPTED = 0x20
    """A connection was accepted.

    Source: ``ZMQ_EVENT_ACCEPTED`` of zmq_socket_monitor(3)
    """
    ACCEPT_FAILED = 0x40
    """A connection could not be accepted; the value is an errno.

    Source: ``ZMQ_EVENT_ACCEPT_FAILED`` of zmq_socket_monitor(3)
    """
    CLOSED = 0x80
    """A connection or listener was closed.

    Source: ``ZMQ_EVENT_CLOSED`` of zmq_socket_monitor(3)
    """
    CLOSE_FAILED = 0x100
    """A descriptor could not be closed; the value is an errno.

    Source: ``ZMQ_EVENT_CLOSE_FAILED`` of zmq_socket_monitor(3)
    """
    DISCONNECTED = 0x200
    """A connection ended.

    Source: ``ZMQ_EVENT_DISCONNECTED`` of zmq_socket_monitor(3)
    """
    MONITOR_STOPPED = 0x400
    """The monitor ended.

    Source: ``ZMQ_EVENT_MONITOR_STOPPED`` of zmq_socket_monitor(3)
    """
    HANDSHAKE_FAILED_NO_DETAIL = 0x800
    """The handshake failed; the value is an errno.

    Source: ``ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL`` of zmq_socket_monitor(3)
    """
    HANDSHAKE_SUCCEEDED = 0x1000
    """The handshake is complete: messages can flow.

    Source: ``ZMQ_EVENT_HANDSHAKE_SUCCEEDED`` of zmq_socket_monitor(3)
    """
    HANDSHAKE_FAILED_PROTOCOL = 0x2000
    """The peer broke the protocol; the value is one of the codes.

    Source: ``ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL`` of zmq_socket_monitor(3)
    """
    HANDSHAKE_FAILED_AUTH = 0x4000
    """The peer was refused; the value is the status code of ZAP.

    Source: ``ZMQ_EVENT_HANDSHAKE_FAILED_AUTH`` of zmq_socket_monitor(3)
    """
    GAP = 0x8000
    """Packets of epgm or pgm were lost; the value is their number. Only in zeroxide.

    Source: ``ZMQ_EVENT_GAP`` of zmq_socket_monitor(3)
    """
    ALL_V1 = 0xFFFF
    """All of the above.

    Source: zmq_socket_monitor_versioned(3)
    """
    ALL = ALL_V1
    """Another name of `ALL_V1`. All of the above.

    Source: zmq_socket_monitor_versioned(3)
    """
    PIPES_STATS = 0x10000
    """A draft, never sent.

    Source: ``ZMQ_EVENT_PIPES_STATS`` of zmq_socket_monitor_versioned(3)
    """
    ALL_V2 = 0x1FFFF
    """All, drafts included.

    Source: zmq_socket_monitor_versioned(3)
    """

class Flag(IntFlag):
    """Flags of the calls that send and receive.

    Attributes:
        DONTWAIT: Raise `Again` instead of waiting.
        SNDMORE: More parts of the message follow.
        NOBLOCK: The old name of ``DONTWAIT``.

    Source:
        zmq_send(3), zmq_recv(3)
    """

    DONTWAIT = 1
    """Raise `Again` instead of waiting."""
    SNDMORE = 2
    """More parts of the message follow."""
    NOBLOCK = DONTWAIT
    """Another name of `DONTWAIT`. Raise `Again` instead of waiting."""

class GssapiNameType(IntEnum):
    """Values of the two ``GSSAPI_..._NAMETYPE`` options, of a mechanism that is not built in.

    Attributes:
        HOSTBASED: A service at a host.
        USER_NAME: The name of a user.
        KRB5_PRINCIPAL: A principal of Kerberos.

    Source:
        zmq_gssapi(7)
    """

    HOSTBASED = 0
    """A service at a host."""
    USER_NAME = 1
    """The name of a user."""
    KRB5_PRINCIPAL = 2
    """A principal of Kerberos."""

class MessageOption(IntEnum):
    """Properties of a message, for `Frame.get`.

    Attributes:
        MORE: Whether more parts of the message follow.
        SRCFD: The file descriptor of the connection that the frame came from.
        SHARED: Whether the body is in memory that other frames may share.

    Source:
        zmq_msg_get(3)
    """

    MORE = 1
    """Whether more parts of the message follow."""
    SRCFD = 2
    """The file descriptor of the connection that the frame came from."""
    SHARED = 3
    """Whether the body is in memory that other frames may share."""

class NormMode(IntEnum):
    """Values of the option ``NORM_MODE``, of a transport that is not built in.

    Attributes:
        FIXED: A fixed rate.
        CC: Congestion control.
        CCL: Congestion control that tolerates losses.
        CCE: Congestion control with explicit notification of congestion.
        CCE_ECNONLY: Congestion control by explicit notification alone.

    Source:
        ``ZMQ_NORM_MODE`` of zmq_setsockopt(3)
    """

    FIXED = 0
    """A fixed rate."""
    CC = 1
    """Congestion control."""
    CCL = 2
    """Congestion control that tolerates losses."""
    CCE = 3
    """Congestion control with explicit notification of congestion."""
    CCE_ECNONLY = 4
    """Congestion control by explicit notification alone."""

class PollEvent(IntFlag):
    """Events to wait for with `Socket.poll`, `Poller` and `zmq_poll`.

    Attributes:
        POLLIN: A message can be received; a descriptor can be read.
        POLLOUT: A message can be sent; a descriptor can be written.
        POLLERR: A descriptor has an error.
        POLLPRI: A descriptor has urgent data.

    Source:
        zmq_poll(3)
    """

    POLLIN = 1
    """A message can be received; a descriptor can be read."""
    POLLOUT = 2
    """A message can be sent; a descriptor can be written."""
    POLLERR = 4
    """A descriptor has an error."""
    POLLPRI = 8
    """A descriptor has urgent data."""

class ReconnectStop(IntEnum):
    """Values of the option ``RECONNECT_STOP``. They can be combined with ``|``.

    Attributes:
        CONN_REFUSED: Stop when the connection is refused.
        HANDSHAKE_FAILED: Stop when the handshake fails.
        AFTER_DISCONNECT: Stop after `Socket.disconnect`.

    Source:
        ``ZMQ_RECONNECT_STOP`` of zmq_setsockopt(3)
    """

    CONN_REFUSED = 1
    """Stop when the connection is refused."""
    HANDSHAKE_FAILED = 2
    """Stop when the handshake fails."""
    AFTER_DISCONNECT = 4
    """Stop after `Socket.disconnect`."""

class RouterNotify(IntEnum):
    """Values of the option ``ROUTER_NOTIFY``; 3 is both.

    Attributes:
        CONNECT: Report that a peer connected.
        DISCONNECT: Report that a peer disconnected.

    Source:
        ``ZMQ_ROUTER_NOTIFY`` of zmq_setsockopt(3)
    """

    CONNECT = 1
    """Report that a peer connected."""
    DISCONNECT = 2
    """Report that a peer disconnected."""

class SecurityMechanism(IntEnum):
    """Values of the option ``MECHANISM``.

    Attributes:
        NULL: No security.
        PLAIN: User names and passwords, without encryption.
        CURVE: Keys and encryption.
        GSSAPI: Not built in.

    Source:
        37/ZMTP, section "The NULL Security Mechanism"; 24/ZMTP-PLAIN; 25/ZMTP-CURVE
    """

    NULL = 0
    """No security.

    Source: 37/ZMTP, section "The NULL Security Mechanism"; zmq_null(7)
    """
    PLAIN = 1
    """User names and passwords, without encryption.

    Source: 24/ZMTP-PLAIN, section "Implementation"; zmq_plain(7)
    """
    CURVE = 2
    """Keys and encryption.

    Source: 25/ZMTP-CURVE, section "Implementation"; zmq_curve(7)
    """
    GSSAPI = 3
    """Not built in.

    Source: zmq_gssapi(7)
    """

class SlowSubscriber(IntEnum):
    """Values of the option ``SLOW_SUBSCRIBER``.

    Attributes:
        DROP: The subscriber misses messages until its queue has room again.
        WAIT: Sending waits until there is room, for at most ``SNDTIMEO``. ``XPUB_NODROP`` is the same.
        DISCONNECT: The subscriber is disconnected, and its queue is dropped.

    Source:
        zeroxide only
    """

    DROP = 0
    """The subscriber misses messages until its queue has room again."""
    WAIT = 1
    """Sending waits until there is room, for at most ``SNDTIMEO``. ``XPUB_NODROP`` is the same."""
    DISCONNECT = 2
    """The subscriber is disconnected, and its queue is dropped."""

class SocketOption(IntEnum):
    """Options of `Socket.set` and `Socket.get`.

    Each has a text of its own with its unit and default, for example
    ``help(zmq.SocketOption.LINGER)``. The page "Options" lists them.

    Source:
        zmq_setsockopt(3), zmq_getsockopt(3)
    """

    _opt_type: _OptType
    HWM = 1
    """An option of ZeroMQ 2. Its number is not accepted: ``socket.hwm`` sets SNDHWM and RCVHWM.

    Source: pyzmq's ``Socket.hwm``
    """
    AFFINITY = 4
    """The I/O threads that may serve new connections, one bit each; 0 = all.

    Type: int. Default: 0.

    Source: ``ZMQ_AFFINITY`` of zmq_setsockopt(3)
    """
    ROUTING_ID = 5
    """The name under which ROUTER peers address this socket.

    Type: bytes. Default: empty.

    Source: 37/ZMTP, section "The Identity Property"; ``ZMQ_ROUTING_ID`` of zmq_setsockopt(3)
    """
    SUBSCRIBE = 6
    """Also receive messages that begin with these bytes; empty = all.

    Type: bytes. Sockets: SUB, XPUB. It can only be set.

    Source: 29/PUBSUB, section "The SUB Socket Type"; ``ZMQ_SUBSCRIBE`` of zmq_setsockopt(3)
    """
    UNSUBSCRIBE = 7
    """Undo one SUBSCRIBE of the same bytes.

    Type: bytes. Sockets: SUB, XPUB. It can only be set.

    Source: 29/PUBSUB, section "The SUB Socket Type"; ``ZMQ_UNSUBSCRIBE`` of zmq_setsockopt(3)
    """
    RATE = 8
    """The limit of multicast transports in kbit/s.

    Type: int, in kbit/s. Default: 100.

    Source: ``ZMQ_RATE`` of zmq_setsockopt(3)
    """
    RECOVERY_IVL = 9
    """How long a multicast receiver may be away without loss, in ms.

    Type: int, in ms. Default: 10000.

    Source: ``ZMQ_RECOVERY_IVL`` of zmq_setsockopt(3)
    """
    SNDBUF = 11
    """The kernel's send buffer in bytes; -1 = the system's default.

    Type: int, in bytes. Default: -1.

    Source: ``ZMQ_SNDBUF`` of zmq_setsockopt(3)
    """
    RCVBUF = 12
    """The kernel's receive buffer in bytes; -1 = the system's default.

    Type: int, in bytes. Default: -1.

    Source: ``ZMQ_RCVBUF`` of zmq_setsockopt(3)
    """
    RCVMORE = 13
    """Whether further parts follow the one received last.

    Type: int, 0 or 1. It can only be read.

    Source: ``ZMQ_RCVMORE`` of zmq_getsockopt(3)
    """
    FD = 14
    """A descriptor that is readable when the socket may have become ready.

    Type: int, a file descriptor. It can only be read.

    Source: ``ZMQ_FD`` of zmq_getsockopt(3)
    """
    EVENTS = 15
    """What the socket is ready for: POLLIN, POLLOUT.

    Type: int. It can only be read.

    Source: ``ZMQ_EVENTS`` of zmq_getsockopt(3)
    """
    TYPE = 16
    """The socket's type.

    Type: int. It can only be read.

    Source: ``ZMQ_TYPE`` of zmq_getsockopt(3)
    """
    LINGER = 17
    """How long messages are still sent after closing, in ms; -1 = no limit.

    Type: int, in ms. Default: -1; 0 for SUB and XSUB.

    Source: ``ZMQ_LINGER`` of zmq_setsockopt(3)
    """
    RECONNECT_IVL = 18
    """The delay before the next connection attempt in ms; -1 = no further attempt.

    Type: int, in ms. Default: 100.

    Source: ``ZMQ_RECONNECT_IVL`` of zmq_setsockopt(3)
    """
    BACKLOG = 19
    """How many connections may wait to be accepted.

    Type: int, in connections. Default: 100.

    Source: ``ZMQ_BACKLOG`` of zmq_setsockopt(3)
    """
    RECONNECT_IVL_MAX = 21
    """Delays between attempts double up to this many ms; 0 = they do not.

    Type: int, in ms. Default: 0.

    Source: ``ZMQ_RECONNECT_IVL_MAX`` of zmq_setsockopt(3)
    """
    MAXMSGSIZE = 22
    """A larger message from a peer ends its connection; bytes, -1 = no limit.

    Type: int, in bytes. Default: -1.

    Source: ``ZMQ_MAXMSGSIZE`` of zmq_setsockopt(3)
    """
    SNDHWM = 23
    """How many messages queue per peer on the way out; 0 = no limit.

    Type: int, in messages. Default: 1000.

    Source: ``ZMQ_SNDHWM`` of zmq_setsockopt(3)
    """
    RCVHWM = 24
    """How many messages queue per peer on the way in; 0 = no limit.

    Type: int, in messages. Default: 1000.

    Source: ``ZMQ_RCVHWM`` of zmq_setsockopt(3)
    """
    MULTICAST_HOPS = 25
    """How many networks a multicast packet may cross: 1 = only the local network.

    Type: int. Default: 1.

    Source: ``ZMQ_MULTICAST_HOPS`` of zmq_setsockopt(3)
    """
    RCVTIMEO = 27
    """How long receiving waits, in ms; -1 = no limit.

    Type: int, in ms. Default: -1.

    Source: ``ZMQ_RCVTIMEO`` of zmq_setsockopt(3)
    """
    SNDTIMEO = 28
    """How long sending waits, in ms; -1 = no limit.

    Type: int, in ms. Default: -1.

    Source: ``ZMQ_SNDTIMEO`` of zmq_setsockopt(3)
    """
    IPV4ONLY = 31
    """The opposite of IPV6, for old programs.

    Type: int, 0 or 1. Default: 1.

    Source: ``ZMQ_IPV4ONLY`` of zmq_setsockopt(3)
    """
    LAST_ENDPOINT = 32
    """The endpoint that was bound or connected last, with wildcards replaced.

    Type: bytes, text in UTF-8. Default: empty. It can only be read.

    Source: ``ZMQ_LAST_ENDPOINT`` of zmq_getsockopt(3)
    """
    ROUTER_MANDATORY = 33
    """A message to an unknown peer raises an error instead of being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_MANDATORY`` of zmq_setsockopt(3)
    """
    TCP_KEEPALIVE = 34
    """Keepalive probes: 1 on, 0 off, -1 = on with limits that find a dead machine within 15 s.

    Type: int. Default: -1.

    Source: ``ZMQ_TCP_KEEPALIVE`` of zmq_setsockopt(3)
    """
    TCP_KEEPALIVE_CNT = 35
    """How many unanswered probes end a connection; -1 = as TCP_KEEPALIVE says, or the system's
    default.

    Type: int, in probes. Default: -1.

    Source: ``ZMQ_TCP_KEEPALIVE_CNT`` of zmq_setsockopt(3)
    """
    TCP_KEEPALIVE_IDLE = 36
    """Silence before the first probe, in seconds; -1 = as TCP_KEEPALIVE says, or the system's
    default.

    Type: int, in s. Default: -1.

    Source: ``ZMQ_TCP_KEEPALIVE_IDLE`` of zmq_setsockopt(3)
    """
    TCP_KEEPALIVE_INTVL = 37
    """Time between probes, in seconds; -1 = as TCP_KEEPALIVE says, or the system's default.

    Type: int, in s. Default: -1.

    Source: ``ZMQ_TCP_KEEPALIVE_INTVL`` of zmq_setsockopt(3)
    """
    TCP_ACCEPT_FILTER = 38
    """One more network (CIDR) that may connect to endpoints bound later; empty = every network
    again.

    Type: bytes, text in UTF-8. It can only be set.

    Source: ``ZMQ_TCP_ACCEPT_FILTER`` of zmq_setsockopt(3)
    """
    IMMEDIATE = 39
    """Queue messages only for connections that are up.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_IMMEDIATE`` of zmq_setsockopt(3)
    """
    XPUB_VERBOSE = 40
    """Receive every subscription, not only the first for a topic.

    Type: int, 0 or 1. Default: 0. Sockets: PUB, XPUB. It can only be set.

    Source: ``ZMQ_XPUB_VERBOSE`` of zmq_setsockopt(3)
    """
    ROUTER_RAW = 41
    """Raw TCP on a ROUTER; a STREAM socket is the newer way.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_RAW`` of zmq_setsockopt(3)
    """
    IPV6 = 42
    """Bind and connect over IPv6 as well as IPv4.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_IPV6`` of zmq_setsockopt(3)
    """
    MECHANISM = 43
    """The security mechanism: 0 NULL, 1 PLAIN, 2 CURVE, 3 GSSAPI.

    Type: int. Default: 0. It can only be read.

    Source: 37/ZMTP, section "Authentication and Confidentiality"; ``ZMQ_MECHANISM`` of
    zmq_getsockopt(3)
    """
    PLAIN_SERVER = 44
    """Act as server of the PLAIN mechanism.

    Type: int, 0 or 1. Default: 0.

    Source: 24/ZMTP-PLAIN, section "Implementation"; ``ZMQ_PLAIN_SERVER`` of zmq_setsockopt(3)
    """
    PLAIN_USERNAME = 45
    """The user name of a PLAIN client.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 24/ZMTP-PLAIN, section "Implementation"; ``ZMQ_PLAIN_USERNAME`` of zmq_setsockopt(3)
    """
    PLAIN_PASSWORD = 46
    """The password of a PLAIN client.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 24/ZMTP-PLAIN, section "Implementation"; ``ZMQ_PLAIN_PASSWORD`` of zmq_setsockopt(3)
    """
    CURVE_SERVER = 47
    """Act as server of the CURVE mechanism; needs CURVE_SECRETKEY.

    Type: int, 0 or 1. Default: 0.

    Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_SERVER`` of zmq_setsockopt(3)
    """
    CURVE_PUBLICKEY = 48
    """The public key of this socket, 32 bytes or 40 characters of Z85.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_PUBLICKEY`` of zmq_setsockopt(3)
    """
    CURVE_SECRETKEY = 49
    """The secret key of this socket, 32 bytes or 40 characters of Z85.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_SECRETKEY`` of zmq_setsockopt(3)
    """
    CURVE_SERVERKEY = 50
    """The public key of the server to connect to; makes this a CURVE client.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_SERVERKEY`` of zmq_setsockopt(3)
    """
    PROBE_ROUTER = 51
    """Send an empty message on each new connection, before all others.

    Type: int, 0 or 1. Default: 0. Sockets: REQ, REP, DEALER, ROUTER. It can only be set.

    Source: ``ZMQ_PROBE_ROUTER`` of zmq_setsockopt(3)
    """
    REQ_CORRELATE = 52
    """Number the requests and accept only matching replies.

    Type: int, 0 or 1. Default: 0. Sockets: REQ. It can only be set.

    Source: ``ZMQ_REQ_CORRELATE`` of zmq_setsockopt(3)
    """
    REQ_RELAXED = 53
    """Allow a new request before the reply to the last.

    Type: int, 0 or 1. Default: 0. Sockets: REQ. It can only be set.

    Source: ``ZMQ_REQ_RELAXED`` of zmq_setsockopt(3)
    """
    CONFLATE = 54
    """Keep only the newest message (PULL, PUSH, SUB, PUB, DEALER).

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_CONFLATE`` of zmq_setsockopt(3)
    """
    ZAP_DOMAIN = 55
    """The domain that authentication requests name.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 27/ZAP, section "Message Format"; ``ZMQ_ZAP_DOMAIN`` of zmq_setsockopt(3)
    """
    ROUTER_HANDOVER = 56
    """A new peer takes over the routing id of an older one.

    Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_HANDOVER`` of zmq_setsockopt(3)
    """
    TOS = 57
    """The type-of-service byte of outgoing packets.

    Type: int. Default: 0.

    Source: ``ZMQ_TOS`` of zmq_setsockopt(3)
    """
    IPC_FILTER_PID = 58
    """One more process that may connect to a bound ipc endpoint.

    Type: int. It can only be set.

    Source: ``ZMQ_IPC_FILTER_PID`` of zmq_setsockopt(3)
    """
    IPC_FILTER_UID = 59
    """One more user that may connect to a bound ipc endpoint.

    Type: int. It can only be set.

    Source: ``ZMQ_IPC_FILTER_UID`` of zmq_setsockopt(3)
    """
    IPC_FILTER_GID = 60
    """One more primary group that may connect to a bound ipc endpoint.

    Type: int. It can only be set.

    Source: ``ZMQ_IPC_FILTER_GID`` of zmq_setsockopt(3)
    """
    CONNECT_ROUTING_ID = 61
    """The name here of the peer that the next connect reaches.

    Type: bytes. Default: empty. Sockets: REP, ROUTER, STREAM. It can only be set.

    Source: ``ZMQ_CONNECT_ROUTING_ID`` of zmq_setsockopt(3)
    """
    GSSAPI_SERVER = 62
    """Act as server of the GSSAPI mechanism.

    Type: int, 0 or 1. Setting it raises an error.

    Source: ``ZMQ_GSSAPI_SERVER`` of zmq_setsockopt(3)
    """
    GSSAPI_PRINCIPAL = 63
    """The principal of this socket.

    Type: bytes, text in UTF-8. Setting it raises an error.

    Source: ``ZMQ_GSSAPI_PRINCIPAL`` of zmq_setsockopt(3)
    """
    GSSAPI_SERVICE_PRINCIPAL = 64
    """The principal of the server.

    Type: bytes, text in UTF-8. Setting it raises an error.

    Source: ``ZMQ_GSSAPI_SERVICE_PRINCIPAL`` of zmq_setsockopt(3)
    """
    GSSAPI_PLAINTEXT = 65
    """Authenticate without encrypting.

    Type: int, 0 or 1. Setting it raises an error.

    Source: ``ZMQ_GSSAPI_PLAINTEXT`` of zmq_setsockopt(3)
    """
    HANDSHAKE_IVL = 66
    """The limit from the connection to the end of the handshake, in ms; 0 = none.

    Type: int, in ms. Default: 30000.

    Source: ``ZMQ_HANDSHAKE_IVL`` of zmq_setsockopt(3)
    """
    SOCKS_PROXY = 68
    """Connect through the SOCKS5 proxy at host:port; empty = directly.

    Type: bytes, text in UTF-8. Default: empty.

    Source: ``ZMQ_SOCKS_PROXY`` of zmq_setsockopt(3)
    """
    XPUB_NODROP = 69
    """Wait instead of dropping when the queue to a subscriber is full.

    Type: int, 0 or 1. Default: 0. Sockets: PUB, XPUB, RADIO. It can only be set.

    Source: ``ZMQ_XPUB_NODROP`` of zmq_setsockopt(3)
    """
    BLOCKY = 70
    """An option of contexts. 0 makes LINGER 0 the default of new sockets, so that terminating never
    waits for peers.

    Type: int. Default: 1.

    Source: ``ZMQ_BLOCKY`` of zmq_ctx_set(3)
    """
    XPUB_MANUAL = 71
    """The program decides which subscriptions take effect.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB. It can only be set.

    Source: ``ZMQ_XPUB_MANUAL`` of zmq_setsockopt(3)
    """
    XPUB_WELCOME_MSG = 72
    """The first message to each new subscriber; empty = none.

    Type: bytes. Default: empty. Sockets: PUB, XPUB. It can only be set.

    Source: ``ZMQ_XPUB_WELCOME_MSG`` of zmq_setsockopt(3)
    """
    STREAM_NOTIFY = 73
    """Deliver an empty message when a peer connects and when it disconnects.

    Type: int, 0 or 1. Default: 1. Sockets: STREAM. It can only be set.

    Source: ``ZMQ_STREAM_NOTIFY`` of zmq_setsockopt(3)
    """
    INVERT_MATCHING = 74
    """Match messages that do not begin with a subscription; set it at both ends. No effect on types
    without subscriptions.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_INVERT_MATCHING`` of zmq_setsockopt(3)
    """
    HEARTBEAT_IVL = 75
    """How often to ping the peer, in ms; 0 = never. If it is not set, it also reads 0, and silent
    peers are probed.

    Type: int, in ms. Default: 0.

    Source: 37/ZMTP, section "Connection Heartbeating"; ``ZMQ_HEARTBEAT_IVL`` of
    zmq_setsockopt(3)
    """
    HEARTBEAT_TTL = 76
    """The silence after which the peer may end the connection, in ms; 0 = not sent to the peer.

    Type: int, in ms. Default: 0.

    Source: 37/ZMTP, section "Connection Heartbeating"; ``ZMQ_HEARTBEAT_TTL`` of
    zmq_setsockopt(3)
    """
    HEARTBEAT_TIMEOUT = 77
    """Silence after a ping that ends the connection, in ms; the default is HEARTBEAT_IVL.

    Type: int, in ms. Default: -1.

    Source: 37/ZMTP, section "Connection Heartbeating"; ``ZMQ_HEARTBEAT_TIMEOUT`` of
    zmq_setsockopt(3)
    """
    XPUB_VERBOSER = 78
    """Receive every subscription and every unsubscription.

    Type: int, 0 or 1. Default: 0. Sockets: PUB, XPUB. It can only be set.

    Source: ``ZMQ_XPUB_VERBOSER`` of zmq_setsockopt(3)
    """
    CONNECT_TIMEOUT = 79
    """The limit of one connection attempt, in ms; 0 = 10 s, or 3 s while the name has another
    address.

    Type: int, in ms. Default: 0.

    Source: ``ZMQ_CONNECT_TIMEOUT`` of zmq_setsockopt(3)
    """
    TCP_MAXRT = 80
    """How long sent bytes may stay unacknowledged, in ms; 0 = the system's limit.

    Type: int, in ms. Default: 0.

    Source: ``ZMQ_TCP_MAXRT`` of zmq_setsockopt(3)
    """
    THREAD_SAFE = 81
    """1 for the socket types that libzmq calls thread-safe, which are those from SERVER on except
    DGRAM, and for the types that libzmq does not have. Every zeroxide socket is thread-safe, but
    the others read 0 as in libzmq.

    Type: int, 0 or 1. Default: 0. It can only be read.

    Source: ``ZMQ_THREAD_SAFE`` of zmq_getsockopt(3)
    """
    MULTICAST_MAXTPDU = 84
    """The largest packet that is sent to a multicast group, in bytes, with the headers of IP and
    UDP.

    Type: int, in bytes. Default: 1500.

    Source: ``ZMQ_MULTICAST_MAXTPDU`` of zmq_setsockopt(3)
    """
    VMCI_BUFFER_SIZE = 85
    """The buffer of a VMCI socket; 0 = the driver's.

    Type: int, in bytes. Default: 0.

    Source: ``ZMQ_VMCI_BUFFER_SIZE`` of zmq_setsockopt(3)
    """
    VMCI_BUFFER_MIN_SIZE = 86
    """The smallest buffer of a VMCI socket; 0 = the driver's.

    Type: int, in bytes. Default: 0.

    Source: ``ZMQ_VMCI_BUFFER_MIN_SIZE`` of zmq_setsockopt(3)
    """
    VMCI_BUFFER_MAX_SIZE = 87
    """The largest buffer of a VMCI socket; 0 = the driver's.

    Type: int, in bytes. Default: 0.

    Source: ``ZMQ_VMCI_BUFFER_MAX_SIZE`` of zmq_setsockopt(3)
    """
    VMCI_CONNECT_TIMEOUT = 88
    """The limit of a VMCI connection attempt, in ms; -1 = the driver's.

    Type: int, in ms. Default: -1.

    Source: ``ZMQ_VMCI_CONNECT_TIMEOUT`` of zmq_setsockopt(3)
    """
    USE_FD = 89
    """A listening descriptor that the next bind takes over; -1 = none.

    Type: int. Default: -1.

    Source: ``ZMQ_USE_FD`` of zmq_setsockopt(3)
    """
    GSSAPI_PRINCIPAL_NAMETYPE = 90
    """What kind of name GSSAPI_PRINCIPAL is.

    Type: int. Setting it raises an error.

    Source: ``ZMQ_GSSAPI_PRINCIPAL_NAMETYPE`` of zmq_setsockopt(3)
    """
    GSSAPI_SERVICE_PRINCIPAL_NAMETYPE = 91
    """What kind of name GSSAPI_SERVICE_PRINCIPAL is.

    Type: int. Setting it raises an error.

    Source: ``ZMQ_GSSAPI_SERVICE_PRINCIPAL_NAMETYPE`` of zmq_setsockopt(3)
    """
    BINDTODEVICE = 92
    """The only network interface to use (needs CAP_NET_RAW); empty = any.

    Type: bytes, text in UTF-8. Default: empty.

    Source: ``ZMQ_BINDTODEVICE`` of zmq_setsockopt(3)
    """
    IDENTITY = ROUTING_ID
    """Another name of `ROUTING_ID`. The name under which ROUTER peers address this socket.

    Type: bytes. Default: empty.

    Source: 37/ZMTP, section "The Identity Property"; ``ZMQ_ROUTING_ID`` of zmq_setsockopt(3)
    """
    CONNECT_RID = CONNECT_ROUTING_ID
    """Another name of `CONNECT_ROUTING_ID`. The name here of the peer that the next connect
    reaches.

    Type: bytes. Default: empty. Sockets: REP, ROUTER, STREAM. It can only be set.

    Source: ``ZMQ_CONNECT_ROUTING_ID`` of zmq_setsockopt(3)
    """
    DELAY_ATTACH_ON_CONNECT = IMMEDIATE
    """Another name of `IMMEDIATE`. Queue messages only for connections that are up.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_IMMEDIATE`` of zmq_setsockopt(3)
    """
    FAIL_UNROUTABLE = ROUTER_MANDATORY
    """Another name of `ROUTER_MANDATORY`. A message to an unknown peer raises an error instead of
    being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_MANDATORY`` of zmq_setsockopt(3)
    """
    ROUTER_BEHAVIOR = ROUTER_MANDATORY
    """Another name of `ROUTER_MANDATORY`. A message to an unknown peer raises an error instead of
    being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_MANDATORY`` of zmq_setsockopt(3)
    """
    ZAP_ENFORCE_DOMAIN = 93
    """Ask a ZAP handler only if ZAP_DOMAIN is set, and reject every peer if there is no handler.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_ZAP_ENFORCE_DOMAIN`` of zmq_setsockopt(3)
    """
    LOOPBACK_FASTPATH = 94
    """A feature of Windows. Stored without effect.

    Type: int, 0 or 1. Default: 0.

    Source: libzmq's zmq.h
    """
    METADATA = 95
    """A property sent to peers in the handshake, as X-name:value; each call adds one.

    Type: bytes. It can only be set.

    Source: 37/ZMTP, section "Connection Metadata"; ``ZMQ_METADATA`` of zmq_setsockopt(3)
    """
    MULTICAST_LOOP = 96
    """Whether what is sent to a multicast group also reaches the members on this machine.

    Type: int, 0 or 1. Default: 1.

    Source: ``ZMQ_MULTICAST_LOOP`` of zmq_setsockopt(3)
    """
    ROUTER_NOTIFY = 97
    """Receive an empty message from a peer that has connected (1), disconnected (2), or both (3); 0
    = neither.

    Type: int. Default: 0. Sockets: ROUTER.

    Source: ``ZMQ_ROUTER_NOTIFY`` of zmq_setsockopt(3)
    """
    XPUB_MANUAL_LAST_VALUE = 98
    """Like XPUB_MANUAL, and a message sent after receiving a subscription goes only to that
    subscriber.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB. It can only be set.

    Source: ``ZMQ_XPUB_MANUAL_LAST_VALUE`` of zmq_setsockopt(3)
    """
    SOCKS_USERNAME = 99
    """The user name for the SOCKS5 proxy; empty = no login.

    Type: bytes, text in UTF-8. Default: empty.

    Source: ``ZMQ_SOCKS_USERNAME`` of zmq_setsockopt(3)
    """
    SOCKS_PASSWORD = 100
    """The password for SOCKS_USERNAME.

    Type: bytes, text in UTF-8. Default: empty.

    Source: ``ZMQ_SOCKS_PASSWORD`` of zmq_setsockopt(3)
    """
    IN_BATCH_SIZE = 101
    """A draft in libzmq; not available here.

    Type: int. Setting it raises an error.

    Source: ``ZMQ_IN_BATCH_SIZE`` of zmq_setsockopt(3)
    """
    OUT_BATCH_SIZE = 102
    """A draft in libzmq; not available here.

    Type: int. Setting it raises an error.

    Source: ``ZMQ_OUT_BATCH_SIZE`` of zmq_setsockopt(3)
    """
    WSS_KEY_PEM = 103
    """libzmq's name of TLS_KEY.

    Type: bytes, text in UTF-8. Default: empty.

    Source: libzmq's zmq.h
    """
    WSS_CERT_PEM = 104
    """libzmq's name of TLS_CERTIFICATE.

    Type: bytes, text in UTF-8. Default: empty.

    Source: libzmq's zmq.h
    """
    WSS_TRUST_PEM = 105
    """libzmq's name of TLS_CA.

    Type: bytes, text in UTF-8. Default: empty.

    Source: libzmq's zmq.h
    """
    WSS_HOSTNAME = 106
    """libzmq's name of TLS_HOSTNAME.

    Type: bytes, text in UTF-8. Default: empty.

    Source: libzmq's zmq.h
    """
    WSS_TRUST_SYSTEM = 107
    """libzmq's name of TLS_TRUST_SYSTEM. It reads 0 if that is not set.

    Type: int, 0 or 1. Default: 0.

    Source: libzmq's zmq.h
    """
    ONLY_FIRST_SUBSCRIBE = 108
    """Stored without effect: a message that does not begin with a subscription never has one in a
    later part.

    Type: int, 0 or 1. Sockets: PUB, XPUB, XSUB. It can only be set.

    Source: ``ZMQ_ONLY_FIRST_SUBSCRIBE`` of zmq_setsockopt(3)
    """
    RECONNECT_STOP = 109
    """When to stop reconnecting: 1 connection refused, 2 handshake failed, 4 after disconnect();
    add the numbers.

    Type: int. Default: 0.

    Source: ``ZMQ_RECONNECT_STOP`` of zmq_setsockopt(3)
    """
    HELLO_MSG = 110
    """The first message to each peer, sent again on each new connection; empty = none.

    Type: bytes. Default: empty. Sockets: DEALER, ROUTER, SERVER, CLIENT, PEER.

    Source: ``ZMQ_HELLO_MSG`` of zmq_setsockopt(3)
    """
    DISCONNECT_MSG = 111
    """The message received from a peer that has connected to this socket, once it has left; empty =
    none.

    Type: bytes. Default: empty. Sockets: ROUTER, SERVER, PEER.

    Source: ``ZMQ_DISCONNECT_MSG`` of zmq_setsockopt(3)
    """
    PRIORITY = 112
    """A draft in libzmq; not available here.

    Type: int. Setting it raises an error.

    Source: ``ZMQ_PRIORITY`` of zmq_setsockopt(3)
    """
    BUSY_POLL = 113
    """A draft in libzmq; not available here.

    Type: int. Setting it raises an error.

    Source: ``ZMQ_BUSY_POLL`` of zmq_setsockopt(3)
    """
    HICCUP_MSG = 114
    """The message received when a connection that this socket has made is lost, before it connects
    again; empty = none.

    Type: bytes. Default: empty. Sockets: DEALER, CLIENT, PEER.

    Source: ``ZMQ_HICCUP_MSG`` of zmq_setsockopt(3)
    """
    XSUB_VERBOSE_UNSUBSCRIBE = 115
    """A draft in libzmq; not available here.

    Type: int, 0 or 1. Setting it raises an error.

    Source: ``ZMQ_XSUB_VERBOSE_UNSUBSCRIBE`` of zmq_setsockopt(3)
    """
    TOPICS_COUNT = 116
    """The number of different topics that this socket or its peers subscribe to.

    Type: int, in topics. Default: 0. Sockets: PUB, SUB, XPUB, XSUB. It can only be read.

    Source: ``ZMQ_TOPICS_COUNT`` of zmq_getsockopt(3)
    """
    NORM_MODE = 117
    """A draft in libzmq; not available here.

    Type: int. Setting it raises an error.

    Source: ``ZMQ_NORM_MODE`` of zmq_setsockopt(3)
    """
    NORM_UNICAST_NACK = 118
    """A draft in libzmq; not available here.

    Type: int, 0 or 1. Setting it raises an error.

    Source: ``ZMQ_NORM_UNICAST_NACK`` of zmq_setsockopt(3)
    """
    NORM_BUFFER_SIZE = 119
    """A draft in libzmq; not available here.

    Type: int. Setting it raises an error.

    Source: ``ZMQ_NORM_BUFFER_SIZE`` of zmq_setsockopt(3)
    """
    NORM_SEGMENT_SIZE = 120
    """A draft in libzmq; not available here.

    Type: int. Setting it raises an error.

    Source: ``ZMQ_NORM_SEGMENT_SIZE`` of zmq_setsockopt(3)
    """
    NORM_BLOCK_SIZE = 121
    """A draft in libzmq; not available here.

    Type: int. Setting it raises an error.

    Source: ``ZMQ_NORM_BLOCK_SIZE`` of zmq_setsockopt(3)
    """
    NORM_NUM_PARITY = 122
    """A draft in libzmq; not available here.

    Type: int. Setting it raises an error.

    Source: ``ZMQ_NORM_NUM_PARITY`` of zmq_setsockopt(3)
    """
    NORM_NUM_AUTOPARITY = 123
    """A draft in libzmq; not available here.

    Type: int. Setting it raises an error.

    Source: ``ZMQ_NORM_NUM_AUTOPARITY`` of zmq_setsockopt(3)
    """
    NORM_PUSH = 124
    """A draft in libzmq; not available here.

    Type: int, 0 or 1. Setting it raises an error.

    Source: ``ZMQ_NORM_PUSH`` of zmq_setsockopt(3)
    """
    MAX_SUBSCRIPTIONS = 1001
    """How many topics each subscriber may have; further ones are counted and ignored. 0 = no limit.

    Type: int, in topics. Default: 4194304. Sockets: PUB, XPUB, RADIO.

    Source: zeroxide only
    """
    SNDHWM_BYTES = 1002
    """How many bytes queue per peer on the way out, in addition to SNDHWM; 0 = no limit.

    Type: int, in bytes. Default: 0.

    Source: zeroxide only
    """
    RCVHWM_BYTES = 1003
    """How many bytes queue per peer on the way in, in addition to RCVHWM; 0 = no limit.

    Type: int, in bytes. Default: 0.

    Source: zeroxide only
    """
    STALL_IVL = 1004
    """How long a peer may be silent in the middle of a message, in ms (up to twice that); 0 = no
    limit.

    Type: int, in ms. Default: 60000.

    Source: zeroxide only
    """
    MAX_SUBSCRIPTION_BYTES = 1010
    """How many bytes the topics of each subscriber may have together; further ones are counted and
    ignored. 0 = no limit.

    Type: int, in bytes. Default: 67108864. Sockets: PUB, XPUB, RADIO.

    Source: zeroxide only
    """
    TLS_CERTIFICATE = 1020
    """The TLS certificate of this socket, followed by those between it and its CA: PEM, or the path
    of a file.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    TLS_KEY = 1021
    """The key of TLS_CERTIFICATE, without a password: PEM, or the path of a file; empty = it is in
    TLS_CERTIFICATE.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    TLS_CA = 1022
    """The CAs whose certificates TLS peers must have: PEM, or the path of a file; empty = those of
    the system.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    TLS_TRUST_SYSTEM = 1023
    """Whether TLS peers may have a certificate of a CA that the system trusts: 1 yes, 0 no, -1 = if
    TLS_CA is empty.

    Type: int. Default: -1.

    Source: zeroxide only
    """
    TLS_HOSTNAME = 1024
    """The name or IP address that a TLS server's certificate must have; empty = the host in the
    endpoint.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    TLS_VERIFY = 1025
    """Whether the certificate of a TLS server is checked. With 0, an attacker on the network can
    pose as the server.

    Type: int, 0 or 1. Default: 1.

    Source: zeroxide only
    """
    TLS_CLIENT_AUTH = 1026
    """The certificates of TLS clients: 0 not asked for, 1 checked if a client has one, 2 required,
    -1 = 2 if TLS_CA is set, otherwise 0.

    Type: int. Default: -1.

    Source: zeroxide only
    """
    TLS_ALPN = 1027
    """The protocols that TLS peers negotiate with ALPN, separated by commas; empty = none.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    WIRE_PROTOCOL = 1030
    """What the socket speaks with its peers: 0 ZMTP, 1 the scalability protocols of nanomsg and
    nng. Set it before all else; PAIR, PUB, SUB, REQ, REP, PUSH and PULL speak either.

    Type: int. Default: 0.

    Source: zeroxide only
    """
    RESEND_IVL = 1031
    """When a request over the scalability protocols is sent again, to the next peer, if no reply
    has come, in ms; 0 = never.

    Type: int, in ms. Default: 60000. Sockets: REQ.

    Source: zeroxide only
    """
    SURVEY_TIMEOUT = 1032
    """How long the answers to a survey are received, in ms; 0 = no limit.

    Type: int, in ms. Default: 1000. Sockets: SURVEYOR.

    Source: zeroxide only
    """
    MAX_TTL = 1033
    """How many sockets a request or a survey may have passed; one that has passed more is dropped,
    because it may travel in a circle.

    Type: int, in sockets. Default: 8. Sockets: REP, RESPONDENT.

    Source: zeroxide only
    """
    SNDPRIO = 1040
    """The priority of the peers of later binds and connects for what is sent, 1 to 16: peers with
    the lowest number get messages as long as they have room.

    Type: int. Default: 8.

    Source: nn_setsockopt(3), ``NN_SNDPRIO``; zeroxide only; ``ZMQ_SNDPRIO`` of zmq_setsockopt(3)
    """
    RCVPRIO = 1041
    """The priority of the peers of later binds and connects for what is received, 1 to 16: messages
    of peers with the lowest number are received first.

    Type: int. Default: 8.

    Source: nn_setsockopt(3), ``NN_RCVPRIO``; zeroxide only; ``ZMQ_RCVPRIO`` of zmq_setsockopt(3)
    """
    SLOW_SUBSCRIBER = 1060
    """When the queue to a subscriber is full: 0 the subscriber misses messages, 1 sending waits (as
    with XPUB_NODROP), 2 the subscriber is disconnected and loses its queue.

    Type: int. Default: 0. Sockets: PUB, XPUB.

    Source: zeroxide only
    """
    MAX_LAG = 1061
    """How long a message may wait to be received, in ms (up to 1.5 times that). If one has waited
    longer, receiving fails once, the queue is dropped, and the socket joins its publishers anew;
    0 = no limit.

    Type: int, in ms. Default: 0. Sockets: SUB.

    Source: zeroxide only
    """
    SPILL_DIR = 1050
    """The folder of this socket, and of no other, for messages beyond the high-water mark, from the
    next bind or connect on; empty = none, and the usual rule of the socket type applies to them.

    Type: bytes, text in UTF-8. Default: empty. Sockets: PUB, DEALER, ROUTER, PUSH, XPUB.

    Source: zeroxide only
    """
    SPILL_BYTES = 1051
    """How many bytes of messages may wait in SPILL_DIR; 0 = no limit.

    Type: int, in bytes. Default: 1073741824. Sockets: PUB, DEALER, ROUTER, PUSH, XPUB.

    Source: zeroxide only
    """
    SPILL_KEEP = 1052
    """Whether messages in SPILL_DIR stay there when the socket closes or its process ends, for the
    next socket with that folder.

    Type: int, 0 or 1. Default: 0. Sockets: PUB, DEALER, ROUTER, PUSH, XPUB.

    Source: zeroxide only
    """

class SocketType(IntEnum):
    """What a socket does with its messages, and which types it connects to.

    Types from ``SERVER`` to ``CHANNEL`` are drafts in libzmq. Their messages have one part. So
    have
    those of the types after them, which speak the scalability protocols of nanomsg and nng.

    Attributes:
        PAIR: Exchanges messages with one peer; for threads of a program.
        PUB: Sends to all subscribers of a topic.
        SUB: Receives the messages that it subscribed to.
        REQ: Sends a request, then receives its reply.
        REP: Receives a request, then sends its reply.
        DEALER: Sends to its peers in turn, receives from all of them.
        ROUTER: Receives from all peers, with the sender's routing id; sends to the peer whose
            routing id comes first.
        PULL: Receives from all peers in turn.
        PUSH: Sends to its peers in turn.
        XPUB: A PUB that receives the subscriptions.
        XSUB: A SUB that sends its subscriptions as messages.
        STREAM: Raw TCP connections.
        XREQ: The old name of DEALER.
        XREP: The old name of ROUTER.
        SERVER: Receives from all CLIENT peers; sends to the peer whose routing id a message has.
        CLIENT: Sends to its SERVER peers in turn, receives from all of them.
        RADIO: Sends to all DISH peers that joined the group of the message.
        DISH: Receives the messages of the groups that it joined.
        GATHER: Receives from all SCATTER peers in turn.
        SCATTER: Sends to its GATHER peers in turn.
        DGRAM: Sends datagrams to any address, and receives them from any.
        PEER: A SERVER whose peers are PEER sockets, too.
        CHANNEL: Exchanges messages with one peer.
        SURVEYOR: Sends a survey to all RESPONDENT peers, and receives their answers for a while.
        RESPONDENT: Receives surveys, and may answer each.
        BUS: Sends to all its BUS peers, and receives from all of them.

    Source:
        28/REQREP, 29/PUBSUB, 30/PIPELINE, 31/EXPAIR, 41/CLISRV, 48/RADIO-DISH,
        49/SCATTER-GATHER, 51/P2P, 52/CHANNEL, a section for each type; zmq_socket(3)
    """

    PAIR = 0
    """Exchanges messages with one peer; for threads of a program.

    Source: 31/EXPAIR, section "The PAIR Socket Type"; ``ZMQ_PAIR`` of zmq_socket(3)
    """
    PUB = 1
    """Sends to all subscribers of a topic.

    Source: 29/PUBSUB, section "The PUB Socket Type"; ``ZMQ_PUB`` of zmq_socket(3)
    """
    SUB = 2
    """Receives the messages that it subscribed to.

    Source: 29/PUBSUB, section "The SUB Socket Type"; ``ZMQ_SUB`` of zmq_socket(3)
    """
    REQ = 3
    """Sends a request, then receives its reply.

    Source: 28/REQREP, section "The REQ Socket Type"; ``ZMQ_REQ`` of zmq_socket(3)
    """
    REP = 4
    """Receives a request, then sends its reply.

    Source: 28/REQREP, section "The REP Socket Type"; ``ZMQ_REP`` of zmq_socket(3)
    """
    DEALER = 5
    """Sends to its peers in turn, receives from all of them.

    Source: 28/REQREP, section "The DEALER Socket Type"; ``ZMQ_DEALER`` of zmq_socket(3)
    """
    ROUTER = 6
    """Receives from all peers, with the sender's routing id; sends to the peer whose routing id
    comes first.

    Source: 28/REQREP, section "The ROUTER Socket Type"; ``ZMQ_ROUTER`` of zmq_socket(3)
    """
    PULL = 7
    """Receives from all peers in turn.

    Source: 30/PIPELINE, section "The PULL Socket Type"; ``ZMQ_PULL`` of zmq_socket(3)
    """
    PUSH = 8
    """Sends to its peers in turn.

    Source: 30/PIPELINE, section "The PUSH Socket Type"; ``ZMQ_PUSH`` of zmq_socket(3)
    """
    XPUB = 9
    """A PUB that receives the subscriptions.

    Source: 29/PUBSUB, section "The XPUB Socket Type"; ``ZMQ_XPUB`` of zmq_socket(3)
    """
    XSUB = 10
    """A SUB that sends its subscriptions as messages.

    Source: 29/PUBSUB, section "The XSUB Socket Type"; ``ZMQ_XSUB`` of zmq_socket(3)
    """
    STREAM = 11
    """Raw TCP connections.

    Source: ``ZMQ_STREAM`` of zmq_socket(3)
    """
    XREQ = DEALER
    """Another name of `DEALER`. Sends to its peers in turn, receives from all of them.

    Source: 28/REQREP, section "The DEALER Socket Type"; ``ZMQ_DEALER`` of zmq_socket(3)
    """
    XREP = ROUTER
    """Another name of `ROUTER`. Receives from all peers, with the sender's routing id; sends to the
    peer whose routing id comes first.

    Source: 28/REQREP, section "The ROUTER Socket Type"; ``ZMQ_ROUTER`` of zmq_socket(3)
    """
    SERVER = 12
    """Receives from all CLIENT peers; sends to the peer whose routing id a message has.

    Source: ``ZMQ_SERVER`` of zmq_socket(3)
    """
    CLIENT = 13
    """Sends to its SERVER peers in turn, receives from all of them.

    Source: ``ZMQ_CLIENT`` of zmq_socket(3)
    """
    RADIO = 14
    """Sends to all DISH peers that joined the group of the message.

    Source: ``ZMQ_RADIO`` of zmq_socket(3)
    """
    DISH = 15
    """Receives the messages of the groups that it joined.

    Source: ``ZMQ_DISH`` of zmq_socket(3)
    """
    GATHER = 16
    """Receives from all SCATTER peers in turn.

    Source: ``ZMQ_GATHER`` of zmq_socket(3)
    """
    SCATTER = 17
    """Sends to its GATHER peers in turn.

    Source: ``ZMQ_SCATTER`` of zmq_socket(3)
    """
    DGRAM = 18
    """Sends datagrams to any address, and receives them from any.

    Source: zmq_udp(7)
    """
    PEER = 19
    """A SERVER whose peers are PEER sockets, too.

    Source: ``ZMQ_PEER`` of zmq_socket(3)
    """
    CHANNEL = 20
    """Exchanges messages with one peer.

    Source: ``ZMQ_CHANNEL`` of zmq_socket(3)
    """
    SURVEYOR = 98
    """Sends a survey to all RESPONDENT peers, and receives their answers for a while.

    Source: ``NN_SURVEYOR`` of nn_survey(7)
    """
    RESPONDENT = 99
    """Receives surveys, and may answer each.

    Source: ``NN_RESPONDENT`` of nn_survey(7)
    """
    BUS = 112
    """Sends to all its BUS peers, and receives from all of them.

    Source: ``NN_BUS`` of nn_bus(7)
    """

class WireProtocol(IntEnum):
    """Values of the option ``WIRE_PROTOCOL``: what a socket speaks with its peers.

    Attributes:
        ZMTP: The protocol of ZeroMQ.
        SP: The scalability protocols of nanomsg and nng.

    Source:
        zeroxide only
    """

    ZMTP = 0
    """The protocol of ZeroMQ."""
    SP = 1
    """The scalability protocols of nanomsg and nng."""

HAUSNUMERO: int
"""Error numbers above this one belong to ZeroMQ; those below it are the system's."""
IO_THREADS_DFLT: int
"""The default of the context option ``IO_THREADS``."""
MAX_SOCKETS_DFLT: int
"""The default of the context option ``MAX_SOCKETS``."""
THREAD_PRIORITY_DFLT: int
"""The default of the context option ``THREAD_PRIORITY``: the system's priority."""
THREAD_SCHED_POLICY_DFLT: int
"""The default of the context option ``THREAD_SCHED_POLICY``: the system's policy."""
POLLITEMS_DFLT: int
"""A number of libzmq's headers, without effect."""
HAS_CAPABILITIES: int
"""Whether `has` exists, as in libzmq's headers."""
CURRENT_EVENT_VERSION: int
"""The version of the messages that `Socket.get_monitor_socket` receives."""
CURRENT_EVENT_VERSION_DRAFT: int
"""The version of those messages in libzmq's drafts, which is not built in."""
EAGAIN = Errno.EAGAIN
"""The call would have to wait, or timed out: raised as `Again`."""
EFAULT = Errno.EFAULT
"""The context is closed, or does not exist."""
EINVAL = Errno.EINVAL
"""An option, a value or an address is invalid."""
ENOTSUP = Errno.ENOTSUP
"""The socket's type cannot do this."""
EPROTONOSUPPORT = Errno.EPROTONOSUPPORT
"""There is no such transport."""
ENOBUFS = Errno.ENOBUFS
"""There is no buffer space."""
ENETDOWN = Errno.ENETDOWN
"""The network is down."""
EADDRINUSE = Errno.EADDRINUSE
"""Another socket is bound to the address."""
EADDRNOTAVAIL = Errno.EADDRNOTAVAIL
"""The address is not one of this machine."""
ECONNREFUSED = Errno.ECONNREFUSED
"""No process listens at the address."""
EINPROGRESS = Errno.EINPROGRESS
"""The connection is being made."""
ENOTSOCK = Errno.ENOTSOCK
"""The socket is closed, or belongs to another process."""
EMSGSIZE = Errno.EMSGSIZE
"""The message is too large."""
EAFNOSUPPORT = Errno.EAFNOSUPPORT
"""The address family is not supported."""
ENETUNREACH = Errno.ENETUNREACH
"""The network cannot be reached."""
ECONNABORTED = Errno.ECONNABORTED
"""The connection was aborted."""
ECONNRESET = Errno.ECONNRESET
"""The peer reset the connection."""
ENOTCONN = Errno.ENOTCONN
"""The socket is not connected."""
ETIMEDOUT = Errno.ETIMEDOUT
"""The connection timed out."""
EHOSTUNREACH = Errno.EHOSTUNREACH
"""No peer has the routing id (ROUTER with ``ROUTER_MANDATORY``)."""
ENETRESET = Errno.ENETRESET
"""The network dropped the connection."""
EFSM = Errno.EFSM
"""The socket cannot do this in its state: a REQ or REP has to send or receive first."""
ENOCOMPATPROTO = Errno.ENOCOMPATPROTO
"""The transport does not fit the type of the socket."""
ETERM = Errno.ETERM
"""The context was shut down or terminated: raised as `ContextTerminated`."""
EMTHREAD = Errno.EMTHREAD
"""There is no I/O thread, or the system could not start one."""
ETOOSLOW = Errno.ETOOSLOW
"""A SUB has not kept up with its publishers: raised as `TooSlow`. Not a number of libzmq."""
IO_THREADS = ContextOption.IO_THREADS
"""How many I/O threads serve the sockets; fixed when the first socket is created. 0 is enough for
inproc.

Type: int, in threads. Default: 1.

Source: ``ZMQ_IO_THREADS`` of zmq_ctx_set(3)
"""
MAX_SOCKETS = ContextOption.MAX_SOCKETS
"""How many sockets may be open at a time.

Type: int, in sockets. Default: 1023.

Source: ``ZMQ_MAX_SOCKETS`` of zmq_ctx_set(3)
"""
SOCKET_LIMIT = ContextOption.SOCKET_LIMIT
"""SOCKET_LIMIT: libzmq's maximum number of sockets; MAX_SOCKETS may be larger.

Type: int, in sockets. Default: 65535. It can only be read.

Source: ``ZMQ_SOCKET_LIMIT`` of zmq_ctx_get(3)

THREAD_PRIORITY: The scheduling priority of the I/O threads; the default is the system's.

Type: int. It can only be set.

Source: ``ZMQ_THREAD_PRIORITY`` of zmq_ctx_set(3)
"""
THREAD_PRIORITY = ContextOption.SOCKET_LIMIT
"""SOCKET_LIMIT: libzmq's maximum number of sockets; MAX_SOCKETS may be larger.

Type: int, in sockets. Default: 65535. It can only be read.

Source: ``ZMQ_SOCKET_LIMIT`` of zmq_ctx_get(3)

THREAD_PRIORITY: The scheduling priority of the I/O threads; the default is the system's.

Type: int. It can only be set.

Source: ``ZMQ_THREAD_PRIORITY`` of zmq_ctx_set(3)
"""
THREAD_SCHED_POLICY = ContextOption.THREAD_SCHED_POLICY
"""The scheduling policy of the I/O threads (SCHED_*); -1, the system's, can only be read.

Type: int. Default: -1.

Source: ``ZMQ_THREAD_SCHED_POLICY`` of zmq_ctx_set(3)
"""
MAX_MSGSZ = ContextOption.MAX_MSGSZ
"""Stored without effect, for programs that read it back; the socket option MAXMSGSIZE is the limit.

Type: int, in bytes. Default: 2147483647.

Source: ``ZMQ_MAX_MSGSZ`` of zmq_ctx_set(3)
"""
MSG_T_SIZE = ContextOption.MSG_T_SIZE
"""The size of libzmq's message structure, 64; zeroxide does not use it.

Type: int, in bytes. Default: 64. It can only be read.

Source: ``ZMQ_MSG_T_SIZE`` of zmq_ctx_get(3)
"""
THREAD_AFFINITY_CPU_ADD = ContextOption.THREAD_AFFINITY_CPU_ADD
"""One more CPU for the I/O threads to run on.

Type: int. It can only be set.

Source: ``ZMQ_THREAD_AFFINITY_CPU_ADD`` of zmq_ctx_set(3)
"""
THREAD_AFFINITY_CPU_REMOVE = ContextOption.THREAD_AFFINITY_CPU_REMOVE
"""One CPU less for the I/O threads to run on.

Type: int. It can only be set.

Source: ``ZMQ_THREAD_AFFINITY_CPU_REMOVE`` of zmq_ctx_set(3)
"""
THREAD_NAME_PREFIX = ContextOption.THREAD_NAME_PREFIX
"""The prefix of the I/O threads' names; a number or up to 16 bytes.

Type: int.

Source: ``ZMQ_THREAD_NAME_PREFIX`` of zmq_ctx_set(3)
"""
ZERO_COPY_RECV = ContextOption.ZERO_COPY_RECV
"""Stored without effect, for programs that read it back; large messages are always received without
a copy.

Type: int. Default: 1.

Source: ``ZMQ_ZERO_COPY_RECV`` of zmq_ctx_set(3)
"""
MEMORY_BUDGET = ContextOption.MEMORY_BUDGET
"""How many bytes the messages and topics of all peers together may take: incomplete messages, those
not received yet, and topics that peers have subscribed to. 0 = no limit.

Type: int. Default: three quarters of the memory the process may have, in bytes.

Source: zeroxide only
"""
PAIR = SocketType.PAIR
"""Exchanges messages with one peer; for threads of a program.

Source: 31/EXPAIR, section "The PAIR Socket Type"; ``ZMQ_PAIR`` of zmq_socket(3)
"""
PUB = SocketType.PUB
"""Sends to all subscribers of a topic.

Source: 29/PUBSUB, section "The PUB Socket Type"; ``ZMQ_PUB`` of zmq_socket(3)
"""
SUB = SocketType.SUB
"""Receives the messages that it subscribed to.

Source: 29/PUBSUB, section "The SUB Socket Type"; ``ZMQ_SUB`` of zmq_socket(3)
"""
REQ = SocketType.REQ
"""Sends a request, then receives its reply.

Source: 28/REQREP, section "The REQ Socket Type"; ``ZMQ_REQ`` of zmq_socket(3)
"""
REP = SocketType.REP
"""Receives a request, then sends its reply.

Source: 28/REQREP, section "The REP Socket Type"; ``ZMQ_REP`` of zmq_socket(3)
"""
DEALER = SocketType.DEALER
"""Sends to its peers in turn, receives from all of them.

Source: 28/REQREP, section "The DEALER Socket Type"; ``ZMQ_DEALER`` of zmq_socket(3)
"""
ROUTER = SocketType.ROUTER
"""Receives from all peers, with the sender's routing id; sends to the peer whose routing id comes
first.

Source: 28/REQREP, section "The ROUTER Socket Type"; ``ZMQ_ROUTER`` of zmq_socket(3)
"""
PULL = SocketType.PULL
"""Receives from all peers in turn.

Source: 30/PIPELINE, section "The PULL Socket Type"; ``ZMQ_PULL`` of zmq_socket(3)
"""
PUSH = SocketType.PUSH
"""Sends to its peers in turn.

Source: 30/PIPELINE, section "The PUSH Socket Type"; ``ZMQ_PUSH`` of zmq_socket(3)
"""
XPUB = SocketType.XPUB
"""A PUB that receives the subscriptions.

Source: 29/PUBSUB, section "The XPUB Socket Type"; ``ZMQ_XPUB`` of zmq_socket(3)
"""
XSUB = SocketType.XSUB
"""A SUB that sends its subscriptions as messages.

Source: 29/PUBSUB, section "The XSUB Socket Type"; ``ZMQ_XSUB`` of zmq_socket(3)
"""
STREAM = SocketType.STREAM
"""Raw TCP connections.

Source: ``ZMQ_STREAM`` of zmq_socket(3)
"""
XREQ = SocketType.DEALER
"""Another name of `DEALER`. Sends to its peers in turn, receives from all of them.

Source: 28/REQREP, section "The DEALER Socket Type"; ``ZMQ_DEALER`` of zmq_socket(3)
"""
XREP = SocketType.ROUTER
"""Another name of `ROUTER`. Receives from all peers, with the sender's routing id; sends to the
peer whose routing id comes first.

Source: 28/REQREP, section "The ROUTER Socket Type"; ``ZMQ_ROUTER`` of zmq_socket(3)
"""
SERVER = SocketType.SERVER
"""Receives from all CLIENT peers; sends to the peer whose routing id a message has.

Source: ``ZMQ_SERVER`` of zmq_socket(3)
"""
CLIENT = SocketType.CLIENT
"""Sends to its SERVER peers in turn, receives from all of them.

Source: ``ZMQ_CLIENT`` of zmq_socket(3)
"""
RADIO = SocketType.RADIO
"""Sends to all DISH peers that joined the group of the message.

Source: ``ZMQ_RADIO`` of zmq_socket(3)
"""
DISH = SocketType.DISH
"""Receives the messages of the groups that it joined.

Source: ``ZMQ_DISH`` of zmq_socket(3)
"""
GATHER = SocketType.GATHER
"""Receives from all SCATTER peers in turn.

Source: ``ZMQ_GATHER`` of zmq_socket(3)
"""
SCATTER = SocketType.SCATTER
"""Sends to its GATHER peers in turn.

Source: ``ZMQ_SCATTER`` of zmq_socket(3)
"""
DGRAM = SocketType.DGRAM
"""Sends datagrams to any address, and receives them from any.

Source: zmq_udp(7)
"""
PEER = SocketType.PEER
"""A SERVER whose peers are PEER sockets, too.

Source: ``ZMQ_PEER`` of zmq_socket(3)
"""
CHANNEL = SocketType.CHANNEL
"""Exchanges messages with one peer.

Source: ``ZMQ_CHANNEL`` of zmq_socket(3)
"""
SURVEYOR = SocketType.SURVEYOR
"""Sends a survey to all RESPONDENT peers, and receives their answers for a while.

Source: ``NN_SURVEYOR`` of nn_survey(7)
"""
RESPONDENT = SocketType.RESPONDENT
"""Receives surveys, and may answer each.

Source: ``NN_RESPONDENT`` of nn_survey(7)
"""
BUS = SocketType.BUS
"""Sends to all its BUS peers, and receives from all of them.

Source: ``NN_BUS`` of nn_bus(7)
"""
HWM = SocketOption.HWM
"""An option of ZeroMQ 2. Its number is not accepted: ``socket.hwm`` sets SNDHWM and RCVHWM.

Source: pyzmq's ``Socket.hwm``
"""
AFFINITY = SocketOption.AFFINITY
"""The I/O threads that may serve new connections, one bit each; 0 = all.

Type: int. Default: 0.

Source: ``ZMQ_AFFINITY`` of zmq_setsockopt(3)
"""
ROUTING_ID = SocketOption.ROUTING_ID
"""The name under which ROUTER peers address this socket.

Type: bytes. Default: empty.

Source: 37/ZMTP, section "The Identity Property"; ``ZMQ_ROUTING_ID`` of zmq_setsockopt(3)
"""
SUBSCRIBE = SocketOption.SUBSCRIBE
"""Also receive messages that begin with these bytes; empty = all.

Type: bytes. Sockets: SUB, XPUB. It can only be set.

Source: 29/PUBSUB, section "The SUB Socket Type"; ``ZMQ_SUBSCRIBE`` of zmq_setsockopt(3)
"""
UNSUBSCRIBE = SocketOption.UNSUBSCRIBE
"""Undo one SUBSCRIBE of the same bytes.

Type: bytes. Sockets: SUB, XPUB. It can only be set.

Source: 29/PUBSUB, section "The SUB Socket Type"; ``ZMQ_UNSUBSCRIBE`` of zmq_setsockopt(3)
"""
RATE = SocketOption.RATE
"""The limit of multicast transports in kbit/s.

Type: int, in kbit/s. Default: 100.

Source: ``ZMQ_RATE`` of zmq_setsockopt(3)
"""
RECOVERY_IVL = SocketOption.RECOVERY_IVL
"""How long a multicast receiver may be away without loss, in ms.

Type: int, in ms. Default: 10000.

Source: ``ZMQ_RECOVERY_IVL`` of zmq_setsockopt(3)
"""
SNDBUF = SocketOption.SNDBUF
"""The kernel's send buffer in bytes; -1 = the system's default.

Type: int, in bytes. Default: -1.

Source: ``ZMQ_SNDBUF`` of zmq_setsockopt(3)
"""
RCVBUF = SocketOption.RCVBUF
"""The kernel's receive buffer in bytes; -1 = the system's default.

Type: int, in bytes. Default: -1.

Source: ``ZMQ_RCVBUF`` of zmq_setsockopt(3)
"""
RCVMORE = SocketOption.RCVMORE
"""Whether further parts follow the one received last.

Type: int, 0 or 1. It can only be read.

Source: ``ZMQ_RCVMORE`` of zmq_getsockopt(3)
"""
FD = SocketOption.FD
"""A descriptor that is readable when the socket may have become ready.

Type: int, a file descriptor. It can only be read.

Source: ``ZMQ_FD`` of zmq_getsockopt(3)
"""
EVENTS = SocketOption.EVENTS
"""What the socket is ready for: POLLIN, POLLOUT.

Type: int. It can only be read.

Source: ``ZMQ_EVENTS`` of zmq_getsockopt(3)
"""
TYPE = SocketOption.TYPE
"""The socket's type.

Type: int. It can only be read.

Source: ``ZMQ_TYPE`` of zmq_getsockopt(3)
"""
LINGER = SocketOption.LINGER
"""How long messages are still sent after closing, in ms; -1 = no limit.

Type: int, in ms. Default: -1; 0 for SUB and XSUB.

Source: ``ZMQ_LINGER`` of zmq_setsockopt(3)
"""
RECONNECT_IVL = SocketOption.RECONNECT_IVL
"""The delay before the next connection attempt in ms; -1 = no further attempt.

Type: int, in ms. Default: 100.

Source: ``ZMQ_RECONNECT_IVL`` of zmq_setsockopt(3)
"""
BACKLOG = SocketOption.BACKLOG
"""How many connections may wait to be accepted.

Type: int, in connections. Default: 100.

Source: ``ZMQ_BACKLOG`` of zmq_setsockopt(3)
"""
RECONNECT_IVL_MAX = SocketOption.RECONNECT_IVL_MAX
"""Delays between attempts double up to this many ms; 0 = they do not.

Type: int, in ms. Default: 0.

Source: ``ZMQ_RECONNECT_IVL_MAX`` of zmq_setsockopt(3)
"""
MAXMSGSIZE = SocketOption.MAXMSGSIZE
"""A larger message from a peer ends its connection; bytes, -1 = no limit.

Type: int, in bytes. Default: -1.

Source: ``ZMQ_MAXMSGSIZE`` of zmq_setsockopt(3)
"""
SNDHWM = SocketOption.SNDHWM
"""How many messages queue per peer on the way out; 0 = no limit.

Type: int, in messages. Default: 1000.

Source: ``ZMQ_SNDHWM`` of zmq_setsockopt(3)
"""
RCVHWM = SocketOption.RCVHWM
"""How many messages queue per peer on the way in; 0 = no limit.

Type: int, in messages. Default: 1000.

Source: ``ZMQ_RCVHWM`` of zmq_setsockopt(3)
"""
MULTICAST_HOPS = SocketOption.MULTICAST_HOPS
"""How many networks a multicast packet may cross: 1 = only the local network.

Type: int. Default: 1.

Source: ``ZMQ_MULTICAST_HOPS`` of zmq_setsockopt(3)
"""
RCVTIMEO = SocketOption.RCVTIMEO
"""How long receiving waits, in ms; -1 = no limit.

Type: int, in ms. Default: -1.

Source: ``ZMQ_RCVTIMEO`` of zmq_setsockopt(3)
"""
SNDTIMEO = SocketOption.SNDTIMEO
"""How long sending waits, in ms; -1 = no limit.

Type: int, in ms. Default: -1.

Source: ``ZMQ_SNDTIMEO`` of zmq_setsockopt(3)
"""
IPV4ONLY = SocketOption.IPV4ONLY
"""The opposite of IPV6, for old programs.

Type: int, 0 or 1. Default: 1.

Source: ``ZMQ_IPV4ONLY`` of zmq_setsockopt(3)
"""
LAST_ENDPOINT = SocketOption.LAST_ENDPOINT
"""The endpoint that was bound or connected last, with wildcards replaced.

Type: bytes, text in UTF-8. Default: empty. It can only be read.

Source: ``ZMQ_LAST_ENDPOINT`` of zmq_getsockopt(3)
"""
ROUTER_MANDATORY = SocketOption.ROUTER_MANDATORY
"""A message to an unknown peer raises an error instead of being dropped.

Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

Source: ``ZMQ_ROUTER_MANDATORY`` of zmq_setsockopt(3)
"""
TCP_KEEPALIVE = SocketOption.TCP_KEEPALIVE
"""Keepalive probes: 1 on, 0 off, -1 = on with limits that find a dead machine within 15 s.

Type: int. Default: -1.

Source: ``ZMQ_TCP_KEEPALIVE`` of zmq_setsockopt(3)
"""
TCP_KEEPALIVE_CNT = SocketOption.TCP_KEEPALIVE_CNT
"""How many unanswered probes end a connection; -1 = as TCP_KEEPALIVE says, or the system's default.

Type: int, in probes. Default: -1.

Source: ``ZMQ_TCP_KEEPALIVE_CNT`` of zmq_setsockopt(3)
"""
TCP_KEEPALIVE_IDLE = SocketOption.TCP_KEEPALIVE_IDLE
"""Silence before the first probe, in seconds; -1 = as TCP_KEEPALIVE says, or the system's default.

Type: int, in s. Default: -1.

Source: ``ZMQ_TCP_KEEPALIVE_IDLE`` of zmq_setsockopt(3)
"""
TCP_KEEPALIVE_INTVL = SocketOption.TCP_KEEPALIVE_INTVL
"""Time between probes, in seconds; -1 = as TCP_KEEPALIVE says, or the system's default.

Type: int, in s. Default: -1.

Source: ``ZMQ_TCP_KEEPALIVE_INTVL`` of zmq_setsockopt(3)
"""
TCP_ACCEPT_FILTER = SocketOption.TCP_ACCEPT_FILTER
"""One more network (CIDR) that may connect to endpoints bound later; empty = every network again.

Type: bytes, text in UTF-8. It can only be set.

Source: ``ZMQ_TCP_ACCEPT_FILTER`` of zmq_setsockopt(3)
"""
IMMEDIATE = SocketOption.IMMEDIATE
"""Queue messages only for connections that are up.

Type: int, 0 or 1. Default: 0.

Source: ``ZMQ_IMMEDIATE`` of zmq_setsockopt(3)
"""
XPUB_VERBOSE = SocketOption.XPUB_VERBOSE
"""Receive every subscription, not only the first for a topic.

Type: int, 0 or 1. Default: 0. Sockets: PUB, XPUB. It can only be set.

Source: ``ZMQ_XPUB_VERBOSE`` of zmq_setsockopt(3)
"""
ROUTER_RAW = SocketOption.ROUTER_RAW
"""Raw TCP on a ROUTER; a STREAM socket is the newer way.

Type: int, 0 or 1. Default: 0. Sockets: ROUTER. It can only be set.

Source: ``ZMQ_ROUTER_RAW`` of zmq_setsockopt(3)
"""
IPV6 = SocketOption.IPV6
"""Bind and connect over IPv6 as well as IPv4.

Type: int, 0 or 1. Default: 0.

Source: ``ZMQ_IPV6`` of zmq_setsockopt(3)
"""
MECHANISM = SocketOption.MECHANISM
"""The security mechanism: 0 NULL, 1 PLAIN, 2 CURVE, 3 GSSAPI.

Type: int. Default: 0. It can only be read.

Source: 37/ZMTP, section "Authentication and Confidentiality"; ``ZMQ_MECHANISM`` of
zmq_getsockopt(3)
"""
PLAIN_SERVER = SocketOption.PLAIN_SERVER
"""Act as server of the PLAIN mechanism.

Type: int, 0 or 1. Default: 0.

Source: 24/ZMTP-PLAIN, section "Implementation"; ``ZMQ_PLAIN_SERVER`` of zmq_setsockopt(3)
"""
PLAIN_USERNAME = SocketOption.PLAIN_USERNAME
"""The user name of a PLAIN client.

Type: bytes, text in UTF-8. Default: empty.

Source: 24/ZMTP-PLAIN, section "Implementation"; ``ZMQ_PLAIN_USERNAME`` of zmq_setsockopt(3)
"""
PLAIN_PASSWORD = SocketOption.PLAIN_PASSWORD
"""The password of a PLAIN client.

Type: bytes, text in UTF-8. Default: empty.

Source: 24/ZMTP-PLAIN, section "Implementation"; ``ZMQ_PLAIN_PASSWORD`` of zmq_setsockopt(3)
"""
CURVE_SERVER = SocketOption.CURVE_SERVER
"""Act as server of the CURVE mechanism; needs CURVE_SECRETKEY.

Type: int, 0 or 1. Default: 0.

Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_SERVER`` of zmq_setsockopt(3)
"""
CURVE_PUBLICKEY = SocketOption.CURVE_PUBLICKEY
"""The public key of this socket, 32 bytes or 40 characters of Z85.

Type: bytes. Default: empty.

Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_PUBLICKEY`` of zmq_setsockopt(3)
"""
CURVE_SECRETKEY = SocketOption.CURVE_SECRETKEY
"""The secret key of this socket, 32 bytes or 40 characters of Z85.

Type: bytes. Default: empty.

Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_SECRETKEY`` of zmq_setsockopt(3)
"""
CURVE_SERVERKEY = SocketOption.CURVE_SERVERKEY
"""The public key of the server to connect to; makes this a CURVE client.

Type: bytes. Default: empty.

Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_SERVERKEY`` of zmq_setsockopt(3)
"""
PROBE_ROUTER = SocketOption.PROBE_ROUTER
"""Send an empty message on each new connection, before all others.

Type: int, 0 or 1. Default: 0. Sockets: REQ, REP, DEALER, ROUTER. It can only be set.

Source: ``ZMQ_PROBE_ROUTER`` of zmq_setsockopt(3)
"""
REQ_CORRELATE = SocketOption.REQ_CORRELATE
"""Number the requests and accept only matching replies.

Type: int, 0 or 1. Default: 0. Sockets: REQ. It can only be set.

Source: ``ZMQ_REQ_CORRELATE`` of zmq_setsockopt(3)
"""
REQ_RELAXED = SocketOption.REQ_RELAXED
"""Allow a new request before the reply to the last.

Type: int, 0 or 1. Default: 0. Sockets: REQ. It can only be set.

Source: ``ZMQ_REQ_RELAXED`` of zmq_setsockopt(3)
"""
CONFLATE = SocketOption.CONFLATE
"""Keep only the newest message (PULL, PUSH, SUB, PUB, DEALER).

Type: int, 0 or 1. Default: 0.

Source: ``ZMQ_CONFLATE`` of zmq_setsockopt(3)
"""
ZAP_DOMAIN = SocketOption.ZAP_DOMAIN
"""The domain that authentication requests name.

Type: bytes, text in UTF-8. Default: empty.

Source: 27/ZAP, section "Message Format"; ``ZMQ_ZAP_DOMAIN`` of zmq_setsockopt(3)
"""
ROUTER_HANDOVER = SocketOption.ROUTER_HANDOVER
"""A new peer takes over the routing id of an older one.

Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

Source: ``ZMQ_ROUTER_HANDOVER`` of zmq_setsockopt(3)
"""
TOS = SocketOption.TOS
"""The type-of-service byte of outgoing packets.

Type: int. Default: 0.

Source: ``ZMQ_TOS`` of zmq_setsockopt(3)
"""
IPC_FILTER_PID = SocketOption.IPC_FILTER_PID
"""One more process that may connect to a bound ipc endpoint.

Type: int. It can only be set.

Source: ``ZMQ_IPC_FILTER_PID`` of zmq_setsockopt(3)
"""
IPC_FILTER_UID = SocketOption.IPC_FILTER_UID
"""One more user that may connect to a bound ipc endpoint.

Type: int. It can only be set.

Source: ``ZMQ_IPC_FILTER_UID`` of zmq_setsockopt(3)
"""
IPC_FILTER_GID = SocketOption.IPC_FILTER_GID
"""One more primary group that may connect to a bound ipc endpoint.

Type: int. It can only be set.

Source: ``ZMQ_IPC_FILTER_GID`` of zmq_setsockopt(3)
"""
CONNECT_ROUTING_ID = SocketOption.CONNECT_ROUTING_ID
"""The name here of the peer that the next connect reaches.

Type: bytes. Default: empty. Sockets: REP, ROUTER, STREAM. It can only be set.

Source: ``ZMQ_CONNECT_ROUTING_ID`` of zmq_setsockopt(3)
"""
GSSAPI_SERVER = SocketOption.GSSAPI_SERVER
"""Act as server of the GSSAPI mechanism.

Type: int, 0 or 1. Setting it raises an error.

Source: ``ZMQ_GSSAPI_SERVER`` of zmq_setsockopt(3)
"""
GSSAPI_PRINCIPAL = SocketOption.GSSAPI_PRINCIPAL
"""The principal of this socket.

Type: bytes, text in UTF-8. Setting it raises an error.

Source: ``ZMQ_GSSAPI_PRINCIPAL`` of zmq_setsockopt(3)
"""
GSSAPI_SERVICE_PRINCIPAL = SocketOption.GSSAPI_SERVICE_PRINCIPAL
"""The principal of the server.

Type: bytes, text in UTF-8. Setting it raises an error.

Source: ``ZMQ_GSSAPI_SERVICE_PRINCIPAL`` of zmq_setsockopt(3)
"""
GSSAPI_PLAINTEXT = SocketOption.GSSAPI_PLAINTEXT
"""Authenticate without encrypting.

Type: int, 0 or 1. Setting it raises an error.

Source: ``ZMQ_GSSAPI_PLAINTEXT`` of zmq_setsockopt(3)
"""
HANDSHAKE_IVL = SocketOption.HANDSHAKE_IVL
"""The limit from the connection to the end of the handshake, in ms; 0 = none.

Type: int, in ms. Default: 30000.

Source: ``ZMQ_HANDSHAKE_IVL`` of zmq_setsockopt(3)
"""
SOCKS_PROXY = SocketOption.SOCKS_PROXY
"""Connect through the SOCKS5 proxy at host:port; empty = directly.

Type: bytes, text in UTF-8. Default: empty.

Source: ``ZMQ_SOCKS_PROXY`` of zmq_setsockopt(3)
"""
XPUB_NODROP = SocketOption.XPUB_NODROP
"""Wait instead of dropping when the queue to a subscriber is full.

Type: int, 0 or 1. Default: 0. Sockets: PUB, XPUB, RADIO. It can only be set.

Source: ``ZMQ_XPUB_NODROP`` of zmq_setsockopt(3)
"""
BLOCKY = SocketOption.BLOCKY
"""An option of contexts. 0 makes LINGER 0 the default of new sockets, so that terminating never
waits for peers.

Type: int. Default: 1.

Source: ``ZMQ_BLOCKY`` of zmq_ctx_set(3)
"""
XPUB_MANUAL = SocketOption.XPUB_MANUAL
"""The program decides which subscriptions take effect.

Type: int, 0 or 1. Default: 0. Sockets: XPUB. It can only be set.

Source: ``ZMQ_XPUB_MANUAL`` of zmq_setsockopt(3)
"""
XPUB_WELCOME_MSG = SocketOption.XPUB_WELCOME_MSG
"""The first message to each new subscriber; empty = none.

Type: bytes. Default: empty. Sockets: PUB, XPUB. It can only be set.

Source: ``ZMQ_XPUB_WELCOME_MSG`` of zmq_setsockopt(3)
"""
STREAM_NOTIFY = SocketOption.STREAM_NOTIFY
"""Deliver an empty message when a peer connects and when it disconnects.

Type: int, 0 or 1. Default: 1. Sockets: STREAM. It can only be set.

Source: ``ZMQ_STREAM_NOTIFY`` of zmq_setsockopt(3)
"""
INVERT_MATCHING = SocketOption.INVERT_MATCHING
"""Match messages that do not begin with a subscription; set it at both ends. No effect on types
without subscriptions.

Type: int, 0 or 1. Default: 0.

Source: ``ZMQ_INVERT_MATCHING`` of zmq_setsockopt(3)
"""
HEARTBEAT_IVL = SocketOption.HEARTBEAT_IVL
"""How often to ping the peer, in ms; 0 = never. If it is not set, it also reads 0, and silent peers
are probed.

Type: int, in ms. Default: 0.

Source: 37/ZMTP, section "Connection Heartbeating"; ``ZMQ_HEARTBEAT_IVL`` of zmq_setsockopt(3)
"""
HEARTBEAT_TTL = SocketOption.HEARTBEAT_TTL
"""The silence after which the peer may end the connection, in ms; 0 = not sent to the peer.

Type: int, in ms. Default: 0.

Source: 37/ZMTP, section "Connection Heartbeating"; ``ZMQ_HEARTBEAT_TTL`` of zmq_setsockopt(3)
"""
HEARTBEAT_TIMEOUT = SocketOption.HEARTBEAT_TIMEOUT
"""Silence after a ping that ends the connection, in ms; the default is HEARTBEAT_IVL.

Type: int, in ms. Default: -1.

Source: 37/ZMTP, section "Connection Heartbeating"; ``ZMQ_HEARTBEAT_TIMEOUT`` of
zmq_setsockopt(3)
"""
XPUB_VERBOSER = SocketOption.XPUB_VERBOSER
"""Receive every subscription and every unsubscription.

Type: int, 0 or 1. Default: 0. Sockets: PUB, XPUB. It can only be set.

Source: ``ZMQ_XPUB_VERBOSER`` of zmq_setsockopt(3)
"""
CONNECT_TIMEOUT = SocketOption.CONNECT_TIMEOUT
"""The limit of one connection attempt, in ms; 0 = 10 s, or 3 s while the name has another address.

Type: int, in ms. Default: 0.

Source: ``ZMQ_CONNECT_TIMEOUT`` of zmq_setsockopt(3)
"""
TCP_MAXRT = SocketOption.TCP_MAXRT
"""How long sent bytes may stay unacknowledged, in ms; 0 = the system's limit.

Type: int, in ms. Default: 0.

Source: ``ZMQ_TCP_MAXRT`` of zmq_setsockopt(3)
"""
THREAD_SAFE = SocketOption.THREAD_SAFE
"""1 for the socket types that libzmq calls thread-safe, which are those from SERVER on except
DGRAM, and for the types that libzmq does not have. Every zeroxide socket is thread-safe, but the
others read 0 as in libzmq.

Type: int, 0 or 1. Default: 0. It can only be read.

Source: ``ZMQ_THREAD_SAFE`` of zmq_getsockopt(3)
"""
MULTICAST_MAXTPDU = SocketOption.MULTICAST_MAXTPDU
"""The largest packet that is sent to a multicast group, in bytes, with the headers of IP and UDP.

Type: int, in bytes. Default: 1500.

Source: ``ZMQ_MULTICAST_MAXTPDU`` of zmq_setsockopt(3)
"""
VMCI_BUFFER_SIZE = SocketOption.VMCI_BUFFER_SIZE
"""The buffer of a VMCI socket; 0 = the driver's.

Type: int, in bytes. Default: 0.

Source: ``ZMQ_VMCI_BUFFER_SIZE`` of zmq_setsockopt(3)
"""
VMCI_BUFFER_MIN_SIZE = SocketOption.VMCI_BUFFER_MIN_SIZE
"""The smallest buffer of a VMCI socket; 0 = the driver's.

Type: int, in bytes. Default: 0.

Source: ``ZMQ_VMCI_BUFFER_MIN_SIZE`` of zmq_setsockopt(3)
"""
VMCI_BUFFER_MAX_SIZE = SocketOption.VMCI_BUFFER_MAX_SIZE
"""The largest buffer of a VMCI socket; 0 = the driver's.

Type: int, in bytes. Default: 0.

Source: ``ZMQ_VMCI_BUFFER_MAX_SIZE`` of zmq_setsockopt(3)
"""
VMCI_CONNECT_TIMEOUT = SocketOption.VMCI_CONNECT_TIMEOUT
"""The limit of a VMCI connection attempt, in ms; -1 = the driver's.

Type: int, in ms. Default: -1.

Source: ``ZMQ_VMCI_CONNECT_TIMEOUT`` of zmq_setsockopt(3)
"""
USE_FD = SocketOption.USE_FD
"""A listening descriptor that the next bind takes over; -1 = none.

Type: int. Default: -1.

Source: ``ZMQ_USE_FD`` of zmq_setsockopt(3)
"""
GSSAPI_PRINCIPAL_NAMETYPE = SocketOption.GSSAPI_PRINCIPAL_NAMETYPE
"""What kind of name GSSAPI_PRINCIPAL is.

Type: int. Setting it raises an error.

Source: ``ZMQ_GSSAPI_PRINCIPAL_NAMETYPE`` of zmq_setsockopt(3)
"""
GSSAPI_SERVICE_PRINCIPAL_NAMETYPE = SocketOption.GSSAPI_SERVICE_PRINCIPAL_NAMETYPE
"""What kind of name GSSAPI_SERVICE_PRINCIPAL is.

Type: int. Setting it raises an error.

Source: ``ZMQ_GSSAPI_SERVICE_PRINCIPAL_NAMETYPE`` of zmq_setsockopt(3)
"""
BINDTODEVICE = SocketOption.BINDTODEVICE
"""The only network interface to use (needs CAP_NET_RAW); empty = any.

Type: bytes, text in UTF-8. Default: empty.

Source: ``ZMQ_BINDTODEVICE`` of zmq_setsockopt(3)
"""
IDENTITY = SocketOption.ROUTING_ID
"""Another name of `ROUTING_ID`. The name under which ROUTER peers address this socket.

Type: bytes. Default: empty.

Source: 37/ZMTP, section "The Identity Property"; ``ZMQ_ROUTING_ID`` of zmq_setsockopt(3)
"""
CONNECT_RID = SocketOption.CONNECT_ROUTING_ID
"""Another name of `CONNECT_ROUTING_ID`. The name here of the peer that the next connect reaches.

Type: bytes. Default: empty. Sockets: REP, ROUTER, STREAM. It can only be set.

Source: ``ZMQ_CONNECT_ROUTING_ID`` of zmq_setsockopt(3)
"""
DELAY_ATTACH_ON_CONNECT = SocketOption.IMMEDIATE
"""Another name of `IMMEDIATE`. Queue messages only for connections that are up.

Type: int, 0 or 1. Default: 0.

Source: ``ZMQ_IMMEDIATE`` of zmq_setsockopt(3)
"""
FAIL_UNROUTABLE = SocketOption.ROUTER_MANDATORY
"""Another name of `ROUTER_MANDATORY`. A message to an unknown peer raises an error instead of being
dropped.

Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

Source: ``ZMQ_ROUTER_MANDATORY`` of zmq_setsockopt(3)
"""
ROUTER_BEHAVIOR = SocketOption.ROUTER_MANDATORY
"""Another name of `ROUTER_MANDATORY`. A message to an unknown peer raises an error instead of being
dropped.

Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

Source: ``ZMQ_ROUTER_MANDATORY`` of zmq_setsockopt(3)
"""
ZAP_ENFORCE_DOMAIN = SocketOption.ZAP_ENFORCE_DOMAIN
"""Ask a ZAP handler only if ZAP_DOMAIN is set, and reject every peer if there is no handler.

Type: int, 0 or 1. Default: 0.

Source: ``ZMQ_ZAP_ENFORCE_DOMAIN`` of zmq_setsockopt(3)
"""
LOOPBACK_FASTPATH = SocketOption.LOOPBACK_FASTPATH
"""A feature of Windows. Stored without effect.

Type: int, 0 or 1. Default: 0.

Source: libzmq's zmq.h
"""
METADATA = SocketOption.METADATA
"""A property sent to peers in the handshake, as X-name:value; each call adds one.

Type: bytes. It can only be set.

Source: 37/ZMTP, section "Connection Metadata"; ``ZMQ_METADATA`` of zmq_setsockopt(3)
"""
MULTICAST_LOOP = SocketOption.MULTICAST_LOOP
"""Whether what is sent to a multicast group also reaches the members on this machine.

Type: int, 0 or 1. Default: 1.

Source: ``ZMQ_MULTICAST_LOOP`` of zmq_setsockopt(3)
"""
ROUTER_NOTIFY = SocketOption.ROUTER_NOTIFY
"""Receive an empty message from a peer that has connected (1), disconnected (2), or both (3); 0 =
neither.

Type: int. Default: 0. Sockets: ROUTER.

Source: ``ZMQ_ROUTER_NOTIFY`` of zmq_setsockopt(3)
"""
XPUB_MANUAL_LAST_VALUE = SocketOption.XPUB_MANUAL_LAST_VALUE
"""Like XPUB_MANUAL, and a message sent after receiving a subscription goes only to that subscriber.

Type: int, 0 or 1. Default: 0. Sockets: XPUB. It can only be set.

Source: ``ZMQ_XPUB_MANUAL_LAST_VALUE`` of zmq_setsockopt(3)
"""
SOCKS_USERNAME = SocketOption.SOCKS_USERNAME
"""The user name for the SOCKS5 proxy; empty = no login.

Type: bytes, text in UTF-8. Default: empty.

Source: ``ZMQ_SOCKS_USERNAME`` of zmq_setsockopt(3)
"""
SOCKS_PASSWORD = SocketOption.SOCKS_PASSWORD
"""The password for SOCKS_USERNAME.

Type: bytes, text in UTF-8. Default: empty.

Source: ``ZMQ_SOCKS_PASSWORD`` of zmq_setsockopt(3)
"""
IN_BATCH_SIZE = SocketOption.IN_BATCH_SIZE
"""A draft in libzmq; not available here.

Type: int. Setting it raises an error.

Source: ``ZMQ_IN_BATCH_SIZE`` of zmq_setsockopt(3)
"""
OUT_BATCH_SIZE = SocketOption.OUT_BATCH_SIZE
"""A draft in libzmq; not available here.

Type: int. Setting it raises an error.

Source: ``ZMQ_OUT_BATCH_SIZE`` of zmq_setsockopt(3)
"""
WSS_KEY_PEM = SocketOption.WSS_KEY_PEM
"""libzmq's name of TLS_KEY.

Type: bytes, text in UTF-8. Default: empty.

Source: libzmq's zmq.h
"""
WSS_CERT_PEM = SocketOption.WSS_CERT_PEM
"""libzmq's name of TLS_CERTIFICATE.

Type: bytes, text in UTF-8. Default: empty.

Source: libzmq's zmq.h
"""
WSS_TRUST_PEM = SocketOption.WSS_TRUST_PEM
"""libzmq's name of TLS_CA.

Type: bytes, text in UTF-8. Default: empty.

Source: libzmq's zmq.h
"""
WSS_HOSTNAME = SocketOption.WSS_HOSTNAME
"""libzmq's name of TLS_HOSTNAME.

Type: bytes, text in UTF-8. Default: empty.

Source: libzmq's zmq.h
"""
WSS_TRUST_SYSTEM = SocketOption.WSS_TRUST_SYSTEM
"""libzmq's name of TLS_TRUST_SYSTEM. It reads 0 if that is not set.

Type: int, 0 or 1. Default: 0.

Source: libzmq's zmq.h
"""
ONLY_FIRST_SUBSCRIBE = SocketOption.ONLY_FIRST_SUBSCRIBE
"""Stored without effect: a message that does not begin with a subscription never has one in a later
part.

Type: int, 0 or 1. Sockets: PUB, XPUB, XSUB. It can only be set.

Source: ``ZMQ_ONLY_FIRST_SUBSCRIBE`` of zmq_setsockopt(3)
"""
RECONNECT_STOP = SocketOption.RECONNECT_STOP
"""When to stop reconnecting: 1 connection refused, 2 handshake failed, 4 after disconnect(); add
the numbers.

Type: int. Default: 0.

Source: ``ZMQ_RECONNECT_STOP`` of zmq_setsockopt(3)
"""
HELLO_MSG = SocketOption.HELLO_MSG
"""The first message to each peer, sent again on each new connection; empty = none.

Type: bytes. Default: empty. Sockets: DEALER, ROUTER, SERVER, CLIENT, PEER.

Source: ``ZMQ_HELLO_MSG`` of zmq_setsockopt(3)
"""
DISCONNECT_MSG = SocketOption.DISCONNECT_MSG
"""The message received from a peer that has connected to this socket, once it has left; empty =
none.

Type: bytes. Default: empty. Sockets: ROUTER, SERVER, PEER.

Source: ``ZMQ_DISCONNECT_MSG`` of zmq_setsockopt(3)
"""
PRIORITY = SocketOption.PRIORITY
"""A draft in libzmq; not available here.

Type: int. Setting it raises an error.

Source: ``ZMQ_PRIORITY`` of zmq_setsockopt(3)
"""
BUSY_POLL = SocketOption.BUSY_POLL
"""A draft in libzmq; not available here.

Type: int. Setting it raises an error.

Source: ``ZMQ_BUSY_POLL`` of zmq_setsockopt(3)
"""
HICCUP_MSG = SocketOption.HICCUP_MSG
"""The message received when a connection that this socket has made is lost, before it connects
again; empty = none.

Type: bytes. Default: empty. Sockets: DEALER, CLIENT, PEER.

Source: ``ZMQ_HICCUP_MSG`` of zmq_setsockopt(3)
"""
XSUB_VERBOSE_UNSUBSCRIBE = SocketOption.XSUB_VERBOSE_UNSUBSCRIBE
"""A draft in libzmq; not available here.

Type: int, 0 or 1. Setting it raises an error.

Source: ``ZMQ_XSUB_VERBOSE_UNSUBSCRIBE`` of zmq_setsockopt(3)
"""
TOPICS_COUNT = SocketOption.TOPICS_COUNT
"""The number of different topics that this socket or its peers subscribe to.

Type: int, in topics. Default: 0. Sockets: PUB, SUB, XPUB, XSUB. It can only be read.

Source: ``ZMQ_TOPICS_COUNT`` of zmq_getsockopt(3)
"""
NORM_MODE = SocketOption.NORM_MODE
"""A draft in libzmq; not available here.

Type: int. Setting it raises an error.

Source: ``ZMQ_NORM_MODE`` of zmq_setsockopt(3)
"""
NORM_UNICAST_NACK = SocketOption.NORM_UNICAST_NACK
"""A draft in libzmq; not available here.

Type: int, 0 or 1. Setting it raises an error.

Source: ``ZMQ_NORM_UNICAST_NACK`` of zmq_setsockopt(3)
"""
NORM_BUFFER_SIZE = SocketOption.NORM_BUFFER_SIZE
"""A draft in libzmq; not available here.

Type: int. Setting it raises an error.

Source: ``ZMQ_NORM_BUFFER_SIZE`` of zmq_setsockopt(3)
"""
NORM_SEGMENT_SIZE = SocketOption.NORM_SEGMENT_SIZE
"""A draft in libzmq; not available here.

Type: int. Setting it raises an error.

Source: ``ZMQ_NORM_SEGMENT_SIZE`` of zmq_setsockopt(3)
"""
NORM_BLOCK_SIZE = SocketOption.NORM_BLOCK_SIZE
"""A draft in libzmq; not available here.

Type: int. Setting it raises an error.

Source: ``ZMQ_NORM_BLOCK_SIZE`` of zmq_setsockopt(3)
"""
NORM_NUM_PARITY = SocketOption.NORM_NUM_PARITY
"""A draft in libzmq; not available here.

Type: int. Setting it raises an error.

Source: ``ZMQ_NORM_NUM_PARITY`` of zmq_setsockopt(3)
"""
NORM_NUM_AUTOPARITY = SocketOption.NORM_NUM_AUTOPARITY
"""A draft in libzmq; not available here.

Type: int. Setting it raises an error.

Source: ``ZMQ_NORM_NUM_AUTOPARITY`` of zmq_setsockopt(3)
"""
NORM_PUSH = SocketOption.NORM_PUSH
"""A draft in libzmq; not available here.

Type: int, 0 or 1. Setting it raises an error.

Source: ``ZMQ_NORM_PUSH`` of zmq_setsockopt(3)
"""
MAX_SUBSCRIPTIONS = SocketOption.MAX_SUBSCRIPTIONS
"""How many topics each subscriber may have; further ones are counted and ignored. 0 = no limit.

Type: int, in topics. Default: 4194304. Sockets: PUB, XPUB, RADIO.

Source: zeroxide only
"""
SNDHWM_BYTES = SocketOption.SNDHWM_BYTES
"""How many bytes queue per peer on the way out, in addition to SNDHWM; 0 = no limit.

Type: int, in bytes. Default: 0.

Source: zeroxide only
"""
RCVHWM_BYTES = SocketOption.RCVHWM_BYTES
"""How many bytes queue per peer on the way in, in addition to RCVHWM; 0 = no limit.

Type: int, in bytes. Default: 0.

Source: zeroxide only
"""
STALL_IVL = SocketOption.STALL_IVL
"""How long a peer may be silent in the middle of a message, in ms (up to twice that); 0 = no limit.

Type: int, in ms. Default: 60000.

Source: zeroxide only
"""
MAX_SUBSCRIPTION_BYTES = SocketOption.MAX_SUBSCRIPTION_BYTES
"""How many bytes the topics of each subscriber may have together; further ones are counted and
ignored. 0 = no limit.

Type: int, in bytes. Default: 67108864. Sockets: PUB, XPUB, RADIO.

Source: zeroxide only
"""
TLS_CERTIFICATE = SocketOption.TLS_CERTIFICATE
"""The TLS certificate of this socket, followed by those between it and its CA: PEM, or the path of
a file.

Type: bytes, text in UTF-8. Default: empty.

Source: zeroxide only
"""
TLS_KEY = SocketOption.TLS_KEY
"""The key of TLS_CERTIFICATE, without a password: PEM, or the path of a file; empty = it is in
TLS_CERTIFICATE.

Type: bytes, text in UTF-8. Default: empty.

Source: zeroxide only
"""
TLS_CA = SocketOption.TLS_CA
"""The CAs whose certificates TLS peers must have: PEM, or the path of a file; empty = those of the
system.

Type: bytes, text in UTF-8. Default: empty.

Source: zeroxide only
"""
TLS_TRUST_SYSTEM = SocketOption.TLS_TRUST_SYSTEM
"""Whether TLS peers may have a certificate of a CA that the system trusts: 1 yes, 0 no, -1 = if
TLS_CA is empty.

Type: int. Default: -1.

Source: zeroxide only
"""
TLS_HOSTNAME = SocketOption.TLS_HOSTNAME
"""The name or IP address that a TLS server's certificate must have; empty = the host in the
endpoint.

Type: bytes, text in UTF-8. Default: empty.

Source: zeroxide only
"""
TLS_VERIFY = SocketOption.TLS_VERIFY
"""Whether the certificate of a TLS server is checked. With 0, an attacker on the network can pose
as the server.

Type: int, 0 or 1. Default: 1.

Source: zeroxide only
"""
TLS_CLIENT_AUTH = SocketOption.TLS_CLIENT_AUTH
"""The certificates of TLS clients: 0 not asked for, 1 checked if a client has one, 2 required, -1 =
2 if TLS_CA is set, otherwise 0.

Type: int. Default: -1.

Source: zeroxide only
"""
TLS_ALPN = SocketOption.TLS_ALPN
"""The protocols that TLS peers negotiate with ALPN, separated by commas; empty = none.

Type: bytes, text in UTF-8. Default: empty.

Source: zeroxide only
"""
WIRE_PROTOCOL = SocketOption.WIRE_PROTOCOL
"""What the socket speaks with its peers: 0 ZMTP, 1 the scalability protocols of nanomsg and nng.
Set it before all else; PAIR, PUB, SUB, REQ, REP, PUSH and PULL speak either.

Type: int. Default: 0.

Source: zeroxide only
"""
RESEND_IVL = SocketOption.RESEND_IVL
"""When a request over the scalability protocols is sent again, to the next peer, if no reply has
come, in ms; 0 = never.

Type: int, in ms. Default: 60000. Sockets: REQ.

Source: zeroxide only
"""
SURVEY_TIMEOUT = SocketOption.SURVEY_TIMEOUT
"""How long the answers to a survey are received, in ms; 0 = no limit.

Type: int, in ms. Default: 1000. Sockets: SURVEYOR.

Source: zeroxide only
"""
MAX_TTL = SocketOption.MAX_TTL
"""How many sockets a request or a survey may have passed; one that has passed more is dropped,
because it may travel in a circle.

Type: int, in sockets. Default: 8. Sockets: REP, RESPONDENT.

Source: zeroxide only
"""
SNDPRIO = SocketOption.SNDPRIO
"""The priority of the peers of later binds and connects for what is sent, 1 to 16: peers with the
lowest number get messages as long as they have room.

Type: int. Default: 8.

Source: nn_setsockopt(3), ``NN_SNDPRIO``; zeroxide only; ``ZMQ_SNDPRIO`` of zmq_setsockopt(3)
"""
RCVPRIO = SocketOption.RCVPRIO
"""The priority of the peers of later binds and connects for what is received, 1 to 16: messages of
peers with the lowest number are received first.

Type: int. Default: 8.

Source: nn_setsockopt(3), ``NN_RCVPRIO``; zeroxide only; ``ZMQ_RCVPRIO`` of zmq_setsockopt(3)
"""
SPILL_DIR = SocketOption.SPILL_DIR
"""The folder of this socket, and of no other, for messages beyond the high-water mark, from the
next bind or connect on; empty = none, and the usual rule of the socket type applies to them.

Type: bytes, text in UTF-8. Default: empty. Sockets: PUB, DEALER, ROUTER, PUSH, XPUB.

Source: zeroxide only
"""
SPILL_BYTES = SocketOption.SPILL_BYTES
"""How many bytes of messages may wait in SPILL_DIR; 0 = no limit.

Type: int, in bytes. Default: 1073741824. Sockets: PUB, DEALER, ROUTER, PUSH, XPUB.

Source: zeroxide only
"""
SPILL_KEEP = SocketOption.SPILL_KEEP
"""Whether messages in SPILL_DIR stay there when the socket closes or its process ends, for the next
socket with that folder.

Type: int, 0 or 1. Default: 0. Sockets: PUB, DEALER, ROUTER, PUSH, XPUB.

Source: zeroxide only
"""
SLOW_SUBSCRIBER = SocketOption.SLOW_SUBSCRIBER
"""When the queue to a subscriber is full: 0 the subscriber misses messages, 1 sending waits (as
with XPUB_NODROP), 2 the subscriber is disconnected and loses its queue.

Type: int. Default: 0. Sockets: PUB, XPUB.

Source: zeroxide only
"""
MAX_LAG = SocketOption.MAX_LAG
"""How long a message may wait to be received, in ms (up to 1.5 times that). If one has waited
longer, receiving fails once, the queue is dropped, and the socket joins its publishers anew; 0 =
no limit.

Type: int, in ms. Default: 0. Sockets: SUB.

Source: zeroxide only
"""
MORE = MessageOption.MORE
"""Whether more parts of the message follow."""
SRCFD = MessageOption.SRCFD
"""The file descriptor of the connection that the frame came from."""
SHARED = MessageOption.SHARED
"""Whether the body is in memory that other frames may share."""
DONTWAIT = Flag.DONTWAIT
"""Raise `Again` instead of waiting."""
SNDMORE = Flag.SNDMORE
"""More parts of the message follow."""
NOBLOCK = Flag.DONTWAIT
"""Another name of `DONTWAIT`. Raise `Again` instead of waiting."""
POLLIN = PollEvent.POLLIN
"""A message can be received; a descriptor can be read."""
POLLOUT = PollEvent.POLLOUT
"""A message can be sent; a descriptor can be written."""
POLLERR = PollEvent.POLLERR
"""A descriptor has an error."""
POLLPRI = PollEvent.POLLPRI
"""A descriptor has urgent data."""
NOTIFY_CONNECT = RouterNotify.CONNECT
"""Report that a peer connected."""
NOTIFY_DISCONNECT = RouterNotify.DISCONNECT
"""Report that a peer disconnected."""
SLOW_DROP = SlowSubscriber.DROP
"""The subscriber misses messages until its queue has room again."""
SLOW_WAIT = SlowSubscriber.WAIT
"""Sending waits until there is room, for at most ``SNDTIMEO``. ``XPUB_NODROP`` is the same."""
SLOW_DISCONNECT = SlowSubscriber.DISCONNECT
"""The subscriber is disconnected, and its queue is dropped."""
NORM_FIXED = NormMode.FIXED
"""A fixed rate."""
NORM_CC = NormMode.CC
"""Congestion control."""
NORM_CCL = NormMode.CCL
"""Congestion control that tolerates losses."""
NORM_CCE = NormMode.CCE
"""Congestion control with explicit notification of congestion."""
NORM_CCE_ECNONLY = NormMode.CCE_ECNONLY
"""Congestion control by explicit notification alone."""
NULL = SecurityMechanism.NULL
"""No security.

Source: 37/ZMTP, section "The NULL Security Mechanism"; zmq_null(7)
"""
PLAIN = SecurityMechanism.PLAIN
"""User names and passwords, without encryption.

Source: 24/ZMTP-PLAIN, section "Implementation"; zmq_plain(7)
"""
CURVE = SecurityMechanism.CURVE
"""Keys and encryption.

Source: 25/ZMTP-CURVE, section "Implementation"; zmq_curve(7)
"""
GSSAPI = SecurityMechanism.GSSAPI
"""Not built in.

Source: zmq_gssapi(7)
"""
ZMTP = WireProtocol.ZMTP
"""The protocol of ZeroMQ."""
SP = WireProtocol.SP
"""The scalability protocols of nanomsg and nng."""
GSSAPI_NT_HOSTBASED = GssapiNameType.HOSTBASED
"""A service at a host."""
GSSAPI_NT_USER_NAME = GssapiNameType.USER_NAME
"""The name of a user."""
GSSAPI_NT_KRB5_PRINCIPAL = GssapiNameType.KRB5_PRINCIPAL
"""A principal of Kerberos."""
RECONNECT_STOP_CONN_REFUSED = ReconnectStop.CONN_REFUSED
"""Stop when the connection is refused."""
RECONNECT_STOP_HANDSHAKE_FAILED = ReconnectStop.HANDSHAKE_FAILED
"""Stop when the handshake fails."""
RECONNECT_STOP_AFTER_DISCONNECT = ReconnectStop.AFTER_DISCONNECT
"""Stop after `Socket.disconnect`."""
PROTOCOL_ERROR_ZMTP_UNSPECIFIED = Event.PROTOCOL_ERROR_ZMTP_UNSPECIFIED
"""The peer broke ZMTP in a way that has no code of its own.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_UNSPECIFIED`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND = Event.PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND
"""A command came at the wrong time.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE = Event.PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE
"""A frame came at the wrong time.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZMTP_KEY_EXCHANGE = Event.PROTOCOL_ERROR_ZMTP_KEY_EXCHANGE
"""The exchange of keys failed.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_KEY_EXCHANGE`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED = (
    Event.PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED
)
"""A command is malformed.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_MESSAGE = Event.PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_MESSAGE
"""A MESSAGE command is malformed.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_MESSAGE`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_HELLO = Event.PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_HELLO
"""A HELLO command is malformed.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_HELLO`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_INITIATE = (
    Event.PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_INITIATE
)
"""An INITIATE command is malformed.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_INITIATE`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR = Event.PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR
"""An ERROR command is malformed.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_READY = Event.PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_READY
"""A READY command is malformed.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_READY`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_WELCOME = Event.PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_WELCOME
"""A WELCOME command is malformed.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_WELCOME`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZMTP_INVALID_METADATA = Event.PROTOCOL_ERROR_ZMTP_INVALID_METADATA
"""The metadata is malformed.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_INVALID_METADATA`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC = Event.PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC
"""A box could not be opened: wrong keys.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH = Event.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH
"""The peers use different mechanisms.

Source: ``ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZAP_UNSPECIFIED = Event.PROTOCOL_ERROR_ZAP_UNSPECIFIED
"""The handler broke ZAP in a way that has no code of its own.

Source: ``ZMQ_PROTOCOL_ERROR_ZAP_UNSPECIFIED`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZAP_MALFORMED_REPLY = Event.PROTOCOL_ERROR_ZAP_MALFORMED_REPLY
"""The handler's reply is malformed.

Source: ``ZMQ_PROTOCOL_ERROR_ZAP_MALFORMED_REPLY`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZAP_BAD_REQUEST_ID = Event.PROTOCOL_ERROR_ZAP_BAD_REQUEST_ID
"""The handler replied to another request.

Source: ``ZMQ_PROTOCOL_ERROR_ZAP_BAD_REQUEST_ID`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZAP_BAD_VERSION = Event.PROTOCOL_ERROR_ZAP_BAD_VERSION
"""The handler replied in another version.

Source: ``ZMQ_PROTOCOL_ERROR_ZAP_BAD_VERSION`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZAP_INVALID_STATUS_CODE = Event.PROTOCOL_ERROR_ZAP_INVALID_STATUS_CODE
"""The handler's status is none of ZAP's.

Source: ``ZMQ_PROTOCOL_ERROR_ZAP_INVALID_STATUS_CODE`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_ZAP_INVALID_METADATA = Event.PROTOCOL_ERROR_ZAP_INVALID_METADATA
"""The handler's metadata is malformed.

Source: ``ZMQ_PROTOCOL_ERROR_ZAP_INVALID_METADATA`` of zmq_socket_monitor(3)
"""
PROTOCOL_ERROR_WS_UNSPECIFIED = Event.PROTOCOL_ERROR_WS_UNSPECIFIED
"""For WebSockets, which are not built in.

Source: ``ZMQ_PROTOCOL_ERROR_WS_UNSPECIFIED`` of zmq_socket_monitor(3)
"""
EVENT_CONNECTED = Event.CONNECTED
"""A connection was made.

Source: ``ZMQ_EVENT_CONNECTED`` of zmq_socket_monitor(3)
"""
EVENT_CONNECT_DELAYED = Event.CONNECT_DELAYED
"""A connection is being made.

Source: ``ZMQ_EVENT_CONNECT_DELAYED`` of zmq_socket_monitor(3)
"""
EVENT_CONNECT_RETRIED = Event.CONNECT_RETRIED
"""A connection failed and is tried again; the value is the delay in ms.

Source: ``ZMQ_EVENT_CONNECT_RETRIED`` of zmq_socket_monitor(3)
"""
EVENT_LISTENING = Event.LISTENING
"""The socket listens at an address.

Source: ``ZMQ_EVENT_LISTENING`` of zmq_socket_monitor(3)
"""
EVENT_BIND_FAILED = Event.BIND_FAILED
"""The socket cannot listen at an address; the value is an errno.

Source: ``ZMQ_EVENT_BIND_FAILED`` of zmq_socket_monitor(3)
"""
EVENT_ACCEPTED = Event.ACCEPTED
"""A connection was accepted.

Source: ``ZMQ_EVENT_ACCEPTED`` of zmq_socket_monitor(3)
"""
EVENT_ACCEPT_FAILED = Event.ACCEPT_FAILED
"""A connection could not be accepted; the value is an errno.

Source: ``ZMQ_EVENT_ACCEPT_FAILED`` of zmq_socket_monitor(3)
"""
EVENT_CLOSED = Event.CLOSED
"""A connection or listener was closed.

Source: ``ZMQ_EVENT_CLOSED`` of zmq_socket_monitor(3)
"""
EVENT_CLOSE_FAILED = Event.CLOSE_FAILED
"""A descriptor could not be closed; the value is an errno.

Source: ``ZMQ_EVENT_CLOSE_FAILED`` of zmq_socket_monitor(3)
"""
EVENT_DISCONNECTED = Event.DISCONNECTED
"""A connection ended.

Source: ``ZMQ_EVENT_DISCONNECTED`` of zmq_socket_monitor(3)
"""
EVENT_MONITOR_STOPPED = Event.MONITOR_STOPPED
"""The monitor ended.

Source: ``ZMQ_EVENT_MONITOR_STOPPED`` of zmq_socket_monitor(3)
"""
EVENT_HANDSHAKE_FAILED_NO_DETAIL = Event.HANDSHAKE_FAILED_NO_DETAIL
"""The handshake failed; the value is an errno.

Source: ``ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL`` of zmq_socket_monitor(3)
"""
EVENT_HANDSHAKE_SUCCEEDED = Event.HANDSHAKE_SUCCEEDED
"""The handshake is complete: messages can flow.

Source: ``ZMQ_EVENT_HANDSHAKE_SUCCEEDED`` of zmq_socket_monitor(3)
"""
EVENT_HANDSHAKE_FAILED_PROTOCOL = Event.HANDSHAKE_FAILED_PROTOCOL
"""The peer broke the protocol; the value is one of the codes.

Source: ``ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL`` of zmq_socket_monitor(3)
"""
EVENT_HANDSHAKE_FAILED_AUTH = Event.HANDSHAKE_FAILED_AUTH
"""The peer was refused; the value is the status code of ZAP.

Source: ``ZMQ_EVENT_HANDSHAKE_FAILED_AUTH`` of zmq_socket_monitor(3)
"""
EVENT_GAP = Event.GAP
"""Packets of epgm or pgm were lost; the value is their number. Only in zeroxide.

Source: ``ZMQ_EVENT_GAP`` of zmq_socket_monitor(3)
"""
EVENT_ALL_V1 = Event.ALL_V1
"""All of the above.

Source: zmq_socket_monitor_versioned(3)
"""
EVENT_ALL = Event.ALL_V1
"""All of the above.

Source: zmq_socket_monitor_versioned(3)
"""
EVENT_PIPES_STATS = Event.PIPES_STATS
"""A draft, never sent.

Source: ``ZMQ_EVENT_PIPES_STATS`` of zmq_socket_monitor_versioned(3)
"""
EVENT_ALL_V2 = Event.ALL_V2
"""All, drafts included.

Source: zmq_socket_monitor_versioned(3)
"""
STREAMER = DeviceType.STREAMER
"""PULL to PUSH."""
FORWARDER = DeviceType.FORWARDER
"""XSUB to XPUB."""
QUEUE = DeviceType.QUEUE
"""ROUTER to DEALER."""

__all__ = [
    "AFFINITY",
    "BACKLOG",
    "BINDTODEVICE",
    "BLOCKY",
    "BUS",
    "BUSY_POLL",
    "CHANNEL",
    "CLIENT",
    "CONFLATE",
    "CONNECT_RID",
    "CONNECT_ROUTING_ID",
    "CONNECT_TIMEOUT",
    "CURRENT_EVENT_VERSION",
    "CURRENT_EVENT_VERSION_DRAFT",
    "CURVE",
    "CURVE_PUBLICKEY",
    "CURVE_SECRETKEY",
    "CURVE_SERVER",
    "CURVE_SERVERKEY",
    "DEALER",
    "DELAY_ATTACH_ON_CONNECT",
    "DGRAM",
    "DISCONNECT_MSG",
    "DISH",
    "DONTWAIT",
    "EADDRINUSE",
    "EADDRNOTAVAIL",
    "EAFNOSUPPORT",
    "EAGAIN",
    "ECONNABORTED",
    "ECONNREFUSED",
    "ECONNRESET",
    "EFAULT",
    "EFSM",
    "EHOSTUNREACH",
    "EINPROGRESS",
    "EINVAL",
    "EMSGSIZE",
    "EMTHREAD",
    "ENETDOWN",
    "ENETRESET",
    "ENETUNREACH",
    "ENOBUFS",
    "ENOCOMPATPROTO",
    "ENOTCONN",
    "ENOTSOCK",
    "ENOTSUP",
    "EPROTONOSUPPORT",
    "ETERM",
    "ETIMEDOUT",
    "ETOOSLOW",
    "EVENTS",
    "EVENT_ACCEPTED",
    "EVENT_ACCEPT_FAILED",
    "EVENT_ALL",
    "EVENT_ALL_V1",
    "EVENT_ALL_V2",
    "EVENT_BIND_FAILED",
    "EVENT_CLOSED",
    "EVENT_CLOSE_FAILED",
    "EVENT_CONNECTED",
    "EVENT_CONNECT_DELAYED",
    "EVENT_CONNECT_RETRIED",
    "EVENT_DISCONNECTED",
    "EVENT_GAP",
    "EVENT_HANDSHAKE_FAILED_AUTH",
    "EVENT_HANDSHAKE_FAILED_NO_DETAIL",
    "EVENT_HANDSHAKE_FAILED_PROTOCOL",
    "EVENT_HANDSHAKE_SUCCEEDED",
    "EVENT_LISTENING",
    "EVENT_MONITOR_STOPPED",
    "EVENT_PIPES_STATS",
    "FAIL_UNROUTABLE",
    "FD",
    "FORWARDER",
    "GATHER",
    "GSSAPI",
    "GSSAPI_NT_HOSTBASED",
    "GSSAPI_NT_KRB5_PRINCIPAL",
    "GSSAPI_NT_USER_NAME",
    "GSSAPI_PLAINTEXT",
    "GSSAPI_PRINCIPAL",
    "GSSAPI_PRINCIPAL_NAMETYPE",
    "GSSAPI_SERVER",
    "GSSAPI_SERVICE_PRINCIPAL",
    "GSSAPI_SERVICE_PRINCIPAL_NAMETYPE",
    "HANDSHAKE_IVL",
    "HAS_CAPABILITIES",
    "HAUSNUMERO",
    "HEARTBEAT_IVL",
    "HEARTBEAT_TIMEOUT",
    "HEARTBEAT_TTL",
    "HELLO_MSG",
    "HICCUP_MSG",
    "HWM",
    "IDENTITY",
    "IMMEDIATE",
    "INVERT_MATCHING",
    "IN_BATCH_SIZE",
    "IO_THREADS",
    "IO_THREADS_DFLT",
    "IPC_FILTER_GID",
    "IPC_FILTER_PID",
    "IPC_FILTER_UID",
    "IPV4ONLY",
    "IPV6",
    "LAST_ENDPOINT",
    "LINGER",
    "LOOPBACK_FASTPATH",
    "MAXMSGSIZE",
    "MAX_LAG",
    "MAX_MSGSZ",
    "MAX_SOCKETS",
    "MAX_SOCKETS_DFLT",
    "MAX_SUBSCRIPTIONS",
    "MAX_SUBSCRIPTION_BYTES",
    "MAX_TTL",
    "MECHANISM",
    "MEMORY_BUDGET",
    "METADATA",
    "MORE",
    "MSG_T_SIZE",
    "MULTICAST_HOPS",
    "MULTICAST_LOOP",
    "MULTICAST_MAXTPDU",
    "NOBLOCK",
    "NORM_BLOCK_SIZE",
    "NORM_BUFFER_SIZE",
    "NORM_CC",
    "NORM_CCE",
    "NORM_CCE_ECNONLY",
    "NORM_CCL",
    "NORM_FIXED",
    "NORM_MODE",
    "NORM_NUM_AUTOPARITY",
    "NORM_NUM_PARITY",
    "NORM_PUSH",
    "NORM_SEGMENT_SIZE",
    "NORM_UNICAST_NACK",
    "NOTIFY_CONNECT",
    "NOTIFY_DISCONNECT",
    "NULL",
    "ONLY_FIRST_SUBSCRIBE",
    "OUT_BATCH_SIZE",
    "PAIR",
    "PEER",
    "PLAIN",
    "PLAIN_PASSWORD",
    "PLAIN_SERVER",
    "PLAIN_USERNAME",
    "POLLERR",
    "POLLIN",
    "POLLITEMS_DFLT",
    "POLLOUT",
    "POLLPRI",
    "PRIORITY",
    "PROBE_ROUTER",
    "PROTOCOL_ERROR_WS_UNSPECIFIED",
    "PROTOCOL_ERROR_ZAP_BAD_REQUEST_ID",
    "PROTOCOL_ERROR_ZAP_BAD_VERSION",
    "PROTOCOL_ERROR_ZAP_INVALID_METADATA",
    "PROTOCOL_ERROR_ZAP_INVALID_STATUS_CODE",
    "PROTOCOL_ERROR_ZAP_MALFORMED_REPLY",
    "PROTOCOL_ERROR_ZAP_UNSPECIFIED",
    "PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC",
    "PROTOCOL_ERROR_ZMTP_INVALID_METADATA",
    "PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE",
    "PROTOCOL_ERROR_ZMTP_KEY_EXCHANGE",
    "PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR",
    "PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_HELLO",
    "PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_INITIATE",
    "PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_MESSAGE",
    "PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_READY",
    "PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED",
    "PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_WELCOME",
    "PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH",
    "PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND",
    "PROTOCOL_ERROR_ZMTP_UNSPECIFIED",
    "PUB",
    "PULL",
    "PUSH",
    "QUEUE",
    "RADIO",
    "RATE",
    "RCVBUF",
    "RCVHWM",
    "RCVHWM_BYTES",
    "RCVMORE",
    "RCVPRIO",
    "RCVTIMEO",
    "RECONNECT_IVL",
    "RECONNECT_IVL_MAX",
    "RECONNECT_STOP",
    "RECONNECT_STOP_AFTER_DISCONNECT",
    "RECONNECT_STOP_CONN_REFUSED",
    "RECONNECT_STOP_HANDSHAKE_FAILED",
    "RECOVERY_IVL",
    "REP",
    "REQ",
    "REQ_CORRELATE",
    "REQ_RELAXED",
    "RESEND_IVL",
    "RESPONDENT",
    "ROUTER",
    "ROUTER_BEHAVIOR",
    "ROUTER_HANDOVER",
    "ROUTER_MANDATORY",
    "ROUTER_NOTIFY",
    "ROUTER_RAW",
    "ROUTING_ID",
    "SCATTER",
    "SERVER",
    "SHARED",
    "SLOW_DISCONNECT",
    "SLOW_DROP",
    "SLOW_SUBSCRIBER",
    "SLOW_WAIT",
    "SNDBUF",
    "SNDHWM",
    "SNDHWM_BYTES",
    "SNDMORE",
    "SNDPRIO",
    "SNDTIMEO",
    "SOCKET_LIMIT",
    "SOCKS_PASSWORD",
    "SOCKS_PROXY",
    "SOCKS_USERNAME",
    "SP",
    "SPILL_BYTES",
    "SPILL_DIR",
    "SPILL_KEEP",
    "SRCFD",
    "STALL_IVL",
    "STREAM",
    "STREAMER",
    "STREAM_NOTIFY",
    "SUB",
    "SUBSCRIBE",
    "SURVEYOR",
    "SURVEY_TIMEOUT",
    "TCP_ACCEPT_FILTER",
    "TCP_KEEPALIVE",
    "TCP_KEEPALIVE_CNT",
    "TCP_KEEPALIVE_IDLE",
    "TCP_KEEPALIVE_INTVL",
    "TCP_MAXRT",
    "THREAD_AFFINITY_CPU_ADD",
    "THREAD_AFFINITY_CPU_REMOVE",
    "THREAD_NAME_PREFIX",
    "THREAD_PRIORITY",
    "THREAD_PRIORITY_DFLT",
    "THREAD_SAFE",
    "THREAD_SCHED_POLICY",
    "THREAD_SCHED_POLICY_DFLT",
    "TLS_ALPN",
    "TLS_CA",
    "TLS_CERTIFICATE",
    "TLS_CLIENT_AUTH",
    "TLS_HOSTNAME",
    "TLS_KEY",
    "TLS_TRUST_SYSTEM",
    "TLS_VERIFY",
    "TOPICS_COUNT",
    "TOS",
    "TYPE",
    "UNSUBSCRIBE",
    "USE_FD",
    "VMCI_BUFFER_MAX_SIZE",
    "VMCI_BUFFER_MIN_SIZE",
    "VMCI_BUFFER_SIZE",
    "VMCI_CONNECT_TIMEOUT",
    "WIRE_PROTOCOL",
    "WSS_CERT_PEM",
    "WSS_HOSTNAME",
    "WSS_KEY_PEM",
    "WSS_TRUST_PEM",
    "WSS_TRUST_SYSTEM",
    "XPUB",
    "XPUB_MANUAL",
    "XPUB_MANUAL_LAST_VALUE",
    "XPUB_NODROP",
    "XPUB_VERBOSE",
    "XPUB_VERBOSER",
    "XPUB_WELCOME_MSG",
    "XREP",
    "XREQ",
    "XSUB",
    "XSUB_VERBOSE_UNSUBSCRIBE",
    "ZAP_DOMAIN",
    "ZAP_ENFORCE_DOMAIN",
    "ZERO_COPY_RECV",
    "ZMTP",
    "ContextOption",
    "DeviceType",
    "Errno",
    "Event",
    "Flag",
    "GssapiNameType",
    "MessageOption",
    "NormMode",
    "PollEvent",
    "ReconnectStop",
    "RouterNotify",
    "SecurityMechanism",
    "SlowSubscriber",
    "SocketOption",
    "SocketType",
    "WireProtocol",
]
