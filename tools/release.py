"""Stages of a release: wheels for every target, the source distribution, and the check before publishing.

The workflows in .github run these stages through tools/stages.py, like the make targets. Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

from stage_runner import ROOT, Failed, Runner, Stage, without

DIST = ROOT / "dist"
CLEAN_VENV = ROOT / "build" / "clean-venv"
WHEEL_VENV = ROOT / "build" / "wheel-venv"  # maturin and zig
WHEEL_LOCK = ROOT / "requirements" / "wheels.txt"

# The tag names the oldest C library that a wheel works with.
PLATFORMS = {
    "x86_64-unknown-linux-gnu": "manylinux_2_17_x86_64",
    "aarch64-unknown-linux-gnu": "manylinux_2_17_aarch64",
    "x86_64-unknown-linux-musl": "musllinux_1_2_x86_64",
    "aarch64-unknown-linux-musl": "musllinux_1_2_aarch64",
}
# One wheel serves every CPython with the GIL. Free-threaded CPython 3.14 has no stable ABI, so it gets a wheel of its own.
# As versions, not as programs: maturin then names the module as the target does, not as an interpreter of this machine.
PYTHONS = {"3.11": "cp311-abi3", "3.14t": "cp314-cp314t"}

EXPECTED_WARNING = re.compile(
    r"warning: ignoring (test|example|benchmark) `\w+` as `\S+` is not included in the published package"
    r"|warning: aborting upload due to dry run"
)


def version() -> str:
    """Reads the version that the crates and the package share."""
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    return str(cargo["workspace"]["package"]["version"])


# ---------------------------------------------------------------- building


def wheel_environment(runner: Runner) -> None:
    """Installs maturin and zig as the lock file pins them."""
    wanted = hashlib.sha256(WHEEL_LOCK.read_bytes() + sys.version.encode()).hexdigest()
    stamp = WHEEL_VENV / "lock.sha256"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    runner.sh(sys.executable, "-m", "venv", "--clear", WHEEL_VENV)
    pip_install = (WHEEL_VENV / "bin" / "python", "-m", "pip", "install", "--quiet")
    runner.sh(*pip_install, "--require-hashes", "-r", WHEEL_LOCK)
    stamp.write_text(wanted)


def build_wheel(target: str, python: str) -> Callable[[Runner], None]:
    """Builds with zig, whose linker knows the symbols of every glibc, and which brings musl."""

    def run(runner: Runner) -> None:
        path = (
            f"{WHEEL_VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"  # where maturin looks for zig
        )
        command = (WHEEL_VENV / "bin" / "maturin", "build", "--locked", "--profile", "release")
        tag = PLATFORMS[target].rpartition("_" + target.partition("-")[0])[0]
        runner.sh(
            *command,
            *("--zig", "--target", target, "--compatibility", tag),
            *("--interpreter", python, "--out", DIST),
            env={"PATH": path},
        )

    return run


def sdist(runner: Runner) -> None:
    maturin = WHEEL_VENV / "bin" / "maturin"
    runner.sh(maturin, "sdist", "--out", DIST)


def sdist_alone(runner: Runner) -> None:
    """Builds from the source distribution in an environment that pip makes, like a user without a wheel."""
    # Without --locked: the workspace in it is smaller than the lock file says.
    quick = {"MATURIN_PEP517_ARGS": "--profile quick"}
    try_package(DIST / f"zeroxide-{version()}.tar.gz", env=quick)(runner)


# ---------------------------------------------------------------- trying


def try_package(*source: str | Path, env: dict[str, str] | None = None) -> Callable[[Runner], None]:
    """Installs only the package into a new environment, imports it, and sends a message."""

    def run(runner: Runner) -> None:
        runner.sh(sys.executable, "-m", "venv", "--clear", CLEAN_VENV)
        python = CLEAN_VENV / "bin" / "python"
        runner.sh(python, "-m", "pip", "install", "--quiet", "--no-deps", *source, env=env)
        runner.sh(python, "-I", ROOT / "tools" / "clean_import.py", cwd=CLEAN_VENV)

    return run


def try_wheel(folder: Path) -> Callable[[Runner], None]:
    """Lets pip choose the wheel for the interpreter and C library of this machine."""
    return try_package("--no-index", "--only-binary=:all:", "--find-links", folder, "zeroxide")


def check(runner: Runner) -> None:
    """Checks that every file of the release exists, and that the version is the one that the tag names."""
    if (tag := os.environ.get("TAG")) and tag != f"v{version()}":
        raise Failed(f"the tag is {tag}, the version in Cargo.toml is {version()}")
    missing = missing_files([path.name for path in DIST.glob("*")])
    if missing:
        raise Failed(f"missing in {DIST}: {', '.join(missing)}")
    for wheel in DIST.glob("*.whl"):
        check_module(wheel)
    runner.say(f"{DIST} holds every file of zeroxide {version()}")


def missing_files(names: list[str]) -> list[str]:
    """Lists the files of a release that are not among `names`."""
    missing = [] if f"zeroxide-{version()}.tar.gz" in names else [f"zeroxide-{version()}.tar.gz"]
    for platform in PLATFORMS.values():
        for tag in PYTHONS.values():
            start = f"zeroxide-{version()}-{tag}-"
            tags = [
                name.removeprefix(start).removesuffix(".whl").split(".")
                for name in names
                if name.startswith(start)
            ]
            if not any(platform in one for one in tags):
                missing.append(f"{start}{platform}.whl")
    return missing


def check_module(wheel: Path) -> None:
    """Raises unless the extension module has the name under which the wheel's interpreters look for it."""
    _, _, python, abi, platform = wheel.stem.split("-")
    if abi == "abi3":
        wanted = "_native.abi3.so"
    else:
        architecture = next(name for name in ("x86_64", "aarch64") if platform.endswith(name))
        libc = "musl" if platform.startswith("musllinux") else "gnu"
        wanted = f"_native.{python.replace('cp', 'cpython-')}t-{architecture}-linux-{libc}.so"
    with zipfile.ZipFile(wheel) as content:
        if f"zeroxide/{wanted}" not in content.namelist():
            raise Failed(f"{wheel.name} has no {wanted}")


def package_crates(runner: Runner) -> None:
    """Builds every crate from its package, on the packages of the others, as crates.io's users will."""
    # The dry run is what verifies: `cargo package` looks for the others on crates.io. Its branch may have changes.
    output = runner.sh("cargo", "publish", "--workspace", "--locked", "--dry-run", "--allow-dirty")
    if unexpected := unexpected_warnings(output):
        raise Failed("; ".join(unexpected))


def unexpected_warnings(output: str) -> list[str]:
    """Lists cargo's warnings, except that tests stay in the repository and that this was a dry run."""
    warnings = [line.strip() for line in output.splitlines() if line.lstrip().startswith("warning")]
    return [line for line in warnings if not EXPECTED_WARNING.fullmatch(line)]


def publish_crates(runner: Runner) -> None:
    """Publishes the crates in the order of their dependencies; CARGO_REGISTRY_TOKEN authenticates the owner."""
    runner.sh("cargo", "publish", "--workspace", "--locked")


# ---------------------------------------------------------------- the stages


def without_target(target: str) -> Callable[[], str | None]:
    """`rustup target add` installs the standard library of a target."""

    def reason() -> str | None:
        if shutil.which("cargo") is None:
            return "no cargo here"
        asked = ("rustc", "--print", "target-libdir", "--target", target)
        folder = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
        return None if any(Path(folder).glob("libstd-*")) else f"no standard library for {target}"

    return reason


WHEEL_ENVIRONMENT = Stage("wheel environment", wheel_environment)
WHEELS = [
    Stage(
        f"{tag} {platform}",
        build_wheel(target, python),
        ("wheel environment",),
        without_target(target),
        lane="cargo",
    )
    for target, platform in PLATFORMS.items()
    for python, tag in PYTHONS.items()
]
SDIST = Stage("sdist", sdist, ("wheel environment",))
SDIST_ALONE = Stage("sdist, alone", sdist_alone, ("sdist",), lane="clean environment")
TRY_WHEEL = Stage("wheel, alone", try_wheel(DIST))
CHECK = Stage("check", check)
PACKAGES = Stage("packages of the crates", package_crates, skip=without("cargo"), lane="cargo")
CRATES = Stage("crates", publish_crates)
