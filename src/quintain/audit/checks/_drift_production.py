"""The environment beside production: what both declare, and what both answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.check import NotChecked, check
from quintain.audit.context import AuditContext
from quintain.audit.data import is_dict, is_list, is_number, parsed
from quintain.audit.finding import Evidence, Finding
from quintain.audit.probe import Op, OpResult, Probe, Record, call, reset, same

from ._drift_units import units_in
from ._drift_words import form_of, promised_order


def shape_differs(records: Sequence[Record], evidence: Evidence) -> bool:
    """The answer has other keys or types than production's, or is an error where production's is none."""
    seen = records[0].at("call")
    answer = evidence.data
    return OpResult(answer).is_error != seen.is_error or form_of(seen.value) != form_of(answer)


def declared_otherwise(records: Sequence[Record], evidence: Evidence) -> bool:
    """The declared tools, and those of production, still differ in the place that `data` names."""
    ours = {tool["name"]: tool for tool in records[0].at("tools").value or ()}
    real: Any = records[0].at("production").value
    theirs = {tool["name"]: tool for tool in real["tools"]}
    return evidence.data in dict(_differences(ours, theirs))


@check("x.production_declares_the_same", "action_drift", needs=("tools", "production"), value=84)
def production(ctx: AuditContext) -> Iterator[Finding | None]:
    """Names, parameters, types, enums, defaults and required parameters are those of production."""
    probe = Probe((Op("tools", mark="tools"), Op("production", mark="production")))
    record = ctx.play_probe(probe)
    real = record.at("production").value
    if not is_dict(real) or not real.get("tools"):
        raise NotChecked("production() gives no tools")
    ours = {tool["name"]: tool for tool in record.at("tools").value}
    theirs = {tool["name"]: tool for tool in real["tools"]}
    ctx.count_comparisons(len({*ours, *theirs}))
    for what, (expected, observed) in _differences(ours, theirs):
        yield ctx.finding(
            f"{what} is not as in production",
            probe,
            relation=f"{__name__}:declared_otherwise",
            marks=("tools", "production"),
            data=what,
            part="H",
            expected=expected,
            observed=observed,
            teaches="an action that production does not have, or takes otherwise",
        )


def _differences(ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name in sorted({*ours, *theirs}):
        if name not in ours or name not in theirs:
            there, missing = ("there is", "there is none") if name in theirs else ("there is none", "there is")
            yield f"tool {name}", (there, missing)
            continue
        mine, real = (_schema(one) for one in (ours[name], theirs[name]))
        for parameter in sorted({*mine["properties"], *real["properties"]}):
            one, other = mine["properties"].get(parameter), real["properties"].get(parameter)
            for field in ("type", "enum", "default", "minimum", "maximum", "format", "items"):
                left = one.get(field) if is_dict(one) else None
                right = other.get(field) if is_dict(other) else None
                if one is None or other is None:
                    yield f"parameter {parameter} of {name}", (other, one)
                    break
                if left != right and not (field == "enum" and _same_set(left, right)):
                    yield f"{field} of {parameter} of {name}", (right, left)
                if _at_odds(one, other):
                    yield f"unit of {parameter} of {name}", (_words(other), _words(one))
        orders = [promised_order(str(tool.get("description") or "")) for tool in (theirs[name], ours[name])]
        if None not in orders and orders[0] != orders[1]:
            yield f"order of {name}", (orders[0], orders[1])
        if set(mine["required"]) != set(real["required"]):
            yield f"required parameters of {name}", (sorted(real["required"]), sorted(mine["required"]))


def _at_odds(one: Any, other: Any) -> bool:
    """Whether both descriptions speak of a unit of one kind, and have none of it in common."""
    mine, theirs = (units_in(_words(schema)) for schema in (one, other))
    kinds = {kind for kind, _ in mine} & {kind for kind, _ in theirs}
    return any(not {one for one in mine if one[0] == kind} & theirs for kind in kinds)


def _words(schema: Any) -> str:
    """A parameter's description."""
    return str(schema.get("description") or "") if is_dict(schema) else ""


def _same_set(one: Any, other: Any) -> bool:
    return is_list(one) and is_list(other) and sorted(map(str, one)) == sorted(map(str, other))


def _schema(tool: dict[str, Any]) -> dict[str, Any]:
    schema: Any = tool.get("parameters") or tool.get("inputSchema") or {}
    if schema and "properties" not in schema and "type" not in schema:
        schema = {"properties": schema}
    return {"properties": schema.get("properties") or {}, "required": schema.get("required") or []}


@check("x.production_answers_the_same", "action_drift", needs=("call", "production", "tasks"), value=74)
def behaviour(ctx: AuditContext) -> Iterator[Finding | None]:
    """Calls that production answered are answered here with the same keys and types, errors by errors."""
    real = ctx.play(Op("production", mark="production")).at("production").value
    pairs = real.get("calls") if is_dict(real) else None
    if not pairs:
        raise NotChecked("production() gives no calls with their answers")
    for name, arguments, answer in pairs[:40]:
        ctx.count_comparisons()
        probe = Probe((reset(ctx.tasks[0]), call(name, arguments, mark="call")))
        evidence = Evidence("", data=answer)
        if shape_differs([ctx.play_probe(probe)], evidence):
            yield ctx.finding(
                f"{name} answers in another form than production",
                probe,
                relation=f"{__name__}:shape_differs",
                marks=("call",),
                data=answer,
                expected=answer,
                observed=ctx.play_probe(probe).at("call").value,
                teaches="to read answers that production does not give",
            )


# --- what does not depend on the world ---


def turned(records: Sequence[Record], evidence: Evidence) -> bool:
    """In every task a number of the answer is production's turned round, with another sign, or in another unit."""
    where, answer = evidence.data
    theirs = dict(_numbers(answer)).get(where)
    ours = [dict(_numbers(record.at("call").value)).get(where) for record in records if record.at("call").fine]
    if theirs is None or len(ours) != len(records) or len({*ours}) != 1 or ours[0] is None:
        return False
    return not any(_holds(record, ours[0]) for record in records) and _is_turned(ours[0], theirs)


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    value = parsed(value)
    if is_dict(value):
        for name, one in value.items():
            yield from _numbers(one, f"{path}/{name}")
    elif is_list(value):
        for place, one in enumerate(value[:20]):
            yield from _numbers(one, f"{path}/{place}")
    elif is_number(value):
        yield path, float(value)


def _is_turned(ours: float, theirs: float) -> bool:
    """By a law that no chance keeps: the number has three digits at least that count."""
    if not ours or not theirs or len(f"{abs(theirs):.9g}".replace(".", "").strip("0")) < 3:
        return False
    ratio = ours / theirs
    is_inverse = abs(ours * theirs - 1) < 5e-4 and abs(ratio - 1) > 1e-3
    return is_inverse or any(abs(ratio / one - 1) < 1e-6 for one in (-1, 0.001, 0.01, 60, 100, 1 / 60, 1000, 1024))


def _holds(record: Record, number: float) -> bool:
    """Whether the world has that number, so that it is a datum."""
    seen = record.at("world")
    return seen.fine and any(one == number for _, one in _numbers(seen.value))


@check("x.production_counts_the_same", "action_drift", needs=("call", "production", "tasks"), value=73)
def counted(ctx: AuditContext) -> Iterator[Finding | None]:
    """What does not depend on the world is neither turned round nor in another unit than in production."""
    real = ctx.play(Op("production", mark="production")).at("production").value
    pairs = real.get("calls") if is_dict(real) else None
    if not pairs:
        raise NotChecked("production() gives no calls with their answers")
    told: set[str] = set()
    for finding in _reckoned(ctx, pairs[:40]):
        told |= {finding.title.partition(" ")[0]}
        yield finding
    for name, arguments, answer in pairs[:40]:
        places = [where for where, _ in _numbers(answer)][:20]
        probes = [
            Probe((reset(task, seed=seed), Op("state", mark="world"), call(name, arguments, mark="call")))
            for task in ctx.sample_tasks(2)
            for seed in (0, 1)
        ]
        records = ctx.play_all(probes) if places and name not in told else []
        ctx.count_comparisons()
        for where in places if records else ():
            if name in told or not turned(records, Evidence("", data=[where, answer])):
                continue
            told.add(name)
            yield ctx.finding(
                f"{name} gives {where.strip('/')} turned round, or in another unit than production",
                *probes,
                relation=f"{__name__}:turned",
                marks=("call",),
                data=[where, answer],
                minimise=0,
                expected=answer,
                observed=records[0].at("call").value,
                teaches="to reckon with numbers that production does not give",
            )


# --- what is reckoned from numbers alone ---

ALIKE = 2
"""Calls that must be answered as in production before another answer to a third is held against the environment."""


def reckoned_otherwise(records: Sequence[Record], evidence: Evidence) -> bool:
    """Calls that differ in numbers alone: two are answered as in production, in each task, and one never is.

    What is answered so does not hang on the world; the last answer is the same everywhere and differs in a number.
    """
    answers = evidence.data
    size = len(records) // len(answers)
    groups = [[record.at("call") for record in records[start : start + size]] for start in range(0, len(records), size)]
    if any(seen.is_error for group in groups for seen in group):
        return False
    alike = [all(parsed(seen.value) == answer for seen in group) for group, answer in zip(groups, answers, strict=True)]
    last = groups[-1]
    is_steady = all(same(seen, last[0]) for seen in last) and form_of(last[0].value) == form_of(answers[-1])
    return is_steady and alike == [True] * (len(answers) - 1) + [False] and _numbers_differ(last[0].value, answers[-1])


def _numbers_differ(one: Any, other: Any) -> bool:
    return dict(_numbers(one)) != dict(_numbers(other))


def _reckoned(ctx: AuditContext, pairs: Sequence[Any]) -> Iterator[Finding]:
    groups: dict[str, list[tuple[str, dict[str, Any], Any]]] = {}
    for name, arguments, answer in pairs:
        words = {key: one for key, one in arguments.items() if not is_number(one)}
        is_plain = not OpResult(answer).is_error and any(True for _ in _numbers(answer))
        if is_plain and len(words) < len(arguments):
            groups.setdefault(f"{name} {sorted(arguments)} {sorted(words.items())}", []).append(
                (name, arguments, answer)
            )
    for calls in groups.values():
        if len({str(answer) for _, _, answer in calls}) <= ALIKE:
            continue
        probes = [[_asked(task, seed, one) for task in ctx.sample_tasks(2) for seed in (0, 1)] for one in calls]
        records = ctx.play_all([each[0] for each in probes])
        ctx.count_comparisons()
        right = [place for place, record in enumerate(records) if parsed(record.at("call").value) == calls[place][2]]
        wrong = [place for place in range(len(calls)) if place not in right]
        unlike = list({str(calls[place][2]): place for place in right}.values())[:ALIKE]
        if len(unlike) < ALIKE or not wrong:
            continue
        chosen = [*unlike, wrong[0]]
        data = [calls[place][2] for place in chosen]
        played = [probe for place in chosen for probe in probes[place]]
        if not reckoned_otherwise(ctx.play_all(played), Evidence("", data=data)):
            continue
        name, arguments, answer = calls[wrong[0]]
        finding = ctx.finding(
            f"{name} reckons otherwise than production",
            *played,
            relation=f"{__name__}:reckoned_otherwise",
            marks=("call",),
            data=data,
            minimise=0,
            expected={"arguments": arguments, "answer": answer},
            observed=records[wrong[0]].at("call").value,
            teaches="to reckon with numbers that production does not give",
        )
        if finding is not None:
            yield finding


def _asked(task: str, seed: int, one: tuple[str, dict[str, Any], Any]) -> Probe:
    return Probe((reset(task, seed=seed), call(one[0], one[1], mark="call")))
