"""Replies World to every Hello. python examples/hello_server.py [ENDPOINT]"""

import sys

import zeroxide as zmq

socket = zmq.Context.instance().socket(zmq.REP)
socket.bind(sys.argv[1] if sys.argv[1:] else "tcp://127.0.0.1:5555")
while True:
    print(socket.recv().decode(), flush=True)
    socket.send(b"World")
