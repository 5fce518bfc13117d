"""The data source behind ``format("zeromq")``."""

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from .live import LiveReader
from .log_options import LogReadOptions, columns, mode
from .log_reader import LogBatchReader, PushdownReader, StreamReader
from .options import LogWriteOptions, ReadOptions, WriteOptions, included_columns, is_for_log
from .schema import check_readable, spark_schema
from .sink import SocketStreamWriter, SocketWriter
from .transactions import LogStreamWriter, LogWriter
from .writers import BatchWriter, StreamWriter

__all__ = ["ZeroMQDataSource"]


class ZeroMQDataSource(DataSource):
    """Reads messages as rows, and writes rows as messages.

    `zeroxide.spark.log_options` lists the options of reading a collector's log,
    `zeroxide.spark.options` those of sockets. A read may name fewer columns:
    ``.schema("value binary")``.
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "zeromq"

    def schema(self) -> StructType:
        """The columns of a read with these options."""
        return spark_schema(self._columns())

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of ``spark.read``."""
        if mode(self.options) == "live":
            live = ReadOptions.parse(self.options)
            check_readable(schema, self._columns())
            return LiveReader(live, schema)
        options = LogReadOptions.parse(self.options, streaming=False)
        check_readable(schema, self._columns())
        if options.filter_pushdown:
            return PushdownReader(options, schema)
        return LogBatchReader(options, schema)

    def streamReader(self, schema: StructType) -> StreamReader:
        """The reader of ``spark.readStream``."""
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
        """The writer of ``df.write``; messages cannot be overwritten."""
        if overwrite:
            raise ValueError(
                "mode('overwrite') is not possible: messages that were sent, and rows of a log,"
                " stay what they are. Use mode('append')"
            )
        if is_for_log(self.options):
            return LogWriter(LogWriteOptions.parse(self.options), schema)
        return SocketWriter(WriteOptions.parse(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """The writer of ``df.writeStream``."""
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
