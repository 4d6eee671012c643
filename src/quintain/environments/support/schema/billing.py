"""Plans, subscriptions, invoices, and the money that moves."""

from __future__ import annotations

from typing import Annotated, Literal

from quintain.resources.database import Indexed, References

from .accounts import Account
from .people import Customer
from .row import Cents, Day, Found, Moment, Row

FailureCode = Literal["expired_card", "insufficient_funds", "card_reported_lost"]


class Plan(Row, kw_only=True):
    """Plan to subscribe to."""

    name: Found
    price_cents: Cents
    """Net of tax, a month."""
    seats: int
    is_offered: bool = True


class TaxRate(Row, kw_only=True):
    """Percentage of tax in a country, from a day on."""

    country: Found
    percent: int
    valid_from: Day


class Coupon(Row, kw_only=True):
    """A code that makes an invoice or an order cheaper."""

    code: Found
    percent: int
    valid_from: Day
    valid_until: Day
    plan_id: Annotated[int | None, References(Plan)] = None
    minimum_cents: Cents = 0
    scope: Literal["subscription", "order"]
    uses_left: int | None = None


class Subscription(Row, kw_only=True):
    """A plan that an account is on."""

    account_id: Annotated[int, References(Account)]
    plan_id: Annotated[int, References(Plan)]
    status: Literal["trialing", "active", "past_due", "cancelled"]
    ordered_plan_id: Annotated[int | None, References(Plan)] = None
    """The plan that the customer chose at the checkout."""
    started: Moment
    renews: Day
    ends: Day | None = None
    coupon_id: Annotated[int | None, References(Coupon)] = None
    vat_exempt: bool = False


class Card(Row, kw_only=True):
    """Card that pays invoices."""

    customer_id: Annotated[int, References(Customer)]
    brand: str
    last4: str
    expires: str
    """Last month of validity, such as 2025-03."""
    is_default: bool = False
    added: Moment


class Invoice(Row, kw_only=True):
    """Invoice of an account, open or paid."""

    number: Found
    account_id: Annotated[int, References(Account)]
    subscription_id: Annotated[int | None, References(Subscription)] = None
    issued: Day
    due: Day
    status: Literal["open", "paid", "void"]
    net_cents: Cents
    tax_percent: int
    tax_cents: Cents
    total_cents: Cents
    coupon_id: Annotated[int | None, References(Coupon)] = None


class InvoiceLine(Row, kw_only=True):
    """Line of an invoice."""

    invoice_id: Annotated[int, References(Invoice)]
    text: str
    amount_cents: Cents


class Payment(Row, kw_only=True):
    """An attempt to pay an invoice, by card or by link."""

    invoice_id: Annotated[int, References(Invoice)]
    card_id: Annotated[int | None, References(Card)] = None
    amount_cents: Cents
    at: Moment
    status: Annotated[Literal["pending", "succeeded", "failed", "refunded", "expired"], Indexed()]
    failure: FailureCode | None = None


class PaymentRetry(Row, kw_only=True):
    """A payment that the system will try again by itself."""

    __table__ = "payment_retries"
    invoice_id: Annotated[int, References(Invoice)]
    due: Moment
    status: Literal["planned", "succeeded", "failed", "cancelled"] = "planned"


class PaymentLink(Row, kw_only=True):
    """A page on which a customer pays an invoice with whatever they like."""

    invoice_id: Annotated[int, References(Invoice)]
    sent: Moment
    used: Moment | None = None


class Refund(Row, kw_only=True):
    """Money that went back."""

    payment_id: Annotated[int, References(Payment)]
    amount_cents: Cents
    reason: str
    at: Moment
    approval_id: int | None = None


class Approval(Row, kw_only=True):
    """A lead's decision, which takes hours."""

    ticket_id: Annotated[int, Indexed()]
    amount_cents: Cents
    reason: str
    asked: Moment
    decided: Moment | None = None
    decision: Literal["granted", "denied"] | None = None


class Credit(Row, kw_only=True):
    """Money that the next invoice will be less by."""

    account_id: Annotated[int, References(Account)]
    amount_cents: Cents
    reason: str
    at: Moment
    origin: Literal["agent", "coupon", "tax"]
    """Origin of the decision: an agent, or the system when it corrected an invoice."""
    approval_id: int | None = None


class CouponUse(Row, kw_only=True):
    """Use of a coupon by an account."""

    coupon_id: Annotated[int, References(Coupon)]
    account_id: Annotated[int, References(Account)]
    at: Moment


TABLES = (
    Plan,
    TaxRate,
    Coupon,
    Subscription,
    Card,
    Invoice,
    InvoiceLine,
    Payment,
    PaymentRetry,
    PaymentLink,
    Refund,
    Approval,
    Credit,
    CouponUse,
)
