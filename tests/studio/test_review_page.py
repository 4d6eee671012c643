"""Screens of reviews in the browser: with keys alone, accessible, and blind where the sample says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quintain.studio.reviews import Reviews
from tests.studio.runs import HOSTILE, failed, trace, write
from tests.studio.studio import AXE, Reading, missing, started
from tests.studio.test_reports import report

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "never")]

SCORES = (0.0, 0.25, 0.75, 1.0)
TRACES = [
    *(trace(f"lend {n}", m, score=SCORES[m], turns=3 + 3 * m) for n in range(5) for m in range(4)),
    failed("broken"),
]
TURNS = "document.querySelectorAll('section.turn').length"
STATUS = "document.querySelector('.review [role=status]')?.textContent"
LINES = "document.querySelectorAll('.scroller .line').length"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = write(tmp_path / "runs" / "first", TRACES)
    (folder / "labels.jsonl").write_text(
        '{"task": "lend 1", "member": 2, "owner": "verifier", "why": "graded twice"}\n'
    )
    return tmp_path


@pytest.fixture
def browser(home: Path) -> Iterator[Reading]:
    with started(home / "runs", home) as address, Reading() as made:
        made.resize(1180, 760)
        made.show(address)
        made.until("document.querySelector('tbody tr')")
        yield made


def draw(browser: Reading) -> None:
    browser.run("location.hash = '#/first/review'")
    browser.until("document.querySelector('input[name=name]')")
    browser.run(
        "(one => { one.value = 'week-48'; one.form.requestSubmit() })(document.querySelector('input[name=name]'))"
    )
    browser.until("[...document.querySelectorAll('a')].some(one => one.textContent === 'week-48')")


def written(home: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for file in (home / "runs" / "first" / "reviews").glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]


def test_a_sample_is_reviewed_with_keys_alone(browser: Reading, home: Path) -> None:
    draw(browser)
    browser.run("location.hash = '#/first/review/week-48'")
    browser.until(TURNS)
    assert "score" not in browser.run("document.body.innerText")
    browser.press("2", "a", "j", "j", "m", "m", "s")
    browser.until("document.querySelectorAll('[aria-pressed=true]').length === 2")
    browser.press("N")
    browser.on(lambda page: page.keyboard.insert_text("older world"))
    browser.press("Enter")
    browser.until(f"{STATUS} === 'saved: env'")
    browser.until(TURNS)
    browser.press(".", "Enter")
    browser.until("document.querySelector('progress').value === 2")
    browser.press("u")
    browser.until(f"{STATUS} === 'taken back'")
    first, second, gone = written(home)
    assert (first["owner"], first["modes"], first["sure"]) == ("env", ["env.stale_read"], "sure")
    assert (first["first"], first["note"], first["sample"]) == ({"turn": 1, "step": 0}, "older world", "week-48")
    assert (second["modes"], "first" in second, gone["of"]) == (["env.stale_read"], False, [second["id"]])
    asked = {url.split("/api/")[1] for url in browser.requests() if "/api/runs/first/" in url}
    browser.run("location.hash = '#/first/episodes?where=label:env'")
    browser.until(f"{LINES} === 1")
    browser.run("location.hash = '#/first/episodes?where=mode:env.* -label:none'")
    browser.until(f"{LINES} === 1")
    assert any(path.startswith("runs/first/samples/week-48/") for path in asked)


def test_hostile_reviews_are_texts_and_bad_lines_are_shown(browser: Reading, home: Path) -> None:
    folder = home / "runs" / "first"
    target = {"task": "lend 0", "digest": json.loads((folder / "traces.jsonl").read_bytes().splitlines()[0])["digest"]}
    line = {"kind": "verdict", "owner": "env", "modes": [HOSTILE], "note": HOSTILE, "target": target}
    Reviews(folder).add("eve", [line])
    with (folder / "reviews" / "eve.jsonl").open("a") as file:
        file.write("<<<<<<< ours\n")
    (folder / "labels.jsonl").write_text(json.dumps({"task": "lend 0", "owner": HOSTILE, "why": HOSTILE}) + "\n")
    for screen in ("e/lend%200/0", "episodes", "review", "agreement", "shapes"):
        browser.run(f"location.hash = '#/first/{screen}'")
        browser.until("document.querySelector('.verdicts b, .scroller .line, textarea, h1, .shapes tr')")
        if screen.startswith("e/"):
            browser.until("document.querySelector('main').textContent.includes('[U+202E]')")
        if screen == "review":
            browser.until("document.querySelector('[role=alert]')?.textContent.includes('eve.jsonl, line 2')")
        shown = browser.run("document.body.textContent")
        assert not {"\x1b", "\u202e", "\u200b"} & {*shown}
        assert browser.run("window.broken === undefined && document.querySelectorAll('img').length === 0")


def test_an_episode_of_the_table_is_reviewed(browser: Reading, home: Path) -> None:
    browser.run("location.hash = '#/first/episodes?where=owner:verifier'")
    browser.until(f"{LINES} === 1")
    browser.press("Enter")
    browser.until("document.querySelector('main').textContent.includes('labels: graded twice')")
    browser.press("x")
    browser.until(f"document.querySelector('.review') && {TURNS}")
    browser.press("3", "Enter")
    browser.until(f"{STATUS} === 'saved: verifier'")
    (one,) = written(home)
    assert (one["target"]["task"], one["target"]["member"], "blind" in one) == ("lend 1", 2, False)


def blindly(home: Path) -> None:
    """Writes blind verdicts of two people on the four members of a task; they disagree on one."""
    folder = home / "runs" / "first"
    digests = [json.loads(line)["digest"] for line in (folder / "traces.jsonl").read_bytes().splitlines()]
    for name, owners in (("ada", "env env policy policy"), ("ben", "env policy policy policy")):
        lines = [
            {"kind": "verdict", "owner": owner, "blind": ["reviewers"]}
            | {"target": {"task": "lend 0", "member": m, "digest": digests[m]}}
            for m, owner in enumerate(owners.split())
        ]
        Reviews(folder).add(name, lines)


def test_a_disagreement_is_decided_with_a_key(browser: Reading, home: Path) -> None:
    blindly(home)
    browser.run("location.hash = '#/first/agreement'")
    browser.until("document.querySelector('h1')?.textContent .startsWith('Agreement: ada')")
    assert "Cohen's κ0.5" in browser.run("document.querySelector('main').textContent")
    browser.press("2")
    browser.until("document.querySelector('tr.current').textContent.includes('decided')")
    (one,) = (one for one in written(home) if one["kind"] == "decided")
    assert (one["owner"], len(one["of"])) == ("policy", 2)
    browser.run("location.hash = '#/first/episodes?where=label:policy'")
    browser.until(f"{LINES} === 3")


def test_the_list_of_runs_says_how_far_a_run_is_known(browser: Reading, home: Path) -> None:
    blindly(home)
    report(home / "runs" / "first" / "audit", "f1")
    (home / "runs" / "first" / "run.json").write_text('{"name": "desk", "fingerprint": "f1"}')
    write(home / "runs" / "bare", [trace("a", score=2.0)])
    browser.run("location.reload()")
    cells = (
        "[...document.querySelectorAll('tbody tr')].map(one => [...one.cells].slice(4).map(each => each.textContent))"
    )
    browser.until(f"{cells}.length === 2")
    # 20 of 21 episodes have a score, and their mean is 0.5.
    assert browser.run(cells) == [
        ["21", "0.5", "0.476 … 0.524", "4.8 %", "⚑ 2 proven", "4 (κ 0.5)"],
        ["1", "2", "2 … 2", "0", "none run", "\u2013"],
    ]
    assert not AXE.exists() or browser.violations() == []


def test_a_label_of_another_episode_is_shown_as_stale(browser: Reading, home: Path) -> None:
    stale = {"kind": "verdict", "owner": "env", "target": {"task": "lend 2", "member": 1, "digest": "other"}}
    Reviews(home / "runs" / "first").add("ada", [stale])
    for where, count in (("label:*stale*", 1), ("label:env", 0), ("label:none", len(TRACES) - 1), ("by:ada", 1)):
        browser.run(f"location.hash = '#/first/episodes?where={where}'")
        browser.until(f"document.querySelector('[role=status]')?.textContent === '{count} of {len(TRACES)}'")


def test_a_shape_is_labeled_as_proposed(browser: Reading, home: Path) -> None:
    browser.run("location.hash = '#/first/shapes'")
    browser.until("document.querySelectorAll('.shapes tbody tr').length === 2")
    browser.press("l", "j", "Enter")
    browser.until(TURNS)
    browser.press("x")
    browser.until(f"document.querySelector('.review') && {TURNS}")
    browser.press("1", "Enter")
    browser.until(f"{STATUS} === 'saved: policy'")
    browser.run("location.hash = '#/first/shapes'")
    browser.until("document.querySelector('.shapes tbody td:nth-child(4)')?.textContent === '1'")
    browser.press("x")
    browser.until("document.querySelector('.shapes tbody td:nth-child(5)').textContent === '14'")
    assert [one["kind"] for one in written(home)] == ["verdict"] + ["inherited"] * 14
    browser.press("f")
    browser.until(f"{LINES} === 15")


def test_notes_are_put_under_a_mode_later(browser: Reading, home: Path) -> None:
    browser.run("location.hash = '#/first/e/lend%200/0?review=1'")
    browser.until(f"document.querySelector('.review') && {TURNS}")
    browser.press("N")
    browser.on(lambda page: page.keyboard.insert_text("reads the old lead"))
    browser.press("Enter")
    browser.until(f"{STATUS} === 'saved: note'")
    browser.run("location.hash = '#/first/review'")
    browser.until("document.querySelector('input[name=note]') && document.querySelector('select[name=mode]').length")
    assert not AXE.exists() or browser.violations() == []
    browser.run("document.querySelector('input[name=note]').click()")
    browser.run("document.querySelector('select[name=mode]').value = 'env.stale_read'")
    browser.run("document.querySelector('input[name=note]').form.requestSubmit()")
    browser.until("!document.querySelector('input[name=note]')")
    note, verdict = written(home)
    assert (note["kind"], verdict["kind"], verdict["note"]) == ("note", "verdict", "reads the old lead")
    assert (verdict["owner"], verdict["modes"]) == ("env", ["env.stale_read"])


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make web")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_review_screens_are_accessible(browser: Reading, home: Path, scheme: str) -> None:
    browser.like(scheme=scheme)
    draw(browser)
    found = {"#/first/review": browser.violations()}
    blindly(home)
    for screen, shown in (
        ("#/first/review/week-48", TURNS),
        ("#/first/agreement", "document.querySelector('caption')"),
        ("#/first/tasks", "document.querySelector('figure')"),
        ("#/first/shapes", "document.querySelector('.shapes tbody tr')"),
    ):
        browser.run(f"location.hash = {screen!r}")
        browser.until(shown)
        browser.press("1", "l")
        found[screen] = browser.violations()
    assert found == {screen: [] for screen in found}
    assert browser.complaints() == []
