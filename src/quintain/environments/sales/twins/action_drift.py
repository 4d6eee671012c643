"""action_drift: the history comes oldest first, and its description still says newest first.

The rules of the desk say that the newest entry counts. An agent that believes the description takes the outdated
number, which stands first.
"""

from __future__ import annotations

from typing import Any

from quintain.environments.faults import served
from quintain.environments.sales.crm import PAGE, Crm, Page
from quintain.environments.sales.environment import env as sound
from quintain.environments.sales.state import Sales
from quintain.environments.twins import in_place_of, poisoned


class DriftedCrm(Crm):
    """A CRM whose lists were turned round by an upgrade."""

    @in_place_of(Crm.history)
    @served
    def history(self, record_id: str, page: Page = 1) -> dict[str, Any]:
        self._table(record_id)
        about = [activity for activity in self.activities.values() if activity.about == record_id]
        listed = sorted(about, key=lambda activity: activity.at)
        shown = [f"{a.at} {a.kind}: {a.text}" for a in listed[(page - 1) * PAGE : page * PAGE]]
        return {"found": len(listed), "page": page, "pages": -(-len(listed) // PAGE), "entries": shown}


class DriftedSales(Sales):
    """The desk with such a CRM."""

    crm: DriftedCrm  # pyright: ignore[reportIncompatibleVariableOverride]  # plain Crm is never assigned


env = poisoned(sound, "action_drift", state=DriftedSales)
