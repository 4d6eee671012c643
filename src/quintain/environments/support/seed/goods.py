"""The base: products, orders, parcels and their scans."""

from __future__ import annotations

from datetime import timedelta

from quintain.environments.support.desk import DAY, moment
from quintain.environments.support.schema.people import Address, Customer
from quintain.environments.support.schema.shop import (
    Carrier,
    CarrierClaim,
    Order,
    OrderLine,
    OrderPayment,
    Parcel,
    Product,
    ReturnLabel,
    Scan,
)

from . import pools
from .sowing import DAWN, Sowing, dawn_day

ORDERS = 760


def catalogue(sowing: Sowing) -> None:
    """Products and carriers."""
    for sku, title, price in pools.PRODUCTS:
        stock = 0 if sku == "BEL-01" else 40 + sowing.rng.below(400)
        sowing.add(Product, sku=sku, name=title, price_cents=price, stock=stock, is_sold=sku != "KEY-01")
    for title, days, redirects, _ in pools.CARRIERS:
        sowing.add(Carrier, name=title, lost_after_days=days, redirects=redirects)


def orders(sowing: Sowing) -> None:
    """Adds the orders of the last year."""
    homes = {row.customer_id: row for row in sowing.rows[Address] if row.label == "home"}
    buyers = [row for row in sowing.rows[Customer] if row.id in homes]
    for _ in range(ORDERS):
        buyer = sowing.rng.choice(buyers)
        _order(sowing, buyer, homes[buyer.id])


def ship_to(home: Address) -> dict[str, str]:
    """An address as an order has it."""
    return {
        "ship_name": home.name,
        "ship_street": home.street,
        "ship_postcode": home.postcode,
        "ship_city": home.city,
        "ship_country": home.country,
    }


def _order(sowing: Sowing, buyer: Customer, home: Address) -> None:
    rng = sowing.rng
    age = 1 + rng.below(300)
    status = "delivered" if age > 7 else rng.choice(("packing", "shipped", "shipped", "delivered"))
    if sowing.chance(30):
        status = rng.choice(("cancelled", "returned"))
    placed = sowing.ago(age)
    number = 200000 + 2 * (len(sowing.rows.get(Order, ())) + 1)
    bought = [(rng.choice(sowing.rows[Product]), 1 + (rng.below(4) == 0)) for _ in range(1 + rng.below(3))]
    total = sum(product.price_cents * count for product, count in bought)
    order = sowing.add(
        Order,
        number=f"H-{number}",
        customer_id=buyer.id,
        placed=placed,
        status=status,
        total_cents=total,
        **ship_to(home),
    )
    for product, count in bought:
        facts = {"product_id": product.id, "quantity": count, "price_cents": product.price_cents}
        sowing.add(OrderLine, order_id=order.id, **facts)
    method = rng.choice(("card", "card", "paypal", "transfer"))
    back = total if status in {"cancelled", "returned"} else 0
    sowing.add(OrderPayment, order_id=order.id, amount_cents=total, at=placed, method=method, refunded_cents=back)
    if status not in {"packing", "cancelled"}:
        _parcel(sowing, order, age)
    if status == "returned":
        sowing.add(ReturnLabel, order_id=order.id, sent=sowing.ago(max(age - 9, 1)), reason="changed my mind")


def _parcel(sowing: Sowing, order: Order, age: int) -> None:
    rng = sowing.rng
    place = rng.below(len(pools.CARRIERS))
    carrier, letters = sowing.rows[Carrier][place], pools.CARRIERS[place][3]
    shipped = DAWN - (age - 0.5) * DAY + rng.below(20000)
    number = 100000000 + 2 * (len(sowing.rows.get(Parcel, ())) + 1)
    status = "in_transit" if order.status == "shipped" else "delivered"
    row = sowing.add(
        Parcel,
        order_id=order.id,
        carrier_id=carrier.id,
        tracking=f"{letters}{number}",
        status=status,
        shipped=moment(shipped),
        promised=(dawn_day(-age) + timedelta(days=4)).isoformat() if rng.below(4) else None,
        street=order.ship_street,
        postcode=order.ship_postcode,
        city=order.ship_city,
        country=order.ship_country,
    )
    at = shipped
    scans = [("Halden warehouse", "Picked up"), (rng.choice(pools.HUBS), "Sorted"), (rng.choice(pools.HUBS), "Sorted")]
    if status == "delivered":
        scans += [(row.city, "Out for delivery"), (row.city, rng.choice(("Delivered", "Delivered to a neighbour")))]
    for where, text in scans:
        if at >= DAWN:
            break
        sowing.add(Scan, parcel_id=row.id, at=moment(at), place=where, text=text)
        at += 3600 * (6 + rng.below(20))
    if sowing.chance(60):
        opened, decided = sowing.ago(max(age - 12, 3)), sowing.ago(max(age - 14, 1))
        decision = rng.choice(("accepted", "found", "rejected"))
        claim = {"reason": "not_received", "opened": opened, "decided": decided, "decision": decision}
        sowing.add(CarrierClaim, parcel_id=row.id, **claim)
