"""E is a value: what does not fit together is refused, and a benchmark names all that a number depends on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.environment import Benchmark
from quintain.harness import Model


class Drawer(qn.State):
    pens: int = 0


class Desk(qn.State):
    drawer: Drawer

    @qn.tool
    def take(self) -> int:
        """Take a pen."""
        self.drawer.pens -= 1
        return self.drawer.pens


@qn.reward
def took_one(outcome: qn.EpisodeView[Desk]) -> float:
    return float(outcome.state.drawer.pens == 1)


def desk(pens: int = 2) -> Desk:
    return Desk(drawer=Drawer(pens=pens))


def tasks(split: str) -> Iterator[qn.Task[Desk]]:
    for n in range(3):
        yield qn.Task(id=f"{split}-{n}", prompt="Take one.", start=desk(n), truth=n)


def make(**parts: Any) -> qn.Environment[Desk]:
    fields: dict[str, Any] = {
        "tasks": tasks,
        "harness": qn.ToolLoop(system="Be brief."),
        "verifier": qn.Verifier(took_one),
        "state": Desk,
    }
    fields |= {"name": "desk"} | parts
    return qn.Environment(**fields)


class Loop:
    """Harness that is not a Struct."""

    def __init__(self, system: str, model: object = None) -> None:
        self.system = system
        self.model = model

    async def play(self, session: qn.Session, model: Model) -> None:
        raise NotImplementedError


class Bigger(Desk):
    @qn.tool
    def put(self) -> None:
        """Put a pen back."""


# --- putting it together


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"name": "my desk"}, "an environment's name must be an identifier, got 'my desk'"),
        ({"name": ""}, "an environment's name must be an identifier, got ''"),
        ({"splits": ()}, "environment 'desk' has no splits"),
        (
            {"tasks": [1]},
            "tasks of environment 'desk' must be a function from the name of a split to its tasks, got [1]",
        ),
        (
            {"harness": qn.ToolLoop},
            "harness of environment 'desk' must be an object, as ToolLoop(), got <class 'quintain.harness.ToolLoop'>",
        ),
        ({"verifier": 1}, "verifier of environment 'desk' must be a Verifier, as Verifier(criterion), got 1"),
        ({"state": int}, "state of environment 'desk' must be a subclass of State, got <class 'int'>"),
    ],
)
def test_mismatched_components_are_refused(parts: dict[str, Any], says: str) -> None:
    with pytest.raises(qn.DefinitionError) as raised:
        make(**parts)
    assert str(raised.value) == says


def test_a_bad_tool_is_found_when_the_environment_is_built() -> None:
    class Mute(qn.State):
        @qn.tool
        def go(self) -> None: ...

    with pytest.raises(qn.DefinitionError, match="tool 'go' of Mute has no docstring"):
        make(state=Mute)


def test_tasks_of_a_split_are_made_once() -> None:
    calls: list[str] = []

    def counted(split: str) -> Iterator[qn.Task[Desk]]:
        calls.append(split)
        return tasks(split)

    env = make(tasks=counted)
    assert calls == []
    assert [task.id for task in env.tasks("test")] == ["test-0", "test-1", "test-2"]
    assert env.tasks("test") is env.tasks("test")
    assert env.replace(config=qn.Config()).tasks("test") is env.tasks("test")
    assert calls == ["test"]


def test_a_lazy_sequence_stays_lazy() -> None:
    lazy = qn.Tasks(10**9, lambda n: qn.Task(id=str(n), prompt="", start=desk()))
    env = make(tasks=lambda split: lazy)
    assert env.tasks("train") is lazy
    assert env.task("train", "7") is not env.task("train", "7")
    assert env.task("train", "3").id == "3"
    assert env.task("train", "9").id == "9"


def test_a_task_is_found_by_its_id() -> None:
    env = make()
    assert [env.task("test", f"test-{n}").truth for n in (2, 0, 1, 2)] == [2, 0, 1, 2]
    for _ in range(2):
        with pytest.raises(qn.errors.UsageError, match="split 'test' of desk has no task 'train-0'"):
            env.task("test", "train-0")


def test_an_unknown_split_is_answered_with_the_known_ones() -> None:
    with pytest.raises(qn.errors.UsageError) as raised:
        make().tasks("tset")
    assert str(raised.value) == "desk has no split 'tset'; it has train, validation, test"
    assert make(splits=("all",)).tasks("all")


def test_tasks_that_raise_are_their_authors_mistake() -> None:
    def broken(split: str) -> Iterator[qn.Task[Desk]]:
        yield from tasks(split)
        raise KeyError("no file")

    with pytest.raises(qn.DefinitionError) as raised:
        make(tasks=broken).tasks("test")
    assert re.fullmatch(r"tasks\('test'\) of desk raised KeyError: 'no file', in broken \(.*\)", str(raised.value))


# --- benchmarks


def frozen(**parts: Any) -> Benchmark:
    return asyncio.run(make(**parts).freeze("test"))


def test_a_benchmark_names_everything_a_number_depends_on() -> None:
    one = frozen()
    assert (one.environment, one.split, one.tasks, one.criteria) == ("desk", "test", 3, ("took_one",))
    assert one == frozen()
    assert one.digest == frozen().digest

    def fewer(split: str) -> list[qn.Task[Desk]]:
        return list(tasks(split))[:2]

    def reversed_(split: str) -> list[qn.Task[Desk]]:
        return list(tasks(split))[::-1]

    def edited(split: str) -> Iterator[qn.Task[Desk]]:
        for task in tasks(split):
            yield msgspec.structs.replace(task, start=desk(9))

    others = [
        frozen(tasks=fewer),
        frozen(tasks=reversed_),
        frozen(tasks=edited),
        frozen(config=qn.Config(max_turns=3)),
        frozen(harness=Loop("x")),
        frozen(state=Bigger),
        asyncio.run(make().freeze("train")),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 8


def test_an_int_and_a_float_are_the_same_benchmark() -> None:
    assert frozen(config=qn.Config(temperature=0)).digest == frozen(config=qn.Config(temperature=0.0)).digest
