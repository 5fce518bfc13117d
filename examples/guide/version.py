"""Prints the versions. python examples/guide/version.py"""

import zeroxide as zmq

# The version of libzmq whose interface and behaviour this is, for programs that compare; then the package's version.
major, minor, patch = zmq.zmq_version_info()
print(f"ZeroMQ {major}.{minor}.{patch}")
print(f"{zmq.__name__} {zmq.__version__}")
