"""The work of step.py in verifiers 0.4 (v1), through the cheapest seam that its public interface has.

A harness that runs its loop in this process, as `Harness.launch` allows, and a model client that answers from a list.
Everything else is shared by all episodes: one agent, one borrowed local runtime, one interception server. Each episode
keeps one connection to that server open and speaks the least HTTP that it understands; the tool is a dict lookup in the
loop. Prints seconds of CPU of the whole run as JSON; arguments: episodes, calls per episode, concurrency, repeats.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import logging
import os
import sys
import time
from urllib.parse import urlsplit

import verifiers.v1 as vf
from verifiers.v1.clients import Client, EvalClientConfig
from verifiers.v1.harnesses.null import NullHarnessConfig
from verifiers.v1.interception import InterceptionServer
from verifiers.v1.runtimes import ProgramResult, SubprocessConfig
from verifiers.v1.types import AssistantMessage, Response, ToolCall, Usage

EPISODES, CALLS, CONCURRENCY, REPEATS = map(int, sys.argv[1:5])
PRICES = {f"item{n}": n for n in range(1000)}


def _response(turn):
    arguments = json.dumps({"item": f"item{turn}"})
    call = {"id": f"call_{turn}", "type": "function", "function": {"name": "price", "arguments": arguments}}
    if turn < CALLS:
        wire = {"role": "assistant", "content": None, "tool_calls": [call]}
        message = AssistantMessage(tool_calls=[ToolCall(id=f"call_{turn}", name="price", arguments=arguments)])
    else:
        wire = {"role": "assistant", "content": "done"}
        message = AssistantMessage(content="done")
    raw = {
        "id": "canned",
        "object": "chat.completion",
        "created": 0,
        "model": "canned",
        "choices": [{"index": 0, "message": wire, "finish_reason": "tool_calls" if turn < CALLS else "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    usage = Usage(prompt_tokens=1, completion_tokens=1)
    return Response(id="canned", created=0, model="canned", message=message, finish_reason="stop", usage=usage, raw=raw)


RESPONSES = [_response(turn) for turn in range(CALLS + 1)]


class Canned(Client):
    async def get_response(self, dialect, body, sampling, session_id=None, turn=None, headers=None):  # noqa: PLR0917
        return RESPONSES[len(body["messages"]) // 2]


class Loop(vf.Harness[NullHarnessConfig]):
    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):  # noqa: PLR0917
        place = urlsplit(endpoint)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        head = (
            f"POST {place.path}/chat/completions HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {secret}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()
        messages = [{"role": "user", "content": data.prompt}]
        while True:
            body = json.dumps({"model": ctx.model, "messages": messages, "tools": TOOLS}).encode()
            writer.write(b"%s%d\r\n\r\n%s" % (head, len(body), body))
            status, _, headers = (await reader.readuntil(b"\r\n\r\n")).lower().partition(b"\r\n")
            length = headers.partition(b"content-length: ")[2].partition(b"\r\n")[0]
            answer = json.loads(await reader.readexactly(int(length)))
            if b" 200 " not in status:
                raise RuntimeError(f"{status!r}: {answer}")
            message = answer["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                break
            for call in message["tool_calls"]:
                price = PRICES[json.loads(call["function"]["arguments"])["item"]]
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": str(price)})
        writer.close()
        return ProgramResult(exit_code=0, stdout="", stderr="")


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "price",
            "description": "Tell what an item costs.",
            "parameters": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
        },
    }
]


class Lookup(vf.Task):
    @vf.reward
    async def answered(self, trace):
        return float(trace.last_reply == "done")


async def play():
    server = InterceptionServer()
    client = EvalClientConfig(base_url="http://127.0.0.1:1/v1", api_key_var="QUINTAIN_BENCH_NO_KEY")
    server.clients[client.model_dump_json()] = Canned()
    harness = NullHarnessConfig(id="null")
    config = vf.AgentConfig(model="canned", client=client, harness=harness, runtime=SubprocessConfig())
    agent = vf.Agent(config, interception=server)
    agent.harness = Loop(harness)
    tasks = iter([Lookup(vf.TaskData(idx=n, prompt="What do they cost?")) for n in range(EPISODES)])
    scores = []

    async def work():
        for task in tasks:
            trace = await agent.run(task, runtime=box)
            scores.append(trace.reward if trace.ok and trace.num_turns == CALLS + 1 else None)

    async with server, agent, agent.provision() as box:
        started = time.process_time()
        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
        spent = time.process_time() - started
    if scores != [1.0] * EPISODES:
        raise SystemExit(f"{EPISODES - scores.count(1.0)} of {EPISODES} episodes went wrong: {scores[:5]}")
    return spent


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    os.environ.setdefault("QUINTAIN_BENCH_NO_KEY", "none")
    found = min(asyncio.run(play()) for _ in range(REPEATS))
    print(json.dumps({"version": importlib.metadata.version("verifiers"), "cpu_s": found}))
