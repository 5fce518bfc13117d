"""What the stages of `make test` do that compile and run the crates.

Standard library only, like everything that sets up the environment that the rest runs in.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable

from stage_runner import CARGO_FAILED, PYTHON, ROOT, TARGET, Failed, Runner, without

# Extension modules do not link libpython, so `cargo test` cannot run them.
EXTENSION = "*-python"
FEATURES = "zeroxide/futures,zeroxide-discovery/srv"  # tested and documented, beyond the default
# What `cargo test` builds. Cargo builds dependencies again for any other selection of packages and features.
CRATES = (
    *("--locked", "--workspace", "--exclude", EXTENSION),
    *("--features", FEATURES, "--profile", "quick"),
)


# ---------------------------------------------------------------- what the stages do


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


def simulated_clippy(runner: Runner) -> None:
    """The code that only simulations build, which has its own target directories, like loom."""
    for name, cfgs, targets in (
        ("simulated", ("shuttle", "disk"), ("simulation", "schedules", "disk")),
        ("loom", ("loom",), ("loom",)),
    ):
        flags = " ".join(f"--cfg zeroxide_{cfg}" for cfg in cfgs)
        packages = ("-queue",) if name == "loom" else ("", "-pipeline", "-log")
        runner.sh(
            *("cargo", "clippy", "--locked", "--lib"),
            *(part for package in packages for part in ("-p", f"zeroxide{package}")),
            *(part for target in targets for part in ("--test", target)),
            *("--", "-D", "warnings"),
            env={"RUSTFLAGS": flags, "CARGO_TARGET_DIR": str(TARGET / f"clippy-{name}")},
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
        *("cargo", "test", "--no-fail-fast", *CRATES),
        failed=CARGO_FAILED,
        again=lambda names: ["--", "--exact", *names],
        env={"ZEROXIDE_FULL": "1"} if runner.everything else None,
    )


def rust_nodes(runner: Runner) -> None:
    """Builds a peer for the stage `interop`, whose tests would wait for other builds if they built it."""
    runner.sh("cargo", "build", *CRATES, "--example", "chat")
    os.environ["ZEROXIDE_CHAT"] = str(TARGET / "quick" / "examples" / "chat")


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
    runner.sh(*test, "-p", "zeroxide-log", "--lib", "--test", "disk", env=env)
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


def other_crate(runner: Runner) -> None:
    """Builds an extension module with a transport, a pattern and a mechanism of other crates, and uses it with the installed package."""
    build = ("cargo", "build", "--locked", "--profile", "quick", "-p", "zeroxide-extensions-python")
    runner.sh(*build, env=like_the_wheel())
    folder = TARGET / "other-crate"
    folder.mkdir(parents=True, exist_ok=True)
    built = TARGET / "quick" / "libzeroxide_extensions.so"
    shutil.copy(built, folder / "zeroxide_extensions.so")
    pytest = (PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "examples/extensions")
    runner.sh(*pytest, env={"PYTHONPATH": str(folder)})


def cargo_deny(runner: Runner) -> None:
    runner.sh("cargo", "deny", "check")


# ---------------------------------------------------------------- what the stages ask


def one_python() -> dict[str, str]:
    """pyo3 rebuilds when its interpreter changes, so clippy and maturin must name the same one."""
    return {"PYO3_PYTHON": str(PYTHON)}


def like_the_wheel() -> dict[str, str]:
    """The variables for which maturin built pyo3: with others, cargo builds it again, in turns for this and for the wheel."""
    configurations = list((TARGET / "maturin").glob("pyo3-config-*.txt"))
    if not configurations:
        raise Failed("no wheel was built here before")
    newest = max(configurations, key=lambda path: path.stat().st_mtime)
    return {
        **one_python(),
        "PYO3_CONFIG_FILE": str(newest),
        "PYO3_BUILD_EXTENSION_MODULE": "1",
    }


def without_counts() -> str | None:
    """Returns why instructions cannot be counted here: counts are for one compiler and one family of CPUs."""
    asked = (sys.executable, ROOT / "tools" / "instructions.py", "--why-not")
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() or None


def without_memcheck() -> str | None:
    """Secrets are marked by instructions of x86-64 that valgrind understands."""
    if platform.machine() != "x86_64":
        return "not x86-64"
    return without("cargo", "valgrind")()
