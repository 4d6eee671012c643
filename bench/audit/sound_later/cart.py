"""A shop: sold-out goods are hidden by a filter, checkout is idempotent by a key, cancelled orders stay listed."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

LIMIT = 5
Count = Annotated[int, msgspec.Meta(ge=1, le=LIMIT)]
Key = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]


class Product(msgspec.Struct):
    name: str
    kind: Literal["mug", "lamp", "pen"]
    cents: int
    stock: int


class Order(msgspec.Struct):
    items: dict[str, int]
    cents: int
    key: str
    status: Literal["placed", "cancelled"] = "placed"


GOODS = {
    "P1": Product("Blue mug", "mug", 890, 4),
    "P2": Product("Tin mug", "mug", 450, 0),
    "P3": Product("Glass mug", "mug", 890, 9),
    "P4": Product("Desk lamp", "lamp", 3900, 2),
    "P5": Product("Reading lamp", "lamp", 2750, 7),
    "P6": Product("Ink pen", "pen", 310, 30),
    "P7": Product("Gold pen", "pen", 5100, 0),
}
PLACED = {"O1": Order({"P5": 1}, 2750, "old-1"), "O2": Order({"P6": 2, "P1": 1}, 1510, "old-2")}


class Shop(qn.State):
    goods: qn.Table[Product]
    orders: qn.Table[Order]
    cart: dict[str, int] = {}

    @qn.tool
    def search(
        self,
        kind: Literal["mug", "lamp", "pen"] | None = None,
        include_sold_out: bool = False,  # noqa: FBT001, FBT002 -- a model passes arguments by name
    ) -> list[dict[str, str | int]]:
        """List products, the cheapest first, of equal price by sku. Sold-out products are left out by default.

        Args:
            kind: Only products of this kind.
            include_sold_out: Also list products without stock.
        """
        rows = [
            (row.cents, sku, row)
            for sku, row in self.goods.items()
            if (kind is None or row.kind == kind) and (row.stock or include_sold_out)
        ]
        return [{"sku": sku, "name": row.name, "cents": cents, "stock": row.stock} for cents, sku, row in sorted(rows)]

    @qn.tool
    def add(self, sku: str, count: Count) -> dict[str, int]:
        """Add to the cart; returns the cart. The cart holds at most 5 of a product, and no more than the stock.

        A cart reserves nothing; the stock falls at checkout.

        Args:
            sku: The product.
            count: How many more.
        """
        if sku not in self.goods:
            raise qn.ToolError(f"unknown product {sku!r}")
        most, wanted = min(LIMIT, self.goods[sku].stock), self.cart.get(sku, 0) + count
        if wanted > most:
            raise qn.ToolError(f"the cart may hold {most} of {sku}, with {count} more it would hold {wanted}")
        self.cart[sku] = wanted
        return self.view_cart()

    @qn.tool
    def remove(self, sku: str) -> dict[str, int]:
        """Remove a product from the cart, however many; returns the cart.

        Args:
            sku: The product.
        """
        if sku not in self.cart:
            raise qn.ToolError(f"{sku!r} is not in the cart")
        del self.cart[sku]
        return self.view_cart()

    @qn.tool
    def view_cart(self) -> dict[str, int]:
        """Read the cart: how many of each product."""
        return dict(sorted(self.cart.items()))

    @qn.tool
    def checkout(self, key: Key) -> dict[str, str | Order]:
        """Order what is in the cart, and empty it. A key that was used returns its order and does nothing else.

        Args:
            key: Your own name for this checkout, so that it can be repeated safely. An order keeps its key.
        """
        for number, order in self.orders.items():
            if order.key == key:
                return {"id": number, "order": order}
        if not self.cart:
            raise qn.ToolError("the cart is empty")
        cents = 0
        for sku, count in self.cart.items():
            row = self.goods[sku]
            row.stock -= count
            self.goods[sku] = row
            cents += row.cents * count
        number = f"O{len(self.orders) + 1}"  # Orders are never removed.
        self.orders[number] = Order(self.view_cart(), cents, key)
        self.cart = {}
        return {"id": number, "order": self.orders[number]}

    @qn.tool
    def cancel(self, order: str) -> Order:
        """Cancel an order. Its products return to stock; the order stays listed as cancelled.

        Args:
            order: Its id.
        """
        if order not in self.orders:
            raise qn.ToolError(f"unknown order {order!r}")
        row = self.orders[order]
        if row.status == "cancelled":
            raise qn.ToolError(f"{order} is cancelled already")
        row.status = "cancelled"
        self.orders[order] = row
        for sku, count in row.items.items():
            product = self.goods[sku]
            product.stock += count
            self.goods[sku] = product
        return row

    @qn.tool
    def list_orders(self) -> dict[str, Order]:
        """List all orders, cancelled ones too, by id."""
        return dict(self.orders.items())


Job = tuple[str, list[dict[str, int]], list[str]]  # What is asked, new orders, cancelled ones.
JOBS: list[Job] = [
    ("Order 3 ink pens.", [{"P6": 3}], []),
    ("Order 2 of the cheapest lamp that is in stock.", [{"P5": 2}], []),
    ("Order 1 of the cheapest mug that is in stock; of equally cheap ones, that with the lower sku.", [{"P1": 1}], []),
    ("Cancel order O1.", [], ["O1"]),
    ("Order a desk lamp and 5 ink pens, together in one order.", [{"P4": 1, "P6": 5}], []),
    ("Cancel order O2 and order instead 1 ink pen and 1 blue mug, together.", [{"P6": 1, "P1": 1}], ["O2"]),
    (
        "Order 8 glass mugs. A product is limited to 5 in an order, so place one order of 5 and one of 3.",
        [{"P3": 5}, {"P3": 3}],
        [],
    ),
]


def solution(job: Job) -> list[tuple[str, dict[str, object]]]:
    calls: list[tuple[str, dict[str, object]]] = [("cancel", {"order": order}) for order in job[2]]
    for n, items in enumerate(job[1]):
        calls += [("add", {"sku": sku, "count": count}) for sku, count in items.items()]
        calls.append(("checkout", {"key": f"mine-{n}"}))
    return calls


def tasks(split: str) -> list[qn.Task[Shop]]:
    world = Shop(goods=qn.Table(Product, GOODS), orders=qn.Table(Order, PLACED))
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{job[0]} Leave the cart empty. Cancel no other old order, and any other order of yours.",
            start=world,
            truth={"old": [order not in job[2] for order in PLACED], "new": sorted(sorted(o.items()) for o in job[1])},
            solution=tuple(solution(job)),
        )
        for n, job in enumerate(JOBS, 1)
    ]


@qn.reward
def ordered(view: qn.EpisodeView[Shop]) -> qn.Score:
    """An order of the agent's own that it cancelled again does no harm: it counts as never made."""
    rows = dict(view.state.orders.items())
    live = sorted(
        sorted([sku, n] for sku, n in row.items.items())
        for number, row in rows.items()
        if number not in PLACED and row.status == "placed"
    )
    old = [rows[number].status == "placed" for number in PLACED]
    wanted = [[list(pair) for pair in order] for order in view.task.truth["new"]]
    right = live == wanted and old == view.task.truth["old"] and not view.state.cart
    return qn.Score(float(right), f"new orders {live}, old ones placed {old}, cart {view.state.cart}")


env = qn.Environment(
    "cart", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(ordered), state=Shop, splits=("test",)
)
