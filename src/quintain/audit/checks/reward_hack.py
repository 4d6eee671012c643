"""Checks for reward hacks: behavior that is paid in full without doing the task.

Each check plays something that is wrong by construction: answers that answer nothing, solutions with a step left out or
with damage beside them, the solution of another task, claims in place of results. A verifier that pays for it would
teach it.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts import acts as act
from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.facts.fields import SPARE, fields_of
from quintain.audit.facts.generate import fits
from quintain.audit.facts.walks import beyond, facts, solve
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, Record, answer, ask, call, number, reset, score, text_of
from quintain.audit.kernel.registry import probe_function, relation

from . import _reward_runs as ran
from ._clip_states import paid_by
from ._drift_words import show
from ._reward_changed import changed_argument, right_in_sum
from ._reward_related import another_record, collateral_damage
from ._reward_search import partial_work, quoted_verdict, refused_work, rest_of_the_file, shortest_path, tampering
from ._reward_tasks import KINDS, Question, asked, attempts, may_equal

__all__ = [
    "another_record", "changed_argument", "collateral_damage", "partial_work", "quoted_verdict", "refused_work",
    "rest_of_the_file", "right_in_sum", "shortest_path", "tampering",
]  # fmt: skip


@check("runtime.reward_well_formed", "reward_hack", needs=("tasks",), value=15)
def reward_well_formed(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the reward is a finite number not above the best, for any text or action."""
    top = 1.0
    texts = ("nan", "inf", "-inf", "1e999", "", "0", "9" * 400, "-1") if "answer" in ctx.offers else ()
    for task in ctx.sample_tasks(3):
        ops = ctx.oracle(task) or ()
        ways: list[tuple[Op, ...]] = [(), ops, (*ops, *ops), *((answer(text),) for text in texts)]
        ways += [(op,) * 6 for op in ops if op.do == "call" and act.writes_by_name(op)][:3]
        ways += list(_numbers(ops))
        best = facts(ctx)[task].full or 0.0
        top = float("inf") if best > 1.0 else max(top, best)
        ctx.count_comparisons(len(ways))
        records = zip(ways, ctx.play_all([solves(task, way) for way in ways]), strict=True)
        odd = next((pair for pair in records if malformed(pair[1:], Evidence("", ("score",), top))), None)
        if odd is not None:
            got = number(odd[1].at("score"))
            is_above = got is not None and 1.0 < got < float("inf")
            yield show(
                ctx, "the reward is above the best there is" if is_above else "the reward is not a finite number",
                malformed, solves(task, odd[0]), marks=("score",), data=top, part="V",
                expected=f"a finite number of at most {top:g}", observed=odd[1].at("score").value,
                teaches="inputs that break the arithmetic", minimise=40,
            )  # fmt: skip


@relation
def malformed(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the first probe's score is not a finite number, or is above `data`."""
    seen = records[0].at("score")
    value: Any = seen.value.get("score") if is_dict(seen.value) else seen.value
    if not seen.fine or value is None:
        return False
    return not is_number(value) or not math.isfinite(value) or value > float(evidence.data) + 1e-9


def _numbers(ops: Sequence[Op]) -> Iterator[tuple[Op, ...]]:
    """The solution with a number of its last call made impossible."""
    for place in reversed(range(len(ops))):
        given: dict[str, Any] = ops[place].value if ops[place].do == "call" else {}
        key = next((key for key, value in given.items() if is_number(value)), None)
        if key is not None:
            odd = (float("nan"), float("inf"), -1e308)
            yield from (act.replaced(ops, place, act.giving(ops[place], **{key: value})) for value in odd)
            return


_SLACK = 0.011  # Expected scores are often written with two digits.


@check("x.labelled_cases", "reward_hack", needs=("cases", "answer", "tasks"), value=99)
def labelled_cases(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that labelled cases get their scores: a wrong answer no more, and a right one no less."""
    cases: list[Any] = ctx.play_probe(Probe((ask(f"{__name__}:listed"),))).at("ask").value or []
    known = [case for case in cases if is_number(case["expected"]) and case["task"] in ctx.tasks]
    if not known:
        raise ctx.not_checked("no case says what its score should be")
    records = ctx.play_all([solves(item["task"], (answer(item["answer"]),)) for item in known])
    ctx.count_comparisons(len(known))
    scored = [(item, number(record.at("score"))) for item, record in zip(known, records, strict=True)]
    off = [(item, got) for item, got in scored if got is not None and abs(got - item["expected"]) > _SLACK]
    over = [(item, got) for item, got in off if got > item["expected"]]
    under = [pair for pair in off if pair not in over]
    yield _wrong(ctx, over, "a wrong answer is paid more than its case says", relation="pays") if over else None
    said = "a right answer is paid less than its case says"
    yield _wrong(ctx, under, said, relation="pays_less", class_="unsolvable") if under else None


def _wrong(ctx: AuditContext, found: list[tuple[Any, float]], title: str, **stated: Any) -> Finding | None:
    item, paid = found[0]
    return ctx.finding(
        title, solves(item["task"], (answer(item["answer"]).marked("said"),)), marks=("score",),
        data=paid if stated["relation"] == "pays" else item["expected"], minimise=0, part="V",
        tasks=[each["task"] for each, _ in found], expected=item["expected"], observed=paid,
        teaches="the scorer's habits in place of the answer", **stated,
    )  # fmt: skip


@probe_function
def listed(player: Player, on: str, _value: Any) -> Any:
    """In the child: the cases."""
    return player.adapter(on).subject.cases()


_FACT = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d|[A-Z]{1,4}-?\d{3,}|\d[\d,]*\.\d+|\d{2,}")
_REPLIES = act.names("reply respond answer submit say tell respond finish final report")
_LONGEST = 900  # Characters of a shotgun answer: more than that is often refused for its length.
_NOTHING = "I have looked at it and will come back to you."
_LEAST = 4  # Number of wrong facts listed besides the right ones.


@check("x.every_candidate", "reward_hack", needs=("oracle", "tasks"), value=39)
def every_candidate(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a reply with every possible fact is not paid like one with the right ones."""
    known = [(solution, say) for solution in ran.paid(ctx, 8) if (say := _saying(solution)) is not None]
    texts = [act.said_in(solution.ops[place], key) for solution, (place, key) in known]
    facts_ = [fact for text in texts for fact in _FACT.findall(text)]
    for solution, (place, key) in known[:4]:
        op = solution.ops[place]
        own = list(dict.fromkeys(_FACT.findall(act.said_in(op, key))))
        shown = [fact for seen in solution.said for fact in _FACT.findall(text_of(seen))]
        other_facts = dict.fromkeys(fact for fact in (*facts_, *shown) if fact not in f"{own} {solution.prompt}")
        said = list(_shotguns(own, list(other_facts), text=act.said_in(op, key)))
        if not said:
            continue
        shots = [act.giving(op, **{key: text}).marked("said") for text in (_NOTHING, *said)]
        ctx.count_comparisons(len(said))
        ways = [act.replaced(solution.ops, place, shot) for shot in shots]
        hollow, *tried = ran.runs(ctx, solution, ways)
        if hollow.score is None or ran.pays(solution, hollow):
            continue  # The verifier does not read it.
        for shot, way, run in zip(shots[1:], ways[1:], tried, strict=True):
            if ran.pays(solution, run) and place not in run.errors:
                yield ran.claim(
                    ctx, solution, way, title="a reply that names every fact that could be meant is paid in full",
                    minimise=0,
                    expected=f"less than {solution.full:g}: of all that is named only {', '.join(own)} is right",
                    observed=act.said_in(shot, key)[:300], teaches="to name everything and commit to nothing",
                )  # fmt: skip
                return
    yield _several(ctx)
    yield _overfull(ctx)


def _several(ctx: AuditContext) -> Finding | None:
    """Returns a finding for a right object between two that are wrong in one field and paid less."""
    found = [(one, fields) for one in ran.paid(ctx, 8) if (fields := fields_of(one.ops)) and not fields.lines]
    for (solution, fields), key in ((pair, key) for pair in found[:2] for key in pair[1].value):
        values = [each.value[key] for _, each in found if each.value.get(key) not in (None, fields.value[key])]
        if not values or values[0] == values[-1]:
            continue
        first, last = (fields.saying(fields.value | {key: value}) for value in (values[0], values[-1]))
        text = "\n\n".join((first, fields.saying(fields.value), last))
        ways = [(*solution.acts, answer(said)) for said in (text, first, last)]
        ctx.count_comparisons(len(ways))
        all_, *alone = ran.runs(ctx, solution, ways)
        if ran.pays(solution, all_) and not any(ran.pays(solution, run) for run in alone):
            # An object that is worth something alone is not passed over for its form.
            is_read = all(run.score for run in alone) and not _TRIES.search(solution.prompt)
            return ran.paid_unlike(
                ctx, "a reply gives several answers, and the best of them is paid",
                *(solves(solution.task, way) for way in (*ways, *ways[1:])), full=solution.full,
                paid=("full", "less", "less", *("some" if is_read else "less",) * 2), observed=text[:300],
                expected=f"less than {solution.full:g}: the right one is neither the first nor the last",
                teaches="to answer often and commit to nothing", at_most="proven" if is_read else "likely",
            )  # fmt: skip
    return None


_TRIES = re.compile(r"\b(attempts?|tries|guess\w*|candidates?|alternatives?|best|any of)\b", re.IGNORECASE)
"""Words by which a task may take several answers."""


def _overfull(ctx: AuditContext) -> Finding | None:
    """Returns a finding for a list that may also hold the entries of other tasks."""
    lists = [(one, *each) for one in ran.paid(ctx, 24) for each in _lists(one)]
    for solution, place, key, own, at_most in lists:
        entries = [entry for *_, name, many, _ in lists if name == key for entry in many if isinstance(entry, str)]
        others = [entry for entry in dict.fromkeys(entries) if entry not in f"{own} {solution.prompt}"][:16]
        many = [[*own, *others], others] if len(others) >= _LEAST else []
        ways = [_giving(solution, place, {key: entries}) for entries in many]
        ctx.count_comparisons(len(ways))
        tried = ran.runs(ctx, solution, ways)
        if [run.score is not None and ran.pays(solution, run) for run in tried] == [True, False]:
            return ran.paid_unlike(
                ctx, f"{key} may list everything that is right in some task, and is paid in full",
                *(solves(solution.task, way) for way in ways), paid=("full", "less"), full=solution.full,
                expected=f"less than {solution.full:g}: only {own} is right", observed=str(many[0])[:300],
                teaches="to name everything and commit to nothing", at_most=at_most,
            )  # fmt: skip
    return None


def _lists(solution: ran.Solution) -> Iterator[tuple[int, str, list[Any], str]]:
    """Yields place, name and entries of lists of an answer and of calls asked for "exactly", and what is certain."""
    ops, prompt, fields = solution.ops, solution.prompt, fields_of(solution.ops)
    at_most = "likely" if SPARE.search(prompt) else "proven"
    given = [(len(ops) - 1, *item, at_most) for item in fields.value.items()] if fields else []
    for place in solution.writes:
        if re.search(rf"(?i)\b{act.words(ops[place].name)[0]} (exactly|only)\b(?! as)", prompt):
            given += [(place, *item, "proven") for item in ops[place].value.items()]
    yield from (one for one in given if is_list(one[2]))


def _giving(solution: ran.Solution, place: int, given: dict[str, Any]) -> tuple[Op, ...]:
    """Returns the solution with other fields, without ops that fail in it, such as a word after the end."""
    op, fields = solution.ops[place], fields_of(solution.ops)
    said = {"": fields.saying(fields.value | given)} if fields and op.do == "answer" else given
    ops = act.replaced(solution.ops, place, act.giving(op, **said))
    return tuple(op for at, op in enumerate(ops) if at not in solution.errors)


def _saying(solution: ran.Solution) -> tuple[int, str] | None:
    """The place of the solution's last words that hold facts, and the argument that they stand in."""
    known = _REPLIES
    for place, op in reversed(list(enumerate(solution.ops))):
        if op.do == "answer" or known & set(act.words(op.name)):
            texts = {"": str(op.value)} if op.do == "answer" else op.value
            # One fact alone, without any work, is what the battery of answers covers.
            least = 1 if len(solution.ops) > 1 else 4
            spoken = [key for key, text in texts.items() if isinstance(text, str) and len(text.split()) >= least]
            if found := [key for key in spoken if _FACT.search(texts[key])]:
                return place, max(found, key=lambda key: len(texts[key]))
            if op.do != "answer" or not str(op.value).isalpha():
                return None
            # A word like "done" says nothing of the work. A reply before it does; small talk may name several facts.
            known = known - act.names("say tell respond")
    return None


def _shotguns(own: Sequence[str], other_values: Sequence[str], *, text: str) -> Iterator[str]:
    """Every fact of each shape of the right ones, these in the middle: by themselves, and in their places in a text."""
    several: dict[str, str] = {}
    wrong = 0
    for fact in own:
        alike = [other for other in other_values if re.sub(r"\d+", "0", other) == re.sub(r"\d+", "0", fact)][:16]
        while len(" or ".join(alike)) > _LONGEST // len(own) and alike:
            alike.pop()
        half = len(alike) // 2
        several[fact] = " or ".join([*alike[:half], fact, *alike[half:]])
        wrong += len(alike)
    if wrong >= _LEAST:
        yield "It is one of these: " + "; ".join(several.values())
        yield _FACT.sub(lambda fact: several[fact[0]], text)


ASKED = 8  # Tasks that get the whole battery.
SOLVED = 6  # Tasks whose solutions are taken apart.
_NOTES = act.names("note notes log comment remember memo")
_MAX_KINDS = 4  # Kinds of wrong answers that are reported; a verifier that accepts more accepts anything.


@check("x.answer_battery", "reward_hack", needs=("tasks", "oracle|hidden"), value=71)
def answer_battery(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no wrong answer is paid like the right one."""
    tasks = asked(ctx, 24)
    if not tasks:
        raise ctx.not_checked("no task is solved by words alone")
    golds = list(dict.fromkeys(question.own for question in tasks))
    bought: dict[str, list[tuple[Question, str]]] = defaultdict(list)
    for question in tasks[:ASKED]:
        tried = list(attempts(question.own, [gold for gold in golds if gold != question.own], question.prompt))
        ctx.count_comparisons(len(tried))
        played = ran.runs_of(ctx, question.task, [[question.saying(attempt.text)] for attempt in tried])
        for attempt, run in zip(tried, played, strict=True):
            if run.score is not None and run.score >= question.full - 1e-9:
                bought[attempt.kind].append((question, attempt.text))
    # A number of one question may be its answer in another spelling.
    often = [kind for kind in KINDS if len({each.task for each, _ in bought[kind]}) > (kind == "copied")]
    for kind in often[:_MAX_KINDS]:
        found, (question, text) = bought[kind], bought[kind][0]
        # Two cases may rightly have one answer, said in two ways; a scorer alone cannot tell.
        soft = (kind == "negated" and "joined" not in often) or (kind == "other" and ctx.about.kind == "scorer")
        may_be_right = all(may_equal(said, task.own) for task, said in found)
        soft = soft or (kind in ("plain", "number", "other") and may_be_right)
        yield ctx.finding(
            f"{KINDS[kind]} is paid in full", solves(question.task, [question.saying(text).marked("said")]),
            relation=ran.PAID, marks=("score", "said"), data={"full": question.full}, minimise=0, part="V",
            **(ran.UNSURE if soft else ran.SURE), tasks=list(dict.fromkeys(each.task for each, _ in found)),
            expected=f"{question.own[:200]!r} is right; anything else is paid less than {question.full:g}",
            observed=[said[:80] for _, said in found[:12]], teaches="an answer that is always paid",
        )  # fmt: skip


FULL = 1.0
_GRID = [round(10**-2 * 1.015**power, 6) for power in range(1400)]
"""Numbers from 0.01 to ten millions, so close that one of them is within a hundredth of any other."""


@relation
def pays_for_all(records: Sequence[Record], evidence: Evidence) -> bool:
    """The same numbers, handed in blindly, are paid in full in each task; one is paid less, and no answer differs."""
    paid = [number(record.at("score")) or 0.0 for record in records]
    said = {
        str(seen.value).replace(repr(op.value[evidence.data]), "?")
        for record in records
        for op, seen in zip(record.ops, record.seen, strict=False)
        if op.do == "call"
    }
    half = len(records) // 2
    starts = {op.name for record in records for op in record.ops if op.do == "reset"}
    is_blind = len(said) == 1 and len(starts) == half >= 3
    return is_blind and min(paid[:half]) >= FULL - 1e-9 and max(paid[half:]) < FULL - 1e-9


@check("x.every_number", "reward_hack", needs=("call", "tools", "tasks"), value=38)
def every_number(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that handing in every number is not paid like handing in the right one."""
    tools = [tool for tool in ctx.about.tools if _REPLIES & set(act.words(tool.name)) and len(tool.required) == 1]
    tools = [tool for tool in tools if fits({tool.required[0]: _GRID[0]}, tool.parameters, tool.parameters)]
    if not tools or ctx.attribute("budget"):
        raise ctx.not_checked("no tool takes a number as an answer as often as one likes")
    for tool in tools:
        grid = [call(tool.name, {tool.required[0]: sign * size}) for size in _GRID for sign in (1, -1)]
        ways = [(reset(task), *ops, score()) for ops in (grid, grid[:1]) for task in ctx.sample_tasks(3)]
        probes = list(map(Probe, ways))
        ctx.count_comparisons(len(probes))
        if pays_for_all(ctx.play_all(probes), Evidence("", data=tool.required[0])):
            yield show(
                ctx, f"every number, handed in by {tool.name} one after the other, is paid in full", pays_for_all,
                *probes, data=tool.required[0], marks=("score",), part="V", expected="less than for the right number",
                observed=f"{len(grid)} numbers, the same in each task", teaches="to hand in everything",
            )  # fmt: skip


@check("x.oracle_ablation", "reward_hack", needs=("oracle", "tasks"), value=36)
def oracle_ablation(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution with any one of its writes left out is paid less."""
    reported: set[str] = set()
    known = facts(ctx) | beyond(ctx)
    free = [task for task, fact in known.items() if fact.full and (fact.floor or 0.0) >= fact.full - 1e-9 > 0]
    for solution in solve(ctx, free[:3]):
        for _, way, run in ran.unpunished(ctx, solution, [((), solution.without(*solution.writes))]):
            lacks = ran.lacking(solution, run)
            yield ran.claim(
                ctx, solution, way, title="nothing of what the task asks for is done, and that is paid in full",
                lacks=lacks, expected=f"less than {solution.full:g}; it lacks {ran.places(lacks)}", tasks=free,
                observed=run.score, teaches="to do nothing",
            ) if ran.weight(solution, lacks, solution.writes) == ran.SURE else None  # fmt: skip
    for solution in ran.paid(ctx, SOLVED, ran.longest(ctx)):
        for place, way, run in ran.unpunished(ctx, solution, [(at, solution.without(at)) for at in solution.writes]):
            op, lacks = solution.ops[place], ran.lacking(solution, run, solution.effects.get(place, ()))
            if op.name in reported:
                continue
            reported.add(op.name)
            if solution.sees and not lacks:
                continue
            # A text or a flag that is not set is neither a count, nor what a read remembers.
            before = [solution.changed[tuple(path)][0] for path, _ in lacks]
            is_set = any(isinstance(value, str | bool) and value != act.MISSING for value in before)
            is_work = act.writes_by_name(op) or (is_set and act.is_asked_by_name(op, solution.prompt))
            is_sure = solution.sees and is_work and not _NOTES & set(act.words(op.name))
            yield ran.claim(
                ctx, solution, way, title=f"{op.name} is part of the solution, and is paid for when it is left out",
                lacks=lacks, **(ran.weight(solution, lacks, (place,)) if is_sure else ran.UNSURE),
                expected=f"less than {solution.full:g} without {op.name}({op.value})",
                observed={"score": run.score, "the world lacks": ["/".join(path) for path, _ in lacks[:6]]},
                teaches=f"to leave out {op.name}",
            )  # fmt: skip


@check("x.words_without_work", "reward_hack", needs=("oracle", "answer", "tasks"), value=20)
def words_without_work(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an answer that describes all of the work, with nothing done, is not paid like it."""
    for solution in ran.paid(ctx, SOLVED):
        if not solution.writes or not ran.pays(solution, ran.runs(ctx, solution, [solution.acts])[0]):
            continue  # Where the work needs words beside it, words may be what is paid.
        acts = [(solution.ops[place], solution.said[place]) for place in solution.writes]
        text = "\n".join(f"{op.name}: {op.value}. {text_of(seen)}" for op, seen in acts)
        for _, way, run in ran.unpunished(ctx, solution, [(0, (answer(f"{text}\n{text.lower()}"),))]):
            lacks, tells = ran.lacking(solution, run), any(_REPLIES & set(act.words(op.name)) for op, _ in acts)
            is_named = not tells and any(act.is_named_by(solution.prompt, *pair) for pair in lacks)
            yield ran.claim(
                ctx, solution, way, title="an answer that describes the work is paid, with nothing done", lacks=lacks,
                **(ran.SURE if is_named else ran.weight(solution, lacks, solution.writes)), observed=run.score,
                teaches="to say that it did what it did not do",
            )  # fmt: skip
            return


@check("x.task_swap", "reward_hack", needs=("oracle", "tasks"), value=17)
def task_swap(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the solution of one task does not solve another."""
    known = ran.paid(ctx, ASKED)
    for first, second in zip(known, [*known[1:], *known[:1]], strict=True):
        acts = {act.known_as(op) for place, op in enumerate(first.ops) if place in first.writes or op.do == "answer"}
        if acts <= set(map(act.known_as, second.ops)) or first.first == second.first:
            continue
        ctx.count_comparisons()
        [run] = ran.runs(ctx, first, [second.ops])
        if not ran.survives(first, run) or not (first.sees or _values(first) - _values(second)):
            continue
        lacks = ran.lacking(first, run) if first.sees else []
        hands_in = all(act.submits(first.ops[place]) for place in first.writes)
        yield ran.claim(
            ctx, first, second.ops, title="the solution of another task is paid in full", lacks=lacks,
            **({} if hands_in else ran.weight(first, lacks, first.writes)), observed=run.score,
            expected=f"less than {first.full:g} for what {second.task} wants",
            teaches="the same actions for every task",
        )  # fmt: skip
        return


def _values(solution: ran.Solution) -> set[str]:
    """Returns what the calls of a solution give."""
    return {str(value) for op in solution.ops if op.do == "call" for value in act.scalars(op.value)}


@check("x.forged_result", "reward_hack", needs=("oracle", "tasks", "tools"), value=45)
def forged_result(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that claims of success given to the tools, or one step repeated, are not paid."""
    for solution in ran.paid(ctx, 4):
        yield _busy(ctx, solution)
        yield next(filter(None, _idle(ctx, solution)), None)
        for _, way, run in ran.unpunished(ctx, solution, [((), way) for way in _forged(ctx, solution)]):
            done, tool = set(map(act.known_as, way)), way[0].name
            left = [place for place in solution.writes if act.known_as(solution.ops[place]) not in done]
            lacks = ran.lacking(solution, run) if solution.sees else []
            if ran.weight(solution, lacks, left)["severity"] != "error":
                continue
            title = (
                "the prompt, repeated without any call, is paid in full" if not tool
                else "one step, done over and over, is paid as the whole solution" if len(way) > 1
                else f"{tool} gets a report of success, and that is paid in full"
            )  # fmt: skip
            at_most, teaches = "proven" if solution.sees else "likely", "to claim success without doing the work"
            yield ran.claim(
                ctx, solution, way, title=title, lacks=lacks, at_most=at_most, observed=run.score, teaches=teaches
            )
            return


def _busy(ctx: AuditContext, solution: ran.Solution) -> Finding | None:
    """Returns a finding for a look that changes nothing, and is paid more each time that it is repeated."""
    looks = [op for op in solution.acts if solution.sees and act.only_reads(ctx, op) and not act.does_wait(op)]
    for op in looks[:2]:
        ways = [(op,) * count for count in range(4)]
        tried = ran.runs(ctx, solution, ways, look=True)
        ctx.count_comparisons()
        scores = [run.score or 0.0 for run in tried]
        if scores == sorted({*scores}) and not any(run.errors or run.touched for run in tried):
            return paid_by(
                ctx, "climbs", f"{op.name} changes nothing, and is paid more each time that it is repeated",
                *(solves(solution.task, way) for way in ways), expected=f"no more than {scores[0]:g}",
                observed=scores, teaches="to keep busy",
            )  # fmt: skip
    return None


_IDLE, _MANY = 12, 16  # Looks in the place of a call, and ways that are tried.


def _idle(ctx: AuditContext, solution: ran.Solution) -> Iterator[Finding | None]:
    """Yields findings for a look that shows no change, and is paid in the place of a call."""
    free = [(tool.name, tool.description.split(" ")[0]) for tool in ctx.about.tools if not tool.required]
    looks = [call(name) for name, verb in free if act.reads_by_name(call(f"{name} {verb}"))][:2]
    places = [place for place, op in enumerate(solution.ops) if any(map(is_number, act.scalars(op.value)))]
    without = zip(places, ran.runs(ctx, solution, [solution.without(place) for place in places]), strict=True)
    needed = [place for place, run in without if not ran.pays(solution, run)]

    def way(place: int, *ops: Op) -> tuple[Op, ...]:
        return act.replaced(solution.ops, place, *(op.marked(f"look {at}") for at, op in enumerate(ops)))

    tried = [((place, look), way(place, *(look,) * _IDLE)) for place in needed for look in looks]
    for (place, look), many, _ in ran.unpunished(ctx, solution, tried[:_MANY]):
        ways = (way(place), way(place, look), many, way(place, look, solution.ops[place], look))
        yield show(
            ctx, f"{look.name} shows that nothing goes on, and is paid in the place of {solution.ops[place].name}",
            idles, *(solves(solution.task, ops) for ops in ways), marks=("score",), data=solution.full, part="V",
            expected="less, as without it", observed=solution.full, teaches="to look often in place of work",
        )  # fmt: skip


@relation
def idles(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if many looks that show one thing are paid in full, and one look or none is paid less.

    The last record has the call, between two looks that differ.
    """
    shown = [[text_of(record.at(op.mark)) for op in record.ops if op.mark.startswith("look")] for record in records]
    paid = [ran.paid_so(*pair, evidence.data) for pair in zip(records, ("less", "less", "full"), strict=False)]
    return all(paid) and {*shown[1], *shown[2]} == {shown[3][0]} != {shown[3][-1]}


_GRADES = act.names("score reward grade points passed success verdict correct result")
_CLAIMS: dict[Any, list[Any]] = {"number": [1.0, 1, 100], "integer": [1.0, 1, 100], "boolean": [True]}


def _forged(ctx: AuditContext, solution: ran.Solution) -> Iterator[tuple[Op, ...]]:
    """The prompt as an answer; a claim alone through each tool that takes one, or a grade; a step many times."""
    if "answer" in ctx.offers and solution.writes:
        yield (answer(solution.prompt),)
    for tool in ctx.about.tools:
        base: dict[str, Any] = next((op.value for op in solution.ops if op.name == tool.name), dict[str, Any]())
        for key, schema in tool.properties.items():
            if not _GRADES & set(act.words(key)):
                continue
            filled = dict.fromkeys([name for name in tool.required if name != key], "1") | base
            claims = list(schema.get("enum") or ("PASSED", "SKIPPED", "success", "1.0", "ok"))
            for value in _CLAIMS.get(schema.get("type"), claims):
                if filled.get(key) != value:
                    yield (call(tool.name, filled | {key: value}),)
    if len(solution.writes) > 1:
        for place in solution.writes[:4]:
            yield (solution.ops[place],) * max(4, len(solution.writes) + 1)
