"""Browser as plain data over the pages of a world: tabs, history, cookies, and what was typed into forms.

It runs no scripts and draws nothing. Its snapshot equals Chromium's of the same page, so an episode that it played can
be shown there. It forks with the world that it belongs to, and its acts replay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, unquote, urlencode, urljoin, urlsplit

import msgspec

import quintain as qn
from quintain.errors import ToolError

from .aria import lines, name_of, option_value, role_of, value_of, visible
from .html import Document, Element, document
from .messages import HttpRequest, HttpResponse
from .noise import Shown
from .world import Web

MOST_REDIRECTS = 20
SHOWN = 12_000
"""Characters of a page that one observation shows at most."""
_MARKS = {"checkbox", "radio"}
_NO_TEXT = {*_MARKS, "button", "file", "hidden", "image", "range", "reset", "submit"}


Held = str | bool | list[str]
"""Text of a field, True for what is checked, or several options."""


class Tab(msgspec.Struct):
    """Tab of a browser.

    Attributes:
        url: Address of the page.
        page: The page.
        back: Addresses before it, the latest last.
        forward: Addresses after it, the next last.
        values: What was typed or chosen since the page came, by the number of the control.
        files: Names and texts of the files that were chosen, by the number of the control.
    """

    url: str = "about:blank"
    page: bytes = b""
    back: list[str] = []
    forward: list[str] = []
    values: dict[str, Held] = {}
    files: dict[str, tuple[str, str]] = {}


class Browser(msgspec.Struct):
    """State of a browser.

    Attributes:
        tabs: The tabs.
        active: Index of the one that is shown.
        cookies: Values by host and name.
        downloads: Files that pages sent, by name.
    """

    tabs: list[Tab] = msgspec.field(default_factory=lambda: [Tab()])
    active: int = 0
    cookies: dict[str, dict[str, str]] = {}
    downloads: dict[str, bytes] = {}

    @property
    def tab(self) -> Tab:
        """The tab that is shown."""
        return self.tabs[self.active]

    @property
    def document(self) -> Document:
        """Page of the tab that is shown."""
        return document(self.tab.page)


class BrowserTools(Web):
    """Mixin with the tools of a browser, for a world that has the field `browser`.

    A control is named by its ref, or by role and name as its line shows them.
    """

    if TYPE_CHECKING:  # Only one base of a world may have fields.
        browser: Browser = msgspec.field(default_factory=Browser)

    @qn.tool
    def goto(self, url: str) -> Shown:
        """Open an address in the tab.

        Args:
            url: Address, such as http://acme.zendesk.localhost/agent; a path is one of the present site.
        """
        self._visit("GET", urljoin(self.browser.tab.url, url))
        return self.read_page()

    @qn.tool
    def click(self, target: str) -> Shown:
        """Click a link, a button, a checkbox or a radio button.

        Args:
            target: Ref such as e12, or role and name such as button "Save".
        """
        control = self._control(target)
        kind = "submit" if control.tag == "button" else "text"
        kind = control.attrs.get("type", kind)
        if control.tag == "a":
            href = control.attrs["href"]
            if not href.startswith("#"):
                self._visit("GET", urljoin(self.browser.tab.url, href))
            return self.read_page()
        if kind in _MARKS:
            return self._mark(control, on=kind == "radio" or not self._value(control))
        form = self.browser.document.owner(control)
        if kind in {"submit", "image"} and form is not None:
            self._submit(form, control)
        return self.read_page()

    @qn.tool
    def fill(self, target: str, text: str) -> str:
        """Replace the text of a field.

        Args:
            target: Ref such as e12, or role and name such as textbox "Subject".
            text: The new text.
        """
        control = self._control(target)
        if control.tag not in {"input", "textarea"} or control.attrs.get("type", "text") in _NO_TEXT:
            raise ToolError(f"{self._line(control)} holds no text; use click, check or select")
        if "readonly" in control.attrs:
            raise ToolError(f"{self._line(control)} is read-only")
        return self._set(control, text if control.tag == "textarea" else text.replace("\n", ""))

    @qn.tool
    def select(self, target: str, option: str) -> str:
        """Choose an option of a list; in a list of several, choose or drop it.

        Args:
            target: Ref such as e12, or role and name such as combobox "Status".
            option: Text of the option.
        """
        control = self._control(target)
        options = [one for one in control.all() if one.tag == "option"] if control.tag == "select" else []
        page = self.browser.document
        found = next((one for one in options if option == name_of(page, one) and not one.is_disabled), None)
        if found is None:
            names = ", ".join(json.dumps(name_of(page, one), ensure_ascii=False) for one in options)
            raise ToolError(f"{self._line(control)} has no option {option!r}; it has: {names or 'none'}")
        chosen = option_value(found)
        if "multiple" not in control.attrs:
            return self._set(control, chosen)
        held = [*self._value(control)]
        return self._set(control, [one for one in held if one != chosen] if chosen in held else [*held, chosen])

    @qn.tool
    def check(self, target: str, *, on: bool = True) -> str:
        """Check a checkbox or a radio button, or uncheck a checkbox.

        Args:
            target: Ref such as e12, or role and name such as checkbox "Public".
            on: False to uncheck.
        """
        control = self._control(target)
        if control.attrs.get("type") not in _MARKS:
            raise ToolError(f"{self._line(control)} cannot be checked")
        return self._mark(control, on=on)

    @qn.tool
    def press_enter(self, target: str) -> Shown:
        """Press Enter in a field, which sends its form as its first button does.

        Args:
            target: Ref such as e12, or role and name such as searchbox "Search".
        """
        control, page = self._control(target), self.browser.document
        form = page.owner(control)
        if control.tag != "input" or form is None:
            raise ToolError(f"{self._line(control)} sends no form")
        buttons = [one for one in page.controls if page.owner(one) is form and _submits(one)]
        self._submit(form, buttons[0] if buttons else None)
        return self.read_page()

    @qn.tool
    def upload(self, target: str, name: str, content: str) -> str:
        """Choose a file for a field of files.

        Args:
            target: Ref such as e12, or role and name of the field.
            name: Name of the file.
            content: Its text.
        """
        control = self._control(target)
        if control.attrs.get("type") != "file":
            raise ToolError(f"{self._line(control)} takes no file")
        self.browser.tab.files[self._number(control)] = (name, content)
        return f"{self._line(control)} holds {name}"

    @qn.tool
    def back(self) -> Shown:
        """Go back to the page before."""
        return self._move(self.browser.tab.back, self.browser.tab.forward)

    @qn.tool
    def forward(self) -> Shown:
        """Go forward to the page that `back` left."""
        return self._move(self.browser.tab.forward, self.browser.tab.back)

    @qn.tool
    def new_tab(self, url: str) -> Shown:
        """Open an address in a new tab.

        Args:
            url: Address; a path is one of the present site.
        """
        address = urljoin(self.browser.tab.url, url)
        self.browser.tabs.append(Tab())
        self.browser.active = len(self.browser.tabs) - 1
        self._visit("GET", address)
        return self.read_page()

    @qn.tool
    def switch_tab(self, number: int) -> Shown:
        """Show another tab.

        Args:
            number: Number of the tab, from 1.
        """
        if not 1 <= number <= len(self.browser.tabs):
            raise ToolError(f"tab {number} does not exist; the browser has {len(self.browser.tabs)}")
        self.browser.active = number - 1
        return self.read_page()

    @qn.tool
    def close_tab(self) -> Shown:
        """Close the tab that is shown."""
        self.browser.tabs.pop(self.browser.active)
        self.browser.tabs = self.browser.tabs or [Tab()]
        self.browser.active = min(self.browser.active, len(self.browser.tabs) - 1)
        return self.read_page()

    @qn.tool
    def find_text(self, text: str) -> str:
        """List the lines of the page that hold a text.

        Args:
            text: Text, without regard to case.
        """
        found = [one for one in self._lines() if text.lower() in one.lower()]
        return "\n".join(found)[:SHOWN] or f"{text!r} is not on the page"

    @qn.tool
    def read_page(self, start: int = 1) -> Shown:
        """Read the page as an accessibility tree, whose controls have refs.

        Args:
            start: First line, where a page is too long for one answer.
        """
        tab, shown, size = self.browser.tab, list[str](), 0
        every = self._lines()
        for line in every[max(0, start - 1) :]:
            size += len(line)
            if size > SHOWN and shown:
                break
            shown.append(line[:SHOWN])
        head = f"{self.browser.document.title} | {tab.url}"
        if len(self.browser.tabs) > 1:
            head += f" | tab {self.browser.active + 1} of {len(self.browser.tabs)}"
        following = max(1, start) + len(shown)
        rest = [f"({len(every) - following + 1} more lines: read_page {following})"] if following <= len(every) else []
        return self.met.show("\n".join([head, *shown, *rest]))

    # -- elements

    def _lines(self) -> list[str]:
        return lines(self.browser.document, self.browser.tab.values, refs=True)

    def _control(self, target: str) -> Element:
        page = self.browser.document
        if match := re.fullmatch(r"\[?(?:ref=)?e(\d+)\]?", target.strip()):
            number = int(match[1])
            found = page.controls[number - 1 : number] if number else []
        else:
            name = target.strip()
            found = [one for one in page.controls if name.startswith(role_of(page, one)) and _called(page, one) == name]
        found = [one for one in found if visible(one)]
        if len(found) != 1:
            refs = ", ".join(f"e{page.numbers[one]}" for one in found)
            what = f"{len(found)} elements are called {target}: {refs}" if found else f"no element {target}"
            raise ToolError(f"{what} on the page {page.title!r}; read_page shows the refs")
        if found[0].is_disabled:
            raise ToolError(f"{self._line(found[0])} is disabled")
        return found[0]

    def _number(self, control: Element) -> str:
        return str(self.browser.document.numbers[control])

    def _value(self, control: Element) -> Any:
        return value_of(self.browser.document, control, self.browser.tab.values)

    def _line(self, control: Element) -> str:
        return _called(self.browser.document, control)

    def _set(self, control: Element, value: Held) -> str:
        self.browser.tab.values[self._number(control)] = value
        held = self._value(control)
        return f"{self._line(control)}: {held if isinstance(held, str) else json.dumps(held, ensure_ascii=False)}"

    def _mark(self, control: Element, *, on: bool) -> str:
        page = self.browser.document
        if control.attrs.get("type") == "radio" and on:
            for other in page.controls:
                same = other.attrs.get("name") == control.attrs.get("name") and other.attrs.get("type") == "radio"
                if same and page.owner(other) is page.owner(control):
                    self.browser.tab.values[self._number(other)] = False
        return self._set(control, on)

    # -- requests

    def _move(self, source: list[str], other: list[str]) -> Shown:
        if not source:
            raise ToolError("the history of the tab has no further page")
        tab, here = self.browser.tab, [*other, self.browser.tab.url]
        rest = source[:-1]
        backward = source is tab.back
        self._visit("GET", source[-1])
        tab.back, tab.forward = (rest, here) if backward else (here, rest)
        return self.read_page()

    def _submit(self, form: Element, button: Element | None) -> None:
        tab = self.browser.tab
        pairs = [*self._fields(form, button)]
        given = {} if button is None else button.attrs
        action = given.get("formaction") or form.attrs.get("action") or tab.url
        url = urljoin(tab.url, action)
        if (given.get("formmethod") or form.attrs.get("method", "get")).lower() == "get":
            texts = [(name, value) for name, value in pairs if isinstance(value, str)]
            self._visit("GET", urlsplit(url)._replace(query=urlencode(texts), fragment="").geturl())
        elif form.attrs.get("enctype") == "multipart/form-data":
            boundary = f"form-{len(tab.page)}"
            while boundary in str(pairs):
                boundary += "x"
            body = b"".join(_part(boundary, name, value) for name, value in pairs) + f"--{boundary}--\r\n".encode()
            self._visit("POST", url, body, kind=f"multipart/form-data; boundary={boundary}")
        else:
            texts = [(name, value if isinstance(value, str) else value[0]) for name, value in pairs]
            self._visit("POST", url, urlencode(texts).encode(), kind="application/x-www-form-urlencoded")

    def _fields(self, form: Element, button: Element | None) -> Iterator[tuple[str, str | tuple[str, str]]]:
        """Yields what a form sends: names, and texts or files."""
        page = self.browser.document
        for control in page.elements:
            name, kind = control.attrs.get("name", ""), control.attrs.get("type", "")
            if control.tag not in {"input", "textarea", "select", "button"} or not name or control.is_disabled:
                continue
            if page.owner(control) is not form or (_submits(control) and control is not button):
                continue
            value = self._value(control)
            if kind in _MARKS:
                if value:
                    yield name, control.attrs.get("value", "on")
            elif kind == "file":
                yield name, self.browser.tab.files.get(self._number(control), ("", ""))
            elif isinstance(value, list):
                for one in cast(list[str], value):
                    yield name, one
            elif kind not in {"reset", "button"}:
                yield name, str(value).replace("\r\n", "\n").replace("\n", "\r\n")

    def _visit(self, method: str, url: str, body: bytes = b"", *, kind: str = "") -> None:
        for _ in range(MOST_REDIRECTS):
            response = self._ask(method, url, body, kind=kind)
            target = response.header("location")
            if response.status not in {301, 302, 303, 307, 308} or not target:
                self._arrive(url, response)
                return
            url = urljoin(url, target)
            if response.status < 307:
                method, body, kind = "GET", b"", ""
        raise ToolError(f"{url} redirects more than {MOST_REDIRECTS} times")

    def _ask(self, method: str, url: str, body: bytes, *, kind: str) -> HttpResponse:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            raise ToolError(f"{url!r} is not an address; give one such as http://host/path")
        jar = self.browser.cookies.setdefault(parts.netloc, {})
        headers = [("accept", "text/html")]
        headers += [("cookie", "; ".join(f"{name}={value}" for name, value in jar.items()))] if jar else []
        headers += [("content-type", kind)] if kind else []
        query = tuple(parse_qsl(parts.query, keep_blank_values=True))
        asked = HttpRequest(method, unquote(parts.path) or "/", parts.netloc, query, tuple(headers), body)
        response = self.respond(asked)
        for name, text in response.headers:
            if name == "set-cookie":
                pair, *rest = text.split(";")
                key, _, value = pair.strip().partition("=")
                jar[key] = value
                if any(one.strip().lower() == "max-age=0" for one in rest):
                    del jar[key]
        return response

    def _arrive(self, url: str, response: HttpResponse) -> None:
        tab = self.browser.tab
        disposition = response.header("content-disposition")
        if disposition.startswith("attachment"):
            self.browser.downloads[disposition.partition('filename="')[2].rstrip('"') or "download"] = response.body
            return
        if url != tab.url and tab.page:
            tab.back.append(tab.url)
            tab.forward = []
        page = response.body
        if not response.header("content-type").startswith("text/html"):
            escaped = page.replace(b"&", b"&amp;").replace(b"<", b"&lt;")
            page = b"<pre>" + escaped + b"</pre>"
        tab.url, tab.page, tab.values, tab.files = url, page, {}, {}


class Browsing(BrowserTools):
    """World with a browser. A world with fields of its own takes `BrowserTools`, and has the field `browser` itself."""

    browser: Browser = msgspec.field(default_factory=Browser)


def _called(page: Document, control: Element) -> str:
    name = name_of(page, control)
    role = role_of(page, control)
    return f"{role} {json.dumps(name, ensure_ascii=False)}" if name else role


def _submits(control: Element) -> bool:
    default = "submit" if control.tag == "button" else ""
    return control.tag in {"button", "input"} and control.attrs.get("type", default) in {"submit", "image"}


def _part(boundary: str, name: str, value: str | tuple[str, str]) -> bytes:
    head = f'--{boundary}\r\ncontent-disposition: form-data; name="{name}"'
    if isinstance(value, str):
        return f"{head}\r\n\r\n{value}\r\n".encode()
    kind = "text/plain" if value[0] else "application/octet-stream"
    return f'{head}; filename="{value[0]}"\r\ncontent-type: {kind}\r\n\r\n{value[1]}\r\n'.encode()
