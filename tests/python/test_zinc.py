"""The example `zinc` with real sockets, threads and processes."""

import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

pytest.importorskip("pycrdt")
pytest.importorskip("websockets")

from support import PATIENCE, Background
from zinc_cluster import ROOT, Document, Splice
from zinc_members import SILENCE, Member

from examples.zinc import Endpoint, Message, Timing

pytestmark = pytest.mark.zeroxide_only

TIMING = Timing(beat=0.1, patience=float(SILENCE), resend=0.5)
# No endpoint dies, however busy the machine is.
CALM = Timing(beat=0.1, patience=2 * PATIENCE)


class Site:
    """An endpoint of this process with a document."""

    def __init__(self, endpoint: Endpoint, document: Document) -> None:
        self.endpoint = endpoint
        self.document = document

    def write(self, text: str) -> None:
        """Puts text at the beginning."""
        self.endpoint.share(self.document.splice(Splice(0, 0, text)))

    def until(self, condition) -> None:
        assert self.endpoint.wait_for(condition, PATIENCE), (
            self.endpoint.members,
            self.document.text[:1000],
        )

    def until_joined(self, *names: str) -> None:
        """Waits until the cluster has exactly these members, and this one has all that its parent has."""

        def joined() -> bool:
            members = self.endpoint.members
            return self.endpoint.is_synced and sorted(m.name for m in members) == sorted(names)

        self.until(joined)

    def until_it_has(self, words: list[str]) -> None:
        """Waits until the host has all own edits, and the text has all words."""
        self.until(
            lambda: not self.endpoint.pending and all(word in self.document.text for word in words)
        )
        assert [word for word in words if self.document.text.count(word) != 1] == []


@pytest.fixture
def sites() -> Iterator:
    """Starts endpoints in this process, and finally closes them."""
    started: list[Endpoint] = []

    def start(
        name: str,
        join: str = "",
        breadth: int = 2,
        address: str = "",
        timing: Timing = TIMING,
        text: str = "",
    ) -> Site:
        document = Document()
        document.splice(Splice(0, 0, text))
        endpoint = Endpoint(
            address or "tcp://127.0.0.1:*",
            join=join,
            name=name,
            replica=document,
            breadth=breadth,
            timing=timing,
        )
        started.append(endpoint)
        return Site(endpoint.start(), document)

    yield start
    for endpoint in reversed(started):
        endpoint.close()


@pytest.fixture
def members() -> Iterator:
    """Starts members as processes, and finally kills them."""
    started: list[Member] = []

    def start(name: str, join: str = "", breadth: int = 2) -> Member:
        started.append(Member(name, join, breadth))
        return started[-1]

    yield start
    for member in started:
        member.end()


def words(site: str, count: int = 100) -> list[str]:
    return [f"<{site} {number}>" for number in range(count)]


def type_slowly(site: Site, texts: list[str]) -> Background:
    """Writes texts from another thread, a few milliseconds apart."""
    pause = threading.Event()

    def write() -> None:
        for text in texts:
            site.write(text)
            pause.wait(0.01)

    return Background(write)


def test_messages_are_handled_in_the_order_in_which_they_were_sent(sites, directory) -> None:
    host = sites("host", address=f"ipc://{directory}/host", timing=CALM)
    clients = [
        sites(f"client {n}", host.endpoint.address, address=f"ipc://{directory}/{n}", timing=CALM)
        for n in range(3)
    ]
    everyone = [host, *clients]
    received: list[queue.Queue[Message]] = [queue.Queue() for _ in everyone]
    for site, messages in zip(everyone, received, strict=True):
        site.endpoint.handle("chat", messages.put)
    for site in everyone:
        site.until_joined("host", "client 0", "client 1", "client 2")
    for number in range(200):
        for site in everyone:
            site.endpoint.send("chat", b"%d" % number)
    orders = []
    for site, messages in zip(everyone, received, strict=True):
        got = [messages.get(timeout=PATIENCE) for _ in range(600)]
        # No endpoint gets the echo of its own messages.
        for other in everyone:
            bodies = [message.body for message in got if message.origin == other.endpoint.id]
            assert bodies == [b"%d" % n for n in range(200) if other is not site]
        site.until(lambda site=site: site.endpoint.pending == 0)
        orders.append([(message.origin, message.serial) for message in got])
    # All have the order of the host, except that each lacks its own messages.
    for site, order in zip(everyone[1:], orders[1:], strict=True):
        own = (site.endpoint.id, host.endpoint.id)
        assert [m for m in order if m[0] not in own] == [m for m in orders[0] if m[0] not in own]


def test_confirmations_come_from_the_host(sites) -> None:
    host = sites("host")
    client = sites("client", host.endpoint.address)
    done = [Future() for _ in range(2)]
    for site, future in zip((host, client), done, strict=True):
        fragment = site.document.splice(Splice(0, 0, "x"))
        site.endpoint.share(fragment, lambda future=future: future.set_result(None))
    for future in done:
        future.result(PATIENCE)
    host.until(lambda: host.document.text == "xx")


def test_a_late_endpoint_joins_anywhere_in_the_tree(sites) -> None:
    host = sites("host", breadth=1, timing=CALM)
    inner = sites("inner", host.endpoint.address, breadth=1, timing=CALM)
    inner.until_joined("host", "inner")
    for number, word in enumerate(words("early")):
        (host, inner)[number % 2].write(word)
    # The host has no room, and refers it to the other one.
    late = sites("late", host.endpoint.address, breadth=1, timing=CALM)
    late.until_joined("host", "inner", "late")
    late.until_it_has(words("early"))
    assert late.endpoint.members[2].parent == inner.endpoint.id


def test_an_endpoint_brings_what_its_document_has(sites) -> None:
    host = sites("host")
    client = sites("client", host.endpoint.address, text="from before")
    host.until_it_has(["from before"])
    client.until_joined("host", "client")


def test_work_is_done_by_all(sites) -> None:
    everyone = [sites("host")]
    everyone += [sites(f"client {n}", everyone[0].endpoint.address) for n in range(3)]
    workers: set[str] = set()
    all_work = threading.Event()

    def worker(name: str):
        def work(body: bytes) -> bytes:
            workers.add(name)
            if len(workers) == 4:
                all_work.set()
            # Until then, each endpoint has more to do than the idle ones.
            assert all_work.wait(PATIENCE)
            return body.upper()

        return work

    for site in everyone:
        site.endpoint.offer("task", worker(site.endpoint.name))
    for site in everyone:
        site.until_joined("host", "client 0", "client 1", "client 2")
    results = [everyone[3].endpoint.submit("task", b"%c" % letter) for letter in b"abcdefgh" * 4]
    assert b"".join(result.result(PATIENCE) for result in results) == b"ABCDEFGH" * 4
    with pytest.raises(RuntimeError, match="other failed on"):
        everyone[3].endpoint.submit("other", b"").result(PATIENCE)


def test_malformed_frames_are_ignored(sites, zmq, context) -> None:
    host = sites("host")
    stranger = context.socket(zmq.PUSH)
    stranger.connect(host.endpoint.address)
    for parts in (
        [b""],
        [b"JOIN", b"{}", b""],
        [b"JOIN", b"[1]", b""],
        [b"HERE", b'{"cluster": "", "members": 1, "load": 0}', b""],
        [b"SYNC", b"\xff", b""],
        [b"WORK", b'{"id": 1}', b"", b"too many"],
        [b"\xff", b"{}", b""],
    ):
        stranger.send_multipart(parts)
    client = sites("client", host.endpoint.address)
    client.until_joined("host", "client")
    host.until_joined("host", "client")


@pytest.mark.parametrize("how", ["SIGKILL", "SIGSTOP"])
def test_no_edit_is_lost_when_the_host_dies(sites, members, how) -> None:
    host = members("host")
    bob = sites("bob", host.address)
    bob.until_joined("host", "bob")
    cat = sites("cat", host.address)
    dan = members("dan", host.address)
    for site in (bob, cat):
        site.until_joined("host", "bob", "cat", "dan")
    typing = [type_slowly(bob, words("bob")), type_slowly(cat, words("cat"))]
    bob.until(lambda: "<cat 20>" in bob.document.text)
    cat.until(lambda: "<bob 20>" in cat.document.text)
    host.kill() if how == "SIGKILL" else host.stop()
    for thread in typing:
        thread.result()
    for site in (bob, cat):
        site.until_joined("bob", "cat", "dan")
        site.until_it_has([*words("bob"), *words("cat")])
    if how == "SIGSTOP":
        # It believes to be the host still, and follows the new one.
        host.resume()
        for site in (bob, cat):
            site.until_joined("host", "bob", "cat", "dan")
        assert bob.endpoint.epoch > 1
        bob.write("after")
        cat.until_it_has(["after"])
    # Another process has it all.
    late = sites("late", dan.address)
    late.until_it_has([*words("bob"), *words("cat")])


def test_the_tree_forms_again_when_an_inner_client_dies(sites, members) -> None:
    host = sites("host", breadth=1)
    inner = members("inner", host.endpoint.address, breadth=1)
    host.until_joined("host", "inner")
    leaf = sites("leaf", inner.address, breadth=1)
    leaf.until_joined("host", "inner", "leaf")
    typing = [type_slowly(host, words("host")), type_slowly(leaf, words("leaf"))]
    host.until(lambda: "<leaf 20>" in host.document.text)
    inner.kill()
    for thread in typing:
        thread.result()
    for site in (host, leaf):
        site.until_joined("host", "leaf")
        site.until_it_has([*words("host"), *words("leaf")])
    assert host.document.text == leaf.document.text


def test_the_tour() -> None:
    command = [sys.executable, "-m", "examples.zinc.tour"]
    tour = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert tour.stdout.splitlines() == [
        "Ann heard hello from Ben",
        "one text: True",
        "reversed: cniz",
        "the host is Ben",
    ]


def new_host(line: str) -> str:
    """The name in a line of the demo."""
    name, _, rest = line.partition(" ")
    assert (name in ("Ann", "Ben", "Cleo"), rest) == (True, "is the host now.\n"), line
    return name


def test_the_demo_kills_a_host_for_each_line() -> None:
    command = [sys.executable, "-u", "-m", "examples.zinc", "--members", "3", "--no-browser"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as demo:
        lines = [demo.stdout.readline() for _ in range(4)]
        assert [line.split()[0] for line in lines] == ["Ann", "Ben", "Cleo", "Enter"]
        demo.stdin.write("\n")
        demo.stdin.flush()
        # On a busy machine, others may have taken the host for dead before.
        host = "Ann"
        while (line := demo.stdout.readline()) != f"{host} was killed.\n":
            host = new_host(line)
        assert new_host(demo.stdout.readline()) != host
        demo.stdin.close()
        assert demo.wait(PATIENCE) == 0
