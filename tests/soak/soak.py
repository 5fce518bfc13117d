"""Sends messages through producers, a collector and a Spark query, kills all of them during the run, and counts the result.

    python tests/soak/soak.py                                  # a million messages, ten minutes
    python tests/soak/soak.py --messages 60000 --master 'local[2]' --kill first,producer,collector
    python tests/soak/soak.py --starting latest                # rows from before the query are skipped
    python tests/soak/soak.py --master standalone

Two producers, one of them with a spool, send numbers to a collector; a query in `local-cluster`, or on a standalone master
with two workers, copies the rows it reads into files, one folder per batch. Meanwhile, processes are killed with SIGKILL, one
after the other, each when the query has made progress since the last kill, and while producers have more to send; `first` is
the driver in the middle of its first batch. At the end, the files must hold every number of each producer exactly once, the
offsets must have no gap, and each producer's numbers must rise with the offsets. The last line is the verdict.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Set in the environment of every process started here, to find and end them.
MARK = "ZEROXIDE_SOAK"

KILLS = "first,producer,executor,collector,driver,executor,collector,driver,driver"
PRODUCERS = ("spooled", "plain")
# The number of rows before a query that begins at the latest offset.
BEFORE = 0.05
# The maximum time without progress.
PATIENCE_S = 600
TELL_S = 10
TOO_SLOW = "Python worker failed to connect back"
LOOK_S = 0.05
PACE_S = 0.02

# A JVM of this run lives for a minute or two, too short for optimised code to pay off.
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Failed(Exception):
    """The run cannot continue."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, help="messages per second; else it takes 200 s")
    parser.add_argument("--per-trigger", type=int, help="else a fortieth of the messages")
    parser.add_argument("--kill", default=KILLS, help="what is killed, in this order")
    parser.add_argument("--starting", choices=("earliest", "latest"), default="earliest")
    parser.add_argument("--master", default="local-cluster[2,1,1024]", help="or: standalone")
    parser.add_argument("--folder", type=Path, help="kept afterwards; else a temporary one")
    given = parser.parse_args(arguments)
    folder = given.folder or Path(tempfile.mkdtemp(prefix="zeroxide-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    soak = Soak(folder, given)
    # However the run ends, it ends the processes it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    try:
        soak.run()
        problems = soak.problems()
    except Failed as error:
        problems = [str(error)]
    finally:
        soak.end()
    for problem in problems:
        print("WRONG:", problem)
    kills = ", ".join(soak.killed) or "nothing"
    if problems:
        print(f"wrong, after {soak.seconds():.0f} s; killed: {kills}; all of it is in {folder}")
        return 1
    if given.folder is None:
        shutil.rmtree(folder, ignore_errors=True)
    rows = given.messages - soak.began
    print(f"exact: {rows} messages, each once, in {soak.seconds():.0f} s; killed: {kills}")
    return 0


class Soak:
    """One run: the processes, the kills, and the result."""

    def __init__(self, folder: Path, given: argparse.Namespace) -> None:
        self.folder = folder
        self.given = given
        self.mark = uuid.uuid4().hex
        self.endpoint = f"tcp://127.0.0.1:{free_port()}"
        self.master = given.master
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.killed: list[str] = []
        self.started = time.monotonic()
        self.told = 0.0
        self.began = 0  # where the first batch with rows begins
        self.first = 0  # and its number
        self.executors = 0
        self.restarts = 0
        self.left_behind: set[Path] = set()
        self.allow(0.0)
        share = given.messages // len(PRODUCERS)
        self.counts = dict.fromkeys(PRODUCERS, share)
        self.counts[PRODUCERS[0]] += given.messages - share * len(PRODUCERS)

    def run(self) -> None:
        if self.given.master == "standalone":
            self.start_cluster()
        kills = list(filter(None, self.given.kill.split(",")))
        self.start("collector")
        if self.given.starting == "latest":
            self.allow(BEFORE)
            self.start_producers()
            self.wait_until(
                lambda: self.logged() >= self.allowed - len(PRODUCERS), "nothing is in the log"
            )
        self.start("query")
        self.wait_until((self.folder / "checkpoint" / "metadata").exists, "no query has begun")
        if self.given.starting == "latest":
            # It finds no new rows, and makes an empty batch for its checkpoint.
            self.wait_until(self.batches, "the query has not found out where it begins")
            self.began, self.first = self.rows(), 1
        else:
            self.start_producers()
        self.allow(1 / (len(kills) + 1))
        self.wait_until(lambda: self.offsets() > self.first, "no batch has begun")
        for number, what in enumerate(kills, 1):
            self.allow(number / (len(kills) + 1))
            if what != "first":
                self.wait_for_batches(2)
            self.kill(what)
        self.allow(1.0)
        self.wait_until(
            lambda: all(self.processes[f"producer {name}"].poll() == 0 for name in PRODUCERS),
            "the producers have not ended",
        )
        self.wait_until(lambda: self.rows() >= self.given.messages, "rows are missing")
        # No row may come after the last.
        self.wait_until(lambda: self.batches() >= self.offsets(), "the last batch is not done")

    def start_producers(self) -> None:
        for name in PRODUCERS:
            self.start(f"producer {name}")

    def kill(self, what: str) -> None:
        self.remember_folders()
        in_first_batch = what == "first"
        if in_first_batch:
            what = "driver"
        self.killed.append("driver in its first batch" if in_first_batch else what)
        self.say(f"killing the {self.killed[-1]}")
        if what == "executor":
            self.kill_executor()
            return
        name = {"driver": "query", "producer": f"producer {PRODUCERS[0]}"}.get(what, what)
        process = self.processes.pop(name)
        if process.poll() is not None:
            raise Failed(f"the {what} had ended before it was to be killed: see {self.log(name)}")
        victims = [process.pid]
        if what == "driver":
            victims += [pid for pid in self.own() if "SparkSubmit" in command_of(pid)]
        for pid in victims:
            # The JVM may already have ended with its Python process.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        if in_first_batch and self.batches() > self.first:
            raise Failed("the first batch was done before its driver could be killed")
        if what == "driver":
            self.wait_until(lambda: not self.workers(), "Python workers outlived their driver")
        self.start(name)

    def kill_executor(self) -> None:
        """Each time the worker that has not been killed before."""
        number = str(self.executors)
        self.executors += 1

        def alive() -> list[int]:
            return [pid for pid in self.own() if executor_of(command_of(pid)) is not None]

        self.wait_until(alive, "there is no executor")
        found = {executor_of(command_of(pid)): pid for pid in alive()}
        self.remember_folders()
        os.kill(found.get(number) or found[max(found, key=str)], signal.SIGKILL)

    # The running processes

    def start(self, name: str) -> None:
        role, *rest = name.split()
        program = [sys.executable, str(Path(__file__).resolve()), f"--as={role}"]
        told = {
            "endpoint": self.endpoint,
            "folder": str(self.folder),
            "master": self.master,
            "starting": self.given.starting,
            "per_trigger": self.given.per_trigger or max(self.given.messages // 40, 1),
            "rate": (self.given.rate or max(self.given.messages // 200, 1)) / len(PRODUCERS),
        }
        if rest:
            told |= {"name": rest[0], "count": self.counts[rest[0]]}
        self.launch(name, [*program, json.dumps(told)])

    def start_cluster(self) -> None:
        import pyspark

        from zeroxide.spark import ensure_java

        ensure_java()
        home = Path(pyspark.__file__).parent
        ports = free_port(), free_port()
        self.master = f"spark://127.0.0.1:{ports[0]}"
        java_class = [str(home / "bin" / "spark-class")]
        deploy = "org.apache.spark.deploy"
        settings = {"SPARK_HOME": str(home), "SPARK_NO_DAEMONIZE": "1"}
        where = ["--host", "127.0.0.1", "--port", str(ports[0]), "--webui-port", str(ports[1])]
        self.launch("master", [*java_class, f"{deploy}.master.Master", *where], settings)
        for number in range(2):
            room = ["-c", "1", "-m", "1g", "-d", str(self.folder / f"worker{number}")]
            where = ["--host", "127.0.0.1", "--webui-port", str(free_port())]
            worker = [*java_class, f"{deploy}.worker.Worker", *where, *room, self.master]
            self.launch(f"worker{number}", worker, settings)

    def launch(self, name: str, command: list[str], more: dict[str, str] | None = None) -> None:
        own = {MARK: self.mark, "PYSPARK_PYTHON": sys.executable, "JDK_JAVA_OPTIONS": JVM}
        with self.log(name).open("ab") as output:
            self.processes[name] = subprocess.Popen(
                command,
                env=os.environ | own | (more or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def log(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '-')}.log"

    def end(self) -> None:
        """Ends all processes that were started, including those that lost their parent."""
        self.remember_folders()
        while pids := list(self.own()):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for process in self.processes.values():
                process.poll()
            time.sleep(LOOK_S)
        # `local-cluster` leaves the folders of its executors in the installed package.
        for folder in self.left_behind:
            shutil.rmtree(folder, ignore_errors=True)

    def remember_folders(self) -> None:
        for pid in self.own():
            if executor_of(command_of(pid)) is not None:
                with contextlib.suppress(OSError):
                    self.left_behind.add(Path(f"/proc/{pid}/cwd").resolve().parent)

    def own(self) -> Iterator[int]:
        """The processes of this run that are alive."""
        wanted = f"{MARK}={self.mark}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    yield int(folder.name)
            except OSError:
                continue  # it ended, or belongs to another user

    def workers(self) -> list[int]:
        return [pid for pid in self.own() if "pyspark.daemon" in command_of(pid)]

    # Its progress

    def batches(self) -> int:
        return newest(self.folder / "checkpoint" / "commits") + 1

    def offsets(self) -> int:
        return newest(self.folder / "checkpoint" / "offsets") + 1

    def rows(self) -> int:
        """Rows of the completed batches, from the end of the newest one."""
        try:
            return int(self.position(self.batches() - 1)["offset"])
        except OSError:
            return 0

    def position(self, batch: int) -> dict[str, Any]:
        """The end offset of a batch."""
        text = (self.folder / "checkpoint" / "offsets" / str(batch)).read_text()
        (position,) = json.loads(text.splitlines()[-1])["collectors"].values()
        return dict(position)

    def logged(self) -> int:
        """The number of rows that the collector has."""
        from zeroxide.pipeline import Client, CollectorError

        try:
            with Client(self.endpoint, timeout_s=1, retries=0) as client:
                return client.info().latest
        except CollectorError:
            return 0

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def allow(self, share: float) -> None:
        """Lets producers send this share of their rows: some must remain for the following kills."""
        new = self.folder / "allowed.new"
        new.write_text(str(share))
        new.replace(self.folder / "allowed")
        self.allowed = int(share * self.given.messages)

    def wait_for_batches(self, number: int) -> None:
        """Waits until this many more batches are done, or until there are no more rows."""
        wanted = self.batches() + number
        self.wait_until(
            lambda: self.batches() >= wanted or self.rows() >= self.allowed - len(PRODUCERS),
            f"the query has not got on to batch {wanted}",
        )

    def wait_until(self, is_so: Callable[[], object], otherwise: str) -> None:
        stood = None, 0.0
        while not is_so():
            now, state = time.monotonic(), (self.rows(), self.offsets())
            if state != stood[0]:
                stood = state, now
            elif now > stood[1] + PATIENCE_S:
                raise Failed(f"{otherwise}, for {PATIENCE_S} s\n{self.last_words()}")
            for name, process in list(self.processes.items()):
                if process.poll() not in (None, 0):
                    self.failed(name)
            if self.seconds() > self.told + TELL_S:
                self.say(f"{otherwise} yet")
            time.sleep(LOOK_S)

    def failed(self, name: str) -> None:
        """Checks that nothing failed, except for Spark's limit of 10 s for the start of the driver's Python."""
        last = tail(self.log(name))
        if TOO_SLOW not in last:
            raise Failed(f"the {name} has failed\n{last}")
        self.restarts += 1
        self.say(f"Spark did not wait for its Python, starting the {name} again")
        self.log(name).rename(self.log(f"{name} {self.restarts}"))
        self.start(name)

    def last_words(self) -> str:
        return "\n".join(f"--- {name}\n{tail(self.log(name))}" for name in self.processes)

    def say(self, what: str) -> None:
        self.told = self.seconds()
        where = f"{self.told:5.0f} s, {self.rows():>9} rows, {self.batches():>3} batches"
        print(f"{where}: {what}", flush=True)

    # The result

    def problems(self) -> list[str]:
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        table = ds.dataset(self.folder / "out", format="parquet").to_table().sort_by("offset")
        found = []
        if table.num_rows != self.given.messages - self.began:
            rows = f"{table.num_rows} rows for {self.given.messages} messages"
            found.append(f"{rows}, the first {self.began} of them left out")
        if table["offset"].to_pylist() != list(range(self.began, self.given.messages)):
            found.append("the offsets are not dense, or some came twice")
        for name, count in self.counts.items():
            own = table.filter(pc.equal(table["producer"], name))
            for column in ("seq", "number"):
                numbers = own[column].to_pylist()
                first = count - own.num_rows
                if numbers != list(range(first, count)) or (first and not self.began):
                    found.append(
                        f"producer {name}: {column} is not {first} to {count} in the order of"
                        f" offsets ({own.num_rows} rows, {len(set(numbers))} of them distinct)"
                    )
        return found


# The parts, each a process


def as_collector(told: dict[str, str]) -> None:
    from zeroxide.pipeline import Collector

    with Collector(f"{told['folder']}/log", told["endpoint"]):
        signal.pause()


def as_producer(told: dict[str, str]) -> None:
    from zeroxide import Producer

    name, count, rate = told["name"], int(told["count"]), float(told["rate"])
    spool = f"{told['folder']}/spool" if name == PRODUCERS[0] else None
    with Producer(told["endpoint"], name=name, spool=spool, timeout_s=None) as producer:
        number = first = next_number(producer, spool is not None)
        print(f"{name} begins at {first}", flush=True)
        started = time.monotonic()
        while number < count:
            due = first + int((time.monotonic() - started) * rate)
            allowed = int(float((Path(told["folder"]) / "allowed").read_text()) * count)
            until = min(due, allowed, number + 10_000)
            if until > number:
                producer.send_batch([b"%d" % n for n in range(number, until)])
                number = until
            else:
                time.sleep(PACE_S)
        producer.flush()
        print(f"{name} is done: {producer.stats()}", flush=True)


def next_number(producer: object, spooled: bool) -> int:
    """The number of rows of this name in the spool and the collector together."""
    while spooled:
        (collector,) = producer.stats()["collectors"].values()  # type: ignore[attr-defined]
        if collector["next_seq"] is not None:
            return collector["next_seq"]
        time.sleep(LOOK_S)
    return 0


def as_query(told: dict[str, str]) -> None:
    from pyspark.sql import functions as f

    from zeroxide.spark import session

    folder = told["folder"]
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.memory": "1024m",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    spark = session("soak", told["master"], settings)
    spark.sparkContext.setLogLevel("WARN")
    rows = (
        spark.readStream.format("zeromq")
        .option("endpoint", told["endpoint"])
        .option("startingOffsets", told["starting"])
        .option("maxOffsetsPerTrigger", told["per_trigger"])
        .option("minPartitions", 2)
        .load()
    )
    number = f.col("value").cast("string").cast("bigint").alias("number")

    def write(frame: object, batch: int) -> None:
        # The whole folder is written again: a repeated batch replaces its earlier files.
        chosen = frame.select("producer", "seq", "offset", number)  # type: ignore[attr-defined]
        chosen.write.mode("overwrite").parquet(f"{folder}/out/batch-{batch}")

    query = (
        rows.writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(processingTime="0 seconds")
        .start()
    )
    query.awaitTermination()


# Small things


def executor_of(command: str) -> str | None:
    """The number of the executor with this command line, if it is an executor."""
    words = command.split("\0")
    if not any(word.endswith("CoarseGrainedExecutorBackend") for word in words):
        return None
    return words[words.index("--executor-id") + 1] if "--executor-id" in words else None


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def newest(folder: Path) -> int:
    return max((int(file.name) for file in folder.glob("[0-9]*")), default=-1)


def tail(file: Path, size: int = 3000) -> str:
    return file.read_text(errors="replace")[-size:] if file.exists() else ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


ROLES = {"collector": as_collector, "producer": as_producer, "query": as_query}

if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("--as="):
        ROLES[sys.argv[1].removeprefix("--as=")](json.loads(sys.argv[2]))
    else:
        sys.exit(main())
