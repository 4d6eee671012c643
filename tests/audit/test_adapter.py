"""Subjects in the forms that authors write, and the adapter's one form for them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.audit.kernel.adapter import (
    SubjectAdapter,
    ToolSpec,
    how_raised,
    plain,
    verdict,
    where_raised,
    with_text_keys,
)
from quintain.audit.kernel.probe import Op, answer, call
from quintain.errors import ToolError, UsageError

WHOLE: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "string"}}}
INTEGERS = st.integers(-(2**63), 2**64 - 1)
PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False) | st.text(),
    lambda one: st.lists(one) | st.dictionaries(st.text(), one),
    max_leaves=6,
)


class Named(NamedTuple):
    id: str


class Subject:
    def __init__(self, **methods: Any) -> None:
        for name, value in {"tasks": ["a"], "reset": "hello", "score": 1.0, **methods}.items():
            setattr(self, name, self._giving(value) if name not in {"absent", "volatile"} else value)

    @staticmethod
    def _giving(value: Any) -> Callable[..., Any]:
        return lambda *_: value


def test_missing_methods_are_named_in_the_error() -> None:
    class Half:
        def tasks(self) -> list[str]:
            return []

    with pytest.raises(UsageError, match="a subject needs the methods tasks, reset, score; Half has no reset, score"):
        SubjectAdapter(Half())


@pytest.mark.parametrize("name", ["tasks", "reset", "score"])
def test_async_methods_are_refused(name: str) -> None:
    async def later(*_: Any) -> Any:
        return []

    subject = Subject()
    setattr(subject, name, later)
    with pytest.raises(UsageError, match=f"Subject.{name} is async, and no method of a subject is"):
        SubjectAdapter(subject)


def test_tasks_may_be_an_iterator_but_not_an_endless_one() -> None:
    assert list(SubjectAdapter(Subject(tasks=iter(["a", "b"]))).tasks) == ["a", "b"]
    with pytest.raises(UsageError, match=r"tasks\(\) lists more than 1,000,000, perhaps without end"):
        _ = SubjectAdapter(Subject(tasks=itertools.count())).tasks


def test_offers_are_the_methods_that_are_not_declared_absent() -> None:
    adapter = SubjectAdapter(Subject(state={}, snapshot=1, absent=("snapshot",)))
    assert adapter.offers == {"tasks", "reset", "score", "state"}
    assert adapter.tools() == ()
    assert adapter.oracle("a") is None


def test_tasks_keep_their_objects_by_name() -> None:
    listed = ["a", {"id": 7}, {"name": "n"}, {"task_id": "t"}, Named("x"), 3]
    adapter = SubjectAdapter(Subject(tasks=listed))
    assert list(adapter.tasks) == ["a", "7", "n", "t", "x", "task 5"]
    assert adapter.task("7") is listed[1]
    with pytest.raises(UsageError, match=r"no task 'z'; tasks\(\) lists a, 7, n, t, x"):
        adapter.task("z")
    with pytest.raises(UsageError, match="two tasks of one name: 'a'"):
        _ = SubjectAdapter(Subject(tasks=["a", {"id": "a"}])).tasks


@pytest.mark.parametrize(
    "form",
    [
        [{"name": "f", "description": "F.", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}],
        [
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "description": "F.",
                    "parameters": {"x": {"type": "string", "required": False}},
                },
            }
        ],
        [
            {
                "name": "f",
                "description": "F.",
                "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}},
            }
        ],
        {"f": {"description": "F.", "input_schema": {"x": {"type": "string", "optional": True}}}},
    ],
)
def test_tools_are_read_in_all_known_forms(form: Any) -> None:
    (tool,) = SubjectAdapter(Subject(tools=form)).tools()
    assert tool == ToolSpec("f", "F.", WHOLE)
    assert (tool.required, list(tool.properties)) == ([], ["x"])


def test_a_tool_of_unknown_form_is_refused() -> None:
    assert SubjectAdapter(Subject(tools=["f"])).tools() == (ToolSpec("f"),)
    with pytest.raises(UsageError, match=r"tools\(\) gave 3"):
        SubjectAdapter(Subject(tools=[3])).tools()


def test_oracle_steps_become_ops() -> None:
    steps: list[Any] = [["f", {"x": 1}], ("g",), {"name": "h", "arguments": {}}, {"tool": "i", "args": {"y": 2}},
                        {"answer": "yes"}, ["answer", "no"], "done"]  # fmt: skip
    wanted: list[Op] = [call("f", {"x": 1}), call("g"), call("h"), call("i", {"y": 2}), answer("yes"), answer("no"),
                        answer("done")]  # fmt: skip
    assert SubjectAdapter(Subject(oracle=steps)).oracle("a") == wanted
    assert SubjectAdapter(Subject(oracle=None)).oracle("a") is None
    for step in (3, ["f", 3], {"x": 1}, ["f", {}, 1], []):
        with pytest.raises(UsageError, match="a step of an oracle is"):
            SubjectAdapter(Subject(oracle=[step])).oracle("a")


@pytest.mark.parametrize(
    ("score", "wanted"),
    [
        (None, None), (1, {"score": 1.0}), (True, {"score": 1.0}), ({"score": 0.5, "a": 1}, {"score": 0.5, "a": 1}),
        ({"reward": 1}, {"score": 1.0}), ({"total": 2, "a": 1}, {"score": 2.0, "a": 1}), ("high", {"score": "high"}),
        ({"a": 1}, {"score": None, "a": 1}), ({"score": None}, {"score": None}),
    ],
)  # fmt: skip
def test_a_score_becomes_a_number_with_components(score: Any, wanted: Any) -> None:
    assert verdict(score) == wanted


def test_a_score_that_is_not_a_number_stays_visible() -> None:
    found = verdict(float("nan"))
    assert found is not None
    assert math.isnan(found["score"])


def test_plain_data_is_unchanged_and_other_values_become_text() -> None:
    assert plain({"a": [1, None, True, 1.5, "x"]}) == ({"a": [1, None, True, 1.5, "x"]}, False)
    assert plain({"a": (2**70, 1)}) == ({"a": [str(2**70), 1]}, False)
    value, odd = plain({"a": object()})
    assert odd
    assert value["a"].startswith("<object> <object object")
    loop: list[Any] = []
    loop.append(loop)
    for strange in (loop, "\ud800", lambda: None):
        found, odd = plain(strange)
        assert odd
        assert isinstance(found, str)


def test_keys_become_text_without_collisions() -> None:
    assert with_text_keys([{3: {True: 1}}, 5]) == [{"3": {"True": 1}}, 5]
    assert with_text_keys({1: "a", "1": "b"}) == {"1": "a", "'1'": "b"}


@given(PLAIN)
def test_plain_data_is_its_own_plain_form(value: Any) -> None:
    assert plain(value) == (value, False)


def _raised(act: Callable[[], Any]) -> BaseException:
    with pytest.raises(BaseException) as info:  # noqa: PT011 (whatever it is, it is looked at)
        act()
    return info.value


def _on_purpose(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


class MyToolError(Exception):
    pass


@pytest.mark.parametrize(
    ("act", "how"),
    [
        (_on_purpose(ValueError("no")), "refused"), (_on_purpose(KeyError("no")), "refused"),
        (_on_purpose(PermissionError("no")), "refused"), (_on_purpose(ToolError("no")), "refused"),
        (_on_purpose(MyToolError("no")), "refused"), (_on_purpose(RuntimeError("no")), "crashed"),
        (_on_purpose(TypeError("no")), "crashed"), (lambda: dict[str, int]()["x"], "crashed"),
        (lambda: [1].index(2), "crashed"), (lambda: int("x"), "crashed"), (lambda: 1 // 0, "crashed"),
    ],
)  # fmt: skip
def test_a_deliberate_exception_is_a_refusal(act: Callable[[], Any], how: str) -> None:
    error = _raised(act)
    assert how_raised(error) == how
    assert where_raised(error).startswith(__file__)


def test_a_helper_with_the_name_of_a_method_is_refused() -> None:
    class Quiz:
        def tasks(self) -> list[str]:
            return ["sum"]

        def reset(self, task: str, seed: int) -> str:
            return "What is 1 + 1?"

        def answer(self) -> int:
            return 2

        def score(self) -> float:
            return 0.0

    with pytest.raises(UsageError, match=r"answer\(text\) is a method of a subject, and Quiz has answer\(\)"):
        SubjectAdapter(Quiz())

    class Named(Quiz):
        absent = ("answer",)

    assert "answer" not in SubjectAdapter(Named()).offers
