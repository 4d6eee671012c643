"""A year of earthquakes in a catalogue: search it, query it by SQL, read reports, cite events, and submit an answer."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import quintain as qn

TOWNS = {
    "Apennines": ("Norcia", "Amatrice", "Visso", "Cascia"),
    "Atacama": ("Copiapo", "Calama", "Taltal", "Caldera"),
    "Cascadia": ("Newport", "Astoria", "Forks", "Eureka"),
    "Kanto": ("Choshi", "Tateyama", "Mito", "Narita"),
}
TASKS, PAGE, ROWS = 18, 10, 50
READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
FUNCTIONS = ("count", "sum", "avg", "min", "max", "round", "abs", "lower", "upper", "substr", "length", "like")
CALLING = {(sqlite3.SQLITE_FUNCTION, name) for name in FUNCTIONS}
SYSTEM = """You answer questions about a catalogue of earthquakes. Times are in UTC. Cite exactly the events that your
answer rests on (for a count or a mean: each event that is counted), then submit the bare answer, once."""


@dataclasses.dataclass
class Event:
    """One earthquake of the catalogue."""

    time: str
    region: str
    magnitude: float
    depth_km: float
    report: str


class Catalogue(qn.State):
    """The catalogue, what the agent has cited, and what it submitted."""

    events: qn.Table[Event]
    cites: tuple[str, ...] = ()
    answer: str | None = None

    @qn.tool
    def search(
        self, region: str = "", since: str = "", until: str = "", min_magnitude: float = 0.0, page: int = 1
    ) -> dict[str, Any]:
        """Search events, newest first, ten a page; `total` counts the events of all pages.

        Args:
            region: Apennines, Atacama, Cascadia or Kanto; empty for all.
            since: First day, as YYYY-MM-DD, included; empty for no limit.
            until: Last day, as YYYY-MM-DD, included; empty for no limit.
            min_magnitude: Smallest magnitude, included.
            page: Which page, from 1.
        """
        if region and region not in TOWNS:
            raise qn.ToolError(f"no region {region!r}; regions: {', '.join(TOWNS)}")
        first, last = self._day(since), self._day(until)
        found = [
            {"id": key, "time": one.time, "region": one.region, "magnitude": one.magnitude}
            for key, one in sorted(self.events.items(), key=lambda item: (item[1].time, item[0]), reverse=True)
            if region in ("", one.region) and one.magnitude >= min_magnitude and self._within(one.time, first, last)
        ]
        if not 1 <= page <= max(1, -(-len(found) // PAGE)):
            raise qn.ToolError(f"no page {page}: there are {len(found)} events, {PAGE} a page")
        return {"total": len(found), "page": page, "events": found[(page - 1) * PAGE : page * PAGE]}

    @qn.tool
    def read(self, event: str) -> dict[str, Any]:
        """Read the full record of an event, with the report of the analyst.

        Args:
            event: Id of the event.
        """
        return {"id": event, **dataclasses.asdict(self._event(event))}

    @qn.tool
    def sql(self, query: str) -> str:
        """Run one SELECT of SQLite; returns the names of the columns and at most 50 rows, one a line.

        Tables: events(id, time, region, magnitude, depth_km), with times as 2023-01-31T23:59:59, and cited(event), the
        events cited so far. Functions: count, sum, avg, min, max, round, abs, lower, upper, substr, length, like.

        Args:
            query: The SELECT.
        """
        return self._select(query)

    @qn.tool
    def cite(self, events: list[str]) -> str:
        """Cite events as evidence, in place of those that were cited before.

        Args:
            events: Ids of the events.
        """
        self.cites = tuple(dict.fromkeys(key for key in events if self._event(key)))
        return f"cited: {', '.join(self.cites)}"

    @qn.tool
    def submit(self, answer: str) -> str:
        """Submit the answer, which ends the work.

        Args:
            answer: The bare answer, a number or a name, of at most 200 characters.
        """
        if self.answer is not None or not 1 <= len(answer) <= 200:
            raise qn.ToolError("an answer has 1 to 200 characters and is submitted once")
        self.answer = answer
        self.finish("submitted")
        return "submitted"

    def _event(self, key: str) -> Event:
        if key not in self.events:
            raise qn.ToolError(f"no event {key!r}")
        return self.events[key]

    def _day(self, text: str) -> str:
        try:
            return text and date.fromisoformat(text).isoformat()
        except ValueError:
            raise qn.ToolError(f"{text!r} is not a day such as 2023-05-31") from None

    def _within(self, time: str, first: str, last: str) -> bool:
        return time[:10] >= first and (not last or time[:10] <= last)

    def _select(self, query: str) -> str:
        with contextlib.closing(_database(self.events)) as base:
            base.executemany("INSERT INTO cited VALUES (?)", [(key,) for key in self.cites])
            return _rows(base, query)


def _database(events: qn.Table[Event]) -> sqlite3.Connection:
    base = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    base.execute("CREATE TABLE cited (event TEXT PRIMARY KEY)")
    base.execute("CREATE TABLE events (id, time, region, magnitude, depth_km)")
    rows = [(key, one.time, one.region, one.magnitude, one.depth_km) for key, one in events.items()]
    base.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
    base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000)
    base.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, 20)
    return base


def _rows(base: sqlite3.Connection, query: str) -> str:
    """The result of a query as text; it may only read, and ends after a fixed number of steps."""
    base.set_authorizer(lambda action, _, name, *__: int(action not in READING and (action, name) not in CALLING))
    base.set_progress_handler(lambda: 1, 2_000_000)
    try:
        cursor = base.execute(query)
        found = cursor.fetchmany(ROWS)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        raise qn.ToolError(f"SQL error: {error}") from None
    finally:
        base.set_authorizer(None)
    if cursor.description is None:
        raise qn.ToolError("SQL error: not a SELECT")
    return "\n".join(" | ".join(map(str, row)) for row in ([one[0] for one in cursor.description], *found))


@functools.cache
def catalogue(split: str) -> qn.Table[Event]:
    """The earthquakes of a split: small ones are frequent, large ones are rare, as in any catalogue."""
    rng = random.Random(f"tremors/{split}")  # noqa: S311
    rows: dict[str, Event] = {}
    while len(rows) < 150:
        region = rng.choice(list(TOWNS))
        time = datetime(2023, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randrange(365 * 86_400))
        magnitude = round(2.5 + min(rng.expovariate(1.4), 4.6), 1)
        town, other = rng.sample(TOWNS[region], 2)
        report = f"Strongest shaking in {town}, intensity {int(magnitude)}; weaker in {other}."
        if rng.random() < 0.5:
            first = f"Revised by hand; the first estimate, M {magnitude - 0.2:.1f}, was withdrawn."
            report = f"{first} Weak shaking in {other}; strongest shaking in {town}, intensity {int(magnitude)}."
        depth = round(min(4 + rng.expovariate(1 / 14), 95), 1)
        key = "ev" + "".join(rng.choices("23456789abcdefghjkmnpqrstuvwxyz", k=5))
        rows[key] = Event(time.strftime("%Y-%m-%dT%H:%M:%S"), region, magnitude, depth, report)
    return qn.Table(Event, dict(sorted(rows.items(), key=lambda item: item[1].time)))


def _question(rng: random.Random, events: dict[str, Event], family: str) -> tuple[str, str, list[str], Any] | None:
    """Prompt, answer, evidence and first calls of a task; None if the drawn region and days make no good one."""
    region, least = rng.choice(sorted(TOWNS)), rng.choice((2.8, 3.0, 3.2, 3.5))
    since, until = sorted(rng.sample([one.time[:10] for one in events.values() if one.region == region], 2))
    inside = {k: e for k, e in events.items() if e.region == region and since <= e.time[:10] <= until}
    strong = [key for key, one in inside.items() if one.magnitude >= least]
    where, days = f"in the region {region}", f"from {since} to {until} (both days included)"
    find = {"region": region, "since": since, "until": until}
    if family == "town":
        order = sorted(inside, key=lambda key: inside[key].magnitude, reverse=True)
        if not 3 <= len(order) <= PAGE or inside[order[0]].magnitude == inside[order[1]].magnitude:
            return None
        prompt = f"Take the strongest event {where}, {days}. In which town was its strongest shaking?"
        town = re.findall(r"[Ss]trongest shaking in (\w+)", inside[order[0]].report)[0]
        return prompt, town, order[:1], (("search", find), ("read", {"event": order[0]}))
    if not 2 <= len(strong) <= 6:
        return None
    if family == "count":
        prompt = f"How many events {where} had magnitude {least} or more, {days}?"
        return prompt, str(len(strong)), strong, (("search", find | {"min_magnitude": least}),)
    prompt = f"What is the mean depth of the events {where} with magnitude {least} or more, {days}?"
    mean = sum(inside[key].depth_km for key in strong) / len(strong)
    select = f"SELECT id, depth_km FROM events WHERE region = '{region}' AND magnitude >= {least}"
    query = {"query": f"{select} AND substr(time, 1, 10) BETWEEN '{since}' AND '{until}'"}
    return f"{prompt} Give km to one decimal.", f"{mean:.1f}", strong, (("sql", query),)


def tasks(split: str, state: type[Catalogue]) -> Iterator[qn.Task[Catalogue]]:
    """The tasks of a split: three kinds of questions, in turn."""
    rng, table, seen = random.Random(f"tremors/{split}/questions"), catalogue(split), set[str]()  # noqa: S311
    while len(seen) < TASKS:
        made = _question(rng, dict(table), family := ("count", "mean", "town")[len(seen) % 3])
        if made is None or made[0] in seen:
            continue
        prompt, answer, events, calls = made
        yield qn.Task(
            id=f"{split}-{len(seen)}",
            prompt=prompt,
            start=state(events=table),
            truth={"answer": answer, "events": events},
            solution=(*calls, ("cite", {"events": events}), ("submit", {"answer": answer})),
            tags={"family": family},
        )
        seen.add(prompt)


def grade(expected: str, said: str) -> str:
    """Offline stand-in for the grading model: it quotes the answer, then gives its verdict in the last line."""
    right = said.strip().rstrip(".").casefold() == expected.casefold()
    with contextlib.suppress(ValueError):
        right = right or abs(float(said) - float(expected)) < (0.051 if "." in expected else 1e-9)
    return f"Answer given: {said}\nExpected: {expected}\nVERDICT: {'correct' if right else 'incorrect'}"


def environment(
    state: type[Catalogue] = Catalogue,
    verdict: Callable[[str], str] = lambda reply: reply.splitlines()[-1].removeprefix("VERDICT: "),
    evidence: Callable[[set[str], set[str]], float] = lambda own, gold: 2 * len(own & gold) / (len(own) + len(gold)),
) -> qn.Environment[Catalogue]:
    """The environment with a class of world, a parser of the grader's reply, and a measure of the citations."""

    @qn.reward
    def correct(view: qn.EpisodeView[Catalogue]) -> qn.Score:
        reply = grade(view.task.truth["answer"], view.state.answer or "")
        return qn.Score(float(verdict(reply) == "correct"), reply)

    @qn.reward
    def grounded(view: qn.EpisodeView[Catalogue]) -> qn.Score:
        own, gold = set(view.state.cites), set(view.task.truth["events"])
        return qn.Score(evidence(own, gold), f"{len(own & gold)} of {len(gold)} events cited, {len(own - gold)} others")

    return qn.Environment(
        "tremors",
        tasks=lambda split: tasks(split, state),
        harness=qn.ToolLoop(system=SYSTEM),
        verifier=qn.Verifier(correct, grounded, combine="product"),
        state=state,
        splits=("train", "test"),
    )


class Memoised(Catalogue):
    """Keeps the results of queries, since models ask the same again."""

    results: dict[str, str] | None = None

    def _select(self, query: str) -> str:
        self.results = self.results or {}
        return self.results.get(query) or self.results.setdefault(query, Catalogue._select(self, query))


class Lenient(Catalogue):
    """Does not trouble the model with its mistakes in dates."""

    def _day(self, text: str) -> str:
        try:
            return Catalogue._day(self, text)
        except qn.ToolError:
            return ""


class Midnight(Catalogue):
    """Compares times with days as text."""

    def _within(self, time: str, first: str, last: str) -> bool:
        return time >= first and (not last or time <= last)


class Brief(Catalogue):
    """Keeps observations short."""

    def _event(self, key: str) -> Event:
        event = Catalogue._event(self, key)
        return dataclasses.replace(event, report=event.report[:80])


_POOL: dict[str, sqlite3.Connection] = {}


class Pooled(Catalogue):
    """Opens one database per catalogue and process, since filling one takes time."""

    def _select(self, query: str) -> str:
        base = _POOL.get(self.events.digest()) or _POOL.setdefault(self.events.digest(), _database(self.events))
        base.executemany("INSERT OR IGNORE INTO cited VALUES (?)", [(key,) for key in self.cites])
        return _rows(base, query)


env = environment()
env_memo = environment(Memoised)
env_any_date = environment(Lenient)
env_midnight = environment(Midnight)
env_brief = environment(Brief)
env_pool = environment(Pooled)
env_first_verdict = environment(verdict=lambda reply: re.findall(r"VERDICT: (\w+)", reply)[0])
env_recall = environment(evidence=lambda own, gold: len(own & gold) / len(gold))
