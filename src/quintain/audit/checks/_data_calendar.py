"""Checks that the dates and times of prompts and start states exist in the calendar.

A date names its weekday, so that both can disagree. Documents with such errors may be what a task is about: then its
solution or its prompt speaks of weekdays.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from itertools import pairwise

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, reset
from quintain.audit.kernel.registry import relation

from ._drift_words import show, text_of
from ._reward_runs import SURE, UNSURE

TASKS, LEAST = 12, 3
"""Tasks that are read, and tasks that must show the same kind of error."""
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DATE = re.compile(
    rf"(?:\b([A-Z][a-z]+day),? (?:the )?)?"
    rf"\b(\d{{1,2}}(?:st|nd|rd|th)? {_MONTH},? (?:19|20)\d\d|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?, (?:19|20)\d\d"
    r"|(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:[0-2]\d|3[01]))\b"
)
_FORMS = ("%Y-%m-%d", "%d %B %Y", "%B %d %Y", "%d %b %Y", "%b %d %Y")
_TIME = re.compile(r"(?<![\d:.])(\d\d):([0-5]\d)(?![\d:])")
_ABOUT = re.compile(
    r"weekday|day of the week|(what|which) day|calendar|contradict|consisten|valid|mistake|typo|fiction", re.IGNORECASE
)
_NAMED = re.compile("|".join(_DAYS), re.IGNORECASE)
KINDS = {
    "weekday": "a date is given with another weekday than it has", "date": "a date is in no calendar",
    "hour": "a time of day goes on after 23:59",
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
    """Checks that dates have the weekday that is given for them, and that dates and times of day exist."""
    look = (Op("glance", mark="state"),) if "state" in ctx.offers else ()
    probes = [Probe((reset(task, mark="prompt"), *look)) for task in ctx.sample_tasks(TASKS)]
    read = [(probe, _read(record)) for probe, record in zip(probes, ctx.play_all(probes), strict=True)]
    dated = [text for _, text in read if _DATE.search(text) or _TIME.search(text)]
    ctx.count_comparisons(len(dated))
    for kind, what in KINDS.items():
        wrong = {probe: text for probe, text in read if kind in dict(errors(text))}
        tasks = [probe.ops[0].name for probe in wrong]
        is_topic = any(_ABOUT.search(text) for text in wrong.values()) or any(
            _NAMED.search(repr(ctx.oracle(task))) for task in tasks
        )
        is_sure = kind == "weekday" and 2 * len(wrong) >= len(dated) and not is_topic
        if len(wrong) >= LEAST:
            yield show(
                ctx, what, contradicted, *list(wrong)[:LEAST], marks=("prompt",), data=kind, part="T", tasks=tasks,
                expected="days and times of the Gregorian calendar", teaches="a calendar that does not exist",
                observed=[said for text in wrong.values() for one, said in errors(text) if one == kind][:6],
                **(SURE if is_sure else UNSURE),
            )  # fmt: skip
