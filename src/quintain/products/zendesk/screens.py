"""What all pages share: sessions, forms as rows of fields, tables, and errors as pages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlencode

from quintain.resources.web import Exchange, HttpResponse, Refuse, Routes
from quintain.resources.web.html import Templates, form
from quintain.resources.web.rows import insert, marks, select

from . import tables as tb
from .account import Conflict, Desk, Invalid, record

ROUTES = Routes()
route = ROUTES.route
SESSION = "session"
"""Name of the cookie whose value is a token of the user."""
ROWS = 30
"""Rows of a table on one page."""
STATUSES = {"new": "New", "open": "Open", "pending": "Pending", "hold": "On-hold", "solved": "Solved", "closed": "Closed"}
CHOICES = {
    "priority": [("", "-"), *((one, one.capitalize()) for one in tb.PRIORITIES)],
    "type": [("", "-"), *((one, one.capitalize()) for one in tb.TYPES)],
}


class Field(NamedTuple):
    """Field of a form.

    Attributes:
        name: Name under which it is sent.
        label: Its visible name.
        value: What it holds; of `choice` the value of the chosen option, of `choices` a list.
        kind: A type of HTML inputs, or area, choice, choices.
        options: Values and texts to choose from.
        required: True if it may not be empty.
    """

    name: str
    label: str
    value: Any = ""
    kind: str = "text"
    options: Iterable[tuple[str, str]] = ()
    required: bool = False


class Table(NamedTuple):
    """Table of a page.

    Attributes:
        caption: Its name.
        heads: Titles of the columns, and addresses that sort by them.
        rows: For each row its key, and texts or pairs of a text and an address.
        pages: Addresses of the pages before and after.
        select: What a key names, if rows can be chosen.
    """

    caption: str
    heads: list[tuple[str, str]]
    rows: list[tuple[Any, list[Any]]]
    pages: tuple[str, str] = ("", "")
    select: str = ""


TEMPLATES = Templates("quintain.products.zendesk", statuses=STATUSES)


def show(world: Desk, exchange: Exchange, template: str, **values: Any) -> HttpResponse:
    """Returns a page."""
    caller = exchange.caller
    shared = {"caller": caller, "path": exchange.request.path, "subdomain": world.subdomain, "errors": {}, "notice": ""}
    status = exchange.status or 200
    return TEMPLATES.answer(f"{template}.html", status=status, **(shared | values))


def see(path: str, **query: Any) -> HttpResponse:
    """Returns the answer that sends the browser to another page."""
    text = urlencode({name: value for name, value in query.items() if value})
    return HttpResponse(303, b"", [("location", f"{path}?{text}" if text else path)])


def sent(exchange: Exchange) -> dict[str, Any]:
    """Returns the fields of a form, each with its last value."""
    return {name: values[-1] for name, values in form(exchange.request).items()}


def tried(world: Desk, exchange: Exchange, act: Callable[[], Any]) -> dict[str, str]:
    """Runs what a form asks for; returns what is wrong by field, after which nothing was changed."""
    try:
        with world.db.transaction():
            act()
    except Conflict as error:
        exchange.status = 409
        return {"base": str(error)}
    except (Invalid, Refuse) as error:
        given: Mapping[str, Any] = error.details if isinstance(error, Invalid) else record(record(error.body).get("details"))
        if not given:
            raise
        exchange.status = 422
        return {name: " ".join(one["description"] for one in some) for name, some in given.items()}
    return {}


def names(world: Desk, table: str, ids: Iterable[int | None]) -> dict[int | None, str]:
    """Returns the names of rows by their keys."""
    wanted = [one for one in {*ids} if one is not None]
    sql = f"SELECT id, name FROM {table} WHERE id IN ({marks(wanted)})"
    return dict(cast(list[tuple[int, str]], world.db.execute(sql, *wanted))) if wanted else {}


def when(text: str | None) -> str:
    """Returns a time as pages show it."""
    return f"{text[:10]} {text[11:16]}" if text else ""


# -- sessions


def sign_in(world: Desk, email: str) -> str:
    """Returns the value of the cookie `session` for a new session of a user."""
    user = select(world.db, tb.User, "email = ? AND active = 1", email.strip().lower())[0]
    value = hashlib.blake2b(f"s{world.new_number()}".encode(), digest_size=16).hexdigest()
    insert(world.db, tb.Token(id=world.new_number(), value=value, user_id=user.id, scopes="read write"))
    return value


def credentials(exchange: Exchange) -> str:
    """Returns the header that the cookie of a page stands for."""
    pairs = (pair.strip().partition("=") for pair in exchange.request.header("cookie").split(";"))
    value = next((value for name, _, value in pairs if name == SESSION), "")
    return f"Bearer {value}" if value else ""


def as_page(world: Desk, exchange: Exchange, response: HttpResponse) -> None:
    """Makes a page of a refusal; who is not signed in is sent to sign in."""
    if response.status == 401:
        found = see("/access/login", return_to=exchange.request.path)
    else:
        exchange.status = response.status
        words = "The page does not exist" if response.status == 404 else "You may not do this"
        if response.status not in {403, 404}:
            words = str(response.json().get("description") or response.json().get("error"))
        found = show(world, exchange, "error", title=words, home=home(exchange))
    response.status, response.body, response.headers = found.status, found.body, found.headers


def home(exchange: Exchange) -> str:
    """Returns the page that a caller begins with."""
    caller = exchange.caller
    return "/access/login" if caller is None or caller.id is None else "/agent" if caller.is_agent else "/hc/requests"


_LOGIN = (Field("email", "Email", kind="email", required=True), Field("password", "Password", kind="password", required=True))


@route("GET", "/", who="end")
def begin(world: Desk, exchange: Exchange) -> Any:
    """Sends to the page that the caller begins with."""
    return see(home(exchange))


@route("GET", "/access/login", who="anyone")
def login(world: Desk, exchange: Exchange) -> Any:
    """Shows the form to sign in."""
    return show(world, exchange, "edit", title="Sign in", fields=_LOGIN, button="Sign in", table=None)


@route("POST", "/access/login", who="anyone")
def enter(world: Desk, exchange: Exchange) -> Any:
    """Signs in with an e-mail and the account's token as password."""
    given = sent(exchange)
    email = str(given.get("email", "")).strip().lower()
    known = select(world.db, tb.Token, "value = ? AND user_id IS NULL", str(given.get("password", "")))
    if not known or not select(world.db, tb.User, "email = ? AND active = 1 AND suspended = 0", email):
        exchange.status = 401
        errors = {"password": "Email and password do not match"}
        fields = (_LOGIN[0]._replace(value=email), _LOGIN[1])
        exchange.status = 422
        return show(world, exchange, "edit", title="Sign in", fields=fields, button="Sign in", errors=errors, table=None)
    target = exchange.query.get("return_to", "/")
    found = see(target if target.startswith("/") and not target.startswith("//") else "/")
    cookie = f"{SESSION}={quote(sign_in(world, email))}; Path=/; HttpOnly; SameSite=Lax"
    found.headers.append(("set-cookie", cookie))
    return found


@route("POST", "/access/logout", who="end")
def leave(world: Desk, exchange: Exchange) -> Any:
    """Signs out."""
    value = credentials(exchange).removeprefix("Bearer ")
    world.db.execute("DELETE FROM zd_tokens WHERE value = ? AND user_id IS NOT NULL", value)
    found = see("/access/login")
    found.headers.append(("set-cookie", f"{SESSION}=; Path=/; Max-Age=0"))
    return found
