"""Run by the stages in an environment that holds the wheel and nothing else."""

import importlib
import importlib.metadata
import pkgutil
import sys
import sysconfig

import pyspark_zeromq  # noqa: F401  (must import where pyspark is not installed)
import zeroxide as zmq

installed = sorted(d.metadata["Name"].lower() for d in importlib.metadata.distributions())
assert set(installed) <= {"zeroxide", "pip", "setuptools"}, installed

# The packages that a part of zeroxide is made for. They may be missing.
OPTIONAL = {"gevent", "msgspec", "paramiko", "pyarrow", "pyspark", "rich", "tornado"}
for module in pkgutil.walk_packages(zmq.__path__, "zeroxide."):
    if "__main__" not in module.name and ".startup" not in module.name:
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            assert error.name is not None and error.name.partition(".")[0] in OPTIONAL, error

# An extension module that does not declare itself ready would bring the GIL back for the whole program.
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    gil_is_enabled = getattr(sys, "_is_gil_enabled", None)  # since Python 3.13
    assert gil_is_enabled is not None and not gil_is_enabled(), "the GIL came back with zeroxide"

with zmq.Context() as context, context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
    port = pull.bind_to_random_port("tcp://127.0.0.1")
    push.connect(f"tcp://127.0.0.1:{port}")
    push.send(b"through the wheel")
    assert pull.recv() == b"through the wheel"
print(f"zeroxide {zmq.__version__} imports and carries a message with nothing else installed")
