"""HTTP for the adapters: the client's mistakes are answers, the server's are failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quintain.errors import UsageError
from quintain.plugins import package

from .failure import SubjectFailure

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 30.0


def client(base: str, **headers: str) -> httpx.Client:
    """Returns a client for a service, with its own connections and cookies; it follows no redirects.

    Raises:
        UsageError: httpx is not installed, or the URL is invalid.
    """
    package("httpx", extra="http")
    import httpx

    try:
        return httpx.Client(base_url=base, timeout=TIMEOUT_S, headers=headers)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise UsageError(f"{base!r} is not the URL of a service: {error}") from error


def answer(service: httpx.Client, method: str, path: str, **fields: Any) -> Any:
    """Returns the body of an answer: data if it is JSON, else text; None if it is empty.

    With status 3xx and 4xx it is `{"error": body, "status": ...}`.

    Args:
        service: The client.
        method: Such as "GET".
        path: Path below the service's URL.
        fields: Arguments for httpx.

    Raises:
        SubjectFailure: Status 5xx, no answer, or a body that does not match its content type.
    """
    import httpx

    try:
        return read(sent(service, method, path, **fields))
    except (httpx.LocalProtocolError, httpx.InvalidURL, UnicodeEncodeError) as error:
        return {"error": f"this cannot be sent: {error}", "status": 400}


def sent(service: httpx.Client, method: str, path: str, **fields: Any) -> httpx.Response:
    """Returns a response of any status.

    Raises:
        SubjectFailure: No response came.
        httpx.LocalProtocolError, httpx.InvalidURL, UnicodeEncodeError: The request cannot be expressed in HTTP.
    """
    import httpx

    try:
        return service.request(method, path, **fields)
    except httpx.LocalProtocolError:
        raise
    except httpx.HTTPError as error:
        raise unreachable(error, f"{method} {path}") from error


def read(response: httpx.Response) -> Any:
    """Returns the body of a response, as `answer` does."""
    where = f"{response.request.method} {response.request.url.path}"
    if response.status_code >= 500:
        raise broken(f"{where} answered {response.status_code}: {response.text[:1000]}")
    if not response.content:
        body = None
    elif "json" in response.headers.get("content-type", ""):
        try:
            body = response.json()
        except ValueError as error:
            raise broken(f"{where} says that it answers in JSON, but: {error}: {response.text[:1000]!r}") from error
    else:
        body = response.text
    if response.status_code < 300:
        return body
    return {"error": body or response.reason_phrase, "status": response.status_code}


def text(url: str) -> str:
    """Returns a document.

    Raises:
        UsageError: The document is not available.
    """
    package("httpx", extra="http")
    import httpx

    try:
        return httpx.get(url, timeout=TIMEOUT_S, follow_redirects=True).raise_for_status().text
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise UsageError(f"cannot read {url}: {type(error).__name__}: {error}") from error


def broken(message: str, *, kind: str = "quintain:tool_bug") -> SubjectFailure:
    return SubjectFailure(message, kind=kind)


def unreachable(error: Exception, where: str) -> SubjectFailure:
    """Returns the failure for an httpx exception."""
    import httpx

    if isinstance(error, httpx.TimeoutException):
        kind = "transport_timeout"
    elif isinstance(error, httpx.ConnectError):
        kind = "transport_unreachable"
    else:
        kind = "transport_peer_drop"
    return SubjectFailure(f"{where}: {type(error).__name__}: {error}", kind=kind)
