"""Allotment society: garden plots, their holders and a waiting list."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

import quintain as qn
from quintain.state import Rng

NAMES = ("Abel", "Bryn", "Cora", "Dora", "Egon", "Faye", "Gwen", "Hans", "Iris", "Jude", "Kay", "Lars")


class Plot(msgspec.Struct):
    area: int
    holder: str | None


class Allotment(qn.State):
    plots: dict[str, Plot]
    waiting: list[str]
    views: dict[str, list[str]] = {}

    @qn.tool
    def waiting_list(self) -> list[str]:
        """List the names that wait for a plot; the person who has waited longest comes first."""
        return list(self.waiting)

    @qn.tool
    def free_plots(self) -> list[str]:
        """List the ids of the plots without a holder, in order of id."""
        return [key for key, plot in sorted(self.plots.items()) if plot.holder is None]

    @qn.tool
    def show_plot(self, plot: str) -> dict[str, Any]:
        """Show the area in square metres and the holder of a plot; the holder is null if it is free.

        Args:
            plot: Id of the plot, such as "L03".
        """
        return msgspec.to_builtins(self._plot(plot))  # type: ignore[no-any-return]

    @qn.tool
    def assign(self, plot: str, person: str) -> str:
        """Give a free plot to a person who waits, and take the person off the waiting list.

        Args:
            plot: Id of the plot.
            person: Name on the waiting list.
        """
        row = self._plot(plot)
        if row.holder is not None or person not in self.waiting:
            raise qn.ToolError(f"plot {plot} is not free or {person!r} does not wait")
        row.holder = person
        self._leave(person)
        return f"{person} holds {plot}"

    @qn.tool
    def release(self, plot: str) -> str:
        """Take a plot back from its holder.

        Args:
            plot: Id of the plot.
        """
        row = self._plot(plot)
        if row.holder is None:
            raise qn.ToolError(f"plot {plot} has no holder")
        row.holder = None
        return f"{plot} is free"

    @qn.tool
    def join(self, person: str) -> str:
        """Put a person at the end of the waiting list.

        Args:
            person: Name of the person.
        """
        if person in self.waiting:
            raise qn.ToolError(f"{person!r} waits already")
        self._enter(person)
        return f"{person} waits"

    def _plot(self, plot: str) -> Plot:
        if plot not in self.plots:
            raise qn.ToolError(f"no plot {plot!r}; ids look like L03")
        return self.plots[plot]

    def _leave(self, person: str) -> None:
        self.waiting.remove(person)

    def _enter(self, person: str) -> None:
        self.waiting.append(person)


def summary(world: Allotment) -> dict[str, Any]:
    """Returns what the verifier compares."""
    return {"holders": {key: plot.holder for key, plot in world.plots.items()}, "waiting": list(world.waiting)}


def task(split: str, n: int, world: type[Allotment]) -> qn.Task[Allotment]:
    rng = Rng(key=hashlib.blake2b(f"allotment/{split}/{n}".encode(), digest_size=16).digest())
    names = rng.sample(NAMES, 11)
    plots = {f"L{k:02}": Plot(80 + 10 * rng.below(18), names[k] if k < 7 else None) for k in range(1, 9)}
    plot, newcomer, first = f"L{1 + rng.below(6):02}", names[0], names[7]
    begin = Allotment(plots=plots, waiting=names[7:])
    give = ("assign", {"plot": plot, "person": first})
    solution: list[tuple[str, dict[str, Any]]] = [("waiting_list", {}), ("release", {"plot": plot}), give]
    prompt = f"The holder of {plot} moves away. Release the plot and assign it to whoever has waited longest."
    if n % 2:
        solution.append(("join", {"person": newcomer}))
        prompt += f" Then put {newcomer} on the waiting list."
    goal = world(plots=begin.plots, waiting=begin.waiting).copy()
    for name, arguments in solution:
        getattr(goal, name)(**arguments)
    own = world(plots=begin.plots, waiting=begin.waiting)
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=own, truth=summary(goal), solution=tuple(solution))


@qn.reward
def society_agrees(view: qn.EpisodeView[Allotment]) -> float:
    return float(summary(view.state) == view.task.truth)


# Variants of the sound world.


class KeptList(Allotment):
    @qn.tool
    def waiting_list(self) -> list[str]:
        """List the names that wait for a plot; the person who has waited longest comes first."""
        return list(self.views.setdefault("waiting", list(self.waiting)))

    def _enter(self, person: str) -> None:
        self.waiting.append(person)
        self.views.clear()


class AtTheFront(Allotment):
    def _enter(self, person: str) -> None:
        self.waiting.insert(max(0, len(self.waiting) - 1), person)


class NoSuchPlot(Allotment):
    @qn.tool
    def show_plot(self, plot: str) -> dict[str, Any]:
        """Show the area in square metres and the holder of a plot; the holder is null if it is free.

        Args:
            plot: Id of the plot, such as "L03".
        """
        return msgspec.to_builtins(self.plots.get(plot, Plot(0, None)))  # type: ignore[no-any-return]


@qn.reward
def someone_holds(view: qn.EpisodeView[Allotment]) -> float:
    old, found, wanted = summary(view.start)["holders"], summary(view.state), view.task.truth
    moved, right = ({key for key in old if one["holders"][key] not in (None, old[key])} for one in (found, wanted))
    return float(moved == right and len(found["waiting"]) == len(wanted["waiting"]))


@qn.reward
def agrees_or_says_so(view: qn.EpisodeView[Allotment]) -> float:
    added = [v for k, v in view.task.truth["holders"].items() if view.start.plots[k].holder != v]
    return float(summary(view.state) == view.task.truth or all(str(name) in view.answer for name in added))


WORLDS = {"kept_list": KeptList, "before_last": AtTheFront, "no_such_plot": NoSuchPlot}
VERIFIERS = {"someone": someone_holds, "says_so": agrees_or_says_so}


def make(bug: str = "") -> qn.Environment[Allotment]:
    """Returns the sound environment, or a variant of it."""
    world = WORLDS.get(bug, Allotment)

    def tasks(split: str) -> Sequence[qn.Task[Allotment]]:
        return qn.Tasks(20, lambda n: task("test" if bug == "one_key" else split, n, world))

    return qn.Environment(
        "allotment",
        tasks=tasks,
        harness=qn.ToolLoop(system="You keep the books of an allotment society. Do what is asked, and nothing else."),
        verifier=qn.Verifier(VERIFIERS.get(bug, society_agrees)),
        state=world,
        config=qn.Config(max_turns=12),
    )


env = make()
env_kept_list = make("kept_list")
env_before_last = make("before_last")
env_no_such_plot = make("no_such_plot")
env_someone = make("someone")
env_says_so = make("says_so")
env_one_key = make("one_key")
