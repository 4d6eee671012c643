"""Conventions of the API: callers, limits, headers, envelopes of lists, cursors, errors and jobs."""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
from typing import Any, NamedTuple, cast
from urllib.parse import urlencode

import msgspec
import xxhash

from quintain.errors import ToolError
from quintain.resources.database import Database
from quintain.resources.database.standing import known
from quintain.resources.web import Exchange, HttpResponse, Listing, Refuse, Style, cursor_page, offset_page
from quintain.resources.web.messages import too_large
from quintain.resources.web.routes import Route
from quintain.resources.web.rows import count, select
from quintain.resources.web.world import BackgroundJob, moment

from .account import AGENTS, Conflict, Desk, Invalid, row_number

PER_PAGE = 100
MOST_SHARED = 262_144
"""Bytes of a change that each of several records gets."""
DEEPEST = 10_000
"""The last record that pages by offset reach."""
RANKS = {"anyone": 0, "end": 1, "agent": 2, "admin": 3}
OWN_LIMITS = {"incremental": (10, 60.0), "view": (5, 60.0), "export": (100, 60.0)}
"""Limits of single endpoints: requests and seconds."""
TROUBLE_S = 2
"""Seconds that planned trouble asks a caller to wait."""
_TICKETS = ("/api/v2/tickets/{id}", "/agent/tickets/{id}")


class Caller(NamedTuple):
    """User who asks."""

    id: int | None
    name: str
    email: str | None
    role: str
    organization_id: int | None
    restriction: str | None

    @property
    def is_agent(self) -> bool:
        """True for agents and admins."""
        return self.role in AGENTS


STRANGER = Refuse(401, {"error": "Couldn't authenticate you"})
ANONYMOUS = Caller(None, "Anonymous user", None, "end-user", None, "requested")
_CALLER = (
    "SELECT u.id, u.name, u.email, u.role, u.organization_id, u.ticket_restriction, t.scopes, t.expires, u.suspended "
    "FROM zd_tokens t JOIN zd_users u ON u.{} WHERE t.value = ? AND u.active = 1"
)
_BASIC = _CALLER.format("email = ? AND t.user_id IS NULL")
_BEARER = _CALLER.format("id = t.user_id")


def only(db: Database, kind: type[Any], where: str, *values: Any) -> Any:
    """Returns the row that fulfils a condition, or raises the refusal for one that does not exist."""
    found = select(db, kind, where, *values)
    if not found:
        raise API.missing()
    return found[0]


def admit(world: Desk, exchange: Exchange) -> None:
    """Finds the caller, counts the request, and compares the route's needs with the caller's rights.

    Raises:
        Refuse: The credentials are wrong, a limit is passed, or the caller may not do this.
    """
    asked, route = exchange.request, exchange.route
    who = RANKS[route.who or "agent"] if route else RANKS["end"]
    exchange.caller = caller = _caller(world, asked.header("authorization"), asked.method, needed=who > 0)
    _count(world, exchange)
    if route is None:
        return
    permit(caller, route)
    if route.limit:
        limit, period_s = OWN_LIMITS[route.limit]
        key = f"{route.limit} {caller.id} {asked.path}" if route.limit == "view" else route.limit
        take(world, exchange, key, limit=limit, period_s=period_s)


def permit(caller: Caller, route: Route) -> None:
    """Raises Refuse if a caller lacks the rights that a route needs."""
    rank = RANKS["admin"] if caller.role == "admin" else RANKS["agent"] if caller.is_agent else RANKS["end"]
    if rank < RANKS[route.who or "agent"]:
        raise API.forbidden()


def basic(email: str, token: str) -> str:
    """Returns the header with which a user shows the account's token."""
    return "Basic " + base64.b64encode(f"{email}/token:{token}".encode()).decode()


def _caller(world: Desk, header: str, method: str, *, needed: bool) -> Caller:
    wrong = Refuse(401, STRANGER.body)
    if not header:
        if needed:
            raise wrong
        return ANONYMOUS
    email, token = _credentials(header)
    found = known(world.db, _BASIC, email, token) if email else known(world.db, _BEARER, token)
    if not found or (found[0][7] is not None and found[0][7] <= world.clock.now) or found[0][8]:
        raise wrong
    if (needed_scope := "read" if method == "GET" else "write") not in _scopes(found[0][6]):
        words = f"You are missing the following required scopes: {needed_scope}"
        raise Refuse(403, {"error": "Forbidden", "description": words})
    return Caller(*found[0][:6])


@functools.lru_cache(maxsize=1024)
def _scopes(text: str) -> frozenset[str]:
    return frozenset(scope.rpartition(":")[2] for scope in text.split())


@functools.lru_cache(maxsize=1024)
def _credentials(header: str) -> tuple[str, str]:
    """Returns e-mail and API token of Basic credentials, or an empty e-mail and a Bearer token; empty if wrong."""
    kind, _, value = header.partition(" ")
    if kind.lower() == "bearer":
        return "", value.strip()
    try:
        name, _, token = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    email, slash, _ = name.rpartition("/token")
    return (email.lower(), token) if kind.lower() == "basic" and slash else ("", "")


def _count(world: Desk, exchange: Exchange) -> None:
    path = exchange.request.path
    forced, now = world.throttle.force(path), world.clock.now
    remaining, reset = world.throttle.take("account", world.limit, period_s=60.0, now=now)
    left = str(max(0, remaining))
    exchange.headers += [
        ("x-rate-limit", str(world.limit)), ("x-rate-limit-remaining", left),
        ("ratelimit-limit", str(world.limit)), ("ratelimit-remaining", left), ("ratelimit-reset", str(reset)),
    ]  # fmt: skip
    route = exchange.route
    if route is not None and (route.method, route.path) == ("GET", "/api/v2/tickets"):
        rest, resets = world.throttle.take("tickets index", PER_PAGE, period_s=60.0, now=now)
        words = f"total=100; remaining={max(0, rest)}; resets={resets}"
        exchange.headers.append(("zendesk-ratelimit-tickets-index", words))
    if forced or remaining < 0:
        raise _limited(world, exchange, forced or reset)


def take(world: Desk, exchange: Exchange, key: str, *, limit: int, period_s: float) -> None:
    """Counts one request of a limit of its own.

    Raises:
        Refuse: It is one too many.
    """
    remaining, reset = world.throttle.take(key, limit, period_s=period_s, now=world.clock.now)
    if remaining < 0:
        raise _limited(world, exchange, reset)


def _limited(world: Desk, exchange: Exchange, seconds: int, *, refusal: Refuse | None = None) -> Refuse:
    waits = world.throttle.waits
    if len(waits) > 100:
        waits.clear()
    waits[exchange.request.header("authorization")] = world.clock.now + seconds
    return refusal or API.limited(seconds)


def trouble(world: Desk, exchange: Exchange, kind: str) -> Refuse | None:
    """Returns the refusal of planned trouble. Somebody else can be faster with one ticket only."""
    route = exchange.route
    if kind == "conflict":
        is_change = route is not None and route.writes and route.path in _TICKETS
        return translate(Conflict("Ticket was updated by somebody else in the meantime")) if is_change else None
    down = {"error": "ServiceUnavailable", "description": "The service is temporarily unavailable"}
    refusal = Refuse(503, down, {"retry-after": str(TROUBLE_S)}) if kind == "unavailable" else None
    return _limited(world, exchange, TROUBLE_S, refusal=refusal)


def finish(world: Desk, exchange: Exchange, response: HttpResponse) -> None:
    """Adds the headers that every answer has."""
    known = {name for name, _ in response.headers}
    response.headers += [pair for pair in exchange.headers if pair[0] not in known]
    response.headers += [
        ("x-zendesk-api-version", "v2"),
        ("x-request-id", f"{world.last_id:032x}"),
        ("x-runtime", "0.042"),
        ("cache-control", "max-age=0, private, must-revalidate"),
        ("etag", f'W/"{xxhash.xxh3_128_hexdigest(response.body)}"'),
    ]


def unknown(world: Desk, exchange: Exchange) -> Refuse:
    """Returns the refusal for a path without a route, and counts it."""
    path = exchange.request.path
    if len(world.unsupported) < 1000 or path in world.unsupported:
        world.unsupported[path] = world.unsupported.get(path, 0) + 1
    return Refuse(404, {"error": "InvalidEndpoint", "description": "Not found"})


def translate(error: Exception) -> Refuse | None:
    """Returns the refusal that an error of the rules means."""
    if isinstance(error, Invalid):
        return API.details(error.details)
    if isinstance(error, Conflict):
        return Refuse(409, {"error": "UpdateConflict", "description": str(error)})
    if isinstance(error, ToolError):  # A number that no column holds.
        return API.attribute(str(error))
    return None


# -- lists


class Api(Style):
    """Refusals, and envelopes of lists and writes, as `ResourceSpec` needs them."""

    def missing(self) -> Refuse:
        """Returns the refusal for a record that does not exist."""
        return Refuse(404, {"error": "RecordNotFound", "description": "Not found"})

    def details(self, details: dict[str, Any]) -> Refuse:
        """Returns the refusal for invalid fields."""
        body = {"error": "RecordInvalid", "description": "Record validation errors", "details": details}
        return Refuse(422, body)

    def attribute(self, message: str, status: int = 400, title: str = "Invalid attribute") -> Refuse:
        """Returns the refusal for a parameter."""
        return Refuse(status, {"error": {"title": title, "message": message}})

    def forbidden(self) -> Refuse:
        """Returns the refusal for a caller without the right."""
        message = "You do not have access to this page. Please contact the account owner of this help desk for help."
        return self.attribute(f"{message}", 403, "Forbidden")

    def too_many(self, exchange: Exchange, noun: str) -> Refuse:
        """Returns the refusal for more than 100 values."""
        path = exchange.request.path
        if noun == "users" and "create_many" in path:
            return Refuse(400, {"error": "TooManyValues", "description": "Maximum 100 users may be created per call"})
        words = "Parameter  cannot specify more than 100 values"
        return Refuse(400, {"error": "TooManyValues", "description": words, "max_count": 100})

    def search(self, message: str) -> Refuse:
        """Returns the refusal of a search."""
        return Refuse(422, {"error": "invalid", "description": message})

    def limited(self, seconds: int) -> Refuse:
        """Returns the refusal of a caller above a rate limit."""
        words = "Number of allowed API requests per minute exceeded"
        body = {"error": "APIRateLimitExceeded", "description": words}
        return Refuse(429, body, {"retry-after": str(seconds)})

    def invalid(self, details: dict[str, list[tuple[str, str]]]) -> Refuse:
        """Returns the refusal for invalid fields."""
        return self.details(
            {name: [{"description": text, "error": error} for text, error in found] for name, found in details.items()}
        )

    def page(
        self, world: Desk, exchange: Exchange, listing: Listing, /, *, key: str, sortable: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Returns a page by cursor if `page[size]` or a cursor is given, else by offset."""
        query = exchange.query
        if any(name.startswith("page[") for name in query):
            return by_cursor(world, exchange, listing, key=key, sortable=sortable)
        if (by := query.get("sort_by")) in sortable or (by is None and query.get("sort_order") and sortable):
            order, down = (by,) if by else listing.order, query.get("sort_order", "asc").lower() == "desc"
            listing = msgspec.structs.replace(listing, order=order, descending=down)
        return by_offset(world, exchange, listing, key=key)

    def many(self, exchange: Exchange, /, *, noun: str) -> list[int]:
        """Returns the identifiers of `ids`, at most 100.

        Raises:
            Refuse: There are more, or none, or what each of them gets is too large.
        """
        text = exchange.query.get("ids", "")
        words = [word for word in text.split(",") if word.strip()]
        self.check_several(exchange, len(words), noun)
        if not words or not all(word.strip().isdecimal() for word in words):
            raise API.attribute("You passed an invalid value for the ids attribute. Must be a list of integers")
        return [row_number(word.strip()) for word in words]

    def check_several(self, exchange: Exchange, number: int, noun: str) -> None:
        """Refuses a change of too many records, or one too large to be made for each."""
        if number > PER_PAGE:
            raise API.too_many(exchange, noun)
        if len(exchange.request.body) > MOST_SHARED:
            raise too_large(f"At most {MOST_SHARED} bytes for several {noun} at once")

    def job(self, world: Desk, exchange: Exchange, kind: str, /, *, items: list[Any]) -> Any:
        """Starts a job of at most 100 items.

        Raises:
            Refuse: There are more, or 30 jobs wait already.
        """
        noun = kind.rpartition(" ")[2]
        given = cast(object, items)
        if not isinstance(given, list) or not all(isinstance(item, dict) for item in cast(list[object], given)):
            raise API.attribute(f"{noun} must be a list of objects")
        if not items:
            raise API.attribute(f"{noun} must not be empty")
        if len(items) > PER_PAGE:
            raise API.too_many(exchange, noun)
        if count(world.db, BackgroundJob, "status = 'queued'") >= 30:
            words = {"error": "TooManyJobs", "description": "Too many jobs are queued"}
            raise Refuse(429, words, {"retry-after": "10"})
        world.last_id += 1
        name = "V3-" + hashlib.md5(f"job {world.last_id}".encode(), usedforsecurity=False).hexdigest()
        world.last_id -= 1
        return {"job_status": job_status(exchange, world.start_job(name, kind, items, caller=exchange.caller.id))}


API = Api()


def whole(exchange: Exchange, name: str, default: int, *, most: int) -> int:
    """Returns a parameter as a number from 1; what is above `most` is `most`.

    Raises:
        Refuse: It is not a number.
    """
    text = exchange.query.get(name, "").strip() or str(default)
    if not text.removeprefix("-").isdecimal():
        raise API.attribute(f"You passed an invalid value for the {name} attribute. Must be an integer")
    return min(max(1, int(text[:18])), most)


def by_offset(world: Desk, exchange: Exchange, listing: Listing, *, key: str) -> dict[str, Any]:
    """Returns a page by its number.

    Raises:
        Refuse: It is beyond record 10,000.
    """
    size = whole(exchange, "per_page", PER_PAGE, most=PER_PAGE)
    page = whole(exchange, "page", 1, most=10**9)
    if page * size > DEEPEST and page > 1:
        raise _paging("Depth", f"Number of resources exceeds {DEEPEST}; use cursor pagination instead")
    rows, total = offset_page(world.db, listing, page=page, size=size)
    return {key: rows, **offset_links(exchange, page, size, total=total)}


def offset_links(exchange: Exchange, page: int, size: int, *, total: int) -> dict[str, Any]:
    """Returns the keys that a page by its number ends with."""
    following = link(exchange, page=page + 1) if page * size < total else None
    before = link(exchange, page=page - 1) if page > 1 else None
    return {"next_page": following, "previous_page": before, "count": total}


def _paging(what: str, detail: str) -> Refuse:
    error = {"code": f"InvalidPagination{what}", "title": f"Invalid Pagination {what}", "detail": detail}
    return Refuse(400, {"errors": [error]})


def link(exchange: Exchange, **changes: Any) -> str:
    """Returns the address of this request with other parameters; None removes one."""
    query = {**exchange.query, **{name: str(value) for name, value in changes.items()}}
    query = {name: value for name, value in query.items() if value != "None"}
    path = exchange.request.path if exchange.request.path.endswith(".json") else f"{exchange.request.path}.json"
    return f"{exchange.base}{path}?{urlencode(query)}"


def by_cursor(
    world: Desk, exchange: Exchange, listing: Listing, *, key: str, sortable: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Returns a page by cursor.

    Raises:
        Refuse: The cursor is of another list, or the order is not one of this list.
    """
    query = exchange.query
    size = whole(exchange, "page[size]", PER_PAGE, most=10**9)
    invalid = _paging("Parameter", "page[size], page[after], page[before] or sort is not valid")
    if size > PER_PAGE or ("page[after]" in query and "page[before]" in query):
        raise invalid
    if sort := query.get("sort"):
        if sort.lstrip("-") not in sortable:
            raise invalid
        listing = msgspec.structs.replace(listing, order=(sort.lstrip("-"),), descending=sort.startswith("-"))
    order = ",".join(f"-{name}" if listing.descending else name for name in listing.keys)
    try:
        after, before = (_decoded(query.get(f"page[{name}]"), order, listing) for name in ("after", "before"))
    except ValueError as error:
        raise invalid from error
    found = cursor_page(world.db, listing, size=size, after=after, before=before)
    first, last = (None if one is None else _encoded(one, order) for one in (found.first, found.last))
    links = {
        "prev": link(exchange, **{"page[before]": first, "page[after]": None, "page[size]": size}) if first else None,
        "next": link(exchange, **{"page[after]": last, "page[before]": None, "page[size]": size}) if last else None,
    }
    meta = {"has_more": found.has_more, "after_cursor": last, "before_cursor": first}
    return {key: found.rows, "meta": meta, "links": links}


def _encoded(values: list[Any], order: str) -> str:
    data = msgspec.json.encode({"o": order, "v": base64.b64encode(msgspec.json.encode(values)).decode()})
    return base64.b64encode(data).decode()


def _decoded(cursor: str | None, order: str, listing: Listing) -> list[Any] | None:
    if cursor is None:
        return None
    try:
        found = msgspec.json.decode(base64.b64decode(cursor, validate=True), type=dict[str, str])
        values: list[Any] = msgspec.json.decode(base64.b64decode(found["v"]), type=list[int | float | str | None])
    except (binascii.Error, KeyError, msgspec.DecodeError) as error:
        raise ValueError("not a cursor") from error
    if found.get("o") != order or len(values) != len(listing.keys):
        raise ValueError(f"a cursor of the order {found.get('o')}, where {order} was expected")
    return values


# -- jobs


_VERBS = {"create": "Creating", "update": "Updating", "delete": "Deleting", "merge": "Working on"}


def job_status(exchange: Exchange, job: BackgroundJob) -> dict[str, Any]:
    """Returns a job as an answer shows it."""
    verb, _, noun = job.kind.partition(" ")
    message = None
    if job.status == "working":
        message = f"{_VERBS[verb]} {noun.removesuffix('s')} #{job.done}"
    if job.ended is not None:
        message = f"Completed at {moment(job.ended)[:-1].replace('T', ' ')} +0000"
    results = job.results if job.status == "completed" else None
    return {"id": job.name, "url": f"{exchange.base}/api/v2/job_statuses/{job.name}.json", "total": job.total,
            "progress": job.done or None, "status": job.status, "message": message, "results": results}  # fmt: skip
