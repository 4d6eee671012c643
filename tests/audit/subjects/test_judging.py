"""Judges of an environment are found wherever their model is held, and graded with a stub in its place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import quintain as qn
from quintain.audit.auditor import audit
from quintain.audit.checks import judge
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject
from quintain.audit.subjects import native
from quintain.harness import Request
from quintain.judges import Judge, gated, llm_judge
from quintain.trace import Level, Message, Reply
from quintain.verifier import Criterion

View = qn.EpisodeView[qn.State]


async def never(request: Request) -> Reply:
    raise AssertionError(f"the model itself was asked: {request}")


async def ask(view: View, model: Callable[[Request], Any] = never) -> str:
    reply = await model(
        Request(messages=(Message("user", f"<answer>{view.answer}</answer> yes or no?"),), tools=(), role="judge")
    )
    return str(reply.message.text)


class Caller:
    def __init__(self, name: str) -> None:
        self.name = name

    async def __call__(self, request: Request) -> Reply:
        raise AssertionError(f"{self.name} was asked: {request}")


@qn.reward(external=True)
async def by_class(view: View) -> float:
    return float(await ask(view, Caller("a model that a criterion makes")) == "yes")


class Grader:
    def __init__(self) -> None:
        self.models = [{"judge": never}]

    async def verdict(self, view: View) -> float:
        return float(await ask(view, self.models[0]["judge"]) == "yes")


@qn.reward(external=True)
async def by_global(view: View) -> float:
    return float(await ask(view) == "yes")


@qn.reward
def is_short(view: View) -> float:
    return float(view.answer.startswith("Answer: ") and len(view.answer) < 80)


def by_closure() -> Criterion[Any]:
    model = never

    @qn.reward(external=True)
    async def by_closure(view: View) -> float:
        return float(await ask(view, model) == "yes")

    return by_closure


def by_partial() -> Criterion[Any]:
    async def judged(model: Callable[[Request], Any], view: View) -> float:
        return float(await ask(view, model) == "yes")

    return Criterion(name="by_partial", level=Level.TRAJECTORY, fn=partial(judged, never))


def by_deep_data() -> Criterion[Any]:
    rows: list[Any] = []
    for _ in range(5_000):
        rows = [rows]
    held, model = [rows, list(range(50_000))], never

    @qn.reward(external=True)
    async def by_deep_data(view: View) -> float:
        return float(len(held) == 2 and await ask(view, model) == "yes")

    return by_deep_data


def by_attribute() -> Criterion[Any]:
    return Criterion(name="by_attribute", level=Level.TRAJECTORY, fn=Grader().verdict)


def session(criterion: Criterion[Any], answer: str = "Answer: it is blue") -> native.NativeSubject:
    task = qn.Task(id="sky", prompt="Which color has the sky?", start=qn.State(), solution=(), answer=answer)
    env = qn.Environment(
        "judged", tasks=lambda split: [task], harness=qn.ToolLoop(), verifier=qn.Verifier(criterion), state=qn.State
    )
    return native.of(env)()


@pytest.mark.parametrize(
    "made", [lambda: by_global, lambda: by_class, by_closure, by_partial, by_attribute, by_deep_data]
)
def test_judge_asks_stub_wherever_the_model_is_held(made: Callable[[], Criterion[Any]]) -> None:
    one, asked = session(made()), list[str]()
    for says, grade in (("yes", 1.0), ("no", 0.0)):

        def complete(text: str, says: str = says) -> str:
            asked.append(text)
            return says

        assert one.judge("sky", "It is red.", complete) == {"score": grade, "carried": "It is red."}
    assert asked == ["<answer>It is red.</answer> yes or no?"] * 2


def test_judge_carries_answer_through_a_gate() -> None:
    one = session(gated(is_short, then=by_closure()))
    assert one.judge("sky", "red", lambda _: "yes") == {"score": 1.0, "carried": "Answer: red"}


def test_judge_takes_the_value_of_a_composite_that_tells_no_parts() -> None:
    inner = by_closure()

    @qn.reward(external=True)
    async def halved(view: View) -> float:
        found: Any = inner.fn(view)
        return float(await found) / 2

    assert session(halved).judge("sky", "red", lambda _: "yes") == {"score": 0.5, "carried": "red"}


def test_judge_carries_answer_in_json() -> None:
    @qn.reward
    def is_json(view: View) -> float:
        return float(view.answer.startswith('{"color": "') and view.answer.endswith('"}'))

    one = session(gated(is_json, then=by_closure()), '{"color": "light blue"}')
    assert one.judge("sky", 'a "b"', lambda _: "yes") == {"score": 1.0, "carried": '{"color": "a \\"b\\""}'}


def test_judge_gives_no_grade_when_the_verifier_fails() -> None:
    one = session(llm_judge(Judge(lambda request: never(request=request), name="stub"), "It is right."))
    assert one.judge("sky", "blue", lambda _: "banana") is None
    seen = one.judge("sky", "blue", lambda _: '{"reason": "", "score": 4}')
    assert seen == {"score": 0.4, "carried": "blue"}


def test_judge_is_absent_without_a_model() -> None:
    assert "judge" in session(is_short).absent
    assert "judge" not in session(by_global).absent


DESIGNS = '''
import html
import re

import quintain as qn
from quintain.harness import Request
from quintain.judges import Item, Judge, checklist, gated, llm_judge, weighted
from quintain.trace import Message, Reply

PROMPT = "Which color has the sky at noon, and why? Answer in at most 60 words, behind the word Answer and a colon."


async def model(request: Request) -> Reply:
    return Reply(Message("assistant", "no"))


class Desk(qn.State):
    sent: list[str] = []

    @qn.tool
    def send(self, text: str) -> str:
        """Sends a message.

        Args:
            text: The message.
        """
        self.sent.append(text)
        return "sent"


def shown(view):
    found = re.search(r"Answer: (.*)", view.answer)
    return found[1] if found else ""


@qn.reward
def has_form(view) -> float:
    return float(bool(shown(view)) and len(shown(view).split()) <= 60)


async def said(question: str) -> str:
    reply = await model(Request(messages=(Message("user", question),), tools=(), role="judge"))
    return reply.message.text.strip().lower()


@qn.reward(external=True)
async def yes_or_no(view) -> float:
    reply = await said(f"<answer>{html.escape(shown(view))}</answer> Is it right? Reply with one word: yes or no.")
    if reply not in ("yes", "no"):
        raise ValueError(reply)
    return 0.8 * (reply == "yes") + 0.2 * (len(view.answer.split()) >= 12)


@qn.reward(external=True)
async def letter(view) -> float:
    reply = await said(f"<letter>{html.escape(' '.join(view.state.sent))}</letter> Is it polite? Reply: yes or no.")
    return {"yes": 1.0, "no": 0.0}[reply] * bool(view.state.sent)


def task(split, n):
    calls = (("send", {"text": "Dear all, the sky is blue today."}),)
    answer = "Answer: It is blue, for short waves scatter more."
    return qn.Task(id=f"{split}-{n}", prompt=PROMPT, start=Desk(), solution=calls, answer=answer)


def env(criterion):
    return qn.Environment("judged", tasks=lambda split: qn.Tasks(4, lambda n: task(split, n)), harness=qn.ToolLoop(),
                          verifier=qn.Verifier(criterion), state=Desk)


first, second = Judge(model, name="one"), Judge(model, name="two", votes=3, temperature=1.0)
gate = env(gated(has_form, then=yes_or_no))
scale = env(gated(has_form, then=llm_judge(first, "It is right.", show=shown)))
panel = env(weighted(llm_judge(first, "It is right."), has_form, gated(has_form, then=yes_or_no, name="then")))
votes = env(llm_judge(second, "It is right.", scale=5))
rubric = env(checklist(first, [Item("blue", "It names the color."), Item("why", "It says why.", 2.0)]))
mail = env(letter)
'''


@pytest.mark.parametrize(
    "name",
    ["gate", *(pytest.param(one, marks=pytest.mark.slow) for one in ("panel", "mail", "scale", "votes", "rubric"))],
)
def test_sound_judge_has_no_proven_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / "designs.py"
    path.write_text(DESIGNS)
    found = audit(Subject(f"{path}:{name}"), checks_of(judge), tasks=3, budget=60)
    assert not [(one.check, one.title, one.observed) for one in found.findings if one.severity == "error"]
    checked = {one.check for one in found.checks if one.status == "checked"}
    assert "x.judge_is_asked_safely" in checked
