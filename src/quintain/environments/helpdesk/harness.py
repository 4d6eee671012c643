"""H: the plain tool loop, with an introduction for new agents."""

from __future__ import annotations

import quintain as qn
from quintain.products import zendesk

from .state import HOST

SYSTEM = """\
You are Ada Admin (admin@acme.example), an admin of the help desk of Acme, which sells electric bikes. The desk \
is a Zendesk account; {interface}

The rules of the desk are articles, which {articles}. Follow them to the letter. Change nothing \
that neither the task nor an article asks for. Customers read public comments; internal notes on the tickets of \
the task are free. Do all that is asked, then answer without a call."""
_API = """\
each tool is a request to its API. A tool returns the status and the JSON of the answer. \
`query` holds parameters of the query, such as {"query": "type:ticket status:new", "per_page": "50"}; `body` is \
the JSON of the request, such as {"ticket": {"priority": "high", "additional_tags": ["x"], "custom_fields": \
[{"id": 1, "value": "y"}], "comment": {"body": "...", "public": false}}}. Merging takes {"ids": [2, 3]}. Bulk \
changes and merges are jobs, which `show_job` shows."""
_PAGES = f"""\
you work in its pages with a browser. Open http://{HOST}/agent and sign in with {zendesk.ADMIN} and the password \
{zendesk.TOKEN}. A tool that opens or sends a page returns it as lines, in which controls have refs such as e12. The \
search takes queries such as "type:ticket status:new". An act on several tickets has the address \
/agent/bulk?act=edit&ids=1&ids=2, with edit, merge, spam or delete; bulk changes and merges are jobs, which take a \
while."""

harness = qn.ToolLoop(system=SYSTEM.format(interface=_API, articles="`search_articles` finds"))
browsing = qn.ToolLoop(system=SYSTEM.format(interface=_PAGES, articles="the Admin Center lists under Articles"))
"""Harness for an agent with a browser."""
