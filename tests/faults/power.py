"""Cuts the power of a machine with a collector and producers, again and again, and checks what its disk kept.

    python -m faults.power --rounds 20 --seed 1         # in the folder `tests`

The machine is user-mode Linux with a disk of its own (tools/other_kernel.py). Its kernel is killed in the middle of the
work, so everything is lost that was not written to the disk: this is what fsync is for. After the next start:

* every row that was acknowledged is in the log,
* each producer's rows are there once, in order, without gaps,
* the position of a group is one that was committed (the collector saves it every five seconds), and within the log.

The acknowledgements go through a file of the host, which keeps them. The exit code is 1 if something was lost.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
other_kernel = importlib.import_module("other_kernel")

DISK_BYTES = 256 << 20
PATIENCE_S = 120


class Lost(Exception):
    """The disk does not have what it must have."""


def boot(mode: str, shared: Path, image: Path) -> other_kernel.Machine:
    guest = Path(__file__).with_name("power_guest.py")
    command = [sys.executable, str(guest), mode, str(other_kernel.DISK), str(shared)]
    return other_kernel.Machine(command, image, quiet=True)


def wait_for(path: Path, machine: other_kernel.Machine) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        if not machine.is_running() or time.monotonic() > deadline:
            raise Lost(f"the machine did not write {path.name}: {said(path.parent)}")
        time.sleep(0.02)


def said(shared: Path) -> str:
    errors = shared / "errors"
    return errors.read_text()[-2000:] if errors.exists() else "it printed no error"


def number(file: Path) -> int:
    """The number that the machine has written last."""
    return int.from_bytes(file.read_bytes(), "little") if file.exists() else 0


def promises(shared: Path) -> dict[str, int]:
    """The number of acknowledged rows of each producer, and the committed position of the group."""
    return {file.name: number(file) for file in shared.glob("promise-*")}


def check(shared: Path, promised: dict[str, int]) -> dict[str, int]:
    """Compares what the log had at the start with what was promised before; returns it."""
    found = json.loads((shared / "found").read_text())
    for text in found.pop("wrong"):
        raise Lost(text)
    group, committed = found.pop("group"), promised.pop("promise-group", 0)
    if group > min(committed, sum(found.values())):
        raise Lost(f"the group is at {group}, and {committed} was committed; the log has {found}")
    for file, least in promised.items():
        name = file.removeprefix("promise-")
        there = found[name]
        if there < least:
            raise Lost(f"{name}: {least} rows were acknowledged, and {there} are there")
    return found


def run(rounds: int, seed: int) -> int:
    """Returns the number of rows that were there at the end."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="zx-power-") as folder:
        shared, image = Path(folder, "shared"), Path(folder, "disk")
        shared.mkdir()
        with image.open("wb") as file:
            file.truncate(DISK_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        for turn in range(rounds):
            for name in ("found", "working"):
                (shared / name).unlink(missing_ok=True)
            promised = promises(shared)
            machine = boot("work", shared, image)
            try:
                wait_for(shared / "working", machine)
                found = check(shared, promised)
                time.sleep(chance.uniform(0.1, 1.5))
                if (shared / "errors").exists():
                    raise Lost(said(shared))
            finally:
                if machine.is_running():
                    machine.cut_power()
            print(f"round {turn + 1}: {found}", flush=True)
        (shared / "found").unlink()
        promised = promises(shared)
        if boot("look", shared, image).wait(PATIENCE_S) != 0:
            raise Lost(f"the last look failed: {said(shared)}")
        found = check(shared, promised)
        print(f"at the end: {found}", flush=True)
        return sum(found.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m faults.power", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if reason := other_kernel.why_not_with_disk():
        print(f"skipped: {reason}")
        return 0
    try:
        rows = run(given.rounds, given.seed)
    except Lost as lost:
        print(f"WRONG: {lost} (seed {given.seed})")
        return 1
    print(f"the power was cut {given.rounds} times, and all of {rows} rows are there once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
