"""The versions of pyzmq and libzmq that this package stands in for. Its own is ``__version__``."""

__all__ = [
    "VERSION_EXTRA",
    "VERSION_MAJOR",
    "VERSION_MINOR",
    "VERSION_PATCH",
    "__revision__",
    "pyzmq_version",
    "pyzmq_version_info",
    "zmq_version",
    "zmq_version_info",
]

# The versions of pyzmq and libzmq whose API and behaviour this package has. Programs look at them
# to find out what they may use.
VERSION_MAJOR, VERSION_MINOR, VERSION_PATCH, VERSION_EXTRA = 27, 3, 0, ""
__revision__ = ""
_LIBZMQ = (4, 3, 5)


def pyzmq_version() -> str:
    """Returns the version of pyzmq that this API corresponds to.

    Returns:
        The version: ``"27.3.0"``.

    Source:
        pyzmq's ``pyzmq_version``
    """
    return ".".join(map(str, pyzmq_version_info()))


def pyzmq_version_info() -> tuple[int, int, int]:
    """Returns the version of pyzmq that this API corresponds to, as numbers.

    Returns:
        Major, minor and patch.

    Source:
        pyzmq's ``pyzmq_version_info``
    """
    return VERSION_MAJOR, VERSION_MINOR, VERSION_PATCH


def zmq_version() -> str:
    """Returns the version of libzmq that the sockets behave like.

    Returns:
        The version: ``"4.3.5"``.

    Source:
        zmq_version(3)
    """
    return ".".join(map(str, _LIBZMQ))


def zmq_version_info() -> tuple[int, int, int]:
    """Returns the version of libzmq that the sockets behave like, as numbers.

    Returns:
        Major, minor and patch.

    Source:
        zmq_version(3)
    """
    return _LIBZMQ
