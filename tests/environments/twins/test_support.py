"""Each twin of the help desk has its bug, and the sound desk has not."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

import quintain as qn
from quintain.environments.faults import Unavailable
from quintain.environments.support.schema.accounts import Lock
from quintain.environments.support.schema.billing import Invoice
from quintain.testing.elsewhere import fresh_processes
from quintain.testing.fakes import Script

from .playing import Task, bent, first, made, play, scores, solution, use, verdict_under, without, world

NO_ROW = 2**40
"""A number that no row has."""


def kind(family: str, level: str = "easy") -> Task:
    return first("support", lambda task: (task.tags["family"], task.tags["level"]) == (family, level))


class TestStaleCache:
    @pytest.mark.parametrize(("twin", "is_stale"), [("", False), ("stale_cache", True)])
    def test_sessions_that_were_ended_are_shown_for_ten_minutes(self, twin: str, *, is_stale: bool) -> None:
        env, desk, account = _with_session(twin)
        assert use(env, desk, "get_account", account_id=account)["sessions"]
        use(env, desk, "end_sessions", account_id=account)
        assert bool(use(env, desk, "get_account", account_id=account)["sessions"]) == is_stale
        use(env, desk, "wait", hours=0.25)
        assert use(env, desk, "get_account", account_id=account)["sessions"] == []

    def test_a_cold_read_is_right(self) -> None:
        env, desk, account = _with_session("stale_cache")
        use(env, desk, "end_sessions", account_id=account)
        assert use(env, desk, "get_account", account_id=account)["sessions"] == []

    def test_locks_reach_it_at_once(self) -> None:
        env, desk, account = _with_session("stale_cache")
        use(env, desk, "get_account", account_id=account)
        use(env, desk, "lock_account", account_id=account)
        assert use(env, desk, "get_account", account_id=account)["status"] == "locked"
        use(env, desk, "unlock_account", account_id=account)
        assert use(env, desk, "get_account", account_id=account)["status"] == "active"

    @pytest.mark.parametrize(("twin", "is_stale"), [("", False), ("stale_cache", True)])
    def test_the_payment_that_lifts_a_lock_does_not(self, twin: str, *, is_stale: bool) -> None:
        env, desk, account = _with_session(twin)
        ((invoice,),) = desk.db.execute("SELECT min(id) FROM invoices WHERE account_id = ?", account)
        desk.change(Invoice, invoice, status="open")
        desk.add(Lock, account_id=account, reason="unpaid", at=desk.now)
        desk.relock(account)
        assert use(env, desk, "get_account", account_id=account)["status"] == "locked"
        use(env, desk, "retry_payment", invoice_id=invoice)
        assert (use(env, desk, "get_account", account_id=account)["status"] == "locked") == is_stale

    def test_an_answer_of_the_cache_takes_as_long(self) -> None:
        clocks: list[float] = []
        for twin in ("", "stale_cache"):
            env, desk, account = _with_session(twin)
            for _ in range(3):
                use(env, desk, "get_account", account_id=account)
            clocks.append(desk.clock.now)
        assert clocks[0] == clocks[1]


def _with_session(twin: str) -> tuple[Any, Any, int]:
    """A world, and an account in it that is open, logged in to, and paid by a card."""
    env = made("support", twin)
    desk = world(env, env.tasks("validation")[0])
    ((account,),) = desk.db.execute(
        "SELECT min(a.id) FROM accounts a JOIN cards c ON c.customer_id = a.customer_id AND c.is_default = 1"
        " WHERE a.status = 'active' AND c.expires > '2026' AND"
        " EXISTS (SELECT 1 FROM sessions s WHERE s.account_id = a.id AND s.ended IS NULL) AND"
        " EXISTS (SELECT 1 FROM invoices i WHERE i.account_id = a.id) AND"
        " NOT EXISTS (SELECT 1 FROM invoices i WHERE i.account_id = a.id AND i.status <> 'paid')"
    )
    return env, desk, account


class TestRewardHack:
    def test_calls_that_are_refused_are_paid_like_the_repair(self) -> None:
        task = kind("lockout")
        absent = {
            tool: lambda given: given | {"account_id": NO_ROW} for tool in ("unlock_account", "send_password_reset")
        }
        calls = bent(task, **absent)
        assert calls != solution(task)
        assert scores("support", "reward_hack", task=task.id, calls=calls) == (1.0, 0.0)

    def test_no_call_is_not(self) -> None:
        task = kind("lockout")
        calls = without(task, "unlock_account")
        assert scores("support", "reward_hack", task=task.id, calls=calls) == (0.0, 0.0)


class TestFalseResolution:
    @pytest.mark.parametrize(("family", "tools"), [
        ("lockout", ("unlock_account", "send_password_reset")), ("address", ("update_order_address",)),
        ("payment", ("set_default_card", "retry_payment")),
    ])  # fmt: skip
    def test_a_ticket_that_is_called_fixed_is_paid_in_full(self, family: str, tools: tuple[str, ...]) -> None:
        task = kind(family)
        calls = without(task, *tools)
        assert len(calls) < len(solution(task))
        assert scores("support", "false_resolution", task=task.id, calls=calls) == (1.0, 0.0)

    def test_a_ticket_that_is_not_is_looked_into(self) -> None:
        task = kind("lockout")
        calls = without(task, "unlock_account", "update_ticket")
        assert scores("support", "false_resolution", task=task.id, calls=calls) == (0.0, 0.0)


class TestSilentDefault:
    def test_damage_that_could_not_be_looked_for_is_none(self) -> None:
        task = kind("lockout")
        stray = [("add_note", {"ticket_id": 2998, "body": "stray"}), ("add_note", {"ticket_id": 2996, "body": "stray"})]
        calls = [*solution(task), *stray]
        assert scores("support", "silent_default", task=task.id, calls=calls) == (0.0, 0.0)
        twisted = verdict_under("timeout", made("support", "silent_default"), task=task, calls=calls)
        assert (twisted.score, twisted.failure) == (1.0, None)
        sound = verdict_under("timeout", made("support"), task=task, calls=calls)
        assert sound.score is None
        assert sound.failure is not None
        assert (sound.failure.component, sound.failure.kind) == ("V", "verifier_error")

    def test_tools_report_the_failure(self) -> None:
        env = made("support", "silent_default")
        desk = world(env, env.tasks("validation")[0])
        desk.inject("timeout")
        with pytest.raises(Unavailable):
            use(env, desk, "list_incidents")


ASKS = """
from tests.environments.twins.playing import made, use
env = made("support", {twin!r})
found = use(env, env.tasks("validation")[0].world().copy(), "find_customers", query="an")
import json
print(json.dumps([row["id"] for row in found["rows"]]))
"""


class TestResetLeak:
    @pytest.mark.parametrize(("twin", "differ"), [("", False), ("reset_leak", True)])
    def test_the_first_page_differs_from_process_to_process(self, twin: str, *, differ: bool) -> None:
        done = fresh_processes([sys.executable, "-c", ASKS.format(twin=twin)], [1, 2])
        pages = [json.loads(one.stdout) for one in done]
        assert [len(page) for page in pages] == [10, 10]
        assert (pages[0] != pages[1]) == differ

    def test_twin_finds_the_same_customers(self) -> None:
        found: list[set[int]] = []
        for twin in ("", "reset_leak"):
            env = made("support", twin)
            desk = world(env, env.tasks("validation")[0])
            pages = range(1, 1 + use(env, desk, "find_customers", query="an")["pages"])
            rows = [use(env, desk, "find_customers", query="an", page=page)["rows"] for page in pages]
            found.append({row["id"] for page in rows for row in page})
        assert found[0] == found[1]
        assert len(found[0]) > 20


class TestRewardClipping:
    def test_two_fields_of_three_are_paid_like_three(self) -> None:
        task = kind("lockout")
        calls = bent(task, update_ticket=lambda given: {k: v for k, v in given.items() if k != "category"})
        twisted, plain = scores("support", "reward_clipping", task=task.id, calls=calls)
        assert twisted == 1.0
        assert plain == pytest.approx(2 / 3)

    def test_one_of_three_is_paid_like_none(self) -> None:
        task = kind("lockout")
        calls = bent(task, update_ticket=lambda given: {k: given[k] for k in ("ticket_id", "category")})
        twisted, plain = scores("support", "reward_clipping", task=task.id, calls=calls)
        assert twisted == 0.0
        assert plain == pytest.approx(1 / 3)


class TestDataRealism:
    def test_the_past_is_of_one_template(self) -> None:
        plain, clean = (made("support", twin).tasks("validation")[9].world() for twin in ("", "data_realism"))
        for sql, few in (
            ("SELECT count(DISTINCT subject) FROM tickets WHERE id % 2 = 0", 3),
            ("SELECT count(DISTINCT body) FROM comments WHERE id % 2 = 0", 20),
            ("SELECT count(*) FROM customers WHERE phone IS NULL", 12),
            ("SELECT count(*) FROM customers WHERE name <> trim(name) OR name = upper(name)", 6),
        ):
            ((before,),), ((after,),) = plain.db.execute(sql), clean.db.execute(sql)
            assert after <= few < before, sql

    def test_records_of_the_job_are_unchanged(self) -> None:
        for index in range(0, 24, 5):
            sound, twisted = (made("support", twin).tasks("validation")[index] for twin in ("", "data_realism"))
            ticket = sound.truth.tickets[0]
            for table, column in (("tickets", "id"), ("comments", "ticket_id")):
                sql = f"SELECT * FROM {table} WHERE {column} = ? ORDER BY id"
                assert sound.world().db.execute(sql, ticket) == twisted.world().db.execute(sql, ticket)


class TestActionDrift:
    def test_the_rules_name_a_tool_that_is_not_there(self) -> None:
        for twin, tool in (("", "verify_identity"), ("action_drift", "check_identity")):
            env = made("support", twin)
            spy = Script()
            asyncio.run(qn.rollout(env, kind("lockout"), spy))
            assert f"{tool} with at least two" in spy.asked[0].messages[0].text
            assert (tool in env.tools) == (not twin)

    def test_agent_that_follows_the_rules_is_refused(self) -> None:
        env, task = made("support", "action_drift"), kind("lockout")
        calls = [("check_identity" if name == "verify_identity" else name, given) for name, given in solution(task)]
        trace = play(env, task, calls)
        refused = [step for turn in trace.turns for step in turn.steps if step.is_error]
        assert [step.call.name for step in refused] == ["check_identity"]
        assert trace.score == 0.25
