"""Qualify a lead and route it: gather the numbers, judge them, find who is to have it."""

from __future__ import annotations

from typing import NamedTuple

from quintain.environments.sales import policy, pools, times
from quintain.environments.sales.case import Case
from quintain.environments.sales.draft import Person
from quintain.environments.sales.records import Account, Lead

_SAYS = {
    "employees": ("They are {:,} people now.", "Headcount {} according to HR.", "their page says {} employees"),
    "budget_eur": ("Budget is EUR {:,}.", "They set aside {} euros.", "can spend EUR {:,}, has been approved"),
    "months": ("They want to decide within {} months.", "Decision in {} months.", "timeline: {} months"),
}
_ASKS = (
    "Please qualify the lead {who} at {company} and route it if it is any good.",
    "There is a lead in the pile, {who} ({company}). Judge it by the book and hand it to whoever should have it.",
    "Could you take care of the lead from {company}, {who}? Qualify or bin it, and if it's good pass it on.",
)


class _Facts(NamedTuple):
    employees: int
    budget_eur: int
    months: int


def write(case: Case) -> str:
    """Returns the oracle's last words; everything else goes into the case."""
    rng = case.rng
    facts, hidden, unknown = _draw(case)
    country = rng.choice(policy.COUNTRIES)
    account_id, account = case.account(
        country=country.name if case.easy else rng.choice(country.spellings),
        employees=None if "employees" in hidden else facts.employees,
    )
    who = case.person((account_id, account))
    lead = Lead(
        contact=who.id,
        account=account_id,
        source=rng.choice(pools.SOURCE),
        status=rng.choice(("new", "working")),
        budget_eur=None if "budget_eur" in hidden else facts.budget_eur,
        months=None if "months" in hidden else facts.months,
        created=case.ago(rng.below(40))[:10],
        updated=case.ago(rng.below(5)),
    )
    lead_id = case.add(lead)
    case.focus += [lead_id, who.id, account_id]
    if not case.easy:
        _namesake(case, who)
    case.play("crm_search", kind="leads", query=who.row.name)
    case.look(lead_id, who.id, account_id)
    for fact in hidden:
        if fact != unknown:
            _bury(case, (lead_id, who.id, account_id), (fact, getattr(facts, fact)))
            _recover(case, (lead_id, account_id), (fact, getattr(facts, fact)))
    answer = _decide(case, (lead_id, who, account), (facts, unknown))
    case.request = rng.choice(_ASKS).format(who=who.row.name, company=account.name)
    return answer


def _draw(case: Case) -> tuple[_Facts, list[str], str]:
    """The numbers, which of them the records lack, and the one that is nowhere, if any."""
    rng = case.rng
    edge = case.hard and rng.below(3) == 0
    employees = rng.choice((50, 999, 1000)) if edge else 60 + rng.below(4000)
    budget = policy.BUDGET_MIN_EUR if edge else 500 * (21 + rng.below(300))
    months = policy.MONTHS_MAX if edge else 1 + rng.below(6)
    verdict = rng.below(5)
    if verdict == 0:
        employees = 8 + rng.below(policy.EMPLOYEES_MIN - 8)
    if verdict in {0, 1}:
        budget = 500 * rng.below(20) if rng.below(2) or verdict == 1 else budget
    if verdict == 2:
        months = 7 + rng.below(12)
    hidden = rng.sample(list(_Facts._fields), ("easy", "medium", "hard").index(case.level))
    nowhere = bool(hidden) and rng.below(6) == 0
    return _Facts(employees, budget, months), hidden, hidden[0] if nowhere else ""


def _namesake(case: Case, who: Person) -> None:
    """Adds a lead of another person with the same name."""
    other = case.person(name=who.row.name, title=None)
    created, updated = case.ago(20)[:10], case.ago(3)
    case.add(Lead(contact=other.id, account=other.account_id, source="webinar", created=created, updated=updated))


def _bury(case: Case, records: tuple[str, str, str], fact: tuple[str, int]) -> None:
    """Put a number into the history of one of the records, and an outdated one below it."""
    name, value = fact
    about = case.rng.choice(records) if case.hard else records[2 if name == "employees" else 0]
    case.note(about, case.rng.choice(_SAYS[name]).format(value), 1 + case.rng.below(10), kind="call")
    if case.hard or case.rng.below(2):
        stale = value * 3 if case.rng.below(2) else value // 3
        case.note(about, case.rng.choice(_SAYS[name]).format(stale), 60 + case.rng.below(200), kind="call")


def _recover(case: Case, records: tuple[str, str], fact: tuple[str, int]) -> None:
    name, value = fact
    lead_id, account_id = records
    if name == "employees":
        case.put("crm_update_account", account_id, employees=value)
    else:
        case.put("crm_update_lead", lead_id, **{name: value})


def _decide(case: Case, lead: tuple[str, Person, Account], known: tuple[_Facts, str]) -> str:
    lead_id, who, account = lead
    facts, unknown = known
    if unknown:
        case.put("crm_decide_lead", lead_id, status="nurture")
        case.log(lead_id, f"Set to nurture: nobody has noted {unknown}.")
        return f"{who.row.name} goes to nurture, because we lack a number."
    reason = policy.objection(*facts)
    if reason:
        case.put("crm_decide_lead", lead_id, status="disqualified", reason=reason)
        case.log(
            lead_id, f"Disqualified, {reason}: {facts.employees} people, EUR {facts.budget_eur}, {facts.months} months"
        )
        return f"{who.row.name} does not qualify: {reason}."
    owner = _route(case, who, (account, facts.employees))
    case.put("crm_decide_lead", lead_id, status="qualified")
    case.assign(lead_id, owner)
    case.inform(owner, f"A qualified lead for you: {who.row.name} at {account.name}.", (who.row.name,))
    case.log(lead_id, f"Qualified and given to {case.member(owner).name}.")
    return f"{who.row.name} is qualified and goes to {case.member(owner).name}."


def _route(case: Case, who: Person, company: tuple[Account, int]) -> str:
    """Returns the owner of the lead; the hard level adds an open deal and an absence."""
    rng, (account, employees) = case.rng, company
    country = policy.country_of(account)
    region = country.region if country else "EMEA"
    owner = case.rep(region=region, segment=policy.segment(employees))
    case.play("crm_colleagues")
    if case.hard and rng.below(2):
        closed = rng.below(3) == 0
        holder = case.rep(role="account_executive")
        deal_id, _ = case.deal(who, "lost" if closed else "discovery", owner=holder)
        case.play("crm_get", record_id=deal_id)
        owner = owner if closed else holder
    if case.hard and rng.below(2):
        case.member(owner).away_until = times.stamp(case.start + (1 + rng.below(9)) * times.DAY)[:10]
        owner = case.rep(region=region, role="manager")
    return owner
