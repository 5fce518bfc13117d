"""An encrypted connection between peers with keys. python examples/curve.py

Both ends know each other's public key: the client that of the server, and the server those of the
clients that it allows. A client with another key is rejected.

Real programs read their keys from files, which `zeroxide keygen` creates.
"""

import zeroxide as zmq

server_public, server_secret = zmq.curve_keypair()
client_public, client_secret = zmq.curve_keypair()

context = zmq.Context()
server = context.socket(zmq.REP)
server.secure_server(server_secret, [client_public])
server.bind("tcp://127.0.0.1:*")
endpoint = server.last_endpoint.decode()

client = context.socket(zmq.REQ)
client.secure_client(server_public, client_secret)
client.connect(endpoint)
client.send(b"the secret recipe")
print("the server received", server.recv().decode())
server.send(b"thanks")
print("the client received", client.recv().decode())

# The second client has a key pair, too, but the server does not allow its key.
stranger = context.socket(zmq.REQ)
events = stranger.monitor_events(zmq.EVENT_HANDSHAKE_FAILED_AUTH)
stranger.secure_client(server_public)
stranger.connect(endpoint)
event = events.recv()
print("the stranger was turned away:", event.reason if event else "not at all")

events.close()
context.destroy(linger=0)
