"""`python -m zeroxide.as_zmq` and `install_as_zmq`: zmq means zeroxide, pyzmq installed or not."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from support import PATIENCE

pytestmark = pytest.mark.zeroxide_only


def run(*arguments, status=0, flags=(), cwd=None, stdin=None, **environment):
    """Runs ``python -m zeroxide.as_zmq ARGUMENTS``; returns its output."""
    process = subprocess.run(
        [sys.executable, *flags, "-m", "zeroxide.as_zmq", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        env={**os.environ, **environment},
        cwd=cwd,
        input=stdin,
    )
    assert process.returncode == status, process.stderr
    return process.stdout.splitlines(), process.stderr


def write(path, source):
    path.write_text(textwrap.dedent(source))
    return path


def test_dir_has_the_names_of_pyzmq(tmp_path):
    program = write(
        tmp_path / "program.py",
        """
        import zmq

        with zmq.Context() as context, context.socket(zmq.PUB) as socket:
            assert {"AFFINITY", "IDENTITY", "FD", "linger"} <= set(dir(socket))
            assert {"IO_THREADS", "io_threads", "term"} <= set(dir(context))
        """,
    )
    run(program)


def test_modules_are_the_same_under_both_names(tmp_path):
    program = write(
        tmp_path / "program.py",
        """
        import importlib, pkgutil, sys, warnings
        import zmq, zeroxide

        warnings.simplefilter("ignore")
        names = [m.name for m in pkgutil.walk_packages(zeroxide.__path__, "zeroxide.")]
        names = [n for n in names if "__main__" not in n and "spark" not in n and "startup" not in n]
        seen = 0
        for name in [*names, "zeroxide.sugar.socket", "zeroxide.backend.cython._zmq"]:
            try:
                one = importlib.import_module(name)
            except ImportError:  # what is not installed here
                continue
            spec = one.__spec__
            other = importlib.import_module("zmq" + name.removeprefix("zeroxide"))
            assert one is other, name
            assert one.__spec__ is spec, name
            seen += 1
        assert seen > 30
        from zmq.sugar.context import Context
        from zmq.sugar import socket, attrsettr
        assert Context is zmq.Context is zeroxide.Context
        assert socket.Socket is zmq.Socket
        assert zmq.sugar.socket is zeroxide.socket
        """,
    )
    run(program)


def test_modules_that_only_pyzmq_has_do_not_exist():
    _, errors = run("-c", "import zmq.nonesuch", status=1)
    assert errors.splitlines()[-1] == "ModuleNotFoundError: No module named 'zmq.nonesuch'"


def test_the_distribution_has_a_version():
    output, _ = run(
        "-c",
        """if True:
        from importlib.metadata import distribution, version
        print(version("pyzmq"), version("PyZMQ"))
        print(distribution("pyzmq").metadata["Name"])
        import zmq
        print(zmq.__version__, zmq.pyzmq_version())
        """,
    )
    versions = output[0].split() + output[2].split()
    assert len(set(versions)) == 1 and versions[0].startswith("27.")
    assert output[1] == "pyzmq"


def test_arguments_main_and_path_are_those_of_plain_python(tmp_path):
    source = """
        import sys, os
        print(sys.argv[1:], __name__, __file__, __spec__, sys.path, sys.flags.optimize)
        print(sys.modules["__main__"].__dict__ is globals())
        print(os.environ.get("PYTHONPATH"), [n for n in os.environ if n.startswith("ZEROXIDE_AS")])
        print("zmq" in sys.modules or "zeroxide" in sys.modules)
        """
    program = write(tmp_path / "program.py", source)
    plain = subprocess.run(
        [sys.executable, "-O", program, "a", "-m", "--help"], capture_output=True, text=True
    )
    output, _ = run(program, "a", "-m", "--help", flags=["-O"])
    assert output == plain.stdout.splitlines()
    # The cluster -Om, a module, code and standard input.
    environment = {"cwd": tmp_path, "status": 0}
    assert run("-m", "program", "a", **environment)[0][1] == "True"
    assert run("-c", "import sys; print(sys.argv)", "x", **environment)[0] == ["['-c', 'x']"]
    assert run("-", "x", stdin="import sys, zmq; print(sys.argv)")[0] == ["['-', 'x']"]


def test_exit_codes_are_those_of_plain_python(tmp_path):
    program = write(tmp_path / "program.py", "import zmq\n1 / 0\n")
    plain = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, env=os.environ
    )
    _, errors = run(program, status=1)
    assert errors == plain.stderr
    run("-c", "raise SystemExit(7)", status=7)
    run("-c", "raise KeyboardInterrupt", status=-signal.SIGINT)
    _, errors = run(tmp_path / "absent.py", status=2)
    assert "can't open file" in errors


def test_pyzmq_is_not_needed(tmp_path):
    # In an environment where zeroxide is the only package.
    import zeroxide

    site = tmp_path / "site"
    site.mkdir()
    (site / "zeroxide").symlink_to(os.path.dirname(zeroxide.__file__))
    output = subprocess.run(
        [sys.executable, "-m", "zeroxide.as_zmq", "-c", "import zmq; print(zmq.Context().term())"],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(site), "PYTHONNOUSERSITE": "1"},
    )
    assert output.stdout == "None\n", output.stderr


CHILDREN = """
    import multiprocessing, os, subprocess, sys

    def report():
        import zmq
        print(zmq.__name__, flush=True)

    if __name__ == "__main__":
        process = multiprocessing.get_context("spawn").Process(target=report)
        process.start()
        process.join()
        code = "import zmq; print(zmq.__name__)"
        subprocess.run([sys.executable, "-c", code])
        parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
        subprocess.run([sys.executable, "-c", parent, code])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", parent, code], env=environment)
    """


def test_subprocesses_when_asked(tmp_path):
    program = write(tmp_path / "program.py", CHILDREN)
    output, errors = run("--subprocesses", program)
    assert output == ["zeroxide"] * 4, errors


def test_no_subprocesses_unless_asked():
    output, _ = run(
        "-c",
        """if True:
        import subprocess, sys, zmq
        subprocess.run([sys.executable, "-c", "import sys; sys.modules['zmq'] = None\\n"
            "print([f for f in sys.meta_path if 'Deferred' in repr(f)])"])
        """,
    )
    assert output == ["[]"]


def test_install_as_zmq_in_a_process():
    output = subprocess.run(
        [
            sys.executable,
            "-c",
            """if True:
            import os, zeroxide
            zeroxide.install_as_zmq()
            zeroxide.install_as_zmq()
            assert "ZEROXIDE_AS_ZMQ" not in os.environ
            zeroxide.install_as_zmq(subprocesses=True)
            import zmq, zmq.utils.jsonapi, subprocess, sys
            from importlib.metadata import version
            assert zmq is zeroxide and version("pyzmq") == zmq.__version__
            child = [sys.executable, "-c", "import zmq; print(zmq.__name__)"]
            subprocess.run(child, check=True)
            path = os.pathsep.join(sys.path)
            subprocess.run(child, check=True, env={**os.environ, "PYTHONPATH": path})
            """,
        ],
        capture_output=True,
        text=True,
    )
    assert output.stdout == "zeroxide\nzeroxide\n", output.stderr


def test_calling_it_too_late_raises():
    code = """if True:
        import sys, types, zeroxide
        sys.modules["zmq"] = types.ModuleType("zmq")
        try:
            zeroxide.install_as_zmq()
        except RuntimeError as error:
            print(error)
        """
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "imported already" in output.stdout, output.stderr


def test_another_sitecustomize_runs_too(tmp_path):
    write(tmp_path / "sitecustomize.py", "import builtins\nbuiltins.customised = __file__\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    output, _ = run(
        "-c",
        "import sitecustomize, zmq; print(customised, sitecustomize.__file__, zmq.__name__)",
        PYTHONPATH=path,
    )
    customised = str(tmp_path / "sitecustomize.py")
    assert output == [f"{customised} {customised} zeroxide"]


def test_an_installed_command_is_found(tmp_path):
    command = write(
        tmp_path / "zx-command", "#!/usr/bin/env python\nimport zmq\nprint(zmq.__name__)\n"
    )
    command.chmod(0o755)
    output, _ = run("zx-command", PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert output == ["zeroxide"]


def test_help_and_mistakes():
    output, _ = run("--help")
    assert output[0].startswith("usage: python -m zeroxide.as_zmq")
    _, errors = run(status=2)
    assert "usage" in errors
