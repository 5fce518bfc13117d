"""Builds libzmq with its draft sockets into build/libzmq-drafts, as a peer for the tests.

pyzmq's wheels have no drafts. The source is the package zeromq-src of crates.io, which holds libzmq's release unchanged;
cargo fetches it. Standard library only.

Run as a program, it builds the library unless that is there already, and prints its path.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "libzmq-drafts"
LIBRARY = FOLDER / "libzmq.so"
TOOLS = ("cargo", "cmake", "c++", "make")

PACKAGE = "zeromq-src"
VERSION = "0.3.6+4.3.5"
SHA256 = "d9a1c884770df9c1b3eb0a0ad01d7516234879e0ce144c505348550f2492923e"

MANIFEST = f"""[package]
name = "fetch"
version = "0.0.0"
edition = "2021"

[lib]
path = "lib.rs"

[dependencies]
{PACKAGE} = "={VERSION.partition("+")[0]}"

[workspace]
"""

# Without libsodium, it is built without CURVE.
OPTIONS = {
    "ENABLE_DRAFTS": "ON",
    "ENABLE_CURVE": "ON",
    "WITH_LIBSODIUM": "ON",
    "BUILD_SHARED": "ON",
    "BUILD_STATIC": "OFF",
    "BUILD_TESTS": "OFF",
    "WITH_DOCS": "OFF",
    "WITH_DOC": "OFF",
    "WITH_PERF_TOOL": "OFF",
    "ENABLE_CPACK": "OFF",
}


def main() -> None:
    """Builds the library, without optimisation because that takes half the time, and prints its path."""
    if not LIBRARY.exists():
        build()
    print(LIBRARY)


def build(folder: Path = FOLDER, build_type: str = "None", flags: str = "-O0 -w") -> Path:
    """Fetches, checks, unpacks and builds the source. Returns the library, whose header is in `include` beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    fetching = folder / "fetch"
    fetching.mkdir(parents=True)
    source = unpack(fetch(fetching), folder)
    made = folder / "make"
    settings = OPTIONS | {"CMAKE_BUILD_TYPE": build_type, "CMAKE_CXX_FLAGS": flags}
    options = [f"-D{name}={value}" for name, value in settings.items()]
    run("cmake", "-S", source, "-B", made, *options)
    run("cmake", "--build", made, "--parallel", str(os.cpu_count() or 1))
    built = next((made / "lib").glob("libzmq.so.*.*.*"))
    shutil.copytree(source / "include", folder / "include")
    # In one step, so that an interrupted build leaves no library.
    library = folder / LIBRARY.name
    shutil.copy(built, folder / "libzmq.new")
    os.replace(folder / "libzmq.new", library)
    return library


def fetch(folder: Path) -> Path:
    """The package in cargo's cache."""
    (folder / "Cargo.toml").write_text(MANIFEST)
    (folder / "lib.rs").touch()
    words = ("cargo", "metadata", "--format-version", "1", "--manifest-path", folder / "Cargo.toml")
    packages = json.loads(run(*words))["packages"]
    manifest = next(Path(each["manifest_path"]) for each in packages if each["name"] == PACKAGE)
    index = manifest.parent.parent
    return index.parent.parent / "cache" / index.name / f"{PACKAGE}-{VERSION}.crate"


def unpack(package: Path, folder: Path) -> Path:
    """Checks the package, unpacks it into the folder and returns the folder with libzmq's source."""
    found = hashlib.sha256(package.read_bytes()).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{package} has the SHA-256 {found}, expected {SHA256}")
    with tarfile.open(package) as archive:
        archive.extractall(folder, filter="data")
    return folder / f"{PACKAGE}-{VERSION}" / "vendor"


def run(*words: str | Path) -> str:
    """Runs a command and returns its output; shows it if the command fails."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
