"""A reward that is a sum of its parts: parts without weight, of the wrong sign, and where the sum is left."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from quintain.audit.checks import reward_clipping
from quintain.audit.facts.histogram import atom
from quintain.audit.kernel.check import checks_of
from tests.audit.checks._board import BOARD
from tests.audit.checks._found import found

SUBJECT = (
    BOARD
    + """
    def score(self):
        parts = {name: float(self.fields[name] == value) for name, value in self.want.items()}
        w, x, y, z = parts.values()
        total = 0.1 * w + 0.2 * x + 0.3 * y + 0.4 * z
        # Style is at its best only where the rest is not, so no two states alone show what it is worth.
        style = 0.2 * w + 0.1 * x + 0.4 * y * (1 - z)
        parted = {"wx": w + x, "yz": y + z, "style": style}
        return {
            "sound": total,
            "parts": {"score": total, **parts},
            "product": w * x * y * z,
            "gated": total * w,
            "pairs": (min(w, x) + min(y, z)) / 2,
            "floor": max(0.0, total - 0.35),
            "top": {"score": min(0.65, 0.2 * w + 0.2 * x + 0.3 * y + 0.3 * z + 0.1 * style), "style": style, **parts},
            "pile": total**2 if total > 0.45 else 0.0,
            "steps": {"score": round(0.13 * w + 0.22 * x + 0.31 * y + 0.34 * z, 1), **parts},
            "fifths": round(0.13 * w + 0.22 * x + 0.31 * y + 0.34 * z, 1),
            "dead": {"score": 0.25 * w + 0.25 * x + 0.25 * y + 0.25 * z, **parted},
            "sign": {"score": 0.2 * (w + x) + 0.3 * (y + z) - 0.2 * style, **parted},
        }[self.mode]


for mode in ("sound", "parts", "product", "gated", "pairs", "floor", "top", "pile", "steps", "fifths", "dead", "sign"):
    globals()[f"plain_{mode}"] = type(mode, (Board,), {"mode": mode, "graded": False})
    globals()[f"graded_{mode}"] = type(mode, (Board,), {"mode": mode})
"""
)
MINE = [one for one in checks_of(reward_clipping) if one.id in ("x.reward_is_a_sum", "x.rewards_do_not_pile_up")]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sums") / "subject.py"
    path.write_text(SUBJECT, "utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "words", "confidence"),
    [
        ("plain_floor", "a sum that is cut off at 0", "hint"),
        ("graded_floor", "a sum that is cut off at 0", "likely"),
        ("plain_top", "a sum that is cut off at 0.65", "likely"),
        ("plain_steps", "rounded to steps of 0.1", "hint"),
        ("plain_dead", "component style has no weight", "likely"),
        ("plain_sign", "component style has the wrong sign", "likely"),
    ],
)
def test_deviation_from_a_sum_is_reported(file: Path, kind: str, words: str, confidence: str) -> None:
    said = found(file, kind, MINE)
    assert [(one.check, one.confidence) for one in said] == [("x.reward_is_a_sum", confidence)], said
    assert words in said[0].title
    assert said[0].class_ == "reward_clipping"


@pytest.mark.slow
def test_a_pile_is_told_where_rewards_are_declared_graded(file: Path) -> None:
    (one,) = found(file, "graded_pile", MINE)
    assert one.title == "rewards pile up at 0: 7 of 16 states of a task, hardly any beside it"
    assert one.confidence == "hint"


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["plain_pile", "plain_fifths", "plain_parts", "plain_product", "plain_gated", "plain_pairs", "graded_pairs"]
)
def test_no_finding_for_rewards_that_are_not_sums(file: Path, kind: str) -> None:
    assert not found(file, kind, MINE)


@pytest.mark.slow
def test_a_sum_is_left_alone(file: Path) -> None:
    assert not found(file, "graded_sound", MINE)


POINTS = [tuple(map(float, point)) for point in itertools.product((0, 1), repeat=4)]
SUMS = [sum(weight * one for weight, one in zip((0.1, 0.2, 0.3, 0.4), point, strict=True)) for point in POINTS]


def test_an_atom_is_far_over_its_neighbours() -> None:
    spread = [place / 20 for place in range(21)]
    assert atom(spread) is None
    assert atom([*spread, *[1.0] * 15]) == 1.0
    assert atom([*spread, *[0.0] * 15]) == 0.0
    assert atom([0.0, 1.0] * 20) is None
    assert atom([*[0.0] * 11, *[0.2] * 9, *[0.4] * 8, 0.6, 0.6, 0.8, 1.0]) is None
