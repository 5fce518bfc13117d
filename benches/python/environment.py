"""Makes build/bench-venv, where the rivals are: `python benches/python/environment.py`; prints its interpreter.

The rivals are not part of the project's lock file. The interpreter is the newest one here for which
all of them have wheels
(pyomq's releases need 3.12 now, an older one serves 3.11), or the one that runs this. zeroxide comes from the release wheel.
Packages that the index does not have are left out with a line, and the benches run without them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / "build" / "bench-venv"
PYTHON = VENV / "bin" / "python"
NEEDED = ("pyzmq==27.3.0", "uvloop")
RIVALS = (
    "pyomq",
    "pynng",
    "eclipse-zenoh",
    "nats-py",
    "redis",
    "pika",
    "confluent-kafka",
    "stomp.py",
)
FROM_SOURCE = ("pynsq",)  # pure Python packages without wheels
NSQ = ROOT / "benches" / "nsq"
NSQD = VENV / "bin" / "nsqd"
NEWEST_FIRST = ("3.13", "3.12")


def main() -> int:
    python = next(filter(None, map(working, candidates())), sys.executable)
    stamp, wanted = VENV / "made-of", f"{python} {NEEDED} {RIVALS} {FROM_SOURCE}"
    if not stamp.is_file() or stamp.read_text() != wanted:
        subprocess.run([python, "-m", "venv", "--clear", VENV], check=True)
        pip("install", *NEEDED, check=True)
        for rival in (*RIVALS, *FROM_SOURCE):
            source = [f"--no-binary={rival}"] if rival in FROM_SOURCE else []
            if pip("install", "--only-binary=:all:", *source, rival) != 0:
                print(f"left out: {rival}, which cannot be installed for {python}", file=sys.stderr)
        build_nsqd()
        stamp.write_text(wanted)
    wheels = sorted((ROOT / "dist").glob("zeroxide-*.whl"))
    if not wheels:
        sys.exit("no wheel in dist: `make wheel` builds it")
    installed, digest = VENV / "wheel.sha256", hashlib.sha256(wheels[-1].read_bytes()).hexdigest()
    if not installed.is_file() or installed.read_text() != digest:
        pip("install", "--no-deps", "--force-reinstall", str(wheels[-1]), check=True)
        installed.write_text(digest)
    print(PYTHON)
    return 0


def build_nsqd() -> None:
    """Builds NSQ's server from its module, because no distribution has it; go.sum pins its dependencies."""
    if (go := shutil.which("go")) is None:
        print("left out: nsqd, because go is not installed (Debian: golang-go)", file=sys.stderr)
        return
    command = [go, "build", "-o", str(NSQD), "github.com/nsqio/nsq/apps/nsqd"]
    if subprocess.run(command, cwd=NSQ).returncode != 0:
        print("left out: nsqd, which does not build", file=sys.stderr)


def candidates() -> Iterator[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in NEWEST_FIRST:
        yield f"python{version}"
        yield from (str(folder / "bin" / "python") for folder in pyenv.glob(f"{version}.*"))


def working(name: str) -> str | None:
    """Returns the interpreter with this name if it starts; some of pyenv's do not."""
    if (path := shutil.which(name)) is None:
        return None
    asked = subprocess.run(
        [path, "-c", "import ensurepip, sys; print(sys.executable)"], capture_output=True, text=True
    )
    return asked.stdout.strip() if asked.returncode == 0 else None


def pip(*arguments: str, check: bool = False) -> int:
    command = [str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, check=check).returncode


if __name__ == "__main__":
    sys.exit(main())
