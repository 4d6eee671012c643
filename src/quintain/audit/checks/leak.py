"""Checks for leaks: hidden data of a task in bytes that an agent can read.

Everything readable is read, in several tasks alike, and searched for each task's own hidden values. What stands in
other tasks' answers as well is data; what a task shows of *its own* truth, under a label of truth, whole, at length or
encoded, is a leak. A value alone, which stands in the world because the task is about it, never is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import msgspec

from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, reset
from quintain.audit.kernel.registry import relation

from . import _leak_beyond as beyond
from . import _leak_calls as calls
from . import _leak_future as logs
from . import _leak_reading as reading
from . import _leak_secrets as secrets
from . import _leak_verdict as verdict
from ._leak_keys import undeclared_keys
from ._leak_labels import labels
from ._leak_order import order_tells_nothing
from ._leak_places import TEACHES, hidden_of, places, report, said
from ._leak_prompt import example
from ._leak_splits import splits_differ
from ._same_walks import kinds

__all__ = [
    "contained", "curious", "example", "history", "order_tells_nothing", "readable", "splits_differ",
    "undeclared_keys", "unshown", "untold",
]  # fmt: skip


# --- relations: each states the bug ---


@relation
def shows_source(records: Sequence[Record], evidence: Evidence) -> bool:
    """An answer holds these lines, which stand in the environment's own files or process."""
    text = secrets.text_of(said(records[0].at("read")))
    return all(line in text for line in evidence.data)


# --- checks ---


@check("semantic.no_solution_leakage", "leak", needs=("hidden", "tasks"), value=23)
def readable(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no prompt, result or error message holds the hidden data."""
    hidden = hidden_of(ctx, ctx.sample_tasks(4))
    if not hidden:
        raise ctx.not_checked("no task hides anything")
    ops: list[Op] = []
    if "call" in ctx.offers and ctx.about.tools:
        known = [known.op for known in ctx.discovery.reads()]
        curious_ones, odd = islice(reading.curious_calls(ctx), 150), islice(reading.odd_calls(ctx), 200)
        # What was looked at last comes first: a call that writes says what it then shows.
        ops = reading.unique([*known[:-13:-1], *known[:60], *curious_ones, *odd])
    solving = {task: [op for op in ctx.oracle(task) or () if op.do == "call"] for task in hidden}
    yield from report(ctx, chain(places(ctx, hidden, solving), places(ctx, hidden, dict.fromkeys(hidden, ops))))


@check("x.curious_agents_learn_nothing", "leak", needs=("hidden", "call", "tools", "tasks"), value=60)
def curious(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that further reads, requests for the answer and errors reveal no hidden data, plain or encoded."""
    tasks = list(hidden_of(ctx, ctx.sample_tasks(3 if len(ctx.tasks) < 50 else 2)))
    if not tasks:
        raise ctx.not_checked("no task hides anything")
    reported = 0
    for task, hit in beyond.walked(ctx, tasks):
        finding = beyond.told_again(ctx, task, hit, other_values=tasks) if reported < 4 else None
        reported += finding is not None
        yield finding


@check("x.no_verdict_before_the_end", "leak", needs=("oracle", "call", "tools", "tasks"), value=8)
def untold(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no answer to a call depends on whether, or how well, the episode would be paid now."""
    looked: set[str] = set()
    for task in ctx.sample_tasks(6 if len(ctx.tasks) < 50 else 2):
        yield from verdict.verdicts(ctx, task, looked)
    for task in ctx.sample_tasks(2):
        yield from verdict.submitted(ctx, task)


@check("x.solutions_are_not_shown", "leak", needs=("oracle", "call", "tools", "tasks"), value=22)
def unshown(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no declaration or answer spells out a call of the solution, or the world after it."""
    for task in ctx.sample_tasks(4):
        yield from calls.shown_calls(ctx, task)
    for task in dict.fromkeys((*kinds(ctx, 4), *ctx.sample_tasks(4))):
        yield from labels(ctx, task)


@check("runtime.oracle_containment", "leak", needs=("call", "tasks"), value=40)
def contained(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no tool reaches the truth, the environment's own source, or its process."""
    yield from _outside(ctx)
    if "hidden" not in ctx.offers:
        return
    hidden, files = hidden_of(ctx, ctx.sample_tasks(3)), list(reading.file_calls(ctx, reading.HIDDEN_FILES))
    if hidden:
        own = {task: reading.unique([*reading.method_calls(task), *files])[:500] for task in hidden}
        yield from report(ctx, places(ctx, hidden, own), calls_only=True)


def _outside(ctx: AuditContext) -> Iterator[Finding | None]:
    """The environment's files and the process that it runs in."""
    marks = {str(path): _lines(path) for path in [Path(source.path) for source in ctx.sources[:4]]}
    process = {"/proc/self/environ": ["PYTHONHASHSEED="], "/proc/self/cmdline": ["quintain.audit.kernel.worker"]}
    wanted = {path: lines for path, lines in marks.items() if lines} | process
    paths = [candidate for path in wanted for candidate in (path, f"file://{path}", "../" * 12 + path.lstrip("/"))]
    paths += [Path(path).name for path in marks]
    task, ops = ctx.tasks[0], reading.unique(list(reading.file_calls(ctx, paths)))[:400]
    record = ctx.play(reset(task), *ops) if ops else None
    ctx.count_comparisons(max(1, len(ops)))
    reached: set[tuple[str, str]] = set()
    for op, seen in zip(ops, record.seen[1:] if record else (), strict=False):
        text = secrets.text_of(said(seen))
        for path, lines in wanted.items():
            if all(line in text for line in lines) and (op.name, path) not in reached:
                reached.add((op.name, path))
                what = "the environment's own source" if path in marks else "the process that runs the environment"
                yield ctx.finding(
                    f"{op.name} reads {what}", Probe((reset(task), msgspec.structs.replace(op, mark="read"))),
                    relation=f"{__name__}:shows_source", marks=("read",), data=lines, expected="an error",
                    observed=text[:400], teaches=TEACHES,
                )  # fmt: skip


def _lines(path: Path) -> list[str]:
    """Three long lines of a file, by which it is known."""
    try:
        lines = [line.strip() for line in path.read_text("utf-8", errors="replace").splitlines()]
    except OSError:
        return []
    return sorted([line for line in lines if len(line) > 20 and not set(line) & {'"', "'", "\\"}], key=len)[-3:]


@check("x.history_holds_no_future", "leak", needs=("oracle", "call", "tools", "tasks"), value=91)
def history(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no log contains anything later than the start of the episode."""
    return logs.future(ctx)
