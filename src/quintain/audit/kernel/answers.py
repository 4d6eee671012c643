"""Normal form of tool answers: unwraps framework envelopes and recognises errors."""

from __future__ import annotations

import re
from typing import Any

from quintain.audit.facts.data import is_dict, is_list, is_tuple, parsed

_ENVELOPE = frozenset({"content", "isError", "is_error", "structuredContent", "meta", "_meta", "role", "type", "name",
                       "tool_call_id", "tool_use_id", "id", "status", "artifact", "additional_kwargs",
                       "response_metadata"})  # fmt: skip
"""Keys around the content of an answer as MCP, OpenAI, Anthropic and LangChain write it."""
_ALONE = ("message", "detail", "msg", "result", "observation", "output")
_SHORT = 2000  # longest answer, in characters, that may be an error message


def answered(value: Any) -> Any:
    """Returns an answer without its envelope; an answer that reports an error becomes `{"error": ...}`.

    Handles results of MCP, tool messages, lists of text blocks, and pairs: (result, error) with one of them None, and
    (is_ok, result). Anything else is returned unchanged.
    """
    if is_tuple(value):
        return _of_pair(*value) if len(value) == 2 else value
    if callable(getattr(value, "model_dump", None)) and hasattr(value, "content"):
        value = value.model_dump()
    if is_list(value) and _is_blocks(value):
        return _joined(value)
    if not (is_dict(value) and "content" in value and value.keys() <= _ENVELOPE):
        return value
    content, named = value["content"], value.get("role") == "tool" or value.get("type") in ("tool", "tool_result")
    flagged = any(isinstance(value.get(name), bool) for name in ("isError", "is_error"))
    if not (_is_blocks(content) if is_list(content) else isinstance(content, str) and (named or flagged)):
        return value
    said = value.get("structuredContent")
    if said is None:
        said = _joined(value["content"]) if is_list(value["content"]) else value["content"]
    failed = value.get("isError") or value.get("is_error") or value.get("status") == "error"
    return {"error": said or "the tool failed"} if failed else said


def _of_pair(one: Any, other: Any) -> Any:
    if isinstance(other, BaseException):
        other = f"{type(other).__name__}: {other}"
    if isinstance(one, bool) and other is not None:
        return other if one else {"error": other or "the tool failed"}
    if other is None or (other == "" and one is not None):
        return one
    return {"error": other} if one is None else (one, other)


def _is_blocks(value: list[Any]) -> bool:
    keys = {"type", "text", "annotations", "meta", "_meta", "id"}
    return bool(value) and all(
        is_dict(one) and one.get("type") == "text" and isinstance(one.get("text"), str) and one.keys() <= keys
        for one in value
    )


def _joined(blocks: list[Any]) -> str:
    return "\n".join(block["text"] for block in blocks)


# --- errors ---


_SAID = ("message", "detail", "details", "reason", "msg", "content", "data", "code", "status", "success", "ok")
_BEGINS = re.compile(
    r"[\W_]{0,6}(tool error|error|traceback|sorry\b|forbidden\b|unauthori[sz]ed\b|bad request|not found\b|no such |"
    r"(cannot|can\Wt|could not|couldn\Wt|unable to|failed to|invalid|illegal|unsupported|unrecogni[sz]ed) |"
    r"(access|permission) denied|missing (a )?(required|parameter|argument|field)|"
    r"unknown \w+( name| id)?\b\W*['\"`:(]|unknown (tool|function|action|command|argument|parameter|method)\b)",
    re.IGNORECASE,
)
_RAISED = re.compile(r"[\W_]{0,6}(\w+\.)*[A-Z]\w*(Error|Exception)\b\s*[:(]")
_MUST = re.compile(
    r"['\"`]?[a-z][a-z0-9_]*['\"`]? (must |is (required|missing|invalid|not (a|an|one|valid|allowed|in))\b)"
)
_INNER = r"(?:[^.!?\n]|\.(?=\S))"
_ABSENT = re.compile(
    rf"{_INNER}{{1,120}}\b(not found|does(n\Wt| not) exist|no such \w+)\b{_INNER}{{0,60}}[.!]?\s*$", re.IGNORECASE
)


def speaks_of_error(value: Any) -> bool:
    """True if an observation reports an error, by a field or by its first words.

    Examples: `{"error": ...}`, `{"ok": false}`, `{"success": false}`, an HTTP status from 400 on, as data or JSON text;
    "error ...", "Invalid ...", "KeyError: ...", "amount must be ...", "Order 7 not found.".
    """
    if isinstance(value, str) and len(value) <= _SHORT:
        value = parsed(value)
    return _by_field(value) if is_dict(value) else isinstance(value, str) and _by_words(value)


def _by_words(value: str) -> bool:
    is_short = len(value) <= _SHORT and (_MUST.match(value) or _ABSENT.match(value))
    return bool(_BEGINS.match(value) or _RAISED.match(value) or is_short)


def _by_field(value: dict[str, Any]) -> bool:
    flags = *((name, True) for name in ("is_error", "isError")), *((name, False) for name in ("ok", "success"))
    if value.get("error") or any(value.get(name) is flag for name, flag in flags):
        return True
    if any(type(value.get(name)) is int and 400 <= value[name] < 600 for name in ("status", "status_code")):
        return True
    if value.get("errors") and all(one is None for name, one in value.items() if name != "errors"):
        return True
    if len(value) == 1 and (name := next(iter(value))) in _ALONE and isinstance(value[name], str):
        return _by_words(value[name])
    says = str(value.get("status") or "").lower() in ("error", "fail", "failed", "failure")
    return says and value.keys() <= set(_SAID) and any(isinstance(value.get(name), str) for name in _SAID[:6])
