"""A short run of tests/soak/soak.py, which kills every process; the full run is `make soak`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).resolve().parents[1] / "soak" / "soak.py"


def soak(*arguments, limit):
    done = subprocess.run(
        [sys.executable, SOAK, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        timeout=limit,
    )
    assert done.returncode == 0, done.stdout
    assert "exact: " in done.stdout.splitlines()[-1]


@pytest.mark.timeout(300)
def test_driver_producer_and_collector_are_killed(java):
    what = ("--kill", "first,producer,collector", "--master", "local[2]")
    soak("--messages", 50_000, "--rate", 2_500, "--per-trigger", 5_000, *what, limit=290)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("master", "starting"), [("local-cluster[2,1,1024]", "earliest"), ("standalone", "latest")]
)
def test_executors_are_killed(java, master, starting):
    what = ("--kill", "first,executor,collector,driver,executor", "--master", master)
    soak("--messages", 200_000, "--rate", 4_000, *what, "--starting", starting, limit=580)
