"""No sequence of frames makes a peer of a pattern raise an error."""

import itertools

import pytest
from pattern_peers import commands

from zeroxide.patterns._binary_star import BinaryStarMachine
from zeroxide.patterns._binary_star_state import PairState
from zeroxide.patterns._clone_client import CloneClientMachine
from zeroxide.patterns._clone_server import CloneServerMachine
from zeroxide.patterns._file_client import FileClientMachine
from zeroxide.patterns._file_server import Chunk, FileServerMachine
from zeroxide.patterns._freelance import FreelanceClientMachine, FreelanceServerMachine
from zeroxide.patterns._heartbeat import Backoff
from zeroxide.patterns._last_value import LastValueMachine
from zeroxide.patterns._majordomo_broker import BrokerMachine
from zeroxide.patterns._majordomo_client import MajordomoClientMachine
from zeroxide.patterns._majordomo_worker import MajordomoWorkerMachine
from zeroxide.patterns._mdp import MDP_0_1, MDP_0_2
from zeroxide.patterns._paranoid_pirate import ParanoidQueueMachine, ParanoidWorkerMachine
from zeroxide.patterns._shotgun import ShotgunClientMachine, ShotgunServerMachine
from zeroxide.patterns._simple_pirate import SimpleQueueMachine, SimpleWorkerMachine
from zeroxide.patterns._spool import Spool
from zeroxide.patterns._titanic_server import TitanicMachine

pytestmark = pytest.mark.zeroxide_only

BEATS = (1000, 3, Backoff(1000, 1000), 0)


def worker(protocol, service="echo"):
    return MajordomoWorkerMachine(protocol, service, *BEATS)


def titanic(tmp_path):
    services = ("titanic.request", "titanic.reply", "titanic.close")
    workers = {service: worker(MDP_0_1, service) for service in services}
    return TitanicMachine(
        Spool(tmp_path, 10), workers, MajordomoClientMachine(MDP_0_1, 1000, 1), 1000, 0
    )


def clone_pair(_):
    return CloneServerMachine(PairState(False, 1000, 0), 1000, 10, 0)


def asking(machine):
    machine.begin([b"request"], 0)
    return machine


def fetching(machine):
    machine.begin("name", 0)
    return machine


# Each machine with its links, and the words of its protocol.
MACHINES = {
    "simple queue": (lambda _: SimpleQueueMachine(), ("frontend", "backend"), [b"\x01"]),
    "simple worker": (lambda _: SimpleWorkerMachine(), ("queue",), [b"\x01"]),
    "paranoid queue": (
        lambda _: ParanoidQueueMachine(1000, 3),
        ("frontend", "backend"),
        [b"\x01", b"\x02"],
    ),
    "paranoid worker": (lambda _: ParanoidWorkerMachine(*BEATS), ("queue",), [b"\x02"]),
    "broker 0.1": (
        lambda _: BrokerMachine(1000, 3, 1000, 10),
        ("peers",),
        [b"MDPC01", b"MDPW01", b"\x01", b"\x03", b"\x04", b"\x05", b"mmi.service"],
    ),
    "broker 0.2": (
        lambda _: BrokerMachine(1000, 3, 1000, 10),
        ("peers",),
        [b"MDPC02", b"MDPW02", b"\x01", b"\x03", b"\x04", b"\x05", b"\x06"],
    ),
    "worker 0.1": (
        lambda _: worker(MDP_0_1),
        ("queue",),
        [b"MDPW01", b"\x02", b"\x04", b"\x05"],
    ),
    "worker 0.2": (
        lambda _: worker(MDP_0_2),
        ("queue",),
        [b"MDPW02", b"\x02", b"\x05", b"\x06"],
    ),
    "titanic": (
        titanic,
        ("titanic.request", "titanic.reply", "titanic.close", "client"),
        [b"MDPW01", b"MDPC01", b"\x02"],
    ),
    "freelance client": (
        lambda _: asking(FreelanceClientMachine([b"s"], 1000, 3000, 1000, 3000)),
        ("servers",),
        [b"s", b"PONG", b"1"],
    ),
    "freelance server": (lambda _: FreelanceServerMachine(), ("clients",), [b"PING"]),
    "shotgun client": (lambda _: asking(ShotgunClientMachine(2, 1000)), ("0", "1"), [b"1"]),
    "shotgun server": (lambda _: ShotgunServerMachine(), ("clients",), [b"1"]),
    "binary star": (
        lambda _: BinaryStarMachine(PairState(True, 1000, 0), None),
        ("clients", "peer"),
        [b"2"],
    ),
    "clone server": (
        lambda _: CloneServerMachine(None, 1000, 10, 0),
        ("snapshots", "collector"),
        [b"ICANHAZ?", b"ICANHAZ!", bytes(8), b"HUGZ", b"KTHXBAI", b"ttl=1\n"],
    ),
    "clone pair": (
        clone_pair,
        ("snapshots", "collector", "published", "mirror"),
        [bytes(8), b"HUGZ", b"KTHXBAI", b"ttl=1\n"],
    ),
    "clone client": (
        lambda _: CloneClientMachine(2, b"", 5000, 1000, 0),
        ("snapshots", "updates"),
        [bytes(8), b"\xff" * 8, b"HUGZ", b"KTHXBAI"],
    ),
    "last value": (
        lambda _: LastValueMachine(10),
        ("publishers", "subscribers"),
        [b"\x00", b"\x01", b"\x01a", b"\x02"],
    ),
    "file server": (
        lambda _: FileServerMachine(lambda name, offset, size: Chunk(b"v", 1, b"x")),
        ("clients",),
        [b"fetch", b"0", b"1"],
    ),
    "file client": (
        lambda _: fetching(FileClientMachine(10, 3, 1000, 3)),
        ("server",),
        [b"chunk", b"error", b"0", b"20"],
    ),
}


@pytest.mark.parametrize("kind", MACHINES)
def test_any_frames_are_survived(tmp_path, kind):
    make, links, words = MACHINES[kind]
    machine = make(tmp_path)
    frames = [b"", b"\xff", *words]
    for count in range(1, 6):
        for number, parts in enumerate(itertools.product(frames, repeat=count)):
            if number >= 10_000:
                break
            for link in links:
                if not machine.wants(link):
                    continue
                machine.handle_message(link, list(parts), number)
                poll = getattr(machine, "poll_request", lambda: None)
                if (request := poll()) is not None:
                    assert request
                    machine.handle_reply(request, [b"reply"], number)
        machine.handle_timeout(number + 1)
        commands(machine)
