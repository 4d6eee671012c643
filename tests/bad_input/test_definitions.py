"""Definition errors: the message says what was given and what was expected."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
import pytest

import quintain as qn
from quintain.errors import DefinitionError, EpisodeError, author_frames, describe
from quintain.models import Scripted


class Library(qn.State):
    lent: dict[str, str] = {}


class Locked(qn.State):
    lock: threading.Thread | None = None


class Wrong(qn.State):
    lock: threading.Lock = threading.Lock()  # the mistake


class Room(msgspec.Struct):
    beds: dict[tuple[int, int], str] = {}


class Hotel(qn.State):
    rooms: dict[str, Room] = {}


class Numbered(qn.State):
    shelf: dict[int, str] = {}


class Sharing(qn.State):
    HOURS: ClassVar[list[int]] = [9, 17]
    typed: list[str] = []
    got = []  # type: ignore[var-annotated]  # the mistake


class Street(qn.State):
    shop: Sharing


class Selfless(qn.State):
    @qn.tool
    def lend(book: str) -> str:  # type: ignore[misc]  # noqa: N805  # the mistake
        """Lend a book.

        Args:
            book: Its title.
        """
        return book


class Vague(qn.State):
    @qn.tool
    def look(self) -> Any:
        """Look."""
        return object()


@qn.reward
def lent(outcome: qn.EpisodeView[Any]) -> float:
    return 1.0


def plain(outcome: qn.EpisodeView[Any]) -> float:
    return 1.0


def raising(split: str) -> list[qn.Task[Any]]:
    raise ValueError("no data")


def environment(**changed: Any) -> qn.Environment[Any]:
    given: dict[str, Any] = {
        "name": "library",
        "tasks": lambda split: [task()],
        "harness": qn.ToolLoop(),
        "verifier": qn.Verifier(lent),
        "state": Library,
    }
    return qn.Environment(**given | changed)


def task(**changed: Any) -> qn.Task[Any]:
    given: dict[str, Any] = {"id": "t", "prompt": "Lend it.", "start": Library()}
    return qn.Task(**given | changed)


VERIFIER: Any = qn.Verifier
REWARD: Any = qn.reward

MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "name": (lambda: environment(name="my library"), "must be an identifier, got 'my library'"),
    "verifier is a criterion": (lambda: environment(verifier=lent), "as Verifier(criterion), got Criterion("),
    "verifier is a function": (lambda: environment(verifier=plain), "must be a Verifier, as Verifier("),
    "undecorated function": (lambda: VERIFIER(plain), "; put @reward above plain"),
    "criterion is text": (lambda: VERIFIER("lent"), "@reward or @phase, got 'lent'; pass them one by one, as"),
    "criteria in a list": (lambda: VERIFIER([lent]), "; pass them one by one, as Verifier(one, other)"),
    "unknown combine": (lambda: VERIFIER(lent, combine="mean"), "'sum' or 'product', got 'mean'; weights of 1/n make"),
    "no criterion": (VERIFIER, "nothing judges the whole trajectory"),
    "same criterion twice": (lambda: VERIFIER(lent, lent), "distinct names, got ['lent', 'lent']"),
    "state is dict": (lambda: environment(state=dict), "must be a subclass of State, got <class 'dict'>"),
    "state is an object": (lambda: environment(state=Library()), "must be a subclass of State, got Library("),
    "field of a foreign class": (lambda: environment(state=Locked), "of Locked is <class 'threading.Thread'>"),
    "field of no type": (lambda: environment(state=Wrong), "field 'lock' of Wrong is <built-in function"),
    "keys are numbers": (lambda: environment(state=Numbered), "'shelf' of Numbered is dict[int, str]; a state"),
    "keys are tuples inside": (lambda: environment(state=Hotel), "'rooms' of Hotel is dict[tuple[int, int], str]; a"),
    "list without a type": (lambda: environment(state=Sharing), "Sharing.got has no type, so all episodes share it"),
    "list without a type in a part": (lambda: environment(state=Street), "annotate it to make it a field, or with"),
    "harness is a class": (lambda: environment(harness=qn.ToolLoop), "must be an object, as ToolLoop(), got <class"),
    "config is a dict": (lambda: environment(config={"max_turns": 5}), "must be a Config, got {'max_turns': 5}"),
    "tasks is a list": (lambda: environment(tasks=[]), "must be a function from the name of a split"),
    "tasks returns None": (lambda: environment(tasks=print).tasks("test"), "returned None, expected Tasks"),
    "tasks raises": (lambda: environment(tasks=raising).tasks("test"), "ValueError: no data, in raising (tests/"),
    "unknown level": (lambda: REWARD(level="episode"), "got 'episode'"),
    "range upside down": (lambda: REWARD(low=1, high=0)(plain), "low < high"),
    "prompt is a number": (lambda: task(prompt=5), "prompt must be text or blocks, got 5"),
    "solution is one call": (lambda: task(solution=("lend", {})), "its call 'lend' is not"),
    "tool without self": (lambda: environment(state=Selfless), "the first parameter of a tool is self, got 'book'"),
    "truth is an object": (lambda: asyncio.run(task(truth=object()).digest(Library())), "truth must be plain data ("),
    "world is an object": (lambda: asyncio.run(task().digest(object())), "task 't': "),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_definition_error_says_what_was_given_and_what_was_expected(
    mistake: str, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    monkeypatch.chdir(pytestconfig.rootpath)
    make, words = MISTAKES[mistake]
    with pytest.raises(DefinitionError) as caught:
        make()
    assert words in str(caught.value)


class Indexed(msgspec.Struct):
    """Plain data, with a cache of the class."""

    number: int = 0
    hits: ClassVar[dict[tuple[int, int], str]] = {}


class Office(qn.State):
    """A state that holds it."""

    index: Indexed = msgspec.field(default_factory=Indexed)


def test_a_class_variable_may_have_any_type() -> None:
    assert environment(state=Office).name


def test_an_unknown_option_of_reward_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'max'"):
        REWARD(max=2)


def test_a_tool_that_returns_no_data_is_named() -> None:
    look = task(start=Vague())
    record = asyncio.run(qn.rollout(environment(state=Vague), look, Scripted.calls([("look", {})])))
    assert record.trace.failure is not None
    assert record.trace.failure.message.startswith("tool 'look' must return data, got <object object at 0x")


def test_frames_come_from_the_cause_unless_the_error_was_raised_on_purpose() -> None:
    def fail(error: Exception) -> None:
        try:
            raise KeyError("x")  # noqa: TRY301  # its frame is what is looked for
        except KeyError as cause:
            error.__cause__ = cause

    late, judged = TimeoutError("late"), EpisodeError("no verdict", component="V", kind="judge_failed")
    fail(late)
    fail(judged)
    (frame,) = author_frames(late)
    assert (frame.function, frame.code.partition("  ")[0]) == ("fail", 'raise KeyError("x")')
    assert describe("late", (frame,)).startswith("late, in fail (")
    assert author_frames(judged) == ()
    assert describe("no verdict", ()) == "no verdict"
