"""What old versions of pyzmq had of tornado. Deprecated: tornado itself is used."""
