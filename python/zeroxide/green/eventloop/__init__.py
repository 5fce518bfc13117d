"""`zeroxide.eventloop` under the path it has in pyzmq."""

from ...eventloop import IOLoop

__all__ = ["IOLoop"]
