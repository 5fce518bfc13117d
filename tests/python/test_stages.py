"""`make test` sums up the counts of the test runners."""

import importlib
import re
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from support import PATIENCE

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
release = importlib.import_module("release")
stage_runner = importlib.import_module("stage_runner")


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        (
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.1s",
            (5, 0, 1),
        ),
        (
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            (1, 2, 0),
        ),
        (
            "====== 3 failed, 12 passed, 1 skipped, 2 deselected in 65.31s (0:01:05) ======",
            (12, 3, 1),
        ),
        ("4 passed, 1 error in 0.79s", (4, 1, 0)),
        ("    Finished `quick` profile [optimized] target(s) in 9.60s", (0, 0, 0)),
        ("the server passed 3 messages", (0, 0, 0)),
    ],
)
def test_closing_lines_are_counted(line: str, counts: tuple[int, int, int]) -> None:
    seen = stage_runner.Counts()
    seen.read(line)
    assert (seen.passed, seen.failed, seen.skipped) == counts


def stage(name: str, *needs: str, fail: bool = False, skip: str | None = None) -> object:
    def run(runner: object) -> None:
        if fail:
            raise stage_runner.Failed("as it should")

    return stage_runner.Stage(name, run, needs, lambda: skip)


def test_a_failure_fails_the_run_and_stops_only_dependent_stages(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = [
        stage("ground", fail=True),
        stage("above", "ground"),
        stage("missing", skip="no tool"),
        stage("on what is missing", "missing"),
        stage("apart"),
    ]
    assert stage_runner.run(plan, stage_runner.Runner()) == 1
    lines = capsys.readouterr().out.splitlines()
    summary = lines[lines.index("=== summary ===") + 1 :]
    assert [line.split()[0] for line in summary[:5]] == [
        "FAILED",
        "not",
        "skipped",
        "skipped",
        "ok",
    ]
    assert summary[-1] == "0 passed, 1 failed, 2 skipped"


def test_stages_run_at_the_same_time_except_those_of_a_lane() -> None:
    meeting = threading.Barrier(2, timeout=PATIENCE)
    builder = threading.Lock()

    def meet(runner: object) -> None:
        meeting.wait()

    def build(runner: object) -> None:
        assert builder.acquire(blocking=False), "two builds at the same time"
        meeting.wait()
        builder.release()

    plan = [
        stage_runner.Stage("first build", build, lane="cargo"),
        stage_runner.Stage("second build", build, lane="cargo"),
        stage_runner.Stage("beside the first", meet),
        stage_runner.Stage("beside the second", meet, after=("first build",)),
    ]
    assert stage_runner.run(plan, stage_runner.Runner(), at_once=3) == 0


def test_a_stage_that_comes_after_a_failed_one_runs(capsys: pytest.CaptureFixture[str]) -> None:
    ended = []

    def tests(runner: object) -> None:
        ended.append("tests")
        raise stage_runner.Failed("as it should")

    def table(runner: object) -> None:
        assert ended == ["tests"]
        ended.append("table")

    plan = [
        stage_runner.Stage("table", table, after=("tests",)),
        stage_runner.Stage("tests", tests),
    ]
    assert stage_runner.run(plan, stage_runner.Runner()) == 1
    assert ended == ["tests", "table"]


def test_outputs_of_stages_that_run_at_the_same_time_do_not_mix(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said, shown = threading.Event(), []

    def first(runner: stage_runner.Runner) -> None:
        runner.sh(sys.executable, "-c", "print('one')")
        assert said.wait(PATIENCE)
        shown.append(capsys.readouterr().out)
        runner.sh(sys.executable, "-c", "print('two')")

    def second(runner: stage_runner.Runner) -> None:
        runner.say("three")
        said.set()

    plan = [stage_runner.Stage("first", first), stage_runner.Stage("second", second)]
    assert stage_runner.run(plan, stage_runner.Runner()) == 0
    assert "one" in shown[0] and "three" not in shown[0], "the first is seen while it runs"
    lines = (shown[0] + capsys.readouterr().out).split("=== summary ===")[0].splitlines()
    assert [line for line in lines if line in ("one", "two", "three")] == ["one", "two", "three"]
    assert lines.index("two") < lines.index("=== second ===") < lines.index("three")


def test_commands_end_when_the_run_is_interrupted() -> None:
    runner = stage_runner.Runner()

    def forever(runner: stage_runner.Runner) -> None:
        runner.sh(
            sys.executable, "-c", "import time; print('started', flush=True); time.sleep(600)"
        )

    def interrupt(own: stage_runner.Runner) -> None:
        own.sh(sys.executable, "-c", "")
        raise KeyboardInterrupt

    plan = [stage_runner.Stage("forever", forever), stage_runner.Stage("interrupt", interrupt)]
    with pytest.raises(KeyboardInterrupt):
        stage_runner.run(plan, runner)
    with pytest.raises(stage_runner.Failed, match="interrupted"):
        runner.sh(sys.executable, "-c", "")


def test_a_command_that_fails_is_a_failure() -> None:
    stage_runner.Runner().sh(sys.executable, "-c", "pass")
    with pytest.raises(stage_runner.Failed, match="exit code 3"):
        stage_runner.Runner().sh(sys.executable, "-c", "raise SystemExit(3)")


SUITE = """
import pathlib, pytest

@pytest.mark.parametrize("kind", ["a test", "another test"])
def test_first_time(kind):
    tried = pathlib.Path(__file__).with_suffix("." + kind)
    if not tried.exists():
        tried.touch()
        assert False, "the first time"

@pytest.mark.parametrize("number", range(-1, {broken}))
def test_broken(number):
    assert number < 0

def test_steady():
    pass
"""


def run_suite(folder: Path, broken: int) -> tuple[object, int]:
    (folder / "pytest.ini").touch()
    suite = folder / "test_suite.py"
    suite.write_text(SUITE.format(broken=broken))
    runner = stage_runner.Runner()

    def tests(runner: object) -> None:
        command = (sys.executable, "-m", "pytest", "--rootdir", folder, "-ra", suite)
        again = ["--last-failed", "--last-failed-no-failures", "none"]
        runner.tests(*command, failed=stage_runner.PYTEST_FAILED, again=lambda _: again)

    return runner, stage_runner.run([stage_runner.Stage("tests", tests)], runner)


def test_a_test_that_passes_when_run_again_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runner, code = run_suite(tmp_path, broken=0)
    assert code == 0
    assert runner.counts == stage_runner.Counts(passed=4)
    summary = capsys.readouterr().out.split("=== summary ===")[1]
    for name in ("test_first_time[a test]", "test_first_time[another test]"):
        assert re.search(f"UNSTEADY: .*::{re.escape(name)}\n", summary)


@pytest.mark.parametrize("broken", [1, 9])
def test_a_broken_test_fails_the_run(tmp_path: Path, broken: int) -> None:
    """Many failures are not run again."""
    runner, code = run_suite(tmp_path, broken)
    assert code == 1
    assert runner.counts == stage_runner.Counts(passed=2, failed=2 + broken)


def test_failed_tests_of_cargo_are_found() -> None:
    output = """
test one::two ... ok
test one::three ... FAILED
test src/lib.rs - four (line 5) ... FAILED
test result: FAILED. 1 passed; 2 failed; 0 ignored
"""
    names = stage_runner.CARGO_FAILED.findall(output)
    assert names == ["one::three", "src/lib.rs - four (line 5)"]


def test_the_output_of_a_command_is_returned(capsys: pytest.CaptureFixture[str]) -> None:
    said = stage_runner.Runner().sh(sys.executable, "-c", "print('one'); print('two')")
    assert said == "one\ntwo\n" and capsys.readouterr().out.endswith(said)


def test_packages_of_crates_are_built_without_unexpected_warnings() -> None:
    expected = """
warning: ignoring test `loom` as `tests/loom.rs` is not included in the published package
   Compiling zeroxide-queue v0.1.0
warning: aborting upload due to dry run
"""
    assert release.unexpected_warnings(expected) == []
    for line in (
        "warning: unused variable: `x`",
        "warning: manifest has no documentation, homepage or repository",
        "warning: ignoring library `x` as `src/lib.rs` is not included in the published package",
    ):
        assert release.unexpected_warnings(expected + line) == [line]


def test_a_process_that_a_command_leaves_running_does_not_block_the_run() -> None:
    """A child of the command holds the output open; it is killed when the command has ended."""
    leave = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    stage_runner.Runner().sh(sys.executable, "-c", leave)


def files_of_a_release() -> list[str]:
    version = release.version()
    wheels = [
        f"zeroxide-{version}-{python}-{platform}.whl"
        for python in ("cp311-abi3", "cp314-cp314t")
        for platform in (
            "manylinux_2_17_x86_64.manylinux2014_x86_64",
            "manylinux_2_17_aarch64.manylinux2014_aarch64",
            "musllinux_1_2_x86_64",
            "musllinux_1_2_aarch64",
        )
    ]
    return [*wheels, f"zeroxide-{version}.tar.gz"]


def test_a_release_lacks_nothing() -> None:
    assert release.missing_files(files_of_a_release()) == []


@pytest.mark.parametrize("left_out", range(9))
def test_a_release_names_the_file_that_is_missing(left_out: int) -> None:
    files = files_of_a_release()
    name = files.pop(left_out).replace(".manylinux2014_x86_64", "")
    assert release.missing_files(files) == [name.replace(".manylinux2014_aarch64", "")]


def test_a_release_of_another_version_is_not_complete() -> None:
    others = [name.replace(release.version(), "9.9.9") for name in files_of_a_release()]
    assert len(release.missing_files(others)) == 9


def test_a_tag_that_is_not_the_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAG", "v9.9.9")
    with pytest.raises(release.Failed, match=r"the tag is v9\.9\.9, the version"):
        release.check(stage_runner.Runner())


@pytest.mark.parametrize(
    ("wheel", "module"),
    [
        ("cp311-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64", "abi3"),
        ("cp314-cp314t-manylinux_2_17_aarch64", "cpython-314t-aarch64-linux-gnu"),
        ("cp314-cp314t-musllinux_1_2_x86_64", "cpython-314t-x86_64-linux-musl"),
    ],
)
def test_a_wheel_holds_the_module_of_its_interpreter(
    wheel: str, module: str, tmp_path: Path
) -> None:
    path = tmp_path / f"zeroxide-1.2.3-{wheel}.whl"
    with zipfile.ZipFile(path, "w") as content:
        content.writestr(f"zeroxide/_native.{module}.so", "")
    release.check_module(path)


def test_a_wheel_with_the_module_of_another_machine_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "zeroxide-1.2.3-cp314-cp314t-manylinux_2_17_aarch64.whl"
    with zipfile.ZipFile(path, "w") as content:
        content.writestr("zeroxide/_native.cpython-314t-x86_64-linux-gnu.so", "")
    with pytest.raises(
        stage_runner.Failed, match=r"no _native\.cpython-314t-aarch64-linux-gnu\.so"
    ):
        release.check_module(path)
