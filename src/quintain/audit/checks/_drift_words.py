"""Helpers that read texts: named tools and parameters, promised orders, and words of errors."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, parsed
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.loader import Source
from quintain.audit.kernel.probe import Probe
from quintain.audit.kernel.registry import Relation

_KIND = r"(tool|function|action|operation|method|command)"
UNKNOWN = re.compile(
    rf"(unknown|no such|not a known|there is no|does not exist|not found|unsupported|unrecogni[sz]ed)\W+{_KIND}"
    rf"|{_KIND}\b[^.]{{0,60}}(not found|does not exist|unknown|not available|not implemented)"
    r"|NotImplementedError|not implemented",
    re.IGNORECASE,
)
SAYS = re.compile(
    r"not? found|no such|unknown|does(n't| not) exist|do(n't| not) (know|have)|there (is|are) no"
    r"|not? (match|result|entr)"
    r"|invalid|missing|unavailable|cannot|can't|unable|nothing|never|must|fail|error|\b(is|are|was|were) not\b",
    re.IGNORECASE,
)
"""Words of doubt, in whatever answer."""
MISSING = re.compile(r"missing|required|must (be given|provide|supply)|is needed|KeyError", re.IGNORECASE)
INVALID = re.compile(
    r"invalid|must be (one of|in)|not (a valid|one of|allowed|supported|recogni[sz]ed)|unknown|unsupported",
    re.IGNORECASE,
)


def show(ctx: AuditContext, title: str, relation: Relation, *probes: Probe, **fields: Any) -> Finding | None:
    """Proves that a relation holds for probes, which are not made smaller; by default it reads the op "call"."""
    where = f"{relation.__module__}:{relation.__name__}"
    common: dict[str, Any] = {"marks": ("call",), "minimise": 0, "relation": where}
    return ctx.finding(title, *probes, **common | fields)


def rows_of(value: Any) -> list[Any] | None:
    """The rows of an answer: a list, or the only list in a dict; None where there is none."""
    value = parsed(value)
    if is_dict(value):
        lists = [item for item in value.values() if is_list(item)]
        value = lists[0] if len(lists) == 1 else None
    return value if is_list(value) else None


def form_of(value: Any, depth: int = 0) -> Any:
    """Keys and types of an answer, without its values; lists by their first entry."""
    value = parsed(value)
    if is_dict(value) and depth < 4:
        return {name: form_of(item, depth + 1) for name, item in sorted(value.items())}
    if is_list(value):
        return [form_of(value[0], depth + 1)] if value else []
    if isinstance(value, bool) or value is None:
        return type(value).__name__
    return "number" if isinstance(value, int | float) else type(value).__name__


_DESCENDING = re.compile(
    r"(most recent|newest|latest|highest|largest|biggest|most expensive)( \w+)? first|descending|newest to oldest",
    re.IGNORECASE,
)
_ASCENDING = re.compile(
    r"(oldest|earliest|lowest|smallest|cheapest)( \w+)? first|ascending|oldest to newest", re.IGNORECASE
)


def promised_order(description: str) -> str | None:
    """The order that a description promises, "descending" or "ascending"; None for none."""
    down, up = bool(_DESCENDING.search(description)), bool(_ASCENDING.search(description))
    return None if down == up else "descending" if down else "ascending"


_WORD = r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+"
_CALLED = re.compile(
    rf"\b({_WORD})\(|\b(?:call|use|using|with|via|tools?|function|run)\s+(?:the\s+)?[`'\"]?({_WORD})\b", re.IGNORECASE
)
_QUOTED = re.compile(rf"`({_WORD})`")


_PLACEHOLDER = frozenset(
    {"tool", "function", "method", "action", "your", "my", "some", "any", "name", "call", "here", "example", "snake"}
    | {"camel", "case", "arg", "args", "argument", "arguments", "param", "params", "parameter", "value", "json"}
)


def tools_called(text: str) -> set[str]:
    """Returns the tool names that a text directs its reader to call; "tool_name" and "snake_case" are none."""
    names = {first or second for first, second in _CALLED.findall(text)}
    return {name for name in names if name.islower() and not set(name.split("_")) <= _PLACEHOLDER}


_SNAKE = re.compile(rf"\b{_WORD}\b")


def tools_near(text: str, like: Iterable[str]) -> set[str]:
    """Words of a text that are nearly a tool's name: another verb with the same thing, or a letter off."""
    known = set(like)
    things = {name.partition("_")[2] for name in known}
    others = {word for word in _SNAKE.findall(text) if word not in known}
    close = {word for word in others if difflib.get_close_matches(word, known, n=1, cutoff=0.8)}
    return close | {word for word in others if word.partition("_")[2] in things}


def tools_quoted(text: str, like: Iterable[str]) -> set[str]:
    """Words in backticks that begin with the same verb as a tool that there is."""
    heads = {name.split("_")[0] for name in like}
    return {name for name in _QUOTED.findall(text) if name.split("_")[0] in heads and name.islower()}


def callables_in(sources: Iterable[Source], advertised: Iterable[str]) -> set[str]:
    """Texts in a subject's source that stand where names of advertised tools are keys or are compared."""
    known = set(advertised)
    trees = [ast.parse(Path(source.path).read_text(encoding="utf-8")) for source in sources if source.part == "S"]
    groups = [_choices(node) for tree in trees for node in ast.walk(tree)]
    found = {name for names, is_dispatch in groups if is_dispatch or names & known for name in names}
    return {name for name in found - known if re.fullmatch(r"[a-z][a-z0-9_.-]{2,63}", name)}


def _choices(node: ast.AST) -> tuple[set[str], bool]:
    """Returns texts that a node chooses between; True if they name tools by the name or a parameter of a function."""
    if isinstance(node, ast.Dict):
        return _texts(node.keys), False
    if isinstance(node, ast.Match):
        return _texts(case.pattern.value for case in node.cases if isinstance(case.pattern, ast.MatchValue)), False
    if not isinstance(node, ast.FunctionDef):
        return set(), False
    taken = {item.arg for item in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    tests = [child for child in ast.walk(node) if isinstance(child, ast.Compare) and isinstance(child.left, ast.Name)]
    sides = [side for test in tests for side in test.comparators]
    every = [each for side in sides for each in (side.elts if isinstance(side, _ROWS) else [side])]
    return _texts(every), bool(re.search(r"call|tool|dispatch|invoke|execute|step", node.name)) or bool(taken & _NAMES)


_ROWS = ast.Tuple | ast.List | ast.Set


def _texts(nodes: Iterable[ast.AST | None]) -> set[str]:
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


_NAMES = {"tool", "tool_name", "action", "action_name", "function", "function_name", "method", "command"}
