"""Requests of an agent program to its model, in any of the APIs, and refusals of them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

import msgspec

from quintain import codec
from quintain.harness import Request
from quintain.trace import Block, Content, Image, Message, Reply, Text

T = TypeVar("T")

Longest = Annotated[int, msgspec.Meta(ge=1)]
"""Maximum number of tokens of a reply."""

Some = Annotated[list[T], msgspec.Meta(min_length=1)]
"""List with at least one item; an empty context is the program's mistake, not the model's."""

CONFIGURED = "the model is asked as the environment's configuration says"
"""Reason for which the format of replies is not an option."""

_DATA_URL = re.compile(r"data:(image/[\w.+-]+);base64,(.*)", re.DOTALL)


class Offered(msgspec.Struct, frozen=True):
    """Function that the program offers its model; `space` is the namespace that its name begins with, if any."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    space: str = ""


class Picture(msgspec.Struct):
    """Address of an image in chat completions, or its data in messages."""

    url: str = ""
    type: str = ""
    media_type: str = ""
    data: str = ""


class Part(msgspec.Struct):
    """Piece of content in any of the APIs; a subclass names the types of its API."""

    types: ClassVar[tuple[str, ...]] = ()
    supported: ClassVar[str] = "there are words and pictures"

    type: str
    text: str = ""
    refusal: str = ""
    image_url: Picture | str | None = None
    source: Picture | None = None


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Request in any of the APIs.

    `messages` is the context, oldest first, and `instructions` its system prompt for this request alone. `after` is the
    ID of the response that the request continues. `tools` lacks those of a provider. `tool_choice` is empty if the
    model may call a tool, "*" if it has to call any, else the tool that it has to call. A `counted` stream ends with
    the number of tokens.
    """

    model: str
    messages: tuple[Message, ...]
    instructions: str = ""
    tools: tuple[Offered, ...] = ()
    stream: bool = False
    max_tokens: int | None = None
    counted: bool = True
    after: str | None = None
    stop: tuple[str, ...] = ()
    tool_choice: str = ""


class ProgramRequest(Request, frozen=True, kw_only=True):
    """Request of an agent program, with the options `stop` and `tool_choice` of `ApiRequest`."""

    stop: tuple[str, ...] = ()
    tool_choice: str = ""


class Refusal(Exception):
    """Refusal of a request: the program made a mistake, or the request comes too late."""

    def __init__(self, message: str, *, status: int = 400, code: str = "invalid_request") -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Format(Protocol):
    """API of a model; the modules `chat`, `messages` and `responses` implement it.

    `read` raises Refusal for a body that is malformed or has an option that is not supported. `whole` returns a reply
    as one document with this name, and `events` as the frames of a stream. `error` returns a refusal as a document,
    and `broken` as the last frame of a stream that has begun.
    """

    def read(self, data: bytes) -> ApiRequest: ...
    def whole(self, asked: ApiRequest, reply: Reply, name: str) -> dict[str, Any]: ...
    def events(self, asked: ApiRequest, reply: Reply, name: str) -> Iterator[bytes]: ...
    def error(self, refusal: Refusal) -> dict[str, Any]: ...
    def broken(self, refusal: Refusal) -> bytes: ...


def decoded(data: bytes, type_: type[T]) -> T:
    """Returns a body as this type; raises Refusal if it is not JSON or does not fit."""
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(f"the request does not fit: {error}") from error


def refuse(*options: tuple[object, str, str]) -> None:
    """Raises Refusal for the first option that is given: a true value if it is, its name, and the reason."""
    for given, name, why in options:
        if given:
            raise unsupported(name, why)


def unsupported(name: str, why: str) -> Refusal:
    """Returns the refusal of an option that this endpoint does not support."""
    return Refusal(f"{name} is not supported here: {why}", code="unsupported_parameter")


def content(parts: str | Sequence[Part] | None) -> Content:
    """Returns content as the record has it, in which one piece of text is a plain string."""
    return parts or "" if isinstance(parts, str | None) else joined([block(part) for part in parts])


def joined(blocks: Sequence[Block]) -> Content:
    """Returns blocks as content."""
    if len(blocks) == 1 and isinstance(blocks[0], Text):
        return blocks[0].text
    return tuple(blocks) or ""


def block(part: Part) -> Block:
    """Returns a text or an image; raises Refusal for other parts and for images outside the request."""
    kind = part.type if part.type in part.types else ""
    url = part.image_url.url if isinstance(part.image_url, Picture) else part.image_url
    if kind and "image" not in kind:
        return Text(part.text or part.refusal)
    if kind == "image" and part.source is not None and part.source.type == "base64":
        media_type, data = part.source.media_type, part.source.data
    elif kind in {"image_url", "input_image"} and url is not None:
        match = _DATA_URL.fullmatch(url)
        if match is None:
            raise Refusal("a picture must come within the request, as data:image/...;base64,...: nothing is fetched")
        media_type, data = match.groups()
    else:
        raise unsupported(f"content of type {part.type!r}", part.supported)
    try:
        return Image(media_type, base64.b64decode(data, validate=True))
    except ValueError as error:
        raise Refusal(f"a picture that is not base64: {error}") from error


_KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}


def error_type(refusal: Refusal, server: str) -> str:
    """Returns the error type that the APIs have in common; `server` is the type of a server's own errors."""
    return _KINDS.get(refusal.status, "invalid_request_error" if refusal.status < 500 else server)


def openai_error(refusal: Refusal) -> dict[str, Any]:
    """Returns a refusal as the error document of both OpenAI APIs."""
    type_ = error_type(refusal, "server_error")
    return {"error": {"message": str(refusal), "type": type_, "param": None, "code": refusal.code}}


def frame(document: object, event: str = "") -> bytes:
    """Returns one server-sent event."""
    return b"%sdata: %s\n\n" % (b"event: %s\n" % event.encode() if event else b"", codec.json(document))


def pieces(text: str, size: int = 4096) -> Iterator[str]:
    """Yields a text in pieces that a client can read line by line."""
    for start in range(0, len(text), size):
        yield text[start : start + size]
