"""Search over pages that the world holds: `web_search` by BM25, and `web_fetch`. Needs the extra `search`."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from quintain.errors import ToolError
from quintain.state import State
from quintain.table import Table
from quintain.tools import tool

FETCH_MAX = 8_000
"""Characters of a page that one call returns."""
SNIPPET_MAX = 160
_WORD = re.compile(r"\w+")
_INDEXES_MAX = 8


class Page(msgspec.Struct, frozen=True):
    """Page of a corpus; its address is its key in the table."""

    title: str
    text: str


class Hit(msgspec.Struct, frozen=True):
    """Page that a search found."""

    url: str
    title: str
    snippet: str


class CorpusTools(State):
    """Tools of `Corpus`, for a State with the same field (deterministic)."""

    if TYPE_CHECKING:
        pages: Table[Page]

    @tool(writes=())
    def web_search(
        self,
        query: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)],
        limit: Annotated[int, msgspec.Meta(ge=1, le=20)] = 5,
    ) -> list[Hit]:
        """Search the pages; the best match comes first.

        Args:
            query: Words to look for.
            limit: Most pages to return.
        """
        words = _words(query)
        return [
            Hit(url, (page := self.pages[url]).title, _snippet(page.text, words))
            for url in _index_of(self.pages).best(words, limit)
        ]

    @tool(writes=())
    def web_fetch(self, url: str, offset: Annotated[int, msgspec.Meta(ge=0)] = 0) -> str:
        """Read a page.

        Args:
            url: Its address, as a search shows it.
            offset: Characters to skip at the beginning of a long page.
        """
        if (page := self.pages.get(url)) is None:
            raise ToolError(f"no page has the address {url!r}; search for one")
        text = page.text[offset : offset + FETCH_MAX]
        left = len(page.text) - offset - len(text)
        return f"# {page.title}\n\n{text}" + (
            f"\n[{left} characters follow: offset={offset + len(text)}]" if left > 0 else ""
        )


class Corpus(CorpusTools):
    """Pages of a small web, by address, in which an agent searches and reads (deterministic)."""

    pages: Table[Page]


class _Index:
    """BM25 index of the pages of one table."""

    def __init__(self, pages: Table[Page]) -> None:
        try:
            bm25s: Any = importlib.import_module("bm25s")  # It has no types.
        except ImportError as error:
            raise ImportError("web_search needs an extra: pip install 'quintain[search]'") from error
        self._urls = list(pages)
        texts = [_words(f"{page.title} {page.text}") for page in pages.values()]
        self._known = {word for text in texts for word in text}
        self._engine: Any = bm25s.BM25()
        if self._known:
            self._engine.index(texts, show_progress=False)

    def best(self, words: list[str], limit: int) -> list[str]:
        """Returns the addresses of pages that hold a word, best first, equal ones in the order of the table."""
        words = [word for word in words if word in self._known]
        if not words:
            return []
        scores = [float(score) for score in self._engine.get_scores(words)]
        places = sorted((place for place, score in enumerate(scores) if score > 0), key=lambda place: -scores[place])
        return [self._urls[place] for place in places[:limit]]


_indexes: dict[Any, _Index] = {}


def _index_of(pages: Table[Page]) -> _Index:
    """Returns the index of a table's content, which worlds with the same pages share."""
    key = pages.content_key()
    if (found := _indexes.get(key)) is None:
        for old in list(_indexes)[: max(0, 1 + len(_indexes) - _INDEXES_MAX)]:
            _indexes.pop(old, None)
        found = _indexes[key] = _Index(pages)
    return found


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _snippet(text: str, words: list[str]) -> str:
    """Returns the part of a text around the first word that is found."""
    low = text.lower()
    first = min((place for word in words if (place := low.find(word)) >= 0), default=0)
    start = max(0, first - SNIPPET_MAX // 4)
    return " ".join(text[start : start + SNIPPET_MAX].split())
