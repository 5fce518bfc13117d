"""The producer, the follower and the client for asyncio, which are imported when they are used."""

from ._async_client import AsyncClient
from ._async_follower import AsyncFollower
from ._async_producer import AsyncProducer

__all__ = ["AsyncClient", "AsyncFollower", "AsyncProducer"]
