"""Checks that texts which are shown are whole, where the solution uses what they say.

A cut shows in the lengths: different texts of one source have one length, which none exceeds, and some end as no
shorter text of the source does. Only tasks with such a text lack names and numbers that their solution uses.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from quintain.audit.facts.data import leaves, parsed
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Probe, Record, reset
from quintain.audit.kernel.registry import relation

from ._drift_words import show, text_of
from ._unsolv_runs import solution_runs

_SAME, _WHOLE, _LONG = 2, 3, 80
"""Different texts of the greatest length, tasks without one, and characters, from which something is said."""
_NAME = re.compile(r"[A-Z][\w'-]+\w|[\w-]*\d[\w.,-]*\w")


@check("x.whole_texts", "unsolvable", needs=("oracle", "tasks", "prompt"), value=45)
def whole_texts(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no text ends in its midst where the solution uses its rest."""
    runs = solution_runs(ctx)
    usual = Counter(name for run in runs for name in {*_NAME.findall(repr([op.value for op in run.ops]))})
    boiler = sorted(name for name, count in usual.items() if 3 * count > len(runs))
    marked = [[op.marked(f"op {place}") for place, op in enumerate(one.ops)] for one in runs]
    probes = [Probe((reset(one.task, mark="prompt"), *ops)) for one, ops in zip(runs, marked, strict=True)]
    records = ctx.play_all(probes)
    ctx.count_comparisons(len(records))
    cut, whole = _parted(records, boiler)
    # Another tool might show the rest.
    is_all = {*ctx.discovery.readers} <= {name for place in cut for name in runs[place].shape}
    if len(cut) >= _SAME and len(whole) >= _WHOLE and is_all:
        places = [*cut, *whole]
        yield show(
            ctx, "texts end in their midst, and the solution uses their rest", ends_early,
            *(probes[place] for place in places), data=boiler, part="T", marks=("prompt",),
            tasks=[runs[place].task for place in cut], expected="whole texts, or a mark where they end",
            observed=[_lacks(records[place], boiler)[:4] for place in cut[:3]],
            teaches="to make up what it cannot read",
        )  # fmt: skip


@relation
def ends_early(records: Sequence[Record], evidence: Evidence) -> bool:
    """Tasks with a text of the greatest length lack names in a field of their solution; no other like task does."""
    cut, whole = _parted(records, evidence.data)
    return len(cut) >= _SAME and len(whole) >= _WHOLE


def _parted(records: Sequence[Record], boiler: Sequence[str]) -> tuple[list[int], list[int]]:
    """Returns records with a cut text that lack a name in a field where no other does, and the others.

    The solutions of others use the same tools.
    """
    texts: defaultdict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for place, record in enumerate(records):
        for source, text in _texts(record):
            texts[source][text].add(place)
    cut = {place for known in texts.values() for text in _at_limit(known) for place in known[text]}
    tools = [frozenset(op.name for op in record.ops[1:]) for record in records]
    lacks = [{(tools[place], field) for field, _ in _lacks(one, boiler)} for place, one in enumerate(records)]
    others = [place for place in range(len(records)) if place not in cut]
    unsure = {field for place in others for field in lacks[place]}
    found = [place for place in sorted(cut) if lacks[place] - unsure]
    kinds = {tools[place] for place in found if [tools[other] for other in others].count(tools[place]) >= _WHOLE}
    return [at for at in found if tools[at] in kinds], [at for at in others if tools[at] in kinds]


def _at_limit(texts: dict[str, set[int]]) -> list[str]:
    """Returns the texts of the greatest length if some of them end as no shorter text does, else none."""
    most = max(map(len, texts))
    longest = [text for text in texts if len(text) == most]
    tail = os.path.commonprefix([text[::-1] for text in texts])  # noqa: RUF071 (texts, not paths)
    ends = {text[: len(text) - len(tail)][-1:] for text in texts if len(text) < most}
    odd = [text for text in longest if text[: len(text) - len(tail)][-1:] not in ends and "..." not in text[-9:]]
    return longest if most >= _LONG and len(longest) >= _SAME and ends and odd else []


def _texts(record: Record) -> Iterator[tuple[str, str]]:
    """Yields the prompt, and the texts in the answers to calls, each with its source."""
    yield "", text_of(record.at("prompt"))
    for op in record.ops:
        for _, leaf in leaves(parsed(record.at(op.mark).value)) if op.do == "call" else ():
            yield from [(op.name, leaf)] if isinstance(leaf, str) else []


def _lacks(record: Record, boiler: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the names in the ops of a solution that no text before them has, each with its field."""
    found: list[tuple[str, str]] = []
    read = text_of(record.at("prompt"))
    for op in record.ops[1:]:
        for path, leaf in leaves(parsed(op.value), places=True):
            field = re.sub(r"\d+", "#", ".".join((op.name, *path)))
            names = dict.fromkeys(_NAME.findall(str(leaf)))
            found += [(field, name) for name in names if name not in read and name not in boiler]
        read += "\n" + text_of(record.at(op.mark))
    return found
