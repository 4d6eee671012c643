"""The plain browser: its snapshot against Chromium's, its acts, and its place in the world."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from quintain.errors import ToolError
from quintain.resources.database import Database
from quintain.resources.web import TABLES, HttpResponse, Product, Refuse, Routes
from quintain.resources.web.aria import snapshot
from quintain.resources.web.browser import Browsing
from quintain.resources.web.door import Door, serving
from quintain.resources.web.html import HTML, document, form

ROUTES = Routes()
MARKUP = """<!doctype html><html lang="en"><head><title>All  kinds</title></head><body>
<a href="#main">Skip</a>
<header><h1>Acme <span>desk</span></h1><nav aria-label="Main">
<ul><li><a href="/next"><span>Views</span> <b>3</b></a></li>
</ul></nav></header>
<main id="main"><h2>Ticket #1</h2>
<p>Some <b>bold</b> and <em>em</em> and <a href="/x">link: here</a> tail. "quoted" # hash</p>
<p>12</p><p>true</p><p>- dash</p><p>a: b</p><p>null</p><p>#tag</p><p>*x</p><p>{a}</p><p>x #y</p><p>'single'</p>
<p>back\\slash</p><p>2026-01-05</p><p>1.5e3</p><p>0x1f</p><p>Gr&uuml;&szlig;e &amp; mehr</p><p></p>
<form aria-label="Reply" method="post" action="/save?from=1"><label for="b">Text</label>
<textarea id="b" name="text">
line one
line two</textarea>
<label><input type="checkbox" name="public" checked> Public</label>
<fieldset><legend>Mode</legend><label><input type="radio" name="mode" value="1" checked>One</label>
<label><input type="radio" name="mode" value="2">Two</label></fieldset>
<label for="s">Status</label><select id="s" name="status"><option value="n">New</option>
<option value="o" selected>Open</option></select>
<label for="t">Tags</label><select id="t" name="tags" multiple><option selected>a</option><option>b</option></select>
<label for="q">Find</label><input id="q" type="search" value="abc">
<input aria-label="Name" name="name" placeholder="Your name"><input type="number" aria-label="Count" value="3">
<input type="email" aria-label="Mail" name="mail" value="a@b.c" disabled><input type="hidden" name="kept" value="1">
<fieldset disabled><legend>Off</legend><button name="off">Never</button></fieldset>
<button name="go" value="open">Submit as <b>Open</b></button><input type="submit" name="go" value="Go"></form>
<input aria-label="Outside" name="outside" form="f2" value="x">
<form id="f2" method="post" action="/save" enctype="multipart/form-data"><label for="file">File</label>
<input type="file" id="file" name="file"><button>Send</button></form>
<form action="/found"><label for="w">Words</label><input id="w" name="q"><button>Search</button></form>
<table><caption>Rows</caption><thead><tr><th scope="col">A</th><th scope="col">B</th></tr></thead><tbody><tr>
<td><input type="checkbox" aria-label="Select 1"></td><td><a href="/t/1">Subject</a></td></tr>
<tr><th scope="row">r</th><td></td></tr></tbody></table>
<details><summary>More</summary><p>hidden</p></details><details open><summary>Less</summary><p>shown</p></details>
<dl><dt>T</dt><dd>D</dd></dl><hr><section aria-label="Part"><article><h3>Art</h3><time>now</time></article></section>
<section>plain</section><aside aria-label="Context">side</aside><blockquote>q</blockquote><pre>a
 b</pre><img src="data:," alt="picture"><img src="data:," alt=""><strong>s</strong><code>c</code><span hidden>h</span>
<ol><li>one</li></ol><div role="status">ok</div><div role="alert">bad</div><del>old</del> <sub>x</sub> <sup>y</sup><br>
<a>no link</a></main><footer>Foot</footer></body></html>"""


def page(html: str, status: int = 200, *more: tuple[str, str]) -> HttpResponse:
    return HttpResponse(status, html.encode(), [HTML, *more])


@ROUTES.route("GET", "/all")
def everything(world: Any, exchange: Any) -> Any:
    return page(MARKUP)


@ROUTES.route("GET", "/next", "/found")
def following(world: Any, exchange: Any) -> Any:
    return page(f"<title>Next</title><p>{exchange.query.get('q', '')}|{exchange.request.header('cookie')}</p>")


@ROUTES.route("POST", "/save")
def save(world: Any, exchange: Any) -> Any:
    world.saved.append({name: [str(one) for one in some] for name, some in form(exchange.request).items()})
    return HttpResponse(303, b"", [("location", "/next"), ("set-cookie", "seen=1; Path=/")])


@ROUTES.route("GET", "/circle")
def circle(world: Any, exchange: Any) -> Any:
    return HttpResponse(303, b"", [("location", "/circle")])


@ROUTES.route("GET", "/file")
def file(world: Any, exchange: Any) -> Any:
    return HttpResponse(200, b"\x00data", [("content-disposition", 'attachment; filename="a.bin"')])


class Site(Browsing):
    product: ClassVar[Product] = Product(
        name="site",
        routes=ROUTES,
        admit=lambda world, exchange: None,
        finish=lambda world, exchange, response: None,
        unknown=lambda world, exchange: Refuse(404, {"error": "no such path"}),
        stranger=Refuse(401, {}),
        translate=lambda error: None,
        acts={},
        workers={},
        trouble=lambda world, exchange, kind: Refuse(503, {"error": kind}),
    )

    saved: list[dict[str, list[str]]] = []


def site(path: str = "/all", host: str = "a.site.localhost") -> Site:
    world = Site(db=Database(*TABLES))
    world.goto(f"http://{host}{path}")
    return world


def shown(world: Site) -> str:
    return snapshot(world.browser.document, world.browser.tab.values)


# -- beside Chromium


def test_snapshot_equals_that_of_chromium(chromium: Any) -> None:
    tab = chromium.new_page()
    tab.set_content(MARKUP)
    assert snapshot(document(MARKUP.encode()), {}) == tab.locator("body").aria_snapshot()


def test_acts_send_and_show_what_chromium_does(chromium: Any) -> None:
    theirs, door = Site(db=Database(*TABLES)), Door()
    door.add("a", theirs)
    with serving(door) as address:
        host = f"a.site.localhost:{address.rpartition(':')[2]}"
        mine, tab = site(host=host), chromium.new_page()
        tab.goto(f"http://{host}/all")
        for act in (
            (
                lambda: mine.fill('textbox "Text"', "x\ny: z"),
                lambda: tab.get_by_label("Text", exact=True).fill("x\ny: z"),
            ),
            (
                lambda: mine.check('checkbox "Public"', on=False),
                lambda: tab.get_by_label("Public", exact=True).uncheck(),
            ),
            (lambda: mine.click('radio "Two"'), lambda: tab.get_by_label("Two", exact=True).check()),
            (
                lambda: mine.select('combobox "Status"', "New"),
                lambda: tab.get_by_label("Status", exact=True).select_option("n"),
            ),
            (
                lambda: mine.select('listbox "Tags"', "b"),
                lambda: tab.get_by_label("Tags", exact=True).select_option(["a", "b"]),
            ),
            (lambda: mine.fill('textbox "Name"', "é"), lambda: tab.get_by_label("Name", exact=True).fill("é")),
        ):
            for one in act:
                one()
            assert shown(mine) == tab.locator("body").aria_snapshot()
        mine.click('button "Submit as Open"')
        tab.get_by_role("button", name="Submit as Open").click()
        assert shown(mine) == tab.locator("body").aria_snapshot()
        assert mine.browser.tab.url == tab.url
    assert door.failures == {}
    assert mine.saved == theirs.saved != []


# -- without it


def test_form_sends_what_it_holds() -> None:
    world = site()
    world.click('button "Go"')
    assert world.saved == [
        {"text": ["line one\nline two"], "public": ["on"], "mode": ["1"], "status": ["o"], "tags": ["a"], "name": [""],
         "kept": ["1"], "go": ["Go"]}
    ]  # fmt: skip
    assert world.browser.cookies == {"a.site.localhost": {"seen": "1"}}
    assert "seen=1" in world.read_page()


def test_form_of_files_sends_file_and_outer_field() -> None:
    world = site()
    world.upload('button "File"', "form-1", "form-2\r\n--form")
    world.click('button "Send"')
    assert world.saved == [{"outside": ["x"], "file": [str(("form-1", "text/plain", b"form-2\r\n--form"))]}]


def test_enter_sends_the_form_of_a_field() -> None:
    world = site()
    world.fill('textbox "Words"', "a&b=ü")
    assert "a&b=ü|" in world.press_enter('textbox "Words"')
    assert world.browser.tab.url.endswith("/found?q=a%26b%3D%C3%BC")


def test_history_and_tabs_keep_their_pages() -> None:
    world = site()
    world.click('link "Views 3"')
    assert world.back().startswith("All kinds |")
    assert world.forward().startswith("Next |")
    with pytest.raises(ToolError, match="history"):
        world.forward()
    assert "tab 2 of 2" in world.new_tab("/all")
    assert world.switch_tab(1).startswith("Next |")
    world.close_tab()
    assert world.close_tab().startswith(" | about:blank")


def test_fork_takes_the_browser_along() -> None:
    world = site()
    world.fill('textbox "Name"', "mine")
    twin = world.copy()
    twin.fill('textbox "Name"', "other")
    assert world.find_text("- text: mine").endswith("mine")
    assert twin.find_text("- text: other").endswith("other")


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda world: world.click("e999"), "no element e999"),
        (lambda world: world.click("e0"), "no element e0"),
        (lambda world: world.click('button "Never"'), "is disabled"),
        (lambda world: world.fill('textbox "Mail"', "x"), "is disabled"),
        (lambda world: world.fill('link "Skip"', "x"), "holds no text"),
        (lambda world: world.select('combobox "Status"', "Closed"), 'it has: "New", "Open"'),
        (lambda world: world.check('textbox "Name"'), "cannot be checked"),
        (lambda world: world.upload('textbox "Name"', "a", "b"), "takes no file"),
        (lambda world: world.press_enter('link "Skip"'), "sends no form"),
        (lambda world: world.switch_tab(9), "tab 9 does not exist"),
        (lambda world: world.goto("ftp://x/y"), "not an address"),
        (lambda world: world.goto("/circle"), "redirects more than"),
    ],
)  # fmt: skip
def test_mistake_is_told_and_changes_nothing(act: Any, words: str) -> None:
    world = site()
    before = shown(world)
    with pytest.raises(ToolError, match=words):
        act(world)
    assert shown(world) == before


def test_download_is_kept_and_the_page_stays() -> None:
    world = site()
    assert world.goto("/file").startswith("All kinds |")
    assert world.browser.downloads == {"a.bin": b"\x00data"}


def test_long_page_is_read_in_parts() -> None:
    world = site()
    world.browser.tab.page = "".join(f"<p>{'x' * 900} {n}</p>" for n in range(30)).encode()
    first = world.read_page()
    assert first.endswith("read_page 14)")
    assert world.read_page(14).splitlines()[1].endswith(" 13")
    assert world.find_text("X 29").endswith(" 29")
