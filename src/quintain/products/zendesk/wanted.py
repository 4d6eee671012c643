"""Types of the parts of a wanted ticket, and the text of HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from selectolax.lexbor import LexborHTMLParser

from quintain.resources.web.html import SILENT

from .account import Invalid


class _CommentInput(msgspec.Struct):
    body: str | None = None
    html_body: str | None = None
    public: bool | None = None
    author_id: int | None = None
    uploads: list[str] | str | None = None


class _PersonInput(msgspec.Struct):
    user_id: int | None = None
    user_email: str | None = None
    action: str | None = None


class _FieldInput(msgspec.Struct):
    id: int | str
    value: Any = None


class TicketInput(msgspec.Struct):
    """Types of the parts of a wanted ticket that are no plain fields."""

    comment: _CommentInput | str | None = None
    description: str | None = None
    requester: dict[str, str | int | bool | None] | None = None
    tags: list[str] | str | None = None
    additional_tags: list[str] | str | None = None
    remove_tags: list[str] | str | None = None
    custom_fields: list[_FieldInput] | dict[str, Any] | None = None
    fields: list[_FieldInput] | dict[str, Any] | None = None
    followers: list[_PersonInput] | None = None
    email_ccs: list[_PersonInput] | None = None
    follower_ids: list[int] | None = None
    email_cc_ids: list[int] | None = None
    collaborator_ids: list[int] | None = None
    collaborators: list[int | str | dict[str, str | int | None]] | None = None
    additional_collaborators: list[int | str | dict[str, str | int | None]] | None = None
    assignee_email: str | None = None
    submitter_id: int | None = None
    via_followup_source_id: int | None = None
    metadata: dict[str, Any] | None = None
    macro_ids: list[int] | None = None


def check(wanted: Mapping[str, Any]) -> None:
    """Raises Invalid if a part has another type."""
    try:
        msgspec.convert(wanted, TicketInput, strict=False)
    except msgspec.ValidationError as error:
        raise Invalid("base", f"Ticket: {error}") from error


def plain_text(text: str) -> str:
    """Returns the text of HTML; scripts and styles are left out."""
    tree = LexborHTMLParser(text)
    tree.strip_tags([*SILENT])
    nodes = () if tree.body is None else tree.body.traverse(include_text=True)
    parts = (
        node.text_content or "" if node.is_text_node else "\n" * (node.tag in {"br", "p", "div", "li"})
        for node in nodes
    )
    return re.sub(r"\n{3,}", "\n\n", "".join(parts)).strip()
