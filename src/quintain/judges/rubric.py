"""Evolving rubrics: criteria that a model writes from the differences within a group, audited before they count.

Source: reinforcement learning with evolving rubrics, DR Tulu (github.com/rlresearch/dr-tulu). Its code turns a missing
verdict into 0, counts rollouts without an answer in the spread of a rubric, trusts every generated rubric and forgets
its rubrics at a restart; this module does none of these.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from quintain import codec
from quintain.errors import DefinitionError, JudgeError, UsageError
from quintain.task import Task
from quintain.verifier import Criterion, GroupView, Score, reward

from .chat import Judge, all_of, answer, fenced, filled, question
from .llm import Show

MOST = 20
"""Rubrics of one task that may count at once."""
NULL_ANSWER = "I cannot answer this question."
_QUOTED = 8
"""Words in a row that a rubric may not take from an episode: it would reward the text instead of the quality."""

GENERATE = """Task that several agents were given:
{task}

What each of them did:
{texts}

Rubrics that exist already:
{known}

Write at most 5 new rubrics that tell these episodes apart: "positive" for what the better ones achieve, "negative" for
mistakes that the worse ones make. No rubric may repeat an existing one, be the opposite of another one, or quote an
episode. Write none if nothing new tells them apart."""

GRADE = """Task that an agent was given:
{task}

What it did:
{text}

Grade each rubric: 2 if it holds fully, 1 in part, 0 not at all.
{rubrics}"""


class Rubric(msgspec.Struct, frozen=True):
    """A statement about an episode; `weight` is below 0 for a mistake."""

    title: str
    description: str
    weight: float = 1.0


class RubricSet(msgspec.Struct, frozen=True):
    """Rubrics of one task: `persistent` always count, `active` count now, `inactive` never count again."""

    persistent: tuple[Rubric, ...] = ()
    active: tuple[Rubric, ...] = ()
    inactive: tuple[Rubric, ...] = ()
    version: int = 0

    @property
    def counting(self) -> tuple[Rubric, ...]:
        """The rubrics that make the score."""
        return self.persistent + self.active

    @property
    def digest(self) -> str:
        """Name of the rubrics that count: 32 hex digits."""
        return codec.digest(codec.dumps(self.counting))


class _Entry(msgspec.Struct, frozen=True):
    task: str
    rubrics: RubricSet


class RubricStore:
    """Rubric sets by task, in a file that holds every version: one JSON object per line.

    Args:
        path: The file; it need not exist. None keeps the sets in memory.

    Raises:
        UsageError: A line of the file cannot be read.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._sets: dict[str, RubricSet] = {}
        lines = path.read_bytes().splitlines() if path and path.exists() else []
        for number, line in enumerate(lines, 1):
            try:
                entry = msgspec.json.decode(line, type=_Entry)
            except msgspec.DecodeError as error:
                raise UsageError(f"{path}:{number}: {error}") from error
            self._sets[entry.task] = entry.rubrics

    def get(self, task: str, persistent: Iterable[Rubric] = ()) -> RubricSet:
        """Returns the newest set of a task, with these persistent rubrics."""
        return msgspec.structs.replace(self._sets.get(task, RubricSet()), persistent=tuple(persistent))

    def put(self, task: str, rubrics: RubricSet) -> None:
        """Keeps a set, and appends it to the file."""
        self._sets[task] = rubrics
        if self._path:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(_Entry(task, rubrics)) + b"\n")


class _Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    description: Annotated[str, msgspec.Meta(min_length=1, max_length=600)]


class _Generated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    positive: Annotated[list[_Written], msgspec.Meta(max_length=5)]
    negative: Annotated[list[_Written], msgspec.Meta(max_length=5)]


class _Grade(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: int
    grade: Literal[0, 1, 2]


class _Grades(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    grades: list[_Grade]


class EvolvingRubric:
    """Scoring function of a group; `evolving_rubric` makes a criterion of it."""

    def __init__(
        self,
        judge: Judge,
        generator: Judge,
        *,
        store: RubricStore,
        gold: Callable[[Task[Any]], str],
        persistent: Callable[[Task[Any]], Iterable[Rubric]],
        max_active: int,
        show: Show,
    ) -> None:
        self._judge, self._generator, self._store = judge, generator, store
        self._gold, self._persistent, self._max_active, self._show = gold, persistent, max_active, show

    async def __call__(self, group: GroupView[Any]) -> list[Score]:
        """Returns a score per episode, and stores the evolved set.

        Raises:
            JudgeError: The judge has no verdict, or no rubric counts for the task.
        """
        first, task = group.episodes[0], group.task
        texts = [self._show(view) for view in group.episodes]
        known = self._store.get(task.id, self._persistent(task))
        new, facts = await self._new_rubrics(group, texts, known=known)
        used = msgspec.structs.replace(known, active=known.active + new)
        if not used.counting:
            raise JudgeError(f"no rubric counts for task {task.id!r}: {facts}")
        if len(used.counting) > MOST:
            raise JudgeError(f"{len(used.counting)} rubrics count for task {task.id!r}, at most {MOST} may")
        answered = [text if text.strip() else None for text in texts]
        grades = await all_of(self._grades(first, text, used.counting) for text in answered if text)
        evolved, spread = _evolved(used, grades, most=self._max_active)
        if evolved != known:
            self._store.put(task.id, msgspec.structs.replace(evolved, version=known.version + 1))
        left = iter(grades)
        every = [next(left) if text else [0.0] * len(used.counting) for text in answered]
        facts |= {"rubrics": used.digest, "version": known.version, "spread": spread}
        facts |= {**self._judge.facts, "generator": self._generator.name, "drift": _drift(used, grades)}
        return [_score(used.counting, own, facts) for own in every]

    async def _new_rubrics(
        self, group: GroupView[Any], texts: Sequence[str], *, known: RubricSet
    ) -> tuple[tuple[Rubric, ...], dict[str, Any]]:
        """Returns rubrics that passed the audit, and what became of the others."""
        view = group.episodes[0]
        listed = "\n".join(f"- {one.title}: {one.description}" for one in known.counting) or "none"
        shown = "\n".join(fenced(f"episode_{n}", text) for n, text in enumerate(texts, 1))
        prompt = filled(GENERATE, {"task": question(view), "known": listed}, texts=shown)
        try:
            said = await self._generator.ask(prompt, _Generated, trace=view.trace)
        except JudgeError as error:  # The stored rubrics still tell the episodes apart.
            return (), {"generator_failed": str(error)[:300]}
        made = [Rubric(one.title, one.description, 1.0) for one in said.votes[0].positive]
        made += [Rubric(one.title, one.description, -1.0) for one in said.votes[0].negative]
        seen = {_plain(one.description) for one in known.counting + known.inactive}
        fresh: list[Rubric] = []
        rejected: dict[str, str] = {}
        for one in made:
            if _plain(one.description) in seen:
                rejected[one.title] = "repeats another one"
            elif any(_quotes(one.description, text) for text in texts):
                rejected[one.title] = "quotes an episode"
            else:
                fresh.append(one)
            seen.add(_plain(one.description))
        kept = await self._audited(view, fresh, rejected) if fresh else []
        return tuple(kept), {"generated": [one.title for one in kept], "rejected": rejected}

    async def _audited(self, view: Any, fresh: list[Rubric], rejected: dict[str, str]) -> list[Rubric]:
        """Returns the rubrics that the gold answer satisfies and the null answer does not."""
        texts = (self._gold(view.task), NULL_ANSWER)
        gold, null = await all_of(self._grades(view, text, fresh) for text in texts)
        kept: list[Rubric] = []
        for one, at_gold, at_null in zip(fresh, gold, null, strict=True):
            if one.weight < 0 and at_gold:
                rejected[one.title] = "blames the gold answer"
            elif one.weight > 0 and at_gold < 1:
                rejected[one.title] = "does not hold on the gold answer"
            elif at_null:
                rejected[one.title] = "holds on the null answer"
            else:
                kept.append(one)
        return kept

    async def _grades(self, view: Any, text: str, rubrics: Sequence[Rubric]) -> list[float]:
        """Returns the grade of each rubric on a text, from 0 to 1.

        Raises:
            JudgeError: The judge failed, or graded other rubrics.
        """
        listed = "\n".join(f"{n}. {one.title}: {one.description}" for n, one in enumerate(rubrics, 1))
        prompt = filled(GRADE, {"task": question(view), "text": text, "rubrics": listed})
        said = await self._judge.ask(prompt, _Grades, trace=view.trace)
        every = [{one.number: one.grade / 2 for one in vote.grades} for vote in said.votes]
        for vote, found in zip(said.votes, every, strict=True):
            if sorted(one.number for one in vote.grades) != list(range(1, len(rubrics) + 1)):
                message = f"the judge graded the rubrics {sorted(found)}, there are {len(rubrics)}"
                raise JudgeError(message, kind="judge_unparseable")
        return [statistics.fmean(found[n] for found in every) for n in range(1, len(rubrics) + 1)]


def evolving_rubric(
    judge: Judge,
    generator: Judge,
    *,
    gold: Callable[[Task[Any]], str],
    store: RubricStore | None = None,
    persistent: Callable[[Task[Any]], Iterable[Rubric]] | None = None,
    max_active: int = 5,
    show: Show = answer,
) -> Criterion[Any]:
    """Returns a group-level criterion: sum of weight * grade / max(sum of the weights above 0, 1) over P and A.

    P are the persistent rubrics of the task, A the active ones. Each group adds up to 10 rubrics that the generator
    writes from its episodes; one counts only if a gold answer satisfies it and a null answer does not (a mistake must
    be in neither). An active rubric whose grades do not differ within a group retires, and so do those with the least
    standard deviation beyond `max_active`. Episodes without an answer have grade 0 and do not count in the deviation.
    The range is [-MOST, 1].

    Args:
        judge: Grades each rubric with 0, 1 or 2, divided by 2.
        generator: Writes rubrics; if it fails, the stored ones count.
        gold: Function from the task to a right answer.
        store: Where rubric sets live; in memory by default.
        persistent: Function from the task to rubrics that always count; none by default.
        max_active: Largest number of active rubrics, 1 and up.
        show: What judge and generator see of an episode.

    Raises:
        DefinitionError: `max_active` is below 1 or above 10.
    """
    if not 1 <= max_active <= MOST // 2:
        raise DefinitionError(f"max_active must be in [1, {MOST // 2}], got {max_active}")
    fn = EvolvingRubric(
        judge,
        generator,
        store=store or RubricStore(),
        gold=gold,
        persistent=persistent or (lambda _: ()),
        max_active=max_active,
        show=show,
    )

    @reward(level="group", external=True, low=-MOST)
    async def evolving_rubric(group: GroupView[Any]) -> list[Score]:
        return await fn(group)

    return evolving_rubric


def _evolved(used: RubricSet, grades: Sequence[Sequence[float]], *, most: int) -> tuple[RubricSet, dict[str, float]]:
    """Returns the set without the active rubrics that tell nothing apart, and the deviation of each."""
    if len(grades) < 2:
        return used, {}
    spread = [statistics.pstdev(own[n] for own in grades) for n in range(len(used.counting))]
    by_rubric = dict(zip(used.active, spread[len(used.persistent) :], strict=True))
    best = sorted((one for one in used.active if by_rubric[one]), key=lambda one: -by_rubric[one])[:most]
    active = tuple(one for one in used.active if one in best)
    retired = tuple(one for one in used.active if one not in best)
    found = {one.title: round(value, 6) for one, value in zip(used.counting, spread, strict=True)}
    return msgspec.structs.replace(used, active=active, inactive=used.inactive + retired), found


def _score(rubrics: Sequence[Rubric], grades: Sequence[float], facts: dict[str, Any]) -> Score:
    parts = {one.title: grade for one, grade in zip(rubrics, grades, strict=True)}
    return Score(
        _value(rubrics, grades), f"{sum(map(bool, grades))} of {len(grades)} rubrics hold", facts | {"grades": parts}
    )


def _value(rubrics: Sequence[Rubric], grades: Sequence[float]) -> float:
    positive = math.fsum(one.weight for one in rubrics if one.weight > 0)
    return math.fsum(one.weight * grade for one, grade in zip(rubrics, grades, strict=True)) / max(positive, 1.0)


def _drift(used: RubricSet, grades: Sequence[Sequence[float]]) -> float | None:
    """Returns Spearman's correlation of the scores by persistent and by active rubrics only; None if it is undefined.

    A value that falls over time says that the active rubrics reward something else than the persistent ones.
    """
    split = len(used.persistent)
    sides = (
        [_value(used.persistent, own[:split]) for own in grades],
        [_value(used.active, own[split:]) for own in grades],
    )
    ranks = [[_rank(value, side) for value in side] for side in sides]
    if not (split and used.active) or len(grades) < 2 or any(len(set(side)) < 2 for side in ranks):
        return None
    return statistics.correlation(*ranks)


def _rank(value: float, side: Sequence[float]) -> float:
    return sum(other < value for other in side) + (side.count(value) - 1) / 2


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _quotes(description: str, text: str) -> bool:
    words, whole = _plain(description).split(), f" {_plain(text)} "
    return any(f" {' '.join(words[n : n + _QUOTED])} " in whole for n in range(len(words) - _QUOTED + 1))
