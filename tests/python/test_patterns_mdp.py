"""Majordomo follows RFC 7, 18 and 8 to the byte, and its broker gives requests to workers that live."""

import pytest
from pattern_peers import commands

from zeroxide.patterns._heartbeat import Backoff
from zeroxide.patterns._majordomo_broker import BrokerMachine
from zeroxide.patterns._majordomo_worker import MajordomoWorkerMachine
from zeroxide.patterns._mdp import (
    MDP_0_1,
    MDP_0_2,
    Disconnect,
    Heartbeat,
    Ready,
    Reply,
    Request,
)

pytestmark = pytest.mark.zeroxide_only

PEERS = "peers"


# ---- the frames of the RFCs ---------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "frames"),
    [
        (MDP_0_1.write_request(b"echo", [b"a", b"b"]), [b"", b"MDPC01", b"echo", b"a", b"b"]),
        (MDP_0_1.write_reply(b"echo", [b"a"], is_final=True), [b"", b"MDPC01", b"echo", b"a"]),
        (MDP_0_1.write_ready(b"echo"), [b"", b"MDPW01", b"\x01", b"echo"]),
        (MDP_0_1.write_worker_request(b"C", [b"a"]), [b"", b"MDPW01", b"\x02", b"C", b"", b"a"]),
        (MDP_0_1.write_worker_reply(b"C", [b"a"]), [b"", b"MDPW01", b"\x03", b"C", b"", b"a"]),
        (MDP_0_1.write_heartbeat(), [b"", b"MDPW01", b"\x04"]),
        (MDP_0_1.write_disconnect(), [b"", b"MDPW01", b"\x05"]),
        (MDP_0_2.write_request(b"echo", [b"a"]), [b"MDPC02", b"\x01", b"echo", b"a"]),
        (MDP_0_2.write_reply(b"s", [b"a"], is_final=False), [b"MDPC02", b"\x02", b"s", b"a"]),
        (MDP_0_2.write_reply(b"s", [b"a"], is_final=True), [b"MDPC02", b"\x03", b"s", b"a"]),
        (MDP_0_2.write_ready(b"echo"), [b"MDPW02", b"\x01", b"echo"]),
        (MDP_0_2.write_worker_request(b"C", [b"a"]), [b"MDPW02", b"\x02", b"C", b"", b"a"]),
        (
            MDP_0_2.write_worker_reply(b"C", [b"a"], is_final=False),
            [b"MDPW02", b"\x03", b"C", b"", b"a"],
        ),
        (MDP_0_2.write_worker_reply(b"C", [b"a"]), [b"MDPW02", b"\x04", b"C", b"", b"a"]),
        (MDP_0_2.write_heartbeat(), [b"MDPW02", b"\x05"]),
        (MDP_0_2.write_disconnect(), [b"MDPW02", b"\x06"]),
    ],
)
def test_frames_are_those_of_the_rfc(written, frames):
    assert written == frames


@pytest.mark.parametrize("protocol", [MDP_0_1, MDP_0_2], ids=["0.1", "0.2"])
def test_frames_are_read_as_they_were_written(protocol):
    front = len(protocol.start) + 1
    body = [b"a", b""]
    assert protocol.read_request(protocol.write_request(b"s", body)[front:]) == Request(b"s", body)
    for is_final in (True, False) if protocol.streams else (True,):
        written = protocol.write_reply(b"s", body, is_final=is_final)
        assert protocol.read_reply(written) == Reply(b"s", body, is_final)
        written = protocol.write_worker_reply(b"C", body, is_final=is_final)
        assert protocol.read_from_worker(written[front:]) == Reply(b"C", body, is_final)
    written = protocol.write_worker_request(b"C", body)
    assert protocol.read_from_broker(written) == Request(b"C", body)
    assert protocol.read_from_worker(protocol.write_ready(b"s")[front:]) == Ready(b"s")
    for written, command in (
        (protocol.write_heartbeat(), Heartbeat()),
        (protocol.write_disconnect(), Disconnect()),
    ):
        assert protocol.read_from_worker(written[front:]) == command
        assert protocol.read_from_broker(written) == command


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b""],
        [b"", b"MDPW01"],
        [b"", b"MDPW01", b""],
        [b"", b"MDPW01", b"\x02", b"C"],
        [b"", b"MDPW01", b"\x02", b"C", b"", *[]],
        [b"", b"MDPW01", b"\x02", b"C", b"no delimiter", b"a"],
        [b"", b"MDPW01", b"\x07"],
        [b"", b"MDPW01", b"\x04", b"more"],
        [b"MDPW02", b"\x04"],
    ],
)
def test_other_frames_are_nothing_of_a_broker(parts):
    assert MDP_0_1.read_from_broker(parts) is None
    worker = MajordomoWorkerMachine(MDP_0_1, "echo", 1000, 3, Backoff(1000, 1000), 0)
    worker.handle_message("queue", parts, 0)
    assert worker.poll_request() is None


# ---- the broker, with a clock of the test -------------------------------------------


def broker(**options):
    return BrokerMachine(
        **{"heartbeat": 2500, "liveness": 3, "request_ttl": 60_000, "max_requests": 100} | options
    )


def ready(machine, address, service=b"echo", now=0):
    machine.handle_message(PEERS, [address, *MDP_0_1.write_ready(service)], now)


def request(machine, body, client=b"C", service=b"echo", now=0):
    machine.handle_message(PEERS, [client, *MDP_0_1.write_request(service, [body])], now)


def given(worker, body, client=b"C"):
    return PEERS, [worker, *MDP_0_1.write_worker_request(client, [body])]


DISMISSED = [b"", b"MDPW01", b"\x05"]


def test_requests_wait_for_workers_and_go_to_the_one_that_is_idle_for_the_longest_time():
    machine = broker()
    request(machine, b"1")
    assert commands(machine) == []
    ready(machine, b"A")
    ready(machine, b"B")
    request(machine, b"2")
    request(machine, b"3")
    assert commands(machine) == [given(b"A", b"1"), given(b"B", b"2")]
    machine.handle_message(PEERS, [b"B", *MDP_0_1.write_worker_reply(b"C", [b"two"])], 0)
    assert commands(machine) == [
        (PEERS, [b"C", b"", b"MDPC01", b"echo", b"two"]),
        given(b"B", b"3"),
    ]


def test_a_request_waits_for_a_limited_time():
    machine = broker(request_ttl=5000)
    request(machine, b"1", now=0)
    request(machine, b"2", now=1000)
    assert machine.poll_timeout() == 5000
    machine.handle_timeout(5000)
    assert machine.poll_timeout() == 6000
    ready(machine, b"A", now=5999)
    assert commands(machine) == [given(b"A", b"2")]


def test_a_limited_number_of_requests_waits():
    machine = broker(max_requests=2)
    for number in range(4):
        request(machine, b"%d" % number, service=b"%d" % number)
    for number in range(4):
        ready(machine, b"worker %d" % number, b"%d" % number)
    assert commands(machine) == [given(b"worker 0", b"0"), given(b"worker 1", b"1")]
    request(machine, b"there is room again", service=b"2")
    assert commands(machine) == [given(b"worker 2", b"there is room again")]


def test_requests_that_wait_are_limited_in_bytes():
    machine = broker(max_requests=10_000, max_request_bytes=1 << 20)
    for number in range(20):
        request(machine, bytes(100_000), service=b"%d" % number)
    assert machine.dropped == 9  # the eleventh goes beyond the limit
    for _ in range(20):
        request(machine, b"small")
    assert machine.dropped == 29
    # Those that wait do not stop a worker that is idle.
    ready(machine, b"A", b"upper")
    request(machine, b"1", service=b"upper")
    assert commands(machine) == [given(b"A", b"1")]
    # There is room again when they were given to a worker, or have expired.
    ready(machine, b"B", b"0")
    request(machine, b"small")
    assert machine.dropped == 29
    machine.handle_timeout(60_000)
    assert machine.dropped == 40
    for _ in range(5):
        request(machine, bytes(200_000), now=60_000)
    assert machine.dropped == 40


def test_empty_parts_of_requests_count_too():
    machine = broker(max_requests=10_000, max_request_bytes=1 << 20)
    for _ in range(20):
        message = MDP_0_1.write_request(b"echo", [b""] * 10_000)
        machine.handle_message(PEERS, [b"C", *message], 0)
    assert machine.dropped == 18


def test_heartbeats_of_workers_do_not_visit_all_services(monkeypatch):
    machine = broker(max_requests=10_000)
    for number in range(1000):
        request(machine, b"", service=b"%d" % number, now=number / 1000)
    ready(machine, b"A")
    visited = []
    expire = machine._expire
    monkeypatch.setattr(machine, "_expire", lambda *given: (visited.append(1), expire(*given)))
    for now in range(2500, 60_000, 2500):
        assert machine.poll_timeout() == now
        machine.handle_message(PEERS, [b"A", *MDP_0_1.write_heartbeat()], now)
        machine.handle_timeout(now)
        assert commands(machine) == [(PEERS, [b"A", *MDP_0_1.write_heartbeat()])]
    assert visited == []
    machine.handle_timeout(60_000)
    assert machine.dropped == 1


def test_the_times_of_workers_that_are_gone_take_no_memory():
    machine = broker()
    for _ in range(1000):
        ready(machine, b"A")
        machine.handle_message(PEERS, [b"A", *MDP_0_1.write_disconnect()], 0)
    assert len(machine._beats._heap) < 200
    assert machine.poll_timeout() is None


def test_another_worker_gets_the_request_of_a_dead_one():
    machine = broker()
    ready(machine, b"A")
    ready(machine, b"B")
    request(machine, b"1")
    assert commands(machine) == [given(b"A", b"1")]
    machine.handle_message(PEERS, [b"B", *MDP_0_1.write_heartbeat()], 5000)
    machine.handle_timeout(7500)
    assert given(b"B", b"1") in commands(machine)


def test_a_broker_that_did_not_run_does_not_take_its_workers_for_dead():
    machine = broker()
    ready(machine, b"A")
    machine.handle_timeout(60_000)  # it was stopped, and has not read the worker's messages yet
    machine.handle_message(PEERS, [b"A", *MDP_0_1.write_heartbeat()], 60_001)
    request(machine, b"1", now=60_002)
    assert given(b"A", b"1") in commands(machine)
    machine.handle_timeout(67_501)
    assert machine._workers == {}


def test_another_worker_gets_the_request_of_one_that_disconnects_or_has_gone():
    machine = broker()
    for worker in (b"A", b"B", b"D"):
        ready(machine, worker)
    request(machine, b"1")
    machine.handle_message(PEERS, [b"A", *MDP_0_1.write_disconnect()], 1)
    first, (link, parts) = commands(machine)
    assert (first, (link, parts)) == (given(b"A", b"1"), given(b"B", b"1"))
    machine.handle_unroutable(link, parts, 2)
    assert commands(machine) == [given(b"D", b"1")]


def test_workers_that_have_gone_before_they_had_a_request_do_not_count():
    machine = broker()
    request(machine, b"1")
    for number in range(5):
        ready(machine, b"%d" % number)
        [(link, parts)] = commands(machine)
        assert parts[0] == b"%d" % number
        machine.handle_unroutable(link, parts, 0)


def test_workers_whose_request_is_not_sent_yet_when_a_heartbeat_fails_do_not_count():
    machine = broker()
    for number in range(5):
        ready(machine, b"%d" % number)
    request(machine, b"1")
    for number in range(4):
        machine.handle_unroutable(PEERS, [b"%d" % number, *MDP_0_1.write_heartbeat()], 0)
    assert commands(machine)[-1] == given(b"4", b"1")


def test_a_request_that_kills_its_workers_ends():
    machine = broker()
    request(machine, b"poison")
    for number in range(5):
        ready(machine, b"%d" % number)
        machine.handle_message(PEERS, [b"%d" % number, *MDP_0_1.write_disconnect()], 0)
    assert commands(machine) == [given(b"%d" % number, b"poison") for number in range(3)]


def test_a_request_that_kills_its_workers_ends_if_a_heartbeat_finds_them_dead():
    machine = broker()
    request(machine, b"poison")
    for number in range(3):
        ready(machine, b"%d" % number)
        assert commands(machine) == [given(b"%d" % number, b"poison")]
        machine.handle_unroutable(PEERS, [b"%d" % number, *MDP_0_1.write_heartbeat()], 0)
    ready(machine, b"3")
    assert commands(machine) == []
    assert machine.dropped == 1


def test_a_request_is_not_repeated_after_a_partial_reply():
    machine = broker()
    machine.handle_message(PEERS, [b"C", *MDP_0_2.write_request(b"echo", [b"1"])], 0)
    for worker in (b"A", b"B"):
        machine.handle_message(PEERS, [worker, *MDP_0_2.write_ready(b"echo")], 0)
    partial = MDP_0_2.write_worker_reply(b"C", [b"half"], is_final=False)
    machine.handle_message(PEERS, [b"A", *partial], 0)
    machine.handle_message(PEERS, [b"A", *MDP_0_2.write_disconnect()], 0)
    assert commands(machine) == [
        (PEERS, [b"A", b"MDPW02", b"\x02", b"C", b"", b"1"]),
        (PEERS, [b"C", b"MDPC02", b"\x02", b"echo", b"half"]),
    ]


def test_heartbeats_are_sent_while_nothing_else_is():
    machine = broker()
    ready(machine, b"A")
    request(machine, b"1", now=2000)
    commands(machine)
    machine.handle_timeout(2500)
    assert commands(machine) == []
    assert machine.poll_timeout() == 4500
    machine.handle_timeout(4500)
    assert commands(machine) == [(PEERS, [b"A", b"", b"MDPW01", b"\x04"])]


@pytest.mark.parametrize(
    "unexpected",
    [
        MDP_0_1.write_heartbeat(),
        MDP_0_1.write_worker_reply(b"C", [b"reply"]),
        MDP_0_1.write_ready(b"mmi.service"),
    ],
)
def test_what_is_not_expected_is_answered_with_disconnect(unexpected):
    machine = broker()
    machine.handle_message(PEERS, [b"A", *unexpected], 0)
    assert commands(machine) == [(PEERS, [b"A", *DISMISSED])]


@pytest.mark.parametrize(
    "unexpected",
    [
        MDP_0_1.write_ready(b"echo"),
        MDP_0_1.write_worker_reply(b"C", [b"reply"]),
        MDP_0_2.write_heartbeat(),
        [b"", b"MDPW01", b"\x09"],
        [b"", b"MDPW01"],
        [b"rubbish"],
    ],
)
def test_a_worker_that_breaks_the_protocol_gets_nothing_any_more(unexpected):
    machine = broker()
    ready(machine, b"A")
    machine.handle_message(PEERS, [b"A", *unexpected], 0)
    [(_, [address, *frames])] = commands(machine)
    assert address == b"A"
    assert frames in (DISMISSED, [b"MDPW02", b"\x06"])
    request(machine, b"1")
    machine.handle_timeout(2500)
    assert commands(machine) == []


@pytest.mark.parametrize("parts", [[], [b"C"], [b"C", b""], [b"C", b"MDPC01", b"echo", b"1"]])
def test_rubbish_is_dropped(parts):
    machine = broker()
    ready(machine, b"A")
    commands(machine)
    machine.handle_message(PEERS, parts, 0)
    assert commands(machine) == []


def test_dropped_messages_are_counted():
    machine = broker(max_requests=1)
    machine.handle_message("peers", [b"x", b"rubbish"], 0)
    machine.handle_message("peers", [b"x", b"", b"MDPC01", b"echo"], 0)
    machine.handle_message("peers", [b"x", b"MDPW02", b"\x09"], 0)
    assert machine.dropped == 3
    for body in (b"1", b"2"):
        request(machine, body)
    assert machine.dropped == 4  # there is no room for the second
    machine.handle_timeout(60_000)
    assert machine.dropped == 5  # the first has waited for too long


def test_management_services():
    machine = broker()
    ready(machine, b"A")
    commands(machine)
    for service, body, code in (
        (b"mmi.service", b"echo", b"200"),
        (b"mmi.service", b"other", b"404"),
        (b"mmi.other", b"echo", b"501"),
    ):
        request(machine, body, service=service)
        assert commands(machine) == [(PEERS, [b"C", b"", b"MDPC01", service, code])]
    machine.handle_message(PEERS, [b"C", *MDP_0_2.write_request(b"mmi.service", [b"echo"])], 0)
    assert commands(machine) == [(PEERS, [b"C", b"MDPC02", b"\x03", b"mmi.service", b"404"])]
    machine.handle_message(PEERS, [b"A", *MDP_0_1.write_disconnect()], 0)
    request(machine, b"echo", service=b"mmi.service")
    assert commands(machine) == [(PEERS, [b"C", b"", b"MDPC01", b"mmi.service", b"404"])]


def test_nothing_remains_of_workers_and_requests_that_are_gone():
    machine = broker()
    for number in range(10):
        request(machine, b"1", service=b"%d" % number)
        ready(machine, b"worker %d" % number, b"other %d" % number)
    machine.handle_timeout(7500)
    machine.handle_timeout(60_000)
    assert not machine._services
    assert not machine._workers
    assert machine._waiting == 0
    assert machine.poll_timeout() is None


def test_a_broker_that_closes_says_goodbye():
    machine = broker()
    ready(machine, b"A")
    machine.handle_close()
    assert commands(machine) == [(PEERS, [b"A", *DISMISSED])]
