"""Names with several addresses, from a hosts file that only the child process sees."""

import json
import os
import shutil
import subprocess
import sys

import pytest

NAME = "several-addresses.test"

PROGRAM = f"""
import json, socket, sys
import zeroxide as zmq

def addresses():
    found = socket.getaddrinfo({NAME!r}, 80, type=socket.SOCK_STREAM)
    return [address[0] for *_, address in found]

def reach(address):
    with zmq.Context() as context, context.socket(zmq.PULL) as pull:
        pull.rcvtimeo = 20_000
        port = pull.bind_to_random_port(f"tcp://{{address}}")
        with context.socket(zmq.PUSH) as push:
            push.linger = 0
            push.connect(f"tcp://{NAME}:{{port}}")
            push.send(address.encode())
            return pull.recv().decode()

def fill(listener):
    # Afterwards, the kernel ignores further connections.
    waiting = []
    while True:
        client = socket.socket()
        client.settimeout(0.5)
        waiting.append(client)
        try:
            client.connect(listener.getsockname())
        except TimeoutError:
            return waiting

def pass_over(silent, other):
    with zmq.Context() as context, context.socket(zmq.PULL) as pull, socket.socket() as listener:
        pull.rcvtimeo = 60_000
        port = pull.bind_to_random_port(f"tcp://{{other}}")
        listener.bind((silent, port))
        listener.listen(0)
        with context.socket(zmq.PUSH) as push:
            push.linger = 0
            clients = fill(listener)
            push.connect(f"tcp://{NAME}:{{port}}")
            push.send(other.encode())
            return pull.recv().decode()

known = addresses()
if "silent" in sys.argv:
    print(pass_over(*known[:2]) if len(known) > 1 else "")
    sys.exit()
json.dump([known, [reach(address) for address in known]], sys.stdout)
"""


@pytest.fixture
def private_hosts(tmp_path):
    """The start of a command line that runs the rest with a separate hosts file."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n" + f"127.0.0.1 {NAME}\n127.0.0.9 {NAME}\n")
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare here")
    root = [] if os.geteuid() == 0 else ["--map-root-user"]
    mount = f'mount --bind {hosts} /etc/hosts && exec "$@"'
    command = [unshare, "--mount", *root, "sh", "-c", mount, "sh"]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"no private mounts here: {tried.stderr.strip()}")
    return command


@pytest.mark.zeroxide_only
def test_all_addresses_are_tried(private_hosts):
    """The address that has a server is found, in any order; libzmq only tries the first."""
    ran = subprocess.run(
        [*private_hosts, sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    known, reached = json.loads(ran.stdout)
    if len(known) < 2:
        pytest.skip("this system's resolver takes one line of a hosts file only")
    assert reached == known == ["127.0.0.1", "127.0.0.9"]


@pytest.mark.zeroxide_only
def test_a_silent_address_is_passed_over(private_hosts):
    """The kernel would try a machine that does not answer for two minutes before the next address."""
    ran = subprocess.run(
        [*private_hosts, sys.executable, "-c", PROGRAM, "silent"],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ran.returncode == 0, ran.stderr
    if not ran.stdout.strip():
        pytest.skip("this system's resolver takes one line of a hosts file only")
    assert ran.stdout.strip() == "127.0.0.9"
