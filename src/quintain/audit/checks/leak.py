"""Checks for leaks: hidden data of a task in bytes that an agent can read.

Everything readable is read, in several tasks alike, and searched for each task's own hidden values. What stands in
other tasks' answers as well is data; what a task shows of *its own* truth, under a label of truth, whole, at length or
encoded, is a leak. A value alone, which stands in the world because the task is about it, never is.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quintain.audit.facts.data import parsed
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call, reset
from quintain.audit.kernel.registry import relation

from . import _leak_beyond as beyond
from . import _leak_calls as calls
from . import _leak_future as logs
from . import _leak_grades as grading
from . import _leak_reading as reading
from . import _leak_secrets as secrets
from . import _leak_verdict as verdict
from ._leak_labels import labels
from ._leak_places import TEACHES, hidden_of, places, register, report, said
from ._leak_prompt import example
from ._leak_splits import splits_differ
from ._same_walks import kinds

__all__ = ["canaries", "contained", "curious", "example", "history", "readable", "splits_differ", "unshown", "untold"]


# --- relations: each states the bug ---


@relation
def shows_source(records: Sequence[Record], evidence: Evidence) -> bool:
    """An answer holds these lines, which stand in the environment's own files or process."""
    text = secrets.text_of(said(records[0].at("read")))
    return all(line in text for line in evidence.data)


@relation
def lists_answers(records: Sequence[Record], evidence: Evidence) -> bool:
    """An answer holds what two tasks or more hide, each under the task's name."""
    hidden = {name: records[0].at(f"hidden {name}") for name in evidence.data}
    if not all(result.fine for result in hidden.values()):
        return False
    stated = parsed(said(records[0].at("read")))
    return register(stated, {name: result.value for name, result in hidden.items()}) >= 2


@relation
def later(records: Sequence[Record], _evidence: Evidence) -> bool:
    """More commits are to be seen than those that lead here."""
    here, every = (set(_hashes(secrets.text_of(said(records[0].at(mark))))) for mark in ("here", "every"))
    return bool(here) and here < every


# --- checks ---


@check("semantic.no_solution_leakage", "leak", needs=("hidden", "tasks"), value=46)
def readable(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no prompt, result or error message holds the hidden data."""
    hidden = hidden_of(ctx, ctx.sample_tasks(4))
    if not hidden:
        raise ctx.not_checked("no task hides anything")
    ops: list[Op] = []
    if "call" in ctx.offers and ctx.about.tools:
        reads, odd = list(reading.reading_calls(ctx)), list(reading.odd_calls(ctx))
        ops = reading.unique([*reads, *list(reading.curious_calls(ctx))[:150], *odd[:200]])
    solving = {task: [op for op in ctx.oracle(task) or () if op.do == "call"] for task in hidden}
    honest = places(ctx, hidden, solving)
    yield from report(ctx, _after(honest, places(ctx, hidden, dict.fromkeys(hidden, ops))))


def _after(*every: Iterator[Any]) -> Iterator[Any]:
    for item in every:
        yield from item


@check("x.curious_agents_learn_nothing", "leak", needs=("hidden", "call", "tools", "tasks"), value=52)
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


@check("x.no_verdict_before_the_end", "leak", needs=("oracle", "call", "tools", "tasks"), value=26)
def untold(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no answer to a call depends on whether, or how well, the episode would be paid now."""
    looked: set[str] = set()
    for task in ctx.sample_tasks(6 if len(ctx.tasks) < 50 else 2):
        yield from verdict.verdicts(ctx, task, looked)
    for task in ctx.sample_tasks(2):
        yield from verdict.submitted(ctx, task)
    for task in kinds(ctx, 4) if "state" in ctx.offers else ():
        yield from grading.grades(ctx, task)


@check("x.solutions_are_not_shown", "leak", needs=("oracle", "call", "tools", "tasks"), value=25)
def unshown(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no declaration or answer spells out a call of the solution, or the world after it."""
    for task in ctx.sample_tasks(4):
        yield from calls.shown_calls(ctx, task)
    for task in dict.fromkeys((*kinds(ctx, 4), *ctx.sample_tasks(4))):
        yield from labels(ctx, task)
    yield from beyond.ready(ctx, ctx.sample_tasks(3))


@check("runtime.oracle_containment", "leak", needs=("call", "tasks"), value=59)
def contained(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no tool reaches the truth, the environment's own source, or its process."""
    yield from _outside(ctx)
    if "hidden" not in ctx.offers:
        return
    hidden = hidden_of(ctx, ctx.sample_tasks(3))
    files = list(reading.file_calls(ctx, reading.HIDDEN_FILES))
    if hidden:
        own = {task: reading.unique([*reading.method_calls(task), *files])[:500] for task in hidden}
        yield from report(ctx, places(ctx, hidden, own), calls_only=True)
        yield from _registers(ctx, hidden, files)


def _registers(ctx: AuditContext, hidden: dict[str, Any], files: Sequence[Op]) -> Iterator[Finding | None]:
    """Answers that list what all tasks hide."""
    task = next(iter(hidden))
    ops = reading.unique([*files, *reading.curious_calls(ctx), *reading.method_calls(task)])[:500]
    record = ctx.play(reset(task), *ops, *([Op("state", mark="state")] if "state" in ctx.offers else []))
    world = record.at("state").value if "state" in ctx.offers else None
    if register(world, hidden) >= 2:
        return
    for op, seen in zip(ops, record.seen[1:], strict=False):
        ctx.count_comparisons()
        if register(parsed(said(seen)), hidden) >= 2:
            marks = [Op("hidden", name=name, mark=f"hidden {name}") for name in hidden]
            yield ctx.finding(
                f"{op.name} lists what the tasks hide",
                Probe((*marks, reset(task), msgspec.structs.replace(op, mark="read"))),
                relation=f"{__name__}:lists_answers",
                marks=("read", *(mark.mark for mark in marks)),
                data=list(hidden),
                tasks=list(hidden),
                expected="nothing of what tasks hide",
                observed=secrets.text_of(said(seen))[:600],
                teaches=TEACHES,
                at_most="proven" if "state" in ctx.offers else "likely",
            )
            return


def _outside(ctx: AuditContext) -> Iterator[Finding | None]:
    """The environment's files and the process that it runs in."""
    sources = [Path(source.path) for source in ctx.sources[:4]]
    marks = {str(path): _lines(path) for path in sources}
    process = {"/proc/self/environ": ["PYTHONHASHSEED="], "/proc/self/cmdline": ["quintain.audit.kernel.worker"]}
    wanted = {path: lines for path, lines in marks.items() if lines} | process
    paths = [candidate for path in wanted for candidate in (path, f"file://{path}", "../" * 12 + path.lstrip("/"))]
    paths += [Path(path).name for path in marks]
    task = ctx.tasks[0]
    ops = reading.unique(list(reading.file_calls(ctx, paths)))[:400]
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
                    f"{op.name} reads {what}",
                    Probe((reset(task), msgspec.structs.replace(op, mark="read"))),
                    relation=f"{__name__}:shows_source",
                    marks=("read",),
                    data=lines,
                    expected="an error",
                    observed=text[:400],
                    teaches=TEACHES,
                )


def _lines(path: Path) -> list[str]:
    """Three long lines of a file, by which it is known."""
    try:
        lines = [line.strip() for line in path.read_text("utf-8", errors="replace").splitlines()]
    except OSError:
        return []
    plain = [line for line in lines if len(line) > 20 and not set(line) & {'"', "'", "\\"}]
    return sorted(plain, key=len)[-3:]


@check("x.history_holds_no_future", "leak", needs=("call", "tools", "tasks"), value=70)
def history(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a repository or a log contains nothing later than the start of the episode."""
    yield from logs.future(ctx)
    task = ctx.tasks[0]
    for tool, name in _texts(ctx):
        if not reading.COMMANDS.search(name.lower()):
            continue
        base = reading.base_of(ctx, tool)
        here = call(tool.name, {**base, name: "git rev-list HEAD"}, mark="here")
        every = call(tool.name, {**base, name: "git rev-list --all --reflog"}, mark="every")
        ctx.count_comparisons()
        probe = Probe((reset(task), here, every))
        if later([ctx.play_probe(probe)], Evidence("")):
            yield ctx.finding(
                f"with {tool.name}, git shows commits that are not in the history of the one the task starts from",
                probe,
                relation=f"{__name__}:later",
                marks=("here", "every"),
                part="T",
                expected="no commit but those before",
                observed="more",
                teaches="to read the fix in the repository's future",
            )
    for path in _repositories(ctx):
        ctx.count_comparisons()
        ahead = _git(path, "rev-list", "--all", "--not", "HEAD")
        if ahead and any(reading.PATHS.search(name) for _, name in _texts(ctx)):
            yield ctx.finding(
                f"the repository {path.name} beside the environment's source has commits that HEAD does not",
                part="T",
                severity="note",
                at_most="hint",
                expected="no later commits where an agent may read files",
                observed=f"{len(ahead)} commits",
                teaches="to read the fix in the repository's future",
            )


def _texts(ctx: AuditContext) -> list[tuple[ToolSpec, str]]:
    return [(tool, name) for tool in ctx.about.tools for name in reading.strings(tool)]


def _hashes(text: str) -> list[str]:
    return [word for word in text.replace("\\n", " ").replace('"', " ").split() if len(word) == 40 and _is_hex(word)]


def _is_hex(word: str) -> bool:
    return not set(word) - set("0123456789abcdef")


def _repositories(ctx: AuditContext) -> list[Path]:
    folders = {Path(source.path).resolve().parent for source in ctx.sources}
    return sorted({folder for folder in folders if (folder / ".git").exists()})


def _git(folder: Path, *arguments: str) -> list[str]:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, check=False, timeout=20)
    return done.stdout.decode(errors="replace").split() if done.returncode == 0 else []


@check("x.tasks_carry_canaries", "leak", needs=("hidden", "tasks"), value=10, severity="note")
def canaries(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that each task hides a string of its own that identifies a contaminated model."""
    hidden = hidden_of(ctx, ctx.sample_tasks(8))
    if not hidden:
        raise ctx.not_checked("no task hides anything")
    ctx.count_comparisons()
    if not any(_has_canary(value) for value in hidden.values()):
        yield ctx.finding(
            "no task carries a canary, so contamination could not be seen",
            part="T",
            at_most="hint",
            expected='a field "canary" with a random string in what each task hides',
            observed="none",
            teaches="nothing by itself; a model that has read the tasks looks like one that solves them",
        )


def _has_canary(value: Any) -> bool:
    named = any("canary" in key.lower() for path, _ in secrets.leaves(value) for key in path)
    return named or "canary" in secrets.text_of(value).lower()
