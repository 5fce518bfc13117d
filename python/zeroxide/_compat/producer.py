"""The former home of the producers: see `zeroxide.pipeline`."""

from zeroxide.pipeline import (
    AsyncProducer,
    CollectorError,
    CollectorGone,
    Delivery,
    Fenced,
    NotAcknowledged,
    Producer,
    Refused,
)

__all__ = [
    "AsyncProducer",
    "CollectorError",
    "CollectorGone",
    "Delivery",
    "Fenced",
    "NotAcknowledged",
    "Producer",
    "Refused",
]
