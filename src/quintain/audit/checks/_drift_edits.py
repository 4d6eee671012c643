"""Checks tools that replace text: once, first or everywhere as promised, and with a missing text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.audit.facts.variations import Variation, changed
from quintain.audit.kernel.adapter import ToolSpec
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, Probe, Record, call
from quintain.audit.kernel.registry import relation

HERE = f"{__name__}:"
_OLD = re.compile(r"^(old|find|search|from|before|target|pattern|original)(_?(str|string|text|value|code|content))?$")
_NEW = re.compile(
    r"^(new|replace|replacement|to|after|replace_with|with|repl)(_?(str|string|text|value|code|content))?$"
)
_ONCE = re.compile(
    r"occurs (exactly |only )?once|exactly one|(must|has to) be unique|unique (text|string|match)"
    r"|appears? (exactly )?once|occurring once|single occurrence",
    re.IGNORECASE,
)
_FIRST = re.compile(r"first (occurrence|match|one|place|instance)", re.IGNORECASE)
_EVERY = re.compile(r"(every|all|each)( the)? (occurrence|match|instance|place)s?|everywhere|globally", re.IGNORECASE)
NEW = "zq9_new_text"


def claim_of(tool: ToolSpec) -> str:
    """Returns what the description promises: "once", "first", "every", or "" for nothing."""
    texts = [
        tool.description,
        *(str(schema.get("description") or "") for schema in tool.properties.values() if is_dict(schema)),
    ]
    text = " ".join(texts)
    found = [name for name, words in (("once", _ONCE), ("first", _FIRST), ("every", _EVERY)) if words.search(text)]
    return found[0] if len(found) == 1 else ""


@relation
def breaks_claim(records: Sequence[Record], evidence: Evidence) -> bool:
    """A text that is there several times was replaced otherwise than is promised."""
    record, data = records[0], evidence.data
    made = changed(record.at("was").value, record.at("look").value)
    if record.at("call").is_error:
        return False
    return made is not None and bool(_wrong(made, data["old"], data["claim"]))


def _wrong(made: dict[str, list[Any]], old: str, claim: str) -> bool:
    texts = [(first, second) for first, second in made.values() if isinstance(first, str) and isinstance(second, str)]
    texts = [(first, second) for first, second in texts if first.count(old) > 1 and NEW in second]
    for before, after in texts:
        if claim == "once" and after == before.replace(old, NEW, after.count(NEW)):
            return True
        if claim == "first" and after != before.replace(old, NEW, 1):
            return True
        if claim == "every" and after != before.replace(old, NEW):
            return True
    return False


@relation
def says_done(records: Sequence[Record], _evidence: Evidence) -> bool:
    """A text that is nowhere was replaced, it says, and nothing has changed."""
    record = records[0]
    made = changed(record.at("was").value, record.at("look").value)
    seen = record.at("call")
    words = str(seen.value).lower()
    denies = re.search(r"no |not |0|false|none|nothing|zero|unchanged", words) is not None
    return not seen.is_error and made == {} and not denies


def _editors(ctx: AuditContext) -> list[tuple[Variation, str, str]]:
    found: list[tuple[Variation, str, str]] = []
    for tool in ctx.about.tools:
        olds = [name for name in tool.properties if _OLD.match(name)]
        news = [name for name in tool.properties if _NEW.match(name)]
        good = [
            variation
            for variation in ctx.variations.of(tool.name)
            if variation.kind == "good" and variation.works and variation.changes
        ]
        if len(olds) == 1 and len(news) == 1 and good:
            found += [(variation, olds[0], news[0]) for variation in good]
    return found


@check("x.edits_as_told", "action_drift", needs=("tools", "call", "tasks", "state"), value=84, reads_prose=True)
def edits(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a replacement is made once, first or everywhere as promised, and that a missing text is reported."""
    found = _editors(ctx)
    if not found:
        raise NotChecked("no tool replaces a text")
    reported: set[str] = set()
    for variation, old, new in found:
        for text in _repeated(variation, variation.good[old]):
            claim = claim_of(variation.tool)
            if not claim or f"{variation.tool.name} {claim}" in reported:
                break
            op = call(variation.tool.name, {**variation.good, old: text, new: NEW})
            probe = _changed(variation, op)
            data = {"old": text, "claim": claim}
            ctx.count_comparisons()
            if breaks_claim([ctx.play_probe(probe)], Evidence("", data=data)):
                reported.add(f"{variation.tool.name} {claim}")
                yield ctx.finding(
                    f"{variation.tool.name} does not keep to {claim}: a text that is there several times",
                    probe,
                    relation=f"{HERE}breaks_claim",
                    marks=("call", "was", "look"),
                    data=data,
                    minimise=0,
                    expected={"once": "a refusal", "first": "one change", "every": "all changed"}[claim],
                    observed={"old": text},
                    teaches="edits that other editors make differently",
                )
        op = call(variation.tool.name, {**variation.good, old: "no_such_text_7f3a", new: NEW})
        probe = _changed(variation, op)
        ctx.count_comparisons()
        if says_done([ctx.play_probe(probe)], Evidence("")):
            yield ctx.finding(
                f"{variation.tool.name} says that it is done when the text is not there",
                probe,
                relation=f"{HERE}says_done",
                marks=("call", "was", "look"),
                class_="silent_default",
                minimise=0,
                expected="an error",
                observed="no change",
                teaches="that an edit was made which was not",
            )


def _changed(variation: Variation, op: Op) -> Probe:
    return Probe(
        (
            *variation.base_state.head,
            Op("changes", mark="was"),
            op.marked("call"),
            Op("changes", mark="look"),
        )
    )


def _repeated(variation: Variation, known: Any) -> Iterator[str]:
    """Texts that stand several times in what the good call edits."""
    texts = [item for item, _ in (variation.changes or {}).values() if isinstance(item, str) and str(known) in item]
    for text in texts:
        words = dict.fromkeys(re.findall(r"[A-Za-z]{3,}", text))
        often = sorted((word for word in words if text.count(word) > 1), key=len, reverse=True)
        yield from often[:2]
