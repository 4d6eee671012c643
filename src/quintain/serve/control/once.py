"""A request that comes again under the same `Idempotency-Key` gets the answer of the first; nothing is done twice."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from starlette.responses import Response

from quintain.serve.errors import Conflict, Refused

MOST = 20_000
"""Answers that are kept."""
MOST_BYTES = 128 << 20
"""Bytes of all kept answers together."""
USED = "this Idempotency-Key was used for another request"
_KEY = re.compile(r"[!-~]{1,255}")


def check(key: str) -> None:
    """Raises Refused if a header is not a usable Idempotency-Key."""
    if not _KEY.fullmatch(key):
        raise Refused("an Idempotency-Key has 1 to 255 printable ASCII characters, and no space among them")


class Once:
    """The answers of late, by caller and key. The oldest are forgotten when there are too many; what runs, never."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[str, Response]] = OrderedDict()
        self._running: dict[tuple[str, str], tuple[str, asyncio.Future[Response]]] = {}
        self._bytes = 0

    async def do(self, name: tuple[str, str], digest: str, work: Callable[[], Awaitable[Response]]) -> Response:
        """Does what a request asks for, unless that was done already; raises Conflict if another one had the name.

        An error goes to all requests that wait meanwhile, and is not kept.
        """
        before, found = self._known.get(name) or self._running.get(name) or (digest, None)
        if before != digest:
            raise Conflict(USED)
        if found is not None:
            return found if isinstance(found, Response) else await asyncio.shield(found)
        answer = asyncio.get_running_loop().create_future()
        self._running[name] = (digest, answer)
        try:
            response = await work()
            answer.set_result(response)
        except Exception as error:
            answer.set_exception(error)
            answer.exception()  # Retrieved: maybe no other request waits.
            raise
        finally:
            answer.cancel()  # If this request was; what is done stays as it is.
            del self._running[name]
        self._known[name] = (digest, response)
        self._bytes += len(response.body)
        while len(self._known) > MOST or self._bytes > MOST_BYTES:
            _, (_, old) = self._known.popitem(last=False)
            self._bytes -= len(old.body)
        return response
