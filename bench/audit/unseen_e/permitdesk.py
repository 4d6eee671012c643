"""Desk of a town hall that permits street events: authorities and applicants answer days later, and deadlines run."""

import math
import random
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, ClassVar, Literal

import quintain as qn

AUTHORITIES, DOCUMENTS = ("traffic", "fire", "police"), ("site plan", "insurance")
RULES = """1. The file of every event needs a site plan. An event with stalls also needs insurance.
   Ask the applicant for each document that is missing, and for no other.
2. Opinions: traffic above 100 visitors, fire above 300 visitors, police if the event ends after 22:00. Ask no one else.
3. Decide when every answer is there, on the same working day; every further working day counts against the desk.
4. Grant if no authority objects and every document was attached. Else refuse; the reason is the name of the authority
   that objects, or of the document that cannot be provided, and nothing more.
5. The deadline runs once a file is given to a clerk. An application that is not decided on that day by 18:00 counts as
   granted by law. Working days: Monday to Friday.
"""
STREETS = ("Mill Lane", "Harbour Street", "Castle Square", "Linden Avenue", "Chapel Row", "Orchard Road", "Old Wharf")
APPLICANTS = ("Rowing Club", "Hazel Court", "St Anne's Parish", "Northgate Traders", "Lantern Theatre", "Oak School")
EVENTS = ("summer fair", "street dinner", "open-air concert", "flea market", "charity run", "lantern parade")


@dataclass
class Application:
    """The file of an application."""

    applicant: str
    event: str
    street: str
    day: str
    visitors: int
    ends: str
    stalls: bool
    documents: list[str]
    received: str
    deadline: str = ""
    status: str = "open"
    reason: str = ""
    decided: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    last: str = ""


def needs(file: Application) -> list[str]:
    """What the rules require to be asked for."""
    found = [one for one in DOCUMENTS[: 1 + file.stalls] if one not in file.documents]
    found += ["traffic"] * (file.visitors > 100) + ["fire"] * (file.visitors > 300) + ["police"] * (file.ends > "22:00")
    return found


def workday(day: date, count: int) -> date:
    """The working day that comes `count` working days after a day."""
    while count:
        day += timedelta(days=1)
        count -= day.weekday() < 5
    return day


def between(first: str, last: str) -> int:
    """Working days after the day of `first`, up to and with the day of `last`."""
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    return sum((start + timedelta(days=n + 1)).weekday() < 5 for n in range((end - start).days))


def seconds(day: date, hour: int) -> float:
    """A full hour of a day, as the clock counts."""
    return datetime.combine(day, time(hour), UTC).timestamp()


class Desk(qn.State):
    """Files, letters, and what others are going to answer: after how many working days, and what."""

    files: dict[str, Application]
    post: dict[str, tuple[int, str]]
    mail: list[str] = []

    def _file(self, application: str, *, is_open: bool) -> Application:
        if application not in self.files:
            raise qn.ToolError(f"no application {application!r}")
        if is_open and self.files[application].status != "open":
            raise qn.ToolError(f"{application} is {self.files[application].status}")
        return self.files[application]

    def _sheet(self, application: str) -> str:
        file = self.files[application]
        asked = [f"{key}: {said}" for key, said in file.answers.items()]
        return (
            f"{application}: {file.event} of {file.applicant}, {file.street}, {file.day}, until {file.ends}\n"
            f"visitors: {file.visitors}; stalls: {'yes' if file.stalls else 'no'}; received {file.received}\n"
            f"documents: {', '.join(file.documents) or 'none'}\nstatus: {f'{file.status} {file.reason}'.strip()}\n"
            f"deadline: {file.deadline or 'not running'}\nasked: {'; '.join(asked) or 'nobody'}"
        )

    def _reply(self, application: str, what: str) -> tuple[int, str]:
        if what not in AUTHORITIES + DOCUMENTS:
            raise qn.ToolError(f"nobody answers for {what!r}; ask for {', '.join(AUTHORITIES + DOCUMENTS)}")
        return self.post[f"{application}/{what}"]

    def _later(self, days: int) -> date:
        return workday(self.clock.date.date(), days)

    def _changed(self, application: str) -> None:
        """Called after each entry that the clerk made in a file."""

    def arrive(self, application: str, what: str, says: str) -> None:
        """An answer comes in; what comes after the decision is not filed."""
        file = self.files[application]
        if file.status == "open":
            file.answers[what], file.last = says, str(self.clock.date.date())
            file.documents += [what] if says == "attached" else []
        self.mail.append(f"{self.clock.date:%Y-%m-%d %H:%M} {application}, {what}: {says}")

    def lapse(self, application: str) -> None:
        """The deadline has passed: the law decides."""
        file = self.files[application]
        if file.status == "open":
            file.status, file.decided = "granted by law", str(self.clock.date.date())
            self.mail.append(f"{self.clock.date:%Y-%m-%d %H:%M} {application}: granted by law, the deadline has passed")

    @qn.tool
    def read_rules(self) -> str:
        """Read the rules of the desk."""
        return RULES

    @qn.tool
    def list_applications(self) -> list[str]:
        """List all applications: number, applicant, event, street, status."""
        return [f"{key} | {f.applicant} | {f.event} | {f.street} | {f.status}" for key, f in self.files.items()]

    @qn.tool
    def read_application(self, application: str) -> str:
        """Read the file of an application: data, documents, deadline, who was asked, and the answers so far.

        Args:
            application: Its number, such as 26-0101.
        """
        return self._file(application, is_open=False) and self._sheet(application)

    @qn.tool
    def ask_for(self, application: str, what: str) -> str:
        """Ask an authority for its opinion, or the applicant for a document. The answer comes some working days later.

        Args:
            application: Number of the application.
            what: An authority (traffic, fire, police), or a document that the file lacks (site plan, insurance).
        """
        file = self._file(application, is_open=True)
        if what in file.answers or what in file.documents:
            raise qn.ToolError(f"{what}: {file.answers.get(what, 'is in the file')}")
        days, says = self._reply(application, what)
        file.answers[what] = "pending"
        due = seconds(workday(self.clock.date.date(), days), 10)
        self.clock.at(due, self.arrive, application=application, what=what, says=says)
        self._changed(application)
        return "sent"

    @qn.tool
    def inbox(self) -> str:
        """Read the date, and all letters that have come in, oldest first."""
        return "\n".join([f"It is {self.clock.date:%A %Y-%m-%d %H:%M}.", *self.mail])

    @qn.tool
    def wait(self, days: int) -> str:
        """Let working days (Monday to Friday) pass. It is 16:00 then.

        Args:
            days: How many working days, 1 to 10.
        """
        if not 1 <= days <= 10:
            raise qn.ToolError(f"1 to 10 working days, not {days}")
        self.clock.advance(seconds(self._later(days), 16) - self.clock.now)
        return f"It is {self.clock.date:%A %Y-%m-%d %H:%M}."

    @qn.tool
    def decide(self, application: str, decision: Literal["granted", "refused"], reason: str = "") -> str:
        """Decide an application, for good.

        Args:
            application: Number of the application.
            decision: What is decided.
            reason: Why it is refused.
        """
        file = self._file(application, is_open=True)
        if decision == "refused" and not reason.strip():
            raise qn.ToolError("a refusal needs a reason")
        file.status, file.reason, file.decided = decision, reason.strip(), str(self.clock.date.date())
        self._changed(application)
        return f"{application} is {decision}"


class FiledDesk(Desk):
    sheets: dict[str, str] = {}

    def _sheet(self, application: str) -> str:
        return self.sheets.setdefault(application, Desk._sheet(self, application))

    def _changed(self, application: str) -> None:
        self.sheets.pop(application, None)


class LenientDesk(Desk):
    def _reply(self, application: str, what: str) -> tuple[int, str]:
        return self.post.get(f"{application}/{what}", (2, "no objection"))


class SharedDesk(Desk):
    known: ClassVar[dict[str, tuple[int, str]]] = {}

    def _reply(self, application: str, what: str) -> tuple[int, str]:
        return self.known.setdefault(f"{application}/{what}", Desk._reply(self, application, what))


class CalendarDesk(Desk):
    def _later(self, days: int) -> date:
        return self.clock.date.date() + timedelta(days=days)


def task(kind: type[Desk], split: str, n: int, *, calendar: bool) -> qn.Task[Desk]:
    """Task n of a split; with `calendar` its deadlines are counted in calendar days."""
    rng = random.Random(f"permitdesk/{split}/{n}")  # noqa: S311
    family = ("documents", "opinions", "both", "street")[n % 4]
    begin = workday(date(2026, 3, 2), rng.randrange(1, 140))
    files: dict[str, Application] = {}
    post: dict[str, tuple[int, str]] = {}
    passed, truth = 0, dict[str, dict[str, Any]]()
    people, streets = rng.sample(APPLICANTS, 6), rng.sample(STREETS, 5)
    calls: list[tuple[str, Any]] = [("read_rules", {}), ("list_applications", {})]
    for place in range(6):
        key = f"26-{101 + place:04}"
        mine = place in (1, 3) if family == "street" else place == 2
        files[key] = file = Application(
            applicant=people[place],
            event=rng.choice(EVENTS),
            street=streets[0] if mine else rng.choice(streets[1:]),
            day=str(begin + timedelta(days=rng.randrange(30, 90))),
            visitors=rng.randrange(20, 100, 5) if mine and family == "documents" else rng.randrange(120, 900, 10),
            ends="19:00" if family == "documents" else rng.choice(("18:00", "20:30", "22:00", "23:00")),
            stalls=mine or rng.random() < 0.5,
            documents=rng.sample(DOCUMENTS, rng.randrange(2)) if mine and family != "opinions" else list(DOCUMENTS),
            status="open" if place else "withdrawn",
            received=str(begin - timedelta(days=30 - 5 * place - rng.randrange(3))),
        )
        for one in AUTHORITIES + DOCUMENTS:
            post[f"{key}/{one}"] = (rng.randrange(1, 9), "attached" if one in DOCUMENTS else "no objection")
        if mine:
            truth[key] = {"needs": needs(file), "decision": "granted", "reason": ""}
            if rng.random() < 0.5:
                no = rng.choice(needs(file))
                truth[key] |= {"decision": "refused", "reason": no}
                post[f"{key}/{no}"] = (rng.randrange(1, 9), "cannot provide it" if no in DOCUMENTS else "objection")
            calls.append(("read_application", {"application": key}))
            calls += [("ask_for", {"application": key, "what": one}) for one in needs(file)]
    desk = kind(files=files, post=post)
    desk.clock.now = seconds(begin, 9)
    for longest, key in sorted((max(post[f"{key}/{one}"][0] for one in truth[key]["needs"]), key) for key in truth):
        due = begin + timedelta(days=longest + 3) if calendar else workday(begin, longest + 3)
        files[key].deadline = str(due)
        desk.clock.at(seconds(due, 18), desk.lapse, application=key)
        calls += [("wait", {"days": longest - passed})] if longest > passed else []
        verdict = {k: truth[key][k] for k in ("decision", "reason")}
        calls += [("inbox", {}), ("decide", {"application": key} | verdict)]
        passed = longest
    which = f"all open applications for {streets[0]}" if family == "street" else f"the application of {people[2]}"
    prompt = f"Permit desk, {begin:%A %Y-%m-%d}. Decide {which} by the rules of the desk. Leave all other files alone."
    more: dict[str, Any] = {"solution": tuple(calls), "tags": {"family": family}}
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=desk, truth=truth, **more)


def verifier(*, asked: bool = False, halves: bool = False) -> qn.Verifier[Desk]:
    """Criteria; `asked` counts a question as an answer, `halves` gives promptness in steps of a half."""

    def done(view: qn.EpisodeView[Desk]) -> qn.Score:
        """Share of the applications that are decided rightly, with all answers there."""
        wrong: list[str] = []
        for key, goal in view.task.truth.items():
            file = view.state.files[key]
            there = [one for one, said in file.answers.items() if asked or said != "pending"]
            right = file.status == goal["decision"] and set(goal["needs"]) <= set(there)
            if not right or (file.status == "refused" and file.reason.lower() != goal["reason"]):
                wrong.append(f"{key} is {file.status} {file.reason}")
        return qn.Score(1 - len(wrong) / len(view.task.truth), "; ".join(wrong))

    def on_time(view: qn.EpisodeView[Desk]) -> qn.Score:
        """A tenth less for each working day between the last answer and the decision; mean of the applications."""
        files = [view.state.files[key] for key in view.task.truth]
        late = sum(between(file.last, file.decided) for file in files if file.last and file.decided)
        value = max(0.0, 1 - late / len(files) / 10)
        return qn.Score(math.ceil(value * 2) / 2 if halves else value, f"{late} working days late")

    def untouched(view: qn.EpisodeView[Desk]) -> qn.Score:
        """Half after one entry that nobody asked for, nothing after two."""
        truth, files = view.task.truth, view.state.files
        stray = [key for key in files if key not in truth and files[key] != view.start.files[key]]
        stray += [f"{key}/{one}" for key in truth for one in files[key].answers if one not in truth[key]["needs"]]
        return qn.Score(max(0.0, 1 - len(stray) / 2), f"touched {stray}" if stray else "")

    return qn.Verifier(qn.reward(done), qn.reward(on_time), qn.reward(untouched), combine="product")


def build(kind: type[Desk] = Desk, *, calendar: bool = False, **dials: bool) -> qn.Environment[Desk]:
    """Puts an environment together."""

    def tasks(split: str) -> qn.Tasks[Desk]:
        return qn.Tasks({"train": 32, "test": 16}[split], lambda n: task(kind, split, n, calendar=calendar))

    parts: dict[str, Any] = {"harness": qn.ToolLoop(), "config": qn.Config(max_turns=40), "splits": ("train", "test")}
    return qn.Environment("permitdesk", tasks=tasks, state=kind, verifier=verifier(**dials), **parts)


env = build()
env_stale_sheet = build(FiledDesk)
env_any_authority = build(LenientDesk)
env_shared_answers = build(SharedDesk)
env_calendar_wait = build(CalendarDesk)
env_calendar_deadline = build(calendar=True)
env_asked_is_answered = build(asked=True)
env_half_steps = build(halves=True)
