"""Adapter that gives every subject one form: an object with `tasks`, `tools`, `reset`, `call` and `score`.

Authors write these methods in the form that is natural to them. Checks see one form: tasks by name, tools with a JSON
schema, a score as a number with components, an oracle as ops. The adapter never guesses: unreadable values raise.
"""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
from collections.abc import Callable
from types import TracebackType
from typing import Any, cast

import msgspec

from quintain import codec
from quintain.audit.facts.data import is_dict, is_list, is_tuple
from quintain.contract import NOTHING, Contract
from quintain.errors import UsageError

from .probe import Op, answer, call

REQUIRED = ("tasks", "reset", "score")
OPTIONAL = (
    "tools", "call", "oracle", "state", "snapshot", "restore", "inject", "hidden", "production", "prompt", "answer",
    "advance", "judge", "user", "close", "digest", "explain", "responses", "cases",
)  # fmt: skip
GIVEN = {
    "call": "name, arguments", "oracle": "task", "hidden": "task", "prompt": "task", "answer": "text",
    "restore": "snapshot", "inject": "fault", "advance": "seconds", "judge": "task, answer, complete",
    "user": "task, said, complete", "reset": "task, seed",
}  # fmt: skip
"""Arguments of the methods that take any."""
MAX_TASKS = 1_000_000
ATTRIBUTES = ("shared", "volatile", "graded", "refusal_ok", "budget", "absent", "models", "best")


class ToolSpec(msgspec.Struct, frozen=True):
    """Tool as the subject advertises it; `parameters` is the JSON schema of an object."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}

    @property
    def properties(self) -> dict[str, Any]:
        return cast(dict[str, Any], self.parameters.get("properties") or {})

    @property
    def required(self) -> list[str]:
        return list(self.parameters.get("required") or [])


class SubjectAdapter:
    """Adapter for one instance of the subject; raises UsageError if a method is missing or takes other arguments."""

    def __init__(self, subject: Any) -> None:
        missing = [name for name in REQUIRED if not callable(getattr(subject, name, None))]
        if missing:
            owner, lacks = type(subject).__name__, ", ".join(missing)
            raise UsageError(f"a subject needs the methods {', '.join(REQUIRED)}; {owner} has no {lacks}")
        self.subject = subject
        absent = getattr(subject, "absent", ())
        self.offers = frozenset(
            name for name in (*REQUIRED, *OPTIONAL) if callable(getattr(subject, name, None)) and name not in absent
        )
        for name in sorted(self.offers):
            _must_be_called(subject, name)

    @functools.cached_property
    def tasks(self) -> dict[str, Any]:
        """Returns the subject's own task objects by name; raises UsageError if they are no list or share a name."""
        listed: list[Any] = list(itertools.islice(self.subject.tasks(), MAX_TASKS + 1))
        if len(listed) > MAX_TASKS:
            raise UsageError(f"tasks() lists more than {MAX_TASKS:,}, perhaps without end; list some of them")
        named: dict[str, Any] = {}
        for place, task in enumerate(listed):
            ids = (task.get(key) if is_dict(task) else getattr(task, key, None) for key in ("id", "name", "task_id"))
            known = [task] if isinstance(task, str) else [str(one) for one in ids if isinstance(one, str | int)]
            if (name := [*known, f"task {place}"][0]) in named:
                raise UsageError(f"tasks() lists two tasks of one name: {name!r}")
            named[name] = task
        return named

    def task(self, name: str) -> Any:
        if hasattr(self.subject, "shelf"):
            return name  # An environment makes the task, and refuses a name that it does not have.
        if name not in self.tasks:
            raise UsageError(f"no task {name!r}; tasks() lists {', '.join(list(self.tasks)[:5])}...")
        return self.tasks[name]

    def tools(self) -> tuple[ToolSpec, ...]:
        """Returns the advertised tools, in this project's form, OpenAI's or MCP's; raises UsageError for another."""
        tools: Any = self.subject.tools() if "tools" in self.offers else ()
        if is_dict(tools):
            tools = [{"name": name, **(spec if is_dict(spec) else {})} for name, spec in tools.items()]
        return tuple(map(_tool, tools))

    def contracts(self) -> dict[str, Contract]:
        """Returns the contracts in `tool_contracts`; raises UsageError for one that fits no tool or parameter."""
        where = f"tool_contracts of {type(self.subject).__name__}"
        try:
            found = msgspec.convert(getattr(self.subject, "tool_contracts", None) or {}, dict[str, Contract])
        except msgspec.ValidationError as error:
            raise UsageError(f"{where}: {error}") from error
        parameters = {tool.name: tool.properties for tool in self.tools()} if found else {}
        for tool, contract in found.items():
            if tool not in parameters:
                raise UsageError(f"{where} has {tool!r}; the tools are {[*parameters]}")
            strange = [name for name in contract.filters if parameters[tool] and name not in parameters[tool]]
            if strange:
                raise UsageError(f"{where} has '{tool}.{strange[0]}'; the parameters are {[*parameters[tool]]}")
        return {tool: contract for tool, contract in found.items() if contract != NOTHING}

    def oracle(self, name: str) -> list[Op] | None:
        """Returns the calls and answers that solve a task, or None; raises UsageError for an unreadable step."""
        solved = self.subject.oracle(self.task(name)) if "oracle" in self.offers else None
        return None if solved is None else [_solving(step) for step in solved]

    def prompt(self, name: str, first: Any) -> str:
        """Returns the agent's prompt: `prompt(task)`, or the text that `reset` returned."""
        if "prompt" in self.offers:
            return str(self.subject.prompt(self.task(name)))
        return first if isinstance(first, str) else codec.json(plain(first)[0]).decode()


def _must_be_called(subject: Any, name: str) -> None:
    """Raises UsageError if a method does not accept its arguments: often a helper happens to have the name."""
    method, owner = getattr(subject, name), type(subject).__name__
    if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
        raise UsageError(f"{owner}.{name} is async, and no method of a subject is; run it to its end")
    try:
        signature = inspect.signature(method) if name in GIVEN else None
    except (TypeError, ValueError):
        return  # Written in C, or wrapped by something that does not say.
    try:
        if signature is not None:
            signature.bind(*GIVEN[name].split(", "))
    except TypeError:
        words = f"{name}({GIVEN[name]}) is a method of a subject, and {owner} has {name}{signature}"
        raise UsageError(f'{words}; rename it, or say `absent = ("{name}",)`') from None


def _tool(tool: Any) -> ToolSpec:
    if isinstance(tool, str):
        return ToolSpec(tool)
    if is_dict(tool) and is_dict(tool.get("function")):
        tool = tool["function"]
    if not is_dict(tool) or not isinstance(tool.get("name"), str):
        raise UsageError(f'a tool is {{"name", "description", "parameters"}}, tools() gave {tool!r}')
    given = [tool[key] for key in ("parameters", "inputSchema", "input_schema") if tool.get(key)]
    return ToolSpec(tool["name"], str(tool.get("description") or ""), schema_of(plain(given[0])[0] if given else {}))


def _solving(step: Any) -> Op:
    name: Any = "answer"
    arguments: Any = step
    if is_dict(step) and set(step) == {"answer"}:
        arguments = str(step["answer"])
    elif is_dict(step):
        name, arguments = step.get("name") or step.get("tool"), step.get("arguments", step.get("args", {}))
    elif (is_list(step) or is_tuple(step)) and 1 <= len(step) <= 2:
        name, arguments = step[0], step[1] if len(step) == 2 else {}
        arguments = str(arguments) if name == "answer" and not is_dict(arguments) else arguments
    if isinstance(name, str) and is_dict(arguments):
        return call(name, arguments)
    if name == "answer" and isinstance(arguments, str) and not (is_dict(step) and "answer" not in step):
        return answer(arguments)
    raise UsageError(f'a step of an oracle is [name, arguments] or {{"answer": text}}, oracle() gave {step!r}')


def verdict(score: Any) -> dict[str, Any] | None:
    """Returns a score as {"score": number or None, component: value, ...}; None without a verdict."""
    if score is None:
        return None
    parts: dict[str, Any] = {str(key): value for key, value in score.items()} if is_dict(score) else {"score": score}
    named = next((key for key in ("score", "reward", "total") if key in parts), "")
    value = parts.pop(named) if named else None
    if not isinstance(value, int | float) and callable(item := getattr(value, "item", None)):
        value = item()
    return {"score": float(value) if isinstance(value, int | float) else value, **parts}


def plain(value: Any) -> tuple[Any, bool]:
    """Returns (plain data, is_odd); odd values have no plain form and become their repr."""
    odd = False

    def words(one: Any) -> Any:
        nonlocal odd
        for method in ("tolist", "item", "model_dump", "_asdict"):
            if callable(getattr(one, method, None)) and not inspect.isclass(one):
                return getattr(one, method)()
        odd = True
        return f"<{type(one).__name__}> {one!r}"[:2000]

    try:
        try:
            data = codec.dumps(value, words, canonical=False)
        except OverflowError:
            data = codec.dumps(_within_64_bits(value), words, canonical=False)
        return msgspec.msgpack.decode(data), odd
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return f"<{type(value).__name__}> {value!r}"[:2000], True


def _within_64_bits(value: Any) -> Any:
    """Returns plain data with larger integers as text, which JSON allows and MessagePack does not."""
    if is_dict(value):
        return {key: _within_64_bits(one) for key, one in value.items()}
    if is_list(value) or is_tuple(value):
        return [_within_64_bits(one) for one in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return f"{value:x}" if value.bit_length() > 4000 else str(value)
    return value


def with_text_keys(value: Any) -> Any:
    """Returns plain data with text keys, as in JSON: 3 becomes "3"; keys that would collide become their repr."""
    if is_list(value):
        return [with_text_keys(one) for one in value]
    if not is_dict(value):
        return value
    texts = [str(key) for key in value]
    keys = texts if len(set(texts)) == len(texts) else [repr(key) for key in value]
    return {key: with_text_keys(one) for key, one in zip(keys, value.values(), strict=True)}


def how_raised(error: BaseException) -> str:
    """Returns "refused" if the subject rejected the call on purpose, else "crashed".

    A ToolError of any package is a refusal, and a ValueError, LookupError or PermissionError that a `raise` produced.
    """
    if not getattr(error, "is_failure", False):
        if any(base.__name__.endswith("ToolError") for base in type(error).__mro__):
            return "refused"
        trace = _last(error)
        if trace is not None and isinstance(error, ValueError | LookupError | PermissionError):
            code, place = trace.tb_frame.f_code.co_code, trace.tb_lasti
            if 0 <= place < len(code) and dis.opname[code[place]] == "RAISE_VARARGS":
                return "refused"
    return "crashed"


def where_raised(error: BaseException) -> str:
    """Returns "file:line" of the last frame; empty without a traceback."""
    trace = _last(error)
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""


def _last(error: BaseException) -> TracebackType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


Factory = Callable[[], Any]


# --- schemas of parameters ---


_TYPES = {
    "str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object",
    "NoneType": "null",
} | {name: name for name in ("string", "integer", "number", "boolean", "array", "object", "null")}  # fmt: skip


_NEED = ("required", "optional")


def schema_of(parameters: Any) -> dict[str, Any]:
    """Returns a JSON schema of an object; accepts a schema, properties by name, or a list of named properties.

    A property without a default is required unless it says otherwise, because short forms have no place for `required`.
    """
    if is_list(parameters):
        named = [one for one in parameters if is_dict(one) and isinstance(one.get("name"), str)]
        parameters = {one["name"]: {key: one[key] for key in one if key != "name"} for one in named}
    if not is_dict(parameters):
        return {}
    kind = parameters.get("type")
    if not parameters or "properties" in parameters or is_list(kind) or kind in (*_TYPES,) or "$ref" in parameters:
        return parameters
    specs = {str(name): _property(one) for name, one in parameters.items()}
    properties = {name: {key: one[key] for key in one if key not in _NEED} for name, one in specs.items()}
    needed = [name for name, one in specs.items() if _is_needed(one)]
    return {"type": "object", "properties": properties} | ({"required": needed} if needed else {})


def _property(value: Any) -> dict[str, Any]:
    kind = value.get("type") if is_dict(value) else value
    name = kind.__name__ if isinstance(kind, type) else kind if is_dict(value) else str(kind)
    known = {"type": _TYPES[name]} if isinstance(name, str) and name in _TYPES else {}
    return {**value, **known} if is_dict(value) else known or {"description": name}


def _is_needed(spec: dict[str, Any]) -> bool:
    required = spec.get("required")
    return required if isinstance(required, bool) else spec.get("optional") is not True and "default" not in spec
