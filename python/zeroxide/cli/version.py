"""Prints the installed version and its capabilities.

examples:
  zeroxide version
  zeroxide version --json
"""

import argparse
import json
import platform
from typing import Any

from .. import _native, version
from .._native import has

__all__ = ["add_arguments", "run"]

CAPABILITIES = (
    "ipc",
    "tls",
    "curve",
    "gssapi",
    "draft",
    "pgm",
    "norm",
    "tipc",
    "vmci",
    "vsock",
    "sctp",
    "WS",
    "WSS",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``zeroxide version``."""
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(options: argparse.Namespace) -> int:
    """Prints the versions."""
    facts: dict[str, Any] = {
        "zeroxide": _native.__version__,
        "api": f"pyzmq {version.pyzmq_version()}",
        "behaviour": f"libzmq {version.zmq_version()}",
        "python": platform.python_version(),
        "capabilities": [name for name in CAPABILITIES if has(name)],
    }
    if options.json:
        print(json.dumps(facts, indent=1))
    else:
        facts["capabilities"] = " ".join(facts["capabilities"])
        for name, value in facts.items():
            print(f"{name:<13}{value}")
    return 0
