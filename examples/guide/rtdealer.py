"""A ROUTER gives work to DEALER workers that ask for it. python examples/guide/rtdealer.py [WORKERS] [TASKS]

It differs from rtreq.py in the envelope: a DEALER adds no empty part, so the worker does.
"""

import random
import sys
import threading
import time

import zeroxide as zmq

ENDPOINT = "inproc://work"


def work(context: zmq.Context, name: str) -> None:
    with context.socket(zmq.DEALER) as worker:
        worker.connect(ENDPOINT)
        done = 0
        while True:
            worker.send_multipart([b"", b"ready"])
            _, order = worker.recv_multipart()
            if order == b"END":
                break
            done += 1
            time.sleep(random.uniform(0.001, 0.005))
        print(f"{name} did {done} tasks\n", end="", flush=True)


def main(workers: str = "10", tasks: str = "500") -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as broker:
        broker.bind(ENDPOINT)
        threads = [
            threading.Thread(target=work, args=(context, f"worker {number}"))
            for number in range(1, int(workers) + 1)
        ]
        for thread in threads:
            thread.start()
        for order in ["work"] * int(tasks) + ["END"] * len(threads):
            address, empty, _ = broker.recv_multipart()
            broker.send_multipart([address, empty, order.encode()])
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
