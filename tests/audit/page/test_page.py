"""Page as text: its content for each report, and escaping of foreign text."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain.audit.kernel.finding import CLASSES, MENDS, CheckResult
from quintain.audit.report.page import page
from quintain.audit.report.page.findings import aligned, differing
from quintain.audit.report.page.markup import lines, tag, text
from quintain.audit.report.page.overview import verdict
from tests.audit.page.documents import CLOSING, HIDDEN, HOSTILE, document, hostile, rate, read, stale

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda one: st.lists(one, max_size=4) | st.dictionaries(st.text(), one, max_size=4),
    max_leaves=12,
)


class Read(HTMLParser):
    """Parser that collects tags and text as a browser would."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "link", "br", "col"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def said(self) -> str:
        return "".join(self.words)


def test_every_element_is_closed_and_every_link_has_its_goal() -> None:
    found = Read(page(document(stale(), hostile(), read())))
    assert found.open == []
    goals = {name for _, attributes in found.tags if (name := attributes.get("id"))}
    links = [attributes["href"] or "" for name, attributes in found.tags if name == "a"]
    assert len(links) > 5
    assert {link.removeprefix("#") for link in links} <= goals


def test_a_finding_says_how_to_mend_it() -> None:
    assert f"To mend it: {MENDS['stale_cache']}" in Read(page(document(stale()))).said


def test_foreign_text_is_escaped() -> None:
    found = Read(page(document(stale(), hostile())))
    assert {"script", "style"} <= {name for name, _ in found.tags}
    assert [name for name, _ in found.tags].count("script") == 1
    assert "img" not in {name for name, _ in found.tags}
    assert not [key for _, attributes in found.tags for key in attributes if key.startswith("on") or key == "src"]
    assert HOSTILE in found.said
    assert CLOSING in found.said


def test_invisible_characters_are_shown() -> None:
    found = page(document(hostile()))
    assert "\u202e" not in found
    assert "\\u202egnihtemos\\u202c \\u001b[31m \\u0000 \\ud800 end" in found
    assert HIDDEN not in found


def test_the_page_needs_nothing_else() -> None:
    found = Read(page(document(stale())))
    policy = next(attributes["content"] for _, attributes in found.tags if "http-equiv" in attributes)
    assert str(policy).startswith("default-src 'none'; style-src 'sha256-")
    assert [attributes["href"] for name, attributes in found.tags if name == "link"] == ["data:,"]
    assert not [attributes for _, attributes in found.tags if "style" in attributes]


@pytest.mark.parametrize(
    ("given", "style", "words"),
    [
        (document(stale(), covered=True), "bad", "Do not train on this. An error is proven"),
        (document(stale(), stale(), covered=True), "bad", "2 errors are proven, each by a trajectory below."),
        (document(covered=True), "good", "Train on it. Nothing is proven in 13 of 13 classes"),
        (document(read(), covered=True), "good", "There is also 1 remark."),
        (document(read(), read(), covered=True), "good", "There are also 2 remarks."),
        (document(), "open", "No error is proven in what was checked. Nothing is proven in 3 of 13 classes"),
        (document(coverage={}), "open", "Nothing was checked."),
        (document(covered=True, too_little="1 of 3 applicable checks"), "open", "Too little was checked."),
        (document(covered=True, failure_rate=rate(2, 59, 0.006, 0.103)), "open", "10.3% of cases, and 5% is the line"),
        (document(covered=True, failure_rate=rate(0, 0, 0.0, 1.0)), "open", "Not certified."),
    ],
)
def test_the_verdict_depends_on_findings_and_coverage(given: dict[str, Any], style: str, words: str) -> None:
    found = verdict(given)
    assert found[0] == style
    assert words in " ".join(found[1:])
    assert found[1] in Read(page(given)).said


def test_each_finding_shows_all_its_fields() -> None:
    said = Read(page(document(stale(), read()))).said
    for words in (
        "look does not show what finish wrote", "x.reads", "proven", "S: the state", "tasks one, two, three and 1 more",
        "to act twice", "Probe 2 (hash seed 1)", "not done", "tasks/7/status", "2. look changed nothing",
        "no letter was sent", "turn 1 step 1 sound_call", "quintain replay-finding 'a folder/finding-1.json'",
        "See it again", "Look again", "/srv/desk.py:12",
    ):  # fmt: skip
        assert words in said, words


def test_the_grid_says_what_was_not_looked_at_and_why() -> None:
    said = Read(page(document(stale()))).said
    assert "the budget was spent on the way" in said
    assert said.count("no check of this class was asked for") == len(CLASSES) - 4
    assert "1 of 1" in said
    assert "0 of 1" in said


def test_a_finding_of_a_class_that_its_check_is_not_of_is_on_the_grid() -> None:
    checks = [CheckResult(check="x.reads", class_="judge", status="checked")]
    made = document(stale())
    made["checks"] = [{"check": one.check, "class": one.class_, "status": one.status, "reason": "", "about": "",
                       "looked": 1, "probes": 1, "findings": 1, "seconds": 0.1} for one in checks]  # fmt: skip
    assert 'href="#finding-1" class="chip found"' in page(made)


def test_pictures_have_their_numbers_in_words() -> None:
    found = Read(page(document(hostile(), failure_rate=rate(2, 59, 0.006, 0.103))))
    labels = [attributes["aria-label"] or "" for name, attributes in found.tags if name == "svg"]
    assert "3.4% of episodes broke; 95 % bounds 0.6% and 10.3%; the line is at 5%" in labels
    assert "Scores of these 59 episodes. episodes: 0 9, 0.5 20, 1 30" in labels
    assert sum(f"{HOSTILE} 3, " in one for one in labels) == 1


def test_a_report_without_episodes_has_no_picture() -> None:
    found = page(document(failure_rate=rate(0, 0, 0.0, 1.0)))
    assert "nothing is known of the failure rate" in found
    assert "<svg" not in found


def test_a_long_value_is_clipped_and_says_so() -> None:
    made = document(read())
    made["findings"][0]["observed"] = "x" * 1_000_000
    found = page(made)
    assert len(found) < 200_000
    assert "1,000,000 characters, all of them in report.json" in found


def test_a_saved_report_has_the_same_page(tmp_path: Path) -> None:
    made = document(stale(), hostile())
    made["findings"][1]["title"] = HOSTILE  # JSON has no lone surrogates
    path = tmp_path / "report.json"
    path.write_text(json.dumps(made), "utf-8")
    assert page(json.loads(path.read_text("utf-8"))) == page(made)


@given(PLAIN, PLAIN)
def test_any_plain_data_makes_a_page(expected: Any, observed: Any) -> None:
    made = document(stale())
    made["findings"][0] |= {"expected": expected, "observed": observed}
    made["findings"][0]["trajectory"][1]["observed"] = observed
    made["findings"][0]["details"]["reasons"] = observed
    assert Read(page(made)).open == []


@given(st.text(), st.text())
def test_text_stays_inside(words: str, name: str) -> None:
    found = Read(tag("p", words, title=name, class_="x"))
    assert [one for one, _ in found.tags] == ["p"]
    assert text(words) == "".join(map(text, words))


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abc"), max_size=6))
def test_aligned_rows_leave_nothing_out(one: list[str], other: list[str]) -> None:
    first = [{"do": "call", "name": name} for name in one]
    second = [{"do": "call", "name": name} for name in other]
    rows = aligned([first, second])
    assert [row[0] for row in rows if row[0]] == first
    assert [row[1] for row in rows if row[1]] == second
    assert all(row[0] == row[1] for row in rows if row[0] and row[1])


def test_the_same_op_with_other_arguments_stands_in_one_row() -> None:
    one = {"do": "call", "name": "find", "arguments": {"q": "a"}}
    other = {"do": "call", "name": "find", "arguments": {"q": "b"}}
    assert aligned([[one], [other]]) == [[one, other]]


@given(st.text("ab\n"), st.text("ab\n"))
def test_differing_marks_and_keeps_every_character(one: str, other: str) -> None:
    left, right = (Read(side) for side in differing(one, other))
    assert left.said.replace("∅", "") == one
    assert right.said.replace("∅", "") == other
    assert (one != other) == any(name == "mark" for name, _ in (*left.tags, *right.tags))


def test_json_in_a_text_is_laid_out_where_nothing_is_lost() -> None:
    value = {"a": "x" * 40, "b": ["y" * 40, 1.5]}
    assert lines(json.dumps(value)) == lines(value)
    assert lines(value).count("\n") == 3
    for kept in ('{"a": 1, "a": 2, "b": "' + "x" * 60 + '"}', '{"a": 1e5, "b": "' + "x" * 60 + '"}', "{not json", "[]"):
        assert lines(kept) == kept
