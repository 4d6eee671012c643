"""Transfers of money between the shop's orders and payment methods."""

from __future__ import annotations

from quintain.errors import ToolError

from .rows import GiftCard, OrderPayment, PaymentMethod, User


def settlement(difference: float, payment_method_id: str) -> OrderPayment:
    """Returns the payment for dearer items, or the refund for cheaper ones."""
    amount = float(abs(difference))
    if difference > 0:
        return OrderPayment("payment", amount, payment_method_id)
    return OrderPayment("refund", amount, payment_method_id)


def method(user: User, payment_method_id: str) -> PaymentMethod:
    methods = dict(user.payment_methods)
    if payment_method_id not in methods:
        raise ToolError("Payment method not found")
    return methods[payment_method_id]


def require(method: PaymentMethod, amount: float, purpose: str) -> None:
    if isinstance(method, GiftCard) and method.balance < amount:
        raise ToolError(f"Insufficient gift card balance to {purpose}")


def credit(method: PaymentMethod, amount: float) -> None:
    """Puts money on a gift card, or takes it; other methods have no balance here."""
    if isinstance(method, GiftCard):
        method.balance = round(method.balance + amount, 2)
