"""Discovery of a subject before the checks: calls that work, tools that read and tools that write.

The oracle's solutions of a few tasks are played, with a look at the state after each call. Then each tool that they do
not use is called with arguments drawn from its schema and from values seen so far.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, call, reset, same

from .contracts import covers, is_named
from .data import is_dict, is_list, leaves, parsed
from .generate import Values, fits, valid

if TYPE_CHECKING:
    from quintain.audit.kernel.context import AuditContext

MAX_PLAYED_TASKS = 8  # tasks whose solution is played, besides tasks that use further tools
MAX_ORACLE_TASKS = 40  # tasks whose solution is read to find tasks that use further tools
MAX_STATE_TASKS = 3  # tasks whose start state is read
MAX_DRAWN_CALLS = 12  # calls that are tried for a tool that no solution uses
MAX_DRAWN_TOOLS = 60  # tools without a known call that are tried; larger worlds are sampled by their solutions
MAX_MEMO_CALLS = 3
"""Calls of a tool that are repeated, to see if it keeps its answer in the state: an empty one does not tell."""
MAX_TABLES = 12
"""Looks at tables that are kept of a tool that takes SQL."""
TABLES = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
)
MAX_MIDWAY_TASKS, MAX_MIDWAY_WRITES = 3, 3
"""Tasks, and writes of each solution, after which tools are tried that may need earlier calls."""


class KnownCall(msgspec.Struct, frozen=True):
    """Call that works: after `before`, behind the reset, with its result.

    `changed` holds the state paths that it changed, without those that nearly every call changes (a clock, a log of
    calls); None if the state is not visible. A call that `keeps` added only what it answered.
    """

    task: str
    before: tuple[Op, ...]
    op: Op
    seen: OpResult
    changed: tuple[str, ...] | None
    keeps: bool = False

    @property
    def writes(self) -> bool | None:
        """True if the call changed the state; None if the state is not visible."""
        return None if self.changed is None else bool(self.changed)


class Discovery(msgspec.Struct, frozen=True):
    """Result of the discovery: calls that work, the oracle's first, and what they show."""

    calls: tuple[KnownCall, ...]
    values: Values  # scalars seen in prompts, observations and states
    refused: tuple[str, ...]  # tools without a call that works
    states: dict[str, Any]  # start states of a few tasks, with the first entries of each table, if states are visible
    background: frozenset[str] = frozenset()  # top-level names in the state that nearly every call changes
    declared: dict[str, bool] = {}  # whether a tool writes, where its author declares it
    memos: frozenset[str] = frozenset()  # tools that read and keep their answers in the state

    @property
    def writers(self) -> tuple[str, ...]:
        """Returns the tools that work and write: as declared, else because some call changed the state."""
        found = [one.op.name for one in self.calls if self.declared.get(one.op.name, one.writes)]
        return tuple(dict.fromkeys(found))

    @property
    def readers(self) -> tuple[str, ...]:
        writers = set(self.writers)
        return tuple(dict.fromkeys(one.op.name for one in self.calls if one.op.name not in writers))

    def of(self, tool: str) -> tuple[KnownCall, ...]:
        return tuple(one for one in self.calls if one.op.name == tool)

    def writes(self) -> tuple[KnownCall, ...]:
        return tuple(one for one in self.calls if one.writes)

    def reads(self) -> tuple[KnownCall, ...]:
        readers = set(self.readers)
        return tuple(one for one in self.calls if one.op.name in readers and one.writes is not True)


def discover(ctx: AuditContext) -> Discovery:
    """Plays solutions and draws calls; all checks share the result."""
    values = Values()
    states: dict[str, Any] = {}
    tasks = _walked(ctx)
    records = ctx.play_all(
        [Probe(tuple(_walk(ctx, task, is_glanced=place < MAX_STATE_TASKS))) for place, task in enumerate(tasks)]
    )
    calls: list[KnownCall] = []
    for task, record in zip(tasks, records, strict=True):
        calls += _read(ctx, task, record, values=values, states=states)
    met = {one.op.name for one in calls}
    missing = [tool.name for tool in ctx.about.tools if tool.name not in met]
    calls += _draw(ctx, missing, values=values, tasks=tasks)
    calls += _tried(ctx, list(_looks(ctx, calls)), values, most=MAX_TABLES)
    background = _background(ctx, calls)
    calls += _afterwards(ctx, [_without(ctx, one, background) for one in calls], values=values, tasks=tasks)
    clean = [_without(ctx, one, background) for one in calls]
    memos = _memos(ctx, clean)
    clean = [msgspec.structs.replace(one, changed=()) if one.op.name in memos else one for one in clean]
    refused = tuple(name for name in missing if name not in {one.op.name for one in calls})
    return Discovery(tuple(clean), values, refused, states, background, ctx.declared, memos)


def _walked(ctx: AuditContext) -> tuple[str, ...]:
    """Returns tasks spread evenly, plus one for each tool that only other solutions use."""
    tasks = list(ctx.sample_tasks(MAX_PLAYED_TASKS))
    known = ctx.oracles((*tasks, *ctx.sample_tasks(MAX_ORACLE_TASKS)))
    met = {op.name for task in tasks for op in known[task] or ()}
    for task, ops in known.items():
        tools = {op.name for op in ops or () if op.do == "call"}
        tasks += [task] if tools - met else []
        met |= tools
    return tuple(tasks)


def sees(ctx: AuditContext) -> bool:
    return "state" in ctx.offers


def goes_back(ctx: AuditContext) -> bool:
    return {"snapshot", "restore"} <= ctx.offers


def _walk(ctx: AuditContext, task: str, *, is_glanced: bool) -> Iterator[Op]:
    yield reset(task, mark="reset")
    yield from [Op("glance", mark="start")] if is_glanced and sees(ctx) else ()
    for place, op in enumerate(ctx.oracle(task) or ()):
        yield op.marked(f"op {place}")
        yield from [Op("changes", mark=f"look {place}")] if sees(ctx) else ()


def _read(
    ctx: AuditContext, task: str, record: Record, *, values: Values, states: dict[str, Any]
) -> Iterator[KnownCall]:
    ops = ctx.oracle(task) or ()
    values.take(record.at("reset").value, "prompt")
    if any(op.mark == "start" for op in record.ops):
        states[task] = record.at("start").value
        values.take(states[task])
    before: Any = {}
    for place, op in enumerate(ops):
        seen = record.at(f"op {place}")
        values.take(parsed(seen.value), op.name)
        if op.do == "call":
            values.take(op.value)
        after = record.at(f"look {place}").value if sees(ctx) else None
        if op.do == "call" and not seen.is_error:
            yield _known(task, tuple(ops[:place]), op, seen=seen, looks=(before, after))
        before = after


def _known(task: str, before: tuple[Op, ...], op: Op, *, seen: OpResult, looks: tuple[Any, Any]) -> KnownCall:
    """Returns a call with the paths at which the differences from the start state, before and after it, differ."""
    was, now = looks
    if not (is_dict(was) and is_dict(now)):
        return KnownCall(task, before, op, seen, None)
    made = {path: now.get(path, [None, None]) for path in {**was, **now} if was.get(path) != now.get(path)}
    given, said = _texts(op.value), parsed(seen.value)
    # A cache that is made at its first use holds the answer under a key.
    holds = (bool(_texts(new) - given) and (_holds(said, new) or _holds(new, said)) for _, new in made.values())
    adds = all(old is None for old, _ in made.values()) and all(holds)
    return KnownCall(task, before, op, seen, tuple(made), bool(made) and adds)


def _draw(ctx: AuditContext, missing: Sequence[str], *, values: Values, tasks: Sequence[str]) -> list[KnownCall]:
    """Returns working calls of tools that no solution uses, each at the start of a task."""
    if not tasks:
        return []
    specs = [tool for tool in ctx.about.tools if tool.name in set(missing)][:MAX_DRAWN_TOOLS]
    blind = [tool for tool in specs if any(not _seen(tool, name, values) for name in tool.required)]
    tried: list[tuple[str, Op]] = []
    glanced = tasks[:MAX_STATE_TASKS]  # Ids that were seen in one task need not be there in another.
    for tool in specs:
        drawn = {str(one): one for one in (valid(tool, values, ctx.rng) for _ in range(MAX_DRAWN_CALLS))}
        places = [place * len(glanced) // len(drawn) for place in range(len(drawn))]
        tried += [(glanced[n], call(tool.name, one)) for n, one in zip(places, drawn.values(), strict=True)]
    found = _tried(ctx, tried, values)
    met = {one.op.name for one in found}
    return found + _tried(ctx, list(_retried(ctx, [one for one in blind if one.name not in met], found)), values)


def _tried(ctx: AuditContext, tried: Sequence[tuple[str, Op]], values: Values, *, most: int = 3) -> list[KnownCall]:
    """Returns the calls that work, at most `most` per tool, and the first of those with the same answer."""
    found: list[KnownCall] = []
    kept: dict[str, set[str]] = {}
    # Many calls share one probe: going back to its start costs less than beginning again.
    parts = [tried[start : start + MAX_DRAWN_CALLS] for start in range(0, len(tried), MAX_DRAWN_CALLS)]
    records = ctx.play_all([Probe(tuple(_tries(ctx, part))) for part in parts])
    for part, record in zip(parts, records, strict=True):
        for place, (task, op) in enumerate(part):
            seen = record.at(f"op {place}")
            said, known = str(seen.value), kept.setdefault(op.name, set())
            if seen.is_error or len(known) >= most or said in known:
                continue
            values.take(parsed(seen.value), op.name)
            known.add(said)
            after = record.at(f"look {place}").value if sees(ctx) else None
            found.append(_known(task, (), op, seen=seen, looks=({}, after)))
    return found


def _looks(ctx: AuditContext, calls: Sequence[KnownCall]) -> Iterator[tuple[str, Op]]:
    """Yields a look at each table of the database, by tools that take SQL; solutions look at few tables."""
    for tool in ctx.about.tools[:MAX_DRAWN_TOOLS]:
        known = [one.op.value for one in calls if one.op.name == tool.name]
        base: dict[str, Any] = known[0] if known else {}
        for name, schema in tool.properties.items():
            if not fits("", schema) or not re.search(r"\bSQL|\bSELECT\b", f"{tool.description} {schema}"):
                continue
            ops = [call(tool.name, {**base, name: text}) for text in TABLES]
            seen = ctx.play(reset(ctx.tasks[0]), *ops).seen[1:]
            said = " ".join(str(leaf) for each in seen if not each.is_error for _, leaf in leaves(parsed(each.value)))
            for table in list(dict.fromkeys(re.findall(r"\w+", said)))[: 3 * MAX_TABLES]:
                query = f"SELECT * FROM {table} LIMIT 100"  # noqa: S608 (a name that the database gave)
                yield ctx.tasks[0], call(tool.name, {**base, name: query})


def _retried(ctx: AuditContext, tools: Sequence[ToolSpec], found: Sequence[KnownCall]) -> Iterator[tuple[str, Op]]:
    """Yields calls of tools whose first tries had no ids, with values that later reads of a task returned."""
    by_task: dict[str, Values] = {}
    for one in found:
        by_task.setdefault(one.task, Values()).take(parsed(one.seen.value), one.op.name)
    for tool in tools:
        tasks = [task for task, seen in by_task.items() if any(_seen(tool, name, seen) for name in tool.required)]
        rounds = [task for _ in range(MAX_DRAWN_CALLS) for task in tasks[:MAX_STATE_TASKS]]
        drawn = [(task, valid(tool, by_task[task], ctx.rng)) for task in rounds]
        once = {f"{task} {one}": (task, call(tool.name, one)) for task, one in drawn}
        yield from list(once.values())[:MAX_DRAWN_CALLS]


def _seen(tool: ToolSpec, name: str, values: Values) -> bool:
    return any(fits(one, tool.properties.get(name) or {}, tool.parameters) for one in values.of(name))


def _tries(ctx: AuditContext, part: Sequence[tuple[str, Op]]) -> Iterator[Op]:
    at, can_go_back = "", goes_back(ctx)
    for place, (task, op) in enumerate(part):
        begins, at = task != at or not can_go_back, task
        yield reset(task) if begins else Op("restore", name="start")
        yield from [Op("snapshot", name="start")] if begins and can_go_back else ()
        yield op.marked(f"op {place}")
        yield from [Op("changes", mark=f"look {place}")] if sees(ctx) else ()


def _afterwards(
    ctx: AuditContext, calls: Sequence[KnownCall], *, values: Values, tasks: Sequence[str]
) -> list[KnownCall]:
    """Returns working calls in the middle of a solution, for tools that undo or continue its work."""
    met = {one.op.name for one in calls}
    wrote = {one.op.name for one in calls if one.writes is not False}
    tools = [one for one in ctx.about.tools if one.name not in met][:MAX_MIDWAY_TASKS]
    groups = [tools] if goes_back(ctx) else [[one] for one in tools]  # Who cannot go back goes on after what worked.
    pairs = [(task, group) for task in tasks[:MAX_MIDWAY_TASKS] for group in groups]
    made = {f"{one.task} {len(one.before)} {one.op}": parsed(one.seen.value) for one in calls}
    every = [(task, _midst(ctx, task, group, values=values, wrote=wrote, made=made)) for task, group in pairs]
    plan = [(task, ops) for task, ops in every if any(op.mark for op in ops)]
    found: list[KnownCall] = []
    for (task, ops), record in zip(plan, ctx.play_all([Probe((reset(task), *ops)) for task, ops in plan]), strict=True):
        there: dict[str, KnownCall] = {}
        for place, op in enumerate(ops):
            is_tried = op.mark.startswith("op ") and op.name not in there and (goes_back(ctx) or not there)
            if is_tried and not (seen := record.at(op.mark)).is_error:
                values.take(parsed(seen.value), op.name)
                was, look = (record.at(f"{word} {op.mark}").value if sees(ctx) else None for word in ("was", "look"))
                before = tuple(one for one in ops[:place] if not one.mark and one.do == "call")
                there[op.name] = _known(task, before, op.marked(""), seen=seen, looks=(was, look))
        found += there.values()
    return found


def _midst(
    ctx: AuditContext, task: str, tools: Sequence[ToolSpec], *, values: Values, wrote: set[str], made: dict[str, Any]
) -> list[Op]:
    """Returns a solution with the unknown tools called after each of its first writes, under marks "op ..."."""
    ops: list[Op] = []
    used, places = Values(), 0
    for place, step in enumerate(ctx.oracle(task) or ()):
        if step.do != "call":
            continue
        ops.append(step.marked(""))
        used.take(step.value)
        places += step.name in wrote
        if step.name not in wrote or places > MAX_MIDWAY_WRITES:
            continue
        ops += [Op("snapshot", name="here")] if goes_back(ctx) else []
        said = made.get(f"{task} {place} {step}")
        new_id = said.get("id") if is_dict(said) else said
        for tool in tools:
            near = {name: used.exactly(name)[-1] for name in tool.properties if used.exactly(name)}
            rest = [name for name in tool.required if name not in near]
            if len(rest) == 1 and new_id is not None and fits(new_id, tool.properties.get(rest[0]), tool.parameters):
                near[rest[0]] = new_id  # What the step made, such as a booking, under the name that this tool gives it.
            if not near:
                continue
            mark = f"op {len(ops)}"
            looks = [Op("changes", mark=f"{word} {mark}") for word in ("was", "look")] if sees(ctx) else []
            tried = call(tool.name, {**valid(tool, values, ctx.rng, optional=0.0), **near}, mark=mark)
            ops += [*looks[:1], tried, *looks[1:], *([Op("restore", name="here")] if goes_back(ctx) else [])]
    return ops


def _background(ctx: AuditContext, calls: Sequence[KnownCall]) -> frozenset[str]:
    """Returns the top-level names that 8 of 10 calls of at least five different tools change.

    What changes alone, and not in each call, is the work of those calls, as the one table of a small world is.
    Where contracts are declared, also those that all calls of two or more tools change and that no contract names.
    """
    seen = [one for one in calls if one.changed is not None]
    tops = [{path.partition("/")[0] for path in one.changed or ()} for one in seen]
    counts = Counter(name for some in tops for name in some)
    tools = len({one.op.name for one in seen})
    beside = {name for some in tops if len(some) > 1 for name in some}
    often = {name: count for name, count in counts.items() if tools >= 5 and count >= 0.8 * len(seen)}
    found = {name for name, count in often.items() if name in beside or count == len(seen)}
    if ctx.declared and tools >= 2:
        names = [name for contract in ctx.about.contracts.values() for name in contract.names]
        found |= {top for top, count in counts.items() if count == len(seen) and not is_named(top, names)}
    return frozenset(found)


def _memos(ctx: AuditContext, calls: Sequence[KnownCall]) -> frozenset[str]:
    """Returns the tools that read and keep their answers in the state, as a cache does."""
    tried: dict[str, list[KnownCall]] = {}
    for one in calls:
        some = tried.setdefault(one.op.name, [])
        if one.writes and one.op.name not in ctx.declared and len(some) < MAX_MEMO_CALLS:
            some.append(one)
    first = [one for some in tried.values() for one in some if one.keeps]
    once, twice = (Op("changes", mark=mark) for mark in ("once", "twice"))
    twos = [(one.op.marked("call"), once, one.op.marked("again"), twice) for one in first]
    records = ctx.play_all([Probe((reset(one.task), *one.before, *ops)) for one, ops in zip(first, twos, strict=True)])
    return frozenset(one.op.name for one, record in zip(first, records, strict=True) if _is_memo(record))


def _is_memo(record: Record) -> bool:
    """True if a call gave the same again without a further change."""
    once, twice = (record.at(mark).value for mark in ("once", "twice"))
    return is_dict(once) and once == twice and same(record.at("call"), record.at("again"))


def _texts(value: Any) -> set[str]:
    return {str(leaf) for _, leaf in leaves(value) if leaf is not None and not isinstance(leaf, bool)}


def _holds(value: Any, wanted: Any) -> bool:
    parts: list[Any] = list(value.values()) if is_dict(value) else value if is_list(value) else []
    return bool(value == wanted) or any(_holds(part, wanted) for part in parts)


def _without(ctx: AuditContext, one: KnownCall, background: frozenset[str]) -> KnownCall:
    """Returns a call with the changes that its tool declares, else without the background."""
    writes = ctx.contract(one.op.name).writes
    if one.changed is None and writes != ():
        return one
    left = [path for path in one.changed or () if path.partition("/")[0] not in background]
    if writes is not None:
        left = [path for path in one.changed or () if any(covers(name, path) for name in writes)]
    return msgspec.structs.replace(one, changed=tuple(left))
