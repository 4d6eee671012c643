"""The desk's mailbox. Letters leave and answers arrive as time passes. Usable alone."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

import quintain as qn
from quintain.environments.faults import served

from . import times

PAGE = 10
_ADDRESS = re.compile(r"[^@\s,;<>]+@[^@\s,;<>]+\.[^@\s,;<>]+")

Page = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Address = Annotated[str, msgspec.Meta(max_length=254)]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=8000)]


class Outgoing(msgspec.Struct, kw_only=True):
    """A letter of ours."""

    to: str
    subject: str
    body: str
    status: Literal["sent", "scheduled", "cancelled"]
    at: str
    """Time at which it left or will leave."""


class Incoming(msgspec.Struct, kw_only=True):
    """A letter to us."""

    sender: str
    subject: str
    body: str
    at: str
    read: bool = False


class Habit(msgspec.Struct, kw_only=True):
    """Prepared answer of a contact to the next letter; hidden until it arrives."""

    message_id: str
    delay_s: float
    subject: str
    body: str


class Mail(qn.State):
    """Outbox, inbox, and the people on the other side."""

    outbox: qn.Table[Outgoing]
    inbox: qn.Table[Incoming]
    habits: qn.Table[Habit]

    @qn.tool
    @served
    def send(self, to: Address, subject: Words, body: Words) -> str:
        """Send an e-mail from the desk now.

        Args:
            to: One e-mail address.
            subject: Subject line.
            body: Text.
        """
        key = self._write((to, subject, body), self.clock.now)
        self.leave(key)
        return f"sent {key} to {to}"

    @qn.tool
    @served
    def schedule(self, to: Address, subject: Words, body: Words, at: str) -> str:
        """Have an e-mail leave later.

        Args:
            to: One e-mail address.
            subject: Subject line.
            body: Text.
            at: When, such as 2025-03-11T14:30Z or 2025-03-11T14:30+01:00.
        """
        due = times.parse(at)
        if due <= self.clock.now:
            raise qn.ToolError(f"{at} is past; it is {times.stamp(self.clock.now)}")
        key = self._write((to, subject, body), due)
        self.clock.at(due, self.leave, key=key)
        return f"scheduled {key} to {to} for {times.stamp(due)}"

    @qn.tool
    @served
    def cancel(self, mail_id: str) -> str:
        """Cancel a scheduled e-mail.

        Args:
            mail_id: Id of the e-mail (M-).
        """
        letter = self.outbox.get(mail_id)
        if letter is None or letter.status != "scheduled":
            raise qn.ToolError(f"{mail_id!r} is {letter.status if letter else 'no e-mail of ours'}; nothing to cancel")
        letter.status = "cancelled"
        self.outbox[mail_id] = letter
        return f"cancelled {mail_id}"

    @qn.tool
    @served
    def sent_to(self, address: str) -> list[dict[str, Any]]:
        """List our e-mails to one address, scheduled and cancelled ones included, the latest ten first.

        Args:
            address: The e-mail address.
        """
        wanted = address.strip().casefold()
        found = [(row.at, key, row) for key, row in self.outbox.items() if row.to.casefold() == wanted]
        latest = sorted(found, key=lambda entry: entry[:2])[::-1][:PAGE]
        return [{"id": key, "subject": row.subject, "status": row.status, "at": at} for at, key, row in latest]

    @qn.tool
    @served
    def inbox_list(self, page: Page = 1) -> dict[str, Any]:
        """List the inbox, newest first, ten on a page.

        Args:
            page: Page of the result, from 1.
        """
        newest = sorted(((row.at, key, row) for key, row in self.inbox.items()), key=lambda entry: entry[:2])[::-1]
        shown = [
            {"id": key, "from": row.sender, "subject": row.subject, "at": at, "read": row.read}
            for at, key, row in newest[(page - 1) * PAGE : page * PAGE]
        ]
        return {"found": len(newest), "page": page, "pages": -(-len(newest) // PAGE), "messages": shown}

    @qn.tool
    @served
    def read(self, message_id: str) -> Incoming:
        """Read a received e-mail.

        Args:
            message_id: Id of the message (I-).
        """
        message = self.inbox.get(message_id)
        if message is None:
            raise qn.ToolError(f"there is no message {message_id!r}")
        message.read = True
        self.inbox[message_id] = message
        return message

    @property
    def unread(self) -> int:
        """Number of received letters that were not opened."""
        return sum(not message.read for message in self.inbox.values())

    def leave(self, key: str) -> None:
        """A letter leaves; called by the clock for scheduled ones. Its reader's answer begins to take shape."""
        letter = self.outbox[key]
        if letter.status != "scheduled":
            return
        letter.status = "sent"
        self.outbox[key] = letter
        habit = self.habits.pop(letter.to.casefold(), None)
        if habit is not None:
            answer = {"sender": letter.to, "subject": habit.subject, "body": habit.body}
            self.clock.after(habit.delay_s, self.deliver, key=habit.message_id, **answer)

    def deliver(self, key: str, *, sender: str, subject: str, body: str) -> None:
        """A letter arrives; called by the clock."""
        now = times.stamp(self.clock.now)
        self.inbox[key] = Incoming(sender=sender, subject=subject, body=body, at=now)

    def _write(self, letter: tuple[str, str, str], due: float) -> str:
        to, subject, body = letter
        if not _ADDRESS.fullmatch(to):
            raise qn.ToolError(f"{to!r} is not one e-mail address")
        key = self.new_id("M-")
        self.outbox[key] = Outgoing(to=to, subject=subject, body=body, status="scheduled", at=times.stamp(due))
        return key
