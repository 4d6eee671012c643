"""Checks declarations of tools against prompts, code, behavior and production, which must agree."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.acts import reads_by_name
from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.discovery import KnownCall
from quintain.audit.facts.generate import fits, valid
from quintain.audit.facts.variations import NOWHERE
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, call, reset, text_of
from quintain.audit.kernel.registry import Relation, relation

from . import _drift_words as word
from ._drift_called_off import called_off
from ._drift_nested import patterns
from ._drift_numbers import counted_alike
from ._drift_production import behaviour, counted, production
from ._drift_rows import contracts_hold, filters, ordered_lists
from ._drift_set import set_twice
from ._drift_settings import sums
from ._drift_told import defaults, done_as_told
from ._drift_words import show

__all__ = [
    "behaviour", "called_off", "contracts_hold", "counted", "counted_alike", "defaults", "done_as_told", "filters",
    "ordered_lists", "patterns", "production", "set_twice", "sums",
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
GUESSES = 160  # Number of guessed names tried in addition to those in the code.
MAX_FINDINGS = 4


@relation
def answers(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if an unlisted name is handled like a tool while two names that do not exist are refused."""
    record, name = records[0], evidence.data
    seen, *others = (record.at(mark) for mark in ("call", "missing", "near"))
    if seen.how == "crashed" or word.UNKNOWN.search(text_of(seen)) or not all(one.is_error for one in others):
        return False
    shape = _shape(seen, name)
    if any(shape in (_shape(result, MISSING_TOOL), _shape(result, _near(name))) for result in others):
        return False
    return not seen.is_error or word.MISSING.search(text_of(seen)) is not None


def _shape(seen: OpResult, name: str) -> str:
    return text_of(seen).replace(name, "?")


def _near(name: str) -> str:
    """Returns a nonexistent name so similar that suggestions in an error message stay the same."""
    return f"{name}q"


def hidden_tools(ctx: AuditContext, task: str) -> Iterator[Finding | None]:
    """Yields findings for callable tools that are not advertised."""
    advertised = {tool.name for tool in ctx.about.tools}
    ops = [op for name in _names(ctx, advertised) for op in _calls(ctx, name)]
    reported: set[str] = set()
    for op, seen in _screened(ctx, task, ops):
        missing, near = call(MISSING_TOOL, op.value, mark="missing"), call(_near(op.name), op.value, mark="near")
        probe = Probe((reset(task), missing, near, op.marked("call")))
        is_new = op.name not in reported and len(reported) < MAX_FINDINGS
        if is_new and answers([ctx.play_probe(probe)], Evidence("", data=op.name)):
            reported.add(op.name)
            yield _drift(
                ctx, f"{op.name} can be called, but is not advertised", probe, relation=answers,
                marks=("call", "missing", "near"), data=op.name, expected="unknown tool", observed=seen.value,
                teaches="a tool that production lacks",
            )  # fmt: skip


def _names(ctx: AuditContext, advertised: set[str]) -> list[str]:
    """Names in the code first; then other verbs for the things that tools are about, and what is left from building."""
    things = dict.fromkeys(name.partition("_")[2] for name in sorted(advertised) if "_" in name)
    near = (f"{verb}_{thing}" for thing, verb in itertools.product([thing for thing in things if thing], VERBS))
    guessed = [name for name in itertools.chain(ADMIN, near) if name not in advertised]
    return list(dict.fromkeys([*sorted(word.callables_in(ctx.sources, advertised)), *guessed[:GUESSES]]))


def _calls(ctx: AuditContext, name: str) -> list[Op]:
    """With no arguments, and with those of a tool that is about the same thing."""
    thing = name.partition("_")[2]
    things = {tool.name: tool.name.partition("_")[2] for tool in ctx.about.tools if ctx.discovery.of(tool.name)}
    near = [tool for tool, about in things.items() if thing and thing in (about, f"{about}s")]
    return [call(name, {}), *(call(name, ctx.discovery.of(tool)[0].op.value) for tool in near[:1])]


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
            elif _shape(seen, op.name) != _shape(missing, MISSING_TOOL) and not word.UNKNOWN.search(text_of(seen)):
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


TEACHES = "calls that production answers differently, or not at all"


def _drift(ctx: AuditContext, title: str, *probes: Probe, relation: Relation, **fields: Any) -> Finding | None:
    return show(ctx, title, relation, *probes, **{"part": "H", "teaches": TEACHES, "minimise": 40} | fields)


def _control(known: KnownCall, *further: Op) -> Probe:
    """The good call on one instance, other calls on a second one that came the same way."""
    good = (reset(known.task), *known.before, known.op.marked("control"))
    return Probe((*good, *(op.moved("b") for op in (reset(known.task), *known.before, *further))))


@relation
def refused_alone(records: Sequence[Record], evidence: Evidence) -> bool:
    """The good call works; one that differs from it in a single parameter is refused, and the words are about that."""
    record = records[0]
    words, name = {"missing": word.MISSING, "invalid": word.INVALID}[evidence.data["words"]], evidence.data["name"]
    good, other = (next(op.value for op in record.ops if op.mark == mark) for mark in ("control", "call"))
    alone = {key for key in {*good, *other} if key not in good or key not in other or good[key] != other[key]} == {name}
    text = text_of(record.at("call"))
    about = re.search(rf"\b{re.escape(name)}\b", text) is not None and words.search(text) is not None
    return alone and about and not record.at("control").is_error and record.at("call").is_error


@relation
def works(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The call is answered, and not with an error."""
    return not records[0].at("call").is_error


@relation
def works_for_nobody(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if the call succeeds and its answer does not report a missing tool."""
    seen = records[0].at("call")
    return not seen.is_error and not word.SAYS.search(text_of(seen))


@relation
def is_unknown(records: Sequence[Record], _evidence: Evidence) -> bool:
    """True if the call fails with words that report a missing tool."""
    seen = records[0].at("call")
    return seen.is_error and bool(word.UNKNOWN.search(text_of(seen)))


@check("runtime.tool_declaration_accuracy", "action_drift", needs=("tools", "call"), value=27)
def declared(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that every tool treats its arguments as its schema says: required, optional, enum, type."""
    good = [(tool, known) for tool in ctx.about.tools for known in ctx.discovery.of(tool.name)[:3]]
    ctx.count_comparisons(len(good))
    for tool, known in good:
        takes_more = tool.parameters.get("additionalProperties") not in (None, False)
        unknown = [name for name in known.op.value if name not in tool.properties and not takes_more]
        if tool.parameters and (unknown or not fits(known.op.value, tool.parameters)):
            yield _drift(
                ctx, f"{tool.name} takes a parameter that its schema does not have: {unknown[0]}" if unknown
                else f"{tool.name} accepts a call that its own schema forbids",
                Probe((reset(known.task), *known.before, known.op.marked("call"))), relation=works,
                severity="error" if unknown else "warning", observed=known.op.value,
                expected=sorted(tool.properties) if unknown else tool.parameters,
            )  # fmt: skip
    for tool in ctx.about.tools:
        for known in ctx.discovery.of(tool.name)[:1]:
            yield from _optional(ctx, tool, known)
            yield from _enums(ctx, tool, known)
        yield _unlisted(ctx, tool) if ctx.discovery.of(tool.name) else _unusable(ctx, tool)


def _optional(ctx: AuditContext, tool: ToolSpec, known: KnownCall) -> Iterator[Finding | None]:
    for name in [name for name in known.op.value if name in tool.properties and name not in tool.required]:
        without = {key: value for key, value in known.op.value.items() if key != name}
        least = {key: value for key, value in without.items() if key in tool.required}
        probe = _control(known, call(tool.name, without, mark="call"), call(tool.name, least, mark="least"))
        data, record = {"words": "missing", "name": name}, ctx.play_probe(probe)
        # What is demanded only in a certain case (a reason when something is closed) is not demanded of the least call.
        if name in text_of(record.at("least")) and refused_alone([record], Evidence("", data=data)):
            ctx.count_comparisons()
            yield _drift(
                ctx, f"{tool.name} demands {name}, which its schema calls optional", probe, relation=refused_alone,
                marks=("control", "call", "least"), data=data, expected=f"works without {name}",
                observed=text_of(record.at("call"))[:300],
            )  # fmt: skip


def _enums(ctx: AuditContext, tool: ToolSpec, known: KnownCall) -> Iterator[Finding | None]:
    enums = {name: schema.get("enum") for name, schema in tool.properties.items() if is_dict(schema)}
    offered = [(name, value, values) for name, values in enums.items() if is_list(values) for value in values]
    ctx.count_comparisons(len(offered))
    for name, value, values in [each for each in offered if each[1] != known.op.value.get(each[0])]:
        probe = _control(known, call(tool.name, {**known.op.value, name: value}, mark="call"))
        record, data = ctx.play_probe(probe), {"words": "invalid", "name": name}
        if refused_alone([record], Evidence("", data=data)):
            yield _drift(
                ctx, f"{tool.name} refuses {name}={value!r}, which its schema offers", probe, relation=refused_alone,
                marks=("control", "call"), data=data, expected=values, observed=text_of(record.at("call"))[:300],
            )  # fmt: skip


@relation
def wants_more(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a full call is refused like one without an argument, for one that no tool has."""
    good, full, part = (record.at("call") for record in records)
    hidden, left = evidence.data
    return not good.is_error and full.is_error and part.is_error and _says_alike((full, hidden), (part, left))


def _says_alike(*refused: tuple[OpResult, str]) -> bool:
    """True if two errors say that a name is missing, in the same words but one."""
    words = [{*re.findall(r"\w+", text_of(seen))} for seen, _ in refused]
    is_named = all(name in said for said, (_, name) in zip(words, refused, strict=True))
    first, second = (said - {name} for said, (_, name) in zip(words, refused, strict=True))
    return is_named and len(first ^ second) < 2 and all(word.MISSING.search(text_of(seen)) for seen, _ in refused)


def _unlisted(ctx: AuditContext, tool: ToolSpec) -> Finding | None:
    """Returns a finding for a call that misses an argument of which no schema, answer or state knows the name."""
    tried = ctx.variations.of(tool.name)
    known = {name for spec in ctx.about.tools for name in spec.properties} | ctx.discovery.values.names()
    refused = [one for one in tried if one.kind == "legal" and not one.works]
    parts = [one for one in tried if one.kind == "illegal" and one.name not in one.arguments and not one.works]
    pairs = itertools.product(refused, parts)
    for full, part in ((one, other) for one, other in pairs if one.good == other.good):
        good = next(one for one in tried if one.kind == "good" and one.good == full.good)
        probes = [one.probe() for one in (good, full, part)]
        for name in sorted({*re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text_of(full.seen))} - known):
            if _says_alike((full.seen, name), (part.seen, part.name)):
                return _drift(
                    ctx, f"{tool.name} demands {name}, which its schema does not have", *probes,
                    relation=wants_more, data=[name, part.name], expected=sorted(tool.properties),
                    observed=text_of(full.seen)[:300], minimise=0,
                )  # fmt: skip
    return None


_NONE = r"(?i:unknown|invalid|unsupported|no such|unrecogni[sz]ed)"


@relation
def takes_none(records: Sequence[Record], evidence: Evidence) -> bool:
    """Each value that an enum offers is refused as unknown, in words other than those for a value outside it."""
    name, offered = evidence.data
    for record in records:
        said = {op.value[name]: record.at(op.mark) for op in record.ops if op.mark}
        texts = {value: text_of(seen) for value, seen in said.items()}
        about = all(re.search(rf"{_NONE}\W+{name}\W+{re.escape(str(one))}\b", texts[one]) for one in offered)
        forms = {texts[one].replace(str(one), "?") for one in offered}
        is_refused = about and all(seen.is_error for seen in said.values())
        if not is_refused or texts[NOWHERE[0]].replace(NOWHERE[0], "?") in forms:
            return False
    return True


def _unusable(ctx: AuditContext, tool: ToolSpec) -> Finding | None:
    """Returns a finding for a tool that refuses all values of an enum, at each start and end."""
    for name in tool.required:
        schema = tool.properties.get(name)
        offered: list[Any] = list(schema.get("enum") or ()) if is_dict(schema) else []
        base = valid(tool, ctx.discovery.values, ctx.rng, optional=0.0)
        ops = [call(tool.name, {**base, name: one}, mark=f"call {place}") for place, one in enumerate(offered)]
        ops.append(call(tool.name, {**base, name: NOWHERE[0]}, mark="stranger"))
        starts = [(task, ends) for task in ctx.sample_tasks(4) for ends in ((), ctx.oracle(task) or ())]
        probes = [Probe((reset(task), *(step.marked("") for step in ends), *ops)) for task, ends in starts]
        if len(offered) > 1 and takes_none(ctx.play_all(probes), Evidence("", data=[name, offered])):
            return _drift(
                ctx, f"{tool.name} refuses every {name} that its schema offers", *probes,
                relation=takes_none, data=[name, offered], expected=offered, minimise=0,
                observed=text_of(ctx.play_probe(probes[0]).at("call 0"))[:300],
            )  # fmt: skip
    return None


@check("x.advertised_tools_exist", "action_drift", needs=("tools", "call", "tasks"), value=69)
def exist(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that every advertised tool exists, and that no other one does."""
    task = ctx.tasks[0]
    ctx.count_comparisons(len(ctx.about.tools))
    for tool in [tool for tool in ctx.about.tools if not ctx.discovery.of(tool.name)]:
        probe = Probe((reset(task), call(tool.name, {}, mark="call")))
        if is_unknown([ctx.play_probe(probe)], Evidence("")):
            title = f"{tool.name} is advertised, but does not exist"
            yield _drift(ctx, title, probe, relation=is_unknown, expected="an answer", observed="unknown tool")
    probe = Probe((reset(task), call(MISSING_TOOL, {}, mark="call")))
    answered = ctx.play_probe(probe)
    if works_for_nobody([answered], Evidence("")):
        yield _drift(
            ctx, "a call of a tool that does not exist is answered as if it did", probe, relation=works_for_nobody,
            part="S", expected="an error", observed=answered.at("call").value, teaches="that any name will do",
        )  # fmt: skip
    elif answered.at("call").is_error:
        yield from hidden_tools(ctx, task)


@check("x.tools_stay_the_same", "action_drift", needs=("tools", "call", "tasks"), value=59)
def stay(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the advertised tools are the same in each task, after each call, and in each session."""
    for task in ctx.sample_tasks(4):
        ops = ctx.oracle(task) or tuple(known.op for known in ctx.discovery.calls[:10])
        walk = (Op("tools", mark="first"), reset(task), Op("tools", mark="begun"), *ops, Op("tools", mark="after"))
        record = ctx.play(*walk)
        ctx.count_comparisons(2)
        first, after = record.at("first"), record.at("after")
        if first.fine and after.fine and changed([record], Evidence("")):
            title = "the advertised tools change while an episode runs"
            names = [[tool["name"] for tool in seen.value] if is_list(seen.value) else seen for seen in (first, after)]
            yield _drift(
                ctx, title, Probe(walk), relation=changed, marks=("first", "begun", "after"), expected=names[0],
                observed=names[1], teaches="a set of tools other than the advertised one",
            )  # fmt: skip
            return


@relation
def changed(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The declarations are not the same at all marks."""
    first, begun, after = (records[0].at(mark).value for mark in ("first", "begun", "after"))
    return not (first == begun == after)


@check("x.prompt_names_tools", "action_drift", needs=("tools", "call", "tasks"), value=38)
def prompts(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that tools mentioned in prompts and descriptions exist.

    Proven only for a name that differs from a real tool's by its verb or by a letter, and that a text directs its
    reader to call or that begins with a verb of reading. Excuses: a parameter, a field, a name in the world, a
    placeholder. Any other word is at most likely.
    """
    tools = {tool.name for tool in ctx.about.tools}
    known = {name for tool in ctx.about.tools for name in tool.properties} | ctx.discovery.values.names() | tools
    texts = [(f"the description of {tool.name}", tool.description) for tool in ctx.about.tools]
    world = ""  # A name that is in the world, such as that of a function in a file, is not a tool's.
    for task in ctx.sample_tasks(6):
        further = (Op("prompt", name=task, mark="prompt"),) if "prompt" in ctx.offers else ()
        look = (Op("state", mark="look"),) if "state" in ctx.offers else ()
        record = ctx.play(reset(task, mark="first"), *further, *look)
        texts.append((f"the prompt of {task}", text_of(record.at("prompt" if further else "first"))))
        world += text_of(record.at("look")) if look else ""
    ctx.count_comparisons(len(texts))
    for where, text in texts:
        called, near = word.tools_called(text), word.tools_near(text, tools)
        for name in sorted((called | near | word.tools_quoted(text, tools)) - known):
            if name in world:
                continue
            known.add(name)
            is_call = name in near and (name in called or reads_by_name(Op("call", name=name.partition("_")[0])))
            yield _drift(
                ctx, f"{where} mentions {name}, which does not exist",
                Probe((reset(ctx.tasks[0]), call(name, {}, mark="call"))), relation=is_unknown,
                severity="error" if is_call else "warning", at_most="proven" if is_call else "likely",
                expected=sorted(tools), observed=name, teaches="calls of a missing tool",
            )  # fmt: skip
