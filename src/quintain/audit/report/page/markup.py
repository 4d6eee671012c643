"""HTML that escapes everything except `Html`, and shows invisible characters."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from typing import Any

from quintain.audit.facts.data import is_dict, is_list

_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Control characters, zero widths, direction marks, and surrogates, which UTF-8 cannot hold."""
_VOID = frozenset({"br", "col", "link", "meta", "path", "line", "rect", "circle"})


class Html(str):
    """Markup that needs no escaping."""

    __slots__ = ()


def text(value: object) -> Html:
    """Returns a value as escaped text with invisible characters shown."""
    shown = _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", str(value))
    return Html(html.escape(shown, quote=True))


def tag(name: str, /, *inside: object, **attributes: object) -> Html:
    """Returns an element; attribute `class_` becomes class, `aria_label` becomes aria-label, None is left out."""
    names = {key: key.rstrip("_").replace("_", "-") for key, value in attributes.items() if value is not None}
    said = "".join(f' {attribute}="{text(attributes[key])}"' for key, attribute in names.items())
    if name in _VOID:
        return Html(f"<{name}{said}>" if name in ("br", "col", "link", "meta") else f"<{name}{said}/>")
    return Html(f"<{name}{said}>{join(inside)}</{name}>")


def join(parts: Iterable[object], between: object = "") -> Html:
    """Returns the parts joined, each escaped unless it is markup; None is skipped."""
    first, *rest = (one if isinstance(one, Html) else text(one) for one in (between, *parts) if one is not None)
    return Html(first.join(rest))


_NARROW = 60  # most characters of a value on one line


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)


def words(value: Any) -> str:
    """Returns a value for people: text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else _json(value)


def lines(value: Any) -> str:
    """Returns a value like `words`, with one line per entry of a dict, a list or JSON text."""
    if isinstance(value, str):
        try:
            found = json.loads(value) if value[:1] in ("{", "[") else None
        except ValueError:
            return value
        is_whole = "".join(json.dumps(found, ensure_ascii=False).split()) == "".join(value.split())
        return lines(found) if is_whole and isinstance(found, dict | list) else value
    if len(words(value)) <= _NARROW or not (is_dict(value) or is_list(value)):
        return words(value)
    named = [f"{_json(str(key))}: {_json(one)}" for key, one in value.items()] if is_dict(value) else map(_json, value)
    inside = ",\n".join(f"  {one}" for one in named)
    return f"{{\n{inside}\n}}" if is_dict(value) else f"[\n{inside}\n]"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
