"""Names of peers and files: taken, stale, too long, stolen."""

from __future__ import annotations

import os
import socket

from .. import wire
from ..bench import Bench
from ..row import Failed, check, row
from ..subject import CallFailed

ROUTER = """
context = zmq.Context()
router = context.socket(zmq.ROUTER)
router.linger = 0
router.rcvtimeo = 20_000
{options}
router.bind("tcp://127.0.0.1:*")
router.last_endpoint.decode()
"""


@row()
def names_of_every_length(bench: Bench) -> None:
    """Peers with names of 0, 1, 255 and 256 bytes and with a leading 0: valid names work, the others are refused or
    replaced, and the process lives."""
    subject = bench.subject()
    endpoint = subject.run(ROUTER.format(options=""))
    for name in (b"", b"a", b"b" * 255):
        stream = wire.join(endpoint, b"DEALER", name)
        wire.shout(stream, wire.frame(0, b"hello"))
        got, body = subject.run("router.recv_multipart()")
        check(body == b"hello" and (got == name or not name), f"{got!r} instead of {name!r}")
        subject.run(f"router.send_multipart([{got!r}, b'answer'])")
        check(wire.read_frame(stream)[1] == b"answer", "the answer did not arrive")
        stream.close()
    for name in (b"c" * 256, b"\0reserved"):
        stream = wire.dial(endpoint)
        wire.shout(stream, wire.greeting() + wire.ready(b"DEALER", name) + wire.frame(0, b"x"))
        stream.close()
    stream = wire.join(endpoint, b"DEALER", b"last")
    wire.shout(stream, wire.frame(0, b"hello"))
    seen = subject.run(
        "got = []\nwhile not got or got[-1][0] != b'last': got.append(router.recv_multipart())\ngot"
    )
    check(all(len(name) <= 255 for name, _ in seen), "a name of 256 bytes is accepted")
    subject.run("router.close(); context.term()")
    subject.end()


@row()
def name_that_is_taken(bench: Bench) -> None:
    """Two live peers have one name at a ROUTER: the first keeps it, answers reach the first, the connections do not
    flap, and the second gets the name when the first leaves."""
    subject = bench.subject()
    endpoint = subject.run(ROUTER.format(options=""))
    zmq = bench.zmq
    sockets = []
    for body in (b"first", b"second"):
        dealer = bench.context.socket(zmq.DEALER)
        dealer.routing_id = b"name"
        dealer.reconnect_ivl = 10
        dealer.connect(endpoint)
        dealer.send(body)
        sockets.append(dealer)
        if body == b"first":
            check(subject.run("router.recv_multipart()") == [b"name", b"first"], "no message")
    first, second = sockets
    check(not subject.run("router.poll(300)"), "the second peer is heard under the taken name")
    for number in range(20):
        subject.run(f"router.send_multipart([b'name', b'{number}'])")
        check(first.recv() == b"%d" % number, "an answer did not reach the first peer")
    first.close()
    check(subject.run("router.recv_multipart()") == [b"name", b"second"], "the name is not free")
    second.close()
    subject.run("router.close(); context.term()")
    subject.end()


@row()
def name_that_changes_hands(bench: Bench) -> None:
    """Two live peers have one name at a ROUTER with ROUTER_HANDOVER: the newer has it, and at most 5 connections are
    made in half a second."""
    subject = bench.subject()
    endpoint = subject.run(ROUTER.format(options="router.router_handover = 1"))
    monitor = "monitor = router.get_monitor_socket(zmq.EVENT_ACCEPTED); monitor.rcvtimeo = 500"
    subject.run(monitor)
    sockets = []
    for body in (b"first", b"second"):
        dealer = bench.context.socket(bench.zmq.DEALER)
        dealer.routing_id = b"name"
        dealer.reconnect_ivl = 10
        dealer.connect(endpoint)
        dealer.send(body)
        sockets.append(dealer)
        got = subject.run("router.recv_multipart()")
        check(got == [b"name", body], f"{got} instead of {body!r}")
    accepted = subject.run("""
        end, accepted = time.monotonic() + 0.5, 0
        while time.monotonic() < end:
            router.poll(1)
            while monitor.poll(0):
                monitor.recv_multipart()
                accepted += 1
        accepted
    """)
    check(accepted <= 5, f"{accepted} connections were made")
    subject.run("router.disable_monitor(); context.destroy(linger=0)")


@row()
def stale_ipc_file(bench: Bench) -> None:
    """The file of a process that was killed: binding its path works."""
    endpoint = f"ipc://{bench.directory}/stale"
    first = bench.subject()
    bind = f"""
        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        pull.linger = 0
        pull.rcvtimeo = 20_000
        pull.bind({endpoint!r})
    """
    first.run(bind)
    first.kill()
    check(os.path.exists(bench.directory / "stale"), "no file is left")
    second = bench.subject()
    second.run(bind)
    push = bench.context.socket(bench.zmq.PUSH)
    push.connect(endpoint)
    push.send(b"hello")
    check(second.run("pull.recv()") == b"hello", "no message arrived")
    second.run("pull.close(); context.term()")
    second.end()
    check(not os.path.exists(bench.directory / "stale"), "the file remains after close()")


@row()
def ipc_path_in_use(bench: Bench) -> None:
    """A second process binds the ipc path of a live one: EADDRINUSE, and the first is still served."""
    endpoint = f"ipc://{bench.directory}/live"
    first, second = bench.subject(), bench.subject()
    bind = f"""
        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        pull.linger = 0
        pull.rcvtimeo = 2000
        pull.bind({endpoint!r})
    """
    first.run(bind)
    try:
        second.run(bind)
    except CallFailed as fault:
        check(fault.errno == 98, str(fault))
    else:
        raise Failed("the second bind takes the path from the first process")
    push = bench.context.socket(bench.zmq.PUSH)
    push.connect(endpoint)
    push.send(b"hello")
    check(first.run("pull.recv()") == b"hello", "no message arrived")


@row()
def abstract_ipc_name(bench: Bench) -> None:
    """An abstract ipc name carries messages, is refused with EADDRINUSE while it is bound, and is free again after a
    kill."""
    endpoint = f"ipc://@zf-{os.getpid()}"
    bind = f"""
        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        pull.linger = 0
        pull.rcvtimeo = 20_000
        pull.bind({endpoint!r})
    """
    first = bench.subject()
    first.run(bind)
    try:
        bench.subject().run(bind)
    except CallFailed as fault:
        check(fault.errno == 98, str(fault))
    else:
        raise Failed("two processes have one name")
    first.kill()
    second = bench.subject()
    second.run(bind)
    push = bench.context.socket(bench.zmq.PUSH)
    push.connect(endpoint)
    push.send(b"hello")
    check(second.run("pull.recv()") == b"hello", "no message arrived")
    push.close()


@row()
def ipc_file_removed_while_bound(bench: Bench) -> None:
    """The file of a bound socket is removed: connected peers are served, and closing works."""
    endpoint = f"ipc://{bench.directory}/gone"
    subject = bench.subject()
    subject.run(f"""
        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        pull.linger = 0
        pull.rcvtimeo = 20_000
        pull.bind({endpoint!r})
    """)
    push = bench.context.socket(bench.zmq.PUSH)
    push.connect(endpoint)
    push.send(b"before")
    check(subject.run("pull.recv()") == b"before", "no message arrived")
    os.unlink(bench.directory / "gone")
    # Another program's file has the name now, and stays.
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(bench.directory / "gone"))
        push.send(b"after")
        check(subject.run("pull.recv()") == b"after", "no message arrived")
        subject.run("pull.close(); context.term()")
        subject.end()
    push.close()


@row()
def port_in_use(bench: Bench) -> None:
    """Binds a port that a plain program listens on: EADDRINUSE, and the socket can bind another one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        subject = bench.subject()
        subject.run("context = zmq.Context(); pull = context.socket(zmq.PULL)")
        try:
            subject.run(f"pull.bind('tcp://127.0.0.1:{taken.getsockname()[1]}')")
        except CallFailed as fault:
            check(fault.errno == 98, str(fault))
        else:
            raise Failed("no error")
        subject.run("pull.bind('tcp://127.0.0.1:*'); context.destroy(linger=0)")
        subject.end()
