"""`zeroxide.eventloop.ioloop`. Deprecated."""

from zeroxide.eventloop.ioloop import *  # noqa: F403
from zeroxide.eventloop.ioloop import IOLoop as IOLoop
from zeroxide.eventloop.ioloop import ZMQIOLoop as ZMQIOLoop
from zeroxide.eventloop.ioloop import install as install
