"""The code of the measured processes: `python roles.py MODULE PART CASE`, started by runner.py.

A case has two sides: the one that measures and its peer. PART is `measure` or `peer`, each a process of its own, or
`both`: inproc, with the peer in a thread. One side binds a socket, the other connects one. The functions take the
module under test as `zmq` and use only what pyzmq and zeroxide share, `send_batch` and `recv_batch` aside.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import aio_roles
import call_roles
import flow_roles
import latency_roles
import scale_roles
import thread_roles
from parts import Cpu, Figures, hear, open_socket, say


@dataclass(frozen=True)
class Role:
    measures: str  # socket type of the side that measures
    measure: Callable[[Any, Any, Any, Cpu], Figures]
    peers: str  # socket type of the other side; None if that side opens its sockets itself
    peer: Callable[[Any, Any, Any], None]
    contexts: str = ""  # the submodule whose contexts make the sockets
    peer_binds: bool = False


ROLES = {
    "push_pull": Role("PULL", flow_roles.pull, "PUSH", flow_roles.push),
    "multipart": Role("PULL", flow_roles.pull_multipart, "PUSH", flow_roles.push_multipart),
    "proxy": Role("PULL", flow_roles.pull, "PUSH", flow_roles.push_through_proxy),
    "batch": Role("PULL", flow_roles.pull_batch, "PUSH", flow_roles.push_batch),
    "scatter_gather": Role("GATHER", flow_roles.pull, "SCATTER", flow_roles.push),
    "client_server": Role("CLIENT", flow_roles.dealer, "SERVER", flow_roles.server),
    "radio_dish": Role("DISH", flow_roles.sub, "RADIO", flow_roles.radio, peer_binds=True),
    "dealer_router": Role("DEALER", flow_roles.dealer, "ROUTER", flow_roles.router),
    "pub_sub": Role("SUB", flow_roles.sub, "PUB", flow_roles.pub, peer_binds=True),
    "fan_out": Role("SUB", flow_roles.sub_with_many, "PUB", flow_roles.pub, peer_binds=True),
    "spread": Role("PULL", flow_roles.pull_with_many, "PUSH", flow_roles.push, peer_binds=True),
    "survey": Role("SURVEYOR", flow_roles.survey, "", flow_roles.respond),
    "req_rep": Role("REQ", latency_roles.req, "REP", latency_roles.rep),
    "paced": Role("PULL", latency_roles.pull_paced, "PUSH", latency_roles.push_paced),
    "idle": Role("PULL", latency_roles.pull_nothing, "PUSH", latency_roles.push_once),
    "topics": Role("SUB", scale_roles.sub_topics, "PUB", scale_roles.pub_topics, peer_binds=True),
    "backlog": Role("PULL", scale_roles.pull_backlog, "PUSH", scale_roles.push_backlog),
    "connections": Role("PULL", scale_roles.pull_from_many, "PUSH", scale_roles.push_many),
    "churn": Role("PULL", scale_roles.pull_churn, "PUSH", scale_roles.push_churn),
    "crowd": Role("PUB", scale_roles.pub_to_many, "", scale_roles.raw_subscribers),
    "aio_push_pull": Role("PULL", aio_roles.pull, "PUSH", aio_roles.push, ".asyncio"),
    "aio_batch": Role("PULL", aio_roles.pull_batch, "PUSH", aio_roles.push_batch, ".asyncio"),
    "aio_req_rep": Role("REQ", aio_roles.req, "REP", aio_roles.rep, ".asyncio"),
}

# These open all the sockets that they need themselves.
ALONE: dict[str, Callable[[Any, Any], Figures]] = {
    "calls": call_roles.calls,
    "threads": thread_roles.threads,
}


def main() -> None:
    module, part, case = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    if "cores" in case:
        os.sched_setaffinity(0, case["cores"])  # before there are threads, because they inherit it
    scale_roles.raise_limits()
    zmq = import_module(module)
    if alone := ALONE.get(case["role"]):
        say(result=alone(zmq, case))
        os._exit(0)
    role = ROLES[case["role"]]
    context = import_module(module + role.contexts).Context()
    with suppress(Exception):  # pyzmq's are 1023 otherwise; others may not know the option
        context.set(zmq.MAX_SOCKETS, 16_000)
    run_peer = peer_side(zmq, context, role, case)
    if part == "peer":
        run_peer(case.get("endpoint"), True)
        return
    socket = open_socket(zmq, context, role.measures, case, as_server=True)
    endpoint = bind_or_connect(zmq, socket, case)
    if part == "both":
        threading.Thread(target=run_peer, args=(endpoint, False), daemon=True).start()
        peer = None
    else:
        if "endpoint" not in case:
            say(endpoint=endpoint)
        peer = int(hear())
    say(result=role.measure(zmq, socket, case, Cpu(peer)))
    # The peer still sends. An orderly end would need an agreement with it, and is not measured.
    os._exit(0)


def peer_side(
    zmq: Any, context: Any, role: Role, case: dict[str, Any]
) -> Callable[[str | None, bool], None]:
    def run(endpoint: str | None, apart: bool) -> None:
        mine = case if endpoint is None else case | {"endpoint": endpoint}
        socket = None
        if role.peers:
            socket = open_socket(zmq, context, role.peers, mine)
            bound = bind_or_connect(zmq, socket, mine)
            if endpoint is None and apart:
                say(endpoint=bound)
        role.peer(zmq, socket, mine)

    return run


def bind_or_connect(zmq: Any, socket: Any, case: dict[str, Any]) -> str:
    """Returns the given endpoint, or makes one."""
    if "endpoint" in case:
        socket.connect(case["endpoint"])
        return str(case["endpoint"])
    socket.bind(case["address"])
    return str(socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode())


if __name__ == "__main__":
    main()
