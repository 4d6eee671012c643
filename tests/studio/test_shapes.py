"""Shapes of failure: equal for failures of one kind, and in the index as a column."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quintain.studio.columns import Columns
from quintain.studio.index import Index
from quintain.studio.shapes import SEPARATOR, plain, shape
from quintain.trace import Level, Reward
from tests.studio.runs import Reader, failed, trace, write


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L-45527.reason should be 'too_small', is 'no_budget'", "L-#.reason should be #, is #"),
        ('row "a b" is missing at 12:30', "row # is missing at #"),
        ("it doesn't fit, isn't it", "it doesn't fit, isn't it"),
        ("a ▸ b\n  c", "a > b c"),
        ("no e-mail to ada.l@x-y.example; none to b@c.de", "no e-mail to #; none to #"),
        ("run 9f2c61d0a7b84e13 and deadbeef, fade", "run # and deadbeef, fade"),
        ("1.5 and 1,000", "# and #"),
        ("x" * 1000, "x" * 100),
    ],
)
def test_a_reason_loses_names_and_numbers(text: str, expected: str) -> None:
    assert plain(text) == expected


def test_a_shape_has_four_parts() -> None:
    found = shape([("done", "L-1 is '2'"), ("lawful", "")], ("update", "no field 'x'"), "terminated: 3 turns")
    assert found.split(SEPARATOR) == [
        "done, lawful",
        "done: L-# is #; lawful",
        "update: no field #",
        "terminated: # turns",
    ]
    assert shape([], None, "truncated").split(SEPARATOR) == ["no criterion", "no reason", "none refused", "truncated"]


def test_the_index_groups_failures_by_shape(tmp_path: Path) -> None:
    calm = [trace("t4", score=0.0, turns=1), trace("t5", score=0.0, turns=1, say="said '7'"), failed("t6")]
    penalty = trace("t7", score=0.5, turns=1)
    penalty.rewards.append(Reward(name="cost", level=Level.TRAJECTORY, raw=0.0, value=0.0, reason="spent"))
    folder = write(tmp_path / "run", [trace("t1"), trace("t2", score=0.0, say="42"), *calm, penalty])
    criterion = {"level": "trajectory", "weight": 1.0, "low": -1.0, "high": 0.0, "normalize": False, "after": None}
    described = {"name": "desk", "fingerprint": "f", "combine": "sum", "tools": [], "splits": {}}
    criteria = [criterion | {"name": "cost", "external": False}]
    (folder / "environment.json").write_text(json.dumps(described | {"criteria": criteria}))
    index, columns, reader = Index(folder, ":memory:"), Columns(), Reader()
    index.update()
    columns.update(index)
    reader.apply(columns.pack())
    shapes = [value.split(SEPARATOR) for value in reader.columns["shape"]]
    assert shapes[0] == [""]
    assert shapes[1] == ["done", "done: said #", "update: #", "terminated"]
    assert shapes[2][0] == shapes[3][0] == "done"
    assert shapes[4][0] == "failure of S"
    assert shapes[4][3] == "failed: quintain:tool_bug"
    assert shapes[5][:2] == ["done", "done: said fine"]
    index.close()
