"""Adapter for a scoring function alone: each case is a task, and the agent's last words replace the case's text.

A case is a JSON object whose keys are parameters of the function. Names may differ if their meaning is clear: "answer"
matches `prediction`, "gold" matches `reference`. `expected`, the right score, is not a parameter.
"""

from __future__ import annotations

import abc
import contextlib
import copy
import functools
import inspect
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from quintain import resource
from quintain.audit.facts.data import is_dict, is_list, is_tuple
from quintain.errors import UsageError

from . import loops
from .matching import TRUTH, Match, is_visible, matched, taken

T = TypeVar("T")
WANTED = "expected"
NAMES = ("id", "name", "task_id")  # keys of a case that may name its task


class Case(msgspec.Struct, frozen=True):
    """Case, matched to the function; `expected` is the right score of the case's own text, or None."""

    task: str
    match: Match
    expected: float | None

    @property
    def words(self) -> str:
        """Returns the case's own text, as an agent would say it."""
        said = _inside(self.match.arguments.get(self.match.text))
        return said if isinstance(said, str) else json.dumps(said)

    @property
    def rest(self) -> dict[str, Any]:
        return {name: value for name, value in self.match.arguments.items() if name != self.match.text}


def of(function: Callable[..., Any], cases: Path | Sequence[Any]) -> Callable[[], ScorerSubject]:
    """Returns a factory of sessions on a scoring function, plain or async, which returns any form that `score` may.

    Cases are JSON objects, or arrays of the arguments in order, with or without the expected score after them; a file
    has one in each line, or all in one array. Raises UsageError if a case is unreadable or does not match the
    parameters.
    """
    listed = _read(cases) if isinstance(cases, Path) else list(enumerate(cases, 1))
    if not listed:
        raise UsageError(f"{cases} has no case")
    known: dict[str, Case] = {}
    for number, one in listed:
        case = _case(function, one, number=number)
        if case.task in known:
            raise UsageError(f"case {number}: two cases have the name {case.task!r}")
        known[case.task] = case
    return functools.partial(ScorerSubject, function, known)


class AnswerSubject(abc.ABC, Generic[T]):
    """Session in which an episode is one answer, on things by task name."""

    def __init__(self, known: dict[str, T], noun: str = "task") -> None:
        self._things, self._noun = known, noun
        self._begun: T | None = None
        self._said: str | None = None

    def tasks(self) -> list[str]:
        return list(self._things)

    @abc.abstractmethod
    def prompt(self, task: str) -> str:
        """Returns what the agent sees first."""

    def reset(self, task: str, seed: int) -> str:
        self._begun, self._said = self._known(task), None
        return self.prompt(task)

    def answer(self, text: str) -> None:
        self._said = text

    def close(self) -> None:
        loops.release(self)

    @property
    def _current(self) -> T:
        if self._begun is None:
            raise UsageError("no task has begun: call reset(task, seed) first")
        return self._begun

    def _known(self, task: str) -> T:
        if task not in self._things:
            raise UsageError(f"no {self._noun} {task!r}; there are {', '.join(list(self._things)[:5])}...")
        return self._things[task]


class ScorerSubject(AnswerSubject[Case]):
    """Session on a scoring function."""

    def __init__(self, function: Callable[..., Any], cases: dict[str, Case]) -> None:
        super().__init__(cases, "case")
        self._function = function
        match = next(iter(cases.values())).match
        self.absent = ("score",) if match.needs_model else () if match.model else ("judge",)

    def cases(self) -> list[dict[str, Any]]:
        return [{"task": one.task, "answer": one.words, "expected": one.expected} for one in self._things.values()]

    def prompt(self, task: str) -> str:
        seen = [value for name, value in self._known(task).match.arguments.items() if is_visible(name)]
        return "\n\n".join(value if isinstance(value, str) else json.dumps(value) for value in seen)

    def hidden(self, task: str) -> Any:
        match = self._known(task).match
        return {name: match.arguments[name] for name in match.truth}

    def oracle(self, task: str) -> list[Any] | None:
        """Returns the best-scoring words of a case with the same truth; None without one."""
        case = self._known(task)
        best = max((one.expected for one in self._things.values() if one.expected is not None), default=0.0)
        alike = (one for one in (case, *self._things.values()) if one.expected == best > 0)
        found = next((one for one in alike if one.rest == case.rest), None)
        return None if found is None else [{"answer": found.words}]

    def score(self) -> Any:
        return self._asked(self._current, self._said or "")

    def judge(self, task: str, answer: str, complete: Callable[[str], str]) -> Any:
        case = self._known(task)
        return self._asked(case, answer, **{case.match.model: complete})

    def _asked(self, case: Case, said: str, **more: Any) -> Any:
        arguments = copy.deepcopy(case.match.arguments) | more  # A function may change what it is given.
        text, held = case.match.text, arguments.get(case.match.text)
        arguments[text] = (held if text in arguments else said) if said == case.words else _wrapped(said, held)
        values = [arguments.pop(name) for name in case.match.positional]
        spread = arguments.pop(case.match.spread) if case.match.spread else ()
        found = self._function(*values, *spread, **arguments)
        return _verdict(loops.run(self, resource.settle(found)) if inspect.isawaitable(found) else found)


def _wrapped(said: str, held: Any) -> Any:
    """Returns the words in the form of the case's own text: text, messages, a list of one, a number."""
    if is_list(held) and held:
        return [*held[:-1], _wrapped(said, held[-1])]
    if is_dict(held) and "content" in held:
        return held | {"content": said}
    if held is None or isinstance(held, str):
        return said
    try:
        parsed = json.loads(said)
    except ValueError:
        return said
    return parsed if type(parsed) is type(held) else said


def _inside(held: Any) -> Any:
    if is_list(held) and held and (isinstance(held[-1], str) or (is_dict(held[-1]) and "content" in held[-1])):
        return _inside(held[-1])
    return held["content"] if is_dict(held) and "content" in held else "" if held is None else held


def _verdict(found: Any) -> Any:
    """Returns a score in the plain form: the item of a list of one, the score of a pair, the fields of an object."""
    if (is_list(found) or is_tuple(found)) and found:
        return _verdict(found[0])
    if isinstance(found, bool):
        return float(found)
    if callable(dump := getattr(found, "model_dump", None)):
        return dump()
    named = [name for name in ("score", "reward", "value") if not is_dict(found) and hasattr(found, name)]
    return {"score": getattr(found, named[0])} if named else found


def _case(function: Callable[..., Any], one: Any, *, number: int) -> Case:
    expected: Any = None
    if is_list(one):
        names = list(taken(function))
        if len(one) == len(names) + 1:
            one, expected = one[:-1], one[-1]
        given: dict[str, Any] = {"args": one}
    elif is_dict(one):
        # It is an argument if the function has such a parameter and the case has no other right answer.
        is_argument = WANTED in taken(function) and not (one.keys() - {WANTED}) & set(TRUTH)
        given = {key: value for key, value in one.items() if key != WANTED or is_argument}
        expected = None if is_argument else one.get(WANTED)
    else:
        raise UsageError(f"case {number} is neither an object nor an array: {str(one)[:200]!r}")
    if expected is not None and not isinstance(expected, int | float):
        raise UsageError(f"case {number}: {WANTED!r} is the score that is right, a number, not {expected!r}")
    named = next((str(given[key]) for key in NAMES if isinstance(given.get(key), str | int)), f"case {number}")
    return Case(named, matched(function, given, where=f"case {number}"), None if expected is None else float(expected))


def _read(path: Path) -> list[tuple[int, Any]]:
    """Returns the cases in a file, each with its line number or its place in the array."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the cases in {str(path)!r}: {error}") from error
    with contextlib.suppress(ValueError):
        whole: Any = json.loads(text)
        if is_list(whole) and all(is_dict(one) or is_list(one) for one in whole):  # else each line is a case
            return list(enumerate(whole, 1))
    found: list[tuple[int, Any]] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            found += [(number, json.loads(line))] if line.strip() else []
        except ValueError as error:
            raise UsageError(f"{path}, line {number} is not JSON: {error}: {line[:200]!r}") from error
    return found
