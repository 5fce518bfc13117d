"""A ROUTER gives work to REQ workers that ask for it. python examples/guide/rtreq.py [WORKERS] [TASKS]

A worker asks for its next task when it is done, so slow workers get fewer tasks. REQ puts an empty part in front of the request,
and needs one in front of the reply.
"""

import random
import sys
import threading
import time

import zeroxide as zmq

ENDPOINT = "inproc://work"


def work(context: zmq.Context, name: str) -> None:
    with context.socket(zmq.REQ) as worker:
        worker.connect(ENDPOINT)
        done = 0
        while True:
            worker.send_string("ready")
            if worker.recv_string() == "END":
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
