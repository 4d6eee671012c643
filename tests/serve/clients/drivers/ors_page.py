"""Pastes a block of the page that needs a client: `python ors_page.py URL NAME CODE`.

What it cannot have here is a model: TRL finds one of a few thousand weights under the name that the page has, and
Inspect one that always presses the red button.
"""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found, no-any-return"

from __future__ import annotations

import contextlib
import io
import itertools
import os
import sys
from pathlib import Path
from typing import Any

from _facts import tell

URL, NAME, CODE = sys.argv[1:]
SMALL = "use_cpu=True, bf16=False, max_steps=1, max_completion_length=32, report_to='none', save_strategy='no', "


def pasted(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for name in ("OPENREWARD_SESSION_URL", "OPENREWARD_API_URL"):
        os.environ.pop(name, None)
    exec(code.replace("http://127.0.0.1:8080", URL), names)
    return names


def session() -> dict[str, Any]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        pasted(CODE)
    return {"printed": printed.getvalue().splitlines()}


def train() -> dict[str, Any]:
    from trl_trainer import network, tokenizer

    words, here = tokenizer(), Path("Qwen", "Qwen3-0.6B")
    here.mkdir(parents=True)
    for part in (words, network(words)):
        part.save_pretrained(here)
    trainer = pasted(CODE.replace("GRPOConfig(", f"GRPOConfig({SMALL}"))["trainer"]
    tools = sorted(tool.__name__ for tool in trainer.tools)
    return {"steps": trainer.state.global_step, "tools": tools, "prompts": len(trainer.train_dataset)}


def evaluate() -> dict[str, Any]:
    import inspect_bridge

    def script() -> Any:
        from inspect_ai.model import ModelOutput

        press = ModelOutput.for_tool_call("scripted", "press", {"button": "red"})
        return itertools.cycle((press, ModelOutput.from_content("scripted", "Done.")))

    inspect_bridge.script = script
    code = CODE.replace('eval(task, model="openai/gpt-5")', 'logs = eval(task, model="scripted/model", max_samples=1)')
    (log,) = pasted(code)["logs"]
    return {"status": log.status, "mean": log.results.scores[0].metrics["mean"].value}


if __name__ == "__main__":
    tell({"session.py": session, "train.py": train, "evaluate.py": evaluate}[NAME]())
