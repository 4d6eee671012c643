"""Base of all tables: a number for a key, and texts for times."""

from __future__ import annotations

from typing import Annotated

import msgspec

from quintain.resources.database import Indexed

Moment = str
"""A time in UTC such as 2025-03-11T14:30:00Z; sorts as text."""
Day = str
"""A date such as 2025-03-11."""
Cents = int
"""Money in hundredths of a euro."""

Found = Annotated[str, Indexed()]
"""Text that rows are found by."""


class Row(msgspec.Struct, kw_only=True):
    """A row of the world."""

    id: int
