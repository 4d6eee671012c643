"""Customers with questions and broken things: tickets, returns, refunds, warranty, complaints."""

from __future__ import annotations

from quintain.environments.enterprise.draft import CompanyDraft
from quintain.environments.enterprise.goals import ref

_SOLD = """
SELECT o.id, o.title, c.name, p.name, l.quantity, l.price FROM sales_orders o JOIN customers c ON c.id = o.customer
JOIN sales_order_lines l ON l.sales_order = o.id JOIN products p ON p.id = l.product
WHERE o.status = 'invoiced' AND l.quantity >= 2 AND o.total > 1200 AND (SELECT count(*) FROM sales_order_lines x
WHERE x.sales_order = o.id AND x.product = l.product) = 1 ORDER BY o.id, l.id
"""


def triage(d: CompanyDraft) -> str:
    """A new ticket gets a queue, a priority and an assignee."""
    d.act_as("support.staff")
    (subject,) = d.pick("SELECT subject FROM tickets WHERE status = 'new' AND priority <> 'high' ORDER BY id")
    number, name = d.pick(
        """SELECT e.id, e.name FROM employees e JOIN teams t ON t.id = e.team
           WHERE e.status = 'active' AND t.department = 'support' AND e.id > 24 ORDER BY e.id"""
    )
    (queue,) = d.pick(
        "SELECT name FROM support_queues WHERE id <> (SELECT queue FROM tickets WHERE subject = ?) ORDER BY id", subject
    )
    d.memory |= {"subject": subject, "agent": number}
    d.look("support_get_ticket", ticket=subject)
    d.do("support_set_ticket_priority", ticket=subject, priority="high")
    d.do("support_move_ticket_to_queue", ticket=subject, queue=queue)
    d.do("support_assign_ticket", ticket=subject, assignee=name)
    d.do("support_add_ticket_comment", ticket=subject, public=True, body="We are on it and will call you today.")
    return (
        f"The new ticket {subject!r} belongs into the queue {queue!r}, with high priority. Assign it to {name}, "
        "and tell "
        "the customer in a public comment that we take care of it."
    )


def escalate(d: CompanyDraft) -> str:
    d.sign_in(d.memory["agent"])
    lead = d.get("SELECT t.lead FROM employees e JOIN teams t ON t.id = e.team WHERE e.id = ?", d.memory["agent"])
    d.look("support_get_ticket", ticket=d.memory["subject"])
    d.look("people_find_teams", text=d.get("SELECT name FROM teams WHERE lead = ?", lead))
    reason = "The customer threatens to leave."
    d.do("support_raise_escalation", ticket=d.memory["subject"], owner=d.name(lead), reason=reason)
    return f"You cannot solve {d.memory['subject']!r} alone. Escalate it to the lead of your team, with a reason."


def solve(d: CompanyDraft) -> str:
    d.sign_in(d.memory["agent"])
    subject = d.memory["subject"]
    d.look("support_get_ticket", ticket=subject)
    d.do("support_solve_ticket", ticket=subject, resolution="A new firmware helped.")
    d.do("support_add_ticket_comment", ticket=subject, public=False, body="Solved by phone with the new firmware.")
    return (
        f"The new firmware has solved {subject!r}. Close the matter for the customer (solved, with a resolution), and "
        "leave an internal comment about how. An escalation, if there is one, is for its owner to resolve."
    )


def open_return(d: CompanyDraft) -> str:
    d.memory["agent"] = d.act_as("support.staff")
    order, _, customer, product, quantity, price = d.pick(_SOLD)
    count = min(2, quantity)
    title = d.fresh("Return")
    d.memory |= {"return": title, "customer": customer, "product": product, "count": count}
    d.memory |= {"order": f"SO-{order}", "price": price}
    d.look("sales_get_sales_order", sales_order=f"SO-{order}")
    arguments = {"title": title, "sales_order": f"SO-{order}", "product": product, "quantity": count}
    d.do("support_open_customer_return", **arguments, reason="defective")
    d.do("support_authorize_customer_return", customer_return=title)
    return (
        f"{customer} reports {count} x {product} of the order SO-{order} as defective. Open the return {title!r} "
        "for them "
        "without a ticket, and authorize it."
    )


def take_return(d: CompanyDraft) -> str:
    d.act_as("logistics.staff")
    title = d.memory["return"]
    d.look("support_get_customer_return", customer_return=title)
    line = ref("return_lines", rma=title, product=d.memory["product"])
    d.do("support_inspect_return_line", return_line=line, condition="broken")
    d.do("logistics_record_return_receipt", rma=title, warehouse="Berlin Central", restocked=False)
    return (
        f"A parcel for {title!r} came to Berlin Central: the {d.memory['product']} are broken. Note the condition "
        "of the "
        "line and record the receipt; nothing of it goes back into stock."
    )


def ask_refund(d: CompanyDraft) -> str:
    d.sign_in(d.memory["agent"])
    amount = d.memory["count"] * d.memory["price"]
    d.memory["amount"] = amount
    d.look("support_get_customer_return", customer_return=d.memory["return"])
    d.look("sales_get_sales_order", sales_order=d.memory["order"])
    d.do("support_request_refund", rma=d.memory["return"], amount=amount)
    return (
        f"The goods of {d.memory['return']!r} are back. Request the refund of what {d.memory['customer']} paid for the "
        f"{d.memory['count']} pieces."
    )


def approve_refund(d: CompanyDraft) -> str:
    d.memory["approver"] = d.act_as("support.manager", limit=d.memory["amount"], but=(d.memory["agent"],))
    d.look("support_find_refunds", rma=d.memory["return"])
    d.do("support_approve_refund", refund=ref("refunds", rma=d.memory["return"], status="requested"))
    return (
        f"{d.name(d.memory['agent'])} requests {d.memory['amount']} euros for {d.memory['return']!r}. Approve the "
        "refund."
    )


def pay_refund(d: CompanyDraft) -> str:
    d.act_as("finance.payer", but=(d.memory["approver"],))
    refund = ref("refunds", rma=d.memory["return"], status="approved")
    d.look("support_get_customer_return", customer_return=d.memory["return"])
    d.do("support_pay_refund", refund=refund, bank_account="Customer receipts")
    return f"Pay the approved refund of {d.memory['return']!r} from the account 'Customer receipts'."


def warranty(d: CompanyDraft) -> str:
    d.act_as("support.staff")
    sql = """SELECT t.subject, p.name FROM tickets t JOIN products p ON p.id = t.product
             WHERE t.status = 'open' AND p.warranty_months >= 12 ORDER BY t.id"""
    subject, product = d.pick(sql)
    is_covered = bool(d.rng.below(2))
    bought = d.day(-d.number(40, 300) if is_covered else -d.number(1150, 1500))
    d.look("support_get_ticket", ticket=subject)
    d.look("sales_get_product", product=product)
    d.do("support_file_warranty_claim", ticket=subject, product=product, bought_on=bought, fault="Does not switch on.")
    claim = ref("warranty_claims", ticket=subject, product=product, bought_on=bought)
    d.do(f"support_{'accept' if is_covered else 'reject'}_warranty_claim", warranty_claim=claim)
    return (
        f"In the ticket {subject!r} the {product}, bought on {bought}, does not switch on any more. File a "
        "warranty claim. "
        "When it is within the warranty of the product, accept it, otherwise reject it."
    )


def complain(d: CompanyDraft) -> str:
    owner = d.act_as("support.staff")
    (customer,) = d.pick("SELECT name FROM customers WHERE status = 'active' ORDER BY id")
    subject, goodwill = d.fresh("Late delivery"), d.number(2, 9) * 10
    d.look("sales_find_customers", text=customer)
    d.do("support_record_complaint", subject=subject, customer=customer, owner=d.name(owner))
    d.do("support_answer_complaint", complaint=subject, goodwill=goodwill)
    return (
        f"{customer} complains about a late delivery. Record it as {subject!r} with yourself as owner, and answer "
        "it with "
        f"{goodwill} euros of goodwill."
    )


def merge(d: CompanyDraft) -> str:
    d.act_as("support.staff")
    sql = """SELECT a.subject, b.subject FROM tickets a JOIN tickets b ON b.customer = a.customer AND b.id < a.id
             WHERE a.status = 'open' AND b.status IN ('open', 'pending') ORDER BY a.id, b.id"""
    duplicate, stays = d.pick(sql)
    d.look("support_get_ticket", ticket=duplicate)
    d.do("support_merge_tickets", ticket=duplicate, target=stays)
    return f"{duplicate!r} is the same matter as {stays!r} of the same customer. Merge the first into the second."


TICKET = (triage, escalate, solve)
RETURN = (open_return, take_return, ask_refund, approve_refund, pay_refund)
WARRANTY = (warranty,)
COMPLAINT = (complain,)
DUPLICATE = (merge,)
