"""Class 8, action-space drift: checks declarations against prompts, code, behavior and production.

Four ways to say what an agent can do, which must agree: a model that learns a tool that production does not have, or a
parameter that means something else there, has learned to fail. Everything here is played: a declaration is held against
what the tool answers, production's declarations and answers against the environment's.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.generate import fits, valid
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from ._drift_production import behaviour, counted, production, units
from ._drift_rows import contracts_hold, filters, ordered_lists
from ._drift_settings import set_is_shown, sums
from ._drift_told import defaults, done_as_told
from ._drift_words import (
    INVALID,
    MISSING,
    SAYS,
    UNKNOWN,
    callables_in,
    order_fields,
    order_of,
    promised_order,
    promises_at_most,
    rows_of,
    text_of,
    tools_called,
    tools_near,
    tools_quoted,
)
from ._reward_acts import reads_by_name

__all__ = [
    "behaviour", "contracts_hold", "counted", "defaults", "done_as_told", "filters", "ordered_lists", "production",
    "set_is_shown", "sums", "units",
]  # fmt: skip

MISSING_TOOL = "no_such_tool_at_all"
VERBS = (
    "delete", "remove", "purge", "drop", "cancel", "reset", "clear", "wipe", "create", "add", "insert", "update",
    "set", "edit", "change", "modify", "list", "get", "find", "search", "read", "write", "dump", "export", "import",
    "approve", "close", "restore",
)  # fmt: skip
ADMIN = (
    "admin", "debug", "debug_state", "exec", "execute", "eval", "run", "run_sql", "sql", "query", "raw_query", "shell",
    "bash", "python", "sudo", "login_as", "impersonate", "set_state", "get_state", "dump_state", "load_state", "undo",
    "finish", "complete_task", "mark_done", "submit_solution", "set_reward", "set_score", "get_score", "list_tools",
    "ping", "echo", "noop", "test", "help",
)  # fmt: skip
GUESSES = 160
"""Number of guessed names tried in addition to those in the code."""
MAX_FINDINGS = 4


@relation
def answers(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if an unlisted name is handled like a tool while two names that do not exist are refused."""
    record, name = records[0], evidence.data
    seen, *other_results = (record.at(mark) for mark in ("call", "missing", "near"))
    if seen.how == "crashed" or UNKNOWN.search(text_of(seen)) or not all(result.is_error for result in other_results):
        return False
    shape = _shape(seen, name)
    if any(shape in (_shape(result, MISSING_TOOL), _shape(result, _near(name))) for result in other_results):
        return False
    return not seen.is_error or MISSING.search(text_of(seen)) is not None


def _shape(seen: OpResult, name: str) -> str:
    return text_of(seen).replace(name, "?")


def _near(name: str) -> str:
    """Returns a nonexistent name so similar that suggestions in an error message stay the same."""
    return f"{name}q"


def hidden_tools(ctx: AuditContext, task: str) -> Iterator[Finding | None]:
    """Yields findings for callable tools that are not advertised."""
    advertised = {tool.name for tool in ctx.about.tools}
    ops = [op for name in _names(ctx, advertised) for op in _calls(ctx, name)]
    reported: dict[str, None] = {}
    for op, seen in _screened(ctx, task, ops):
        if op.name in reported or len(reported) >= MAX_FINDINGS:
            continue
        probe = _probe(task, op)
        if not answers([ctx.play_probe(probe)], Evidence("", data=op.name)):
            continue
        reported[op.name] = None
        yield ctx.finding(
            f"{op.name} can be called, but is not advertised",
            probe,
            relation=f"{__name__}:answers",
            marks=("call", "missing", "near"),
            data=op.name,
            part="H",
            expected="unknown tool",
            observed=seen.value,
            teaches="a tool that production lacks",
        )


def _probe(task: str, op: Op) -> Probe:
    missing, near = call(MISSING_TOOL, op.value, mark="missing"), call(_near(op.name), op.value, mark="near")
    return Probe((reset(task), missing, near, op.marked("call")))


def _names(ctx: AuditContext, advertised: set[str]) -> list[str]:
    """Names in the code first; then other verbs for the things that tools are about, and what is left from building."""
    things = dict.fromkeys(name.partition("_")[2] for name in sorted(advertised) if "_" in name)
    near = (f"{verb}_{thing}" for thing, verb in itertools.product([thing for thing in things if thing], VERBS))
    guessed = [name for name in itertools.chain(ADMIN, near) if name not in advertised]
    return list(dict.fromkeys([*sorted(callables_in(ctx.sources, advertised)), *guessed[:GUESSES]]))


def _calls(ctx: AuditContext, name: str) -> Iterator[Op]:
    """With no arguments, and with those of a tool that is about the same thing."""
    yield call(name, {})
    thing = name.partition("_")[2]
    for tool in ctx.about.tools:
        known = ctx.discovery.of(tool.name)
        if thing and known and thing in (tool.name.partition("_")[2], f"{tool.name.partition('_')[2]}s"):
            yield call(name, known[0].op.value)
            return


def _screened(ctx: AuditContext, task: str, ops: Sequence[Op]) -> Iterator[tuple[Op, OpResult]]:
    """Calls that were answered otherwise than one of a tool that is none; an episode has as many as it may."""
    budget = ctx.attribute("budget")
    size = max(4, budget - 3) if isinstance(budget, int) else 200
    ops = ops[: 6 * size]
    parts = [ops[start : start + size] for start in range(0, len(ops), size)]
    probes = [Probe((reset(task), call(MISSING_TOOL, {}, mark="missing"), *part)) for part in parts]
    again: list[Op] = []
    for part, record in zip(parts, ctx.play_all(probes), strict=True):
        missing = record.at("missing")
        for op, seen in zip(part, record.seen[2:], strict=False):
            ctx.count_comparisons()
            if seen.how == "crashed":
                again += _completed(ctx, op, seen)
            elif _shape(seen, op.name) != _shape(missing, MISSING_TOOL) and not UNKNOWN.search(text_of(seen)):
                yield op, seen
    for op in again[:20]:
        yield op, ctx.play(reset(task), op.marked("call")).at("call")


def _completed(ctx: AuditContext, op: Op, seen: OpResult) -> list[Op]:
    """The call again, with the arguments that its traceback missed."""
    if not re.search(r"KeyError|missing \d+ required", seen.raised):
        return []
    names = [name for name in re.findall(r"'(\w+)'", seen.raised) if name not in op.value]
    values: dict[str, Any] = {name: next(iter(ctx.discovery.values.of(name)), "x") for name in names}
    return [call(op.name, {**op.value, **values})] if names else []


TEACHES_promises = "to take the first row for the wanted one when it is the last, or a whole list for its beginning"


@relation
def out_of_order(records: Sequence[Record], evidence: Evidence) -> bool:
    """The rows of an answer are sorted the other way round."""
    return bool(order_of(records[0].at("call").value, evidence.data["field"]) == evidence.data["found"])


@relation
def longer_than(records: Sequence[Record], evidence: Evidence) -> bool:
    """The answer is a list of more than `data` entries."""
    rows = rows_of(records[0].at("call").value)
    return rows is not None and len(rows) > int(evidence.data)


def _answers(ctx: AuditContext) -> Iterator[tuple[ToolSpec, KnownCall]]:
    """Calls of tools whose description promises an order or a length: those that are known, then drawn ones."""
    for tool in ctx.about.tools:
        if promised_order(tool.description) is None and promises_at_most(tool.description) is None:
            continue
        for known in ctx.discovery.of(tool.name)[:4]:
            yield tool, known
        for task in ctx.sample_tasks(3):
            drawn = {str(item): item for item in (_drawn(ctx, tool) for _ in range(60))}
            ops = [call(tool.name, item, mark=f"call {place}") for place, item in enumerate(drawn.values())]
            record = ctx.play(reset(task), *ops)
            for place, op in enumerate(ops):
                seen = record.at(f"call {place}")
                if len(rows_of(seen.value) or ()) > 1:
                    yield tool, KnownCall(task, (), op, seen, ())


def _drawn(ctx: AuditContext, tool: ToolSpec) -> dict[str, Any]:
    """Arguments for a tool, where every id that was seen may stand for any other."""
    arguments = valid(tool, ctx.discovery.values, ctx.rng, optional=0.1)
    ids = ctx.discovery.values.of("id")
    for name, value in arguments.items():
        if name.endswith("id") and ids and ctx.rng.random() < 0.7:
            arguments[name] = ctx.rng.choice(
                [identifier for identifier in ids if type(identifier) is type(value)] or [value]
            )
    return arguments


@check("x.descriptions_hold", "action_drift", needs=("tools", "call"), value=65)
def descriptions(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that answers have the order and length that the tool's description promises.

    An order is proven only if the rows are sorted the other way by each time, or amount, that they show. Excuse: a
    further field by which they are in order. A length is at most likely, because it may be about a part of the answer.
    """
    for tool, known in _answers(ctx):
        ctx.count_comparisons()
        probe = Probe((reset(known.task), *known.before, known.op.marked("call")))
        most = promises_at_most(tool.description)
        rows = rows_of(known.seen.value)
        if most is not None and rows is not None and len(rows) > most and "limit" not in known.op.value:
            yield ctx.finding(
                f"{tool.name} promises at most {most} results and gives {len(rows)}",
                probe,
                relation=f"{__name__}:longer_than",
                marks=("call",),
                data=most,
                part="H",
                at_most="likely",
                expected=most,
                observed=len(rows),
                teaches=TEACHES_promises,
            )
        wanted = None if ctx.contract(tool.name).order else promised_order(tool.description)
        if wanted is None or rows is None:
            continue
        orders = {field: order_of(rows, field) for field in order_fields(rows, tool.description)}
        field = next((name for name, order in orders.items() if order), None)
        if field is not None and {order for order in orders.values() if order} == {"ascending", "descending"} - {
            wanted
        }:
            yield ctx.finding(
                f"{tool.name} promises {wanted} order, but its answer goes the other way by {field or 'date'}",
                probe,
                relation=f"{__name__}:out_of_order",
                marks=("call",),
                data={"field": field, "found": orders[field]},
                part="H",
                expected=wanted,
                observed=rows[:6],
                teaches="to take the first row for the wanted one when it is the last",
            )


TEACHES = "calls that production answers differently, or not at all"


def _good(ctx: AuditContext, most: int = 3) -> Iterator[tuple[ToolSpec, KnownCall]]:
    """A few calls of each tool that worked, with the tool."""
    for tool in ctx.about.tools:
        for known in ctx.discovery.of(tool.name)[:most]:
            yield tool, known


def _control(known: KnownCall, *further: Op) -> Probe:
    """The good call on one instance, other calls on a second one that came the same way."""
    before = tuple(op.moved("b") for op in known.before)
    return Probe(
        (
            reset(known.task),
            *known.before,
            known.op.marked("control"),
            reset(known.task, on="b"),
            *before,
            *(op.moved("b") for op in further),
        )
    )


# --- relations: each states the bug ---


@relation
def refused_alone(records: Sequence[Record], evidence: Evidence) -> bool:
    """The good call works; one that differs from it in a single parameter is refused, and the words are about that."""
    record = records[0]
    words, name = {"missing": MISSING, "invalid": INVALID}[evidence.data["words"]], evidence.data["name"]
    good, other_value = (next(op.value for op in record.ops if op.mark == mark) for mark in ("control", "call"))
    alone = {key for key in {*good, *other_value} if good.get(key, _NONE) != other_value.get(key, _NONE)} == {name}
    text = text_of(record.at("call"))
    about = re.search(rf"\b{re.escape(name)}\b", text) is not None and words.search(text) is not None
    return alone and about and not record.at("control").is_error and record.at("call").is_error


_NONE = object()


@relation
def works(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The call is answered, and not with an error."""
    return not records[0].at("call").is_error


@relation
def works_for_nobody(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if the call succeeds and its answer does not report a missing tool."""
    seen = records[0].at("call")
    return not seen.is_error and not SAYS.search(text_of(seen))


@relation
def is_unknown(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if the call fails with words that report a missing tool."""
    seen = records[0].at("call")
    return seen.is_error and bool(UNKNOWN.search(text_of(seen)))


# --- checks ---


@check("runtime.tool_declaration_accuracy", "action_drift", needs=("tools", "call"), value=55)
def declared(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that every tool treats its arguments as its schema says: required, optional, enum, type."""
    for tool, known in _good(ctx):
        ctx.count_comparisons()
        arguments: dict[str, Any] = known.op.value
        unknown = [name for name in arguments if name not in tool.properties]
        if tool.parameters and unknown:
            yield ctx.finding(
                f"{tool.name} takes a parameter that its schema does not have: {unknown[0]}",
                Probe((reset(known.task), *known.before, known.op.marked("call"))),
                relation=f"{__name__}:works",
                marks=("call",),
                part="H",
                expected=sorted(tool.properties),
                observed=arguments,
                teaches=TEACHES,
            )
        elif tool.parameters and not fits(arguments, tool.parameters):
            yield ctx.finding(
                f"{tool.name} accepts a call that its own schema forbids",
                Probe((reset(known.task), *known.before, known.op.marked("call"))),
                relation=f"{__name__}:works",
                marks=("call",),
                part="H",
                severity="warning",
                expected=tool.parameters,
                observed=arguments,
                teaches=TEACHES,
            )
    for tool, known in _good(ctx, 1):
        yield from _optional(ctx, tool, known)
        yield from _enums(ctx, tool, known)


def _optional(ctx: AuditContext, tool: ToolSpec, known: KnownCall) -> Iterator[Finding | None]:
    for name in tool.properties:
        if name in tool.required:
            continue
        without = {key: value for key, value in known.op.value.items() if key != name}
        least = {key: value for key, value in without.items() if key in tool.required}
        probe = _control(known, call(tool.name, without, mark="call"), call(tool.name, least, mark="least"))
        data = {"words": "missing", "name": name}
        record = ctx.play_probe(probe) if name in known.op.value else None
        # What is demanded only in a certain case (a reason when something is closed) is not demanded of the least call.
        if record is not None and name in text_of(record.at("least")) and _refused(record, data):
            ctx.count_comparisons()
            yield ctx.finding(
                f"{tool.name} demands {name}, which its schema calls optional",
                probe,
                relation=f"{__name__}:refused_alone",
                marks=("control", "call", "least"),
                data=data,
                part="H",
                expected=f"works without {name}",
                observed=text_of(record.at("call"))[:300],
                teaches=TEACHES,
            )


def _enums(ctx: AuditContext, tool: ToolSpec, known: KnownCall) -> Iterator[Finding | None]:
    for name, schema in tool.properties.items():
        values = schema.get("enum") if is_dict(schema) else None
        if not is_list(values):
            continue
        for value in values:
            probe = _control(known, call(tool.name, {**known.op.value, name: value}, mark="call"))
            ctx.count_comparisons()
            record = ctx.play_probe(probe)
            data = {"words": "invalid", "name": name}
            if value != known.op.value.get(name) and _refused(record, data):
                yield ctx.finding(
                    f"{tool.name} refuses {name}={value!r}, which its schema offers",
                    probe,
                    relation=f"{__name__}:refused_alone",
                    marks=("control", "call"),
                    data=data,
                    part="H",
                    expected=values,
                    observed=text_of(record.at("call"))[:300],
                    teaches=TEACHES,
                )


def _refused(record: Record, data: dict[str, str]) -> bool:
    return refused_alone([record], Evidence("", data=data))


@check("x.advertised_tools_exist", "action_drift", needs=("tools", "call", "tasks"), value=90)
def exist(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that every advertised tool exists, and that no other one does."""
    task = ctx.tasks[0]
    for tool in ctx.about.tools:
        ctx.count_comparisons()
        if ctx.discovery.of(tool.name):
            continue
        probe = Probe((reset(task), call(tool.name, {}, mark="call")))
        if is_unknown([ctx.play_probe(probe)], Evidence("")):
            yield ctx.finding(
                f"{tool.name} is advertised, but does not exist",
                probe,
                relation=f"{__name__}:is_unknown",
                marks=("call",),
                part="H",
                expected="an answer",
                observed="unknown tool",
                teaches=TEACHES,
            )
    answered = ctx.play(reset(task), call(MISSING_TOOL, {}, mark="call"))
    control = answered.at("call")
    if works_for_nobody([answered], Evidence("")):
        yield ctx.finding(
            "a call of a tool that does not exist is answered as if it did",
            Probe((reset(task), call(MISSING_TOOL, {}, mark="call"))),
            relation=f"{__name__}:works_for_nobody",
            marks=("call",),
            expected="an error",
            observed=control.value,
            teaches="that any name will do",
        )
    elif control.is_error:
        yield from hidden_tools(ctx, task)


@check("x.tools_stay_the_same", "action_drift", needs=("tools", "call", "tasks"), value=89)
def stay(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the advertised tools are the same in each task, after each call, and in each session."""
    for task in ctx.sample_tasks(4):
        ops = ctx.oracle(task) or tuple(known.op for known in ctx.discovery.calls[:10])
        walk = (Op("tools", mark="first"), reset(task), Op("tools", mark="begun"), *ops, Op("tools", mark="after"))
        record = ctx.play(*walk)
        ctx.count_comparisons(2)
        first, after = record.at("first"), record.at("after")
        if first.fine and after.fine and (first.value != after.value or first.value != record.at("begun").value):
            yield ctx.finding(
                "the advertised tools change while an episode runs",
                Probe(walk),
                relation=f"{__name__}:changed",
                marks=("first", "begun", "after"),
                part="H",
                expected=_names_of(first.value),
                observed=_names_of(after.value),
                teaches="a set of tools other than the advertised one",
            )
            return


@relation
def changed(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The declarations are not the same at all marks."""
    first, begun, after = (records[0].at(mark).value for mark in ("first", "begun", "after"))
    return not (first == begun == after)


def _names_of(tools: Any) -> Any:
    return [tool["name"] for tool in tools] if is_list(tools) else tools


@check("x.prompt_names_tools", "action_drift", needs=("tools", "call", "tasks"), value=67)
def prompts(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that tools mentioned in prompts and descriptions exist.

    Proven only for a name that differs from a real tool's by its verb or by a letter, and that a text directs its
    reader to call or that begins with a verb of reading. Excuses: a parameter, a field, a name in the world, a
    placeholder. Any other word is at most likely.
    """
    tools = {tool.name for tool in ctx.about.tools}
    fields = {name for tool in ctx.about.tools for name in tool.properties} | ctx.discovery.values.names()
    texts = [(f"the description of {tool.name}", tool.description) for tool in ctx.about.tools]
    world = ""  # A name that is in the world, such as that of a function in a file, is not a tool's.
    for task in ctx.sample_tasks(6):
        further = (Op("prompt", name=task, mark="prompt"),) if "prompt" in ctx.offers else ()
        look = (Op("state", mark="look"),) if "state" in ctx.offers else ()
        record = ctx.play(reset(task, mark="first"), *further, *look)
        texts.append((f"the prompt of {task}", text_of(record.at("prompt" if further else "first"))))
        world += text_of(record.at("look")) if look else ""
    reported: set[str] = set()
    for where, text in texts:
        ctx.count_comparisons()
        called, near = tools_called(text), tools_near(text, tools)
        named = {name for name in called | near | tools_quoted(text, tools) if name not in world}
        for name in sorted(named - tools - fields - reported):
            reported.add(name)
            is_call = name in near and (name in called or reads_by_name(Op("call", name=name.partition("_")[0])))
            yield ctx.finding(
                f"{where} mentions {name}, which does not exist",
                Probe((reset(ctx.tasks[0]), call(name, {}, mark="call"))),
                relation=f"{__name__}:is_unknown",
                marks=("call",),
                part="H",
                severity="error" if is_call else "warning",
                at_most="proven" if is_call else "likely",
                expected=sorted(tools),
                observed=name,
                teaches="calls of a missing tool",
            )


__all__ = [
    "behaviour",
    "contracts_hold",
    "counted",
    "declared",
    "defaults",
    "descriptions",
    "done_as_told",
    "exist",
    "filters",
    "ordered_lists",
    "production",
    "prompts",
    "set_is_shown",
    "stay",
    "sums",
    "units",
]
