"""Checks prompts that fit two records although one is meant: acting on the other follows the prompt as well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import reset, state

from ._reward_acts import names, scalars, words
from ._reward_redirect import translated
from ._reward_related import Family, RelatedRow, families
from ._reward_runs import Solution, solve
from ._unsolv_runs import common_words, solution_runs

SOLVED = 12
"""Tasks that are looked at: ambiguity is one task's own."""
_ASKS = names("ask clarify inquire")
_ID = re.compile(r"\S*\d\S*")
_RELATIVE = re.compile(
    r"\b(\w+est|most|least|last|first|second|third|next|previous|other|another|both|all|each|every|any|some|only|recent"
    r"\w*|earlier|later|than|before|after|since|yesterday|today|whose|which|where|without)\b",
    re.IGNORECASE,
)
"""Words that may tell one record from another, or refer to none in particular."""


@check("x.one_is_meant", "unsolvable", needs=("oracle", "state", "tasks", "tools"), value=78, reads_prose=True)
def one_is_meant(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the fields by which a prompt names a record fit no second record."""
    if "user" in ctx.offers or any(_ASKS & set(words(tool.name)) for tool in ctx.about.tools):
        raise ctx.not_checked("an agent can ask which one is meant")
    found: list[tuple[Solution, str, RelatedRow]] = []
    for solution in [solved for solved in solve(ctx, ctx.sample_tasks(SOLVED)) if solved.full and not solved.errors]:
        ctx.count_comparisons()
        for name, family in families(ctx, solution).items() if _unnamed(solution) else ():
            related_row = _double(solution, name, family)
            if related_row is None:
                continue
            rows = dict(_rows(ctx.play(reset(solution.task), state()).at("state").value))
            if not _is_pointed_at(solution, name, rows) and not _is_told_apart(
                solution, family.own, related_row.row, rows=rows
            ):
                found.append((solution, name, related_row))
                break
    for solved, name, related_row in found[:3]:
        finding = _ambiguous(ctx, solved, name, related_row=related_row)
        if finding is not None:
            yield finding
            return


def _unnamed(solution: Solution) -> bool:
    """True if the solution acts on something by a name that the prompt does not contain."""
    given = [str(value) for place in solution.writes for value in scalars(solution.ops[place].value)]
    return any(_ID.fullmatch(value) and not _stands(value, solution.prompt) for value in given)


def _double(solution: Solution, name: str, family: Family) -> RelatedRow | None:
    """Another row of which all is true that the prompt says of the one that the solution acts on."""
    acts = [place for place in solution.writes if name in map(str, scalars(solution.ops[place].value))]
    if not acts or _stands(name, solution.prompt):
        return None
    own_values = {str(value) for value in scalars(family.own) if _stands(value, solution.prompt)}
    fields = [key for key, value in family.own.items() if isinstance(value, str) and value in own_values]
    if not any(_is_proper(family.own[key]) for key in fields):
        return None
    for related_row in family.related:
        other_values = {str(value) for value in scalars(related_row.row)}
        alike = own_values <= other_values and all(related_row.row.get(key) == family.own[key] for key in fields)
        if alike and not _is_done(solution, name, related_row):
            return related_row
    return None


def _is_done(solution: Solution, name: str, related_row: RelatedRow) -> bool:
    """True if another row is already as the solution leaves its own, so that it cannot be meant."""
    made = {path[-1]: new for path, (_, new) in solution.changed.items() if name in path[:2] and len(path) > 2}
    return bool(made) and all(related_row.row.get(key) == new for key, new in made.items())


def _is_proper(value: str) -> bool:
    """True if a value is a proper name, and not a word that many records share."""
    return len(value) >= 5 and (" " in value.strip() or "@" in value)


def _stands(value: Any, prompt: str) -> bool:
    said = str(value)
    if isinstance(value, bool) or len(said) < 2:
        return False
    return re.search(rf"(?<!\w){re.escape(said)}(?!\w)", prompt, re.IGNORECASE) is not None


def _is_pointed_at(solution: Solution, name: str, rows: dict[str, Any]) -> bool:
    """True if a record that the prompt names refers to this one."""
    return any(_stands(key, solution.prompt) and name in map(str, scalars(row)) for key, row in rows.items())


def _is_told_apart(first: Solution, own: Any, second: Any, *, rows: dict[str, Any]) -> bool:
    """True if a word of the prompt belongs to one record or its references, and not to the other."""
    return bool(_said(first.prompt) & (_held(own, rows) - _held(second, rows)))


def _held(row: Any, rows: dict[str, Any]) -> set[str]:
    values = scalars(row)
    return {word for value in [*values, *scalars([rows.get(str(value)) for value in values])] for word in _said(value)}


def _said(value: Any) -> set[str]:
    return set(re.findall(r"[^\W\d_]{3,}", str(value).lower()))


def _rows(world: Any) -> Iterator[tuple[str, Any]]:
    for table in world.values() if is_dict(world) else ():
        pairs = enumerate(table) if is_list(table) else table.items() if is_dict(table) else ()
        for key, row in pairs:
            if is_dict(row):
                yield str(row.get("id", key)), row


def _ambiguous(ctx: AuditContext, solution: Solution, name: str, *, related_row: RelatedRow) -> Finding | None:
    family = families(ctx, solution)[name]
    other_ops = tuple(translated(solution, name, family.own, related_row=related_row))
    if other_ops == solution.ops:
        return None
    siblings = common_words(
        [solution_run.prompt for solution_run in solution_runs(ctx) if solution_run.task != solution.task]
    )
    sure = not _says_more(solution, family, siblings)
    return ctx.finding(
        f"two records of {family.table} fit what the task says, and only one is meant",
        solves(solution.task, other_ops),
        solves(solution.task, solution.ops),
        relation="quintain.audit.checks._unsolv_runs:works_and_loses",
        marks=("score",),
        data=solution.full,
        minimise=0,
        part="T",
        severity="error" if sure else "warning",
        at_most="proven" if sure else "likely",
        tasks=[solution.task],
        expected=f"something that tells {name} from {related_row.name}",
        observed={"prompt": solution.prompt[:300], "also fits": str(related_row.row)[:300]},
        teaches="to guess",
    )


def _says_more(solution: Solution, family: Family, siblings: set[str]) -> bool:
    """True if a prompt has more than the record, the calls and its siblings: a number, a word, a comparison."""
    values = [*scalars(family.own), *(value for op in solution.ops for value in scalars(op.value))]
    own = sorted({str(value) for value in values if _stands(value, solution.prompt)}, key=len, reverse=True)
    left, near = solution.prompt, ""
    for part in re.split(r"(?<=[.!?;])\s", solution.prompt):
        near += f" {part}" if any(str(value) in part for value in scalars(family.own) if str(value) in own) else ""
    for value in own:
        left, near = (re.sub(re.escape(value), " ", text, flags=re.IGNORECASE) for text in (left, near))
    return bool(_RELATIVE.search(near) or re.search(r"\d", left) or _said(left) - siblings)
