"""A bike workshop: repairs with deadlines, parts that take days to arrive, and reminders."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import msgspec

import quintain as qn

MONDAY = datetime(2026, 3, 9, 8, tzinfo=UTC)
FORM = "%Y-%m-%d %H:%M"
LEAD_HOURS = {"chain": 4, "brake pads": 24, "derailleur": 48, "rim": 48}
OWNERS = ("Amin", "Bea", "Carlo", "Dunja", "Emil", "Fatou", "Georg", "Hanne")
SYSTEM = (
    "You run a bike workshop, open every day from 08:00 to 18:00, with one stand. It is Monday, 2026-03-09 08:00. Time "
    "passes only when you wait. Do what you are asked with the tools, write to nobody and order nothing beyond it."
)


class Repair(msgspec.Struct):
    """A bike and what is wrong with it; `ready` is when the work ended."""

    owner: str
    part: str
    minutes: int
    due: str
    status: str = "waiting"
    ready: str = ""


class Workshop(qn.State):
    """The workshop's world."""

    repairs: dict[str, Repair] = {}
    stock: dict[str, int] = {}
    orders: list[str] = []
    reminders: dict[str, dict[str, str]] = {}
    messages: list[str] = []

    @qn.tool
    def wait(self, minutes: Annotated[int, msgspec.Meta(ge=1, le=2880)]) -> str:
        """Let time pass; returns the date and time, and the reminders that were sent.

        Args:
            minutes: How long, up to two days.
        """
        earlier = len(self.messages)
        self.clock.advance(60 * minutes)
        return f"{self._date()}; sent: {', '.join(self.messages[earlier:]) or 'none'}"

    @qn.tool
    def list_repairs(self, status: Literal["waiting", "in work", "ready"]) -> list[dict[str, Any]]:
        """List the repairs with a status: id, owner, part and minutes of work that it needs, when it is due.

        Args:
            status: The status.
        """
        return self._listed(status)

    @qn.tool
    def list_parts(self) -> dict[str, dict[str, int]]:
        """List the parts: pieces in stock, and hours from an order to its arrival."""
        return {part: {"stock": n, "delivery_hours": LEAD_HOURS[part]} for part, n in self.stock.items()}

    @qn.tool
    async def order_part(self, part: str) -> str:
        """Order one piece of a part; returns what was ordered and when it arrives.

        Args:
            part: Name of the part.
        """
        if part not in self.stock:
            raise qn.ToolError(f"there is no part {part!r}; parts: {', '.join(self.stock)}")
        part = await self._confirmed(part)
        self.orders.append(part)
        self.clock.after(3600 * LEAD_HOURS[part], self.arrive, part=part)
        return f"one {part}, arrives {self._date(LEAD_HOURS[part])}"

    @qn.tool
    def start_repair(self, repair: str) -> str:
        """Put a waiting bike on the stand for its minutes of work, which uses a part; returns when it is ready.

        Args:
            repair: Id of the repair.
        """
        row, now = self._repair(repair), self.clock.date
        if row.status != "waiting" or any(one.status == "in work" for one in self.repairs.values()):
            raise qn.ToolError(f"{repair} is {row.status}; a waiting repair can start when the stand is free")
        end = now + timedelta(minutes=row.minutes)
        if not self.stock[row.part] or now.hour < 8 or end > now.replace(hour=18, minute=0):
            raise qn.ToolError(f"it needs a {row.part} in stock, and work from 08:00 to 18:00 of one day")
        self.stock[row.part] -= 1
        self._save(repair, msgspec.structs.replace(row, status="in work"))
        self.clock.after(60 * row.minutes, self.complete, repair=repair)
        return f"{end:{FORM}}"

    @qn.tool
    def message_owner(self, repair: str, text: Literal["ready", "delayed"]) -> str:
        """Write to the owner of a bike that it is ready, or that it will not be ready when it is due.

        Args:
            repair: Id of the repair.
            text: What to say.
        """
        if (status := self._repair(repair).status) != "ready" and text == "ready":
            raise qn.ToolError(f"{repair} is {status}")
        self.messages.append(f"{repair} {text}")
        return "sent"

    @qn.tool
    def set_reminder(self, repair: str, hours: Annotated[float, msgspec.Meta(gt=0, le=240)]) -> str:
        """Have the owner of a bike reminded by a message some hours from now; returns the id of the reminder.

        Args:
            repair: Id of the repair.
            hours: How many hours from now, such as 1.5.
        """
        self._repair(repair)
        key = self.new_id("M")
        self.reminders[key] = {"repair": repair, "at": self._date(hours), "status": "pending"}
        self.clock.after(3600 * hours, self.remind, reminder=key)
        return key

    @qn.tool
    def cancel_reminder(self, reminder: str) -> str:
        """Cancel a pending reminder, so that it is not sent.

        Args:
            reminder: Id of the reminder.
        """
        if reminder not in self.reminders or self.reminders[reminder]["status"] != "pending":
            raise qn.ToolError(f"there is no pending reminder {reminder!r}")
        self.reminders[reminder]["status"] = "cancelled"
        return "cancelled"

    def _date(self, hours: float = 0) -> str:
        return f"{self.clock.date + timedelta(hours=hours):{FORM}}"

    def arrive(self, part: str) -> None:
        self.stock[part] += 1

    def complete(self, repair: str) -> None:
        self.repairs[repair].status, self.repairs[repair].ready = "ready", self._date()

    def remind(self, reminder: str) -> None:
        if self.reminders[reminder]["status"] == "pending":
            self._send(self.reminders[reminder])

    def _send(self, one: dict[str, str]) -> None:
        one["status"] = "sent"
        self.messages.append(f"{one['repair']} reminder {one['at']}")

    def _repair(self, key: str) -> Repair:
        if key not in self.repairs:
            raise qn.ToolError(f"there is no repair {key!r}")
        return self.repairs[key]

    def _listed(self, status: str) -> list[dict[str, Any]]:
        return [{"id": key, **msgspec.to_builtins(row)} for key, row in self.repairs.items() if row.status == status]

    def _save(self, key: str, repair: Repair) -> None:
        self.repairs[key] = repair

    async def _confirmed(self, part: str) -> str:
        return part


Job = tuple[str, list[Any], dict[str, Any]]
Deadline = Callable[[int], str]


def after(hours: float) -> str:
    """Returns the time some hours after the beginning."""
    return f"{MONDAY + timedelta(hours=hours):{FORM}}"


def order(shop: Workshop, rng: random.Random, deadline: Deadline) -> Job:
    """A repair lacks its part."""
    key, row = rng.choice(list(shop.repairs.items()))
    shop.stock[row.part], lead = 0, LEAD_HOURS[row.part]
    row.due = deadline(lead)
    prompt = f"Repair {key} lacks a part. Order one, have the repair ready when it is due, then tell the owner so."
    calls = [("order_part", {"part": row.part}), ("wait", {"minutes": 60 * lead}), ("start_repair", {"repair": key})]
    calls += [("wait", {"minutes": row.minutes}), ("message_owner", {"repair": key, "text": "ready"})]
    return prompt, calls, {"ready": [key], "facts": [f"ordered {row.part}", f"{key} ready"]}


def queue(shop: Workshop, rng: random.Random, _: Deadline) -> Job:
    """Two repairs are due today, and only one sequence meets both deadlines."""
    keys, minutes, calls = rng.sample(list(shop.repairs), 2), 0, [("list_repairs", {"status": "waiting"})]
    for row, key in ((shop.repairs[key], key) for key in keys):
        minutes += row.minutes
        row.due = after(minutes / 60 + 0.5)
        calls += [("start_repair", {"repair": key}), ("wait", {"minutes": row.minutes})]
    prompt = f"Do the repairs {min(keys)} and {max(keys)}, so that both are ready when they are due. Write to nobody."
    return prompt, calls, {"ready": keys, "facts": []}


def remind(shop: Workshop, rng: random.Random, _: Deadline) -> Job:
    """One owner wants a reminder, another one none any more."""
    wants, done, other = rng.sample(list(shop.repairs), 3)
    hours, later = rng.randint(4, 60) / 2, rng.randint(4, 60) / 2
    keys = {key: shop.set_reminder(key, later) for key in sorted((done, other))}
    prompt = f"Set a reminder for {wants} at {after(hours)}, cancel reminder {keys[done]}, and wait until {after(30)}."
    calls = [("set_reminder", {"repair": wants, "hours": hours}), ("cancel_reminder", {"reminder": keys[done]})]
    expected = [f"{wants} reminder {after(hours)}", f"{other} reminder {after(later)}", f"cancelled {keys[done]}"]
    return prompt, [*calls, ("wait", {"minutes": 1800})], {"ready": [], "facts": expected}


def delay(shop: Workshop, rng: random.Random, _: Deadline) -> Job:
    """Owners should know that their bikes will be late."""
    late = []
    shop.stock |= {"rim": 0, rng.choice(("brake pads", "derailleur")): 0}
    shop.repairs[rng.choice(list(shop.repairs))].part = "rim"
    for key, row in shop.repairs.items():
        day = rng.randint(0, 1)
        row.due = after(24 * day + 10)
        late += [key] if not shop.stock[row.part] and LEAD_HOURS[row.part] > 24 * day else []
    first, *_, last = shop.repairs
    prompt = f"Write 'delayed' to the owners of those of {first} to {last} whose part, if ordered now, comes too late."
    calls: list[Any] = [("list_repairs", {"status": "waiting"}), ("list_parts", {})]
    calls += [("message_owner", {"repair": key, "text": "delayed"}) for key in late]
    return prompt, calls, {"ready": [], "facts": [f"{key} delayed" for key in late]}


def task(split: str, world: type[Workshop], deadline: Deadline, seed: Callable[..., str], n: int) -> qn.Task[Workshop]:
    """Returns task n of a split."""
    rng, shop, family = random.Random(seed(split, n)), world(), (order, queue, remind, delay)[n % 4]  # noqa: S311
    shop.clock.now, shop.shared.counters["J"] = MONDAY.timestamp(), rng.randint(100, 900)
    shop.stock = {part: rng.randint(5, 9) for part in LEAD_HOURS}
    for owner in rng.sample(OWNERS, 5):
        part, minutes = rng.choice(list(LEAD_HOURS)), 30 * rng.randint(2, 6)
        shop.repairs[shop.new_id("J")] = Repair(owner, part, minutes, due=after(58))
    prompt, calls, truth = family(shop, rng, deadline)
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=shop, truth=truth, solution=tuple(calls))


def facts(view: qn.EpisodeView[Workshop]) -> list[str]:
    """Returns what has been written and ordered, and which earlier reminders have been cancelled."""
    gone = [f"cancelled {key}" for key in view.start.reminders if view.state.reminders[key]["status"] == "cancelled"]
    return [*view.state.messages, *(f"ordered {part}" for part in view.state.orders), *gone]


def make(
    *,
    world: type[Workshop] = Workshop,
    deadline: Deadline = lambda lead: after(24 * (lead // 24) + 10),
    seed: Callable[[str, int], str] = lambda split, n: f"spokes/{split}/{n}",
    kept: Callable[[Repair], bool] = lambda row: row.status == "ready" and row.ready <= row.due,
    pick: Callable[[list[bool]], list[bool]] = lambda checks: checks,
) -> qn.Environment[Workshop]:
    """Returns the environment: what was asked is done in time, and nothing else."""

    @qn.reward
    def done(view: qn.EpisodeView[Workshop]) -> qn.Score:
        seen, truth = facts(view), view.task.truth
        checks = pick([kept(view.state.repairs[k]) for k in truth["ready"]] + [one in seen for one in truth["facts"]])
        return qn.Score(sum(checks) / len(checks), f"{sum(checks)} of {len(checks)}")

    @qn.reward
    def untouched(view: qn.EpisodeView[Workshop]) -> qn.Score:
        truth, new = view.task.truth, [one for k, one in view.state.reminders.items() if k not in view.start.reminders]
        pending = [f"{one['repair']} reminder {one['at']}" for one in new if one["status"] == "pending"]
        started = {key for key, row in view.state.repairs.items() if row.status != "waiting"}
        stray = [*(Counter(facts(view) + pending) - Counter(truth["facts"])), *sorted(started - {*truth["ready"]})]
        return qn.Score(float(not stray), f"not asked for: {stray}")

    return qn.Environment(
        "spokes",
        tasks=lambda split: qn.Tasks(28 if split == "train" else 16, partial(task, split, world, deadline, seed)),
        harness=qn.ToolLoop(system=SYSTEM),
        verifier=qn.Verifier(done, untouched, combine="product"),
        state=world,
        splits=("train", "test"),
    )


class Board(Workshop):
    """Writes the lists on a board, and wipes it when a repair is changed."""

    board: dict[str, list[dict[str, Any]]] = {}

    def _listed(self, status: str) -> list[dict[str, Any]]:
        return self.board.setdefault(status, super()._listed(status))

    def _save(self, key: str, repair: Repair) -> None:
        super()._save(key, repair)
        self.board.clear()


class Form(Workshop):
    """Fills in the supplier's form, and reads from it what was confirmed."""

    form: ClassVar[dict[str, str]] = {}

    async def _confirmed(self, part: str) -> str:
        self.form["part"] = part
        await asyncio.sleep(0.01)
        return self.form["part"]


class Insistent(Workshop):
    """Sends reminders when they are due."""

    def remind(self, reminder: str) -> None:
        self._send(self.reminders[reminder])


env = make()
env_board = make(world=Board)
env_form = make(world=Form)
env_insistent = make(world=Insistent)
env_today = make(deadline=lambda lead: after(10))
env_not_late = make(kept=lambda row: row.ready <= row.due)
env_spot = make(pick=lambda checks: random.sample(checks, (len(checks) + 1) // 2))
env_seeds = make(seed=lambda split, n: f"spokes/{n if split == 'train' else n + 20}")
