"""The retail domain: a web shop whose agent may look up, cancel, change, return and exchange orders."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from typing import ClassVar

from quintain.adapters.tau2.calculator import calculated
from quintain.adapters.tau2.convention import action
from quintain.adapters.tau2.record import editing, found, shown
from quintain.adapters.tau2.validation import construct
from quintain.adapters.tau2.world import World
from quintain.errors import ToolError
from quintain.table import Table

from .payments import credit, method, require, settlement
from .rows import GiftCard, Order, OrderPayment, Product, User, UserAddress, Variant

_REASONS = {"no longer needed", "ordered by mistake"}


class Retail(World, kw_only=True):
    """The shop's database, and the tools of its agent."""

    toolkit: ClassVar[str] = "RetailTools"
    sections: ClassVar[tuple[str, ...]] = ("products", "users", "orders")

    products: Table[Product]
    users: Table[User]
    orders: Table[Order]

    @action
    def calculate(self, expression: str) -> str:
        """Work out an arithmetic expression, rounded to two decimals.

        Args:
            expression: Numbers, the operators + - * /, parentheses and spaces, such as '2 + 2'.
        """
        return calculated(expression)

    @action
    def cancel_pending_order(self, order_id: str, reason: str) -> str:
        """Cancel an order that is still pending, and refund it.

        What was paid by gift card is back on it at once, anything else takes 5 to 7 business days. Explain the
        details and get an explicit yes from the customer before. Returns the order.

        Args:
            order_id: Such as '#W0000000'; the '#' belongs to it.
            reason: 'no longer needed' or 'ordered by mistake'.
        """
        with self._order(order_id) as order:
            if order.status != "pending":
                raise ToolError("Non-pending order cannot be cancelled")
            if reason not in _REASONS:
                raise ToolError("Invalid reason")
            refunds: list[OrderPayment] = []
            with self._user(order.user_id) as user:
                for payment in order.payment_history:
                    refunds.append(OrderPayment("refund", payment.amount, payment.payment_method_id))
                    credit(method(user, payment.payment_method_id), payment.amount)
            order.status = "cancelled"
            order.cancel_reason = reason
            order.payment_history += refunds
        return shown(order)

    @action
    def exchange_delivered_order_items(
        self, order_id: str, *, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> str:
        """Ask for an exchange of delivered items for other variants of the same products.

        An order can be returned or exchanged once. Explain the details and get an explicit yes from the customer
        before. Returns the order.

        Args:
            order_id: Such as '#W0000000'; the '#' belongs to it.
            item_ids: Items to give back, such as '1008292230'; one that was bought twice may be listed twice.
            new_item_ids: Items to get instead, in the same order, each of the same product as the one it replaces.
            payment_method_id: Pays or receives the difference; such as 'gift_card_0000000', from the customer's or
                the order's details.
        """
        with self._order(order_id) as order:
            if order.status != "delivered":
                raise ToolError("Non-delivered order cannot be exchanged")
            for missing in _not_owned(order, item_ids):
                raise ToolError(f"Number of {missing} not found.")
            if len(item_ids) != len(new_item_ids):
                raise ToolError("The number of items to be exchanged should match.")
            difference: float = 0
            for old, new in zip(item_ids, new_item_ids, strict=False):
                difference += self._replacement(order, old, new).price - _item_price(order, old)
            difference = round(difference, 2)
            with self._user(order.user_id) as user:
                require(method(user, payment_method_id), difference, "pay for the price difference")
            order.status = "exchange requested"
            order.exchange_items = sorted(item_ids)
            order.exchange_new_items = sorted(new_item_ids)
            order.exchange_payment_method_id = payment_method_id
            order.exchange_price_difference = difference
        return shown(order)

    @action
    def find_user_id_by_name_zip(self, first_name: str, last_name: str, *, zip: str) -> str:
        """Find a customer's user id by name and zip code; to be used when the e-mail address doesn't lead to one.

        Args:
            first_name: Such as 'John'.
            last_name: Such as 'Doe'.
            zip: Such as '12345'.
        """
        for user_id, user in self.users.items():
            if user.name.first_name.lower() != first_name.lower() or user.name.last_name.lower() != last_name.lower():
                continue
            if user.address.zip == zip:
                return user_id
        raise ToolError("User not found")

    @action
    def find_user_id_by_email(self, email: str) -> str:
        """Find a customer's user id by e-mail address.

        Args:
            email: Such as 'something@example.com'.
        """
        for user_id, user in self.users.items():
            if user.email.lower() == email.lower():
                return user_id
        raise ToolError("User not found")

    @action
    def get_order_details(self, order_id: str) -> str:
        """Look up an order: its status, items, payments and parcels.

        Args:
            order_id: Such as '#W0000000'; the '#' belongs to it.
        """
        return shown(found(self.orders, order_id, "Order not found"))

    @action
    def get_product_details(self, product_id: str) -> str:
        """Look up a product with all its variants, their prices and whether they are in stock.

        Args:
            product_id: Such as '6086499569'; not the id of an item.
        """
        return shown(found(self.products, product_id, "Product not found"))

    @action
    def get_item_details(self, item_id: str) -> str:
        """Look up one variant of a product.

        Args:
            item_id: Such as '6086499569'; not the id of a product.
        """
        for product in self.products.values():
            variants = dict(product.variants)
            if item_id in variants:
                return shown(variants[item_id])
        raise ToolError("Item not found")

    @action
    def get_user_details(self, user_id: str) -> str:
        """Look up a customer: address, payment methods and order ids.

        Args:
            user_id: Such as 'sara_doe_496'.
        """
        return shown(found(self.users, user_id, "User not found"))

    @action
    def list_all_product_types(self) -> str:
        """List the names and product ids of the shop's 50 products, by name; each comes in several variants."""
        names = {product.name: product.product_id for product in self.products.values()}
        return json.dumps(names, sort_keys=True)

    @action
    def modify_pending_order_address(
        self,
        order_id: str,
        *,
        address1: str,
        address2: str,
        city: str,
        state: str,
        country: str,
        zip: str,
    ) -> str:
        """Have a pending order sent to another address.

        Explain the details and get an explicit yes from the customer before. Returns the order.

        Args:
            order_id: Such as '#W0000000'; the '#' belongs to it.
            address1: First line, such as '123 Main St'.
            address2: Second line, such as 'Apt 1', or ''.
            city: Such as 'San Francisco'.
            state: Such as 'CA'.
            country: Such as 'USA'.
            zip: Such as '12345'.
        """
        with self._pending(order_id) as order:
            order.address = _address(
                address1=address1, address2=address2, city=city, state=state, country=country, zip=zip
            )
        return shown(order)

    @action
    def modify_pending_order_items(
        self, order_id: str, *, item_ids: list[str], new_item_ids: list[str], payment_method_id: str
    ) -> str:
        """Replace items of a pending order by other variants of the same products; possible once per order.

        Explain the details and get an explicit yes from the customer before. Returns the order.

        Args:
            order_id: Such as '#W0000000'; the '#' belongs to it.
            item_ids: Items to be replaced, such as '1008292230'; one that was ordered twice may be listed twice.
            new_item_ids: Items to get instead, in the same order, each of the same product as the one it replaces.
            payment_method_id: Pays or receives the difference; such as 'gift_card_0000000', from the customer's or
                the order's details.
        """
        with self._order(order_id) as order:
            if order.status != "pending":
                raise ToolError("Non-pending order cannot be modified")
            for missing in _not_owned(order, item_ids):
                raise ToolError(f"{missing} not found")
            if len(item_ids) != len(new_item_ids):
                raise ToolError("The number of items to be exchanged should match")
            difference: float = 0
            chosen: list[Variant] = []
            for old, new in zip(item_ids, new_item_ids, strict=False):
                if old == new:
                    raise ToolError("The new item id should be different from the old item id")
                chosen.append(self._replacement(order, old, new))
                difference += chosen[-1].price - _item_price(order, old)
            with self._user(order.user_id) as user:
                paying = method(user, payment_method_id)
                require(paying, difference, "pay for the new item")
                order.payment_history.append(settlement(difference, payment_method_id))
                credit(paying, -difference)
            for old, new in zip(item_ids, new_item_ids, strict=False):
                item = next(item for item in order.items if item.item_id == old)
                # Every replaced item gets price and options of the last one; the reference's verdicts rest on that.
                item.item_id, item.price, item.options = new, chosen[-1].price, chosen[-1].options
            order.status = "pending (item modified)"
        return shown(order)

    @action
    def modify_pending_order_payment(self, order_id: str, payment_method_id: str) -> str:
        """Have a pending order paid by another method, and refund the old one.

        Explain the details and get an explicit yes from the customer before. Returns the order.

        Args:
            order_id: Such as '#W0000000'; the '#' belongs to it.
            payment_method_id: The new method, such as 'gift_card_0000000', from the customer's or the order's details.
        """
        with self._pending(order_id) as order, self._user(order.user_id) as user:
            paying = method(user, payment_method_id)
            if [payment.transaction_type for payment in order.payment_history] != ["payment"]:
                raise ToolError("There should be exactly one payment for a pending order")
            (paid,) = order.payment_history
            if paid.payment_method_id == payment_method_id:
                raise ToolError("The new payment method should be different from the current one")
            require(paying, paid.amount, "pay for the order")
            order.payment_history += [
                OrderPayment("payment", paid.amount, payment_method_id),
                OrderPayment("refund", paid.amount, paid.payment_method_id),
            ]
            credit(paying, -paid.amount)
            credit(method(user, paid.payment_method_id), paid.amount)
        return shown(order)

    @action
    def modify_user_address(
        self,
        user_id: str,
        *,
        address1: str,
        address2: str,
        city: str,
        state: str,
        country: str,
        zip: str,
    ) -> str:
        """Change a customer's default address; orders keep theirs.

        Explain the details and get an explicit yes from the customer before. Returns the customer.

        Args:
            user_id: Such as 'sara_doe_496'.
            address1: First line, such as '123 Main St'.
            address2: Second line, such as 'Apt 1', or ''.
            city: Such as 'San Francisco'.
            state: Such as 'CA'.
            country: Such as 'USA'.
            zip: Such as '12345'.
        """
        with self._user(user_id) as user:
            user.address = _address(
                address1=address1, address2=address2, city=city, state=state, country=country, zip=zip
            )
        return shown(user)

    @action
    def return_delivered_order_items(self, order_id: str, *, item_ids: list[str], payment_method_id: str) -> str:
        """Ask for a return of delivered items.

        An order can be returned or exchanged once. Explain the details and get an explicit yes from the customer
        before; an e-mail will tell them how to send the items back. Returns the order.

        Args:
            order_id: Such as '#W0000000'; the '#' belongs to it.
            item_ids: Items to give back, such as '1008292230'; one that was bought twice may be listed twice.
            payment_method_id: Receives the refund: the method that paid for the order, or a gift card.
        """
        with self._order(order_id) as order:
            if order.status != "delivered":
                raise ToolError("Non-delivered order cannot be returned")
            refunded = method(found(self.users, order.user_id, "User not found"), payment_method_id)
            if not isinstance(refunded, GiftCard) and payment_method_id != order.payment_history[0].payment_method_id:
                raise ToolError("Payment method should be the original payment method")
            for _ in _not_owned(order, item_ids):
                raise ToolError("Some item not found")
            order.status = "return requested"
            order.return_items = sorted(item_ids)
            order.return_payment_method_id = payment_method_id
        return shown(order)

    @action
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the customer over to a human agent.

        Only when they explicitly ask for one, or when neither the policy nor the tools allow what they need.

        Args:
            summary: What the customer's issue is.
        """
        return "Transfer successful"

    def _order(self, order_id: str) -> AbstractContextManager[Order]:
        return editing(self.orders, order_id, "Order not found")

    def _user(self, user_id: str) -> AbstractContextManager[User]:
        return editing(self.users, user_id, "User not found")

    @contextmanager
    def _pending(self, order_id: str) -> Generator[Order]:
        """A pending order to change, its items changed before or not."""
        with self._order(order_id) as order:
            if "pending" not in order.status:
                raise ToolError("Non-pending order cannot be modified")
            yield order

    def _replacement(self, order: Order, old: str, new: str) -> Variant:
        """Returns the variant `new` of the product that the order's item `old` is of."""
        product_id = next(item.product_id for item in order.items if item.item_id == old)
        variants = dict(found(self.products, product_id, "Product not found").variants)
        if new not in variants:
            raise ToolError("Variant not found")
        if not variants[new].available:
            raise ToolError(f"New item {new} not found or available")
        return variants[new]


def _address(**fields: str) -> UserAddress:
    return construct(UserAddress, fields)


def _not_owned(order: Order, item_ids: list[str]) -> Iterable[str]:
    """Returns the ids that are listed more often than the order has them."""
    owned = [item.item_id for item in order.items]
    return (item_id for item_id in item_ids if item_ids.count(item_id) > owned.count(item_id))


def _item_price(order: Order, item_id: str) -> float:
    return next(item.price for item in order.items if item.item_id == item_id)
