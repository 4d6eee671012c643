"""Answer a reply: read what a contact wrote, now or in some hours, and act on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import NamedTuple

from quintain.authoring import Level
from quintain.environments.sales import pools, times
from quintain.environments.sales.calendar import Span
from quintain.environments.sales.case import Case
from quintain.environments.sales.draft import Person
from quintain.environments.sales.records import Lead

_HERE = (
    "There is a new e-mail from {who} ({company}) in the inbox. Please deal with it.",
    "{who} of {company} has answered. Read it and do what has to be done.",
)
_COMING = (
    "{who} ({company}) promised to write to us within the next {hours} hours. Wait for the e-mail and deal with it.",
    "We expect an e-mail from {who} of {company} in the next {hours} hours. When it has come, do what has to be done.",
)


class _Thread(NamedTuple):
    """Contact who writes, the lead, its owner, and times for a meeting."""

    who: Person
    lead_id: str
    owner: str
    offer: tuple[str, list[Span]]


def write(case: Case) -> str:
    """Returns the oracle's last words; everything else goes into the case."""
    rng = case.rng
    thread, scheduled = _thread(case)
    who, lead_id = thread.who, thread.lead_id
    words, act = rng.choice(_KINDS[case.level])(case, thread)
    hours = -(1 + rng.below(20)) if case.easy else 2 + rng.below(20)
    message = case.writes(who, hours, words)
    case.focus.append(message)
    if hours > 0:
        case.wait_until(case.start + hours * times.HOUR)
    case.play("mail_inbox_list")
    case.play("mail_read", message_id=message)
    case.play("crm_search", kind="leads", query=who.row.name)
    case.look(lead_id, who.id)
    case.play("crm_get", record_id=who.account_id)
    case.play("mail_sent_to", address=who.email)
    case.cancel(scheduled)
    act()
    prompt = rng.choice(_HERE if hours < 0 else _COMING)
    names = {"who": who.row.name, "company": who.account.name, "hours": hours + 2}
    case.request = prompt.format(**names)
    return f"The e-mail of {who.row.name} is dealt with."


def _thread(case: Case) -> tuple[_Thread, str]:
    """A lead in the hands of a colleague, with a letter of ours on its way, whose id comes second."""
    rng = case.rng
    owner = case.rep(role="account_executive")
    case.busy(owner)
    who, offer = case.guest(owner)
    lead = Lead(
        contact=who.id,
        account=who.account_id,
        source=rng.choice(pools.SOURCE),
        status="working",
        owner=owner,
        created=case.ago(20)[:10],
        updated=case.ago(3),
    )
    lead_id = case.add(lead)
    case.focus += [lead_id, who.id]
    if case.hard:
        case.person(name=who.row.name)
        case.letter(who.email, -0.1 - rng.below(2))
    return _Thread(who, lead_id, owner, offer), case.letter(who.email, 3 + rng.below(5), "scheduled")


_Act = Callable[[], None]


def _unsubscribe(case: Case, thread: _Thread) -> tuple[str, _Act]:
    who = thread.who
    case.never.append(who.email)

    def act() -> None:
        case.opt_out(who)
        case.put("crm_decide_lead", thread.lead_id, status="disqualified", reason="opted_out")
        case.log((who.id, thread.lead_id), f"{who.row.name} asked by e-mail not to be written to; opted out.")

    words = ("Please remove me from your list.", "Kindly stop e-mailing me. Thanks.", "UNSUBSCRIBE!! Third time I ask.")
    return case.rng.choice(words), act


def _not_now(case: Case, thread: _Thread) -> tuple[str, _Act]:
    day = _later(case, 20 + case.rng.below(40))
    while day.weekday() > 4:
        day += timedelta(days=1)

    def act() -> None:
        case.put("crm_decide_lead", thread.lead_id, status="nurture")
        _remind(case, thread, day, note=f"Not now; an e-mail goes out on {day}.")

    words = "We have no capacity now. Please write to me again on {}.|Interesting, but not now. Ask again on {}!"
    return case.rng.choice(words.split("|")).format(times.long_date(day)), act


def _out_of_office(case: Case, thread: _Thread) -> tuple[str, _Act]:
    day = _later(case, 6 + case.rng.below(20))

    def act() -> None:
        _remind(case, thread, day, note=f"Out of office until {day}; an e-mail goes out then.")

    words = "Automatic reply: I am out of the office and will be back on {}.|I'm on leave, back on {}."
    return case.rng.choice(words.split("|")).format(times.long_date(day)), act


def _referral(case: Case, thread: _Thread) -> tuple[str, _Act]:
    who = thread.who
    other = case.person((who.account_id, who.account), zone=None)
    if case.hard:
        case.person(name=other.row.name)

    def act() -> None:
        case.play("crm_search", kind="contacts", query=other.row.name)
        case.look(other.id)
        case.put("crm_update_lead", thread.lead_id, contact_id=other.id)
        case.mail(other, f"{who.row.name} told me that you are in charge. May I show you Tessera?")
        case.log(thread.lead_id, f"{who.row.name} named {other.row.name} as responsible; wrote to them.")

    words = "I am not the right person. {} looks after it here.|Please talk to my colleague {}, who is in charge."
    return case.rng.choice(words.split("|")).format(other.row.name), act


def _meet(case: Case, thread: _Thread) -> tuple[str, _Act]:
    when, windows = thread.offer

    def act() -> None:
        case.book(thread.owner, thread.who, windows)
        case.log(thread.lead_id, f"{thread.who.row.name} wants a demo; booked and confirmed.")

    words = "Yes, I would like to see it. I could do {} (my time).|Let's have a demo! {} would suit me, on my clock."
    return case.rng.choice(words.split("|")).format(when), act


def _remind(case: Case, thread: _Thread, day: date, *, note: str) -> None:
    after = times.moment(day, 0, thread.who.zone)
    case.mail(thread.who, "You asked us to get back to you around this date.", after=after)
    case.log(thread.lead_id, note)


def _later(case: Case, days: int) -> date:
    return times.local(case.start, "UTC").date() + timedelta(days=days)


_KINDS: dict[Level, tuple[Callable[[Case, _Thread], tuple[str, _Act]], ...]] = {
    "easy": (_unsubscribe, _not_now),
    "medium": (_unsubscribe, _not_now, _out_of_office, _referral),
    "hard": (_out_of_office, _referral, _meet, _meet),
}
