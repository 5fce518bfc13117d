"""Reads temperatures from a collector as they arrive. python examples/readings_reader.py [ENDPOINT] [COUNT]

The collector stores the group's position: the next run continues where this one ended.
With a COUNT, it ends after COUNT readings.
"""

import sys

from zeroxide.pipeline import Client

endpoint = sys.argv[1] if sys.argv[1:] else "tcp://127.0.0.1:5555"
count = int(sys.argv[2]) if sys.argv[2:] else None

with Client(endpoint) as client, client.follow("temperature/", group="display") as rows:
    for number, row in enumerate(rows, 1):
        print(f"{row.offset} {row.topic}: {row.value.decode()} degrees", flush=True)
        rows.commit()
        if number == count:
            break
