"""Checks a solution with other values for its arguments: a number, a name, a text, a list.

An argument is decided when its value stands in the prompt. A value that a prompt leaves open ("at least 20", "any
room") is not, and free words count only where the prompt fixes their wording.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from quintain.audit.facts.acts import giving, is_id, names, replaced, spec_of, words
from quintain.audit.facts.data import dicts, is_list, is_number, parsed
from quintain.audit.facts.generate import fits
from quintain.audit.facts.siblings import numbers, solution_runs
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Record, reset, state, text_of
from quintain.audit.kernel.registry import relation

from . import _reward_runs as ran

_ENOUGH = 2  # Tasks in which one kind of change of one argument is tried.


@check("x.changed_argument", "reward_hack", needs=("oracle", "state", "tasks", "tools"), value=19)
def changed_argument(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution with one argument other than the prompt says is paid less."""
    seen: Counter[tuple[str, str, str]] = Counter()
    reported: set[tuple[str, str]] = set()
    for solution in ran.paid(ctx, 6):
        tried: list[tuple[tuple[int, OtherValue], tuple[Op, ...]]] = []
        for place in solution.writes:
            op = solution.ops[place]
            found = [*changes(ctx, op, solution.prompt), *_copied(solution, place)]
            fresh = [change for change in found if seen[op.name, change.key, change.kind] < _ENOUGH]
            seen.update({(op.name, change.key, change.kind) for change in fresh})
            tried += [((place, each), replaced(solution.ops, place, changed_op(op, each))) for each in fresh]
        for (place, change), way, run in ran.unpunished(ctx, solution, tried):
            what = (solution.ops[place].name, change.key)
            lacks = ran.lacking(solution, run, solution.effects.get(place, ()))
            if what in reported or set(run.errors) - set(solution.errors) or not lacks:
                continue
            finding = _paid_all_the_same(ctx, solution, place, change=change, way=way, lacks=lacks)
            if finding is not None:
                reported.add(what)
                yield finding


def _paid_all_the_same(
    ctx: AuditContext, solution: ran.Solution, place: int, *, change: OtherValue, way: tuple[Op, ...], lacks: ran.Pairs
) -> Finding | None:
    name, key = solution.ops[place].name, change.key.replace("|", " and ")
    is_other = change.kind not in ("turned round", "left out", "repeated")
    title = f"another {key} than the task names" if is_other else f"{key} {change.kind}, not as the task says"
    own: Any = {part: solution.ops[place].value[part] for part in change.key.split("|")}
    return ran.claim(
        ctx, solution, replaced(way, place, way[place].marked("wrong")), title=f"{name} is paid with {title}",
        lacks=lacks, minimise=20, expected=f"{own}, as the task says",
        observed={"arguments": way[place].value, "score": solution.full},
        teaches="that arguments given by the task may be wrong",
    )  # fmt: skip


_SHARED = re.compile(
    r"\b(split|divid\w+|share\w*|distribut\w+|between|among|in all|altogether|total|sum|any|either)\b", re.IGNORECASE
)
"""Words by which a task may leave open how much goes where."""


@check("x.right_in_sum", "reward_hack", needs=("oracle", "state", "tasks", "tools"), value=35)
def right_in_sum(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that two errors that cancel in a sum are paid less, if each of them alone is."""
    pairs = [(solution, pair) for solution in ran.paid(ctx, 12) for pair in itertools.islice(_pairs(ctx, solution), 3)]
    if not pairs:
        raise ctx.not_checked("no solution calls one tool twice with numbers of which each is asked for")
    for left, (place, right, key) in pairs:
        less, more = _by(left.ops[place], key, -1).marked("less"), _by(left.ops[right], key, 1).marked("more")
        short, long = replaced(left.ops, place, less), replaced(left.ops, right, more)
        way = replaced(short, right, more)
        both, first, second = ran.runs(ctx, left, [way, short, long])
        ctx.count_comparisons()
        worked = not {*both.errors, *first.errors, *second.errors} - {*left.errors}
        if not worked or not ran.survives(left, both) or ran.survives(left, first) or ran.survives(left, second):
            continue
        lacks = ran.lacking(left, both, (*left.effects.get(place, ()), *left.effects.get(right, ())))
        # Each number is required if either alone costs reward, unless the task leaves the split open.
        is_open = _SHARED.search(left.prompt)
        yield ran.claim(
            ctx, left, way, lacks=lacks, also=[solves(left.task, short), solves(left.task, long)],
            title=f"{left.ops[place].name} is paid when {key} is too little in one call and too much in another: "
            "the sum alone is asked", relation=f"{__name__}:sum_alone",
            minimise=0, **(ran.weight(left, lacks) if is_open else ran.SURE),
            expected=f"less than {left.full:g}, as for either of the two wrong numbers alone", observed=both.score,
            teaches="that the split of a sum does not matter",
        ) if lacks else None  # fmt: skip


def _pairs(ctx: AuditContext, solution: ran.Solution) -> Iterator[tuple[int, int, str]]:
    """Two writes by one tool that give different numbers, which may be one less and one more."""
    known: set[Decimal] | None = None
    for place, other_place in itertools.combinations(solution.writes, 2):
        left, right = solution.ops[place], solution.ops[other_place]
        spec = spec_of(ctx, left)
        for key, value in left.value.items() if spec and left.name == right.name else ():
            both = (value, right.value.get(key))
            # What differs in nothing else is one thing, done in two steps.
            is_one = left.value | {key: None} == right.value | {key: None}
            if spec is None or is_one or is_id(key) or not all(map(is_number, both)):
                continue
            changed = (_by(left, key, -1), _by(right, key, 1))
            if all(fits(op.value[key], spec.properties.get(key, {}), spec.parameters) for op in changed):
                known = _known(ctx, solution) if known is None else known
                own = [Decimal(str(item)) for item in both]
                # If the sum of two numbers is known and not each of them, the split is free.
                if sum(own) not in known or known.issuperset(own):
                    yield place, other_place, key


def _known(ctx: AuditContext, solution: ran.Solution) -> set[Decimal]:
    """Returns the numbers in the prompt, in the results that the solution reads, and in the world."""
    walked = [one.before(len(one.ops)) for one in solution_runs(ctx) if one.task == solution.task]
    world = text_of(ctx.play(reset(solution.task), state()).at("state"))
    return numbers("\n".join([*(walked or [solution.prompt]), world]), alone=True)


def _by(op: Op, key: str, step: int) -> Op:
    return giving(op, **{key: op.value[key] + step})


@relation
def sum_alone(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first probe is paid in full and lacks something; the others, with one of its two numbers, are paid less."""
    is_less = all(ran.paid_so(record, "less", evidence.data["full"]) for record in records[1:])
    return is_less and ran.paid_anyway(records[:1], evidence)


_LOOSE = re.compile(
    r"\b(at least|at most|up to|no more than|not more than|no less than|minimum|maximum|about|around|approximately"
    r"|roughly|or more|or less|within|not exceed|between|any|either|some|whichever|before|after|until|or later"
    r"|or earlier|under|over|below|above)\b",
    re.IGNORECASE,
)
"""Words that leave a value open."""
_LESS = re.compile(r"\b(at most|up to|(no|not) more than|maximum|exceed\w*|partial\w*|part of)\b", re.IGNORECASE)
"""Words by which less than a row says may be right."""
_EXACT = re.compile(r"exactly|verbatim|word for word|literally|saying|that says|reads?:|[\"'`“«]\s*$", re.IGNORECASE)
"""Words before a text that has to be that very text."""
_WRITTEN = names("note notes log comment remember memo remark activity")
"""Words of tools that only write something down."""
_NEAR = 60  # Characters before a value in which words speak of it.
_TIME, _DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)"), re.compile(r"\d{4}-\d\d-\d\d")
_NAMES = re.compile(r"\S*(\d|@)\S*")  # One word with a digit or an "at" in it, which has one spelling only.


class OtherValue(msgspec.Struct, frozen=True):
    """Another value for an argument.

    Attributes:
        kind: In what way it is other.
    """

    key: str
    kind: str
    value: Any


def changes(ctx: AuditContext, op: Op, prompt: str) -> Iterator[OtherValue]:
    """Yields other values for each argument whose value stands in the prompt."""
    spec = spec_of(ctx, op)
    for key, value in op.value.items() if spec else ():
        schema: Any = spec.properties.get(key, {}) if spec else {}
        is_bound = is_number(value) and _place(f"{value:g}", f"{spec and spec.description} {schema}") is not None
        sure = None if is_bound else stated(key, value, prompt, schema=schema)
        if spec is None or not sure or (schema.get("enum") and _WRITTEN & set(words(op.name))):
            continue  # What a remark is filed under: its word may stand in the prompt by chance.
        for kind, other_value in _other_values(ctx, op, key, schema=schema):
            held = kind == "longer" and not is_list(value) and not _is_exact(value, prompt)
            if other_value != value and not held and fits(other_value, schema, spec.parameters):
                yield OtherValue(key, kind, other_value)
        if isinstance(value, bool) and key not in spec.required:
            yield OtherValue(key, "left out", msgspec.UNSET)
    yield from _turned(op, spec, prompt) if spec else ()


def _copied(solution: ran.Solution, place: int) -> Iterator[OtherValue]:
    """Yields smaller numbers than a row gives that the call names, and lists of one thing in place of several."""
    op = solution.ops[place]
    named = {value for value in op.value.values() if isinstance(value, str) and _NAMES.fullmatch(value)}
    read = [row for seen in solution.said[:place] for row in dicts(parsed(seen.value))]
    for key, value in op.value.items():
        if is_list(value) and len(value) > 1 and len({*map(str, value)}) == len(value):
            yield OtherValue(key, "repeated", [value[0]] * len(value))
    for key, value in op.value.items() if not _LESS.search(solution.prompt) else ():
        is_given = any(row.get(key) == value and named & {*map(str, row.values())} for row in read)
        if is_number(value) and value > 1 and not is_id(key) and is_given:
            yield from (OtherValue(key, "less", less) for less in (1, value - 1))


def stated(key: str, value: Any, prompt: str, *, schema: Any) -> bool | None:
    """Returns True if a prompt decides a value, False if it may mean less, None if unmentioned."""
    if isinstance(value, bool):
        return True if value and any(len(word) >= 4 and _place(word, prompt) for word in words(key)) else None
    if is_list(value):
        inner = [stated(key, item, prompt, schema={}) for item in value]
        return None if not inner or None in inner else True
    if is_number(value):
        spelt = [f"{value:g}", str(value), f"{value:,}", f"{value / 100:.2f}"]
        places = [found for text in spelt if (found := _place(text, prompt)) is not None]
        return None if not places else not any(_is_loose(prompt, *place) for place in places)
    place = _place(value, prompt) if isinstance(value, str) and len(value) >= 2 else None
    return None if place is None else _is_meant(key, value, prompt, place=place, schema=schema)


def _is_meant(key: str, value: str, prompt: str, *, place: tuple[int, int], schema: Any) -> bool:
    """True if a text in the prompt stands there as the argument's value."""
    if schema.get("enum"):
        return True
    if _NAMES.fullmatch(value) or is_id(key):
        return not (_DAY.fullmatch(value) or _TIME.fullmatch(value)) or not _is_loose(prompt, *place)
    before = prompt[max(0, place[0] - _NEAR) : place[0]].lower()
    return bool(_EXACT.search(before)) or any(len(word) >= 3 and word in before for word in words(key))


def _place(said: str, prompt: str) -> tuple[int, int] | None:
    """Returns the span of a value that stands in a prompt as a word of its own."""
    left = r"(?<![\w.])" if said[:1].isalnum() else ""
    right = r"(?!\w|\.\d)" if said[-1:].isalnum() else ""
    found = re.search(f"{left}{re.escape(said)}{right}", prompt, re.IGNORECASE)
    return found.span() if found else None


def _is_loose(prompt: str, start: int, end: int) -> bool:
    before, after = prompt[max(0, start - 30) : start], prompt[end : end + 15]
    return bool(_LOOSE.search(before.rpartition(". ")[2]) or re.match(r"\s*(\w+ )?or (more|less|so|later)", after))


def _is_exact(value: Any, prompt: str) -> bool:
    place = _place(str(value), prompt)
    return place is not None and bool(_EXACT.search(prompt[max(0, place[0] - _NEAR) : place[0]]))


def _other_values(ctx: AuditContext, op: Op, key: str, *, schema: Any) -> list[tuple[str, Any]]:
    value = op.value[key]
    if isinstance(value, bool):
        return [("other", not value)]
    if schema.get("enum"):
        return [("other", item) for item in schema["enum"] if item != value]
    if is_list(value):
        last = f"x{value[-1]}" if isinstance(value[-1], str) else value[-1] + 1 if is_number(value[-1]) else value[-1]
        return [("shorter", value[:-1]), ("other", [*value[:-1], last]), ("longer", [*value, last])]
    if is_number(value) and not is_id(key):
        return [("more", value + 1), ("more", value * 2 + 1), ("less", value - 1), ("less", type(value)(value // 2))]
    if isinstance(value, str) and (_TIME.fullmatch(value) or _DAY.fullmatch(value)):
        return [("other", text) for text in _shifted(value)]
    found: list[tuple[str, Any]] = []
    if is_id(key) or is_number(value) or _NAMES.fullmatch(str(value)):
        known = [item for item in ctx.discovery.values.of(key) if type(item) is type(value) and item != value]
        found = [("other", item) for item in known[:: max(1, len(known) // 4)][:5]]
    if isinstance(value, str):
        found.append(("other", f"x{value}"))
        if len(value) >= 8 and not _NAMES.fullmatch(value):
            further = f"{value} And something else."
            found += [("shorter", value[: len(value) // 2]), ("other", "Something else."), ("longer", further)]
    return found


def _shifted(value: str) -> Iterator[str]:
    """A time or a day, a little later and earlier."""
    if _DAY.fullmatch(value):
        with contextlib.suppress(ValueError):
            day = date.fromisoformat(value)
            yield from ((day + timedelta(days=days)).isoformat() for days in (1, -1, 7))
        return
    minutes = int(value[:2]) * 60 + int(value[3:])
    moved = [minutes + later for later in (60, -60, 15, -15, 1)]
    yield from (f"{at // 60:02d}:{at % 60:02d}" for at in moved if 0 <= at < 24 * 60)


def _turned(op: Op, spec: ToolSpec, prompt: str) -> Iterator[OtherValue]:
    """Two names of one kind, each in the other's place: from there to here."""
    texts = {key: value for key, value in op.value.items() if isinstance(value, str) and _NAMES.fullmatch(value)}
    keys = [key for key, value in texts.items() if stated(key, value, prompt, schema={})]
    for key, other_key in itertools.combinations(keys, 2):
        first, second = (
            (spec.properties.get(name, {}).get("type"), re.sub(r"[A-Za-z]", "a", re.sub(r"\d", "0", texts[name])))
            for name in (key, other_key)
        )
        if first == second and texts[key] != texts[other_key]:
            yield OtherValue(f"{key}|{other_key}", "turned round", None)


def changed_op(op: Op, change: OtherValue) -> Op:
    """The op with the change made."""
    if change.kind == "turned round":
        first, second = change.key.split("|")
        return giving(op, **{first: op.value[second], second: op.value[first]})
    if change.value is not msgspec.UNSET:
        return giving(op, **{change.key: change.value})
    return msgspec.structs.replace(op, value={key: value for key, value in op.value.items() if key != change.key})
