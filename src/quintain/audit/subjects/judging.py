"""Judges of an environment: finds the models that its scoring functions ask, and grades answers with a stub of them.

A model is a function or object whose signature names Request and Reply, a class of such objects, and what an attribute
`model` holds. It is looked for in closures, defaults, partials, attributes, and in the globals that a function names.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import json
import re
import sys
import types
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from quintain.audit.facts.data import is_dict, leaves
from quintain.environment import Environment
from quintain.errors import is_framework
from quintain.harness import Request
from quintain.trace import Level, Message, Reply
from quintain.verifier import Criterion, Verifier

from .failure import SubjectFailure

if TYPE_CHECKING:
    from .native import NativeSubject

NAMES = {"model", "_model"}  # attributes in which a model may be that has no signature
MAX_OBJECTS = 4_000  # objects of one verifier that are searched
MAX_DEPTH = 40  # steps from a criterion to an object that is searched
MAX_SENTENCES = 3  # longest sentences of the solution's words that are replaced, one at a time
MAX_ARGUMENTS = 3  # longest texts in the solution's calls that are replaced, one at a time
PROBE = "qzxa words of the agent qzxb"  # answer that is followed to the judge's question
_SEGMENT = re.compile(
    r"^(?:\s*<[^<>\n]+>|[^\W\d_][\w ]{0,30}[:=][ \t]+)?(?P<text>[^\n]*?)(?:</[^<>\n]+>)?$", re.MULTILINE
)
_SENTENCE = re.compile(r"(?<![^\s])[A-Z]\w* (?P<text>[^.!?\n]{12,})(?=[.!?](?:\s|$))")


class Way(NamedTuple):
    """Way of an answer to the judge: calls before it, and text of the last words around it.

    `slot` is the number of the call and the argument that carry the answer instead; with `is_json` it stands in JSON
    text.
    """

    calls: Sequence[tuple[str, dict[str, Any]]] = ()
    before: str = ""
    after: str = ""
    slot: tuple[int, str] | None = None
    is_json: bool = False


class Judging:
    """Judges of an environment, with a stub in the place of each model.

    Attributes:
        env: The environment with stubs; None if no scoring function of the episode asks a model.
        paths: Names of criteria from the verifier's own to the innermost one that asks a model, for each of these.
    """

    def __init__(self, env: Environment[Any]) -> None:
        self.paths: list[tuple[str, ...]] = []
        self.env: Environment[Any] | None = None
        self._known: dict[tuple[int, tuple[str, ...]], tuple[Any, Any]] = {}
        self._complete: ContextVar[Callable[[str], str]] = ContextVar("complete")
        self._ways: dict[str, Way | None] = {}
        judged = [self._exchanged(criterion, ()) for criterion in env.verifier.criteria]
        graded = {criterion.name for criterion in env.verifier.at(Level.TRAJECTORY)}
        self.paths = [path for path in self.paths if path[0] in graded]
        self._known.clear()
        if self.paths:
            self.env = copy.copy(env)
            self.env.verifier = Verifier(*judged, combine=env.verifier.combine)

    def grade(
        self, subject: NativeSubject, task: str, answer: str, *, complete: Callable[[str], str]
    ) -> dict[str, Any] | None:
        """Returns the mean value of the criteria that ask a model, and the words that carried the answer to it.

        If the answer alone does not reach a model, it replaces a text of the solution.
        """
        if task not in self._ways:
            self._ways[task] = self._way(subject, task)
        way = self._ways[task]
        return None if way is None else self._played(subject, task, way=way, answer=answer, complete=complete)

    def _way(self, subject: NativeSubject, task: str) -> Way | None:
        """Returns the first way on which a model is shown the answer, else the first on which it is asked.

        The model fails, so that a judge remembers no verdict.
        """
        asking: list[Way] = []
        for way in _ways(subject.oracle(task)):
            asked: list[str] = []

            def fail(text: str, asked: list[str] = asked) -> str:
                asked.append(text)
                raise TimeoutError("the model is not there")

            self._played(subject, task, way=way, answer=PROBE, complete=fail)
            if any(PROBE in text for text in asked):
                return way
            asking += [way] if asked else []
        return asking[0] if asking else None

    def _played(
        self, subject: NativeSubject, task: str, *, way: Way, answer: str, complete: Callable[[str], str]
    ) -> dict[str, Any] | None:
        token = self._complete.set(complete)
        try:
            subject.reset(task, 0)
            for place, (name, arguments) in enumerate(way.calls):
                is_slot = way.slot is not None and way.slot[0] == place
                subject.call(name, arguments | ({way.slot[1]: answer} if is_slot and way.slot else {}))
            held = json.dumps(answer)[1:-1] if way.is_json else answer
            words = f"{way.before}{held}{way.after}" if way.slot is None else way.before
            subject.answer(words)
            rewards = subject.explain()
        except SubjectFailure:
            return None
        finally:
            self._complete.reset(token)
            subject.close()
        named = {reward["name"]: reward for reward in rewards if "name" in reward}
        values = [_value(named, path) for path in self.paths]
        known = [value for value in values if value is not None]
        if "kind" in rewards[-1] or len(known) < len(values):
            return None
        return {"score": sum(known) / len(known), "carried": words}

    # -- models

    def _stub_for(self, path: tuple[str, ...]) -> Callable[[Request], Awaitable[Reply]]:
        self.paths += [] if path in self.paths else [path]
        return self._stub

    async def _stub(self, request: Request) -> Reply:
        text = "\n\n".join(message.text for message in request.messages)
        return Reply(Message("assistant", self._complete.get()(text)))

    def _exchanged(self, thing: Any, path: tuple[str, ...], depth: int = 0) -> Any:
        """Returns a thing with a stub for each model in it: itself if it has none."""
        if isinstance(thing, type) and _is_model(thing):  # A scoring function that makes its model makes a stub.
            return type(thing.__name__, (thing,), {"__call__": staticmethod(self._stub_for(path))})
        if depth > MAX_DEPTH or isinstance(thing, (str, bytes, int, float, type, types.ModuleType, type(None))):
            return thing
        if _is_model(thing):
            return self._stub_for(path)
        key = (id(thing), path)
        if key not in self._known and len(self._known) < MAX_OBJECTS:
            self._known[key] = (thing, thing)
            path = (*path, thing.name) if _is(thing, Criterion) else path
            parts, build = _apart(thing)
            exchanged = {name: self._exchanged(part, path, depth + 1) for name, part in parts.items()}
            exchanged |= {name: self._stub_for(path) for name in NAMES & parts.keys() if callable(parts[name])}
            if any(exchanged[name] is not part for name, part in parts.items()):
                self._known[key] = (thing, build(exchanged))
        return self._known[key][1] if key in self._known else thing


def _is(thing: object, kind: type) -> bool:
    return isinstance(thing, kind)


def _is_model(thing: Any) -> bool:
    thing = thing.func if _is(thing, functools.partial) else thing
    kind = thing if isinstance(thing, type) else thing.__class__
    call: Any = thing if inspect.isroutine(thing) else inspect.getattr_static(kind, "__call__", None)
    notes = {name: getattr(note, "__name__", str(note)) for name, note in getattr(call, "__annotations__", {}).items()}
    gives = notes.pop("return", "")
    return bool(re.search(r"\bReply\b", gives) and re.search(r"\bRequest\b", " ".join(notes.values())))


def _apart(thing: Any) -> tuple[Mapping[Any, Any], Callable[[dict[Any, Any]], Any]]:
    """Returns the parts of a thing that may hold a model, and a function that makes a thing of others."""
    parts: Mapping[Any, Any] = {}
    build: Callable[[dict[Any, Any]], Any] = dict
    if _is(thing, functools.partial):
        parts = {"function": thing.func, "given": thing.args, "named": thing.keywords}
        build = lambda new: functools.partial(new["function"], *new["given"], **new["named"])  # noqa: E731
    elif isinstance(thing, types.MethodType):
        parts = {"function": thing.__func__, "owner": thing.__self__}
        build = lambda new: types.MethodType(*new.values())  # noqa: E731
    elif isinstance(thing, types.FunctionType):
        parts, build = _apart_function(thing)
    elif is_dict(thing) and type(thing) is dict:
        parts = thing
    elif type(thing) in (list, tuple):
        parts, build = dict(enumerate(thing)), lambda new: type(thing)(new.values())
    elif isinstance(thing, msgspec.Struct):
        parts = {name: getattr(thing, name) for name in thing.__struct_fields__}
        build = functools.partial(_replaced, thing)
    else:
        with contextlib.suppress(AttributeError):  # It has slots. An author's own __getattribute__ is not run.
            parts, build = dict(object.__getattribute__(thing, "__dict__")), functools.partial(_copy, thing)
    return parts, build


def _replaced(thing: msgspec.Struct, fields: Mapping[str, Any]) -> msgspec.Struct:
    return msgspec.structs.replace(thing, **fields)


def _copy(thing: Any, attributes: Mapping[str, Any]) -> Any:
    twin: Any = copy.copy(thing)
    twin.__dict__.update(attributes)
    return twin


def _apart_function(function: types.FunctionType) -> tuple[dict[str, Any], Callable[[dict[str, Any]], Any]]:
    codes = [function.__code__]
    for code in codes:
        codes += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]
    package = function.__module__.partition(".")[0]
    is_authored = not is_framework(package) and package not in sys.stdlib_module_names
    names = {name for code in codes for name in code.co_names} if is_authored else set[str]()
    cells = function.__closure__ or ()
    parts: dict[str, Any] = {
        "globals": {name: value for name, value in function.__globals__.items() if name in names},
        "cells": tuple(cell.cell_contents if cell != types.CellType() else types.CellType for cell in cells),
        "defaults": function.__defaults__,
        "named": function.__kwdefaults__,
    }

    def build(new: dict[str, Any]) -> types.FunctionType:
        held = tuple(types.CellType(value) if value is not types.CellType else value() for value in new["cells"])
        is_kept = new["globals"] is parts["globals"]
        known = function.__globals__ if is_kept else {**function.__globals__, **new["globals"]}
        made = types.FunctionType(function.__code__, known, function.__name__, new["defaults"], held)
        made.__kwdefaults__ = new["named"]
        made.__dict__.update(function.__dict__)
        return made

    return parts, build


# -- ways


def _ways(oracle: list[Any] | None) -> Iterator[Way]:
    """Yields ways to the judge: alone, behind the solution's calls, in one of its texts, after its words."""
    yield Way()
    if oracle is None:
        return
    calls, words = [(name, arguments) for name, arguments in oracle[:-1]], str(oracle[-1]["answer"])
    yield from [Way(calls)] if calls else ()
    yield from _in_words(calls, words)
    yield Way(calls, f"{words}\n")
    given = [(place, *item) for place, (_, arguments) in enumerate(calls) for item in arguments.items()]
    texts = [(len(text), place, name) for place, name, text in given if isinstance(text, str) and " " in text]
    yield from (Way(calls, words, slot=(place, name)) for _, place, name in sorted(texts)[: -MAX_ARGUMENTS - 1 : -1])


def _in_words(calls: Sequence[tuple[str, dict[str, Any]]], words: str) -> Iterator[Way]:
    """Yields ways in which the answer replaces the longest text in the words: of JSON, of a line, or of sentences.

    A sentence keeps its first word and its end: rules for its form come before a judge.
    """
    try:
        texts = [leaf for _, leaf in leaves(json.loads(words)) if isinstance(leaf, str)]
    except ValueError:
        found = max(_SEGMENT.finditer(words), key=lambda one: len(one["text"]), default=None)
        if found and found["text"]:
            yield Way(calls, words[: found.start("text")], words[found.end("text") :])
        for one in sorted(_SENTENCE.finditer(words), key=lambda one: -len(one["text"]))[:MAX_SENTENCES]:
            yield Way(calls, words[: one.start("text")], words[one.end("text") :])
        return
    for quoted in sorted((json.dumps(text)[1:-1] for text in texts), key=len, reverse=True):
        if words.count(f'"{quoted}"') == 1:
            before, _, after = words.partition(f'"{quoted}"')
            yield Way(calls, f'{before}"', f'"{after}', is_json=True)
            return


def _value(parts: Mapping[str, dict[str, Any]], path: Sequence[str]) -> float | None:
    """Returns the value of a criterion, by its path through composite criteria; None if it gave none."""
    found = parts.get(path[0])
    details = found.get("details") if found else None
    inner = details.get("parts") if is_dict(details) else None
    if len(path) > 1 and is_dict(inner):  # An author's own composite tells its whole value alone.
        return _value(inner, path[1:])
    return found.get("value") if found else None
