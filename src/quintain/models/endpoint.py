"""One HTTP endpoint: what goes wrong there, whose fault it is, and whether to ask again."""

from __future__ import annotations

import asyncio
import email.utils
import math
import re
import weakref
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from quintain.errors import UsageError

if TYPE_CHECKING:
    import httpx

INVALID = "quintain:model_reply_invalid"

_KINDS = {
    # Name of httpx's exception, or of one of its bases, to ours; the most special one counts.
    "PoolTimeout": "transport_local_resource",
    "ConnectTimeout": "transport_unreachable",
    "ConnectError": "transport_unreachable",
    "ProxyError": "transport_unreachable",
    "TimeoutException": "transport_timeout",
    "NetworkError": "transport_peer_drop",
    "RemoteProtocolError": "transport_peer_drop",
    "DecodingError": INVALID,
}
_TOO_LONG = re.compile(
    r"(context|prompt)[ _]?(length|size|window)|(prompt|input|context) is (too long|longer)", re.IGNORECASE
)


class Trouble(Exception):
    """Error of one attempt.

    Attributes:
        kind: Kind of the failure.
        again: True if another attempt makes sense, after `wait_s` seconds.
        is_too_long: True if the context is longer than the model takes.
    """

    def __init__(
        self, kind: str, message: str, *, again: bool = True, wait_s: float = 0.0, is_too_long: bool = False
    ) -> None:
        super().__init__(message)
        self.kind, self.again, self.wait_s, self.is_too_long = kind, again, wait_s, is_too_long


class HttpAnswer:
    """A response that came whole: its status, its body, and the seconds that it asks to wait."""

    def __init__(self, status: int, data: bytes, wait_s: float) -> None:
        self.status, self.data, self.wait_s = status, data, wait_s

    def trouble(self) -> Trouble:
        """Returns the meaning of a status other than 200."""
        said = f"status {self.status}: {head(self.data)}"
        said += f" (it asks to wait {self.wait_s:g} s)" if self.wait_s else ""
        if self.status == 429:
            # An empty purse is not filled by waiting.
            again = b"insufficient_quota" not in self.data
            return Trouble("provider_quota_exhausted", said, again=again, wait_s=self.wait_s)
        if self.status == 408 or self.status >= 500:
            return Trouble("provider_unavailable", said, wait_s=self.wait_s)
        too_long = self.status in {400, 413, 422} and _TOO_LONG.search(self.data[:10_000].decode(errors="replace"))
        if too_long:
            said = f"the context is longer than the model takes: {said}"
        return Trouble("agent_request_failed", said, again=False, is_too_long=bool(too_long))


class Endpoint:
    """Client that posts JSON to one URL, over connections that belong to the running event loop.

    Args:
        url: Up to and with the version; a query stays at the end.
        path: Path after the url.
        key: Sent as a bearer token unless it is empty.
        timeout_s: Seconds of silence after which an attempt has failed.
        max_bytes: A longer response is malformed.

    Raises:
        UsageError: The extra `http` is not installed, the URL is invalid, or the key is not a valid header.
    """

    def __init__(self, url: str, path: str, *, key: str, timeout_s: float, max_bytes: int) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise UsageError("models behind HTTP need an extra: pip install 'quintain[http]'") from error
        try:
            base = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise UsageError(f"base_url is not a URL: {error}") from error
        if base.scheme not in {"http", "https"} or not base.host:
            raise UsageError(f"base_url must be like http://localhost:8000/v1, got the scheme {base.scheme!r}")
        if not re.fullmatch(r"[!-~]*", key):
            raise UsageError("an API key has only printable ASCII characters, and no space between them")
        self._url = base.copy_with(path=base.path.rstrip("/") + path)
        self._key, self._timeout_s, self._max_bytes = key, timeout_s, max_bytes
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            weakref.WeakKeyDictionary()
        )

    def __str__(self) -> str:
        return str(self._url.copy_with(userinfo=b"", query=None, fragment=None))

    def hide(self, text: str) -> str:
        """Returns the text without what must not be shown."""
        for secret in (self._key, self._url.password, self._url.query.decode()):
            text = text.replace(secret, "***") if secret else text
        return text

    async def post(self, content: bytes) -> HttpAnswer:
        """One attempt.

        Raises:
            Trouble: No whole response came.
        """
        import httpx

        data = bytearray()
        try:
            async with self._client().stream("POST", self._url, content=content) as response:
                async for chunk in response.aiter_bytes():
                    data += chunk
                    if len(data) > self._max_bytes:
                        raise Trouble(INVALID, f"a malformed reply: longer than {self._max_bytes} bytes: {head(data)}")
        except httpx.HTTPError as error:
            names = (base.__name__ for base in type(error).__mro__)
            kind = next((_KINDS[name] for name in names if name in _KINDS), "agent_request_failed")
            raise Trouble(kind, f"{type(error).__name__}: {error}".rstrip(": ")) from error
        return HttpAnswer(response.status_code, bytes(data), _seconds(response.headers.get("retry-after", "")))

    async def aclose(self) -> None:
        """Closes the connections of the running event loop; those of a loop that is gone went with it."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client(self) -> httpx.AsyncClient:
        import httpx

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            headers = {"Content-Type": "application/json"}
            if self._key:
                headers["Authorization"] = f"Bearer {self._key}"
            # How many requests are under way at once is the rollout's business.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
            self._clients[loop] = httpx.AsyncClient(headers=headers, timeout=self._timeout_s, limits=limits)
        return self._clients[loop]


def head(data: bytes | bytearray) -> str:
    """Returns the first 300 characters, for a message."""
    return bytes(data[:1200]).decode(errors="replace")[:300].strip()


def _seconds(header: str) -> float:
    """Returns the seconds of a Retry-After header, in either of its forms; 0 if it is missing or invalid."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (email.utils.parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return 0.0
    return seconds if 0 < seconds < math.inf else 0.0
