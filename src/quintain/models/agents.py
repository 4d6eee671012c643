"""Agents: who plays a whole run. Each function here is registered under its name as a `quintain.models` plugin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from quintain.errors import UsageError
from quintain.harness import Agent, Harness, Model
from quintain.task import Task

from .baselines import Noop, Random
from .cast import Cast, with_silent_user
from .openai import OpenAI
from .scripted import Scripted


class Fixed:
    """The same model for every episode; it must keep nothing of one for the next.

    Args:
        model: Any model; one with `aclose()` is closed with the agent.
        name: Stands in the record.
    """

    def __init__(self, model: Model, name: str) -> None:
        self.name = name
        self._model = model

    def model(self, task: Task[Any], seed: int) -> Model:
        """Returns the model."""
        return self._model

    async def aclose(self) -> None:
        """Gives back what the model holds, such as connections."""
        await _close(self._model)


class Oracle:
    """Plays the solution that a task carries, and shows that it can be solved at all.

    Args:
        harness: Harness whose simulated user is silent and ends the conversation after the solution; None if the
            solution is of the user too, or another agent plays the user.
    """

    name = "oracle"

    def __init__(self, harness: Harness | None = None) -> None:
        self._harness = harness

    def model(self, task: Task[Any], seed: int) -> Model:
        """Returns the solution as a script.

        Raises:
            UsageError: The task does not have a solution.
        """
        if task.solution is None:
            raise UsageError(f"task {task.id!r} has no solution, so the oracle cannot play it")
        script = Scripted.calls(task.solution, task.answer)
        return script if self._harness is None else with_silent_user(script, self._harness)


class EpisodeScript(msgspec.Struct, forbid_unknown_fields=True):
    """Episode of a script file: calls, one per turn, then an answer."""

    calls: tuple[tuple[str, dict[str, Any]], ...]
    answer: str = "done"


class Script:
    """Agent that plays calls from a JSON file, from the start in each episode.

    Args:
        path: An object of `{"calls": [["tool", {"argument": value}]], "answer": "done"}` by task id; "*" stands for
            every task that is not named.

    Raises:
        UsageError: The file cannot be read, or has another form.
    """

    def __init__(self, path: str) -> None:
        self.name = f"script:{path}"
        try:
            self._episodes = msgspec.json.decode(Path(path).read_bytes(), type=dict[str, EpisodeScript])
        except (OSError, msgspec.DecodeError) as error:
            form = '{"TASK, or *": {"calls": [["TOOL", {"ARGUMENT": VALUE}]], "answer": "TEXT"}}'
            raise UsageError(f"cannot read the script {path!r}: {error}; its form is {form}") from error

    def model(self, task: Task[Any], seed: int) -> Model:
        """Returns the script of an episode of the task.

        Raises:
            UsageError: The file has no script for it.
        """
        episode = self._episodes.get(task.id) or self._episodes.get("*")
        if episode is None:
            raise UsageError(f"{self.name} has scripts for {', '.join(self._episodes)}; task {task.id!r} has none")
        return Scripted.calls(episode.calls, episode.answer)


class Company:
    """Agent with one agent for each role, such as `Company(agent=policy, user=simulator)`.

    Args:
        agents: Agents by role.
    """

    def __init__(self, **agents: Agent) -> None:
        self.name = ",".join(f"{role}={agent.name}" for role, agent in agents.items())
        self._agents: Mapping[str, Agent] = agents

    def model(self, task: Task[Any], seed: int) -> Model:
        """Returns a model that asks, for each role, the model of that role's agent."""
        return Cast(**{role: agent.model(task, seed) for role, agent in self._agents.items()})

    async def aclose(self) -> None:
        """Closes those agents that can be."""
        for agent in self._agents.values():
            await _close(agent)


def oracle(*, harness: Harness | None = None) -> Agent:
    """Plays each task's own solution; with a harness also its simulated user, who is silent."""
    return Oracle(harness)


def noop() -> Agent:
    """Says nothing and calls nothing."""
    return Fixed(Noop(), "noop")


def script(path: str) -> Agent:
    """Plays the calls in a JSON file."""
    return Script(path)


def random(*, calls: int = 8) -> Agent:
    """Makes at most `calls` valid calls drawn from the schemas, then answers."""
    return Fixed(Random(calls), "random")


def openai(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    retries: int = 4,
    timeout_s: float = 600.0,
    backoff_s: float = 0.5,
    tokens: bool | None = None,
    max_reply_bytes: int = 50_000_000,
    extra: dict[str, Any] | None = None,
) -> Agent:
    """Returns the model `name` of an OpenAI-compatible endpoint as an agent; arguments as for `OpenAI`."""
    model = OpenAI(
        name,
        base_url=base_url,
        api_key=api_key,
        retries=retries,
        timeout_s=timeout_s,
        backoff_s=backoff_s,
        tokens=tokens,
        max_reply_bytes=max_reply_bytes,
        extra=extra,
    )
    return Fixed(model, f"openai:{name}")


@runtime_checkable
class _Closes(Protocol):
    async def aclose(self) -> None: ...


async def _close(owner: object) -> None:
    if isinstance(owner, _Closes):
        await owner.aclose()
