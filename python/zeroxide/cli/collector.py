from ..collector.daemon import __doc__, add_arguments, run

__all__ = ["__doc__", "add_arguments", "run"]
