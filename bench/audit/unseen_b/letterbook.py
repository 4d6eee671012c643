"""A reading room: search an archive of merchants' letters, open them, cite them and answer a question."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, NamedTuple

import quintain as qn
from quintain.resources.database import Database

PEOPLE = ("Anna Keller", "Jakob Moser", "Ursula Frey", "Niklaus Bider", "Salome Ryff", "Heinrich Wyss", "Verena Roth")
PLACES = ("Basel", "Bern", "Chur", "Geneva", "Lucerne", "Schaffhausen", "Solothurn", "Zug")
GOODS = ("salt", "linen", "indigo", "cheese", "iron", "paper", "saffron", "glass", "hides", "wax", "copper", "wine")
PERIODS = ((1770, 1774), (1775, 1779), (1780, 1784), (1785, 1789))
PAGE, ASKING, REPLIES, PER_FAMILY = 5, 150, 60, 7
FORMS = {"when": "as YYYY-MM-DD", "where": "the place alone", "florins": "the number alone"}
SYSTEM = "You answer questions from the archive. Cite exactly the letters that your answer rests on, and no others."
SCHEMA = """
CREATE TABLE letters (
    record TEXT PRIMARY KEY, sender TEXT NOT NULL, recipient TEXT NOT NULL, place TEXT NOT NULL, day TEXT NOT NULL,
    answers TEXT NOT NULL, body TEXT NOT NULL
) STRICT;
CREATE INDEX letters_by_day ON letters (day);
CREATE TABLE citations (record TEXT PRIMARY KEY) STRICT;
"""

USE: Counter[str] = Counter()
CURSOR: list[str] = []


class Letter(NamedTuple):
    """One letter; `answers` is the record of the letter that it replies to, or empty."""

    record: str
    sender: str
    recipient: str
    place: str
    day: dt.date
    answers: str
    body: str
    about: str
    florins: int


ReplyDay = Callable[[random.Random, dt.date], dt.date]
Question = tuple[str, str, str, tuple[Letter, ...]]  # Family, text, answer and evidence.


def some_day(rng: random.Random) -> dt.date:
    """A day in the years of the archive."""
    return dt.date(1770, 1, 1) + dt.timedelta(days=rng.randrange(365 * 19))


def soon_after(rng: random.Random, day: dt.date) -> dt.date:
    """A day on which a letter of `day` is answered."""
    return day + dt.timedelta(days=rng.randrange(6, 70))


@cache
def archive(reply_day: ReplyDay) -> tuple[Database, list[Letter], list[tuple[Letter, Letter]]]:
    """A database of letters, those of them that ask for money, and pairs of such a letter and its reply."""
    rng = random.Random("letterbook")  # noqa: S311
    topics = [(*pair, about) for pair in itertools.combinations(PEOPLE, 2) for about in GOODS]
    records = iter([f"LB-{number}" for number in rng.sample(range(1001, 2000), ASKING + REPLIES)])
    asking: list[Letter] = []
    replies: list[tuple[Letter, Letter]] = []
    for one, other, about in rng.sample(topics, ASKING):
        (sender, recipient), place, florins = rng.sample((one, other), 2), rng.choice(PLACES), rng.randrange(5, 95)
        body = f"I write to you about {about}. Be so kind as to send me {florins} florins."
        asking.append(Letter(next(records), sender, recipient, place, some_day(rng), "", body, about, florins))
    for first in rng.sample(asking, REPLIES):
        place, day, about = rng.choice(PLACES), reply_day(rng, first.day), first.about
        body = f"In answer to your letter of {first.day.day} {first.day:%B %Y} about {about}: I have sent word."
        reply = Letter(next(records), first.recipient, first.sender, place, day, first.record, body, about, 0)
        replies.append((first, reply))

    def fill(db: Database) -> None:
        for letter in sorted(asking + [reply for _, reply in replies]):
            db.execute("INSERT INTO letters VALUES (?, ?, ?, ?, ?, ?, ?)", *letter[:7])

    return Database(SCHEMA, seed=fill), asking, replies


class ReadingRoom(qn.State):
    """The archive, and what the reader has done in it: letters opened and cited, and the rest of the last search."""

    db: Database
    opened: list[str] = []
    left: list[str] = []
    searched: bool = False

    SPAN: ClassVar[str] = "CAST(substr(day, 1, 4) AS INTEGER) BETWEEN ? AND ?"
    COLUMNS: ClassVar[tuple[str, ...]] = ("record", "sender", "recipient", "place", "day", "answers", "body")

    @qn.tool
    def search(self, words: str, from_year: int = 1700, to_year: int = 1799) -> dict[str, Any]:
        """Find letters that hold all the words, in order of their records, five at a time.

        Args:
            words: Words from names, place, goods or text, such as "Keller salt". Capitals do not matter.
            from_year: First year of the letters, this one included.
            to_year: Last year of the letters, this one included.
        """
        terms = words.casefold().split()
        if not terms or from_year > to_year:
            raise qn.ToolError("give at least one word, and a first year that is not after the last one")
        self._cursor()[:] = self._found(terms, from_year, to_year)
        self.searched = True
        return self._page()

    @qn.tool
    def more(self) -> dict[str, Any]:
        """The next five letters of your last search."""
        if not self.searched:
            raise qn.ToolError("search first")
        return self._page()

    @qn.tool
    def open(self, record: str) -> dict[str, Any]:
        """Read one letter.

        Args:
            record: Its record, such as LB-1234.
        """
        letter = self._letter(record)
        if record not in self.opened:
            self.opened.append(record)
        return letter

    @qn.tool
    def cite(self, record: str) -> str:
        """Cite a letter that you have opened.

        Args:
            record: Its record, such as LB-1234.
        """
        if record not in self.opened:
            raise qn.ToolError(f"open {record} before you cite it")
        if record in self._cited():
            raise qn.ToolError(f"{record} is cited already")
        self.db.execute("INSERT INTO citations VALUES (?)", record)
        return f"{record} is cited"

    @qn.tool
    def uncite(self, record: str) -> str:
        """Take a citation back.

        Args:
            record: The record of a letter that you have cited.
        """
        if record not in self._cited():
            raise qn.ToolError(f"{record} is not cited")
        self.db.execute("DELETE FROM citations WHERE record = ?", record)
        return f"{record} is no longer cited"

    @qn.tool
    def citations(self) -> list[str]:
        """List the records that you have cited."""
        return self._cited()

    def _cited(self) -> list[str]:
        return [record for (record,) in self.db.execute("SELECT record FROM citations ORDER BY record")]

    def _found(self, terms: list[str], first: int, last: int) -> list[str]:
        text = "sender || ' ' || recipient || ' ' || place || ' ' || body"
        sql = f"SELECT record, {text} FROM letters WHERE {self.SPAN} ORDER BY record"
        rows = self.db.execute(sql, str(first), str(last))
        return [record for record, text in rows if all(term in text.casefold() for term in terms)]

    def _cursor(self) -> list[str]:
        return self.left

    def _page(self) -> dict[str, Any]:
        left = self._cursor()
        page, left[:] = left[:PAGE], left[PAGE:]
        letters = [ReadingRoom._letter(self, record) for record in page]
        hits = [{"record": o["record"], "title": f"{o['sender']} to {o['recipient']}, {o['day']}"} for o in letters]
        return {"hits": hits, "left": len(left)}

    def _letter(self, record: str) -> dict[str, Any]:
        rows = self.db.execute(f"SELECT {', '.join(self.COLUMNS)} FROM letters WHERE record = ?", record)
        if not rows:
            raise qn.ToolError(f"there is no letter {record!r}")
        return dict(zip(self.COLUMNS, rows[0], strict=True))


class ListedRoom(ReadingRoom):
    """A room that remembers the list of citations."""

    listed: list[str] | None = None

    @qn.tool
    def citations(self) -> list[str]:
        """List the records that you have cited."""
        if self.listed is None:
            self.listed = self._cited()
        return self.listed


class PatientRoom(ReadingRoom):
    """A room with forms for letters."""

    def _letter(self, record: str) -> dict[str, Any]:
        try:
            return ReadingRoom._letter(self, record)
        except qn.ToolError:
            return dict.fromkeys(self.COLUMNS, "")


class CursorRoom(ReadingRoom):
    """A room in which a cursor goes through the letters found."""

    def _cursor(self) -> list[str]:
        return CURSOR


class YearRoom(ReadingRoom):
    """A room whose search by years uses the index on days."""

    SPAN: ClassVar[str] = "day BETWEEN ? AND ?"


class PopularRoom(ReadingRoom):
    """A room that shows letters first that are often opened."""

    def _letter(self, record: str) -> dict[str, Any]:
        USE[record] += 1
        return ReadingRoom._letter(self, record)

    def _found(self, terms: list[str], first: int, last: int) -> list[str]:
        return sorted(ReadingRoom._found(self, terms, first, last), key=lambda record: (-USE[record], record))


def questions(asking: list[Letter], replies: list[tuple[Letter, Letter]]) -> list[list[Question]]:
    """Questions of three families; no two questions of a family rest on one letter."""
    rng = random.Random("letterbook/questions")  # noqa: S311
    families: list[list[Question]] = [[], [], []]
    when, where, florins = families
    answered = {first for first, _ in replies}
    for one in asking:
        if one not in answered:
            text = f"On which day did {one.sender} write to {one.recipient} about {one.about}?"
            when.append(("when", text, one.day.isoformat(), (one,)))
    for one, reply in replies:
        text = f"{one.sender} wrote to {reply.sender} about {one.about}. From which place did {reply.sender} reply?"
        where.append(("where", f"{text} Cite the letter and the reply.", reply.place, (one, reply)))
    for names, (first, last) in itertools.product(itertools.permutations(PEOPLE, 2), PERIODS):
        some = tuple(one for one in asking if one[1:3] == names and first <= one.day.year <= last)
        if len(some) > 1:
            text = f"How many florins did {names[0]} ask of {names[1]} in the years {first} to {last}, in all letters?"
            text += " Cite each letter that asks for some."
            florins.append(("florins", text, str(sum(one.florins for one in some)), some))
    return [rng.sample(family, 2 * PER_FAMILY) for family in families]


def plain(text: str) -> str:
    """A text without capitals, needless spaces, emphasis and a stop at its end."""
    return " ".join(text.replace("*", " ").casefold().split()).removesuffix(".")


def last_words(answer: str, truth: str) -> bool:
    """Whether the last line is the answer."""
    return plain(answer.strip().rpartition("\n")[2]) == plain(f"Answer: {truth}")


def build(
    room: type[ReadingRoom] = ReadingRoom, right: Callable[[str, str], bool] = last_words, days: ReplyDay = soon_after
) -> qn.Environment[ReadingRoom]:
    """The environment with a room, a check of the answer and the days of replies."""
    db, asking, replies = archive(days)
    start = room(db=db.fork())

    def task(split: str, n: int, question: Question) -> qn.Task[ReadingRoom]:
        family, text, answer, evidence = question
        records = sorted(one.record for one in evidence)
        search = ("search", {"words": f"{evidence[0].sender} {evidence[0].recipient}"})
        calls = ((name, {"record": record}) for record in records for name in ("open", "cite"))
        return qn.Task(
            id=f"{split}-{n}",
            prompt=f"{text} End with the line 'Answer: ...', {FORMS[family]}.",
            start=start,
            truth={"answer": answer, "evidence": records},
            solution=(search, *calls, ("citations", {})),
            answer=f"Answer: {answer}",
            tags={"family": family},
        )

    def tasks(split: str) -> list[qn.Task[ReadingRoom]]:
        first = 0 if split == "train" else PER_FAMILY
        asked = [one for family in questions(asking, replies) for one in family[first : first + PER_FAMILY]]
        return [task(split, n, one) for n, one in enumerate(asked)]

    @qn.reward
    def answered(view: qn.EpisodeView[ReadingRoom]) -> qn.Score:
        return qn.Score(float(right(view.answer, view.task.truth["answer"])), f"it is {view.task.truth['answer']}")

    @qn.reward
    def evidence(view: qn.EpisodeView[ReadingRoom]) -> qn.Score:
        wanted = set(view.task.truth["evidence"])
        cited = {record for (record,) in view.state.db.execute("SELECT record FROM citations")}
        return qn.Score(len(wanted & cited) / len(wanted | cited), f"{sorted(cited)} for {sorted(wanted)}")

    verifier = qn.Verifier(answered, evidence, combine="product")
    loop, splits = qn.ToolLoop(system=SYSTEM), ("train", "test")
    return qn.Environment("letterbook", tasks=tasks, harness=loop, verifier=verifier, state=room, splits=splits)


env = build()
env_listed = build(ListedRoom)
env_blank = build(PatientRoom)
env_cursor = build(CursorRoom)
env_years = build(YearRoom)
env_popular = build(PopularRoom)
env_mention = build(right=lambda answer, truth: plain(truth) in plain(answer))
env_replies = build(days=lambda rng, _: some_day(rng))
