"""Evaluates against a server with Inspect and OpenReward's bridge to it: `python inspect_bridge.py URL`.

The model says what is written here: it counts and submits rightly in the first two tasks, and submits a wrong number
in the last.
"""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUntypedClassDecorator=false
# mypy: disable-error-code="import-not-found, misc, untyped-decorator"

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

URL = sys.argv[1]
os.environ |= {"OPENREWARD_SESSION_URL": URL, "OPENREWARD_API_URL": URL, "OPENREWARD_DISABLE_UPDATE_CHECK": "1"}

from _facts import tell  # noqa: E402  # the address must be known first
from inspect_ai import Task  # noqa: E402
from inspect_ai import eval as evaluate  # noqa: E402
from inspect_ai.model import ModelAPI, ModelOutput, get_model, modelapi  # noqa: E402
from inspect_openreward import openreward_dataset, openreward_scorer, openreward_solver  # noqa: E402
from openreward import OpenReward  # noqa: E402


def script() -> Iterator[Any]:
    """Yields the model's replies, sample after sample."""

    def call(tool: str, **arguments: int) -> Any:
        return ModelOutput.for_tool_call("scripted", tool, arguments)

    for number, answer in ((1, 1), (2, 2), (3, 4)):
        yield call("add", by=number)
        yield call("submit", answer=answer)
        yield ModelOutput.from_content("scripted", "Done.")


@modelapi(name="scripted")
class Scripted(ModelAPI):
    """A model that needs neither an endpoint nor, as Inspect's own mock does, a tokenizer from the network."""

    def __init__(self, model_name: str, **rest: Any) -> None:
        super().__init__(model_name)
        self.script = script()

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
        return next(self.script)

    async def count_text_tokens(self, text: str) -> int:
        return len(text)


def main() -> None:
    with OpenReward() as client, tempfile.TemporaryDirectory() as folder:
        env = client.environments.get("any")
        task = Task(
            dataset=openreward_dataset(env, split="train", limit=3),
            solver=openreward_solver(env),
            scorer=openreward_scorer(),
        )
        (log,) = evaluate(task, model=get_model("scripted/model"), max_samples=1, display="none", log_dir=folder)
        tell(facts(log))


def facts(log: Any) -> dict[str, Any]:
    samples = list(log.samples)
    return {
        "status": log.status,
        "errors": [str(one.error) for one in (log, *samples) if one.error],
        "mean": log.results and log.results.scores[0].metrics["mean"].value,
        "scores": [[score.value for score in sample.scores.values()] for sample in samples],
        "finished": [sample.metadata.get("openreward_finished") for sample in samples],
        "asked": [next(message.text for message in sample.messages if message.role == "user") for sample in samples],
        "observed": [[message.text for message in sample.messages if message.role == "tool"] for sample in samples],
    }


if __name__ == "__main__":
    main()
