"""The base: fifteen hundred tickets with their threads, and what the desk knows."""

from __future__ import annotations

from typing import Any

from quintain.environments.support.desk import DAY, moment, seconds
from quintain.environments.support.schema.desk import (
    Article,
    Attachment,
    Automation,
    Comment,
    Incident,
    Macro,
    Mail,
    Rating,
    SlaClock,
    Ticket,
    TicketEvent,
    TicketTag,
    Trigger,
    Verification,
    View,
)
from quintain.environments.support.schema.people import (
    Agent,
    BusinessHours,
    Customer,
    Organisation,
    SlaPolicy,
    SlaTarget,
)
from quintain.environments.support.tools.ticketing import calendar

from . import articles, people, pools, words
from .sowing import DAWN, Sowing

TICKETS = 1500
EVERY_DAYS = 0.24
"""Days between two tickets."""
_HOUR = 3600.0
_OUTCOME = {
    "login": "fixed", "payment": "informed", "refund": "refunded", "delivery": "replaced", "address": "fixed",
    "plan": "informed", "pricing": "credited", "outage": "informed", "other": "informed",
}  # fmt: skip


def knowledge(sowing: Sowing) -> None:
    """Articles, macros, views, triggers, automations, and incidents of the past."""
    for title, section, body in articles.sections():
        sowing.add(Article, title=title, section=section, audience="internal", body=body, updated=sowing.ago(20))
    for audience, listed in (("public", articles.PUBLIC), ("internal", articles.INTERNAL)):
        for title, section, body in listed:
            facts: dict[str, Any] = {"title": title, "section": section, "body": body, "audience": audience}
            sowing.add(Article, updated=sowing.ago(sowing.rng.below(700)), **facts)
    sowing.add(Macro, name="ask for details", text="Please tell us two of: a number of one of your orders or invoices, "
               "your postcode, the last four digits of your card.", actions={"status": "pending"})  # fmt: skip
    sowing.add(
        Macro, name="we are on it", text="Thank you for writing. We are looking into it.", actions={"status": "open"}
    )
    sowing.add(Macro, name="not our product", text="This is not one of our products, we are sorry.",
               actions={"status": "solved", "resolution": "declined"})  # fmt: skip
    views: dict[str, dict[str, list[str]]] = {
        "new": {"status": ["new"]},
        "urgent": {"priority": ["urgent"], "status": ["new", "open"]},
        "waiting": {"status": ["pending", "hold"]},
        "unsolved": {"status": ["new", "open"]},
    }
    for title, conditions in views.items():
        sowing.add(View, name=title, conditions=conditions)
    sowing.add(Trigger, name="business first", on="create", conditions={"tier": "business", "priority": "normal"},
               actions={"tag": "business"})  # fmt: skip
    sowing.add(
        Trigger, name="receipt", on="create", conditions={"channel": "email"}, actions={"mail": "We have your mail"}
    )
    sowing.add(Trigger, name="ask for a rating", on="update", conditions={"status": "solved"},
               actions={"tag": "rating_asked", "mail": "How did we do?"})  # fmt: skip
    sowing.add(Automation, name="remind", status="pending", idle_hours=72,
               actions={"tag": "reminded", "mail": "We are waiting for your answer"})  # fmt: skip
    sowing.add(Automation, name="give up", status="pending", idle_hours=168,
               actions={"tag": "no_answer", "status": "solved", "resolution": "informed"})  # fmt: skip
    sowing.add(Automation, name="close", status="solved", idle_hours=96, actions={"status": "closed"})
    for n in range(26):
        _incident(sowing, 400 - 15 * n)


def _incident(sowing: Sowing, age: int) -> None:
    rng = sowing.rng
    component = rng.choice(list(pools.COMPONENTS))
    started = DAWN - age * 86_400 + rng.below(40_000)
    sowing.add(
        Incident,
        title=pools.COMPONENTS[component],
        component=component,
        region=rng.choice(pools.REGIONS),
        status="resolved",
        started=moment(started),
        resolved=moment(started + 1800 + rng.below(30_000)),
        public_text=f"{pools.COMPONENTS[component]}. Our engineers have repaired it.",
        internal_text=rng.choice(
            ("disk full on the queue host", "bad deploy, rolled back", "upstream DNS, nothing on us")
        ),
    )


def tickets(sowing: Sowing) -> None:
    """The past, and some that are still open."""
    for n in range(TICKETS):
        _ticket(sowing, DAWN - (TICKETS - n) * EVERY_DAYS * DAY + sowing.rng.below(9000))


def _ticket(sowing: Sowing, created: float) -> None:
    rng = sowing.rng
    requester = rng.choice(sowing.rows[Customer])
    category = rng.choice(list(words.SMALL_TALK))
    age_h = (DAWN - created) / _HOUR
    if age_h > 500:
        status = "closed"
    elif age_h > 160:
        status = rng.choice(("closed", "closed", "closed", "hold"))
    else:
        status = rng.choice(("new", "open", "pending", "solved", "open"))
    done = status in {"solved", "closed"}
    agents = [row for row in sowing.rows[Agent] if row.is_active]
    agent = rng.choice(agents)
    ticket = sowing.add(
        Ticket,
        subject=words.typos(rng, words.SMALL_TALK[category][0], 12) if rng.below(5) else "(no subject)",
        requester_id=requester.id,
        organisation_id=requester.organisation_id,
        group_id=None if status == "new" else agent.group_id,
        assignee_id=None if status == "new" else agent.id,
        status=status,
        priority=rng.choice(("low", "normal", "normal", "normal", "normal", "high", "urgent")),
        category=category if done or rng.below(3) == 0 else None,
        resolution=_OUTCOME[category] if done else None,
        channel=rng.choice(("email", "email", "email", "web", "chat", "phone")),
        created=moment(created),
        updated=moment(created),
    )
    _thread(sowing, ticket, requester, about=(category, agent))
    if done:
        ticket.solved = ticket.updated
        if sowing.chance(4):
            score = rng.choice(("good", "good", "good", "bad"))
            said = rng.choice((None, None, "quick", "took ages"))
            sowing.add(Rating, ticket_id=ticket.id, score=score, comment=said, at=ticket.updated)
    _promises(sowing, ticket, created)
    if sowing.chance(5):
        sowing.add(TicketTag, ticket_id=ticket.id, tag=rng.choice(("vip", "app", "printer", "callback", "spam_check")))


def _thread(sowing: Sowing, ticket: Ticket, requester: Customer, *, about: tuple[str, Agent]) -> None:
    rng, (category, agent) = sowing.rng, about
    at = seconds(ticket.created)
    text = words.letter(rng, words.SMALL_TALK[category][1], name=requester.name.strip())
    thread: list[tuple[Any, str, bool, str]] = [("customer", requester.email, True, text)]
    if ticket.status != "new":
        thread.append(("agent", agent.name, True, rng.choice(words.ANSWERS)))
        if sowing.chance(3):
            thread.insert(1, ("agent", agent.name, False, rng.choice(words.INTERNAL)))
        if sowing.chance(3):
            thread.append(("customer", requester.email, True, rng.choice(words.THANKS)))
    for author, sender, public, body in thread:
        facts = {"author": author, "sender": sender, "is_public": public, "body": body, "at": moment(min(at, DAWN - 1))}
        comment = sowing.add(Comment, ticket_id=ticket.id, **facts)
        ticket.updated = comment.at
        at += 1800 + rng.below(30_000)
        if author == "customer" and sowing.chance(9):
            name, mime = rng.choice(
                (("IMG_2041.jpg", "image/jpeg"), ("screenshot.png", "image/png"), ("invoice.pdf", "application/pdf"))
            )
            sowing.add(Attachment, comment_id=comment.id, name=name, mime=mime, size_bytes=20_000 + rng.below(900_000))
    if ticket.status != "new":
        facts = {"field": "status", "before": "new", "after": ticket.status}
        sowing.add(TicketEvent, ticket_id=ticket.id, at=ticket.updated, actor="agent", **facts)
    if sowing.chance(20):
        given = [f"R-{100000 + 2 * rng.below(900)}", f"{rng.below(10000):04}"]
        passed = bool(rng.below(4))
        facts = {"customer_id": requester.id, "given": given, "has_passed": passed, "at": ticket.updated}
        sowing.add(Verification, ticket_id=ticket.id, **facts)
    if sowing.chance(6):
        sowing.add(Mail, at=ticket.updated, to=requester.email, subject="How did we do?")


def _promises(sowing: Sowing, ticket: Ticket, created: float) -> None:
    """Deadlines; those of the past were kept or not, those of today still run."""
    replied = moment(min(created + 3 * _HOUR, DAWN - 1)) if ticket.status != "new" else None
    tiers = {row.id: row.tier for row in sowing.rows[Organisation]}
    tier = tiers.get(ticket.organisation_id or 0, "standard")
    (policy,) = (row for row in sowing.rows[SlaPolicy] if row.tier == tier)
    (hours,) = (row for row in sowing.rows[BusinessHours] if row.id == policy.hours_id)
    open_hours = calendar(hours.zone, tuple(hours.days), f"{hours.opens}-{hours.closes}", holidays=people.HOLIDAYS)
    targets = [row for row in sowing.rows[SlaTarget] if (row.policy_id, row.priority) == (policy.id, ticket.priority)]
    first, whole = targets[0].first_reply_minutes, targets[0].resolution_minutes
    for metric, minutes, met in (("first_reply", first, replied), ("resolution", whole, ticket.solved)):
        due = open_hours.add(created, 60 * minutes)
        late = met > moment(due) if met else due < DAWN
        left = 600 if metric == "resolution" and ticket.status in {"pending", "hold"} else None
        facts = {"metric": metric, "due": moment(due), "met": met, "is_breached": late, "left_minutes": left}
        sowing.add(SlaClock, ticket_id=ticket.id, **facts)
