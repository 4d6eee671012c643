"""Accessibility snapshot of a page: roles, names and states, in the lines that Chromium's has in Playwright.

It knows what pages without scripts hold, and no style sheet: an element is hidden by `hidden`, `aria-hidden`, a closed
`details` or what HTML itself hides.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from .html import Document, Element

Values = Mapping[str, Any]
"""What the fields of a page hold by the number of the element, where it is not what the page began with."""

_ROLES = {
    "article": "article", "aside": "complementary", "blockquote": "blockquote", "button": "button",
    "caption": "caption", "code": "code", "dd": "definition", "del": "deletion", "details": "group", "dt": "term",
    "em": "emphasis", "fieldset": "group", "h1": "heading", "h2": "heading", "h3": "heading", "h4": "heading",
    "h5": "heading", "h6": "heading", "hr": "separator", "img": "img", "ins": "insertion", "li": "listitem",
    "main": "main", "mark": "mark", "nav": "navigation", "ol": "list", "option": "option", "output": "status",
    "p": "paragraph", "progress": "progressbar", "search": "search", "strong": "strong", "sub": "subscript",
    "sup": "superscript", "table": "table",
    "tbody": "rowgroup", "td": "cell", "textarea": "textbox", "tfoot": "rowgroup", "thead": "rowgroup",
    "time": "time", "tr": "row", "ul": "list",
}  # fmt: skip
_INPUTS = {
    "button": "button", "checkbox": "checkbox", "file": "button", "image": "button", "number": "spinbutton",
    "radio": "radio", "range": "slider", "reset": "button", "search": "searchbox", "submit": "button",
}  # fmt: skip
_FROM_CONTENT = {"button", "cell", "checkbox", "columnheader", "heading", "link", "option", "radio", "row", "rowheader",
                 "tab"}  # fmt: skip
_HIDDEN = {"datalist", "head", "noscript"}
_INLINE = {
    "a", "abbr", "b", "bdi", "cite", "code", "del", "dfn", "em", "i", "ins", "kbd", "label", "mark", "q", "s", "samp",
    "small", "span", "strong", "sub", "sup", "time", "u", "var",
}  # fmt: skip
_SECTIONS = ("article", "aside", "main", "nav", "section")


def value_of(page: Document, element: Element, values: Values) -> Any:
    """Returns what a control holds: text, True for one that is checked, a list for several options."""
    given = values.get(str(page.numbers.get(element, 0)))
    if given is not None:
        return given
    if element.tag == "textarea":
        return element.text.removeprefix("\n")
    if element.tag != "select":
        is_mark = element.attrs.get("type") in {"checkbox", "radio"}
        return "checked" in element.attrs if is_mark else element.attrs.get("value", "")
    options = [one for one in element.all() if one.tag == "option"]
    chosen = [option_value(one) for one in options if "selected" in one.attrs]
    if "multiple" in element.attrs:
        return chosen
    return chosen[-1] if chosen else next((option_value(one) for one in options if "disabled" not in one.attrs), "")


def option_value(option: Element) -> str:
    """Returns what an option sends."""
    value = option.attrs.get("value")
    return _one_line(option.text) if value is None else value


def role_of(page: Document, element: Element) -> str:
    """Returns the role of an element; empty if it has none."""
    if element.role is None:
        element.role = _role(page, element)
    return element.role


def _role(page: Document, element: Element) -> str:
    attrs = element.attrs
    if "role" in attrs and (role := attrs["role"].partition(" ")[0]):
        return "" if role in {"none", "presentation"} else role
    special = _SPECIAL.get(element.tag)
    return special(page, element) if special else _ROLES.get(element.tag, "")


def _input_role(_: Document, element: Element) -> str:
    kind = element.attrs.get("type", "text").lower()
    is_list = "list" in element.attrs and kind in {"text", "search", "email"}
    return "combobox" if is_list else _INPUTS.get(kind, "textbox")


_SPECIAL: dict[str, Callable[[Document, Element], str]] = {
    "a": lambda page, one: "link" if "href" in one.attrs else "",
    "input": _input_role,
    "select": lambda page, one: "listbox" if "multiple" in one.attrs else "combobox",
    "header": lambda page, one: "" if one.around(*_SECTIONS) else "banner",
    "footer": lambda page, one: "" if one.around(*_SECTIONS) else "contentinfo",
    "form": lambda page, one: "form" if _given_name(page, one) else "",
    "section": lambda page, one: "region" if _given_name(page, one) else "",
    "th": lambda page, one: "rowheader" if one.attrs.get("scope") == "row" else "columnheader",
    "img": lambda page, one: "" if one.attrs.get("alt") == "" else "img",
}


def _hidden(element: Element) -> bool:
    tag, attrs, around = element.tag, element.attrs, element.parent
    if tag in _HIDDEN or (attrs and ("hidden" in attrs or attrs.get("aria-hidden") == "true")):
        return True
    if tag == "input" and attrs.get("type") == "hidden":
        return True
    return around is not None and around.tag == "details" and "open" not in around.attrs and tag != "summary"


def visible(element: Element) -> bool:
    """True unless the element or one around it is hidden."""
    return not _hidden(element) and (element.parent is None or visible(element.parent))


# -- names


def name_of(page: Document, element: Element) -> str:
    """Returns the accessible name of an element."""
    if element.name is None:
        element.name = _one_line(_name(page, element, role_of(page, element)))
    return element.name


def _name(page: Document, element: Element, role: str) -> str:
    if (name := _given_name(page, element)) or (name := _native_name(page, element)):
        return name
    if role in _FROM_CONTENT and (name := _one_line(_content(page, element))):
        return name
    return element.attrs.get("title") or (element.attrs.get("placeholder", "") if element.tag in CONTROL_TEXT else "")


CONTROL_TEXT = ("input", "textarea")


def _given_name(page: Document, element: Element) -> str:
    attrs = element.attrs
    if "aria-labelledby" in attrs and (ids := attrs["aria-labelledby"].split()):
        labelled = " ".join(_one_line(_content(page, page.ids[one])) for one in ids if one in page.ids)
        if name := _one_line(labelled):
            return name
    return _one_line(attrs["aria-label"]) if "aria-label" in attrs else ""


def _native_name(page: Document, element: Element) -> str:
    tag = element.tag
    if tag in {"input", "textarea", "select"}:
        if element.attrs.get("type") in {"submit", "reset", "button"}:
            return element.attrs.get("value", "")
        return " ".join(_one_line(_content(page, one, within=element)) for one in page.labels.get(element, ()))
    if tag in {"fieldset", "table"}:
        wanted = {"fieldset": "legend", "table": "caption"}[tag]
        inner = (one for one in element.children if isinstance(one, Element) and one.tag == wanted)
        return next((_content(page, one) for one in inner), "")
    return element.attrs.get("alt", "") if tag == "img" else ""


def _content(page: Document, element: Element, *, within: Element | None = None) -> str:
    """Returns the text of an element; `within` is the control whose label it is, which does not name itself."""
    parts: list[str] = []
    for child in element.children:
        if isinstance(child, str):
            parts.append(child)
        elif child is not within and not _hidden(child):
            text = _given_name(page, child) or _native_name(page, child)
            if not text and child.tag not in {"input", "select", "textarea"}:
                text = _content(page, child, within=within)
            parts.append(text if child.tag in _INLINE else f" {text} ")
    return "".join(parts)


def _one_line(text: str) -> str:
    if not text.isascii():
        text = text.replace("\u200b", "").replace("\u00ad", "")
    return " ".join(text.split())


# -- the lines of a page


Part = str | list[str]
"""Text, or the lines of a node."""


class _Shot(NamedTuple):
    page: Document
    values: Values
    numbers: Mapping[Element, int]
    """Numbers of the elements that get a ref."""
    held: dict[Element, Any]
    """What the lists hold that were met."""


def lines(page: Document, values: Values, *, refs: bool = False) -> list[str]:
    """Returns the lines of a snapshot; with `refs` each control has its number, such as `[ref=e12]`."""
    found: list[Part] = []
    _process(_Shot(page, values, page.numbers if refs else {}, {}), page.body, found, depth=0)
    return _flat(_merged(found), "")


def snapshot(page: Document, values: Values) -> str:
    """Returns the accessibility snapshot of a page."""
    return "\n".join(lines(page, values))


def _process(shot: _Shot, element: Element, out: list[Part], *, depth: int) -> None:
    around = "" if element.tag in _INLINE else " "
    out.append(around)
    for child in element.children:
        if isinstance(child, str):
            out.append(child)
        elif not _hidden(child):
            if role := role_of(shot.page, child):
                out.append(_node(shot, child, role, depth=depth))
            else:
                _process(shot, child, out, depth=depth)
    out.append(around)


def _node(shot: _Shot, element: Element, role: str, *, depth: int) -> list[str]:
    page, attrs = shot.page, element.attrs
    name, below = name_of(page, element), element.children
    children: list[Part]
    if element.tag in CONTROL_TEXT:
        is_text = role not in {"checkbox", "radio"} and attrs.get("type") != "file"
        children = _merged([str(value_of(page, element, shot.values))]) if is_text else []
    elif len(below) == 1 and isinstance(below[0], str):
        text = _one_line(below[0])
        children = [text] if text else []
    else:
        parts: list[Part] = []
        _process(shot, element, parts, depth=depth + 1)
        children = _merged(parts)
    if children == [name]:
        children = []
    indent = "  " * depth
    props = [f"{indent}  - /url: {_value(attrs['href'])}"] if role == "link" and "href" in attrs else []
    placeholder = attrs.get("placeholder", "")
    if role in {"textbox", "searchbox"} and placeholder and placeholder != name:
        props.append(f"{indent}  - /placeholder: {_value(placeholder)}")
    head = f"{role} {encode_basestring(name)}" if name else role
    head += _states(shot, element, role)
    if element in shot.numbers:
        head += f" [ref=e{shot.numbers[element]}]"
    head = f"{indent}- " + ("'" + head.replace("'", "''") + "'" if _quoted(head) else head)
    only = children[0] if len(children) == 1 else None
    if isinstance(only, str) and not props:
        return [f"{head}: {_value(only)}"]
    return [f"{head}:" if children or props else head, *props, *_flat(children, f"{indent}  ")]


def _states(shot: _Shot, element: Element, role: str) -> str:
    is_checked = role in {"checkbox", "radio"} and value_of(shot.page, element, shot.values) is True
    found = " [checked]" if is_checked else ""
    if element.is_disabled and element.tag in {"button", "input", "select", "textarea", "option"}:
        found += " [disabled]"
    if role == "heading":
        return f"{found} [level={element.attrs.get('aria-level') or element.tag[1:]}]"
    if role == "option" and (select := element.around("select")) is not None:
        if select not in shot.held:
            shot.held[select] = value_of(shot.page, select, shot.values)
        held: Any = shot.held[select]
        chosen: list[Any] = held if "multiple" in select.attrs else [held]
        found += " [selected]" if option_value(element) in chosen else ""
    return found


def _merged(parts: list[Part]) -> list[Part]:
    """Joins texts that stand side by side, and drops empty ones."""
    found: list[Part] = []
    texts = ""
    for part in parts:
        if isinstance(part, str):
            texts += part
            continue
        if texts and not texts.isspace() and (text := _one_line(texts)):
            found.append(text)
        texts = ""
        found.append(part)
    if text := _one_line(texts):
        found.append(text)
    return found


def _flat(parts: list[Part], indent: str) -> list[str]:
    found: list[str] = []
    for part in parts:
        if isinstance(part, str):
            found.append(f"{indent}- text: {_value(part)}")
        else:
            found += part
    return found


_QUOTED = re.compile(
    r"""\A\s|\s\Z|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\A-|[\n:](\s|\Z)|\s\#|[\n\r]|\A[&*\],?!>|@"'\#%\[]|[{}`]"""
)
_NUMBER = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|Infinity)|0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+", re.ASCII
)
_SHORT = 200
"""Characters of the texts of which page after page has the same."""
_WORDS = {"y", "n", "yes", "no", "true", "false", "on", "off", "null"}


def _quoted(text: str) -> bool:
    return _known(text) if len(text) < _SHORT else _known.__wrapped__(text)


@functools.lru_cache(maxsize=4096)
def _known(text: str) -> bool:
    is_other = not text or _NUMBER.fullmatch(text) is not None or text.lower() in _WORDS
    return is_other or _QUOTED.search(text) is not None


def _value(text: str) -> str:
    return encode_basestring(text) if _quoted(text) else text
