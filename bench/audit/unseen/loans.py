"""Loans desk of a library: copies of books, readers, loans with due days, and reservations."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

import quintain as qn
from quintain.state import Rng

DAY = 86_400
TITLES = ("Amber", "Birch", "Cobalt", "Dunes", "Ember", "Fjord", "Gravel", "Heath")
NAMES = ("Ada", "Bo", "Cy", "Dee", "Eli", "Flo", "Gus", "Hal")


class Reader(msgspec.Struct):
    name: str
    joined: int
    fines: int = 0


class Copy(msgspec.Struct):
    title: str
    reader: str | None = None
    due: int = 0
    renewals: int = 0


class Desk(qn.State):
    readers: dict[str, Reader]
    copies: dict[str, Copy]
    queues: dict[str, list[str]]
    today: int = 100

    @qn.tool
    def find_reader(self, name: str) -> list[str]:
        """List the ids of the readers with a name.

        Args:
            name: First name.
        """
        return sorted(key for key, row in self.readers.items() if row.name == name)

    @qn.tool
    def show_reader(self, reader: str) -> dict[str, Any]:
        """Show the name, the day of joining, the fines in cents, and the copies that a reader has.

        Args:
            reader: Id of the reader, such as "R2".
        """
        row = self._reader(reader)
        held = sorted(key for key, copy in self.copies.items() if copy.reader == reader)
        return {"name": row.name, "joined": row.joined, "fines": row.fines, "copies": held}

    @qn.tool
    def find_copies(self, title: str) -> dict[str, Any]:
        """Show the copies of a title with their readers, null if on the shelf, and the queue.

        Args:
            title: The title.
        """
        return self._found(self._title(title))

    @qn.tool
    def lend(self, copy: str, reader: str) -> str:
        """Lend a copy from the shelf for 14 days; a title with a queue goes only to the first in it, who leaves it.

        Args:
            copy: Id of the copy, such as "C5".
            reader: Id of the reader, who must have fewer than 3 copies and no fines.
        """
        row, person = self._copy(copy), self._reader(reader)
        held = sum(one.reader == reader for one in self.copies.values())
        queue = self.queues[row.title]
        if row.reader is not None or person.fines or held >= 3 or (queue and queue[0] != reader):
            raise qn.ToolError(f"{copy} is lent or queued for, or {reader} has fines or three copies")
        return self._lend(copy, reader)

    @qn.tool
    def take_back(self, copy: str) -> str:
        """Take a copy back; each day after the due day costs the reader a fine of 20 cents.

        Args:
            copy: Id of the copy.
        """
        row = self._copy(copy)
        if row.reader is None:
            raise qn.ToolError(f"{copy} is on the shelf")
        fine = 20 * max(0, self.today - row.due)
        self.readers[row.reader].fines += fine
        row.reader, row.due, row.renewals = None, 0, 0
        return f"{copy} is on the shelf, fine {fine}"

    @qn.tool
    def renew(self, copy: str) -> str:
        """Move the due day of a loan 14 days on; at most twice, and never if someone queues for the title.

        Args:
            copy: Id of the copy.
        """
        row = self._copy(copy)
        if row.reader is None or self._renewed_enough(row) or self.queues[row.title]:
            raise qn.ToolError(f"{copy} is not lent, was renewed twice, or someone queues for it")
        row.due += 14
        row.renewals += 1
        return f"due on day {row.due}"

    @qn.tool
    def reserve(self, title: str, reader: str) -> str:
        """Put a reader at the end of the queue for a title.

        Args:
            title: The title.
            reader: Id of the reader.
        """
        queue = self.queues[self._title(title)]
        self._reader(reader)
        if reader in queue:
            raise qn.ToolError(f"{reader} queues for {title} already")
        queue.append(reader)
        return f"{reader} is number {len(queue)}"

    @qn.tool
    def pay(self, reader: str, cents: int) -> str:
        """Take money for the fines of a reader.

        Args:
            reader: Id of the reader.
            cents: Amount, from 1 to the fines.
        """
        row = self._reader(reader)
        self._pay(row, cents)
        return f"{row.fines} left to pay"

    def _found(self, title: str) -> dict[str, Any]:
        copies = {key: row.reader for key, row in sorted(self.copies.items()) if row.title == title}
        return {"copies": copies, "queue": list(self.queues[title])}

    def _lend(self, copy: str, reader: str) -> str:
        row = self.copies[copy]
        row.reader, row.due = reader, self.today + 14
        if reader in self.queues[row.title]:
            self.queues[row.title].remove(reader)
        return f"due on day {row.due}"

    def _renewed_enough(self, row: Copy) -> bool:
        return row.renewals >= 2

    def _pay(self, row: Reader, cents: int) -> None:
        if not 1 <= cents <= row.fines:
            raise qn.ToolError(f"cents must be from 1 to the fines of {row.fines}, got {cents}")
        row.fines -= cents

    def _reader(self, reader: str) -> Reader:
        if reader not in self.readers:
            raise qn.ToolError(f"no reader {reader!r}; ids look like R2")
        return self.readers[reader]

    def _copy(self, copy: str) -> Copy:
        if copy not in self.copies:
            raise qn.ToolError(f"no copy {copy!r}; ids look like C5")
        return self.copies[copy]

    def _title(self, title: str) -> str:
        if title not in self.queues:
            raise qn.ToolError(f"no title {title!r}")
        return title


def summary(world: Desk) -> dict[str, Any]:
    """Returns what the verifier compares."""
    held = (world.readers, world.copies, world.queues)
    return dict(zip(("readers", "copies", "queues"), msgspec.to_builtins(held), strict=True))


def task(split: str, n: int, world: type[Desk], bug: str) -> qn.Task[Desk]:
    rng = Rng(key=hashlib.blake2b(f"loans/{split}/{n}".encode(), digest_size=16).digest())
    titles, names = rng.sample(TITLES, 5), rng.sample(NAMES, 6)
    first, days = (90, 30) if bug == "not_yet" else (0, 60)
    readers = {f"R{k}": Reader(name, first + rng.below(days)) for k, name in enumerate(names, 1)}
    copies = {f"C{k}": Copy(titles[k % 5]) for k in range(1, 11)}
    queues: dict[str, list[str]] = {title: [] for title in sorted(TITLES) if title in titles}
    late, wanted = 1 + rng.below(9), titles[1]
    copies["C1"] = Copy(wanted, "R1", 100 - late)
    copies["C6"] = Copy(wanted, "R2", 103 + rng.below(9), rng.below(3))
    copies["C2"] = Copy(titles[2], "R3", 101 + rng.below(9), 1)
    queues[wanted].append("R4")
    job = f"Job {rng.below(10**6):06}, day 100: {names[0]} brings back {wanted}"
    solution: list[tuple[str, dict[str, Any]]] = [("find_copies", {"title": wanted}), ("take_back", {"copy": "C1"})]
    if n % 3 == 0:
        prompt = f"{job} and pays the fine. Lend the copy to the first in the queue, then queue {names[0]} for it."
        solution += [("pay", {"reader": "R1", "cents": 20 * late}), ("lend", {"copy": "C1", "reader": "R4"})]
        solution.append(("reserve", {"title": wanted, "reader": "R1"}))
    elif n % 3 == 1:
        prompt = f"{job} and pays 10 cents of the fine. Then renew the copy of {titles[2]} that {names[2]} has."
        solution += [("pay", {"reader": "R1", "cents": 10}), ("renew", {"copy": "C2"})]
    else:
        prompt = f"{job}. Lend it to {names[3]}, who queues for it, and {titles[3]} to {names[4]} (first free copy)."
        solution += [("lend", {"copy": "C1", "reader": "R4"}), ("lend", {"copy": "C3", "reader": "R5"})]
    goal = Desk(readers=readers, copies=copies, queues=queues).copy()
    for name, arguments in solution:
        getattr(goal, name)(**arguments)
    start = world(readers=readers, copies=copies, queues=queues)
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=start, truth=summary(goal), solution=tuple(solution))


@qn.reward
def desk_agrees(view: qn.EpisodeView[Desk]) -> float:
    return float(summary(view.state) == view.task.truth)


# Variants of the sound world.


class Shelf(Desk):
    seen: dict[str, dict[str, Any]] = {}

    def _found(self, title: str) -> dict[str, Any]:
        return self.seen.setdefault(title, super()._found(title))

    def _lend(self, copy: str, reader: str) -> str:
        self.seen.clear()
        return super()._lend(copy, reader)


class OneDesk(Desk):
    served: ClassVar[dict[str, str]] = {}

    @qn.tool
    async def take_back(self, copy: str) -> str:  # type: ignore[override]
        """Take a copy back; each day after the due day costs the reader a fine of 20 cents.

        Args:
            copy: Id of the copy.
        """
        self.served["due"] = str(self._copy(copy).due)
        await asyncio.sleep(0)
        self._copy(copy).due = int(self.served["due"])
        return Desk.take_back(self, copy)


class Ledger(Desk):
    paid: ClassVar[dict[str, int]] = {}

    def _pay(self, row: Reader, cents: int) -> None:
        super()._pay(row, cents)
        credit = self.paid.get(row.name, 0)
        self.paid[row.name] = credit + cents
        row.fines = max(0, row.fines - credit)


class Overpaid(Desk):
    def _pay(self, row: Reader, cents: int) -> None:
        row.fines -= max(0, min(cents, row.fines))


class ThriceRenewed(Desk):
    def _renewed_enough(self, row: Copy) -> bool:
        return row.renewals > 2


@qn.reward
def lent_right(view: qn.EpisodeView[Desk]) -> float:
    rows = summary(view.state)["copies"], view.task.truth["copies"]
    found, wanted = ({key: (row["reader"], row["renewals"]) for key, row in one.items()} for one in rows)
    return float(found == wanted)


@qn.reward
def sampled(view: qn.EpisodeView[Desk]) -> float:
    found, wanted = summary(view.state), view.task.truth
    few = sorted({*wanted["copies"]}, key=hash)[:3]  # Comparing all copies is slow.
    same = all(found["copies"][key] == wanted["copies"][key] for key in few)
    return float(same and found["queues"] == wanted["queues"] and found["readers"] == wanted["readers"])


WORLDS: dict[str, type[Desk]] = {
    "shelf": Shelf,
    "one_desk": OneDesk,
    "ledger": Ledger,
    "overpaid": Overpaid,
    "thrice_renewed": ThriceRenewed,
}
VERIFIERS = {"lent_right": lent_right, "sampled": sampled}


def make(bug: str = "") -> qn.Environment[Desk]:
    """Returns the sound environment, or a variant of it."""
    world = WORLDS.get(bug, Desk)

    def tasks(split: str) -> Sequence[qn.Task[Desk]]:
        return qn.Tasks(24, lambda n: task(split, n, world, bug))

    return qn.Environment(
        "loans",
        tasks=tasks,
        harness=qn.ToolLoop(system="You work at the loans desk of a library. Do what is asked, and nothing else."),
        verifier=qn.Verifier(VERIFIERS.get(bug, desk_agrees)),
        state=world,
        config=qn.Config(max_turns=20),
    )


env = make()
env_shelf = make("shelf")
env_one_desk = make("one_desk")
env_ledger = make("ledger")
env_overpaid = make("overpaid")
env_thrice_renewed = make("thrice_renewed")
env_lent_right = make("lent_right")
env_sampled = make("sampled")
env_not_yet = make("not_yet")
