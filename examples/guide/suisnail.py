"""A subscriber that ends if it is too slow. python examples/guide/suisnail.py [MAX_DELAY_MS] [WORK_MS]

Each update carries the time at which it was sent. A subscriber that receives old updates cannot keep up, and ending is better than acting on
old data.
"""

import sys
import threading
import time

import zeroxide as zmq

ENDPOINT = "inproc://updates"


def publish(context: zmq.Context, done: threading.Event) -> None:
    with context.socket(zmq.PUB) as publisher:
        publisher.bind(ENDPOINT)
        while not done.wait(0.001):
            publisher.send_string(f"{time.monotonic()}")


def main(max_delay: str = "1000", work: str = "2") -> None:
    with zmq.Context() as context, context.socket(zmq.SUB) as subscriber:
        done = threading.Event()
        publisher = threading.Thread(target=publish, args=(context, done))
        publisher.start()
        subscriber.subscribe("")
        subscriber.connect(ENDPOINT)
        received = 0
        while True:
            delay = (time.monotonic() - float(subscriber.recv_string())) * 1000
            if delay > float(max_delay):
                break
            received += 1
            time.sleep(float(work) / 1000)
        done.set()
        publisher.join()
        print(f"cannot keep up: an update after {received} others is more than {max_delay} ms old")


if __name__ == "__main__":
    main(*sys.argv[1:])
