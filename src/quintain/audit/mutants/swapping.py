"""Swapping of a mutant into loaded functions, so that no new process has to start for it.

The file's text is compiled with and without the change, and functions whose code differs get the new code, in a fork of
a process that has made the subject's tasks. So a mutant costs only its episodes, and code that runs while a task is
made is not mutated. If a function cannot take the code (other free variables), the result says so, and the mutant is
loaded in a process of its own (`loading`).
"""

from __future__ import annotations

import gc
import inspect
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import msgspec

from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, number
from quintain.audit.kernel.registry import probe_function

from .loading import Mutant, hook

PLAY = f"{__name__}:play"
SWAP = f"{__name__}:swap"  # function of an op `ask`; the worker calls `index` before it forks for one of them

_functions: dict[str, list[FunctionType]] = {}
"""All functions of this process by file, found before the fork, because the search writes into all of memory."""


class MutantRun(msgspec.Struct, frozen=True):
    """Arguments of `play`: the mutant, unless the process was loaded with it, and each score without it."""

    mutant: Mutant | None
    ops: tuple[Op, ...]
    paid: tuple[float | None, ...]
    seconds: float


class SwapResult(msgspec.Struct, frozen=True):
    """Result of `play`: that of `put`, and of looks and scores by op, up to the first score that differs."""

    how: str
    seen: list[Any] = []


def index() -> None:
    """Finds all functions of the process, once."""
    if _functions:
        return
    by_file: dict[str, list[FunctionType]] = defaultdict(list)
    gc.unfreeze()  # gc.get_objects() omits frozen objects.
    for one in gc.get_objects():
        if type(one) is FunctionType:
            by_file[one.__code__.co_filename].append(one)
    gc.collect()
    gc.freeze()
    _functions.update(by_file)


def forget() -> None:
    _functions.clear()


@probe_function
def play(player: Player, _on: str, value: Any) -> dict[str, Any]:
    """Plays ops with a mutant until a score differs."""
    wanted = msgspec.convert(value, MutantRun)
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


@probe_function
def swap(_player: Player, _on: str, value: Any) -> str:
    return put(msgspec.convert(value, Mutant))


UNFIT = "the functions that are loaded cannot take the code"


def put(mutant: Mutant) -> str:
    """Gives the functions of a file, and its later imports, the mutant's code; `UNFIT` if nothing was changed."""
    index()
    pairs = _pairs(mutant)
    there = _functions.get(mutant.path, [])
    swaps = [
        (one, new)
        for was, new in pairs
        for one in there
        if one.__code__.co_firstlineno == was.co_firstlineno
        and one.__code__.co_qualname == was.co_qualname
        and _is_same(one.__code__, was)
    ]
    missed = {was.co_qualname for was, _ in pairs} - {one.__code__.co_qualname for one, _ in swaps}
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    path = Path(mutant.path)
    is_loaded = bool(there) or any(isinstance(file, str) and Path(file).resolve() == path for file in files)
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
    """True if the mutant compiles to the author's code; raises UsageError if the file has changed."""
    try:
        return not _pairs(mutant)
    except SyntaxError:
        return False


def _pairs(mutant: Mutant) -> list[tuple[CodeType, CodeType | None]]:
    texts = Path(mutant.path).read_bytes(), mutant.text()
    old, new = (compile(text, mutant.path, "exec", dont_inherit=True) for text in texts)
    return list(_changed(old, new))


def _changed(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType | None]]:
    """Yields each changed code object with its new code; None without a counterpart.

    They are paired by name; those of one name (mostly lambdas) by order, if their numbers agree.
    """
    were, become = (defaultdict[str, list[CodeType]](list) for _ in range(2))
    for code, by_name in ((old, were), (new, become)):
        for one in code.co_consts:
            if isinstance(one, CodeType):
                by_name[one.co_qualname].append(one)
    for name, some in were.items():
        others = become[name]
        for one, other in zip(some, others if len(others) == len(some) else [None] * len(some), strict=True):
            if other is None:
                yield one, None
            elif not _is_same(one, other):
                if one.co_flags & inspect.CO_OPTIMIZED:  # The body of a class is run once, when it is made.
                    yield one, other
                yield from _changed(one, other)


_SAME_PARTS = (
    "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags", "co_argcount", "co_kwonlyargcount",
    "co_posonlyargcount", "co_exceptiontable",
)  # fmt: skip


def _is_same(one: Any, other: Any) -> bool:
    """True if two code objects, or two of their constants, are equal, line numbers aside."""
    if not (isinstance(one, CodeType) and isinstance(other, CodeType)):
        return type(one) is type(other) and repr(one) == repr(other)  # 1 equals 1.0, and is not the same
    return (
        all(getattr(one, name) == getattr(other, name) for name in _SAME_PARTS)
        and len(one.co_consts) == len(other.co_consts)
        and all(map(_is_same, one.co_consts, other.co_consts))
    )
