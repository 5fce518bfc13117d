"""Registers ``format("zeromq")`` with Spark, which looks for modules with such names.

Spark imports this module in every session that uses any Python data source, so the import must
not fail. If zeroxide cannot be loaded, only sessions that use the format get an error.
"""

from typing import Any

__all__ = ["DefaultSource"]

DefaultSource: Any
try:
    from zeroxide.spark.source import ZeroMQDataSource as DefaultSource
except Exception as error:
    from ._unavailable import UnavailableDataSource as DefaultSource
    from ._unavailable import remember

    remember(error)
