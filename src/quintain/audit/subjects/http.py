"""HTTP and JSON for the adapters: the client's mistakes are answers, the server's are failures."""

from __future__ import annotations

import contextlib
import math
import os
import urllib.parse
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from quintain.audit.facts.data import is_dict, is_list
from quintain.errors import UsageError
from quintain.plugins import package

from .failure import SubjectFailure

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 30.0


def client(base: str, *, header: str = "", form: str = "{}", variable: str = "") -> httpx.Client:
    """Returns a client with its own connections and cookies; raises UsageError for an invalid URL.

    The header has the value of an environment variable, in a form; without the variable it is not sent.
    """
    package("httpx", extra="http")
    import httpx

    key = os.environ.get(variable)
    try:
        return httpx.Client(base_url=base, timeout=TIMEOUT_S, headers={header: form.format(key)} if key else {})
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise UsageError(f"{base!r} is not the URL of a service: {error}") from error


@contextlib.contextmanager
def described(service: httpx.Client) -> Generator[httpx.Client]:
    """Yields a client that asks what a service has, and closes it; raises UsageError if the service fails."""
    with service:
        try:
            yield service
        except SubjectFailure as error:
            raise UsageError(f"{service.base_url}: {error}") from error


def answer(service: httpx.Client, method: str, path: str, **fields: Any) -> Any:
    """Returns the body of an answer: data if it is JSON, else text; None if it is empty.

    With status 3xx and 4xx it is `{"error": body, "status": ...}`. Raises SubjectFailure for status 5xx, no answer, and
    a body that does not match its content type.
    """
    import httpx

    try:
        return read(sent(service, method, path, **fields))
    except (httpx.LocalProtocolError, httpx.InvalidURL, UnicodeEncodeError) as error:
        return {"error": f"this cannot be sent: {error}", "status": 400}


def sent(service: httpx.Client, method: str, path: str, **fields: Any) -> httpx.Response:
    """Returns a response of any status; raises SubjectFailure if no response came."""
    import httpx

    try:
        return service.request(method, path, **fields)
    except httpx.LocalProtocolError:
        raise
    except httpx.HTTPError as error:
        raise unreachable(error, f"{method} {path}") from error


def read(response: httpx.Response) -> Any:
    where = f"{response.request.method} {response.request.url.path}"
    if response.status_code >= 500:
        raise SubjectFailure(f"{where} answered {response.status_code}: {response.text[:1000]}")
    try:
        is_json = response.content and "json" in response.headers.get("content-type", "")
        body = response.json() if is_json else response.text or None
    except ValueError as error:
        said = f"{error}: {response.text[:1000]!r}"
        raise SubjectFailure(f"{where} says that it answers in JSON, but: {said}") from error
    is_refused = response.status_code >= 300
    return {"error": body or response.reason_phrase, "status": response.status_code} if is_refused else body


def text(url: str) -> str:
    """Returns a document; raises UsageError if the document is not available."""
    package("httpx", extra="http")
    import httpx

    try:
        return httpx.get(url, timeout=TIMEOUT_S, follow_redirects=True).raise_for_status().text
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise UsageError(f"cannot read {url}: {type(error).__name__}: {error}") from error


def unreachable(error: Exception, where: str) -> SubjectFailure:
    import httpx

    kinds = {httpx.TimeoutException: "transport_timeout", httpx.ConnectError: "transport_unreachable"}
    kind = next((kind for base, kind in kinds.items() if isinstance(error, base)), "transport_peer_drop")
    return SubjectFailure(f"{where}: {type(error).__name__}: {error}", kind=kind)


def server(text: str, example: str, schemes: Sequence[str] = ("http", "https")) -> urllib.parse.SplitResult:
    """Returns the parts of a URL; raises UsageError, whose message shows the example, if the text is none."""
    parts = urllib.parse.urlsplit(text)
    if parts.scheme not in schemes or not parts.netloc:
        raise UsageError(f"{example}, not {text!r}")
    return parts


def refused(answer: Any) -> bool:
    """True if an answer is the one of a status 3xx or 4xx."""
    return is_dict(answer) and "error" in answer and "status" in answer


# --- what several protocols have in common ---


def only_task(task: str, name: str) -> None:
    if task != name:
        raise UsageError(f"there is one task, {name!r}, not {task!r}")


def index(task: str, split: str) -> int:
    """Returns the index of a task such as "test/0"; raises UsageError if the task is not of the split."""
    of, _, number = task.rpartition("/")
    if of != split or not number.isdecimal():
        raise UsageError(f"a task is called {split}/0, {split}/1 and so on, not {task!r}")
    return int(number)


def first_split(listed: Sequence[Any]) -> str:
    """Returns the split "test", else the first of those that a server lists."""
    names = [str(one["name"]) if is_dict(one) else str(one) for one in listed]
    return "test" if "test" in names else names[0]


def tool(listed: dict[str, Any]) -> dict[str, Any]:
    """Returns a tool that a server lists in the form of a plain subject."""
    schema: Any = listed.get("input_schema") or listed.get("inputSchema") or {"type": "object", "properties": {}}
    return {"name": listed["name"], "description": listed.get("description") or "", "parameters": schema}


def said(blocks: list[dict[str, Any]]) -> Any:
    """Returns the text of blocks, or the blocks if some are not text."""
    is_text = all(block.get("type") == "text" for block in blocks)
    return "\n".join(str(block.get("text", "")) for block in blocks) if is_text else blocks


def total(rewards: Sequence[float]) -> dict[str, float | None] | None:
    """Returns the sum of the rewards and the last one; None if one was not finite."""
    last = rewards[-1] if rewards else None
    return {"score": math.fsum(rewards), "last": last} if all(map(math.isfinite, rewards)) else None


def table(value: dict[str, Any], key: str) -> dict[str, Any]:
    """Returns the object at a key, empty if it is missing or null; raises UsageError if it is something else."""
    found = value.get(key)
    if found is not None and not is_dict(found):
        raise UsageError(f"{key!r} must be an object, it is {str(found)[:200]!r}")
    return found or {}


def series(value: dict[str, Any], key: str) -> list[Any]:
    """Returns the array at a key, empty if it is missing or null; raises UsageError if it is something else."""
    found = value.get(key)
    if found is not None and not is_list(found):
        raise UsageError(f"{key!r} must be an array, it is {str(found)[:200]!r}")
    return found or []
