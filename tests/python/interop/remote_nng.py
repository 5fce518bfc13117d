"""Sockets of nng in a process of their own: nng sometimes aborts its process when a connection over WebSocket ends."""

import multiprocessing
import threading
from multiprocessing.managers import BaseManager


class NngSocket:
    """What the tests need of a socket of pynng. Calls fail after `patience` seconds."""

    def __init__(self, name, patience):
        # Only the process of the manager needs nng.
        import pynng

        self._nng = pynng
        self._patience = patience
        self._socket = getattr(pynng, f"{name.title()}0")(
            recv_timeout=int(patience * 1000), send_timeout=int(patience * 1000)
        )
        if name == "SUB":
            self._socket.subscribe(b"")
        self._met = threading.Event()
        self._socket.add_post_pipe_connect_cb(lambda _: self._met.set())

    def listen(self, address, identity=None):
        """Returns host and port. `identity` is a certificate and its key, for wss."""
        if identity is not None:
            certificate, key = identity
            self._socket.tls_config = self._nng.TLSConfig(
                self._nng.TLSConfig.MODE_SERVER, own_cert_string=certificate, own_key_string=key
            )
        return str(self._socket.listen(address).local_address)

    def dial(self, address, authority=None):
        """Connects. `authority` is the certificate that has signed the server's, for wss."""
        if authority is not None:
            self._socket.tls_config = self._nng.TLSConfig(
                self._nng.TLSConfig.MODE_CLIENT,
                server_name="localhost",
                ca_string=authority,
                auth_mode=self._nng.TLSConfig.AUTH_MODE_REQUIRED,
            )
        self._socket.dial(address, block=True)

    def meet(self):
        """Waits until a peer is connected."""
        assert self._met.wait(self._patience)

    def send(self, body):
        self._socket.send(body)

    def recv(self):
        return self._socket.recv()


class RemoteNng(BaseManager):
    """A process with sockets of nng: `with RemoteNng() as remote: remote.socket("REP", patience)`."""

    def __init__(self):
        super().__init__(ctx=multiprocessing.get_context("spawn"))


RemoteNng.register("socket", NngSocket)
