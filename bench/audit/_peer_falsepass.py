"""A subject as falsepass wants it: a reward function with a dataset where words are the answer, an adapter where not.

Tasks that are solved by saying something become a reward function as TRL's trainer calls it; falsepass finds the format
and the wrong answers itself. The other tasks are played by its policies that know the tools' schemas alone, through the
two classes that it asks authors for, an adapter and a scorer. Either way it reads the source of the subject's class.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from falsepass import probes, runner
from falsepass.adapter import Adapter
from falsepass.model import Completion, Example, Expect, Policy, ProbeResult, Score

from bench.audit._peer_view import CannotLook, ToolFinding, View, solution, view
from quintain.audit.kernel.adapter import plain
from quintain.audit.kernel.loader import LoadedSubject
from quintain.audit.kernel.probe import Op, answer, call

EXAMPLES = 25
"""Number of tasks that it examines by default."""
TURNS = 110
SHOWN: list[View] = []
"""The session in which all is scored, one episode after the other, as in a trainer's process."""
TASKS: list[str] = []
"""Tasks that the adapter plays."""
REWARDS = """
from bench.audit._peer_falsepass import paid


def score(completions, task, **_):
    return [paid(*one) for one in zip(task, completions, strict=True)]
"""
ADAPTER = """
from bench.audit._peer_falsepass import ToolAdapter

ADAPTER = ToolAdapter()
"""


def audit(opened: LoadedSubject) -> list[ToolFinding]:
    """Returns falsepass's findings."""
    session = view(opened)
    SHOWN[:] = [session]
    tools = session.adapter.tools()
    names = session.tasks if tools else list(session.adapter.tasks)[:EXAMPLES]
    words = {task: said for task in names if (said := _said(solution(session, task))) is not None}
    played = [task for task in names if task not in words] if tools else []
    if not words and not played:
        raise CannotLook("it has neither tools nor known answers")
    findings: list[ToolFinding] = []
    if words:
        findings.extend(_run(opened, "words", _rows(session, words)))
    if played:
        TASKS[:] = played
        findings.extend(_run(opened, "tools", []))
    return findings


def paid(task: str, text: str) -> float | None:
    """The score of one answer."""
    session = SHOWN[0]
    session.reset(task, 0)
    session.act(answer(text))
    return session.score()


class ToolScorer:
    """Plays one episode of a subject with a policy."""

    multi_turn = True

    async def score(self, example: Example, completion: Completion) -> Score:
        session = SHOWN[0]
        messages = [{"role": "user", "content": _prompt(session, example.key)}]
        tools = [
            {"name": one.name, "description": one.description, "parameters": one.parameters}
            for one in session.adapter.tools()
        ]
        try:
            stop = _episode(session, completion, messages=messages, tools=tools)
            score, errors = session.score(), []
        except Exception as error:  # noqa: BLE001 (falsepass reports what was raised while it scored)
            score, errors, stop = None, [f"{type(error).__name__}: {error}"], "raised"
        turns = sum(one["role"] == "assistant" for one in messages)
        info = {"turns": turns, "stop": stop, "tools": [one["name"] for one in tools], "transcript": messages}
        return Score(score, {}, errors, info)

    async def close(self) -> None:
        SHOWN[0].close()


def _episode(session: View, completion: Completion, *, messages: list[dict[str, Any]], tools: list[Any]) -> str:
    for turn in range(TURNS):
        said = _next(completion, turn, messages=messages, tools=tools)
        messages.append({"role": "assistant", "content": said["content"]})
        calls = said.get("tool_calls") or []
        for one in calls:
            read = session.act(call(one["name"], one["arguments"]))
            messages.append({"role": "tool", "content": read})
        if not calls and said["content"] and "answer" in session.adapter.offers:
            messages.append({"role": "user", "content": session.act(answer(said["content"]))})
        if not calls and not (said["content"] and _is_solver(completion)):
            return "no tool was called"
    return f"{TURNS} turns"


def _next(completion: Completion, turn: int, *, messages: list[Any], tools: list[Any]) -> dict[str, Any]:
    if isinstance(completion, Policy):
        assert completion.act is not None
        said = completion.act(messages, tools) if completion.wants_tools else completion.act(messages)
    else:
        script: Sequence[Any] = [completion] if isinstance(completion, str) else completion
        said = script[min(turn, len(script) - 1)]
    return {"content": said} if isinstance(said, str) else said


def _is_solver(completion: Completion) -> bool:
    """Words end an episode, but an oracle may have more to say; it says nothing when it is done."""
    return isinstance(completion, Policy) and completion.name == "solver"


def _solver(task: str) -> Policy | None:
    """The oracle as a policy."""
    steps = solution(SHOWN[0], task)

    def act(messages: list[dict[str, Any]], _: list[Any]) -> str | dict[str, Any]:
        turn = sum(one["role"] == "assistant" for one in messages)
        if turn >= len(steps):
            return ""
        step = steps[turn]
        if step.do == "answer":
            return str(step.value)
        return {"content": "", "tool_calls": [{"name": step.name, "arguments": step.value}]}

    return Policy("solver", act, wants_tools=True) if steps else None


async def _control(adapter: Adapter, scorer: Any, example: Example) -> list[ProbeResult]:
    """As in its skeleton of an adapter: one who solves the task must be paid in full, one who gives up nothing."""
    idle = Policy("gives_up", lambda messages, tools: "I'm sorry, I can't help with that.", wants_tools=True)
    policies = [(Expect.ZERO, idle)]
    if (solver := _solver(example.key)) is not None:
        policies.insert(0, (Expect.FULL, solver))
    return [
        await probes.check("X1", "policy", policy.name, expect, policy, adapter, scorer, example)
        for expect, policy in policies
    ]


class ToolAdapter(Adapter):
    """The tasks of the subject that is shown, to be played."""

    name = "subject"
    tool_mode = True
    episode_probes = [_control]

    def load(self, n: int, seed: int) -> tuple[ToolScorer, list[Example]]:
        return ToolScorer(), self.hygiene_examples(n)

    def hygiene_examples(self, limit: int) -> list[Example]:
        return [Example(task, _prompt(SHOWN[0], task), "") for task in TASKS[:limit]]


def _run(opened: LoadedSubject, mode: str, rows: list[dict[str, str]]) -> list[ToolFinding]:
    folder = Path(mode).absolute()
    _sources(opened, folder / "src")
    settings = {"id": f"local/{mode}"}
    if rows:
        (folder / "rewards.py").write_text(REWARDS)
        (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
        settings |= {"framework": "reward", "task": str(folder / "rewards.py"), "dataset": str(folder / "rows.jsonl")}
        settings["answer_column"] = "answer"
    else:
        (folder / "adapter.py").write_text(ADAPTER)
    (folder / "env.toml").write_text(
        "[env]\n" + "".join(f"{key} = {json.dumps(one)}\n" for key, one in settings.items())
    )
    sys.modules.pop("falsepass_rewards_rewards", None)
    try:
        payload = runner.run(folder, EXAMPLES, jobs=1)
    except Exception as error:  # noqa: BLE001 (its way to say that nothing can be made of this verifier)
        words = re.sub(r"\d+", "", str(error))
        return [
            ToolFinding(f"{mode}: {type(error).__name__}: {words[:60]}", f"{mode}: {type(error).__name__}: {error}")
        ]
    return list(_finding_of(mode, payload))


def _rows(session: View, words: dict[str, str]) -> list[dict[str, str]]:
    """A dataset without the tasks that ask for the same: to falsepass, the answer of another row is a wrong one."""
    rows: dict[str, dict[str, str]] = {}
    for task, said in words.items():
        truth = (
            session.adapter.subject.hidden(session.adapter.task(task)) if "hidden" in session.adapter.offers else said
        )
        rows.setdefault(json.dumps(plain(truth)[0]), {"prompt": _prompt(session, task), "answer": said, "task": task})
    return list(rows.values())


def _finding_of(mode: str, payload: dict[str, Any]) -> list[ToolFinding]:
    failed = [one for one in payload["results"] if not one["passed"]]
    findings = [
        ToolFinding(
            f"{mode}: {one['example']}: {one['probe']}/{one['variant']}",
            f"{one['example']}: {one['probe']} {one['detail']}",
        )
        for one in failed
    ]
    hints = [one for one in payload["static"] if not one["verdict"].startswith("not confirmed")]
    return findings + [ToolFinding(f"{mode}: {one['rule']}: {one['evidence']}", f"static: {one}") for one in hints]


def _said(steps: list[Op]) -> str | None:
    """The answer, where an answer is all that the oracle gives."""
    return str(steps[0].value) if len(steps) == 1 and steps[0].do == "answer" else None


def _prompt(session: View, task: str) -> str:
    return session.adapter.prompt(task, session.adapter.subject.reset(session.adapter.task(task), 0)) or f"Task {task}"


def _sources(opened: LoadedSubject, folder: Path) -> None:
    """The subject's own classes and functions, and nothing else that stands in their files."""
    folder.mkdir(parents=True)
    for place, source in enumerate(opened.sources):
        if not source.path:
            continue
        text = Path(source.path).read_text(encoding="utf-8")
        own = [node for node in ast.parse(text).body if getattr(node, "name", None) in source.names or not source.names]
        parts = (ast.get_source_segment(text, node) or "" for node in own)
        (folder / f"part_{place}.py").write_text("\n\n".join(parts))
