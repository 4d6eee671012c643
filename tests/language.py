"""Laws of language: each law is a function from sources to violations, counted against `RATCHET`.

`python -m tests.language [PATH ...]` lists the violations below the paths, and `--count` prints the totals.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tests.tidy import Source, sources

_SUBJECTLESS = (
    "he her his how it its nobody of others she somebody something that their them there these they this those "
    "what whatever when whenever where wherever whether which who whoever whom whose why"
)
SUBJECTLESS = frozenset(_SUBJECTLESS.split())
"""Words that no docstring and no test name may begin with: pronouns, question words and prepositions."""

SENTENCE_WORDS = 20
"""The longest first sentence of a docstring, in words."""

WORDS = re.compile(r"\b(?:told|is no|nobody)\b", re.IGNORECASE)
"""Words of the project's former private language."""


SHOWN = 20
"""The violations that a message lists."""

QUOTING = {"tests/language.py", "tests/test_tidy.py"}
"""Files that quote the words to define and test the law."""

RATCHET: dict[str, dict[str, int]] = {
    # The violations of each law that a top folder may have. A count may shrink, and this table with it, never grow.
    "is no": {"src": 55, "tests": 43},
    "nobody": {"src": 21, "tests": 83, "bench": 1},
    "subject": {"tests": 24},
    "told": {"src": 23, "tests": 141, "bench": 2},
}


class Violation(NamedTuple):
    """One place that breaks a language law."""

    law: str
    path: str
    line: int
    words: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.law}: {self.words}"


def first_sentence(text: str) -> str:
    """Returns the text up to its first full stop, colon or blank line."""
    paragraph = text.split("\n\n", maxsplit=1)[0].replace("\n", " ")
    return re.split(r"(?<=[.:;?!])\s", paragraph, maxsplit=1)[0]


def subject(tree: Sequence[Source]) -> Iterator[Violation]:
    """A docstring begins with a noun, a verb or an identifier, never with a pronoun or a question word."""
    for source in tree:
        for node, name, text in source.documented:
            if re.match(r"\w*", text)[0].lower() in SUBJECTLESS:  # type: ignore[index]
                yield Violation("subject", source.path, getattr(node, "lineno", 1), f"{name}: {first_sentence(text)}")


def fragment(tree: Sequence[Source]) -> Iterator[Violation]:
    """A docstring of the package has at least three words; docstrings of test fixtures are texts for models."""
    for source in tree:
        for node, name, text in source.documented:
            if source.unit and len(text.split()) < 3:
                yield Violation("fragment", source.path, getattr(node, "lineno", 1), f"{name}: {text}")


def sentence(tree: Sequence[Source]) -> Iterator[Violation]:
    """The first sentence of a docstring has at most 20 words."""
    for source in tree:
        for node, name, text in source.documented:
            count = len(first_sentence(text).split())
            if count > SENTENCE_WORDS:
                yield Violation("sentence", source.path, getattr(node, "lineno", 1), f"{name}: {count} words")


def vocabulary(tree: Sequence[Source]) -> Iterator[Violation]:
    """Words of the former private language are counted, and may only become fewer."""
    for source in (source for source in tree if source.path not in QUOTING):
        for found in WORDS.finditer(source.text):
            number = source.text.count("\n", 0, found.start())
            yield Violation(found[0].lower(), source.path, number + 1, source.lines[number].strip()[:100])


def name_of_test(tree: Sequence[Source]) -> Iterator[Violation]:
    """A test is called `test_<thing>_<does what>`: its second word names a thing."""
    for source in tree:
        for node in source.statements:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                parts = node.name.split("_")
                if parts[1] in SUBJECTLESS | {"nothing"} or len(parts) < 3:
                    yield Violation("test_name", source.path, node.lineno, node.name)


def class_name(tree: Sequence[Source]) -> Iterator[Violation]:
    """A class name has one meaning: in a folder, and across folders that import each other."""
    places: dict[str, list[tuple[Source, ast.ClassDef]]] = defaultdict(list)
    imports: dict[str, set[str]] = defaultdict(set)
    modules = modules_of(tree)
    for source in modules.values():
        folder = str(PurePosixPath(source.path).parent)
        for target in imported(source, modules):
            imports[folder].add(str(PurePosixPath(target).parent))
        for node in source.statements:
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append((source, node))
    for found in places.values():
        for index, (source, node) in enumerate(found):
            here = str(PurePosixPath(source.path).parent)
            for other, _ in found[:index]:
                there = str(PurePosixPath(other.path).parent)
                if here == there or here in imports[there] or there in imports[here]:
                    yield Violation("class_name", source.path, node.lineno, f"{node.name} is also in {other.path}")
                    break


def modules_of(tree: Sequence[Source]) -> dict[str, Source]:
    """Returns the modules of the package by their dotted names."""
    stems = ((source, source.path.removeprefix("src/").removesuffix(".py")) for source in tree if source.unit)
    return {stem.removesuffix("/__init__").replace("/", "."): source for source, stem in stems}


def imported(source: Source, modules: dict[str, Source]) -> Iterator[str]:
    """Yields the path of each module of the package that a source imports."""
    for node in source.statements:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = source.package[: len(source.package) - node.level + 1] if node.level else ()
            stem = ".".join((*base, *([node.module] if node.module else [])))
            names = [f"{stem}.{alias.name}" for alias in node.names] + [stem]
        else:
            continue
        yield from (modules[name].path for name in names if name in modules)


def excess(found: Sequence[Violation], ratchet: Mapping[str, Mapping[str, int]] = RATCHET) -> Iterator[str]:
    """Yields a message for each law and top folder with more violations than the ratchet grants."""
    for (law, top), count in sorted(Counter((v.law, v.path.partition("/")[0]) for v in found).items()):
        granted = ratchet.get(law, {}).get(top, 0)
        if count > granted:
            places = [f"  {v}" for v in found if v.law == law and v.path.startswith(f"{top}/")]
            command = f"`python -m tests.language {top}` lists all of them"
            message = f"{top}: {count} violations of `{law}`, at most {granted} are allowed; {command}:"
            yield "\n".join((message, *places[:SHOWN]))


Law = Callable[[Sequence[Source]], Iterator[Violation]]
LAWS: tuple[Law, ...] = (subject, fragment, sentence, vocabulary, name_of_test, class_name)


def package(path: str) -> str:
    """Returns the part of the tree that a path is counted under, such as `src/serve` or `tests/audit`."""
    parts = path.removeprefix("src/quintain/").split("/")
    if path.startswith("src/quintain/"):
        return f"src/{parts[0]}" if len(parts) > 1 else "src"
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def main(arguments: Sequence[str]) -> None:
    """Prints the violations below the given paths, or their counts."""
    paths = [argument for argument in arguments if not argument.startswith("--")]
    tree = sources(Path())
    found = [violation for law in LAWS for violation in law(tree)]
    found = [v for v in found if not paths or any(v.path.startswith(path) for path in paths)]
    if "--count" not in arguments:
        print(*found, sep="\n")  # noqa: T201
    for (law, where), count in sorted(Counter((v.law, package(v.path)) for v in found).items()):
        print(f"{law:12} {where:24} {count:6}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
