"""Locks and canals: barges go to their wharves through locks, with as little water as possible."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Iterator
from typing import Any

import quintain as qn
from quintain.task import Call
from quintain.verifier import Criterion

BASINS = ("Abbey", "Mill", "Quarry", "Staithe", "Granary", "Tannery", "Weir", "Bridge")
LOCKS = ("Alder", "Birch", "Cedar", "Elm", "Hazel", "Rowan")
BARGES = ("Heron", "Kestrel", "Otter", "Plover", "Teal", "Wren")
COUNTS = {"train": 16, "test": 10}
SPARE = 3  # Fillings in the reservoir beyond the fewest that a task needs.

RULES = """You keep the locks of a canal. Bring each barge to its wharf:
{wanted}

Basins lie at different heights, with a lock between two neighbours. A basin has room for a number of barges, a lock
for one. A barge goes from a basin into a neighbouring lock, or from a lock into one of its two basins. The
gate to the upper basin is open while the lock is full, the gate to the lower basin while it is empty. Filling a lock
takes one filling from the reservoir, with or without a barge in it; draining is free, and the water is lost.

You may use {par} fillings; the score falls with each further one. Say "done" when all barges are at their wharves."""


class Canal(qn.State):
    """A canal: basins at different heights, locks between them, and barges in both.

    `ends` names the lower and the upper basin of each lock; `opening` and `levels` are barges and locks as they were at
    the beginning.
    """

    name: str
    room: dict[str, int]
    ends: dict[str, tuple[str, str]]
    full: dict[str, bool]
    barges: dict[str, str]
    wharves: dict[str, str]
    water: int
    fillings: int = 0
    arrivals: list[str] = []
    opening: dict[str, str] = {}
    levels: dict[str, bool] = {}

    @qn.tool
    def survey(self) -> str:
        """Show the whole canal as it is now: basins, locks, barges and the reservoir."""
        lines = [f"basin {one}: room for {room}, holds {self._listed(one)}" for one, room in self.room.items()]
        for lock, (low, high) in self.ends.items():
            level = "full" if self.full[lock] else "empty"
            lines.append(f"lock {lock}: between {low} (lower) and {high} (upper), {level}, holds {self._listed(lock)}")
        lines += [f"barge {one}: belongs to {wharf}" for one, wharf in self.wharves.items()]
        return "\n".join([*lines, f"reservoir: {self.water} fillings left, {self.fillings} used"])

    @qn.tool
    def look(self, basin: str) -> dict[str, Any]:
        """Show one basin: its room, and the barges in it.

        Args:
            basin: Name of the basin.
        """
        if basin not in self.room:
            raise qn.ToolError(f"there is no basin {basin!r}; basins: {', '.join(self.room)}")
        return {"room": self.room[basin], "holds": self._in(basin)}

    @qn.tool
    def fill(self, lock: str) -> str:
        """Fill an empty lock with one filling from the reservoir, so that its upper gate opens.

        Args:
            lock: Name of the lock.
        """
        self._known(lock)
        if self.full[lock] or not self.water:
            raise qn.ToolError(f"{lock} is full already" if self.full[lock] else "the reservoir is empty")
        self.water, self.fillings, self.full[lock] = self.water - 1, self.fillings + 1, True
        return f"{lock} is full; {self.water} fillings left"

    @qn.tool
    def drain(self, lock: str) -> str:
        """Drain a full lock, so that its lower gate opens. The water is lost.

        Args:
            lock: Name of the lock.
        """
        self._known(lock)
        if not self.full[lock]:
            raise qn.ToolError(f"{lock} is empty already")
        self.full[lock] = False
        return f"{lock} is empty"

    @qn.tool
    def move(self, barge: str, to: str) -> str:
        """Move a barge through an open gate: from a basin into a lock, or from a lock into a basin that has room.

        Args:
            barge: Name of the barge.
            to: Name of the lock or the basin.
        """
        if barge not in self.barges:
            raise qn.ToolError(f"there is no barge {barge!r}; barges: {', '.join(self.barges)}")
        here = self.barges[barge]
        lock, basin = (to, here) if to in self.ends else (here, to)
        if lock not in self.ends or basin not in self.ends[lock]:
            raise qn.ToolError(f"no gate leads from {here} to {to}")
        if basin != self.ends[lock][self.full[lock]]:
            raise qn.ToolError(f"the gate between {lock} and {basin} is shut")
        if self._is_crowded(to):
            raise qn.ToolError(f"{to} has no room: it holds {self._listed(to)}")
        self.barges[barge] = to
        if self.wharves[barge] == to:
            self.arrivals.append(barge)
        return f"{barge} is in {to}"

    @qn.tool
    def restart(self) -> str:
        """Put barges, locks and reservoir back as they were at the beginning; what was used then counts no more."""
        self.barges, self.full = dict(self.opening), dict(self.levels)
        self.water, self.fillings, self.arrivals = self.water + self.fillings, 0, []
        return "all is as it was at the beginning"

    def _known(self, lock: str) -> None:
        if lock not in self.ends:
            raise qn.ToolError(f"there is no lock {lock!r}; locks: {', '.join(self.ends)}")

    def _in(self, place: str) -> list[str]:
        return [barge for barge, where in self.barges.items() if where == place]

    def _listed(self, place: str) -> str:
        return ", ".join(self._in(place)) or "nothing"

    def _is_crowded(self, place: str) -> bool:
        return len(self._in(place)) >= self.room.get(place, 1)


Spot = tuple[tuple[str, ...], tuple[bool, ...]]  # Places of the barges, levels of the locks.


def steps(canal: Canal, spot: Spot) -> Iterator[tuple[int, Call, Spot]]:
    """Yields each legal action as (fillings, call, next spot)."""
    places, levels = spot
    for at, (lock, (low, high)) in enumerate(canal.ends.items()):
        turned = (*levels[:at], not levels[at], *levels[at + 1 :])
        yield int(not levels[at]), ("drain" if levels[at] else "fill", {"lock": lock}), (places, turned)
        gate = high if levels[at] else low
        for number, barge in enumerate(canal.barges):
            to = {gate: lock, lock: gate}.get(places[number])
            if to is not None and places.count(to) < canal.room.get(to, 1):
                moved = (*places[:number], to, *places[number + 1 :])
                yield 0, ("move", {"barge": barge, "to": to}), (moved, levels)


def solve(canal: Canal) -> tuple[int, tuple[Call, ...]] | None:
    """Returns the fewest fillings that bring all barges to their wharves, and the calls; None if nothing does."""
    start: Spot = (tuple(canal.barges.values()), tuple(canal.full.values()))
    wanted = tuple(canal.wharves[barge] for barge in canal.barges)
    number = itertools.count()
    queue: list[Any] = [(0, 0, next(number), start, ())]
    seen: set[Spot] = set()
    while queue:
        used, length, _, spot, path = heapq.heappop(queue)
        if spot[0] == wanted:
            calls: list[Call] = []
            while path:
                path, call = path
                calls.append(call)
            return used, tuple(reversed(calls))
        if spot not in seen:
            seen.add(spot)
            for cost, call, after in steps(canal, spot):
                if after not in seen:
                    heapq.heappush(queue, (used + cost, length + 1, next(number), after, (path, call)))
    return None


def drawn(rng: random.Random, name: str, kind: type[Canal]) -> Canal:
    """Returns a canal of four basins; whether it can be solved is not known yet."""
    basins, locks = rng.sample(BASINS, 4), rng.sample(LOCKS, 3)
    barges = rng.sample(BARGES, rng.choice((2, 3)))
    ends = {lock: (basins[n], basins[n + 1]) for n, lock in enumerate(locks)}
    if rng.random() < 0.5:  # A summit: both outer basins lie below it.
        ends[locks[2]] = (basins[3], basins[2])
    room = {basin: rng.choice((1, 2, 2)) for basin in sorted(basins)}
    opening = dict(zip(barges, rng.sample(basins, len(barges)), strict=True))
    wharves = dict(zip(barges, rng.sample(basins, len(barges)), strict=True))
    full = {lock: rng.random() < 0.5 for lock in locks}
    given: dict[str, Any] = {"room": room, "ends": ends, "wharves": wharves, "water": 0}
    return kind(name=name, barges=dict(opening), full=dict(full), opening=opening, levels=full, **given)


def task(split: str, n: int, kind: type[Canal]) -> qn.Task[Canal]:
    """Returns task n of a split: the first canal of its stream that has a solution of some length."""
    rng = random.Random(f"canal/{split}/{n}")  # noqa: S311
    while True:
        canal = drawn(rng, f"{split} cut {n}", kind)
        found = None if any(canal.barges[one] == to for one, to in canal.wharves.items()) else solve(canal)
        if found is not None and found[0] >= 2 and len(found[1]) >= 8:
            break
    par, calls = found
    canal.water = par + SPARE
    wanted = "\n".join(f"- {barge} to {wharf}" for barge, wharf in canal.wharves.items())
    return qn.Task(
        id=f"{split}-{n}",
        prompt=RULES.format(wanted=wanted, par=par),
        start=canal,
        truth={"wharves": canal.wharves, "par": par, "water": canal.water},
        solution=(("survey", {}), *calls),
    )


@qn.reward
def arrived(view: qn.EpisodeView[Canal]) -> qn.Score:
    """Share of the barges that are at their wharves."""
    wharves: dict[str, str] = view.task.truth["wharves"]
    away = [barge for barge, wharf in wharves.items() if view.state.barges[barge] != wharf]
    return qn.Score(1 - len(away) / len(wharves), f"not at its wharf: {', '.join(away) or 'none'}")


@qn.reward
def thrift(view: qn.EpisodeView[Canal]) -> qn.Score:
    """The fewest fillings / the fillings that were used."""
    par, used = view.task.truth["par"], view.state.fillings
    return qn.Score(par / max(par, used), f"{used} fillings, {par} are enough")


def canal(
    kind: type[Canal] = Canal, first: Criterion[Canal] = arrived, second: Criterion[Canal] = thrift
) -> qn.Environment[Canal]:
    """Returns the environment with a kind of canal and two criteria whose values are multiplied."""

    def tasks(split: str) -> qn.Tasks[Canal]:
        return qn.Tasks(COUNTS[split], lambda n: task(split, n, kind))

    rest: dict[str, Any] = {"harness": qn.ToolLoop(), "state": kind, "splits": tuple(COUNTS)}
    return qn.Environment("canal", tasks=tasks, verifier=qn.Verifier(first, second, combine="product"), **rest)


class CharteredCanal(Canal):
    """A canal that keeps its survey until a barge moves."""

    chart: str = ""

    def survey(self) -> str:
        self.chart = self.chart or super().survey()
        return self.chart

    def move(self, barge: str, to: str) -> str:
        self.chart = ""
        return super().move(barge, to)

    def restart(self) -> str:
        self.chart = ""
        return super().restart()


class LenientCanal(Canal):
    """A canal that has a look at any basin."""

    def look(self, basin: str) -> dict[str, Any]:
        return {"room": self.room.get(basin, 1), "holds": self._in(basin)}


_LEDGER: dict[str, int] = {}


class LedgerCanal(Canal):
    """A canal whose fillings are booked in a ledger, by the name of the canal."""

    def fill(self, lock: str) -> str:
        said = super().fill(lock)
        _LEDGER[self.name] = _LEDGER.get(self.name, 0) + 1
        self.fillings = _LEDGER[self.name]
        return said

    def restart(self) -> str:
        _LEDGER.pop(self.name, None)
        return super().restart()


class TightCanal(Canal):
    """A canal that counts the barges in a place before one more comes in."""

    def _is_crowded(self, place: str) -> bool:
        room = self.room.get(place)
        return bool(self._in(place)) if room is None else len(self._in(place)) > room


@qn.reward
def landings(view: qn.EpisodeView[Canal]) -> float:
    """Arrivals at the wharves / barges."""
    return min(1.0, len(view.state.arrivals) / len(view.task.truth["wharves"]))


@qn.reward
def berths(view: qn.EpisodeView[Canal]) -> float:
    """Share of the wharves that are taken."""
    wharves, taken = view.task.truth["wharves"].values(), set(view.state.barges.values())
    return sum(wharf in taken for wharf in wharves) / len(wharves)


@qn.reward
def supply(view: qn.EpisodeView[Canal]) -> float:
    """The water of the task / the fillings that were used, at most 1."""
    return min(1.0, view.task.truth["water"] / max(1, view.state.fillings))


env = canal()
env_chart = canal(CharteredCanal)
env_landings = canal(first=landings)
env_berths = canal(first=berths)
env_anywhere = canal(LenientCanal)
env_ledger = canal(LedgerCanal)
env_supply = canal(second=supply)
env_overfull = canal(TightCanal)
