"""Extraction of the answer from an agent's last words: functions from text to text, or to None for no answer."""

from __future__ import annotations

import re
from collections.abc import Callable

Extract = Callable[[str], str | None]
"""Function from the agent's last words to its answer; None if they hold none."""

_MARK = re.compile(r"####|\banswer(?:\s+is\b\s*:?|\s*:)", re.IGNORECASE)
_FENCED = re.compile(r"^```[^\n`]*\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)
_GSM8K = re.compile(r"(?:#### |^A: )(-?[0-9.,]+)", re.MULTILINE)
_UNSIGNED = r"(?:(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3}(?![0-9]))?"
NUMBER = rf"(?P<number>[-+]?{_UNSIGNED})(?:\s?/\s?(?P<denominator>{_UNSIGNED}))?"
"""Pattern of a number: an integer, a decimal, "1,000", "4e3" or "3/4", in ASCII digits."""
_LAST = re.compile(rf"(?<![\w.]){NUMBER}(?!\.?[0-9]|[eE][-+]?[0-9])")


def final_answer(text: str) -> str:
    r"""Returns the answer at the end of a text, without spaces around it.

    The answer is the content of the last `\boxed{}`; else the first line after the last "####", "answer is" or
    "answer:"; else the whole text.
    """
    if (boxed := _boxed(text)) is not None:
        return boxed.strip()
    marks = list(_MARK.finditer(text))
    return text[marks[-1].end() :].strip().partition("\n")[0].rstrip() if marks else text.strip()


def last_number(text: str) -> str | None:
    """Returns the last number of the final answer, as it is written; None if there is none.

    A number is what `answers.as_number` reads. The minus sign of typography becomes "-".
    """
    found = list(_LAST.finditer(final_answer(text).replace("\N{MINUS SIGN}", "-")))
    return found[-1][0] if found else None


def gsm8k_answer(text: str) -> str | None:
    """Returns the number after the first "#### ", without commas; None if there is none.

    A line that begins with "A: " counts too, because the authors' model solutions mark the answer so. The rule is that
    of `dataset.py` in github.com/openai/grade-school-math; its labels compare the two texts, so "5.0" is not "5".
    """
    found = _GSM8K.search(text)
    return found[1].replace(",", "") if found else None


def last_block(text: str) -> str:
    """Returns the content of the last fenced block (three backticks); the whole text if there is none."""
    blocks = _FENCED.findall(text)
    return (blocks[-1] if blocks else text).strip()


def _boxed(text: str) -> str | None:
    _, mark, rest = text.rpartition("\\boxed{")
    depth = 1
    for place, letter in enumerate(rest if mark else ""):
        depth += (letter == "{") - (letter == "}")
        if not depth:
            return rest[:place]
    return None
