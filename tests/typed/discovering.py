"""Nodes that find each other, as programs use them."""

from collections.abc import Mapping
from typing import assert_type
from uuid import UUID

import zeroxide as zmq
from zeroxide import asyncio, discovery
from zeroxide.discovery import Enter, Event, Exit, Shout, Whisper


def talk() -> None:
    with discovery.Node("one", headers={"room": "1"}, interface="lo") as node:
        node.join("chat")
        assert_type(node.recv(timeout=100), Event | None)
        assert_type(node.shout("chat", b"one part"), int)
        assert_type(node.peers, list[discovery.Peer])
        for event in node:
            assert_type(event, Event)
            assert_type(event.peer, UUID)
            match event:
                case Enter(peer, name, endpoint, headers):
                    assert_type(name, str)
                    assert_type(headers, Mapping[str, str])
                    assert_type(node.whisper(peer, [b"two", b"parts"]), bool)
                    print(endpoint)
                case Shout(content=content) | Whisper(content=content):
                    assert_type(content, list[bytes])
                case Exit(reason=reason):
                    assert_type(reason, str)
                case _:
                    pass


def serve(socket: zmq.SyncSocket) -> None:
    services: dict[str, str | bytes] = {
        "resize": socket.last_endpoint,
        "other": "tcp://10.0.0.1:5555",
    }
    with discovery.Node(services=services) as node:
        assert_type(node.survey("resize", count=2, timeout=100), list[discovery.Provider])
        with discovery.follow(socket, "resize", node=node) as follower:
            assert_type(follower.wait(2, timeout=100), bool)
            assert_type(follower.endpoints, list[str])
    discovery.follow(socket, "dns://workers:5555", interval=1000)


async def talk_async(socket: asyncio.Socket) -> None:
    async with discovery.AsyncNode(gossip=["tcp://hub:5670"]) as node:
        assert_type(await node.recv(), Event | None)
        assert_type(await node.survey("resize"), list[discovery.Provider])
        follower = discovery.follow(socket, "resize", node=node)
        assert_type(await follower.wait_async(), bool)
        async for event in node:
            assert_type(event, Event)
