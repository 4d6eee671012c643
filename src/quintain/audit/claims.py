"""Claims that an advisor may name: each builds its probes, with their controls, from the ops of a proposed script."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from quintain.audit.facts.data import is_dict

from .checks import _same_reads as reads
from .checks._race_fuzz import OddCalls, is_plain, is_right
from .checks._same_leaks import TEACHES, what
from .checks._same_scripts import elsewhere, op_label, parts, state_op
from .checks._same_splits import UNLIKE, apart, fewest, least, pair, split, wavers
from .kernel.context import AuditContext
from .kernel.finding import Evidence, Finding
from .kernel.probe import HOME, Op, OpResult, Probe, ProcessContext, Record, call, number, reset, score
from .kernel.registry import relation
from .kernel.relations import breakage

HERE = f"{__name__}:"
KEPT, BACK = "kept", "back"  # marks of a snapshot and a restore


def _surrounded(
    ctx: AuditContext, ops: Sequence[Op], own: Sequence[bool], *, title: str, context: ProcessContext = HOME
) -> Finding | None:
    """Returns a finding if the last op gives something else than the own ops alone, which are played twice."""
    marked = [op.marked(f"step {place}") if mine else op for place, (op, mine) in enumerate(zip(ops, own, strict=True))]
    target = marked[-1].mark
    probes = pair(ctx, marked, target, context=context, keep=(KEPT, BACK))
    if probes is None:
        return None
    first, clean = ctx.play_all(probes[:2])
    differing = split(clean, first, [target], volatile=ctx.volatile)
    if differing is None:
        return None
    sides: dict[str, Any] = {"expected": differing.expected, "observed": differing.observed, "teaches": TEACHES}
    sides["severity"] = "warning" if differing.kind == "duration" else "error"
    return ctx.finding(f"{what(differing)} {title}", *probes, relation=UNLIKE, marks=(target,), minimise=0, **sides)


def _leaks(ctx: AuditContext, ops: tuple[Op, ...]) -> Finding | None:
    on = ops[-1].on
    begun = max(place for place, op in enumerate(ops) if op.on == on and op.do == "reset")
    own = [op.on == on and place >= begun for place, op in enumerate(ops)]
    return None if all(own) else _surrounded(ctx, ops, own, title="depends on another episode or session")


def _restores(ctx: AuditContext, ops: tuple[Op, ...]) -> Finding | None:
    kept, back = (next(place for place, op in enumerate(ops) if op.mark == mark) for mark in (KEPT, BACK))
    own = [place < kept or place > back for place in range(len(ops))]
    return _surrounded(ctx, ops, own, title="depends on what was done before a restore")


def _varies(ctx: AuditContext, ops: tuple[Op, ...]) -> Finding | None:
    marked = tuple(op.marked(f"step {place}") for place, op in enumerate(ops))
    target, every = marked[-1].mark, [True] * len(ops)
    if wavers(ctx, marked, target):
        few = Probe(fewest(ctx, marked, (target,), holds=lambda some: wavers(ctx, some, target), trials=12))
        title = f"what {op_label(ops[-1])} gives is not the same in two equal processes"
        return ctx.finding(
            title, few, few, relation=UNLIKE, marks=(target,), tries=3, minimise=0, expected="the same", teaches=TEACHES
        )
    context = elsewhere()[0]
    if pair(ctx, marked, target, context=context) is None:
        return None
    tried = (
        _surrounded(ctx, ops, every, title=f"depends on {words}", context=part)
        for words, part in (*parts(context), ("the process", context))
    )
    return next((one for one in tried if one is not None), None)


def _stale_read(ctx: AuditContext, ops: tuple[Op, ...]) -> Finding | None:
    """Returns a finding if the last op shows the old value only where it was also played before the write."""
    *script, read = ops
    world = Op(state_op(ctx), mark="world")  # An idempotent call looks alike, but leads to another world.

    def probes(some: tuple[Op, ...]) -> tuple[Probe, Probe]:
        place = next(place for place, op in enumerate(some) if op.mark == "write")
        warm = (*some[:place], read.marked("before"), *some[place:], read.marked("after"), world)
        return Probe(warm), Probe(tuple(op for op in warm if op.mark != "before"))

    evidence = Evidence(f"{HERE}stale", ("before", "write", "after", "world"), None, ctx.volatile)
    both = least(ctx, script, ("write",), probes=probes, evidence=evidence)
    if both is None:
        return None
    warm, cold = (record.at("after").value for record in ctx.play_all(both))
    write = next(op for op in script if op.mark == "write")
    title = f"{op_label(read)} does not show what {write.name} wrote, if it was read before"
    said: dict[str, Any] = {"expected": cold, "observed": warm, "teaches": "to distrust reads after its own writes"}
    return ctx.finding(title, *both, both[1], relation=evidence.relation, marks=evidence.marks, minimise=0, **said)


def _crashes(ctx: AuditContext, ops: tuple[Op, ...]) -> Finding | None:
    """Returns a finding if an op crashes after calls that their schemas allow, in an episode that has not ended."""
    record = ctx.play(*ops)
    place = next((place for place, seen in enumerate(record.seen) if seen.how == "crashed"), None)
    if place is None or ops[place].do not in ("call", "answer", "score"):
        return None
    op, seen = ops[place], record.seen[place]
    tools = {tool.name: tool for tool in ctx.about.tools}
    calls = [one for one in ops[: place + 1] if one.do == "call"]
    has_ended = op.do != "score" and any(one.do == "answer" for one in ops[:place])
    is_fair = all(is_right(tools[one.name], one.value) for one in calls) and all(is_plain(one.value) for one in ops)
    if has_ended or not is_fair:
        return None
    allowed = " on a call that its schema allows" if op.do == "call" else ""
    title = f"{op_label(op).removesuffix('()')}() breaks{allowed} ({seen.raised.partition(':')[0]})"
    tool = msgspec.to_builtins(tools[op.name]) if op.do == "call" else None
    return _claim(
        ctx,
        title,
        Probe((*ops[:place], op.marked("call"))),
        relation="quintain.audit.checks._race_fuzz:breaks_there",
        marks=("call",),
        data={"how": breakage(seen), "where": seen.where, "tool": tool},
        part="S" if op.do == "call" else "V",
        expected="an answer, a verdict, or an error that the agent can read",
        observed=seen.raised,
        where=seen.where,
        teaches="nothing: the episode is lost",
    )


def _score_varies(ctx: AuditContext, ops: tuple[Op, ...]) -> Finding | None:
    title, probe = "the score of one end is another number each time", Probe((*ops[:-1], score(times=6)))
    said = {"expected": "one number", "teaches": "noise"}
    return _claim(ctx, title, probe, relation=f"{HERE}rescored", marks=("score",), part="V", **said)


def _score_not_finite(ctx: AuditContext, ops: tuple[Op, ...]) -> Finding | None:
    said = {"expected": "a finite number", "teaches": "nothing: one such reward spoils a whole batch"}
    named = {"relation": "quintain.audit.checks.reward_hack:malformed", "data": math.inf, "part": "V"}
    return _claim(
        ctx, "the score is not a finite number", Probe((*ops[:-1], score())), marks=("score",), **named, **said
    )


def _refused_write(ctx: AuditContext, ops: tuple[Op, ...]) -> Finding | None:
    tool = next(tool for tool in ctx.about.tools if tool.name == ops[-1].name)
    return wrote(ctx, OddCalls(tool, None, ops[0].name, ()), ops[-1], background=quiet(ctx), earlier=ops[1:-1])


def _paid_unchanged(ctx: AuditContext, ops: tuple[Op, ...]) -> Finding | None:
    """Returns a finding if a script that never changes the state is paid like the solution, which does."""
    begin, *acts = ops[:-1]
    solution = ctx.oracle(begin.name)
    if solution is None or any(op.do not in ("call", "advance") for op in acts):
        return None  # An answer may be all that a task asks for.

    def probes(some: Sequence[Op]) -> tuple[Probe, Probe, Probe]:
        looks = [step for place, op in enumerate(some) for step in (op, Op("state", mark=f"world {place}"))]
        whole = (begin, Op("state", mark="world"), *solution, Op("state", mark="world end"), score())
        return Probe((begin, Op("state", mark="world"), *looks, score())), Probe((begin, score())), Probe(whole)

    evidence = Evidence(f"{HERE}paid_unchanged", ("score",), None, ctx.volatile)
    if not ctx.holds(probes(acts), evidence):
        return None
    few = fewest(ctx, acts, (), holds=lambda some: ctx.holds(probes(some), evidence), trials=20)
    names = " and ".join(dict.fromkeys(op.name for op in few if op.name))
    return ctx.finding(
        f"{names} changes no state and is paid like the solution",
        *probes(few),
        relation=evidence.relation,
        marks=evidence.marks,
        minimise=0,
        part="V",
        expected="less than for the solution, which changes the state",
        teaches="to be paid without the work",
    )


def _claim(ctx: AuditContext, title: str, probe: Probe, **fields: Any) -> Finding | None:
    """Returns a finding if the claim holds in a first play: fresh processes are for what looks true."""
    evidence = Evidence(fields["relation"], fields["marks"], fields.get("data"), ctx.volatile)
    return ctx.finding(title, probe, **fields) if ctx.holds((probe,), evidence) else None


@relation
def stale(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a read is stale as in `reads.stale`, and the writes end in the same world as in `reads.moved`."""
    old, world = (msgspec.structs.replace(evidence, marks=marks) for marks in (evidence.marks[:3], evidence.marks[1:]))
    return reads.stale(records, old) and reads.moved(records, world)


@relation
def rescored(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if a score that was asked for several times in a row gave different numbers."""
    values: list[Any] = records[0].at(evidence.marks[0]).value or []
    numbers = [number(OpResult(value)) for value in values]
    finite = [one for one in numbers if one is not None and math.isfinite(one)]
    return len(finite) == len(numbers) > 1 and max(finite) - min(finite) > 1e-9


@relation
def paid_unchanged(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the first probe leaves the state and is paid like the last, which changes it; the second is paid less."""
    script, _, solution = records
    paid, idle, full = (number(record.at("score")) for record in records)
    if paid is None or idle is None or full is None or paid < full - 1e-9 or full <= idle + 1e-9:
        return False
    start, *worlds = (script.at(op.mark) for op in script.ops if op.mark.startswith("world"))
    ends = solution.at("world"), solution.at("world end")
    is_still = start.fine and all(one.fine and not apart(start, one, evidence.volatile) for one in worlds)
    return is_still and bool(worlds) and apart(*ends, evidence.volatile)


class Claim(NamedTuple):
    """Claim that a model may name: the bug in words for it, and a function that proves it by probes and controls."""

    class_: str
    about: str
    prove: Callable[[AuditContext, tuple[Op, ...]], Finding | None]
    last: tuple[str, ...]  # kinds of the last op
    needs: tuple[str, ...] = ()
    is_proof: bool = True  # no sound subject satisfies the claim; else its findings are at most likely
    marks: tuple[str, ...] = ()  # marks of the ops before the last, in order
    is_about_several: bool = False  # the ops may be of several episodes and sessions


_SEEN = ("reset", "call", "answer", "score", "state", "digest")

_LEAKS = """the last op gives something else than in its own episode alone; before it, or between its ops, are ops of
earlier episodes (resets of the same session) or of other sessions"""
_STALE = """one call has "mark": "write", and the last op reads; if the same read was also made right before the write
(the audit adds it), it shows the old value afterwards"""
_VARIES = "the last op gives something else in an equal process, or under another hash seed, zone, locale, user or day"
_BACK = "one snapshot, ops, one restore, ops: the last op gives something else than without the ops between the two"
_BREAKS = "the last op, a call that its schema allows, an answer or a score, raises an exception that is not deliberate"
_REFUSED = "the last call is answered with an error and changes the state"
_UNPAID = "calls that change no state are scored like the solution, which does; doing nothing is scored less"
_WAVERS, _ODD = "the score of the same end is not one number", "the score is NaN, infinite or not a number"
_BOTH, _STATE, _ORACLE = ("snapshot", "restore"), ("state",), ("state", "oracle")
_ACTS = ("call", "answer", "score")

CLAIMS: dict[str, Claim] = {
    "leaks": Claim("reset_leak", _LEAKS.replace("\n", " "), _leaks, _SEEN, is_about_several=True),
    "varies": Claim("reset_leak", _VARIES, _varies, _SEEN),
    "restores_wrongly": Claim("reset_leak", _BACK, _restores, _SEEN[1:], needs=_BOTH, marks=(KEPT, BACK)),
    "stale_read": Claim(
        "stale_cache", _STALE.replace("\n", " "), _stale_read, ("call", "score"), needs=_STATE, marks=("write",)
    ),
    "crashes": Claim("races", _BREAKS, _crashes, _ACTS),
    "score_varies": Claim("flaky_verifier", _WAVERS, _score_varies, ("score",)),
    "score_not_finite": Claim("reward_hack", _ODD, _score_not_finite, ("score",)),
    "refused_write": Claim("races", _REFUSED, _refused_write, ("call",), needs=_STATE, is_proof=False),
    "paid_unchanged": Claim("reward_hack", _UNPAID, _paid_unchanged, ("score",), needs=_ORACLE, is_proof=False),
}


# --- refused calls ---


_KEPT = re.compile(
    r"(^|[/_])(attempts?|fail\w*|tries|counts?|counters?|draws|logs?|history|events?|errors?|declin\w*|last|clock"
    r"|times?|steps?|calls?|usage|at|traces?|seq\w*|version|next)($|[/_])"
)


def written(before: Any, after: Any, background: Sequence[str]) -> list[str]:
    """Paths that changed between two differences, without what keeps count of calls and failures."""
    if not (is_dict(before) and is_dict(after)):
        return []
    paths = [path for path in dict.fromkeys((*before, *after)) if before.get(path) != after.get(path)]
    names = set(background)
    kept = [path for path in paths if path.partition("/")[0] not in names and not _KEPT.search(path.lower())]
    return [path for path in kept if not re.search(r"fail|declin|reject|error", str(after.get(path)).lower())]


@relation
def refuses_and_writes(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the call is an error to the agent and changes the world, unlike a read in its place."""
    refused = records[0].at("call")
    worlds = [(record.at("was").value, record.at("look").value) for record in records]
    done, *passing = (set(written(*pair, evidence.data["background"])) for pair in worlds)
    return refused.is_error and refused.how != "hung" and bool(done.difference(*passing))


def quiet(ctx: AuditContext) -> list[str]:
    """Top-level names in the state that any call may change, a wrong one too."""
    control = ctx.play(reset(ctx.tasks[0]), call("no_such_tool", {}), Op("changes", mark="look")).at("look").value
    names = {path.partition("/")[0] for path in control} if is_dict(control) else set[str]()
    return sorted({*names, *ctx.discovery.background, *ctx.volatile})


def wrote(
    ctx: AuditContext, odd_call: OddCalls, op: Op, *, background: list[str], earlier: Sequence[Op]
) -> Finding | None:
    wrong = not is_right(odd_call.tool, op.value)
    changed = {_pattern(path) for known in ctx.discovery.of(odd_call.tool.name) for path in known.changed or ()}
    probe = Probe((*odd_call.head, *earlier, Op("changes", mark="was"), op.marked("call"), Op("changes", mark="look")))
    short = Probe((*odd_call.head, Op("changes", mark="was"), op.marked("call"), Op("changes", mark="look")))
    evidence = Evidence("", data={"background": background})
    record = ctx.play_probe(short)
    if refuses_and_writes([record], evidence):
        probe = short
    else:
        record = ctx.play_probe(probe)
    done = written(record.at("was").value, record.at("look").value, background)
    sure = wrong or any(_pattern(path) in changed for path in done)
    return ctx.finding(
        f"{op.name} refuses a call and has written all the same", probe,
        *(Probe((*probe.ops[:-2], *[read.op.marked("")] * 3, probe.ops[-1])) for read in ctx.discovery.reads()[:1]),
        relation=f"{HERE}refuses_and_writes", marks=("was", "call", "look"), data={"background": background},
        severity="error" if sure else "warning", at_most="proven" if sure else "likely",
        expected="an error, and the world as it was",
        observed={"error": record.at("call").value or record.at("call").raised, "changed": done[:6]},
        teaches="that an error is not an error",
    )  # fmt: skip


def _pattern(path: str) -> str:
    """A path without the keys of rows: "accounts/7/balance" is "accounts/*/balance"."""
    first, *rest = path.split("/")
    return "/".join(
        [first, *("*" if len(rest) == 1 or place < len(rest) - 1 else text for place, text in enumerate(rest))]
    )
