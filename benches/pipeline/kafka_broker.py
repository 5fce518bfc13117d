"""The comparison: Spark's own Kafka source, with one broker on this machine.

Jars come from the registry by way of the Ivy that pyspark has among its own. The broker is one node in KRaft mode with
the settings of its start script. As by default, it acknowledges rows (acks=all) when they are in the page cache. A collector
syncs the disk first. Two partitions, because Spark reads each with one task. Kafka's
own load generator sends, in batches of 128 KiB where the default is 16.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from java_programs import fetch, free_port, java, serve, started

BROKER_VERSION = "4.1.1"
BROKER = ("kafka-tools", "kafka_2.13")
# The source for this version of Spark, or else the newest one, with dependencies that Spark lacks.
SOURCE = "spark-sql-kafka-0-10_2.13"
SOURCE_VERSIONS = (pyspark.__version__, "latest.release")
NEEDED = {
    ("org.apache.spark", SOURCE): SOURCE_VERSIONS,
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13"): SOURCE_VERSIONS,
    ("org.apache.kafka", "kafka-clients"): ("3.9.2",),
    ("org.apache.commons", "commons-pool2"): ("2.13.1",),
}
JARS = Path("build/kafka")
CLASSES = JARS / "broker" / "*"

TOPIC = "bench"
PARTITIONS = 2
HEAP = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")

SERVER = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{broker}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={logs}
num.partitions={partitions}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


class KafkaLog:
    """A running broker with one topic."""

    format = "kafka"

    def __init__(self, address: str) -> None:
        self.address = address
        self.options = {"kafka.bootstrap.servers": address, "subscribe": TOPIC}

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[KafkaLog]:
        install()
        ports = free_port(), free_port()
        settings = folder / "server.properties"
        text = SERVER.format(
            broker=ports[0], controller=ports[1], logs=folder / "kafka", partitions=PARTITIONS
        )
        settings.write_text(text)
        format_log = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg"]
        subprocess.run(
            java(*format_log, "-c", settings, path=CLASSES), capture_output=True, check=True
        )
        broker = java("kafka.Kafka", settings, path=CLASSES, options=HEAP)
        with started(broker, ports[0], folder / "broker.log"):
            yield cls(f"127.0.0.1:{ports[0]}")

    @staticmethod
    def settings() -> dict[str, str]:
        """The settings that Spark needs for this source."""
        return {"spark.jars": ",".join(str(jar.resolve()) for jar in JARS.glob("source/*.jar"))}

    def fill(self, size: int, rows: int) -> float:
        """Sends rows; returns the seconds from the first call to the last acknowledgement."""
        return self._send(size, rows, -1)

    def pace(self, size: int, rows: int, rate: int) -> None:
        """Sends `rate` rows per second, each with the time of sending."""
        self._send(size, rows, rate)

    def ends(self, offsets: dict[str, Any]) -> dict[int, int]:
        """The offset of each partition in a checkpoint."""
        return {int(number): offset for number, offset in offsets[TOPIC].items()}

    def _send(self, size: int, rows: int, rate: int) -> float:
        program = ["org.apache.kafka.tools.ProducerPerformance", "--topic", TOPIC]
        load = ["--num-records", rows, "--record-size", size, "--throughput", rate]
        properties = [f"bootstrap.servers={self.address}", "acks=all", "batch.size=131072"]
        command = java(*program, *load, "--producer-props", *properties, path=CLASSES)
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        # The generator's own clock, which does not include the start of its JVM.
        found = re.findall(r"([0-9.]+) records/sec", done.stdout)
        assert found, done.stdout + done.stderr
        return rows / float(found[-1])


def install() -> dict[str, str]:
    """Fetches missing jars; returns the versions. Raises `NotInstalled` if the registry
    does not have them."""
    for name in BROKER:
        fetch(JARS / "broker", "org.apache.kafka", name, (BROKER_VERSION,))
    for (organisation, name), versions in NEEDED.items():
        fetch(JARS / "source", organisation, name, versions, "-notransitive")
    (source,) = JARS.glob(f"source/{SOURCE}-*.jar")
    return {"Kafka": BROKER_VERSION, "its source": source.stem.removeprefix(f"{SOURCE}-")}


if __name__ == "__main__":
    serve(KafkaLog.running, BROKER_VERSION)
