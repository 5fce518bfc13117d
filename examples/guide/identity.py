"""Shows the names that a ROUTER puts in front of messages. python examples/guide/identity.py

A peer without an identity gets a name from the ROUTER. A peer with one is called by it.
"""

import zeroxide as zmq

ENDPOINT = "inproc://example"


def main() -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.bind(ENDPOINT)
        with context.socket(zmq.REQ) as anonymous, context.socket(zmq.REQ) as named:
            named.routing_id = b"PEER2"
            for peer, text in ((anonymous, "the ROUTER names me"), (named, "I name myself")):
                peer.connect(ENDPOINT)
                peer.send_string(text)
                name, empty, body = router.recv_multipart()
                print(
                    [name.hex() if name[0] == 0 else name.decode(), empty.decode(), body.decode()]
                )


if __name__ == "__main__":
    main()
