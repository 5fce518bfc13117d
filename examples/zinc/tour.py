"""The framework without pages, with three endpoints in one process: python -m examples.zinc.tour"""

import threading

from . import Document, Endpoint, Message, Splice


def main() -> None:
    texts = [Document() for _ in range(3)]
    with (
        Endpoint(name="Ann", replica=texts[0]) as ann,
        Endpoint(name="Ben", replica=texts[1], join=ann.address) as ben,
        Endpoint(name="Cleo", replica=texts[2], join=ben.address) as cleo,
    ):
        cluster = (ann, ben, cleo)
        ann.wait_for(lambda: all(len(endpoint.members) == 3 for endpoint in cluster))

        # Messages: handlers run on a pool, each channel in order.
        heard = threading.Semaphore(0)

        def on_greeting(message: Message) -> None:
            print("Ann heard", message.body.decode())
            heard.release()

        ann.handle("greetings", on_greeting)
        ben.send("greetings", b"hello from Ben")
        heard.acquire()

        # A document: all edit it, and have the same text in the end.
        ben.share(texts[1].splice(Splice(0, 0, "Ben's line\n")))
        cleo.share(texts[2].splice(Splice(0, 0, "Cleo's line\n")))
        ann.wait_for(lambda: all(len(text.text) == 23 for text in texts))
        print("one text:", len({text.text for text in texts}) == 1)

        # Work: the endpoint with the least to do does it.
        for endpoint in cluster:
            endpoint.offer("reverse", lambda body: body[::-1])
        print("reversed:", cleo.submit("reverse", b"zinc").result().decode())

        # The host leaves, and the first client takes its place.
        ann.close()
        cleo.wait_for(lambda: len(cleo.members) == 2)
        print("the host is", cleo.members[0].name)


if __name__ == "__main__":
    main()
