"""The table of episodes in the browser: selected rows are labelled at once, and members of a task are one line."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quintain.trace import SOLVED
from tests.studio.runs import HOSTILE, failed, trace, write
from tests.studio.studio import AXE, Reading, missing, started

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "never")]

SCORES = {"mixed": (0.0, 1.0, 1.0, 0.5), "even": (1.0, 1.0, 1.0, 1.0), "low": (0.0, 0.25, 0.0, 0.25), "lone": (0.5,)}
TRACES = [
    *(trace(task, m, score=score, turns=2 + m) for task, scores in SCORES.items() for m, score in enumerate(scores)),
    failed("broken"),
]
COUNT = "document.querySelector('[role=status]')?.textContent"
WORDS = "document.querySelector('.said').textContent"
SELECTED = "document.querySelectorAll('.scroller [aria-selected=true]').length"
STATUS = "document.querySelector('.review [role=status]')?.textContent"
TEXTS = "[...document.querySelectorAll('.scroller .line')].map(one => [...one.children].map(each => each.textContent))"
DASH = "\u2013"
CURRENT = "document.querySelector('.line.current').textContent"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write(tmp_path / "runs" / "first", TRACES)
    return tmp_path


@pytest.fixture
def browser(home: Path) -> Iterator[Reading]:
    with started(home / "runs", home) as address, Reading() as made:
        made.resize(1180, 760)
        made.show(address)
        made.until("document.querySelector('tbody tr')")
        made.run("location.hash = '#/first/episodes'")
        made.until(f"{COUNT} === '{len(TRACES)} of {len(TRACES)}'")
        yield made


def kinds(home: Path) -> list[str]:
    (file,) = (home / "runs" / "first" / "reviews").glob("*.jsonl")
    return [json.loads(line)["kind"] for line in file.read_text().splitlines()]


def test_selected_rows_are_labelled_at_once_and_taken_back(browser: Reading, home: Path) -> None:
    browser.press("Space", "j", "j", "Space")
    browser.until(f"{SELECTED} === 2")
    browser.press("x")
    browser.until(f"{WORDS}.startsWith('review one of these episodes first')")
    browser.press("Enter")
    browser.until("document.querySelector('section.turn')")
    browser.press("x")
    browser.until("document.querySelector('.review') && document.querySelector('section.turn')")
    browser.press("2", "Enter")
    browser.until(f"{STATUS} === 'saved: env'")
    browser.run("location.hash = '#/first/episodes'")
    browser.until(f"{SELECTED} === 2")
    browser.press("x")
    browser.until(f"{WORDS} === 'env: 1 episode inherits it, as proposed'")
    browser.run("location.hash = '#/first/episodes?where=label:env*'")
    browser.until(f"{COUNT} === '2 of {len(TRACES)}'")
    browser.press("u")
    browser.until(f"{COUNT} === '1 of {len(TRACES)}'")
    assert kinds(home) == ["verdict", "inherited", "removed"]
    browser.press("u")
    browser.until(f"{WORDS} === 'nothing to take back'")


def test_rows_are_selected_with_the_mouse_or_all_at_once(browser: Reading) -> None:
    browser.on(lambda page: page.locator("#row-1").click(modifiers=["Control"]))
    browser.until(f"{SELECTED} === 1")
    browser.on(lambda page: page.locator("#row-4").click(modifiers=["Shift"]))
    browser.until(f"{SELECTED} === 4")
    browser.on(lambda page: page.locator("#row-2").click(modifiers=["Control"]))
    browser.until(f"{SELECTED} === 3")
    browser.press("a", "a")
    browser.until(f"{SELECTED} === {len(TRACES)}")
    browser.press("a")
    browser.until(f"{SELECTED} === 0")
    assert browser.run("location.hash") == "#/first/episodes"


def test_selected_episodes_stand_side_by_side(browser: Reading) -> None:
    browser.press("Space", "j", "Space", "End", "Space", "c")
    browser.until("document.querySelectorAll('.sides thead th').length === 3")
    heads = browser.run("[...document.querySelectorAll('.sides thead th')].map(one => one.textContent)")
    assert [head.partition("score")[0] for head in heads] == ["mixedmember 0", "mixedmember 1", "brokenmember 0"]
    assert not AXE.exists() or browser.violations() == []
    browser.press("Escape")
    browser.until(f"{SELECTED} === 3")


def test_columns_beyond_the_window_are_reached_by_scrolling(browser: Reading) -> None:
    browser.resize(700, 500)
    last, box = ".line:not(.head) > :last-child", "document.querySelector('.scroller').getBoundingClientRect().right"
    browser.run("document.querySelector('.grid').scrollLeft = 9999")
    browser.until(f"document.querySelector({last!r}).getBoundingClientRect().right <= Math.min(innerWidth, {box})")
    assert browser.run("document.querySelector('.grid').scrollLeft") > 100


def test_numbers_that_grow_keep_those_before(browser: Reading, home: Path) -> None:
    folder = write(home / "runs" / "grows", [trace(f"task {n}", turns=1) for n in range(255)])
    browser.run("location.hash = '#/grows/episodes'")
    browser.until(f"{COUNT} === '255 of 255'")
    with (folder / "traces.jsonl").open("ab") as file:
        file.writelines(trace(f"task {n}", turns=3).to_json() + b"\n" for n in range(255, 258))
    browser.until(f"{COUNT} === '258 of 258'")
    for where, count in (("prompt=100", 255), ("prompt=300", 3), ('task:"task 3"', 1), ('task:"task 257"', 1)):
        browser.run(f"location.hash = '#/grows/episodes?where=' + encodeURIComponent({where!r})")
        browser.until(f"{COUNT} === '{count} of 258'")


def test_labels_of_programs_are_columns_that_follow_their_file(browser: Reading, home: Path) -> None:
    labels = home / "runs" / "first" / "labels"
    labels.mkdir()
    heads = "[...document.querySelectorAll('[role=columnheader]')].map(one => one.textContent.trim())"
    said: list[dict[str, Any]] = [
        {"task": "mixed", "member": 0, "owner": "env", "grade": 0.25, "kind": "late"},
        {"task": "mixed", "member": 2, "owner": "verifier", "grade": 0.75, "kind": f"{HOSTILE}"},
    ]
    (labels / "judge.jsonl").write_text("".join(json.dumps(one) + "\n" for one in said))
    browser.until(f"{heads}.includes('grade')")
    names: list[str] = browser.run(heads)
    lines: list[list[str]] = browser.run(TEXTS)
    shown = [[line[names.index(name)] for name in ("owner", "grade", "kind")] for line in lines[:3]]
    assert shown[:2] == [["env", "0.25", "late"], ["", DASH, ""]]
    assert shown[2][:2] == ["verifier", "0.75"]
    assert "[U+202E]" in shown[2][2]
    assert not AXE.exists() or browser.violations() == []
    browser.run("[...document.querySelectorAll('[role=columnheader] a')].find(one => one.text === 'grade').click()")
    browser.until(f"{TEXTS}[0][{names.index('grade')}] === '0.75'")
    with (labels / "judge.jsonl").open("a") as file:
        file.write(json.dumps({"task": "even", "grade": 2}) + "\n")
    browser.until(f"{TEXTS}[0][{names.index('grade')}] === '2'")
    (labels / "judge.jsonl").unlink()
    browser.until(f"!{heads}.includes('grade') && !{heads}.includes('owner')")


def test_pairs_of_tools_are_on_the_screen_of_tasks(browser: Reading) -> None:
    follows = Counter[tuple[str, str]]()
    for one in TRACES:
        names = [step.call.name for turn in one.turns for step in turn.steps]
        follows.update(itertools.pairwise(["the beginning", *names, "the end"]))
    browser.run("location.hash = '#/first/tasks'")
    browser.until("document.querySelector('main details')")
    browser.run("document.querySelector('main details summary').click()")
    rows = "[...document.querySelectorAll('details tbody tr')].map(one => [...one.cells].map(cell => cell.textContent))"
    browser.until(f"{rows}.length === {len(follows)}")
    found: list[list[str]] = browser.run(rows)
    assert {(before, after): int(times) for before, after, times, _ in found} == follows
    shown = browser.run("[...document.querySelectorAll('main p')].map(one => one.textContent)")
    assert "Episodes with calls begin with: search 100 %" in shown
    calls = sum(times for (before, _), times in follows.items() if before == "search")
    words = browser.run("document.querySelector('tbody tr').lastChild.textContent")
    assert f"update {round(100 * follows['search', 'update'] / calls)} %" in words
    assert not AXE.exists() or browser.violations() == []


def expected(task: str, k: int) -> float:
    scores = SCORES[task]
    solved = sum(score >= SOLVED for score in scores)
    return math.comb(solved, k) / math.comb(len(scores), k) if len(scores) >= k else math.nan


def figure(value: float) -> str:
    return DASH if math.isnan(value) else f"{round(value, 3):g}"


def test_members_of_a_task_are_one_line(browser: Reading) -> None:
    browser.press("G")
    browser.until("document.querySelector('[role=treegrid]')")
    heads = browser.run("[...document.querySelectorAll('[role=columnheader]')].map(one => one.textContent.trim())")
    assert heads[:6] == ["task", "members", "mean", "spread", "pass^2", "pass^4"]
    lines: list[list[str]] = browser.run(TEXTS)
    place = heads.index("group")
    assert {line[0]: line[place] for line in lines} == {
        "mixed": "solved by some", "even": "all equal (no gradient)", "low": "", "lone": "", "broken": "",
    }  # fmt: skip
    for line in lines[:4]:
        scores = SCORES[line[0]]
        mean = sum(scores) / len(scores)
        spread = math.sqrt(sum((score - mean) ** 2 for score in scores) / len(scores))
        numbers = (mean, spread, expected(line[0], 2), expected(line[0], 4))
        assert line[1:6] == [str(len(scores)), *map(figure, numbers)]
    assert lines[4][1:6] == ["1", *[DASH] * 4]
    assert not AXE.exists() or browser.violations() == []


def test_lines_fill_the_table_folded_or_not(browser: Reading, home: Path) -> None:
    write(home / "runs" / "many", [trace(f"task {n}", score=n % 3 / 2) for n in range(80)])
    browser.resize(1180, 1400)
    browser.run("location.hash = '#/many/episodes'")
    browser.until(f"{COUNT} === '80 of 80'")
    seen = "document.querySelector('.scroller').getBoundingClientRect().bottom"
    filled = f"document.querySelector('.rows:last-child .line:last-child').getBoundingClientRect().bottom >= {seen}"
    for role in ("treegrid", "grid"):
        browser.press("G")
        browser.until(f"document.querySelector('[role={role}] .line.current')")
        browser.until(filled)
    assert browser.run("document.querySelectorAll('[aria-level], [aria-expanded]').length") == 0


def test_a_line_unfolds_to_its_members(browser: Reading) -> None:
    browser.run("location.hash = '#/first/episodes?by=task&sort=-spread&where=score>=0'")
    browser.until("document.querySelectorAll('[aria-expanded=false]').length === 4")
    assert [line[0] for line in browser.run(TEXTS)] == ["mixed", "low", "even", "lone"]
    browser.press("j", "ArrowRight")
    browser.until("document.querySelectorAll('[aria-level=\"2\"]').length === 4")
    browser.press("j", "j")
    browser.until(f"{CURRENT}.startsWith('member 1')")
    browser.press("Enter")
    browser.until("document.querySelector('h1')?.textContent === 'low member 1'")
    browser.press("J")
    browser.until("document.querySelector('h1')?.textContent === 'low member 2'")
    browser.run("history.go(-2)")
    browser.until("document.querySelectorAll('[aria-expanded=false]').length === 4")
    browser.press("Space")  # All members of the line.
    browser.until("document.querySelector('form').textContent.includes('4 selected')")
    browser.on(lambda page: page.locator("#row-2").click(position={"x": 400, "y": 10}))
    browser.until("document.querySelectorAll('[aria-expanded=true]').length === 1")
    browser.press("ArrowLeft")
    browser.press("G")
    browser.until("document.querySelector('[role=grid]')")


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make web")
@pytest.mark.parametrize("like", [{"scheme": "light"}, {"scheme": "dark"}, {"forced_colors": "active"}])
def test_folded_and_selected_lines_are_accessible(browser: Reading, like: dict[str, Any]) -> None:
    browser.like(**like)
    browser.press("G")
    browser.until("document.querySelector('[role=treegrid]')")
    browser.press("ArrowRight", "Space", "j", "j")
    browser.until("document.querySelectorAll('[aria-level=\"2\"]').length === 4")
    assert browser.violations() == []
    assert browser.complaints() == []
