"""The part of tornado that old versions of pyzmq contained. Deprecated: tornado itself is used."""
