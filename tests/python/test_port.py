"""Programs that move from pyzmq: which lines change, and what is reported about the others."""

import subprocess
import sys

import pytest
from support import run_script

pytestmark = pytest.mark.zeroxide_only

port = pytest.importorskip("zeroxide.port").port


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import zmq", "import zeroxide as zmq"),
        ("import zmq as z", "import zeroxide as z"),
        ("import zmq, os", "import zeroxide as zmq, os"),
        ("import os, zmq  # both", "import os, zeroxide as zmq  # both"),
        ("import zmq.asyncio", "import zeroxide as zmq, zeroxide.asyncio"),
        ("import zmq\nimport zmq.asyncio", "import zeroxide as zmq\nimport zeroxide.asyncio"),
        (
            "import zeroxide as zmq\nimport zmq.asyncio",
            "import zeroxide as zmq\nimport zeroxide.asyncio",
        ),
        ("import zmq.asyncio as azmq", "import zeroxide.asyncio as azmq"),
        ("from zmq import Context, PUB", "from zeroxide import Context, PUB"),
        ("from zmq.asyncio import Context", "from zeroxide.asyncio import Context"),
        ("from zmq.utils import (\n    z85,\n)", "from zeroxide.utils import (\n    z85,\n)"),
        ("from \\\n  zmq import *", "from \\\n  zeroxide import *"),
        (
            "def f():\n    import zmq; return zmq",
            "def f():\n    import zeroxide as zmq; return zmq",
        ),
        (
            "try:\n    import zmq\nexcept ImportError:\n    zmq = None",
            "try:\n    import zeroxide as zmq\nexcept ImportError:\n    zmq = None",
        ),
        (
            "match 1:\n    case 1:\n        import zmq",
            "match 1:\n    case 1:\n        import zeroxide as zmq",
        ),
        (
            "if x:\n    import zmq\nelse:\n    import zmq.green as zmq",
            "if x:\n    import zeroxide as zmq\nelse:\n    import zeroxide.green as zmq",
        ),
        ("s = 'größer'; import zmq", "s = 'größer'; import zeroxide as zmq"),
        ("import zmq\r\nzmq.PUB\r\n", "import zeroxide as zmq\r\nzmq.PUB\r\n"),
        ("import zmqtt, pyzmq\nfrom .zmq import x", None),
        ("from . import zmq\nfrom .. import zmq as z", None),
        ("getLogger('zmq.auth')", None),
        ("import zeroxide as zmq\nimport zeroxide.asyncio", None),
    ],
)
def test_imports(before, after):
    assert port(before)[0] == (before if after is None else after)
    changed, findings = port(before)
    assert all(finding.after is not None for finding in findings)
    assert bool(findings) == (after is not None)
    assert port(changed) == (changed, [])


@pytest.mark.parametrize(
    ("source", "note"),
    [
        ("import importlib\nimportlib.import_module('zmq')", "in a string"),
        ("__import__('zmq.asyncio')", "in a string"),
        ("run([python, '-m', 'zmq.log'])", "in a string"),
        ("mock.patch('zmq.Context')", "in a string"),
        ("import zmq\nzmq.nothing_of_the_kind()", "zeroxide has no nothing_of_the_kind"),
        ("from zmq import nothing_of_the_kind", "zeroxide has no nothing_of_the_kind"),
        ("import zmq.nothing.at_all", "there is no module zeroxide.nothing"),
    ],
)
def test_lines_that_must_be_changed_by_hand(source, note):
    _, findings = port(source)
    (told,) = [finding for finding in findings if finding.after is None]
    assert note in told.note
    assert told.line == source.count("\n") + 1


def test_a_changed_program_runs_on_zeroxide():
    changed, _ = port(
        "import zmq.asyncio\n"
        "import zmq.utils.z85 as z85\n"
        "import sys\n"
        "assert zmq.asyncio.Context.__module__ == 'zeroxide.asyncio'\n"
        "assert 'zmq' not in sys.modules\n"
    )
    run_script("zeroxide", changed)


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "zeroxide.port", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_command(directory):
    program, other = directory / "program.py", directory / "sub" / "other.py"
    other.parent.mkdir()
    program.write_bytes(b"# coding: latin-1\r\n# \xe4\r\nimport zmq\r\n")
    other.write_text("import os\n")
    before = program.read_bytes()

    done = command(directory)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == f"{program}:3: import zmq -> import zeroxide as zmq\n"
    done = command("--diff", directory)
    assert done.returncode == 1
    assert "-import zmq" in done.stdout and "+import zeroxide as zmq" in done.stdout
    assert program.read_bytes() == before

    assert command("--write", directory).returncode == 0
    assert program.read_bytes() == before.replace(b"import zmq", b"import zeroxide as zmq")
    done = command(directory)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    other.write_text("__import__('zmq')\n")
    done = command("--write", directory)
    assert done.returncode == 1 and f"{other}:1: 'zmq'  # names the module" in done.stderr
    other.write_text("import (\n")
    assert command(directory).returncode == 2
    assert command(directory / "missing.py").returncode == 2


BOTH = """
import sys, types, warnings
import zeroxide as zmq

warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    exec(compile(sys.argv[1], "program.py", "exec"))
print([(one.filename, one.lineno, one.category.__name__) for one in seen])
for one in seen:
    print(one.message)
"""


@pytest.mark.parametrize("statement", ["import zmq.asyncio", "from zmq import asyncio"])
def test_a_module_that_loads_both_is_warned(statement):
    pytest.importorskip("zmq")
    source = f"\n{statement}\n"
    output, _ = run_script("zeroxide", BOTH, source)
    where, text, *_ = output.splitlines()
    assert where == "[('program.py', 2, 'RuntimeWarning')]"
    assert "Import zeroxide.asyncio" in text and "zeroxide.port" in text


def test_modules_that_use_one_each_are_left_alone():
    pytest.importorskip("zmq")
    apart = "import types\nm = types.ModuleType('m')\nexec('import zmq', vars(m))"
    for source in (apart, "import zeroxide.asyncio", "del zmq\nimport zeroxide\nimport zmq"):
        output, _ = run_script("zeroxide", BOTH, source)
        assert output == "[]\n"
