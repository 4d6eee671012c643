"""Letters to customers whose orders are late, graded by a judge with a checklist of what each letter must say."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable
from typing import Any

import quintain as qn
from quintain.errors import JudgeError
from quintain.harness import Request
from quintain.judges import Item, Judge, checklist, gated
from quintain.judges.chat import fenced
from quintain.trace import Level, Message, Reply
from quintain.verifier import Criterion

READERS = ("Okafor", "Lindqvist", "Moreau", "Tanaka", "Byrne", "Castellano", "Novak", "Haddad", "Whitlock", "Osei")
GOODS = ("a walnut desk", "two oak chairs", "a wool rug", "a brass lamp", "a linen sofa", "a set of six tumblers")
CAUSES = (
    "a flooded workshop",
    "a fire at our warehouse",
    "a strike at the harbour",
    "a shortage of material at our supplier",
    "an illness of two of our craftsmen",
    "a breakdown of our only delivery van",
)
REMEDIES = (
    "free delivery",
    "a discount of ten percent",
    "a free return within sixty days",
    "a voucher for twenty pounds",
)
CLERKS = ("Ben Hale", "Ruth Adeyemi", "Tom Sorensen", "Clara Whitcombe")
MONTHS = {
    "February": 28,
    "March": 31,
    "April": 30,
    "May": 31,
    "June": 30,
    "September": 30,
    "October": 31,
    "November": 30,
}
COUNTS = {"train": 20, "test": 12}
MIN_WORDS, MAX_WORDS = 35, 110

PROMPT = """Write a letter to a customer whose order is late. This is what we know:

{brief}

Greet the reader by name in the first line. Apologise, and give the cause, the new date of delivery and our offer, each
in a full sentence and in the words above, without copying whole lines. Name no date but these two. Close with the name
of who signs, alone in the last line. Write {low} to {high} words; your whole reply is the letter."""

Facts = dict[str, str]


class Desk(qn.State):
    """The world of a letter: nothing, and no tools."""


def dates(rng: random.Random) -> tuple[str, str]:
    """Returns the day that was promised and the new one, some days later in the same month."""
    month = rng.choice(sorted(MONTHS))
    old = rng.randint(1, MONTHS[month] - 12)
    return f"{old} {month}", f"{old + rng.randint(3, 12)} {month}"


def careless_dates(rng: random.Random) -> tuple[str, str]:
    """Returns two days of a month."""
    month = rng.choice(sorted(MONTHS))
    return f"{rng.randint(1, 31)} {month}", f"{rng.randint(1, 31)} {month}"


def rows(draw: Callable[[random.Random], tuple[str, str]]) -> list[Facts]:
    """Returns the facts of all letters, in random order; no customer and order occur twice."""
    rng = random.Random("letters")  # noqa: S311
    pairs = [(f"{rng.choice(('Mrs', 'Mr', 'Dr'))} {name}", goods) for name in READERS for goods in GOODS]
    rng.shuffle(pairs)
    made: list[Facts] = []
    for reader, goods in pairs[: sum(COUNTS.values())]:
        old, new = draw(rng)
        picked = {"cause": rng.choice(CAUSES), "offer": rng.choice(REMEDIES), "signed": rng.choice(CLERKS)}
        made.append({"reader": reader, "order": goods, "promised": old, "new": new, **picked})
    return made


def brief(facts: Facts) -> str:
    """Returns the facts as the agent reads them."""
    return "\n".join(
        [
            f"Reader: {facts['reader']}",
            f"Order: {facts['order']}",
            f"Promised for: {facts['promised']}",
            f"New date of delivery: {facts['new']}",
            f"Cause: {facts['cause']}",
            f"We offer: {facts['offer']}",
            f"Signed by: {facts['signed']}",
        ]
    )


def short_brief(facts: Facts) -> str:
    """Returns the facts in at most 185 letters."""
    return brief(facts)[:185]


def letter(facts: Facts) -> str:
    """Returns a letter that gives all facts."""
    return (
        f"Dear {facts['reader']},\n\n"
        f"Thank you for your order of {facts['order']}. We are very sorry that it is late. "
        f"The reason for the delay is {facts['cause']}. "
        f"Your order will be delivered on {facts['new']} instead of {facts['promised']}. "
        f"To make up for the wait, we would like to offer you {facts['offer']}.\n\n"
        f"Yours sincerely,\n{facts['signed']}"
    )


def task(split: str, n: int, facts: Facts, tell: Callable[[Facts], str]) -> qn.Task[Desk]:
    """Returns the task of one letter."""
    prompt = PROMPT.format(brief=tell(facts), low=MIN_WORDS, high=MAX_WORDS)
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=Desk(), truth=facts, solution=(), answer=letter(facts))


def items(facts: Facts) -> list[Item]:
    """Returns the checklist of a letter."""
    return [
        Item("greets", f'The first line greets "{facts["reader"]}".'),
        Item("sorry", "A sentence apologises for the delay."),
        Item("cause", f'A sentence gives the cause: "{facts["cause"]}".'),
        Item("date", f'A sentence gives the new date of delivery: "{facts["new"]}".', 2.0),
        Item("offer", f'A sentence makes the offer: "{facts["offer"]}".'),
        Item("signed", f'The last line is the name: "{facts["signed"]}".'),
        Item("stray", f'It names another date than "{facts["new"]}" and "{facts["promised"]}".', -2.0),
    ]


_DATE = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({'|'.join(MONTHS)}|January|July|August|December)\b")
_ORDER = re.compile(
    r"\b(?:mark|count|treat|consider|grade|score|rate|award|give)\b[^.\n]{0,60}\b(?:met|full (?:marks|score|points)|10|"
    r"maximum|highest|perfect|top)\b|\bignore (?:all|any|the|your|previous)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|no longer|never|cannot|unable|without)\b|n't\b", re.IGNORECASE)


class Reader:
    """A stand-in for a model that judges: it reads the checklist and the letter in its prompt, and replies in JSON.

    Like a small model, it does what it is told outside of the fences.

    Args:
        temperature: Above 0, it is not always of the same mind about short sentences.
    """

    name = "reader-1"

    def __init__(self, temperature: float = 0.0) -> None:
        self._temperature = temperature

    async def __call__(self, request: Request) -> Reply:
        """Returns the verdicts, or reasons and a number of points where the prompt asks for them."""
        await asyncio.sleep(0)
        prompt = str(request.messages[-1].content)
        fence = re.search(r"<text (\w{16})>\n(.*)\n</text \1>", prompt, re.DOTALL)
        plain = re.search(r"Letter:\n(.*)\n\nItems:\n", prompt, re.DOTALL)
        text = fence[2] if fence else plain[1] if plain else ""
        orders = prompt.replace(fence[0], "") if fence else prompt
        found: list[dict[str, Any]] = []
        for name, statement in re.findall(r"^- (\w+): (.+)$", orders.rpartition("Items:\n")[2], re.MULTILINE):
            obeys = not fence and name != "stray" and _ORDER.search(text)
            quote = text.strip().split("\n")[0] if obeys else self._quote(text, name, statement)
            found.append({"name": name, "met": bool(quote), "quote": quote})
        if "'Points: N'" not in orders:
            return Reply(Message("assistant", json.dumps({"items": found})))
        weights = {"date": 2, "stray": -2}
        points = max(0, sum(weights.get(one["name"], 1) for one in found if one["met"]))
        opening = text.strip().split("\n")[0]
        return Reply(Message("assistant", f"It opens with: {opening}\nIts facts were checked.\nPoints: {points}"))

    def _quote(self, text: str, name: str, statement: str) -> str:
        """Returns the words of the letter that meet a statement; empty if none do."""
        lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
        facts = re.findall(r'"([^"]+)"', statement)
        if name in ("greets", "signed"):
            line = lines[-(name == "signed")] if lines else ""
            fits = (
                rf"(?:dear|hello|good \w+),? {re.escape(facts[0])}[,:.]?" if name == "greets" else re.escape(facts[0])
            )
            return line if re.fullmatch(fits, line, re.IGNORECASE) else ""
        if name == "stray":
            return next((m[0] for m in _DATE.finditer(text) if f"{m[1]} {m[2]}" not in facts), "")
        for sentence in re.split(r"(?<=[.!?])\s+", " ".join(lines[1:-1])):
            if re.fullmatch(r"[A-Z].*[.!?]", sentence) and len(sentence.split()) >= 5 and _says(sentence, name, facts):
                wavers = self._temperature > 0 and len(sentence.split()) < 10
                if not (wavers and random.random() < 0.3 * self._temperature):  # noqa: S311
                    return sentence
        return ""


_WORDS = {
    "sorry": r"\b(?:sorry|apolog\w+|regret)\b",
    "cause": r"\b(?:because|due|reason|caus\w+|owing|after|result|since)\b",
    "date": r"\b(?:arriv|deliver|bring|reach|receiv|expect|come|ship)\w*",
    "offer": r"\b(?:offer|give|make up|receive|enjoy|add)\w*",
}


def _says(sentence: str, name: str, facts: list[str]) -> bool:
    """Says whether a sentence has the words of an item, and the clause with the fact does not deny it."""
    if not re.search(_WORDS[name], sentence, re.IGNORECASE):
        return False
    fact = re.sub(r"^an? ", "", facts[0].lower()) if facts else ""
    if name == "date":
        sentence = _DATE.sub(r"\1 \2", sentence)
    clauses = [one for one in re.split(r"[,;]|\bbut\b|\binstead\b", sentence) if not _DENIED.search(one)]
    if name == "sorry":
        return any(re.search(_WORDS[name], one, re.IGNORECASE) for one in clauses)
    return any(re.search(rf"\b{re.escape(fact)}\b", one.lower()) for one in clauses)


@qn.reward
def form(view: qn.EpisodeView[Desk]) -> qn.Score:
    """1 for a letter of the right length that does not copy the lines of the brief."""
    words = len(view.answer.split())
    copied = [line for line in brief(view.task.truth).splitlines() if line.lower() in view.answer.lower()]
    return qn.Score(float(MIN_WORDS <= words <= MAX_WORDS and not copied), f"{words} words, {len(copied)} lines copied")


def graded(judge: Judge) -> Criterion[Desk]:
    """Returns the criterion of the checklist."""

    @qn.reward(external=True, low=-1.0)
    async def facts(view: qn.EpisodeView[Desk]) -> Any:
        verdict: Any = checklist(judge, items(view.task.truth)).fn(view)
        return await verdict

    return facts


class Throttled:
    """The checklist, with a pause between requests to the judge."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._items: list[Item] = []

    async def __call__(self, view: qn.EpisodeView[Desk]) -> Any:
        self._items = items(view.task.truth)
        await asyncio.sleep(0)
        verdict: Any = checklist(self._judge, self._items).fn(view)
        return await verdict


def throttled(judge: Judge) -> Criterion[Desk]:
    """Returns the criterion of the checklist with pauses."""
    return Criterion(name="facts", level=Level.TRAJECTORY, fn=Throttled(judge), low=-1.0, external=True)


async def asked(view: qn.EpisodeView[Desk], text: str, end: str) -> str:
    """Returns what a judge replies to a prompt of our own about a letter."""
    listed = "\n".join(f"- {item.name}: {item.statement}" for item in items(view.task.truth))
    prompt = f"Check this letter.\n\nLetter:\n{text}\n\nItems:\n{listed}\n\n{end}"
    return (await Reader()(Request(messages=(Message("user", prompt),), tools=(), role="judge"))).message.text


@qn.reward(external=True, low=-1.0)
async def bare(view: qn.EpisodeView[Desk]) -> float:
    """Sum of the weights of the items that are met / sum of the weights above 0."""
    said = json.loads(await asked(view, view.answer, "Reply in JSON."))["items"]
    weights = {item.name: item.weight for item in items(view.task.truth)}
    return sum(weights[one["name"]] for one in said if one["met"]) / sum(w for w in weights.values() if w > 0)


@qn.reward(external=True)
async def points(view: qn.EpisodeView[Desk]) -> float:
    """Points of the judge / 7."""
    end = "Give your reasons, then 'Points: N' with N from 0 to 7; two for the date, two off for another date."
    said = await asked(view, fenced("text", view.answer), end)
    found = re.search(r"Points: ([0-7])\b", said)
    if found is None:
        raise JudgeError(f"no points in {said!r}", kind="judge_unparseable")
    return int(found[1]) / 7


def letters(
    judged: Criterion[Desk] | None = None,
    *,
    draw: Callable[[random.Random], tuple[str, str]] = dates,
    tell: Callable[[Facts], str] = brief,
    begin: dict[str, int] | None = None,
) -> qn.Environment[Desk]:
    """Returns the environment; the arguments replace the judge, the dates, the brief and where each split begins."""
    starts = begin or {"train": 0, "test": COUNTS["train"]}

    def tasks(split: str) -> list[qn.Task[Desk]]:
        own = rows(draw)[starts[split] :][: COUNTS[split]]
        return [task(split, n, facts, tell) for n, facts in enumerate(own)]

    verifier = qn.Verifier(gated(form, then=judged or graded(Judge(Reader())), name="letter"))
    rest: dict[str, Any] = {"harness": qn.ToolLoop(), "state": Desk, "splits": tuple(COUNTS)}
    return qn.Environment("letters", tasks=tasks, verifier=verifier, **rest)


env = letters()
env_unfenced = letters(bare)
env_points = letters(points)
env_same_rows = letters(begin={"train": 0, "test": 0})
env_moody = letters(graded(Judge(Reader(temperature=1.0), temperature=1.0)))
env_cut_brief = letters(tell=short_brief)
env_calendar = letters(draw=careless_dates)
env_throttled = letters(throttled(Judge(Reader())))
