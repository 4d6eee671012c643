"""Conditions of rules, read twice: as functions of an update, for triggers and SLA policies, and as SQL over tickets.

`FIELDS` says for each field which operators it has, and in which kinds of rules; definitions and checks come from it.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from .account import listed, record, row_number
from .tables import PRIORITIES, STATUSES, TYPES, Json, Ticket

if TYPE_CHECKING:
    from .commit import Update

Test = Callable[["Update"], bool]


class Answers(dict[Test, bool]):
    """Answers of tests about an update, for as long as its ticket is not changed: rules share many conditions."""

    def __init__(self, update: Update) -> None:
        super().__init__()
        self._update = update

    def __missing__(self, test: Test) -> bool:
        answer = self[test] = test(self._update)
        return answer


Rule = Callable[[Answers], bool]

EQUAL = ("is", "is_not")
ORDERED = (*EQUAL, "less_than", "greater_than")
CHANGED = ("changed", "not_changed", "value", "value_previous", "not_value", "not_value_previous")
TAGS = ("includes", "not_includes")
WORDS = (*TAGS, *EQUAL)
HOURS = ("is", "less_than", "greater_than")
CUSTOM = (*ORDERED, "present", "not_present", *TAGS, "within_previous_n_days")

VIA = {"web": 0, "email": 4, "api": 5, "rule": 8, "linked_problem": 9, "merge": 19, "batch": 20, "recovered": 21,
       "follow_up": 27, "chat": 29, "phone_in": 34, "phone_out": 35}  # fmt: skip
"""Numbers of channels in conditions."""


class Field(NamedTuple):
    """A field of conditions.

    Attributes:
        operators: Operators in all kinds of rules.
        kinds: Initials of the kinds: t triggers, a automations, v views, s SLA policies.
        title: Title in definitions.
        more: Further operators in triggers.
    """

    operators: tuple[str, ...]
    kinds: str
    title: str
    more: tuple[str, ...] = ()


_TIMES = ("NEW", "OPEN", "PENDING", "HOLD", "SOLVED", "CLOSED", "assigned_at", "updated_at", "requester_updated_at",
          "assignee_updated_at", "due_date", "until_due_date", "sla_next_breach_at",
          "until_sla_next_breach_at")  # fmt: skip
_BUSINESS = "_business_hours"

_KNOWN: dict[tuple[tuple[str, ...], str, tuple[str, ...]], str] = {
    (EQUAL, "tavs", CHANGED): "group_id assignee_id requester_id organization_id type ticket_type_id=Type "
                              "ticket_form_id=Form brand_id",
    (ORDERED, "tav", CHANGED): "status priority satisfaction_score=Satisfaction",
    (TAGS, "tavs", ()): "current_tags=Tags",
    ((*TAGS, *EQUAL), "tavs", CHANGED): "custom_status_id=Ticket_status",
    (EQUAL, "tavs", ()): "via_id=Channel",
    (EQUAL, "tav", ()): "recipient=Received_at locale_id=Requester's_language ticket_is_public=Privacy",
    (EQUAL, "t", ()): "current_via_id=Update_via update_type=Ticket comment_is_public=Comment role=Current_user "
                      "requester_role=Requester's_role attachment cc=CC in_business_hours=Within_business_hours "
                      "within_schedule",
    (WORDS, "t", ()): "subject_includes_word=Subject_text comment_includes_word=Comment_text "
                      "description_includes_word=Description",
    (HOURS, "t", ()): "reopens replies=Agent_replies agent_stations=Assignee_stations group_stations",
    (HOURS, "av", ()): " ".join(f"{one}{end}=Hours_since_{one.lower()}" for one in _TIMES for end in ("", _BUSINESS)),
    (("less_than", "less_than_equal", "greater_than", "greater_than_equal"), "s", ()): "exact_created_at=Created",
}  # fmt: skip
"""Fields by their operators, kinds and further operators, each with its title if that is not its name."""
FIELDS = {
    name: Field(
        operators, kinds, title.replace("_", " ") or name.removesuffix("_id").replace("_", " ").capitalize(), more
    )
    for (operators, kinds, more), words in _KNOWN.items()
    for name, _, title in (word.partition("=") for word in words.split())
}
CUSTOM_FIELD = Field(CUSTOM, "tavs", "Custom field", CHANGED)
MOST, MOST_WORDS = 500, 1000
"""Conditions of a rule, and words of the value of one; SQLite takes a thousand conditions and 32,766 values."""
_ORDER = {"status": STATUSES, "priority": PRIORITIES, "satisfaction_score": ("unoffered", "offered", "bad", "good")}
_ENDING = ("status", "type", "group_id", "assignee_id", "requester_id")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "less_than": operator.lt, "greater_than": operator.gt, "is": operator.eq,
    "less_than_equal": operator.le, "greater_than_equal": operator.ge,
}  # fmt: skip


def known(name: str) -> Field | None:
    """Returns the field of a condition."""
    return CUSTOM_FIELD if re.fullmatch(r"custom_fields_\d{1,18}", name) else FIELDS.get(name)


def faults(kind: str, conditions: Any) -> str:
    """Returns the reason why conditions are not valid for a kind of rule; empty if they are."""
    given = record(conditions)
    every = [*listed(given.get("all")), *listed(given.get("any"))]
    if len(every) > MOST:
        return f"Conditions: at most {MOST}"
    for one in every:
        if wrong := _fault(kind, record(one)):
            return wrong
    named = {str(one["field"]).removesuffix(_BUSINESS) for one in listed(given.get("all"))}
    if kind in {"view", "automation"} and not named & {*_ENDING, *STATUSES_UPPER}:
        return "You must select at least one of Status, Type, Group, Assignee or Requester in the all conditions"
    if kind == "automation" and not named & {*_TIMES}:
        return "An automation needs a condition on time"
    return ""


def _fault(kind: str, one: Json) -> str:
    if not isinstance(one.get("field"), str):
        return f"Condition {one!r} has no field"
    found = known(one["field"])
    if found is None or kind[0] not in found.kinds:
        return f"Field {one['field']!r} is not valid for a {kind}"
    allowed = found.operators + (found.more if kind == "trigger" else ())
    if one.get("operator", "is") not in allowed:
        return f"Operator {one.get('operator')!r} of {one['field']!r} is not one of {', '.join(allowed)}"
    digits = 18 if one["field"] == "within_schedule" else 5 if found.operators == HOURS else 0
    if digits and not re.fullmatch(rf"\d{{1,{digits}}}", str(one.get("value"))):
        return f"Value {one.get('value')!r} of {one['field']!r} is not a whole number of at most {digits} digits"
    if len(_items(one.get("value"))) > MOST_WORDS:
        return f"Value of {one['field']!r}: at most {MOST_WORDS} words"
    return ""


STATUSES_UPPER = tuple(name.upper() for name in STATUSES)


# -- as functions of an update


@functools.lru_cache(maxsize=4096)
def decoded(text: str) -> list[Json]:
    """Returns the objects of a column; the same text is decoded once, so do not change them."""
    return msgspec.json.decode(text, type=list[dict[str, Any]])


@functools.lru_cache(maxsize=4096)
def compiled(text: str | bytes) -> Rule:
    """Returns the function of conditions that are given as JSON: all of `all`, and one of `any` if it has some."""
    conditions = msgspec.json.decode(text, type=dict[str, Any])
    every, some = (
        [_test(msgspec.json.encode(one, order="deterministic")) for one in listed(conditions.get(name))]
        for name in ("all", "any")
    )

    def holds(answers: Answers) -> bool:
        for test in every:
            if not answers[test]:
                return False
        return not some or any(answers[test] for test in some)

    return holds


@functools.lru_cache(maxsize=4096)
def _test(text: bytes) -> Test:
    condition = msgspec.json.decode(text, type=dict[str, Any])
    name, op, value = condition["field"], condition.get("operator", "is"), condition.get("value")
    if name in _EVENTS:
        return _EVENTS[name](op, value)
    if name == "current_tags":
        words = set(str(value or "").lower().split())
        return lambda u: words.isdisjoint(u.ticket.tags) is (op != "includes")
    return _state(name, op, value)


def _state(name: str, op: str, value: Any) -> Test:
    get, wanted = getter(name), _wanted(name, value)
    if op in {"includes", "not_includes"} or isinstance(value, list):
        items = {*_items(value)}
        positive = op in {"includes", "is"}
        return lambda u: (get(u.ticket) in items) is positive
    if op in {"less_than", "greater_than", "less_than_equal", "greater_than_equal"}:
        compare, rank = _COMPARE[op], _ranked(name)
        limit = rank(wanted)
        return lambda u: limit is not None and (now := rank(get(u.ticket))) is not None and compare(now, limit)
    if op in {"present", "not_present"}:
        return lambda u: (get(u.ticket) not in {None, "", "False"}) is (op == "present")
    return _changing(get, op, _special(wanted))


def _changing(get: Callable[[Ticket], str | None], op: str, target: Callable[[Update], str | None]) -> Test:
    if op in {"changed", "not_changed"}:
        return lambda u: (get(u.ticket) != u.previous(get)) is (op == "changed")
    if op in {"value", "not_value"}:
        return lambda u: (get(u.ticket) == target(u) and get(u.ticket) != u.previous(get)) is (op == "value")
    if op in {"value_previous", "not_value_previous"}:
        return lambda u: (u.previous(get) == target(u) != get(u.ticket)) is (op == "value_previous")
    return lambda u: (get(u.ticket) == target(u)) is (op == "is")


def _items(value: Any) -> list[str]:
    return [word for one in listed(value) for word in str(one).split()]


def _wanted(name: str, value: Any) -> str | None:
    if value is None or value == "":
        return None
    if name == "ticket_type_id":
        return TYPES[int(value) - 1] if str(value) in {"1", "2", "3", "4"} else str(value)
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _special(wanted: str | None) -> Callable[[Update], str | None]:
    if wanted == "current_user":
        return lambda u: str(u.actor.id)
    if wanted == "requester_id":
        return lambda u: str(u.ticket.requester_id)
    return lambda u: wanted


def _ranked(name: str) -> Callable[[str | None], Any]:
    order = _ORDER.get(name)
    if order is not None:
        return lambda text: order.index(text) if text in order else None

    def number(text: str | None) -> Any:
        try:
            return float(text or "")
        except ValueError:
            return None

    return number if name.startswith("custom_fields_") else lambda text: text


@functools.cache
def getter(name: str) -> Callable[[Ticket], str | None]:
    """Returns the function from a ticket to the text of a field, None if it is empty."""
    if name.startswith("custom_fields_"):
        key = name.removeprefix("custom_fields_")
        return lambda ticket: _text(ticket.custom.get(key))
    if name == "satisfaction_score":
        return lambda ticket: ticket.satisfaction_rating.get("score")
    if name == "via_id":
        return lambda ticket: _text(VIA.get(ticket.via.get("channel", ""), 0))
    if name == "ticket_is_public":
        return lambda ticket: "public" if ticket.is_public else "private"
    attribute = {"exact_created_at": "created_at", "ticket_type_id": "type"}.get(name, name)
    read = operator.attrgetter(attribute)
    return lambda ticket: _text(read(ticket))


def _text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else " ".join(map(str, listed(value)))


def _words(read: Callable[[Update], str]) -> Callable[[str, Any], Test]:
    def make(op: str, value: Any) -> Test:
        text = str(value or "").lower()
        if op in {"is", "is_not"}:
            return lambda u: (text in read(u).lower()) is (op == "is")
        words = text.split()
        return lambda u: (not _vocabulary(read(u)).isdisjoint(words)) is (op == "includes")

    return make


@functools.lru_cache(maxsize=8)
def _vocabulary(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def _flag(read: Callable[[Update], str | None]) -> Callable[[str, Any], Test]:
    def make(op: str, value: Any) -> Test:
        wanted = _wanted("", value)
        return lambda u: (read(u) == wanted) is (op == "is")

    return make


def _number(name: str) -> Callable[[str, Any], Test]:
    def make(op: str, value: Any) -> Test:
        compare, limit = _COMPARE[op], int(value or 0)
        return lambda u: compare(getattr(u.metric, name), limit)

    return make


def _comment(op: str, value: Any) -> Test:
    def matches(u: Update) -> bool:
        seen = {"true": True, "false": False, "requester_can_see_comment": True}.get(_wanted("", value) or "")
        return u.comment is not None and (value == "not_relevant" or u.comment.public is seen)

    return lambda u: matches(u) is (op == "is")


def _role(op: str, value: Any) -> Test:
    wanted = str(value or "").replace("_", "-")

    def matches(u: Update) -> bool:
        if wanted == "agent":
            return u.actor.role != "end-user"
        return str(u.actor.id) == wanted or u.actor.role == wanted

    return lambda u: matches(u) is (op == "is")


def _requester_role(op: str, value: Any) -> Test:
    wanted = {"0": "end-user", "4": "agent", "2": "admin"}.get(str(value), str(value).replace("_", "-"))
    return _flag(lambda u: u.requester.role)(op, wanted)


_EVENTS: dict[str, Callable[[str, Any], Test]] = {
    "update_type": _flag(lambda u: "Create" if u.before is None else "Change"),
    "comment_is_public": _comment,
    "role": _role,
    "requester_role": _requester_role,
    "locale_id": _flag(lambda u: str(u.requester.locale_id)),
    "subject_includes_word": _words(lambda u: u.ticket.subject or ""),
    "comment_includes_word": _words(lambda u: u.comment.plain_body if u.comment else ""),
    "description_includes_word": _words(lambda u: u.ticket.description),
    "attachment": _flag(lambda u: "true" if u.comment and u.comment.attachments else "false"),
    "cc": _flag(lambda u: str(u.actor.id) if u.actor.id in u.ticket.email_cc_ids else None),
    "current_via_id": _flag(lambda u: str(VIA.get(u.via.get("channel", ""), 0))),
    "reopens": _number("reopens"),
    "replies": _number("replies"),
    "agent_stations": _number("assignee_stations"),
    "group_stations": _number("group_stations"),
    "in_business_hours": _flag(lambda u: "true" if u.is_open() else "false"),
    "within_schedule": lambda op, value: lambda u: u.is_open(int(value)) is (op == "is"),
}


# -- as SQL over tickets

_COLUMNS = {
    "satisfaction_score": "json_extract(satisfaction_rating, '$.score')",
    "ticket_type_id": "type",
    "ticket_is_public": "CASE is_public WHEN 1 THEN 'public' ELSE 'private' END",
    "locale_id": "(SELECT locale_id FROM zd_users u WHERE u.id = requester_id)",
}
_METRIC = "(SELECT {} FROM zd_metrics m WHERE m.id = zd_tickets.id)"


class Now(NamedTuple):
    """State besides the tickets that conditions in SQL depend on.

    Attributes:
        user_id: The caller.
        groups: Groups of the caller.
        before: Function from hours, and True for business hours, to the latest time so many hours ago, as text.
    """

    user_id: int | None
    groups: Sequence[int]
    before: Callable[[int, bool], str]


def sql(conditions: Json, now: Now) -> tuple[str, tuple[Any, ...]]:
    """Returns the condition in SQL, and its values."""
    parts: list[str] = []
    values: list[Any] = []
    for name, word in (("all", " AND "), ("any", " OR ")):
        found = [_clause(one, now) for one in listed(conditions.get(name))]
        if found:
            parts.append(f"({word.join(text for text, _ in found)})")
            values += [value for _, some in found for value in some]
    return " AND ".join(parts) or "1", tuple(values)


def _clause(condition: Json, now: Now) -> tuple[str, Sequence[Any]]:
    name, op, value = condition["field"], condition.get("operator", "is"), condition.get("value")
    if name.removesuffix(_BUSINESS) in _TIMES:
        return _hours(name, op, int(value or 0), now=now)
    if name == "current_tags":
        words = str(value or "").lower().split()
        has = f"EXISTS (SELECT 1 FROM json_each(tags) WHERE value IN ({', '.join('?' * len(words))}))"
        return has if op == "includes" else f"NOT {has}", words
    column = _column(name)
    wanted = _wanted(name, value)
    if op in {"includes", "not_includes"} or isinstance(value, list):
        items = _items(value)
        word = "IN" if op in {"includes", "is"} else "NOT IN"
        return f"coalesce(CAST({column} AS TEXT), '') {word} ({', '.join('?' * len(items))})", items
    if op in {"less_than", "greater_than"}:
        return _compared(name, column, op, wanted=wanted)
    if op in {"present", "not_present"}:
        return f"coalesce(CAST({column} AS TEXT), '') {'<>' if op == 'present' else '='} ''", ()
    return _is(name, column, op, wanted=wanted, now=now)


def _is(name: str, column: str, op: str, *, wanted: str | None, now: Now) -> tuple[str, Sequence[Any]]:
    if wanted == "current_groups":
        word = "IN" if op == "is" else "NOT IN"
        return f"coalesce({column}, 0) {word} ({', '.join('?' * len(now.groups))})", [*now.groups]
    word = "IS" if op == "is" else "IS NOT"
    if wanted == "requester_id":
        return f"{column} {word} requester_id", ()
    if wanted == "current_user":
        return f"{column} {word} ?", [now.user_id]
    if name.endswith("_id") and wanted is not None and wanted.isdecimal() and name != "ticket_type_id":
        return f"{column} {word} ?", [row_number(wanted)]
    return f"{column} {word} ?", [wanted]


def _column(name: str) -> str:
    if name.startswith("custom_fields_"):
        # The name was checked to end in digits.
        value = f"""json_extract(custom, '$."{int(name.removeprefix("custom_fields_"))}"')"""
        kind = value.replace("json_extract", "json_type")
        text = f"nullif(CAST({value} AS TEXT), '')"
        return f"CASE {kind} WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' ELSE {text} END"
    if name == "via_id":
        cases = " ".join(f"WHEN '{channel}' THEN {number}" for channel, number in VIA.items())
        return f"CASE json_extract(via, '$.channel') {cases} ELSE 0 END"
    return _COLUMNS.get(name, name)


def _compared(name: str, column: str, op: str, *, wanted: str | None) -> tuple[str, Sequence[Any]]:
    order = _ORDER.get(name)
    if order is None:
        try:
            limit = float(wanted or "")
        except ValueError:
            return "0", ()
        return f"({column} IS NOT NULL AND CAST({column} AS REAL) {'<' if op == 'less_than' else '>'} ?)", [limit]
    at = order.index(wanted) if wanted in order else None
    items = () if at is None else order[:at] if op == "less_than" else order[at + 1 :]
    return f"coalesce({column}, '') IN ({', '.join('?' * len(items))})", items


def _hours(name: str, op: str, hours: int, *, now: Now) -> tuple[str, Sequence[Any]]:
    business = name.endswith(_BUSINESS)
    name = name.removesuffix(_BUSINESS)
    status = ""
    if name in STATUSES_UPPER:
        status, column = f"status = '{name.lower()}' AND ", _METRIC.format("m.status_updated_at")
    elif name in {"due_date", "until_due_date"}:
        column = "due_at"
    elif name.endswith("sla_next_breach_at"):
        column = _METRIC.format("m.next_breach")
    else:
        column = "updated_at" if name == "updated_at" else _METRIC.format(f"m.{name}")
    sign, begin = (-1, hours) if name.startswith("until_") else (1, hours)
    # So many whole hours ago means: at or before `edge(h)`, and after `edge(h + 1)`.
    edges = now.before(sign * begin, business), now.before(sign * (begin + 1), business)
    reached, within = ("<= ?", "> ?") if sign > 0 else (">= ?", "< ?")
    clauses = {"is": (reached, within), "greater_than": (reached,), "less_than": (within,)}[op]
    tests = " AND ".join(f"{column} {clause}" for clause in clauses)
    return f"({status}{tests})", {"is": edges, "greater_than": edges[1:], "less_than": edges[:1]}[op]
