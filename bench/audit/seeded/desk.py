"""A support desk on SQLite: tickets, comments and customers, behind a read cache that every write empties.

The verdict compares all tables with what the task should leave: any missing, wrong or additional change is a zero.
"""

from __future__ import annotations

import copy
import random
import sqlite3
from typing import Any

from .common import (
    FAULTS,
    BackendError,
    ToolError,
    World,
    choice,
    flag,
    fresh,
    integer,
    name_of,
    optional,
    rng,
    text,
    tool,
    weighted,
)

Data = Any
Row = dict[str, Data]
AGENTS = ("bogdan", "carmen", "dieudonné", "esther", "fumiko", "gael")
STATUSES = ("open", "pending", "solved", "closed")
PRIORITIES = ("low", "normal", "high", "urgent")
SUBJECTS = (
    ("cannot log in", 30), ("Invoice wrong??", 22), ("refund", 18), ("App crashes", 16), ("RE: RE: delivery", 9),
    ("please call me back", 8), ("Rechnung fehlt", 6), ("(no subject)", 5), ("ログイン不可", 3), ("API 502 again", 2),
)  # fmt: skip
BODIES = (
    "any news?", "Still the same problem, see screenshot.", "thx", "I tried that twice already.", "Merci d'avance",
    "We have looked into it and will come back to you.", "+1", "Sent from my phone", "this is the 3rd time!!!", "ok 👍",
)  # fmt: skip
TABLES = {
    "customers": ("id", "name", "email", "phone", "tier"),
    "tickets": ("id", "customer_id", "subject", "status", "priority", "assignee", "tags", "merged_into", "created"),
    "comments": ("id", "ticket_id", "author", "body", "public", "created"),
}
MONTH = 30 * 86400


def people(dice: random.Random, count: int, taken: set[str]) -> list[Row]:
    """Customers: some without a phone, some twice, some with an address that no server would take."""
    rows: list[Row] = []
    while len(rows) < count:
        name = name_of(dice)
        if rows and dice.random() < 0.05:
            name = dice.choice(rows)["name"].swapcase()
        user = name.strip().split()[0].lower()
        email = f"{user}{dice.randrange(1, 999)}@{weighted(dice, [('mail.example', 6), ('corp.example', 3), ('x', 1)])}"
        phone = None if dice.random() < 0.35 else f"+{dice.randrange(1, 99)} {dice.randrange(10**6, 10**9)}"
        tier = weighted(dice, [("free", 70), ("pro", 25), ("enterprise", 5)])
        rows.append({"id": fresh(dice, "K", taken), "name": name, "email": email, "phone": phone, "tier": tier})
    return rows


def threads(
    dice: random.Random, owners: list[Row], taken: set[str], *, each: int | None = None
) -> tuple[list[Row], list[Row]]:
    """Tickets, a few owners having most of them, and their comments: mostly few, rarely a long quarrel."""
    tickets: list[Row] = []
    comments: list[Row] = []
    for owner in owners:
        for _ in range(each or min(int(dice.paretovariate(1.2)), 8)):
            tickets.append(ticket_of(dice, owner, taken))
            created = tickets[-1]["created"]
            for _ in range(min(int(dice.expovariate(0.4)), 40)):
                created += int(dice.expovariate(1 / 9000)) + 5
                author = owner["id"] if dice.random() < 0.6 else dice.choice(AGENTS)
                comments.append(remark(dice, tickets[-1], taken, author=author, created=created))
    return tickets, comments


def ticket_of(dice: random.Random, owner: Row, taken: set[str]) -> Row:
    return {
        "id": fresh(dice, "T", taken),
        "customer_id": owner["id"],
        "subject": weighted(dice, SUBJECTS),
        "status": weighted(dice, [("open", 30), ("pending", 20), ("solved", 15), ("closed", 35)]),
        "priority": weighted(dice, [("low", 15), ("normal", 65), ("high", 15), ("urgent", 5)]),
        "assignee": None if dice.random() < 0.25 else dice.choice(AGENTS),
        "tags": weighted(dice, [("", 50), ("billing", 20), ("billing,vip", 5), ("bug", 20), ("Bug ", 5)]),
        "merged_into": None,
        "created": int(dice.random() ** 1.3 * MONTH),
    }


def remark(dice: random.Random, ticket: Row, taken: set[str], *, author: str, created: int) -> Row:
    row = {"id": fresh(dice, "C", taken), "ticket_id": ticket["id"], "author": author}
    return {**row, "body": dice.choice(BODIES), "public": int(dice.random() < 0.8), "created": created}


TICKET = text("Its id, such as T123456.", 20)
TOOLS = (
    tool(
        "search_tickets",
        "Find tickets by words in the subject or the customer's name, newest first.",
        query=text("Words to look for; an empty text finds all.", 100),
        status=optional(choice("Only of this status.", "any", *STATUSES), "any"),
        limit=optional(integer("At most so many.", 1, 50), 20),
    ),
    tool("get_ticket", "Show a ticket.", ticket_id=TICKET),
    tool("list_comments", "Show the comments of a ticket, oldest first.", ticket_id=TICKET),
    tool("get_customer", "Show a customer.", customer_id=text("Its id, such as K123456.", 20)),
    tool(
        "update_email",
        "Change the address of a customer.",
        customer_id=text("Its id, such as K123456.", 20),
        email=text("The new address.", 100),
    ),
    tool(
        "add_comment",
        "Write a comment on a ticket.",
        ticket_id=TICKET,
        body=text("What it says; not empty.", 1000),
        public=optional(flag("Whether the customer sees it."), False),  # noqa: FBT003
    ),
    tool("set_status", "Change the status of a ticket.", ticket_id=TICKET, status=choice("The new one.", *STATUSES)),
    tool("set_priority", "Change its priority.", ticket_id=TICKET, priority=choice("The new one.", *PRIORITIES)),
    tool("assign", "Give a ticket to an agent.", ticket_id=TICKET, agent=choice("Who takes it.", *AGENTS)),
    tool("add_tag", "Add a tag to a ticket.", ticket_id=TICKET, tag=text("One word.", 30)),
    tool(
        "merge_tickets",
        "Move all comments of a ticket to another, close the first and note where it went.",
        source=text("The ticket that is closed.", 20),
        target=text("The ticket that stays.", 20),
    ),
)


class Desk(World):
    """One support desk; a session of its own per instance."""

    TOOLS = TOOLS
    KINDS = ("merge", "escalate", "email", "solve")

    def __init__(self) -> None:
        super().__init__()
        self.connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        for table, columns in TABLES.items():
            self.connection.execute(f"CREATE TABLE {table} ({', '.join(columns)}, PRIMARY KEY (id))")
        self.cache: dict[tuple[str, ...], Data] = {}
        self.initial: dict[str, list[Row]] = {}
        self.number = 0

    # --- tasks ---

    def tasks(self) -> list[str]:
        return [f"{kind}-{number}" for number in range(5) for kind in self.KINDS]

    def plan(self, task: str) -> Row:
        """Returns the plan of a task, the same under every seed."""
        if task not in self.tasks():
            raise LookupError(f"no such task: {task!r}")
        dice, taken = rng("desk", task), set[str]()
        owners = people(dice, 2, taken)
        tickets, comments = threads(dice, owners, taken, each=1)
        for ticket in tickets:
            ticket |= {"status": "open", "priority": "normal", "assignee": AGENTS[0], "tags": ""}
            comments.append(remark(dice, ticket, taken, author=owners[0]["id"], created=MONTH))
        first, second = tickets
        agent = dice.choice(AGENTS[1:])
        body = f"We are on it, reference {dice.randrange(1000, 9999)}."
        email = f"new.{dice.randrange(1000, 9999)}@mail.example"
        rows = {"customers": owners, "tickets": tickets, "comments": comments}
        return {"rows": rows, "first": first, "second": second, "agent": agent, "body": body, "email": email}

    def prompt(self, task: str) -> str:
        plan = self.plan(task)
        first, second = plan["first"]["id"], plan["second"]["id"]
        return {
            "merge": f"Tickets {first} and {second} are about the same problem. Merge {first} into {second} and set "
            f"{second} to priority high. Change nothing else.",
            "escalate": f"Escalate ticket {first}: priority urgent, assigned to {plan['agent']}, and a public comment "
            f"that says exactly: {plan['body']}",
            "email": f"The customer of ticket {first} has a new address, {plan['email']}. Correct the customer's "
            f"record, and tag the ticket with the word record.",
            "solve": f"Answer ticket {first} by a public comment that says exactly: {plan['body']} Then "
            "set it to solved.",
        }[task.partition("-")[0]]

    def effects(self, task: str) -> list[tuple[str, ...]]:
        """Returns the changes that the task should make, as calls of the writing tools."""
        plan = self.plan(task)
        first, second = plan["first"], plan["second"]
        say = ("add_comment", first["id"], plan["body"])
        return {
            "merge": [("merge_tickets", first["id"], second["id"]), ("set_priority", second["id"], "high")],
            "escalate": [("set_priority", first["id"], "urgent"), ("assign", first["id"], plan["agent"]), say],
            "email": [("update_email", first["customer_id"], plan["email"]), ("add_tag", first["id"], "record")],
            "solve": [say, ("set_status", first["id"], "solved")],
        }[task.partition("-")[0]]

    def oracle(self, task: str) -> list[list[Data]] | None:
        calls: list[list[Data]] = [["get_ticket", {"ticket_id": self.plan(task)["first"]["id"]}]]
        for name, *values in self.effects(task):
            properties = next(tool for tool in TOOLS if tool["name"] == name)["parameters"]["properties"]
            calls.append([name, dict(zip(properties, values, strict=False))])
            if name == "add_comment":
                calls[-1][1]["public"] = True
        return calls

    def production(self) -> Row:
        dice, taken = rng("desk", "production"), set[str]()
        owners = people(dice, 300, taken)
        tickets, comments = threads(dice, owners, taken)
        data = {"customers": owners, "tickets": tickets, "comments": comments}
        calls = [["get_ticket", {"ticket_id": "T1"}, {"error": "no such ticket: T1"}]]
        return {"tools": copy.deepcopy(list(TOOLS)), "data": data, "calls": calls}

    # --- the episode ---

    def filler(self, dice: random.Random, taken: set[str]) -> dict[str, list[Row]]:
        """Returns the other rows of the desk."""
        owners = people(dice, 100, taken)
        tickets, comments = threads(dice, owners, taken)
        return {"customers": owners, "tickets": tickets, "comments": comments}

    def reset(self, task: str, seed: int) -> str:
        rows = self.plan(task)["rows"]
        taken = {row["id"] for table in rows.values() for row in table}
        filler = self.filler(rng("desk", task, seed), taken)
        self.task, self.fault, self.number = task, None, 0
        self._load({table: sorted(rows[table] + filler[table], key=lambda row: row["id"]) for table in TABLES})
        self.initial = self.state()
        return self.prompt(task)

    def _load(self, rows: dict[str, list[Row]]) -> None:
        self.cache.clear()
        for table, columns in TABLES.items():
            self.connection.execute(f"DELETE FROM {table}")
            marks = ", ".join("?" * len(columns))
            values = [tuple(row[column] for column in columns) for row in rows[table]]
            self.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)

    def state(self) -> dict[str, list[Row]]:
        return {table: self.select(f"SELECT * FROM {table} ORDER BY id") for table in TABLES}

    def snapshot(self) -> Data:
        return copy.deepcopy((self.task, self.state(), self.initial, self.number, self.fault))

    def restore(self, saved: Data) -> None:
        self.task, rows, self.initial, self.number, self.fault = copy.deepcopy(saved)
        self._load(rows)

    def inject(self, fault: str) -> None:
        if fault not in FAULTS:
            raise ValueError(f"cannot inject {fault!r}")
        self.fault = fault

    def close(self) -> None:
        self.connection.close()

    # --- the database ---

    def select(self, sql: str, *values: Data) -> list[Row]:
        cursor = self.connection.execute(sql, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def read(self, key: tuple[str, ...], sql: str, *values: Data) -> list[Row]:
        self.backend()
        if key not in self.cache:
            self.cache[key] = self.select(sql, *values)
        return copy.deepcopy(self.cache[key])

    def write(self, sql: str, *values: Data) -> None:
        self.cache.clear()
        self.connection.execute(sql, values)

    def one(self, table: str, key: str) -> Row:
        rows = self.read((table, key), f"SELECT * FROM {table} WHERE id = ?", key)
        if not rows:
            raise ToolError(f"no such {table[:-1]}: {key}")
        return rows[0]

    # --- the tools ---

    def _search_tickets(self, query: str, status: str, limit: int) -> Data:
        sql = (
            "SELECT tickets.id, subject, status, priority, name AS customer FROM tickets JOIN customers ON"
            " customers.id = customer_id WHERE (instr(lower(subject), lower(?)) OR instr(lower(name), lower(?)))"
            " AND (? = 'any' OR status = ?) ORDER BY created DESC, tickets.id LIMIT ?"
        )
        key = ("search", query, status, str(limit))
        return {"tickets": self.read(key, sql, query, query, status, status, limit)}

    def _get_ticket(self, ticket_id: str) -> Data:
        return self.one("tickets", ticket_id)

    def _list_comments(self, ticket_id: str) -> Data:
        self.one("tickets", ticket_id)
        sql = "SELECT * FROM comments WHERE ticket_id = ? ORDER BY created, id"
        return {"comments": self.read(("thread", ticket_id), sql, ticket_id)}

    def _get_customer(self, customer_id: str) -> Data:
        return self.one("customers", customer_id)

    def _update_email(self, customer_id: str, email: str) -> Data:
        self.one("customers", customer_id)
        if "@" not in email.strip("@"):
            raise ToolError("that is not an address")
        self.write("UPDATE customers SET email = ? WHERE id = ?", email, customer_id)
        return {"ok": True}

    def _add_comment(self, ticket_id: str, body: str, *, public: bool) -> Data:
        self.one("tickets", ticket_id)
        if not body.strip():
            raise ToolError("a comment must say something")
        self.number += 1
        key = f"C{10**6 + self.number}"
        row = (key, ticket_id, "assistant", body, int(public), MONTH * 2 + self.number)
        self.write("INSERT INTO comments VALUES (?, ?, ?, ?, ?, ?)", *row)
        return {"comment_id": key}

    def _set_status(self, ticket_id: str, status: str) -> Data:
        self.one("tickets", ticket_id)
        self.write("UPDATE tickets SET status = ? WHERE id = ?", status, ticket_id)
        return {"ok": True}

    def _set_priority(self, ticket_id: str, priority: str) -> Data:
        self.one("tickets", ticket_id)
        self.write("UPDATE tickets SET priority = ? WHERE id = ?", priority, ticket_id)
        return {"ok": True}

    def _assign(self, ticket_id: str, agent: str) -> Data:
        self.one("tickets", ticket_id)
        self.write("UPDATE tickets SET assignee = ? WHERE id = ?", agent, ticket_id)
        return {"ok": True}

    def _add_tag(self, ticket_id: str, tag: str) -> Data:
        tags = [one for one in self.one("tickets", ticket_id)["tags"].split(",") if one]
        if not tag.isalnum():
            raise ToolError("a tag is one word of letters and digits")
        if tag not in tags:
            self.write("UPDATE tickets SET tags = ? WHERE id = ?", ",".join([*tags, tag]), ticket_id)
        return {"tags": tags if tag in tags else [*tags, tag]}

    def _merge_tickets(self, source: str, target: str) -> Data:
        merged = [self.one("tickets", one)["merged_into"] for one in (source, target)]
        if source == target or any(merged):
            raise ToolError("these cannot be merged")
        self.write("UPDATE comments SET ticket_id = ? WHERE ticket_id = ?", target, source)
        self.write("UPDATE tickets SET status = 'closed', merged_into = ? WHERE id = ?", target, source)
        return {"ok": True}

    # --- the verdict ---

    def score(self) -> float | None:
        if self.task is None:
            return None
        try:
            self.backend()
        except BackendError:
            return None
        return float(self.comparable(self.state()) == self.comparable(self.expected(self.task)))

    def comparable(self, tables: dict[str, list[Row]]) -> Data:
        """Without what a new comment gets by chance of order: its id and its time."""
        old = {row["id"] for row in self.initial["comments"]}
        new = [{**row, "id": "", "created": 0} for row in tables["comments"] if row["id"] not in old]
        kept = [row for row in tables["comments"] if row["id"] in old]
        return (
            tables["customers"],
            tables["tickets"],
            kept,
            sorted(new, key=lambda row: (row["ticket_id"], row["body"])),
        )

    def expected(self, task: str) -> dict[str, list[Row]]:
        tables = copy.deepcopy(self.initial)
        rows = {row["id"]: row for table in tables.values() for row in table}
        for name, key, value in self.effects(task):
            if name == "add_comment":
                new = {"id": "", "ticket_id": key, "author": "assistant", "body": value, "public": 1, "created": 0}
                tables["comments"].append(new)
            elif name == "merge_tickets":
                rows[key] |= {"status": "closed", "merged_into": value}
                for row in tables["comments"]:
                    row["ticket_id"] = value if row["ticket_id"] == key else row["ticket_id"]
            else:
                column = {"set_status": "status", "set_priority": "priority", "assign": "assignee"}
                column |= {"update_email": "email", "add_tag": "tags"}
                rows[key][column[name]] = value
        return tables
