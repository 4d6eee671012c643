"""A warehouse that several pickers work in at once: one lock around every call, recounts that finish later.

The reward is the share of goals (goods received, lines reserved, orders shipped, bins recounted), halved by each
change that no goal asks for. Ids are made of what they stand for, so that the order of threads does not show.
"""

from __future__ import annotations

import copy
import random
import threading
from typing import Any

from .common import ToolError, World, choice, facts_scored, fresh, integer, rng, text, tool, weighted

Data = Any
Row = dict[str, Data]
GOODS = ("bolt M8", "Bolt M8x40 ", "gasket", 'Dichtung 3"', "hose 12mm", "ÖLFILTER", "bearing 6204", "Bearing 6204-2RS")
SKU = text("The article's number, such as S123456.", 20)
ORDER = text("The order's number, such as O123456.", 20)
QUANTITY = integer("How many pieces.", 1, 100000)
RECOUNT_S = 30


def articles(dice: random.Random, count: int, taken: set[str]) -> list[Row]:
    return [
        {
            "sku": fresh(dice, "S", taken),
            "title": dice.choice(GOODS),
            "bin": f"{dice.choice('ABCDEF')}-{dice.randrange(1, 40):02d}" if dice.random() > 0.06 else None,
            "on_hand": int(dice.lognormvariate(4, 1.1)),
            "reserved": 0,
            "missing": int(dice.expovariate(0.5)) if dice.random() < 0.3 else 0,
            "received": 0,
            "scrapped": 0,
            "recounted": False,
        }
        for _ in range(count)
    ]


def orders_of(dice: random.Random, stock: list[Row], taken: set[str], *, count: int) -> list[Row]:
    rows: list[Row] = []
    for _ in range(count):
        chosen = dice.sample(stock, min(1 + int(dice.expovariate(0.7)), 6, len(stock)))
        rows.append({
            "id": fresh(dice, "O", taken),
            "customer": weighted(dice, [("Huber AG", 9), ("HUBER AG", 2), ("Sté Morel", 5), ("J. Okafor", 4), ("", 1)]),
            "rush": dice.random() < 0.2,
            "status": "open",
            "lines": {one["sku"]: 1 + int(dice.expovariate(0.3)) for one in chosen},
            "reserved": {},
        })  # fmt: skip
    return rows


TOOLS = (
    tool("list_orders", "Show the orders of a status.", status=choice("Which.", "open", "shipped")),
    tool("get_order", "Show an order: its lines, and what is reserved for it.", order_id=ORDER),
    tool("get_stock", "Show what there is of an article.", sku=SKU),
    tool("find_articles", "Find articles by a part of the title.", title=text("A part of it.", 60)),
    tool("reserve", "Put pieces aside for a line of an open order.", order_id=ORDER, sku=SKU, quantity=QUANTITY),
    tool("release", "Put the pieces of a line back.", order_id=ORDER, sku=SKU),
    tool("ship", "Send an order of which every line is reserved in full.", order_id=ORDER),
    tool("receive", "Take pieces into stock.", sku=SKU, quantity=QUANTITY),
    tool("scrap", "Throw broken pieces away.", sku=SKU, quantity=QUANTITY),
    tool("start_recount", "Have the pieces of an article counted; takes half a minute.", sku=SKU),
    tool("recount_status", "Ask how far a recount is.", sku=SKU),
    tool("wait", "Let time pass.", seconds=integer("How long.", 1, 3600)),
)


class Warehouse(World):
    """One building that all its sessions share."""

    TOOLS = TOOLS
    shared = True
    graded = True
    ARTICLES, ORDERS = 200, 120

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.RLock()
        self.stock: dict[str, Row] = {}
        self.orders: dict[str, Row] = {}
        self.jobs: dict[str, int] = {}
        self.now = 0
        self.initial: Row = {}

    # --- tasks ---

    def tasks(self) -> list[str]:
        return [f"{kind}-{number}" for number in range(4) for kind in ("ship", "restock", "recount")]

    def plan(self, task: str) -> Row:
        """Returns the plan of a task, the same under every seed."""
        if task not in self.tasks():
            raise LookupError(f"no such task: {task!r}")
        dice, taken = rng("warehouse", task), set[str]()
        stock = articles(dice, 3, taken)
        for one in stock:
            one |= {"on_hand": 50 + dice.randrange(100), "missing": 0}
        order = {
            **orders_of(dice, stock, taken, count=1)[0],
            "lines": {one["sku"]: dice.randrange(2, 20) for one in stock},
        }
        last = stock[-1]
        if task.startswith("restock"):
            last["on_hand"] = 1
        if task.startswith("recount"):
            last |= {"on_hand": 1, "missing": -60}
        return {"stock": stock, "order": order, "last": last["sku"], "quantity": dice.randrange(30, 99)}

    def prompt(self, task: str) -> str:
        plan = self.plan(task)
        first = {
            "ship": "",
            "restock": f"{plan['quantity']} pieces of {plan['last']} have arrived: receive them. ",
            "recount": f"The books of {plan['last']} are wrong: have it recounted first. ",
        }[task.partition("-")[0]]
        return f"{first}Reserve every line of order {plan['order']['id']} in full and ship it."

    def oracle(self, task: str) -> list[list[Data]] | None:
        plan = self.plan(task)
        order, last = plan["order"], plan["last"]
        first: list[list[Data]] = {
            "ship": [],
            "restock": [["receive", {"sku": last, "quantity": plan["quantity"]}]],
            "recount": [["start_recount", {"sku": last}], ["wait", {"seconds": RECOUNT_S}]],
        }[task.partition("-")[0]]
        lines = [
            ["reserve", {"order_id": order["id"], "sku": sku, "quantity": quantity}]
            for sku, quantity in order["lines"].items()
        ]
        return [["get_order", {"order_id": order["id"]}], *first, *lines, ["ship", {"order_id": order["id"]}]]

    def goals(self, task: str) -> Row:
        plan = self.plan(task)
        key = plan["order"]["id"]
        wanted: Row = {f"line {key} {sku}": quantity for sku, quantity in plan["order"]["lines"].items()}
        wanted[f"shipped {key}"] = True
        if task.startswith("restock"):
            wanted[f"received {plan['last']}"] = plan["quantity"]
        if task.startswith("recount"):
            wanted[f"recounted {plan['last']}"] = True
        return wanted

    def production(self) -> Row:
        dice, taken = rng("warehouse", "production"), set[str]()
        stock = articles(dice, 600, taken)
        orders = orders_of(dice, stock, taken, count=400)
        return {"data": {"stock": stock, "orders": orders}, "rates": {"orders.rush": 0.2}}

    # --- the episode ---

    def reset(self, task: str, seed: int) -> str:
        with self.lock:
            plan = self.plan(task)
            dice, taken = rng("warehouse", task, seed), {plan["order"]["id"], *(one["sku"] for one in plan["stock"])}
            stock = articles(dice, self.ARTICLES, taken)
            orders = [*orders_of(dice, stock, taken, count=self.ORDERS), plan["order"]]
            stock = sorted(stock + plan["stock"], key=lambda row: row["sku"])
            self.stock = {row["sku"]: row for row in stock}
            self.orders = {row["id"]: row for row in sorted(orders, key=lambda row: row["id"])}
            self.jobs, self.now, self.task = {}, 0, task
            self.initial = self.facts()
            return self.prompt(task)

    def call(self, name: str, arguments: Data) -> Data:
        with self.lock:
            return super().call(name, arguments)

    def advance(self, seconds: float) -> None:
        with self.lock:
            self.now += int(seconds)
            for sku in [sku for sku, due in self.jobs.items() if due <= self.now]:
                del self.jobs[sku]
                self.finish(self.stock[sku])

    def finish(self, row: Row) -> None:
        """A recount ends: the books say what is there."""
        row["on_hand"] = max(row["on_hand"] - row["missing"], row["reserved"])
        row |= {"missing": 0, "recounted": True}

    def state(self) -> Row:
        with self.lock:
            stock, orders = list(self.stock.values()), list(self.orders.values())
            return copy.deepcopy({"stock": stock, "orders": orders, "jobs": dict(sorted(self.jobs.items()))})

    # --- the tools ---

    def article(self, sku: str) -> Row:
        if sku not in self.stock:
            raise ToolError(f"no such article: {sku}")
        return self.stock[sku]

    def order(self, key: str, *, active: bool = False) -> Row:
        if key not in self.orders:
            raise ToolError(f"no such order: {key}")
        if active and self.orders[key]["status"] != "open":
            raise ToolError(f"order {key} has left")
        return self.orders[key]

    def _list_orders(self, status: str) -> Data:
        return {"orders": [key for key, row in self.orders.items() if row["status"] == status]}

    def _get_order(self, order_id: str) -> Data:
        return copy.deepcopy(self.order(order_id))

    def _get_stock(self, sku: str) -> Data:
        row = self.article(sku)
        free = row["on_hand"] - row["reserved"]
        return {"sku": sku, "bin": row["bin"], "on_hand": row["on_hand"], "reserved": row["reserved"], "free": free}

    def _find_articles(self, title: str) -> Data:
        found = [row for row in self.stock.values() if title.lower() in row["title"].lower()]
        return {"articles": [{"sku": row["sku"], "title": row["title"]} for row in found[:25]], "found": len(found)}

    def _reserve(self, order_id: str, sku: str, quantity: int) -> Data:
        order, row = self.order(order_id, active=True), self.article(sku)
        if order["lines"].get(sku) != quantity or sku in order["reserved"]:
            raise ToolError(f"order {order_id} does not ask for {quantity} pieces of {sku}, or has them")
        if row["on_hand"] - row["reserved"] < quantity:
            raise ToolError(f"there are not {quantity} pieces of {sku} free")
        row["reserved"] += quantity
        order["reserved"][sku] = quantity
        return {"ok": True}

    def _release(self, order_id: str, sku: str) -> Data:
        order, row = self.order(order_id, active=True), self.article(sku)
        if sku not in order["reserved"]:
            raise ToolError(f"nothing of {sku} is reserved for {order_id}")
        row["reserved"] -= order["reserved"].pop(sku)
        return {"ok": True}

    def _ship(self, order_id: str) -> Data:
        order = self.order(order_id, active=True)
        if order["reserved"] != order["lines"]:
            raise ToolError(f"not every line of {order_id} is reserved")
        for sku, quantity in order["reserved"].items():
            self.stock[sku]["on_hand"] -= quantity
            self.stock[sku]["reserved"] -= quantity
        order["status"] = "shipped"
        return {"ok": True}

    def _receive(self, sku: str, quantity: int) -> Data:
        row = self.article(sku)
        row["on_hand"] += quantity
        row["received"] += quantity
        return {"ok": True}

    def _scrap(self, sku: str, quantity: int) -> Data:
        row = self.article(sku)
        if row["on_hand"] - row["reserved"] < quantity:
            raise ToolError(f"there are not {quantity} pieces of {sku} free")
        row["on_hand"] -= quantity
        row["scrapped"] += quantity
        return {"ok": True}

    def _start_recount(self, sku: str) -> Data:
        self.article(sku)
        self.jobs.setdefault(sku, self.now + RECOUNT_S)
        return {"status": "running"}

    def _recount_status(self, sku: str) -> Data:
        row = self.article(sku)
        return {"status": "running" if sku in self.jobs else "done" if row["recounted"] else "never started"}

    def _wait(self, seconds: int) -> Data:
        self.advance(seconds)
        return {"ok": True}

    # --- the verdict ---

    def facts(self) -> Row:
        found: Row = {}
        for sku, row in self.stock.items():
            found |= {f"{what} {sku}": row[what] for what in ("received", "scrapped", "recounted")}
        for key, row in self.orders.items():
            found[f"shipped {key}"] = row["status"] == "shipped"
            found |= {f"line {key} {sku}": row["reserved"].get(sku, 0) for sku in row["lines"]}
        return found

    def score(self) -> float | None:
        with self.lock:
            if self.task is None:
                return None
            wanted = self.goals(self.task)
            done, damage = facts_scored(self.initial, self.facts(), wanted)
            return self.total(wanted, done, damage)

    def total(self, wanted: Row, done: list[str], damage: int) -> float:
        return len(done) / len(wanted) * 0.5**damage
