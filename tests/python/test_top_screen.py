"""The live screen of `zeroxide top`: in a terminal, and its keys."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

import pytest
from support import PATIENCE, start_script

pytestmark = pytest.mark.zeroxide_only

pytest.importorskip("rich")

PROGRAM = """
context = zmq.Context()
pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
pull.bind("inproc://a")
push.connect("inproc://a")
print(zmq.observe().endpoint, flush=True)
input()
"""


@pytest.fixture(autouse=True)
def home(directory, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def program():
    process = start_script("zeroxide", PROGRAM)
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


class Terminal:
    """A command in a terminal of its own."""

    def __init__(self, *arguments, columns=120, lines=24, environment=None):
        self._terminal, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.before = termios.tcgetattr(side)
        self._side = side
        self.process = subprocess.Popen(
            [sys.executable, "-m", "zeroxide", "top", "--interval", "0.1", *map(str, arguments)],
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
        self.seen = b""

    def wait_for(self, text):
        """Reads until the command has written this."""
        while text.encode() not in self.seen:
            self.seen += os.read(self._terminal, 65536)
        self.seen = self.seen.partition(text.encode())[2]

    def press(self, keys):
        os.write(self._terminal, keys)

    def end(self):
        """Waits for the end; returns its status and whether the terminal is as it was."""
        status = self.process.wait(PATIENCE)
        return status, termios.tcgetattr(self._side) == self.before

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)
        os.close(self._side)


@pytest.fixture
def terminal():
    made = []

    def make(*arguments, **options):
        made.append(Terminal(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_terminal_shows_a_screen_until_q(program, terminal):
    top = terminal(program.pid)
    top.wait_for("zeroxide top")
    top.wait_for("inproc://a")
    top.press(b"s")
    top.wait_for("by rate")
    top.press(b"/pull\r")
    top.wait_for("with 'pull'")
    top.press(b"q")
    assert top.end() == (0, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal(program, terminal, number):
    top = terminal(program.pid)
    top.wait_for("inproc://a")
    top.process.send_signal(number)
    assert top.end() == (-number, True)


def test_the_end_of_the_program_ends_the_screen(program, terminal):
    top = terminal(program.pid)
    top.wait_for("inproc://a")
    program.kill()
    top.wait_for("has ended")
    assert top.end() == (1, True)


def test_a_suspended_command_leaves_the_screen_and_comes_back(program, terminal):
    top = terminal(program.pid)
    top.wait_for("inproc://a")
    top.process.send_signal(signal.SIGTSTP)
    top.wait_for("\x1b[?1049l")
    _, status = os.waitpid(top.process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert termios.tcgetattr(top._side)[3] & termios.ECHO
    top.process.send_signal(signal.SIGCONT)
    top.wait_for("\x1b[?1049h")
    top.wait_for("inproc://a")
    top.press(b"q")
    assert top.end() == (0, True)


def test_without_colour_there_is_none(program, terminal):
    top = terminal(program.pid, "--count", "2", environment={"NO_COLOR": "1"})
    assert top.end()[0] == 0
    top.wait_for("zeroxide top")
    seen = top.seen
    assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", seen)


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": ""}])
def test_a_terminal_without_a_screen_gets_tables(program, terminal, environment):
    top = terminal(program.pid, "--count", "1", environment=environment)
    assert top.end()[0] == 0
    top.wait_for("socket  type")
    assert b"\x1b" not in top.seen


def test_without_rich_there_are_tables_and_a_hint(program, terminal, directory):
    (directory / "rich.py").write_text("raise ModuleNotFoundError")
    top = terminal(program.pid, "--count", "1", environment={"PYTHONPATH": str(directory)})
    assert top.end()[0] == 0
    top.wait_for("pip install 'zeroxide[top]'")
    top.wait_for("socket  type")


# ---- without a terminal --------------------------------------------------------------------------


@pytest.fixture
def screen():
    from zeroxide.cli.top.screen import Screen
    from zeroxide.cli.top.views import Choice

    screen = Screen(None, None, Choice(), 1.0)
    sockets = [_socket(number) for number in range(50)]
    program = {"pid": 1, "command": "app", "sockets": sockets}
    screen._report = {"programs": [program], "problems": {}, "collectors": []}
    return screen


def _socket(number):
    counts = dict.fromkeys(
        ("queued_in", "queued_out", "full_in", "full_out", "reconnects", "peers_unlisted"), 0
    )
    return {
        **counts,
        "context": 1,
        "id": number,
        "type": "PUSH",
        "bound": [f"tcp://host:{number}"],
        "connected": [],
        "peers_connected": 0,
        "peers": [],
        "rates": None,
        "dropped": {},
    }


def shown(screen, width=100, height=12):
    return screen.draw(width, height).plain.splitlines()


def press(screen, *keys):
    assert all(screen.press(key) for key in keys)


def test_the_screen_fills_the_terminal_exactly(screen):
    for width, height in ((100, 12), (30, 5), (10, 3), (3, 3)):
        lines = screen.draw(width, height).plain.split("\n")
        assert len(lines) == height and max(map(len, lines)) <= width


def test_scrolling_ends_at_the_last_line(screen):
    assert "tcp://host:0" in shown(screen)[3]
    press(screen, "down", "down")
    assert "tcp://host:1" in shown(screen)[2]
    press(screen, *["page down"] * 100)
    assert "tcp://host:49" in shown(screen)[-3]
    press(screen, *["page up"] * 200)
    assert "tcp://host:0" in shown(screen)[3]


def test_a_filter_is_typed_and_cleared(screen):
    press(screen, "/", *"host:4x", "backspace")
    assert shown(screen)[-1] == "filter: host:4_"
    assert [line for line in shown(screen, height=40) if "host:5" in line] == []
    # Keys are text meanwhile.
    press(screen, "q", "backspace", "enter")
    assert "with 'host:4'" in shown(screen)[0]
    press(screen, "escape")
    assert any("host:5" in line for line in shown(screen))


def test_orders_follow_each_other(screen):
    from zeroxide.cli.top.views import ORDERS

    seen = []
    for _ in ORDERS:
        press(screen, "s")
        seen.append(screen.choice.order)
        shown(screen)
    assert sorted(seen) == sorted(ORDERS) and seen[-1] == "socket"
    assert not screen.press("q")


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"q", ["q"]),
        (b"ab\x7f\r", ["a", "b", "backspace", "enter"]),
        (b"\x1b[A\x1b[B\x1b[5~", ["up", "down", "page up"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[99~", []),
        ("é/".encode(), ["é", "/"]),
        (b"\xff", ["\ufffd"]),
    ],
)
def test_keys_of_terminals(data, keys):
    from zeroxide.cli.top.screen import keys_of

    assert keys_of(data) == keys
