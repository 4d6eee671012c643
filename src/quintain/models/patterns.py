"""Text that a regular expression accepts, drawn at random."""

from __future__ import annotations

import importlib
import re
import string
from collections.abc import Callable, Iterable
from typing import Any

from quintain.state import Rng

_ASCII = frozenset(string.ascii_letters + string.digits + string.punctuation + " ")
_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}

# The grammar of regular expressions is not worth a second parser, and the standard library's has no public name.
_parser: Any = importlib.import_module("re._parser")


def matching(pattern: str, rng: Rng) -> str:
    """Text that `re.search(pattern, text)` finds, but for patterns that look around or refer back."""
    return _all(_parser.parse(pattern), rng)


def _all(parsed: Iterable[tuple[Any, Any]], rng: Rng) -> str:
    return "".join(_one(str(code), argument, rng) for code, argument in parsed)


def _one(code: str, argument: Any, rng: Rng) -> str:
    match code:
        case "BRANCH":
            return _all(rng.choice(argument[1]), rng)
        case "SUBPATTERN":
            return _all(argument[-1], rng)
        case "ATOMIC_GROUP":
            return _all(argument, rng)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            low, high, inner = argument
            times = low + rng.below(min(int(high) - low, 8) + 1)
            return "".join(_all(inner, rng) for _ in range(times))
        case _:
            accepted = _characters(code, argument)
            return rng.choice(sorted(accepted)) if accepted else ""


def _characters(code: str, argument: Any) -> frozenset[str]:
    """Returns the characters that one place accepts, ASCII at least; none for a code such as ^."""
    if code == "IN":
        accepted = frozenset[str]().union(*(_characters(str(inner), value) for inner, value in argument))
        return _ASCII - accepted if str(argument[0][0]) == "NEGATE" else accepted
    accepts: dict[str, Callable[[], Iterable[str]]] = {
        "ANY": lambda: string.ascii_lowercase,
        "LITERAL": lambda: chr(argument),
        "NOT_LITERAL": lambda: _ASCII - {chr(argument)},
        "RANGE": lambda: map(chr, range(argument[0], min(argument[1], argument[0] + 255) + 1)),
        "CATEGORY": lambda: (letter for letter in _ASCII if re.match(_CATEGORIES[str(argument)], letter)),
    }
    return frozenset(accepts[code]() if code in accepts else ())
