"""The tree of the example `zinc`, simulated: a seed decides which endpoints are killed and which frames are lost."""

from collections import Counter

import pytest

pytest.importorskip("pycrdt")

from zinc_cluster import TIMING, Cluster, Member, Peer, Splice, children, stream

pytestmark = pytest.mark.zeroxide_only


def grown(count: int, seed: int = 0, **options: float) -> tuple[Cluster, list[Peer]]:
    """Starts a cluster, and waits until all endpoints are in the tree."""
    cluster = Cluster(seed, **options)
    host = cluster.add()
    peers = [host, *(cluster.add(host.node.me.address) for _ in range(count - 1))]
    settle(cluster)
    return cluster, peers


def settle(cluster: Cluster) -> None:
    """Waits until all living endpoints are in one tree, and have the same text and nothing left to send."""
    end = cluster.now + 100
    while not is_settled(cluster):
        assert cluster.now < end, [
            (peer.node.me.name, peer.node.mode, len(peer.node.path), peer.node.pending)
            for peer in cluster.peers.values()
        ]
        cluster.run(0.2)


def is_settled(cluster: Cluster) -> bool:
    peers = cluster.peers.values()
    ids = {peer.node.me.id for peer in peers}
    return len({peer.document.text for peer in peers}) == 1 and all(
        peer.node.is_synced
        and not peer.node.pending
        and {member.id for member in peer.node.members} == ids
        for peer in peers
    )


def hosts(cluster: Cluster) -> list[Peer]:
    return [peer for peer in cluster.peers.values() if peer.node.is_host]


def parent_of(peer: Peer) -> str:
    return peer.node.me.parent


class Writer:
    """Lets random endpoints insert characters, each once in the whole run, and delete some of them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.author: dict[str, Peer] = {}
        self.deleted: set[str] = set()

    def write(self, peer: Peer) -> None:
        # Characters of one to four bytes.
        number = len(self.author)
        character = chr((0x21, 0x100, 0x4E00, 0x1F300)[number % 4] + number // 4)
        self.author[character] = peer
        text = peer.document.text
        at = self.cluster.random.randint(0, len(text))
        remove = int(at < len(text) and self.cluster.random.random() < 0.3)
        self.deleted |= set(text[at : at + remove])
        self.cluster.edit(peer, Splice(at, remove, character))

    def check(self) -> None:
        """All have the same text. Each character of a living endpoint is in it once, unless it was deleted."""
        [text] = {peer.document.text for peer in self.cluster.peers.values()}
        counts = Counter(text)
        assert set(counts.values()) <= {1}
        living = list(self.cluster.peers.values())
        kept = {c for c, peer in self.author.items() if peer in living}
        assert kept - self.deleted <= set(counts) <= set(self.author)


@pytest.mark.parametrize("seed", range(30))
def test_no_edit_is_lost_while_endpoints_die_and_frames_are_lost(seed) -> None:
    cluster, _ = grown(3 + seed % 8, seed, loss=(seed % 3) * 0.05, breadth=1 + seed % 3)
    writer = Writer(cluster)
    for _ in range(3):
        for _ in range(25):
            writer.write(cluster.random.choice(list(cluster.peers.values())))
            cluster.run(cluster.random.random() * 0.1)
        if len(cluster.peers) > 2:
            # Every second time it is the host.
            victims = hosts(cluster) if cluster.random.random() < 0.5 else []
            cluster.kill(cluster.random.choice(victims or list(cluster.peers.values())))
    settle(cluster)
    writer.check()
    assert len(hosts(cluster)) == 1


@pytest.mark.parametrize("seed", range(20))
def test_no_edit_is_lost_while_endpoints_stop_and_go_on(seed) -> None:
    cluster, peers = grown(3 + seed % 6, seed, loss=(seed % 2) * 0.05)
    writer = Writer(cluster)
    for _ in range(4):
        stopped = cluster.random.choice([*hosts(cluster), *peers])
        stopped.is_stopped = True
        for _ in range(10):
            writer.write(cluster.random.choice([peer for peer in peers if peer is not stopped]))
            cluster.run(cluster.random.random() * 0.3)
        stopped.is_stopped = False
        cluster.run(cluster.random.random())
    settle(cluster)
    writer.check()
    # A host that was stopped follows the one that has taken its place.
    assert len(hosts(cluster)) == 1
    assert set(writer.author) - writer.deleted <= set(peers[0].document.text)


@pytest.mark.parametrize("seed", range(10))
def test_two_parts_of_a_network_become_one_tree_again(seed) -> None:
    cluster, peers = grown(4 + seed % 5, seed)
    writer = Writer(cluster)
    size = cluster.random.randint(1, len(peers) - 1)
    cluster.island = {peer.node.me.address for peer in cluster.random.sample(peers, size)}
    for _ in range(20):
        writer.write(cluster.random.choice(peers))
        cluster.run(0.2)
    assert len(hosts(cluster)) == 2
    cluster.island = set()
    settle(cluster)
    writer.check()
    assert len(hosts(cluster)) == 1


def test_endpoints_form_a_tree() -> None:
    cluster, peers = grown(15, breadth=2)
    below = Counter(parent_of(peer) for peer in peers if peer is not peers[0])
    assert max(below.values()) == 2
    cluster.run(10)
    # Four levels could hold 15 endpoints.
    assert max(len(peer.node.path) for peer in peers) <= 5
    # The host sends each message to its two children only.
    sent = peers[0].carried
    cluster.edit(peers[0], Splice(0, 0, "x"))
    assert peers[0].carried - sent == 2
    settle(cluster)


def test_an_echo_is_not_delivered() -> None:
    cluster, peers = grown(5)
    cluster.edit(peers[3], Splice(0, 0, "x"))
    assert peers[3].node.pending == 1
    settle(cluster)
    assert peers[3].confirmed == [1]
    id = peers[3].node.me.id
    assert [peer.delivered.count((id, 1)) for peer in peers] == [1, 1, 1, 0, 1]


def test_a_message_that_is_sent_again_is_delivered_once() -> None:
    cluster, peers = grown(4)
    # Frames are lost from now on, so confirmations fail to come, and messages are sent again.
    cluster.loss = 0.3
    for number in range(30):
        cluster.edit(peers[number % 4], Splice(0, 0, "x"))
    settle(cluster)
    assert peers[0].document.text == "x" * 30
    for peer in peers:
        assert set(Counter(peer.delivered).values()) == {1}


def test_a_late_endpoint_gets_a_snapshot() -> None:
    cluster, peers = grown(4)
    for number in range(50):
        cluster.edit(peers[number % 4], Splice(0, 0, "word "))
    settle(cluster)
    late = cluster.add(peers[2].node.me.address)
    settle(cluster)
    assert late.document.text == "word " * 50
    assert late.delivered == []


def test_the_first_client_becomes_the_host() -> None:
    cluster, peers = grown(6)
    heirs = [member.address for member in peers[0].node.members]
    epoch = peers[0].node.epoch
    cluster.kill(peers[0])
    settle(cluster)
    [host] = hosts(cluster)
    assert host.node.me.address == heirs[1]
    assert {peer.node.epoch for peer in cluster.peers.values()} == {epoch + 1}


def test_edits_on_their_way_through_a_dying_host_are_sent_again() -> None:
    cluster, peers = grown(4)
    for peer in peers[1:]:
        cluster.edit(peer, Splice(0, 0, peer.node.me.name))
    # The host has not read them yet.
    assert sum(peer.node.pending for peer in peers) == 3
    cluster.kill(peers[0])
    settle(cluster)
    assert all(peer.node.me.name in peers[1].document.text for peer in peers[1:])


def test_a_new_host_gets_what_the_old_one_had_sent_to_others_only() -> None:
    cluster, peers = grown(3)
    heir, other = peers[1], peers[2]
    cluster.edit(other, Splice(0, 0, "confirmed"))
    heir.is_stopped = True
    while other.node.pending:
        cluster.run(0.02)
    # The host publishes and dies, and its frames to the heir are lost.
    heir.above.clear()
    cluster.kill(peers[0])
    heir.is_stopped = False
    assert heir.document.text == ""
    settle(cluster)
    assert heir.node.is_host
    assert heir.document.text == "confirmed"


def test_children_get_what_their_parent_had_missed() -> None:
    cluster, peers = grown(3, breadth=1)
    top, middle, end = sorted(peers, key=lambda peer: len(peer.node.path))
    cluster.edit(top, Splice(0, 0, "missed"))
    # The frame is lost, and no later edit depends on it.
    middle.above.clear()
    settle(cluster)
    assert end.document.text == "missed"


def test_the_tree_forms_again_without_an_inner_client() -> None:
    cluster, peers = grown(4, breadth=1)
    chain = sorted(peers, key=lambda peer: len(peer.node.path))
    cluster.edit(chain[3], Splice(0, 0, "from the end"))
    cluster.kill(chain[1])
    settle(cluster)
    assert hosts(cluster) == [chain[0]]
    assert chain[0].document.text == "from the end"


def test_the_tree_is_balanced_after_deaths() -> None:
    cluster, peers = grown(31, breadth=2)
    cluster.run(10)
    # Of one child of the host, only the far end is left.
    [doomed, _] = list(peers[0].node.children)
    for member in doomed.members[:-1]:
        cluster.kill(cluster.peers[member.address])
    settle(cluster)
    cluster.run(20)
    sizes = sorted(child.size for child in peers[0].node.children)
    assert sum(sizes) == len(cluster.peers) - 1
    assert sizes[1] - sizes[0] <= 2
    assert max(len(peer.node.path) for peer in cluster.peers.values()) <= 6


def test_a_host_that_was_stopped_follows_a_later_one() -> None:
    cluster, peers = grown(5)
    peers[0].is_stopped = True
    cluster.run(3)
    [second] = [peer for peer in hosts(cluster) if peer is not peers[0]]
    cluster.kill(second)
    cluster.run(3)
    cluster.edit(peers[0], Splice(0, 0, "of the first host"))
    peers[0].is_stopped = False
    settle(cluster)
    [third] = hosts(cluster)
    assert third not in (peers[0], second)
    assert third.document.text == "of the first host"


def test_a_host_that_leaves_is_replaced_at_once() -> None:
    cluster, peers = grown(4)
    before = cluster.now
    cluster.leave(peers[0])
    settle(cluster)
    assert cluster.now - before < TIMING.patience


def test_another_cluster_at_an_old_address_is_left_alone() -> None:
    cluster, peers = grown(3)
    cluster.kill(peers[0])
    settle(cluster)
    cluster.take_over(peers[0].node.me.address)
    cluster.run(10)
    strange = cluster.peers[peers[0].node.me.address]
    assert strange.node.is_host and strange.node.members == [strange.node.me]


def test_work_goes_to_the_endpoint_with_the_least_to_do() -> None:
    cluster, peers = grown(7)
    for peer in peers:
        peer.is_slow = True
    for number in range(70):
        cluster.submit(peers[number % 7], f"work {number}")
    cluster.run(0.5)
    # The whole tree is busy before any endpoint is much busier than another one.
    assert sum(peer.node.load for peer in peers) == 70
    assert max(peer.node.load for peer in peers) <= 2 * min(peer.node.load for peer in peers)
    cluster.finish_work()
    cluster.run(2)
    assert sum(len(peer.results) for peer in peers) == 70


def test_work_of_an_endpoint_that_dies_is_done_by_another_one() -> None:
    cluster, peers = grown(4)
    for peer in peers:
        peer.is_slow = True
    for number in range(20):
        cluster.submit(peers[1], f"work {number}")
    cluster.run(0.5)
    assert all(peer.node.load for peer in peers)
    cluster.kill(peers[3])
    cluster.kill(peers[0])
    settle(cluster)
    cluster.finish_work()
    cluster.run(2)
    assert len(peers[1].results) == 20


def test_a_stream_finds_gaps() -> None:
    one = stream.Stream()
    one.on_number(5)
    one.on_snapshot(3)  # number 4 is missing
    assert not one.is_complete
    one.on_snapshot(4)
    assert one.is_complete
    one.on_number(6)
    one.on_last(6)
    assert one.is_complete
    one.on_last(7)  # the last one is missing
    assert not one.is_complete
    one.on_number(9)  # and 8, too
    one.on_snapshot(7)
    assert not one.is_complete
    one.on_snapshot(12)  # a snapshot is newer than all that was read
    assert one.is_complete


def test_a_tree_leaves_out_members_without_a_way_to_the_host() -> None:
    def member(id: str, parent: str) -> Member:
        return Member(id, id, id, parent=parent)

    root = member("root", "")
    below = [member("leaf", "inner"), member("lost", "gone"), member("inner", "root")]
    tree = children.breadth_first(root, [*below, member("leaf", "root")])
    assert [one.id for one in tree] == ["root", "inner", "leaf"]
