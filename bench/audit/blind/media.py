"""Library of media: catalogue, loans, holds and fines."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Literal

import msgspec

import quintain as qn
from quintain.state import Rng

TODAY = 400  # days since the system was introduced
PERIOD = 28
Kind = Literal["book", "film", "audiobook"]
KINDS: tuple[Kind, ...] = ("book", "film", "audiobook")
TITLES = ("The Night Ferry", "Salt Roads", "A Winter Garden", "The Cartographer", "Northern Light", "The Orchard Wall")
MORE = ("Salt and Iron", "Night Bus to Lisbon", "The Glass Orchard", "Letters from Aldra", "Low Tide")
NAMES = ("Abel Moreau", "Bea Lindqvist", "Cem Aydin", "Dora Klein", "Eddy Park", "Fay Osei", "Gil Santos", "Hana Ito")


class Item(msgspec.Struct):
    id: str
    title: str
    kind: Kind
    year: int
    copies: int


class Member(msgspec.Struct):
    id: str
    name: str
    fines: int  # cents


class Loan(msgspec.Struct):
    id: str
    item: str
    member: str
    lent: int
    due: int
    returned: int | None = None


class Media(qn.State):
    items: dict[str, Item]
    members: dict[str, Member]
    loans: dict[str, Loan]
    holds: dict[str, list[str]] = {}  # members by item, first come first
    out: dict[str, int] = {}  # copies on loan by item; kept up to date by lend and give_back

    @qn.tool
    def search(
        self, words: str, kind: Kind | None = None, limit: Annotated[int, msgspec.Meta(ge=1, le=50)] = 20
    ) -> list[dict[str, Any]]:
        """Search titles; an item is found if its title has all words. The order is that of the catalogue.

        Args:
            words: One or more words; case does not matter.
            kind: Only this kind of item.
            limit: Most items that are returned.
        """
        wanted = words.casefold().split()
        if not wanted:
            raise qn.ToolError("give at least one word")
        found = [one for one in self._matching(wanted) if kind in (None, one.kind)]
        return [self._shown(one) for one in found[:limit]]

    @qn.tool
    def member(self, member: str) -> dict[str, Any]:
        """Show a member: fines in cents, and the loans that are out with their due days.

        Args:
            member: Name or id of the member, such as "M3".
        """
        row = self._member(member)
        mine = [one for one in self.loans.values() if one.member == row.id and one.returned is None]
        return {**msgspec.to_builtins(row), "loans": msgspec.to_builtins(mine), "today": TODAY}

    @qn.tool
    def lend(self, item: str, member: str) -> Loan:
        """Lend a copy for 28 days. Members who owe 500 cents or more may not borrow.

        Args:
            item: Id of the item, such as "I4".
            member: Name or id of the member.
        """
        row, who = self._item(item), self._member(member)
        if who.fines >= 500:
            raise qn.ToolError(f"{who.name} owes {who.fines} cents")
        queue = self.holds.get(item, [])
        if self._free(row) <= len([one for one in queue if one != who.id]):
            raise qn.ToolError(f"no copy of {item} is free")
        loan = Loan(self._number(), item, who.id, TODAY, TODAY + PERIOD)
        self.loans[loan.id] = loan
        self._count(item, 1)
        if who.id in queue:
            queue.remove(who.id)
        return loan

    @qn.tool
    def give_back(self, loan: str) -> str:
        """Take an item back. The member is fined 25 cents for each day after the due day.

        Args:
            loan: Id of the loan, such as "L2".
        """
        row = self._loan(loan)
        fine = 25 * max(0, TODAY - row.due)
        self.members[row.member].fines += fine
        row.returned = TODAY
        self._count(row.item, -1)
        return f"{row.item} is back; fine: {fine} cents"

    @qn.tool
    def renew(self, loan: str) -> str:
        """Renew a loan: it is due 28 days from today. Refused if it is late, or if another member holds the item.

        Args:
            loan: Id of the loan.
        """
        row = self._loan(loan)
        self._check_renewal(row)
        row.due = TODAY + PERIOD
        return f"{loan} is due on day {row.due}"

    @qn.tool
    def hold(self, item: str, member: str) -> str:
        """Put a member at the end of the queue for an item of which no copy is free.

        Args:
            item: Id of the item.
            member: Name or id of the member.
        """
        row, who = self._item(item), self._member(member)
        queue = self.holds.get(item, [])
        if self._free(row) > len(queue) or who.id in queue:
            raise qn.ToolError(f"a copy of {item} is free, or {who.name} waits for it already")
        self.holds[item] = [*queue, who.id]
        return f"{who.name} is number {len(self.holds[item])} in the queue"

    @qn.tool
    def pay(self, member: str, cents: Annotated[int, msgspec.Meta(ge=1)]) -> str:
        """Enter a payment of fines.

        Args:
            member: Name or id of the member.
            cents: The amount; at most what the member owes.
        """
        row = self._member(member)
        if cents > row.fines:
            raise qn.ToolError(f"{row.name} owes only {row.fines} cents")
        row.fines -= cents
        return f"{row.name} owes {row.fines} cents"

    def _matching(self, wanted: list[str]) -> list[Item]:
        return [one for one in self.items.values() if set(wanted) <= set(one.title.casefold().split())]

    def _shown(self, row: Item) -> dict[str, Any]:
        return {**msgspec.to_builtins(row), "free": self._free(row), "holds": len(self.holds.get(row.id, []))}

    def _free(self, row: Item) -> int:
        return row.copies - self.out.get(row.id, 0)

    def _count(self, item: str, change: int) -> None:
        self.out[item] = self.out.get(item, 0) + change

    def _number(self) -> str:
        return self.new_id("N")

    def _check_renewal(self, row: Loan) -> None:
        if row.due < TODAY or self.holds.get(row.item):
            raise qn.ToolError(f"{row.id} cannot be renewed: it is late, or another member waits for {row.item}")

    def _item(self, item: str) -> Item:
        if item not in self.items:
            raise qn.ToolError(f"no item {item!r}; ids look like I4")
        return self.items[item]

    def _member(self, member: str) -> Member:
        found = [one for one in self.members.values() if member in (one.id, one.name)]
        if not found:
            raise qn.ToolError(f"no member {member!r}")
        return found[0]

    def _loan(self, loan: str) -> Loan:
        if loan not in self.loans or self.loans[loan].returned is not None:
            raise qn.ToolError(f"no loan {loan!r} that is out")
        return self.loans[loan]


Dates = Callable[[Rng], tuple[int, int]]


def period(rng: Rng) -> tuple[int, int]:
    """Returns the days on which a loan was lent and is due."""
    lent = TODAY - 1 - rng.below(45)
    return lent, lent + PERIOD


def start(rng: Rng, dates: Dates) -> Media:
    """Returns a library in which some titles exist as a book and as a film, and some loans are late."""
    shelf: list[tuple[str, Kind]] = []
    for title in TITLES:
        for kind in rng.sample(KINDS, 2):
            shelf.append((title, kind))  # noqa: PERF401  # keeps the type of the pair
    for title in MORE:
        shelf.append((title, rng.choice(KINDS)))  # noqa: PERF401
    rng.shuffle(shelf)
    items = {
        f"I{n}": Item(f"I{n}", title, kind, 1962 + rng.below(60), 1 + rng.below(3))
        for n, (title, kind) in enumerate(shelf, 1)
    }
    members = {f"M{n}": Member(f"M{n}", name, 5 * rng.below(130)) for n, name in enumerate(NAMES, 1)}
    world = Media(items=items, members=members, loans={})
    for n, item in enumerate(rng.sample(tuple(items), 9), 1):
        lent, due = dates(rng)
        world.loans[f"L{n}"] = Loan(f"L{n}", item, rng.choice(tuple(members)), lent, due)
        world.out[item] = 1
    taken = world.loans["L1"]
    items[taken.item].copies = 1
    world.holds[taken.item] = [rng.choice([key for key in members if key != taken.member])]
    return world


def request(world: Media, rng: Rng, family: int) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """Returns a prompt and its solution: lend, take back and settle, renew, or queue."""
    who = world.members[rng.choice(tuple(world.members))]
    late = [one for one in world.loans.values() if one.due < TODAY]
    fresh = [one for one in world.loans.values() if one.due >= TODAY and not world.holds.get(one.item)]
    if family == 1 and late:
        loan = rng.choice(late)
        row, who = world.items[loan.item], world.members[loan.member]
        owed = who.fines + 25 * (TODAY - loan.due)
        text = f"{who.name} brings back the {row.kind} {row.title!r} and pays all fines, the new one included."
        calls: list[tuple[str, dict[str, Any]]] = [
            ("give_back", {"loan": loan.id}),
            ("pay", {"member": who.name, "cents": owed}),
        ]
        return text, [("member", {"member": who.name}), *calls]
    if family == 2 and fresh:
        loan = rng.choice(fresh)
        row, who = world.items[loan.item], world.members[loan.member]
        text = f"{who.name} wants to keep the {row.kind} {row.title!r} longer: renew it."
        return text, [("member", {"member": who.name}), ("renew", {"loan": loan.id})]
    if family == 3:
        row = world.items[next(iter(world.holds))]
        near = [*world.holds[row.id], *(one.member for one in world.loans.values() if one.item == row.id)]
        who = rng.choice([one for one in world.members.values() if one.id not in near])
        text = f"{who.name} would like the {row.kind} {row.title!r}, which is out: queue for it."
        return text, [_find(row), _call("hold", row, who)]
    who = rng.choice([one for one in world.members.values() if one.fines < 500])
    row = next(one for one in world.items.values() if one.id not in world.out and one.title in TITLES)
    text = f"{who.name} wants to borrow the {row.kind} {row.title!r}."
    return text, [_find(row), _call("lend", row, who)]


def _find(row: Item) -> tuple[str, dict[str, Any]]:
    return "search", {"words": row.title, "kind": row.kind}


def _call(name: str, row: Item, who: Member) -> tuple[str, dict[str, Any]]:
    return name, {"item": row.id, "member": who.name}


def summary(world: Media) -> dict[str, Any]:
    """Returns what the verifier compares, without the ids of loans."""
    loans = sorted([one.item, one.member, one.lent, one.due, one.returned or 0] for one in world.loans.values())
    return {"loans": loans, "holds": {key: held for key, held in world.holds.items() if held}, "fines": fines(world)}


def fines(world: Media) -> dict[str, int]:
    return {one.id: one.fines for one in world.members.values()}


def task(
    split: str, n: int, world: type[Media], *, key: str = "media/{split}/{n}", dates: Dates = period
) -> qn.Task[Media]:
    rng = Rng(key=hashlib.blake2b(key.format(split=split, n=n).encode(), digest_size=16).digest())
    begin = start(rng, dates)
    prompt, solution = request(begin, rng, n % 4)
    goal = begin.copy()
    for name, arguments in solution:
        getattr(goal, name)(**arguments)
    fields = {name: getattr(begin, name) for name in ("items", "members", "loans", "holds", "out")}
    titles = {one.id: one.title for one in begin.items.values()}
    truth = {**summary(goal), "titles": titles}
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=world(**fields), truth=truth, solution=tuple(solution))


@qn.reward
def desk_agrees(view: qn.EpisodeView[Media]) -> qn.Score:
    wrong = [name for name, found in summary(view.state).items() if found != view.task.truth[name]]
    return qn.Score(float(not wrong), f"wrong: {', '.join(wrong)}" if wrong else "")


# Variants of the sound world.


class NightlyCount(Media):
    def _count(self, item: str, change: int) -> None:
        if change > 0:
            self.out[item] = self.out.get(item, 0) + change


class WordIndex(Media):
    def _matching(self, wanted: list[str]) -> list[Item]:
        hits = {one.id for one in self.items.values() if set(wanted) <= set(one.title.casefold().split())}
        return [self.items[key] for key in hits]


class Counter(Media):
    numbers: ClassVar[Iterator[int]] = itertools.count(1)

    def _number(self) -> str:
        return f"N{next(self.numbers)}"


class OwnQueue(Media):
    def _check_renewal(self, row: Loan) -> None:
        if row.due < TODAY:
            raise qn.ToolError(f"{row.id} cannot be renewed: it is late")


@qn.reward
def titles_agree(view: qn.EpisodeView[Media]) -> float:
    found, wanted, titles = summary(view.state), view.task.truth, view.task.truth["titles"]

    def loans(rows: list[Any]) -> list[Any]:
        return sorted([titles[item].lower(), *rest] for item, *rest in rows)

    same = loans(found["loans"]) == loans(wanted["loans"])
    return float(same and all(found[name] == wanted[name] for name in ("holds", "fines")))


@qn.reward
def euros_agree(view: qn.EpisodeView[Media]) -> float:
    found, wanted = summary(view.state), view.task.truth
    euros = all(found["fines"][key] // 100 == cents // 100 for key, cents in wanted["fines"].items())
    return float(euros and all(found[name] == wanted[name] for name in ("loans", "holds")))


def shared(split: str, n: int, world: type[Media]) -> qn.Task[Media]:
    return task(split, n, world, key="media/{n}")


def drawn(rng: Rng) -> tuple[int, int]:
    return TODAY - rng.below(45), TODAY - 25 + rng.below(45)


def undated(split: str, n: int, world: type[Media]) -> qn.Task[Media]:
    return task(split, n, world, dates=drawn)


Maker = Callable[[str, int, type[Media]], qn.Task[Media]]
MAKERS: dict[str, Maker] = {"shared": shared, "undated": undated}
VERIFIERS = {"titles": titles_agree, "euros": euros_agree}
WORLDS: dict[str, type[Media]] = {
    "nightly_count": NightlyCount,
    "word_index": WordIndex,
    "counter": Counter,
    "own_queue": OwnQueue,
}


def make(bug: str = "") -> qn.Environment[Media]:
    """Returns the sound environment, or a variant of it."""
    world, maker = WORLDS.get(bug, Media), MAKERS.get(bug, task)
    return qn.Environment(
        "media",
        tasks=lambda split: qn.Tasks(16, lambda n: maker(split, n, world)),
        harness=qn.ToolLoop(system="You work at the desk of a library. Do what is asked, and nothing else."),
        verifier=qn.Verifier(VERIFIERS.get(bug, desk_agrees)),
        state=world,
        config=qn.Config(max_turns=12),
    )


env = make()
env_nightly_count = make("nightly_count")
env_word_index = make("word_index")
env_counter = make("counter")
env_own_queue = make("own_queue")
env_titles = make("titles")
env_euros = make("euros")
env_shared = make("shared")
env_undated = make("undated")
