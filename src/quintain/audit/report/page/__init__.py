"""Report as one HTML file without network access, external scripts or a framework.

markup       elements, with all foreign text escaped
pictures     inline SVG
aligned      trajectories side by side
overview     verdict, coverage, failure rate
findings     one section per finding
style.css, script.js
"""

from __future__ import annotations

import base64
import functools
import hashlib
from pathlib import Path
from typing import Any

from . import findings, overview
from .markup import Html, tag


def page(document: dict[str, Any]) -> str:
    """Returns the HTML page of a report.

    Args:
        document: Result of `quintain.audit.report.document.document`, or content of report.json.
    """
    every = [findings.section(number, one) for number, one in enumerate(document["findings"], 1)]
    body = tag(
        "body",
        tag("a", "Skip to the findings", href="#findings", class_="skip"),
        overview.header(document),
        tag(
            "main",
            tag("section", tag("h2", "Findings", id="findings"), *overview.contents(document)),
            *every,
            overview.coverage(document),
            overview.failures(document),
            overview.load(document),
        ),
        tag("footer", "Made by ", tag("code", "quintain audit"), "; the same is in ", tag("code", "report.json"), "."),
        tag("script", Html(_file("script.js"))),
    )
    return f"<!doctype html>\n{tag('html', _head(document), body, lang='en')}\n"


def _head(document: dict[str, Any]) -> Html:
    """Returns the head; its content security policy allows only the page's own script and style."""
    style, script = _file("style.css"), _file("script.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"Audit of {document['subject']}"),
        tag("style", Html(style)),
    )


@functools.cache
def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def _hash(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
