"""Leaks that show only later, in one answer, after one kind of ending or of call; and worlds in which nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import reset_leak as reset
from quintain.audit.kernel.check import Check
from quintain.audit.kernel.loader import Subject

pytestmark = pytest.mark.slow

SUBJECTS = """
import copy, random, threading, time

TEXT = {"type": "string"}
SHELF = {"type": "string", "enum": ["upper", "lower"]}


def tool(name, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "parameters": parameters}


class Sound:
    ISBNS = [f"978-{number}" for number in range(30)]

    def __init__(self):
        self.out, self.holds, self.now, self.number, self.fines = {}, [], 0, 0, 0

    def tasks(self):
        return [f"{kind}-{number}" for number in range(3) for kind in ("lend", "hold")]

    def tools(self):
        return [
            tool("get_book", isbn=TEXT), tool("list_books", shelf=SHELF), tool("lend", isbn=TEXT, reader=TEXT),
            tool("hold", isbn=TEXT, reader=TEXT), tool("list_mail", reader=TEXT), tool("give_back", isbn=TEXT),
        ]

    def plan(self, task):
        dice = random.Random(task)
        return dice.choice(self.ISBNS), f"reader {dice.randrange(1000)}"

    def reset(self, task, seed):
        self.task, self.dice = task, random.Random(f"{task}/{seed}")
        self.out, self.holds, self.now, self.number, self.fines = {}, [], 0, 0, 0
        self.books = {isbn: self.dice.choice(("upper", "lower")) for isbn in self.ISBNS}
        isbn, reader = self.plan(task)
        return f"{task}: {isbn} for {reader}"

    def call(self, name, arguments):
        if "isbn" in arguments and arguments["isbn"] not in self.books:
            raise LookupError("no such book")
        return getattr(self, name)(**arguments)

    def get_book(self, isbn):
        return {"isbn": isbn, "shelf": self.books[isbn], "lent_to": self.out.get(isbn)}

    def list_books(self, shelf):
        if shelf not in ("upper", "lower"):
            raise ValueError("no such shelf")
        return {"books": [isbn for isbn in self.ISBNS if self.books[isbn] == shelf]}

    def lend(self, isbn, reader):
        if not isinstance(reader, str):
            raise ValueError("a reader has a name")
        if isbn in self.out:
            raise ValueError("it is lent")
        self.out[isbn] = reader
        self.number += 1
        return {"loan": self.number}

    def give_back(self, isbn):
        if self.out.pop(isbn, None) is None:
            raise ValueError("it is here")
        return {"ok": True}

    def hold(self, isbn, reader):
        self.holds.append({"isbn": isbn, "reader": reader, "at": self.now})
        return {"ok": True}

    def list_mail(self, reader):
        return {"mail": [one["isbn"] for one in self.holds if one["reader"] == reader and one["at"] + 60 <= self.now]}

    def advance(self, seconds):
        self.now += int(seconds)

    def state(self):
        return copy.deepcopy({"out": self.out, "holds": self.holds, "now": self.now,
                              "books": [{"isbn": isbn, "shelf": shelf} for isbn, shelf in self.books.items()]})

    def score(self):
        isbn, reader = self.plan(self.task)
        if self.task.startswith("lend"):
            return float(self.out == {isbn: reader})
        return float([(one["isbn"], one["reader"]) for one in self.holds] == [(isbn, reader)])

    def oracle(self, task):
        isbn, reader = self.plan(task)
        return [["get_book", {"isbn": isbn}], [task[:4], {"isbn": isbn, "reader": reader}]]

    def snapshot(self):
        return copy.deepcopy(vars(self))

    def restore(self, moment):
        vars(self).update(copy.deepcopy(moment))


class Budgeted(Sound):
    budget = 20

    def reset(self, task, seed):
        self.calls = 0
        return super().reset(task, seed)

    def call(self, name, arguments):
        self.calls += 1
        if self.calls > self.budget:
            return {"error": "the episode is over"}
        return super().call(name, arguments)


class Dark(Sound):
    state = advance = oracle = snapshot = restore = None


class Undelivered(Sound):
    late = ()

    def reset(self, task, seed):
        late = [{**one, "at": 0} for one in self.holds if one["at"] + 60 > self.now]
        first = super().reset(task, seed)
        self.late = late
        return first

    def list_mail(self, reader):
        old = [one["isbn"] for one in self.late if one["reader"] == reader and one["at"] + 60 <= self.now]
        return {"mail": old + super().list_mail(reader)["mail"]}


class Unfinished(Sound):
    failed = False

    def call(self, name, arguments):
        self.failed = True
        answer = super().call(name, arguments)
        self.failed = False
        return answer

    def reset(self, task, seed):
        out, failed = self.out, self.failed
        first = super().reset(task, seed)
        self.out, self.failed = out if failed else {}, False
        return first


class Popular(Sound):
    def __init__(self):
        super().__init__()
        self.looks = {}

    def get_book(self, isbn):
        self.looks[isbn] = self.looks.get(isbn, 0) + 1
        return super().get_book(isbn)

    def list_books(self, shelf):
        return {"books": sorted(super().list_books(shelf)["books"], key=lambda isbn: -self.looks.get(isbn, 0))}


class Numbered(Sound):
    def reset(self, task, seed):
        number = self.number
        first = super().reset(task, seed)
        self.number = number if number > 3 else 0
        return first


class Partly(Sound):
    def restore(self, moment):
        number, dice = self.number, self.dice
        super().restore(moment)
        self.number = number


class Behind(Sound):
    def __init__(self):
        super().__init__()
        self.begun = threading.Event()

    def snapshot(self):
        raise NotImplementedError

    def reset(self, task, seed):
        before, self.begun = self.begun, threading.Event()
        first = super().reset(task, seed)
        before.set()
        return first

    def hold(self, isbn, reader):
        threading.Thread(target=self.send, args=(self.begun,), daemon=True).start()
        return super().hold(isbn, reader)

    def send(self, begun):
        begun.wait()
        time.sleep(0.1)
        self.fines += 1

    def get_book(self, isbn):
        return {**super().get_book(isbn), "fines": self.fines}


class Forgetful(Sound):
    readers = []

    def lend(self, isbn, reader):
        found = super().lend(isbn, reader)
        if found["loan"] == 2:
            self.readers.append(reader)
        return found

    def list_mail(self, reader):
        return {**super().list_mail(reader), "known": reader in self.readers}
"""
ALL = (
    reset.episode_isolation,
    reset.episode_determinism,
    reset.snapshot_restore,
)


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wide") / "subjects.py"
    path.write_text(SUBJECTS, "utf-8")
    return path


def looked(subjects: Path, name: str, *checks: Check) -> Report:
    return audit(Subject(f"{subjects}:{name}"), list(checks), tasks=6)


@pytest.mark.parametrize(
    "name", [pytest.param("Sound", marks=pytest.mark.slow), pytest.param("Budgeted", marks=pytest.mark.slow), "Dark"]
)
def test_a_sound_library_is_let_alone(subjects: Path, name: str) -> None:
    report = looked(subjects, name, *ALL)
    assert [one.title for one in report.findings] == []
    assert not [one.reason for one in report.checks if "broke" in one.reason]


@pytest.mark.parametrize(
    ("name", "check", "title"),
    [
        pytest.param(
            "Undelivered", reset.episode_isolation, "list_mail: mail is another one after", marks=pytest.mark.slow
        ),
        ("Unfinished", reset.episode_isolation, " is another one after "),
        pytest.param(
            "Popular", reset.episode_isolation, "list_books: books[0] is another one after", marks=pytest.mark.slow
        ),
        pytest.param("Numbered", reset.episode_isolation, "lend: loan is another one after", marks=pytest.mark.slow),
        pytest.param(
            "Forgetful", reset.episode_isolation, "list_mail: known is another one after", marks=pytest.mark.slow
        ),
        pytest.param(
            "Partly", reset.snapshot_restore, "lend: loan is another one after a restore", marks=pytest.mark.slow
        ),
        pytest.param(
            "Behind", reset.episode_isolation, "get_book: fines is another one a moment after", marks=pytest.mark.slow
        ),
    ],
)
def test_a_leak_that_shows_late_is_found(subjects: Path, name: str, check: Check, title: str) -> None:
    (finding, *_) = looked(subjects, name, check).findings
    assert title in finding.title
    assert (finding.confidence, finding.severity) == ("proven", "error")
    assert len(finding.trajectory) <= 16
