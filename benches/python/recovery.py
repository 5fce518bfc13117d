"""Measures how long each pattern of `zeroxide.patterns` takes to recover: `python benches/python/recovery.py`.

A peer is killed with SIGKILL, and the time from there to the next reply, value or chunk is taken. All times of the patterns
have their defaults. The median and the maximum of some repetitions are printed as the table in docs/patterns/index.md.
"""

import argparse
import contextlib
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "python"))

from pattern_peers import Peer, Peers

from zeroxide import PUB, SUB, Context, patterns


class Scene:
    """The peers of one repetition, their endpoints, and the time since the death of one of them."""

    def __init__(self, peers: Peers, folder: str) -> None:
        self._peers = peers
        self.folder = folder
        self.took = 0.0
        self._killed = 0.0

    def at(self, name: str) -> str:
        return f"ipc://{self.folder}/{name}"

    def start(self, kind: str, name: str = "", *, hangs: bool = False, **arguments: Any) -> Peer:
        return self._peers.start(kind, name, hangs=hangs, **arguments)

    def kill(self, peer: Peer) -> None:
        peer.kill()
        self._killed = time.monotonic()

    def recovered(self) -> None:
        self.took = time.monotonic() - self._killed

    def dies_with_request(self, victim: Peer, ask: Callable[[], object], then: Any = None) -> None:
        """Kills a peer that has a request, and waits for the reply."""
        thread = threading.Thread(target=ask)
        thread.start()
        while not victim.line().startswith("got"):
            pass
        self.kill(victim)
        if then is not None:
            then()
        thread.join()
        self.recovered()


def queue(scene: Scene, kind: str) -> Peer:
    return scene.start(kind, frontend=scene.at("front"), backend=scene.at("back"))


def lazy_pirate(scene: Scene) -> None:
    server = scene.start("SimplePirateQueue", frontend=scene.at("front"), backend=scene.at("back"))
    worker = scene.start("SimplePirateWorker", "dead", hangs=True, endpoint=scene.at("back"))

    def restart() -> None:
        server.kill()
        queue(scene, "SimplePirateQueue")
        scene.start("SimplePirateWorker", "new", endpoint=scene.at("back"))

    with patterns.LazyPirateClient(scene.at("front")) as client:
        scene.dies_with_request(worker, lambda: client.request(b"1"), restart)


def pirate_worker(scene: Scene, kind: str) -> None:
    queue(scene, f"{kind}PirateQueue")
    worker = scene.start(f"{kind}PirateWorker", "dead", hangs=True, endpoint=scene.at("back"))

    def another() -> None:
        scene.start(f"{kind}PirateWorker", "new", endpoint=scene.at("back"))

    with patterns.LazyPirateClient(scene.at("front")) as client:
        scene.dies_with_request(worker, lambda: client.request(b"1"), another)


def paranoid_queue(scene: Scene) -> None:
    broker = queue(scene, "ParanoidPirateQueue")
    scene.start("ParanoidPirateWorker", "worker", endpoint=scene.at("back"))
    with patterns.LazyPirateClient(scene.at("front"), attempts=None) as client:
        client.request(b"1")
        scene.kill(broker)
        queue(scene, "ParanoidPirateQueue")
        client.request(b"2")
        scene.recovered()


def majordomo_worker(scene: Scene, attempts: int) -> None:
    endpoint = scene.at("broker")
    scene.start("MajordomoBroker", endpoint=endpoint)
    worker = {"endpoint": endpoint, "service": "echo"}
    dead = scene.start("MajordomoWorker", "dead", hangs=True, **worker)
    # With one attempt that lasts, only the broker notices the death.
    options = {"attempts": attempts} if attempts > 1 else {"attempts": 1, "timeout": 60_000}
    with patterns.MajordomoClient(endpoint, **options) as client:
        scene.dies_with_request(
            dead,
            lambda: client.request("echo", b"1"),
            lambda: scene.start("MajordomoWorker", "new", **worker),
        )


def majordomo_broker(scene: Scene) -> None:
    endpoint = scene.at("broker")
    broker = scene.start("MajordomoBroker", endpoint=endpoint)
    scene.start("MajordomoWorker", "worker", endpoint=endpoint, service="echo")
    with patterns.MajordomoClient(endpoint, attempts=None) as client:
        client.request("echo", b"1")
        scene.kill(broker)
        scene.start("MajordomoBroker", endpoint=endpoint)
        client.request("echo", b"2")
        scene.recovered()


def titanic(scene: Scene) -> None:
    mdp = {"endpoint": scene.at("broker")}
    spool = {"folder": f"{scene.folder}/spool"}
    scene.start("MajordomoBroker", **mdp)
    server = scene.start("TitanicServer", **mdp, **spool)
    with patterns.TitanicClient(scene.at("broker"), attempts=None) as client:
        name = client.submit("echo", b"1")
        scene.kill(server)
        scene.start("TitanicServer", **mdp, **spool)
        scene.start("MajordomoWorker", "worker", service="echo", **mdp)
        while client.fetch(name) is None:
            time.sleep(0.01)
        scene.recovered()


def freelance(scene: Scene, server: str, client: str) -> None:
    endpoints = [scene.at("dead"), scene.at("living")]
    dead = scene.start(server, "dead", hangs=True, endpoint=endpoints[0])
    with getattr(patterns, client)(endpoints) as asker:
        scene.dies_with_request(
            dead,
            lambda: asker.request(b"1"),
            lambda: scene.start(server, "living", endpoint=endpoints[1]),
        )


def failover(scene: Scene) -> None:
    fronts = [scene.at("dead"), scene.at("living")]
    for front in fronts:
        scene.start("SimplePirateQueue", frontend=front, backend=f"{front}-workers")
    dead = scene.start("SimplePirateWorker", "dead", hangs=True, endpoint=f"{fronts[0]}-workers")
    scene.start("SimplePirateWorker", "living", endpoint=f"{fronts[1]}-workers")
    with patterns.FailoverClient(fronts) as client:
        scene.dies_with_request(dead, lambda: client.request(b"1"))


def pair(scene: Scene, is_primary: bool) -> dict[str, Any]:
    names = ("primary", "backup") if is_primary else ("backup", "primary")
    return {
        "endpoint": scene.at(names[0]),
        "is_primary": is_primary,
        "local": scene.at(f"state-of-{names[0]}"),
        "remote": scene.at(f"state-of-{names[1]}"),
    }


def binary_star(scene: Scene) -> None:
    primary = scene.start("BinaryStarServer", "primary", **pair(scene, True))
    scene.start("BinaryStarServer", "backup", **pair(scene, False))
    with patterns.BinaryStarClient([scene.at("primary"), scene.at("backup")]) as client:
        client.request(b"1")
        scene.kill(primary)
        client.request(b"2")
        scene.recovered()


def clone(scene: Scene) -> None:
    primary = scene.start("CloneServer", peer=scene.at("backup"), **pair(scene, True))
    scene.start("CloneServer", peer=scene.at("primary"), **pair(scene, False))
    with patterns.CloneClient([scene.at("primary"), scene.at("backup")]) as client:
        client.set("key", b"1")
        while client.values.get("key") != b"1":
            client.wait()
        scene.kill(primary)
        client.set("key", b"2")
        while client.values.get("key") != b"2":
            client.wait()
        scene.recovered()


def last_value(scene: Scene) -> None:
    ends = {name: scene.at(name) for name in ("publishers", "subscribers")}
    cache = scene.start("LastValueCache", **ends)
    with Context() as context, context.socket(PUB) as pub, context.socket(SUB) as sub:
        pub.connect(ends["publishers"])
        sub.subscribe(b"A")
        sub.connect(ends["subscribers"])
        for is_restarted in (False, True):
            if is_restarted:
                scene.kill(cache)
                scene.start("LastValueCache", **ends)
                while sub.poll(0):
                    sub.recv_multipart()
            pub.send_multipart([b"A", b"value"])
            while not sub.poll(1):
                pub.send_multipart([b"A", b"value"])
        scene.recovered()


def files(scene: Scene) -> None:
    Path(scene.folder, "file").write_bytes(bytes(10_000_000))
    arguments = {"endpoint": scene.at("files"), "folder": scene.folder}
    server = scene.start("FileServer", **arguments)
    with patterns.FileClient(scene.at("files")) as client:
        chunks = client.fetch("file")
        for _ in range(10):
            next(chunks)
        scene.kill(server)
        scene.start("FileServer", **arguments)
        for _ in range(11):  # the chunks that had arrived before, and another one
            next(chunks)
        scene.recovered()


SCENES: dict[str, tuple[str, Callable[[Scene], None]]] = {
    "Lazy Pirate": ("the server, with the request; it restarts", lazy_pirate),
    "Simple Pirate": ("the worker with the request", lambda s: pirate_worker(s, "Simple")),
    "Paranoid Pirate, worker": (
        "the worker with the request",
        lambda s: pirate_worker(s, "Paranoid"),
    ),
    "Paranoid Pirate, queue": ("the queue; it restarts", paranoid_queue),
    "Majordomo, worker": ("the worker with the request", lambda s: majordomo_worker(s, 3)),
    "Majordomo, worker, seen by the broker": (
        "the worker with the request, whose client does not ask again",
        lambda s: majordomo_worker(s, 1),
    ),
    "Majordomo, broker": ("the broker; it restarts", majordomo_broker),
    "Titanic": ("the server, with a stored request; it restarts", titanic),
    "Freelance, model 1": ("the server with the request", failover),
    "Freelance, model 2": (
        "one server, with the request",
        lambda s: freelance(s, "ShotgunServer", "ShotgunClient"),
    ),
    "Freelance, model 3": (
        "the server with the request",
        lambda s: freelance(s, "FreelanceServer", "FreelanceClient"),
    ),
    "Binary Star": ("the active server", binary_star),
    "Clone": ("the active server, before an update", clone),
    "Last value cache": ("the cache; it restarts", last_value),
    "File transfer": ("the server; it restarts", files),
}


@contextlib.contextmanager
def scene() -> Iterator[Scene]:
    peers = Peers()
    try:
        with tempfile.TemporaryDirectory(prefix="zx") as folder:
            yield Scene(peers, folder)
    finally:
        peers.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", default="", help="scenes whose name contains this text")
    options = parser.parse_args()
    print("| pattern | what is killed | median | maximum |")
    print("| --- | --- | ---: | ---: |")
    for name, (victim, play) in SCENES.items():
        if options.only not in name:
            continue
        times = []
        for _ in range(options.repeat):
            with scene() as stage:
                play(stage)
                times.append(stage.took)
        median, most = statistics.median(times), max(times)
        print(f"| {name} | {victim} | {median:.2f} s | {most:.2f} s |", flush=True)


if __name__ == "__main__":
    main()
