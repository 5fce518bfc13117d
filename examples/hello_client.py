"""Sends Hello and prints the reply. python examples/hello_client.py [ENDPOINT]"""

import sys

import zeroxide as zmq

socket = zmq.Context.instance().socket(zmq.REQ)
socket.connect(sys.argv[1] if sys.argv[1:] else "tcp://127.0.0.1:5555")
socket.send(b"Hello")
print(socket.recv().decode())
