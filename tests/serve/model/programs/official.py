"""An agent on the official SDKs: `official.py chat|responses|messages whole|stream`, the episode's tools over MCP."""

# mypy: ignore-errors
# pyright: basic, reportMissingImports=false

import asyncio
import json
import os
import sys

import anthropic
import openai
from mcp import Client

API, STREAM = sys.argv[1], sys.argv[2] == "stream"
PREFIX = "mcp__bell__"


async def chat(prompt, listed, act):
    client = openai.AsyncOpenAI()
    tools = [
        {
            "type": "function",
            "function": {"name": PREFIX + t.name, "description": t.description, "parameters": t.input_schema},
        }
        for t in listed
    ]
    messages = [{"role": "user", "content": prompt}]
    while True:
        asked = {"model": "gpt-x", "messages": messages, "tools": tools}
        if STREAM:
            async with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
                done = await stream.get_final_completion()
        else:
            done = await client.chat.completions.create(**asked)
        assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens > 0
        said = done.choices[0].message
        calls = [
            {"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}}
            for c in said.tool_calls or ()
        ]
        messages.append({"role": "assistant", "content": said.content} | ({"tool_calls": calls} if calls else {}))
        if not calls:
            return said.content
        for call in calls:
            found = await act(call["function"]["name"], json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": found})


async def responses(prompt, listed, act):
    client = openai.AsyncOpenAI()
    tools = [
        {
            "type": "function",
            "name": PREFIX + t.name,
            "description": t.description,
            "parameters": t.input_schema,
            "strict": False,
        }
        for t in listed
    ]
    asked = {"model": "gpt-x", "input": prompt, "tools": tools, "instructions": "Be brief."}
    while True:
        if STREAM:
            async with client.responses.stream(**asked) as stream:
                done = await stream.get_final_response()
        else:
            done = await client.responses.create(**asked)
        assert done.usage.total_tokens > 0
        calls = [item for item in done.output if item.type == "function_call"]
        if not calls:
            return done.output_text
        asked["previous_response_id"] = done.id
        asked["input"] = [
            {
                "type": "function_call_output",
                "call_id": call.call_id,
                "output": await act(call.name, json.loads(call.arguments)),
            }
            for call in calls
        ]


async def messages(prompt, listed, act):
    client = anthropic.AsyncAnthropic()
    tools = [{"name": PREFIX + t.name, "description": t.description, "input_schema": t.input_schema} for t in listed]
    said = [{"role": "user", "content": prompt}]
    while True:
        asked = {
            "model": "claude-x",
            "max_tokens": 1000,
            "system": "Be brief.",
            "messages": said,
            "tools": tools,
        }
        if STREAM:
            async with client.messages.stream(**asked) as stream:
                done = await stream.get_final_message()
        else:
            done = await client.messages.create(**asked)
        assert done.usage.output_tokens > 0
        said.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in done.content]})
        calls = [block for block in done.content if block.type == "tool_use"]
        if not calls:
            return done.content[-1].text
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": await act(call.name, call.input)}
            for call in calls
        ]
        said.append({"role": "user", "content": results})


async def main():
    async with Client(os.environ["QUINTAIN_MCP_URL"]) as client:

        async def act(name, arguments):
            result = await client.call_tool(name.removeprefix(PREFIX), arguments)
            return "".join(block.model_dump()["text"] for block in result.content)

        play = {"chat": chat, "responses": responses, "messages": messages}[API]
        sys.stdout.write(await play(sys.stdin.read(), (await client.list_tools()).tools, act))


asyncio.run(main())
