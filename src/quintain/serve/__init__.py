"""Serving: environments behind the protocols of trainers and agents.

episodes/   open episodes, whatever protocol plays them: all of them in `host`, one in `live`
journal/    the log from which a killed server continues: its entries, and SQLite in `database`
http/       one port for all protocols: the server, its keys, its limits
control/    JSON under /v1; `once` answers a repeated `Idempotency-Key`
ors/        Open Reward Standard: sessions in `app`, tool calls in `calling`
openenv/    OpenEnv: `reset` and `step` in `session`, below its sockets and pages
mcp/        Model Context Protocol, over HTTP and stdio
model/      the APIs of a model, for an agent program that is the harness
client/     `quintain.connect`: environments of another server
errors      refusals, each with an HTTP status
names       names of environments, ids and addresses of episodes
"""

from .episodes.secrets import secret as secret

__framework__ = True
