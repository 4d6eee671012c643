"""Ticket office of a theatre: an agent sells seats, takes them back, and accounts for the takings, in cents."""

import asyncio
import dataclasses
import datetime as dt
import hashlib
import re
from dataclasses import dataclass
from typing import Any, ClassVar

import quintain as qn
from quintain.state import Rng

TODAY = dt.date(2025, 3, 10)
TITLES = ("The Seagull", "Tartuffe", "Blood Wedding", "Peer Gynt", "Woyzeck", "Antigone", "The Miser", "Volpone")
NAMES = ("Ida Brandt", "Tom Okafor", "Lena Fuchs", "Sam Whitlock", "Mira Petrov", "Jon Aguilar", "Nora Lind")
FREE_DAYS = 7
SYSTEM = "You work at the ticket office of a theatre. Use the tools; follow the house rules. All amounts are in cents."
FAMILIES = ("book", "give_back", "takings", "called_off")
Row = dict[str, str | int]
_STATIC: dict[str, Row] = {}
_TERMINAL: dict[str, int] = {}


@dataclass
class Show:
    """A performance; `price` is in cents."""

    title: str
    day: str
    price: int
    free: int


@dataclass
class Order:
    """Seats that a customer bought; `paid` and `refunded` are in cents."""

    customer: str
    show: str
    seats: int
    paid: int
    refunded: int = 0


def _get(rows: dict[str, Any], key: str) -> Any:
    if key not in rows:
        raise qn.ToolError(f"there is no {key!r}")
    return rows[key]


class BoxOffice(qn.State):
    """The office: performances and orders."""

    shows: dict[str, Show]
    orders: dict[str, Order]
    fee_rule: ClassVar[str] = "a fee of 10 % of the price of these seats, rounded up to a cent, is kept"

    @qn.tool
    def house_rules(self) -> str:
        """Read today's date and the house rules for seats that are given back."""
        return (
            f"Today is {TODAY}. Seats may be given back until the day of the performance. {FREE_DAYS} days or more "
            f"before it, the full price is refunded. Later, {self.fee_rule}. If the house calls a performance off, "
            "all that its orders have paid and not got back yet is refunded, without a fee."
        )

    @qn.tool
    def list_shows(self, title: str = "") -> list[Row]:
        """List performances with day, price of a seat in cents, and number of free seats.

        Args:
            title: Only performances of this play; all if empty.
        """
        return [row for row in map(self._listed, sorted(self.shows)) if title in ("", row["title"])]

    @qn.tool
    def find_orders(self, customer: str = "", show: str = "") -> list[Row]:
        """List orders, with what was paid and refunded so far, in cents.

        Args:
            customer: Full name of the customer; all customers if empty.
            show: Number of the performance, such as S1; all if empty.
        """
        if show:
            _get(self.shows, show)
        rows = [{"order": key, **dataclasses.asdict(one)} for key, one in sorted(self.orders.items())]
        return [row for row in rows if customer in ("", row["customer"]) and show in ("", row["show"])]

    @qn.tool
    def book(self, customer: str, show: str, seats: int) -> str:
        """Sell seats to a customer, who pays the full price at once. Returns the number of the order.

        Args:
            customer: Full name of the customer.
            show: Number of the performance, such as S1.
            seats: How many seats, 1 or more.
        """
        price = _get(self.shows, show).price
        if not customer.strip() or seats < 1:
            raise qn.ToolError("an order needs the name of a customer and at least one seat")
        self._take(show, seats)
        number = self.new_id("N")
        self.orders[number] = Order(customer.strip(), show, seats, price * seats)
        return number

    @qn.tool
    def cancel_seats(self, order: str, seats: int) -> str:
        """Take seats of an order back, so that others can buy them. Pays nothing back; that is what `refund` does.

        Args:
            order: Number of the order, such as O1.
            seats: How many of its seats, 1 or more.
        """
        one = _get(self.orders, order)
        if not 1 <= seats <= one.seats:
            raise qn.ToolError(f"{order} has {one.seats} seats")
        one.seats -= seats
        self._take(one.show, -seats)
        return f"{order} has {one.seats} seats left"

    @qn.tool
    async def refund(self, order: str, cents: int) -> str:
        """Pay money back to the customer of an order.

        Args:
            order: Number of the order, such as O1.
            cents: Amount in cents, at most what was paid and not refunded yet.
        """
        one = _get(self.orders, order)
        paid_back = await self._charge_back(order, self._payable(one, cents))
        one.refunded += paid_back
        return f"{cents} cents paid back on {order}"

    @qn.tool
    def sales_report(self, show: str) -> dict[str, int]:
        """Sum up a performance: seats sold, and the net takings in cents (payments less refunds).

        Args:
            show: Number of the performance, such as S1.
        """
        _get(self.shows, show)
        orders = [one for one in self.orders.values() if one.show == show]
        return {"seats": sum(one.seats for one in orders), "net_takings": self._takings(orders)}

    def _take(self, show: str, seats: int) -> None:
        if seats > self.shows[show].free:
            raise qn.ToolError(f"{show} has {self.shows[show].free} free seats")
        self.shows[show].free -= seats

    def _listed(self, show: str) -> Row:
        return {"show": show, **dataclasses.asdict(self.shows[show])}

    def _payable(self, order: Order, cents: int) -> int:
        if not 1 <= cents <= order.paid - order.refunded:
            raise qn.ToolError(f"1 to {order.paid - order.refunded} cents can be paid back on this order")
        return cents

    async def _charge_back(self, order: str, cents: int) -> int:
        return cents

    def _takings(self, orders: list[Order]) -> int:
        return sum(one.paid - one.refunded for one in orders)


class CachedSeats(BoxOffice):
    """Keeps the seat counts of the listing; a sale drops the entry."""

    counts: dict[str, int] | None = None

    def _listed(self, show: str) -> Row:
        self.counts = self.counts or {}
        return super()._listed(show) | {"free": self.counts.setdefault(show, self.shows[show].free)}

    def _take(self, show: str, seats: int) -> None:
        super()._take(show, seats)
        if seats > 0 and self.counts:
            self.counts.pop(show, None)


class GenerousTill(BoxOffice):
    """A refund never fails: the till pays what is left."""

    def _payable(self, order: Order, cents: int) -> int:
        return max(0, min(cents, order.paid - order.refunded))


class GrossReport(BoxOffice):
    """The report adds up the payments."""

    def _takings(self, orders: list[Order]) -> int:
        return sum(one.paid for one in orders)


class Memo(BoxOffice):
    """Title, day and price of a performance do not change, so they are looked up once."""

    def _listed(self, show: str) -> Row:
        return _STATIC.setdefault(show, super()._listed(show)) | {"free": self.shows[show].free}


class CardTerminal(BoxOffice):
    """Refunds go through the card terminal, which takes a moment to confirm."""

    async def _charge_back(self, order: str, cents: int) -> int:
        _TERMINAL[order] = cents
        await asyncio.sleep(0.002)
        return _TERMINAL[order]


class VagueRules(BoxOffice):
    """House rules in the short version of the poster."""

    fee_rule: ClassVar[str] = "a handling fee is kept"


def make(split: str, index: int, world: type[BoxOffice]) -> qn.Task[BoxOffice]:
    """One task with its world, its expected orders and its solution."""
    rng = Rng(key=hashlib.blake2b(f"boxoffice/{split}/{index}".encode(), digest_size=16).digest())
    family, titles, names = FAMILIES[index % len(FAMILIES)], rng.sample(TITLES, 2), rng.sample(NAMES, 7)
    price, near, far = 1800 + rng.below(4000), 2 + rng.below(4), 9 + rng.below(25)
    days = [near, far] if rng.below(2) else [far, near]
    plan = [(titles[0], days[0], price), (titles[0], days[1], price), (titles[1], 3 + rng.below(20), 2190)]
    order, shows = rng.sample(range(3), 3), dict[str, Show]()
    for n, (title, ahead, cents) in enumerate([plan[k] for k in order], 1):
        shows[f"S{n}"] = Show(title, str(TODAY + dt.timedelta(days=ahead)), cents, 12 + rng.below(60))
    main = f"S{1 + order.index(0)}"
    rows = [Order(name, key, 2 + rng.below(4), 0) for name, key in zip(names, [main] * 3 + sorted(shows), strict=False)]
    for row in rows:
        row.paid = row.seats * shows[row.show].price
    rows[1].seats, rows[1].refunded = rows[1].seats - 1, price
    orders = {f"O{1 + place}": row for place, row in sorted(zip(rng.sample(range(6), 6), rows, strict=True))}
    target = next(key for key, row in orders.items() if row.customer == names[0])
    row, show = orders[target], shows[main]
    what, answer, wanted, new = f"{show.title} on {show.day}", "", dict[str, Order](), list[Order]()
    steps: list[tuple[str, dict[str, Any]]] = [("list_shows", {"title": show.title})]
    if family == "book":
        guest, seats = names[rng.below(7)], 2 + rng.below(5)
        prompt = f"{guest} wants {seats} seats for {what}, in one new order. Sell them."
        new.append(Order(guest, main, seats, seats * price))
        steps.append(("book", {"customer": guest, "show": main, "seats": seats}))
    elif family == "give_back":
        seats = 1 + rng.below(row.seats)
        cents = seats * price - (-(-seats * price // 10) if days[0] < FREE_DAYS else 0)
        prompt = f"{row.customer} gives back {seats} of {row.seats} seats for {what}. Take them back and refund."
        wanted[target] = dataclasses.replace(row, seats=row.seats - seats, refunded=cents)
        steps += [("house_rules", {}), ("find_orders", {"customer": row.customer})]
        steps += [("cancel_seats", {"order": target, "seats": seats}), ("refund", {"order": target, "cents": cents})]
    elif family == "takings":
        answer = str(sum(one.paid - one.refunded for one in orders.values() if one.show == main))
        prompt = f"How many cents has {what} taken so far, less refunds? Answer with the number only."
        steps.append(("sales_report", {"show": main}))
    else:
        prompt = f"The house calls {what} off. Take all seats back and refund the customers."
        steps += [("house_rules", {}), ("find_orders", {"show": main})]
        for key, one in orders.items():
            if one.show == main:
                wanted[key] = dataclasses.replace(one, seats=0, refunded=one.paid)
                steps.append(("cancel_seats", {"order": key, "seats": one.seats}))
                steps.append(("refund", {"order": key, "cents": one.paid - one.refunded}))
    return qn.Task(
        id=f"{split}-{index}",
        prompt=prompt,
        start=world(shows=shows, orders=orders),
        truth={"orders": wanted, "new": new, "answer": answer},
        solution=tuple(steps),
        answer=answer or "done",
    )


def verifier(*, money: bool) -> qn.Verifier[BoxOffice]:
    """The criteria; `money` says whether the amounts of an order are compared."""

    def same(one: Order, other: Order) -> bool:
        paid = not money or (one.paid, one.refunded) == (other.paid, other.refunded)
        return paid and (one.customer, one.show, one.seats) == (other.customer, other.show, other.seats)

    @qn.reward
    def done(view: qn.EpisodeView[BoxOffice]) -> qn.Score:
        truth, orders = view.task.truth, view.state.orders
        hits = [same(orders[key], one) for key, one in truth["orders"].items()]
        added = [one for key, one in orders.items() if key not in view.start.orders]
        hits += [any(same(order, one) for order in added) for one in truth["new"]]
        return qn.Score(sum(hits) / len(hits) if hits else None, f"{sum(hits)} of {len(hits)} orders are right")

    @qn.reward
    def untouched(view: qn.EpisodeView[BoxOffice]) -> qn.Score:
        truth, start = view.task.truth, view.start.orders
        stray = [key for key, one in start.items() if key not in truth["orders"] and view.state.orders[key] != one]
        surplus = len(view.state.orders) - len(start) > len(truth["new"])
        return qn.Score(float(not stray and not surplus), f"changed: {stray}, too many new orders: {surplus}")

    @qn.reward
    def answered(view: qn.EpisodeView[BoxOffice]) -> qn.Score:
        wanted, numbers = view.task.truth["answer"], re.findall(r"-?\d+", view.answer.replace(",", ""))
        return qn.Score(float(numbers == [wanted]) if wanted else None, f"wanted {wanted or 'no answer'}")

    return qn.Verifier(done, untouched, answered, combine="product")


def build(world: type[BoxOffice] = BoxOffice, *, money: bool = True) -> qn.Environment[BoxOffice]:
    """The environment with one of the worlds."""
    return qn.Environment(
        "boxoffice",
        tasks=lambda split: qn.Tasks(20, lambda index: make(split, index, world)),
        harness=qn.ToolLoop(system=SYSTEM),
        verifier=verifier(money=money),
        state=world,
        splits=("train", "test"),
    )


env = build()
env_cached_seats = build(CachedSeats)
env_generous_till = build(GenerousTill)
env_gross_report = build(GrossReport)
env_memo = build(Memo)
env_card_terminal = build(CardTerminal)
env_vague_rules = build(VagueRules)
env_seats_only = build(money=False)
