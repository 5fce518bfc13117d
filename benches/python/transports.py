"""Transports beyond tcp without Python, beside the programs that set the pace: `python benches/python/transports.py
[--quick] [--only ws]`.

ws is compared with libzmq's, tls+tcp with rustls alone over a bare connection, and epgm with libzmq's OpenPGM, at the rate
that both are set to. The programs are those of native.py. libzmq has ws only among its drafts, so that one is built here;
the libzmq with OpenPGM is the system's.
"""

from __future__ import annotations

import ctypes.util
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import native
import report
from native import LIBZMQ, OURS, ROOT, Bench, Program, throughput

sys.path.append(str(ROOT / "tools"))
sys.path.append(str(ROOT / "tests" / "python"))
import libzmq_drafts
from certificates import Authority

WS = "ws beside libzmq's: PUSH/PULL, messages per second"
TLS = "tls+tcp beside rustls alone: PUSH/PULL"
MULTICAST = "epgm beside libzmq's OpenPGM: PUB/SUB at a set rate"

MULTICAST_KBITS = 100_000
MULTICAST_GROUP = "239.192.7.9:5555"
INTERFACE, ADDRESSES = "wire", ("10.79.0.1", "10.79.0.2")


def main() -> int:
    arguments = native.parse(__doc__)
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    settings = native.QUICK if arguments.quick else native.FULL
    ours = native.build_rust(arguments.profile)
    rows: list[report.Row] = []
    started = time.monotonic()
    for table in (websockets, tls, multicast):
        bench = Bench({OURS: ours}, settings, arguments.only)
        table(bench, out)
        rows += bench.rows
    if not rows:
        print(f"no heading holds {arguments.only!r}")
        return 0
    results = {
        "machine": report.machine([], {OURS: f"{native.version(ours)} ({arguments.profile})"}),
        "settings": vars(settings),
        "labels": [LIBZMQ, OURS],
        "rows": report.as_json(rows),
    }
    (out / "transports.json").write_text(json.dumps(results, indent=1) + "\n")
    (out / "transports.md").write_text(report.markdown(results))
    missed = sum(bool(row.missed) for row in rows)
    print(f"\n{len(rows)} rows in {time.monotonic() - started:.0f} s, {missed} below their target")
    print(f"written: {out}/transports.json and transports.md")
    return 0


def websockets(bench: Bench, out: Path) -> None:
    if not bench.wants(WS):
        return
    bench.heading(WS)
    folder = out / "libzmq-drafts"
    library = folder / libzmq_drafts.LIBRARY.name
    if not library.exists():
        libzmq_drafts.build(folder, "Release", "-O2 -w")
    found = (f"-I{folder}/include", str(library), f"-Wl,-rpath,{folder}")
    theirs = native.build_c(out / "libzmq-with-drafts", *found)
    tcp = bench.programs[OURS]
    bench.programs = on("ws://127.0.0.1:*", {LIBZMQ: theirs, OURS: tcp})
    runs = bench.run(bench.stream(1024, 1, 1))
    bench.row(WS, "1 KiB", "msgs/s", "rate", runs, targets=(2.0,))
    bench.programs = {OURS: tcp}
    bare = bench.row(WS, "1 KiB over tcp", "msgs/s", "rate", bench.run(bench.stream(1024, 1, 1)))
    share = native.scaled({OURS: runs[OURS]}, "rate", 1 / (bare.medians[OURS] or 1.0))
    bench.row(WS, "1 KiB, of tcp", "x", "x", share, bound=0.7)


def tls(bench: Bench, out: Path) -> None:
    if not bench.wants(TLS):
        return
    bench.heading(TLS)
    if shutil.which("openssl") is None:
        print("skipped: no openssl here, which makes the certificates")
        return
    with tempfile.TemporaryDirectory(prefix="zeroxide-bench-") as folder:
        Authority(Path(folder)).issue("server", "IP:127.0.0.1")
        settings = {
            "ZEROXIDE_BENCH_BIND": "tls+tcp://127.0.0.1:*",
            "ZEROXIDE_BENCH_CERTIFICATES": folder,
        }
        bench.programs = {OURS: bench.programs[OURS].with_settings(**settings)}
        size = 16384
        alone = bench.run(bench.stream(size, 1, 1, raw="tls_"))
        runs = bench.run(bench.stream(size, 1, 1))
    bench.row(TLS, "16 KiB", "msgs/s", "rate", runs)
    bare = bench.row(TLS, "16 KiB, rustls alone", "msgs/s", "rate", alone)
    share = native.scaled(runs, "rate", 1 / (bare.medians[OURS] or 1.0))
    bench.row(TLS, "16 KiB, of rustls alone", "x", "x", share, bound=1 / 1.3)


def multicast(bench: Bench, out: Path) -> None:
    if not bench.wants(MULTICAST):
        return
    bench.heading(MULTICAST)
    programs = {OURS: bench.programs[OURS]}
    if name := ctypes.util.find_library("zmq"):
        header = out / "libzmq-drafts" / "include"
        found = (f"-I{header}", f"-l:{name}")
        theirs = native.build_c(out / "libzmq-with-pgm", *found)
        programs = {LIBZMQ: theirs, **programs} if theirs else programs
    else:
        print("libzmq is left out: not installed (Debian: libzmq5)")
    with networks() as under:
        if not under:
            print("skipped: no network namespaces (root, iproute2)")
            return
        bench.programs = {
            label: program.with_settings(ZEROXIDE_BENCH_RATE=str(MULTICAST_KBITS))
            for label, program in programs.items()
        }
        places = [f"epgm://{address};{MULTICAST_GROUP}" for address in ADDRESSES]
        with_places = tuple(
            (*words, "env", f"ZEROXIDE_BENCH_BIND={place}")
            for words, place in zip(under, places, strict=True)
        )
        roles = ("sub", "pub")
        measure = partial(
            throughput, settings=bench.settings, size=1000, roles=roles, under=with_places
        )
        runs = bench.run(measure)
    name = f"1000 B at {MULTICAST_KBITS // 1000} Mbit/s"
    bench.row(MULTICAST, name, "msgs/s", "rate", runs)
    targets = (0.5,)
    row = f"{name}, CPU of both processes per message"
    bench.row(MULTICAST, row, "us", "cpu_us", runs, targets=targets, less=True)


def on(endpoint: str, programs: dict[str, Program | None]) -> dict[str, Program]:
    """Returns the programs that there are, with the endpoint to bind."""
    return {
        label: program.with_settings(ZEROXIDE_BENCH_BIND=endpoint)
        for label, program in programs.items()
        if program is not None
    }


@contextmanager
def networks() -> Iterator[tuple[tuple[str, ...], ...]]:
    """Makes two namespaces that a cable connects. Yields the words that start a program in each, or none."""
    names = [f"zx-bench-{time.monotonic_ns()}-{side}" for side in (0, 1)]
    inside = [("ip", "netns", "exec", name) for name in names]
    made = [("ip", "netns", "add", name) for name in names]
    cable = ("type", "veth", "peer", "name", INTERFACE, "netns", names[1])
    made.append((*inside[0], "ip", "link", "add", INTERFACE, *cable))
    for within, address in zip(inside, ADDRESSES, strict=True):
        made += [
            (*within, "ip", "address", "add", f"{address}/24", "dev", INTERFACE),
            (*within, "ip", "link", "set", "lo", "up"),
            (*within, "ip", "link", "set", INTERFACE, "up"),
            (*within, "ip", "route", "add", "239.0.0.0/8", "dev", INTERFACE),
        ]
    if shutil.which("ip") is None:
        yield ()
        return
    try:
        can = all(subprocess.run(words, capture_output=True).returncode == 0 for words in made)
        yield tuple(inside) if can else ()
    finally:
        for name in names:
            subprocess.run(("ip", "netns", "delete", name), capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
