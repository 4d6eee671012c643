"""Desk of a shop: a customer wants something done about one article, and the house's rules decide what.

The agent lists the customer's orders, opens them until it finds the article, and does what the rule for wish and status
says. The rules stand nowhere: only the score shows them. The score is 1 for exactly the right act on the right order.
The long desk also demands that the customer is verified before and informed after.
"""

from __future__ import annotations

import random
from typing import Any

import quintain as qn
from quintain.task import Call
from quintain.trace import Message

ITEMS = ("lamp", "chair", "desk", "shelf", "clock", "mirror", "carpet", "heater", "kettle", "toaster")
WISHES = ("money", "swap", "stop")
STATUSES = ("packed", "shipped", "delivered")
ACTS = ("refund", "cancel", "escalate")
RULES = {
    ("money", "packed"): "cancel",
    ("money", "shipped"): "escalate",
    ("money", "delivered"): "refund",
    ("swap", "packed"): "escalate",
    ("swap", "shipped"): "refund",
    ("swap", "delivered"): "escalate",
    ("stop", "packed"): "cancel",
    ("stop", "shipped"): "refund",
    ("stop", "delivered"): "escalate",
}
NUMBERS = tuple(f"o{n}" for n in range(10, 70))


class Desk(qn.State):
    """Orders by number, as (article, status), and what was done."""

    placed: dict[str, tuple[str, str]]
    verified: bool = True
    informed: bool = True
    listed: bool = False
    shown: list[str] = []
    done: list[tuple[str, str]] = []

    @qn.tool
    def verify(self) -> str:
        """Verify the customer."""
        self.verified = True
        return "verified"

    @qn.tool
    def inform(self) -> str:
        """Inform the customer of what was done."""
        if not self.done:
            raise qn.ToolError("nothing")
        self.informed = True
        return "informed"

    @qn.tool
    def orders(self) -> str:
        """List the numbers of the customer's orders."""
        if not self.verified:
            raise qn.ToolError("unverified")
        self.listed = True
        return " ".join(self.placed)

    @qn.tool
    def show(self, order: str) -> str:
        """Show article and status of an order.

        Args:
            order: Its number.
        """
        self._known(order)
        if order not in self.shown:
            self.shown.append(order)
        return " ".join(self.placed[order])

    @qn.tool
    def refund(self, order: str) -> str:
        """Pay the price back.

        Args:
            order: Its number.
        """
        return self._do("refund", order)

    @qn.tool
    def cancel(self, order: str) -> str:
        """Cancel an order.

        Args:
            order: Its number.
        """
        return self._do("cancel", order)

    @qn.tool
    def escalate(self, order: str) -> str:
        """Hand an order to a colleague.

        Args:
            order: Its number.
        """
        return self._do("escalate", order)

    def _do(self, act: str, order: str) -> str:
        self._known(order)
        self.done.append((act, order))
        return "done"

    def _known(self, order: str) -> None:
        if order not in self.placed:
            raise qn.ToolError("unknown")


Truth = tuple[str, str]
"""The act and the order that it belongs to."""


@qn.reward
def solved(view: qn.EpisodeView[Desk]) -> float:
    """Returns 1 for exactly the right act on the right order."""
    return float(view.state.done == [tuple(view.task.truth)] and view.state.informed)


@qn.phase(weight=0.2)
def verified(view: qn.TurnView[Desk]) -> bool:
    """Returns True once the customer is verified."""
    return view.after.verified


@qn.phase(after="verified", weight=0.2)
def looked(view: qn.TurnView[Desk]) -> bool:
    """Returns True once the orders are listed."""
    return view.after.listed


@qn.phase(after="looked", weight=0.2)
def found(view: qn.TurnView[Desk]) -> bool:
    """Returns True once the order with the article was shown."""
    return view.task.truth[1] in view.after.shown


@qn.phase(after="found", weight=0.2)
def decided(view: qn.TurnView[Desk]) -> bool:
    """Returns True once the right act, and nothing else, was done."""
    return view.after.done == [tuple(view.task.truth)]


@qn.phase(after="decided", weight=0.2)
def informed(view: qn.TurnView[Desk]) -> bool:
    """Returns True once the customer is informed."""
    return view.after.informed


@qn.reward(level="step", low=-1, weight=0.02)
def idle(view: qn.StepView[Desk]) -> float:
    """Returns -1 for a call that fails or changes nothing."""
    return -float(view.step.is_error or view.before == view.after)


def task(split: str, n: int, *, orders: tuple[int, int], long: bool) -> qn.Task[Desk]:
    """Returns a task; `orders` are the fewest and the most orders of its customer."""
    rng = random.Random(f"{split}/{n}/{orders}")  # noqa: S311 (tasks, no secrets)
    count = rng.randint(*orders)
    numbers, items = rng.sample(NUMBERS, count), rng.sample(ITEMS, count)
    placed = {number: (item, rng.choice(STATUSES)) for number, item in zip(numbers, items, strict=True)}
    wish, place = rng.choice(WISHES), rng.randrange(count)
    act = RULES[wish, placed[numbers[place]][1]]
    before: list[Call] = [("verify", {})] if long else []
    after: list[Call] = [("inform", {})] if long else []
    shows = [("show", {"order": number}) for number in numbers[: place + 1]]
    return qn.Task(
        id=f"{split}-{n}",
        prompt=f"{wish} {items[place]}",
        start=Desk(placed=placed, verified=not long, informed=not long),
        truth=(act, numbers[place]),
        solution=(*before, ("orders", {}), *shows, (act, {"order": numbers[place]}), *after),
        tools=None if long else ("orders", "show", *ACTS),
    )


def environment(*, orders: tuple[int, int], dense: bool = False, long: bool = False) -> qn.Environment[Desk]:
    """Returns the desk; with `dense` it has phases and a step penalty beside the same score."""
    criteria = (solved, verified, looked, found, decided, informed, idle) if dense else (solved,)
    return qn.Environment(
        "desk",
        tasks=lambda split: qn.Tasks(512, lambda n: task(split, n, orders=orders, long=long)),
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(*criteria),
        state=Desk,
        config=qn.Config(max_turns=orders[1] + 4 + 2 * long),
    )


class DeskReader:
    """View of a desk: wish, orders listed, how many were opened, whether the last one has the article, its status."""

    acts = ("verify", "orders", *(f"show {n}" for n in range(1, 6)), *ACTS, "inform", "say")

    def __init__(self) -> None:
        self._wish = self._item = self._last = ""
        self._numbers: list[str] = []
        self._shown, self._status = "", "unseen"
        self._did: set[str] = set()

    def read(self, message: Message) -> None:
        """Takes the prompt or an observation."""
        if message.role == "user":
            self._wish, self._item = message.text.split()
        elif self._last == "orders" and message.text != "unverified":
            self._numbers = message.text.split()
        elif self._last.startswith("show") and message.text != "unknown":
            self._shown = self._last[5:]
            item, status = message.text.split()
            self._status = status if item == self._item else "other"
        elif message.text in {"verified", "informed", "done"}:
            self._did.add(message.text)

    def key(self) -> str:
        """Returns the state: the wish matters once the article is found, the place of the last order before."""
        if "done" in self._did:
            return "informed" if "informed" in self._did else "done"
        if self._status in STATUSES:
            return f"{self._wish} {self._status}"
        return f"{len(self._numbers)} {self._shown}" if self._numbers else f"{'verified' in self._did}"

    def call(self, act: str) -> tuple[str, dict[str, Any]] | None:
        """Returns the call of an act; acts and `show` name an unknown order where there is none."""
        self._last = act
        if act == "say":
            return None
        if act in {"verify", "orders", "inform"}:
            return act, {}
        place = int(act[5:]) if act.startswith("show") else int(self._shown or 0)
        order = self._numbers[place - 1] if 0 < place <= len(self._numbers) else "none"
        return act.split(maxsplit=1)[0], {"order": order}
