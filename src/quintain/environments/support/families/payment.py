"""A payment has failed: an expired card, an empty account, a card reported lost, a retry that is still to come."""

from __future__ import annotations

from quintain.environments.support.case import Case, Words
from quintain.environments.support.draft import named
from quintain.environments.support.goals import day, word
from quintain.environments.support.schema.accounts import Account
from quintain.environments.support.schema.billing import Card, Invoice, Plan
from quintain.environments.support.schema.desk import Ticket
from quintain.environments.support.schema.people import Customer

SAYS: Words = {
    "en": (
        "You wrote that my payment did not go through. My card is fine, I bought groceries with it an hour ago!",
        "I get mails every day that something is unpaid. I did pay. What do you want from me?",
        "my cameras stopped recording, it says 'payment problem'. pls fix",
        "The app shows a red banner about my last invoice. Can you sort this out for me?",
    ),
    "de": ("Angeblich ist meine letzte Rechnung offen, dabei wird doch abgebucht. Bitte klären.",),
    "fr": ("Votre application affiche un problème de paiement, pourtant ma carte marche.",),
}
SUBJECTS = ("Payment failed?", "Your reminder", "Invoice", "unpaid???", "Rechnung", "Banner in the app")


def newer_card(case: Case) -> str:
    """The card on file has expired, and a newer one is there."""
    customer, account, card, ticket, invoice = _unpaid(case, failure="expired_card", expired=True)
    newer = case.card(customer, default=False)
    if case.mess:
        case.card(customer, expires="2024-02", default=False)
    case.look(ticket, account, invoice)
    case.play("list_cards", customer_id=customer.id)
    case.verify(ticket, customer)
    case.play("set_default_card", card_id=newer.id)
    case.want("cards", newer.id, is_default=1)
    case.want("cards", card.id, is_default=0)
    case.play("retry_payment", invoice_id=invoice.id)
    case.made("payments", invoice_id=invoice.id, card_id=newer.id, status="succeeded")
    _paid(case, invoice)
    case.tell_amount(ticket, invoice, f"The old card has expired. We charged the one ending {newer.last4} instead.")
    case.file(ticket, status="solved", category="payment", resolution="fixed")
    return f"{invoice.number} is paid with the newer card."


def no_card(case: Case) -> str:
    """The only card has expired."""
    customer, account, _, ticket, invoice = _unpaid(case, failure="expired_card", expired=True)
    case.asks_only = True
    if case.mess:
        case.card(customer, expires="2024-11", default=False)
    case.look(ticket, account, invoice)
    case.play("list_cards", customer_id=customer.id)
    return _link(case, ticket, invoice, why="Your card has expired.")


def lost_card(case: Case) -> str:
    """The bank says that the card was reported lost."""
    customer, account, _, ticket, invoice = _unpaid(case, failure="card_reported_lost")
    case.asks_only = True
    case.card(customer, default=False)
    case.look(ticket, account, invoice)
    return _link(case, ticket, invoice, why="Your bank does not accept the card any more.")


def later(case: Case) -> str:
    """An empty account, and a retry in some days."""
    _, account, _, ticket, invoice = _unpaid(case, failure="insufficient_funds")
    retry = case.planned_retry(invoice, 80 + case.rng.below(120), failure=None)
    case.asks_only = True
    case.look(ticket, account, invoice)
    case.say(ticket, f"Your bank declined the payment of {invoice.number} for lack of funds. We try again on "
             f"{retry.due[:10]} by ourselves.", day(retry.due), word(invoice.number))  # fmt: skip
    case.file(ticket, status="pending", category="payment")
    return f"The payment of {invoice.number} is tried again on {retry.due[:10]}."


def soon(case: Case) -> str:
    """An empty account and a retry soon, which is waited for; it succeeds or it does not."""
    _, account, _, ticket, invoice = _unpaid(case, failure="insufficient_funds", minutes=_looming(case))
    works = bool(case.rng.below(2))
    hours = 12 + case.rng.below(30)
    retry = case.planned_retry(invoice, hours, failure=None if works else "insufficient_funds")
    case.look(ticket, account, invoice)
    text = f"Hello, your bank declined the payment for lack of funds. We try again on {retry.due[:10]}."
    case.play("reply", ticket_id=ticket.id, body=text)
    case.play("update_ticket", ticket_id=ticket.id, status="hold", category="payment")
    case.play("wait", hours=hours + 0.5)
    case.play("get_invoice", invoice_id=invoice.id)
    if works:
        case.want("invoices", invoice.id, status="paid")
        case.tell_amount(ticket, invoice, "The payment has gone through now.")
        case.file(ticket, status="solved", category="payment", resolution="fixed")
        # What the retry repairs is not the agent's doing: the right answer is.
        case.asks_only = True
        return f"{invoice.number} was paid when the payment was tried again."
    return _link(case, ticket, invoice, why="The second attempt has failed too.")


def two_invoices(case: Case) -> str:
    """Two invoices are open: an expired card, and a newer one that pays for both."""
    customer, account, card, ticket, invoice = _unpaid(case, failure="expired_card", expired=True)
    subscription_id = invoice.subscription_id
    other = next(row for row in case.rows if isinstance(row, Invoice) and row.subscription_id == subscription_id)
    other.status = "open"
    case.payment(other, card, days=45, status="failed", failure="expired_card")
    newer = case.card(customer, default=False)
    case.look(ticket, account, invoice)
    case.play("get_invoice", invoice_id=other.id)
    case.play("list_cards", customer_id=customer.id)
    case.verify(ticket, customer)
    case.play("set_default_card", card_id=newer.id)
    case.want("cards", newer.id, is_default=1)
    case.want("cards", card.id, is_default=0)
    for one in (other, invoice):
        case.play("retry_payment", invoice_id=one.id)
        case.made("payments", invoice_id=one.id, card_id=newer.id, status="succeeded")
        _paid(case, one)
        case.tell_amount(ticket, one, "This one is paid with your newer card.")
    case.file(ticket, status="solved", category="payment", resolution="fixed")
    return f"{other.number} and {invoice.number} are paid with the newer card."


VARIANTS = {
    "easy": (newer_card, no_card),
    "medium": (newer_card, lost_card, later),
    "hard": (soon, two_invoices),
}

# -- what they share


def _unpaid(
    case: Case, *, failure: str, expired: bool = False, minutes: int | None = None
) -> tuple[Customer, Account, Card, Ticket, Invoice]:
    customer = case.customer()
    home, account = case.home(customer), case.account(customer)
    card = case.card(customer, expires=f"2025-0{1 + case.rng.below(2)}" if expired else "2027-10")
    plan = named(Plan, case.rng.choice(("Care Basic", "Care Plus", "Care Family")))
    subscription = case.subscription(account, plan, days=100, status="past_due")
    paid = case.invoice(subscription, customer, days=62)
    case.payment(paid, card, days=61)
    invoice = case.invoice(subscription, customer, days=31, status="open")
    case.payment(invoice, card, days=24, status="failed", failure=failure)
    order = case.order(customer, home, days=200, status="delivered")
    details = case.details(order=order.number, home=home, card=card if case.rng.below(2) else None)
    ticket = case.write(customer, case.rng.choice(SUBJECTS), SAYS, details=details, minutes=minutes)
    return customer, account, card, ticket, invoice


def _looming(case: Case) -> int:
    """Minutes for which the ticket has waited already, so that little is left until its first deadline."""
    return 300 + case.rng.below(90)


def _paid(case: Case, invoice: Invoice) -> None:
    case.want("invoices", invoice.id, status="paid")
    case.free("subscriptions", invoice.subscription_id or 0, "status")


def _link(case: Case, ticket: Ticket, invoice: Invoice, *, why: str) -> str:
    case.send_link(ticket, invoice, why)
    case.file(ticket, status="pending", category="payment")
    return f"{invoice.number} cannot be charged; I sent a link to pay it."
