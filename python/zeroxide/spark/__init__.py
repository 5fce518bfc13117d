"""ZeroMQ sockets as a Spark data source and sink.

    from zeroxide.spark import session

    spark = session("flights")
    flights = spark.readStream.format("zeromq").option("endpoint", "tcp://collector:5555").load()

``pip install 'zeroxide[spark]'`` installs the packages that this one needs. Spark finds the format
``zeromq`` automatically. `zeroxide.spark.log_options` and `zeroxide.spark.options` list its options.
`zeroxide.spark.metrics` reports the lag of a query, and `zeroxide.spark.pack` packs what executors need.
"""

import os
import sys
import threading
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .._exports import exports_only, on_demand
from ._java import JavaNotFound, ensure_java
from ._rpc import RpcError, RpcTimeout, Service, rpc, serve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "JavaNotFound",
    "RpcError",
    "RpcTimeout",
    "Service",
    "ensure_java",
    "register",
    "rpc",
    "serve",
    "session",
]


_MODULES = ("log_options", "metrics", "options", "pack", "source")


def __dir__() -> list[str]:
    return exports_only(globals(), *_MODULES)


if not TYPE_CHECKING:  # for type checkers, a missing name is a mistake
    __getattr__ = on_demand(__name__, *_MODULES)


# In tracebacks, pickles and `help()`, too.
for _public in (JavaNotFound, RpcError, RpcTimeout, Service, ensure_java, rpc, serve):
    _public.__module__ = __name__

LOOPBACK = "127.0.0.1"

NEEDED = ("pyspark", "pyarrow", "pandas")

# The sessions in which the format is registered: Python has several objects for one of them.
_registered: set[str] = set()
_registering = threading.Lock()


def session(
    name: str = "zeroxide",
    master: str = "local[*]",
    config: Mapping[str, str] | None = None,
) -> "SparkSession":
    """Returns a Spark session that works on this machine, with this interpreter and an installed Java.

    `ensure_java` finds a JDK of version 17 or newer. Python workers are started with the running
    interpreter unless ``PYSPARK_PYTHON`` names another. A local master (``local...``) listens on
    the loopback address only; Spark's default would be the address of a network card. As `register`
    does, it lets the calling thread write.

    Args:
        name: The name of the application, which Spark's pages show.
        master: Spark's master: ``local[4]`` for 4 threads of this machine, ``local[*]`` for
            one per core, ``spark://host:7077`` for a cluster.
        config: Further settings of Spark by their names.

    Returns:
        The session: the running one if this process has one already.

    Raises:
        ImportError: pyspark, pyarrow or pandas is not installed.
        JavaNotFound: There is no Java that Spark can run on.

    Example:
        from zeroxide.spark import session

        spark = session("flights", "local[2]", {"spark.ui.enabled": "false"})

    Source:
        Spark's ``SparkSession.builder``
    """
    spark_session = _pyspark_session()
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {}
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        settings = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    builder = spark_session.builder.appName(name).master(master)
    for key, value in (settings | dict(config or {})).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    _let_thread_write(spark)
    return spark


def register(spark: "SparkSession") -> None:
    """Makes ``format("zeromq")`` known to a session, and lets the calling thread write with it.

    It is needed in two cases:

    * The module `pyspark_zeromq` is not on the driver's path, where Spark finds it by its name.
      One call for each session is enough.
    * A thread writes that did not make the session, such as one of a pool. Spark looks for the
      format of a write in the active session of the thread, and only the thread that made a
      session has one. Call this once in each such thread.

    Args:
        spark: The session.

    Example:
        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(4, initializer=register, initargs=(spark,))

    Source:
        Spark's ``DataSourceRegistration.register`` and ``SparkSession.setActiveSession``
    """
    from .source import ZeroMQDataSource

    java = getattr(spark, "_jsparkSession", None)
    # With Spark Connect, only the client knows the id.
    known = str(java.sessionUUID() if java is not None else getattr(spark, "session_id", id(spark)))
    with _registering:
        # Spark warns whenever a registration replaces another.
        if known not in _registered:
            spark.dataSource.register(ZeroMQDataSource)
            _registered.add(known)
    _let_thread_write(spark)


def _let_thread_write(spark: "SparkSession") -> None:
    """Makes a session the active one of the thread, where Spark looks for the format of a write."""
    # With Spark Connect, the JVM is the server's, which looks in the session of the client.
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        return
    from py4j.java_gateway import JavaClass

    sessions = getattr(jvm, "org.apache.spark.sql.classic.SparkSession")
    # It is a package if a Spark of another build lacks the class.
    if isinstance(sessions, JavaClass):
        sessions.setActiveSession(spark._jsparkSession)


def _pyspark_session() -> "type[SparkSession]":
    # Checked here, because Spark itself would raise in the middle of a query.
    missing = [name for name in NEEDED if not _is_there(name)]
    if missing:
        raise ImportError(
            f"zeroxide.spark needs {' and '.join(missing)}: pip install 'zeroxide[spark]'"
        )
    from pyspark.sql import SparkSession

    return SparkSession


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:
        return False
