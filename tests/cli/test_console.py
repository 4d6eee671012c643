"""Texts, tables and durations as the terminal shows them."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from quintain.audit.kernel.finding import Finding
from quintain.cli import console
from quintain.cli.audit_table import print_finding

RECORD = '{"account":"A-41249","created":"2024-12-12","id":"L-45527","updated":"2025-01-13T10:07Z","sum":1,"of":[1,2]}'


def wrapped(text: str, width: int) -> list[str]:
    return [line.plain for line in console.wrapped(Text(text), width)]


@pytest.mark.parametrize("width", [24, 30, 41, 60, 89])
def test_wrapped_breaks_no_word_date_or_entry_of_json(width: int) -> None:
    lines = wrapped(RECORD, width)
    assert "".join(lines) == RECORD
    assert all(len(line) <= width for line in lines)
    for whole in ('"id":"L-45527"', "2024-12-12", "2025-01-13T10:07Z", "A-41249"):
        assert any(whole in line for line in lines), (whole, lines)


def test_wrapped_folds_what_is_longer_than_a_line() -> None:
    assert wrapped("x" * 50 + " end", 20) == ["x" * 20, "x" * 20, "x" * 10 + " end"]
    assert wrapped("costs 1,000 euros", 9) == ["costs", "1,000", "euros"]
    assert wrapped("  two\n\n  blanks", 20) == ["  two", "", "  blanks"]


@given(st.text(st.sampled_from('ab1,-"{[] :/é漢\n'), max_size=200), st.integers(20, 60))
def test_wrapped_keeps_all_text_within_the_width(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(Text(line).cell_len <= width for line in lines)


@given(st.floats(0, 1e5), st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_split_seconds_adds_up_to_the_total(total: float, shares: list[float]) -> None:
    parts = {str(n): total * share / len(shares) for n, share in enumerate(shares)}
    whole, found = console.split_seconds(total, parts)
    assert sum(map(in_hundredths, found.values())) == in_hundredths(whole)
    assert [*found] == [*parts, "other"]


def in_hundredths(text: str) -> int:
    units = {"s": 100, "min": 6000, "h": 360000}
    return sum(round(float(number) * units[unit]) for number, unit in re.findall(r"([\d.]+) (s|min|h)", text))


def test_excerpts_show_the_difference_of_long_texts() -> None:
    one, other = "a" * 900 + "1" + "b" * 900, "a" * 900 + "2" + "b" * 900
    left, right = console.excerpts(one, other)
    assert (left, right) == (f"…{'a' * 60}1{'b' * 59}…", f"…{'a' * 60}2{'b' * 59}…")
    assert console.excerpts("short", "shorter") == ("short", "shorter")


def table(*columns: str, rows: list[tuple[object, ...]]) -> str:
    out, written = console.stdout(), io.StringIO()
    out.file = written
    out.print(console.grid(*columns, rows=rows))
    return written.getvalue()


def test_a_table_leaves_out_marked_columns_only_where_it_is_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[tuple[object, ...]] = [("criterion_with_a_name", "trajectory", 1, "why it is so")]
    for columns, has_level in ((60, True), (44, False)):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = table("criterion", "?level", ">n", "reason", rows=rows)
        assert ("trajectory" in shown) is has_level, shown
        assert "criterion_with_a_name" in shown
        assert all(len(line) <= columns for line in shown.splitlines())


@pytest.mark.parametrize("columns", [44, 50, 60, 80])
def test_a_table_breaks_no_word(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    rows: list[tuple[object, ...]] = [("lockout-easy-0", 12, "the agent answered", "equal to the byte")]
    shown = table("task", ">turns", "reason", "result", rows=rows)
    assert {"lockout-easy-0", "12", "answered", "equal"} <= {*shown.split()}, shown
    assert all(len(line) <= columns for line in shown.splitlines())


def test_a_table_is_whole_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    long = "word " * 100 + "end"
    assert long in table("check", "?question", rows=[("x", long)])


def test_a_finding_begins_with_what_differs() -> None:
    account = {"id": 783, "log": "x" * 400, "status": "locked"}
    seen = {"do": "call", "name": "get_account", "arguments": {"id": 783}, "observed": account}
    write = {"do": "call", "name": "unlock", "arguments": {"id": 783}, "observed": "done"}
    finding = Finding(
        check="x.one",
        class_="stale_cache",
        part="S",
        severity="error",
        confidence="proven",
        title="get_account shows an old status",
        trajectory=[seen, write, seen],
        expected=account | {"status": "active"},
        observed=account,
        details={"changes": [None, {"shared/now": [1, 2], "db.accounts/783/status": ["locked", "active"]}, None]},
    )
    written = io.StringIO()
    print_finding(Console(file=written, width=100, highlight=False, markup=False), 1, finding)
    lines = [line.strip() for line in written.getvalue().splitlines()]
    assert lines[2:4] == ['expected: status: "active"', 'observed: status: "locked"']
    assert lines.index('db.accounts/783/status: "locked" → "active"') < lines.index("shared/now: 1 → 2")
    assert '- call get_account {"id": 783} → the same as before' in lines
