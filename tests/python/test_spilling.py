"""Queues that overflow to disk: restarts, killed processes, full disks, and asyncio."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import PATIENCE, Background, eventually, run_script

LONG = 60_000

pytestmark = pytest.mark.zeroxide_only

# Sends numbers to a peer that is not there, and reports each.
SENDER = """
import sys
import zeroxide as zmq

folder, endpoint, first = sys.argv[1], sys.argv[2], int(sys.argv[3])
context = zmq.Context()
push = context.socket(zmq.PUSH)
push.sndhwm = 2
push.spill_dir = folder.encode()
push.spill_keep = 1
push.bind(endpoint)
number = first
while True:
    push.send(b"%d" % number)
    print(number, flush=True)
    number += 1
"""


def spilling(zmq, context, kind, folder: Path, **options):
    """A socket that keeps two messages for each peer in memory."""
    socket = context.socket(kind)
    socket.sndhwm = 2
    socket.spill_dir = bytes(folder)
    for name, value in options.items():
        setattr(socket, name, value)
    return socket


def test_options(zmq, context, directory):
    for kind in (zmq.PUSH, zmq.DEALER, zmq.PUB, zmq.XPUB, zmq.ROUTER):
        with context.socket(kind) as socket:
            assert (socket.spill_dir, socket.spill_bytes, socket.spill_keep) == (b"", 1 << 30, 0)
            socket.spill_dir = f"{directory}/{kind}".encode()
            assert socket.spill_dir.decode() == f"{directory}/{kind}"
    for kind in (zmq.REQ, zmq.REP, zmq.PULL, zmq.SUB, zmq.PAIR):
        with (
            context.socket(kind) as socket,
            pytest.raises(zmq.ZMQError, match="SPILL_DIR is an option of"),
        ):
            socket.spill_dir = bytes(directory)


def test_multipart_and_batches_in_order(zmq, context, directory):
    with spilling(zmq, context, zmq.PUSH, directory / "spill") as push:
        push.bind(f"ipc://{directory}/push")
        assert push.send_batch([[b"%d" % n, b"", b"x" * n] for n in range(200)]) == 200
        push.send_string("lent", copy=False)
        stats = push.stats()
        assert (stats["spilled"], stats["queued_out"]) == (201, 0)
        assert stats["spilled_bytes"] > 201 * 24
        with context.socket(zmq.PULL) as pull:
            pull.connect(f"ipc://{directory}/push")
            for n in range(200):
                assert pull.recv_multipart() == [b"%d" % n, b"", b"x" * n]
            assert pull.recv() == b"lent"
        assert push.stats()["spilled"] == 0


def test_a_killed_process_loses_and_repeats_nothing_on_disk(zmq, context, directory):
    endpoint = f"ipc://{directory}/push"
    folder = directory / "spill"
    received: list[int] = []
    first = 0
    for _ in range(3):
        command = [sys.executable, "-c", SENDER, str(folder), endpoint, str(first)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
            assert sender.stdout is not None
            for _ in range(500):
                last = int(sender.stdout.readline())
            sender.send_signal(signal.SIGKILL)
            # Messages that were sent before the signal and reported late.
            said = sender.stdout.read().split("\n")
            last = max([last, *(int(text) for text in said[:-1])])
        with spilling(zmq, context, zmq.PUSH, folder, spill_keep=1) as push:
            push.bind(endpoint)
            left = push.stats()["spilled"]
            # A last message may have been written whose call had not returned.
            assert left in (last - first + 1, last - first + 2)
            with context.socket(zmq.PULL) as pull:
                pull.connect(endpoint)
                received += [int(pull.recv()) for _ in range(left)]
            push.close(linger=0)
        first = received[-1] + 1
        assert received == list(range(first))


def test_a_receiver_reads_while_senders_are_killed(zmq, context, directory):
    endpoint = f"ipc://{directory}/push"
    folder = directory / "spill"
    received: list[int] = []
    with context.socket(zmq.PULL) as pull:
        pull.rcvhwm = 2
        pull.rcvtimeo = LONG
        pull.connect(endpoint)
        for first in (0, 100_000, 200_000):
            command = [sys.executable, "-c", SENDER, str(folder), endpoint, str(first)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
                assert sender.stdout is not None
                for _ in range(300):
                    sender.stdout.readline()
                received += [int(pull.recv()) for _ in range(100)]
                sender.send_signal(signal.SIGKILL)
                sender.stdout.read()
        with spilling(zmq, context, zmq.PUSH, folder, spill_keep=1) as push:
            push.bind(endpoint)
            push.send(b"-1")
            received += iter(lambda: int(pull.recv()), -1)
    # In order, and none twice. Those that were in memory or in the kernel may be missing.
    assert received == sorted(set(received))
    assert {number // 100_000 for number in received} == {0, 1, 2}


def test_kept_messages_of_a_router_go_to_the_peer_with_the_name(zmq, context, directory):
    endpoint = f"ipc://{directory}/router"
    options = {"spill_keep": 1, "router_mandatory": 1}
    with spilling(zmq, context, zmq.ROUTER, directory / "spill", **options) as router:
        router.bind(endpoint)
        with context.socket(zmq.DEALER) as dealer:
            dealer.rcvhwm = 1
            dealer.routing_id = b"ann"
            dealer.connect(endpoint)
            router.wait_connected(timeout=LONG)
            for number in range(2000):
                router.send_multipart([b"ann", b"%d" % number, b"x" * 2000])
            [peer] = router.stats()["peers"]
            assert peer["spilled"] > 100
        # A few more left the disk before the peer did.
        eventually(lambda: not router.stats()["peers"])
        on_disk = router.stats()["spilled"]
        assert router.close(timeout=0).messages >= on_disk
    with spilling(zmq, context, zmq.ROUTER, directory / "spill", **options) as router:
        router.bind(endpoint)
        assert router.stats()["spilled"] == on_disk
        with context.socket(zmq.DEALER) as other, context.socket(zmq.DEALER) as dealer:
            other.routing_id = b"bob"
            other.connect(endpoint)
            dealer.routing_id = b"ann"
            dealer.connect(endpoint)
            numbers = [int(dealer.recv_multipart()[0]) for _ in range(on_disk)]
            assert numbers == list(range(2000 - on_disk, 2000))
            assert other.poll(0) == 0
        router.close(linger=0)


def test_two_processes_cannot_share_a_folder(zmq, context, directory):
    command = [sys.executable, "-c", SENDER, str(directory / "spill"), f"ipc://{directory}/1", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout is not None
        sender.stdout.readline()
        with spilling(zmq, context, zmq.PUSH, directory / "spill") as push:
            with pytest.raises(zmq.ZMQError, match=f"process {sender.pid}") as caught:
                push.bind(f"ipc://{directory}/2")
            assert caught.value.errno == errno.EADDRINUSE
        sender.kill()
        sender.stdout.read()


def test_a_folder_that_cannot_be_used(zmq, context, directory):
    file = directory / "file"
    file.write_text("")
    with spilling(zmq, context, zmq.PUB, file) as socket:
        with pytest.raises(zmq.ZMQError, match=f"SPILL_DIR {file} cannot be used"):
            socket.bind(f"ipc://{directory}/pub")
        socket.spill_dir = bytes(directory / "good")
        socket.bind(f"ipc://{directory}/pub")
        with pytest.raises(zmq.ZMQError, match="cannot change after the bind"):
            socket.spill_keep = 1


@pytest.fixture
def small_disk(directory):
    """A file system of half a megabyte."""
    place = directory / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("keep", [0, 1])
def test_a_full_disk(zmq, context, directory, small_disk, keep):
    endpoint = f"ipc://{directory}/push"
    with spilling(zmq, context, zmq.PUSH, small_disk / "spill", spill_keep=keep) as push:
        push.bind(endpoint)
        sent = 0
        # To the last byte.
        for size in (10_000, 100, 0):
            with pytest.raises(zmq.ZMQError, match=f"SPILL_DIR {small_disk}/spill") as caught:
                while True:
                    push.send(b"%d" % sent + b"." * size, zmq.NOBLOCK)
                    sent += 1
            assert caught.value.errno == errno.ENOSPC
        push.send(b"a part", zmq.SNDMORE)
        with pytest.raises(zmq.ZMQError, match="begin again with the first part") as caught:
            push.send(b"the last part")
        assert caught.value.errno == errno.ENOSPC
        assert push.stats()["spilled"] == sent > 10
        # Nothing that was accepted is lost, and the socket goes on when there is room.
        with context.socket(zmq.PULL) as pull:
            pull.connect(endpoint)
            for number in range(sent):
                assert int(pull.recv().rstrip(b".")) == number
            push.send(b"more")
            assert pull.recv() == b"more"


def test_a_full_disk_of_a_publisher(zmq, context, directory, small_disk):
    # Each message has a file of its own.
    with spilling(zmq, context, zmq.PUB, small_disk / "spill", spill_bytes=1 << 20) as pub:
        pub.bind(f"ipc://{directory}/pub")
        with context.socket(zmq.SUB) as sub:
            sub.rcvhwm = 2
            sub.subscribe(b"")
            sub.connect(f"ipc://{directory}/pub")
            pub.wait_subscribed(timeout=LONG)
            sent = 0
            while not pub.stats()["dropped"]["disk"]:
                pub.send(b"%d" % sent + b"." * 100_000)
                sent += 1
            accepted = sent - 1
            for _ in range(50):
                pub.send(b"%d" % sent + b"." * 100_000)
                sent += 1
            # On a busy machine, a few of them find room that the connection has just made.
            lost = pub.stats()["dropped"]["disk"]
            assert 1 < lost <= 51
            assert len(list(small_disk.rglob("segment-*"))) <= sent - lost
            numbers = [int(sub.recv().rstrip(b".")) for _ in range(sent - lost)]
            assert numbers[:accepted] == list(range(accepted))
            assert numbers == sorted(set(numbers))
            assert pub.stats()["dropped"]["high_water"] == 0


def test_asyncio(zmq, directory):
    import zeroxide.asyncio as zaio

    async def main() -> None:
        with zaio.Context() as context, context.socket(zmq.PUSH) as push:
            push.sndhwm = 1
            push.spill_dir = bytes(directory / "spill")
            push.spill_bytes = 10_000
            push.bind(f"ipc://{directory}/push")

            async def send() -> None:
                for number in range(2000):
                    await push.send(b"%d" % number)

            task = asyncio.create_task(send())
            with context.socket(zmq.PULL) as pull:
                while not push.stats()["spilled"]:
                    await asyncio.sleep(0)
                pull.connect(f"ipc://{directory}/push")
                for number in range(2000):
                    assert await pull.recv() == b"%d" % number
                await task

    asyncio.run(asyncio.wait_for(main(), LONG / 1000))


def test_a_forked_child_leaves_the_messages_alone(zmq, context, directory):
    with spilling(zmq, context, zmq.PUSH, directory / "spill") as push:
        push.bind(f"ipc://{directory}/push")
        for number in range(10):
            push.send(b"%d" % number)
        child = os.fork()
        if child == 0:
            try:
                push.close()
                context.destroy()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        with context.socket(zmq.PULL) as pull:
            pull.connect(f"ipc://{directory}/push")
            assert [int(pull.recv()) for _ in range(10)] == list(range(10))


def test_messages_on_disk_are_reported_at_the_end_of_the_program(zmq, directory):
    _, errors = run_script(
        zmq.__name__,
        """
        import sys
        socket = zmq.Context().socket(zmq.PUSH)
        socket.sndhwm = 2
        socket.spill_dir = sys.argv[1].encode()
        socket.connect("tcp://127.0.0.1:1")
        for _ in range(5):
            socket.send(b"without a peer")
        """,
        f"{directory}/spill",
    )
    [line] = errors.splitlines()
    assert "2 to tcp://127.0.0.1:1" in line and f"3 to {directory}/spill" in line


def test_a_message_above_the_limit_is_sent_when_nothing_is_left_on_disk(zmq, context, directory):
    """Its sender waited although memory and disk were empty, in half of the attempts."""
    for number in range(20):
        endpoint = f"inproc://above-{number}"
        with (
            spilling(zmq, context, zmq.PUSH, directory / str(number), spill_bytes=200) as push,
            context.socket(zmq.PULL) as pull,
        ):
            push.sndhwm = pull.rcvhwm = 1
            push.bind(endpoint)
            pull.connect(endpoint)
            sent = 0
            with pytest.raises(zmq.Again):
                while True:
                    push.send(b"small", zmq.NOBLOCK)
                    sent += 1
            sender = Background(push.send, b"large" * 200)
            for _ in range(sent):
                assert pull.recv() == b"small"
                # The sender's queue on disk becomes empty meanwhile.
                time.sleep(0.005)
            assert pull.recv() == b"large" * 200
            sender.result()


@pytest.mark.parametrize("kind", ["PUB", "ROUTER"])
def test_unbind_reports_the_messages_on_disk_for_its_peers(zmq, context, directory, kind):
    endpoint = f"ipc://{directory}/end"
    sender = spilling(zmq, context, getattr(zmq, kind), directory / "spill")
    sender.bind(endpoint)
    receiver = context.socket(zmq.SUB if kind == "PUB" else zmq.DEALER)
    receiver.rcvhwm = 1
    receiver.linger = 0
    if kind == "PUB":
        receiver.subscribe("")
    else:
        receiver.routing_id = b"peer"
    receiver.connect(endpoint)
    if kind == "PUB":
        sender.wait_subscribed()
    else:
        sender.wait_connected()
    for _ in range(100):
        sender.send_multipart([b"peer", bytes(10_000)])
    before = sender.stats()
    assert before["spilled"] > 0
    sender.unbind(endpoint)
    after = sender.stats()
    assert after["spilled"] == 0 and after["dropped"]["lingered"] >= before["spilled"]
    receiver.close()
    assert sender.close(timeout=int(PATIENCE * 1000)).messages >= before["spilled"]


def test_kept_messages_stay_on_disk_while_no_peer_is_there(zmq, context, directory):
    """Those in memory would be lost with the socket."""
    endpoint = f"ipc://{directory}/pull"
    options = {"spill_keep": 1, "linger": 0}
    with spilling(zmq, context, zmq.PUSH, directory / "spill", **options) as push:
        push.connect(endpoint)
        for number in range(10):
            push.send(b"%d" % number)
        kept = push.stats()["spilled"]
        assert kept == 8
    for _ in range(3):
        with spilling(zmq, context, zmq.PUSH, directory / "spill", **options) as push:
            push.connect(endpoint)
            push.send(b"and another")
            kept += 1
            with pytest.raises(zmq.Again):
                push.flush(50)
            assert push.stats()["spilled"] == kept
    with (
        spilling(zmq, context, zmq.PUSH, directory / "spill", **options) as push,
        context.socket(zmq.PULL) as pull,
    ):
        pull.bind(endpoint)
        push.connect(endpoint)
        received = [pull.recv() for _ in range(kept)]
        assert received == [b"%d" % number for number in range(2, 10)] + [b"and another"] * 3


def test_room_that_a_lost_file_leaves_can_be_seen(zmq, context, directory):
    push = spilling(zmq, context, zmq.PUSH, directory / "spill", spill_bytes=5000)
    push.bind("inproc://lost-file")
    pull = context.socket(zmq.PULL)
    pull.rcvhwm = 1
    pull.connect("inproc://lost-file")
    with pytest.raises(zmq.Again):
        while True:
            push.send(bytes(500), zmq.NOBLOCK)
    [segment] = (directory / "spill").glob("queue-*/segment-*")
    os.truncate(segment, 0)
    for _ in range(2):
        pull.recv()
    # Some of them fill the memory.
    for _ in range(5):
        assert push.poll(int(PATIENCE * 1000), zmq.POLLOUT)
        push.send(b"new", zmq.NOBLOCK)
    push.close(linger=0)


def test_linger_counts_once(zmq, context, directory):
    """It began anew when the time for the messages on disk was up."""
    own = zmq.Context()
    push = spilling(zmq, own, zmq.PUSH, directory / "spill", linger=2000)
    push.bind(f"ipc://{directory}/push")
    pull = context.socket(zmq.PULL)
    pull.rcvhwm = 1
    pull.connect(f"ipc://{directory}/push")
    push.wait_connected()
    for _ in range(200):
        push.send(bytes(10_000))
    start = time.monotonic()
    push.close()
    own.term()
    assert 1.9 < time.monotonic() - start < 3.9
