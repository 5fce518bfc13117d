"""`zeroxide.backend` under the name of pyzmq's extension module."""

import sys

from ... import backend
from ...backend import *  # noqa: F403

_zmq = backend

__all__ = backend.__all__

sys.modules[f"{__name__}._zmq"] = _zmq
