"""tornado's `ioloop`. Deprecated."""

from tornado.ioloop import *  # noqa: F403
from tornado.ioloop import IOLoop as IOLoop
from tornado.ioloop import PeriodicCallback as PeriodicCallback

PollIOLoop = IOLoop
