"""People outside the desk: customers who answer and pay, carriers, leads, engineers. Each follows a script."""

from __future__ import annotations

from typing import Any

from .schema.billing import Approval, Card, Invoice, Payment, PaymentLink, PaymentRetry
from .schema.desk import Incident, Script, Ticket
from .tools.plans import Plans
from .tools.shipping import Shipping
from .tools.ticketing import Ticketing


class Outside(Plans, Shipping, Ticketing):
    """The world around the desk."""

    def happen(self, script_id: int) -> None:
        script = self.need(Script, script_id)
        with self.db.transaction():
            getattr(self, f"_{script.does}")(**script.facts)

    def _answer(self, ticket: int, body: str) -> None:
        """A customer writes on a ticket."""
        self.hear(ticket, body)

    def _write(self, requester: int, subject: str, body: str, *, channel: str) -> None:
        """A customer writes about something new, or once more."""
        self.open_ticket(requester_id=requester, subject=subject, body=body, channel=channel)

    def _pay(self, invoice: int) -> None:
        """A customer uses a payment link."""
        row = self.need(Invoice, invoice)
        if row.status != "open":
            return
        for link in self.rows(PaymentLink, "invoice_id = ? AND used IS NULL", invoice):
            self.change(PaymentLink, link.id, used=self.now)
        self.add(Payment, invoice_id=invoice, amount_cents=row.total_cents, at=self.now, status="succeeded")
        self.settle(row)

    def _retry(self, invoice: int, failure: str | None) -> None:
        """The system tries a payment again."""
        row = self.need(Invoice, invoice)
        for retry in self.rows(PaymentRetry, "invoice_id = ? AND status = 'planned' AND due <= ?", invoice, self.now):
            customer_id = self.db.one(int, "SELECT customer_id FROM accounts WHERE id = ?", row.account_id)
            (card,) = self.rows(Card, "customer_id = ? AND is_default = 1", customer_id)
            payment = self.charge(row, card, failure=failure)
            self.change(PaymentRetry, retry.id, status=payment.status)

    def _lapse(self, payment: int) -> None:
        """A bank lets go of what it had reserved."""
        self.change(Payment, payment, status="expired")

    def _approve(self, ticket: int, amount: int, granted: int) -> None:
        """A lead decides what was asked for on a ticket."""
        for approval in self.rows(Approval, "ticket_id = ? AND amount_cents = ? AND decided IS NULL", ticket, amount):
            self.decide(approval.id, granted=bool(granted))

    def _scan(self, parcel: int, **facts: Any) -> None:
        """A carrier scans a parcel."""
        self.scanned(parcel, **facts)

    def _settle_claim(self, parcel: int, decision: str, **scan: Any) -> None:
        """A carrier decides a claim; when it has found the parcel it says where."""
        if scan:
            self.scanned(parcel, **scan)
        self.decided(parcel, decision)

    def _resolve(self, incident: int) -> None:
        """Ends an incident, and notes it on the tickets that wait for it."""
        self.change(Incident, incident, status="resolved", resolved=self.now)
        for ticket in self.rows(Ticket, "incident_id = ? AND status = 'hold'", incident):
            self.comment(
                ticket.id, "system", sender="incidents", is_public=False, body=f"Incident INC-{incident} is resolved."
            )
            self.alter(ticket, "automation", status="open")
