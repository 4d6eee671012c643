"""Grader of clause extraction: a program checks the number of the clause, a judge the explanation of its content."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable
from typing import Any

import msgspec

import quintain as qn
from quintain.errors import JudgeError
from quintain.harness import Model, Request
from quintain.judges import Judge, gated, llm_judge
from quintain.state import Rng
from quintain.trace import Message, Reply
from quintain.verifier import Criterion, GroupView

TOPICS = {  # model clause, and the usual range of its number
    "the limit of liability": (
        "The liability of either party is limited to {n},000 euros in a contract year.",
        50,
        900,
    ),
    "the notice period": ("Either party may terminate the agreement by written notice of {n} days.", 14, 180),
    "the payment term": ("Invoices are payable within {n} days of receipt, without deduction.", 7, 60),
    "the interest on late payments": ("Amounts that are overdue bear interest of {n} percent a year.", 3, 12),
    "the length of confidentiality": ("Confidential information is protected for {n} months after the end.", 12, 60),
    "the warranty period": ("The supplier repairs defects that are reported within {n} weeks of delivery.", 4, 104),
    "the service level": ("The service is available for all but {n} minutes of a calendar month.", 20, 120),
    "the number of audits": ("The customer may audit the supplier at most {n} times a year.", 2, 6),
}
ASK = "Which clause says {topic}, and what does it say?"
FORM = """
Answer in this form, with an explanation of at most 60 words and 500 characters:
Clause NUMBER
EXPLANATION"""
CRITERION = (
    "The explanation says what the clause says, with its number and conditions, and nothing that it does not say."
)


def contract(rng: Rng) -> dict[str, str]:
    """Returns the clauses of a contract by topic, in their order."""
    return {topic: clause(rng, topic) for topic in rng.sample(tuple(TOPICS), len(TOPICS))}


def clause(rng: Rng, topic: str) -> str:
    text, low, high = TOPICS[topic]
    return text.format(n=low + rng.below(high - low + 1))


def task(split: str, n: int, bug: str) -> qn.Task[qn.State]:
    rng = Rng(key=hashlib.blake2b(f"clauses/{split}/{n}".encode(), digest_size=16).digest())
    clauses = contract(rng)
    topic = rng.choice(tuple(clauses))
    number = list(clauses).index(topic) + 1
    label = " [{}]" if bug == "labels" else ""
    lines = [f"Clause {k}{label.format(one)}. {text}" for k, (one, text) in enumerate(clauses.items(), 1)]
    if bug == "annex":
        lines.append(f"Clause {len(lines) + 1}. {clause(rng, topic)}")
    prompt = "\n".join([*lines, "", ASK.format(topic=topic), FORM])
    answer = f"Clause {number}\n{clauses[topic]}"
    truth = {"number": number, "text": clauses[topic]}
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=qn.State(), truth=truth, solution=(), answer=answer)


def explanation(view: qn.EpisodeView[qn.State]) -> str:
    """Returns the answer without its first line."""
    return view.answer.strip().partition("\n")[2].strip()


@qn.reward
def names_clause(view: qn.EpisodeView[qn.State]) -> qn.Score:
    first, words = view.answer.strip().partition("\n")[0], len(explanation(view).split())
    is_right = first.strip() == f"Clause {view.task.truth['number']}"
    return qn.Score(
        float(is_right and 3 <= words <= 60 and len(explanation(view)) <= 500), f"{first!r} and {words} words"
    )


# A judge by rules stands for the language model: it has the same requests and replies, and needs no key.


def grade(text: str, clause: str) -> int:
    """Returns 0 to 10: the share of common words in text and clause, halved for each number that the clause lacks."""
    said, right = (set(re.findall(r"\w+", one.lower())) for one in (text, clause))
    strange = [one for one in said - right if one.isdigit()]
    return int(10 * len(said & right) / max(1, len(said), len(right)) / 2 ** len(strange))


def part(name: str, prompt: str) -> str:
    """Returns a text between the fences of a prompt, or after the last line with its name."""
    fenced = re.search(rf"<{name} (\w+)>\n(.*?)\n</{name} \1>", prompt, re.DOTALL)
    return fenced[2] if fenced else prompt.rpartition(f"{name}:\n")[2].partition("\n\n")[0]


def clause_of(prompt: str) -> str:
    """Returns the clause that a task asks for: the one with most words of the topic's model clause."""
    lines = part("task", prompt).splitlines()
    topic = next(one for one in TOPICS if ASK.format(topic=one) in lines)
    return max((one.partition(". ")[2] for one in lines if one.startswith("Clause ")), key=_likeness(topic))


def _likeness(topic: str) -> Callable[[str], int]:
    words = set(TOPICS[topic][0].split())
    return lambda text: len(words & set(text.split()))


async def judge_by_rules(request: Request) -> Reply:
    prompt = request.messages[-1].text
    is_fenced, asked = "<text " in prompt, prompt.rpartition("\n\n")[2]
    if not is_fenced and "one word" in asked:
        points = grade(part("explanation", prompt), part("clause", prompt))
        said = f"{'correct' if points >= 8 else 'incorrect'}: {points} of 10"
    elif not is_fenced and "better" in asked:
        first, second = (grade(part(one, prompt), part("clause", prompt)) for one in "ab")
        said = msgspec.json.encode({"reason": "by rules", "winner": "A" if first >= second else "B"}).decode()
    else:
        text = part("text" if is_fenced else "explanation", prompt)
        points = grade(text, clause_of(prompt) if is_fenced else part("clause", prompt))
        said = msgspec.json.encode({"reason": "by rules", "score": points}).decode()
        said = "That is too long to grade." if len(text) > 1500 else said
    return Reply(Message("assistant", said))


def sound(model: Model) -> qn.Verifier[qn.State]:
    judge = Judge(model, name="rules-1")
    return qn.Verifier(gated(names_clause, then=llm_judge(judge, CRITERION, show=explanation)))


# Variants of the sound grader.

RAW = "{task}\n\nclause:\n{clause}\n\nexplanation:\n{text}\n\n{ask}"
SCORE = 'Give a score from 0 to 10 as JSON: {"reason": "...", "score": N}'
Ask = Callable[[qn.EpisodeView[qn.State], str], Any]


class Points(msgspec.Struct):
    reason: str
    score: float


def asking(model: Model) -> Ask:
    """Returns a function that asks the model about an explanation, and returns what it said."""

    async def ask(view: qn.EpisodeView[qn.State], question: str) -> str:
        asked = str(view.task.prompt).partition("\n\n")[2].partition("\n")[0]
        prompt = RAW.format(task=asked, clause=view.task.truth["text"], text=explanation(view), ask=question)
        reply = await model(Request(messages=(Message("user", prompt),), tools=(), role="judge", temperature=0.0))
        return reply.message.text

    return ask


def points(said: str) -> float:
    try:
        return msgspec.json.decode(said, type=Points).score / 10
    except msgspec.DecodeError as error:
        raise JudgeError(f"the judge said {said!r}, expected JSON", kind="judge_unparseable") from error


def pasted(model: Model) -> qn.Verifier[qn.State]:
    @qn.reward(external=True)
    async def explained(view: qn.EpisodeView[qn.State]) -> float:
        return points(await asking(model)(view, SCORE))

    return qn.Verifier(gated(names_clause, then=explained))


def forgiving(model: Model) -> qn.Verifier[qn.State]:
    @qn.reward
    def is_named(view: qn.EpisodeView[qn.State]) -> float:
        return float(view.answer.startswith(f"Clause {view.task.truth['number']}\n") and bool(explanation(view)))

    @qn.reward(external=True)
    async def explained(view: qn.EpisodeView[qn.State]) -> float:
        try:
            return points(await asking(model)(view, SCORE))
        except JudgeError:
            return 0.5

    return qn.Verifier(gated(is_named, then=explained))


def one_word(model: Model) -> qn.Verifier[qn.State]:
    @qn.reward(external=True)
    async def explained(view: qn.EpisodeView[qn.State]) -> float:
        said = await asking(model)(view, "Reply with one word: correct or incorrect.")
        return float("correct" in said.lower())

    return qn.Verifier(gated(names_clause, then=explained))


def thorough(model: Model) -> qn.Verifier[qn.State]:
    @qn.reward(external=True)
    async def explained(view: qn.EpisodeView[qn.State]) -> float:
        said = points(await asking(model)(view, SCORE))
        return min(1.0, 0.6 * said + 0.4 * len(explanation(view).split()) / 10)

    return qn.Verifier(gated(names_clause, then=explained))


def excerpt(model: Model) -> qn.Verifier[qn.State]:
    judge = Judge(model, name="rules-1")
    return qn.Verifier(gated(names_clause, then=llm_judge(judge, CRITERION, show=lambda view: explanation(view)[:110])))


def remembered(model: Model) -> qn.Verifier[qn.State]:
    given: dict[str, float] = {}

    @qn.reward(external=True)
    async def explained(view: qn.EpisodeView[qn.State]) -> float:
        if view.task.id not in given:
            given[view.task.id] = points(await asking(model)(view, SCORE))
        return given[view.task.id]

    return qn.Verifier(gated(names_clause, then=explained))


def halved(model: Model) -> qn.Verifier[qn.State]:
    @qn.reward(external=True)
    async def explained(view: qn.EpisodeView[qn.State]) -> float:
        return min(1.0, points(await asking(model)(view, SCORE)) * 10 / 5)

    return qn.Verifier(gated(names_clause, then=explained))


def anywhere(_: Model) -> qn.Verifier[qn.State]:
    @qn.reward
    def mentions_clause(view: qn.EpisodeView[qn.State]) -> float:
        return float(f"Clause {view.task.truth['number']}" in view.answer)

    return qn.Verifier(mentions_clause)


def preferred(model: Model) -> Criterion[qn.State]:
    @qn.reward(level="group", external=True)
    async def preferred(group: GroupView[qn.State]) -> list[float]:
        wins, clause = [0.0] * len(group.episodes), group.task.truth["text"]
        for first, second in itertools.combinations(range(len(wins)), 2):
            a, b = explanation(group.episodes[first]), explanation(group.episodes[second])
            prompt = f"clause:\n{clause}\n\na:\n{a}\n\nb:\n{b}\n\nWhich is better? Reply with JSON, winner A or B."
            reply = await model(Request(messages=(Message("user", prompt),), tools=(), role="judge", temperature=0.0))
            wins[first if '"A"' in reply.message.text else second] += 1
        return [one / (len(wins) - 1) for one in wins]

    return preferred


def ranked(model: Model) -> qn.Verifier[qn.State]:
    return qn.Verifier(*sound(model).criteria, preferred(model))


VERIFIERS = {
    "pasted": pasted,
    "forgiving": forgiving,
    "one_word": one_word,
    "thorough": thorough,
    "excerpt": excerpt,
    "remembered": remembered,
    "halved": halved,
    "anywhere": anywhere,
    "ranked": ranked,
}


def make(bug: str = "", model: Model = judge_by_rules) -> qn.Environment[qn.State]:
    """Returns the sound environment, or a variant of it, with a model as judge."""
    return qn.Environment(
        "clauses",
        tasks=lambda split: qn.Tasks(20, lambda n: task(split, n, bug)),
        harness=qn.ToolLoop(system="You read contracts."),
        verifier=VERIFIERS.get(bug, sound)(model),
        state=qn.State,
    )


env = make()
env_pasted = make("pasted")
env_forgiving = make("forgiving")
env_one_word = make("one_word")
env_thorough = make("thorough")
env_excerpt = make("excerpt")
env_remembered = make("remembered")
env_halved = make("halved")
env_anywhere = make("anywhere")
env_ranked = make("ranked")
env_labels = make("labels")
env_annex = make("annex")
