"""A server that systemd starts for its first client. python examples/activated.py [ENDPOINT]

systemd listens at the port from the start of the machine on (deploy/zeroxide-hello.socket), and passes its listening socket to this
program. Clients can connect before the program runs and while it restarts. To try it without a unit:

    systemd-socket-activate -l 127.0.0.1:5555 python examples/activated.py
    python examples/hello_client.py

Without systemd, the program listens at the endpoint itself.
"""

import os
import sys

import zeroxide as zmq

FIRST_PASSED = 3  # sd_listen_fds(3)


def passed_listener() -> int:
    """Returns the descriptor that systemd has passed, or -1 if there is none."""
    is_for_us = os.environ.get("LISTEN_PID") == str(os.getpid())
    return FIRST_PASSED if is_for_us and os.environ.get("LISTEN_FDS") == "1" else -1


socket = zmq.Context.instance().socket(zmq.REP)
socket.use_fd = passed_listener()
socket.bind(sys.argv[1] if sys.argv[1:] else "tcp://127.0.0.1:5555")
while True:
    print(socket.recv().decode(), flush=True)
    socket.send(b"World")
