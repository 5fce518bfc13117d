"""Completion offers names that programs use, each once, and nothing that only the package needs."""

import importlib
import importlib.util
import keyword
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.zeroxide_only

# Options of transports, mechanisms and drafts that are not built in.
ABSENT = (
    "norm_",
    "vmci_",
    "gssapi_",
    "multicast_",
    "busy_poll",
    "recovery_ivl",
)


def public(names):
    return [name for name in names if not name.startswith("_")]


@pytest.fixture
def socket(zmq, context):
    with context.socket(zmq.DEALER) as socket:
        yield socket


def test_a_socket_offers_each_option_once_and_in_lower_case(socket):
    names = public(dir(socket))
    assert {"linger", "rcvtimeo", "identity", "events", "hwm", "send", "stats"} <= set(names)
    assert len(names) == len(set(names))
    assert [name for name in names if not name.islower()] == []


def test_a_socket_offers_no_option_that_is_not_built_in(socket):
    assert [name for name in dir(socket) if name.startswith(ABSENT)] == []


def test_a_socket_offers_every_option_that_can_be_used(zmq, socket):
    from zeroxide import _native

    for name, _, _, readable, writable in _native.socket_options():
        low = name.lower()
        if (readable or writable) and not low.startswith((*ABSENT, "rate", "loopback_")):
            assert low in dir(socket), name


def test_names_that_are_not_offered_still_work(socket):
    socket.LINGER = 5
    assert socket.linger == socket.LINGER == 5
    socket.HWM = 7
    assert socket.hwm == socket.HWM == 7


def test_a_context_offers_its_options_in_lower_case(context):
    names = public(dir(context))
    assert {"io_threads", "max_sockets", "memory_budget", "socket", "term"} <= set(names)
    assert [name for name in names if not name.islower()] == []


@pytest.mark.parametrize("package", ["auth", "eventloop", "log", "spark", "ssh", "utils"])
def test_a_package_has_what_it_offers(package):
    # In a new process, where nothing has imported its modules yet.
    text = (
        f"import zeroxide.{package} as package\n"
        "print([name for name in dir(package) if not hasattr(package, name)])\n"
        "print(hasattr(package, 'no_such_name'))"
    )
    for needs, other in (("eventloop", "tornado"), ("spark", "pyspark")):
        if package == needs:
            pytest.importorskip(other)
    command = [sys.executable, "-W", "ignore", "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["[]", "False", ""]


def test_a_module_that_cannot_be_imported_is_no_attribute():
    text = (
        "import sys, zeroxide as zmq\n"
        "sys.modules['zeroxide.auth.thread'] = None\n"
        "print(hasattr(zmq.auth, 'thread'), hasattr(zmq.auth, 'asyncio'))"
    )
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"


# Parts of the package that programs do not import, by tools/docstrings.py; a deprecated name for a module of tornado;
# and modules for old programs, which are in another folder.
ELSEWHERE = ("zeroxide.eventloop.ioloop",)


def public_modules():
    tool = pytest.importorskip("griffe") and load_tool("docstrings")
    package = importlib.import_module("zeroxide")
    folder = package.__path__[:1]
    found = ["zeroxide"]
    for module in pkgutil.walk_packages(folder, "zeroxide."):
        name = module.name
        if name.startswith((*tool.INTERNAL, *ELSEWHERE)) or "._" in name:
            continue
        try:
            imported = importlib.import_module(name)
        except ModuleNotFoundError as error:
            assert not (error.name or "").startswith("zeroxide"), error  # an optional package
            continue
        if "_compat" not in (getattr(imported, "__file__", None) or ""):
            found.append(name)
    return found


def load_tool(name):
    path = Path(__file__).parents[2] / "tools" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_modules_offer_what_they_export_and_their_public_parts():
    modules = public_modules()
    assert {"zeroxide.pipeline", "zeroxide.spark", "zeroxide.asyncio"} <= set(modules)
    for name in modules:
        module = importlib.import_module(name)
        offered = public(dir(module))
        assert len(offered) == len(set(offered)), name
        assert set(public(module.__all__)) <= set(offered), name
        for extra in set(offered) - set(module.__all__):
            part = getattr(module, extra, None) or importlib.import_module(f"{name}.{extra}")
            # A public part of the package, or a class of it that is imported when it is used.
            is_part = f"{name}.{extra}" in modules or (
                name == "zeroxide" and isinstance(part, type)
            )
            assert is_part, f"dir({name}) shows {extra}"
        assert not any(keyword.iskeyword(name) for name in offered)


def test_public_classes_say_that_they_belong_to_public_modules():
    modules = public_modules()
    private = []
    for name in modules:
        module = importlib.import_module(name)
        for exported in module.__all__:
            value = getattr(module, exported)
            home = value.__module__ if isinstance(value, type) else ""
            if "._" in home and not exported.startswith("_"):
                private.append(f"{name}.{exported} is of {home}")
    assert private == []


def test_producers_are_offered_before_their_first_use():
    code = (
        "import zeroxide, zeroxide.asyncio, sys\n"
        "print('Producer' in dir(zeroxide) and 'Producer' in dir(zeroxide.asyncio))\n"
        "print('zeroxide.producer' in sys.modules, zeroxide.Producer.__name__)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout == "True\nFalse Producer\n"


def test_parts_of_the_package_are_there_without_an_import():
    code = (
        "import zeroxide as zmq\n"
        "print(zmq.asyncio.Context.__name__, zmq.auth.__name__, zmq.utils.jsonapi.loads('1'))\n"
        "print(zmq.backend.has('curve'), zmq.sugar.Socket is zmq.Socket)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert output.stdout == "Context zeroxide.auth 1\nTrue True\n", output.stderr


def test_a_misspelled_name_gets_a_suggestion():
    code = "import zeroxide as zmq; zmq.PUSHH"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "has no attribute 'PUSHH'. Did you mean: 'PUSH'?" in output.stderr
