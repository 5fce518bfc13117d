"""The enums of `zeroxide.constants`, where programs find them.

Their docstrings hold the sentence about each member; those about options come from the core's table.
The file is long because it is one table, of numbers and their meanings.
"""

import errno
from enum import Enum, IntEnum, IntFlag
from typing import Any, Self

__all__ = [
    "HAUSNUMERO",
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

HAUSNUMERO = 156384712
"""Error numbers above this one belong to ZeroMQ; those below it are the system's."""


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

    EAGAIN = errno.EAGAIN
    EFAULT = errno.EFAULT
    EINVAL = errno.EINVAL
    ENOTSUP = errno.ENOTSUP
    EPROTONOSUPPORT = errno.EPROTONOSUPPORT
    ENOBUFS = errno.ENOBUFS
    ENETDOWN = errno.ENETDOWN
    EADDRINUSE = errno.EADDRINUSE
    EADDRNOTAVAIL = errno.EADDRNOTAVAIL
    ECONNREFUSED = errno.ECONNREFUSED
    EINPROGRESS = errno.EINPROGRESS
    ENOTSOCK = errno.ENOTSOCK
    EMSGSIZE = errno.EMSGSIZE
    EAFNOSUPPORT = errno.EAFNOSUPPORT
    ENETUNREACH = errno.ENETUNREACH
    ECONNABORTED = errno.ECONNABORTED
    ECONNRESET = errno.ECONNRESET
    ENOTCONN = errno.ENOTCONN
    ETIMEDOUT = errno.ETIMEDOUT
    EHOSTUNREACH = errno.EHOSTUNREACH
    ENETRESET = errno.ENETRESET
    # ZeroMQ's own: wrong state, transport incompatible with the socket type,
    # context terminated, no I/O thread.
    EFSM = HAUSNUMERO + 51
    ENOCOMPATPROTO = HAUSNUMERO + 52
    ETERM = HAUSNUMERO + 53
    EMTHREAD = HAUSNUMERO + 54
    # Only here.
    ETOOSLOW = HAUSNUMERO + 200


class ContextOption(IntEnum):
    """Options of `Context.set` and `Context.get`.

    Each has a text of its own with its unit and default, for example
    ``help(zmq.ContextOption.IO_THREADS)``. The page "Options" lists them.

    Source:
        zmq_ctx_set(3), zmq_ctx_get(3)
    """

    IO_THREADS = 1
    MAX_SOCKETS = 2
    SOCKET_LIMIT = 3
    THREAD_PRIORITY = 3  # the same number: one can only be read, the other only set
    THREAD_SCHED_POLICY = 4
    MAX_MSGSZ = 5
    MSG_T_SIZE = 6
    THREAD_AFFINITY_CPU_ADD = 7
    THREAD_AFFINITY_CPU_REMOVE = 8
    THREAD_NAME_PREFIX = 9
    ZERO_COPY_RECV = 10
    # libzmq has no such option.
    MEMORY_BUDGET = 1101


class SocketType(IntEnum):
    """What a socket does with its messages, and which types it connects to.

    Types from ``SERVER`` to ``CHANNEL`` are drafts in libzmq. Their messages have one part. So have
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
    PUB = 1
    SUB = 2
    REQ = 3
    REP = 4
    DEALER = 5
    ROUTER = 6
    PULL = 7
    PUSH = 8
    XPUB = 9
    XSUB = 10
    STREAM = 11
    # names from before 3.0
    XREQ = DEALER
    XREP = ROUTER
    # draft types
    SERVER = 12
    CLIENT = 13
    RADIO = 14
    DISH = 15
    GATHER = 16
    SCATTER = 17
    DGRAM = 18
    PEER = 19
    CHANNEL = 20
    # the numbers of nanomsg
    SURVEYOR = 98
    RESPONDENT = 99
    BUS = 112


class _OptType(Enum):
    """The type of a socket option's value."""

    int = "int"
    int64 = "int64"
    bytes = "bytes"
    fd = "fd"


class SocketOption(IntEnum):
    """Options of `Socket.set` and `Socket.get`.

    Each has a text of its own with its unit and default, for example
    ``help(zmq.SocketOption.LINGER)``. The page "Options" lists them.

    Source:
        zmq_setsockopt(3), zmq_getsockopt(3)
    """

    _opt_type: _OptType

    def __new__(cls, value: int, opt_type: _OptType = _OptType.int) -> Self:
        member = int.__new__(cls, value)
        member._value_ = value
        member._opt_type = opt_type
        return member

    HWM = 1
    AFFINITY = 4, _OptType.int64
    ROUTING_ID = 5, _OptType.bytes
    SUBSCRIBE = 6, _OptType.bytes
    UNSUBSCRIBE = 7, _OptType.bytes
    RATE = 8
    RECOVERY_IVL = 9
    SNDBUF = 11
    RCVBUF = 12
    RCVMORE = 13
    FD = 14, _OptType.fd
    EVENTS = 15
    TYPE = 16
    LINGER = 17
    RECONNECT_IVL = 18
    BACKLOG = 19
    RECONNECT_IVL_MAX = 21
    MAXMSGSIZE = 22, _OptType.int64
    SNDHWM = 23
    RCVHWM = 24
    MULTICAST_HOPS = 25
    RCVTIMEO = 27
    SNDTIMEO = 28
    IPV4ONLY = 31
    LAST_ENDPOINT = 32, _OptType.bytes
    ROUTER_MANDATORY = 33
    TCP_KEEPALIVE = 34
    TCP_KEEPALIVE_CNT = 35
    TCP_KEEPALIVE_IDLE = 36
    TCP_KEEPALIVE_INTVL = 37
    TCP_ACCEPT_FILTER = 38, _OptType.bytes
    IMMEDIATE = 39
    XPUB_VERBOSE = 40
    ROUTER_RAW = 41
    IPV6 = 42
    MECHANISM = 43
    PLAIN_SERVER = 44
    PLAIN_USERNAME = 45, _OptType.bytes
    PLAIN_PASSWORD = 46, _OptType.bytes
    CURVE_SERVER = 47
    CURVE_PUBLICKEY = 48, _OptType.bytes
    CURVE_SECRETKEY = 49, _OptType.bytes
    CURVE_SERVERKEY = 50, _OptType.bytes
    PROBE_ROUTER = 51
    REQ_CORRELATE = 52
    REQ_RELAXED = 53
    CONFLATE = 54
    ZAP_DOMAIN = 55, _OptType.bytes
    ROUTER_HANDOVER = 56
    TOS = 57
    IPC_FILTER_PID = 58
    IPC_FILTER_UID = 59
    IPC_FILTER_GID = 60
    CONNECT_ROUTING_ID = 61, _OptType.bytes
    GSSAPI_SERVER = 62
    GSSAPI_PRINCIPAL = 63, _OptType.bytes
    GSSAPI_SERVICE_PRINCIPAL = 64, _OptType.bytes
    GSSAPI_PLAINTEXT = 65
    HANDSHAKE_IVL = 66
    SOCKS_PROXY = 68, _OptType.bytes
    XPUB_NODROP = 69
    BLOCKY = 70
    XPUB_MANUAL = 71
    XPUB_WELCOME_MSG = 72, _OptType.bytes
    STREAM_NOTIFY = 73
    INVERT_MATCHING = 74
    HEARTBEAT_IVL = 75
    HEARTBEAT_TTL = 76
    HEARTBEAT_TIMEOUT = 77
    XPUB_VERBOSER = 78
    CONNECT_TIMEOUT = 79
    TCP_MAXRT = 80
    THREAD_SAFE = 81
    MULTICAST_MAXTPDU = 84
    VMCI_BUFFER_SIZE = 85, _OptType.int64
    VMCI_BUFFER_MIN_SIZE = 86, _OptType.int64
    VMCI_BUFFER_MAX_SIZE = 87, _OptType.int64
    VMCI_CONNECT_TIMEOUT = 88
    USE_FD = 89
    GSSAPI_PRINCIPAL_NAMETYPE = 90
    GSSAPI_SERVICE_PRINCIPAL_NAMETYPE = 91
    BINDTODEVICE = 92, _OptType.bytes
    # aliases: older names of the options above
    IDENTITY = ROUTING_ID
    CONNECT_RID = CONNECT_ROUTING_ID
    DELAY_ATTACH_ON_CONNECT = IMMEDIATE
    FAIL_UNROUTABLE = ROUTER_MANDATORY
    ROUTER_BEHAVIOR = ROUTER_MANDATORY
    # draft options
    ZAP_ENFORCE_DOMAIN = 93
    LOOPBACK_FASTPATH = 94
    METADATA = 95, _OptType.bytes
    MULTICAST_LOOP = 96
    ROUTER_NOTIFY = 97
    XPUB_MANUAL_LAST_VALUE = 98
    SOCKS_USERNAME = 99, _OptType.bytes
    SOCKS_PASSWORD = 100, _OptType.bytes
    IN_BATCH_SIZE = 101
    OUT_BATCH_SIZE = 102
    WSS_KEY_PEM = 103, _OptType.bytes
    WSS_CERT_PEM = 104, _OptType.bytes
    WSS_TRUST_PEM = 105, _OptType.bytes
    WSS_HOSTNAME = 106, _OptType.bytes
    WSS_TRUST_SYSTEM = 107
    ONLY_FIRST_SUBSCRIBE = 108
    RECONNECT_STOP = 109
    HELLO_MSG = 110, _OptType.bytes
    DISCONNECT_MSG = 111, _OptType.bytes
    PRIORITY = 112
    BUSY_POLL = 113
    HICCUP_MSG = 114, _OptType.bytes
    XSUB_VERBOSE_UNSUBSCRIBE = 115
    TOPICS_COUNT = 116
    NORM_MODE = 117
    NORM_UNICAST_NACK = 118
    NORM_BUFFER_SIZE = 119
    NORM_SEGMENT_SIZE = 120
    NORM_BLOCK_SIZE = 121
    NORM_NUM_PARITY = 122
    NORM_NUM_AUTOPARITY = 123
    NORM_PUSH = 124
    # only here
    MAX_SUBSCRIPTIONS = 1001
    SNDHWM_BYTES = 1002, _OptType.int64
    RCVHWM_BYTES = 1003, _OptType.int64
    STALL_IVL = 1004
    MAX_SUBSCRIPTION_BYTES = 1010, _OptType.int64
    TLS_CERTIFICATE = 1020, _OptType.bytes
    TLS_KEY = 1021, _OptType.bytes
    TLS_CA = 1022, _OptType.bytes
    TLS_TRUST_SYSTEM = 1023
    TLS_HOSTNAME = 1024, _OptType.bytes
    TLS_VERIFY = 1025
    TLS_CLIENT_AUTH = 1026
    TLS_ALPN = 1027, _OptType.bytes
    WIRE_PROTOCOL = 1030
    RESEND_IVL = 1031
    SURVEY_TIMEOUT = 1032
    MAX_TTL = 1033
    SNDPRIO = 1040
    RCVPRIO = 1041
    SLOW_SUBSCRIBER = 1060
    MAX_LAG = 1061
    SPILL_DIR = 1050, _OptType.bytes
    SPILL_BYTES = 1051, _OptType.int64
    SPILL_KEEP = 1052


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
    SRCFD = 2
    SHARED = 3


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
    SNDMORE = 2
    NOBLOCK = DONTWAIT


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
    POLLOUT = 2
    POLLERR = 4
    POLLPRI = 8


class RouterNotify(IntEnum):
    """Values of the option ``ROUTER_NOTIFY``; 3 is both.

    Attributes:
        CONNECT: Report that a peer connected.
        DISCONNECT: Report that a peer disconnected.

    Source:
        ``ZMQ_ROUTER_NOTIFY`` of zmq_setsockopt(3)
    """

    CONNECT = 1
    DISCONNECT = 2


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
    CC = 1
    CCL = 2
    CCE = 3
    CCE_ECNONLY = 4


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
    WAIT = 1
    DISCONNECT = 2


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
    PLAIN = 1
    CURVE = 2
    GSSAPI = 3


class WireProtocol(IntEnum):
    """Values of the option ``WIRE_PROTOCOL``: what a socket speaks with its peers.

    Attributes:
        ZMTP: The protocol of ZeroMQ.
        SP: The scalability protocols of nanomsg and nng.

    Source:
        zeroxide only
    """

    ZMTP = 0
    SP = 1


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
    USER_NAME = 1
    KRB5_PRINCIPAL = 2


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
    HANDSHAKE_FAILED = 2
    AFTER_DISCONNECT = 4


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

    # The codes come first: they overlap the event bits, and a number that is both is
    # shown under the name defined last.
    PROTOCOL_ERROR_ZMTP_UNSPECIFIED = 0x10000000
    PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND = 0x10000001
    PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE = 0x10000002
    PROTOCOL_ERROR_ZMTP_KEY_EXCHANGE = 0x10000003
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED = 0x10000011
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_MESSAGE = 0x10000012
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_HELLO = 0x10000013
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_INITIATE = 0x10000014
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR = 0x10000015
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_READY = 0x10000016
    PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_WELCOME = 0x10000017
    PROTOCOL_ERROR_ZMTP_INVALID_METADATA = 0x10000018
    PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC = 0x11000001
    PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH = 0x11000002
    PROTOCOL_ERROR_ZAP_UNSPECIFIED = 0x20000000
    PROTOCOL_ERROR_ZAP_MALFORMED_REPLY = 0x20000001
    PROTOCOL_ERROR_ZAP_BAD_REQUEST_ID = 0x20000002
    PROTOCOL_ERROR_ZAP_BAD_VERSION = 0x20000003
    PROTOCOL_ERROR_ZAP_INVALID_STATUS_CODE = 0x20000004
    PROTOCOL_ERROR_ZAP_INVALID_METADATA = 0x20000005
    PROTOCOL_ERROR_WS_UNSPECIFIED = 0x30000000

    CONNECTED = 0x1
    CONNECT_DELAYED = 0x2
    CONNECT_RETRIED = 0x4
    LISTENING = 0x8
    BIND_FAILED = 0x10
    ACCEPTED = 0x20
    ACCEPT_FAILED = 0x40
    CLOSED = 0x80
    CLOSE_FAILED = 0x100
    DISCONNECTED = 0x200
    MONITOR_STOPPED = 0x400
    HANDSHAKE_FAILED_NO_DETAIL = 0x800
    HANDSHAKE_SUCCEEDED = 0x1000
    HANDSHAKE_FAILED_PROTOCOL = 0x2000
    HANDSHAKE_FAILED_AUTH = 0x4000
    GAP = 0x8000
    ALL_V1 = 0xFFFF
    ALL = ALL_V1
    # draft: version 2 of the monitor protocol
    PIPES_STATS = 0x10000
    ALL_V2 = ALL_V1 | PIPES_STATS


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
    FORWARDER = 2
    QUEUE = 3


class _Doc:
    """The `__doc__` of an enum: the text of the class, or the part of it about a member."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def __get__(self, member: Any, kind: type) -> str | None:
        if member is None:
            return self.text
        # An import does not wait for texts that are hardly ever read.
        from ._constant_texts import text_of

        return text_of(member) or self.text


_kind: Any
for _kind in map(globals().get, __all__):
    if hasattr(_kind, "__members__"):
        _kind.__module__ = "zeroxide.constants"
        _kind.__doc__ = _Doc(_kind.__doc__)
