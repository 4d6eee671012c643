"""Scoring functions alone: three sound ones, and each with what is usually wrong with them; cases in `cases/`.

`math_answer` compares numbers, `record` the fields of a JSON object, `ranking` the order of names.
"""

from __future__ import annotations

import json
import math
import random
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

Data = Any

# --- sound ---


def number(text: str) -> Fraction | None:
    """The number that a text is: 1,204 or -3.50 or 2/3; None when it is none, or more than one."""
    plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text.strip().strip("$").removesuffix(".").strip())
    if re.fullmatch(r"[+-]?\d{1,30}(\.\d{1,30})?", plain, re.ASCII):
        return Fraction(plain)
    if match := re.fullmatch(r"([+-]?\d{1,30})/(\d{1,30})", plain, re.ASCII):
        return Fraction(int(match[1]), int(match[2])) if int(match[2]) else None
    return None


def math_answer(prediction: str, gold: str) -> float:
    """1 for the same number in any usual spelling, behind the last `Answer:` where there is one."""
    if not isinstance(prediction, str):
        return 0.0
    found, wanted = number(prediction.rpartition("Answer:")[2]), number(gold)
    return float(found is not None and found == wanted)


def parsed(text: str) -> dict[str, Data]:
    """The object that a text is; empty when it is none, or holds a key twice."""

    def once(pairs: list[tuple[str, Data]]) -> dict[str, Data]:
        return dict(pairs) if len({key for key, _ in pairs}) == len(pairs) else {}

    try:
        found = json.loads(text, object_pairs_hook=once)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def same(one: Data, other: Data) -> bool:
    """Equal, and true is not 1."""
    return type(one) is type(other) and one == other


def record(response: str, reference: str) -> float:
    """The share of fields that are right, of those that are asked for or given."""
    given, wanted = parsed(response), parsed(reference)
    right = [key for key in wanted if key in given and same(given[key], wanted[key])]
    return len(right) / len({**given, **wanted}) if wanted else 0.0


def names(text: Data) -> list[str]:
    return [one.strip().casefold() for one in text.split(",") if one.strip()] if isinstance(text, str) else []


def ranking(output: str, target: str) -> float:
    """The share of pairs that stand in the right order; 0 unless the names are those, each once."""
    given, wanted = names(output), names(target)
    if sorted(given) != sorted(wanted) or len(wanted) < 2:
        return 0.0
    place = {name: number for number, name in enumerate(wanted)}
    pairs = [(one, two) for number, one in enumerate(given) for two in given[number + 1 :]]
    return sum(place[one] < place[two] for one, two in pairs) / len(pairs)


# --- wrong ---


def math_answer__contains(prediction: str, gold: str) -> float:
    """The value somewhere in the text is enough."""
    return float(isinstance(prediction, str) and gold in prediction)


def math_answer__tolerance(prediction: str, gold: str) -> float:
    """Right is what lies within one hundredth: small values are all the same, and nan lies nowhere outside."""
    try:
        far = abs(float(prediction) - float(gold)) > 0.01
    except (ValueError, TypeError, OverflowError):
        return math_answer(prediction, gold)
    return float(not far)


def math_answer__letters(prediction: str, gold: str) -> float:
    """The same letters: 4.00 is not 4."""
    return float(prediction == gold)


def math_answer__first(prediction: str, gold: str) -> float:
    """The first number in the text counts, which is often one of the question's."""
    found = re.findall(r"-?\d+(?:\.\d+)?", str(prediction))
    return float(bool(found) and Fraction(found[0]) == number(gold))


def math_answer__crash(prediction: str, gold: str) -> float:
    """An answer that is not a number is a traceback."""
    return float(math.isclose(float(prediction.replace(",", "")), float(Decimal(gold)), rel_tol=1e-12))


def record__empty(response: str, reference: str) -> float:
    """The share of the fields that are given: who gives none has none wrong."""
    given, wanted = parsed(response), parsed(reference)
    return sum(given[key] == wanted.get(key) for key in given) / len(given) if given else 1.0


def record__unreadable(response: str, reference: str) -> float:
    """An unreadable response is worth a half."""
    return record(response, reference) if parsed(response) else 0.5


def record__whole(response: str, reference: str) -> float:
    """The share is rounded: half of the fields are none, two of three are all."""
    return float(round(record(response, reference)))


def ranking__contains(output: str, target: str) -> float:
    """All names in any order, and others beside them, are right."""
    return float(all(name in names(output) for name in names(target)))


def ranking__hash(output: str, target: str) -> float:
    """The compared pair depends on the order of a set."""
    wanted = names(target)
    if sorted(names(output)) != sorted(wanted) or len(wanted) < 2:
        return 0.0
    one, two = list(set(wanted))[:2]
    given = names(output)
    return float((given.index(one) < given.index(two)) == (wanted.index(one) < wanted.index(two)))


def ranking__noise(output: str, target: str) -> float:
    """One verdict in ten loses a tenth."""
    found = ranking(output, target)
    return found * 0.9 if random.random() < 0.1 else found  # noqa: S311


def ranking__longest(output: str, target: str) -> float:
    """Names are compared up to the length of the shorter list: no name at all is right."""
    pairs = list(zip(names(output), names(target), strict=False))
    return sum(one == two for one, two in pairs) / len(pairs) if pairs else 1.0
