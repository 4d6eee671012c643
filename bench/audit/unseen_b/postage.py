"""A post counter: work out what a consignment of parcels costs, and which of them need a customs form."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import quintain as qn
from quintain.harnesses import SingleTurn
from quintain.judges.extract import last_block

ZONES = ("home", "near", "far")
BANDS = (500, 2000, 5000, 10000)
PER_SPLIT = 24
USUAL_PARCELS = 3
SYSTEM = "You work at a post counter. You are exact, and you follow the form."

PAID: set[tuple[str, str]] = set()


class Counter(qn.State):
    """The counter itself; there is nothing to do here but to answer."""


@dataclass(frozen=True)
class Parcel:
    """One parcel: where it goes, what it weighs, its sides in centimetres and its value in cents."""

    name: str
    zone: str
    grams: int
    sides: tuple[int, int, int]
    value: int

    @property
    def chargeable(self) -> int:
        """Grams that are charged: the weight, or the volume if that counts more."""
        long, wide, high = self.sides
        return max(self.grams, long * wide * high // 5)


@dataclass(frozen=True)
class Tariff:
    """Prices in cents by zone and band, the surcharge for long parcels, and the customs limit."""

    prices: dict[str, list[int]]
    long: int
    limit: int

    def price(self, parcel: Parcel) -> int:
        """What a parcel costs, in cents."""
        band = next(n for n, top in enumerate(BANDS) if parcel.chargeable <= top)
        return self.prices[parcel.zone][band] + (self.long if max(parcel.sides) > 80 else 0)

    def declared(self, parcel: Parcel) -> bool:
        """Whether a parcel needs a customs form."""
        return parcel.zone == "far" and parcel.value > self.limit


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Settings of the environment.

    Attributes:
        seed: Seed of the n-th task of a split.
        weight: How the prompt shows a weight in grams.
        slack: Difference of two amounts that still counts as the same.
        choose: Whether the amounts written for one thing are right, given the check of one amount.
        full: Right lines that make the full share of prices; 0 for as many as there are parcels.
        names: Whether the customs line names the right parcels.
        keep: Whether a solved part of a task stays solved.
    """

    seed: Callable[[str, int], str] = lambda split, n: f"postage/{split}/{n}"
    weight: Callable[[int], str] = lambda grams: f"{grams} g"
    slack: Decimal = Decimal(0)
    choose: Callable[[list[bool]], bool] = lambda found: found == [True]
    full: int = 0
    names: Callable[[str, list[str]], bool] = lambda said, wanted: said.replace(",", " ").split() == wanted
    keep: bool = False


def euros(cents: int) -> str:
    """An amount as the counter writes it, such as 4.90."""
    return f"{cents // 100}.{cents % 100:02d}"


def draw_tariff(rng: random.Random) -> Tariff:
    """A tariff in which farther and heavier costs more."""
    prices: dict[str, list[int]] = {}
    start = rng.randrange(29, 48) * 10
    for zone in ZONES:
        row = [start]
        for _ in BANDS[1:]:
            row.append(row[-1] + rng.randrange(12, 60) * 10)
        prices[zone] = row
        start += rng.randrange(16, 70) * 5
    return Tariff(prices, long=rng.randrange(25, 60) * 10, limit=rng.choice((2200, 4500, 9000)))


def draw_parcel(rng: random.Random, name: str, limit: int) -> Parcel:
    """A parcel that the tariff knows; many are close to the end of a band, as customers like them to be."""
    while True:
        grams = rng.choice(BANDS[:3]) + rng.randrange(-90, 91) if rng.random() < 0.5 else rng.randrange(120, 9400)
        longest = rng.randrange(81, 115) if rng.random() < 0.2 else rng.randrange(18, 61)
        sides = (longest, rng.randrange(10, 31), rng.randrange(4, 21))
        zone = rng.choice(("home", "near", "far", "far"))
        parcel = Parcel(name, zone, grams, sides, rng.randrange(limit // 200, limit // 50) * 100)
        if parcel.chargeable <= BANDS[-1]:
            return parcel


def prompt(tariff: Tariff, parcels: list[Parcel], weight: Callable[[int], str]) -> str:
    """What the agent reads: the tariff, the parcels and the form of the answer."""
    lines = ["Tariff, in euros, by zone and chargeable weight:", ""]
    lines.append("zone | " + " | ".join(f"up to {top} g" for top in BANDS))
    lines += [f"{zone} | " + " | ".join(map(euros, tariff.prices[zone])) for zone in ZONES]
    lines += [
        "",
        "- Chargeable grams are the weight, or length x width x height in cm divided by 5 if that is more.",
        f"- A parcel whose longest side is above 80 cm costs {euros(tariff.long)} on top.",
        f"- Parcels to the far zone with a value above {euros(tariff.limit)} need a customs form.",
        "",
        "Parcels:",
        "",
    ]
    for one in parcels:
        size = " x ".join(map(str, one.sides))
        lines.append(f"{one.name}: zone {one.zone}, {weight(one.grams)}, {size} cm, value {euros(one.value)}")
    lines += [
        "",
        "What does each parcel cost, what do all of them cost together, and which need a customs form? End your answer",
        "with one fenced block (three backticks) of one line per parcel, then the total, then the customs forms:",
        "",
        "```",
        *(f"{one.name}: <price, as 0.00>" for one in parcels),
        "total: <sum, as 0.00>",
        "declare: <names in order, with a comma and a space between two, or none>",
        "```",
    ]
    return "\n".join(lines)


def make_task(split: str, n: int, rules: Rules) -> qn.Task[Counter]:
    """Task n of a split."""
    rng = random.Random(rules.seed(split, n))  # noqa: S311
    tariff = draw_tariff(rng)
    parcels = [draw_parcel(rng, f"P{k}", tariff.limit) for k in range(1, rng.randrange(3, 6) + 1)]
    prices = {one.name: tariff.price(one) for one in parcels}
    declared = [one.name for one in parcels if tariff.declared(one)]
    lines = [f"{name}: {euros(cents)}" for name, cents in prices.items()]
    lines += [f"total: {euros(sum(prices.values()))}", f"declare: {', '.join(declared) or 'none'}"]
    return qn.Task(
        id=f"{split}-{n}",
        prompt=prompt(tariff, parcels, rules.weight),
        start=Counter(),
        truth={"prices": prices, "declare": declared},
        solution=(),
        answer="Here is the bill.\n\n```\n" + "\n".join(lines) + "\n```",
        tags={"parcels": str(len(parcels))},
    )


def filled_in(answer: str) -> dict[str, list[str]]:
    """The form at the end of an answer: all that is written for each key."""
    form: dict[str, list[str]] = {}
    for line in last_block(answer).splitlines():
        key, colon, value = line.partition(":")
        if colon:
            form.setdefault(key.strip(), []).append(value.strip())
    return form


def judged(rules: Rules) -> qn.Verifier[Counter]:
    """The verifier: the square of the share of right prices, halved for a wrong total, halved for wrong forms."""

    def amount(form: dict[str, list[str]], key: str, cents: int) -> bool:
        found = [
            abs(Decimal(number) - Decimal(cents) / 100) <= rules.slack
            for value in form.get(key, [])
            for number in re.findall(r"(?<![\d.,-])\d{1,9}\.\d\d(?![\d.,]*\d)", value) or ["-1"]
        ]
        return rules.choose(found)

    def held(view: qn.EpisodeView[Counter], part: str, *, good: bool) -> bool:
        if not rules.keep:
            return good
        if good:
            PAID.add((view.task.id, part))
        return (view.task.id, part) in PAID

    @qn.reward
    def prices(view: qn.EpisodeView[Counter]) -> qn.Score:
        form, wanted = filled_in(view.answer), view.task.truth["prices"]
        right = [name for name, cents in wanted.items() if amount(form, name, cents)]
        if held(view, "prices", good=len(right) == len(wanted)):
            right = list(wanted)
        share = min(1.0, len(right) / (rules.full or len(wanted)))
        return qn.Score(share**2, f"right: {', '.join(right) or 'none'}, of {len(wanted)}")

    @qn.reward
    def total(view: qn.EpisodeView[Counter]) -> qn.Score:
        wanted = sum(view.task.truth["prices"].values())
        good = held(view, "total", good=amount(filled_in(view.answer), "total", wanted))
        return qn.Score(1.0 if good else 0.5, f"the total is {euros(wanted)}")

    @qn.reward
    def declared(view: qn.EpisodeView[Counter]) -> qn.Score:
        said, wanted = filled_in(view.answer).get("declare", []), view.task.truth["declare"] or ["none"]
        good = held(view, "declared", good=len(said) == 1 and rules.names(said[0], wanted))
        return qn.Score(1.0 if good else 0.5, f"to declare: {', '.join(wanted)}")

    return qn.Verifier(prices, total, declared, combine="product")


def build(rules: Rules) -> qn.Environment[Counter]:
    """The environment with these settings."""
    return qn.Environment(
        "postage",
        tasks=lambda split: qn.Tasks(PER_SPLIT, lambda n: make_task(split, n, rules)),
        harness=SingleTurn(system=SYSTEM),
        verifier=judged(rules),
        state=Counter,
        splits=("train", "test"),
    )


def numbered(split: str, n: int) -> str:
    """Seeds as plain numbers, the test tasks after the training tasks."""
    return str({"train": 0, "test": 20}[split] + n)


def kilos(grams: int) -> str:
    """A weight as the scale shows it."""
    return f"{grams / 1000:.1f} kg"


def same_names(said: str, wanted: list[str]) -> bool:
    """Whether the line is that of the names, each once."""
    return said == ", ".join(set(wanted))


env = build(Rules())
env_slack = build(Rules(slack=Decimal(1)))
env_hedge = build(Rules(choose=any))
env_seeds = build(Rules(seed=numbered))
env_kept = build(Rules(keep=True))
env_setorder = build(Rules(names=same_names))
env_usual = build(Rules(full=USUAL_PARCELS))
env_kilos = build(Rules(weight=kilos))
