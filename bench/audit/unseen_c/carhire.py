"""A car hire's telephone desk: the caller, a script, says more only if asked. Each `env_<bug>` has one bug."""

import dataclasses
import random
import re
from typing import Any, Literal

import quintain as qn

SURNAMES = ("Adeyemi", "Brandt", "Chen", "Dvorak", "Estrada", "Fontaine", "Gallo", "Holm", "Iqbal", "Jansen")
MODELS = ("Polo", "Yaris", "Clio", "Golf", "Octavia", "Focus", "Touran", "Sharan", "Zafira")
Station, Cover = Literal["Airport", "Harbour", "Central"], Literal["basic", "full"]
STATIONS = ("Airport", "Harbour", "Central")
FULL_COVER = 15
QUESTIONS = {
    "name": "What is your surname?", "born": "Which year were you born?",
    "reference": "What is the reference of your booking?", "station": "At which station do you want to pick it up?",
    "date": "On which date in June does it start?", "length": "How many days is it for?",
    "seats": "How many seats do you need?", "cover": "Do you want basic or full cover?",
}  # fmt: skip
WORDS = {"name": "surname name", "length": "long days", "date": "date when", "cover": "cover insurance"}

RULES = f"""You answer the telephone of a car hire. It is the end of May; all hires are in June.
1. Ask the caller for what you need to know and have not heard; the computer refuses guesses. Do not ask twice.
   It is enough to ask "{QUESTIONS["name"]}" or "{QUESTIONS["length"]}"; one question may ask for several things.
2. Identify the caller by surname and year of birth before you change anything.
3. Book the cheapest free car of the station with enough seats. Full cover is {FULL_COVER} EUR more a day.
4. Before you cancel, look up the fee, tell the caller the fee in EUR, and ask for consent. Without it, cancel nothing.
5. Then log the call. Your last message says what the caller has to pay for this call: "Total: 120 EUR"."""


@dataclasses.dataclass
class Car:
    model: str
    station: str
    seats: int
    price: int  # EUR a day


@dataclasses.dataclass
class Booking:
    customer: str
    car: str
    first: int  # day in June
    last: int
    cover: str
    state: str = "open"


class Desk(qn.State):
    customers: dict[str, str]
    cars: qn.Table[Car]
    bookings: qn.Table[Booking]
    facts: dict[str, str]
    told: list[str]
    consents: bool = True
    patience: int = 12
    wasted: int = 0
    caller: str = ""
    logged: str = ""

    @qn.tool
    def say(self, text: str) -> str:
        """Say something to the caller; returns what the caller answers.

        Args:
            text: Your words, such as a question.
        """
        if self.patience == 0:
            raise qn.ToolError("the caller has hung up")
        self.patience -= 1
        words, heard = set(re.findall(r"[a-z]+|\d+", text.lower())), self.heard()
        if words & {"fee", "consent", "agree"} and "reference" in heard and "consent" not in heard:
            if str(self._fee(self.facts["reference"].split()[-1].rstrip("."))) not in words:
                return "What would the fee be?"
            heard.append("consent")
            return "All right, I agree." if self.consents else "So much? No, then leave the booking as it is."
        asked = [fact for fact in self.facts if words & set(WORDS.get(fact, fact).split())]
        fresh = [fact for fact in asked if fact not in heard]
        heard.extend(fresh)
        if not fresh:
            self.wasted += 1
            return "I have told you that." if asked else "Sorry, I don't follow."
        return " ".join(self.facts[fact] for fact in fresh)

    @qn.tool
    def find_customer(self, surname: str, born: int) -> str:
        """Identify the caller; returns the number of the customer.

        Args:
            surname: Surname, as the caller said it.
            born: Year of birth.
        """
        self._need("name", "born")
        if f"{surname} {born}" not in self.customers:
            raise qn.ToolError(f"no customer {surname}, born {born}")
        self.caller = self.customers[f"{surname} {born}"]
        return self.caller

    @qn.tool
    def list_cars(self, station: Station, first: int, days: int) -> list[dict[str, Any]]:
        """List the cars of a station that are free; prices are in EUR a day, without full cover.

        Args:
            station: Name of the station.
            first: First day in June.
            days: For how many days.
        """
        self._need("station", "date", "length")
        if not 1 <= first <= first + days - 1 <= 30:
            raise qn.ToolError("these are no days in June")
        free = [(key, row) for key, row in self.cars.items() if row.station == station]
        return [{"car": key, **vars(row)} for key, row in free if self._free(key, first, first + days - 1)]

    @qn.tool
    def book(self, car: str, first: int, days: int, cover: Cover) -> dict[str, Any]:
        """Book a car for the identified caller; returns reference and total in EUR.

        Args:
            car: Number of the car.
            first: First day in June.
            days: For how many days.
            cover: The insurance.
        """
        self._need("station", "date", "length", "seats", "cover")
        if not self.caller or car not in self.cars or not 1 <= first <= first + days - 1 <= 30:
            raise qn.ToolError("this needs an identified caller, a car that exists, and days in June")
        if not self._free(car, first, first + days - 1):
            raise qn.ToolError(f"{car} is not free")
        key, row = self.new_id("N"), Booking(self.caller, car, first, first + days - 1, cover)
        self.bookings[key] = row
        return {"reference": key, "total": days * self._rate(row)}

    @qn.tool
    def show_fee(self, reference: str) -> int:
        """Show the fee for cancelling a booking of the identified caller, in EUR.

        Args:
            reference: Reference of the booking.
        """
        self._need("reference")
        self._own(reference)
        return self._fee(reference)

    @qn.tool
    def cancel(self, reference: str) -> str:
        """Cancel a booking of the identified caller, who has agreed to pay the fee.

        Args:
            reference: Reference of the booking.
        """
        self._need("reference", "consent")
        row = self._own(reference)
        if not self.consents:
            raise qn.ToolError("the caller does not agree to the fee")
        self.bookings[reference] = dataclasses.replace(row, state="cancelled")
        return f"{reference} is cancelled"

    @qn.tool
    def log_call(self, outcome: Literal["booked", "cancelled", "kept"]) -> str:
        """Log the call under its outcome, at its end.

        Args:
            outcome: What came of it.
        """
        self.logged = outcome
        return "logged"

    def heard(self) -> list[str]:
        """Returns the names of the facts that the caller has said."""
        return self.told

    def _need(self, *facts: str) -> None:
        if missing := [fact for fact in facts if fact not in self.heard()]:
            raise qn.ToolError(f"ask the caller first: {', '.join(missing)}")

    def _own(self, reference: str) -> Booking:
        row = self.bookings.get(reference)
        if row is None or row.customer != self.caller or row.state != "open":
            raise qn.ToolError(f"the identified caller has no open booking {reference!r}")
        return row

    def _fee(self, reference: str) -> int:
        row = self.bookings[reference]
        return self._rate(row) if row.first <= 10 else 10

    def _rate(self, row: Booking) -> int:
        return self.cars[row.car].price + FULL_COVER * (row.cover == "full")

    def _free(self, car: str, first: int, last: int) -> bool:
        rows = [row for row in self.bookings.values() if row.car == car and row.state == "open"]
        return all(last < row.first or row.last < first for row in rows)


def make(split: str, n: int, world: type[Desk] = Desk, bug: str = "") -> qn.Task[Desk]:  # noqa: PLR0915
    """Returns task n of a split."""
    rng = random.Random(f"carhire/{n + 24 * (split == 'test')}" if bug == "offset" else f"carhire/{split}/{n}")  # noqa: S311
    family = ("book", "cancel")[n % 2]
    people = [f"{surname} {rng.randrange(1945, 2004)}" for surname in rng.sample(SURNAMES, 8)]
    customers = {who: f"C{at}" for at, who in enumerate(people, 1)}
    prices, seats, models = rng.sample(range(28, 95), 9), [4, 5, 7] * 3, rng.sample(MODELS, 9)
    cars = {f"K{at}": Car(models[at], STATIONS[at // 3], seats[at], prices[at]) for at in range(9)}
    bookings: dict[str, Booking] = {}
    for at, car in enumerate(rng.sample(sorted(cars), 7), 1):
        first, cover = rng.randrange(2, 22), rng.choice(("basic", "full"))
        last = rng.randrange(2, 25) if bug == "odd" else first + rng.randrange(1, 5)
        bookings[f"B{at}"] = Booking(rng.choice(list(customers.values())), car, first, last, cover)
    row = dataclasses.replace(bookings[key := rng.choice(sorted(bookings))])
    caller = row.customer if family != "book" else rng.choice(list(customers.values()))
    surname, born = people[int(caller[1:]) - 1].split()
    length, consents = rng.randrange(2, 6), rng.random() < 0.6
    facts = {"name": f"My surname is {surname}.", "born": f"I was born in {born}."}
    then: list[tuple[str, dict[str, Any]]] = []
    rows = {"cars": qn.Table(Car, cars), "bookings": qn.Table(Booking, bookings)}
    desk = world(customers=customers, facts=facts, told=[], consents=consents, **rows)
    if family == "book":
        options = []  # days on which one of the cars is taken, and another one with enough seats is free
        for other in bookings.values():
            station, first, final = cars[other.car].station, other.first, other.first + length - 1
            for wanted in (4, 5):
                fits = [(car.price, at) for at, car in cars.items() if car.station == station and car.seats >= wanted]
                free = [one for one in fits if desk._free(one[1], first, final)]
                options += [(station, first, final, wanted, fits if bug == "blind" else free)] if free else []
        (station, first, final, wanted, fits), cover = rng.choice(options), rng.choice(("basic", "full"))
        row = Booking(caller, min(fits)[1], first, final, cover)
        key, total, outcome, opening = "N1", length * desk._rate(row), "booked", "Hello, I would like to hire a car."
        facts |= {"station": f"I pick it up at the {station}.", "date": f"It starts on June {first}."}
        facts |= {"length": f"For {length} days.", "seats": f"We need {wanted} seats.", "cover": f"With {cover} cover."}
        then.append(("list_cars", {"station": station, "first": first, "days": length}))
        then.append(("book", {"car": row.car, "first": first, "days": length, "cover": cover}))
    else:
        facts["reference"] = f"The reference is {key}."
        outcome, opening = "cancelled" if consents else "kept", "Hello, I want to cancel my booking."
        total = desk._rate(row) if row.first <= 10 else 10
        then += [("show_fee", {"reference": key}), ("say", {"text": f"The fee is {total} EUR. Do you agree?"})]
        if consents:
            row.state = "cancelled"
            then.append(("cancel", {"reference": key}))
        total *= consents
    told = rng.sample(sorted(facts), rng.randrange(0, len(facts) - 1))
    calls = [("say", {"text": QUESTIONS[fact]}) for fact in facts if fact not in told]
    calls += [("find_customer", {"surname": surname, "born": int(born)}), *then, ("log_call", {"outcome": outcome})]

    def start() -> Desk:
        one = desk.copy()
        one.heard()[:] = told
        return one

    heard = [*facts, *["consent"] * (family == "cancel")]
    truth = {"key": key, "row": vars(row), "outcome": outcome, "total": total, "heard": heard}
    about: dict[str, Any] = {"truth": truth, "solution": tuple(calls), "tags": {"family": family}}
    prompt = " ".join([opening, *(facts[fact] for fact in told)])
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=start, answer=f"Total: {total} EUR", **about)


# fmt: off
def _judge(answer: str, total: int) -> str:
    """Stands in for the model that reads the agent's last message: quotes it, then says its verdict."""
    amounts = re.findall(r"Total: (\d+) EUR", answer)
    return f'The agent wrote: "{answer}"\nVerdict: {"pass" if amounts == [str(total)] else "fail"}'

@qn.reward
def served(view: qn.EpisodeView[Desk]) -> float:
    """Whether the caller was asked, the bookings are as they should be, and the call is logged rightly."""
    truth, rows = view.task.truth, {key: vars(row) for key, row in view.start.bookings.items()}
    found = {key: vars(row) for key, row in view.state.bookings.items()}
    asked = set(truth["heard"]) <= set(view.state.heard())
    return float(asked and found == rows | {truth["key"]: truth["row"]} and view.state.logged == truth["outcome"])

@qn.reward
def billed(view: qn.EpisodeView[Desk]) -> float:
    """Whether the judge accepts the last message."""
    return float(re.findall(r"^Verdict: (\w+)$", _judge(view.answer, view.task.truth["total"]), re.MULTILINE)[-1] == "pass")  # noqa: E501

@qn.reward
def brief(view: qn.EpisodeView[Desk]) -> float:
    """1, less 0.05 for every useless question to the caller."""
    return 1 - 0.05 * view.state.wasted

def build(*criteria: Any, world: type[Desk] = Desk, bug: str = "") -> qn.Environment[Desk]:
    """Returns the desk with these criteria, this kind of world, and a bug of `make`."""
    return qn.Environment(
        "carhire",
        tasks=lambda split: qn.Tasks({"train": 36}.get(split, 18), lambda n: make(split, n, world, bug)),
        harness=qn.ToolLoop(RULES),
        verifier=qn.Verifier(*(criteria or (served, billed, brief)), combine="product"),
        state=world,
        splits=("train", "test"),
    )

_LINE: list[str] = []

class _OneLineDesk(Desk):  # what the caller has said is kept in the module, and cleared when a call begins
    def heard(self) -> list[str]:
        return _LINE

@qn.reward
def logged_only(view: qn.EpisodeView[Desk]) -> float:
    """Believes the log that the agent itself wrote."""
    return float(view.state.logged == view.task.truth["outcome"])

@qn.reward
def billed_first(view: qn.EpisodeView[Desk]) -> float:
    """Takes the first verdict in the judge's text, which quotes the agent."""
    found = re.search(r"verdict: (\w+)", _judge(view.answer, view.task.truth["total"]), re.IGNORECASE)
    return float(found is not None and found[1].lower() == "pass")

@qn.reward
def brief_rounded(view: qn.EpisodeView[Desk]) -> float:
    """Rounds to whole numbers, so that useless questions cost nothing."""
    return float(round(1 - 0.05 * view.state.wasted))

env = build()
env_one_line = build(world=_OneLineDesk)
env_log_believed = build(logged_only, billed, brief)
env_first_verdict = build(served, billed_first, brief)
env_brief_rounded = build(served, billed, brief_rounded)
env_offset_split = build(bug="offset")
env_odd_dates = build(bug="odd")
env_sold_out = build(bug="blind")
