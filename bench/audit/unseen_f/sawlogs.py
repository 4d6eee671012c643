"""Sawlogs: settlements of timber. The model reads the tally sheet of a sawmill and answers with one JSON object."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import quintain as qn
from quintain.harnesses import SingleTurn
from quintain.judges import last_block

PRICES = {
    "spruce": (8400, 9900),
    "pine": (6100, 7900),
    "larch": (9200, 12600),
    "oak": (18500, 29000),
    "beech": (7000, 9800),
}
DEFECTS = ("", "", "", "", "", "", "", "blue stain", "metal", "rot")
SELLERS = (
    "Forstamt Hagen",
    "Gut Altwies",
    "Skog & Son",
    "M. Dufresne",
    "Waldgenossenschaft Tann",
    "Lindqvist",
    "Abtei Sulz",
)
RULES = """Settle this tally sheet by the rules of the mill.

1. A log with rot, or with a mid diameter below {smallest} cm, is rejected. All other logs are accepted.
2. Volume of a log in m3 = 0.7854 x d x d x l, with the mid diameter d and the length l in metres, rounded to three
   decimals, half up.
3. An accepted log is paid volume x price of its species. Metal halves the price, blue stain takes off a fifth.
   Add up the unrounded amounts of the logs, and round the sum to whole cents, half up.
4. The leading species has the most accepted logs; of several, the first in the alphabet leads.

Reply with one JSON object and nothing else. It has the keys "accepted" (number of accepted logs), "rejected" (list of
the numbers of the rejected logs, ascending), "volume_m3" (sum of the volumes of the accepted logs), "pay_cents" (what
the mill pays) and "leading" (the leading species)."""
KEYS = ("accepted", "rejected", "volume_m3", "pay_cents", "leading")

Log = dict[str, Any]
Sheet = dict[str, Any]


class Desk(qn.State):
    """No world: the sheet is in the prompt."""


def draw(number: int, unit: int = 1) -> Sheet:
    """Returns a tally sheet with its prices, drawn from its number.

    Args:
        number: Number of the sheet.
        unit: Factor of the diameters.
    """
    rng = random.Random(f"sawlogs/{number}")  # noqa: S311
    kinds = rng.sample(sorted(PRICES), rng.randint(2, 4))
    first = rng.randrange(1000, 9000)
    logs: list[Log] = []
    for step in range(rng.randint(7, 13)):
        log: Log = {"no": first + step, "species": rng.choice(kinds), "dm": rng.randint(30, 65)}
        log |= {"cm": int(rng.triangular(14, 64, 30)) * unit, "note": rng.choice(DEFECTS)}
        logs.append(log)
    sound, rotten = rng.sample(logs, 2)
    sound |= {"cm": rng.randint(30, 50) * unit, "note": ""}
    rotten["note"] = "rot"
    prices = {kind: rng.randrange(*PRICES[kind], 50) for kind in sorted(PRICES)}
    return {
        "number": 2100 + number,
        "seller": rng.choice(SELLERS),
        "smallest": rng.choice((18, 20, 22)),
        "logs": logs,
        "prices": prices,
    }


def show(sheet: Sheet, priced: Callable[[Sheet], list[str]]) -> str:
    """Returns the prompt of a sheet, with the prices of the species that `priced` names."""
    prices = "\n".join(f"{kind}: {sheet['prices'][kind]} cents per m3" for kind in priced(sheet))
    rows = [
        f"{log['no']} | {log['species']} | {log['dm'] / 10:.1f} | {log['cm']} | {log['note'] or '-'}"
        for log in sheet["logs"]
    ]
    head = f"Sheet {sheet['number']}, seller {sheet['seller']}\n\nno | species | length (m) | mid diameter (cm) | note"
    return "\n".join([RULES.format(smallest=sheet["smallest"]), "", head, *rows, "", "Prices:", prices])


def rounded(value: Decimal, places: str) -> Decimal:
    """Returns a value rounded half up, to the places of a pattern such as 0.001."""
    return value.quantize(Decimal(places), ROUND_HALF_UP)


def settle(sheet: Sheet) -> dict[str, Any]:
    """Returns the right answer, but for the leading species, and the species of the accepted logs."""
    accepted = [log for log in sheet["logs"] if log["note"] != "rot" and log["cm"] >= sheet["smallest"]]
    volume = pay = Decimal(0)
    for log in accepted:
        one = rounded(Decimal("0.7854") * log["cm"] ** 2 * log["dm"] / 100_000, "0.001")
        volume += one
        share = {"metal": Decimal("0.5"), "blue stain": Decimal("0.8")}.get(log["note"], Decimal(1))
        pay += one * sheet["prices"][log["species"]] * share
    return {
        "accepted": len(accepted),
        "rejected": [log["no"] for log in sheet["logs"] if log not in accepted],
        "volume_m3": float(volume),
        "pay_cents": int(rounded(pay, "1")),
        "species": [log["species"] for log in accepted],
    }


def leader(species: list[str]) -> str:
    """Returns the most frequent species, of several the first in the alphabet."""
    return max(sorted(set(species)), key=species.count)


def leader_at_once(species: list[str]) -> str:
    """Returns the most frequent species."""
    return max(set(species), key=species.count)


def read(text: str) -> list[dict[str, Any]]:
    """Returns the answer in a text: the object of its last fenced block, or of all of it; empty if there is none."""
    try:
        found = json.loads(last_block(text))
    except (ValueError, RecursionError):
        return []
    return [found] if isinstance(found, dict) else []


def read_all(text: str) -> list[dict[str, Any]]:
    """Returns the objects in a text, because models like to talk."""
    found: list[dict[str, Any]] = []
    for one in re.findall(r"\{[^{}]*\}", text):
        try:
            found.append(json.loads(one))
        except (ValueError, RecursionError):
            continue
    return found


def same(key: str, said: Any, right: Any) -> float:
    """Returns 1 if a part of the answer is right, else 0."""
    if key in ("rejected", "leading"):
        return float(bool(said == right))
    return float(type(said) in (int, float) and right - 0.0005 < said < right + 0.0005)


def close(key: str, said: Any, right: Any) -> float:
    """Returns 1 if a part of the answer is right; a payment counts in proportion."""
    if key == "pay_cents" and type(said) in (int, float):
        return float(max(0, min(said, right)) / right)
    return same(key, said, right)


def mean(parts: dict[str, float]) -> float:
    """Returns the mean over all parts of the answer."""
    return sum(parts.values()) / len(KEYS)


def mean_of_given(parts: dict[str, float]) -> float:
    """Returns the mean over the parts."""
    return sum(parts.values()) / max(1, len(parts))


def grader(
    reads: Callable[[str], list[dict[str, Any]]] = read,
    part: Callable[[str, Any, Any], float] = same,
    total: Callable[[dict[str, float]], float] = mean,
    leads: Callable[[list[str]], str] = leader,
) -> qn.Verifier[Desk]:
    """Returns the verifier.

    Args:
        reads: From the last message to the answers in it.
        part: Value of a part, from its key, what was said and what is right.
        total: From the values of the parts that were answered to the score.
        leads: The leading species.
    """

    @qn.reward
    def settled(view: qn.EpisodeView[Desk]) -> qn.Score:
        """Scores the parts of the answer, those of the best object that was read."""
        right = view.task.truth | {"leading": leads(view.task.truth["species"])}
        parts: dict[str, float] = {}
        for answer in reads(view.answer):
            for key in KEYS:
                if key in answer:
                    parts[key] = max(parts.get(key, 0.0), part(key, answer[key], right[key]))
        return qn.Score(total(parts), ", ".join(f"{key} {value:.2f}" for key, value in parts.items()) or "no answer")

    return qn.Verifier(settled)


def all_priced(sheet: Sheet) -> list[str]:
    """Returns all species of the price list."""
    return list(sheet["prices"])


def usual(sheet: Sheet) -> list[str]:
    """Returns the species of the short price list."""
    return list(sheet["prices"])[:4]


def pools(train: int = 32, skip: int = 32, test: int = 16) -> dict[str, range]:
    """Returns the numbers of the sheets of each split.

    Args:
        train: How many are for training.
        skip: How many come before the test.
        test: How many are for the test.
    """
    return {"train": range(train), "test": range(skip, skip + test)}


def build(
    verifier: qn.Verifier[Desk] | None = None,
    splits: dict[str, range] | None = None,
    priced: Callable[[Sheet], list[str]] = all_priced,
    unit: int = 1,
) -> qn.Environment[Desk]:
    """Returns the environment with a verifier, sheets for each split, a price list and a unit of the diameters."""

    def task(split: str, number: int) -> qn.Task[Desk]:
        sheet = draw(number, unit)
        truth = settle(sheet)
        answer = {key: truth[key] if key != "leading" else leader(truth["species"]) for key in KEYS}
        return qn.Task(
            id=f"{split}-{number}",
            prompt=show(sheet, priced),
            start=Desk(),
            truth=truth,
            solution=(),
            answer=json.dumps(answer),
        )

    numbers = splits or pools()
    return qn.Environment(
        "sawlogs",
        tasks=lambda split: [task(split, number) for number in numbers[split]],
        harness=SingleTurn(),
        verifier=verifier or grader(),
        state=Desk,
        splits=tuple(numbers),
    )


env = build()
env_overlap = build(splits=pools(skip=24))
env_millimetres = build(unit=10)
env_pricelist = build(priced=usual)
env_hedge = build(grader(reads=read_all))
env_clipped = build(grader(part=close))
env_given = build(grader(total=mean_of_given))
env_tie = build(grader(leads=leader_at_once))
