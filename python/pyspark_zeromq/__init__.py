"""Makes ``format("zeromq")`` known to Spark, which looks for modules of this kind of name.

Spark imports this module in every session that touches any Python data source, so it must
not fail: a zeroxide that cannot be loaded is told only to those who ask for it.
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
