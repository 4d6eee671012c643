"""Built files of the front end, and episodes as one HTML file that opens without a network."""

from __future__ import annotations

import base64
import hashlib
import html
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quintain import codec
from quintain.errors import UsageError

STATIC = Path(__file__).with_name("static")
TYPES = {
    "index.html": "text/html; charset=utf-8",
    "studio.css": "text/css; charset=utf-8",
    "studio.js": "text/javascript; charset=utf-8",
    "licences.txt": "text/plain; charset=utf-8",
}
"""Files of the front end that the server sends, and their media types."""


def built(name: str) -> bytes:
    """Returns a file of the front end.

    Raises:
        UsageError: The front end was not built.
    """
    try:
        return (STATIC / name).read_bytes()
    except FileNotFoundError:
        raise UsageError("the studio's page is not built in this checkout: run `make web`, which needs Node") from None


def page(title: str, lines: Sequence[bytes], notes: Sequence[str] = (), **facts: Any) -> bytes:
    """Returns an HTML file with some episodes; it loads nothing, and runs one script, which its policy names by hash.

    Args:
        title: Title of the page.
        lines: Lines of `traces.jsonl`.
        notes: Paragraphs below the episodes.
        facts: Further facts for the page, as JSON types: `run`, `environment`.

    Raises:
        UsageError: The front end was not built.
    """
    script, style = built("page.js"), built("studio.css")
    data = codec.json(facts)[:-1] + (b"," if facts else b"") + b'"lines":[' + b",".join(map(bytes.strip, lines)) + b"]}"
    packed = base64.b64encode(zlib.compress(data, 9))
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    head = (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{html.escape(title)}</title>\n<style>"
    )
    parts = (head.encode("utf-8", "replace"), style, b'</style>\n</head>\n<body>\n<div id="app"></div>\n')
    told = "".join(f"<p>{html.escape(note, quote=False)}</p>\n" for note in notes).encode("utf-8", "replace")
    data_block = (b'<script type="application/octet-stream" id="data">', packed, b"</script>\n")
    return b"".join((*parts, told, *data_block, b"<script>", script, b"</script>\n</body>\n</html>\n"))


def _hash(source: bytes) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source).digest()).decode()
