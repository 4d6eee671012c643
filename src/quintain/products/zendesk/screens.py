"""Parts that all pages share: sessions, calls of the API, forms as lists of fields, tables, and errors as pages."""

from __future__ import annotations

import functools
import hmac
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from markupsafe import Markup

from quintain.resources.database.standing import known
from quintain.resources.web import Exchange, HttpRequest, HttpResponse, Refuse, Routes, answer
from quintain.resources.web.html import Templates, form
from quintain.resources.web.look import Look
from quintain.resources.web.rows import select

from . import tables as tb
from . import wire
from .account import Conflict, Desk, Invalid, record, whole_number

ROUTES = Routes()
route = ROUTES.route
SESSION = "session"
"""Name of the cookie that a sign-in sets."""
SESSION_S = 8 * 3600
"""Seconds of the world for which a session lasts."""
STATUSES = {one: "On-hold" if one == "hold" else one.capitalize() for one in tb.STATUSES}
_PATHS = ("agent", "admin", "hc", "access", "")
"""First parts of the paths of pages."""
_AGENT_PAGES = (
    ("/agent/home", "Home"), ("/agent/filters", "Views"), ("/agent/users", "Customers"),
    ("/agent/organizations", "Organizations"), ("/agent/reports", "Reporting"), ("/admin", "Admin Center"),
    ("/agent/tickets/new", "Add ticket"), ("/agent/users/new", "Add user"),
    ("/agent/organizations/new", "Add organization"),
)  # fmt: skip
_CUSTOMER_PAGES = (("/hc/requests", "My requests"), ("/hc/requests/new", "Submit a request"))
Pairs = list[tuple[str, str]]
Sent = dict[str, list[Any]]
"""What a form sent: the values of each name, texts or (file name, type, bytes)."""
Faults = dict[str, str]
"""Error messages of a form by field."""


# -- forms and tables


class FormField(NamedTuple):
    """FormField of a form.

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
    options: tuple[tuple[str, str], ...] = ()
    required: bool = False

    @property
    def shown(self) -> Any:
        """The value as a browser sends it back."""
        if self.kind in {"checkbox", "choices"}:
            return bool(self.value) if self.kind == "checkbox" else [str(one) for one in self.value or ()]
        text = "" if self.value is None else str(self.value).replace("\r\n", "\n")
        return text if self.kind == "area" else text.replace("\n", "")

    def taken(self, sent: Sent) -> Any:
        """Returns the value that a form sent; the one that is shown if it sent none."""
        some = sent.get(self.name)
        if not some:
            return self.shown
        if self.kind in {"checkbox", "choices"}:  # A hidden field before them says that the form has them.
            return bool(some[-1]) if self.kind == "checkbox" else [one for one in some if one]
        return some[-1]


def pick(name: str, label: str, value: Any, *, options: Iterable[tuple[str, str]]) -> FormField:
    """Returns a field with one of several options; the present value is always one of them."""
    text, known = "" if value is None else str(value), (*options,)
    return FormField(name, label, text, "choice", known if text in dict(known) else ((text, text or "-"), *known))


def changed(fields: list[FormField], sent: Sent) -> dict[str, Any]:
    """Returns the values that a form sent where they are not those that its page showed."""
    return {one.name: value for one in fields if (value := one.taken(sent)) != one.shown}


def filled(fields: list[FormField], sent: Sent) -> list[FormField]:
    """Returns fields with the values that a form sent."""
    return [one._replace(value=one.taken(sent)) if one.name in sent else one for one in fields]


def sent_by(exchange: Exchange) -> Sent:
    """Returns what the form of a page sent, in the body or in the address; only `file` holds files."""
    found: Sent = {}
    for name, value in exchange.request.query if exchange.request.method == "GET" else ():
        found.setdefault(name, []).append(value.replace("\r\n", "\n"))
    for name, values in (form(exchange.request) if exchange.request.method == "POST" else {}).items():
        found[name] = [one for one in values if isinstance(one, str) or name == "file"]
    return found


def text_of(sent: Sent, name: str) -> str:
    """Returns the text of a field that a form sent; empty if it sent none."""
    values = sent.get(name)
    return str(values[-1]) if values else ""


def number_of(sent: Sent, name: str) -> int | None:
    """Returns the number in a field that a form sent; None if there is none."""
    return whole_number(text_of(sent, name))


class PageTable(NamedTuple):
    """PageTable of a page.

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

    def arranged(self, look: Look) -> PageTable:
        """Returns the table with its columns in the order of a look."""
        rows = [(key, look.arranged(cells)) for key, cells in self.rows]
        return self._replace(heads=look.arranged(self.heads), rows=rows)


def when(text: str | None) -> str:
    """Returns a time as pages show it."""
    return f"{text[:10]} {text[11:16]}" if text else ""


def drawn(field: FormField, errors: Faults, form: str) -> Markup:
    """Returns a field in HTML. Page after page has the same lists."""
    shown = field.shown
    return _drawn(field._replace(value=(*shown,) if isinstance(shown, list) else shown), errors.get(field.name), form)


@functools.lru_cache(maxsize=1024)
def _drawn(field: FormField, fault: str | None, form: str) -> Markup:
    chosen = field.value if field.kind == "choices" else (field.value,)
    return _TEMPLATES.part("field.html", field=field, shown=field.value, chosen=chosen, fault=fault, form=form)


def fields_of(fields: list[FormField], errors: Faults, form: str = "") -> Markup:
    """Returns fields in HTML, one after the other."""
    return Markup("".join(f"{drawn(one, errors, form)}\n" for one in fields))  # noqa: S704 (drawn is escaped)


def header(caller: wire.Caller | None, path: str, *, subdomain: str, query: str) -> Markup:
    """Returns the header of a page. Page after page has the same."""
    if caller is None or caller.id is None:
        return _header("", subdomain, is_agent=False, pages=(), path="", query="")
    pages = _AGENT_PAGES if caller.is_agent else _CUSTOMER_PAGES
    path = path if path in dict(pages) else ""
    return _header(caller.name, subdomain, is_agent=caller.is_agent, pages=pages, path=path, query=query)


@functools.lru_cache(maxsize=256)
def _header(user: str, subdomain: str, **values: Any) -> Markup:
    return _TEMPLATES.part("header.html", user=user, subdomain=subdomain, **values)


_TEMPLATES = Templates(
    "quintain.products.zendesk", statuses=STATUSES, when=when, drawn=drawn, fields_of=fields_of, header=header
)


def show(
    world: Desk, exchange: Exchange, template: str, *, errors: Faults | None = None, **values: Any
) -> HttpResponse:
    """Returns a page."""
    look, tables = world.look, values.pop("tables", [])
    shared: tb.Json = {
        "caller": exchange.caller, "path": exchange.request.path, "subdomain": world.subdomain, "look": look,
        "notice": "Saved" if "saved" in exchange.query else "", "errors": errors or {}, "links": [], "add": "",
        "tables": [one.arranged(look) for one in tables] if look.moved else tables,
    }  # fmt: skip
    page = _TEMPLATES.answer(f"{template}.html", status=exchange.status or 200, **(shared | values))
    if look.labels:
        page.body = look.renamed(page.body.decode()).encode()
    return page


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
    before = here(exchange, page=page - 1) if found.get("previous_page") else ""
    return before, here(exchange, page=page + 1) if found.get("next_page") else ""


# -- what pages ask


def api(world: Desk, exchange: Exchange, call: str, /, *, body: Any = None, kind: str = "", **query: Any) -> Any:
    """Runs a route of the API, such as `GET tickets/1`, for the caller of a page; returns the JSON of its answer.

    Raises:
        Refuse: The caller may not do this, or the route refuses.
        Invalid: A field is invalid.
        Conflict: The stamp of a safe update is an older one.
    """
    method, _, path = call.partition(" ")
    texts = {name: str(value) for name, value in query.items()}
    data = body if isinstance(body, bytes) else msgspec.json.encode(body or {})
    headers = (("content-type", kind),)
    asked = HttpRequest(method, f"/api/v2/{path}", exchange.request.host, tuple(texts.items()), headers, data)
    found = world.product_of(asked.host).routes.find(method, asked.path)
    assert found is not None, f"the API has no {call}"
    wire.permit(exchange.caller, found[0])
    inner = Exchange(asked, exchange.base, texts, found[1], exchange.caller, route=found[0])
    response = answer(found[0].handler(world, inner))
    return response.json() if response.body else None


def tried(world: Desk, exchange: Exchange, act: Callable[[], Any]) -> tuple[Faults, Any]:
    """Runs the act of a form; returns its faults by field, after which nothing was changed, or its result."""
    try:
        with world.db.transaction():
            return {}, act()
    except Conflict as error:
        exchange.status = 409
        return {"base": str(error)}, None
    except Invalid as error:
        exchange.status, details = 422, error.details
    except Refuse as error:
        if error.status in {401, 403, 404}:
            raise
        exchange.status, details = error.status, record(record(error.body).get("details"))
        if not details:
            return {"base": _words(record(error.body))}, None
    return {name: " ".join(one["description"] for one in some) for name, some in details.items()}, None


def _words(body: tb.Json) -> str:
    """Returns the words of a refusal."""
    error = body.get("error")
    return str(body.get("description") or record(error).get("message") or body.get("message") or error or "Not found")


def options(world: Desk, sql: str, *values: Any) -> Pairs:
    """Returns keys and names as options of a field."""
    found = world.db.execute(sql, *values) if values else known(world.db, sql)
    return [(str(key), str(name)) for key, name in found]


# -- sessions


def admit(world: Desk, exchange: Exchange) -> None:
    """Finds the caller; a page's is the user of its session."""
    if _is_page(exchange) and (header := _credentials(world, exchange)):
        asked = exchange.request
        exchange.request = msgspec.structs.replace(asked, headers=(("authorization", header), *asked.headers))
    wire.admit(world, exchange)


def finish(world: Desk, exchange: Exchange, response: HttpResponse) -> None:
    """Adds the headers of every answer; a refusal of a page becomes a page."""
    if response.status >= 400 and _is_page(exchange) and response.header("content-type").startswith("application/json"):
        expired = "1" if f"{SESSION}=" in exchange.request.header("cookie") else ""
        found = see("/access/login", return_to=here(exchange), expired=expired)
        if response.status != 401:
            exchange.status = response.status
            found = show(world, exchange, "error", title=_words(record(response.json())), home=_home(exchange))
        response.status, response.body = found.status, found.body
        response.headers[:] = [pair for pair in response.headers if pair[0] != "content-type"] + found.headers
    wire.finish(world, exchange, response)


def _is_page(exchange: Exchange) -> bool:
    return exchange.request.path.strip("/").partition("/")[0] in _PATHS


def _home(exchange: Exchange) -> str:
    caller = exchange.caller
    if caller is None or caller.id is None:
        return "/access/login"
    return "/agent/home" if caller.is_agent else "/hc/requests"


def _token(world: Desk) -> str:
    found = select(world.db, tb.Token, "user_id IS NULL ORDER BY id LIMIT 1")
    return found[0].value if found else ""


def _signed(world: Desk, user_id: int, expires: int) -> str:
    text = f"{user_id}.{expires}"
    return f"{text}.{hmac.digest(_token(world).encode(), text.encode(), 'sha256').hex()}"


def _credentials(world: Desk, exchange: Exchange) -> str:
    """Returns the header of the API that the cookie of a page stands for; empty without a valid session.

    A session is a signed text in the cookie and no row, so a sign-in leaves no trace in the database.
    """
    cookies = (pair.strip().partition("=") for pair in exchange.request.header("cookie").split(";"))
    value = next((value for name, _, value in cookies if name == SESSION), "")
    user_id, expires, *_ = (whole_number(one) for one in (*value.split("."), "", ""))
    if user_id is None or expires is None or expires <= world.clock.now:
        return ""
    user = world.user(user_id)
    if user is None or not user.email or not user.active or user.suspended:
        return ""
    is_ours = hmac.compare_digest(value.encode(), _signed(world, user_id, expires).encode())
    return wire.basic(user.email, _token(world)) if is_ours else ""


@route("GET", "/", "/agent", who="end")
def begin(world: Desk, exchange: Exchange) -> Any:
    """Sends to the page that the caller begins with."""
    return see(_home(exchange))


@route("GET", "/access/login", who="anyone")
def login(world: Desk, exchange: Exchange, errors: Faults | None = None) -> Any:
    """Shows the form to sign in."""
    notice = "Your session has expired. Sign in again." if "expired" in exchange.query and not errors else ""
    fields = [FormField("email", "Email", text_of(sent_by(exchange), "email"), "email", required=True),
              FormField("password", "Password", kind="password", required=True)]  # fmt: skip
    return show(world, exchange, "edit", title="Sign in", fields=fields, buttons=[("", "", "Sign in")], notice=notice,
                errors=errors)  # fmt: skip


@route("POST", "/access/login", who="anyone", writes=False)
def enter(world: Desk, exchange: Exchange) -> Any:
    """Signs in with an e-mail and the account's token as password."""
    sent = sent_by(exchange)
    email = text_of(sent, "email").strip().lower()
    known = select(world.db, tb.Token, "value = ? AND user_id IS NULL", text_of(sent, "password"))
    users = select(world.db, tb.User, "email = ? AND active = 1 AND suspended = 0", email)
    if not known or not users:
        exchange.status = 422
        return login(world, exchange, {"password": "Email and password do not match"})
    target = urlsplit(exchange.query.get("return_to", "/"))
    is_own = not target.scheme and not target.netloc and target.path.startswith("/") and "\\" not in target.path
    found = see(target.geturl() if is_own else "/")
    value = _signed(world, users[0].id, int(world.clock.now) + SESSION_S)
    found.headers.append(("set-cookie", f"{SESSION}={value}; Path=/; HttpOnly; SameSite=Lax"))
    return found


@route("POST", "/access/logout", who="anyone", writes=False)
def leave(world: Desk, exchange: Exchange) -> Any:
    """Ends the session of the caller."""
    found = see("/access/login")
    found.headers.append(("set-cookie", f"{SESSION}=; Path=/; Max-Age=0"))
    return found
