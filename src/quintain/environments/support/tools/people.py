"""Tools about people: customers, organisations, addresses, and who is who."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

import quintain as qn
from quintain.environments.support.desk import Desk, paged, reading, shown, writing
from quintain.environments.support.schema.accounts import Account
from quintain.environments.support.schema.billing import Card, Invoice
from quintain.environments.support.schema.desk import Ticket, Verification
from quintain.environments.support.schema.people import Address, Customer, CustomerIdentity, Organisation
from quintain.environments.support.schema.shop import Order

Page = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
Line = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Number = Annotated[int, msgspec.Meta(ge=1, le=2**53)]


class People(Desk):
    """Customers and organisations."""

    @reading
    def find_customers(self, query: Line, page: Page = 1) -> dict[str, Any]:
        """Find customers by a part of their name, of an e-mail address, or of a phone number; ten on a page.

        Several people may share a name or an address, and old records may be stale: compare before you act.

        Args:
            query: Part of a name, address or number; capital letters do not matter.
            page: Page of the result, from 1.
        """
        part = f"%{query.replace('%', '').replace('_', '')}%"
        also = self.rows(CustomerIdentity, "value LIKE ?", part)
        marks = ", ".join("?" * len(also))
        found = self.rows(
            Customer,
            f"name LIKE ? OR email LIKE ? OR phone LIKE ? OR id IN ({marks})",  # (placeholders only)
            *[part] * 3,
            *[identity.customer_id for identity in also],
        )
        brief = [{"id": row.id, "name": row.name, "email": row.email, "country": row.country} for row in found]
        return paged(brief, page)

    @reading
    def get_customer(self, customer_id: Number) -> dict[str, Any]:
        """Show a customer with other addresses of theirs, postal addresses, and the numbers of their accounts.

        Args:
            customer_id: Number of the customer.
        """
        customer = self.need(Customer, customer_id)
        identities = self.rows(CustomerIdentity, "customer_id = ?", customer_id)
        return shown(customer) | {
            "identities": [shown(row, "id", "customer_id") for row in identities],
            "addresses": [shown(row) for row in self.rows(Address, "customer_id = ?", customer_id)],
            "account_ids": [row.id for row in self.rows(Account, "customer_id = ?", customer_id)],
        }

    @reading
    def get_organisation(self, organisation_id: Number) -> dict[str, Any]:
        """Show an organisation with its members and their roles.

        Args:
            organisation_id: Number of the organisation.
        """
        organisation = self.need(Organisation, organisation_id)
        members = self.rows(Customer, "organisation_id = ?", organisation_id)
        listed = [
            {"id": row.id, "name": row.name, "email": row.email, "role": row.organisation_role} for row in members
        ]
        return shown(organisation) | {"members": listed}

    @writing
    def update_customer(
        self,
        customer_id: Number,
        *,
        name: Line | None = None,
        email: Line | None = None,
        phone: Line | None = None,
        language: Line | None = None,
    ) -> str:
        """Change what we know of a customer; what is left out stays. Needs a verified customer.

        Args:
            customer_id: Number of the customer.
            name: Full name.
            email: Address that letters and links go to.
            phone: Phone number.
            language: Language of letters, such as en or de.
        """
        self.need(Customer, customer_id)
        given = {"name": name, "email": email, "phone": phone, "language": language}
        facts = {field: value for field, value in given.items() if value is not None}
        if not facts:
            raise qn.ToolError("nothing to change: give at least one field")
        if email is not None and not re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", email):
            raise qn.ToolError(f"{email!r} is no e-mail address")
        self.change(Customer, customer_id, **facts)
        self.audit("update_customer", customer_id, f"customer {customer_id}: {', '.join(facts)}")
        return f"customer {customer_id}: {', '.join(facts)} changed"

    @writing
    def verify_identity(
        self,
        ticket_id: Number,
        customer_id: Number,
        *,
        number: Line | None = None,
        postcode: Line | None = None,
        last4: Line | None = None,
    ) -> dict[str, Any]:
        """Compare what the writer of a ticket gave with our records of a customer. At least two are needed.

        It passes when all that is given is right. Every attempt is recorded on the ticket.

        Args:
            ticket_id: Ticket on which the details were given.
            customer_id: Customer who the writer says they are.
            number: Number of one of their orders or invoices, such as H-204817 or R-118203.
            postcode: Postcode of one of their addresses.
            last4: Last four digits of one of their cards.
        """
        self.need(Ticket, ticket_id)
        self.need(Customer, customer_id)
        given = {"number": number, "postcode": postcode, "last4": last4}
        facts = {kind: value.strip() for kind, value in given.items() if value is not None}
        if len(facts) < 2:
            raise qn.ToolError("give at least two of number, postcode and last4")
        wrong = [kind for kind, value in facts.items() if not self._known(customer_id, kind, value)]
        self.add(
            Verification,
            ticket_id=ticket_id,
            customer_id=customer_id,
            given=list(facts.values()),
            has_passed=not wrong,
            at=self.now,
        )
        return {"verified": not wrong, "wrong": wrong}

    def _known(self, customer_id: int, kind: str, value: str) -> bool:
        """True if one detail is that of the customer."""
        match kind:
            case "postcode":
                addresses = self.rows(Address, "customer_id = ?", customer_id)
                return _bare(value) in {_bare(row.postcode) for row in addresses}
            case "last4":
                return bool(self.count(Card, "customer_id = ? AND last4 = ?", customer_id, value))
            case _:
                mine = "account_id IN (SELECT id FROM accounts WHERE customer_id = ?) AND number = ?"
                number = value.upper()
                return bool(
                    self.count(Order, "customer_id = ? AND number = ?", customer_id, number)
                    or self.count(Invoice, mine, customer_id, number)
                )


def _bare(text: str) -> str:
    return re.sub(r"[\s-]", "", text).casefold()
