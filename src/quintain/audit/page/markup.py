"""HTML that cannot be broken into: whatever is no `Html` is escaped, and what is invisible is shown."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from typing import Any

from quintain.audit.data import is_dict, is_list

_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Controls, zero widths, and what turns the direction of text around; surrogates, which UTF-8 cannot hold."""
_VOID = frozenset({"br", "col", "link", "meta", "path", "line", "rect", "circle"})


class Html(str):
    """Markup of our own."""

    __slots__ = ()


def text(value: object) -> Html:
    """Anybody's words as text: nothing in them is markup, and nothing in them is invisible."""
    shown = _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", str(value))
    return Html(html.escape(shown, quote=True))


def tag(name: str, /, *inside: object, **attributes: object) -> Html:
    """An element. `class_` is written as class, `aria_label` as aria-label; an attribute that is None is left out."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{said}>" if name in ("br", "col", "link", "meta") else f"<{name}{said}/>")
    return Html(f"<{name}{said}>{join(inside)}</{name}>")


def join(parts: Iterable[object], between: object = "") -> Html:
    """Parts, each escaped unless it is markup already; None is nothing."""
    return Html(text_of(between).join(text_of(part) for part in parts if part is not None))


def text_of(part: object) -> Html:
    return part if isinstance(part, Html) else text(part)


_NARROW = 60
"""Characters that stand on one line."""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)


def words(value: Any) -> str:
    """A value as people read it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else _json(value)


def lines(value: Any) -> str:
    """The same with an entry of a dict or list on each line, also where a text is JSON and nothing is lost by it."""
    if isinstance(value, str):
        try:
            found = json.loads(value) if value[:1] in ("{", "[") else None
        except ValueError:
            return value
        is_whole = "".join(json.dumps(found, ensure_ascii=False).split()) == "".join(value.split())
        return lines(found) if is_whole and isinstance(found, dict | list) else value
    if is_dict(value) and len(words(value)) > _NARROW:
        inside = [f"  {json.dumps(str(key), ensure_ascii=False)}: {_json(one)}" for key, one in value.items()]
        return "{\n" + ",\n".join(inside) + "\n}"
    if is_list(value) and len(words(value)) > _NARROW:
        return "[\n" + ",\n".join(f"  {_json(one)}" for one in value) + "\n]"
    return words(value)


def plural(count: int, noun: str) -> str:
    """As in "1 episode" and "2 episodes"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
