"""Picture of the proof: its goals and values as one SVG, from the rows of `--json` alone."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bench import _table
from proof.rows import Row

WIDTH, LINE, TOP = 960, 22, 64
COLOURS = {True: "#1a7f37", False: "#cf222e", None: "#57606a"}


def svg(rows: Sequence[Row]) -> str:
    """Returns the rows that have a goal, one line each; the mark at the left says whether it is met."""
    shown = [one for one in rows if one["goal"]]
    met = sum(bool(one["ok"]) for one in shown)
    lines = [
        _text(16, 26, f"What the environments taught: {met} of {len(shown)} goals are met", size=17, weight="bold")
    ]
    lines.append(_text(16, 46, "make proof: seeds, sizes and limits are in proof/README.md", colour="#57606a"))
    for number, one in enumerate(shown):
        y = TOP + LINE * (number + 1)
        mark = "✓" if one["ok"] else "✗"
        lines.append(_text(16, y, mark, colour=COLOURS[one["ok"]], weight="bold"))
        lines.append(_text(40, y, one["name"]))
        value = "-" if one["value"] is None else _table._number(one["value"])
        lines.append(_text(800, y, value, anchor="end", weight="bold"))
        lines.append(_text(812, y, f"{one['unit']}  goal {one['goal']}", colour="#57606a"))
    height = TOP + LINE * (len(shown) + 1)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
    style = "<style>text{font-family:system-ui,sans-serif;font-size:13px}</style>"
    return "\n".join([head, style, f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>', *lines, "</svg>\n"])


def _text(
    x: int,
    y: int,
    words: str,
    *,
    size: int = 13,
    weight: str = "normal",
    colour: str = "#1f2328",
    anchor: str = "start",
) -> str:
    look = f'font-weight="{weight}" fill="{colour}" text-anchor="{anchor}" style="font-size:{size}px"'
    return f'<text x="{x}" y="{y}" {look}>{escape(words)}</text>'
