"""The policy, read once more and independently: what the tasks ask for is what the records and the rules say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from quintain.environments.support import env, policy
from quintain.environments.support.desk import seconds

from .desk import Task, first, solution, ticket_of

Facts = dict[str, Any]


def _each(family: str, count: int = 12) -> Iterator[Task]:
    """Tasks of a family from train, all levels."""
    tasks = env.tasks("train")
    place = [task.tags["family"] for task in tasks[:8]].index(family)
    yield from (tasks[place + 8 * n] for n in range(0, 6 * count, 5))


def _rows(task: Task, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    return task.world().db.execute(sql, *values)


def _requester(task: Task) -> int:
    ((found,),) = _rows(task, "SELECT requester_id FROM tickets WHERE id = ?", ticket_of(task))
    return int(found)


def _made(task: Task, tool: str) -> list[Facts]:
    return [given for name, given in solution(task) if name == tool]


def test_the_knowledge_base_holds_the_whole_policy() -> None:
    world = first("charge", "easy", "twice").world()
    articles = world.db.execute("SELECT title, body FROM articles WHERE section = 'policy' ORDER BY id")
    text = policy.POLICY[policy.POLICY.index("# ") :]
    assert [line for _, body in articles for line in body.splitlines() if line] == [
        line for line in text.splitlines() if line and not line.startswith("# ")
    ]
    assert [title for title, _ in articles] == [
        f"Policy: {line[2:].partition(' (')[0]}" for line in text.splitlines() if line.startswith("# ")
    ]


def test_exactly_the_later_of_two_payments_of_one_invoice_is_refunded() -> None:
    sql = """
        SELECT p.id, p.amount_cents FROM payments p JOIN invoices i ON i.id = p.invoice_id
        JOIN accounts a ON a.id = i.account_id
        WHERE a.customer_id = ? AND p.status = 'succeeded' AND EXISTS (
            SELECT 1 FROM payments q WHERE q.invoice_id = p.invoice_id AND q.status = 'succeeded' AND q.at < p.at)
    """
    seen = set()
    for task in _each("charge"):
        expected = [] if task.tags["variant"] == "denied" else _rows(task, sql, _requester(task))
        assert [(given["payment_id"], given["amount_cents"]) for given in _made(task, "refund_payment")] == expected, (
            task.id
        )
        dear = any(cents > policy.REFUND_LIMIT_CENTS for _, cents in expected) or task.tags["variant"] == "denied"
        assert bool(_made(task, "request_approval")) == dear
        seen.add(bool(expected))
    assert seen == {True, False}


def test_exactly_the_coupons_that_count_are_applied() -> None:
    sql = """
        SELECT i.id, c.code, i.issued, c.valid_from, c.valid_until, c.plan_id, s.plan_id, c.minimum_cents, i.net_cents,
            c.uses_left, i.status
        FROM invoices i JOIN accounts a ON a.id = i.account_id JOIN subscriptions s ON s.id = i.subscription_id,
            coupons c, comments m
        WHERE a.customer_id = ? AND m.ticket_id = ? AND instr(m.body, c.code) AND instr(m.body, i.number)
    """
    seen = set()
    for task in _each("pricing"):
        expected = set()
        for row in _rows(task, sql, _requester(task), ticket_of(task)):
            invoice, code, issued, begins, ends, wanted, plan, least, net, uses, status = row
            last = date.fromisoformat(ends) + timedelta(days=policy.GRACE_DAYS)
            in_time = begins <= issued <= last.isoformat()
            if in_time and wanted in {None, plan} and net >= least and uses != 0 and status == "paid":
                expected.add((invoice, code))
        found = {(given["invoice_id"], given["code"]) for given in _made(task, "apply_coupon")}
        if task.tags["variant"] == "both":  # it goes on the invoice that takes the place of the old one
            found = {(given["invoice_id"], code) for given in _made(task, "reissue_invoice") for _, code in found}
        assert found == expected, task.id
        seen.add(task.tags["variant"])
    assert seen == {"missing", "wrong_tax", "in_grace", "expired", "other_plan", "both", "used"}


def test_exactly_the_wrong_tax_rates_are_corrected() -> None:
    sql = """
        SELECT i.id, i.tax_percent, CASE WHEN o.vat_id IS NOT NULL AND o.country <> 'DE' THEN 0 ELSE (
            SELECT t.percent FROM tax_rates t WHERE t.country = c.country AND t.valid_from <= i.issued
            ORDER BY t.valid_from DESC LIMIT 1) END
        FROM customers c JOIN accounts a ON a.customer_id = c.id JOIN invoices i ON i.account_id = a.id
        LEFT JOIN organisations o ON o.id = c.organisation_id WHERE c.id = ? AND i.status = 'paid'
    """
    for task in _each("pricing"):
        expected = [(one, right) for one, percent, right in _rows(task, sql, _requester(task)) if percent != right]
        found = [(given["invoice_id"], given["tax_percent"]) for given in _made(task, "reissue_invoice")]
        assert found == expected, task.id


def test_exactly_the_parcels_that_are_silent_for_too_long_are_lost() -> None:
    sql = """
        SELECT p.id, p.status, c.lost_after_days, (SELECT max(at) FROM scans s WHERE s.parcel_id = p.id), o.total_cents
        FROM parcels p JOIN orders o ON o.id = p.order_id JOIN carriers c ON c.id = p.carrier_id WHERE o.customer_id = ?
    """
    seen = set()
    for task in _each("parcel"):
        now = task.world().clock.now
        lost = {
            parcel: total
            for parcel, status, limit, last, total in _rows(task, sql, _requester(task))
            if status == "in_transit" and now - seconds(last) > limit * 86_400
        }
        assert {given["parcel_id"] for given in _made(task, "open_claim") if given["reason"] == "lost"} == set(lost), (
            task.id
        )
        if lost:
            (total,) = lost.values()
            decided = total >= policy.DEAR_ORDER_CENTS
            approved = bool(_made(task, "refund_order")) and total > policy.REFUND_LIMIT_CENTS
            assert bool(_made(task, "request_approval")) == approved, task.id
            assert bool(_made(task, "wait")) == (decided or approved), task.id
        seen.add((bool(lost), task.tags["level"]))
    assert len(seen) >= 4


def test_credits_for_a_wrong_plan_are_the_difference_with_tax_of_the_latest_paid_invoices() -> None:
    sql = """
        SELECT s.id, o.id, o.price_cents, p.price_cents FROM subscriptions s JOIN accounts a ON a.id = s.account_id
        JOIN plans p ON p.id = s.plan_id JOIN plans o ON o.id = s.ordered_plan_id
        WHERE a.customer_id = ? AND s.plan_id <> s.ordered_plan_id
    """
    paid = "SELECT tax_percent FROM invoices WHERE subscription_id = ? AND status = 'paid' ORDER BY issued DESC LIMIT ?"
    seen = set()
    for task in _each("plan"):
        expected = []
        for subscription, plan, right, wrong in _rows(task, sql, _requester(task)):
            cents = sum(
                wrong - right + ((wrong - right) * percent + 50) // 100
                for (percent,) in _rows(task, paid, subscription, policy.BACK_INVOICES)
            )
            expected.append((subscription, plan, cents))
        changed = [(given["subscription_id"], given["plan_id"]) for given in _made(task, "change_plan")]
        credited = [given["amount_cents"] for given in _made(task, "grant_credit")]
        assert [(*pair, cents) for pair, cents in zip(changed, credited, strict=True)] == expected, task.id
        assert bool(_made(task, "request_approval")) == any(c > policy.CREDIT_LIMIT_CENTS for *_, c in expected)
        seen.add(len(expected))
    assert seen == {0, 1}


def test_subscriptions_are_cancelled_at_once_only_in_the_time_for_withdrawal() -> None:
    sql = "SELECT started FROM subscriptions s JOIN accounts a ON a.id = s.account_id WHERE a.customer_id = ?"
    seen = set()
    for task in _each("plan"):
        for given in _made(task, "cancel_subscription"):
            ((started,),) = _rows(task, sql, _requester(task))
            days = (task.world().clock.now - seconds(started)) / 86_400
            assert (given["when"] == "now") == (days <= policy.WITHDRAWAL_DAYS), task.id
            assert bool(_made(task, "refund_payment")) == (given["when"] == "now")
            seen.add(given["when"])
    assert seen == {"now", "period_end"}


def test_verification_uses_details_from_the_ticket_and_changes_nothing_when_it_fails() -> None:
    for family in ("lockout", "payment", "address", "plan"):
        for task in _each(family, 6):
            sensitive = [name for name, _ in solution(task) if name in policy.SENSITIVE]
            if sensitive:
                assert _made(task, "verify_identity"), task.id
            for given in _made(task, "verify_identity"):
                world = task.world().copy()
                details = {kind: given[kind] for kind in ("number", "postcode", "last4") if kind in given}
                found = world.verify_identity(given["ticket_id"], given["customer_id"], **details)
                assert found["verified"] == bool(sensitive), task.id
