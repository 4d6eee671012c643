"""data_realism: all records but those of the job were cleaned up.

The data was prepared without noise: each contact has a phone number, an address and a zone, in one spelling; duplicates
are gone; countries have one name, deals one amount, and the history says the same everywhere. Only the records of the
job kept their gaps and typing errors, and so stand out.
"""

from __future__ import annotations

from typing import Any

import quintain as qn
from quintain.environments.sales import policy
from quintain.environments.sales.environment import env as sound
from quintain.environments.sales.state import Sales
from quintain.environments.twins import poisoned


def tidy(task: qn.Task[Any], world: Sales) -> None:
    """Clean up what the task does not name."""
    crm, job = world.crm, repr((task.truth, task.solution))
    for key, account in crm.accounts.items():
        country = policy.country_of(account)
        account.country = country.name if country else "United Kingdom"
        account.industry = (account.industry or "software").casefold()
        crm.accounts[key] = account
    seen: set[str] = set()
    for key, contact in [(key, row) for key, row in crm.contacts.items() if key not in job]:
        contact.name = " ".join(contact.name.split())
        contact.name = contact.name.title() if contact.name.isupper() or contact.name.islower() else contact.name
        contact.email = (contact.email or f"contact{key[2:]}@mail.example").strip().casefold()
        contact.phone = f"+44 20 {key[2:]}00"
        contact.title = contact.title or "Project Manager"
        contact.zone = policy.zone_of(contact, crm.accounts.get(contact.account or ""))
        crm.contacts[key] = contact
        if contact.email in seen:
            del crm.contacts[key]
        seen.add(contact.email)
    for key, deal in [(key, row) for key, row in crm.opportunities.items() if key not in job]:
        deal.amount_eur = 10_000
        crm.opportunities[key] = deal
    for key, entry in [(key, row) for key, row in crm.activities.items() if row.about not in job]:
        entry.text = "Had a call with the contact."
        crm.activities[key] = entry


env = poisoned(sound, "data_realism", spoil=tidy)
