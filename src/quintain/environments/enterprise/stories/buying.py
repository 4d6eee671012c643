"""From a wish to a paid invoice, new suppliers, tenders, budgets and expenses."""

from __future__ import annotations

from quintain.environments.enterprise.draft import CompanyDraft
from quintain.environments.enterprise.goals import ref

_ITEMS = """
SELECT c.name, x.name, s.name FROM catalog_items c JOIN suppliers s ON s.id = c.supplier
JOIN catalog_items x ON x.supplier = s.id AND x.id <> c.id AND x.category = c.category
WHERE c.active = 1 AND x.active = 1 AND s.status = 'approved' AND c.category = 'equipment'
AND c.price BETWEEN 40 AND 800 AND x.price BETWEEN 15 AND 600 ORDER BY c.id, x.id
"""
_BUDGETS = """
SELECT b.id, c.name FROM budgets b JOIN cost_centers c ON c.id = b.cost_center
WHERE b.category = 'equipment' AND b.planned - b.committed - b.spent > 20000 ORDER BY b.id
"""


def request(d: CompanyDraft) -> str:
    """Anybody asks for something."""
    (number,) = d.pick("SELECT id FROM employees WHERE status = 'active' AND id > 100 ORDER BY id")
    d.sign_in(number)
    item, other, supplier = d.pick(_ITEMS)
    budget, center = d.pick(_BUDGETS)
    quantity, more, needed = d.number(2, 9), d.number(1, 5), d.day(30)
    title = d.fresh(f"{item} for {center}")
    d.memory |= {"title": title, "items": {item: quantity, other: more}, "supplier": supplier, "requester": number}
    d.look("procurement_find_catalog_items", text=item)
    d.look("finance_find_budgets", cost_center=center)
    d.do("procurement_create_requisition", title=title, budget=f"BUD-{budget}", needed_by=needed)
    d.do("procurement_add_requisition_line", requisition=title, item=item, quantity=quantity)
    d.do("procurement_add_requisition_line", requisition=title, item=other, quantity=more)
    d.do("procurement_submit_requisition", requisition=title)
    return (
        f"We need {quantity} pieces of {item!r} and {more} of {other!r} by {needed}, on the equipment budget of "
        f"{center!r}. Make a requisition called {title!r} with these two items and submit it for approval."
    )


def approve_requisition(d: CompanyDraft) -> str:
    total = d.get("SELECT total FROM requisitions WHERE title = ?", d.memory["title"])
    d.act_as("procurement.approver", limit=total, but=(d.memory["requester"],))
    d.look("procurement_get_requisition", requisition=d.memory["title"])
    d.do("procurement_approve_requisition", requisition=d.memory["title"])
    return (
        f"{d.name(d.memory['requester'])} waits for your approval of {d.memory['title']!r}. It was talked over; "
        "approve."
    )


def order(d: CompanyDraft) -> str:
    d.memory["buyer"] = d.act_as("procurement.staff", but=(d.memory["requester"],))
    title, supplier = d.memory["title"], d.memory["supplier"]
    d.memory["order"] = d.fresh("Order")
    d.look("procurement_get_requisition", requisition=title)
    d.do("procurement_create_purchase_order", title=d.memory["order"], requisition=title, supplier=supplier)
    d.do("procurement_send_purchase_order", purchase_order=d.memory["order"])
    return (
        f"The requisition {title!r} is approved. Order it from {supplier} as {d.memory['order']!r} and send the order."
    )


def receive(d: CompanyDraft) -> str:
    d.act_as("logistics.staff", but=(d.memory["buyer"],))
    order_, items = d.memory["order"], d.memory["items"]
    (warehouse,) = d.pick("SELECT name FROM warehouses ORDER BY id")
    receipt = d.fresh("Receipt")
    d.look("procurement_get_purchase_order", purchase_order=order_)
    d.do("logistics_open_goods_receipt", title=receipt, purchase_order=order_, warehouse=warehouse)
    for item, quantity in items.items():
        line = ref("purchase_order_lines", purchase_order=order_, item=item)
        d.do("logistics_count_goods_receipt_line", receipt=receipt, order_line=line, quantity=quantity, damaged=0)
    d.do("logistics_post_goods_receipt", goods_receipt=receipt)
    return (
        f"A truck brought {' and '.join(f'{count} x {item!r}' for item, count in items.items())} for {order_!r} to "
        f"{warehouse}, nothing damaged. Book it in as {receipt!r}, count every line and post the receipt."
    )


def enter_invoice(d: CompanyDraft) -> str:
    d.act_as("finance.staff")
    order_, supplier = d.memory["order"], d.memory["supplier"]
    amount = d.get("SELECT total FROM purchase_orders WHERE title = ?", order_)
    number, due = d.fresh("RE"), d.day(30)
    d.memory |= {"invoice": number, "amount": amount}
    d.look("procurement_get_purchase_order", purchase_order=order_)
    arguments = {"number": number, "supplier": supplier, "purchase_order": order_, "amount": amount, "due_on": due}
    d.do("finance_record_supplier_invoice", **arguments)
    d.do("finance_match_supplier_invoice", supplier_invoice=number)
    return (
        f"{supplier} sends the invoice {number!r} for {order_!r}: {amount} euros, due on {due}. Enter it, and do the "
        "three-way match if order and receipt agree."
    )


def approve_invoice(d: CompanyDraft) -> str:
    d.act_as("finance.approver", limit=d.memory["amount"])
    d.look("finance_get_supplier_invoice", supplier_invoice=d.memory["invoice"])
    d.do("finance_approve_supplier_invoice", supplier_invoice=d.memory["invoice"])
    return f"{d.memory['invoice']!r} of {d.memory['supplier']} is matched. Release it for payment."


def prepare_payment(d: CompanyDraft) -> str:
    d.memory["payer"] = d.act_as("finance.payer")
    invoice, run = d.memory["invoice"], d.fresh("Run")
    d.memory["run"] = run
    d.look("finance_find_bank_accounts")
    d.do("finance_prepare_payment_run", title=run, bank_account="Main account")
    d.do("finance_add_payment_to_run", payment_run=run, invoice=invoice)
    return (
        f"Prepare a payment run {run!r} from the main account with the invoice {invoice!r} only; somebody else "
        "executes it."
    )


def execute_payment(d: CompanyDraft) -> str:
    d.act_as("finance.payer", but=(d.memory["payer"],))
    d.look("finance_get_payment_run", payment_run=d.memory["run"])
    d.do("finance_execute_payment_run", payment_run=d.memory["run"])
    return f"{d.name(d.memory['payer'])} has prepared {d.memory['run']!r}. It is in order: execute it."


def propose_supplier(d: CompanyDraft) -> str:
    d.memory["proposer"] = d.act_as("procurement.staff")
    (category,) = d.pick("SELECT name FROM supplier_categories ORDER BY id")
    name, days, until = d.fresh(f"{category} Partner"), d.number(2, 6) * 10, d.day(700)
    d.memory["supplier"] = name
    d.do("procurement_propose_supplier", name=name, category=category, payment_days=days)
    d.do("procurement_record_certificate", supplier=name, kind="quality", valid_until=until)
    return (
        f"We want to buy from {name!r} (category {category}, {days} days to pay). Propose it as a supplier, and record "
        f"its quality certificate, valid until {until}."
    )


def approve_supplier(d: CompanyDraft) -> str:
    d.act_as("procurement.approver", but=(d.memory["proposer"],))
    d.look("procurement_get_supplier", supplier=d.memory["supplier"])
    d.do("procurement_approve_supplier", supplier=d.memory["supplier"])
    return f"{d.memory['supplier']!r} was proposed and has its certificate. Approve the supplier."


def tender(d: CompanyDraft) -> str:
    d.act_as("procurement.staff")
    (category,) = d.pick("SELECT name FROM supplier_categories ORDER BY id")
    title, closes = d.fresh(f"Tender {category}"), d.day(14)
    names = d.rng.sample([name for (name,) in d.desk.db.execute("SELECT name FROM suppliers ORDER BY id")], 3)
    low = d.number(20, 40) * 100
    bids = dict(zip(names, ((low, 40), (low + d.number(1, 9) * 50, 12), (low + 900, 10)), strict=True))
    d.memory |= {"rfq": title, "winner": names[1]}
    d.do("procurement_open_request_for_quotation", title=title, category=category, closes_on=closes)
    for name, (amount, days) in bids.items():
        d.do("procurement_record_bid", rfq=title, supplier=name, amount=amount, delivery_days=days)
    offers = "; ".join(f"{name} offers {amount} euros in {days} days" for name, (amount, days) in bids.items())
    return (
        f"Open a request for quotation {title!r} in {category}, closing on {closes}. Three bids are in already: "
        f"{offers}. "
        "Record them."
    )


def award(d: CompanyDraft) -> str:
    d.act_as("procurement.manager")
    d.look("procurement_get_request_for_quotation", request_for_quotation=d.memory["rfq"])
    bid = ref("bids", rfq=d.memory["rfq"], supplier=d.memory["winner"])
    d.do("procurement_award_request_for_quotation", request_for_quotation=d.memory["rfq"], bid=bid)
    return f"Award {d.memory['rfq']!r} to the cheapest bid that delivers within 15 days, please."


def ask_for_budget(d: CompanyDraft) -> str:
    """The owner of a cost center gives money away."""
    sql = """SELECT b.id, b.category, c.owner FROM budgets b JOIN cost_centers c ON c.id = b.cost_center
             WHERE b.planned - b.committed - b.spent > 12000 ORDER BY b.id"""
    source, category, owner = d.pick(sql)
    d.sign_in(owner)
    target, name, kind = d.pick(
        """SELECT b.id, c.name, b.category FROM budgets b JOIN cost_centers c ON c.id = b.cost_center
           WHERE c.owner <> ? ORDER BY b.id""",
        owner,
    )
    amount = d.number(10, 60) * 100
    d.memory |= {"source": source, "target": target, "amount": amount, "owner": owner}
    own = d.get("SELECT c.name FROM budgets b JOIN cost_centers c ON c.id = b.cost_center WHERE b.id = ?", source)
    d.look("finance_find_budgets", cost_center=own)
    d.look("finance_find_budgets", cost_center=name)
    d.do(
        "finance_request_budget_transfer",
        source=f"BUD-{source}",
        target=f"BUD-{target}",
        amount=amount,
        reason="They need it more than we do this year.",
    )
    return (
        f"You have agreed to give {amount} euros of the {category} budget of {own!r} to the {kind} budget of {name!r}. "
        "Request the transfer."
    )


def move_budget(d: CompanyDraft) -> str:
    m = d.memory
    d.act_as("finance.approver", but=(m["owner"],))
    transfer = ref("budget_transfers", source=f"BUD-{m['source']}", target=f"BUD-{m['target']}", status="requested")
    sql = "SELECT b.planned - b.committed - b.spent, c.name FROM budgets b JOIN cost_centers c ON c.id = b.cost_center"
    left, center = d.desk.db.execute(f"{sql} WHERE b.id = ?", m["source"])[0]
    fits = bool(d.rng.below(2))
    least = (left - m["amount"]) // 1000 * 1000 + (0 if fits else 1000)
    d.look("finance_find_budget_transfers", status="requested")
    d.look("finance_budget_overview", cost_center=center)
    d.do(f"finance_{'approve' if fits else 'reject'}_budget_transfer", budget_transfer=transfer)
    return (
        f"{d.name(m['owner'])} has just requested a transfer of {m['amount']} euros from a budget of {center!r}. "
        "If that one has "
        f"{least} euros or more available afterwards, approve the transfer; if not, reject it."
    )


def claim(d: CompanyDraft) -> str:
    (number,) = d.pick("SELECT id FROM employees WHERE status = 'active' AND id > 72 ORDER BY id")
    d.sign_in(number)
    title, hotel, train, spent = d.fresh("Trip to the fair"), d.number(90, 240), d.number(30, 120), d.day(-3)
    d.memory |= {"claim": title, "claimant": number}
    d.do("finance_create_expense_claim", title=title)
    d.do("finance_add_expense_line", claim=title, kind="hotel", amount=hotel, spent_on=spent)
    d.do("finance_add_expense_line", claim=title, kind="travel", amount=train, spent_on=spent)
    d.do("finance_submit_expense_claim", expense_claim=title)
    return (
        f"Claim your expenses as {title!r}: hotel {hotel} euros and train {train} euros (travel), both on {spent}. "
        "Submit it."
    )


def approve_claim(d: CompanyDraft) -> str:
    d.memory["approver"] = d.act_as("finance.approver", but=(d.memory["claimant"],))
    d.look("finance_get_expense_claim", expense_claim=d.memory["claim"])
    d.do("finance_approve_expense_claim", expense_claim=d.memory["claim"])
    return f"The claim {d.memory['claim']!r} of {d.name(d.memory['claimant'])} has all receipts. Approve it."


def reimburse(d: CompanyDraft) -> str:
    d.act_as("finance.payer", but=(d.memory["approver"], d.memory["claimant"]))
    d.look("finance_get_expense_claim", expense_claim=d.memory["claim"])
    d.do("finance_reimburse_expense_claim", expense_claim=d.memory["claim"], bank_account="Main account")
    return f"Pay the approved claim {d.memory['claim']!r} from the main account."


PURCHASE = (
    request, approve_requisition, order, receive, enter_invoice, approve_invoice, prepare_payment, execute_payment,
)  # fmt: skip
SUPPLIER = (propose_supplier, approve_supplier)
TENDER = (tender, award)
BUDGET = (ask_for_budget, move_budget)
EXPENSES = (claim, approve_claim, reimburse)
