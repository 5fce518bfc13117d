"""Files are transferred with credit, and a transfer continues after the server's death."""

import asyncio
import os
import threading
from pathlib import Path

import pytest
from pattern_peers import commands
from support import Background

from zeroxide import patterns
from zeroxide.patterns._file_client import FileClientMachine
from zeroxide.patterns._file_server import Chunk, FileServerMachine, read_chunk

pytestmark = pytest.mark.zeroxide_only

FORMS = pytest.mark.parametrize("form", ["", "Async"], ids=["blocking", "asyncio"])


def fetch(*offsets, size=10):
    return [("server", [b"fetch", b"%d" % offset, b"%d" % size, b"f"]) for offset in offsets]


def chunk(machine, offset, data, size=100, version=b"v", now=0):
    parts = [b"chunk", version, b"%d" % size, b"%d" % offset, data]
    machine.handle_message("server", parts, now)


TEN = b"0123456789"


# ---- the machines, with a clock of the test -----------------------------------------


def test_chunks_are_asked_for_a_few_ahead():
    client = FileClientMachine(10, 3, 2500, 3)
    client.begin("f", 0)
    # The first reply says how large the file is.
    assert commands(client) == fetch(0)
    chunk(client, 0, TEN)
    assert commands(client) == fetch(10, 20)
    chunk(client, 10, TEN)
    chunk(client, 20, TEN)
    assert commands(client) == []
    # Each chunk that is taken gives a credit back.
    assert client.poll_chunk(0) == TEN
    assert commands(client) == fetch(30)


def test_no_chunk_is_asked_for_beyond_the_end():
    client = FileClientMachine(10, 5, 2500, 3)
    client.begin("f", 0)
    chunk(client, 0, TEN, size=25)
    chunk(client, 10, TEN, size=25)
    chunk(client, 20, b"01234", size=25)
    assert commands(client) == fetch(0, 10, 20)
    assert [client.poll_chunk(0) for _ in range(4)] == [TEN, TEN, b"01234", None]
    assert client.is_complete
    assert client.poll_timeout() is None


def test_a_transfer_continues_where_it_was():
    client = FileClientMachine(10, 3, 2500, 3)
    client.begin("f", 0)
    chunk(client, 0, TEN, now=100)
    commands(client)
    chunk(client, 20, TEN)  # the one before it was lost
    assert client.poll_timeout() == 2600
    client.handle_timeout(2600)
    assert commands(client) == [("reopen", "server"), *fetch(10, 20)]
    chunk(client, 10, TEN, now=2700)
    for now in (5200, 7700):
        client.handle_timeout(now)
    assert client.poll_chunk(7700) == TEN
    assert client.poll_chunk(7700) == TEN
    client.handle_timeout(10_200)
    with pytest.raises(patterns.NoReply, match="no chunk arrived in 3 attempts"):
        client.poll_chunk(10_200)


def test_a_slow_reader_is_not_taken_for_a_dead_server():
    client = FileClientMachine(10, 1, 2500, 1)
    client.begin("f", 0)
    chunk(client, 0, TEN)
    commands(client)
    client.handle_timeout(60_000)
    assert client.poll_chunk(60_000) == TEN
    assert commands(client) == fetch(10)
    assert client.poll_timeout() == 62_500


def test_a_file_that_changes_is_an_error():
    client = FileClientMachine(10, 3, 2500, 3)
    client.begin("f", 0)
    chunk(client, 0, TEN)
    chunk(client, 10, TEN, version=b"w")
    assert client.poll_chunk(0) == TEN
    with pytest.raises(patterns.FileRefused, match="the file changed while it was fetched"):
        client.poll_chunk(0)


def test_what_remains_of_a_file_is_not_taken_for_the_next():
    client = FileClientMachine(10, 3, 2500, 3)
    client.begin("f", 0)
    commands(client)
    client.begin("f", 0)
    assert commands(client) == [("reopen", "server"), *fetch(0)]


def test_a_server_answers_with_what_it_read():
    server = FileServerMachine(lambda name, offset, size: Chunk(b"v", 9, name.encode()[:size]))
    server.handle_message("clients", [b"C", b"fetch", b"3", b"2", b"name"], 0)
    assert commands(server) == [("clients", [b"C", b"chunk", b"v", b"9", b"3", b"na"])]


@pytest.mark.parametrize(
    ("offset", "size"), [(b"-1", b"1"), (b"0", b"0"), (b"0", b"4000001"), (b"x", b"1")]
)
def test_a_server_refuses_what_is_no_chunk(offset, size):
    server = FileServerMachine(lambda *_: pytest.fail("the file was read"))
    server.handle_message("clients", [b"C", b"fetch", offset, size, b"name"], 0)
    [(_, [client, word, _])] = commands(server)
    assert (client, word) == (b"C", b"error")
    server.handle_message("clients", [b"C", b"rubbish"], 0)
    assert commands(server) == []
    assert server.dropped == 1


@pytest.mark.parametrize(
    "name", ["absent", "../secret", "/etc/passwd", "link", "folder", ".", "", "a\0b", "x" * 5000]
)
def test_nothing_outside_the_folder_is_read(tmp_path, name):
    (tmp_path / "secret").write_bytes(b"secret")
    folder = tmp_path / "files"
    (folder / "folder").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(patterns.FileRefused) as error:
        read_chunk(folder, name, 0, 10)
    assert str(tmp_path) not in str(error.value)


# ---- the sockets, and a server that dies --------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 1000, 1001, 12_345])
def test_files_arrive_as_they_are(context, tmp_path, size):
    content = bytes(number * 7 % 251 for number in range(size))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "name").write_bytes(content)
    with patterns.FileServer("inproc://files", tmp_path / "files", context=context) as server:
        running = Background(server.run)
        with patterns.FileClient("inproc://files", chunk=1000, context=context) as client:
            assert b"".join(client.fetch("name")) == content
            client.download("name", tmp_path / "copy")
            with pytest.raises(patterns.FileRefused, match="there is no file 'absent'"):
                client.download("absent", tmp_path / "absent")
            for data in client.fetch("name"):
                assert data
                break
            assert b"".join(client.fetch("name")) == content
        server.stop()
        running.result()
    assert (tmp_path / "copy").read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "files"]


@FORMS
def test_a_transfer_survives_a_killed_and_a_silent_server(peers, directory, tmp_path, form):
    content = bytes(number * 7 % 251 for number in range(100_000))
    (tmp_path / "name").write_bytes(content)
    arguments = {"endpoint": f"ipc://{directory}/files", "folder": str(tmp_path)}
    servers = [peers.start(f"{form}FileServer", **arguments)]
    received = []

    def disturb():
        """Kills the server after ten chunks, and stops its successor for a while after fifty."""
        if len(received) == 10:
            servers[0].kill()
            servers.append(peers.start(f"{form}FileServer", **arguments))
        elif len(received) == 50:
            # Long enough for the client to ask again at least once.
            servers[1].stop()
            threading.Timer(0.5, servers[1].resume).start()

    options = {"chunk": 1000, "pipeline": 3, "timeout": 300, "attempts": None}

    def fetch():
        with patterns.FileClient(arguments["endpoint"], **options) as client:
            for data in client.fetch("name"):
                received.append(data)
                disturb()

    async def fetch_async():
        async with patterns.AsyncFileClient(arguments["endpoint"], **options) as client:
            async for data in client.fetch("name"):
                received.append(data)
                disturb()

    if form:
        asyncio.run(fetch_async())
    else:
        fetch()
    assert b"".join(received) == content


def test_a_link_that_leads_to_itself_is_refused(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for name in ("loop", "loop/x"):
        with pytest.raises(patterns.FileRefused):
            read_chunk(tmp_path, name, 0, 10)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_takes_the_place_of_a_file_is_not_read(tmp_path, monkeypatch, kind):
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "name").write_bytes(b"content")
    is_file = Path.is_file

    def replace(path):
        """Puts something else there between the check and the reading."""
        found = is_file(path)
        path.unlink()
        if kind == "link":
            path.symlink_to(secret)
        else:
            os.mkfifo(path)
        return found

    monkeypatch.setattr(Path, "is_file", replace)
    with pytest.raises(patterns.FileRefused):
        read_chunk(folder, "name", 0, 10)


def test_a_download_does_not_write_through_a_link(context, tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "name").write_bytes(b"content")
    (tmp_path / "victim").write_bytes(b"victim")
    for trap in ("copy.part", "copy"):
        (tmp_path / trap).symlink_to(tmp_path / "victim")
    with patterns.FileServer("inproc://files", tmp_path / "files", context=context) as server:
        running = Background(server.run)
        with patterns.FileClient("inproc://files", context=context) as client:
            client.download("name", tmp_path / "copy")
        server.stop()
        running.result()
    assert (tmp_path / "victim").read_bytes() == b"victim"
    assert (tmp_path / "copy").read_bytes() == b"content"
    assert not (tmp_path / "copy").is_symlink()


def test_an_iteration_ends_when_another_file_is_begun(context, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(name.encode() * 10)
    with patterns.FileServer("inproc://files", tmp_path, context=context) as server:
        running = Background(server.run)
        with patterns.FileClient("inproc://files", chunk=10, context=context) as client:
            first, second = client.fetch("one"), client.fetch("two")
            assert next(first) == b"oneoneoneo"
            assert next(second) == b"twotwotwot"
            with pytest.raises(RuntimeError, match="another file has ended this iteration"):
                next(first)
            assert b"".join(second) == (b"two" * 10)[10:]
        server.stop()
        running.result()
