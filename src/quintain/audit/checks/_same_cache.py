"""Probes of `stale_cache`, and the proofs of their findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.check import NotChecked
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, ask, call, reset

from ._same_reads import HERE, Pair, around, writes
from ._same_scripts import alone, bare, half, marked, seems_to_read, state_op
from ._same_splits import least

TEACHES = "to distrust reads after its own writes, or to repeat writes"
DELAYS = (0.02, 0.2, 1.0)
"""Seconds that are waited after a write, one after the other."""
CLOCKS = "quintain.audit.checks._flaky_ways:"
"""Module that holds and advances clocks."""
OLD, WRITE, NEW = "old", "step write", "step new"


def pairs(ctx: AuditContext, most: int, each: int) -> list[Pair]:
    """Writes with the reads around them. Reads before a write are left out where it works without them.

    Raises:
        NotChecked: Nothing is known to write, or nothing to read.
    """
    found = [case for write in writes(ctx, most) if (case := around(ctx, write, each)).reads]
    if not found:
        raise NotChecked("no pair of a call that writes and a call that reads is known")
    bare_ones = [
        msgspec.structs.replace(item, before=tuple(op for op in item.before if not seems_to_read(ctx, op.name)))
        for item in found
    ]
    probes = [Probe((reset(item.task), *item.before, item.write.marked("write"))) for item in bare_ones]
    worked = [not record.at("write").is_error for record in ctx.play_all(probes)]
    return [short if fine else whole for short, whole, fine in zip(bare_ones, found, worked, strict=True)]


def warm(case: Pair, world: Sequence[Op]) -> tuple[Op, ...]:
    """Every read twice, the write, every read."""
    return (*_start(case), *case.reads, *case.reads, case.write.marked(WRITE), *marked(case.reads, tag="new "), *world)


def control(case: Pair, world: Sequence[Op]) -> tuple[Op, ...]:
    """The same calls, the write first."""
    return (*_start(case), case.write.marked(WRITE), *case.reads, *case.reads, *marked(case.reads, tag="new "), *world)


def _start(case: Pair) -> tuple[Op, ...]:
    return marked((reset(case.task), *case.before))


def is_stale(ctx: AuditContext, case: Pair, op: Op) -> Finding | None:
    """Returns a finding if this read gives the old answer after the write because it was made before."""
    ops = (*_start(case), op.marked(OLD), case.write.marked(WRITE), op.marked(NEW))
    return proved(
        ctx, ops, (OLD, WRITE, NEW), title=f"{op.name} does not show what {case.write.name} wrote, if it was read"
    )


def proved(ctx: AuditContext, ops: Sequence[Op], marks: tuple[str, str, str], *, title: str) -> Finding | None:
    """A finding where the ops show it, against those of them that are marked as steps alone."""
    evidence = Evidence(HERE + "stale", marks, None, ctx.volatile)

    def probes(some: tuple[Op, ...]) -> tuple[Probe, Probe]:
        return Probe(some), Probe(alone(some))

    found = least(ctx, ops, marks, probes=probes, evidence=evidence)
    return _finding(ctx, f"{title} before", found, evidence=evidence, mark=marks[2]) if found else None


def _finding(
    ctx: AuditContext, title: str, found: tuple[Probe, Probe], *, evidence: Evidence, mark: str
) -> Finding | None:
    """The finding that the first probe shows against the second, which is played twice."""
    wrong, right = ctx.play_all(found)
    return ctx.finding(
        title,
        *found,
        found[1],
        relation=evidence.relation,
        marks=evidence.marks,
        minimise=0,
        expected=right.at(mark).value,
        observed=wrong.at(mark).value,
        teaches=TEACHES,
    )


def is_moved(ctx: AuditContext, case: Pair, place: int, *, world: tuple[Op, ...]) -> Finding | None:
    """Returns a finding if this read depends on when the other reads were made, in an equal world."""
    if not world:
        return None
    op = case.reads[place].marked(NEW)
    marks = (WRITE, NEW, world[0].mark)
    evidence = Evidence(HERE + "moved", marks, None, ctx.volatile)
    start, write = _start(case), case.write.marked(WRITE)

    def probes(some: tuple[Op, ...]) -> tuple[Probe, Probe]:
        return Probe((*start, *some, write, op, *world)), Probe((*start, write, *some, op, *world))

    found = least(ctx, tuple(map(bare, (*case.reads, *case.reads))), (), probes=probes, evidence=evidence)
    title = (
        f"what {op.name} gives after {case.write.name} depends on what was read before, though the world is the same"
    )
    return _finding(ctx, title, found, evidence=evidence, mark=NEW) if found else None


# --- moments that are gone back to ---


# --- scores ---


def scored(acts: Sequence[Op], task: str, mark: str) -> Iterator[tuple[Op, ...]]:
    """An episode in which the score is asked for early: twice, at each step, and after last words that are wrong.

    What is marked is the episode without that.
    """
    first, begin, last = half(acts), reset(task, mark="step 0"), Op("score", mark=mark)
    ask = (Op("score"),)
    rest = marked(acts[len(first) :], tag="step later ")
    yield (begin, *ask, *marked(first, tag="step early "), *ask, *rest, last)
    each = [op for step in marked(acts, tag="step each ") for op in (*ask, step)]
    yield (begin, *each[: 2 * len(acts) - 1], *ask, *each[2 * len(acts) - 1 :], last)
    wrong = mistold(acts[-1]) if acts else None
    if wrong is not None:
        before = marked(acts[:-1], tag="step before ")
        yield (begin, *before, wrong.marked("step wrong"), *ask, acts[-1].marked("step right"), last)


def mistold(op: Op) -> Op | None:
    """The same words with other digits, or other letters where there are none: as long, and as many."""
    if op.do == "answer" and isinstance(op.value, str):
        return msgspec.structs.replace(op, value=misspelt(op.value))
    if op.do == "call" and is_dict(op.value):
        texts = {name: misspelt(value) for name, value in op.value.items() if isinstance(value, str)}
        return call(op.name, {**op.value, **texts}) if texts else None
    return None


def misspelt(text: str) -> str:
    """A text with other digits, or backwards where there are none: as long as before."""
    if any(letter.isdigit() for letter in text):
        return "".join(str((int(letter) + 1) % 10) if letter in "0123456789" else letter for letter in text)
    return text[::-1]


# --- time ---


def timed(case: Pair, op: Op, *, is_warm: bool, number: int) -> tuple[list[Op], list[list[Op]]]:
    """Returns the ops of a session before the wait, and those after each wait."""
    on = f"session {number}"
    asked = op.moved(on if is_warm else f"{on} before").marked(f"{number} old")
    start = [op.moved(on).marked("") for op in (reset(case.task), *case.before)]
    first = [asked] if is_warm else [*(each.moved(asked.on) for each in start), asked]
    write = case.write.moved(on).marked(f"{number} write")
    ready = [*start, *first, write, op.moved(on).marked(f"{number} soon")]
    return ready, [[op.moved(on).marked(f"{number} after {delay}")] for delay in DELAYS]


def sweep(sessions: Sequence[tuple[list[Op], list[list[Op]]]], *, wait: bool, held: bool = False) -> tuple[Op, ...]:
    """All sessions; they wait together. Where clocks are held no time passes but that, however slow the machine is."""
    ops = [ask(f"{CLOCKS}hold", mark="")] if held else []
    ops += [op for ready, _ in sessions for op in ready]
    for place in range(max(len(afterwards) for _, afterwards in sessions)):
        passing = ask(f"{CLOCKS}leap", DELAYS[place], mark="") if held else Op("wait", value=DELAYS[place])
        ops += [passing] if wait else []
        ops += [op for _, afterwards in sessions for op in afterwards[place]]
    return tuple(ops)


# --- keys ---


def confused(ctx: AuditContext, first: tuple[Op, ...], second: tuple[Op, ...], *, same_session: bool) -> Finding | None:
    """Returns a finding if the second read gives the answer of the first; both follow their own reset.

    For reads of one session, the first one's reset is the second's.
    """
    within = first[0] == second[0] and same_session
    world = (Op(state_op(ctx), mark="step world"),) if state_op(ctx) else ()
    own_values = (second[0].marked("step 0"), second[1].marked(NEW), *world)
    if not same_session:
        own_values = tuple(op.moved("b") for op in own_values)
    other_ops = (*first[:-1], first[-1].marked(OLD))
    ops = (own_values[0], other_ops[-1], *own_values[1:]) if within else (*other_ops, *own_values)
    marks = (OLD, NEW, *(op.mark for op in world))
    both = (Probe(ops), Probe(own_values))
    evidence = Evidence(HERE + "mistaken", marks, None, ctx.volatile)
    if not ctx.holds(both, evidence):
        return None
    whose = "with other arguments" if within else "in another task" if same_session else "in another session"
    return _finding(ctx, f"{second[1].name} gives the answer that it gave {whose}", both, evidence=evidence, mark=NEW)


# --- many sessions ---


# --- any order ---


def distinct(ops: Iterable[Op]) -> list[Op]:
    """Each call once."""
    return list({f"{op.name} {op.value!r}": op for op in ops}.values())
