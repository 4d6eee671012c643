"""Tables of the shop: products, orders, parcels, and the reports of carriers."""

from __future__ import annotations

from typing import Annotated, Literal

from quintain.resources.database import Indexed, References, Unique

from .billing import Coupon
from .people import Customer
from .row import Cents, Day, Found, Moment, Row

OrderStatus = Literal["paid", "packing", "shipped", "delivered", "cancelled", "returned"]
ParcelStatus = Literal["label", "in_transit", "held", "out_for_delivery", "delivered", "returning", "returned", "lost"]


class Product(Row, kw_only=True):
    """Product of the shop."""

    sku: Annotated[str, Unique()]
    name: str
    price_cents: Cents
    """Gross, with tax."""
    stock: int
    is_sold: bool = True


class Order(Row, kw_only=True):
    """Order of a customer, and its destination."""

    number: Annotated[str, Unique()]
    customer_id: Annotated[int, References(Customer)]
    placed: Moment
    status: OrderStatus
    ship_name: str
    ship_street: str
    ship_postcode: Annotated[str, Indexed()]
    ship_city: str
    ship_country: str
    total_cents: Cents
    coupon_id: Annotated[int | None, References(Coupon)] = None
    replaces_id: int | None = None
    """The order that this one is a free replacement of."""


class OrderLine(Row, kw_only=True):
    """One product in an order."""

    order_id: Annotated[int, References(Order)]
    product_id: Annotated[int, References(Product)]
    quantity: int
    price_cents: Cents


class OrderPayment(Row, kw_only=True):
    """Payment for an order, and the refunded part."""

    order_id: Annotated[int, References(Order)]
    amount_cents: Cents
    at: Moment
    method: Literal["card", "paypal", "transfer"]
    refunded_cents: Cents = 0
    approval_id: int | None = None


class Carrier(Row, kw_only=True):
    """Company that delivers parcels."""

    name: str
    lost_after_days: int
    redirects: bool


class Parcel(Row, kw_only=True):
    """A box on its way to the address that it carries."""

    order_id: Annotated[int, References(Order)]
    carrier_id: Annotated[int, References(Carrier)]
    tracking: Found
    status: ParcelStatus
    shipped: Moment | None = None
    promised: Day | None = None
    street: str
    postcode: str
    city: str
    country: str


class Scan(Row, kw_only=True):
    """Position of a parcel, as its carrier scanned it."""

    parcel_id: Annotated[int, References(Parcel)]
    at: Moment
    place: str
    text: str


class CarrierClaim(Row, kw_only=True):
    """Claim against a carrier."""

    parcel_id: Annotated[int, References(Parcel)]
    reason: Literal["lost", "not_received", "damaged"]
    opened: Moment
    decided: Moment | None = None
    decision: Literal["accepted", "found", "rejected"] | None = None


class ReturnLabel(Row, kw_only=True):
    """A label with which an order is sent back."""

    order_id: Annotated[int, References(Order)]
    sent: Moment
    reason: str


TABLES = (Product, Order, OrderLine, OrderPayment, Carrier, Parcel, Scan, CarrierClaim, ReturnLabel)
