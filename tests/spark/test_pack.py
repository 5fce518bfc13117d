"""Packing the packages of executors, with a replacement for venv-pack."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from zeroxide.spark.pack import main, pack


@pytest.fixture
def packer(monkeypatch):
    """Runs the Python of the environment to pack, and keeps its output."""
    said = []

    def take(prefix, output, **_options):
        script = "import pandas, pyarrow, zeroxide; print(zeroxide.__file__, pyarrow.__file__)"
        python = Path(prefix, "bin/python")
        said.append(subprocess.check_output([python, "-I", "-c", script], text=True).split())
        assert all(path.startswith(prefix) for path in said[-1])
        Path(output).write_bytes(b"packed")

    module = ModuleType("venv_pack")
    module.pack = take
    monkeypatch.setitem(sys.modules, "venv_pack", module)
    return said


def test_an_environment_is_independent(packer, tmp_path):
    assert pack(tmp_path / "x.tar.gz").read_bytes() == b"packed"
    assert len(packer) == 1


def test_missing_packages_are_named(packer, capsys, tmp_path):
    assert main([str(tmp_path / "x.tar.gz"), "no-such-package"]) == 1
    assert "no-such-package is not installed here" in capsys.readouterr().err
    assert not packer


def test_a_missing_packer_is_named(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "venv_pack", None)
    assert main([str(tmp_path / "x.tar.gz")]) == 1
    assert "pip install venv-pack" in capsys.readouterr().err
