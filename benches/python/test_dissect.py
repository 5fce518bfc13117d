"""The comparison of systems."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import charts
import dissect
from servers import Server
from systems import SYSTEMS

FLOOD = {"arrived": 900, "rate": 5e5, "sender_rate": 6e5, "mean_us": 1234.0, "cpu_us": 4.25}
RESULT = {
    "floods": {1000: FLOOD},
    "sizes": {64: FLOOD, 1024: FLOOD},
    "sparse": {"percentiles_us": {"0.5": 50.0, "0.9": 60.0, "0.99": 80.0, "0.999": 99.0}},
}


def test_a_line_tells_rates_losses_and_cpu():
    machine = {"date": "today", "NATS": "2.9.10", "Linux": "6"}
    text = dissect.markdown(machine, {"NATS": RESULT}, {"Kestrel": "gone"}, dissect.QUICK)
    assert text.startswith("today: NATS 2.9.10, Linux 6.")
    assert "| NATS | 1,000 | 600k | 500k | 100 | 1234 | 4.25 | 50 | 80 |" in text
    assert "* Kestrel is left out: gone." in text


def test_every_system_is_in_every_picture_in_a_colour_of_its_own(tmp_path: Path):
    files = dissect.draw(dict.fromkeys(SYSTEMS, RESULT), tmp_path)
    for file in files:
        drawn = (tmp_path / file).read_text()
        assert all(f">{name}</text>" in drawn for name in SYSTEMS), file
    assert len(set(charts.colours_of(SYSTEMS).values())) == len(SYSTEMS)


def test_a_server_counts_what_all_processes_of_its_session_take():
    burn = "import time\nwhile time.process_time() < 0.05: pass\nprint(flush=True); time.sleep(60)"
    script = f"{sys.executable} -c '{burn}' & wait"
    with subprocess.Popen(
        ["sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        assert Server("", "", shell.pid).cpu_ns() >= 40_000_000
        os.killpg(shell.pid, signal.SIGKILL)
