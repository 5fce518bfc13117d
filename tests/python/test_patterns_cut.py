"""The patterns over a link that is cut and mended, between machines of their own, which are network namespaces."""

import json
import time

import pytest
from faults.proxy import Proxy
from pattern_peers import PEER
from support import eventually, lasting_endpoint

from zeroxide import patterns

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

# The same for a stored request, which has a reply when the service has executed it.
STORE = """
from zeroxide import patterns

times = {"timeout": 200, "attempts": 2}
while True:
    try:
        with patterns.TitanicClient(sys.argv[1], **times) as client:
            name = client.submit("echo", b"1")
            while (reply := client.fetch(name)) is None:
                pass
            client.discard(name)
        print("reply", *(part.decode() for part in reply), flush=True)
    except (patterns.NoReply, patterns.TitanicError):
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


def failover(machines):
    """Freelance, model 1."""
    start(machines, machines.place, "SimplePirateQueue", frontend=f"{FAR}:1", backend=f"{FAR}:2")
    start(machines, machines.place, "SimplePirateWorker", "worker", endpoint=f"{FAR}:2")
    return ask(machines, "FailoverClient", [f"{FAR}:1"], "1", timeout=200, attempts=2)


def shotgun(machines):
    """Freelance, model 2."""
    start(machines, machines.place, "ShotgunServer", "worker", endpoint=f"{FAR}:1")
    return ask(machines, "ShotgunClient", [f"{FAR}:1"], "1", timeout=400)


def titanic_client(machines, folder):
    """The client loses the broker."""
    broker = {"endpoint": f"{FAR}:1", "reconnect": 100, **BEATS}
    start(machines, machines.place, "MajordomoBroker", endpoint=f"{FAR}:1", **BEATS)
    start(machines, machines.place, "MajordomoWorker", "worker", service="echo", **broker)
    times = {"timeout": 500, "retry": 100}
    start(machines, machines.place, "TitanicServer", folder=str(folder), **broker, **times)
    return machines.start(machines.home, "zeroxide", STORE, f"{FAR}:1")


def titanic_server(machines, folder):
    """The broker loses the server with the stored requests, and the worker."""
    broker = {"endpoint": f"{NEAR}:1", "reconnect": 100, **BEATS}
    start(machines, machines.home, "MajordomoBroker", endpoint=f"{NEAR}:1", **BEATS)
    start(machines, machines.place, "MajordomoWorker", "worker", service="echo", **broker)
    times = {"timeout": 500, "retry": 100}
    start(machines, machines.place, "TitanicServer", folder=str(folder), **broker, **times)
    return machines.start(machines.home, "zeroxide", STORE, f"{NEAR}:1")


def files(machines, folder):
    (folder / "name").write_text("worker 1")
    start(machines, machines.place, "FileServer", endpoint=f"{FAR}:1", folder=str(folder))
    return machines.start(machines.home, "zeroxide", FETCH, f"{FAR}:1")


def last_value(machines):
    ends = {"publishers": f"{FAR}:1", "subscribers": f"{FAR}:2"}
    start(machines, machines.place, "LastValueCache", **ends)
    return machines.start(machines.home, "zeroxide", LAST_VALUE, *ends.values())


PATTERNS = [lazy_pirate, paranoid_pirate, majordomo, failover, shotgun, freelance, last_value]
WITH_FOLDERS = [titanic_client, titanic_server, files]


@pytest.mark.parametrize("pattern", [*PATTERNS, *WITH_FOLDERS])
def test_a_pattern_recovers_when_the_link_does(machines, pattern, tmp_path):
    machines.cable()
    machines.plug_in()
    client = pattern(machines, *([tmp_path] if pattern in WITH_FOLDERS else []))
    reads(client, "reply")
    machines.cut()
    reads(client, "no reply")
    machines.plug_in()
    reads(client, "reply")


def reads(client, text):
    """Waits until a client prints a line that begins so."""
    while not (line := client.stdout.readline()).startswith(text):
        assert line, f"no {text}"
    return line


# ---- pairs of servers: only a client's request lets the passive one take over ---------


PAIR = {"heartbeat": 100}


@pytest.fixture
def pair(peers):
    """Starts a pair whose servers see each other through proxies. Returns the proxies, the endpoints and the servers."""
    clients = {name: lasting_endpoint() for name in ("primary", "backup")}
    states = {name: lasting_endpoint() for name in clients}
    with Proxy(states["primary"]) as to_primary, Proxy(states["backup"]) as to_backup:
        remotes = {"primary": to_backup.endpoint, "backup": to_primary.endpoint}
        servers = [
            peers.start(
                "BinaryStarServer",
                name,
                endpoint=clients[name],
                is_primary=name == "primary",
                local=states[name],
                remote=remotes[name],
                **PAIR,
            )
            for name in clients
        ]
        yield [to_primary, to_backup], clients, servers


def asked(endpoints, **options):
    with patterns.BinaryStarClient(endpoints, timeout=300, settle=300, **options) as client:
        return client.request(b"1")[0].decode()


def served_for(seconds, endpoints):
    """Asks again and again, and returns the servers that replied."""
    end = time.monotonic() + seconds
    servers = set()
    while time.monotonic() < end:
        servers.add(asked(endpoints))
    return servers


def test_a_broken_link_between_two_servers_changes_nothing_for_clients_of_both(pair):
    proxies, clients, servers = pair
    both = list(clients.values())
    assert asked(both) == "primary"
    for proxy in proxies:
        proxy.stall("down")
    # Longer than the two heartbeats after which the servers find each other silent.
    assert served_for(1, both) == {"primary"}
    for proxy in proxies:
        proxy.resume("down")
    assert served_for(1, both) == {"primary"}
    servers[0].kill()
    assert asked(both) == "backup"


def test_both_servers_are_active_if_the_link_is_broken_and_a_client_asks_the_passive_one(pair):
    """The guide's algorithm cannot tell this from the death of the other server. It ends both when they meet."""
    proxies, clients, servers = pair
    assert asked(list(clients.values())) == "primary"
    with pytest.raises(patterns.NoReply):
        asked([clients["backup"]], attempts=3)
    for proxy in proxies:
        proxy.stall("down")
    assert asked([clients["backup"]]) == "backup"
    assert asked([clients["primary"]]) == "primary"
    for proxy in proxies:
        proxy.resume("down")
    for server in servers:
        assert server.exit_code() == 1


def test_clients_behind_a_broken_link_get_the_other_server(machines):
    """The primary, which no client reaches, stays active. When the link is mended, a server ends."""
    machines.cable()
    machines.plug_in()
    sides = {"primary": (machines.place, FAR, NEAR), "backup": (machines.home, NEAR, FAR)}
    for name, (machine, own, other) in sides.items():
        ends = {"endpoint": f"{own}:1", "local": f"{own}:2", "remote": f"{other}:2"}
        start(
            machines,
            machine,
            "BinaryStarServer",
            name,
            is_primary=name == "primary",
            **ends,
            **PAIR,
        )
    servers = machines.programs[-2:]
    times = {"timeout": 300, "settle": 300, "attempts": 10}
    client = ask(machines, "BinaryStarClient", [f"{FAR}:1", f"{NEAR}:1"], "1", **times)
    reads(client, "reply primary")
    machines.cut()
    reads(client, "reply backup")
    machines.plug_in()
    one_or_both_end(servers)


def one_or_both_end(servers):
    """A server ends when it sees that the other is active, too. The other may not have seen that by then."""
    ended = eventually(lambda: [server for server in servers if server.poll() is not None])
    assert [server.wait() for server in ended] == [1] * len(ended)


# Changes a map without an end, and prints when each key was published by a server, and which keys are missing.
WRITER = """
import itertools, json, time
from zeroxide import patterns

name, servers = sys.argv[1], json.loads(sys.argv[2])
with patterns.CloneClient(servers, ttl=500, resend=100) as client:
    for number in itertools.count():
        client.set(f"/{name}/{number}", b"value")
        while f"/{name}/{number}" not in client.values:
            client.wait(100)
        missing = [other for other in range(number) if f"/{name}/{other}" not in client.values]
        print("published", time.monotonic(), number, *missing, flush=True)
        client.wait(10)
"""

# A server of a pair, which prints how many keys it knows.
MAP = """
import json, threading, time
from zeroxide import patterns

server = patterns.CloneServer(**json.loads(sys.argv[1]))

def report():
    known = 0
    while True:
        if (now := len(server._machine._map)) != known or server.has_map and not known:
            known = now
            print("knows", known, flush=True)
        time.sleep(0.005)

threading.Thread(target=report, daemon=True).start()
print("running", flush=True)
server.run()
"""


def pair_of_clone(machines):
    """Starts the primary here and the backup on the other machine."""
    machines.cable()
    machines.plug_in()
    programs = []
    for is_primary, machine, own, other in (
        (True, machines.home, NEAR, FAR),
        (False, machines.place, FAR, NEAR),
    ):
        ends = {"endpoint": f"{own}:10", "peer": f"{other}:10"}
        ends |= {"local": f"{own}:20", "remote": f"{other}:20"}
        options = {"is_primary": is_primary, **ends, **PAIR}
        programs.append(machines.start(machine, "zeroxide", MAP, json.dumps(options)))
        reads(programs[-1], "running")
    return programs


def write(machines, machine, name):
    servers = json.dumps([f"{NEAR}:10", f"{FAR}:10"])
    return machines.start(machine, "zeroxide", WRITER, name, servers)


def published(writer, after=0.0):
    """Returns the number of the next key that was published after a point in time, when all before it are known."""
    while True:
        _, when, number, *missing = reads(writer, "published").split()
        assert missing == []
        if float(when) > after:
            return int(number)


def test_a_passive_server_of_clone_learns_after_a_broken_link_what_it_missed(machines):
    primary, backup = pair_of_clone(machines)
    writer = write(machines, machines.home, "near")
    while int(reads(backup, "knows").split()[1]) < 5:
        pass
    machines.cut()
    last = published(writer, time.monotonic() + 1)
    machines.plug_in()
    while int(reads(backup, "knows").split()[1]) <= last:
        pass
    primary.kill()
    published(writer, time.monotonic() + 1)


def test_both_servers_of_clone_are_active_if_each_has_clients_behind_a_broken_link(machines):
    servers = pair_of_clone(machines)
    near, far = write(machines, machines.home, "near"), write(machines, machines.place, "far")
    published(near), published(far)
    machines.cut()
    cut = time.monotonic()
    # This client goes to the server on its side, which takes over.
    published(far, cut + 1)
    published(near, cut + 1)
    machines.plug_in()
    one_or_both_end(servers)
