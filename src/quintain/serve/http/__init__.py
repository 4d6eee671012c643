"""The HTTP side of serving: the application, its server, authentication, limits and metrics.

server      the process: uvicorn, its first line, and an orderly end
app         all protocols on one port
asgi        requests, bodies, JSON and server-sent events
auth, keys  access: keys with roles, rate limits, host names and origins
limits      limits of callers
problems    lists of problems in the format of FastAPI
metrics     metrics, and the log of failures
mcp_sdk     parts of MCP's SDK that several protocols share
"""
