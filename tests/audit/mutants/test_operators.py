"""Mutation operators: each makes exactly its change, and the result is Python."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

import quintain
from quintain.audit.mutants.loading import Mutant
from quintain.audit.mutants.operators import WATCH, CodeChange, Part, changes


def made(code: str, part: Part) -> dict[str, list[str]]:
    """Returns the function's last lines after each change, by operator."""
    source = textwrap.dedent(code).encode()
    found: dict[str, list[str]] = {}
    for one in changes(source, part):
        found.setdefault(one.operator, []).append(applied(source, one))
    return found


def applied(source: bytes, one: CodeChange) -> str:
    before = one.before.encode()
    assert source[one.at : one.at + len(before)] == before
    return (source[: one.at] + one.after.encode() + source[one.at + len(before) :]).decode()


def bodies(found: list[str]) -> set[str]:
    return {ast.unparse(ast.parse(one).body[0]).partition("\n")[2].strip() for one in found}


@pytest.mark.parametrize(
    ("code", "operator", "expected"),
    [
        ("return a == b", "negate comparison", {"return a != b"}),
        ("return a < b <= c", "negate comparison", {"return a >= b <= c", "return a < b > c"}),
        ("return a < b", "move border", {"return a <= b"}),
        ("return a and b and c", "drop conjunct", {"return b and c", "return a and c", "return a and b"}),
        ("return a or b", "drop alternative", {"return a", "return b"}),
        ("return not a", "drop not", {"return a"}),
        ("return a == b", "return True", {"return True"}),
        ("return a == b", "return False", {"return False"}),
        ("return float(a)", "return 0.0", {"return 0.0"}),
        ("return Score(a + b, 'why')", "give 1.0", {"return Score(1.0, 'why')"}),
        ("return a if b else c", "choose one side", {"return a if True else c", "return a if False else c"}),
        ("return [x for x in a if x.b]", "drop filter", {"return [x for x in a if True]"}),
        ("return f(3)", "change number", {"return f(4)"}),
        ("return f(0.5)", "change number", {"return f(1.0)"}),
        ("return max(a, b)", "max becomes min", {"return min(a, b)"}),
        ("return any(a)", "any becomes all", {"return all(a)"}),
        ("return round(a, 2)", "do not round", {"return a"}),
        ("return a * b", "* becomes /", {"return a / b"}),
        ("if a:\n        return b\n    return c", "drop condition", {"if False:\n        return b\n    return c"}),
    ],
)
def test_verifier_operators_make_their_changes(code: str, operator: str, expected: set[str]) -> None:
    assert bodies(made(f"def f(a, b, c):\n    {code}\n", "V")[operator]) == expected


@pytest.mark.parametrize(
    ("code", "operator", "expected"),
    [
        ("self.a = b", "skip write", {"pass"}),
        ("self.a[b] += c", "skip write", {"pass"}),
        ("self.a.append(b)", "skip write", {"pass"}),
        ("db.execute('UPDATE t SET x = 1')", "skip write", {"pass"}),
        ("del self.a[b]", "skip write", {"pass"}),
        ("self.a = 'won'", "write another word", {"self.a = 'won?'"}),
        ("self.a[b] = Row(c, stage='won')", "write another word", {"self.a[b] = Row(c, stage='won?')"}),
        ("self.a = True", "write another truth", {"self.a = False"}),
        ("self.a = b + 1", "change number", {"self.a = b + 2"}),
        ("x = f(a, b)", "swap arguments", {"x = f(b, a)"}),
        ("if a > b:\n        raise ValueError(a)", "drop guard", {"if False:\n        raise ValueError(a)"}),
    ],
)
def test_tool_operators_make_their_changes(code: str, operator: str, expected: set[str]) -> None:
    assert bodies(made(f"def f(self, a, b, c):\n    {code}\n", "S")[operator]) == expected


@pytest.mark.parametrize(
    "code",
    [
        "x = 1",  # a name of its own
        "db.execute('SELECT 1')",  # reads
        "return {'error': 'no such order'}",
        "raise ValueError('%s', a == b)",
        "x = f(self, a)",  # a call with its instance elsewhere breaks, and says nothing
    ],
)
def test_statements_without_writes_are_left_alone(code: str) -> None:
    assert made(f"def f(self, a, b, c):\n    {code}\n", "S") == {}


def test_a_type_says_which_constants_may_be_returned() -> None:
    found = made("def f(a) -> str:\n    return g(a)\n", "V")
    assert bodies(found["return ''"]) == {"return ''"}
    assert not {"return True", "return 1.0"} & set(found)


def test_texts_for_people_are_left_alone() -> None:
    code = 'def f(a):\n    "Is 3 > 2?"\n    raise ValueError(f"{a + 1} and {a == 3}")\n'
    assert made(code, "V") == {}


def test_a_change_says_where_it_is() -> None:
    source = "class A:\n    def f(self, ä):\n        'ünïcödé'; return ä == 'ö' and ä\n".encode()
    one = next(one for one in changes(source, "V") if one.operator == "negate comparison")
    assert (one.owner, one.lines) == ("A.f", (3, 3))
    assert "ä != 'ö'" in ast.unparse(ast.parse(applied(source, one)))
    assert one.description == "`ä == 'ö' and ä` becomes `((ä) != ('ö')) and ä`"


def test_expressions_with_side_effects_are_not_evaluated_twice() -> None:
    once = "def f(a):\n    return a.pop() == 1\n"
    assert all(one.watched is None for one in changes(once.encode(), "V"))
    twice = "def f(a):\n    return a.b() == 1\n"
    assert all(one.watched is not None for one in changes(twice.encode(), "V"))


def test_conditions_are_compared_by_truth_only() -> None:
    code = "def f(a):\n    if a.b:\n        return 1\n    return a.c == 2\n"
    watched = {one.lines[0]: one.watched for one in changes(code.encode(), "V") if one.watched is not None}
    assert watched[2] == (code.index("a.b"), "a.b", f"{WATCH}(bool(a.b), bool(False))")
    assert watched[4] is not None
    assert "bool(" not in watched[4][2]


@pytest.mark.slow
def test_all_mutants_of_our_own_environments_are_python() -> None:
    folder = Path(quintain.__file__).parent / "environments" / "sales"
    parts: list[tuple[Path, Part]] = [(folder / "verifier.py", "V"), (folder / "crm.py", "S")]
    for path, part in parts:
        source = path.read_bytes()
        found = changes(source, part)
        assert len(found) > 10
        for one in found:
            assert ast.dump(ast.parse(applied(source, one))) != ast.dump(ast.parse(source))
            if one.watched is not None:
                ast.parse(Mutant(str(path), *one.watched).text())
