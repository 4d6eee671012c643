"""Types of the parts of a wanted ticket, and the text of HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

import msgspec

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


class _TicketInput(msgspec.Struct):
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
        msgspec.convert(wanted, _TicketInput, strict=False)
    except msgspec.ValidationError as error:
        raise Invalid("base", f"Ticket: {error}", "InvalidValue") from error


class _TextParser(HTMLParser):
    """Text of HTML, without the content of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in {"script", "style"}
        if tag in {"br", "p", "div", "li"} and self.parts:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in {"script", "style"} and self._silent > 0

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)


def plain_text(text: str) -> str:
    """Returns the text of HTML; scripts and styles are left out."""
    parser = _TextParser()
    parser.feed(text)
    parser.close()
    return re.sub(r"\n{3,}", "\n\n", "".join(parser.parts)).strip()
