"""The election of a group's leader, as Zyre holds it: the lowest identity wins.

Each contestant starts a wave of ELECT messages with its identity. A wave with a lower identity
extinguishes the others, and its echoes tell its starter that it has won (the echo algorithm
with extinction). LEADER messages spread the result.
"""

from collections.abc import Collection
from uuid import UUID

__all__ = ["Election"]

# What to send: to whom, and whether it is a LEADER message instead of an ELECT, with whose identity.
_Sends = list[tuple[UUID, bool, UUID]]


class Election:
    """One group's election, in one of its members."""

    def __init__(self, own: UUID) -> None:
        self._own = own
        self._wave: UUID | None = None
        self._father: UUID | None = None
        self._echoes = 0
        self._verdicts = 0

    def start(self, members: Collection[UUID]) -> _Sends:
        """Starts a wave of this member."""
        self._wave = self._own
        return [(member, False, self._own) for member in members]

    def handle_elect(self, peer: UUID, challenger: UUID, members: Collection[UUID]) -> _Sends:
        """Takes an ELECT message of a peer."""
        sends: _Sends = []
        if self._wave is None or challenger < self._wave:
            self._wave, self._father = challenger, peer
            self._echoes = self._verdicts = 0
            sends += [(member, False, challenger) for member in members if member != peer]
        if challenger == self._wave:
            self._echoes += 1
            if self._echoes == len(members):
                if self._wave == self._own:
                    sends += [(member, True, self._own) for member in members]
                elif self._father is not None:
                    sends.append((self._father, False, self._wave))
        return sends

    def handle_leader(self, leader: UUID, members: Collection[UUID]) -> tuple[_Sends, bool]:
        """Takes a LEADER message. Returns what to send, and whether the election is over."""
        if self._wave is None:
            return [], False
        sends: _Sends = []
        if leader != self._own and self._verdicts == 0:
            sends = [(member, True, self._wave) for member in members]
        self._verdicts += 1
        return sends, self._verdicts == len(members)
