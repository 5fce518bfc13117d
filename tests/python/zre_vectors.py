"""The bytes of `tests/vectors/zre.txt`, on which the nodes in Rust are tested, too."""

from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parents[1] / "vectors" / "zre.txt"


@dataclass(frozen=True)
class Line:
    """A line of the file: its frames, and what they mean."""

    frames: list[bytes]
    fields: dict[str, str]

    def number(self, name: str) -> int:
        return int(self.fields.get(name, "0"))

    def text(self, name: str) -> str:
        return self.fields.get(name, "")


def lines(kind: str) -> list[Line]:
    """Returns the lines of a kind."""
    found = []
    for line in FILE.read_text().splitlines():
        left, _, right = line.partition(" = ")
        words = left.split()
        if words and words[0] == kind:
            frames = [bytes.fromhex(word.strip("-")) for word in words[1:]]
            found.append(Line(frames, dict(field.split("=", 1) for field in right.split())))
    assert found, kind
    return found
