"""Titanic follows RFC 9, and loses no request whatever dies, as chapter 4 of the guide says."""

import asyncio
import errno
import os
import stat

import pytest
from pattern_peers import commands
from support import Background, eventually

from zeroxide import patterns
from zeroxide.patterns._heartbeat import Backoff
from zeroxide.patterns._majordomo_client import MajordomoClientMachine
from zeroxide.patterns._majordomo_worker import MajordomoWorkerMachine
from zeroxide.patterns._mdp import MDP_0_1
from zeroxide.patterns._spool import Spool
from zeroxide.patterns._titanic_server import TitanicMachine

pytestmark = pytest.mark.zeroxide_only

FORMS = pytest.mark.parametrize(
    ("form", "version"), [("", "0.1"), ("Async", "0.2")], ids=["blocking-0.1", "asyncio-0.2"]
)

BEATS = {"heartbeat": 100, "liveness": 3}


# ---- the spool ----------------------------------------------------------------------


def test_requests_and_replies_are_found_by_the_next_process(tmp_path):
    spool = Spool(tmp_path / "spool")
    names = [spool.add([b"echo", b"%d" % number, b""]) for number in range(3)]
    spool.add_reply(names[1], [b"", b"reply"])
    (tmp_path / "spool" / "half.part").write_bytes(b"half")
    spool = Spool(tmp_path / "spool")
    assert spool.pending() == [names[0], names[2]]
    assert spool.request(names[0]) == [b"echo", b"0", b""]
    assert spool.reply(names[1]) == [b"", b"reply"]
    assert spool.reply(names[0]) is None
    for name in [*names, names[0]]:
        spool.remove(name)
    assert list((tmp_path / "spool").iterdir()) == []


def test_the_folder_has_a_limited_number_of_requests(tmp_path):
    spool = Spool(tmp_path, max_requests=2)
    one = spool.add([b"echo", b"1"])
    spool.add_reply(one, [b"reply"])
    spool.add([b"echo", b"2"])
    spool = Spool(tmp_path, max_requests=2)
    with pytest.raises(OSError, match="the folder has 2 requests"):
        spool.add([b"echo", b"3"])
    for _ in range(2):
        spool.remove(one)
    spool.add([b"echo", b"3"])
    with pytest.raises(OSError, match="the folder has 2 requests"):
        spool.add([b"echo", b"4"])


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_was_not_written_does_not_stay(tmp_path, monkeypatch, what):
    def fail(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) is (what == "folder"):
            raise OSError(errno.ENOSPC, "No space left on device")

    spool = Spool(tmp_path)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        spool.add([b"echo", b"1"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", [b"", b"../x", b"0" * 31, b"0" * 33, b"g" * 32, b"\xff" * 32])
def test_a_name_is_32_hexadecimal_characters(text):
    assert Spool.name(text) is None
    assert Spool.name(b"0123456789abcdefABCDEF0123456789") == "0123456789abcdefabcdef0123456789"


# ---- the server, with a clock of the test -------------------------------------------


class Titanic:
    """A server whose peers are the test."""

    def __init__(self, folder):
        workers = {
            name: MajordomoWorkerMachine(MDP_0_1, name, 2500, 3, Backoff(2500, 2500), 0)
            for name in ("titanic.request", "titanic.reply", "titanic.close")
        }
        client = MajordomoClientMachine(MDP_0_1, 2500, 1)
        self.machine = TitanicMachine(Spool(folder), workers, client, 1000, 0)
        self.started = commands(self.machine)

    def call(self, service, *body, now=0):
        """Returns the reply to a client's call; commands to execute requests remain."""
        request = MDP_0_1.write_worker_request(b"C", list(body))
        self.machine.handle_message(service, request, now)
        found = commands(self.machine)
        front = [b"", b"MDPW01", b"\x03", b"C", b""]
        replies = [parts for link, parts in found if link == service]
        self.executes = [command for command in found if command[0] == "client"]
        assert [parts[:5] for parts in replies] == [front]
        return replies[0][5:]

    def reply(self, service, body, now=0):
        self.machine.handle_message(
            "client", MDP_0_1.write_reply(service, [body], is_final=True), now
        )
        return commands(self.machine)


def asks(service, body):
    return ("client", [b"", b"MDPC01", service, body])


def test_a_request_is_executed_when_its_service_is_there(tmp_path):
    titanic = Titanic(tmp_path)
    services = [parts[-1] for _, parts in titanic.started]
    assert services == [b"titanic.request", b"titanic.reply", b"titanic.close"]
    status, name = titanic.call("titanic.request", b"echo", b"body")
    assert status == b"200 OK"
    assert titanic.executes == [asks(b"mmi.service", b"echo")]
    assert titanic.call("titanic.reply", name) == [b"300 PENDING"]
    assert titanic.reply(b"mmi.service", b"404") == []
    assert titanic.machine.poll_timeout() == 1000
    titanic.machine.handle_timeout(1000)
    assert commands(titanic.machine) == [asks(b"mmi.service", b"echo")]
    assert titanic.reply(b"mmi.service", b"200", 1000) == [asks(b"echo", b"body")]
    assert titanic.reply(b"echo", b"done", 1000) == []
    for _ in range(2):
        assert titanic.call("titanic.reply", name, now=1000) == [b"200 OK", b"done"]
    for _ in range(2):
        assert titanic.call("titanic.close", name, now=1000) == [b"200 OK"]
    assert titanic.call("titanic.reply", name, now=1000) == [b"400 UNKNOWN"]


@pytest.mark.parametrize("content", [b"", b"short", bytes(7) + b"\x09" + b"body", bytes(8) + b"x"])
def test_a_damaged_file_is_an_error_for_its_client_only(tmp_path, content):
    name = b"0123456789abcdef0123456789abcdef"
    (tmp_path / f"{name.decode()}.request").write_bytes(content)
    (tmp_path / "notes.request").write_bytes(b"not ours")
    titanic = Titanic(tmp_path)
    titanic.machine.handle_timeout(1000)
    assert commands(titanic.machine) == []
    assert titanic.call("titanic.reply", name, now=1000) == [b"500 ERROR"]
    (tmp_path / f"{name.decode()}.reply").write_bytes(content)
    assert titanic.call("titanic.reply", name, now=1000) == [b"500 ERROR"]
    status, _ = titanic.call("titanic.request", b"echo", b"body", now=1000)
    assert status == b"200 OK"
    assert titanic.executes == [asks(b"mmi.service", b"echo")]
    assert titanic.call("titanic.close", name, now=1000) == [b"200 OK"]


def test_malformed_messages_are_counted(tmp_path):
    titanic = Titanic(tmp_path)
    titanic.machine.handle_message("titanic.request", [b"rubbish"], 0)
    assert titanic.machine.dropped == 1


def test_a_request_without_reply_is_tried_again_after_the_others(tmp_path):
    titanic = Titanic(tmp_path)
    for service in (b"first", b"second"):
        titanic.call("titanic.request", service, b"body")
    titanic.reply(b"mmi.service", b"200")
    titanic.machine.handle_timeout(2500)
    found = [command for command in commands(titanic.machine) if command[0] in ("client", "reopen")]
    assert found == [("reopen", "client"), asks(b"mmi.service", b"second")]
    titanic.reply(b"mmi.service", b"404", 2500)
    titanic.machine.handle_timeout(3500)
    assert asks(b"mmi.service", b"first") in commands(titanic.machine)


def test_a_restarted_server_continues(tmp_path):
    _, name = Titanic(tmp_path).call("titanic.request", b"echo", b"body")
    titanic = Titanic(tmp_path)
    assert titanic.started[-1] == asks(b"mmi.service", b"echo")
    titanic.reply(b"mmi.service", b"200")
    titanic.reply(b"echo", b"done")
    assert Titanic(tmp_path).call("titanic.reply", name) == [b"200 OK", b"done"]


def test_a_request_that_is_closed_is_not_executed(tmp_path):
    titanic = Titanic(tmp_path)
    names = [titanic.call("titanic.request", b"echo", b"body")[1] for _ in range(2)]
    for name in names:
        titanic.call("titanic.close", name)
    titanic.reply(b"mmi.service", b"200")
    assert titanic.reply(b"echo", b"done") == []
    assert list(tmp_path.iterdir()) == []


def test_statuses_of_mistakes_and_of_a_disk_that_fails(tmp_path, monkeypatch):
    titanic = Titanic(tmp_path)
    assert titanic.call("titanic.reply", b"0" * 32) == [b"400 UNKNOWN"]
    assert titanic.call("titanic.reply", b"../secret") == [b"400 UNKNOWN"]
    assert titanic.call("titanic.close", b"rubbish") == [b"200 OK"]

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(Spool, "_write", fail)
    assert titanic.call("titanic.request", b"echo", b"body") == [b"500 ERROR"]


# ---- the sockets, and peers that die ------------------------------------------------


@FORMS
def test_titanic_survives_the_death_of_all_peers(peers, directory, tmp_path, form, version):
    """Between a request and its reply every peer is killed at least once, except for the client."""
    endpoint = f"ipc://{directory}/broker"
    mdp = {"endpoint": endpoint, "version": version, "reconnect": 100, **BEATS}
    worker = {"service": "echo", **mdp}

    def start_broker():
        return peers.start(f"{form}MajordomoBroker", endpoint=endpoint, **BEATS)

    def start_titanic():
        times = {"timeout": 500, "retry": 100}
        return peers.start(f"{form}TitanicServer", folder=str(tmp_path / "spool"), **mdp, **times)

    def call(method, *arguments, attempts=None):
        options = {"version": version, "timeout": 500, "attempts": attempts}
        if not form:
            with patterns.TitanicClient(endpoint, **options) as client:
                return getattr(client, method)(*arguments)

        async def ask():
            async with patterns.AsyncTitanicClient(endpoint, **options) as client:
                return await getattr(client, method)(*arguments)

        return asyncio.run(ask())

    broker, titanic = start_broker(), start_titanic()
    name = call("submit", "echo", b"1")
    assert call("fetch", name) is None
    titanic.kill()
    broker.kill()
    broker, titanic = start_broker(), start_titanic()
    victim = peers.start(f"{form}MajordomoWorker", "victim", hangs=True, **worker)
    assert victim.line().startswith("got")
    titanic.kill()
    victim.kill()
    titanic = start_titanic()
    peers.start(f"{form}MajordomoWorker", "worker", **worker)
    assert eventually(lambda: call("fetch", name)) == [b"worker", b"1"]
    titanic.kill()
    titanic = start_titanic()
    assert call("fetch", name) == [b"worker", b"1"]
    # A request to a server that is silent is repeated until it is not.
    titanic.stop()
    fetching = Background(call, "fetch", name)
    with pytest.raises(patterns.NoReply):
        call("fetch", name, attempts=1)
    titanic.resume()
    assert fetching.result() == [b"worker", b"1"]
    call("discard", name)
    with pytest.raises(patterns.UnknownRequest, match=name):
        call("fetch", name)


def test_an_error_of_the_server_is_raised(context):
    def refuse(request):
        return b"500 ERROR"

    with patterns.MajordomoBroker("inproc://broker", context=context) as broker:
        running = Background(broker.run)
        with (
            patterns.MajordomoWorker(
                "inproc://broker", "titanic.request", context=context
            ) as worker,
            patterns.TitanicClient("inproc://broker", context=context) as client,
        ):
            answering = Background(worker.run, refuse)
            with pytest.raises(patterns.TitanicError, match="500 ERROR"):
                client.submit("echo", b"1")
            worker.stop()
            answering.result()
        broker.stop()
        running.result()
