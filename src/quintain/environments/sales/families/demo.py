"""Book a demo across time zones, or move one: a time that suits both clocks, confirmed and noted."""

from __future__ import annotations

from datetime import timedelta

from quintain.environments.sales import policy, times
from quintain.environments.sales.calendar import Meeting, Span
from quintain.environments.sales.case import Case
from quintain.environments.sales.draft import Person

_ASKS = (
    "{who} of {company} wants a demo. They can do {when} (their time). Please book it with the owner of the deal.",
    "Please set up the demo for {company}, deal {deal}: {who} is available on {when}, on their clock.",
)
_MOVES = (
    "{who} of {company} can't make the demo that is booked. New wish: {when}, their time. Please arrange it.",
    "The demo with {who} ({company}) has to be moved; on their clock they are free {when}.",
)


def write(case: Case) -> str:
    """Returns the oracle's last words; everything else goes into the case."""
    rng = case.rng
    owner = case.rep(role="account_executive")
    case.busy(owner)
    who, (when, windows) = case.guest(owner)
    moving = case.hard and rng.below(2) == 0
    deal_id, deal = case.deal(who, "demo" if moving else "discovery", owner=owner)
    case.focus += [deal_id, who.id]
    case.play("crm_search", kind="contacts", query=who.row.name)
    case.look(who.id, deal_id)
    case.play("crm_get", record_id=who.account_id)
    meeting = _appointment(case, (owner, who), windows) if moving else None
    if meeting:
        case.play("calendar_appointments", attendee=who.email)
    if case.hard:
        case.letter(who.email, -0.1 - rng.below(2))
        case.play("mail_sent_to", address=who.email)
    case.book(owner, who, windows, moving=meeting)
    if not moving:
        case.put("crm_set_stage", deal_id, stage="demo")
    case.log(deal_id, f"Demo with {who.row.name} {'moved' if moving else 'booked'} and confirmed.")
    names = {"who": who.row.name, "company": who.account.name, "when": when, "deal": deal.name}
    case.request = rng.choice(_MOVES if moving else _ASKS).format(**names)
    return f"The demo with {who.row.name} is arranged."


def _appointment(case: Case, parties: tuple[str, Person], windows: list[Span]) -> str:
    """The demo that they cannot make: on a working day soon, and not within what they offer now."""
    owner, who = parties
    offered = {times.local(since, who.zone).date() for since, _ in windows}
    day = times.local(case.start, who.zone).date() + timedelta(days=1)
    while day.weekday() > 4 or day in offered:
        day += timedelta(days=1)
    start = times.stamp(times.moment(day, 11, who.zone))
    return case.add(
        Meeting(rep=owner, attendee=who.email, start=start, minutes=policy.DEMO_MINUTES, title="Tessera demo")
    )
