"""`zeroxide.eventloop.ioloop`. Deprecated."""

from ...eventloop.ioloop import *  # noqa: F403
from ...eventloop.ioloop import IOLoop as IOLoop
from ...eventloop.ioloop import ZMQIOLoop as ZMQIOLoop
from ...eventloop.ioloop import install as install
