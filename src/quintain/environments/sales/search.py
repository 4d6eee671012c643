"""How the CRM finds records: like any CRM, by the words in a few fields, and not by what one means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .records import Contact

if TYPE_CHECKING:
    from .crm import Crm

RELATED_MAX = 25
"""Ids shown beside a record, of each kind."""


def ranked(crm: Crm, kind: str, query: str) -> list[dict[str, Any]]:
    """Records in which every word occurs: exact names first, then those that begin like the query, then by id."""
    wanted = query.casefold().split()
    hits: list[tuple[int, str, dict[str, Any]]] = []
    for name, text, shown in _entries(crm, kind):
        searched = f"{name} {text}".casefold()
        if wanted and all(word in searched for word in wanted):
            title, typed = name.casefold().strip(), " ".join(wanted)
            hits.append((-(title == typed) - title.startswith(typed), shown["id"], shown))
    return [shown for _, _, shown in sorted(hits, key=lambda hit: hit[:2])]


def related(crm: Crm, record_id: str) -> dict[str, list[str]]:
    """Ids of the records that name this one."""
    found = {
        "contacts": [key for key, row in crm.contacts.items() if row.account == record_id and not row.merged_into],
        "leads": [key for key, row in crm.leads.items() if record_id in {row.account, row.contact}],
        "opportunities": [key for key, row in crm.opportunities.items() if record_id in {row.account, row.contact}],
    }
    return {kind: sorted(keys)[:RELATED_MAX] for kind, keys in found.items() if keys}


def _entries(crm: Crm, kind: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, further searched text and what a result shows, of each record of a kind."""
    match kind:
        case "accounts":
            for key, row in crm.accounts.items():
                yield row.name, row.domain or "", {"id": key, "name": row.name, "country": row.country}
        case "contacts":
            for key, contact in crm.contacts.items():
                if not contact.merged_into:
                    yield contact.name, _searched(contact), {"id": key} | _card(crm, contact)
        case "leads":
            for key, lead in crm.leads.items():
                person, company = _names(crm, lead.contact, lead.account)
                yield person, company, {"id": key, "contact": person, "account": company, "status": lead.status}
        case _:
            for key, deal in crm.opportunities.items():
                yield deal.name, "", {"id": key, "name": deal.name, "stage": deal.stage}


def _searched(contact: Contact) -> str:
    return " ".join(filter(None, (contact.email, contact.phone, contact.title)))


def _card(crm: Crm, contact: Contact) -> dict[str, Any]:
    return {"name": contact.name, "account": _names(crm, "", contact.account)[1], "email": contact.email}


def _names(crm: Crm, contact_id: str, account_id: str | None) -> tuple[str, str]:
    contact, account = crm.contacts.get(contact_id), crm.accounts.get(account_id or "")
    return contact.name if contact else "", account.name if account else ""
