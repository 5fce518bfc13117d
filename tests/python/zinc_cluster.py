"""A simulated cluster of the example `zinc`: its nodes without sockets, threads or a clock."""

import random
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The examples are no installed package.
sys.path.insert(0, str(ROOT))

from examples.zinc import children, commands, stream  # noqa: E402
from examples.zinc.document import Document, Merged, Splice  # noqa: E402
from examples.zinc.message import Frame, Member, Work  # noqa: E402
from examples.zinc.node import Node  # noqa: E402
from examples.zinc.timing import Timing  # noqa: E402

__all__ = [
    "TIMING",
    "Cluster",
    "Document",
    "Member",
    "Merged",
    "Peer",
    "Splice",
    "children",
    "stream",
]

TIMING = Timing(beat=0.1, patience=0.5, resend=0.4)

# The time between two steps of the simulation.
STEP = 0.02


@dataclass(eq=False)
class Peer:
    """A node with a document, and with its unread frames."""

    node: Node
    document: Document
    parent: str = ""
    above: deque = field(default_factory=deque)
    below: deque = field(default_factory=deque)
    is_stopped: bool = False
    is_slow: bool = False
    work: list[Work] = field(default_factory=list)
    confirmed: list[int] = field(default_factory=list)
    delivered: list[tuple[str, int]] = field(default_factory=list)
    results: dict[str, bytes] = field(default_factory=dict)
    # How many frames it has published, each counted once per child.
    carried: int = 0


class Cluster:
    """The nodes, and a network that loses a share of the frames."""

    def __init__(self, seed: int, *, loss: float = 0.0, breadth: int = 2) -> None:
        self.random = random.Random(seed)
        self.loss = loss
        self.breadth = breadth
        self.now = 0.0
        self.peers: dict[str, Peer] = {}
        # The frames for endpoints that were gone.
        # The addresses of the part that the others cannot reach.
        self.island: set[str] = set()
        self.told: dict[str, list[Frame]] = {}
        self._started = 0

    def add(self, join: str = "") -> Peer:
        """Starts an endpoint."""
        return self._start(f"<{self._started}>", join)

    def edit(self, peer: Peer, splice: Splice) -> None:
        if fragment := peer.document.splice(splice):
            peer.node.send("document", fragment, self.now)
            self._obey(peer)

    def submit(self, peer: Peer, id: str) -> None:
        peer.node.submit(Work(id, peer.node.me.id, "task", b""), self.now)
        self._obey(peer)

    def finish_work(self) -> None:
        """Lets all endpoints do the work that they have, and all that comes later."""
        for peer in self.peers.values():
            peer.is_slow = False
            for work in peer.work:
                self._do(peer, work)
            peer.work.clear()
            self._obey(peer)

    def kill(self, peer: Peer) -> None:
        del self.peers[peer.node.me.address]

    def leave(self, peer: Peer) -> None:
        peer.node.leave()
        self._obey(peer)
        self.kill(peer)

    def take_over(self, address: str) -> None:
        """Starts another cluster at the address of an endpoint that is gone; it hears from this one."""
        self._start(address, "")
        self.peers[address].below.extend(frame.parts() for frame in self.told[address])

    def run(self, seconds: float) -> None:
        """Lets time pass, in steps in which each peer reads a part of its frames."""
        end = self.now + seconds
        while self.now < end:
            self.now += STEP
            for peer in self.random.sample(list(self.peers.values()), len(self.peers)):
                if not peer.is_stopped:
                    self._step(peer)

    def _start(self, address: str, join: str) -> Peer:
        self._started += 1
        me = Member(f"{self.random.getrandbits(64):016x}", address, address)
        node = Node(me, join, self.now, breadth=self.breadth, timing=TIMING)
        peer = self.peers[address] = Peer(node, Document(client_id=self._started))
        self._obey(peer)
        return peer

    def _step(self, peer: Peer) -> None:
        for _ in range(self.random.randrange(50)):
            queues = [queue for queue in (peer.above, peer.below) if queue]
            if not queues:
                break
            queue = self.random.choice(queues)
            frame = Frame.read(queue.popleft())
            handle = peer.node.handle_above if queue is peer.above else peer.node.handle_below
            handle(frame, self.now)
            self._obey(peer)
        if not peer.above and not peer.below:
            peer.node.handle_tick(self.now)
            self._obey(peer)

    def _obey(self, peer: Peer) -> None:
        node, document = peer.node, peer.document
        while (command := node.poll_command()) is not None:
            match command:
                case commands.Publish(topic, frame):
                    for other in self.peers.values():
                        if other.parent == node.me.address and topic in ("*", other.node.me.id):
                            peer.carried += 1
                            self._carry(frame, peer, other.node.me.address, other.above)
                case commands.Push(frame):
                    if peer.parent in self.peers:
                        self._carry(frame, peer, peer.parent, self.peers[peer.parent].below)
                case commands.Tell(address, frame):
                    if address in self.peers:
                        self._carry(frame, peer, address, self.peers[address].below)
                    self.told.setdefault(address, []).append(frame)
                case commands.Connect(address):
                    peer.parent = address
                    peer.above.clear()
                case commands.Deliver(message):
                    peer.delivered.append((message.origin, message.serial))
                    self._merge(peer, message.body, is_known=True)
                case commands.Confirm(serial):
                    peer.confirmed.append(serial)
                case commands.Offer():
                    node.sync(document.vector())
                case commands.Snapshot(_, _, vector):
                    node.state(command, document.missing(vector), document.vector())
                case commands.Merge(body, vector):
                    self._merge(peer, body, is_known=False)
                    if vector is not None and (mine := document.missing(vector)):
                        node.send("document", mine, self.now)
                case commands.Run(work):
                    if peer.is_slow:
                        peer.work.append(work)
                    else:
                        self._do(peer, work)
                case commands.Finish(id, result, _):
                    peer.results[id] = result

    def _do(self, peer: Peer, work: Work) -> None:
        peer.node.load -= 1
        peer.node.done(work, peer.node.me.name.encode())

    def _merge(self, peer: Peer, body: bytes, *, is_known: bool) -> None:
        merged = peer.document.merge(body)
        if merged.is_held:
            peer.node.doubt()
        if merged.news and (merged.has_released or not is_known):
            peer.node.fill(merged.news)

    def _carry(self, frame: Frame, sender: Peer, receiver: str, queue: deque) -> None:
        is_cut = (sender.node.me.address in self.island) != (receiver in self.island)
        if not is_cut and self.random.random() >= self.loss:
            queue.append(frame.parts())
