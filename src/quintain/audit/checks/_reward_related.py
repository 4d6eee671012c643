"""Checks of rows beside those that a solution names: damage to them, and the same work on them."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.acts import TALKS, Path, does_write, giving, is_bookkeeping, names, only_reads, scalars, words
from quintain.audit.facts.data import is_dict, is_list, is_number, tabled
from quintain.audit.facts.generate import one as drawn
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, ask, call, reset, state
from quintain.audit.kernel.registry import probe_function

from ._reward_changed import stated
from ._reward_runs import SURE, UNSURE, Run, Solution, claim, lacking, paid, paid_of, pays, runs, survives
from ._same_walks import kinds


@check("x.another_record", "reward_hack", needs=("oracle", "state", "tasks"), value=7)
def another_record(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the same work on another record than the named one is paid less."""
    for solution in paid(ctx, 5):
        if solution.answers and pays(solution, *runs(ctx, solution, [solution.answers])):
            continue  # A question: its calls only look, and may open what they like.
        named, prompt = families(ctx, solution).items(), solution.prompt
        by_id = [pair for pair in named if stated("id", pair[0], prompt, schema={})][:3]
        by_label = [pair for pair in named if pair not in by_id and _is_described(pair[1], prompt)][:3]
        for name, family in (*by_id, *by_label):
            own = [place for place in solution.writes if name in map(str, scalars(solution.ops[place].value))]
            ways = list(_elsewhere(solution, name, family)) if own else []
            tried = zip(ways, runs(ctx, solution, ways), strict=True)
            worked = [(way, run) for way, run in tried if not set(run.errors) - set(solution.errors)]
            ctx.count_comparisons(len(worked))
            if (name, family) in by_label and all(pays(solution, run) for _, run in worked):
                continue  # Which record it is does not matter, so that its label may stand in the prompt by chance.
            for way, run in [pair for pair in worked if survives(solution, pair[1])][:1]:
                lacks = lacking(solution, run, [path for place in own for path in solution.effects.get(place, ())])
                writes = {solution.ops[place].name for place in own}
                marked = [op.marked(f"other {at}") if op.name in writes else op for at, op in enumerate(way)]
                yield claim(
                    ctx, solution, marked, title=f"the same work on another row of {family.table} is paid in full",
                    lacks=lacks, minimise=20, expected=f"less than {solution.full:g}: the task is about {name}",
                    observed=run.score, teaches="the right action on any record",
                ) if lacks else None  # fmt: skip


_LABELS = names("name title label subject")
_OPEN = re.compile(r"\b(any|either|whichever|or|some\w*)\b", re.IGNORECASE)


def _is_described(family: Family, prompt: str) -> bool:
    """True if a prompt has the label of a row, and words that fit no other row."""
    texts = {key: value for key, value in family.own.items() if isinstance(value, str) and len(value) >= 3}
    said = {key for key, value in texts.items() if stated(key, value, prompt, schema={"enum": 1})}
    others = (*family.related, *family.namesakes)
    alike = [one for one in others if all(one.row.get(key) == family.own[key] for key in said)]
    return not alike and not _OPEN.search(prompt) and any(_LABELS & set(words(key)) for key in said)


def _elsewhere(solution: Solution, name: str, family: Family) -> Iterator[tuple[Op, ...]]:
    """Ways that do the same to siblings: those first that are most alike, and have the fewest parts."""

    def rank(related: RelatedRow) -> tuple[int, int]:
        alike = [key for key, value in related.row.items() if not _is_many(value) and value == family.own.get(key)]
        return -len(alike), sum(len(value) for value in related.row.values() if _is_many(value))

    for related in sorted((*family.namesakes, *family.related), key=rank)[:12]:
        way = tuple(translated(solution, name, family.own, related_row=related))
        if way and way != solution.ops:
            yield way


def _is_many(value: Any) -> bool:
    return is_dict(value) or is_list(value)


def translated(solution: Solution, name: str, own: Any, *, related_row: RelatedRow) -> Iterator[Op]:
    """Yields the solution, as it reads when it is about another row."""
    others: dict[str, Any] = {
        str(value): related_row.row.get(key)
        for key, value in own.items()
        if not _is_many(value) and len(str(value)) >= 3 and not stated(key, value, solution.prompt, schema={"enum": 1})
    }
    others = {key: value for key, value in others.items() if value is not None} | {name: related_row.name}
    for _, group in itertools.groupby(solution.ops, key=lambda op: (op.do, op.name, tuple(op.value or ()))):
        ops = list(group)
        through = _gone_through(ops, own)
        if through is None:
            yield from (_said_of(op, others) for op in ops)
            continue
        field, columns = through
        for part in _parts(related_row.row.get(field)):
            given = {key: part[column] for key, column in columns.items() if column in part}
            yield giving(_said_of(ops[0], others), **given)


def _said_of(op: Op, others: dict[str, Any]) -> Op:
    """An op that says other words in the place of old ones."""

    def replaced(value: Any) -> Any:
        if is_dict(value):
            return {key: replaced(item) for key, item in value.items()}
        if is_list(value):
            return [replaced(item) for item in value]
        return value if isinstance(value, bool) else others.get(str(value), value)

    return msgspec.structs.replace(op, value=replaced(op.value)) if op.do == "call" else op


def _parts(many: Any) -> list[dict[str, Any]]:
    """The parts of a field: rows as they are, pairs of a dict and plain things under "key" and "value"."""
    if is_dict(many):
        return [{"key": key, "value": value} for key, value in many.items()]
    return [item if is_dict(item) else {"value": item} for item in many] if is_list(many) else []


def _gone_through(ops: Sequence[Op], own: Any) -> tuple[str, dict[str, str]] | None:
    """The field whose parts a run of calls goes through, and which argument is which of a part's columns."""
    for field, many in own.items() if ops[0].do == "call" else ():
        parts, columns = _parts(many), dict[str, str]()
        for key, column in itertools.product(ops[0].value, parts[0]) if parts and len(parts) == len(ops) else ():
            pairs = zip(ops, parts, strict=True)
            if key not in columns and all(op.value.get(key) == part.get(column) for op, part in pairs):
                columns[key] = column
        if columns:
            return field, columns
    return None


_TASKS = 4  # Tasks in which damage is done, of different kinds where there are any.
_MAX_DAMAGES = 24  # Damages that are tried in one task.


@check("x.collateral_damage", "reward_hack", needs=("oracle", "state", "tasks"), value=18, severity="warning")
def collateral_damage(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a solution that also destroys other records is paid less."""
    soft: tuple[Solution, tuple[Op, list[Path]]] | None = None
    for solution in paid_of(ctx, tuple(dict.fromkeys((*kinds(ctx, _TASKS), *ctx.sample_tasks(_TASKS))))[:_TASKS]):
        damages, forbids = _damages(ctx, solution), forbids_more(solution.prompt)
        looks = [op for op in solution.acts if only_reads(ctx, op)][:1]
        every = runs(ctx, solution, [(*solution.acts, op, *solution.answers) for op in (*damages, *looks)])
        tried, looked = every[: len(damages)], every[len(damages) :]
        ctx.count_comparisons(len(damages))
        hurt: list[tuple[Op, list[Path]]] = []
        passing = _passing(damages, tried) | {path[:2] for run in looked for path in run.touched}
        for damage, run in zip(damages, tried, strict=True):
            is_grave = _is_grave(damage)
            rows = _hurt(solution, run, is_forbidden=is_grave or (forbids and not _SCRATCH & set(words(damage.name))))
            # Who is logged in, say, is a field outside all tables and not a record.
            rows = [path for path in rows if path not in passing and (is_grave or len(path) > 1)]
            hurt += [(damage, rows)] if rows else []
        grave = [pair for pair in hurt if _is_grave(pair[0])]
        if not grave and hurt and forbids:
            grave = [pair for pair in hurt if pair[0].name in _counted(ctx)]
        if grave:
            yield _damaged(ctx, solution, grave[0], **SURE)
            return
        soft = soft or ((solution, hurt[0]) if hurt else None)
    if soft is not None:
        yield _damaged(ctx, *soft, **UNSURE)


def _passing(damages: Sequence[Op], tried: Sequence[Run]) -> set[Path]:
    """Returns the rows that time changes: at least two tools touch them, whatever they are called with."""
    touched: dict[str, list[set[Path]]] = defaultdict(list)
    for damage, run in zip(damages, tried, strict=True):
        if run.touched:
            touched[damage.name].append({path[:2] for path in run.touched})
    always = [set[Path].intersection(*runs_) for runs_ in touched.values() if len(runs_) > 1]
    return {row for one, other in itertools.combinations(always, 2) for row in one & other}


def _counted(ctx: AuditContext) -> frozenset[str]:
    """Returns the tools whose calls a verifier counts: a solution without one of them is paid less."""

    def find(own: AuditContext) -> frozenset[str]:
        found = set[str]()
        for solution in paid_of(own, own.sample_tasks(2 * _TASKS)):
            tried = runs(own, solution, [solution.without(place) for place in solution.writes])
            pairs = zip(solution.writes, tried, strict=True)
            found |= {solution.ops[place].name for place, run in pairs if not pays(solution, run)}
        return frozenset(found)

    return ctx.once(("counted tools",), find)


def _hurt(solution: Solution, run: Run, *, is_forbidden: bool) -> list[Path]:
    """Rows that the solution does not touch and the damage does, where it was paid like without.

    A row that is new does no harm, unless nothing else was to be done, or what is done is grave.
    """
    if not pays(solution, run) or run.lacks:
        return []
    harmless = {*solution.changed, *(() if is_forbidden else run.made)}
    beside = {"shared", *solution.drafts}  # Time and timers are the framework's, and a draft is published by now.
    touched = [path for path in run.touched if path[0] not in beside]
    strange = {path[:2] for path in touched if path not in harmless and not is_bookkeeping(path, solution.contents)}
    return sorted(strange - {path[:2] for path in solution.changed})


def _damaged(ctx: AuditContext, solution: Solution, hurt: tuple[Op, list[Path]], **sure: Any) -> Finding | None:
    damage, rows = hurt
    return claim(
        ctx, solution, (*solution.acts, damage.marked("damage"), *solution.answers), minimise=0, **sure,
        title="records that have nothing to do with the task are destroyed or made, and the pay is the same",
        observed={"score": solution.full, "changed beside": ["/".join(path) for path in rows][:6]},
        teaches="that damage costs nothing",
    )  # fmt: skip


_HARMS = names(
    "delete remove cancel clear purge wipe close refund archive deactivate overwrite reset void scrap discard freeze "
    "merge transfer pay ship reject terminate suspend revoke"
)
_HARMS_BY_SUMS = names("move grant issue charge drop")
"""So much of something does harm; what is a lamp, a phone or a pin may be moved, charged and dropped."""
_OWN = names(
    "tab tabs window windows view views filter filters cursor selection draft drafts cart basket session cache screen "
    "dialog menu page timer timers alarm alarms history clipboard pin pins bookmark bookmarks notification "
    "notifications reminder reminders zoom form search scratchpad"
)
"""Words of tools for session-local state, which belongs to the agent alone."""
_SCRATCH = names("note notes remember memo memory log think plan todo wait sleep run test check")
"""Words of tools by which an agent writes something down for itself."""


def _is_grave(op: Op) -> bool:
    is_sum = any(is_number(scalar) for scalar in scalars(op.value))
    return _may_harm(op) and bool(is_sum or _HARMS & set(words(op.name)))


def _may_harm(op: Op) -> bool:
    said = set(words(op.name))
    return not said & _OWN and bool(said & (_HARMS | _HARMS_BY_SUMS))


def _damages(ctx: AuditContext, solution: Solution) -> list[Op]:
    """Calls that destroy or change rows which the solution never speaks of: the gravest first, each tool in turn."""
    own_values = {str(value) for op in solution.ops for value in scalars(op.value)}
    known = families(ctx, solution)
    by_tool: dict[str, list[Op]] = defaultdict(list)
    for write in ctx.discovery.writes():
        values = {str(value) for value in scalars(write.op.value)}
        is_other = write.task != solution.task and not write.before and not values & own_values
        by_tool[write.op.name] += [write.op] if is_other and not only_reads(ctx, write.op) else []
    for tool in ctx.about.tools:
        op = call(tool.name)
        if only_reads(ctx, op) or not (does_write(ctx, op) or _may_harm(op) or tool.name in ctx.discovery.writers):
            continue
        by_tool[tool.name][:0] = list(_aimed(ctx, solution, tool, known=known))
        if len(tool.required) == 1:
            named = [one for one in ctx.discovery.values.of(tool.required[0]) if str(one) not in own_values]
            by_tool[tool.name] += [call(tool.name, {tool.required[0]: value}) for value in named[:4]]
    acts = [ops for name, ops in by_tool.items() if not TALKS & set(words(name))]
    ranked = sorted(acts, key=lambda ops: not any(map(_is_grave, ops)))
    return [ops[place] for place in range(8) for ops in ranked if place < len(ops)][:_MAX_DAMAGES]


def _aimed(ctx: AuditContext, solution: Solution, tool: ToolSpec, *, known: dict[str, Family]) -> Iterator[Op]:
    """Yields calls of a tool on rows outside the solution: names from the same tables, other arguments as they fit."""
    used: dict[str, Any] = next((op.value for op in solution.ops if op.name == tool.name), dict[str, Any]())
    for key, value in used.items():  # The solution's own call, on rows that one could take for those that it names.
        sakes = known[str(value)].namesakes if str(value) in known else ()
        names_ = [row.name for row in sakes if str(row.name) not in known]
        yield from (call(tool.name, {**used, key: name}) for name in names_[:3])
    for number in range(4):
        given: dict[str, Any] = {}
        for place, key in enumerate(tool.required):
            family = _kind(solution, key, known)
            if family is not None and family.related:
                # Two names of one call are two rows.
                given[key] = family.related[(3 * number + place) % len(family.related)].name
            else:
                schema, values = tool.properties.get(key, {}), ctx.discovery.values
                value = drawn(schema, values, ctx.rng, name=key, root=tool.parameters)
                given[key] = used.get(key, value)
        if {str(value) for value in given.values()} - {str(own) for own in used.values()}:
            yield call(tool.name, given)


def _kind(solution: Solution, key: str, known: dict[str, Family]) -> Family | None:
    """Returns the table whose rows an argument of this name identifies, from the solution's calls or table names."""
    named = [str(op.value.get(key)) for op in solution.ops if op.do == "call"]
    if found := next((known[name] for name in named if name in known), None):
        return found
    stem = next((word for word in words(key) if len(word) > 2 and word not in ("key", "name", "number")), "")
    return next((family for family in known.values() if stem and family.table.lower().startswith(stem)), None)


_MAX_ROWS = 40  # Rows of one kind that are reported.
_MAX_KIND_VALUES = 6  # Values of a field that tells kinds of rows apart, and rows of each.
_SAKES = 8  # Rows that share a text, of which more say nothing of each other.
_WORD = re.compile(r"[^\W\d_]{3}")  # Part of a text that is a name, and neither a time nor a number.


class RelatedRow(msgspec.Struct, frozen=True):
    """A row of the same table, and what names it, as the solution names its own."""

    name: Any
    row: Any


class Family(msgspec.Struct, frozen=True):
    """A row that a solution names, and others of its table.

    Attributes:
        table: Where they stand.
        own: The row itself.
        namesakes: Those of the others of which a text, such as the name of a person, is one of few rows, and of this.
    """

    table: str
    own: Any
    related: tuple[RelatedRow, ...]
    namesakes: tuple[RelatedRow, ...] = ()


def families(ctx: AuditContext, solution: Solution) -> dict[str, Family]:
    """Returns a family by each name in a solution that names a row of the start state."""
    given = [value for op in solution.ops for value in scalars(op.value) if isinstance(value, str | int)]
    found = {str(value): value for value in given if not isinstance(value, bool) and 2 <= len(str(value)) <= 60}
    asked = {"task": solution.task, "names": list(found.values())}
    seen = ctx.play_probe(Probe((ask(f"{__name__}:look", asked),))).at("ask")
    return msgspec.convert(seen.value, dict[str, Family]) if seen.fine else {}


@probe_function
def look(player: Player, on: str, value: Any) -> Any:
    """Returns, in the child, the families of these names in the start state of a task."""
    player.do(reset(value["task"], on=on))
    tables = list(_tables(player.do(state(on=on)).value))
    found = {str(name): family for name in value["names"] if (family := _family(name, tables)) is not None}
    return msgspec.to_builtins(found)


def _tables(world: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every table: its name, and its rows by key; keys of a list of rows are their places, with a space before."""
    world = tabled(world)
    for name, table in (world if is_dict(world) else {}).items():
        rows: dict[str, Any] = {f" {place}": row for place, row in enumerate(table)} if is_list(table) else table
        if is_dict(rows) and len(rows) > 1 and all(is_dict(row) for row in rows.values()):
            yield str(name), rows


def _family(name: Any, tables: Sequence[tuple[str, dict[str, Any]]]) -> Family | None:
    for table, rows in tables:
        known: dict[Any, Any] = rows
        if name not in rows:
            fields = [key for row in rows.values() for key, value in row.items() if value == name]
            keyed = [by for key in fields if len(by := _by_field(rows, key)) == len(rows)]
            known = keyed[0] if keyed else {}
        if name in known:
            others = [RelatedRow(key, row) for key, row in known.items() if key != name]
            return _whole(table, RelatedRow(name, known[name]), others, tables=tables)
    return None


def _by_field(rows: dict[str, Any], field: str) -> dict[Any, Any]:
    return {row[field]: row for row in rows.values() if isinstance(row.get(field), str | int | float)}


def _whole(
    table: str, own: RelatedRow, other_rows: Sequence[RelatedRow], *, tables: Sequence[tuple[str, dict[str, Any]]]
) -> Family:
    """A family, each row together with those of other tables that belong to it."""
    sakes = _namesakes(own, other_rows)
    chosen = [own, *_spread(own, other_rows), *sakes]
    parts: dict[Any, dict[str, list[Any]]] = {each.name: defaultdict(list) for each in chosen}
    for other_table, row in ((name, row) for name, rows in tables if name != table for row in rows.values()):
        for name in {value for value in row.values() if isinstance(value, str | int)} & parts.keys():
            parts[name][other_table] += [row] if len(parts[name][other_table]) < 12 else []
    whole = [RelatedRow(each.name, {**parts[each.name], **each.row}) for each in chosen]
    near = len(whole) - len(sakes)
    return Family(table, whole[0].row, tuple(whole[1:near]), tuple(whole[near:]))


def _namesakes(own: RelatedRow, other_rows: Sequence[RelatedRow]) -> list[RelatedRow]:
    """Rows with a text of the own one, however it is written, that only few rows have."""
    found: dict[str, RelatedRow] = {}
    for field, own_value in own.row.items():
        if isinstance(own_value, str) and _WORD.search(own_value):
            alike = [each for each in other_rows if _plain(each.row.get(field)) == _plain(own_value)]
            if len(alike) <= min(_SAKES, len(other_rows) // 4):
                found |= {repr(each.name): each for each in alike}
    return list(found.values())[:_SAKES]


def _plain(value: Any) -> str:
    return " ".join(value.split()).casefold() if isinstance(value, str) else ""


def _spread(own: RelatedRow, other_rows: Sequence[RelatedRow]) -> list[RelatedRow]:
    """Rows from all over the table, and some for each other value of a field that has few."""
    chosen = list(other_rows[:: max(1, len(other_rows) // _MAX_ROWS)][:_MAX_ROWS])
    for field, own_value in own.row.items():
        values = {value for each in other_rows if isinstance(value := each.row.get(field), str)}
        for value in sorted(values) if isinstance(own_value, str) and len(values) <= _MAX_KIND_VALUES else ():
            alike = [each for each in other_rows if each.row.get(field) == value and each not in chosen]
            chosen += alike[:_MAX_KIND_VALUES]
    return chosen


_NOTHING_ELSE = re.compile(
    r"(nothing|anything|no other|any other|everything) (else|\w+)?|leave .{0,40}\b(alone|untouched|unchanged|as)\b"
    r"|\bleave (all|any|every|the|each)? ?(others?|rest|remaining)\b"
    r"|\bonly\b.{0,30}\bchange|and no more\b",
    re.IGNORECASE,
)


def forbids_more(text: str) -> bool:
    """True if a prompt forbids changes beyond the request."""
    return bool(_NOTHING_ELSE.search(text))
