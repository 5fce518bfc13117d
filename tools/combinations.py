"""Prints which transports, patterns and peers were tested together, from the results of the last run of each test.

Tests marked `cell` leave their outcomes in build/combinations (tests/python/cells.py). The table is also written to
build/combinations.txt. A combination counts if at least one of its tests has passed and none has failed. An exclamation mark
follows one with a failed test, and a question mark one whose tests were all skipped.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTCOMES = ROOT / "build" / "combinations"
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
LEGEND = ", ".join(f"{letter} {peer}" for peer, letter in PEERS.items()) + ", ! failed, ? not run"


def pattern(types: str) -> str:
    """The pattern of these socket types."""
    first = types.split()[0]
    return next(name for name, members in PATTERNS.items() if first in members.split())


def collected(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    """For each row and column: the peers, each with the sign of what its tests have shown."""
    outcomes: dict[tuple[str, str], dict[str, set[str]]] = {}
    for path in sorted(folder.glob("*.json")):
        content = json.loads(path.read_text())
        if not (ROOT / content["file"]).exists():
            continue
        for test in content["tests"].values():
            for cell in test["cells"]:
                row = cell["transport"] + (", SP" if cell.get("sp") else "")
                peers = outcomes.setdefault((row, pattern(cell["types"])), {})
                peers.setdefault(cell["peer"], set()).add(test["outcome"])
    return {
        place: {peer: sign(seen) for peer, seen in peers.items()}
        for place, peers in outcomes.items()
    }


def sign(outcomes: set[str]) -> str:
    """What follows the letter of a peer."""
    if "failed" in outcomes:
        return "!"
    return "" if "passed" in outcomes else "?"


def drawn(table: dict[tuple[str, str], dict[str, str]]) -> str:
    """The table as text."""

    def letters(row: str, column: str) -> str:
        peers = table.get((row, column), {})
        ordered = sorted(peers, key=list(PEERS).index)
        return "".join(PEERS[peer] + peers[peer] for peer in ordered)

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
    table = collected(OUTCOMES)
    if not table:
        print("no test of the matrix has run")
        return 0
    text = drawn(table)
    TABLE.write_text(text)
    print(text)
    return int(any("!" in peers.values() for peers in table.values()))


if __name__ == "__main__":
    sys.exit(main())
