"""reset_leak: customers come in an order that depends on the process.

A customer who is found by name and by a second address is to be listed once, so the hits go through a set. A set of
texts has the order of their hashes, which differ from process to process: two workers list other customers on the first
page, and no order comes twice.
"""

from __future__ import annotations

from typing import Any

from quintain.environments.support.desk import paged, reading
from quintain.environments.support.environment import env as sound
from quintain.environments.support.schema.people import Customer, CustomerIdentity
from quintain.environments.support.state import Support
from quintain.environments.support.tools.people import Line, Page
from quintain.environments.twins import in_place_of, poisoned


class HashedSupport(Support):
    """A help desk that lists each customer once."""

    @in_place_of(Support.find_customers)
    @reading
    def find_customers(self, query: Line, page: Page = 1) -> dict[str, Any]:
        part = f"%{query.replace('%', '').replace('_', '')}%"
        rows = self.rows(Customer, "name LIKE ? OR email LIKE ? OR phone LIKE ?", *[part] * 3)
        also = self.rows(CustomerIdentity, "value LIKE ?", part)
        rows += [self.need(Customer, identity.customer_id) for identity in also]
        once = {(row.email, row.id, row.name, row.country) for row in rows}
        brief = [{"id": key, "name": name, "email": email, "country": country} for email, key, name, country in once]
        return paged(brief, page)


env = poisoned(sound, "reset_leak", state=HashedSupport)
