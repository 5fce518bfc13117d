"""Prints which transports, patterns and peers were tested together, from the results of the last run of each test.

Tests marked `cell` leave their results in build/cells (tests/python/cells.py). The table is also written to
build/combinations.txt. A combination counts if all its tests have passed; one that failed is listed with an exclamation mark.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CELLS = ROOT / "build" / "cells"
TABLE = ROOT / "build" / "combinations.txt"

# The patterns, and the socket types that belong to each.
PATTERNS = {
    "PAIR": "PAIR",
    "REQ REP": "REQ REP DEALER ROUTER",
    "PUB SUB": "PUB SUB XPUB XSUB",
    "PUSH PULL": "PUSH PULL",
    "STREAM": "STREAM",
    "CLIENT": "CLIENT SERVER",
    "RADIO": "RADIO DISH",
    "SCATTER": "SCATTER GATHER",
    "PEER": "PEER",
    "CHANNEL": "CHANNEL",
    "DGRAM": "DGRAM",
    "SURVEY": "SURVEYOR RESPONDENT",
    "BUS": "BUS",
}
# A letter for each peer.
PEERS = {
    "zeroxide": "z",
    "libzmq": "l",
    "libzmq with drafts": "d",
    "nng": "n",
    "nanomsg": "m",
    "Chromium": "c",
    "refused": "-",
}
LEGEND = ", ".join(f"{letter} {peer}" for peer, letter in PEERS.items())


def pattern(types: str) -> str:
    """The pattern of these socket types."""
    first = types.split()[0]
    return next(name for name, members in PATTERNS.items() if first in members.split())


def collected(folder: Path) -> dict[tuple[str, str], dict[str, bool]]:
    """For each row and column: the peers, and whether all tests with each have passed."""
    table: dict[tuple[str, str], dict[str, bool]] = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text())
        if not (ROOT / content["file"]).exists():
            continue
        for cell in content["cells"]:
            row = cell["transport"] + (", SP" if cell.get("sp") else "")
            peers = table.setdefault((row, pattern(cell["types"])), {})
            peer = cell["peer"]
            peers[peer] = peers.get(peer, True) and cell["passed"]
    return table


def drawn(table: dict[tuple[str, str], dict[str, bool]]) -> str:
    """The table as text."""

    def letters(row: str, column: str) -> str:
        peers = table.get((row, column), {})
        ordered = sorted(peers, key=list(PEERS).index)
        return "".join(PEERS[peer] + ("" if peers[peer] else "!") for peer in ordered)

    rows = sorted({row for row, _ in table}, key=lambda row: (row.endswith("SP"), row))
    lines = [["", *PATTERNS]]
    lines += [[row, *(letters(row, column) for column in PATTERNS)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    return "\n".join([*text, "", LEGEND, ""])


def main() -> int:
    table = collected(CELLS)
    if not table:
        print("no test of the matrix has run")
        return 0
    text = drawn(table)
    TABLE.write_text(text)
    print(text)
    return int(not all(passed for peers in table.values() for passed in peers.values()))


if __name__ == "__main__":
    sys.exit(main())
