"""Replies of services as the record batches that Spark expects.

A service may be any program, and what Spark makes of a batch that does not fit is an error of the
JVM without a name in it. Arrow's casts let some values change without an error. Both are found
here, where the column is known.
"""

from typing import TYPE_CHECKING, Any

from ._calls import RpcError
from ._ipc import from_stream

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["fit", "parse"]


def parse(reply: bytes) -> "pa.RecordBatch":
    """Reads the batch of a reply."""
    import pyarrow as pa

    try:
        return from_stream(reply)
    # ValueError: a name that is not UTF-8.
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RpcError(
            f"the reply is not a record batch as an Arrow IPC stream: {error}. Let the service"
            " return one, or call it with unit='message'"
        ) from error


def fit(batch: "pa.RecordBatch", target: "StructType") -> "pa.RecordBatch":
    """Returns the requested columns with the requested types; raises RpcError if they do not fit."""
    import pyarrow as pa

    from ._schema import to_arrow

    names = batch.schema.names
    missing = [name for name in target.names if name not in names]
    if missing:
        others = f"only {', '.join(names)}" if names else "and no others"
        raise RpcError(f"the reply has no column {', '.join(missing)}, {others}")
    wanted = to_arrow(target)
    columns = []
    for field in wanted:
        _check_count(f"the reply has {{}} columns {field.name!r}", names.count(field.name))
        column = batch.column(names.index(field.name))
        try:
            _check_type(column.type, field.type, field.name)
            columns.append(column.cast(field.type))
        # Not ArrowInvalid alone: a cast that does not exist is another one.
        except (pa.ArrowException, RpcError) as error:
            raise RpcError(
                f"the reply does not fit {target.simpleString()}: {error}. Convert column"
                f" {field.name!r}, which is {column.type}, in the service, or change the schema"
            ) from error
        if _has_limits(field):
            _check_values(column, columns[-1], field, field.name)
    return pa.RecordBatch.from_arrays(columns, wanted.names)


def _check_count(said: str, count: int) -> None:
    if count > 1:
        raise RpcError(f"{said.format(count)}: rename or drop all but one in the service")


def _check_type(given: Any, wanted: Any, path: str) -> None:
    """Raises where Arrow's cast would lose values without an error."""
    import pyarrow as pa

    is_type = pa.types
    if is_type.is_list_view(given) or is_type.is_large_list_view(given):
        # pyarrow 26 returns empty lists for all but the first.
        raise RpcError(f"{path!r} is a list view: return a list, with the offsets of its rows")
    if is_type.is_struct(given) and is_type.is_struct(wanted):
        names = [field.name for field in given]
        for field in wanted:
            # The cast would make it null.
            if field.name not in names:
                raise RpcError(f"{path!r} has no field {field.name}, only {', '.join(names)}")
            _check_count(f"{path!r} has {{}} fields {field.name!r}", names.count(field.name))
            child = given.field(names.index(field.name))
            _check_type(child.type, field.type, f"{path}.{field.name}")
    elif is_type.is_map(given) and is_type.is_map(wanted):
        _check_type(given.key_type, wanted.key_type, f"{path}.key")
        _check_type(given.item_type, wanted.item_type, f"{path}.value")
    elif _is_list(given) and _is_list(wanted):
        _check_type(given.value_type, wanted.value_type, f"{path}.element")


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    is_type = pa.types
    return bool(
        is_type.is_list(kind) or is_type.is_large_list(kind) or is_type.is_fixed_size_list(kind)
    )


def _parts(kind: Any) -> list[Any]:
    """The fields below a nested type that may have limits; none for other types."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    return [kind.value_field] if _is_list(kind) else []


def _has_limits(field: Any) -> bool:
    """Whether some values of the right type do not fit, so that the column is looked through."""
    import pyarrow as pa

    is_limited = not field.nullable or pa.types.is_float32(field.type)
    return is_limited or any(map(_has_limits, _parts(field.type)))


def _check_values(given: Any, column: Any, field: Any, path: str) -> None:
    """Raises for null where the schema has none, and for numbers that the cast made infinite."""
    import pyarrow as pa

    if not field.nullable and column.null_count:
        raise RpcError(
            f"{path!r} is null in {column.null_count} of {len(column)} values of the reply, but NOT"
            " NULL in the schema: leave NOT NULL out, or let the service return a value"
        )
    if pa.types.is_float32(column.type):
        _check_floats(given, column, path)
        return
    if not any(map(_has_limits, _parts(field.type))):
        return
    # Below null, there may be anything.
    given, column = given.drop_null(), column.drop_null()
    if pa.types.is_struct(column.type):
        for part in field.type:
            own = column.field(part.name)
            before = given.field(part.name) if pa.types.is_struct(given.type) else own
            _check_values(before, own, part, f"{path}.{part.name}")
    elif pa.types.is_map(column.type):
        own_keys, own_items = _entries(column)
        keys, items = _entries(given) if pa.types.is_map(given.type) else (own_keys, own_items)
        _check_values(keys, own_keys, field.type.key_field, f"{path}.key")
        _check_values(items, own_items, field.type.item_field, f"{path}.value")
    else:
        own = column.flatten()
        before = given.flatten() if _is_list(given.type) else own
        _check_values(before, own, field.type.value_field, f"{path}.element")


def _entries(column: Any) -> tuple[Any, Any]:
    """The keys and the values of all rows of a map without null, one after the other."""
    start, end = column.offsets[0].as_py(), column.offsets[-1].as_py()
    return column.keys.slice(start, end - start), column.items.slice(start, end - start)


def _check_floats(given: Any, column: Any, path: str) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    infinite = pc.is_inf(column)
    if not pc.any(infinite).as_py():
        return
    exact = given.cast(pa.float64())
    lost = exact.filter(pc.and_(infinite, pc.invert(pc.is_inf(exact))))
    if len(lost):
        raise RpcError(
            f"{path!r} has numbers that are too large for a float in {len(lost)} of {len(column)}"
            f" values of the reply, such as {lost[0].as_py()}: use double in the schema"
        )
