"""Packs the packages that Spark's executors need into an archive that is shipped with a query.

    python -m zeroxide.spark.pack environment.tar.gz

The archive holds a virtual environment with this installation of zeroxide, pyarrow and
pandas, in the versions that are installed here, and the additional packages that are named
after it. ``spark.archives`` ships it to the executors of a cluster. Their workers need
the same Python at the same path, but not these packages::

    export PYSPARK_DRIVER_PYTHON=$(which python) PYSPARK_PYTHON=./environment/bin/python
    python query.py   # with the setting spark.archives = environment.tar.gz#environment

It is made with venv-pack (``pip install venv-pack``).
"""

import re
import shutil
import sys
import tempfile
import venv
from collections.abc import Iterable, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from .._arguments import Parser
from .._exports import exports_only

__all__ = ["main", "pack"]


def __dir__() -> list[str]:
    return exports_only(globals())


# These are always included, however they were installed.
OURS = ("zeroxide", "pyspark_zeromq")
# Other packages that Spark's Python workers need. Executors already have Spark itself.
NEEDED = ("pyarrow", "pandas")


def pack(output: "str | Path", packages: Iterable[str] = ()) -> Path:
    """Writes an archive with zeroxide, pyarrow, pandas and other installed packages.

    Args:
        output: The file to write, for example ``environment.tar.gz``.
        packages: The names of further installed packages to include.

    Returns:
        The file.

    Raises:
        ImportError: venv-pack is not installed.
        PackageNotFoundError: A package is not installed here.

    Source:
        zeroxide only
    """
    try:
        import venv_pack
    except ImportError as error:
        text = "zeroxide.spark.pack needs venv-pack: pip install venv-pack"
        raise ImportError(text) from error
    with tempfile.TemporaryDirectory(prefix="zeroxide-pack-") as folder:
        home = Path(folder, "environment")
        venv.EnvBuilder(symlinks=True).create(home)
        site = next(home.glob("lib/python*/site-packages"))
        for package in OURS:
            _copy_package(package, site)
        for distribution in _with_dependencies([*NEEDED, *packages]):
            _copy_distribution(distribution, site)
        # Speed matters more than size, because executors fetch it once.
        venv_pack.pack(prefix=str(home), output=str(output), force=True, compress_level=1)
    return Path(output)


def _copy_package(name: str, site: Path) -> None:
    """Copies a package from the place where Python finds it, even from an editable installation."""
    spec = find_spec(name)
    assert spec is not None and spec.origin is not None, "it is part of this distribution"
    folder = Path(spec.origin).parent
    shutil.copytree(folder, site / name, ignore=shutil.ignore_patterns("__pycache__"))


def _with_dependencies(names: Iterable[str]) -> list[metadata.Distribution]:
    """The installed distributions with these names, and their requirements."""
    waiting = list(names)
    wanted = len(waiting)
    found: dict[str, metadata.Distribution] = {}
    for position, name in enumerate(waiting):
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            continue
        try:
            found[key] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if position < wanted:
                raise
            # A requirement of another platform, or of an older Python.
            continue
        for requirement in found[key].requires or []:
            text, _, marker = requirement.partition(";")
            if "extra" not in marker:
                waiting.append(re.split(r"[^A-Za-z0-9._-]", text.strip(), maxsplit=1)[0])
    return list(found.values())


def _copy_distribution(distribution: metadata.Distribution, site: Path) -> None:
    for file in distribution.files or []:
        # Commands are stored elsewhere, and executors do not need them.
        if ".." in file.parts or "__pycache__" in file.parts:
            continue
        source, target = Path(str(distribution.locate_file(file))), site / file
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command ``python -m zeroxide.spark.pack``.

    Args:
        arguments: The arguments; None for those of the process.

    Returns:
        The exit code.
    """
    parser = Parser(
        prog="python -m zeroxide.spark.pack",
        description="Packs the packages of Spark's executors into an archive for spark.archives.",
    )
    parser.add_argument("output", help="the archive to write, such as environment.tar.gz")
    parser.add_argument("packages", nargs="*", help="further installed packages to include")
    options = parser.read(arguments)
    try:
        output = pack(options.output, options.packages)
    except metadata.PackageNotFoundError as error:
        print(f"{parser.prog}: {error.name} is not installed here", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    print(f"{output}: {output.stat().st_size / 1e6:.0f} MB; spark.archives = {output}#environment")
    return 0


if __name__ == "__main__":
    sys.exit(main())
