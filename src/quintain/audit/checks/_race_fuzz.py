"""Checks every tool and the scorer with odd input.

An agent may send anything, so a wrong call must get an error that the agent can read. Any other outcome is a fault of
the environment: it crashes, hangs, or does not recover.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.generate import ODD, fits, odd, valid
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding, Severity
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, answer, call, reset, score
from quintain.audit.kernel.registry import relation
from quintain.audit.kernel.relations import breakage, way_of

HERE = f"{__name__}:"
TEACHES = "nothing: the episode is lost, and every group in which a model tries this"
CALLS, PART = 1200, 20
"""Odd calls in all, and in one episode."""
SIGNS = (
    "(", "[", "*", "\\", "'", '"', "%", "{", "\u00b2", "\u00bd", "-", ".", ":", ",", "1:",
    "\u0130", "\t", "+5", "1e400", "0x1F",
)  # fmt: skip
"""Texts that mean something to a pattern, a query, a format, a number or a time."""
LONG_S = 15.0
"""Seconds in which an episode of odd calls must end."""
MAX_FINDINGS = 6


class OddCalls(msgspec.Struct, frozen=True):
    """A tool, and strange calls near one that works.

    Attributes:
        known: Where the tool is known to work; None where no call of it is.
    """

    tool: ToolSpec
    known: KnownCall | None
    task: str
    calls: tuple[Op, ...]

    @property
    def head(self) -> tuple[Op, ...]:
        return (reset(self.task), *(self.known.before if self.known else ()))


def odds(ctx: AuditContext, tools: Sequence[ToolSpec], most: int) -> Iterator[OddCalls]:
    """So many strange calls of each tool."""
    for tool in tools:
        known = min(ctx.discovery.of(tool.name), key=lambda known_call: len(known_call.before), default=None)
        base: dict[str, Any] = known.op.value if known else valid(tool, ctx.discovery.values, ctx.rng)
        every = list(odd(tool, base, ctx.discovery.values, rng=ctx.rng))
        drawn = [valid(tool, ctx.discovery.values, ctx.rng, optional=0.6) for _ in range(3)]
        first = list(_first(tool, base))[: max(most, 6)]
        picked = [*every[-2:], *first, *ctx.rng.sample(every, min(max(6, most // 3), len(every))), *drawn]
        yield OddCalls(
            tool, known, known.task if known else ctx.tasks[0], tuple(call(tool.name, item) for item in picked)
        )


def _first(tool: ToolSpec, base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the calls that are always tried: None and each other type, then special characters in each text."""
    values: tuple[Any, ...] = (None, [], {}, "", 0, True, 1.5, "1")
    for value in values:
        yield from ({**base, name: value} for name in tool.properties)
    texts = [name for name, schema in tool.properties.items() if is_dict(schema) and schema.get("type") == "string"]
    for sign in SIGNS:
        yield from ({**base, name: sign} for name in texts if not tool.properties[name].get("enum"))


def is_plain(value: Any) -> bool:
    """True if an agent may send the value: no number beyond 2^53, no NaN, no NUL, no text of thousands of letters."""
    if is_dict(value):
        return all(is_plain(item) for item in value.values())
    if is_list(value):
        return all(map(is_plain, value))
    if isinstance(value, float):
        return math.isfinite(value) and abs(value) < 2**53
    if isinstance(value, int):
        return abs(value) < 2**53
    return not isinstance(value, str) or (len(value) < 2000 and "\x00" not in value)


def is_right(tool: ToolSpec, arguments: Any) -> bool:
    """True if the schema allows a call."""
    known = all(name in tool.properties for name in arguments) or not tool.parameters
    return bool(tool.parameters) and known and fits(arguments, tool.parameters, tool.parameters)


# --- relations ---


@relation
def breaks_there(records: Sequence[Record], evidence: Evidence) -> bool:
    """The op at the first mark hangs, crashes at a line, or gives odd data, as `data` says.

    Where a tool is given, on a call that its schema allows; where "other" is marked, another wrong call is refused.
    """
    mark, data = evidence.marks[0], evidence.data
    seen = records[0].at(mark)
    if data["how"] == "hung":
        return seen.how == "hung"
    if "other" in evidence.marks and not _is_refused(records[0].at("other")):
        return False
    if not data["how"]:
        return unplain(seen)
    op = next(op for op in records[0].ops if op.mark == mark)
    tool = msgspec.convert(data["tool"], ToolSpec) if data.get("tool") else None
    right = tool is None or (is_right(tool, op.value) and is_plain(op.value))
    return breakage(seen) == data["how"] and seen.where == data["where"] and right


def _is_refused(seen: OpResult) -> bool:
    return seen.how in ("", "refused") and seen.is_error


def unplain(seen: OpResult) -> bool:
    return seen.odd or (is_dict(seen.value) and "<longer than can be kept>" in seen.value)


_FRAME = re.compile(r'File \\?"([^"\\]+)\\?", line \d+')


@relation
def shows_traceback(records: Sequence[Record], evidence: Evidence) -> bool:
    """The answer to the call shows a traceback that ends in the file of the environment in `data`."""
    return traced(records[0].at("call")) == str(evidence.data)


def traced(seen: OpResult) -> str:
    """Returns the last file of the traceback that an answer shows; empty without one."""
    text = str(seen.value) if seen.how == "" else seen.raised
    files = _FRAME.findall(text.partition("Traceback (most recent call last)")[2])
    return files[-1] if files else ""


# --- crashes ---


@check("x.odd_calls", "races", needs=("tools", "call", "tasks"), value=53)
def odd_calls(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each tool survives missing, extra, empty, huge, foreign and hostile arguments."""
    tools = ctx.about.tools[:: -(-len(ctx.about.tools) // 120)]
    there = list(odds(ctx, tools, max(6, CALLS // len(tools))))
    cases = [
        (odd_call, odd_call.calls[start : start + PART])
        for odd_call in there
        for start in range(0, len(odd_call.calls), PART)
    ]
    cases.append((OddCalls(ToolSpec(""), None, ctx.tasks[0], ()), (call("no_such_tool", {}), call("", {}))))
    reported: dict[tuple[str, bool], None] = {}
    records = ctx.play_all([Probe((*odd_call.head, *calls, score())) for odd_call, calls in cases], LONG_S)
    refused = list(_refused(cases, records))
    yield _traceback(ctx, cases, records)
    for (odd_call, calls), record in zip(cases, records, strict=True):
        start = len(odd_call.head)
        ctx.count_comparisons(len(calls))
        for place, op in enumerate((*calls, score())):
            is_there = start + place < len(record.seen)
            seen = record.seen[start + place] if is_there else OpResult(how="hung", raised=record.died)
            if seen.how not in ("crashed", "hung") and not unplain(seen):
                continue
            right = op.do == "score" or (is_right(odd_call.tool, op.value) and is_plain(op.value))
            key = (f"{seen.how} {seen.where or op.name}", right)
            if key not in reported and len(reported) < MAX_FINDINGS:
                reported[key] = None
                other_value = None if right or seen.how != "crashed" else _control(odd_call, op, refused)
                ops = (*odd_call.head, *calls[:place], op.marked("call"))
                found = None
                if op.do == "score":  # Calls that no agent would send, or that break themselves, may excuse it.
                    answers = zip(calls, record.seen[start:], strict=False)
                    sane = [item for item, said in answers if is_plain(item.value) and said.how != "crashed"]
                    found = _broken(ctx, odd_call, (*odd_call.head, *sane, ops[-1]), seen=seen, right=True)
                yield found or _broken(
                    ctx, odd_call, ops, seen=seen, right=right and op.do != "score", control=other_value
                )
            if seen.how == "hung":
                break


def _traceback(
    ctx: AuditContext, cases: Sequence[tuple[OddCalls, Sequence[Op]]], records: Sequence[Record]
) -> Finding | None:
    """Returns a finding for an answer with a traceback of the environment; one of the agent's code ends elsewhere."""
    own = {source.path for source in ctx.sources}
    for (odd_call, calls), record in zip(cases, records, strict=True):
        for place, seen in enumerate(record.seen[len(odd_call.head) :][: len(calls)]):
            op = calls[place]
            if traced(seen) in own and is_right(odd_call.tool, op.value) and is_plain(op.value):
                return ctx.finding(
                    f"{op.name} answers with a traceback of the environment, on a call that its schema allows",
                    Probe((*odd_call.head, op.marked("call"))), relation=f"{HERE}shows_traceback", marks=("call",),
                    data=traced(seen), minimise=0, expected="an error that says what is wrong with the call",
                    observed=seen.value or seen.raised, where=traced(seen), teaches="files and code of the environment",
                )  # fmt: skip
    return None


def _refused(
    cases: Sequence[tuple[OddCalls, Sequence[Op]]], records: Sequence[Record]
) -> Iterator[tuple[OddCalls, Op]]:
    """Wrong calls of real tools that were answered with an error."""
    for (odd_call, calls), record in zip(cases, records, strict=True):
        seen = record.seen[len(odd_call.head) :]
        for op, answered in zip(calls, seen, strict=False):
            if _is_refused(answered) and odd_call.tool.name and not is_right(odd_call.tool, op.value):
                yield odd_call, op


def _control(odd_call: OddCalls, op: Op, refused: Sequence[tuple[OddCalls, Op]]) -> tuple[OddCalls, Op] | None:
    """A wrong call as plain as this one that is refused, of the same tool where there is one; None when none is."""
    strange = _strange(odd_call, op)
    like = [
        (other_odd_call, control)
        for other_odd_call, control in refused
        if control.value != op.value
        and ((is_plain(control.value) and is_plain(op.value)) or strange & _strange(other_odd_call, control))
    ]
    like.sort(key=lambda row: (row[0].tool.name != op.name, not strange & _strange(*row)))
    return like[0] if like else None


def _strange(odd_call: OddCalls, op: Op) -> set[str]:
    """Returns the arguments that differ from the good call, as text, and "missing" for a missing one."""
    good: dict[str, Any] = odd_call.known.op.value if odd_call.known else {}
    differing = {repr(value) for name, value in op.value.items() if name not in good or good[name] != value}
    return differing | ({"missing"} if any(name not in op.value for name in odd_call.tool.required) else set())


def _broken(
    ctx: AuditContext, odd_call: OddCalls, ops: Sequence[Op], *, seen: OpResult, right: bool,
    control: tuple[OddCalls, Op] | None = None,
) -> Finding | None:  # fmt: skip
    op, how = ops[-1], breakage(seen)
    name = f"{op.name}()" if op.do == "call" else "score(), after a call that was answered,"
    ways = way_of(seen) if how else "answers with a value that is not plain data"
    input_ = "" if op.do == "score" else ", on a call that its schema allows" if right else ", on a wrong call"
    severity: Severity = "error" if how == "hung" or (how and (right or control)) else "warning"
    where = seen.where
    marks: tuple[str, ...] = ("call",)
    if control is not None:
        marks = ("call", "other")
        ops = (*ops, *(before.moved("b") for before in control[0].head), control[1].moved("b").marked("other"))
        input_ = ", on a wrong call, where others are refused"
    tool = msgspec.to_builtins(odd_call.tool) if right and op.do == "call" and how != "hung" else None
    return ctx.finding(
        f"{name} {ways}{input_}" + (f" ({re.split('[:;]', seen.raised)[0]})" if seen.raised else ""), Probe(tuple(ops)),
        relation=f"{HERE}breaks_there", marks=marks, data={"how": how, "where": where, "tool": tool},
        minimise=0 if how == "hung" else 30, part="V" if op.do == "score" else "S", severity=severity,
        expected="a verdict" if op.do == "score" else "an answer, or an error that the agent can read",
        observed=seen.raised or seen.value or "it was killed when its time was over", where=where, teaches=TEACHES,
    )  # fmt: skip


@check("x.odd_answers", "races", needs=("answer", "tasks"), value=11)
def odd_answers(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that any last answer of the agent gets a verdict."""
    texts = [item for item in ODD if isinstance(item, str)]
    texts += ["x " * 100_000, "9" * 5000, "((((" * 500, "[" * 2000, '{"a": ' * 500, "\\boxed{", "```", "1/0", "%", "\\"]
    reported: set[str] = set()
    for task in ctx.sample_tasks(3):
        ways = [(reset(task), answer(text, mark="answer"), score()) for text in texts]
        records = ctx.play_all([Probe(ops) for ops in ways], LONG_S)
        for ops, record in zip(ways, records, strict=True):
            ctx.count_comparisons()
            for mark in ("answer", "score"):
                seen = record.at(mark)
                how, key = breakage(seen), f"{seen.how} {seen.where}"
                if not how or key in reported or len(reported) >= MAX_FINDINGS:
                    continue
                reported.add(key)
                words = way_of(seen)
                yield ctx.finding(
                    f"{mark}() {words} on odd last words" + (f" ({seen.raised.partition(':')[0]})" if how else ""),
                    Probe(ops), relation=f"{HERE}breaks_there", marks=(mark, "answer"),
                    data={"how": how, "where": seen.where}, minimise=0, part="V", expected="a verdict",
                    observed=seen.raised or "it was killed when its time was over", where=seen.where, teaches=TEACHES,
                )  # fmt: skip
                break
