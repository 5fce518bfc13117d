"""Certificates: CURVE keys in text files, as pyzmq and czmq read and write them.

A certificate is a pair of files: ``NAME.key`` holds the public key, ``NAME.key_secret`` both keys.
"""

import datetime
import errno
import os
import stat
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from .. import _checks, curve_keypair
from .._exports import exports_only

__all__ = ["create_certificates", "load_certificate", "load_certificates"]


def __dir__() -> list[str]:
    return exports_only(globals())


_Path: TypeAlias = str | os.PathLike[str]

_PUBLIC = """\
#   A public key of ZeroMQ CURVE: give it to your peers, in a way that protects it
#   from changes.
"""
_SECRET = """\
#   A SECRET key of ZeroMQ CURVE: keep it secret, and do not change the permissions
#   of this file.
"""


def create_certificates(
    key_dir: _Path,
    name: str,
    metadata: Mapping[str, str | bytes] | Mapping[bytes, str | bytes] | None = None,
) -> tuple[str, str]:
    """Creates a key pair and writes it to two files. Only their owner can read the secret one.

    Args:
        key_dir: The folder to write to.
        name: The name of the files, without the endings ``.key`` and ``.key_secret``.
        metadata: Further entries to write into the secret file, if any: text, or `bytes` in UTF-8.

    Returns:
        The names of the files, the public one first.

    Raises:
        FileNotFoundError: The folder does not exist.
        OSError: A file cannot be written.
        TypeError: An argument is of the wrong type.
        ValueError: An entry has a line break.

    Source:
        pyzmq's ``zmq.auth.create_certificates``
    """
    public_key, secret_key = (key.decode("ascii") for key in curve_keypair())
    # `with_suffix` does not work here, because a name may have dots.
    folder = _checks.path("key_dir", key_dir)
    if metadata is not None and not isinstance(metadata, Mapping):
        raise TypeError(f"metadata takes a dict of text, not {_checks.shown(metadata)}")
    entries = [(_text(field), _text(value)) for field, value in (metadata or {}).items()]
    base = os.path.join(folder, _checks.name("name", name))
    folder = os.path.dirname(base) or "."
    if "\0" in base or not os.path.isdir(folder):
        raise FileNotFoundError(
            errno.ENOENT, "certificates need a folder that exists; this one does not", folder
        )
    keys = [("public-key", public_key)]
    public_file = _write(f"{base}.key", 0o644, _PUBLIC, [], keys)  # handed out, so without entries
    keys.append(("secret-key", secret_key))
    secret_file = _write(f"{base}.key_secret", 0o600, _SECRET, entries, keys)
    return public_file, secret_file


def _text(entry: object) -> str:
    """Returns a name or value of `metadata` as text of one line."""
    text = entry.decode() if isinstance(entry, bytes) else str(entry)
    if "\n" in text or "\r" in text:
        raise ValueError(f"metadata takes text without line breaks, not {_checks.shown(text)}")
    return text


def _write(
    path: str,
    mode: int,
    note: str,
    entries: list[tuple[str, str]],
    keys: list[tuple[str, str]],
) -> str:
    lines = [f"#   Made by zeroxide on {datetime.datetime.now():%Y-%m-%d %H:%M:%S}\n", note, "\n"]
    lines.append("metadata\n")
    lines += [f"    {field} = {value}\n" for field, value in entries]
    lines.append("curve\n")
    lines += [f'    {field} = "{key}"\n' for field, key in keys]
    # A new file replaces an existing one or a link, whose target is not written to. The keys
    # are never readable for others, not even briefly.
    fresh = f"{path}.{os.urandom(8).hex()}.new"
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode)  # whatever the umask is
            file.writelines(lines)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise
    return path


def load_certificate(filename: _Path) -> tuple[bytes, bytes | None]:
    """Reads the keys in a file.

    Links are followed. Warns if users other than the owner and the group can read a secret key, or
    if its file belongs to a user other than this one and root.

    Args:
        filename: The file.

    Returns:
        The public key (Z85, as `bytes`), and the secret key or None.

    Raises:
        OSError: The file cannot be read.
        ValueError: There is no public key in it.

    Source:
        pyzmq's ``zmq.auth.load_certificate``
    """
    path = Path(_checks.path("filename", filename))
    if not path.exists():
        raise OSError(f"Invalid certificate file: {filename}")
    # Only the keys have to be text; a comment may be in any encoding.
    with path.open("rb") as file:
        lines = file.read().splitlines()
        found = os.fstat(file.fileno())
    # Keys outside the section `curve` count, too, as in pyzmq, unless that section has the same ones.
    keys: dict[bytes, bytes] = {}
    elsewhere: dict[bytes, bytes] = {}
    section = b""
    for line in lines:
        line = line.strip()
        if not line or line.startswith(b"#"):
            continue
        field, equals, value = line.partition(b"=")
        if equals:
            home = keys if section == b"curve" else elsewhere
            home[field.strip()] = value.strip().strip(b"\"'")
        else:
            section = line
    public_key, secret_key = (
        keys.get(field, elsewhere.get(field)) for field in (b"public-key", b"secret-key")
    )
    if public_key is None:
        raise ValueError(f"No public key found in {filename}")
    if secret_key is not None:
        _warn_of_owner(filename, found)
    return public_key, secret_key


def _warn_of_owner(filename: _Path, found: os.stat_result) -> None:
    """Warns about a secret key that other users know.

    `found` describes the file that was read, whatever links lead to it.
    """
    if found.st_mode & stat.S_IRWXO:
        warnings.warn(
            f"every user of this machine can read the secret key in {filename}: chmod 600 "
            "it, and make a new one if they should not have",
            RuntimeWarning,
            stacklevel=3,
        )
    elif found.st_uid not in (0, os.geteuid()):
        warnings.warn(
            f"the secret key in {filename} belongs to another user (number {found.st_uid}), who "
            "knows it and may change it: make a key of your own, or chown the file",
            RuntimeWarning,
            stacklevel=3,
        )


def load_certificates(directory: _Path = ".") -> dict[bytes, bool]:
    """Reads the public keys of all ``*.key`` files in a folder.

    Args:
        directory: The folder.

    Returns:
        A dict with the keys (Z85, as `bytes`); every value is True.

    Raises:
        OSError: It is not a folder, or a file cannot be read.
        ValueError: There is no public key in a file.

    Source:
        pyzmq's ``zmq.auth.load_certificates``
    """
    folder = Path(_checks.path("directory", directory))
    if not folder.is_dir():
        raise OSError(f"Invalid certificate directory: {directory}")
    return {load_certificate(file)[0]: True for file in sorted(folder.glob("*.key"))}
