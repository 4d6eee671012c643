"""Small things to test with: a model that plays a script, and two worlds with everything a world can have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

import quintain as qn
from quintain import codec
from quintain.harness import Request
from quintain.task import Call
from quintain.trace import Message, Reply, ToolCall


class Script:
    """A model that makes these calls, one a turn, and then answers. One is good for one episode.

    Args:
        calls: Tool name and arguments, first to last.
        answer: What it says afterwards, however often it is asked.

    Attributes:
        asked: Every request it has got.
    """

    def __init__(self, calls: Iterable[Call] = (), answer: str = "") -> None:
        self._left = list(calls)
        self._answer = answer
        self.asked: list[Request] = []

    async def __call__(self, request: Request) -> Reply:
        self.asked.append(request)
        if not self._left:
            return Reply(Message("assistant", self._answer))
        name, arguments = self._left.pop(0)
        call = ToolCall(f"call-{len(self.asked)}", name, codec.text(arguments))
        return Reply(Message("assistant", calls=(call,)))


class Counter(qn.State):
    """The smallest world: a number."""

    count: int = 0

    @qn.tool
    def add(self, amount: Annotated[int, msgspec.Meta(ge=-1000, le=1000)] = 1) -> int:
        """Add to the number; returns the new one.

        Args:
            amount: How much.
        """
        self.count += amount
        return self.count


@qn.reward
def counted(outcome: qn.EpisodeView[Counter]) -> float:
    """1 when the number is the one that was asked for."""
    return float(outcome.state.count == outcome.task.truth)


def counter(**config: Any) -> qn.Environment[Counter]:
    """Returns an environment of `Counter`: task n asks for the number n + 1. `config` are fields of its Config."""

    def tasks(split: str) -> qn.Tasks[Counter]:
        def make(n: int) -> qn.Task[Counter]:
            calls: tuple[Call, ...] = (("add", {"amount": 1}),) * (n + 1)
            return qn.Task(id=f"{split}-{n}", prompt=f"Count to {n + 1}.", start=Counter(), truth=n + 1, solution=calls)

        return qn.Tasks(10, make)

    return qn.Environment(
        "counter",
        tasks=tasks,
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(counted),
        state=Counter,
        config=qn.Config(**config),
    )


class Account(msgspec.Struct):
    """A row of the bank's table.

    Attributes:
        owner: Who it belongs to.
        cents: What is on it, 0 and up.
    """

    owner: str
    cents: int


class Ledger(qn.State):
    """A part of the bank, usable alone: what was booked."""

    lines: list[str] = []

    @qn.tool
    def read(self) -> list[str]:
        """Read what was booked, oldest first."""
        return self.lines

    def book(self, line: str) -> None:
        self.lines.append(f"{self.new_id('B')} {line}")


class Bank(qn.State):
    """A world with a part, a table, timers, chance and identifiers."""

    accounts: qn.Table[Account]
    ledger: Ledger = msgspec.field(default_factory=Ledger)

    @qn.tool
    def transfer(self, source: str, target: str, cents: int, days: int = 0) -> str:
        """Transfer money, now or in some days.

        Args:
            source: The account that pays.
            target: The account that is paid.
            cents: How much.
            days: In how many days.
        """
        for name in (source, target):
            if name not in self.accounts:
                raise qn.ToolError(f"there is no account {name!r}; there are {', '.join(self.accounts)}")
        if cents <= 0 or not 0 <= days <= 365:
            raise qn.ToolError("cents must be above 0, and days from 0 to 365")
        if source == target:
            raise qn.ToolError("the two accounts are the same")
        self.clock.after(days * 86_400, self.pay, source=source, target=target, cents=cents)
        self.clock.advance(0)
        return self.new_id("T")

    @qn.tool
    def wait(self, days: int) -> str:
        """Let days pass.

        Args:
            days: How many.
        """
        if not 0 <= days <= 365:
            raise qn.ToolError("days must be from 0 to 365")
        self.clock.advance(days * 86_400)
        return f"{self.clock.date:%Y-%m-%d}"

    @qn.tool
    def audit(self) -> Account:
        """Look at an account that is drawn by lot."""
        return self.accounts[self.rng.choice(list(self.accounts))]

    def pay(self, source: str, target: str, cents: int) -> None:
        """Transfers the money when it is due."""
        payer, paid = self.accounts[source], self.accounts[target]
        if payer.cents < cents:
            self.ledger.book(f"{source} could not pay {cents}")
            return
        self.accounts[source] = Account(payer.owner, payer.cents - cents)
        self.accounts[target] = Account(paid.owner, paid.cents + cents)
        self.ledger.book(f"{source} paid {target} {cents}")


@qn.reward
def balanced(outcome: qn.EpisodeView[Bank]) -> float:
    """1 when each account holds what the task's truth says."""
    return float({name: row.cents for name, row in outcome.state.accounts.items()} == outcome.task.truth)


@qn.reward(level="turn", weight=0.1)
def no_error(transition: qn.TurnView[Bank]) -> float:
    """1 for a turn in which nothing was refused."""
    return float(not any(step.is_error for step in transition.turn.steps))


@qn.reward(level="step", weight=0.1, low=-1.0)
def conserved(effect: qn.StepView[Bank]) -> float:
    """-1 when a call made or destroyed money, else 0."""
    before, after = (sum(row.cents for row in world.accounts.values()) for world in (effect.before, effect.after))
    return float(before == after) - 1.0


@qn.phase()
def booked(transition: qn.TurnView[Bank]) -> bool:
    """True if the ledger has a line."""
    return bool(transition.after.ledger.lines)


def bank(**config: Any) -> qn.Environment[Bank]:
    """Returns an environment of `Bank`, with rewards at all four levels. `config` are fields of its Config."""

    def tasks(split: str) -> qn.Tasks[Bank]:
        def make(n: int) -> qn.Task[Bank]:
            transfer = {"source": "ann", "target": "bob", "cents": 100 + n, "days": n % 3}
            return qn.Task(
                id=f"{split}-{n}",
                prompt=f"Have Ann pay Bob {100 + n} cents, due in {n % 3} days, and wait for it.",
                start=Bank(accounts=qn.Table(Account, {"ann": Account("Ann", 1000), "bob": Account("Bob", 0)})),
                truth={"ann": 900 - n, "bob": 100 + n},
                solution=(("transfer", transfer), ("wait", {"days": n % 3})),
            )

        return qn.Tasks(100, make)

    return qn.Environment(
        "bank",
        tasks=tasks,
        harness=qn.ToolLoop(system="You work at a bank."),
        verifier=qn.Verifier(balanced, no_error, conserved, booked),
        state=Bank,
        config=qn.Config(**config),
    )
