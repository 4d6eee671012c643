"""Reasoning Gym's procedural datasets: one question per task, one reply, and the original's score."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from quintain.environment import Environment
from quintain.errors import EpisodeError, UsageError
from quintain.harness import ToolLoop
from quintain.plugins import package
from quintain.state import State
from quintain.task import Task, Tasks
from quintain.trace import Level
from quintain.verifier import Criterion, EpisodeView, Verifier

from . import options as option

APART = 1_000_000
"""Difference between the seeds of the splits "train" and "test". Item i of a dataset has the dataset's seed + i."""
_ROUNDING = 1e-9  # Some originals add up fractions, and return 1.0000000000000002.


class Question(State):
    """World of a question: empty and without tools."""


class ScoreAnswer:
    """Scoring function: the original's score of what the last words hold between `<answer>` and `</answer>`.

    Attributes:
        original: Name, version and options of the dataset; part of the environment's fingerprint.
    """

    def __init__(self, original: tuple[str, str, dict[str, Any]], datasets: Mapping[str, Any]) -> None:
        self.original = original
        self._datasets = datasets
        self._extract = _library().utils.extract_answer

    def __call__(self, view: EpisodeView[Question]) -> float:
        """Returns the score, from 0 to 1, with the original's rounding errors.

        Raises:
            EpisodeError: Component T, `quintain:reset_failed`: the dataset's item is not that of the task any more.
        """
        truth = view.task.truth
        dataset = self._datasets[truth["split"]]
        entry = dataset[truth["index"]]
        if (entry["question"], entry["answer"]) != (view.task.prompt, truth["answer"]):
            message = f"not deterministic: item {truth['index']} of {self.original[0]} is another one when made again"
            raise EpisodeError(message, component="T", kind="quintain:reset_failed")
        return float(dataset.score_answer(self._extract(view.answer), entry))


def load(
    name: str, *, size: int | str = 100, seed: int | str = 0, system: str = "default", **options: Any
) -> Environment[Question]:
    """Returns a dataset of Reasoning Gym as an environment.

    Args:
        name: Name of a registered dataset, such as "leg_counting".
        size: Number of tasks in each of the splits "train" and "test".
        seed: Seed of "train", from 0; that of "test" is `APART` more.
        system: Name of one of Reasoning Gym's system prompts.
        options: Fields of the dataset's configuration.

    Raises:
        UsageError: Reasoning Gym is not installed, or has no dataset, option or system prompt of this name.
    """
    count, first = option.whole("size", size, least=1), option.whole("seed", seed, least=0)
    given, prompts = option.values(options), _library().utils.SYSTEM_PROMPTS
    if system not in prompts:
        raise UsageError(f"reasoning-gym has no system prompt {system!r}; it has {', '.join(prompts)}")
    seeds = {"train": first, "test": first + APART}
    datasets = {split: _dataset(name, given | {"size": count, "seed": start}) for split, start in seeds.items()}

    def tasks(split: str) -> Tasks[Question]:
        return Tasks(count, lambda index: _task(split, index, datasets[split][index]))

    fn = ScoreAnswer((name, version("reasoning-gym"), given), datasets)
    return Environment(
        re.sub(r"\W", "_", f"reasoning_gym_{name}"),
        tasks=tasks,
        harness=ToolLoop(system=prompts[system]),
        verifier=Verifier(
            Criterion(name="score_answer", level=Level.TRAJECTORY, fn=fn, low=-_ROUNDING, high=1 + _ROUNDING)
        ),
        state=Question,
        splits=tuple(seeds),
    )


def _library() -> Any:
    return package("reasoning_gym", extra="reasoning-gym")


def _dataset(name: str, options: dict[str, Any]) -> Any:
    """Returns a dataset.

    Raises:
        UsageError: It is unknown, or its configuration refuses an option.
    """
    factory = _library().factory
    known: dict[str, Any] = factory.DATASETS
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(known))}"
        raise UsageError(f"reasoning-gym has no dataset {name!r}; {hint}")
    fields = [field.name for field in dataclasses.fields(known[name][1])]
    if unknown := sorted(options.keys() - set(fields)):
        raise UsageError(f"reasoning-gym:{name} has no option {', '.join(unknown)}; it has {', '.join(fields)}")
    try:
        return factory.create_dataset(name, **options)
    except (AssertionError, TypeError, ValueError) as error:
        raise UsageError(f"reasoning-gym:{name} refuses {options}: {error}") from error


def _task(split: str, index: int, entry: dict[str, Any]) -> Task[Question]:
    answer: str | None = entry["answer"]
    return Task(
        id=f"{split}-{index}",
        prompt=entry["question"],
        start=Question(),
        truth={"split": split, "index": index, "answer": answer},
        solution=None if answer is None else (),
        answer=f"<answer>{answer}</answer>",
    )
