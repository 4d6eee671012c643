"""Actions of rules, and the runs of triggers and automations."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any

import msgspec

from quintain.resources.database.standing import known
from quintain.resources.web.rows import find, marks, select
from quintain.resources.web.world import moment

from . import tables as tb
from .account import AGENTS, Desk, channel, listed, record, whole_number
from .conditions import Answers, Now, Rule, compiled, decoded, sql
from .sla import calendar

if TYPE_CHECKING:
    from .commit import Update

SWEPT = 1000
"""Tickets that one automation changes in an hour at most."""
HARD_CLOSE_S = 28 * 86_400
"""Seconds after which a solved ticket is closed whatever the automations say."""
STATE_ACTIONS = ("status", "type", "priority", "group_id", "assignee_id", "set_tags", "current_tags", "remove_tags",
                 "custom_status_id", "ticket_form_id", "follower", "brand_id", "subject")  # fmt: skip
ACTIONS = {
    "trigger": (*STATE_ACTIONS, "notification_user", "notification_group", "notification_webhook",
        "satisfaction_score", "cc",
                "locale_id", "set_schedule"),
    "automation": (*STATE_ACTIONS, "notification_user", "notification_group", "notification_webhook",
                   "satisfaction_score", "cc", "locale_id"),
    "macro": (*STATE_ACTIONS, "comment_value", "comment_value_html", "comment_mode_is_public", "cc"),
}  # fmt: skip
_TRIGGERS = """SELECT t.id, t.title, t.conditions, t.actions FROM zd_triggers t LEFT JOIN zd_trigger_categories c
    ON CAST(c.id AS TEXT) = t.category_id WHERE t.active = 1 ORDER BY coalesce(c.position, 0), t.position, t.id"""


def faults(kind: str, actions: Any) -> str:
    """Returns the reason why actions are not valid for a kind of rule; empty if they are."""
    if not listed(actions):
        return "Actions: cannot be blank"
    for one in listed(actions):
        name = record(one).get("field")
        if not isinstance(name, str) or not (name in ACTIONS[kind] or re.fullmatch(r"custom_fields_\d{1,18}", name)):
            return f"Action {name!r} is not valid for a {kind}"
    return ""


@functools.lru_cache(maxsize=256)
def _rules(records: tuple[tuple[Any, ...], ...]) -> list[tuple[int, str, Rule, list[tb.Json]]]:
    """Returns triggers with their conditions and actions; the same rows need not be read twice."""
    return [(number, title, compiled(holds), decoded(actions)) for number, title, holds, actions in records]


def run_triggers(made: Update) -> None:
    """Runs the triggers in order; after one that changed the ticket, all that have not run are asked again."""
    rules = _rules(tuple(known(made.world.db, _TRIGGERS)))
    fired: set[int] = set()
    answers, ticket = Answers(made), made.ticket
    again = True
    while again:
        again = False
        for number, title, holds, actions in rules:
            if number in fired or not holds(answers):
                continue
            fired.add(number)
            via = channel("rule", "trigger", deleted=False, title=title, id=number, revision_id=1)
            old = copy(ticket)
            apply(made, actions, via)
            if ticket != old:
                made.changes(old, via)
                made.ruled = made.ruled or old
                answers.clear()
                again = True
                break


def apply(made: Update, actions: list[tb.Json], via: tb.Json) -> None:
    """Applies actions to the ticket of an update."""
    for action in actions:
        name, value = action["field"], action.get("value")
        if name.startswith("custom_fields_"):
            made.ticket.custom = {**made.ticket.custom, name.removeprefix("custom_fields_"): value}
        elif name in _SETTERS:
            _SETTERS[name](made, value)
        elif name in _SENDERS:
            _SENDERS[name](made, value, via)


def _choice(name: str, choices: tuple[str, ...]) -> Callable[[Update, Any], None]:
    def set_(made: Update, value: Any) -> None:
        if value in choices:
            setattr(made.ticket, name, value)
            if name == "status":
                made.ticket.custom_status_id = made.world.default_status(value)

    return set_


def _number(made: Update, value: Any) -> int | None:
    names = {"current_user": made.actor.id, "requester_id": made.ticket.requester_id}
    names["current_groups"] = next(iter(made.world.groups_of(made.actor.id)), 0)
    return names.get(str(value)) or whole_number(value)


def _set_group(made: Update, value: Any) -> None:
    made.ticket.group_id = _number(made, value)
    if made.ticket.assignee_id and made.ticket.group_id not in made.world.groups_of(made.ticket.assignee_id):
        made.ticket.assignee_id = None


def _set_assignee(made: Update, value: Any) -> None:
    ticket, number = made.ticket, _number(made, value)
    user = made.world.user(number)
    if user is not None and user.role not in AGENTS:
        return
    ticket.assignee_id = number
    if number is not None:
        groups = made.world.groups_of(number)
        ticket.group_id = ticket.group_id if ticket.group_id in groups else next(iter(groups), None)
        if ticket.status == "new":
            ticket.status = "open"


def _tags(change: Callable[[set[str], set[str]], set[str]]) -> Callable[[Update, Any], None]:
    def set_(made: Update, value: Any) -> None:
        words = {word for one in listed(value) for word in str(one).lower().split()}
        made.ticket.tags = sorted(change({*made.ticket.tags}, words))

    return set_


def _set_custom_status(made: Update, value: Any) -> None:
    found = find(made.world.db, tb.CustomStatus, _number(made, value))
    if found is not None:
        made.ticket.custom_status_id, made.ticket.status = found.id, found.status_category


def _add(name: str) -> Callable[[Update, Any], None]:
    def set_(made: Update, value: Any) -> None:
        number, people = _number(made, value), getattr(made.ticket, name)
        if number is not None and number not in people:
            setattr(made.ticket, name, [*people, number])

    return set_


def _offer(made: Update, value: Any) -> None:
    if made.ticket.satisfaction_rating.get("score") == "unoffered" and value == "offered":
        made.ticket.satisfaction_rating = {"score": "offered"}


def _plain(name: str) -> Callable[[Update, Any], None]:
    return lambda made, value: setattr(made.ticket, name, _number(made, value))


_SETTERS: dict[str, Callable[[Update, Any], None]] = {
    "status": _choice("status", tb.STATUSES),
    "type": _choice("type", tb.TYPES),
    "priority": _choice("priority", tb.PRIORITIES),
    "group_id": _set_group,
    "assignee_id": _set_assignee,
    "set_tags": _tags(lambda tags, words: words),
    "current_tags": _tags(lambda tags, words: tags | words),
    "remove_tags": _tags(lambda tags, words: tags - words),
    "custom_status_id": _set_custom_status,
    "ticket_form_id": _plain("ticket_form_id"),
    "brand_id": _plain("brand_id"),
    "set_schedule": _plain("schedule_id"),
    "subject": lambda made, value: setattr(made.ticket, "subject", fill(made, str(value or ""))),
    "follower": _add("follower_ids"),
    "cc": _add("email_cc_ids"),
    "satisfaction_score": _offer,
}

# -- notifications


def _notify_user(made: Update, value: Any, via: tb.Json) -> None:
    to, ticket, world = str([*listed(value), ""][0]), made.ticket, made.world
    if to == "all_agents":
        people = [one.id for one in select(world.db, tb.User, "role IN ('agent', 'admin') AND active = 1 ORDER BY id")]
    elif to == "requester_and_ccs":
        people = [ticket.requester_id, *ticket.email_cc_ids]
    else:
        number = ticket.assignee_id if to == "assignee_id" else _number(made, to)
        people = [] if number is None else [number]
    _send(made, people, value, via=via)


def _notify_group(made: Update, value: Any, via: tb.Json) -> None:
    to = str([*listed(value), ""][0])
    group = made.ticket.group_id if to == "group_id" else _number(made, to)
    sql = "SELECT user_id FROM zd_group_memberships WHERE group_id = ? ORDER BY user_id"
    _send(made, [one for (one,) in made.world.db.execute(sql, group)], value, via=via)


def _send(made: Update, people: list[int], value: Any, *, via: tb.Json) -> None:
    """Adds the event of a notification; its text and its mails are made from the ticket as it finally is."""
    if not people:
        return
    subject, body = map(str, [*listed(value), "", "", ""][1:3])
    event = made.event("Notification", via=via, subject=subject, body=body, recipients=people)

    def final() -> None:
        texts = {"subject": fill(made, subject), "body": fill(made, body)}
        event.update(texts)
        addresses = made.world.db.execute(f"SELECT email FROM zd_users WHERE id IN ({marks(people)})", *people)
        for (address,) in addresses:
            if address:
                made.world.put(tb.Mail, ticket_id=made.ticket.id, to=address, **texts)

    made.final.append(final)


def _notify_webhook(made: Update, value: Any, via: tb.Json) -> None:
    from .webhooks import invoke

    ulid, body = map(str, [*listed(value), "", ""][:2])
    made.event("WebhookEvent", via=via, webhook_id=ulid)
    made.final.append(lambda: invoke(made.world, ulid, fill(made, body)))


_SENDERS: dict[str, Callable[[Update, Any, tb.Json], None]] = {
    "notification_user": _notify_user,
    "notification_group": _notify_group,
    "notification_webhook": _notify_webhook,
}

_PLACE = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")


def fill(made: Update, text: str) -> str:
    """Returns a text with its placeholders, such as {{ticket.id}}, filled in; unknown ones are empty."""
    if "{{" not in text:
        return text
    return _PLACE.sub(lambda match: _place(made, match[1]), text)


def _place(made: Update, name: str) -> str:
    ticket, world = made.ticket, made.world
    base, _, rest = name.partition(".")
    if base == "current_user":
        return str(getattr(made.actor, rest, ""))
    if base != "ticket":
        return ""
    owner, _, attribute = rest.partition(".")
    if owner in {"requester", "assignee", "submitter"}:
        user = world.user(getattr(ticket, f"{owner}_id"))
        first = user.name.partition(" ")[0] if user else ""
        return first if attribute == "first_name" else str(getattr(user, attribute or "name", "") or "")
    if owner == "group":
        group = find(world.db, tb.AgentGroup, ticket.group_id)
        return group.name if group else ""
    if owner in {"latest_comment", "latest_public_comment", "latest_public_comment_html", "comments_formatted"}:
        return _comments(made, owner)
    return str(_PLAIN[owner](world, ticket) or "") if owner in _PLAIN else ""


_PLAIN: dict[str, Callable[[Desk, tb.Ticket], Any]] = {
    "id": lambda world, ticket: ticket.id,
    "title": lambda world, ticket: ticket.subject,
    "status": lambda world, ticket: ticket.status.capitalize(),
    "priority": lambda world, ticket: ticket.priority,
    "url": lambda world, ticket: f"{world.subdomain}.zendesk.com/agent/tickets/{ticket.id}",
    "account": lambda world, ticket: world.subdomain,
    "tags": lambda world, ticket: " ".join(ticket.tags),
    "description": lambda world, ticket: ticket.description,
    "ticket_type": lambda world, ticket: ticket.type,
}


def _comments(made: Update, name: str) -> str:
    if name.startswith("latest") and made.comment is not None and (made.comment.public or "public" not in name):
        return made.comment.html_body if name.endswith("html") else made.comment.plain_body
    found = select(made.world.db, tb.Comment, "ticket_id = ? ORDER BY id", made.ticket.id) if made.before else []
    found += [made.comment] if made.comment is not None else []
    if "public" in name:
        found = [one for one in found if one.public]
    if name == "comments_formatted":
        return "\n----\n".join(one.plain_body for one in reversed(found) if one.public)
    return (found[-1].html_body if name.endswith("html") else found[-1].plain_body) if found else ""


# -- automations and views


def now_of(world: Desk, user_id: int | None) -> Now:
    """Returns what conditions in SQL depend on."""
    at = world.clock.now
    hours = functools.cache(lambda: calendar(world))

    def before(count: int, business: bool) -> str:  # noqa: FBT001
        if not business:
            return moment(at - count * 3600)
        if count <= 0:
            return moment(hours().add(at, -count * 3600))
        low, high = at - count * 3600 - 366 * 86_400, at - count * 3600
        while high - low > 1:  # The latest whole second so many business hours ago.
            middle = (low + high) // 2
            low, high = (middle, high) if hours().between(middle, at) >= count * 3600 else (low, middle)
        return moment(high if hours().between(high, at) >= count * 3600 else low)

    return Now(user_id, world.groups_of(user_id), before)


def sweep(world: Desk, argument: int | None) -> None:
    """Runs the automations over the tickets that are not closed. Each hour sets the next."""
    from .commit import commit

    world.later(3600, "sweep", key="sweep")
    actor = system_user(world)
    for rule in select(world.db, tb.Automation, "active = 1 ORDER BY position, id"):
        where, values = sql(rule.conditions, now_of(world, None))
        where = f"status <> 'closed' AND deleted = 0 AND {where} ORDER BY id LIMIT {SWEPT}"
        via = channel("rule", "automation", deleted=False, title=rule.title, id=rule.id)

        def then(made: Update, actions: list[tb.Json] = rule.actions) -> None:
            apply(made, actions, made.via)

        for ticket in select(world.db, tb.Ticket, where, *values):
            commit(world, actor, ticket, wanted={}, via=via, by_system=True, before_triggers=then)
    old = moment(world.clock.now - HARD_CLOSE_S)
    solved = "(SELECT m.solved_at FROM zd_metrics m WHERE m.id = zd_tickets.id)"
    where = f"status = 'solved' AND deleted = 0 AND {solved} <= ?"
    for ticket in select(world.db, tb.Ticket, f"{where} ORDER BY id", old):
        commit(world, actor, ticket, wanted={"status": "closed"}, via={"channel": "rule"}, by_system=True)


def system_user(world: Desk) -> tb.User:
    """Returns the user under whom the account's own rules act: its first admin, with the identifier -1."""
    admin = select(world.db, tb.User, "role = 'admin' ORDER BY id LIMIT 1")[0]
    return msgspec.structs.replace(admin, id=-1)
