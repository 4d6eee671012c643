"""Payments and refunds of the airline."""

from __future__ import annotations

from quintain.adapters.tau2.record import opened
from quintain.adapters.tau2.validation import construct
from quintain.errors import ToolError

from .rows import Certificate, GiftCard, Payment, Reservation, User


def fare(reservation: Reservation, *, bags: int) -> int:
    """Returns the price of a new reservation.

    Args:
        reservation: The reservation with its flights.
        bags: Bags that cost extra, as the caller wrote it: the reference reads a number from a text here, not there.
    """
    count = len(opened(reservation.passengers))
    price = sum(flight.price for flight in reservation.flights) * count
    if reservation.insurance == "yes":
        price += 30 * count
    price += 50 * bags
    return price


def pay(user: User, payments: list[Payment], price: int) -> None:
    """Checks all payments, then takes them."""
    methods = dict(user.payment_methods)
    for payment in payments:
        if payment.payment_id not in methods:
            raise ToolError(f"Payment method {payment.payment_id} not found")
        method = methods[payment.payment_id]
        if isinstance(method, GiftCard | Certificate) and method.amount < payment.amount:
            raise ToolError(f"Not enough balance in payment method {payment.payment_id}")
    paid = sum(payment.amount for payment in payments)
    if paid != price:
        raise ToolError(f"Payment amount does not add up, total price is {price}, but paid {paid}")
    for payment in payments:
        method = methods[payment.payment_id]  # a certificate that pays twice is not there the second time
        if isinstance(method, GiftCard):
            method.amount -= payment.amount
        elif isinstance(method, Certificate):
            del methods[payment.payment_id]
            user.payment_methods = tuple(methods.items())


def charge(reservation: Reservation, user: User, payment_id: str, *, price: int) -> None:
    """Takes (or gives back, where it is negative) the price of a change."""
    methods = dict(user.payment_methods)
    if payment_id not in methods:
        raise ToolError("Payment method not found")
    method = methods[payment_id]
    if isinstance(method, Certificate):
        raise ToolError("Certificate cannot be used to update reservation")
    if isinstance(method, GiftCard):
        if method.amount < price:
            raise ToolError("Gift card balance is not enough")
        method.amount -= price
    if price != 0:
        reservation.payment_history.append(construct(Payment, {"payment_id": payment_id, "amount": price}))
