"""What is told about an episode: the answers to its calls, and metadata that is the same in every protocol."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from quintain import codec
from quintain.environment import Environment
from quintain.episode import Episode
from quintain.errors import EpisodeError, Failure, Stage, blame
from quintain.harness import Request
from quintain.serve.errors import Gone
from quintain.serve.journal.entries import Log, Met, Missed
from quintain.serve.keys import Caller
from quintain.tools import Tool
from quintain.trace import Content, End, Message, Reward, Step, Trace, Turn

from .harness_run import Driven
from .secrets import Secrets
from .undelivered import Asked

PREFIX = "dev.quintain/"
_EPISODE, _SEQ, _FINISHED, _REWARD, _VALIDITY = (
    f"{PREFIX}{name}" for name in ("episode", "seq", "finished", "reward", "validity")
)
STATE_DIGEST = f"{PREFIX}state_digest"
REWARDS = f"{PREFIX}rewards"
FAILURE = f"{PREFIX}failure"

BUILT_S = 900.0
"""Seconds for which a world that is being built is taken to be waited for, though nobody asks: no time bounds that."""
WITHHELD = "what was said is not for agents: it stands in the record"
_OURS = frozenset({"EpisodeError", "DeadlineExceeded"})
"""Types of exceptions that say nothing of a task, where no code raised them but ours."""
_OURS_ALONE = frozenset({"", codec.digest(b"")[:16]})
"""What names their place in the code then: the frames of an author's code would be in it."""


class Answer(msgspec.Struct, frozen=True):
    """What one call, or the agent's words, led to.

    Attributes:
        seq: Turns of the episode before it: the number of its own, where no other role has spoken first.
        content: What the actor reads.
        is_error: Whether the tool refused, or there was no such call to make.
        reason: "not_found" for an unknown tool, "input_validation" for arguments that don't fit, else empty.
        finished: Whether the episode has ended with it.
        reward: The score, on the answer that ended a valid episode; None on any other.
        meta: The same and more, by prefixed key, for the metadata of any protocol.
    """

    seq: int
    content: Content
    is_error: bool = False
    reason: Literal["", "not_found", "input_validation"] = ""
    finished: bool = False
    reward: float | None = None
    meta: dict[str, Any] = {}


def reward(trace: Trace) -> float | None:
    """The score of a valid episode that has ended."""
    return trace.score if trace.validity == "valid" else None


def about(id: str, trace: Trace, caller: Caller) -> dict[str, Any]:
    """What is told about an episode beside its answers, by prefixed key."""
    told: dict[str, Any] = {
        _EPISODE: id,
        _FINISHED: trace.end is not None,
        _REWARD: reward(trace),
        _VALIDITY: trace.validity,
    }
    if trace.turns:
        told |= _world(trace.turns[-1], caller)
    if trace.end is not None:
        told[f"{PREFIX}reason"] = trace.reason
        told[f"{PREFIX}end"] = trace.end.value
    if trace.failure is not None:
        why = blamed(trace.failure, caller)
        told[FAILURE] = {"part": why.component, "kind": why.kind, "stage": why.stage, "message": why.message}
    return told


def _world(last: Turn, caller: Caller) -> dict[str, str]:
    """What names the world after a turn, for the metadata."""
    return {} if caller.role == "agent" else {STATE_DIGEST: last.state_digest}


def named(digest: str, caller: Caller) -> str:
    """The digest of a world or a task as a caller may know it; empty for an agent.

    He knows the environment's code maybe, and could try what is hidden in the one or the other until its digest fits.
    """
    return "" if caller.role == "agent" else digest


def blamed(failure: Failure, caller: Caller) -> Failure:
    """A failure as a caller may know it.

    What an author's code says when it breaks may be what the task hides. An agent could begin the same task again.
    """
    if caller.role != "agent" or (failure.type in _OURS and failure.traceback_digest in _OURS_ALONE):
        return failure
    return msgspec.structs.replace(failure, message=WITHHELD)


def answers(live: Shown, *, index: int, context: Sequence[Message]) -> list[Answer]:
    """What a reply led to: an answer for each step of its turn, or one where it has none. The last one tells the end.

    Args:
        live: The episode.
        index: How many turns there were before the reply.
        context: The agent's messages now.
    """
    env, trace = live.env, live.trace
    turn = next((one for one in trace.turns[index:] if one.role == "agent" or live.led or live.everyone), None)
    if turn is None:  # The harness took the reply for none: it ended the episode, or asks again.
        words, about_it = _said_since(live, index, context), live.meta | {_SEQ: index}
        return [Answer(index, words, meta=about_it, finished=live.finished, reward=live.reward)]
    # Others may speak after it, before it is answered.
    next_own = next((other for other in trace.turns[turn.index + 1 :] if other.thread == turn.thread), None)
    meta: dict[str, Any] = live.meta if next_own is None else _then(live, trace.turns[next_own.index - 1])
    meta[_SEQ] = index
    if turn.rewards and (rewards := given(turn.rewards, trace, live.owner)):
        meta[REWARDS] = msgspec.to_builtins(rewards)
    found = [
        Answer(index, step.observation, is_error=step.is_error, reason=_reason(env, step), meta=meta)
        for step in turn.steps
    ] or [Answer(index, _said_after(trace, turn, context), meta=meta)]
    if next_own is None and trace.end is not None:
        found[-1] = msgspec.structs.replace(found[-1], finished=True, reward=reward(trace))
    return found


def _then(live: Shown, last: Turn) -> dict[str, Any]:
    """What was told about an episode that went on, when this was its last turn."""
    going = {_EPISODE: live.id, _FINISHED: False, _REWARD: None, _VALIDITY: "unknown"}
    return going | _world(last, live.owner)


def given(rewards: Iterable[Reward], trace: Trace, caller: Caller) -> tuple[Reward, ...]:
    """Rewards as a caller may know them.

    An agent is told what it has earned when nothing can be done about it any more, so that it cannot try what earns
    most; and not why, for a reason may say what is wanted.
    """
    if caller.role != "agent":
        return tuple(rewards)
    return () if trace.end is None else tuple(msgspec.structs.replace(one, reason="") for one in rewards)


def _said_after(trace: Trace, turn: Turn, context: Sequence[Message]) -> Content:
    """What others said to the agent after its own words."""
    following = [one for one in trace.turns[turn.index + 1 :] if one.thread == turn.thread]
    if following:
        later: Sequence[Message] = following[0].added
    else:
        later = context[len(trace.context(turn.index)) + len(list(turn.produced())) :]
    return "\n\n".join(message.text for message in later if message.role == "user")


def _said_since(live: Shown, index: int, context: Sequence[Message]) -> Content:
    """What others said to the agent since its last turn, where its reply became none."""
    before = next((one for one in reversed(live.trace.turns[:index]) if one.role == "agent"), None)
    if before is not None:
        return _said_after(live.trace, before, context)
    return "\n\n".join(message.text for message in context[len(live.first) :] if message.role == "user")


def _reason(env: Environment[Any], step: Step) -> Literal["", "not_found", "input_validation"]:
    if not step.is_error:
        return ""
    tool = env.tools.get(step.call.name)
    if tool is None or "agent" not in tool.roles:
        return "not_found"
    try:
        tool.decode(step.call.arguments, strict=env.config.arguments == "strict")
    except (msgspec.DecodeError, RecursionError):
        return "input_validation"
    return ""


class Shown:
    """What an episode that is played over a wire shows of itself.

    Attributes:
        lost: Keys of calls of which it is written down that nobody got their answers, or that has to be thought of
            those of a process that is gone: until when the same request may come without its key. None where it has
            come, or is known by more than its key, and of a call whose answer is still to be told to who has no key.
        is_new: Whether a process was killed before anybody acted in it, and nobody did since: who asked for it may not
            know that it is there.
        broken: Key of the call over which it failed; empty where there is none.
        request: Digest of the request by whose key it has its name; empty where it has it otherwise.
    """

    is_new: bool = False
    broken: str = ""
    request: str = ""
    id: str
    env: Environment[Any]
    owner: Caller
    trace: Trace
    secrets: Secrets
    led: bool
    everyone: bool
    first: list[Message]
    status: Literal["starting", "open", "ended", "closed"]
    touched: float
    _episode: Episode[Any] | None
    _driven: Driven | None
    asked: dict[str, Asked]
    lost: dict[str, float | None]
    _lock: asyncio.Lock
    _started: asyncio.Event
    _log: Log
    _turns: dict[str, int]
    _running: dict[str, asyncio.Future[None] | None]

    def touch(self, caller: Caller) -> None:
        """Somebody who may asks for it; where it is the owner, what his key may do now is what counts."""
        self.touched = time.monotonic()
        if caller.name == self.owner.name:
            self.owner = caller

    def knows(self, key: str) -> bool:
        """Whether something was asked under this key."""
        return key in self._turns or key in self._running

    def place(self, key: str) -> int | None:
        """What was asked under this key: the turn that a reply led to; of a change, how many conversations there were.

        None where nothing was.
        """
        return self._turns.get(key)

    def gave(self, key: str) -> bool:
        """Whether this key may have been given to a call of which nothing is known any more, not even that it began."""
        return False

    def clashes(self, key: str) -> bool:
        """Whether a process that is gone did something under this key, but for its last word: another request."""
        return False

    def missed(self, key: str) -> None:
        """The answer to a call has found nobody, which must be known to the next process, too."""
        if self._log.keeps and self.knows(key) and key not in self.lost:
            self.lost[key] = None
            self._log.write(Missed(self.id, key))

    def met(self, key: str) -> None:
        """An answer was told, which maybe nobody had got before, or is not kept any more for whoever did not get it."""
        if key in self.lost:
            del self.lost[key]
            if self._log.keeps and self.knows(key):  # Of what was refused nothing was written.
                self._log.write(Met(self.id, key))

    @property
    def is_busy(self) -> bool:
        """Whether something that was asked is being done in it. That it begins is not: nobody may wait for that."""
        return self._lock.locked() and self._started.is_set()

    def is_idle(self, seconds: float) -> bool:
        """Whether nobody has asked for it in so long, be it for what has not ended or is still to begin."""
        if self.is_busy:
            return False
        most = max(seconds, BUILT_S) if self._lock.locked() else seconds
        return self.touched < time.monotonic() - most

    def _begun(self) -> None:
        """It can be used from now on, so that it has not been idle before."""
        self.touched = time.monotonic()
        self._started.set()

    async def woken(self, seconds: float) -> None:
        """Wait until it is where it was when a process ended; of most episodes there was none."""

    @property
    def messages(self) -> Sequence[Message]:
        """The agent's context as its model would see it now, not to be changed; empty before the beginning."""
        return self._episode.session.context.messages if self._episode else ()

    @property
    def question(self) -> Request | None:
        """What the environment's own harness asks now; None where it asks nothing, or another one plays."""
        return self._driven.question if self._driven else None

    @property
    def seed(self) -> int:
        """For the sampling of the agent's next reply."""
        return self._episode.session.request().seed if self._episode else 0

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the agent may call."""
        return self.env.tools_of("agent")

    @property
    def finished(self) -> bool:
        return self.trace.end is not None

    @property
    def reward(self) -> float | None:
        """The score of a valid episode that has ended."""
        return reward(self.trace)

    @property
    def meta(self) -> dict[str, Any]:
        """What is told about the episode beside the answers, by prefixed key."""
        return about(self.id, self.trace, self.owner)

    @property
    def failure(self) -> Failure | None:
        """Why there is no reward, as the owner may know it."""
        return self.trace.failure and blamed(self.trace.failure, self.owner)

    def _forget(self) -> None:
        if self._episode is not None:
            self._episode.sessions.clear()  # They refer back to it; without them it goes at once, not some day.
        if self._driven is not None:
            self._driven.close()
        self._driven = self._episode = None

    @property
    def _played(self) -> Episode[Any]:
        """The episode as far as it is played, though it be still on its way to where it was in another process."""
        if self._episode is None:
            raise EpisodeError("the episode is not there any more", component="C", kind="session_lost")
        return self._episode

    def _over(self) -> None:
        if self.status != "closed":  # Nobody may ask for that any more, however it ended.
            self.status = "ended"

    def _fail(self, error: BaseException, *, component: Any, kind: str, stage: Stage = "agent") -> None:
        if self._episode is not None:
            self._episode.fail(self.secrets.found(self._episode) or error, component=component, kind=kind, stage=stage)
            self._episode.trace.interrupted = True  # The harness knows nothing of it.
            # A thread that was given up may still be at work on that record; this one it cannot reach.
            self.trace = msgspec.structs.replace(self._episode.trace, turns=list(self._episode.trace.turns))
            return
        self.trace.failure = blame(error, component=component, kind=kind, stage=stage, turn=0)
        self.trace.end, self.trace.reason = End.FAILED, self.trace.failure.kind

    @property
    def _failure(self) -> Failure:
        failure = self.failure
        if failure is None:
            raise Gone("this episode is not there any more")
        return failure


def last_words(env: Environment[Any]) -> str:
    """Name of the tool by which an agent that can do nothing but call tools says something without calling."""
    if "answer" not in env.tools:
        return "answer"
    return next(name for name in ("final_answer", "say", "final_words") if name not in env.tools)
