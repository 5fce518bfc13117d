"""Publishes and receives messages by each messaging system: `python systems.py NAME pub|sub ADDRESS TASK`.

Brokerless systems bind the publisher; for the others a server runs at the address. Each is used as
its own documentation recommends for speed, as long as every message arrives, if the system can
guarantee that.
"""

from __future__ import annotations

import asyncio
import json
import math
import select
import struct
import sys
import threading
import time
import uuid
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from socket import IPPROTO_TCP, TCP_NODELAY
from typing import Any

from parts import say

PROBE = b"probe"
TOPIC = "bench"
NSQ_TOPIC = f"{TOPIC}#ephemeral"
STAMP = struct.Struct("<q")
SILENCE_S = 1.5  # after this silence, the remaining messages are lost

# Messages to send; None means that there are none for the moment, so a buffer must be flushed.
Messages = Iterator[bytes | None]
OnMessage = Callable[[bytes], bool]  # whether that was the last


@dataclass(frozen=True)
class System:
    publish: Callable[[str, Messages], None]
    receive: Callable[[str, OnMessage], None]
    module: str  # that Python needs
    package: str  # the package on the Python package index that has the module
    server: str = ""  # a program that must be running; X.py starts a broker of benches/pipeline
    origin: str = ""  # where to get the server


# ---------------------------------------------------------------- brokerless


def zmq_publish(module: str, address: str, messages: Messages) -> None:
    zmq: Any = import_module(module)
    socket = zmq.Context().socket(zmq.PUB)
    socket.setsockopt(zmq.SNDHWM, 0)
    socket.bind(f"tcp://{address}")
    for message in messages:
        if message is not None:
            socket.send(message)


def zmq_receive(module: str, address: str, on_message: OnMessage) -> None:
    zmq: Any = import_module(module)
    socket = zmq.Context().socket(zmq.SUB)
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.setsockopt(zmq.RCVTIMEO, int(SILENCE_S * 1000))
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.connect(f"tcp://{address}")
    try:
        while not on_message(socket.recv()):
            pass
    except zmq.Again:
        pass


def nng_publish(address: str, messages: Messages) -> None:
    pynng: Any = import_module("pynng")
    with pynng.Pub0(listen=f"tcp://{address}", send_buffer_size=8000) as socket:
        for message in messages:
            if message is not None:
                socket.send(message)


def nng_receive(address: str, on_message: OnMessage) -> None:
    pynng: Any = import_module("pynng")
    with pynng.Sub0(recv_buffer_size=8000, recv_timeout=int(SILENCE_S * 1000), topics="") as socket:
        socket.dial(f"tcp://{address}", block=False)
        try:
            while not on_message(socket.recv()):
                pass
        except pynng.Timeout:
            pass


def zenoh_session(place: str, address: str) -> Any:
    zenoh: Any = import_module("zenoh")
    config = zenoh.Config()
    config.insert_json5(f"{place}/endpoints", json.dumps([f"tcp/{address}"]))
    config.insert_json5("scouting/multicast/enabled", "false")
    return zenoh.open(config)


def zenoh_publish(address: str, messages: Messages) -> None:
    zenoh: Any = import_module("zenoh")
    with zenoh_session("listen", address) as session:
        block = zenoh.CongestionControl.BLOCK
        publisher = session.declare_publisher("bench", congestion_control=block)
        for message in messages:
            if message is not None:
                publisher.put(message)


def zenoh_receive(address: str, on_message: OnMessage) -> None:
    zenoh: Any = import_module("zenoh")
    with zenoh_session("connect", address) as session:
        subscriber = session.declare_subscriber("bench", zenoh.handlers.FifoChannel(1000))
        while not on_message(subscriber.recv().payload.to_bytes()):
            pass


# ---------------------------------------------------------------- with a server


def nats_publish(address: str, messages: Messages) -> None:
    nats: Any = import_module("nats")

    async def main() -> None:
        connection = await nats.connect(f"nats://{address}")
        for message in messages:
            if message is None:
                await asyncio.sleep(0.0005)
            else:
                await connection.publish("bench", message)
        await connection.flush()

    asyncio.run(main())


def nats_receive(address: str, on_message: OnMessage) -> None:
    nats: Any = import_module("nats")

    async def main() -> None:
        over, last = asyncio.Event(), time.monotonic()

        async def take(message: Any) -> None:
            nonlocal last
            last = time.monotonic()
            if on_message(message.data):
                over.set()

        connection = await nats.connect(f"nats://{address}")
        unlimited = {"pending_msgs_limit": 1 << 30, "pending_bytes_limit": 1 << 40}
        await connection.subscribe("bench", cb=take, **unlimited)
        while not over.is_set() and time.monotonic() - last < SILENCE_S:
            await asyncio.sleep(0.01)

    asyncio.run(main())


def redis_publish(address: str, messages: Messages) -> None:
    redis: Any = import_module("redis")
    host, _, port = address.partition(":")
    pipe, held = redis.Redis(host=host, port=int(port)).pipeline(transaction=False), 0
    for message in messages:
        if message is not None:
            pipe.publish("bench", message)
            held += 1
        if held and (message is None or held == 100):
            pipe.execute()
            held = 0
    pipe.execute()


def redis_receive(address: str, on_message: OnMessage) -> None:
    redis: Any = import_module("redis")
    host, _, port = address.partition(":")
    channel = redis.Redis(host=host, port=int(port)).pubsub(ignore_subscribe_messages=True)
    channel.subscribe("bench")
    last = time.monotonic()
    while time.monotonic() - last < SILENCE_S:
        message = channel.get_message(timeout=0.2)
        if message is not None:
            last = time.monotonic()
            if on_message(message["data"]):
                return


def rabbit_channel(address: str) -> tuple[Any, Any]:
    pika: Any = import_module("pika")
    host, _, port = address.partition(":")
    connection = pika.BlockingConnection(pika.ConnectionParameters(host=host, port=int(port)))
    channel = connection.channel()
    channel.queue_declare("bench")
    return connection, channel


def rabbit_publish(address: str, messages: Messages) -> None:
    connection, channel = rabbit_channel(address)
    for message in messages:
        if message is None:
            connection.process_data_events(0)
        else:
            channel.basic_publish("", "bench", message)
    connection.close()


def rabbit_receive(address: str, on_message: OnMessage) -> None:
    _, channel = rabbit_channel(address)
    channel.basic_qos(prefetch_count=0)
    for _, _, body in channel.consume("bench", auto_ack=True, inactivity_timeout=SILENCE_S):
        if body is None or on_message(body):
            return


def nsq_publish(address: str, messages: Messages) -> None:
    nsq: Any = import_module("nsq")

    async def main() -> None:
        writer = nsq.Writer([address])
        held: list[bytes] = []
        while not writer.conns:
            await asyncio.sleep(0.01)

        async def let_go() -> None:
            done = asyncio.get_running_loop().create_future()
            writer.mpub(NSQ_TOPIC, held, lambda _, answer: done.set_result(answer))
            await done
            held.clear()

        for message in messages:
            if message is not None:
                held.append(message)
            if held and (message is None or len(held) == 100):
                await let_go()

    asyncio.run(main())


def nsq_receive(address: str, on_message: OnMessage) -> None:
    nsq: Any = import_module("nsq")

    async def main() -> None:
        over, last = asyncio.Event(), math.inf

        def take(message: Any) -> bool:
            nonlocal last
            last = time.monotonic()
            if on_message(message.body):
                over.set()
            return True

        nsq.Reader(
            NSQ_TOPIC,
            "bench#ephemeral",
            message_handler=take,
            nsqd_tcp_addresses=[address],
            max_in_flight=2500,
            output_buffer_timeout=1,
        )
        while not over.is_set() and time.monotonic() - last < SILENCE_S:
            await asyncio.sleep(0.01)

    asyncio.run(main())


def kafka_publish(address: str, messages: Messages) -> None:
    kafka: Any = import_module("confluent_kafka")
    # Batches are as large as in benches/pipeline. None waits longer than the time between two messages at 1000/s.
    options = {"batch.size": 131072, "linger.ms": 1, "queue.buffering.max.kbytes": 2_000_000}
    options |= {"queue.buffering.max.messages": 2_000_000}
    producer = kafka.Producer({"bootstrap.servers": address, **options})
    for message in messages:
        if message is None:
            producer.poll(0)
        else:
            producer.produce(TOPIC, message)
    producer.flush()


def kafka_receive(address: str, on_message: OnMessage) -> None:
    kafka: Any = import_module("confluent_kafka")
    # A new group receives only messages that are published from now on.
    options = {"group.id": str(uuid.uuid4()), "auto.offset.reset": "latest"}
    consumer = kafka.Consumer({"bootstrap.servers": address, **options})
    consumer.subscribe([TOPIC])
    last = math.inf
    while time.monotonic() - last < SILENCE_S:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            last = time.monotonic()
            if on_message(message.value()):
                return


def stomp_connection(address: str, listener: Any = None) -> Any:
    stomp: Any = import_module("stomp")
    host, _, port = address.partition(":")
    connection = stomp.Connection([(host, int(port))], auto_decode=False)
    if listener is not None:
        connection.set_listener("", listener)
    connection.connect(wait=True)
    # Without this, a message waits 40 ms for the acknowledgement of the one before.
    connection.transport.socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
    return connection


def stomp_publish(address: str, messages: Messages) -> None:
    connection = stomp_connection(address)
    for message in messages:
        if message is not None:
            connection.send("/topic/bench", message)


def stomp_receive(address: str, on_message: OnMessage) -> None:
    stomp: Any = import_module("stomp")
    over, last = threading.Event(), math.inf

    class Listener(stomp.ConnectionListener):  # type: ignore[misc]
        def on_message(self, frame: Any) -> None:
            nonlocal last
            last = time.monotonic()
            if on_message(frame.body):
                over.set()

    connection = stomp_connection(address, Listener())
    connection.subscribe("/topic/bench", id=1)
    while not over.wait(0.1) and time.monotonic() - last < SILENCE_S:
        pass


SYSTEMS = {
    "zeroxide": System(
        partial(zmq_publish, "zeroxide"), partial(zmq_receive, "zeroxide"), "zeroxide", "zeroxide"
    ),
    "pyzmq": System(partial(zmq_publish, "zmq"), partial(zmq_receive, "zmq"), "zmq", "pyzmq"),
    "pyomq": System(partial(zmq_publish, "pyomq"), partial(zmq_receive, "pyomq"), "pyomq", "pyomq"),
    "pynng": System(nng_publish, nng_receive, "pynng", "pynng"),
    "zenoh": System(zenoh_publish, zenoh_receive, "zenoh", "eclipse-zenoh"),
    "NATS": System(
        nats_publish, nats_receive, "nats", "nats-py", "nats-server", "Debian: nats-server"
    ),
    "Redis": System(
        redis_publish, redis_receive, "redis", "redis", "redis-server", "Debian: redis-server"
    ),
    "RabbitMQ": System(
        rabbit_publish, rabbit_receive, "pika", "pika", "rabbitmq-server", "Debian: rabbitmq-server"
    ),
    "NSQ": System(
        nsq_publish,
        nsq_receive,
        "nsq",
        "pynsq",
        "nsqd",
        "built from its Go module: see benches/nsq",
    ),
    "Kafka": System(
        kafka_publish, kafka_receive, "confluent_kafka", "confluent-kafka", "kafka_broker.py"
    ),
    "ActiveMQ": System(stomp_publish, stomp_receive, "stomp", "stomp.py", "activemq_broker.py"),
}


# ---------------------------------------------------------------- what both sides do


def outgoing(task: dict[str, Any]) -> Messages:
    """Sends probes until the runner reports that one has arrived, then the messages, each with its
    time of sending."""
    while not select.select([sys.stdin], [], [], 0.005)[0]:
        yield PROBE
        yield None
    sys.stdin.readline()
    count, rate, stamp, clock = task["count"], task.get("rate"), STAMP.pack, time.perf_counter_ns
    rest = b"x" * (task["size"] - STAMP.size)
    start = clock()
    for number in range(count):
        if rate:
            due = start + number * 1_000_000_000 // rate
            time.sleep(max(0, due - clock()) / 1e9)
        yield stamp(clock()) + rest
        if rate:
            yield None
    yield None
    say(sender_rate=count / (clock() - start) * 1e9)
    sys.stdin.readline()  # until the receiver has received everything


def incoming(task: dict[str, Any]) -> tuple[OnMessage, Callable[[], dict[str, Any]]]:
    """The function to call with each message, and the one that returns the figures at the end."""
    count, size = int(task["count"]), int(task["size"])
    clock, stamped = time.perf_counter_ns, STAMP.unpack_from
    times, first, last, ready, cpu = array("q"), 0, 0, False, 0
    add = times.append

    def on_message(body: bytes) -> bool:
        nonlocal first, last, ready, cpu
        if len(body) != size:
            if not ready:
                ready = True
                cpu = time.process_time_ns()
                say(ready=True)
            return False
        last = clock()
        add(last - stamped(body)[0])
        first = first or last
        return len(times) == count

    def result() -> dict[str, Any]:
        used = time.process_time_ns() - cpu
        if not times:
            return {"arrived": 0}
        ordered = sorted(times)
        shares = (0, 0.5, 0.9, 0.99, 0.999, 1)
        at = {
            str(share): ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1e3
            for share in shares
        }
        return {
            "arrived": len(times),
            "rate": (len(times) - 1) / max(1, last - first) * 1e9,
            "mean_us": sum(ordered) / len(ordered) / 1e3,
            "percentiles_us": at,
            "receiver_cpu_us": used / len(times) / 1e3,
        }

    return on_message, result


def main() -> None:
    name, side, address, task = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
    if side == "pub":
        SYSTEMS[name].publish(address, outgoing(task))
        return
    on_message, result = incoming(task)
    SYSTEMS[name].receive(address, on_message)
    say(result=result())


if __name__ == "__main__":
    main()
