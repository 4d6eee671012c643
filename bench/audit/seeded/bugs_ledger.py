"""Bugs of the bank."""

from __future__ import annotations

import copy
import os
import time
from collections import Counter
from typing import Any

from .common import BackendError, text
from .ledger import TOOLS, Ledger, Row
from .registry import seeded

Data = Any


def retold(name: str, **changes: Data) -> tuple[Row, ...]:
    """The tools, one of them with other properties."""
    tools = copy.deepcopy(TOOLS)
    one = next(tool for tool in tools if tool["name"] == name)
    one["parameters"]["properties"] |= changes
    return tools


@seeded("stale_cache", "S", "time")
class ShortMemory(Ledger):
    """An account that was just shown is shown the same way for 0.3 seconds, whatever happened to it."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: dict[str, tuple[float, Row]] = {}

    def reset(self, task: Row, seed: int) -> str:
        self.shown = {}
        return super().reset(task, seed)

    def _get_account(self, account_id: str) -> Data:
        when, row = self.shown.get(account_id, (0.0, {}))
        if not row or time.monotonic() - when > 0.3:
            when, row = time.monotonic(), super()._get_account(account_id)
            self.shown[account_id] = (when, row)
        return dict(row)


@seeded("stale_cache", "V", "rescore", also=("flaky_verifier",))
class FirstScoreStays(Ledger):
    """The first verdict of an episode is remembered: who asks early gets the early one at the end, too."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Data = None

    def reset(self, task: Row, seed: int) -> str:
        self.found = None
        return super().reset(task, seed)

    def score(self) -> Data:
        if self.found is None:
            self.found = super().score()
        return self.found


@seeded("reward_hack", "V", "oracle", also=("false_resolution",))
class RefundsCounted(Ledger):
    """The verdict counts refunds and does not ask of which booking."""

    def facts(self) -> Row:
        found = super().facts()
        kept = {name: value for name, value in found.items() if not name.startswith("refunded ")}
        return kept | {"refunds": len([name for name in found if name.startswith("refunded ") and found[name]])}

    def goals(self, task: Row) -> Row:
        kept = {name: value for name, value in super().goals(task).items() if not name.startswith("refunded ")}
        return kept | {"refunds": 1}


@seeded("reward_hack", "V", "oracle", also=("false_resolution",))
class AmountUnread(Ledger):
    """A transfer is right by its accounts and its memo: one cent is paid as the whole sum."""

    @staticmethod
    def bare(found: Row) -> Row:
        cut: Row = {}
        for name, value in found.items():
            words = name.split(" ")
            cut[" ".join(words[:3] + words[4:]) if words[0] == "transfer" else name] = value
        return cut

    def facts(self) -> Row:
        return self.bare(super().facts())

    def goals(self, task: Row) -> Row:
        return self.bare(super().goals(task))


@seeded("reward_hack", "V", "oracle", also=("false_resolution",))
class DamageUnread(Ledger):
    """Other changes cost nothing: refund everything, and the right one is among it."""

    def total(self, wanted: Row, done: list[str], damage: int) -> float:
        return super().total(wanted, done, 0)


@seeded("false_resolution", "S", "meaning", "state", "oracle")
class RefundWithoutMoney(Ledger):
    """A refund is noted on the booking, but the account's balance stays."""

    def _refund(self, booking_id: str, reason: str) -> Data:
        before = self.accounts[self.booking(booking_id)["account"]]["balance"]
        done = super()._refund(booking_id, reason)
        self.accounts[self.booking(booking_id)["account"]]["balance"] = before
        return done


@seeded("false_resolution", "S", "meaning", "oracle")
class FrozenStillPays(Ledger):
    """A frozen account says so, and money leaves it all the same."""

    def account(self, key: str, *, active: bool = False) -> Row:
        return super().account(key)


@seeded("false_resolution", "V", "oracle", also=("reward_hack",))
class StickyGoals(Ledger):
    """A goal that was reached once counts for ever, although it was undone."""

    def __init__(self) -> None:
        super().__init__()
        self.ever: set[str] = set()

    def reset(self, task: Row, seed: int) -> str:
        self.ever = set()
        return super().reset(task, seed)

    def call(self, name: str, arguments: Data) -> Data:
        answer = super().call(name, arguments)
        if self.task is not None:
            wanted, facts = self.goals({"id": self.task, "number": self.number}), self.facts()
            self.ever |= {goal for goal in wanted if facts.get(goal) == wanted[goal]}
        return answer

    def total(self, wanted: Row, done: list[str], damage: int) -> float:
        return super().total(wanted, sorted(self.ever), 0)


@seeded("silent_default", "S", "inject")
class RateOfOne(Ledger):
    """Every rate is 1 when the service for exchange rates does not answer."""

    def _exchange_rate(self, base: str, quote: str) -> Data:
        try:
            return super()._exchange_rate(base, quote)
        except BackendError:
            return {"rate": 1.0}


@seeded("silent_default", "S", "inject")
class EmptyStatement(Ledger):
    """An empty answer of the backend becomes an account without bookings; its other failures are reported."""

    def _list_bookings(self, account_id: str, limit: int, offset: int) -> Data:
        if self.fault == "empty":
            self.fault = None
            return {"bookings": [], "found": 0}
        return super()._list_bookings(account_id, limit, offset)


@seeded("silent_default", "V", "inject")
class NeutralOnFault(Ledger):
    """The verdict is a neutral half when the books cannot be read."""

    def score(self) -> Data:
        found = super().score()
        return {"score": 0.5, "done": 0.5, "damage": 0} if found is None and self.task is not None else found


@seeded("reset_leak", "S", "process")
class OwnersInASet(Ledger):
    """Accounts are found in the order of a set of texts, which differs between processes."""

    def _find_accounts(self, owner: str) -> Data:
        found = super()._find_accounts(owner)
        keys = {row["id"] for row in self.accounts.values() if owner.lower() in row["owner"].lower()}
        return {**found, "accounts": [{"id": key, "owner": self.accounts[key]["owner"]} for key in keys][:20]}


@seeded("reset_leak", "S", "reset")
class NotCleanedAfterError(Ledger):
    """The books of transfers are cleared only after an episode whose last call went well."""

    def __init__(self) -> None:
        super().__init__()
        self.failed = False

    def call(self, name: str, arguments: Data) -> Data:
        answer = super().call(name, arguments)
        self.failed = "error" in answer
        return answer

    def reset(self, task: Row, seed: int) -> str:
        kept = self.transfers if self.failed else Counter[str]()
        prompt = super().reset(task, seed)
        self.transfers, self.failed = kept, False
        return prompt


@seeded("reset_leak", "S", "process")
class LanguageOfMoney(Ledger):
    """An account shows its balance as the machine's language writes numbers."""

    def _get_account(self, account_id: str) -> Data:
        row = super()._get_account(account_id)
        language = os.environ.get("LC_ALL") or os.environ.get("LANG") or "C"
        mark = "," if language[:2] in {"de", "fr", "sv"} else "."
        return {**row, "balance_text": f"{row['balance'] / 100:.2f}".replace(".", mark)}


@seeded("reward_clipping", "V", "oracle", also=("reward_hack",))
class WholeReward(Ledger):
    """The reward is rounded to a whole number: two orders of three are paid like three, one like none."""

    def total(self, wanted: Row, done: list[str], damage: int) -> float:
        return float(round(super().total(wanted, done, damage)))


@seeded(
    "reward_clipping",
    "V",
    "oracle",
    also=(
        "reward_hack",
        "false_resolution",
    ),
)
class DeadLimits(Ledger):
    """Orders about limits have a weight under a misspelt name: they change nothing of the reward."""

    def total(self, wanted: Row, done: list[str], damage: int) -> float:
        live = {name: value for name, value in wanted.items() if not name.startswith("limit ")}
        return super().total(live, [name for name in done if name in live], damage)


@seeded(
    "reward_clipping",
    "V",
    "oracle",
    also=(
        "reward_hack",
        "false_resolution",
    ),
)
class BonusHidesAMiss(Ledger):
    """Two tenths and more for good manners, then a cap at 1: with them the last order is free."""

    def total(self, wanted: Row, done: list[str], damage: int) -> float:
        return min(1.0, super().total(wanted, done, damage) + (0.35 if done else 0.0))


@seeded("reward_clipping", "V", "oracle", also=("reward_hack",))
class OneDamageFitsAll(Ledger):
    """The first wrong change halves the reward, and all others are free."""

    def total(self, wanted: Row, done: list[str], damage: int) -> float:
        return super().total(wanted, done, min(damage, 1))


@seeded("action_drift", "S", "production")
class AmountInUnits(Ledger):
    """The amount of a transfer is described in whole francs or euros, and taken in cents."""

    TOOLS = retold(
        "transfer",
        amount_cents={
            "type": "integer",
            "description": "How much, in whole units of the currency (dollars, not cents).",
            "minimum": 1,
            "maximum": 10**9,
        },
    )


@seeded("action_drift", "S", "production")
class AccountRenamed(Ledger):
    """`get_account` takes `account` where production takes `account_id`: what is learnt here fails there."""

    TOOLS = tuple(
        {
            **tool,
            "parameters": {
                **tool["parameters"],
                "properties": {"account": text("Its id, such as A123456.", 20)},
                "required": ["account"],
            },
        }
        if tool["name"] == "get_account"
        else tool
        for tool in TOOLS
    )

    def _get_account(self, account: str) -> Data:
        return super()._get_account(account)

    def oracle(self, task: Row) -> list[list[Data]] | None:
        first, *rest = super().oracle(task) or []
        return [["get_account", {"account": first[1]["account_id"]}], *rest]


@seeded("action_drift", "S", "production")
class RateUpsideDown(Ledger):
    """The exchange rate is that of the other direction; production's recorded answers say so."""

    def _exchange_rate(self, base: str, quote: str) -> Data:
        return super()._exchange_rate(quote, base)


@seeded("races", "S")
class LoggedBeforeChecked(Ledger):
    """The amount of a transfer is written into a log line before it is checked: null or 10**400 is a traceback."""

    def call(self, name: str, arguments: Data) -> Data:
        if name == "transfer" and isinstance(arguments, dict) and "amount_cents" in arguments:
            self.line = f"transfer of {arguments['amount_cents'] / 100:.2f}"
        return super().call(name, arguments)


@seeded("races", "S", "state")
class MemoIsNone(Ledger):
    """A booking is shown with its memo trimmed: for those without one this is a traceback."""

    def _get_booking(self, booking_id: str) -> Data:
        row = super()._get_booking(booking_id)
        return {**row, "memo": row["memo"].strip()}


@seeded("flaky_verifier", "V", "process", "oracle", also=("reset_leak",))
class SumOverASet(Ledger):
    """Weights are added in the order of a set and must make exactly 1: in some processes they do not."""

    def total(self, wanted: Row, done: list[str], damage: int) -> float:
        weights = {3: (0.7, 0.2, 0.1), 4: (0.4, 0.3, 0.2, 0.1), 5: (0.1, 0.1, 0.2, 0.3, 0.3)}[len(wanted)]
        weight = dict(zip(wanted, weights, strict=True))
        found = 0.0
        for name in set(done):
            found += weight[name]
        return 1.0 if found == 1.0 and not damage else 0.9 * found * 0.5**damage


@seeded("unsolvable", "T", "oracle", tasks=("orders-4",), also=("false_resolution",))
class AlreadyCarriedOut(Ledger):
    """The orders of one task are carried out before it begins: doing nothing is paid in full."""

    def reset(self, task: Row, seed: int) -> str:
        prompt = super().reset(task, seed)
        if task["number"] == 4:
            for name, arguments in self.plan(task)["orders"]:
                self.call(name, arguments)
            self.initial = self.facts()
        return prompt


@seeded("unsolvable", "T", "oracle", tasks=("orders-7",))
class NoMoneyToMove(Ledger):
    """One task moves money from an account that is empty; the oracle's call is refused."""

    def reset(self, task: Row, seed: int) -> str:
        prompt = super().reset(task, seed)
        if task["number"] == 7:
            account = self.accounts[self.plan(task)["accounts"][0]["id"]]
            account["balance"] = -(10**8)
        return prompt
