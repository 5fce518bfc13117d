"""Executors in processes of their own: the package is found there, and tasks run again."""

import shutil
from pathlib import Path

import pyspark
import pytest

SETUP = """
import json, sys, threading
import zeroxide as zmq
from pyspark.sql import functions as f
from zeroxide.spark import session

context = zmq.Context()

def bound(kind):
    socket = context.socket(kind)
    return socket, f"tcp://127.0.0.1:{socket.bind_to_random_port('tcp://127.0.0.1')}"

def feeding(bodies):
    push, endpoint = bound(zmq.PUSH)
    push.linger = 0
    def feed():
        push.send_batch(bodies)
        push.send(b"END")
    threading.Thread(target=feed, daemon=True).start()
    return endpoint

def receiving(count):
    pull, endpoint = bound(zmq.PULL)
    messages = []
    def receive():
        while len(messages) < count():
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
            .options(endpoint=endpoint, endOfStream="END", timeoutMs=60_000).load())

def fails_at_first(batches):
    from pyspark import TaskContext
    for number, batch in enumerate(batches):
        yield batch
        if number == 1 and TaskContext.get().attemptNumber() == 0:
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
total = [100_000]
endpoint, messages, thread = receiving(lambda: total[0])
rows = spark.range(0, 100_000, 1, 4).select(f.col("id").cast("string").alias("value"))
rows.write.format("zeromq").mode("append").option("endpoint", endpoint).save()
thread.join(60)
result["written"] = sorted(int(message[0]) for message in messages) == list(range(100_000))

# A writing task fails halfway and runs again: everything arrives, some of it twice.
spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
seen = set()
def all_seen():
    seen.update((message[2], message[4].decode().split(",")[2]) for message in messages)
    return len(messages) if len({value for value, _ in seen}) == 10_000 else 1 << 62
endpoint, messages, thread = None, [], None
endpoint, messages, thread = receiving(lambda: all_seen())
rows = spark.range(0, 10_000, 1, 1).select(f.col("id").cast("string").alias("value"))
(rows.mapInArrow(fails_at_first, "value string")
 .write.format("zeromq").mode("append").options(endpoint=endpoint, includeHeaders=True).save())
thread.join(60)
attempts = {}
for message in messages:
    query, batch, partition, attempt = message[4].decode().split(",")
    attempts.setdefault(int(attempt), []).append(int(message[2]))
result["attempts"] = sorted(attempts)
result["last"] = sorted(attempts[max(attempts)]) == list(range(10_000))
result["first"] = 0 < len(attempts[0]) < 10_000

# A reading task fails: what it had received is gone, so the query fails, whatever may be left.
endpoint = feeding([b"x"] * 100_000)
try:
    read(endpoint).mapInArrow(fails_at_first, "value binary").count()
except Exception as error:
    result["refused"] = "cannot be tried again" in str(error)
spark.stop()
print("RESULT", json.dumps(result))
sys.stdout.flush()
context.destroy(linger=0)
"""
)


@pytest.fixture
def clean_work_folder():
    """Spark's workers leave folders in the installed package; ours are taken away again."""
    work = Path(pyspark.__file__).parent / "work"
    before = set(work.glob("app-*"))
    yield
    for folder in set(work.glob("app-*")) - before:
        shutil.rmtree(folder, ignore_errors=True)
    if work.is_dir() and not any(work.iterdir()):
        work.rmdir()


def test_cluster(run_script, clean_work_folder):
    import json

    output = run_script(SCRIPT)
    (line,) = [line for line in output.splitlines() if line.startswith("RESULT ")]
    assert json.loads(line.removeprefix("RESULT ")) == {
        "read": [200_000, sum(range(200_000))],
        "written": True,
        "attempts": [0, 1],
        "first": True,
        "last": True,
        "refused": True,
    }
