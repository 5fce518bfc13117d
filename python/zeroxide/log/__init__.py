"""Logging over PUB sockets: `zeroxide.log.handlers`, and ``python -m zeroxide.log``."""
