"""silent_default: a mailbox whose service is down looks empty.

Before a letter leaves, the desk looks at what an address has got already. When the mail service times out, that look
shows an empty list, like that of a contact who never got a letter.
"""

from __future__ import annotations

from typing import Any

from quintain.environments.faults import Unavailable
from quintain.environments.sales.environment import env as sound
from quintain.environments.sales.mail import Mail
from quintain.environments.sales.state import Sales
from quintain.environments.twins import in_place_of, poisoned


class PatientMail(Mail):
    """Mailbox that hides the failures of its service."""

    @in_place_of(Mail.sent_to)
    def sent_to(self, address: str) -> list[dict[str, Any]]:
        try:
            return Mail.sent_to(self, address)
        except Unavailable:
            return []


class PatientSales(Sales):
    """The desk with such a mailbox."""

    mail: PatientMail  # pyright: ignore[reportIncompatibleVariableOverride]  # plain Mail is never assigned


env = poisoned(sound, "silent_default", state=PatientSales)
