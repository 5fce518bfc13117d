"""Zinc: a cluster of endpoints that send messages to each other and share a document."""

from .document import Document, Splice
from .endpoint import Endpoint
from .message import Member, Message
from .pool import HandlerPool
from .timing import Timing

__all__ = ["Document", "Endpoint", "HandlerPool", "Member", "Message", "Splice", "Timing"]
