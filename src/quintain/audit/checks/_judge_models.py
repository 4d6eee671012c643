"""Checks judge models by name: same family as the policy, unpinned versions and high temperature.

A judge prefers text of its own family (Panickssery and others, NeurIPS 2024), so a policy that is trained against a
judge of its own family learns the family's taste. No model is called: names say enough for a warning.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_number
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding

FAMILIES = {
    "gpt": r"(?:chat)?gpt(?=[-\d])|o[134](?=-|$)|davinci|codex",
    "claude": r"claude(?=-|$)",
    "gemini": r"gemini(?=-|$)|gemma(?=[-\d])|palm-?\d",
    "llama": r"(?:code)?llama(?=[-\d])|vicuna|alpaca|nemotron",
    "qwen": r"qwen(?=[-\d])|qw[eq](?=-|$)|qvq(?=-|$)",
    "mistral": r"(?:open-)?mi[sx]tral(?=-)|magistral|ministral|codestral|devstral|pixtral",
    "deepseek": r"deepseek(?=-)",
    "grok": r"grok(?=-)",
    "command": r"command-?(?:r|a|x|light|nightly)\b|aya(?=-)|c4ai",
    "phi": r"phi-?\d",
    "glm": r"(?:chat)?glm-?\d",
    "kimi": r"kimi(?=-)|moonshot(?=-)",
    "nova": r"nova-(?:micro|lite|pro|premier)",
    "yi": r"yi-(?:\d|large|lightning)",
    "olmo": r"olmo-?\d|tulu(?=-)",
    "minimax": r"minimax(?=-)|abab\d",
}
"""Prefixes of the model names of each family."""
_PROVIDER = re.compile(
    r"^(?:[a-z]{2,6}\.)?(?:openai|anthropic|google|meta|mistral|amazon|cohere|deepseek|qwen|xai|ai21)\."
)
_PINNED = re.compile(r"\d{4}-?\d{2}-?\d{2}|-\d{3,4}$|@|sha256|(?<![a-z\d])\d+(?:\.\d+)?b(?![a-z\d])|x\d+b")
_JUDGE = re.compile(r"judge|grader|grading|critic|verifier|evaluator|jury|reward_model")
_POLICY = re.compile(r"policy|agent|student|learner|trainee|actor|rollout")


class Use(msgspec.Struct, frozen=True):
    """A model that something uses.

    Attributes:
        role: "judge", "policy", or another name.
        where: File and line; empty for what is declared.
    """

    role: str
    model: str
    temperature: float | None = None
    where: str = ""


def families(name: str) -> frozenset[str]:
    """Returns the model families that a name refers to; empty for an unknown name.

    A distilled model belongs to both.
    """
    found: set[str] = set()
    if re.search(r"\s", name):
        return frozenset()
    for part in re.split(r"[/:]", name.lower()):
        bare = _PROVIDER.sub("", part)
        pieces = [bare, *(bare[place + 1 :] for place, text in enumerate(bare) if text in "-_")]
        found |= {family for family, start in FAMILIES.items() if any(re.match(start, piece) for piece in pieces[:6])}
    return frozenset(found)


def is_model(name: str) -> bool:
    """True if a text is a model name: a family's prefix at its start or after a slash, and no other content."""
    if not re.fullmatch(r"[\w.:/@+-]{2,80}", name):
        return False
    last = _PROVIDER.sub("", name.lower().rpartition("/")[2])
    return any(re.match(start, text) for start in FAMILIES.values() for text in (last, last.partition(":")[2]))


def is_pinned(name: str) -> bool:
    """True if a name fixes its version: by a date, a number, a hash, or the size of open weights."""
    return bool(_PINNED.search(name.lower()))


def declared(value: Any) -> list[Use]:
    """Returns the uses in a subject's attribute `models`: a name by role, or {"model": name, "temperature": number}."""
    found: list[Use] = []
    for role, item in value.items() if is_dict(value) else ():
        name = item.get("model") if is_dict(item) else item
        heat = item.get("temperature") if is_dict(item) else None
        if isinstance(name, str) and name:
            found.append(Use(_role(str(role)) or str(role), name, float(heat) if is_number(heat) else None))
    return found


def written(tree: ast.Module, path: str, names: Collection[str] = ()) -> list[Use]:
    """Models named in code, with the role that the nearest name around them speaks of; those without one left out.

    Args:
        tree: A file.
        path: Where it stands.
        names: The classes and functions in it that are looked at; all where there are none.
    """
    found: list[Use] = []
    for node in tree.body:
        own = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else ""
        if not (names and own) or own in names:
            _walk(node, "", found, path=path)
    return found


def _role(name: str) -> str:
    lowered = name.lower()
    return "judge" if _JUDGE.search(lowered) else "policy" if _POLICY.search(lowered) else ""


def _walk(node: ast.AST, role: str, found: list[Use], *, path: str) -> None:
    if isinstance(node, ast.Constant):
        if role and isinstance(node.value, str) and is_model(node.value):
            found.append(Use(role, node.value, where=f"{path}:{node.lineno}"))
        return
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
            _walk(value, _role(name) or role, found, path=path)
        return
    if isinstance(node, ast.arguments):
        named = [*node.posonlyargs, *node.args]
        pairs = [*zip(named[len(named) - len(node.defaults) :], node.defaults, strict=True)]
        pairs += [
            (parameter, value) for parameter, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value
        ]
        for pair, value in pairs:
            _walk(value, _role(pair.arg) or role, found, path=path)
        return
    own = _role(" ".join(_names(node))) or role
    for child in ast.iter_child_nodes(node):
        _walk(child, own, found, path=path)


def _names(node: ast.AST) -> Iterator[str]:
    """Yields the names that a node gives to its content."""
    if isinstance(node, ast.keyword):
        yield node.arg or ""
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Call):
        yield ast.unparse(node.func)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        yield from (ast.unparse(target) for target in (node.targets if isinstance(node, ast.Assign) else [node.target]))


@check("x.judge_is_another_family", "judge", level="static", needs=("tasks",), value=63, severity="warning")
def family(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the judge's model is pinned, of another family than the policy's, and at temperature 0."""
    uses = declared(ctx.attribute("models"))
    reported = {use.role for use in uses}
    uses += [use for use in _in_code(ctx) if use.role not in reported]
    judges = [use for use in uses if use.role == "judge"]
    policies = [use for use in uses if use.role == "policy"]
    if not judges:
        raise ctx.not_checked("no model of a judge is declared or named in the code")
    for judge in judges:
        ctx.count_comparisons()
        related = next((policy for policy in policies if families(policy.model) & families(judge.model)), None)
        if related is not None:
            yield _family_finding(ctx, judge, related)
        if not judge.where:  # Of what stands in the code, `x.judge_code` says it.
            yield from _loose(ctx, judge)


def _in_code(ctx: AuditContext) -> Iterator[Use]:
    for source in dict.fromkeys(ctx.sources):
        try:
            tree = ast.parse(Path(source.path).read_text("utf-8"))
        except (OSError, SyntaxError, ValueError):
            continue
        yield from written(tree, source.path, source.names)


def _family_finding(ctx: AuditContext, judge: Use, policy: Use) -> Finding | None:
    same = judge.model == policy.model
    shared = "/".join(sorted(families(judge.model) & families(policy.model)))
    return ctx.finding(
        "the judge's model is the policy's own" if same else f"judge and policy are of one family: {shared}",
        part="V",
        where=judge.where,
        expected=f"a judge of another family than {policy.model}",
        observed={"judge": judge.model, "policy": policy.model},
        teaches="the taste of its own family, and the blind spots that both have",
        at_most="hint" if judge.where or policy.where else "likely",
    )


def _loose(ctx: AuditContext, judge: Use) -> Iterator[Finding | None]:
    if families(judge.model) and not is_pinned(judge.model):
        yield ctx.finding(
            "the judge's model is not pinned to a version",
            part="V",
            expected="a dated version",
            observed=judge.model,
            teaches="the judge model's current preferences",
            at_most="hint",
        )
    if judge.temperature:
        yield ctx.finding(
            "the judge is asked at a temperature above 0",
            part="V",
            expected=0,
            observed=judge.temperature,
            teaches="noise: one answer gets several grades",
            at_most="hint",
        )
