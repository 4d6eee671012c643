"""Tasks are made when they are asked for, and named by what is in them."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import quintain as qn
from quintain.harness import Request
from quintain.replay import replay
from quintain.trace import Reply

from .worlds import Yard, blamed, call, environment, fine, first_task, one_by_one, play, says, script


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


# --- the tools of a task ---


def test_the_digest_names_the_tools_of_a_task_in_any_order() -> None:
    own = [digest(task(tools=tools)) for tools in (None, (), ("note",), ("note", "put"))]
    assert len(set(own)) == 4
    assert digest(task()) == own[0]
    assert digest(task(tools=("put", "note"))) == own[3]


def offering(*tools: str) -> qn.Environment[Any]:
    def tasks(split: str) -> list[qn.Task[Any]]:
        return [qn.Task(id="t", prompt="Go.", start=Yard(), tools=tools)]

    return environment(fine, tasks=tasks)


def test_an_agent_sees_and_calls_only_the_tools_of_its_task() -> None:
    env, offered = offering("put", "note", "leave"), list[list[str]]()

    async def model(request: Request) -> Reply:
        offered.append([tool.name for tool in request.tools])
        return says(call("note", text="a"), call("nod"), call("leave")) if len(offered) == 1 else says(text="done")

    trace = play(env, model)
    assert offered == [["note", "put"], ["note", "put"]]
    first, *refused = trace.turns[0].steps
    assert (first.observation, first.is_error) == ("1", False)
    (unknown,) = play(env, one_by_one(call("fly"))).turns[0].steps
    assert [str(step.observation).replace(step.call.name, "fly") for step in refused] == [unknown.observation] * 2
    assert all(step.is_error for step in refused)
    assert asyncio.run(replay(env, first_task(env), trace)).to_bytes() == trace.to_bytes()


def test_tools_of_a_task_hold_for_other_actors_forks_and_restored_episodes() -> None:
    env = offering("note", "leave")

    async def sessions() -> list[list[str]]:
        episode = await qn.Episode[Any].begin(env, first_task(env))
        episode.session.add_actor("user")
        restored = await qn.Episode[Any].restore(env, first_task(env), await episode.snapshot())
        all_sessions = (*episode.sessions, *restored.sessions, *(await episode.fork()).sessions)
        return [[tool.name for tool in session.tools] for session in all_sessions]

    assert asyncio.run(sessions()) == [["note"], ["leave"]] * 3
    assert env.tool_of("agent", "nod") is not None


def test_the_environment_for_a_task_is_the_same_one_for_the_next_task() -> None:
    env = offering("note")
    own = env.for_task(first_task(env))
    assert own.for_task(first_task(env)) is own
    assert own.for_task(task()).tools_of("agent") == env.tools_of("agent")
    assert (own.fingerprint, own.tools_digest) == (env.fingerprint, env.tools_digest)


def test_a_task_with_a_tool_that_the_environment_lacks_is_refused() -> None:
    env = offering("note", "fly", "dig")
    words = "task 't' offers ['dig', 'fly']; yard has only note, roll"
    with pytest.raises(qn.DefinitionError, match=re.escape(words)):
        asyncio.run(qn.Episode[Any].begin(env, first_task(env)))
    failure = blamed(play(env, script()))
    assert (failure.component, failure.type) == ("T", "DefinitionError")
    assert words in failure.message
