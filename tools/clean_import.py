"""Run by the stages in an environment that holds the wheel and nothing else."""

import importlib.metadata

import pyspark_zeromq  # noqa: F401  (must import where pyspark is not installed)
import zeroxide as zmq

installed = sorted(d.metadata["Name"].lower() for d in importlib.metadata.distributions())
assert set(installed) <= {"zeroxide", "pip", "setuptools"}, installed

with zmq.Context() as context, context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
    port = pull.bind_to_random_port("tcp://127.0.0.1")
    push.connect(f"tcp://127.0.0.1:{port}")
    push.send(b"through the wheel")
    assert pull.recv() == b"through the wheel"
print(f"zeroxide {zmq.__version__} imports and carries a message with nothing else installed")
