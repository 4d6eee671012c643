"""Requests of an agent program to its model, in any of the APIs, and refusals of them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Protocol, TypeVar

import msgspec

from quintain.harness import Request
from quintain.trace import Block, Content, Image, Message, Reply, Text

T = TypeVar("T")

Longest = Annotated[int, msgspec.Meta(ge=1)]
"""Tokens of a reply, at most."""

Some = Annotated[list[T], msgspec.Meta(min_length=1)]
"""List of at least one; an empty context is the program's mistake, not the model's."""

_DATA_URL = re.compile(r"data:(?P<type>image/[\w.+-]+);base64,(?P<data>.*)", re.DOTALL)


class Offered(msgspec.Struct, frozen=True):
    """A function that the program lets its model call, in the program's own words."""

    name: str
    description: str
    parameters: dict[str, Any]
    space: str = ""
    """The namespace that its name begins with, where the program keeps it in one."""


class ApiRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request.

    Attributes:
        model: The name that the program gave; it is only said back.
        messages: The context, oldest first.
        tools: What may be called; empty also where the program asks for words alone. Those that a provider would run
            itself are shut like any that are not allowed.
        stream: Whether the reply is wanted in events.
        max_tokens: Longest reply that the program wants.
        counted: Whether the events shall end in the number of tokens.
        instructions: A system prompt that is for this request alone, and stands before the rest.
        after: The id of the response that this request goes on from.
        stop: Texts at which the reply ends.
        tool_choice: Empty if the model may call a tool, "*" if it has to call any, else the tool that it has to call.
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
    """Request of an agent program, with options that a harness does not have.

    Attributes:
        stop: Texts at which the reply ends; they are not part of it.
        tool_choice: Empty if the model may call a tool, "*" if it has to call any, else the tool that it has to call.
    """

    stop: tuple[str, ...] = ()
    tool_choice: str = ""


class Refusal(Exception):
    """The request is refused: the program's mistake, or it comes too late."""

    def __init__(self, message: str, *, status: int = 400, code: str = "invalid_request") -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Format(Protocol):
    """One API: each is a module of this package."""

    def read(self, data: bytes) -> ApiRequest:
        """Understand a request.

        Raises:
            Refusal: It is malformed, or wants what cannot be had here.
        """
        ...

    def whole(self, asked: ApiRequest, reply: Reply, name: str) -> dict[str, Any]:
        """Returns the reply as one document with this name."""
        ...

    def events(self, asked: ApiRequest, reply: Reply, name: str) -> Iterator[bytes]:
        """The reply as the frames of a stream."""
        ...

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """A refusal as a document."""
        ...

    def broken(self, refusal: Refusal) -> bytes:
        """A refusal as the last frame of a stream that has begun."""
        ...


def decoded(data: bytes, type_: type[T]) -> T:
    """Returns a body as the type that it must be.

    Raises:
        Refusal: It is not JSON, or does not fit.
    """
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(f"the request does not fit: {error}") from error


def converted(value: object, type_: type[T]) -> T:
    """A part of a body as the type it must be.

    Raises:
        Refusal: It does not fit.
    """
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise Refusal(f"the request does not fit: {error}") from error


def content(blocks: Sequence[Block]) -> Content:
    """Blocks as the record has them: what is one piece of text is plain text."""
    if not blocks:
        return ""
    first = blocks[0]
    return first.text if len(blocks) == 1 and isinstance(first, Text) else tuple(blocks)


def picture(url: str) -> Image:
    """A picture from a data URL.

    Raises:
        Refusal: It lies elsewhere, or is none.
    """
    match = _DATA_URL.fullmatch(url)
    if match is None:
        raise Refusal("a picture must come within the request, as data:image/...;base64,...: nothing is fetched")
    return image(match["type"], match["data"])


def image(media_type: str, data: str) -> Image:
    """A picture from its base64.

    Raises:
        Refusal: It is none.
    """
    try:
        return Image(media_type, base64.b64decode(data, validate=True))
    except binascii.Error as error:
        raise Refusal(f"a picture that is not base64: {error}") from error


def openai_error(refusal: Refusal) -> dict[str, Any]:
    """A refusal as both of OpenAI's APIs say it."""
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
    kind = kinds.get(refusal.status, "invalid_request_error" if refusal.status < 500 else "server_error")
    return {"error": {"message": str(refusal), "type": kind, "param": None, "code": refusal.code}}


def unsupported(name: str, why: str) -> Refusal:
    """Returns the refusal of an option that this endpoint cannot honour."""
    return Refusal(f"{name} is not supported here: {why}", code="unsupported_parameter")


def frame(data: bytes, event: str = "") -> bytes:
    """One server-sent event."""
    head = b"event: %s\n" % event.encode() if event else b""
    return b"%sdata: %s\n\n" % (head, data)


def pieces(text: str, size: int = 4096) -> Iterator[str]:
    """A text in pieces that a client can read line by line."""
    for start in range(0, len(text), size):
        yield text[start : start + size]
