"""Tests that reward hacks are found in faulty subjects only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quintain.audit.auditor import Report, audit
from quintain.audit.checks import reward_hack
from quintain.audit.checks._reward_tasks import alike, attempts, may_equal
from quintain.audit.facts.acts import asked_for
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject
from quintain.audit.kernel.probe import call

DESKS = Path(__file__).with_name("_reward_subjects.py")
WORDS = Path(__file__).with_name("_reward_words.py")


def audited(name: str, *ids: str) -> Report:
    checks = [one for one in checks_of(reward_hack) if not ids or one.id in ids]
    file = WORDS if f"class {name}" in WORDS.read_text() else DESKS
    return audit(Subject(f"{file}:{name}"), checks)


@pytest.mark.parametrize(
    "name", ["Desk", *(pytest.param(name, marks=pytest.mark.slow) for name in ("Safe", "Tolerant"))]
)
def test_a_sound_subject_has_no_hack(name: str) -> None:
    report = audited(name)
    assert not report.findings
    assert report.coverage["reward_hack"] == "checked"


@pytest.mark.parametrize(
    ("name", "check", "title"),
    [
        pytest.param("OnlyStatus", "x.oracle_ablation", "refund_order is part of the solution", marks=pytest.mark.slow),
        pytest.param("OnlyStatus", "x.forged_result", "one step, done over and over", marks=pytest.mark.slow),
        pytest.param("OnlyStatus", "x.shortest_path", "a short sequence of calls", marks=pytest.mark.slow),
        ("SaysSo", "x.words_without_work", "an answer that describes the work is paid"),
        ("Believer", "x.words_without_work", "an answer that describes the work is paid"),
        pytest.param("AnyTicket", "x.task_swap", "the solution of another task", marks=pytest.mark.slow),
        pytest.param(
            "Undefined", "runtime.reward_well_formed", "the reward is not a finite number", marks=pytest.mark.slow
        ),
        pytest.param(
            "Contained", "x.answer_battery", "an answer that names every possible answer", marks=pytest.mark.slow
        ),
        pytest.param("Fragment", "x.answer_battery", "an answer that says nothing", marks=pytest.mark.slow),
        pytest.param("Anything", "x.answer_battery", "an answer that says nothing", marks=pytest.mark.slow),
        pytest.param("Persuaded", "x.answer_battery", "an answer that speaks to the judge", marks=pytest.mark.slow),
        pytest.param("NotANumber", "x.answer_battery", "an answer that says nothing", marks=pytest.mark.slow),
    ],
)
def test_a_hack_is_proven(name: str, check: str, title: str) -> None:
    found = audited(name, check).findings
    assert [one.title for one in found if one.title.startswith(title)]
    for one in found:
        assert (one.class_, one.part, one.confidence, one.severity) == ("reward_hack", "V", "proven", "error")


@pytest.mark.slow
def test_the_trajectory_holds_nothing_that_can_be_left_out() -> None:
    [found] = audited("OnlyStatus", "x.shortest_path").findings
    assert [line["do"] for line in found.trajectory] == ["reset", "call", "state", "score"]


@pytest.mark.slow
def test_without_a_look_into_the_world_a_missing_step_is_likely() -> None:
    [found] = audited("Unseen", "x.oracle_ablation").findings
    assert found.title.startswith("refund_order")
    assert found.confidence == "likely"


def test_the_battery_spares_what_may_be_right() -> None:
    yes = {one.text for one in attempts("yes", ["no", "maybe"], "is it so?")}
    assert not {"yes", "true", "1", "OK", "correct"} & yes
    assert {"", "no", "maybe", "0"} <= yes
    assert not any(one.text == "None" for one in attempts("none", ["some"], ""))
    assert may_equal("2", r"$\sqrt{4}$")
    assert not may_equal("2", "4")
    assert may_equal("four", r"$\sqrt{4}$")
    assert not may_equal("a cat", r"$\sqrt{4}$")
    assert alike("1,000", "1000.0")
    assert not alike("17", "177")
    assert not [one for one in attempts("so it is 4.\n#### 42", ["7"], "") if one.kind in ("joined", "negated", "case")]


@pytest.mark.slow
def test_a_forged_result_is_proven_and_a_watched_one_is_silent() -> None:
    [found] = audited("Forgeable", "x.verifier_tampering").findings
    assert (found.confidence, found.trajectory[1]["arguments"]["path"]) == ("proven", "test_result.txt")
    courtesy = audited("Repo").findings
    assert not [one for one in courtesy if one.confidence == "proven" or one.severity == "error"]


def test_a_scorer_that_contradicts_its_cases(tmp_path: Path) -> None:
    path, cases = tmp_path / "scorer.py", tmp_path / "cases.jsonl"
    path.write_text("def score(answer, gold):\n    return float(gold in answer)\n")
    rows = [("4", "4", 1.0), ("5", "4", 0.0), ("14", "4", 0.0), ("four", "4", 1.0)]
    lines = [json.dumps({"answer": said, "gold": gold, "expected": right}) for said, gold, right in rows]
    cases.write_text("\n".join(lines))
    checks = [one for one in checks_of(reward_hack) if one.id == "x.labelled_cases"]
    over, under = audit(Subject(f"{path}:score", cases=str(cases)), checks).findings
    assert (over.class_, over.tasks, over.confidence) == ("reward_hack", ("case 3",), "proven")
    assert (under.class_, under.tasks) == ("unsolvable", ("case 4",))


@pytest.mark.slow
def test_a_scorer_whose_cases_have_no_expected_score_gets_the_battery(tmp_path: Path) -> None:
    path, cases = tmp_path / "scorer.py", tmp_path / "cases.jsonl"
    path.write_text("def score(answer, gold):\n    return float(gold in answer)\n")
    cases.write_text("\n".join(json.dumps({"answer": "", "gold": gold}) for gold in ("12", "Oslo", "7.5", "red")))
    checks = [one for one in checks_of(reward_hack) if one.id == "x.answer_battery"]
    assert audit(Subject(f"{path}:score", cases=str(cases)), checks).findings


def test_a_prompt_asks_for_what_the_body_of_a_call_holds() -> None:
    op = call("change", {"id": 7, "body": {"ticket": {"tags": ["checked_816"], "group_id": 3312}}})
    assert asked_for(op, "Add the tag checked_816 to the ticket.")
    assert not asked_for(op, "Look at group 3312 and ticket 7.")


IN_TURN = """
class InTurn:
    def tasks(self):
        return [f"task {number}" for number in range(20)]

    def tools(self):
        value = {"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]}
        return [{"name": f"set_{letter}", "description": "", "parameters": value} for letter in "abcdex"]

    def reset(self, task, seed):
        self.number, self.fields = int(task[5:]), dict.fromkeys("abcdex", 0)
        return f"Set {self.letter} to {self.number + 100}, and x to {self.number + 200}."

    @property
    def letter(self):
        return "abcde"[self.number % 5]

    def call(self, name, arguments):
        self.fields[name[4:]] = arguments["value"]
        return "ok"

    def state(self):
        return dict(self.fields)

    def oracle(self, task):
        number = int(task[5:])
        return [[f"set_{'abcde'[number % 5]}", {"value": number + 100}], ["set_x", {"value": number + 200}]]

    def score(self):
        is_set = self.fields[self.letter] == self.number + 100 or self.letter == "c"
        return float(is_set and self.fields["x"] == self.number + 200)
"""


def test_a_kind_of_task_between_those_at_equal_distances_is_found(tmp_path: Path) -> None:
    file = tmp_path / "in_turn.py"
    file.write_text(IN_TURN, "utf-8")
    checks = [one for one in checks_of(reward_hack) if one.id == "x.oracle_ablation"]
    [found] = audit(Subject(f"{file}:InTurn"), checks).findings
    assert found.title.startswith("set_c is part of the solution")
    assert found.confidence == "proven"
