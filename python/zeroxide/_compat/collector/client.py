"""The former module of the clients: see `zeroxide.pipeline`."""

from zeroxide.pipeline import Client, Info, Published

__all__ = ["Client", "Info", "Published"]
