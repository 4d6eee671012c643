"""Crew desk of a ferry company: a week's plan in a database, sick calls, sailings that wait, an agency."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec

import quintain as qn
from quintain.resources.database import Database
from quintain.state import Rng

MONDAY = int(datetime(2027, 3, 1, tzinfo=UTC).timestamp())
ROLES = ("master", "engineer", "deckhand")
SLOTS = ((410, 95, "Mainland"), (630, 140, "Outer Isles"), (910, 95, "Mainland"), (1360, 125, "Night Mail"))
NAMES = ("Aune Berg", "Tor Lindal", "Mika Saar", "Ruth Okoye", "Jonas Friel", "Edda Holm", "Piet Vos", "Siri Aas",
         "Omar Daud", "Lena Krog", "Yann Morvan", "Greta Puls", "Nils Ravn", "Ines Prado", "Colm Reid", "Vera Stein",
         "Hugo Lam", "Dora Fisk")  # fmt: skip
AGENCY = ("Juno Tal", "Erik Sund", "Paula Weir", "Sami Koski", "Britt Moe", "Leo Garda", "Anouk Bel", "Kaspar Ott")
SCHEMA = """
CREATE TABLE crew (id INTEGER PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, ill INTEGER NOT NULL DEFAULT 0);
CREATE TABLE sailing (id INTEGER PRIMARY KEY, route TEXT NOT NULL, departs INTEGER NOT NULL, arrives INTEGER NOT NULL);
CREATE TABLE duty (id INTEGER PRIMARY KEY, sailing INTEGER NOT NULL, role TEXT NOT NULL, crew INTEGER);
CREATE TABLE post (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, line TEXT NOT NULL);
"""
BOARD = """
SELECT d.id, s.id, s.route, strftime('%Y-%m-%d %H:%M', s.departs, 'unixepoch'),
       strftime('%Y-%m-%d %H:%M', s.arrives, 'unixepoch'), d.role, d.crew, c.name
FROM duty d JOIN sailing s ON s.id = d.sailing LEFT JOIN crew c ON c.id = d.crew
WHERE date(s.departs, 'unixepoch') = ? ORDER BY s.departs, d.id
"""
COLUMNS = ("duty", "sailing", "route", "departs", "arrives", "role", "crew", "name")
FREE = """
SELECT c.id, c.name, (SELECT coalesce(sum(arrives - departs), 0) / 60 FROM sailing s JOIN duty e ON s.id = e.sailing
                      WHERE e.crew = c.id)
FROM duty d JOIN sailing t ON t.id = d.sailing JOIN crew c ON c.role = d.role
WHERE d.id = ? AND c.ill = 0 AND NOT EXISTS (
    SELECT 1 FROM duty e JOIN sailing s ON s.id = e.sailing
    WHERE e.crew = c.id AND s.departs < t.arrives + 28800 AND s.arrives > t.departs - 28800)
ORDER BY c.id
"""
BASE = Database(SCHEMA)
PLAN = {"duty": "SELECT id, crew FROM duty", "sailing": "SELECT id, departs, arrives FROM sailing"}
RULE = " in the order of their numbers, each with the candidate with the fewest planned minutes at that moment (or of \
those the lowest number)"


def text(at: float) -> str:
    """Returns a moment as the desk writes it."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"


class Desk(qn.State):
    """The crew desk."""

    db: Database
    monday: int
    requested: int = 0

    @qn.tool
    def board(self, day: str) -> list[dict[str, Any]]:
        """Show the duties of all sailings that depart on a day; an open duty has no crew.

        Args:
            day: A date of the week, in the form 2027-03-02.
        """
        return self._lines(self._date(day))

    @qn.tool
    def candidates(self, duty: int) -> list[dict[str, Any]]:
        """List who may take a duty: right role, not ill, 8 hours of rest before and after. With the week's minutes.

        Args:
            duty: Number of the duty.
        """
        return self._free(duty)

    @qn.tool
    def assign(self, duty: int, crew: int) -> str:
        """Give a duty to a person who may take it; whoever had it before is off.

        Args:
            duty: Number of the duty.
            crew: Number of the person.
        """
        self._coming(self._row("duty", duty)[1])
        _, name, *_ = self._row("crew", crew)
        if crew not in [one["crew"] for one in self._free(duty)]:
            raise qn.ToolError(f"{name} is ill, has another role, or would have less than 8 hours of rest")
        self.db.execute("UPDATE duty SET crew = ? WHERE id = ?", crew, duty)
        return f"{name} has duty {duty}"

    @qn.tool
    def delay(self, sailing: int, minutes: Annotated[int, msgspec.Meta(ge=5, le=180)]) -> str:
        """Let a sailing depart, and arrive, later than it would now. A crew may finish it whatever its rest.

        Args:
            sailing: Number of the sailing.
            minutes: By how much.
        """
        departs, arrives = (at + 60 * minutes for at in self._coming(sailing))
        self.db.execute("UPDATE sailing SET departs = ?, arrives = ? WHERE id = ?", departs, arrives, sailing)
        return f"sailing {sailing} departs {text(departs)}, arrives {text(arrives)}"

    @qn.tool
    def request_relief(self, role: Literal["master", "engineer", "deckhand"]) -> str:
        """Ask the agency for a relief; 90 minutes later the log names the person.

        Args:
            role: What the relief is to work as.
        """
        self.clock.after(90 * 60, self._confirm, role=role, name=self._relief())
        self.requested += 1
        return "the agency will confirm in 90 minutes"

    @qn.tool
    def log(self) -> list[str]:
        """Read the desk's log: sick calls, the harbour, the agency."""
        return [f"{text(at)} {line}" for at, line in self.db.execute("SELECT at, line FROM post ORDER BY id")]

    @qn.tool
    def wait(self, minutes: Annotated[int, msgspec.Meta(ge=1, le=720)]) -> str:
        """Let time pass; returns the date and time after it.

        Args:
            minutes: How long.
        """
        self.clock.advance(60 * self._pause(minutes))
        return text(self.clock.now)

    def _confirm(self, role: str, name: str) -> None:
        [(number,)] = self.db.execute("INSERT INTO crew (name, role) VALUES (?, ?) RETURNING id", name, role)
        self._post(f"Agency: {name}, crew {number}, is available as {role}.")

    def _sick_call(self, crew: int) -> None:
        sql = "UPDATE duty SET crew = NULL WHERE crew = ? AND sailing IN (SELECT id FROM sailing WHERE departs > ?)"
        self.db.execute("UPDATE crew SET ill = 1 WHERE id = ?", crew)
        self.db.execute(sql, crew, int(self.clock.now))
        self._post(f"Sick call: {self._row('crew', crew)[1]}, crew {crew}, is off for the rest of the week.")

    def _post(self, line: str) -> None:
        self.db.execute("INSERT INTO post (at, line) VALUES (?, ?)", int(self.clock.now), line)

    def _date(self, day: str) -> str:
        if day not in self._days():
            raise qn.ToolError(f"no day {day!r} in the plan, which has {', '.join(self._days())}")
        return day

    def _days(self) -> list[str]:
        return [text(self.monday + n * 86_400)[:10] for n in range(7)]

    def _lines(self, day: str) -> list[dict[str, Any]]:
        return [dict(zip(COLUMNS, row, strict=True)) for row in self.db.execute(BOARD, day)]

    def _free(self, duty: int) -> list[dict[str, Any]]:
        self._row("duty", duty)
        columns = ("crew", "name", "planned_minutes")
        return [dict(zip(columns, row, strict=True)) for row in self.db.execute(FREE, duty)]

    def _pause(self, minutes: int) -> int:
        return minutes

    def _relief(self) -> str:
        return AGENCY[self.requested % len(AGENCY)]

    def _coming(self, sailing: int) -> tuple[int, int]:
        _, _, departs, arrives = self._row("sailing", sailing)
        if departs <= self.clock.now:
            raise qn.ToolError(f"sailing {sailing} departed {text(departs)}")
        return departs, arrives

    def _row(self, table: str, number: int) -> tuple[Any, ...]:
        if not (found := self.db.execute(f"SELECT * FROM {table} WHERE id = ?", number)):
            raise qn.ToolError(f"there is no {table} {number}")
        return found[0]


def week(state: type[Desk], rng: Rng, monday: int, *, wrap: bool) -> Desk:
    """Returns a desk on Monday at 06:00 with a planned week: six people per role take turns."""
    turns = [rng.sample(range(k, len(NAMES) + 1, 3), 6) for k in (1, 2, 3)]
    desk = state(db=BASE.fork(), monday=monday)
    desk.clock.now = monday + 6 * 3600.0
    with desk.db.transaction():
        for n, name in enumerate(NAMES):
            desk.db.execute("INSERT INTO crew (id, name, role) VALUES (?, ?, ?)", n + 1, name, ROLES[n % 3])
        for n in range(28):
            start, length, route = SLOTS[n % 4]
            day, end = monday + n // 4 * 86_400, (start + length) % 1440 if wrap else start + length
            desk.db.execute("INSERT INTO sailing VALUES (?, ?, ?, ?)", n + 1, route, day + 60 * start, day + 60 * end)
            for k, role in enumerate(ROLES):
                desk.db.execute("INSERT INTO duty VALUES (?, ?, ?, ?)", 3 * n + k + 1, n + 1, role, turns[k][n % 6])
    return desk


def write(family: str, rng: Rng, desk: Desk) -> tuple[str, list[Any], int]:
    """Prepares a desk; returns the request, the first calls of the solution, and who fills the open duties after."""
    later = 55 + 5 * rng.below(12)  # Sailing 1 is away by then.
    if family == "fill":
        sailings = sorted(rng.sample(range(6, 29), 2))
        boards = [("board", {"day": text(desk._coming(one)[0])[:10]}) for one in sailings]
        for one in sailings:
            desk.db.execute("UPDATE duty SET crew = NULL WHERE id = ?", 3 * one - rng.below(3))
        return f"Two duties of the week that begins today are open. Fill them{RULE}.", boards, 0
    if family == "sick":
        desk.clock.after(60 * later, desk._sick_call, crew=1 + rng.below(len(NAMES)))
        wait = [("wait", {"minutes": 120}), ("log", {})]
        return f"Before 08:00 somebody will call in sick. Wait for it, then fill the duties that open{RULE}.", wait, 0
    if family == "relief":
        duty = 16 + rng.below(60)
        _, sailing, role, _ = desk._row("duty", duty)
        desk.db.execute("UPDATE duty SET crew = NULL WHERE id = ?", duty)
        calls = [("request_relief", {"role": role}), ("wait", {"minutes": 90}), ("log", {})]
        return f"Sailing {sailing} lacks its {role}. Assign a relief, by one request to the agency.", calls, 19
    sailing, minutes = 2 + rng.below(2), 20 + 5 * rng.below(12)
    desk.clock.after(60 * later, desk._post, line=f"Harbour: sailing {sailing} waits for a coach, {minutes} minutes.")
    calls = [("wait", {"minutes": later}), ("log", {}), ("delay", {"sailing": sailing, "minutes": minutes})]
    return "Before 08:00 the harbour posts which sailing has to wait, and how long. Delay it by as much.", calls, 0


def plan(desk: Desk) -> dict[str, list[list[Any]]]:
    """Returns what a verifier compares: who sails, and when."""
    return {part: [list(row) for row in desk.db.execute(f"{sql} ORDER BY id")] for part, sql in PLAN.items()}


def task(split: str, n: int, state: type[Desk], *, wrap: bool) -> qn.Task[Desk]:
    """Makes task n of a split; its truth is what the solution leaves on a sound desk."""
    family, worlds = ("fill", "sick", "relief", "delay")[n % 4], []
    for kind in (state, Desk):
        rng = Rng(key=f"ferrycrew/{split}/{n}".encode())
        worlds.append(week(kind, rng, MONDAY + 604_800 * (n + 20 * (split == "test")), wrap=wrap))
        request, calls, crew = write(family, rng, worlds[-1])
    start, desk = worlds
    for tool, arguments in calls:
        getattr(desk, tool)(**arguments)
    for (duty,) in desk.db.execute("SELECT id FROM duty WHERE crew IS NULL ORDER BY id"):
        who = crew or min((one["planned_minutes"], one["crew"]) for one in desk._free(duty))[1]
        desk.assign(duty, who)
        calls += [("candidates", {"duty": duty}), ("assign", {"duty": duty, "crew": who})]
    prompt = f"You run a ferry company's crew desk; it is {text(start.clock.now)} UTC. {request} Change nothing else."
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=start, truth=plan(desk), tags={"family": family},
                   solution=tuple(calls))  # fmt: skip


@qn.reward
def planned(outcome: qn.EpisodeView[Desk]) -> qn.Score:
    """1 if every duty has the right person and every sailing the right times."""
    wanted, found = outcome.task.truth, plan(outcome.state)
    wrong = [f"{part} {row}" for part in PLAN for row in found[part] if row not in wanted[part]]
    return qn.Score(float(not wrong), "; ".join(wrong))


@qn.reward
def planned_some(outcome: qn.EpisodeView[Desk]) -> float:
    """1 if the duties and sailings of the task are as they should be."""
    before, wanted, found = plan(outcome.start), outcome.task.truth, plan(outcome.state)
    return float(all(row in found[part] for part in PLAN for row in wanted[part] if row not in before[part]))


def build(bug: str = "", state: type[Desk] = Desk, *, check: Any = planned, wrap: bool = False) -> qn.Environment[Desk]:
    """Builds the environment from its parts."""
    counts = {"train": 20, "test": 12}
    return qn.Environment(
        f"ferrycrew{bug}", tasks=lambda split: [task(split, n, state, wrap=wrap) for n in range(counts[split])],
        harness=qn.ToolLoop(), verifier=qn.Verifier(check), state=state, splits=tuple(counts))  # fmt: skip


class BoardCacheDesk(Desk):
    """Reads a board at most once an hour."""

    boards: dict[str, tuple[float, list[dict[str, Any]]]] = {}

    def _lines(self, day: str) -> list[dict[str, Any]]:
        if day not in self.boards or self.boards[day][0] <= self.clock.now - 3600:
            self.boards[day] = (self.clock.now, Desk._lines(self, day))
        return self.boards[day][1]


class TodayDesk(Desk):
    """Shows today's board for a day that it cannot read."""

    def _date(self, day: str) -> str:
        return day if day in self._days() else text(self.clock.now)[:10]


class HourlyDesk(Desk):
    """Waits in steps of an hour."""

    def _pause(self, minutes: int) -> int:
        return -(-minutes // 60) * 60


class PoolDesk(Desk):
    """Has the agency send everybody once."""

    pool: ClassVar[list[str]] = list(AGENCY)

    def _relief(self) -> str:
        if not self.pool:
            raise qn.ToolError("the agency has nobody left")
        return self.pool.pop(0)


class ScratchDesk(Desk):
    """Collects candidates without blocking the other episodes."""

    rows: ClassVar[list[dict[str, Any]]] = []

    @qn.tool
    async def candidates(self, duty: int) -> list[dict[str, Any]]:  # type: ignore[override]
        """List who may take a duty: right role, not ill, 8 hours of rest before and after. With the week's minutes.

        Args:
            duty: Number of the duty.
        """
        self.rows.clear()
        for one in self._free(duty):
            self.rows.append(one)
            await asyncio.sleep(0)
        return list(self.rows)


env = build()
env_board_cache = build("_board_cache", BoardCacheDesk)
env_today_board = build("_today_board", TodayDesk)
env_hourly_wait = build("_hourly_wait", HourlyDesk)
env_agency_pool = build("_agency_pool", PoolDesk)
env_shared_rows = build("_shared_rows", ScratchDesk)
env_only_asked = build("_only_asked", check=planned_some)
env_night_wrap = build("_night_wrap", wrap=True)
