"""The command `zeroxide cat`, from outside: pipes, signals, exit codes."""

import importlib
import json
import os
import signal
import subprocess
import tracemalloc

import pytest
from commands import Command, run
from support import PATIENCE

pytestmark = pytest.mark.zeroxide_only

EVERY_BYTE = bytes(range(256))
MESSAGES = [
    EVERY_BYTE,
    [b"topic", EVERY_BYTE, b""],
    b'"quoted" \\ and\n',
    [b"", b""],
    b"x" * 70_000,
]
WHOLE = ["quoted", "hex", "json", "msgpack", "length"]


@pytest.fixture
def endpoint(directory):
    return f"ipc://{directory}/s"


def formats():
    return importlib.import_module("zeroxide.cli.formats")


def test_lines_pass_through_a_pipe(endpoint):
    text = b"one\n\ntwo words\nlast without a line break"
    with Command("cat", "pull", "--bind", endpoint, "--count", 4) as pull:
        run("cat", "push", "--connect", endpoint, data=text)
        assert pull.finish()[0] == text + b"\n"


def test_a_message_passes_before_the_next_one_is_there(endpoint):
    with (
        Command("cat", "pull", "--bind", endpoint, "--count", 2) as pull,
        Command("cat", "push", "--connect", endpoint) as push,
    ):
        push.write(b"first\n")
        assert pull.read(6) == b"first\n"
        push.write(b"second\n")
        assert pull.read(7) == b"second\n"
        pull.finish()
        push.finish()


@pytest.mark.parametrize("name", WHOLE)
def test_formats_keep_every_byte_and_every_part(zmq, context, endpoint, name):
    """What one command writes is what the next one reads."""
    with (
        context.socket(zmq.PUSH) as push,
        context.socket(zmq.PULL) as pull,
        Command(
            "cat", "pull", "--connect", endpoint, f"--{name}", "--count", len(MESSAGES)
        ) as source,
        Command(
            "cat", "push", "--connect", f"{endpoint}2", f"--{name}", stdin=source.process.stdout
        ) as sink,
    ):
        push.bind(endpoint)
        pull.bind(f"{endpoint}2")
        assert push.send_batch(MESSAGES) == len(MESSAGES)
        received = []
        while len(received) < len(MESSAGES):
            received += pull.recv_batch(timeout=PATIENCE * 1000)
        assert received == MESSAGES
        assert sink.process.wait(PATIENCE) == source.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("name", WHOLE)
def test_formats_may_be_cut_anywhere(name):
    data = formats().make_encoder(name)(MESSAGES)
    for size in (1, 7, 4096):
        decoder = formats().make_decoder(name)
        received = []
        for start in range(0, len(data), size):
            received += decoder.feed(data[start : start + size])
        received += decoder.end()
        decoder.check()
        assert received == MESSAGES


# The same message in every format of output.
SHOWN = {
    "lines": b'a"\x00\tb\n',
    "ascii": b'a".\tb\n',
    "raw": b'a"\x00b',
    "quoted": rb'"a\"\x00" "b"' + b"\n",
    "hex": rb'"\x61\x22\x00" "\x62"' + b"\n",
    "json": rb'["a\"\u0000", "b"]' + b"\n",
    "msgpack": b'\x92\xc4\x03a"\x00\xc4\x01b',
    "length": b'\x00\x00\x00\x02\x00\x00\x00\x03a"\x00\x00\x00\x00\x01b',
    "no": b"",
}


@pytest.mark.parametrize("name", SHOWN)
def test_output(zmq, context, endpoint, name):
    with context.socket(zmq.PUSH) as push:
        push.bind(endpoint)
        with Command(
            "cat", "pull", "--connect", endpoint, "--count", 1, "--format", name
        ) as command:
            push.send_multipart([b'a"\x00', b"b"])
            assert command.finish()[0] == SHOWN[name]


READ = {
    "quoted": (b'"\\101\\n" "\\x42"\n', [b"A\n", b"B"]),
    "hex": (b"68 6978\n", [b"h", b"ix"]),
    "json": (b'"text"\n', b"text"),
    "msgpack": (b"\xa2hi", b"hi"),
    "raw": (b"a\nb\n", b"a\nb\n"),
    "lines": (b"a\tb\n", b"a\tb"),
}


@pytest.mark.parametrize("name", READ)
def test_input(zmq, context, endpoint, name):
    data, message = READ[name]
    with context.socket(zmq.PULL) as pull:
        pull.bind(endpoint)
        run("cat", "push", "--connect", endpoint, "--input", name, data=data)
        assert pull.recv_batch() == [message]


MALFORMED = {
    "quoted": (b'"good"\nbad\n', 'line 2 of the input: expected "text" in double quotes'),
    "hex": (b"676f6f64\n6\n", "line 2 of the input: expected hexadecimal digits"),
    "json": (b'["good"]\n[1]\n', "line 2 of the input: expected a string or"),
    "msgpack": (b"\xa4good\xc3", "the input is not msgpack: expected bin"),
    "length": (b"\0\0\0\1\0\0\0\4good\0\0\0\1\0\0\0\5cut", "ends within a message: 11 bytes"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_messages_before_a_malformed_one_are_sent(zmq, context, endpoint, name):
    data, error = MALFORMED[name]
    with context.socket(zmq.PULL) as pull:
        pull.bind(endpoint)
        arguments = ("push", "--connect", endpoint, "--input", name)
        assert error in run("cat", *arguments, data=data, status=1)[1]
        assert pull.recv() == b"good"


def test_deeply_nested_json_is_malformed():
    decoder = formats().make_decoder("json")
    assert decoder.feed(b'"good"\n' + b"[" * 200_000 + b"\n") == [b"good"]
    with pytest.raises(formats().Malformed, match="line 2 of the input: expected JSON"):
        decoder.check()


def test_long_strings_and_many_parts_are_read_in_one_pass():
    decoder = formats().make_decoder("quoted")
    line = b'"' + rb"\x41" * 200_000 + b'"\n'
    tracemalloc.start()
    try:
        assert decoder.feed(line) == [b"A" * 200_000]
        assert tracemalloc.get_traced_memory()[1] < 30 * len(line)
    finally:
        tracemalloc.stop()
    assert decoder.feed(b'"" ' * 100_000 + b"\n") == [[b""] * 100_000]


def test_parts_of_lines(zmq, context, endpoint):
    with context.socket(zmq.PULL) as pull:
        pull.bind(endpoint)
        run("cat", "push", "--connect", endpoint, "--separator", ":", data=b"a:b:c\nd\n")
        assert [pull.recv_multipart(), pull.recv_multipart()] == [[b"a", b"b", b"c"], [b"d"]]


def test_data_and_files_are_parts(zmq, context, endpoint, tmp_path):
    (tmp_path / "body").write_bytes(EVERY_BYTE)
    with context.socket(zmq.PULL) as pull:
        pull.bind(endpoint)
        run("cat", "push", "--connect", endpoint, "-D", "head", "-F", tmp_path / "body")
        assert pull.recv_multipart() == [b"head", EVERY_BYTE]
        run("cat", "push", "--connect", endpoint, "--file", "-", data=b"a\nb")
        assert pull.recv_multipart() == [b"a\nb"]
        run("cat", "push", "--connect", endpoint, "--data", "again", "--count", 3)
        assert [pull.recv() for _ in range(3)] == [b"again"] * 3


def test_publishing_to_a_subscriber_that_is_awaited(endpoint):
    arguments = ("--bind", endpoint, "--data", "weather", "--data", "sunny", "--wait", 1)
    with (
        Command("cat", "pub", *arguments) as pub,
        Command(
            "cat", "sub", "--connect", endpoint, "--subscribe", "wea", "--count", 1, "--quoted"
        ) as sub,
    ):
        assert sub.finish()[0] == b'"weather" "sunny"\n'
        pub.finish()


def test_data_is_repeated_at_an_interval(endpoint):
    repeat = ("--data", "tick", "--interval", 0.001)
    with Command("cat", "push", "--bind", endpoint, *repeat) as push:
        assert run("cat", "pull", "--connect", endpoint, "--count", 3)[0] == b"tick\n" * 3
        push.process.send_signal(signal.SIGTERM)
        push.finish(-signal.SIGTERM)


def test_topics_filter(zmq, context, endpoint):
    with context.socket(zmq.PUB) as pub:
        pub.bind(endpoint)
        topics = ("--subscribe", "a", "--subscribe", "b")
        with Command("cat", "--sub", "--connect", endpoint, *topics, "--count", 2) as sub:
            pub.wait_subscribed("a", timeout=PATIENCE * 1000)
            pub.wait_subscribed("b", timeout=PATIENCE * 1000)
            for message in (b"c1", b"a1", b"c2", b"b1"):
                pub.send(message)
            assert sub.finish()[0] == b"a1\nb1\n"


@pytest.mark.parametrize("kind", ["xsub", "sub"])
def test_a_subscriber_gets_everything_unless_told_otherwise(zmq, context, endpoint, kind):
    topics = ("--subscribe", "") if kind == "xsub" else ()
    with context.socket(zmq.PUB) as pub:
        pub.bind(endpoint)
        with Command("cat", kind, "--connect", endpoint, *topics, "--count", 1) as sub:
            pub.wait_subscribed(timeout=PATIENCE * 1000)
            pub.send(b"news")
            assert sub.read(5) == b"news\n"


def test_requests_and_replies_by_hand(endpoint):
    with (
        Command("cat", "rep", "--bind", endpoint) as rep,
        Command("cat", "req", "--connect", endpoint) as req,
    ):
        for number in range(3):
            req.write(b"question %d\n" % number)
            assert rep.read(11) == b"question %d\n" % number
            rep.write(b"answer %d\n" % number)
            assert req.read(9) == b"answer %d\n" % number
        req.finish()


def test_the_example_of_nngcat(endpoint):
    with Command("cat", "--rep", f"--listen={endpoint}", "--data=42", "--quoted") as rep:
        question = ("--data=what is the answer?", "--quoted", "--compat")
        assert run("cat", "--req0", f"--dial={endpoint}", *question)[0] == b'"42"\n'
        assert rep.read(22) == b'"what is the answer?"\n'


def test_commands_answer_requests(endpoint):
    with Command("cat", "rep", "--bind", endpoint, "--exec", "tr a-z A-Z", "--count", 3):
        output, _ = run("cat", "req", "--connect", endpoint, data=b"one\ntwo\nthree\n")
        assert output == b"ONE\nTWO\nTHREE\n"


def test_a_command_gets_no_shell_unless_asked(endpoint, tmp_path):
    command = f"echo $HOME > {tmp_path}/made"
    replies = {"": f"$HOME > {tmp_path}/made\n\n", "--shell": "\n"}
    for shell, reply in replies.items():
        arguments = ("--exec", command, "--count", 1, *shell.split())
        with Command("cat", "rep", "--bind", endpoint, *arguments):
            output, _ = run("cat", "req", "--connect", endpoint, "--data", "x")
            assert output.decode() == reply
        assert (tmp_path / "made").exists() == bool(shell)


def test_commands_see_parts_in_a_format(zmq, context, endpoint):
    program = (
        "import sys, json; print(json.dumps([str(len(json.load(sys.stdin))), {'base64': '/w=='}]))"
    )
    answer = ("--exec", f"python3 -c {json.dumps(program)}", "--json", "--count", "1")
    with (
        Command("cat", "router", "--bind", endpoint, *answer) as router,
        context.socket(zmq.REQ) as req,
    ):
        req.connect(endpoint)
        req.send_multipart([b"a", b"b", b"c"])
        assert req.recv_multipart() == [b"3", b"\xff"]
        # The request is shown, because a format was chosen.
        assert json.loads(router.finish()[0])[1:] == ["", "a", "b", "c"]


def test_a_command_that_fails_replies_and_is_reported(endpoint):
    with Command("cat", "rep", "--bind", endpoint, "--exec", "false", "--count", 1) as rep:
        assert run("cat", "req", "--connect", endpoint, "--data", "x")[0] == b"\n"
        assert "the command of --exec ended with code 1" in rep.finish(1)[1]


def test_a_malformed_reply_of_a_command_is_reported(endpoint):
    answer = ("--exec", "echo 1", "--input", "json", "--count", 1)
    with Command("cat", "rep", "--bind", endpoint, *answer) as rep:
        assert run("cat", "req", "--connect", endpoint, "--data", "x")[0] == b"\n"
        assert "gave no reply in the format json" in rep.finish(1)[1]


def test_a_command_for_each_message_of_a_pull(endpoint):
    with Command("cat", "pull", "--bind", endpoint, "--exec", "wc -c", "--count", 2) as pull:
        run("cat", "push", "--connect", endpoint, data=b"four\nsixsix\n")
        assert pull.finish()[0] == b"4\n6\n"


def test_a_conversation_in_both_directions(endpoint):
    with (
        Command("cat", "pair", "--bind", endpoint, "--count", 2) as one,
        Command("cat", "pair", "--connect", endpoint, "--count", 1) as other,
    ):
        other.write(b"hello\n")
        assert one.read(6) == b"hello\n"
        one.write(b"hi\n")
        assert other.read(3) == b"hi\n"
        other.finish()
        one.process.kill()


def test_the_end_of_input_does_not_end_a_conversation(zmq, context, endpoint):
    with context.socket(zmq.DEALER) as dealer:
        dealer.bind(endpoint)
        with Command("cat", "dealer", "--connect", endpoint, "--count", 1) as command:
            command.write(b"question\n")
            command.process.stdin.close()
            command.process.stdin = None
            assert dealer.recv() == b"question"
            dealer.send(b"answer")
            assert command.finish()[0] == b"answer\n"


def test_sending_only_and_receiving_only(zmq, context, endpoint):
    with context.socket(zmq.DEALER) as dealer:
        dealer.bind(endpoint)
        run("cat", "dealer", "--connect", endpoint, "--send-only", data=b"a\nb\n")
        assert [dealer.recv(), dealer.recv()] == [b"a", b"b"]
        only = ("--recv-only", "--count", 1)
        with Command("cat", "dealer", "--connect", endpoint, *only) as command:
            command.write(b"not sent\n")
            dealer.wait_connected(timeout=PATIENCE * 1000)
            dealer.send(b"c")
            assert command.finish()[0] == b"c\n"
        assert dealer.poll(0) == 0


def test_identities_address_routers(zmq, context, endpoint):
    with (
        Command("cat", "router", "--bind", endpoint, "--quoted") as router,
        Command(
            "cat", "dealer", "--connect", endpoint, "--identity", "alice", "--count", 1
        ) as dealer,
    ):
        dealer.write(b"hello\n")
        assert router.read(16) == b'"alice" "hello"\n'
        router.write(b'"alice" "welcome"\n')
        assert dealer.finish()[0] == b"welcome\n"


def test_groups_are_the_first_part(zmq, context, endpoint):
    with context.socket(zmq.RADIO) as radio:
        radio.bind(endpoint)
        groups = ("--join", "news", "--join", "weather")
        with Command("cat", "dish", "--connect", endpoint, *groups, "--count", 2) as dish:
            radio.wait_subscribed("news", timeout=PATIENCE * 1000)
            radio.wait_subscribed("weather", timeout=PATIENCE * 1000)
            for group, text in (("sports", b"1:0"), ("weather", b"sunny"), ("news", b"none")):
                radio.send(text, group=group)
            assert dish.finish()[0] == b"weather\tsunny\nnews\tnone\n"


@pytest.mark.parametrize(
    ("arguments", "data"),
    [
        (("--group", "weather"), b"sunny\nrain\n"),
        (("--separator", ":"), b"weather:sunny\nsports:goal\nweather:rain\n"),
    ],
)
def test_groups_of_a_radio(zmq, context, endpoint, arguments, data):
    with context.socket(zmq.DISH) as dish:
        dish.join("weather")
        dish.bind(endpoint)
        run("cat", "radio", "--connect", endpoint, "--wait", 1, *arguments, data=data)
        frames = [dish.recv(copy=False) for _ in range(2)]
    assert [(frame.group, frame.bytes) for frame in frames] == [
        ("weather", b"sunny"),
        ("weather", b"rain"),
    ]


@pytest.mark.parametrize(("kind", "other"), [("server", "client"), ("peer", "peer")])
def test_commands_answer_peers_by_their_number(endpoint, kind, other):
    with Command("cat", kind, "--bind", endpoint, "--exec", "tr a-z A-Z"):
        reply = run("cat", other, "--connect", endpoint, "--count", 1, data=b"hello\n")[0]
    assert reply.split(b"\t")[-1] == b"HELLO\n"
    if other == "peer":
        assert reply.partition(b"\t")[0].isdigit()


def test_numbers_of_peers_are_the_first_part(zmq, context, endpoint):
    with (
        Command("cat", "server", "--bind", endpoint, "--json") as server,
        context.socket(zmq.CLIENT) as client,
    ):
        client.connect(endpoint)
        client.send(b"hello")
        number, text = json.loads(server.process.stdout.readline())
        assert text == "hello"
        server.write(b'["1", "nobody has this number"]\n')
        server.write(json.dumps([number, "welcome"]).encode() + b"\n")
        assert client.recv() == b"welcome"


@pytest.mark.parametrize(
    ("kind", "line", "error"),
    [
        ("radio", b"text\n", "expected a group and one part, got a message of 1 parts"),
        ("server", b"a b c\n", "expected a routing id and one part, got a message of 3 parts"),
        ("server", b"x text\n", "expected a routing id, got b'x'"),
        ("radio", b"\xff text\n", "expected a group, got b'\\xff'"),
    ],
)
def test_messages_without_a_label_are_malformed(zmq, context, endpoint, kind, line, error):
    with context.socket(zmq.CLIENT if kind == "server" else zmq.DISH) as peer:
        peer.connect(endpoint)
        arguments = (kind, "--bind", endpoint, "--separator", " ")
        assert error in run("cat", *arguments, data=line, status=1)[1]


def test_streams_speak_tcp(endpoint):
    import socket

    with Command("cat", "stream", "--bind", "tcp://127.0.0.1:*", "--exec", "tr a-z A-Z") as stream:
        port = int(stream.bound_to().rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(b"hello")
            assert plain.recv(100) == b"HELLO"


def test_timeouts(endpoint):
    def after(*arguments, data=b""):
        return run("cat", *arguments, data=data, status=124)[1]

    assert "no message within 0.01 s" in after("pull", "--bind", endpoint, "--timeout", 0.01)
    wait = ("--connect", f"{endpoint}0", "--timeout", 0.01)
    assert "no reply within 0.01 s" in after("req", *wait, "--data", "x")
    assert endpoint in after("push", *wait, "--data", "x")
    assert "no peer took" in after("pair", "--bind", endpoint, "--send-timeout", 0.01, data=b"x\n")
    assert "no message within" in after("pair", "--bind", endpoint, "--recv-timeout", 0.01)
    assert "0 of 1" in after("pub", "--bind", endpoint, "--wait", 1, "--timeout", 0.01, "-D", "x")


def test_a_timeout_counts_from_the_last_message(zmq, monkeypatch, capfdbinary):
    """With a clock of its own: each of three messages arrives after 0.9 of the second."""
    from zeroxide.cli.cat import sockets, talk

    clock, messages = [0.0], [b"a", b"b", b"c"]

    class Slow:
        send_batch = None

        def recv_batch(self, most, milliseconds):
            arrives = 900 if messages else milliseconds
            clock[0] += arrives / 1000
            if not messages:
                raise zmq.Again
            return [messages.pop(0)]

    monkeypatch.setattr(talk.time, "monotonic", lambda: clock[0])
    abilities = sockets.Abilities(sends=False, receives=True, asks=False, answers=False)
    encode = formats().make_encoder("lines")
    limits = talk.Limits(recv_timeout=1.0)
    with pytest.raises(talk.TimedOut, match="no message within 1 s"):
        talk.Talk(Slow(), abilities, None, None, encode, limits).run(None, shows_requests=False)
    assert capfdbinary.readouterr().out == b"a\nb\nc\n"
    assert clock[0] == pytest.approx(3.7)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("kind", ["pull", "rep", "pair"])
def test_signals_end_it_quietly(zmq, context, endpoint, kind, number):
    peer = {"pull": zmq.PUSH, "rep": zmq.REQ, "pair": zmq.PAIR}[kind]
    with context.socket(peer) as socket:
        socket.bind(endpoint)
        with Command("cat", kind, "--connect", endpoint) as command:
            socket.wait_connected(timeout=PATIENCE * 1000)
            command.process.send_signal(number)
            assert command.finish(-number) == (b"", "")


def test_a_sender_ends_at_a_signal_although_there_is_no_receiver(endpoint):
    with Command("cat", "push", "--connect", endpoint, "-v") as push:
        push.write(b"x\n")
        assert push.process.stderr.readline() == f"connecting to {endpoint}\n".encode()
        push.process.send_signal(signal.SIGINT)
        assert push.finish(-signal.SIGINT) == (b"", "")


def test_ignored_signals_stay_ignored(zmq, context, endpoint):
    """As under nohup."""
    with context.socket(zmq.PUSH) as push:
        push.bind(endpoint)
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            command = Command("cat", "pull", "--connect", endpoint, "--count", 1)
        finally:
            signal.signal(signal.SIGHUP, before)
        with command:
            push.wait_connected(timeout=PATIENCE * 1000)
            command.process.send_signal(signal.SIGHUP)
            push.send(b"still here")
            assert command.finish()[0] == b"still here\n"


def test_it_ends_quietly_when_the_reader_ends(zmq, context, endpoint):
    with context.socket(zmq.PUSH) as push:
        push.bind(endpoint)
        with Command("cat", "pull", "--connect", endpoint) as pull:
            push.send_batch([b"one", b"two"])
            assert pull.read(4) == b"one\n"
            pull.process.stdout.close()
            # It looks for its reader while nothing arrives.
            assert pull.process.wait(PATIENCE) == -signal.SIGPIPE
            assert pull.process.stderr.read() == b""


@pytest.mark.parametrize("kind", ["pull", "dealer"])
def test_the_reader_is_killed(zmq, context, endpoint, kind):
    peer = zmq.PUSH if kind == "pull" else zmq.DEALER
    reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    with (
        context.socket(peer) as socket,
        Command("cat", kind, "--connect", endpoint, stdout=reader.stdin) as command,
    ):
        reader.stdin.close()
        socket.bind(endpoint)
        socket.send(b"seen")
        assert reader.stdout.read(5) == b"seen\n"
        reader.kill()
        reader.wait()
        assert command.process.wait(PATIENCE) == -signal.SIGPIPE
        assert command.process.stderr.read() == b""
    reader.stdout.close()


def test_the_reader_ends_while_input_is_awaited(endpoint):
    with Command("cat", "req", "--connect", endpoint) as command:
        command.process.stdout.close()
        assert command.process.wait(PATIENCE) == -signal.SIGPIPE
        assert command.process.stderr.read() == b""


def without(*numbers):
    """Closes streams of a command before it starts."""

    def close():
        for number in numbers:
            os.close(number)

    return {"preexec_fn": close}


def test_closed_streams_are_not_taken_for_others(zmq, context, endpoint):
    with Command("cat", "push", "--bind", endpoint, **without(0)) as command:
        assert command.finish(1)[1] == "zeroxide: stdin: Bad file descriptor\n"
    with Command("cat", "push", "--bind", endpoint, "--file", "-", **without(0)) as command:
        assert command.finish(1)[1] == "zeroxide: stdin: Bad file descriptor\n"
    with context.socket(zmq.PUSH) as push:
        push.bind(endpoint)
        with Command("cat", "pull", "--connect", endpoint, "--count", 1, **without(0, 1)) as pull:
            push.send(b"x")
            assert pull.finish(1)[1] == "zeroxide: stdout: Bad file descriptor\n"
    with Command("cat", "pull", "--bind", endpoint, "-v", "--timeout", 0, **without(2)) as pull:
        assert pull.finish(124)[0] == b""


def test_output_to_a_file(zmq, context, endpoint, tmp_path):
    with (
        context.socket(zmq.DEALER) as dealer,
        (tmp_path / "out").open("wb") as file,
        open(os.devnull, "rb") as null,
        Command(
            "cat", "dealer", "--connect", endpoint, "--count", 1, stdin=null, stdout=file
        ) as command,
    ):
        dealer.bind(endpoint)
        dealer.send(b"kept")
        assert command.process.wait(PATIENCE) == 0
    assert (tmp_path / "out").read_bytes() == b"kept\n"


def test_input_from_a_file_in_a_conversation(zmq, context, endpoint, tmp_path):
    (tmp_path / "in").write_bytes(b"a\nb\n")
    with (
        context.socket(zmq.DEALER) as dealer,
        (tmp_path / "in").open("rb") as file,
        Command("cat", "dealer", "--connect", endpoint, "--count", 1, stdin=file) as command,
    ):
        dealer.bind(endpoint)
        assert [dealer.recv(), dealer.recv()] == [b"a", b"b"]
        dealer.send(b"c")
        assert command.finish()[0] == b"c\n"


@pytest.fixture
def keys(tmp_path):
    for name in ("server", "alice", "mallory"):
        run("keygen", "--name", name, "--directory", tmp_path / name)
    return lambda name, kind="key": tmp_path / name / f"{name}.{kind}"


def test_curve(keys, endpoint, tmp_path):
    server = ("--key", keys("server", "key_secret"), "--allow", tmp_path / "alice")
    with Command("cat", "pull", "--bind", endpoint, "--count", 1, *server) as pull:
        client = ("--connect", endpoint, "--server-key", keys("server"), "--timeout", 0.2)
        mallory = ("--key", keys("mallory", "key_secret"))
        run("cat", "push", *client, *mallory, "--data", "refused", status=124)
        alice = ("--key", keys("alice", "key_secret"), "--timeout", PATIENCE)
        run("cat", "push", *client, *alice, "--data", "secret")
        assert pull.finish()[0] == b"secret\n"


def test_plain(endpoint, tmp_path):
    (tmp_path / "users").write_text("# the users\nalice:open sesame\n")
    (tmp_path / "right").write_text("open sesame\n")
    (tmp_path / "wrong").write_text("open barley\n")
    users = ("--passwords", tmp_path / "users")
    with Command("cat", "pull", "--bind", endpoint, "--count", 1, *users) as pull:
        user = ("--connect", endpoint, "--user", "alice", "--password-file")
        run("cat", "push", *user, tmp_path / "wrong", "--data", "x", "--timeout", 0.2, status=124)
        run("cat", "push", *user, tmp_path / "right", "--data", "let in")
        assert pull.finish()[0] == b"let in\n"


def test_several_endpoints_and_the_short_ones(zmq, context, directory):
    with context.socket(zmq.PUSH) as one, context.socket(zmq.PUSH) as two:
        port = one.bind_to_random_port("tcp://127.0.0.1")
        two.bind(f"ipc://{directory}/two")
        connect = ("-l", port, "-x", directory / "two", "--bind", f"ipc://{directory}/three")
        with Command("cat", *connect, "pull", "--count", 3, "--recv-maxsz", 0) as pull:
            run("cat", "push", "--connect-ipc", directory / "three", "--data", "c")
            one.send(b"a")
            two.send(b"b")
            assert sorted(pull.finish()[0].split()) == [b"a", b"b", b"c"]


def test_messages_above_the_limit_are_refused(zmq, context, endpoint):
    with Command("cat", "pull", "--bind", endpoint, "--recv-maxsz", 3, "--count", 1) as pull:
        with context.socket(zmq.PUSH) as push:
            push.connect(endpoint)
            push.send(b"long")
            push.flush(PATIENCE * 1000)
        with context.socket(zmq.PUSH) as push:
            push.connect(endpoint)
            push.send(b"abc")
            assert pull.finish()[0] == b"abc\n"


def test_options_of_sockets(endpoint):
    assert run(
        "cat", "pull", "--bind", endpoint, "--option", "rcvhwm=7", "--timeout", 0, status=124
    )
    error = run("cat", "pull", "--bind", endpoint, "--option", "rcvhw=7", status=2)[1]
    assert "did you mean 'rcvhwm'?" in error


MISTAKES = {
    "cat": "TYPE is required: pair, pub",
    "cat pul --bind x": "TYPE: expected pair, pub",
    "cat --bind x pul": "did you mean 'pull'?",
    "cat pull": "--bind or --connect is required",
    "cat pull --push --bind x": "two types, pull and push",
    "cat dish --bind inproc://x": "DISH requires --join",
    "cat pull --bind inproc://x --join y": "--join is for DISH, not for PULL",
    "cat push --bind inproc://x --group y": "--group is for RADIO, not for PUSH",
    "cat pull --bind x more": "unexpected argument 'more'",
    "cat pull --bind inproc://x --data y": "--data and --file are for types that send",
    "cat pull --bind x --count many": "--count: expected a whole number of messages",
    "cat pull --bind x --format xml": "expected lines, raw, ascii, quoted",
    "cat pull --bind x --file none": "there is no file 'none'",
    "cat pull --bind inproc://x --timeout inf": "--timeout: expected a number of seconds",
    "cat push --bind inproc://x --delay 1e10": "0 or more and below 1e+09",
    "cat rep --bind inproc://x --exec '": "is no command: no closing quotation",
    "cat rep --bind x --exec no-such-program": "there is no program 'no-such-program'",
    "cat req --bind inproc://x --exec true": "REQ receives none unasked",
    "cat rep --bind x --shell": "--shell requires --exec",
    "cat rep --bind x --exec true --data y": "--data and --file are not possible",
    "cat pull --bind x --option rcvhwm": "expected NAME=VALUE",
    "cat pull --bind x --option recv=1": "there is no socket option 'recv'",
    "cat pull --bind x --option rcvhwm=-1": "RCVHWM takes 0 to",
    "cat pull --bind inproc://x --subscribe y": "--subscribe is for SUB and XSUB, not for PULL",
    "cat pull --bind inproc://x --user y": "--user and --password-file belong together",
    "cat pull --bind inproc://x --allow *": "--allow requires --key",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_have_the_code_2(line):
    error = run(*line.split(), status=2)[1]
    assert MISTAKES[line] in error and error.count("\n") == 1


def test_failures_have_the_code_1():
    for endpoint in ("tcp://nowhere", "ipc:///proc/none"):
        error = run("cat", "pull", "--bind", endpoint, status=1)[1]
        assert error.startswith("zeroxide: ") and error.count("\n") == 1


def test_types_come_from_the_package(zmq, context):
    text = run("cat", "--help")[0].decode()
    for kind in zmq.SocketType:
        try:
            context.socket(kind).close()
        except zmq.ZMQError:
            assert f"--{kind.name.lower()} " not in text
        else:
            assert f"--{kind.name.lower()} " in text


def test_the_version(zmq):
    assert run("cat", "-V")[0].decode().strip() == zmq.__version__


def test_old_names_of_types(endpoint):
    assert "no message" in run("cat", "XREP", "--bind", endpoint, "--timeout", 0, status=124)[1]
