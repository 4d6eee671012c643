"""Gymnasium's spaces: the types of their elements as JSON, JSON as elements, and elements as plain data.

Spaces are recognised by class name, so that Gymnasium need not be imported.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from quintain.errors import UsageError
from quintain.plugins import package

SUPPORTED = ("Discrete", "MultiDiscrete", "MultiBinary", "Box", "Text", "Tuple", "Dict")
"""Classes of action spaces that have a JSON schema."""

_COLOURS = {1: 0, 3: 2, 4: 6}
"""Channels to the colour type of a PNG file: grey, RGB, RGB with alpha."""


def type_of(space: Any, name: str) -> Any:
    """Returns the type of a space's elements as JSON, with their limits.

    Args:
        space: An action space.
        name: Name of the types that are made for spaces of class Dict; those inside have it as their prefix.

    Raises:
        UsageError: The space, or one inside it, is not of a class in `SUPPORTED`.
    """
    match _kind(space):
        case "Discrete" | "MultiDiscrete" as kind:
            count = space.n if kind == "Discrete" else space.nvec
            return _limited(int, space.start.tolist(), (space.start + count - 1).tolist())
        case "Box" | "MultiBinary" as kind:
            zeros = package("numpy", extra="gymnasium").zeros(space.shape, space.dtype)
            low, high = (space.low, space.high) if kind == "Box" else (zeros, zeros + 1)
            return _limited(float if zeros.dtype.kind == "f" else int, low.tolist(), high.tolist())
        case "Text":
            return Annotated[str, msgspec.Meta(min_length=space.min_length, max_length=space.max_length)]
        case "Tuple":
            return tuple[tuple(type_of(one, f"{name}_{n}") for n, one in enumerate(space.spaces))]  # type: ignore[misc]
        case "Dict":
            fields = [(f"field{n}", type_of(one, f"{name}_{n}")) for n, one in enumerate(space.spaces.values())]
            names = {field: str(key) for (field, _), key in zip(fields, space.spaces, strict=True)}
            return msgspec.defstruct(name, fields, rename=names, forbid_unknown_fields=True, module=__name__)
        case kind:
            raise UsageError(f"actions of {kind or space} are not supported; supported: {', '.join(SUPPORTED)}")


def element(space: Any, data: Any) -> Any:
    """Returns plain data, of the type that `type_of` made, as an element; it may still be outside the space."""
    match _kind(space):
        case "Tuple":
            return tuple(element(one, item) for one, item in zip(space.spaces, data, strict=True))
        case "Dict":
            return {key: element(one, data[str(key)]) for key, one in space.spaces.items()}
        case _:
            return space.from_jsonable([data])[0]


def plain(value: Any) -> Any:
    """Returns an element as plain data: numbers and arrays of NumPy become numbers and lists."""
    data: Any = value
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in data.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in data]
    return value.tolist() if hasattr(value, "tolist") else value


def is_picture(space: Any) -> bool:
    """True for a Box of all bytes with height, width and, as the third axis, 1, 3 or 4 channels."""
    if _kind(space) != "Box" or str(space.dtype) != "uint8" or space.low.any() or (space.high != 255).any():
        return False
    height, width, channels = (*space.shape, 1)[:3] if len(space.shape) in {2, 3} else (0, 0, 0)
    return height > 0 and width > 0 and channels in _COLOURS


def png(pixels: Any) -> bytes:
    """Returns an element of a picture space as a PNG file (W3C PNG, third edition): 8 bits, no filter.

    Equal pixels give equal bytes with the same build of zlib.
    """
    height, width, channels = (*pixels.shape, 1)[:3]
    rows = pixels.reshape(height, width * channels)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), 9)
    chunks = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    framed = (struct.pack(">I", len(c)) + name + c + struct.pack(">I", zlib.crc32(name + c)) for name, c in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def _kind(space: Any) -> str:
    """Returns the name of the first of a space's classes that is Gymnasium's own; empty if none is."""
    return next((one.__name__ for one in type(space).__mro__ if one.__module__.startswith("gymnasium.spaces.")), "")


def _limited(number: type, low: Any, high: Any) -> Any:
    """Returns the type of a number, or of nested lists of numbers, between the limits in `low` and `high`."""
    if isinstance(low, int | float):
        sides: dict[str, Any] = {"ge": low, "le": high}
        limits = {side: limit for side, limit in sides.items() if math.isfinite(limit)}
        return Annotated[number, msgspec.Meta(**limits)] if limits else number
    items = [_limited(number, *pair) for pair in zip(low, high, strict=True)]
    if any(item != items[0] for item in items):
        return tuple[tuple(items)]  # type: ignore[misc]
    item: Any = items[0]
    return Annotated[list[item], msgspec.Meta(min_length=len(items), max_length=len(items))]
