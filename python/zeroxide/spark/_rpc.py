"""Calls from a DataFrame's tasks to services, with the replies as rows.

`calls` sends the requests of a task; this module builds them. `serve` is the other side.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._exports import exports_only
from ._calls import Calls, RpcError, RpcTimeout
from ._ipc import to_stream
from ._replies import fit, parse
from ._service import UNITS, Service, Unit, serve
from ._sockets import check_names

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["RpcError", "RpcTimeout", "Service", "rpc", "serve"]


def __dir__() -> list[str]:
    return exports_only(globals())


# The default number of requests that a task has in transit.
WINDOWS = {"batch": 4, "message": 500}

# The column that is sent if each row is a request.
VALUE = "value"


def rpc(
    df: "DataFrame",
    endpoint: str | Sequence[str],
    schema: "StructType | str",
    *,
    unit: Unit = "batch",
    window: int | None = None,
    timeout: float = 30.0,
    retries: int = 2,
    options: Mapping[str, str] | None = None,
) -> "DataFrame":
    """Sends the rows of a DataFrame to services, and returns their replies as a DataFrame.

    A service is `serve`, or any program with a ROUTER or REP socket.

    With ``unit="batch"`` a request is a record batch, and so is the reply, which may have
    other rows. With ``unit="message"`` a request is the column ``value`` of one row, and the
    reply is the one column of `schema` that `df` does not have; the others stay as they are.

    After `timeout` seconds, or when its service is lost, a request is sent again, at most
    `retries` times; then the task fails with `RpcTimeout`. If the service's function raises, the
    task fails at once with `RpcError`. The order of the rows is kept.

    Args:
        df: The rows to send. It may be a stream.
        endpoint: The address of the services, or several in a list or separated by commas.
        schema: The columns of the replies, as a type or a text such as ``"id bigint, score double"``.
        unit: ``batch`` or ``message``.
        window: How many requests a task has in transit at once; None for 4 batches or 500
            messages.
        timeout: How long to wait for a reply, and for any service to be there, in seconds.
        retries: How often a request is sent again.
        options: Socket options by their names, such as ``curve_serverkey``; a value
            ``env:NAME`` or ``file:PATH`` is read in the task.

    Returns:
        A DataFrame with the columns of `schema`. Nothing is sent until Spark needs its rows.

    Raises:
        ValueError: The arguments contradict each other, or one is out of range.

    Example:
        from zeroxide.spark import rpc

        scored = rpc(customers, "tcp://gpu-1:5560, tcp://gpu-2:5560", "id bigint, score double")

    Source:
        28/REQREP; zeroxide only
    """
    endpoints = endpoint.split(",") if isinstance(endpoint, str) else list(endpoint)
    endpoints = [text.strip() for text in endpoints if text.strip()]
    if not endpoints:
        raise ValueError("endpoint is empty; it should look like tcp://host:port")
    if unit not in UNITS:
        raise ValueError(f"unit is {unit!r}; it should be one of: {', '.join(UNITS)}")
    if window is not None and window < 1:
        raise ValueError(f"window is {window}; it should be at least 1")
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout}; it should be a number of seconds above 0")
    if retries < 0:
        raise ValueError(f"retries is {retries}; it should be at least 0")
    check_names(options or ())
    # At this point, Spark only reads the schema.
    target: StructType = df.mapInArrow(lambda batches: batches, schema).schema
    calls = Calls(
        endpoints=tuple(endpoints),
        options=tuple((options or {}).items()),
        window=window or WINDOWS[unit],
        timeout_s=timeout,
        retries=retries,
    )
    caller: _CallBatches | _CallMessages
    if unit == "batch":
        caller = _CallBatches(calls, target)
    else:
        caller = _CallMessages(calls, target, _reply_column(df.columns, target))
    return df.mapInArrow(caller, target)


def _reply_column(columns: list[str], target: "StructType") -> str:
    if VALUE not in columns:
        raise ValueError(
            f"unit='message' sends the column {VALUE!r}; there is {', '.join(columns)}"
        )
    new = [name for name in target.names if name not in columns]
    # The reply may take the request's place and name.
    new = new or [name for name in target.names if name == VALUE]
    if len(new) != 1:
        raise ValueError(
            "unit='message' has one column for the reply, but the schema has"
            f" {', '.join(new) or 'none'} besides {', '.join(columns)}"
        )
    kind = target[new[0]].dataType.typeName()
    if kind not in ("binary", "string"):
        raise ValueError(f"the reply's column {new[0]!r} is {kind}, not string or binary")
    return new[0]


@dataclass(frozen=True)
class _CallBatches:
    """The function of a task if each request is a batch."""

    calls: Calls
    target: "StructType"

    def __call__(self, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        requests = (to_stream(batch) for batch in batches if batch.num_rows)
        for reply in self.calls.make(requests):
            yield fit(parse(reply), self.target)


@dataclass(frozen=True)
class _CallMessages:
    """The function of a task if each request is a row's value."""

    calls: Calls
    target: "StructType"
    reply: str

    def __call__(self, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        asked: deque[pa.RecordBatch] = deque()
        replies: list[bytes] = []
        for reply in self.calls.make(self._requests(batches, asked)):
            replies.append(reply)
            if len(replies) == asked[0].num_rows:
                yield self._answered(asked.popleft(), replies)
                replies = []

    def _requests(
        self, batches: Iterator["pa.RecordBatch"], asked: "deque[pa.RecordBatch]"
    ) -> Iterator[bytes]:
        import pyarrow as pa

        for batch in batches:
            if not batch.num_rows:
                continue
            values = batch.column(batch.schema.get_field_index(VALUE)).cast(pa.binary())
            if values.null_count:
                raise ValueError(
                    f"column 'value' is null in {values.null_count} of {batch.num_rows} rows,"
                    " but a message cannot be null: filter these rows out, or replace null with coalesce"
                )
            asked.append(batch)
            yield from values.to_numpy(zero_copy_only=False).tolist()

    def _answered(self, batch: "pa.RecordBatch", replies: list[bytes]) -> "pa.RecordBatch":
        import pyarrow as pa

        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns[self.reply] = pa.array(replies, pa.binary())
        return fit(pa.RecordBatch.from_pydict(columns), self.target)
