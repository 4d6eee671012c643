"""Regatta: score a dinghy race from the race officer's finish sheet, in one reply that is one JSON object."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import quintain as qn
from quintain.judges import last_block

COUNTS = {"train": 48, "test": 16}
RATINGS = {
    "Topper": 1365,
    "ILCA 6": 1154,
    "Solo": 1143,
    "GP14": 1131,
    "Enterprise": 1122,
    "ILCA 7": 1102,
    "RS Aero 7": 1063,
    "RS 200": 1046,
    "Merlin Rocket": 980,
    "Fireball": 952,
}
ALIASES = {"Radial": "ILCA 6", "Laser": "ILCA 7", "Aero 7": "RS Aero 7", "RS200": "RS 200", "Merlin": "Merlin Rocket"}
SLOW = 1100
"""Boats with this rating or a higher one start with the first gun, the others five minutes later."""
HELMS = (
    "Abernethy", "Brandt", "Calloway", "Dufresne", "Eastman", "Farrugia", "Gill", "Haldane", "Imrie", "Jarvis",
    "Kowalski", "Lund", "Mackie", "Nolan", "Okafor", "Pritchard", "Quayle", "Rushton", "Sato", "Tregenza",
)  # fmt: skip
WATERS = ("Grafham", "Rutland", "Carsington", "Hollowell", "Bassenthwaite", "Queen Mary", "Pitsford", "Chew Valley")
UNPLACED = ("DNF", "RET", "OCS")
REMARKS = ("Wind SW 12 kn, gusting 17.", "Course: 3 rounds, marks to port.", "Wind backed W in round 2.", "Light rain.")

RULES = f"""Score this race from the finish sheet.

Rules
- Elapsed time: from the boat's gun to its finish. A note "tp N" is a time penalty: add N seconds to the elapsed time.
- Boats rated {SLOW} or more start with gun 1, all others with gun 2.
- Corrected time = elapsed seconds * 1000 / rating, rounded to the nearest whole second (half a second is rounded up).
- The lowest corrected time is first. With equal corrected times the lower sail number goes first.
- Boats marked DNF, RET or OCS are unplaced: they have no corrected time and no place, even if a finish was noted.

Ratings (other names of the class in brackets)
{{ratings}}

{{sheet}}

Reply with one JSON object, plain or in a fenced block (if there are several blocks, the last one counts). Its keys:
"corrected": object from the sail number (text) of each placed boat to its corrected time (integer, seconds)
"places": list of the sail numbers (text) of the placed boats, the winner first
"unplaced": list of the sail numbers (text) of the unplaced boats, in any order
"margin": corrected time of the second boat less that of the first (integer, seconds)"""


class Boat(NamedTuple):
    """One line of the sheet; `finish` is in seconds after midnight, `code` is empty for a placed boat."""

    sail: str
    written: str
    helm: str
    finish: int
    penalty: int
    code: str


def rating_of(written: str) -> int:
    """Returns the rating of a class, by its own or another name."""
    return RATINGS[ALIASES.get(written, written)]


def clock(seconds: int) -> str:
    """Returns seconds after midnight as hh:mm:ss."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def gun(first: int, rating: int) -> int:
    """Returns when boats of a rating start."""
    return first if rating >= SLOW else first + 300


def fleet(rng: random.Random, first: int) -> list[Boat]:
    """Draws the boats of a race in the order in which they are on the sheet: as they crossed, then those without time.

    Args:
        rng: Source of all draws.
        first: Time of gun 1.
    """
    size = rng.randint(5, 9)
    lost = rng.randint(1, 2)
    names = [*RATINGS, *ALIASES]
    boats: list[Boat] = []
    for place, (sail, helm) in enumerate(zip(rng.sample(range(180, 6400), size), rng.sample(HELMS, size), strict=True)):
        written = rng.choice(names)
        rating = rating_of(written)
        finish = gun(first, rating) + round(rng.gauss(2900, 170) * rating / 1000)
        code = rng.choice(UNPLACED) if place < lost else ""
        penalty = rng.choice((20, 30, 45, 60)) if not code and rng.random() < 0.25 else 0
        boats.append(Boat(str(sail), written, helm, 0 if code in ("DNF", "RET") else finish, penalty, code))
    return sorted(boats, key=lambda boat: (not boat.finish, boat.finish, int(boat.sail)))


def line(rng: random.Random, boat: Boat) -> str:
    """Writes a boat's line as one of the race officer's team would."""
    time = clock(boat.finish) if boat.finish else ""
    notes = [boat.code] if boat.code else []
    if boat.penalty:
        notes.append(f"tp {boat.penalty}")
    style = rng.randrange(3)
    if style == 0:
        return "  ".join([boat.sail, boat.written, boat.helm, time or "--:--:--", *notes])
    if style == 1:
        return ", ".join([f"{time or 'no time'} {boat.written} {boat.sail} ({boat.helm})", *notes])
    return " / ".join([f"{boat.helm}, {boat.written}, sail {boat.sail}", time or "-", *notes])


def result(boats: list[Boat], first: int, rate: Callable[[str], int]) -> dict[str, Any]:
    """Computes the right answer for a sheet.

    Args:
        boats: Lines of the sheet.
        first: Time of gun 1.
        rate: Name of a class, as written, to its rating.
    """
    corrected: dict[str, int] = {}
    for boat in boats:
        if not boat.code:
            rating = rate(boat.written)
            elapsed = boat.finish - gun(first, rating) + boat.penalty
            corrected[boat.sail] = (2000 * elapsed + rating) // (2 * rating)
    places = sorted(corrected, key=lambda sail: (corrected[sail], int(sail)))
    return {
        "corrected": corrected,
        "places": places,
        "unplaced": [boat.sail for boat in boats if boat.code],
        "margin": corrected[places[1]] - corrected[places[0]],
    }


def make_task(split: str, index: int, *, seed: str, rate: Callable[[str], int]) -> qn.Task[qn.State]:
    """Returns one task of a split.

    Args:
        split: Name of the split.
        index: Number of the task.
        seed: Format of the seed, with the names `split` and `index`.
        rate: Name of a class, as written, to its rating.
    """
    rng = random.Random(seed.format(split=split, index=index))  # noqa: S311
    first = rng.randrange(10 * 3600, 15 * 3600, 300)
    boats = fleet(rng, first)
    truth = result(boats, first, rate)
    heading = f"{rng.choice(WATERS)} SC, series race {rng.randint(1, 12)}. {rng.choice(REMARKS)}"
    guns = f"Gun 1: {clock(first)}   Gun 2: {clock(first + 300)}"
    sheet = "\n".join([heading, guns, *(line(rng, boat) for boat in boats)])
    others = {official: alias for alias, official in ALIASES.items()}
    ratings = "\n".join(
        f"{name} ({others[name]}): {rating}" if name in others else f"{name}: {rating}"
        for name, rating in RATINGS.items()
    )
    return qn.Task(
        id=f"{split}-{index}",
        prompt=RULES.format(ratings=ratings, sheet=sheet),
        start=qn.State(),
        truth=truth,
        solution=(),
        answer=f"```json\n{json.dumps(truth, indent=1)}\n```",
        tags={"boats": str(len(boats))},
    )


class Grader:
    """Grades a reply part by part."""

    weights: ClassVar[dict[str, float]] = {"corrected": 0.5, "places": 0.25, "unplaced": 0.125, "margin": 0.125}

    def candidates(self, reply: str) -> list[str]:
        """Returns the texts of the reply that count as its answer."""
        return [last_block(reply)]

    def read(self, text: str) -> dict[str, Any] | None:
        """Returns the object in a text; None if it is no JSON object with the four keys and their types."""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or set(found) != set(self.weights):
            return None
        lists = isinstance(found["places"], list) and isinstance(found["unplaced"], list)
        return found if lists and isinstance(found["corrected"], dict) and type(found["margin"]) is int else None

    def boats(self, given: dict[str, Any], truth: dict[str, int]) -> set[str]:
        """Returns the boats whose corrected times are graded: a missing one is wrong, and one too many too."""
        return set(given) | set(truth)

    def corrected(self, given: dict[str, Any], truth: dict[str, int]) -> float:
        """Returns the share of the boats with the right corrected time."""
        boats = self.boats(given, truth)
        right = sum(type(given.get(sail)) is int and given[sail] == truth.get(sail) for sail in boats)
        return right / len(boats) if boats else 0.0

    def parts(self, given: dict[str, Any], truth: dict[str, Any]) -> dict[str, float]:
        """Returns the value of each part, from 0 to 1."""
        unplaced = given["unplaced"]
        texts = all(isinstance(sail, str) for sail in unplaced)
        return {
            "corrected": self.corrected(given["corrected"], truth["corrected"]),
            "places": float(given["places"] == truth["places"]),
            "unplaced": float(texts and sorted(unplaced) == sorted(truth["unplaced"])),
            "margin": float(given["margin"] == truth["margin"]),
        }

    def total(self, parts: dict[str, float]) -> float:
        """Returns the score that the parts make together."""
        return math.fsum(self.weights[name] * value for name, value in parts.items())

    def grade(self, view: qn.EpisodeView[qn.State]) -> qn.Score:
        """Returns the score of an episode."""
        found = [given for text in self.candidates(view.answer) if (given := self.read(text)) is not None]
        if not found:
            return qn.Score(0.0, "no JSON object with the four keys")
        parts = max((self.parts(given, view.task.truth) for given in found), key=self.total)
        return qn.Score(self.total(parts), ", ".join(f"{name} {value:.2f}" for name, value in parts.items()))


def build(
    name: str = "regatta",
    *,
    grader: Grader | None = None,
    seed: str = "regatta/{split}/{index}",
    rate: Callable[[str], int] = rating_of,
) -> qn.Environment[qn.State]:
    """Returns the environment.

    Args:
        name: Its name.
        grader: Who grades.
        seed: Format of the seed of a task.
        rate: Name of a class, as written, to its rating.
    """
    judge = grader or Grader()

    @qn.reward
    def graded(view: qn.EpisodeView[qn.State]) -> qn.Score:
        return judge.grade(view)

    def tasks(split: str) -> qn.Tasks[qn.State]:
        return qn.Tasks(COUNTS[split], lambda index: make_task(split, index, seed=seed, rate=rate))

    return qn.Environment(
        name,
        tasks=tasks,
        harness=qn.ToolLoop(system="You are the scorer of a sailing club."),
        verifier=qn.Verifier(graded),
        state=qn.State,
        splits=("train", "test"),
    )


class AnyBlock(Grader):
    """Accepts the answer wherever it stands in the reply, since models like to write after it."""

    def candidates(self, reply: str) -> list[str]:
        """Returns all fenced blocks of the reply."""
        return re.findall(r"```\w*\n(.*?)```", reply, re.DOTALL) or [reply]


class GivenBoats(Grader):
    """Compares the times that were given."""

    def boats(self, given: dict[str, Any], truth: dict[str, int]) -> set[str]:
        """Returns the boats of the answer."""
        return set(given)


class Capped(Grader):
    """Gives the small parts more weight, so that they are learned."""

    weights: ClassVar[dict[str, float]] = {"corrected": 0.5, "places": 0.25, "unplaced": 0.25, "margin": 0.25}

    def total(self, parts: dict[str, float]) -> float:
        """Returns the score, at most 1."""
        return min(1.0, super().total(parts))


class SpotCheck(Grader):
    """Checks three boats only, as large fleets made the reports long."""

    def boats(self, given: dict[str, Any], truth: dict[str, int]) -> set[str]:
        """Returns three boats."""
        return set(list(super().boats(given, truth))[:3])


class Remembering(Grader):
    """Keeps grades, because the sheets of a run are graded again for its report."""

    def __init__(self) -> None:
        self._grades: dict[str, qn.Score] = {}

    def grade(self, view: qn.EpisodeView[qn.State]) -> qn.Score:
        """Returns the grade of an episode, from memory where it has been given."""
        if view.task.id not in self._grades:
            self._grades[view.task.id] = super().grade(view)
        return self._grades[view.task.id]


env = build()
env_any_block = build("regatta_any_block", grader=AnyBlock())
env_given_boats = build("regatta_given_boats", grader=GivenBoats())
env_capped = build("regatta_capped", grader=Capped())
env_spot_check = build("regatta_spot_check", grader=SpotCheck())
env_graded_once = build("regatta_graded_once", grader=Remembering())
env_split_initial = build("regatta_split_initial", seed="regatta/{split[0]}/{index}")
env_unrated = build("regatta_unrated", rate=lambda written: RATINGS.get(written, 1000))
