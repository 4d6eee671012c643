"""Routes of the studio: its page, and the JSON API below `/api`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from quintain import __version__, codec
from quintain.errors import UsageError

from .access import Guard, OwnerOf
from .agreement import labels_of_run
from .compare import compared
from .cut import cut, text_address, text_at
from .finder import fitting
from .folders import Run, Runs
from .page import TYPES, built
from .replays import Replays, Unplayable
from .reports import metrics
from .review_routes import ReviewRoutes
from .search import hits
from .sent import MOST, saved
from .tokens import Tokenizer

T = TypeVar("T")

API = 1
"""Version of the API."""

_SLICE_S = 0.4
"""Seconds of indexing per request; the page shows what is there, and asks again."""
_SLICE_ROWS = 50_000
"""Rows of a page from which on a request takes longer, in proportion: drawing so many takes about as long."""
_POLL_S = 0.5
_MOST_WAIT_S = 25.0
_MOST_HITS = 500


def build(
    runs: Runs,
    secret: str,
    port: int,
    *,
    hosts: Iterable[str] = (),
    owner_of: OwnerOf | None = None,
    reviewer: str | None = None,
    replays: Replays | None = None,
    tokenizer: Tokenizer | None = None,
) -> ASGIApp:
    """Returns the ASGI application of the studio.

    Args:
        runs: The runs that it shows.
        secret: The token that a request must bring.
        port: Port at which it is asked.
        hosts: Names under which it is asked, besides those of this machine; each with the port if it is sent.
        owner_of: Check of keys, in place of the token; the owner of the key is the reviewer.
        reviewer: Name of the person whose reviews are written; None for a studio that writes nothing.
        replays: Replays that show what steps changed; by default of installed environments.
        tokenizer: Tokenizer that shows the texts of tokens; None for none.
    """
    studio = _Studio(runs, replays or Replays(), tokenizer)
    answers: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/": studio.file,
        "/static/{name}": studio.file,
        "/api": studio.version,
        "/api/runs": studio.list,
        "/api/compare": studio.compare,
        "/api/runs/{run}": studio.run,
        "/api/runs/{run}/columns": studio.columns,
        "/api/runs/{run}/episodes/{n:int}": studio.episode,
        "/api/runs/{run}/episodes/{n:int}/text": studio.text,
        "/api/runs/{run}/episodes/{n:int}/changes": studio.changes,
        "/api/runs/{run}/episodes/{n:int}/seconds": studio.seconds,
        "/api/runs/{run}/episodes/{n:int}/tokens": studio.tokens,
        "/api/runs/{run}/holding": studio.holding,
        "/api/runs/{run}/search": studio.search,
        "/api/runs/{run}/metrics": studio.metrics,
        "/api/runs/{run}/live": studio.live,
        "/api/runs/{run}/live/turns": studio.turns,
        "/api/runs/{run}/export": studio.export,
    }
    routes = [Route(path, answer) for path, answer in answers.items()]
    routes += ReviewRoutes(runs, reviewer or "").routes()
    app = Starlette(routes=routes, exception_handlers={UsageError: _wrong})
    return Guard(app, secret, port, hosts=hosts, owner_of=owner_of, writes=reviewer is not None)


async def _wrong(request: Request, error: Exception) -> Response:
    status = HTTPStatus.NOT_FOUND if request.method in {"GET", "HEAD"} else HTTPStatus.BAD_REQUEST
    said = str(error).encode("utf-8", "replace").decode()  # It may name a file whose name is no text.
    return _json({"detail": said}, HTTPStatus.CONFLICT if isinstance(error, Unplayable) else status)


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


class _Studio:
    """Answers of the routes."""

    def __init__(self, runs: Runs, replays: Replays, tokenizer: Tokenizer | None) -> None:
        self._runs, self._replays, self._tokenizer = runs, replays, tokenizer

    async def file(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in TYPES:
            raise UsageError(f"the studio has no file {name!r}")
        return Response(built(name), headers={"Content-Type": TYPES[name]})

    async def version(self, _request: Request) -> Response:
        return _json({"version": API, "quintain": __version__})

    async def list(self, _request: Request) -> Response:
        runs = self._runs.all().values()
        return _json(await run_in_threadpool(lambda: [run.summary() | labels_of_run(run) for run in runs]))

    async def compare(self, request: Request) -> Response:
        """Returns the runs `a` and `b` compared."""
        a, b = (self._runs[request.query_params.get(name, "")] for name in ("a", "b"))
        return _json(await run_in_threadpool(compared, a, b))

    async def run(self, request: Request) -> Response:
        facts = await run_in_threadpool(self._run(request).facts)
        return _json(facts | {"tokenizer": self._tokenizer is not None})

    async def columns(self, request: Request) -> Response:
        """Returns the columns from a row on; waits for one, or for labels that are others than `labels`."""
        run, start, known = self._run(request), _number(request, "from"), request.query_params.get("labels")
        seconds = _SLICE_S * max(1.0, start / _SLICE_ROWS)
        message = await _waited(request, lambda: run.columns(start, seconds, known))
        return Response(message, media_type="application/octet-stream")

    async def episode(self, request: Request) -> Response:
        """Returns the line of an episode as it is on disk; with `cut=1` without its longest texts."""
        run, n = self._run(request), request.path_params["n"]
        line = await run_in_threadpool(run.index.line, n)
        if request.query_params.get("cut") == "1":
            made = await run_in_threadpool(cut, line, text_address(run.name, n))
            return Response(made, media_type="application/json")
        tag = f'"{codec.digest(line)}"'
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=HTTPStatus.NOT_MODIFIED)
        return Response(line, headers={"ETag": tag}, media_type="application/json")

    async def text(self, request: Request) -> Response:
        """Returns a text that was cut out of an episode."""
        line = await run_in_threadpool(self._run(request).index.line, request.path_params["n"])
        return _json(await run_in_threadpool(text_at, line, request.query_params.get("at", "")))

    async def changes(self, request: Request) -> Response:
        """Returns what each step changed, a line a step, after a line on how the replay went."""
        run, (start, end) = self._run(request), _turns(request)
        line = await run_in_threadpool(run.index.line, request.path_params["n"])
        manifest = run.facts()["run"]
        found = await run_in_threadpool(self._replays.changes, manifest, line, codec.digest(line))
        return Response(found.lines(start, end), media_type="application/x-ndjson")

    async def seconds(self, request: Request) -> Response:
        """Returns the seconds of each turn of an episode: model, tools, verifier."""
        return _json(await run_in_threadpool(self._run(request).index.seconds, request.path_params["n"]))

    async def tokens(self, request: Request) -> Response:
        """Returns id, text and logprob of each token that the `turn` was drawn as."""
        if self._tokenizer is None:
            raise UsageError("the studio was started without --tokenizer")
        line = await run_in_threadpool(self._run(request).index.line, request.path_params["n"])
        return _json(await run_in_threadpool(self._tokenizer.of, line, _number(request, "turn")))

    async def holding(self, request: Request) -> Response:
        """Returns the episodes from a row on that hold a text."""
        run, text = self._run(request), request.query_params.get("q", "")
        found, rows = await run_in_threadpool(run.index.search, text, _number(request, "from"))
        return _json({"found": found, "rows": rows})

    async def search(self, request: Request) -> Response:
        """Returns the places at which a text stands, a line each; `case=1` tells capital letters apart.

        With `regex=1` it is a regular expression of Python. A search that ends early says why in a last line `detail`.
        """
        index, given = self._run(request).index, request.query_params
        most = min(_number(request, "most") or _MOST_HITS, _MOST_HITS)
        text, fold, field = given.get("q", ""), given.get("case") != "1", given.get("field", "")
        if not text:
            raise UsageError("q must be a text to search for")
        await run_in_threadpool(index.update)
        if given.get("regex") == "1":
            lines: AsyncIterator[bytes] = _first(most, fitting(index, text, fold=fold, field=field))
        else:
            places = itertools.islice(hits(index, text, fold=fold, field=field), most)
            lines = iterate_in_threadpool(msgspec.json.encode(one) + b"\n" for one in places)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    async def metrics(self, request: Request) -> Response:
        """Returns the numbers of trainers that the run folder holds."""
        return _json(await run_in_threadpool(metrics, self._run(request).folder))

    async def live(self, request: Request) -> Response:
        """Returns what is in play; waits until that is another `version` than `from`."""
        live, known = self._run(request).live, _number(request, "from")

        def ask() -> tuple[dict[str, Any], bool]:
            found = live.playing()
            return found, found["version"] != known

        return _json(await _waited(request, ask))

    async def turns(self, request: Request) -> Response:
        """Returns the turns from `from` on of an episode in play; waits for one."""
        live, start = self._run(request).live, _number(request, "from")
        key = (request.query_params.get("task", ""), _number(request, "member"), _number(request, "attempt"))

        def ask() -> tuple[dict[str, Any], bool]:
            found = live.turns(key, start)
            return found, found["head"] is None or bool(found["turns"])

        return _json(await _waited(request, ask))

    async def export(self, request: Request) -> Response:
        """Returns the episodes that `n` names, as in `n=4,7`, as an HTML file to be kept.

        `without=reasons,names` leaves parts out, and `canary` is a line for collectors of training data.
        """
        run, given, asked = self._run(request), request.query_params.get("n", ""), request.query_params
        if not re.fullmatch(r"[0-9]{1,10}(,[0-9]{1,10})*", given) or len(numbers := given.split(",")) > MOST:
            raise UsageError(f"n must be numbers of episodes, as in 4,7, at most {MOST}, got {given[:100]!r}")
        without, canary = [part for part in asked.get("without", "").split(",") if part], asked.get("canary", "")
        rows = list(map(int, numbers))
        made = await run_in_threadpool(lambda: saved(run, rows, self._replays, without=without, canary=canary))
        title = "episodes" if "names" in without else run.name
        name = quote(re.sub(r"[^\w.-]+", "_", f"{title}-{'-'.join(numbers[:3])}.html"))
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
        return Response(made, headers=headers, media_type="text/html")

    def _run(self, request: Request) -> Run:
        return self._runs[request.path_params["run"]]


async def _waited(request: Request, ask: Callable[[], tuple[T, bool]]) -> T:
    """Returns what `ask` gives, once that is news, or as it is after the `wait` seconds of the request."""
    until = time.monotonic() + min(_number(request, "wait"), _MOST_WAIT_S)
    while True:
        found, is_news = await run_in_threadpool(ask)
        if is_news or time.monotonic() > until or await request.is_disconnected():
            return found
        await asyncio.sleep(_POLL_S)


async def _first(most: int, lines: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    async with contextlib.aclosing(lines):
        async for line in lines:
            yield line
            if (most := most - 1) == 0:
                return


def _turns(request: Request) -> tuple[int, float]:
    """Returns the bounds in `turns=A:B`; by default all turns."""
    given = request.query_params.get("turns", ":")
    if not (match := re.fullmatch(r"([0-9]{0,10}):([0-9]{0,10})", given)):
        raise UsageError(f"turns must be A:B, as in 0:25, got {given!r}")
    return int(match[1] or 0), float(match[2] or "inf")


def _number(request: Request, name: str) -> int:
    """Returns a parameter of the query, by default 0.

    Raises:
        UsageError: It is not a whole number from 0 on.
    """
    given = request.query_params.get(name, "0")
    if not re.fullmatch(r"[0-9]{1,10}", given):
        raise UsageError(f"{name} must be a whole number from 0 on, got {given!r}")
    return int(given)
