"""Checks for reward hacks: behavior that is paid in full without doing the task.

Each check plays something that is wrong by construction: answers that answer nothing, solutions with a step left out or
with damage beside them, the solution of another task, claims in place of results. A verifier that pays for it would
teach it.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quintain.audit.facts.data import is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.loader import Source
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, answer, ask, number, reset, score
from quintain.audit.kernel.registry import probe_function

from . import _reward_runs as claims
from ._reward_acts import MISSING, is_asked_by_name, names, scalars, submits, words, writes_by_name
from ._reward_changed import changed_argument, right_in_sum
from ._reward_facts import facts
from ._reward_related import another_record, collateral_damage
from ._reward_runs import Run, Solution, lacking, paid, runs, runs_of, seeing, survives, weight
from ._reward_search import partial_work, refused_work, shortest_path
from ._reward_tamper import quoted_verdict, rest_of_the_file, verifier_tampering
from ._reward_tasks import KINDS, Attempt, Question, asked, attempts, may_equal

__all__ = [
    "another_record", "changed_argument", "collateral_damage", "partial_work", "quoted_verdict", "refused_work",
    "rest_of_the_file", "right_in_sum", "shortest_path", "verifier_tampering",
]  # fmt: skip


@check("runtime.reward_well_formed", "reward_hack", needs=("tasks",), value=44)
def reward_well_formed(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the reward is a finite number not above the best, for any text or action."""
    top = 1.0
    texts = ("nan", "inf", "-inf", "1e999", "", "0", "9" * 400, "-1") if "answer" in ctx.offers else ()
    for task in ctx.sample_tasks(3):
        ops = ctx.oracle(task) or ()
        ways: list[tuple[Op, ...]] = [(), ops, (*ops, *ops), *((answer(text),) for text in texts)]
        ways += [(op,) * 6 for op in ops if op.do == "call" and writes_by_name(op)][:3]
        ways += list(_numbers(ops))
        best = facts(ctx)[task].full or 0.0
        top = max(top, best)
        if best > 1.0:
            top = float("inf")
        records = ctx.play_all([solves(task, way) for way in ways])
        for way, record in zip(ways, records, strict=True):
            ctx.count_comparisons()
            if not claims.malformed([record], Evidence(claims.ODD, ("score",), top)):
                continue
            value = record.at("score").value
            yield ctx.finding(
                "the reward is not a finite number" if not _above(record) else "the reward is above the best there is",
                solves(task, way),
                relation=claims.ODD,
                marks=("score",),
                data=top,
                part="V",
                expected=f"a finite number of at most {top:g}",
                observed=value,
                teaches="inputs that break the arithmetic",
            )
            break


def _above(record: Any) -> bool:
    got = number(record.at("score"))
    return got is not None and 1.0 < got < float("inf")


def _numbers(ops: Sequence[Op]) -> Iterator[tuple[Op, ...]]:
    """The solution with a number of its last call made impossible."""
    for place in reversed(range(len(ops))):
        op = ops[place]
        keys = [key for key, value in op.value.items() if is_number(value)] if op.do == "call" else []
        if keys:
            for value in (float("nan"), float("inf"), -1e308):
                changed = msgspec.structs.replace(op, value=op.value | {keys[0]: value})
                yield (*ops[:place], changed, *ops[place + 1 :])
            return


@check("x.score_asked_twice", "reward_hack", needs=("tasks",), value=90)
def score_asked_twice(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a second score request does not raise the score."""
    for task in ctx.sample_tasks(3):
        for ops in ((), (ctx.oracle(task) or ())[:1], ctx.oracle(task) or ()):
            ctx.count_comparisons()
            probe = Probe((reset(task), *ops, score(times=4)))
            if claims.grows([ctx.play_probe(probe)], Evidence(claims.GROWS, ("score",))):
                yield ctx.finding(
                    "the score rises when it is asked for again",
                    probe,
                    relation=claims.GROWS,
                    marks=("score",),
                    part="V",
                    expected="the same score each time",
                    observed=ctx.play_probe(probe).at("score").value,
                    teaches="to request its score often",
                )
                return


_SLACK = 0.011
"""Expected scores are often written with two digits."""


@check("x.labelled_cases", "reward_hack", needs=("cases", "answer", "tasks"), value=100)
def labelled_cases(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that labelled cases get their scores: a wrong answer no more, and a right one no less."""
    seen = ctx.play_probe(Probe((ask("quintain.audit.checks.reward_hack:listed"),))).at("ask")
    cases: list[Any] = seen.value or []
    known = [case for case in cases if is_number(case["expected"]) and case["task"] in ctx.tasks]
    if not known:
        raise ctx.not_checked("no case says what its score should be")
    records = ctx.play_all([solves(item["task"], (answer(item["answer"]),)) for item in known])
    over: list[tuple[Any, float]] = []
    under: list[tuple[Any, float]] = []
    for item, record in zip(known, records, strict=True):
        ctx.count_comparisons()
        paid = number(record.at("score"))
        if paid is not None and abs(paid - item["expected"]) > _SLACK:
            (over if paid > item["expected"] else under).append((item, paid))
    yield _wrong(ctx, over, "a wrong answer is paid more than its case says", relation="pays") if over else None
    said = "a right answer is paid less than its case says"
    yield _wrong(ctx, under, said, relation="pays_less", class_="unsolvable") if under else None


def _wrong(ctx: AuditContext, found: list[tuple[Any, float]], title: str, **stated: Any) -> Finding | None:
    item, paid = found[0]
    return ctx.finding(
        title,
        solves(item["task"], (answer(item["answer"]).marked("said"),)),
        marks=("score",),
        data=paid if stated["relation"] == "pays" else item["expected"],
        minimise=0,
        part="V",
        tasks=[each["task"] for each, _ in found],
        expected=item["expected"],
        observed=paid,
        teaches="the scorer's habits in place of the answer",
        **stated,
    )


@probe_function
def listed(player: Player, on: str, _value: Any) -> Any:
    """In the child: the cases."""
    return player.adapter(on).subject.cases()


_SCORES = re.compile(r"score|reward|grade|verif|judge|check|correct|evaluate|is_right|passes", re.IGNORECASE)
_SUBMITTED = re.compile(
    r"answer|prediction|response|completion|output|said|submission|reply|text|words|guess", re.IGNORECASE
)
_RIGHT = re.compile(r"gold|target|expected|truth|reference|solution|answer|label|correct|want", re.IGNORECASE)


@check("x.scorer_code", "reward_hack", level="static", needs=("sources",), value=72, severity="warning")
def scorer_code(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the scorer runs no agent text, and decides by more than an accident of it."""
    for source in ctx.sources:
        for function in scorers(source):
            ctx.count_comparisons()
            for line, said, why in faults(function):
                yield ctx.finding(
                    f"the scorer {said}",
                    part="V",
                    at_most="hint",
                    where=f"{source.path}:{line}",
                    expected=why,
                    observed=f"{function.name}() {said}",
                    teaches="inputs that slip through the scorer",
                )


def scorers(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions that judge, as their names or the file's letter say."""
    path = Path(source.path)
    if not path.is_file():
        return
    for top in ast.parse(path.read_text("utf-8"), source.path).body:
        if source.names and getattr(top, "name", None) not in source.names:
            continue
        for node in ast.walk(top):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if source.part == "V" or _SCORES.search(node.name):
                yield node


def faults(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[int, str, str]]:
    """Line, what it does, and what would be right."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            yield from _call(node)
        elif isinstance(node, ast.Compare):
            yield from _contained(node)
        elif isinstance(node, ast.ExceptHandler):
            yield from _swallowed(node)


def _call(node: ast.Call) -> Iterator[tuple[int, str, str]]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    given = [ast.unparse(child) for child in node.args]
    if name in ("eval", "exec") and given and not isinstance(node.args[0], ast.Constant):
        yield node.lineno, f"calls {name} on what it is given", "parse it: ast.literal_eval, json, a number"
    if name == "bool" and given and _SUBMITTED.search(given[0]):
        yield node.lineno, "takes any answer that is not empty for true", "compare it with the right one"
    if name in ("min", "max") and len(given) == 2 and any(isinstance(child, ast.Constant) for child in node.args[:1]):
        yield (
            node.lineno,
            f"bounds by {name}({given[0]}, ...), which lets NaN become the bound",
            "refuse what is not finite",
        )
    searched = attribute in ("search", "match", "findall") and isinstance(node.func, ast.Attribute)
    if searched and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "re" and node.args:
        shown = given[0]
        if attribute in ("search", "match") and _RIGHT.search(shown) and "escape" not in shown and "$" not in shown:
            yield node.lineno, "matches a pattern made of the right answer, not anchored", "re.fullmatch and re.escape"


def _contained(node: ast.Compare) -> Iterator[tuple[int, str, str]]:
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.In | ast.NotIn):
        return
    left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
    if _RIGHT.search(left) and _SUBMITTED.search(right) and left != right and isinstance(node.ops[0], ast.In):
        yield node.lineno, "pays when the right answer stands anywhere in the text", "compare the answer as a whole"
    if _SUBMITTED.search(left) and _RIGHT.search(right) and left != right and ".lower" in f"{left}{right}":
        yield node.lineno, "pays when the answer is a part of the right one", "compare the answer as a whole"


def _swallowed(node: ast.ExceptHandler) -> Iterator[tuple[int, str, str]]:
    for statement in node.body:
        value = statement.value if isinstance(statement, ast.Return) else None
        if isinstance(value, ast.Constant) and value.value in (1, 1.0, True):
            yield node.lineno, "pays in full when it breaks", "let the error out: no verdict"


_FACT = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d|[A-Z]{1,4}-?\d{3,}|\d[\d,]*\.\d+|\d{2,}")
_REPLIES = names("reply respond answer submit say tell respond finish final report")
_LONGEST = 900
"""Characters of a shotgun answer: more than that is often refused for its length."""
_NOTHING = "I have looked at it and will come back to you."
_LEAST = 4
"""Number of wrong facts listed besides the right ones."""


@check("x.every_candidate", "reward_hack", needs=("oracle", "tasks"), value=92)
def every_candidate(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a reply with every possible fact is not paid like one with the right ones."""
    known = [(solution, say) for solution in paid(ctx, 8) if (say := _saying(solution)) is not None]
    texts = [text for solution, say in known if (text := _text(solution.ops[say[0]], say[1]))]
    for solution, (place, key) in known[:4]:
        op = solution.ops[place]
        own = list(dict.fromkeys(_FACT.findall(_text(op, key))))
        other_values = [
            fact for text in texts for fact in _FACT.findall(text) if fact not in own and fact not in solution.prompt
        ]
        said = list(_shotguns(own, list(dict.fromkeys(other_values)), text=_text(op, key)))
        if not said:
            continue
        shots = [_with(op, key, text) for text in (_NOTHING, *said)]
        ctx.count_comparisons(len(said))
        ways = [(*solution.ops[:place], shot, *solution.ops[place + 1 :]) for shot in shots]
        hollow, *tried = zip(shots, runs(ctx, solution, ways), strict=True)
        if hollow[1].score is None or hollow[1].score >= (solution.full or 0.0) - 1e-9:
            continue  # The verifier does not read it.
        for shot, run in tried:
            if run.score is None or solution.full is None or run.score < solution.full - 1e-9 or place in run.errors:
                continue
            way = (*solution.ops[:place], shot.marked("said"), *solution.ops[place + 1 :])
            yield ctx.finding(
                "a reply that names every fact that could be meant is paid in full",
                Probe((reset(solution.task), *way, score())),
                relation=claims.PAID,
                marks=("score", "said"),
                data={"full": solution.full, "done": ["said"]},
                minimise=0,
                part="V",
                expected=f"less than {solution.full:g}: of all that is named only {', '.join(own)} is right",
                observed=_text(shot, key)[:300],
                teaches="to name everything and commit to nothing",
            )
            return


def _saying(solution: Solution) -> tuple[int, str] | None:
    """The place of the solution's last words that hold facts, and the argument that they stand in."""
    for place in reversed(range(len(solution.ops))):
        op = solution.ops[place]
        if op.do == "answer":
            return (place, "") if _tells(str(op.value)) else None
        if _REPLIES & set(words(op.name)):
            key = next((key for key, value in op.value.items() if isinstance(value, str) and _tells(value)), None)
            return None if key is None else (place, key)
    return None


def _tells(text: str) -> bool:
    """True if words hold facts and are more than one fact, which the battery of answers covers."""
    return bool(_FACT.search(text)) and len(text.split()) >= 4


def _text(op: Op, key: str) -> str:
    return str(op.value[key] if key else op.value)


def _with(op: Op, key: str, text: str) -> Op:
    return msgspec.structs.replace(op, value=op.value | {key: text} if key else text)


def _shape(fact: str) -> str:
    return re.sub(r"\d+", "0", fact)


def _shotguns(own: Sequence[str], other_values: Sequence[str], *, text: str) -> Iterator[str]:
    """Every fact of each shape of the right ones, these in the middle: by themselves, and in their places in a text."""
    several: list[str] = []
    wrong = 0
    room = _LONGEST // max(1, len(own))
    for fact in own:
        alike = [other_text for other_text in other_values if _shape(other_text) == _shape(fact)][:16]
        while len(" or ".join(alike)) > room and alike:
            alike.pop()
        half = len(alike) // 2
        several.append(" or ".join([*alike[:half], fact, *alike[half:]]))
        wrong += len(alike)
    if wrong >= _LEAST:
        yield "It is one of these: " + "; ".join(several)
        named = dict(zip(own, several, strict=True))
        yield _FACT.sub(lambda fact: named[fact[0]], text)


ASKED = 8
"""Tasks that get the whole battery."""
SOLVED = 6
"""Tasks whose solutions are taken apart."""
_MAX_KINDS = 4
"""Kinds of wrong answers that are reported; a verifier that accepts more accepts anything."""


@check("x.answer_battery", "reward_hack", needs=("tasks", "oracle|hidden"), value=59)
def answer_battery(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no wrong answer is paid like the right one."""
    tasks = asked(ctx, 24)
    if not tasks:
        raise ctx.not_checked("no task is solved by words alone")
    golds = list(dict.fromkeys(question.own for question in tasks))
    bought: dict[str, list[tuple[Question, Attempt]]] = defaultdict(list)
    for question in tasks[:ASKED]:
        tried = list(attempts(question.own, [gold for gold in golds if gold != question.own], question.prompt))
        for attempt, record in zip(tried, _said(ctx, question, tried), strict=True):
            ctx.count_comparisons()
            if record is not None and record >= question.full - 1e-9:
                bought[attempt.kind].append((question, attempt))
    for kind in [kind for kind in KINDS if kind in bought and _often(kind, bought[kind])][:_MAX_KINDS]:
        found, soft = bought[kind], kind == "negated" and "joined" not in bought
        question, attempt = found[0]
        # Two cases may rightly have one answer, said in two ways; a scorer alone cannot tell.
        soft = soft or (kind == "other" and ctx.about.kind == "scorer")
        soft = soft or (
            kind in ("plain", "number", "other") and all(may_equal(each.text, task.own) for task, each in found)
        )
        yield ctx.finding(
            f"{KINDS[kind]} is paid in full",
            Probe((reset(question.task), question.saying(attempt.text).marked("said"), score())),
            relation=claims.PAID,
            marks=("score", "said"),
            data={"full": question.full},
            minimise=0,
            part="V",
            severity="warning" if soft else "error",
            at_most="likely" if soft else "proven",
            tasks=list(dict.fromkeys(other_question.task for other_question, _ in found)),
            expected=f"{question.own[:200]!r} is right; anything else is paid less than {question.full:g}",
            observed=[each.text[:80] for _, each in found[:12]],
            teaches="an answer that is always paid",
        )


def _often(kind: str, found: Sequence[tuple[Question, Attempt]]) -> bool:
    """True if it is not an accident: a number of one question may be its answer in another spelling."""
    return kind != "copied" or len({question.task for question, _ in found}) >= 2


def _said(ctx: AuditContext, question: Question, tried: Sequence[Attempt]) -> list[float | None]:
    ways = [[question.saying(attempt.text)] for attempt in tried]
    return [run.score for run in runs_of(ctx, question.task, ways)]


@check("x.oracle_ablation", "reward_hack", needs=("oracle", "tasks"), value=68)
def oracle_ablation(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution with any one of its writes left out is paid less."""
    reported: set[str] = set()
    for solution in paid(ctx, SOLVED):
        if len(solution.writes) < 1:
            continue
        ways = [solution.without(place) for place in solution.writes]
        for place, run in zip(solution.writes, runs(ctx, solution, ways), strict=True):
            ctx.count_comparisons()
            op = solution.ops[place]
            if op.name in reported or not survives(solution, run):
                continue
            reported.add(op.name)
            yield _unchecked(ctx, solution, place, run=run)


def _unchecked(ctx: AuditContext, solution: Solution, place: int, *, run: Run) -> Finding | None:
    op = solution.ops[place]
    lacks = lacking(solution, run, solution.effects.get(place, ()))
    if solution.sees and not lacks:
        return None
    weighs: dict[str, Any] = weight(solution, lacks, (place,))
    is_work = writes_by_name(op) or (is_asked_by_name(op, solution.prompt) and _sets(solution, lacks))
    if not solution.sees or not is_work or _is_note(op):
        weighs = {"severity": "warning", "at_most": "likely"}
    return ctx.finding(
        f"{op.name} is part of the solution, and is paid for when it is left out",
        Probe((reset(solution.task), *solution.without(place), *seeing(solution), score())),
        relation=claims.PAID,
        marks=("score", "state") if solution.sees else ("score",),
        data={"full": solution.full, "lacks": lacks},
        part="V",
        **weighs,
        expected=f"less than {solution.full:g} without {op.name}({op.value})",
        observed={"score": run.score, "the world lacks": ["/".join(path) for path, _ in lacks[:6]]},
        teaches=f"to leave out {op.name}",
    )


def _sets(solution: Solution, lacks: Sequence[Sequence[Any]]) -> bool:
    """True if a field that had a text or a flag before is not set: neither a count, nor what a read remembers."""
    before = [solution.changed[tuple(path)][0] for path, _ in lacks]
    return any(isinstance(value, str | bool) and value != MISSING for value in before)


def _is_note(op: Op) -> bool:
    return bool({"note", "notes", "log", "comment", "remember", "memo"} & set(words(op.name)))


@check("x.task_swap", "reward_hack", needs=("oracle", "tasks"), value=53)
def task_swap(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the solution of one task does not solve another."""
    known = paid(ctx, ASKED)
    pairs = [
        (first, second) for first, second in zip(known, [*known[1:], *known[:1]], strict=True) if first is not second
    ]
    for first, second in pairs:
        own_values = {_plain(op) for place, op in enumerate(first.ops) if place in first.writes or op.do == "answer"}
        other_values = {_plain(op) for op in second.ops}
        if own_values <= other_values or first.first == second.first:
            continue
        ctx.count_comparisons()
        [run] = runs(ctx, first, [second.ops])
        if run.score is None or first.full is None or run.score < first.full - 1e-9 or (first.sees and not run.lacks):
            continue
        if not first.writes and not any(op.do == "answer" for op in first.ops):
            continue
        if not first.sees and not _differs(first, second):
            continue
        lacks = lacking(first, run, tuple(first.changed)) if first.sees else []
        yield ctx.finding(
            "the solution of another task is paid in full",
            Probe((reset(first.task), *second.ops, *seeing(first), score())),
            relation=claims.PAID,
            marks=("score", "state") if first.sees else ("score",),
            data={"full": first.full, "lacks": lacks},
            part="V",
            **({} if all(submits(first.ops[place]) for place in first.writes) else weight(first, lacks, first.writes)),
            expected=f"less than {first.full:g} for what {second.task} wants",
            observed=run.score,
            teaches="the same actions for every task",
        )
        return


def _plain(op: Op) -> str:
    return f"{op.do} {op.name} {op.value}"


def _differs(first: Solution, second: Solution) -> bool:
    """True if two solutions give different answers or write different things, free words aside."""
    own_values = {str(value) for op in first.ops if op.do == "call" for value in scalars(op.value)}
    other_values = {str(value) for op in second.ops if op.do == "call" for value in scalars(op.value)}
    return not own_values <= other_values


@check("x.forged_result", "reward_hack", needs=("oracle", "tasks", "tools"), value=67)
def forged_result(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that claims of success given to the tools, or one step repeated, are not paid."""
    for solution in paid(ctx, 4):
        full = solution.full
        assert full is not None
        ways = list(_forged(ctx, solution))
        if not ways:
            continue
        for way, run in zip(ways, runs(ctx, solution, ways), strict=True):
            ctx.count_comparisons()
            if not survives(solution, run):
                continue
            repeated, tool = len(way) > 1, next(op.name for op in way)
            left = [place for place in solution.writes if _plain(solution.ops[place]) not in {_plain(op) for op in way}]
            lacks = lacking(solution, run, tuple(solution.changed)) if solution.sees else []
            if weight(solution, lacks, left)["severity"] != "error":
                continue
            yield ctx.finding(
                "the prompt, repeated without any call, is paid in full" if not tool
                else "one step, done over and over, is paid as the whole solution" if repeated
                else f"{tool} gets a report of success, and that is paid in full",
                Probe((reset(solution.task), *way, *seeing(solution), score())),
                relation=claims.PAID,
                marks=("score", "state") if solution.sees else ("score",),
                data={"full": full, "lacks": lacks},
                part="V",
                at_most="proven" if solution.sees else "likely",
                expected=f"less than {full:g}",
                observed=run.score,
                teaches="to claim success without doing the work",
            )  # fmt: skip
            return


def _forged(ctx: AuditContext, solution: Solution) -> Iterator[tuple[Op, ...]]:
    """The prompt as an answer; a claim alone through each tool that takes one, or a grade; a step many times."""
    if "answer" in ctx.offers and solution.writes:
        yield (answer(solution.prompt),)
    for tool in ctx.about.tools:
        used = next((op for op in solution.ops if op.name == tool.name), None)
        base: dict[str, Any] = dict(used.value) if used else {}
        for key, schema in tool.properties.items():
            graded = {"score", "reward", "grade", "points", "passed", "success", "verdict", "correct", "result"}
            if not graded & set(words(key)):
                continue
            missing = [name for name in tool.required if name not in base and name != key]
            filled = base | dict.fromkeys(missing, "1")
            kinds = schema.get("type")
            values: list[Any] = (
                [1.0, 1, 100] if kinds in ("number", "integer") else [True] if kinds == "boolean" else []
            )
            values = values or list(schema.get("enum") or ("PASSED", "SKIPPED", "success", "1.0", "ok"))
            for value in values:
                if filled.get(key) != value:
                    yield (Op("call", name=tool.name, value=filled | {key: value}),)
    if len(solution.writes) > 1:
        for place in solution.writes[:4]:
            yield (solution.ops[place],) * max(4, len(solution.writes) + 1)
