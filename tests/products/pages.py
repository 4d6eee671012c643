"""An account whose pages tests open, and the pages by name."""

from __future__ import annotations

from collections.abc import Callable

from quintain.products import zendesk
from quintain.resources.web import request
from quintain.resources.web.look import Look
from tests.products.conftest import Client, basic

HOST = "http://acme.zendesk.localhost"
RULES = "/admin/objects-rules/rules"
CUSTOMER = "customer1@mail.example"
HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)"> & "quoted" </textarea>'
Desk = zendesk.ZendeskPages
_BASE: list[Desk] = []


def desk() -> Desk:
    """Returns an account with custom fields, an SLA policy, a schedule, a hostile ticket and a solved one."""
    if not _BASE:
        world = zendesk.account(Desk)
        zendesk.populate(world)
        api = Client(world)
        options = [{"name": "Gold <b>", "value": "gold"}, {"name": "Silver", "value": "silver"}]
        for kind, title in (
            ("tagger", "Plan"),
            ("multiselect", "Parts"),
            ("checkbox", "Checked"),
            ("textarea", "Remark"),
        ):
            some = {"custom_field_options": options} if kind in {"tagger", "multiselect"} else {}
            field = {"type": kind, "title": title, "visible_in_portal": True, "editable_in_portal": True, **some}
            api("POST", "ticket_fields", {"ticket_field": field})
        targets = [{"priority": one, "metric": "first_reply_time", "target": 60} for one in ("high", "urgent")]
        targets += [{"priority": one, "metric": "requester_wait_time", "target": 6000} for one in ("low", "normal")]
        policy = {"title": "Standard", "filter": {"all": [], "any": []}, "policy_metrics": targets}
        api("POST", "slas/policies", {"sla_policy": policy})
        hours = [{"start_time": 1980, "end_time": 2460}]
        api("POST", "business_hours/schedules", {"schedule": {"name": "Days", "time_zone": "UTC", "intervals": hours}})
        api("POST", "organizations", {"organization": {"name": "Firm", "domain_names": ["firm.example"]}})
        api.ticket(subject=HOSTILE, comment={"body": HOSTILE + "\n- two\n1: x"}, requester={"email": "a@firm.example"})
        token = api.world.respond(
            request("POST", f"{HOST}/api/v2/uploads?filename=a.txt", b"x", headers=basic())
        ).json()
        comment = {"body": "See the file.", "uploads": [token["upload"]["token"]]}
        api.put(
            1, comment={**comment, "public": False}, assignee_email=zendesk.ADMIN, priority="high", status="pending"
        )
        Client(world, CUSTOMER)("PUT", "requests/1", {"request": {"comment": {"body": "And now?"}}})
        api.put(6, status="solved", assignee_email=zendesk.ADMIN, comment={"body": "Done."})
        api.put(7, status="closed", assignee_email=zendesk.ADMIN)
        _BASE.append(world)
    return _BASE[0].copy()


def signed(email: str = zendesk.ADMIN, world: Desk | None = None) -> Desk:
    """Returns an account in whose browser a user has signed in."""
    world = world or desk()
    world.goto(f"{HOST}/access/login")
    world.fill('textbox "Email"', email)
    world.fill('textbox "Password"', zendesk.TOKEN)
    world.click('button "Sign in"')
    return world


def key(table: str, where: str = "1", value: str | None = None) -> int:
    """Returns the key of the first row of the base that fulfils a condition."""
    desk()
    values = [] if value is None else [value]
    found: int = _BASE[0].db.execute(f"SELECT id FROM zd_{table} WHERE {where} ORDER BY id LIMIT 1", *values)[0][0]
    return found


def custom(title: str) -> int:
    return key("ticket_fields", f"title = '{title}'")


PAGES: dict[str, Callable[[], tuple[str, str]]] = {
    # The page of each template and kind: user and path.
    "login": lambda: ("", "/access/login"),
    "home": lambda: (zendesk.ADMIN, "/agent/home"),
    "view": lambda: (zendesk.ADMIN, f"/agent/filters/{key('ticket_views', 'title LIKE ?', 'All%')}"),
    "ticket": lambda: (zendesk.ADMIN, "/agent/tickets/1"),
    "hostile ticket": lambda: (zendesk.ADMIN, "/agent/tickets/11"),
    "macro": lambda: (
        zendesk.ADMIN,
        f"/agent/tickets/1?macro={key('macros', 'title LIKE ?', 'Customer%')}&comment=Hello",
    ),
    "closed ticket": lambda: (zendesk.ADMIN, "/agent/tickets/7"),
    "events": lambda: (zendesk.ADMIN, "/agent/tickets/1?events=1"),
    "new ticket": lambda: (zendesk.ADMIN, "/agent/tickets/new"),
    "bulk edit": lambda: (zendesk.ADMIN, "/agent/bulk?act=edit&ids=1&ids=2"),
    "merge": lambda: (zendesk.ADMIN, "/agent/bulk?act=merge&ids=1"),
    "search": lambda: (zendesk.ADMIN, "/agent/search/1?q=printer"),
    "search of users": lambda: (zendesk.ADMIN, "/agent/search/1?q=customer&type=user"),
    "report": lambda: (zendesk.ADMIN, "/agent/reports?begin=2026-01-01+09:00"),
    "report of a wrong time": lambda: (zendesk.ADMIN, "/agent/reports?begin=soon"),
    "users": lambda: (zendesk.ADMIN, "/agent/users"),
    "user": lambda: (zendesk.ADMIN, f"/agent/users/{key('users', 'name = ?', 'Customer 1')}"),
    "organization": lambda: (zendesk.ADMIN, f"/agent/organizations/{key('organizations')}"),
    "settings": lambda: (zendesk.ADMIN, "/admin"),
    "triggers": lambda: (zendesk.ADMIN, f"{RULES}/triggers"),
    "trigger": lambda: (zendesk.ADMIN, f"{RULES}/triggers/{key('triggers')}"),
    "new view": lambda: (zendesk.ADMIN, f"{RULES}/views/new"),
    "policy": lambda: (zendesk.ADMIN, f"{RULES}/slas/{key('sla_policies')}"),
    "schedule": lambda: (zendesk.ADMIN, f"{RULES}/schedules/{key('schedules')}"),
    "ticket field": lambda: (zendesk.ADMIN, f"{RULES}/ticket_fields/{custom('Plan')}"),
    "unknown": lambda: (zendesk.ADMIN, "/agent/nothing"),
    "requests": lambda: (CUSTOMER, "/hc/requests"),
    "new request": lambda: (CUSTOMER, "/hc/requests/new"),
    "request": lambda: (CUSTOMER, "/hc/requests/6"),
    "survey": lambda: (CUSTOMER, "/hc/satisfaction/6"),
}


OTHER = Look("dark dense mirrored", {"Save": "Speichern & zurück", "Subject": "Betreff"}, "Closed on Friday.", 15, 2)
"""Variant of the pages in everything that may vary."""


def opened(name: str, look: Look | None = None) -> Desk:
    """Returns an account whose browser shows a page."""
    email, path = PAGES[name]()
    world = signed(email) if email else desk()
    world.look = look or world.look
    world.goto(HOST + path)
    return world
