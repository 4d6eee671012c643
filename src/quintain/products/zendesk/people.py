"""Users, identities, organizations, groups and memberships."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from typing import Any

from quintain.resources.web import Exchange, ResourceSpec, Routes
from quintain.resources.web.rows import count, delete, find, save, select, update

from . import tables as tb
from .account import AGENTS, Desk, Invalid, record, whole_number
from .wire import ANONYMOUS, API, only

USER_FIELDS = (
    "name", "email", "time_zone", "iana_time_zone", "phone", "locale_id", "locale", "organization_id", "role",
    "verified",
    "external_id", "tags", "alias", "signature", "details", "notes", "custom_role_id", "moderator",
    "ticket_restriction",
    "only_private_comments", "restricted_agent", "suspended", "default_group_id", "user_fields", "photo", "active",
)  # fmt: skip
LONGEST = 255
"""Characters of an e-mail address."""
_DEFAULT_GROUP = 'SELECT id FROM zd_agent_groups WHERE "default" = 1'
ROUTES = Routes()
route = ROUTES.route


# -- rules


def create_user(world: Desk, fields: Mapping[str, Any]) -> tb.User:
    """Creates a user from fields that were checked."""
    known = {name: fields[name] for name in USER_FIELDS if fields.get(name) is not None}
    user = world.put(tb.User, **known)
    _settle(world, user, None)
    return user


def _settle(world: Desk, user: tb.User, before: tb.User | None) -> None:
    """Sets what the role and the domain of a user imply, and keeps identities and memberships in step."""
    written = copy(user)
    if user.role in AGENTS:
        user.restricted_agent = user.restricted_agent and user.role == "agent" and user.ticket_restriction is not None
        if user.ticket_restriction == "requested":
            user.ticket_restriction, user.restricted_agent = None, False
        user.role_type = 4 if user.role == "admin" else 0
    elif user.organization_id is None and user.email:
        domain = user.email.partition("@")[2]
        sql = "SELECT o.id FROM zd_organizations o, json_each(o.domain_names) d WHERE d.value = ? ORDER BY o.id LIMIT 1"
        found = world.db.execute(sql, domain)
        user.organization_id = found[0][0] if found else None
    save(world.db, user, written)
    if user.email and (before is None or before.email != user.email):
        delete(world.db, tb.Identity, 'user_id = ? AND "primary" = 1', user.id)
        mine = select(world.db, tb.Identity, "user_id = ? AND value = ?", user.id, user.email)
        if not mine:
            world.put(tb.Identity, user_id=user.id, value=user.email, primary=True, verified=user.verified)
        else:
            update(world.db, mine[0], primary=True)
    if user.organization_id and (before is None or before.organization_id != user.organization_id):
        delete(world.db, tb.OrganizationMembership, 'user_id = ? AND "default" = 1', user.id)
        world.put(tb.OrganizationMembership, user_id=user.id, organization_id=user.organization_id)
    if user.role in AGENTS and not world.groups_of(user.id):
        default = [(user.default_group_id,)] if user.default_group_id else world.db.execute(_DEFAULT_GROUP)
        if default:
            join(world, user.id, default[0][0])


def join(world: Desk, user_id: int, group_id: int) -> Any:
    """Makes an agent a member of a group; the first one is the default."""
    first = not world.groups_of(user_id)
    row = world.put(tb.GroupMembership, user_id=user_id, group_id=group_id, default=first)
    if first:
        world.db.execute("UPDATE zd_users SET default_group_id = ? WHERE id = ?", group_id, user_id)
    return row


def merge_users(world: Desk, source: tb.User, target: tb.User) -> None:
    """Moves tickets and identities of a user to another, and deletes the first."""
    for column in ("requester_id", "submitter_id"):
        world.db.execute(f"UPDATE zd_tickets SET {column} = ? WHERE {column} = ?", target.id, source.id)
    world.db.execute("UPDATE zd_comments SET author_id = ? WHERE author_id = ?", target.id, source.id)
    world.db.execute('UPDATE zd_identities SET user_id = ?, "primary" = 0 WHERE user_id = ?', target.id, source.id)
    _deactivate(world, source)


def _deactivate(world: Desk, user: tb.User) -> None:
    update(world.db, user, active=False, email=None, organization_id=None, updated_at=world.now)
    for kind in (tb.GroupMembership, tb.OrganizationMembership, tb.Identity):
        delete(world.db, kind, "user_id = ?", user.id)


# -- users


def _clean_user(world: Desk, exchange: Exchange, fields: dict[str, Any], *, row: tb.User | None) -> dict[str, Any]:
    if isinstance(fields.get("email"), str):
        fields["email"] = fields["email"].strip().lower() or None
    email = fields.get("email")
    check_email(email)
    if email and _taken(world, str(email), row.id if row else None):
        raise Invalid("email", f"Email: {email} is already being used by another user", "DuplicateValue")
    role = fields.get("role")
    if role is not None and role not in {"end-user", *AGENTS}:
        raise Invalid("role", f"Role: {role} is not valid")
    raised = role in AGENTS and (row is None or row.role != role)
    if raised and exchange.caller.role != "admin":
        raise API.forbidden()
    if named := record(fields.get("organization")):
        found = select(world.db, tb.Organization, "lower(name) = lower(?)", str(named.get("name")))
        fields["organization_id"] = found[0].id if found else None
    if isinstance(fields.get("user_fields"), dict) and row is not None:
        fields["user_fields"] = {**row.user_fields, **fields["user_fields"]}
    return fields


def check_email(email: Any) -> None:
    """Raises Invalid for what is there and no e-mail."""
    if email is not None and len(str(email)) > LONGEST:
        raise Invalid("email", f"Email: is too long (maximum is {LONGEST} characters)", "InvalidFormat")
    if email is not None and not re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", str(email)):
        raise Invalid("email", f"Email: {email} is not properly formatted", "InvalidFormat")


def _taken(world: Desk, email: str, mine: int | None) -> bool:
    return bool(count(world.db, tb.Identity, "value = ? AND user_id <> ?", email, mine or 0))


def _after_user(world: Desk, exchange: Exchange, row: tb.User, *, before: tb.User | None) -> None:
    _settle(world, row, before)


def _remove_user(world: Desk, exchange: Exchange, row: tb.User) -> Any:
    open_tickets = count(world.db, tb.Ticket, "assignee_id = ? AND status <> 'closed' AND deleted = 0", row.id)
    asked = count(world.db, tb.Ticket, "requester_id = ? AND status <> 'closed' AND deleted = 0", row.id)
    if open_tickets or asked:
        words = "User: cannot be deleted because it has tickets that are not closed"
        raise Invalid("base", words, "UserHasOpenTickets")
    _deactivate(world, row)
    exchange.status = 200
    return {"user": USERS.one(world, exchange, row.id)}


def _scope_users(world: Desk, exchange: Exchange) -> tuple[str, tuple[Any, ...]]:
    query = exchange.query
    roles = [query[name] for name in ("role", "role[]") if name in query]
    roles = [value for name, value in exchange.request.query if name == "role[]"] or roles
    where, values = (f"role IN ({', '.join('?' * len(roles))})", tuple(roles)) if roles else ("1", ())
    if "external_id" in query and exchange.request.method == "GET":
        where, values = f"{where} AND external_id = ?", (*values, query["external_id"])
    listing = not exchange.params and "show_many" not in exchange.request.path
    return (f"active = 1 AND {where}" if listing else where), values


def _show_users(world: Desk, exchange: Exchange, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"id": row["id"], **row} for row in rows]  # Of users alone the identifier comes before the address.


_MEMBERS = "SELECT user_id FROM zd_group_memberships WHERE"
USERS = ResourceSpec(
    name="user", row=tb.User, path="/api/v2/users", style=API, write="agent", where="deleted = 0",
    verbs=("list", "show", "create", "update", "delete", "count", "show_many", "create_many", "update_many",
        "destroy_many"),
    sort=("created_at", "updated_at", "name", "id"), writable=USER_FIELDS, required=("name",), clean=_clean_user,
    after=_after_user, removed=_remove_user, show=_show_users, scope=_scope_users,
    lists={"/api/v2/organizations/{id}/users": "active = 1 AND organization_id = ?",
           "/api/v2/groups/{id}/users": f"active = 1 AND id IN ({_MEMBERS} group_id = ?)"},
)  # fmt: skip


@route("GET", "/api/v2/users/me", who="anyone")
def me(world: Desk, exchange: Exchange) -> Any:
    """Shows the caller."""
    if exchange.caller is ANONYMOUS:
        blank = {"id": None, "name": "Anonymous user", "email": "invalid@example.com", "role": "end-user", "url": None}
        return {"user": {**blank, "authenticity_token": None}}
    return {"user": {**USERS.one(world, exchange, exchange.caller.id), "authenticity_token": f"t{world.last_id}"}}


@route("PUT", "/api/v2/users/me", who="end")
def update_me(world: Desk, exchange: Exchange) -> Any:
    """Changes the caller's own name, phone and the like."""
    given = exchange.part("user")
    names = ("name", "phone", "time_zone", "locale_id", "details")
    allowed: dict[str, Any] = {name: given[name] for name in names if name in given}
    USERS.update(world, exchange, USERS.need(world, exchange, exchange.caller.id), fields=allowed)
    return {"user": USERS.one(world, exchange, exchange.caller.id)}


@route("POST", "/api/v2/users/create_or_update", who="agent")
def create_or_update(world: Desk, exchange: Exchange) -> Any:
    """Changes the user with this e-mail or external identifier, or creates him."""
    fields = exchange.part("user")
    found: list[tb.User] = []
    if fields.get("external_id"):
        found = select(world.db, tb.User, "external_id = ? AND active = 1", str(fields["external_id"]))
    if not found and fields.get("email"):
        found = select(world.db, tb.User, "email = ? AND active = 1", str(fields["email"]).lower())
    return _put(world, exchange, USERS, fields=fields, found=found)


def _put(world: Desk, exchange: Exchange, spec: ResourceSpec, *, fields: dict[str, Any], found: list[Any]) -> Any:
    """Changes what was found, or creates a row."""
    if found:
        spec.update(world, exchange, found[0], fields=fields)
        return {spec.name: spec.one(world, exchange, found[0].id)}
    return spec.created(world, exchange, fields)


@route("GET", "/api/v2/users/search", "/api/v2/users/autocomplete", who="agent")
def search_users(world: Desk, exchange: Exchange) -> Any:
    """Lists users by query, name or external identifier."""
    from .search import parse, where

    query = exchange.query
    if query.get("external_id"):
        return USERS.answer_list(world, exchange)
    if query.get("name") and "query" not in query:
        return USERS.answer_list(world, exchange, "active = 1 AND lower(name) LIKE lower(?)", f"{query['name']}%")
    found = where(world, exchange.caller, "user", terms=parse(query.get("query", "")))
    return USERS.answer_list(world, exchange, f"active = 1 AND {found[0]}", *found[1])


@route("GET", "/api/v2/users/{id}/related", who="agent")
def related(world: Desk, exchange: Exchange) -> Any:
    """Counts the tickets of a user."""
    user = USERS.need(world, exchange, exchange.id)
    tickets = {
        name: count(world.db, tb.Ticket, f"deleted = 0 AND {column} = ?", user.id)
        for name, column in (("requested_tickets", "requester_id"), ("assigned_tickets", "assignee_id"))
    }
    where = "deleted = 0 AND EXISTS (SELECT 1 FROM json_each(email_cc_ids) c WHERE c.value = ?)"
    return {"user_related": {**tickets, "ccd_tickets": count(world.db, tb.Ticket, where, user.id)}}


@route("PUT", "/api/v2/users/{id}/merge", who="agent")
def merge(world: Desk, exchange: Exchange) -> Any:
    """Merges a user into another."""
    source = USERS.need(world, exchange, exchange.id)
    given = exchange.part("user")
    target = find(world.db, tb.User, whole_number(given.get("id")))
    if target is None and given.get("email"):
        target = next(iter(select(world.db, tb.User, "email = ? AND active = 1", str(given["email"]).lower())), None)
    if target is None or not target.active or target.id == source.id:
        raise API.missing()
    if source.role in AGENTS or target.role in AGENTS:
        raise API.forbidden()
    merge_users(world, source, target)
    return {"user": USERS.one(world, exchange, target.id)}


IDENTITIES = ResourceSpec(
    name="identity", plural="identities", row=tb.Identity, path="/api/v2/identities", style=API, verbs=(),
    lists={"/api/v2/users/{id}/identities": "user_id = ?"},
)  # fmt: skip


@route("POST", "/api/v2/users/{id}/identities", who="agent", status=201)
def add_identity(world: Desk, exchange: Exchange) -> Any:
    """Adds an address to a user."""
    user = USERS.need(world, exchange, exchange.id)
    given = exchange.part("identity")
    value = str(given.get("value") or "").strip().lower()
    if _taken(world, value, user.id):
        raise Invalid("value", f"Email: {value} is already being used by another user", "DuplicateValue")
    row = IDENTITIES.create(world, exchange, {**given, "value": value, "user_id": user.id})
    exchange.headers.append(("location", f"{exchange.base}/api/v2/users/{user.id}/identities/{row.id}.json"))
    return {"identity": IDENTITIES.one(world, exchange, row.id)}


@route("GET", "/api/v2/users/{id}/identities/{id}", who="agent")
def show_identity(world: Desk, exchange: Exchange) -> Any:
    """Shows an address of a user."""
    return {"identity": IDENTITIES.one(world, exchange, int(exchange.params[1]))}


@route("DELETE", "/api/v2/users/{id}/identities/{id}", who="agent", status=204)
def remove_identity(world: Desk, exchange: Exchange) -> Any:
    """Removes an address that is not the user's first."""
    found = only(world.db, tb.Identity, "id = ? AND user_id = ?", int(exchange.params[1]), exchange.id)
    if found.primary:
        raise Invalid("base", "Identity: the primary identity cannot be deleted")
    delete(world.db, tb.Identity, "id = ?", found.id)


@route("PUT", "/api/v2/users/{id}/identities/{id}/make_primary", who="agent")
def make_primary(world: Desk, exchange: Exchange) -> Any:
    """Makes an address the user's first."""
    user = USERS.need(world, exchange, exchange.id)
    found = only(world.db, tb.Identity, "id = ? AND user_id = ?", int(exchange.params[1]), user.id)
    world.db.execute('UPDATE zd_identities SET "primary" = (id = ?) WHERE user_id = ?', found.id, user.id)
    update(world.db, user, email=found.value, updated_at=world.now)
    return IDENTITIES.answer_list(world, exchange, "user_id = ?", user.id)


# -- organizations, groups, memberships


def _clean_organization(world: Desk, exchange: Exchange, fields: dict[str, Any], *, row: Any) -> dict[str, Any]:
    if isinstance(fields.get("organization_fields"), dict) and row is not None:
        fields["organization_fields"] = {**row.organization_fields, **fields["organization_fields"]}
    return fields


def _remove_organization(world: Desk, exchange: Exchange, row: Any) -> None:
    world.db.execute("UPDATE zd_users SET organization_id = NULL WHERE organization_id = ?", row.id)
    alive = "organization_id = ? AND status <> 'closed'"
    world.db.execute(f"UPDATE zd_tickets SET organization_id = NULL WHERE {alive}", row.id)
    delete(world.db, tb.OrganizationMembership, "organization_id = ?", row.id)
    delete(world.db, tb.Organization, "id = ?", row.id)


ORGANIZATIONS = ResourceSpec(
    name="organization", row=tb.Organization, path="/api/v2/organizations", style=API, write="agent",
    verbs=("list", "show", "create", "update", "delete", "count", "show_many", "create_many", "update_many",
        "destroy_many"),
    sort=("name", "created_at", "updated_at", "id"), unique=("name",),
    clean=_clean_organization, removed=_remove_organization,
    lists={"/api/v2/users/{id}/organizations":
           "id IN (SELECT organization_id FROM zd_organization_memberships WHERE user_id = ?)"},
)  # fmt: skip


@route("GET", "/api/v2/organizations/search", "/api/v2/organizations/autocomplete", who="agent")
def search_organizations(world: Desk, exchange: Exchange) -> Any:
    """Lists organizations by name or external identifier."""
    query = exchange.query
    if query.get("external_id"):
        return ORGANIZATIONS.answer_list(world, exchange, "external_id = ?", query["external_id"])
    return ORGANIZATIONS.answer_list(world, exchange, "lower(name) LIKE lower(?)", f"{query.get('name', '')}%")


@route("POST", "/api/v2/organizations/create_or_update", who="agent")
def create_or_update_organization(world: Desk, exchange: Exchange) -> Any:
    """Changes the organization with this identifier or external identifier, or creates it."""
    fields = exchange.part("organization")
    known = whole_number(fields.get("id")), str(fields.get("external_id") or "") or None
    found = select(world.db, tb.Organization, "id = ? OR external_id = ?", *known)
    return _put(world, exchange, ORGANIZATIONS, fields=fields, found=found)


def _remove_group(world: Desk, exchange: Exchange, row: Any) -> None:
    if row.default:
        raise Invalid("base", "Group: the default group cannot be deleted")
    update(world.db, row, deleted=True, updated_at=world.now)
    delete(world.db, tb.GroupMembership, "group_id = ?", row.id)


GROUPS = ResourceSpec(
    name="group", row=tb.AgentGroup, path="/api/v2/groups", style=API, where="deleted = 0", sort=("name", "id"),
    unique=("name",), removed=_remove_group,
    lists={"/api/v2/groups/assignable": "1",
           "/api/v2/users/{id}/groups": "id IN (SELECT group_id FROM zd_group_memberships WHERE user_id = ?)"},
    verbs=("list", "show", "create", "update", "delete", "count"),
)  # fmt: skip


def _clean_membership(world: Desk, exchange: Exchange, fields: dict[str, Any], *, row: Any) -> dict[str, Any]:
    user = world.user(fields.get("user_id"))
    if user is None or ("group_id" in fields and user.role not in AGENTS):
        raise Invalid("user", "User: is not an agent of this account")
    if "group_id" in fields:
        fields["default"] = not world.groups_of(user.id)
        if fields["group_id"] in world.groups_of(user.id):
            raise Invalid("user_id", "User: is already a member of the group", "DuplicateValue")
    return fields


GROUP_MEMBERSHIPS = ResourceSpec(
    name="group_membership", row=tb.GroupMembership, path="/api/v2/group_memberships", style=API,
    clean=_clean_membership,
    verbs=("list", "show", "create", "delete", "create_many", "destroy_many"),
    lists={"/api/v2/users/{id}/group_memberships": "user_id = ?", "/api/v2/groups/{id}/memberships": "group_id = ?"},
)  # fmt: skip
ORGANIZATION_MEMBERSHIPS = ResourceSpec(
    name="organization_membership", row=tb.OrganizationMembership, path="/api/v2/organization_memberships", style=API,
    write="agent",
    verbs=("list", "show", "create", "delete", "create_many", "destroy_many"), clean=_clean_membership,
    lists={"/api/v2/users/{id}/organization_memberships": "user_id = ?",
           "/api/v2/organizations/{id}/organization_memberships": "organization_id = ?"},
)  # fmt: skip


@route("PUT", "/api/v2/users/{id}/group_memberships/{id}/make_default", who="admin")
def make_default(world: Desk, exchange: Exchange) -> Any:
    """Makes a membership the default of its agent."""
    found = only(world.db, tb.GroupMembership, "id = ? AND user_id = ?", int(exchange.params[1]), exchange.id)
    world.db.execute('UPDATE zd_group_memberships SET "default" = (id = ?) WHERE user_id = ?', found.id, exchange.id)
    world.db.execute("UPDATE zd_users SET default_group_id = ? WHERE id = ?", found.group_id, exchange.id)
    return GROUP_MEMBERSHIPS.answer_list(world, exchange, "user_id = ?", exchange.id)


RESOURCES = (USERS, IDENTITIES, ORGANIZATIONS, GROUPS, GROUP_MEMBERSHIPS, ORGANIZATION_MEMBERSHIPS)
for _one in RESOURCES:
    _one.mount(ROUTES)
