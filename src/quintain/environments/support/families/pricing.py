"""An invoice with the wrong amount: a coupon that is not on it, the wrong tax, both, or neither."""

from __future__ import annotations

from datetime import date, timedelta

from quintain.environments.support import policy
from quintain.environments.support.case import Case, Words
from quintain.environments.support.draft import named
from quintain.environments.support.goals import amount, day, word
from quintain.environments.support.schema.accounts import Account
from quintain.environments.support.schema.billing import Coupon, Invoice, Plan
from quintain.environments.support.schema.desk import Ticket
from quintain.environments.support.schema.people import Customer
from quintain.environments.support.seed.money import invoice_facts

COUPON: Words = {
    "en": (
        "I had the code {code} but my invoice {number} is for the full amount. Please correct it.",
        "Coupon {code} did not work on {number}, I only saw that now. Can you take it off?",
        "{number}: where is my discount? The code was {code}",
    ),
    "de": ("Auf der Rechnung {number} fehlt mein Gutschein {code}. Bitte korrigieren.",),
}
TAX: Words = {
    "en": (
        "The tax on invoice {number} looks wrong to me, have a look please. Our accountant complains.",
        "{number} has {percent}% tax?! That is not right for where we are.",
    ),
}
BOTH: Words = {
    "en": ("Invoice {number} is far too high. I think it is the tax, and my code {code} is missing too.",),
}
SUBJECTS = ("Invoice", "my discount", "Wrong amount", "Rechnung", "coupon???", "too expensive")


def missing(case: Case) -> str:
    """A valid coupon that is not on the invoice."""
    customer, account, invoice = _invoiced(case)
    coupon = case.coupon(10 + 5 * case.rng.below(4), begins=40, ends=10)
    ticket = _ticket(case, customer, COUPON, about=(invoice, coupon))
    _read(case, ticket, account, about=(invoice, coupon))
    return _apply(case, ticket, invoice, coupon=coupon)


def in_grace(case: Case) -> str:
    """Expired when the invoice was issued, but within the days of grace."""
    customer, account, invoice = _invoiced(case)
    ended = date.fromisoformat(invoice.issued) - timedelta(days=1 + case.rng.below(policy.GRACE_DAYS))
    coupon = case.coupon(20, begins=60, ends=(ended - case.date()).days)
    ticket = _ticket(case, customer, COUPON, about=(invoice, coupon))
    _read(case, ticket, account, about=(invoice, coupon))
    return _apply(case, ticket, invoice, coupon=coupon)


def expired(case: Case) -> str:
    """Expired for longer than that."""
    customer, account, invoice = _invoiced(case)
    ended = date.fromisoformat(invoice.issued) - timedelta(days=8 + case.rng.below(20))
    coupon = case.coupon(20, begins=60, ends=(ended - case.date()).days)
    ticket = _ticket(case, customer, COUPON, about=(invoice, coupon))
    return _declined(
        case,
        ticket,
        account,
        about=(invoice, coupon),
        why=(f"was valid until {coupon.valid_until}", day(coupon.valid_until)),
    )


def other_plan(case: Case) -> str:
    """For another plan, or for larger sums."""
    customer, account, invoice = _invoiced(case)
    if case.rng.below(2):
        plan = named(Plan, "Care Business")
        coupon = case.coupon(25, begins=40, ends=20, plan_id=plan.id)
        why = (f"is for {plan.name} only", word(plan.name))
    else:
        coupon = case.coupon(25, begins=40, ends=20, minimum_cents=2500)
        why = ("needs an invoice of at least EUR 25.00 net", amount(2500))
    ticket = _ticket(case, customer, COUPON, about=(invoice, coupon))
    return _declined(case, ticket, account, about=(invoice, coupon), why=why)


def wrong_tax(case: Case) -> str:
    """The tax of another country, or a business that pays none."""
    customer, account, invoice, percent = _mistaxed(case)
    ticket = _ticket(case, customer, TAX, about=(invoice, None))
    _read(case, ticket, account, about=(invoice, None))
    case.play("get_tax_status", account_id=account.id)
    case.play("list_tax_rates", country=customer.country)
    back, _, _ = _reissue(case, account, invoice, percent=percent)
    _tell(case, ticket, back, text=f"The tax of {invoice.number} was wrong. We have issued it anew")
    return f"{invoice.number} is reissued with {percent} percent; {policy.money(back)} are credited."


def both(case: Case) -> str:
    """Wrong tax, and a coupon is missing: first the one, then the other on the new invoice."""
    customer, account, invoice, percent = _mistaxed(case)
    coupon = case.coupon(15, begins=40, ends=12, uses_left=5)
    ticket = _ticket(case, customer, BOTH, about=(invoice, coupon))
    _read(case, ticket, account, about=(invoice, coupon))
    case.play("get_tax_status", account_id=account.id)
    case.play("list_tax_rates", country=customer.country)
    back, total, new_id = _reissue(case, account, invoice, percent=percent)
    saved = policy.percent_of(total, coupon.percent)
    case.play("apply_coupon", invoice_id=new_id, code=coupon.code)
    case.want("coupons", coupon.id, uses_left=4)
    _credited(case, account, coupon, saved=saved)
    case.want("invoices", new_id, coupon_id=coupon.id)
    _tell(case, ticket, back + saved, text=f"Both were wrong on {invoice.number}, the tax and the missing code")
    return f"{invoice.number} is reissued and has its coupon; {policy.money(back + saved)} are credited."


def used(case: Case) -> str:
    """The customer names two codes: one is used up, the other counts for one of two invoices."""
    customer, account, invoice = _invoiced(case)
    subscription = case.subscription_of(account)
    older = case.invoice(subscription, customer, days=45)
    case.payment(older, None, days=44)
    spent = case.coupon(50, begins=90, ends=30, uses_left=0)
    began = (case.date() - date.fromisoformat(invoice.issued)).days + 5
    coupon = case.coupon(20, begins=began, ends=20)
    says: Words = {
        "en": ("My codes are {spent} and {code}, for {older} and {number}. Both on both, as I was promised.",)
    }
    facts = {"spent": spent.code, "code": coupon.code, "older": older.number, "number": invoice.number}
    ticket = case.write(customer, case.rng.choice(SUBJECTS), says, facts=facts)
    _read(case, ticket, account, about=(invoice, coupon))
    case.play("get_coupon", code=spent.code)
    case.play("get_invoice", invoice_id=older.id)
    return _apply(case, ticket, invoice, coupon=coupon)


VARIANTS = {
    "easy": (missing, wrong_tax),
    "medium": (in_grace, expired, other_plan, wrong_tax),
    "hard": (both, used),
}

# -- what they share


def _invoiced(case: Case) -> tuple[Customer, Account, Invoice]:
    customer = case.customer()
    account, card = case.account(customer), case.card(customer)
    case.home(customer)
    subscription = case.subscription(account, named(Plan, case.rng.choice(("Care Plus", "Care Family"))), days=70)
    invoice = case.invoice(subscription, customer, days=5 + case.rng.below(4))
    case.payment(invoice, card, days=4)
    if case.mess:
        case.payment(case.invoice(subscription, customer, days=66), card, days=65)
    return customer, account, invoice


def _mistaxed(case: Case) -> tuple[Customer, Account, Invoice, int]:
    """An invoice with too much tax, and the right percentage."""
    if case.rng.below(2):
        organisation = case.organisation(country="NL")
        customer = case.customer(organisation=organisation, organisation_role="admin")
        wrong, right, plan = 21, 0, "Care Business"
    else:
        customer = case.customer(country="DE")
        wrong, right, plan = case.rng.choice((21, 22, 25)), 19, "Care Family"
    account, card = case.account(customer), case.card(customer)
    case.home(customer)
    subscription = case.subscription(account, named(Plan, plan), days=70)
    invoice = case.invoice(subscription, customer, days=5, tax_percent=wrong)
    case.payment(invoice, card, days=4)
    return customer, account, invoice, right


def _ticket(case: Case, customer: Customer, says: Words, *, about: tuple[Invoice, Coupon | None]) -> Ticket:
    invoice, coupon = about
    facts = {"number": invoice.number, "percent": str(invoice.tax_percent), "code": coupon.code if coupon else ""}
    return case.write(customer, case.rng.choice(SUBJECTS), says, facts=facts)


def _read(case: Case, ticket: Ticket, account: Account, *, about: tuple[Invoice, Coupon | None]) -> None:
    invoice, coupon = about
    case.look(ticket, account)
    case.play("find_invoice", number=invoice.number)
    case.play("get_invoice", invoice_id=invoice.id)
    if coupon is not None:
        case.play("get_coupon", code=coupon.code)


def _apply(case: Case, ticket: Ticket, invoice: Invoice, *, coupon: Coupon) -> str:
    account_id = invoice.account_id
    saved = policy.percent_of(invoice.total_cents, coupon.percent)
    case.play("apply_coupon", invoice_id=invoice.id, code=coupon.code)
    case.want("invoices", invoice.id, coupon_id=coupon.id)
    case.made("credits", account_id=account_id, amount_cents=saved, origin="coupon")
    case.made("coupon_uses", coupon_id=coupon.id, account_id=account_id)
    _tell(case, ticket, saved, text=f"{coupon.code} is on {invoice.number} now")
    return f"{coupon.code} is on {invoice.number}; {policy.money(saved)} are credited."


def _credited(case: Case, account: Account, coupon: Coupon, *, saved: int) -> None:
    case.made("credits", account_id=account.id, amount_cents=saved, origin="coupon")
    case.made("coupon_uses", coupon_id=coupon.id, account_id=account.id)


def _reissue(case: Case, account: Account, invoice: Invoice, *, percent: int) -> tuple[int, int, int]:
    """Issue an invoice anew; what is credited, the new total, and the number of the new row."""
    facts = invoice_facts(invoice.net_cents, percent)
    back = invoice.total_cents - facts["total_cents"]
    case.play("reissue_invoice", invoice_id=invoice.id, tax_percent=percent)
    case.want("invoices", invoice.id, status="void")
    case.made("invoices", account_id=account.id, number=f"{invoice.number}-K", **facts)
    case.made("invoice_lines", amount_cents=invoice.net_cents)
    case.made("credits", account_id=account.id, amount_cents=back, origin="tax")
    new_id = case.next_id(Invoice)
    for payment in case.payments_of(invoice):
        case.want("payments", payment.id, invoice_id=new_id)
    return back, facts["total_cents"], new_id


def _tell(case: Case, ticket: Ticket, cents: int, *, text: str) -> None:
    case.say(ticket, f"{text}. We have credited you {policy.money(cents)}.", amount(cents))
    case.file(ticket, status="solved", category="pricing", resolution="credited")


def _declined(
    case: Case, ticket: Ticket, account: Account, *, about: tuple[Invoice, Coupon], why: tuple[str, str]
) -> str:
    invoice, coupon = about
    case.asks_only = True
    _read(case, ticket, account, about=about)
    case.say(ticket, f"{coupon.code} {why[0]}, so it does not count for {invoice.number}.", why[1], word(coupon.code))
    case.file(ticket, status="solved", category="pricing", resolution="declined")
    return f"{coupon.code} {why[0]}, so I declined."
