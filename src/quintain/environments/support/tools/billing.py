"""Tools about money that is owed and paid: invoices, payments, refunds, approvals."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

import quintain as qn
from quintain.environments.support.desk import paged, reading, shown, writing
from quintain.environments.support.schema.accounts import Account, Lock
from quintain.environments.support.schema.billing import (
    Approval,
    Card,
    Credit,
    Invoice,
    InvoiceLine,
    Payment,
    PaymentLink,
    PaymentRetry,
    Refund,
    Subscription,
)
from quintain.environments.support.schema.desk import Mail, Ticket
from quintain.environments.support.schema.people import Customer

from .accounts import Accounts
from .people import Line, Number, Page

Amount = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
APPROVAL_S = 4 * 3600
"""Seconds until a lead decides an unusual request."""


class Billing(Accounts):
    """Invoices and payments. Paying lifts locks, so this area stands on that of accounts."""

    @reading
    def list_invoices(self, account_id: Number, page: Page = 1) -> dict[str, Any]:
        """List the invoices of an account, latest first, ten on a page.

        Args:
            account_id: Number of the account.
            page: Page of the result, from 1.
        """
        self.need(Account, account_id)
        found = self.rows(Invoice, "account_id = ? ORDER BY issued DESC, id DESC", account_id)
        return paged([shown(row, "account_id") for row in found], page)

    @reading
    def get_invoice(self, invoice_id: Number) -> dict[str, Any]:
        """Show an invoice with its lines, all payments and attempts, planned retries and links.

        Args:
            invoice_id: Number of the row, not the number printed on the invoice.
        """
        invoice = self.need(Invoice, invoice_id)
        of = ("invoice_id = ?", invoice_id)
        return shown(invoice) | {
            "lines": [shown(row, "id", "invoice_id") for row in self.rows(InvoiceLine, *of)],
            "payments": [
                shown(row, "invoice_id") for row in self.rows(Payment, "invoice_id = ? ORDER BY at, id", invoice_id)
            ],
            "retries": [shown(row, "invoice_id") for row in self.rows(PaymentRetry, *of)],
            "links": [shown(row, "invoice_id") for row in self.rows(PaymentLink, *of)],
        }

    @reading
    def find_invoice(self, number: Line) -> dict[str, Any]:
        """Find an invoice by the number printed on it.

        Args:
            number: Such as R-118203.
        """
        found = self.rows(Invoice, "number = ?", number.strip().upper())
        if not found:
            raise qn.ToolError(f"there is no invoice {number!r}")
        return shown(found[0])

    @reading
    def list_cards(self, customer_id: Number) -> list[dict[str, Any]]:
        """List the cards of a customer.

        Args:
            customer_id: Number of the customer.
        """
        self.need(Customer, customer_id)
        return [shown(row, "customer_id") for row in self.rows(Card, "customer_id = ?", customer_id)]

    @writing
    def set_default_card(self, card_id: Number) -> str:
        """Make a card the one that invoices are charged to. Needs a verified customer.

        Args:
            card_id: Number of the card.
        """
        card = self.need(Card, card_id)
        if card.expires < self.today[:7]:
            raise qn.ToolError(f"card {card_id} has expired in {card.expires}")
        for other in self.rows(Card, "customer_id = ? AND is_default = 1 AND id <> ?", card.customer_id, card_id):
            self.change(Card, other.id, is_default=False)
        self.change(Card, card_id, is_default=True)
        self.audit("set_default_card", card.customer_id, f"card {card_id}")
        return f"card {card_id} (ending {card.last4}) is the default"

    @writing
    def retry_payment(self, invoice_id: Number) -> dict[str, Any]:
        """Charge an open invoice to the customer's default card now.

        Args:
            invoice_id: Number of the row of the invoice.
        """
        invoice = self._open(invoice_id)
        customer_id = self.need(Account, invoice.account_id).customer_id
        cards = self.rows(Card, "customer_id = ? AND is_default = 1", customer_id)
        if not cards:
            raise qn.ToolError(f"customer {customer_id} has no default card")
        payment = self.charge(invoice, cards[0])
        self.audit("retry_payment", customer_id, f"invoice {invoice_id}")
        return shown(payment)

    @writing
    def send_payment_link(self, invoice_id: Number) -> str:
        """Send the customer a link on which they can pay an open invoice with whatever they like.

        Args:
            invoice_id: Number of the row of the invoice.
        """
        invoice = self._open(invoice_id)
        owner = self.need(Customer, self.need(Account, invoice.account_id).customer_id)
        self.add(PaymentLink, invoice_id=invoice_id, sent=self.now)
        self.add(Mail, at=self.now, to=owner.email, subject=f"Pay invoice {invoice.number}")
        self.audit("send_payment_link", owner.id, f"invoice {invoice_id}")
        self.cue(f"link:{invoice_id}")
        return f"a link for {invoice.number} was sent to {owner.email}"

    @writing
    def refund_payment(
        self, payment_id: Number, amount_cents: Amount, reason: Line, *, approval_id: Number | None = None
    ) -> str:
        """Pay money of a successful payment back to where it came from. Irreversible.

        Args:
            payment_id: Number of the payment.
            amount_cents: How much, in cents; no more than what is left of it.
            reason: Why, for the books.
            approval_id: The granted approval, where one is needed.
        """
        payment = self.need(Payment, payment_id)
        if payment.status != "succeeded":
            raise qn.ToolError(f"payment {payment_id} is {payment.status}, so nothing of it can be refunded")
        back = sum(row.amount_cents for row in self.rows(Refund, "payment_id = ?", payment_id))
        if back + amount_cents > payment.amount_cents:
            raise qn.ToolError(f"{payment.amount_cents - back} cents are left of payment {payment_id}")
        if approval_id is not None:
            self.granted(approval_id, amount_cents)
        self.add(
            Refund,
            payment_id=payment_id,
            amount_cents=amount_cents,
            reason=reason,
            at=self.now,
            approval_id=approval_id,
        )
        if back + amount_cents == payment.amount_cents:
            self.change(Payment, payment_id, status="refunded")
        invoice = self.need(Invoice, payment.invoice_id)
        customer_id = self.need(Account, invoice.account_id).customer_id
        self.audit("refund_payment", customer_id, f"payment {payment_id}: {amount_cents}")
        return f"{amount_cents} cents of payment {payment_id} are on their way back"

    @writing
    def request_approval(self, ticket_id: Number, amount_cents: Amount, reason: Line) -> str:
        """Ask a lead to approve a refund or a credit above your limit. They decide within hours; see get_approval.

        Args:
            ticket_id: Ticket that it is about.
            amount_cents: How much.
            reason: Why.
        """
        self.need(Ticket, ticket_id)
        approval = self.add(Approval, ticket_id=ticket_id, amount_cents=amount_cents, reason=reason, asked=self.now)
        if not self.cue(f"approval:{ticket_id}:{amount_cents}"):
            self.timers.after(APPROVAL_S, self.deny, approval_id=approval.id)
        return f"approval {approval.id} was asked for"

    @reading
    def get_approval(self, approval_id: Number) -> dict[str, Any]:
        """Show whether a lead has decided, and how.

        Args:
            approval_id: Number of the approval.
        """
        return shown(self.need(Approval, approval_id))

    @writing
    def grant_credit(
        self, account_id: Number, amount_cents: Amount, reason: Line, *, approval_id: Number | None = None
    ) -> str:
        """Give an account credit, which its next invoice will be less by.

        Args:
            account_id: Number of the account.
            amount_cents: How much, in cents.
            reason: Why, for the books.
            approval_id: The granted approval, where one is needed.
        """
        account = self.need(Account, account_id)
        if approval_id is not None:
            self.granted(approval_id, amount_cents)
        self.credit(account_id, amount_cents, reason, approval_id=approval_id)
        self.audit("grant_credit", account.customer_id, f"account {account_id}: {amount_cents}")
        return f"account {account_id} was credited {amount_cents} cents"

    @reading
    def list_credits(self, account_id: Number) -> list[dict[str, Any]]:
        """List what was credited to an account.

        Args:
            account_id: Number of the account.
        """
        self.need(Account, account_id)
        return [shown(row, "account_id") for row in self.rows(Credit, "account_id = ?", account_id)]

    # -- what happens with them

    def credit(
        self,
        account_id: int,
        amount_cents: int,
        reason: str,
        *,
        origin: Literal["agent", "coupon", "tax"] = "agent",
        approval_id: int | None = None,
    ) -> None:
        """Add a credit."""
        facts = {"account_id": account_id, "amount_cents": amount_cents, "reason": reason, "at": self.now}
        self.add(Credit, **facts, origin=origin, approval_id=approval_id)

    def charge(self, invoice: Invoice, card: Card, *, failure: str | None = None) -> Payment:
        """Try to charge an invoice; an expired card always fails."""
        why: Any = "expired_card" if card.expires < self.today[:7] else failure
        status: Any = "failed" if why else "succeeded"
        payment = self.add(
            Payment,
            invoice_id=invoice.id,
            card_id=card.id,
            amount_cents=invoice.total_cents,
            at=self.now,
            status=status,
            failure=why,
        )
        if not why:
            self.settle(invoice)
        return payment

    def settle(self, invoice: Invoice) -> None:
        """An invoice was paid: what waited for that goes on."""
        self.change(Invoice, invoice.id, status="paid")
        for retry in self.rows(PaymentRetry, "invoice_id = ? AND status = 'planned'", invoice.id):
            self.change(PaymentRetry, retry.id, status="cancelled")
        if self.count(Invoice, "account_id = ? AND status = 'open' AND due < ?", invoice.account_id, self.today):
            return
        for subscription in self.rows(Subscription, "account_id = ? AND status = 'past_due'", invoice.account_id):
            self.change(Subscription, subscription.id, status="active")
        for lock in self.rows(Lock, "account_id = ? AND reason = 'unpaid' AND lifted IS NULL", invoice.account_id):
            self.change(Lock, lock.id, lifted=self.now)
        self.relock(invoice.account_id)

    def decide(self, approval_id: int, *, granted: bool) -> None:
        """A lead decides."""
        self.change(Approval, approval_id, decided=self.now, decision="granted" if granted else "denied")

    def deny(self, approval_id: int) -> None:
        """A lead sees no reason for what was asked."""
        self.decide(approval_id, granted=False)

    def _open(self, invoice_id: int) -> Invoice:
        invoice = self.need(Invoice, invoice_id)
        if invoice.status != "open":
            raise qn.ToolError(f"invoice {invoice.number} is {invoice.status}; only an open one can be paid")
        return invoice

    def granted(self, approval_id: int, amount_cents: int) -> None:
        """See that a lead has approved so much.

        Raises:
            ToolError: Not so much, or not yet, or not at all.
        """
        approval = self.need(Approval, approval_id)
        if approval.decision != "granted":
            raise qn.ToolError(f"approval {approval_id} is {approval.decision or 'not decided yet'}")
        if amount_cents > approval.amount_cents:
            raise qn.ToolError(f"approval {approval_id} is for {approval.amount_cents} cents, not for {amount_cents}")
