"""A warning for modules that use zeroxide and pyzmq under one name.

Code with ``import zeroxide as zmq`` followed by ``import zmq.asyncio`` silently uses pyzmq from then on.
"""

import sys
import warnings
from types import FrameType, ModuleType

from . import as_zmq

__all__ = ["watch_imports"]

_TEXT = (
    "{module} has imported zeroxide as {name}, and now imports zmq, which is pyzmq: sockets and "
    "contexts of the two do not go together. Import zeroxide.asyncio instead of zmq.asyncio, and "
    "so on; `python -m zeroxide.port FILE` finds and changes such lines"
)
# The importing modules: one statement may load several of pyzmq's modules.
_warned: set[str] = set()


class _Watch:
    """Sees the first import of each module of pyzmq, and finds no modules itself."""

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> None:
        if fullname.partition(".")[0] == "zmq" and not as_zmq.installed():
            importer = _importer(sys._getframe(1))
            name = importer and _name_of_ours(importer)
            if importer and name:
                _warn(importer, name)


def watch_imports() -> None:
    """Warns from now on if one module loads both."""
    sys.meta_path.insert(0, _Watch)


def _importer(frame: FrameType | None) -> FrameType | None:
    """The frame with the import statement."""
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame


def _name_of_ours(frame: FrameType) -> str | None:
    """Returns the name other than its own under which the code at a frame uses zeroxide."""
    package: ModuleType = sys.modules["zeroxide"]
    for scope in (frame.f_locals, frame.f_globals):
        for name, value in list(scope.items()):
            if value is package and name != "zeroxide":
                return name
    return None


def _warn(importer: FrameType, name: str) -> None:
    module = importer.f_globals.get("__name__", "a module")
    if module in _warned:
        return
    _warned.add(module)
    warnings.warn_explicit(
        _TEXT.format(module=module, name=name),
        RuntimeWarning,
        importer.f_code.co_filename,
        importer.f_lineno,
        module,
        importer.f_globals.setdefault("__warningregistry__", {}),
    )
