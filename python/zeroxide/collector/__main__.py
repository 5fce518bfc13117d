"""``python -m zeroxide.collector``: the command ``zeroxide collector``."""

import sys

from .daemon import main

if __name__ == "__main__":
    sys.exit(main())
