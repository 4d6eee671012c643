"""Differences between two worlds."""

from __future__ import annotations

import asyncio

import msgspec

import quintain as qn
from quintain.changes import MISSING, WorldChange, changes, plain_changes, shown
from quintain.resources.database import Database
from quintain.resources.schedule.queues import Queue
from quintain.resources.workspace import Workspace


class Part(qn.State):
    items: list[str] = []


class Book(msgspec.Struct):
    title: str
    price: int | None = None


class World(qn.State):
    part: Part = msgspec.field(default_factory=Part)
    books: qn.Table[Book] = msgspec.field(default_factory=lambda: qn.Table(Book))
    names: dict[str, int] = {}
    either: int | str = 0
    grid: list[list[int]] = []

    def ring(self) -> None:
        """Rings a bell without any effect."""


def differences(before: World, after: World) -> list[WorldChange]:
    return asyncio.run(changes(before, after))


def test_worlds_are_compared_down_to_the_last_entry() -> None:
    before = World(books=qn.Table(Book, {"x": Book("X", 3)}), names={"a": 1, "b": 2}, grid=[[1, 2], [3]])
    before.part.items = ["one", "two", "four"]
    after = before.copy()
    assert differences(before, after) == []
    after.part.items = ["one", "two", "three", "four"]
    after.books["x"] = Book("X", 4)
    after.books["y"] = Book("Y")
    after.names = {"b": 2, "c": 3}
    after.either = "zero"
    after.grid[1] = [3, 4]
    assert differences(before, after) == [
        WorldChange("part.items[2]", MISSING, "three"),
        WorldChange('books["x"].price', 3, 4),
        WorldChange('books["y"]', MISSING, Book("Y")),
        WorldChange('names["a"]', 1, MISSING),
        WorldChange('names["c"]', MISSING, 3),
        WorldChange("either", 0, "zero"),
        WorldChange("grid[1][1]", MISSING, 4),
    ]


class Item(msgspec.Struct):
    due: float
    number: int
    text: str


class Office(qn.State):
    db: Database
    files: Workspace
    queue: Queue[Item]


def test_databases_files_and_queues_are_compared_by_row_file_and_entry() -> None:
    before = Office(
        db=Database("CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b TEXT); INSERT INTO t VALUES (1, 'x', 'y');"),
        files=Workspace(),
        queue=Queue(Item),
    )
    before.files.write("note.md", "one\ntwo\n")
    before.files.write("same.md", "same")
    before.files.write("raw", b"\xff")
    after = before.copy()
    after.db.execute("UPDATE t SET b = 'z' WHERE id = 1")
    after.db.execute("INSERT INTO t VALUES (2, NULL, 'w')")
    after.files.write("note.md", "one\n2\n")
    after.files.write("raw", b"\xfe\xff")
    after.queue["k"] = Item(3.0, 1, "later")
    found = asyncio.run(changes(before, after))
    assert [one for one in found if not one.path.startswith('files["raw"]')] == [
        WorldChange("db.t[1].b", "y", "z"),
        WorldChange("db.t[2]", MISSING, {"id": 2, "a": None, "b": "w"}),
        WorldChange('files["note.md"]', "one\ntwo\n", "one\n2\n"),
        WorldChange('queue["k"]', MISSING, Item(3.0, 1, "later")),
    ]
    assert WorldChange('files["raw"].size', 1, 2) in found
    after.files.chmod("same.md", 0o600)
    assert 'files["same.md"].mode' in [one.path for one in asyncio.run(changes(before, after))]


def test_time_identifiers_draws_and_the_end_belong_to_the_world() -> None:
    before = World()
    after = before.copy()
    after.clock.after(10, after.ring)
    after.clock.advance(5)
    after.new_id("T")
    after.rng.bits()
    after.finish("enough")
    found = {change.path: (change.before, change.after) for change in differences(before, after)}
    assert found.pop("clock.timers[1]")[0] is MISSING
    assert found == {
        "finished": (None, "enough"),
        "clock.now": (0.0, 5.0),
        'ids["T"]': (MISSING, 1),
        "rng.counter": (0, 1),
    }


def test_a_time_that_is_a_date_is_shown_with_the_date() -> None:
    before = World()
    before.clock.now = 1.7e9
    after = before.copy()
    after.clock.advance(60)
    (found,) = differences(before, after)
    assert found.before == "1700000000 (2023-11-14 22:13:20 UTC)"
    assert found.after == "1700000060 (2023-11-14 22:14:20 UTC)"


def test_plain_values_are_compared_by_entry() -> None:
    """Values without a part in common are one change as a whole."""
    assert plain_changes({"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 3]}) == [WorldChange("b[1]", 2, 3)]
    assert plain_changes([1, 2], [1]) == [WorldChange("[1]", 2, MISSING)]
    assert plain_changes({"a": 1}, {"b": 1}) == [WorldChange("", {"a": 1}, {"b": 1})]
    assert plain_changes(1, 2) == [WorldChange("", 1, 2)]


def test_a_side_of_a_change_is_one_line_of_text() -> None:
    assert shown({"a": [1]}) == '{"a":[1]}'
    assert shown(MISSING) == "(nothing)"
    assert shown(object).startswith("<class")
    assert WorldChange("a", MISSING, 1).to_dict() == {"path": "a", "after": 1}


class Log:
    """A resource that shows nothing of its contents."""

    def __init__(self, lines: tuple[str, ...] = ()) -> None:
        self.lines = lines

    def fork(self) -> Log:
        return Log(self.lines)

    def dump(self) -> bytes:
        return "\n".join(self.lines).encode()

    @classmethod
    def load(cls, data: bytes) -> Log:
        return cls(tuple(data.decode().split("\n")))

    async def digest(self) -> str:
        return self.dump().hex()


class Ship(qn.State):
    log: Log = msgspec.field(default_factory=Log)
    files: Workspace = msgspec.field(default_factory=Workspace)


def test_other_resources_are_compared_by_their_digest() -> None:
    before, after = Ship(), Ship()
    assert asyncio.run(changes(before, after)) == []
    after.log.lines = ("a",)
    assert asyncio.run(changes(before, after)) == [WorldChange("log", "digest ", "digest 61")]


class Shell(Log):
    """A resource that shows its contents."""

    def contents(self) -> dict[str, list[str]]:
        return {"lines": list(self.lines)}


def test_resources_with_contents_are_compared_by_entry() -> None:
    before, after = Ship(log=Shell(("a",))), Ship(log=Shell(("a", "b")))
    assert asyncio.run(changes(before, after)) == [WorldChange('log["lines"][1]', MISSING, "b")]


def test_folders_are_compared_by_their_metadata() -> None:
    before, after = Ship(), Ship()
    after.files.make_folder("logs")
    (found,) = asyncio.run(changes(before, after))
    assert (found.path, found.before, found.after.kind) == ('files["logs"]', MISSING, "folder")
