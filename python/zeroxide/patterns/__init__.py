"""The reliability patterns of the ØMQ guide: peers that survive each other's death.

    from zeroxide.patterns import LazyPirateClient, ParanoidPirateQueue, ParanoidPirateWorker

Each class has an asyncio form, whose name begins with ``Async``. Times are in milliseconds, and
the defaults are the guide's. The page "Reliability" compares the patterns and says how long each
takes to recover.
"""

from typing import Any

from .._exports import exports_only
from ._binary_star import (
    AsyncBinaryStarClient,
    AsyncBinaryStarServer,
    BinaryStarClient,
    BinaryStarServer,
)
from ._binary_star_state import SplitBrain
from ._clone_client import AsyncCloneClient, CloneClient
from ._clone_server import AsyncCloneServer, CloneServer
from ._failover import AsyncFailoverClient, FailoverClient
from ._file_client import AsyncFileClient, FileClient
from ._file_server import AsyncFileServer, FileRefused, FileServer
from ._freelance import (
    AsyncFreelanceClient,
    AsyncFreelanceServer,
    FreelanceClient,
    FreelanceServer,
)
from ._last_value import AsyncLastValueCache, LastValueCache
from ._lazy_pirate import AsyncLazyPirateClient, LazyPirateClient
from ._majordomo_broker import AsyncMajordomoBroker, MajordomoBroker
from ._majordomo_client import AsyncMajordomoClient, MajordomoClient
from ._majordomo_worker import AsyncMajordomoWorker, MajordomoRequest, MajordomoWorker
from ._paranoid_pirate import (
    AsyncParanoidPirateQueue,
    AsyncParanoidPirateWorker,
    ParanoidPirateQueue,
    ParanoidPirateWorker,
)
from ._retrying import NoReply
from ._shotgun import AsyncShotgunClient, AsyncShotgunServer, ShotgunClient, ShotgunServer
from ._simple_pirate import (
    AsyncSimplePirateQueue,
    AsyncSimplePirateWorker,
    SimplePirateQueue,
    SimplePirateWorker,
)
from ._titanic_client import AsyncTitanicClient, TitanicClient, TitanicError, UnknownRequest
from ._titanic_server import AsyncTitanicServer, TitanicServer

__all__ = [
    "AsyncBinaryStarClient",
    "AsyncBinaryStarServer",
    "AsyncCloneClient",
    "AsyncCloneServer",
    "AsyncFailoverClient",
    "AsyncFileClient",
    "AsyncFileServer",
    "AsyncFreelanceClient",
    "AsyncFreelanceServer",
    "AsyncLastValueCache",
    "AsyncLazyPirateClient",
    "AsyncMajordomoBroker",
    "AsyncMajordomoClient",
    "AsyncMajordomoWorker",
    "AsyncParanoidPirateQueue",
    "AsyncParanoidPirateWorker",
    "AsyncShotgunClient",
    "AsyncShotgunServer",
    "AsyncSimplePirateQueue",
    "AsyncSimplePirateWorker",
    "AsyncTitanicClient",
    "AsyncTitanicServer",
    "BinaryStarClient",
    "BinaryStarServer",
    "CloneClient",
    "CloneServer",
    "FailoverClient",
    "FileClient",
    "FileRefused",
    "FileServer",
    "FreelanceClient",
    "FreelanceServer",
    "LastValueCache",
    "LazyPirateClient",
    "MajordomoBroker",
    "MajordomoClient",
    "MajordomoRequest",
    "MajordomoWorker",
    "NoReply",
    "ParanoidPirateQueue",
    "ParanoidPirateWorker",
    "ShotgunClient",
    "ShotgunServer",
    "SimplePirateQueue",
    "SimplePirateWorker",
    "SplitBrain",
    "TitanicClient",
    "TitanicError",
    "TitanicServer",
    "UnknownRequest",
]


def __dir__() -> list[str]:
    return exports_only(globals())


def _adopt(name: str, value: Any) -> None:
    """Shows a public name under this package, in tracebacks and pickles too."""
    if getattr(value, "__module__", "").startswith(__name__ + "."):
        value.__module__ = __name__


for _name in __all__:
    _adopt(_name, globals()[_name])
del _name
