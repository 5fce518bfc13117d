"""The data source behind ``format("zeromq")``."""

from typing import NoReturn

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from .live import LiveReader
from .options import LogWriteOptions, ReadOptions, WriteOptions, included_columns, is_for_log
from .schema import check_readable, spark_schema
from .sink import SocketStreamWriter, SocketWriter
from .transactions import LogStreamWriter, LogWriter
from .writers import BatchWriter, StreamWriter

__all__ = ["ZeroMQDataSource"]


class ZeroMQDataSource(DataSource):
    """Messages as rows and rows as messages; `zeroxide.spark.options` lists the options.

    The columns of a read are ``value binary, topic string, timestamp timestamp``, and
    others that the options add. A read may name fewer: ``.schema("value binary")``.
    """

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "zeromq"

    def schema(self) -> StructType:
        """The columns of a read with these options."""
        return spark_schema(included_columns(self.options))

    def reader(self, schema: StructType) -> LiveReader:
        """The reader of ``spark.read``."""
        options = ReadOptions.parse(self.options)
        check_readable(schema, included_columns(self.options))
        return LiveReader(options, schema)

    def streamReader(self, schema: StructType) -> NoReturn:
        """The place of ``spark.readStream``: it needs a log that can be read again."""
        raise NotImplementedError(
            "spark.readStream needs mode=log, and that the collector, which this version does not"
            " have: a stream reads ranges again after a failure, and a socket cannot give them"
            " twice. spark.read with mode=live reads from sockets; df.writeStream works"
        )

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """The writer of ``df.write``; what was sent before cannot be overwritten."""
        if is_for_log(self.options):
            return LogWriter(LogWriteOptions.parse(self.options), schema)
        return SocketWriter(WriteOptions.parse(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """The writer of ``df.writeStream``."""
        if is_for_log(self.options):
            return LogStreamWriter(LogWriteOptions.parse(self.options), schema)
        return SocketStreamWriter(WriteOptions.parse(self.options), schema)
