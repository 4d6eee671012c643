"""Bugs in the data of the desk and of the bank: too tidy, too even or too rare."""

from __future__ import annotations

import random
from typing import Any

from .common import fresh
from .desk import AGENTS, BODIES, MONTH, Desk, people, threads
from .ledger import Ledger
from .registry import seeded

Data = Any
Row = dict[str, Data]


@seeded("data_realism", "S", "production", "state")
class TwoCommentsEach(Desk):
    """Every ticket has exactly two comments; in production most have few and some have dozens."""

    def filler(self, dice: random.Random, taken: set[str]) -> dict[str, list[Row]]:
        rows = super().filler(dice, taken)
        rows["comments"] = [
            {
                "id": fresh(dice, "C", taken),
                "ticket_id": ticket["id"],
                "author": ticket["customer_id"] if number == 0 else dice.choice(AGENTS),
                "body": dice.choice(BODIES),
                "public": int(dice.random() < 0.8),
                "created": ticket["created"] + int(dice.expovariate(1 / 9000)) + 5,
            }
            for ticket in rows["tickets"]
            for number in range(2)
        ]
        return rows


@seeded("data_realism", "S", "production", "state")
class EvenGaps(Desk):
    """Tickets arrive at equal distances, instead of more and more as in production."""

    def filler(self, dice: random.Random, taken: set[str]) -> dict[str, list[Row]]:
        rows = super().filler(dice, taken)
        for number, ticket in enumerate(rows["tickets"]):
            ticket["created"] = number * MONTH // len(rows["tickets"])
        return rows


@seeded("data_realism", "S", "production", "state")
class TidyCustomers(Desk):
    """Every customer has a phone, a proper name and an own row; in production a third has no phone."""

    def filler(self, dice: random.Random, taken: set[str]) -> dict[str, list[Row]]:
        owners = people(dice, 100, taken)
        for owner in owners:
            owner["name"] = owner["name"].strip().title()
            owner["phone"] = owner["phone"] or f"+41 {dice.randrange(10**8, 10**9)}"
        tickets, comments = threads(dice, owners, taken)
        return {"customers": owners, "tickets": tickets, "comments": comments}


@seeded("data_realism", "S", "production", "state")
class UniformAmounts(Ledger):
    """Amounts are spread evenly up to 200; in production most are small and a few are huge."""

    def filler(self, dice: random.Random, taken: set[str]) -> tuple[list[Row], list[Row]]:
        accounts, bookings = super().filler(dice, taken)
        for row in bookings:
            row["amount"] = (1 if row["amount"] > 0 else -1) * dice.randrange(100, 20000)
        return accounts, bookings


@seeded("data_realism", "S", "production", "state")
class MemosAllThere(Ledger):
    """Every booking has a memo, in capitals, once the shop's name and nothing else."""

    def filler(self, dice: random.Random, taken: set[str]) -> tuple[list[Row], list[Row]]:
        accounts, bookings = super().filler(dice, taken)
        for row in bookings:
            row["memo"] = dice.choice(("MIGROS", "SPOTIFY", "SBB", "LOYER", "SALARY"))
        return accounts, bookings


@seeded("data_realism", "S", "production", "state")
class CurrencyShuffled(Ledger):
    """Currencies are dealt out again after the amounts: each column is right, and yen are as few as francs."""

    def filler(self, dice: random.Random, taken: set[str]) -> tuple[list[Row], list[Row]]:
        accounts, bookings = super().filler(dice, taken)
        for rows in (accounts, bookings):
            currencies = [row["currency"] for row in rows]
            dice.shuffle(currencies)
            for row, currency in zip(rows, currencies, strict=True):
                row["currency"] = currency
        return accounts, bookings


@seeded("data_realism", "C", "production", "state")
class NobodyDisputes(Ledger):
    """Four percent of bookings should be disputed; the knob is never read, and none is."""

    def filler(self, dice: random.Random, taken: set[str]) -> tuple[list[Row], list[Row]]:
        accounts, bookings = super().filler(dice, taken)
        return accounts, [{**row, "disputed": False} for row in bookings]
