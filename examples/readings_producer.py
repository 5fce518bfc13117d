"""Sends temperatures to a collector, each exactly once. python examples/readings_producer.py [ENDPOINT] [COUNT]

Start a collector first: zeroxide collector --dir readings --bind tcp://127.0.0.1:5555
Without a COUNT, it sends ten readings per second until Ctrl-C.
"""

import itertools
import random
import sys
import time

from zeroxide.pipeline import Producer

endpoint = sys.argv[1] if sys.argv[1:] else "tcp://127.0.0.1:5555"
count = int(sys.argv[2]) if sys.argv[2:] else None

# By the producer's name, the collector recognizes the rows that it has already.
with Producer(endpoint, name="thermometer") as producer:
    for _ in itertools.count() if count is None else range(count):
        room = random.choice(["kitchen", "cellar"])
        producer.send(f"{random.gauss(20, 2):.1f}", topic=f"temperature/{room}", key=room)
        if count is None:
            time.sleep(0.1)
    producer.flush(60)
    print(f"{count} readings are on the collector's disk")
