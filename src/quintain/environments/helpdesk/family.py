"""Descriptions of the families, read from `families.toml`, and the intents that their solutions are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from quintain.task import Call

from .state import numbers


class Item(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Ticket of a scene, as the head of `families.toml` explains it."""

    letter: str = "{complaint}"
    letters: list[str] = []
    subject: str = ""
    kinds: list[str] = []
    foreign: bool = False
    who: str = ""
    copies: int = 1
    days: tuple[int, int] = (1, 1)
    value: tuple[int, int] | None = None
    note: str = ""
    thread: list[tuple[str, str]] = []
    set: dict[str, str] = {}
    after: dict[str, str] = {}
    rated: str = ""
    update: dict[str, str | bool] = {}
    edit: dict[str, str] = {}
    reply: str = ""
    inside: str = ""
    facts: list[str] = []
    notes: list[str] = []
    never: list[str] = []
    act: Literal["", "spam", "merge", "link"] = ""

    @property
    def is_wanted(self) -> bool:
        """False if the ticket is to be left alone."""
        return bool(self.update or self.act or self.reply)


class Rule(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Rule that a task asks for, and how it is proved."""

    act: str
    words: str
    rule: dict[str, Any]
    proof: Literal["view", "macro", "stream"]


class LevelOf(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Work of a family at one level."""

    items: dict[str, int] = {}
    before: Literal["", "problem"] = ""
    after: Literal["", "solve", "handover"] = ""
    more: str = ""
    least: int = 0
    most: int = 0
    words: str = ""
    query: str = ""
    where: str = ""
    days: int = 0
    form: str = ""
    top: int = 0
    rules: list[str] = []


class Family(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Family of tasks."""

    prompt: str
    levels: dict[str, LevelOf]
    articles: list[str] = []
    query: str = ""
    items: dict[str, Item] = {}
    rules: dict[str, Rule] = {}


def _families() -> dict[str, Family]:
    found: dict[str, dict[str, Any]] = msgspec.toml.decode((Path(__file__).parent / "families.toml").read_bytes())
    for family in found.values():
        every = family.pop("every", {})
        family["items"] = {name: every | item for name, item in family.get("items", {}).items()}
    return msgspec.convert(found, dict[str, Family])


FAMILIES = _families()


class Intent(msgspec.Struct, frozen=True):
    """One thing that a solution does, in the words of a person at the desk: a driver turns it into calls or clicks.

    Attributes:
        act: A name in `ACTS`.
        record: Ticket or user that it is about.
        fields: What it reads or writes. Groups, people and fields have the names that a page shows; `comment` is a
            text and `public` its audience.
    """

    act: str
    record: int = 0
    fields: dict[str, Any] = {}


ACTS: dict[str, tuple[tuple[str, str], ...]] = {
    "article": (("search_articles", "query"),),
    "search": (("search", "query"),),
    "groups": (("list_groups", ""),),
    "open": (("show_ticket", "id"), ("list_comments", "id")),
    "show": (("show_tickets", "query"),),
    "export": (("list_metric_events", "query"),),
    "update": (("update_ticket", "id ticket"),),
    "create": (("create_ticket", "ticket"),),
    "bulk": (("update_tickets", "ids ticket"),),
    "merge": (("merge_tickets", "id body"),),
    "spam": (("mark_as_spam", "id"),),
    "edit": (("show_user", "id"), ("update_user", "id user")),
    "view": (("create_view", "body"),),
    "macro": (("create_macro", "body"),),
    "trigger": (("create_trigger", "body"),),
    "automation": (("create_automation", "body"),),
    "sla_policy": (("create_sla_policy", "body"),),
}
"""Calls of each act: the tool, and where it takes the record and the fields."""


def calls(intent: Intent) -> list[Call]:
    """Returns the calls of tools that an intent means."""
    fields = {name: value for name, value in intent.fields.items() if name != "ids"}
    places = {
        "id": ("id", intent.record), "query": ("query", intent.fields), "body": ("body", intent.fields),
        "user": ("body", {"user": intent.fields}), "ticket": ("body", {"ticket": _ticket(fields)}),
        "ids": ("query", {"ids": ",".join(map(str, intent.fields.get("ids", ())))}),
    }  # fmt: skip
    return [(tool, dict(places[one] for one in form.split())) for tool, form in ACTS[intent.act]]


def _ticket(fields: dict[str, Any]) -> dict[str, Any]:
    """Returns a ticket in the API's words."""
    ids, found = numbers(), dict[str, Any]()
    for name, value in fields.items():
        if name == "group":
            found["group_id"] = ids["group"][value]
        elif name in ids["field"]:
            found.setdefault("custom_fields", []).append({"id": ids["field"][name], "value": value})
        elif name == "comment":
            found["comment"] = {"body": value, "public": fields["public"]}
        elif name != "public":
            names = {"assignee": "assignee_email", "tags": "additional_tags", "problem": "problem_id"}
            found[names.get(name, name)] = [value] if name == "tags" else value
    return found
