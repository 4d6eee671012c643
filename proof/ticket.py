"""Ticket of a workshop: a machine is broken, and the agent has it repaired; and eight poisoned twins of it.

The manual: read the fault, order the repair, read again, order again if the workshop was busy, write the report, and
resolve. A repair of the wrong kind, or of a sound machine, damages it. A resolved ticket is worth 0.9 if the machine is
repaired, and 1 if the report says so; 0.4 if only a spare was lent, which helps the customer a little; and else 0.

In all twins the oracle scores 1 and an agent that does nothing 0, while the line to the workshop works.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import quintain as qn
from quintain.trace import Message

FAULTS = ("locked", "worn", "cold")
REPAIRED = 0.9
"""Worth of a resolved ticket with a repaired machine and without a report."""
Kind = Literal["locked", "worn", "cold"]


class Unavailable(RuntimeError):
    """The workshop's service does not answer: a trouble outside of the environment."""


class Line:
    """Line to the workshop's service, outside of the world: it is down in a share of the episodes."""

    def __init__(self) -> None:
        self.outage, self.rng = 0.0, random.Random(0)  # noqa: S311 (outages, no secrets)

    def is_up(self) -> bool:
        """Draws whether an episode has a line."""
        return self.rng.random() >= self.outage


LINE = Line()


class Ticket(qn.State, kw_only=True):
    """One ticket and its machine.

    Attributes:
        number: Number of the ticket.
        fault: What is wrong with the machine, or "ok".
        busy: First orders that the workshop leaves undone.
        orders: Orders so far.
        spare: True if the customer has a spare machine.
        damaged: True if a repair was of the wrong kind.
        status: "open" or "resolved".
        log: Reports.
        line: State of the line to the workshop, "unknown" before the first order.
        lost: True if an order was lost unnoticed; only in a twin.
        cached: What the first reading was; only in a twin.
    """

    rates: ClassVar[dict[str, float]] = {f"fault {name}": 1 / 3 for name in FAULTS}
    graded: ClassVar[bool] = True

    number: str
    fault: str
    busy: int = 0
    orders: int = 0
    spare: bool = False
    damaged: bool = False
    status: str = "open"
    log: list[str] = []
    line: str = "unknown"
    lost: bool = False
    cached: str = ""

    @qn.tool(reads=("fault",), writes=())
    def check(self) -> str:
        """Read the machine's fault, or "ok"."""
        return self.fault

    @qn.tool(writes=("orders", "fault", "damaged", "line"))
    def repair(self, kind: Kind) -> str:
        """Order a repair. A busy workshop leaves an order undone without a word: check afterwards, and order again.

        Args:
            kind: Fault that is to be repaired.
        """
        self.reach()
        self.order(kind)
        return "ordered"

    @qn.tool(writes=("spare",))
    def lend_spare(self) -> str:
        """Lend the customer a spare machine."""
        self.spare = True
        return "lent"

    @qn.tool(writes=("log",))
    def report(self) -> str:
        """Write into the log that the machine is repaired."""
        self.log.append("repaired")
        return "written"

    @qn.tool(writes=("status",))
    def resolve(self) -> str:
        """Resolve the ticket, which ends the work on it."""
        self.status = "resolved"
        self.finish("resolved")
        return "resolved"

    def inject(self, fault: str) -> None:
        """Makes the next order meet a line that is down."""
        if fault != "timeout":
            raise ValueError(f"the only fault is 'timeout', got {fault!r}")
        self.line = "down"

    def reach(self) -> None:
        """Reaches the workshop.

        Raises:
            Unavailable: The line is down.
        """
        if self.line == "unknown":
            self.line = "up" if LINE.is_up() else "down"
        if self.line == "down":
            raise Unavailable("the workshop did not answer in time")

    def order(self, kind: str) -> None:
        """Does a repair, unless the workshop is busy."""
        self.orders += 1
        if self.orders > self.busy and kind == self.fault:
            self.fault = "ok"
        elif self.orders > self.busy:
            self.damaged = True

    def is_repaired(self) -> bool:
        return self.fault == "ok" and not self.damaged


class StaleCache(Ticket):
    """Twin whose readings come from a cache that no repair clears."""

    @qn.tool
    def check(self) -> str:
        """Read the machine's fault, or "ok"."""
        self.cached = self.cached or self.fault
        return self.cached


class SilentTimeout(Ticket):
    """Twin that swallows an outage: the order is lost, and the verifier will count it as 0."""

    def reach(self) -> None:
        try:
            super().reach()
        except Unavailable:
            self.lost = True

    def order(self, kind: str) -> None:
        if not self.lost:
            super().order(kind)


class ResetLeak(Ticket):
    """Twin that keeps the numbers of repaired tickets on the class, beyond the episode."""

    repaired: ClassVar[set[str]] = set()

    def order(self, kind: str) -> None:
        super().order(kind)
        if super().is_repaired():
            self.repaired.add(self.number)

    def is_repaired(self) -> bool:
        return self.number in self.repaired


class ActionDrift(Ticket):
    """Twin whose workshop is never busy: an order clears its calendar, which `repair` does not declare to write."""

    def order(self, kind: str) -> None:
        self.busy = 0
        super().order(kind)


def worth(state: Ticket) -> float:
    """Returns what a resolved ticket is worth."""
    if state.is_repaired():
        return 1.0 if state.log else REPAIRED
    return 0.4 * (state.spare and not state.damaged)


Worth = Callable[[Any], float]
TWINS: dict[str, tuple[type[Ticket], Worth, tuple[str, ...]]] = {
    "sound": (Ticket, worth, FAULTS),
    "stale_cache": (StaleCache, worth, FAULTS),
    "reward_hack": (Ticket, lambda state: float("repaired" in state.log), FAULTS),
    "false_resolution": (Ticket, lambda state: 1.0, FAULTS),
    "silent_timeout": (SilentTimeout, lambda state: 0.0 if state.lost else worth(state), FAULTS),
    "reset_leak": (ResetLeak, worth, FAULTS),
    "reward_clipping": (Ticket, lambda state: min(1.0, 2.5 * worth(state)), FAULTS),
    "data_realism": (Ticket, worth, FAULTS[:1]),
    "action_drift": (ActionDrift, worth, FAULTS),
}
"""State, worth of a resolved ticket, and faults of the tasks, by the name of the twin."""


def environment(twin: str = "sound") -> qn.Environment[Any]:
    """Returns a twin; the line works."""
    state, value, faults = TWINS[twin]
    ResetLeak.repaired.clear()
    LINE.outage = 0.0

    @qn.reward
    def settled(view: qn.EpisodeView[Any]) -> float:
        return value(view.state) if view.state.status == "resolved" else 0.0

    def task(split: str, n: int) -> qn.Task[Any]:
        rng = random.Random(f"{split}/{n}")  # noqa: S311 (tasks, no secrets)
        fault, busy, number = rng.choice(faults), n % 4, f"{split}-{n}"
        repairs = [("repair", {"kind": fault})] * (1 if state is ActionDrift else busy + 1)
        calls = (("check", {}), *repairs, ("check", {}), ("report", {}), ("resolve", {}))
        start = state(number=number, fault=fault, busy=busy)
        return qn.Task(id=number, prompt=f"The machine of ticket {number} is broken.", start=start, solution=calls)

    return qn.Environment(
        "ticket" if twin == "sound" else f"ticket_{twin}",
        tasks=lambda split: qn.Tasks(256, lambda n: task(split, n)),
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(settled),
        state=state,
        config=qn.Config(max_turns=16, gate_rate=None),
    )


class TicketReader:
    """View of a ticket: last reading, orders since and before, and whether a spare was lent and a report written."""

    acts = ("check", *(f"repair {kind}" for kind in FAULTS), "lend_spare", "report", "resolve")

    def __init__(self) -> None:
        self._act, self._reading, self._orders = "", "unread", 0
        self._did: set[str] = set()

    def read(self, message: Message) -> None:
        """Takes an observation."""
        if message.role == "tool" and self._act == "check":
            self._reading, self._orders = message.text, 0

    def key(self) -> str:
        """Returns the state."""
        spare, written = "lend_spare" in self._did, "report" in self._did
        again = self._reading != "ok" and any(act.startswith("repair") for act in self._did)
        return f"{self._reading} {min(self._orders, 2)} {'again' * again} {'spare' * spare} {'written' * written}"

    def call(self, act: str) -> tuple[str, dict[str, Any]]:
        """Returns the call of an act."""
        self._act = act
        self._did.add(act)
        name, *kind = act.split()
        self._orders += name == "repair"
        return name, {"kind": kind[0]} if kind else {}


SCHOOLING, AGAIN = 1.95, 1.2
"""Logit of the manual's act, and of the second and later orders, which the clerk remembers less; all others have 0."""


def schooled(key: str) -> list[float]:
    """Returns the logits of a clerk who has read the manual once: its act is e^1.95 times as likely as another."""
    reading, orders, *did = key.split()
    if reading == "ok":
        act = "resolve" if "written" in did else "report"
    else:
        act = "check" if reading == "unread" or orders != "0" else f"repair {reading}"
    logit = AGAIN if "again" in did and act.startswith("repair") else SCHOOLING
    return [logit * (one == act) for one in TicketReader.acts]
