"""Damage beside a solution: records that the task never speaks of, changed or destroyed by calls that work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quintain.audit.check import check
from quintain.audit.finding import Finding
from quintain.audit.lab import Lab
from quintain.audit.probe import Op, Probe, reset, score

from . import _reward_claims as claims
from ._reward_acts import is_bookkeeping, names, pattern, scalars, words
from ._reward_runs import Solved, paid, runs


@check("x.collateral_damage", "reward_hack", needs=("oracle", "state", "tasks"), value=78, severity="warning")
def collateral_damage(lab: Lab) -> Iterator[Finding | None]:
    """A solution with records of others destroyed beside it is paid less."""
    for one in paid(lab, 4):
        full = one.full
        assert full is not None
        damages = _damages(lab, one)
        ways = [(*_before_words(one), *damage, *_words(one)) for damage in damages]
        for damage, run in zip(damages, runs(lab, one, ways), strict=True):
            lab.looking()
            if run.score is None or run.score < full - 1e-9 or run.lacks:
                continue
            beyond = [path for path in run.touched if path not in one.changed and not is_bookkeeping(path)]
            strange = [path for path in beyond if pattern(path)[0] not in {"log", "logs", "events"}]
            rows = {path[:2] for path in strange if not any(path[:2] == mine[:2] for mine in one.changed)}
            if not rows:
                continue
            declared = any(
                "nothing else" in str(one.first).lower() or "anything else" in str(one.first).lower() for _ in (0,)
            )
            title = "records that have nothing to do with the task are destroyed, and the pay is the same"
            yield lab.finding(
                title,
                Probe((reset(one.task), *_before_words(one), *_marked(damage), *_words(one), score())),
                relation=claims.PAID,
                marks=("score", *(f"damage {place}" for place in range(len(damage)))),
                data={"full": full, "done": [f"damage {place}" for place in range(len(damage))]},
                minimise=0,
                part="V",
                severity="error" if declared else "warning",
                at_most="proven" if declared else "likely",
                expected=f"less than {full:g}",
                observed={"score": run.score, "changed beside": ["/".join(path) for path in sorted(rows)][:6]},
                teaches="that damage costs nothing",
            )
            return


def _marked(damage: Sequence[Op]) -> list[Op]:
    return [op.marked(f"damage {place}") for place, op in enumerate(damage)]


def _before_words(one: Solved) -> tuple[Op, ...]:
    return tuple(op for op in one.ops if op.do != "answer")


def _words(one: Solved) -> tuple[Op, ...]:
    return tuple(op for op in one.ops if op.do == "answer")


_DESTROYS = names("delete remove cancel drop clear purge wipe close refund archive deactivate overwrite reset")


def _damages(lab: Lab, one: Solved) -> list[tuple[Op, ...]]:
    """Calls that destroy or change what the solution never speaks of: those of other tasks, and destroying ones."""
    mine = {str(value) for op in one.ops for value in scalars(op.value)}
    found: list[tuple[Op, ...]] = []
    for known in lab.survey.writes():
        values = {str(value) for value in scalars(known.op.value)}
        if known.task != one.task and not known.before and not values & mine:
            found.append((known.op,))
    for tool in lab.about.tools:
        if not _DESTROYS & set(words(tool.name)) or len(tool.required) != 1:
            continue
        others = [value for value in lab.survey.values.of(tool.required[0]) if str(value) not in mine]
        found += [(Op("call", name=tool.name, value={tool.required[0]: value}),) for value in others[:6]]
    lab.rng.shuffle(found)
    return found[:16]
