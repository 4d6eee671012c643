"""Tests of calls against their arguments: a sound library, and ones that ignore, cut, scale or invent them."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, Report, audit
from quintain.audit.checks import _drift_production, _drift_rows, _drift_settings, _drift_told, _silent_unknown
from quintain.audit.checks._drift_told import takes
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject
from tests.audit.checks._found import highest

CHECKS = [
    one
    for module in (
        _drift_production, _drift_rows, _drift_settings, _drift_told,
        _silent_unknown,
    )
    for one in checks_of(module)
]  # fmt: skip

LIBRARY = '''
import copy


class ToolError(Exception):
    pass


TEXT, WHOLE = {"type": "string", "maxLength": 200}, {"type": "integer", "minimum": 0, "maximum": 500}
BOOK = {**TEXT, "description": "Its id, such as B103."}
SHELF = {"type": "string", "enum": ["art", "law", "sea"]}


def tool(name, description, optional=(), **properties):
    required = [one for one in properties if one not in optional]
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"name": name, "description": description, "parameters": parameters}


class Library:
    """Names are checked, lists are whole and in order, and arguments take effect."""

    def tasks(self):
        return ["mend B101", "mend B104"]

    def tools(self):
        return [
            tool("list_books", "The books of a shelf, newest first.", shelf=SHELF),
            tool("find_books", "Books with at least so many pages.", ("pages", "limit"), pages={**WHOLE, "default": 0},
                 limit={**WHOLE, "minimum": 1, "maximum": 50, "default": 5}),
            tool("get_book", "Show a book.", book_id=BOOK),
            tool("loans_of", "The loans of a book.", book_id=BOOK),
            tool("move_book", "Put a book on another shelf.", book_id=BOOK, shelf=SHELF),
            tool("buy", "Buy copies.", book_id=BOOK, copies={**WHOLE, "minimum": 1, "description": "How many pieces."}),
            tool("note", "Write a note on a book.", book_id=BOOK, text={**TEXT, "description": "Not empty."},
                 minutes={**WHOLE, "description": "How long it took, in minutes."}),
            tool("edit", "Replace the first occurrence of a text in a book's blurb.", book_id=BOOK, old=TEXT, new=TEXT),
            tool("compute", "Compute.", a={"type": "number"}, op={"type": "string", "enum": ["-", "/"]},
                 b={"type": "number"}),
        ]

    def reset(self, task, seed):
        self.books = [
            {"id": f"B{100 + n}", "shelf": ("art", "law", "sea")[n % 3], "pages": 30 * n, "added": (n * 7) % 23,
             "copies": n, "blurb": f"{n} waves and waves of waves"}
            for n in range(1, 13)
        ]
        self.loans = [{"id": f"X{n}", "book_id": f"B{101 + n % 4}", "days": n} for n in range(12)]
        self.notes = []
        return f"Please {task}."

    def call(self, name, arguments):
        schema = next(one["parameters"] for one in self.tools() if one["name"] == name)
        for key, value in arguments.items():
            one = schema["properties"].get(key, {})
            low, high = one.get("minimum", value), one.get("maximum", value)
            if key not in schema["properties"] or value not in one.get("enum", [value]):
                raise ToolError(f"{key} is not one of those that there are")
            if not isinstance(value, str) and not low <= value <= high:
                raise ToolError(f"{key} is out of bounds")
            if isinstance(value, str) and len(value) > 200:
                raise ToolError(f"{key} is too long")
        for key in schema["required"]:
            if key not in arguments:
                raise ToolError(f"{key} is missing")
        return getattr(self, "_" + name)(**arguments)

    def book(self, key):
        found = [one for one in self.books if one["id"] == key]
        if not found:
            raise ToolError(f"no such book: {key}")
        return found[0]

    def _list_books(self, shelf):
        rows = [one for one in self.books if one["shelf"] == shelf]
        return {"books": [{"id": one["id"]} for one in sorted(rows, key=lambda one: -one["added"])]}

    def _find_books(self, pages=0, limit=5):
        return [{"id": one["id"], "pages": one["pages"]} for one in self.books if one["pages"] >= pages][:limit]

    def _get_book(self, book_id):
        return dict(self.book(book_id))

    def _loans_of(self, book_id):
        self.book(book_id)
        return {"loans": [dict(one) for one in self.loans if one["book_id"] == book_id]}

    def _move_book(self, book_id, shelf):
        self.book(book_id)["shelf"] = shelf
        return {"ok": True}

    def _buy(self, book_id, copies):
        self.book(book_id)["copies"] += copies
        return {"ok": True}

    def _note(self, book_id, text, minutes):
        self.book(book_id)
        if not text.strip():
            raise ToolError("a note says something")
        self.notes.append({"id": f"N{len(self.notes)}", "book_id": book_id, "text": text, "minutes": minutes})
        return {"ok": True}

    def _edit(self, book_id, old, new):
        book = self.book(book_id)
        if not old or old not in book["blurb"]:
            raise ToolError("the text is not there")
        book["blurb"] = book["blurb"].replace(old, new, 1)
        return {"ok": True}

    def _compute(self, a, op, b):
        if op == "/" and not b:
            raise ToolError("nothing can be divided by 0")
        return {"result": a - b if op == "-" else a / b}

    def state(self):
        return copy.deepcopy({"books": self.books, "loans": self.loans, "notes": self.notes})

    def snapshot(self):
        return self.state()

    def restore(self, saved):
        vars(self).update(copy.deepcopy(saved))

    def oracle(self, task):
        key = task.split()[1]
        return [
            ["get_book", {"book_id": key}], ["list_books", {"shelf": "law"}], ["find_books", {}],
            ["loans_of", {"book_id": key}], ["move_book", {"book_id": key, "shelf": "sea"}],
            ["buy", {"book_id": key, "copies": 3}], ["note", {"book_id": key, "text": "it is mended", "minutes": 20}],
            ["edit", {"book_id": key, "old": "and", "new": "or"}], ["compute", {"a": 9, "op": "-", "b": 4}],
        ]

    def score(self):
        return 1.0


class Unknowing(Library):
    """Of a book that does not exist there are no loans and no pages, and a note on it is written on the first."""

    def _get_book(self, book_id):
        found = [dict(one) for one in self.books if one["id"] == book_id]
        return found[0] if found else {**self.books[0], "id": book_id, "pages": 0}

    def _loans_of(self, book_id):
        return {"loans": [dict(one) for one in self.loans if one["book_id"] == book_id]}

    def _buy(self, book_id, copies):
        known = [one["id"] for one in self.books]
        return super()._buy(book_id if book_id in known else known[0], copies)


class Deaf(Library):
    """Filters, limits, shelves and minutes do not matter."""

    def _find_books(self, pages=0, limit=5):
        return super()._find_books(0, 5)

    def _move_book(self, book_id, shelf):
        return super()._move_book(book_id, "art" if shelf == "law" else shelf)

    def _note(self, book_id, text, minutes):
        return super()._note(book_id, text[:40], min(minutes, 60))

    def _list_books(self, shelf):
        return {"books": super()._list_books(shelf)["books"][::-1]}

    def _loans_of(self, book_id):
        return {"loans": super()._loans_of(book_id)["loans"][: 1 if book_id == "B103" else 99]}


class Otherwise(Library):
    """Copies come by the dozen, texts are replaced everywhere, and numbers are taken from each other in turn."""

    def tools(self):
        found = super().tools()
        found[6]["parameters"]["properties"]["minutes"]["description"] = "How long it took, in hours."
        found[1]["parameters"]["properties"]["limit"]["default"] = 20
        return found

    def _buy(self, book_id, copies):
        if copies > 100:
            raise ToolError("permit_id is missing")
        return super()._buy(book_id, copies * 12)

    def _edit(self, book_id, old, new):
        book = self.book(book_id)
        book["blurb"] = book["blurb"].replace(old, new)
        return {"ok": True}

    def _compute(self, a, op, b):
        return super()._compute(b, op, a) if op == "-" else super()._compute(a, op, b)

    def _note(self, book_id, text, minutes):
        self.book(book_id)
        self.notes.append({"id": f"N{len(self.notes)}", "book_id": book_id, "text": text, "minutes": minutes})
        return {"ok": True}


class Views(Library):
    """Sound: money in other units, names in other cases, lists of what is left, an answer that tells its limit."""

    def _buy(self, book_id, copies):
        granted = min(copies, 50)
        self.book(book_id)["copies"] += granted
        return {"bought": granted}

    def _move_book(self, book_id, shelf):
        self.book(book_id)["shelf"] = shelf.upper()
        return {"ok": True}

    def _list_books(self, shelf):
        rows = [one for one in self.books if one["shelf"].lower() == shelf and one["copies"] > 2]
        return {"books": [{"id": one["id"]} for one in sorted(rows, key=lambda one: -one["added"])], "total": 99}
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("library") / "library.py"
    path.write_text(LIBRARY, encoding="utf-8")
    return path


def audited(file: Path, name: str) -> Report:
    report = audit(Subject(f"{file}:{name}"), CHECKS)
    assert not [one.reason for one in report.checks if one.reason.startswith(BROKE)]
    return report


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Library", pytest.param("Views", marks=pytest.mark.slow)])
def test_sound_libraries_are_left_alone(file: Path, name: str) -> None:
    report = audited(file, name)
    assert [one.title for one in report.findings] == []
    assert sum(one.looked > 0 for one in report.checks) >= 8


CASES = {
    "Unknowing": [
        ("silent_default", "get_book answers for a book_id that does not exist as if it did"),
        ("silent_default", "loans_of answers for a book_id that does not exist as if it did"),
        ("silent_default", "buy takes a book_id that does not exist, and says that it is done"),
    ],
    "Deaf": [
        ("action_drift", "find_books gives rows that its pages leaves out"),
        ("action_drift", "find_books gives more rows than its limit"),
        (
            "silent_default",
            "move_book says that it is done, but does not use the given shelf",
        ),
        ("silent_default", "note says that it is done, but does not use the given minutes"),
        ("silent_default", "note says that it is done, but does not use the given text"),
        ("action_drift", "list_books promises descending order, but its rows are not so by added"),
    ],
    "Otherwise": [
        ("action_drift", "minutes of note is described in hours"),
        ("action_drift", "find_books without limit does not do what its declared default 20 does"),
        ("action_drift", "buy counts its copies 12 times"),
        ("action_drift", "compute does not compute what it says: 7 - 2"),
    ],
}  # fmt: skip
SLOW = ("Deaf", "Otherwise")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Unknowing", *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW)])
def test_each_bug_is_proven(file: Path, name: str) -> None:
    report = audited(file, name)
    found = {(one.class_, one.title): one for one in report.findings}
    for case in CASES[name]:
        assert case in found, [one.title for one in report.findings]
        assert (found[case].confidence, found[case].severity) == (highest(found[case]), "error")


def test_a_number_is_taken_in_each_spelling() -> None:
    assert takes(7, "007")
    assert takes(7.5, "7.50")
    assert takes("from 12 to 7", "07")
    assert not takes(7, "70")
    assert not takes(7, "7 of them")
