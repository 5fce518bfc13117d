"""For tornado: streams with callbacks, and sockets that return its futures.

Needs tornado. Programs on asyncio use `zeroxide.asyncio`.
"""

from tornado.ioloop import IOLoop

__all__ = ["IOLoop"]
