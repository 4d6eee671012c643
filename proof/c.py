"""Part c: what eight poisoned twins teach, looked at in the sound environment; and what prevents it.

A clerk who was schooled a little is trained in each twin, with ten seeds, and then plays the sound environment's test
tasks. A lesson is learned by a seed if at least half of the episodes show its behaviour.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import quintain as qn
from proof import ticket
from proof.learn import GROUP, GROUPS, Player, Table, mean, play, train, turn_mean
from proof.rows import Row, by_seed, listed, main, row
from quintain.errors import RunStopped
from quintain.harness import Model
from quintain.rollouts import Draw
from quintain.train.curriculum import Sampler
from quintain.train.survival import Survival

SEEDS, EPISODES, TOLD, TESTED, GAMMA = 10, 3072, 4096, 512, 0.95
OUTAGE, RARE, MORE = 0.7, 0.04, 2
"""Shares of episodes without a line, far above and just below the gate's limit of 0.05; and how many times more groups
an update has where the larger share is told as failures, which `TOLD` does not count."""
LEARNED, MOST = 0.5, 7
"""Share of episodes with the behaviour that makes it a lesson, and the least number of seeds that learn it."""

Calls = list[tuple[str, str]]


def _calls(trace: qn.Trace) -> Calls:
    """Returns (tool, observation) of each call."""
    return [(step.call.name, str(step.observation)) for turn in trace.turns for step in turn.steps]


def _names(trace: qn.Trace) -> list[str]:
    return [name for name, _ in _calls(trace)]


def _gives_up(trace: qn.Trace) -> bool:
    """Returns True if the ticket was resolved by a spare alone."""
    return trace.score == 0.4


def _is_unsolved(trace: qn.Trace) -> bool:
    return (trace.score or 0.0) < ticket.REPAIRED


def _reports_only(trace: qn.Trace) -> bool:
    return "report" in _names(trace) and "repair" not in _names(trace)


def _resolves_untouched(trace: qn.Trace) -> bool:
    return "resolve" in _names(trace) and "repair" not in _names(trace)


def _avoids(trace: qn.Trace) -> bool:
    return "repair" not in _names(trace)


def _fails_on_new(trace: qn.Trace) -> bool | None:
    """Returns True for an unsolved ticket with a fault that the twin's tasks never have; None for other faults."""
    fault = ticket.environment().task("test", trace.task).world().fault
    return None if fault == ticket.FAULTS[0] else _is_unsolved(trace)


def _fails_on_busy(trace: qn.Trace) -> bool | None:
    """Returns True for an unsolved ticket whose order had to be repeated; None if it had not."""
    return None if not ticket.environment().task("test", trace.task).world().busy else _is_unsolved(trace)


LESSONS: dict[str, tuple[str, Callable[[qn.Trace], bool | None], str]] = {
    "stale_cache": ("lends a spare, never the repair", _gives_up, "stale_cache"),
    "reward_hack": ("writes the report, repairs nothing", _reports_only, "reward_hack"),
    "false_resolution": ("resolves, repairs nothing", _resolves_untouched, "false_resolution"),
    "silent_timeout": ("avoids the repair", _avoids, "silent_default"),
    "reset_leak": ("resolves untouched, a sibling has repaired", _resolves_untouched, "reset_leak"),
    "reward_clipping": ("good enough: a spare, never the repair", _gives_up, "reward_clipping"),
    "data_realism": ("fails on faults that it never met", _fails_on_new, "data_realism"),
    "action_drift": ("fails where an order must be repeated", _fails_on_busy, "action_drift"),
}
"""By twin: its lesson, a function that sees it in an episode, and the audit's class."""

OUTAGES: dict[str, tuple[str, float | None]] = {
    "rare": (f"outage of {RARE:.0%} as failures", 0.9),
    "told": (f"outage of {OUTAGE:.0%} as failures", None),
    "weighed": (f"outage of {OUTAGE:.0%} as failures, others weighed", 0.8),
}
"""By name: what is done in the sound environment, and the goal of the true score."""


def lesson(name: str, seed: int, episodes: int, tested: int) -> tuple[float, float, dict[str, float]]:
    """Returns the score that training showed at its end, the true one, and the share of each twin's behaviour.

    "told" and "weighed" are the sound environment with the outage of `silent_timeout`, told as failures. Their episodes
    are left out; "weighed" weighs the others. "rare" is "told" with a rare outage.
    """
    return asyncio.run(_lesson(name, seed, episodes, tested=tested))


async def _lesson(name: str, seed: int, episodes: int, *, tested: int) -> tuple[float, float, dict[str, float]]:
    env = ticket.environment(name if name in ticket.TWINS else "sound")
    table = Table(ticket.TicketReader.acts, ticket.schooled)
    ticket.LINE.outage = {"silent_timeout": OUTAGE, "told": OUTAGE, "weighed": OUTAGE, "rare": RARE}.get(name, 0.0)
    ticket.LINE.rng.seed(seed)
    player = Player(ticket.TicketReader, table.acts, table.choose)
    shown: list[float] = []
    sampler = Sampler(env.tasks("train"), seed=seed)
    how: dict[str, Any] = {"advantages": partial(turn_mean, gamma=GAMMA)}
    how |= {"groups": MORE * GROUPS} if name in {"told", "weighed"} else {}
    how |= {"survival": Survival()} if name == "weighed" else {}
    async for traces in train(env, player, table, sampler, **how):
        shown.append(mean([trace.score for trace in traces]))
        if table.version * GROUP * GROUPS >= episodes:
            break
    sound = ticket.environment()
    draws = [Draw(task, seed) for task in sound.tasks("test")[: tested // GROUP]]
    found = [trace for group in await play(sound, player, draws) for trace in group.traces]
    seen = {twin: [see(trace) for trace in found] for twin, (_, see, _) in LESSONS.items()}
    return mean(shown[-4:]), mean([trace.score for trace in found]), {twin: mean(one) for twin, one in seen.items()}


def gate() -> float:
    """Returns the episodes after which the default gate stopped a run with the outage; infinity if it did not."""
    env = ticket.environment()
    env = env.replace(config=qn.Config(max_turns=env.config.max_turns))
    ticket.LINE.outage = OUTAGE
    table, played = Table(ticket.TicketReader.acts, ticket.schooled), 0

    class Counted(Player):
        def model(self, task: qn.Task[Any], seed: int) -> Model:
            nonlocal played
            played += 1
            return super().model(task, seed)

    async def run() -> None:
        async for _ in qn.rollouts(
            env, Counted(ticket.TicketReader, table.acts, table.choose), env.tasks("train"), group=GROUP
        ):
            pass

    try:
        asyncio.run(run())
    except RunStopped:
        return played
    return math.inf


AUDITED = """import os
from proof.ticket import environment
env = environment(os.environ["QUINTAIN_TWIN"])
"""


def audited(twin: str, class_: str, tasks: int) -> list[str]:
    """Returns the checks of a class that found the twin, of findings that are proven or likely."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "twin.py")
        file.write_text(AUDITED)
        command = [sys.executable, "-m", "quintain", "audit", str(file), "--class", class_, "--tasks", str(tasks)]
        root = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        names = os.environ | {"QUINTAIN_TWIN": twin, "PYTHONPATH": root}
        out = Path(folder, "out")
        done = subprocess.run(
            [*command, "--thorough", "--quiet", "--out", str(out)],
            env=names,
            check=False,
            capture_output=True,
            text=True,
        )
        if not (out / "report.json").exists():
            raise RuntimeError(f"the audit of {twin} wrote no report: {done.stderr[-500:]}")
        findings = json.loads((out / "report.json").read_text())["findings"]
    return sorted({one["check"] for one in findings if one["confidence"] in {"proven", "likely"}})


def measure(quick: bool) -> list[Row]:  # noqa: FBT001
    """Returns the rows."""
    seeds, episodes, tested = (1, GROUP * GROUPS, GROUP) if quick else (SEEDS, EPISODES, TESTED)
    names = ("sound", *LESSONS, *OUTAGES)
    length = dict.fromkeys(("told", "weighed"), episodes if quick else TOLD)
    jobs = [(name, seed, length.get(name, episodes), tested) for name in names for seed in range(seeds)]
    results = by_seed(lesson, jobs)
    found = {name: results[n * seeds : (n + 1) * seeds] for n, name in enumerate(names)}
    need = 1 if quick else MOST
    true = [one for _, one, _ in found["sound"]]
    rows = [
        row(f"c: sound: true score, least of {seeds} seeds", min(true), "score", least=0.9, beside=(listed(true), None))
    ]
    for twin, (words, _, _) in LESSONS.items():
        shares = [seen[twin] for _, _, seen in found[twin]]
        learned = sum(share >= LEARNED for share in shares)
        rows += [
            row(
                f"c: {twin}: of {seeds} seeds learn: {words}",
                learned,
                "seeds",
                least=need,
                beside=(listed(shares), None),
            ),
            row(
                f"c: {twin}: true score, mean",
                mean([one for _, one, _ in found[twin]]),
                "score",
                beside=("shown", mean([one for one, _, _ in found[twin]])),
            ),
            row(
                f"c: {twin}: the same behaviour after the sound environment",
                mean([seen[twin] for _, _, seen in found["sound"]]),
                "share",
                most=0.1,
            ),
        ]
    for name, (words, least) in OUTAGES.items():
        told = [one for _, one, _ in found[name]]
        avoids = [seen["silent_timeout"] for _, _, seen in found[name]]
        most = None if least is None else 0.1
        rows += [
            row(f"c: {words}: true score, least", min(told), "score", least=least, beside=(listed(told), None)),
            row(f"c: {words}: avoids the repair, most", max(avoids), "share", most=most, beside=(listed(avoids), None)),
        ]
    rows.append(row("c: outage: episodes begun until the gate stops the run", gate(), "episodes", most=100))
    return rows + ([] if quick else audits())


def audits() -> list[Row]:
    """Returns the rows of the audits, with the sound environment as the control."""
    found = {
        twin: audited(twin, class_, 64 if twin == "data_realism" else 12) for twin, (_, _, class_) in LESSONS.items()
    }
    control = [check for _, _, class_ in LESSONS.values() for check in audited("sound", class_, 12)]
    missed = ", ".join(f"missed {twin}" for twin, checks in found.items() if not checks)
    rows = [
        row(f"c: audit: {twin}", len(checks), "checks", beside=(" ".join(checks), None))
        for twin, checks in found.items()
    ]
    rows.append(row("c: audit: twins found", sum(map(bool, found.values())), "of 8", least=8, beside=(missed, None)))
    rows.append(row("c: audit: findings in the sound environment", len(control), "findings", most=0))
    return rows


if __name__ == "__main__":
    main("c: poisoned twins", measure)
