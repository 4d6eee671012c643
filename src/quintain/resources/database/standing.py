"""Queries on tables that seldom change: their rows are read once for all databases in which no page of them changed.

The content of an image never changes, so an answer holds for the image; and it holds for each image of a base as long
as no page was written that the query could read, which are the pages of the trees that its program opens.
"""

from __future__ import annotations

from typing import Any

from . import Database, trees
from .pages import PageImage

Rows = list[tuple[Any, ...]]
MOST = 4096
"""Answers that a base remembers at most; then it begins anew."""


def known(database: Database, sql: str, *values: Any) -> Rows:
    """Returns the rows that `execute` returns. They are shared: do not change them.

    The query must depend on nothing but rows: not on `random()`, the time, or a virtual table with tables of its own.
    """
    connection = database.mine()
    if connection is not None and not connection.is_clean:
        return connection.rows(sql, values)
    image, key = database.image, (sql, values)
    found: Rows | None = image.answers.get(key)
    if found is None:
        found = image.answers[key] = _of_base(database, sql, values)
    return found


def _of_base(database: Database, sql: str, values: tuple[Any, ...]) -> Rows:
    image, key = database.image, (sql, values)
    base, answers = image.base, image.base.answers
    pages: frozenset[int] | None = answers.get(sql)
    if pages is None:
        pages = answers[sql] = _pages(database, sql, values)
        base.standing |= pages
    if image.compared is not base.standing:
        image.compared, image.is_standing = base.standing, _is_as_base(image, base.standing)
    if not image.is_standing and not _is_as_base(image, pages):
        return database.execute(sql, *values)
    if key not in answers:
        if len(answers) >= MOST:
            answers.clear()
        answers[key] = database.execute(sql, *values)
    found: Rows = answers[key]
    return found


def _is_as_base(image: PageImage, pages: frozenset[int]) -> bool:
    return image.schema is image.base.schema and all(one.keys().isdisjoint(pages) for one in image.layers)


def _pages(database: Database, sql: str, values: tuple[Any, ...]) -> frozenset[int]:
    """Returns the pages of the base, from 0, that a query could read."""
    image = PageImage(database.image.base)
    found: set[int] = set()
    for _, operation, _, root, *_ in database.execute(f"EXPLAIN {sql}", *values):
        if operation == "OpenRead":
            found |= trees.pages(image, root)
    return frozenset(number - 1 for number in found)
