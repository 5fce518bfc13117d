"""The data source behind ``format("zeromq")``."""

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from .._exports import exports_only
from ._live import LiveReader
from ._log_reader import LogBatchReader, PushdownReader, StreamReader
from ._refused import RefusedStream, check
from ._schema import check_readable, spark_schema
from ._sink import SocketStreamWriter, SocketWriter
from ._transactions import LogStreamWriter, LogWriter
from ._writers import BatchWriter, StreamWriter
from .log_options import LogReadOptions, columns, mode
from .options import LogWriteOptions, ReadOptions, WriteOptions, included_columns, is_for_log

__all__ = ["ZeroMQDataSource"]


def __dir__() -> list[str]:
    return exports_only(globals())


class ZeroMQDataSource(DataSource):
    """Reads messages as rows, and writes rows as messages.

    `zeroxide.spark.log_options` lists the options of reading a collector's log,
    `zeroxide.spark.options` those of sockets. A read may name fewer columns:
    ``.schema("value binary")``. Programs name the format ``zeromq`` instead of this class.

    Args:
        options: The options of the read or write.

    Raises:
        ValueError: No read and no write has these options.

    Source:
        Spark's ``pyspark.sql.datasource.DataSource``
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        # Checked as early as possible, so that `load()` raises and not the first action.
        check(options)

    @classmethod
    def name(cls) -> str:
        """Returns the name that ``format`` takes.

        Returns:
            ``zeromq``.
        """
        return "zeromq"

    def schema(self) -> StructType:
        """Returns the columns of a read with these options.

        Returns:
            The columns and their types.
        """
        return spark_schema(self._columns())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns the reader of ``spark.read``.

        Args:
            schema: The columns to read: some of those that there are.

        Returns:
            The reader, of a log or of sockets.
        """
        if mode(self.options) == "live":
            live = ReadOptions.parse(self.options)
            check_readable(schema, self._columns())
            return LiveReader(live, schema)
        options = LogReadOptions.parse(self.options, streaming=False)
        check_readable(schema, self._columns())
        if options.filter_pushdown is not None:
            return PushdownReader(options, schema)
        return LogBatchReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Returns the reader of ``spark.readStream``.

        Spark hides an error of this method behind one of its own (it uses a reader that was not
        made), so the first call of the reader raises it.

        Args:
            schema: The columns to read: some of those that there are.

        Returns:
            The reader of a log, or one that raises why there is none.
        """
        try:
            return self._stream_reader(schema)
        except ValueError as error:
            return RefusedStream(error)

    def _stream_reader(self, schema: StructType) -> StreamReader:
        if mode(self.options) == "live":
            raise ValueError(
                "option 'mode' is 'live', which spark.readStream cannot have: a stream reads ranges"
                " again after a failure, and a socket gives nothing twice. Leave it out, and read"
                " from a collector"
            )
        options = LogReadOptions.parse(self.options, streaming=True)
        check_readable(schema, self._columns())
        return StreamReader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """Returns the writer of ``df.write``.

        Args:
            schema: The columns of the rows.
            overwrite: Whether the mode is ``overwrite``, which messages do not allow.

        Returns:
            The writer, to a log or to sockets.

        Raises:
            ValueError: The mode is ``overwrite``, or an option is invalid.
        """
        if overwrite:
            raise ValueError(
                "mode('overwrite') is not possible: messages that were sent, and rows of a log,"
                " cannot be changed. Use mode('append')"
            )
        if is_for_log(self.options):
            return LogWriter(LogWriteOptions.parse(self.options), schema)
        return SocketWriter(WriteOptions.parse(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """Returns the writer of ``df.writeStream``.

        Args:
            schema: The columns of the rows.
            overwrite: Whether the output mode is ``complete``, which is accepted.

        Returns:
            The writer, to a log or to sockets.
        """
        if is_for_log(self.options):
            return LogStreamWriter(LogWriteOptions.parse(self.options), schema)
        return SocketStreamWriter(WriteOptions.parse(self.options), schema)

    def _columns(self) -> list[str]:
        # Spark asks every source for its schema, even one that it will only write to.
        return (
            included_columns(self.options)
            if mode(self.options) == "live"
            else columns(self.options)
        )
