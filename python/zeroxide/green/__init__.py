"""ZeroMQ for gevent: what would block, blocks the greenlet only.

    import zeroxide.green as zmq

Everything else is as in `zeroxide`. ``RCVTIMEO`` and ``SNDTIMEO`` hold, any number of
greenlets may wait for one socket, and closing it wakes them.
"""

from typing import TYPE_CHECKING

import zeroxide as _zeroxide
from zeroxide import *  # noqa: F403
from zeroxide.constants import *  # noqa: F403

from .core import _Context as Context  # type: ignore[assignment]
from .core import _Socket as Socket  # type: ignore[assignment]
from .device import device as device  # type: ignore[assignment]
from .poll import _Poller as Poller
from .poll import select as select
from .poll import zmq_poll as zmq_poll

__all__ = ["Context", "Poller", "Socket", "device", "select", "zmq_poll"]
if not TYPE_CHECKING:
    # To type checkers what the star imports bring is there all the same.
    __all__ = list({*_zeroxide.__all__, *__all__})
