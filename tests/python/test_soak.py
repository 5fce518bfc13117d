"""The soak of sockets: a short run is level, and planted faults are found."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytestmark = pytest.mark.zeroxide_only

SOAK = Path(__file__).resolve().parents[1] / "soak"


@pytest.fixture
def soak(monkeypatch):
    monkeypatch.syspath_prepend(str(SOAK))
    import sockets

    return sockets


def test_a_short_run_is_level(soak, capsys):
    assert soak.main(["--minutes", "0", "--seed", "1"]) == 0, capsys.readouterr().out


def test_each_load_has_so_many_rounds(soak, monkeypatch, capsys):
    turns = []
    loads = [lambda bench: turns.append(bench.patience_ms) for _ in range(3)]
    monkeypatch.setattr(soak, "LOADS", loads)
    assert soak.main(["--rounds", "2", "--patience", "1.5"]) == 0
    assert turns == [1500] * 6
    assert "FINE" in capsys.readouterr().out


@pytest.mark.parametrize("leaked", ["memory", "descriptors", "threads"])
def test_a_leak_is_found(soak, leaked):
    kept, ended = [], threading.Event()

    def leak(bench):
        if leaked == "memory":
            kept.append(b"x" * (4 << 20))
        elif leaked == "descriptors":
            kept.append(open(os.devnull))  # noqa: SIM115
        else:
            threading.Thread(target=ended.wait).start()

    soak.SETTLE_S = 0.01
    samples, rounds = soak.run([leak], 0, seed=1, least=16)
    ended.set()
    problems = soak.report(samples, rounds)
    assert len(problems) == 1 and problems[0].startswith(leaked)
    for file in kept:
        getattr(file, "close", lambda: None)()


def test_a_wrong_message_is_found(soak):
    def swap(bench):
        with bench.sockets(soak.zmq.PULL, soak.zmq.PUSH) as (pull, push):
            push.send(b"one")
            push.send(b"two")
            if [pull.recv(), pull.recv()] != [b"two", b"one"]:
                raise soak.Wrong("one before two")

    with pytest.raises(soak.Wrong, match="swap, round 0: one before two"):
        soak.run([swap], 0, seed=1)


def test_a_load_that_stalls_is_named(soak):
    program = """
import threading, sockets

def stalls(bench):
    threading.Event().wait()

sockets.run([stalls], 0, seed=1, patience=0.1)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SOAK)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 1
    assert "in stalls" in ended.stderr
