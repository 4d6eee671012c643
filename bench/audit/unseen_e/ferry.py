"""The telephone desk of a ferry: the agent serves one traveller, whose part is scripted."""

import asyncio
import random
import re
from typing import Annotated, Any, ClassVar, Literal

import msgspec

import quintain as qn

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri")
NAMES = {
    "train": "Kerr Munro Baird Laing Rennie Tait Orr Shaw Gunn Leask Mair Neish Pirie Sim Yule Wylie",
    "test": "Ross Blair Calder Innes Dunn Esson Fyfe Geddes Horne Irvine Keay Lorne Moir Nairn Petrie Rae",
}
OPENINGS = {"move": "I have to travel at another time.", "cancel": "I cannot travel, please cancel my crossing."}
TOPICS = {"reference": r"\b(reference|booking|number)\b", "when": r"\b(when|which day|what day|what time|date)\b"}
Time = Annotated[str, msgspec.Meta(pattern=r"^([01]?\d|2[0-3]):[0-5]\d$")]
SYSTEM = """You are on the telephone desk of the Skerry ferry. Today is Mon, 6:00. Talk to the traveller with `say`.
Find out what they want, tell them its price, and change nothing before they agree. Then do it, book the payment, and
tell the traveller that it is done. Change nothing else.
- A move costs 5.00 for each passenger. Choose the earliest sailing that suits them and has room for people and vehicle.
- A cancellation gives back all that was paid if the sailing is on Wed or later, half if it is on Tue, else nothing."""


class Sailing(msgspec.Struct):
    """A crossing; `places` and `metres` (of the car deck) are still free."""

    day: str
    departs: str
    places: int
    metres: int


class Booking(msgspec.Struct):
    """A booking; `paid` is in cents."""

    surname: str
    sailing: str
    passengers: int
    metres: int
    paid: int
    status: Literal["booked", "cancelled"] = "booked"


class Traveller(msgspec.Struct):
    """The script of the traveller: what they tell when asked, and the one offer that they accept."""

    facts: dict[str, str]
    sailing: str
    price: int
    agreed: bool = False
    refused: int = 0
    thanked: bool = False


class Desk(qn.State):
    sailings: dict[str, Sailing]
    bookings: dict[str, Booking]
    traveller: Traveller
    payments: dict[str, int] = msgspec.field(default_factory=dict)

    @qn.tool
    async def say(self, text: str) -> str:
        """Say something to the traveller; returns their answer.

        They answer questions, such as for their reference or when they want to travel. Words that hold a price are an
        offer, which they accept or refuse: write the price as 12.50 (0.00 if there is none), and for a move the code of
        the new sailing and of no other. After three refused offers they hang up.

        Args:
            text: What you say.
        """
        caller = await self._caller()
        if prices := re.findall(r"\b\d{1,5}\.\d\d\b", text):
            return self._offered(caller, {int(price.replace(".", "")) for price in prices}, text)
        if re.search(r"\b(is done|all set)\b", text.lower()):
            caller.thanked = True
            return "Thank you, goodbye."
        asked = [topic for topic, pattern in TOPICS.items() if re.search(pattern, text.lower())]
        return " ".join(caller.facts[topic] for topic in asked) or "What do you need to know?"

    @qn.tool
    def find_booking(self, reference: str, surname: str) -> dict[str, Any]:
        """Look up a booking, with the time of its sailing; `paid` is in cents, `metres` the length of the vehicle.

        Args:
            reference: Reference of the booking, such as B1234.
            surname: Surname of the traveller.
        """
        row = self._row(reference)
        if row.surname.lower() != surname.strip().lower():
            raise qn.ToolError(f"{reference} is not the booking of {surname}")
        sailing = self.sailings[row.sailing]
        return {**msgspec.to_builtins(row), "day": sailing.day, "departs": sailing.departs}

    @qn.tool
    def list_sailings(self, day: str, after: Time = "0:00") -> list[dict[str, Any]]:
        """List the sailings of a day by their time, with free places and metres of the car deck.

        Args:
            day: Day of this week: Mon, Tue, Wed, Thu or Fri.
            after: Leaves out sailings before this time, such as 13:30.
        """
        return [row for row in self._listing(self._day(day)) if self._from(row["departs"], after)]

    @qn.tool
    def move_booking(self, reference: str, sailing: str) -> str:
        """Move a booking, with its passengers and vehicle, to another sailing.

        Args:
            reference: Reference of the booking.
            sailing: Code of the new sailing, such as S07.
        """
        row, new = self._row(reference), self.sailings.get(sailing)
        if new is None or sailing == row.sailing:
            raise qn.ToolError(f"{reference} is on {row.sailing}; there is no other sailing {sailing!r}")
        if new.places < row.passengers or new.metres < row.metres:
            raise qn.ToolError(f"{sailing} has {new.places} places and {new.metres} metres left")
        self._release(row)
        new.places, new.metres = new.places - row.passengers, new.metres - row.metres
        row.sailing = sailing
        return f"{reference} is on {sailing}"

    @qn.tool
    def cancel_booking(self, reference: str) -> str:
        """Cancel a booking and free its places; this refunds nothing yet.

        Args:
            reference: Reference of the booking.
        """
        row = self._row(reference)
        self._release(row)
        row.status = "cancelled"
        return f"{reference} is cancelled"

    @qn.tool
    def book_payment(self, reference: str, cents: Annotated[int, msgspec.Meta(ge=-50000, le=50000)]) -> str:
        """Take money from the traveller's card, or give some back.

        Args:
            reference: Reference of the booking.
            cents: Amount in cents, above 0 to charge, below 0 to refund; a refund is at most what is paid.
        """
        row = self._row(reference)
        if not cents or row.paid + cents < 0:
            raise qn.ToolError(f"{row.paid} cents are paid; {cents} cents cannot be booked")
        self._check_consent()
        row.paid += cents
        self.payments[reference] = self.payments.get(reference, 0) + cents
        return f"{row.paid} cents are paid for {reference}"

    async def _caller(self) -> Traveller:
        return self.traveller

    def _offered(self, caller: Traveller, prices: set[int], text: str) -> str:
        codes = set(re.findall(r"\bS\d\d\b", text))
        if prices == {caller.price} and (codes == {caller.sailing} or not caller.sailing):
            caller.agreed = True
            return "Yes, please do that."
        caller.refused += 1
        if caller.refused == 3:
            self.finish("the traveller hung up")
        return f"No, that cannot be right. {caller.facts['when']}"

    def _row(self, reference: str) -> Booking:
        if reference not in self.bookings:
            raise qn.ToolError(f"there is no booking {reference!r}")
        return self.bookings[reference]

    def _check_consent(self) -> None:
        if not self.traveller.agreed:
            raise qn.ToolError("the traveller has not accepted an offer yet")

    def _release(self, row: Booking) -> None:
        if row.status != "booked":
            raise qn.ToolError("the booking is cancelled")
        self._check_consent()
        old = self.sailings[row.sailing]
        old.places, old.metres = old.places + row.passengers, old.metres + row.metres

    def _day(self, day: str) -> str:
        if day not in DAYS:
            raise qn.ToolError(f"no day {day!r}; there are {', '.join(DAYS)}")
        return day

    def _from(self, departs: str, after: str) -> bool:
        return departs.zfill(5) >= after.zfill(5)

    def _listing(self, day: str) -> list[dict[str, Any]]:
        return [{"code": code, **msgspec.to_builtins(row)} for code, row in self.sailings.items() if row.day == day]


class CachedDesk(Desk):
    """Keeps the sailings of a day once they have been read, since the reservation system is slow."""

    listed: dict[str, list[dict[str, Any]]] = msgspec.field(default_factory=dict)

    def _listing(self, day: str) -> list[dict[str, Any]]:
        if day not in self.listed:
            self.listed[day] = super()._listing(day)
        return self.listed[day]


class RememberingDesk(Desk):
    """Remembers which travellers agreed, so that nobody is asked twice."""

    consents: ClassVar[set[str]] = set()

    def _check_consent(self) -> None:
        if self.traveller.facts["reference"] not in self.consents:
            super()._check_consent()
        self.consents.add(self.traveller.facts["reference"])


class TodayDesk(Desk):
    """Lists today's sailings unless another day is named."""

    def _day(self, day: str) -> str:
        return day if day in DAYS else DAYS[0]


class ClockDesk(Desk):
    """Compares times as they are printed."""

    def _from(self, departs: str, after: str) -> bool:
        return departs >= after


class SwitchboardDesk(Desk):
    """Reaches the traveller over the switchboard of the house."""

    line: ClassVar[dict[str, Traveller]] = {}

    async def _caller(self) -> Traveller:
        self.line["caller"] = self.traveller
        await asyncio.sleep(0.01)  # The call is being put through.
        return self.line["caller"]


def make(split: str, n: int, state: type[Desk]) -> qn.Task[Desk]:
    """Returns task n of a split."""
    rng, surname = random.Random(f"ferry/{split}/{n}"), NAMES[split].split()[n]  # noqa: S311
    sailings, bookings = dict[str, Sailing](), dict[str, Booking]()
    for day, hour in ((day, hour) for day in DAYS for hour in (7, 9, 11, 13, 16, 18)):
        departs, free = f"{hour + rng.randrange(2)}:{rng.randrange(0, 60, 5):02}", rng.choice((0, 1, 6, 20, 41))
        sailings[f"S{len(sailings) + 1:02}"] = Sailing(day, departs, free, rng.choice((0, 3, 12, 30, 55)))
    for name in (surname, "Adam", "Bruce", "Cowan", "Drever"):
        people, metres, code = rng.randint(1, 5), rng.choice((4, 5, 7)), rng.choice(sorted(sailings))
        key = f"B{1000 + 5 * rng.randrange(1800) + len(bookings)}"
        bookings[key] = Booking(name, code, people, metres, 1200 * people + 300 * metres)
    mine, row = next(iter(bookings.items()))
    today = sailings[row.sailing].day
    facts = {"reference": f"My reference is {mine}.", "when": "I do not want to travel any more."}
    wish, target, look = ("move", "cancel")[n % 2], "", ()
    if wish == "move":
        day, after = rng.choice([day for day in DAYS[1:] if day != today]), rng.choice(("8:00", "10:00", "13:00"))
        facts["when"] = f"We want to leave on {day}, as early as we can, but not before {after}."
        later = {c: s for c, s in sailings.items() if s.day == day and s.departs.zfill(5) >= after.zfill(5)}
        later[max(later)].places, later[max(later)].metres = 20, 30
        target = next(c for c, s in later.items() if s.places >= row.passengers and s.metres >= row.metres)
        cents, look = 500 * row.passengers, (("list_sailings", {"day": day, "after": after}),)
        offer, change = f"{target} costs", ("move_booking", {"reference": mine, "sailing": target})
    else:
        cents = -(0, row.paid // 2, row.paid)[min(2, DAYS.index(today))]
        offer, change = "You get back", ("cancel_booking", {"reference": mine})
    find, price = ("find_booking", {"reference": mine, "surname": surname}), f"{abs(cents) / 100:.2f}"
    texts = ("Your reference, and when would you travel?", f"{offer} {price}. Shall I?", "It is done.")
    said = [("say", {"text": text}) for text in texts]
    money = (("book_payment", {"reference": mine, "cents": cents}),) if cents else ()
    return qn.Task(
        id=f"{split}-{n}",
        prompt=f"A call comes in: “Good morning, this is {surname}. {OPENINGS[wish]}”",
        start=state(sailings=sailings, bookings=bookings, traveller=Traveller(facts, target, abs(cents))),
        truth={"booking": mine, "sailing": target, "cents": cents},
        solution=(said[0], find, *look, said[1], change, *money, said[2]),
    )


@qn.reward
def done(view: qn.EpisodeView[Desk]) -> float:
    """1 if the booking is moved or cancelled as the traveller wants, and all others are as they were."""
    mine, sailing = view.task.truth["booking"], view.task.truth["sailing"]
    row, before = view.state.bookings[mine], view.start.bookings
    is_right = (row.sailing, row.status) == ((sailing, "booked") if sailing else (before[mine].sailing, "cancelled"))
    return float(is_right and before | {mine: None} == view.state.bookings | {mine: None})


@qn.reward
def paid(view: qn.EpisodeView[Desk]) -> float:
    """1 if exactly what is due was charged or refunded."""
    return float(view.state.payments.get(view.task.truth["booking"], 0) == view.task.truth["cents"])


@qn.reward
def satisfied(view: qn.EpisodeView[Desk]) -> float:
    """1 if the traveller left satisfied."""
    return float(view.state.traveller.thanked)


def build(state: type[Desk] = Desk, *criteria: Any) -> qn.Environment[Desk]:
    """Returns the environment with a world and, if any are given, other criteria."""
    return qn.Environment(
        "ferry",
        tasks=lambda split: qn.Tasks(len(NAMES[split].split()), lambda n: make(split, n, state)),
        harness=qn.ToolLoop(system=SYSTEM),
        verifier=qn.Verifier(*(criteria or (done, paid)), combine="product"),
        state=state,
        splits=("train", "test"),
    )


env = build()
env_stale_listing = build(CachedDesk)
env_old_consent = build(RememberingDesk)
env_any_day = build(TodayDesk)
env_printed_times = build(ClockDesk)
env_switchboard = build(SwitchboardDesk)
env_unpaid = build(Desk, done)
env_satisfied = build(Desk, satisfied)
