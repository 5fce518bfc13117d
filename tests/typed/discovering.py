"""Nodes that find each other, as programs use them."""

from collections.abc import Mapping
from typing import assert_type
from uuid import UUID

from zeroxide import discovery
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


async def talk_async() -> None:
    async with discovery.AsyncNode(gossip=["tcp://hub:5670"]) as node:
        assert_type(await node.recv(), Event | None)
        async for event in node:
            assert_type(event, Event)
