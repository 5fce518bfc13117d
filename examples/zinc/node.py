"""The part of an endpoint that decides: a state machine without sockets, threads or a clock.

An endpoint gives it the time and the frames that arrive, and executes the commands that `poll_command` returns. A test
can therefore run a whole cluster in one thread, with lost frames and dead hosts, hundreds of times a minute.
"""

from collections import deque
from dataclasses import replace
from enum import Enum
from typing import Any

from .children import Children, breadth_first
from .commands import (
    ALL,
    Command,
    Confirm,
    Connect,
    Deliver,
    Finish,
    Merge,
    Offer,
    Publish,
    Push,
    Run,
    Snapshot,
    Tell,
    Tree,
)
from .message import Frame, Kind, Member, Message, Work
from .stream import Stream
from .timing import Outstanding, Timing

# How many other messages a message may overtake and still be recognised as a repetition.
MEMORY = 10_000

# How many lost members a host tries to find again.
MAX_LOST = 64


class Mode(Enum):
    HOST = "host"
    ATTACHED = "attached"
    SEEKING = "seeking"


class Node:
    """One endpoint of the tree.

    Without `join`, it is the host of a new cluster. Otherwise it asks the endpoint at that address for a place.
    """

    def __init__(
        self, me: Member, join: str, now: float, *, breadth: int = 4, timing: Timing | None = None
    ) -> None:
        self.me = me
        # The first host's identity. An address may belong to another cluster by now.
        self.cluster = "" if join else me.id
        self.mode = Mode.HOST
        self.epoch = 1
        # The identities from the host to this endpoint; empty if there is no way to a host.
        self.path = [me.id]
        self.members = [me]
        self.children = Children(breadth)
        # The work that this endpoint itself has; the owner sets it.
        self.load = 0
        self.malformed = 0
        self._timing = timing or Timing()
        self._contact = join
        self._has_belonged = not join
        self._commands: deque[Command] = deque()
        self._serial = 0
        self._published = 0
        self._pending: dict[int, Outstanding] = {}
        self._work: dict[str, Outstanding] = {}
        self._seen: dict[tuple[str, int], None] = {}
        self._beat_due = now
        self._balance_due = now
        # Members that a host has lost, by identity, and when to tell them of this host again.
        self._lost: dict[str, Member] = {}
        self._claim_due = now
        # The parent, or the endpoint that is asked for a place.
        self._parent = ""
        self._heard = now
        self._stream = Stream()
        self._sync_due = 0.0
        # While it seeks: who else can be asked, and when to ask the next one.
        self._candidates: deque[Member] = deque()
        self._next_due = 0.0
        self._give_up = 0.0
        if join:
            self._seek(now)

    @property
    def is_host(self) -> bool:
        return self.mode is Mode.HOST

    @property
    def is_synced(self) -> bool:
        """Whether it has a way to the host, and misses none of its parent's publications."""
        return self.is_host or (bool(self.path) and self._stream.is_complete)

    @property
    def pending(self) -> int:
        """The number of own messages that the host has not published yet."""
        return len(self._pending)

    def poll_command(self) -> Command | None:
        return self._commands.popleft() if self._commands else None

    # Calls of the application.

    def send(self, channel: str, body: bytes, now: float) -> int:
        """Sends a message to all other endpoints; returns its serial number, which a `Confirm` will name."""
        self._serial += 1
        message = Message(channel, self.me.id, self._serial, body)
        pause = self._timing.resend
        self._pending[message.serial] = Outstanding(message.frame(), now + pause, pause)
        if self.is_host:
            self._accept(message)
        elif self.path:
            self._do(Push(message.frame()))
        return message.serial

    def submit(self, work: Work, now: float) -> None:
        """Has work done by an endpoint that has little to do. It may be done twice if an endpoint dies."""
        pause = self._timing.redo
        self._work[work.id] = Outstanding(work.frame(), now + pause, pause)
        self._hand_out(work, from_above=False)

    def done(self, work: Work, result: bytes, error: str = "") -> None:
        """The endpoint has done the work of a `Run`, or failed to."""
        header = {"id": work.id, "origin": work.origin, "error": error}
        self._return(Frame(Kind.DONE, header, result))

    def sync(self, vector: bytes) -> None:
        """Answers an `Offer`."""
        if self.mode is Mode.ATTACHED:
            self._do(Push(Frame(Kind.SYNC, {"from": self.me.id}, vector)))

    def state(self, snapshot: Snapshot, body: bytes, vector: bytes) -> None:
        """Answers a `Snapshot`."""
        members = [member.header() for member in self.members]
        header = {"number": snapshot.number, "vector": vector.hex(), "members": members}
        self._do(Publish(snapshot.child, Frame(Kind.STATE, header, body)))

    def fill(self, body: bytes) -> None:
        """Passes on a fragment that the own document has lacked, because the children may lack it, too."""
        self._publish(Frame(Kind.FILL, {}, body))

    def doubt(self) -> None:
        """The own document lacks something that a fragment depends on, which the parent may have."""
        self._stream.is_complete = False

    def leave(self) -> None:
        """Takes leave of the neighbours, which then need not wait to notice."""
        frame = Frame(Kind.BYE, {"from": self.me.id})
        if self.mode is Mode.ATTACHED:
            self._do(Push(frame))
        self._do(Publish(ALL, frame))

    # Events.

    def handle_pause(self, now: float) -> None:
        """Nothing is read at present, so silence means nothing."""
        self._heard = now
        for child in self.children:
            child.heard = now

    def handle_tick(self, now: float) -> None:
        """Looks at the time. Frames that have arrived are handled before, because they show who lives."""
        self.children.remove_silent(now - self._timing.patience)
        if self.mode is Mode.ATTACHED and now - self._heard > self._timing.patience:
            self._seek(now, without=self._parent)
        elif self.mode is Mode.SEEKING and now >= self._next_due:
            self._ask_next(now)
        if now >= self._beat_due:
            self._beat_due = now + self._timing.beat
            self._beat(now)
        if self.mode is Mode.ATTACHED and not self._stream.is_complete and now >= self._sync_due:
            self._sync_due = now + self._timing.resend
            self._do(Offer())
        if self.path:
            self._send_again(now)
            if now >= self._balance_due:
                self._balance_due = now + self._timing.patience
                self._balance()
        if self.is_host and now >= self._claim_due:
            self._claim(now)

    def handle_above(self, frame: Frame, now: float) -> None:
        """Handles a frame of the parent, or of the endpoint that is asked for a place."""
        header = frame.header
        if self.mode is Mode.SEEKING:
            if frame.kind == Kind.ACCEPT:
                self._attach(header, now)
            elif frame.kind == Kind.REFER:
                self._candidates.appendleft(Member("", "", header["address"]))
                self._ask_next(now)
            elif frame.kind == Kind.WAIT:
                self._next_due = min(now + self._timing.patience, self._give_up)
            return
        if self.mode is Mode.HOST:
            return
        self._heard = now
        match frame.kind:
            case Kind.BEAT:
                self._follow(header["path"], header["epoch"], now)
                if self.mode is Mode.ATTACHED:
                    self._stream.on_last(header["number"])
            case Kind.SEND:
                self._stream.on_number(header["number"])
                self._accept(Message.of(frame))
            case Kind.FILL:
                self._stream.on_number(header["number"])
                self._do(Merge(frame.body, None))
            case Kind.MEMBERS:
                self._stream.on_number(header["number"])
                self._pass_on_members(header["members"], now)
            case Kind.STATE:
                self._stream.on_snapshot(header["number"])
                self._do(Merge(frame.body, bytes.fromhex(header["vector"])))
                self._pass_on_members(header["members"], now)
            case Kind.REFER:
                self._seek(now, first=header["address"])
            case Kind.YIELD:
                if child := self.children.to_yield(header["most"]):
                    answer = Frame(Kind.REFER, {"address": header["address"]})
                    self._do(Publish(child.member.id, answer))
            case Kind.WORK:
                self._hand_out(Work.of(frame), from_above=True)
            case Kind.DONE:
                self._return(frame)
            case Kind.BYE:
                self._seek(now, without=self._parent)

    def handle_below(self, frame: Frame, now: float) -> None:
        """Handles a frame of a child, or of an endpoint that wants to be one."""
        header = frame.header
        if frame.kind in (Kind.JOIN, Kind.HERE, Kind.CLAIM) and not self._is_ours(header):
            return
        match frame.kind:
            case Kind.JOIN:
                self._place(Member(**header["member"]), now)
            case Kind.HERE:
                members = [Member(**member) for member in header["members"]]
                # A child that was silent for too long has lost its place, and does not know it.
                if members[0].id not in self.children:
                    self._place(members[0], now)
                if members[0].id in self.children:
                    self.children.update(members, header["load"], now)
            case Kind.SYNC:
                if header["from"] in self.children:
                    self._do(Snapshot(header["from"], self._published, frame.body))
            case Kind.SEND:
                if self.is_host:
                    self._accept(Message.of(frame))
                elif self.path:
                    self._do(Push(frame))
            case Kind.WORK:
                self._hand_out(Work.of(frame), from_above=False)
            case Kind.DONE:
                self._return(frame)
            case Kind.BYE:
                self.children.remove(header["from"])
            case Kind.CLAIM:
                self._hear_claim(frame, now)

    # Messages.

    def _accept(self, message: Message) -> None:
        """Takes a message that comes from the host, or at the host, and passes it on."""
        if message.origin == self.me.id:
            # The echo of an own message is not delivered. It shows that the host has the message.
            if self._pending.pop(message.serial, None) is not None:
                self._do(Confirm(message.serial))
        elif (key := (message.origin, message.serial)) not in self._seen:
            if len(self._seen) >= MEMORY:
                del self._seen[next(iter(self._seen))]
            self._seen[key] = None
            self._do(Deliver(message))
        # Repetitions go on, because the lost frame may have been the echo.
        self._publish(message.frame())

    def _publish(self, frame: Frame) -> None:
        """Publishes a frame with the next number."""
        self._published += 1
        numbered = replace(frame, header=frame.header | {"number": self._published})
        self._do(Publish(ALL, numbered))

    def _send_again(self, now: float) -> None:
        for outstanding in list(self._pending.values()):
            if outstanding.is_due(now):
                if self.is_host:
                    self._accept(Message.of(outstanding.frame))
                else:
                    self._do(Push(outstanding.frame))
        for outstanding in list(self._work.values()):
            if outstanding.is_due(now):
                self._hand_out(Work.of(outstanding.frame), from_above=False)

    # Work.

    def _hand_out(self, work: Work, *, from_above: bool) -> None:
        """Does work, or passes it on: up to the host, which knows the whole tree, and from there down."""
        if not self.is_host and not from_above:
            if self.path:
                self._do(Push(work.frame()))
        elif child := self.children.least_loaded(self.load):
            child.passed += 1
            self._do(Publish(child.member.id, work.frame()))
        else:
            self.load += 1
            self._do(Run(work))

    def _return(self, frame: Frame) -> None:
        """Passes a result on, toward the endpoint that wants it."""
        origin = frame.header["origin"]
        if origin == self.me.id:
            id = frame.header["id"]
            # Work that was done twice has two results.
            if self._work.pop(id, None) is not None:
                self._do(Finish(id, frame.body, frame.header["error"]))
        elif child := self.children.toward(origin):
            self._do(Publish(child.member.id, frame))
        elif self.mode is Mode.ATTACHED:
            self._do(Push(frame))

    # The tree.

    def _place(self, member: Member, now: float) -> None:
        """Makes an endpoint a child, or answers why not."""
        if not self.path or member.id in self.path:
            answer = Frame(Kind.WAIT, {})
        elif self.children.accept(member, now):
            header = {"from": self.me.id, "path": self.path, "epoch": self.epoch}
            answer = Frame(Kind.ACCEPT, header | {"cluster": self.cluster})
        else:
            answer = Frame(Kind.REFER, {"address": self.children.refer().member.address})
        self._do(Publish(member.id, answer))

    def _is_ours(self, header: dict[str, Any]) -> bool:
        """Whether a frame comes from this cluster, or from an endpoint that belongs to none yet."""
        return header["cluster"] in ("", self.cluster)

    def _attach(self, header: dict[str, Any], now: float) -> None:
        if self.me.id in header["path"]:
            self._ask_next(now)
            return
        self.mode = Mode.ATTACHED
        self.cluster = header["cluster"]
        self.me = replace(self.me, parent=header["from"])
        self._parent = header["from"]
        self._has_belonged = True
        self._heard = now
        self._stream = Stream()
        self._sync_due = self._beat_due = now
        self._follow(header["path"], header["epoch"], now)

    def _follow(self, path: list[str], epoch: int, now: float) -> None:
        """Learns the way to the host from the parent."""
        if self.me.id in path:
            # Two orphans have found places below each other.
            self._seek(now)
            return
        path = [*path, self.me.id] if path else []
        if path[:1] != self.path[:1] or (path and epoch != self.epoch):
            self._hurry(now)
        self.path, self.epoch = path, epoch

    def _beat(self, now: float) -> None:
        header = {"path": self.path, "epoch": self.epoch, "number": self._published}
        self._do(Publish(ALL, Frame(Kind.BEAT, header)))
        members = [self.me, *self.children.members()]
        cluster = {"cluster": self.cluster}
        if self.is_host:
            tree = breadth_first(members[0], members[1:])
            if tree != self.members:
                self._remember_lost(tree)
                self._claim(now)
                self._set_members(tree, now)
        elif self.mode is Mode.ATTACHED:
            load = self.load + sum(child.load + child.passed for child in self.children)
            headers = [member.header() for member in members]
            self._do(Push(Frame(Kind.HERE, {"members": headers, "load": load} | cluster)))
        else:
            self._do(Push(Frame(Kind.JOIN, {"member": self.me.header()} | cluster)))

    def _balance(self) -> None:
        """Moves a part of the tree below, if the tree would become flatter."""
        if found := self.children.unbalanced(self.me.address):
            child, address, most = found
            frame = Frame(Kind.YIELD, {"address": address, "most": most})
            self._do(Publish(child.member.id, frame))

    def _pass_on_members(self, headers: list[dict[str, str]], now: float) -> None:
        members = [Member(**header) for header in headers]
        if members != self.members:
            self._set_members(members, now)

    def _set_members(self, members: list[Member], now: float) -> None:
        if self._gone(members):
            self._hurry(now)
        self.members = members
        self._do(Tree(members))
        self._publish(Frame(Kind.MEMBERS, {"members": [member.header() for member in members]}))

    def _gone(self, members: list[Member]) -> list[Member]:
        """Returns the members that are not in a new list of members."""
        there = {member.id for member in members}
        return [member for member in self.members if member.id not in there]

    def _hurry(self, now: float) -> None:
        """Sends everything again that an endpoint that has died may have had, or a new host may lack."""
        for outstanding in self._pending.values():
            outstanding.due, outstanding.pause = now, self._timing.resend
        for outstanding in self._work.values():
            outstanding.due = now

    # A new parent, and a new host.

    def _seek(self, now: float, *, first: str = "", without: str = "") -> None:
        """Looks for a parent. All endpoints know the same list of members, and ask them in its order.

        An endpoint whose turn it is itself has found all before it dead, and becomes the host.
        """
        self.mode = Mode.SEEKING
        self.path = []
        below = {member.id for member in self.children.members()}
        self._candidates.clear()
        if first:
            self._candidates.append(Member("", "", first))
        if self._has_belonged:
            known = [m for m in self.members if m.id not in below and m.id != without]
            self._candidates += known if self.me in known else [*known, self.me]
        self._ask_next(now)

    def _ask_next(self, now: float) -> None:
        if not self._candidates:
            self._candidates.append(Member("", "", self._contact))
        candidate = self._candidates.popleft()
        if candidate.id == self.me.id:
            self._become_host(now)
            return
        self._parent = candidate.id
        self._next_due = now + self._timing.patience
        self._give_up = now + 5 * self._timing.patience
        self._beat_due = now
        self._do(Connect(candidate.address))

    def _become_host(self, now: float) -> None:
        self.mode = Mode.HOST
        self.epoch += 1
        self.me = replace(self.me, parent="")
        self.path = [self.me.id]
        self._beat_due = now
        self._lost.clear()
        self._hurry(now)

    def _remember_lost(self, tree: list[Member]) -> None:
        self._lost |= {member.id: member for member in self._gone(tree)}
        for member in tree:
            self._lost.pop(member.id, None)
        while len(self._lost) > MAX_LOST:
            del self._lost[next(iter(self._lost))]

    def _claim(self, now: float) -> None:
        """Tells the members that were lost who the host is.

        They may be alive, and have another host, or be one: a process that was stopped, or a part of a network that was
        cut off, cannot know that it has been replaced.
        """
        self._claim_due = now + 5 * self._timing.patience
        for member in self._lost.values():
            self._tell(member)

    def _tell(self, member: Member) -> None:
        header = {"cluster": self.cluster, "epoch": self.epoch, "host": self.me.header()}
        self._do(Tell(member.address, Frame(Kind.CLAIM, header)))

    def _hear_claim(self, frame: Frame, now: float) -> None:
        host = Member(**frame.header["host"])
        claim = (frame.header["epoch"], host.id)
        is_greater = claim > (self.epoch, self.me.id)
        if self.mode is Mode.SEEKING or (self.is_host and is_greater):
            self._seek(now, first=host.address)
        elif self.is_host and host.id != self.me.id:
            self._tell(host)

    def _do(self, command: Command) -> None:
        self._commands.append(command)
