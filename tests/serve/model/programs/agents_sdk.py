"""An agent of OpenAI's Agents SDK: `agents_sdk.py chat_completions|responses SYSTEM PROMPT`."""

# mypy: ignore-errors
# pyright: basic, reportMissingImports=false

import asyncio
import os
import sys

from agents import Agent, Runner, set_default_openai_api, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp

set_tracing_disabled(True)
set_default_openai_api(sys.argv[1])


async def main():
    async with MCPServerStreamableHttp(params={"url": os.environ["QUINTAIN_MCP_URL"]}) as server:
        agent = Agent(name="ringer", instructions=sys.argv[2], mcp_servers=[server], model="gpt-x")
        sys.stdout.write((await Runner.run(agent, sys.argv[3])).final_output)


asyncio.run(main())
