"""Search for the rows that may differ between two images, from the pages that differ.

SQLite stores a table in a B-tree: inner pages hold the numbers of their children, leaves hold rows in rowid order, and
a row that is too long for its leaf continues in overflow pages. A row of a table differs only if its leaf does, or
moved into another leaf, or one of its overflow pages differs in place. A table WITHOUT ROWID is stored as an index is:
its rows stand on the inner pages too, in the order of their key, which comes first in each of them. Page numbers begin
at 1 here, as in the file. The format is described in
https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from .pages import SIZE, Base, PageImage

_INNER = {2, 5}
_TABLE = 13
"""Type of the leaves of a table, unlike those of an index."""
_UTF8 = 1
_WIDTHS = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
"""Bytes of a value, by its type: nothing, integers, a float, and the integers 0 and 1."""


class Tree(NamedTuple):
    """Numbers of the pages of one tree, without overflow pages."""

    inner: frozenset[int]
    leaves: frozenset[int]


class Touched(NamedTuple):
    """Rows and pages of one table that may differ."""

    rows: set[Any]
    """Rowids; for a table WITHOUT ROWID the values of its key."""
    pages: set[int]
    """Changed pages that are accounted for by these rows."""


def tree(image: PageImage, root: int) -> Tree:
    """Returns the tree below a root. Walks it once for all images whose inner pages are those of the base."""
    known: Tree | None = image.trees.get(root)
    if known is not None:
        return known
    page, start = image.written(root - 1), _start(root)
    if page is not None and page.data[start] not in _INNER:
        return Tree(frozenset(), frozenset((root,)))
    if page is None or page.data[start:] == image.base.page(root - 1)[start:]:
        found = base_tree(image.base, root)
        if all(number == root or image.written(number - 1) is None for number in found.inner):
            return found
    image.trees[root] = found = _walk(image, root)
    return found


def base_tree(base: Base, root: int) -> Tree:
    """Returns the tree below a root of the base; walks it once."""
    found: Tree | None = base.trees.get(root)
    if found is None:
        found = base.trees[root] = _walk(PageImage(base), root)
    return found


def pages(image: PageImage, root: int) -> set[int]:
    """Returns all pages of the tree below a root, with the overflow pages of a table's rows."""
    found = tree(image, root)
    every = {*found.inner, *found.leaves}
    for number in found.leaves:
        page = image.page(number - 1)
        for _, _, overflow in _rows(page, number, _usable(image)) if page[_start(number)] == _TABLE else ():
            every.update(_chain(image, overflow))
    return every


def free(image: PageImage) -> set[int]:
    """Pages on the free list."""
    found: set[int] = set()
    trunk = int.from_bytes(image.page(0)[32:36], "big")
    while trunk and trunk not in found:
        page = image.page(trunk - 1)
        found.add(trunk)
        found.update(_number(page, 8 + 4 * place) for place in range(min(_number(page, 4), SIZE // 4 - 2)))
        trunk = _number(page, 0)
    return found


def touched(before: PageImage, after: PageImage, *, root: int, changed: set[int]) -> Touched:
    """Returns rows of a rowid table on leaves that differ, or that are in one of the two trees only."""
    old = tree(before, root)
    if changed.isdisjoint(old.inner) and changed.isdisjoint(old.leaves):
        return Touched(set(), set())
    new = old if root not in changed and changed.isdisjoint(old.inner) else tree(after, root)
    accounted = changed & (old.inner | new.inner)
    stored: list[dict[Any, Any]] = []
    for image, mine, other in ((before, old, new), (after, new, old)):
        leaves = changed & mine.leaves
        if mine is not other:
            leaves |= mine.leaves - other.leaves
        accounted |= leaves
        usable = _usable(image)
        rows: dict[Any, Any] = {}
        for number in leaves:
            for rowid, local, overflow in _rows(image.page(number - 1), number, usable):
                rows[rowid] = local
                if overflow:
                    accounted.update(chain := _chain(image, overflow))
                    rows[rowid] = local, [image.page(one - 1) for one in chain]
        stored.append(rows)
    return Touched(_different(*stored), accounted)


def continued(image: PageImage, root: int) -> Iterator[tuple[int, set[int]]]:
    """Yields the rowid and the overflow pages of each long row on leaves that were written since the base."""
    written = {page + 1 for layer in image.layers for page in layer}
    for number in sorted(tree(image, root).leaves & written):
        for rowid, _, overflow in _rows(image.page(number - 1), number, _usable(image)):
            if overflow:
                yield rowid, set(_chain(image, overflow))


def touched_keys(before: PageImage, after: PageImage, *, root: int, width: int, changed: set[int]) -> Touched | None:
    """Returns the same for a table WITHOUT ROWID with a key of `width` columns.

    None if the file's text is not UTF-8.
    """
    if not all(image.page(0)[59] == _UTF8 for image in (before, after)):
        return None
    old, new = tree(before, root), tree(after, root)
    accounted: set[int] = set()
    stored: list[dict[Any, Any]] = []
    for image, mine, other in ((before, old, new), (after, new, old)):
        pages = mine.inner | mine.leaves
        differing = changed & pages
        if mine is not other:
            differing |= pages - other.inner - other.leaves
        accounted |= differing
        rows: dict[Any, Any] = {}
        for number in differing:
            for record, overflow in _records(image, number):
                rows[_values(record, width)] = record
                accounted |= overflow
        stored.append(rows)
    return Touched(_different(*stored), accounted)


def _different(before: dict[Any, Any], after: dict[Any, Any]) -> set[Any]:
    """Returns rows that are not stored in the same bytes; whether they differ is SQLite's to say."""
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def _walk(image: PageImage, root: int) -> Tree:
    level, inner = [root], set[int]()
    while image.page(level[0] - 1)[_start(level[0])] in _INNER:
        if not inner.isdisjoint(level):
            raise ValueError("a tree that contains itself: these are not the pages of a database")
        inner.update(level)
        level = [child for number in level for child in _children(image, number)]
    return Tree(frozenset(inner), frozenset(level))


def _children(image: PageImage, number: int) -> tuple[int, ...]:
    """Returns the children of an inner page, parsed once for each content of the page."""
    written = image.written(number - 1)
    if written is None:
        known = image.base.children.get(number)
        if known is None:
            known = image.base.children[number] = _parsed(image.base.page(number - 1), number)
        return known
    if written.children is None:
        written.children = _parsed(written.data, number)
    return written.children


def _parsed(page: bytes, number: int) -> tuple[int, ...]:
    start = _start(number)
    cells = struct.iter_unpack(">H", page[start + 12 : start + 12 + 2 * _short(page, start + 3)])
    return *(_number(page, cell) for (cell,) in cells), _number(page, start + 8)


def _start(number: int) -> int:
    """Returns where the header of a tree's page begins, in bytes: page 1 has the header of the file first."""
    return 100 if number == 1 else 0


def _rows(page: bytes, number: int, usable: int) -> Iterator[tuple[int, bytes, int]]:
    """(rowid, what stands of it on the page, first overflow page or 0) of each row of a table's leaf."""
    most = usable - 35
    least = (usable - 12) * 32 // 255 - 23
    start = _start(number)
    for place in range(_short(page, start + 3)):
        size, at = _varint(page, _short(page, start + 8 + 2 * place))
        rowid, at = _varint(page, at)
        local, overflow = size, 0
        if size > most:
            local = least + (size - least) % (usable - 4)
            local = local if local <= most else least
            overflow = _number(page, at + local)
        yield rowid - 2**64 if rowid >= 2**63 else rowid, page[at : at + local], overflow


def _records(image: PageImage, number: int) -> Iterator[tuple[bytes, set[int]]]:
    """(record, its overflow pages) of each row on a page of a table WITHOUT ROWID."""
    page, usable = image.page(number - 1), _usable(image)
    is_inner = page[0] in _INNER
    most = (usable - 12) * 64 // 255 - 23
    least = (usable - 12) * 32 // 255 - 23
    for place in range(_short(page, 3)):
        at = _short(page, (12 if is_inner else 8) + 2 * place) + (4 if is_inner else 0)
        size, at = _varint(page, at)
        if size <= most:
            yield page[at : at + size], set()
            continue
        local = least + (size - least) % (usable - 4)
        local = local if local <= most else least
        overflow = _chain(image, _number(page, at + local))
        rest = b"".join(image.page(one - 1)[4:usable] for one in overflow)
        yield (page[at : at + local] + rest)[:size], set(overflow)


def _values(record: bytes, width: int) -> tuple[Any, ...]:
    """Returns the first values of a record."""
    end, at = _varint(record, 0)
    kinds: list[int] = []
    while at < end and len(kinds) < width:
        kind, at = _varint(record, at)
        kinds.append(kind)
    found: list[Any] = []
    at = end
    for kind in kinds:
        size = _WIDTHS[kind] if kind < len(_WIDTHS) else (kind - 12) // 2
        found.append(_value(kind, record[at : at + size]))
        at += size
    return tuple(found)


def _value(kind: int, data: bytes) -> Any:
    if kind == 0:
        return None
    if kind == 7:
        return struct.unpack(">d", data)[0]
    if kind in {8, 9}:
        return kind - 8
    if kind < 7:
        return int.from_bytes(data, "big", signed=True)
    return data.decode() if kind % 2 else data


def _chain(image: PageImage, number: int) -> dict[int, None]:
    """Overflow pages, in order."""
    found: dict[int, None] = {}
    while number and number not in found:
        found[number] = None
        number = _number(image.page(number - 1), 0)
    return found


def _usable(image: PageImage) -> int:
    return SIZE - image.page(0)[20]


def _varint(page: bytes, at: int) -> tuple[int, int]:
    value = 0
    for _ in range(8):
        byte = page[at]
        at += 1
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at
    return value << 8 | page[at], at + 1


def _number(page: bytes, at: int) -> int:
    return int.from_bytes(page[at : at + 4], "big")


def _short(page: bytes, at: int) -> int:
    return int.from_bytes(page[at : at + 2], "big")
