"""Checks that declared rates match observed frequencies.

What a rate speaks of is found by its name: a truth value or a value of a column of the state's tables, the gaps of one,
or a truth value of each task that stands in the state by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, Record, ask, reset
from quintain.audit.kernel.registry import probe_function, relation

from ._data_tables import Row, column, columns, filled, pooled, state_probes, texts
from ._data_tests import LEAST, binomial

TASKS = 60
"""Tasks whose own values are counted: one task is one draw."""
OWN = f"{__name__}:own"


@probe_function
def own(player: Player, on: str, _value: Any) -> Row:
    """In the child: what the state holds of the task as a whole, and not in a table."""
    given = player.adapter(on).subject.state()
    return (
        {str(name): argument for name, argument in given.items() if isinstance(argument, bool | str)}
        if is_dict(given)
        else {}
    )


@relation
def off_rate(records: Sequence[Record], evidence: Evidence) -> bool:
    """A share of rows is far from the rate that is declared for it."""
    want: dict[str, Any] = evidence.data
    found = _observed(want["name"], _counted(records))
    return found is not None and _is_off(found[0], found[1], float(want["rate"]))


@check("x.rates_as_declared", "data_realism", needs=("production", "state", "tasks"), value=63)
def rates(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that declared probabilities match observed frequencies."""
    given = ctx.play(Op("production", mark="production")).at("production").value
    declared: Any = given.get("rates") if is_dict(given) else None
    if not is_dict(declared) or not declared:
        raise ctx.not_checked("production() declares no rates")
    probes = state_probes(ctx.sample_tasks(12))
    tables = _counted(ctx.play_all(probes))
    wanted = {str(name): rate for name, rate in declared.items() if is_number(rate) and 0 <= rate <= 1}
    if any(_observed(name, tables) is None for name in wanted):
        own = [Probe((reset(task), ask(OWN, mark="own"))) for task in ctx.sample_tasks(TASKS)]
        probes += own
        tables |= _counted(ctx.play_all(own))
    for name, rate in wanted.items():
        found = _observed(name, tables)
        if found is None:
            continue
        ctx.count_comparisons()
        hits, count = found
        if _is_off(hits, count, float(rate)):
            yield ctx.finding(
                f"{name} is declared as {rate:g} and seen as {hits / count:.3g}",
                *probes,
                relation=f"{__name__}:off_rate",
                data={"name": name, "rate": rate},
                minimise=0,
                part="C",
                expected=rate,
                observed={"hits": hits, "of": count},
                teaches="a wrong frequency of events",
            )


def _counted(records: Sequence[Record]) -> dict[str, list[Row]]:
    """Rows of the tables, and of the tasks themselves, a row each."""
    tables = pooled([record for record in records if record.ops[-1].mark == "ours"])
    tasks: list[Row] = [record.at("own").value for record in records if record.ops[-1].mark == "own"]
    rows = [row for row in tasks if is_dict(row) and row]
    return tables | {"task": rows} if rows else tables


def _is_off(hits: int, count: int, rate: float) -> bool:
    return count >= LEAST and abs(hits / count - rate) > max(0.05, 0.4 * rate) and binomial(hits, count, rate) < 1e-4


def _observed(name: str, tables: dict[str, list[Row]]) -> tuple[int, int] | None:
    """(hits, rows) of what a rate's name speaks of: a column's gaps, a truth value, or one of its values."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    bare = [word for word in words if word not in ("rate", "share", "probability", "p", "chance", "fraction", "of")]
    found: list[tuple[int, int, int]] = []
    for table, rows in tables.items():
        near = sum(word.rstrip("s") in table.lower() for word in bare)
        for column_name in columns(rows):
            hit = _hits(column(rows, column_name), column_name.lower(), bare)
            if hit is not None:
                found.append((hit[1] + near, hit[0], len(rows)))
    if not found:
        return None
    _, hits, count = max(found)
    return hits, count


def _hits(values: Sequence[Any], name: str, words: Sequence[str]) -> tuple[int, int] | None:
    """(hits, how many of the words are accounted for)."""
    spelled = name.replace("_", " ").split()
    shared = len(set(spelled) & set(words)) + 2 * (name in "_".join(words))
    if shared and {"null", "missing", "empty", "none", "nulls", "gaps"} & set(words):
        return sum(candidate is None or candidate == "" for candidate in values), shared + 3
    there = filled(values)
    if shared and there and all(item in (0, 1, True, False) for item in there):
        return sum(bool(item) for item in there), shared + 2
    for value in {*texts(there)}:
        if value.lower() in words and len({*texts(there)}) <= 20:
            return sum(item == value for item in there), shared + 2
    return None
