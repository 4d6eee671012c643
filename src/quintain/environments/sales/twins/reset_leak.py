"""reset_leak: the process keeps search results, and the next episode gets them.

A search goes over all records, so its hits are kept until a record changes. They are kept by the class: the next
episode in this process with the same query gets the hits of another world, or those of its sibling after the sibling's
changes. The episode's own first write drops them all, so that within one episode everything is right. An agent that
searches once more after its last write leaves these hits to the next episode.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from quintain.environments.faults import served
from quintain.environments.sales.crm import Crm, Page, Words
from quintain.environments.sales.environment import env as sound
from quintain.environments.sales.records import LeadReason, LeadStatus
from quintain.environments.sales.state import Sales
from quintain.environments.twins import in_place_of, poisoned


class IndexedCrm(Crm):
    """A CRM that searches once for the same words."""

    hits: ClassVar[dict[tuple[str, str, int], dict[str, Any]]] = {}

    @in_place_of(Crm.search)
    @served
    def search(
        self, kind: Literal["accounts", "contacts", "leads", "opportunities"], query: Words, page: Page = 1
    ) -> dict[str, Any]:
        asked = (kind, query.casefold(), page)
        if asked not in self.hits:
            self.hits[asked] = Crm.search(self, kind, query, page)
        return self.hits[asked]

    @in_place_of(Crm.decide_lead)
    def decide_lead(self, lead_id: str, status: LeadStatus, reason: LeadReason | None = None) -> str:
        self.hits.clear()
        return Crm.decide_lead(self, lead_id, status, reason)

    def _change(self, record_id: str, letter: str, /, **facts: Any) -> str:
        self.hits.clear()
        return super()._change(record_id, letter, **facts)


class IndexedSales(Sales):
    """The desk with such a CRM."""

    crm: IndexedCrm  # pyright: ignore[reportIncompatibleVariableOverride]  # plain Crm is never assigned


env = poisoned(sound, "reset_leak", state=IndexedSales)
