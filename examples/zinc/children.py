"""The part of the tree below one endpoint."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .message import Member


@dataclass(slots=True)
class Child:
    """A child, as it last described itself."""

    member: Member
    heard: float
    # The child and all endpoints below it.
    members: list[Member] = field(default_factory=list)
    # The work that these endpoints have, and the work that was passed to them since this report.
    load: int = 0
    passed: int = 0
    # The endpoints that were referred to the child since then.
    referred: int = 0

    @property
    def size(self) -> int:
        return len(self.members) + self.referred


class Children:
    """The children of one endpoint, in the order in which they came."""

    def __init__(self, breadth: int) -> None:
        self._breadth = breadth
        self._by_id: dict[str, Child] = {}

    def __iter__(self) -> Iterator[Child]:
        return iter(self._by_id.values())

    def __contains__(self, id: str) -> bool:
        return id in self._by_id

    def __len__(self) -> int:
        return len(self._by_id)

    def accept(self, member: Member, now: float) -> bool:
        """Adds a child if there is room for it, and returns whether it is a child now."""
        if member.id not in self._by_id:
            if len(self._by_id) >= self._breadth:
                return False
            self._by_id[member.id] = Child(member, now, [member])
        self._by_id[member.id].heard = now
        return True

    def update(self, members: list[Member], load: int, now: float) -> None:
        """Stores how a child, the first of the members, describes itself."""
        child = self._by_id[members[0].id]
        child.member, child.members = members[0], members
        child.load, child.passed, child.referred, child.heard = load, 0, 0, now

    def remove(self, id: str) -> None:
        self._by_id.pop(id, None)

    def remove_silent(self, since: float) -> None:
        """Removes the children that have been silent since then."""
        self._by_id = {id: child for id, child in self._by_id.items() if child.heard >= since}

    def refer(self) -> Child:
        """Returns the child that another endpoint is referred to: the one with the fewest endpoints."""
        child = min(self, key=lambda child: child.size)
        child.referred += 1
        return child

    def unbalanced(self, own_address: str) -> tuple[Child, str, int] | None:
        """Returns a child that has too many endpoints, where some should go, and how many at most."""
        if not self._by_id:
            return None
        largest = max(self, key=lambda child: child.size)
        if len(self) < self._breadth:
            return (largest, own_address, largest.size) if largest.size > 1 else None
        smallest = min(self, key=lambda child: child.size)
        # The endpoints that move must not make the other one the larger of the two.
        surplus = (largest.size - smallest.size) // 2
        return (largest, smallest.member.address, surplus) if surplus else None

    def to_yield(self, most: int) -> Child | None:
        """Returns the largest child with no more endpoints than that."""
        fitting = [child for child in self if child.size <= most]
        return max(fitting, key=lambda child: child.size, default=None)

    def members(self) -> list[Member]:
        """Returns all endpoints below this one."""
        return [member for child in self for member in child.members]

    def toward(self, id: str) -> Child | None:
        """Returns the child that is an endpoint or is above it."""
        return next((c for c in self if any(member.id == id for member in c.members)), None)

    def least_loaded(self, own_load: int) -> Child | None:
        """Returns the child to pass work to, or None if this endpoint itself has less to do per endpoint."""
        best, least = None, float(own_load + 1)
        for child in self:
            load = (child.load + child.passed + 1) / child.size
            if load <= least:
                best, least = child, load
        return best


def breadth_first(root: Member, below: Iterable[Member]) -> list[Member]:
    """Returns the tree from the top down; endpoints that have no way to the root are left out."""
    by_parent: dict[str, list[Member]] = {}
    for member in below:
        by_parent.setdefault(member.parent, []).append(member)
    found = [root]
    seen = {root.id}
    for member in found:
        for child in by_parent.get(member.id, ()):
            if child.id not in seen:
                seen.add(child.id)
                found.append(child)
    return found
