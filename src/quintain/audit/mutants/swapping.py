"""In the child: a mutant is put into functions that are loaded already, so that no process has to begin for it.

What a file's text becomes is compiled beside what it was; functions whose code is not the same get the other code, in a
fork of a process in which the subject's tasks are made. So a mutant costs what its episodes cost, and what runs while
a task is made is not mutated. Where a function cannot take the code (it needs other variables of what is around it),
that is said, and the mutant is loaded in a process of its own (`loading`).
"""

from __future__ import annotations

import gc
import inspect
import signal
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import msgspec

from quintain.audit.player import Player
from quintain.audit.probe import Op, number

from .loading import Mutant, hook

PLAY = f"{__name__}:play"
SWAP = f"{__name__}:swap"
"""Names for an op `ask`; the worker calls `index` before it forks for one of them."""

_functions: dict[str, list[FunctionType]] = {}
"""By file; every function of this process, found before the fork: to look for them writes into all of memory."""


class Variation(msgspec.Struct, frozen=True):
    """What `play` is asked.

    Attributes:
        mutant: None when the process was loaded with it.
        paid: What each `score` gives without the mutant.
        seconds: Of processor time; the process is killed after them.
    """

    mutant: Mutant | None
    ops: tuple[Op, ...]
    paid: tuple[float | None, ...]
    seconds: float


class Tally(msgspec.Struct, frozen=True):
    """What `play` answers.

    Attributes:
        how: As of `swap`; then nothing was played, unless it is empty.
        seen: By op, what its looks and scores gave; it ends with the first score that is another one.
    """

    how: str
    seen: list[Any] = []


def index() -> None:
    """Find all functions, unless they are known."""
    if _functions:
        return
    by_file: dict[str, list[FunctionType]] = defaultdict(list)
    gc.unfreeze()  # What is frozen is not told.
    for one in gc.get_objects():
        if type(one) is FunctionType:
            by_file[one.__code__.co_filename].append(one)
    gc.collect()
    gc.freeze()
    _functions.update(by_file)


def forget() -> None:
    """The process has made something since: functions, it may be."""
    _functions.clear()


def play(player: Player, _on: str, value: Any) -> dict[str, Any]:
    """Play ops with a mutant until a score is another one.

    Raises:
        UsageError: The mutated file is not as it was.
        SyntaxError: The mutant is no Python.
    """
    wanted = msgspec.convert(value, Variation)
    how = put(wanted.mutant) if wanted.mutant is not None else ""
    if how:
        return {"how": how}
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, wanted.seconds)
    paid = iter(wanted.paid)
    seen: list[Any] = []
    for op, one in zip(wanted.ops, player.each(wanted.ops), strict=True):
        is_kept = op.do not in ("reset", "call", "answer")
        seen.append(msgspec.to_builtins(one, builtin_types=(bytes,)) if is_kept else {})
        if op.do == "score" and number(one) != next(paid):
            break
    signal.setitimer(signal.ITIMER_PROF, 0)
    return {"how": "", "seen": seen}


def swap(_player: Player, _on: str, value: Any) -> str:
    """Put a mutant in; from now on it runs."""
    return put(msgspec.convert(value, Mutant))


UNFIT = "the functions that are loaded cannot take the code"


def put(mutant: Mutant) -> str:
    """Give the functions of a file the mutant's code; imports of the file, from now on, load it, too.

    Returns:
        Empty when it is done; else `UNFIT`, and nothing is changed.

    Raises:
        UsageError: The file is not as it was.
        SyntaxError: The mutant is no Python.
    """
    index()
    pairs = _pairs(mutant)
    there = _functions.get(mutant.path, [])
    swaps = [(one, new) for was, new in pairs for one in there if _is_of(one, was)]
    missed = {was.co_qualname for was, _ in pairs} - {one.__code__.co_qualname for one, _ in swaps}
    is_loaded = bool(there) or any(_is_file(module, mutant.path) for module in list(sys.modules.values()))
    if is_loaded and any("<locals>" not in name for name in missed):
        return UNFIT  # The function is hidden, or its file has changed since it was loaded.
    if any(new is None or one.__code__.co_freevars != new.co_freevars for one, new in swaps):
        return UNFIT
    for one, code in swaps:
        assert code is not None
        one.__code__ = code
    hook(mutant)
    return ""


def is_same(mutant: Mutant) -> bool:
    """Whether the mutant is compiled to what the author wrote; what is no Python is another thing.

    Raises:
        UsageError: The file is not as it was.
    """
    try:
        return not _pairs(mutant)
    except SyntaxError:
        return False


def _pairs(mutant: Mutant) -> list[tuple[CodeType, CodeType | None]]:
    texts = Path(mutant.path).read_bytes(), mutant.text()
    old, new = (compile(text, mutant.path, "exec", dont_inherit=True) for text in texts)
    return list(_changed(old, new))


def _is_file(module: object, path: str) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and (file == path or Path(file).resolve() == Path(path))


def _changed(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType | None]]:
    """The functions' code that is not the same, with what it becomes; None where that cannot be told."""
    for one, other in _paired(_inner(old), _inner(new)):
        if other is None:
            yield one, None
        elif not _is_same(one, other):
            if one.co_flags & inspect.CO_OPTIMIZED:  # The body of a class is run once, when it is made.
                yield one, other
            yield from _changed(one, other)


def _inner(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _paired(old: Iterable[CodeType], new: Iterable[CodeType]) -> Iterator[tuple[CodeType, CodeType | None]]:
    """By name, and those of one name (lambdas, mostly) by their order, if none has gone."""
    become: dict[str, list[CodeType]] = defaultdict(list)
    for one in new:
        become[one.co_qualname].append(one)
    were: dict[str, list[CodeType]] = defaultdict(list)
    for one in old:
        were[one.co_qualname].append(one)
    for name, some in were.items():
        others = become[name]
        yield from zip(some, others if len(others) == len(some) else [None] * len(some), strict=True)


def _is_of(function: FunctionType, code: CodeType) -> bool:
    mine = function.__code__
    return mine.co_firstlineno == code.co_firstlineno and mine.co_qualname == code.co_qualname and _is_same(mine, code)


_SAME_PARTS = (
    "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags", "co_argcount", "co_kwonlyargcount",
    "co_posonlyargcount", "co_exceptiontable",
)  # fmt: skip


def _is_same(one: CodeType, other: CodeType) -> bool:
    """Whether they do the same; on which lines they stand does not count."""
    return (
        all(getattr(one, name) == getattr(other, name) for name in _SAME_PARTS)
        and len(one.co_consts) == len(other.co_consts)
        and all(map(_is_same_constant, one.co_consts, other.co_consts))
    )


def _is_same_constant(one: Any, other: Any) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return _is_same(one, other)
    return type(one) is type(other) and repr(one) == repr(other)  # 1 equals 1.0, and is not the same
