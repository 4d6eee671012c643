"""Seven bugs of tau2-bench's customer desks, rebuilt on one small bank.

The desk is judged as tau2 judges: a task's solution is played on a fresh bank, and the two databases must be equal.
Besides the tables, the database notes which of the lookups that the solution makes were made. Each switch of `Bank`
is one bug; without any, the bank is sound.
"""

from __future__ import annotations

import copy
import json
from typing import Any, ClassVar

from .plain import Answer, Plain, Solution, text

READS = ("find_customer", "list_accounts", "list_cards", "list_transactions")

PROMPTS = {
    "credit": "Credit 33 dollars to account A-101 of customer C-1, as goodwill, and do nothing else.",
    "freeze": "Ben Ito has lost the debit card of his savings account. Freeze that card.",
    "dispute": "Account A-102 was charged twice for the gym on the same day. Dispute the earlier of the two charges.",
    "waiver": (
        "Ana Brandt wants her yearly fee back. The desk must not do that: hand her over to a human with the "
        "reason 'fee waiver', and change nothing."
    ),
}
SEEN: dict[str, Solution] = {
    "credit": [["credit_account", {"account_id": "A-101", "amount": 33.0}]],
    "freeze": [
        ["find_customer", {"name": "Ben Ito"}],
        ["list_accounts", {"customer_id": "C-2"}],
        ["list_cards", {"account_id": "A-202"}],
        ["freeze_card", {"card_id": "D-7710"}],
    ],
    "dispute": [
        ["list_transactions", {"account_id": "A-102"}],
        ["dispute", {"transaction_id": "T-31"}],
    ],
    "waiver": [["transfer_to_human", {"reason": "fee waiver"}]],
}
BLIND = SEEN | {"freeze": SEEN["freeze"][-1:]}


def _world() -> dict[str, Any]:
    charge = {"account_id": "A-102", "payee": "CityFit", "amount": 49.0, "status": "posted"}
    return {
        "customers": {"C-1": {"name": "Ana Brandt"}, "C-2": {"name": "Ben Ito"}},
        "accounts": {
            "A-101": {"customer_id": "C-1", "kind": "checking", "balance": 812.5},
            "A-102": {"customer_id": "C-1", "kind": "savings", "balance": 94.0},
            "A-201": {"customer_id": "C-2", "kind": "checking", "balance": 12.25},
            "A-202": {"customer_id": "C-2", "kind": "savings", "balance": 5210.0},
        },
        "cards": {
            "D-7710": {"account_id": "A-202", "status": "active"},
            "D-7711": {"account_id": "A-201", "status": "active"},
        },
        "transactions": {
            "T-30": charge | {"payee": "Grocer", "amount": 17.8, "time": "2025-10-02 18:20"},
            "T-31": charge | {"time": "2025-11-03 07:05"},
            "T-32": charge | {"time": "2025-11-03 07:09"},
        },
        "credits": {},
        "transfers": [],
        "lookups": [],
    }


class Bank(Plain):
    TOOLS: ClassVar[dict[str, tuple[str, dict[str, Any]]]] = {
        "find_customer": ("Find a customer by the full name.", {"name": text("Full name")}),
        "list_accounts": ("The accounts of a customer.", {"customer_id": text("Such as C-1")}),
        "list_cards": ("The cards of an account.", {"account_id": text("Such as A-101")}),
        "list_transactions": (
            "The transactions of an account in reverse chronological order: the most recent first.",
            {"account_id": text("Such as A-101")},
        ),
        "credit_account": (
            "Credit an amount to an account.",
            {"account_id": text("Such as A-101"), "amount": {"type": "number", "description": "Dollars, above 0"}},
        ),
        "freeze_card": ("Freeze a card.", {"card_id": text("Such as D-1000")}),
        "dispute": ("Dispute a transaction.", {"transaction_id": text("Such as T-10")}),
        "transfer_to_human": ("Hand the customer over to a human.", {"reason": text("Two or three words")}),
    }

    def __init__(self, *bugs: str) -> None:
        self.bugs = frozenset(bugs)
        self.solutions = BLIND if "blind_gold" in bugs else SEEN
        self.task = "credit"
        self.db = _world()
        self.calls: list[tuple[str, dict[str, Any]]] = []

    # --- the plain subject ---

    def tasks(self) -> list[str]:
        return list(PROMPTS)

    def tools(self) -> list[dict[str, Any]]:
        return [tool for tool in super().tools() if tool["name"] != self._withheld]

    def reset(self, task: str, seed: int) -> str:
        self.task, self.db, self.calls = task, _world(), []
        return PROMPTS[task]

    def call(self, name: str, arguments: dict[str, Any]) -> Answer:
        self.calls.append((name, copy.deepcopy(arguments)))
        if name == self._withheld:
            return {"error": f"no such tool: {name!r}"}
        answer = super().call(name, arguments)
        if name in READS and "error" not in answer:
            self._note([name, arguments])
        return answer

    def score(self) -> float:
        mine, gold = self._replayed(), Bank(*self.bugs - {"withheld_tool"})
        gold.reset(self.task, 0)
        for name, arguments in self.solutions[self.task]:
            gold.call(name, arguments)
        return float(_digest(mine.judged()) == _digest(gold.judged()))

    def oracle(self, task: str) -> Solution:
        return copy.deepcopy(self.solutions[task])

    def state(self) -> dict[str, Any]:
        return copy.deepcopy(self.db)

    def production(self) -> dict[str, Any]:
        """The real bank's core system documents the same tools; this call was noted there."""
        rows = sorted(_rows(_world()["transactions"], account_id="A-102"), key=lambda row: row["time"], reverse=True)
        call = ["list_transactions", {"account_id": "A-102"}, {"transactions": rows}]
        return {"tools": super().tools(), "calls": [call]}

    def judged(self) -> dict[str, Any]:
        """Returns the compared part of the database."""
        return {key: table for key, table in self.db.items() if key != "transfers" or "effect_only" not in self.bugs}

    # --- the tools ---

    def do_find_customer(self, name: str) -> Answer:
        found = [key for key, row in self.db["customers"].items() if row["name"] == name]
        return {"customer_id": found[0], "name": name} if found else {"error": f"no customer is called {name!r}"}

    def do_list_accounts(self, customer_id: str) -> Answer:
        if customer_id not in self.db["customers"]:
            return {"error": f"no customer {customer_id!r}"}
        return {"accounts": _rows(self.db["accounts"], customer_id=customer_id)}

    def do_list_cards(self, account_id: str) -> Answer:
        if account_id not in self.db["accounts"]:
            return {"error": f"no account {account_id!r}"}
        return {"cards": _rows(self.db["cards"], account_id=account_id)}

    def do_list_transactions(self, account_id: str) -> Answer:
        if account_id not in self.db["accounts"]:
            return {"error": f"no account {account_id!r}"}
        rows = _rows(self.db["transactions"], account_id=account_id)
        if "stored_order" not in self.bugs:
            rows.sort(key=lambda row: str(row["time"]), reverse=True)
        return {"transactions": rows}

    def do_credit_account(self, account_id: str, amount: float) -> Answer:
        if account_id not in self.db["accounts"]:
            return {"error": f"no account {account_id!r}"}
        if not 0 < amount <= 1000:
            return {"error": "a credit is above 0 and at most 1000 dollars"}
        if "raw_numbers" not in self.bugs:
            amount = float(amount)
        key = f"credit-{account_id}-{amount}-{len(self.db['credits'])}"
        self.db["credits"][key] = {"account_id": account_id, "amount": amount}
        self.db["accounts"][account_id]["balance"] += amount
        return {"credit_id": key}

    def do_freeze_card(self, card_id: str) -> Answer:
        return self._set("cards", card_id, "frozen")

    def do_dispute(self, transaction_id: str) -> Answer:
        return self._set("transactions", transaction_id, "disputed")

    def do_transfer_to_human(self, reason: str) -> Answer:
        self.db["transfers"].append(reason)
        return {"ok": True}

    # --- inside ---

    @property
    def _withheld(self) -> str:
        return "dispute" if "withheld_tool" in self.bugs else ""

    def _set(self, table: str, key: str, status: str) -> Answer:
        if key not in self.db[table]:
            return {"error": f"no {key!r} among the {table}"}
        self.db[table][key]["status"] = status
        return {"ok": True}

    def _note(self, call: list[Any]) -> None:
        """A lookup that the solution makes is asked of the agent; any other is its own affair."""
        asked = call in self.solutions[self.task] and call not in self.db["lookups"]
        if asked or "log_all" in self.bugs:
            self.db["lookups"].append(call)

    def _replayed(self) -> Bank:
        """The agent's calls, played again on a fresh bank: what is judged is that bank."""
        bank = Bank(*self.bugs)
        bank.reset(self.task, 0)
        for name, arguments in self.calls:
            if name not in self.TOOLS and "strict_replay" in self.bugs:
                raise RuntimeError(f"the trajectory calls an unknown tool: {name}")
            bank.call(name, arguments)
        return bank


def _rows(table: dict[str, dict[str, Any]], **wanted: str) -> list[dict[str, Any]]:
    return [
        {"id": key, **row} for key, row in table.items() if all(row[name] == value for name, value in wanted.items())
    ]


def _digest(db: dict[str, Any]) -> str:
    return json.dumps(db | {"lookups": sorted(map(repr, db["lookups"]))}, sort_keys=True)


def sound() -> Bank:
    return Bank()


def spelling_before() -> Bank:
    return Bank("raw_numbers")


def extra_reads_before() -> Bank:
    return Bank("log_all")


def blind_gold_before() -> Bank:
    return Bank("log_all", "blind_gold")


def order_before() -> Bank:
    return Bank("stored_order")


def replay_before() -> Bank:
    return Bank("strict_replay")


def withheld_tool_before() -> Bank:
    return Bank("withheld_tool")


def idle_before() -> Bank:
    return Bank("effect_only")
