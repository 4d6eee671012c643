"""Verifier for answers in LaTeX, by the normalization of the MATH data set."""

from __future__ import annotations

import re
from typing import Any

from quintain import codec
from quintain.verifier import Criterion, EpisodeView, Score, reward

from .extract import Extract, final_answer

_DROPPED = ("\n", "\\!")
_LAYOUT = (("\\\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"))
_MARKS = ("\\left", "\\right", "^{\\circ}", "^\\circ", "\\$")
_UNIT = "\\text{ "
_WHOLE = r"(0|-?[1-9][0-9]*)"
_QUOTIENT = re.compile(f"{_WHOLE}/{_WHOLE}")
_NAMED = re.compile(r"[^=]{0,2}=([^=]*)", re.DOTALL)
_OPEN_ROOT = re.compile(r"\\sqrt(?=\\sqrt|\Z)")


def math_text(text: str) -> str | None:
    r"""Returns a LaTeX answer in the form that is compared; None if it cannot be read, as "\sqrt" without its argument.

    Dropped are line breaks, spaces, layout, degrees, escaped dollar and percent signs, a unit in `\text{ }` at the end,
    and "x=" in front. "\frac12", "\dfrac{1}{2}", "1/2" and "0.5" are one number; other decimals are not converted. The
    rule is that of `math_equivalence.py` in github.com/hendrycks/math.
    """
    for part in _DROPPED:
        text = text.replace(part, "")
    for part, other in _LAYOUT:
        text = text.replace(part, other)
    for part in _MARKS:
        text = text.replace(part, "")
    if text.count(_UNIT) > 1:
        return None
    text = text.partition(_UNIT)[0].replace("\\%", "").replace(" .", " 0.").replace("{.", "{0.")
    text = f"0{text}" if text.startswith(".") else text
    if named := _NAMED.fullmatch(text):
        text = named[1]
    if _OPEN_ROOT.search(text):
        return None
    whole = _fractions(re.sub(r"\\sqrt([^{])", r"\\sqrt{\1}", text).replace(" ", ""))
    quotient = _QUOTIENT.fullmatch(whole or "")
    return f"\\frac{{{quotient[1]}}}{{{quotient[2]}}}" if quotient else whole


def _fractions(text: str) -> str | None:
    r"""Returns a text with "\frac12" as "\frac{1}{2}", and "0.5" as a fraction; None if a fraction has no argument."""
    first, *rest = text.split("\\frac")
    if any(not part for part in rest):
        return None
    bare = [part for part in rest if not part.startswith("{")]
    if all(len(part) > 1 for part in bare):
        rest = [_braced(part) for part in rest]
        text = "\\frac".join([first, *rest])
    return "\\frac{1}{2}" if text == "0.5" else text


def _braced(part: str) -> str:
    if part.startswith("{"):
        return part
    top, bottom, more = part[0], part[1], part[2:]
    return f"{{{top}}}{bottom}{more}" if bottom == "{" else f"{{{top}}}{{{bottom}}}{more}"


def same_math(one: str, other: str) -> bool:
    """True if two answers are equal under the rule; texts that cannot be read are compared letter by letter."""
    left, right = math_text(one), math_text(other)
    return one == other if left is None or right is None else left == right


def math_answer(*, extract: Extract = final_answer) -> Criterion[Any]:
    """Returns a criterion that is 1 if the extracted answer equals the truth under the rule of MATH, else 0.

    Args:
        extract: Function from text to the answer in it, for the truth too.
    """

    @reward
    def math_answer(view: EpisodeView[Any]) -> Score:
        truth = codec.text(view.task.truth)
        right = extract(truth)
        right = truth if right is None else right
        said = extract(view.answer) or ""
        return Score(float(bool(said) and same_math(said, right)), f"the answer is {said!r}, expected {right!r}")

    return math_answer
