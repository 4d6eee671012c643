"""A shop: a cart, stock, orders; its catalogue is drawn as the real one is."""

from __future__ import annotations

import copy
import random
from typing import Any

from .common import ToolError, checked, integer, rng, text, tool, weighted

Data = Any
THINGS = ("Mug", "mug ", "T-Shirt", "Kabel USB-C 2m", "Café crème 250g", "NOTEBOOK A5", "Lamp (used)", "Socken 3er")
SKU = text("A product's number, such as K-204711.", 12)
FAULTS = ("timeout", "refused", "500")


class Shop:
    """Session of the shop."""

    task: str | None = None
    fault = ""
    TOOLS: tuple[Data, ...] = (
        tool("find_products", "Show the products whose name contains a word.", word=text("A word.", 40)),
        tool("get_product", "Show a product.", sku=SKU),
        tool("add_to_cart", "Put some of a product into the cart.", sku=SKU, quantity=integer("How many.", 1, 99)),
        tool("remove_from_cart", "Take a product out of the cart.", sku=SKU),
        tool("get_cart", "Show the cart."),
        tool("checkout", "Order what is in the cart; it leaves the stock."),
    )

    def tasks(self) -> list[Data]:
        return [{"id": f"{kind}-{number}"} for kind in ("one", "pair") for number in (1, 2, 3)]

    def tools(self) -> list[Data]:
        return copy.deepcopy(list(self.TOOLS))

    def row(self, dice: random.Random, sku: str) -> Data:
        stock = 0 if dice.random() < 0.2 else dice.randrange(1, 60)
        about = None if dice.random() < 0.3 else weighted(dice, [("", 1), ("NEW!", 2), ("s. Datenblatt", 3)])
        price = dice.choice((499, 795, 1290, 1999, 2450)) + dice.randrange(3)
        return {"sku": sku, "name": dice.choice(THINGS), "cents": price, "stock": stock, "description": about}

    def catalogue(self, dice: random.Random) -> list[Data]:
        return [self.row(dice, f"K-{number}") for number in sorted(dice.sample(range(200000, 300000), 150))]

    def wanted(self, task: Data) -> dict[str, int]:
        dice = rng("shop", task["id"])
        skus = dice.sample(range(200000, 300000), 2 if task["id"].startswith("pair") else 1)
        return {f"K-{sku}": dice.randrange(2, 6) for sku in skus}

    def reset(self, task: Data, seed: int) -> str:
        self.task, dice = task["id"], rng("shop", task["id"], seed)
        self.goal, self.fault = self.wanted(task), ""
        rows = [row for row in self.catalogue(dice) if row["sku"] not in self.goal]
        rows += [self.row(dice, sku) | {"stock": quantity + 3} for sku, quantity in self.goal.items()]
        self.products = {row["sku"]: row for row in rows}
        self.cart: dict[str, int] = {}
        self.orders: list[Data] = []
        asked = " and ".join(f"{quantity} of {sku}" for sku, quantity in self.goal.items())
        return f"Order {asked}, in one order and nothing else. Leave the cart empty."

    def call(self, name: str, arguments: Data) -> Data:
        schema = next((tool["parameters"] for tool in self.TOOLS if tool["name"] == name), None)
        if self.task is None or schema is None:
            return {"error": "no such tool, or no episode"}
        try:
            given = checked(schema, arguments)
            self.service()
            return getattr(self, name)(**given)
        except ToolError as error:
            return {"error": str(error)}
        except ConnectionError as error:
            return {"error": f"the shop's service failed ({error}); nothing was changed"}

    def service(self) -> None:
        fault, self.fault = self.fault, ""
        if fault:
            raise ConnectionError(fault)

    def product(self, sku: str) -> Data:
        if sku not in self.products:
            raise ToolError(f"no such product: {sku!a}")
        return self.products[sku]

    def find_products(self, word: str) -> Data:
        return {"products": [dict(row) for row in self.products.values() if word.lower() in row["name"].lower()]}

    def get_product(self, sku: str) -> Data:
        return dict(self.product(sku))

    def add_to_cart(self, sku: str, quantity: int) -> Data:
        if self.product(sku)["stock"] < self.cart.get(sku, 0) + quantity:
            raise ToolError(f"only {self.products[sku]['stock']} are in stock")
        self.cart[sku] = self.cart.get(sku, 0) + quantity
        return self.get_cart()

    def remove_from_cart(self, sku: str) -> Data:
        if sku not in self.cart:
            raise ToolError("this is not in the cart")
        del self.cart[sku]
        return self.get_cart()

    def get_cart(self) -> Data:
        total = sum(self.products[sku]["cents"] * quantity for sku, quantity in self.cart.items())
        return {"lines": [{"sku": sku, "quantity": many} for sku, many in self.cart.items()], "cents": total}

    def checkout(self) -> Data:
        if not self.cart:
            raise ToolError("the cart is empty")
        for sku, quantity in self.cart.items():
            self.products[sku]["stock"] -= quantity
        self.orders.append({"order": f"O-{len(self.orders) + 1}", **self.get_cart(), "status": "placed"})
        self.cart = {}
        return copy.deepcopy(self.orders[-1])

    def score(self) -> float | None:
        if self.task is None:
            return None
        try:
            self.service()
        except ConnectionError:
            return None
        return float(len(self.orders) == 1 and not self.cart and self.right(self.orders[0]["lines"]))

    def right(self, lines: list[Data]) -> bool:
        return {line["sku"]: line["quantity"] for line in lines} == self.goal

    def oracle(self, task: Data) -> list[Data]:
        lines = [["add_to_cart", {"sku": sku, "quantity": quantity}] for sku, quantity in self.wanted(task).items()]
        return [*lines, ["checkout", {}]]

    def state(self) -> Data:
        shown = {"products": list(self.products.values()), "cart": self.get_cart()["lines"], "orders": self.orders}
        return copy.deepcopy(shown)

    def inject(self, fault: str) -> None:
        if fault not in FAULTS:
            raise ValueError(f"a shop cannot have the fault {fault!r}")
        self.fault = fault

    def production(self) -> Data:
        return {"tools": copy.deepcopy(list(Shop.TOOLS)), "data": {"products": Shop().catalogue(rng("production"))}}
