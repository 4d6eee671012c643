"""A task while it is being written: its world, what is asked, and how one would do it."""

from __future__ import annotations

from typing import Any

from quintain.authoring import Level

from . import policy
from .desk import DAY, HOUR, moment, seconds
from .draft import SupportDraft, known
from .goals import Answer, Field, Filled, Free, Made, Truth, amount, word
from .schema.accounts import Account
from .schema.billing import Approval, Card, Invoice, Payment, PaymentRetry
from .schema.desk import Comment, Script, Ticket
from .schema.people import Address, Customer, Group
from .seed import base, words
from .state import Support

_PROMPTS = (
    "{what} is yours. Please see to it.",
    "Please work on this until nothing is left for you to do: {what}.",
    "You are on shift. Next in your queue: {what}.",
    "Take over {what}, would you? It came in today.",
)

Words = dict[str, tuple[str, ...]]
"""Language to the ways in which something is said in it."""


class Case(SupportDraft):
    """One task in the making.

    Attributes:
        tickets: The tickets of the job, the first one foremost.
        assigned: Those that the prompt names; the first one when it is empty. Others are to be found.
        asks_only: Whether nothing is to be repaired.
    """

    def __init__(self, key: bytes, level: Level) -> None:
        super().__init__(key, level)
        self.tickets: list[Ticket] = []
        self.assigned: list[Ticket] = []
        self.asks_only = False
        self._free: list[Free] = []
        self._foreign: list[str] = []
        self._internal: list[str] = []
        self._proofs: dict[int, dict[str, str]] = {}

    # -- the world

    def known_customer(self, **fields: Any) -> tuple[Customer, Address, Account, Card]:
        """A customer with an address, an account and a card."""
        customer = self.customer(**fields)
        return customer, self.home(customer), self.account(customer), self.card(customer)

    def write(self, customer: Customer, subject: str, say: Words, *, details: dict[str, str] | None = None,
              facts: dict[str, str] | None = None, minutes: int | None = None) -> Ticket:  # fmt: skip
        """A ticket: a customer writes what is wrong, and perhaps by what we know them.

        Args:
            customer: Who writes.
            subject: Of the mail.
            say: What may be said, by language.
            details: Proofs of who they are.
            facts: What fills the braces.
            minutes: How long ago; drawn when left out.
        """
        language = customer.language if customer.language in say and (self.mess or customer.language == "en") else "en"
        body = self.rng.choice(say[language]).format(**facts or {})
        if details is not None:
            body = f"{body} {words.proof(self.rng, details, language)}"
        text = words.letter(self.rng, body, name=customer.name, language=language, mess=self.mess)
        age = 60.0 * (10 + self.rng.below(80) if minutes is None else minutes)
        subject = words.typos(self.rng, subject, 9) if self.mess > 1 else subject
        at = moment(self.start - age)
        ticket = self.add(Ticket, subject=subject, requester_id=customer.id, organisation_id=customer.organisation_id,
                          channel="email", created=at, updated=at)  # fmt: skip
        facts_of = {"author": "customer", "sender": customer.email, "is_public": True, "body": text, "at": at}
        self.add(Comment, ticket_id=ticket.id, **facts_of)
        self.tickets.append(ticket)
        if details is not None:
            self._proofs[customer.id] = details
        if self.mess and self.rng.below(2):
            self._past(customer)
        if self.mess > 1 and self.rng.below(2):
            hunch = self.rng.choice(words.HUNCHES)
            note = {"author": "agent", "sender": "Night shift", "is_public": False, "body": hunch}
            self.add(Comment, ticket_id=ticket.id, at=moment(self.start - 60), **note)
            self.internal(hunch)
        return ticket

    def _past(self, customer: Customer) -> None:
        """A ticket of some weeks ago, long closed, about something else."""
        rng = self.rng
        category = rng.choice(list(words.SMALL_TALK))
        subject, body = words.SMALL_TALK[category]
        days = 30 + rng.below(250)
        ticket = self.old_ticket(customer, days, subject=subject, category=category)
        said: list[tuple[Any, str, str]] = [
            ("customer", customer.email, words.letter(rng, body, name=customer.name, mess=1)),
            ("agent", "Halden", rng.choice(words.ANSWERS)),
        ]
        for author, sender, text in said:
            facts = {"author": author, "sender": sender, "is_public": True, "body": text, "at": ticket.created}
            self.add(Comment, ticket_id=ticket.id, **facts)

    def script(self, cue: str, hours: float, does: str, /, **facts: Any) -> Script:
        """Adds an act from outside, some hours after the cue; "start" is when the job begins."""
        return self.add(Script, cue=cue, delay_seconds=int(hours * HOUR), does=does, facts=facts)

    def details(
        self, *, order: str | None = None, home: Address | None = None, card: Card | None = None
    ) -> dict[str, str]:
        """Returns proofs of a customer's identity, by kind."""
        given = {"number": order, "postcode": home.postcode if home else None, "last4": card.last4 if card else None}
        return {kind: value for kind, value in given.items() if value is not None}

    def known_by(self, customer: Customer, details: dict[str, str]) -> None:
        """Sets the proofs with which the solution verifies a customer."""
        self._proofs[customer.id] = details

    def will_identify(self, ticket: Ticket, details: dict[str, str], *, customer: Customer) -> None:
        """Makes the customer answer the first reply with proofs."""
        text = words.proof(self.rng, details, "en")
        body = words.letter(self.rng, text, name=customer.name, mess=self.mess)
        self.script(f"reply:{ticket.id}", 2 + self.rng.below(28), "answer", ticket=ticket.id, body=body)
        self._proofs[customer.id] = details

    def planned_retry(self, invoice: Invoice, hours: float, *, failure: str | None) -> PaymentRetry:
        """A payment that the system will try again in some hours."""
        retry = self.add(PaymentRetry, invoice_id=invoice.id, due=moment(self.start + hours * HOUR))
        self.script("start", hours, "retry", invoice=invoice.id, failure=failure)
        self.free("payment_retries", retry.id, "status")
        self.paying(invoice)
        return retry

    def paying(self, invoice: Invoice) -> None:
        """Allows the changes that follow when others pay an invoice or try it again."""
        self.free("invoices", invoice.id, "status")
        self.free("subscriptions", invoice.subscription_id or 0, "status")
        self.free("accounts", invoice.account_id, "status")
        self.goals.append(Made(table="payments", fields={"invoice_id": invoice.id}, count=None))

    def pays_link(self, invoice: Invoice, hours: float) -> None:
        """The customer will pay by link, some hours after it was sent."""
        self.script(f"link:{invoice.id}", hours, "pay", invoice=invoice.id)
        self.paying(invoice)

    def reservation(self, invoice: Invoice, card: Card, *, days: float) -> tuple[Payment, str]:
        """A pending payment made so many days ago, and the day on which it lapses."""
        payment = self.payment(invoice, card, days=days, status="pending")
        lapses = seconds(payment.at) + policy.PENDING_DAYS * DAY
        self.script("start", (lapses - self.start) / HOUR, "lapse", payment=payment.id)
        self.free("payments", payment.id, "status")
        return payment, moment(lapses)[:10]

    def free(self, table: str, key: int, *fields: str) -> None:
        """Fields that others change."""
        self._free.append(Free(table=table, key=key, fields=fields))

    def foreign(self, *said: str) -> None:
        """Adds words about other customers, which no reply may hold."""
        self._foreign += said

    def internal(self, *said: str) -> None:
        """Adds internal words, which no reply may hold."""
        self._internal += said

    # -- the solution

    def look(self, ticket: Ticket, account: Account | None = None, invoice: Invoice | None = None) -> None:
        """Reads a ticket, who wrote it, their account, and one of its invoices."""
        self.play("get_ticket", ticket_id=ticket.id)
        self.play("get_customer", customer_id=ticket.requester_id)
        if account is not None:
            self.play("get_account", account_id=account.id)
        if account is not None and invoice is not None:
            self.play("list_invoices", account_id=account.id)
            self.play("get_invoice", invoice_id=invoice.id)

    def verify(self, ticket: Ticket, customer: Customer) -> None:
        """Check who writes, with what they gave."""
        self.play("verify_identity", ticket_id=ticket.id, customer_id=customer.id, **self._proofs[customer.id])

    def ask_who(self, ticket: Ticket, category: str) -> None:
        """Ask for proofs and wait for the answer."""
        text = ("Before we can help, please tell us two of these: the number of one of your orders or invoices, your "
                "postcode, the last four digits of your card.")  # fmt: skip
        self.play("reply", ticket_id=ticket.id, body=text)
        self.play("update_ticket", ticket_id=ticket.id, status="pending", category=category)
        self.play("wait", hours=40)
        self.play("get_ticket", ticket_id=ticket.id)

    def want(self, table: str, key: int, **fields: str | int | None) -> None:
        """Ask for values of a row."""
        self.goals += [Field(table=table, key=key, field=name, value=value) for name, value in fields.items()]

    def want_set(self, table: str, key: int, field: str) -> None:
        """Ask for a field that was empty to be filled."""
        self.goals.append(Filled(table=table, key=key, field=field))

    def made(self, table: str, **fields: str | int | None) -> None:
        """Ask for one new row."""
        self.goals.append(Made(table=table, fields=fields))

    def checked(self, ticket: Ticket, customer: Customer) -> None:
        """Check who writes, which fails, and ask for that."""
        self.verify(ticket, customer)
        fields: dict[str, str | int | None] = {"ticket_id": ticket.id, "customer_id": customer.id, "has_passed": 0}
        self.goals.append(Made(table="verifications", fields=fields, or_more=True))

    def approval(self, ticket: Ticket, cents: int, *, why: str, granted: bool = True) -> int:
        """Puts the customer off, requests a lead's approval and waits; returns the number of the approval."""
        decides = {"ticket": ticket.id, "amount": cents, "granted": int(granted)}
        self.script(f"approval:{ticket.id}:{cents}", 1 + self.rng.below(5) / 2, "approve", **decides)
        self.play("reply", ticket_id=ticket.id, body="Hello, we are looking into this and come back to you today.")
        self.play("request_approval", ticket_id=ticket.id, amount_cents=cents, reason=why)
        self.goals.append(Made(table="approvals", fields={"ticket_id": ticket.id, "amount_cents": cents}, or_more=True))
        self.play("wait", hours=4)
        number = self.next_id(Approval)
        self.play("get_approval", approval_id=number)
        return number

    def say(self, ticket: Ticket, text: str, *facts: str) -> None:
        """Replies to the customer, and asks for the facts in the reply."""
        self.play("reply", ticket_id=ticket.id, body=f"Hello,\n\n{text}\n\nBest regards\nHalden support")
        self.goals.append(Answer(ticket=ticket.id, facts=facts))

    def file(self, ticket: Ticket, **fields: Any) -> None:
        """Set fields of the ticket, and ask for them."""
        if group := fields.pop("group", None):
            self.play("list_groups")
            fields["group_id"] = next(row.id for row in known(Group) if row.name == group)
        self.play("update_ticket", ticket_id=ticket.id, **fields)
        wanted = {"resolution": None} | fields
        self.goals += [
            Field(table="tickets", key=ticket.id, field=name, value=value, is_filing=True)
            for name, value in wanted.items()
        ]

    def send_link(self, ticket: Ticket, invoice: Invoice, why: str) -> None:
        """Sends a payment link, and announces it to the customer."""
        self.play("send_payment_link", invoice_id=invoice.id)
        self.made("payment_links", invoice_id=invoice.id)
        self.tell_amount(ticket, invoice, f"{why} We have sent you a link to pay it.")

    def tell_amount(self, ticket: Ticket, invoice: Invoice, text: str) -> None:
        """Name an invoice and its amount."""
        total = policy.money(invoice.total_cents)
        self.say(
            ticket, f"{text} (Invoice {invoice.number}, {total}.)", word(invoice.number), amount(invoice.total_cents)
        )

    # -- the end of it

    @property
    def prompt(self) -> str:
        numbers = [str(ticket.id) for ticket in self.assigned or self.tickets[:1]]
        what = f"ticket {numbers[0]}" if len(numbers) == 1 else f"the matter of tickets {' and '.join(numbers)}"
        text = self.rng.choice(_PROMPTS).format(what=what)
        return text[0].upper() + text[1:]

    def truth(self) -> Truth:
        return Truth(
            goals=tuple(self.goals),
            asks_only=self.asks_only,
            free=tuple(self._free),
            tickets=tuple(ticket.id for ticket in self.tickets),
            foreign=tuple(self._foreign),
            internal=tuple(self._internal),
        )

    def world(self) -> Support:
        """The start state: a fork of the base with the rows of this task."""
        state = Support(db=base().fork())
        with state.db.transaction():
            state.db.insert(*self.rows)
            for ticket in self.tickets:
                state.clock.now = seconds(ticket.created)
                state.welcome(ticket.id)
        state.clock.now = self.start
        state.wind()
        return state
