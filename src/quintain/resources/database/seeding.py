"""From a schema and a seed to an image, and from an image to an ordinary SQLite file."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import apsw

from quintain import codec
from quintain.errors import DefinitionError
from quintain.state import Shared

from . import rows, sources
from .connection import borrow, retire
from .pages import SIZE, Base, Page, PageImage, Pages, normalised

_FORMAT = 1
_COUNTED = (1).to_bytes(4, "big")


class BaseRecipe:
    """Recipe of a base image.

    Args:
        schema: SQL text and classes.
        seed: A function, a `.sql` file or a SQLite file.
        roles: For each role and table the SELECT that replaces the table.
    """

    def __init__(self, schema: Sequence[str | type[Any]], seed: Any, roles: Mapping[str, Mapping[str, str]]) -> None:
        self._schema = [one if isinstance(one, str) else rows.create(one) for one in schema]
        self._schema += [
            f"CREATE VIEW {rows.quoted(view_name(role, table))} AS {select}"
            for role, views in roles.items()
            for table, select in views.items()
        ]
        self._seed = seed
        if isinstance(seed, Path) and seed.suffix != ".sql" and schema:
            raise DefinitionError(f"{seed.name} brings its own schema; leave the other one out")

    def recipe(self) -> str | None:
        """Digest of everything that decides the content; None when the seed is a function that reads what it closes."""
        found = source(self._seed)
        if found is None:
            return None
        return codec.digest(codec.dumps((_FORMAT, apsw.sqlite_lib_version(), self._schema, found)))

    def build(self, open_: Callable[[PageImage], Any]) -> PageImage:
        """Returns the content. `open_` makes a database on an image, which the seed is given."""
        seed = self._seed
        base = Base()
        try:
            image = PageImage(base)
            scripts = self._schema
            if isinstance(seed, Path) and seed.suffix == ".sql":
                scripts = [*scripts, seed.read_text()]
            elif isinstance(seed, Path):
                image = _imported(image, seed)
            image = _scripted(image, scripts)
            if seed is not None and not isinstance(seed, Path):
                database = open_(image)
                database.bind(Shared())
                with database.transaction():
                    seed(database)
                image = database.image
            return image
        finally:
            retire(base)


def source(seed: Any) -> list[bytes] | None:
    """Returns the texts that determine a seed; None for a function with a closure or defaults."""
    if seed is None:
        return []
    if isinstance(seed, Path):
        return [seed.suffix.encode(), seed.read_bytes()]
    if not inspect.isfunction(seed) or seed.__closure__ or seed.__defaults__ or seed.__kwdefaults__:
        return None
    found = sources.of(seed)
    return None if found is None else list(found)


def view_name(role: str, table: str) -> str:
    """Returns the view that stands for a table when a role asks."""
    return f"{role}.{table}"


def export(image: PageImage, path: Path) -> None:
    """Writes an ordinary SQLite file; there is the whole of it, or what was there before."""
    handle = tempfile.NamedTemporaryFile(dir=path.parent, delete=False)  # noqa: SIM115 (closed before it is moved)
    temporary = Path(handle.name)
    try:
        with handle:
            handle.writelines(_counted(image.chunks()))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _counted(pages: Iterable[bytes]) -> Iterable[bytes]:
    version = apsw.SQLITE_VERSION_NUMBER.to_bytes(4, "big")
    for number, page in enumerate(pages):
        yield page if number else b"".join((page[:24], _COUNTED, page[28:92], _COUNTED, version, page[100:]))


def _scripted(image: PageImage, scripts: Iterable[str]) -> PageImage:
    connection = borrow(image, Shared())
    try:
        for sql in scripts:
            connection.script(sql)
        if not connection.sqlite.get_autocommit():
            raise DefinitionError("the SQL of the schema or seed leaves a transaction open")
        # A dump turns foreign keys off while its rows come in any order.
        broken = connection.rows("PRAGMA foreign_key_check", None)
        if broken:
            table, rowid, parent, _ = broken[0]
            raise DefinitionError(f"row {rowid} of {table!r} refers to a row of {parent!r} that does not exist")
        return connection.file.commit()
    except apsw.Error as error:
        raise DefinitionError(f"the SQL of the schema or seed: {error}") from error
    # What a script did to the connection stays in it, so it is not reused.


def _imported(image: PageImage, path: Path) -> PageImage:
    """Returns the pages of a SQLite file, in the size that we use."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        try:
            source: Any = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
            try:
                source.execute(f"PRAGMA page_size={SIZE}")
                source.execute("VACUUM INTO ?", (str(copy),))
            finally:
                source.close()
        except apsw.Error as error:
            raise DefinitionError(f"{path} is not a SQLite database: {error}") from error
        data = copy.read_bytes()
    pages: Pages = {start // SIZE: Page(data[start : start + SIZE]) for start in range(0, len(data), SIZE)}
    pages[0] = Page(normalised(data[:SIZE]))
    return image.write(pages, len(pages), object())
