"""Criteria for answers in words: comparison as text, number, set, JSON or normalized text."""

from __future__ import annotations

import json
import math
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, cast

from quintain import codec
from quintain.errors import UsageError
from quintain.verifier import Criterion, EpisodeView, Score, reward

from .extract import NUMBER, Extract, final_answer, last_block, last_number

_ONE = re.compile(NUMBER)
_DIGITS = 1000
"""Most characters of a number; a longer one is none."""
_MISSING = object()
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def as_number(text: str) -> Fraction | None:
    """Returns the number that a text spells, exactly; None if it is not one number.

    Numbers are integers, decimals, "1,000", "4e3" and fractions such as "3/4", in ASCII digits; spaces may surround
    them. "nan", "inf", full-width digits, "1.000,00", "1 000" and texts above 1,000 characters are not numbers.
    """
    found = _ONE.fullmatch(text.strip().replace("\N{MINUS SIGN}", "-"))
    if not found or len(found[0]) > _DIGITS:
        return None
    number, denominator = (Fraction((found[name] or "1").replace(",", "")) for name in ("number", "denominator"))
    return number / denominator if denominator else None


def squad_text(text: str) -> str:
    """Returns a text in lower case, without ASCII punctuation, "a", "an" and "the", with single spaces.

    The rule is that of the scorers of SQuAD and HotpotQA (`hotpot_evaluate_v1.py`).
    """
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", text.lower().translate(_PUNCTUATION)).split())


def unicode_text(text: str) -> str:
    """Returns a text in Unicode form NFKC, case-folded, without punctuation of any script, with single spaces.

    Accents and articles stay.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join("".join(c for c in folded if not unicodedata.category(c).startswith("P")).split())


def exact(*, extract: Extract = final_answer) -> Criterion[Any]:
    """Returns a criterion that is 1 if the extracted answer equals the truth, letter by letter, else 0.

    Args:
        extract: Function from text to the answer in it. It reads the truth too; where it finds nothing in the truth,
            the truth stands as it is. A truth that is not text is compared in its JSON form.
    """

    @reward
    def exact(view: EpisodeView[Any]) -> Score:
        said, right = _both(view, extract)
        return _score(float(said == right), said, right)

    return exact


def numeric(tolerance: float = 0.0, *, relative: float = 0.0, extract: Extract = last_number) -> Criterion[Any]:
    """Returns a criterion that is 1 if the extracted answer is the number of the truth, else 0.

    Equal means |answer - truth| <= max(tolerance, relative * |truth|), in exact arithmetic.

    Args:
        tolerance: Largest absolute difference that counts as equal, 0 and up.
        relative: Largest difference that counts as equal, as a share of the truth, 0 and up.
        extract: Function from text to the answer in it, for the truth too. The answer must be one number as a whole.

    Raises:
        UsageError: A tolerance is negative or not finite.
    """
    for name, given in (("tolerance", tolerance), ("relative", relative)):
        if not 0 <= given < math.inf:
            raise UsageError(f"{name} must be a finite number >= 0, got {given}")

    @reward
    def numeric(view: EpisodeView[Any]) -> Score:
        said, right = _both(view, extract)
        number, wanted = as_number(said or ""), as_number(right)
        if wanted is None:
            truth = codec.text(view.task.truth)
            raise ValueError(f"the truth {truth!r} of task {view.task.id!r} holds no number; compare it with `exact`")
        if number is None:
            return _score(0.0, said, right, note="not a number: ")
        allowed = max(Fraction(tolerance), Fraction(relative) * abs(wanted))
        return _score(float(abs(number - wanted) <= allowed), said, right)

    return numeric


def same_set(
    *, separator: str = ",", normalize: Callable[[str], str] = str.strip, extract: Extract = final_answer
) -> Criterion[Any]:
    """Returns a criterion that is 1 if the answer lists the items of the truth, in any order, else 0.

    One pair of brackets around the list is dropped, and so are empty items. An item named twice counts once.

    Args:
        separator: Text between two items.
        normalize: Function that brings an item into the form that is compared, such as `squad_text`.
        extract: Function from text to the answer in it, for a truth that is text too. A truth may also be a list.

    Raises:
        UsageError: The separator is empty.
    """
    if not separator:
        raise UsageError("separator must be text between two items, got ''; pass for example ','")

    def items(listed: str) -> set[str]:
        inner = listed.strip()
        if inner[:1] + inner[-1:] in ("[]", "()", "{}"):
            inner = inner[1:-1]
        return {normalize(item) for item in inner.split(separator)} - {""}

    @reward
    def same_set(view: EpisodeView[Any]) -> Score:
        truth = view.task.truth
        said, right = _both(view, extract)
        if isinstance(truth, list | tuple | set | frozenset):
            wanted = {normalize(codec.text(item)) for item in cast(list[Any], truth)}
        else:
            wanted = items(right)
        if not wanted:
            raise ValueError(f"the truth {right!r} of task {view.task.id!r} lists no items")
        named = items(said or "")
        note = f"missing {sorted(wanted - named)}, extra {sorted(named - wanted)}; " if named != wanted else ""
        return _score(float(named == wanted), said, right, note=note)

    return same_set


def same_json(*, numbers: Literal["value", "kind"] = "value", extract: Extract = last_block) -> Criterion[Any]:
    """Returns a criterion that is 1 if the answer is JSON with the structure of the truth, else 0.

    Keys may have any order, items of a list may not. Types are strict: 1 is neither true nor "1". Numbers are compared
    as decimals, exactly. NaN, Infinity, a repeated key and nesting that Python cannot read are not JSON.

    Args:
        numbers: "value": 1.0 equals 1; "kind": it does not.
        extract: Function from text to the JSON in it, for the truth too. A truth that is not text is taken as JSON.

    Raises:
        UsageError: `numbers` is unknown.
    """
    if cast(object, numbers) not in ("value", "kind"):
        raise UsageError(f"numbers must be 'value' or 'kind', got {numbers!r}")

    @reward
    def same_json(view: EpisodeView[Any]) -> Score:
        said, right = _both(view, extract)
        try:
            wanted = _parsed(right)
        except (ValueError, ArithmeticError, RecursionError) as error:
            raise ValueError(f"the truth {right!r} of task {view.task.id!r} is not JSON: {error}") from error
        try:
            given = _parsed(said or "")
        except (ValueError, ArithmeticError, RecursionError) as error:
            return _score(0.0, said, right, note=f"not JSON: {error}; ")
        different = next(_differences("$", given, wanted, numbers=numbers), "")
        return _score(float(not different), said, right, note=different)

    return same_json


def normalized(
    *,
    value: Literal["exact", "f1"] = "exact",
    normalize: Callable[[str], str] = squad_text,
    extract: Extract = final_answer,
) -> Criterion[Any]:
    """Returns a criterion that compares answer and truth as normalized text: equality (0 or 1), or F1 (0 to 1).

    F1 is 2pr / (p + r) with p the share of the answer's words that the truth has, r the share of the truth's words that
    the answer has, both with multiplicity; 0 if no word is common. "yes", "no" and "noanswer" on one side only are 0.
    The rule is that of `hotpot_evaluate_v1.py`.

    Args:
        value: Quantity that is rewarded.
        normalize: Function that brings both texts into the form that is compared.
        extract: Function from text to the answer in it, for the truth too.

    Raises:
        UsageError: `value` is unknown.
    """
    if cast(object, value) not in ("exact", "f1"):
        raise UsageError(f"value must be 'exact' or 'f1', got {value!r}")

    @reward
    def normalized(view: EpisodeView[Any]) -> Score:
        said, right = _both(view, extract)
        one, other = normalize(said or ""), normalize(right)
        if not other:
            raise ValueError(f"nothing of the truth {right!r} of task {view.task.id!r} is left after normalization")
        f1, precision, recall = overlap(one, other)
        note = f"exact {int(one == other)}, F1 {f1:.4g}, precision {precision:.4g}, recall {recall:.4g}; "
        return _score(f1 if value == "f1" else float(one == other), said, right, note=note)

    return normalized


def overlap(answer: str, truth: str) -> tuple[float, float, float]:
    """Returns F1, precision and recall of two normalized texts, by words, each from 0 to 1."""
    closed = ("yes", "no", "noanswer")
    answer_words, truth_words = answer.split(), truth.split()
    common = sum((Counter(answer_words) & Counter(truth_words)).values())
    if not common or (answer != truth and (answer in closed or truth in closed)):
        return 0.0, 0.0, 0.0
    precision, recall = common / len(answer_words), common / len(truth_words)
    return 2 * precision * recall / (precision + recall), precision, recall


def _both(view: EpisodeView[Any], extract: Extract) -> tuple[str | None, str]:
    """Returns the extracted answer, and the truth as text, extracted where that is possible."""
    truth = codec.text(view.task.truth)
    right = extract(truth)
    return extract(view.answer), truth if right is None else right


def _score(value: float, said: str | None, right: str, *, note: str = "") -> Score:
    answer = "no answer found" if said is None else f"the answer is {said!r}"
    return Score(value, f"{note}{answer}, expected {right!r}")


def _parsed(text: str) -> Any:
    """Returns JSON as Python objects, its decimals as Decimal.

    Raises:
        ValueError, ArithmeticError, RecursionError: The text is not such JSON.
    """

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not a number of JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError(f"a key stands twice in {[key for key, _ in pairs]}")
        return found

    return json.loads(text, parse_float=Decimal, parse_constant=refuse, object_pairs_hook=once)


def _differences(path: str, given: Any, wanted: Any, *, numbers: str) -> Iterator[str]:
    """Yields each place in which two JSON values differ."""
    kinds: list[Any] = [Decimal if type(one) is int and numbers == "value" else type(one) for one in (given, wanted)]
    kind, other = kinds
    if kind is not other:
        yield f"{path} is {_shown(given)}, expected {_shown(wanted)}; "
    elif kind is dict:
        for key in {**wanted, **given}:
            yield from _differences(
                f"{path}.{key}", given.get(key, _MISSING), wanted.get(key, _MISSING), numbers=numbers
            )
    elif kind is list:
        if len(given) != len(wanted):
            yield f"{path} has {len(given)} items, expected {len(wanted)}; "
        for place, (one, two) in enumerate(zip(given, wanted, strict=False)):
            yield from _differences(f"{path}[{place}]", one, two, numbers=numbers)
    elif given != wanted:
        yield f"{path} is {_shown(given)}, expected {_shown(wanted)}; "


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):  # The nesting may be too deep to write it.
        return "an object" if isinstance(value, dict) else "a list"
    return "missing" if value is _MISSING else (str(value) if isinstance(value, Decimal) else json.dumps(value)[:100])
