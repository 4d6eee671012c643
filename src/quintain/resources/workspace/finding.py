"""Files by a pattern of their paths, and lines by what they hold."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator

import msgspec

from quintain.errors import ToolError

from .content import Content
from .images import FILE, Entry, TreeImage
from .paths import parts, raw, text

_LARGEST = 2**24
"""Bytes of a file that is still searched."""


class Match(msgspec.Struct, frozen=True):
    """A line that was searched for.

    Attributes:
        path: Of the file.
        line: Its number, from 1.
        text: The line without its end.
    """

    path: str
    line: int
    text: str


def glob(image: TreeImage, pattern: str) -> Iterator[bytes]:
    """Returns paths that a pattern names, rising.

    Raises:
        ToolError: The pattern leads outside.
    """
    names = parts(raw(pattern))
    if b".." in names:
        raise ToolError("a pattern cannot hold '..'")
    fits = _matcher(names)
    literal: list[bytes] = []
    for name in names[:-1]:
        if not {b"*", b"?", b"["}.isdisjoint(name[at : at + 1] for at in range(len(name))):
            break
        literal.append(name)
    return (path for path, _ in image.below(b"/".join(literal)) if fits(path))


def search(image: TreeImage, what: str | re.Pattern[str], at: bytes, *, glob: str, limit: int) -> list[Match]:
    """Returns lines of the files below `at`, or of the file `at`, that hold something."""
    if not what:
        raise ToolError("there is nothing to search for")
    holds = _holder(what)
    fits = _matcher(parts(raw(glob)))
    entry = image.get(at)
    several: Iterator[tuple[bytes, Entry]] = iter([(at, entry)]) if entry and entry.kind == FILE else image.below(at)
    found: list[Match] = []
    for path, one in several:
        if one.kind != FILE or one.content.size > _LARGEST or not fits(path):
            continue
        for number, line in _lines(one.content, what):
            if holds(line):
                found.append(Match(text(path), number, line))
                if len(found) >= limit:
                    return found
    return found


def _lines(held: Content, what: str | re.Pattern[str]) -> Iterator[tuple[int, str]]:
    data = held.read(0, held.size)
    if b"\0" in data or (isinstance(what, str) and what.encode("utf-8", "surrogatepass") not in data):
        return
    try:
        whole = data.decode()
    except UnicodeDecodeError:
        return
    for number, line in enumerate(whole.split("\n"), 1):
        yield number, line.removesuffix("\r")


def _holder(what: str | re.Pattern[str]) -> Callable[[str], bool]:
    if isinstance(what, str):
        return lambda line: what in line
    return lambda line: what.search(line) is not None


def _matcher(names: list[bytes]) -> Callable[[bytes], bool]:
    """Returns a test of paths against a pattern. Names are matched one by one, so no pattern takes exponential time."""
    wanted = [None if name == b"**" else re.compile(fnmatch.translate(text(name))) for name in names]

    def fits(path: bytes) -> bool:
        # Places in the pattern that can be next, as in the simulation of a finite automaton (Thompson 1968).
        places = _skipped({0}, wanted)
        for name in text(path).split("/"):
            following: set[int] = set()
            for place in places:
                if place == len(wanted):
                    continue
                one = wanted[place]
                if one is None:
                    following.add(place)
                elif one.match(name):
                    following.add(place + 1)
            places = _skipped(following, wanted)
        return len(wanted) in places

    return fits


def _skipped(places: set[int], wanted: list[re.Pattern[str] | None]) -> set[int]:
    """With those behind a `**`, which may stand for no folder."""
    everything = set(places)
    for place in sorted(places):
        at = place
        while at < len(wanted) and wanted[at] is None:
            at += 1
            everything.add(at)
    return everything
