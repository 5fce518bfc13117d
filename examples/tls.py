"""A connection over TLS, with certificates of your own. python examples/tls.py

The openssl command makes a certificate authority (CA), and a certificate of it for the server. The
client trusts the CA. A client that trusts other CAs does not talk to the server.

Real programs get the server's certificate from the CA of the company, or from a public one. Then
clients need no option at all, because the system trusts that CA.
"""

import subprocess
import tempfile
from pathlib import Path

import zeroxide as zmq


def openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    ca, ca_key = folder / "ca.pem", folder / "ca.key"
    certificate, key = folder / "server.pem", folder / "server.key"
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *new_key, "-subj", "/CN=our CA", "-keyout", ca_key, "-out", ca)
    request, extensions = folder / "server.csr", folder / "server.ext"
    openssl("req", *new_key, "-subj", "/CN=server", "-keyout", key, "-out", request)
    extensions.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost")
    by_ca = ("-CA", ca, "-CAkey", ca_key, "-CAcreateserial")
    openssl("x509", "-req", *by_ca, "-in", request, "-out", certificate, "-extfile", extensions)

    context = zmq.Context()
    server = context.socket(zmq.REP)
    server.tls_certificate = bytes(certificate)
    server.tls_key = bytes(key)
    endpoint = server.bind("tls+tcp://127.0.0.1:*").addr

    client = context.socket(zmq.REQ)
    client.tls_ca = bytes(ca)
    client.connect(endpoint)
    client.send(b"the secret recipe")
    print("the server received", server.recv().decode())
    server.send(b"thanks")
    print("the client received", client.recv().decode())

    # The other client trusts the CAs of the system, and the server's is not among them.
    other = context.socket(zmq.REQ)
    events = other.monitor_events(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
    other.connect(endpoint)
    event = events.recv()
    print("the other client refused:", event.reason if event else "nothing")

    events.close()
    context.destroy(linger=0)
