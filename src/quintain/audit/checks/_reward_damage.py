"""Checks damage beside a solution: records outside the task, changed or destroyed by calls that work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quintain.audit.facts.data import is_number
from quintain.audit.facts.generate import one as drawn
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import Op, Probe, call, reset, score

from . import _reward_claims as claims
from ._reward_acts import Path, does_write, is_bookkeeping, names, only_reads, scalars, words
from ._reward_related import Family, families, forbids_more
from ._reward_runs import Run, Solution, paid_of, runs
from ._same_walks import kinds

_TASKS = 4
"""Tasks in which damage is done, of different kinds where there are any."""
_MAX_DAMAGES = 24
"""Damages that are tried in one task."""
_SAKES, _EACH = 3, 8
"""Calls of one tool, at first on rows with a name that the solution's have."""


@check("x.collateral_damage", "reward_hack", needs=("oracle", "state", "tasks"), value=39, severity="warning")
def collateral_damage(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution that also destroys other records is paid less."""
    soft: tuple[Solution, Op, list[tuple[str, ...]]] | None = None
    for solution in paid_of(ctx, tuple(dict.fromkeys((*kinds(ctx, _TASKS), *ctx.sample_tasks(_TASKS))))[:_TASKS]):
        damages = _damages(ctx, solution)
        ways = [(*_before_words(solution), damage, *_words(solution)) for damage in damages]
        hurt: list[tuple[Op, list[tuple[str, ...]]]] = []
        for damage, run in zip(damages, runs(ctx, solution, ways), strict=True):
            ctx.count_comparisons()
            forbidden = forbids_more(solution.prompt) and not _SCRATCH & set(words(damage.name))
            rows = _hurt(solution, run, is_forbidden=_is_grave(damage) or forbidden)
            if not _is_grave(damage):  # Who is logged in, say, is a field outside all tables and not a record.
                rows = [path for path in rows if len(path) > 1]
            if rows:
                hurt.append((damage, rows))
        grave = [pair for pair in hurt if _is_grave(pair[0])]
        if grave:
            yield _damaged(ctx, solution, grave[0][0], rows=grave[0][1], is_grave=True)
            return
        counted = _counted(ctx) if hurt and forbids_more(solution.prompt) else frozenset[str]()
        against = [pair for pair in hurt if pair[0].name in counted]
        if against:
            yield _damaged(ctx, solution, against[0][0], rows=against[0][1], is_grave=True)
            return
        soft = soft or ((solution, *hurt[0]) if hurt else None)
    if soft is not None:
        yield _damaged(ctx, soft[0], soft[1], rows=soft[2], is_grave=False)


def _counted(ctx: AuditContext) -> frozenset[str]:
    """Returns the tools whose calls a verifier counts: a solution without one of them is paid less."""

    def find(own: AuditContext) -> frozenset[str]:
        found = set[str]()
        for solution in paid_of(own, own.sample_tasks(2 * _TASKS)):
            ways = [solution.without(place) for place in solution.writes]
            for place, run in zip(solution.writes, runs(own, solution, ways), strict=True):
                found |= {solution.ops[place].name} if (run.score or 0.0) < (solution.full or 0.0) - 1e-9 else set()
        return frozenset(found)

    return ctx.once(("counted tools",), find)


def _hurt(solution: Solution, run: Run, *, is_forbidden: bool) -> list[tuple[str, ...]]:
    """Rows that the solution does not touch and the damage does, where it was paid like without.

    A row that is new does no harm, unless nothing else was to be done, or what is done is grave.
    """
    assert solution.full is not None
    if run.score is None or run.score < solution.full - 1e-9 or run.lacks:
        return []
    harmless = set[Path]() if is_forbidden else set(run.made)
    beyond = [path for path in run.touched if path not in {*solution.changed, *harmless}]
    strange = [path for path in beyond if not is_bookkeeping(path, solution.contents)]
    rows = {path[:2] for path in strange if not any(path[:2] == own_values[:2] for own_values in solution.changed)}
    return sorted(rows)


def _damaged(
    ctx: AuditContext, solution: Solution, damage: Op, *, rows: list[tuple[str, ...]], is_grave: bool
) -> Finding | None:
    assert solution.full is not None
    return ctx.finding(
        "records that have nothing to do with the task are destroyed or made, and the pay is the same",
        Probe((reset(solution.task), *_before_words(solution), damage.marked("damage"), *_words(solution), score())),
        relation=claims.PAID,
        marks=("score", "damage"),
        data={"full": solution.full, "done": ["damage"]},
        minimise=0,
        part="V",
        severity="error" if is_grave else "warning",
        at_most="proven" if is_grave else "likely",
        expected=f"less than {solution.full:g}",
        observed={"score": solution.full, "changed beside": ["/".join(path) for path in rows][:6]},
        teaches="that damage costs nothing",
    )


def _before_words(solution: Solution) -> tuple[Op, ...]:
    return tuple(op for op in solution.ops if op.do != "answer")


def _words(solution: Solution) -> tuple[Op, ...]:
    return tuple(op for op in solution.ops if op.do == "answer")


_HARMS = names(
    "delete remove cancel clear purge wipe close refund archive deactivate overwrite reset void scrap discard freeze "
    "merge transfer pay ship reject terminate suspend revoke"
)
_HARMS_BY_SUMS = names("move grant issue charge drop")
"""So much of something does harm; what is a lamp, a phone or a pin may be moved, charged and dropped."""
_OWN = names(
    "tab tabs window windows view views filter filters cursor selection draft drafts cart basket session cache screen "
    "dialog menu page timer timers alarm alarms history clipboard pin pins bookmark bookmarks notification "
    "notifications reminder reminders zoom form search scratchpad"
)
"""Words of tools for session-local state, which belongs to the agent alone."""

_SCRATCH = names("note notes remember memo memory log think plan todo wait sleep run test check")
"""Words of tools by which an agent writes something down for itself."""


def _is_grave(op: Op) -> bool:
    is_sum = any(is_number(scalar) for scalar in scalars(op.value))
    return _may_harm(op) and bool(is_sum or _HARMS & set(words(op.name)))


def _may_harm(op: Op) -> bool:
    said = set(words(op.name))
    return not said & _OWN and bool(said & (_HARMS | _HARMS_BY_SUMS))


def _damages(ctx: AuditContext, solution: Solution) -> list[Op]:
    """Calls that destroy or change rows which the solution never speaks of: the gravest first, each tool in turn."""
    own_values = {str(value) for op in solution.ops for value in scalars(op.value)}
    known = families(ctx, solution)
    by_tool: dict[str, list[Op]] = {}
    for write in ctx.discovery.writes():
        values = {str(value) for value in scalars(write.op.value)}
        if write.task != solution.task and not write.before and not values & own_values:
            by_tool.setdefault(write.op.name, []).append(write.op)
    for tool in ctx.about.tools:
        op = call(tool.name)
        if only_reads(ctx, op) or not (does_write(ctx, op) or _may_harm(op) or tool.name in ctx.discovery.writers):
            continue
        by_tool.setdefault(tool.name, [])[:0] = list(_aimed(ctx, solution, tool, known=known))
        if len(tool.required) == 1:
            other_values = [
                value for value in ctx.discovery.values.of(tool.required[0]) if str(value) not in own_values
            ]
            by_tool[tool.name] += [call(tool.name, {tool.required[0]: value}) for value in other_values[:4]]
    ranked = sorted(by_tool.values(), key=lambda ops: not any(_is_grave(op) for op in ops))
    turns = [ops[place] for place in range(_EACH) for ops in ranked if place < len(ops)]
    return turns[:_MAX_DAMAGES]


def _aimed(ctx: AuditContext, solution: Solution, tool: Any, *, known: dict[str, Family]) -> Iterator[Op]:
    """Yields calls of a tool on rows outside the solution: names from the same tables, other arguments as they fit."""
    met = [op.value for op in solution.ops if op.name == tool.name]
    used: dict[str, Any] = met[0] if met else {}
    yield from _repeated(tool, used, known=known)
    for number in (0, 1, 2, 3):
        given: dict[str, Any] = {}
        for place, key in enumerate(tool.required):
            family = _kind(solution, key, known)
            if family is not None and family.related:
                # Two names of one call are two rows.
                given[key] = family.related[(3 * number + place) % len(family.related)].name
            else:
                value = drawn(
                    tool.properties.get(key, {}), ctx.discovery.values, ctx.rng, name=key, root=tool.parameters
                )
                given[key] = used.get(key, value)
        if any(str(value) not in {str(own) for own in used.values()} for value in given.values()):
            yield call(tool.name, given)


def _repeated(tool: Any, used: dict[str, Any], *, known: dict[str, Family]) -> Iterator[Op]:
    """The solution's own call, on rows that one could take for those that it names."""
    for key, value in used.items():
        family = known.get(str(value))
        sakes = (
            [related_row.name for related_row in family.namesakes if str(related_row.name) not in known]
            if family is not None
            else []
        )
        yield from (call(tool.name, {**used, key: name}) for name in sakes[:_SAKES])


def _kind(solution: Solution, key: str, known: dict[str, Family]) -> Family | None:
    """Returns the table whose rows an argument of this name identifies, from the solution's calls or table names."""
    for op in solution.ops:
        if op.do == "call" and str(op.value.get(key)) in known:
            return known[str(op.value[key])]
    stem = next((word for word in words(key) if len(word) > 2 and word not in ("key", "name", "number")), "")
    return next((family for family in known.values() if stem and family.table.lower().startswith(stem)), None)
