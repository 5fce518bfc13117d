"""A web service that publishes what is POSTed to it. fastapi run examples/web_fastapi.py

A client gets its answer when the reading is on the collector's disk:
curl -d 21.5 http://127.0.0.1:8000/temperature

The variable COLLECTOR holds the collector's endpoint.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request

from zeroxide.pipeline import AsyncProducer, CollectorError

ENDPOINT = os.environ.get("COLLECTOR", "tcp://127.0.0.1:5555")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One producer for all requests, flushed when the server ends."""
    async with AsyncProducer(ENDPOINT, name="web") as app.state.producer:
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/{topic:path}")
async def publish(topic: str, request: Request) -> dict[str, int | None]:
    """Publishes the body and returns its offset."""
    try:
        done = await app.state.producer.send_and_wait(await request.body(), topic=topic)
    except CollectorError as error:
        raise HTTPException(503, str(error)) from error
    return {"offset": done.offset}
