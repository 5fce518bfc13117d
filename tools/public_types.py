"""The public types of the package as type checkers see them, as `make lint` runs them: `python3
tools/public_types.py`.

The programs in tests/typed have to pass pyright and mypy, both strict, except for the lines that are mistakes on
purpose. Every public name of the package needs a type that all type checkers infer alike.

The checkers have to see the sources as an installed package: only then does pyright tell public names from private
ones. So they get an environment that holds nothing but a path to the sources and one to the tools.
"""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "typed"
ENVIRONMENT = ROOT / "build" / "typing"
VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


def environment() -> Path:
    """Makes the environment in which zeroxide is installed from its sources; returns its interpreter."""
    venv.create(ENVIRONMENT, clear=True)
    site = Path("lib") / VERSION / "site-packages"
    paths = f"{ROOT / 'python'}\n{Path(sys.prefix) / site}\n"
    (ENVIRONMENT / site / "sources.pth").write_text(paths)
    return ENVIRONMENT / "bin" / "python"


def run(*command: object, quiet: bool = False) -> tuple[bool, str]:
    words = [str(word) for word in command]
    print("$ " + " ".join(words), flush=True)
    result = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    if not quiet:
        print(result.stdout, end="", flush=True)
    return result.returncode == 0, result.stdout


def incomplete(report: str) -> str:
    """Returns the parts of pyright's report that name errors."""
    blocks = re.findall(r"^zeroxide\S*\n(?:[ \t]+.*\n)+", report, re.MULTILINE)
    wrong = [block for block in blocks if "error:" in block]
    summary = re.findall(r"^Type completeness score.*", report, re.MULTILINE)
    return "".join([*wrong, *summary])


def main() -> int:
    python = environment()
    pyright = (sys.executable, "-m", "pyright", "--pythonpath", python)
    # For --verifytypes, pyright asks the first interpreter on the path.
    os.environ["PATH"] = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    programs, _ = run(*pyright, "--project", PROGRAMS)
    mypy, _ = run(
        *(sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-executable"),
        *(python, *sorted(PROGRAMS.glob("*.py"))),
    )
    names, report = run(*pyright, "--verifytypes", "zeroxide", "--ignoreexternal", quiet=True)
    print(incomplete(report) or report)
    return 0 if programs and mypy and names else 1


if __name__ == "__main__":
    sys.exit(main())
