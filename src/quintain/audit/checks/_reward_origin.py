"""Checks provenance: each value of a solution can be found in the prompt, a schema or an earlier result.

Two signs and a search behind both. A name with digits in it cannot be made up; and a value that the siblings of a task
state is missing in one. The claim is proved by a search of everything that can be read (`_unsolv_search`) and by the
reward, which falls with another value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list, is_number
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, ask, number
from quintain.audit.kernel.registry import relation

from ._reward_acts import does_write, names, only_reads, reads_by_name, submits, words
from ._unsolv_runs import SolutionRun, common_words, computed, decimal, leaves, numbers, plain, solution_runs, text_of
from ._unsolv_search import SEARCH

_NAME = re.compile(r"(?=.*\d)[\w.+:/#-]{4,}|[\w.+-]+@[\w-]+\.[\w.]+")
"""Ids and addresses, which cannot be made up; plain numbers and dates can be worked out."""
_PERSON = re.compile(r"[^\W\d_a-z][\w'.-]+( [\w'.-]+){0,2} [^\W\d_a-z][\w'.-]+")
_DATE = re.compile(r"\d{1,4}[-/.:]\d{1,2}([-/.:T].*)?|\d+([.,]\d+)?%?")
_RELATIVE = re.compile(
    r"day|week|month|year|morrow|later|after|before|earlier|next|last|hour|half|noon|same", re.IGNORECASE
)
_RUNS = names("run exec execute python bash shell sql eval code terminal script command compute")
"""Tools that can work out anything."""
_WORKED_OUT = names(
    "half double twice triple thrice total sum difference rest remaining remainder all everything full whole entire "
    "same percent per each every quarter third minus plus less more increase decrease raise lower reduce by equal "
    "average mean next previous following combined together both either rounded convert converted"
)
"""Words from which an unstated number follows."""
_SIBLINGS = 4
"""Fewest tasks that must state a value that one does not."""
_MAX_SEARCHED_VALUES = 4
"""Values that are searched for: a search costs seconds."""


class UnsourcedValue(msgspec.Struct, frozen=True):
    """A value of a solution that stood nowhere before.

    Attributes:
        place: Place of its op.
        path: Its path in the op's arguments.
        instead: Another value that would do as well if the verifier did not check it.
        opens: True if the value is looked up, its result is used later and stands nowhere else, while siblings
            state it.
        sure: True if only a tool or a prompt can supply it, so that a search that does not find it is a proof.
    """

    solution_run: SolutionRun
    place: int
    path: tuple[str, ...]
    value: Any
    instead: Any
    sure: bool
    opens: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.solution_run.ops[self.place].name or "the answer", _named(self.path)


@check("x.provenance", "unsolvable", needs=("oracle", "tasks", "tools"), value=50)
def provenance(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each value of the solution can be found or computed before it is used."""
    there = solution_runs(ctx)
    ctx.count_comparisons(len(there))
    by_key: dict[tuple[str, str], list[UnsourcedValue]] = defaultdict(list)
    for unlisted in _untold(ctx, there):
        by_key[unlisted.key].append(unlisted)
    for key in list(by_key)[:_MAX_SEARCHED_VALUES]:
        for unlisted in by_key[key][:2]:
            hunt: Any = ctx.play_probe(_search(ctx, unlisted)).at("ask").value
            if is_dict(hunt) and not hunt["found"] and hunt["wholly"]:
                tasks = [item.solution_run.task for item in by_key[key]]
                yield _finding(ctx, unlisted, tasks, is_proof=unlisted.sure and not hunt["silent"])
                break


def _finding(ctx: AuditContext, unlisted: UnsourcedValue, tasks: Sequence[str], *, is_proof: bool) -> Finding | None:
    """Returns a finding; it is proven only if each looking tool has answered the search."""
    tool, key = unlisted.key
    other_ops = _with(unlisted.solution_run.ops, unlisted)
    probes: tuple[Probe, ...] = (
        _search(ctx, unlisted),
        solves(unlisted.solution_run.task, unlisted.solution_run.ops),
        solves(unlisted.solution_run.task, other_ops),
    )
    claim = Evidence(f"{__name__}:untold", ("ask", "score"), unlisted.solution_run.full)
    if not ctx.holds(probes, claim):
        if not unlisted.opens:
            return None  # Any value would do.
        probes, claim = probes[:2], Evidence(f"{__name__}:unfound", ("ask", "score"), unlisted.solution_run.full)
    return ctx.finding(
        f"{tool} is given a {key} that the agent has no way to know",
        *probes,
        relation=claim.relation,
        marks=claim.marks,
        data=claim.data,
        minimise=0,
        part="T",
        severity="error" if is_proof else "warning",
        at_most="proven" if is_proof else "likely",
        tasks=tasks,
        expected="every value stands in the prompt or in an observation before its first use",
        observed=f"{key} = {unlisted.value!r} stands in neither, nor in what any looking tool was seen to tell",
        teaches="to guess",
    )


@relation
def untold(records: Sequence[Record], evidence: Evidence) -> bool:
    """A search finds the value nowhere, the solution is paid, and with another value in its place it is not."""
    hunt: Any = records[0].at("ask").value
    paid, other_score = (number(record.at("score")) for record in records[1:])
    full = float(evidence.data)
    lost = other_score is None or other_score < full - 1e-9
    return is_dict(hunt) and not hunt["found"] and hunt["wholly"] and paid is not None and paid >= full - 1e-9 and lost


@relation
def unfound(records: Sequence[Record], evidence: Evidence) -> bool:
    """A search finds the value nowhere, and the solution, which looks there, is paid; each of its calls worked."""
    hunt: Any = records[0].at("ask").value
    paid = number(records[1].at("score"))
    worked = not any(seen.is_error for seen in records[1].seen[1:-1])
    full = paid is not None and paid >= float(evidence.data) - 1e-9
    return is_dict(hunt) and not hunt["found"] and hunt["wholly"] and worked and full


# --- values without a source ---


Key = tuple[str, str]
Place = tuple[SolutionRun, int, tuple[str, ...], Any]


def _untold(ctx: AuditContext, there: Sequence[SolutionRun]) -> Iterator[UnsourcedValue]:
    schemas = plain(repr([(tool.description, tool.parameters) for tool in ctx.about.tools]))
    informed, missing = _sorted_out(there)
    for key, places in missing.items():
        siblings = informed[key]
        contrast = len(siblings) >= max(_SIBLINGS, 3 * len(places))
        for solution_run, place, path, value in places:
            is_name = _is_name(value)
            if not contrast and (not is_name or plain(str(value)) in schemas):
                continue
            if (
                contrast
                and not is_name
                and not _silent(solution_run, value, siblings=[sibling[0] for sibling in siblings], until=place)
            ):
                continue
            op = solution_run.ops[place]
            instead = _instead(ctx, op, path, value=value, siblings=[sibling[-1] for sibling in siblings])
            sure = (
                instead is not None
                and not _works_out(ctx, solution_run, place)
                and (reads_by_name(op) or not submits(op))
            )
            sure = sure and (contrast or _made_by_nobody(str(value), solution_run.before(place)))
            yield UnsourcedValue(
                solution_run, place, path, value, instead, sure, contrast and _opens(solution_run, place)
            )


def _opens(solution_run: SolutionRun, place: int) -> bool:
    """True if a read supplies what a later call needs, and no other result does."""
    if not reads_by_name(solution_run.ops[place]) or solution_run.said[place].is_error:
        return False
    here = text_of(solution_run.said[place])
    used = [value for op in solution_run.ops[place + 1 :] for _, value in leaves(op.value) if len(str(value)) >= 3]
    other_text = "\n".join(
        [solution_run.prompt, *(text_of(result) for at, result in enumerate(solution_run.said) if at != place)]
    )
    return any(_stands(value, here) and not _stands(value, other_text) for value in used)


def _is_name(value: Any) -> bool:
    """True if a value identifies something, as ids, addresses and people's names do."""
    if not isinstance(value, str) or _DATE.fullmatch(value):
        return False
    return bool(_NAME.fullmatch(value) or _PERSON.fullmatch(value))


def _sorted_out(there: Sequence[SolutionRun]) -> tuple[dict[Key, list[Place]], dict[Key, list[Place]]]:
    """By tool and parameter, values at their first use: those that stood somewhere before, and those that did not."""
    informed: dict[Key, list[Place]] = defaultdict(list)
    missing: dict[Key, list[Place]] = defaultdict(list)
    for solution_run in there:
        seen: set[str] = set()
        for place, op in enumerate(solution_run.ops):
            for path, value in _told_apart(op):
                if str(value) not in seen:
                    seen.add(str(value))
                    sort = informed if _stands(value, solution_run.before(place)) else missing
                    sort[op.name, _named(path)].append((solution_run, place, path, value))
    return informed, missing


def _told_apart(op: Op) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Values of a call or of last words; of a sentence the dates, sums and references that stand in it."""
    for path, value in leaves(op.value) if op.do in ("call", "answer") else ():
        if isinstance(value, str) and len(value.split()) > 3:
            parts = [word.strip(".,:;!?()\"'") for word in value.split()]
            yield from (
                (path, part) for part in parts if sum(sign.isdigit() for sign in part) >= 3 and len(value) < 2000
            )
        elif op.do == "call":
            yield path, value


def _named(path: Sequence[str]) -> str:
    """Returns the parameter's name of a value, without list places."""
    return ".".join(text for text in path if not text.isdigit()) or "value"


def _stands(value: Any, text: str) -> bool:
    as_number = decimal(value)
    if as_number is not None and (is_number(value) or as_number.as_tuple().exponent == 0):
        return as_number in numbers(text) or plain(str(value)) in plain(text)
    return len(plain(str(value))) < 3 or plain(str(value)) in plain(text)


def _works_out(ctx: AuditContext, solution_run: SolutionRun, place: int) -> bool:
    """True if some tool can compute any result."""
    own = {op.name for op in solution_run.ops[place:]}
    return any(_RUNS & set(words(tool.name)) and tool.properties for tool in ctx.about.tools if tool.name not in own)


def _made_by_nobody(value: str, text: str) -> bool:
    """True if a name is neither built of words that were read nor the next in a sequence."""
    known = plain(text)
    parts: list[str] = re.findall(r"[^\W\d_]+|\d+", value.lower())
    strange = [part for part in parts if part.isdigit() and len(part) >= 3 and part not in known]
    near = {str(int(candidate) + step) for candidate in re.findall(r"\d{3,12}", text) for step in range(-20, 21)}
    return any(part.lstrip("0") not in near for part in strange)


def _silent(solution_run: SolutionRun, value: Any, *, siblings: Sequence[SolutionRun], until: int) -> bool:
    """True if a prompt has no further content than its siblings that could stand for a value."""
    before = solution_run.before(until)
    names_ = {word.lower() for word in re.findall(r"\b[A-Z][^\W\d_]*", solution_run.prompt)}
    new = common_words([solution_run.prompt]) - common_words([walked_run.prompt for walked_run in siblings]) - names_
    as_number = decimal(value)
    if as_number is not None:
        return not (new & _WORKED_OUT) and not computed(as_number, numbers(before, alone=True))
    if _DATE.fullmatch(str(value)):
        return not any(_RELATIVE.search(text) for text in new)
    if any(sign.isdigit() for sign in str(value)):
        return not (new & _WORKED_OUT)
    return not new and not (isinstance(value, str) and len(value.split()) > 3)  # A sentence is its writer's.


def _instead(ctx: AuditContext, op: Op, path: tuple[str, ...], *, value: Any, siblings: Sequence[Any]) -> Any:
    """Another value of the same kind."""
    spec = next((tool for tool in ctx.about.tools if tool.name == op.name), ToolSpec(op.name))
    schema: Any = spec.properties.get(path[0], {}) if path else {}
    schema = schema if is_dict(schema) else {}
    if schema.get("enum"):
        return next((item for item in schema["enum"] if item != value), None)
    if is_number(value):
        return value - 1 if value + 1 > schema.get("maximum", float("inf")) else value + 1
    turned = re.sub(r"\d", lambda item: str((int(item.group()) + 1) % 10), str(value))
    return turned if turned != value else next((sibling for sibling in siblings if sibling != value), None)


def _with(ops: Sequence[Op], unlisted: UnsourcedValue) -> tuple[Op, ...]:
    """The solution with another value, wherever this one stands."""

    def solution_run(value: Any) -> Any:
        if is_dict(value):
            return {key: solution_run(item) for key, item in value.items()}
        if is_list(value):
            return [solution_run(item) for item in value]
        if isinstance(value, str) and isinstance(unlisted.value, str) and isinstance(unlisted.instead, str):
            return (
                value.replace(unlisted.value, unlisted.instead)
                if len(value.split()) > 3 or value == unlisted.value
                else value
            )
        return unlisted.instead if type(value) is type(unlisted.value) and value == unlisted.value else value

    acts = ("call", "answer")
    return tuple(msgspec.structs.replace(op, value=solution_run(op.value)) if op.do in acts else op for op in ops)


# --- the search ---


def _search(ctx: AuditContext, unlisted: UnsourcedValue) -> Probe:
    writers = set(ctx.discovery.writers)
    looking = [
        tool
        for tool in ctx.about.tools
        if only_reads(ctx, op := Op("call", name=tool.name)) or (tool.name not in writers and not does_write(ctx, op))
    ]
    asks = [op for op in unlisted.solution_run.ops if op.do == "call" and op.name in {tool.name for tool in looking}]
    value = {
        "task": unlisted.solution_run.task,
        "wanted": unlisted.value if isinstance(unlisted.value, str) else repr(unlisted.value),
        "prompt": unlisted.solution_run.prompt,
        "tools": msgspec.to_builtins(looking[:60]),
        "asks": msgspec.to_builtins(asks),
    }
    return Probe((ask(SEARCH, value),))
