"""Messaging systems side by side, in numbers and pictures: `python benches/python/dissect.py [--quick] [--only zeroxide]`.

One publisher and one subscriber on one machine, over tcp: the rate at each side, the latency of
messages as more of them are sent at once, rates by size, and the distribution of latency at a low
rate. Libraries and servers that are not installed are left out, with the name of the missing part.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import statistics
import subprocess
import sys
import threading
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import charts
import report
from cases import SIZES
from parts import Cpu
from progress import Progress
from servers import Failed, Server, free_port, missing, served
from systems import SYSTEMS, System

PROGRAM = Path(__file__).with_name("systems.py")
LIMIT_S = 180
SLOW = 120.0  # a count that is expected to take more seconds than this is left out

ABSENT = {
    "nanomsg": "its successor NNG (pynng) is in the table",
    "Kestrel": "its authors gave it up in 2015, and no registry has it",
    "ruby-nats": "it is a former NATS server in Ruby; nats-server replaced it",
}

Results = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    repetitions: int
    counts: tuple[int, ...]
    sizes: dict[int, int]  # and how many messages of each
    sparse: int  # messages of the latency distribution


FULL = Settings(
    3,
    (1_000, 5_000, 50_000, 500_000, 1_000_000),
    {8: 300_000, 64: 300_000, 1024: 200_000, 16384: 20_000, 262144: 2_000},
    2_000,
)
QUICK = Settings(
    1, (1_000, 5_000, 50_000), {64: 50_000, 1024: 50_000, 16384: 5_000, 262144: 500}, 500
)


def main() -> int:
    arguments = parse()
    settings = QUICK if arguments.quick else FULL
    results: dict[str, Results] = {}
    versions: dict[str, str] = {}
    absent = dict(ABSENT)
    chosen = {n: system for n, system in SYSTEMS.items() if arguments.only.lower() in n.lower()}
    progress = Progress(len(chosen))
    for name, system in chosen.items():
        progress.show(name)
        if reason := missing(system):
            absent[name] = reason
        else:
            try:
                with served(name, system) as server:
                    results[name] = measure(name, system, server, settings, progress)
                    versions |= versions_of(name, system, server)
            except Failed as why:
                absent[name] = f"did not start: {why}"
        progress.step()
    for name, reason in absent.items():
        print(f"left out: {name}: {reason}")
    if not results:
        return 0
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    machine = report.machine([], versions)
    (out / "systems.json").write_text(
        json.dumps({"machine": machine, "absent": absent, "systems": results}, indent=1) + "\n"
    )
    (out / "systems.md").write_text(markdown(machine, results, absent, settings))
    names = draw(results, out)
    print(f"written: {out}/systems.json, systems.md, {', '.join(names)}")
    return 0


# ---------------------------------------------------------------- measuring


def versions_of(name: str, system: System, server: Server | None) -> dict[str, str]:
    client = importlib.metadata.version(system.package)
    if server is not None:
        return {name: server.version, system.package: client}
    libzmq = {"libzmq": import_module("zmq").zmq_version()} if name == "pyzmq" else {}
    return {system.package: client} | libzmq


def measure(
    name: str, system: System, server: Server | None, settings: Settings, progress: Progress
) -> Results:
    progress.say(f"\n{name}")
    repetitions = 1 if system.server else settings.repetitions
    results: Results = {"floods": {}, "sizes": {}}
    per_message = 0.0
    for count in settings.counts:
        if count * per_message > SLOW:
            progress.say(f"  {count:>9,} x 1 KiB would take over {SLOW:.0f} s")
            continue
        progress.show(f"{name}: {count:,} x 1 KiB")
        flood = median_of(name, server, {"size": 1024, "count": count}, repetitions)
        if flood is None:
            continue
        results["floods"][count] = flood
        per_message = 1 / min(flood["rate"], flood["sender_rate"])
        progress.say(
            f"  {count:>9,} x 1 KiB: sent {report.short(flood['sender_rate'], 'msgs/s')}/s, received "
            f"{report.short(flood['rate'], 'msgs/s')}/s, mean {flood['mean_us']:.0f} us, "
            f"lost {count - flood['arrived']:,}, CPU {flood['cpu_us']:.3g} us",
        )
    for size, count in settings.sizes.items():
        fewer = count // 10 if system.server else count
        progress.show(f"{name}: {fewer:,} x {SIZES[size]}")
        flood = median_of(name, server, {"size": size, "count": fewer}, repetitions)
        if flood is not None:
            results["sizes"][size] = flood
            rate = report.short(flood["rate"], "msgs/s")
            progress.say(f"  {SIZES[size]:>9}: received {rate}/s")
    task = {"size": 1024, "count": settings.sparse, "rate": 1000}
    progress.show(f"{name}: 1000 per second")
    if (sparse := median_of(name, server, task, 1)) is not None:
        results["sparse"] = sparse
        at = sparse["percentiles_us"]
        progress.say(
            f"  1000/s: p50 {at['0.5']:.0f} us, p99 {at['0.99']:.0f} us, p99.9 {at['0.999']:.0f} us"
        )
    return results


def median_of(name: str, server: Server | None, task: Results, repetitions: int) -> Results | None:
    """The run with the median received rate."""
    runs = []
    for _ in range(repetitions):
        try:
            runs.append(run(name, server, task))
        except (Failed, OSError) as why:
            print(f"  {task}: {why}", file=sys.stderr)
    arrived = [one for one in runs if one.get("rate")]
    if not arrived:
        return None
    middle = statistics.median_low(one["rate"] for one in arrived)
    return next(one for one in arrived if one["rate"] == middle)


def run(name: str, server: Server | None, task: Results) -> Results:
    address = server.address if server else f"127.0.0.1:{free_port()}"
    publisher = start(name, "pub", address, task)
    subscriber = start(name, "sub", address, task)
    sending = Cpu(publisher.pid)

    def cpu_ns() -> int:
        return sending.of_peer() + (server.cpu_ns() if server else 0)

    def give_up() -> None:
        publisher.kill()
        subscriber.kill()

    watchdog = threading.Timer(LIMIT_S, give_up)
    watchdog.daemon = True
    watchdog.start()
    try:
        hear(subscriber)
        before = cpu_ns()
        tell(publisher)
        sent = hear(publisher)
        result: Results = hear(subscriber)["result"]
        used = cpu_ns() - before
        tell(publisher)
        if result["arrived"]:
            # The receiver measures its own CPU time, because it then sorts its measurements.
            result["cpu_us"] = result.pop("receiver_cpu_us") + used / 1e3 / result["arrived"]
        return result | sent
    finally:
        watchdog.cancel()
        for process in (publisher, subscriber):
            process.kill()
            process.communicate()


def start(name: str, side: str, address: str, task: Results) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), name, side, address, json.dumps(task)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )


def hear(process: subprocess.Popen[str]) -> Results:
    assert process.stdout is not None
    if not (line := process.stdout.readline()):
        raise Failed(f"a process ended with {process.wait()}")
    said: Results = json.loads(line)
    return said


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write("\n")


# ---------------------------------------------------------------- showing


def draw(results: dict[str, Results], out: Path) -> list[str]:
    colours = charts.colours_of(SYSTEMS)
    counts = sorted({count for result in results.values() for count in result["floods"]})
    sizes = sorted({size for result in results.values() for size in result["sizes"]})
    most = counts[-1]
    floods = {name: result["floods"] for name, result in results.items() if result["floods"]}
    last = {name: max(result) for name, result in floods.items()}
    by_rate = sorted(floods, key=lambda name: -floods[name][last[name]]["rate"])

    def label(name: str) -> str:
        return name if last[name] == most else f"{name} ({charts.number(last[name])})"

    names = {label(name): colours[name] for name in floods}
    pictures = {
        "rates.svg": charts.bar_chart(
            f"{most:,} messages of 1 KiB: rate at each side",
            "messages per second; a number after a name: with fewer messages",
            {
                label(name): {
                    "received": floods[name][last[name]]["rate"],
                    "sent": floods[name][last[name]]["sender_rate"],
                }
                for name in by_rate
            },
            names,
        ),
        "received.svg": charts.bar_chart(
            f"{most:,} messages of 1 KiB: received per second",
            "messages per second; a number after a name: with fewer messages",
            {label(name): {"": floods[name][last[name]]["rate"]} for name in by_rate},
            names,
        ),
        "mean-latency.svg": charts.line_chart(
            "Mean latency against the number of messages sent at once",
            "messages of 1 KiB",
            "mean time from send to receive, us",
            {
                name: [(count, flood["mean_us"]) for count, flood in result.items()]
                for name, result in floods.items()
            },
            colours,
            {count: charts.number(count) for count in counts},
        ),
        "latency.svg": charts.line_chart(
            "How long messages take at 1000 per second",
            "share of the messages that took no longer",
            "time from send to receive, us",
            {
                name: [
                    (1 / (1 - float(share)), us)
                    for share, us in result["sparse"]["percentiles_us"].items()
                    if share in ("0.5", "0.9", "0.99", "0.999")
                ]
                for name, result in results.items()
                if "sparse" in result
            },
            colours,
            {2: "50 %", 10: "90 %", 100: "99 %", 1000: "99.9 %"},
        ),
    }
    for file, y_label, factor in (
        ("messages-by-size.svg", "messages received per second", lambda _: 1.0),
        ("megabytes-by-size.svg", "MB received per second", lambda size: size / 1e6),
    ):
        pictures[file] = charts.line_chart(
            f"{y_label[0].upper()}{y_label[1:]}, by size",
            "size of a message",
            y_label,
            {
                name: [
                    (size, flood["rate"] * factor(size)) for size, flood in result["sizes"].items()
                ]
                for name, result in results.items()
            },
            colours,
            {size: SIZES[size] for size in sizes},
        )
    for file, picture in pictures.items():
        (out / file).write_text(picture)
    return list(pictures)


def markdown(
    machine: dict[str, str], results: dict[str, Results], absent: dict[str, str], settings: Settings
) -> str:
    what = ", ".join(f"{name} {version}" for name, version in machine.items() if name != "date")
    lines = [
        f"{machine['date']}: {what}. One publisher and one subscriber over tcp send and receive 1 KiB messages at full speed. "
        f"Libraries: the median of {settings.repetitions} runs; servers: one run. CPU is user and system time of both sides, "
        "and of the server, per message that arrived.",
        "",
        "| system | messages | sent/s | received/s | lost | mean us | CPU us | p50 us at 1000/s | p99 us at 1000/s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, result in results.items():
        at = result.get("sparse", {}).get("percentiles_us", {})
        for count, flood in result["floods"].items():
            cells = [
                name,
                f"{count:,}",
                report.short(flood["sender_rate"], "msgs/s"),
                report.short(flood["rate"], "msgs/s"),
                f"{count - flood['arrived']:,}",
                f"{flood['mean_us']:.0f}",
                report.short(flood["cpu_us"], "us"),
                report.short(at.get("0.5"), "us"),
                report.short(at.get("0.99"), "us"),
            ]
            lines.append(report.table_line(cells))
    lines += ["", *multiples(results)]
    lines += ["", *(f"* {name} is left out: {reason}." for name, reason in absent.items()), ""]
    return "\n".join(lines)


def multiples(results: dict[str, Results]) -> list[str]:
    """The ratio of zeroxide's rate at the receiver to that of each other system, for the largest
    number of messages that both were sent."""
    ours = results.get("zeroxide", {}).get("floods", {})
    lines = []
    for name, result in results.items():
        if name != "zeroxide" and (both := ours.keys() & result["floods"].keys()):
            times = ours[max(both)]["rate"] / result["floods"][max(both)]["rate"]
            lines.append(
                f"* zeroxide receives {times:.1f} times what {name} does ({max(both):,} messages)."
            )
    return lines


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a short look")
    parser.add_argument("--only", default="", help="just the systems whose name holds this text")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
