"""SQL for both backends, cut into statements and tokens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.errors import UsageError
from quintain.resources.database import Refused
from quintain.resources.postgres import sql
from quintain.resources.postgres.sql import parse


@pytest.mark.parametrize(
    ("text", "expected", "slots"),
    [
        ("SELECT ?, :x, ?", "SELECT $1, $2, $3", (0, "x", 1)),
        ("SELECT :x + :x", "SELECT $1 + $1", ("x",)),
        ("SELECT '?', \"a?:b\", '''?', E'\\'?', U&'?', $$ ? $$, $a$ $$ ? $a$", None, ()),
        ("SELECT 1 -- ? :x", None, ()),
        ("SELECT /* ? /* ? */ :x */ 1", None, ()),
        ("SELECT a::text, :x::int", "SELECT a::text, $1::int", ("x",)),
        ("SELECT a[1:n], a[:n], ARRAY[:x, :y], a[b:c]", "SELECT a[1:n], a[$1], ARRAY[$2, $3], a[b:c]", ("n", "x", "y")),
        ("SELECT j ?| a, j ?& a, j ?? 'k', j ??| a", "SELECT j ?| a, j ?& a, j ? 'k', j ?| a", ()),
        ("SELECT ?||'x', ? || 'y'", "SELECT $1||'x', $2 || 'y'", (0, 1)),
        ("SELECT f(a := ?)", "SELECT f(a := $1)", (0,)),
        ("SELECT x AS ünï, \"CURRENT_DATE\", t.current_date, 'CURRENT_DATE'", None, ()),
        ("SELECT CURRENT_TIMESTAMP(3)", "SELECT quintain.now()::timestamptz(3)", ()),
        ("SELECT current_date - 1", "SELECT quintain.now()::date - 1", ()),
        ("SELECT LOCALTIME, LocalTimestamp", "SELECT quintain.now()::time, quintain.now()::timestamp", ()),
    ],
)
def test_placeholders_and_the_clock(text: str, expected: str | None, slots: tuple[Any, ...]) -> None:
    (one,) = parse(text)
    assert (one.text, one.slots) == (expected or text, slots)


def test_statements_are_told_apart() -> None:
    body = "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 1 END; END"
    rule = "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)"
    text = f"; SELECT ';', ? ; -- ;\n {body}; /* ; */ {rule};;\n SELECT $$;$$, ?;"
    found = parse(text)
    assert [one.kind for one in found] == ["select", "create", "create", "select"]
    assert found[1].text.endswith(body)
    assert [one.slots for one in found] == [(0,), (), (), (1,)]
    assert parse(" -- nothing\n; ") == ()


def test_the_clock_in_the_body_of_a_function_is_the_worlds() -> None:
    (one,) = parse("CREATE FUNCTION f() RETURNS date LANGUAGE plpgsql AS $x$ BEGIN RETURN CURRENT_DATE; END $x$")
    assert one.text.endswith("AS $x$ BEGIN RETURN quintain.now()::date; END $x$")
    (one,) = parse("CREATE FUNCTION f() RETURNS float LANGUAGE sql AS $$ SELECT random() $$")
    assert one.draws
    with pytest.raises(Refused, match="machine's clock"):
        parse("CREATE FUNCTION f() RETURNS date LANGUAGE sql AS $$ SELECT 'now'::date $$")


@pytest.mark.parametrize(
    "text",
    ["'now'::timestamptz", "date('now')", "timestamp 'today'", "CAST(' NOW ' AS date)", "DATE 'yesterday'", "1 \0 2"],
)
def test_reads_of_the_machine_clock_are_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse(f"SELECT {text}")
    assert parse("INSERT INTO t VALUES ('now')")[0].kind == "insert"


@pytest.mark.parametrize(
    "text",
    [
        "BEGIN",
        "START TRANSACTION",
        "END",
        "PREPARE TRANSACTION 'x'",
        "SET search_path = x",
        "SET LOCAL ROLE x",
        "RESET ALL",
        "DISCARD ALL",
        "SELECT set_config('a', 'b', false)",
        "LISTEN x",
        "CREATE TEMPORARY TABLE t (x int)",
        "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE LOCAL TEMP TABLE t (x int)",
        "CREATE TABLE pg_temp.t (x int)",
        "SELECT 1 INTO t",
        "COPY t FROM '/etc/passwd'",
        "CREATE DATABASE x",
        "DROP ROLE x",
        "CREATE EXTENSION x",
        "ALTER SYSTEM SET x = 1",
        "DO $$ BEGIN END $$",
        "CALL f()",
        "VACUUM",
        "ANALYZE",
        "CHECKPOINT",
        "(BEGIN)",
        "/* x */ begin",
    ],
)
def test_statements_about_connection_or_server_are_refused(text: str) -> None:
    assert parse(text)[0].refusal


@pytest.mark.parametrize(
    "text",
    [
        "SET CONSTRAINTS ALL DEFERRED",
        "INSERT INTO t SELECT 1",
        "CREATE TABLE temp (x int)",
        "SELECT 'BEGIN'",
        "TABLE t",
    ],
)
def test_statements_within_the_world_are_allowed(text: str) -> None:
    assert not parse(text)[0].refusal


def test_a_placeholder_without_a_value() -> None:
    (one,) = parse("SELECT ?, ?")
    with pytest.raises(UsageError, match="there are 1 values"):
        one.values((1,), {})
    (one,) = parse("SELECT :a, :b")
    with pytest.raises(UsageError, match=r"'b'.*there are \['a'\]"):
        one.values((), {"a": 1})


PIECES = ["?", ":x", "'", '"', "$$", "$a$", "--", "\n", "/*", "*/", "::", "[", "]", "(", ")", ";", " ", "x", "1", "E'"]


@given(st.lists(st.sampled_from([*PIECES, "\\", "??", "?|", "|", "ä", "BEGIN", "ATOMIC", "END"])).map("".join))
def test_no_text_is_too_odd(text: str) -> None:
    for one in parse(text):
        assert len(one.slots) <= one.text.count("$")


@given(st.text())
def test_a_literal_is_one_token(text: str) -> None:
    literal = "'" + text.replace("'", "''") + "'"
    for one in parse(f"SELECT {literal}, ?") if "\0" not in text else ():
        assert one.text == f"SELECT {literal}, $1"


def test_long_texts_are_not_remembered() -> None:
    """Agents write them, as long as a request may be."""
    held = sql._parsed.cache_info().currsize
    for number in range(3):
        (one,) = parse(f"SELECT {number}, '{'x' * sql.LONGEST}'")
        assert one.text.startswith(f"SELECT {number}")
    assert sql._parsed.cache_info().currsize == held
