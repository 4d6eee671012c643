"""Rules 6 to 11, each on its smallest episode and on a sound one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.audit.triage import AuditFinding
from quintain.audit.triage.labels import CLASSES
from quintain.errors import ModelError
from quintain.harness import Request
from quintain.harnesses import Dialogue
from quintain.models import Cast
from quintain.testing.fakes import Counter, counted, counter
from quintain.trace import Message, Reply, Tokens, ToolCall, Trace, Usage
from tests.audit.triage.episodes import COUNTER, TOOLS, answers, asks, count, file, found, one, play, row, said

replaced = msgspec.structs.replace


# --- 6 task ---


def broken(**fields: Any) -> qn.Environment[Counter]:
    """Returns the counter with a fault in every task."""
    good = COUNTER.tasks("test")

    def tasks(split: str) -> qn.Tasks[Counter]:
        return qn.Tasks(10, lambda n: replaced(good[n], **fields) if n == 3 else good[n])

    parts: dict[str, Any] = {"harness": COUNTER.harness, "verifier": COUNTER.verifier, "state": Counter}
    return qn.Environment("counter", tasks=tasks, **parts)


def test_a_task_whose_solution_fails_takes_all_its_episodes_with_it() -> None:
    env = broken(truth=99)
    traces = [play(env, count(n + 1), n) for n in (0, 3, 4)] + [play(env, count(1), 3, member=1)]
    report = file(*traces, env=env)
    assert [judged.owner for judged in report.judged] == ["policy", "task", "policy", "task"]
    assert [judged.verdict for judged in report.judged] == ["train", "exclude_group", "train", "exclude_group"]
    assert report.judged[1].label.classes == ("unsolvable",)


def test_a_solved_task_is_not_blamed_for_its_solution() -> None:
    env = broken(solution=(("add", {"amount": 7}),))
    report = file(play(env, count(4), 3), play(env, count(1), 3, member=1), env=env)
    assert [judged.owner for judged in report.judged] == ["policy", "policy"]
    assert [found(judged, 6)[0].confidence for judged in report.judged] == ["hint", "hint"]


def test_a_success_that_idling_earns_is_not_counted() -> None:
    env = broken(truth=0)
    traces = [play(env, (), 3), play(env, count(2), 3, member=1), play(env, count(1), 0), play(env, count(2), 1)]
    report = file(*traces, env=env)
    assert [judged.owner for judged in report.judged] == ["task", "policy", "policy", "policy"]


def test_a_task_whose_solution_is_idle_is_only_a_hint() -> None:
    env = broken(truth=0, solution=())
    judged = one(play(env, (), 3), env)
    assert judged.owner == "policy"
    assert [label.confidence for label in found(judged, 6)] == ["hint"]


@pytest.mark.parametrize(("confidence", "owner"), [("proven", "task"), ("hint", "policy")])
def test_audit_findings_label_their_tasks(confidence: str, owner: str) -> None:
    finding = AuditFinding(
        check="x.leak", class_="leak", part="T", severity="error", confidence=confidence, tasks=("test-0",)
    )
    report = file(play(COUNTER, count(1)), play(COUNTER, count(2), 1), findings=[finding])
    assert [judged.owner for judged in report.judged] == [owner, "policy"]
    assert 6 not in report.judged[0].not_checked


# --- 7 exploit ---


def test_a_whole_reward_for_an_unchanged_world_is_an_exploit() -> None:
    @qn.reward
    def talks(outcome: qn.EpisodeView[Counter]) -> float:
        return float("counted" in outcome.answer or outcome.state.count == outcome.task.truth)

    env = COUNTER.replace(verifier=qn.Verifier(talks))

    async def talker(request: Request) -> Reply:
        return Reply(Message("assistant", "I have counted."))

    judged = one(play(env, talker), env)
    assert [(label.owner, label.classes) for label in found(judged, 7)] == [
        ("verifier", ("reward_hack", "false_resolution")),
        ("policy", ("reward_hack", "false_resolution")),
    ]
    assert judged.verdict == "exclude"


def test_access_to_the_verifier_or_the_future_is_an_exploit() -> None:
    edit = row(asks("write_file", '{"path": "tests/test_x.py", "text": "assert True"}'), answers("ok"), said("x"))
    assert one(edit).label.classes == ("reward_hack",)
    assert one(edit | {"reward": 0.0}).owner == "policy"
    future = row(asks("bash", '{"command": "git log --all"}'), answers("abc fix"), said("x"))
    assert one(future).label.classes == ("leak",)
    assert one(row(asks("bash", '{"command": "git log -3"}'), answers("abc"), said("x"))).owner == "policy"


def test_a_paid_constant_is_an_exploit() -> None:
    assert one(row(said("N/A"), answer="42")).owner == "verifier"
    assert one(row(said("yes"), answer="Yes")).owner == "policy"


# --- 8 simulator ---


def dialogue(agent: list[str], user: list[str]) -> tuple[Trace, qn.Environment[Counter]]:
    def tasks(split: str) -> qn.Tasks[Counter]:
        task = qn.Task(id="t", prompt="", start=Counter(), truth="SECRET-77", roles={"user": "Your code is G-17."})
        return qn.Tasks(1, lambda n: task)

    parts: dict[str, Any] = {"harness": Dialogue(), "verifier": qn.Verifier(counted), "state": Counter}
    env = qn.Environment("talk", tasks=tasks, **parts)

    def lines(texts: list[str]) -> Any:
        left = iter(texts)

        async def says(request: Request) -> Reply:
            return Reply(Message("assistant", next(left, "###STOP###")))

        return says

    return play(env, Cast(agent=lines(agent), user=lines(user))), env


PLEA = "I am your helpful agent, please tell me your code now."


@pytest.mark.parametrize(
    ("agent", "user", "why"),
    [
        (["What is your code?"], ["Hello", "Bye ###STOP###"], "left a question unanswered"),
        (["Hi"], ["###STOP###"], "before the agent had said a word"),
        (["Your code?", "ok"], ["Hello", "", "G-17"], "said nothing"),
        (["Your code?"], ["Hello, SECRET-77", "G-17"], "said what is sealed"),
        ([PLEA], ["G-17", PLEA], "repeats the agent"),
    ],
)
def test_a_user_who_contradicts_the_script_is_labelled(agent: list[str], user: list[str], why: str) -> None:
    trace, env = dialogue(agent, user)
    judged = one(trace, env)
    assert judged.owner == "simulator"
    assert why in judged.label.why
    assert "a further actor, 'user'" in judged.not_checked[6]


@pytest.mark.parametrize(("agent", "user"), [(["Your code?"], ["Hello", "G-17"]), (["No."], ["Hello", "Forget it."])])
def test_a_user_who_leaves_with_reason_is_not_labelled(agent: list[str], user: list[str]) -> None:
    assert one(*dialogue(agent, user)).owner == "policy"


# --- 9 action ---


@pytest.mark.parametrize(
    ("call", "answer", "owner", "confidence"),
    [
        (("get", '{"id": 5}'), "error: no", "policy", "likely"),
        (("get", "{"), "error: no JSON", "policy", "likely"),
        (("fetch", "{}"), "error: no such tool", "policy", "likely"),
        (("get", '{"id": "A"}'), "error: unknown tool get", "env", "proven"),
        (("get", '{"id": "A"}'), "error: get() got an unexpected keyword argument 'id'", "env", "proven"),
        (("get", '{"limit": 0}'), "fine", "env", "hint"),
        (("fetch", "{}"), "fine", "env", "hint"),
    ],
)
def test_refusals_are_labelled_by_their_owner(call: tuple[str, str], answer: str, owner: str, confidence: str) -> None:
    judged = one(row(asks(*call), answers(answer), said("x"), tools=TOOLS, reward=0.0))
    (label,) = found(judged, 9)
    assert (label.owner, label.confidence) == (owner, confidence)
    assert judged.owner == ("env" if (owner, confidence) == ("env", "proven") else "policy")


def test_a_refusal_by_the_rules_of_the_world_has_no_label() -> None:
    assert not found(one(row(asks("get", '{"id": "A"}'), answers("error: unknown A"), said("x"), tools=TOOLS)), 9)


def test_unknown_tools_leave_rule_nine_unchecked() -> None:
    assert one(row(said("x"))).not_checked[9] == "no record of the tools that were advertised"


# --- 10 trainer ---

DROPPED = '<tool_call>{"name": "get", "arguments": {"id": "A"}}</tool_call>'


def test_a_call_in_the_text_of_a_reply_is_the_trainers() -> None:
    judged = one(row(said(DROPPED), reward=0.0, tools=TOOLS))
    assert (judged.owner, judged.label.rule, judged.label.confidence) == ("trainer", 10, "proven")
    assert one(row(said(DROPPED.replace('{"id"', '{"id')), reward=0.0, tools=TOOLS)).owner == "policy"
    assert one(row(said(DROPPED.replace("get", "fetch")), reward=0.0, tools=TOOLS)).owner == "policy"


def test_a_truncated_call_is_not_the_policys_mistake() -> None:
    cut = row(asks("get", '{"id": "A', finish_reason="length"), answers("error: no JSON"), said("x"), tools=TOOLS)
    judged = one(cut | {"reward": 0.0})
    assert judged.owner == "trainer"
    assert not found(judged, 9)


def test_an_unanswered_call_is_the_trainers() -> None:
    lost = row(asks("get", '{"id": "A"}'), said("well"), said("done"), tools=TOOLS)
    assert one(lost).owner == "trainer"
    assert one(row(asks("get", '{"id": "A"}'), tools=TOOLS)).owner == "policy"  # it was the last thing


def test_an_empty_reply_in_the_middle_of_work_is_a_hint() -> None:
    judged = one(row(asks("get", '{"id": "A"}'), answers("1"), said(""), reward=0.0))
    assert judged.owner == "policy"
    assert [(label.owner, label.confidence) for label in found(judged, 10)] == [("infra", "hint")]
    assert not found(one(row(said(""), reward=0.0)), 10)


def test_lost_tokens_are_the_trainers() -> None:
    async def drawn(request: Request) -> Reply:
        return Reply(Message("assistant", "x"), tokens=Tokens([1], [2, 3]), usage=Usage(1, 30))

    judged = one(play(COUNTER, drawn), COUNTER)
    assert (judged.owner, judged.label.why) == ("trainer", "the record holds 2 of the 30 tokens that were drawn")


# --- 11 policy ---


def test_a_sound_failure_is_the_policys() -> None:
    async def clumsy(request: Request) -> Reply:
        if len(request.messages) > 1:
            return Reply(Message("assistant", "done"))
        return Reply(Message("assistant", calls=(ToolCall("c", "add", '{"amount": "much"}'),)))

    judged = one(play(COUNTER, clumsy), COUNTER)
    assert (judged.owner, judged.verdict, judged.score_as) == ("policy", "train", "recorded")
    assert (judged.label.rule, judged.label.turn, judged.label.step) == (9, 0, 0)
    judged = one(play(COUNTER, count(5)), COUNTER)
    assert (judged.label.rule, judged.label.confidence) == (11, "likely")
    assert one(play(COUNTER, count(5))).label.confidence == "hint"  # no environment was available


def test_injected_faults_are_not_labelled() -> None:
    env = counter(noise_rate=0.5, max_turns=20)
    report = file(*(play(env, count(8), 7, seed=seed) for seed in range(5)), env=env)
    assert {judged.owner for judged in report.judged} == {"policy"}


def test_a_failing_endpoint_is_not_the_policys_fault() -> None:
    async def down(request: Request) -> Reply:
        raise ModelError("HTTP 502")

    assert one(play(COUNTER, down), COUNTER).owner == "infra"


def test_the_classes_are_those_of_the_audit() -> None:
    from quintain.audit.kernel import finding

    assert tuple(finding.CLASSES) == CLASSES
