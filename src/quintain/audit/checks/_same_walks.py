"""Walks of writes with reads between them: each read must not depend on earlier reads.

One session reads everything before the first write and after each; for each step a fresh session makes the same writes
alone and reads then. What is read is asked of whatever the writes name, change or answer: rows are known by the paths
that differ in the state, not only by the arguments of the write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.facts.generate import fits
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset, state

from ._same_reads import HERE, tells
from ._same_scripts import SEARCHED, alone, bare, doing, in_turn, marked, seems_to_read, state_op
from ._same_splits import apart, least, read

TEACHES = "to distrust reads after its own writes, or to repeat writes"
STEPS, READS, TRIED = 9, 26, 160
"""Writes of a walk; reads after each; reads that are tried, to see which work."""
WRITES, EACH = 20, 16
"""Writes that are looked at one by one, and reads around each."""
CALLS = 120
"""Calls of an episode, where no budget is declared."""
ADVANCED = (90, 7200)
"""Seconds that pass between writes, where they can."""
OLD, WRITE, NEW = "old", "step write", "step new"
_NO_PAIR = "no pair of a call that writes and a call that reads is known"
_DIGITS = re.compile(r"\d+")


class Walk(NamedTuple):
    """A task, what is done before anything is read, the writes, and the reads around each of them."""

    task: str
    before: tuple[Op, ...]
    steps: tuple[Op, ...]
    reads: tuple[Op, ...]

    @property
    def start(self) -> tuple[Op, ...]:
        return marked((reset(self.task), *self.before))

    def until(self, step: int) -> Walk:
        """The walk whose only step is the one with this number, from 1."""
        return Walk(self.task, (*self.before, *self.steps[: step - 1]), self.steps[step - 1 : step], self.reads)


class OldRead(NamedTuple):
    """A read that does not show the step of a walk; `is_old`: it gives what it gave before the step."""

    walk: Walk
    read: Op
    is_old: bool


def kinds(ctx: AuditContext, most: int) -> list[str]:
    """Tasks whose oracles use tools that those of the others do not, then others."""
    known: dict[frozenset[str], str] = {}
    for task in dict.fromkeys((*ctx.sample_tasks(8), *(known_call.task for known_call in ctx.discovery.calls))):
        known.setdefault(frozenset(op.name for op in ctx.oracle(task) or () if op.do == "call"), task)
    return list(known.values())[:most]


# --- which writes ---


def single(ctx: AuditContext, most: int = WRITES, each: int = EACH, *, then: tuple[Op, ...] = ()) -> Iterator[Walk]:
    """Yields walks of one write, a few of each tool; reads before it are left out where it works without them.

    Reads are chosen by what the write, followed by `then`, changes.

    Raises:
        NotChecked: Nothing is known to write, or nothing to read.
    """
    acts = [known_call for known_call in ctx.discovery.calls if not seems_to_read(ctx, known_call.op.name)]
    found = 0
    for act in in_turn(acts, lambda known_call: known_call.op.name, each=2)[:most]:
        whole = tuple(map(bare, act.before))
        short = tuple(op for op in whole if not seems_to_read(ctx, op.name))
        write = bare(act.op)
        is_short = short == whole or not ctx.play(reset(act.task), *short, write.marked(WRITE)).at(WRITE).is_error
        before = short if is_short else whole
        reads = tuple(reads_about(ctx, act.task, before, steps=(write,), tries=4 * EACH, then=then))[:each]
        if reads:
            found += 1
            yield Walk(act.task, before, (write,), reads)
    if not found:
        raise NotChecked(_NO_PAIR)


def walks(ctx: AuditContext, most: int) -> Iterator[Walk]:
    """Yields walks of `most` tasks, of different kinds where oracles tell kinds apart; raises as `single` does."""
    found = 0
    for task in kinds(ctx, most):
        steps = tuple(_steps(ctx, task))
        if steps and (reads := tuple(reads_about(ctx, task, (), steps=steps))[:READS]):
            found += 1
            yield Walk(task, (), steps, reads)
    if not found:
        raise NotChecked(_NO_PAIR)


def _steps(ctx: AuditContext, task: str) -> Iterator[Op]:
    """The oracle's writes and others that are known there, each tool once before any twice; time between them."""
    acts = [bare(op) for op in doing(ctx, task) if op.do == "call" and not seems_to_read(ctx, op.name)]
    known = [known_call.op for known_call in ctx.discovery.calls if known_call.task == task and not known_call.before]
    more = [bare(op) for op in known if not seems_to_read(ctx, op.name)]
    again = [step for op in acts for step in _moved_on(ctx, op)]
    distinct = list({f"{op.name} {op.value!r}": op for op in (*acts, *more[:STEPS], *again)}.values())
    for place, op in enumerate(distinct[:STEPS]):
        yield op
        if "advance" in ctx.offers and place < len(ADVANCED):
            yield Op("advance", value=ADVANCED[place])


def _moved_on(ctx: AuditContext, op: Op) -> Iterator[Op]:
    """Yields the same write on the row after the one that its last argument names.

    The row that is left must show the move as much as the row that is reached.
    """
    for name, value in reversed(op.value.items()):
        if isinstance(value, str | int) and not isinstance(value, bool):
            names = [candidate for candidate in ctx.discovery.values.of(name) if form(candidate) == form(value)]
            if value in names and len(names) > 1:
                yield call(op.name, {**op.value, name: names[(names.index(value) + 1) % len(names)]})
            return


# --- which reads ---


def reads_about(
    ctx: AuditContext, task: str, before: Sequence[Op], *, steps: Sequence[Op], tries: int = TRIED,
    then: Sequence[Op] = (),
) -> list[Op]:  # fmt: skip
    """Reads of whatever the steps touch: those that work before or after them; the ones that change come first."""
    sees = [state(mark="state"), Op("changes", mark="changes")] if "state" in ctx.offers else []
    record = ctx.play(reset(task), *sees[:1], *before, *steps, *sees[1:])
    rows = list(_rows(record, steps))
    hot = list(dict.fromkeys(item for row in rows for item in scalars(row)))
    columns = [list(_asked(ctx, tool, hot, rows=rows)) for tool in ctx.about.tools if seems_to_read(ctx, tool.name)]
    tried = [op for column in columns for op in column[: max(3, tries // max(1, len(columns)))]]
    tried = in_turn(tried, lambda op: op.name)[: max(4, _calls(ctx) - len(before) - len(steps))]
    probes = [Probe((reset(task), *before, *some, *marked(tried))) for some in ((), (*steps, *then))]
    soon, later = ctx.play_all(probes)
    changed: list[Op] = []
    others: list[Op] = []
    for place, op in enumerate(tried):
        left, right = (each.at(f"step {place}") for each in (soon, later))
        if not (left.is_error and right.is_error):
            (changed if apart(left, right, ctx.volatile) and not right.is_error else others).append(op)
    return [*in_turn(changed, lambda op: op.name), *in_turn(others, lambda op: op.name)]


def _calls(ctx: AuditContext) -> int:
    return int(ctx.attribute("budget", 0)) or CALLS


def _rows(record: Record, steps: Sequence[Op]) -> Iterator[Any]:
    """Yields what the writes are given and answer, the old and new values they change, and its rows before."""
    for op, seen in zip(record.ops, record.seen, strict=False):
        if op in steps:
            yield from (op.value, read(seen.value))
    if record.ops[-1].do == "changes" and is_dict(changes := record.at("changes").value):
        for path, both in changes.items():
            yield from (*both, path.split("/")[1:])
        keys = dict.fromkeys(tuple(path.split("/")[:2]) for path in changes if path.count("/") > 1)
        yield from (_row(record.at("state").value, *key) for key in keys)


def _row(world: Any, name: str, key: str) -> Any:
    """The row of a table under this key, or that has it in one of its fields."""
    table = world.get(name) if is_dict(world) else None
    if is_dict(table):
        return table.get(key)
    rows = (row for row in table if is_dict(row)) if is_list(table) else ()
    return next((row for row in rows if key in map(str, row.values())), None)


def scalars(value: Any) -> Iterator[Any]:
    """Every text and whole number in plain data."""
    if is_dict(value):
        for item in value.values():
            yield from scalars(item)
    elif is_list(value):
        for element in value[:20]:
            yield from scalars(element)
    elif isinstance(value, str | int) and not isinstance(value, bool) and 0 < len(str(value)) < 200:
        yield value


def _asked(ctx: AuditContext, tool: ToolSpec, hot: Sequence[Any], *, rows: Sequence[Any]) -> Iterator[Op]:
    """A reader's calls: as known, about each row, and with each hot value that looks like what its parameters take."""
    known = [known_call.op.value for known_call in ctx.discovery.of(tool.name)]
    base: dict[str, Any] = known[0] if known else {}
    required = {name: value for name, value in base.items() if name in tool.required}
    found: dict[str, Op] = {}
    columns: list[list[dict[str, Any]]] = [[base, required] if base or not tool.required else []]
    columns[0] += [{name: _cell(tool, name, row) for name in tool.required} for row in rows if is_dict(row)]
    for name, schema in tool.properties.items():
        if not is_dict(schema):
            continue
        fitting = [item for item in _fitting(ctx, name, hot, value=base.get(name)) if fits(item, schema)]
        rest = base if name in base else required
        columns.append([{**rest, name: item} for item in (*schema.get("enum", ()), *fitting)])
    for arguments in (*columns[0], *known[1:3], *known[-4:], *(row for column in columns[1:] for row in column)):
        if all(arguments.get(name) is not None for name in tool.required):
            found.setdefault(repr(sorted(arguments.items())), call(tool.name, arguments))
    yield from found.values()


def _cell(tool: ToolSpec, name: str, row: dict[str, Any]) -> Any:
    """A row's field of a parameter's name; or the choice with which a field begins, as a moment does with its day."""
    schema: Any = tool.properties[name]
    if name in row and fits(row[name], schema, tool.parameters):
        return row[name]
    choices = [option for option in schema.get("enum") or () if isinstance(option, str) and len(option) > 3]
    return next((choice for choice in choices if any(str(value).startswith(choice) for value in row.values())), None)


def _fitting(ctx: AuditContext, name: str, hot: Sequence[Any], *, value: Any) -> list[Any]:
    """Returns the hot values of the form of a known one; words for a search parameter."""
    if name.lower() in SEARCHED:
        words = [word for item in hot if isinstance(item, str) for word in (item, *item.split())]
        return ["a", *dict.fromkeys(word for word in words if len(word) > 2)][:12]
    like = [item for item in (value, *ctx.discovery.values.of(name)[:8]) if item is not None]
    forms = {form(item) for item in like}
    return [item for item in hot if form(item) in forms] or [item for item in hot if isinstance(item, str)][:12]


def form(value: Any) -> str:
    """The type of a value; of a text with digits also what stands around them."""
    if isinstance(value, str):
        return f"text {_DIGITS.sub('0', value)}" if any(letter.isdigit() for letter in value) else "text"
    return type(value).__name__


# --- the walk ---


def parts(ctx: AuditContext, walk: Walk) -> list[Walk]:
    """The walk with so few reads each time that an episode bears them."""
    size = max(1, (_calls(ctx) - len(walk.before) - 1) // 3)
    return [walk._replace(reads=walk.reads[at : at + size]) for at in range(0, len(walk.reads), size)]


def walked(ctx: AuditContext, walk: Walk) -> list[OldRead] | None:
    """Reads that depend on earlier reads, the oldest first; None if the episode does not bear so many calls."""
    numbers = range(1, len(walk.steps) + 1)
    rounds = [marked(walk.reads, tag=f"{number} ") for number in (0, *numbers)]
    steps = [step.marked(f"write {number}") for number, step in zip(numbers, walk.steps, strict=True)]
    written = (op for number in numbers for op in (steps[number - 1], *rounds[number]))
    warm = Probe((*walk.start, *walk.reads, *rounds[0], *written))
    record, *clean = ctx.play_all(
        [warm, *(Probe((*walk.start, *steps[:number], *rounds[number])) for number in numbers)]
    )
    ctx.count_comparisons(len(walk.reads) * len(numbers))
    found: list[tuple[int, OldRead]] = []
    for number, control in zip(numbers, clean, strict=True):
        mark = steps[number - 1].mark
        if record.at(mark).is_error and not control.at(mark).is_error:
            return None
        for place, op in enumerate(walk.reads):
            after, fresh = (each.at(f"{number} {place}") for each in (record, control))
            if apart(after, fresh, ctx.volatile) and tells(op, after):
                past = [record.at(f"{past} {place}") for past in range(number)]
                repeats = [not apart(old, after, ctx.volatile) for old in past]
                rank = 0 if repeats[-1] else 1 if any(repeats) else 2
                found.append((rank, OldRead(walk.until(number), op, is_old=repeats[-1])))
    return [old for _, old in sorted(found, key=lambda row: row[0])]


# --- proofs ---


def shown(ctx: AuditContext, old: OldRead) -> Finding | None:
    """The finding that a read is old: asked once before, or twice, or among all the others."""
    if not old.is_old:
        return None
    start, (write,), reads, op = old.walk.start, old.walk.steps, old.walk.reads, old.read
    probes = [Probe((*start, *some, op.marked(NEW))) for some in ((), (write,))]
    without, brought = (record.at(NEW) for record in ctx.play_all(probes))
    if not apart(without, brought, ctx.volatile):
        return None  # It brought nothing: what differs is what the reads before did to the world.
    last = (op.marked(OLD), write.marked(WRITE), op.marked(NEW))
    title = f"{op.name} does not show what {write.name or 'the passing of time'} brought, if it was read before"
    evidence = Evidence(f"{HERE}stale", (OLD, WRITE, NEW), None, ctx.volatile)
    between = [each for step in start for each in (step, *reads)]
    for ops in ((*start, *last), (*start, op, op, *last), (*between, *reads, *last)):
        found = least(
            ctx, ops, evidence.marks, probes=lambda some: (Probe(some), Probe(alone(some))), evidence=evidence
        )
        if found and (finding := proved(ctx, title, found, evidence=evidence, mark=NEW)):
            return finding
    return None


def moved(ctx: AuditContext, old: OldRead) -> Finding | None:
    """Returns a finding if a read depends on when reads were made, in an equal world."""
    if not state_op(ctx):
        return None
    start, reads, op = old.walk.start, old.walk.reads, old.read.marked(NEW)
    write, world = old.walk.steps[0].marked(WRITE), Op(state_op(ctx), mark="step world")
    evidence = Evidence(f"{HERE}moved", (WRITE, NEW, world.mark), None, ctx.volatile)

    def probes(some: tuple[Op, ...]) -> tuple[Probe, Probe]:
        return Probe((*start, *some, write, op, world)), Probe((*start, write, *some, op, world))

    found = least(ctx, (*reads, *reads), (), probes=probes, evidence=evidence)
    what = f"what {op.name} gives after {write.name} depends on what was read before"
    return proved(ctx, f"{what}, though the world is the same", found, evidence=evidence, mark=NEW) if found else None


def proved(
    ctx: AuditContext, title: str, found: tuple[Probe, Probe], *, evidence: Evidence, mark: str
) -> Finding | None:
    """The finding that the first probe shows against the second, which is played twice."""
    wrong, right = ctx.play_all(found)
    return ctx.finding(
        title, *found, found[1], relation=evidence.relation, marks=evidence.marks, minimise=0,
        expected=right.at(mark).value, observed=wrong.at(mark).value, teaches=TEACHES,
    )  # fmt: skip
