"""Checks names of things that do not exist: a tool must report them, and change nothing in their place.

A parameter names the things whose names it was given when the call worked: values of a column in which each row has its
own. Free words are not names, and a search that finds nothing is an answer; so a list is only accused where another
tool refuses the same name. An enum names all that there is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, parsed
from quintain.audit.facts.variations import NOWHERE, Variation, changed, missing_number
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.probe import Op, OpResult, Probe, Record, call, reset, text_of
from quintain.audit.kernel.registry import Relation, relation

from ._drift_told import called
from ._drift_words import SAYS, rows_of, show

MAX_FINDINGS = 6
"""Findings; more of them say nothing new."""
_CREATES = re.compile(
    r"\b(creat\w*|new|add\w*|writ\w*|regist\w*|open|start|insert\w*|put|set|save\w*|store|upload\w*)\b", re.IGNORECASE
)
"""Words of tools that make what was not there."""
_SEARCHES = re.compile(r"search|find|filter|quer|match", re.IGNORECASE)
_NAMED = re.compile(r"(^|_)(id|key|code|number|no|sku|path|ref|uuid|slug)$")


def is_name(variation: Variation) -> bool:
    """True if the parameter names one thing of the world: a value of a column without duplicates."""
    value = variation.good.get(variation.name)
    if isinstance(value, int):
        return bool(missing_number(value, variation.name, variation.base_state))
    if not isinstance(value, str) or not value or " " in value.strip():
        return False
    columns = variation.base_state.columns.items()
    keys = (column for column, values in columns if value in values and _is_key(variation, column))
    return bool(_NAMED.search(variation.name)) or next(keys, None) is not None


def _is_key(variation: Variation, column: str) -> bool:
    table, _, field = column.partition("/")
    world = variation.base_state.world
    rows: Any = world.get(table) if is_dict(world) else None
    count = len(rows) if is_list(rows) or is_dict(rows) else 0
    is_distinct = count >= 3 and len(variation.base_state.columns[column]) == count
    return field in ("#", "id") or (is_distinct and variation.name in (field, f"{table}_{field}"))


def _counts(value: Any) -> bool:
    """True if nothing but zero is said about a thing: so many there are of what does not exist."""
    value = parsed(value)
    return not is_dict(value) or not any(is_dict(one) or (one and not isinstance(one, str)) for one in value.values())


def mentions(value: Any, text: str) -> bool:
    """True if a value mentions a text, in any case; 07 as text may be taken as 7."""
    if text.isdigit():
        text = text.lstrip("0") or "0"
    said = json.dumps(value, ensure_ascii=False, default=str).casefold()
    return json.dumps(text, ensure_ascii=False)[1:-1].strip().casefold() in said


# --- relations: the records are those of the unknown name, of the good one, and, for lists, of a tool that refuses ---


@relation
def answered(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The unknown name is answered like the good one: no error, no word of doubt, the same form."""
    got, good, *refused = (record.at("call") for record in records)
    if got.is_error or good.is_error or (_doubts(got) - _doubts(good)) or negative(got.value, good.value):
        return False
    if refused:
        return refused[0].is_error
    said = parsed(good.value)
    is_listing = is_list(said) or (is_dict(said) and any(map(is_list, said.values())) and len(said) <= 3)
    return not empty(got.value) and _keys(got.value) == _keys(said) and not is_listing


@relation
def left_blank(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The unknown name is answered with the good one's fields, three texts at least, and all are empty."""
    got, good = (parsed(record.at("call").value) for record in records)
    is_form = is_dict(got) and is_dict(good) and got.keys() == good.keys()
    return is_form and not any(got.values()) and any(good.values()) and list(got.values()).count("") > 2


def _doubts(seen: OpResult) -> set[str]:
    return {found.group().lower() for found in SAYS.finditer(text_of(seen))}


def negative(got: Any, good: Any) -> bool:
    """True if a flag reports absence: `{"found": false}` against true."""
    got, good = parsed(got), parsed(good)
    return is_dict(got) and is_dict(good) and any(got[key] is False and good.get(key) is True for key in got)


def empty(value: Any) -> bool:
    """Nothing at all: null, an empty list or dict, or a dict of only nulls and empty lists."""
    value = parsed(value)
    return all(item in (None, [], {}) for item in value.values()) if is_dict(value) else value in (None, [])


def _keys(value: Any) -> Any:
    value = parsed(value)
    return sorted(value) if is_dict(value) else type(value).__name__


@relation
def falls_back(records: Sequence[Record], evidence: Evidence) -> bool:
    """Each row for a known name shows it; those for unknown ones are the same rows and show none of the names.

    The first two records are of the unknown names, the others of the known ones, whose rows differ.
    """
    seen = [(str(called(record).value[evidence.data]), record.at("call")) for record in records]
    rows = [parsed(one.value) for _, one in seen]
    if any(one.is_error or _doubts(one) for _, one in seen) or not all(is_list(many) and many for many in rows):
        return False
    forms = [{str(_keys(row)) for row in many} for many in rows]
    names = [[mentions(row, name) for row in many] for (name, _), many in zip(seen, rows, strict=True)]
    is_one = rows[0] == rows[1] and rows[2] != rows[3] and all(form == forms[0] for form in forms)
    return is_one and len(forms[0]) == 1 and not any(names[0] + names[1]) and all(names[2] + names[3])


@relation
def stands_in(records: Sequence[Record], evidence: Evidence) -> bool:
    """Two words that mean nothing do what a third value does, and each of the others does something else.

    A call that gives rows gives all of them, of which the other values choose some. A value chooses rows that it names,
    or rows of the whole list; two values that leave rows out would show all of them, one or the other.
    """
    words = [str(called(record).value.get(evidence.data) or "?") for record in records]
    done = [f"{text_of(record.at('call'))} {_changes(record)}" for record in records]
    done = [one.replace(word, "?") for one, word in zip(done, words, strict=True)]
    is_one = len({*done[:3]}) == 1 and done[0] not in done[3:] and not any(one.at("call").is_error for one in records)
    whole, *parts = (rows_of(record.at("call").value) for record in records[2:])
    if whole is None:
        return is_one and bool(_changes(records[0]))
    rows = [(word, row) for word, part in zip(words[3:], parts, strict=True) for row in part or ()]
    are_chosen = all(row in whole for _, row in rows) or all(mentions(row, word) for word, row in rows)
    shown = [row for _, row in rows]
    return is_one and len(parts) > 1 and all(parts) and are_chosen and any(row not in shown for row in whole)


@relation
def done_elsewhere(records: Sequence[Record], evidence: Evidence) -> bool:
    """True if the call reports success and its changes do not mention the given name."""
    got, good = records[0].at("call"), records[1].at("call")
    made, right = _changes(records[0]), _changes(records[1])
    is_told = got.is_error or (SAYS.search(text_of(got)) and not SAYS.search(text_of(good)))
    if is_told or good.is_error or made is None or not right or negative(got.value, good.value):
        return False
    return mentions(right, evidence.data["good"]) and not mentions(made, evidence.data["unknown"])


@relation
def dangles(records: Sequence[Record], evidence: Evidence) -> bool:
    """The call changes the world for a name that another call refuses, without making a thing of that name."""
    errors = [record.at("call").is_error for record in records]
    made = _changes(records[0])
    return errors == [False, False, True] and bool(made) and not makes(made or {}, evidence.data["unknown"])


@relation
def makes_up(records: Sequence[Record], evidence: Evidence) -> bool:
    """Each value of an enum has an answer of its own; values outside it share one with the same fields, two at least.

    A single field may be a count, and that of what does not exist is 0.
    """
    name, offered = evidence.data
    said: dict[bool, list[str]] = {True: [], False: []}
    for record in records:
        value = str(called(record).value[name])
        said[value in offered].append(text_of(record.at("call")).replace(value, "?"))
    seen = [record.at("call") for record in records]
    is_one = len(said[False]) > 1 and len({*said[False]}) == 1 and said[False][0] not in said[True]
    is_own = len(said[True]) > 1 and len({*said[True]}) == len(said[True])
    forms = [_keys(one.value) for one in seen]
    is_alike = all(form == forms[0] for form in forms) and is_list(forms[0]) and len(forms[0]) > 1
    return is_one and is_own and is_alike and not any(one.is_error or _doubts(one) for one in seen)


def _changes(record: Record) -> dict[str, list[Any]] | None:
    return changed(record.at("was").value, record.at("look").value)


def makes(made: dict[str, list[Any]], name: str) -> bool:
    """True if a change is a new row of this name."""
    for path, (before, after) in made.items():
        is_named = name in path.split("/") or path.endswith(f"/{name}")  # The name may be a path itself.
        if before is None and (is_named or (is_dict(after) and name in list(after.values())[:2])):
            return True
        if is_list(before) and is_list(after) and name in after:
            return True
    return False


# --- the check ---


@check("x.unknown_names", "silent_default", needs=("tools", "call", "tasks"), value=31)
def unknown_names(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a call about a thing that does not exist reports so."""
    tried = [one for one in ctx.variations.all if one.kind == "unknown" or one.arguments.get(one.name) in NOWHERE]
    if not tried:
        raise NotChecked("no tool takes a name")
    reported: set[tuple[str, str]] = set()
    for variation in tried:
        ctx.count_comparisons()
        key = (variation.tool.name, variation.name)
        if variation.works and key not in reported and len(reported) < MAX_FINDINGS:
            found = (_accused if variation.kind == "unknown" else _outside)(ctx, variation)
            reported |= {key} if found is not None else set()
            yield found


def _refusing(ctx: AuditContext, variation: Variation) -> list[Probe]:
    """Returns a call of another tool that refuses such a name in the same parameter."""
    if not is_name(variation) and not _informs(ctx, variation):
        return []
    own = _columns(variation)
    for other in ctx.variations.all:
        is_like = other.kind == "unknown" and not other.works and other.name == variation.name
        if is_like and other.tool.name != variation.tool.name and other.name in other.tool.required:
            theirs = _columns(other)
            if str(other.op.value[other.name]) in text_of(other.seen) and (own & theirs or not (own or theirs)):
                return [Probe((*other.base_state.head, other.op.marked("call")))]
    return []


def _columns(variation: Variation) -> set[str]:
    columns = variation.base_state.columns.items()
    return {column for column, values in columns if variation.good.get(variation.name) in values}


def _informs(ctx: AuditContext, variation: Variation) -> bool:
    """True if a parameter is looked up: known words get answers of their own, unknown words share one."""
    words: dict[bool, dict[str, str]] = {True: {}, False: {}}
    for other in ctx.variations.of(variation.tool.name):
        word, is_unknown = other.arguments.get(variation.name), other.kind == "unknown"
        is_about = other.works and other.name in ("", variation.name)
        if is_about and isinstance(word, str) and (is_unknown or re.fullmatch(r"[\w.-]+", word)):
            words[is_unknown][word] = text_of(other.seen).replace(word, "?")
    known, unknown = words[False], words[True]
    own = len(known) > 1 and len(set(known.values())) == len(known)
    return own and len(unknown) > 1 and len(set(unknown.values())) == 1


def _accused(ctx: AuditContext, variation: Variation) -> Finding | None:
    tool, name = variation.tool, variation.name
    others = [one for one in ctx.variations.of(tool.name) if one.kind == "good" and one.good == variation.good]
    good, looks = others[0], variation.changes is not None
    pair = (variation.probe(looks=looks), good.probe(looks=looks))
    names = {"unknown": str(variation.arguments[name]), "good": str(variation.good.get(name) or "")}
    refusing = _refusing(ctx, variation)
    made = variation.changes or {}
    tries: list[tuple[Relation, Sequence[Probe]]] = []
    said = f"{tool.name} answers for a {name} that does not exist as if it did"
    if good.changes:
        said = f"{tool.name} takes a {name} that does not exist, and says that it is done"
        tries += [(done_elsewhere, pair)] if _always_told(ctx, variation) else []
        tries += [(left_blank, pair)] if name in tool.required and is_name(variation) else []
        if refusing and name in tool.required and not makes(made, names["unknown"]):
            tries += [(dangles, (*pair, *refusing))]
    elif name in tool.required and (looks or not _CREATES.search(f"{tool.name.replace('_', ' ')}. {tool.description}")):
        seen = [Record((one.op.marked("call"),), (one.seen,)) for one in (variation, good)]
        is_key = any(column.endswith("/##") for column in _columns(variation))  # Or an entry of a list of texts.
        is_entry = is_key and _informs(ctx, variation) and not _counts(variation.seen.value)
        is_named = is_name(variation) or is_entry
        tries += [(answered, pair)] if is_named and answered(seen, Evidence("")) else []
        if refusing and not _SEARCHES.search(f"{tool.name} {tool.description}"):
            tries += [(answered, (*pair, *refusing))]
    tries += [(stands_in, probes) for probes in _stand_ins(ctx, variation)]
    if not good.changes and len(quartet := _quartet(ctx, variation)) == 4:
        tries += [(falls_back, quartet)]
    for law, probes in tries:
        data = name if law in (falls_back, stands_in) else names
        if law(ctx.play_all(probes), Evidence("", data=data)):
            return show(
                ctx, said, law, *probes, data=data, expected=f"an error that names {variation.arguments[name]!r}",
                observed={"answer": variation.seen.value, "changes": list(made.items())[:4]},
                teaches="that a wrong name still gives data",
            )  # fmt: skip
    return None


_FALLS = re.compile(
    r"default|otherwise|\belse\b|unless|ignor|fall|unknown|invalid|unreadable|malformed|any other|latest|current|lenien"
    "|similar|closest|nearest|best|fuzzy|relat|recommend|relevan|rank|suggest|semantic|exclu|except|without|omit|skip"
    "|hide|besides", re.IGNORECASE
)  # fmt: skip
_FREE = re.compile(rf"{_FALLS.pattern}|search|find|filter|quer|match", re.IGNORECASE)
"""Words of a tool that may show other things than those that are asked for."""


def _quartet(ctx: AuditContext, variation: Variation) -> list[Probe]:
    """Returns two calls with names that do not exist, and two with names that do; fewer if they may show anything."""
    tool, name = variation.tool, variation.name
    if name not in tool.required or _FREE.search(f"{tool.name} {tool.description} {tool.properties[name]}"):
        return []
    every = [one for one in ctx.variations.of(tool.name) if one.works and one.name in ("", name)]
    other = [one for one in every if one.kind == "unknown" and one.good == variation.good and one.op != variation.op]
    good = {str(one.arguments[name]): one for one in every if one.kind == "good" and len(str(one.good[name])) > 3}
    return [one.probe() for one in (variation, *other[:1], *list(good.values())[:2])]


def _stand_ins(ctx: AuditContext, variation: Variation) -> Iterator[list[Probe]]:
    """Yields calls with two words that mean nothing, one with what they may stand for, and some with other values.

    The words may stand for the value of a solution, where the description names it and another one. In a list they may
    stand for no argument, else for the time 00:00 where no text of the world has the good one.
    """
    tool, name, good = variation.tool, variation.name, variation.good.get(variation.name)
    text = f"{name} {tool.description} {tool.properties[name].get('description')}"
    own = [one for one in ctx.variations.of(tool.name) if one.good == variation.good and one.name in ("", name)]
    strange = [{name: one.arguments[name]} for one in own if one.kind == "unknown" and one.works][-2:]
    tried = [one for one in own if one.kind != "unknown" and one.works and rows_of(one.seen.value) != []]
    tried.sort(key=lambda one: len(rows_of(one.seen.value) or ()))  # A short list is whole, and not cut after a page.
    values = [one.arguments.get(name) for one in tried]
    usual = [{name: value} for value in values if value]
    if not isinstance(good, str) or len(strange) < 2 or _FALLS.search(text):
        return
    plans = [(variation.base_state.head, variation.good, {name: re.sub(r"\d", "0", good)}, usual)]
    if not own[0].changes or rows_of(own[0].seen.value) is not None:
        rest = {key: value for key, value in variation.good.items() if key != name}
        plans = [(variation.base_state.head, rest, dict[str, Any](), usual)] if name not in tool.required else []
    elif not re.fullmatch(r"\d+(:\d+)+([.,]\d+)?", good) or good in variation.base_state.texts:
        known = {str(one.op.value.get(name)): one for one in ctx.discovery.of(tool.name)}
        known = {word: known[word] for word in re.findall(r"\w[\w.-]*\w", text) if word in known}
        usual = [{name: word} for word in known]
        plans = [((reset(one.task), *one.before), one.op.value, {name: word}, usual) for word, one in known.items()]
    for start, given, twin, others in plans:
        words = [*strange, twin, *[one for one in others if one != twin][:2]]
        ops = [call(tool.name, given | word, mark="call") for word in words]
        if len(ops) > 3:
            yield [Probe((*start, Op("changes", mark="was"), op, Op("changes", mark="look"))) for op in ops]


def _outside(ctx: AuditContext, variation: Variation) -> Finding | None:
    """Returns a finding for a value outside an enum that is answered as a value of it."""
    tool, name = variation.tool, variation.name
    alike = [one for one in ctx.variations.of(tool.name) if one.good == variation.good and one.name in ("", name)]
    probes = [one.probe() for one in alike if one.works and name in one.arguments and not one.changes]
    data, text = [name, tool.properties[name]["enum"]], f"{tool.name.replace('_', ' ')}. {tool.description}"
    if _CREATES.search(text) or _SEARCHES.search(text) or not makes_up(ctx.play_all(probes), Evidence("", data=data)):
        return None
    return show(
        ctx, f"{tool.name} answers for a {name} that its schema does not have as if it did", makes_up, *probes,
        data=data, expected=f"an error that names {variation.arguments[name]!r}", observed=variation.seen.value,
        teaches="that a wrong name still gives data",
    )  # fmt: skip


def _always_told(ctx: AuditContext, variation: Variation) -> bool:
    """True if every change by this tool mentions the argument, where the named thing exists."""
    there, name = variation.base_state.texts, variation.name
    tried = [
        one for one in ctx.variations.of(variation.tool.name) if one.works and one.name in ("", name) and one.changes
    ]
    known = [one for one in tried if one.kind == "good" or (one.kind == "legal" and one.arguments.get(name) in there)]
    pairs = [(one.changes, one.arguments.get(name)) for one in known]
    stated = [mentions(made, value) for made, value in pairs if isinstance(value, str) and len(value.strip()) > 1]
    return bool(stated) and all(stated)
