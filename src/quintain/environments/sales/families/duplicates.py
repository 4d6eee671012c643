"""Clean up duplicates: merge the records of one person, leave the namesakes alone, lose nothing."""

from __future__ import annotations

import msgspec

from quintain.environments.sales import goals, pools
from quintain.environments.sales.case import Case
from quintain.environments.sales.draft import Person
from quintain.environments.sales.records import Contact, Lead

_ASKS = (
    "{who} of {company} is in the CRM more than once. Please clean that up.",
    "Please merge the duplicates of {who} ({company}).",
    "I keep finding several records for {who} at {company}. Can you sort it out by the rules?",
)
_FILLED = ("email", "phone", "title", "zone")


def write(case: Case) -> str:
    """Returns the oracle's last words; everything else goes into the case."""
    rng = case.rng
    who = case.person()
    copies = _copies(case, who)
    survivor, others = copies[0], copies[1:]
    case.focus += [one.id for one in copies]
    case.play("crm_search", kind="accounts", query=who.account.name)
    case.play("crm_get", record_id=who.account_id)
    for one in copies:
        case.look(one.id)
    scheduled = _history(case, copies)
    _merge(case, survivor, others)
    if scheduled:
        case.play("mail_sent_to", address=who.email)
        case.cancel(scheduled)
    merged = tuple(one.id for one in others)
    case.log(survivor.id, f"Merged {', '.join(merged)} into this record: the same person.", merged)
    case.request = rng.choice(_ASKS).format(who=who.row.name, company=who.account.name)
    return f"{', '.join(merged)} merged into {survivor.id}."


def _copies(case: Case, who: Person) -> list[Person]:
    """The records of one person, the survivor first; namesakes are made on the way."""
    rng, account = case.rng, (who.account_id, who.account)
    first, last = who.row.name.split()[0], who.row.name.split()[-1]
    twin = case.person(
        account,
        name=rng.choice((f"{first[0]}. {last}", f"{last}, {first}", who.row.name.upper())),
        email=(who.row.email or "").upper() if rng.below(2) else (who.row.email or "").title(),
        phone=None,
    )
    records = [who, twin]
    if not case.easy:
        again = {"name": who.row.name, "email": None, "phone": pools.retyped(who.row.phone or "")}
        records.append(case.person(account, **again))
        namesake = f"{first.casefold()[0]}{last.casefold()[:1]}{1 + rng.below(99)}@{who.account.domain}"
        case.person(account, name=who.row.name, email=namesake, title=None)
        case.person(None, name=who.row.name)
    for n, created in enumerate(rng.sample(range(2, 9), len(records))):
        row = records[n].row
        row.created, row.updated = case.ago(100 * created)[:10], case.ago(5 + 9 * rng.below(20) + n)
    oldest = min(records, key=lambda one: one.row.created)
    survivor = rng.choice(records) if case.hard else oldest
    if case.hard:
        case.deal(survivor, "proposal")
    for field in rng.sample(("title", "zone"), 1 + rng.below(2)):
        setattr(survivor.row, field, None)
    return [survivor, *(one for one in records if one is not survivor)]


def _history(case: Case, copies: list[Person]) -> str | None:
    """Adds entries and a lead; at the hard level an opt-out and a scheduled letter, whose id it returns."""
    rng = case.rng
    for one in copies:
        case.note(one.id, rng.choice(pools.CHATTER), 2 + rng.below(200), kind="call")
    lead = Lead(
        contact=copies[-1].id,
        account=copies[-1].account_id,
        source=rng.choice(pools.SOURCE),
        status="nurture",
        created=case.ago(40)[:10],
        updated=case.ago(9),
    )
    case.add(lead)
    if not case.hard:
        return None
    refuser = copies[1]
    refuser.row.opted_out = case.ago(30 + rng.below(100))
    address = next(one.email for one in copies if one.email)
    case.never.append(address)
    return case.letter(address, 2 + rng.below(6), "scheduled")


def _merge(case: Case, survivor: Person, others: list[Person]) -> None:
    newest_first = sorted((one.row for one in others), key=lambda row: row.updated, reverse=True)
    facts = {field: value for field in _FILLED if (value := _missing(survivor.row, newest_first, field)) is not None}
    for one in others:
        case.play("crm_merge_contacts", survivor_id=survivor.id, duplicate_id=one.id)
        case.goals.append(goals.Merged(survivor=survivor.id, duplicate=one.id))
    if facts:
        case.put("crm_update_contact", survivor.id, **facts)
    if any(one.row.opted_out for one in others) and not survivor.row.opted_out:
        case.opt_out(survivor)


def _missing(survivor: Contact, others: list[Contact], field: str) -> str | None:
    """Returns a value that the others have and the survivor lacks."""
    known = msgspec.structs.asdict(survivor)[field]
    found: list[str] = [value for row in others if (value := getattr(row, field))]
    return None if known or not found else found[0]
