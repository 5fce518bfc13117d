"""Binary Star: the state of one server of a pair, of which one is active."""

import enum

__all__ = ["PairState", "SplitBrain", "State"]

# A peer that is silent for this many heartbeats is dead.
_LIVENESS = 2


class State(enum.IntEnum):
    """What a server tells its peer about itself. The numbers are those on the wire."""

    PRIMARY = 1
    BACKUP = 2
    ACTIVE = 3
    PASSIVE = 4


class SplitBrain(RuntimeError):
    """Both servers of a pair are active, or both are passive.

    Both may have served clients, so a program cannot know which state is right. This happens if the
    link between the servers breaks while clients reach both. Restart the server whose state should
    be dropped.

    Source:
        The guide, chapter 4: Binary Star Pattern
    """


class PairState:
    """The state of one server, from its peer's messages, its clients' requests and the time.

    A server takes over if its peer is silent and a client asks for it. Both conditions together
    keep a broken link between the servers from making both active.

    Args:
        is_primary: Whether this is the server that is active after a common start.
        heartbeat: How often the servers tell each other their state, in ms.
        now: The time.
    """

    def __init__(self, is_primary: bool, heartbeat: float, now: float) -> None:
        self._initial = State.PRIMARY if is_primary else State.BACKUP
        self.state = self._initial
        self._heartbeat = heartbeat
        self._patience = heartbeat * _LIVENESS
        self._peer_expiry = now + self._patience
        self._spoke = now
        self.speaks_at = now
        # A backup serves no client before it has seen its primary, or it would be active after a common start.
        self._may_start_alone = is_primary

    @property
    def is_active(self) -> bool:
        return self.state is State.ACTIVE

    def speak(self, now: float) -> bytes | None:
        """Returns the message to the peer, if it is due."""
        self._check_silence(now)
        if now < self.speaks_at:
            return None
        self._spoke = now
        self.speaks_at = now + self._heartbeat
        return b"%d" % self.state

    def handle_peer(self, message: bytes, now: float) -> None:
        """Takes the peer's state.

        Raises:
            SplitBrain: Both are active, or both are passive.
        """
        self._check_silence(now)
        try:
            peer = State(int(message))
        except ValueError:
            return
        self._peer_expiry = now + self._patience
        match self.state, peer:
            case (State.ACTIVE, State.ACTIVE):
                raise SplitBrain("both servers of the pair are active")
            case (State.PASSIVE, State.PASSIVE):
                raise SplitBrain("both servers of the pair are passive")
            case (State.PRIMARY, State.BACKUP):
                self._become(State.ACTIVE, now)
            case (State.PRIMARY | State.BACKUP, State.ACTIVE):
                self._become(State.PASSIVE, now)
            case (State.PASSIVE, State.PRIMARY | State.BACKUP):
                # The peer has restarted. It will be passive.
                self._become(State.ACTIVE, now)

    def handle_client(self, now: float) -> bool:
        """Returns whether to serve a client's request; the request may make this server active."""
        self._check_silence(now)
        may_take_over = self.state is State.PASSIVE or self._may_start_alone
        if not self.is_active and may_take_over and now >= self._peer_expiry:
            self._become(State.ACTIVE, now)
        return self.is_active

    def _become(self, state: State, now: float) -> None:
        self.state = state
        self.speaks_at = now  # the peer knows at once

    def _check_silence(self, now: float) -> None:
        """Steps down if this process did not run for so long that its peer may have taken over."""
        if now - self._spoke <= self._patience:
            return
        self._spoke = self.speaks_at = now
        self._peer_expiry = now + self._patience
        if self.is_active:
            self.state = self._initial
            self._may_start_alone = True
