"""Tests that clipped, rounded or inverted rewards are separated from deliberately coarse ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain import codec
from quintain.audit.checks import reward_clipping
from quintain.audit.kernel.check import checks_of
from tests.audit.checks._board import BOARD
from tests.audit.checks._found import firm, found

SUBJECT = (
    BOARD
    + """
    def score(self):
        parts = {name: float(self.fields[name] == value) for name, value in self.want.items()}
        w, x, y, z = parts.values()
        mean = (w + x + y + z) / 4
        return {
            "sound": {"score": mean, **parts},
            "weights": {"score": 0.1 * w + 0.2 * x + 0.3 * y + 0.4 * z, **parts},
            "pairs": (min(w, x) + min(y, z)) / 2,
            "half": math.floor(mean * 2) / 2,
            "top": min(1.0, mean * 4 / 3),
            "dead": {"score": (w + x + y) / 3, **parts},
            "sign": {"score": max(0.0, (w + x + y - z + 1) / 4), **parts},
            "raw": {"score": min(1.0, mean * 2), "raw": mean * 2},
            "binary": float(mean == 1),
            "product": {"score": w * x * y * z, **parts},
        }[self.mode]


for mode in ("sound", "weights", "pairs", "half", "top", "dead", "sign", "raw", "binary", "product"):
    globals()[f"graded_{mode}"] = type(mode, (Board,), {"mode": mode})
    globals()[f"plain_{mode}"] = type(mode, (Board,), {"mode": mode, "graded": False})



class plain_top_at_least(plain_top):
    def reset(self, task, seed):
        return super().reset(task, seed) + " Set at least three of them."


class Ended(Board):
    # The episode ends with the last write, before the oracle's last words.
    def oracle(self, task):
        return [*super().oracle(task), {"answer": "done"}]

    def answer(self, text):
        return {"error": "the episode has ended"}


class Waited(Board):
    # Each call takes time, and something is due in it: also in calls that read.
    def tools(self):
        schema = {"type": "object", "properties": {}, "required": []}
        return [*super().tools(), {"name": "get_all", "description": "", "parameters": schema}]

    def reset(self, task, seed):
        self.due = 9
        super().reset(task, seed)
        return f"Set w to {self.want['w']}."

    def call(self, name, arguments):
        self.due -= 1
        return dict(self.fields) if name == "get_all" else super().call(name, arguments)

    def state(self):
        return super().state() | {"due": self.due}

    def oracle(self, task):
        return [["get_all", {}], super().oracle(task)[0], ["get_all", {}], ["get_all", {}]]

    def score(self):
        return float(self.fields["w"] == self.want["w"])


for mode in ("sound", "binary"):
    globals()[f"ended_{mode}"] = type(mode, (Ended,), {"mode": mode})

QUESTIONS = {"q1": ("How many are 3 and 4?", "7"), "q2": ("What is 12.5 times 10.1?", "126.25")}


class Sums:
    mode = "exact"

    def tasks(self):
        return list(QUESTIONS)

    def reset(self, task, seed):
        self.gold, self.said = QUESTIONS[task][1], ""
        return QUESTIONS[task][0]

    def answer(self, text):
        self.said = text

    def oracle(self, task):
        return [{"answer": QUESTIONS[task][1]}]

    def score(self):
        try:
            said, gold = float(self.said), float(self.gold)
        except ValueError:
            return 0.0
        if self.mode == "text":
            return float(self.said == self.gold)
        if not math.isfinite(said):
            return 0.0
        if self.mode == "whole":
            return float(round(said) == round(gold))
        return float(abs(abs(said) - abs(gold)) < 1e-6 if self.mode == "size" else abs(said - gold) < 1e-6)


for mode in ("exact", "whole", "size", "text"):
    globals()[f"sums_{mode}"] = type(mode, (Sums,), {"mode": mode})
"""
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clipping") / "subject.py"
    path.write_text(SUBJECT, "utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "check", "confidence"),
    [
        ("graded_half", "x.ladder", "proven"),
        ("plain_half", "x.ladder", "likely"),
        ("graded_top", "x.ladder", "proven"),
        ("plain_top", "x.ladder", "proven"),
        ("plain_top_at_least", "x.ladder", "likely"),
        ("graded_binary", "x.ladder", "proven"),
        ("ended_binary", "x.ladder", "proven"),
        ("sums_whole", "x.near_numbers", "likely"),
        ("sums_size", "x.near_numbers", "proven"),
    ],
)
def test_clipped_reward_is_found(file: Path, kind: str, check: str, confidence: str) -> None:
    said = firm(found(file, kind, checks_of(reward_clipping)))
    mine = [one for one in said if one.check == check]
    assert mine, [(one.check, one.title) for one in said]
    assert mine[0].confidence == confidence
    assert mine[0].class_ == "reward_clipping"
    assert mine[0].part == "V"
    # Findings of one cause are grouped by their bytes.
    assert codec.loads(codec.dumps(mine[0].observed), object) == mine[0].observed


@pytest.mark.parametrize(
    "kind",
    [
        "graded_sound",
        "Waited",
        pytest.param("ended_sound", marks=pytest.mark.slow),
        pytest.param("graded_weights", marks=pytest.mark.slow),
        pytest.param("graded_pairs", marks=pytest.mark.slow),
        pytest.param("plain_binary", marks=pytest.mark.slow),
        pytest.param("plain_product", marks=pytest.mark.slow),
        pytest.param("sums_exact", marks=pytest.mark.slow),
    ],
)
def test_no_finding_for_deliberately_coarse_rewards(file: Path, kind: str) -> None:
    assert not firm(found(file, kind, checks_of(reward_clipping)))
