"""The events of the Open Reward Standard: one JSON document, cut into frames that its clients put together again.

Both of its clients strip the white space before a frame's data. So no frame may begin with any: a space at a cut is
written as its escape, which JSON allows wherever white space can stand at a cut at all, within a string.
"""

from __future__ import annotations

from collections.abc import Iterator

MOST = 32_000
"""Characters of a frame: one line of its clients' readers takes no more than 128 KiB."""

_ESCAPED = {" ": "\\u0020", "\u00a0": "\\u00a0", "\u3000": "\\u3000"}


def task(key: str) -> bytes:
    """The first frame: under which key the answer can be asked for again."""
    return f"event: task_id\r\ndata: {key}\r\n\r\n".encode()


def end(data: str = "") -> bytes:
    """A last frame."""
    return f"event: end\r\ndata: {data}\r\n\r\n".encode()


def error(words: str) -> bytes:
    """The frame of an episode that is void, a data line per line."""
    lines = words.splitlines() or [""]
    return ("event: error\r\n" + "".join(f"data: {line}\r\n" for line in lines) + "\r\n").encode()


def cut(document: str) -> Iterator[bytes]:
    """The frames of a compact JSON document, the last of which is the end."""
    if len(document) <= MOST:
        yield end(document)
        return
    start = 0
    lead = ""
    while len(document) - start > MOST:
        stop = start + MOST
        yield f"event: chunk\r\ndata: {lead}{document[start:stop]}\r\n\r\n".encode()
        start = stop
        first = document[start]
        lead = _ESCAPED.get(first, f"\\u{ord(first):04x}") if first.isspace() else ""
        start += bool(lead)
    yield end(lead + document[start:])
