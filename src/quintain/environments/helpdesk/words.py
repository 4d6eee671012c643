"""Words of the company: random choices by its figures, and letters as customers write them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import msgspec

T = TypeVar("T")
DATA: dict[str, Any] = msgspec.toml.decode((Path(__file__).parent / "company.toml").read_bytes())
FIGURES: dict[str, Any] = DATA["figures"]
POOLS: dict[str, Any] = DATA["words"]
GREETINGS = {"en": "Hello", "de": "Guten Tag", "fr": "Bonjour", "es": "Hola"}
Share = Annotated[float, msgspec.Meta(ge=0.0, lt=1.0)]


class Shares(msgspec.Struct, frozen=True, dict=True, forbid_unknown_fields=True):
    """Shares that make letters and records untidy, each in [0, 1).

    Attributes:
        typos: Of words, those with two letters swapped.
        missing: Of tickets, those without a type.
        duplicates: Of tickets, those that their requester had written before, about the same order.
        threads: Of tickets, those with twelve updates or more.
        languages: Of letters for which there are other languages, those in one of them.
    """

    typos: Share
    missing: Share
    duplicates: Share
    threads: Share
    languages: Share

    @functools.cached_property
    def updates(self) -> list[tuple[float, float]]:
        """Quantiles of the updates of a ticket."""
        rest = 1 - self.threads
        return [(0.0, 2.0), (rest * 5 / 9, 6.0), (rest, 12.0), (1 - self.threads / 10, 21.0), (1.0, 40.0)]

    @functools.cached_property
    def language(self) -> dict[str, float]:
        """Weights of languages."""
        other = self.languages
        return {"en": 1 - other, "de": other / 2, "fr": other / 4, "es": other / 4}


def shares(**given: Any) -> Shares:
    """Returns the measured shares, with others in the place of some; raises msgspec.ValidationError if one is wrong."""
    return msgspec.convert(DATA["shares"] | given, Shares, strict=False)


MEASURED = shares()


class Draws(Protocol):
    """Source of random numbers."""

    def random(self) -> float:
        """Returns a number in [0, 1)."""
        ...


class Kind(msgspec.Struct, frozen=True):
    """Kind of request.

    Attributes:
        value: Name of the option of the field Category.
        area: Area whose group works on it.
        subject: Subject that customers give it.
        texts: Complaint by language.
        type: Type of the ticket.
    """

    value: str
    area: str
    subject: str
    texts: dict[str, str]
    type: str


def _kinds() -> dict[str, Kind]:
    types = {value: name for name, values in DATA["types"].items() for value in values}
    rows = [*DATA["kinds"]["common"], *({"value": v, "area": a, "en": text} for v, a, text in DATA["kinds"]["rare"])]
    found: dict[str, Kind] = {}
    for row in rows:
        value = row["value"]
        texts = {name: row[name] for name in GREETINGS if name in row}
        subject = row.get("subject", value.replace("_", " ").capitalize())
        found[value] = Kind(value, row["area"], subject, texts, types.get(value, "question"))
    return found


KINDS = _kinds()


def pick(rng: Draws, items: Sequence[T]) -> T:
    """Returns one of the items."""
    return items[int(rng.random() * len(items))]


def weighted(rng: Draws, weights: Mapping[str, float]) -> str:
    """Returns a key by its weight; weights may sum to less or more than 1."""
    left = rng.random() * sum(weights.values())
    for name, weight in weights.items():
        left -= weight
        if left < 0:
            return name
    return next(reversed(weights.keys()))  # type: ignore[call-overload,no-any-return]


def first_weights(names: Sequence[str], first: Sequence[float]) -> dict[str, float]:
    """Returns weights of names: those of the first as given, and of the others what is left, falling slowly."""
    rest = names[len(first) :]
    falling = [1 / (8 + place) for place in range(len(rest))]
    left = (1 - sum(first)) / sum(falling)
    return dict(zip(names, [*first, *(left * one for one in falling)], strict=True))


def quantile(rng: Draws, points: Sequence[tuple[float, float]]) -> float:
    """Returns a number by a table of quantiles, between which its logarithm is interpolated."""
    at = rng.random()
    for (low, below), (high, above) in itertools.pairwise(points):
        if at <= high:
            return math.exp(math.log(below) + (math.log(above) - math.log(below)) * (at - low) / (high - low))
    return points[-1][1]


def typos(rng: Draws, text: str, rate: float) -> str:
    """Returns the text with letters swapped in a share of its words. Words with digits stay as they are."""
    words = text.split(" ")
    for place, word in enumerate(words):
        if len(word) > 4 and word.isalpha() and rng.random() < rate:
            cut = 1 + int(rng.random() * (len(word) - 3))
            words[place] = word[:cut] + word[cut + 1] + word[cut] + word[cut + 2 :]
    return " ".join(words)


def letter(rng: Draws, complaint: str, *, name: str, language: str, length: float, misspelt: float) -> str:
    """Returns a customer's letter of about so many characters: the complaint, asides, a signature, quoted history.

    The share `misspelt` of its words has a typo.
    """
    greeting = GREETINGS[language]
    parts = [f"{greeting},\n\n{complaint}" if length > 70 else complaint]
    size, asides = len(parts[0]), [*POOLS["fill"][language]]
    while asides and size + 30 < min(length, 600):
        aside = asides.pop(int(rng.random() * len(asides)))
        parts.append(" " + aside)
        size += len(aside) + 1
    if length > 120 and rng.random() < 0.5:
        parts.append(f"\n\n{name}")
    if size + 50 < length:
        parts.append("\n\n----- Original message -----")
    while size + 12 < length:
        line = pick(rng, POOLS["answers"] if rng.random() < 0.5 else POOLS["fill"][language])
        parts.append(f"\n> {line}")
        size += len(line) + 3
    return typos(rng, "".join(parts), misspelt)


def complaint(kind: Kind, *, order: str, product: str, language: str = "en") -> str:
    """Returns the sentence that says what the matter is, in English where the language has none."""
    return kind.texts.get(language, kind.texts["en"]).format(order=order, product=product)


def subject(rng: Draws, kind: Kind, order: str) -> str | None:
    """Returns a subject: none, a common one, or one with the number of the order."""
    form = rng.random()
    if form < FIGURES["untitled"]:
        return None
    first, *rest = kind.subject.split()
    forms = (f"{first} {order}", f"{first} {(rest or ['of'])[-1]} {order}", f"{kind.subject} {order}", f"Order {order}")
    text = kind.subject if form < 0.28 else pick(rng, forms)
    return f"{pick(rng, ('RE: ', 'FWD: ', 'Re: '))}{text}" if rng.random() < 0.06 else text


def order_number(rng: Draws) -> str:
    """Returns the number of an order."""
    return f"NO-{100000 + int(rng.random() * 899999)}"


def person(rng: Draws) -> str:
    """Returns the name of a person."""
    return f"{pick(rng, POOLS['first'])} {pick(rng, POOLS['last'])}"
