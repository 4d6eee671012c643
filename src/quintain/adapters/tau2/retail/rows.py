"""Rows of the retail database."""

from __future__ import annotations

from typing import Literal

import msgspec

from quintain.adapters.tau2.record import Pairs

PAIRED = frozenset({"options", "payment_methods", "variants"})
"""Names of the mappings inside rows."""


class Variant(msgspec.Struct):
    """One version of a product that can be bought. Prices are in dollars, here and below."""

    item_id: str
    options: Pairs[str]
    available: bool
    price: float


class Product(msgspec.Struct):
    """A product and its variants by item id."""

    name: str
    product_id: str
    variants: Pairs[Variant]


class UserName(msgspec.Struct):
    """Name of a person."""

    first_name: str
    last_name: str


class UserAddress(msgspec.Struct):
    """Address of a person or a parcel."""

    address1: str
    address2: str
    city: str
    country: str
    state: str
    zip: str


class CreditCard(msgspec.Struct, tag_field="source", tag="credit_card"):
    """A payment method without a balance."""

    id: str
    brand: str
    last_four: str


class Paypal(msgspec.Struct, tag_field="source", tag="paypal"):
    """A payment method without a balance."""

    id: str


class GiftCard(msgspec.Struct, tag_field="source", tag="gift_card"):
    """A payment method that can run dry."""

    id: str
    balance: float


PaymentMethod = CreditCard | GiftCard | Paypal


class User(msgspec.Struct):
    """A customer, with payment methods and orders by their ids."""

    user_id: str
    name: UserName
    address: UserAddress
    email: str
    payment_methods: Pairs[PaymentMethod]
    orders: list[str]


class OrderItem(msgspec.Struct):
    """One piece in an order: the variant as it was when it was bought."""

    name: str
    product_id: str
    item_id: str
    price: float
    options: Pairs[str]


class Fulfillment(msgspec.Struct):
    """Parcels that are on their way."""

    tracking_id: list[str]
    item_ids: list[str]


class OrderPayment(msgspec.Struct):
    """Money that changed hands."""

    transaction_type: Literal["payment", "refund"]
    amount: float
    payment_method_id: str


class Order(msgspec.Struct):
    """An order, and what became of it."""

    order_id: str
    user_id: str
    address: UserAddress
    items: list[OrderItem]
    status: str
    fulfillments: list[Fulfillment]
    payment_history: list[OrderPayment]
    cancel_reason: str | None = None
    exchange_items: list[str] | None = None
    exchange_new_items: list[str] | None = None
    exchange_payment_method_id: str | None = None
    exchange_price_difference: int | float | None = None
    """An int only when nothing was exchanged for nothing."""
    return_items: list[str] | None = None
    return_payment_method_id: str | None = None
