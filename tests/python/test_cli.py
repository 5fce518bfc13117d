"""The command `zeroxide`."""

import importlib
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys

import pytest
from programs import ROOT
from support import PATIENCE

pytestmark = pytest.mark.zeroxide_only


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "zeroxide", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def run(zmq, capsys):
    """Runs the command in this process; returns its output."""
    main = importlib.import_module(f"{zmq.__name__}.cli").main

    def run(*arguments, status=0):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code or 0
        assert code == status
        written = capsys.readouterr()
        return written.err if status else written.out

    return run


def test_version(zmq, run):
    lines = dict(line.split(maxsplit=1) for line in run("version").splitlines())
    assert lines["api"] == f"pyzmq {zmq.pyzmq_version()}"
    assert lines["behaviour"] == f"libzmq {zmq.zmq_version()}"
    facts = json.loads(run("version", "--json"))
    assert facts["zeroxide"] == lines["zeroxide"] == zmq._native.__version__
    assert "ipc" in facts["capabilities"]


def test_help_shows_examples(run):
    assert "keygen" in run("--help")
    for command in importlib.import_module("zeroxide.cli").COMMANDS:
        text = run(command, "--help")
        assert f"  zeroxide {command}" in text.partition("examples:")[2]


def test_help_without_arguments(run):
    text = run()
    assert text == run("--help")
    with start() as process:
        assert process.communicate()[0] == text and process.returncode == 0


def test_the_version_option(zmq, run):
    assert run("--version") == f"zeroxide {zmq._native.__version__}\n"


@pytest.mark.parametrize("line", ["", "--help", "--version", "cat --help", "version"])
@pytest.mark.parametrize("buffered", [True, False])
def test_a_full_disk_is_reported(line, buffered):
    program = [sys.executable, *([] if buffered else ["-u"]), "-m", "zeroxide", *line.split()]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("No space left on device\n") and done.stderr.count("\n") == 1


MISTAKES = {
    "collectr": ["no command 'collectr'", "did you mean 'collector'?"],
    "collector --retention-byte 1G": ["no option --retention-byte", "'--retention-bytes'?"],
    "collector --http 8080": ["--http: expected HOST:PORT", "127.0.0.1:8080", "got '8080'"],
    "collector --http [::1]:99999": ["--http: expected HOST:PORT"],
    "collector --retention-bytes 10X": ["--retention-bytes: expected a number of bytes", "100G"],
    "collector --retention-hours -1": ["--retention-hours: expected a number of hours, 0 or more"],
    "collector --retention-hours nan": ["--retention-hours: expected a number of hours"],
    "collector --flush-rows 0": ["--flush-rows: expected a whole number of rows, 1 or more"],
    "collector --framing envelop": ["single, topic-first or envelope", "did you mean 'envelope'?"],
    "collector --key nope": ["--key: there is no file 'nope'"],
    "collector --key .": ["--key: '.' is a folder"],
    "collector --allow nope": ["--allow: 'nope' does not exist; expected a folder"],
    "collector --dir": ["--dir: expected one argument"],
    "collector more": ["unexpected argument 'more'"],
    "collector": ["--dir is required", "ZEROXIDE_COLLECTOR_DIR"],
    "collector --dir x --key /dev/null": ["--key: No public key found in /dev/null"],
    "collector --dir x --roles /dev/null": ["--roles requires --key"],
    "collector --dir x --allow *": ["--allow requires --key"],
    "proxy": ["required: pattern, --front, --back"],
    "proxy pubsu --front a --back b": ["expected pubsub, reqrep or pipeline", "mean 'pubsub'?"],
    "proxy pubsub --front a --back b --hwm many": ["--hwm: expected a whole number of messages"],
    "proxy pubsub --front a --back b --key nope": ["--key: there is no file 'nope'"],
    "keygen --nam alice": ["no option --nam", "did you mean '--name'?"],
    "groups": ["required: ENDPOINT"],
    "groups tcp://127.0.0.1:1 --timeout soon": ["--timeout: expected a number of seconds"],
    "keygen --name a/b": ["--name", "without a folder, got 'a/b'", "--directory takes the folder"],
    "keygen --name a --directory /proc/x/y": ["--directory: cannot write to '/proc/x/y'"],
    "cat pul": ["TYPE: expected pair, pub", "did you mean 'pull'?"],
    "cat --bind tcp://*:* pul": ["TYPE: expected pair, pub", "did you mean 'pull'?"],
    "tail tcp://127.0.0.1:1 --since soon": ["--since: expected an age such as 10m"],
    "completion tcsh": ["expected bash, zsh or fish, got 'tcsh'"],
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_one_line_that_names_the_option(run, line):
    text = run(*line.split(), status=2)
    for part in MISTAKES[line]:
        assert part in text
    command = line.split()[0] if line != "collectr" else ""
    assert text.startswith(f"zeroxide {command}".rstrip() + ": ")
    assert text.count("\n") == 1 and f"zeroxide {command}".rstrip() + " --help)" in text


def test_mistakes_in_the_environment_name_the_variable(run, monkeypatch):
    monkeypatch.setenv("ZEROXIDE_COLLECTOR_FLUSH_MS", "soon")
    text = run("collector", "--dir", "x", status=2)
    assert "ZEROXIDE_COLLECTOR_FLUSH_MS: expected a number of milliseconds" in text


def test_unknown_variables_are_mistakes(run, monkeypatch):
    # Those of services in Kubernetes, and empty ones, are not.
    for name in (
        "PORT",
        "PORT_5555_TCP",
        "PORT_5555_TCP_ADDR",
        "SERVICE_HOST",
        "SERVICE_PORT_HTTP",
        "HTTP_SERVICE_HOST",
        "HTTP_PORT_8080_TCP_PROTO",
    ):
        monkeypatch.setenv(f"ZEROXIDE_COLLECTOR_{name}", "tcp://10.0.0.1:5555")
    monkeypatch.setenv("ZEROXIDE_COLLECTOR_EMPTY", "")
    monkeypatch.setenv("ZEROXIDE_COLLECTOR_SECRET_KEY", "x" * 40)
    text = run("collector", "--dir", "x", status=2)
    assert "--key requires --allow" in text
    monkeypatch.setenv("ZEROXIDE_COLLECTOR_RETENTION_BYTE", "1G")
    text = run("collector", "--dir", "x", status=2)
    assert (
        "ZEROXIDE_COLLECTOR_RETENTION_BYTE: there is no option 'RETENTION_BYTE'; did you mean 'RETENTION_BYTES'?"
        in text
    )
    monkeypatch.delenv("ZEROXIDE_COLLECTOR_RETENTION_BYTE")
    monkeypatch.setenv("ZEROXIDE_COLLECTOR_HTTP_PORT", "8080")
    text = run("collector", "--dir", "x", status=2)
    assert "there is no option 'HTTP_PORT'" in text


def test_failures_are_one_line(run):
    text = run("proxy", "pubsub", "--front", "tcp://nowhere", "--back", "tcp://*:*", status=1)
    assert text.startswith("zeroxide: ") and "tcp://nowhere" in text
    assert "Traceback" not in text
    text = run("collector", "--dir", "/proc/none", status=1)
    assert text.startswith("zeroxide: cannot create /proc/none: ")


def test_sizes():
    from zeroxide._arguments import size

    known = {"1": 1, "64K": 1 << 16, "1.5k": 1536, "100G": 100 << 30, "2 MiB": 2 << 20, "7B": 7}
    assert {text: size(text) for text in known} == known


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_in_step(run, shell):
    pytest.importorskip("shtab")
    tool = ROOT / "tools" / "completions.py"
    subprocess.run([sys.executable, tool, "--check"], check=True)
    script = run("completion", shell)
    assert "retention" in script and "keygen" in script


def shell_named(name):
    return shutil.which(name) or pytest.skip(f"needs {name}")


def test_bash_completes(run, tmp_path):
    bash = shell_named("bash")
    (tmp_path / "script").write_text(run("completion", "bash"))

    def complete(*words):
        program = (
            f"source {tmp_path}/script; COMP_WORDS=({' '.join(words)}); "
            f"COMP_CWORD={len(words) - 1}; _shtab_zeroxide; echo ${{COMPREPLY[@]}}"
        )
        done = subprocess.run([bash, "-c", program], capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert complete("zeroxide", "coll") == ["collector"]
    assert complete("zeroxide", "collector", "--retention-h") == ["--retention-hours"]
    assert complete("zeroxide", "collector", "--framing", "t") == ["topic-first"]
    assert complete("zeroxide", "proxy", "pip") == ["pipeline"]
    assert complete("zeroxide", "cat", "pul") == ["pull"]
    assert complete("zeroxide", "tail", "--format", "quo") == ["quoted"]


# The typed text, including Tab, and the resulting words of the command.
TABS = {
    "coll\t": "collector",
    "collector --retention-h\t": "collector --retention-hours",
    "collector --framing top\t": "collector --framing topic-first",
    "completion fi\t": "completion fish",
}
ZSH = {
    "source": "source <(cat {script})",
    "eval": 'eval "$(cat {script})"',
    "source, after compinit": "autoload -Uz compinit; compinit -D; source {script}",
    "fpath": "fpath=({folder} $fpath); autoload -Uz compinit; compinit -D",
}


@pytest.mark.parametrize("way", ZSH)
def test_zsh_completes(run, tmp_path, way):
    zsh = shell_named("zsh")
    script = tmp_path / "_zeroxide"
    script.write_text(run("completion", "zsh"))
    main, side = pty.openpty()
    environment = {**os.environ, "HOME": str(tmp_path), "TERM": "vt100"}
    shell = subprocess.Popen(
        [zsh, "-f", "-i"], stdin=side, stdout=side, stderr=side, env=environment, close_fds=True
    )
    os.close(side)
    said = ""

    def say(line, *, until):
        nonlocal said
        os.write(main, line.encode())
        while until not in said:
            ready, _, _ = select.select([main], [], [], PATIENCE)
            assert ready, said
            said += os.read(main, 4096).decode(errors="replace")
        said = said.partition(until)[2]

    try:
        say(f"{ZSH[way].format(script=script, folder=tmp_path)}\n", until="\n")
        say('zeroxide() { print -r "ran[$*]"; }; print -r "rea"dy\n', until="ready")
        for typed, words in TABS.items():
            say(f"zeroxide {typed}\n", until=f"ran[{words}]")
    finally:
        os.close(main)
        shell.kill()
        shell.wait()


def test_fish_completes(run, tmp_path):
    fish = shell_named("fish")
    script = tmp_path / "zeroxide.fish"
    script.write_text(run("completion", "fish"))
    for typed, words in TABS.items():
        asked = typed.removesuffix("\t")
        done = subprocess.run(
            [fish, "--no-config", "-c", f"source {script}; complete -C 'zeroxide {asked}'"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "HOME": str(tmp_path)},
        )
        offered = [line.split("\t")[0] for line in done.stdout.splitlines()]
        assert offered == [words.split()[-1]]


def test_keygen(zmq, tmp_path, run):
    keys = json.loads(run("keygen", "--json"))
    assert zmq.curve_public(keys["secret"].encode()) == keys["public"].encode()
    shown = run("keygen", "--secret", keys["secret"])
    assert keys["public"] in shown and keys["secret"] in shown
    assert run("keygen") != run("keygen")
    assert "--secret" in run("keygen", "--secret", "short", status=2)
    files = run("keygen", "--name", "alice", "--directory", tmp_path / "keys").split()
    assert [os.path.basename(file) for file in files] == ["alice.key", "alice.key_secret"]
    assert os.stat(files[1]).st_mode & 0o077 == 0
    assert "--secret" in run("keygen", "--name", "bob", "--secret", keys["secret"], status=2)


@pytest.mark.parametrize("command", ["zeroxide keygen", "zeroxide.curve_keygen"])
def test_a_secret_key_may_begin_with_a_dash(zmq, run, capsys, command):
    z85 = importlib.import_module(f"{zmq.__name__}.utils.z85")
    secret = z85.encode((63 * 85**4).to_bytes(4, "big") + bytes(range(28)))
    assert secret.startswith(b"-")
    if command == "zeroxide keygen":
        shown = run("keygen", "--secret", secret.decode())
    else:
        importlib.import_module(f"{zmq.__name__}.curve_keygen").main(["--secret", secret.decode()])
        shown = capsys.readouterr().out
    assert zmq.curve_public(secret).decode() in shown


class Proxy:
    """A running `zeroxide proxy`, with its endpoints by name."""

    def __init__(self, *arguments, lines=2):
        self.process = start("proxy", *arguments)
        self.endpoints = {}
        for _ in range(lines):
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            self.endpoints.setdefault(line.split()[0], line.split()[-1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def end(self, number):
        self.process.send_signal(number)
        assert self.process.communicate(timeout=PATIENCE)[1] == ""
        assert self.process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_proxy_until_a_signal(zmq, context, number):
    with (
        Proxy("reqrep", "--front", "tcp://127.0.0.1:*", "--back", "tcp://127.0.0.1:*") as proxy,
        context.socket(zmq.REQ) as req,
        context.socket(zmq.REP) as rep,
    ):
        req.connect(proxy.endpoints["front"])
        rep.connect(proxy.endpoints["back"])
        req.send(b"question")
        assert rep.recv() == b"question"
        rep.send(b"answer")
        assert req.recv() == b"answer"
        proxy.end(number)


def test_proxy_with_capture_and_control(zmq, context, sockets, directory):
    front, back = sockets.bound(zmq.PUSH), f"ipc://{directory}/back"
    arguments = ["--front", f"connect:{front.last_endpoint.decode()}"]
    arguments += ["--back", back, "--back", "tcp://127.0.0.1:*"]
    arguments += ["--capture", f"ipc://{directory}/seen", "--control", f"ipc://{directory}/orders"]
    with (
        Proxy("pipeline", *arguments, lines=5) as proxy,
        context.socket(zmq.PULL) as pull,
        context.socket(zmq.SUB) as seen,
        context.socket(zmq.REQ) as control,
    ):
        pull.connect(back)
        seen.connect(f"ipc://{directory}/seen")
        seen.subscribe(b"")
        control.connect(f"ipc://{directory}/orders")
        while not seen.poll(20):
            front.send(b"message")
            assert pull.recv() == b"message"
        assert seen.recv() == b"message"
        control.send(b"STATISTICS")
        assert len(control.recv_multipart()) == 8
        control.send(b"TERMINATE")
        assert control.recv() == b""
        assert proxy.process.wait(PATIENCE) == 0


@pytest.fixture
def keys(tmp_path, run):
    for name in ("proxy", "alice", "mallory"):
        run("keygen", "--name", name, "--directory", tmp_path / name)
    return lambda name, kind="key": str(tmp_path / name / f"{name}.{kind}")


def test_proxy_with_keys(zmq, context, keys, tmp_path):
    from zeroxide.auth import load_certificate

    ends = ["--front", "tcp://127.0.0.1:*", "--back", "tcp://127.0.0.1:*"]
    security = ["--key", keys("proxy", "key_secret"), "--allow", tmp_path / "alice"]
    server, _ = load_certificate(keys("proxy"))
    with (
        Proxy("pipeline", *ends, *security, "--secure", "front") as proxy,
        context.socket(zmq.PUSH) as alice,
        context.socket(zmq.PUSH) as mallory,
        context.socket(zmq.PUSH) as plain,
        context.socket(zmq.PULL) as pull,
    ):
        pull.connect(proxy.endpoints["back"])
        alice.secure_client(server, load_certificate(keys("alice", "key_secret"))[1])
        mallory.secure_client(server, load_certificate(keys("mallory", "key_secret"))[1])
        refused = mallory.monitor_events(zmq.EVENT_HANDSHAKE_FAILED_AUTH)
        for push in (alice, mallory, plain):
            push.connect(proxy.endpoints["front"])
        alice.send(b"secret")
        assert pull.recv() == b"secret"
        assert refused.recv(PATIENCE * 1000).value == 400
        assert mallory.count_connected() == plain.count_connected() == 0


def test_proxy_as_client(zmq, context, keys, tmp_path):
    from zeroxide.auth import load_certificate

    with context.socket(zmq.PUSH) as push, context.socket(zmq.PULL) as pull:
        push.secure_server(load_certificate(keys("proxy", "key_secret"))[1], tmp_path / "alice")
        push.bind("tcp://127.0.0.1:*")
        arguments = ["--front", f"connect:{push.last_endpoint.decode()}"]
        arguments += ["--back", "tcp://127.0.0.1:*", "--secure", "front"]
        arguments += ["--key", keys("alice", "key_secret"), "--server-key", keys("proxy")]
        with Proxy("pipeline", *arguments) as proxy:
            pull.connect(proxy.endpoints["back"])
            push.send(b"secret")
            assert pull.recv() == b"secret"


def test_incomplete_keys(keys, run):
    ends = ["--front", "tcp://127.0.0.1:*", "--back", "tcp://127.0.0.1:*"]
    secret = ["--key", keys("proxy", "key_secret")]
    assert "--allow" in run("proxy", "pubsub", *ends, *secret, status=2)
    public = ["--key", keys("proxy"), "--allow", "*"]
    assert "no secret key" in run("proxy", "pubsub", *ends, *public, status=2)
    ends[1] = "connect:tcp://127.0.0.1:1"
    assert "--server-key" in run("proxy", "pubsub", *ends, *secret, status=2)
    ends += ["--front", "tcp://127.0.0.1:*"]
    assert "binds and connects" in run("proxy", "pubsub", *ends, *secret, status=2)
