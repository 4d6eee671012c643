"""Translation of SQL, as authors write it for both backends, into PostgreSQL's.

A text is cut into tokens that respect strings, dollar quotes, comments and quoted names; then

* statements are separated, and each one's placeholders `?` and `:name` become `$1`, `$2`, ...; `::` is a cast, `[a:b]`
  a slice, `?|` and `?&` are operators of jsonb, and `??` means its operator `?`;
* keywords that read the machine's clock and that no function can hide (CURRENT_TIMESTAMP, CURRENT_DATE, ...) become
  calls of functions that read the world's;
* constructs that no function and no word can replace ('now' as a date) are refused.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quintain.errors import UsageError
from quintain.resources.database import Refused, rows

_TOKEN = re.compile(
    r"""
      (?P<space>\s+ | --[^\n]*)
    | (?P<comment>/\*)
    | (?P<string>[eE]'(?:[^'\\]|''|\\.)*' | (?:[bBxX]|[uU]&)?'(?:[^']|'')*')
    | (?P<quoted>(?:[uU]&)?"(?:[^"]|"")*")
    | (?P<dollar>\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<number>\d[\w.]*)
    | (?P<mark>\?(?![?|&]) | \?(?=\|\|))
    | (?P<operator>::|:=|\?\?[|&]?|\?[|&])
    | (?P<name>:[^\W\d]\w*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

CLOCK = {
    # Keyword -> its type; a precision in parentheses may follow either.
    "current_timestamp": "timestamptz",
    "localtimestamp": "timestamp",
    "current_time": "timetz",
    "localtime": "time",
    "current_date": "date",
}
_TIMES = {"date", "time", "timetz", "timestamp", "timestamptz"}
_NOW = re.compile(r"'\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
CHANCE = {"random", "gen_random_uuid"}
"""Words that draw from the world's rng."""

_AS_TEXT = (dt.date, dt.time)
LONGEST = 4096
"""Characters of a text that is remembered with its statements: agents write many, of any length."""
_READS = {"select", "values", "table", "with", "explain", "show"}
_MAKES = {"create", "alter", "drop", "comment", "grant", "revoke", "refresh"}
_SESSION = "it would stay in the connection; a world's SQL speaks of its data alone"
_REFUSED = {
    **dict.fromkeys(
        ("begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"),
        "write `with db.transaction():` instead of BEGIN, COMMIT, ROLLBACK and SAVEPOINT",
    ),
    **dict.fromkeys(
        ("reset", "discard", "listen", "notify", "unlisten", "prepare", "execute", "deallocate", "declare", "fetch",
         "move", "close", "load"),
        _SESSION,
    ),
    **dict.fromkeys(("checkpoint", "copy", "import", "security", "reassign"), "it reaches beyond this database"),
    **dict.fromkeys(("do", "call"), "its changes would not be known; write a function, and SELECT it"),
    **dict.fromkeys(("vacuum", "analyze", "cluster", "reindex"), "it decides how a query runs: put it into a seed"),
}  # fmt: skip
_ELSEWHERE = {
    "database", "role", "user", "group", "tablespace", "extension", "subscription", "publication", "system", "server",
    "foreign", "event", "language",
}  # fmt: skip


@dataclass(frozen=True)
class Token:
    """A piece of SQL; spaces and comments are pieces, too."""

    kind: str
    text: str

    @functools.cached_property
    def word(self) -> str:
        """In lower case where it is a word, else empty."""
        return self.text.lower() if self.kind == "word" else ""


@dataclass(frozen=True)
class Statement:
    """One statement for the server.

    Attributes:
        text: With `$1`, `$2`, ... as placeholders.
        slots: What each stands for: a name, or the place of a value.
        kind: Its first word, in lower case.
        words: All words outside of strings, in lower case; those in the body of a function count.
        refusal: Why a world's code may not run it; empty when it may.
    """

    text: str
    slots: tuple[str | int, ...]
    kind: str
    words: frozenset[str]
    refusal: str

    @property
    def is_read(self) -> bool:
        """True if the statement changes nothing, except through functions that it calls."""
        return self.kind in _READS

    @property
    def is_definition(self) -> bool:
        """True if the statement changes the schema."""
        return self.kind in _MAKES

    @property
    def draws(self) -> bool:
        """True if the statement names a function that draws random numbers."""
        return not CHANCE.isdisjoint(self.words)

    def values(self, given: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        """Returns the values of the placeholders; dates and times as text without a type, which fits columns of both.

        Raises:
            UsageError: A placeholder does not have a value.
        """
        try:
            found = [named[slot] if isinstance(slot, str) else given[slot] for slot in self.slots]
        except (KeyError, IndexError) as error:
            have = sorted(named) if named else f"{len(given)} values"
            raise UsageError(f"a placeholder has no value ({error}); there are {have}: {self.text}") from None
        return [rows.bound(value) if isinstance(value, _AS_TEXT) else value for value in found]


def parse(sql: str) -> tuple[Statement, ...]:
    """Returns the statements of a text.

    Raises:
        Refused: It would read the machine's clock, or holds what would hide the rest of it from the server.
    """
    return _parsed(sql) if len(sql) <= LONGEST else _parsed.__wrapped__(sql)


@functools.lru_cache(maxsize=2000)
def _parsed(sql: str) -> tuple[Statement, ...]:
    if "\0" in sql:
        raise Refused("SQL with a NUL character, at which the server would stop to read")
    found: list[Statement] = []
    place = 0
    for tokens in _split(_tokens(sql)):
        one = _statement(tokens, place)
        place += sum(isinstance(slot, int) for slot in one.slots)
        found.append(one)
    return tuple(found)


def marks(sql: str) -> int:
    """Returns the number of `?` in a text."""
    return sum(isinstance(slot, int) for one in parse(sql) for slot in one.slots)


def quoted(text: str) -> str:
    """Text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def _tokens(sql: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(sql):
        match = _TOKEN.match(sql, at)
        assert match is not None  # the last alternative matches anything
        kind, end = match.lastgroup or "other", match.end()
        if match["dollar"]:
            kind = "dollar"
        if kind == "comment":
            kind, end = "space", _comment(sql, at)
        found.append(Token(kind, sql[at:end]))
        at = end
    return found


def _comment(sql: str, at: int) -> int:
    """Returns the end of a comment; comments nest."""
    depth = 0
    for match in re.finditer(r"/\*|\*/", sql[at:]):
        depth += 1 if match[0] == "/*" else -1
        if not depth:
            return at + match.end()
    return len(sql)


def _split(tokens: list[Token]) -> Iterator[list[Token]]:
    """Statements, without empty ones. A `;` in parentheses, or in a body BEGIN ATOMIC ... END, ends none."""
    one: list[Token] = []
    depth = blocks = 0
    for token in tokens:
        if token.text == ";" and depth <= 0 and not blocks:
            if _first(one):
                yield one
            one = []
            continue
        depth += (token.text == "(") - (token.text == ")")
        if token.word == "atomic":
            blocks = 1
        elif blocks:
            blocks += (token.word in {"begin", "case"}) - (token.word == "end")
        one.append(token)
    if _first(one):
        yield one


def _first(tokens: list[Token]) -> str:
    """Returns the first token's word or text, after parentheses; empty when there is none."""
    return next((token.word or token.text for token in tokens if token.kind != "space" and token.text != "("), "")


def _statement(tokens: list[Token], place: int) -> Statement:
    words = [token.word for token in tokens if token.word]
    kind = _first(tokens)
    seen = set(words)
    is_body = kind == "create" and not seen.isdisjoint({"function", "procedure"})
    pieces: list[str] = []
    slots: list[str | int] = []
    for token, before, after in _near(tokens):
        if token.kind == "mark":
            slots.append(place)
            place += 1
            pieces.append(f"${len(slots)}")
        elif token.kind == "name" and not _is_slice(before, _depth(tokens, token)):
            name = token.text[1:]
            if name not in slots:
                slots.append(name)
            pieces.append(f"${slots.index(name) + 1}")
        elif token.kind == "dollar" and is_body:
            text, inner = _body(token.text)
            seen |= inner
            pieces.append(text)
        else:
            pieces.append(_piece(token, before, after))
    return Statement("".join(pieces).strip(), tuple(slots), kind, frozenset(seen), _refusal(kind, words))


def _near(tokens: list[Token]) -> Iterator[tuple[Token, list[Token], list[Token]]]:
    """Yields each token, with the two before it and the three behind it that are not spaces."""
    solid = [number for number, token in enumerate(tokens) if token.kind != "space"]
    places = {number: place for place, number in enumerate(solid)}
    for number, token in enumerate(tokens):
        place = places.get(number)
        if place is None:
            yield token, [], []
            continue
        before = [tokens[n] for n in reversed(solid[max(place - 2, 0) : place])]
        yield token, before, [tokens[n] for n in solid[place + 1 : place + 4]]


def _depth(tokens: list[Token], until: Token) -> int:
    depth = 0
    for token in tokens:
        if token is until:
            break
        depth += (token.text == "[") - (token.text == "]")
    return depth


def _is_slice(before: list[Token], depth: int) -> bool:
    """True if `:name` is the end of `[a:name]`."""
    return bool(depth and before and (before[0].kind in {"word", "number", "quoted"} or before[0].text in ")]"))


def _piece(token: Token, before: list[Token], after: list[Token]) -> str:
    if token.kind == "operator":
        return token.text.replace("??", "?")
    if token.word in CLOCK and not (before and before[0].text == "."):
        return f"quintain.now()::{CLOCK[token.word]}"
    if token.kind == "string" and _NOW.match(token.text) and _is_time(before, after):
        raise Refused(f"{token.text} reads the machine's clock: write now(), CURRENT_TIMESTAMP or CURRENT_DATE")
    return token.text


def _is_time(before: list[Token], after: list[Token]) -> bool:
    """True if a string is read as a date or a time."""
    if before and (before[0].word in _TIMES or (before[0].text == "(" and before[-1].word in _TIMES)):
        return True
    return bool(len(after) > 1 and (after[0].text == "::" or after[0].word == "as") and after[1].word in _TIMES)


def _body(text: str) -> tuple[str, set[str]]:
    """Returns a function's body with its keywords replaced, and its words."""
    quote = text[: text.index("$", 1) + 1]
    tokens = _tokens(text[len(quote) : -len(quote)])
    pieces = [_piece(token, before, after) for token, before, after in _near(tokens)]
    return f"{quote}{''.join(pieces)}{quote}", {token.word for token in tokens if token.word}


def _refusal(kind: str, words: list[str]) -> str:
    """Returns the reason why a world's code may not run a statement; empty if it may."""
    before = itertools.takewhile(lambda word: word not in {"table", "view", "sequence"}, words)
    reason = _REFUSED.get(kind, "")
    is_set = kind == "set" and words[1:2] != ["constraints"]
    is_temporary = (kind == "create" and not {"temp", "temporary"}.isdisjoint(before)) or "pg_temp" in words
    if is_set or is_temporary or "set_config" in words:
        reason = _SESSION
    elif kind in _MAKES and words[1:2] and words[1] in _ELSEWHERE:
        reason = "it reaches beyond this database"
    elif kind == "select" and "into" in words:
        reason = "write CREATE TABLE ... AS"
    return f"{' '.join(words[:2]).upper()}: {reason}" if reason else ""
