"""Tells a new Python process that zmq means zeroxide.

Every interpreter imports ``sitecustomize`` when it starts. The folder `startup`, which
holds one, comes first on its ``PYTHONPATH``.
"""

import os
from collections.abc import MutableMapping
from pathlib import Path

__all__ = ["VARIABLE", "extend"]

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
