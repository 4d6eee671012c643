"""Freight desk: rates of carriers in several currencies, quotes and bookings of shipments."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Annotated, Any, ClassVar, Literal

import msgspec

import quintain as qn
from quintain.state import Rng

TOWNS = ("Porto", "Lyon", "Gdansk", "Brno", "Turin", "Malmo", "Ghent", "Graz")
CARRIERS = ("Adler", "Boreal", "Cargolux", "Dunav", "Estrada", "Falk")
Status = Literal["open", "on hold", "booked"]
FX = {"EUR": 1000, "SEK": 88, "PLN": 233, "CHF": 1064}  # thousandths of a euro; CZK is quoted, but not traded here


class Shipment(msgspec.Struct):
    id: str
    origin: str
    destination: str
    kg: int
    due_days: int
    status: Status = "open"
    target: str = ""  # filled in by the planners; the desk does not see it


class Carrier(msgspec.Struct):
    name: str
    currency: str
    base: int  # cents of the currency
    per_kg: int
    days: int
    is_online: bool = True


class Quote(msgspec.Struct):
    id: str
    shipment: str
    carrier: str
    cents: int
    status: Literal["made", "accepted", "withdrawn"] = "made"


class Freight(qn.State):
    shipments: dict[str, Shipment]
    carriers: dict[str, Carrier]
    quotes: dict[str, Quote] = {}
    known: dict[str, list[dict[str, Any]]] = {}  # rates by shipment, because carriers bill each request

    @qn.tool
    def list_shipments(self, status: Status | None = None) -> list[dict[str, Any]]:
        """List shipments, in the order in which they came in.

        Args:
            status: Only those with this status; all if it is left out.
        """
        return [self._shown(one) for one in self.shipments.values() if status in (None, one.status)]

    @qn.tool
    def reweigh(self, shipment: str, kg: Annotated[int, msgspec.Meta(ge=1, le=24000)]) -> str:
        """Enter the weight of a shipment that is not booked yet.

        Args:
            shipment: Id of the shipment, such as "S2".
            kg: Its weight in kilograms.
        """
        row = self._open(shipment)
        row.kg = kg
        self._forget(shipment)
        return f"{shipment} weighs {kg} kg"

    @qn.tool
    async def rates(self, shipment: str, max_days: int | None = None) -> list[dict[str, Any]]:
        """Ask all carriers for their rates of a shipment. A carrier that does not answer is listed with an error.

        Args:
            shipment: Id of the shipment.
            max_days: Only carriers that deliver within this number of days.
        """
        row = self._open(shipment)
        if shipment not in self.known:
            self.known[shipment] = [await self._ask(carrier, row.kg) for carrier in self.carriers.values()]
        return [one for one in self.known[shipment] if self._in_time(one["carrier"], max_days)]

    @qn.tool
    def convert(self, cents: Annotated[int, msgspec.Meta(ge=0)], currency: str) -> int:
        """Convert an amount to euro cents, rounded up.

        Args:
            cents: The amount in hundredths of the currency.
            currency: Its code, such as "SEK".
        """
        return -(-cents * self._fx(currency) // 1000)

    @qn.tool
    async def quote(self, shipment: str, carrier: str) -> Quote:
        """Get a binding quote of a carrier, in euro cents.

        Args:
            shipment: Id of the shipment.
            carrier: Name of the carrier.
        """
        row = self._open(shipment)
        if carrier not in self.carriers:
            raise qn.ToolError(f"no carrier {carrier!r}; there are {', '.join(self.carriers)}")
        rate = await self._ask(self.carriers[carrier], row.kg)
        if "cents" not in rate:
            raise qn.ToolError(f"{carrier} does not answer")
        made = Quote(self.new_id("Q"), shipment, carrier, self.convert(rate["cents"], rate["currency"]))
        self.quotes[made.id] = made
        return made

    @qn.tool
    def accept(self, quote: str) -> str:
        """Accept a quote, which books its shipment with the carrier.

        Args:
            quote: Id of the quote, such as "Q1".
        """
        row = self._made(quote)
        self._open(row.shipment).status = "booked"
        row.status = "accepted"
        return f"{row.shipment} is booked with {row.carrier} for {row.cents} cents"

    @qn.tool
    def withdraw(self, quote: str) -> str:
        """Withdraw a quote that was made and not accepted.

        Args:
            quote: Id of the quote.
        """
        self._made(quote).status = "withdrawn"
        return f"{quote} is withdrawn"

    @qn.tool
    def mark(self, shipment: str, status: Status) -> str:
        """Set the status of a shipment by hand, as for one that was booked by telephone.

        Args:
            shipment: Id of the shipment.
            status: The new status.
        """
        self._any(shipment).status = status
        return f"{shipment} is {status}"

    def _shown(self, row: Shipment) -> dict[str, Any]:
        return {name: value for name, value in msgspec.to_builtins(row).items() if name != "target"}

    def _any(self, shipment: str) -> Shipment:
        if shipment not in self.shipments:
            raise qn.ToolError(f"no shipment {shipment!r}")
        return self.shipments[shipment]

    def _open(self, shipment: str) -> Shipment:
        row = self._any(shipment)
        if row.status != "open":
            raise qn.ToolError(f"{shipment} is {row.status}, not open")
        return row

    def _made(self, quote: str) -> Quote:
        if quote not in self.quotes or self.quotes[quote].status != "made":
            raise qn.ToolError(f"no quote {quote!r} that waits for an answer")
        return self.quotes[quote]

    async def _ask(self, carrier: Carrier, kg: int) -> dict[str, Any]:
        await asyncio.sleep(0)
        if not carrier.is_online:
            return {"carrier": carrier.name, "error": "no answer"}
        cents = carrier.base + carrier.per_kg * kg
        return {"carrier": carrier.name, "cents": cents, "currency": carrier.currency, "days": carrier.days}

    def _fx(self, currency: str) -> int:
        if currency not in FX:
            raise qn.ToolError(f"no rate for {currency!r}; known are {', '.join(FX)}")
        return FX[currency]

    def _in_time(self, carrier: str, max_days: int | None) -> bool:
        return max_days is None or self.carriers[carrier].days <= max_days

    def _forget(self, shipment: str) -> None:
        self.known.pop(shipment, None)


def price(carrier: Carrier, kg: int) -> int:
    return -(-(carrier.base + carrier.per_kg * kg) * FX[carrier.currency] // 1000)


def best(carriers: dict[str, Carrier], kg: int, days: int) -> str:
    """Returns the cheapest carrier that answers, can be paid and is in time."""
    able = [one for one in carriers.values() if one.is_online and one.currency in FX and one.days <= days]
    return min(able, key=lambda one: price(one, kg)).name


def start(rng: Rng) -> tuple[dict[str, Shipment], dict[str, Carrier]]:
    carriers: dict[str, Carrier] = {}
    for n, name in enumerate(CARRIERS):
        currency = "EUR" if n == 0 else "CZK" if n == 3 else rng.choice(tuple(FX))
        scale = 1000 / FX.get(currency, 40)
        base, per_kg = int((6000 + rng.below(9000)) * scale), max(1, int((8 + rng.below(20)) * scale))
        carriers[name] = Carrier(name, currency, base, per_kg, 2 + rng.below(6))
    carriers["Adler"].days, carriers[rng.choice(CARRIERS[1:])].is_online = 2, False
    shipments: dict[str, Shipment] = {}
    for n in range(1, 7):
        origin, destination = rng.sample(TOWNS, 2)
        kg, days = 120 + rng.below(2400), 3 + rng.below(6)
        status: Status = "on hold" if n > 4 else "open"
        target = best(carriers, kg, days)
        shipments[f"S{n}"] = Shipment(f"S{n}", origin, destination, kg, days, status, target)
    return shipments, carriers


def task(split: str, n: int, world: type[Freight]) -> qn.Task[Freight]:
    rng = Rng(key=hashlib.blake2b(f"freight/{split}/{n}".encode(), digest_size=16).digest())
    shipments, carriers = start(rng)
    row = shipments[rng.choice(("S1", "S2", "S3", "S4"))]
    kg = row.kg + 50 + rng.below(3000) if n % 2 else row.kg
    carrier = best(carriers, kg, row.due_days)
    first = f"Shipment {row.id} was weighed again: it has {kg} kg, enter that. Then book" if n % 2 else f"Book {row.id}"
    prompt = (
        f"{first} {'it ' if n % 2 else ''}with the carrier that is cheapest in euros and delivers within "
        f"{row.due_days} days. Leave out carriers that do not answer, and currencies that we cannot convert."
    )
    solution: list[tuple[str, dict[str, Any]]] = [("reweigh", {"shipment": row.id, "kg": kg})] if n % 2 else []
    solution += [
        ("rates", {"shipment": row.id, "max_days": row.due_days}),
        ("quote", {"shipment": row.id, "carrier": carrier}),
        ("accept", {"quote": "Q1"}),
    ]
    truth = {"shipment": row.id, "carrier": carrier, "kg": kg, "cents": price(carriers[carrier], kg)}
    begin = world(shipments=shipments, carriers=carriers)
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=begin, truth=truth, solution=tuple(solution))


def others_agree(view: qn.EpisodeView[Freight]) -> bool:
    """Returns True if every shipment but the booked one is as it was, and that one has its weight."""
    wanted, found = view.task.truth, dict(view.state.shipments)
    row, before = found.pop(wanted["shipment"]), dict(view.start.shipments)
    before.pop(wanted["shipment"])
    return found == before and row.kg == wanted["kg"] and row.status == "booked"


def accepted(view: qn.EpisodeView[Freight]) -> list[Quote]:
    return [one for one in view.state.quotes.values() if one.status == "accepted"]


@qn.reward
def booked_cheapest(view: qn.EpisodeView[Freight]) -> qn.Score:
    wanted = view.task.truth
    found = [[one.shipment, one.carrier, one.cents] for one in accepted(view)]
    is_right = found == [[wanted["shipment"], wanted["carrier"], wanted["cents"]]]
    return qn.Score(float(is_right and others_agree(view)), f"accepted {found}")


# Variants of the sound world.


class SameLane(Freight):
    def _forget(self, shipment: str) -> None:
        row = self.shipments[shipment]
        self.known.pop(f"{row.origin}-{row.destination}", None)


class AtPar(Freight):
    def _fx(self, currency: str) -> int:
        return FX.get(currency, 1000)


class Unanswered(Freight):
    async def _ask(self, carrier: Carrier, kg: int) -> dict[str, Any]:
        rate = await Freight._ask(self, carrier, kg)
        empty = {"carrier": carrier.name, "cents": 0, "currency": carrier.currency, "days": carrier.days}
        return empty | {name: value for name, value in rate.items() if name != "error"}


class OneLine(Freight):
    line: ClassVar[dict[str, int]] = {}

    async def _ask(self, carrier: Carrier, kg: int) -> dict[str, Any]:
        self.line["kg"] = kg
        if not carrier.is_online:
            return {"carrier": carrier.name, "error": "no answer"}
        await asyncio.sleep(0.001)
        cents = carrier.base + carrier.per_kg * self.line["kg"]
        return {"carrier": carrier.name, "cents": cents, "currency": carrier.currency, "days": carrier.days}


class Gateway(Freight):
    busy: ClassVar[list[str]] = []

    async def _ask(self, carrier: Carrier, kg: int) -> dict[str, Any]:
        if len(self.busy) >= 2:
            return {"carrier": carrier.name, "error": "no answer"}
        self.busy.append(carrier.name)
        await asyncio.sleep(0.001)
        self.busy.remove(carrier.name)
        return await Freight._ask(self, carrier, kg)


class AnyDay(Freight):
    def _in_time(self, carrier: str, max_days: int | None) -> bool:
        return max_days is None or max_days > 0


class FullRow(Freight):
    def _shown(self, row: Shipment) -> dict[str, Any]:
        return msgspec.to_builtins(row)  # type: ignore[no-any-return]


@qn.reward
def near_cheapest(view: qn.EpisodeView[Freight]) -> float:
    paid = [one.cents for one in accepted(view) if one.shipment == view.task.truth["shipment"]]
    is_sound = len(paid) == 1 == len(accepted(view)) and others_agree(view)
    return min(1.0, round(view.task.truth["cents"] / paid[0], 1)) if is_sound else 0.0


@qn.reward
def is_booked(view: qn.EpisodeView[Freight]) -> float:
    wrong = [one for one in accepted(view) if one.carrier != view.task.truth["carrier"]]
    return float(others_agree(view) and not wrong)


WORLDS: dict[str, type[Freight]] = {
    "same_lane": SameLane,
    "at_par": AtPar,
    "unanswered": Unanswered,
    "one_line": OneLine,
    "gateway": Gateway,
    "any_day": AnyDay,
    "full_row": FullRow,
}
VERIFIERS = {"near": near_cheapest, "is_booked": is_booked}


def make(bug: str = "") -> qn.Environment[Freight]:
    """Returns the sound environment, or a variant of it."""
    world = WORLDS.get(bug, Freight)
    return qn.Environment(
        "freight",
        tasks=lambda split: qn.Tasks(12, lambda n: task(split, n, world)),
        harness=qn.ToolLoop(system="You book freight. Prices are in hundredths of their currency."),
        verifier=qn.Verifier(VERIFIERS.get(bug, booked_cheapest)),
        state=world,
        config=qn.Config(max_turns=20),
    )


env = make()
env_same_lane = make("same_lane")
env_at_par = make("at_par")
env_unanswered = make("unanswered")
env_one_line = make("one_line")
env_gateway = make("gateway")
env_any_day = make("any_day")
env_full_row = make("full_row")
env_near = make("near")
env_is_booked = make("is_booked")
