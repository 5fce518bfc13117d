"""Runs at the start of an interpreter in which zmq means zeroxide.

Afterwards, the ``sitecustomize`` that it replaced runs. This module must work in every version of
Python, and must have no effect on programs that do not need zmq.
"""

import importlib
import os
import sys

_folder = os.path.dirname(os.path.abspath(__file__))
_everywhere = os.environ.get("ZEROXIDE_AS_ZMQ") == "all"

# The variables that lead to this file are not for subprocesses, unless they are included.
if not _everywhere:
    os.environ.pop("ZEROXIDE_AS_ZMQ", None)
    _path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _path[0] == _folder:
        _path = _path[1:]
    if _path:
        os.environ["PYTHONPATH"] = os.pathsep.join(_path)
    else:
        os.environ.pop("PYTHONPATH", None)

if sys.version_info >= (3, 11):  # noqa: UP036
    importlib.import_module("zeroxide_startup").begin(subprocesses=_everywhere)

sys.path[:] = [_entry for _entry in sys.path if os.path.abspath(_entry) != _folder]
_this = sys.modules.pop(__name__)
try:
    importlib.import_module("sitecustomize")
except ImportError as _error:
    if "sitecustomize" not in str(_error):
        raise
    # The import of this file expects a module under its name.
    sys.modules[__name__] = _this

# Programs write `sys.path` into the PYTHONPATH of those that they start.
if _everywhere:
    sys.path.insert(0, _folder)
