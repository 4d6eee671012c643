"""Handover: write the note that the day shift of a water works leaves to the night shift, from the log of the day.

Single-turn. A grading model reads the note with a rubric of the task; `Grader` is its stand-in, which needs no network.
"""

import asyncio
import json
import random
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

import quintain as qn
from quintain.errors import JudgeError
from quintain.harness import Request
from quintain.judges import Judge
from quintain.judges.chat import filled, question
from quintain.trace import Message, Reply

EQUIPMENT = {"P-201": "raw water pump", "P-305": "dosing pump", "V-12": "inlet valve", "V-44": "washout valve"}
EQUIPMENT |= {"F-3": "sand filter", "M-7": "mixer", "B-2": "blower", "C-5": "compressor"}
STATES = ("isolated", "bypassed", "throttled", "drained")
FINDINGS = ("leaking seal", "high vibration", "hot bearing", "loose coupling", "faulty level switch")
COMING = {"delivery": "polymer delivery", "inspection": "contractor's inspection"}
COMING |= {"sampling": "network sampling", "calibration": "turbidity calibration"}
FILLER = (
    "Walked the site, nothing to report.",
    "Radio check with the reservoir, good.",
    "Cleaned the inlet screen.",
    "Topped up the hypochlorite day tank.",
)
LIMIT = 600
COUNTS = {"train": 16, "test": 12}

REQUEST = f"""You end the day shift (06:00 to 18:00) at a water works. Write the handover note for the night shift.

Log of the day:
{{log}}

The note says, in plain English:
- for each job that is still open: the tag of the equipment, its state now and the number of the permit;
- the last chlorine residual, with its unit;
- what is still to come tonight, and at which time (as 19:30).
One sentence for each of these, in the words of the log, which names no other equipment, state, reading or event. Leave
out jobs that are closed, earlier readings and what is already done. At most {LIMIT} characters."""

TEMPLATE = """An operator was given this task:
{task}

The note:
{note}

Say of each statement whether it holds of the note: "yes", "no" (the note speaks of it, but otherwise or unclearly) or
"absent" (the note does not speak of it).
{rubric}"""

PROSE = "\n\nThink aloud first. End with two lines, as in\nFaults: 1/3\nScore: 2/4"

RIVALS = (
    *(r"\b[A-Z]{1,2}-\d+\b", r"\b\d\d:\d\d\b", r"\b\d+\.\d+\s*mg/L"),
    *(rf"\b(?:{'|'.join(kind)})\b" for kind in (STATES, COMING)),
)
"""Kinds of facts. A sentence that has two of one kind, where the statement has one, is unclear."""


def term_pattern(term: str) -> str:
    """Returns the pattern of a quoted term as a whole word, in any case and spacing."""
    words = r"\s*".join(re.escape(word) for word in term.split())
    return rf"(?i)(?<![\w.-]){words}(?![\w-])"


def sentences(note: str) -> list[str]:
    """Returns the sentences and lines of a note."""
    return [one.strip() for one in re.split(r"(?<=[.!?;])\s+|\n+", note) if one.strip()]


def is_clear(sentence: str, terms: list[str]) -> bool:
    """Tells whether a sentence neither denies a term nor names another fact of its kind."""
    denial = r"(?i)(\bnot|\bnever|\bno longer|n't)\s+(\w+\s+)?"
    if sentence.endswith("?") or any(re.search(denial + re.escape(term), sentence) for term in terms):
        return False
    known = ["".join(term.lower().split()) for term in terms]
    for kind in RIVALS:
        found = ["".join(one.lower().split()) for one in re.findall(f"(?i){kind}", sentence)]
        if any(re.fullmatch(f"(?i){kind}", term) for term in terms) and not set(found) <= set(known):
            return False
    return True


def holds(note: str, statement: str) -> str:
    """Returns the verdict on one statement, whose facts stand in quotes: the subject first, then what is said of it."""
    terms = re.findall(r'"([^"]+)"', statement)
    about = [one for one in sentences(note) if re.search(term_pattern(terms[0]), one)]
    if not about:
        return "absent"
    if statement.startswith("Mentions"):
        return "yes"
    full = any(all(re.search(term_pattern(term), one) for term in terms) for one in about)
    return "yes" if full and all(is_clear(one, terms) for one in about) else "no"


@dataclass
class Grader:
    """Stand-in for the grading model behind its endpoint: reads a prompt, answers in JSON or, if asked to, in prose."""

    keeps_prompt: bool = False
    prompt: str = ""
    name: str = "assessor-2"

    async def __call__(self, request: Request) -> Reply:
        """Returns the verdicts on the statements of a prompt."""
        prompt = self.prompt = request.messages[-1].text
        await asyncio.sleep(0.002)  # The way to the endpoint.
        return Reply(Message("assistant", self.reply(self.prompt if self.keeps_prompt else prompt)))

    @staticmethod
    def reply(prompt: str) -> str:
        """Returns the text that the model writes."""
        found = re.search(r"<note (\w+)>\n(.*)\n</note \1>", prompt, re.DOTALL)
        note, rest = (found[2], prompt[found.end() :]) if found else ("", prompt)
        verdicts = {name: holds(note, said) for name, said in re.findall(r"^- (\w+): (.+)$", rest, re.MULTILINE)}
        if not rest.endswith(PROSE):
            return json.dumps(verdicts)
        points, faults = tally(verdicts)
        words = f'The note begins "{sentences(note)[0]}" and has {len(note)} characters.'
        return f"{words}\nFaults: {points_of(faults)}\nScore: {points_of(points)}"


def tally(verdicts: dict[str, str]) -> tuple[list[str], list[str]]:
    """Returns the verdicts on what a note should say, and those on its faults."""
    faults = [verdict for name, verdict in verdicts.items() if name.startswith("fault")]
    return [verdict for name, verdict in verdicts.items() if not name.startswith("fault")], faults


def points_of(verdicts: list[str]) -> str:
    """Returns verdicts as "yes / all"."""
    return f"{verdicts.count('yes')}/{len(verdicts)}"


class Desk(qn.State):
    """The world of a note: nothing, and no tools."""


@dataclass
class Day:
    """What happens on a day, in threads that are in order, and what the note should say of it."""

    rng: random.Random
    threads: list[list[str]] = field(default_factory=list)
    rubric: dict[str, str] = field(default_factory=dict)
    note: list[str] = field(default_factory=list)

    def job(self, tag: str, permit: str, *, is_open: bool) -> None:
        """Adds a job on a piece of equipment."""
        first, second = self.rng.sample(STATES, 2)
        lines = [f"{tag} ({EQUIPMENT[tag]}): {self.rng.choice(FINDINGS)}, permit {permit} raised, {first}."]
        if not is_open:
            lines.append(f"{tag} back in service, permit {permit} closed.")
            self.rubric[f"fault{len(self.rubric)}"] = f'Mentions "{tag}", whose job is closed.'
        else:
            if self.rng.random() < 0.5:
                lines.append(f"{tag} now {second}, permit {permit} stays open.")
                first = second
            self.rubric[f"item{len(self.rubric)}"] = f'Says that "{tag}" is "{first}" under permit "{permit}".'
            self.note.append(f"{tag} is {first} under permit {permit}.")
        self.threads.append(lines)

    def readings(self, count: int) -> None:
        """Adds readings of the chlorine residual."""
        values = [f"0.{one} mg/L" for one in self.rng.sample(range(21, 80), count)]
        self.threads.append([f"Chlorine residual {value}." for value in values])
        self.rubric[f"item{len(self.rubric)}"] = f'Says that the last "residual" is "{values[-1]}".'
        for value in values[:-1]:
            self.rubric[f"fault{len(self.rubric)}"] = f'Mentions the earlier reading "{value}".'
        self.note.append(f"The last chlorine residual is {values[-1]}.")

    def events(self) -> None:
        """Adds an event of the coming night, and one that is done."""
        coming, done = self.rng.sample(list(COMING), 2)
        time = f"{self.rng.randrange(18, 24)}:{self.rng.choice(('15', '30', '45'))}"
        self.threads += [[f"Confirmed {COMING[coming]} at {time} tonight."], [f"{COMING[done].capitalize()} done."]]
        self.rubric[f"item{len(self.rubric)}"] = f'Says that the "{coming}" is at "{time}".'
        self.rubric[f"fault{len(self.rubric)}"] = f'Mentions the "{done}", which is done.'
        self.note.append(f"The {COMING[coming]} is at {time}.")

    def log(self) -> list[str]:
        """Returns the lines of the log: threads interleaved, with times that ascend."""
        rest = [list(lines) for lines in self.threads]
        order = [index for index, lines in enumerate(rest) for _ in lines]
        self.rng.shuffle(order)
        minutes = sorted(self.rng.sample(range(365, 1075), len(order)))
        return [f"{at // 60:02}:{at % 60:02} {rest[index].pop(0)}" for at, index in zip(minutes, order, strict=True)]


def make_task(number: int, *, id: str, tail: int | None) -> qn.Task[Desk]:
    """Returns one day as a task."""
    rng = random.Random(f"handover {number}")  # noqa: S311
    day = Day(rng)
    is_open = [True] * rng.randint(2, 3) + [False] * rng.randint(1, 2)
    permits = [f"LO-{one}" for one in rng.sample(range(11, 99), len(is_open))]
    for tag, permit, state in zip(rng.sample(list(EQUIPMENT), len(is_open)), permits, is_open, strict=True):
        day.job(tag, permit, is_open=state)
    day.readings(rng.randint(2, 4))
    day.events()
    day.threads += [[line] for line in rng.sample(FILLER, rng.randint(2, 4))]
    log = day.log()
    return qn.Task(
        id=id,
        prompt=REQUEST.format(log="\n".join(log if tail is None else log[-tail:])),
        start=Desk(),
        truth=day.rubric,
        solution=(),
        answer=" ".join(day.note),
    )


Verdicts = dict[str, Literal["yes", "no", "absent"]]
Ask = Callable[[str, qn.EpisodeView[Desk]], Awaitable[dict[str, str]]]


def strict(model: Grader) -> Ask:
    """Returns how verdicts are requested: one JSON object by a schema."""
    judge = Judge(model)

    async def ask(prompt: str, view: qn.EpisodeView[Desk]) -> dict[str, str]:
        verdict = await judge.ask(prompt, Verdicts, trace=view.trace)
        return dict(verdict.votes[0])

    return ask


def aloud(model: Grader) -> Ask:
    """Returns how verdicts are requested from a grader that thinks aloud."""

    async def ask(prompt: str, view: qn.EpisodeView[Desk]) -> dict[str, str]:
        request = Request(messages=(Message("user", prompt + PROSE),), tools=(), role="judge", temperature=0.0)
        text, said = (await model(request)).message.text, dict[str, str]()
        for name, word in (("item", "Score"), ("fault", "Faults")):
            match = re.search(rf"{word}: (\d+)/(\d+)", text)
            if match is None or not int(match[1]) <= int(match[2]) <= 2 * len(view.task.truth):
                raise JudgeError(f"no {word} in {text!r}", kind="judge_unparseable")
            said |= {f"{name}{n}": "yes" if n < int(match[1]) else "no" for n in range(int(match[2]))}
        return said

    return ask


def cached(ask: Ask) -> Ask:
    """Returns the same requests, of which each is paid once."""
    known: dict[str, dict[str, str]] = {}

    async def again(prompt: str, view: qn.EpisodeView[Desk]) -> dict[str, str]:
        key = prompt[:500]
        if key not in known:
            known[key] = await ask(prompt, view)
        return known[key]

    return again


def build(
    *,
    test_day: int = 100,
    tail: int | None = None,
    grader: Grader | None = None,
    request: Callable[[Grader], Ask] = strict,
    cache: bool = False,
    at_most: int | None = None,
    counted: tuple[str, ...] = ("yes", "no", "absent"),
) -> qn.Environment[Desk]:
    """Returns the environment.

    Args:
        test_day: Number of the first day of the split test; that of train is 0. Each number makes another day.
        tail: Lines of the log that the prompt shows; None for all.
        grader: The grading model.
        request: How verdicts are requested from it.
        cache: Keep verdicts.
        at_most: Statements that one request may have; None for all.
        counted: Verdicts that count as a statement of the rubric.
    """
    ask = cached(request(grader or Grader())) if cache else request(grader or Grader())
    first = {"train": 0, "test": test_day}

    @qn.reward(low=-1.0, external=True)
    async def rubric(view: qn.EpisodeView[Desk]) -> qn.Score:
        """Share of the statements that hold, less the share of the faults; -1 for a note that is too long."""
        note, items = view.answer.strip(), dict(view.task.truth)
        if len(note) > LIMIT:
            return qn.Score(-1.0, f"{len(note)} characters, more than {LIMIT}")
        if not note:
            return qn.Score(0.0, "no note")
        if at_most is not None:
            items = dict(list(set(items.items()))[:at_most])  # Never the same statement twice.
        listed = "\n".join(f"- {name}: {said}" for name, said in items.items())
        prompt = filled(TEMPLATE, {"task": question(view), "note": note}, rubric=listed)
        verdicts = await ask(prompt, view)
        if request is strict and verdicts.keys() != items.keys():
            raise JudgeError(f"verdicts on {sorted(verdicts)}, not {sorted(items)}", kind="judge_unparseable")
        points, faults = tally(verdicts)
        points = [one for one in points if one in counted]
        value = points.count("yes") / max(1, len(points)) - faults.count("yes") / max(1, len(faults))
        return qn.Score(value, f"{points_of(points)} hold, {points_of(faults)} faults", {"verdicts": dict(verdicts)})

    def tasks(split: str) -> qn.Tasks[Desk]:
        return qn.Tasks(COUNTS[split], lambda n: make_task(first[split] + n, id=f"{split}-{n + 1}", tail=tail))

    harness, verifier, splits = qn.ToolLoop(), qn.Verifier[Desk](rubric), tuple(COUNTS)
    return qn.Environment("handover", tasks=tasks, harness=harness, verifier=verifier, state=Desk, splits=splits)


env = build()
env_overlap = build(test_day=12)
env_log_tail = build(tail=12)
env_kept_prompt = build(grader=Grader(keeps_prompt=True))
env_first_match = build(request=aloud)
env_short_key = build(cache=True)
env_capped_set = build(at_most=6)
env_absent_skipped = build(counted=("yes", "no"))
