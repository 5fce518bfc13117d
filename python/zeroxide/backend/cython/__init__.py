"""`zeroxide.backend` under the name of pyzmq's extension module."""

import sys

from ... import backend as _zmq
from ...backend import *  # noqa: F403

__all__ = _zmq.__all__

sys.modules[f"{__name__}._zmq"] = _zmq
