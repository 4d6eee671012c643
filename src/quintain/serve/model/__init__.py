"""The model's APIs in front of an episode's model, so that an unmodified agent program is a harness.

`CommandHarness` starts the program. `endpoint` speaks OpenAI's chat completions and responses and Anthropic's messages
to it, and offers it the episode's tools over MCP; `conversation` decides what of all that becomes a turn.
"""

from .command import CommandHarness as CommandHarness

__framework__ = True
