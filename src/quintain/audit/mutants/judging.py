"""Judging of mutants: each plays the battery in a process of its own until some score differs.

    killed     some episode scores differently or breaks: the mutated code is checked
    survived   a difference is visible, and every episode scores as before
    silent     no difference is visible: the mutant may be equivalent, or the battery too weak

Only survivors are reported. For the verifier, the difference is that of the mutated expression in a fully paid episode;
for tools, it is a difference of the state without bookkeeping.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import msgspec

from quintain.audit.facts.acts import is_bookkeeping
from quintain.audit.facts.data import changes, is_dict
from quintain.audit.kernel.child import WORKERS, Child, SubjectBroken
from quintain.audit.kernel.context import AuditContext, OutOfTime
from quintain.audit.kernel.finding import Evidence
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.probe import Op, Probe, Record, ask, number, same
from quintain.audit.kernel.registry import relation
from quintain.errors import UsageError

from . import operators
from .battery import EpisodeScript, TaskBaseline, probe, scores
from .loading import Mutant
from .operators import CodeChange
from .reach import Lines, Reach

MAX_MUTANTS = 60  # most mutants that are tried of each component
_TAKEN = ask("quintain.audit.mutants.loading:taken")
_SLACK_S = 3.0  # extra seconds beyond four times the time without the mutant

Play = Callable[[TaskBaseline, Probe], Record]


class Verdict(msgspec.Struct, frozen=True):
    """Result of a mutant; a survivor has the script in which it survived, and its record.

    `differs` holds the differences there by expression or path, `sound` the state changes without the mutant.
    """

    path: str
    change: CodeChange
    status: Literal["killed", "survived", "silent"]
    episode: EpisodeScript | None = None
    differs: dict[str, list[Any]] = {}
    sound: dict[str, Any] = {}
    subject: Subject | None = None
    probe: Probe | None = None
    record: Record | None = None

    @property
    def where(self) -> str:
        return f"{self.path}:{self.change.lines[0]}"


def tally(verdicts: Sequence[Verdict], there_are: int) -> str:
    count = {status: sum(one.status == status for one in verdicts) for status in ("killed", "survived", "silent")}
    return (
        f"{len(verdicts)} of {there_are} mutants tried: {count['killed']} killed, {count['survived']} survived, "
        f"{count['silent']} made no difference"
    )


def candidates(lines: Lines, part: operators.Part) -> list[tuple[str, CodeChange]]:
    """Returns the possible changes on lines that are run; files that cannot be parsed have none."""
    found: list[tuple[str, CodeChange]] = []
    for path, run in sorted(lines.items()):
        # Code that was made at run time, or is kept in another encoding, cannot be edited.
        with contextlib.suppress(SyntaxError, UnicodeDecodeError, OSError):
            there = operators.changes(Path(path).read_bytes(), part)
            found += [(path, one) for one in there if not run.isdisjoint(range(one.lines[0], one.lines[1] + 1))]
    return found


def drawn(ctx: AuditContext, every: Sequence[tuple[str, CodeChange]]) -> list[tuple[str, CodeChange]]:
    """Returns at most `MAX_MUTANTS` changes, taking each operator in turn."""
    by_operator: dict[str, list[tuple[str, CodeChange]]] = {}
    for one in ctx.rng.sample(every, len(every)):
        by_operator.setdefault(one[1].operator, []).append(one)
    queues = [by_operator[name] for name in sorted(by_operator)]
    turns = [queue[turn] for turn in range(max(map(len, queues), default=0)) for queue in queues if turn < len(queue)]
    return turns[:MAX_MUTANTS]


def differs(record: Record, one: TaskBaseline) -> bool:
    return bool(record.died) or scores(record, len(one.episodes)) != one.scores


class Judge:
    """Judge of mutants by the episodes that run their lines: fully paid ones for tools ("S"), others for "V"."""

    def __init__(
        self, ctx: AuditContext, battery: Sequence[TaskBaseline], reached: Reach, *, part: operators.Part
    ) -> None:
        self._ctx, self._reached, self._part = ctx, reached, part
        # A digest costs less than a state, where there is one.
        self._look = Op("digest") if "digest" in ctx.offers else Op("changes")
        sound = ctx.play_all([probe(one.episodes, [self._look]) for one in battery]) if part == "S" else battery
        self._battery: list[tuple[TaskBaseline, Any]] = list(zip(battery, sound, strict=True))

    def each(self, wanted: Sequence[tuple[str, CodeChange]]) -> list[Verdict]:
        def one(item: tuple[str, CodeChange]) -> Verdict | None:
            with contextlib.suppress(OutOfTime):
                if self._ctx.seconds_left() > 0:
                    verdict = self.judge(*item)
                    self._ctx.count_comparisons()
                    return verdict
            return None

        with ThreadPoolExecutor(WORKERS) as executor:
            return [verdict for verdict in executor.map(one, wanted) if verdict is not None]

    def judge(self, path: str, change: CodeChange) -> Verdict:
        """Plays the episodes that run the changed lines; an expression without side effects records both its values."""
        silent = Verdict(path, change, "silent")
        mutant = Mutant(path, change.at, change.before, change.after)
        tried = [(one, sound) for one, sound in self._battery if self._reached.runs(one.task, path, change.lines)]
        tasks = [one for one, _ in tried]
        try:
            if mutant.is_same:
                found: Verdict | None = silent
            elif self._part == "S":
                found = self._ends(mutant, silent, tried)
            elif change.watched is None:
                found = silent if self._is_paid_alike(mutant, tasks) else None
            else:
                found = self._watched(mutant, Mutant(path, *change.watched), tasks, silent=silent)
        except (SubjectBroken, UsageError):
            found = None  # Whatever a mutant does to its process, it does not go unnoticed.
        return msgspec.structs.replace(silent, status="killed") if found is None else found

    def _subject(self, mutant: Mutant) -> Subject:
        return msgspec.structs.replace(self._ctx.subject, mutant=mutant)

    @contextlib.contextmanager
    def _playing(self, mutant: Mutant) -> Generator[Play]:
        """Yields a function that plays episodes of a task in a process with the mutant."""
        with Child(self._subject(mutant)) as child:
            yield lambda one, wanted: child.play(wanted, min(self._ctx.limit, 4 * one.seconds + _SLACK_S))

    def _is_paid_alike(self, mutant: Mutant, tried: Sequence[TaskBaseline]) -> bool:
        with self._playing(mutant) as play:
            return not any(differs(play(one, probe(one.episodes)), one) for one in tried)

    def _watched(
        self, mutant: Mutant, watched: Mutant, tried: Sequence[TaskBaseline], *, silent: Verdict
    ) -> Verdict | None:
        """Returns the verdict on an expression of the verifier; None if the mutant is killed."""
        with self._playing(watched) as play:
            for place, one in enumerate(tried):
                record = play(one, probe(one.episodes, around=[_TAKEN]))
                if differs(record, one):  # Unless to evaluate it twice did something.
                    paid = zip(scores(record, len(one.episodes)), one.scores, strict=True)
                    first = [one.only([at]) for at, (now, was) in enumerate(paid) if now != was][:1]
                    rest = [*first, one, *tried[:place], *tried[place + 1 :]]
                    return silent if self._is_paid_alike(mutant, rest) else None
                for at, episode in enumerate(one.episodes):
                    seen = record.at(f"{at} after").value
                    if seen and one.scores[at] == one.full:
                        shown = probe([episode], around=[_TAKEN])
                        values = {silent.change.description: seen[0]}
                        more = {"subject": self._subject(watched), "probe": shown, "record": play(one, shown)}
                        found = _survived(silent, episode, values, **more)
                        return found if self._is_paid_alike(mutant, tried) else None
        return silent

    def _ends(self, mutant: Mutant, silent: Verdict, tried: Sequence[tuple[TaskBaseline, Record]]) -> Verdict | None:
        """Returns the verdict on a change of a tool, by the states that solutions leave; None if it is killed."""
        elsewhere: list[tuple[TaskBaseline, EpisodeScript]] = []
        with self._playing(mutant) as play:
            for one, sound in tried:
                record = play(one, probe(one.episodes, [self._look]))
                if differs(record, one):
                    return None
                for place, episode in enumerate(one.episodes):
                    mark = f"{place} {self._look.do}"
                    is_same = same(record.at(mark), sound.at(mark), self._ctx.volatile)
                    elsewhere += [] if is_same else [(one, episode)]
            for one, episode in elsewhere[:4]:
                wanted = probe([episode], [Op("changes")])
                record, sound = play(one, wanted), self._ctx.play_probe(wanted).at("0 changes").value
                if found := differing(self._ctx, sound, record.at("0 changes").value):
                    end = {path: pair[1] for path, pair in sound.items()}
                    more = {"subject": self._subject(mutant), "probe": wanted, "record": record, "sound": end}
                    return _survived(silent, episode, found, **more)
        return silent


def _survived(silent: Verdict, episode: EpisodeScript, found: dict[str, Any], **shown: Any) -> Verdict:
    return msgspec.structs.replace(silent, status="survived", episode=episode, differs=found, **shown)


# --- states ---


def differing(ctx: AuditContext, sound: Any, other: Any) -> dict[str, list[Any]]:
    """Returns the paths at which two states differ, bookkeeping aside, from their changes since the same start."""
    if not (is_dict(sound) and is_dict(other)):
        return {}
    before, after = ({path: pair[1] for path, pair in one.items()} for one in (sound, other))
    kept: dict[str, list[Any]] = {}
    for path, pair in changes(before, after).items():
        steps = tuple(path.split("/"))
        quiet = _is_date(steps[-1]) or is_bookkeeping(steps) or steps[0] in ctx.discovery.background
        if not quiet and not {*steps} & {*ctx.volatile}:
            kept[path] = pair
    return {} if _contents(kept, 0) == _contents(kept, 1) else kept


def _contents(found: dict[str, list[Any]], side: int) -> list[tuple[tuple[str, ...], str]]:
    """Returns the content of one side without row keys, so that renumbered rows are equal."""
    rows = [(kind(path), pair[side]) for path, pair in found.items() if pair[side] is not None]
    return sorted((name, repr(_unkeyed(row) if is_dict(row) else row)) for name, row in rows)


def kind(path: str) -> tuple[str, ...]:
    """Returns a path as (table, field), without the row's key."""
    table, _, rest = path.partition("/")
    return table, rest.rpartition("/")[2] if "/" in rest else ""


def _unkeyed(row: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in row.items() if name != "id" and not _is_date(name)}


def _is_date(name: str) -> bool:
    return name in ("at", "when", "date") or name.endswith("_at")


# --- claims that can be played again ---


@relation
def still_paid(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the episode scores `data["paid"]` and its state differs at one of the same paths."""
    found = records[0].at("0 changes").value
    if not _is_paid(records[0], evidence) or not is_dict(found):
        return False
    end: dict[str, Any] = {path: pair[1] for path, pair in found.items()}
    return any(path in changes(evidence.data["sound"], end) for path in evidence.data["differs"])


@relation
def still_masked(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the episode scores `data["paid"]` and the mutated expression had another value."""
    return _is_paid(records[0], evidence) and bool(records[0].at("0 after").value)


def _is_paid(record: Record, evidence: Evidence) -> bool:
    score = number(record.at("0 score"))
    return score is not None and score >= evidence.data["paid"] - 1e-9
