"""Tunnels, with a replacement for the program ssh, because there is no server to log in to."""

import importlib
import os
import socket as tcp
import stat
import sys
import threading

import pytest

pytestmark = pytest.mark.zeroxide_only

# Supports -L and asks for a password if necessary; the far end is this machine.
SSH = """\
#!{python}
import os, socket, subprocess, sys, threading
arguments = sys.argv[1:]
with open({log!r}, "a") as log:
    print(arguments, file=log)
batch = "BatchMode=yes" in arguments
wanted = {password!r}
if wanted:
    if batch:
        sys.exit("Permission denied (publickey,password).")
    given = subprocess.run([os.environ["SSH_ASKPASS"], "password:"], capture_output=True, text=True)
    if given.stdout.strip() != wanted:
        sys.exit("Permission denied, please try again.")
if {unknown!r}:
    sys.exit("Host key verification failed.")
if batch:
    sys.exit()
_, local, host, port = arguments[arguments.index("-L") + 1].split(":")
listener = socket.create_server(("127.0.0.1", int(local)))

def copy(a, b):
    while data := a.recv(65536):
        b.sendall(data)

def serve():
    while True:
        near, _ = listener.accept()
        far = socket.create_connection((host, int(port)))
        threading.Thread(target=copy, args=(near, far), daemon=True).start()
        threading.Thread(target=copy, args=(far, near), daemon=True).start()

threading.Thread(target=serve, daemon=True).start()
print("Welcome!", flush=True)
subprocess.run(["sh", "-c", arguments[-1]])
"""


@pytest.fixture
def tunnel(zmq):
    return importlib.import_module(f"{zmq.__name__}.ssh.tunnel")


@pytest.fixture
def ssh(tmp_path, monkeypatch):
    """Puts the replacement before the real program in the path; returns its arguments."""
    log = tmp_path / "log"

    def install(password="", unknown=False):
        program = tmp_path / "ssh"
        program.write_text(
            SSH.format(python=sys.executable, log=str(log), password=password, unknown=unknown)
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return lambda: log.read_text().splitlines()

    return install


def test_a_socket_through_a_tunnel(zmq, sockets, context, tunnel, ssh):
    calls = ssh()
    pull = sockets.bound(zmq.PULL)
    with context.socket(zmq.PUSH) as push:
        endpoint = pull.last_endpoint.decode()
        pid = tunnel.tunnel_connection(push, endpoint, "me@gate:2222", "key", timeout=600)
        assert push.last_endpoint != pull.last_endpoint
        push.send(b"through")
        assert pull.recv() == b"through"
        os.kill(pid, 0)
    last = calls()[-1]
    for words in ("'-i', 'key'", "'-p', '2222'", "'me@gate'", "sleep 600"):
        assert words in last
    os.kill(pid, 15)


def test_passwords(tunnel, ssh, monkeypatch):
    ssh(password="open sesame")
    assert not tunnel.try_passwordless_ssh("gate", None)
    [port] = tunnel.select_random_ports(1)
    with pytest.raises(tunnel.SSHException, match="Permission denied"):
        tunnel.openssh_tunnel(port, 1, "gate", password="wrong")
    os.kill(tunnel.openssh_tunnel(port, 1, "gate", password="open sesame"), 15)
    # Requested if it is not given.
    monkeypatch.setattr(tunnel.getpass, "getpass", lambda prompt: "open sesame")
    [port] = tunnel.select_random_ports(1)
    os.kill(tunnel.ssh_tunnel(port, 1, "gate"), 15)


def test_without_a_password(tunnel, ssh):
    ssh()
    assert tunnel.try_passwordless_ssh("gate", None)


def test_unknown_servers_are_refused(tunnel, ssh):
    ssh(unknown=True)
    with pytest.raises(tunnel.SSHException, match="Host key verification failed"):
        tunnel.open_tunnel("tcp://10.0.0.5:5555", "gate")


@pytest.mark.parametrize("address", ["10.0.0.5:5555", "ipc:///tmp/x", "tcp://host", "tcp://:5"])
def test_transports_without_tunnels(tunnel, address):
    with pytest.raises(ValueError, match="tcp://host:port"):
        tunnel.open_tunnel(address, "gate")


def test_servers(zmq):
    Server = importlib.import_module(f"{zmq.__name__}.ssh.server").Server
    assert Server.parse("gate") == Server("gate")
    assert Server.parse("me@gate:22") == Server("gate", "me", 22)
    assert Server.parse("gate:2222").arguments() == ["-p", "2222", "gate"]
    for text in ("", "me@", "-oProxyCommand=x", "-x@gate"):
        with pytest.raises(ValueError, match="not an ssh server"):
            Server.parse(text)


def test_random_ports_differ(tunnel):
    assert len(set(tunnel.select_random_ports(20))) == 20


def test_forwarding_for_paramiko(zmq):
    """Tests the part of this package with a transport that opens plain connections."""
    forward = importlib.import_module(f"{zmq.__name__}.ssh.forward")

    class Transport:
        def open_channel(self, kind, target, source):
            assert kind == "direct-tcpip"
            return tcp.create_connection(target)

    with tcp.create_server(("127.0.0.1", 0)) as far, tcp.create_server(("127.0.0.1", 0)) as probe:
        local = probe.getsockname()[1]
        probe.close()
        arguments = (local, *far.getsockname(), Transport())
        threading.Thread(target=forward.forward_tunnel, args=arguments, daemon=True).start()
        while True:
            try:
                near = tcp.create_connection(("127.0.0.1", local))
                break
            except ConnectionRefusedError:
                continue
        channel, _ = far.accept()
        near.sendall(b"there")
        assert channel.recv(5) == b"there"
        channel.sendall(b"back")
        assert near.recv(4) == b"back"
        near.close()
        assert channel.recv(1) == b""
        channel.close()


def test_paramiko_is_optional(tunnel, monkeypatch):
    monkeypatch.setitem(sys.modules, "paramiko", None)
    with pytest.raises(ImportError, match="paramiko is not installed"):
        tunnel.paramiko_tunnel(1, 2, "gate")


def test_names(zmq):
    package = importlib.import_module(f"{zmq.__name__}.ssh")
    assert package.tunnel_connection is package.tunnel.tunnel_connection
