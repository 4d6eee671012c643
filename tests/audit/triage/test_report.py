from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from quintain.audit.facts.bounds import bounds
from quintain.audit.triage import Reading
from quintain.audit.triage.evidence import FirstDifference, ReplayEvidence
from quintain.audit.triage.reading import Unreadable
from quintain.audit.triage.report import CONTROL, RunReport, merged, triage
from quintain.audit.triage.siblings import Run
from quintain.audit.triage.signs import AREA, features
from quintain.errors import UsageError
from quintain.testing.fakes import counter
from quintain.trace import Trace
from tests.audit.triage.episodes import COUNTER, answers, asks, count, file, play, reading, row, run, said

replaced = msgspec.structs.replace


def broken(**fields: Any) -> dict[str, Any]:
    return row(said("x"), reward=None, error="SandboxError", **fields)


def sound(**fields: Any) -> dict[str, Any]:
    return row(said("x"), reward=0.5, **fields)


def members(*rows: dict[str, Any], task: str = "t") -> list[dict[str, Any]]:
    return [one | {"task_id": task, "member": n} for n, one in enumerate(rows)]


# --- recommendations to the trainer ---


@pytest.mark.parametrize(
    ("rows", "verdicts"),
    [
        ([broken(), *[sound()] * 3], ["exclude", "train", "train", "train"]),
        ([broken(), broken(), sound(), sound()], ["exclude", "exclude", "train", "train"]),
        ([broken(), broken(), broken(), sound()], ["exclude_group"] * 4),  # one member makes no baseline
        ([broken(), sound()], ["exclude_group"] * 2),
        ([broken()], ["exclude"]),
        ([sound()], ["train"]),
    ],
)
def test_a_group_needs_enough_members_for_a_baseline(rows: list[dict[str, Any]], verdicts: list[str]) -> None:
    report = file(*members(*rows))
    assert [one.verdict for one in report.judged] == verdicts


def test_other_groups_are_not_touched() -> None:
    report = file(*members(broken(), sound()), *members(sound(), sound(), task="u"))
    assert [one.verdict for one in report.judged] == ["exclude_group"] * 2 + ["train"] * 2


# --- rates ---


@pytest.mark.parametrize(
    ("failed", "n", "verdict"),
    [(0, 58, "undecided"), (0, 59, "certified"), (10, 200, "undecided"), (5, 40, "stop_run"), (3, 3, "stop_run")],
)
def test_the_verdict_depends_on_the_five_percent_line(failed: int, n: int, verdict: str) -> None:
    rows = [broken(task_id=f"{i}") if i < failed else sound(task_id=f"{i}") for i in range(n)]
    report = file(*rows)
    assert report.verdict == verdict
    assert (report.low, report.high) == bounds(failed, n, one_sided=True)
    assert (report.failures.low, report.failures.high) == bounds(failed, n)
    assert report.by_owner["infra"].episodes == report.failures.episodes == failed
    assert sum(rate.episodes for rate in report.by_owner.values()) == n


def test_unreadable_episodes_count_as_started() -> None:
    lost = [Unreadable(place=f"x:{n}", reason="torn", episode=n < 3) for n in range(5)]
    report = run(triage(Reading(played=reading(sound()).played, unreadable=lost)))
    assert report.episodes == 4
    assert report.by_owner["unknown"].episodes == report.failures.episodes == 3


def test_an_empty_run_is_undecided() -> None:
    report = file()
    assert (report.episodes, report.verdict, report.queue) == (0, "undecided", [])


def test_the_report_is_plain_data_and_the_same_every_time() -> None:
    traces = [play(COUNTER, count(n % 3), n % 4, member=n) for n in range(12)]

    def document() -> str:
        return json.dumps(file(*traces, env=COUNTER).to_dict())

    first = json.loads(document())
    assert json.loads(document()) == first
    assert {row["verdict"] for row in first["labels"]} == {"train"}
    assert len({tuple(row) for row in first["labels"]}) == 1  # the same keys


# --- evidence of other processes ---


def test_evidence_of_another_process_is_merged() -> None:
    left = FirstDifference(turn=0, field="observation", recorded="a", found="b")
    agrees, differs, blind = (
        ReplayEvidence(scores=[1.0]),
        ReplayEvidence(left=left, scores=[0.0]),
        ReplayEvidence(missing="no"),
    )
    (both,) = merged([agrees], [differs])
    assert (both.left, both.steady, both.scores) == (left, False, [1.0, 0.0])
    assert merged([agrees], [blind]) == [agrees]
    assert merged([differs], [differs])[0].steady
    with pytest.raises(UsageError, match="same run"):
        merged([agrees], [])


# --- failures that the agent can bring about ---


def crashing(n: int, *, provoked: bool) -> list[Trace]:
    """Returns episodes that break; if provoked, those in which the agent called a tool twice as often."""
    traces: list[Trace] = []
    for i in range(n):
        breaks = i % 3 == 0
        calls = [("add", {"amount": i % 7}), ("add", {"amount": 1})]
        if breaks if provoked else i % 5 == 0:
            calls = [("subtract", {"amount": 12345678 + i})] * 3
        trace = play(COUNTER, calls, i % 10, member=i)
        if breaks:
            from quintain.errors import Failure
            from quintain.trace import End

            failure = Failure(component="S", kind="quintain:tool_bug", stage="agent", type="E", message="x", turn=1)
            trace = replaced(trace, failure=failure, end=End.FAILED, score=None)
        traces.append(trace)
    return traces


def test_a_failure_that_actions_predict_counts_as_the_models() -> None:
    report = file(*crashing(60, provoked=True))
    (first, *_) = report.warnings
    assert (first.class_, first.what) == ("reward_hack", "provoked")
    assert "subtract" in " ".join(sign.why for sign in report.warnings)
    flagged = [one for one in report.judged if one.provoked]
    assert len(flagged) == 20
    assert {(one.owner, one.verdict, one.score_as) for one in flagged} == {("env", "train", "model_failure")}
    assert "provoked" in " ".join(" ".join(entry.reasons) for entry in report.queue)


def test_an_unpredictable_failure_is_excluded() -> None:
    report = file(*crashing(60, provoked=False))
    assert not any(one.provoked for one in report.judged)
    assert not any(sign.what == "provoked" for sign in report.warnings)


def test_too_few_episodes_conclude_nothing() -> None:
    assert not any(one.provoked for one in file(*crashing(27, provoked=True)).judged)


def test_a_feature_does_not_grow_with_the_length_of_an_episode() -> None:
    short, long = (features(reading(play(COUNTER, count(n), 9)).played[0]) for n in (2, 9))
    assert short["share of calls of add"] == long["share of calls of add"] == 1
    assert AREA > 0.5


# --- what to read first ---


def test_contradictions_come_first_and_some_are_drawn_blindly() -> None:
    good = [replaced(play(COUNTER, count(1), member=n)) for n in range(300)]
    odd = replaced(good[7], score=0.0, rewards=[replaced(r, value=0.0, raw=0.0) for r in good[7].rewards])
    report = file(*good[:7], odd, *good[8:], length=5)
    first = report.queue[0]
    assert first.index == 7
    assert "no reward for a world that earned the whole reward elsewhere" in first.reasons
    blind = [entry for entry in report.queue if entry.control]
    assert len(blind) == CONTROL * 300
    assert not {entry.index for entry in blind} & {entry.index for entry in report.queue if not entry.control}
    other = file(*good, length=5, seed=1)
    assert [entry.index for entry in other.queue if entry.control] != [entry.index for entry in blind]


def test_a_rare_error_is_news_and_a_common_one_is_not() -> None:
    def refused(text: str, task: str) -> dict[str, Any]:
        return row(asks("get", '{"id": "A"}'), answers(text), said("x"), reward=0.0, task_id=task)

    rows = [refused(f"error: unknown 'A{n}'", f"{n}") for n in range(5)] + [refused("error: the moon", "new")]
    report = file(*rows)
    news = [entry.task for entry in report.queue if "an error that no other" in " ".join(entry.reasons)]
    assert news == ["new"]


# --- what only the run shows ---


def whats(report: RunReport) -> list[str]:
    return [sign.what for sign in report.warnings]


def test_groups_of_one_reward_carry_no_gradient() -> None:
    flat = [one for n in range(6) for one in members(sound(), sound(), task=f"{n}")]
    assert "zero_variance" in whats(file(*flat))
    mixed = [one for n in range(6) for one in members(sound(), row(said("y"), reward=0.1), task=f"{n}")]
    assert "zero_variance" not in whats(file(*mixed))


def test_rewards_that_hide_their_verdicts_are_a_sign() -> None:
    rows = [row(said("x"), reward=0.0, metrics={"a": n / 30}, task_id=f"{n}") for n in range(30)]
    assert "reward_atom" in whats(file(*rows))
    rows = [row(said("x"), reward=n / 30, metrics={"a": n / 30}, task_id=f"{n}") for n in range(30)]
    assert "reward_atom" not in whats(file(*rows))


def test_rewards_that_pile_up_at_a_bound_are_a_sign() -> None:
    def paid(reward: Callable[[float], float]) -> list[str]:
        each = [row(said("x"), reward=reward(n / 40), metrics={"a": n / 40}, task_id=f"{n}") for n in range(40)]
        return whats(file(*each))

    assert "reward_pile" in paid(lambda a: a if a >= 0.5 else 0.0)
    assert "reward_pile" not in paid(lambda a: a)
    assert "reward_pile" not in paid(lambda a: float(a > 0.5))


def test_a_tool_with_one_answer_is_a_sign() -> None:
    def asked(n: int, answer: str) -> dict[str, Any]:
        return row(asks("get", f'{{"id": "{n}"}}'), answers(answer), said("x"), task_id=f"{n}")

    same = file(*(asked(n, '{"name": "a default customer"}') for n in range(25)))
    assert "same_answer" in whats(same)
    assert "same_answer" not in whats(file(*(asked(n, f'{{"name": "customer {n}"}}') for n in range(25))))
    assert "same_answer" not in whats(file(*(asked(n, '{"found": 0, "rows": []}') for n in range(25))))


def test_durations_at_a_limit_are_a_sign() -> None:
    def timed(*seconds: float) -> RunReport:
        found = reading(*(play(COUNTER, count(1), n % 10, member=n) for n in range(len(seconds))))
        for one, spent in zip(found.played, seconds, strict=True):
            one.seconds = {"tool_s": spent}
        report: RunReport = run(triage(found))
        return report

    assert "durations_at_a_limit" in whats(timed(*[0.1] * 27, 30.0, 30.01, 30.02))
    assert "durations_at_a_limit" not in whats(timed(*[0.1] * 27, 5.0, 20.0, 30.0))


def test_members_without_a_record_are_a_sign() -> None:
    rows = [*members(sound(), sound(), sound()), *members(sound(), task="u")]
    assert "missing_members" in whats(file(*rows))
    assert "missing_members" not in whats(file(*rows[:3]))


def test_a_sealed_text_before_any_reading_is_a_sign() -> None:
    gold = "the-hidden-passphrase"
    assert "gold_before_sight" in whats(file(row(said(f"It is {gold}."), answer=gold)))
    shown = row(asks("get", "{}"), answers(gold), said(f"It is {gold}."), answer=gold)
    assert "gold_before_sight" not in whats(file(shown))


def test_agreement_against_the_gold_is_a_sign() -> None:
    ways = [[("add", {"amount": 3})], [("add", {"amount": 1})] * 3, [("add", {"amount": 2}), ("add", {"amount": 1})]]
    traces = [play(COUNTER, way, 6, member=n) for n, way in enumerate(ways)]
    assert "consensus" in whats(file(*traces))
    assert "consensus" not in whats(file(*traces[:2], play(COUNTER, count(7), 6, member=2)))


def test_calls_of_unadvertised_tools_are_a_sign() -> None:
    traces = [play(counter(), [("subtract", {})], n % 10, member=n) for n in range(6)]
    assert "unknown_tools" in whats(file(*traces, env=COUNTER))


def test_facts_of_a_run_do_not_depend_on_its_order() -> None:
    traces = [play(COUNTER, count(n % 3), n % 4, member=n) for n in range(12)]
    forth, back = Run(reading(*traces).played), Run(reading(*reversed(traces)).played)
    assert forth.errors == back.errors
    assert {name: len(found) for name, found in forth.groups.items()} == {n: len(f) for n, f in back.groups.items()}
