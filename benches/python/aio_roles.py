"""The roles of roles.py in coroutines: the figures of an asyncio program.

They use what the modules' asyncio sockets share, `recv_batch` aside.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Coroutine
from functools import wraps
from importlib import import_module
from itertools import repeat
from typing import Any

from flow_roles import BATCH
from parts import BLOCK_NS, WARM_UP_S, percentiles


def in_a_loop(main: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Turns a coroutine function into a plain function, with the loop named by the case."""

    @wraps(main)
    def run(zmq: Any, socket: Any, case: Any, *arguments: Any) -> Any:
        factory = import_module(case["loop"]).new_event_loop if "loop" in case else None
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(main(zmq, socket, case, *arguments))

    return run


# ---------------------------------------------------------------- throughput


async def spin(
    block_of: Callable[[int], Coroutine[Any, Any, int]], seconds: float
) -> tuple[int, float]:
    """Runs blocks of calls until the time is up; returns the number of messages and the time."""
    messages, block = 0, 1
    start = last = time.perf_counter_ns()
    end = start + int(seconds * 1e9)
    while last < end:
        messages += await block_of(block)
        now = time.perf_counter_ns()
        if now - last < BLOCK_NS:
            block *= 2
        last = now
    return messages, (last - start) / 1e9


async def measure_rate(
    block_of: Callable[[int], Coroutine[Any, Any, int]], seconds: float, cpu: Any
) -> dict[str, float]:
    await spin(block_of, WARM_UP_S)
    cpu_before = cpu.now()
    messages, elapsed = await spin(block_of, seconds)
    return {"rate": messages / elapsed, "cpu_us": (cpu.now() - cpu_before) / 1e3 / messages}


@in_a_loop
async def pull(zmq: Any, socket: Any, case: Any, cpu: Any) -> dict[str, float]:
    recv = socket.recv

    async def block(count: int) -> int:
        for _ in repeat(None, count):
            await recv()
        return count

    return await measure_rate(block, case["seconds"], cpu)


@in_a_loop
async def push(zmq: Any, socket: Any, case: Any) -> None:
    send, payload = socket.send, b"x" * case["size"]
    while True:
        await send(payload)


@in_a_loop
async def pull_batch(zmq: Any, socket: Any, case: Any, cpu: Any) -> dict[str, float]:
    recv, recv_batch = socket.recv, getattr(socket, "recv_batch", None)

    async def block(count: int) -> int:
        messages = 0
        for _ in repeat(None, count):
            if recv_batch is None:  # without batches a loop is what one writes
                await recv()
                messages += 1
            else:
                messages += len(await recv_batch(BATCH))
        return messages

    return await measure_rate(block, case["seconds"], cpu)


@in_a_loop
async def push_batch(zmq: Any, socket: Any, case: Any) -> None:
    payload = b"x" * case["size"]
    if not hasattr(socket, "send_batch"):
        while True:
            await socket.send(payload)
    send_batch, batch = socket.send_batch, [payload] * BATCH
    while True:
        await send_batch(batch)


# ---------------------------------------------------------------- latency


@in_a_loop
async def req(zmq: Any, socket: Any, case: Any, cpu: Any) -> dict[str, float]:
    """One-way times: half of each round trip."""
    send, recv, clock, payload = socket.send, socket.recv, time.perf_counter_ns, b"x" * case["size"]

    async def turns(seconds: float) -> array[int]:
        times = array("q")
        before, end = clock(), clock() + int(seconds * 1e9)
        while before < end:
            await send(payload)
            await recv()
            now = clock()
            times.append(now - before)
            before = now
        return times

    await turns(WARM_UP_S)
    cpu_before = cpu.now()
    times = sorted(await turns(case["seconds"]))
    cpu_us = (cpu.now() - cpu_before) / 1e3 / len(times)
    return percentiles(times, 2e3) | {"cpu_us": cpu_us}


@in_a_loop
async def rep(zmq: Any, socket: Any, case: Any) -> None:
    send, recv = socket.send, socket.recv
    while True:
        await send(await recv())
