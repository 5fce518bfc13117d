"""Reports options that no use of the format has, and streams that cannot be read."""

from collections.abc import Mapping
from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader

from .log_options import LogReadOptions, mode
from .options import LogWriteOptions, ReadOptions, WriteOptions, is_for_log

__all__ = ["RefusedStream", "check"]

# Options that only writes have.
_WRITING = frozenset(
    {"acktimeoutms", "batchid", "delivery", "flushtimeoutms", "frame", "queryname", "waitpeers"}
)

_TABLES = (
    "Spark does not pass the options of CREATE TABLE to the reads and writes of the table. Use CREATE"
    " TEMPORARY VIEW name USING zeromq OPTIONS (endpoint '...')"
)


def check(options: Mapping[str, str]) -> None:
    """Raises if the options are wrong for every use.

    When a user calls ``load()`` or ``save()``, Spark does not yet tell the source which of
    them it was, so options that some use accepts pass.
    """
    if "option.endpoint" in options:  # the properties of a table
        raise ValueError(f"CREATE TABLE: {_TABLES}")
    is_live = mode(options) == "live"
    errors = []
    for read in (True, False):
        try:
            if not read:
                writes = LogWriteOptions if is_for_log(options) else WriteOptions
                writes.parse(options)
            elif is_live:
                ReadOptions.parse(options)
            else:
                _check_log(options)
        except ValueError as error:
            errors.append(error)
        else:
            return
    if not options:
        raise ValueError(f"{errors[0]}. If this is a table: {_TABLES}")
    reading, writing = errors
    chosen = writing if _is_written(options, reading, writing) else reading
    # Spark prints every frame and every chained error; none of them may hide the sentence.
    raise chosen.with_traceback(None) from None


def _check_log(options: Mapping[str, str]) -> None:
    try:
        LogReadOptions.parse(options, streaming=False)
    except ValueError as error:
        try:
            LogReadOptions.parse(options, streaming=True)
        except ValueError:
            raise error from None


def _is_written(options: Mapping[str, str], reading: ValueError, writing: ValueError) -> bool:
    """Whether the options look like those of a write."""
    names = {name.lower() for name in options}
    kinds = {"push", "dealer", "pub", "log"}
    if names & _WRITING or (options.get("socket") or "").lower() in kinds:
        return True
    return "did you mean" in str(writing) and "did you mean" not in str(reading)


class RefusedStream(DataSourceStreamReader):
    """A reader whose calls raise the error that the real reader met."""

    def __init__(self, error: ValueError) -> None:
        self._error = error

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise self._error

    # Which call comes first depends on the version of Spark: `latestOffset`, without arguments, until 4.1, and
    # `getDefaultReadLimit` since 4.2.
    initialOffset = latestOffset = getDefaultReadLimit = partitions = read = commit = _refuse
