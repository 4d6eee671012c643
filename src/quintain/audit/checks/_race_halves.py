"""Checks texts with a lone surrogate, which JSON allows.

A model's words are cut between the two halves of an emoji, its arguments are JSON all the same, and `json.loads` gives
a text that no encoder of UTF-8 takes. No probe can carry such a text, so it is put in where the call is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict
from quintain.audit.kernel.check import check
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Evidence, Finding
from quintain.audit.kernel.player import Player
from quintain.audit.kernel.probe import Op, Probe, Record, ask, reset
from quintain.audit.kernel.registry import probe_function, relation

from ._same_scripts import bare, reads

HERE = f"{__name__}:"
TEXTS, CARRIED, READS = 60, 8, 3
"""Texts of tools that are tried, those where each call is JSON on its way, and calls that read after each."""
HALF = " \ud83d"
KINDS = ("environment", "plain", "scorer")
"""Subjects that live in this process: what stands between must not be what breaks."""


class Case(msgspec.Struct, frozen=True):
    """A call that works, the argument that half a character is put into, and what follows; "" for last words."""

    task: str
    before: tuple[Op, ...]
    op: Op
    field: str
    after: tuple[Op, ...]


@relation
def breaks_on_half(records: Sequence[Record], evidence: Evidence) -> bool:
    """The call, or what follows it, crashes at the place that `data` names, and does not with a whole text."""
    half, whole = (record.at("half").value for record in records)
    return bool(half and half[0] and half[0]["where"] == evidence.data and whole == [{}])


@check("x.half_characters", "races", needs=("tasks",), value=87)
def half_characters(ctx: AuditContext) -> Iterator[Finding | None]:
    """Checks that a lone surrogate in a text, which JSON allows, is refused or accepted without damage."""
    if ctx.about.kind not in KINDS:
        raise ctx.not_checked("what carries texts to it stands between")
    cases = list(_cases(ctx))
    ctx.count_comparisons(len(cases))
    value = ctx.play(_asked(cases, half=True)).at("half").value
    reported: set[str] = set()
    for case, broke in zip(cases, value or (), strict=False):
        if not broke or broke["where"] in reported:
            continue
        reported.add(broke["where"])
        probes = Probe((_asked([case], half=True),)), Probe((_asked([case], half=False),))
        name = f"{case.op.name}()" if case.op.do == "call" else "answer()"
        at = "breaks" if broke["place"] == 0 else f"leaves what breaks {broke['name']}"
        yield ctx.finding(
            f"{name} {at} when a text ends in half a character ({broke['raised'].partition(':')[0]})", *probes,
            relation=f"{HERE}breaks_on_half", marks=("half",), data=broke["where"], minimise=0, tasks=(case.task,),
            expected="an answer, or an error that the agent can read", observed=broke["raised"], where=broke["where"],
            teaches="nothing: the episode is lost, and every group in which a model's text is cut there",
        )  # fmt: skip
        return


def _cases(ctx: AuditContext) -> Iterator[Case]:
    count, most = 0, CARRIED if ctx.about.kind == "environment" else TEXTS
    for tool in ctx.about.tools:
        known = min(ctx.discovery.of(tool.name), key=lambda call: len(call.before), default=None)
        given: dict[str, Any] = known.op.value if known else {}
        for name, schema in tool.properties.items():
            free = is_dict(schema) and schema.get("type") == "string" and not schema.get("enum")
            if known is None or not free or not isinstance(given.get(name, ""), str) or count >= most:
                continue
            count += 1
            after = (*reads(ctx, known.task, READS), Op("score"))
            before = tuple(map(bare, known.before))
            yield Case(known.task, before, Op("call", name=tool.name, value=given), name, after)
    if "answer" in ctx.offers:
        yield Case(ctx.tasks[0], (), Op("answer", value="yes"), "", (Op("score"),))


def _asked(cases: Sequence[Case], *, half: bool) -> Op:
    return ask(f"{HERE}tried", {"cases": msgspec.to_builtins(cases), "half": half}, mark="half")


@probe_function
def tried(player: Player, on: str, value: Any) -> list[dict[str, Any]]:
    """Plays each case in a session of its own; returns what crashed of each, empty where nothing did."""
    cases = enumerate(msgspec.convert(value["cases"], list[Case]))
    return [_tried(player, f"{on} {place}", case, end=HALF if value["half"] else " ok") for place, case in cases]


def _tried(player: Player, on: str, case: Case, *, end: str) -> dict[str, Any]:
    for op in (reset(case.task), *case.before):
        player.do(op.moved(on))
    text = str(case.op.value.get(case.field, "") if case.field else case.op.value) + end
    given = {**case.op.value, case.field: text} if case.field else text
    for place, op in enumerate((msgspec.structs.replace(case.op, value=given), *case.after)):
        seen = player.do(op.moved(on))
        if seen.how == "crashed":
            raised = seen.raised.encode("ascii", "backslashreplace").decode()
            return {"place": place, "name": f"{op.name or op.do}()", "raised": raised, "where": seen.where}
        if place == 0 and seen.is_error:
            break
    player.adapters.pop(on, None)
    return {}
