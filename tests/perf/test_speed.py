"""`pytest -m perf`: a threshold is about twice the value on a quiet machine, which separates regressions from noise.

Where possible, tests use CPU per message instead of messages per second, because the load of other processes hardly
changes it.
"""

import call_roles
import pytest

import zeroxide

pytestmark = [pytest.mark.perf, pytest.mark.timeout(60)]


@pytest.fixture(scope="module")
def calls() -> dict[str, float]:
    """The minimum of many short rounds: on a busy machine, other processes interrupt most of them, but hardly all."""
    rounds = [call_roles.calls(zeroxide, {"seconds": 0.05}) for _ in range(8)]
    return {name: min(each[name] for each in rounds) for name in rounds[0]}


@pytest.mark.parametrize(
    ("call", "most"),
    [
        ("send 64 B, no peer", 6),
        ("send_multipart 5 x 64 B, no peer", 20),
        ("poll(0), nothing there", 5),
        ("getsockopt(EVENTS)", 7),
        ("recv(NOBLOCK), nothing there", 60),
        ("inproc send 64 B, queue only", 8),
        ("inproc recv 64 B, queue full", 7),
    ],
)
def test_a_call_costs_a_few_calls_of_nothing(calls, machine, call, most):
    assert calls[call] <= most * machine.call_ns


def test_a_round_trip_takes_little_more_than_the_kernel(machine, figures):
    took = figures("req_rep", size=1, cores=[0])["p50_us"]
    assert took <= 4 * machine.raw_us


def test_a_message_costs_both_sides_little_cpu(machine, figures):
    used = figures("push_pull")["cpu_us"]
    assert used <= 25 * machine.call_ns / 1e3


def test_a_large_message_costs_as_much_as_copying_it(machine, figures):
    used = figures("push_pull", size=262144)["cpu_us"]
    assert used <= 4 * machine.copy_us


def test_batches_are_cheaper_than_single_calls(figures):
    assert figures("batch")["cpu_us"] <= 0.95 * figures("push_pull")["cpu_us"]


def test_five_frames_cost_no_call_each(figures):
    assert figures("multipart", frames=5)["cpu_us"] <= 8 * figures("push_pull")["cpu_us"]


def test_await_costs_little_more_than_a_call(figures):
    assert figures("aio_push_pull")["cpu_us"] <= 3.5 * figures("push_pull")["cpu_us"]


def test_requests_in_flight_cost_less_than_round_trips_one_by_one(figures):
    flowing, single = figures("dealer_router"), figures("req_rep", size=64)
    assert flowing["cpu_us"] <= single["cpu_us"] / 3


def test_encryption_costs_a_few_messages(figures):
    assert figures("push_pull", curve=True)["cpu_us"] <= 4 * figures("push_pull")["cpu_us"]


def test_waiting_messages_use_little_more_memory_than_their_bytes(figures):
    found = figures("backlog", size=1024, hwm=0, count=20_000)
    assert found["over_payload"] <= 2.5
