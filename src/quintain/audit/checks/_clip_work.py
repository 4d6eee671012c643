"""Checks that damage never pays, and that a reward counts each field of a call."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.fields import SPARE, Part, fields_of
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, answer, number, reset

from ._clip_states import EPSILON, holds, paid_by
from ._reward_runs import runs_of
from ._same_wide import kinds, known

ACTS = 16
"""Writes that are tried in a task."""
TASKS, PAIRS = 4, 6
"""Tasks of which calls are shortened; pairs of fields that are left out of one call."""
Losses = tuple[Part, ...]
ANSWERED, FIELDS = 8, 6
"""Tasks whose JSON answers are taken apart, and parts of one kind that are tried."""
TEXTS = {
    "grows": "is paid, and twice is paid more", "makes_good": "costs something, and twice costs less",
    "is_free": "costs something once, and nothing any more, though it is counted",
}  # fmt: skip


@check("x.damage_pays", "reward_clipping", needs=("oracle", "state", "tasks", "tools"), value=56)
def damage_pays(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that damage outside the solution never raises the reward and that two damages cost at least one."""
    for task in kinds(ctx, 2):
        ops = ctx.oracle(task) or ()
        if not ops or not ctx.solution_score(task):
            continue
        acts = _elsewhere(ctx, task, ops)
        for begun in dict.fromkeys((0, len(ops) // 2, len(ops) - 1, len(ops))):
            ctx.count_comparisons()
            found = _worth(ctx, task, ops[:begun], acts=acts)
            if found is not None:
                yield found
                return


def _elsewhere(ctx: AuditContext, task: str, ops: Sequence[Op]) -> list[Op]:
    """Returns writes to rows that the solution does not touch, each to rows of its own.

    Tables in which the solution makes rows get no new rows from them.
    """
    tried = [op for op in known(ctx, task).acts if op not in ops][:ACTS]
    plays = [Probe((reset(task), *some, Op("changes", mark="look"))) for some in (ops, *([op] for op in tried))]
    whole, *records = ctx.play_all(plays)
    background = ctx.discovery.background
    taken = _rows(whole.at("look").value, background)
    found: list[Op] = []
    for op, record in zip(tried, records, strict=True):
        rows = _rows(record.at("look").value, background)
        if rows and not rows & taken and not any(seen.is_error for seen in record.seen):
            taken |= rows
            found.append(op)
    return found


def _rows(changes: Any, background: frozenset[str]) -> set[str]:
    """The rows in which something changed; the table, where a row is new, for a new row is like any other."""
    found: set[str] = set()
    for path, sides in changes.items() if is_dict(changes) else ():
        table, *rest = path.split("/")
        if table not in background:
            found.add(table if len(rest) < 2 and sides[0] is None else "/".join((table, *rest[:1])))
    return found


def _worth(ctx: AuditContext, task: str, begun: Sequence[Op], *, acts: Sequence[Op]) -> Finding | None:
    def probes(*damages: tuple[Op, ...]) -> list[Probe]:
        return [solves(task, (*begun, *damage)) for damage in damages]

    none, *scores = [number(record.at("score")) for record in ctx.play_all(probes((), *((act,) for act in acts)))]
    if none is None:
        return None
    pairs = [(act, amount - none) for act, amount in zip(acts, scores, strict=True) if amount is not None]
    costly = ("makes_good", "is_free") if ctx.attribute("graded") is True else ("makes_good",)
    for rules, sign in ((("grows",), 1), (costly, -1)):
        some = [act for act, gain in pairs if sign * gain > EPSILON]
        for first, second in itertools.islice(itertools.combinations(some, 2), 3):
            tried = probes((), (first,), (second,), (first, second))
            records = ctx.play_all(tried)
            for rule in rules:
                if holds(rule, records):
                    return paid_by(
                        ctx, rule, f"to change data outside the task {TEXTS[rule]}: {first.name} and {second.name}",
                        *tried, expected=f"at most {none:g}" if rule == "grows" else "less for both than for one",
                        observed={"without": none}, teaches="to do damage",
                    )  # fmt: skip
    return None


# --- calls with several fields ---


@check("x.half_filled", "reward_clipping", needs=("oracle", "tasks"), value=51)
def half_filled(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that fields whose loss alone costs nothing also cost nothing together; else the reward is rounded."""
    reported, tried = set[str](), set[Losses]()
    prompts = {task: str(ctx.play(reset(task)).seen[0].value) for task in ctx.sample_tasks(ANSWERED)}
    by_words = sorted(prompts.items(), key=lambda pair: SPARE.search(pair[1]) is not None)
    yield next(filter(None, (_cut_off(ctx, *pair, known=tried) for pair in by_words)), None)
    for task in ctx.sample_tasks(TASKS):
        full, ops = ctx.solution_score(task), ctx.oracle(task) or ()
        for place, first, second, calls in _pairs(ctx, ops) if full else ():
            if (name := ops[place].name) in reported:
                continue
            ctx.count_comparisons()
            ways = [(*ops[:place], spoilt, *ops[place + 1 :]) for spoilt in calls]
            probes = [solves(task, way) for way in (*ways, ops)]
            if holds("rounds", ctx.play_all(probes)):
                reported.add(name)
                yield paid_by(
                    ctx, "rounds",
                    f"{name} is paid in full without the right {first} or {second}, not without both: it is rounded",
                    *probes, expected="less for each field that is missing", observed=f"{full:g} without either",
                    teaches="to leave out work that rounding pays for",
                )  # fmt: skip


def _cut_off(ctx: AuditContext, task: str, prompt: str, *, known: set[Losses]) -> Finding | None:
    """Returns a finding for parts of an answer of which each may be lost for free, and not all.

    Of three parts two lost cost something, and three more: so the reward counts each, and its sum is cut off. Or any
    field may be lost, and each is one too many with some others. Known parts are not tried again.
    """
    ops = ctx.oracle(task) or ()
    fields, full = fields_of(ops), ctx.solution_score(task)
    if fields is None or not full:
        return None

    def free(losses: Sequence[Losses]) -> list[Losses]:
        ctx.count_comparisons(len(losses))
        tried = runs_of(ctx, task, [(*ops[:-1], answer(fields.without(*lost))) for lost in losses])
        return [lost for lost, run in zip(losses, tried, strict=True) if run.score and run.score >= full - EPSILON]

    lists = [[(key, place) for place in range(len(item))] for key, item in fields.value.items() if is_list(item)]
    for group in [some for some in (fields.keys, *lists) if len(some) > 2 and tuple(some) not in known]:
        known.add(tuple(group))
        single = free([(part,) for part in group[:FIELDS]])
        least = _least(single, free)
        every, parts = list(itertools.chain(*single)), list(itertools.chain(*least))
        threes = _of_known(every, 3, least)
        losses = [lost for three in threes[:1] for size in (1, 2, 3) for lost in itertools.combinations(three, size)]
        # Where one of two fields is enough, each is in one set alone.
        is_any = group == every == fields.keys and {*every} == {*parts} and len(parts) > len(every)
        losses = losses or ([*single, least[0]] if is_any and all(key in prompt for key in fields.value) else [])
        if losses:
            names = ", ".join(key if place < 0 else f"{key}[{place}]" for key, place in dict.fromkeys(sum(losses, ())))
            return paid_by(
                ctx, "cut_off" if threes else "rounds",
                f"an answer that lacks one of {names} is paid in full, and less without {'two' if threes else 'more'}",
                *(solves(task, (*ops[:-1], answer(fields.without(*lost)))) for lost in losses), solves(task, ops),
                expected="less for each part that is wrong or missing", observed=f"{full:g} without any one",
                teaches="to leave out a part that costs nothing",
                at_most="likely" if SPARE.search(prompt) else "proven",
            )  # fmt: skip
    return None


def _least(kept: list[Losses], free: Callable[[list[Losses]], list[Losses]]) -> list[Losses]:
    """Returns the smallest sets of parts, each of which may be lost alone, that may not be lost together."""
    parts, found = list(itertools.chain(*kept)), list[Losses]()
    for size in (2, 3, 4):
        tried = _of_known(parts, size, kept)
        kept = free(tried)
        found += [some for some in tried if some not in kept]
    return found


def _of_known(parts: Sequence[Part], size: int, known: Sequence[Losses]) -> list[Losses]:
    """Returns the sets of so many parts of which all that are smaller by one are known."""
    sets = itertools.combinations(parts, size)
    return [some for some in sets if {*itertools.combinations(some, size - 1)} <= {*known}]


def _pairs(ctx: AuditContext, ops: Sequence[Op]) -> Iterator[tuple[int, str, str, list[Op]]]:
    """Places of calls with two fields that are left out or hold another choice: in one, in the other, in both."""
    tools = {tool.name: tool for tool in ctx.about.tools}
    for place, op in enumerate(ops):
        tool = tools.get(op.name)
        if op.do != "call" or tool is None or not is_dict(op.value):
            continue
        choices = {name: _other_choice(tool.properties.get(name), value) for name, value in op.value.items()}
        gone = dict.fromkeys((name for name in op.value if name not in tool.required), None)
        for spoilt in ({name: item for name, item in choices.items() if item is not None}, gone):
            for pair in itertools.islice(itertools.combinations(spoilt, 2), PAIRS):
                yield (
                    place, *pair,
                    [_spoilt(op, {name: spoilt[name] for name in some}) for some in (pair[:1], pair[1:], pair)],
                )  # fmt: skip


def _other_choice(schema: Any, value: Any) -> Any:
    """Another one of a closed choice; None where there is none."""
    forms: list[Any] = [schema, *(schema.get("anyOf") or ())] if is_dict(schema) else []
    choices: list[Any] = [option for form in forms if is_dict(form) for option in form.get("enum") or ()]
    return next((choice for choice in choices if choice is not None and choice != value), None)


def _spoilt(op: Op, fields: dict[str, Any]) -> Op:
    given = {name: value for name, value in (op.value | fields).items() if value is not None}
    return msgspec.structs.replace(op, value=given)
