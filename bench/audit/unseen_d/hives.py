"""Hives: the telephone of a travelling beekeeper, who places hives in orchards; a scripted grower is on the line."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import ClassVar

import quintain as qn
from quintain.task import Call

CROPS = {"almond": (2, 8, 18, 180), "apple": (1, 6, 14, 70), "blueberry": (3, 7, 24, 110)}
TABLE = "; ".join(f"{crop} {a} an acre, {f} frames, {d} days, {e} euros" for crop, (a, f, d, e) in CROPS.items())
LOOP = qn.ToolLoop(f"""You answer the telephone of Wanderer Bees; it places hives in orchards. Talk with `say`.
- New placement: hives come on the first day of bloom and stay for the crop's days, both ends included. Hives an acre,
  least frames of each hive, days, and fee of a hive: {TABLE}. From 8 hives on, the whole fee is 10 % lower. Offer just
  this price, and book once it is accepted. Take the hives with the nearest yards: we pay each kilometre of each hive.
- Bloom is late: shift the placement by the days that the grower says.
- Change nothing else. Last, say the placement's number and its first day (as 2025-04-01) to the grower.""")
NAMES = """Falk Hill, Ines Falk, apple; Longmere, Tom Arden, blueberry; Saltash Rows, Mira Costa, almond; Priory Field,
Jan Brandt, apple; Ottery Bank, Ruth Penn, blueberry; Casal Novo, Luis Prado, almond; Windfall, Ada Horn, apple"""
ORCHARDS = {name: (grower, crop) for name, grower, crop in (re.split(r",\s", row) for row in NAMES.split("; "))}
TOPICS = {"acres": {"acre", "acres", "big"}, "bloom": {"bloom", "when"}, "late": {"days", "late", "later", "when"}}
SPLITS, SEASON = {"train": 24, "test": 12}, (date(2025, 1, 1), date(2025, 10, 31))
NUMBER, DAY, LAST = re.compile(r"\b[PW]\d+\b"), re.compile(r"\d{4}-\d\d-\d\d"), r"\nVERDICT: (yes|no)\Z"


def list_price(crop: str, count: int) -> int:
    """The whole fee of hives in a crop."""
    return count * CROPS[crop][3] * (9 if count >= 8 else 10) // 10


@dataclass
class Hive:
    """A hive: kilometres from its yard to the orchards of this valley, and its frames of bees."""

    km: int
    frames: int


@dataclass
class Placement:
    """Hives that stand in an orchard from the first to the last day, both included."""

    orchard: str
    hives: list[str]
    first: date
    last: date
    euros: int


class Apiary(qn.State):
    """Hives and placements, and the grower on the line with what they answer by topic."""

    hives: dict[str, Hive]
    placements: dict[str, Placement]
    grower: str
    answers: dict[str, str]
    asked: dict[str, int]
    log: list[tuple[str, str]]
    limit: int = 0
    agreed: int | None = None

    @qn.tool
    def say(self, words: str) -> str:
        """Say something to the grower; returns the reply. Growers hang up when asked the same more than three times.

        Args:
            words: What you say.
        """
        heard = set(re.findall(r"[a-z]+", words.lower()))
        found = [] if NUMBER.search(words) else [topic for topic in self.answers if heard & TOPICS[topic]]
        reply = " ".join(self.answers[topic] for topic in found)
        if found and max([self._asked(topic) for topic in found]) > 3:
            reply = "How often do I have to tell you? Goodbye!"
            self.finish("the grower hung up")
        reply = reply or ("Good, noted." if NUMBER.search(words) else "I don't follow. What do you want to know?")
        self.log += [("desk", words), ("grower", reply)]
        return reply

    @qn.tool
    def offer(self, euros: int) -> str:
        """Offer the grower a price for a new placement; returns the reply.

        Args:
            euros: The whole price.
        """
        self.agreed = euros if 0 < euros <= self.limit else None
        return f"{euros} euros are {'fine' if self.agreed else 'not fine'}."

    @qn.tool
    def orchard_card(self, orchard: str) -> dict[str, Placement]:
        """All placements in an orchard, by number.

        Args:
            orchard: Its name, such as "Falk Hill".
        """
        if orchard not in ORCHARDS:
            raise qn.ToolError(f"no orchard {orchard!r}; there are {', '.join(ORCHARDS)}")
        return {number: row for number, row in self.placements.items() if row.orchard == orchard}

    @qn.tool(writes=())
    def free_hives(self, first: date, last: date) -> dict[str, Hive]:
        """Hives that stand in no orchard on any day of a period, nearest yards first.

        Args:
            first: First day.
            last: Last day, included.
        """
        self._check(first, last)
        free = [number for number in self.hives if not self._busy([number], first, last)]
        return {number: self.hives[number] for number in sorted(free, key=lambda number: self.hives[number].km)}

    @qn.tool
    def book(self, orchard: str, hives: list[str], first: date, last: date) -> str:
        """Place hives in an orchard at the price that the grower accepted; returns the number of the placement.

        Args:
            orchard: Its name.
            hives: Numbers of the hives, each once.
            first: First day.
            last: Last day, included.
        """
        if orchard not in ORCHARDS or not hives or (price := self._price(ORCHARDS[orchard][1], len(hives))) is None:
            raise qn.ToolError("a booking needs a price that the grower has accepted, a known orchard, and hives")
        self._check(first, last, hives)
        if busy := self._busy(hives, first, last):
            raise qn.ToolError(f"not free on these days: {', '.join(busy)}")
        number = self.new_id("P")
        self.placements[number] = Placement(orchard, hives, first, last, price)
        self.agreed = None
        self.log.append(("office", f"booked {number}"))
        return number

    @qn.tool
    def shift(self, placement: str, days: int) -> str:
        """Move both days of a placement; it keeps its length and its hives.

        Args:
            placement: Its number.
            days: How many days later, at most 60; below 0 for earlier.
        """
        if placement not in self.placements or abs(days) > 60:
            raise qn.ToolError(f"no placement {placement!r}, or more than 60 days")
        row = self.placements[placement]
        first, last = row.first + timedelta(days), row.last + timedelta(days)
        self._check(first, last)
        if busy := self._busy(row.hives, first, last, besides=placement):
            raise qn.ToolError(f"not free on the new days: {', '.join(busy)}")
        row.first, row.last = first, last
        self.log.append(("office", f"shifted {placement}"))
        return f"{placement} is shifted by {days} days"

    def _check(self, first: date, last: date, hives: Sequence[str] = ()) -> None:
        if not SEASON[0] <= first <= last <= SEASON[1]:
            raise qn.ToolError(f"the first and last day must be in order, and from {SEASON[0]} to {SEASON[1]}")
        if wrong := [hive for n, hive in enumerate(hives) if hive not in self.hives or hive in hives[:n]]:
            raise qn.ToolError(f"unknown or named twice: {', '.join(wrong)}")

    def _busy(self, hives: list[str], first: date, last: date, besides: str = "") -> list[str]:
        rows = [row for number, row in self.placements.items() if number != besides]
        return [n for n in hives if any(n in row.hives and first <= row.last and row.first <= last for row in rows)]

    def _price(self, crop: str, count: int) -> int | None:
        return self.agreed

    def _asked(self, topic: str) -> int:
        self.asked[topic] = self.asked.get(topic, 0) + 1
        return self.asked[topic]


@dataclass(frozen=True)
class Goal:
    """What the verifier knows: how the placement has to be; for a new one `count` hives in place of certain ones."""

    number: str
    placement: Placement
    count: int = 0
    least_km: int = 0


def make(split: str, index: int, world: type[Apiary]) -> qn.Task[Apiary]:
    """Makes one task; the kinds alternate."""
    rng, day, kind = random.Random(f"hives/{split}/{index}"), timedelta(1), ("new", "late")[index % 2]  # noqa: S311
    orchard, *others = rng.sample(list(ORCHARDS), 3)
    grower, crop = ORCHARDS[orchard]
    per_acre, least, days, _ = CROPS[crop]
    first = date(2025, 3, 20) + rng.randrange(40) * day
    last = first + (days - 1) * day
    yards = sorted(rng.sample(range(4, 60), 4))
    hives = {f"H{n:02}": Hive(yards[n % 4], rng.randint(4, 14)) for n in range(1, 49)}
    ours, theirs = ["H04", "H08", "H12", "H16", "H20"], ["H01", "H05", "H10"]  # The former are strong, in a near yard.
    hives |= {n: Hive(yards[0], rng.randint(9, 14)) for n in ours}
    w1 = Placement(others[0], ours, first - 13 * day, first, 350)  # It still stands there on the day of the bloom.
    w2 = Placement(others[1], theirs, first + 3 * day, first + 16 * day, 540)
    start = world(hives=hives, placements={"W1": w1, "W2": w2}, grower=grower, answers={}, asked={}, log=[])
    card = ("orchard_card", {"orchard": orchard})
    if kind == "new":
        words, count = "I need bees for my trees this spring.", rng.randint(3, 5) * per_acre
        price = list_price(crop, count)
        start.answers = {"acres": f"I have {count // per_acre} acres of {crop}.", "bloom": f"Bloom begins on {first}."}
        start.limit = price + 10 * rng.randint(2, 9)
        strong = [n for n, hive in hives.items() if hive.frames >= least and n not in ours + theirs]
        taken = sorted(strong, key=lambda n: (hives[n].km, n))[:count]
        goal = Goal("P1", Placement(orchard, [], first, last, price), count, sum(hives[n].km for n in taken))
        period = {"first": str(first), "last": str(last)}
        calls: list[Call] = [("say", {"words": "How many acres?"}), ("say", {"words": "When will it bloom?"})]
        calls += [("free_hives", period), ("offer", {"euros": price})]
        calls += [("book", {"orchard": orchard, "hives": taken, **period}), card]
    else:
        words, late = "Frost keeps my buds shut, bloom will be late. Can the bees come later?", rng.randint(3, 12)
        start.answers = {"late": f"Bloom is {late} days late."}
        w1 = start.placements["W1"] = Placement(orchard, ours, first, last, list_price(crop, 5))
        goal = Goal("W1", replace(w1, first=first + late * day, last=last + late * day))
        calls = [("say", {"words": "How many days late?"}), card, ("shift", {"placement": "W1", "days": late}), card]
    calls.append(("say", {"words": f"It is done. Your placement {goal.number} begins on {goal.placement.first}."}))
    prompt = f"{grower} of {orchard} is on the line: {words}"
    return qn.Task(id=f"{split}-{index}", prompt=prompt, start=start, truth=goal, solution=tuple(calls))


@qn.reward
def done(view: qn.EpisodeView[Apiary]) -> qn.Score:
    """1 if the placement is as it should be, at the right price, and all others are as they were."""
    goal, rows = view.task.truth, dict(view.state.placements)
    row, wanted = rows.pop(goal.number, None), goal.placement
    if row is None or rows != {n: other for n, other in view.start.placements.items() if n != goal.number}:
        return qn.Score(0.0, f"{goal.number} is missing, or other placements changed")
    if goal.count:
        strong = all(view.state.hives[hive].frames >= CROPS[ORCHARDS[row.orchard][1]][1] for hive in row.hives)
        wanted = replace(wanted, hives=row.hives if strong and len(row.hives) == goal.count else [])
    return qn.Score(float(row == wanted), f"wanted {wanted}, found {row}")


def judge(log: list[tuple[str, str]], number: str, row: Placement) -> str:
    """Stands in for the model that will read the calls; its answer has the same form: a quote, then the verdict."""
    acts = [n for n, (who, _) in enumerate(log) if who == "office"]
    heard = " / ".join(words for who, words in log[acts[-1] if acts else len(log) :] if who == "desk")
    numbers, days = set(NUMBER.findall(heard)), set(DAY.findall(heard))
    right = numbers == {number} and {str(row.first)} <= days <= {str(row.first), str(row.last)}
    return f"After the change the desk said: {heard or 'nothing'}\nVERDICT: {'yes' if right else 'no'}"


def build(world: type[Apiary] = Apiary, verdict: str = LAST, slack: float = 1.0) -> qn.Environment[Apiary]:
    """Returns the environment with a world, a pattern that finds the judge's verdict, and a slack of the haul."""

    @qn.reward
    def told(view: qn.EpisodeView[Apiary]) -> qn.Score:
        """1 if the judge says that the grower was told the right number and day after the change."""
        text = judge(view.state.log, view.task.truth.number, view.task.truth.placement)
        return qn.Score(float(re.findall(verdict, text)[:1] == ["yes"]), text)

    @qn.reward
    def haul(view: qn.EpisodeView[Apiary]) -> qn.Score:
        """Least kilometres by those driven, for a new placement."""
        goal = view.task.truth
        if not goal.count or goal.number not in view.state.placements:
            return qn.Score(None, "nothing was hauled")
        driven = sum(view.state.hives[hive].km for hive in view.state.placements[goal.number].hives)
        return qn.Score(min(1.0, slack * goal.least_km / driven), f"{driven} km, {goal.least_km} would do")

    def tasks(split: str) -> list[qn.Task[Apiary]]:
        return [make(split, index, world) for index in range(SPLITS[split])]

    judged = qn.Verifier(done, told, haul, combine="product")
    return qn.Environment("hives", tasks=tasks, harness=LOOP, verifier=judged, state=world, splits=tuple(SPLITS))


class StaleCard(Apiary):
    """Keeps the cards of orchards as long as there are as many placements."""

    cards: dict[str, dict[str, Placement]] | None = None

    def orchard_card(self, orchard: str) -> dict[str, Placement]:
        """As before, from the cache."""
        key, self.cards = f"{orchard}/{len(self.placements)}", self.cards or {}
        if key not in self.cards:
            self.cards[key] = {n: replace(row) for n, row in super().orchard_card(orchard).items()}
        return self.cards[key]


class DoubleHive(Apiary):
    """Takes a hive that is named several times for several hives."""

    def _check(self, first: date, last: date, hives: Sequence[str] = ()) -> None:
        super()._check(first, last, sorted(set(hives)))


class Unagreed(Apiary):
    """Books at the price of the list where the grower has accepted none."""

    def _price(self, crop: str, count: int) -> int | None:
        return self.agreed or list_price(crop, count)


class LongTemper(Apiary):
    """Growers keep their temper from one call to the next."""

    TEMPER: ClassVar[dict[tuple[str, str], int]] = {}

    def _asked(self, topic: str) -> int:
        self.TEMPER[self.grower, topic] = self.TEMPER.get((self.grower, topic), 0) + 1
        return self.TEMPER[self.grower, topic]


class SameDay(Apiary):
    """Lets a hive begin in an orchard on the day on which it still stands in another one."""

    def _busy(self, hives: list[str], first: date, last: date, besides: str = "") -> list[str]:
        return super()._busy(hives, first + timedelta(1), last - timedelta(1), besides)


env = build()
env_stale_card = build(StaleCard)
env_double_hive = build(DoubleHive)
env_unagreed = build(Unagreed)
env_long_temper = build(LongTemper)
env_same_day = build(SameDay)
env_first_verdict = build(verdict=r"VERDICT: (yes|no)")
env_generous_haul = build(slack=1.5)
