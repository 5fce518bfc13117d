"""The small files next to the segments of a log: what is on the disk, and which opening wrote it."""

from functools import lru_cache

from ._segments import OFFSET_MAX

__all__ = ["DURABLE", "GENERATIONS", "durable_offset", "generations", "generations_text"]

DURABLE = "durable"
GENERATIONS = "generations"

# The reversed polynomial of CRC-32C; zlib has only that of CRC-32.
_POLYNOMIAL = 0x82F63B78


def _entry(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
    return value


_TABLE = tuple(map(_entry, range(256)))


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def durable_offset(text: bytes) -> int | None:
    """The offset in the file `durable`; None if it is damaged."""
    digits = text[:20]
    if not digits.isdigit() or text != b"%s %08x\n" % (digits, _crc32c(digits)):
        return None
    offset = int(digits)
    return offset if offset <= OFFSET_MAX else None


# Readers look at every request, and the file changes only when the log is opened again.
@lru_cache(maxsize=16)
def generations(text: bytes) -> tuple[tuple[int, str], ...]:
    """The openings of a log, from the file `generations`; none if it is damaged."""
    lines, checksum = text[:-9], text[-9:]
    if checksum != b"%08x\n" % _crc32c(lines):
        return ()
    split = [line.split() for line in lines.decode("ascii").splitlines()]
    return tuple((int(first), id) for first, id in split)


def generations_text(openings: tuple[tuple[int, str], ...]) -> bytes:
    """The contents of the file `generations` for these openings of a log."""
    lines = "".join(f"{first:020} {id}\n" for first, id in openings).encode("ascii")
    return b"%s%08x\n" % (lines, _crc32c(lines))
