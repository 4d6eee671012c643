"""A record made with a program, played again without it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from quintain.episode import ActorSession
from quintain.errors import UsageError
from quintain.harness import Course, Model, Session
from quintain.trace import End, Step, ToolCall, Trace, Turn

from .program import ProgramFailure


class Retold(msgspec.Struct, frozen=True):
    """Drives an episode as its trace tells: the same contexts, the same calls at the same places, the same end.

    Attributes:
        trace: The record.
    """

    trace: Trace

    async def play(self, session: Session, model: Model) -> None:
        """Drive the episode.

        Raises:
            UsageError: The world is elsewhere.
            ProgramFailure: That is how the program ended.
        """
        trace = self.trace
        for actor, turn in self._turns(beside(session)):
            actor.rewrite(trace.context(turn.index))
            await actor.step(await model(actor.request()), _course(turn))
        failure = trace.failure
        if failure is not None and failure.part == "model" and not session.ended:
            await model(session.request())  # It breaks as it did.
        if failure is not None and failure.part == "H":
            raise ProgramFailure(failure.message, kind=failure.kind)
        if trace.end is not End.TRUNCATED:
            session.terminate(trace.reason)

    def _turns(self, session: ActorSession) -> Iterator[tuple[ActorSession, Turn]]:
        """Each turn with the actor whose it is; threads are numbered as they were opened."""
        roles = {turn.thread: turn.role for turn in self.trace.turns}
        actors = [session]
        for turn in self.trace.turns:
            while len(actors) <= turn.thread:
                actors.append(session.join(roles.get(len(actors), "")))
            yield actors[turn.thread], turn


def beside(session: Session) -> ActorSession:
    """The session of an episode in this process.

    Raises:
        UsageError: It is one over a wire.
    """
    if not isinstance(session, ActorSession):
        raise UsageError("a program plays beside its world, in one process: not through a session over a wire")
    return session


def _course(turn: Turn) -> Course:
    calls = iter([step.call for step in turn.steps])

    async def course(_: Step | None) -> ToolCall | None:
        return next(calls, None)

    return course
