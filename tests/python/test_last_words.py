"""Messages that a peer sent before it closed arrive, even if this side had stopped reading at its high-water mark."""

import pytest
from support import PATIENCE, run_script


@pytest.mark.parametrize("transport", ["tcp", pytest.param("ipc", marks=pytest.mark.zeroxide_only)])
def test_all_of_it_arrives(zmq, sockets, transport):
    # More than the receiver takes, but no more than the kernel holds, even if each message is written separately.
    pull = sockets.bound(zmq.PULL, transport, rcvhwm=10, rcvtimeo=int(PATIENCE * 1000))
    run_script(
        zmq.__name__,
        """
        import sys
        with zmq.Context() as context, context.socket(zmq.PUSH) as push:
            push.sndhwm = 0
            push.connect(sys.argv[1])
            for number in range(200):
                push.send(b"%d" % number)
        """,
        pull.last_endpoint.decode(),
    )
    for number in range(200):
        assert pull.recv() == b"%d" % number
