"""One part of a message, without copying."""

from ._native import Frame

# The name in pyzmq before 13.0.
Message = Frame

__all__ = ["Frame", "Message"]
