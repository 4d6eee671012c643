"""APIs in front of an episode's model, with which an unmodified agent program is a harness.

`CommandHarness` starts the program. `endpoint` serves OpenAI's chat completions and responses, Anthropic's messages,
and the episode's tools over MCP to the program; `conversation` records its requests as turns.
"""

from .command import CommandHarness as CommandHarness

__framework__ = True
