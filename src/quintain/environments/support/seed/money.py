"""The base: plans, subscriptions, and the invoices of some months."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from quintain.environments.support.policy import percent_of
from quintain.environments.support.schema.accounts import Account
from quintain.environments.support.schema.billing import (
    Card,
    Coupon,
    CouponUse,
    Credit,
    Invoice,
    InvoiceLine,
    Payment,
    Plan,
    Refund,
    Subscription,
    TaxRate,
)
from quintain.environments.support.schema.people import Customer, Organisation

from . import pools
from .sowing import Sowing, dawn_day, months_before

HOME = "DE"


def catalogue(sowing: Sowing) -> None:
    """Plans, taxes, coupons."""
    for title, price, seats, offered in pools.PLANS:
        sowing.add(Plan, name=title, price_cents=price, seats=seats, is_offered=offered)
    for country in pools.COUNTRIES:
        sowing.add(TaxRate, country=country.code, percent=country.tax, valid_from="2021-01-01")
    sowing.add(TaxRate, country="DE", percent=16, valid_from="2020-07-01")
    for n in range(24):
        start = dawn_day(-30 * (n + 1))
        sowing.add(
            Coupon,
            code=f"{sowing.rng.choice(('SPRING', 'HELLO', 'AUTUMN', 'FRIENDS', 'BACK'))}{10 + 2 * n}",
            percent=sowing.rng.choice((5, 10, 15, 20, 25)),
            valid_from=start.isoformat(),
            valid_until=(start + timedelta(days=45)).isoformat(),
            scope=sowing.rng.choice(("subscription", "order")),
            uses_left=sowing.rng.choice((None, 0, 50)),
        )


def subscriptions(sowing: Sowing) -> None:
    """A subscription for most accounts, and what it has cost."""
    owners = {customer.id: customer for customer in sowing.rows[Customer]}
    for account in sowing.rows[Account]:
        _cards(sowing, account.customer_id)
        if sowing.rng.below(9):
            _subscription(sowing, account, owners[account.customer_id])


def tax_of(customer: Customer, organisation: Organisation | None) -> int:
    """The percentage that belongs on a customer's invoices."""
    if organisation is not None and organisation.vat_id and organisation.country != HOME:
        return 0
    return next(country.tax for country in pools.COUNTRIES if country.code == customer.country)


def invoice_facts(net_cents: int, percent: int) -> dict[str, int]:
    """The amounts of an invoice."""
    tax = percent_of(net_cents, percent)
    return {"net_cents": net_cents, "tax_percent": percent, "tax_cents": tax, "total_cents": net_cents + tax}


def _cards(sowing: Sowing, customer_id: int) -> None:
    rng = sowing.rng
    for n in range(rng.choice((0, 1, 1, 1, 2))):
        sowing.add(
            Card,
            customer_id=customer_id,
            brand=rng.choice(pools.CARDS),
            last4=f"{rng.below(10000):04}",
            expires=f"{2023 + rng.below(6)}-{1 + rng.below(12):02}"
            if n
            else f"{2026 + rng.below(4)}-{1 + rng.below(12):02}",
            is_default=n == 0,
            added=sowing.ago(20 + rng.below(900)),
        )


def _subscription(sowing: Sowing, account: Account, owner: Customer) -> None:
    rng = sowing.rng
    organisations = {row.id: row for row in sowing.rows[Organisation]}
    organisation = organisations.get(owner.organisation_id) if owner.organisation_id else None
    plan = (
        sowing.rows[Plan][3] if organisation and organisation.tier == "business" else rng.choice(sowing.rows[Plan][:5])
    )
    age = 1 + rng.below(14)
    renews = dawn_day(1 + rng.below(27))
    row = sowing.add(
        Subscription,
        account_id=account.id,
        plan_id=plan.id,
        status=rng.choice(("active",) * 12 + ("cancelled", "past_due")),
        ordered_plan_id=plan.id if rng.below(5) else None,
        started=f"{months_before(renews, age)}T10:00:00Z",
        renews=renews.isoformat(),
    )
    for back in range(min(age, 5), 0, -1):
        _invoice(sowing, row, (plan, tax_of(owner, organisation)), back=back, owner=owner)


def _invoice(
    sowing: Sowing, subscription: Subscription, price: tuple[Plan, int], *, back: int, owner: Customer
) -> None:
    rng, (plan, percent) = sowing.rng, price
    renews = dawn_day(int(subscription.renews[8:]) % 27 + 1)
    day = months_before(renews, back)
    number = 2 * (len(sowing.rows.get(Invoice, ())) + 1)
    failed = subscription.status == "past_due" and back == 1
    row = sowing.add(
        Invoice,
        number=f"R-{100000 + number}",
        account_id=subscription.account_id,
        subscription_id=subscription.id,
        issued=day.isoformat(),
        due=(day + timedelta(days=14)).isoformat(),
        status="open" if failed else rng.choice(("paid",) * 40 + ("void",)),
        **invoice_facts(plan.price_cents, percent),
    )
    sowing.add(InvoiceLine, invoice_id=row.id, text=f"{plan.name}, {day:%Y-%m}", amount_cents=plan.price_cents)
    cards = [card for card in reversed(sowing.rows.get(Card, [])[-3:]) if card.customer_id == owner.id]
    facts: dict[str, Any] = {
        "invoice_id": row.id,
        "amount_cents": row.total_cents,
        "at": f"{day}T04:{rng.below(60):02}:00Z",
    }
    facts["card_id"] = cards[0].id if cards else None
    if failed:
        sowing.add(Payment, status="failed", failure="insufficient_funds", **facts)
        return
    payment = sowing.add(Payment, status="succeeded", **facts)
    if sowing.chance(60):
        payment.status = "refunded"
        sowing.add(Refund, payment_id=payment.id, amount_cents=row.total_cents, reason="goodwill", at=sowing.ago(3))
    if sowing.chance(50):
        given = {"amount_cents": 100 * (1 + rng.below(9)), "reason": "goodwill", "origin": "agent"}
        sowing.add(Credit, account_id=row.account_id, at=sowing.ago(rng.below(60)), **given)
    if sowing.chance(40):
        coupon = rng.choice(sowing.rows[Coupon])
        sowing.add(CouponUse, coupon_id=coupon.id, account_id=row.account_id, at=sowing.ago(rng.below(90)))
