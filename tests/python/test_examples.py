"""The programs of examples/*.py do what their docstrings promise, over ipc so that they need no port."""

import re

from programs import interrupt, line, output


def test_hello(programs, directory) -> None:
    endpoint = f"ipc://{directory}/hello"
    server = programs.start("hello_server.py", endpoint)
    clients = [programs.start("hello_client.py", endpoint) for _ in range(2)]
    assert [output(client) for client in clients] == ["World\n", "World\n"]
    assert [line(server) for _ in clients] == ["Hello", "Hello"]
    interrupt(server)


def test_weather(programs, directory) -> None:
    endpoint = f"ipc://{directory}/weather"
    publisher = programs.start("weather_publisher.py", endpoint)
    said = programs.run("weather_subscriber.py", endpoint, "10042", 3)
    assert re.fullmatch(r"10042: -?\d+\.\d degrees on average of 3 updates\n", said), said
    interrupt(publisher)


def test_pipeline(programs, directory) -> None:
    tasks, results = f"ipc://{directory}/tasks", f"ipc://{directory}/results"
    sink = programs.start("sink.py", results)
    workers = [programs.start("worker.py", tasks, results) for _ in range(2)]
    assert [line(worker) for worker in workers] == ["ready", "ready"]
    handed_out = output(programs.start("ventilator.py", tasks, results, 50, 3), stdin="\n")
    work = re.search(r"handed out 50 tasks, (\d+) ms of work", handed_out)
    assert work is not None, handed_out
    assert output(sink).startswith(f"50 results, {work[1]} ms of work in ")
    for worker in workers:
        interrupt(worker)
