"""Tools about what is subscribed to, and at what price: plans, coupons, tax."""

from __future__ import annotations

from typing import Any, Literal

import quintain as qn
from quintain.environments.support import policy
from quintain.environments.support.desk import reading, shown, writing
from quintain.environments.support.schema.accounts import Account
from quintain.environments.support.schema.billing import (
    Coupon,
    CouponUse,
    Invoice,
    InvoiceLine,
    Payment,
    Plan,
    Subscription,
    TaxRate,
)
from quintain.environments.support.schema.people import Customer, Organisation

from .billing import Billing
from .people import Line, Number

HOME = "DE"
"""Country in which Halden pays its own tax."""


class Plans(Billing):
    """Subscriptions. Their corrections become credits, so this area stands on that of invoices."""

    @reading
    def get_subscription(self, subscription_id: Number) -> dict[str, Any]:
        """Show a subscription with its plan, and the plan that was ordered at the checkout.

        Args:
            subscription_id: Number of the subscription.
        """
        subscription = self.need(Subscription, subscription_id)
        found = shown(subscription) | {"plan": shown(self.need(Plan, subscription.plan_id))}
        if subscription.ordered_plan_id is not None:
            found["ordered_plan"] = shown(self.need(Plan, subscription.ordered_plan_id))
        return found

    @reading
    def list_plans(self) -> list[dict[str, Any]]:
        """List the plans with net prices a month; those that are no longer offered too."""
        return [shown(row) for row in self.rows(Plan, "1")]

    @writing
    def change_plan(self, subscription_id: Number, plan_id: Number) -> str:
        """Put a subscription on another plan from now on; what was invoiced stays. Needs a verified customer.

        Args:
            subscription_id: Number of the subscription.
            plan_id: Number of the plan.
        """
        subscription = self.need(Subscription, subscription_id)
        plan = self.need(Plan, plan_id)
        if subscription.status == "cancelled":
            raise qn.ToolError(f"subscription {subscription_id} is cancelled")
        if subscription.plan_id == plan_id:
            raise qn.ToolError(f"subscription {subscription_id} is on {plan.name} already")
        if not plan.is_offered:
            raise qn.ToolError(f"{plan.name} is no longer offered")
        self.change(Subscription, subscription_id, plan_id=plan_id)
        self._audited("change_plan", subscription)
        return f"subscription {subscription_id} is on {plan.name}"

    @writing
    def cancel_subscription(self, subscription_id: Number, when: Literal["now", "period_end"]) -> str:
        """End a subscription. Needs a verified customer.

        Args:
            subscription_id: Number of the subscription.
            when: At once, or with the last day that is paid for.
        """
        subscription = self.need(Subscription, subscription_id)
        if subscription.status == "cancelled" or subscription.ends is not None:
            raise qn.ToolError(f"subscription {subscription_id} is cancelled already")
        if when == "now":
            self.change(Subscription, subscription_id, status="cancelled", ends=self.today)
        else:
            self.change(Subscription, subscription_id, ends=subscription.renews)
        self._audited("cancel_subscription", subscription)
        return f"subscription {subscription_id} ends on {self.need(Subscription, subscription_id).ends}"

    @reading
    def get_coupon(self, code: Line) -> dict[str, Any]:
        """Show a coupon: what it is worth, when, for which plan, and for which smallest net amount.

        Args:
            code: Its code; capital letters do not matter.
        """
        return shown(self._coupon(code))

    @writing
    def apply_coupon(self, invoice_id: Number, code: Line) -> str:
        """Apply a coupon to an invoice of a subscription; the difference becomes a credit by itself.

        The system does not look at dates, plans or minimums: whether a coupon counts is for you to see.

        Args:
            invoice_id: Number of the row of the invoice.
            code: Code of the coupon.
        """
        invoice, coupon = self.need(Invoice, invoice_id), self._coupon(code)
        if invoice.status == "void" or invoice.coupon_id is not None:
            raise qn.ToolError(f"invoice {invoice.number} is void or has a coupon already")
        if coupon.uses_left == 0:
            raise qn.ToolError(f"coupon {coupon.code} is used up")
        saved = policy.percent_of(invoice.total_cents, coupon.percent)
        self.change(Invoice, invoice_id, coupon_id=coupon.id)
        if coupon.uses_left is not None:
            self.change(Coupon, coupon.id, uses_left=coupon.uses_left - 1)
        self.add(CouponUse, coupon_id=coupon.id, account_id=invoice.account_id, at=self.now)
        self.credit(invoice.account_id, saved, f"coupon {coupon.code} on {invoice.number}", origin="coupon")
        self.audit("apply_coupon", self._owner(invoice), f"invoice {invoice_id}: {coupon.code}")
        return f"coupon {coupon.code} is on {invoice.number}; {saved} cents were credited"

    @reading
    def list_tax_rates(self, country: Line) -> list[dict[str, Any]]:
        """List the tax rates of a country, latest first.

        Args:
            country: Two letters, such as DE.
        """
        found = self.rows(TaxRate, "country = ? ORDER BY valid_from DESC", country.upper())
        if not found:
            raise qn.ToolError(f"we know no tax rates of {country!r}")
        return [shown(row, "id") for row in found]

    @writing
    def reissue_invoice(
        self, invoice_id: Number, tax_percent: Literal[0, 10, 17, 19, 20, 21, 22, 23, 24, 25]
    ) -> dict[str, Any]:
        """Void an invoice and issue it anew with another tax rate; a difference becomes a credit by itself.

        Args:
            invoice_id: Number of the row of the invoice.
            tax_percent: The right rate.
        """
        old = self.need(Invoice, invoice_id)
        if old.status == "void":
            raise qn.ToolError(f"invoice {old.number} is void already")
        if old.tax_percent == tax_percent:
            raise qn.ToolError(f"invoice {old.number} has {tax_percent} percent already")
        tax = policy.percent_of(old.net_cents, tax_percent)
        facts = {name: value for name, value in shown(old).items() if name not in {"id", "number"}}
        total = old.net_cents + tax
        facts |= {"issued": self.today, "tax_percent": tax_percent, "tax_cents": tax, "total_cents": total}
        new = self.add(Invoice, number=f"{old.number}-K", **facts)
        for line in self.rows(InvoiceLine, "invoice_id = ?", invoice_id):
            self.add(InvoiceLine, invoice_id=new.id, text=line.text, amount_cents=line.amount_cents)
        for payment in self.rows(Payment, "invoice_id = ? AND status = 'succeeded'", invoice_id):
            self.change(Payment, payment.id, invoice_id=new.id)
        self.change(Invoice, invoice_id, status="void")
        if old.status == "paid" and old.total_cents > total:
            self.credit(old.account_id, old.total_cents - total, f"tax of {old.number}", origin="tax")
        self.audit("reissue_invoice", self._owner(old), f"invoice {invoice_id}: {tax_percent}")
        return shown(new) | {"credited_cents": max(0, old.total_cents - total) if old.status == "paid" else 0}

    @reading
    def get_tax_status(self, account_id: Number) -> dict[str, Any]:
        """Show what decides the tax of an account: the owner's country, and the VAT number of their organisation.

        Args:
            account_id: Number of the account.
        """
        owner = self.need(Customer, self.need(Account, account_id).customer_id)
        found: dict[str, Any] = {"country": owner.country, "home": HOME}
        if owner.organisation_id is not None:
            organisation = self.need(Organisation, owner.organisation_id)
            found |= {"organisation": organisation.name, "organisation_country": organisation.country}
            found |= {"vat_id": organisation.vat_id}
        return found

    def _coupon(self, code: str) -> Coupon:
        found = self.rows(Coupon, "code = ?", code.strip().upper())
        if not found:
            raise qn.ToolError(f"there is no coupon {code!r}")
        return found[0]

    def _owner(self, invoice: Invoice) -> int:
        return self.need(Account, invoice.account_id).customer_id

    def _audited(self, action: str, subscription: Subscription) -> None:
        account = self.need(Account, subscription.account_id)
        self.audit(action, account.customer_id, f"subscription {subscription.id}")
