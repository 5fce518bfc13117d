"""Notices missing publications of a parent."""


class Stream:
    """The numbers of one parent's publications.

    PUB drops messages if its queue is full, and a subscription takes time to arrive, so publications can be missing.
    The parent numbers them, its beats repeat the last number, and a snapshot of its document names the last number
    that it includes.
    """

    def __init__(self) -> None:
        self.is_complete = False
        # The next number, and the first number after which none was missing.
        self._next: int | None = None
        self._start = 0

    def on_number(self, number: int) -> None:
        """A publication has arrived."""
        self._continue_at(number)
        self._next = number + 1

    def on_last(self, number: int) -> None:
        """The parent has published `number` and nothing after it."""
        self._continue_at(number + 1)

    def on_snapshot(self, number: int) -> None:
        """A snapshot has arrived that includes all publications up to `number`."""
        if self._next is None or self._next <= number:
            self._start = self._next = number + 1
        # Publications after a gap may arrive before the snapshot that fills it.
        self.is_complete = self._start <= number + 1

    def _continue_at(self, number: int) -> None:
        if number != self._next:
            self._start = self._next = number
            self.is_complete = False
