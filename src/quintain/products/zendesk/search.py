"""Search: a parser from the query language to terms, and from terms to SQL.

A term matches a word or a word's beginning, never its middle. Words are found by an index over the text of the base,
which later updates leave as it is: a ticket that changed since is read itself,
so that a write need not touch the index.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .account import Desk, moment, seconds
from .tables import PRIORITIES, STATUSES
from .wire import Caller, Refusals

Clause = tuple[str, list[Any]]

_TERM = re.compile(r'(?P<not>-?)(?:(?P<key>[A-Za-z_]\w*)(?P<op><=|>=|[:<>]))?(?P<value>"[^"]*"|[^\s"]+)')
_AGO = re.compile(r"(\d+)(minute|hour|day|week|month|year)s?")
_UNITS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "month": 2_592_000, "year": 31_536_000}
_DATES = {"created": "created_at", "updated": "updated_at", "due_date": "due_at", "created_at": "created_at",
    "updated_at": "updated_at",
          "solved": "(SELECT m.solved_at FROM zd_metrics m WHERE m.id = {table}.id)"}  # fmt: skip
_PEOPLE = {"assignee": "assignee_id", "requester": "requester_id", "submitter": "submitter_id"}
_EXACT = {
    "ticket": {"ticket_type": "type", "form": "ticket_form_id", "brand": "brand_id", "external_id": "external_id",
               "group_id": "group_id", "assignee_id": "assignee_id", "requester_id": "requester_id",
               "organization_id": "organization_id", "recipient": "recipient"},
    "user": {"email": "email", "phone": "phone", "external_id": "external_id", "organization_id": "organization_id"},
    "organization": {"external_id": "external_id"},
    "group": {},
}  # fmt: skip
_TEXTS = {
    "ticket": {"subject": "subject", "description": "description"},
    "user": {"name": "name", "notes": "notes", "details": "details"},
    "organization": {"name": "name", "notes": "notes", "details": "details"},
    "group": {"name": "name"},
}
_FREE = {
    "user": ("name", "email", "notes", "phone"),
    "organization": ("name", "notes", "details"),
    "group": ("name",),
}
TABLES = {"ticket": "zd_tickets", "user": "zd_users", "organization": "zd_organizations", "group": "zd_agent_groups"}
ORDERS = {"created": "created_at", "updated": "updated_at", "created_at": "created_at", "updated_at": "updated_at",
          "priority": "priority", "status": "status", "ticket_type": "type"}  # fmt: skip


class Term(NamedTuple):
    """One term of a query.

    Attributes:
        key: Name before the operator; empty for free text.
        op: The operator.
        value: Its value, without quotes.
        negated: True after a minus.
        quoted: True for a phrase.
    """

    key: str
    op: str
    value: str
    negated: bool = False
    quoted: bool = False


def parse(query: str) -> list[Term]:
    """Returns the terms of a query."""
    found: list[Term] = []
    for match in _TERM.finditer(query):
        value, quoted = match["value"], match["value"].startswith('"')
        key = (match["key"] or "").lower()
        found.append(Term(key, match["op"] or "", value.strip('"') if quoted else value, match["not"] == "-", quoted))
    return found


def words(text: str) -> list[str]:
    """Returns the words of a text in small letters."""
    return re.findall(r"[^\W_]+", text.lower())


def where(world: Desk, caller: Caller, kind: str, *, terms: list[Term]) -> tuple[str, tuple[Any, ...]]:
    """Returns the condition in SQL for rows of a kind, and its values. Terms of one key are alternatives."""
    groups: dict[str, list[Clause]] = {}
    parts: list[str] = []
    values: list[Any] = []
    for index, term in enumerate(terms):
        if term.key in {"type", "order_by", "sort"}:
            continue
        text, some = _clause(world, caller, kind, term=term)
        if term.negated:
            groups[f"not {index}"] = [(f"NOT coalesce({text}, 0)", some)]
        else:
            name = term.key if term.key and term.op == ":" else f"{term.key} {index}"
            groups.setdefault(name, []).append((text, some))
    for clauses in groups.values():
        parts.append(f"({' OR '.join(text for text, _ in clauses)})")
        values += [value for _, some in clauses for value in some]
    return " AND ".join(parts) or "1", tuple(values)


def _clause(world: Desk, caller: Caller, kind: str, *, term: Term) -> Clause:  # noqa: PLR0911
    key, value = term.key, term.value
    table = TABLES[kind]
    if not key:
        return _free(world, kind, term)
    if key in _DATES and kind != "group":
        return _date(world, _DATES[key].format(table=table), term)
    if kind == "ticket" and key in {"status", "priority"}:
        return _ordered(key, STATUSES if key == "status" else PRIORITIES, term)
    if kind == "ticket" and (key in _PEOPLE or key in {"cc", "group", "organization"}):
        return _person(caller, key, value)
    if kind == "user" and key in {"organization", "group", "role"}:
        return _of_user(key, value)
    if key == "tags":
        return _tags(value)
    if key in _EXACT[kind]:
        return _value(_EXACT[kind][key], value)
    if key in _TEXTS[kind]:
        return _contains(f"coalesce({_TEXTS[kind][key]}, '')", term)
    if kind == "ticket":
        return _of_ticket(world, key, term)
    return "0", []


def _of_user(key: str, value: str) -> Clause:
    if key == "role":
        return "role = ?", [value.lower()]
    if key == "organization":
        return _named("organization_id", "zd_organizations", value)
    inner = _named("group_id", "zd_agent_groups", value)
    return f"id IN (SELECT user_id FROM zd_group_memberships WHERE {inner[0]})", inner[1]


def _of_ticket(world: Desk, key: str, term: Term) -> Clause:
    value = term.value
    if key == "via":
        return "json_extract(via, '$.channel') = ?", [
            {"mail": "email", "web_form": "web"}.get(value.lower(), value.lower())
        ]
    if key == "comment":
        text, values = _contains("c.plain_body", term)
        return f"EXISTS (SELECT 1 FROM zd_comments c WHERE c.ticket_id = zd_tickets.id AND {text})", values
    if key == "has_attachment":
        has = "EXISTS (SELECT 1 FROM zd_comments c WHERE c.ticket_id = zd_tickets.id AND c.attachments <> '[]')"
        return (has if value.lower() == "true" else f"NOT {has}"), []
    if key == "satisfaction":
        return "json_extract(satisfaction_rating, '$.score') LIKE ?", [f"{value.lower()}%"]
    if match := re.fullmatch(r"(?:custom_field|fieldvalue)_?(\d+)", key):
        path = f"CAST(json_extract(custom, '$.\"{match[1]}\"') AS TEXT)"
        return _value(path, value)
    return "0", []


def _value(column: str, value: str) -> Clause:
    if value.lower() == "none":
        return f"coalesce({column}, '') = ''", []
    if value == "*":
        return f"coalesce({column}, '') <> ''", []
    if value.endswith("*"):
        return f"lower({column}) LIKE ? ESCAPE '\\'", [f"{_escaped(value[:-1].lower())}%"]
    return f"lower(CAST({column} AS TEXT)) = ?", [value.lower()]


def _tags(value: str) -> Clause:
    if value.lower() == "none":
        return "tags = '[]'", []
    if value == "*":
        return "tags <> '[]'", []
    return "EXISTS (SELECT 1 FROM json_each(tags) t WHERE t.value = ?)", [value.lower()]


def _ordered(column: str, order: tuple[str, ...], term: Term) -> Clause:
    value = term.value.lower()
    if value in {"none", "*"}:
        return _value(column, value)
    if value not in order:
        return "0", []
    at = order.index(value)
    items = {":": order[at : at + 1], "<": order[:at], "<=": order[: at + 1], ">": order[at + 1 :], ">=": order[at:]}[
        term.op
    ]
    return f"coalesce({column}, '') IN ({', '.join('?' * len(items))})", [*items]


def _date(world: Desk, column: str, term: Term) -> Clause:
    value = term.value.lower()
    if value in {"none", "*"}:
        return _value(column, value)
    if match := _AGO.fullmatch(value):
        edge = moment(max(0.0, world.clock.now - int(match[1]) * _UNITS[match[2]]))
        return f"{column} {'>=' if term.op == ':' else term.op} ?", [edge]
    try:
        begin = moment(seconds(term.value))
    except ValueError:
        raise Refusals.search(f"Invalid date: {term.value}") from None
    end = moment(seconds(term.value) + 86_400) if len(value) == 10 else begin
    if term.op == ":":
        return (f"{column} >= ? AND {column} < ?", [begin, end]) if end != begin else (f"{column} = ?", [begin])
    edge = end if term.op in {">", "<="} and end != begin else begin
    op = {">": ">=", "<=": "<"}[term.op] if edge == end != begin else term.op
    return f"{column} {op} ?", [edge]


def _person(caller: Caller, key: str, value: str) -> Clause:
    if key == "organization":
        return _named("organization_id", "zd_organizations", value)
    if key == "group":
        return _named("group_id", "zd_agent_groups", value)
    if key == "cc":
        inner = _user(caller, "c.value", value)
        return f"EXISTS (SELECT 1 FROM json_each(email_cc_ids) c WHERE {inner[0]})", inner[1]
    return _user(caller, _PEOPLE[key], value)


def _user(caller: Caller, column: str, value: str) -> Clause:
    if value.lower() == "none":
        return f"{column} IS NULL", []
    if value == "*":
        return f"{column} IS NOT NULL", []
    if value.lower() == "me":
        return f"{column} = ?", [caller.id]
    if value.isdecimal():
        return f"{column} = ?", [min(int(value), 2**63 - 1)]
    if "@" in value:
        return f"{column} IN (SELECT id FROM zd_users WHERE email = ?)", [value.lower()]
    pattern = f"{_escaped(value.lower())}%"
    sql = (
        f"{column} IN (SELECT id FROM zd_users WHERE lower(name) LIKE ? ESCAPE '\\' OR lower(name) LIKE ? ESCAPE '\\')"
    )
    return sql, [pattern, f"% {pattern}"]


def _named(column: str, table: str, value: str) -> Clause:
    if value.lower() == "none":
        return f"{column} IS NULL", []
    if value == "*":
        return f"{column} IS NOT NULL", []
    if value.isdecimal():
        return f"{column} = ?", [min(int(value), 2**63 - 1)]
    name = value.lower().rstrip("*")
    op = "LIKE ? ESCAPE '\\'" if value.endswith("*") else "= ?"
    return f"{column} IN (SELECT id FROM {table} WHERE lower(name) {op})", [
        f"{_escaped(name)}%" if "LIKE" in op else name
    ]


# -- free text


def _escaped(text: str) -> str:
    return re.sub(r"([\\%_])", r"\\\1", text)


def _contains(column: str, term: Term) -> Clause:
    """Returns the condition that a text has a word that begins so, or the phrase."""
    if term.value in {"none", "*"} and not term.quoted:
        return (f"coalesce({column}, '') = ''" if term.value == "none" else f"coalesce({column}, '') <> ''"), []
    # The text in small letters, with a blank before each word and everything but words made blank, is searched.
    plain = f"(' ' || {normal(column)})"
    found = words(term.value)
    if not found:
        return "0", []
    phrase = " ".join(found)
    # The first comparison is cheap and leaves few texts to the second.
    return f"({column} LIKE ? AND {plain} LIKE ?)", [f"%{found[0]}%", f"% {phrase}%"]


_MARKS = "\n\t.,;:!?()[]{}<>\"'/\\|@#%&*+=~`_-$^"


def normal(column: str) -> str:
    """Returns the SQL of a text in small letters, whose punctuation is blank."""
    text = f"lower({column})"
    for mark in _MARKS:
        literal = "char(10)" if mark == "\n" else "char(9)" if mark == "\t" else "''''" if mark == "'" else f"'{mark}'"
        text = f"replace({text}, {literal}, ' ')"
    for _ in range(4):
        text = f"replace({text}, '  ', ' ')"
    return text


def _free(world: Desk, kind: str, term: Term) -> Clause:
    if kind != "ticket":
        columns = " || ' ' || ".join(f"coalesce({column}, '')" for column in _FREE[kind])
        return _contains(f"({columns})", term)
    found = words(term.value)
    if term.value.lstrip("#").isdecimal() and not term.quoted:
        return "id = ?", [min(int(term.value.lstrip("#")), 2**63 - 1)]
    if not found:
        return "0", []
    phrase = " ".join(found)
    match = f'"{phrase}" *' if term.quoted or len(found) > 1 else f"{found[0]} *"
    indexed = "id IN (SELECT d.ticket_id FROM zd_words w JOIN zd_documents d ON d.id = w.rowid WHERE zd_words MATCH ?)"
    since = world.indexed_at
    own, values = _contains("coalesce(subject, '')", term)
    said, more = _contains("c.plain_body", term)
    read = f"({own} OR EXISTS (SELECT 1 FROM zd_comments c WHERE c.ticket_id = zd_tickets.id AND {said}))"
    if not since:
        return read, [*values, *more]
    return f"((updated_at <= ? AND {indexed}) OR (updated_at > ? AND {read}))", [since, match, since, *values, *more]


def index(world: Desk) -> None:
    """Indexes the text of all tickets, so that a search reads only those that change later. For a base, once.

    A document is a subject or a comment; its words are cut as `words` does, and small letters are those of ASCII.
    """
    db = world.db
    tokenizer = "unicode61 remove_diacritics 0"
    with db.transaction():
        db.execute("CREATE TABLE zd_documents (id INTEGER PRIMARY KEY, ticket_id INTEGER NOT NULL) STRICT")
        db.execute(f'CREATE VIRTUAL TABLE zd_words USING fts5(text, content="", tokenize="{tokenizer}", prefix="2 3")')
        db.execute(
            "INSERT INTO zd_documents SELECT id, id FROM zd_tickets UNION ALL SELECT id, ticket_id FROM zd_comments"
        )
        db.execute("INSERT INTO zd_words (rowid, text) SELECT id, coalesce(subject, '') FROM zd_tickets ORDER BY id")
        db.execute("INSERT INTO zd_words (rowid, text) SELECT id, plain_body FROM zd_comments ORDER BY id")
    world.indexed_at = world.now
