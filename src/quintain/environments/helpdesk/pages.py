"""Driver of the product's pages: it plays the intents of a solution with the tools of a browser.

`FORMS` says for each act where it is done and which button does it, `FIELDS` how a page names the fields. What a field
takes is read from the page: a list takes an option, a checkbox is checked, anything else is filled.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import quote

import msgspec

from quintain.products import zendesk
from quintain.products.zendesk.screens import STATUSES
from quintain.resources.web.aria import name_of, option_value, role_of, value_of
from quintain.resources.web.browser import BrowserTools
from quintain.resources.web.html import Element
from quintain.resources.web.look import Look
from quintain.task import Call, Task, Tasks
from quintain.tools import collect

from . import tasks as api
from .draft import Case, Truth
from .family import Intent
from .state import HOST, HelpdeskPages

TOOLS = tuple(collect(BrowserTools))
"""Names of the tools of a browser."""
_RULES = "/admin/objects-rules/rules"


class Form(NamedTuple):
    """Page on which an act is done.

    Attributes:
        path: Its path; slots are `record`, `ids` and the fields of the intent.
        button: Button that does the act; empty for an act that reads.
        link: Query for the name of a link that is followed then; its value is the intent's `query`.
        labels: Labels of fields, where they are not those of `FIELDS`.
    """

    path: str
    button: str = ""
    link: str = ""
    labels: dict[str, str] = {}


class PageField(NamedTuple):
    """Field of an intent, as pages show it.

    Attributes:
        label: Its label.
        sql: Query for what the page shows in place of the value.
        appends: True if the value is added to what the field holds.
    """

    label: str
    sql: str = ""
    appends: bool = False


FORMS = {
    "article": Form(
        f"{_RULES}/articles",
        link="SELECT title FROM zd_articles WHERE instr(lower(title || ' ' || body), lower(?)) ORDER BY id",
    ),
    "search": Form("/agent/search/1?q={query}"),
    "groups": Form(f"{_RULES}/groups"),
    "open": Form("/agent/tickets/{record}"),
    "update": Form("/agent/tickets/{record}", "Submit as"),
    "create": Form("/agent/tickets/new", "Submit as"),
    "bulk": Form("/agent/bulk?act=edit&{ids}", "Edit", labels={"tags": "Add tags"}),
    "merge": Form("/agent/bulk?act=merge&{ids}", "Merge"),
    "spam": Form("/agent/bulk?act=spam&ids={record}", "Mark as spam"),
    "edit": Form("/agent/users/{record}", "Save"),
    "export": Form("/agent/reports?begin={start_time}&metric=reply_time"),
    "view": Form(f"{_RULES}/views/new", "Save", labels={"all": "Conditions"}),
    "macro": Form(f"{_RULES}/macros/new", "Save"),
    "trigger": Form(f"{_RULES}/triggers/new", "Save"),
    "automation": Form(f"{_RULES}/automations/new", "Save"),
    "sla_policy": Form(f"{_RULES}/slas/new", "Save"),
}  # fmt: skip
"""Page of each act that has one."""
FIELDS = {
    "assignee": PageField("Assignee", "SELECT name FROM zd_users WHERE email = ?"),
    "requester_id": PageField("Requester", "SELECT email FROM zd_users WHERE id = ?"),
    "tags": PageField("Tags", appends=True),
    "problem": PageField("Linked problem"),
    "target": PageField("Or number of a ticket"),
}
"""Fields whose label is not their name, or whose value is shown otherwise."""
AUDIENCE = {True: "Public reply", False: "Internal note"}
"""Radio buttons of a comment."""
_NEXT = "Next page"
_LOOKS: dict[str, Any] = msgspec.toml.decode((Path(__file__).parent / "looks.toml").read_bytes())
_UNSENT = {"ids", "query", "page", "per_page", "status"}
"""Fields of intents that no field of a form takes."""


class _NotTaken(Exception):
    """A planned refusal."""


class Driver:
    """Person at the browser, who plays intents and records the calls.

    Args:
        world: The world in which they are played.
    """

    def __init__(self, world: HelpdeskPages) -> None:
        self.world = world
        self.calls: list[Call] = []
        self._is_lost = self._has_exported = False

    def sign_in(self) -> None:
        """Opens the workspace as the admin."""
        self._call("goto", url=f"http://{HOST}/agent")
        if self._find(self.world.look.name("Email")):
            self._enter("Email", zendesk.ADMIN)
            self._enter("Password", zendesk.TOKEN)
            self._press("Sign in")

    def play(self, act: Callable[[], None]) -> None:
        """Plays an act, and once more if the product refused it as planned, which leaves nothing behind.

        Raises:
            ValueError: A page lacks a control, or the product refused the act.
        """
        while True:
            with contextlib.suppress(_NotTaken):
                return act()

    def perform(self, intent: Intent) -> None:
        """Performs an intent from its first page on."""
        fields = intent.fields
        # The driver has followed the links to all pages of the first list, and a report names the groups.
        if intent.act == "show" or fields.get("page", "1") != "1" or (intent.act == "export" and self._has_exported):
            return
        form = FORMS[intent.act]
        ids = "&".join(f"ids={one}" for one in fields.get("ids", ()))
        slots = {name: quote(str(value)) for name, value in fields.items()}
        url = f"http://{HOST}{form.path.format_map(slots | {'record': intent.record, 'ids': ids})}"
        if url != self.world.browser.tab.url or self._is_lost:
            self._is_lost = False
            self._call("goto", url=url)
        while not form.button and self._find(_NEXT, "link"):
            self._call("click", target=f'link "{_NEXT}"')
        if form.link:
            self._click(self.world.db.execute(form.link, fields["query"])[0][0], "link")
        self._has_exported |= intent.act == "export"
        if not form.button:
            return
        sent: dict[str, Any] = fields | ({"target": intent.record} if intent.act == "merge" else {})
        for label, field, value in _entries(sent.get(intent.act, sent), form):
            self._enter(label, value, field)
        status = STATUSES.get(fields.get("status", ""), "")
        self._press(f"{form.button} {status}".strip())

    def _enter(self, label: str, value: Any, field: PageField | None = None) -> None:
        """Puts a value into the field of a label."""
        label = self.world.look.name(label)
        while not (found := self._find(label)):
            self._press("Add a line")
        if field is not None and field.sql:
            value = self.world.db.execute(field.sql, value)[0][0]
        page, control, text = self.world.browser.document, found[0], str(value)
        role = role_of(page, control)
        target = f'{role} "{label}"'
        if role in {"checkbox", "radio"}:
            self._call("check", target=target, on=value)
        elif role == "combobox":
            options = [one for one in control.all() if one.tag == "option"]
            texts = {name_of(page, one): option_value(one) for one in options}
            wanted = text if text in texts else next(name for name, one in texts.items() if one == text.lower())
            self._call("select", target=target, option=wanted)
        else:
            held = value_of(page, control, self.world.browser.tab.values) if field is not None and field.appends else ""
            self._call("fill", target=target, text=f"{held} {text}".strip() if held else text)

    def _press(self, button: str) -> None:
        """Presses the first button whose usual name begins so."""
        page = self.world.browser.document
        found = [one for one in page.controls if role_of(page, one) == "button"]
        names = [name for one in found if self.world.look.usual(name := name_of(page, one)).startswith(button)]
        if not names:
            raise ValueError(f"the page {page.title!r} has no button {button!r}")
        self._click(names[0], "button")
        alerts = [one for one in self.world.browser.document.body.all() if one.attrs.get("role") == "alert"]
        if alerts:
            raise ValueError(f"the page {page.title!r} refused {names[0]!r}: {alerts[0].text.strip()[:300]}")

    def _click(self, name: str, role: str) -> None:
        self._call("click", target=f'{role} "{name}"')

    def _find(self, name: str, *roles: str) -> list[Element]:
        page = self.world.browser.document
        known = roles or ("textbox", "combobox", "spinbutton", "checkbox", "radio")
        return [one for one in page.controls if name_of(page, one) == name and role_of(page, one) in known]

    def _call(self, tool: str, **arguments: Any) -> None:
        before = self.world.browser.tab.url
        self.calls.append((tool, arguments))
        getattr(self.world, tool)(**arguments)
        if self.world.met.refused:
            self._is_lost = True
            # A form that led on to another page was taken; only that page was refused.
            if not arguments.get("target", "").startswith("button") or self.world.browser.tab.url == before:
                raise _NotTaken


def _entries(fields: dict[str, Any], form: Form) -> Iterator[tuple[str, PageField, Any]]:
    """Yields labels, fields and values of what a form takes; a list of lines has a label for each column."""
    for name, value in fields.items():
        field = FIELDS.get(name, PageField(name[:1].upper() + name[1:].replace("_", " ")))
        label = form.labels.get(name, field.label)
        if name == "public":
            yield AUDIENCE[value], field, True
        elif isinstance(value, dict):  # Conditions have two lists of lines.
            for part, lines in cast(dict[str, Any], value).items():
                yield from _lines(f"{label} {part}", lines)
        elif isinstance(value, list) and name not in _UNSENT:
            yield from _lines(f"{label} {name}" if name in form.labels else label, cast(Any, value))
        elif name not in _UNSENT:
            yield label, field, value


def _lines(label: str, lines: Sequence[dict[str, Any]]) -> Iterator[tuple[str, PageField, Any]]:
    for number, line in enumerate(lines, 1):
        for column, value in line.items():
            yield f"{label} {number}: {column.replace('_', ' ')}", PageField(column), value


class PagesCase(Case):
    """A task whose solution is played in pages. Its scene, goals and limits are those of the task for the API."""

    kind = HelpdeskPages

    def look(self) -> Look:
        """Returns the variant of the pages."""
        return Look()

    def write(self, name: str) -> str:
        """Writes a task of a family; returns the last words of its solution."""
        answer = super().write(name)
        self.desk.look = self.look()
        driver = Driver(cast(HelpdeskPages, self.desk.copy()))
        driver.play(driver.sign_in)
        for intent in self.intents:
            driver.play(functools.partial(driver.perform, intent))
        self.calls, self.spent_s = driver.calls, driver.world.clock.now - self.desk.clock.now
        return answer

    def truth(self) -> Truth:
        """Returns the goals; the time is at least that of the solution, which planned refusals can make long."""
        found = super().truth()
        return msgspec.structs.replace(found, budget_s=max(found.budget_s, self.spent_s))

    def task(self, id: str, *, answer: str, tags: dict[str, str]) -> Task[Any]:
        """Returns the finished task, which offers the tools of a browser alone."""
        made = super().task(id, answer=answer, tags=tags)
        return msgspec.structs.replace(made, tools=TOOLS)


class VariedCase(PagesCase):
    """A task in one of the variants of the pages, which is drawn after everything else of the task."""

    def look(self) -> Look:
        """Returns the variant of the pages."""
        drawn = {name: self.rng.choice(_LOOKS[name]) for name in ("styles", "names", "announcements", "rows")}
        return Look(drawn["styles"], drawn["names"], drawn["announcements"], drawn["rows"], moved=self.rng.below(4))


def tasks(split: str, case: type[PagesCase] = PagesCase) -> Tasks[Any]:
    """Returns the tasks of a split, written for pages."""
    return api.tasks(split, case)
