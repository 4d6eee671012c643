"""Checks that a judge of several things grades alike in any order.

Two kinds of model take the place of the judge's own. Of a comparison, one that only sees the place: it prefers what
stands first, or second, whatever that is. Of several criteria or references, one that is content with some of them and
not with the others. What then decides the grade is the judge's own doing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, Record, ask, reset
from quintain.audit.kernel.registry import probe_function, relation

from . import _judge_members as members
from ._judge_claims import EPSILON, MARK, NEEDS, asked, grade
from ._judge_members import Members, VerdictTable

PLACED = f"{__name__}:placed"
TASKS = 3
"""Tasks whose criteria are looked at."""
PREFERS = ("ours", "theirs", "first", "second")
REPLIES = (
    ("A", "B"), ("[[A]]", "[[B]]"), ("1", "2"), ("[[1]]", "[[2]]"), ("Verdict: A", "Verdict: B"), ("first", "second"),
    ("VERDICT: A", "VERDICT: B"), ("Winner: A", "Winner: B"), ("WINNER: A", "WINNER: B"), ("Verdict: 1", "Verdict: 2"),
    ("<verdict>A</verdict>", "<verdict>B</verdict>"), ("<winner>A</winner>", "<winner>B</winner>"),
    ("Answer A", "Answer B"), ("Response A", "Response B"), ("Answer 1", "Answer 2"), ("Response 1", "Response 2"),
    ("Preferred: A", "Preferred: B"), ("Better: A", "Better: B"), ("Choice: A", "Choice: B"), ("Final: A", "Final: B"),
    ('{"winner": "A"}', '{"winner": "B"}'), ('{"verdict": "A"}', '{"verdict": "B"}'),
    ('{"better": "A"}', '{"better": "B"}'), ('{"choice": "A"}', '{"choice": "B"}'),
    ('{"preferred": "A"}', '{"preferred": "B"}'), ('{"winner": 1}', '{"winner": 2}'), ("one", "two"),
)  # fmt: skip
"""Replies of a judge's model in favor of the first and of the second of two things."""
ANSWERS = (MARK, *(f"{MARK} {word}" for word in ("one", "two", "three", "four", "five", "six", "seven")))
"""A judge that draws the places draws otherwise for some of them."""
_THING = (
    r"answer|response|candidate|assistant|model|output|option|completion|solution|essay|reply|text|submission|summary"
    r"|player|conversation|version"
)
_PLACES = ({"a", "1", "one", "first"}, {"b", "2", "two", "second"})
_LABEL = re.compile(
    rf"(?<![a-z])(?:(?:{_THING})[\W_]{{0,2}}(?P<last>a|b|1|2|one|two)"
    rf"|(?P<before>first|second)[\W_](?:{_THING}))(?![a-z\d])"
)
_BARE = re.compile(r"(?:^|\n)[^\w\n]{0,3}(?P<last>a|b|1|2)[^\w\n]{0,4}$")
_BETWEEN = re.compile(rf"(?:[\W_]|s|{_THING}|start|begin|content|is|of|the|reads|says)*")


def slot(text: str, said: str) -> int | None:
    """Returns which of two labelled places holds the words, 0 or 1, or None without such a place."""
    before, found, behind = text.partition(said)
    if not found:
        return None
    lowered = before.lower()
    labels = [(item.end(), item["last"] or item["before"]) for item in _LABEL.finditer(lowered)]
    near = [word for end, word in labels if len(lowered) - end <= 60 and _BETWEEN.fullmatch(lowered[end:])]
    if near:
        other_values = {word for _, word in labels} | {
            item["last"] or item["before"] for item in _LABEL.finditer(behind.lower())
        }
    else:
        bare = _BARE.search(lowered)
        near = [bare["last"]] if bare else []
        other_values = set(re.findall(r"(?:^|\n)[^\w\n]{0,3}([ab12])[^\w\n]{1,4}\w", f"{lowered}\n\n{behind.lower()}"))
    place = next((place for place, words in enumerate(_PLACES) if near and near[-1] in words), None)
    return place if place is not None and other_values & _PLACES[1 - place] else None


@probe_function
def placed(player: Player, on: str, value: Any) -> Any:
    """In the child: a judge whose model goes by places; the grade, what was asked, and where the answer stood."""
    adapter = player.adapter(on)
    asked_: list[str] = []
    places: list[int | None] = []

    def complete(text: str) -> str:
        asked_.append(text)
        place = slot(text, value["answer"])
        places.append(place)
        wanted: str = value["prefers"]
        chosen = PREFERS.index(wanted) - 2 if wanted in ("first", "second") else (place or 0) ^ (wanted == "theirs")
        return str(value["replies"][chosen])

    found = adapter.subject.judge(adapter.task(value["task"]), value["answer"], complete)
    return {"grade": found, "asked": asked_, "places": places}


def _op(task: str, prefers: str, replies: Sequence[str], *, said: str = MARK, mark: str = "judge") -> Op:
    value = {"task": task, "answer": said, "replies": list(replies), "prefers": prefers}
    return ask(PLACED, value, mark=mark)


def _places(record: Record, mark: str = "judge") -> list[int | None]:
    seen = record.at(mark)
    found: Any = seen.value.get("places") if seen.fine and is_dict(seen.value) else None
    return list(found) if is_list(found) else []


# --- relations: each states the bug ---


@relation
def place_alone(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if a model that only sees the place, asked in both orders, yields the grade of a preferring one."""
    grades = [grade(record.at("judge")) for record in records]
    own_score, other_score, first, second = grades
    if own_score is None or other_score is None or {*_places(records[0])} != {0, 1}:
        return False
    return own_score > other_score + EPSILON and any(
        number is not None and number >= own_score - EPSILON for number in (first, second)
    )


@relation
def mapped_wrongly(records: Sequence[Record], _evidence: Evidence) -> bool:
    """Asked in both orders, the grade follows the place that the model prefers, and not the answer."""
    own_score, other_score, first, second = (grade(record.at("judge")) for record in records)
    if own_score is None or other_score is None or first is None or second is None or {*_places(records[0])} != {0, 1}:
        return False
    return own_score <= other_score + EPSILON and abs(first - second) > EPSILON


@relation
def one_order(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if the answer always stands in one place and a model that only sees the place sets the grade."""
    own_score, other_score, first, second = (grade(record.at("judge")) for record in records[:4])
    if own_score is None or other_score is None or first is None or second is None:
        return False
    places = {place for record in records for place in _places(record)}
    return (
        len(places) == 1 and None not in places and own_score > other_score + EPSILON and abs(first - second) > EPSILON
    )


# --- the checks ---


@check("x.judge_ignores_place", "judge", needs=NEEDS, value=74)
def position(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a judge that compares two answers is not decided by their order."""
    task = ctx.tasks[0]
    tried = [_op(task, wanted, pair, mark=f"{n} {wanted}") for n, pair in enumerate(REPLIES) for wanted in PREFERS]
    first = ctx.play(reset(task), tried[0])
    if not asked(first.at("0 ours")):
        raise ctx.not_checked("the judge asks its model nothing")
    if None in _places(first, "0 ours"):
        raise ctx.not_checked("the judge's model is not asked to compare the answer with another one")
    record = ctx.play(reset(task), *tried)
    for number, pair in enumerate(REPLIES):
        grades = {grade(record.at(f"{number} {wanted}")) for wanted in PREFERS}
        ctx.count_comparisons()
        if len(grades - {None}) > 1:
            yield from _compared(ctx, task, pair)
            return


def _compared(ctx: AuditContext, task: str, pair: Sequence[str]) -> Iterator[Finding | None]:
    probes = [Probe((reset(task), _op(task, wanted, pair))) for wanted in PREFERS]
    records = ctx.play_all(probes)
    observed = {wanted: grade(record.at("judge")) for wanted, record in zip(PREFERS, records, strict=True)}
    both = {
        "place_alone": (place_alone, "a model that always prefers one place makes the answer win in both orders"),
        "mapped_wrongly": (mapped_wrongly, "asked in both orders, the judge follows the place and not the answer"),
    }
    for name, (holds, title) in both.items():
        if holds(records, Evidence("")):
            yield _finding(ctx, title, probes, name=name, observed=observed)
            return
    other_probes = [
        Probe((reset(text), _op(text, "ours", pair, said=said))) for text in ctx.sample_tasks(2) for said in ANSWERS[1:]
    ]
    if one_order([*records, *ctx.play_all(other_probes)], Evidence("")):
        title = "the answer is compared in one order alone: a model that prefers a place decides the grade"
        yield _finding(ctx, title, [*probes, *other_probes], name="one_order", observed=observed)


def _finding(
    ctx: AuditContext, title: str, probes: Sequence[Probe], *, name: str, observed: dict[str, Any]
) -> Finding | None:
    return ctx.finding(
        title,
        *probes,
        relation=f"{__name__}:{name}",
        marks=("judge",),
        minimise=0,
        part="V",
        expected="both orders asked, and no win where the two verdicts contradict each other",
        observed=observed,
        teaches="nothing: the judge's habit decides, not the answer",
        at_most="likely" if name == "one_order" else "proven",
        severity="warning" if name == "one_order" else "error",
    )


@check("x.judge_ignores_order", "judge", needs=(*NEEDS, "hidden"), value=73)
def order(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each of several criteria or references counts, in any order of questions or verdicts."""
    is_known = False
    for task in ctx.sample_tasks(TASKS):
        hidden = ctx.play(Op("hidden", name=task, mark="hidden")).at("hidden").value
        for group in members.members_of(hidden):
            table = _understood(ctx, task, group)
            if table is None:
                continue
            is_known = True
            found = list(_ordered(ctx, task, group, table=table))
            yield from found
            if found:
                return
    if not is_known:
        raise ctx.not_checked("no criteria or references on each of which the judge hears a verdict")


def _understood(ctx: AuditContext, task: str, group: Members) -> VerdictTable | None:
    """Returns the verdict format that this judge reads, or None if it does not ask about each member."""
    every = frozenset(range(len(group.texts)))
    ops = [
        members.played(task, group, table, chosen=some, mark=f"{number} {len(some)}")
        for number, table in enumerate(members.TABLES)
        for some in (every, frozenset[int]())
    ]
    record = ctx.play(reset(task), *ops)
    for number, table in enumerate(members.TABLES):
        best, worst = record.at(f"{number} {len(every)}"), record.at(f"{number} 0")
        ctx.count_comparisons()
        high, low = grade(best), grade(worst)
        is_read = high is not None and low is not None and high > low + EPSILON
        if is_read and members.is_asked(asked(best), group, table):
            return table
    return None


def _ordered(ctx: AuditContext, task: str, group: Members, *, table: VerdictTable) -> Iterator[Finding | None]:
    every = frozenset(range(len(group.texts)))
    chosen = [
        every,
        frozenset[int](),
        *(frozenset({number}) for number in every),
        *(every - {number} for number in every),
    ]
    probes = [Probe((reset(task), members.played(task, group, table, chosen=some))) for some in chosen]
    for some in chosen[2:] if table.form == "keyed" else ():
        pair = [
            Probe((reset(task), members.played(task, group, table, chosen=some, turned=turned)))
            for turned in (False, True)
        ]
        records = ctx.play_all(pair)
        ctx.count_comparisons()
        if members.unlike(records, Evidence("")):
            yield _unordered(ctx, "the same verdicts in another order get another grade", pair, name="unlike",
                             observed=[grade(record.at("judge")) for record in records])  # fmt: skip
            return
    records = ctx.play_all(probes)
    ctx.count_comparisons(len(every))
    data = Evidence("", data=len(every))
    grades = [grade(record.at("judge")) for record in records]
    if members.decides(records, data):
        title = f"of {len(every)} {group.kind} one alone decides the grade"
        yield _unordered(ctx, title, probes, name="decides", observed=grades)
    elif not group.is_weighted and members.counts_by_place(records, data):
        title = f"{group.kind} without a stated weight count by their place"
        yield _unordered(ctx, title, probes, name="counts_by_place", observed=grades)


def _unordered(ctx: AuditContext, title: str, probes: Sequence[Probe], *, name: str, observed: Any) -> Finding | None:
    is_plain = name != "counts_by_place"
    return ctx.finding(
        title,
        *probes,
        relation=f"{members.__name__}:{name}",
        marks=("judge",),
        data=(len(probes) - 2) // 2,
        minimise=0,
        part="V",
        expected="a part in the grade for each, in whatever order they stand",
        observed=observed,
        teaches="one part of the rubric, and not the rest",
        at_most="proven" if is_plain else "likely",
        severity="error" if is_plain else "warning",
    )
