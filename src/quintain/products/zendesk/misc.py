"""Search, exports, jobs, uploads, tokens, ratings, suspended tickets, articles, and the workers of bulk jobs."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import Any

import msgspec

from quintain.resources.database.rows import table_name
from quintain.resources.web import Exchange, HttpRequest, HttpResponse, Listing, Refuse, ResourceSpec, Routes
from quintain.resources.web.rows import count, delete, find, marks, select, shown
from quintain.resources.web.world import BackgroundJob, moment

from . import search
from . import tables as tb
from .account import Conflict, Desk, Invalid, channel, record, row_number, seconds, whole_number
from .commit import attachment, commit
from .people import GROUP_MEMBERSHIPS, GROUPS, ORGANIZATION_MEMBERSHIPS, ORGANIZATIONS, USERS
from .tickets import TICKETS, audit_shown, based, merge_one, sideload
from .wire import API, Caller, job_status, link, offset_links, only, translate, whole

ROUTES = Routes()
route = ROUTES.route
SPECS: dict[str, Any] = {"ticket": TICKETS, "user": USERS, "organization": ORGANIZATIONS, "group": GROUPS}
UPLOAD_S = 3 * 86_400
EXPORTED = 1000
"""Records of a page of an export."""
LATE_S = 60
"""An export refuses to begin later than so many seconds ago."""
MOST_WORDS = 1000
"""Characters of the reason why an item of a job failed."""
_WHOLE = {"next_page": None, "previous_page": None}


# -- search


def _query(exchange: Exchange) -> list[search.Term]:
    text = exchange.query.get("query", "").strip()
    if not text:
        raise API.search("The query parameter is missing")
    return search.parse(text)


def _kinds(terms: list[search.Term]) -> list[str]:
    named = [term.value.lower() for term in terms if term.key == "type" and not term.negated]
    return [name for name in SPECS if name in named] if named else [*SPECS]


def _found(world: Desk, exchange: Exchange, kind: str, *, terms: list[search.Term]) -> tuple[str, tuple[Any, ...]]:
    where, values = search.where(world, exchange.caller, kind, terms=terms)
    alive = {"ticket": "deleted = 0", "user": "active = 1", "organization": "1", "group": "deleted = 0"}[kind]
    if kind == "ticket" and exchange.caller.restriction and TICKETS.scope:
        scope, more = TICKETS.scope(world, exchange)
        where, values = f"{where} AND {scope}", (*values, *more)
    return f"{alive} AND {where}", values


def _order(exchange: Exchange, terms: list[search.Term]) -> tuple[str, bool]:
    given = {term.key: term.value.lower() for term in terms if term.key in {"order_by", "sort"}}
    name = search.ORDERS.get(exchange.query.get("sort_by") or given.get("order_by", ""), "")
    down = (exchange.query.get("sort_order") or given.get("sort", "desc")).lower() != "asc"
    return (f"coalesce({name}, '')" if name else "id"), down


@route("GET", "/api/v2/search", who="agent")
def run(world: Desk, exchange: Exchange) -> Any:
    """Lists what fulfils a query, at most 1,000 results."""
    if any(name.startswith("page[") for name in exchange.query):
        raise API.attribute("page[size] is not supported by search; use search/export")
    terms, db = _query(exchange), world.searched()
    size, page = whole(exchange, "per_page", 100, most=100), whole(exchange, "page", 1, most=10**9)
    if page * size > EXPORTED and page > 1:
        raise API.search("Invalid search: Requested response size was greater than Search Response Limits")
    order, down = _order(exchange, terms)
    rows: list[dict[str, Any]] = []
    total, skip = 0, (page - 1) * size
    for kind in _kinds(terms):
        where, values = _found(world, exchange, kind, terms=terms)
        number = count(db, SPECS[kind].row, where, *values)
        if len(rows) < size and skip < total + number:
            by = order if kind == "ticket" or order.startswith(("coalesce(created", "coalesce(updated")) else "id"
            listing = Listing(SPECS[kind].row, where, values, (by,), descending=down)
            text = f"{where} {listing.sorting()} LIMIT ? OFFSET ?"
            found = shown(db, SPECS[kind].row, text, *values, size - len(rows), max(0, skip - total))
            rows += [{**row, "result_type": kind} for row in SPECS[kind].decorated(world, exchange, found)]
        total += number
    return {"results": rows, "facets": None, **offset_links(exchange, page, size, total=total)}


@route("GET", "/api/v2/search/count", who="agent")
def run_count(world: Desk, exchange: Exchange) -> Any:
    """Counts what fulfils a query."""
    terms, db = _query(exchange), world.searched()
    pairs = [(kind, _found(world, exchange, kind, terms=terms)) for kind in _kinds(terms)]
    return {"count": sum(count(db, SPECS[kind].row, where, *values) for kind, (where, values) in pairs)}


@route("GET", "/api/v2/search/export", who="agent", limit="export")
def export(world: Desk, exchange: Exchange) -> Any:
    """Lists what fulfils a query, by cursor."""
    kind = exchange.query.get("filter[type]", "")
    terms = _query(exchange)
    if kind not in SPECS:
        raise API.attribute("filter[type] must be one of ticket, organization, user, group")
    if any(term.key == "type" and term.value.lower() != kind for term in terms):
        raise API.attribute("type: in the query of an export must be that of filter[type]")
    where, values = _found(world, exchange, kind, terms=terms)
    size = whole(exchange, "page[size]", 100, most=EXPORTED)
    after = exchange.query.get("page[after]", "")
    last = int(_decoded(after).partition(".")[0] or 0)
    text = f"{where} AND id > ? ORDER BY id LIMIT ?"
    found = shown(world.searched(), SPECS[kind].row, text, *values, last, size + 1)
    more, found = len(found) > size, found[:size]
    cursor = base64.b64encode(str(found[-1]["id"]).encode()).decode() if found else after or None
    rows = [{**row, "result_type": kind} for row in SPECS[kind].decorated(world, exchange, found)]
    links = {"prev": None, "next": link(exchange, **{"page[after]": cursor}) if more else None}
    meta = {"has_more": more, "after_cursor": cursor, "before_cursor": None}
    return {"results": rows, "facets": None, "meta": meta, "links": links}


def _decoded(cursor: str) -> str:
    """Returns what a cursor holds: digits, which a fraction or bars may follow."""
    try:
        found = base64.b64decode(cursor, validate=True).decode()
    except (binascii.Error, ValueError):
        found = "?"
    if not re.fullmatch(r"\d{0,18}(\.0\|\|\d{0,18}\|?)?", found, re.ASCII):
        raise API.attribute("The cursor is not valid")
    return found


# -- incremental exports


def _start(world: Desk, exchange: Exchange) -> int:
    text = exchange.query.get("start_time", "")
    if not text.isdecimal():
        raise Refuse(400, {"error": "StartTimeMissing", "description": "Missing parameter start_time"})
    start = row_number(text)
    if start > world.clock.now - LATE_S:
        words = "Too recent start_time. Use a start_time older than 60 seconds"
        raise Refuse(422, {"error": "InvalidValue", "description": words})
    return start


_SECONDS = "CAST(strftime('%s', {}) AS INTEGER)"
_EXPORTS: dict[str, tuple[str, Any]] = {
    # Seconds since epoch by which rows are exported.
    "tickets": ("generated_timestamp", tb.Ticket), "users": (_SECONDS.format("updated_at"), tb.User),
    "organizations": (_SECONDS.format("updated_at"), tb.Organization),
    "ticket_metric_events": (_SECONDS.format("time"), tb.MetricEvent),
    "ticket_events": (_SECONDS.format("created_at"), tb.Audit),
}  # fmt: skip


def _decorated(world: Desk, exchange: Exchange, name: str, *, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if name == "ticket_metric_events":
        sql = f"SELECT id, more FROM zd_metric_events WHERE id IN ({marks(rows)})"
        more = dict(world.db.execute(sql, *(row["id"] for row in rows)))
        return [{**row, **msgspec.json.decode(more[row["id"]])} for row in rows]
    if name == "ticket_events":
        found = select(world.db, tb.Audit, f"id IN ({marks(rows)}) ORDER BY id", *(row["id"] for row in rows))
        return [_event(world, exchange, one) for one in found]
    return SPECS[name.removesuffix("s")].decorated(world, exchange, rows)  # type: ignore[no-any-return]


def _event(world: Desk, exchange: Exchange, audit: tb.Audit) -> tb.Json:
    events = audit_shown(world, exchange, audit)["events"]
    if "comment_events" not in exchange.query.get("include", ""):
        events = [one for one in events if one["type"] != "Comment"]
    children = [
        {**one, "event_type": one["type"], **({one["field_name"]: one["value"]} if "field_name" in one else {})}
        for one in events
    ]
    at = int(seconds(audit.created_at))
    return {"id": audit.id, "ticket_id": audit.ticket_id, "timestamp": at, "created_at": audit.created_at,
            "updater_id": audit.author_id, "via": audit.via["channel"], "system": audit.metadata["system"],
            "metadata": audit.metadata, "event_type": "Audit", "child_events": children}  # fmt: skip


def _page(world: Desk, exchange: Exchange, name: str, *, rows: list[dict[str, Any]], **more: Any) -> tb.Json:
    rows = _decorated(world, exchange, name, rows=rows)
    if name == "tickets" and "include" in exchange.query:
        sideload(world, exchange, {}, rows=rows)
    return {name: rows, **more}


def _last(world: Desk, at: str, kind: Any, *, rows: list[dict[str, Any]]) -> int:
    return int(world.db.execute(f"SELECT {at} FROM {table_name(kind)} WHERE id = ?", rows[-1]["id"])[0][0])


def _since(name: str) -> Any:
    at, kind = _EXPORTS[name]

    def since(world: Desk, exchange: Exchange) -> Any:
        start = _start(world, exchange)
        size = whole(exchange, "per_page", EXPORTED, most=EXPORTED)
        found = shown(world.db, kind, f"{at} >= ? ORDER BY {at}, id LIMIT ?", start, size)
        more = len(found) == size
        end = _last(world, at, kind, rows=found) if found else None
        if more and end is not None:  # All rows of the last second belong to the page, or the next leaves some out.
            found = shown(world.db, kind, f"{at} BETWEEN ? AND ? ORDER BY {at}, id", start, end)
            end += 1
        following = link(exchange, start_time=start if end is None else end)
        return _page(world, exchange, name, rows=found, count=len(found), end_of_stream=not more, end_time=end,
                     next_page=following)  # fmt: skip

    return since


def _by_cursor(name: str) -> Any:
    at, kind = _EXPORTS[name]

    def by_cursor(world: Desk, exchange: Exchange) -> Any:
        cursor, last = exchange.query.get("cursor"), -1
        if cursor is None:
            start = _start(world, exchange)
        else:
            begin, _, rest = _decoded(cursor or "?").partition(".0||")
            start, last = int(begin or 0), int(rest.strip("|") or 0)
        size = whole(exchange, "per_page", EXPORTED, most=EXPORTED)
        where = f"({at}, id) > (?, ?) ORDER BY {at}, id LIMIT ?"
        found = shown(world.db, kind, where, start, last, size + 1)
        more, found = len(found) > size, found[:size]
        if found:
            start, last = _last(world, at, kind, rows=found), found[-1]["id"]
        after = base64.b64encode(f"{start}.0||{max(0, last)}|".encode()).decode()
        return _page(world, exchange, name, rows=found, after_url=link(exchange, cursor=after, start_time=None),
                     before_url=None, after_cursor=after, before_cursor=None, end_of_stream=not more)  # fmt: skip

    return by_cursor


for _name in _EXPORTS:
    ROUTES.add("GET", f"/api/v2/incremental/{_name}", _since(_name), who="admin", limit="incremental")
for _name in ("tickets", "users"):
    ROUTES.add("GET", f"/api/v2/incremental/{_name}/cursor", _by_cursor(_name), who="admin", limit="incremental")


# -- jobs


_NAMES = {"create": "Creation", "update": "Update", "delete": "Deletion", "merge": "Merge"}
_BULK = {spec.many: spec for spec in (TICKETS, USERS, ORGANIZATIONS, GROUP_MEMBERSHIPS, ORGANIZATION_MEMBERSHIPS)}


def _work(kind: str) -> Any:
    verb, _, noun = kind.partition(" ")

    def work(world: Desk, caller_id: int, index: int, *, item: tb.Json) -> tb.Json:
        who = world.user(caller_id)
        assert who is not None, "a job has a caller"
        caller = Caller(who.id, who.name, who.email, who.role, who.organization_id, who.ticket_restriction)
        exchange = Exchange(HttpRequest("JOB", "", ""), "", {}, caller=caller)
        try:
            with world.db.transaction():
                done = _done(world, exchange, kind, item=item)
        except (Invalid, Conflict, Refuse) as error:
            name = noun.removesuffix("s").title().replace("_", "")
            failed = f"{name}{_NAMES[verb]}Failed"
            words = _words(error)[:MOST_WORDS]
            return {"index": index, "id": whole_number(item.get("id")), "error": failed, "details": words}
        return {"index": index, **done} if kind == "create tickets" else done

    return work


def _words(error: Exception) -> str:
    refusal = error if isinstance(error, Refuse) else translate(error)
    body = record(refusal.body if refusal else None)
    found = " ".join(one["description"] for some in record(body.get("details")).values() for one in some)
    return found or str(body.get("description", ""))


def _done(world: Desk, exchange: Exchange, kind: str, *, item: tb.Json) -> tb.Json:
    """Works on one item; returns what the job says of it."""
    verb, _, noun = kind.partition(" ")
    spec = _BULK[noun]
    if verb == "create":
        made = spec.create(world, exchange, item)
        more = {"account_id": world.account_id} if spec is TICKETS else {"status": "Created"}
        return {"id": made.id, **more}
    row = spec.need(world, exchange, whole_number(item.get("id")))
    if verb == "merge":
        merge_one(world, exchange, row, item=item)
    elif verb == "delete":
        spec.remove(world, exchange, row)
        return {"action": "delete", "id": row.id, "status": "Deleted", "success": True}
    else:
        spec.update(world, exchange, row, fields={name: value for name, value in item.items() if name != "id"})
    return {"action": "update", "id": row.id, "status": "Updated", "success": True}


WORKERS: dict[str, Any] = {
    kind: _work(kind)
    for kind in ("merge tickets", *(f"{verb} {noun}" for verb in ("create", "update", "delete") for noun in _BULK))
}


@route("GET", "/api/v2/job_statuses", who="agent")
def jobs(world: Desk, exchange: Exchange) -> Any:
    """Lists the latest jobs."""
    rows = select(world.db, BackgroundJob, "1 ORDER BY id DESC LIMIT 100")
    return {"job_statuses": [job_status(exchange, one) for one in rows], **_WHOLE, "count": len(rows)}


@route("GET", "/api/v2/job_statuses/show_many", who="agent")
def many_jobs(world: Desk, exchange: Exchange) -> Any:
    """Lists jobs by their identifiers."""
    names = exchange.query.get("ids", "").split(",")[:100]
    rows = select(world.db, BackgroundJob, f"name IN ({marks(names)}) ORDER BY id", *names)
    return {"job_statuses": [job_status(exchange, one) for one in rows]}


@route("GET", "/api/v2/job_statuses/{job}", who="agent")
def job(world: Desk, exchange: Exchange) -> Any:
    """Shows a job."""
    rows = only(world.db, BackgroundJob, "name = ?", exchange.params[0])
    return {"job_status": job_status(exchange, rows)}


# -- uploads


def _drawn(text: str, size: int) -> str:
    """Returns the hex of a token, which nobody guesses from another."""
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


@route("POST", "/api/v2/uploads", who="end", status=201)
def upload(world: Desk, exchange: Exchange) -> Any:
    """Keeps a file for a comment; a token adds it to an earlier upload."""
    name = exchange.query.get("filename", "")
    if not name:
        raise API.attribute("filename is required")
    new, own = (_drawn(f"{letter}{world.last_id}", 13)[:25] for letter in "uf")
    token = exchange.query.get("token") or new
    expires = world.clock.now + UPLOAD_S
    kind = exchange.request.header("content-type").partition(";")[0] or "application/octet-stream"
    data = exchange.request.body
    world.put(tb.StoredFile, token=own, upload=token, file_name=name, content_type=kind, data=data, expires=expires)
    files = [attachment(one) for one in select(world.db, tb.StoredFile, "upload = ? ORDER BY id", token)]
    shown_files = [based(exchange, msgspec.Raw(msgspec.json.encode(one))) for one in files]
    body = {"token": token, "expires_at": moment(expires), "attachments": shown_files, "attachment": shown_files[-1]}
    return {"upload": body}


@route("DELETE", "/api/v2/uploads/{token}", who="end", status=204)
def remove_upload(world: Desk, exchange: Exchange) -> Any:
    """Drops an upload."""
    if not count(world.db, tb.StoredFile, "upload = ?", exchange.params[0]):
        raise API.missing()
    delete(world.db, tb.StoredFile, "upload = ?", exchange.params[0])


@route("GET", "/api/v2/attachments/{id}", who="agent")
def show_attachment(world: Desk, exchange: Exchange) -> Any:
    """Shows a file."""
    found = find(world.db, tb.StoredFile, exchange.id)
    if found is None:
        raise API.missing()
    return {"attachment": based(exchange, msgspec.Raw(msgspec.json.encode(attachment(found))))}


@route("GET", "/attachments/token/{token}", who="anyone")
def download(world: Desk, exchange: Exchange) -> Any:
    """Sends a file."""
    found = only(world.db, tb.StoredFile, "token = ?", exchange.params[0])
    name = found.file_name.replace('"', "").replace("\n", "").replace("\r", "")
    headers = [("content-type", found.content_type), ("content-disposition", f'attachment; filename="{name}"')]
    return HttpResponse(200, found.data, headers)


# -- the rest


@route("POST", "/oauth/tokens", who="anyone", status=200)
def oauth(world: Desk, exchange: Exchange) -> Any:
    """Gives an access token for a grant."""
    given = exchange.json
    found = select(world.db, tb.Token, "value = ? AND client <> ''", str(given.get("client_secret") or ""))
    known = found and given.get("client_id") == found[0].client
    if not known or given.get("grant_type") not in {"client_credentials", "authorization_code", "refresh_token"}:
        raise Refuse(401, {"error": "invalid_client", "error_description": "The client or the grant is not known"})
    value = _drawn(f"o{world.last_id}", 32)
    scopes = str(given.get("scope") or "read write")
    world.put(tb.Token, value=value, user_id=found[0].user_id, scopes=scopes)
    return {"access_token": value, "token_type": "bearer", "scope": scopes}


@route("GET", "/api/v2/locales", who="end")
def locales(world: Desk, exchange: Exchange) -> Any:
    """Lists the languages."""
    known = ((1, "en-US", "English"), (8, "de", "Deutsch"), (16, "fr", "Français"), (2, "es", "Español"))
    rows = [{"url": f"{exchange.base}/api/v2/locales/{name}.json", "id": number, "locale": name, "name": title,
             "native_name": title, "presentation_name": title, "rtl": False, "default": number == 1} for number, name,
             title in known]  # fmt: skip
    return {"locales": rows, **_WHOLE, "count": len(rows)}


RATINGS = ResourceSpec(name="satisfaction_rating", row=tb.SatisfactionRating, path="/api/v2/satisfaction_ratings",
    style=API,
                       verbs=("list", "show", "count"))  # fmt: skip
SUSPENDED = ResourceSpec(name="suspended_ticket", row=tb.SuspendedTicket, path="/api/v2/suspended_tickets", style=API,
    write="agent",
                         verbs=("list", "show", "delete"))  # fmt: skip
ARTICLES = ResourceSpec(
    name="article", row=tb.Article, path="/api/v2/help_center/articles", style=API, read="anyone", where="draft = 0",
    verbs=("list", "show", "create", "update", "delete"),
)  # fmt: skip
METRICS = ResourceSpec(
    name="ticket_metric", row=tb.Metric, path="/api/v2/ticket_metrics", style=API, verbs=("list", "show")
)
for _spec in (RATINGS, SUSPENDED, ARTICLES, METRICS):
    _spec.mount(ROUTES)


@route("GET", "/api/v2/help_center/articles/search", who="anyone")
def search_articles(world: Desk, exchange: Exchange) -> Any:
    """Lists the articles that hold all words of a query."""
    parts = search.words(exchange.query.get("query", ""))[: search.MOST_TERMS]
    where = " AND ".join(["1", *("instr(lower(title || ' ' || body), ?) > 0" for _ in parts)])
    found = ARTICLES.answer_list(world, exchange, where, *parts)
    return {"results": found.pop("articles"), **found}


@route("PUT", "/api/v2/suspended_tickets/{id}/recover", who="agent")
def recover(world: Desk, exchange: Exchange) -> Any:
    """Makes a ticket of a suspended message."""
    row = SUSPENDED.need(world, exchange, exchange.id)
    who = world.user(exchange.caller.id)
    assert who is not None, "a caller is a user"
    author = {"name": row.author.get("name") or "Unknown", "email": row.author.get("email")}
    wanted = {"subject": row.subject, "requester": author, "comment": {"body": row.content or "(empty)"}}
    ticket, _ = commit(world, who, None, wanted=wanted, via=channel("email"))
    delete(world.db, tb.SuspendedTicket, "id = ?", row.id)
    return {"ticket": TICKETS.one(world, exchange, ticket.id)}


@route("GET", "/api/v2/account/settings", who="agent")
def settings(world: Desk, exchange: Exchange) -> Any:
    """Shows settings that clients read."""
    return {"settings": {"tickets": {"comments_public_by_default": True}, "api": {"accepted_api_agreement": True}}}
