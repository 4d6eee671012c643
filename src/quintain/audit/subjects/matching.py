"""Matching of a case's keys to the parameters of a scoring function, whose names vary."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from quintain.audit.facts.data import is_dict, is_list
from quintain.errors import UsageError

TEXT = (
    "prediction", "predicted", "pred", "response", "output", "completion", "completions", "text", "candidate",
    "hypothesis", "submission", "reply", "generated", "generation", "predictions", "responses", "model_output",
    "model_answer", "student_answer", "final_answer", "solution_str", "actual", "result", "said", "code", "given",
    "answer",
)  # fmt: skip
"""Names of the agent's text; "answer" is last, because next to any other name it is the right answer."""
TRUTH = (
    "gold", "reference", "target", "truth", "ground_truth", "expected", "expected_answer", "label", "gold_answer",
    "correct", "correct_answer", "solution", "references", "targets", "golds", "labels", "key", "answer_key", "want",
    "reference_answer", "true_answer", "answers", "tests",
)  # fmt: skip
"""Names of the right answer."""
VISIBLE = (
    "question", "prompt", "prompts", "task", "problem", "query", "instruction", "instructions", "input", "messages",
    "context",
)  # fmt: skip
"""Names of what the agent sees."""
MODEL = ("complete", "llm", "judge", "model", "ask", "call_model", "judge_model", "client", "completion_fn")
"""Names of a function that calls a language model."""

_Parameter = inspect.Parameter
_PACKED = ("kwargs", "arguments", "inputs", "parameters", "params")  # keys of a case that may hold the other keys


class Match(msgspec.Struct, frozen=True):
    """Arguments of a function for a case.

    Attributes:
        text: Parameter of the agent's text. truth: Parameters that the agent must not see. positional: Parameters that
        are passed by position. spread: Parameter of any number of values; empty without one. model: Parameter of a
        function that calls a language model, empty without one; `needs_model` if it has no default.
    """

    arguments: dict[str, Any]
    text: str
    truth: tuple[str, ...]
    positional: tuple[str, ...] = ()
    spread: str = ""
    model: str = ""
    needs_model: bool = False


def is_visible(parameter: str) -> bool:
    return parameter.lower() in VISIBLE


def sealed(task: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of a task whose names are those of an answer."""
    return {name: value for name, value in task.items() if name.lower() in {"answer", *TRUTH}}


def taken(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{function!r} does not say what it takes: {error}") from error


def matched(function: Callable[..., Any], case: dict[str, Any], *, where: str) -> Match:
    """Matches each key of a case to a parameter.

    Keys match by equal names, then by the meaning of names, then the one remaining key matches the one remaining
    parameter. A key without a parameter is dropped if no parameter is missing. Raises UsageError if a parameter without
    a default gets no value; the message names both sides.
    """
    parameters = taken(function)
    kinds = {name: one.kind for name, one in parameters.items()}
    open_ones = [
        name for name, kind in kinds.items() if kind not in (_Parameter.VAR_POSITIONAL, _Parameter.VAR_KEYWORD)
    ]
    spread = next((name for name, kind in kinds.items() if kind is _Parameter.VAR_POSITIONAL), "")
    arguments, keys = _unpacked(case, parameters, open_ones, spread=spread)
    _pair(arguments, keys, open_ones)
    required = [name for name in open_ones if parameters[name].default is _Parameter.empty]
    text = _of_meaning(TEXT, open_ones) or next(iter(open_ones), "")
    model = next((name for name in open_ones if name.lower() in MODEL and name not in arguments), "")
    missing = [name for name in required if name not in arguments and name not in {model, text}]
    if len(missing) == 1 and len(keys) == 1:
        arguments[missing.pop()] = keys.pop(next(iter(keys)))
    if missing or not text:
        called = f"{getattr(function, '__name__', 'the scorer')}({', '.join(parameters)})"
        needed, given = ", ".join(missing) or "a parameter for the text", ", ".join(case) or "no keys"
        raise UsageError(f"{where}: {called} needs {needed}, and the case has {given}")
    if _Parameter.VAR_KEYWORD in kinds.values():
        arguments |= {key: value for key, value in keys.items() if key not in parameters}
    unseen = [name for name in arguments if name != text and not is_visible(name)]
    # Those before a spread must be passed by position, too.
    either = [_Parameter.POSITIONAL_OR_KEYWORD] if spread in arguments else []
    fixed = [_Parameter.POSITIONAL_ONLY, *either]
    return Match(
        arguments=arguments,
        text=text,
        truth=tuple(name for name in unseen if name.lower() in TRUTH) or tuple(unseen),
        positional=tuple(name for name, kind in kinds.items() if kind in fixed and name in {*arguments, text}),
        spread=spread if spread in arguments else "",
        model=model,
        needs_model=model in required,
    )


def _unpacked(
    case: dict[str, Any], parameters: dict[str, Any], open_ones: list[str], *, spread: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the values that match parameters by position, and the other keys."""
    keys = dict(case)
    for pack in _PACKED:
        if is_dict(inside := keys.get(pack)) and pack not in open_ones:
            keys = inside | {key: value for key, value in keys.items() if key != pack}
    values = keys.get("args")
    if not is_list(values) or "args" in open_ones:
        return {}, keys
    del keys["args"]
    rest = values[len(open_ones) :]
    if rest and not spread:
        raise UsageError(f"args has {len(values)} values, the scorer takes {', '.join(parameters)}")
    return dict(zip(open_ones, values, strict=False)) | ({spread: rest} if rest else {}), keys


def _pair(arguments: dict[str, Any], keys: dict[str, Any], open_ones: list[str]) -> None:
    for name in open_ones:
        if name in keys and name not in arguments:
            arguments[name] = keys.pop(name)
    folded = {name.lower().replace("_", ""): name for name in open_ones if name not in arguments}
    for key in list(keys):
        alike = folded.get(key.lower().replace("_", "").replace("-", ""), "")
        if alike and alike not in arguments:
            arguments[alike] = keys.pop(key)
    for meaning in (TRUTH, TEXT, VISIBLE):
        left = [name for name in open_ones if name not in arguments]
        to, key = _of_meaning(meaning, left), _of_meaning(meaning, list(keys))
        if to and key:
            arguments[to] = keys.pop(key)


def _of_meaning(meaning: tuple[str, ...], names: list[str]) -> str:
    """Returns the first of the names that has this meaning; empty without one."""
    lower = {name.lower(): name for name in reversed(names)}
    return next((lower[word] for word in meaning if word in lower), "")
