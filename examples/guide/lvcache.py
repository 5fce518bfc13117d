"""Gives each new subscriber the last message of its topics. python examples/guide/lvcache.py [PUBLISHERS] [SUBSCRIBERS]

Run pathopub.py and pathosub.py with its two endpoints.
"""

import sys

from zeroxide.patterns import LastValueCache


def main(
    publishers: str = "tcp://127.0.0.1:5557", subscribers: str = "tcp://127.0.0.1:5558"
) -> None:
    with LastValueCache(publishers, subscribers) as cache:
        cache.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
