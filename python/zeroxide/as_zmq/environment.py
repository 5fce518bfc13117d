"""Tells a new Python process that zmq means zeroxide.

Every interpreter imports ``sitecustomize`` when it starts. The folder `startup`, which
holds one, comes first on its ``PYTHONPATH``.
"""

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path

__all__ = ["VARIABLE", "extend", "extend_own"]

# "1" for the process that is started, "all" for those that it starts, too.
VARIABLE = "ZEROXIDE_AS_ZMQ"

_STARTUP = str(Path(__file__).parent / "startup")


def extend(environment: MutableMapping[str, str], *, once: bool = False) -> None:
    """Makes zmq mean zeroxide in processes with `environment`.

    With `once`, this does not include the processes that these start.
    """
    path = environment.get("PYTHONPATH", "")
    if path.split(os.pathsep)[0] != _STARTUP:
        environment["PYTHONPATH"] = f"{_STARTUP}{os.pathsep}{path}" if path else _STARTUP
    environment[VARIABLE] = "1" if once else "all"


def extend_own() -> None:
    """Makes zmq mean zeroxide in the processes that this one starts."""
    extend(os.environ)
    # Some programs write `sys.path` into the PYTHONPATH of those that they start. The first entry
    # is the folder of the program.
    if _STARTUP not in sys.path:
        sys.path.insert(1, _STARTUP)
