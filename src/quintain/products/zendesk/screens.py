"""Parts that all pages share: sessions, calls of the API, forms as rows of fields, tables, and errors as pages."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from quintain.resources.web import Exchange, HttpRequest, HttpResponse, Refuse, Routes, answer
from quintain.resources.web.html import Templates, form
from quintain.resources.web.rows import select

from . import tables as tb
from . import wire
from .account import Conflict, Desk, Invalid, record

ROUTES = Routes()
route = ROUTES.route
SESSION = "session"
"""Name of the cookie that a sign-in sets."""
SESSION_S = 8 * 3600
"""Seconds of the world for which a session lasts."""
ROWS = 30
"""Rows of a table on one page."""
PATHS = ("agent", "admin", "hc", "access", "")
"""First parts of the paths of pages."""
STATUSES = {
    "new": "New",
    "open": "Open",
    "pending": "Pending",
    "hold": "On-hold",
    "solved": "Solved",
    "closed": "Closed",
}
Pairs = list[tuple[str, str]]
Given = dict[str, list[Any]]


class Field(NamedTuple):
    """Field of a form.

    Attributes:
        name: Name under which it is sent.
        label: Its visible name.
        value: Its content; of `choice` the value of the chosen option, of `choices` a list of values.
        kind: A type of HTML inputs, or area, choice, choices.
        options: Values and texts to choose from.
        required: True if it may not be empty.
    """

    name: str
    label: str
    value: Any = ""
    kind: str = "text"
    options: Pairs = []
    required: bool = False

    @property
    def shown(self) -> Any:
        """The value as a browser sends it back."""
        if self.kind == "checkbox":
            return bool(self.value)
        if self.kind == "choices":
            return [str(one) for one in self.value or ()]
        text = "" if self.value is None else str(self.value)
        return text.replace("\r\n", "\n") if self.kind == "area" else text.replace("\n", "").replace("\r", "")

    def taken(self, given: Given) -> Any:
        """Returns the value that a form sent; the one that is shown if it sent none."""
        some = given.get(self.name, [])
        if self.kind == "checkbox":
            return bool(some)
        return some if self.kind == "choices" else some[-1] if some else self.shown


def pick(name: str, label: str, value: Any, options: Iterable[tuple[str, str]]) -> Field:
    """Returns a field with one of several options; the present value is always one of them."""
    text, found = "" if value is None else str(value), [*options]
    return Field(name, label, text, "choice", found if text in dict(found) else [(text, text or "-"), *found])


def changed(fields: list[Field], given: Given) -> dict[str, Any]:
    """Returns the values that a form sent where they are not those that its page showed."""
    return {one.name: value for one in fields if (value := one.taken(given)) != one.shown}


def filled(fields: list[Field], given: Given) -> list[Field]:
    """Returns fields with the values that a form sent."""
    return [one._replace(value=one.taken(given)) for one in fields]


class Table(NamedTuple):
    """Table of a page.

    Attributes:
        caption: Its name.
        heads: Titles of the columns, and addresses that sort by them.
        rows: For each row its key, and texts or pairs of a text and an address.
        pages: Addresses of the pages before and after.
        select: Name of a row, if rows can be chosen.
    """

    caption: str
    heads: Pairs
    rows: list[tuple[Any, list[Any]]]
    pages: tuple[str, str] = ("", "")
    select: str = ""


def show(world: Desk, exchange: Exchange, template: str, **values: Any) -> HttpResponse:
    """Returns a page."""
    shared = {"caller": exchange.caller, "path": exchange.request.path, "subdomain": world.subdomain, "errors": {},
              "notice": "Saved" if "saved" in exchange.query else "", "links": [], "tables": [], "add": ""}  # fmt: skip
    return TEMPLATES.answer(f"{template}.html", status=exchange.status or 200, **(shared | values))


def see(path: str, **query: Any) -> HttpResponse:
    """Returns the answer that sends the browser to another page."""
    text = urlencode({name: value for name, value in query.items() if value})
    return HttpResponse(303, b"", [("location", f"{path}?{text}" if text else path)])


def here(exchange: Exchange, **changes: Any) -> str:
    """Returns the address of this page with other parameters."""
    query = {name: value for name, value in (exchange.query | changes).items() if value and name != "saved"}
    path = quote(exchange.request.path)
    return f"{path}?{urlencode(query)}" if query else path


def around(exchange: Exchange, found: tb.Json) -> tuple[str, str]:
    """Returns the addresses of the pages of a list before and after this one."""
    page = wire.whole(exchange, "page", 1, most=10**6)
    return (
        here(exchange, page=page - 1) if found.get("previous_page") else "",
        here(exchange, page=page + 1) if found.get("next_page") else "",
    )


def given(exchange: Exchange) -> Given:
    """Returns what the form of a page sent, in the body or in the address."""
    if exchange.request.method == "POST":
        return form(exchange.request)
    found: Given = {}
    for name, value in exchange.request.query:
        found.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return found


def one_of(sent: Given, name: str) -> str:
    """Returns the text of a field that a form sent; empty if it sent none."""
    value = sent.get(name, [""])[-1]
    return value if isinstance(value, str) else ""


def api(
    world: Desk, exchange: Exchange, method: str, /, *, path: str, body: Any = None, kind: str = "", **query: Any
) -> Any:
    """Runs a route of the API for the caller of a page, and returns the JSON of its answer.

    Raises:
        Refuse: The caller may not do this, or the route refuses.
        Invalid: A field is invalid.
        Conflict: The stamp of a safe update is an older one.
    """
    texts = {name: str(value) for name, value in query.items()}
    data = body if isinstance(body, bytes) else msgspec.json.encode(body or {})
    asked = HttpRequest(
        method, f"/api/v2/{path}", exchange.request.host, tuple(texts.items()), (("content-type", kind),), data
    )
    found = world.product_of(asked.host).routes.find(method, asked.path)
    assert found is not None, f"the API has no {method} {path}"
    inner = Exchange(asked, exchange.base, texts, found[1], exchange.caller, route=found[0])
    wire.permit(exchange.caller, found[0])
    response = answer(found[0].handler(world, inner))
    return response.json() if response.body else None


def tried(world: Desk, exchange: Exchange, act: Callable[[], Any]) -> dict[str, str]:
    """Runs the act of a form; returns faults by field, after which nothing was changed."""
    try:
        with world.db.transaction():
            act()
    except Conflict as error:
        exchange.status = 409
        return {"base": str(error)}
    except (Invalid, Refuse) as error:
        details = error.details if isinstance(error, Invalid) else record(record(error.body).get("details"))
        if not details and isinstance(error, Refuse) and error.status in {401, 403, 404}:
            raise
        exchange.status = 422 if isinstance(error, Invalid) else error.status
        found = {name: " ".join(one["description"] for one in some) for name, some in details.items()}
        return found or {"base": words(record(getattr(error, "body", {})))}
    return {}


def words(body: tb.Json) -> str:
    """Returns the words of a refusal."""
    error = body.get("error")
    return str(body.get("description") or record(error).get("message") or body.get("message") or error or "Not found")


def options(world: Desk, sql: str, *values: Any) -> Pairs:
    """Returns keys and names as options of a field."""
    return [(str(key), str(name)) for key, name in world.db.execute(sql, *values)]


def when(text: str | None) -> str:
    """Returns a time as pages show it."""
    return f"{text[:10]} {text[11:16]}" if text else ""


TEMPLATES = Templates("quintain.products.zendesk", statuses=STATUSES, when=when)


# -- sessions


def admit(world: Desk, exchange: Exchange) -> None:
    """Finds the caller; a page's is the user of its session."""
    if is_page(exchange) and (header := _credentials(world, exchange)):
        asked = exchange.request
        exchange.request = msgspec.structs.replace(asked, headers=(("authorization", header), *asked.headers))
    wire.admit(world, exchange)


def finish(world: Desk, exchange: Exchange, response: HttpResponse) -> None:
    """Adds the headers of every answer; a refusal of a page becomes a page."""
    if is_page(exchange) and response.status >= 400 and response.header("content-type").startswith("application/json"):
        had = f"{SESSION}=" in exchange.request.header("cookie")
        found = see("/access/login", return_to=here(exchange), expired="1" if had else "")
        if response.status != 401:
            exchange.status = response.status
            found = show(world, exchange, "error", title=words(record(response.json())), home=home(exchange))
        response.status, response.body = found.status, found.body
        response.headers[:] = [pair for pair in response.headers if pair[0] != "content-type"] + found.headers
    wire.finish(world, exchange, response)


def is_page(exchange: Exchange) -> bool:
    """True for the path of a page."""
    return exchange.request.path.strip("/").partition("/")[0] in PATHS


def home(exchange: Exchange) -> str:
    """Returns the page that a caller begins with."""
    caller = exchange.caller
    if caller is None or caller.id is None:
        return "/access/login"
    return "/agent/home" if caller.is_agent else "/hc/requests"


def _account_token(world: Desk) -> str:
    found = select(world.db, tb.Token, "user_id IS NULL ORDER BY id LIMIT 1")
    return found[0].value if found else ""


def _signed(world: Desk, user_id: int, expires: int) -> str:
    text = f"{user_id}.{expires}"
    mark = hmac.new(_account_token(world).encode(), text.encode(), hashlib.sha256).hexdigest()
    return f"{text}.{mark}"


def _credentials(world: Desk, exchange: Exchange) -> str:
    """Returns the header of the API that the cookie of a page stands for; empty without a valid session.

    A session is a signed text in the cookie and no row, so a sign-in leaves no trace in the database.
    """
    cookies = (pair.strip().partition("=") for pair in exchange.request.header("cookie").split(";"))
    value = next((value for name, _, value in cookies if name == SESSION), "")
    user_id, _, rest = value.partition(".")
    expires = rest.partition(".")[0]
    if not (user_id.isdecimal() and expires.isdecimal() and len(user_id) < 19 and len(expires) < 13):
        return ""
    if int(expires) <= world.clock.now or not hmac.compare_digest(value, _signed(world, int(user_id), int(expires))):
        return ""
    user = world.user(int(user_id))
    if user is None or not user.email or not user.active or user.suspended:
        return ""
    return wire.basic(user.email, _account_token(world))


_LOGIN = [
    Field("email", "Email", kind="email", required=True),
    Field("password", "Password", kind="password", required=True),
]


@route("GET", "/", "/agent", who="end")
def begin(world: Desk, exchange: Exchange) -> Any:
    """Sends to the page that the caller begins with."""
    return see(home(exchange))


@route("GET", "/access/login", who="anyone")
def login(world: Desk, exchange: Exchange) -> Any:
    """Shows the form to sign in."""
    notice = "Your session has expired. Sign in again." if "expired" in exchange.query else ""
    return show(world, exchange, "edit", title="Sign in", fields=_LOGIN, buttons=[("", "", "Sign in")], notice=notice)


@route("POST", "/access/login", who="anyone", writes=False)
def enter(world: Desk, exchange: Exchange) -> Any:
    """Signs in with an e-mail and the account's token as password."""
    sent = given(exchange)
    email = one_of(sent, "email").strip().lower()
    known = select(world.db, tb.Token, "value = ? AND user_id IS NULL", one_of(sent, "password"))
    users = select(world.db, tb.User, "email = ? AND active = 1 AND suspended = 0", email)
    if not known or not users:
        exchange.status = 422
        errors = {"password": "Email and password do not match"}
        fields = [_LOGIN[0]._replace(value=email), _LOGIN[1]]
        return show(
            world, exchange, "edit", title="Sign in", fields=fields, buttons=[("", "", "Sign in")], errors=errors
        )
    target = urlsplit(exchange.query.get("return_to", "/"))
    is_own = not target.scheme and not target.netloc and target.path.startswith("/") and "\\" not in target.path
    found = see(target.geturl() if is_own else "/")
    value = _signed(world, users[0].id, int(world.clock.now) + SESSION_S)
    found.headers.append(("set-cookie", f"{SESSION}={value}; Path=/; HttpOnly; SameSite=Lax"))
    return found


@route("POST", "/access/logout", who="anyone", writes=False)
def leave(world: Desk, exchange: Exchange) -> Any:
    """Signs out."""
    found = see("/access/login")
    found.headers.append(("set-cookie", f"{SESSION}=; Path=/; Max-Age=0"))
    return found
