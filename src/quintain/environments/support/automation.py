"""What the desk does every full hour: remind, solve and close what was left alone, and escalate broken promises."""

from __future__ import annotations

from .desk import HOUR, moment
from .schema.desk import Automation, Mail, SlaClock, Ticket
from .schema.people import Agent
from .tools.ticketing import Ticketing

BREACHED = "sla_breached"


class Automations(Ticketing):
    """The hourly sweep."""

    def sweep(self) -> None:
        """Run every automation on the tickets that it is about."""
        with self.db.transaction():
            for automation in self.rows(Automation, "is_active = 1"):
                idle = moment(self.clock.now - automation.idle_hours * HOUR)
                tag = automation.actions.get("tag", "")
                found = self.rows(
                    Ticket,
                    "status = ? AND updated <= ? AND NOT EXISTS"
                    " (SELECT 1 FROM ticket_tags t WHERE t.ticket_id = tickets.id AND t.tag = ?)",
                    automation.status,
                    idle,
                    tag,
                )
                for ticket in found:
                    self.act(ticket.id, automation.actions, actor="automation")
            overdue = "due < ? AND met IS NULL AND left_minutes IS NULL AND is_breached = 0"
            for clock in self.rows(SlaClock, overdue, self.now):
                self._escalate(clock)

    def _escalate(self, clock: SlaClock) -> None:
        """Mark a broken promise, and tell the lead of the group that should have kept it."""
        self.change(SlaClock, clock.id, is_breached=True)
        self.tag(clock.ticket_id, BREACHED)
        group = self.need(Ticket, clock.ticket_id).group_id
        where = "role = 'lead' AND is_active = 1 AND coalesce(group_id = ?, 1) ORDER BY id LIMIT 1"
        for lead in self.rows(Agent, where, group):
            self.add(Mail, at=self.now, to=lead.email, subject=f"Ticket {clock.ticket_id}: {clock.metric} is overdue")
