"""Mistakes of the first days: each error says what happened, where, and what to do.

One row per mistake. In a row that begins with "await", the `await` applies to the whole expression.
"""

import asyncio

import pytest

pytestmark = pytest.mark.zeroxide_only

NOT_AN_ENDPOINT = "is not an endpoint: expected scheme://address, as in tcp://127.0.0.1:5555"

# Calls with `socket` (DEALER), `context` and `zmq`, each with the end of its error.
ROWS = {
    # endpoints
    "socket.connect('tcp:/127.0.0.1:5555')": f'"tcp:/127.0.0.1:5555" {NOT_AN_ENDPOINT}',
    "socket.connect('localhost:5555')": f'"localhost:5555" {NOT_AN_ENDPOINT}',
    "socket.connect('tcp://localhost')": "tcp://localhost: 'localhost': the port is missing; write"
    " host:port",
    "socket.bind('tcp://:5555')": "tcp://:5555: '': the host is missing; write host:port, or"
    " *:port to bind to every address",
    "socket.connect('tcp://*:5555')": "tcp://*:5555: '*:5555': '*' is for binding; name a host to"
    " connect to",
    "socket.bind('tcp://127.0.0.1:65536')": "tcp://127.0.0.1:65536: '65536': a port is a number"
    " from 0 to 65535, or '*'",
    "socket.connect('tcp://127.0.0.1:5555\\n')": r"tcp://127.0.0.1:5555\n: '5555\n': there is white"
    " space around it; remove it",
    "socket.connect('TCP://127.0.0.1:5555')": "no transport is called 'TCP'; there are inproc, tcp,"
    " ipc, udp, pgm, epgm, tls+tcp, ws, wss, vsock, tipc, sctp; did you mean 'tcp'?",
    "socket.bind('ipc://~/no/such/folder')": "the directory of ~/no/such/folder does not exist;"
    " '~' has no meaning in an endpoint, so expand it first",
    "socket.bind(('127.0.0.1', 5555))": "an endpoint is text such as 'tcp://127.0.0.1:5555', not"
    " ('127.0.0.1', 5555)",
    "socket.bind_to_random_port('tcp://127.0.0.1:5555')": "bind_to_random_port takes a tcp address"
    " without a port such as 'tcp://127.0.0.1', not 'tcp://127.0.0.1:5555'",
    "socket.connect('tcp://[::1]:5555')": "tcp://[::1]:5555: set IPV6 to 1 to use IPv6 addresses",
    "socket.disconnect('tcp://127.0.0.1:5')": "this socket is neither bound nor connected to"
    " tcp://127.0.0.1:5",
    # messages
    "socket.send(None)": "a message is bytes, not NoneType: send_json, send_typed and send_pyobj"
    " take objects",
    "socket.send_multipart(['topic', b'x'])": "Frame 0 ('topic'...) does not support the buffer"
    " interface: a part is bytes, not str",
    "socket.send(b'topic', b'x')": "flags are NOBLOCK and SNDMORE, not b'x'; a timeout in ms is set"
    " with SNDTIMEO, or passed to poll",
    "socket.send(memoryview(bytearray(9))[::2])": "the buffer must be contiguous: send a copy, e.g."
    " bytes(data)",
    "socket.recv_into(memoryview(bytearray(9))[::2])": "the buffer must be contiguous: receive into"
    " another one, such as a bytearray",
    "router.send_multipart([b'bob', b'x'])": 'no peer is called "bob"; the first part of a message'
    " to a ROUTER is the routing id of the peer",
    # options
    "context.socket(zmq.PUB).subscribe('x')": "SUBSCRIBE is an option of SUB and XPUB, not of PUB",
    "setattr(socket, 'identity', 'name')": "ROUTING_ID takes bytes, not 'name';"
    " set_string(zmq.ROUTING_ID, ...) encodes text",
    # keys
    "setattr(socket, 'curve_serverkey', b'k' * 40 + b'\\n')": "a CURVE key is 32 bytes or 40"
    " characters of Z85: got 41 bytes; remove the white space around the key",
    "setattr(socket, 'curve_secretkey', b'ab' * 32)": "a CURVE key is 32 bytes or 40 characters of"
    " Z85: got 64 bytes; a key in hex must be decoded first",
    "[setattr(socket, 'curve_server', 1), socket.bind('tcp://*:*')]": "CURVE needs a secret key of"
    " this socket: set CURVE_SECRETKEY",
    "zmq.utils.z85.encode('abcd')": "encode takes bytes, not str; decode makes bytes of text",
    # contexts, pollers, devices
    "context.connect('tcp://127.0.0.1:5555')": "'Context' has no 'connect', which sockets have:"
    " socket = context.socket(zmq.PUSH), then socket.connect(...)",
    "closed.socket(zmq.PUSH)": "the context is closed; make a new one",
    "closed.set(zmq.IO_THREADS, 2)": "Context has been destroyed; make a new one",
    "zmq.Poller().register(zmq.Socket)": "a poller takes a socket, a descriptor or an object with"
    " fileno(), not <class 'zeroxide.socket.Socket'>",
    "zmq.Poller().register([socket])": "a poller takes a socket, a descriptor or an object with"
    " fileno(), not [<zmq.Socket(zmq.DEALER) at ...>]",
    "zmq.proxy('tcp://*:1', 'tcp://*:2')": "frontend takes a socket of this package, not"
    " 'tcp://*:1'",
    # event loops
    "asyncio_socket().recv()": "no event loop is running: use zeroxide.asyncio in a coroutine, such"
    " as one that asyncio.run runs, or a zeroxide.Context without one",
    "await asyncio_socket().recv().decode()": "'Future' object has no attribute 'decode'",
    "await asyncio_socket().recv() + b'x'": "unsupported operand type(s) for +: 'Future' and"
    " 'bytes'",
    "stream('x')": "socket takes a socket of this package, not 'x'",
    "stream(socket).on_recv('x')": "callback takes a function of a list of parts, or None, not 'x'",
}


@pytest.mark.parametrize("code", ROWS)
@pytest.mark.filterwarnings("ignore:no event loop is running:RuntimeWarning")
def test_a_mistake(zmq, context, code):
    zaio = pytest.importorskip("zeroxide.asyncio")
    pytest.importorskip("zeroxide.utils.z85")
    closed = zmq.Context()
    closed.term()
    made = zaio.Context()

    def asyncio_socket():
        return made.socket(zmq.PULL)

    def stream(socket):
        return pytest.importorskip("zeroxide.eventloop.zmqstream").ZMQStream(socket)

    router = context.socket(zmq.ROUTER)
    router.router_mandatory = 1
    router.bind("inproc://router")
    known = {
        "zmq": zmq,
        "context": context,
        "closed": closed,
        "router": router,
        "socket": context.socket(zmq.DEALER),
        "asyncio_socket": asyncio_socket,
        "stream": stream,
    }

    async def main():
        # The loop that runs is the one that a forgotten `await` waits in.
        return eval(code.removeprefix("await "), known)

    try:
        with pytest.raises(Exception) as caught:
            if code.startswith("asyncio_socket"):
                asyncio.set_event_loop(None)
                eval(code, known)
            else:
                asyncio.run(main())
    finally:
        made.destroy(linger=0)
        context.destroy(linger=0)
    text = str(caught.value)
    if "at ..." in ROWS[code]:
        text = text[: text.index(" at 0x")] + " at ...>]"
    assert text.endswith(ROWS[code]), text
