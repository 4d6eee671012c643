"""`commit`: the only way to change a ticket, for API, pages, mail, macros, triggers, automations and merges."""

from __future__ import annotations

import functools
import html
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, cast

from quintain.resources.schedule import Calendar
from quintain.resources.web.resources import convert
from quintain.resources.web.rows import find, insert, save, select, update
from quintain.resources.web.world import moment

from . import sla
from . import tables as tb
from .account import AGENTS, Conflict, Desk, Invalid, channel, listed, record, seconds
from .wanted import check, plain_text

API = channel("api")
SYSTEM: tb.Json = {"client": None, "ip_address": "127.0.0.1", "location": None, "latitude": None, "longitude": None}
CREATED = ("subject", "requester_id", "priority", "type", "status", "organization_id", "brand_id", "ticket_form_id",
           "custom_status_id")  # fmt: skip
"""Fields that a creation always has an event for."""
WATCHED = (*CREATED, "assignee_id", "group_id", "tags", "external_id", "problem_id", "due_at", "recipient",
    "follower_ids",
           "email_cc_ids", "is_public", "followup_ids")  # fmt: skip
_SILENT = {"is_public", "satisfaction_score"}
"""Fields that a creation never has an event for."""
_read = operator.attrgetter(*WATCHED)
_PLAIN = ("subject", "priority", "type", "status", "external_id", "due_at", "recipient", "problem_id", "requester_id",
          "assignee_id", "group_id", "organization_id", "ticket_form_id", "brand_id", "custom_status_id")  # fmt: skip
_CHOICES: dict[str, tuple[str, ...]] = {"status": tb.STATUSES, "priority": tb.PRIORITIES, "type": tb.TYPES}
_TAGS = {"tags", "additional_tags", "remove_tags"}
_PEOPLE = {"follower_ids", "followers", "email_cc_ids", "email_ccs", "collaborator_ids", "collaborators",
           "additional_collaborators"}  # fmt: skip
MOST_PEOPLE = 48
"""People that one list of a request names: followers or CCs."""
LONGEST, LONGEST_TAGS = 65_535, 5096
"""Characters of a comment or a field, and of all tags of a ticket."""
_UNMEASURED, _UNWRITTEN = tb.Metric(id=0, ticket_id=0), tb.Audit(id=0, ticket_id=0, created_at="", author_id=0)


@dataclass
class Update:
    """One update of a ticket while it is made.

    Attributes:
        world: The account.
        actor: Current user.
        ticket: The ticket as it will be.
        before: The ticket as it was; None for a creation.
        via: Channel of the update.
        comment: Its comment.
        events: Events of its audit.
        metric: Measurements of the ticket.
        previous_metric: Measurements before the update; None for a creation.
        metric_events: Events of metrics.
        ruled: The ticket as it was before its triggers; None if no trigger changed it.
        audit: Its audit, once it is written.
        final: Calls that fill in texts once all rules have run.
    """

    world: Desk
    actor: tb.User
    ticket: tb.Ticket
    before: tb.Ticket | None
    via: tb.Json
    comment: tb.Comment | None = None
    events: list[tb.Json] = field(default_factory=list[tb.Json])
    metric: tb.Metric = field(default_factory=lambda: _UNMEASURED)
    previous_metric: tb.Metric | None = None
    metric_events: list[Any] = field(default_factory=list[Any])
    ruled: tb.Ticket | None = None
    audit: tb.Audit = field(default_factory=lambda: _UNWRITTEN)
    final: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def previous(self, get: Callable[[tb.Ticket], str | None]) -> str | None:
        """Returns the text of a field before the update."""
        return None if self.before is None else get(self.before)

    @property
    def requester(self) -> tb.User:
        """Requester of the ticket."""
        found = self.world.user(self.ticket.requester_id)
        assert found is not None, "users are never removed from their table"
        return found

    @functools.cached_property
    def hours(self) -> Calendar:
        """Hours of the ticket's schedule after its triggers."""
        return sla.calendar(self.world, self.ticket.schedule_id)

    def is_open(self, schedule_id: int | None = None) -> bool:
        """True in the business hours of the ticket's schedule, or of another."""
        return sla.calendar(self.world, schedule_id or self.ticket.schedule_id).is_open(self.world.clock.now)

    def event(self, type: str, **more: Any) -> tb.Json:
        """Adds an event to the audit."""
        found = {"id": self.world.new_number(), "type": type, **more}
        self.events.append(found)
        return found

    def changes(self, old: tb.Ticket | None, via: tb.Json | None = None) -> None:
        """Adds an event for each field in which the ticket differs from what it was."""
        names = (*WATCHED, *self.ticket.custom, "satisfaction_score")
        now = _values(self.ticket, self.ticket.custom)
        for name, value, before in zip(names, now, _values(old or self.ticket, self.ticket.custom), strict=True):
            if old is not None and value is not before and value != before:
                more = {"via": via} if via else {}
                self.event("Change", value=shown(value), field_name=name, previous_value=shown(before), **more)
            elif old is None and (name in CREATED or (value not in (None, []) and name not in _SILENT)):
                self.event("Create", value=shown(value), field_name=name)


def _values(ticket: tb.Ticket, custom: Iterable[str]) -> tuple[Any, ...]:
    """Returns the fields of a ticket that events tell of."""
    score = ticket.satisfaction_rating.get("score")
    return (*_read(ticket), *(ticket.custom.get(name) for name in custom), score)


def commit(
    world: Desk,
    actor: tb.User,
    ticket: tb.Ticket | None,
    *,
    wanted: Mapping[str, Any],
    via: tb.Json | None = None,
    by_system: bool = False,
    before_triggers: Callable[[Update], None] | None = None,
) -> tuple[tb.Ticket, Update]:
    """Creates or changes a ticket, runs the rules that follow, and returns the ticket and the update with its audit.

    Args:
        world: The account.
        actor: Current user.
        ticket: The ticket; None to create one.
        wanted: Fields as the API takes them, `comment` included.
        via: Channel of the update.
        by_system: True to change tags and fields of a closed ticket.
        before_triggers: Further changes, made after those that are wanted; automations use it.

    Raises:
        Invalid: A field is invalid, or the ticket may not be changed so; nothing was changed.
        Conflict: The stamp of a safe update is an older one.
    """
    if ticket is not None and ticket.status == "closed" and not by_system:
        raise Invalid("status", "Status: closed prevents ticket update", None)
    if ticket is not None and wanted.get("safe_update") and wanted.get("updated_stamp") != ticket.updated_at:
        raise Conflict("Safe Update prevented the update due to outdated ticket data")
    before = None if ticket is None else copy(ticket)
    now = ticket or _blank(world, actor)
    made = Update(world, actor, now, before, via or API)
    _set(made, wanted)
    made.comment = _comment(made, wanted)
    _imply(made, wanted)
    _validate(made)
    if before is None:
        world.tickets += 1
        now.id = world.tickets
        now.via = made.via
    made.metric = sla.metric_of(world, now, before)
    _run_rules(made, before_triggers)
    _write(made, record(wanted.get("metadata")))
    return now, made


def _run_rules(made: Update, before_triggers: Callable[[Update], None] | None) -> None:
    """Writes down what is wanted, and runs the rules that follow."""
    from . import actions

    if made.comment is not None:
        made.events.insert(0, {"id": made.comment.id, "type": "Comment"})
    made.changes(made.before)
    if before_triggers is not None:
        old = copy(made.ticket)
        before_triggers(made)
        made.changes(old, made.via)
    sla.count(made)
    if made.before is None or made.before.status != "closed":
        actions.run_triggers(made)


def _write(made: Update, metadata: tb.Json) -> None:
    world, ticket = made.world, made.ticket
    sla.follow(made)
    for fill in made.final:
        fill()
    ticket.generated_timestamp = int(world.clock.now)
    made.audit = audit = tb.Audit(
        id=world.new_number(),
        ticket_id=ticket.id,
        created_at=world.now,
        author_id=made.actor.id,
        metadata={"system": SYSTEM, "custom": metadata},
        events=made.events,
        via=made.via,
    )
    if made.events or made.before is None:
        ticket.updated_at = world.now
    if made.before is None:
        insert(world.db, ticket)
    else:
        save(world.db, ticket, made.before)
    if made.events:
        insert(world.db, audit)
    if made.comment is not None:
        made.comment.ticket_id, made.comment.audit_id = ticket.id, audit.id
        insert(world.db, made.comment)
    if made.before is None or ticket.problem_id != made.before.problem_id:
        _incidents(world, ticket, made.before)
    if ticket.type == "problem" and ticket.status == "solved" and made.before and made.before.status != "solved":
        _solve_incidents(made)


def _blank(world: Desk, actor: tb.User) -> tb.Ticket:
    tables = (("ticket_form_id", "zd_ticket_forms"), ("brand_id", "zd_brands"))
    made = tb.Ticket(id=0, created_at=world.now, updated_at=world.now, requester_id=actor.id, submitter_id=actor.id)
    for name, table in tables:
        for (number,) in world.db.execute(f'SELECT id FROM {table} WHERE "default" = 1 LIMIT 1'):
            setattr(made, name, number)
    return made


# -- 2. what is wanted


def _set(made: Update, wanted: Mapping[str, Any]) -> None:
    check(wanted)
    world, ticket = made.world, made.ticket
    for name in _PLAIN:
        if name in wanted:
            setattr(ticket, name, _typed(name, wanted[name]))
    if "assignee_email" in wanted:
        ticket.assignee_id = user_of(world, str(wanted["assignee_email"]), "assignee").id
    if (given := record(wanted.get("requester"))) and "requester_id" not in wanted:
        ticket.requester_id = person(world, given).id
    _set_tags(ticket, wanted)
    _set_customs(made, wanted)
    _set_people(made, wanted)
    if made.before is None:
        ticket.submitter_id = _typed("requester_id", wanted.get("submitter_id") or made.actor.id)
        requester = world.user(ticket.requester_id)
        if requester is None or requester.deleted:
            raise Invalid("requester_id", "Requester: is not a user")
        if ticket.organization_id is None:
            ticket.organization_id = requester.organization_id
    status = wanted.get("custom_status_id")
    if status is not None and (found := find(world.db, tb.CustomStatus, ticket.custom_status_id)) is not None:
        ticket.status = found.status_category
    elif status is not None:
        raise Invalid("custom_status_id", "Ticket status: is invalid")


def _typed(name: str, value: Any) -> Any:
    title = name.removesuffix("_id").replace("_", " ").capitalize()
    if value == "" or value is None:
        return None
    _limit(name, value)
    if name in _CHOICES:
        if str(value).lower() not in _CHOICES[name]:
            raise Invalid(name, f"{title}: {value} is not included in the list")
        return str(value).lower()
    try:
        found = convert(tb.Ticket, name, value)
        if name == "due_at":
            found = moment(seconds(f"{found}T12:00:00Z" if len(found) == 10 else found))  # A date alone means noon.
    except ValueError as error:
        raise Invalid(name, f"{title}: is invalid") from error
    return found


def _limit(name: str, value: Any, most: int = LONGEST) -> None:
    """Raises Invalid for a text or a list that is longer than the API takes."""
    if isinstance(value, str | list) and len(cast(str, value)) > most:
        unit = "characters" if isinstance(value, str) else "entries"
        title = name.removesuffix("_id").replace("_", " ").capitalize()
        raise Invalid(name, f"{title}: is too long (maximum is {most} {unit})")


def _tags(value: Any) -> set[str]:
    _limit("tags", value, LONGEST_TAGS)
    words = re.split(r"[\s,]+", value) if isinstance(value, str) else [str(one) for one in value or ()]
    return {re.sub(r"[\s,]+", "_", word.strip().lower()) for word in words if word.strip()}


def _set_tags(ticket: tb.Ticket, wanted: Mapping[str, Any]) -> None:
    if wanted.keys() & _TAGS:
        current = {*ticket.tags} if "tags" not in wanted else _tags(wanted["tags"])
        current |= _tags(wanted.get("additional_tags"))
        ticket.tags = sorted(current - _tags(wanted.get("remove_tags")))
        _limit("tags", " ".join(ticket.tags), LONGEST_TAGS)


def _set_customs(made: Update, wanted: Mapping[str, Any]) -> None:
    given: Any = wanted.get("custom_fields") or wanted.get("fields")
    pairs: list[tuple[Any, Any]] = [*record(given).items()] or [
        (one.get("id"), one.get("value")) for one in map(record, listed(given))
    ]
    if not pairs:
        return
    fields = {str(one.id): (one, {option["value"] for option in one.custom_field_options})
              for one in select(made.world.db, tb.TicketField)}  # fmt: skip
    ticket = made.ticket
    custom, tags = dict(ticket.custom), {*ticket.tags}
    for key, value in pairs:
        found, options = fields.get(str(key), (None, set[Any]()))
        if found is None or not found.removable:
            continue  # The API ignores fields that do not exist.
        for one in listed(value):
            if options and one != "" and one not in options:
                raise Invalid("base", f"{found.title}: {one} is not a valid option", ticket_field_id=found.id)
        tags -= {str(custom.get(str(found.id)))} if options else set()
        custom[str(found.id)] = value
        if options and value:
            tags |= {str(one) for one in listed(value)}
        elif found.type == "checkbox" and found.tag:
            tags = tags | {found.tag} if value else tags - {found.tag}
    ticket.custom, ticket.tags = custom, sorted(tags)


def _set_people(made: Update, wanted: Mapping[str, Any]) -> None:
    if not wanted.keys() & _PEOPLE:
        return
    for name in wanted.keys() & _PEOPLE:
        _limit(name, wanted[name], MOST_PEOPLE)
    ticket = made.ticket
    for name, key in (("follower_ids", "followers"), ("email_cc_ids", "email_ccs")):
        people = [int(one) for one in listed(wanted.get(name)) or getattr(ticket, name)]
        for one in map(record, listed(wanted.get(key))):
            user = person(made.world, {"email": one["user_email"]}) if one.get("user_email") else None
            number = user.id if user else int(one.get("user_id") or 0)
            people = [other for other in people if other != number]
            if one.get("action", "put") == "put" and made.world.user(number):
                people.append(number)
        setattr(ticket, name, people)
    more = [int(one) for one in listed(wanted.get("collaborator_ids"))]
    for one in (*listed(wanted.get("collaborators")), *listed(wanted.get("additional_collaborators"))):
        named = one if isinstance(one, int) else person(made.world, record(one) or {"email": str(one)}).id
        more.append(named)
    ticket.email_cc_ids = [*ticket.email_cc_ids, *(one for one in more if one not in ticket.email_cc_ids)]


def user_of(world: Desk, email: str, field: str) -> tb.User:
    """Returns the user with an e-mail.

    Raises:
        Invalid: The user does not exist.
    """
    found = select(world.db, tb.User, "email = ? AND active = 1", email.strip().lower())
    if not found:
        raise Invalid(field, f"{field.capitalize()}: {email} is not a user")
    return found[0]


def person(world: Desk, fields: Mapping[str, Any]) -> tb.User:
    """Returns the user with an e-mail, who is created if he does not exist.

    Raises:
        Invalid: The e-mail is not one.
    """
    from .people import check_email, create_user

    email = str(fields.get("email") or "").strip().lower()
    found = select(world.db, tb.User, "email = ? AND active = 1", email) if email else []
    if found:
        return found[0]
    check_email(email or None)
    name = str(fields.get("name") or email.partition("@")[0].replace(".", " ").title() or "Unknown")
    return create_user(world, {**fields, "name": name, "email": email or None})


def _comment(made: Update, wanted: Mapping[str, Any]) -> tb.Comment | None:
    given: Any = wanted.get("comment") or (wanted.get("description") if made.before is None else None) or {}
    given = record(given) or {"body": given or None}
    uploads = listed(given.get("uploads") or None)
    for part in ("html_body", "body", "uploads"):
        _limit("comment", given.get(part))
    body = plain_text(str(given["html_body"])) if given.get("html_body") else str(given.get("body") or "")
    if not body.strip() and not uploads:
        if made.before is None:
            raise Invalid("base", "Description: cannot be blank", "BlankValue")
        return None
    world, author = made.world, made.actor
    if made.before is None and made.ticket.submitter_id != author.id:
        author = world.user(made.ticket.submitter_id) or author
    if given.get("author_id") and made.actor.role in AGENTS:
        author = world.user(int(given["author_id"])) or author
    default = True if made.before is None else made.ticket.is_public
    public = bool(given.get("public", default)) or made.actor.role not in AGENTS
    found = comment(world, author, body, public=public, via=made.via)
    found.attachments = attach(world, uploads)
    if made.before is None:
        made.ticket.description, made.ticket.is_public = body, public
        if not made.ticket.subject:
            made.ticket.subject = body.strip()[:80]
    elif public:
        made.ticket.is_public = True
    return found


def comment(world: Desk, author: tb.User, body: str, *, public: bool, via: tb.Json) -> tb.Comment:
    """Returns a comment that is not yet a ticket's."""
    lines = html.escape(body, quote=False).split("\n")
    paragraphs = "\n<br> ".join(lines)
    return tb.Comment(
        id=world.new_number(),
        author_id=author.id,
        body=body,
        html_body=f'<div class="zd-comment" dir="auto"><p dir="auto">{paragraphs}</p></div>',
        plain_body=body,
        public=public,
        via=via,
        created_at=world.now,
        metadata={"system": SYSTEM, "custom": {}},
        ticket_id=0,
        by_agent=author.role in AGENTS,
    )


def attach(world: Desk, tokens: list[str]) -> list[tb.Json]:
    """Returns the attachments of uploads, which are used up.

    Raises:
        Invalid: A token is unknown or has expired.
    """
    found: list[tb.Json] = []
    for token in tokens:
        files = select(world.db, tb.StoredFile, "upload = ? ORDER BY id", str(token))
        if not files or (files[0].expires or 0) < world.clock.now:
            raise Invalid("uploads", f"Uploads: {token} is not a valid upload token")
        for one in files:
            update(world.db, one, upload="", expires=None)
            found.append(attachment(one))
    return found


def attachment(file: Any) -> tb.Json:
    """Returns a file as an answer shows it; addresses begin with a placeholder for the host."""
    url = f"{{base}}/attachments/token/{file.token}/?name={file.file_name}"
    size = len(file.data)
    return {
        "url": f"{{base}}/api/v2/attachments/{file.id}.json", "id": file.id, "file_name": file.file_name,
        "content_url": url, "mapped_content_url": url, "content_type": file.content_type, "size": size,
        "width": None, "height": None, "inline": False, "deleted": False, "malware_access_override": False,
        "malware_scan_result": "not_scanned", "thumbnails": [],
    }  # fmt: skip


# -- 3. and 4. what follows, and what must hold


def _imply(made: Update, wanted: Mapping[str, Any]) -> None:
    world, ticket, before = made.world, made.ticket, made.before
    old_assignee = None if before is None else before.assignee_id
    old_group = None if before is None else before.group_id
    if ticket.assignee_id is not None and ticket.assignee_id != old_assignee:
        groups = world.groups_of(ticket.assignee_id)
        if groups and ticket.group_id not in groups and not wanted.get("group_id"):
            ticket.group_id = groups[0]
        if ticket.status == "new" and "status" not in wanted:
            ticket.status = "open"
    moved = ticket.group_id != old_group and ticket.group_id is not None and ticket.assignee_id is not None
    if moved and ticket.group_id not in world.groups_of(ticket.assignee_id):
        ticket.assignee_id = None
    said = made.comment is not None and not made.comment.by_agent
    if before is not None and said and before.status in {"pending", "hold", "solved"} and "status" not in wanted:
        ticket.status = "open"
    if before is not None and before.status != ticket.status and "custom_status_id" not in wanted:
        ticket.custom_status_id = None
    if ticket.custom_status_id is None:
        ticket.custom_status_id = world.default_status(ticket.status)


def _validate(made: Update) -> None:
    world, ticket, before = made.world, made.ticket, made.before
    ticket.status = ticket.status or "new"
    if before is not None and ticket.status == "new" and before.status != "new":
        raise Invalid("status", "Status: cannot be changed back to new")
    if ticket.assignee_id is not None and (before is None or ticket.assignee_id != before.assignee_id):
        assignee = world.user(ticket.assignee_id)
        if assignee is None or assignee.role not in AGENTS or not assignee.active:
            raise Invalid("assignee_id", "Assignee: is not an agent of this account")
    if before is not None and before.requester_id != ticket.requester_id and not world.user(ticket.requester_id):
        raise Invalid("requester_id", "Requester: is not a user")
    for name, table in (("group_id", "zd_agent_groups"), ("organization_id", "zd_organizations")):
        value = getattr(ticket, name)
        changed = value is not None and (before is None or value != getattr(before, name))
        if changed and not world.db.execute(f"SELECT 1 FROM {table} WHERE id = ?", value):
            raise Invalid(name, f"{name[:-3].capitalize()}: is invalid")
    if ticket.problem_id is not None and (before is None or ticket.problem_id != before.problem_id):
        problem = find(world.db, tb.Ticket, ticket.problem_id)
        if problem is None or problem.type != "problem" or ticket.type != "incident":
            raise Invalid("problem_id", "Problem: must be a problem ticket, linked to an incident")
    if ticket.status in {"solved", "closed"} and (before is None or before.status not in {"solved", "closed"}):
        _require(made)


def _require(made: Update) -> None:
    """Raises Invalid for all fields at once that solving a ticket needs."""
    ticket = made.ticket
    missing: list[tuple[str, int | None, str]] = []
    if ticket.assignee_id is None:
        missing.append(("Assignee", None, "FieldAssignee"))
    form = find(made.world.db, tb.TicketForm, ticket.ticket_form_id)
    on_form = {*form.ticket_field_ids} if form else set[int]()
    demanded = {
        child.get("id")
        for one in map(record, form.agent_conditions if form else ())
        if str(ticket.custom.get(str(one.get("parent_field_id")))) == str(one.get("value"))
        for child in map(record, listed(one.get("child_fields")))
        if child.get("is_required") or "solved" in record(child.get("required_on_statuses")).get("statuses", [])
    }
    for one in select(made.world.db, tb.TicketField, "active = 1 AND removable = 1 ORDER BY position, id"):
        needed = (one.required and (not form or one.id in on_form)) or one.id in demanded
        if needed and ticket.custom.get(str(one.id)) in (None, "", False, []):
            missing.append((one.title, one.id, f"Field{one.type.capitalize()}"))
    if not missing:
        return
    error = Invalid("base", "", None)
    error.details["base"] = [
        {"description": f"{title}: is required when solving a ticket", "error": None, "ticket_field_id": number,
         "ticket_field_type": kind}
        for title, number, kind in missing
    ]  # fmt: skip
    raise error


# -- problems and incidents


def _incidents(world: Desk, ticket: tb.Ticket, before: tb.Ticket | None) -> None:
    for number in {ticket.problem_id, before.problem_id if before else None} - {None}:
        has = "EXISTS (SELECT 1 FROM zd_tickets i WHERE i.problem_id = ?)"
        world.db.execute(f"UPDATE zd_tickets SET has_incidents = {has} WHERE id = ?", number, number)


def _solve_incidents(made: Update) -> None:
    origin = channel("rule", "problem", ticket_id=made.ticket.id, subject=made.ticket.subject)
    wanted: dict[str, Any] = {"status": "solved"}
    if made.comment is not None:
        wanted["comment"] = {"body": made.comment.body, "public": made.comment.public}
    where = "problem_id = ? AND deleted = 0 AND status NOT IN ('solved', 'closed') ORDER BY id"
    for one in select(made.world.db, tb.Ticket, where, made.ticket.id):
        more = {} if one.assignee_id else {"assignee_id": made.ticket.assignee_id}
        commit(made.world, made.actor, one, wanted={**wanted, **more}, via=origin)


def shown(value: Any) -> Any:
    """Returns a value as an event shows it: numbers as text."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
