"""The tools: what they refuse, in words that help, and that what is refused changes nothing."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import quintain as qn
from quintain.environments.support import env
from quintain.environments.support.schema import TABLES
from quintain.environments.support.state import Support
from quintain.resources.database.rows import table_name
from tests.environments.sampled import sampled

from .desk import KINDS, first, solution, value, world_at

SQL: dict[str, str] = {
    "closed": "SELECT min(id) FROM tickets WHERE status = 'closed' AND merged_into IS NULL",
    "new": "SELECT min(id) FROM tickets WHERE status = 'new'",
    "open": "SELECT min(id) FROM tickets WHERE status = 'open'",
    "unlocked": "SELECT min(id) FROM accounts WHERE status = 'active' AND id NOT IN"
    " (SELECT account_id FROM locks WHERE lifted IS NULL)",
    "quiet": "SELECT min(id) FROM accounts WHERE id NOT IN (SELECT account_id FROM sessions WHERE ended IS NULL)",
    "paid": "SELECT min(id) FROM invoices WHERE status = 'paid'",
    "void": "SELECT min(id) FROM invoices WHERE status = 'void'",
    "failed": "SELECT min(id) FROM payments WHERE status = 'failed'",
    "payment": "SELECT min(id) FROM payments WHERE status = 'succeeded'",
    "old card": "SELECT min(id) FROM cards WHERE expires < '2025-01'",
    "current": "SELECT min(id) FROM devices WHERE firmware = '4.2.0'",
    "delivered": "SELECT min(id) FROM orders WHERE status = 'delivered'",
    "cancelled": "SELECT min(id) FROM subscriptions WHERE status = 'cancelled'",
    "running": "SELECT min(id) FROM subscriptions WHERE status = 'active'",
    "postring": "SELECT min(id) FROM parcels WHERE carrier_id = 4",
    "done": "SELECT min(id) FROM parcels WHERE carrier_id = 2 AND status = 'delivered'",
    "gone": "SELECT min(id) FROM agents WHERE is_active = 0",
}
"""Rows of the base that something cannot be done with."""

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("get_ticket", {"ticket_id": 999_999}, "there is no row 999999 in tickets"),
    ("reply", {"ticket_id": "closed", "body": "x"}, "is closed"),
    ("list_tickets", {"view": "mine"}, "see list_views"),
    ("update_ticket", {"ticket_id": "open"}, "give at least one field"),
    ("update_ticket", {"ticket_id": "open", "status": "solved"}, "needs a resolution"),
    ("update_ticket", {"ticket_id": "open", "resolution": "fixed"}, "only a solved ticket"),
    ("update_ticket", {"ticket_id": "open", "assignee_id": "gone"}, "does not work here"),
    ("merge_tickets", {"ticket_id": "open", "duplicate_id": "open"}, "into itself"),
    ("merge_tickets", {"ticket_id": "open", "duplicate_id": "new"}, "different customers"),
    ("remove_tag", {"ticket_id": "open", "tag": "no_such_tag"}, "has no tag"),
    ("verify_identity", {"ticket_id": "open", "customer_id": 2, "last4": "1234"}, "at least two"),
    ("update_customer", {"customer_id": 2}, "give at least one field"),
    ("update_customer", {"customer_id": 2, "email": "nobody"}, "no e-mail address"),
    ("unlock_account", {"account_id": "unlocked"}, "no lock"),
    ("end_sessions", {"account_id": "quiet"}, "nobody is logged in"),
    ("update_firmware", {"device_id": "current"}, "has firmware 4.2.0 already"),
    ("find_invoice", {"number": "R-1"}, "there is no invoice"),
    ("retry_payment", {"invoice_id": "paid"}, "only an open one"),
    ("send_payment_link", {"invoice_id": "void"}, "is void"),
    ("refund_payment", {"payment_id": "failed", "amount_cents": 1, "reason": "x"}, "is failed"),
    ("refund_payment", {"payment_id": "payment", "amount_cents": 9_999_999, "reason": "x"}, "are left of"),
    ("refund_payment", {"payment_id": "payment", "amount_cents": 1, "reason": "x", "approval_id": 7}, "no row 7"),
    ("set_default_card", {"card_id": "old card"}, "has expired"),
    ("change_plan", {"subscription_id": "running", "plan_id": 10}, "no longer offered"),
    ("change_plan", {"subscription_id": "cancelled", "plan_id": 2}, "is cancelled"),
    ("cancel_subscription", {"subscription_id": "cancelled", "when": "now"}, "cancelled already"),
    ("apply_coupon", {"invoice_id": "paid", "code": "NOPE"}, "there is no coupon"),
    ("reissue_invoice", {"invoice_id": "void", "tax_percent": 19}, "void already"),
    ("list_tax_rates", {"country": "XX"}, "no tax rates"),
    ("find_order", {"number": "H-1"}, "there is no order"),
    ("get_product", {"sku": "X"}, "there is no product"),
    ("update_order_address", {"order_id": "delivered", "city": "Ulm"}, "is delivered"),
    ("cancel_order", {"order_id": "delivered"}, "only one that was not shipped"),
    ("redirect_parcel", {"parcel_id": "postring", "street": "A 1", "postcode": "1", "city": "B"}, "does not redirect"),
    ("redirect_parcel", {"parcel_id": "done", "street": "A 1", "postcode": "1", "city": "B"}, "any more"),
    ("find_parcel", {"tracking": "X"}, "there is no parcel"),
]


@pytest.mark.parametrize(("tool", "arguments", "words"), REFUSED)
def test_impossible_call_is_refused_with_a_reason_and_changes_nothing(
    tool: str, arguments: dict[str, Any], words: str
) -> None:
    world = world_at("2025-03-25T09:00:00Z")
    filled = {name: value(world, SQL[given]) if given in SQL else given for name, given in arguments.items()}
    before = world.db.digest()
    with pytest.raises(qn.ToolError, match=words):
        getattr(world, tool)(**filled)
    assert world.db.digest() == before


def test_a_refund_is_never_more_than_what_was_paid_in_however_many_pieces() -> None:
    world = world_at("2025-03-25T09:00:00Z")
    payment, cents = world.db.execute("SELECT id, amount_cents FROM payments WHERE status = 'succeeded' ORDER BY id")[0]
    world.refund_payment(payment, cents - 1, reason="x")
    with pytest.raises(qn.ToolError, match="1 cents are left"):
        world.refund_payment(payment, 2, reason="x")
    world.refund_payment(payment, 1, reason="x")
    assert value(world, "SELECT status FROM payments WHERE id = ?", payment) == "refunded"
    with pytest.raises(qn.ToolError, match="is refunded"):
        world.refund_payment(payment, 1, reason="x")


def test_a_lead_denies_what_nobody_expected_and_then_it_cannot_be_used() -> None:
    world = world_at("2025-03-25T09:00:00Z")
    ticket = value(world, SQL["open"])
    payment = value(world, SQL["payment"])
    world.request_approval(ticket, 20_000, "because")
    with pytest.raises(qn.ToolError, match="not decided yet"):
        world.refund_payment(payment, 1, reason="x", approval_id=1)
    world.wait(5)
    assert world.get_approval(1)["decision"] == "denied"
    with pytest.raises(qn.ToolError, match="denied"):
        world.refund_payment(payment, 1, reason="x", approval_id=1)


def test_no_two_areas_give_one_name_to_two_things() -> None:
    meant = {"happen", "__module__", "__doc__", "__qualname__"}
    owners: dict[str, list[str]] = {}
    for area in Support.__mro__[: Support.__mro__.index(qn.State)]:
        for name, member in vars(area).items():
            if inspect.isfunction(member) and name not in meant and not name.startswith("__"):
                owners.setdefault(name, []).append(area.__name__)
    assert {name: areas for name, areas in owners.items() if len(areas) > 1} == {}


def test_tools_take_time() -> None:
    world = world_at("2025-03-25T09:00:00Z")
    world.list_plans()
    assert world.now == "2025-03-25T09:00:20Z"
    world.add_note(value(world, SQL["open"]), "x")
    assert world.now == "2025-03-25T09:01:50Z"
    assert world.now_is() == "Tuesday 2025-03-25T09:01:50Z"


def test_lists_come_in_pages() -> None:
    world = world_at("2025-03-25T09:00:00Z")
    one, two = (world.list_tickets(view="unsolved", page=page) for page in (1, 2))
    assert one["found"] == two["found"] > 10
    assert len(one["rows"]) == 10
    assert 0 < len(two["rows"]) <= 10
    assert not {row["id"] for row in one["rows"]} & {row["id"] for row in two["rows"]}
    assert world.list_tickets(view="unsolved", page=1000)["rows"] == []


def test_no_answer_depends_on_an_order_that_sqlite_does_not_promise() -> None:
    world = world_at("2025-03-25T09:00:00Z")
    other = world.copy()
    other.db.reverse_unordered_selects()
    customer, account = value(world, "SELECT min(customer_id) FROM orders"), 2

    def answers(one: Support) -> list[object]:
        return [
            one.get_customer(customer),
            one.get_account(account),
            one.list_logins(account),
            one.list_devices(account),
            one.list_invoices(account),
            one.list_orders(customer),
            one.find_customers("an"),
            one.search_tickets("the"),
            one.list_tickets(),
            one.search_articles("a"),
            one.list_incidents("resolved"),
            one.list_groups(),
            one.list_tax_rates("DE"),
            one.get_ticket(value(one, SQL["closed"])),
        ]

    assert answers(world) == answers(other)


@pytest.mark.parametrize("kind", sampled(KINDS, every=5))
def test_no_solution_depends_on_such_an_order(kind: tuple[str, str, str]) -> None:
    task = first(*kind)
    one, other = task.world().copy(), task.world().copy()
    other.db.reverse_unordered_selects()
    for tool, arguments in solution(task):
        assert getattr(one, tool)(**arguments) == getattr(other, tool)(**arguments), tool
    assert one.db.diff(other.db) == []


def test_tables_and_tools_are_as_many_as_the_readme_says() -> None:
    world = world_at("2025-03-25T09:00:00Z")
    assert len(TABLES) == 56
    assert len(env.tools) == 68
    filled = [table for table in TABLES if value(world, f"SELECT count(*) FROM {table_name(table)}")]
    assert len(filled) >= 50
    assert value(world, "SELECT count(*) FROM tickets") == 1500
    assert world.db.execute("PRAGMA foreign_key_check") == []
    assert not [tool for tool in env.tools.values() if tool.roles != ("agent",)]
