"""Tasks are made when they are asked for, and named by what is in them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn


class Counter(qn.State):
    count: int = 0


def task(n: int = 0, **fields: Any) -> qn.Task[Counter]:
    return qn.Task(id=f"t{n}", prompt="count", start=Counter(count=n), **fields)


def digest(one: qn.Task[Counter]) -> str:
    return asyncio.run(one.digest(one.world()))


COUNTS = st.integers(0, 20)
INDICES = st.none() | st.integers(-25, 25)
SLICES = st.builds(slice, INDICES, INDICES, INDICES.filter(lambda step: step != 0))


@given(COUNTS, st.lists(SLICES, max_size=3))
def test_lazy_tasks_slice_like_a_list(count: int, slices: list[slice]) -> None:
    tasks: Any = qn.Tasks(count, task)
    names: Any = [f"t{n}" for n in range(count)]
    for one in slices:
        tasks, names = tasks[one], names[one]
    assert isinstance(tasks, qn.Tasks)
    assert len(tasks) == len(names)
    assert [one.id for one in tasks] == names
    assert [tasks[i].id for i in range(-len(names), len(names))] == [*names, *names]
    assert [one.id for one in reversed(tasks)] == names[::-1]
    for beyond in (len(names), -len(names) - 1):
        with pytest.raises(IndexError):
            tasks[beyond]


def test_a_task_is_made_only_when_it_is_asked_for() -> None:
    made: list[int] = []

    def make(n: int) -> qn.Task[Counter]:
        made.append(n)
        return task(n)

    tasks = qn.Tasks(10**9, make)
    assert tasks[999_999_999].id == "t999999999"
    assert tasks[5:][2:4][-1].id == "t8"
    assert next(iter(tasks)).id == "t0"
    assert made == [999_999_999, 8, 0]


def test_a_world_may_be_given_or_made() -> None:
    given_ = task(3)
    assert given_.world() is given_.start
    made = msgspec.structs.replace(given_, start=lambda: Counter(count=3))
    assert made.world() == given_.world()
    assert digest(made) == digest(given_)


DIFFERENT: list[dict[str, Any]] = [
    {},
    {"id": "other"},
    {"prompt": "count!"},
    {"start": Counter(count=1)},
    {"truth": 1},
    {"truth": [1]},
    {"truth": {"a": 1}},
    {"solution": ()},
    {"solution": (("go", {}),)},
    {"solution": (("go", {"a": 1}),)},
    {"answer": "ok"},
    {"roles": {"user": "You are Ann."}},
    {"tags": {"level": "easy"}},
]


def test_the_digest_names_everything_in_a_task() -> None:
    digests = [digest(msgspec.structs.replace(task(), **fields)) for fields in DIFFERENT]
    assert len(set(digests)) == len(DIFFERENT)
    assert digests == [digest(msgspec.structs.replace(task(), **fields)) for fields in DIFFERENT]
    assert all(len(one) == 32 for one in digests)


def test_the_order_of_a_truth_does_not_count() -> None:
    one, two = task(truth={"a": {"x", "y"}, "b": 2}), task(truth={"b": 2, "a": {"y", "x"}})
    assert digest(one) == digest(two)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"truth": object()}, "object"),
        ({"truth": {1: "a"}}, "str keys"),
        ({"solution": (("go", {"a": print}),)}, "builtin"),
    ],
)
def test_a_task_that_is_not_plain_data_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(qn.DefinitionError, match=rf"task 't0': .*{says}"):
        digest(task(**fields))
