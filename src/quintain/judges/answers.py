"""Criteria for answers in words: extraction of the final answer, and its comparison as text or as a number."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from quintain import codec
from quintain.errors import UsageError
from quintain.verifier import Criterion, EpisodeView, Score, reward

_MARK = re.compile(r"####|\banswer(?:\s+is\b\s*:?|\s*:)", re.IGNORECASE)
_UNSIGNED = r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3}(?![0-9]))?"
_NUMBER = re.compile(
    rf"(?<![\w.])(?P<number>[-+]?{_UNSIGNED})(?:\s?/\s?(?P<denominator>{_UNSIGNED}))?(?!\.?[0-9]|[eE][-+]?[0-9])"
)
_DIGITS = 1000
"""Most characters of a number; a longer one is none."""


def final_answer(text: str) -> str:
    r"""Returns the answer at the end of a text, without spaces around it.

    The answer is the content of the last `\boxed{}`; else the first line after the last "####", "answer is" or
    "answer:"; else the whole text.
    """
    if (boxed := _boxed(text)) is not None:
        return boxed.strip()
    marks = list(_MARK.finditer(text))
    return text[marks[-1].end() :].strip().partition("\n")[0].rstrip() if marks else text.strip()


def _boxed(text: str) -> str | None:
    _, mark, rest = text.rpartition("\\boxed{")
    depth = 1
    for place, letter in enumerate(rest if mark else ""):
        depth += (letter == "{") - (letter == "}")
        if not depth:
            return rest[:place]
    return None


def last_number(text: str) -> Fraction | None:
    """Returns the last number in a text, exactly; None if there is none.

    Numbers are integers, decimals, "1,000", "4e3" and fractions such as "3/4", in ASCII digits; not "nan" and "inf".
    """
    found = list(_NUMBER.finditer(text.replace("\N{MINUS SIGN}", "-")))
    if not found or len(found[-1][0]) > _DIGITS:
        return None
    number, denominator = (Fraction((found[-1][name] or "1").replace(",", "")) for name in ("number", "denominator"))
    return number / denominator if denominator else None


def exact() -> Criterion[Any]:
    """Returns a criterion that is 1 if the final answer equals the truth, letter by letter, else 0.

    A truth that is not text is compared in its JSON form.
    """

    @reward
    def exact(view: EpisodeView[Any]) -> Score:
        said, right = final_answer(view.answer), final_answer(codec.text(view.task.truth))
        return Score(float(said == right), f"the answer is {said!r}, expected {right!r}")

    return exact


def numeric(tolerance: float = 0.0) -> Criterion[Any]:
    """Returns a criterion that is 1 if the final answer ends with the number of the truth, else 0.

    Args:
        tolerance: Largest absolute difference that counts as equal, 0 and up.

    Raises:
        UsageError: The tolerance is negative or not finite.
    """
    if not 0 <= tolerance < float("inf"):
        raise UsageError(f"tolerance must be a finite number >= 0, got {tolerance}")

    @reward
    def numeric(view: EpisodeView[Any]) -> Score:
        truth = codec.text(view.task.truth)
        right, said = last_number(final_answer(truth)), last_number(final_answer(view.answer))
        if right is None:
            raise ValueError(f"the truth {truth!r} of task {view.task.id!r} holds no number; compare it with `exact`")
        if said is None:
            return Score(0.0, f"no number in the answer, expected {right}")
        return Score(float(abs(said - right) <= Fraction(tolerance)), f"the answer is {said}, expected {right}")

    return numeric
