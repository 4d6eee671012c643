"""Frames of the Open Reward Standard: one JSON document, cut into events that its clients put together again.

Both of its clients strip the white space before a frame's data. So no frame may begin with any: a space at a cut is
written as its escape, which JSON allows wherever white space can stand at a cut at all, within a string.
"""

from __future__ import annotations

from collections.abc import Iterator

MOST = 32_000
"""Bytes of a document in one frame, which has less than 32 KiB with all else: its clients' readers take more."""


def task(key: str) -> bytes:
    """Returns the first frame, with the key under which the answer can be read again."""
    return f"event: task_id\r\ndata: {key}\r\n\r\n".encode()


def end(data: str = "") -> bytes:
    """Returns a last frame."""
    return f"event: end\r\ndata: {data}\r\n\r\n".encode()


def error(words: str) -> bytes:
    """Returns the frame of a void episode, a data line per line."""
    lines = words.splitlines() or [""]
    return ("event: error\r\n" + "".join(f"data: {line}\r\n" for line in lines) + "\r\n").encode()


def cut(document: bytes) -> Iterator[bytes]:
    """Yields the frames of a compact JSON document, the last of which is the end."""
    start = 0
    lead = b""
    while len(document) - start > MOST:
        stop = start + MOST
        while document[stop] & 0xC0 == 0x80:  # It goes on with a character.
            stop -= 1
        yield b"event: chunk\r\ndata: %b%b\r\n\r\n" % (lead, document[start:stop])
        first = document[stop : stop + 4].decode(errors="ignore")[0]
        lead = b"\\u%04x" % ord(first) if first.isspace() else b""
        start = stop + (len(first.encode()) if lead else 0)
    yield b"event: end\r\ndata: %b%b\r\n\r\n" % (lead, document[start:])
