"""Tests of calls that do a part of what they say, seen by reads alone, and of sound ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.checks.false_resolution import paid_and_not_moved
from quintain.audit.checks.races import refused_and_half_done
from quintain.audit.checks.stale_cache import shown_after_restore
from tests.audit.checks._found import found

SUBJECT = '''
import copy


class ToolError(Exception):
    pass


WHOLE = {"type": "integer", "minimum": 1, "maximum": 100000}


def tool(name, **properties):
    return {"name": name, "description": name, "parameters": {
        "type": "object", "properties": properties, "required": list(properties)}}


class Row:
    """Cells in a row: those behind the first are filled, and the last is closed."""

    def tasks(self):
        return ["4", "5"]

    def tools(self):
        return [tool("list_cells"), tool("fill", last=WHOLE), tool("shut", cell=WHOLE)]

    def reset(self, task, seed):
        self.task, self.cells, self.tries = int(task), {number: "" for number in range(1, 10)}, 0
        return f"Fill the cells up to {self.task} and shut the next one."

    def call(self, name, arguments):
        if name != "list_cells" and not arguments:
            raise ToolError("an argument is missing")
        return getattr(self, name)(**arguments)

    def list_cells(self):
        return {"cells": {str(number): one for number, one in self.cells.items()}}

    def shut(self, cell):
        self.cells[cell] = "shut"
        return "done"

    def fill(self, last):
        wanted = range(1, last + 1)
        if any(self.cells.get(number) != "" for number in wanted):
            raise ToolError("one of the cells is not free")
        self.cells |= dict.fromkeys(wanted, "full")
        return "done"

    def oracle(self, task):
        return [["fill", {"last": int(task)}], ["shut", {"cell": int(task) + 1}]]

    def score(self):
        filled = [number for number, one in self.cells.items() if one == "full"]
        return float(filled == list(range(1, self.task + 1)) and self.cells[self.task + 1] == "shut")


class Stops(Row):
    """A cell is looked at just before it is filled."""

    said = "cell {} is not free"

    def fill(self, last):
        for number in range(1, last + 1):
            if self.cells.get(number) != "":
                raise ToolError(self.said.format(number))
            self.cells[number] = "full"
        return "done"


class Says(Stops):
    """The error tells what was done."""

    said = "cell {} is not free; the cells so far are filled"


class Pawn(Row):
    """A pawn goes on until something is in its way."""

    def reset(self, task, seed):
        self.at = 0
        return super().reset(task, seed)

    def list_cells(self):
        return {"pawn": {"at": self.at, "next": self.at + 1}}

    def fill(self, last):
        for number in range(1, last + 1):
            if self.cells.get(number) != "":
                raise ToolError("blocked")
            self.at = number
        return "done"

    def score(self):
        return float(self.at == self.task and self.cells[self.task + 1] == "shut")


class Counts(Row):
    """A refused call is counted."""

    def call(self, name, arguments):
        try:
            return super().call(name, arguments)
        except ToolError:
            self.tries += 1
            raise

    def list_cells(self):
        return {**super().list_cells(), "failures": self.tries}


class Bank:
    """Money moves from one account to another."""

    def tasks(self):
        return ["2500", "4000"]

    def tools(self):
        return [tool("list_accounts"), tool("send", cents=WHOLE), tool("list_sent")]

    def reset(self, task, seed):
        self.wanted, self.accounts, self.sent = int(task), {"mine": 9000, "yours": 50}, []
        return f"Send {task} cents."

    def call(self, name, arguments):
        return getattr(self, name)(**arguments)

    def list_accounts(self):
        return {"accounts": dict(self.accounts)}

    def list_sent(self):
        return {"sent": list(self.sent)}

    def send(self, cents):
        self.sent.append(cents)
        self.book(cents)
        return "it is sent"

    def book(self, cents):
        self.accounts["mine"] -= cents
        self.accounts["yours"] += cents

    def oracle(self, task):
        return [["send", {"cents": int(task)}]]

    def score(self):
        return float(self.sent == [self.wanted])


class Never(Bank):
    """Large sums are noted and not booked."""

    def book(self, cents):
        if cents < 1000:
            super().book(cents)


class Waits(Never):
    """It says that a large sum is booked later."""

    def send(self, cents):
        super().send(cents)
        return "it is sent" if cents < 1000 else "it is sent, and is booked tomorrow"


class Shelf:
    """Books on a shelf, and an index of it."""

    def tasks(self):
        return ["Emma", "Ulysses"]

    def tools(self):
        text = {"type": "string"}
        return [tool("get_book", number=text), tool("find_books", word=text), tool("rename", number=text, title=text)]

    def reset(self, task, seed):
        self.task, self.books = task, {"B11": "Walden", "B12": "Middlemarch", "B13": "Dracula"}
        self.index = dict(self.books)
        return f"The book B12 is called {task}."

    def call(self, name, arguments):
        return getattr(self, name)(**arguments)

    def get_book(self, number):
        if number not in self.books:
            raise ToolError("no such book")
        return {"number": number, "title": self.books[number]}

    def find_books(self, word):
        return {"books": [[key, title] for key, title in self.index.items() if word in (key, title)]}

    def rename(self, number, title):
        if number not in self.books:
            raise ToolError("no such book")
        self.books[number] = title
        self.indexed()
        return "done"

    def indexed(self):
        self.index = dict(self.books)

    def state(self):
        return {"books": dict(self.books)}

    def snapshot(self):
        return copy.deepcopy(self.books)

    def restore(self, saved):
        self.books = dict(saved)
        Shelf.indexed(self)

    def oracle(self, task):
        return [["find_books", {"word": "B12"}], ["rename", {"number": "B12", "title": task}]]

    def score(self):
        return float(self.books["B12"] == self.task)


class Old(Shelf):
    """Only a restore renews the index."""

    def indexed(self):
        pass
'''


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("half") / "half.py"
    file.write_text(SUBJECT)
    return file


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Stops", "fill refuses a call and has done a part of it"),
        ("Never", "send says that it is done and is paid for, but moves nothing"),
        ("Old", "find_books does not show what rename brought until the state is saved and restored"),
        *((name, "") for name in ("Row", "Says", "Pawn", "Counts", "Bank", "Waits", "Shelf")),
    ],
)
def test_calls_that_do_a_part_of_their_work_are_proven(subject: Path, name: str, title: str) -> None:
    findings = found(subject, name, [paid_and_not_moved, refused_and_half_done, shown_after_restore])
    assert [(one.confidence, one.title) for one in findings] == ([("proven", title)] if title else [])
