"""OpenEnv: one socket or session is one episode at a time, `reset` begins it, each `step` is a turn.

`wire` is what stands in frames and bodies, `sessions` whose episode a step belongs to, `socket` the WebSockets, `rpc`
the JSON-RPC of /mcp (which is not MCP), `pages` the rest of HTTP, `schemas` what /schema and /openapi.json say.
"""

from .pages import OpenEnv as OpenEnv
