"""Subscriptions that a customer disputes: the wrong plan, the right one after all, or none any more."""

from __future__ import annotations

from quintain.environments.support import policy
from quintain.environments.support.case import Case, Words
from quintain.environments.support.draft import named
from quintain.environments.support.goals import amount, day, word
from quintain.environments.support.schema.accounts import Account
from quintain.environments.support.schema.billing import Card, Invoice, Payment, Plan, Subscription
from quintain.environments.support.schema.desk import Ticket
from quintain.environments.support.schema.people import Customer

WRONG: Words = {
    "en": (
        "I ordered {right} but the app says I have something else, and the bill is higher too. Please put it right.",
        "Why am I on another plan than I chose? At the checkout I clicked {right}, I am 100% sure.",
        "wrong plan!! i wanted {right}",
        "My invoice is for a plan that I never ordered. It should be {right}.",
    ),
    "de": ("Ich habe {right} bestellt, abgerechnet wird aber etwas anderes. Bitte korrigieren.",),
}
CANCEL: Words = {
    "en": (
        "Please cancel my subscription. And I want the last payment back, I am within my rights!",
        "I don't need Halden Care any more. Cancel it as soon as possible and give me my money back.",
    ),
    "de": ("Hiermit kündige ich mein Abo und bitte um Erstattung der letzten Zahlung.",),
}
SUBJECTS = ("Wrong plan", "my subscription", "Plan", "Abo", "not what I ordered", "Care")
CANCELS = ("Cancellation", "cancel", "Kündigung", "End of my subscription")


def wrong_plan(case: Case) -> str:
    """Another plan than was ordered, for one invoice."""
    return _corrected(case, months=1)


def long_wrong(case: Case) -> str:
    """The same for months: only the latest three invoices are made good, and a lead must agree when it is dear."""
    return _corrected(case, months=4 + case.rng.below(3))


def dear_wrong(case: Case) -> str:
    """A business on the wrong plan: what is made good is beyond the limit."""
    return _corrected(case, months=2 + case.rng.below(3), plans=("Care Site", "Care Business"))


def right_plan(case: Case) -> str:
    """The plan is the one that was ordered; the customer errs."""
    customer, account, _, subscription = _subscribed(case, "Care Family", days=70)
    case.payment(case.invoice(subscription, customer, days=9), None, days=8)
    plan = named(Plan, "Care Family")
    ticket = _write(case, customer, SUBJECTS, says=WRONG, facts={"right": "Care Plus"})
    case.asks_only = True
    _read(case, ticket, account, subscription=subscription)
    case.say(ticket, f"What was ordered at the checkout is {plan.name}, {policy.money(plan.price_cents)} net a month. "
             "So nothing is wrong with your invoice.", word(plan.name), amount(plan.price_cents))  # fmt: skip
    case.file(ticket, status="solved", category="plan", resolution="declined")
    return f"The customer has ordered {plan.name}, so I declined."


def withdrawal(case: Case) -> str:
    """A cancellation within two weeks: all is paid back."""
    customer, account, card, subscription = _subscribed(case, "Care Plus", days=4 + case.rng.below(9))
    invoice = case.invoice(subscription, customer, days=3)
    payment = case.payment(invoice, card, days=3)
    ticket = _write(case, customer, CANCELS, says=CANCEL)
    _read(case, ticket, account, subscription=subscription)
    case.play("get_invoice", invoice_id=invoice.id)
    case.verify(ticket, customer)
    case.play("cancel_subscription", subscription_id=subscription.id, when="now")
    case.want("subscriptions", subscription.id, status="cancelled")
    case.want_set("subscriptions", subscription.id, "ends")
    _refund(case, payment)
    case.say(ticket, f"Your subscription has ended, and {policy.money(payment.amount_cents)} are on their way back.",
             amount(payment.amount_cents))  # fmt: skip
    case.file(ticket, status="solved", category="plan", resolution="refunded")
    return f"I cancelled at once and refunded {policy.money(payment.amount_cents)}."


def notice(case: Case) -> str:
    """A cancellation later than that: it ends with the period, and nothing is paid back."""
    customer, account, card, subscription = _subscribed(case, "Care Plus", days=80 + case.rng.below(200))
    case.payment(case.invoice(subscription, customer, days=6), card, days=5)
    ticket = _write(case, customer, CANCELS, says=CANCEL)
    _read(case, ticket, account, subscription=subscription)
    case.verify(ticket, customer)
    case.play("cancel_subscription", subscription_id=subscription.id, when="period_end")
    case.want("subscriptions", subscription.id, ends=subscription.renews, status="active")
    case.say(ticket, f"Your subscription ends on {subscription.renews}. What is paid until then is not paid back, "
             f"because the {policy.WITHDRAWAL_DAYS} days are over.", day(subscription.renews))  # fmt: skip
    case.file(ticket, status="solved", category="plan", resolution="fixed")
    return f"The subscription ends on {subscription.renews}; nothing is paid back."


def slow_notice(case: Case) -> str:
    """The customer cancels without proofs, and claims a date that contradicts the records."""
    customer, account, card, subscription = _subscribed(case, "Care Family", days=16 + case.rng.below(9))
    case.payment(case.invoice(subscription, customer, days=10), card, days=9)
    claims: Words = {
        "en": ("I signed up only last week, so by law I can still withdraw. Cancel it, money back, thanks.",)
    }
    home_details = _details(case, customer)
    ticket = case.write(customer, case.rng.choice(CANCELS), claims)
    case.will_identify(ticket, home_details, customer=customer)
    _read(case, ticket, account, subscription=subscription)
    case.ask_who(ticket, "plan")
    case.verify(ticket, customer)
    case.play("cancel_subscription", subscription_id=subscription.id, when="period_end")
    case.want("subscriptions", subscription.id, ends=subscription.renews, status="active")
    case.say(ticket, f"It began on {subscription.started[:10]}, so it ends with the period, on {subscription.renews}; "
             "nothing is paid back.", day(subscription.renews))  # fmt: skip
    case.file(ticket, status="solved", category="plan", resolution="fixed")
    return f"The subscription ends on {subscription.renews}; the time for a withdrawal is over."


VARIANTS = {
    "easy": (wrong_plan, notice),
    "medium": (wrong_plan, right_plan, withdrawal, notice),
    "hard": (dear_wrong, slow_notice, long_wrong),
}

# -- what they share


def _subscribed(case: Case, plan: str, *, days: int, ordered: str = "") -> tuple[Customer, Account, Card, Subscription]:
    organisation = case.organisation() if plan == "Care Site" else None
    role = "admin" if organisation else None
    customer = case.customer(organisation=organisation, organisation_role=role)
    account, card = case.account(customer), case.card(customer)
    fields = {"ordered_plan_id": named(Plan, ordered).id} if ordered else {}
    return customer, account, card, case.subscription(account, named(Plan, plan), days=days, **fields)


def _details(case: Case, customer: Customer) -> dict[str, str]:
    home = case.home(customer)
    order = case.order(customer, home, days=100, status="delivered")
    return case.details(order=order.number, home=home)


def _write(
    case: Case, customer: Customer, subjects: tuple[str, ...], *, says: Words, facts: dict[str, str] | None = None
) -> Ticket:
    details = _details(case, customer)
    return case.write(customer, case.rng.choice(subjects), says, details=details, facts=facts)


def _read(case: Case, ticket: Ticket, account: Account, *, subscription: Subscription) -> None:
    case.look(ticket, account)
    case.play("get_subscription", subscription_id=subscription.id)
    case.play("list_invoices", account_id=account.id)


def _refund(case: Case, payment: Payment) -> None:
    case.play("refund_payment", payment_id=payment.id, amount_cents=payment.amount_cents, reason="withdrawal")
    case.made("refunds", payment_id=payment.id, amount_cents=payment.amount_cents)
    case.want("payments", payment.id, status="refunded")


def _corrected(case: Case, *, months: int, plans: tuple[str, str] = ("Care Family", "Care Basic")) -> str:
    wrong, right = (named(Plan, name) for name in plans)
    customer, account, card, subscription = _subscribed(case, wrong.name, days=30 * months - 10, ordered=right.name)
    invoices: list[Invoice] = []
    for back in range(months):
        invoice = case.invoice(subscription, customer, days=5 + 30 * back)
        case.payment(invoice, card, days=4 + 30 * back)
        invoices.append(invoice)
    if case.mess:  # an invoice that was voided does not count
        case.invoice(subscription, customer, days=6, status="void")
    latest = invoices[: policy.BACK_INVOICES]
    net = wrong.price_cents - right.price_cents
    cents = sum(net + policy.percent_of(net, invoice.tax_percent) for invoice in latest)
    ticket = _write(case, customer, SUBJECTS, says=WRONG, facts={"right": right.name})
    _read(case, ticket, account, subscription=subscription)
    case.verify(ticket, customer)
    case.play("change_plan", subscription_id=subscription.id, plan_id=right.id)
    case.want("subscriptions", subscription.id, plan_id=right.id)
    credit(case, ticket, account, cents=cents)
    case.say(ticket, f"You are on {right.name} now, as you have ordered. For the invoices so far we credit you "
             f"{policy.money(cents)}.", amount(cents), word(right.name))  # fmt: skip
    case.file(ticket, status="solved", category="plan", resolution="credited")
    return f"The plan is {right.name} now, and {policy.money(cents)} are credited."


def credit(case: Case, ticket: Ticket, account: Account, *, cents: int) -> None:
    """Give a credit and ask for it; beyond the limit a lead has to agree first, and does."""
    given = {"account_id": account.id, "amount_cents": cents, "reason": f"see ticket {ticket.id}"}
    if cents > policy.CREDIT_LIMIT_CENTS:
        given["approval_id"] = case.approval(ticket, cents, why="our mistake, see the ticket")
    case.play("grant_credit", **given)
    case.made("credits", account_id=account.id, amount_cents=cents)
