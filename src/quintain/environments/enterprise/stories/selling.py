"""From a deal to the customer's money; prices, discounts and leads."""

from __future__ import annotations

from quintain.environments.enterprise.draft import CompanyDraft
from quintain.environments.enterprise.goals import keyed, ref

_CUSTOMERS = """
SELECT c.name FROM customers c WHERE c.status = 'active' AND c.credit_limit >= 20000 + (SELECT
coalesce(sum(open_amount), 0) FROM customer_invoices i WHERE i.customer = c.id AND i.status = 'open') ORDER BY c.id
"""
_PRODUCTS = """
SELECT p.name FROM products p WHERE p.status = 'active' AND EXISTS (SELECT 1 FROM stock_levels s
WHERE s.product = p.id AND s.on_hand - s.reserved > 60 AND s.warehouse = 1) ORDER BY p.id
"""


def deal(d: CompanyDraft) -> str:
    d.memory["owner"] = d.act_as("sales.staff")
    (customer,) = d.pick(_CUSTOMERS)
    product, other = (name for (name,) in d.rng.sample(d.desk.db.execute(_PRODUCTS), 2))
    quantity, more, closes = d.number(4, 15), d.number(1, 6), d.day(20)
    title = d.fresh(f"{product} for {customer.split()[0]}")
    d.memory |= {"deal": title, "customer": customer, "product": product}
    d.look("sales_get_customer", customer=customer)
    d.do("sales_create_opportunity", title=title, customer=customer, closes_on=closes)
    d.do("sales_add_opportunity_line", opportunity=title, product=product, quantity=quantity)
    d.do("sales_add_opportunity_line", opportunity=title, product=other, quantity=more)
    d.do("sales_propose_opportunity", opportunity=title)
    return (
        f"{customer} wants {quantity} x {product} and {more} x {other}. Open the deal {title!r}, closing on "
        f"{closes}, with "
        "these two products, and move it to proposal."
    )


def quote(d: CompanyDraft) -> str:
    d.sign_in(d.memory["owner"])
    title, discount, valid = d.fresh("Quote"), d.number(1, 5), d.day(30)
    d.memory["quote"] = title
    d.look("sales_get_opportunity", opportunity=d.memory["deal"])
    d.do("sales_draft_quote", title=title, opportunity=d.memory["deal"], valid_until=valid)
    d.do("sales_set_quote_discount", quote=title, discount=discount)
    d.do("sales_send_quote", quote=title)
    return (
        f"Quote your deal {d.memory['deal']!r} as {title!r}, valid until {valid}, with {discount} percent off, and "
        "send it."
    )


def accept(d: CompanyDraft) -> str:
    d.sign_in(d.memory["owner"])
    d.look("sales_get_quote", quote=d.memory["quote"])
    d.do("sales_accept_quote", quote=d.memory["quote"])
    d.do(
        "sales_release_sales_order",
        sales_order=ref("sales_orders", quote=d.memory["quote"], customer=d.memory["customer"]),
    )
    d.do("sales_win_opportunity", opportunity=d.memory["deal"])
    return (
        f"{d.memory['customer']} accepts {d.memory['quote']!r}. Note it, release the order to the warehouse, and "
        "mark the "
        f"deal {d.memory['deal']!r} as won."
    )


def plan_shipment(d: CompanyDraft) -> str:
    d.act_as("logistics.planner")
    title, ships = d.fresh("Shipment"), d.day(2)
    (carrier,) = d.pick("SELECT name FROM carriers WHERE active = 1 ORDER BY id")
    d.memory["shipment"] = title
    order = ref("sales_orders", quote=d.memory["quote"], customer=d.memory["customer"])
    d.look("sales_find_sales_orders", customer=d.memory["customer"], status="released")
    d.look("sales_get_sales_order", sales_order=keyed(d.desk, order))
    d.look("logistics_stock_of_product", product=d.memory["product"])
    d.do("logistics_plan_shipment", title=title, sales_order=order, warehouse="Berlin Central", ships_on=ships)
    d.do("logistics_choose_shipment_carrier", shipment=title, carrier=carrier)
    return (
        f"The order of {d.memory['customer']} from the quote {d.memory['quote']!r} is released. Plan its shipment "
        f"{title!r} from Berlin Central for {ships}, with {carrier}."
    )


def ship(d: CompanyDraft) -> str:
    d.act_as("logistics.staff")
    shipment, picker = d.memory["shipment"], d.name()
    d.look("logistics_get_shipment", shipment=shipment)
    d.do("logistics_create_pick_list", shipment=shipment, picker=picker)
    d.do("logistics_finish_pick_list", pick_list=ref("pick_lists", shipment=shipment, status="open"))
    d.do("logistics_ship_shipment", shipment=shipment)
    return (
        f"Get {shipment!r} out today: make the pick list with yourself as picker, finish it, and hand it to the "
        "carrier."
    )


def bill(d: CompanyDraft) -> str:
    d.act_as("finance.staff")
    due = d.day(30)
    d.memory["due"] = due
    order = ref("sales_orders", quote=d.memory["quote"], customer=d.memory["customer"])
    d.look("sales_find_sales_orders", customer=d.memory["customer"], status="shipped")
    d.do("finance_issue_customer_invoice", customer=d.memory["customer"], sales_order=order, due_on=due)
    return (
        f"The order of {d.memory['customer']} from {d.memory['quote']!r} has left the house. Invoice it, due on {due}."
    )


def cash(d: CompanyDraft) -> str:
    d.act_as("finance.staff")
    customer = d.memory["customer"]
    order = ref("sales_orders", quote=d.memory["quote"], customer=d.memory["customer"])
    amount = d.get(
        """SELECT i.amount FROM customer_invoices i JOIN sales_orders o ON o.id = i.sales_order
           JOIN quotes q ON q.id = o.quote WHERE q.title = ?""",
        d.memory["quote"],
    )
    d.look("finance_find_customer_invoices", customer=customer, status="open")
    invoice = ref("customer_invoices", sales_order=order)
    d.do("finance_record_customer_payment", invoice=invoice, amount=amount, paid_on=d.day(0))
    return (
        f"{customer} has paid {amount} euros today for the order from the quote {d.memory['quote']!r}. Record the "
        "payment."
    )


def ask_discount(d: CompanyDraft) -> str:
    d.memory["asker"] = d.act_as("sales.staff")
    title, customer = d.pick(
        """SELECT q.title, c.name FROM quotes q JOIN customers c ON c.id = q.customer WHERE q.status = 'draft'
           AND NOT EXISTS (SELECT 1 FROM discount_requests r WHERE r.quote = q.id) ORDER BY q.id"""
    )
    percent = d.number(8, 18)
    d.memory |= {"quote": title, "percent": percent}
    d.look("sales_get_quote", quote=title)
    d.do("sales_file_discount_request", quote=title, percent=percent, reason="They compare us with somebody cheaper.")
    d.do("sales_set_quote_discount", quote=title, discount=percent)
    return (
        f"{customer} hesitates. Set {percent} percent in the draft {title!r}, and ask for the manager's approval "
        "of that "
        "discount; say why."
    )


def give_discount(d: CompanyDraft) -> str:
    d.act_as("sales.manager", but=(d.memory["asker"],))
    request = ref("discount_requests", quote=d.memory["quote"], status="requested")
    d.look("sales_find_discount_requests", quote=d.memory["quote"])
    if d.memory["percent"] <= 13:
        d.do("sales_approve_discount_request", discount_request=request)
        d.do("sales_send_quote", quote=d.memory["quote"])
    else:
        d.do("sales_reject_discount_request", discount_request=request)
    return (
        f"{d.name(d.memory['asker'])} asks for a discount on {d.memory['quote']!r}. Up to 13 percent is fine: then "
        "grant it "
        "and send the quote to the customer right away. Reject more than that, and let the draft lie."
    )


def change_price(d: CompanyDraft) -> str:
    d.act_as("sales.pricing")
    product, price, key = d.pick(
        """SELECT p.name, x.price, x.id FROM prices x JOIN products p ON p.id = x.product
           WHERE x.price_list = 1 AND p.status = 'active' AND x.price > 100 ORDER BY x.id"""
    )
    percent = d.number(3, 12)
    d.look("sales_find_prices", product=product)
    d.do("sales_change_price_entry", price_entry=f"PRI-{key}", price=price + price * percent // 100)
    return (
        f"Purchase prices went up. On the list 'Standard 2025', {product} costs {percent} percent more from now "
        "on, rounded "
        "down to a whole euro; leave the other lists alone."
    )


def convert_lead(d: CompanyDraft) -> str:
    sql = """SELECT l.id, l.name, l.company, l.owner FROM leads l JOIN employees e ON e.id = l.owner
             JOIN role_grants g ON g.employee = e.id AND g.status = 'active' JOIN roles r ON r.id = g.role
             WHERE l.status = 'qualified' AND r.name = 'sales.staff' ORDER BY l.id"""
    number, name, company, owner = d.pick(sql)
    d.sign_in(owner)
    (customer,) = d.pick("SELECT name FROM customers WHERE status = 'prospect' ORDER BY id")
    title, closes = d.fresh("First deal"), d.day(60)
    d.look("sales_find_leads", text=name)
    d.do("sales_convert_lead", lead=f"LEAD-{number}", customer=customer, title=title, closes_on=closes)
    d.do("sales_activate_customer", customer=customer)
    return (
        f"Your qualified lead {name} of {company!r} (LEAD-{number}) turned out to belong to our prospect {customer}. "
        f"Convert it into the deal {title!r}, closing on {closes}, and make the customer active."
    )


ORDER = (deal, quote, accept, plan_shipment, ship, bill, cash)
DISCOUNT = (ask_discount, give_discount)
PRICE = (change_price,)
LEAD = (convert_lead,)
