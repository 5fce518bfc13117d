"""The fault matrix: what a peer, a network, a machine or a program can do to a socket, and what must hold then.

Each row is a function in `faults.rows`. It drives a process that uses one binding, `zeroxide` or another module with
pyzmq's API. `python -m faults`, started in `tests`, runs every row on every binding.
"""
