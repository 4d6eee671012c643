"""Judging of mutants: each plays the battery until some score differs.

    killed     some episode scores differently or breaks: the mutated code is checked
    survived   a difference is visible, and every episode scores as before
    silent     no difference is visible: the mutant may be equivalent, or the battery too weak

Only survivors are reported. For the verifier, the difference is that of the mutated expression in a fully paid episode;
for tools, it is a difference of the state without bookkeeping.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, Self

import msgspec

from quintain.audit.checks._reward_acts import is_bookkeeping
from quintain.audit.facts.data import changes, is_dict
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

MAX_MUTANTS = 60  # most mutants that are tried of each component
_TAKEN = ask("quintain.audit.mutants.watch:taken")
_SLACK_S = 10.0  # extra seconds beyond four times the time without the mutant
_CPU_SLACK_S = 2.0  # extra seconds of processor time; endless loops are found soon


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
        try:
            there = operators.changes(Path(path).read_bytes(), part)
        except (SyntaxError, UnicodeDecodeError, OSError):
            continue  # Code that was made at run time, or is kept in another encoding, cannot be edited.
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


class MutantRuns:
    """Player of one mutant; it closes the process that the mutant may need for itself."""

    def __init__(self, ctx: AuditContext, mutant: Mutant) -> None:
        self._ctx, self._mutant = ctx, mutant
        self._subject = msgspec.structs.replace(ctx.subject, mutant=mutant)
        self._own: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.close()

    def play(self, one: TaskBaseline, wanted: Probe) -> Record:
        """Plays a task's episodes until a score differs; the record holds only looks and scores."""
        if self._own is None:
            record, how = self._tried(one, wanted, self._mutant)
            if how != swapping.UNFIT:
                return record
            self._own = Child(self._subject)
        return self._tried(one, wanted, None)[0]

    def shown(self, wanted: Probe) -> tuple[Subject, Probe, Record]:
        """Plays a probe with the mutant in a form that can be replayed: (subject, probe, record)."""
        if self._own is not None:
            return self._subject, wanted, self._own.play(wanted, self._ctx.limit)
        put = ask(swapping.SWAP, msgspec.to_builtins(self._mutant), mark="mutant")
        whole = msgspec.structs.replace(wanted, ops=(put, *wanted.ops))
        return self._ctx.subject, whole, self._ctx.play_probe(whole)

    def is_paid_alike(self, tried: Sequence[TaskBaseline]) -> bool:
        return not any(differs(self.play(one, probe(one.episodes)), one) for one in tried)

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
        result = msgspec.convert(answer, swapping.SwapResult)
        return Record(wanted.ops, tuple(msgspec.convert(seen, OpResult) for seen in result.seen)), result.how


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
            if self._ctx.seconds_left() <= 0:
                return None
            try:
                verdict = self.judge(*item)
            except OutOfTime:
                return None
            self._ctx.count_comparisons()
            return verdict

        with ThreadPoolExecutor(WORKERS) as executor:
            return [verdict for verdict in executor.map(one, wanted) if verdict is not None]

    def judge(self, path: str, change: CodeChange) -> Verdict:
        """Plays the episodes that run the changed lines; an expression without side effects records both its values."""
        silent = Verdict(path, change, "silent")
        mutant = Mutant(path, change.at, change.before, change.after)
        tried = [(one, sound) for one, sound in self._battery if self._reached.runs(one.task, path, change.lines)]
        tasks = [one for one, _ in tried]
        try:
            if is_same(mutant):
                return silent
            with MutantRuns(self._ctx, mutant) as plain:
                if self._part == "S":
                    found = self._ends(plain, silent, tried)
                elif change.watched is None:
                    found = silent if plain.is_paid_alike(tasks) else None
                else:
                    with MutantRuns(self._ctx, Mutant(path, *change.watched)) as watched:
                        found = self._watched(watched, plain, tasks, silent=silent)
        except (SubjectBroken, UsageError):
            found = None  # Whatever a mutant does to its process, it does not go unnoticed.
        return msgspec.structs.replace(silent, status="killed") if found is None else found

    def _watched(
        self, watched: MutantRuns, plain: MutantRuns, tried: Sequence[TaskBaseline], *, silent: Verdict
    ) -> Verdict | None:
        """Returns the verdict on an expression of the verifier; None if the mutant is killed."""
        for place, one in enumerate(tried):
            record = watched.play(one, probe(one.episodes, around=[_TAKEN]))
            if differs(record, one):  # Unless to evaluate it twice did something.
                first = [*_first(record, one), one, *tried[:place], *tried[place + 1 :]]
                return silent if plain.is_paid_alike(first) else None
            for at, episode in enumerate(one.episodes):
                seen = record.at(f"{at} after").value
                if seen and one.scores[at] == one.full:
                    if not plain.is_paid_alike(tried):
                        return None
                    subject, shown, record = watched.shown(probe([episode], around=[_TAKEN]))
                    values = {silent.change.description: seen[0]}
                    return _survived(silent, episode, values, subject=subject, probe=shown, record=record)
        return silent

    def _ends(self, runs: MutantRuns, silent: Verdict, tried: Sequence[tuple[TaskBaseline, Record]]) -> Verdict | None:
        """Returns the verdict on a change of a tool, by the states that solutions leave; None if it is killed."""
        elsewhere: list[EpisodeScript] = []
        for one, sound in tried:
            record = runs.play(one, probe(one.episodes, [self._look]))
            if differs(record, one):
                return None
            marks = [(f"{place} {self._look.do}", episode) for place, episode in enumerate(one.episodes)]
            volatile = self._ctx.volatile
            elsewhere += [episode for mark, episode in marks if not same(record.at(mark), sound.at(mark), volatile)]
        for episode in elsewhere[:4]:
            wanted = probe([episode], [Op("changes")])
            subject, shown, record = runs.shown(wanted)
            sound = self._ctx.play_probe(wanted).at("0 changes").value
            if found := differing(self._ctx, sound, record.at("0 changes").value):
                end = {path: pair[1] for path, pair in sound.items()}
                return _survived(silent, episode, found, subject=subject, probe=shown, record=record, sound=end)
        return silent


def _survived(silent: Verdict, episode: EpisodeScript, found: dict[str, Any], **shown: Any) -> Verdict:
    return msgspec.structs.replace(silent, status="survived", episode=episode, differs=found, **shown)


def _first(record: Record, one: TaskBaseline) -> list[TaskBaseline]:
    paid = zip(scores(record, len(one.episodes)), one.scores, strict=True)
    return [one.only([at]) for at, (now, was) in enumerate(paid) if now != was][:1]


# --- states ---


def differing(ctx: AuditContext, sound: Any, other: Any) -> dict[str, list[Any]]:
    """Returns the paths at which two states differ, bookkeeping aside, from their changes since the same start."""
    if not (is_dict(sound) and is_dict(other)):
        return {}
    before, after = ({path: pair[1] for path, pair in one.items()} for one in (sound, other))
    noise = {*ctx.volatile}
    kept: dict[str, list[Any]] = {}
    for path, pair in changes(before, after).items():
        steps = tuple(path.split("/"))
        quiet = _is_date(steps[-1]) or is_bookkeeping(steps) or steps[0] in ctx.discovery.background
        if not quiet and not {*steps} & noise:
            kept[path] = pair
    return {} if _contents(kept, 0) == _contents(kept, 1) else kept


def _contents(found: dict[str, list[Any]], side: int) -> list[tuple[tuple[str, ...], str]]:
    """Returns the content of one side without row keys, so that renumbered rows are equal."""
    return sorted((kind(path), repr(_unkeyed(pair[side]))) for path, pair in found.items() if pair[side] is not None)


def kind(path: str) -> tuple[str, ...]:
    """Returns a path as (table, field), without the row's key."""
    table, _, rest = path.partition("/")
    return table, rest.rpartition("/")[2] if "/" in rest else ""


def _unkeyed(value: Any) -> Any:
    is_row = is_dict(value)
    return {name: one for name, one in value.items() if name != "id" and not _is_date(name)} if is_row else value


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
