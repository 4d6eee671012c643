"""Scripts that are replayed in other surroundings: another process, after other episodes, among other sessions.

A script is an episode as plain ops, all of them marked: a reset, reads, the oracle's calls, the reads again, the state
and the score. Surrounding ops are not marked, so "the same script alone" is the marked ops of any probe.
"""

from __future__ import annotations

import functools
import itertools
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.facts.generate import fits, valid
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked
from quintain.audit.kernel.clock_skew import shim
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.probe import Op, ProcessContext, answer, call, reset

T = TypeVar("T")
READS = 6
"""Reads that a script makes before and after its writes."""
TOURED = 40
"""Tools of which a tour calls each."""
CALLS = 10
"""Calls of a script on a task that has no oracle."""
SEARCHED = frozenset(
    {"query", "q", "text", "search", "name", "term", "terms", "keyword", "keywords", "pattern", "words", "prefix"}
)
"""Names of parameters that take a part of what is looked for."""
VERBS = (
    "get", "list", "search", "find", "read", "show", "look", "view", "fetch", "check", "query", "describe", "count",
    "track", "history", "lookup", "inspect", "peek", "status", "browse", "ls", "cat",
)  # fmt: skip
"""Words that names of tools which only read are made of."""
ACTS = (
    "add", "append", "apply", "approve", "assign", "book", "buy", "cancel", "change", "clear", "close", "commit",
    "create", "delete", "deposit", "edit", "insert", "lock", "log", "make", "mark", "merge", "modify", "move", "open",
    "order", "pay", "place", "post", "put", "refund", "register", "remove", "rename", "reply", "reset", "restart",
    "save", "schedule", "send", "set", "submit", "transfer", "unlock", "update", "upload", "withdraw", "write",
)  # fmt: skip
"""Words that names of tools which write begin with."""


NO_LOCALE = "de_DE.UTF-8"
"""A language that writes numbers and dates otherwise; where it is not installed it is in the environment all the same,
and a subject that only looks there takes it for granted."""


def state_op(ctx: AuditContext) -> str:
    """The op that sees the world: "digest" where there is one and no field is volatile, else "state", else ""."""
    names = ("state",) if ctx.volatile else ("digest", "state")
    return next((name for name in names if name in ctx.offers), "")


def seems_to_read(ctx: AuditContext, tool: str) -> bool:
    """True if a tool reads: as declared, by its name or its description's first word, or as it never changed the state.

    A read may be logged, or kept to be shown again. A tool whose name says that it writes does so even if the state
    shows nothing at once: it may show it later.
    """
    if tool in ctx.declared:
        return not ctx.declared[tool]
    words = tool.lower().replace("-", "_").replace(".", "_").split("_")
    said = [one.description.split(maxsplit=1)[:1] for one in ctx.about.tools if one.name == tool]
    if any(word in VERBS for word in (*words, *(verb.lower().rstrip("s") for some in said for verb in some))):
        return not any(word in ACTS for word in words[:1])
    return bool(state_op(ctx)) and tool in ctx.discovery.readers and not any(word in ACTS for word in words)


def reads(ctx: AuditContext, task: str, most: int, *, each: int = 1) -> list[Op]:
    """Calls that read, one (or `each`) per tool, those known in this task first."""
    known = sorted(ctx.discovery.calls, key=lambda known_call: known_call.task != task)
    found: dict[str, dict[str, Op]] = {}
    for base_call in known:
        if seems_to_read(ctx, base_call.op.name):
            of_tool = found.setdefault(base_call.op.name, {})
            if len(of_tool) < each:
                of_tool.setdefault(repr(base_call.op.value), bare(base_call.op))
    return [op for of_tool in found.values() for op in of_tool.values()][:most]


def bare(op: Op) -> Op:
    """The op, not marked, on the first instance."""
    return msgspec.structs.replace(op, mark="", on="a")


def doing(ctx: AuditContext, task: str) -> tuple[Op, ...]:
    """Returns the actions of an agent in a task: its oracle's ops, or calls known to work there or elsewhere.

    Raises:
        NotChecked: No tool works and the subject takes no answer.
    """
    known = ctx.oracle(task)
    if known:
        return tuple(map(bare, known))
    there = sorted(ctx.discovery.calls, key=lambda known_call: known_call.task != task)
    distinct = {(base_call.op.name, repr(base_call.op.value)): bare(base_call.op) for base_call in there}
    if distinct:
        return tuple(distinct.values())[:CALLS]
    if ctx.about.tools:
        return tuple(call(tool.name) for tool in ctx.about.tools[:CALLS])
    if "answer" in ctx.offers:
        return (answer("yes"),)
    raise NotChecked("no call is known to work, and nothing can be answered")


def half(ops: Sequence[Op]) -> tuple[Op, ...]:
    """The beginning of an episode: it is left in the middle."""
    return tuple(ops[: (len(ops) + 1) // 2 if len(ops) > 1 else 0])


def episode(ctx: AuditContext, task: str, *, seed: int = 0) -> tuple[Op, ...]:
    """Reset, reads, writes, reads, last words, state and score."""
    done = doing(ctx, task)
    words = tuple(op for op in done[-1:] if op.do == "answer")
    look = (Op(state_op(ctx)),) if state_op(ctx) else ()
    seen = reads(ctx, task, READS)
    calls = done[: len(done) - len(words)]
    return (reset(task, seed=seed), *look, *seen, *calls, *seen, *words, *look, Op("score"))


def tour(ctx: AuditContext, task: str, *, early: bool = True) -> tuple[Op, ...]:
    """Reset, score where it is early, one known call of every tool, reads, state and score."""
    known = sorted(ctx.discovery.calls, key=lambda known_call: known_call.task != task)
    calls = {base_call.op.name: bare(base_call.op) for base_call in reversed(known)}
    look = (Op(state_op(ctx)),) if state_op(ctx) else ()
    first = (Op("score"),) if early else ()
    return (reset(task), *first, *list(calls.values())[:TOURED], *reads(ctx, task, READS), *look, Op("score"))


def broad(ctx: AuditContext) -> tuple[Op, ...]:
    """Searches for so little that they find much: what comes in an order of chance shows it only among several."""
    found: list[Op] = []
    for tool in ctx.about.tools:
        keys = [key for key in tool.properties if key.lower() in SEARCHED and "enum" not in tool.properties[key]]
        if not keys or not seems_to_read(ctx, tool.name):
            continue
        known = ctx.discovery.of(tool.name)
        base: dict[str, Any] = known[0].op.value if known else valid(tool, ctx.discovery.values, ctx.rng, optional=0.0)
        kept = {key: value for key, value in base.items() if key in tool.required}
        found += [call(tool.name, kept | {keys[0]: part}) for part in ("a", "e", "an", "er")]
    return tuple(found[: 4 * TOURED])


def in_turn(items: Iterable[T], name: Callable[[T], str], each: int | None = None) -> list[T]:
    """Returns the first item of each name, then the second of each, and so on; `each` limits them."""
    by_name: dict[str, list[T]] = {}
    for item in items:
        by_name.setdefault(name(item), []).append(item)
    turns = itertools.zip_longest(*(some[:each] for some in by_name.values()))
    return [item for turn in turns for item in turn if item is not None]


def other_values(ctx: AuditContext, tool: ToolSpec, name: str, *, value: Any) -> Iterator[Any]:
    """Yields other values of an argument that its schema allows: of its choices, near it, or seen under its name."""
    schema: Any = tool.properties.get(name)
    if not is_dict(schema):
        return
    seen = [candidate for candidate in ctx.discovery.values.of(name) if isinstance(candidate, str)]
    found: list[Any] = [*seen[:12], *seen[-1:], f"{value}x"] if isinstance(value, str) or not value else []
    if schema.get("enum") or isinstance(value, bool) or schema.get("type") == "boolean":
        found = list(schema.get("enum") or (True, False))
    elif is_number(value) or schema.get("type") in ("integer", "number"):
        near = [value - 1, value + 1, value * 2, value // 2] if is_number(value) else []
        found = [*near, *(schema[end] for end in ("minimum", "maximum") if is_number(schema.get(end))), 1, 2, 3, 0, 10]
    elif is_list(value):
        found = [value[:-1]]
    elif name.lower() in SEARCHED:
        words = [word for text in ctx.discovery.values.strings() for word in text.split() if len(word) > 3]
        found = ["a", "e", *words[:: max(1, len(words) // 3)][:3], *found]
    for candidate in found:
        if (candidate != value or type(candidate) is not type(value)) and fits(candidate, schema, tool.parameters):
            yield candidate


def marked(ops: Sequence[Op], *, on: str = "a", tag: str = "step ") -> tuple[Op, ...]:
    return tuple(msgspec.structs.replace(op, on=on, mark=f"{tag}{place}") for place, op in enumerate(ops))


def alone(ops: Sequence[Op], tag: str = "step ") -> tuple[Op, ...]:
    """The script without what surrounds it."""
    return tuple(op for op in ops if op.mark.startswith(tag))


def other_tasks(ctx: AuditContext, task: str, count: int) -> tuple[str, ...]:
    """Returns other tasks, or the task itself if it is the only one."""
    return tuple(text for text in ctx.sample_tasks(count + 1) if text != task)[:count] or (task,)


# --- elsewhere ---


@functools.cache
def foreign_locale() -> str:
    """A locale of this machine that is not English and UTF-8, where there is one; else "C"."""
    program = shutil.which("locale")
    if program is None:
        return "C"  # Every system has it.
    listed = subprocess.run([program, "-a"], capture_output=True, text=True, check=True).stdout.split()
    wanted = [text for start in ("tr_", "de_", "fr_", "ru_") for text in listed if text.startswith(start)]
    return (wanted or [text for text in listed if not text.upper().startswith(("C", "POSIX", "EN_"))] or ["C"])[0]


def elsewhere() -> tuple[ProcessContext, ...]:
    """Processes that differ from the usual one in everything; each difference is tried alone later."""
    day = 1 if shim() is not None else 0  # Without a shim nothing is said about clocks here: see `days_ahead`.
    return (
        ProcessContext(hash_seed=1, zone="LINT-14", locale=foreign_locale(), elsewhere=True, days=day),
        ProcessContext(hash_seed=2, zone="PST8", locale=NO_LOCALE, thread=True, days=-day),
    )


def misses_locale(context: ProcessContext, *seen: Any) -> bool:
    """True if the results only report that the machine lacks such a locale."""
    return context.locale == NO_LOCALE and any("locale" in str(item).lower() for item in seen)


def parts(context: ProcessContext) -> Iterator[tuple[str, ProcessContext]]:
    """Each difference from the usual process alone, and what people call it."""
    words = {
        "hash_seed": "PYTHONHASHSEED", "zone": "the time zone (TZ)", "locale": "the locale (LC_ALL)",
        "elsewhere": "the user and working folder", "thread": "the thread", "loaded": "the load of the machine",
        "days": "the wall clock",
    }  # fmt: skip
    usual = ProcessContext()
    for name, description in words.items():
        value = getattr(context, name)
        if value != getattr(usual, name):
            yield description, msgspec.structs.replace(usual, **{name: value})


def op_label(op: Op) -> str:
    """Returns the name of an op in a sentence."""
    return {"call": op.name, "reset": "reset", "answer": "answer"}.get(op.do, f"{op.do}()")
