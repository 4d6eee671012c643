"""Other values for an argument of a solution that the prompt decides: a number, a name, a text, a list.

An argument is decided when its value stands in the prompt. A value that a prompt leaves open ("at least 20", "any
room") is not, and free words count only where the prompt fixes their wording.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from quintain.audit.facts.data import is_list, is_number
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, number, reset, score, state
from quintain.audit.kernel.registry import relation

from . import _reward_runs as claims
from ._reward_acts import is_id, names, words
from ._reward_runs import Run, Solution, lacking, paid, runs, survives, weight
from ._unsolv_runs import numbers, solution_runs, text_of

SOLVED = 6
"""Tasks whose solutions are changed."""
_ENOUGH = 2
"""Tasks in which one kind of change of one argument is tried."""


@check("x.changed_argument", "reward_hack", needs=("oracle", "state", "tasks", "tools"), value=58)
def changed_argument(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution with one argument other than the prompt says is paid less."""
    tried: Counter[tuple[str, str, str]] = Counter()
    reported: set[tuple[str, str]] = set()
    for solution in paid(ctx, SOLVED):
        ways: list[tuple[int, OtherValue, tuple[Op, ...]]] = []
        for place in solution.writes:
            found = list(changes(ctx, solution.ops[place], solution.prompt))
            fresh = [change for change in found if tried[solution.ops[place].name, change.key, change.kind] < _ENOUGH]
            tried.update({(solution.ops[place].name, change.key, change.kind) for change in fresh})
            ways += [
                (place, change, _with(solution, {place: changed_op(solution.ops[place], change)})) for change in fresh
            ]
        ctx.count_comparisons(len(ways))
        for (place, change, way), run in zip(ways, runs(ctx, solution, [way for *_, way in ways]), strict=True):
            name = solution.ops[place].name
            if (name, change.key) in reported or set(run.errors) - set(solution.errors) or not survives(solution, run):
                continue
            finding = _paid_all_the_same(ctx, solution, place, change=change, shown=(way, run))
            if finding is not None:
                reported.add((name, change.key))
                yield finding


def _paid_all_the_same(
    ctx: AuditContext, solution: Solution, place: int, *, change: OtherValue, shown: tuple[tuple[Op, ...], Run]
) -> Finding | None:
    way, run = shown
    lacks = lacking(solution, run, solution.effects.get(place, ()))
    if not lacks:
        return None
    name, key = solution.ops[place].name, change.key.replace("|", " and ")
    own: Any = {part: solution.ops[place].value[part] for part in change.key.split("|")}
    marked = [op.marked("wrong") if where == place else op for where, op in enumerate(way)]
    return ctx.finding(
        f"{name} is paid with {key} {change.kind}, not as the task says"
        if change.kind in ("turned round", "left out")
        else f"{name} is paid with another {key} than the one that the task names",
        Probe((reset(solution.task), *marked, state(), score())),
        relation=claims.PAID,
        marks=("score", "state", "wrong"),
        data={"full": solution.full, "lacks": lacks, "done": ["wrong"]},
        minimise=20,
        part="V",
        expected=f"{own}, as the prompt says",
        observed={"arguments": way[place].value, "score": run.score},
        teaches="that arguments given by the task may be wrong",
    )


_PAIRS = 3
"""Pairs of calls that are tried in one task."""
_SHARED = re.compile(
    r"\b(split|divid\w+|share\w*|distribut\w+|between|among|in all|altogether|total|sum|any|either)\b", re.IGNORECASE
)
"""Words by which a task may leave open how much goes where."""


@check("x.right_in_sum", "reward_hack", needs=("oracle", "state", "tasks", "tools"), value=59)
def right_in_sum(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that two errors that cancel in a sum are paid less, if each of them alone is."""
    reported: set[str] = set()
    pairs = [(solution, pair) for solution in paid(ctx, 12) for pair in itertools.islice(_pairs(ctx, solution), _PAIRS)]
    if not pairs:
        raise ctx.not_checked("no solution calls one tool twice with numbers of which each is asked for")
    for left, (place, right, key) in pairs:
        name = left.ops[place].name
        if name in reported:
            continue
        less, more = _by(left.ops[place], key, -1), _by(left.ops[right], key, 1)
        ways = [_with(left, {place: less, right: more}), _with(left, {place: less}), _with(left, {right: more})]
        both, first, second = runs(ctx, left, ways)
        ctx.count_comparisons()
        worked = not {*both.errors, *first.errors, *second.errors} - {*left.errors}
        if not worked or not survives(left, both) or survives(left, first) or survives(left, second):
            continue
        reported.add(name)
        effects = (*left.effects.get(place, ()), *left.effects.get(right, ()))
        lacks = lacking(left, both, effects)
        if lacks:
            marked = _with(left, {place: less.marked("less"), right: more.marked("more")})
            yield ctx.finding(
                f"{name} is paid when {key} is too little in one call and too much in another: the sum alone is asked",
                Probe((reset(left.task), *marked, state(), score())),
                *(Probe((reset(left.task), *way, score())) for way in ways[1:]),
                relation=f"{__name__}:sum_alone",
                marks=("score", "state", "less", "more"),
                data={"full": left.full, "lacks": lacks, "done": ["less", "more"]},
                minimise=0,
                part="V",
                **(_weight(left, lacks)),
                expected=f"less than {left.full:g}, as for either of the two wrong numbers alone",
                observed=both.score,
                teaches="that the split of a sum does not matter",
            )


def _weight(solution: Solution, lacks: list[list[Any]]) -> dict[str, Any]:
    """Returns the severity: each number is required if either alone costs reward, unless the split is open."""
    return weight(solution, lacks) if _SHARED.search(solution.prompt) else {"severity": "error", "at_most": "proven"}


def _pairs(ctx: AuditContext, solution: Solution) -> Iterator[tuple[int, int, str]]:
    """Two writes by one tool that give different numbers, which may be one less and one more."""
    tools = {tool.name: tool for tool in ctx.about.tools}
    known: set[Decimal] | None = None
    for place, other_place in itertools.combinations(solution.writes, 2):
        left, right = solution.ops[place], solution.ops[other_place]
        spec = tools.get(left.name)
        if spec is None or left.name != right.name:
            continue
        for key, value in left.value.items():
            if left.value | {key: None} == right.value | {key: None}:
                continue  # It is one thing, done in two steps.
            both = (value, right.value.get(key))
            changed = (_by(left, key, -1), _by(right, key, 1)) if all(map(is_number, both)) and not is_id(key) else ()
            if changed and all(fits(op.value[key], spec.properties.get(key, {}), spec.parameters) for op in changed):
                known = _known(ctx, solution) if known is None else known
                if not _asks_for_sum(both, known):
                    yield place, other_place, key


def _known(ctx: AuditContext, solution: Solution) -> set[Decimal]:
    """Returns the numbers in the prompt, in the results that the solution reads, and in the world."""
    read = next(
        (
            solution_run.before(len(solution_run.ops))
            for solution_run in solution_runs(ctx)
            if solution_run.task == solution.task
        ),
        solution.prompt,
    )
    world = text_of(ctx.play(reset(solution.task), state()).at("state"))
    return numbers(f"{read}\n{world}", alone=True)


def _asks_for_sum(both: tuple[Any, ...], known: set[Decimal]) -> bool:
    """True if the sum of two numbers is known and not each of them, so that the split is free."""
    whole = sum(Decimal(str(item)) for item in both)
    return whole in known and not all(Decimal(str(item)) in known for item in both)


def _by(op: Op, key: str, step: int) -> Op:
    return msgspec.structs.replace(op, value=op.value | {key: op.value[key] + step})


def _with(solution: Solution, changed: dict[int, Op]) -> tuple[Op, ...]:
    return tuple(changed.get(place, op) for place, op in enumerate(solution.ops))


@relation
def sum_alone(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first probe is paid in full and lacks something; the others, with one of its two numbers, are paid less."""
    alone = [number(record.at("score")) for record in records[1:]]
    return claims.paid_anyway(records[:1], evidence) and all(
        got is not None and got < evidence.data["full"] - 1e-9 for got in alone
    )


_LOOSE = re.compile(
    r"\b(at least|at most|up to|no more than|not more than|no less than|minimum|maximum|about|around|approximately"
    r"|roughly|or more|or less|within|not exceed|between|any|either|some|whichever|before|after|until|or later"
    r"|or earlier|under|over|below|above)\b",
    re.IGNORECASE,
)
"""Words that leave a value open."""
_EXACT = re.compile(r"exactly|verbatim|word for word|literally|saying|that says|reads?:|[\"'`“«]\s*$", re.IGNORECASE)
"""Words before a text that has to be that very text."""
_WRITTEN = names("note notes log comment remember memo remark activity")
"""Words of tools that only write something down."""
_NEAR = 60
"""Characters before a value in which words speak of it."""
_TIME, _DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)"), re.compile(r"\d{4}-\d\d-\d\d")
_NAMES = re.compile(r"\S*(\d|@)\S*")
"""One word with a digit or an "at" in it, which has one spelling only."""


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
    spec = next((tool for tool in ctx.about.tools if tool.name == op.name), None)
    if spec is None:
        return
    for key, value in op.value.items():
        schema: Any = spec.properties.get(key, {})
        sure = stated(key, value, prompt, schema=schema)
        if not sure or (schema.get("enum") and _WRITTEN & set(words(op.name))):
            continue  # What a remark is filed under: its word may stand in the prompt by chance.
        for kind, other_value in _other_values(ctx, op, key, schema=schema):
            held = kind == "longer" and not is_list(value) and not _is_exact(value, prompt)
            if other_value != value and not held and fits(other_value, schema, spec.parameters):
                yield OtherValue(key, kind, other_value)
        if isinstance(value, bool) and key not in spec.required:
            yield OtherValue(key, "left out", msgspec.UNSET)
    yield from _turned(op, spec, prompt)


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


def _other_values(ctx: AuditContext, op: Op, key: str, *, schema: Any) -> Iterator[tuple[str, Any]]:
    value = op.value[key]
    if isinstance(value, bool):
        yield "other", not value
    elif schema.get("enum"):
        yield from (("other", item) for item in schema["enum"] if item != value)
    elif is_list(value):
        yield "shorter", value[:-1]
        yield "other", [*value[:-1], _like(value[-1])]
        yield "longer", [*value, _like(value[-1])]
    elif is_number(value) and not is_id(key):
        yield "more", value + 1
        yield "more", value * 2 + 1
        yield "less", value - 1
        yield "less", type(value)(value // 2)
    elif isinstance(value, str) and (_TIME.fullmatch(value) or _DAY.fullmatch(value)):
        yield from (("other", text) for text in _shifted(value))
    else:
        known = [
            candidate
            for candidate in ctx.discovery.values.of(key)
            if type(candidate) is type(value) and candidate != value
        ]
        if is_id(key) or is_number(value) or _NAMES.fullmatch(str(value)):
            yield from (("other", item) for item in known[:: max(1, len(known) // 4)][:5])
        if isinstance(value, str):
            yield from _texts(value)


def _texts(value: str) -> Iterator[tuple[str, str]]:
    yield "other", f"x{value}"
    if len(value) >= 8 and not _NAMES.fullmatch(value):
        yield "shorter", value[: len(value) // 2]
        yield "other", "Something else."
        yield "longer", f"{value} And something else."


def _shifted(value: str) -> Iterator[str]:
    """A time or a day, a little later and earlier."""
    if _DAY.fullmatch(value):
        try:
            day = date.fromisoformat(value)
        except ValueError:
            return
        yield from ((day + timedelta(days=days)).isoformat() for days in (1, -1, 7))
        return
    minutes = int(value[:2]) * 60 + int(value[3:])
    for later in (60, -60, 15, -15, 1):
        if 0 <= minutes + later < 24 * 60:
            yield f"{(minutes + later) // 60:02d}:{(minutes + later) % 60:02d}"


def _like(value: Any) -> Any:
    return f"x{value}" if isinstance(value, str) else value + 1 if is_number(value) else value


def _turned(op: Op, spec: ToolSpec, prompt: str) -> Iterator[OtherValue]:
    """Two names of one kind, each in the other's place: from there to here."""
    keys = [
        key
        for key, value in op.value.items()
        if isinstance(value, str) and _NAMES.fullmatch(value) and stated(key, value, prompt, schema={})
    ]
    for place, key in enumerate(keys):
        for other_value in keys[place + 1 :]:
            alike = spec.properties.get(key, {}).get("type") == spec.properties.get(other_value, {}).get("type")
            if (
                alike
                and _shape(op.value[key]) == _shape(op.value[other_value])
                and op.value[key] != op.value[other_value]
            ):
                yield OtherValue(f"{key}|{other_value}", "turned round", None)


def _shape(value: str) -> str:
    return re.sub(r"[A-Za-z]", "a", re.sub(r"\d", "0", value))


def changed_op(op: Op, change: OtherValue) -> Op:
    """The op with the change made."""
    if change.kind == "turned round":
        first, second = change.key.split("|")
        return msgspec.structs.replace(op, value=op.value | {first: op.value[second], second: op.value[first]})
    left = {key: value for key, value in op.value.items() if key != change.key or change.value is not msgspec.UNSET}
    given: dict[str, Any] = {} if change.value is msgspec.UNSET else {change.key: change.value}
    return msgspec.structs.replace(op, value=left | given)
