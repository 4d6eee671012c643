"""Evidence on a record: replay and regrading in its environment, baselines of its task, and findings of an audit.

Everything runs on fresh worlds and takes only the models' replies from the record. Evidence is plain data, so that
another process, under another hash seed, can gather it too.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import msgspec

from quintain import codec, resource
from quintain.chain import TaskChain, before
from quintain.environment import Environment
from quintain.errors import BROKEN, WALL_CLOCK_KINDS, ModelError, QuintainError, ToolError
from quintain.executor import ALARM, DeadlineExceeded
from quintain.harness import Harness, Request
from quintain.replay import ReplayModel, replay_env
from quintain.rollout import EpisodeResult as Again
from quintain.rollout import play_episode
from quintain.scoring import Scoring
from quintain.state import Rng, State
from quintain.table import Table
from quintain.task import Call, Task
from quintain.tools import observe
from quintain.trace import SOLVED, Level, Message, Reply, ToolCall, Trace, Turn, plain
from quintain.verifier import Criterion, Score, StepView, Verifier

from .episode_log import EpisodeLog, fields, sequence
from .siblings import Run, Suspect

FOREIGN = "only our own traces can be played again"
PATIENCE_S = 5.0  # seconds that a call which once hung gets in a replay
_SHOWN = 300


class FirstDifference(msgspec.Struct, frozen=True, kw_only=True):
    """First difference between a replay and its record, in a field of the trace.

    `idle` says that the recorded world did not change in a turn in which the replayed one did.
    """

    turn: int
    step: int | None = None
    field: str
    recorded: str
    found: str
    idle: bool = False


class ReplayEvidence(msgspec.Struct, kw_only=True):
    """Result of replaying one record.

    Attributes:
        cold: First call after a change that a fresh copy of the same world answers differently.
    """

    missing: str = ""  # why the record could not be replayed; empty if it was
    same_version: bool = True  # the environment's code is the version that made the record
    left: FirstDifference | None = None  # first difference; None if the replay agrees
    steady: bool = True  # replays agree with one another
    broke: str = ""  # kind of failure that ended the replay
    scores: list[float | None] = []  # the verifier's present scores, one per grading; None for "no verdict"
    criteria: dict[str, float | None] = {}  # scores of the single criteria in the last grading
    moved: bool = True  # the replayed world's content differs at the end from the start
    stale: tuple[int, ...] = ()  # positions, in the list of suspects, of reads that the world contradicts
    cold: FirstDifference | None = None

    @property
    def is_trusted(self) -> bool:
        graded = all(score is not None and score >= SOLVED for score in self.scores)
        return bool(self.missing) or (self.left is None and graded)


class Witness:
    """Replayer of records in the environment that made them, which grades each one several times."""

    def __init__(self, env: Environment[Any], *, times: int = 3) -> None:
        self._env = env
        self._days: TaskChain[Any] = TaskChain(env)
        self._times = times

    async def examine(self, one: EpisodeLog, task: Task[Any] | str, suspects: list[Suspect]) -> ReplayEvidence:
        """Gathers the evidence on one episode; without its task, `task` says why, and `suspects` look stale."""
        trace = one.trace
        if trace is None or isinstance(task, str):
            return ReplayEvidence(missing=str(task) if trace is not None else FOREIGN)
        try:
            if trace.task_digest and await task.digest(task.world()) != trace.task_digest and not trace.continues:
                return ReplayEvidence(missing="the task has another content than the one that was played")
            start = None if (place := before(trace)) is None else await self._days.world(place)
            evidence = await self._replayed(trace, task, start, suspects=suspects)
        except (QuintainError, *BROKEN) as error:
            return ReplayEvidence(missing=f"it cannot be played again: {type(error).__name__}: {error}"[:_SHOWN])
        if task.day:
            self._days.advance(task, trace, None)
        return evidence

    async def _replayed(self, trace: Trace, task: Task[Any], start: Any, *, suspects: list[Suspect]) -> ReplayEvidence:
        first = await self._again(trace, task, start)
        new = first.record.trace
        evidence = ReplayEvidence(same_version=trace.fingerprint == self._env.fingerprint, scores=[new.score])
        evidence.left = difference(trace, new)
        if evidence.left is not None:
            second = await self._again(trace, task, start)
            evidence.steady = difference(new, second.record.trace) is None
        evidence.broke = new.failure.kind if new.failure is not None else ""
        evidence.criteria = {reward.name: reward.value for reward in new.rewards}
        if first.state is None:
            return evidence
        began = task.world() if start is None else start
        evidence.moved = await content(began) != await content(first.state)
        for _ in range(self._times - 1 if new.failure is None else 0):
            evidence.scores.append(await self._graded(first, task, began))
        evidence.stale = tuple(n for n, one in enumerate(suspects) if contradicts(first.state, one))
        digests = [turn.state_digest for turn in trace.turns if turn.steps]
        reads_on = any(a != b for a, b in itertools.pairwise(digests))  # A call follows a change of the world.
        if evidence.left is None and reads_on:
            evidence.cold = await self._cold(trace, task, start)
        return evidence

    async def _cold(self, trace: Trace, task: Task[Any], start: Any) -> FirstDifference | None:
        """Compares each call's answer with that of a copy of the world."""
        env, strict = self._env, trace.config.arguments == "strict"
        places = iter([(turn.index, n) for turn in trace.turns for n in range(len(turn.steps))])
        seen: list[FirstDifference] = []

        async def ask(effect: StepView[Any]) -> Score:
            step, tool = effect.step, env.tools.get(effect.step.call.name)
            found = step.observation
            if tool is not None and step.fault is None and not step.is_error:
                arguments, world = tool.decode(step.call.arguments, strict=strict), await resource.fork(effect.before)
                try:
                    found = observe(await ALARM.call(trace.config.tool_timeout_s, tool.bind(world), **arguments))
                except ToolError as refusal:
                    found = str(refusal)
            turn, place = next(places, (0, None))
            recorded, now = plain(step.observation)[:_SHOWN], plain(found)[:_SHOWN]
            left = FirstDifference(turn=turn, step=place, field="observation", recorded=recorded, found=now)
            seen.extend([] if found == step.observation or place is None else [left])
            return Score(None, "only asking")

        nothing = Criterion[Any](name="nothing", level=Level.TRAJECTORY, fn=lambda outcome: 0.0)
        spy = Verifier[Any](Criterion(name="ask", level=Level.STEP, fn=ask), nothing)
        await self._played(trace, task, start, verifier=spy)
        return seen[0] if seen else None

    async def _again(self, trace: Trace, task: Task[Any], start: Any) -> Again[Any]:
        """Replays the replies, with a short time limit for calls that hung."""
        config = trace.config
        if trace.failure is not None and trace.failure.kind in WALL_CLOCK_KINDS:
            config = msgspec.structs.replace(
                config, tool_timeout_s=min(PATIENCE_S, config.tool_timeout_s or PATIENCE_S)
            )
        return await self._played(trace, task, start, config=config)

    async def _played(self, trace: Trace, task: Task[Any], start: Any, **changed: Any) -> Again[Any]:
        fields = ("seed", "member", "attempt", "continues", "split", "agent")
        names: dict[str, Any] = {name: getattr(trace, name) for name in fields}
        env = replay_env(self._env, trace).replace(**changed)
        return await play_episode(env, task, ReplayModel(trace), start=start, **names)

    async def _graded(self, again: Again[Any], task: Task[Any], began: Any) -> float | None:
        asked = msgspec.structs.replace(again.record.trace, rewards=[], score=None)
        try:
            rewards = await Scoring(self._env, task, start=began).trajectory(again.state, asked)
            return self._env.verifier.total(rewards)
        except (DeadlineExceeded, *BROKEN):
            return None  # no verdict; the caller compares it with the others


def difference(expected: Trace, found: Trace) -> FirstDifference | None:
    """Returns the first difference between two traces, apart from names, versions and real time.

    After a failure of a real clock or a model's endpoint, only earlier turns are compared.
    """
    failure = expected.failure
    until = failure.turn if failure is not None and failure.kind in WALL_CLOCK_KINDS else len(expected.turns)
    before_digest = ""
    for old, new in zip(expected.turns[:until], found.turns, strict=False):
        left = _in_turn(old, new)
        if left is not None:
            return msgspec.structs.replace(left, idle=bool(before_digest) and old.state_digest == before_digest)
        before_digest = old.state_digest
    turn, recorded, ending, field = len(found.turns), expected.reason, found.reason, "end"
    if turn < until:
        recorded, ending, field = f"{until} turns", f"{turn}, {found.reason}", "turns"
    elif failure is not None or (expected.end, expected.reason) == (found.end, found.reason):
        return None
    else:
        turn = max(0, len(expected.turns) - 1)
        ending = f"{ending}: {found.failure.message}"[:_SHOWN] if found.failure is not None else ending
    return FirstDifference(turn=turn, field=field, recorded=recorded, found=ending)


def _in_turn(old: Turn, new: Turn) -> FirstDifference | None:
    sides: list[tuple[int | None, str, Any, Any]] = [
        (number, field, getattr(a, field), getattr(b, field))
        for number, (a, b) in enumerate(zip(old.steps, new.steps, strict=False))
        for field in ("observation", "is_error")
    ]
    if len(old.steps) != len(new.steps):
        sides.append((None, "turns", f"{len(old.steps)} steps", f"{len(new.steps)}"))
    for step, field, was, now in (*sides, (None, "state_digest", old.state_digest, new.state_digest)):
        if was != now:
            recorded, found = ((str(x) if isinstance(x, bool) else plain(x))[:_SHOWN] for x in (was, now))
            return FirstDifference(turn=old.index, step=step, field=field, recorded=recorded, found=found)
    return None


async def content(world: State) -> str:
    """Returns the digest of a world's content without its clock and random draws."""
    own = await resource.fork(world)
    own.shared.clock.now = 0.0
    own.shared.rng = Rng()
    own.shared.finished = None
    return await resource.digest(own)


def contradicts(world: State, suspect: Suspect) -> bool:
    """True if the world holds the written value while a read showed the one before."""
    found = [values[suspect.field] for values in _entities(world, suspect.key) if suspect.field in values]
    return bool(found) and all(codec.dumps(value) == codec.dumps(suspect.new) for value in found)


def _entities(value: object, key: str) -> list[dict[str, Any]]:
    if isinstance(value, Table):
        rows: Table[Any] = value  # pyright: ignore[reportUnknownVariableType]  # of whatever rows
        return [fields(rows[key])] if key in rows else []
    items, held = sequence(value), fields(value)
    own = [held] if held.get("id") == key else [fields(held[key])] if fields(held.get(key)) else []
    inner = [item for name, item in held.items() if name not in (key, "shared")] if items is None else items
    return own + [one for item in inner for one in _entities(item, key)]


# --- baselines: a task's own solution must score, and doing nothing must not ---


class Baselines(msgspec.Struct, kw_only=True):
    """Scores of two baselines on one task; None where they failed or are missing."""

    missing: str = ""  # why they could not be played; empty if they could
    solution: float | None = None
    has_solution: bool = False
    refused: str = ""  # first refused call of the solution, with the error
    writes: bool = False  # the solution changes the world
    nothing: float | None = None  # score of an agent that makes no call and says nothing

    @property
    def unsolvable(self) -> bool:
        return self.has_solution and (self.solution is None or self.solution < SOLVED)

    @property
    def free(self) -> bool:
        return self.nothing is not None and self.nothing >= SOLVED

    @property
    def trivial(self) -> bool:
        """True if doing nothing earns the whole reward although the solution changes the world."""
        return self.free and self.writes


class _Fixed:
    """Model that makes given calls, one a turn, and then answers."""

    name = "fixed"

    def __init__(self, calls: tuple[Call, ...], answer: str) -> None:
        replies = [
            Reply(Message("assistant", calls=(ToolCall(f"call_{place}", name, codec.text(arguments)),)))
            for place, (name, arguments) in enumerate(calls, 1)
        ]
        self._replies = itertools.chain(replies, itertools.repeat(Reply(Message("assistant", answer))))

    async def __call__(self, request: Request) -> Reply:
        if request.role != "agent":
            raise ModelError(f"the task has a further actor, {request.role!r}, and the baselines have no model for it")
        return next(self._replies)


async def play_baselines(env: Environment[Any], task: Task[Any], *, seed: int) -> Baselines:
    """Plays the solution and an idle episode, without fault injection."""
    # Where a program is the agent, the environment's own harness says what the task is worth.
    own: Harness | None = getattr(env.harness, "own", None)
    calm = env.replace(config=env.config.override({"noise_rate": 0.0}), harness=own)
    nothing = (await play_episode(calm, task, _Fixed((), ""), start=None, seed=seed)).record.trace
    if nothing.failure is not None and nothing.failure.component == "model":
        return Baselines(missing=nothing.failure.message)
    found = Baselines(nothing=nothing.score)
    if task.solution is not None:
        best = await play_episode(calm, task, _Fixed(task.solution, task.answer), start=None, seed=seed)
        trace = best.record.trace
        found.has_solution, found.solution = True, trace.score
        refused = next((step for turn in trace.turns for step in turn.steps if step.is_error), None)
        if refused is not None:
            found.refused = f"{refused.call.name} {refused.call.arguments}: {refused.observation}"[:300]
        if best.state is not None:
            found.writes = await content(task.world()) != await content(best.state)
    return found


# --- all that a rule may read ---


class AuditFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Finding of an audit report, reduced to the fields that triage reads."""

    check: str = ""
    class_: str = msgspec.field(default="", name="class")
    part: str = ""
    severity: str = ""
    confidence: str = ""
    tasks: tuple[str, ...] = ()


class AuditReport(msgspec.Struct):
    """Audit report, reduced to its findings."""

    findings: list[AuditFinding]


class Case(NamedTuple):
    """Episode of a run and its context.

    Attributes:
        findings: Findings of an audit report about this task; None without a report.
    """

    played: EpisodeLog
    run: Run
    evidence: ReplayEvidence
    baselines: Baselines
    findings: tuple[AuditFinding, ...] | None = None
    known_tools: dict[str, dict[str, Any]] | None = None  # schemas of the advertised tools; None if unknown
    task: Task[Any] | None = None
    solvable: bool = False  # an episode earned the whole reward of this task, and nothing contradicts that reward
    solutions: float = 0.0  # share of the probed tasks whose own solution earns the whole reward; 0 without probes
    freebies: float = 0.0  # share of the probed tasks that pay the whole reward for nothing; 0 without probes

    @property
    def lenient(self) -> bool:
        trace = self.played.trace
        return trace is not None and trace.config.arguments == "lenient"
