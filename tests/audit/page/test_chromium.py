"""Page in a browser: no requests, no foreign scripts, legible on a phone, in the dark, on paper, without a mouse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quintain.audit.report.page import page
from tests.audit.page.browser import Browser, program
from tests.audit.page.documents import CLOSING, document, hostile, read, stale

pytestmark = pytest.mark.skipif(program() is None, reason="Chromium is not installed: apt-get install chromium")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page") / "report.html"
    made.write_text(page(document(stale(), hostile(), read())), "utf-8")
    return made


@pytest.fixture(scope="module")
def one() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(one: Browser, path: Path) -> Browser:
    """Opens the page in its first state."""
    one.resize(1200)
    one.like()
    one.open(path)
    return one


def test_the_page_makes_no_request_and_no_complaint(browser: Browser, path: Path) -> None:
    assert browser.requests() == [path.as_uri()]
    assert browser.complaints() == []
    assert browser.run("document.compatMode") == "CSS1Compat"


def test_the_browser_reports_a_broken_page(one: Browser, tmp_path: Path) -> None:
    loud = tmp_path / "loud.html"
    loud.write_text("<!doctype html><img src='nothing.png'><script>console.error('x'); nothing()</script>")
    one.open(loud)
    assert (tmp_path / "nothing.png").as_uri() in one.requests()
    assert len(one.complaints()) >= 2


def test_hostile_words_are_inert(browser: Browser) -> None:
    assert browser.run("window.broken") is None
    assert browser.run("document.querySelectorAll('img, iframe, form, object, a[href^=javascript]').length") == 0
    assert browser.run("document.querySelectorAll('script').length") == 1
    assert browser.run("document.querySelectorAll('article')[1].querySelector('.replay code').textContent") == CLOSING


def test_the_policy_stops_what_would_get_through(browser: Browser) -> None:
    loading = "new Promise(done => { const one = new Image(); one.onload = () => done('loaded'); "
    loading += "one.onerror = () => done('refused'); one.src = 'https://evil.example/x' })"
    assert browser.run(loading) == "refused"
    browser.run("document.body.setAttribute('onclick', 'window.broken = 1'); document.body.click()")
    assert browser.run("window.broken") is None
    assert sum("Content Security Policy" in str(said) for said in browser.complaints()) >= 2


@pytest.mark.parametrize("width", [360, 720, 1200])
def test_the_page_fits_the_screen_width(browser: Browser, width: int) -> None:
    browser.resize(width)
    assert browser.run("document.scrollingElement.scrollWidth") == width
    browser.run("document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert browser.run("document.scrollingElement.scrollWidth") == width


def test_light_and_dark_by_the_system_and_by_hand(browser: Browser) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light, light_picture = browser.run(paper), browser.picture()
    browser.like(scheme="dark")
    dark, dark_picture = browser.run(paper), browser.picture()
    assert light != dark
    assert light_picture != dark_picture
    browser.run("document.getElementById('theme').click()")
    assert browser.run(paper) == light
    assert browser.run("document.getElementById('theme').textContent") == "Dark"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_contrasts_with_its_background(browser: Browser, scheme: str) -> None:
    """WCAG requires 4.5 to 1 for text, on the page's two backgrounds."""
    browser.like(scheme=scheme)
    low = browser.run(CONTRAST)
    assert low == []


CONTRAST = """(() => {
  const parse = said => said.match(/[\\d.]+/g).map(Number);
  const light = said => { const [r, g, b] = parse(said).map(one => one / 255)
    .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const low = [];
  for (const one of document.querySelectorAll("body *")) {
    if (!one.checkVisibility() || one.closest("svg, .long[open]") || ![...one.childNodes].some(
      node => node.nodeType === 3 && node.textContent.trim())) continue;
    let ground = one;
    while (ground !== document.documentElement && parse(getComputedStyle(ground).backgroundColor)[3] === 0)
      ground = ground.parentElement;
    const [a, b] = [light(getComputedStyle(one).color), light(getComputedStyle(ground).backgroundColor)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push([one.tagName, one.className, ratio]);
  }
  return low;
})()"""


def test_paper_has_everything_open_and_no_buttons(browser: Browser) -> None:
    browser.like(scheme="dark", media="print")
    assert browser.run("[...document.querySelectorAll('article h3')].every(one => one.checkVisibility())")
    folded = "[...document.querySelectorAll('details > *:not(summary)')]"
    assert browser.run(f"{folded}.length") > 3
    assert browser.run(f"{folded}.every(one => one.checkVisibility({{contentVisibilityAuto: true}}))")
    assert browser.run("[...document.querySelectorAll('button')].some(one => one.checkVisibility())") is False
    assert browser.run("getComputedStyle(document.documentElement).colorScheme") == "light"
    assert len(browser.send("Page.printToPDF")["data"]) > 10_000


def test_on_a_screen_long_values_are_folded(browser: Browser) -> None:
    folded = "[...document.querySelectorAll('details > *:not(summary)')]"
    assert browser.run(f"{folded}.some(one => one.checkVisibility({{contentVisibilityAuto: true}}))") is False


def test_the_keyboard_reaches_everything(browser: Browser) -> None:
    browser.press("Tab")
    assert browser.run("document.activeElement.textContent") == "Skip to the findings"
    reached: list[str] = []
    for _ in range(60):
        browser.press("Tab")
        reached.append(browser.run("document.activeElement.id || document.activeElement.textContent"))
    assert "theme" in reached
    assert "Copy" in reached
    assert any(words.startswith("All 4 checks") for words in reached)


def test_the_command_is_copied(browser: Browser, path: Path) -> None:
    browser.send("Page.bringToFront")
    browser.run("document.querySelector('.replay button').focus()")
    browser.press("Enter")
    browser.run("document.querySelector('.replay button').click()")
    assert browser.run("document.querySelector('.replay button').textContent") == "Copied"
    assert browser.run("getSelection().toString()") == "quintain replay-finding 'a folder/finding-1.json'"


@pytest.mark.slow
def test_the_page_has_the_same_text_without_scripts(one: Browser, browser: Browser, path: Path) -> None:
    said = browser.run("document.querySelector('main').innerText.replaceAll('\\nCopy', '')")
    one.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        one.open(path)
        assert one.run("document.querySelectorAll('button').length") == 0
        assert one.run("document.querySelector('main').innerText") == said
    finally:
        one.send("Emulation.setScriptExecutionDisabled", value=False)
