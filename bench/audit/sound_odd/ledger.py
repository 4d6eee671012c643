"""A ledger behind SQL. Its amounts are too large for floats, its names are of several scripts, its tools differ by
task."""

from typing import Annotated, Literal

import msgspec

import quintain as qn
from quintain.resources.database import Database

Cents = Annotated[int, msgspec.Meta(ge=1, le=4_000_000_000_000_000_000)]
Owner = Annotated[str, msgspec.Meta(min_length=1, max_length=30)]
AccountId = Annotated[int, msgspec.Meta(ge=1, le=99)]


class Account(msgspec.Struct):
    id: int
    owner: str
    cents: int
    status: Literal["open", "closed"] = "open"


ROWS = [
    Account(1, "Zoë Ångström", 9_007_199_254_740_993),
    Account(2, "李雷", 9_007_199_254_740_992),
    Account(3, "O'Neil; DROP TABLE accounts", 150),
    Account(4, "Ζωή Παπαδάκη", 1_000_000_000_000_000_001, "closed"),
    Account(5, "null", 0),
    Account(6, "zoë ångström", 77),
]


def fill(db: Database) -> None:
    for row in ROWS:
        db.insert(row)


BOOKS = Database(Account, seed=fill)


class Ledger(qn.State):
    db: Database
    reported: str | None = None

    def _account(self, account: int) -> Account:
        found = self.db.one(Account, "SELECT * FROM accounts WHERE id = ?", account)
        if found is None:
            raise qn.ToolError(f"no account {account}")
        return found

    @qn.tool
    def query(self, sql: Annotated[str, msgspec.Meta(min_length=1, max_length=400)]) -> list[list[object]]:
        """Read from the table accounts (id, owner, cents, status): status is open or closed, cents is a whole number.

        Rows come in the order that ORDER BY says, else in any. At most 100 rows and 20,000 characters are
        shown; the rows beyond are left out.

        Args:
            sql: One SELECT of SQLite, 1 to 400 characters.
        """
        return self.db.ask(sql).rows

    @qn.tool
    def report(self, value: Annotated[str, msgspec.Meta(min_length=1, max_length=60)]) -> str:
        """Report the answer to the question of your task; it replaces the one before.

        Args:
            value: 1 to 60 characters; a number in digits, without separators.
        """
        self.reported = value
        return "reported"

    @qn.tool
    def transfer(self, source: AccountId, target: AccountId, cents: Cents) -> list[Account]:
        """Transfer cents between two open accounts; returns both.

        Args:
            source: Id of the account that pays.
            target: Id of another account.
            cents: How many, at least 1, at most what the source has.
        """
        payer, payee = self._account(source), self._account(target)
        if source == target or "closed" in (payer.status, payee.status):
            raise qn.ToolError("source and target must be two open accounts")
        if payer.cents < cents:
            raise qn.ToolError(f"account {source} has only {payer.cents}")
        with self.db.transaction():
            self.db.execute("UPDATE accounts SET cents = cents - ? WHERE id = ?", cents, source)
            self.db.execute("UPDATE accounts SET cents = cents + ? WHERE id = ?", cents, target)
        return [self._account(source), self._account(target)]

    @qn.tool
    def rename(self, account: AccountId, owner: Owner) -> Account:
        """Set the owner's name of an account, open or closed.

        Args:
            account: Its id.
            owner: The name as it shall be spelled, 1 to 30 characters.
        """
        self._account(account)
        self.db.execute("UPDATE accounts SET owner = ? WHERE id = ?", owner, account)
        return self._account(account)


Call = tuple[str, dict[str, object]]
RULE = "You are judged by the accounts at the end: those that are named are as asked, and all else is as it was."


def look(where: str) -> Call:
    return "query", {"sql": f"SELECT id, owner, cents, status FROM accounts WHERE {where} ORDER BY id"}


# Each: what is asked for, tools besides query, fields that change, the report, a solution.
JOBS: list[tuple[str, list[str], dict[int, dict[str, object]], str | None, list[Call]]] = [
    ("How many cents do the open accounts hold together? Report it.", ["report"], {}, "18014398509482212",
     [("query", {"sql": "SELECT sum(cents) FROM accounts WHERE status = 'open'"})]),
    ("Report the id of the account whose owner is called null.", ["report"], {}, "5", [look("owner = 'null'")]),
    ("Report the name of the owner with the most cents, open or closed.", ["report"], {}, "Ζωή Παπαδάκη",
     [look("cents = (SELECT max(cents) FROM accounts)")]),
    ("Transfer one cent from Zoë Ångström (id 1) to 李雷.", ["transfer"],
     {1: {"cents": 9_007_199_254_740_992}, 2: {"cents": 9_007_199_254_740_993}}, None,
     [look("owner = '李雷'"), ("transfer", {"source": 1, "target": 2, "cents": 1})]),
    ("Let account 6 belong to Zoë Ångström, spelled with capitals as in account 1.", ["rename"],
     {6: {"owner": "Zoë Ångström"}}, None,
     [look("id IN (1, 6)"), ("rename", {"account": 6, "owner": "Zoë Ångström"})]),
    ("Give account 3 the name O'Neil, and let it pay its 150 cents to account 5.", ["rename", "transfer"],
     {3: {"owner": "O'Neil", "cents": 0}, 5: {"cents": 150}}, None,
     [("rename", {"account": 3, "owner": "O'Neil"}), ("transfer", {"source": 3, "target": 5, "cents": 150})]),
]  # fmt: skip


def tasks(split: str) -> list[qn.Task[Ledger]]:
    made: list[qn.Task[Ledger]] = []
    for n, (prompt, tools, changed, report, calls) in enumerate(JOBS, 1):
        rows = [msgspec.to_builtins(row) | changed.get(row.id, {}) for row in ROWS]
        last: list[Call] = [("report", {"value": report})] if report else []
        rule = "You are judged by your last report, to the letter." if report else RULE
        made.append(
            qn.Task(
                id=f"{split}-{n}",
                prompt=f"{prompt} {rule}",
                start=Ledger(db=BOOKS.fork()),
                truth={"rows": rows, "report": report},
                solution=(*calls, *last),
                tools=("query", *tools),
            )
        )
    return made


@qn.reward
def as_asked(view: qn.EpisodeView[Ledger]) -> qn.Score:
    rows = [msgspec.to_builtins(row) for row in view.state.db.all(Account, "SELECT * FROM accounts ORDER BY id")]
    right = {"rows": rows, "report": view.state.reported} == view.task.truth
    return qn.Score(float(right), f"report {view.state.reported!r}, rows {rows}")


env = qn.Environment(
    "ledger", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Ledger, splits=("test",)
)
