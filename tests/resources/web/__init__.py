"""A small product, which shows that the kit knows of no other."""

from __future__ import annotations

from typing import Any, ClassVar

from quintain.resources.database import Database
from quintain.resources.web import (
    TABLES,
    Exchange,
    HttpTool,
    Listing,
    Product,
    Refuse,
    ResourceSpec,
    Routes,
    WebRow,
    cursor_page,
    offset_page,
    route_tools,
)

ROUTES = Routes()


class Book(WebRow, kw_only=True):
    """A book."""

    hidden: ClassVar[tuple[str, ...]] = ("secret",)

    title: str
    pages: int = 0
    tags: list[str] = []
    lent: bool = False
    secret: str = "s"
    created_at: str = ""


class LibraryStyle:
    """Conventions of the library's answers."""

    def page(
        self, world: Any, exchange: Exchange, listing: Listing, /, *, key: str, sortable: tuple[str, ...]
    ) -> dict[str, Any]:
        size = int(exchange.query.get("size", 2))
        if "after" in exchange.query or "before" in exchange.query:
            after, before = (
                [int(exchange.query[name])] if name in exchange.query else None for name in ("after", "before")
            )
            found = cursor_page(world.db, listing, size=size, after=after, before=before)
            return {key: found.rows, "more": found.has_more, "first": found.first, "last": found.last}
        rows, total = offset_page(world.db, listing, page=int(exchange.query.get("page", 1)), size=size)
        return {key: rows, "total": total}

    def missing(self) -> Refuse:
        return Refuse(404, {"error": "missing"})

    def invalid(self, details: dict[str, list[tuple[str, str]]]) -> Refuse:
        return Refuse(422, details)

    def many(self, exchange: Exchange, /, *, noun: str) -> list[int]:
        return [int(one) for one in exchange.query["ids"].split(",")]

    def job(self, world: Any, exchange: Exchange, kind: str, /, *, items: list[Any]) -> Any:
        return {"job": world.start_job("J1", kind, items, caller=1).id}


BOOKS = ResourceSpec(
    name="book",
    row=Book,
    path="/books",
    style=LibraryStyle(),
    verbs=("list", "show", "create", "update", "delete", "count", "show_many", "create_many"),
    writable=("title", "pages", "tags", "lent"),
    required=("title",),
    unique=("title",),
)
BOOKS.mount(ROUTES)


@ROUTES.route("POST", "/spoil")
def spoil(world: Any, exchange: Exchange) -> Any:
    """Writes, and refuses."""
    BOOKS.create(world, exchange, {"title": "Spoilt"})
    world.later(1, "note", 7)
    raise Refuse(409, {"error": "spoilt"}, {"x-why": "test"})


@ROUTES.route("POST", "/bug")
def bug(world: Any, exchange: Exchange) -> Any:
    """Breaks."""
    BOOKS.create(world, exchange, {"title": "Half"})
    raise ZeroDivisionError("a bug")


@ROUTES.route("POST", "/later")
def later(world: Any, exchange: Exchange) -> Any:
    """Sets actions that are due later."""
    for seconds, number in ((20, 2), (10, 1), (20, 3)):
        world.later(seconds, "note", number, key="k" if number == 3 else "")
    if "cancel" in exchange.query:
        world.cancel("k")
    return {}


@ROUTES.route("GET", "/limited")
def limited(world: Any, exchange: Exchange) -> Any:
    """Counts requests."""
    remaining, reset = world.throttle.take("all", 2, period_s=60, now=world.clock.now)
    if remaining < 0:
        world.throttle.waits[exchange.request.header("authorization")] = world.clock.now + reset
        raise Refuse(429, {}, {"retry-after": str(reset)})
    return {"left": remaining}


def _create_book(world: Any, caller: int, index: int, item: dict[str, Any]) -> dict[str, Any]:
    exchange = Exchange(None, "", {})  # type: ignore[arg-type]
    return {"index": index, "id": BOOKS.create(world, exchange, item).id}


SHELF = route_tools(
    ROUTES,
    {"book_show": ("GET", "/books/{id}"), "book_create": ("POST", "/books"), "set_later": ("POST", "/later")},
    host="a.shop.localhost",
)


class Library(SHELF, HttpTool):  # type: ignore[misc, valid-type]
    """A world of one product."""

    product: ClassVar[Product] = Product(
        name="shop",
        routes=ROUTES,
        admit=lambda world, exchange: None,
        finish=lambda world, exchange, response: response.headers.append(("x-seen", exchange.request.path)),
        unknown=lambda world, exchange: Refuse(404, {"error": "no such path"}),
        stranger=Refuse(401, {"error": "who?"}),
        translate=lambda error: None,
        acts={"note": lambda world, number: world.notes.append([world.clock.now, number])},
        workers={"create books": _create_book},
        trouble=lambda world, exchange, kind: Refuse(503, {"error": kind}),
    )

    notes: list[list[float]] = []


def library() -> Library:
    """Returns a world without books."""
    return Library(db=Database(*TABLES, Book))
