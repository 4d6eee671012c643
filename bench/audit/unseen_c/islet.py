"""Islet: an agent keeps the lights on during one shift of a small island grid (sun, battery, diesel, fuel boats)."""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import quintain as qn

NEEDS = {"clinic": (4, 6), "pump": (3, 6), "school": (2, 7), "kiln": (3, 7)}  # kWh in an hour, in order of service
FEEDERS = tuple(NEEDS)
FAMILIES = ("full", "lean", "repair")
CAPACITY = 30  # kWh in a full battery
NOTCH_KW, NOTCH_LITRES, TOP_NOTCH = 6, 2, 4  # per hour
LITRE_COINS, CAN, BOAT_HOURS = 2, 5, 2
SUN = {6: 2, 7: 5, 8: 8, 9: 11, 10: 14, 11: 16, 12: 17, 13: 16, 14: 14, 15: 11, 16: 8, 17: 5, 18: 2}
SPLITS = {"train": 36, "test": 12}


@dataclass
class HourLog:
    """One hour that has passed."""

    hour: int
    on: list[str]
    served: dict[str, int]
    battery: int


class Islet(qn.State):
    """The control room."""

    hour: int
    end: int
    demand: dict[str, dict[str, int]]  # hour -> feeder -> kWh
    solar: dict[str, int]  # hour -> kWh
    battery: int
    fuel: int
    coins: int
    off: list[str]
    orders: dict[str, int]  # hour -> litres on their way
    log: list[HourLog]
    notch: int = 0
    spent: int = 0
    placed: int = 0

    @qn.tool
    def status(self) -> dict[str, Any]:
        """Read the control board: hour, end of the shift, battery, fuel, notch, coins, boat fee, feeders, boats."""
        return self._board()

    @qn.tool
    def forecast(self, hours: int) -> list[dict[str, Any]]:
        """Read the exact forecast, in kWh, from the present hour on; it ends with the shift.

        Args:
            hours: How many hours.
        """
        if hours < 1:
            raise qn.ToolError("ask for one hour or more")
        coming = range(self.hour, min(self.hour + hours, self.end))
        return [{"hour": h, "solar": self.solar[str(h)], **self.demand[str(h)]} for h in coming]

    @qn.tool
    def set_diesel(self, notch: int) -> str:
        """Set the diesel generator; it stays there. A notch gives 6 kWh and burns 2 litres in an hour.

        Args:
            notch: 0 (off) to 4.
        """
        if not 0 <= notch <= TOP_NOTCH:
            raise qn.ToolError(f"the notches are 0 to {TOP_NOTCH}")
        if notch * NOTCH_LITRES > self.fuel:
            raise qn.ToolError(f"notch {notch} needs {notch * NOTCH_LITRES} litres an hour, the tank has {self.fuel}")
        self.notch = notch
        return f"diesel at notch {self.notch}"

    @qn.tool
    def switch(self, feeder: str, *, on: bool) -> str:
        """Connect or disconnect a feeder; nothing happens if it is so already.

        Args:
            feeder: clinic, pump, school or kiln.
            on: True connects, False disconnects.
        """
        name = self._feeder(feeder)
        self._turn(name, on=on)
        return f"{name} is {'off' if name in self.off else 'on'}"

    @qn.tool
    def order_fuel(self, litres: int) -> str:
        """Order fuel: 2 coins a litre, and 4 coins for the boat, 3 more for each earlier boat of this shift.

        It takes two hours.

        Args:
            litres: How much, in cans of 5 litres.
        """
        if litres <= 0 or litres % CAN:
            raise qn.ToolError(f"fuel comes in cans of {CAN} litres")
        cost = litres * LITRE_COINS + self._fee()
        if cost > self.coins:
            raise qn.ToolError(f"that costs {cost} coins, you have {self.coins}")
        due = str(self.hour + BOAT_HOURS)
        self.coins, self.spent = self.coins - cost, self.spent + cost
        self.orders[due] = self.orders.get(due, 0) + litres
        self._placed()
        return f"{litres} litres for {cost} coins, due at hour {due}"

    @qn.tool
    def next_hour(self) -> dict[str, Any]:
        """Let the hour pass.

        Sun and diesel feed the feeders, then the battery helps; what is left over charges it, up to 30 kWh. If that is
        not enough, the clinic is served first, then pump, school and kiln. Without fuel for its notch the diesel stops.
        """
        if self.hour >= self.end:
            raise qn.ToolError("the shift is over")
        if self.notch * NOTCH_LITRES > self.fuel:
            self.notch = 0
        self.fuel -= self.notch * NOTCH_LITRES
        left = self.solar[str(self.hour)] + self.notch * NOTCH_KW + self.battery
        on = [name for name in FEEDERS if name not in self.off]
        served: dict[str, int] = {}
        for name in on:
            served[name] = min(left, self.demand[str(self.hour)][name])
            left -= served[name]
        missing = {name: self.demand[str(self.hour)][name] - served[name] for name in on}
        self.battery = min(CAPACITY, left)
        self.log.append(HourLog(self.hour, on, served, self.battery))
        self.hour += 1
        self.fuel += self.orders.pop(str(self.hour), 0)
        return {"hour": self.hour, "served": served, "missing": missing, "battery": self.battery, "fuel": self.fuel}

    def _board(self) -> dict[str, Any]:
        feeders = {name: "off" if name in self.off else "on" for name in FEEDERS}
        board: dict[str, Any] = {"hour": self.hour, "end": self.end, "battery": self.battery, "fuel": self.fuel}
        board |= {"notch": self.notch, "coins": self.coins, "fee": self._fee()}
        return board | {"feeders": feeders, "boats": dict(self.orders)}

    def _feeder(self, name: str) -> str:
        if name not in FEEDERS:
            raise qn.ToolError(f"no feeder {name!r}; there are {', '.join(FEEDERS)}")
        return name

    def _turn(self, name: str, *, on: bool) -> None:
        self.off = [one for one in FEEDERS if (one in self.off if one != name else not on)]

    def _fee(self) -> int:
        return 4 + 3 * self.placed

    def _placed(self) -> None:
        self.placed += 1


class CachedBoard(Islet):
    """Bug: the board is drawn once an hour, and no command refreshes it."""

    board: dict[str, Any] | None = None

    def _board(self) -> dict[str, Any]:
        self.board = self.board if self.board and self.board["hour"] == self.hour else super()._board()
        return self.board


class DefaultFeeder(Islet):
    """Bug: a name that is no feeder means the first one that begins like it, else the clinic."""

    def _feeder(self, name: str) -> str:
        return next((one for one in FEEDERS if name and one.startswith(name.lower()[0])), FEEDERS[0])


class Toggle(Islet):
    """Bug: the switch flips a feeder and does not look at `on`."""

    def _turn(self, name: str, *, on: bool) -> None:
        super()._turn(name, on=name in self.off)


class SharedBoats(Islet):
    """Bug: the boats of a shift are counted on the class, not in the world."""

    boats: ClassVar[list[int]] = []

    def _fee(self) -> int:
        return 4 + 3 * len(self.boats)

    def _placed(self) -> None:
        self.boats.append(self.hour)


def plan(loads: list[int], sun: list[int], battery: int, fuel: int, reserve: int) -> list[int] | None:
    """Returns the notches, one per hour, that burn least, serve all and leave the reserve; None if there are none."""

    @functools.cache
    def best(at: int, stored: int, early: int) -> tuple[int, tuple[int, ...]] | None:
        if at == len(loads):
            return (0, ()) if stored >= reserve else None
        found: list[tuple[int, tuple[int, ...]]] = []
        for notch in range(TOP_NOTCH + 1):
            left, litres = stored + sun[at] + notch * NOTCH_KW - loads[at], early - notch * NOTCH_LITRES
            if left >= 0 and (at >= BOAT_HOURS or litres >= 0) and (rest := best(at + 1, min(CAPACITY, left), litres)):
                found.append((notch + rest[0], (notch, *rest[1])))
        return min(found, default=None)

    answer = best(0, battery, fuel)
    return None if answer is None else list(answer[1])


def make_task(world: type[Islet], split: str, n: int) -> qn.Task[Islet]:
    """Task n of a split; draws until a shift can be done and needs a boat."""
    family = FAMILIES[n % len(FAMILIES)]
    drawn = (_draw(world, random.Random(f"islet/{split}/{n}/{i}"), f"{split}-{n}", family) for i in range(500))  # noqa: S311
    return next(task for task in drawn if task is not None)


def _draw(world: type[Islet], rng: random.Random, key: str, family: str) -> qn.Task[Islet] | None:
    first, length = rng.randint(6, 11), rng.randint(6, 8)
    hours, cloud = range(first, first + length), rng.uniform(0.5, 1.0)
    demand = {str(h): {name: rng.randint(*NEEDS[name]) for name in FEEDERS} for h in hours}
    solar = {str(h): max(0, round(SUN[h] * cloud) - rng.randint(0, 2)) for h in hours}
    battery, fuel, reserve = rng.randint(8, 20), rng.randint(8, 16), rng.randint(10, 22)
    fixed, mended = rng.choice(list(hours)[2:-1]), rng.choice(("pump", "school"))
    must = {str(h): [f for f in FEEDERS if not (family == "lean" and f == "kiln")] for h in hours}
    if family == "repair":
        must[str(fixed)].remove(mended)
    loads = [sum(demand[str(h)][f] for f in must[str(h)]) for h in hours]
    notches = plan(loads, list(solar.values()), battery, fuel, reserve)
    litres = -(-(sum(notches) * NOTCH_LITRES - fuel) // CAN) * CAN if notches else 0
    if notches is None or litres <= 0:
        return None
    cost = 4 + litres * LITRE_COINS
    calls: list[tuple[str, dict[str, Any]]] = [("status", {}), ("forecast", {"hours": length})]
    calls += [("order_fuel", {"litres": litres})]
    calls += [("switch", {"feeder": "kiln", "on": False})] if family == "lean" else []
    for at, (h, notch) in enumerate(zip(hours, notches, strict=True)):
        if family == "repair" and h in (fixed, fixed + 1):
            calls.append(("switch", {"feeder": mended, "on": h != fixed}))
        if notch != (notches[at - 1] if at else 0):
            calls.append(("set_diesel", {"notch": notch}))
        calls.append(("next_hour", {}))
    supply = {
        "full": "Supply all four feeders in every hour.",
        "lean": "Supply clinic, pump and school in every hour; the kiln may be off.",
        "repair": f"Supply all four feeders in every hour, but the line of the {mended} is mended in hour {fixed}: "
        "it must be off then, and only then.",
    }[family]
    prompt = (
        f"You run the islet's grid from hour {first} until hour {first + length}. {supply} When the shift ends, the "
        f"battery must hold at least {reserve} kWh. Spend at most {cost} coins on fuel and boats. The clinic must never be dark."  # noqa: E501
    )
    stores: dict[str, Any] = {"battery": battery, "fuel": fuel, "coins": cost + 20, "off": [], "orders": {}, "log": []}
    start = world(hour=first, end=first + length, demand=demand, solar=solar, **stores)
    truth = {"must": must, "reserve": reserve, "coins": cost, "repair": [fixed, mended] if family == "repair" else []}
    return qn.Task(id=key, prompt=prompt, start=start, truth=truth, solution=tuple(calls), tags={"family": family})


@qn.reward
def safe(view: qn.EpisodeView[Islet]) -> qn.Score:
    """Whether the clinic was always served, and a line was off while people worked on it."""
    for row in view.state.log:
        if row.served.get("clinic", 0) < view.start.demand[str(row.hour)]["clinic"]:
            return qn.Score(0.0, f"the clinic was dark in hour {row.hour}")
        if [row.hour] == view.task.truth["repair"][:1] and view.task.truth["repair"][1] in row.on:
            return qn.Score(0.0, f"the line was live in hour {row.hour}")
    return qn.Score(1.0)


@qn.reward
def thrifty(view: qn.EpisodeView[Islet]) -> qn.Score:
    """Whether the fuel cost no more than allowed."""
    return qn.Score(float(view.state.spent <= view.task.truth["coins"]), f"spent {view.state.spent}")


def verifier(
    *, share: Literal["demand", "connected"] = "demand", digits: int | None = None, peak: bool = False
) -> qn.Verifier[Islet]:
    """Returns the verifier, with the share of a demand, rounded to digits, and a reserve at the end or at its peak."""

    @qn.reward
    def supplied(view: qn.EpisodeView[Islet]) -> qn.Score:
        must = {(h, f): view.start.demand[h][f] for h, names in view.task.truth["must"].items() for f in names}
        if share == "connected":
            on = {(str(row.hour), f) for row in view.state.log for f in row.on}
            must = {place: kwh for place, kwh in must.items() if place in on}
        got = {(str(row.hour), f): kwh for row in view.state.log for f, kwh in row.served.items()}
        part = sum(got.get(place, 0) for place in must) / max(1, sum(must.values()))
        return qn.Score(part if digits is None else round(part, digits), f"{part:.4f} of {sum(must.values())} kWh")

    @qn.reward
    def reserve(view: qn.EpisodeView[Islet]) -> qn.Score:
        over = view.state.hour >= view.state.end
        held = max((row.battery for row in view.state.log), default=0) if peak else view.state.battery
        return qn.Score(float(over and held >= view.task.truth["reserve"]), f"shift over: {over}, battery {held}")

    return qn.Verifier(supplied, reserve, thrifty, safe, combine="product")


def build(world: type[Islet] = Islet, judge: qn.Verifier[Islet] | None = None) -> qn.Environment[Islet]:
    """Returns the environment on a world, with a verifier."""
    return qn.Environment(
        "islet",
        tasks=lambda split: qn.Tasks(SPLITS[split], lambda n: make_task(world, split, n)),
        harness=qn.ToolLoop(system="You are the operator of a small power grid. Work with the tools."),
        verifier=judge or verifier(),
        state=world,
        splits=tuple(SPLITS),
    )


env = build()
env_cached_board = build(CachedBoard)
env_default_feeder = build(DefaultFeeder)
env_toggle = build(Toggle)
env_shared_boats = build(SharedBoats)
env_connected_only = build(judge=verifier(share="connected"))
env_rounded = build(judge=verifier(digits=1))
env_peak_reserve = build(judge=verifier(peak=True))
