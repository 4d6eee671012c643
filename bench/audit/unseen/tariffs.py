"""Energy metering: meters, tariffs, switches between tariffs that a timer performs, and bills."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

import quintain as qn
from quintain.state import Rng

HOUR = 3600
STREETS = ("Ash Lane", "Beech Road", "Cedar Way", "Dyke Street", "Elm Court", "Fir Close")


class Meter(msgspec.Struct):
    address: str
    tariff: str
    load_w: int
    billed_at: float = 0.0


class Bill(msgspec.Struct):
    meter: str
    wh: int
    cents: int


class Grid(qn.State):
    meters: qn.Table[Meter]
    rates: dict[str, int]
    bills: dict[str, Bill] = {}
    switches: dict[str, tuple[int, str, str]] = {}

    @qn.tool
    def meters_on(self, tariff: str) -> list[str]:
        """List the meters on a tariff, in order of id.

        Args:
            tariff: Name of the tariff.
        """
        self._rate(tariff)
        return sorted(key for key, row in self.meters.items() if row.tariff == tariff)

    @qn.tool
    def show_meter(self, meter: str) -> dict[str, Any]:
        """Show the address, the tariff and the load in watts of a meter, and the hours since its last bill.

        Args:
            meter: Id of the meter, such as "M3".
        """
        row = self._meter(meter)
        hours = round((self.clock.now - row.billed_at) / HOUR)
        return {"address": row.address, "tariff": row.tariff, "load_w": row.load_w, "unbilled_h": hours}

    @qn.tool
    def show_tariffs(self) -> dict[str, int]:
        """Show all tariffs and their prices in cents per kWh."""
        return dict(self.rates)

    @qn.tool
    def set_rate(self, tariff: str, cents: int) -> str:
        """Set the price of a tariff; bills that are issued from now on use it.

        Args:
            tariff: Name of the tariff.
            cents: Cents per kWh, 1 to 99.
        """
        self._rate(tariff)
        if not 1 <= cents <= 99:
            raise qn.ToolError(f"cents must be 1 to 99, got {cents}")
        self._store_rate(tariff, cents)
        return f"{tariff} costs {cents}"

    @qn.tool
    def plan_switch(self, meter: str, tariff: str, hours: int) -> str:
        """Plan the switch of a meter to a tariff; returns the id of the switch.

        Args:
            meter: Id of the meter.
            tariff: Name of the new tariff.
            hours: Hours from now, 1 to 1000.
        """
        self._meter(meter)
        tariff = self._named(tariff)
        if not 1 <= hours <= 1000:
            raise qn.ToolError(f"hours must be 1 to 1000, got {hours}")
        number = self.new_id("S")
        timer = self.clock.after(hours * HOUR, self.switch, meter=meter, tariff=tariff, number=number)
        self.switches[number] = (timer, meter, tariff)
        return number

    @qn.tool
    def cancel_switch(self, number: str) -> str:
        """Cancel a planned switch; the meter keeps its tariff.

        Args:
            number: Id of the switch, such as "S1".
        """
        if number not in self.switches:
            raise qn.ToolError(f"no planned switch {number!r}")
        self._drop(self.switches.pop(number)[0])
        return f"{number} is cancelled"

    @qn.tool
    def wait(self, hours: int) -> str:
        """Let time pass; planned switches happen when they are due.

        Args:
            hours: Hours to wait, 1 to 1000.
        """
        if not 1 <= hours <= 1000:
            raise qn.ToolError(f"hours must be 1 to 1000, got {hours}")
        self.clock.advance(hours * HOUR)
        return f"hour {round(self.clock.now / HOUR)}"

    @qn.tool
    def bill(self, meter: str) -> str:
        """Bill the energy that a meter has counted since its last bill, at its present tariff; returns the bill's id.

        Args:
            meter: Id of the meter.
        """
        return self._issue(meter, self._meter(meter))

    @qn.tool
    def show_bill(self, bill: str) -> dict[str, Any]:
        """Show the meter, the watt hours and the cents of a bill.

        Args:
            bill: Id of the bill, such as "B1".
        """
        if bill not in self.bills:
            raise qn.ToolError(f"no bill {bill!r}")
        return msgspec.to_builtins(self.bills[bill])  # type: ignore[no-any-return]

    def switch(self, meter: str, tariff: str, number: str) -> None:
        self.switches.pop(number, None)
        row = self.meters[meter]
        row.tariff = tariff
        self.meters[meter] = row

    def _issue(self, meter: str, row: Meter) -> str:
        wh = round(row.load_w * (self.clock.now - row.billed_at) / HOUR)
        row.billed_at = self.clock.now
        self.meters[meter] = row
        number = self.new_id("B")
        self.bills[number] = Bill(meter, wh, (wh * self._rate(row.tariff) + 500) // 1000)
        return number

    def _meter(self, meter: str) -> Meter:
        if meter not in self.meters:
            raise qn.ToolError(f"no meter {meter!r}; ids look like M3")
        return self.meters[meter]

    def _rate(self, tariff: str) -> int:
        if tariff not in self.rates:
            raise qn.ToolError(f"no tariff {tariff!r}; tariffs: {', '.join(self.rates)}")
        return self.rates[tariff]

    def _named(self, tariff: str) -> str:
        self._rate(tariff)
        return tariff

    def _store_rate(self, tariff: str, cents: int) -> None:
        self.rates[tariff] = cents

    def _drop(self, timer: int) -> None:
        self.clock.cancel(timer)


def summary(world: Grid) -> dict[str, Any]:
    """Returns what the verifier compares; the order of bills of one moment does not matter."""
    bills = sorted((bill.meter, bill.wh, bill.cents) for bill in world.bills.values())
    tariffs = {key: row.tariff for key, row in world.meters.items()}
    return {"bills": [list(one) for one in bills], "tariffs": tariffs, "rates": dict(world.rates)}


def task(split: str, n: int, world: type[Grid], planner: type[Grid], bug: str) -> qn.Task[Grid]:
    rng = Rng(key=hashlib.blake2b(f"tariffs/{split}/{n}".encode(), digest_size=16).digest())
    rates = {"day": 20 + rng.below(20), "night": 10 + rng.below(9), "solar": 30 + rng.below(30)}
    scale = 1000 if bug == "smelters" else 1  # The loads of this variant are those of factories.
    rows = {
        f"M{k}": Meter(f"{1 + rng.below(80)} {rng.choice(STREETS)}", "night", (120 + rng.below(900)) * scale)
        for k in range(1, 8)
    }
    ours = sorted(rng.sample(tuple(rows), 3))
    for key in ours:
        rows[key].tariff = "day"
    price, gap, mover = rates["day"] + 1 + rng.below(9), 24 * (5 + rng.below(4)), ours[rng.below(3)]
    solution: list[tuple[str, dict[str, Any]]] = [("meters_on", {"tariff": "day"})]
    prompt = f"Job {rng.below(10**6):06}: bill every meter on tariff day three times, every {gap} hours from now."
    if n % 2:
        prompt += f" Raise the price of day to {price} cents right after the first bills."
    else:
        prompt += f" Plan now that {mover} goes to solar in {gap + 12} hours; bill it three times all the same."
        solution.append(("plan_switch", {"meter": mover, "tariff": "solar", "hours": gap + 12}))
    for cycle in range(3):
        solution += [("wait", {"hours": gap}), *(("bill", {"meter": key}) for key in ours)]
        if n % 2 and not cycle:
            solution.append(("set_rate", {"tariff": "day", "cents": price}))
    goal = planner(meters=qn.Table(Meter, rows), rates=dict(rates)).copy()
    for name, arguments in solution:
        getattr(goal, name)(**arguments)
    start = world(meters=qn.Table(Meter, rows), rates=rates)
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=start, truth=summary(goal), solution=tuple(solution))


@qn.reward
def books_agree(view: qn.EpisodeView[Grid]) -> float:
    return float(summary(view.state) == view.task.truth)


# Variants of the sound world.


class DailyPrices(Grid):
    shown: dict[str, dict[str, int]] = {}

    @qn.tool
    def show_tariffs(self) -> dict[str, int]:
        """Show all tariffs and their prices in cents per kWh."""
        return dict(self.shown.setdefault(str(self.clock.now), dict(self.rates)))


class HalfCancelled(Grid):
    def _drop(self, timer: int) -> None:
        due = {one.number: one.due for one in self.clock.timers}
        if due[timer] - self.clock.now > 48 * HOUR:
            self.clock.cancel(timer)


class Fallback(Grid):
    def _named(self, tariff: str) -> str:
        return tariff if tariff in self.rates else next(iter(self.rates))


class PriceList(Grid):
    prices: ClassVar[dict[str, int]] = {}

    def _store_rate(self, tariff: str, cents: int) -> None:
        self.rates[tariff] = self.prices[tariff] = cents

    def _issue(self, meter: str, row: Meter) -> str:
        self.rates.update({name: cents for name, cents in self.prices.items() if self.rates[name] < cents})
        return super()._issue(meter, row)


class OneForm(Grid):
    form: ClassVar[list[Meter]] = []

    @qn.tool
    async def bill(self, meter: str) -> str:  # type: ignore[override]
        """Bill the energy that a meter has counted since its last bill, at its present tariff; returns the bill's id.

        Args:
            meter: Id of the meter.
        """
        self.form[:] = [self._meter(meter)]
        await asyncio.sleep(0)
        return self._issue(meter, self.form[-1])


@qn.reward
def counted(view: qn.EpisodeView[Grid]) -> float:
    found, wanted = summary(view.state), view.task.truth
    meters, right = (sorted(one[0] for one in books["bills"]) for books in (found, wanted))
    return float(meters == right and all(found[name] == wanted[name] for name in ("tariffs", "rates")))


@qn.reward
def mostly(view: qn.EpisodeView[Grid]) -> float:
    found, wanted = (Counter(map(tuple, books["bills"])) for books in (summary(view.state), view.task.truth))
    return min(1.0, (found & wanted).total() / 6)


WORLDS: dict[str, type[Grid]] = {
    "daily_prices": DailyPrices,
    "half_cancelled": HalfCancelled,
    "fallback": Fallback,
    "price_list": PriceList,
    "one_form": OneForm,
}
VERIFIERS = {"counted": counted, "mostly": mostly}


def make(bug: str = "") -> qn.Environment[Grid]:
    """Returns the sound environment, or a variant of it."""
    world = WORLDS.get(bug, Grid)
    planner = world if bug == "half_cancelled" else Grid

    def tasks(split: str) -> Sequence[qn.Task[Grid]]:
        return qn.Tasks(24, lambda n: task(split, n, world, planner, bug))

    return qn.Environment(
        "tariffs",
        tasks=tasks,
        harness=qn.ToolLoop(system="You run the meters of a town. Do what is asked, and nothing else."),
        verifier=qn.Verifier(VERIFIERS.get(bug, books_agree)),
        state=world,
        config=qn.Config(max_turns=40),
    )


env = make()
env_daily_prices = make("daily_prices")
env_half_cancelled = make("half_cancelled")
env_fallback = make("fallback")
env_price_list = make("price_list")
env_one_form = make("one_form")
env_smelters = make("smelters")
env_counted = make("counted")
env_mostly = make("mostly")
