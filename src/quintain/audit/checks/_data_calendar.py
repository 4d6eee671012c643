"""Checks that the dates, times and names of prompts and start states are such as the world has.

A date names its weekday, so that both can disagree. Documents with such errors may be what a task is about: then its
solution or its prompt speaks of weekdays. What begins comes before it ends, and a reply after what it answers.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from itertools import pairwise, permutations

from quintain.audit.facts.acts import names, words
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, ask, reset, text_of
from quintain.audit.kernel.registry import relation

from ._data_tables import SAMPLE, Tables, column, columns, filled, is_stamps, pooled
from ._drift_words import show
from ._reward_runs import SURE, UNSURE

TASKS, LEAST = 24, 3
"""Tasks that are read, and tasks that must show the same kind of error; for days that are in no calendar, one."""
SLIPS = 0.01
"""Share of dates that may be slips of the pen."""
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DATE = re.compile(
    rf"(?:\b([A-Z][a-z]+day),? (?:the )?)?"
    rf"\b(\d{{1,2}}(?:st|nd|rd|th)? {_MONTH},? (?:19|20)\d\d|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?, (?:19|20)\d\d"
    r"|(?<!-)(?:1[89]|20)\d\d-(?:0[1-9]|1[0-2])-(?:[0-2]\d|3[01])(?!-))\b"
)
_NEVER = re.compile(r"\b(?:3[01](?:st|th)? Feb|31(?:st)? (?:Apr|Jun|Sep|Nov))[a-z]*\b(?!,? (?:19|20)\d\d)")
_FORMS = ("%Y-%m-%d", "%d %B %Y", "%B %d %Y", "%d %b %Y", "%b %d %Y")
_TIME = re.compile(r"(?<![\d:.])(\d\d):([0-5]\d)(?![\d:])")
_ABOUT = re.compile(
    r"weekday|day of the week|(what|which) day|calendar|contradict|consisten|valid|mistake|typo|fiction", re.IGNORECASE
)
_NAMED = re.compile("|".join(_DAYS), re.IGNORECASE)
_FILLER = re.compile(r"\b(?:test user|foo ?bar|lorem ipsum|asdf\w*|x{3,} y{3,})\b", re.IGNORECASE)
KINDS = {
    "weekday": "a date is given with another weekday than it has", "date": "a date is in no calendar",
    "hour": "a time of day goes on after 23:59", "filler": "a name is a placeholder",
}  # fmt: skip


def errors(text: str) -> Iterator[tuple[str, str]]:
    """Yields the kind and the words of each date or time of a text that the calendar contradicts."""
    for found in _DATE.finditer(text):
        day = _day(re.sub(r"(?<=\d)(st|nd|rd|th)\b|,", "", found[2]))
        name = (found[1] or "").lower()
        if day is None:
            yield "date", found[0]
        elif name in _DAYS and name != _DAYS[day.weekday()]:
            yield "weekday", found[0]
    yield from (("date", found[0]) for found in _NEVER.finditer(text))
    yield from (("filler", found[0]) for found in _FILLER.finditer(text))
    times = _TIME.findall(text)
    if any(before[0] == "23" and after[0] == "24" for before, after in pairwise(times)):
        yield from (("hour", f"{hour}:{minute}") for hour, minute in times if "24:00" < f"{hour}:{minute}" < "30:00")


def _day(text: str) -> date | None:
    for form in _FORMS:
        with contextlib.suppress(ValueError):
            return datetime.strptime(text, form).date()  # noqa: DTZ007 (a day has no zone)
    return None


@relation
def contradicted(records: Sequence[Record], evidence: Evidence) -> bool:
    """Each record shows an error of the kind that `data` names."""
    return all(evidence.data in dict(errors(_read(record))) for record in records)


def _read(record: Record) -> str:
    return "\n".join(text_of(record.at(op.mark)) for op in record.ops if op.mark)


@check("x.calendar", "data_realism", needs=("tasks",), value=44)
def calendar(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that dates and times exist, have the weekday that is given for them, and come in order."""
    look = (Op("glance", mark="state"), ask(SAMPLE, "state", mark="ours")) if "state" in ctx.offers else ()
    probes = [Probe((reset(task, mark="prompt"), *look)) for task in ctx.sample_tasks(TASKS)]
    records = ctx.play_all(probes)
    read = [(probe, _read(record)) for probe, record in zip(probes, records, strict=True)]
    dated = [text for _, text in read if _DATE.search(text) or _TIME.search(text)]
    every = {day for text in dated for _, day in _DATE.findall(text)}
    ctx.count_comparisons(len(dated))
    yield from _in_order(ctx, probes, records) if look else ()
    for kind, what in KINDS.items():
        wrong = {probe: text for probe, text in read if kind in dict(errors(text))}
        tasks = [probe.ops[0].name for probe in wrong]
        solved = [repr(ctx.oracle(task)) for task in tasks]
        is_topic = any(map(_ABOUT.search, wrong.values())) or any(map(_NAMED.search, solved))
        days = {said for text in wrong.values() for one, said in errors(text) if one == kind}
        enough = {"weekday": 2 * len(wrong) >= len(dated), "date": len(days) > max(1, SLIPS * len(every))}
        is_sure = enough.get(kind) and not is_topic and not any(day in text for day in days for text in solved)
        if len(wrong) >= (1 if kind == "date" else LEAST):
            yield show(
                ctx, what, contradicted, *list(wrong)[:LEAST], marks=("prompt",), data=kind, part="T", tasks=tasks,
                expected="days, times and names as in the world", teaches="data that does not exist",
                observed=sorted(days)[:6], **(SURE if is_sure else UNSURE),
            )  # fmt: skip


_BEGINS = names("arrive arrives arrived arrival in start starts started begin begins from since")
_ENDS = names("leave leaves left depart departs departure out end ends ended finish finished until to till")
_REPLY = re.compile(r"(?:^|_)(?:answers|in_answer_to|reply_to|replies_to|reply_of|responds_to|response_to)(?:_|$)")
ROWS, SHARE = 20, 0.2
"""Pairs of dates from which something is said, and the share of each order from which neither is an exception."""


def _in_order(ctx: AuditContext, probes: Sequence[Probe], records: Sequence[Record]) -> Iterator[Finding | None]:
    """Yields findings for dates of which now the one comes first and now the other."""
    for name in sorted(_mixed(records)):
        yield show(
            ctx, f"dates are in no order: {name}", out_of_order, *probes, marks=("ours",), data=name, part="T",
            expected="a beginning before its end, and a reply after what it answers", observed=name,
            teaches="that dates mean nothing", **UNSURE,
        )  # fmt: skip


@relation
def out_of_order(records: Sequence[Record], evidence: Evidence) -> bool:
    """Dates of the rows that `data` names are now in one order and now in the other."""
    return evidence.data in _mixed(records)


def _mixed(records: Sequence[Record]) -> set[str]:
    found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for record in records:
        for name, first, last in _dates(pooled([record])):
            found[name].add((first, last))
    orders = {name: [first < last for first, last in pairs if first != last] for name, pairs in found.items()}
    return {name for name, up in orders.items() if len(up) >= ROWS and SHARE <= sum(up) / len(up) <= 1 - SHARE}


def _dates(tables: Tables) -> Iterator[tuple[str, str, str]]:
    """Yields names and dates of which the first should be the earlier one."""
    for table, rows in tables.items():
        dated = [name for name in columns(rows) if is_stamps(column(rows, name))]
        for begin, end in permutations(dated, 2):
            first, last = {*words(begin)}, {*words(end)}
            if first & _BEGINS and last & _ENDS and first - _BEGINS == last - _ENDS:
                pairs = [(row[begin], row[end]) for row in rows if row.get(begin) and row.get(end)]
                yield from ((f"{table}.{begin} and {table}.{end}", str(a), str(b)) for a, b in pairs)
        for link in [name for name in columns(rows) if _REPLY.search(name) and len(dated) == 1]:
            wanted = {str(value) for value in filled(column(rows, link))}
            for key in [name for name in rows[0] if name != link]:
                by = {str(row.get(key)): row for row in rows}
                if wanted and wanted <= by.keys() and len(by) == len(rows):
                    pairs = [(by[str(row[link])].get(dated[0]), row.get(dated[0])) for row in rows if row.get(link)]
                    yield from ((f"{table}.{link} and its {dated[0]}", str(a), str(b)) for a, b in pairs if a and b)
