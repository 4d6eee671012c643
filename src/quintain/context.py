"""Context of an actor, its branch of the message graph, and snapshots of an episode as bytes."""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence

import msgspec

from . import codec
from .trace import Message, Reply, Tokens, Trace, Turn


class Context:
    """The messages of one thread, and which of them are in the record already.

    Attributes:
        role: Whose context.
        thread: Number of the conversation in its episode.
        messages: What the actor's model sees, oldest first.
    """

    def __init__(self, role: str, thread: int, messages: Sequence[Message]) -> None:
        self.role = sys.intern(role)  # msgspec leaves a default out of the bytes by identity, not by equality.
        self.thread = thread
        self.messages = list(messages)
        self._recorded = 0
        self._keep: int | None = None
        self._seen = 0  # So many of them the model saw or said; what its calls gave is not among them yet.
        self._branch = 0
        # Token ids of the branch so far. Forks share the list and use its first `_known` entries, so that a fork costs
        # the same at any length; whoever appends first, at its very end, does so in place.
        self._ids: list[int] = []
        self._known = 0

    def fork(self) -> Context:
        twin = Context(self.role, self.thread, self.messages)
        twin._recorded, twin._keep, twin._seen = self._recorded, self._keep, self._seen
        twin._branch, twin._ids, twin._known = self._branch, self._ids, self._known
        return twin

    def set_context(self, messages: Sequence[Message]) -> None:
        """Replace the context; what does not begin with all that the model has seen and said will start a branch."""
        old, new = self.messages[: self._recorded], messages[: self._recorded]
        kept = [*map(operator.is_, old, new), False].index(False)  # Most messages are the same objects.
        while kept < min(len(old), len(new)) and old[kept] == new[kept]:
            kept += 1
        if kept < self._recorded:
            self._keep = self._recorded = kept
        self.messages = list(messages)

    def record(self, index: int, reply: Reply) -> Turn:
        """The turn that `reply` opens: what it adds to this thread's branch, no steps yet."""
        if self._keep is not None and self._keep < self._seen:
            self._branch += 1
            self._ids, self._known = [], 0
        turn = Turn(
            index=index,
            role=self.role,
            thread=self.thread,
            keep=self._keep,
            added=tuple(self.messages[self._recorded :]),
            reply=reply if reply.tokens is None else msgspec.structs.replace(reply, tokens=self._fresh(reply.tokens)),
            branch=self._branch,
        )
        self._keep = None
        return turn

    def close(self, turn: Turn) -> None:
        """Append what a finished turn put into the context."""
        self._seen = len(self.messages) + 1
        self.messages.extend(turn.produced())
        self._recorded = len(self.messages)

    def _fresh(self, tokens: Tokens) -> Tokens:
        """The tokens beyond those of the branch; a prompt that doesn't continue it starts another."""
        if self._known and tokens.prompt[: self._known] != self._ids[: self._known]:
            self._branch += 1
            self._ids, self._known = [], 0
        if self._known < len(self._ids):
            self._ids = self._ids[: self._known]
        fresh = tokens.prompt[self._known :]
        self._ids += fresh
        self._ids += tokens.completion
        self._known = len(self._ids)
        return msgspec.structs.replace(tokens, prompt=fresh)

    def freeze(self) -> FrozenContext:
        """Returns the part of the context that the trace does not hold."""
        return FrozenContext(self.role, self.thread, self._keep, tuple(self.messages[self._recorded :]))

    @classmethod
    def thaw(cls, frozen: FrozenContext, trace: Trace) -> Context:
        """The inverse of `freeze`, given the trace of the same moment."""
        turns = [turn for turn in trace.turns if turn.thread == frozen.thread]
        context = cls(frozen.role, frozen.thread, ())
        if turns:
            context.messages = trace.context(turns[-1].index)
            context.close(turns[-1])
            context._branch = turns[-1].branch
        for turn in turns:
            if turn.branch == context._branch and turn.reply.tokens is not None:
                context._ids += turn.reply.tokens.prompt + turn.reply.tokens.completion
        context._known = len(context._ids)
        if frozen.keep is not None:
            del context.messages[frozen.keep :]
        context._keep = frozen.keep
        context._recorded = len(context.messages)
        context.messages += frozen.pending
        return context


class FrozenContext(msgspec.Struct, frozen=True):
    """A context frozen beside its trace."""

    role: str
    thread: int
    keep: int | None
    pending: tuple[Message, ...]
    """Messages that no turn holds yet."""


class Snapshot(msgspec.Struct, frozen=True):
    """An episode frozen between two turns; continues in any process that has the same environment."""

    task: str
    fingerprint: str
    state: bytes
    trace: bytes
    contexts: tuple[FrozenContext, ...]
    start: bytes | None = None
    """The world in which the episode began, where that was not its task's own."""
    secrets: tuple[str, ...] = msgspec.field(default=(), name="confided")
    """Names of the secrets that a client sent for the episode; their values are not stored."""

    @property
    def digest(self) -> str:
        """Equal for episodes that will go on alike."""
        return codec.digest(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Returns the bytes that `from_bytes` reads."""
        return codec.dumps(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Snapshot:
        """Reads a snapshot.

        Raises:
            msgspec.DecodeError: The bytes are torn, or not a snapshot.
        """
        return codec.loads(data, cls)
