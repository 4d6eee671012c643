"""HTML: templates that answers are made of, forms that requests send, and pages as trees of elements."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import jinja2
from markupsafe import Markup
from selectolax.lexbor import LexborHTMLParser, LexborNode

from .messages import HttpRequest, HttpResponse, too_large

HTML = ("content-type", "text/html; charset=utf-8")
CONTROLS = frozenset({"input", "textarea", "select", "button"})
SILENT = ("script", "style", "template")
"""Elements whose content is not shown."""
MOST_FIELDS, MOST_FORM = 4096, 4_194_304
"""Fields of a form, and bytes of one without files."""
_PARAMETER = re.compile(r'\b(name|filename)="([^"]*)"')
_TYPE = re.compile(r"^content-type:[ \t]*([^\s;]+)", re.IGNORECASE | re.MULTILINE)


# -- templates and forms


class Templates:
    """Templates of a package's folder `pages`. What they insert is escaped; a name that is missing is an error."""

    def __init__(self, package: str, **shared: Any) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.PackageLoader(package, "pages"),
            autoescape=True,
            auto_reload=False,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals |= shared

    def part(self, name: str, **values: Any) -> Markup:
        """Returns the HTML of a template."""
        return Markup(self._environment.get_template(name).render(**values))  # noqa: S704 (its parts are escaped)

    def answer(self, name: str, *, status: int = 200, **values: Any) -> HttpResponse:
        """Returns the page of a template."""
        return HttpResponse(status, self.part(name, **values).encode(), [HTML])


def form(asked: HttpRequest) -> dict[str, list[Any]]:
    """Returns the fields that a form sent: for each name its values, texts or (file name, type, bytes).

    Raises:
        Refuse: There are too many.
    """
    found: dict[str, list[Any]] = {}
    kind, _, boundary = asked.header("content-type").partition("boundary=")
    if kind.startswith("multipart/form-data"):
        marker = b"\r\n--" + boundary.partition(";")[0].strip().strip('"').encode()
        parts = (b"\r\n" + asked.body).split(marker, MOST_FIELDS + 2)[1:] if boundary else []
        if len(parts) > MOST_FIELDS + 1:
            raise too_large(f"At most {MOST_FIELDS} fields")
        for part in parts:
            head, blank, data = part.partition(b"\r\n\r\n")
            about = head.decode("utf-8", "replace")
            named = dict(_PARAMETER.findall(about))
            if blank and "filename" in named:
                type_ = _TYPE.search(about)
                file = (named["filename"], type_[1].lower() if type_ else "application/octet-stream", data)
                found.setdefault(named.get("name", ""), []).append(file)
            elif blank:
                found.setdefault(named.get("name", ""), []).append(_lines(data.decode("utf-8", "replace")))
        return found
    if len(asked.body) > MOST_FORM or asked.body.count(b"&") >= MOST_FIELDS:
        raise too_large(f"At most {MOST_FIELDS} fields and {MOST_FORM} bytes")
    for name, value in parse_qsl(asked.body.decode("utf-8", "replace"), keep_blank_values=True):
        found.setdefault(name, []).append(_lines(value))
    return found


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


# -- pages


class Element:
    """Element of a page.

    Attributes:
        tag: Name in small letters.
        attrs: Attributes; one without a value is empty.
        children: Elements and texts.
        parent: Element around it.
        is_disabled: True if it is disabled by itself or by a fieldset around it.
        role: Its role, and `name` its accessible name, once `aria` has found them; None before.
    """

    __slots__ = ("attrs", "children", "is_disabled", "name", "parent", "role", "tag")

    def __init__(self, tag: str, attrs: dict[str, str], parent: Element | None, *, is_disabled: bool = False) -> None:
        self.tag, self.attrs, self.parent, self.is_disabled = tag, attrs, parent, is_disabled
        self.children: list[Element | str] = []
        self.role: str | None = None
        self.name: str | None = None

    def all(self) -> Iterator[Element]:
        """Yields the elements below this one, in the order of the page."""
        for child in self.children:
            if isinstance(child, Element):
                yield child
                yield from child.all()

    def around(self, *tags: str) -> Element | None:
        """Returns the nearest element around this one that has one of the names."""
        found = self.parent
        while found is not None and found.tag not in tags:
            found = found.parent
        return found

    @property
    def text(self) -> str:
        """All text below."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class Document:
    """Page as a tree.

    Attributes:
        body: The element `body`.
        title: Title of the page.
        elements: The elements below the body, in the order of the page.
        ids: Elements by their `id`.
        labels: Labels by the element that they name.
        controls: Links and controls in the order of the page; an element's place in it is its number.
    """

    def __init__(self, html: bytes) -> None:
        tree = LexborHTMLParser(html)
        self.body = Element("body", {}, None)
        self.elements: list[Element] = []
        if tree.body is not None:
            _grow(self.body, tree.body, self.elements, is_disabled=False)
        nodes = () if tree.root is None else tree.root.traverse()
        found = next((node for node in nodes if node.tag == "title"), None)
        self.title = "" if found is None else " ".join(found.text().split())
        self.ids = {one.attrs["id"]: one for one in reversed(self.elements) if "id" in one.attrs}
        self.labels: dict[Element, list[Element]] = {}
        for label in self.elements:
            if label.tag == "label":
                inner = (one for one in label.all() if one.tag in CONTROLS)
                named = self.ids.get(label.attrs["for"]) if "for" in label.attrs else next(inner, None)
                if named is not None:
                    self.labels.setdefault(named, []).append(label)
        self.controls = [one for one in self.elements if _acts(one)]
        self.numbers = {one: number for number, one in enumerate(self.controls, 1)}

    def owner(self, control: Element) -> Element | None:
        """Returns the form that a control belongs to."""
        name = control.attrs.get("form")
        return self.ids.get(name) if name is not None else control.around("form")


@functools.lru_cache(maxsize=64)
def document(html: bytes) -> Document:
    """Returns a page as a tree, which must not be changed."""
    return Document(html)


def _grow(element: Element, node: LexborNode, elements: list[Element], *, is_disabled: bool) -> None:
    child, children = node.child, element.children
    while child is not None:
        if child.is_text_node:
            children.append(child.text_content or "")
        elif child.is_element_node and (tag := child.tag) is not None and tag not in SILENT:
            attrs = {name: value or "" for name, value in child.attributes.items()}
            below = Element(tag, attrs, element, is_disabled=is_disabled or "disabled" in attrs)
            children.append(below)
            elements.append(below)
            _grow(below, child, elements, is_disabled=below.is_disabled if tag == "fieldset" else is_disabled)
        child = child.next


def _acts(element: Element) -> bool:
    if element.tag == "a":
        return "href" in element.attrs
    return element.tag in CONTROLS and element.attrs.get("type") != "hidden"
