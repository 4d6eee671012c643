"""A task while it is being written: it is played as it is written, in the world that the tasks before it leave."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any, cast

from quintain import authoring, codec

from .description import company
from .desk import Desk, passcode_of
from .goals import Call, CallGoal, call, keyed, play

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_CHATTER = (
    "",
    "",
    "Sorry for the short notice.",
    "I am in meetings until four, so please just do it.",
    "There was an older mail about something like this; that one is settled.",
    "PS: the coffee machine on the second floor works again.",
    "You know how these things go by now.",
    "A colleague meant to do it and was called away, so nothing of it is in the system yet.",
    "Thanks a lot!",
)
_CLOSING = "Do what is asked and nothing else; the records must be right when you are done."
_WHO = """
SELECT e.id FROM employees e JOIN role_grants g ON g.employee = e.id JOIN roles r ON r.id = g.role
WHERE e.status = 'active' AND g.status = 'active' AND r.name = ? AND e.approval_limit >= ? ORDER BY e.id
"""


class CompanyDraft(authoring.Draft[Desk]):
    """One task in the making.

    Attributes:
        desk: The company as the task leaves it; a copy.
        memory: What the steps of one story know of each other: names and titles that prompts gave.
        actor: Row of the employee who acts.
        wanted: The goal so far. `calls` are the same with keys, and with the look-ups that they need.
    """

    def __init__(self, key: bytes, start: Desk, memory: dict[str, Any]) -> None:
        super().__init__(key)
        self.start = start
        self.desk = start.copy()
        self.memory = memory
        self.actor = 0
        self.wanted: list[Call] = []
        self._seen = ""

    def sign_in(self, employee: int) -> None:
        """Act as this employee."""
        self.actor = self.desk.actor = employee
        who = {"employee": f"EMP-{employee}", "passcode": passcode_of(employee)}
        self.play("sign_in", **who)

    def act_as(self, role: str, *, limit: int = 0, but: tuple[int, ...] = ()) -> int:
        """Acts as an employee with a role and an approval limit, except those in `but`."""
        able = [number for (number,) in self.desk.db.execute(_WHO, role, limit) if number not in but]
        if not able:
            raise ValueError(f"no other employee has the role {role} and an approval limit of {limit} or more")
        self.sign_in(self.rng.choice(able))
        return self.actor

    def look(self, tool: str, /, **arguments: Any) -> Any:
        """Read something; part of the solution, not of the goal."""
        self.play(tool, **arguments)
        found = call(self.desk, tool, **arguments)
        self._seen += codec.text(found)
        return found

    def do(self, tool: str, /, **arguments: Any) -> None:
        """Adds a call to the goal.

        Raises:
            ValueError: The world refuses the call, so the task is wrong.
        """
        for value in arguments.values():
            if isinstance(value, dict):
                self._find(cast("dict[str, Any]", value))
        made, refused = play(self.desk, CallGoal(actor=self.actor, calls=((tool, arguments),)))
        if refused:
            raise ValueError(f"a task that cannot be done: {refused[0]}")
        self.wanted.append((tool, arguments))
        self.calls += made

    def _find(self, wanted: dict[str, Any]) -> None:
        """Look a record up whose key was not shown yet, by what is known of it."""
        key = keyed(self.desk, wanted)
        is_shown = re.compile(rf'"{key}[" ]')
        if is_shown.search(self._seen):
            return
        table = company().tables[wanted["table"]]
        finder = company().actions[f"{table.department}_find_{table.name}"]
        known = {column.name for column in finder.parameters}
        filters = {name: keyed(self.desk, value) for name, value in wanted["where"].items() if name in known}
        self.look(finder.name, **filters)
        if not is_shown.search(self._seen):
            raise ValueError(f"{finder.name} with {filters} does not show {key}")

    def pick(self, sql: str, *values: Any) -> tuple[Any, ...]:
        """One of the rows, by chance."""
        rows = self.desk.db.execute(sql, *values)
        if not rows:
            raise ValueError(f"nothing to choose from: {sql} {values}")
        return self.rng.choice(rows)

    def get(self, sql: str, *values: Any) -> Any:
        """The first column of the first row."""
        return self.desk.db.execute(sql, *values)[0][0]

    def name(self, employee: int | None = None) -> str:
        """An employee's name; the actor's when none is given."""
        return str(self.get("SELECT name FROM employees WHERE id = ?", employee or self.actor))

    def day(self, ahead: int) -> str:
        """A date so many days from now."""
        return (date.fromisoformat(self.desk.today) + timedelta(days=ahead)).isoformat()

    def number(self, low: int, high: int) -> int:
        """A number from low to high."""
        return low + self.rng.below(high - low + 1)

    def fresh(self, words: str) -> str:
        """A title that no record has."""
        return f"{words} {self.number(10_000, 99_999)}"

    def chatter(self) -> str:
        """Returns a sentence without meaning for the task, as people add to requests; may be empty."""
        return self.rng.choice(_CHATTER)

    @property
    def prompt(self) -> str:
        return f"{self.introduction}\n\n{self.request}\n\n{_CLOSING}"

    def truth(self) -> CallGoal:
        return CallGoal(actor=self.actor, calls=tuple(self.wanted))

    def world(self) -> Desk:
        return self.start

    @property
    def introduction(self) -> str:
        """Name, key and passcode of the employee, and the date."""
        sql = "SELECT t.name FROM employees e JOIN teams t ON t.id = e.team WHERE e.id = ?"
        team = self.get(sql, self.actor)
        who = f"You are {self.name()} (EMP-{self.actor}, passcode {passcode_of(self.actor)}), {team}."
        return f"{who} Today is {_WEEKDAYS[self.desk.clock.date.weekday()]}, {self.desk.today}."
