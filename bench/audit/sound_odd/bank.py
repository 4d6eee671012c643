"""A bank in which money moves later: pending refunds, direct debits from frozen accounts, and a report of the month."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

Account = Literal["ana", "ben", "shop", "power"]
Customer = Literal["ana", "ben"]
Amount = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
START = {"ana": 500, "ben": 300, "shop": 900, "power": 0}
LAST = 5


class Debit(msgspec.Struct):
    account: Customer
    to: Account
    amount: int
    day: int


class Refund(msgspec.Struct):
    customer: Customer
    amount: int


class Bank(qn.State):
    balance: dict[str, int]
    debits: list[Debit]
    frozen: list[str] = []
    waiting: list[Refund] = []
    centre: dict[str, str] = {}
    day: int = 1

    @qn.tool
    def accounts(self) -> dict[str, int | list[str] | dict[str, int]]:
        """Read the day, the balances and the frozen accounts."""
        return {"day": self.day, "balances": self.balance, "frozen": self.frozen}

    @qn.tool
    def direct_debits(self) -> list[Debit]:
        """List the direct debits and their days. One is paid at the beginning of its day, also by a frozen account."""
        return self.debits

    @qn.tool
    def transfer(self, source: Account, target: Account, amount: Amount) -> str:
        """Transfer money at once. A frozen account cannot pay a transfer; it can receive one.

        Args:
            source: Who pays.
            target: Who receives it; another account than source.
            amount: How much, 1 to 10000; at most the balance.
        """
        if source == target:
            raise qn.ToolError("source and target are the same account")
        self._pay(source, amount)
        self.balance[target] += amount
        return f"{source} has {self.balance[source]}, {target} has {self.balance[target]}"

    @qn.tool
    def refund(self, customer: Customer, amount: Amount) -> str:
        """Refund money of the shop. It leaves the shop at once, and is pending until `settle` or the next day.

        A frozen shop cannot refund.

        Args:
            customer: Who gets it; the account may be frozen.
            amount: How much, 1 to 10000; at most the balance of the shop.
        """
        self._pay("shop", amount)
        self.waiting.append(Refund(customer, amount))
        return f"{amount} for {customer} is pending, the shop has {self.balance['shop']}"

    def _pay(self, account: str, amount: int) -> None:
        if account in self.frozen:
            raise qn.ToolError(f"{account} is frozen")
        if self.balance[account] < amount:
            raise qn.ToolError(f"{account} has only {self.balance[account]}")
        self.balance[account] -= amount

    @qn.tool
    def pending(self) -> list[Refund]:
        """List the refunds that are pending, the oldest first."""
        return self.waiting

    @qn.tool
    def settle(self) -> str:
        """Pay out all pending refunds now."""
        for one in self.waiting:
            self.balance[one.customer] += one.amount
        count, self.waiting = len(self.waiting), []
        return f"{count} refunds are paid out"

    @qn.tool
    def set_frozen(self, account: Account, frozen: bool) -> list[str]:  # noqa: FBT001 -- a model passes it by name
        """Freeze or release an account; returns the frozen accounts. Its direct debits are paid all the same.

        Args:
            account: The account.
            frozen: true to freeze, false to release.
        """
        others = [one for one in self.frozen if one != account]
        self.frozen = sorted([*others, account]) if frozen else others
        return self.frozen

    @qn.tool
    def set_cost_centre(self, account: Account, name: Literal["travel", "office", "none"]) -> str:
        """Set the cost centre of an account, "none" at first. Only the monthly report shows it.

        Args:
            account: The account.
            name: The cost centre.
        """
        self.centre[account] = name
        return "it will be in the monthly report"

    @qn.tool
    def next_day(self) -> str:
        """Go to the next day, at most to day 5.

        First the pending refunds are paid out. Then the direct debits of the new day are paid; one that is higher
        than the balance is dropped.
        """
        if self.day == LAST:
            raise qn.ToolError(f"day {LAST} is the last one")
        self.settle()
        self.day += 1
        for one in self.debits:
            if one.day == self.day and one.amount <= self.balance[one.account]:
                self.balance[one.account] -= one.amount
                self.balance[one.to] += one.amount
        return f"day {self.day}"

    @qn.tool
    def monthly_report(self) -> dict[str, dict[str, int | str]]:
        """Read balance and cost centre of each account, as they are now."""
        return {
            name: {"balance": balance, "cost_centre": self.centre.get(name, "none")}
            for name, balance in self.balance.items()
        }


# Each: what is asked for, what differs from the start, a solution.
Job = tuple[str, dict[str, object], list[tuple[str, dict[str, object]]]]
NEXT: tuple[str, dict[str, object]] = ("next_day", {})
JOBS: list[Job] = [
    (
        "Refund 30 to ana. She must have the money at the end, on day 1.",
        {"ana": 530, "shop": 870},
        [("refund", {"customer": "ana", "amount": 30}), ("settle", {})],
    ),
    (
        "Refund 20 to ben, and leave it pending.",
        {"shop": 880, "pending": {"ben": 20}},
        [("refund", {"customer": "ben", "amount": 20})],
    ),
    (
        "Freeze the account of ana, and go to day 2.",
        {"ana": 440, "power": 60, "frozen": ["ana"], "day": 2},
        [("set_frozen", {"account": "ana", "frozen": True}), NEXT],
    ),
    (
        "Transfer 100 from ben to ana.",
        {"ana": 600, "ben": 200},
        [("transfer", {"source": "ben", "target": "ana", "amount": 100})],
    ),
    (
        "Set the cost centre of ana to travel and that of power to office.",
        {"centre": {"ana": "travel", "power": "office"}},
        [
            ("set_cost_centre", {"account": "ana", "name": "travel"}),
            ("set_cost_centre", {"account": "power", "name": "office"}),
        ],
    ),
    (
        "Transfer 260 from ben to the shop, then go to day 3. Ben knows that his debit is dropped then.",
        {"ana": 440, "ben": 40, "shop": 1160, "power": 60, "day": 3},
        [("transfer", {"source": "ben", "target": "shop", "amount": 260}), NEXT, NEXT],
    ),
    (
        "Refund 75 to ben, freeze his account, and go to day 3.",
        {"ana": 440, "ben": 330, "shop": 825, "power": 105, "frozen": ["ben"], "day": 3},
        [("refund", {"customer": "ben", "amount": 75}), ("set_frozen", {"account": "ben", "frozen": True}), NEXT, NEXT],
    ),
]


def facts(world: Bank) -> dict[str, object]:
    pending: dict[str, int] = {}
    for one in world.waiting:
        pending[one.customer] = pending.get(one.customer, 0) + one.amount
    centre = {name: value for name, value in world.centre.items() if value != "none"}
    return {**world.balance, "frozen": world.frozen, "pending": pending, "centre": centre, "day": world.day}


def bank() -> Bank:
    return Bank(balance=dict(START), debits=[Debit("ana", "power", 60, 2), Debit("ben", "power", 45, 3)])


def tasks(split: str) -> list[qn.Task[Bank]]:
    rule = "It is day 1. Balances, freezes, pending refunds, cost centres and the day count; change nothing else."
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{prompt} {rule}",
            start=bank(),
            truth=facts(bank()) | changed,
            solution=tuple(calls),
        )
        for n, (prompt, changed, calls) in enumerate(JOBS, 1)
    ]


@qn.reward
def as_asked(view: qn.EpisodeView[Bank]) -> qn.Score:
    found = facts(view.state)
    wrong = [key for key, value in view.task.truth.items() if found[key] != value]
    return qn.Score(float(not wrong), f"differs: {', '.join(wrong) or 'nothing'}")


env = qn.Environment(
    "bank", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Bank, splits=("test",)
)
