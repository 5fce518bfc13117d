"""`zeroxide.eventloop.zmqstream` under the path it has in pyzmq."""

from zeroxide.eventloop.zmqstream import ZMQStream

__all__ = ["ZMQStream"]
