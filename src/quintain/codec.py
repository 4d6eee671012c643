"""Canonical bytes: equal values give equal bytes, on every machine and in every process.

The only file that names an encoder. Values may hold *opaque* objects, which msgspec does not know: a `Handler` says
what stands for them in the bytes and how they come back.
"""

from __future__ import annotations

import functools
import hashlib
import math
import threading
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar, cast

import msgspec

T = TypeVar("T")

Encode = Callable[[Any], Any]
"""Opaque object to something encodable."""
Decode = Callable[[Any, Any], Any]
"""(declared type, what stood in the bytes) to the opaque object."""

_binary = msgspec.msgpack.Encoder(order="deterministic")
_unordered = msgspec.msgpack.Encoder()
_text = msgspec.json.Encoder(order="deterministic")
_building = threading.RLock()  # Looking into a type may run its module's code, which may come back here.


def dumps(value: Any, encode: Encode | None = None, *, canonical: bool = True) -> bytes:
    """Encode to MessagePack with dict and set order fixed; NaN survives (in JSON it would not).

    Args:
        value: What is to be encoded.
        encode: For the opaque objects in it.
        canonical: False leaves dicts in their own order, which is part of how a program goes on, and sets in any.

    Raises:
        TypeError: The value holds an object of a type that is neither known nor handled by `encode`; or, where the
            bytes are canonical, a dict with keys that are not strings.
    """
    if encode is None:
        return (_binary if canonical else _unordered).encode(value)
    order: Literal["deterministic"] | None = "deterministic" if canonical else None
    return msgspec.msgpack.Encoder(order=order, enc_hook=encode).encode(value)


def loads(data: bytes, type: type[T], decode: Decode | None = None) -> T:
    """Decode what `dumps` made.

    Raises:
        msgspec.DecodeError: The bytes are torn, or of another type; the message ends in the path.
    """
    try:
        if decode is None:
            value: T = _decoder(type).decode(data)
            return value
        learn(type)
        return msgspec.msgpack.Decoder(type, dec_hook=decode).decode(data)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"a string is not UTF-8: {error}") from error


def text(value: Any) -> str:
    """JSON text, as a model reads it; a string stays as it is.

    Raises:
        TypeError: The value is of a type that JSON has no form for.
        ValueError: It holds NaN or an infinity, which JSON would silently turn into null.
    """
    if isinstance(value, str):
        return value
    encoded = _text.encode(value)
    if b"null" in encoded:
        _refuse_non_finite(msgspec.to_builtins(value))
    return encoded.decode()


def json(value: Any) -> bytes:
    """JSON bytes without a line break, for records on disk."""
    return _text.encode(value)


def digest(data: bytes | memoryview) -> str:
    """128-bit BLAKE2b, 32 hex digits."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def learn(type: Any) -> None:
    """Look into a type now: msgspec 0.22 crashes when two threads look into one Struct type for the first time.

    Raises:
        TypeError: No value of it can be decoded.
    """
    _decoder(type)


@functools.lru_cache(maxsize=512)
def _built(type: Any) -> msgspec.msgpack.Decoder[Any]:
    with _building:
        return msgspec.msgpack.Decoder(type)


_decoder: Callable[[Any], msgspec.msgpack.Decoder[Any]] = _built  # Types are hashable; a cast would cost time.


def _refuse_non_finite(value: Any) -> None:
    match value:
        case float() if not math.isfinite(value):
            raise ValueError(f"JSON has no {value}")
        case dict():
            for item in value.values():  # pyright: ignore[reportUnknownVariableType]
                _refuse_non_finite(item)
        case list() | tuple() | set() | frozenset():
            for item in cast(Iterable[Any], value):
                _refuse_non_finite(item)
        case _:
            return
