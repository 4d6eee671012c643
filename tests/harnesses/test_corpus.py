"""Search over pages of the world: order, snippets, long pages, changed pages, and the missing extra."""

from __future__ import annotations

import sys

import pytest

import quintain as qn
from quintain.harnesses.corpus import FETCH_MAX, Corpus, Page

PAGES = {
    "a": Page("Owls", "Owls hunt at night. " + "They are silent. " * 20),
    "b": Page("Foxes", "Foxes hunt at dusk and owls do not fear them."),
    "c": Page("Lamps", "A lamp gives light."),
    "d": Page("Long", "x" * (FETCH_MAX + 10)),
    "e": Page("Foxes", "Foxes hunt at dusk and owls do not fear them."),
}


def corpus(pages: dict[str, Page] = PAGES) -> Corpus:
    return Corpus(pages=qn.Table(Page, pages))


def search(world: Corpus, query: str, limit: int = 5) -> list[str]:
    pytest.importorskip("bm25s", reason="pip install '.[search]'")
    return [hit.url for hit in world.web_search(query, limit)]


def test_a_search_ranks_pages_and_breaks_ties_by_their_order() -> None:
    world = corpus()
    assert search(world, "Lamp") == ["c"]
    assert search(world, "foxes, owls!") == ["b", "e", "a"]
    assert search(world, "foxes, owls!", limit=1) == ["b"]
    assert search(world, "zebra") == []
    assert search(world, "?") == []
    assert search(corpus({}), "owls") == []


def test_a_search_shows_the_text_around_a_word() -> None:
    assert search(corpus(), "fear") == ["b", "e"]
    (hit, _) = corpus().web_search("fear")
    assert (hit.title, hit.snippet) == ("Foxes", "Foxes hunt at dusk and owls do not fear them.")
    (hit,) = corpus({"a": Page("T", "word " * 100 + "zebra" + " word" * 100)}).web_search("zebra")
    assert hit.snippet.startswith("word word ")
    assert "zebra word" in hit.snippet
    assert len(hit.snippet) < 170


def test_a_search_sees_changed_pages_and_a_fork_does_not() -> None:
    world = corpus()
    twin = world.copy()
    assert search(world, "zebra") == []
    world.pages["z"] = Page("Zebras", "A zebra has stripes.")
    assert search(world, "zebra") == ["z"]
    assert search(twin, "zebra") == []
    for number in range(20):
        twin.pages[f"n{number}"] = Page("N", "zebra")
        assert search(twin, "zebra", limit=20) == [f"n{place}" for place in range(number + 1)][:20]


def test_a_page_is_read_in_parts() -> None:
    world = corpus()
    assert world.web_fetch("c") == "# Lamps\n\nA lamp gives light."
    first = world.web_fetch("d")
    assert first.endswith(f"\n[10 characters follow: offset={FETCH_MAX}]")
    assert world.web_fetch("d", offset=FETCH_MAX) == "# Long\n\n" + "x" * 10
    with pytest.raises(qn.ToolError, match="no page has the address 'x'; search for one"):
        world.web_fetch("x")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ImportError, match=r"pip install 'quintain\[search\]'"):
        corpus({"only": Page("Here", "unseen elsewhere")}).web_search("unseen")
