"""Pages of Zendesk's clone: each act leaves the state of the API's call, and errors stand in the product's words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from quintain import resource
from quintain.products import zendesk
from quintain.resources.web import HttpRequest, request
from quintain.resources.web.aria import name_of, snapshot, value_of
from tests.products.conftest import Client, basic
from tests.studio.studio import AXE, AXE_RUN

HOST = "http://acme.zendesk.localhost"
RULES = "/admin/objects-rules/rules"
CUSTOMER = "customer1@mail.example"
HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)"> & "quoted" </textarea>'
Desk = zendesk.Workspace
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
        for priority in ("low", "normal"):
            targets.append({"priority": priority, "metric": "requester_wait_time", "target": 6000})
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


def opened(name: str) -> Desk:
    """Returns an account whose browser shows a page."""
    email, path = PAGES[name]()
    world = signed(email) if email else desk()
    world.goto(HOST + path)
    return world


@pytest.mark.parametrize("name", PAGES)
def test_page_names_every_control_and_has_one_heading(name: str) -> None:
    page = opened(name).browser.document
    assert [one for one in page.controls if not name_of(page, one)] == []
    fields = [one for one in page.controls if one.tag in {"input", "select", "textarea"}]
    assert [one.attrs for one in fields if one not in page.labels and "aria-label" not in one.attrs] == []
    ids = [one.attrs["id"] for one in page.body.all() if "id" in one.attrs]
    assert len(ids) == len({*ids})
    assert [one.tag for one in page.body.all()].count("h1") == 1
    assert page.title.endswith("- acme")


# -- acts beside the API


Acts = Callable[[Desk], Any]


def press(*names: str, **texts: str) -> Acts:
    """Returns the acts that fill fields and choose options by their labels, and click names such as `button "Save"`."""

    def acts(world: Desk) -> None:
        for label, text in texts.items():
            words = label.replace("__", ": ").replace("_", " ")
            page = world.browser.document
            control = next(one for one in page.controls if one.tag != "button" and name_of(page, one) == words)
            ref = f"e{page.numbers[control]}"
            (world.select if control.tag == "select" else world.fill)(ref, text)
        for name in names:
            world.click(name)

    return acts


def plain(world: Any) -> str:
    return asyncio.run(resource.digest(world))


def agent(number: int) -> int:
    return key("users", f"name = 'Agent {number}'")


CASES: dict[str, tuple[str, str, Acts, tuple[str, str, Callable[[], Any]]]] = {
    # User, path, acts, and the request of the API that means the same.
    "public reply": (
        "agent1@acme.example", "/agent/tickets/2", press('button "Submit as Pending"', Comment="We look.\nSoon."),
        ("PUT", "tickets/2", lambda: {"ticket": {"status": "pending",
                                                 "comment": {"body": "We look.\nSoon.", "public": True}}}),
    ),
    "note and properties": (
        zendesk.ADMIN, "/agent/tickets/3",
        press('radio "Internal note"', 'checkbox "Checked"', 'button "Submit as Open"', Comment="For us", Priority="Urgent",
              Group="Level 2", Assignee="Agent 2", Tags="red  Blue", Type="Task", Due_date="2026-02-01", Plan="Gold <b>",
              Parts="Silver", Remark="a\nb", CCs="customer2@mail.example, new@mail.example",
              Followers="agent3@acme.example", Subject="Renamed"),
        ("PUT", "tickets/3", lambda: {"ticket": {
            "comment": {"body": "For us", "public": False}, "priority": "urgent", "assignee_id": agent(2), "type": "task",
            "group_id": key("agent_groups", "name = 'Level 2'"), "tags": ["red", "Blue"], "due_at": "2026-02-01",
            "custom_fields": [{"id": custom("Plan"), "value": "gold"}, {"id": custom("Parts"), "value": ["silver"]},
                              {"id": custom("Checked"), "value": True}, {"id": custom("Remark"), "value": "a\nb"}],
            "email_ccs": [{"user_email": "customer2@mail.example"}, {"user_email": "new@mail.example"}],
            "followers": [{"user_email": "agent3@acme.example"}], "subject": "Renamed", "status": "open"}}),
    ),
    "requester": (
        zendesk.ADMIN, "/agent/tickets/3", press('button "Submit as New"', Requester="customer4@mail.example"),
        ("PUT", "tickets/3", lambda: {"ticket": {"requester_id": key("users", "name = 'Customer 4'")}}),
    ),
    "macro": (
        zendesk.ADMIN, "/agent/tickets/4?macro=", press(
            'button "Apply macro"', 'button "Submit as Pending"', Macro="Customer not responding", Comment="Hello."),
        ("PUT", "tickets/4", lambda: {"ticket": {"status": "pending", "macro_ids": [key("macros", "title LIKE 'Customer%'")],
            "comment": {"body": "Hello.\nWe have not heard from you about #4.", "public": True}}}),
    ),
    "new ticket": (
        "agent1@acme.example", "/agent/tickets/new",
        press('button "Submit as Open"', Requester="new@mail.example", Subject="By phone", Comment="She called.", Priority="Low"),
        ("POST", "tickets", lambda: {"ticket": {"requester": {"email": "new@mail.example"}, "subject": "By phone", "priority":
            "low", "status": "open", "comment": {"body": "She called.", "public": True}}}),
    ),
    "follow-up": (
        zendesk.ADMIN, "/agent/tickets/new?source=7", press('button "Submit as New"', Comment="Again"),
        ("POST", "tickets", lambda: {"ticket": {"via_followup_source_id": 7, "comment": {"body": "Again", "public": True}}}),
    ),
    "merge": (
        zendesk.ADMIN, "/agent/bulk?act=merge&ids=2",
        press('checkbox "Requester can see the comment on the ticket that is closed"', 'button "Merge"',
              Or_number_of_a_ticket="3", Comment_on_the_ticket_that_is_closed="See #3."),
        ("POST", "tickets/3/merge", lambda: {"ids": [2], "source_comment": "See #3.", "source_comment_is_public": True}),
    ),
    "bulk edit": (
        zendesk.ADMIN, "/agent/bulk?act=edit&ids=2&ids=3",
        press('button "Edit"', Status="Open", Assignee="Agent 1", Add_tags="a b", Comment="Both"),
        ("PUT", "tickets/update_many?ids=2,3", lambda: {"ticket": {"status": "open", "assignee_id": str(agent(1)),
            "comment": {"body": "Both", "public": False}, "additional_tags": ["a", "b"]}}),
    ),
    "delete": (
        zendesk.ADMIN, "/agent/bulk?act=delete&ids=2", press('button "Delete"'), ("DELETE", "tickets/2", lambda: None),
    ),
    "spam": (
        zendesk.ADMIN, "/agent/bulk?act=spam&ids=2", press('button "Mark as spam"'),
        ("PUT", "tickets/2/mark_as_spam", lambda: None),
    ),
    "new user": (
        zendesk.ADMIN, "/agent/users/new",
        press('button "Save"', Name="Eva", Email="eva@firm.example", Role="Agent", Tags="vip x", Notes="Calls often"),
        ("POST", "users", lambda: {"user": {"name": "Eva", "email": "eva@firm.example", "role": "agent", "notes": "Calls often",
                                            "tags": ["vip", "x"]}}),
    ),
    "new organization": (
        zendesk.ADMIN, "/agent/organizations/new", press('button "Save"', Name="Other", Group="Level 2", Domain_names="o.example"),
        ("POST", "organizations", lambda: {"organization": {"name": "Other", "domain_names": ["o.example"],
                                                            "group_id": key("agent_groups", "name = 'Level 2'")}}),
    ),
    "new trigger": (
        zendesk.ADMIN, f"{RULES}/triggers/new",
        press('button "Add a line"', 'button "Save"', Title="Tag", Conditions_all_1__field="status",
              Conditions_all_1__operator="is", Conditions_all_1__value="open", Actions_1__field="current tags",
              Actions_1__value="seen"),
        ("POST", "triggers", lambda: {"trigger": {"title": "Tag", "actions": [{"field": "current_tags", "value": "seen"}],
            "conditions": {"all": [{"field": "status", "operator": "is", "value": "open"}], "any": []}}}),
    ),
    "new view": (
        zendesk.ADMIN, f"{RULES}/views/new",
        press('checkbox "Active"', 'button "Save"', Title="Open", Conditions_all_1__field="status", Columns="Priority",
              Conditions_all_1__operator="less than", Conditions_all_1__value="solved", Sort_by="Updated"),
        ("POST", "views", lambda: {"view": {"title": "Open", "active": False, "conditions": {"any": [], "all":
            [{"field": "status", "operator": "less_than", "value": "solved"}]},
            "output": {"columns": ["priority"], "sort_by": "updated", "sort_order": "desc"}}}),
    ),
    "new policy": (
        zendesk.ADMIN, f"{RULES}/slas/new",
        press('button "Save"', Title="Fast", Policy_metrics_1__priority="Urgent", Policy_metrics_1__metric="First reply time",
              Policy_metrics_1__target="5", Policy_metrics_1__business_hours="Business hours"),
        ("POST", "slas/policies", lambda: {"sla_policy": {"title": "Fast", "policy_metrics": [
            {"priority": "urgent", "metric": "first_reply_time", "target": 5, "business_hours": True}]}}),
    ),
    "new schedule": (
        zendesk.ADMIN, f"{RULES}/schedules/new",
        press('button "Save"', Name="Monday", Time_zone="Europe/Berlin", Intervals_1__start_time="1980",
              Intervals_1__end_time="2400"),
        ("POST", "business_hours/schedules", lambda: {"schedule": {"name": "Monday", "time_zone": "Europe/Berlin", "intervals":
            [{"start_time": 1980, "end_time": 2400}]}}),
    ),
    "new request": (
        CUSTOMER, "/hc/requests/new", press('button "Submit"', Subject="Broken", Description="It broke.", Plan="Silver"),
        ("POST", "requests", lambda: {"request": {"subject": "Broken", "comment": {"body": "It broke."}, "custom_fields":
            [{"id": custom("Plan"), "value": "silver"}]}}),
    ),
    "reply": (
        CUSTOMER, "/hc/requests/1", press('button "Submit"', Add_to_the_conversation="Hello?"),
        ("PUT", "requests/1", lambda: {"request": {"comment": {"body": "Hello?"}}}),
    ),
    "solve": (
        CUSTOMER, "/hc/requests/1", press('button "Mark as solved"'), ("PUT", "requests/1", lambda: {"request": {"solved": True}}),
    ),
    "rate": (
        CUSTOMER, "/hc/satisfaction/6", press('button "Bad, I\'m unsatisfied"', Comment="Slow", Reason="Too late"),
        ("POST", "tickets/6/satisfaction_rating", lambda: {"satisfaction_rating": {"score": "bad", "comment": "Slow",
                                                                                  "reason": "Too late"}}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_act_on_a_page_leaves_the_state_of_the_call(name: str) -> None:
    email, path, acts, (method, call, body) = CASES[name]
    mine = signed(email)
    mine.goto(HOST + path)
    theirs = mine.copy()
    acts(mine)
    assert not [one for one in mine.browser.document.body.all() if one.attrs.get("role") == "alert"]
    # What only reads, before and after the call, changes nothing but time and identifiers.
    requests = round(mine.clock.now - theirs.clock.now)
    reads = 1 if name in {"macro", "new trigger"} else 0
    look = request("GET", f"{HOST}/access/login")
    for _ in range(reads):
        theirs.respond(look)
    answer = theirs.respond(request(method, f"{HOST}/api/v2/{call}", body(), headers=basic(email)))
    assert answer.status < 300, answer.body
    while round(mine.clock.now - theirs.clock.now):
        theirs.respond(look)
    assert requests >= 2
    theirs.browser = mine.browser
    assert not [(one.table, one.kind, one.key) for one in mine.db.diff(theirs.db)]
    assert plain(mine) == plain(theirs)


# -- beside Chromium


def test_every_page_has_the_snapshot_of_chromium(chromium: Any) -> None:
    tab = chromium.new_page()
    for name in PAGES:
        world = opened(name)
        page = world.browser.tab.page
        tab.set_content(page.decode())
        assert snapshot(world.browser.document, {}) == tab.locator("body").aria_snapshot(), name


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make web")
def test_every_page_is_accessible_by_wcag_aa(chromium: Any) -> None:
    tab = chromium.new_page(viewport={"width": 1280, "height": 800})
    for name in PAGES:
        tab.set_content(opened(name).browser.tab.page.decode())
        tab.add_script_tag(path=AXE)
        assert tab.evaluate(AXE_RUN) == [], name


# -- what is wrong


def alerts(world: Desk) -> str:
    """Returns the words of the errors that a page shows."""
    found = [one.text for one in world.browser.document.body.all() if one.attrs.get("role") == "alert"]
    return " ".join(" ".join(found).split())


def shown(world: Desk) -> str:
    return " ".join(world.browser.document.ids["main"].text.split())


def changes(world: Desk, act: Callable[[], Any]) -> list[str]:
    """Returns the tables that an act changes."""
    before = world.db.fork()
    act()
    return sorted({one.table for one in before.diff(world.db)})


def test_visitor_is_sent_to_sign_in_and_back() -> None:
    world = desk()
    world.goto(f"{HOST}/agent/search/1?q=printer")
    assert world.browser.document.title == "Sign in - acme"
    world.fill('textbox "Email"', "Agent1@acme.example")
    for password, words in (("wrong", "Email and password do not match"), ("", "Email and password do not match")):
        world.fill('textbox "Password"', password)
        world.click('button "Sign in"')
        assert alerts(world) == words
    world.fill('textbox "Password"', zendesk.TOKEN)
    assert changes(world, lambda: world.click('button "Sign in"')) == []
    assert world.browser.tab.url == f"{HOST}/agent/search/1?q=printer"
    world.click('button "Sign out"')
    world.goto(f"{HOST}/agent/home")
    assert world.browser.document.title == "Sign in - acme"


@pytest.mark.parametrize("target", ["//evil.example/x", "http://evil.example", "/\\evil.example", "evil"])
def test_sign_in_leads_to_no_other_site(target: str) -> None:
    world = desk()
    world.goto(f"{HOST}/access/login?{urlencode({'return_to': target})}")
    world.fill('textbox "Email"', zendesk.ADMIN)
    world.fill('textbox "Password"', zendesk.TOKEN)
    world.click('button "Sign in"')
    assert world.browser.tab.url == f"{HOST}/agent/home"


def test_session_ends_with_its_time_and_with_the_user() -> None:
    world = signed("agent1@acme.example")
    world.goto(f"{HOST}/agent/tickets/2")
    world.clock.advance(9 * 3600)
    world.fill('textbox "Comment"', "Too late")
    assert changes(world, lambda: world.click('button "Submit as Open"')) == []
    assert "Your session has expired. Sign in again." in shown(world)
    world = signed("agent1@acme.example")
    Client(world)("PUT", f"users/{agent(1)}", {"user": {"suspended": True}})
    world.goto(f"{HOST}/agent/home")
    assert world.browser.document.title == "Sign in - acme"


@pytest.mark.parametrize(
    "value", ["", "1", "1.2", "1.2.3", f"{2**80}.{2**80}.x", "33144692244883.99999999999.0" + "0" * 63, "é.é.é"]
)
def test_forged_session_is_none(value: str) -> None:
    answer = desk().respond(request("GET", f"{HOST}/agent/home", headers={"cookie": f"session={value}"}))
    assert (answer.status, answer.header("location").partition("?")[0]) == (303, "/access/login")


@pytest.mark.parametrize(
    ("email", "path", "status", "words"),
    [
        (CUSTOMER, "/agent/tickets/1", 403, "You do not have access to this page."),
        (CUSTOMER, "/hc/requests/2", 404, "Not found"),
        ("agent1@acme.example", f"{RULES}/slas", 403, "You do not have access to this page."),
        (zendesk.ADMIN, "/agent/tickets/999", 404, "Not found"),
        (zendesk.ADMIN, f"/agent/tickets/{10**30}", 404, "Not found"),
        (zendesk.ADMIN, "/agent/bulk?act=explode&ids=1", 404, "No tickets are selected"),
        (zendesk.ADMIN, "/agent/bulk?act=edit&ids=x", 404, "No tickets are selected"),
        (zendesk.ADMIN, f"{RULES}/nothing", 404, "Not found"),
        (zendesk.ADMIN, f"{RULES}/triggers/1", 404, "Not found"),
        (zendesk.ADMIN, "/agent/users?page=x", 400, "Must be an integer"),
        (zendesk.ADMIN, "/agent/search/1?q=printer&page=99", 422, "greater than Search Response Limits"),
        (zendesk.ADMIN, "/agent/tickets/1?macro=5", 404, "Not found"),
    ],
)
def test_refusal_is_a_page_in_the_words_of_the_product(email: str, path: str, status: int, words: str) -> None:
    world = signed(email)
    answer = world.respond(HttpRequest("GET", path.partition("?")[0], "acme.zendesk.localhost",
        tuple(tuple(one.split("=")) for one in path.partition("?")[2].split("&") if one), (cookie(world),)))  # fmt: skip
    assert (answer.status, answer.header("content-type")) == (status, "text/html; charset=utf-8")
    assert words in " ".join(answer.body.decode().split())


def cookie(world: Desk) -> tuple[str, str]:
    return "cookie", f"session={world.browser.cookies['acme.zendesk.localhost']['session']}"


def test_agent_may_not_change_what_only_admins_may() -> None:
    world = signed("agent1@acme.example")
    world.goto(f"{HOST}{RULES}/triggers/{key('triggers')}")
    world.fill('textbox "Title"', "Mine")
    assert changes(world, lambda: world.click('button "Save"')) == []
    assert "You do not have access to this page." in shown(world)


def test_html_in_comments_stays_text() -> None:
    for email, path in ((zendesk.ADMIN, "/agent/tickets/11"), ("a@firm.example", "/hc/requests/11")):
        world = signed(email)
        world.goto(HOST + path)
        assert HOSTILE in world.browser.document.ids["main"].text
        tags = {one.tag for one in world.browser.document.body.all()}
        assert not tags & {"script", "img", "iframe", "object"}
        assert b"<script" not in world.browser.tab.page


def test_form_shows_what_is_invalid_and_keeps_what_was_typed() -> None:
    world = signed()
    world.goto(f"{HOST}/agent/tickets/2")
    world.fill('textbox "Comment"', HOSTILE)
    world.fill('textbox "Tags"', "kept")
    assert changes(world, lambda: world.click('button "Submit as Solved"')) == []
    assert alerts(world) == "Assignee: is required when solving a ticket"
    page = world.browser.document
    values = {name_of(page, one): value_of(page, one, {}) for one in page.controls}
    assert (values["Comment"], values["Tags"]) == (HOSTILE, "kept")
    world.goto(f"{HOST}/agent/users/new")
    world.fill('textbox "Email"', "customer1@mail.example")
    world.fill('textbox "Name"', "Twin")
    world.click('button "Save"')
    assert alerts(world) == "Email: customer1@mail.example is already being used by another user"
    field = next(one for one in world.browser.document.controls if name_of(world.browser.document, one) == "Email")
    assert "already being used" in world.browser.document.ids[field.attrs["aria-describedby"]].text
    world.goto(f"{HOST}/agent/bulk?act=merge&ids=2")
    world.click('button "Merge"')
    assert alerts(world) == "Choose a ticket to merge into"
    world.goto(f"{HOST}/hc/requests/new")
    world.click('button "Submit"')
    assert "Description: cannot be blank" in alerts(world)


def test_conflicting_update_is_not_made_and_keeps_the_comment() -> None:
    world = signed()
    world.goto(f"{HOST}/agent/tickets/2")
    Client(world).put(2, priority="urgent")
    world.fill('textbox "Comment"', "My answer")
    world.select('combobox "Priority"', "Low")
    assert changes(world, lambda: world.click('button "Submit as Open"')) == []
    assert alerts(world) == "Safe Update prevented the update due to outdated ticket data"
    page = world.browser.document
    values = {name_of(page, one): value_of(page, one, {}) for one in page.controls}
    assert (values["Comment"], values["Priority"]) == ("My answer", "urgent")
    world.click('button "Submit as New"')
    assert "My answer" in shown(world)


def test_too_many_updates_are_refused_by_a_page() -> None:
    world = signed()
    world.goto(f"{HOST}/agent/tickets/2")
    for number in range(31):
        world.fill('textbox "Tags"', f"t{number}")
        world.click('button "Submit as New"')
    assert alerts(world) == "Number of allowed API requests per minute exceeded"


# -- what pages lead to


def test_attachments_and_views_of_a_ticket() -> None:
    world = signed()
    view = key("ticket_views", "title LIKE ?", "All%")
    world.goto(f"{HOST}/agent/filters/{view}?sort_by=nice_id&sort_order=asc")
    world.click('link "Question 2"')
    world.upload('button "Attachment"', "b.txt", "text")
    world.select('combobox "After submitting"', "Next ticket in view")
    world.click('button "Submit as New"')
    api = Client(world)
    files = api("GET", "tickets/2/comments")["comments"][-1]["attachments"]
    assert [(one["file_name"], one["content_type"]) for one in files] == [("b.txt", "text/plain")]
    assert f"view={view}" in world.browser.tab.url
    world.goto(f"{HOST}/agent/tickets/2")
    world.click('link "b.txt"')
    assert world.browser.downloads["b.txt"] == b"text"


def test_list_selects_tickets_and_turns_pages() -> None:
    world = signed()
    api = Client(world)
    for number in range(35):
        api.ticket(subject=f"Many {number}", priority="low")
    view = key("ticket_views", "title LIKE ?", "All%")
    world.goto(f"{HOST}/agent/filters/{view}")
    first = shown(world)
    world.click('link "Next page"')
    assert world.browser.tab.url.endswith("page=2")
    assert shown(world) != first
    world.click('link "Previous page"')
    world.click('checkbox "Select ticket 46"')
    world.click('checkbox "Select ticket 45"')
    world.click('button "Delete"')
    assert "Delete: #46, #45" in shown(world)
    world.click('button "Delete"')
    world.clock.advance(5)
    assert api("GET", "tickets/count")["count"]["value"] == 44


def test_apply_macro_keeps_what_was_typed_and_saves_nothing() -> None:
    world = signed()
    world.goto(f"{HOST}/agent/tickets/2")
    world.fill('textbox "Tags"', "typed")
    world.check('checkbox "Checked"')
    world.select('combobox "Macro"', "Take it!")
    assert changes(world, lambda: world.click('button "Apply macro"')) == []
    page = world.browser.document
    values = {name_of(page, one): value_of(page, one, {}) for one in page.controls}
    assert (values["Tags"], values["Checked"], values["Assignee"]) == (
        "typed",
        True,
        str(key("users", "role = 'admin'")),
    )
    world.click('button "Submit as Open"')
    found = Client(world)("GET", "tickets/2")["ticket"]
    assert (found["tags"], found["status"], found["assignee_id"]) == (["typed"], "open", key("users", "role = 'admin'"))


def test_settings_are_changed_cloned_and_deleted() -> None:
    world = signed()
    world.goto(f"{HOST}{RULES}/triggers/{key('triggers')}")
    assert changes(world, lambda: world.click('button "Save"')) == []
    world.click('checkbox "Active"')
    assert changes(world, lambda: world.click('button "Save"')) == ["zd_triggers"]
    world.click('link "Clone"')
    world.fill('textbox "Title"', "Copy")
    world.click('button "Save"')
    rows = world.db.execute(
        "SELECT conditions, actions, active FROM zd_triggers WHERE id = ? OR title = 'Copy'", key("triggers")
    )
    assert rows[0] == rows[1]
    world.click('button "Delete"')
    assert world.db.execute("SELECT 1 FROM zd_triggers WHERE title = 'Copy'") == []


WEIRD = (
    "",
    " ",
    "x",
    "-1",
    "0",
    "9" * 30,
    "1e400",
    "\x00é\u2028",
    "[",
    "[1, [2]]",
    "{}",
    "true",
    "2026-13-45",
    HOSTILE,
)


@pytest.mark.parametrize("name", [name for name in PAGES if name not in {"unknown", "closed ticket", "events"}])
def test_no_input_of_a_form_is_a_bug_of_the_product(name: str) -> None:
    world = opened(name)
    page = world.browser.document
    fields = [one for one in page.controls if one.tag in {"input", "textarea"} and one.attrs.get("type") not in {"checkbox",
              "radio", "file"}]  # fmt: skip
    buttons = [one for one in page.controls if one.tag == "button" and name_of(page, one) != "Sign out"]
    for value in WEIRD:
        for button in buttons:
            twin = world.copy()
            for one in fields:
                twin.fill(f"e{page.numbers[one]}", value)
            twin.click(f"e{page.numbers[button]}")
            assert twin.browser.tab.page


def test_files_and_unknown_names_in_fields_are_ignored() -> None:
    world = signed()
    body = b'--b\r\ncontent-disposition: form-data; name="tags"; filename="x"\r\n\r\nx\r\n--b--\r\n'
    for path, kind, data in (
        ("/agent/tickets/2", "multipart/form-data; boundary=b", body),
        ("/agent/tickets/2", "application/x-www-form-urlencoded", b"custom_x=1&custom_9=2&status=&then=next&view=99"),
        (
            f"{RULES}/triggers/{key('triggers')}",
            "application/x-www-form-urlencoded",
            b"x-all-1-y=1&conditions-all-9999-field=x",
        ),
    ):
        headers = (cookie(world), ("content-type", kind))
        asked = HttpRequest("POST", path, "acme.zendesk.localhost", (), headers, data)
        assert world.respond(asked).status in {303, 404}
