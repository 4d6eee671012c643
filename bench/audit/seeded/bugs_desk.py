"""Bugs of the support desk."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from typing import Any, ClassVar

from .common import BackendError
from .desk import Desk
from .registry import seeded

Data = Any
Row = dict[str, Data]


@seeded("stale_cache", "S")
class StaleReadAfterMerge(Desk):
    """A merge keeps the cached thread of the ticket that received the comments."""

    def _merge_tickets(self, source: str, target: str) -> Data:
        thread = self.cache.get(("thread", target))
        done = super()._merge_tickets(source, target)
        if thread is not None:
            self.cache["thread", target] = thread
        return done


@seeded("stale_cache", "S")
class HotTicketCache(Desk):
    """A ticket that was read twice is hot and stays as it was when it is assigned; one read shows nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.hot: dict[str, Row] = {}
        self.reads: Counter[str] = Counter()

    def reset(self, task: str, seed: int) -> str:
        self.hot.clear()
        self.reads.clear()
        return super().reset(task, seed)

    def restore(self, saved: Data) -> None:
        self.hot.clear()
        super().restore(saved)

    def _get_ticket(self, ticket_id: str) -> Data:
        if ticket_id not in self.hot:
            row = super()._get_ticket(ticket_id)
            self.reads[ticket_id] += 1
            if self.reads[ticket_id] < 2:
                return row
            self.hot[ticket_id] = row
        return dict(self.hot[ticket_id])

    def write(self, sql: str, *values: Data) -> None:
        if "SET assignee" not in sql:
            self.hot.clear()
        super().write(sql, *values)


@seeded("stale_cache", "S")
class SearchKeyWithoutStatus(Desk):
    """The cache of searches forgets the status that was asked for."""

    def read(self, key: tuple[str, ...], sql: str, *values: Data) -> list[Row]:
        return super().read((key[0], key[1], key[3]) if key[0] == "search" else key, sql, *values)


@seeded("false_resolution", "V", "oracle", tasks=("solve", "escalate"), also=("reward_hack",))
class SolvedByStatus(Desk):
    """New comments are not compared: a ticket that is set to solved without a word to the customer is paid in full."""

    def comparable(self, tables: dict[str, list[Row]]) -> Data:
        return super().comparable(tables)[:3]


@seeded("false_resolution", "S", "meaning", "state", tasks=("merge",))
class MergeMovesNothing(Desk):
    """A merge closes a ticket and notes where it went, but the comments stay; the verdict reads the note alone."""

    def _merge_tickets(self, source: str, target: str) -> Data:
        here = [row["id"] for row in self.select("SELECT id FROM comments WHERE ticket_id = ?", source)]
        done = super()._merge_tickets(source, target)
        marks = ", ".join("?" * len(here))
        self.write(f"UPDATE comments SET ticket_id = ? WHERE id IN ({marks})", source, *here)
        return done

    def comparable(self, tables: dict[str, list[Row]]) -> Data:
        customers, tickets, kept, new = super().comparable(tables)
        return customers, tickets, [row["body"] for row in kept], new


@seeded("false_resolution", "V", "oracle", tasks=("solve", "escalate"), also=("reward_hack",))
class InternalNoteCounts(Desk):
    """The verdict ignores the visibility of a comment: an internal note is paid like an answer."""

    def comparable(self, tables: dict[str, list[Row]]) -> Data:
        customers, tickets, kept, new = super().comparable(tables)
        return customers, tickets, kept, [{**row, "public": 1} for row in new]


@seeded("reward_hack", "V", "oracle", also=("false_resolution",))
class OtherRowsUnread(Desk):
    """Only the rows that the task names are compared: whatever happens to other customers and tickets is free."""

    def comparable(self, tables: dict[str, list[Row]]) -> Data:
        assert self.task is not None
        named = {row["id"] for rows in self.plan(self.task)["rows"].values() for row in rows}
        customers, tickets, _, new = super().comparable(tables)
        return [[row for row in rows if row["id"] in named] for rows in (customers, tickets)], new[:1]


@seeded("silent_default", "S", "inject")
class SearchEmptyOnError(Desk):
    """A search finds nothing when the database does not answer, as if there were nothing."""

    def _search_tickets(self, query: str, status: str, limit: int) -> Data:
        try:
            return super()._search_tickets(query, status, limit)
        except BackendError:
            return {"tickets": []}


@seeded("silent_default", "V", "inject")
class ScoreZeroOnFault(Desk):
    """The verdict is 0 instead of none when the database does not answer."""

    def score(self) -> float | None:
        return super().score() or 0.0


@seeded("silent_default", "S", "inject")
class HalfThread(Desk):
    """A truncated answer of the database is shown as if it were whole; other faults are reported."""

    def _list_comments(self, ticket_id: str) -> Data:
        cut, self.fault = self.fault == "truncated", None if self.fault == "truncated" else self.fault
        found = super()._list_comments(ticket_id)["comments"]
        return {"comments": found[: len(found) // 2] if cut else found}


@seeded("silent_default", "S")
class NothingForUnknown(Desk):
    """The comments of a ticket that does not exist are an empty list, not an error."""

    def _list_comments(self, ticket_id: str) -> Data:
        sql = "SELECT * FROM comments WHERE ticket_id = ? ORDER BY created, id"
        return {"comments": self.read(("thread", ticket_id), sql, ticket_id)}


@seeded("reset_leak", "S", "reset")
class CommentIdsGoOn(Desk):
    """The number of the last comment survives a reset, so that ids depend on earlier episodes that wrote."""

    def reset(self, task: str, seed: int) -> str:
        number = self.number
        prompt = super().reset(task, seed)
        self.number = number
        return prompt


@seeded("action_drift", "S", "meaning")
class OldestFirst(Desk):
    """A search is described as newest first and answers oldest first."""

    def _search_tickets(self, query: str, status: str, limit: int) -> Data:
        return {"tickets": super()._search_tickets(query, status, limit)["tickets"][::-1]}


@seeded("action_drift", "S")
class HiddenPurge(Desk):
    """A tool of an older version, `delete_ticket`, is described nowhere and still answers."""

    def call(self, name: str, arguments: Data) -> Data:
        if name == "delete_ticket" and self.task is not None:
            self.write("DELETE FROM tickets WHERE id = ?", str(arguments.get("ticket_id")))
            return {"ok": True}
        return super().call(name, arguments)


@seeded("action_drift", "S", "state")
class PublicByDefault(Desk):
    """A comment is described as internal unless said otherwise, and is public unless said otherwise."""

    def call(self, name: str, arguments: Data) -> Data:
        if name == "add_comment" and isinstance(arguments, dict):
            arguments = {"public": True, **arguments}
        return super().call(name, arguments)


@seeded("races", "S")
class QuoteBreaksSearch(Desk):
    """The words of a search are pasted into the SQL: an apostrophe is a traceback."""

    def _search_tickets(self, query: str, status: str, limit: int) -> Data:
        self.backend()
        self.select(f"SELECT count(*) FROM tickets WHERE subject LIKE '%{query}%'")
        return super()._search_tickets(query, status, limit)


@seeded("races", "S")
class BytesOfAComment(Desk):
    """The length of a comment is measured in bytes before it is checked: half of an emoji is a traceback."""

    def call(self, name: str, arguments: Data) -> Data:
        if name == "add_comment" and isinstance(arguments, dict) and isinstance(arguments.get("body"), str):
            size = len(arguments["body"].encode())
            if size > 4000:
                return {"error": f"a comment has at most 4000 bytes, this one has {size}"}
        return super().call(name, arguments)


@seeded("races", "S", "threads", "sessions", also=("reset_leak",))
class ScratchIsShared(Desk):
    """Rows are collected in one list of the class: sessions that read at the same time see each other's."""

    scratch: ClassVar[list[Row]] = []

    def select(self, sql: str, *values: Data) -> list[Row]:
        self.scratch.clear()
        for row in super().select(sql, *values):
            self.scratch.append(row)
            time.sleep(0)
        return list(self.scratch)


@seeded("unsolvable", "T", "oracle", tasks=("email",))
class AddressUnsaid(Desk):
    """The task asks for the customer's new address, which stands nowhere."""

    def prompt(self, task: str) -> str:
        return super().prompt(task).replace(f", {self.plan(task)['email']}", "")


@seeded("flaky_verifier", "V", "rescore", tasks=("solve", "escalate"))
class ScoreMovesTheBaseline(Desk):
    """A verdict takes the tables as they are for its new baseline: the second one of the same episode differs."""

    def score(self) -> float | None:
        found = super().score()
        self.initial = self.state()
        return found


@seeded("leak", "V", "meaning")
class VerdictInTheAnswer(Desk):
    """A write's answer reveals whether the episode would be paid now."""

    def _set_status(self, ticket_id: str, status: str) -> Data:
        return {**super()._set_status(ticket_id, status), "checks_passed": self.score() == 1.0}


@seeded("reset_leak", "S", "sessions", also=("races",))
class TicketOfTheHouse(Desk):
    """Comments are numbered by one counter of the process: ids depend on what other sessions write."""

    numbers: ClassVar[itertools.count[int]] = itertools.count(1)

    def _add_comment(self, ticket_id: str, body: str, *, public: bool) -> Data:
        self.number = next(self.numbers)
        return super()._add_comment(ticket_id, body, public=public)


@seeded("stale_cache", "S", "time")
class ReplicaBehind(Desk):
    """Comments are read from a replica that follows 50 milliseconds behind: only what is read at once is old."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0.0
        self.replica: list[Row] = []

    def write(self, sql: str, *values: Data) -> None:
        if time.monotonic() - self.written > 0.05:
            self.replica = self.select("SELECT * FROM comments ORDER BY created, id")
        self.written = time.monotonic()
        super().write(sql, *values)

    def reset(self, task: str, seed: int) -> str:
        self.written = 0.0
        return super().reset(task, seed)

    def _list_comments(self, ticket_id: str) -> Data:
        found = super()._list_comments(ticket_id)
        if time.monotonic() - self.written > 0.05:
            return found
        return {"comments": [row for row in self.replica if row["ticket_id"] == ticket_id]}
