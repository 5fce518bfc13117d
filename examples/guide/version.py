"""Which ZeroMQ is this? python examples/guide/version.py"""

import zeroxide as zmq

# The version of libzmq whose interface and behaviour this is, for programs that ask; then the package's own.
major, minor, patch = zmq.zmq_version_info()
print(f"ZeroMQ {major}.{minor}.{patch}")
print(f"{zmq.__name__} {zmq.__version__}")
