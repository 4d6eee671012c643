"""Faults: in a whole region, of one device, or over already."""

from __future__ import annotations

from quintain.environments.support import policy
from quintain.environments.support.case import Case, Words
from quintain.environments.support.desk import DAY, HOUR, moment
from quintain.environments.support.draft import named
from quintain.environments.support.goals import amount, number, word
from quintain.environments.support.schema.accounts import Account, Component, Region
from quintain.environments.support.schema.billing import Plan
from quintain.environments.support.schema.desk import Incident, Ticket
from quintain.environments.support.schema.people import Customer, Organisation
from quintain.environments.support.seed import pools

SAYS: dict[Component, Words] = {
    "video": {
        "en": (
            "No live picture on any of my cameras since a few hours, only a spinning wheel. Is it you?",
            "video is dead. all cams. internet is fine, netflix works",
        ),
        "de": ("Seit heute kein Livebild mehr, auf keiner Kamera.",),
    },
    "alerts": {
        "en": (
            "I opened the door and the alarm came 40 minutes later!! What is that good for?",
            "Notifications arrive hours late or not at all since this morning.",
        ),
    },
    "sync": {
        "en": (
            "Settings that I change on the phone never arrive at the hub. Recordings are missing too.",
            "nothing syncs. tried everything",
        ),
        "fr": ("Les enregistrements ne se synchronisent plus depuis ce matin.",),
    },
}
OFFLINE: Words = {
    "en": (
        "My {model} has been offline for days. Everybody online says you have an outage, so fix it!",
        "The {model} does not connect any more. The status page shows something red, is that it?",
    ),
}
AFTERWARDS: Words = {
    "en": (
        "On the day of your outage ({what}) we could not use anything. We expect compensation.",
        "Your service was down ({what}). What do we get for it?",
    ),
}
SUBJECTS = ("Not working", "Is it down?", "offline", "Störung", "cameras", "again...")
_INTERNAL = (
    "Rollback of build 7781 blocked by Marco, do not tell anyone outside",
    "Storage cluster c4 lost quorum; postmortem blames vendor Tandrel",
    "Certificate of the broker expired, embarrassing",
)


def going_on(case: Case) -> str:
    """An incident that fits; another one, elsewhere, does not."""
    component = _component(case)
    incident = _incident(case, component, "eu-west", hours=3)
    if case.mess:
        _incident(case, component, "us-east", hours=5)
    customer, account = _user(case, "eu-west")
    ticket = case.write(customer, case.rng.choice(SUBJECTS), SAYS[component])
    case.internal(incident.internal_text)
    _read(case, ticket, account, incident=incident)
    _link(case, ticket, incident)
    _tell_of(case, ticket, incident)
    case.file(ticket, status="hold", category="outage")
    return f"The ticket is linked to INC-{incident.id} and waits for it."


def one_device(case: Case) -> str:
    """An incident in another region, and one device with old firmware."""
    incident = _incident(case, "video", "us-east", hours=3)
    customer, account = _user(case, case.rng.choice(("eu-west", "eu-north")))
    device = case.device(account, firmware="4.0.1", is_online=False, last_seen=case.ago(3))
    case.device(account, last_seen=case.ago(0))
    ticket = case.write(customer, case.rng.choice(SUBJECTS), OFFLINE, facts={"model": device.model})
    case.internal(incident.internal_text)
    _read(case, ticket, account, incident=incident)
    case.play("list_devices", account_id=account.id)
    case.play("update_firmware", device_id=device.id)
    case.want("devices", device.id, firmware=policy.FIRMWARE, is_online=1)
    case.want_set("devices", device.id, "last_seen")
    case.say(ticket, f"Your {device.model} had old firmware. It runs {policy.FIRMWARE} now and is online again.",
             word(policy.FIRMWARE))  # fmt: skip
    case.file(ticket, status="solved", category="outage", resolution="fixed")
    return f"The device runs {policy.FIRMWARE} and is online."


def over(case: Case) -> str:
    """A long incident that is over, and a business: there is a credit."""
    organisation = case.organisation()
    return _afterwards(case, organisation, hours=policy.OUTAGE_HOURS + 1 + case.rng.below(9))


def over_short(case: Case) -> str:
    """Too short, or not a business."""
    if case.rng.below(2):
        return _afterwards(case, case.organisation(), hours=1 + case.rng.below(2))
    return _afterwards(case, None, hours=9)


def whole_firm(case: Case) -> str:
    """Three tickets of one firm about one incident, two of them by one person; it ends while they wait."""
    organisation = case.organisation()
    plan = named(Plan, "Care Business")
    incident = _incident(case, "alerts", "eu-north", hours=2)
    ends = 7 + case.rng.below(12)
    case.script("start", ends, "resolve", incident=incident.id)
    case.free("incidents", incident.id, "status", "resolved")
    case.internal(incident.internal_text)
    admin, account = _user(case, "eu-north", organisation)
    case.subscription(account, plan, days=200)
    member, _ = _user(case, "eu-north", organisation, account=account)
    first = case.write(admin, case.rng.choice(SUBJECTS), SAYS["alerts"], minutes=90)
    second = case.write(member, case.rng.choice(SUBJECTS), SAYS["alerts"], minutes=60)
    again = case.write(admin, "AGAIN: " + case.rng.choice(SUBJECTS), SAYS["alerts"], minutes=20)
    case.assigned = [first, second]
    _read(case, first, account, incident=incident)
    case.play("list_tickets", requester_id=admin.id)
    case.play("merge_tickets", ticket_id=first.id, duplicate_id=again.id)
    case.want("tickets", again.id, merged_into=first.id)
    case.play("get_ticket", ticket_id=second.id)
    for ticket in (first, second):
        _link(case, ticket, incident)
        _tell_of(case, ticket, incident)
        case.play("update_ticket", ticket_id=ticket.id, status="hold", category="outage")
    case.play("wait", hours=ends + 1)
    case.play("get_incident", incident_id=incident.id)
    cents = policy.percent_of(plan.price_cents, policy.OUTAGE_PERCENT)
    case.play("grant_credit", account_id=account.id, amount_cents=cents, reason=f"INC-{incident.id}")
    case.made("credits", account_id=account.id, amount_cents=cents)
    for ticket in (first, second):
        case.say(ticket, f"INC-{incident.id} is over. For it your account is credited {policy.money(cents)}.",
                 amount(cents), number(incident.id))  # fmt: skip
        case.file(ticket, status="solved", category="outage", resolution="credited")
    return f"All tickets of the firm are answered, and {policy.money(cents)} are credited once."


def no_credit_twice(case: Case) -> str:
    """A business asks for a credit that it was given already."""
    return _afterwards(case, case.organisation(), hours=8, already=True)


VARIANTS = {
    "easy": (going_on,),
    "medium": (going_on, one_device, over, over_short),
    "hard": (whole_firm, no_credit_twice, one_device),
}

# -- what they share


def _component(case: Case) -> Component:
    return case.rng.choice(list(SAYS))


def _incident(case: Case, component: Component, region: Region, *, hours: float, lasted: float = 0) -> Incident:
    """An incident that began so many hours ago, and is over when it lasted."""
    began = case.start - hours * HOUR
    what = pools.COMPONENTS[component]
    return case.add(
        Incident,
        title=what,
        component=component,
        region=region,
        status="resolved" if lasted else "investigating",
        started=moment(began),
        resolved=moment(began + lasted * HOUR) if lasted else None,
        public_text=f"{what}. Our engineers are working on it.",
        internal_text=case.rng.choice(_INTERNAL),
    )


def _user(
    case: Case, region: Region, organisation: Organisation | None = None, *, account: Account | None = None
) -> tuple[Customer, Account]:
    role = None if organisation is None else "member" if account else "admin"
    customer = case.customer(organisation=organisation, organisation_role=role)
    if account is not None:
        case.join(account, customer)
        return customer, account
    account = case.account(customer, region=region)
    home = case.home(customer)
    case.order(customer, home, days=60 + case.rng.below(200), status="delivered")
    for _ in range(2):
        case.device(account, last_seen=case.ago(0))
    return customer, account


def _read(case: Case, ticket: Ticket, account: Account, *, incident: Incident) -> None:
    case.look(ticket, account)
    case.play("list_incidents", status="resolved" if incident.resolved else "unresolved")
    case.play("get_incident", incident_id=incident.id)


def _link(case: Case, ticket: Ticket, incident: Incident) -> None:
    case.play("link_incident", ticket_id=ticket.id, incident_id=incident.id)
    case.want("tickets", ticket.id, incident_id=incident.id)


def _tell_of(case: Case, ticket: Ticket, incident: Incident) -> None:
    name = f"INC-{incident.id}"
    case.say(ticket, f"This is {name}: {incident.public_text} We write to you when it is over.", number(incident.id))


def _afterwards(case: Case, organisation: Organisation | None, *, hours: float, already: bool = False) -> str:
    component = _component(case)
    days = 2 + case.rng.below(4)
    incident = _incident(case, component, "eu-north", hours=days * DAY / HOUR, lasted=hours)
    customer, account = _user(case, "eu-north", organisation)
    plan = named(Plan, "Care Business" if organisation else "Care Plus")
    subscription = case.subscription(account, plan, days=150)
    cents = policy.percent_of(plan.price_cents, policy.OUTAGE_PERCENT)
    if already:
        case.credit(account, cents, f"INC-{incident.id}", days=0.5)
    what = incident.title.lower()
    ticket = case.write(customer, case.rng.choice(SUBJECTS), AFTERWARDS, facts={"what": what})
    case.internal(incident.internal_text)
    _read(case, ticket, account, incident=incident)
    case.play("get_subscription", subscription_id=subscription.id)
    case.play("list_credits", account_id=account.id)
    _link(case, ticket, incident)
    name = f"INC-{incident.id}"
    if organisation and hours >= policy.OUTAGE_HOURS and not already:
        case.play("grant_credit", account_id=account.id, amount_cents=cents, reason=name)
        case.made("credits", account_id=account.id, amount_cents=cents)
        case.say(
            ticket,
            f"We are sorry for {name}. Your account is credited {policy.money(cents)}.",
            amount(cents),
            number(incident.id),
        )
        case.file(ticket, status="solved", category="outage", resolution="credited")
        return f"{policy.money(cents)} are credited for {name}."
    case.asks_only = True
    if already:
        text = f"For {name} your account was credited {policy.money(cents)} already."
        case.say(ticket, text, number(incident.id), amount(cents))
    else:
        case.say(ticket, f"We are sorry for {name}. It is over, and there is no credit for it.", number(incident.id))
    case.file(ticket, status="solved", category="outage", resolution="informed")
    return f"{name} is over, and nothing is to be credited."
