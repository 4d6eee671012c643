"""Desk of a pollination broker: beekeepers' hives are placed in orchards for the weeks of the bloom."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import quintain as qn

COUNTS = {"train": 18, "test": 12}
REGIONS = ("Valley", "Ridge", "Coast")
KEEPERS = ("Abel Quist", "Dora Penn", "Ilse Vogt", "Juan Mora", "Kit Farrow", "Lena Stroud", "Omar Haddad", "Rosa Pym")
GROWERS = ("Alder Almonds", "Birch Cherries", "Copper Hill Pears", "Dunmore Apples", "Elm & Sons", "Farthing Plums")
COVER = "{grower} has sent order {main}. Cover it."
REPLACE = "{grower} withdraws order {main}. Wind it up, then cover order {other} of {heir}."
RULES = """You work at the desk of Beeline, which rents hives of beekeepers to growers for the bloom.
- An order takes exactly the hives that it asks for, from lots of its own region, each with at least its minimum of
  frames of bees. The desk's program does not check region and frames; you do.
- Cover an order at the lowest total price, then set it to covered. A quote binds nobody until it is accepted.
- To wind up an order, recall all of its hives and set it to cancelled. They may then serve another order.
- Touch no order that you were not asked about."""


@dataclass
class Lot:
    keeper: str
    region: str
    hives: int
    frames: int
    price: int  # Dollars per hive and bloom.


@dataclass
class Order:
    grower: str
    region: str
    hives: int
    frames: int  # The least that a hive must have.
    status: str = "open"


@dataclass
class Placement:
    order: str
    lot: str
    hives: int
    total: int
    active: bool = True  # Recalled placements stay on file.


class Desk(qn.State):
    """The books of the broker."""

    lots: dict[str, Lot]
    orders: dict[str, Order]
    placements: dict[str, Placement] = {}
    quotes: dict[str, Placement] = {}

    @qn.tool
    def show_order(self, order: str) -> dict[str, Any]:
        """Show an order and its active placements.

        Args:
            order: Id of the order, such as O214.
        """
        if order not in self.orders:
            raise qn.ToolError(f"no order {order!r}")
        return {"order": self.orders[order], "placements": placed(self, order)}

    @qn.tool
    def find_lots(self, region: str, min_frames: int = 0) -> list[dict[str, Any]]:
        """List the three cheapest lots of a region that have hives to place now, the cheapest first.

        Args:
            region: Valley, Ridge or Coast.
            min_frames: Leave out lots with fewer frames of bees per hive.
        """
        if region not in REGIONS:
            raise qn.ToolError(f"no region {region!r}; regions: {', '.join(REGIONS)}")
        return self._search(region, min_frames)[:3]

    @qn.tool
    def quote(self, order: str, lot: str, hives: int) -> str:
        """Ask for the price of hives of a lot for an order; returns its number and the total.

        Refused if the lot does not have so many hives free.

        Args:
            order: Id of the order.
            lot: Id of the lot.
            hives: How many hives, 1 and up.
        """
        if order not in self.orders or lot not in self.lots or hives < 1:
            raise qn.ToolError(f"no order {order!r}, no lot {lot!r}, or fewer hives than 1")
        hives = self._available(lot, hives)
        key, total = self.new_id("Q"), hives * self.lots[lot].price
        self._drawer()[key] = Placement(order, lot, hives, total)
        return f"{key}: ${total} in total"

    @qn.tool
    def accept(self, quote: str) -> str:
        """Accept a quote: the hives go to the orchard. Returns the number of the placement. A quote serves once.

        Args:
            quote: Number of the quote, such as Q1.
        """
        found = self._drawer().pop(quote, None)
        if found is None or found.order not in self.orders or self._free(found.lot) < found.hives:
            raise qn.ToolError(f"no quote {quote!r} is open, or its hives are no longer free")
        self.placements[key := f"P{len(self.placements) + 1}"] = found
        self._moved(found.lot, found.hives)
        return key

    @qn.tool
    def recall(self, placement: str) -> str:
        """Bring the hives of a placement back to their yard, where they can be placed again.

        Args:
            placement: Number of the placement, such as P4.
        """
        found = self.placements.get(placement)
        if found is None or not found.active:
            raise qn.ToolError(f"no active placement {placement!r}")
        found.active = False
        self._moved(found.lot, -found.hives)
        return f"{found.hives} hives are back in the yard of {found.lot}"

    @qn.tool
    def set_status(self, order: str, status: Literal["open", "covered", "cancelled"]) -> str:
        """Set the status of an order.

        Args:
            order: Id of the order.
            status: The new status.
        """
        if order not in self.orders:
            raise qn.ToolError(f"no order {order!r}")
        self.orders[order].status = status
        return f"{order} is {status}"

    def _free(self, lot: str) -> int:
        return max(0, self.lots[lot].hives - self._out(lot)) if lot in self.lots else 0

    def _out(self, lot: str) -> int:
        return sum(one.hives for one in self.placements.values() if one.active and one.lot == lot)

    def _moved(self, lot: str, hives: int) -> None: ...

    def _drawer(self) -> dict[str, Placement]:
        return self.quotes

    def _available(self, lot: str, hives: int) -> int:
        if hives > self._free(lot):
            raise qn.ToolError(f"{lot} has {self._free(lot)} hives free")
        return hives

    def _search(self, region: str, min_frames: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for key, lot in sorted(self.lots.items(), key=lambda item: item[1].price):
            if lot.region == region and lot.frames >= min_frames and (free := self._free(key)):
                price = f"${lot.price} per hive"
                rows.append({"lot": key, "keeper": lot.keeper, "frames": lot.frames, "price": price, "free": free})
        return rows


def task(split: str, n: int, world: type[Desk]) -> qn.Task[Desk]:
    """Returns task n of a split; its solution is found on a copy of its world."""
    rng = random.Random(f"pollination/{split}/{n}")  # noqa: S311
    family, request = (("cover", COVER), ("replace", REPLACE))[n % 2]
    home, stock = rng.choice(REGIONS), list[Lot]()
    for region in REGIONS:
        frames, prices = sorted(rng.sample(range(4, 13), 6)), sorted(rng.sample(range(6, 17), 6))
        stock += [Lot(rng.choice(KEEPERS), region, rng.randrange(24, 49, 4), *row) for row in zip(frames, prices)]  # noqa: B905
    lots = {f"L{k}": lot for k, lot in enumerate(rng.sample(stock, len(stock)), 1)}
    fit = sorted((key for key, lot in lots.items() if lot.region == home), key=lambda key: lots[key].price)[2:]
    first, least, names = lots[fit[0]].hives, lots[fit[0]].frames, rng.sample(GROWERS, 3)
    wanted = (first + rng.randrange(4, 16), first + rng.randrange(4, 16), 8)
    rows = [Order(name, home, hives, least) for name, hives in zip(names, wanted, strict=True)]
    main, other, neighbour = ids = tuple(f"O{k}" for k in rng.sample(range(100, 1000), 3))
    books = Desk(lots=lots, orders=dict(sorted(zip(ids, rows, strict=True))))
    cover(books, neighbour, fit[2:])
    if family == "replace":
        cover(books, main, fit)
    desk = Desk(lots=books.lots, orders=books.orders, placements=books.placements).copy()
    calls: list[tuple[str, dict[str, Any]]] = [("show_order", {"order": main})]
    if family == "replace":
        calls += [("recall", {"placement": key}) for key, one in desk.placements.items() if one.order == main]
        calls.append(("set_status", {"order": main, "status": "cancelled"}))
    for tool, given in calls:
        getattr(desk, tool)(**given)
    goal = other if family == "replace" else main
    calls += cover(desk, goal, fit)
    best = sum(one.total for one in placed(desk, goal).values())
    return qn.Task(
        id=f"{split}-{n}",
        prompt=request.format(main=main, grower=names[0], other=other, heir=names[1]),
        start=world(lots=books.lots, orders=books.orders, placements=books.placements).copy(),
        truth={"fill": goal, "best": best, "cancel": [main] if family == "replace" else []},
        solution=tuple(calls),
        tags={"family": family},
    )


def cover(desk: Desk, order: str, lots: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """Covers an order from lots in the given order; returns the calls."""
    row = desk.orders[order]
    calls: list[tuple[str, dict[str, Any]]] = [("show_order", {"order": order})]
    calls.append(("find_lots", {"region": row.region, "min_frames": row.frames}))
    lack = row.hives
    for lot in lots:
        if hives := min(lack, desk._free(lot)):
            number = desk.quote(order, lot, hives).partition(":")[0]
            desk.accept(number)
            calls += [("quote", {"order": order, "lot": lot, "hives": hives}), ("accept", {"quote": number})]
            lack -= hives
    desk.set_status(order, "covered")
    return [*calls, ("set_status", {"order": order, "status": "covered"})]


def placed(desk: Desk, order: str) -> dict[str, Placement]:
    """Returns the active placements of an order."""
    return {key: one for key, one in desk.placements.items() if one.active and one.order == order}


def is_filled(desk: Desk, order: str, *, strength: bool = True) -> bool:
    """Whether an order says that it is covered, and has its hives, all of lots that may serve it."""
    row, lots = desk.orders[order], [desk.lots[one.lot] for one in placed(desk, order).values()]
    fit = all(lot.region == row.region and (lot.frames >= row.frames or not strength) for lot in lots)
    return fit and row.status == "covered" and sum(one.hives for one in placed(desk, order).values()) == row.hives


def verifier(filled: Callable[[Desk, str], bool]) -> qn.Verifier[Desk]:
    """Returns the verifier: the share of the goals that hold, and 0 after a change that nobody asked for."""

    @qn.reward
    def done(view: qn.EpisodeView[Desk]) -> qn.Score:
        desk, truth, goal = view.state, view.task.truth, view.task.truth["fill"]
        goals = {"covered": filled(desk, goal)}
        goals["cheapest"] = filled(desk, goal) and sum(p.total for p in placed(desk, goal).values()) <= truth["best"]
        for order in truth["cancel"]:
            goals["wound up"] = desk.orders[order].status == "cancelled" and not placed(desk, order)
        return qn.Score(sum(goals.values()) / len(goals), f"missing: {[name for name in goals if not goals[name]]}")

    @qn.reward
    def untouched(view: qn.EpisodeView[Desk]) -> float:
        asked = {view.task.truth["fill"], *view.task.truth["cancel"]}
        kept: list[Any] = []
        for desk in (view.start, view.state):
            orders = {key: one for key, one in desk.orders.items() if key not in asked}
            kept.append((orders, {key: one for key, one in desk.placements.items() if one.order not in asked}))
        return float(kept[0] == kept[1])

    return qn.Verifier(done, untouched, combine="product")


class CachedDesk(Desk):
    searches: dict[str, list[dict[str, Any]]] = {}

    def _search(self, region: str, min_frames: int) -> list[dict[str, Any]]:
        key = f"{region}/{min_frames}/{len(self.placements)}"
        if key not in self.searches:
            self.searches[key] = Desk._search(self, region, min_frames)
        return self.searches[key]


class ObligingDesk(Desk):
    def _available(self, lot: str, hives: int) -> int:
        return min(hives, self._free(lot))


class CountingDesk(Desk):
    counts: ClassVar[dict[str, int]] = {}

    def _out(self, lot: str) -> int:
        return self.counts.setdefault(lot, Desk._out(self, lot))

    def _moved(self, lot: str, hives: int) -> None:
        if lot in self.counts:
            self.counts[lot] += hives


class DrawerDesk(Desk):
    drawer: ClassVar[dict[str, Placement]] = {}

    def _drawer(self) -> dict[str, Placement]:
        return self.drawer


class LabelDesk(Desk):
    def _search(self, region: str, min_frames: int) -> list[dict[str, Any]]:
        return sorted(Desk._search(self, region, min_frames), key=lambda row: row["price"])


def build(world: type[Desk] = Desk, *, filled: Callable[[Desk, str], bool] = is_filled) -> qn.Environment[Desk]:
    """Returns an environment of the desk."""
    return qn.Environment(
        "pollination",
        tasks=lambda split: qn.Tasks(COUNTS[split], lambda n: task(split, n, world)),
        harness=qn.ToolLoop(system=RULES),
        verifier=verifier(filled),
        state=world,
        splits=tuple(COUNTS),
    )


env = build()
env_cached = build(CachedDesk)
env_oblige = build(ObligingDesk)
env_counts = build(CountingDesk)
env_drawer = build(DrawerDesk)
env_labels = build(LabelDesk)
env_weak = build(filled=lambda desk, order: is_filled(desk, order, strength=False))
env_marked = build(filled=lambda desk, order: desk.orders[order].status == "covered")
