"""A bank's ledger: accounts and their bookings in minor units; the reward is the share of executed orders.

Each order is one fact about the final books. A wrong fact or a change outside the orders halves the reward.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from typing import Any

from .common import (
    FAULTS,
    BackendError,
    ToolError,
    World,
    choice,
    facts_scored,
    fresh,
    integer,
    name_of,
    optional,
    rng,
    text,
    tool,
    weighted,
)

Data = Any
Row = dict[str, Data]
CATEGORIES = ("fees", "groceries", "housing", "income", "other", "travel")
REASONS = ("duplicate", "fraud", "goodwill")
SCALE = {"EUR": 1, "CHF": 1, "SEK": 11, "JPY": 140}
RATES = {"EUR": 1.0, "CHF": 0.9412, "SEK": 11.2308, "JPY": 161.75}
MERCHANTS = (
    ("MIGROS 0231 BERN", 20), ("migros bern", 6), ("Café Zähringer", 7), ("SPOTIFY*P1F2", 9), ("Loyer mars", 4),
    ("TWINT +41 79 *** ** 12", 12), ("SBB CFF FFS", 14), ("Salary / Lohn", 5), ("ATM  0098", 10), ("ÅHLENS STHLM", 3),
)  # fmt: skip
ACCOUNT = text("Its id, such as A123456.", 20)
BOOKING = text("Its id, such as B123456.", 20)
CENTS = 10**9


def accounts_of(dice: random.Random, count: int, taken: set[str]) -> list[Row]:
    rows: list[Row] = []
    for _ in range(count):
        currency = weighted(dice, [("EUR", 50), ("CHF", 30), ("SEK", 15), ("JPY", 5)])
        rows.append({
            "id": fresh(dice, "A", taken),
            "owner": name_of(dice),
            "currency": currency,
            "balance": int(dice.lognormvariate(12, 1.6)) * SCALE[currency] + 10**5,
            "limit": dice.choice((0, 0, 50000, 100000)),
            "status": "open" if dice.random() < 0.93 else "frozen",
        })  # fmt: skip
    return rows


def bookings_of(dice: random.Random, accounts: list[Row], taken: set[str], *, least: int = 1) -> list[Row]:
    """Bookings: amounts with a long tail that grows with the currency's scale, memos as machines and people write."""
    rows: list[Row] = []
    for account in accounts:
        for _ in range(least - 1 + min(int(dice.paretovariate(1.2)), 12)):
            memo: str | None = weighted(dice, MERCHANTS)
            credit = memo == "Salary / Lohn"
            size = dice.lognormvariate(11.5 if credit else 7.8, 0.4 if credit else 1.3)
            amount = int(size) * SCALE[account["currency"]]
            rows.append({
                "id": fresh(dice, "B", taken),
                "account": account["id"],
                "currency": account["currency"],
                "amount": amount if credit else -amount,
                "memo": None if dice.random() < 0.12 else memo,
                "category": weighted(dice, [("other", 60), ("groceries", 20), ("travel", 12), ("fees", 8)]),
                "refunded": False,
                "disputed": dice.random() < 0.04,
                "day": int(dice.random() ** 0.8 * 365),
            })  # fmt: skip
    return rows


TOOLS = (
    tool("find_accounts", "Find accounts by a part of the owner's name.", owner=text("A part of it.", 80)),
    tool("get_account", "Show an account; money is in minor units (cents, yen).", account_id=ACCOUNT),
    tool(
        "list_bookings",
        "Show the bookings of an account, newest first; money is in minor units.",
        account_id=ACCOUNT,
        limit=optional(integer("At most so many.", 1, 100), 20),
        offset=optional(integer("Leave out so many.", 0, 10**6), 0),
    ),
    tool("get_booking", "Show one booking.", booking_id=BOOKING),
    tool(
        "transfer",
        "Move money between two open accounts of one currency.",
        source=ACCOUNT,
        target=ACCOUNT,
        amount_cents=integer("How much, in minor units.", 1, CENTS),
        memo=text("What for.", 140),
    ),
    tool("refund", "Give the money of a debit back.", booking_id=BOOKING, reason=choice("Why.", *REASONS)),
    tool(
        "set_limit",
        "Set how far an account may be overdrawn.",
        account_id=ACCOUNT,
        limit_cents=integer("The limit, in minor units.", 0, CENTS),
    ),
    tool("freeze", "Freeze an account.", account_id=ACCOUNT),
    tool("unfreeze", "Open a frozen account.", account_id=ACCOUNT),
    tool("categorize", "File a booking.", booking_id=BOOKING, category=choice("Where.", *CATEGORIES)),
    tool(
        "exchange_rate",
        "What one unit of a currency is worth in another today.",
        base=choice("From.", *RATES),
        quote=choice("To.", *RATES),
    ),
    tool("list_categories", "Where bookings can be filed."),
)


class Ledger(World):
    """One bank; a session of its own per instance."""

    TOOLS = TOOLS
    graded = True

    def __init__(self) -> None:
        super().__init__()
        self.accounts: dict[str, Row] = {}
        self.bookings: dict[str, Row] = {}
        self.transfers: Counter[str] = Counter()
        self.initial: Row = {}

    # --- tasks ---

    def tasks(self) -> list[Row]:
        return [{"id": f"orders-{number}", "number": number} for number in range(16)]

    def plan(self, task: Row) -> Row:
        """Returns the plan of a task, the same under every seed."""
        if task not in self.tasks():
            raise LookupError(f"no such task: {task!r}")
        dice, taken = rng("ledger", task["number"]), set[str]()
        accounts = accounts_of(dice, 3, taken)
        for account in accounts:
            account |= {"currency": "EUR", "status": "open", "limit": 0}
        accounts[2]["status"] = "frozen" if task["number"] % 2 else "open"
        bookings = [one for one in bookings_of(dice, accounts[:2], taken, least=8) if one["amount"] < 0][:8]
        return {"accounts": accounts, "bookings": bookings, "orders": self.orders(dice, task, accounts, bookings)}

    def orders(self, dice: random.Random, task: Row, accounts: list[Row], bookings: list[Row]) -> list[list[Data]]:
        """Three to five calls that carry out a task."""
        first, second, third = (account["id"] for account in accounts)
        limit, amount = dice.randrange(20, 90) * 1000, dice.randrange(1000, 9999)
        memo = f"{dice.choice(('rent', 'deposit', 'invoice'))} {dice.randrange(100, 999)}"
        found = [
            ["refund", {"booking_id": bookings[0]["id"], "reason": dice.choice(REASONS)}],
            ["set_limit", {"account_id": first, "limit_cents": limit}],
            ["transfer", {"source": first, "target": second, "amount_cents": amount, "memo": memo}],
            ["unfreeze" if accounts[2]["status"] == "frozen" else "freeze", {"account_id": third}],
            ["categorize", {"booking_id": bookings[1]["id"], "category": "housing"}],
        ]
        return found[: 3 + task["number"] % 3]

    def prompt(self, task: Row) -> str:
        templates = {
            "refund": "refund booking {booking_id} (reason: {reason})",
            "set_limit": "set the limit of account {account_id} to {limit_cents} cents",
            "transfer": "transfer {amount_cents} cents from {source} to {target} with the memo {memo}",
            "freeze": "freeze account {account_id}",
            "unfreeze": "unfreeze account {account_id}",
            "categorize": "file booking {booking_id} under {category}",
        }
        lines = [
            f"{n}. {templates[name].format(**given)}" for n, (name, given) in enumerate(self.plan(task)["orders"], 1)
        ]
        return "Carry out these orders and nothing else.\n" + "\n".join(lines)

    def oracle(self, task: Row) -> list[list[Data]] | None:
        plan = self.plan(task)
        return [["get_account", {"account_id": plan["accounts"][0]["id"]}], *copy.deepcopy(plan["orders"])]

    def goals(self, task: Row) -> Row:
        wanted: Row = {}
        for name, given in self.plan(task)["orders"]:
            if name == "refund":
                wanted[f"refunded {given['booking_id']}"] = given["reason"]
            elif name == "set_limit":
                wanted[f"limit {given['account_id']}"] = given["limit_cents"]
            elif name == "transfer":
                wanted["transfer {source} {target} {amount_cents} {memo}".format(**given)] = 1
            elif name == "categorize":
                wanted[f"category {given['booking_id']}"] = given["category"]
            else:
                wanted[f"status {given['account_id']}"] = "frozen" if name == "freeze" else "open"
        return wanted

    def production(self) -> Row:
        dice, taken = rng("ledger", "production"), set[str]()
        accounts = accounts_of(dice, 400, taken)
        bookings = bookings_of(dice, accounts, taken)
        calls = [
            ["list_categories", {}, {"categories": list(CATEGORIES)}],
            ["get_account", {"account_id": "A1"}, {"error": "no such account: A1"}],
            ["exchange_rate", {"base": "EUR", "quote": "CHF"}, {"rate": 0.9412}],
        ]
        data = {"accounts": accounts, "bookings": bookings}
        return {"tools": copy.deepcopy(list(TOOLS)), "data": data, "calls": calls, "rates": {"bookings.disputed": 0.04}}

    # --- the episode ---

    def filler(self, dice: random.Random, taken: set[str]) -> tuple[list[Row], list[Row]]:
        accounts = accounts_of(dice, 120, taken)
        return accounts, bookings_of(dice, accounts, taken)

    def reset(self, task: Row, seed: int) -> str:
        plan = self.plan(task)
        taken = {row["id"] for row in plan["accounts"] + plan["bookings"]}
        accounts, bookings = self.filler(rng("ledger", task["number"], seed), taken)
        self.accounts = {row["id"]: row for row in sorted(accounts + plan["accounts"], key=lambda row: row["id"])}
        self.bookings = {row["id"]: row for row in sorted(bookings + plan["bookings"], key=lambda row: row["id"])}
        self.transfers = Counter()
        self.task, self.fault = task["id"], None
        self.number = task["number"]
        self.initial = self.facts()
        return self.prompt(task)

    def state(self) -> Row:
        tables = {"accounts": list(self.accounts.values()), "bookings": list(self.bookings.values())}
        return copy.deepcopy(tables | {"transfers": [{"order": name} for name in self.transfers.elements()]})

    def snapshot(self) -> Data:
        return copy.deepcopy(vars(self))

    def restore(self, saved: Data) -> None:
        vars(self).update(copy.deepcopy(saved))

    def inject(self, fault: str) -> None:
        if fault not in FAULTS[:6]:
            raise ValueError(f"cannot inject {fault!r}")
        self.fault = fault

    # --- the tools ---

    def account(self, key: str, *, active: bool = False) -> Row:
        self.backend()
        if key not in self.accounts:
            raise ToolError(f"no such account: {key}")
        if active and self.accounts[key]["status"] != "open":
            raise ToolError(f"account {key} is frozen")
        return self.accounts[key]

    def booking(self, key: str) -> Row:
        self.backend()
        if key not in self.bookings:
            raise ToolError(f"no such booking: {key}")
        return self.bookings[key]

    def _find_accounts(self, owner: str) -> Data:
        self.backend()
        found = [row for row in self.accounts.values() if owner.lower() in row["owner"].lower()]
        return {"accounts": [{"id": row["id"], "owner": row["owner"]} for row in found[:20]], "found": len(found)}

    def _get_account(self, account_id: str) -> Data:
        return dict(self.account(account_id))

    def _list_bookings(self, account_id: str, limit: int, offset: int) -> Data:
        self.account(account_id)
        found = [row for row in self.bookings.values() if row["account"] == account_id]
        found.sort(key=lambda row: (-row["day"], row["id"]))
        return {"bookings": [dict(row) for row in found[offset : offset + limit]], "found": len(found)}

    def _get_booking(self, booking_id: str) -> Data:
        return dict(self.booking(booking_id))

    def _transfer(self, source: str, target: str, amount_cents: int, memo: str) -> Data:
        giver, taker = self.account(source, active=True), self.account(target, active=True)
        if source == target or giver["currency"] != taker["currency"]:
            raise ToolError("money goes between two accounts of one currency")
        if giver["balance"] + giver["limit"] < amount_cents:
            raise ToolError(f"account {source} has not so much")
        giver["balance"] -= amount_cents
        taker["balance"] += amount_cents
        self.transfers[f"transfer {source} {target} {amount_cents} {memo}"] += 1
        return {"ok": True, "balance": giver["balance"]}

    def _refund(self, booking_id: str, reason: str) -> Data:
        row = self.booking(booking_id)
        if row["refunded"] or row["amount"] >= 0:
            raise ToolError(f"booking {booking_id} cannot be refunded")
        row["refunded"] = reason
        account = self.accounts[row["account"]]
        account["balance"] -= row["amount"]
        return {"ok": True, "balance": account["balance"]}

    def _set_limit(self, account_id: str, limit_cents: int) -> Data:
        self.account(account_id)["limit"] = limit_cents
        return {"ok": True, "limit": limit_cents}

    def _freeze(self, account_id: str) -> Data:
        self.account(account_id)["status"] = "frozen"
        return {"ok": True, "status": "frozen"}

    def _unfreeze(self, account_id: str) -> Data:
        self.account(account_id)["status"] = "open"
        return {"ok": True, "status": "open"}

    def _categorize(self, booking_id: str, category: str) -> Data:
        self.booking(booking_id)["category"] = category
        return {"ok": True, "category": category}

    def _exchange_rate(self, base: str, quote: str) -> Data:
        self.backend()
        return {"rate": round(RATES[quote] / RATES[base], 6)}

    def _list_categories(self) -> Data:
        return {"categories": list(CATEGORIES)}

    # --- the verdict ---

    def facts(self) -> Row:
        found: Row = dict(self.transfers)
        for key, row in self.accounts.items():
            found |= {f"limit {key}": row["limit"], f"status {key}": row["status"]}
        for key, row in self.bookings.items():
            found |= {f"refunded {key}": row["refunded"], f"category {key}": row["category"]}
        return found

    def score(self) -> Data:
        if self.task is None:
            return None
        try:
            self.backend()
        except BackendError:
            return None
        wanted = self.goals({"id": self.task, "number": self.number})
        done, damage = facts_scored(self.initial, self.facts(), wanted)
        return {"score": self.total(wanted, done, damage), "done": len(done) / len(wanted), "damage": damage}

    def total(self, wanted: Row, done: list[str], damage: int) -> float:
        return len(done) / len(wanted) * 0.5**damage
