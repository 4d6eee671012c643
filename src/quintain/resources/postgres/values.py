"""Conversion of values: PostgreSQL's become those that SQLite would return: numbers, text, bytes, None.

Dates and times are ISO text, with `+00:00` if a zone is known; booleans are 1 and 0; JSON is text in one spelling, with
sorted keys; a numeric is an integer if it has no fraction, else a float.
"""

from __future__ import annotations

from typing import Any

import msgspec
import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Dumper, Loader
from psycopg.types.numeric import FloatLoader, IntLoader
from psycopg.types.string import ByteaLoader, TextLoader


class _Truth(Loader):
    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _Numeric(Loader):
    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


class _Json(Loader):
    def load(self, data: Buffer) -> str:
        return msgspec.json.encode(msgspec.json.decode(bytes(data)), order="deterministic").decode()


class _Timestamp(Loader):
    """PostgreSQL writes `+00`; the connection's zone is UTC."""

    def load(self, data: Buffer) -> str:
        text = bytes(data).decode()
        return f"{text}:00" if text[-3:-2] in "+-" else text


class _Flag(Dumper):
    """Without a type, so that it is true for a boolean and 1 for a number."""

    oid = 0

    def dump(self, obj: Any) -> bytes:
        return b"1" if obj else b"0"


_LOADERS: dict[str, type[Loader]] = {
    "bool": _Truth,
    "int2": IntLoader,
    "int4": IntLoader,
    "int8": IntLoader,
    "oid": IntLoader,
    "float4": FloatLoader,
    "float8": FloatLoader,
    "numeric": _Numeric,
    "bytea": ByteaLoader,
    "jsonb": _Json,
    "timestamptz": _Timestamp,
    "timetz": _Timestamp,
}


def _adapters() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    for info in adapters.types:
        adapters.register_loader(info.oid, _LOADERS.get(info.name, TextLoader))
        if info.array_oid:
            adapters.register_loader(info.array_oid, TextLoader)
    adapters.register_dumper(bool, _Flag)
    return adapters


ADAPTERS = _adapters()
