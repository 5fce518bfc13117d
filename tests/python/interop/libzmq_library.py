"""Where the libzmq with drafts is, if it was built."""

from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[3] / "build" / "libzmq-drafts" / "libzmq.so"
