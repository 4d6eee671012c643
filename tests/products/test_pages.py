"""Pages of Zendesk's clone: their structure, their snapshots beside Chromium's, and acts beside calls of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from quintain import resource
from quintain.products import zendesk
from quintain.resources.web import request
from quintain.resources.web.aria import name_of, snapshot
from quintain.resources.web.door import Door, serving
from quintain.resources.web.look import Look
from tests.products.conftest import Client, basic
from tests.products.pages import CUSTOMER, HOST, OTHER, PAGES, RULES, Desk, custom, desk, key, opened, signed
from tests.studio.studio import AXE, AXE_RUN

LOOKS = pytest.mark.parametrize("look", [Look(), OTHER], ids=["usual", "other"])


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


def digest(world: Any) -> str:
    """Returns the state digest. Playwright holds the event loop of this thread, so another one computes it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, resource.digest(world)).result()


def agent(number: int) -> int:
    return key("users", f"name = 'Agent {number}'")


Path = str | Callable[[], str]
CASES: dict[str, tuple[str, Path, Acts, tuple[str, Path, Callable[[], Any]]]] = {
    # User, path, acts, and the request of the API that means the same.
    "public reply": (
        "agent1@acme.example",
        "/agent/tickets/2",
        press('button "Submit as Pending"', Comment="We look.\nSoon."),
        (
            "PUT",
            "tickets/2",
            lambda: {"ticket": {"status": "pending", "comment": {"body": "We look.\nSoon.", "public": True}}},
        ),
    ),
    "note and properties": (
        zendesk.ADMIN,
        "/agent/tickets/3",
        press(
            'radio "Internal note"',
            'checkbox "Checked"',
            'button "Submit as Open"',
            Comment="For us",
            Priority="Urgent",
            Group="Level 2",
            Assignee="Agent 2",
            Tags="red  Blue",
            Type="Task",
            Due_date="2026-02-01",
            Plan="Gold <b>",
            Parts="Silver",
            Remark="a\nb",
            CCs="customer2@mail.example, new@mail.example",
            Followers="agent3@acme.example",
            Subject="Renamed",
        ),
        (
            "PUT",
            "tickets/3",
            lambda: {
                "ticket": {
                    "comment": {"body": "For us", "public": False},
                    "priority": "urgent",
                    "assignee_id": agent(2),
                    "type": "task",
                    "group_id": key("agent_groups", "name = 'Level 2'"),
                    "tags": ["red", "Blue"],
                    "due_at": "2026-02-01",
                    "custom_fields": [
                        {"id": custom("Plan"), "value": "gold"},
                        {"id": custom("Parts"), "value": ["silver"]},
                        {"id": custom("Checked"), "value": True},
                        {"id": custom("Remark"), "value": "a\nb"},
                    ],
                    "email_ccs": [{"user_email": "customer2@mail.example"}, {"user_email": "new@mail.example"}],
                    "followers": [{"user_email": "agent3@acme.example"}],
                    "subject": "Renamed",
                    "status": "open",
                }
            },
        ),
    ),
    "requester": (
        zendesk.ADMIN,
        "/agent/tickets/3",
        press('button "Submit as New"', Requester="customer4@mail.example"),
        ("PUT", "tickets/3", lambda: {"ticket": {"requester_id": key("users", "name = 'Customer 4'")}}),
    ),
    "macro": (
        zendesk.ADMIN,
        "/agent/tickets/4?macro=",
        press('button "Apply macro"', 'button "Submit as Pending"', Macro="Customer not responding", Comment="Hello."),
        (
            "PUT",
            "tickets/4",
            lambda: {
                "ticket": {
                    "status": "pending",
                    "macro_ids": [key("macros", "title LIKE 'Customer%'")],
                    "comment": {"body": "Hello.\nWe have not heard from you about #4.", "public": True},
                }
            },
        ),
    ),
    "new ticket": (
        "agent1@acme.example",
        "/agent/tickets/new",
        press(
            'button "Submit as Open"',
            Requester="new@mail.example",
            Subject="By phone",
            Comment="She called.",
            Priority="Low",
        ),
        (
            "POST",
            "tickets",
            lambda: {
                "ticket": {
                    "requester": {"email": "new@mail.example"},
                    "subject": "By phone",
                    "priority": "low",
                    "status": "open",
                    "comment": {"body": "She called.", "public": True},
                }
            },
        ),
    ),
    "follow-up": (
        zendesk.ADMIN,
        "/agent/tickets/new?source=7",
        press('button "Submit as New"', Comment="Again"),
        (
            "POST",
            "tickets",
            lambda: {"ticket": {"via_followup_source_id": 7, "comment": {"body": "Again", "public": True}}},
        ),
    ),
    "merge": (
        zendesk.ADMIN,
        "/agent/bulk?act=merge&ids=2",
        press(
            'checkbox "Requester can see the comment on the ticket that is closed"',
            'button "Merge"',
            Or_number_of_a_ticket="3",
            Comment_on_the_ticket_that_is_closed="See #3.",
        ),
        (
            "POST",
            "tickets/3/merge",
            lambda: {"ids": [2], "source_comment": "See #3.", "source_comment_is_public": True},
        ),
    ),
    "bulk edit": (
        zendesk.ADMIN,
        "/agent/bulk?act=edit&ids=2&ids=3",
        press('button "Edit"', Status="Open", Assignee="Agent 1", Add_tags="a b", Comment="Both"),
        (
            "PUT",
            "tickets/update_many?ids=2,3",
            lambda: {
                "ticket": {
                    "status": "open",
                    "assignee_id": str(agent(1)),
                    "comment": {"body": "Both", "public": False},
                    "additional_tags": ["a", "b"],
                }
            },
        ),
    ),
    "delete": (
        zendesk.ADMIN,
        "/agent/bulk?act=delete&ids=2",
        press('button "Delete"'),
        ("DELETE", "tickets/2", lambda: None),
    ),
    "spam": (
        zendesk.ADMIN,
        "/agent/bulk?act=spam&ids=2",
        press('button "Mark as spam"'),
        ("PUT", "tickets/2/mark_as_spam", lambda: None),
    ),
    "new user": (
        zendesk.ADMIN,
        "/agent/users/new",
        press('button "Save"', Name="Eva", Email="eva@firm.example", Role="Agent", Tags="vip x", Notes="Calls often"),
        (
            "POST",
            "users",
            lambda: {
                "user": {
                    "name": "Eva",
                    "email": "eva@firm.example",
                    "role": "agent",
                    "notes": "Calls often",
                    "tags": ["vip", "x"],
                }
            },
        ),
    ),
    "new organization": (
        zendesk.ADMIN,
        "/agent/organizations/new",
        press('button "Save"', Name="Other", Group="Level 2", Domain_names="o.example"),
        (
            "POST",
            "organizations",
            lambda: {
                "organization": {
                    "name": "Other",
                    "domain_names": ["o.example"],
                    "group_id": key("agent_groups", "name = 'Level 2'"),
                }
            },
        ),
    ),
    "user": (
        "agent1@acme.example",
        lambda: f"/agent/users/{key('users', 'email = ?', CUSTOMER)}",
        press('checkbox "Suspended"', 'button "Save"', Organization="Firm", Phone="123", Tags=""),
        (
            "PUT",
            lambda: f"users/{key('users', 'email = ?', CUSTOMER)}",
            lambda: {"user": {"organization": {"name": "Firm"}, "phone": "123", "suspended": True}},
        ),
    ),
    "organization": (
        zendesk.ADMIN,
        lambda: f"/agent/organizations/{key('organizations')}",
        press('button "Save"', Notes="Pays late", Domain_names="firm.example f.example"),
        (
            "PUT",
            lambda: f"organizations/{key('organizations')}",
            lambda: {"organization": {"notes": "Pays late", "domain_names": ["firm.example", "f.example"]}},
        ),
    ),
    "macro setting": (
        zendesk.ADMIN,
        lambda: f"{RULES}/macros/{key('macros', 'title LIKE ?', 'Customer%')}",
        press('button "Save"', Actions_1__value="hold", Actions_3__field="priority", Actions_3__value="high"),
        (
            "PUT",
            lambda: f"macros/{key('macros', 'title LIKE ?', 'Customer%')}",
            lambda: {
                "macro": {
                    "actions": [
                        {"field": "status", "value": "hold"},
                        {"field": "comment_value", "value": "We have not heard from you about #{{ticket.id}}."},
                        {"field": "priority", "value": "high"},
                    ]
                }
            },
        ),
    ),
    "new trigger": (
        zendesk.ADMIN,
        f"{RULES}/triggers/new",
        press(
            'button "Add a line"',
            'button "Save"',
            Title="Tag",
            Conditions_all_1__field="status",
            Conditions_all_1__operator="is",
            Conditions_all_1__value="open",
            Actions_1__field="current tags",
            Actions_1__value="seen",
        ),
        (
            "POST",
            "triggers",
            lambda: {
                "trigger": {
                    "title": "Tag",
                    "actions": [{"field": "current_tags", "value": "seen"}],
                    "conditions": {"all": [{"field": "status", "operator": "is", "value": "open"}], "any": []},
                }
            },
        ),
    ),
    "new view": (
        zendesk.ADMIN,
        f"{RULES}/views/new",
        press(
            'checkbox "Active"',
            'button "Save"',
            Title="Open",
            Conditions_all_1__field="status",
            Columns="Priority",
            Conditions_all_1__operator="less than",
            Conditions_all_1__value="solved",
            Sort_by="Updated",
        ),
        (
            "POST",
            "views",
            lambda: {
                "view": {
                    "title": "Open",
                    "active": False,
                    "conditions": {"any": [], "all": [{"field": "status", "operator": "less_than", "value": "solved"}]},
                    "output": {"columns": ["priority"], "sort_by": "updated", "sort_order": "desc"},
                }
            },
        ),
    ),
    "new policy": (
        zendesk.ADMIN,
        f"{RULES}/slas/new",
        press(
            'button "Save"',
            Title="Fast",
            Policy_metrics_1__priority="Urgent",
            Policy_metrics_1__metric="First reply time",
            Policy_metrics_1__target="5",
            Policy_metrics_1__business_hours="Business hours",
        ),
        (
            "POST",
            "slas/policies",
            lambda: {
                "sla_policy": {
                    "title": "Fast",
                    "policy_metrics": [
                        {"priority": "urgent", "metric": "first_reply_time", "target": 5, "business_hours": True}
                    ],
                }
            },
        ),
    ),
    "new schedule": (
        zendesk.ADMIN,
        f"{RULES}/schedules/new",
        press(
            'button "Save"',
            Name="Monday",
            Time_zone="Europe/Berlin",
            Intervals_1__start_time="1980",
            Intervals_1__end_time="2400",
        ),
        (
            "POST",
            "business_hours/schedules",
            lambda: {
                "schedule": {
                    "name": "Monday",
                    "time_zone": "Europe/Berlin",
                    "intervals": [{"start_time": 1980, "end_time": 2400}],
                }
            },
        ),
    ),
    "new request": (
        CUSTOMER,
        "/hc/requests/new",
        press('button "Submit"', Subject="Broken", Description="It broke.", Plan="Silver"),
        (
            "POST",
            "requests",
            lambda: {
                "request": {
                    "subject": "Broken",
                    "comment": {"body": "It broke."},
                    "custom_fields": [{"id": custom("Plan"), "value": "silver"}],
                }
            },
        ),
    ),
    "reply": (
        CUSTOMER,
        "/hc/requests/1",
        press('button "Submit"', Add_to_the_conversation="Hello?"),
        ("PUT", "requests/1", lambda: {"request": {"comment": {"body": "Hello?"}}}),
    ),
    "solve": (
        CUSTOMER,
        "/hc/requests/1",
        press('button "Mark as solved"'),
        ("PUT", "requests/1", lambda: {"request": {"solved": True}}),
    ),
    "rate": (
        CUSTOMER,
        "/hc/satisfaction/6",
        press('button "Bad, I\'m unsatisfied"', Comment="Slow", Reason="Too late"),
        (
            "POST",
            "tickets/6/satisfaction_rating",
            lambda: {"satisfaction_rating": {"score": "bad", "comment": "Slow", "reason": "Too late"}},
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_act_on_a_page_leaves_the_state_of_the_call(name: str) -> None:
    email, page, acts, (method, of_api, body) = CASES[name]
    path, call = (one if isinstance(one, str) else one() for one in (page, of_api))
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
    assert not [*mine.db.diff(theirs.db)]
    assert digest(mine) == digest(theirs)


# -- beside Chromium


@LOOKS
def test_every_page_has_the_snapshot_of_chromium(chromium: Any, look: Look) -> None:
    tab = chromium.new_page()
    for name in PAGES:
        world = opened(name, look)
        page = world.browser.tab.page
        tab.set_content(page.decode())
        assert snapshot(world.browser.document, {}) == tab.locator("body").aria_snapshot(), name


@pytest.mark.slow
@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make web")
@LOOKS
def test_every_page_is_accessible_by_wcag_aa(chromium: Any, look: Look) -> None:
    tab = chromium.new_page(viewport={"width": 1280, "height": 800})
    for name in PAGES:
        tab.set_content(opened(name, look).browser.tab.page.decode())
        tab.add_script_tag(path=AXE)
        assert tab.evaluate(AXE_RUN) == [], name


def test_acts_in_chromium_leave_the_state_of_the_plain_browser(chromium: Any) -> None:
    theirs, served = desk(), Door()
    served.add("acme", theirs)
    with serving(served) as address:
        host = f"http://acme.zendesk.localhost:{address.rpartition(':')[2]}"
        mine, tab = desk(), chromium.new_context().new_page()
        mine.goto(f"{host}/agent/tickets/3")
        tab.goto(f"{host}/agent/tickets/3")
        texts = (("Email", zendesk.ADMIN), ("Password", zendesk.TOKEN), ("Comment", "a\nb"), ("Tags", "x y"))
        for label, text in texts[:2]:
            mine.fill(f'textbox "{label}"', text)
            tab.get_by_label(label).fill(text)
        mine.click('button "Sign in"')
        tab.get_by_role("button", name="Sign in").click()
        for label, text in texts[2:]:
            mine.fill(f'textbox "{label}"', text)
            tab.get_by_label(label, exact=True).fill(text)
        mine.select('listbox "Parts"', "Silver")
        tab.get_by_label("Parts").select_option("silver")
        mine.check('checkbox "Checked"')
        tab.get_by_label("Checked").check()
        mine.select('combobox "Macro"', "Take it!")
        tab.get_by_label("Macro").select_option(label="Take it!")
        for name in ("Apply macro", "Submit as Open"):
            mine.click(f'button "{name}"')
            tab.get_by_role("button", name=name).click()
            assert snapshot(mine.browser.document, {}) == tab.locator("body").aria_snapshot()
        assert mine.browser.tab.url == tab.url
    assert served.failures == {}
    theirs.browser = mine.browser
    assert [*mine.db.diff(theirs.db)] == []
    assert digest(mine) == digest(theirs)


def test_look_names_controls_and_moves_columns_and_leaves_what_people_wrote() -> None:
    world = signed()
    world.look = Look(labels={"Subject": "Title", "Save": "Store <it>"}, moved=1)
    Client(world).ticket(subject="Save", comment={"body": "Subject"})
    world.goto(f"{HOST}{PAGES['view']()[1]}")
    heads = [one.text for one in world.browser.document.body.all() if one.tag == "th"]
    world.look = Look()
    world.goto(f"{HOST}{PAGES['view']()[1]}")
    usual = [one.text for one in world.browser.document.body.all() if one.tag == "th"]
    assert heads[1:] == [*["Title" if one == "Subject" else one for one in usual[2:]], usual[1]]
    assert any(one.text == "Save" for one in world.browser.document.body.all() if one.tag == "a")
