"""The service desk of a hotel's housekeeping: rooms, attendants and the requests of guests."""

import itertools
import random
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, get_args

import msgspec

import quintain as qn

TODAY = date(2026, 3, 14)
PRIORITIES = ("low", "normal", "high")
GUESTS = ("Abel", "Brandt", "Costa", "Duarte", "Ekman", "Ferri", "Gallo", "Haas", "Ivers", "Jonas", "Kovac", "Lund")
NAMES = ("Ada", "Boris", "Chloe", "Dario", "Elif", "Femi", "Greta", "Hugo", "Ines", "Jakub", "Kaya", "Leon")
SYSTEM = (
    f"You work at the desk of housekeeping. Today is {TODAY}. Attendants have floors 1 to 4, 5 to 8 or 9 to 12. Do "
    "what you are asked with the tools, change nothing else, and say what you did. Answer a question by a number alone."
)

Item = Literal["bath towels", "pillows", "blankets", "bathrobes", "coat hangers"]
Floor = Annotated[int, msgspec.Meta(ge=1, le=12)]
Count = Annotated[int, msgspec.Meta(ge=1, le=20)]


class Room(msgspec.Struct):
    """A room, and who stays in it; vacant rooms have no guest."""

    floor: int
    status: str
    guest: str = ""
    arrived: str = ""
    leaves: str = ""


class Request(msgspec.Struct):
    """What a room has asked for."""

    room: str
    item: str
    count: int
    priority: str
    attendant: str = ""


class Desk(qn.State):
    """The desk's world."""

    rooms: dict[str, Room] = {}
    names: dict[str, str] = {}
    on_shift: dict[str, list[int]] = {}
    requests: dict[str, Request] = {}
    revision: int = 0

    @qn.tool
    def find_rooms(self, floor: Floor) -> dict[str, Room]:
        """List the rooms of a floor by their numbers.

        Args:
            floor: The floor, 1 to 12.
        """
        return {number: room for number, room in self.rooms.items() if self._is_on(floor, number)}

    @qn.tool
    def set_room_status(self, room: str, status: Literal["dirty", "clean", "inspected"]) -> Room:
        """Set the status of a room; returns the room.

        Args:
            room: Number of the room, such as "204".
            status: The new status.
        """
        self._room(room).status = status
        return self.rooms[room]

    @qn.tool
    def find_attendants(self, floor: Floor) -> dict[str, dict[str, Any]]:
        """List the attendants on shift for a floor: id, name and number of open requests.

        Args:
            floor: The floor, 1 to 12.
        """
        return {key: {"name": self.names[key], "open": self._load(key)} for key in staff(self, floor)}

    @qn.tool
    def find_requests(self, attendant: str) -> dict[str, Request]:
        """List the open requests of an attendant, earliest first.

        Args:
            attendant: Id of the attendant.
        """
        if attendant not in self.names:
            raise qn.ToolError(f"there is no attendant {attendant!r}")
        return {key: one for key, one in self.requests.items() if one.attendant == attendant}

    @qn.tool
    def open_request(self, room: str, item: Item, count: Count, priority: str) -> str:
        """Open a request that no attendant has yet; returns its id.

        Args:
            room: Number of the room that asks.
            item: What it needs.
            count: How many, 1 to 20.
            priority: low, normal or high.
        """
        self._room(room)
        wish = Request(room, item, count, self._priority(priority))
        return self._store(self.new_id("R"), wish)

    @qn.tool
    def assign_request(self, request: str, attendant: str) -> str:
        """Give a request to an attendant who is on shift for its floor; returns the id of the request.

        Args:
            request: Id of the request.
            attendant: Id of the attendant.
        """
        if (found := self.requests.get(request)) is None:
            raise qn.ToolError(f"there is no request {request!r}")
        floor = self.rooms[found.room].floor
        if attendant not in staff(self, floor):
            raise qn.ToolError(f"no attendant {attendant!r} is on shift for floor {floor}")
        return self._store(request, msgspec.structs.replace(found, attendant=attendant))

    def _room(self, number: str) -> Room:
        if number not in self.rooms:
            raise qn.ToolError(f"there is no room {number!r}")
        return self.rooms[number]

    def _is_on(self, floor: int, number: str) -> bool:
        return self.rooms[number].floor == floor

    def _load(self, attendant: str) -> int:
        return sum(one.attendant == attendant for one in self.requests.values())

    def _priority(self, said: str) -> str:
        if said not in PRIORITIES:
            raise qn.ToolError(f"priority must be one of {', '.join(PRIORITIES)}, got {said!r}")
        return said

    def _store(self, key: str, request: Request) -> str:
        self.requests[key] = request
        self.revision += 1
        return key


Days = Callable[[random.Random], tuple[date, date]]
Job = tuple[str, list[tuple[str, dict[str, Any]]], dict[str, Any]]


def furnish(desk: Desk, rng: random.Random, days: Days) -> None:
    """Fills a desk with rooms, attendants and requests."""
    for floor, door in itertools.product(range(1, 13), range(1, 7)):
        room = desk.rooms[f"{floor}{door:02d}"] = Room(floor, rng.choice(("dirty", "dirty", "clean", "inspected")))
        if rng.random() < 0.5:
            room.guest, (room.arrived, room.leaves) = rng.choice(GUESTS), map(str, days(rng))
    for n, name in enumerate(rng.sample(NAMES, len(NAMES))):
        desk.names[key := desk.new_id("A")] = name
        if n % 4 != 3:
            desk.on_shift[key] = list(range(n // 4 * 4 + 1, n // 4 * 4 + 5))
    for number in rng.sample([no for no, room in desk.rooms.items() if room.guest], 20):
        wish = (number, rng.choice(get_args(Item)), rng.randint(1, 4), rng.choice(PRIORITIES))
        desk.requests[desk.new_id("R")] = Request(*wish, rng.choice(staff(desk, desk.rooms[number].floor)))


def staff(desk: Desk, floor: int) -> list[str]:
    """Returns the ids of the attendants on shift for a floor."""
    return [key for key, floors in desk.on_shift.items() if floor in floors]


def deliver(desk: Desk, rng: random.Random) -> Job:
    """A room needs something that the least busy attendant shall bring."""
    number = rng.choice([no for no, room in desk.rooms.items() if room.guest])
    item, count, urgency = rng.choice(get_args(Item)), rng.randint(2, 6), rng.choice(PRIORITIES)
    who = min(staff(desk, floor := desk.rooms[number].floor), key=partial(Desk._load, desk))
    wish = {"room": number, "item": item, "count": count, "priority": urgency}
    prompt = (
        f"Room {number} asks for {count} {item}, with {urgency} priority. Open the request and give it to the "
        "attendant on shift for that floor with the fewest open requests; of several, to the one who is listed first."
    )
    assign = ("assign_request", {"request": f"R{len(desk.requests) + 1}", "attendant": who})
    calls = [("find_attendants", {"floor": floor}), ("open_request", wish), assign]
    return prompt, calls, {"new": {**wish, "attendant": who}}


def turnover(desk: Desk, rng: random.Random) -> Job:
    """The vacant dirty rooms of a floor have been cleaned."""
    vacant = [(one.floor, no) for no, one in desk.rooms.items() if one.status == "dirty" and not one.guest]
    busy = [floor for floor, found in Counter(floor for floor, _ in vacant).items() if found > 1]
    floor = rng.choice((busy[0], rng.choice(busy)))
    done = [number for place, number in vacant if place == floor]
    prompt = f"The early team has cleaned every dirty room on floor {floor} that has no guest. Set them to clean."
    calls = [("set_room_status", {"room": number, "status": "clean"}) for number in done]
    truth = {"set": {f"rooms/{number}/status": "clean" for number in done}}
    return prompt, [("find_rooms", {"floor": floor}), *calls], truth


def sick(desk: Desk, rng: random.Random) -> Job:
    """Somebody goes home, a colleague takes over."""
    ill = rng.choice(sorted({one.attendant for one in desk.requests.values()}))
    floor, name = desk.on_shift[ill][0], desk.names[ill]
    heir = rng.choice([key for key in staff(desk, floor) if key != ill])
    moved = [key for key, one in desk.requests.items() if one.attendant == ill]
    prompt = f"{name} is sick. Give all open requests of {name} to {desk.names[heir]}. How many requests are they?"
    calls = [("find_attendants", {"floor": floor}), ("find_requests", {"attendant": ill})]
    calls += [("assign_request", {"request": key, "attendant": heir}) for key in moved]
    return prompt, calls, {"set": {f"requests/{key}/attendant": heir for key in moved}, "number": len(moved)}


def count(desk: Desk, rng: random.Random) -> Job:
    """The manager asks for a number."""
    floors = range(rng.randint(1, 4), rng.randint(8, 12) + 1)
    what, name, value = rng.choice((("are dirty", "status", "dirty"), ("see guests leave", "leaves", str(TODAY))))
    number = sum(getattr(one, name) == value for one in desk.rooms.values() if one.floor in floors)
    prompt = f"How many rooms on floors {floors[0]} to {floors[-1]} {what} today?"
    return prompt, [("find_rooms", {"floor": floor}) for floor in floors], {"number": number}


def task(split: str, n: int, *, world: type[Desk], days: Days) -> qn.Task[Desk]:
    """Returns task n of a split."""
    rng, desk, family = random.Random(f"linen/{split}/{n}"), world(), (deliver, turnover, sick, count)[n % 4]  # noqa: S311
    furnish(desk, rng, days)
    prompt, calls, goals = family(desk, rng)
    truth = {"set": {}, "new": None, "number": None, **goals}
    answer = "done" if truth["number"] is None else str(truth["number"])
    about = {"prompt": prompt, "truth": truth, "solution": tuple(calls), "answer": answer}
    return qn.Task(id=f"{split}-{n}", start=desk, tags={"family": family.__name__}, **about)


def judge(answer: str, truth: int | None) -> str:
    """Explains whether an answer states a number, and gives a verdict in the last line."""
    right = truth is None or answer.strip().rstrip(".") == str(truth)
    return f"The number is {truth}. The clerk said: {answer!r}.\nVERDICT: {'right' if right else 'wrong'}"


def fields(desk: Desk) -> dict[str, str]:
    """Returns all that a clerk can change, by places such as "rooms/204/status"."""
    rows: dict[str, Any] = {f"rooms/{key}": row for key, row in desk.rooms.items()}
    rows |= {f"requests/{key}": row for key, row in desk.requests.items()}
    return {f"{place}/{name}": str(getattr(row, name)) for place, row in rows.items() for name in row.__struct_fields__}


def created(view: qn.EpisodeView[Desk]) -> list[dict[str, Any]]:
    """Returns the requests that were opened in the episode."""
    return [msgspec.to_builtins(one) for key, one in view.state.requests.items() if key not in view.start.requests]


def make(
    *,
    world: type[Desk] = Desk,
    days: Days = lambda rng: (TODAY - timedelta(rng.randint(1, 4)), TODAY + timedelta(rng.randint(0, 2))),
    fits: Callable[[str, str, str], bool] = lambda found, wanted, before: found == wanted,
    score: Callable[[float], float] = lambda share: share,
    is_right: Callable[[str], bool] = lambda verdict: verdict.splitlines()[-1] == "VERDICT: right",
) -> qn.Environment[Desk]:
    """Returns the environment: what was asked is done, the question answered, and nothing else changed."""

    @qn.reward
    def done(view: qn.EpisodeView[Desk]) -> qn.Score:
        before, after, truth = fields(view.start), fields(view.state), view.task.truth
        checks = [fits(after[place], wanted, before[place]) for place, wanted in truth["set"].items()]
        checks += [truth["new"] in created(view)] if truth["new"] else []
        return qn.Score(score(sum(checks) / len(checks)) if checks else None, f"{sum(checks)} of {len(checks)} changes")

    @qn.reward
    def answered(view: qn.EpisodeView[Desk]) -> qn.Score:
        verdict = judge(view.answer, view.task.truth["number"])
        return qn.Score(float(is_right(verdict)), verdict)

    @qn.reward
    def untouched(view: qn.EpisodeView[Desk]) -> qn.Score:
        after, wanted = fields(view.state), view.task.truth["set"]
        stray = [place for place, value in fields(view.start).items() if after[place] != value and place not in wanted]
        extra = max(0, len(created(view)) - bool(view.task.truth["new"]))
        return qn.Score(float(not stray and not extra), f"changed {stray}, {extra} requests too many")

    return qn.Environment(
        "linen",
        tasks=lambda split: qn.Tasks({"train": 40, "test": 20}[split], partial(task, split, world=world, days=days)),
        harness=qn.ToolLoop(system=SYSTEM),
        verifier=qn.Verifier(done, answered, untouched, combine="product"),
        state=world,
        splits=("train", "test"),
    )


class Prefix(Desk):
    """Finds the floor in the number of the room."""

    def _is_on(self, floor: int, number: str) -> bool:
        return number.startswith(str(floor))


class Lenient(Desk):
    """Takes any word for a priority."""

    def _priority(self, said: str) -> str:
        return said if said in PRIORITIES else "normal"


class Counted(Desk):
    """Counts the requests of an attendant once per revision of the book."""

    loads: ClassVar[dict[tuple[str, int], int]] = {}

    def _load(self, attendant: str) -> int:
        if (key := (attendant, self.revision)) not in self.loads:
            self.loads[key] = super()._load(attendant)
        return self.loads[key]


env = make()
env_prefix = make(world=Prefix)
env_lenient = make(world=Lenient)
env_counted = make(world=Counted)
env_any_days = make(days=lambda rng: tuple(TODAY + timedelta(rng.randint(-4, 2)) for _ in range(2)))
env_touched = make(fits=lambda found, wanted, before: found != before)
env_rounded = make(score=lambda share: float(round(share)))
env_verdict = make(is_right=lambda verdict: "VERDICT: right" in verdict)
