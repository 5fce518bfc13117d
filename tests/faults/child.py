"""Runs one row on one binding in this process, and prints the result: `python -m faults.child ROW MODULE SEED SIZE`."""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback

from .bench import Bench
from .row import MEMORY, Failed, Skipped, all_rows
from .subject import CallFailed

# The allocator of free-threaded Python keeps a gigabyte of address space in reserve.
os.environ |= {"MIMALLOC_ARENA_RESERVE": "0", "MIMALLOC_PURGE_DELAY": "0"}


def main(name: str, module: str, seed: str, size: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # Shells and containers often allow 1024.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    bench = Bench(module, size == "full", int(seed))
    outcome, text = "pass", ""
    try:
        all_rows()[name].run(bench)
        text = "; ".join(dict.fromkeys(bench.remarks))
    except Skipped as reason:
        outcome, text = "skip", str(reason)
    except (Failed, CallFailed) as fault:
        outcome, text = "fail", str(fault)
    except Exception as error:
        traceback.print_exc()
        outcome, text = "fail", f"{type(error).__name__}: {error}"
    print(json.dumps({"outcome": outcome, "text": text}), flush=True)
    # The processes under test end here; a binding that hangs at its end does not keep the result back.
    bench.end()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
