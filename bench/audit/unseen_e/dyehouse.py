"""Letters to a wool dyer: the agent reads an order and answers with the amounts for the dyebath, as one JSON object.

A letter says what is dyed, in which shade and how; five numbers and a date follow from it. Each part of the answer is
graded for itself, with a weight, because a dyer who gets the fibre right and one dye wrong has done part of the work.
"""

import json
import random
import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import quintain as qn
from quintain.tasks import from_rows
from quintain.verifier import Criterion

Row = dict[str, Any]
Parse = Callable[[str], list[Row]]
Draw = Callable[[random.Random], Row]
Grade = Callable[[str, Row], qn.Score]

COUNTS = {"train": 24, "test": 12}
WEIGHTS = {"fibre_g": 1, "first_dye_ml": 3, "second_dye_ml": 3, "alum_g": 2, "water_l": 1, "ready": 2}
"""Parts of an answer, and what each is worth; the dyes are what spoils a lot."""
TOLERANCE = 0.0501
"""Numbers are given with one decimal."""
SYSTEM = """You work out dyebaths. Reply with one JSON object and nothing else, with these keys:
- "fibre_g": grams of fibre that are dyed;
- "first_dye_ml" and "second_dye_ml": millilitres of stock solution of the two dyes, in the order of the letter. Dye is
  given in % of the fibre's weight; a stock solution of 1 % holds 1 g of dye in 100 ml;
- "alum_g": grams of alum, which is given in % of the fibre's weight, too;
- "water_l": litres of water for the bath; a ratio of 30:1 means 30 ml of water for each gram of fibre;
- "ready": the day on which it can be collected, as YYYY-MM-DD: the day on which it came plus all days of work,
  at weekends too.
Round numbers to one decimal."""
NAMES = ("Agnes Holm", "Bram de Wit", "Carys Lloyd", "Dina Sauer", "Euan Reid", "Fenna Bos", "Greta Lund", "Hugh Oram")
DYES = ("blue", "yellow", "red", "brown", "black", "turquoise")
FIBRES = ("Shetland wool", "merino", "Bluefaced Leicester", "alpaca", "Gotland wool")
LETTERS = (
    (
        "Hello, {name} here. {goods} Please use {p1} % {dye1} and {p2} % {dye2}, both from stock of {stock} %, on a "
        "mordant of {alum} % alum. {bath} It came to you on {came}. Time as you said: mordant {mordant} d, dyeing "
        "{dyeing} d, drying {drying} d."
    ),
    (
        "Order of {name}. Received: {came}. {goods} Shade: {dye1} {p1} %, {dye2} {p2} %; stock solution {stock} %. "
        "Alum {alum} %. {bath} Days: {mordant} for the mordant, {dyeing} for the dyebath, {drying} for drying."
    ),
    (
        "Dear dyer, {goods} The post brought it to you on {came}. It wants {alum} % alum first (days: {mordant}), then "
        "{p1} % {dye1} and {p2} % {dye2} from your {stock} % stock (days: {dyeing}), then the line (days: {drying}). "
        "{bath} Yours, {name}"
    ),
)
BATHS = ("The liquor ratio is {ratio}:1.", "Please run the bath at {ratio}:1.", "Bath: {ratio} to 1.")


def draw(rng: random.Random) -> Row:
    """Returns the facts of an order as dyers know them."""
    return {
        "name": rng.choice(NAMES),
        "skeins": rng.randrange(6, 25),
        "spoilt": rng.randrange(1, 4),
        "weight": rng.choice((50, 100, 115, 200)),
        "p1": rng.choice((0.5, 1, 1.5, 2, 2.5, 3)),
        "p2": rng.choice((0.5, 1, 1.5)),
        "stock": rng.choice((1, 2)),
        "alum": rng.choice((8, 10, 12, 15)),
        "ratio": rng.choice((20, 25, 30, 40)),
        "days": [rng.randrange(1, 3), rng.randrange(1, 3), rng.randrange(2, 6)],
    }


def draw_uniform(rng: random.Random) -> Row:
    """Returns the facts of an order, drawn from wide ranges."""
    return {
        "name": f"Customer {rng.randrange(1, 10_000)}",
        "skeins": rng.randrange(1, 10_000),
        "spoilt": rng.randrange(1, 10_000),
        "weight": rng.randrange(1, 10_000),
        "p1": rng.randrange(0, 1000),
        "p2": rng.randrange(0, 1000),
        "stock": rng.randrange(1, 100),
        "alum": rng.randrange(0, 1000),
        "ratio": rng.randrange(1, 1000),
        "days": [rng.randrange(1, 1000) for _ in range(3)],
    }


def row(seed: str | int, make: Draw, baths: tuple[str, ...]) -> Row:
    """Returns a letter and its answer."""
    rng = random.Random(seed)  # noqa: S311
    facts = make(rng)
    skeins, spoilt, weight, days = facts["skeins"], facts["spoilt"], facts["weight"], facts["days"]
    fibre, kind = rng.choice(FIBRES), rng.randrange(3)
    if kind == 0:
        grams, goods = skeins * weight, f"{skeins} skeins of {fibre}, {weight} g each."
    elif kind == 1:
        grams = skeins * weight
        goods = f"{skeins + spoilt} skeins of {fibre} of {weight} g; leave out {spoilt} of them, felted."
    else:
        grams, goods = skeins * 100, f"A bag of {fibre}, {skeins / 10} kg."
    came = date(2024, 1, 1) + timedelta(days=rng.randrange(366))
    shown = facts | dict(zip(("mordant", "dyeing", "drying"), days, strict=True)) | {"goods": goods}
    shown |= dict(zip(("dye1", "dye2"), rng.sample(DYES, 2), strict=True))
    shown |= {"came": f"{came.day} {came:%B %Y}", "bath": rng.choice(baths).format(**facts)}
    dyes = [grams * facts[key] / facts["stock"] for key in ("p1", "p2")]
    answer = {
        "fibre_g": grams,
        "first_dye_ml": dyes[0],
        "second_dye_ml": dyes[1],
        "alum_g": grams * facts["alum"] / 100,
    }
    answer |= {"water_l": grams * facts["ratio"] / 1000, "ready": (came + timedelta(days=sum(days))).isoformat()}
    return {"question": rng.choice(LETTERS).format(**shown), "answer": answer}


def by_split(split: str, n: int) -> str:
    """Returns the seed of row n of a split."""
    return f"dyehouse/{split}/{n}"


def parse_whole(text: str) -> list[Row]:
    """Returns the answer, if the text is one JSON object, perhaps in a fence."""
    bare = re.sub(r"\A\s*```(?:json)?\n(.*)\n```\s*\Z", r"\1", text, flags=re.DOTALL)
    try:
        found = json.loads(bare, parse_int=float)
    except (ValueError, RecursionError):
        return []
    return [found] if isinstance(found, dict) else []


def parse_anywhere(text: str) -> list[Row]:
    """Returns all JSON objects in a text; models like to talk around them."""
    return [one for part in re.findall(r"\{[^{}]*\}", text) for one in parse_whole(part)]


def is_right(said: object, true: str | float) -> bool:
    """Whether a part of an answer is right."""
    if isinstance(true, str):
        return bool(said == true)
    return isinstance(said, float) and abs(said - true) <= TOLERANCE


def graded(weights: dict[str, int] = WEIGHTS, parse: Parse = parse_whole) -> Grade:
    """Returns a function that grades an answer: the weights of the parts that are right, as a share of all."""

    def grade(answer: str, truth: Row) -> qn.Score:
        best, right = 0.0, list[str]()
        for said in parse(answer):
            if said.keys() == truth.keys():
                good = [key for key in weights if is_right(said[key], truth[key])]
                best, right = max((best, right), (sum(map(weights.__getitem__, good)) / sum(weights.values()), good))
        return qn.Score(best, f"right: {', '.join(right) or 'nothing'}")

    return grade


def rounded(grade: Grade) -> Grade:
    """Returns a function that says whether an answer is right or wrong."""
    return lambda answer, truth: qn.Score(float(round(grade(answer, truth).value or 0.0)))


def plain(grade: Grade) -> Criterion[Any]:
    """Returns the criterion of a grade."""

    @qn.reward
    def parts(view: qn.EpisodeView[Any]) -> qn.Score:
        return grade(view.answer, view.task.truth)

    return parts


def remembered(grade: Grade) -> Criterion[Any]:
    """Returns the criterion of a grade, which is worked out once."""
    known: dict[str, qn.Score] = {}

    @qn.reward
    def parts(view: qn.EpisodeView[Any]) -> qn.Score:
        if view.task.id not in known:
            known[view.task.id] = grade(view.answer, view.task.truth)
        return known[view.task.id]

    return parts


def build(
    criterion: Criterion[Any] | None = None,
    *,
    make: Draw = draw,
    seed: Callable[[str, int], str | int] = by_split,
    baths: tuple[str, ...] = BATHS,
) -> qn.Environment[Any]:
    """Returns an environment of letters."""
    letters = {split: [row(seed(split, n), make, baths) for n in range(count)] for split, count in COUNTS.items()}
    return from_rows("dyehouse", letters, scorer=criterion or plain(graded()), system=SYSTEM)


env = build()
env_guesses = build(plain(graded(parse=parse_anywhere)))
env_rounded = build(plain(rounded(graded())))
env_weights = build(plain(graded(dict(zip(set(WEIGHTS), WEIGHTS.values(), strict=True)))))
env_remembered = build(remembered(graded()))
env_seeds = build(seed=lambda split, n: n + {"train": 0, "test": 18}[split])
env_usual = build(baths=(*BATHS, "Take the usual bath, please."))
env_uniform = build(make=draw_uniform)
