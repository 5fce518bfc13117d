"""Runs when an interpreter starts in which zmq shall mean zeroxide.

Then it makes room for the ``sitecustomize`` that would have run without it. Whatever Python
it is, this has to run there: a program that needs no zmq must not notice.
"""

import importlib
import os
import sys

_folder = os.path.dirname(os.path.abspath(__file__))
_everywhere = os.environ.get("ZEROXIDE_AS_ZMQ") == "all"

# What brought this file here is not for subprocesses, unless they are meant, too.
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
    # Whoever is importing this file looks for it under its name.
    sys.modules[__name__] = _this
