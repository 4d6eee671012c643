"""Parcels that do not arrive: lost, late, held, or delivered to a stranger."""

from __future__ import annotations

from datetime import date, timedelta

from quintain.environments.support import policy
from quintain.environments.support.case import Case, Words
from quintain.environments.support.draft import known
from quintain.environments.support.goals import amount, day, word
from quintain.environments.support.schema.desk import Ticket
from quintain.environments.support.schema.people import Address, Customer
from quintain.environments.support.schema.shop import Order, OrderLine, OrderPayment, Parcel, Product, Scan
from quintain.environments.support.seed import pools

SAYS: Words = {
    "en": (
        "Where is my order {number}? The tracking has not changed for ages.",
        "I am still waiting for {number}. Your mail said it would be here last week.",
        "order {number} - nothing arrived. I was at home ALL day, every day.",
        "It's about {number}. The carrier tells me to ask you, so I am asking you.",
    ),
    "de": ("Wo bleibt meine Bestellung {number}? Die Sendungsverfolgung steht still.",),
    "fr": ("Où est ma commande {number} ? Le suivi n'avance plus.",),
}
GONE: Words = {
    "en": (
        "The tracking of {number} says delivered, but there is no parcel. Not here, not at the neighbours.",
        "You say {number} was delivered. It was not!! I have looked everywhere.",
    ),
}
SUBJECTS = ("Where is my parcel", "delivery", "Order not here", "Parcel lost?", "Sendung", "late late late")


def lost(case: Case) -> str:
    """No scan for longer than the carrier's limit; everything is in stock."""
    customer, home = _buyer(case)
    order, parcel = _sent(case, customer, home, carrier="Kurio", silent=7.5)
    if case.mess:
        _other_order(case, customer, home)
    ticket = _ticket(case, customer, order)
    _read(case, ticket, order, parcel=parcel)
    _claim(case, parcel, "lost")
    return _replace(case, ticket, order)


def late(case: Case) -> str:
    """Silent, but not for long enough."""
    customer, home = _buyer(case)
    carrier = case.rng.choice(("Velox", "Postring"))
    order, parcel = _sent(case, customer, home, carrier=carrier, silent=4.4)
    last = max(row.at for row in case.rows if isinstance(row, Scan) and row.parcel_id == parcel.id)
    limit = next(one[1] for one in pools.CARRIERS if one[0] == carrier)
    counts = (date.fromisoformat(last[:10]) + timedelta(days=limit + 1)).isoformat()
    ticket = _ticket(case, customer, order)
    case.asks_only = True
    _read(case, ticket, order, parcel=parcel)
    case.say(ticket, f"{carrier} has not scanned {order.number} since {last[:10]}. It does not count as lost yet; "
             f"it will on {counts}. Please tell us if it has not come by then.", day(counts))  # fmt: skip
    case.file(ticket, status="pending", category="delivery")
    return f"The parcel of {order.number} counts as lost only from {counts}."


def held(case: Case) -> str:
    """The carrier keeps it somewhere."""
    customer, home = _buyer(case)
    order, parcel = _sent(case, customer, home, carrier=case.rng.choice(("Velox", "Kurio")), silent=3)
    place = f"Parcel shop {case.rng.choice(pools.STREET)} {1 + case.rng.below(90)}"
    parcel.status = "held"
    case.scan(parcel, place, "Held for collection", days=1.2)
    ticket = _ticket(case, customer, order)
    case.asks_only = True
    _read(case, ticket, order, parcel=parcel)
    case.say(
        ticket, f"The parcel of {order.number} waits for you here: {place}.", word(place.removeprefix("Parcel shop "))
    )
    case.file(ticket, status="solved", category="delivery", resolution="informed")
    return f"The parcel is held at {place}."


def sold_out(case: Case) -> str:
    """Lost, and part of it is out of stock."""
    customer, home = _buyer(case)
    order, parcel = _sent(case, customer, home, carrier="Velox", silent=9.5, skus=["SEN-01", "SIR-01"])
    _sell_out(case, order)
    ticket = _ticket(case, customer, order)
    _read(case, ticket, order, parcel=parcel)
    _claim(case, parcel, "lost")
    return _pay_back(case, ticket, order)


def sold_out_dear(case: Case) -> str:
    """Lost and sold out, and the refund is beyond the limit, so a lead decides."""
    customer, home = _buyer(case)
    order, parcel = _sent(case, customer, home, carrier="Postring", silent=13, skus=["SEN-02", "HUB-01", "SIR-01"])
    _sell_out(case, order)
    ticket = _ticket(case, customer, order)
    _read(case, ticket, order, parcel=parcel)
    _claim(case, parcel, "lost")
    approval = case.approval(ticket, order.total_cents, why=f"{order.number} is lost and sold out")
    return _pay_back(case, ticket, order, approval_id=approval)


def dear(case: Case) -> str:
    """Lost and dear: the carrier's decision is waited for."""
    customer, home = _buyer(case)
    order, parcel = _sent(case, customer, home, carrier="Kurio", silent=7.2, skus=["CAM-01", "CAM-02"])
    ticket = _ticket(case, customer, order)
    _decides(case, parcel, "accepted")
    _read(case, ticket, order, parcel=parcel)
    _claim(case, parcel, "lost", decision="accepted")
    _acknowledge(case, ticket)
    case.play("track_parcel", parcel_id=parcel.id)
    case.want("parcels", parcel.id, status="lost")
    return _replace(case, ticket, order)


def gone(case: Case) -> str:
    """Delivered, says the carrier; the claim says what is true."""
    customer, home = _buyer(case)
    order, parcel = _sent(case, customer, home, carrier=case.rng.choice(("Velox", "Postring", "Kurio")), silent=3)
    parcel.status, order.status = "delivered", "delivered"
    case.scan(parcel, home.city, "Delivered", days=1.5)
    is_found = bool(case.rng.below(2))
    neighbour = f"{case.rng.choice(pools.STREET)} {1 + case.rng.below(90)}"
    ticket = _ticket(case, customer, order, says=GONE, minutes=330 + case.rng.below(60))
    if is_found:
        _decides(case, parcel, "found", place=neighbour, text="Left with a neighbour")
    else:
        _decides(case, parcel, "accepted")
    _read(case, ticket, order, parcel=parcel)
    _claim(case, parcel, "not_received", decision="found" if is_found else "accepted")
    _acknowledge(case, ticket)
    case.play("track_parcel", parcel_id=parcel.id)
    if not is_found:
        return _replace(case, ticket, order)
    case.asks_only = True
    case.say(ticket, f"The carrier has found the parcel: it was left with a neighbour, {neighbour}.", word(neighbour))
    case.file(ticket, status="solved", category="delivery", resolution="informed")
    return f"The carrier has found it at {neighbour}."


def two_parcels(case: Case) -> str:
    """Two orders under way, and the customer names the wrong one; the silent one is lost."""
    customer, home = _buyer(case)
    order, parcel = _sent(case, customer, home, carrier="Kurio", silent=7.5)
    other, fine = _sent(case, customer, home, carrier="Velox", silent=1)
    says: Words = {
        "en": ("Of my two orders the one with {things} does not move. I think that is {number}. Or the other?",)
    }
    ticket = case.write(
        customer, case.rng.choice(SUBJECTS), says, facts={"number": other.number, "things": _things(case, order)}
    )
    _read(case, ticket, other, parcel=fine)
    case.play("list_orders", customer_id=customer.id)
    case.play("get_order", order_id=order.id)
    case.play("track_parcel", parcel_id=parcel.id)
    _claim(case, parcel, "lost")
    return _replace(case, ticket, order)


VARIANTS = {
    "easy": (lost,),
    "medium": (late, held, sold_out, lost),
    "hard": (gone, dear, two_parcels, sold_out_dear),
}

# -- what they share


def _buyer(case: Case) -> tuple[Customer, Address]:
    customer = case.customer()
    home = case.home(customer)
    if case.mess:
        case.home(customer, "old")
    return customer, home


def _sent(
    case: Case, customer: Customer, home: Address, *, carrier: str, silent: float, skus: list[str] | None = None
) -> tuple[Order, Parcel]:
    """An order under way, last scanned so many days ago."""
    order = case.order(customer, home, days=silent + 4, status="shipped", skus=skus)
    return order, case.parcel(order, carrier, status="in_transit", days=[silent + 3, silent + 1, silent])


def _other_order(case: Case, customer: Customer, home: Address) -> None:
    other = case.order(customer, home, days=60, status="delivered")
    case.scan(case.parcel(other, "Postring", status="delivered", days=[58, 57]), home.city, "Delivered", days=56)


def _ticket(case: Case, customer: Customer, order: Order, *, says: Words = SAYS, minutes: int | None = None) -> Ticket:
    subject = case.rng.choice(SUBJECTS)
    return case.write(customer, subject, says, facts={"number": order.number}, minutes=minutes)


def _read(case: Case, ticket: Ticket, order: Order, *, parcel: Parcel) -> None:
    case.look(ticket)
    case.play("find_order", number=order.number)
    case.play("get_order", order_id=order.id)
    case.play("track_parcel", parcel_id=parcel.id)


def _claim(case: Case, parcel: Parcel, reason: str, **decided: str) -> None:
    case.play("open_claim", parcel_id=parcel.id, reason=reason)
    case.made("carrier_claims", parcel_id=parcel.id, reason=reason, **decided)


def _decides(case: Case, parcel: Parcel, decision: str, **scan: str) -> None:
    hours = 20 + case.rng.below(45)
    case.script(f"claim:{parcel.id}", hours, "settle_claim", parcel=parcel.id, decision=decision, **scan)
    case.free("parcels", parcel.id, "status")


def _acknowledge(case: Case, ticket: Ticket) -> None:
    text = "Hello, we have opened a claim with the carrier, which answers within three days. We come back to you then."
    case.play("reply", ticket_id=ticket.id, body=text)
    case.play("update_ticket", ticket_id=ticket.id, status="hold", category="delivery")
    case.play("wait", hours=70)


def _things(case: Case, order: Order) -> str:
    names = {row.id: row.name for row in known(Product)}
    lines = [row for row in case.rows if isinstance(row, OrderLine) and row.order_id == order.id]
    return " and ".join(names[line.product_id] for line in lines)


def _replace(case: Case, ticket: Ticket, order: Order) -> str:
    """Send it again, and say so."""
    replacement(case, order)
    case.say(ticket, f"The parcel of {order.number} is lost, sorry. The replacement {order.number}-E is on its way.",
             word(f"{order.number}-E"))  # fmt: skip
    case.file(ticket, status="solved", category="delivery", resolution="replaced")
    return f"{order.number} is lost; {order.number}-E takes its place."


def replacement(case: Case, order: Order, **changed: str) -> None:
    """Send an order again, and ask for it: the order, its lines, and what leaves the stock."""
    case.play("ship_replacement", order_id=order.id)
    where = {"ship_street": order.ship_street, "ship_postcode": order.ship_postcode} | changed
    case.made("orders", replaces_id=order.id, **where)
    stock = {row.id: row.stock for row in known(Product)}
    for line in [row for row in case.rows if isinstance(row, OrderLine) and row.order_id == order.id]:
        case.made("order_lines", product_id=line.product_id, quantity=line.quantity, price_cents=0)
        case.want("products", line.product_id, stock=stock[line.product_id] - line.quantity)


def _sell_out(case: Case, order: Order) -> None:
    """Let the first thing in an order be one that is out of stock."""
    line = next(row for row in case.rows if isinstance(row, OrderLine) and row.order_id == order.id)
    product = case.add(Product, sku=f"SPC-{line.id}", name="Halden Spotlight", price_cents=line.price_cents, stock=0)
    line.product_id = product.id
    case.rows.remove(product)
    case.rows.insert(0, product)


def _pay_back(case: Case, ticket: Ticket, order: Order, **approval: int) -> str:
    payment = next(row for row in case.rows if isinstance(row, OrderPayment) and row.order_id == order.id)
    case.play("refund_order", order_id=order.id, reason="lost by the carrier, and out of stock", **approval)
    case.want("order_payments", payment.id, refunded_cents=payment.amount_cents)
    if approval:
        case.free("order_payments", payment.id, *approval)
    total = policy.money(payment.amount_cents)
    case.say(ticket, f"The parcel of {order.number} is lost, and we cannot send it again. {total} are on the way.",
             amount(payment.amount_cents))  # fmt: skip
    case.file(ticket, status="solved", category="delivery", resolution="refunded")
    return f"{order.number} is lost and sold out; I refunded {total}."
