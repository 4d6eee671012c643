"""A garden under a random sky: weather comes from the world's random stream, and care wins whatever it brings."""

from typing import Literal

import msgspec

import quintain as qn

Kind = Literal["bean", "pea", "leek"]
DAYS: dict[Kind, int] = {"bean": 3, "pea": 4, "leek": 6}  # Days from sowing to harvest.
BEDS = ("north", "south", "west")
Bed = Literal["north", "south", "west"]
WET, SEASON = 3, 12


class Plant(msgspec.Struct):
    kind: Kind
    age: int = 0
    water: int = WET


class Garden(qn.State):
    beds: dict[str, Plant] = {}
    basket: dict[str, int] = {}
    day: int = 1
    tomorrow: Literal["sun", "rain", ""] = ""
    """Weather of the coming night; drawn when it is first needed."""

    def _weather(self) -> Literal["sun", "rain"]:
        if not self.tomorrow:
            self.tomorrow = "rain" if self.rng.below(3) == 0 else "sun"
        return self.tomorrow

    def _no_end(self) -> None:
        if self.day == SEASON:
            raise qn.ToolError(f"day {SEASON} is the last one: no day follows")

    @qn.tool
    def look(self) -> dict[str, int | dict[str, Plant] | dict[str, int]]:
        """Look at the beds with a plant (its age in days and its water), the basket and the day."""
        return {"day": self.day, "beds": self.beds, "basket": self.basket}

    @qn.tool
    def forecast(self) -> str:
        """Read what comes before the next day: sun or rain. The forecast is always right."""
        self._no_end()
        return self._weather()

    @qn.tool
    def sow(self, bed: Bed, kind: Kind) -> str:
        """Sow into an empty bed; the plant begins with 3 water.

        Args:
            bed: The bed.
            kind: What grows there.
        """
        if bed in self.beds:
            raise qn.ToolError(f"a {self.beds[bed].kind} grows in the {bed} bed")
        self.beds[bed] = Plant(kind)
        return f"{kind} is sown; it can be harvested at the age of {DAYS[kind]} days"

    @qn.tool
    def water(self, bed: Bed) -> str:
        """Give a plant water up to 3.

        Args:
            bed: The bed.
        """
        self._plant(bed).water = WET
        return f"the {bed} bed has {WET} water"

    @qn.tool
    def harvest(self, bed: Bed) -> str:
        """Harvest a plant of full age into the basket; the bed is empty then.

        Args:
            bed: The bed.
        """
        plant = self._plant(bed)
        if plant.age < DAYS[plant.kind]:
            raise qn.ToolError(f"the {plant.kind} is {plant.age} days old and needs {DAYS[plant.kind]}")
        del self.beds[bed]
        self.basket[plant.kind] = self.basket.get(plant.kind, 0) + 1
        return f"one {plant.kind} is in the basket"

    def _plant(self, bed: str) -> Plant:
        if bed not in self.beds:
            raise qn.ToolError(f"nothing grows in the {bed} bed")
        return self.beds[bed]

    @qn.tool
    def sleep(self) -> str:
        """Sleep until the next day. Plants age by a day; rain fills them to 3 water, sun takes 1 water.

        A plant that has no water left dies, and its bed is empty. The season has 12 days; in it you sleep 11 times.
        """
        self._no_end()
        weather = self._weather()
        self.tomorrow = ""
        self.day += 1
        for bed in list(self.beds):
            plant = self.beds[bed]
            plant.age += 1
            plant.water = WET if weather == "rain" else plant.water - 1
            if not plant.water:
                del self.beds[bed]
        return f"day {self.day}, after {weather}; there grows something in: {', '.join(self.beds) or 'no bed'}"


JOBS: list[dict[Kind, int]] = [
    {"bean": 1},
    {"pea": 1},
    {"leek": 1},
    {"bean": 3},
    {"bean": 1, "pea": 1, "leek": 1},
    {"leek": 3},
    {"pea": 4},
]


def solution(job: dict[Kind, int]) -> list[tuple[str, dict[str, object]]]:
    """Returns calls that win under any weather: rounds of three beds, each watered every day."""
    calls: list[tuple[str, dict[str, object]]] = []
    wanted = [kind for kind, count in job.items() for _ in range(count)]
    for first in range(0, len(wanted), len(BEDS)):
        batch = dict(zip(BEDS, wanted[first : first + len(BEDS)], strict=False))
        calls += [("sow", {"bed": bed, "kind": kind}) for bed, kind in batch.items()]
        for _ in range(max(DAYS[kind] for kind in batch.values())):
            calls.append(("sleep", {}))
            calls += [("water", {"bed": bed}) for bed in batch]
        calls += [("harvest", {"bed": bed}) for bed in batch]
    return calls


def tasks(split: str) -> list[qn.Task[Garden]]:
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"Bring exactly {', '.join(f'{count} {kind}' for kind, count in job.items())} into the basket, in "
            f"one season of {SEASON} days. The weather is random; it is enough to water often. There are 3 beds.",
            start=Garden(),
            truth=dict(job),
            solution=tuple(solution(job)),
        )
        for n, job in enumerate(JOBS, 1)
    ]


@qn.reward
def harvested(view: qn.EpisodeView[Garden]) -> qn.Score:
    return qn.Score(float(view.state.basket == view.task.truth), f"basket: {view.state.basket}")


env = qn.Environment(
    "garden", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(harvested), state=Garden, splits=("test",)
)
