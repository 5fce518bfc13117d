"""Numbers of bytes as people write them."""

import re

__all__ = ["parse_size"]


def parse_size(text: str) -> int | None:
    """Returns a number of bytes, with K, M, G or T for powers of 1024; None if the text is not one."""
    number = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]?)(?:I?B)?", text.strip().upper())
    if number is None:
        return None
    return int(float(number[1]) * 1024.0 ** " KMGT".find(number[2] or " "))
