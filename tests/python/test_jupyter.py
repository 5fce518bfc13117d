"""The IPython kernel and its client, unmodified."""

import subprocess
import sys

import pytest
from support import finish_script

PROGRAM = """
import zmq
from jupyter_client.manager import KernelManager


def run(client, code, on_output=lambda text: None):
    '''Executes code in the kernel and returns how it ended and what it printed.'''
    printed = []

    def hook(message):
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])
            on_output(printed[-1])

    reply = client.execute_interactive(code, timeout=60, output_hook=hook)
    return reply["content"]["status"], "".join(printed)


manager = KernelManager(kernel_name="python3")
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready(timeout=60)
print(*run(client, "import zmq; print(6 * 7, zmq.Context.__module__.partition('.')[0], end='')"))
print(*run(client, "import time; print('begun', flush=True); time.sleep(60)",
           lambda text: manager.interrupt_kernel()), end="")
print(*run(client, "kept = 5; print(kept, end='')"))
manager.restart_kernel()
client.wait_for_ready(timeout=60)
print(*run(client, "print('kept' in globals(), end='')"))
client.stop_channels()
manager.shutdown_kernel()
print(manager.is_alive(), zmq.Context.__module__.partition(".")[0])
"""


def test_kernel(zmq):
    """A cell, an interrupt, a restart and the shutdown, with zeroxide on both sides."""
    pytest.importorskip("ipykernel")
    pytest.importorskip("jupyter_client")
    through = [] if zmq.__name__ == "zmq" else ["-m", f"{zmq.__name__}.as_zmq", "--subprocesses"]
    process = subprocess.Popen(
        [sys.executable, *through, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    output, _errors = finish_script(process)
    assert output.splitlines() == [
        f"ok 42 {zmq.__name__}",
        "error begun",
        "ok 5",
        "ok False",
        f"False {zmq.__name__}",
    ]
