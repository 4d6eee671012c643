"""Search: a parser from the query language to terms, and from terms to SQL.

A term matches a word or a word's beginning, never its middle. Words are found by an index over the text of the base,
which later updates leave as it is: a ticket that changed since is read itself,
so that a write need not touch the index.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from quintain.resources.web.rows import marks
from quintain.resources.web.world import moment

from .account import Desk, row_number, seconds
from .tables import PRIORITIES, STATUSES
from .wire import API, Caller

Clause = tuple[str, list[Any]]
Asker = tuple[float, int | None]
"""Present time, in seconds since epoch, and id of the user who asks; terms depend on both besides rows."""

_TERM = re.compile(r'(?P<not>-?)(?:(?P<key>[A-Za-z_]\w*)(?P<op><=|>=|[:<>]))?(?P<value>"[^"]*"|[^\s"]+)')
_AGO = re.compile(r"(\d{1,9})(minute|hour|day|week|month|year)s?")
_UNITS = {"minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "month": 2_592_000, "year": 31_536_000}
MOST_TERMS = 100
"""Terms of a query; SQLite takes a condition of a thousand parts."""
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
    """Returns the terms of a query; refuses one that has too many."""
    found: list[Term] = []
    for match in _TERM.finditer(query):
        value, quoted = match["value"], match["value"].startswith('"')
        key = (match["key"] or "").lower()
        if len(found) == MOST_TERMS:
            raise API.search(f"Invalid search: at most {MOST_TERMS} terms")
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


def _clause(world: Desk, caller: Caller, kind: str, *, term: Term) -> Clause:
    if not term.key:
        return _free(world, kind, term)
    custom = re.fullmatch(r"(?:custom_field|fieldvalue)_?(\d+)", term.key) if kind == "ticket" else None
    path = f"CAST(json_extract(custom, '$.\"{custom[1]}\"') AS TEXT)" if custom else ""
    make, column = _FIELDS[kind].get(term.key, (_value, path))
    if not column:
        return "0", []
    if term.value.lower() in {"none", "*"} and not (term.quoted and make is _text):
        return f"coalesce({column}, '') {'<>' if term.value == '*' else '='} ''", []
    return make(column, term, (world.clock.now, caller.id))


def _value(column: str, term: Term, _: Asker) -> Clause:
    value = term.value.lower()
    if value.endswith("*"):
        return f"lower({column}) LIKE ? ESCAPE '\\'", [f"{_escaped(value[:-1])}%"]
    return f"lower(CAST({column} AS TEXT)) = ?", [value]


def _text(column: str, term: Term, _: Asker) -> Clause:
    return _contains(f"coalesce({column}, '')", term)


def _tags(column: str, term: Term, _: Asker) -> Clause:
    return f"EXISTS (SELECT 1 FROM json_each({column}) t WHERE t.value = ?)", [term.value.lower()]


def _ordered(column: str, term: Term, _: Asker) -> Clause:
    order, value = STATUSES if column == "status" else PRIORITIES, term.value.lower()
    if value not in order:
        return "0", []
    at = order.index(value)
    items = {":": order[at : at + 1], "<": order[:at], "<=": order[: at + 1], ">": order[at + 1 :], ">=": order[at:]}
    return f"coalesce({column}, '') IN ({marks(items[term.op])})", [*items[term.op]]


def _date(column: str, term: Term, asker: Asker) -> Clause:
    if match := _AGO.fullmatch(term.value.lower()):
        edge = moment(max(0.0, asker[0] - int(match[1]) * _UNITS[match[2]]))
        return f"{column} {'>=' if term.op == ':' else term.op} ?", [edge]
    try:
        begin = moment(seconds(term.value))
    except ValueError:
        raise API.search(f"Invalid date: {term.value}") from None
    end = moment(seconds(term.value) + 86_400) if len(term.value) == 10 else begin
    if term.op == ":":
        return (f"{column} >= ? AND {column} < ?", [begin, end]) if end != begin else (f"{column} = ?", [begin])
    edge = end if term.op in {">", "<="} and end != begin else begin
    op = {">": ">=", "<=": "<"}[term.op] if edge == end != begin else term.op
    return f"{column} {op} ?", [edge]


def _user(column: str, term: Term, asker: Asker) -> Clause:
    value = term.value.lower()
    if value == "me" or value.isdecimal():
        return f"{column} = ?", [asker[1] if value == "me" else row_number(value)]
    if "@" in value:
        return f"{column} IN (SELECT id FROM zd_users WHERE email = ?)", [value]
    sql = f"{column} IN (SELECT id FROM zd_users WHERE ' ' || lower(name) LIKE ? ESCAPE '\\')"
    return sql, [f"% {_escaped(value)}%"]


def _named(column: str, term: Term, _: Asker) -> Clause:
    value = term.value.lower()
    if value.isdecimal():
        return f"{column} = ?", [row_number(value)]
    name, op = (f"{_escaped(value[:-1])}%", "LIKE ? ESCAPE '\\'") if value.endswith("*") else (value, "= ?")
    return f"{column} IN (SELECT id FROM {_NAMED[column]} WHERE lower(name) {op})", [name]


def _member(_: str, term: Term, asker: Asker) -> Clause:
    text, values = _named("group_id", term, asker)
    return f"id IN (SELECT user_id FROM zd_group_memberships WHERE {text})", values


def _copied(column: str, term: Term, asker: Asker) -> Clause:
    text, values = _user("c.value", term, asker)
    return f"EXISTS (SELECT 1 FROM json_each({column}) c WHERE {text})", values


def _channel(column: str, term: Term, _: Asker) -> Clause:
    value = term.value.lower()
    return f"{column} = ?", [{"mail": "email", "web_form": "web"}.get(value, value)]


def _said(_: str, term: Term, asker: Asker) -> Clause:
    text, values = _contains("c.plain_body", term)
    return f"EXISTS (SELECT 1 FROM zd_comments c WHERE c.ticket_id = zd_tickets.id AND {text})", values


def _attached(column: str, term: Term, _: Asker) -> Clause:
    return f"{column} IS {'NOT' * (term.value.lower() == 'true')} NULL", []


def _rated(column: str, term: Term, _: Asker) -> Clause:
    return f"{column} LIKE ?", [f"{term.value.lower()}%"]


_NAMED = {"organization_id": "zd_organizations", "group_id": "zd_agent_groups"}
_COMMENTS = "(SELECT max({}) FROM zd_comments c WHERE c.ticket_id = zd_tickets.id)"
_KEYS: dict[str, dict[Callable[[str, Term, Asker], Clause], str]] = {
    "ticket": {
        _value: "ticket_type=type form=ticket_form_id brand=brand_id external_id group_id assignee_id requester_id "
                "organization_id recipient",
        _text: "subject description",
        _date: "created=created_at updated=updated_at due_date=due_at created_at updated_at solved",
        _ordered: "status priority",
        _user: "assignee=assignee_id requester=requester_id submitter=submitter_id",
        _named: "group=group_id organization=organization_id",
        _copied: "cc", _tags: "tags", _channel: "via", _said: "comment", _attached: "has_attachment",
        _rated: "satisfaction",
    },
    "user": {
        _value: "email phone external_id organization_id role", _text: "name notes details", _tags: "tags",
        _date: "created=created_at updated=updated_at created_at updated_at", _named: "organization=organization_id",
        _member: "group",
    },
    "organization": {
        _value: "external_id", _text: "name notes details", _tags: "tags",
        _date: "created=created_at updated=updated_at created_at updated_at",
    },
    "group": {_text: "name"},
}  # fmt: skip
"""For each kind of record, what makes the condition of a key, and the key's column, where it has another name."""
_SQL = {
    "solved": "(SELECT m.solved_at FROM zd_metrics m WHERE m.id = zd_tickets.id)", "tags": "nullif(tags, '[]')",
    "cc": "nullif(email_cc_ids, '[]')", "via": "json_extract(via, '$.channel')",
    "satisfaction": "json_extract(satisfaction_rating, '$.score')", "comment": _COMMENTS.format("c.plain_body"),
    "has_attachment": _COMMENTS.format("nullif(c.attachments, '[]')"),
    "group": "(SELECT max(m.group_id) FROM zd_group_memberships m WHERE m.user_id = zd_users.id)",
}  # fmt: skip
"""Values that are no columns, by key."""
_FIELDS = {
    kind: {
        word.partition("=")[0]: (make, word.partition("=")[2] or _SQL.get(word, word))
        for make, words in keys.items() for word in words.split()
    }
    for kind, keys in _KEYS.items()
}  # fmt: skip


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
        return "id = ?", [row_number(term.value.lstrip("#"))]
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
        parts = "SELECT id, id FROM zd_tickets UNION ALL SELECT id, ticket_id FROM zd_comments"
        db.execute(f"INSERT INTO zd_documents {parts}")
        db.execute("INSERT INTO zd_words (rowid, text) SELECT id, coalesce(subject, '') FROM zd_tickets ORDER BY id")
        db.execute("INSERT INTO zd_words (rowid, text) SELECT id, plain_body FROM zd_comments ORDER BY id")
    world.indexed_at = world.now
