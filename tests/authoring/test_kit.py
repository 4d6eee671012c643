"""Tests of the authoring kit: what it remembers, how it numbers tasks, and how it scores."""

from __future__ import annotations

import functools
import gc
import weakref
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain import authoring
from quintain.authoring.memory import MAX_RESULTS_PER_TASK


class Shelf(qn.State):
    """Numbers in a table."""

    numbers: qn.Table[int]


class Job(authoring.Draft[Shelf]):
    """A task about one number."""

    def world(self) -> Shelf:
        return Shelf(numbers=qn.Table(int, {"a": self.rng.below(1000)}))


class Value(msgspec.Struct, frozen=True, tag=True):
    """A number has a value."""

    key: str
    value: int

    def missing(self, world: Shelf, start: Shelf, /) -> str:
        del start
        return "" if world.numbers[self.key] == self.value else f"{self.key} is not {self.value}"


def add(job: Job) -> str:
    job.request = "Add."
    job.play("add", number=1)
    return "added"


def remove(job: Job) -> str:
    job.request = "Remove."
    return "removed"


def tasks(split: str) -> qn.Tasks[Shelf]:
    families: dict[str, Any] = {"add": add, "both": dict.fromkeys(authoring.LEVELS, (add, remove))}
    return authoring.generated("shelf", Job, families, counts={"train": 100, "test": 10})(split)


def task(*goals: Value) -> qn.Task[Shelf]:
    return qn.Task(id="t", prompt="", start=Shelf(numbers=qn.Table(int, {"a": 1, "b": 2})), truth=goals)


def world(**numbers: int) -> Shelf:
    return Shelf(numbers=qn.Table(int, numbers))


def test_families_alternate_then_levels_then_variants() -> None:
    made = [tasks("train")[index] for index in range(14)]
    assert [one.tags["family"] for one in made[:4]] == ["add", "both", "add", "both"]
    assert [one.tags["level"] for one in made[:6]] == ["easy", "easy", "medium", "medium", "hard", "hard"]
    assert [one.tags.get("variant") for one in made[:2]] == [None, "add"]
    assert made[7].tags == {"family": "both", "level": "easy", "variant": "remove"}
    assert len(tasks("test")) == 10


def test_a_task_is_a_function_of_its_split_and_number() -> None:
    first, again, other = tasks("train")[0], tasks("train")[0], tasks("test")[0]
    assert first.world() == again.world() != other.world()
    assert first.world() is first.world()
    assert (first.solution, first.answer) == ((("add", {"number": 1}),), "added")


def test_a_draft_without_a_world_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"Draft has to define world\(\)"):
        authoring.Draft(b"key").world()


def test_goals_are_evaluated_once_for_equal_worlds() -> None:
    asked: list[int] = []

    class Counted(Value, frozen=True, tag=True):
        def missing(self, world: Shelf, start: Shelf, /) -> str:
            asked.append(world.numbers["a"])
            return super().missing(world, start)

    checklist, job = authoring.Checklist[Shelf](), task(Counted("a", 5))
    assert checklist.missing(job, world(a=4)) == checklist.missing(job, world(a=4)) == ("a is not 5",)
    assert checklist.reasons(job, world(a=5)) == []
    assert asked == [4, 5]
    assert checklist.missing(task(Counted("a", 4)), world(a=4)) == ("",)


def test_progress_counts_goals_that_are_reached_and_undone() -> None:
    checklist, job = authoring.Checklist[Shelf](), task(Value("a", 5), Value("b", 2))

    def progress(before: Shelf, after: Shelf) -> qn.Score:
        view: Any = qn.TurnView(job, before, None, after)  # type: ignore[arg-type]  # progress looks at worlds only
        return checklist.progress(view)

    assert progress(world(a=1, b=2), world(a=5, b=2)) == qn.Score(0.5, "1 goals reached, 0 undone")
    assert progress(world(a=1, b=2), world(a=5, b=3)) == qn.Score(0.0, "1 goals reached, 1 undone")
    assert progress(world(a=1, b=2), world(a=1, b=2)) == qn.Score(0.0)


def test_results_of_a_task_are_dropped_with_it() -> None:
    class Found:
        pass

    def content(shelf: Shelf) -> int:
        return shelf.numbers["a"]

    @authoring.per_task(content)
    def found(_: qn.Task[Any], shelf: Shelf) -> Found:
        return Found()

    job = task()
    last = 3 * MAX_RESULTS_PER_TASK
    first, *_, newest = [weakref.ref(found(job, world(a=key))) for key in range(last + 1)]
    assert first() is None
    assert newest() is found(job, world(a=last, b=1)) is not found(task(), world(a=last))
    del job
    gc.collect()
    assert newest() is None


def test_a_goal_about_a_field_explains_its_change_alone() -> None:
    change = authoring.FieldChange(table="shelves", key="a", field="size", before=1, after=2)
    assert authoring.FieldGoal(table="shelves", key="a", field="size").allows(change)
    assert not authoring.FieldGoal(table="shelves", key="b", field="size").allows(change)
    assert not authoring.TaskGoal().allows(change)


def test_recent_results_are_bounded() -> None:
    recent: authoring.Recent[int] = authoring.Recent(2)
    assert [recent.get(key, functools.partial(int, key)) for key in (1, 2, 3)] == [1, 2, 3]
    assert [recent.get(key, lambda: 0) for key in (3, 2, 1)] == [3, 2, 0]


def test_recent_results_stay_until_there_are_too_many() -> None:
    recent: authoring.Recent[int] = authoring.Recent(100)
    for key in range(100):
        recent.get(key, functools.partial(int, key))
    assert [recent.get(key, lambda: -1) for key in range(100)] == list(range(100))


def test_a_function_of_tables_is_called_once_for_equal_tables() -> None:
    calls: list[int] = []

    @authoring.by_content(10)
    def total(table: qn.Table[int]) -> int:
        calls.append(len(table))
        return sum(table.values())

    table = qn.Table(int, {"a": 1})
    assert total(table) == total(table.fork()) == total(qn.Table(int, {"a": 1})) == 1
    table["b"] = 2
    assert total(table) == 3
    assert calls == [1, 2]


def test_content_is_equal_for_equal_worlds_only() -> None:
    assert authoring.content_of(world(a=1)) == authoring.content_of(world(a=1).copy())
    assert authoring.content_of(world(a=1)) != authoring.content_of(world(a=2))
    later = world(a=1)
    later.clock.advance(1)
    assert authoring.content_of(world(a=1)) != authoring.content_of(later)


def test_changed_fields_skip_rows_that_were_added_or_removed() -> None:
    class Row(msgspec.Struct):
        name: str
        updated: int = 0

    before, after = qn.Table(Row, {"a": Row("x"), "b": Row("y")}), qn.Table(Row, {"a": Row("z", 1), "c": Row("y")})
    found = [
        field
        for change in before.diff(after)
        for field in authoring.changed_fields("rows", change.key, change, ignored=("updated",))
    ]
    assert found == [authoring.FieldChange(table="rows", key="a", field="name", before="x", after="z")]
    assert authoring.unexplained(found, ()) == found


def test_a_breach_costs_once() -> None:
    clean, careless = authoring.Breaches([], []), authoring.Breaches([], ["late"])
    forbidden = authoring.Breaches(["leak"], ["late"])
    assert [authoring.lawful(one).value for one in (clean, careless, forbidden)] == [1.0, 0.5, 0.0]
    assert authoring.lawful_step(careless, forbidden) == qn.Score(0.0, "leak")
    assert authoring.lawful_step(careless, authoring.Breaches([], ["late"])) == qn.Score(1.0)
    assert authoring.lawful_step(careless, careless) == qn.Score(1.0)


def test_scores_pay_for_whole_and_clean_work() -> None:
    assert authoring.squared(["a"], 2) == qn.Score(0.25, "a")
    assert [authoring.untouched(["x"] * count).value for count in range(4)] == [1.0, 0.5, 0.0, 0.0]
