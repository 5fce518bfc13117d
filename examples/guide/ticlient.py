"""Stores a request, and fetches the reply when it is there. python examples/guide/ticlient.py [ENDPOINT]"""

import sys
import time

from zeroxide.patterns import TitanicClient


def main(endpoint: str = "tcp://127.0.0.1:5555") -> None:
    with TitanicClient(endpoint, attempts=None) as client:
        name = client.submit("echo", b"Hello")
        print("stored", flush=True)
        while (reply := client.fetch(name)) is None:
            time.sleep(0.1)
        print(f"reply {reply[0].decode()}")
        client.discard(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
