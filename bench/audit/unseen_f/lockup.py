"""The telephone desk of a self-storage house: a caller, played by `caller`, wants something done about a unit."""

import asyncio
import contextlib
import hashlib
from datetime import date, timedelta
from typing import Any, ClassVar, Literal

import quintain as qn
from quintain.harness import STOP, Request
from quintain.harnesses import Dialogue
from quintain.models import Fixed
from quintain.state import Rng
from quintain.task import Call
from quintain.trace import Message, Reply
from quintain.verifier import Criterion

NOTICE = timedelta(days=14)
COUNTS = {"train": 16, "test": 12}
NAMES = ("Ida Holm", "Per Lind", "Maud Okoro", "Jon Sala", "Rita Bose", "Egon Falk", "Tess Quirk", "Omar Vale")
WORDS = ("heron", "marmot", "lichen", "copper", "saddle", "tundra", "walnut", "pepper")
SYSTEM = """You answer the telephone of Northgate Storage.
- Ask for telephone number and password, and identify the caller by them, before you do anything.
- A caller who owes money pays all of it before a move or a notice. A rental ends 14 days from today at the earliest.
- Who wants another unit gets the cheapest free one that fits the wishes. Ask for the floor; 0 is the ground floor.
- Ask for the last day where one is needed. Change nothing else."""


Rows = dict[str, dict[str, Any]]


class Lockup(qn.State):
    """The books of the house: customers owe cents; units have square metres, floor and rent; rentals begin and end."""

    day: str
    customers: Rows
    units: Rows
    rentals: Rows
    caller: str = ""
    quotes: dict[str, str] = {}

    @qn.tool
    def identify(self, phone: str, password: str) -> str:
        """Identify the caller, which all tools about customers need.

        Args:
            phone: The caller's number, as "0151 2345678".
            password: The caller's password.
        """
        for key, one in self.customers.items():
            if (one["phone"], one["password"]) == (phone.strip(), password.strip()):
                self.caller = key
                return f"the caller is {one['name']}"
        raise qn.ToolError("no customer has this number and password")

    @qn.tool
    def account(self) -> dict[str, Any]:
        """Show today's date, what the caller owes, in cents, and what the caller rents."""
        return {"today": self.day, **self._account(self._caller())}

    @qn.tool
    def free_units(self, size: Literal[4, 8, 12], floor: Literal[0, 1, 2]) -> list[dict[str, Any]]:
        """List the three cheapest free units of a size on a floor, cheapest first; rents are in cents per month.

        Args:
            size: Square metres.
            floor: 0 is the ground floor.
        """
        fits = [key for key, one in self.free().items() if (one["size"], one["floor"]) == (size, floor)]
        return self._cheapest([{"unit": key, "rent": self.units[key]["rent"]} for key in fits])

    @qn.tool
    async def quote_move(self, rental: str, unit: str) -> dict[str, int]:
        """Quote the move of a rental to a free unit, which `confirm_move` then makes; returns both rents in cents.

        Args:
            rental: Id of the rental.
            unit: Number of the new unit.
        """
        row = self._rental(rental)
        if unit not in self.free():
            raise qn.ToolError(f"there is no free unit {unit!r}")
        self._quotes()[rental] = unit
        await asyncio.sleep(0)  # The price list is a service of its own.
        return {"old_rent": self.units[row["unit"]]["rent"], "new_rent": self.units[unit]["rent"]}

    @qn.tool
    def confirm_move(self, rental: str) -> str:
        """Make the move that was quoted last for a rental of a caller who owes nothing.

        Args:
            rental: Id of the rental.
        """
        row = self._rental(rental, is_paid=True)
        if self._quotes().get(rental) not in self.free():
            raise qn.ToolError(f"no move of {rental} was quoted, or its unit is no longer free")
        row["unit"] = self._quotes().pop(rental)
        return f"the move of {rental} is booked"

    @qn.tool
    def give_notice(self, rental: str, last_day: str) -> str:
        """Note that a rental of a caller who owes nothing ends.

        Args:
            rental: Id of the rental.
            last_day: Its last day, as YYYY-MM-DD; 14 days from today or later.
        """
        self._rental(rental, is_paid=True)["ends"] = self._last_day(last_day)
        return f"the notice for {rental} is noted"

    @qn.tool
    def take_payment(self, cents: int) -> str:
        """Take money from the account that the caller has given us.

        Args:
            cents: How much; at most what the caller owes.
        """
        row = self.customers[self._caller()]
        if not 0 < cents <= row["balance"]:
            raise qn.ToolError(f"the caller owes {row['balance']} cents")
        row["balance"] -= cents
        return f"took {cents} cents"

    def free(self) -> Rows:
        """Returns the units that nobody rents."""
        taken = {one["unit"] for one in self.rentals.values()}
        return {key: one for key, one in self.units.items() if key not in taken}

    def _caller(self) -> str:
        if not self.caller:
            raise qn.ToolError("the caller has not been identified")
        return self.caller

    def _rental(self, rental: str, *, is_paid: bool = False) -> dict[str, Any]:
        who = self._caller()
        if rental not in self.rentals or self.rentals[rental]["customer"] != who:
            raise qn.ToolError(f"the caller has no rental {rental!r}")
        if is_paid and (owed := self.customers[who]["balance"]):
            raise qn.ToolError(f"the caller owes {owed} cents")
        return self.rentals[rental]

    def _account(self, customer: str) -> dict[str, Any]:
        mine = {key: dict(one) for key, one in self.rentals.items() if one["customer"] == customer}
        return {"balance": self.customers[customer]["balance"], "rentals": mine}

    def _cheapest(self, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(found, key=lambda one: one["rent"])[:3]

    def _quotes(self) -> dict[str, str]:
        return self.quotes

    def _last_day(self, text: str) -> str:
        earliest = (date.fromisoformat(self.day) + NOTICE).isoformat()
        with contextlib.suppress(ValueError):
            if text >= earliest and text == date.fromisoformat(text).isoformat():
                return text
        raise qn.ToolError(f"the last day has to be a date such as {earliest}, the earliest")


class CachedAccount(Lockup):
    """Looks an account up once per call."""

    looked_up: Rows = {}

    def _account(self, customer: str) -> dict[str, Any]:
        if customer not in self.looked_up:
            self.looked_up[customer] = Lockup._account(self, customer)
        return self.looked_up[customer]


class SharedQuotes(Lockup):
    """Keeps the open quotes in one table of the desk."""

    board: ClassVar[dict[str, str]] = {}

    def _quotes(self) -> dict[str, str]:
        return self.board


class KindDates(Lockup):
    """Takes the earliest day if the given one will not do."""

    def _last_day(self, text: str) -> str:
        try:
            return Lockup._last_day(self, text)
        except qn.ToolError:
            return (date.fromisoformat(self.day) + NOTICE).isoformat()


class ShortList(Lockup):
    """Lists three units."""

    def _cheapest(self, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return sorted(found[:3], key=lambda one: one["rent"])


def world(rng: Rng, kind: type[Lockup], *, is_past: bool) -> Lockup:
    """Returns a house with four customers; each rents one small unit and one of any size."""
    today = date(2026, 2, 2) + timedelta(days=rng.below(280))
    customers: Rows = {}
    for n, name in enumerate(rng.sample(NAMES, 4), 1):
        phone, word = f"0151 {2_000_000 + rng.below(7_000_000)}", f"{rng.choice(WORDS)}-{10 + rng.below(90)}"
        balance = rng.choice((0, 2000, 50 * rng.below(500)))
        customers[f"C{n}"] = {"name": name, "phone": phone, "password": word, "balance": balance}
    kinds = [{"size": size, "floor": floor} for size in (4, 8, 12) for floor in (0, 1, 2) for _ in range(7)]
    rng.shuffle(kinds)
    extra = rng.sample(range(100), len(kinds))  # No two units of a size have one rent.
    units = {f"U{n + 101}": {**one, "rent": 3000 + 700 * one["size"] + 25 * extra[n]} for n, one in enumerate(kinds)}
    small = rng.sample([key for key, one in units.items() if one["size"] == 4], 4)
    other = rng.sample([key for key in units if key not in small], 4)
    rows: list[dict[str, Any]] = []
    for who, unit in zip([*customers] * 2, small + other, strict=True):
        since = (today - timedelta(days=20 + rng.below(980))).isoformat()
        any_day = f"{today.year}-{1 + rng.below(12):02}-{1 + rng.below(31):02}"
        rows.append({"customer": who, "unit": unit, "since": since if is_past else any_day, "ends": ""})
    rentals = {f"R{n}": row for n, row in enumerate(rng.sample(rows, len(rows)), 1)}
    return kind(day=today.isoformat(), customers=customers, units=units, rentals=rentals)


def task(split: str, n: int, kind: type[Lockup], *, is_past: bool, briefed: bool) -> qn.Task[Lockup]:
    """Returns one call to the desk."""
    rng = Rng(key=hashlib.blake2b(f"lockup/{split}/{n}".encode(), digest_size=16).digest())
    start = world(rng, kind, is_past=is_past)
    family = ("more_room", "leave", "leave_later", "other_floor")[n % 4]
    who = rng.choice(list(start.customers))
    me = start.customers[who]
    me["balance"] = 50 * (40 + rng.below(560)) if family in ("leave", "other_floor") else 0
    wishes: list[tuple[str, str, str, Any]] = []
    facts = {"number|phone": f"My number is {me['phone']}.", "password": f"My password is {me['password']}."}
    calls: list[Call] = [("identify", {"phone": me["phone"], "password": me["password"]}), ("account", {})]
    if me["balance"]:
        facts["owe|pay|balance"] = "Yes, please take all that I owe from my account."
        calls.append(("take_payment", {"cents": me["balance"]}))
        wishes.append(("customers", who, "balance", 0))
    mine = [key for key, one in start.rentals.items() if one["customer"] == who]
    if family in ("more_room", "other_floor"):
        rental = next(key for key in mine if start.units[start.rentals[key]["unit"]]["size"] == 4)
        now = start.units[start.rentals[rental]["unit"]]
        size, floor = rng.choice(((8, 0), (12, 0))) if family == "more_room" else (4, (now["floor"] + 1) % 3)
        request = f"I would like to move from unit {start.rentals[rental]['unit']} to one of {size} square metres."
        facts["floor|upstairs|ground"] = f"It has to be on floor {floor}."
        fits = {key: one["rent"] for key, one in start.free().items() if (one["size"], one["floor"]) == (size, floor)}
        best = min(fits, key=lambda key: fits[key])
        calls += [("free_units", {"size": size, "floor": floor}), ("quote_move", {"rental": rental, "unit": best})]
        calls.append(("confirm_move", {"rental": rental}))
        wishes.append(("rentals", rental, "unit", best))
    else:
        rental = rng.choice(mine)
        ahead = NOTICE if family == "leave" else timedelta(days=18 + rng.below(70))
        last = (date.fromisoformat(start.day) + ahead).isoformat()
        request = f"I want to give up unit {start.rentals[rental]['unit']}."
        facts["last day|when|date"] = "As early as you can." if family == "leave" else f"It should end on {last}."
        calls.append(("give_notice", {"rental": rental, "last_day": last}))
        wishes.append(("rentals", rental, "ends", last))
    lines = [f"You are {me['name']} and call Northgate Storage. Answer only what you are asked.", f"opening: {request}"]
    lines += [f"{words}: {said}" for words, said in facts.items()]
    script = "\n".join([*lines, f"When all is done, say {STOP}"])
    return qn.Task(
        id=f"{split}-{n}",
        prompt=script if briefed else "",
        start=start,
        truth=wishes,
        solution=tuple(calls),
        roles={"user": script},
        tags={"family": family},
    )


async def speak(request: Request) -> Reply:
    """Plays the caller by the script of the task: the opening, then the lines that the agent's words ask for."""
    lines = dict(line.split(": ", 1) for line in request.messages[0].text.splitlines() if ": " in line)
    if all(message.role != "assistant" for message in request.messages):
        return Reply(Message("assistant", lines["opening"]))
    heard = request.messages[-1].text.lower()
    said = [text for words, text in lines.items() if any(word in heard for word in words.split("|"))]
    if "done" in heard:
        said = [f"Thank you, goodbye. {STOP}"]
    return Reply(Message("assistant", " ".join(said) or "I do not know. Please go on."))


caller = Fixed(speak, "caller")


def fulfilled(*, by_value: bool) -> Criterion[Lockup]:
    """Returns the criterion of the caller's wishes: the share of them that is met."""

    @qn.reward
    def wishes(view: qn.EpisodeView[Lockup]) -> qn.Score:
        met = 0
        for table, key, field, wanted in view.task.truth:
            before, after = (getattr(one, table)[key][field] for one in (view.start, view.state))
            met += after == wanted if by_value else after != before
        return qn.Score(met / len(view.task.truth), f"{met} met")

    return wishes


@qn.reward
def untouched(view: qn.EpisodeView[Lockup]) -> float:
    """1 if nothing changed in the books that the caller did not ask for."""
    start, rest = view.start, view.state.copy()
    for table, key, field, _ in view.task.truth:
        getattr(rest, table)[key][field] = getattr(start, table)[key][field]
    return float((rest.customers, rest.units, rest.rentals) == (start.customers, start.units, start.rentals))


def build(
    kind: type[Lockup] = Lockup, *, by_value: bool = True, is_past: bool = True, briefed: bool = False
) -> qn.Environment[Lockup]:
    """Returns the environment with a kind of books, a rule for wishes, dates, and prompts."""
    return qn.Environment(
        "lockup",
        tasks=lambda split: [task(split, n, kind, is_past=is_past, briefed=briefed) for n in range(COUNTS[split])],
        harness=Dialogue(system=SYSTEM, opening="Northgate Storage, good morning."),
        verifier=qn.Verifier(fulfilled(by_value=by_value), untouched, combine="product"),
        state=kind,
        splits=("train", "test"),
    )


env = build()
env_cached_account = build(CachedAccount)
env_shared_quotes = build(SharedQuotes)
env_kind_dates = build(KindDates)
env_short_list = build(ShortList)
env_any_change = build(by_value=False)
env_briefed = build(briefed=True)
env_any_date = build(is_past=False)
