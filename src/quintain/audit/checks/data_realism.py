"""Checks data against production's: rows that are too clean do not prepare a model for real ones.

With a sample of production's data every column is tested against it, and a classifier tries to tell the rows apart.
Without one there are only priors: real tables have gaps, variants and more than one template.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Probe, Record
from quintain.audit.kernel.registry import relation

from . import _data_shape as shapes
from ._data_clean import TEACHES, clean
from ._data_joint import joint
from ._data_rates import rates
from ._data_tables import Row, column, columns, filled, matched, pooled, production_probe, state_probes
from ._data_tests import AUC, ColumnTest, auc, drawn_by_task, holm, rows_alike, tests

TASKS = 4
"""Tasks whose start state is looked at."""


def _tables(records: Sequence[Record]) -> list[tuple[str, list[Row], list[Row]]]:
    """Returns the tables of both sides without incomparable columns; the last record is production's."""
    value = records[-1].at("theirs").value
    given: dict[str, list[Row]] = value if is_dict(value) else {}
    tasks = [{name: sample for name, sample, _ in matched(pooled([record]), given)} for record in records[:-1]]
    found: list[tuple[str, list[Row], list[Row]]] = []
    for name, sample, reference in matched(pooled(records[:-1]), given):
        drawn = drawn_by_task([rows[name] for rows in tasks if name in rows])
        found.append((name, _without(sample, drawn), _without(reference, drawn)))
    return found


def _without(rows: list[Row], names: set[str]) -> list[Row]:
    return [{key: row[key] for key in row if key not in names} for row in rows] if names else rows


def _unlike(sample: Sequence[Row], reference: Sequence[Row]) -> list[tuple[str, ColumnTest]]:
    """All tests of a table."""
    found: list[tuple[str, ColumnTest]] = []
    theirs_too = set(columns(reference))
    for column_name in columns(sample):
        if column_name in theirs_too:
            a, b = column(sample, column_name), column(reference, column_name)
            found += [(column_name, test) for test in tests(column_name, a, b)]
    return found + [("(rows)", test) for test in rows_alike(sample, reference)]


# --- relations: each states the bug ---


@relation
def unlike(records: Sequence[Record], evidence: Evidence) -> bool:
    """A test of a column of a table shows a large difference between our rows and production's."""
    want: dict[str, Any] = evidence.data
    for name, sample, reference in _tables(records):
        if name == want["table"]:
            every = _unlike(sample, reference)
            return any(text == want["column"] and test.what == want["test"] for text, test in holm(every))
    return False


@relation
def misshapen(records: Sequence[Record], evidence: Evidence) -> bool:
    """All rows together differ from production's in a way that no sampling explains."""
    return any(name == evidence.data[0] and what == evidence.data[1] for name, what, _, _ in shapes.unlike(records))


@relation
def unlike_together(records: Sequence[Record], evidence: Evidence) -> bool:
    """A test of what columns of a table do together shows a large difference between our rows and production's."""
    want: dict[str, Any] = evidence.data
    for name, sample, reference in _tables(records):
        if name == want["table"]:
            return any(
                text == want["column"] and test.what == want["test"] for text, test in holm(joint(sample, reference))
            )
    return False


@relation
def tells_apart(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a classifier separates the environment's rows of a table from production's."""
    for name, sample, reference in _tables(records):
        if name == evidence.data:
            area = auc(sample, reference, random.Random(0))  # noqa: S311 (no secrets)
            return area is not None and area > AUC
    return False


@relation
def lacks(records: Sequence[Record], evidence: Evidence) -> bool:
    """Our rows of a table have no such column, or values of another type in it, and production's have it."""
    want: dict[str, Any] = evidence.data
    for name, sample, reference in _tables(records):
        if name == want["table"]:
            return bool(_shape(sample, reference).get(want["column"]) == want["how"])
    return False


# --- against production ---


@check("x.data_like_production", "data_realism", needs=("production", "state", "tasks"), value=73)
def like_production(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each column is distributed as in production's sample, and that rows are indistinguishable."""
    probes = (*state_probes(ctx.sample_tasks(TASKS)), production_probe())
    records = ctx.play_all(probes)
    if not records[-1].at("theirs").fine or not records[-1].at("theirs").value:
        raise ctx.not_checked("production() holds no data")
    both = _tables(records)
    if not both:
        raise ctx.not_checked("no table of production's data is one of the state's")
    for name, sample, reference in both:
        yield from _table(ctx, probes, name, sides=(sample, reference))
    yield from _shapes(ctx)


def _shapes(ctx: AuditContext) -> Iterator[Finding | None]:
    """Yields findings that only all rows together show."""
    both = shapes.probes(ctx.tasks[0])
    records = ctx.play_all(both)
    ctx.count_comparisons()
    for name, what, here, there in itertools.islice(shapes.unlike(records), 4):
        yield ctx.finding(
            f"{name} is unlike production's: {what}",
            *both,
            relation=f"{__name__}:misshapen",
            data=[name, what],
            minimise=0,
            expected={"production": there},
            observed={"here": here},
            teaches=TEACHES,
        )


def _together(
    ctx: AuditContext, probes: Sequence[Probe], name: str, *, sides: tuple[list[Row], list[Row]]
) -> Iterator[Finding | None]:
    """Yields findings about pairs of columns."""
    every = joint(*sides)
    ctx.count_comparisons(len(every))
    for text, test in holm(every)[:3]:
        yield ctx.finding(
            f"{name}.{text} is unlike production's: {test.what}",
            *probes,
            relation=f"{__name__}:unlike_together",
            data={"table": name, "column": text, "test": test.what},
            minimise=0,
            expected={"production": test.reference},
            observed={"here": test.sample, "effect": round(test.effect, 3), "p": test.p},
            teaches=TEACHES,
        )


def _table(
    ctx: AuditContext, probes: Sequence[Probe], name: str, *, sides: tuple[list[Row], list[Row]]
) -> Iterator[Finding | None]:
    sample, reference = sides
    for text, how in _shape(sample, reference).items():
        ctx.count_comparisons()
        yield ctx.finding(
            f"{name}.{text} {how}",
            *probes,
            relation=f"{__name__}:lacks",
            data={"table": name, "column": text, "how": how},
            minimise=0,
            expected=[row.get(text) for row in reference[:5]],
            observed=[row.get(text) for row in sample[:5]],
            teaches=TEACHES,
            severity="warning",
        )
    every = _unlike(sample, reference)
    ctx.count_comparisons(len(every))
    reported: set[str] = set()
    for candidate, test in holm(every):
        if candidate not in reported and len(reported) < 4:
            reported.add(candidate)
            yield ctx.finding(
                f"{name}.{candidate} is unlike production's: {test.what}",
                *probes,
                **_softly(test.what),
                relation=f"{__name__}:unlike",
                data={"table": name, "column": candidate, "test": test.what},
                minimise=0,
                expected={"production": test.reference},
                observed={"here": test.sample, "effect": round(test.effect, 3), "p": test.p},
                teaches=TEACHES,
            )
    if any(phrase in reported and not _softly(test.what) for phrase, test in holm(every)):
        return
    yield from _together(ctx, probes, name, sides=sides)
    yield from _apart(ctx, probes, name, sides=sides)


def _apart(
    ctx: AuditContext, probes: Sequence[Probe], name: str, *, sides: tuple[list[Row], list[Row]]
) -> Iterator[Finding | None]:
    """Yields a finding if a classifier separates the rows."""
    sample, reference = sides
    area = auc(sample, reference, random.Random(0))  # noqa: S311 (no secrets)
    if area is not None and area > AUC:
        yield ctx.finding(
            f"rows of {name} can be distinguished from production's",
            *probes,
            relation=f"{__name__}:tells_apart",
            data=name,
            minimise=0,
            expected=f"an area under the curve of at most {AUC}",
            observed=round(area, 3),
            teaches=TEACHES,
        )


def _softly(what: str) -> dict[str, Any]:
    """Returns a lower severity for repetition, which depends on the size of the production sample."""
    return {"at_most": "likely", "severity": "warning"} if "repeated" in what else {}


def _shape(sample: Sequence[Row], reference: Sequence[Row]) -> dict[str, str]:
    """Columns that production has and we do not, or with values of another type."""
    if min(len(sample), len(reference)) < 3:
        return {}
    found: dict[str, str] = {}
    here = set(columns(sample))
    for column_name in columns(reference):
        a, b = filled(column(sample, column_name)), filled(column(reference, column_name))
        if column_name not in here:
            if len(b) > 0.2 * len(reference):
                found[column_name] = "is a column of production's that is missing here"
        elif a and b and {_kind(value) for value in a}.isdisjoint({_kind(value) for value in b}):
            found[column_name] = f"is {_kind(a[0])} here and {_kind(b[0])} in production"
    return found


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a truth value"
    return "a number" if is_number(value) else "text" if isinstance(value, str) else "a list or an object"


# --- inputs ---


__all__ = ["clean", "like_production", "rates"]
