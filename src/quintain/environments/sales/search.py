"""Search of the CRM: by the words in a few fields, without any meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import quintain as qn
from quintain.authoring import by_content

from .records import Account, Activity, Contact, Lead, Opportunity

if TYPE_CHECKING:
    from .crm import Crm

MAX_KNOWN = 100
"""Contents of tables of which the results are kept."""
RELATED_MAX = 25
"""Related ids that a record shows, of each kind."""


def ranked(crm: Crm, kind: str, query: str) -> list[dict[str, Any]]:
    """Records in which every word occurs: exact names first, then those that begin like the query, then by id."""
    wanted = query.casefold().split()
    hits: list[tuple[int, str, dict[str, Any]]] = []
    for name, text, shown in _ENTRIES[kind](crm.accounts, crm.contacts, crm.leads, crm.opportunities):
        searched = f"{name} {text}".casefold()
        if wanted and all(word in searched for word in wanted):
            title, typed = name.casefold().strip(), " ".join(wanted)
            hits.append((-(title == typed) - title.startswith(typed), shown["id"], shown))
    return [dict(shown) for _, _, shown in sorted(hits, key=lambda hit: hit[:2])]


def related(crm: Crm, record_id: str) -> dict[str, list[str]]:
    """Ids of the records that name this one."""
    found = _links(crm.contacts, crm.leads, crm.opportunities).get(record_id, {})
    return {kind: found[kind][:RELATED_MAX] for kind in ("contacts", "leads", "opportunities") if kind in found}


def entries(crm: Crm, record_id: str) -> list[Activity]:
    """Returns what was noted about a record, newest first."""
    return _noted(crm.activities).get(record_id, [])


# What follows is made once for equal tables, for most calls read and few write.


@by_content(MAX_KNOWN)
def _links(
    contacts: qn.Table[Contact], leads: qn.Table[Lead], deals: qn.Table[Opportunity]
) -> dict[str, dict[str, list[str]]]:
    """Ids, sorted, by the record that they name and by kind."""
    found: dict[str, dict[str, list[str]]] = {}
    named = [("contacts", key, {row.account}) for key, row in contacts.items() if not row.merged_into]
    named += [("leads", key, {row.account, row.contact}) for key, row in leads.items()]
    named += [("opportunities", key, {row.account, row.contact}) for key, row in deals.items()]
    for kind, key, targets in sorted(named, key=lambda entry: entry[1]):
        for target in targets - {None}:
            found.setdefault(target or "", {}).setdefault(kind, []).append(key)
    return found


@by_content(MAX_KNOWN)
def _noted(activities: qn.Table[Activity]) -> dict[str, list[Activity]]:
    """Entries by record, newest first."""
    found: dict[str, list[Activity]] = {}
    for row in sorted(activities.values(), key=lambda activity: activity.at)[::-1]:
        found.setdefault(row.about, []).append(row)
    return found


_Entry = tuple[str, str, dict[str, Any]]
"""Name, further searched text and what a result shows, of one record."""
_Accounts = qn.Table[Account]
_Contacts = qn.Table[Contact]


@by_content(MAX_KNOWN)
def _accounts(accounts: _Accounts, *_: qn.Table[Any]) -> list[_Entry]:
    return [(row.name, row.domain or "", {"id": key, "name": row.name, "country": row.country})
            for key, row in accounts.items()]  # fmt: skip


@by_content(MAX_KNOWN)
def _contacts(accounts: _Accounts, contacts: _Contacts, *_: qn.Table[Any]) -> list[_Entry]:
    found: list[_Entry] = []
    for key, row in contacts.items():
        if not row.merged_into:
            text = " ".join(filter(None, (row.email, row.phone, row.title)))
            shown = {"id": key, "name": row.name, "account": _name(accounts, row.account), "email": row.email}
            found.append((row.name, text, shown))
    return found


@by_content(MAX_KNOWN)
def _leads(accounts: _Accounts, contacts: _Contacts, *others: qn.Table[Any]) -> list[_Entry]:
    found: list[_Entry] = []
    for key, row in others[0].items():
        person, company = _name(contacts, row.contact), _name(accounts, row.account)
        found.append((person, company, {"id": key, "contact": person, "account": company, "status": row.status}))
    return found


@by_content(MAX_KNOWN)
def _deals(*tables: qn.Table[Any]) -> list[_Entry]:
    return [(row.name, "", {"id": key, "name": row.name, "stage": row.stage}) for key, row in tables[-1].items()]


_ENTRIES: dict[str, Callable[..., list[_Entry]]] = {
    "accounts": _accounts, "contacts": _contacts, "leads": _leads, "opportunities": _deals}  # fmt: skip


def _name(table: _Accounts | _Contacts, key: str | None) -> str:
    row = table.get(key or "")
    return row.name if row else ""
