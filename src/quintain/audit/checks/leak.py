"""Leaks: what a task hides, in bytes that an agent can read.

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

from quintain.audit.check import check
from quintain.audit.data import parsed
from quintain.audit.finding import Evidence, Finding
from quintain.audit.handle import ToolSpec
from quintain.audit.lab import Lab
from quintain.audit.probe import Op, Probe, Record, call, reset

from . import _leak_beyond as beyond
from . import _leak_calls as calls
from . import _leak_future as logs
from . import _leak_grades as grading
from . import _leak_names as names
from . import _leak_order as placing
from . import _leak_reading as reading
from . import _leak_secrets as secrets
from . import _leak_verdict as verdict
from ._leak_labels import labels
from ._leak_places import TEACHES, hidden_of, places, register, report, said, unlike, want
from ._same_walks import kinds

TELLING = "quintain.audit.checks._leak_places:shows_hidden"


# --- relations: each states the bug ---


def shows_source(records: Sequence[Record], evidence: Evidence) -> bool:
    """An answer holds these lines, which stand in the environment's own files or process."""
    text = secrets.text_of(said(records[0].at("read")))
    return all(line in text for line in evidence.data)


def lists_answers(records: Sequence[Record], evidence: Evidence) -> bool:
    """An answer holds what two tasks or more hide, each under the task's name."""
    hidden = {name: records[0].at(f"hidden {name}") for name in evidence.data}
    if not all(one.fine for one in hidden.values()):
        return False
    told = parsed(said(records[0].at("read")))
    return register(told, {name: one.value for name, one in hidden.items()}) >= 2


def later(records: Sequence[Record], _evidence: Evidence) -> bool:
    """More commits are to be seen than those that lead here."""
    here, every = (set(_hashes(secrets.text_of(said(records[0].at(mark))))) for mark in ("here", "every"))
    return bool(here) and here < every


# --- checks ---


@check("semantic.no_solution_leakage", "leak", needs=("hidden", "tasks"), value=72)
def readable(lab: Lab) -> Iterator[Finding | None]:
    """Nothing that an agent is told, reads, or is answered by an error holds what the task hides."""
    hidden = hidden_of(lab, lab.some(4))
    if not hidden:
        raise lab.none("no task hides anything")
    ops: list[Op] = []
    if "call" in lab.offers and lab.about.tools:
        reads, odd = list(reading.reading_calls(lab)), list(reading.odd_calls(lab))
        ops = reading.unique([*reads, *list(reading.curious_calls(lab))[:150], *odd[:200]])
    solving = {task: [op for op in lab.oracle(task) or () if op.do == "call"] for task in hidden}
    honest = places(lab, hidden, solving)
    yield from report(lab, _after(honest, places(lab, hidden, dict.fromkeys(hidden, ops))))


def _after(*every: Iterator[Any]) -> Iterator[Any]:
    for one in every:
        yield from one


@check("x.curious_agents_learn_nothing", "leak", needs=("hidden", "call", "tools", "tasks"), value=68)
def curious(lab: Lab) -> Iterator[Finding | None]:
    """Whoever reads on, asks for the answer, or errs, meets nothing hidden, not even in a code."""
    tasks = list(hidden_of(lab, lab.some(3 if len(lab.tasks) < 50 else 2)))
    if not tasks:
        raise lab.none("no task hides anything")
    told = 0
    for task, hit in beyond.walked(lab, tasks):
        finding = beyond.told_again(lab, task, hit, others=tasks) if told < 4 else None
        told += finding is not None
        yield finding


@check("x.no_verdict_before_the_end", "leak", needs=("oracle", "call", "tools", "tasks"), value=52)
def untold(lab: Lab) -> Iterator[Finding | None]:
    """No answer to a call depends on whether, or how well, the episode would be paid now."""
    looked: set[str] = set()
    for task in lab.some(6 if len(lab.tasks) < 50 else 2):
        yield from verdict.verdicts(lab, task, looked)
    for task in lab.some(2):
        yield from verdict.submitted(lab, task)
    for task in kinds(lab, 4) if "state" in lab.offers else ():
        yield from grading.grades(lab, task)


@check("x.solutions_are_not_shown", "leak", needs=("oracle", "call", "tools", "tasks"), value=50)
def unshown(lab: Lab) -> Iterator[Finding | None]:
    """No declaration and no answer spells out a call that solves the task, or what the world is to become."""
    for task in lab.some(4):
        yield from calls.shown_calls(lab, task)
    for task in dict.fromkeys((*kinds(lab, 4), *lab.some(4))):
        yield from labels(lab, task)
    yield from beyond.ready(lab, lab.some(3))


@check("runtime.oracle_containment", "leak", needs=("call", "tasks"), value=70)
def contained(lab: Lab) -> Iterator[Finding | None]:
    """No tool reaches the truth, the environment's own source, or the process that it runs in."""
    yield from _outside(lab)
    if "hidden" not in lab.offers:
        return
    hidden = hidden_of(lab, lab.some(3))
    files = list(reading.file_calls(lab, reading.HIDDEN_FILES))
    if hidden:
        own = {task: reading.unique([*reading.method_calls(task), *files])[:500] for task in hidden}
        yield from report(lab, places(lab, hidden, own), calls_only=True)
        yield from _registers(lab, hidden, files)


def _registers(lab: Lab, hidden: dict[str, Any], files: Sequence[Op]) -> Iterator[Finding | None]:
    """Answers that list what all tasks hide."""
    task = next(iter(hidden))
    ops = reading.unique([*files, *reading.curious_calls(lab), *reading.method_calls(task)])[:500]
    record = lab.play(reset(task), *ops, *([Op("state", mark="state")] if "state" in lab.offers else []))
    world = record.at("state").value if "state" in lab.offers else None
    if register(world, hidden) >= 2:
        return
    for op, seen in zip(ops, record.seen[1:], strict=False):
        lab.looking()
        if register(parsed(said(seen)), hidden) >= 2:
            marks = [Op("hidden", name=name, mark=f"hidden {name}") for name in hidden]
            yield lab.finding(
                f"{op.name} lists what the tasks hide",
                Probe((*marks, reset(task), msgspec.structs.replace(op, mark="read"))),
                relation=f"{__name__}:lists_answers",
                marks=("read", *(mark.mark for mark in marks)),
                data=list(hidden),
                tasks=list(hidden),
                expected="nothing of what tasks hide",
                observed=secrets.text_of(said(seen))[:600],
                teaches=TEACHES,
                at_most="proven" if "state" in lab.offers else "likely",
            )
            return


def _outside(lab: Lab) -> Iterator[Finding | None]:
    """The environment's files and the process that it runs in."""
    sources = [Path(source.path) for source in lab.sources[:4]]
    marks = {str(path): _lines(path) for path in sources}
    process = {"/proc/self/environ": ["PYTHONHASHSEED="], "/proc/self/cmdline": ["quintain.audit.worker"]}
    wanted = {path: lines for path, lines in marks.items() if lines} | process
    paths = [one for path in wanted for one in (path, f"file://{path}", "../" * 12 + path.lstrip("/"))]
    paths += [Path(path).name for path in marks]
    task = lab.tasks[0]
    ops = reading.unique(list(reading.file_calls(lab, paths)))[:400]
    record = lab.play(reset(task), *ops) if ops else None
    lab.looking(max(1, len(ops)))
    reached: set[tuple[str, str]] = set()
    for op, seen in zip(ops, record.seen[1:] if record else (), strict=False):
        text = secrets.text_of(said(seen))
        for path, lines in wanted.items():
            if all(line in text for line in lines) and (op.name, path) not in reached:
                reached.add((op.name, path))
                what = "the environment's own source" if path in marks else "the process that runs the environment"
                yield lab.finding(
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


@check("x.other_sessions_stay_out_of_sight", "leak", needs=("hidden", "call", "tools", "tasks"), value=45)
def sessions(lab: Lab) -> Iterator[Finding | None]:
    """What another session's task hides cannot be read in this one."""
    hidden = hidden_of(lab, lab.some(4))
    reads = reading.unique(list(reading.reading_calls(lab)))[:60]
    for task, value in hidden.items():
        other, known = unlike(task, hidden), secrets.sought(value)
        if not other or not reads:
            continue
        alone, beside = lab.play_all(
            [Probe((reset(other), *reads)), Probe((reset(task, on="b"), reset(other), *reads))]
        )
        for op, one, two in zip(reads, alone.seen[1:], beside.seen[2:], strict=False):
            lab.looking()
            before = {str(want(leak)) for leak in secrets.shown(said(one), known)}
            fresh = [leak for leak in secrets.shown(said(two), known) if str(want(leak)) not in before]
            if fresh:
                hides = Op("hidden", name=task, mark="hidden")
                yield lab.finding(
                    f"{op.name} shows what the task of another session hides",
                    Probe((hides, reset(task, on="b"), reset(other), op.marked("read"))),
                    Probe((hides, reset(other), op.marked("read"))),
                    relation=TELLING,
                    marks=("hidden", "read"),
                    data=want(fresh[0]),
                    minimise=0,
                    expected="nothing of another session",
                    observed=secrets.text_of(said(two))[:400],
                    teaches=TEACHES,
                )
                return


@check("x.history_holds_no_future", "leak", needs=("call", "tools", "tasks"), value=40)
def history(lab: Lab) -> Iterator[Finding | None]:
    """A repository or a log that the agent reads holds nothing that is later than the moment it starts from."""
    yield from logs.future(lab)
    task = lab.tasks[0]
    for tool, name in _texts(lab):
        if not reading.COMMANDS.search(name.lower()):
            continue
        base = reading.base_of(lab, tool)
        here = call(tool.name, {**base, name: "git rev-list HEAD"}, mark="here")
        every = call(tool.name, {**base, name: "git rev-list --all --reflog"}, mark="every")
        lab.looking()
        probe = Probe((reset(task), here, every))
        if later([lab.play_probe(probe)], Evidence("")):
            yield lab.finding(
                f"with {tool.name}, git shows commits that are not in the history of the one the task starts from",
                probe,
                relation=f"{__name__}:later",
                marks=("here", "every"),
                part="T",
                expected="no commit but those before",
                observed="more",
                teaches="to read the fix in the repository's future",
            )
    for path in _repositories(lab):
        lab.looking()
        ahead = _git(path, "rev-list", "--all", "--not", "HEAD")
        if ahead and any(reading.PATHS.search(name) for _, name in _texts(lab)):
            yield lab.finding(
                f"the repository {path.name} beside the environment's source has commits that HEAD does not",
                part="T",
                severity="note",
                at_most="hint",
                expected="no later commits where an agent may read files",
                observed=f"{len(ahead)} commits",
                teaches="to read the fix in the repository's future",
            )


def _texts(lab: Lab) -> list[tuple[ToolSpec, str]]:
    return [(tool, name) for tool in lab.about.tools for name in reading.strings(tool)]


def _hashes(text: str) -> list[str]:
    return [word for word in text.replace("\\n", " ").replace('"', " ").split() if len(word) == 40 and _is_hex(word)]


def _is_hex(word: str) -> bool:
    return not set(word) - set("0123456789abcdef")


def _repositories(lab: Lab) -> list[Path]:
    folders = {Path(source.path).resolve().parent for source in lab.sources}
    return sorted({folder for folder in folders if (folder / ".git").exists()})


def _git(folder: Path, *arguments: str) -> list[str]:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, check=False, timeout=20)
    return done.stdout.decode(errors="replace").split() if done.returncode == 0 else []


@check("x.tasks_carry_canaries", "leak", needs=("hidden", "tasks"), value=12, severity="note")
def canaries(lab: Lab) -> Iterator[Finding | None]:
    """Each task hides a string of its own by which a contaminated model would be known."""
    hidden = hidden_of(lab, lab.some(8))
    if not hidden:
        raise lab.none("no task hides anything")
    lab.looking()
    if not any(_has_canary(value) for value in hidden.values()):
        yield lab.finding(
            "no task carries a canary, so contamination could not be seen",
            part="T",
            at_most="hint",
            expected='a field "canary" with a random string in what each task hides',
            observed="none",
            teaches="nothing by itself; a model that has read the tasks cannot be told from one that solves them",
        )


def _has_canary(value: Any) -> bool:
    named = any("canary" in key.lower() for path, _ in secrets.leaves(value) for key in path)
    return named or "canary" in secrets.text_of(value).lower()


order = placing.order  # Registered with the checks of this module.
under_other_names = names.under_other_names
