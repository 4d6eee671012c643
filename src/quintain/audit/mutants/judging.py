"""What becomes of mutants: each is loaded in a process of its own and plays the battery until it is paid otherwise.

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
from quintain.audit.child import Child, SubjectBroken
from quintain.audit.finding import Evidence
from quintain.audit.lab import Lab
from quintain.audit.opening import Subject
from quintain.audit.pool import WORKERS
from quintain.audit.probe import Op, Probe, Record, ask, number, same
from quintain.errors import UsageError

from . import operators
from .battery import Episode, Tried, probe, scores
from .loading import Mutant
from .operators import Change
from .reach import Lines

MOST = 60
"""Mutants that are tried, of each part."""
_SLACK_S = 5.0
"""A mutant may take so much longer than four times what was needed without it."""

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


def drawn(lab: Lab, all_: Sequence[tuple[str, Change]], most: int = MOST) -> list[tuple[str, Change]]:
    """So many of them, of each operator in turn."""
    by_operator: dict[str, list[tuple[str, Change]]] = {}
    for one in lab.rng.sample(all_, len(all_)):
        by_operator.setdefault(one[1].operator, []).append(one)
    queues = [by_operator[name] for name in sorted(by_operator)]
    turns = [queue[turn] for turn in range(max(map(len, queues), default=0)) for queue in queues if turn < len(queue)]
    return turns[:most]


def each(lab: Lab, wanted: Iterable[T], judge: Callable[[T], Verdict]) -> list[Verdict]:
    """Judge mutants, several at a time, while there is time."""

    def one(item: T) -> Verdict | None:
        if lab.left() <= 0:
            return None
        lab.looking()
        return judge(item)

    with ThreadPoolExecutor(WORKERS) as executor:
        return [verdict for verdict in executor.map(one, wanted) if verdict is not None]


def mutated(lab: Lab, path: str, change: Change, *, is_watched: bool = False) -> Subject:
    """The subject with a change; with one that remembers what it changed."""
    at, before, after = change.at, change.before, change.after
    if is_watched:
        assert change.watched is not None
        at, before, after = change.watched
    return msgspec.structs.replace(lab.subject, mutant=Mutant(path, at, before, after))


# --- mutants of the verifier ---


def judge_verifier(lab: Lab, battery: Sequence[Tried], mutant: tuple[str, Change]) -> Verdict:
    """Play all episodes with a mutant of the verifier: a file and its change."""
    path, change = mutant
    if not _is_paid_alike(lab, mutated(lab, path, change), battery):
        return Verdict(path, change, "killed")
    silent = Verdict(path, change, "silent")
    if change.watched is None:
        return silent
    subject = mutated(lab, path, change, is_watched=True)
    taken = ask("quintain.audit.mutants.watch:taken")
    try:
        with Child(subject) as child:
            for one in battery:
                wanted = probe(one.episodes, around=[taken])
                record = child.play(wanted, _limit(lab, one))
                if record.died or scores(record, len(one.episodes)) != one.scores:
                    return silent  # To evaluate it twice did something: nothing can be said.
                for place, episode in enumerate(one.episodes):
                    seen = record.at(f"{place} after").value
                    if seen and one.scores[place] == one.full:
                        return _masked(child, silent, episode, lab=lab, differs=seen[0])
    except SubjectBroken:
        return silent
    return silent


def _masked(child: Child, silent: Verdict, episode: Episode, *, lab: Lab, differs: list[str]) -> Verdict:
    """It survived in this episode, in which an expression has two values and nobody is paid otherwise."""
    wanted = probe([episode], around=[ask("quintain.audit.mutants.watch:taken")])
    return msgspec.structs.replace(
        silent,
        status="survived",
        episode=episode,
        differs={silent.change.told: differs},
        subject=mutated(lab, silent.path, silent.change, is_watched=True),
        probe=wanted,
        record=child.play(wanted, lab.limit),
    )


def _is_paid_alike(lab: Lab, subject: Subject, battery: Sequence[Tried]) -> bool:
    try:
        with Child(subject) as child:
            for one in battery:
                record = child.play(probe(one.episodes), _limit(lab, one))
                if record.died or scores(record, len(one.episodes)) != one.scores:
                    return False
    except (SubjectBroken, UsageError):
        return False  # Whatever a mutant does to its process, it does not go unnoticed.
    return True


def _limit(lab: Lab, one: Tried) -> float:
    return min(lab.limit, 4 * one.seconds + _SLACK_S)


# --- mutants of the tools ---


class Worlds:
    """What solutions make of the world without a mutant, to be held against what they make of it with one.

    Args:
        lab: The lab.
        battery: Episodes that are paid in full.
    """

    def __init__(self, lab: Lab, battery: Sequence[Tried]) -> None:
        self._lab, self._battery = lab, battery
        # A digest costs less than a state, where there is one.
        self._look = Op("digest") if "digest" in lab.offers else Op("changes")
        self._sound = lab.play_all([probe(one.episodes, [self._look]) for one in battery])

    def judge(self, path: str, change: Change) -> Verdict:
        """Play all episodes with a mutant of a tool: is it paid for, or does it only leave another world behind?"""
        subject = mutated(self._lab, path, change)
        elsewhere: list[Episode] = []
        try:
            with Child(subject) as child:
                for one, sound in zip(self._battery, self._sound, strict=True):
                    record = child.play(probe(one.episodes, [self._look]), _limit(self._lab, one))
                    if record.died or scores(record, len(one.episodes)) != one.scores:
                        return Verdict(path, change, "killed")
                    elsewhere += [
                        episode
                        for place, episode in enumerate(one.episodes)
                        if not self._is_same(record, sound, f"{place} {self._look.do}")
                    ]
                return self._shown(child, Verdict(path, change, "silent", subject=subject), elsewhere)
        except (SubjectBroken, UsageError):
            return Verdict(path, change, "killed")

    def _is_same(self, record: Record, sound: Record, mark: str) -> bool:
        return same(record.at(mark), sound.at(mark), self._lab.volatile)

    def _shown(self, child: Child, silent: Verdict, elsewhere: Sequence[Episode]) -> Verdict:
        for episode in elsewhere[:4]:
            wanted = probe([episode], [Op("changes")])
            record = child.play(wanted, self._lab.limit)
            sound = self._lab.play_probe(wanted)
            if found := differing(self._lab, sound.at("0 changes").value, record.at("0 changes").value):
                end = {path: pair[1] for path, pair in sound.at("0 changes").value.items()}
                return msgspec.structs.replace(
                    silent,
                    status="survived",
                    episode=episode,
                    differs=found,
                    sound=end,
                    probe=wanted,
                    record=record,
                )
        return silent


_DATED = ("at", "when", "date")


def differing(lab: Lab, sound: Any, other: Any) -> dict[str, list[Any]]:
    """By path, where two worlds differ, given how each differs from the same start; bookkeeping is left out."""
    if not (data.is_dict(sound) and data.is_dict(other)):
        return {}
    ends = [{path: pair[1] for path, pair in one.items()} for one in (sound, other)]
    found = data.changes(*ends)
    kept = {path: pair for path, pair in found.items() if not _is_noise(lab, tuple(path.split("/")))}
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


def _is_noise(lab: Lab, path: tuple[str, ...]) -> bool:
    return (
        _is_date(path[-1])
        or is_bookkeeping(path)
        or path[0] in lab.survey.background
        or bool({*path} & {*lab.volatile})
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
