"""`Web`: a world of products that answer requests, with one database, one clock and one transaction per request.

What a product does later is a row of `Due`, written in the transaction of the request that asked for it, so that a
refused request leaves nothing behind. One timer in the clock stands for all rows.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Annotated, Any, ClassVar, cast

import msgspec

import quintain as qn
from quintain.resources.database import Database, Indexed
from quintain.resources.database.lease import Use

from .messages import MOST_ADDRESS, HttpRequest, HttpResponse, Refuse, answer, too_large
from .noise import QUIET, REFUSALS, Met, Noise
from .rates import Rates
from .routes import Route, Routes
from .rows import T, WebRow, delete, find, insert, select, update

ID_STEP = 128
"""Distance of the identifiers made in one request."""
ID_GAP = 1_933_312
"""Further distance of the first identifier of a request from those before; a multiple of the step."""
MOST_ACTS = 100_000
"""Actions that may be due at one moment; more are a loop."""
MOST_NODES = 1_000_000
"""Objects and lists in a JSON body: ten million empty lists would take seconds to read."""
ITEM_S = 0.02
"""Seconds of the world that a background job takes for one item."""


class Due(WebRow):
    """A call of the world that is to be made.

    Attributes:
        due: Seconds since epoch.
        act: Name of the action in the product's `acts`.
        argument: Number of the row that the action is about.
        key: Name under which it can be cancelled.
    """

    __table__: ClassVar[str] = "web_due"

    due: Annotated[float, Indexed()]
    act: str
    argument: int | None = None
    key: Annotated[str, Indexed()] = ""


class BackgroundJob(WebRow):
    """A job that works on one item after the other.

    Attributes:
        name: Identifier in answers.
        kind: Name of the function in the product's `workers`.
        caller: Identifier of the user who started it.
        total: Number of items.
        done: Number of items that are finished.
        status: queued, working or completed.
        results: Results so far.
        ended: Time of completion.
    """

    __table__: ClassVar[str] = "web_jobs"

    name: Annotated[str, Indexed()]
    kind: str
    caller: int
    total: int
    done: int = 0
    status: str = "queued"
    results: list[Any] = []
    ended: float | None = None


class JobItem(WebRow):
    """Argument of one item of a job, until the job has worked on it; its identifier follows that of the job."""

    __table__: ClassVar[str] = "web_items"

    item: dict[str, Any]


TABLES: tuple[type[WebRow], ...] = (Due, BackgroundJob, JobItem)
"""Tables that every product needs."""


@dataclass(eq=False)
class Exchange:
    """A request while it is handled.

    Attributes:
        request: The request.
        base: Scheme and host, for links in the answer.
        query: Names and values of the query; of a name that comes twice, the last.
        params: Values of the path's parameters.
        caller: The product's description of the caller.
        headers: Headers that the answer gets.
        route: The route that was found.
        status: Status of the answer if it is not the route's; 0 otherwise.
    """

    request: HttpRequest
    base: str
    query: dict[str, str]
    params: tuple[str, ...] = ()
    caller: Any = None
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    route: Route | None = None
    status: int = 0

    @property
    def id(self) -> int:
        """First parameter of the path, as a number; beyond 63 bits it is -1, which no row has."""
        number = int(self.params[0])
        return number if number < 2**63 else -1

    @functools.cached_property
    def json(self) -> dict[str, Any]:
        """Body as a JSON object.

        Raises:
            Refuse: The body is not a JSON object, or has too many parts.
        """
        body = self.request.body
        if len(body) > MOST_NODES and body.count(b"[") + body.count(b"{") > MOST_NODES:
            raise too_large(f"At most {MOST_NODES} objects and lists")
        try:
            return msgspec.json.decode(body.strip() or b"{}", type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as error:
            words = f"Server could not parse JSON: {error}"
            raise Refuse(422, {"error": "Unprocessable Entity", "message": words}) from error

    def part(self, name: str) -> dict[str, Any]:
        """Returns an object in the JSON body; an empty one if it is missing.

        Raises:
            Refuse: It is not an object.
        """
        value = self.json.get(name)
        if value is not None and not isinstance(value, dict):
            raise Refuse(422, {"error": "Unprocessable Entity", "message": f"{name} is not an object"})
        return cast(dict[str, Any], value or {})


@dataclass(frozen=True)
class Product:
    """A product as the world serves it.

    Attributes:
        name: Name of the product; also the part of the host that names it, as in `acme.<name>.localhost`.
        routes: Routes of API and pages.
        admit: Finds the caller and checks limits, or raises Refuse.
        finish: Adds headers to every answer.
        unknown: Returns the refusal of a path without a route.
        stranger: Refusal of a request that no world is for.
        translate: Returns the refusal that an error of the product's rules means; None for a bug.
        acts: Functions that `Due` rows name; each receives the world and the argument.
        workers: Functions that work on an item of a job: world, caller, index and item to a result.
        trouble: Returns the refusal of a request by planned trouble of a kind; None if it cannot meet such.
    """

    name: str
    routes: Routes
    admit: Callable[[Any, Exchange], None]
    finish: Callable[[Any, Exchange, HttpResponse], None]
    unknown: Callable[[Any, Exchange], Refuse]
    stranger: Refuse
    translate: Callable[[Exception], Refuse | None]
    acts: Mapping[str, Callable[[Any, Any], None]]
    workers: Mapping[str, Callable[..., dict[str, Any]]]
    trouble: Callable[[Any, Exchange, str], Refuse | None]


class Web(qn.State):
    """A world of products. A subclass names its `product` and adds fields.

    Attributes:
        db: Tables of all products.
        step_s: Seconds of the world that a request takes, before it is handled.
        throttle: Rate limits and what is counted of them.
        last_id: Identifier that was given last.
        alarm: Number of the timer in the clock; 0 if none is set.
        is_armed: False while rows may be due that this timer does not stand for.
        due: Time of that timer.
        noise: Trouble that is planned.
        met: What has been met of it.
    """

    product: ClassVar[Product]

    db: Database
    step_s: float = 1.0
    throttle: Rates = msgspec.field(default_factory=Rates)
    last_id: int = 33_144_692_244_371
    alarm: int = 0
    is_armed: bool = True
    due: float = math.inf
    noise: Noise = QUIET
    met: Met = msgspec.field(default_factory=Met)

    def respond(self, asked: HttpRequest) -> HttpResponse:
        """Handles one request.

        Raises:
            Exception: Any but Refuse is a bug of the world.
        """
        product = self.product_of(asked.host)
        self.pass_time(asked)
        self.last_id += ID_GAP
        exchange = Exchange(asked, f"http://{asked.host or product.name + '.localhost'}", dict(asked.query))
        try:
            response = self._handled(product, exchange)
        except Exception as error:
            refusal = error if isinstance(error, Refuse) else product.translate(error)
            if refusal is None:
                raise
            response = refusal.response()
        product.finish(self, exchange, response)
        return response

    def _handled(self, product: Product, exchange: Exchange) -> HttpResponse:
        asked = exchange.request
        size = len(asked.path)
        for name, value in asked.query:
            size += len(name) + len(value)
        if size > MOST_ADDRESS:
            raise too_large(f"At most {MOST_ADDRESS} characters", 414)
        found = product.routes.find(asked.method, asked.path.removesuffix(".json"))
        if found is not None:
            exchange.route, exchange.params = found
        route = exchange.route
        is_writing = route is not None and route.writes
        # A read takes the connection once for all its statements, without a transaction.
        with self.db.transaction() if is_writing else Use(self.db):
            product.admit(self, exchange)
            if route is None:
                raise product.unknown(self, exchange)
            if self.noise != QUIET:
                self._trouble(product, exchange)
            body = route.handler(self, exchange)
        if not self.is_armed:
            self.arm()
        return answer(body, exchange.status or route.status)

    def _trouble(self, product: Product, exchange: Exchange) -> None:
        """Refuses a request if that is planned, but never two in a row."""
        kinds = [kind for kind in REFUSALS if self.met.next(self.noise, kind)]
        found = product.trouble(self, exchange, kinds[0]) if kinds and not self.met.refused else None
        self.met.refused, self.met.unshown = found is not None, kinds[0] if found is not None else ""
        if found is not None:
            raise found

    def product_of(self, host: str) -> Product:
        """Returns the product that a host names; the first one if it names none."""
        found = _products(type(self))
        return found[0] if len(found) == 1 else next((one for one in found if f"{one.name}." in host), found[0])

    def new_number(self) -> int:
        """Returns the next identifier of 14 digits."""
        number = self.last_id + ID_STEP
        msgspec.Struct.__setattr__(self, "last_id", number)  # Without a State's look at parts, which a number has none.
        return number

    def put(self, kind: type[T], /, **fields: Any) -> T:
        """Inserts a row whose columns are `fields`; it gets the next identifier, and its times are now."""
        stamps = {name: self.now for name in ("created_at", "updated_at") if name in kind.__struct_fields__}
        row = kind(id=self.new_number(), **(stamps | fields))
        insert(self.db, row)
        return row

    # -- time

    @property
    def now(self) -> str:
        """Present time as rows hold it."""
        return moment(self.shared.clock.now)

    def pass_time(self, asked: HttpRequest) -> None:
        """Advances the clock: to the request's own moment, or by a step, or by the wait that was asked for."""
        now = self.clock.now
        if asked.moment is not None:
            self.clock.advance(max(0.0, asked.moment - now))
            return
        waits, until = self.throttle.waits, 0.0
        if waits:
            until = waits.pop(asked.header("authorization"), 0.0)
        self.clock.advance(max(self.step_s, until - now))

    def later(self, seconds: float, act: str, argument: int | None = None, *, key: str = "") -> None:
        """Runs an action of a product in `seconds`."""
        self.at(self.clock.now + seconds, act, argument, key=key)

    def at(self, due: float, act: str, argument: int | None = None, *, key: str = "") -> None:
        """Runs an action of a product at a moment, which is now if it has passed."""
        self.is_armed = False
        ((number,),) = self.db.execute("SELECT coalesce(max(id), 0) + 1 FROM web_due")
        insert(self.db, Due(id=number, due=max(due, self.clock.now), act=act, argument=argument, key=key))

    def cancel(self, key: str) -> None:
        """Removes the actions of this key that are still to be run."""
        self.is_armed = False
        self.db.execute("DELETE FROM web_due WHERE key = ?", key)

    def arm(self) -> None:
        """Sets the timer in the clock to the first row that is due. Call it after a transaction that set one."""
        found = self.db.execute("SELECT due FROM web_due ORDER BY due LIMIT 1")
        due, self.is_armed = float(found[0][0]) if found else math.inf, True
        if due == self.due:
            return
        if self.alarm:
            self.clock.cancel(self.alarm)
        self.alarm = self.clock.at(max(due, self.clock.now), self.wake) if due < math.inf else 0
        self.due = due

    def wake(self) -> None:
        """Runs what is due, in order of time and insertion. The clock calls it."""
        self.alarm, self.due = 0, math.inf
        ran = 0
        while found := select(self.db, Due, "due <= ? ORDER BY due, id LIMIT 1", self.clock.now):
            ran += 1
            if ran > MOST_ACTS:
                raise RuntimeError(f"{MOST_ACTS:,} actions are due at one moment, the last of them {found[0].act!r}")
            with self.db.transaction():
                self.db.execute("DELETE FROM web_due WHERE id = ?", found[0].id)
                acts = [Web._work] if found[0].act == "job" else [
                    one.acts[found[0].act] for one in _products(type(self)) if found[0].act in one.acts]  # fmt: skip
                if not acts:
                    raise KeyError(f"no product of this world has an act {found[0].act!r}")
                acts[0](self, found[0].argument)
        self.arm()

    # -- jobs

    def start_job(self, name: str, kind: str, items: list[Any], *, caller: int) -> BackgroundJob:
        """Starts a job that works on one item after the other, `ITEM_S` each; there are fewer than `ID_STEP`."""
        assert len(items) < ID_STEP, f"a job of {len(items)} items"
        job = self.put(BackgroundJob, name=name, kind=kind, caller=caller, total=len(items))
        insert(self.db, *(JobItem(id=job.id + number, item=item) for number, item in enumerate(items, 1)))
        self.later(self.step_s + ITEM_S, "job", job.id)
        return job

    def _work(self, number: Any) -> None:
        job = find(self.db, BackgroundJob, number)
        assert job is not None, "a job is never deleted"
        worker = next(one.workers[job.kind] for one in _products(type(self)) if job.kind in one.workers)
        results = [*job.results]
        for one in select(self.db, JobItem, "id = ?", job.id + job.done + 1):
            results.append(worker(self, job.caller, job.done, item=one.item))
            delete(self.db, JobItem, "id = ?", one.id)
        is_over = len(results) >= job.total
        update(self.db, job, done=len(results), results=results, status="completed" if is_over else "working")
        if is_over:
            update(self.db, job, ended=self.clock.now)
        else:
            self.later(ITEM_S, "job", number)


@functools.lru_cache(maxsize=4096)
def moment(at: float) -> str:
    """Returns a time as rows hold it: whole seconds of UTC, such as 2026-01-05T09:00:00Z."""
    days, rest = divmod(int(at), 86_400)
    return f"{_day(days)}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}Z"


@functools.lru_cache(maxsize=4096)
def _day(days: int) -> str:
    return (date(1970, 1, 1) + timedelta(days)).isoformat()


@functools.cache
def _products(type_: Any) -> tuple[Product, ...]:
    classes = cast(tuple[type[Any], ...], type_.__mro__)
    return tuple(vars(cls)["product"] for cls in classes if "product" in vars(cls))
