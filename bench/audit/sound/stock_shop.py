"""Shop with holds that expire, orders that are idempotent, and a cached search that every change of stock clears."""

from typing import Annotated

import msgspec
from msgspec import Meta

import quintain as qn
from quintain.state import Rng

HOLD_MINUTES = 15
KINDS = ("lamp", "kettle", "chair", "mirror", "shelf")
COLOURS = ("amber", "black", "cream", "green", "slate")


class Item(msgspec.Struct):
    name: str
    price_cents: int
    on_hand: int


class Hold(msgspec.Struct):
    sku: str
    quantity: int
    until: float
    """Second of the clock at which the hold ends."""


class Order(msgspec.Struct):
    lines: dict[str, int]
    total_cents: int


class Shop(qn.State):
    items: dict[str, Item]
    holds: dict[str, Hold] = {}
    orders: dict[str, Order] = {}
    cache: dict[str, list[dict[str, str | int]]] = {}
    """Results of searches since the last change of stock."""

    @qn.tool
    def search(self, word: Annotated[str, Meta(min_length=1, max_length=40)]) -> list[dict[str, str | int]]:
        """Find items by a part of their name, in any letter case, the cheapest first.

        `available` counts the pieces without a hold at this moment. Prices are in cents.

        Args:
            word: A part of the name, such as lamp.
        """
        key = word.casefold()
        if key not in self.cache:
            found = [(sku, item) for sku, item in self.items.items() if key in item.name.casefold()]
            found.sort(key=lambda pair: (pair[1].price_cents, pair[0]))
            self.cache[key] = [
                {"sku": sku, "name": item.name, "price_cents": item.price_cents, "available": self.available(sku)}
                for sku, item in found
            ]
        return self.cache[key]

    @qn.tool
    def hold(self, sku: str, quantity: Annotated[int, Meta(ge=1, le=20)]) -> str:
        """Hold items for 15 minutes; returns the id of the hold. Held items are not available to another hold.

        Args:
            sku: Number of the item, from a search.
            quantity: How many.
        """
        if sku not in self.items:
            raise qn.ToolError(f"no item {sku!r}; `search` shows the numbers")
        if quantity > self.available(sku):
            raise qn.ToolError(f"{quantity} of {sku} are not available, only {self.available(sku)}")
        key, seconds = self.new_id("H"), 60 * HOLD_MINUTES
        self.holds[key] = Hold(sku, quantity, self.clock.now + seconds)
        self.clock.after(seconds, self.expire, key=key)
        self.cache.clear()
        return key

    @qn.tool
    def list_holds(self) -> dict[str, dict[str, str | int]]:
        """List the holds that are in force, with the minutes that are left, rounded down."""
        return {
            key: {"sku": one.sku, "quantity": one.quantity, "minutes_left": int(one.until - self.clock.now) // 60}
            for key, one in self.holds.items()
        }

    @qn.tool
    def release(self, hold: str) -> str:
        """End a hold early.

        Args:
            hold: Id of the hold.
        """
        if hold not in self.holds:
            raise qn.ToolError(f"no hold {hold!r} is in force; holds: {', '.join(self.holds) or 'none'}")
        self.expire(hold)
        return f"released {hold}"

    @qn.tool
    def place_order(self, request: Annotated[str, Meta(pattern="^[a-z0-9-]{1,40}$")]) -> Order:
        """Order everything that is held, as one order; the holds end.

        The call is idempotent: with a request id that was used before, it returns that order and changes nothing.

        Args:
            request: Id of your choice, 1 to 40 of a-z, 0-9 and "-".
        """
        if request in self.orders:
            return self.orders[request]
        if not self.holds:
            raise qn.ToolError("no hold is in force, so there is nothing to order; `hold` first")
        lines: dict[str, int] = {}
        for one in self.holds.values():
            lines[one.sku] = lines.get(one.sku, 0) + one.quantity
        for sku, quantity in lines.items():
            self.items[sku].on_hand -= quantity
        total = sum(self.items[sku].price_cents * quantity for sku, quantity in lines.items())
        self.holds.clear()
        self.cache.clear()
        self.orders[request] = Order(dict(sorted(lines.items())), total)
        return self.orders[request]

    @qn.tool
    def wait(self, minutes: Annotated[int, Meta(ge=1, le=60)]) -> str:
        """Let time pass; other tools take none.

        Args:
            minutes: How long, 1 to 60.
        """
        self.clock.advance(60 * minutes)
        return f"{minutes} minutes passed; {len(self.holds)} holds are in force"

    def expire(self, key: str) -> None:
        """Ends a hold; nothing happens if it ended before."""
        if self.holds.pop(key, None):
            self.cache.clear()

    def available(self, sku: str) -> int:
        return self.items[sku].on_hand - sum(one.quantity for one in self.holds.values() if one.sku == sku)


def make(split: str, number: int) -> qn.Task[Shop]:
    rng = Rng(key=f"stock_shop/{split}/{number}".encode())
    names = [f"{colour} {kind}" for kind in KINDS for colour in COLOURS]
    prices = rng.sample(range(12, 90), len(names))
    items = {f"S{n + 1}": Item(name, 100 * prices[n] + 95, 1 + rng.below(6)) for n, name in enumerate(names)}
    lines: dict[str, int] = {}
    for kind in (KINDS[number % 5], KINDS[(number + 1 + number // 5) % 5]):
        most = max(item.on_hand for item in items.values() if kind in item.name)
        quantity = 1 + rng.below(most)
        enough = [sku for sku, item in items.items() if kind in item.name and item.on_hand >= quantity]
        lines[min(enough, key=lambda sku: items[sku].price_cents)] = quantity
    wishes = [f"{quantity} x the cheapest {items[sku].name.split()[1]}" for sku, quantity in lines.items()]
    return qn.Task(
        id=f"{split}-{number}",
        prompt=(
            f"Buy {' and '.join(wishes)}. All pieces of a kind must be the same item, so take the cheapest item of the "
            "kind of which enough pieces are available. Place exactly one order, with the request id "
            f"{split}-{number}, and hold nothing at the end."
        ),
        start=Shop(items=items),
        truth=lines,
        solution=(
            *(("hold", {"sku": sku, "quantity": quantity}) for sku, quantity in lines.items()),
            ("place_order", {"request": f"{split}-{number}"}),
        ),
    )


@qn.reward
def one_right_order(view: qn.EpisodeView[Shop]) -> qn.Score:
    found = {request: order.lines for request, order in view.state.orders.items()}
    is_right = found == {view.task.id: view.task.truth} and not view.state.holds
    return qn.Score(float(is_right), f"orders {found}, holds {len(view.state.holds)}, expected {view.task.truth}")


env = qn.Environment(
    "stock_shop",
    tasks=lambda split: qn.Tasks(15, lambda number: make(split, number)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(one_right_order),
    state=Shop,
)
