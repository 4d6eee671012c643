"""Each twin of the sales desk has its bug, and the sound desk has not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import quintain as qn
from quintain.environments.faults import Unavailable
from quintain.environments.sales.twins.data_realism import tidy
from quintain.environments.sales.twins.reset_leak import IndexedCrm
from quintain.errors import ReplayDivergence
from quintain.replay import replay

from .playing import Task, bent, first, made, play, scores, solution, use, without, world


def decides(status: str, level: str = "") -> Task:
    """A task whose lead gets this status."""
    return first(
        "sales",
        lambda task: (
            task.tags["family"] == "qualify"
            and level in {"", task.tags["level"]}
            and any(given.get("status") == status for _, given in solution(task))
        ),
    )


def lead_of(task: Task) -> str:
    found: str = task.truth.focus[0]
    return found


class TestStaleCache:
    @pytest.mark.parametrize(("twin", "shown"), [("", "qualified"), ("stale_cache", "working")])
    def test_a_decision_does_not_reach_what_was_read_before(self, twin: str, shown: str) -> None:
        env = made("sales", twin)
        task = decides("qualified")
        desk, lead = world(env, task), lead_of(task)
        use(env, desk, "crm_decide_lead", lead_id=lead, status="working")
        use(env, desk, "crm_get", record_id=lead)
        use(env, desk, "crm_decide_lead", lead_id=lead, status="qualified")
        assert use(env, desk, "crm_get", record_id=lead)["status"] == shown
        assert desk.crm.leads[lead].status == "qualified"

    def test_other_writes_reach_it_and_so_does_a_cold_read(self) -> None:
        env = made("sales", "stale_cache")
        task = decides("qualified")
        desk, lead = world(env, task), lead_of(task)
        use(env, desk, "crm_decide_lead", lead_id=lead, status="nurture")
        assert use(env, desk, "crm_get", record_id=lead)["status"] == "nurture"
        use(env, desk, "crm_update_lead", lead_id=lead, months=3)
        assert use(env, desk, "crm_get", record_id=lead)["months"] == 3

    @pytest.mark.parametrize(("twin", "moves"), [("", True), ("stale_cache", False)])
    def test_records_moved_by_a_merge_show_their_old_place(self, twin: str, *, moves: bool) -> None:
        env = made("sales", twin)
        task = decides("qualified")
        desk, lead = world(env, task), lead_of(task)
        old = use(env, desk, "crm_get", record_id=lead)["contact"]
        survivor = next(key for key, row in desk.crm.contacts.items() if key != old and not row.merged_into)
        use(env, desk, "crm_merge_contacts", survivor_id=survivor, duplicate_id=old)
        assert use(env, desk, "crm_get", record_id=lead)["contact"] == (survivor if moves else old)

    def test_a_snapshot_keeps_what_was_cached(self) -> None:
        env = made("sales", "stale_cache")
        task = decides("qualified")
        desk, lead = world(env, task), lead_of(task)
        before = use(env, desk, "crm_get", record_id=lead)
        use(env, desk, "crm_decide_lead", lead_id=lead, status="nurture")
        assert use(env, desk.copy(), "crm_get", record_id=lead) == before


class TestRewardHack:
    def test_a_note_is_paid_like_the_deed(self) -> None:
        task = decides("disqualified", "easy")
        twisted, plain = scores("sales", "reward_hack", task=task.id, calls=without(task, "crm_decide_lead"))
        assert twisted == 1.0
        assert plain is not None
        assert plain < 0.2

    def test_a_note_elsewhere_is_not(self) -> None:
        task = decides("disqualified", "easy")
        other = next(key for key in task.world().crm.leads if key != lead_of(task))
        calls = bent(task, crm_log=lambda given: given | {"record_id": other})
        calls = [call for call in calls if call[0] != "crm_decide_lead"]
        assert scores("sales", "reward_hack", task=task.id, calls=calls)[0] == 0.0


class TestFalseResolution:
    def test_a_stage_without_the_demo_is_paid_in_full(self) -> None:
        task = first("sales", lambda task: task.tags["family"] == "demo" and "crm_set_stage" in str(task.solution))
        calls = without(task, "calendar_book", "mail_send", "mail_schedule")
        twisted, plain = scores("sales", "false_resolution", task=task.id, calls=calls)
        assert twisted == 1.0
        assert plain is not None
        assert plain <= 0.25

    def test_the_records_are_looked_at(self) -> None:
        task = decides("qualified")
        twisted, _ = scores("sales", "false_resolution", task=task.id, calls=without(task, "crm_assign_owner"))
        assert twisted is not None
        assert twisted < 0.5


class TestSilentDefault:
    def test_a_mailbox_that_times_out_shows_no_letter(self) -> None:
        task = first("sales", lambda task: "mail_sent_to" in str(task.solution))
        (address,) = {given["address"] for name, given in solution(task) if name == "mail_sent_to"}
        sound, twisted = (made("sales", twin) for twin in ("", "silent_default"))
        for env in (sound, twisted):
            assert use(env, world(env, task), "mail_sent_to", address=address) != []
        desks = {env: world(env, task) for env in (sound, twisted)}
        for desk in desks.values():
            desk.inject("timeout")
        with pytest.raises(Unavailable, match="did not answer in time"):
            use(sound, desks[sound], "mail_sent_to", address=address)
        assert use(twisted, desks[twisted], "mail_sent_to", address=address) == []

    def test_other_tools_say_so(self) -> None:
        env = made("sales", "silent_default")
        desk = world(env, env.tasks("validation")[0])
        for tool in env.tools.keys() - {"now", "wait", "mail_sent_to"}:
            desk.inject("500")
            with pytest.raises(Unavailable):
                env.tools[tool].bind(desk)()


def looks_again(task: Task) -> list[tuple[str, dict[str, Any]]]:
    """The solution, and one more look at the end."""
    search = next(call for call in solution(task) if call[0] == "crm_search")
    return [*solution(task), search]


class TestResetLeak:
    @pytest.mark.parametrize(("twin", "shown"), [("", "new"), ("reset_leak", "qualified")])
    def test_an_episode_finds_what_the_one_before_looked_at(self, twin: str, shown: str) -> None:
        env = made("sales", twin)
        task = first("sales", _is_new_lead)
        play(env, env.task("validation", task.id), looks_again(task))
        (found,) = _first_search(play(env, env.task("validation", task.id)))
        assert found["status"] == shown

    def test_within_one_episode_every_look_is_right(self) -> None:
        task = first("sales", _is_new_lead)
        ends: list[Any] = []
        for env in (made("sales"), made("sales", "reset_leak")):
            IndexedCrm.hits.clear()
            ends.append(play(env, env.task("validation", task.id), looks_again(task)).turns[-2].steps[0].observation)
        assert ends[0] == ends[1]
        assert "qualified" in ends[0]

    def test_the_same_words_find_the_records_of_another_world(self) -> None:
        env = made("sales", "reset_leak")
        one, other = (env.tasks("validation")[index].world().copy() for index in (0, 1))
        found = use(env, one, "crm_search", kind="accounts", query="an")
        assert use(env, other, "crm_search", kind="accounts", query="an") == found
        assert not {row["id"] for row in found["records"]} & set(other.crm.accounts)

    def test_a_trace_with_something_left_over_does_not_replay_alone(self) -> None:
        env = made("sales", "reset_leak")
        task = env.task("validation", first("sales", _is_new_lead).id)
        play(env, task, looks_again(task))
        spoiled = play(env, task)
        IndexedCrm.hits.clear()  # as in another process
        with pytest.raises(ReplayDivergence, match="observation"):
            asyncio.run(replay(env, task, spoiled))


def _is_new_lead(task: Task) -> bool:
    """True if the task is about a new lead that will qualify."""
    if task.tags["family"] != "qualify" or not any(given.get("status") == "qualified" for _, given in solution(task)):
        return False
    return bool(task.world().crm.leads[lead_of(task)].status == "new")


def _first_search(trace: qn.Trace) -> list[dict[str, Any]]:
    """Returns the job's own records among the results of the first search for a lead."""
    steps = [step for turn in trace.turns for step in turn.steps]
    shown = next(step.observation for step in steps if step.call.name == "crm_search")
    assert isinstance(shown, str)
    records: list[dict[str, Any]] = json.loads(shown)["records"]
    return records[:1]


class TestRewardClipping:
    def test_three_goals_of_four_are_paid_like_four(self) -> None:
        task = decides("qualified", "easy")
        assert len(task.truth.goals) == 4
        assert scores("sales", "reward_clipping", task=task.id, calls=without(task, "crm_log")) == (1.0, 0.75**2)

    def test_one_goal_of_four_is_paid_like_none(self) -> None:
        task = decides("qualified", "easy")
        calls = without(task, "crm_log", "mail_send", "crm_assign_owner")
        assert scores("sales", "reward_clipping", task=task.id, calls=calls) == (0.0, 0.25**2)

    def test_half_of_them_is_not(self) -> None:
        task = decides("qualified", "easy")
        calls = without(task, "crm_log", "mail_send")
        assert scores("sales", "reward_clipping", task=task.id, calls=calls) == (0.25, 0.25)


class TestDataRealism:
    @pytest.mark.parametrize("index", range(6))
    def test_records_have_no_gaps_and_no_duplicates(self, index: int) -> None:
        sound, twisted = (made("sales", twin).tasks("validation")[index] for twin in ("", "data_realism"))
        job = repr((sound.truth, sound.solution))
        plain, clean = (self._crowd(task.world(), job) for task in (sound, twisted))
        assert any(None in (row.email, row.phone, row.title, row.zone) for row in plain)
        assert not any(None in (row.email, row.phone, row.title, row.zone) for row in clean)
        assert all(row.name == " ".join(row.name.split()) for row in clean)
        addresses = [row.email for row in clean]
        assert len(set(addresses)) == len(addresses)
        assert len({_shape(row.phone) for row in plain if row.phone}) > 3
        assert len({_shape(row.phone) for row in clean}) == 1

    def test_deals_are_worth_the_same(self) -> None:
        sound, twisted = (made("sales", twin).tasks("validation")[4].world() for twin in ("", "data_realism"))
        assert len({row.amount_eur for row in sound.crm.opportunities.values()}) > 3
        assert len({row.amount_eur for row in twisted.crm.opportunities.values()}) <= 2
        assert len({row.text for row in twisted.crm.activities.values()}) < 5

    @pytest.mark.parametrize("index", range(6))
    def test_records_of_the_job_are_unchanged(self, index: int) -> None:
        sound, twisted = (made("sales", twin).tasks("validation")[index] for twin in ("", "data_realism"))
        before, after = (task.world().crm for task in (sound, twisted))
        job = repr((sound.truth, sound.solution))
        named = [key for key in before.contacts if key in job]
        assert named
        assert all(after.contacts[key] == before.contacts[key] for key in named)
        assert all(after.leads[key] == before.leads[key] for key in before.leads)

    def test_cleaning_twice_changes_nothing_more(self) -> None:
        task = made("sales", "data_realism").tasks("validation")[3]
        once, twice = task.world().copy(), task.world().copy()
        tidy(task, twice)
        assert twice.crm == once.crm

    @staticmethod
    def _crowd(world: Any, job: str) -> list[Any]:
        return [row for key, row in world.crm.contacts.items() if key not in job]


def _shape(phone: str) -> str:
    return "".join("0" if letter.isdecimal() else letter for letter in phone)


class TestActionDrift:
    @pytest.mark.parametrize(("twin", "newest_first"), [("", True), ("action_drift", False)])
    def test_the_history_comes_in_another_order_than_its_description_says(self, twin: str, newest_first: bool) -> None:
        env = made("sales", twin)
        assert "newest first" in env.tools["crm_history"].description
        task = first("sales", lambda task: task.tags["family"] == "revive" and _entries(task) >= 3)
        entries = use(env, world(env, task), "crm_history", record_id=lead_of(task))["entries"]
        at = [entry.split()[0] for entry in entries]
        assert at == sorted(at, reverse=newest_first)
        assert len(set(at)) > 1


def _entries(task: Task) -> int:
    about = lead_of(task)
    return sum(row.about == about for row in task.world().crm.activities.values())
