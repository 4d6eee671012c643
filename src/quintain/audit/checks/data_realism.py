"""Checks data against production's: rows that are too clean do not prepare a model for real ones.

Every column is tested against a sample of production's data, then what columns do together, then the shape of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Probe, Record, ask, reset
from quintain.audit.kernel.registry import relation

from ._data_calendar import calendar
from ._data_rates import rates
from ._data_shape import misshapen
from ._data_tables import Row, column, columns, filled, matched, pooled, production_probe, state_probes
from ._data_tests import ColumnTest, Named, drawn_by_task, holm, joint, tests

TASKS = 4
"""Tasks whose start state is looked at."""
TEACHES = "what holds in these rows only, and breaks on production's"
SHAPE = f"{misshapen.__module__}:{misshapen.__name__}"


def _tables(records: Sequence[Record]) -> dict[str, tuple[list[Row], list[Row]]]:
    """Returns the tables of both sides without incomparable columns; the last record is production's."""
    value = records[-1].at("theirs").value
    given: dict[str, list[Row]] = value if is_dict(value) else {}
    tasks = [{name: sample for name, sample, _ in matched(pooled([record]), given)} for record in records[:-1]]
    found: dict[str, tuple[list[Row], list[Row]]] = {}
    for name, *sides in matched(pooled(records[:-1]), given):
        drawn = drawn_by_task([rows[name] for rows in tasks if name in rows])
        sample, reference = ([{key: row[key] for key in row if key not in drawn} for row in rows] for rows in sides)
        found[name] = sample, reference
    return found


def _columns(sample: Sequence[Row], reference: Sequence[Row]) -> list[Named]:
    shared = [name for name in columns(sample) if name in {*columns(reference)}]
    return [(name, test) for name in shared for test in tests(name, column(sample, name), column(reference, name))]


def _lacking(sample: Sequence[Row], reference: Sequence[Row]) -> list[Named]:
    """Columns that production has and we do not, or with values of another type."""
    found: list[Named] = []
    here = set(columns(sample))
    for name in columns(reference) if min(len(sample), len(reference)) >= 3 else ():
        a, b = filled(column(sample, name)), filled(column(reference, name))
        kinds = [{*map(_kind, side)} for side in (a, b)]
        how = ""
        if name not in here and len(b) > 0.2 * len(reference):
            how = "it is missing here"
        elif a and b and kinds[0].isdisjoint(kinds[1]):
            how = f"it is {_kind(a[0])} here and {_kind(b[0])} in production"
        found += [(name, ColumnTest(how, 1.0, 0.0, a[:5], b[:5]))] if how else []
    return found


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a truth value"
    return "a number" if is_number(value) else "text" if isinstance(value, str) else "a list or an object"


LAWS: dict[str, Callable[[Sequence[Row], Sequence[Row]], list[Named]]] = {
    "lacks": _lacking, "columns": _columns, "pairs": joint,
}  # fmt: skip
"""Tests of a table's rows and production's."""


@relation
def unlike(records: Sequence[Record], evidence: Evidence) -> bool:
    """A test of a column, or of columns together, shows a large difference between our rows and production's."""
    law, table, name, what = evidence.data
    sides = _tables(records).get(table)
    return sides is not None and any((one, test.what) == (name, what) for one, test in holm(LAWS[law](*sides)))


@relation
def misshapes(records: Sequence[Record], evidence: Evidence) -> bool:
    """All rows together differ from production's in a way that no sampling explains."""
    rows: Any = records[0].at("shape").value
    return is_list(rows) and any(row[:2] == evidence.data for row in rows)


@check("x.data_like_production", "data_realism", needs=("production", "state", "tasks"), value=82)
def like_production(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that columns, alone and together, are distributed as in production's sample."""
    probes = (*state_probes(ctx.sample_tasks(TASKS)), production_probe())
    records = ctx.play_all(probes)
    if not records[-1].at("theirs").fine or not records[-1].at("theirs").value:
        raise ctx.not_checked("production() holds no data")
    both = _tables(records)
    if not both:
        raise ctx.not_checked("no table of production's data is one of the state's")
    for table, sides in both.items():
        for law, most in (("lacks", 6), ("columns", 4), ("pairs", 3)):
            every = LAWS[law](*sides)
            ctx.count_comparisons(len(every))
            found = list({name: (name, test) for name, test in reversed(holm(every))}.values())[::-1]
            for name, test in found[:most]:
                yield _unlike(ctx, probes, [law, table, name, test.what], test=test)
            if law == "columns" and any(not _depends_on_size(test) for _, test in found):
                break
    yield from _misshapen(ctx)


def _unlike(ctx: AuditContext, probes: Sequence[Probe], data: list[str], *, test: ColumnTest) -> Finding | None:
    is_sure = data[0] != "lacks" and not _depends_on_size(test)
    return ctx.finding(
        f"{data[1]}.{data[2]} is unlike production's: {test.what}", *probes, relation=f"{__name__}:unlike", data=data,
        minimise=0, expected={"production": test.reference},
        observed={"here": test.sample, "effect": round(test.effect, 3), "p": test.p}, teaches=TEACHES,
        severity="error" if is_sure else "warning", at_most="likely" if _depends_on_size(test) else "proven",
    )  # fmt: skip


def _depends_on_size(test: ColumnTest) -> bool:
    """True if the size of production's sample has a part in the test."""
    return "repeated" in test.what


def _misshapen(ctx: AuditContext) -> Iterator[Finding | None]:
    """Yields findings that only all rows together show."""
    probe = Probe((reset(ctx.tasks[0]), ask(SHAPE, mark="shape")))
    ctx.count_comparisons()
    rows: Any = ctx.play_probe(probe).at("shape").value
    for name, what, here, there in rows[:4] if is_list(rows) else ():
        yield ctx.finding(
            f"{name} is unlike production's: {what}", probe, relation=f"{__name__}:misshapes", data=[name, what],
            minimise=0, expected={"production": there}, observed={"here": here}, teaches=TEACHES,
        )  # fmt: skip


__all__ = ["calendar", "like_production", "rates"]
