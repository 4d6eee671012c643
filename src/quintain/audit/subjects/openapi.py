"""Adapter for services described by OpenAPI: operations are tools, a call is a request.

OpenAPI has no episodes: there is one task, "service", and no score. An operation named "reset", or POST .../reset,
begins an episode and is not a tool.
"""

from __future__ import annotations

import functools
import json
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quintain.errors import UsageError
from quintain.plugins import package

from . import http, operations
from .operations import Operation
from .shapes import is_dict, is_list, series

TASK = "service"


def make(text: str) -> Callable[[], OpenApiSubject]:
    """Returns a factory of sessions, each with its own connections and cookies.

    Args:
        text: File or URL of the document, in JSON or, with PyYAML, in YAML; after "#" the URL of the service, if it is
            not the document's first server.

    Raises:
        UsageError: The document is unreadable, or does not name the service's URL.
    """
    source, _, base = text.partition("#")
    document = _document(source)
    listed = operations.read(document)
    if not listed:
        raise UsageError(f"{source} describes no operation")
    return functools.partial(OpenApiSubject, listed, base or _base(source, document))


class OpenApiSubject:
    """Session with a service.

    Attributes:
        absent: Methods that this service lacks.
    """

    def __init__(self, listed: list[Operation], base: str) -> None:
        self._tools = {one.name: one for one in listed if not one.is_reset}
        self._reset = next((one for one in listed if one.is_reset), None)
        self._client = http.client(base)
        self.absent = ("score",) if self._reset else ("score", "reset")

    def tasks(self) -> list[str]:
        """Returns the only task."""
        return [TASK]

    def tools(self) -> list[dict[str, Any]]:
        """Returns the operations as tools."""
        return [
            {"name": one.name, "description": one.description, "parameters": one.parameters}
            for one in self._tools.values()
        ]

    def responses(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Returns the JSON schemas of answers, by tool and status ("200", "4XX", "default")."""
        return {one.name: one.responses for one in self._tools.values()}

    def reset(self, task: str, seed: int) -> Any:
        """Calls the service's own reset, with `seed` and `task` if it takes them, and returns its answer.

        Raises:
            UsageError: The service has no reset, or the task is unknown.
            SubjectFailure: The reset failed.
        """
        if task != TASK or self._reset is None:
            raise UsageError(f"no reset for task {task!r}; the service has {self._reset or 'no reset operation'}")
        offered = {"seed": seed, "task": task}
        given = {name: value for name, value in offered.items() if name in self._reset.places}
        answer = self._asked(self._reset, given)
        if is_dict(answer) and "error" in answer:
            raise http.broken(f"reset was refused: {answer}", kind="quintain:reset_failed")
        return answer

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Sends a request and returns the answer's body; with status 4xx, `{"error": body, "status": ...}`.

        Raises:
            SubjectFailure: Status 5xx, no answer, or a body that does not match its content type.
        """
        operation = self._tools.get(name)
        return self._asked(operation, arguments) if operation else {"error": f"unknown tool {name!r}"}

    def score(self) -> None:
        """Does nothing: OpenAPI has no score, and `absent` says so."""

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _asked(self, operation: Operation, arguments: dict[str, Any]) -> Any:
        try:
            url, fields = _request(operation, arguments)
        except (ValueError, TypeError) as error:
            return {"error": f"{operation.name}: {error}"}
        return http.answer(self._client, operation.method, url, **fields)


def _request(operation: Operation, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the path and the arguments for httpx.

    Raises:
        ValueError: An argument of the path is missing or empty, or a value cannot be sent.
    """
    parts: dict[str, dict[str, Any]] = {place: {} for place in ("path", "query", "header", "cookie", "body")}
    takes_more = operation.media and ("body", "") not in operation.places.values()
    for name, value in arguments.items():
        # An argument without a description is sent where a client would put it, so that the service can refuse it.
        place, there = operation.places.get(name, ("body" if takes_more else "query", name))
        parts[place][there] = value
    fields: dict[str, Any] = {
        "params": {name: _words(value) for name, value in parts["query"].items() if value is not None},
        "headers": {name: str(_words(value)) for name, value in parts["header"].items()},
    }
    if parts["cookie"]:
        cookies = "; ".join(f"{name}={_words(value)}" for name, value in parts["cookie"].items())
        fields["headers"]["Cookie"] = cookies
    if operation.media and (parts["body"] or ("body", "") not in operation.places.values()):
        body = parts["body"][""] if "" in parts["body"] else parts["body"]
        fields |= _body(operation.media, body)
    return _filled(operation.path, parts["path"]), fields


def _filled(path: str, values: dict[str, Any]) -> str:
    for name, value in values.items():
        word = str(_words(value))
        if word in {"", ".", ".."}:
            raise ValueError(f"{name!r} is a part of the path and cannot be {word!r}")
        path = path.replace(f"{{{name}}}", urllib.parse.quote(word, safe=""))
    if "{" in path:
        raise ValueError(f"it needs {path[path.index('{') + 1 : path.index('}')]!r}")
    return path


def _body(media: str, body: Any) -> dict[str, Any]:
    if media == operations.FORM and is_dict(body):
        return {"data": {name: _words(value) for name, value in body.items() if value is not None}}
    is_text = isinstance(body, str) and "json" not in media
    return {"content": str(body) if is_text else json.dumps(body), "headers": {"Content-Type": media}}


def _words(value: Any) -> Any:
    """Returns a value as text for a URL or a header; a list stays a list, which repeats the name."""
    if is_list(value):
        return [_words(one) for one in value]
    if isinstance(value, bool | dict) or value is None:
        return json.dumps(value)
    return str(value)


def _document(source: str) -> dict[str, Any]:
    """Returns a document from a file or a URL."""
    if source.startswith(("http://", "https://")):
        text = http.text(source)
    else:
        try:
            text = Path(source).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read the OpenAPI document {source!r}: {error}") from error
    try:
        found = json.loads(text)
    except ValueError:
        found = _yaml(source, text)
    if not is_dict(found):
        raise UsageError(f"{source} is not an OpenAPI document but a {type(found).__name__}")
    return found


def _yaml(source: str, text: str) -> Any:

    yaml = package("yaml", extra="audit-openapi")
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{source} is neither JSON nor YAML: {error}") from error


def _base(source: str, document: dict[str, Any]) -> str:
    """Returns the first server's URL, relative to the document's place."""
    servers = series(document, "servers")
    url = str(urllib.parse.urljoin(source if "://" in source else "", servers[0]["url"] if servers else "/"))
    if "://" not in url or "{" in url:
        raise UsageError(
            f"{source} says not where the service is (servers: {servers}); add #http://host:port behind it"
        )
    return url.rstrip("/")
