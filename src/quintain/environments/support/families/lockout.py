"""Lockouts: failed logins, an unpaid invoice, a takeover, or a stranger who wants access."""

from __future__ import annotations

from quintain.environments.support.case import Case, Words
from quintain.environments.support.draft import named
from quintain.environments.support.goals import UNSURE, word
from quintain.environments.support.schema.accounts import Account, Lock, Session
from quintain.environments.support.schema.billing import Invoice, Plan
from quintain.environments.support.schema.desk import Ticket
from quintain.environments.support.schema.people import Customer
from quintain.environments.support.seed import pools

SAYS: Words = {
    "en": (
        "I can't get into my account any more. The app says it is locked. I only mistyped my password a few times.",
        "Your website does not let me in, it just says 'account locked'. What is going on?",
        "Logging in does not work since this morning, neither on the phone nor on the laptop. Please unlock me.",
        "locked out again. I need to see my cameras TODAY.",
    ),
    "de": (
        "Ich komme nicht mehr in mein Konto, angeblich ist es gesperrt. Bitte entsperren.",
        "Seit heute früh lässt mich die App nicht mehr rein, das Konto sei gesperrt.",
    ),
    "fr": ("Je ne peux plus me connecter, l'application dit que mon compte est bloqué.",),
    "es": ("No puedo entrar en mi cuenta, dice que está bloqueada.",),
}
STRANGE: Words = {
    "en": (
        "I am locked out, and I got mails about logins that were not me, I think. Or maybe my son. Please let me in.",
        "my account is locked but yesterday it still worked and the lights went on by themselves?! Unlock it please",
    ),
    "de": ("Mein Konto ist gesperrt, und gestern ging nachts die Kamera an. Bitte entsperren Sie es.",),
}
SUBJECTS = ("Cannot log in", "Account locked!!", "login", "Konto", "HELP", "Access to my account")


def failed_logins(case: Case) -> str:
    """Only mistyped passwords; the proofs stand in the mail."""
    customer, account, ticket = _locked(case, proofs=True)
    if case.mess:
        _stale(case, customer)
    case.look(ticket, account)
    case.play("list_logins", account_id=account.id)
    return _unlock(case, ticket, customer, account=account)


def stale_record(case: Case) -> str:
    """The ticket hangs on an old record of the same person, which has no account; a namesake has one."""
    customer, home, account, card = case.known_customer()
    _failures(case, customer, account)
    old = case.customer(name=customer.name, email=customer.email, country=customer.country, notes="import 2021")
    other = case.namesake(customer)
    _failures(case, other, case.account(other))
    order = case.order(customer, home, days=60, status="delivered")
    details = case.details(order=order.number, home=home, card=card)
    ticket = case.write(old, case.rng.choice(SUBJECTS), SAYS, details=details)
    case.known_by(customer, details)
    case.look(ticket)
    case.play("find_customers", query=customer.email)
    case.play("get_customer", customer_id=customer.id)
    case.play("get_account", account_id=account.id)
    case.play("list_logins", account_id=account.id)
    return _unlock(case, ticket, customer, account=account)


def without_proofs(case: Case) -> str:
    """The same, but they do not say who they are until they are asked."""
    customer, account, ticket = _locked(case, proofs=False)
    case.look(ticket, account)
    case.play("list_logins", account_id=account.id)
    case.ask_who(ticket, "login")
    return _unlock(case, ticket, customer, account=account)


def unpaid(case: Case) -> str:
    """The lock is for an invoice."""
    customer, home, account, card = case.known_customer()
    invoice = _owed(case, customer, account)
    case.lock(account, "unpaid", 2)
    order = case.order(customer, home, days=40, status="delivered")
    ticket = case.write(customer, case.rng.choice(SUBJECTS), SAYS, details=case.details(order=order.number, card=card))
    case.asks_only = True
    case.look(ticket, account, invoice)
    case.send_link(ticket, invoice, "Your account is locked because an invoice is unpaid; paying it lifts the lock.")
    case.file(ticket, status="pending", category="payment")
    return f"The account is locked for {invoice.number}; I sent a link to pay it."


def takeover(case: Case) -> str:
    """A stranger has guessed the password."""
    customer, home, account, card = case.known_customer()
    country = case.rng.choice(list(pools.ABROAD))
    for n in range(4):
        case.login(account, 1.5 - n / 100, "wrong_password", country=country)
    case.login(account, 1.4, "ok", country=country)
    case.session(account, country, 1.4)
    case.session(account, customer.country, 20)
    for n in range(3):
        case.login(account, 0.1 - n / 100, "wrong_password", country=customer.country)
    case.lock(account, "failed_logins", 0.05)
    order = case.order(customer, home, days=70, status="delivered")
    ticket = case.write(
        customer, case.rng.choice(SUBJECTS), STRANGE, details=case.details(order=order.number, home=home, card=card)
    )
    case.look(ticket, account)
    case.play("list_logins", account_id=account.id)
    case.verify(ticket, customer)
    case.play("lock_account", account_id=account.id, reason="takeover")
    case.made("locks", account_id=account.id, reason="takeover", lifted=None)
    case.play("end_sessions", account_id=account.id)
    for row in case.rows:
        if isinstance(row, Session):
            case.want_set("sessions", row.id, "ended")
    _reset(case, account)
    names = pools.ABROAD[country]
    name, fact = names[0], "|".join(map(word, names))
    case.say(ticket, f"Somebody logged in to your account from {name}. We keep it locked until our security team has "
             "looked at it, have ended all sessions, and sent you a link for a new password.", fact)  # fmt: skip
    case.file(ticket, status="open", category="security", priority="urgent", group="Security")
    return f"The account was taken over from {name}; it stays locked, and Security has the ticket."


def impostor(case: Case) -> str:
    """A stranger with one right detail and one wrong."""
    customer, home, account, card = case.known_customer()
    order = case.order(customer, home, days=50, status="delivered")
    for n in range(5):
        case.login(account, 0.2 - n / 100, "wrong_password", country=case.rng.choice(list(pools.ABROAD)))
    case.lock(account, "failed_logins", 0.1)
    ticket = case.write(customer, "URGENT account locked", SAYS)
    wrong = f"{(int(card.last4) + 1 + case.rng.below(9998)) % 10000:04}"
    case.will_identify(ticket, case.details(order=order.number) | {"last4": wrong}, customer=customer)
    case.asks_only = True
    case.foreign(customer.email, home.street, card.last4)
    case.look(ticket, account)
    case.play("list_logins", account_id=account.id)
    case.ask_who(ticket, "login")
    case.checked(ticket, customer)
    case.say(ticket, "We could not verify that this account is yours, so we cannot change anything on it. "
             "Our security team has your request.", UNSURE)  # fmt: skip
    case.file(ticket, status="open", category="security", group="Security")
    return "The writer could not prove who they are; nothing was changed, and Security has the ticket."


def both(case: Case) -> str:
    """Locked twice: the password, and an invoice that is paid only after a link was sent."""
    customer, home, account, card = case.known_customer()
    invoice = _owed(case, customer, account)
    unpaid_lock = case.lock(account, "unpaid", 2)
    lock = _failures(case, customer, account)
    order = case.order(customer, home, days=40, status="delivered")
    details = case.details(order=order.number, home=home, card=card)
    ticket = case.write(customer, case.rng.choice(SUBJECTS), SAYS, details=details)
    case.pays_link(invoice, 5 + case.rng.below(30))
    case.free("locks", unpaid_lock.id, "lifted")
    case.look(ticket, account)
    case.play("list_logins", account_id=account.id)
    case.play("list_invoices", account_id=account.id)
    case.send_link(ticket, invoice, "Your account is locked because an invoice is unpaid.")
    case.play("update_ticket", ticket_id=ticket.id, status="pending", category="login")
    case.play("wait", hours=40)
    case.play("get_invoice", invoice_id=invoice.id)
    case.want("invoices", invoice.id, status="paid")
    return _unlock(case, ticket, customer, account=account, lock=lock)


def colleague(case: Case) -> str:
    """A member of a business asks for a colleague's account; or its admin, who may."""
    organisation = case.organisation()
    may = bool(case.rng.below(2))
    owner = case.customer(organisation=organisation, organisation_role="member")
    account = case.account(owner)
    lock = _failures(case, owner, account)
    writer = case.customer(organisation=organisation, organisation_role="admin" if may else "member")
    home, card = case.home(writer), case.card(writer)
    order = case.order(writer, home, days=90, status="delivered")
    says: Words = {
        "en": ("My colleague {name} is locked out and on a plane. I am the admin, please unlock that account.",)
    }
    details = case.details(order=order.number, home=home, card=card)
    ticket = case.write(writer, f"Account of {owner.name}", says, details=details, facts={"name": owner.name})
    case.look(ticket)
    case.play("get_organisation", organisation_id=organisation.id)
    case.play("find_customers", query=owner.name)
    case.play("get_customer", customer_id=owner.id)
    case.play("get_account", account_id=account.id)
    case.play("list_logins", account_id=account.id)
    if may:
        return _unlock(case, ticket, writer, account=account, lock=lock)
    case.asks_only = True
    case.foreign(owner.email)
    case.say(ticket, "Only an admin of your organisation may ask for somebody else's account.", r"\badmin")
    case.file(ticket, status="solved", category="login", resolution="declined")
    return "The writer is no admin, so I declined."


VARIANTS = {
    "easy": (failed_logins,),
    "medium": (failed_logins, stale_record, without_proofs, unpaid, takeover),
    "hard": (both, impostor, colleague, takeover),
}

# -- what they share


def _locked(case: Case, *, proofs: bool) -> tuple[Customer, Account, Ticket]:
    customer, home, account, card = case.known_customer()
    _failures(case, customer, account)
    order = case.order(customer, home, days=60, status="delivered")
    details = case.details(order=order.number, home=home, card=card if case.rng.below(2) else None)
    ticket = case.write(customer, case.rng.choice(SUBJECTS), SAYS, details=details if proofs else None)
    if not proofs:
        case.will_identify(ticket, details, customer=customer)
    return customer, account, ticket


def _failures(case: Case, customer: Customer, account: Account) -> Lock:
    case.login(account, 12, "ok", country=customer.country)
    for n in range(5):
        case.login(account, 0.3 - n / 100, "wrong_password", country=customer.country)
    return case.lock(account, "failed_logins", 0.2)


def _stale(case: Case, customer: Customer) -> None:
    """Adds an imported duplicate of the customer, and a namesake."""
    case.customer(name=customer.name, email=customer.email, country=customer.country, notes="import 2021")
    other = case.namesake(customer)
    case.lock(case.account(other), "takeover", 30)


def _owed(case: Case, customer: Customer, account: Account) -> Invoice:
    subscription = case.subscription(account, named(Plan, "Care Plus"), days=100, status="past_due")
    case.invoice(subscription, customer, days=70)
    invoice = case.invoice(subscription, customer, days=35, status="open")
    case.payment(invoice, None, days=30, status="failed", failure="insufficient_funds")
    return invoice


def _unlock(case: Case, ticket: Ticket, customer: Customer, *, account: Account, lock: Lock | None = None) -> str:
    """Plays the rules for failed logins."""
    case.verify(ticket, customer)
    case.play("unlock_account", account_id=account.id)
    lock = lock or next(row for row in case.rows if isinstance(row, Lock) and row.account_id == account.id)
    case.want_set("locks", lock.id, "lifted")
    case.want("accounts", account.id, status="active")
    _reset(case, account)
    case.say(ticket, "The account is unlocked. We have sent a link for a new password, which works for 24 hours.",
             r"\b(?:24|twenty[- ]four)[\s-]*(?:h|std|stunden)")  # fmt: skip
    case.file(ticket, status="solved", category="login", resolution="fixed")
    return f"I unlocked account {account.id} and sent a password reset."


def _reset(case: Case, account: Account) -> None:
    case.play("send_password_reset", account_id=account.id)
    case.want_set("accounts", account.id, "password_reset_sent")
