"""Tools about orders: what was bought, where it goes, and what takes its place."""

from __future__ import annotations

from typing import Any

import quintain as qn
from quintain.environments.support.desk import paged, reading, shown, writing
from quintain.environments.support.schema.people import Customer
from quintain.environments.support.schema.shop import Order, OrderLine, OrderPayment, Parcel, Product, ReturnLabel

from .billing import Billing
from .people import Line, Number, Page

_NOT_SHIPPED = ("paid", "packing")


class Orders(Billing):
    """Orders and products. Approvals are those of the money, so this area stands on it."""

    @reading
    def list_orders(self, customer_id: Number, page: Page = 1) -> dict[str, Any]:
        """List the orders of a customer, latest first, ten on a page.

        Args:
            customer_id: Number of the customer.
            page: Page of the result, from 1.
        """
        self.need(Customer, customer_id)
        found = self.rows(Order, "customer_id = ? ORDER BY placed DESC, id DESC", customer_id)
        brief = [
            {"id": row.id, "number": row.number, "placed": row.placed, "status": row.status, "total": row.total_cents}
            for row in found
        ]
        return paged(brief, page)

    @reading
    def find_order(self, number: Line) -> dict[str, Any]:
        """Find an order by its number.

        Args:
            number: Such as H-204817.
        """
        found = self.rows(Order, "number = ?", number.strip().upper())
        if not found:
            raise qn.ToolError(f"there is no order {number!r}")
        return {"id": found[0].id, "number": found[0].number, "customer_id": found[0].customer_id}

    @reading
    def get_order(self, order_id: Number) -> dict[str, Any]:
        """Show an order with its lines, its payment, and the numbers of its parcels.

        Args:
            order_id: Number of the row, not the number printed on the order.
        """
        order = self.need(Order, order_id)
        lines = [
            shown(line, "order_id") | {"product": shown(self.need(Product, line.product_id), "is_sold")}
            for line in self.rows(OrderLine, "order_id = ?", order_id)
        ]
        payments = self.rows(OrderPayment, "order_id = ?", order_id)
        parcels = self.rows(Parcel, "order_id = ?", order_id)
        return shown(order) | {
            "lines": lines,
            "payments": [shown(row, "order_id") for row in payments],
            "parcels": [{"id": row.id, "tracking": row.tracking, "status": row.status} for row in parcels],
        }

    @reading
    def get_product(self, sku: Line) -> dict[str, Any]:
        """Show a product and how many of it are in stock.

        Args:
            sku: Its code, such as CAM-02.
        """
        found = self.rows(Product, "sku = ?", sku.strip().upper())
        if not found:
            raise qn.ToolError(f"there is no product {sku!r}")
        return shown(found[0])

    @writing
    def update_order_address(
        self,
        order_id: Number,
        *,
        name: Line | None = None,
        street: Line | None = None,
        postcode: Line | None = None,
        city: Line | None = None,
    ) -> str:
        """Correct where an order goes; what is left out stays. A parcel that is on its way already keeps its address.

        Needs a verified customer.

        Args:
            order_id: Number of the row of the order.
            name: Who receives it.
            street: Street and house number.
            postcode: Postcode.
            city: City.
        """
        order = self.need(Order, order_id)
        given = {"ship_name": name, "ship_street": street, "ship_postcode": postcode, "ship_city": city}
        facts = {field: value for field, value in given.items() if value is not None}
        if not facts:
            raise qn.ToolError("nothing to change: give at least one part of the address")
        if order.status in {"delivered", "cancelled"}:
            raise qn.ToolError(f"order {order.number} is {order.status}")
        self.change(Order, order_id, **facts)
        self.audit("update_order_address", order.customer_id, f"order {order_id}: {', '.join(facts)}")
        return f"order {order.number}: {', '.join(facts)} changed"

    @writing
    def cancel_order(self, order_id: Number) -> str:
        """Cancel an order that was not shipped yet. Money is not paid back by itself.

        Args:
            order_id: Number of the row of the order.
        """
        order = self.need(Order, order_id)
        if order.status not in _NOT_SHIPPED:
            raise qn.ToolError(
                f"order {order.number} is {order.status}; only one that was not shipped can be cancelled"
            )
        self.change(Order, order_id, status="cancelled")
        self.audit("cancel_order", order.customer_id, f"order {order_id}")
        return f"order {order.number} is cancelled"

    @writing
    def refund_order(self, order_id: Number, reason: Line, approval_id: Number | None = None) -> str:
        """Pay back the whole of what was paid for an order. Irreversible.

        Args:
            order_id: Number of the row of the order.
            reason: Why, for the books.
            approval_id: The granted approval, where one is needed.
        """
        order = self.need(Order, order_id)
        payments = self.rows(OrderPayment, "order_id = ? AND refunded_cents < amount_cents", order_id)
        if not payments:
            raise qn.ToolError(f"nothing is left to be refunded of order {order.number}")
        back = sum(payment.amount_cents - payment.refunded_cents for payment in payments)
        if approval_id is not None:
            self.granted(approval_id, back)
        for payment in payments:
            facts = {"refunded_cents": payment.amount_cents, "approval_id": approval_id}
            self.change(OrderPayment, payment.id, **facts)
        self.audit("refund_order", order.customer_id, f"order {order_id}", detail=reason)
        return f"{back} cents of order {order.number} are on their way back"

    @writing
    def ship_replacement(self, order_id: Number) -> dict[str, Any]:
        """Send everything of an order again, free of charge, to the address that the order has now.

        Args:
            order_id: Number of the row of the order.
        """
        order = self.need(Order, order_id)
        if self.count(Order, "replaces_id = ?", order_id):
            raise qn.ToolError(f"order {order.number} has a replacement already")
        lines = self.rows(OrderLine, "order_id = ?", order_id)
        for line in lines:
            product = self.need(Product, line.product_id)
            if product.stock < line.quantity:
                raise qn.ToolError(f"{product.sku} is out of stock: {product.stock} left, {line.quantity} needed")
            self.change(Product, product.id, stock=product.stock - line.quantity)
        facts = {name: value for name, value in shown(order).items() if name not in {"id", "coupon_id"}}
        facts |= {"number": f"{order.number}-E", "placed": self.now, "status": "packing", "total_cents": 0}
        new = self.add(Order, **facts | {"replaces_id": order_id})
        for line in lines:
            self.add(OrderLine, order_id=new.id, product_id=line.product_id, quantity=line.quantity, price_cents=0)
        self.audit("ship_replacement", order.customer_id, f"order {order_id}: {new.number}")
        return {"id": new.id, "number": new.number, "status": new.status}

    @writing
    def send_return_label(self, order_id: Number, reason: Line) -> str:
        """Send the customer a label with which they can send an order back.

        Args:
            order_id: Number of the row of the order.
            reason: Why they send it back.
        """
        order = self.need(Order, order_id)
        if order.status != "delivered":
            raise qn.ToolError(f"order {order.number} is {order.status}; only what was delivered can be sent back")
        self.add(ReturnLabel, order_id=order_id, sent=self.now, reason=reason)
        self.audit("send_return_label", order.customer_id, f"order {order_id}")
        return f"a label for {order.number} was sent"
