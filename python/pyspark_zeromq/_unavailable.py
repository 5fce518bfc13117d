"""The replacement for the data source if zeroxide cannot be imported."""

from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource
else:
    try:
        from pyspark.sql.datasource import DataSource
    except Exception:  # without pyspark, no data source is requested
        DataSource = object

_reason: BaseException | None = None


def remember(reason: BaseException) -> None:
    """Remembers why zeroxide could not be imported."""
    global _reason
    _reason = reason


class UnavailableDataSource(DataSource):
    """Raises at its first use, with the reason why ``zeromq`` is not available."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "zeromq"

    def __init__(self, options: dict[str, str]) -> NoReturn:
        raise ImportError(
            f"the format zeromq needs zeroxide, which cannot be imported here: {_reason}"
        ) from _reason
