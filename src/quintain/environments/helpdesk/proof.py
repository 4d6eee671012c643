"""Proofs of rules: what a rule does, whatever it looks like."""

from __future__ import annotations

import json
from typing import Any, Literal

from quintain.authoring import Recent, TaskGoal
from quintain.products.zendesk import tables as tb
from quintain.products.zendesk.commit import commit
from quintain.resources.web import request
from quintain.resources.web.noise import QUIET
from quintain.resources.web.rows import find, select

from .state import Helpdesk

_KNOWN: Recent[tuple[str, ...]] = Recent(64)


class Proof(TaskGoal, frozen=True, kw_only=True):
    """A rule that does the same as that of the solution.

    Attributes:
        kind: The view's tickets, the macro's changes, or what becomes of a stream of new tickets.
        title: Title of the rule.
        group: Group in which a part of the stream begins.
        keyword: Word that a part of the stream holds.
        hours: Hours around which time is watched; 0 to watch no time.
        shown: What the solution's rule does.
    """

    kind: Literal["view", "macro", "stream"]
    title: str
    group: int
    keyword: str
    hours: int
    shown: tuple[str, ...]

    def missing(self, world: Helpdesk, start: Helpdesk, /) -> str:
        """Returns the first difference between what the rule does and what it should do."""
        del start
        found = _KNOWN.get((world.db.digest(), self), lambda: self.play(world))
        pairs = zip(found, self.shown, strict=False)
        wrong = [f"{one} instead of {other}" for one, other in pairs if one != other]
        return "" if found == self.shown else "; ".join(wrong[:1]) or f"{self.title} is missing"

    def play(self, world: Helpdesk) -> tuple[str, ...]:
        """Returns what the rule does to a stream of new tickets, on a fork."""
        fork = world.copy()
        fork.noise = QUIET
        customer = select(fork.db, tb.User, "role = 'end-user' AND active = 1 ORDER BY id LIMIT 1")[0]
        agent = select(fork.db, tb.User, "role = 'admin' ORDER BY id LIMIT 1")[0]
        numbers: list[int] = []
        for priority in tb.PRIORITIES:
            for group, text in ((None, "It squeaks."), (self.group, f"There was {self.keyword}, I think.")):
                wanted = {"comment": {"body": text}, "priority": priority, "group_id": group}
                numbers += [commit(fork, customer, None, wanted=wanted)[0].id for _ in range(2)]
        shown = [self._row(fork, one) for one in numbers]
        # Of each kind one ticket goes on to the next status, so that a condition on the status shows.
        for one in numbers[::2]:
            status = "pending" if self.hours else "solved"
            ticket = find(fork.db, tb.Ticket, one)
            members = select(fork.db, tb.GroupMembership, "group_id = ? ORDER BY id", ticket.group_id if ticket else 0)
            assignee = members[0].user_id if members else agent.id
            commit(fork, agent, ticket, wanted={"status": status, "assignee_id": assignee})
        if self.kind != "stream":
            return self._shown(fork, numbers[1])
        fork.arm()
        for hours in (self.hours - 1, 3) if self.hours else ():
            fork.clock.advance(hours * 3600.0)
            shown += [self._row(fork, one) for one in numbers]
        return tuple(shown)

    def _shown(self, fork: Helpdesk, ticket: int) -> tuple[str, ...]:
        rules = _get(fork, f"{self.kind}s?per_page=100")[f"{self.kind}s"]
        numbers = [one["id"] for one in rules if one["title"] == self.title and one["active"]]
        if not numbers:
            return ()
        if self.kind == "view":
            return tuple(str(one["id"]) for one in _get(fork, f"views/{numbers[0]}/tickets?sort_by=nice_id")["tickets"])
        found = _get(fork, f"tickets/{ticket}/macros/{numbers[0]}/apply")["result"]["ticket"]
        return tuple(f"{name}: {found[name]}" for name in sorted(found.keys() - {"id", "url", "custom_status_id"}))

    def _row(self, fork: Helpdesk, number: int) -> str:
        ticket, metric = find(fork.db, tb.Ticket, number), find(fork.db, tb.Metric, number)
        assert ticket is not None, "the stream's tickets are there"
        assert metric is not None, "each ticket has its measurements"
        clocks = [(one.metric, one.target, one.business_hours) for one in metric.clocks if one.target]
        return f"{ticket.status} {ticket.priority} {ticket.group_id} {ticket.tags} {clocks}"


def _get(fork: Helpdesk, path: str) -> dict[str, Any]:
    url = f"http://acme.zendesk.localhost/api/v2/{path}"
    body: dict[str, Any] = json.loads(
        fork.respond(request("GET", url, headers={"authorization": fork.authorization})).body
    )
    return body
