"""Hints that follow an error or failure: the next step for the author of an environment.

Hints are made when a person reads; no trace holds them.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import linecache
import re
import traceback
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

from quintain.errors import Failure, Frame, RunStopped, author_frames
from quintain.record import EpisodeRecord

_KEYWORD = re.compile(r"nexpected keyword argument '(\w+)'")
_ATTRIBUTE = re.compile(r"'(\w+)' object has no attribute '(\w+)'")
_DATA_ERRORS = frozenset({"KeyError", "IndexError", "LookupError", "ValueError", "TypeError", "ZeroDivisionError"})
"""Exceptions with which a tool meets an argument that it does not expect."""


def of_error(error: BaseException) -> str:
    """Returns the hint for an error or one of its causes; empty if there is none."""
    if isinstance(error, RunStopped):
        return "`quintain triage DIR` names the component of each failure; `--debug` opens the first one in a debugger"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, TypeError) and (found := _KEYWORD.search(str(cause))):
            return _of_call(found[1], cause.__traceback__)
        if isinstance(cause, AttributeError) and (text := _of_attribute(str(cause), author_frames(cause))):
            return text
        cause = cause.__cause__
    return ""


def of_record(record: EpisodeRecord) -> str:
    """Returns the hint for a failed episode; empty if there is none."""
    return of_failure(record.trace.failure, record.frames) if record.trace.failure else ""


def of_failure(failure: Failure, frames: Sequence[Frame]) -> str:
    """Returns the hint for a failure; empty if there is none.

    Args:
        failure: The recorded failure.
        frames: Lines of the author's code that led to it, outermost first.
    """
    if failure.kind == "quintain:tool_timeout" and frames and _is_async(frames[0]) and not _awaits(frames[-1]):
        name = frames[0].function
        return f"async tool {name} blocks the event loop: use `await asyncio.to_thread(...)`, or make it a sync tool"
    if failure.type == "AttributeError":
        return _of_attribute(failure.message, frames)
    if failure.kind == "quintain:tool_bug" and failure.type in _DATA_ERRORS and frames:
        return "raise quintain.ToolError for what the model should read and may correct"
    return ""


def _of_attribute(message: str, frames: Sequence[Frame]) -> str:
    """Returns the hint for an assignment to a field that a State does not declare."""
    found = _ATTRIBUTE.search(message)
    if found is None or not frames or not re.search(rf"\.{found[2]}\b[^=(]*=(?!=)", frames[-1].code):
        return ""
    return f"declare the field in class {found[1]}, as `{found[2]}: TYPE = DEFAULT`"


def _of_call(name: str, place: TracebackType | None) -> str:
    """Returns the parameters of the callable that got an unknown keyword argument."""
    called = next(_called(place, name), None)
    if called is None:
        return ""
    known = [one for one in inspect.signature(called).parameters if not one.startswith("_")]
    near = difflib.get_close_matches(name, known, n=1)
    mean = f"did you mean {near[0]}? " if near else ""
    return f"{called.__name__} has no parameter {name!r}; {mean}it takes: {', '.join(known) or 'nothing'}"


def _called(place: TracebackType | None, keyword: str) -> Iterator[Any]:
    """Yields the callables of the calls with this keyword at the place where a traceback ends."""
    if place is None:
        return
    while place.tb_next is not None:
        place = place.tb_next
    (where,) = traceback.extract_tb(place)
    frame = place.tb_frame
    try:
        tree = ast.parse("".join(linecache.getlines(where.filename, frame.f_globals)))
    except SyntaxError:  # The file was edited after it was read.
        return
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or keyword not in {one.arg for one in call.keywords}:
            continue
        if (call.lineno, call.col_offset, call.end_col_offset) == (where.lineno, where.colno, where.end_colno):
            first, *path = ast.unparse(call.func).split(".")
            found: Any = {**frame.f_globals, **frame.f_locals}.get(first)
            for part in path:
                found = getattr(found, part, None)
            if callable(found):
                yield found


def _is_async(frame: Frame) -> bool:
    """True if the line is in an async function; False if the file no longer is the one that ran."""
    try:
        tree = ast.parse("".join(linecache.getlines(frame.file)))
    except SyntaxError:
        return False
    functions = (one for one in ast.walk(tree) if isinstance(one, ast.AsyncFunctionDef))
    return any(one.name == frame.function and one.lineno <= frame.line <= (one.end_lineno or 0) for one in functions)


def _awaits(frame: Frame) -> bool:
    """True if the line gives way to the event loop, so what takes long is what it awaits."""
    return re.search(r"\b(?:await|async|yield)\b", frame.code) is not None
