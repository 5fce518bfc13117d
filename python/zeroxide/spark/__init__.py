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
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .._exports import exports_only
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


def __dir__() -> list[str]:
    return exports_only(globals(), "log_options", "metrics", "options", "pack", "source")


# In tracebacks, pickles and `help()`, too.
for _public in (JavaNotFound, RpcError, RpcTimeout, Service, ensure_java, rpc, serve):
    _public.__module__ = __name__

LOOPBACK = "127.0.0.1"

NEEDED = ("pyspark", "pyarrow", "pandas")


def session(
    name: str = "zeroxide",
    master: str = "local[*]",
    config: Mapping[str, str] | None = None,
) -> "SparkSession":
    """Returns a Spark session that works on this machine, with this interpreter and an installed Java.

    `ensure_java` finds a JDK of version 17 or newer. Python workers are started with the running
    interpreter unless ``PYSPARK_PYTHON`` names another. A local master (``local...``) listens on
    the loopback address only; Spark's default would be the address of a network card.

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
    return builder.getOrCreate()


def register(spark: "SparkSession") -> None:
    """Makes ``format("zeromq")`` known to a session.

    Only needed where the module `pyspark_zeromq` is not on the driver's path: Spark finds
    it there by its name.

    Args:
        spark: The session.

    Source:
        Spark's ``DataSourceRegistration.register``
    """
    from .source import ZeroMQDataSource

    spark.dataSource.register(ZeroMQDataSource)


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
