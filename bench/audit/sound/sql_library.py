"""Questions about a library that an agent answers with SQL; the number of queries is limited by the rules."""

import datetime as dt
from typing import Annotated

import msgspec
from msgspec import Meta

import quintain as qn
from quintain.judges import normalized, unicode_text
from quintain.resources.database import Database, Indexed, References

BUDGET = 10
TITLES = ("Salt", "The Ferry", "Nine Lamps", "Orchard", "Winter Bees", "A Quiet Sum", "Harbour", "Tin Roof")
AUTHORS = ("A. Lund", "M. Okoro", "P. Vega")
READERS = ("Agnes", "Bruno", "Celia", "Dario", "Elif", "Femi")


class Book(msgspec.Struct):
    id: int
    title: str
    author: Annotated[str, Indexed()]
    pages: int


class Member(msgspec.Struct):
    id: int
    name: str
    joined: dt.date


class Loan(msgspec.Struct):
    id: int
    book: Annotated[int, References(Book)]
    member: Annotated[int, References(Member)]
    lent: dt.date
    returned: dt.date | None


def fill(db: Database) -> None:
    """Inserts 8 books, 6 members and 40 loans; every fifth loan is still open."""
    for n, title in enumerate(TITLES):
        db.insert(Book(n + 1, title, AUTHORS[n % 3], 120 + 37 * n))
    for n, name in enumerate(READERS):
        db.insert(Member(n + 1, name, dt.date(2020 + n, 1 + n, 3)))
    for n in range(40):
        lent = dt.date(2025, 1, 5) + dt.timedelta(days=6 * n)
        returned = None if n % 5 == 4 else lent + dt.timedelta(days=4 + (7 * n) % 17)
        db.insert(Loan(n + 1, 1 + (n * n + n // 3) % 8, 1 + (n * n // 2 + n // 7) % 6, lent, returned))


class Library(qn.State):
    db: Database
    asked: int = 0

    @qn.tool
    def tables(self) -> dict[str, list[str]]:
        """List the tables with their columns. Dates are text such as 2025-01-05; an open loan has no date of return."""
        return {
            name: [row[1] for row in self.db.execute("SELECT * FROM pragma_table_info(?)", name)]
            for name in ("books", "loans", "members")
        }

    @qn.tool
    def query(self, sql: Annotated[str, Meta(max_length=2000)]) -> dict[str, object]:
        """Run one SELECT statement of SQLite; at most 10 in an episode.

        A statement that is refused does not count. `left` is the number of queries that are left, and `is_cut` is true
        if rows are missing, since at most 100 are shown. Without ORDER BY the rows have no defined order.

        Args:
            sql: The statement, at most 2,000 characters.
        """
        if self.asked >= BUDGET:
            raise qn.ToolError(f"all {BUDGET} queries are used; answer with what you know")
        found = self.db.ask(sql)
        self.asked += 1
        return {"columns": found.columns, "rows": found.rows, "is_cut": found.is_cut, "left": BUDGET - self.asked}


LIBRARY = Database(Book, Member, Loan, seed=fill)
JOINED = "loans JOIN books ON books.id = loans.book JOIN members ON members.id = loans.member"
QUESTIONS = (
    ("How many loans have no date of return?", "SELECT count(*) FROM loans WHERE returned IS NULL"),
    ("Which book has the most pages? Give the title.", "SELECT title FROM books ORDER BY pages DESC LIMIT 1"),
    ("How many pages do the books of P. Vega have?", "SELECT sum(pages) FROM books WHERE author = 'P. Vega'"),
    ("Which member joined last? Give the name.", "SELECT name FROM members ORDER BY joined DESC LIMIT 1"),
    ("How often was the book Salt lent?", f"SELECT count(*) FROM {JOINED} WHERE title = 'Salt'"),
    (
        "How many loans began from 2025-03-01 to 2025-05-31, both days included?",
        "SELECT count(*) FROM loans WHERE lent BETWEEN '2025-03-01' AND '2025-05-31'",
    ),
    (
        "Who has the most loans, returned ones included? Give the name.",
        f"SELECT name FROM {JOINED} GROUP BY members.id ORDER BY count(*) DESC LIMIT 1",
    ),
    (
        "How many days did the longest of the returned loans last?",
        "SELECT CAST(max(julianday(returned) - julianday(lent)) AS INTEGER) FROM loans WHERE returned IS NOT NULL",
    ),
)


def make(number: int) -> qn.Task[Library]:
    question, sql = QUESTIONS[number]
    answer = str(LIBRARY.execute(sql)[0][0])
    return qn.Task(
        id=f"question-{number + 1}",
        prompt=f"{question} Reply with 'Answer: ' and the title, name or number alone, a number in digits.",
        start=Library(db=LIBRARY.fork()),
        truth=answer,
        solution=(("tables", {}), ("query", {"sql": sql})),
        answer=f"Answer: {answer}",
    )


env = qn.Environment(
    "sql_library",
    tasks=lambda split: qn.Tasks(len(QUESTIONS), make),
    harness=qn.ToolLoop(system="You answer questions about a library. Letter case and punctuation do not matter."),
    verifier=qn.Verifier(normalized(normalize=unicode_text)),
    state=Library,
    splits=("test",),
)
