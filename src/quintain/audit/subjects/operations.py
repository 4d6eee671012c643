"""Operations of an OpenAPI document as tools, with one JSON schema for all arguments.

Reads OpenAPI 3.0 and 3.1. The dialect of 3.0 (`nullable`, boolean exclusive limits) becomes plain JSON schema, and
references to components become `$defs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from quintain.errors import UsageError

from .shapes import is_dict, is_list, series, table

METHODS = ("get", "put", "post", "delete", "patch", "head", "options")
JSON, FORM = "application/json", "application/x-www-form-urlencoded"
_COMPONENT = "#/components/schemas/"

Document = dict[str, Any]


class Operation(NamedTuple):
    """One operation.

    Attributes:
        name: Its operationId, or made of method and path; only letters, digits, "_" and "-".
        places: Argument to its place, ("path" | "query" | "header" | "cookie" | "body", name there); an argument that
            is the whole body has the name "".
        parameters: JSON schema of all arguments.
        media: Type of the body; empty without one.
        responses: Status ("200", "4XX", "default") to the JSON schema of its body.
    """

    name: str
    description: str
    method: str
    path: str
    places: dict[str, tuple[str, str]]
    parameters: dict[str, Any]
    media: str
    responses: dict[str, dict[str, Any]]

    @property
    def is_reset(self) -> bool:
        return self.name.lower() == "reset" or (self.method == "POST" and self.path.rstrip("/").endswith("/reset"))


def read(document: Document) -> list[Operation]:
    """Returns the operations of a document, in its order.

    Raises:
        UsageError: The document is not OpenAPI 3, or has a broken reference.
    """
    version = document.get("openapi")
    if not isinstance(version, str) or not version.startswith("3."):
        raise UsageError(
            f"only OpenAPI 3 can be read, this says openapi={version!r} swagger={document.get('swagger')!r}"
        )
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
    name = operation.get("operationId") or method + path
    given = _ArgumentCollector(document)
    for one in _parameters(document, shared, operation):
        given.parameter(one)
    media = given.body(_resolved(document, table(operation, "requestBody")))
    return Operation(
        name=re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_"),
        description="\n\n".join(filter(None, (operation.get("summary"), operation.get("description")))),
        method=method.upper(),
        path=path,
        places=given.places,
        parameters=given.schema(),
        media=media,
        responses=dict(_responses(document, operation)),
    )


def _parameters(document: Document, shared: Document, operation: Document) -> list[Document]:
    """Returns the parameters of the operation, and those of its path that it does not override."""
    known: dict[tuple[str, str], Document] = {}
    for one in (*series(shared, "parameters"), *series(operation, "parameters")):
        parameter = _resolved(document, one)
        known[parameter["in"], parameter["name"]] = parameter
    return list(known.values())


def _responses(document: Document, operation: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    for status, one in table(operation, "responses").items():
        for media, content in table(_resolved(document, one), "content").items():
            if _is_json(media) and "schema" in content:
                yield str(status), standalone(document, content["schema"])


class _ArgumentCollector:
    """Collector of an operation's arguments."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.places: dict[str, tuple[str, str]] = {}
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []
        self._is_open = False

    def parameter(self, one: Document) -> None:
        name = one["name"] if one["name"] not in self.places else f"{one['name']}_{one['in']}"
        contents = [one, *table(one, "content").values()]
        schema = next(filter(None, (table(content, "schema") for content in contents)), table({}, "schema"))
        described = {"description": one["description"]} if one.get("description") else {}
        self._properties[name] = described | _converted(schema)
        self.places[name] = (one["in"], one["name"])
        if one.get("required") or one["in"] == "path":
            self._required.append(name)

    def body(self, body: Document) -> str:
        """Adds the body's arguments and returns its media type, or ""."""
        contents = table(body, "content")
        if not contents:
            return ""
        media = next(filter(_is_json, contents), None) or (FORM if FORM in contents else next(iter(contents)))
        schema = table(contents[media], "schema")
        fields = _resolved(self._document, schema)
        is_flat = bool(fields.get("properties")) and not set(fields["properties"]) & set(self.places)
        if is_flat and not {"allOf", "anyOf", "oneOf"} & set(fields) and (_is_json(media) or media == FORM):
            self._properties |= {name: _converted(one) for name, one in fields["properties"].items()}
            self.places |= {name: ("body", name) for name in fields["properties"]}
            self._required += fields.get("required", ()) if body.get("required") else ()
            self._is_open = fields.get("additionalProperties", True) is not False
            return media
        name = "body" if "body" not in self.places else "request_body"
        self._properties[name] = _converted(schema)
        self.places[name] = ("body", "")
        if body.get("required"):
            self._required.append(name)
        return media

    def schema(self) -> dict[str, Any]:
        whole: dict[str, Any] = {"type": "object", "properties": self._properties, "required": self._required}
        if not self._is_open:
            whole["additionalProperties"] = False
        return _with_definitions(self._document, whole)


def standalone(document: Document, schema: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema of the document as plain JSON schema, with referenced schemas in `$defs`."""
    return _with_definitions(document, _converted(schema))


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
    if is_dict(schema):
        target = schema.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix("#/$defs/")
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
        if isinstance(schema.get(f"exclusive{limit}"), bool):
            is_exclusive = made.pop(f"exclusive{limit}")
            if is_exclusive:
                made[f"exclusive{limit}"] = made.pop(limit.lower())
    if made.pop("nullable", None) is True and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
        if "enum" in made and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
    return made


def _resolved(document: Document, one: Document) -> Document:
    """Returns the target of a reference, or the value itself."""
    for _ in range(20):
        target = one.get("$ref")
        if not isinstance(target, str):
            return one
        one = _at(document, target)
    raise UsageError(f"a reference leads in a circle: {one}")


def _at(document: Document, pointer: str) -> Any:
    if not pointer.startswith("#/"):
        raise UsageError(f"the document refers to {pointer!r}, which is not in it")
    found: Any = document
    for key in pointer[2:].split("/"):
        name = key.replace("~1", "/").replace("~0", "~")
        if not is_dict(found) or name not in found:
            raise UsageError(f"the document refers to {pointer!r}, which is not in it")
        found = found[name]
    return found


def _is_json(media: str) -> bool:
    kind = media.partition(";")[0].strip().lower()
    return kind == JSON or kind.endswith("+json")
