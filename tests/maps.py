"""Laws of maps: a page or docstring that lists the modules of a folder lists all of them, and only these.

`python -m tests.maps` lists the violations, and the private modules that only one sibling imports.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tests.language import imported, modules_of
from tests.tidy import Source, sources

PAGES = ("CONTRIBUTING.md", "design/*.md")
"""Pages whose tables and file names are checked."""

RATCHET: dict[str, int] = {
    # The violations that a page or docstring may have. A count may shrink, and this table with it, never grow.
}

_CODE = re.compile(r"`([^`]+)`")
_OF = re.compile(r"\bof `(?P<folder>[\w./]+)`")
_ENTRY = re.compile(r"(?P<names>[a-z_][\w/]*(?:, [a-z_][\w/]*)*) {2,}\S")
_FILE = re.compile(r"`((?:[\w.-]+/)*\w+\.py)`")


class Map(NamedTuple):
    """The modules of one folder as a page or docstring lists them."""

    place: str
    """Path of the page or module."""
    folder: str
    """Path of the mapped folder, such as `src/quintain/audit`."""
    names: frozenset[str]


def page_maps(path: str, text: str) -> Iterator[Map]:
    """Yields the maps of a Markdown page: tables with a column `module`, `modules` or ``module of `folder` ``.

    A header that does not name the folder takes it from the heading above the table (``Modules of `serve` ``), and is
    about the package itself if that heading names none.
    """
    found: dict[str, set[str]] = defaultdict(set)
    heading, column, folder = "", None, ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading = line
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            column = None
        elif column is None:
            column = next((place for place, cell in enumerate(cells) if re.match(r"modules?\b", cell)), len(cells))
            named = _OF.search(cells[column]) or _OF.search(heading) if column < len(cells) else None
            folder = f"src/quintain/{named['folder']}" if named else "src/quintain"
        elif column < len(cells) and not set(cells[column]) <= set("-: "):
            found[folder] |= {name.rstrip("/") for name in _CODE.findall(cells[column])}
    yield from (Map(path, folder, frozenset(names)) for folder, names in found.items())


def docstring_map(source: Source) -> Map | None:
    """Returns the map in the docstring of a package: lines of names, two spaces or more, and words about them."""
    entries = [_ENTRY.match(line.strip()) for line in source.docstring.splitlines()]
    names = {name.rstrip("/") for entry in entries if entry for name in entry["names"].split(", ")}
    return Map(source.path, str(PurePosixPath(source.path).parent), frozenset(names)) if names else None


def faults(tree: Sequence[Source], pages: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yields (place, message) for each entry of a map without a module, and each public module without an entry."""
    pages = list(pages)
    paths = [source.path for source in tree]
    docstrings = (docstring_map(source) for source in tree if source.unit and source.path.endswith("/__init__.py"))
    for map_ in (*filter(None, docstrings), *(one for path, text in pages for one in page_maps(path, text))):
        modules = _modules(map_.folder, paths)
        for name in sorted(map_.names - modules):
            yield map_.place, f"{map_.place}: {map_.folder} has no module `{name}`; take it out of the map"
        for name in sorted(name for name in modules - map_.names if not name.startswith("_")):
            yield map_.place, f"{map_.place}: {map_.folder}/{name} is missing from the map; name it"
    for place, text in pages:
        for name in sorted(set(_FILE.findall(text))):
            if not any(f"/{path}".endswith(f"/{name}") for path in paths):
                yield place, f"{place}: the repository has no file `{name}`; correct the name"


def excess(found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yields a message for each page with more violations than `RATCHET` grants."""
    places: dict[str, list[str]] = defaultdict(list)
    for place, message in found:
        places[place].append(message)
    for place, messages in places.items():
        if len(messages) > RATCHET.get(place, 0):
            yield "\n".join((f"{place}: {len(messages)} violations, {RATCHET.get(place, 0)} are allowed", *messages))


def single_importers(tree: Sequence[Source]) -> Iterator[str]:
    """Yields each private module of `src` that exactly one module imports, which is a module of the same folder.

    Such a module needs a purpose of its own; where it has none, it is the rest of a file that was too long.
    """
    importers: dict[str, set[str]] = defaultdict(set)
    modules = modules_of(tree)
    for source in modules.values():
        for target in imported(source, modules):
            importers[target].add(source.path)
    for path, by in sorted(importers.items()):
        file, first = PurePosixPath(path), min(by)
        is_private = file.name.startswith("_") and file.name != "__init__.py"
        if is_private and len(by) == 1 and PurePosixPath(first).parent == file.parent:
            yield f"{path}: only {first} imports it"


def pages(root: Path) -> list[tuple[str, str]]:
    """Returns (path, text) of each page that may hold a map."""
    paths = (path for pattern in PAGES for path in sorted(root.glob(pattern)))
    return [(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def _modules(folder: str, paths: Iterable[str]) -> set[str]:
    """Returns the names of the modules and folders directly in a folder."""
    below = (path.removeprefix(f"{folder}/") for path in paths if path.startswith(f"{folder}/"))
    return {path.partition("/")[0].removesuffix(".py") for path in below} - {"__init__", "__main__"}


def main() -> None:
    """Prints the violations of maps, and the private modules with one importer."""
    tree = sources(Path())
    print(*(message for _, message in faults(tree, pages(Path()))), sep="\n")  # noqa: T201
    print(*single_importers(tree), sep="\n")  # noqa: T201


if __name__ == "__main__":
    main()
