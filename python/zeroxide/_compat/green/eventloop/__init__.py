"""`zeroxide.eventloop` under the path it has in pyzmq."""

from zeroxide.eventloop import IOLoop

__all__ = ["IOLoop"]
