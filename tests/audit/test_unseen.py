"""Bugs of worlds that nobody who wrote a check had seen, each with the check that proves it since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quintain.audit.auditor import audit
from quintain.audit.kernel.check import registered
from quintain.audit.kernel.loader import Subject

FOLDER = Path(__file__).parents[2] / "bench/audit"


def slow(*row: str) -> Any:
    return pytest.param(*row, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("world", "bug", "check"),
    [
        slow(
            "unseen_b/canal", "env_chart", "x.read_walks"
        ),  # a read by its description, which keeps its text in the state
        ("unseen_b/kerb", "env_no_rowcount", "x.unknown_names"),  # the number of a row
        ("unseen_b/letterbook", "env_blank", "x.unknown_names"),  # a form with nothing filled in
        ("unseen_b/letters", "env_cut_brief", "x.whole_texts"),  # a prompt without its end
        slow("unseen_b/spokes", "env_insistent", "x.called_off"),  # a message that is sent later names what was planned
        slow("unseen_c/waybill", "env_superset", "x.every_candidate"),  # a list with entries of other tasks
        slow("unseen_c/waybill", "env_only_said", "x.partial_work"),  # "in any order" lets nothing be left out
        slow("unseen_c/joinery", "env_paste", "x.every_candidate"),  # "done" as the last words, an id before the text
        slow("unseen_c/repairs", "env_busy_bonus", "x.forged_result"),  # each look is paid
        slow("unseen_c/ferrycrew", "env_today_board", "x.unknown_names"),  # rows of another day
        slow("unseen_c/carhire", "env_first_verdict", "x.quoted_verdict"),  # a verdict in the answer
        slow("unseen_c/recallnotice", "env_short_prompt", "x.judge_is_asked_safely"),  # line breaks are lost
        slow(
            "unseen_c/recallnotice", "env_tolerant_parser", "x.judge_reads_verdicts"
        ),  # a list of items, each met or not
        slow("unseen_c/waybill", "env_loose_verdict", "x.report_lines"),  # a name that a small model compares
        slow("unseen_c/joinery", "env_verdict", "x.quoted_verdict"),  # a verdict in the place of one line of a letter
        slow("unseen_d/tremors", "env_first_verdict", "x.quoted_verdict"),  # a verdict in the place of a word
        slow("unseen_d/hives", "env_first_verdict", "x.quoted_verdict"),  # a verdict in words that only a log keeps
        slow("unseen_d/handover", "env_first_match", "x.quoted_verdict"),  # a score in the first line, which is quoted
        slow("unseen_d/regatta", "env_any_block", "x.every_candidate"),  # the best of several objects
        slow("unseen_d/regatta", "env_given_boats", "x.partial_work"),  # one field of an inner object
        slow("unseen_d/tremors", "env_recall", "x.every_candidate"),  # a list of a call that is asked for exactly
        slow("unseen_d/seedbank", "env_any_service", "x.unknown_names"),  # a word that stands for a described one
        slow("unseen_d/subtitles", "env_lenient_times", "x.unknown_names"),  # a time that stands for 00:00
        slow("unseen_d/tremors", "env_any_date", "x.unknown_names"),  # a date that stands for none
        slow("unseen_d/seedbank", "env_ghost_parcel", "x.called_off"),  # a plan that no solution cancels
        slow("unseen_d/subtitles", "env_pattern_search", "x.texts_are_no_patterns"),  # a class of letters
        slow("unseen_d/hives", "env_stale_card", "x.read_walks"),  # a cache that is made at its first use
        slow("unseen_d/tremors", "env_memo", "x.read_walks"),  # a table that no solution looks at
        slow("unseen_d/tremors", "env_pool", "runtime.episode_isolation"),  # the same table, kept for the process
        slow("unseen_d/shunting", "env_moving_record", "runtime.episode_isolation"),  # the task was ended early before
        slow("unseen_d/handover", "env_short_key", "runtime.episode_isolation"),  # it was answered otherwise before
        slow("unseen_d/handover", "env_capped_set", "x.verdict_near_the_solution"),  # one sentence of a line is wrong
        slow("unseen_d/regatta", "env_spot_check", "x.verdict_near_the_solution"),  # one entry of a field is wrong
        slow("unseen_d/meteorite", "env_amount_ignored", "x.changed_argument"),  # less than the named request says
        slow("unseen_d/hives", "env_double_hive", "x.changed_argument"),  # one hive in the place of several
        slow("unseen_d/handover", "env_overlap", "x.splits_differ"),  # the last of train are the first of test
        slow("unseen_d/seedbank", "env_one_series", "x.splits_differ"),
        slow("unseen_d/subtitles", "env_overlapping_films", "x.splits_differ"),
        slow("unseen_b/herbarium", "env_one_pool", "x.splits_differ"),
        slow("unseen_d/handover", "env_log_tail", "x.whole_texts"),  # a code that stands in no prompt
        slow("unseen_d/subtitles", "env_four_in_five", "x.ladder"),  # a world with one table
        slow("unseen_d/seedbank", "env_two_suffice", "x.ladder"),
        slow("unseen_d/meteorite", "env_three_suffice", "x.ladder"),  # "at least" of what no call counts
        slow("unseen_e/museum", "env_forgiving", "x.judge_says_when_it_fails"),  # rules of form come before the judge
        slow("unseen_e/museum", "env_thinking", "x.judge_reads_verdicts"),  # a line for each item
        slow("unseen_e/museum", "env_neighbours", "x.examples_are_no_answers"),  # prompts of the training split
        slow("unseen_e/zonedesk", "env_first_score", "x.quoted_verdict"),  # a score with decimals
        slow(
            "unseen_e/herbarium", "env_tolerant", "x.unknown_names"
        ),  # a search that keeps its place, cut after a page
        slow("unseen_e/ferry", "env_printed_times", "x.done_as_told"),  # 10:30 comes before 9:00
        slow("unseen_e/pollination", "env_labels", "x.lists_are_in_order"),  # "$9 each" is an amount
        slow("unseen_e/dyehouse", "env_rounded", "x.half_filled"),  # any one field of an answer may be wrong
        slow("unseen_e/kiln", "env_logbook", "x.forged_result"),  # looks that count as time
        slow("unseen_e/herbarium", "env_days", "x.calendar"),  # days of the 1800s in a few of many rows
    ],
)
def test_bug_is_proven_and_its_sound_world_is_let_alone(world: str, bug: str, check: str) -> None:
    checks = [one for one in registered() if one.id == check]
    for name, wanted in (("env", set[tuple[str, str]]()), (bug, {("error", "proven")})):
        report = audit(Subject(f"{FOLDER / world}.py:{name}"), checks, tasks=12)
        assert {(one.severity, one.confidence) for one in report.findings} == wanted


@pytest.mark.slow
def test_number_that_a_solution_works_out_is_missed_in_no_text() -> None:
    checks = [one for one in registered() if one.id == "x.whole_texts"]
    assert not audit(Subject(f"{FOLDER}/unseen_e/kiln.py:env_logbook"), checks, tasks=30).findings
