"""Judging of mutants: each plays the battery until some score differs.

    killed     some episode scores differently or breaks: the mutated code is checked
    survived   a difference is visible, and every episode scores as before
    silent     no difference is visible: the mutant may be equivalent, or the battery too weak

Only survivors are reported. For the verifier, the difference is that of the mutated expression in a fully paid episode;
for tools, it is a difference of the state without bookkeeping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import msgspec

from quintain.audit.checks._reward_acts import is_bookkeeping
from quintain.audit.facts import data
from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.child import WORKERS, Child, SubjectBroken
from quintain.audit.kernel.context import AuditContext, OutOfTime
from quintain.audit.kernel.finding import Evidence
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, ask, number, reset, same
from quintain.audit.kernel.registry import relation
from quintain.errors import UsageError

from . import operators, swapping
from .battery import EpisodeScript, TaskBaseline, probe, scores
from .loading import Mutant
from .operators import CodeChange
from .reach import Lines, Reach
from .swapping import is_same

MAX_MUTANTS = 60
"""Most mutants that are tried of each component."""

Status = Literal["killed", "survived", "silent"]
T = TypeVar("T")


class Verdict(msgspec.Struct, frozen=True):
    """Result of a mutant.

    Attributes:
        episode: EpisodeScript in which it survived.
        differs: Differences there by expression or path, as [without, with the mutant].
        sound: State changes of the episode without the mutant, by path.
        record: Record of that episode with the mutant.
        probe: Probe that was played.
    """

    path: str
    change: CodeChange
    status: Status
    episode: EpisodeScript | None = None
    differs: dict[str, list[Any]] = {}
    sound: dict[str, Any] = {}
    subject: Subject | None = None
    probe: Probe | None = None
    record: Record | None = None

    @property
    def where(self) -> str:
        return f"{self.path}:{self.change.lines[0]}"


class Tally(msgspec.Struct, frozen=True):
    """Numbers of mutants by result.

    Attributes:
        there_are: Mutants on lines that are run, before sampling.
    """

    killed: int
    survived: int
    silent: int
    there_are: int

    @property
    def score(self) -> float | None:
        """Returns the share of killed mutants among killed and surviving ones; None without either."""
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


def candidates(lines: Lines, part: operators.Part) -> list[tuple[str, CodeChange]]:
    """Returns the possible changes on lines that are run; files that cannot be parsed have none."""
    found: list[tuple[str, CodeChange]] = []
    for path, run in sorted(lines.items()):
        try:
            changes = operators.changes(Path(path).read_bytes(), part)
        except (SyntaxError, UnicodeDecodeError, OSError):
            continue  # Code that was made at run time, or is kept in another encoding, cannot be edited.
        found += [(path, one) for one in changes if not run.isdisjoint(range(one.lines[0], one.lines[1] + 1))]
    return found


def drawn(
    ctx: AuditContext, all_: Sequence[tuple[str, CodeChange]], most: int = MAX_MUTANTS
) -> list[tuple[str, CodeChange]]:
    """Returns at most `most` changes, taking each operator in turn."""
    by_operator: dict[str, list[tuple[str, CodeChange]]] = {}
    for one in ctx.rng.sample(all_, len(all_)):
        by_operator.setdefault(one[1].operator, []).append(one)
    queues = [by_operator[name] for name in sorted(by_operator)]
    turns = [queue[turn] for turn in range(max(map(len, queues), default=0)) for queue in queues if turn < len(queue)]
    return turns[:most]


def each(ctx: AuditContext, wanted: Iterable[T], judge: Callable[[T], Verdict]) -> list[Verdict]:
    """Judges mutants, several at a time, until the time is up."""

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
    """Returns the verdict with status "killed"."""
    return msgspec.structs.replace(silent, status="killed")


def mutant_of(path: str, change: CodeChange) -> Mutant:
    return Mutant(path, change.at, change.before, change.after)


# --- mutants of the verifier ---

_TAKEN = ask("quintain.audit.mutants.watch:taken")


_SLACK_S = 10.0
"""Extra seconds beyond four times the time without the mutant."""
_CPU_SLACK_S = 2.0
"""Extra seconds of processor time; endless loops are found soon."""


class MutantRuns:
    """Player of one mutant; it closes the process that the mutant may need for itself.

    Args:
        ctx: Context of the audit, whose processes play.
        mutant: The change to play with.
    """

    def __init__(self, ctx: AuditContext, mutant: Mutant) -> None:
        self._ctx, self._mutant = ctx, mutant
        self._own: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.close()

    def play(self, one: TaskBaseline, wanted: Probe) -> Record:
        """Plays a task's episodes until a score differs; the record holds only looks and scores.

        Args:
            one: The task.
            wanted: All its episodes, with further looks.

        Raises:
            SubjectBroken: The subject does not load with the mutant.
            OutOfTime: The budget is spent.
        """
        if self._own is None:
            record, how = self._tried(one, wanted, self._mutant)
            if how != swapping.UNFIT:
                return record
            self._own = Child(self._subject)
        return self._tried(one, wanted, None)[0]

    def shown(self, wanted: Probe) -> tuple[Subject, Probe, Record]:
        """Plays a probe with the mutant in a form that can be replayed: (subject, probe, record).

        Raises SubjectBroken if the process around the probe ended, and OutOfTime if the budget is spent.
        """
        if self._own is not None:
            return self._subject, wanted, self._own.play(wanted, self._ctx.limit)
        put = ask(swapping.SWAP, msgspec.to_builtins(self._mutant), mark="mutant")
        whole = msgspec.structs.replace(wanted, ops=(put, *wanted.ops))
        return self._ctx.subject, whole, self._ctx.play_probe(whole)

    @property
    def _subject(self) -> Subject:
        return msgspec.structs.replace(self._ctx.subject, mutant=self._mutant)

    def _tried(self, one: TaskBaseline, wanted: Probe, mutant: Mutant | None) -> tuple[Record, str]:
        trial = swapping.MutantRun(mutant, wanted.ops, one.scores, 4 * one.seconds + _CPU_SLACK_S)
        asked = ask(swapping.PLAY, msgspec.to_builtins(trial, builtin_types=(bytes,)))
        # The worker makes the tasks of all resets that it sees, before it forks.
        whole = Probe((msgspec.structs.replace(asked, lanes=((reset(one.task),),)),))
        limit = min(self._ctx.limit, 4 * one.seconds + _SLACK_S)
        played = self._own.play(whole, limit) if self._own is not None else self._ctx.play_probe(whole, limit)
        answer: Any = played.at("ask").value
        if played.died or not is_dict(answer):
            return Record(wanted.ops, (), played.died or played.at("ask").raised), ""
        tally = msgspec.convert(answer, swapping.SwapResult)
        return Record(wanted.ops, tuple(msgspec.convert(seen, OpResult) for seen in tally.seen)), tally.how


def differs(record: Record, one: TaskBaseline) -> bool:
    """True if an episode of a task scores differently or broke."""
    return bool(record.died) or scores(record, len(one.episodes)) != one.scores


class Verdicts:
    """Judge of verifier mutants, by episodes with many different scores.

    Args:
        ctx: Context of the audit.
        battery: The episodes.
        reached: Lines that the episodes run.
    """

    def __init__(self, ctx: AuditContext, battery: Sequence[TaskBaseline], reached: Reach) -> None:
        self._ctx, self._battery, self._reached = ctx, battery, reached

    def judge(self, path: str, change: CodeChange) -> Verdict:
        """Plays the episodes that run the changed lines; an expression without side effects records both its values."""
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

    def _watched(
        self, watched: MutantRuns, plain: MutantRuns, tried: Sequence[TaskBaseline], *, silent: Verdict
    ) -> Verdict:
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


def _first(record: Record, one: TaskBaseline) -> list[TaskBaseline]:
    """Returns the first episode with another score, alone."""
    paid = zip(scores(record, len(one.episodes)), one.scores, strict=True)
    return [
        msgspec.structs.replace(one, episodes=(one.episodes[at],), scores=(one.scores[at],), refused=(one.refused[at],))
        for at, (now, was) in enumerate(paid)
        if now != was
    ][:1]


def _is_paid_alike(plain: MutantRuns, tried: Sequence[TaskBaseline]) -> bool:
    return not any(differs(plain.play(one, probe(one.episodes)), one) for one in tried)


def _masked(watched: MutantRuns, silent: Verdict, episode: EpisodeScript, *, values: list[str]) -> Verdict:
    """Returns the verdict "survived" in this episode, in which the expression differs and the score does not."""
    subject, shown, record = watched.shown(probe([episode], around=[_TAKEN]))
    return msgspec.structs.replace(
        silent,
        status="survived",
        episode=episode,
        differs={silent.change.description: values},
        subject=subject,
        probe=shown,
        record=record,
    )


# --- mutants of the tools ---


class Worlds:
    """Judge of tool mutants, by the states that solutions leave.

    Args:
        ctx: Context of the audit.
        battery: Fully paid episodes.
        reached: Lines that the episodes run.
    """

    def __init__(self, ctx: AuditContext, battery: Sequence[TaskBaseline], reached: Reach) -> None:
        self._ctx, self._battery, self._reached = ctx, battery, reached
        # A digest costs less than a state, where there is one.
        self._look = Op("digest") if "digest" in ctx.offers else Op("changes")
        self._sound = ctx.play_all([probe(one.episodes, [self._look]) for one in battery])

    def judge(self, path: str, change: CodeChange) -> Verdict:
        """Plays the episodes that run the changed lines, and compares scores and final states."""
        silent, mutant = Verdict(path, change, "silent"), mutant_of(path, change)
        elsewhere: list[EpisodeScript] = []
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

    def _shown(self, runs: MutantRuns, silent: Verdict, elsewhere: Sequence[EpisodeScript]) -> Verdict:
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
    """Returns the paths at which two states differ, bookkeeping aside, from their changes since the same start."""
    if not (data.is_dict(sound) and data.is_dict(other)):
        return {}
    ends = [{path: pair[1] for path, pair in one.items()} for one in (sound, other)]
    found = data.changes(*ends)
    kept = {path: pair for path, pair in found.items() if not _is_noise(ctx, tuple(path.split("/")))}
    return {} if _contents(kept, 0) == _contents(kept, 1) else kept


def _contents(differs: dict[str, list[Any]], side: int) -> list[tuple[tuple[str, ...], str]]:
    """Returns the content of one side without row keys, so that renumbered rows are equal."""
    return sorted((kind(path), repr(_unkeyed(pair[side]))) for path, pair in differs.items() if pair[side] is not None)


def kind(path: str) -> tuple[str, ...]:
    """Returns a path as (table, field), without the row's key."""
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


@relation
def still_paid(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the episode scores `data["paid"]` and its state differs at one of the same paths."""
    record = records[0]
    score, found = number(record.at("0 score")), record.at("0 changes").value
    if score is None or score < evidence.data["paid"] - 1e-9 or not data.is_dict(found):
        return False
    end: dict[str, Any] = {path: pair[1] for path, pair in found.items()}
    return any(path in data.changes(evidence.data["sound"], end) for path in evidence.data["differs"])


@relation
def still_masked(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the episode scores `data["paid"]` and the mutated expression had another value."""
    score = number(records[0].at("0 score"))
    return score is not None and score >= evidence.data["paid"] - 1e-9 and bool(records[0].at("0 after").value)
