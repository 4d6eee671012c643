"""Checks that texts which are shown are whole, where the solution uses what they say.

A cut shows in the lengths: different texts of one source have one length, which none exceeds, and some end as no
shorter text of the source does. Only tasks with such a text lack names and numbers that their solution uses. Where the
prompt is all there is to read, and the answers copy its codes, a code that no text has is of a part that was cut off.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from quintain.audit.facts.data import is_number, leaves, parsed
from quintain.audit.facts.siblings import SolutionRun, solution_runs
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, answer, number, reset, score, text_of
from quintain.audit.kernel.registry import relation

from ._drift_words import show

_SAME, _WHOLE, _LONG = 2, 3, 80
"""Different texts of the greatest length, tasks without one, and characters, from which something is said."""
_NAME = re.compile(r"[A-Z][\w'-]+\w|[\w-]*\d[\w.,-]*\w")
_CODE = re.compile(r"\b[A-Za-z]+-?\d+\b")
_COPIED = 8
"""Answers with codes of the prompt alone, from which a code of no prompt is odd."""


@check("x.whole_texts", "unsolvable", needs=("oracle", "tasks"), value=45)
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
    yield from _unread(ctx, runs) if not ctx.about.tools else ()


def _unread(ctx: AuditContext, runs: Sequence[SolutionRun]) -> Iterator[Finding | None]:
    """Yields a finding for answers with codes that no prompt has, among answers that copy codes of prompts."""
    alike: defaultdict[tuple[str, str], list[Probe]] = defaultdict(list)
    for run in runs:
        lines, said = str(run.first).strip().split("\n"), str(run.ops[0].value)
        alike[lines[0], lines[-1]] += [_saying(run.task, said)] if _CODE.search(said) else []
    for group in alike.values():
        known = [(probe, _codes(record)[1]) for probe, record in zip(group, ctx.play_all(group), strict=True)]
        lost, rest = [pair for pair in known if pair[1]], [probe for probe, lacks in known if not lacks]
        cut = [(probe.ops[2].value, re.compile("|".join(map(re.escape, lacks)))) for probe, lacks in lost]
        tasks = [probe.ops[0].name for probe, _ in lost]
        less = [_saying(task, codes.sub("", said)) for task, (said, codes) in zip(tasks, cut, strict=True)]
        probes = [*(probe for probe, _ in lost), *less, *rest]
        ctx.count_comparisons(len(group))
        if copies_unread(ctx.play_all(probes), Evidence("", data=len(lost))):
            yield show(
                ctx, "answers copy codes of the prompt, and some copy codes that no prompt has", copies_unread, *probes,
                data=len(lost), part="T", marks=("prompt", "whole", "score"), tasks=tasks,
                expected="a prompt with each code that the answer needs", observed=[lacks for _, lacks in lost],
                teaches="to make up what it cannot read",
            )  # fmt: skip


def _saying(task: str, said: str) -> Probe:
    return Probe((reset(task, mark="prompt"), Op("prompt", name=task, mark="whole"), answer(said), score()))


def _codes(record: Record) -> tuple[list[str], list[str]]:
    """Returns the codes of an answer, and those of them that the prompt lacks."""
    read = "".join(text_of(record.at(mark)).lower() for mark in ("prompt", "whole"))
    codes = list(dict.fromkeys(_CODE.findall(record.ops[2].value)))
    return codes, [code for code in codes if code.lower() not in read]


@relation
def copies_unread(records: Sequence[Record], evidence: Evidence) -> bool:
    """The first answers have codes that their prompts lack, and are paid less without; no other answer has such.

    A code of which the prompt has the number may be put together.
    """
    paid, count = [number(record.at("score")) or 0.0 for record in records], evidence.data
    rest = records[2 * count :]
    if count < _SAME or len(rest) < max(_COPIED, 3 * count) or any(_codes(record)[1] for record in rest):
        return False
    for record, full, less in zip(records[:count], paid[:count], paid[count : 2 * count], strict=True):
        (codes, lacks), read = _codes(record), text_of(record.at("prompt"))
        figures = [re.sub(r"\D", "", code) for code in lacks]
        is_new = not all(re.search(rf"(?<![\w:.]){figure}(?![\w:.])", read) for figure in figures)
        if less >= full - 1e-9 or len(lacks) == len(codes) or not is_new:
            return False
    return True


@relation
def ends_early(records: Sequence[Record], evidence: Evidence) -> bool:
    """Tasks with a text of the greatest length lack names in a field of their solution; no other like task does."""
    cut, whole = _parted(records, evidence.data)
    return len(cut) >= _SAME and len(whole) >= _WHOLE


def _parted(records: Sequence[Record], boiler: Sequence[str]) -> tuple[list[int], list[int]]:
    """Returns the records with a cut text that lack a name in a field that others read, and the others."""
    texts: defaultdict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for place, record in enumerate(records):
        for source, text in _texts(record):
            texts[source][text].add(place)
    cut = {place for known in texts.values() for text in _at_limit(known) for place in known[text]}
    tools = [frozenset(op.name for op in record.ops[1:]) for record in records]
    lacks = [{(tools[place], field) for field, _ in _lacks(one, boiler)} for place, one in enumerate(records)]
    whole = [place for place in range(len(records)) if place not in cut]
    reads = {(tools[place], field) for place in whole for field, _ in _lacks(records[place], boiler, reads=True)}
    sure = reads - {field for place in whole for field in lacks[place]}
    return [place for place in sorted(cut) if lacks[place] & sure], whole


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


def _lacks(record: Record, boiler: Sequence[str], *, reads: bool = False) -> list[tuple[str, str]]:
    """Returns the names in a solution that no text before them has, or those that one has, with their fields."""
    found: list[tuple[str, str]] = []
    read = _joined(text_of(record.at("prompt")))
    for op in record.ops[1:]:
        for path, leaf in leaves(parsed(op.value), places=True):
            field = re.sub(r"\d+", "#", ".".join((op.name, *path)))
            # A solution may have worked out a small number, which names nothing.
            is_name = isinstance(leaf, str) or (is_number(leaf) and leaf >= 1000)
            names = dict.fromkeys(_NAME.findall(str(leaf))) if is_name else ()
            found += [(field, name) for name in names if (_joined(name) in read) == reads and name not in boiler]
        read += _joined(text_of(record.at(op.mark)))
    return found


def _joined(text: str) -> str:
    """Returns a text without the signs between its words, as those of a telephone number."""
    return re.sub(r"[\W_]+", "", text)
