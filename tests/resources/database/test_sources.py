"""A cached base is another one when anything changes that decides what its seed does."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quintain.resources.database import Database, seeding, sources

FILES = {
    "maker/__init__.py": "from . import aside\n",
    "maker/aside.py": "raise_nothing = 1\n",
    "maker/fill.py": """
import json, sys
import helper as h
from . import names as n, aside
from .deep.numbers import (
    COUNT,
)
def fill(db):
    from maker.late import WORD
    db.execute("CREATE TABLE t (x)")
    if h:
        try:
            import helper2
        except ImportError:
            pass
    db.execute("INSERT INTO t VALUES (?)", f"{n.NAME} {COUNT} {WORD} {h.HELP}")
outer = lambda db: None
exec("def made(db): pass")
def with_default(db, *, n=n): pass
""",
    "maker/names.py": "NAME = 'n'\n",
    "maker/deep/__init__.py": "from ..deepest import DEEP\n",
    "maker/deep/numbers.py": "from maker.deepest import DEEP\nCOUNT = DEEP\n",
    "maker/deepest.py": "import apsw, msgspec.json, os.path\nDEEP = 3\n",
    "maker/late.py": "WORD = 'w'\n",
    "maker/unrelated.py": "X = 1\n",
    "helper.py": "from maker import late\nHELP = 'h'\n",
    "helper2.py": "",
    "other.py": "",
}
MATTERS = {*FILES} - {"maker/__init__.py", "maker/unrelated.py", "maker/deep/__init__.py", "other.py"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    forget()


def forget() -> None:
    importlib.invalidate_caches()
    for name in [one for one in sys.modules if one.partition(".")[0] in {"maker", "helper", "helper2"}]:
        del sys.modules[name]


def made(name: str = "fill") -> Any:
    forget()
    return getattr(importlib.import_module("maker.fill"), name)


@pytest.mark.parametrize("name", FILES)
def test_every_module_that_a_seed_names_counts(folder: Path, name: str) -> None:
    before = seeding.source(made())
    assert before is not None
    assert seeding.source(made()) == before
    with (folder / name).open("a") as file:
        file.write("# changed\n")
    assert (seeding.source(made()) != before) == (name in MATTERS)


def test_versions_count_where_the_text_does_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def words() -> tuple[bytes, ...]:
        found = sources.of(made())
        assert found is not None
        return found

    before = words()
    assert not any(str(folder).encode() in word for word in before)
    for module, name in (("apsw", "apsw"), ("msgspec", "msgspec")):
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules[module], "__version__", "99.9", raising=False)
            assert f"('{name}', '99.9')".encode() in words()
            assert words() != before
    with monkeypatch.context() as patch:
        patch.setattr(sys.implementation, "cache_tag", "else-1")
        assert words() != before
    assert words() == before


def test_a_seed_is_built_again_when_a_module_changes_that_it_imports(folder: Path) -> None:
    def content() -> str:
        return str(Database(seed=made()).one(str, "SELECT x FROM t"))

    assert content() == content() == "n 3 w h"
    (folder / "maker/deepest.py").write_text("DEEP = 4\n")
    assert content() == "n 4 w h"
    (folder / "maker/late.py").write_text("WORD = 'later'\n")
    assert content() == "n 4 later h"


def test_a_seed_whose_text_is_not_known_is_built_each_time(folder: Path) -> None:
    assert seeding.source(made("outer")) is not None
    assert seeding.source(made("made")) is None
    assert seeding.source(made("with_default")) is None
    assert seeding.source(len) is None
