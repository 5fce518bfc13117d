"""A survey: who answers before the deadline? python examples/survey.py [SENSORS]

The sensors may also be programs with nanomsg or nng.
"""

import asyncio
import errno
import sys

import zeroxide as zmq
import zeroxide.asyncio as zaio


async def sensor(context: zaio.Context, endpoint: str, number: int) -> None:
    """Answers every survey; sensor 0 is too slow."""
    with context.socket(zmq.RESPONDENT) as socket:
        socket.connect(endpoint)
        while True:
            await socket.recv()
            if number > 0:
                await socket.send_string(f"sensor {number}: {20 + number} degrees")


async def survey(socket: zaio.Socket, question: str) -> list[str]:
    """Returns the answers that come in time."""
    await socket.send_string(question)
    answers = []
    while True:
        try:
            answers.append(await socket.recv_string())
        except zmq.ZMQError as error:
            if error.errno == errno.ETIMEDOUT:
                return sorted(answers)
            raise


async def main(count: int) -> None:
    """Asks all sensors once."""
    with zaio.Context() as context, context.socket(zmq.SURVEYOR) as socket:
        socket.survey_timeout = 500
        socket.bind("tcp://127.0.0.1:*")
        endpoint = socket.last_endpoint.decode()
        sensors = [asyncio.create_task(sensor(context, endpoint, n)) for n in range(count)]
        await socket.wait_connected(count=count, timeout=30_000)
        for answer in await survey(socket, "temperature?"):
            print(answer)
        for task in sensors:
            task.cancel()
        await asyncio.gather(*sensors, return_exceptions=True)


asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else 4))
