"""Distribution desk of a seed bank: test lots for germination, send seed in time, decline what cannot be."""

import random
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal

import msgspec

import quintain as qn

HOUR, DAY, VALID = 3600, 86_400, 730  # A germination result counts for VALID days.
TEST_GRAMS, TEST_EUROS = 2, 12
TRANSIT, PRICE = {"post": 5, "express": 1}, {"post": 9, "express": 34}
VAN = 4  # Parcels that the van takes on a day.
LASTS = {"emmer": 7, "spelt": 8, "lentil": 9, "teff": 12, "amaranth": 14, "vetch": 15, "orache": 16, "skirret": 18}
COUNTS = {"train": 24, "test": 12}
RULES = f"""You run the distribution desk of a seed bank. Each request asks for grams of a species, with a least
germination in percent, to arrive by a date. Send all of it in one parcel, from one lot whose germination result on the
day of booking is at most {VALID} days old and not below the minimum. Lots with older results may be tested
({TEST_GRAMS} g, {TEST_EUROS} euros); the result goes into the lot's record when the test ends. Decline a request if
results of at most {VALID} days prove that every lot with enough seed is too weak. A van takes parcels on the afternoon
of working days; they arrive {TRANSIT["post"]} days later by post ({PRICE["post"]} euros), {TRANSIT["express"]} day
later by express ({PRICE["express"]} euros). Spend no more than necessary. Finish when all have arrived."""


class Lot(msgspec.Struct):
    id: str
    species: str
    grams: int
    germination: int
    tested: date
    vigour: int  # What a test would find today.
    test_until: date | None = None


class Request(msgspec.Struct):
    id: str
    species: str
    grams: int
    minimum: int
    needed_by: date
    status: Literal["open", "sent", "delivered", "declined"] = "open"


class Parcel(msgspec.Struct):
    request: str
    lot: str
    price: int
    leaves: date
    arrives: date
    fit: bool  # The lot's result was recent and good enough at the time of booking.
    status: Literal["booked", "underway", "delivered", "cancelled"] = "booked"


class SeedBank(qn.State):
    """The bank's lots, requests and parcels; `proven` names the requests that were declined for good reason."""

    lots: dict[str, Lot] = {}
    requests: dict[str, Request] = {}
    parcels: dict[str, Parcel] = {}
    van: dict[str, int] = {}
    index: dict[str, list[dict[str, Any]]] = {}
    proven: list[str] = []
    spent: int = 0

    @qn.tool
    def list_requests(self) -> list[Request]:
        """List all requests with their status: open, sent, delivered or declined."""
        return list(self.requests.values())

    @qn.tool
    def find_lots(self, species: str) -> list[dict[str, Any]]:
        """List the lots of a species: grams in store, last germination result in percent, its date, a running test.

        Args:
            species: Name of the species, as in the request.
        """
        if species not in self.index:
            rows = [msgspec.structs.asdict(lot) for lot in self.lots.values() if lot.species == species]
            if not rows:
                raise qn.ToolError(f"there is no lot of {species!r}")
            self.index[species] = [{key: row[key] for key in row if key != "vigour"} for row in rows]
        return self.index[species]

    @qn.tool
    def start_test(self, lot: str) -> str:
        """Start a germination test of a lot; returns when it ends, which depends on the species.

        Args:
            lot: Id of the lot, such as L3.
        """
        row: Lot = self._find(self.lots, lot)
        if row.test_until or row.grams < TEST_GRAMS:
            raise qn.ToolError(f"{lot} has {row.grams} g; running test: {row.test_until}")
        row.grams -= TEST_GRAMS
        row.test_until = self.clock.date.date() + timedelta(LASTS[row.species])
        self._save(row)
        self.spent += TEST_EUROS
        self.clock.after(LASTS[row.species] * DAY - HOUR, self._enter_result, lot=lot)
        return f"the test of {lot} ends on {row.test_until}"

    @qn.tool
    def book_parcel(self, request: str, lot: str, service: str) -> str:
        """Weigh out the seed for an open request and book its parcel with the next van that has room.

        Args:
            request: Id of the request, such as R1.
            lot: Id of the lot that the seed comes from.
            service: "post" or "express".
        """
        order, row = self._find(self.requests, request, "open"), self._find(self.lots, lot)
        service = self._rate(service)
        if row.species != order.species or row.grams < order.grams:
            raise qn.ToolError(f"{request}: {order.grams} g of {order.species}; {lot}: {row.grams} g of {row.species}")
        row.grams -= order.grams
        self._save(row)
        self.spent += PRICE[service]
        today, van = self.clock.date.date(), self._seats()
        leaves, fit = today, row.germination >= order.minimum and (today - row.tested).days <= VALID
        while leaves.weekday() > 4 or van.get(f"{leaves}", 0) >= VAN:
            leaves += timedelta(1)
        van[f"{leaves}"] = van.get(f"{leaves}", 0) + 1
        number, arrives = self.new_id("P"), leaves + timedelta(TRANSIT[service])
        self.parcels[number] = Parcel(request, lot, PRICE[service], leaves, arrives, fit)
        order.status = "sent"
        self.clock.after((leaves - today).days * DAY + 7 * HOUR, self._pick_up, parcel=number)
        return f"{number} leaves on {leaves} and arrives on {arrives}"

    @qn.tool
    def cancel_parcel(self, parcel: str) -> str:
        """Cancel a parcel that has not left: its seed goes back to the lot, the price is refunded, the request is open.

        Args:
            parcel: Id of the parcel, such as P1.
        """
        row: Parcel = self._find(self.parcels, parcel, "booked")
        order, lot = self.requests[row.request], self.lots[row.lot]
        row.status, order.status = "cancelled", "open"
        lot.grams += order.grams
        self._save(lot)
        self.spent -= row.price
        self._seats()[f"{row.leaves}"] -= 1
        return f"{parcel} is cancelled, {order.id} is open"

    @qn.tool
    def decline(self, request: str) -> str:
        """Decline an open request for good.

        Args:
            request: Id of the request.
        """
        order: Request = self._find(self.requests, request, "open")
        order.status, today = "declined", self.clock.date.date()
        lots = [lot for lot in self.lots.values() if lot.species == order.species and lot.grams >= order.grams]
        if all(lot.germination < order.minimum and (today - lot.tested).days <= VALID for lot in lots):
            self.proven.append(request)
        return f"{request} is declined"

    @qn.tool
    def wait(self, days: Annotated[int, msgspec.Meta(ge=1, le=30)]) -> str:
        """Let whole days pass; returns the new date.

        Args:
            days: How many days.
        """
        self.clock.advance(days * DAY)
        return f"it is {self.clock.date:%A, %Y-%m-%d}"

    def _find(self, rows: dict[str, Any], key: str, status: str = "") -> Any:
        if key not in rows:
            raise qn.ToolError(f"there is no {key!r}, only {', '.join(rows) or 'nothing yet'}")
        if status and rows[key].status != status:
            raise qn.ToolError(f"{key} is {rows[key].status}, not {status}")
        return rows[key]

    def _save(self, lot: Lot) -> None:
        self.lots[lot.id] = lot
        self.index.pop(lot.species, None)

    def _rate(self, service: str) -> str:
        if service not in PRICE:
            raise qn.ToolError(f"there is no service {service!r}, only {', '.join(PRICE)}")
        return service

    def _seats(self) -> dict[str, int]:
        return self.van

    def _enter_result(self, lot: str) -> None:
        row = self.lots[lot]
        row.germination, row.tested, row.test_until = row.vigour, self.clock.date.date(), None
        self._save(row)

    def _pick_up(self, parcel: str) -> None:
        row = self.parcels[parcel]
        if row.status != "cancelled":
            row.status = "underway"
            self.clock.after((row.arrives - row.leaves).days * DAY - 8 * HOUR, self._deliver, parcel=parcel)

    def _deliver(self, parcel: str) -> None:
        self.parcels[parcel].status = self.requests[self.parcels[parcel].request].status = "delivered"


def task(state: type[SeedBank], id: str, key: str, n: int) -> qn.Task[SeedBank]:
    """Writes a task with two or three requests, of which at least one can be met, and the cheapest sure solution."""
    rng, world = random.Random(f"seedbank/{key}"), state()  # noqa: S311
    today = end = date(2027, 3, 1) + timedelta(7 * rng.randrange(4) + rng.randrange(5))
    world.clock.now = datetime(today.year, today.month, today.day, 9, tzinfo=UTC).timestamp()
    plan: list[tuple[date, str, dict[str, Any]]] = [(today, "list_requests", {})]
    goals, lots = dict[str, str](), dict[str, str]()
    budget, note = 0, ""
    kinds = [("ready", "test", "rebook")[n % 3], *rng.sample(("ready", "test", "decline"), 1 + n // 3 % 2)]
    for kind, species in zip(kinds, rng.sample(sorted(LASTS), len(kinds)), strict=True):
        grams, least, tests = rng.choice((10, 15, 20, 30)), rng.choice((65, 70, 75, 80)), kind in ("test", "decline")
        ample, strong = grams + 10 * rng.randint(1, 6), least + rng.randint(0, 12)
        ready = today + timedelta(LASTS[species] * tests)
        order = Request(f"R{len(goals) + 1}", species, grams, least, ready + timedelta(rng.randint(3, 9)))
        world.requests[order.id], goals[order.id] = order, "declined" if kind == "decline" else "delivered"
        low = [least - rng.randint(3, 25) for _ in range(3)]
        rows = [("best", ample, low[0] if kind == "decline" else strong, tests), ("short", grams - 4, strong, False)]
        rows += [("weak", ample, low[1], False), *([("other", ample, low[2], True)] if tests else [])]
        for role, size, vigour, old in rng.sample(rows, len(rows)):
            # An old result promises more than a test will find.
            said, age = vigour + rng.randint(4, 12) * old, rng.randint(900, 2000) if old else rng.randint(30, 600)
            lots[role] = number = f"L{len(world.lots) + 1}"
            world.lots[number] = Lot(number, species, size, min(said, 98), today - timedelta(age), vigour)
        plan.append((today, "find_lots", {"species": species}))
        if tests:
            plan += [(today, "start_test", {"lot": lots[role]}) for role in ("best", "other")]
            plan.append((ready, "find_lots", {"species": species}))
            budget += 2 * TEST_EUROS
        if kind == "rebook":
            note = f" A trainee has just booked parcel P1 for {order.id} from an unsuitable lot; put it right."
            world.book_parcel(order.id, lots["weak"], "post")
            plan.append((today, "cancel_parcel", {"parcel": "P1"}))
        if kind == "decline":
            plan.append((ready, "decline", {"request": order.id}))
            continue
        service = rng.choice(("post", "express"))
        arrives = ready + timedelta((7 - ready.weekday()) * (ready.weekday() > 4) + TRANSIT[service])
        order.needed_by, end = arrives + timedelta(rng.randrange(4)), max(end, arrives)
        plan.append((ready, "book_parcel", {"request": order.id, "lot": lots["best"], "service": service}))
        budget += PRICE[service]
    calls: list[qn.task.Call] = []
    for day, name, arguments in sorted(plan, key=lambda entry: entry[0]) + [(end, "", {})]:  # noqa: RUF005
        calls += [("wait", {"days": (day - today).days})] if day > today else []
        calls += [(name, arguments)] if name else []
        today = max(today, day)
    prompt = f"It is {world.clock.date:%A, %Y-%m-%d}, 9 am. Settle the {len(kinds)} requests on your desk.{note}"
    return qn.Task(id=id, prompt=prompt, start=world, truth={"goals": goals, "budget": budget}, solution=tuple(calls))


def build(
    state: type[SeedBank] = SeedBank, in_time: str = "arrives", usual: int | None = None, series: int | None = None
) -> qn.Environment[SeedBank]:
    """Builds the environment.

    A parcel's date `in_time` must not be after its request's; `usual` requests make the full score, by default all;
    `series` is the number of the first test task, if both splits are of one series of tasks.
    """

    def tasks(split: str) -> list[qn.Task[SeedBank]]:
        name, first = ("all", series if split == "test" else 0) if series else (split, 0)
        return [task(state, f"{split}-{n}", f"{name}/{n}", n) for n in range(first, first + COUNTS[split])]

    @qn.reward
    def settled(view: qn.EpisodeView[SeedBank]) -> qn.Score:
        world, goals = view.state, view.task.truth["goals"]
        sent = [one for one in world.parcels.values() if one.status == "delivered" and one.fit]
        done = {one.request for one in sent if getattr(one, in_time) <= world.requests[one.request].needed_by}
        right = [key for key in goals if key in (done if goals[key] == "delivered" else world.proven)]
        return qn.Score(min(1.0, len(right) / (usual or len(goals))), f"right: {', '.join(right)}")

    @qn.reward
    def thrifty(view: qn.EpisodeView[SeedBank]) -> qn.Score:
        budget, spent = view.task.truth["budget"], view.state.spent
        return qn.Score(min(1.0, budget / max(spent, 1)), f"spent {spent} of {budget} euros")

    verifier, harness = qn.Verifier(settled, thrifty, combine="product"), qn.ToolLoop(system=RULES)
    return qn.Environment("seedbank", tasks=tasks, harness=harness, verifier=verifier, state=state, splits=(*COUNTS,))


class LateIndex(SeedBank):
    """The laboratory writes a result without dropping the list of the species."""

    def _enter_result(self, lot: str) -> None:
        row = self.lots[lot]
        row.germination, row.tested, row.test_until = row.vigour, self.clock.date.date(), None


class OneVan(SeedBank):
    """One calendar of the van for the whole process."""

    calendar: ClassVar[dict[str, int]] = {}

    def _seats(self) -> dict[str, int]:
        return self.calendar


class GhostParcel(SeedBank):
    """The van takes cancelled parcels too."""

    def _pick_up(self, parcel: str) -> None:
        self.parcels[parcel].status = "booked"
        super()._pick_up(parcel)


class AnyService(SeedBank):
    """A service that does not exist is post."""

    def _rate(self, service: str) -> str:
        return service if service in PRICE else "post"


env = build()
env_late_index = build(LateIndex)
env_one_van = build(OneVan)
env_ghost_parcel = build(GhostParcel)
env_any_service = build(AnyService)
env_left_in_time = build(in_time="leaves")
env_two_suffice = build(usual=2)
env_one_series = build(series=20)
