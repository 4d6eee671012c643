"""Requests that are wrong in some way, one by one, to be sent to our server and to the references.

`*_OTHERWISE` names those to which we answer otherwise on purpose, and why.
"""

from __future__ import annotations

import itertools
import json
from typing import Any, NamedTuple

BROKEN = {
    "nothing": b"",
    "half": b"{",
    "an array": b"[]",
    "null": b"null",
    "a string": b'"x"',
    "two": b"{}{}",
    "no UTF-8": b'{"split": "\xff"}',
    "NaN": b'{"index": NaN, "seed": NaN}',
    "nested": b'{"split": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
}
TASK = {"split": "train", "index": 0}
ADD = {"name": "add", "input": {"by": 1}}
JSON = "application/json"


class Asked(NamedTuple):
    """One request. The session is `open` (an episode was begun in it), `new`, or any other word; None names none."""

    method: str
    path: str
    body: bytes | None = None
    session: str | None = None
    type: str | None = JSON
    headers: dict[str, str] = {}


def _asked(way: str, session: str | None = None) -> Asked:
    method, path = way.split(" ")
    return Asked(method, path, session=session)


def said(value: Any) -> bytes:
    return json.dumps(value).encode()


# --- the Open Reward Standard ---


def _bodies() -> dict[str, Asked]:
    paths = {
        "/counter/tasks": None,
        "/counter/num_tasks": None,
        "/counter/task": None,
        "/counter/task_range": None,
        "/create": "new",
        "/create_session": None,
        "/counter/call": "open",
        "/ping": "open",
        "/delete": "open",
    }
    found = {
        f"{path}: {name}": Asked("POST", path, body, session)
        for (path, session), (name, body) in itertools.product(paths.items(), BROKEN.items())
    }
    for session, path in itertools.product((None, "nobody"), ("/create", "/counter/call")):
        found[f"{path} of {session}: half"] = Asked("POST", path, b"{", session)
        found[f"{path} of {session}: an array"] = Asked("POST", path, b"[]", session)
    return found


def _tasks() -> dict[str, Asked]:
    splits = {"missing": {}, "a number": {"split": 1}, "null": {"split": None}, "nowhere": {"split": "nowhere"}}
    splits |= {"empty": {"split": ""}, "and more": {"split": "train", "more": 1}}
    found = {
        f"/counter/{path}: split {name}": Asked("POST", f"/counter/{path}", said(body))
        for path, (name, body) in itertools.product(("tasks", "num_tasks", "task_range"), splits.items())
    }
    places = {"a string": "1", "a float": 1.0, "a fraction": 1.5, "true": True, "null": None, "a list": [0]}
    places |= {"99": 99, "-99": -99, "huge": 10**30}
    for name, place in places.items():
        found[f"/counter/task: index {name}"] = Asked("POST", "/counter/task", said({**TASK, "index": place}))
        found[f"/create: index {name}"] = Asked("POST", "/create", said({**TASK, "index": place}), "new")
        body = {"split": "train", "start": place}
        found[f"/counter/task_range: start {name}"] = Asked("POST", "/counter/task_range", said(body))
    return found


def _sessions() -> dict[str, Asked]:
    wishes: dict[str, dict[str, Any]] = {
        "nothing of a task": {},
        "two tasks": {**TASK, "task_spec": {"id": "train-1", "number": 1}},
        "half a task": {"split": "train"},
        "the other half": {"index": 0},
        "and more": {**TASK, "more": 1},
        "env_name nowhere": {**TASK, "env_name": "nowhere"},
        "env_name a number": {**TASK, "env_name": 1},
        "task_spec a list": {"task_spec": []},
        "task_spec empty": {"task_spec": {}},
        "split nowhere": {**TASK, "split": "nowhere"},
        "secrets": {**TASK, "secrets": {"a": "b"}},
        "secrets of numbers": {**TASK, "secrets": {"a": 1}},
        "secrets a list": {**TASK, "secrets": []},
        "toolset_name": {**TASK, "toolset_name": "codex"},
        "toolset_name a number": {**TASK, "toolset_name": 1},
        "all null": {**TASK, "env_name": None, "task_spec": None},
    }
    found = {f"/create: {name}": Asked("POST", "/create", said(wish), "new") for name, wish in wishes.items()}
    found["/create: twice"] = Asked("POST", "/create", said(TASK), "open")
    found["/create: X-Secrets"] = Asked("POST", "/create", said(TASK), "new", headers={"X-Secrets": "%%%"})
    posts: dict[str, Any] = {"/create": TASK, "/ping": None, "/delete": None, "/delete_session": None}
    posts |= {"/counter/call": ADD, "/nowhere/call": ADD, "/counter/score_group": {"candidates": []}}
    gets = ("/counter/prompt", "/counter/task_tools", "/counter/messages", "/nowhere/prompt")
    for session in (None, "", "nobody"):
        for path, body in posts.items():
            sent = None if body is None else said(body)
            if (path, session) != ("/create", "nobody"):
                found[f"{path}: session {session!r}"] = Asked("POST", path, sent, session)
        for path in gets:
            found[f"{path}: session {session!r}"] = Asked("GET", path, session=session)
    return found


def _calls() -> dict[str, Asked]:
    calls: dict[str, dict[str, Any]] = {
        "empty": {},
        "no name": {"input": {}},
        "no input": {"name": "add"},
        "input null": {"name": "add", "input": None},
        "input a list": {"name": "add", "input": []},
        "input a string": {"name": "add", "input": "{}"},
        "name a number": {"name": 1, "input": {}},
        "name null": {"name": None, "input": {}},
        "and more": {**ADD, "more": 1},
        "task_id a number": {**ADD, "task_id": 1},
        "task_id unknown": {**ADD, "task_id": "x"},
        "task_id empty": {**ADD, "task_id": ""},
        "task_id null": {**ADD, "task_id": None},
        "no such tool": {"name": "fly", "input": {}},
        "no tool at all": {"name": "", "input": {}},
        "not for agents": {"name": "__init__", "input": {}},
        "argument of another type": {"name": "add", "input": {"by": "many"}},
        "argument out of bounds": {"name": "add", "input": {"by": 101}},
        "argument missing": {"name": "submit", "input": {}},
        "argument unknown": {"name": "add", "input": {"by": 1, "more": 1}},
        "argument to what takes none": {"name": "peek", "input": {"more": 1}},
        "argument that could be read as a number": {"name": "add", "input": {"by": "1"}},
        "long": {**ADD, "task_id": "x" * 5_000_000},
    }
    return {
        f"/counter/call: {name}": Asked("POST", "/counter/call", said(call), "open") for name, call in calls.items()
    }


def _ways() -> dict[str, Asked]:
    methods = "GET /create, PUT /create, POST /health, DELETE /health, HEAD /health, OPTIONS /health, PATCH /ping"
    methods += ", GET /counter/call, GET /counter/tasks, POST /counter/tools, POST /counter/prompt, HEAD /counter/tools"
    found = {way: _asked(way, "open") for way in methods.split(", ")}
    paths = "/ /nowhere /nowhere/tools /counter /counter/nowhere /counter/health /counter/tools/more /a/b/c /tools"
    paths += " /nowhere/prompt /counter/tools/ //counter/tools /health/ /COUNTER/tools /Health /counter/tools?x=1"
    paths += " /docs /redoc /openapi.json /version /favicon.ico /counter%20/tools"
    found |= {f"GET {path}": Asked("GET", path, session="open") for path in paths.split()}
    types = ("text/plain", "application/x-www-form-urlencoded", None, ";;;", "application/vnd.x+json")
    bodies: dict[str, dict[str, Any]] = {"/counter/tasks": {"split": "train"}, "/counter/call": ADD}
    for kind, (path, body) in itertools.product(types, bodies.items()):
        found[f"{path}: as {kind}"] = Asked("POST", path, said(body), "open", kind)
    return found


ORS: dict[str, Asked] = _bodies() | _tasks() | _sessions() | _calls() | _ways()

UNREAD = (
    "any malformed JSON gets the same answer, no text and too deep alike; the references answer 400, and 500 to NaN"
)
TYPED = "a body is JSON, whatever its type is called; pages of other sites are known by their Origin"
STRICT = 'a place is an integer; "1", 1.0 and true are none'
FITTING = "arguments fit their types, or the agent gets an error"
FIRST = "fields are looked at one after the other, and one that is not there comes first"
WHO = "who asks comes before what is asked"
FRAMEWORK = "the framework's own pages are no part of the protocol"

ORS_OTHERWISE: dict[str, str] = {
    r"/(counter/.*task.*|counter/call|create): (no UTF-8|NaN|nested)": UNREAD,
    r"/counter/(tasks|num_tasks|task|task_range|call): two": FIRST,
    r"/create of None: half|/counter/call of (None|nobody): half": WHO,
    r"/create_session: (half|an array|null|a string|two|no UTF-8|NaN|nested)": "the references do not read it",
    r".*: (index|start) (a string|a float|true)": STRICT,
    r"/create: task_spec empty": "a task is named by its id, or its place",
    r"/counter/call: argument (unknown|to what takes none|that could be read as a number)": FITTING,
    r"/counter/call: long": "a body has a bound",
    r"/create: X-Secrets": "an unreadable one is an error; one reference ignores it, the other answers 500",
    r"GET /(docs|redoc|openapi.json)": FRAMEWORK,
    r".*: as (text/plain|application/x-www-form-urlencoded|None|;;;)": TYPED,
}

# --- OpenEnv ---

STEP = {"type": "call_tool", "tool_name": "add", "arguments": {"by": 1}}


def _openenv_bodies() -> dict[str, Asked]:
    paths = ("/reset", "/step", "/mcp", "/counter/tasks", "/counter/task")
    found = {
        f"{path}: {name}": Asked("POST", path, body) for path, (name, body) in itertools.product(paths, BROKEN.items())
    }
    resets: dict[str, dict[str, Any]] = {
        "seed negative": {"seed": -1},
        "seed a word": {"seed": "x"},
        "seed a string": {"seed": "1"},
        "seed a fraction": {"seed": 1.5},
        "seed true": {"seed": True},
        "episode_id a number": {"episode_id": 1},
        "episode_id long": {"episode_id": "e" * 256},
        "and more": {"prompt": "x"},
        "split nowhere": {"split": "nowhere"},
        "index 99": {"split": "train", "index": 99},
    }
    steps: dict[str, dict[str, Any]] = {
        "no action": {},
        "action null": {"action": None},
        "action a list": {"action": []},
        "action empty": {"action": {}},
        "no tool_name": {"action": {"type": "call_tool"}},
        "tool_name a number": {"action": {"tool_name": 1}},
        "another type": {"action": {**STEP, "type": "jump"}},
        "arguments a list": {"action": {**STEP, "arguments": []}},
        "arguments null": {"action": {**STEP, "arguments": None}},
        "metadata a list": {"action": {**STEP, "metadata": []}},
        "action and more": {"action": {**STEP, "by": 1}},
        "timeout_s 0": {"action": STEP, "timeout_s": 0},
        "timeout_s a word": {"action": STEP, "timeout_s": "x"},
        "request_id long": {"action": STEP, "request_id": "x" * 256},
        "request_id a number": {"action": STEP, "request_id": 1},
        "and more": {"action": STEP, "more": 1},
        "of no episode": {"action": STEP},
    }
    for path, bodies in {"/reset": resets, "/step": steps}.items():
        found |= {f"{path}: {name}": Asked("POST", path, said(body)) for name, body in bodies.items()}
    splits = {"missing": {}, "a number": {"split": 1}, "nowhere": {"split": "nowhere"}}
    splits |= {"and more": {"split": "train", "more": 1}}
    for path, (name, body) in itertools.product(("tasks", "num_tasks", "task_range"), splits.items()):
        found[f"/counter/{path}: split {name}"] = Asked("POST", f"/counter/{path}", said(body))
    for place in (99, "x", None, 1.5):
        found[f"/counter/task: index {place}"] = Asked("POST", "/counter/task", said({**TASK, "index": place}))
    found["/nowhere/tasks"] = Asked("POST", "/nowhere/tasks", said({"split": "train"}))
    return found


def _openenv_ways() -> dict[str, Asked]:
    methods = "GET /reset, GET /step, POST /state, POST /health, DELETE /reset, HEAD /health, OPTIONS /reset, PUT /mcp"
    methods += ", GET /mcp, GET /counter/tasks, POST /counter/splits, GET /ws, POST /ws"
    found = {way: _asked(way) for way in methods.split(", ")}
    paths = "/ /nowhere /nowhere/splits /counter /counter/nowhere /health/ /Health /state /web /counter/splits"
    paths += " /COUNTER/splits /docs /redoc"
    found |= {f"GET {path}": Asked("GET", path) for path in paths.split()}
    bodies = {"/reset": {}, "/mcp": _rpc("tools/list")}
    for kind, (path, body) in itertools.product(("text/plain", None), bodies.items()):
        found[f"{path}: as {kind}"] = Asked("POST", path, said(body), type=kind)
    return found


def _rpc(method: Any, params: Any = None, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, **({} if params is None else {"params": params}), **more}


RPC: dict[str, Any] = {
    "no version": {"method": "tools/list", "id": 1},
    "another version": {**_rpc("tools/list"), "jsonrpc": "1.0"},
    "no method": {"jsonrpc": "2.0", "id": 1},
    "method a number": _rpc(1),
    "no such method": _rpc("fly"),
    "MCP's first word": _rpc("initialize", {}),
    "a notification": {"jsonrpc": "2.0", "method": "notifications/initialized"},
    "params a list": _rpc("tools/call", []),
    "params null": {**_rpc("tools/list"), "params": None},
    "no id": {"jsonrpc": "2.0", "method": "tools/list"},
    "id a list": {**_rpc("tools/list"), "id": [1]},
    "id a fraction": {**_rpc("tools/list"), "id": 1.5},
    "and more": _rpc("tools/list", more=1),
    "a batch": [_rpc("tools/list")],
    "no name": _rpc("tools/call", {}),
    "a call of no session": _rpc("tools/call", {"name": "add"}),
    "a call of nobody's session": _rpc("tools/call", {"name": "add", "session_id": "nobody"}),
    "a list of nobody's session": _rpc("tools/list", {"session_id": "nobody"}),
    "session_id a number": _rpc("tools/list", {"session_id": 1}),
    "arguments a list": _rpc("tools/call", {"name": "add", "arguments": []}),
    "nothing to close": _rpc("openenv/session/close", {}),
    "nobody's to close": _rpc("openenv/session/close", {"session_id": "nobody"}),
    "a session and more": _rpc("openenv/session/create", {"more": 1}),
}

OPENENV: dict[str, Asked] = {
    **_openenv_bodies(),
    **_openenv_ways(),
    **{f"/mcp: {name}": Asked("POST", "/mcp", said(asked)) for name, asked in RPC.items()},
}

ARRAY = "JSON that is no object is a request that is none (-32600); only what is no JSON cannot be parsed (-32700)"
FAILED = "the reference says 500: no such split or task is the caller's mistake"
ABSENT = "the reference has no counts, ranges and single tasks but where an author writes them"

OPENENV_OTHERWISE: dict[str, str] = {
    r"/(reset|step|counter/tasks?): (no UTF-8|NaN|nested)": UNREAD,
    r"/mcp: (an array|null|a string|a batch)": ARRAY,
    r"/mcp: (no UTF-8|two|nested)": FIRST,
    r"/counter/tasks?: two": FIRST,
    r"/counter/tasks?: nothing": "no body is an empty object, as for /reset",
    r"/mcp: arguments a list": "that is the caller's mistake (-32602), and no failure of the server (-32603)",
    r"/mcp: a call of no session": "it would be done in an episode that nobody could see again",
    r"/mcp: a session and more": "what stands there chooses an episode",
    r"/reset: seed (a string|true)": "a seed is an integer",
    r"/(reset|counter/tasks): (split nowhere|index 99)": FAILED,
    r"/counter/(num_tasks|task_range): split nowhere": ABSENT,
    r"/counter/task: index 99": ABSENT,
    r"/step: and more": "a step that is misspelt is not taken",
    r"/step: of no episode": "it would be done in an episode that nobody could see again",
    r"GET /(docs|redoc)": FRAMEWORK,
    r"/reset: as (text/plain|None)": TYPED,
}

FRAMES: dict[str, str | bytes] = {
    "half": "{",
    "empty": "",
    "two": '{"type": "state"} x',
    "an array": "[]",
    "a number": "3",
    "null": "null",
    "bytes": b'{"type": "state"}',
    "nested": "[" * 5_000,
    "a lone surrogate": '{"type": "step", "data": {"tool_name": "\\ud800"}}',
    "NaN": '{"type": "step", "data": {"tool_name": "add", "arguments": {"by": NaN}}}',
    "no type": "{}",
    "another type": '{"type": "fly", "more": 1}',
    "type null": '{"type": null}',
    "type a list": '{"type": ["state"]}',
    "state with data": '{"type": "state", "data": {}}',
    "state and more": '{"type": "state", "more": 1}',
    "close and more": '{"type": "close", "more": 1}',
    "reset null": '{"type": "reset", "data": null}',
    "reset a list": '{"type": "reset", "data": []}',
    "reset with more": '{"type": "reset", "data": {"prompt": "x"}}',
    "reset and more": '{"type": "reset", "more": 1}',
    "reset to nowhere": '{"type": "reset", "data": {"split": "nowhere"}}',
    "reset to 99": '{"type": "reset", "data": {"split": "train", "index": 99}}',
    "reset with a word for a seed": '{"type": "reset", "data": {"seed": "x"}}',
    "step without data": '{"type": "step"}',
    "step null": '{"type": "step", "data": null}',
    "step empty": '{"type": "step", "data": {}}',
    "step wrapped": '{"type": "step", "data": {"action": {"tool_name": "add"}}}',
    "step of another type": '{"type": "step", "data": {"type": "jump", "tool_name": "add"}}',
    "tool_name a number": '{"type": "step", "data": {"tool_name": 3}}',
    "arguments a list": '{"type": "step", "data": {"tool_name": "add", "arguments": []}}',
    "arguments null": '{"type": "step", "data": {"tool_name": "add", "arguments": null}}',
    "step with more": '{"type": "step", "data": {"tool_name": "add", "by": 1}}',
    "step and more": '{"type": "step", "data": {"tool_name": "add"}, "id": 1}',
    "no such tool": '{"type": "step", "data": {"tool_name": "fly"}}',
    "argument of another type": '{"type": "step", "data": {"tool_name": "add", "arguments": {"by": "x"}}}',
    "mcp without data": '{"type": "mcp"}',
    "mcp null": '{"type": "mcp", "data": null}',
    "mcp a list": '{"type": "mcp", "data": []}',
    "mcp empty": '{"type": "mcp", "data": {}}',
    "mcp with no such method": '{"type": "mcp", "data": {"jsonrpc": "2.0", "id": 1, "method": "fly"}}',
}

CLOSES = "the reference closes the socket, and the episode with it"
FRAMES_OTHERWISE: dict[str, str] = {
    "an array|a number|null|bytes|nested": CLOSES,
    "a lone surrogate": "the reference takes it, and fails to answer",
    "NaN": "it is no JSON",
    "reset to (nowhere|99)": "no such split or task is the caller's mistake, and no failure",
    "reset with a word for a seed": "over HTTP the reference refuses it, too",
}
