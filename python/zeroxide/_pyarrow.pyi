"""pyarrow, for type checkers: the package has no types, and strict programs may not use what has none."""

from typing import Any, TypeAlias

RecordBatch: TypeAlias = Any
