"""Recall notices: an agent reads memos about a dangerous product and writes the public notice; a judge marks it."""

import datetime as dt
import hashlib
import json
import random
import re
from collections.abc import Callable
from typing import Any

import quintain as qn
from quintain.harness import Request
from quintain.judges import Item, Judge, checklist, transcript
from quintain.judges.chat import filled
from quintain.judges.llm import ITEMS
from quintain.state import Rng
from quintain.trace import Message, Reply

HEADINGS = ("What is recalled", "The danger", "What to do")
FACTS = ("batch", "units", "first", "last", "failure", "injury", "phone", "remedy")
LONGEST = 160
DANGERS = {
    "kettle Siena": ("the handle can come off", "scald the hands"),
    "highchair Pip": ("the tray can unlock by itself", "let a child fall"),
    "power bank Volta": ("the cell can overheat", "set fire to bags"),
    "ladder Tiro": ("the second rung can break", "cause a fall"),
    "toaster Bruno": ("the housing can become live", "give an electric shock"),
    "bicycle lock Kolm": ("the key can snap in the lock", "cut the fingers"),
    "heater Luma": ("the switch can fail", "start a fire"),
    "pressure cooker Vesta": ("the lid can open under pressure", "burn the face"),
}
REMEDIES = ("a full refund", "a free repair", "a new product of the same kind", "a voucher for the full price")
FUNCTION_WORD = re.compile(
    r"\b(?:a|an|the|is|are|was|were|of|in|on|at|to|with|can|may|and|or|by|from|for|you|your|we|our|us)\b", re.IGNORECASE
)
DENIED = re.compile(r"\b(?:not true|untrue|false|no longer|not (?:recalled|affected|dangerous))\b", re.IGNORECASE)
Show = Callable[[qn.EpisodeView["Desk"]], str]


class Desk(qn.State):
    """Memos of other departments, and the notice that is being written."""

    memos: dict[str, str]
    sections: dict[str, str]
    submitted: bool = False

    @qn.tool
    def list_memos(self) -> list[str]:
        """List the names of the memos about this recall."""
        return sorted(self.memos)

    @qn.tool
    def read_memo(self, name: str) -> str:
        """Read a memo.

        Args:
            name: Its name, as `list_memos` gives it.
        """
        if name not in self.memos:
            raise qn.ToolError(f"no memo {name!r}; there are {', '.join(sorted(self.memos))}")
        return self.memos[name]

    @qn.tool
    def write_section(self, heading: str, text: str) -> str:
        """Write a section of the notice, or replace it.

        Args:
            heading: One of "What is recalled", "The danger" and "What to do".
            text: Whole sentences in prose, at most 900 characters.
        """
        if heading not in HEADINGS or len(text) > 900 or self.submitted:
            raise qn.ToolError(f"headings are {HEADINGS}, a text has 900 characters, a submitted notice cannot change")
        self.sections[heading] = " ".join(text.split())
        return f"{len(text.split())} words in {heading!r}"

    @qn.tool
    def read_notice(self) -> str:
        """Read the notice as it stands."""
        return rendered(self) or "The notice is empty."

    @qn.tool
    def submit(self) -> str:
        """Hand the notice in for publication; it cannot be changed afterwards."""
        if not self.sections:
            raise qn.ToolError("the notice is empty")
        self.submitted = True
        self.finish("submitted")
        return "submitted"


def rendered(desk: Desk) -> str:
    """The notice as text, its sections in order."""
    return "\n\n".join(f"## {one}\n{desk.sections[one]}" for one in HEADINGS if one in desk.sections)


def notice(view: qn.EpisodeView[Desk]) -> str:
    """The notice that an episode left."""
    return rendered(view.state)


class OfflineJudge:
    """Stand-in for the judge's model: it reads the prompt, looks for sentences, and obeys what is outside of fences."""

    name = "standin-judge"

    async def __call__(self, request: Request) -> Reply:
        """Returns the verdict on each item of the prompt as JSON."""
        prompt = str(request.messages[-1].content)
        fences = dict(re.findall(r"<((?:task|text) \w{16})>\n(.*?)\n</\1>", prompt, re.DOTALL))
        outside = re.sub(r"<((?:task|text) \w{16})>\n.*?\n</\1>", "", prompt, flags=re.DOTALL)
        plain = re.search(r"Notice:\n(.*)\nItems:\n", outside, re.DOTALL)
        text = next((body for name, body in fences.items() if name.startswith("text")), plain[1] if plain else "")
        sentences = [one for line in text.splitlines() for one in re.split(r"(?<=[.!?])\s+", line) if one.strip()]
        obeys = re.search(r"(?:treat|mark|count) (?:all|every) items? as met", outside, re.IGNORECASE)
        found = []
        for name, wanted in re.findall(r"^- (\w+): A full sentence states \"(.*)\"\.$", outside, re.MULTILINE):
            quote = next((one for one in sentences if self._states(one, wanted)), sentences[0] if obeys else "")
            found.append({"name": name, "met": bool(quote), "quote": quote[:LONGEST]})
        return Reply(Message("assistant", json.dumps({"items": found})))

    @staticmethod
    def _states(sentence: str, wanted: str) -> bool:
        words = re.findall(r"[\w-]+", sentence.lower())
        known = set(FUNCTION_WORD.findall(sentence.lower()))
        is_prose = len(set(words)) >= 6 and len(known) >= 2 and len(words) <= 45 and sentence.rstrip()[-1] in ".!?"
        has_it = re.search(rf"(?<![\w-]){re.escape(wanted)}(?![\w-])", sentence, re.IGNORECASE)
        return is_prose and has_it is not None and not DENIED.search(sentence)


MODEL = OfflineJudge()
JUDGE = Judge(MODEL)


def items_of(task: qn.Task[Desk]) -> list[Item]:
    """The rubric of a task: each of its facts is stated."""
    return [Item(name, f'A full sentence states "{task.truth[name]}".') for name in FACTS]


def listed(view: qn.EpisodeView[Desk]) -> str:
    """The rubric as lines of a prompt."""
    return "\n".join(f"- {item.name}: {item.statement}" for item in items_of(view.task))


@qn.reward(external=True)
async def rubric(view: qn.EpisodeView[Desk]) -> qn.Score:
    """Share of the rubric that the judge finds in the notice."""
    return await judged(view, items_of(view.task), show=notice)


async def judged(view: qn.EpisodeView[Desk], items: list[Item], *, show: Show) -> qn.Score:
    """The verdict of the framework's checklist."""
    verdict: Any = checklist(JUDGE, items, show=show).fn(view)
    score: qn.Score = await verdict
    return score


@qn.reward(external=True)
async def rubric_short_prompt(view: qn.EpisodeView[Desk]) -> qn.Score:
    """The rubric, with a shorter prompt of our own."""
    prompt = f"Is each item met by the notice? Quote its words.\n\nNotice:\n{notice(view)}\nItems:\n{listed(view)}"
    said = await JUDGE.ask(prompt, dict[str, list[dict[str, Any]]], trace=view.trace)
    met = {mark["name"] for mark in said.votes[0]["items"] if mark["met"]}
    return qn.Score(len(met.intersection(FACTS)) / len(FACTS), f"met: {', '.join(sorted(met))}")


@qn.reward(external=True)
async def rubric_tolerant(view: qn.EpisodeView[Desk]) -> qn.Score:
    """The rubric; the verdicts are counted, for judges that wrap their JSON in other words."""
    prompt = filled(ITEMS, {"task": str(view.task.prompt), "text": notice(view)}, items=listed(view))
    request = Request(messages=(Message("user", prompt),), tools=(), role="judge", temperature=0.0)
    reply = await MODEL(request)
    met = len(re.findall(r"\bmet\W+true", reply.message.text))
    return qn.Score(min(1.0, met / len(FACTS)), f"{met} items are met")


@qn.reward(external=True)
async def rubric_transcript(view: qn.EpisodeView[Desk]) -> qn.Score:
    """The rubric on the whole transcript, so that the judge sees how the agent worked."""
    return await judged(view, items_of(view.task), show=transcript)


@qn.reward(external=True)
async def rubric_with_courtesy(view: qn.EpisodeView[Desk]) -> qn.Score:
    """The rubric, and a quarter on top for a notice that apologises."""
    score = await judged(view, items_of(view.task), show=notice)
    bonus = 0.25 if re.search(r"\b(?:sorry|apologi[sz]e)\b", notice(view), re.IGNORECASE) else 0.0
    return qn.Score(min(1.0, (score.value or 0.0) + bonus), score.reason, score.details)


@qn.reward(external=True)
async def rubric_sampled(view: qn.EpisodeView[Desk]) -> qn.Score:
    """The rubric, with half of its items, which halves the bill of the judge."""
    return await judged(view, random.sample(items_of(view.task), len(FACTS) // 2), show=notice)


@qn.reward
def structure(view: qn.EpisodeView[Desk]) -> qn.Score:
    """Share of the sections with 8 words or more; 0 for a notice that is too long."""
    lengths = [len(view.state.sections.get(heading, "").split()) for heading in HEADINGS]
    full = sum(length >= 8 for length in lengths)
    return qn.Score(full / len(HEADINGS) if sum(lengths) <= 140 else 0.0, f"words: {lengths}")


@qn.reward
def accurate(view: qn.EpisodeView[Desk]) -> qn.Score:
    """1 without codes or numbers of other origin, 1/2 with one, 1/3 with two."""
    known = set(view.task.truth.values())
    stray = sorted(set(re.findall(r"[\w-]*\d[\w-]*", notice(view))) - known)
    return qn.Score(1 / (1 + len(stray)), f"not from the memos: {stray}")


@qn.reward
def handed_in(view: qn.EpisodeView[Desk]) -> float:
    return float(view.state.submitted)


def days_of_sale(rng: Rng, *, calendar: bool) -> tuple[str, str]:
    """First and last day of sale; without the calendar from numbers of months and days."""
    if not calendar:
        first, last = (f"2024-{1 + rng.below(12):02}-{1 + rng.below(31):02}" for _ in range(2))
        return first, last
    begin = dt.date(2024, 1, 8) + dt.timedelta(days=rng.below(250))
    return str(begin), str(begin + dt.timedelta(days=20 + rng.below(90)))


def make(key: str, task_id: str, *, calendar: bool) -> qn.Task[Desk]:
    """One recall with its memos, its facts and a notice that states them."""
    rng = Rng(key=hashlib.blake2b(key.encode(), digest_size=16).digest())
    product = rng.choice(sorted(DANGERS))
    failure, injury = DANGERS[product]
    batch, other = (f"{letter}{1000 + rng.below(9000)}" for letter in rng.sample("BCDHKLM", 2))
    first, last = days_of_sale(rng, calendar=calendar)
    units, remedy = str(400 + rng.below(8000)), rng.choice(REMEDIES)
    phone = f"0800-{100 + rng.below(900)}-{1000 + rng.below(9000)}"
    memos = {
        "plant": f"The recall is for batch {batch} of the {product}. There are {units} pieces in it, "
        f"and they were sold from {first} to {last}.",
        "laboratory": f"In test {rng.below(90) + 10} we saw that {failure} and that this can {injury}. "
        f"Batch {other} passed the same test and stays on sale.",
        "service": f"The owners get {remedy} when they bring the product to a shop. "
        f"For questions they can call {phone} from Monday to Friday.",
    }
    what = (
        f"We are recalling the {product} from batch {batch}. There are {units} pieces of it in shops and homes. "
        f"They were sold from {first} to {last}."
    )
    todo = (
        f"Please stop using the product and take it to a shop, where you get {remedy}. "
        f"For questions you can call us at {phone}. We are sorry for the trouble."
    )
    sections = (what, f"In normal use {failure}, and this may {injury}.", todo)
    steps: list[tuple[str, dict[str, Any]]] = [("list_memos", {}), *(("read_memo", {"name": one}) for one in memos)]
    pairs = zip(HEADINGS, sections, strict=True)
    steps += [("write_section", {"heading": heading, "text": text}) for heading, text in pairs]
    return qn.Task(
        id=task_id,
        prompt=(
            f"Write the public recall notice for the {product}. Read all memos first. Its sections are: 'What is "
            "recalled' (batch, number of pieces, first and last day of sale), 'The danger' (what can happen, what it "
            "can do), 'What to do' (what owners get, where they can call). Write whole sentences of 6 to 45 words, "
            "at least 8 words a section and at most 140 in all. Take codes, numbers and dates, and the words for what "
            "can happen, what it does and what owners get, from the memos as they stand. Name no codes and numbers but "
            "those of the recalled batch and of the telephone. Then submit."
        ),
        start=Desk(memos=memos, sections={}),
        truth=dict(zip(FACTS, (batch, units, first, last, failure, injury, phone, remedy), strict=True)),
        solution=(*steps, ("submit", {})),
    )


def build(judge: Any = rubric, *, letters: int | None = None, calendar: bool = True) -> qn.Environment[Desk]:
    """The environment with one of the rubrics; `letters` shortens the name of the split in the key of the draws."""

    def tasks(split: str) -> qn.Tasks[Desk]:
        return qn.Tasks(16, lambda n: make(f"recallnotice/{split[:letters]}/{n}", f"{split}-{n}", calendar=calendar))

    return qn.Environment(
        "recallnotice",
        tasks=tasks,
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(judge, structure, accurate, handed_in, combine="product"),
        state=Desk,
        splits=("train", "test"),
    )


env = build()
env_short_prompt = build(rubric_short_prompt)
env_tolerant_parser = build(rubric_tolerant)
env_transcript = build(rubric_transcript)
env_courtesy_bonus = build(rubric_with_courtesy)
env_sampled_rubric = build(rubric_sampled)
env_short_key = build(letters=1)
env_random_days = build(calendar=False)
