"""Options of sockets that restrict their peers."""

import shutil
import subprocess
import sys

import pytest
from support import PATIENCE


@pytest.fixture
def dealer(zmq, context):
    with context.socket(zmq.DEALER) as socket:
        yield socket


def test_the_last_setting_counts(zmq, dealer):
    public, secret = zmq.curve_keypair()

    def now():
        return dealer.mechanism, dealer.plain_server, dealer.curve_server

    assert now() == (zmq.NULL, 0, 0)
    for name, value, expected in [
        ("plain_server", 1, (zmq.PLAIN, 1, 0)),
        ("plain_username", b"me", (zmq.PLAIN, 0, 0)),
        ("plain_server", 0, (zmq.NULL, 0, 0)),
        ("curve_server", 1, (zmq.CURVE, 0, 1)),
        ("curve_publickey", public, (zmq.CURVE, 0, 1)),
        ("curve_serverkey", public, (zmq.CURVE, 0, 0)),
        ("plain_password", b"secret", (zmq.PLAIN, 0, 0)),
        ("curve_secretkey", secret, (zmq.CURVE, 0, 0)),
        ("curve_server", 0, (zmq.NULL, 0, 0)),
    ]:
        setattr(dealer, name, value)
        assert now() == expected, name


def test_names_and_passwords_are_read_back(zmq, dealer):
    assert (dealer.plain_username, dealer.plain_password) == (b"", b"")
    dealer.plain_username = b"me"
    dealer.set_string(zmq.PLAIN_PASSWORD, "secret")
    assert (dealer.plain_username, dealer.plain_password) == (b"me", b"secret")
    for wrong in (b"", b"x" * 256):
        with pytest.raises(zmq.ZMQError) as caught:
            dealer.plain_password = wrong
        assert caught.value.errno == zmq.EINVAL


@pytest.mark.parametrize("option", ["curve_publickey", "curve_secretkey", "curve_serverkey"])
def test_keys_are_raw_or_text(zmq, dealer, option):
    text, _ = zmq.curve_keypair()
    for key in (text, zmq.utils.z85.decode(text), text + b"\0"):
        setattr(dealer, option, key)
    for wrong in (b"", b"x" * 31, b"x" * 33, b'"' * 40):
        with pytest.raises(zmq.ZMQError) as caught:
            setattr(dealer, option, wrong)
        assert caught.value.errno == zmq.EINVAL


@pytest.mark.zeroxide_only
def test_keys_can_be_read(zmq, dealer):
    public, _ = zmq.curve_keypair()
    assert dealer.curve_publickey == b""
    dealer.curve_publickey = zmq.utils.z85.decode(public)
    assert dealer.curve_publickey == public


@pytest.mark.zeroxide_only
def test_missing_keys_are_reported_before_connecting(zmq, dealer):
    public, _ = zmq.curve_keypair()
    for name, value, text in [
        ("curve_server", 1, "CURVE_SECRETKEY"),
        ("curve_secretkey", zmq.curve_keypair()[1], ""),
    ]:
        setattr(dealer, name, value)
        if text:
            with pytest.raises(zmq.ZMQError, match=text):
                dealer.bind("tcp://127.0.0.1:*")
    dealer.curve_serverkey = public
    dealer.curve_publickey = public
    with pytest.warns(RuntimeWarning, match="does not belong"):
        dealer.connect("tcp://127.0.0.1:1")


def test_zap_enforce_domain(zmq, dealer):
    assert dealer.zap_enforce_domain == 0
    dealer.zap_enforce_domain = 1
    assert dealer.zap_enforce_domain == 1


SERVER = """
import os, sys
import zeroxide as zmq

with zmq.Context() as context, context.socket(zmq.REP) as server:
    server.set(zmq.IPC_FILTER_UID, os.getuid())
    server.bind(sys.argv[1])
    print("bound", flush=True)
    frame = server.recv(copy=False)
    server.send_string(frame["Peer-Address"])
"""


@pytest.mark.zeroxide_only
def test_a_filter_accepts_a_peer_that_has_no_process_number_here(zmq, dealer, directory):
    """The host, seen from a container. Its number is 0 there."""
    unshare = ["unshare", "--pid", "--fork", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*unshare, "true"]).returncode != 0:
        pytest.skip("no PID namespace (root, util-linux)")
    endpoint = f"ipc://{directory}/server"
    command = [*unshare, sys.executable, "-c", SERVER, endpoint]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout.readline() == b"bound\n"
            dealer.connect(endpoint)
            dealer.send_multipart([b"", b"who am I?"])
            assert dealer.poll(int(PATIENCE * 1000))
            _, address = dealer.recv_multipart()
            assert address.startswith(b":") and address.endswith(b":0")
        finally:
            server.kill()
