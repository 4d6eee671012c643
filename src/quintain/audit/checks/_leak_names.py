"""Checks for answers under undeclared names: a row `_answer`, a method that is not a tool, a field `solution`.

No list of hidden values and no solution is needed. The value read there is submitted unchanged; where that is paid in
full in two tasks, and in neither for the other task's value, it was the answer.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list, is_number, parsed
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.answers import speaks_of_error
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, answer, call, number, reset, score
from quintain.audit.kernel.registry import relation

from ._leak_explore import read_text
from ._leak_places import TEACHES
from ._leak_reading import METHODS, base_of, unique
from ._leak_secrets import STRONG, folded, label, leaves, same_value, spelled

RELATION = f"{__name__}:paid_as_read"
NAMES = (
    "_answer", "answer", "_solution", "solution", "_gold", "gold", "_expected", "expected", "_truth", "_secret",
    "_hidden", "hidden", "_target", "_goal", "__answer__", "_tests", "tests", "_key", "answer_key",
)  # fmt: skip
"""Names under which a truth is kept."""
TRUTH = re.compile(r"^_+(?:answer|expected|correct|right|target|truth|goal|verdict)(?:_|$)")
"""Fields that were left in for those who build it; names such as _id are those of data."""
WRONG = "zzz-wrong"
CALLS = 120
"""Calls of one task with names that are not declared."""
READS = 24
SENDERS, VALUES = 5, 12
FULL = 1.0


@relation
def paid_as_read(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if two tasks each pay in full for the value at "read", and not for the other task's value."""
    own, other_records = records[:2], records[2:]
    for record in own:
        sent = next(op.value for op in record.ops if op.mark == "send")
        values = list(sent.values()) if is_dict(sent) else [sent]
        there = [leaf for _, leaf in leaves(parsed(record.at("read").value))]
        if record.at("read").is_error or not any(same_value(item, value) for item in there for value in values):
            return False
        paid = number(record.at("score"))
        if paid is None or abs(paid - FULL) > 1e-9:
            return False
    return all((number(record.at("score")) or 0.0) < FULL - 1e-9 for record in other_records)


class Read(msgspec.Struct, frozen=True):
    """A call, and what it answered: by which keys, and the value."""

    op: Op
    path: tuple[str, ...]
    value: Any

    @property
    def place(self) -> str:
        return f"{self.op.name} {self.op.value!r} {self.path}"


@check("x.no_answers_under_other_names", "leak", needs=("call", "tools", "tasks"), value=76)
def under_other_names(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no value under an undeclared or telling name is paid when submitted."""
    tasks = ctx.sample_tasks(3 if len(ctx.tasks) < 50 else 2)
    if len(tasks) < 2:
        raise ctx.not_checked("with one task only, an answer cannot be distinguished from a value that is always paid")
    known: dict[str, list[Read]] = {}
    for task in tasks:
        known[task] = list(_found(ctx, task))
        ctx.count_comparisons()
    looked = 0
    for left, right in itertools.combinations(tasks, 2):
        for first in known[left]:
            second = next((read for read in known[right] if read.place == first.place), None)
            if second is None or same_value(first.value, second.value):
                continue
            looked += 1
            for send in _senders(ctx, first) if looked <= VALUES else ():
                probes = _probes((left, first), (right, second), send)
                if paid_as_read(ctx.play_all(probes), Evidence("")):
                    yield _finding(ctx, first, probes, tasks=(left, right))
                    return


def _probes(own_values: tuple[str, Read], other_values: tuple[str, Read], send: Op) -> list[Probe]:
    """Each value in its own task, each in the other one, and nothing sent at all."""

    def sent(task: str, read: Read, value: Any) -> Probe:
        value = value if send.do != "call" else {**send.value, send.mark: value}
        value = value if send.do == "call" or isinstance(value, str) else str(value)
        op = msgspec.structs.replace(send, value=value, mark="send")
        return Probe((reset(task), read.op.marked("read"), op, score()))

    (left, first), (right, second) = own_values, other_values
    own = [sent(left, first, first.value), sent(right, second, second.value)]
    crossed = [sent(left, first, second.value), sent(right, second, first.value)]
    idle = [Probe((reset(task), score())) for task in (left, right)]
    return [*own, *crossed, *idle]


def _finding(ctx: AuditContext, read: Read, probes: Sequence[Probe], *, tasks: tuple[str, str]) -> Finding | None:
    asked = f"{read.op.name} {read.op.value!r}"
    return ctx.finding(
        f"{asked} answers what is paid in full when it is sent as it is, and no tool declares that it can be asked for"
        if not read.path or not _is_telling(read.path)
        else f"{read.op.name} shows the answer in its field {'.'.join(read.path)}",
        *probes,
        relation=RELATION,
        marks=("read", "score"),
        minimise=0,
        part="S",
        tasks=list(tasks),
        expected="an error, or nothing of what is to be found out",
        observed=[ctx.play_probe(probe).at("read").value for probe in probes[:2]],
        teaches=TEACHES,
    )


# --- looking ---


def _found(ctx: AuditContext, task: str) -> Iterator[Read]:
    """Scalars that a task answers to calls that are not declared, or in fields that only a truth has."""
    most = _room(ctx)
    prompt = read_text(ctx.play(reset(task, mark="prompt")).at("prompt")).lower()
    plain = unique([known.op for known in ctx.discovery.reads()])[: min(READS, most)]
    tried = [_wrong(ctx, tool, name) for tool, name in _places(ctx)]
    first = ctx.play(reset(task), *plain, *tried)
    texts = [read_text(seen) for seen in first.seen[1 + len(plain) :]]
    refused = {_key(op) for op, seen in zip(tried, first.seen[1 + len(plain) :], strict=False) if _is_error(seen)}
    words = dict.fromkeys(word for text in texts for word in re.findall(r"[\w-]*\w", text))
    words |= dict.fromkeys(re.findall(r"\b_\w+", "\n".join(read_text(seen) for seen in first.seen[: 1 + len(plain)])))
    other_ops: list[Op] = []
    for (tool, name), op in zip(_places(ctx), tried, strict=True):
        if _key(op) in refused:
            values = [value for value in _values(tool.properties[name], list(words)) if _is_new(value, prompt)]
            other_ops += [call(tool.name, {**op.value, name: value}) for value in values]
    other_ops += [call(name, {}) for name in METHODS if name not in {tool.name for tool in ctx.about.tools}]
    other_ops = unique(other_ops)[:most]
    second = ctx.play(reset(task), call(WRONG, {}), *other_ops)
    shown = list(_read(plain, first.seen[1:]))
    if _is_error(second.seen[1]):  # What stands under declared names, too, is data, however it was looked up.
        data = {folded(spelled(read.value)) for read in shown}
        yield from (read for read in _read(other_ops, second.seen[2:]) if folded(spelled(read.value)) not in data)
    yield from (read for read in shown if _is_telling(read.path) and _is_new(read.path[-1], prompt))


def _read(ops: Sequence[Op], seen: Sequence[OpResult]) -> Iterator[Read]:
    for op, result in zip(ops, seen, strict=False):
        if not _is_error(result):
            yield from (Read(op, path, value) for path, value in leaves(parsed(result.value)) if _is_sendable(value))


def _is_telling(path: Sequence[str]) -> bool:
    """True if the last key labels its value as the truth."""
    return bool(path) and (label(path[-1]) == "strong" or bool(TRUTH.search(path[-1])))


def _is_sendable(value: Any) -> bool:
    return is_number(value) or (isinstance(value, str) and 0 < len(value.strip()) <= 400)


def _is_error(seen: OpResult) -> bool:
    return bool(seen.how or seen.is_error or speaks_of_error(seen.value))


def _is_new(value: Any, prompt: str) -> bool:
    """True if the prompt does not mention this name."""
    return not isinstance(value, str) or value.strip("_").lower() not in prompt


def _room(ctx: AuditContext) -> int:
    """Calls that one episode bears, and that are worth their cost."""
    budget = ctx.attribute("budget")
    return min(CALLS // 3, max(4, budget - 3)) if isinstance(budget, int) else CALLS


def _places(ctx: AuditContext) -> list[tuple[ToolSpec, str]]:
    """Parameters of readers that choose among rows: texts, and numbers that have bounds."""
    writers = set(ctx.discovery.writers)
    return [
        (tool, name)
        for tool in ctx.about.tools[:20]
        if tool.name not in writers
        for name, schema in list(tool.properties.items())[:3]
        if is_dict(schema) and (_is_text(schema) or is_number(schema.get("minimum")) or "enum" in schema)
    ]


def _is_text(schema: dict[str, Any]) -> bool:
    return bool(schema.get("type", "string") == "string")


def _wrong(ctx: AuditContext, tool: ToolSpec, name: str) -> Op:
    value: Any = WRONG if _is_text(tool.properties[name]) else 10**9 + 7
    return call(tool.name, {**base_of(ctx, tool), name: value})


def _key(op: Op) -> str:
    return f"{op.name} {op.value!r}"


def _values(schema: dict[str, Any], words: Sequence[str]) -> Iterator[Any]:
    """Yields argument values that the schema of a parameter does not declare."""
    choices = schema.get("enum")
    if _is_text(schema):
        if is_list(choices):  # Its choices are all there is: any other one that is answered breaks the declaration.
            known = folded(" ".join(map(str, choices)))
            yield from itertools.islice((text for text in (*words, *NAMES) if text.casefold() not in known), 60)
        else:
            yield from dict.fromkeys(
                (*NAMES, *[word for word in words if re.match(r"_\w", word) or STRONG.search(word)])
            )
        return
    low, high = schema.get("minimum"), schema.get("maximum")
    yield from (low - 1, -1) if is_number(low) and low > -1 else ()
    yield from (high + 1,) if is_number(high) else ()


def _senders(ctx: AuditContext, read: Read) -> list[Op]:
    """Ways to send a value: calls in whose marked argument it goes, and the answer itself."""
    found = [answer("")] if "answer" in ctx.offers else []
    kinds = ("integer", "number") if is_number(read.value) else ("string",)
    for tool in ctx.about.tools:
        if tool.name == read.op.name or not 1 <= len(tool.required) <= 2:
            continue
        for name in tool.required:
            schema = tool.properties.get(name)
            if is_dict(schema) and schema.get("type", "string") in (*kinds, "string") and "enum" not in schema:
                found.append(call(tool.name, base_of(ctx, tool), mark=name))
    writers = set(ctx.discovery.writers)
    return sorted(found, key=lambda op: op.do == "call" and op.name not in writers)[:SENDERS]
