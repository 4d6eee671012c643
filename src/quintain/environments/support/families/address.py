"""An order goes to the wrong place: not shipped yet, under way, or on its way back."""

from __future__ import annotations

from quintain.environments.support.case import Case, Words
from quintain.environments.support.goals import UNSURE, word
from quintain.environments.support.schema.desk import Ticket
from quintain.environments.support.schema.people import Address, Customer
from quintain.environments.support.schema.shop import Order, Parcel
from quintain.environments.support.seed import pools
from quintain.environments.support.seed.sowing import address

from .parcel import replacement

SAYS: Words = {
    "en": (
        "I made a mistake with {number}: it has to go to {street}, {postcode} {city}. Can you still change that?",
        "We moved last week. Please send {number} to our new place: {street}, {postcode} {city}",
        "wrong address on {number}!! correct is {street}, {postcode} {city}. thx",
    ),
    "de": ("Bei {number} habe ich die falsche Adresse angegeben. Richtig ist: {street}, {postcode} {city}.",),
}
POSTCODE: Words = {
    "en": (
        "There is a typo in {number}: the postcode should be {postcode}, the rest is right.",
        "hi, about {number} - I typed the wrong postcode, it is {postcode}. Street and town are fine.",
    ),
}
SUBJECTS = ("Wrong address", "address change", "We have moved", "Adresse", "typo in my order", "please change")


def not_shipped(case: Case) -> str:
    """The order is still in the warehouse."""
    customer, home, order, details = _bought(case, status=case.rng.choice(("paid", "packing")))
    if case.mess:
        case.order(customer, home, days=40, status="delivered")
    new = _place(case, customer)
    ticket = case.write(customer, case.rng.choice(SUBJECTS), SAYS, details=details, facts=_facts(order, new))
    _read(case, ticket, order)
    case.verify(ticket, customer)
    _correct(case, order, new)
    return _told(case, ticket, order, new=new, text=f"{order.number} now goes to")


def typo(case: Case) -> str:
    """Only the postcode is wrong, and an older order must not be touched."""
    customer, home, order, _ = _bought(case, status="packing")
    case.order(customer, home, days=2, status="packing")
    card = case.card(customer)
    right = home.postcode
    order.ship_postcode = right[:-2] + f"{(int(right[-2:]) + 1 + case.rng.below(98)) % 100:02}"
    details = case.details(order=order.number, card=card)
    new = {"street": home.street, "postcode": right, "city": home.city}
    ticket = case.write(customer, case.rng.choice(SUBJECTS), POSTCODE, details=details, facts=_facts(order, new))
    _read(case, ticket, order)
    case.verify(ticket, customer)
    case.play("update_order_address", order_id=order.id, postcode=right)
    case.want("orders", order.id, ship_postcode=right)
    return _told(case, ticket, order, new=new, text=f"{order.number} now goes to")


def under_way(case: Case) -> str:
    """Under way with a carrier that redirects."""
    customer, _, order, details = _bought(case, status="shipped")
    parcel = case.parcel(order, case.rng.choice(("Velox", "Kurio")), status="in_transit", days=[2, 0.6])
    new = _place(case, customer)
    ticket = case.write(customer, case.rng.choice(SUBJECTS), SAYS, details=details, facts=_facts(order, new))
    _read(case, ticket, order, parcel=parcel)
    case.verify(ticket, customer)
    return _redirect(case, ticket, order, parcel=parcel, new=new)


def no_redirect(case: Case) -> str:
    """Under way with a carrier that does not."""
    customer, _, order, details = _bought(case, status="shipped")
    parcel = case.parcel(order, "Postring", status="in_transit", days=[2, 0.7])
    new = _place(case, customer)
    ticket = case.write(customer, case.rng.choice(SUBJECTS), SAYS, details=details, facts=_facts(order, new))
    case.asks_only = True
    _read(case, ticket, order, parcel=parcel)
    case.say(ticket, f"{order.number} is with Postring, which cannot redirect it. It will be returned to us; then we "
             "send it to the right address.", r"return|come back|zurück", word(order.number))  # fmt: skip
    case.file(ticket, status="hold", category="address")
    return f"The parcel of {order.number} cannot be redirected; it will come back."


def returning(case: Case) -> str:
    """On its way back already; it is waited for, and sent again."""
    customer, _, order, details = _bought(case, status="shipped")
    parcel = case.parcel(order, "Postring", status="returning", days=[6, 4])
    case.scan(parcel, order.ship_city, "Addressee unknown, returned to sender", days=1.5)
    hours = 18 + case.rng.below(25)
    back = {"place": "Halden warehouse", "text": "Returned", "status": "returned"}
    case.script("start", hours, "scan", parcel=parcel.id, **back)
    case.free("parcels", parcel.id, "status")
    new = _place(case, customer)
    ticket = case.write(customer, "Where is it, and the address was wrong", SAYS, details=details,
                        facts=_facts(order, new), minutes=330 + case.rng.below(60))  # fmt: skip
    _read(case, ticket, order, parcel=parcel)
    text = f"Hello, {order.number} is on its way back to us. As soon as it is here we send it to the right address."
    case.play("reply", ticket_id=ticket.id, body=text)
    case.play("update_ticket", ticket_id=ticket.id, status="hold", category="address")
    case.play("wait", hours=hours + 1)
    case.play("track_parcel", parcel_id=parcel.id)
    case.want("parcels", parcel.id, status="returned")
    case.verify(ticket, customer)
    _correct(case, order, new)
    replacement(case, order, ship_street=new["street"], ship_postcode=new["postcode"])
    case.say(ticket, f"The parcel is back. The replacement {order.number}-E goes to {new['street']}, {new['postcode']} "
             f"{new['city']}.", word(f"{order.number}-E"))  # fmt: skip
    case.file(ticket, status="solved", category="address", resolution="replaced")
    return f"{order.number} came back; {order.number}-E goes to the right address."


def stranger(case: Case) -> str:
    """A stranger wants the parcel; or the customer does, who answers with proofs."""
    customer, home, order, details = _bought(case, status="shipped")
    parcel = case.parcel(order, case.rng.choice(("Velox", "Kurio")), status="in_transit", days=[2, 0.6])
    new = _place(case, customer)
    is_honest = bool(case.rng.below(2))
    if not is_honest:
        details = {"number": order.number, "postcode": new["postcode"]}
        case.foreign(home.street, home.postcode, customer.email)
    ticket = case.write(customer, case.rng.choice(SUBJECTS), SAYS, facts=_facts(order, new))
    case.will_identify(ticket, details, customer=customer)
    _read(case, ticket, order, parcel=parcel)
    case.ask_who(ticket, "address")
    if is_honest:
        case.verify(ticket, customer)
        return _redirect(case, ticket, order, parcel=parcel, new=new)
    case.asks_only = True
    case.checked(ticket, customer)
    case.say(ticket, "We could not verify that this order is yours, so we do not change anything.", UNSURE)
    case.file(ticket, status="open", category="security", group="Security")
    return "The writer could not prove who they are; Security has the ticket."


VARIANTS = {
    "easy": (not_shipped,),
    "medium": (typo, under_way, no_redirect),
    "hard": (returning, stranger, under_way),
}

# -- what they share


def _bought(case: Case, *, status: str) -> tuple[Customer, Address, Order, dict[str, str]]:
    customer = case.customer()
    home, card = case.home(customer), case.card(customer)
    order = case.order(customer, home, days=7 if status == "shipped" else 1, status=status)
    return customer, home, order, case.details(order=order.number, home=home, card=card if case.rng.below(2) else None)


def _place(case: Case, customer: Customer) -> dict[str, str]:
    """A new address in the same country."""
    country = next(country for country in pools.COUNTRIES if country.code == customer.country)
    found = address(case.rng, country)
    del found["country"]
    return found


def _facts(order: Order, new: dict[str, str]) -> dict[str, str]:
    return {"number": order.number} | new


def _read(case: Case, ticket: Ticket, order: Order, *, parcel: Parcel | None = None) -> None:
    case.look(ticket)
    case.play("find_order", number=order.number)
    case.play("get_order", order_id=order.id)
    if parcel is not None:
        case.play("track_parcel", parcel_id=parcel.id)


def _correct(case: Case, order: Order, new: dict[str, str]) -> None:
    case.play("update_order_address", order_id=order.id, **new)
    case.want("orders", order.id, **{f"ship_{name}": value for name, value in new.items()})


def _redirect(case: Case, ticket: Ticket, order: Order, *, parcel: Parcel, new: dict[str, str]) -> str:
    case.play("redirect_parcel", parcel_id=parcel.id, **new)
    case.want("parcels", parcel.id, **new)
    return _told(case, ticket, order, new=new, text=f"The parcel of {order.number} is redirected to")


def _told(case: Case, ticket: Ticket, order: Order, *, new: dict[str, str], text: str) -> str:
    case.say(
        ticket, f"{text} {new['street']}, {new['postcode']} {new['city']}.", word(order.number), word(new["postcode"])
    )
    case.file(ticket, status="solved", category="address", resolution="fixed")
    return f"{order.number} goes to {new['street']}."
