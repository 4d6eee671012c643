"""stale_cache: records are read through a cache, and two tools write past it.

Every `update_` tool changes its record by `_change`, which drops the record from the cache. `decide_lead` sets status
and reason itself, and `merge_contacts` moves records itself: a lead that was read before shows its old status
afterwards, and the old contact. The ids of related records are cached with it and grow stale as well.
"""

from __future__ import annotations

from typing import Any

import msgspec

from quintain.environments.faults import served
from quintain.environments.sales.crm import Crm
from quintain.environments.sales.environment import env as sound
from quintain.environments.sales.state import Sales
from quintain.environments.twins import in_place_of, poisoned


class CachedCrm(Crm):
    """A CRM that is spared to read a record twice."""

    cache: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict[str, dict[str, Any]])

    @in_place_of(Crm.get)
    @served
    def get(self, record_id: str) -> dict[str, Any]:
        if record_id not in self.cache:
            self.cache[record_id] = Crm.get(self, record_id)
        return self.cache[record_id]

    def _change(self, record_id: str, letter: str, /, **facts: Any) -> str:
        self.cache.pop(record_id, None)
        return super()._change(record_id, letter, **facts)


class CachedSales(Sales):
    """The desk with such a CRM."""

    crm: CachedCrm  # pyright: ignore[reportIncompatibleVariableOverride]  # plain Crm is never assigned


env = poisoned(sound, "stale_cache", state=CachedSales)
