"""What becomes of mutants: each is put into a process and plays the battery until it is paid otherwise.

    killed     some episode is paid otherwise, or breaks: whatever was mutated is checked
    survived   it makes a difference that can be shown, and every episode is paid as before
    silent     nothing that was played shows a difference: it may be equivalent, or the battery too poor

Only what survived is reported. For the verifier the difference is that of the mutated expression in an episode that is
paid in full; for tools it is one of the world's state, bookkeeping left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from quintain.audit import data
from quintain.audit.checks._reward_acts import is_bookkeeping
from quintain.audit.child import SubjectBroken
from quintain.audit.context import AuditContext, OutOfTime
from quintain.audit.finding import Evidence
from quintain.audit.loader import Subject
from quintain.audit.pool import WORKERS
from quintain.audit.probe import Op, Probe, Record, ask, number, same
from quintain.errors import UsageError

from . import operators
from .battery import Episode, Tried, probe, scores
from .loading import Mutant
from .operators import Change
from .reach import Lines, Reach
from .swapping import is_same
from .trying import MutantRuns, differs

MAX_MUTANTS = 60
"""Mutants that are tried, of each part."""

Status = Literal["killed", "survived", "silent"]
T = TypeVar("T")


class Verdict(msgspec.Struct, frozen=True):
    """What became of a mutant.

    Attributes:
        episode: In which it survived.
        differs: What is different there, by expression or path: without the mutant, with it.
        sound: What the episode leaves of the world without the mutant, by path.
        record: Of that episode with the mutant.
        probe: What was played.
    """

    path: str
    change: Change
    status: Status
    episode: Episode | None = None
    differs: dict[str, list[Any]] = {}
    sound: dict[str, Any] = {}
    subject: Subject | None = None
    probe: Probe | None = None
    record: Record | None = None

    @property
    def where(self) -> str:
        return f"{self.path}:{self.change.lines[0]}"


class Tally(msgspec.Struct, frozen=True):
    """How many mutants came to what.

    Attributes:
        there_are: On lines that are run, before any were drawn.
    """

    killed: int
    survived: int
    silent: int
    there_are: int

    @property
    def score(self) -> float | None:
        """Share of those that made a difference which were killed; None when none made one."""
        return self.killed / (self.killed + self.survived) if self.killed + self.survived else None

    def __str__(self) -> str:
        tried = self.killed + self.survived + self.silent
        return (
            f"{tried} of {self.there_are} mutants tried: {self.killed} killed, {self.survived} survived, "
            f"{self.silent} made no difference"
        )


def tally(verdicts: Sequence[Verdict], there_are: int) -> Tally:
    count = {status: sum(one.status == status for one in verdicts) for status in ("killed", "survived", "silent")}
    return Tally(**count, there_are=there_are)


def candidates(lines: Lines, part: operators.Part) -> list[tuple[str, Change]]:
    """The changes on lines that are run. A file that is no Python in UTF-8 has none."""
    found: list[tuple[str, Change]] = []
    for path, run in sorted(lines.items()):
        try:
            changes = operators.changes(Path(path).read_bytes(), part)
        except (SyntaxError, UnicodeDecodeError, OSError):
            continue  # Code that was made at run time, or is kept in another encoding, cannot be edited.
        found += [(path, one) for one in changes if not run.isdisjoint(range(one.lines[0], one.lines[1] + 1))]
    return found


def drawn(ctx: AuditContext, all_: Sequence[tuple[str, Change]], most: int = MAX_MUTANTS) -> list[tuple[str, Change]]:
    """So many of them, of each operator in turn."""
    by_operator: dict[str, list[tuple[str, Change]]] = {}
    for one in ctx.rng.sample(all_, len(all_)):
        by_operator.setdefault(one[1].operator, []).append(one)
    queues = [by_operator[name] for name in sorted(by_operator)]
    turns = [queue[turn] for turn in range(max(map(len, queues), default=0)) for queue in queues if turn < len(queue)]
    return turns[:most]


def each(ctx: AuditContext, wanted: Iterable[T], judge: Callable[[T], Verdict]) -> list[Verdict]:
    """Judge mutants, several at a time, while there is time."""

    def one(item: T) -> Verdict | None:
        if ctx.seconds_left() <= 0:
            return None
        try:
            verdict = judge(item)
        except OutOfTime:
            return None
        ctx.count_comparisons()
        return verdict

    with ThreadPoolExecutor(WORKERS) as executor:
        return [verdict for verdict in executor.map(one, wanted) if verdict is not None]


def killed(silent: Verdict) -> Verdict:
    """The same mutant; somebody is paid otherwise."""
    return msgspec.structs.replace(silent, status="killed")


def mutant_of(path: str, change: Change) -> Mutant:
    return Mutant(path, change.at, change.before, change.after)


# --- mutants of the verifier ---

_TAKEN = ask("quintain.audit.mutants.watch:taken")


class Verdicts:
    """Episodes that are paid in many ways, for mutants of the verifier.

    Args:
        ctx: The lab.
        battery: The episodes.
        reached: Which lines they run.
    """

    def __init__(self, ctx: AuditContext, battery: Sequence[Tried], reached: Reach) -> None:
        self._ctx, self._battery, self._reached = ctx, battery, reached

    def judge(self, path: str, change: Change) -> Verdict:
        """Play the episodes that run what is changed; where it may be evaluated twice, the expression tells both."""
        silent, mutant = Verdict(path, change, "silent"), mutant_of(path, change)
        tried = [one for one in self._battery if self._reached.runs(one.task, path, change.lines)]
        try:
            if is_same(mutant):
                return silent
            with MutantRuns(self._ctx, mutant) as plain:
                if change.watched is None:
                    return silent if _is_paid_alike(plain, tried) else killed(silent)
                with MutantRuns(self._ctx, Mutant(path, *change.watched)) as watched:
                    return self._watched(watched, plain, tried, silent=silent)
        except (SubjectBroken, UsageError):
            return killed(silent)  # Whatever a mutant does to its process, it does not go unnoticed.

    def _watched(self, watched: MutantRuns, plain: MutantRuns, tried: Sequence[Tried], *, silent: Verdict) -> Verdict:
        for place, one in enumerate(tried):
            record = watched.play(one, probe(one.episodes, around=[_TAKEN]))
            if differs(record, one):  # Unless to evaluate it twice did something.
                first = [*_first(record, one), one, *tried[:place], *tried[place + 1 :]]
                return silent if _is_paid_alike(plain, first) else killed(silent)
            for at, episode in enumerate(one.episodes):
                seen = record.at(f"{at} after").value
                if seen and one.scores[at] == one.full:
                    return (
                        _masked(watched, silent, episode, values=seen[0])
                        if _is_paid_alike(plain, tried)
                        else killed(silent)
                    )
        return silent


def _first(record: Record, one: Tried) -> list[Tried]:
    """The first episode that is paid otherwise, alone."""
    paid = zip(scores(record, len(one.episodes)), one.scores, strict=True)
    return [
        msgspec.structs.replace(one, episodes=(one.episodes[at],), scores=(one.scores[at],), refused=(one.refused[at],))
        for at, (now, was) in enumerate(paid)
        if now != was
    ][:1]


def _is_paid_alike(plain: MutantRuns, tried: Sequence[Tried]) -> bool:
    return not any(differs(plain.play(one, probe(one.episodes)), one) for one in tried)


def _masked(watched: MutantRuns, silent: Verdict, episode: Episode, *, values: list[str]) -> Verdict:
    """It survived in this episode, in which an expression has two values and nobody is paid otherwise."""
    subject, shown, record = watched.shown(probe([episode], around=[_TAKEN]))
    return msgspec.structs.replace(
        silent,
        status="survived",
        episode=episode,
        differs={silent.change.told: values},
        subject=subject,
        probe=shown,
        record=record,
    )


# --- mutants of the tools ---


class Worlds:
    """What solutions make of the world without a mutant, to be held against what they make of it with one.

    Args:
        ctx: The lab.
        battery: Episodes that are paid in full.
        reached: Which lines they run.
    """

    def __init__(self, ctx: AuditContext, battery: Sequence[Tried], reached: Reach) -> None:
        self._ctx, self._battery, self._reached = ctx, battery, reached
        # A digest costs less than a state, where there is one.
        self._look = Op("digest") if "digest" in ctx.offers else Op("changes")
        self._sound = ctx.play_all([probe(one.episodes, [self._look]) for one in battery])

    def judge(self, path: str, change: Change) -> Verdict:
        """Play the episodes that run what is changed: is it paid for, or does it only leave another world behind?"""
        silent, mutant = Verdict(path, change, "silent"), mutant_of(path, change)
        elsewhere: list[Episode] = []
        try:
            if is_same(mutant):
                return silent
            with MutantRuns(self._ctx, mutant) as runs:
                for one, sound in zip(self._battery, self._sound, strict=True):
                    if not self._reached.runs(one.task, path, change.lines):
                        continue
                    record = runs.play(one, probe(one.episodes, [self._look]))
                    if differs(record, one):
                        return killed(silent)
                    elsewhere += [
                        episode
                        for place, episode in enumerate(one.episodes)
                        if not self._is_same(record, sound, f"{place} {self._look.do}")
                    ]
                return self._shown(runs, silent, elsewhere)
        except (SubjectBroken, UsageError):
            return killed(silent)

    def _is_same(self, record: Record, sound: Record, mark: str) -> bool:
        return same(record.at(mark), sound.at(mark), self._ctx.volatile)

    def _shown(self, runs: MutantRuns, silent: Verdict, elsewhere: Sequence[Episode]) -> Verdict:
        for episode in elsewhere[:4]:
            wanted = probe([episode], [Op("changes")])
            subject, shown, record = runs.shown(wanted)
            sound = self._ctx.play_probe(wanted)
            if found := differing(self._ctx, sound.at("0 changes").value, record.at("0 changes").value):
                end = {path: pair[1] for path, pair in sound.at("0 changes").value.items()}
                return msgspec.structs.replace(
                    silent,
                    status="survived",
                    episode=episode,
                    differs=found,
                    sound=end,
                    subject=subject,
                    probe=shown,
                    record=record,
                )
        return silent


_DATED = ("at", "when", "date")


def differing(ctx: AuditContext, sound: Any, other: Any) -> dict[str, list[Any]]:
    """By path, where two worlds differ, given how each differs from the same start; bookkeeping is left out."""
    if not (data.is_dict(sound) and data.is_dict(other)):
        return {}
    ends = [{path: pair[1] for path, pair in one.items()} for one in (sound, other)]
    found = data.changes(*ends)
    kept = {path: pair for path, pair in found.items() if not _is_noise(ctx, tuple(path.split("/")))}
    return {} if _contents(kept, 0) == _contents(kept, 1) else kept


def _contents(differs: dict[str, list[Any]], side: int) -> list[tuple[tuple[str, ...], str]]:
    """What one side holds, without the keys of rows: a row under another number is the same row."""
    return sorted((kind(path), repr(_unkeyed(pair[side]))) for path, pair in differs.items() if pair[side] is not None)


def kind(path: str) -> tuple[str, ...]:
    """A path without the key of the row."""
    table, _, rest = path.partition("/")
    return table, rest.rpartition("/")[2] if "/" in rest else ""


def _unkeyed(value: Any) -> Any:
    if not data.is_dict(value):
        return value
    return {name: one for name, one in value.items() if name != "id" and not _is_date(name)}


def _is_date(name: str) -> bool:
    return name in _DATED or name.endswith("_at")


def _is_noise(ctx: AuditContext, path: tuple[str, ...]) -> bool:
    return (
        _is_date(path[-1])
        or is_bookkeeping(path)
        or path[0] in ctx.discovery.background
        or bool({*path} & {*ctx.volatile})
    )


# --- claims that can be played again ---


def still_paid(records: Sequence[Record], evidence: Evidence) -> bool:
    """The episode is paid `data["paid"]`, and its world is other than it should be in the same places."""
    record = records[0]
    score, found = number(record.at("0 score")), record.at("0 changes").value
    if score is None or score < evidence.data["paid"] - 1e-9 or not data.is_dict(found):
        return False
    end: dict[str, Any] = {path: pair[1] for path, pair in found.items()}
    return any(path in data.changes(evidence.data["sound"], end) for path in evidence.data["differs"])


def still_masked(records: Sequence[Record], evidence: Evidence) -> bool:
    """The episode is paid `data["paid"]`, and the mutated expression had another value meanwhile."""
    score = number(records[0].at("0 score"))
    return score is not None and score >= evidence.data["paid"] - 1e-9 and bool(records[0].at("0 after").value)
