"""The former module of the exceptions: see `zeroxide.pipeline`."""

from zeroxide.pipeline import (
    CollectorError,
    CollectorGone,
    DataLoss,
    Fenced,
    NotAcknowledged,
    Refused,
)

__all__ = ["CollectorError", "CollectorGone", "DataLoss", "Fenced", "NotAcknowledged", "Refused"]
