"""Heartbeats with SP over ws and wss, which are pings of WebSocket, against a process of nng."""

import os
import signal

import pytest
from certificates import Authority
from support import PATIENCE, eventually, start_script

pytest.importorskip("pynng")

# A PAIR of nng that sends back what it receives. It prints the endpoint that it has bound.
ECHO = """
    import sys
    import pynng

    endpoint, binds, certificate, key, authority = sys.argv[1:]
    pair = pynng.Pair0()
    read = lambda path: open(path).read()
    if endpoint.startswith("wss"):
        if binds:
            mode = pynng.TLSConfig.MODE_SERVER
            words = {"own_cert_string": read(certificate), "own_key_string": read(key)}
        else:
            mode = pynng.TLSConfig.MODE_CLIENT
            words = {"server_name": "localhost", "ca_string": read(authority)}
            words["auth_mode"] = pynng.TLSConfig.AUTH_MODE_REQUIRED
        pair.tls_config = pynng.TLSConfig(mode, **words)
    if binds:
        place = pair.listen(endpoint).local_address
        print(endpoint.replace("127.0.0.1:0", str(place)), flush=True)
    else:
        pair.dial(endpoint)
    while True:
        pair.send(pair.recv())
"""

# In ms. A peer that answers each ping in time is connected for longer than QUIET.
BEATS = {"heartbeat_ivl": 50, "heartbeat_timeout": 2000}
QUIET = 3000

either = pytest.mark.parametrize("we_bind", [True, False], ids=["we bind", "they bind"])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The certificate of either server, its key, and the certificate of the authority."""
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    return *authority.issue("server", "DNS:localhost", "IP:127.0.0.1"), authority.certificate


@pytest.fixture
def echo(files):
    """Starts a PAIR of nng in a process of its own, which ends with the test."""
    processes = []

    def start(endpoint, binds):
        words = (endpoint, "yes" if binds else "", *map(str, files))
        processes.append(start_script("pynng", ECHO, *words))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@either
@pytest.mark.parametrize("transport", ["ws", "wss"])
@pytest.mark.cell(transport="{transport}", types="PAIR PAIR", peer="nng", sp=True)
def test_heartbeats_find_a_frozen_nng_only(zmq, sockets, echo, files, transport, we_bind):
    pair = sockets.context.socket(zmq.PAIR)
    pair.wire_protocol, pair.rcvtimeo = zmq.SP, int(PATIENCE * 1000)
    certificate, key, authority = map(bytes, files)
    for name, value in BEATS.items():
        setattr(pair, name, value)
    endpoint = f"{transport}://127.0.0.1:*/path"
    with pair.monitor_events(zmq.EVENT_DISCONNECTED, timeout=QUIET) as events:
        if we_bind:
            pair.tls_certificate, pair.tls_key = certificate, key
            pair.bind(endpoint)
            # The certificate has to have this name.
            process = echo(pair.last_endpoint.decode().replace("127.0.0.1", "localhost"), False)
        else:
            process = echo(endpoint.replace("*", "0"), True)
            pair.tls_ca = authority
            pair.connect(process.stdout.readline().strip())
        pair.send(b"one")
        assert pair.recv() == b"one"
        assert next(events, None) is None
        pair.send(b"two")
        assert pair.recv() == b"two"
    with pair.monitor_events(zmq.EVENT_DISCONNECTED, timeout=PATIENCE * 1000) as events:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        assert "heartbeat" in next(events).reason
    process.send_signal(signal.SIGCONT)
    if transport == "wss":
        # The nng in pynng 0.9 never ends such a connection, whose client has gone after pings, and its PAIR has one peer.
        return
    # Both sides of the connection ended, and the one that connects begins again.
    eventually(lambda: pair.count_connected() == 1)
    pair.send(b"three")
    assert pair.recv() == b"three"
