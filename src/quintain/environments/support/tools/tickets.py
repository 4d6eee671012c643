"""Tools about tickets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

import quintain as qn
from quintain.environments.support.desk import paged, reading, shown, writing
from quintain.environments.support.schema.desk import (
    Attachment,
    Category,
    Comment,
    Incident,
    Macro,
    Priority,
    Rating,
    Resolution,
    SlaClock,
    Ticket,
    TicketEvent,
    TicketTag,
    Verification,
    View,
)
from quintain.environments.support.schema.people import Agent, Customer, Group

from .people import Line, Number, Page, Words
from .ticketing import Ticketing

Tag = Annotated[str, msgspec.Meta(pattern="^[a-z0-9_]{1,40}$")]
SELF = "Support"
"""Signature of the agent."""


class Tickets(Ticketing):
    """The help desk."""

    @reading
    def list_tickets(
        self, view: Line | None = None, requester_id: Number | None = None, page: Page = 1
    ) -> dict[str, Any]:
        """List tickets of a view, or of a customer, latest first, ten on a page.

        Args:
            view: Name of a view; see list_views.
            requester_id: Number of the customer who wrote them.
            page: Page of the result, from 1.
        """
        where, values = ["merged_into IS NULL"], list[Any]()
        if view is not None:
            found = self.rows(View, "name = ?", view)
            if not found:
                raise qn.ToolError(f"there is no view {view!r}; see list_views")
            for field, wanted in found[0].conditions.items():
                where.append(f'"{field}" IN ({", ".join("?" * len(wanted))})')
                values += wanted
        if requester_id is not None:
            self.need(Customer, requester_id)
            where.append("requester_id = ?")
            values.append(requester_id)
        rows = self.rows(Ticket, f"{' AND '.join(where)} ORDER BY created DESC, id DESC", *values)
        return paged([_brief(row) for row in rows], page)

    @reading
    def search_tickets(self, query: Line, page: Page = 1) -> dict[str, Any]:
        """Find tickets by words in their subject or thread, latest first, ten on a page.

        Args:
            query: Words or parts of words; capital letters do not matter.
            page: Page of the result, from 1.
        """
        words = [f"%{word}%" for word in query.replace("%", "").split()]
        text = "(subject LIKE ? OR EXISTS (SELECT 1 FROM comments c WHERE c.ticket_id = tickets.id AND c.body LIKE ?))"
        where = " AND ".join([text] * len(words)) or "0"
        rows = self.rows(Ticket, f"{where} ORDER BY created DESC, id DESC", *[word for word in words for _ in "12"])
        return paged([_brief(row) for row in rows], page)

    @reading
    def get_ticket(self, ticket_id: Number) -> dict[str, Any]:
        """Show a ticket: fields, who wrote it, its whole thread, tags, deadlines, and checks of identity.

        Args:
            ticket_id: Number of the ticket.
        """
        ticket = self.need(Ticket, ticket_id)
        requester = self.need(Customer, ticket.requester_id)
        of = ("ticket_id = ?", ticket_id)
        return shown(ticket) | {
            "requester": {"id": requester.id, "name": requester.name, "email": requester.email},
            "thread": [self._told(row) for row in self.rows(Comment, *of)],
            "tags": [row.tag for row in self.rows(TicketTag, *of)],
            "deadlines": [shown(row, "id", "ticket_id") for row in self.rows(SlaClock, *of)],
            "identity_checks": [shown(row, "id", "ticket_id", "given") for row in self.rows(Verification, *of)],
            "merged": [row.id for row in self.rows(Ticket, "merged_into = ?", ticket_id)],
            "ratings": [shown(row, "id", "ticket_id") for row in self.rows(Rating, *of)],
        }

    @reading
    def list_ticket_events(self, ticket_id: Number, page: Page = 1) -> dict[str, Any]:
        """List what was changed on a ticket, latest first, ten on a page.

        Args:
            ticket_id: Number of the ticket.
            page: Page of the result, from 1.
        """
        self.need(Ticket, ticket_id)
        rows = self.rows(TicketEvent, "ticket_id = ? ORDER BY id DESC", ticket_id)
        return paged([shown(row, "id", "ticket_id") for row in rows], page)

    @writing
    def reply(self, ticket_id: Number, body: Words) -> str:
        """Write to the customer: a public reply, which goes out by e-mail. It cannot be taken back.

        Args:
            ticket_id: Number of the ticket.
            body: The text.
        """
        ticket = self._live(ticket_id)
        self.comment(ticket_id, "agent", sender=SELF, is_public=True, body=body)
        self.met(ticket_id, "first_reply")
        if ticket.status == "new":
            self.alter(ticket, "agent", status="open")
        self.cue(f"reply:{ticket_id}")
        return f"the reply on ticket {ticket_id} was sent"

    @writing
    def add_note(self, ticket_id: Number, body: Words) -> str:
        """Write an internal note on a ticket, which customers never see.

        Args:
            ticket_id: Number of the ticket.
            body: The text.
        """
        self._live(ticket_id)
        self.comment(ticket_id, "agent", sender=SELF, is_public=False, body=body)
        return f"a note on ticket {ticket_id} was written"

    @writing
    def update_ticket(
        self,
        ticket_id: Number,
        *,
        status: Literal["open", "pending", "hold", "solved"] | None = None,
        category: Category | None = None,
        resolution: Resolution | None = None,
        priority: Priority | None = None,
        group_id: Number | None = None,
        assignee_id: Number | None = None,
    ) -> str:
        """Change fields of a ticket; what is left out stays. Leaving solved takes the resolution away.

        Args:
            ticket_id: Number of the ticket.
            status: open: somebody works on it; pending: waits for the customer; hold: waits for others; solved.
            category: What it is about.
            resolution: How it ended; needed exactly when the status becomes, or is, solved.
            priority: How urgent it is; sets the deadlines anew.
            group_id: The group that works on it; see list_groups.
            assignee_id: The colleague who works on it.
        """
        ticket = self._live(ticket_id)
        if group_id is not None:
            self.need(Group, group_id)
        if assignee_id is not None and not self.need(Agent, assignee_id).is_active:
            raise qn.ToolError(f"agent {assignee_id} does not work here any more")
        given: dict[str, Any] = {"status": status, "category": category, "resolution": resolution, "priority": priority}
        given |= {"group_id": group_id, "assignee_id": assignee_id}
        fields: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        solved = (status or ticket.status) == "solved"
        if solved and not (resolution or ticket.resolution):
            raise qn.ToolError("a solved ticket needs a resolution")
        if resolution and not solved:
            raise qn.ToolError("only a solved ticket has a resolution")
        if not solved and ticket.resolution:
            fields["resolution"] = None
        if not fields:
            raise qn.ToolError("nothing to change: give at least one field")
        now = self.alter(ticket, "agent", **fields)
        changed = [name for name in fields if getattr(now, name) != getattr(ticket, name)]
        return f"ticket {ticket_id}: {', '.join(changed) or 'nothing'} changed"

    @writing
    def add_tag(self, ticket_id: Number, tag: Tag) -> str:
        """Put a tag on a ticket.

        Args:
            ticket_id: Number of the ticket.
            tag: Small letters, digits and underscores.
        """
        self._live(ticket_id)
        if not self.tag(ticket_id, tag):
            raise qn.ToolError(f"ticket {ticket_id} has the tag {tag} already")
        return f"ticket {ticket_id} has the tag {tag}"

    @writing
    def remove_tag(self, ticket_id: Number, tag: Tag) -> str:
        """Take a tag off a ticket.

        Args:
            ticket_id: Number of the ticket.
            tag: The tag.
        """
        self._live(ticket_id)
        if not self.count(TicketTag, "ticket_id = ? AND tag = ?", ticket_id, tag):
            raise qn.ToolError(f"ticket {ticket_id} has no tag {tag}")
        self.db.execute("DELETE FROM ticket_tags WHERE ticket_id = ? AND tag = ?", ticket_id, tag)
        return f"the tag {tag} is off ticket {ticket_id}"

    @writing
    def merge_tickets(self, ticket_id: Number, duplicate_id: Number) -> str:
        """Merge a ticket into another of the same customer: it is closed, and points there. Irreversible.

        Args:
            ticket_id: The ticket that goes on.
            duplicate_id: The ticket that ends.
        """
        ticket, duplicate = self._live(ticket_id), self._live(duplicate_id)
        if ticket_id == duplicate_id:
            raise qn.ToolError("a ticket cannot be merged into itself")
        if ticket.requester_id != duplicate.requester_id:
            raise qn.ToolError(f"tickets {ticket_id} and {duplicate_id} are of different customers")
        for tag in self.rows(TicketTag, "ticket_id = ?", duplicate_id):
            self.tag(ticket_id, tag.tag)
        self.met(duplicate_id, "first_reply")
        self.alter(duplicate, "agent", status="closed", merged_into=ticket_id, resolution="duplicate")
        return f"ticket {duplicate_id} was merged into {ticket_id}"

    @writing
    def link_incident(self, ticket_id: Number, incident_id: Number) -> str:
        """Note that a ticket comes from an incident. Who is linked is told when it is over.

        Args:
            ticket_id: Number of the ticket.
            incident_id: Number of the incident.
        """
        ticket = self._live(ticket_id)
        self.need(Incident, incident_id)
        if self.alter(ticket, "agent", incident_id=incident_id) is ticket:
            raise qn.ToolError(f"ticket {ticket_id} is linked to incident {incident_id} already")
        return f"ticket {ticket_id} is linked to incident {incident_id}"

    @writing
    def apply_macro(self, ticket_id: Number, macro_id: Number) -> str:
        """Apply a macro: its text is sent as a public reply, its changes are made.

        Args:
            ticket_id: Number of the ticket.
            macro_id: Number of the macro.
        """
        ticket = self._live(ticket_id)
        macro = self.need(Macro, macro_id)
        self.comment(ticket_id, "agent", sender=SELF, is_public=True, body=macro.text)
        self.met(ticket_id, "first_reply")
        self.act(ticket, macro.actions, actor="agent")
        self.cue(f"reply:{ticket_id}")
        return f"macro {macro.name} was applied to ticket {ticket_id}"

    # -- inside

    def _live(self, ticket_id: int) -> Ticket:
        """A ticket that can still be worked on."""
        ticket = self.need(Ticket, ticket_id)
        if ticket.merged_into is not None:
            raise qn.ToolError(f"ticket {ticket_id} was merged into {ticket.merged_into}")
        if ticket.status == "closed":
            raise qn.ToolError(f"ticket {ticket_id} is closed")
        return ticket

    def _told(self, comment: Comment) -> dict[str, Any]:
        attached = self.rows(Attachment, "comment_id = ?", comment.id)
        found = shown(comment, "id", "ticket_id")
        return found | {"attachments": [shown(row, "id", "comment_id") for row in attached]} if attached else found


def _brief(ticket: Ticket) -> dict[str, Any]:
    return {
        "id": ticket.id,
        "subject": ticket.subject,
        "status": ticket.status,
        "priority": ticket.priority,
        "requester_id": ticket.requester_id,
        "created": ticket.created,
    }
