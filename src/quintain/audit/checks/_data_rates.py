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

from ._data_tables import Row, Tables, column, columns, filled, pooled, state_probes, texts
from ._data_tests import LEAST, binomial

TASKS = 60
"""Tasks whose own values are counted: one task is one draw."""
OWN = f"{__name__}:own"
_EMPTY = {"null", "missing", "empty", "none", "nulls", "gaps"}


@probe_function
def own(player: Player, on: str, _value: Any) -> Row:
    """Returns what the state holds of the task as a whole, and not in a table."""
    given = player.adapter(on).subject.state()
    fields = given.items() if is_dict(given) else ()
    return {str(name): value for name, value in fields if isinstance(value, bool | str)}


@relation
def off_rate(records: Sequence[Record], evidence: Evidence) -> bool:
    """A share of rows is far from the rate that is declared for it."""
    name, rate = evidence.data
    found = _observed(name, _counted(records))
    return found is not None and _is_off(*found, float(rate))


@check("x.rates_as_declared", "data_realism", needs=("production", "state", "tasks"), value=64)
def rates(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that declared probabilities match observed frequencies."""
    given = ctx.play(Op("production", mark="production")).at("production").value
    declared: Any = given.get("rates") if is_dict(given) else None
    if not is_dict(declared) or not declared:
        raise ctx.not_checked("production() declares no rates")
    probes = state_probes(ctx.sample_tasks(12))
    known = _counted(ctx.play_all(probes))
    wanted = {str(name): rate for name, rate in declared.items() if is_number(rate) and 0 <= rate <= 1}
    if any(_observed(name, known) is None for name in wanted):
        single = [Probe((reset(task), ask(OWN, mark="own"))) for task in ctx.sample_tasks(TASKS)]
        probes += single
        known |= _counted(ctx.play_all(single))
    for name, rate in wanted.items():
        found = _observed(name, known)
        ctx.count_comparisons(found is not None)
        if found is not None and _is_off(*found, float(rate)):
            hits, count = found
            yield ctx.finding(
                f"{name} is declared as {rate:g} and seen as {hits / count:.3g}", *probes,
                relation=f"{__name__}:off_rate", data=[name, rate], minimise=0, part="C", expected=rate,
                observed={"hits": hits, "of": count}, teaches="a wrong frequency of events",
            )  # fmt: skip


def _counted(records: Sequence[Record]) -> Tables:
    """Rows of the tables, and of the tasks themselves, a row each."""
    known = pooled([record for record in records if record.ops[-1].mark == "ours"])
    tasks: list[Any] = [record.at("own").value for record in records if record.ops[-1].mark == "own"]
    rows: list[Row] = [row for row in tasks if is_dict(row) and row]
    return known | {"task": rows} if rows else known


def _is_off(hits: int, count: int, rate: float) -> bool:
    return count >= LEAST and abs(hits / count - rate) > max(0.05, 0.4 * rate) and binomial(hits, count, rate) < 1e-4


def _observed(name: str, known: Tables) -> tuple[int, int] | None:
    """(hits, rows) of what a rate's name speaks of: a column's gaps, a truth value, or one of its values."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word]
    bare = [word for word in words if word not in ("rate", "share", "probability", "p", "chance", "fraction", "of")]
    found: list[tuple[int, int, int]] = []
    for table, rows in known.items():
        near = sum(word.rstrip("s") in table.lower() for word in bare)
        hits = (_hits(column(rows, one), one.lower(), bare) for one in columns(rows))
        found += [(hit[1] + near, hit[0], len(rows)) for hit in hits if hit is not None]
    return max(found)[1:] if found else None


def _hits(values: Sequence[Any], name: str, words: Sequence[str]) -> tuple[int, int] | None:
    """(hits, how many of the words are accounted for)."""
    shared = len({*name.split("_")} & {*words}) + 2 * (name in "_".join(words))
    there = filled(values)
    if shared and _EMPTY & {*words}:
        return len(values) - len(there), shared + 3
    if shared and there and all(item in (0, 1) for item in there):
        return sum(map(bool, there)), shared + 2
    choices = {*texts(there)}
    value = next((value for value in choices if value.lower() in words and len(choices) <= 20), None)
    return None if value is None else (there.count(value), shared + 2)
