"""A request that comes again under the same `Idempotency-Key` gets the answer of the first; nothing is done twice."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from quintain import codec
from quintain.serve.errors import Conflict, Refused

MOST = 20_000
MOST_BYTES = 128 << 20
_KEY = re.compile(r"[!-~]{1,255}")


class Said(NamedTuple):
    """A whole answer."""

    status: int
    body: bytes
    headers: Iterable[tuple[bytes, bytes]]


class Once:
    """The answers of late, by caller and key. The oldest are forgotten when there are too many."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[str, asyncio.Future[Said]]] = OrderedDict()
        self._bytes = 0

    async def do(self, name: tuple[str, str], request: bytes, work: Callable[[], Awaitable[Said]]) -> Said:
        """Do what a request asks for, unless that was done already.

        Args:
            name: The caller's, and the key.
            request: All that the request says.
            work: Does it; what it raises is told to everybody who asks meanwhile, and not kept.

        Raises:
            Conflict: The key was used for another request.
            Refused: It is none.
        """
        if not _KEY.fullmatch(name[1]):
            raise Refused("an Idempotency-Key has 1 to 255 printable ASCII characters, and no space among them")
        digest = codec.digest(request)
        if name in self._known:
            before, answer = self._known[name]
            if before != digest:
                raise Conflict("this Idempotency-Key was used for another request")
            return await asyncio.shield(answer)
        answer = asyncio.get_running_loop().create_future()
        self._known[name] = (digest, answer)
        try:
            said = await work()
        except BaseException as error:
            del self._known[name]
            if isinstance(error, Exception):
                answer.set_exception(error)
                answer.exception()  # Seen: nobody need be waiting.
            else:
                answer.cancel()
            raise
        answer.set_result(said)
        self._bytes += len(said.body)
        self._trim()
        return said

    def _trim(self) -> None:
        while len(self._known) > MOST or self._bytes > MOST_BYTES:
            _, (_, answer) = self._known.popitem(last=False)
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                self._bytes -= len(answer.result().body)
