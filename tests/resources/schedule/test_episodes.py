"""A world that lives by time keeps what every environment promises: it is forked, stored, rebuilt and replayed."""

from __future__ import annotations

import pytest

import quintain as qn
from quintain.resources.schedule import Backoff, Cron, Event, Every, Exponential, Faults, Jobs, Outbox, Retry, Timers
from quintain.testing import EnvironmentContract

from .desk import HOUR, OFFICE, START


class Night(qn.State):
    """World whose alarm rings for a model that waits long enough, if it was set."""

    jobs: Jobs
    timers: Timers
    outbox: Outbox
    heard: list[str] = []

    @qn.tool
    def set_alarm(self, hours: int) -> str:
        """Have the alarm ring.

        Args:
            hours: Business hours from now.
        """
        if not 0 < hours < 1000:
            raise qn.ToolError("between 1 and 999 hours")
        due = OFFICE.add(self.clock.now, hours * HOUR)
        self.timers.at(due, self.ring, name=self.new_id("A"))
        return OFFICE.local(due).isoformat()

    @qn.tool
    def wait(self, hours: int) -> int:
        """Let time pass; returns how often something was heard.

        Args:
            hours: How many, at most 1,000.
        """
        if not 0 <= hours <= 1000:
            raise qn.ToolError("between 0 and 1000 hours")
        self.clock.advance(hours * HOUR)
        return len(self.heard)

    def ring(self, name: str) -> None:
        self.outbox.send("rang", name, key="ear", delay=Exponential(HOUR))

    def tick(self) -> None:
        if self.rng.below(10) == 0:
            self.outbox.send("rang", "clock", key="ear")

    def hear(self, event: Event) -> None:
        if self.rng.below(3) == 0:
            raise Retry("asleep")
        self.heard.append(f"{event.body}/{event.attempt}@{self.clock.now}")


def night() -> Night:
    world = Night(jobs=Jobs(calendar=OFFICE), timers=Timers(), outbox=Outbox(faults=Faults(duplicate=0.2)))
    world.clock.now = START
    world.outbox.subscribe("rang", world.hear, backoff=Backoff(attempts=40, most=HOUR), once=False)
    world.jobs.add("tick", Every(HOUR / 2), world.tick)
    world.jobs.add("cron", Cron("15 * * * *", "skip"), world.tick)
    return world


def tasks(split: str) -> qn.Tasks[Night]:
    def make(n: int) -> qn.Task[Night]:
        solution = (("set_alarm", {"hours": n + 1}), ("wait", {"hours": 500}))
        return qn.Task(id=f"{split}-{n}", prompt="Hear the alarm.", start=night(), truth="A1", solution=solution)

    return qn.Tasks(4, make)


@qn.reward
def heard_it(outcome: qn.EpisodeView[Night]) -> float:
    return float(any(line.startswith("A1/") for line in outcome.state.heard))


@pytest.mark.slow
class TestNight(EnvironmentContract):
    examples = 5

    def environment(self) -> qn.Environment[Night]:
        verifier = qn.Verifier(heard_it)
        return qn.Environment(
            "night", tasks=tasks, harness=qn.ToolLoop(), verifier=verifier, state=Night, config=qn.Config()
        )
