"""Stories of operations: incidents, changes, access, stock, rooms."""

from __future__ import annotations

from typing import Any

from quintain.environments.enterprise.draft import CompanyDraft
from quintain.environments.enterprise.goals import ref


def report(d: CompanyDraft) -> str:
    (number,) = d.pick("SELECT id FROM employees WHERE status = 'active' AND id > 60 ORDER BY id")
    d.sign_in(number)
    (service,) = d.pick("SELECT name FROM services WHERE status = 'operational' ORDER BY id")
    severity, title = d.rng.choice(["sev1", "sev2", "sev3"]), d.fresh(f"{service} is down")
    d.memory |= {"incident": title, "service": service}
    d.look("it_find_services", text=service)
    d.do("it_report_incident", title=title, service=service, severity=severity)
    return f"Nobody here gets through to {service}. Report an incident {title!r} of severity {severity}."


def investigate(d: CompanyDraft) -> str:
    d.memory["engineer"] = d.act_as("it.staff")
    incident = d.memory["incident"]
    d.look("it_get_incident", incident=incident)
    d.do("it_assign_incident", incident=incident, assignee=d.name())
    d.do("it_post_incident_update", incident=incident, text="We are looking at the logs.")
    return f"Take the incident {incident!r} yourself, and post a first update for those who wait."


def resolve(d: CompanyDraft) -> str:
    d.sign_in(d.memory["engineer"])
    incident, service = d.memory["incident"], d.memory["service"]
    problem = d.fresh(f"Disk of {service} too small")
    d.look("it_get_incident", incident=incident)
    d.do("it_resolve_incident", incident=incident, cause="The disk was full.")
    d.do("it_create_problem", title=problem, service=service, owner=d.name())
    return (
        f"{incident!r} is over: the disk was full. Resolve it with the cause, and open the problem {problem!r} for "
        f"{service} under your own name, so that it does not come back."
    )


def plan_change(d: CompanyDraft) -> str:
    d.memory["requester"] = d.act_as("it.staff")
    (service,) = d.pick("SELECT name FROM services ORDER BY id")
    title, planned = d.fresh(f"Upgrade {service}"), d.day(5)
    risk = d.rng.choice(["low", "medium"])
    d.memory["change"] = title
    d.look("it_get_service", service=service)
    d.do("it_create_change", title=title, service=service, risk=risk, planned_on=planned)
    d.do("it_submit_change", change=title)
    return f"Plan the change {title!r} of {service} for {planned}, risk {risk}, and submit it for approval."


def approve_change(d: CompanyDraft) -> str:
    d.act_as("it.manager", but=(d.memory["requester"],))
    d.look("it_find_changes", status="submitted")
    d.do("it_approve_change", change=d.memory["change"])
    return f"{d.name(d.memory['requester'])} wants to do {d.memory['change']!r}. You looked at it; approve."


def implement(d: CompanyDraft) -> str:
    d.act_as("it.staff")
    d.look("it_find_changes", text=d.memory["change"])
    d.do("it_implement_change", change=d.memory["change"])
    return f"{d.memory['change']!r} went through last night without trouble. Note that it is implemented."


def ask_access(d: CompanyDraft) -> str:
    number, name, login = d.pick(
        """SELECT e.id, e.name, u.login FROM employees e JOIN user_accounts u ON u.employee = e.id
           WHERE e.status = 'active' AND u.status = 'active' AND e.id > 48 ORDER BY e.id"""
    )
    d.sign_in(number)
    (group,) = d.pick(
        """SELECT g.name FROM access_groups g WHERE g.sensitive = 1 AND NOT EXISTS (SELECT 1 FROM group_memberships m
           JOIN user_accounts u ON u.id = m.account WHERE m.access_group = g.id AND u.employee = ?)
           AND NOT EXISTS (SELECT 1 FROM access_requests r JOIN user_accounts u ON u.id = r.account
           WHERE r.access_group = g.id AND u.employee = ?) ORDER BY g.id""",
        number,
        number,
    )
    d.memory |= {"asker": number, "login": login, "group": group, "name": name}
    d.look("it_find_user_accounts", employee=name)
    d.do("it_file_access_request", account=login, access_group=group, reason="I need it for the yearly report.")
    return f"Your account {login} needs the sensitive group {group!r}. Ask for access, with a reason."


def give_access(d: CompanyDraft) -> str:
    d.act_as("it.security", but=(d.memory["asker"],))
    m = d.memory
    d.look("it_find_access_requests", account=m["login"], status="requested")
    d.do("it_grant_access_request", access_request=ref("access_requests", account=m["login"], access_group=m["group"]))
    return f"{m['name']} ({m['login']}) has asked for {m['group']!r}. The owner agrees: grant the request."


def grant(d: CompanyDraft) -> str:
    d.act_as("it.security")
    number, name, team = d.pick(
        """SELECT e.id, e.name, t.department FROM employees e JOIN teams t ON t.id = e.team
           WHERE e.status = 'active' AND e.id BETWEEN 60 AND 90 AND t.department IN ('finance', 'logistics', 'it')
           ORDER BY e.id"""
    )
    role = {"finance": "finance.payer", "logistics": "logistics.planner", "it": "it.security"}[team]
    d.look("it_find_role_grants", employee=name)
    d.do("it_grant_role", employee=name, role=role)
    return f"{name} (EMP-{number}) takes over new duties in {team} and needs the role {role}. Grant it."


_STOCK = """
SELECT s.id, p.name, w.name, s.on_hand - s.reserved FROM stock_levels s JOIN products p ON p.id = s.product
JOIN warehouses w ON w.id = s.warehouse WHERE s.on_hand - s.reserved > 40 ORDER BY s.id
"""


def ask_transfer(d: CompanyDraft) -> str:
    d.act_as("logistics.planner")
    _, product, source, free = d.pick(_STOCK)
    (target,) = d.pick("SELECT name FROM warehouses WHERE name <> ? ORDER BY id", source)
    quantity = d.number(3, min(30, free))
    d.memory |= {"product": product, "source": source, "target": target, "quantity": quantity}
    d.look("logistics_stock_of_product", product=product)
    d.do("logistics_request_stock_transfer", product=product, source=source, target=target, quantity=quantity)
    return f"{target} runs out of {product}. Request a transfer of {quantity} from {source}."


def _moved(d: CompanyDraft, verb: str, status: str) -> dict[str, Any]:
    """Lets somebody of the warehouse move the transfer on; returns what it is about."""
    d.act_as("logistics.staff")
    m = d.memory
    d.look("logistics_find_stock_transfers", product=m["product"], status=status)
    where = {name: m[name] for name in ("product", "source", "target", "quantity")}
    d.do(f"logistics_{verb}_stock_transfer", stock_transfer=ref("stock_transfers", **where, status=status))
    return m


def dispatch(d: CompanyDraft) -> str:
    m = _moved(d, "dispatch", "requested")
    return (
        f"Load the requested transfer of {m['quantity']} x {m['product']} from {m['source']} to {m['target']}: "
        "dispatch it."
    )


def arrive(d: CompanyDraft) -> str:
    m = _moved(d, "receive", "in_transit")
    return (
        f"The {m['quantity']} x {m['product']} from {m['source']} have arrived at {m['target']}. Receive the transfer."
    )


def correct(d: CompanyDraft) -> str:
    d.memory["proposer"] = d.act_as("logistics.staff")
    key, product, warehouse, _ = d.pick(_STOCK)
    lost = d.number(1, 9)
    counted = d.get("SELECT on_hand FROM stock_levels WHERE id = ?", key) - lost
    d.memory |= {"stock": f"STK-{key}", "product": product, "warehouse": warehouse, "lost": lost}
    d.look("logistics_find_stock_levels", product=product, warehouse=warehouse)
    d.do(
        "logistics_propose_stock_adjustment", stock=f"STK-{key}", difference=-lost, reason="Found broken when counting."
    )
    return (
        f"Only {counted} whole pieces of {product} are in {warehouse}; the others on the books were found broken. "
        "Propose "
        "the correction of the stock, with a reason."
    )


def confirm_correction(d: CompanyDraft) -> str:
    d.act_as("logistics.manager", but=(d.memory["proposer"],))
    m = d.memory
    d.look("logistics_find_stock_adjustments", status="proposed")
    adjustment = ref("stock_adjustments", stock=m["stock"], difference=-m["lost"], status="proposed")
    verb = "approve" if m["lost"] <= 5 else "reject"
    d.do(f"logistics_{verb}_stock_adjustment", stock_adjustment=adjustment)
    return (
        f"{d.name(m['proposer'])} proposes to write off some {m['product']} in {m['warehouse']}. Up to 5 pieces you "
        "approve; more than that you reject, for it needs a proper count first. Decide."
    )


def welcome(d: CompanyDraft) -> str:
    """A visitor and a room."""
    (number,) = d.pick("SELECT id FROM employees WHERE status = 'active' AND id > 48 ORDER BY id")
    d.sign_in(number)
    room, site = d.pick(
        """SELECT r.name, s.name FROM rooms r JOIN sites s ON s.id = r.site WHERE r.status = 'usable' AND NOT EXISTS
           (SELECT 1 FROM room_bookings b WHERE b.room = r.id AND b.held_on > '2025-06-01') ORDER BY r.id"""
    )
    guest, title, day = d.fresh("Guest"), d.fresh("Visit"), d.day(3)
    slot = d.rng.choice(["morning", "noon", "afternoon"])
    d.look("corporate_find_rooms", text=room)
    d.do("corporate_announce_visitor", name=guest, site=site, comes_on=day)
    d.do("corporate_book_room", title=title, room=room, held_on=day, slot=slot)
    return (
        f"{guest!r} visits you in {site} on {day}. Announce the visit and book the room {room} for that {slot} as "
        f"{title!r}."
    )


INCIDENT = (report, investigate, resolve)
CHANGE = (plan_change, approve_change, implement)
ACCESS = (ask_access, give_access)
ROLE = (grant,)
TRANSFER = (ask_transfer, dispatch, arrive)
CORRECTION = (correct, confirm_correction)
VISIT = (welcome,)
