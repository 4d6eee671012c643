"""A subject as a taskset of verifiers (v1), for its model-free `vf-validate`.

The gold check plays the oracle and holds when that earns full reward; the noop check scores the task untouched. The
module is found by its name, as verifiers finds every taskset.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
import verifiers.v1.tasksets  # noqa: F401 (else each child would import it anew, when it looks for ours there)
from verifiers.v1.cli.validate import SOLVED, run_validate
from verifiers.v1.configs.cli.validate import ValidateConfig
from verifiers.v1.configs.taskset import TasksetConfig

from bench.audit._peer_view import ToolFinding, View, solution, view
from quintain.audit.kernel.loader import LoadedSubject

__all__ = ["PeerTaskset", "validate"]
HERE = Path(__file__)
SHOWN: list[LoadedSubject] = []
"""The subject; a taskset is made from its configuration, which is text."""


class PeerTask(vf.Task[vf.TaskData]):
    """One task of a subject, each check on a session of its own."""

    _session: View

    async def setup(self) -> None:
        self._session = view(SHOWN[0])
        self._session.reset(str(self.data.name), 0)

    async def validate(self, runtime: Any) -> bool | None:
        steps = solution(self._session, str(self.data.name))
        for step in steps:
            self._session.act(step)
        return self._scored() >= SOLVED - 1e-9 if steps else None

    @vf.reward(weight=1.0)
    async def score_of_the_subject(self) -> float:
        return self._scored()

    def _scored(self) -> float:
        score = self._session.score()
        if score is None:
            raise RuntimeError("no verdict")
        return score


class PeerTaskset(vf.Taskset[PeerTask, TasksetConfig]):
    """The tasks of the subject that is shown."""

    def load(self) -> Iterable[PeerTask]:
        session = view(SHOWN[0])
        for place, name in enumerate(session.tasks):
            prompt = session.adapter.prompt(name, session.reset(name, 0))
            yield PeerTask(vf.TaskData(idx=place, name=name, prompt=prompt), self.config.task)


def validate(opened: LoadedSubject) -> list[ToolFinding]:
    """Returns the findings of `vf-validate` for each task."""
    view(opened)
    module = sys.modules[HERE.stem] = sys.modules[__name__]  # one module under both names
    module.SHOWN[:] = [opened]
    config = ValidateConfig(
        taskset={"id": HERE.stem},
        runtime={"type": "subprocess"},
        output_dir=Path.cwd(),
        rich=False,
        run={"name": "run"},
    )
    os.environ["VF_RUN_ID"] = "run"
    try:
        rows = asyncio.run(run_validate(config))
    except Exception as error:  # noqa: BLE001 (the subject broke while its tasks were listed: its user sees that)
        return [ToolFinding(f"{type(error).__name__}", f"{type(error).__name__}: {error}")]
    checks = [(row["name"], row[mode]) for row in rows for mode in ("gold", "noop")]
    return [
        ToolFinding(
            f"{name}: {check['mode']} {check['reason']} {check['error_type']}", f"{name}: {check['mode']}: {check}"
        )
        for name, check in checks
        if check["reason"] not in ("valid", "unchecked")
    ]
