"""Segregation of duties, approval limits, and what must suffice."""

from __future__ import annotations

import pytest

from quintain.environments.enterprise.desk import Desk

from .office import able, office, refusal, use, value


@pytest.fixture
def world() -> Desk:
    return office()


def requisition(world: Desk, requester: int, *, quantity: int = 3, budget: str = "BUD-1") -> str:
    """A submitted requisition; its title."""
    sql = """SELECT c.name FROM catalog_items c JOIN suppliers s ON s.id = c.supplier
             WHERE c.active = 1 AND s.status = 'approved' AND c.price BETWEEN 100 AND 300 ORDER BY c.id"""
    title = f"Things for EMP-{requester}"
    use(world, requester, "procurement_create_requisition", title=title, budget=budget, needed_by="2025-07-01")
    item = value(world, sql)
    use(world, requester, "procurement_add_requisition_line", requisition=title, item=item, quantity=quantity)
    use(world, requester, "procurement_submit_requisition", requisition=title)
    return title


def test_own_requisition_is_not_approved(world: Desk) -> None:
    one, two, *_ = able(world, "procurement.approver")
    title = requisition(world, one)
    said = refusal(world, one, "procurement_approve_requisition", requisition=title)
    assert said == "403: nobody approves their own requisition"
    assert use(world, two, "procurement_approve_requisition", requisition=title)["status"] == "approved"


def test_an_approval_commits_the_budget_which_must_suffice(world: Desk) -> None:
    requester, approver = 200, able(world, "procurement.approver")[0]
    title = requisition(world, requester)
    total, before = value(world, "SELECT total FROM requisitions WHERE title = ?", title), _committed(world)
    world.db.execute("UPDATE budgets SET planned = committed + spent + ? WHERE id = 1", total - 1)
    said = refusal(world, approver, "procurement_approve_requisition", requisition=title)
    assert said == "409: the budget must suffice"
    world.db.execute("UPDATE budgets SET planned = planned + 1 WHERE id = 1")
    use(world, approver, "procurement_approve_requisition", requisition=title)
    assert _committed(world) == before + total


def _committed(world: Desk) -> int:
    return int(value(world, "SELECT committed FROM budgets WHERE id = 1"))


def test_an_approval_has_a_limit(world: Desk) -> None:
    approver = able(world, "procurement.approver")[0]
    title = requisition(world, 200)
    world.db.execute("UPDATE employees SET approval_limit = 50 WHERE id = ?", approver)
    said = refusal(world, approver, "procurement_approve_requisition", requisition=title)
    assert said == "409: the total must be within your approval limit"


def test_only_the_requester_changes_and_submits_a_draft(world: Desk) -> None:
    use(world, 200, "procurement_create_requisition", title="Mine", budget="BUD-1", needed_by="2025-07-01")
    line = {"requisition": "Mine", "item": "ITM-1", "quantity": 1}
    assert refusal(world, 201, "procurement_add_requisition_line", **line).startswith("403: only to your own")
    assert refusal(world, 201, "procurement_submit_requisition", requisition="Mine").startswith(
        "403: only its requester"
    )
    assert refusal(world, 200, "procurement_submit_requisition", requisition="Mine") == "409: it must have lines"


def test_requester_cannot_order_and_buyer_cannot_receive(world: Desk) -> None:
    buyer, other, *_ = able(world, "procurement.staff")
    title = requisition(world, buyer)
    use(world, able(world, "procurement.approver")[0], "procurement_approve_requisition", requisition=title)
    supplier = value(
        world,
        """SELECT s.name FROM requisition_lines l JOIN requisitions r ON r.id = l.requisition
           JOIN catalog_items c ON c.id = l.item JOIN suppliers s ON s.id = c.supplier WHERE r.title = ?""",
        title,
    )
    wrong = value(world, "SELECT name FROM suppliers WHERE status = 'approved' AND name <> ? ORDER BY id", supplier)
    order = {"title": "The order", "requisition": title, "supplier": supplier}
    assert refusal(world, buyer, "procurement_create_purchase_order", **order).startswith("403: who asked")
    assert "must sell every item" in refusal(
        world, other, "procurement_create_purchase_order", **(order | {"supplier": wrong})
    )
    use(world, other, "procurement_create_purchase_order", **order)
    use(world, other, "procurement_send_purchase_order", purchase_order="The order")
    world.db.execute(
        """INSERT OR IGNORE INTO role_grants (employee, role, granted_by, granted_on, status)
           SELECT ?, id, 1, '2025-01-01', 'active' FROM roles WHERE name = 'logistics.staff'""",
        other,
    )
    receipt = {"title": "Receipt", "purchase_order": "The order", "warehouse": "WH-1"}
    use(world, other, "logistics_open_goods_receipt", **receipt)
    line = value(world, "SELECT max(id) FROM purchase_order_lines")
    much = {"receipt": "Receipt", "order_line": f"POL-{line}", "damaged": 0}
    use(world, other, "logistics_count_goods_receipt_line", **much, quantity=99)
    assert refusal(world, other, "logistics_post_goods_receipt", goods_receipt="Receipt").startswith("403: who ordered")
    said = refusal(world, able(world, "logistics.staff")[-1], "logistics_post_goods_receipt", goods_receipt="Receipt")
    assert "below what is possible" in said  # more than was ordered


def test_an_invoice_is_matched_with_order_and_receipt(world: Desk) -> None:
    clerk = able(world, "finance.staff")[0]
    number, supplier, total = world.db.execute(
        "SELECT id, supplier, total FROM purchase_orders WHERE status = 'received' ORDER BY id"
    )[0]
    given = {"supplier": f"SUP-{supplier}", "purchase_order": f"PO-{number}", "due_on": "2025-07-01"}
    use(world, clerk, "finance_record_supplier_invoice", number="A", amount=total + 1, **given)
    use(world, clerk, "finance_record_supplier_invoice", number="B", amount=total, **given)
    said = refusal(world, clerk, "finance_match_supplier_invoice", supplier_invoice="A")
    assert said == "409: the invoice must have the amount of the order"
    assert use(world, clerk, "finance_match_supplier_invoice", supplier_invoice="B")["status"] == "matched"


def test_payment_run_is_not_executed_by_its_preparer(world: Desk) -> None:
    one, two, *_ = able(world, "finance.payer")
    invoice = value(world, "SELECT min(id) FROM supplier_invoices WHERE status = 'approved'")
    amount = value(world, "SELECT amount FROM supplier_invoices WHERE id = ?", invoice)
    use(world, one, "finance_prepare_payment_run", title="Run", bank_account="Reserve")
    use(world, one, "finance_add_payment_to_run", payment_run="Run", invoice=f"SI-{invoice}")
    assert refusal(world, one, "finance_execute_payment_run", payment_run="Run").startswith("403: who prepared")
    before = value(world, "SELECT balance FROM bank_accounts WHERE name = 'Reserve'")
    use(world, two, "finance_execute_payment_run", payment_run="Run")
    assert value(world, "SELECT balance FROM bank_accounts WHERE name = 'Reserve'") == before - amount
    assert value(world, "SELECT status FROM supplier_invoices WHERE id = ?", invoice) == "paid"


def test_a_payroll_takes_three_people(world: Desk) -> None:
    clerk, other, *_ = able(world, "people.payroll")
    controller = able(world, "finance.controller")[0]
    use(world, clerk, "people_calculate_payroll_run", payroll_run="PAY-18")
    assert refusal(world, clerk, "people_approve_payroll_run", payroll_run="PAY-18").startswith("403")
    use(world, controller, "people_approve_payroll_run", payroll_run="PAY-18")
    assert use(world, other, "people_pay_payroll_run", payroll_run="PAY-18")["status"] == "paid"
    active = value(world, "SELECT count(*) FROM employees WHERE status = 'active'")
    assert value(world, "SELECT count(*) FROM payslips WHERE payroll_run = 18 AND status = 'released'") == active


def test_leave_is_approved_by_the_manager_alone(world: Desk) -> None:
    asker = 150
    boss = value(world, "SELECT manager FROM employees WHERE id = ?", asker)
    world.db.execute("UPDATE leave_balances SET entitled = 30, taken = 26 WHERE employee = ?", asker)
    world.db.execute("UPDATE employees SET status = 'active' WHERE id = ?", asker)
    for days in (5, 4):
        use(
            world,
            asker,
            "people_request_leave",
            leave_type="Annual leave",
            since="2025-08-04",
            until="2025-08-09",
            days=days,
        )
    fine, much = (key for (key,) in world.db.execute("SELECT id FROM leave_requests ORDER BY id DESC LIMIT 2"))
    assert refusal(world, asker, "people_approve_leave_request", leave_request=f"LV-{fine}").startswith("403")
    said = refusal(world, boss, "people_approve_leave_request", leave_request=f"LV-{much}")
    assert said == "409: the balance must suffice"
    use(world, boss, "people_approve_leave_request", leave_request=f"LV-{fine}")
    assert value(world, "SELECT taken FROM leave_balances WHERE employee = ?", asker) == 30


def test_stock_is_reserved_then_taken_and_never_twice(world: Desk) -> None:
    planner, packer = able(world, "logistics.planner")[0], able(world, "logistics.staff")[0]
    order, product, quantity = world.db.execute(
        """SELECT o.id, l.product, sum(l.quantity) FROM sales_orders o JOIN sales_order_lines l ON l.sales_order = o.id
           WHERE o.status = 'released' AND NOT EXISTS (SELECT 1 FROM shipments s WHERE s.sales_order = o.id)
           GROUP BY l.id ORDER BY l.id"""
    )[0]
    world.db.execute("DELETE FROM sales_order_lines WHERE sales_order = ? AND product <> ?", order, product)
    stock = "SELECT {} FROM stock_levels WHERE warehouse = 1 AND product = ?"
    world.db.execute("UPDATE stock_levels SET on_hand = ?, reserved = 0 WHERE product = ?", quantity - 1, product)
    plan = {"title": "Shipment", "sales_order": f"SO-{order}", "warehouse": "WH-1", "ships_on": "2025-06-05"}
    assert "every product free" in refusal(world, planner, "logistics_plan_shipment", **plan)
    world.db.execute("UPDATE stock_levels SET on_hand = ? WHERE product = ?", quantity, product)
    use(world, planner, "logistics_plan_shipment", **plan)
    assert value(world, stock.format("on_hand - reserved"), product) == 0
    use(world, packer, "logistics_create_pick_list", shipment="Shipment", picker=f"EMP-{packer}")
    pick = value(world, "SELECT max(id) FROM pick_lists")
    use(world, packer, "logistics_finish_pick_list", pick_list=f"PCK-{pick}")
    assert refusal(world, packer, "logistics_ship_shipment", shipment="Shipment") == "409: it needs a carrier"
    use(world, planner, "logistics_choose_shipment_carrier", shipment="Shipment", carrier="CAR-1")
    use(world, packer, "logistics_ship_shipment", shipment="Shipment")
    assert value(world, stock.format("on_hand"), product) == 0
    assert value(world, "SELECT status FROM sales_orders WHERE id = ?", order) == "shipped"


def test_a_large_change_of_price_needs_the_manager_too(world: Desk) -> None:
    pricing = next(n for n in able(world, "sales.pricing") if n not in able(world, "sales.manager"))
    boss = next(n for n in able(world, "sales.pricing") if n in able(world, "sales.manager"))
    price = value(world, "SELECT price FROM prices WHERE id = 150")
    small, large = price + price * 10 // 100, price * 2
    assert use(world, pricing, "sales_change_price_entry", price_entry="PRI-150", price=small)["price"] == small
    said = refusal(world, pricing, "sales_change_price_entry", price_entry="PRI-150", price=large)
    assert said.startswith("403: this change is for the role sales.manager")
    assert use(world, boss, "sales_change_price_entry", price_entry="PRI-150", price=large)["price"] == large


def test_disabling_an_account_takes_its_access_and_roles(world: Desk) -> None:
    leaver, admin = 240, able(world, "it.staff")[0]
    account = value(world, "SELECT id FROM user_accounts WHERE employee = ?", leaver)
    world.db.execute("UPDATE user_accounts SET status = 'active' WHERE id = ?", account)
    use(world, admin, "it_disable_user_account", user_account=f"UA-{account}")
    assert world.db.execute("SELECT 1 FROM group_memberships WHERE account = ?", account) == []
    assert world.db.execute("SELECT 1 FROM role_grants WHERE employee = ? AND status = 'active'", leaver) == []
