"""Two runs compared: sums over pairs as a plain count finds them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quintain.studio.compare import compared
from quintain.studio.folders import Runs
from quintain.trace import Trace
from tests.studio.runs import failed, trace, write

FIRST = [
    *(trace(f"t{n}", m, score=m / 3, turns=1 + n) for n in range(3) for m in range(4)),
    failed("lost"),
    trace("here", 0),
]
SECOND = [*(trace(f"t{n}", m, score=0.5, turns=2) for n in range(3) for m in range(4)), trace("lost")]


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    write(tmp_path / "runs" / "a", FIRST)
    write(tmp_path / "runs" / "b", SECOND)
    made = Runs([tmp_path / "runs"], tmp_path / "cache")
    yield made
    made.close()


def pairs() -> list[tuple[Trace, Trace]]:
    others = {(one.task, one.member): one for one in SECOND}
    return [
        (one, others[one.task, one.member])
        for one in FIRST
        if one.score is not None and (one.task, one.member) in others
    ]


def test_pairs_are_counted(runs: Runs) -> None:
    found = compared(runs["a"], runs["b"])
    counts = [found[name] for name in ("better", "worse", "same", "open", "missing")]
    assert counts == [6, 6, 0, 1, 1]
    assert sum(one["n"] for one in found["parts"]["task"]) == len(pairs())


@pytest.mark.parametrize("by", ["task", "tag", "tool"])
def test_scores_are_added_up(runs: Runs, by: str) -> None:
    def names(one: Trace, other: Trace) -> set[str]:
        tools = {step.call.name for made in (one, other) for turn in made.turns for step in turn.steps}
        return {"task": {one.task}, "tag": {f'level:"{one.tags["level"]}"'}, "tool": tools}[by]

    wanted: dict[str, list[float]] = {}
    for one, other in pairs():
        for name in names(one, other):
            sums = wanted.setdefault(name, [0, 0, 0])
            wanted[name] = [sums[0] + (one.score or 0), sums[1] + (other.score or 0), sums[2] + 1]
    parts = compared(runs["a"], runs["b"])["parts"][by]
    assert {one["name"]: [one["a"], one["b"], one["n"]] for one in parts} == {
        name: pytest.approx(sums) for name, sums in wanted.items()
    }
    gaps = [abs(one["b"] - one["a"]) / one["n"] for one in parts]
    assert gaps == sorted(gaps, reverse=True)


def test_failures_are_shares_of_pairs(runs: Runs) -> None:
    parts = compared(runs["a"], runs["b"])["parts"]
    # A score of 1 is no failure: three of the first run have it.
    assert parts["shape"] == [{"name": "done", "a": 9, "b": 12, "n": 12}]
    assert parts["phase"] == []
