"""Build queue: builds with priorities and dependencies, two workers, and a clock that finishes builds."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import msgspec

import quintain as qn
from quintain.state import Rng

PARTS = ("core", "http", "store", "auth", "mail", "search", "web", "docs", "cli", "jobs")
Status = Literal["waiting", "running", "done", "cancelled"]


class Build(msgspec.Struct):
    minutes: int
    priority: int
    needs: list[str]
    status: Status = "waiting"
    ended: float | None = None


class Farm(qn.State):
    builds: dict[str, Build]

    @qn.tool
    def list_builds(self, status: Status) -> list[str]:
        """List the builds with a status, in the order of their names.

        Args:
            status: The status.
        """
        return sorted(key for key, row in self.builds.items() if row.status == status)

    @qn.tool
    def show_build(self, name: str) -> dict[str, Any]:
        """Show a build: minutes that it runs, priority (high first), builds that it needs, status, second of its end.

        Args:
            name: Name of the build.
        """
        return self._shown(name, self._build(name))

    @qn.tool
    def set_priority(self, name: str, priority: int) -> str:
        """Set the priority of a waiting build.

        Args:
            name: Name of the build.
            priority: 0 to 9.
        """
        row = self._waiting(name)
        self._prioritize(row, priority)
        return f"{name} has priority {row.priority}"

    @qn.tool
    def add_need(self, name: str, need: str) -> str:
        """Let a waiting build need another one, which must not need it, directly or through others.

        Args:
            name: Name of the build.
            need: Name of the build that must be done before.
        """
        row = self._waiting(name)
        if name in self._all_needs(need) or need in row.needs:
            raise qn.ToolError(f"{need} needs {name}, or {name} needs it already")
        row.needs.append(need)
        return f"{name} needs {', '.join(row.needs)}"

    @qn.tool
    def start_next(self) -> str:
        """Start the waiting build of highest priority whose needs are done, by name if equal; two run at most."""
        ready = [key for key, row in self.builds.items() if row.status == "waiting" and self._ready(row)]
        if not ready or len(self.list_builds("running")) >= 2:
            raise qn.ToolError("no waiting build has all its needs done, or two builds run")
        return self._begin(self._first(ready))

    @qn.tool
    def cancel(self, name: str) -> str:
        """Cancel a waiting build, and every waiting build that needs it, directly or through others.

        Args:
            name: Name of the build.
        """
        self._waiting(name)
        gone = sorted(key for key, row in self.builds.items() if row.status == "waiting" and self._falls(key, name))
        for key in gone:
            self.builds[key].status = "cancelled"
        return f"cancelled: {', '.join(gone)}"

    @qn.tool
    def wait(self, minutes: int) -> list[str]:
        """Let time pass; returns the builds that ended meanwhile, first to last.

        Args:
            minutes: Minutes to wait, 1 to 600.
        """
        if not 1 <= minutes <= 600:
            raise qn.ToolError(f"minutes must be 1 to 600, got {minutes}")
        began = self.clock.now
        self.clock.advance(minutes * 60)
        ended = [(row.ended, key) for key, row in self.builds.items() if row.ended is not None and row.ended > began]
        return [key for _, key in sorted(ended)]

    def complete(self, name: str) -> None:
        self.builds[name].status = "done"
        self.builds[name].ended = self.clock.now

    def _shown(self, name: str, row: Build) -> dict[str, Any]:
        return msgspec.to_builtins(row)  # type: ignore[no-any-return]

    def _begin(self, name: str) -> str:
        self.builds[name].status = "running"
        self.clock.after(self.builds[name].minutes * 60, self.complete, name=name)
        return f"{name} runs"

    def _first(self, ready: list[str]) -> str:
        return min(ready, key=lambda key: (-self.builds[key].priority, key))

    def _ready(self, row: Build) -> bool:
        return all(self.builds[need].status == "done" for need in row.needs)

    def _prioritize(self, row: Build, priority: int) -> None:
        if not 0 <= priority <= 9:
            raise qn.ToolError(f"priority must be 0 to 9, got {priority}")
        row.priority = priority

    def _falls(self, key: str, name: str) -> bool:
        return name in self._all_needs(key)

    def _all_needs(self, name: str) -> set[str]:
        found = {name}
        for need in self._build(name).needs:
            found |= self._all_needs(need)
        return found

    def _waiting(self, name: str) -> Build:
        row = self._build(name)
        if row.status != "waiting":
            raise qn.ToolError(f"{name} is {row.status}, not waiting")
        return row

    def _build(self, name: str) -> Build:
        if name not in self.builds:
            raise qn.ToolError(f"no build {name!r}; builds: {', '.join(self.builds)}")
        return self.builds[name]


def task(split: str, n: int, world: type[Farm], bug: str) -> qn.Task[Farm]:
    rng = Rng(key=hashlib.blake2b(f"buildqueue/{split}/{n}".encode(), digest_size=16).digest())
    names, builds = rng.sample(PARTS, 8), dict[str, Build]()
    for k, name in enumerate(names):
        builds[name] = Build(5 + rng.below(40), 1 + rng.below(7), rng.sample(names[:k], min(k, 2)) if k > 2 else [])
    urgent, dropped, lone = names[5], names[7], names[6]
    if bug == "dead_need" and n % 4 == 3:
        builds[builds[urgent].needs[0]].status = "cancelled"
    work: list[tuple[str, dict[str, Any]]] = []
    job = f"Job {rng.below(10**6):06}: raise {urgent} to priority 9"
    work.append(("set_priority", {"name": urgent, "priority": 9}))
    if n % 2:
        job += f", cancel {dropped}"
        work.append(("cancel", {"name": dropped}))
    elif names[4] not in builds[lone].needs:
        job += f", let {lone} need {names[4]} too"
        work.append(("add_need", {"name": lone, "need": names[4]}))
    prompt = f"{job}. Then run builds, one at a time, until {urgent} is done; start none after it."
    goal = Farm(builds=builds).copy()
    for name, arguments in work:
        getattr(goal, name)(**arguments)
    while goal.builds[urgent].status != "done" and len(work) < 20:
        ready = [key for key, row in goal.builds.items() if row.status == "waiting" and goal._ready(row)]
        if not ready:  # Only a variant comes here.
            break
        one = goal._first(ready)
        for name, arguments in (("start_next", {}), ("wait", {"minutes": builds[one].minutes})):
            getattr(goal, name)(**arguments)
            work.append((name, arguments))
    truth = {
        key: [row.status if key != urgent else "done", row.priority, row.needs] for key, row in goal.builds.items()
    }
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=world(builds=builds), truth=truth, solution=tuple(work))


@qn.reward
def queue_agrees(view: qn.EpisodeView[Farm]) -> float:
    found = {key: [row.status, row.priority, row.needs] for key, row in view.state.builds.items()}
    return float(found == view.task.truth)


# Variants of the sound world.


class Placed(Farm):
    order: list[str] = []

    def _first(self, ready: list[str]) -> str:
        if not self.order:
            self.order = sorted(self.builds, key=lambda key: (-self.builds[key].priority, key))
        return min(ready, key=self.order.index)


class DirectNeeds(Farm):
    def _falls(self, key: str, name: str) -> bool:
        return key == name or name in self.builds[key].needs


class Clamped(Farm):
    def _prioritize(self, row: Build, priority: int) -> None:
        row.priority = sorted((0, priority, 9))[1]


class Artefacts(Farm):
    built: ClassVar[set[tuple[str, int]]] = set()

    def complete(self, name: str) -> None:
        super().complete(name)
        self.built.add((name, self.builds[name].minutes))

    def _ready(self, row: Build) -> bool:
        return all((need, self.builds[need].minutes) in self.built or self._done(need) for need in row.needs)

    def _done(self, need: str) -> bool:
        return self.builds[need].status == "done"


class OneScheduler(Farm):
    ready: ClassVar[list[str]] = []

    @qn.tool
    async def start_next(self) -> str:  # type: ignore[override]
        """Start the waiting build of highest priority whose needs are done, by name if equal; two run at most."""
        found = [key for key, row in self.builds.items() if row.status == "waiting" and self._ready(row)]
        if not found or len(self.list_builds("running")) >= 2:
            raise qn.ToolError("no waiting build has all its needs done, or two builds run")
        self.ready[:] = found
        await asyncio.sleep(0)
        return self._begin(self._first([key for key in self.ready if key in self.builds] or found))


@qn.reward
def urgent_done(view: qn.EpisodeView[Farm]) -> float:
    wanted = {key for key, row in view.task.truth.items() if row[0] == "done" and row[1] == 9}
    return float(all(view.state.builds[key].status == "done" for key in wanted))


@qn.reward
def share_of_builds(view: qn.EpisodeView[Farm]) -> float:
    found = {key: [row.status, row.priority, row.needs] for key, row in view.state.builds.items()}
    right = sum(found[key] == row for key, row in view.task.truth.items() if row[0] == "done")
    wrong = sum(found[key] != row for key, row in view.task.truth.items())
    share = right / sum(row[0] == "done" for row in view.task.truth.values())
    return max(0.0, float(share - 0.2 * wrong))


WORLDS: dict[str, type[Farm]] = {
    "placed": Placed,
    "direct_needs": DirectNeeds,
    "clamped": Clamped,
    "artefacts": Artefacts,
    "one_scheduler": OneScheduler,
}
VERIFIERS = {"urgent_done": urgent_done, "floor": share_of_builds}


def make(bug: str = "") -> qn.Environment[Farm]:
    """Returns the sound environment, or a variant of it."""
    world = WORLDS.get(bug, Farm)

    def tasks(split: str) -> Sequence[qn.Task[Farm]]:
        return qn.Tasks(24, lambda n: task(split, n, world, bug))

    return qn.Environment(
        "buildqueue",
        tasks=tasks,
        harness=qn.ToolLoop(system="You run the builds of a team. Do what is asked, and nothing else."),
        verifier=qn.Verifier(VERIFIERS.get(bug, queue_agrees)),
        state=world,
        config=qn.Config(max_turns=30),
    )


env = make()
env_placed = make("placed")
env_direct_needs = make("direct_needs")
env_clamped = make("clamped")
env_artefacts = make("artefacts")
env_one_scheduler = make("one_scheduler")
env_urgent_done = make("urgent_done")
env_floor = make("floor")
env_dead_need = make("dead_need")
