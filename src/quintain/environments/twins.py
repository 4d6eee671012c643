"""Twins: an environment with one planted bug, to measure the findings of an audit and what a model learns from the bug.

A twin is the sound environment with one component replaced: a tool, a criterion, the prompt, or where its tasks start.
It has the same tasks, solutions and limits, and its own name (`sales_stale_cache`), so that its traces differ from
those of the sound environment. The bugs of an environment lie in its package `twins`, one module a class, or in one
module `twins`. A module is imported on first use.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import msgspec

import quintain as qn
from quintain import resource
from quintain.errors import UsageError
from quintain.verifier import Criterion

P = ParamSpec("P")
R = TypeVar("R")
W = TypeVar("W", bound=qn.State)

CLASSES = (
    "stale_cache",
    "reward_hack",
    "false_resolution",
    "silent_default",
    "reset_leak",
    "reward_clipping",
    "data_realism",
    "action_drift",
)
"""Kinds of bugs of which an environment with twins has one each."""


def maker(sound: qn.Environment[Any], package: str) -> Callable[..., qn.Environment[Any]]:
    """Returns the function by which a plugin makes the sound environment, or a twin of it.

    Args:
        sound: The environment without a planted bug.
        package: Dotted name of the package with a module for each twin, or of the module with the table `TWINS`.
    """

    def make(*, twin: str = "") -> qn.Environment[Any]:
        """Returns the environment, or the twin with this class of bug.

        Raises:
            UsageError: No such class.
        """
        if twin and twin not in CLASSES:
            raise UsageError(f"unknown twin {twin!r}; known: {', '.join(CLASSES)}")
        if not twin:
            return sound
        table: dict[str, qn.Environment[Any]] | None = getattr(importlib.import_module(package), "TWINS", None)
        return importlib.import_module(f"{package}.{twin}").env if table is None else table[twin]

    return make


def poisoned(
    sound: qn.Environment[Any],
    twin: str,
    *,
    state: type[qn.State] | None = None,
    criterion: Criterion[Any] | None = None,
    harness: qn.Harness | None = None,
    spoil: Callable[[qn.Task[Any], Any], None] | None = None,
) -> qn.Environment[Any]:
    """The sound environment with something replaced.

    Args:
        sound: What the twin is equal to, but for the rest of the arguments.
        twin: The class of the bug.
        state: A subclass of the world's class, with the same fields and further ones that have defaults.
        criterion: Takes the place of the trajectory-level criterion of its name.
        harness: Takes the place of the harness.
        spoil: Changes the world, its second argument, in which a task starts.
    """
    kind = state or sound.state

    def retold(split: str) -> qn.Tasks[Any]:
        tasks = sound.tasks(split)

        def make(index: int) -> qn.Task[Any]:
            task = tasks[index]
            # Built when first asked for, as by the sound environment; the members of a group share it.
            start = functools.cache(functools.partial(_started, task, kind, spoil))
            return msgspec.structs.replace(task, start=start) if state or spoil else task

        return qn.Tasks(len(tasks), make)

    return qn.Environment(
        f"{sound.name}_{twin}",
        tasks=retold,
        harness=harness or sound.harness,
        verifier=_with(sound.verifier, criterion) if criterion else sound.verifier,
        state=kind,
        config=sound.config,
        splits=sound.splits,
    )


def in_place_of(sound: Callable[Concatenate[Any, P], R]) -> Callable[[Callable[Concatenate[Any, P], R]], Any]:
    """A tool that takes the place of another one under its name, description and schema."""

    def wrap(method: Callable[Concatenate[Any, P], R]) -> Any:
        return qn.tool(functools.wraps(sound)(method))

    return wrap


def verdict(sound: Criterion[W], outcome: qn.EpisodeView[W]) -> qn.Score:
    """Returns the score of the criterion that another one replaces."""
    return cast(qn.Score, sound.fn(outcome))


def _started(task: qn.Task[Any], kind: type[W], spoil: Callable[[qn.Task[Any], W], None] | None) -> W:
    """A task's world as one of another class with the same fields."""
    plain, held = resource.split(task.world())
    world = resource.join(kind, plain, [one.fork() for one in held])
    if spoil is not None:
        spoil(task, world)
    return world


def _with(sound: qn.Verifier[Any], criterion: Criterion[Any]) -> qn.Verifier[Any]:
    """A verifier with another criterion in the place of the one of its name."""
    criteria = [criterion if one.name == criterion.name else one for one in sound.criteria]
    return qn.Verifier(*criteria, combine=cast(Any, sound.combine))
