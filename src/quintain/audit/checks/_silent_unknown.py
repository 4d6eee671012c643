"""Names of things that do not exist: whoever is asked for one must say so, and change nothing in its stead.

What a parameter names is known by what it was given when the call worked: a value of a column in which each row has
its own. Free words are no names, and a search that finds nothing is an answer; so a list is only accused where another
tool refuses the same name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.check import NotChecked, check
from quintain.audit.data import is_dict, is_list, parsed
from quintain.audit.finding import Evidence, Finding
from quintain.audit.lab import Lab
from quintain.audit.probe import Probe, Record
from quintain.audit.trials import Trial, changed

from ._drift_words import SAYS, text_of

HERE = f"{__name__}:"
MOST = 6
"""Findings; more of them say nothing new."""
_CREATES = re.compile(
    r"\b(creat\w*|new|add\w*|writ\w*|regist\w*|open|start|insert\w*|put|set|save\w*|store|upload\w*)\b", re.IGNORECASE
)
"""Words of tools that make what was not there."""


def is_name(trial: Trial) -> bool:
    """Whether the parameter names one thing of the world: a value of a column in which no two rows have the same."""
    value = trial.good.get(trial.name)
    if not isinstance(value, str) or not value or " " in value.strip():
        return False
    if re.search(r"(^|_)(id|key|code|number|no|sku|path|ref|uuid|slug)$", trial.name):
        return True
    return any(value in values and _is_key(trial, column) for column, values in trial.moment.columns.items())


def _is_key(trial: Trial, column: str) -> bool:
    table, _, field = column.partition("/")
    if field in ("#", "id"):
        return True
    world = trial.moment.world
    rows: Any = world.get(table) if is_dict(world) else None
    count = len(rows) if is_list(rows) or is_dict(rows) else 0
    return count >= 3 and len(trial.moment.columns[column]) == count and trial.name in (field, f"{table}_{field}")


def mentions(value: Any, text: str) -> bool:
    """Whether a value speaks of a text, in whatever case; 07 as text may be taken as 7."""
    told = json.dumps(value, ensure_ascii=False, default=str).casefold()
    if text.isdigit():
        text = text.lstrip("0") or "0"
    return json.dumps(text, ensure_ascii=False)[1:-1].strip().casefold() in told


# --- relations: the records are those of the unknown name, of the good one, and, for lists, of a tool that refuses ---


def answered(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The unknown name is answered like the good one: no error, no word of doubt, the same form."""
    got, good = records[0].at("call"), records[1].at("call")
    if got.is_error or good.is_error or (not records[2:] and empty(got.value)):
        return False
    if records[2:] and not records[2].at("call").is_error:
        return False
    words = {found.group().lower() for found in SAYS.finditer(text_of(got))}
    if words - {found.group().lower() for found in SAYS.finditer(text_of(good))} or negative(got.value, good.value):
        return False
    return bool(records[2:]) or (_keys(got.value) == _keys(good.value) and not _listing(good.value))


def negative(got: Any, good: Any) -> bool:
    """Whether a flag says that there is nothing: `{"found": false}` beside true."""
    got, good = parsed(got), parsed(good)
    if not (is_dict(got) and is_dict(good)):
        return False
    return any(value is False and good.get(key) is True for key, value in got.items())


def empty(value: Any) -> bool:
    """Nothing at all: null, an empty list or dict, or a dict of only nulls and empty lists."""
    value = parsed(value)
    if is_dict(value):
        return all(one is None or one in ([], {}) for one in value.values())
    return value is None or value == []


def _listing(value: Any) -> bool:
    value = parsed(value)
    return is_list(value) or (is_dict(value) and any(is_list(one) for one in value.values()) and len(value) <= 3)


def _keys(value: Any) -> Any:
    value = parsed(value)
    return sorted(value) if is_dict(value) else type(value).__name__


def done_elsewhere(records: Sequence[Record], evidence: Evidence) -> bool:
    """The call says that it is done, and what it changed has no word of the name that it was given."""
    got, good = records[0].at("call"), records[1].at("call")
    if got.is_error or good.is_error or (SAYS.search(text_of(got)) and not SAYS.search(text_of(good))):
        return False
    made, right = (changed(one.at("was").value, one.at("look").value) for one in records[:2])
    if made is None or not right:
        return False
    is_told = mentions(right, evidence.data["good"])
    return is_told and not mentions(made, evidence.data["unknown"]) and not negative(got.value, good.value)


def dangles(records: Sequence[Record], evidence: Evidence) -> bool:
    """The call changes the world for a name that another call refuses, without making a thing of that name."""
    got, good, refused = (record.at("call") for record in records)
    made = changed(records[0].at("was").value, records[0].at("look").value)
    if got.is_error or good.is_error or not refused.is_error or not made:
        return False
    return not makes(made, evidence.data["unknown"])


def makes(made: dict[str, list[Any]], name: str) -> bool:
    """Whether a change is a new row of this name."""
    for path, (before, after) in made.items():
        if before is None and (name in path.split("/") or (is_dict(after) and name in list(after.values())[:2])):
            return True
        if is_list(before) and is_list(after) and name in after:
            return True
    return False


# --- the check ---


@check("x.unknown_names", "silent_default", needs=("tools", "call", "tasks"), value=83)
def unknown_names(lab: Lab) -> Iterator[Finding | None]:
    """Who is asked about a thing that does not exist says so."""
    tried = [one for one in lab.trials.all if one.kind == "unknown"]
    if not tried:
        raise NotChecked("no tool takes a name")
    told: set[tuple[str, str]] = set()
    for trial in tried:
        lab.looking()
        if not trial.works or (trial.tool.name, trial.name) in told or len(told) >= MOST:
            continue
        good = next(one for one in lab.trials.of(trial.tool.name) if one.kind == "good" and one.good == trial.good)
        sibling = _refuses(lab, trial)
        found = _accused(lab, trial, good, sibling=sibling)
        if found is not None:
            told.add((trial.tool.name, trial.name))
            yield found


def _refuses(lab: Lab, trial: Trial) -> Trial | None:
    """A tool that refuses such a name in a parameter of the same name, where it takes the good one's kind."""
    if not is_name(trial) and not _informs(lab, trial):
        return None
    mine = {column for column, values in trial.moment.columns.items() if trial.good[trial.name] in values}
    for one in lab.trials.all:
        if one.kind != "unknown" or one.works or one.tool.name == trial.tool.name:
            continue
        if one.name != trial.name or one.name not in one.tool.required:
            continue
        theirs = {column for column, values in one.moment.columns.items() if one.good[one.name] in values}
        about = one.op.value[one.name] in text_of(one.seen)
        if about and (mine & theirs or not (mine or theirs)):
            return one
    return None


def _informs(lab: Lab, trial: Trial) -> bool:
    """Whether a parameter is looked up: all words that are known get their own answers, all that are not get one."""
    known: dict[str, str] = {}
    unknown: dict[str, str] = {}
    for one in lab.trials.of(trial.tool.name):
        word = one.arguments.get(trial.name)
        if not one.works or one.name not in ("", trial.name) or not isinstance(word, str):
            continue
        if one.kind == "unknown" or re.fullmatch(r"[\w.-]+", word):
            (unknown if one.kind == "unknown" else known)[word] = text_of(one.seen).replace(word, "?")
    own = len(known) > 1 and len(set(known.values())) == len(known)
    return own and len(unknown) > 1 and len(set(unknown.values())) == 1


def _accused(lab: Lab, trial: Trial, good: Trial, *, sibling: Trial | None) -> Finding | None:
    looks = trial.changes is not None
    unknown = str(trial.arguments[trial.name])
    pair = (trial.probe(looks=looks), good.probe(looks=looks))
    known = str(trial.good.get(trial.name) or "")
    data = {"unknown": unknown, "good": known}
    third = Probe((*sibling.moment.head, sibling.op.marked("call"))) if sibling is not None else None
    if good.changes:
        return _misdone(lab, trial, pair, third=third, data=data)
    title = f"{trial.tool.name} answers for a {trial.name} that does not exist as if it did"
    if trial.name not in trial.tool.required or (not looks and _makes_things(trial)):
        return None
    if is_name(trial) and answered([_record(trial), _record(good)], Evidence("", data=data)):
        return _finding(lab, trial, title, *pair, relation="answered", data=data)
    if third and not _searches(trial) and answered(lab.play_all([*pair, third]), Evidence("", data=data)):
        return _finding(lab, trial, title, *pair, third, relation="answered", data=data)
    return None


def _misdone(
    lab: Lab, trial: Trial, pair: tuple[Probe, Probe], *, third: Probe | None, data: dict[str, str]
) -> Finding | None:
    """A call that says that it is done for something that does not exist."""
    title = f"{trial.tool.name} takes a {trial.name} that does not exist, and says that it is done"
    if _always_told(lab, trial) and done_elsewhere(lab.play_all(pair), Evidence("", data=data)):
        return _finding(lab, trial, title, *pair, relation="done_elsewhere", data=data)
    if third is None or trial.name not in trial.tool.required or makes(trial.changes or {}, data["unknown"]):
        return None
    if dangles(lab.play_all([*pair, third]), Evidence("", data=data)):
        return _finding(lab, trial, title, *pair, third, relation="dangles", data=data)
    return None


def _makes_things(trial: Trial) -> bool:
    return bool(_CREATES.search(f"{trial.tool.name.replace('_', ' ')}. {trial.tool.description}"))


def _searches(trial: Trial) -> bool:
    return bool(
        re.search(r"search|find|filter|quer|match", f"{trial.tool.name} {trial.tool.description}", re.IGNORECASE)
    )


def _record(trial: Trial) -> Record:
    return Record((trial.op.marked("call"),), (trial.seen,))


def _always_told(lab: Lab, trial: Trial) -> bool:
    """Whether every change by this tool speaks of what this parameter was given, where that exists."""
    there = {str(value) for values in trial.moment.columns.values() for value in values}
    works = [
        one
        for one in lab.trials.of(trial.tool.name)
        if one.works and one.kind in ("good", "legal") and one.changes and one.name in ("", trial.name)
    ]
    values = [one.arguments.get(trial.name) for one in works]
    told = [
        mentions(one.changes, value)
        for one, value in zip(works, values, strict=True)
        if isinstance(value, str) and (value in there or one.kind == "good") and len(value.strip()) > 1
    ]
    return bool(told) and all(told)


def _finding(lab: Lab, trial: Trial, title: str, *probes: Probe, relation: str, data: Any) -> Finding | None:
    return lab.finding(
        title,
        *probes,
        relation=f"{HERE}{relation}",
        marks=("call",),
        data=data,
        minimise=0,
        expected=f"an error that names {trial.arguments[trial.name]!r}",
        observed={"answer": trial.seen.value, "changes": list((trial.changes or {}).items())[:4]},
        teaches="that a name need not be right, and that nothing is something",
    )
