"""Latencies of single messages: in turn, and at a given share of the peak rate; and the CPU time of
waiting."""

from __future__ import annotations

import os
import struct
import time
from array import array
from typing import Any

from parts import WARM_UP_S, Cpu, Figures, hear, hear_peer, percentiles, say, tell_peer

PEAK_S = 0.3
STAMP = struct.Struct("<q")
SLEEP_FROM_NS = (
    120_000  # a shorter wait does not sleep, because a sleep takes 50 us longer than requested
)
OVERSLEEP_NS = 60_000


def req(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    """One-way times: half of each round trip."""
    send, recv, clock, payload = socket.send, socket.recv, time.perf_counter_ns, b"x" * case["size"]

    def turns(seconds: float) -> array[int]:
        times = array("q")
        before, end = clock(), clock() + int(seconds * 1e9)
        while before < end:
            send(payload)
            recv()
            now = clock()
            times.append(now - before)
            before = now
        return times

    turns(WARM_UP_S)
    cpu_before = cpu.now()
    times = sorted(turns(case["seconds"]))
    cpu_us = (cpu.now() - cpu_before) / 1e3 / len(times)
    return percentiles(times, 2e3) | {"cpu_us": cpu_us}


def rep(zmq: Any, socket: Any, case: Any) -> None:
    send, recv = socket.send, socket.recv
    while True:
        send(recv())


# ---------------------------------------------------------------- one-way times under load


def pull_paced(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    """Measures the sender's maximum rate with a time stamp in each message, then latencies at shares of that rate,
    which differs per module, at shares of the first rival's maximum, and at fixed rates.

    A sender below its peak rate waits for its next message in a busy loop on a core of its own; a sender at full speed
    leaves that core to others. On few cores, 90 % of the peak may therefore be out of reach, and the times are those of
    full queues. The figures include the share of the rate that was reached.
    """
    stream(socket, 0, WARM_UP_S)
    peak, _ = stream(socket, 0, PEAK_S)
    theirs = case.get("rival_peak", peak)
    loads = {f"{share:.0%}": peak * share for share in case["shares"]}
    loads |= {f"{share:.0%} of rival": theirs * share for share in case["rival_shares"]}
    loads |= {f"{rate}/s": rate for rate in case["rates"]}
    figures = {"peak": peak}
    for name, rate in loads.items():
        reached, times = stream(socket, rate, case["seconds"] / 2)
        figures |= named(name, times) | {f"{name} reached": reached / rate}
    return figures


def stream(socket: Any, rate: float, seconds: float) -> tuple[float, list[int]]:
    """Requests messages from the peer at a rate (0: as fast as possible); returns the rate of
    arrival and the sorted latencies."""
    recv, clock, stamped, times = socket.recv, time.perf_counter_ns, STAMP.unpack_from, array("q")
    tell_peer(f"{rate} {seconds}")
    start = clock()
    while body := recv():
        times.append(clock() - stamped(body)[0])
    elapsed = (clock() - start) / 1e9
    return len(times) / elapsed, sorted(times)


def named(name: str, times: list[int]) -> Figures:
    return {f"{name} {key}": value for key, value in percentiles(times, 1e3).items()}


def push_paced(zmq: Any, socket: Any, case: Any) -> None:
    send, clock, stamp, body = socket.send, time.perf_counter_ns, STAMP.pack, b"x" * case["size"]
    rest = body[STAMP.size :]
    while order := hear():
        rate, seconds = map(float, order.split())
        start, sent = clock(), 0
        end = start + int(seconds * 1e9)
        while (now := clock()) < end:
            due = sent + 64 if rate == 0 else int((now - start) * rate / 1e9) + 1
            while sent < due:
                send(stamp(clock()) + rest)
                sent += 1
            if rate:
                ahead = start + int(sent / rate * 1e9) - clock()
                if ahead > SLEEP_FROM_NS:
                    time.sleep((ahead - OVERSLEEP_NS) / 1e9)
                elif ahead > 0:  # a late sender does not yield
                    os.sched_yield()
        send(b"")


# ---------------------------------------------------------------- nothing to do


def pull_nothing(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    """Measures the CPU of two connected, idle sockets: the program waits for one and leaves the other alone.

    The difference between a long wait and a short one leaves out the fixed cost of a call.
    """

    def used(seconds: float) -> float:
        before = cpu.now()
        socket.poll(int(seconds * 1000))
        return (cpu.now() - before) / 1e3

    socket.recv()
    hear_peer()
    used(0.1)  # one-time work of the connection is done after this
    short, long = used(0.1), used(0.1 + case["seconds"])
    return {"idle_us": max(0.0, long - short) / case["seconds"]}


def push_once(zmq: Any, socket: Any, case: Any) -> None:
    socket.send(b"x")
    say(sent=1)
    hear()
