"""Bugs of the warehouse."""

from __future__ import annotations

import copy
import math
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any, ClassVar

from .common import ToolError, checked
from .registry import seeded
from .warehouse import RECOUNT_S, TOOLS, Row, Warehouse

Data = Any


def parameters(name: str) -> Row:
    return next(tool["parameters"] for tool in TOOLS if tool["name"] == name)


@seeded(
    "stale_cache",
    "S",
    "sessions",
    also=(
        "reset_leak",
        "races",
    ),
)
class StockOfTheHouse(Warehouse):
    """The stock of an article is cached for all sessions: one reads what another cached before its write."""

    known: ClassVar[dict[str, Row]] = {}

    def _get_stock(self, sku: str) -> Data:
        if sku not in self.known:
            self.known[sku] = super()._get_stock(sku)
        return dict(self.known[sku])

    def reset(self, task: str, seed: int) -> str:
        self.known.clear()
        return super().reset(task, seed)

    def call(self, name: str, arguments: Data) -> Data:
        answer = super().call(name, arguments)
        if name in {"reserve", "release", "ship", "receive", "scrap", "wait"}:
            self.known.clear()
        return answer


@seeded("stale_cache", "S")
class ReleaseForgotten(Warehouse):
    """The free stock is cached, and every write but a release clears the cache."""

    def __init__(self) -> None:
        super().__init__()
        self.free: dict[str, int] = {}

    def _get_stock(self, sku: str) -> Data:
        found = super()._get_stock(sku)
        return {**found, "free": self.free.setdefault(sku, found["free"])}

    def reset(self, task: str, seed: int) -> str:
        self.free.clear()
        return super().reset(task, seed)

    def call(self, name: str, arguments: Data) -> Data:
        answer = super().call(name, arguments)
        if name in {"reserve", "ship", "receive", "scrap", "wait"}:
            self.free.clear()
        return answer


@seeded("reward_hack", "V", "oracle", tasks=("ship",), also=("false_resolution",))
class AnyOrderShipped(Warehouse):
    """The verdict asks whether an order was shipped, not which."""

    def goals(self, task: str) -> Row:
        kept = {
            name: value for name, value in super().goals(task).items() if name.split()[0] not in {"line", "shipped"}
        }
        return kept | {"one is shipped": True}

    def facts(self) -> Row:
        found = super().facts()
        one = any(value for name, value in found.items() if name.startswith("shipped "))
        kept = {name: value for name, value in found.items() if name.split()[0] not in {"line", "shipped"}}
        return kept | {"one is shipped": one}


@seeded("reward_hack", "V", "oracle", tasks=("recount", "restock"), also=("false_resolution",))
class GoodsFromNowhere(Warehouse):
    """Receipts and recounts are not read: pieces that never arrived fill the order."""

    def goals(self, task: str) -> Row:
        return {name: value for name, value in super().goals(task).items() if name.split()[0] in {"line", "shipped"}}

    def facts(self) -> Row:
        return {name: value for name, value in super().facts().items() if name.split()[0] in {"line", "shipped"}}


@seeded("false_resolution", "V", "oracle", "state", also=("reward_hack",))
class ShippedEmpty(Warehouse):
    """An order can be shipped with nothing reserved, and its status is all that the verdict reads."""

    def _ship(self, order_id: str) -> Data:
        order = self.order(order_id, active=True)
        order["status"] = "shipped"
        return {"ok": True}

    def goals(self, task: str) -> Row:
        return {name: value for name, value in super().goals(task).items() if name.startswith("shipped ")}

    def facts(self) -> Row:
        return {name: value for name, value in super().facts().items() if name.startswith("shipped ")}


@seeded("false_resolution", "V", "oracle", also=("reward_hack",))
class ReleasedStillCounts(Warehouse):
    """A line counts as reserved once it was, although it was released again."""

    def __init__(self) -> None:
        super().__init__()
        self.highest: Counter[str] = Counter()

    def reset(self, task: str, seed: int) -> str:
        self.highest = Counter()
        return super().reset(task, seed)

    def facts(self) -> Row:
        found = super().facts()
        return found | {name: max(found[name], self.highest[name]) for name in found if name.startswith("line ")}

    def _reserve(self, order_id: str, sku: str, quantity: int) -> Data:
        done = super()._reserve(order_id, sku, quantity)
        self.highest[f"line {order_id} {sku}"] = quantity
        return done


@seeded("silent_default", "S", "advance", "state", also=("false_resolution",))
class LostRecount(Warehouse):
    """A recount of an article that lies in no bin finds nothing to count, and reports that it is done."""

    def finish(self, row: Row) -> None:
        if row["bin"] is None:
            row["recounted"] = True
        else:
            super().finish(row)


@seeded("silent_default", "S")
class UnknownIsNone(Warehouse):
    """An article that does not exist has 0 pieces, instead of an error."""

    def _get_stock(self, sku: str) -> Data:
        if sku not in self.stock:
            return {"sku": sku, "bin": None, "on_hand": 0, "reserved": 0, "free": 0}
        return super()._get_stock(sku)


@seeded("races", "S", "threads", "load", also=("silent_default",))
class BusyMeansNothing(Warehouse):
    """A read that does not get the lock within 2 milliseconds returns a stock of 0."""

    def call(self, name: str, arguments: Data) -> Data:
        if name != "get_stock":
            return super().call(name, arguments)
        if not self.lock.acquire(timeout=0.002):
            return {"sku": "", "bin": None, "on_hand": 0, "reserved": 0, "free": 0}
        try:
            return super().call(name, arguments)
        finally:
            self.lock.release()


@seeded("races", "S", "threads")
class LostUpdate(Warehouse):
    """Goods are received outside the lock: of two at the same time one is lost."""

    def call(self, name: str, arguments: Data) -> Data:
        if name != "receive" or self.task is None:
            return super().call(name, arguments)
        try:
            given = checked(parameters("receive"), arguments)
            row = self.article(given["sku"])
        except ToolError as error:
            return {"error": str(error)}
        before, received = row["on_hand"], row["received"]
        time.sleep(0.0005)
        row |= {"on_hand": before + given["quantity"], "received": received + given["quantity"]}
        return {"ok": True}


@seeded("races", "S", "threads", "state")
class SoldTwice(Warehouse):
    """The free stock is checked before the lock and reserved behind it: two orders get the same pieces."""

    def call(self, name: str, arguments: Data) -> Data:
        if name != "reserve" or self.task is None:
            return super().call(name, arguments)
        try:
            given = checked(parameters("reserve"), arguments)
            order, row = self.order(given["order_id"], active=True), self.article(given["sku"])
        except ToolError as error:
            return {"error": str(error)}
        sku, quantity = given["sku"], given["quantity"]
        if order["lines"].get(sku) != quantity or sku in order["reserved"]:
            return {"error": f"order {given['order_id']} does not ask for {quantity} pieces of {sku}, or has them"}
        if row["on_hand"] - row["reserved"] < quantity:
            return {"error": f"there are not {quantity} pieces of {sku} free"}
        time.sleep(0.001)
        with self.lock:
            row["reserved"] += quantity
            order["reserved"][sku] = quantity
        return {"ok": True}


@seeded("reset_leak", "S")
class TimeOfTheMachine(Warehouse):
    """Shipping answers with the machine's own time."""

    def _ship(self, order_id: str) -> Data:
        return {**super()._ship(order_id), "shipped_at": datetime.now(UTC).isoformat()}


@seeded("reset_leak", "S", "reset")
class SortedByInterest(Warehouse):
    """Orders are listed by how often they were looked at, in earlier episodes, too: reading is enough to leak."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: Counter[str] = Counter()

    def _get_order(self, order_id: str) -> Data:
        found = super()._get_order(order_id)
        self.looks[order_id] += 1
        return found

    def _list_orders(self, status: str) -> Data:
        return {"orders": sorted(super()._list_orders(status)["orders"], key=lambda key: -self.looks[key])}


@seeded("reward_clipping", "V", "oracle")
class AllOrNothing(Warehouse):
    """The share of goals is divided in whole numbers: a reward that should have many levels has two."""

    def total(self, wanted: Row, done: list[str], damage: int) -> float:
        return float(len(done) // len(wanted)) * 0.5**damage


@seeded("reward_clipping", "V", "oracle", also=("reward_hack",))
class DamagePays(Warehouse):
    """The penalty for wrong changes has the wrong sign, and the cap at 1 hides it on perfect episodes."""

    def total(self, wanted: Row, done: list[str], damage: int) -> float:
        return min(1.0, len(done) / len(wanted) + 0.1 * damage)


@seeded("reward_clipping", "V", "oracle")
class LogOfLittle(Warehouse):
    """The reward is a logarithm with a floor: early progress is worth as much as none."""

    def total(self, wanted: Row, done: list[str], damage: int) -> float:
        share = super().total(wanted, done, damage)
        return max(0.0, 1 + math.log2(share)) if share else 0.0


@seeded("data_realism", "C", "production", "state")
class RarelyRush(Warehouse):
    """One order in five should be urgent; of those made here it is one in fifty."""

    def reset(self, task: str, seed: int) -> str:
        prompt = super().reset(task, seed)
        for number, order in enumerate(self.orders.values()):
            order["rush"] = number % 50 == 49
        return prompt


@seeded("data_realism", "S", "production", "state")
class AllInBins(Warehouse):
    """Every article has a bin, a clean title and round pieces; in production some have none, and titles are a mess."""

    def reset(self, task: str, seed: int) -> str:
        prompt = super().reset(task, seed)
        named = {one["sku"] for one in self.plan(task)["stock"]}
        for row in self.stock.values():
            row |= {"bin": row["bin"] or "A-01", "title": row["title"].strip().capitalize()}
            if row["sku"] not in named:
                row["on_hand"] = round(row["on_hand"], -1)
        return prompt


@seeded("action_drift", "S", "state")
class PalletUnsaid(Warehouse):
    """More than 1000 pieces can only be received with a pallet's number, which the schema does not know."""

    def _receive(self, sku: str, quantity: int) -> Data:
        if quantity > 1000:
            raise ToolError("pallet_id is missing")
        return super()._receive(sku, quantity)


@seeded("action_drift", "S")
class SchemaAfterShipping(Warehouse):
    """After an order has been shipped the tools are described anew, and `reserve` takes `qty`."""

    def tools(self) -> list[Row]:
        found = super().tools()
        if any(order["status"] == "shipped" for order in self.orders.values()):
            one = next(tool for tool in found if tool["name"] == "reserve")["parameters"]
            one["properties"]["qty"] = one["properties"].pop("quantity")
            one["required"] = ["order_id", "sku", "qty"]
        return found


@seeded("action_drift", "S", "advance", "oracle", tasks=("recount",), also=("unsolvable",))
class RecountTakesMinutes(Warehouse):
    """A recount is described as half a minute and takes five."""

    def _start_recount(self, sku: str) -> Data:
        self.article(sku)
        self.jobs.setdefault(sku, self.now + 10 * RECOUNT_S)
        return {"status": "running"}


@seeded("unsolvable", "T", "oracle", tasks=("ship-2",))
class NotEnoughOnHand(Warehouse):
    """One task asks to ship more than there is, and nothing can arrive."""

    def plan(self, task: str) -> Row:
        plan = super().plan(task)
        if task == "ship-2":
            plan = copy.deepcopy(plan)
            plan["stock"][1]["on_hand"] = 1
        return plan


@seeded(
    "flaky_verifier",
    "V",
    "threads",
    "load",
    also=(
        "races",
        "silent_default",
    ),
)
class BusyMeansZero(Warehouse):
    """A verdict that has to wait for the lock is a 0."""

    def score(self) -> float | None:
        if not self.lock.acquire(timeout=0.002):
            return 0.0
        try:
            return super().score()
        finally:
            self.lock.release()


@seeded("reset_leak", "S", "process")
class OrdersByHash(Warehouse):
    """Orders of one status come in the order of their hash, which is another one in each process."""

    def _list_orders(self, status: str) -> Data:
        return {"orders": sorted(super()._list_orders(status)["orders"], key=hash)}
