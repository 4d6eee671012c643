"""Checks requests that are silently ignored or made up for: tasks, parameters, limits, references and user models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.adapter import plain
from quintain.audit.kernel.check import NotChecked, check
from quintain.audit.kernel.context import AuditContext, solves
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, Record, answer, ask, number, reset, same
from quintain.audit.kernel.registry import probe_function, relation

from ._drift_words import show
from ._reward_runs import runs_of
from ._reward_tasks import asked

NAMELESS = "a task that does not exist 7f3a"
SAYS = "Yes, please go on. (zq7)"
"""A text that no harness says by itself."""
_NONSENSE = ("", "zq vx", "-17.25", "\\boxed{qqq}", "the moon, the moon")
"""Answers that cannot all be right."""
_TASKS = 24


@probe_function
def begin_unknown(player: Player, on: str, _value: Any) -> dict[str, Any]:
    """Begins a task that does not exist, past the auditor's own check of names."""
    subject = player.adapter(on).subject
    try:
        return {"began": True, "first": plain(subject.reset(NAMELESS, 0))[0]}
    except Exception as error:  # noqa: BLE001 (that it raises is what is wanted)
        return {"began": False, "raised": f"{type(error).__name__}: {error}"}


@relation
def began(records: Sequence[Record], _evidence: Evidence) -> bool:
    """A task that does not exist began."""
    value = records[0].at("unknown").value
    return is_dict(value) and value.get("began") is True


@check("x.unknown_tasks", "silent_default", needs=("tasks",), value=62, severity="warning")
def unknown_tasks(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a task name that does not exist is refused."""
    if ctx.about.count < 2 or ctx.about.kind in ("environment", "gymnasium", "scorer"):
        raise NotChecked("a subject of one task need not look at its name, and an environment's are found by it")
    probe = Probe((ask(f"{__name__}:begin_unknown", mark="unknown"),))
    record = ctx.play_probe(probe)
    ctx.count_comparisons()
    if began([record], Evidence("")):
        yield show(
            ctx, "reset begins a task that does not exist", began, probe, marks=("unknown",), at_most="likely",
            expected=f"an exception for the task {NAMELESS!r}", observed=record.at("unknown").value,
            teaches="some other task than the one that was asked for",
        )  # fmt: skip


@relation
def passes(records: Sequence[Record], evidence: Evidence) -> bool:
    """The call works with a misspelt parameter, as if it were not there."""
    right, wrong = records[0].at("right"), records[0].at("wrong")
    return not right.is_error and not wrong.is_error and same(right, wrong, evidence.volatile)


@check("x.unknown_parameters", "silent_default", needs=("tools", "call", "tasks"), value=12, severity="warning")
def misspelt(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a misspelt parameter is refused, not silently ignored."""
    probes: dict[str, Probe] = {}
    for tool in ctx.about.tools[:60]:
        known = min(ctx.discovery.of(tool.name), key=lambda call: len(call.before), default=None)
        if known is not None and not tool.parameters.get("additionalProperties"):
            name = next((name for name in tool.properties if name not in tool.required), "limit")
            wrong = msgspec.structs.replace(known.op, value={**known.op.value, f"{name}x": "1"}, mark="wrong", on="b")
            head = (reset(known.task), *known.before)
            probes[tool.name] = Probe((*head, known.op.marked("right"), *(op.moved("b") for op in head), wrong))
    records = ctx.play_all(list(probes.values()))
    ctx.count_comparisons(len(records))
    evidence = Evidence("", volatile=ctx.volatile)
    found = [name for name, record in zip(probes, records, strict=True) if passes([record], evidence)]
    if found:
        yield show(
            ctx, f"{found[0]} leaves out a misspelt parameter and says nothing", passes, probes[found[0]],
            marks=("right", "wrong"), at_most="likely", part="H", expected="an error that names the parameter",
            observed={"the same answer from": found}, teaches="that parameters need not be right",
        )  # fmt: skip


@relation
def unlimited(records: Sequence[Record], evidence: Evidence) -> bool:
    """A call beyond the budget that the subject declares works, and so do those within it."""
    calls = [seen for op, seen in zip(records[0].ops, records[0].seen, strict=False) if op.do == "call"]
    beyond = records[0].at("beyond")
    return len(calls) > int(evidence.data) and not any(seen.is_error for seen in calls) and beyond.fine


@check("x.budget_is_kept", "silent_default", needs=("tools", "call", "tasks"), value=50, severity="warning")
def limits(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that the declared budget of calls ends the episode, or at least its tools."""
    budget = ctx.attribute("budget")
    if not isinstance(budget, int) or not 0 < budget <= 1000:
        raise NotChecked("no budget of calls is declared")
    known = next((call for call in ctx.discovery.reads() if not call.before), None)
    if known is None:
        raise NotChecked("no call is known that can be made again and again")
    calls = [known.op] * (budget + 2)
    probe = Probe((msgspec.structs.replace(reset(known.task), value=0), *calls, known.op.marked("beyond")))
    ctx.count_comparisons()
    if unlimited([ctx.play_probe(probe)], Evidence("", data=budget)):
        yield show(
            ctx, f"{known.op.name} works beyond the declared budget of {budget} calls", unlimited, probe,
            marks=("beyond",), data=budget, at_most="likely", part="C", expected=f"no more than {budget} calls",
            observed=f"{budget + 3} calls", teaches="that there is always one more call",
        )  # fmt: skip


# --- references that cannot be read ---


@check("x.unread_reference", "silent_default", needs=("answer", "tasks"), value=58)
def unread_reference(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that no task pays all nonsense alike where other tasks pay nothing for it."""
    known = asked(ctx, 8)
    if not known:
        raise ctx.not_checked("no task is solved by words alone")
    top = max(question.full for question in known)
    ways: list[tuple[Op, ...]] = [(answer(text),) for text in _NONSENSE]
    sides: dict[bool, list[str]] = {True: [], False: []}
    for task in ctx.sample_tasks(_TASKS if ctx.about.kind == "scorer" else _TASKS // 2):
        ctx.count_comparisons()
        scores = [run.score for run in runs_of(ctx, task, ways)]
        are_paid = {score >= top - 1e-9 for score in scores if score is not None}
        if len(are_paid) == 1 and None not in scores:
            sides[are_paid.pop()].append(task)
    anything, strict = sides[True], sides[False]
    if anything and strict:
        yield show(
            ctx, "some tasks pay in full for whatever is said, nonsense and nothing alike", pays_whatever,
            *(solves(anything[0], way) for way in ways), solves(strict[0], ways[1]), marks=("score",), data=top,
            part="V", tasks=anything,
            expected=f"less than {top:g} for nonsense, as in {len(strict)} other tasks; or no verdict", observed=top,
            teaches="that some questions need no right answer",
        )  # fmt: skip


@relation
def pays_whatever(records: Sequence[Record], evidence: Evidence) -> bool:
    """All probes but the last are paid `data`, and the last, which says one of their answers elsewhere, is not."""
    scores = [number(record.at("score")) for record in records]
    top = float(evidence.data) - 1e-9
    return [None if amount is None else amount >= top for amount in scores] == [True] * (len(scores) - 1) + [False]


# --- a failing model of the simulated user ---


@relation
def made_up(records: Sequence[Record], _evidence: Evidence) -> bool:
    """The model was asked and raised, and there are words of the user all the same."""
    value = records[0].at("user").value
    return is_dict(value) and bool(value["asked"]) and bool(value.get("replied"))


@check("x.user_faults", "silent_default", needs=("user", "tasks"), value=73)
def user_faults(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that an episode breaks, and does not go on, when the simulated user's model fails."""
    for task in ctx.sample_tasks(3):
        if not made_up([ctx.play(_user(task, "Hello.", says=SAYS))], Evidence("")):
            continue  # No simulated user takes its words from a model.
        for said in ("Hello. What can I do for you?", "I have done it."):
            ctx.count_comparisons()
            probe = Probe((_user(task, said, raises="timed out"),))
            record = ctx.play_probe(probe)
            if made_up([record], Evidence("")):
                yield show(
                    ctx, "the user goes on speaking though his model never answered", made_up, probe, marks=("user",),
                    part="H", tasks=[task],
                    expected="no words: None, or an exception, and an episode that does not count",
                    observed=record.at("user").value["replied"], teaches="to talk to a user who is not there",
                )  # fmt: skip
                return


def _user(task: str, said: str, **does: str) -> Op:
    return Op("user", name=task, value={"said": said, **does}, mark="user")
