"""Log collection: an agent ships the lines appended to files, and a job reads them occasionally.

The job is a stream that ends when it has read all rows (``availableNow``). Started by a
timer, it costs nothing in between, and its checkpoint makes each run begin where the last one
ended. The consumer group lets the collector delete rows that the job has read.
"""

import socket
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import zeroxide as zmq
from zeroxide.pipeline import Collector
from zeroxide.spark import session

LINE = r"^(\S+) (DEBUG|INFO|WARNING|ERROR) (.*)$"


class Agent:
    """Ships the lines of files, each line once while the agent runs.

    The agent keeps its positions in the files only in memory: a new agent begins with the first
    line again, and sends lines that an earlier agent has sent. To continue after a restart, an
    agent must also keep its positions on disk.
    """

    def __init__(self, endpoint: str, state: Path) -> None:
        # Rows are on disk until they are acknowledged; the positions in the files are not.
        self.producer = zmq.Producer(endpoint, name=socket.gethostname(), spool=state)
        self.read: dict[Path, int] = {}

    def ship(self, *files: Path) -> None:
        """Sends new, complete lines."""
        for file in files:
            with open(file, "rb") as lines:
                lines.seek(self.read.get(file, 0))
                for line in lines:
                    if not line.endswith(b"\n"):
                        break  # the line is still being written
                    self.producer.send(line.rstrip(b"\n"), topic=file.name)
                    self.read[file] = self.read.get(file, 0) + len(line)
        self.producer.flush(60)

    def close(self) -> None:
        """Ends the agent."""
        self.producer.close()


def collect(spark: SparkSession, endpoint: str, folder: Path) -> int:
    """The job: new lines to Parquet, by level. Returns their number."""
    lines = (
        spark.readStream.format("zeromq")
        .option("endpoint", endpoint)
        .option("startingOffsets", "earliest")
        .option("consumerGroup", "archive")
        .load()
    )
    text = f.col("value").cast("string")
    query = (
        lines.select(
            f.col("producer").alias("host"),
            f.col("topic").alias("file"),
            f.regexp_extract(text, LINE, 1).alias("at"),
            f.regexp_extract(text, LINE, 2).alias("level"),
            f.regexp_extract(text, LINE, 3).alias("message"),
        )
        .writeStream.format("parquet")
        .partitionBy("level")
        .option("path", str(folder / "archive"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sum(progress.numInputRows for progress in query.recentProgress)


def run(spark: SparkSession, folder: Path, lines: int) -> tuple[list[int], DataFrame]:
    """Runs two rounds; returns what each round found, and the final table."""
    file = folder / "shop.log"
    found = []
    with Collector(folder / "log") as collector:
        agent = Agent(collector.endpoint, folder / "agent")
        for day in (20, 21):
            with open(file, "a") as log:
                for number in range(lines):
                    level = "ERROR" if number % 50 == 0 else "INFO"
                    log.write(f"2026-11-{day}T{number % 24:02}:00:00Z {level} order {number}\n")
            agent.ship(file)
            found.append(collect(spark, collector.endpoint, folder))
        agent.close()
    return found, spark.read.parquet(str(folder / "archive"))


def main() -> None:
    """Runs the example and prints what was collected."""
    spark = session("logs", "local[2]")
    with tempfile.TemporaryDirectory() as folder:
        found, archive = run(spark, Path(folder), lines=50_000)
        print("new lines, run by run:", found)
        archive.groupBy("file", "level").count().show()
        archive.where("level = 'ERROR'").show(5, truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
