"""Histograms above the table: they count what the filter leaves, and a range of one is a filter."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from tests.studio.runs import failed, timing, trace, write
from tests.studio.studio import AXE, Reading, missing, started

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "never")]

TURNS = [n % 9 + 2 for n in range(89)]
TRACES = [
    *(trace(f"lend {n}", score=n % 5 / 4, turns=turns) for n, turns in enumerate(TURNS)),
    trace("endless", turns=300),
    failed("broken"),
]
COUNT = "document.querySelector('[role=status]')?.textContent"
WHERE = "document.querySelector('input').value"
NAMES = "[...document.querySelectorAll('.histograms [role=slider]')].map(one => one.getAttribute('aria-label'))"


def slider(name: str) -> str:
    return f".histograms [aria-label='{name} of the episodes']"


def said(name: str) -> str:
    return f'document.querySelector("{slider(name)}")?.getAttribute("aria-valuetext")'


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reading]:
    home = tmp_path_factory.mktemp("studio")
    folder = write(home / "runs" / "run", TRACES)
    dice = random.Random(7)
    (folder / "timings.jsonl").write_bytes(b"".join(timing(made, dice.uniform(0.5, 9)) for made in TRACES[:-1]))
    write(home / "runs" / "bare", [failed("broken")])
    with started(home / "runs", home) as address, Reading() as browser:
        browser.resize(1180, 620)
        browser.show(address)
        browser.until("document.querySelector('table.runs tbody tr')")
        yield browser


@pytest.fixture
def browser(one: Reading) -> Reading:
    one.run("location.hash = '#/run/episodes'")
    one.until(f"{COUNT} === '91 of 91'")
    return one


def test_bins_are_of_the_run_and_counts_of_what_the_filter_leaves(browser: Reading) -> None:
    names = [f"{name} of the episodes" for name in ("score", "turns", "errors", "seconds", "tokens")]
    browser.until(f"JSON.stringify({NAMES}) === {json.dumps(json.dumps(names, separators=(',', ':')))}")
    browser.run(f'document.querySelector("{slider("turns")}").focus()')
    for where, kept in (("", TRACES), ("score<1", [one for one in TRACES if one.score is not None and one.score < 1])):
        browser.run(f"location.hash = '#/run/episodes?where=' + encodeURIComponent({where!r})")
        browser.until(f"{COUNT} === '{len(kept)} of 91'")
        turns = [len(one.turns) for one in kept]
        browser.until(f"{said('turns')} === 'turns: {len(kept)}'")
        browser.press("Home")
        browser.until(f"{said('turns')} === 'turns < 3: {turns.count(2)}'")
        browser.press("ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight")
        browser.until(f"{said('turns')} === '3 ≤ turns < 6: {turns.count(3) + turns.count(4) + turns.count(5)}'")
        # One episode of 300 turns does not take all the others into one bin.
        browser.press("End")
        browser.until(f"{said('turns')} === '25 ≤ turns: {turns.count(300)}'")
        browser.press("Escape")
        browser.until(f"{said('turns')} === 'turns: {len(kept)}'")


def test_a_range_is_chosen_with_keys(browser: Reading) -> None:
    browser.run("location.hash = '#/run/episodes?where=' + encodeURIComponent('turns!=4 end:terminated')")
    browser.until(f"{COUNT}.startsWith('80 of')")
    browser.press("h")
    browser.until(f'document.activeElement === document.querySelector("{slider("score")}")')
    browser.press("Tab", "ArrowRight", "ArrowRight", "Shift+ArrowRight", "Enter")
    browser.until(f"{WHERE} === 'turns!=4 end:terminated turns>=3 turns<5'")
    assert browser.run(COUNT) == f"{TURNS.count(3)} of 91"
    assert browser.run('document.activeElement === document.querySelector("' + slider("turns") + '")')
    # A new range takes the place of the one before, also where that was written by hand.
    browser.press("ArrowRight", "Shift+End", "Enter")
    browser.until(f"{WHERE} === 'turns!=4 end:terminated turns>=5'")
    browser.press("Delete")
    browser.until(f"{WHERE} === 'turns!=4 end:terminated'")


def test_a_range_is_dragged_or_clicked(browser: Reading) -> None:
    score = slider("score")
    bins = int(browser.run(f'document.querySelector("{score}").ariaValueMax')) + 1
    assert bins == 21
    browser.drag(score, 10.5 / bins, 3 / bins, 5.5 / bins)
    browser.until(f"{WHERE} === 'score>=0.25 score<0.55'")
    assert browser.run(COUNT) == f"{sum(n % 5 in (1, 2) for n in range(89))} of 91"
    browser.drag(score, 20.5 / bins)  # A click after the range takes it on to there.
    browser.until(f"{WHERE} === 'score>=0.25'")
    browser.drag(score, 0.5 / bins)  # One before it, too: all are left, also the one without a score.
    browser.until(f"{COUNT} === '91 of 91'")
    browser.drag(score, 20.5 / bins)
    browser.until(f"{WHERE} === 'score>=1'")
    browser.drag(score, 20.5 / bins)  # In the range.
    browser.until(f"{WHERE} === ''")


def test_counts_are_those_of_the_filter(browser: Reading) -> None:
    """Each bin of seconds, whose edges no float holds exactly, is as large as what its filter leaves."""
    bins = int(browser.run(f'document.querySelector("{slider("seconds")}").ariaValueMax')) + 1
    held = []
    for n in range(bins):
        browser.run(f'document.querySelector("{slider("seconds")}").focus()')
        browser.press("Home", *["ArrowRight"] * n)
        words = browser.until(f"{said('seconds')}")
        browser.press("Enter")
        browser.until(f"{WHERE}.includes('seconds')")
        held.append(int(words.partition(": ")[2]))
        assert browser.run(COUNT) == f"{held[-1]} of 91"
        browser.press("Delete")
        browser.until(f"{WHERE} === ''")
    assert sum(held) == 90
    assert bins > 15


def test_texts_are_counted_and_lead_to_their_episodes(browser: Reading) -> None:
    tallies = "document.querySelector('.tallies').textContent"
    browser.until(f"{tallies} === 'end: terminated 90 · failed 1component: none 90 · S 1'")
    browser.run("location.hash = '#/run/episodes?where=' + encodeURIComponent('turns<5 component:S')")
    browser.until(f"{COUNT} === '1 of 91'")
    assert browser.run(tallies) == ""  # All of one kind.
    browser.run("location.hash = '#/run/episodes?where=' + encodeURIComponent('turns<300')")
    browser.until(f"{tallies}.startsWith('end: terminated 89')")
    browser.run("[...document.querySelectorAll('.tallies a')].find(one => one.textContent === 'S').click()")
    browser.until(f"{WHERE} === 'turns<300 component:\"S\"'")
    assert browser.run(COUNT) == "1 of 91"
    assert not AXE.exists() or browser.violations() == []


def test_a_column_without_different_values_has_none(browser: Reading) -> None:
    browser.run("location.hash = '#/bare/episodes'")
    browser.until(f"{COUNT} === '1 of 1'")
    assert browser.run(NAMES) == []
    assert not AXE.exists() or browser.violations() == []
