"""Revive a stalled deal: write to its present contact, wait, and follow the answer."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

from quintain.environments.sales import goals, pools, times
from quintain.environments.sales.case import Case
from quintain.environments.sales.draft import Person
from quintain.environments.sales.records import STAGES, Opportunity, Stage

_ASKS = (
    "The deal {deal} has been asleep for weeks. Please revive it{rest}",
    "Nothing has moved on {deal} for ages. Wake it up, please{rest}",
    "Can you get {deal} going again{rest}",
)
_STAGES: tuple[Stage, ...] = ("prospecting", "demo", "proposal")
_ALONE = ": write to them and set a next step. Don't wait for the answer, I'll take it from there."
_WHOLE = ", wait for their answer (they write back within two days of our e-mail) and bring the deal up to date."


def write(case: Case) -> str:
    """Returns the oracle's last words; everything else goes into the case."""
    rng = case.rng
    old = 60 + rng.below(70)
    first = case.person()
    stage = rng.choice(_STAGES)
    # What it says about money and time is outdated, and never by chance what the answer will say.
    outdated = {"amount_eur": 500 + 1000 * rng.below(90), "close_date": case.ago(rng.below(40))[:10]}
    deal_id, deal = case.deal(first, stage, updated=case.ago(old), **outdated)
    case.note(deal_id, rng.choice(pools.CHATTER), old, kind="call")
    case.note(deal_id, rng.choice(pools.CHATTER), old + 30, kind="email")
    case.focus += [deal_id, first.id]
    case.play("crm_search", kind="opportunities", query=deal.name)
    case.look(deal_id, first.id)
    who = _successor(case, first, (deal_id, old)) if case.hard else first
    if case.hard:
        case.letter(who.email, -rng.below(3) / 2 - 0.01)
        case.play("mail_sent_to", address=who.email)
    case.request = rng.choice(_ASKS).format(deal=deal.name, rest=_ALONE if case.easy else _WHOLE)
    answer = None if case.easy else _answer(case, who)
    left = case.mail(who, f"We last spoke some time ago about {deal.name}. Would you like to go on?")
    step = f"wait for the answer of {who.row.name}"
    case.play("crm_update_opportunity", opportunity_id=deal_id, next_step=step)
    case.goals.append(goals.Filled(table="crm.opportunities", key=deal_id, field="next_step", was=deal.next_step))
    if answer:
        _follow(case, (deal_id, deal), (left, answer))
    case.log(deal_id, f"Wrote to {who.row.name} to revive the deal; brought it up to date.")
    return f"I wrote to {who.row.name} and brought {deal.name} up to date."


def _successor(case: Case, first: Person, deal: tuple[str, int]) -> Person:
    """The contact has left, and only a note says so."""
    deal_id, old = deal
    account = (first.account_id, first.account)
    who = case.person(account, zone=None)
    case.person(account, title=first.row.title)
    words = f"{first.row.name} has left the company. {who.row.name} has taken over."
    case.note(case.rng.choice((deal_id, first.id)), words, old - 10)
    case.focus.append(who.id)
    case.play("crm_search", kind="contacts", query=who.row.name)
    case.look(who.id, who.account_id)
    case.put("crm_update_opportunity", deal_id, contact_id=who.id)
    return who


class _Answer(NamedTuple):
    """Answer of the contact and its delay in hours; without a day it refuses."""

    delay_h: int
    message: str
    amount: int
    day: date | None


def _answer(case: Case, who: Person) -> _Answer:
    rng = case.rng
    delay_h = 3 + rng.below(30)
    if rng.below(4) == 0:
        words = rng.choice(("Sorry, we have gone with somebody else.", "We have stopped the project for good, sorry."))
        return _Answer(delay_h, case.answers(who, delay_h, words), 0, None)
    amount = 1000 * (12 + rng.below(120))
    day = times.local(case.start, "UTC").date() + timedelta(days=14 + rng.below(60))
    money = f"EUR {amount:,}" if not case.hard else rng.choice((f"{amount // 1000}k euros", f"€{amount // 1000}k"))
    words = rng.choice((
        "Thanks for asking. Yes, let's go on. We now have {} for it and will decide on {}.",
        "Good timing! We do want to continue. The new budget is {}. The board decides on {}.",
    )).format(money, times.long_date(day))  # fmt: skip
    return _Answer(delay_h, case.answers(who, delay_h, words), amount, day)


def _follow(case: Case, deal: tuple[str, Opportunity], answered: tuple[float, _Answer]) -> None:
    (deal_id, row), (left, answer) = deal, answered
    delay_h, message, amount, day = answer
    case.wait_until(left + delay_h * times.HOUR)
    case.play("mail_inbox_list")
    case.play("mail_read", message_id=message)
    if day is None:
        case.put("crm_set_stage", deal_id, stage="lost")
    else:
        case.put("crm_update_opportunity", deal_id, amount_eur=amount, close_date=day.isoformat())
        case.put("crm_set_stage", deal_id, stage=STAGES[STAGES.index(row.stage) + 1])
