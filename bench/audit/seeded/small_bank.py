"""A bank with transfers, in cents; a session may be called from several threads."""

from __future__ import annotations

import copy
import threading
from typing import Any

from .common import ToolError, checked, integer, rng, text, tool

Data = Any
OWNERS = ("Amara Ntuli", "Björn Dahl", "chloé martin", "D. O'Brien", "ELIF ŞEN", "Gio van den Berg")
ACCOUNT = text("An account's number, such as 4012.", 10)


class Bank:
    """Session of the bank."""

    shared = True
    task: str | None = None
    TOOLS = (
        tool("list_accounts", "Show the accounts and their owners."),
        tool("get_balance", "Show what is on an account, in cents.", account=ACCOUNT),
        tool(
            "transfer",
            "Move money from one account to another. An account cannot be overdrawn.",
            source=ACCOUNT,
            target=ACCOUNT,
            cents=integer("How much, in cents.", 1, 10**9),
        ),
        tool("list_transfers", "Show today's transfers."),
    )

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def tasks(self) -> list[Data]:
        return [{"id": name} for name in ("pay-1", "pay-2", "empty-1", "empty-2")]

    def tools(self) -> list[Data]:
        return copy.deepcopy(list(self.TOOLS))

    def plan(self, task: Data) -> tuple[str, str, int, int]:
        """The payer, the payee, how much, and what the payer has."""
        dice = rng("bank", task["id"])
        source, target = dice.sample(range(4001, 4001 + len(OWNERS)), 2)
        has = dice.randrange(10**5, 10**6)
        pays = has if task["id"].startswith("empty") else has * dice.randrange(70, 95) // 100
        return str(source), str(target), pays, has

    def reset(self, task: Data, seed: int) -> str:
        self.source, self.target, self.cents, has = self.plan(task)
        self.task, dice = task["id"], rng("bank", task["id"], seed)
        self.balances = {str(4001 + number): dice.randrange(10**6) for number in range(len(OWNERS))}
        self.balances[self.source] = has
        self.before, self.entries = dict(self.balances), list[Data]()
        much = "everything" if self.cents == has else f"{self.cents} cents"
        return f"Transfer {much} from account {self.source} to account {self.target}, by one transfer and no other."

    def call(self, name: str, arguments: Data) -> Data:
        schema = next((tool["parameters"] for tool in self.TOOLS if tool["name"] == name), None)
        if self.task is None or schema is None:
            return {"error": "no such tool, or no episode"}
        try:
            with self.lock:
                return getattr(self, name)(**checked(schema, arguments))
        except ToolError as error:
            return {"error": str(error)}

    def known(self, account: str) -> str:
        if account not in self.balances:
            raise ToolError(f"no such account: {account!a}")
        return account

    def list_accounts(self) -> Data:
        return {"accounts": [{"account": str(4001 + number), "owner": one} for number, one in enumerate(OWNERS)]}

    def get_balance(self, account: str) -> Data:
        return {"cents": self.balances[self.known(account)]}

    def transfer(self, source: str, target: str, cents: int) -> Data:
        if self.known(source) == self.known(target):
            raise ToolError("source and target are the same account")
        if cents > self.balances[source]:
            raise ToolError("there is not enough money on the account")
        self.balances[source] -= cents
        self.balances[target] += cents
        self.entries.append({"source": source, "target": target, "cents": cents, "status": "completed"})
        return {"status": "completed"}

    def list_transfers(self) -> Data:
        return {"transfers": [dict(one) for one in self.entries]}

    def score(self) -> float | None:
        if self.task is None:
            return None
        wanted = dict(self.before)
        wanted[self.source] -= self.cents
        wanted[self.target] += self.cents
        with self.lock:
            return float(self.balances == wanted and len(self.entries) == 1)

    def oracle(self, task: Data) -> list[Data]:
        source, target, cents, _ = self.plan(task)
        look = ["get_balance", {"account": source}]
        return [look, ["transfer", {"source": source, "target": target, "cents": cents}]]
