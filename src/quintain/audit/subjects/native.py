"""Adapter for this project's environments: steps an Episode call by call and verifies a fork of it.

The harness runs until it first requests the agent, so the agent's context begins as in a real episode; from there on
the auditor is the agent. Other actors that are requested before (a simulated user) reply with their script.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast, get_type_hints

import msgspec

from quintain import resource
from quintain.audit.facts.data import RowIndex, is_list
from quintain.environment import Environment
from quintain.episode import Episode
from quintain.errors import BROKEN, Component, EpisodeError, UsageError
from quintain.harness import Model, Request
from quintain.task import Task
from quintain.tools import Tool
from quintain.trace import Content, Level, Message, Reply, Text, ToolCall
from quintain.verifier import Verifier

from . import judging, loops, world
from .failure import SubjectFailure

T = TypeVar("T")

DECLARED = ("volatile", "graded", "refusal_ok", "models")
"""Attributes by which an environment, or its State class, may declare facts about itself."""


def of(
    env: Environment[Any], split: str | None = None, *, index: dict[str, int] | None = None
) -> Callable[[], NativeSubject]:
    """Returns a factory of sessions on an environment; sessions share the tasks, which are made on demand.

    Args:
        env: The environment.
        split: The split; by default "test", else the first one.
        index: Indices of tasks by id, as far as known; a task of it is made without those before it.
    """
    chosen = split if split is not None else "test" if "test" in env.splits else env.splits[0]
    return functools.partial(NativeSubject, env, Shelf(env, chosen, {} if index is None else index))


_MANY = 1_000_000
_KEPT = 16  # number of tasks whose tables are kept


class Shelf:
    """Tasks of a split, each made once in this process, because making a task's world may take milliseconds."""

    def __init__(self, env: Environment[Any], split: str, index: dict[str, int]) -> None:
        self.split, self.rows, self.judging = split, RowIndex(), judging.Judging(env)
        self._env, self._all, self._index = env, env.tasks(split), index
        self._known: dict[str, Task[Any]] = {}
        self._lock = threading.Lock()
        self._memories: OrderedDict[str, world.Memory] = OrderedDict()

    def memory(self, task: str) -> world.Memory:
        """Returns the cache of a task's tables, of which the last ones are kept; a new one starts as the last did."""
        if task not in self._memories:
            last = next(reversed(self._memories.values()), None)
            self._memories[task] = world.Memory() if last is None else last.copy()
        self._memories.move_to_end(task)
        while len(self._memories) > _KEPT:
            self._memories.popitem(last=False)
        return self._memories[task]

    def __len__(self) -> int:
        return len(self._all)

    def names(self, indices: Iterable[int]) -> Iterator[str]:
        """Makes the tasks at these indices and yields their ids; raises UsageError if two share one."""
        for index in indices:
            task = self._all[index]
            if self._index.setdefault(task.id, index) != index:
                raise UsageError(f"split {self.split!r} of {self._env.name} has two tasks with the id {task.id!r}")
            self._known[task.id] = task
            yield task.id

    def task(self, name: str) -> Task[Any]:
        """Returns a task by its id; raises UsageError if the id is unknown."""
        if name not in self._known:
            index = self._index.get(name, len(self._all))
            task = self._all[index] if index < len(self._all) else None
            # A finding is also replayed on a later version, whose tasks may have another order.
            is_it = task is not None and task.id == name
            self._known[name] = task if task is not None and is_it else self._env.task(self.split, name)
        return self._known[name]

    async def lent(self, task: Task[Any]) -> Task[Any]:
        """Returns a task to begin; threads get their own copy of its start world."""
        is_apart = threading.current_thread() is not threading.main_thread()
        with self._lock:
            return msgspec.structs.replace(task, start=await resource.fork(task.world())) if is_apart else task


class _AgentRequest(BaseException):
    """Signal that the harness requests the agent; a BaseException, so that no harness swallows it."""


class NativeSubject:
    """Session on an Episode with the plain subject's methods. Not thread-safe.

    `budget` is the most calls of an episode; one that begins while `is_roomy` has no such limit. `best` is the highest
    score that the only criterion declares; several are to add up to 1.
    """

    def __init__(self, env: Environment[Any], shelf: Shelf) -> None:
        self._env, self._roomy, config = env, copy.copy(env), env.config
        self._roomy.config = msgspec.structs.replace(config, max_turns=_MANY, max_calls=None)
        self.shelf, self.is_roomy, self._calls = shelf, False, 0
        self._episode: Episode[Any] | None = None
        self.budget = min(config.max_turns, config.max_turns if config.max_calls is None else config.max_calls)
        self.best = _best(env.verifier)
        for name, owner in ((name, owner) for name in DECLARED for owner in (env.state, env)):
            if hasattr(owner, name):
                setattr(self, name, getattr(owner, name))  # The environment's own comes last.
        lacking = {"production": not hasattr(env.state, "rates"), "judge": not shelf.judging.paths}
        self.absent = tuple(name for name, lacks in lacking.items() if lacks)

    # -- what there is

    def tasks(self) -> list[str]:
        return list(self.shelf.names(range(len(self.shelf))))

    def tools(self) -> list[dict[str, Any]]:
        names = ("name", "description", "parameters")
        return [{name: getattr(tool, name) for name in names} for tool in self._env.tools_of("agent")]

    def weight(self, task: str) -> int:
        """Returns the number of pages of the databases in a task's start world."""
        return world.weight(self.shelf.task(task).world())

    def places(self) -> dict[str, str]:
        """Returns file and line of each tool's function; none for a tool without readable source."""
        found = {tool.name: _place(self._env.state, tool.path) for tool in self._env.tools_of("agent")}
        return {name: place for name, place in found.items() if place}

    @property
    def tool_contracts(self) -> dict[str, dict[str, Any]]:
        """Contracts of the tools, with names as `world.view` shows them."""
        return {tool.name: _contract(tool) for tool in self._env.tools_of("agent")}

    def contents(self, most: int) -> dict[str, dict[str, str]]:
        """Returns digests of the first and last tasks of each split by id, without the id; its own split comes first.

        Of a split of more than `most` tasks one in four is one of its last.
        """
        found: dict[str, dict[str, str]] = {}
        for split in dict.fromkeys((self.shelf.split, *self._env.splits)):
            tasks = self._env.tasks(split)
            last = range(max(most - most // 4, len(tasks) - most // 4), len(tasks))
            some = (tasks[place] for place in (*range(min(most - most // 4, len(tasks))), *last))
            bare = {task.id: msgspec.structs.replace(task, id="", tags={}) for task in some}
            found[split] = {name: self._run(task.digest(task.world())) for name, task in bare.items()}
        return found

    def lessons(self, most: int) -> list[str]:
        """Returns prompts of up to `most` tasks of the split "train", where that is another split than its own."""
        is_other = "train" in self._env.splits and self.shelf.split != "train"
        tasks = self._env.tasks("train") if is_other else ()
        return [str(tasks[place].prompt) for place in range(min(most, len(tasks)))]

    def prompt(self, task: str) -> str:
        """Returns system prompt and task as in the agent's first request, without touching the running episode."""
        return "\n\n".join(message.text for message in self._run(self._begun(task, 0)).session.messages)

    def production(self) -> dict[str, Any]:
        return {"rates": dict(self._env.state.rates)}

    def hidden(self, task: str) -> dict[str, Any]:
        one = self.shelf.task(task)
        answer = one.answer if one.solution else None
        sealed: dict[str, Any] = world.plain({"truth": one.truth, "solution": one.solution, "answer": answer})
        return sealed

    def oracle(self, task: str) -> list[Any] | None:
        one = self.shelf.task(task)
        return None if one.solution is None else [*world.plain(one.solution), {"answer": one.answer}]

    # -- an episode

    def reset(self, task: str, seed: int) -> str:
        """Begins a task and returns the agent's prompt."""
        self._episode = self._run(self._begun(task, seed))
        self._calls = 0
        return "\n\n".join(message.text for message in self._episode.session.messages)

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Plays one call and returns the observation; raises SubjectFailure if the world or a criterion broke."""
        episode = self._current
        if episode.ended:
            return {"error": f"the episode has ended ({episode.trace.reason})"}
        self._calls += 1
        try:
            name.encode()
        except UnicodeEncodeError:
            return {"error": f"unknown tool {name!r}"}
        call = ToolCall(f"call{self._calls}", name, json.dumps(arguments))
        turn = self._run(episode.session.step(Reply(Message("assistant", calls=(call,)))))
        _check(episode)
        said = _shown(turn.steps[0].observation)
        return {"error": said} if turn.steps[0].is_error else said

    def answer(self, text: str) -> Any:
        """Plays the agent's last words, which end the episode."""
        episode = self._current
        if episode.ended:
            return {"error": f"the episode has ended ({episode.trace.reason})"}
        words = text.encode(errors="replace").decode()  # Lone surrogates are no text that a model can say.
        self._run(episode.session.step(Reply(Message("assistant", words))))
        episode.terminate("the agent answered")
        _check(episode)
        return None

    def score(self) -> dict[str, float | None] | None:
        """Returns the score of a fork of the present state, with its criteria; None if verifying failed."""
        judged = self._run(self._judged())
        if judged.trace.score is None:
            return None
        rewards = (reward for reward in judged.trace.rewards if reward.level is Level.TRAJECTORY)
        return {reward.name: reward.value for reward in rewards} | {"score": judged.trace.score}

    def explain(self) -> list[dict[str, Any]]:
        """Returns each criterion's score and reason, at each level; a failure comes last."""
        trace = self._run(self._judged()).trace
        said = [cast(dict[str, Any], world.plain(reward)) for reward in trace.every_reward()]
        return [*said, world.plain(trace.failure)] if trace.failure else said

    def user(self, task: str, said: str, complete: Callable[[str], str]) -> str | None:
        """Returns the simulated user's reply to the agent's words, in its own episode; None without another actor.

        `complete` replaces the model of every other actor.
        """
        return self._run(self._heard(self.shelf.task(task), said, complete))

    def judge(self, task: str, answer: str, complete: Callable[[str], str]) -> dict[str, Any] | None:
        """Returns the grade of an answer with `complete` as the model of each judge; None without a verdict."""
        env = self.shelf.judging.env or self._env
        return self.shelf.judging.grade(NativeSubject(env, self.shelf), task, answer, complete=complete)

    # -- the world

    def state(self) -> dict[str, Any]:
        return self._run(world.view(self._current.state, self.shelf.memory(self._current.trace.task)))

    def start_state(self) -> dict[str, Any]:
        """Returns the state of an episode that has just begun, and closes the session."""
        state = self.state()
        for rows in state.values():
            if is_list(rows):
                self.shelf.rows.prepare(rows)
        self.close()
        return state

    def changes_from_here(self) -> Callable[[], dict[str, list[Any]]]:
        """Returns a function that compares the later state with the present one; it reads changed rows only."""
        before, view = self._run(resource.fork(self._current.state)), self.state()
        memory, index = self.shelf.memory(self._current.trace.task), self.shelf.rows
        return lambda: self._run(world.differences(before, view, self._current.state, memory=memory, index=index))

    def digest(self) -> str:
        return self._run(resource.digest(self._current.state))

    def snapshot(self) -> object:
        return self._run(self._current.fork())

    def restore(self, moment: Any) -> None:
        held: object = moment
        assert isinstance(held, Episode), f"{moment!r} is not a snapshot of this subject"
        episode: Episode[Any] = self._run(moment.fork())
        self._episode = episode
        self._calls = len(episode.trace.turns)

    def inject(self, fault: str) -> None:
        """Makes the next use of a backend fail, by the State's method `inject(fault)`; ValueError without it."""
        method = getattr(self._current.state, "inject", None)
        if method is None:
            raise ValueError(f"{self._env.state.__name__} has no method inject(fault)")
        self._run(resource.settle(method(fault)))

    def advance(self, seconds: float) -> None:
        """Advances the world's clock; raises ValueError for a negative or infinite time."""
        if not 0 <= seconds < math.inf:
            raise ValueError(f"a clock advances by 0 or more seconds, got {seconds}")
        try:
            self._current.state.clock.advance(seconds)
        except BROKEN as error:
            raise _failure(error, part="S", kind="quintain:state_bug") from error

    def close(self) -> None:
        self._episode = None
        loops.release(self)

    # -- inside

    @property
    def _current(self) -> Episode[Any]:
        if self._episode is None:
            raise UsageError("no episode has begun: call reset(task, seed) first")
        return self._episode

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return loops.run(self, coroutine)

    async def _begun(self, name: str, seed: int) -> Episode[Any]:
        """Returns an episode at the point where its harness first requests the agent."""
        task = self.shelf.task(name)
        env = self._roomy if self.is_roomy else self._env
        try:
            lent = await self.shelf.lent(task)
            episode = await Episode[Any].begin(env, lent, seed=seed, split=self.shelf.split, agent="audit")
        except BROKEN as error:
            raise _failure(error, part="T", kind="quintain:reset_failed") from error

        async def model(request: Request) -> Reply:
            if request.role == "agent":
                raise _AgentRequest
            # The prompt of the role, without the words that would end the episode before the agent acts.
            script, harness = task.roles.get(request.role, ""), self._env.harness
            for word in getattr(harness, "stop", ()):
                script = script.replace(word, "")
            return Reply(Message("assistant", script))

        if not await self._is_asked(episode, model) and not episode.ended:
            episode.terminate("the harness returned")
        return episode

    async def _is_asked(self, episode: Episode[Any], model: Model) -> bool:
        """Runs the harness; True if the model raised that the agent is requested."""
        try:
            await self._env.harness.play(episode.session, model)
        except _AgentRequest:
            return True
        except BROKEN as error:
            raise _failure(error, part="H", kind="agent_run_error") from error
        return False

    async def _heard(self, task: Task[Any], said: str, complete: Callable[[str], str]) -> str | None:
        episode = await Episode[Any].begin(self._env, task, seed=0, split=self.shelf.split, agent="audit")
        others, heard = list[str](), list[str]()

        async def model(request: Request) -> Reply:
            if request.role != "agent":
                others.append(request.role)
                return Reply(Message("assistant", complete("\n\n".join(message.text for message in request.messages))))
            if others:
                heard.extend(message.text for message in request.messages[-1:])
                raise _AgentRequest
            return Reply(Message("assistant", said))

        return heard[0] if await self._is_asked(episode, model) else "" if others else None

    async def _judged(self) -> Episode[Any]:
        twin = await self._current.fork()
        twin.terminate("the audit asked for the score")
        await twin.verify()
        return twin


def _check(episode: Episode[Any]) -> None:
    broken = episode.trace.failure
    if broken is not None:
        raise SubjectFailure(f"{broken.type}: {broken.message}", kind=broken.kind, part=broken.component)


def _failure(error: BaseException, *, part: Component, kind: str) -> SubjectFailure:
    if isinstance(error, EpisodeError):
        part, kind = error.component, error.kind
    return SubjectFailure(f"{type(error).__name__}: {error}", kind=kind, part=part)


def _shown(content: Content) -> Any:
    """Returns an observation: text unchanged; with pictures, a list of blocks with base64 bytes."""
    if isinstance(content, str):
        return content
    return [{"text": block.text} if isinstance(block, Text) else world.plain(block) for block in content]


def _best(verifier: Verifier[Any]) -> float:
    scored = [c for c in verifier.criteria if c.level in (Level.TRAJECTORY, Level.GROUP)]
    return scored[0].weight * scored[0].high if len(scored) == 1 and not scored[0].normalize else 1.0


def _contract(tool: Tool) -> dict[str, Any]:
    front = "".join(f"{part}." for part in tool.path[:-1])
    found: dict[str, Any] = msgspec.to_builtins(tool.contract)
    found |= {key: [front + name for name in found[key]] for key in {"reads", "writes"} & found.keys()}
    if isinstance(tool.contract.filters, dict):
        found["filters"] = {name: front + field for name, field in tool.contract.filters.items()}
    return found


def _place(owner: Any, path: Sequence[str]) -> str:
    """Returns file and line of a method, whose path leads over the annotated parts of a State class."""
    try:
        for name in path[:-1]:
            owner = get_type_hints(owner)[name]
        function = inspect.unwrap(getattr(owner, path[-1]))
        return f"{inspect.getsourcefile(function)}:{inspect.getsourcelines(function)[1]}"
    except (AttributeError, KeyError, NameError, OSError, TypeError):
        return ""
