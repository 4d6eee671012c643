"""Adapter for services described by OpenAPI: operations are tools, a call is a request.

OpenAPI has no episodes: there is one task, "service", and no score. An operation named "reset", or POST .../reset,
begins an episode and is not a tool. OpenAPI 3.0 and 3.1 are read: the dialect of 3.0 (`nullable`, boolean exclusive
limits) becomes plain JSON schema, and references to components become `$defs`.
"""

from __future__ import annotations

import functools
import json
import re
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from quintain.audit.facts.data import is_dict, is_list
from quintain.errors import UsageError
from quintain.plugins import package

from . import http
from .failure import SubjectFailure
from .http import series, table

TASK = "service"
METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
_COMPONENT = "#/components/schemas/"

Document = dict[str, Any]


def make(text: str) -> Callable[[], OpenApiSubject]:
    """Returns a factory of sessions, each with its own connections and cookies.

    The text is the file or URL of the document, in JSON or, with PyYAML, in YAML; after "#" the URL of the service, if
    it is not the document's first server. Raises UsageError if the document is unreadable, or names no URL.
    """
    source, _, base = text.partition("#")
    document = _document(source)
    listed = operations(document)
    if not listed:
        raise UsageError(f"{source} describes no operation")
    return functools.partial(OpenApiSubject, listed, base or _base(source, document))


class Operation(NamedTuple):
    """Operation of an OpenAPI document.

    Attributes:
        places: Argument to its place, ("path" | "query" | "header" | "cookie" | "body", name there); an argument that
            is the whole body has the name "".
    """

    name: str  # its operationId, or made of method and path; only letters, digits, "_" and "-"
    description: str
    method: str
    path: str
    places: dict[str, tuple[str, str]]
    parameters: dict[str, Any]
    media: str
    responses: dict[str, dict[str, Any]]  # status ("200", "4XX", "default") to the JSON schema of its body

    @property
    def is_reset(self) -> bool:
        return self.name.lower() == "reset" or (self.method == "POST" and self.path.rstrip("/").endswith("/reset"))


class OpenApiSubject:
    """Session with a service."""

    def __init__(self, listed: list[Operation], base: str) -> None:
        self._tools = {one.name: one for one in listed if not one.is_reset}
        self._reset = next((one for one in listed if one.is_reset), None)
        self._client = http.client(base)
        self.absent = ("score",) if self._reset else ("score", "reset")

    def tasks(self) -> list[str]:
        return [TASK]

    def tools(self) -> list[dict[str, Any]]:
        names = ("name", "description", "parameters")
        return [{name: getattr(one, name) for name in names} for one in self._tools.values()]

    def responses(self) -> dict[str, dict[str, dict[str, Any]]]:
        return {one.name: one.responses for one in self._tools.values()}

    def reset(self, task: str, seed: int) -> Any:
        """Calls the service's own reset, with `seed` and `task` if it takes them, and returns its answer."""
        if task != TASK or self._reset is None:
            raise UsageError(f"no reset for task {task!r}; the service has {self._reset or 'no reset operation'}")
        offered = {"seed": seed, "task": task}
        answer = self._asked(self._reset, {name: offered[name] for name in offered if name in self._reset.places})
        if is_dict(answer) and "error" in answer:
            raise SubjectFailure(f"reset was refused: {answer}", kind="quintain:reset_failed")
        return answer

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Sends a request and returns the answer, as `http.answer` does."""
        operation = self._tools.get(name)
        return self._asked(operation, arguments) if operation else {"error": f"unknown tool {name!r}"}

    def score(self) -> None:
        """Does nothing: OpenAPI has no score, and `absent` says so."""

    def close(self) -> None:
        self._client.close()

    def _asked(self, operation: Operation, arguments: dict[str, Any]) -> Any:
        try:
            url, fields = _request(operation, arguments)
        except (ValueError, TypeError) as error:
            return {"error": f"{operation.name}: {error}"}
        return http.answer(self._client, operation.method, url, **fields)


def _request(operation: Operation, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the path and the arguments for httpx; raises ValueError if an argument cannot be sent."""
    parts: dict[str, dict[str, Any]] = {place: {} for place in ("path", "query", "header", "cookie", "body")}
    is_whole = ("body", "") in operation.places.values()
    for name, value in arguments.items():
        # An argument without a description is sent where a client would put it, so that the service can refuse it.
        rest = "body" if operation.media and not is_whole else "query"
        place, there = operation.places.get(name, (rest, name))
        parts[place][there] = value
    headers = {name: str(_words(value)) for name, value in parts["header"].items()}
    if parts["cookie"]:
        headers["Cookie"] = "; ".join(f"{name}={_words(value)}" for name, value in parts["cookie"].items())
    fields: dict[str, Any] = {"params": _form(parts["query"]), "headers": headers}
    body: Any = parts["body"].get("", parts["body"])
    if operation.media == FORM and is_dict(body):
        fields["data"] = _form(body)
    elif operation.media and (parts["body"] or not is_whole):
        is_text = isinstance(body, str) and "json" not in operation.media
        fields["content"] = str(body) if is_text else json.dumps(body)
        headers["Content-Type"] = operation.media
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


def _form(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _words(value) for name, value in values.items() if value is not None}


def _words(value: Any) -> Any:
    """Returns a value as text for a URL or a header; a list stays a list, which repeats the name."""
    if is_list(value):
        return [_words(one) for one in value]
    return json.dumps(value) if isinstance(value, bool | dict) or value is None else str(value)


def _document(source: str) -> dict[str, Any]:
    try:
        is_remote = source.startswith(("http://", "https://"))
        text = http.text(source) if is_remote else Path(source).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the OpenAPI document {source!r}: {error}") from error
    try:
        found = json.loads(text)
    except ValueError:
        yaml = package("yaml", extra="audit-openapi")
        try:
            found = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise UsageError(f"{source} is neither JSON nor YAML: {error}") from error
    if not is_dict(found):
        raise UsageError(f"{source} is not an OpenAPI document but a {type(found).__name__}")
    return found


def _base(source: str, document: dict[str, Any]) -> str:
    """Returns the first server's URL, relative to the document's place."""
    servers = series(document, "servers")
    url = str(urllib.parse.urljoin(source if "://" in source else "", servers[0]["url"] if servers else "/"))
    if "://" not in url or "{" in url:
        raise UsageError(f"{source} says not where the service is (servers: {servers}); add #http://host:port to it")
    return url.rstrip("/")


# --- operations of a document ---


def operations(document: Document) -> list[Operation]:
    """Returns the operations of a document; raises UsageError if it is not OpenAPI 3, or has a broken reference."""
    version, swagger = document.get("openapi"), document.get("swagger")
    if not isinstance(version, str) or not version.startswith("3."):
        raise UsageError(f"only OpenAPI 3 can be read, this says openapi={version!r} swagger={swagger!r}")
    found: dict[str, Operation] = {}
    for path, item in table(document, "paths").items():
        shared = _resolved(document, item)
        for method in (key for key in shared if key in METHODS):
            one = _operation(document, shared, (method, path))
            if one.name in found:
                raise UsageError(f"two operations are named {one.name!r}")
            found[one.name] = one
    return list(found.values())


def _operation(document: Document, shared: Document, where: tuple[str, str]) -> Operation:
    method, path = where
    operation = shared[method]
    places: dict[str, tuple[str, str]] = {}
    schema: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    listed = [_resolved(document, one) for one in (*series(shared, "parameters"), *series(operation, "parameters"))]
    for one in {(one["in"], one["name"]): one for one in listed}.values():  # An operation's override those of its path.
        name = one["name"] if one["name"] not in places else f"{one['name']}_{one['in']}"
        schemas = (table(content, "schema") for content in (one, *table(one, "content").values()))
        described = {"description": one["description"]} if one.get("description") else {}
        schema["properties"][name] = described | _converted(next(filter(None, schemas), dict[str, Any]()))
        places[name] = (one["in"], one["name"])
        schema["required"] += [name] if one.get("required") or one["in"] == "path" else []
    body = _resolved(document, table(operation, "requestBody"))
    media, is_open = _body_arguments(document, body, schema, places=places)
    return Operation(
        name=re.sub(r"[^A-Za-z0-9_-]+", "_", operation.get("operationId") or method + path).strip("_"),
        description="\n\n".join(filter(None, (operation.get("summary"), operation.get("description")))),
        method=method.upper(),
        path=path,
        places=places,
        parameters=_with_definitions(document, schema if is_open else schema | {"additionalProperties": False}),
        media=media,
        responses={
            str(status): _with_definitions(document, _converted(content["schema"]))
            for status, one in table(operation, "responses").items()
            for media, content in table(_resolved(document, one), "content").items()
            if _is_json(media) and "schema" in content
        },
    )


def _body_arguments(
    document: Document, body: Document, whole: dict[str, Any], *, places: dict[str, tuple[str, str]]
) -> tuple[str, bool]:
    """Adds the arguments of a body; returns its media type, or "", and whether it takes further fields."""
    contents = table(body, "content")
    if not contents:
        return "", False
    media = next(filter(_is_json, contents), None) or (FORM if FORM in contents else next(iter(contents)))
    schema = table(contents[media], "schema")
    fields = _resolved(document, schema)
    is_flat = bool(fields.get("properties")) and not set(fields["properties"]) & set(places)
    if is_flat and not {"allOf", "anyOf", "oneOf"} & set(fields) and (_is_json(media) or media == FORM):
        whole["properties"] |= {name: _converted(one) for name, one in fields["properties"].items()}
        places |= {name: ("body", name) for name in fields["properties"]}
        whole["required"] += fields.get("required", ()) if body.get("required") else ()
        return media, fields.get("additionalProperties", True) is not False
    name = "body" if "body" not in places else "request_body"
    whole["properties"][name], places[name] = _converted(schema), ("body", "")
    whole["required"] += [name] if body.get("required") else []
    return media, False


def _with_definitions(document: Document, schema: dict[str, Any]) -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    todo = sorted(_named(schema))
    while todo:
        name = todo.pop()
        if name not in definitions:
            definitions[name] = _converted(_at(document, _COMPONENT + name))
            todo += sorted(_named(definitions[name]))
    return schema | {"$defs": definitions} if definitions else schema


def _named(schema: Any) -> Iterator[str]:
    """Yields names of the definitions that a converted schema refers to."""
    if is_dict(schema) and isinstance(schema.get("$ref"), str):
        yield schema["$ref"].removeprefix("#/$defs/")
    for one in schema.values() if is_dict(schema) else schema if is_list(schema) else ():
        yield from _named(one)


def _converted(schema: Any) -> Any:
    """Converts the dialect of OpenAPI 3.0 to JSON schema."""
    if is_list(schema):
        return [_converted(one) for one in schema]
    if not is_dict(schema):
        return schema
    target = schema.get("$ref")
    if isinstance(target, str):
        if not target.startswith(_COMPONENT):
            raise UsageError(f"a schema refers to {target!r}; only {_COMPONENT}... can be followed")
        return {"$ref": "#/$defs/" + target.removeprefix(_COMPONENT)}
    made = {key: one if key in {"enum", "const", "default"} else _converted(one) for key, one in schema.items()}
    for limit in ("Minimum", "Maximum"):
        if isinstance(schema.get(f"exclusive{limit}"), bool) and made.pop(f"exclusive{limit}"):
            made[f"exclusive{limit}"] = made.pop(limit.lower())
    if made.pop("nullable", None) is True and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
        if "enum" in made and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
    return made


def _resolved(document: Document, one: Document) -> Document:
    for _ in range(20):
        if not isinstance(target := one.get("$ref"), str):
            return one
        one = _at(document, target)
    raise UsageError(f"a reference leads in a circle: {one}")


def _at(document: Document, pointer: str) -> Any:
    found: Any = document if pointer.startswith("#/") else None
    for key in pointer[2:].split("/"):
        name = key.replace("~1", "/").replace("~0", "~")
        if not is_dict(found) or name not in found:
            raise UsageError(f"the document refers to {pointer!r}, which is not in it")
        found = found[name]
    return found


def _is_json(media: str) -> bool:
    kind = media.partition(";")[0].strip().lower()
    return kind == JSON or kind.endswith("+json")
