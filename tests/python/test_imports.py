"""How much an import loads: a program that needs sockets does not wait for the rest."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.zeroxide_only

# Each takes about as long as everything that `import zeroxide` needs.
HEAVY = {
    *("argparse", "ast", "asyncio", "dataclasses", "inspect", "ipaddress", "json", "logging"),
    *("pickle", "random", "selectors", "socket", "subprocess", "typing_extensions"),
}


def loaded(module: str, *before: str) -> set[str]:
    """The modules that an import loads in addition to the interpreter's own."""
    code = f"""if True:
        import sys
        for name in {before!r}:
            __import__(name)
        before = set(sys.modules)
        import {module}
        print(*sorted(set(sys.modules) - before))
        """
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(output.stdout.split())


def test_sockets_load_nothing_heavy_and_nothing_for_old_programs():
    modules = loaded("zeroxide")
    assert modules & HEAVY == set()
    ours = {name for name in modules if name.startswith("zeroxide.")}
    assert not any(
        name.startswith(f"zeroxide.{part}")
        for name in ours
        for part in ("asyncio", "backend", "events", "pipeline", "spark", "sugar", "utils")
    )


@pytest.mark.parametrize("part", ["", ".asyncio"])
def test_an_import_loads_no_more_modules_than_pyzmq(part):
    pytest.importorskip("zmq")
    # asyncio itself is the same for both.
    before = ("asyncio",) if part else ()
    assert len(loaded("zeroxide" + part, *before)) <= len(loaded("zmq" + part, *before))
