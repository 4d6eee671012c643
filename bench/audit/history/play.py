"""Plays the subjects of a pair by hand."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import PAIRS, Pair

Factory = Callable[..., Any]


def named(start: str) -> Pair:
    """The one pair whose name begins so."""
    (pair,) = (pair for pair in PAIRS if pair.name.startswith(start))
    return pair


def factory(spec: str) -> Factory:
    """Returns the factory that a pair's spec names."""
    file, _, name = spec.rpartition(":")
    found: Factory = getattr(importlib.import_module(f".{Path(file).stem}", __package__), name)
    return found


def cases(pair: Pair) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(pair.cases).read_text(encoding="utf-8").splitlines()]


def play(subject: Any, task: str, *calls: list[Any]) -> float:
    """The score of a task after calls."""
    subject.reset(task, 1)
    for name, arguments in calls:
        subject.call(name, arguments)
    score = subject.score()
    assert isinstance(score, float)
    return score


def solved(subject: Any, task: str) -> float:
    return play(subject, task, *subject.oracle(task))
