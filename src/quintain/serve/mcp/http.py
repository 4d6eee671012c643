"""`/e/{token}/mcp`: one SDK server, and one of its session managers, for all episodes of a host.

Nothing is kept per episode or per client. The SDK's manager runs without sessions, so that an episode is its address
alone: clients of both eras may come, go and come back, and none of them can end it by saying goodbye.
"""

from __future__ import annotations

from typing import Any

from quintain import codec
from quintain.serve import sdk
from quintain.serve.asgi import Event, Request
from quintain.serve.episodes import undelivered as unheard
from quintain.serve.episodes.live import Live

from .desk import Asked, Context, Desk

_ASKED = "dev.quintain.asked"


class Address:
    """The protocol's part of a server's addresses.

    Args:
        most: Bytes of a request's body.
    """

    def __init__(self, most: int) -> None:
        self._manager = sdk.Manager(Desk(_asked).server, most=most)

    async def handle(self, request: Request, live: Live) -> None:
        """Answer one request, a POST to this episode's address."""
        key = request.header(b"idempotency-key")
        named = codec.digest(key.encode()) if key else ""
        answers = Answers(live, request)
        asked = Asked(live, request.gone, answers.put, named)
        headers = [(name, value.strip(b" \t")) for name, value in request.scope["headers"]]
        scope = {**request.scope, "headers": headers, _ASKED: asked}
        try:
            await self._manager.handle(scope, request.receive, answers.send)
        finally:
            answers.end()


class Answers:
    """What a request gets for the calls that it makes. The SDK sends it, and says nothing of when it has.

    Args:
        live: The episode.
        request: It.
    """

    def __init__(self, live: Live, request: Request) -> None:
        self._live = live
        self._request = request
        self._calls: list[tuple[str, bytes]] = []
        self._is_over = False

    def put(self, key: str, what: bytes) -> None:
        """A call has an answer."""
        self._live.asked[key] = (what, self._request.gone, unheard.FOREVER)
        self._calls.append((key, what))
        if self._is_over:
            self._settle(is_told=False)

    async def send(self, event: Event) -> None:
        """Send a part of what the request gets.

        That answers are told is written down right before, not after: whoever reads one may act on it at once. Who
        leaves later has read it, though the stream was not at its end.
        """
        says = event["type"] == "http.response.body" and bool(event.get("body"))
        if says and not self._request.gone():
            for key, _ in self._calls:
                unheard.heard(self._live, key)
        if not says:
            await self._request.send(event)
            return
        self._settle(is_told=await self._request.deliver(event["body"]))
        if not event.get("more_body"):
            await self._request.send({"type": "http.response.body"})

    def end(self) -> None:
        """Nothing more is sent."""
        self._is_over = True
        self._settle(is_told=False)

    def _settle(self, *, is_told: bool) -> None:
        """Whether what was sent had somebody who took it."""
        for key, what in self._calls:
            if not is_told:
                unheard.left(self._live, key, what)
        self._calls.clear()


def _asked(context: Context) -> Asked:
    carried: Any = context.request
    asked: Asked = carried.scope[_ASKED]
    return asked
