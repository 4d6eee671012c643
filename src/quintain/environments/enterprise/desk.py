"""S without the generated tools: one database, and the employee who is signed in to it."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Any

import msgspec

import quintain as qn
from quintain.resources.database import Database

from .description import Action, TableSpec, company

Reference = Annotated[str, msgspec.Meta(min_length=1, max_length=160)]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]

_KEY = re.compile(r"([A-Z]+)-([0-9]{1,9})(?:\s.*)?", re.DOTALL)
_ROLES = """
SELECT r.name FROM role_grants g JOIN roles r ON r.id = g.role
WHERE g.employee = ? AND g.status = 'active' ORDER BY r.name
"""
_SHOWN = 25


class Desk(qn.State):
    """State on which every tool works.

    Attributes:
        db: The company.
        actor: Row of the employee who is signed in; 0 before the sign-in.
    """

    db: Database
    actor: int = 0

    @qn.tool
    def sign_in(self, employee: Reference, passcode: Words) -> dict[str, Any]:
        """Sign in as an employee; every other tool works in this employee's name and with this employee's roles.

        Args:
            employee: Key (EMP-...) or full name.
            passcode: The employee's passcode, six digits.
        """
        found = self.resolve(company().tables["employees"], employee)
        status = self.db.execute("SELECT status FROM employees WHERE id = ?", found)[0][0]
        if passcode.strip() != passcode_of(found) or status == "terminated":
            raise qn.ToolError("401: unknown employee or wrong passcode")
        self.actor = found
        return self.whoami()

    @qn.tool
    def whoami(self) -> dict[str, Any]:
        """Show who is signed in, with team, manager, roles and approval limit, and what day it is."""
        sql = """
        SELECT e.id, e.name, t.name, m.id, m.name, e.approval_limit FROM employees e
        JOIN teams t ON t.id = e.team LEFT JOIN employees m ON m.id = e.manager WHERE e.id = ?
        """
        number, name, team, manager, boss, limit = self.db.execute(sql, self.me())[0]
        return {
            "employee": f"EMP-{number} {name}",
            "team": team,
            "manager": f"EMP-{manager} {boss}" if manager else None,
            "roles": sorted(self.roles()),
            "approval_limit": limit,
            "today": self.today,
        }

    @qn.tool
    def search_tools(self, words: Words) -> list[dict[str, str]]:
        """Search the catalogue of all tools by words of their names and descriptions; the best matches come first.

        Args:
            words: Such as "approve invoice" or "laptop".
        """
        from .tools import described

        wanted = [word.removesuffix("s") for word in re.findall(r"[a-z0-9]+", words.lower())]
        scored: list[tuple[int, str, str]] = []
        for name, doc in described().items():
            text = doc.lower()
            score = sum(3 * (word in name) + (word in text) for word in wanted)
            if score:
                scored.append((-score, name, doc))
        return [{"tool": name, "does": doc} for _, name, doc in sorted(scored)[:_SHOWN]]

    @qn.tool
    def describe_table(self, table: Words) -> dict[str, Any]:
        """Describe a table: what it holds, its columns, and the tools that work on it.

        Args:
            table: Its name, such as purchase_orders; an unknown one is answered with all names.
        """
        tables = company().tables
        if table not in tables:
            raise qn.ToolError(f"404: no table {table!r}; there are {', '.join(sorted(tables))}")
        found = tables[table]
        return {
            "about": found.about,
            "department": found.department,
            "key": f"{found.code}-<number>",
            "columns": {
                column.name: column.kind
                + (f" {column.table}" if column.table else "")
                + "|".join(("", *column.options))
                for column in found.columns.values()
            },
            "tools": [action.name for action in company().actions.values() if action.table == table],
        }

    # -- what generated tools use

    @property
    def today(self) -> str:
        return self.clock.date.date().isoformat()

    @property
    def stamp(self) -> str:
        """Now, to the minute."""
        return self.clock.date.isoformat(timespec="minutes")[:16]

    def me(self) -> int:
        """Returns the row of the employee who is signed in.

        Raises:
            ToolError: No employee is signed in.
        """
        if not self.actor:
            raise qn.ToolError("401: sign in first")
        return self.actor

    def roles(self) -> set[str]:
        """Names of the roles of who is signed in."""
        return {name for (name,) in self.db.execute(_ROLES, self.me())}

    def enter(self, action: Action) -> set[str]:
        """The roles of who is signed in.

        Raises:
            ToolError: None of them, and nothing else, lets this employee use the tool.
        """
        roles = self.roles()
        if action.role and action.role not in roles and not action.own:
            raise qn.ToolError(f"403: {action.name} needs the role {action.role}")
        return roles

    def resolve(self, table: TableSpec, text: str) -> int:
        """Returns the row of a key such as PR-17, or of a name that only one row has.

        Raises:
            ToolError: No row matches, or several do.
        """
        text = text.strip()
        found = _KEY.fullmatch(text)
        if found and found[1] == table.code:
            rows = self.db.execute(f'SELECT id FROM "{table.name}" WHERE id = ?', int(found[2]))  # noqa: S608
        elif table.label:
            where = f'"{table.label}" = ? COLLATE NOCASE ORDER BY id LIMIT 6'
            rows = self.db.execute(f'SELECT id FROM "{table.name}" WHERE {where}', text)  # noqa: S608
        else:
            rows = []
        if not rows:
            raise qn.ToolError(f"404: no {table.one} {text!r}; its key looks like {table.code}-12")
        if len(rows) > 1:
            keys = ", ".join(f"{table.code}-{number}" for (number,) in rows)
            raise qn.ToolError(f"409: several {table.name} are called {text!r}: {keys}")
        return int(rows[0][0])

    def may_see(self, table: TableSpec, roles: set[str]) -> bool:
        """True if every row of a table is visible; else only those of the employee and of direct reports."""
        return not table.private or table.reader in roles


def passcode_of(employee: int) -> str:
    """Six digits; not in the database, so no tool shows them."""
    block = hashlib.blake2b(f"passcode/{employee}".encode(), digest_size=8).digest()
    return f"{int.from_bytes(block, 'little') % 10**6:06}"
