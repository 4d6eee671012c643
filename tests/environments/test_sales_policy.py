"""The policy alone decides: what follows from it and from the records is what the tasks ask for.

These readings of the policy share nothing with the generator but the numbers.
"""

from __future__ import annotations

import re

import pytest

from quintain.environments.sales import policy
from quintain.environments.sales.crm import Crm
from quintain.environments.sales.goals import Field, Filled, Mailed, Merged
from quintain.environments.sales.records import OPEN_STAGES, Contact, Lead

from .sales_desk import Task, each, goals_of, start_of

LEVELS = pytest.mark.parametrize(
    ("level", "count"),
    [("hard", 10), *(pytest.param(level, 40, marks=pytest.mark.slow) for level in ("easy", "medium", "hard"))],
)


def _fields(task: Task) -> dict[tuple[str, str], str | int]:
    return {(goal.key, goal.field): goal.value for goal in goals_of(task, Field)}


# -- duplicates


def _same(one: Contact, two: Contact) -> bool:
    def digits(phone: str | None) -> str:
        return "".join(filter(str.isdigit, phone or ""))

    emails = {(row.email or "").casefold() for row in (one, two)}
    phones = {digits(row.phone) for row in (one, two)}
    return (len(emails) == 1 and "" not in emails) or (one.name == two.name and len(phones) == 1 and "" not in phones)


def _cluster(crm: Crm, key: str) -> set[str]:
    """All records of one person."""
    rows, found = dict(crm.contacts.items()), {key}
    while more := {k for k, row in rows.items() if k not in found and any(_same(row, rows[one]) for one in found)}:
        found |= more
    return found


@LEVELS
def test_duplicates_are_those_of_the_policy(level: str, count: int) -> None:
    for task in [task for task, _ in zip(each("duplicates", level), range(count), strict=False)]:
        crm = task.world().crm
        merged = goals_of(task, Merged)
        cluster = _cluster(crm, merged[0].survivor)
        assert cluster == {merged[0].survivor, *(goal.duplicate for goal in merged)}, task.id
        dealt = {deal.contact for deal in crm.opportunities.values() if deal.stage in OPEN_STAGES} & cluster
        assert merged[0].survivor == min(dealt or cluster, key=lambda key: crm.contacts[key].created), task.id
        asked = {field: value for (key, field), value in _fields(task).items() if key == merged[0].survivor}
        assert asked == _blanks(crm, merged[0].survivor, cluster), task.id
        refused = [key for key in cluster if crm.contacts[key].opted_out]
        assert bool(refused) == bool(goals_of(task, Filled) or crm.contacts[merged[0].survivor].opted_out), task.id


def _blanks(crm: Crm, survivor: str, cluster: set[str]) -> dict[str, str]:
    """Returns the fields that the survivor lacks, with the values of the newest duplicate."""
    rows = sorted((crm.contacts[key] for key in cluster - {survivor}), key=lambda row: row.updated, reverse=True)
    found: dict[str, str] = {}
    for field in ("email", "phone", "title", "zone"):
        known: list[str] = [value for row in rows if (value := getattr(row, field))]
        if not getattr(crm.contacts[survivor], field) and known:
            found[field] = known[0]
    return found


# -- leads

_NUMBERS = {
    "employees": re.compile(r"(?:are|Headcount|says) ([0-9,]+)"),
    "budget_eur": re.compile(r"(?:EUR|aside|spend) ([0-9,]+)"),
    "months": re.compile(r"([0-9]+) months"),
}


def _fact(crm: Crm, name: str, lead_id: str) -> int | None:
    """A number as the record has it, or else the newest entry."""
    lead = crm.leads[lead_id]
    recorded: int | None = getattr(crm.accounts[lead.account or ""] if name == "employees" else lead, name)
    if recorded is not None:
        return recorded
    entries = [row for row in crm.activities.values() if row.about in {lead_id, lead.contact, lead.account}]
    for row in sorted(entries, key=lambda row: row.at, reverse=True):
        if found := _NUMBERS[name].search(row.text):
            return int(found[1].replace(",", ""))
    return None


def _owner(crm: Crm, lead: Lead, employees: int, today: str) -> str:
    region = (policy.country_of(crm.accounts[lead.account or ""]) or policy.COUNTRIES[0]).region
    deals = [row for row in crm.opportunities.values() if row.account == lead.account and row.stage in OPEN_STAGES]
    segment = "enterprise" if employees >= policy.ENTERPRISE_MIN else "mid"
    team = crm.team
    (owner,) = [row.owner for row in deals] or [
        key for key, row in team.items() if (row.region, row.segment) == (region, segment)
    ]
    if (team[owner].away_until or "") >= today:
        (owner,) = [key for key, row in team.items() if (row.region, row.role) == (region, "manager")]
    return owner


@LEVELS
def test_leads_are_judged_and_routed_as_in_the_policy(level: str, count: int) -> None:
    for task in [task for task, _ in zip(each("qualify", level), range(count), strict=False)]:
        world, asked = task.world(), _fields(task)
        crm, (lead_id,) = world.crm, [key for key, field in asked if field == "status"]
        lead = crm.leads[lead_id]
        facts = {name: _fact(crm, name, lead_id) for name in _NUMBERS}
        expected: dict[str, str | int] = {
            name: value
            for name, value in facts.items()
            if value is not None
            and getattr(crm.accounts[lead.account or ""] if name == "employees" else lead, name) is None
        }
        if None in facts.values():
            expected["status"] = "nurture"
        else:
            employees, budget, months = (value or 0 for value in facts.values())
            reasons = {"too_small": employees < 50, "no_budget": budget < 10_000, "no_timeline": months > 6}
            reason = next((name for name, true in reasons.items() if true), None)
            if reason:
                expected |= {"status": "disqualified", "reason": reason}
            else:
                owner = _owner(crm, lead, employees, world.clock.date.date().isoformat())
                expected |= {"status": "qualified", "owner": owner}
                assert [goal.to for goal in goals_of(task, Mailed)] == [crm.team[owner].email], task.id
        assert {field: value for (_, field), value in asked.items()} == expected, task.id
        assert start_of(task) == world.clock.now


# -- opt-outs


@LEVELS
def test_an_opt_out_reaches_every_record_letter_and_lead(level: str, count: int) -> None:
    for task in [task for task, _ in zip(each("optout", level), range(count), strict=False)]:
        world, asked = task.world(), _fields(task)
        (address,) = set(task.truth.never)
        people = {key for key, row in world.crm.contacts.items() if (row.email or "").casefold() == address}
        unmarked = {key for key in people if not world.crm.contacts[key].opted_out}
        assert {goal.key for goal in goals_of(task, Filled)} == unmarked, task.id
        waiting = [key for key, row in world.mail.outbox.items() if row.to == address and row.status == "scheduled"]
        open_leads = [
            key for key, row in world.crm.leads.items() if row.contact in people and row.status in {"new", "working"}
        ]
        expected: dict[tuple[str, str], str] = {(key, "status"): "cancelled" for key in waiting}
        expected |= {(key, "status"): "disqualified" for key in open_leads}
        expected |= {(key, "reason"): "opted_out" for key in open_leads}
        assert asked == expected, task.id
