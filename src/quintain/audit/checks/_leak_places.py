"""Places where a task's secret was seen: found with the same calls in two tasks, separated from data, and reported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from quintain.audit.facts.data import leaves
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, number, reset, score
from quintain.audit.kernel.registry import relation

from . import _leak_secrets as secrets
from ._leak_reading import METHODS, prompt_ops

TEACHES = "to look up the stored answer instead of solving the task"
ENCODED = frozenset((*secrets.encodings("Encoded 1"), "quoting"))
HOW = {
    "strong": "in a field that only a truth has", "weak": "in a field that names it as the answer",
    "inner": "in a field that was left in for those who build it",
    "stated": "after words that say that it is the answer", "said": "after words that say that it is right",
    "marked": "by a mark on the right choice", "object": "as the whole object", "long": "as it is",
    "random": "as it is",
}  # fmt: skip


Sure = Literal["hint", "likely", "proven"]


class Place(NamedTuple):
    """A place where a secret was seen: the op that shows it, and those before it.

    Attributes:
        other_task: Task in which the same ops do not show it; empty without such a task.
    """

    task: str
    other_task: str
    op: Op
    before: tuple[Op, ...]
    leak: secrets.Leak
    seen: OpResult

    @property
    def is_first(self) -> bool:
        """True if the place comes before any action of the agent."""
        return self.op.do != "call"


# --- relations: each states the bug ---


@relation
def shows_hidden(records: Sequence[Record], evidence: Evidence) -> bool:
    """The task shows at "read" what it hides; the same calls in another task (second probe) do not."""
    want: dict[str, Any] = evidence.data
    read, hidden = records[0].at("read"), records[0].at("hidden")
    known = secrets.sought(hidden.value)
    if not hidden.fine or not secrets.shows_it(said(read), known, want):
        return False
    return all(not secrets.shows_it(said(other_record.at("read")), known, want) for other_record in records[1:])


@relation
def shows_and_pays(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the secret is shown and an agent that has read it can still be paid."""
    paid = number(records[0].at("score"))
    return shows_hidden(records, evidence) and paid is not None and paid >= float(evidence.data["paid"]) - 1e-9


def said(seen: OpResult) -> Any:
    """Returns what the agent read: an observation, or the text of an error."""
    return seen.raised if seen.how else seen.value


def want(leak: secrets.Leak) -> dict[str, Any]:
    """Returns the search key for `shows_it`."""
    return {"how": leak.how, "under": leak.under, "needle": leak.needle}


# --- looking ---


def hidden_of(ctx: AuditContext, tasks: Sequence[str]) -> dict[str, Any]:
    """Returns the hidden data of each task."""
    records = ctx.play_all([Probe((Op("hidden", name=task, mark="hidden"),)) for task in tasks])
    seen = {task: record.at("hidden") for task, record in zip(tasks, records, strict=True)}
    return {task: result.value for task, result in seen.items() if result.fine and result.value is not None}


def places(ctx: AuditContext, hidden: dict[str, Any], ops: dict[str, list[Op]]) -> Iterator[Place]:
    """Play each task's ops in it and in another task, and say what only it shows of what it hides."""
    names = list(hidden)
    pairs: list[tuple[str, str]] = []
    for place, task in enumerate(names):
        others = (name for name in (*names[place + 1 :], *names[:place]) if hidden[name] != hidden[task])
        pairs.append((task, next(others, "")))
    probes = [Probe((*prompt_ops(ctx, where or task), *ops[task])) for task, other in pairs for where in (task, other)]
    records = ctx.play_all(probes)
    for pair, own, beside in zip(pairs, records[::2], records[1::2], strict=True):
        yield from _of_task(ctx, pair, secrets.sought(hidden[pair[0]]), own=own, beside=beside if pair[1] else None)


CALLED = frozenset(("strong", "stated", "said", "marked", *ENCODED))
"""Ways that show a truth even where the agent's own doing has brought the value about."""


_CODING = re.compile(r"revers|backward|decod|encod|decipher|decrypt|rot ?13|base ?64|hexadecimal", re.IGNORECASE)
"""Words of a prompt that gives an encoded form of its answer as the work to do."""


def _of_task(
    ctx: AuditContext, pair: tuple[str, str], hidden: secrets.SecretIndex, *, own: Record, beside: Record | None
) -> Iterator[Place]:
    spoken, has_written = "", False
    for at, (op, seen) in enumerate(zip(own.ops, own.seen, strict=False)):
        spoken += secrets.folded(secrets.text_of(op.value)) if op.value is not None else ""
        there = beside.seen[at] if beside is not None and at < len(beside.seen) else None
        if op.do == "call" and op.name in METHODS:
            there = None
        has_written = has_written or (op.do == "call" and op.name in ctx.discovery.writers and not seen.is_error)
        ctx.count_comparisons()
        for leak in secrets.shown(said(seen), hidden) if there is None or said(there) != said(seen) else ():
            needle = secrets.folded(secrets.text_of(leak.needle))
            is_own = (len(needle) > 2 and needle in spoken) or (has_written and leak.how not in CALLED)
            is_work = op.do != "call" and leak.how in ENCODED and _CODING.search(said(seen))
            if not is_own and not is_work and (there is None or not secrets.shows_it(said(there), hidden, want(leak))):
                other_task = "" if there is None else pair[1]
                yield Place(pair[0], other_task, op.marked(""), own.ops[1:at], leak, seen)


# --- sorting ---


def _confidence(ctx: AuditContext, place: Place) -> Sure | None:
    """Returns the confidence that a place is a leak, or None for data and working material."""
    leak = place.leak
    if place.is_first:
        return _first(place)
    if leak.how in ("strong", "marked"):
        return "proven"
    needle = secrets.folded(secrets.text_of(leak.needle))
    if leak.how not in ("stated", "object") and len(needle) > 3 and needle in _prompt(ctx, place.task):
        return None
    if place.op.name in METHODS:
        return "proven" if leak.how in ("object", "long", "random", "stated") else "likely"
    return _against_world(ctx, place)


def _against_world(ctx: AuditContext, place: Place) -> Sure | None:
    leak = place.leak
    world = ctx.once(("leak world", place.task), lambda own: _world(own, place.task))
    if world is None:  # The world is invisible: only a value that no world holds is a proof.
        sure: dict[str, Sure | None] = {"stated": "proven", "random": None, "object": None}
        return sure.get(leak.how, "likely")
    if _stands_in_world(leak, world[0]):
        # The world has no such data as a whole grading code.
        is_test = leak.how == "long" and CODE.search(str(leak.needle)) and any(map(TEST.search, leak.path))
        return "proven" if is_test else "likely" if leak.how == "stated" else None
    return "proven" if place.other_task or leak.how in ("stated", "long", *ENCODED) else "likely"


def _prompt(ctx: AuditContext, task: str) -> str:
    def read(own: AuditContext) -> str:
        record = own.play(*prompt_ops(own, task))
        marks = ("reset", "prompt") if "prompt" in own.offers else ("reset",)
        return " ".join(secrets.folded(secrets.text_of(said(record.at(mark)))) for mark in marks)

    return ctx.once(("leak prompt", task), read)


def _world(ctx: AuditContext, task: str) -> list[Any] | None:
    """The state at the start of a task, in a list; None if it is invisible."""
    seen = ctx.play(reset(task), Op("state", mark="state")).at("state") if "state" in ctx.offers else None
    return [seen.value] if seen is not None and seen.fine else None


def _stands_in_world(leak: secrets.Leak, world: Any) -> bool:
    """True if the shown value stands in the world as data, such as in a column."""
    if leak.how == "object":
        rows = [(*path, *row.values()) for path, row in secrets.objects(world)]  # The key of a row names it.
        return any(
            all(any(secrets.same_value(one, item) for one in row) for item in leak.needle.values()) for row in rows
        )
    if leak.how in ("stated", "said"):
        return any(item.how == leak.how for item in secrets.shown(world, secrets.sought({"value": leak.needle})))
    if leak.how in ("weak", "inner"):
        key = leak.under.rpartition(".")[2]
        column = [leaf for path, leaf in leaves(world) if path and path[-1] == key and leaf is not None]
        return len(column) >= 3 and any(secrets.same_value(item, leak.needle) for item in column)
    return secrets.folded(str(leak.needle)) in secrets.folded(secrets.text_of(world))


PASSAGES = 4
"""Other lines of a prompt that give it the form of a text in which a passage is looked for."""
TEST = re.compile(r"(?i)(?:^|_)(?:tests?|checks?|asserts?|assertions?|graders?|verifier)(?:_|$)")
"""Keys that hold the code that grades an episode."""
CODE = re.compile(r"\bassert\b|\bdef \w+\(|==|!=|\breturn\b|\bself\.|\bexpect\(|\bit\(|#!/|\bexit \d")


_QUESTION = re.compile(r"(?i)(?:^|_)(?:query|q|search|question|prompt|keywords?|terms?)$")
"""Keys of what is looked for or asked, such as an argument of a solution's search, or the messages of a data set."""


def _first(place: Place) -> Sure | None:
    """Returns the confidence for a leak in the first observation, which may name parts of the truth."""
    leak = place.leak
    is_telling = any(secrets.label(key) == "strong" or key in ("tests", "answer") for key in leak.path)
    if leak.how in ("strong", "marked", "stated"):  # "Keep 4711 as the answer" tells what to do.
        return "likely" if leak.how == "stated" and leak.path[:1] == ("solution",) else "proven"
    if leak.how == "weak":
        return "proven" if leak.under.rpartition(".")[2].lower() in ("answer", "expected", "correct") else None
    if leak.how in ("object", "long"):
        # Names that the task asks for stand in quotation marks.
        quoted = rf"""['"“«„]{re.escape(str(leak.needle))}['"”»“]"""
        is_quoted = len(leak.path) > 1 and re.search(quoted, secrets.text_of(said(place.seen)), re.IGNORECASE)
        is_data = is_quoted or any(map(_QUESTION.search, leak.path)) or _is_passage(place)
        return "proven" if is_telling and not is_data else None
    return "likely" if leak.how in ENCODED or leak.how == "inner" else None


def _is_passage(place: Place) -> bool:
    """True if a part of the truth is one line of many in a prompt, like a passage."""
    lines = [line for line in secrets.text_of(said(place.seen)).splitlines() if str(place.leak.needle) in line]
    others = len(secrets.text_of(said(place.seen)).splitlines()) - len(lines)
    return len(place.leak.path) > 1 and len(lines) == 1 and others >= PASSAGES


# --- telling ---


def report(ctx: AuditContext, found: Iterator[Place], *, calls_only: bool = False) -> Iterator[Finding | None]:
    """One finding for each tool, way and field."""
    by_key: dict[tuple[str, str, str], list[Place]] = {}
    for place in found:
        if not (calls_only and place.is_first):
            how = "encoded" if place.leak.how in ENCODED else place.leak.how
            by_key.setdefault(
                (place.op.name if place.op.do == "call" else place.op.do, how, place.leak.under), []
            ).append(place)
    seen: set[tuple[str, str]] = set()
    for (name, *_), some in list(by_key.items())[:40]:
        key = (name, str(some[0].leak.path))
        sure = _confidence(ctx, some[0]) if key not in seen and len(seen) < 8 else None
        if sure is not None:
            finding = _finding(ctx, some[0], tasks=list(dict.fromkeys(place.task for place in some)), sure=sure)
            seen |= {key} if finding is not None else set()
            yield finding


def _finding(ctx: AuditContext, place: Place, *, tasks: Sequence[str], sure: Sure) -> Finding | None:
    op, leak = place.op, place.leak
    probe, beside = _probe(ctx, place, place.task), [_probe(ctx, place, place.other_task)] if place.other_task else []
    relation, data = f"{__name__}:shows_hidden", want(leak)
    solved = ctx.solution_score(place.task)
    if op.do == "call" and op.name in ctx.discovery.writers and solved:
        relation, data = f"{__name__}:shows_and_pays", {**data, "paid": solved}
        probe = Probe((*probe.ops, *(ctx.oracle(place.task) or ()), score()))
        if not ctx.holds([probe, *beside], Evidence(relation, ("hidden", "read", "score"), data)):
            return None  # It is shown only after the episode can no longer be won.
    what = {"reset": "reset", "prompt": "the prompt", "tools": "the tools' declaration"}.get(op.do, op.name)
    how = f"in {leak.how}" if leak.how in ENCODED else HOW[leak.how]
    return ctx.finding(
        f"{what} shows the hidden {'.'.join(leak.path) or 'answer'} {how}{f': {leak.under}' if leak.under else ''}",
        probe, *beside, relation=relation, marks=("hidden", "read"), data=data,
        part="S" if op.do == "call" else "T" if op.do == "reset" else "H", tasks=tasks,
        expected="nothing of what the task hides", observed=secrets.text_of(said(place.seen))[:600], teaches=TEACHES,
        at_most=sure, severity="error" if sure == "proven" else "warning",
    )  # fmt: skip


def _probe(ctx: AuditContext, place: Place, task: str) -> Probe:
    """The shortest play that shows it: the op alone after a reset, where that is enough.

    In both tasks the secret is that of the first.
    """
    hidden, op = Op("hidden", name=place.task, mark="hidden"), place.op.marked("read")
    if op.do == "reset":
        return Probe((hidden, reset(task, mark="read")))
    evidence = Evidence(f"{__name__}:shows_hidden", ("hidden", "read"), want(place.leak))
    is_enough = ctx.holds([Probe((hidden, reset(place.task), op))], evidence)
    before = () if is_enough else (step.marked("") for step in place.before if step.do == "call")
    op = msgspec.structs.replace(op, name=task) if op.do == "prompt" else op
    return Probe((hidden, reset(task), *before, op))
