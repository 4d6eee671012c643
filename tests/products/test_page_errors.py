"""Pages of Zendesk's clone: sign-in, refusals, hostile input, and what forms keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from quintain.products import zendesk
from quintain.resources.web import HttpRequest, request
from quintain.resources.web.aria import name_of, value_of
from tests.products.conftest import Client
from tests.products.pages import CUSTOMER, HOST, HOSTILE, PAGES, RULES, Desk, desk, key, opened, signed


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
    agent = key("users", "name = 'Agent 1'")
    Client(world)("PUT", f"users/{agent}", {"user": {"suspended": True}})
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
    name, value = cookie(world)
    answer = world.respond(request("GET", HOST + path, headers={name: value}))
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
    texts = [one for one in page.controls if one.tag in {"input", "textarea"}]
    fields = [one for one in texts if one.attrs.get("type") not in {"checkbox", "radio", "file"}]
    buttons = [one for one in page.controls if one.tag == "button" and name_of(page, one) != "Sign out"]
    for value in WEIRD:
        for button in {*buttons[:1], *buttons[-1:]}:
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
