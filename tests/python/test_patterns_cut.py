"""The patterns over a link that is cut and mended, between machines of their own, which are network namespaces."""

import json

import pytest
from pattern_peers import PEER

pytestmark = pytest.mark.zeroxide_only

FAR = "tcp://10.77.0.1"
NEAR = "tcp://10.77.0.2"
BEATS = {"heartbeat": 100, "liveness": 3}

# A client that asks without an end, and prints whether a reply came.
CLIENT = """
import json
from zeroxide import patterns

kind, place, arguments, request = sys.argv[1], *map(json.loads, sys.argv[2:5])
# A service is text, and the body of a request bytes.
wanted = [*request[:-1], request[-1].encode()]
while True:
    try:
        with getattr(patterns, kind)(place, **arguments) as client:
            reply = client.request(*wanted)
        print("reply", *(part.decode() for part in reply), flush=True)
    except patterns.NoReply:
        print("no reply", flush=True)
"""

# The same for a file, and for the last value of a topic.
FETCH = """
from zeroxide import patterns

while True:
    try:
        with patterns.FileClient(sys.argv[1], timeout=200, attempts=2) as client:
            print("reply", b"".join(client.fetch("name")).decode(), flush=True)
    except patterns.NoReply:
        print("no reply", flush=True)
"""
LAST_VALUE = """
context = zmq.Context()
publisher = context.socket(zmq.PUB)
publisher.connect(sys.argv[1])
while True:
    with context.socket(zmq.SUB) as subscriber:
        subscriber.subscribe("A")
        subscriber.connect(sys.argv[2])
        publisher.send_multipart([b"A", b"value"])
        print("reply value" if subscriber.poll(300) else "no reply", flush=True)
"""


def start(machines, machine, kind, name="", **arguments):
    peer = machines.start(machine, "zeroxide", PEER, kind, name, json.dumps(arguments), "answer")
    assert peer.stdout.readline() == "running\n"


def ask(machines, kind, place, *request, **arguments):
    texts = [json.dumps(text) for text in (place, arguments, request)]
    return machines.start(machines.home, "zeroxide", CLIENT, kind, *texts)


def lazy_pirate(machines):
    start(machines, machines.place, "SimplePirateQueue", frontend=f"{FAR}:1", backend=f"{FAR}:2")
    start(machines, machines.place, "SimplePirateWorker", "worker", endpoint=f"{FAR}:2")
    return ask(machines, "LazyPirateClient", f"{FAR}:1", "1", timeout=200, attempts=2)


def paranoid_pirate(machines):
    """The queue loses its worker, and takes it back."""
    ends = {"frontend": f"{NEAR}:1", "backend": f"{NEAR}:2"}
    start(machines, machines.home, "ParanoidPirateQueue", **ends, **BEATS)
    worker = {"endpoint": f"{NEAR}:2", "reconnect": 100, **BEATS}
    start(machines, machines.place, "ParanoidPirateWorker", "worker", **worker)
    return ask(machines, "LazyPirateClient", f"{NEAR}:1", "1", timeout=200, attempts=2)


def majordomo(machines):
    """The broker loses its worker, and takes it back."""
    start(machines, machines.home, "MajordomoBroker", endpoint=f"{NEAR}:1", **BEATS)
    worker = {"endpoint": f"{NEAR}:1", "service": "echo", "reconnect": 100, **BEATS}
    start(machines, machines.place, "MajordomoWorker", "worker", **worker)
    times = {"timeout": 200, "attempts": 2}
    return ask(machines, "MajordomoClient", f"{NEAR}:1", "echo", "1", **times)


def freelance(machines):
    start(machines, machines.place, "FreelanceServer", "worker", endpoint=f"{FAR}:1")
    times = {"ping": 100, "ttl": 300, "resend": 100, "timeout": 400}
    return ask(machines, "FreelanceClient", [f"{FAR}:1"], "1", **times)


def files(machines, folder):
    (folder / "name").write_text("worker 1")
    start(machines, machines.place, "FileServer", endpoint=f"{FAR}:1", folder=str(folder))
    return machines.start(machines.home, "zeroxide", FETCH, f"{FAR}:1")


def last_value(machines):
    ends = {"publishers": f"{FAR}:1", "subscribers": f"{FAR}:2"}
    start(machines, machines.place, "LastValueCache", **ends)
    return machines.start(machines.home, "zeroxide", LAST_VALUE, *ends.values())


@pytest.mark.parametrize(
    "pattern", [lazy_pirate, paranoid_pirate, majordomo, freelance, files, last_value]
)
def test_a_pattern_recovers_when_the_link_does(machines, pattern, tmp_path):
    machines.cable()
    machines.plug_in()
    client = pattern(machines, *([tmp_path] if pattern is files else []))
    reads(client, "reply")
    machines.cut()
    reads(client, "no reply")
    machines.plug_in()
    reads(client, "reply")


def reads(client, text):
    """Waits until a client prints a line that begins so."""
    while not (line := client.stdout.readline()).startswith(text):
        assert line, f"no {text}"
