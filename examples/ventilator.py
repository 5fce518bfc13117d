"""Distributes tasks to any number of workers. python examples/ventilator.py [ENDPOINT] [SINK] [TASKS] [LONGEST_MS]

Start the sink and any number of workers first, then this program, and press Enter: the connected workers get tasks in
turn. With `worker.py` and `sink.py` this is a pipeline: fan out, work in parallel, collect.
"""

import random
import sys

import zeroxide as zmq


def main(
    endpoint: str = "tcp://127.0.0.1:5557",
    sink: str = "tcp://127.0.0.1:5558",
    tasks: str = "100",
    longest_ms: str = "100",
) -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.PUSH) as out,
        context.socket(zmq.PUSH) as collect,
    ):
        out.bind(endpoint)
        collect.connect(sink)
        input("Press Enter when the workers are up: ")
        # Tells the sink how many results to wait for; a worker's first result may overtake this message.
        collect.send_multipart([b"expect", tasks.encode()])
        work = [random.randint(1, int(longest_ms)) for _ in range(int(tasks))]
        for milliseconds in work:
            out.send_string(str(milliseconds))
        print(f"handed out {tasks} tasks, {sum(work)} ms of work")
    # Leaving the block closes the sockets and terminates the context, which waits until everything has been sent.


if __name__ == "__main__":
    main(*sys.argv[1:])
