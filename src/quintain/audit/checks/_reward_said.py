"""Checks reports of success that the world contradicts: in answers, and in what reading tools show.

Siblings show what a call does: the sum that another tool reports is in the world. Where a call gives an answer of the
same form and its argument has no effect, the answer is false.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts import acts as act
from quintain.audit.facts.acts import at
from quintain.audit.facts.data import is_dict, is_number, parsed
from quintain.audit.facts.variations import Variation
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_told import Series, Slots, called, holds, made_by, series_of, slots_in, slots_of, takes
from ._drift_words import SAYS, show
from ._reward_runs import Solution, claim, paid, places, unpunished

LATER = re.compile(
    r"\b(later|pending|queue\w*|schedul\w*|approv\w*|review\w*|limit\w*|cap|capped|threshold\w*|above|over|more than"
    r"|at most|at least|maximum|minimum|up to|exceed\w*|overnight|batch\w*|tomorrow|accepted|unless|asynchron\w*"
    r"|eventual\w*|rounded)\b",
    re.IGNORECASE,
)
"""Words by which a tool or a task says that a value may be treated otherwise, or not at once."""


@check("x.undone_in_sight", "false_resolution", needs=("oracle", "tasks", "tools"), value=68)
def undone_in_sight(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that work that the task requires and readers show as undone is not paid in full."""
    known = [solution for solution in paid(ctx, 6) if not solution.sees]
    if not known:
        raise ctx.not_checked("the world can be looked into: other checks do")
    for solution in known:
        writes = [
            place for place in solution.writes if act.does_write(ctx, solution.ops[place]) and len(solution.ops) > 1
        ]
        asked = [place for place in writes if is_spoken_of(ctx, solution, place, known=known)]
        for place, way, _ in unpunished(ctx, solution, [(place, solution.without(place)) for place in asked]):
            yield _left_undone(ctx, solution, solution.ops[place].name, way=way)


def looks_of(ctx: AuditContext, solution: Solution) -> list[Op]:
    """Calls that read, by their names: those of the solution, those that need no argument, and of things it names."""
    given = [value for op in solution.ops if op.do == "call" for value in op.value.values()]
    named = list(dict.fromkeys(value for value in given if isinstance(value, str) and value))
    found = [op for op in solution.ops if act.only_reads(ctx, op) and not act.does_write(ctx, op)]
    for tool in ctx.about.tools:
        if act.only_reads(ctx, call(tool.name)) and {"wait", "sleep", "advance", "ask"}.isdisjoint(
            act.words(tool.name)
        ):
            found += [call(tool.name)] if not tool.required else []
            found += [call(tool.name, {tool.required[0]: name}) for name in named[:4] if len(tool.required) == 1]
    return list({act.known_as(op): op.marked("") for op in found}.values())[:8]


def is_spoken_of(ctx: AuditContext, solution: Solution, place: int, *, known: Sequence[Solution]) -> bool:
    """True if a prompt asks for a call: for its verb, a value, or a thing named by this tool alone.

    A thing counts if the prompts of some tasks do not mention it, so that it is not the subject of the whole world.
    """
    op = solution.ops[place]
    if act.asked_for(op, solution.prompt):
        return True
    other_values = {word for tool in ctx.about.tools if tool.name != op.name for word in act.words(tool.name)}
    for word in act.words(op.name)[1:]:
        is_said = [re.search(rf"\b{re.escape(word)}", each.prompt, re.IGNORECASE) is not None for each in known]
        here = is_said[known.index(solution)]
        if len(word) >= 4 and word not in other_values and here and not all(is_said):
            return True
    return False


def _left_undone(ctx: AuditContext, solution: Solution, name: str, *, way: Sequence[Op]) -> Finding | None:
    """The way is paid: what the readers show of the write, and show no more when it is left out."""
    marked = [op.marked(f"look {number}") for number, op in enumerate(looks_of(ctx, solution))]
    plays = ((), solution.ops, solution.ops, tuple(way))
    records = ctx.play_all([Probe((reset(solution.task), *ops, *marked)) for ops in plays])
    shown = [(look, undone) for look in marked if (undone := _shown(look.mark, records, ctx.volatile))]
    for look, undone in shown[:1]:
        lacks, has = ([[list(path), pair[at]] for path, *pair in undone[:10]] for at in (1, 0))
        return claim(
            ctx, solution, (*way, look.marked("state")),
            title=f"{name} is left out, {look.name} shows that nothing of it is done, and that is paid in full",
            lacks=lacks, has=has, minimise=0,
            expected=f"less than {solution.full:g}: the task names it, but {look.name} still shows {places(lacks)} as "
            "at the start",
            observed=solution.full, teaches=f"to leave out {name}",
        )  # fmt: skip
    return None


def _shown(mark: str, records: Sequence[Record], volatile: Sequence[str]) -> list[tuple[act.Path, object, object]]:
    """Paths that the solution changes, the same in each play, and the way leaves as they were."""
    if not all(record.at(mark).fine for record in records):
        return []
    start, end, again, short = (parsed(record.at(mark).value) for record in records)
    unsure, changed = act.differences(end, again, volatile), act.differences(start, end, volatile)
    return [
        (path, old, new)
        for path, (old, new) in changed.items()
        if path and path not in unsure and at(short, path) == old and not act.is_bookkeeping(path)
    ]


_OTHERWISE = re.compile(
    r"\b(pending|queue\w*|schedul\w*|approv\w*|draft\w*|preview\w*|propos\w*|later|simulat\w*|conflict\w*|taken"
    r"|refus\w*|reject\w*|unchanged|skipp\w*|ignor\w*|already)\b",
    re.IGNORECASE,
)
"""Words of an answer that says that it is not done, or not yet."""


@check("x.answered_and_not_done", "false_resolution", needs=("tools", "call", "state", "tasks"), value=77)
def answered_and_not_done(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a call whose answer reports its request as done has done it."""
    working = [one for one in ctx.variations.all if one.works and one.kind != "illegal"]
    good = {_key(one): one for one in working if one.kind == "good" and one.changes}
    if not good:
        raise NotChecked("no call is seen to change anything")
    for variation in [one for one in working if one.changes == {} and _key(one) in good]:
        base, tool = good[_key(variation)], variation.tool.name
        ctx.count_comparisons()
        asked, answers = (variation.arguments, base.arguments), (variation.seen.value, base.seen.value)
        names = [text for text in asked[0] if asked[0][text] != asked[1].get(text)]
        name = next((name for name in names if _is_said(name, asked, answers, moved=base.changes or {})), "")
        yield show(
            ctx, f"{tool} answers with the given {name}, and the world is unchanged", only_said,
            variation.probe(looks=True), base.probe(looks=True), data=name,
            expected=f"an error, or {name} = {asked[0][name]!r} in the world as in the answer",
            observed={"answer": answers[0], "changes": []}, teaches="to trust a tool's report of success",
        ) if name else None  # fmt: skip


def _key(variation: Variation) -> str:
    return f"{variation.tool.name} {variation.base_state.task} {variation.base_state.before} {variation.good}"


@relation
def only_said(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first call works, changes nothing, and shows its argument as the second does, which sets a field to it."""
    calls = [record.at("call") for record in records[:2]]
    moved = [made_by(record) for record in records[:2]]
    if any(result.is_error for result in calls) or moved[0] != {} or not moved[1]:
        return False
    asked = (called(records[0]).value, called(records[1]).value)
    return _is_said(evidence.data, asked, (calls[0].value, calls[1].value), moved=moved[1])


def _is_said(name: str, asked: tuple[Any, Any], answers: tuple[Any, Any], *, moved: dict[str, list[Any]]) -> bool:
    """True if both answers show the argument in one field and only the second world has it."""
    own, other = asked[0].get(name), asked[1].get(name)
    if not all(is_number(value) or (isinstance(value, str) and len(value.strip()) > 1) for value in (own, other)):
        return False
    set_to = [(was, new) for was, new in moved.values() if takes(new, other) and not takes(was, other)]
    first, second = parsed(answers[0]), parsed(answers[1])
    if not set_to or any(takes(was, own) for was, _ in set_to) or not (is_dict(first) and is_dict(second)):
        return False
    # An answer may have another status or flag than that of the call that worked.
    told = [key for key in first if isinstance(first[key], bool) or act.is_status(key)]
    if first.keys() != second.keys() or any(first[key] != second[key] for key in told):
        return False
    shown = [key for key in first if takes(first[key], own) and takes(second[key], other)]
    return any(not takes(first[key], other) for key in shown) and not _words(first, own) - _words(second, other)


def _words(answer: dict[str, Any], asked: Any) -> set[str]:
    """Returns the words of doubt in an answer, outside of the repeated argument."""
    text = json.dumps(answer, ensure_ascii=False, default=str).replace(str(asked), "")
    return {word.group().lower() for doubt in (SAYS, _OTHERWISE) for word in doubt.finditer(text)}


TEACHES = "that an answer's report of success is enough"
_DONE = re.compile(r"[a-z]*[^e\W]ed|paid|sent|given|sold|bought|spent|withdrawn|taken|lent")
_NOT_DONE = {"requested", "expected", "limited", "allowed", "needed", "required", "used", "waited", "skipped", "red"}
_EXCUSED = re.compile(r"\b(if|whether|unless|ignor\w*|silently|known|only)\b", re.IGNORECASE)
"""Words by which a tool says that it may do nothing."""
_LEAST = 3


@check("x.answers_are_true", "false_resolution", needs=("tools", "call", "tasks", "state"), value=44)
def answers_are_true(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a sum or text that an answer reports as done is in the world."""
    known = [series for series in series_of(ctx) if not act.only_reads(ctx, series.variations[0].op)]
    if not known:
        raise NotChecked("no call that writes is known")
    for series in known:
        ctx.count_comparisons()
        if not LATER.search(series.text):
            yield _unpaid(ctx, series)
            yield None if _EXCUSED.search(series.text) else _unkept(ctx, series)


def _unpaid(ctx: AuditContext, series: Series) -> Finding | None:
    """Returns a finding for a number that is reported as done and never changes the world."""
    calls = zip(series.variations, series.slots, series.asked, strict=True)
    stated = [
        (variation, slots, field)
        for variation, slots, asked in calls
        for field, value in _numbers(slots).items()
        if is_number(asked) and value == asked
    ]
    variations = [variation for variation, _, field in stated if field == stated[0][2]]
    if len({str(variation.arguments[series.name]) for variation in variations}) < _LEAST:
        return None
    worlds = [_world(slots) for _, slots, _ in stated]
    sibling = _sibling(ctx, variations[0]) if worlds[0] and all(slots == worlds[0] for slots in worlds) else None
    if sibling is None:
        return None
    field, tool = stated[0][2], variations[0].tool.name
    return show(
        ctx, f"{tool} answers that its {series.name} is {field}, and nothing in the world depends on it", unpaid,
        *(variation.probe(looks=True) for variation in (*variations[:_LEAST], sibling)),
        data={"name": series.name, "field": field}, part="S",
        expected=f"the world shows what {series.name} = {series.asked[0]} does, as it does after {sibling.tool.name}",
        observed={"answer": variations[0].seen.value, "changes": list(worlds[0])}, teaches=TEACHES,
    )  # fmt: skip


def _numbers(slots: Slots) -> dict[str, Any]:
    """The numbers of an answer whose names say that something was done."""
    fields = {slot.partition("/")[2]: value for slot, (_, value) in slots.items() if slot.startswith("answer/")}
    done = {name for name in fields for word in act.words(name) if _DONE.fullmatch(word) and word not in _NOT_DONE}
    return {name: value for name, value in fields.items() if is_number(value) and name in done}


def _world(slots: Slots) -> Slots:
    return {slot: pair for slot, pair in slots.items() if not slot.startswith("answer/")}


def _sibling(ctx: AuditContext, variation: Variation) -> Variation | None:
    """Returns a call of another tool whose answer states a sum that is then in the world."""
    tools = [tool.name for tool in ctx.about.tools if tool.name != variation.tool.name]
    good = (one for tool in tools for one in ctx.variations.of(tool) if one.kind == "good" and one.works)
    return next((one for one in good if _is_kept(slots_of(one.changes, one.seen.value))), None)


def _is_kept(slots: Slots) -> bool:
    return any(
        value and any(holds(pair, value, how) for pair in _world(slots).values() for how in ("takes", "up", "down"))
        for value in _numbers(slots).values()
    )


@relation
def unpaid(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if all calls but the last report different sums with equal effects, unlike the last one."""
    name, field = evidence.data["name"], evidence.data["field"]
    *slots, last = map(slots_in, records)
    asked = [called(record).value[name] for record in records[:-1]]
    if any(record.at("call").is_error for record in records) or len({*map(str, asked)}) < _LEAST:
        return False
    said = [_numbers(each).get(field) == value and is_number(value) for each, value in zip(slots, asked, strict=True)]
    worlds = [_world(each) for each in slots]
    return all(said) and bool(worlds[0]) and all(world == worlds[0] for world in worlds) and _is_kept(last)


def _unkept(ctx: AuditContext, series: Series) -> Finding | None:
    """A text that is answered like one that was kept, and is not."""
    name, pairs = series.name, list(zip(series.variations, series.slots, strict=True))
    kept = [one for one, slots in pairs if one.kind != "unknown" and _keeps(slots, one.arguments[name])]
    lost = [one for one, slots in pairs if one.kind == "unknown" and one.changes is not None and not _world(slots)]
    for bad in lost:
        said = _said(bad.seen.value, bad.arguments[name])
        good = next((one for one in kept if _said(one.seen.value, one.arguments[name]) == said), None)
        if good is not None:
            return show(
                ctx, f"{bad.tool.name} answers as if it had kept a {name}, and nothing in the world is another one",
                unkept, bad.probe(looks=True), good.probe(looks=True), data=name, part="S",
                expected="an error, or a trace in the world", observed={"answer": bad.seen.value, "changes": []},
                teaches=TEACHES,
            )  # fmt: skip
    return None


def _keeps(slots: Slots, asked: Any) -> bool:
    return isinstance(asked, str) and any(takes(pair[1], asked) for pair in _world(slots).values())


def _said(answer: Any, asked: Any) -> str:
    """Returns an answer, with a placeholder wherever it repeats the argument."""
    answer = parsed(answer)
    pairs = answer.items() if is_dict(answer) else ()
    return repr({key: "<argument>" if item == asked else item for key, item in pairs} or answer)


@relation
def unkept(records: Sequence[Record], evidence: Evidence) -> bool:
    """Both calls are answered alike; the second one's text is in the world, and the first one has changed nothing."""
    bad, good = ((slots_in(record), called(record).value[evidence.data], record.at("call")) for record in records[:2])
    if bad[2].is_error or good[2].is_error or _said(bad[2].value, bad[1]) != _said(good[2].value, good[1]):
        return False
    return made_by(records[0]) is not None and not _world(bad[0]) and _keeps(good[0], good[1])
