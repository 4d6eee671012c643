"""Products on the web: worlds that answer HTTP requests, with resources declared instead of written.

    messages     requests, responses and refusals as plain data
    routes       path templates
    rows         rows of tables as structs and as JSON
    pages        lists by offset and by cursor
    rates        rate limits as plain data
    noise        operational noise: planned refusals, stale answers, duplicates
    world        the world: one database, one clock, one transaction per request; calls due later; jobs
    tools        the tool `http`, and tools made from routes
resources    declared resources: list, show, create, update, delete and the rest
    door         a real address
html         forms that requests send, and pages as trees
look         a variant of a product's pages: names, styles, order of columns
aria         accessibility snapshots of pages
browser      a browser as plain data, over the pages of a world

A product is a function of the world and a request. It reads no real clock, opens no socket and keeps nothing elsewhere,
so an episode forks with its database, and its requests replay it.
"""

from __future__ import annotations

from .messages import HttpRequest, HttpResponse, Refuse, answer, request
from .noise import Noise
from .pages import Listing, cursor_page, offset_page
from .resources import ResourceSpec, Style
from .routes import Routes
from .rows import WebRow
from .tools import HttpTool, route_tools
from .world import TABLES, Exchange, Product, Web

__all__ = [
    "TABLES",
    "Exchange",
    "HttpRequest",
    "HttpResponse",
    "HttpTool",
    "Listing",
    "Noise",
    "Product",
    "Refuse",
    "ResourceSpec",
    "Routes",
    "Style",
    "Web",
    "WebRow",
    "answer",
    "cursor_page",
    "offset_page",
    "request",
    "route_tools",
]
