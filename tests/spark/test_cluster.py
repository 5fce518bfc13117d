"""Executors in separate processes: they find the package, and tasks run again."""

import json
import shutil
from pathlib import Path

import pyspark
import pytest

SETUP = """
import json, sys, threading, time
import zeroxide as zmq
from pyspark.sql import functions as f
from zeroxide.spark import session

context = zmq.Context()

def bound(kind):
    socket = context.socket(kind)
    return socket, f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}"

feeders = []  # an unreferenced socket is closed, and loses unsent messages

def feeding(bodies):
    push, endpoint = bound(zmq.PUSH)
    push.linger = 0
    feeders.append(push)
    def feed():
        push.send_batch(bodies)
        push.send(b"END")
    threading.Thread(target=feed, daemon=True).start()
    return endpoint

def receiving(enough):
    pull, endpoint = bound(zmq.PULL)
    messages = []
    def receive():
        while not enough(messages):
            if pull.poll(100):
                messages.extend(pull.recv_batch(10_000, multipart=True))
    thread = threading.Thread(target=receive, daemon=True)
    thread.start()
    return endpoint, messages, thread

spark = session("cluster", "local-cluster[2,1,1024]", {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.executor.memory": "1024m",
    "spark.task.maxFailures": "2",
    "spark.sql.shuffle.partitions": "2",
})
spark.sparkContext.setLogLevel("OFF")
result = {}

def read(endpoint):
    return (spark.read.format("zeromq").schema("value binary")
            .options(mode="live", endpoint=endpoint, endOfStream="END", timeoutMs=60_000).load())

def fails_at_first(batches):
    import time
    from pyspark import TaskContext
    for number, batch in enumerate(batches):
        yield batch
        if number == 3 and TaskContext.get().attemptNumber() == 0:
            time.sleep(2)  # for the rows before it to get where they go
            raise RuntimeError("as planned")
"""

SCRIPT = (
    SETUP
    + """
# Both executors read, one endpoint each.
endpoints = [feeding([b"%d" % number for number in range(start, 200_000, 2)]) for start in (0, 1)]
number = f.col("value").cast("string").cast("bigint")
row = read(",".join(endpoints)).agg(f.count("*").alias("n"), f.sum(number).alias("sum")).first()
result["read"] = [row.n, row["sum"]]

# Both executors write.
endpoint, messages, thread = receiving(lambda messages: len(messages) >= 100_000)
rows = spark.range(0, 100_000, 1, 4).select(f.col("id").cast("string").alias("value"))
rows.write.format("zeromq").mode("append").option("endpoint", endpoint).save()
thread.join(60)
result["written"] = sorted(int(message[0]) for message in messages) == list(range(100_000))

# A writing task fails halfway and runs again: everything arrives, some of it twice.
spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
def all_of_the_second_attempt(messages):
    return sum(message[4].split(b",")[3] == b"1" for message in messages) == 10_000
endpoint, messages, thread = receiving(all_of_the_second_attempt)
# Wide rows, because Spark hands them to the writer in blocks of 64 KiB.
wide = f.lpad(f.col("id").cast("string"), 200, "0")
rows = spark.range(0, 10_000, 1, 1).select(wide.alias("value"))
(rows.mapInArrow(fails_at_first, "value string")
 .write.format("zeromq").mode("append").options(endpoint=endpoint, includeHeaders=True).save())
thread.join(60)
attempts = {}
for message in messages:
    query, batch, partition, attempt, row = message[4].decode().split(",")
    attempts.setdefault(int(attempt), []).append(int(message[2]))
    result["numbered"] = result.get("numbered", True) and int(row) == int(message[2])
result["attempts"] = sorted(attempts)
result["last"] = sorted(attempts[max(attempts)]) == list(range(10_000))
result["first"] = 0 < len(attempts[0]) < 10_000

# A reading task fails: its messages are lost, so the query fails, whatever remains.
endpoint = feeding([b"x"] * 100_000)
try:
    read(endpoint).mapInArrow(fails_at_first, "value binary").count()
except Exception as error:
    result["refused"] = "cannot be repeated" in str(error)
spark.stop()
print("RESULT", json.dumps(result))
sys.stdout.flush()
context.destroy(linger=0)
"""
)


@pytest.fixture
def clean_work_folder():
    """Removes the folders that Spark's workers leave in the installed package."""
    work = Path(pyspark.__file__).parent / "work"
    before = set(work.glob("app-*"))
    yield
    for folder in set(work.glob("app-*")) - before:
        shutil.rmtree(folder, ignore_errors=True)
    if work.is_dir() and not any(work.iterdir()):
        work.rmdir()


def test_cluster(run_script, clean_work_folder):
    output = run_script(SCRIPT)
    (line,) = [line for line in output.splitlines() if line.startswith("RESULT ")]
    assert json.loads(line.removeprefix("RESULT ")) == {
        "read": [200_000, sum(range(200_000))],
        "written": True,
        "attempts": [0, 1],
        "first": True,
        "numbered": True,
        "last": True,
        "refused": True,
    }
