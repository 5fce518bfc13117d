"""`zeroxide.backend` under the name of pyzmq's extension module."""

import sys

_zmq = sys.modules["zeroxide.backend"]

__all__ = list(_zmq.__all__)
globals().update({name: getattr(_zmq, name) for name in __all__})

sys.modules[f"{__name__}._zmq"] = _zmq
