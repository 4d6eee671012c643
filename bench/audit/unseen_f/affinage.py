"""Affinage: the desk of a cheese ripener. An agent reserves wheels for customers, holds and moves them."""

from __future__ import annotations

import random
from typing import Any, ClassVar, Literal

import quintain as qn
from quintain.judges import as_number, last_number

CAPACITY = {"R1": 12, "R2": 12, "R3": 10, "R4": 10, "R5": 8}
KINDS = {  # Grams of a young wheel, and its youngest and oldest age in days.
    "epoisses": (1050, 20, 60),
    "maroilles": (720, 21, 90),
    "tomme": (1900, 35, 200),
    "cantal": (9800, 60, 240),
}
FRESH = {"status": "ripening", "customer": "", "reason": ""}
CUSTOMERS = ("Halle Nord", "Chez Odile", "Kaeserei Brandt", "Le Petit Quai", "Wagner & Fils", "Marche des Lices")
SYSTEM = """You keep the books of a cheese ripener's cellar. Use the tools to do what the cellar master asks, and change
nothing else. End with a message whose last number is the number asked for."""

Wheel = dict[str, str | int]
Calls = list[tuple[str, dict[str, Any]]]
Job = tuple[str, Calls, dict[str, Any], int]
"""What is asked, the calls that do it, the facts that change, and the number to say."""


class Cellar(qn.State):
    """The cellar's books; each wheel has kind, batch, age_days, rack, status, customer, reason and grams."""

    wheels: dict[str, Wheel]
    customer: str = ""

    @qn.tool
    def list_wheels(
        self,
        kind: str = "",
        rack: str = "",
        batch: str = "",
        status: Literal["", "ripening", "reserved", "hold", "shipped"] = "",
        min_age_days: int = 0,
    ) -> list[dict[str, Any]]:
        """List wheels, the oldest first, and of equal age the lowest number first. Empty filters keep everything.

        Args:
            kind: Only this kind of cheese, such as tomme.
            rack: Only wheels on this rack, such as R2.
            batch: Only wheels of this batch, such as L4207.
            status: Only wheels with this status.
            min_age_days: Only wheels that are at least this many days old.
        """
        if kind and kind not in KINDS:
            raise qn.ToolError(f"no kind {kind!r}; kinds: {', '.join(KINDS)}")
        return self._query(min_age_days, kind=kind, rack=self._rack(rack) if rack else "", batch=batch, status=status)

    @qn.tool
    def racks(self) -> list[dict[str, Any]]:
        """List the racks with their capacity and the number of wheels on them."""
        return [{"rack": rack, "capacity": room, "wheels": load(self.wheels, rack)} for rack, room in CAPACITY.items()]

    @qn.tool
    def move(self, wheel: str, rack: str) -> str:
        """Move a wheel to another rack.

        Args:
            wheel: Number of the wheel, such as W204.
            rack: The rack where it shall stand, such as R2.
        """
        row, rack = self._here(wheel), self._rack(rack)
        if row["rack"] == rack or load(self.wheels, rack) >= CAPACITY[rack]:
            raise qn.ToolError(f"{wheel} stands there already" if row["rack"] == rack else f"{rack} is full")
        self._save(wheel, rack=rack)
        return "moved"

    @qn.tool
    def hold(self, wheel: str, reason: str) -> str:
        """Put a wheel on hold.

        Args:
            wheel: Number of the wheel.
            reason: Why, in a few words.
        """
        if self._here(wheel)["status"] == "hold" or not reason.strip():
            raise qn.ToolError(f"{wheel} is on hold already" if reason.strip() else "a hold needs a reason")
        self._save(wheel, status="hold", reason=reason)
        return "on hold"

    @qn.tool
    def serve(self, customer: str) -> str:
        """Begin to serve a customer; wheels are reserved for the customer who is being served.

        Args:
            customer: Name of the customer.
        """
        if customer not in CUSTOMERS:
            raise qn.ToolError(f"no customer {customer!r}; customers: {', '.join(CUSTOMERS)}")
        self._serve(customer)
        return f"serving {customer}"

    @qn.tool
    def reserve(self, wheel: str) -> str:
        """Reserve a ripening wheel for the customer who is being served.

        Args:
            wheel: Number of the wheel.
        """
        row = self._here(wheel)
        if not self._served() or row["status"] != "ripening":
            raise qn.ToolError(f"{wheel} is not free, it is: {row['status']}" if self._served() else "serve whom?")
        self._save(wheel, status="reserved", customer=self._served())
        return f"reserved, {row['grams']} g"

    def _here(self, wheel: str) -> Wheel:
        if self.wheels.get(wheel, {"status": "shipped"})["status"] == "shipped":
            raise qn.ToolError(f"there is no wheel {wheel!r} in the cellar")
        return self.wheels[wheel]

    def _rack(self, rack: str) -> str:
        if rack not in CAPACITY:
            raise qn.ToolError(f"no rack {rack!r}; racks: {', '.join(CAPACITY)}")
        return rack

    def _save(self, wheel: str, **fields: str | int) -> None:
        self.wheels[wheel].update(fields)

    def _old_enough(self, days: Any, wanted: int) -> bool:
        return bool(days >= wanted)

    def _query(self, min_age_days: int, **wanted: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [{"wheel": wheel, **row} for wheel, row in self.wheels.items()]
        found = [one for one in rows if self._old_enough(one["age_days"], min_age_days)]
        found = [one for one in found if all(not value or one[name] == value for name, value in wanted.items())]
        return sorted(found, key=lambda one: (-one["age_days"], one["wheel"]))

    def _served(self) -> str:
        return self.customer

    def _serve(self, customer: str) -> None:
        self.customer = customer


class MemoCellar(Cellar):
    """Keeps the listings that were made, because the cellar has thousands of wheels; a move makes them void."""

    listings: dict[str, list[dict[str, Any]]] = {}

    def _query(self, min_age_days: int, **wanted: str) -> list[dict[str, Any]]:
        key = f"{min_age_days}/{'/'.join(wanted.values())}"
        if key not in self.listings:
            self.listings[key] = Cellar._query(self, min_age_days, **wanted)
        return self.listings[key]

    def _save(self, wheel: str, **fields: str | int) -> None:
        Cellar._save(self, wheel, **fields)
        if "rack" in fields:
            self.listings.clear()


class CounterCellar(Cellar):
    """Has one counter at which customers are served."""

    counter: ClassVar[dict[str, str]] = {}

    def _served(self) -> str:
        return self.counter["customer"] if self.customer else ""

    def _serve(self, customer: str) -> None:
        self.customer = self.counter["customer"] = customer


class BoardCellar(Cellar):
    """Remembers on a board what is on hold, so that it is never sold."""

    board: ClassVar[set[str]] = set()

    def _here(self, wheel: str) -> Wheel:
        return Cellar._here(self, wheel) | ({"status": "hold"} if wheel in self.board else {})

    def _save(self, wheel: str, **fields: str | int) -> None:
        Cellar._save(self, wheel, **fields)
        if fields.get("status") == "hold":
            self.board.add(wheel)


class LooseCellar(Cellar):
    """Knows a rack for every name."""

    def _rack(self, rack: str) -> str:
        return rack if rack in CAPACITY else next(iter(CAPACITY))


class YoungCellar(Cellar):
    """Filters by age."""

    def _old_enough(self, days: Any, wanted: int) -> bool:
        return not wanted or bool(days > wanted)


def load(wheels: dict[str, Any], rack: str) -> int:
    """Returns the number of wheels on a rack."""
    return sum(row["rack"] == rack for row in wheels.values())


def stock(rng: random.Random) -> dict[str, Any]:
    """Draws the wheels of a cellar, batch by batch."""
    numbers, wheels = iter(sorted(rng.sample(range(101, 200), 40))), dict[str, Any]()
    for batch, kind in zip(rng.sample(range(1000, 9999), 9), [*KINDS, *rng.choices(list(KINDS), k=5)], strict=True):
        grams, days = KINDS[kind][0], rng.randint(*KINDS[kind][1:])
        row = {"kind": kind, "batch": f"L{batch}", "age_days": days, **FRESH}
        for _ in range(rng.randint(2, 4)):
            rack = rng.choice([one for one in CAPACITY if load(wheels, one) < 7])
            weighs = int(grams * rng.uniform(0.94, 1.06) * (1 - days / 1500))
            wheels[f"W{next(numbers)}"] = {**row, "rack": rack, "grams": weighs}
    held, kept, *gone = rng.sample(sorted(wheels), 6)
    wheels[held] |= {"status": "hold", "reason": "crack in the rind"}
    wheels[kept] |= {"status": "reserved", "customer": rng.choice(CUSTOMERS)}
    for one in gone:
        wheels[one] |= {"status": "shipped", "customer": rng.choice(CUSTOMERS), "rack": ""}
    return wheels


def order(rng: random.Random, wheels: dict[str, Any]) -> Job:
    """A customer wants the oldest wheels of a kind."""
    customer, free = rng.choice(CUSTOMERS), [one for one in wheels if wheels[one]["status"] == "ripening"]
    kind = wheels[rng.choice(free)]["kind"]
    free = sorted((one for one in free if wheels[one]["kind"] == kind), key=lambda one: (-wheels[one]["age_days"], one))
    chosen = free[: rng.randint(1, min(4, len(free)))]
    days = wheels[chosen[-1]]["age_days"] - rng.choice((0, 0, 3))
    request = f"""{customer} wants {len(chosen)} x {kind}, at least {days} days old. Reserve the oldest ripening wheels
for them, of equal age the lowest numbers, and tell me the total weight in grams."""
    calls: Calls = [("list_wheels", {"kind": kind, "status": "ripening", "min_age_days": days})]
    calls += [("serve", {"customer": customer}), *(("reserve", {"wheel": one}) for one in chosen)]
    changes = {f"{one}.status": "reserved" for one in chosen} | {f"{one}.customer": customer for one in chosen}
    return request, calls, changes, sum(wheels[one]["grams"] for one in chosen)


def recall(rng: random.Random, wheels: dict[str, Any]) -> Job:
    """A batch is recalled."""
    held = {row["batch"] for row in wheels.values() if row["status"] == "hold"}
    here = {row["batch"] for row in wheels.values() if row["status"] in ("ripening", "reserved")}
    batch = rng.choice(sorted(here - held))
    found = [one for one in wheels if wheels[one]["batch"] == batch and wheels[one]["status"] != "shipped"]
    request = f"""The milk of batch {batch} is suspect. Put all of its wheels that have not been shipped on hold, with
the reason 'recall {batch}', and tell me how many wheels you put on hold."""
    calls: Calls = [("list_wheels", {"batch": batch})]
    calls += [("hold", {"wheel": one, "reason": f"recall {batch}"}) for one in found]
    changes = {f"{one}.status": "hold" for one in found} | {f"{one}.reason": f"recall {batch}" for one in found}
    return request, calls, changes, len(found)


def rearrange(rng: random.Random, wheels: dict[str, Any]) -> Job:
    """The older wheels of a kind go to another rack."""
    first = rng.choice([row for row in wheels.values() if row["status"] != "shipped"])
    kind, rack, days = first["kind"], first["rack"], first["age_days"]
    moved = [w for w, row in wheels.items() if (row["kind"], row["rack"]) == (kind, rack) and row["age_days"] >= days]
    target = rng.choice([one for one in CAPACITY if one != rack and load(wheels, one) + len(moved) <= CAPACITY[one]])
    request = f"""{rack} gets too warm. Move each {kind} on it that is at least {days} days old to {target}, and tell me
how many wheels are on {target} then."""
    calls: Calls = [("list_wheels", {"kind": kind, "rack": rack, "min_age_days": days})]
    calls += [*(("move", {"wheel": one, "rack": target}) for one in moved), ("racks", {})]
    return request, calls, {f"{one}.rack": target for one in moved}, load(wheels, target) + len(moved)


def facts(world: Cellar) -> dict[str, Any]:
    """Returns all that the books say of the wheels, as flat facts."""
    return {f"{wheel}.{name}": value for wheel, row in world.wheels.items() for name, value in row.items()}


@qn.reward
def done(view: qn.EpisodeView[Cellar]) -> qn.Score:
    """Scores the share of the wanted facts that hold."""
    end, wanted = facts(view.state), view.task.truth["facts"]
    missed = [name for name, value in wanted.items() if end[name] != value]
    return qn.Score(1 - len(missed) / len(wanted), f"missed: {', '.join(missed) or 'nothing'}")


@qn.reward
def untouched(view: qn.EpisodeView[Cellar]) -> qn.Score:
    """Scores 0 if a fact changed that the task does not name."""
    start, end, wanted = facts(view.start), facts(view.state), view.task.truth["facts"]
    stray = [name for name in start if start[name] != end[name] and name not in wanted]
    return qn.Score(float(not stray), f"changed besides: {', '.join(stray) or 'nothing'}")


@qn.reward
def reported(view: qn.EpisodeView[Cellar]) -> qn.Score:
    """Scores 1 if the last number of the last message is the number asked for."""
    said = last_number(view.answer)
    return qn.Score(float(said is not None and as_number(said) == view.task.truth["number"]), f"said {said}")


def build(state: type[Cellar] = Cellar, verifier: qn.Verifier[Cellar] | None = None) -> qn.Environment[Cellar]:
    """Returns the environment with a class of cellars and a verifier."""

    def task(split: str, n: int) -> qn.Task[Cellar]:
        rng = random.Random(f"affinage/{split}/{n}")  # noqa: S311
        request, calls, changes, number = (order, recall, rearrange)[n % 3](rng, wheels := stock(rng))
        sealed: dict[str, Any] = {"truth": {"facts": changes, "number": number}, "answer": f"Done. It is {number}."}
        return qn.Task(id=f"{split}-{n}", prompt=request, start=state(wheels=wheels), solution=tuple(calls), **sealed)

    return qn.Environment(
        "affinage",
        tasks=lambda split: qn.Tasks({"train": 30, "test": 15}[split], lambda n: task(split, n)),
        harness=qn.ToolLoop(system=SYSTEM),
        verifier=verifier or qn.Verifier(done, untouched, reported, combine="product"),
        state=state,
        splits=("train", "test"),
    )


env = build()
env_memo = build(MemoCellar)
env_counter = build(CounterCellar)
env_board = build(BoardCellar)
env_loose = build(LooseCellar)
env_young = build(YoungCellar)
env_narrow = build(verifier=qn.Verifier(done, reported, combine="product"))
PARTS: tuple[tuple[Any, float], ...] = ((done.fn, 0.5), (untouched.fn, 0.3), (reported.fn, 0.2))
env_sum = build(verifier=qn.Verifier(*(qn.reward(weight=weight)(one) for one, weight in PARTS)))
