"""The base that all tasks stand on: the same everywhere, and as consistent as a firm's records are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quintain.authoring import LEVELS
from quintain.environments.support.desk import moment, seconds
from quintain.environments.support.schema import TABLES
from quintain.environments.support.schema.desk import Ticket
from quintain.environments.support.schema.people import SlaTarget
from quintain.environments.support.seed import base
from quintain.environments.support.seed.sowing import DAWN
from quintain.environments.support.state import Support
from quintain.environments.support.tasks import FAMILIES
from quintain.resources.database.rows import table_name

from .desk import first, value


@pytest.fixture(scope="module")
def world() -> Support:
    return Support(db=base().fork())


def test_another_process_under_another_hash_seed_builds_the_same_bytes(tmp_path: Path) -> None:
    code = "from quintain.environments.support.seed import base; print(base().digest())"
    env = os.environ | {"PYTHONHASHSEED": "77", "QUINTAIN_CACHE": str(tmp_path)}
    found = subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True)
    assert found.stdout.strip() == base().digest()


def test_a_task_adds_rows_and_changes_none_of_the_base() -> None:
    for family in FAMILIES:
        for level in LEVELS:
            world = first(family, level, FAMILIES[family][level][0].__name__).world()
            changes = base().diff(world.db)
            assert 10 < len(changes) < 90
            assert not [change for change in changes if change.before is not None]


def test_numbers_of_the_base_are_even_so_that_a_task_finds_room(world: Support) -> None:
    for table in TABLES:
        odd = f"SELECT count(*) FROM {table_name(table)} WHERE id % 2 = 1"
        assert value(world, odd) == 0, table


NONE_SUCH = {
    "accounts locked without a lock": "SELECT 1 FROM accounts a WHERE (status = 'locked') <> EXISTS"
    " (SELECT 1 FROM locks WHERE account_id = a.id AND lifted IS NULL)",
    "paid invoices without a payment": "SELECT 1 FROM invoices i WHERE status = 'paid' AND NOT EXISTS"
    " (SELECT 1 FROM payments WHERE invoice_id = i.id AND status IN ('succeeded', 'refunded'))",
    "open invoices that were paid": "SELECT 1 FROM invoices i WHERE status = 'open' AND EXISTS"
    " (SELECT 1 FROM payments WHERE invoice_id = i.id AND status = 'succeeded')",
    "totals that do not add up": "SELECT 1 FROM invoices WHERE net_cents + tax_cents <> total_cents"
    " OR tax_cents <> (net_cents * tax_percent + 50) / 100",
    "orders that are not the sum of their lines": "SELECT 1 FROM orders o WHERE total_cents <>"
    " (SELECT sum(quantity * price_cents) FROM order_lines WHERE order_id = o.id)",
    "refunded payments without a refund": "SELECT 1 FROM payments p WHERE (status = 'refunded') <> EXISTS"
    " (SELECT 1 FROM refunds WHERE payment_id = p.id)",
    "replies to tickets that are new": "SELECT 1 FROM tickets t WHERE status = 'new' AND EXISTS"
    " (SELECT 1 FROM comments WHERE ticket_id = t.id AND author = 'agent')",
    "solved tickets without a resolution": "SELECT 1 FROM tickets WHERE status IN ('solved', 'closed')"
    " AND (resolution IS NULL OR solved IS NULL)",
    "tickets without both promises": "SELECT 1 FROM tickets t WHERE (SELECT count(*) FROM sla_clocks"
    " WHERE ticket_id = t.id) <> 2",
    "delivered parcels without a scan that says so": "SELECT 1 FROM parcels p WHERE status = 'delivered'"
    " AND shipped < '2025-03-20' AND NOT EXISTS"
    " (SELECT 1 FROM scans WHERE parcel_id = p.id AND text LIKE 'Delivered%')",
    "what happens by itself later": "SELECT 1 FROM payment_retries UNION SELECT 1 FROM scripts",
}


@pytest.mark.parametrize("what", NONE_SUCH)
def test_the_records_agree_with_each_other(world: Support, what: str) -> None:
    assert world.db.execute(NONE_SUCH[what]) == []


def test_base_has_no_rows_in_the_future(world: Support) -> None:
    for table, field in (
        ("tickets", "updated"),
        ("comments", "at"),
        ("scans", "at"),
        ("payments", "at"),
        ("logins", "at"),
    ):
        assert value(world, f"SELECT max({field}) FROM {table}") < moment(DAWN + 86_400), (table, field)


def test_the_records_are_as_messy_as_records_are(world: Support) -> None:
    share = {
        "no phone": "SELECT avg(phone IS NULL) FROM customers",
        "a name in capitals": "SELECT avg(name = upper(name)) FROM customers",
        "an address that another has too": "SELECT avg(lower(email) IN (SELECT lower(email) FROM customers"
        " GROUP BY lower(email) HAVING count(*) > 1)) FROM customers",
        "letters beyond ASCII": "SELECT avg(name GLOB '*[^ -~]*') FROM customers",
        "no subject": "SELECT avg(subject = '(no subject)') FROM tickets",
    }
    for what, sql in share.items():
        assert 0.01 < value(world, sql) < 0.75, (what, value(world, sql))


def test_deadlines_of_the_past_are_those_that_the_desk_would_set(world: Support) -> None:
    rows = world.db.execute("SELECT t.id, c.metric, c.due, t.created, t.priority FROM sla_clocks c"
                            " JOIN tickets t ON t.id = c.ticket_id ORDER BY c.id")  # fmt: skip
    for ticket_id, metric, due, created, priority in rows[::97]:
        policy, hours = world.hours_of(world.need(Ticket, ticket_id))
        (target,) = world.rows(SlaTarget, "policy_id = ? AND priority = ?", policy.id, priority)
        minutes = {"first_reply": target.first_reply_minutes, "resolution": target.resolution_minutes}[metric]
        assert abs(seconds(due) - hours.add(seconds(created), 60 * minutes)) <= 1.0
