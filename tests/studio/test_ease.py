"""Every screen of the studio at 400 % zoom, without motion, and in forced colours."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from quintain.studio.page import page
from quintain.studio.reviews import Reviews
from tests.studio.runs import began, failed, rewritten, trace, turned, write
from tests.studio.studio import AXE, Reading, missing, started
from tests.studio.test_reports import report
from tests.studio.test_review_page import draw

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "never")]

TURNS = "document.querySelector('section.turn')"
TABLE = "document.querySelector('tbody tr')"
SCREENS = {
    "#/": TABLE,
    "#/first/episodes?where=turns%3E2": "document.querySelector('.scroller .line')",
    "#/first/episodes?where=nonsense": "document.querySelector('[role=alert]')",
    "#/first/e/one/0": TURNS,
    "#/first/e/broken/0": "document.querySelector('.failure')",
    "#/first/e/one/0?review=1": TURNS,
    "#/first/g/one": "document.querySelector('.sides')",
    "#/first/live": TABLE,
    "#/first/live/now/0": TURNS,
    "#/first/curves": "document.querySelector('.curves figure')",
    "#/first/shapes": TABLE,
    "#/first/tasks": "document.querySelector('.charts figure')",
    "#/first/review": "document.querySelector('textarea').value",
    "#/first/review/week-48": TURNS,
    "#/first/agreement": "document.querySelector('caption')",
    "#/first/findings": TABLE,
    "#/compare?a=first&b=second": "document.querySelector('.scatter')",
    "#/compare?a=first&b=second&by=tool": "document.querySelector('.scatter')",
    "#/compare?a=first&b=second&task=one": "document.querySelector('.sides')",
    "#/first/episodes?by=task": "document.querySelector('[aria-expanded]')",
    "#/first/g/one?by=worlds": "document.querySelector('.tree')",
    "#/first/beside/one/0/two/1": "document.querySelector('.sides')",
}
KEYS: dict[str, Sequence[str]] = {
    "#/first/e/one/0": "dwv",
    "#/first/e/one/0?review=1": "1",
    "#/first/shapes": "l",
    "#/first/episodes?by=task": ("ArrowRight", "Space"),
}
"""Keys that show more of a screen."""

LOST = """[...document.querySelectorAll('body *')].filter(one => {
    const style = getComputedStyle(one);
    return style.overflowX !== 'visible' && one.scrollWidth > one.clientWidth + 1;
}).filter(one => !one.matches('.grid, .grid *, .sides, .wide'))
.concat([...document.querySelectorAll('body *')].filter(one => {
    const box = one.getBoundingClientRect();
    return box.width && (box.right > innerWidth + 1 || box.left < -1) && !one.closest('.grid, .sides, .wide');
})).map(one => one.outerHTML.slice(0, 90)).concat(document.documentElement.scrollWidth > innerWidth ? ['page'] : [])"""
"""What is cut off or stands outside of the window, but for what is in tables, which scroll by themselves."""
MOVING = """[...document.querySelectorAll('*')].filter(one => {
    const style = getComputedStyle(one);
    const moves = style.animationName !== 'none' || parseFloat(style.transitionDuration) > 0;
    return moves || style.scrollBehavior !== 'auto';
}).length + document.getAnimations().length"""
UNSEEN = """(one => one === document.body || getComputedStyle(one).outlineStyle !== 'none' &&
    parseFloat(getComputedStyle(one).outlineWidth) >= 1 ? '' : one.outerHTML.slice(0, 90))(document.activeElement)"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("studio")
    scores = (0.0, 0.25, 0.75, 1.0)
    traces = [trace(name, m, score=scores[m], turns=3 + 3 * m) for name in ("one", "two") for m in range(4)]
    folder = write(made / "runs" / "first", [*traces, failed("broken"), rewritten()])
    write(made / "runs" / "second", [trace(name, m, score=1.0) for name in ("one", "two") for m in range(4)])
    (folder / "run.json").write_text('{"fingerprint": "f1"}')
    (folder / "metrics.jsonl").write_text('{"step": 10, "loss": 0.5}\n{"step": 20, "loss": 0.25}\n')
    report(folder / "audit", "f1")
    now, playing = time.time(), trace("now", turns=3)
    (folder / "live.jsonl").write_bytes(began(playing, now) + b"".join(turned(playing, n, now) for n in range(3)))
    digests = [json.loads(line)["digest"] for line in (folder / "traces.jsonl").read_bytes().splitlines()]
    for name, owners in (("ada", "env env policy policy"), ("ben", "env policy policy policy")):
        lines = [
            {"kind": "verdict", "owner": owner, "blind": ["reviewers"], "note": "as the rules say"}
            | {"target": {"task": "one", "member": m, "digest": digests[m]}}
            for m, owner in enumerate(owners.split())
        ]
        Reviews(folder).add(name, lines)
    whole = page("Saved", (folder / "traces.jsonl").read_bytes().splitlines()[:2], run="first")
    (made / "saved.html").write_bytes(whole)
    return made


@pytest.fixture(scope="module")
def browser(home: Path) -> Iterator[Reading]:
    with started(home / "runs", home) as address, Reading() as made:
        made.resize(1180, 760)
        made.show(address)
        made.until(TABLE)
        draw(made)
        yield made


def shown(browser: Reading) -> Iterator[str]:
    """Shows each screen, and what keys show of it; yields its address."""
    for screen, ready in SCREENS.items():
        browser.run(f"location.hash = {screen!r}")
        browser.until(f"location.hash === {screen!r} && {ready}")
        yield screen
        for key in KEYS.get(screen, ""):
            browser.press(key)
            yield f"{screen} {key}"


def test_screens_lose_nothing_at_400_percent(browser: Reading, home: Path) -> None:
    """A window of 1280 x 1024 pixels has 320 x 256 then. Tables scroll by themselves, all else has one column."""
    browser.resize(320, 256)
    found = {screen: browser.run(LOST) for screen in shown(browser)}
    assert {screen: lost for screen, lost in found.items() if lost} == {}
    browser.resize(1180, 760)


def test_screens_do_not_move_by_themselves(browser: Reading) -> None:
    browser.like(reduced_motion="reduce")
    moving = {screen: browser.run(MOVING) for screen in shown(browser)}
    assert {screen: count for screen, count in moving.items() if count} == {}
    browser.like()


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make web")
def test_screens_are_accessible_in_forced_colours(browser: Reading) -> None:
    browser.like(forced_colors="active")
    found = {screen: browser.violations() for screen in shown(browser)}
    assert {screen: faults for screen, faults in found.items() if faults} == {}
    browser.like()


def test_the_focus_is_seen_in_forced_colours(browser: Reading) -> None:
    browser.like(forced_colors="active")
    unseen: dict[str, set[str]] = {}
    for screen in shown(browser):
        for _ in range(30):
            browser.press("Tab")
            unseen.setdefault(screen, set()).add(browser.run(UNSEEN))
    assert {screen: lost for screen, lost in unseen.items() if lost != {""}} == {}
    browser.like()


def test_a_saved_page_has_one_column_at_400_percent(browser: Reading, home: Path) -> None:
    with Reading() as other:
        other.resize(320, 256)
        other.open(home / "saved.html")
        other.until(TURNS)
        for key in "dwv":
            other.press(key)
            assert other.run(LOST) == []
        other.like(forced_colors="active")
        assert not AXE.exists() or other.violations() == []
