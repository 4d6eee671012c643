"""The laws of an environment, as tests to inherit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain import codec, plugins, resource
from quintain.context import Snapshot
from quintain.environment import Environment
from quintain.episode import Episode
from quintain.harness import Model
from quintain.replay import rebuild, replay
from quintain.rollout import rollout
from quintain.state import Rng
from quintain.task import Task
from quintain.trace import Reply, Trace, Turn

from .elsewhere import ask
from .fakes import Script


class EnvironmentContract:
    """Contract of every environment. Return yours, and pytest finds the tests.

        class TestShop(EnvironmentContract):
            def environment(self):
                return shop.env

    Attributes:
        first: Number of tasks of each split that are tested.
        full_score: Score of a solution.
        longest: Characters of a tool's description that the strictest endpoint accepts.
        examples: Number of random plays.
    """

    first = 3
    full_score = 1.0
    longest = 1024
    examples = 20

    def environment(self) -> Environment[Any]:
        """Returns the environment that is tested."""
        raise NotImplementedError(f"{type(self).__name__}.environment() returns the environment that is tested")

    def solver(self, task: Task[Any]) -> Model | None:
        """Returns a model that solves the task, playing every role; None if there is none.

        By default it plays the solution, and a simulated user is silent until the answer and then ends the episode.
        """
        if task.solution is None:
            return None
        return plugins.agent("oracle", harness=self.environment().harness).model(task, 0)

    def idler(self, task: Task[Any]) -> Model:
        """Returns a model that does nothing, in every role."""
        return Script()

    def secrets(self, task: Task[Any]) -> Sequence[str]:
        """Text that an agent must not find in its prompts and tools: the truth, unless it is a word or two."""
        truth = task.truth if isinstance(task.truth, str) else codec.text(task.truth)
        return [truth] if len(truth) >= 16 else []

    # -- T

    def test_every_split_has_tasks_with_names_of_their_own(self) -> None:
        env = self.environment()
        for split in env.splits:
            names = [task.id for task in self._first(env, split)]
            assert names, f"split {split!r} has no tasks"
            assert len(set(names)) == len(names), f"split {split!r} repeats a task id: {names}"

    def test_every_task_starts_in_a_world_of_the_state_class(self) -> None:
        env = self.environment()
        for task in self._all(env):
            found, expected = type(task.world()).__name__, env.state.__name__
            assert type(task.world()) is env.state, f"task {task.id!r} starts in a {found}, not in a {expected}"

    def test_a_task_is_the_same_whenever_it_is_made(self) -> None:
        env = self.environment()
        for split in env.splits:
            for index in range(len(self._first(env, split))):
                one, two = (_digest(env.tasks(split)[index]) for _ in range(2))
                assert one == two, f"task {index} of split {split!r} is another one the second time"

    def test_playing_a_task_does_not_change_it(self) -> None:
        env = self.environment()
        for task in self._all(env):
            before = _digest(task)
            self._play(env, task, self.solver(task) or self.idler(task))
            assert _digest(task) == before, f"an episode changed task {task.id!r} itself"

    # -- H

    def test_the_truth_cannot_be_read(self) -> None:
        env = self.environment()
        for task in self._all(env):
            spy = Script()
            self._play(env, task, spy)
            tools = [(tool.name, tool.description, tool.parameters) for tool in env.tools.values()]
            shown = [message.text for request in spy.asked[:1] for message in request.messages]
            readable = "\n".join([*shown, json.dumps(tools, ensure_ascii=False)])
            for secret in self.secrets(task):
                assert secret not in readable, f"the agent of task {task.id!r} can read {secret!r}"

    # -- S

    def test_every_tool_is_one_that_endpoints_take(self) -> None:
        for tool in self.environment().tools.values():
            assert len(tool.description) <= self.longest, f"the description of {tool.name} is too long"
            for name, schema in tool.parameters["properties"].items():
                assert schema.get("description"), f"{tool.name} does not say what {name} is"

    def test_no_valid_call_breaks_the_world(self) -> None:
        from .strategies import for_all, lists_of, one_of, replies

        env = self.environment()
        tools = [tool for tool in env.tools.values() if "agent" in tool.roles]
        tasks = list(self._all(env))

        def law(task: Task[Any], play: list[Reply]) -> None:
            trace = asyncio.run(_step_through(env, task, play))
            assert trace.failure is None, f"valid calls broke task {task.id!r}: {trace.failure}"

        for_all(law, [one_of(tasks), lists_of(replies(tools))], examples=self.examples)

    def test_copies_go_on_as_the_episode_does(self) -> None:
        env = self.environment()
        for task in self._all(env):
            trace = self._play(env, task, self.solver(task) or self.idler(task))
            asyncio.run(_check_copies(env, task, trace))

    # -- V

    def test_the_solution_gets_the_full_score(self) -> None:
        env, unsolved = self.environment(), 0
        for task in self._all(env):
            model = self.solver(task)
            if model is None:
                unsolved += 1
                continue
            trace = self._play(env, task, model)
            why = [(reward.name, reward.value, reward.reason) for reward in trace.every_reward()]
            assert trace.score == self.full_score, f"the solution of {task.id!r} got {trace.score}: {why}"
        if unsolved:
            import pytest

            pytest.skip(f"{unsolved} tasks have no solution")

    def test_doing_nothing_gets_less(self) -> None:
        env = self.environment()
        for task in self._all(env):
            score = self._play(env, task, self.idler(task)).score
            assert score is not None
            assert score < self.full_score, f"doing nothing solves task {task.id!r}"

    def test_every_criterion_is_accounted_for(self) -> None:
        env = self.environment()
        names = {criterion.name for criterion in env.verifier.criteria}
        for task in self._all(env):
            for model in (self.idler(task), self.solver(task) or self.idler(task)):
                trace = self._play(env, task, model)
                assert {reward.name for reward in trace.every_reward()} == names

    # -- all of it

    def test_a_replay_is_equal_to_the_byte(self) -> None:
        env = self.environment()
        for task in self._all(env):
            trace = self._play(env, task, self.solver(task) or self.idler(task))
            asyncio.run(replay(env, task, Trace.from_json(trace.to_json())))

    def test_other_processes_play_the_same(self) -> None:
        here = self.report()
        for there in ask(self, "report"):
            for name, value in here.items():
                assert there[name] == value, f"{name} depends on the process"

    def report(self) -> dict[str, str]:
        """Digests of everything that has to be the same in every process."""
        env = self.environment()
        found = {"the fingerprint": env.fingerprint, "the tools": env.tools_digest}
        for split in env.splits:
            for task in self._first(env, split):
                found[f"task {task.id} of {split}"] = _digest(task)
                trace = self._play(env, task, self.solver(task) or self.idler(task))
                found[f"an episode of {task.id} of {split}"] = codec.digest(trace.to_bytes())
        return found

    # -- inside

    def _first(self, env: Environment[Any], split: str) -> Sequence[Task[Any]]:
        return env.tasks(split)[: self.first]

    def _all(self, env: Environment[Any]) -> Iterator[Task[Any]]:
        for split in env.splits:
            yield from self._first(env, split)

    def _play(self, env: Environment[Any], task: Task[Any], model: Model) -> Trace:
        record = asyncio.run(rollout(env, task, model))
        if (failure := record.trace.failure) is not None:
            where = f"component {failure.component}, {failure.kind}, turn {failure.turn}"
            raise AssertionError(f"task {task.id!r} failed: {record.failure_text} ({where})")
        return record.trace


def _digest(task: Task[Any]) -> str:
    return asyncio.run(task.digest(task.world()))


async def _step_through(env: Environment[Any], task: Task[Any], play: Sequence[Reply]) -> Trace:
    """Plays replies without a harness, and scores."""
    episode = await Episode[Any].begin(env, task)
    for reply in play:
        if not episode.ended:
            await episode.session.step(reply)
    episode.terminate("the end")
    await episode.verify()
    return episode.trace


async def _check_copies(env: Environment[Any], task: Task[Any], trace: Trace) -> None:
    """Stops somewhere, copy the episode in every way, and lets each copy go on as the trace did."""
    turns = Rng(codec.digest(task.id.encode()).encode()).below(len(trace.turns) + 1)
    episode = await rebuild(env, task, trace, turns=turns)
    before = await resource.digest(episode.state)
    snapshot = Snapshot.from_bytes((await episode.snapshot()).to_bytes())
    for name, twin in (
        ("a fork", await episode.fork()),
        ("what a snapshot restores", await Episode[Any].restore(env, task, snapshot)),
        ("the episode", episode),
    ):
        where = f"after turn {turns} of task {task.id!r}"
        assert await resource.digest(twin.state) == before, f"{name} is another world {where}"
        for expected in trace.turns[turns:]:
            found = await _again(twin, expected)
            assert found == _visible(expected), f"{name} goes on differently {where}: {found}"


async def _again(episode: Episode[Any], turn: Turn) -> tuple[Any, ...]:
    reply = msgspec.structs.replace(turn.reply, tokens=None)
    return _visible(await episode.sessions[turn.thread].step(reply))


def _visible(turn: Turn) -> tuple[Any, ...]:
    return turn.steps, turn.rewards, turn.state_digest
