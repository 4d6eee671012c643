"""The studio in a browser: a run is opened, filtered, read and saved, with keys alone; hostile texts stay texts."""

from __future__ import annotations

import json
import signal
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quintain.trace import Trace
from tests.studio.runs import HOSTILE, failed, forged, line, trace, write
from tests.studio.studio import AXE, SECONDS, Reading, missing, running, started

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "never")]

ROWS = "document.querySelectorAll('.scroller .line').length"
COUNT = "document.querySelector('[role=status]')?.textContent"
HEADING = "document.querySelector('h1')?.textContent"
INERT = "window.broken === undefined && document.querySelectorAll('img, iframe, a[href^=javascript]').length === 0"
SCORES = (0.0, 0.25, 0.75, 1.0)
TRACES = [
    *(trace(f"lend {n}", m, score=SCORES[m], turns=3 + 10 * m) for n in range(20) for m in range(4)),
    failed("broken"),
    trace(HOSTILE, say=HOSTILE * 40),
]
COUNTED = len(TRACES) + 1
"""Episodes of the run: those above, and one that no run can write."""

WHERE: list[tuple[str, Callable[[Trace], bool]]] = [
    ("score<1", lambda one: one.score is not None and one.score < 1),
    ("score=0.75 turns>=10", lambda one: one.score == 0.75 and len(one.turns) >= 10),
    ("score:none", lambda one: one.score is None),
    ("-score:none", lambda one: one.score is not None),
    ('task:"lend 1*"', lambda one: one.task.startswith("lend 1")),
    ("end:failed", lambda one: one.failure is not None),
    ("component!=S", lambda one: one.failure is None),
    ("level:hard", lambda one: one.tags["level"] == "hard"),
    ("tool:upd* member<=1", lambda one: one.member <= 1 and len(one.turns) > 1),
    ("-tool:search", lambda one: not one.turns),
    ("done>0.5", lambda one: any(r.name == "done" and (r.value or 0) > 0.5 for r in one.rewards)),
    ('"end 7"', lambda one: "end 7" in one.task),
    ('"\\"n\\": 12" score>0', lambda one: len(one.turns) > 12 and (one.score or 0) > 0),
    ('-"rows"', lambda one: not one.turns),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("studio")
    odd = forged(
        task="odd", turns=[{"index": 0, "reply": {"message": {"role": "assistant", "content": 5, "calls": 7}}}]
    )
    write(made / "runs" / "a run", TRACES, odd + b"torn")
    return made


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[str]:
    with started(home / "runs", home) as url:
        yield url


def test_ctrl_c_ends_the_studio(home: Path, tmp_path: Path) -> None:
    with running(home / "runs", tmp_path) as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130


@pytest.fixture(scope="module")
def one(address: str) -> Iterator[Reading]:
    with Reading() as browser:
        browser.resize(1000, 400)
        browser.show(address)
        browser.until("document.querySelectorAll('table.runs tbody tr').length")
        yield browser


@pytest.fixture
def browser(one: Reading) -> Reading:
    """Shows the table of the run."""
    one.run("location.hash = '#/a%20run/episodes'")
    one.until(f"{COUNT} === '{COUNTED} of {COUNTED}'")
    return one


def test_filters_leave_the_episodes_that_hold(browser: Reading) -> None:
    found = {}
    for where, _ in WHERE:
        browser.run(f"location.hash = '#/a%20run/episodes?where=' + encodeURIComponent({json.dumps(where)})")
        browser.until(f"document.querySelector('input').value === {json.dumps(where)}")
        browser.until(f"!{COUNT}.includes('searching')")
        found[where] = browser.run(COUNT)
    assert found == {
        where: f"{sum(map(holds, [*TRACES, trace('odd', turns=0)]))} of {COUNTED}" for where, holds in WHERE
    }
    for wrong, words in (("score", "is not a term"), ("nothing:1", "no column nothing"), ("score<x", "is a number")):
        browser.run(f"location.hash = '#/a%20run/episodes?where=' + encodeURIComponent({wrong!r})")
        browser.until(f"document.querySelector('[role=alert]')?.textContent.includes({words!r})")


def test_a_run_is_read_with_keys_alone(browser: Reading) -> None:
    browser.press("f")
    browser.until("document.activeElement.matches('input')")
    browser.send("Input.insertText", text="score<1 level:easy")
    browser.press("Enter")
    browser.until(f"{COUNT} === '40 of {COUNTED}'")
    browser.run("location.hash += '&sort=-turns'")
    browser.until("document.querySelector('[aria-sort=descending]')?.textContent.startsWith('turns')")
    browser.press("j", "j", "Enter")
    browser.until(f"{HEADING} === 'lend 2 member 2'")
    browser.press("J")
    browser.until(f"{HEADING} === 'lend 3 member 2'")
    browser.press("K", "K")
    browser.until(f"{HEADING} === 'lend 1 member 2'")
    browser.press("]")
    browser.until(f"{HEADING} === 'lend 1 member 3'")
    assert browser.run("document.querySelectorAll('section.turn').length") == 33
    browser.press("j", "j")
    browser.until("document.activeElement.id === 't1'")
    browser.press("n")
    browser.until("document.activeElement.id === 't2'")
    browser.press("g", "g")
    browser.until("document.querySelectorAll('.sides th').length === 4")
    assert "← here the scores part most" in browser.run("document.querySelector('.tree').textContent")
    browser.press("g", "e")
    browser.until(f"{COUNT} === '{COUNTED} of {COUNTED}'")
    browser.until("document.activeElement.getAttribute('role') === 'grid'")
    browser.press("?")
    assert browser.run("document.querySelector('dialog').open")
    browser.press("Escape")
    browser.until("!document.querySelector('dialog').open")


def test_an_address_leads_to_a_turn(browser: Reading) -> None:
    browser.run("location.hash = '#/a%20run/e/lend%205/3?t=30'")
    browser.until("document.activeElement.id === 't30'")
    top = "document.activeElement.getBoundingClientRect().top"
    browser.until(
        f"Math.abs({top}) < 8 || {top} < innerHeight && scrollY + innerHeight >= document.body.scrollHeight - 8"
    )


def test_hostile_texts_are_inert_and_visible(browser: Reading) -> None:
    browser.until(ROWS)
    assert browser.run(INERT)
    browser.run(f"location.hash = '#/a%20run/e/' + encodeURIComponent({HOSTILE!r}) + '/0'")
    browser.until("document.querySelectorAll('section.turn').length")
    assert browser.run(INERT)
    shown = browser.run("document.body.textContent")
    assert "</script><img src=x onerror='window.broken = 1'>" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert {"[U+001B]", "[U+202E]", "[U+200B]"} <= {
        *browser.run("[...document.querySelectorAll('.unseen')].map(e => e.textContent)")
    }
    folded = (
        "!document.querySelector('.rest[hidden=until-found] .unseen').checkVisibility({contentVisibilityAuto: true})"
    )
    assert browser.run(folded)
    before = browser.run("document.querySelectorAll('.rest[hidden]').length")
    browser.run("document.querySelector('.fold').click()")
    browser.until(f"document.querySelectorAll('.rest[hidden]').length === {before - 1}")


def test_an_episode_that_cannot_be_drawn_is_named(browser: Reading) -> None:
    browser.run("location.hash = '#/a%20run/e/odd/0'")
    browser.until("document.querySelector('[role=alert]')?.textContent.includes('cannot be drawn')")
    browser.run("location.hash = '#/a%20run/e/broken/0'")
    browser.until(f"{HEADING} === 'broken member 0'")


def test_a_failure_names_its_component(browser: Reading) -> None:
    browser.run("location.hash = '#/a%20run/e/broken/0'")
    browser.until(
        "document.querySelector('.failure')?.textContent.includes('quintain:tool_bug of component S, the state')"
    )


def test_a_saved_episode_opens_from_disk(browser: Reading, home: Path, address: str) -> None:
    labels = {"task": "lend 5", "member": 2, "owner": "verifier", "why": "graded twice"}
    (home / "runs" / "a run" / "labels.jsonl").write_text(json.dumps(labels) + "\n")
    browser.run("location.hash = '#/a%20run/e/lend%205/2'")
    link = browser.until("document.querySelector('a[download]')?.href")
    cookie = browser.send("Network.getCookies", urls=[link])["cookies"][0]
    request = urllib.request.Request(link, headers={"Cookie": f"{cookie['name']}={cookie['value']}"})
    with urllib.request.urlopen(request) as answer:
        (home / "saved.html").write_bytes(answer.read())
    assert quiet(browser)
    browser.open(home / "saved.html")
    browser.until("document.querySelectorAll('section.turn').length === 23")
    assert browser.run(HEADING) == "lend 5 member 2"
    assert "verifier labels: graded twice" in browser.run("document.querySelector('main').innerText")
    browser.press("j", "n")
    browser.until("document.activeElement.id === 't1'")
    assert browser.requests() == [(home / "saved.html").as_uri()]
    assert browser.complaints() == []
    browser.events.clear()
    browser.show(address)
    browser.until("document.querySelector('tbody tr')")


def quiet(browser: Reading) -> bool:
    """True if no screen loaded anything from elsewhere, and the policy refused nothing."""
    hosts = {url.split("/")[2] for url in browser.requests() if not url.startswith("data:")}
    return hosts == {browser.run("location.host")} and browser.complaints() == []


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make web")
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_screens_are_accessible(browser: Reading, scheme: str) -> None:
    browser.like(scheme=scheme)
    found = {}
    screens = ("#/", "#/a%20run/episodes?where=score", "#/a%20run/e/broken/0", "#/a%20run/g/lend%205")
    for screen in screens:
        browser.run(f"location.hash = {screen!r}")
        browser.until("document.querySelector('tbody tr, .scroller .line, [role=alert], section.turn, .sides')")
        found[screen] = browser.violations()
    assert found == {screen: [] for screen in screens}
    browser.like()


def test_new_episodes_appear_without_a_reload(browser: Reading, home: Path) -> None:
    with (home / "runs" / "a run" / "traces.jsonl").open("r+b") as file:
        file.seek(-len(b"torn"), 2)
        file.write(line(trace("late")))
    browser.until(f"{COUNT} === '{COUNTED + 1} of {COUNTED + 1}'")
    assert quiet(browser)
