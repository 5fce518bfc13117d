"""Versions: of the package in ``__version__``, of what it stands in for here."""

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

# The pyzmq whose API this is, and the libzmq whose behaviour: programs ask for these
# to find out what they may use.
VERSION_MAJOR, VERSION_MINOR, VERSION_PATCH, VERSION_EXTRA = 27, 3, 0, ""
__revision__ = ""
_LIBZMQ = (4, 3, 5)


def pyzmq_version() -> str:
    """Returns the version of pyzmq that this API corresponds to.

    Returns:
        The version: ``"27.3.0"``.
    """
    return ".".join(map(str, pyzmq_version_info()))


def pyzmq_version_info() -> tuple[int, int, int]:
    """Returns the version of pyzmq that this API corresponds to, as numbers.

    Returns:
        Major, minor and patch.
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
