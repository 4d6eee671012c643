"""Episode: one attempt at a task, and the only place where a world changes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, Generic

import msgspec

from . import codec, resource
from .context import Context, Snapshot
from .environment import Environment
from .errors import BROKEN, Component, Frame, Stage, ToolError, UsageError, author_frames, blame, short
from .executor import DeadlineExceeded
from .harness import CallSource, Request
from .noise import Fault, sample_fault
from .scoring import Scoring
from .state import S, begin
from .task import Task
from .tools import Tool, observe, result_data
from .trace import Block, End, Level, Message, Reply, Reward, Step, Timing, ToolCall, Trace, Turn, as_read


class Progress(msgspec.Struct):
    """Counts that follow from a trace, kept up to date so that no call reads the whole trace.

    Attributes:
        calls: Tool calls.
        faults: Injected faults.
        last_fault: Number of the last call that met a fault; -2 if none did.
        tokens: Prompt and completion tokens of all replies.
        reached: Names of the phases that have been awarded.
    """

    calls: int
    faults: int
    last_fault: int
    tokens: int
    reached: set[str]

    @classmethod
    def of(cls, trace: Trace) -> Progress:
        faults = [None if "planned_fault" in step.data else step.fault for turn in trace.turns for step in turn.steps]
        last_fault = max((n for n, fault in enumerate(faults) if fault), default=-2)
        tokens = sum(turn.reply.usage.prompt + turn.reply.usage.completion for turn in trace.turns)
        reached = {r.name for turn in trace.turns for r in turn.rewards if r.level is Level.PHASE}
        return cls(len(faults), len(faults) - faults.count(None), last_fault, tokens, reached)


class Episode(Generic[S]):
    """A task being worked on: `await Episode.begin(env, task)`, then `session.step`, then `verify`. Not thread-safe.

    Attributes:
        state: The world; changes only inside `step`.
        start: The world in which it began; not to be changed.
        trace: The record so far.
        session: The agent's side of it.
        timing: Where the seconds went.
        frames: Lines of the author's code that led to the failure, outermost first.
    """

    def __init__(
        self,
        env: Environment[S],
        task: Task[S],
        *,
        state: S,
        start: S,
        trace: Trace,
        contexts: Iterable[Context] = (),
        progress: Progress | None = None,
    ) -> None:
        self.env = env
        self.task = task
        self.state = state
        self.start = start
        self.trace = trace
        self.timing = Timing()
        self.frames: tuple[Frame, ...] = ()
        self.sessions = [ActorSession(self, context) for context in contexts]
        self._progress = progress or Progress.of(trace)
        self._steps: list[Step] = []  # Of the turn in play.
        self._in_turn = False  # Stays True when a turn is broken off: then the world moved, and no record says how.
        self._scoring = Scoring(env, task, start=start, reached=self._progress.reached)

    @classmethod
    async def begin(
        cls,
        env: Environment[S],
        task: Task[S],
        start: S | None = None,
        *,
        seed: int = 0,
        member: int | None = None,
        attempt: int = 0,
        split: str = "",
        agent: str = "",
        continues: tuple[str, int] | msgspec.UnsetType = msgspec.UNSET,
        forked: tuple[str, int, int, int] | msgspec.UnsetType = msgspec.UNSET,
        external_harness: str | msgspec.UnsetType = msgspec.UNSET,
    ) -> Episode[S]:
        """Begins an episode on its own copy of the task's world.

        Args:
            env: The environment.
            task: One of its tasks.
            start: Another world to begin in, which must not change any more.
            seed: Seed of the world's random stream, the same for all members of a group.
            member: Place in the group, from 0. None is 0; the server of a remote environment counts.
            attempt: Number of the group's retry, from 0.
            split: Split of the task, for the record.
            agent: Name of the model, for the record.
            continues: Task and attempt of the episode that left `start`, in a task chain.
            forked: Origin of a fork that is played again from its beginning.
            external_harness: Fingerprint of a client-side harness, if one drives the episode; empty if unknown.

        Raises:
            DefinitionError: The task is not plain data, or offers a tool that the environment lacks.
            TypeError: Its world is not of the environment's state class.
        """
        names: dict[str, Any] = {"seed": seed, "member": member, "attempt": attempt, "split": split, "agent": agent}
        names |= {"continues": continues, "forked": forked, "external_harness": external_harness}
        if env.remote_begin is not None:
            episode: Episode[S] = await env.remote_begin(task, start, **names)
            return episode
        env = env.for_task(task)
        world = task.world() if start is None else start
        if type(world) is not env.state:
            where = f"task {task.id!r} (split {split!r}) starts in a {type(world).__name__}"
            raise TypeError(f"{where}, {env.name} plays in a {env.state.__name__}")
        trace = blank(env, task, **names)
        trace.task_digest = await task.digest(world)
        state = await begin(world, seed=trace.seed, task_id=task.id)
        prompt = [Message("user", task.prompt)] if task.prompt else []
        return cls(env, task, state=state, start=world, trace=trace, contexts=[Context("agent", 0, prompt)])

    @property
    def session(self) -> ActorSession:
        return self.sessions[0]

    @property
    def ended(self) -> bool:
        return self.trace.end is not None

    def terminate(self, reason: str, *, truncated: bool = False) -> None:
        """End the episode by the rules of the game, or by a limit. Ending twice is allowed and changes nothing.

        A last reply that calls nothing is an answer even when it is the last one allowed.
        """
        turns = self.trace.turns
        codec.loads(codec.dumps(reason), str)  # What the record cannot hold, its author hears of at once.
        answered = self.trace.reason == "max_turns" and turns and not turns[-1].reply.message.calls
        if not self.ended or answered:
            self.trace.end, self.trace.reason = End.TRUNCATED if truncated else End.TERMINATED, reason

    def fail(self, error: BaseException, *, component: Component, kind: str, stage: Stage = "agent") -> None:
        """End the episode because something broke; the first failure is kept, and it outweighs any other end."""
        if self.trace.failure is None:
            self.frames = author_frames(error)
        self.trace.fail(blame(error, component=component, kind=kind, stage=stage, turn=len(self.trace.turns)))

    async def play(self, context: Context, reply: Reply, call_source: CallSource | None = None) -> Turn:
        """Play one reply of an actor: run its calls, or those of a source; close the turn, check the limits.

        Raises:
            UsageError: The episode has ended; or another reply is being played, or was broken off; or the record
                cannot hold this one.
        """
        if self.ended:
            raise UsageError(f"this episode has ended ({self.trace.reason}); begin or restore another to go on")
        self._check_quiet()
        turn = context.record(len(self.trace.turns), reply)
        self._in_turn = True
        self._scoring.is_stale = True
        before = await self._scoring.moment(self.state) if self._scoring.watches_turns else None
        self._steps = steps = list[Step]()
        rewards: list[Reward] = []
        step, said = None, iter(reply.message.calls)
        while (call := next(said, None) if call_source is None else await call_source(step)) is not None:
            step, verdicts = await self._step(call, context.role, turn=turn.index, index=len(steps))
            steps.append(step)
            rewards += verdicts
            if self.ended:
                break
        turn = msgspec.structs.replace(turn, steps=tuple(steps), state_digest=await self._digest())
        if before is not None and not self.ended:
            rewards += await self._judged(self._scoring.turn(before, turn, self.state))
        if self._scoring.unchecked and not self.trace.failure:
            await self._judged(self._scoring.check())
        turn = as_read(msgspec.structs.replace(turn, rewards=tuple(rewards)) if rewards else turn)
        context.close(turn)
        self.trace.turns.append(turn)
        self._in_turn = False
        self._check_limits(turn.reply)
        return turn

    async def _step(self, call: ToolCall, role: str, *, turn: int, index: int) -> tuple[Step, list[Reward]]:
        """One call, and what the step-level criteria say of it."""
        before = await self._scoring.moment(self.state) if self._scoring.watches_steps else None
        step = await self._call(call, role)
        self._scoring.is_stale = True
        self._progress.calls += 1
        if before is None or self.ended:
            return step, []
        return step, await self._judged(self._scoring.step(before, step, self.state, role=role, turn=turn, index=index))

    async def _call(self, call: ToolCall, role: str) -> Step:
        if (tool := self.env.tool_of(role, call.name)) is None:
            return Step(call, f"error: there is no tool {call.name!r}", is_error=True)
        try:
            arguments = tool.decode(call.arguments, strict=self.env.config.arguments == "strict")
        except (msgspec.DecodeError, RecursionError) as error:
            return Step(call, f"error: {error}", is_error=True)
        earlier = self._earlier(tool, call)
        fault = self._next_fault(earlier)
        step = earlier or Step(call, "") if fault and not fault.runs else await self._run(tool, call, arguments)
        if fault and not self.ended:
            content, corrupted = fault.corrupt(step.observation)
            data = step.data if fault.copies else {}
            return Step(call, content, is_error=step.is_error or corrupted, fault=fault.kind, data=data)
        return step

    def _earlier(self, tool: Tool, call: ToolCall) -> Step | None:
        """The last step without a fault of the same call, its arguments written alike, if its tool declares a read."""
        if not self.env.config.noise_weights or tool.contract.writes != ():
            return None
        turns = (self._steps, *(turn.steps for turn in reversed(self.trace.turns)))
        steps = (one for turn in turns for one in reversed(turn))
        wanted = (call.name, call.arguments, None)
        return next((one for one in steps if (one.call.name, one.call.arguments, one.fault) == wanted), None)

    async def _run(self, tool: Tool, call: ToolCall, arguments: dict[str, Any]) -> Step:
        """Runs a tool on the world."""
        started = time.perf_counter()
        try:
            try:
                limit_s, method = self.env.config.tool_timeout_s, tool.bind(self.state)
                return self._bounded(call, await self.env.executor.call(limit_s, method, **arguments))
            except ToolError as refusal:
                return self._bounded(call, str(refusal), is_error=True)
        except DeadlineExceeded as error:
            self.fail(error, component="S", kind="quintain:tool_timeout")
        except BROKEN as error:  # A bug in the world: no reward can be trusted any more.
            self.fail(error, component="S", kind="quintain:tool_bug")
        finally:
            self.timing.tool_s += time.perf_counter() - started
        return Step(call, "error: the environment is broken", is_error=True)

    def _bounded(self, call: ToolCall, result: Any, *, is_error: bool = False) -> Step:
        try:
            content, data = observe(result), result_data(result)
        except TypeError as error:
            raise TypeError(f"tool {call.name!r} must return data, got {short(result)}: {error}") from error
        encoded = content.encode() if isinstance(content, str) else codec.dumps(content)
        size, limit = len(encoded) + (len(codec.dumps(data)) if data else 0), self.env.config.max_observation_bytes
        if size > limit:
            raise ValueError(f"tool {call.name!r} returned {size} bytes, max_observation_bytes is {limit}")
        content = content if isinstance(content, str) else codec.loads(encoded, tuple[Block, ...])
        return Step(call, content, is_error, msgspec.convert(data.get("planned_fault"), str | None), data)

    def _next_fault(self, earlier: Step | None) -> Fault | None:
        """The planned fault that the next call meets; never two calls in a row, never beyond the budget."""
        config, trace, progress = self.env.config, self.trace, self._progress
        if not config.noise_rate or progress.faults == config.noise_budget or progress.last_fault == progress.calls - 1:
            return None
        fault = sample_fault(config, seed=trace.seed, task=trace.task, call=progress.calls)
        if fault is not None and (earlier is not None or fault.kind != "stale"):
            progress.last_fault = progress.calls
            progress.faults += 1
            return fault
        return None

    async def _digest(self) -> str:
        try:
            return await self._scoring.digest(self.state)
        except BROKEN as error:
            self.fail(error, component="S", kind="quintain:state_bug")
            return ""

    async def _judged(self, verdicts: Awaitable[list[Reward] | None]) -> list[Reward]:
        started = time.perf_counter()
        try:
            return await verdicts or []
        except DeadlineExceeded as error:
            self.fail(error, component="V", kind="quintain:verifier_timeout", stage="verification")
        except BROKEN as error:
            self.fail(error, component="V", kind="verifier_error", stage="verification")
        finally:
            self.timing.verifier_s += time.perf_counter() - started
        return []

    def _check_quiet(self) -> None:
        if self._in_turn:
            raise UsageError("a turn is being played, or was broken off: wait for its end, one reply at a time")

    def _check_limits(self, reply: Reply) -> None:
        config, used = self.env.config, reply.usage.prompt + reply.usage.completion
        self._progress.tokens += used
        if self.ended:
            return
        if self.state.finished is not None:
            self.terminate(self.state.finished)
            return
        turns, calls, tokens = len(self.trace.turns), self._progress.calls, self._progress.tokens
        spent = {"max_turns": turns, "max_calls": calls, "max_tokens": tokens, "context_tokens": used}
        for name, amount in spent.items():
            if (limit := getattr(config, name)) is not None and amount >= limit:
                self.terminate(name, truncated=True)
                return

    async def verify(self) -> float | None:
        """Score a finished episode on copies of its world; None when it failed.

        Raises:
            UsageError: The episode goes on.
        """
        if not self.ended:
            raise UsageError("verify() before the end; terminate() or play on first")
        trace, verifier = self.trace, self.env.verifier
        trace.criteria = tuple(criterion.name for criterion in verifier.criteria)
        if self._in_turn:
            error = UsageError("a turn was broken off, so no record says what it did")
            self.fail(error, component="H", kind="cancelled")
        if trace.failure is None:
            self._scoring.is_stale = True  # A test, or an audit, may have injected a fault since the last turn.
            trace.rewards = await self._judged(self._scoring.trajectory(self.state, trace))
        if trace.failure is None:
            try:
                trace.score = verifier.total(trace.rewards)
            except BROKEN as error:
                self.fail(error, component="V", kind="verifier_error", stage="verification")
        return trace.score

    async def snapshot(self) -> Snapshot:
        """Everything needed to go on elsewhere.

        Raises:
            UsageError: A turn is being played.
        """
        self._check_quiet()
        contexts = tuple(session.context.freeze() for session in self.sessions)
        state = await resource.dump(self.state)
        start = await resource.dump(self.start) if self.trace.continues else None
        return Snapshot(self.task.id, self.env.fingerprint, state, self.trace.to_bytes(), contexts, start)

    @classmethod
    async def restore(cls, env: Environment[S], task: Task[S], snapshot: Snapshot) -> Episode[S]:
        """The inverse of `snapshot`, in this process or another; goes on under the snapshot's own configuration.

        Raises:
            UsageError: The snapshot is of another task or another version of the environment.
            msgspec.DecodeError: Its bytes are torn.
        """
        if (snapshot.task, snapshot.fingerprint) != (task.id, env.fingerprint):
            ours, theirs = f"{task.id!r} in {env.fingerprint}", f"{snapshot.task!r} in {snapshot.fingerprint}"
            raise UsageError(f"the snapshot is of {theirs}, not of {ours}")
        trace = codec.loads(snapshot.trace, Trace)
        state = await resource.loaded(env.state, snapshot.state)
        start = task.world() if snapshot.start is None else await resource.loaded(env.state, snapshot.start)
        contexts = [Context.thaw(frozen, trace) for frozen in snapshot.contexts]
        env = env.replace(config=trace.config).for_task(task)
        return cls(env, task, state=state, start=start, trace=trace, contexts=contexts)

    async def fork(self) -> Episode[S]:
        """An independent twin in place; both may go on. What cannot change is shared.

        Raises:
            UsageError: A turn is being played.
        """
        self._check_quiet()
        state, contexts = await resource.fork(self.state), [session.context.fork() for session in self.sessions]
        trace = msgspec.structs.replace(self.trace, turns=list(self.trace.turns), rewards=list(self.trace.rewards))
        done = msgspec.structs.replace(self._progress, reached=set(self._progress.reached))
        env, task, start = self.env, self.task, self.start
        return Episode(env, task, state=state, start=start, trace=trace, contexts=contexts, progress=done)


class ActorSession:
    """A Session on an Episode in this process."""

    def __init__(self, episode: Episode[Any], context: Context) -> None:
        self.episode = episode
        self.context = context
        self.config = episode.env.config

    @property
    def role(self) -> str:
        return self.context.role

    @property
    def messages(self) -> Sequence[Message]:
        return tuple(self.context.messages)

    @property
    def tools(self) -> Sequence[Tool]:
        return self.episode.env.tools_of(self.context.role)

    @property
    def ended(self) -> bool:
        return self.episode.ended

    def request(self) -> Request:
        trace, config = self.episode.trace, self.config
        place = (trace.seed, trace.task, trace.member, trace.attempt, len(trace.turns), self.context.thread)
        block = hashlib.blake2b(codec.dumps(place), digest_size=4).digest()
        return Request(
            messages=self.messages,
            tools=self.tools,
            role=self.role,
            seed=int.from_bytes(block, "little") >> 1,
            temperature=config.temperature,
            top_p=config.top_p,
            max_tokens=config.max_reply_tokens,
        )

    def append(self, *messages: Message) -> None:
        self.context.messages.extend(messages)

    def set_context(self, messages: Sequence[Message]) -> None:
        self.context.set_context(messages)

    async def step(self, reply: Reply, call_source: CallSource | None = None) -> Turn:
        return await self.episode.play(self.context, reply, call_source)

    def terminate(self, reason: str, *, truncated: bool = False) -> None:
        self.episode.terminate(reason, truncated=truncated)

    def add_actor(self, role: str, *messages: Message) -> ActorSession:
        episode = self.episode
        script = episode.task.roles.get(role)
        first = [Message("system", script)] if script else []
        session = ActorSession(episode, Context(role, len(episode.sessions), [*first, *messages]))
        episode.sessions.append(session)
        return session


def blank(env: Environment[S], task: Task[S], **names: Any) -> Trace:
    """Returns the record of an episode that has not begun. `names` are fields of the Trace; None leaves one out."""
    given = {name: value for name, value in names.items() if value is not None}
    fields: dict[str, Any] = {"seed": 0, "task_digest": "", "tags": dict(task.tags), "config": env.config} | given
    return Trace(
        environment=env.name, fingerprint=env.fingerprint, tools_digest=env.tools_digest, task=task.id, **fields
    )
