"""T: cases, which play a family: the scene, then the solution on a copy, whose effects are the goals."""

from __future__ import annotations

import datetime as dt
import functools
import json
from typing import Any, ClassVar, cast

import msgspec

from quintain.authoring import Draft, Level
from quintain.products import zendesk
from quintain.products.zendesk import tables as tb
from quintain.products.zendesk.account import channel
from quintain.products.zendesk.commit import commit
from quintain.products.zendesk.people import create_user
from quintain.resources.web import Noise, request
from quintain.resources.web.noise import QUIET
from quintain.resources.web.rows import find, select
from quintain.resources.web.world import moment
from quintain.tools import observe
from quintain.trace import plain

from . import words
from .company import base
from .effects import Effect, Fact, breached, effects, fact
from .family import FAMILIES, Family, Intent, Item, LevelOf, calls
from .proof import Proof
from .state import Helpdesk, account, numbers
from .words import KINDS, MEASURED, POOLS, Shares

_SAFETY = {"brake", "recall"}
_PEOPLE = {
    "": "organization_id IS NULL",
    "enterprise": "organization_id IN (SELECT id FROM zd_organizations WHERE tags LIKE '%enterprise%')",
    "firm": "organization_id IS NOT NULL AND phone IS NOT NULL",
}
"""Kinds of requesters, as conditions on users."""


class Truth(msgspec.Struct, frozen=True):
    """Goals, tickets and limits of a task, which only the verifier sees.

    Attributes:
        goals: Effects and facts of the solution.
        tickets: Tickets that the task is about.
        watched: Those whose clocks count: the tickets of the scene.
        breached: Clocks of them that the solution breaches, too.
        never: Words that no reply on a ticket may hold.
        answer_due: Answer that is asked for; empty if none is.
        budget_s: Time of the world in which the work is done without loss.
        intents: The solution, for drivers other than the API's.
    """

    goals: tuple[Any, ...]
    tickets: tuple[int, ...]
    watched: tuple[int, ...]
    breached: tuple[str, ...]
    never: tuple[tuple[int, str], ...]
    answer_due: str
    budget_s: float
    intents: tuple[Intent, ...]


class Plan(msgspec.Struct):
    """One item of the scene with its slots, and its tickets in the order of their creation."""

    item: Item
    slots: dict[str, Any]
    tickets: list[int] = []


@functools.cache
def _people(level: str, shares: Shares, who: str) -> list[int]:
    sql = f"SELECT id FROM zd_users WHERE role = 'end-user' AND {_PEOPLE[who]} ORDER BY id"
    return [one for (one,) in base(level, shares).execute(sql)]


class Case(Draft[Helpdesk]):
    """A task that is being written.

    Attributes:
        kind: Class of its world.
        shares: How untidy the company is.
        noise: Trouble that the product plans.
    """

    kind: ClassVar[type[Helpdesk]] = Helpdesk
    shares: ClassVar[Shares] = MEASURED
    noise: ClassVar[Noise] = QUIET

    def __init__(self, key: bytes, level: Level) -> None:
        super().__init__(key, level)
        self.seed = key.hex()
        self.desk = account(level, self.kind, self.shares)
        self.plans: list[Plan] = []
        self.intents: list[Intent] = []
        self.never: list[tuple[int, str]] = []
        self.facts: list[Any] = []
        self.tickets: list[int] = []
        self.answer_due = ""
        self.slots: dict[str, Any] = {"me": zendesk.ADMIN}
        self.me = select(self.desk.db, tb.User, "email = ?", zendesk.ADMIN)[0]

    def write(self, name: str) -> str:
        """Writes a task of a family; returns the last words of its solution."""
        family = FAMILIES[name]
        of = family.levels[self.level]
        if name in {"bulk", "report", "rules"}:
            self._begin()
            return {"bulk": self._bulk, "report": self._report, "rules": self._rule}[name](family, of)
        self._common(name)
        self._scene(family, of)
        self._begin()
        self._prompt(family.prompt + of.more)
        for article in family.articles:
            self.do("article", query=article)
        self.do("search", query=family.query.format_map(self.slots))
        if of.before:
            text, subject = self.slots["outage"], self.slots["subject_"].strip('"')
            made = self.do("create", subject=subject, type="problem", group="App", comment=text, public=True)
            self.slots["problem"] = made["ticket"]["id"]
        for plan in sorted(self.plans, key=lambda plan: plan.tickets):
            if plan.item.is_wanted:
                self._solve(plan)
        if of.after == "solve":
            self._over()
        elif of.after == "handover":
            self._hand_over()
        return "Done."

    def _prompt(self, text: str) -> None:
        self.request = text.format_map(self.slots)

    # -- the scene

    def _common(self, name: str) -> None:
        rng, slots = self.rng, self.slots
        at = f"07:{10 + rng.below(50)}"
        slots |= {"outage": f"Since {at} the app shows no rides.", "subject_": f'"App shows no rides since {at}"',
                  "over": f"08:{10 + rng.below(50)}"}  # fmt: skip
        if name != "handover":
            return
        for role in ("other", "next"):
            who = words.person(rng)
            mail = f"{who.lower().replace(' ', '.')}.{role}@acme.example"
            with self.desk.db.transaction():
                create_user(self.desk, {"name": who, "email": mail, "role": "agent", "verified": True})
            slots |= {role: mail, f"{role}_name": who}

    def _scene(self, family: Family, of: LevelOf) -> None:
        texts = {name: self.rng.sample(item.letters, len(item.letters)) for name, item in family.items.items()}
        for name, count in of.items.items():
            for number in range(count):
                plan = Plan(family.items[name], self._slots(family.items[name]))
                text = texts[name][number % len(texts[name])] if texts[name] else plan.item.letter
                plan.slots["letter"] = text.format_map(plan.slots)
                self.plans.append(plan)
        queue = [plan for plan in self.plans for _ in range(plan.item.copies)]
        self.rng.shuffle(queue)
        for plan in queue:
            self._ticket(plan)

    def _slots(self, item: Item) -> dict[str, Any]:
        rng, known = self.rng, self.plans[0].slots if self.plans else {}
        used = {plan.slots["id"] for plan in self.plans}
        people = _people(self.level, self.shares, item.who if item.who in _PEOPLE else "")
        who = known["id"] if item.who == "same" else rng.choice([one for one in people if one not in used])
        user = find(self.desk.db, tb.User, who)
        assert user is not None, "the base has its users"
        language = rng.choice(("de", "fr", "es")) if item.foreign else "en"
        kinds = [one for one in item.kinds or KINDS if not item.foreign or language in KINDS[one].texts]
        kind = KINDS[rng.choice([one for one in kinds if item.kinds or one not in _SAFETY])]
        product = rng.choice(POOLS["products"])
        if item.who in {"as before", "same"}:
            kind, product = KINDS[known["kind"]], known["product"]
        order, days = words.order_number(rng), item.days[0] + rng.below(item.days[1] - item.days[0] + 1)
        digits = "".join(filter(str.isdigit, user.phone or "0000"))[-4:]
        low, high = item.value or (4000, 90000)
        value = (low + rng.below(high - low + 1)) // 2 * 2
        wrong = f"{value * 7 // 500}.{rng.below(90) + 10}" if item.value else f"{(int(digits) + 1111) % 10000:04}"
        firm = self.desk.db.execute("SELECT name FROM zd_organizations WHERE id = ?", user.organization_id)
        return self.slots | {
            "id": who, "name": user.name, "first_name": user.name.split()[0], "phone": digits,
            "customer": user.external_id, "firm": firm[0][0] if firm else "", "language": language, "kind": kind.value,
            "kind_words": kind.value.replace("_", " "), "area": kind.area, "type": kind.type, "order": order,
            "product": product, "value": f"{value / 100:.2f}", "half": f"{value / 200:.2f}", "wrong": wrong,
            "delivered": (dt.date(2026, 1, 5) - dt.timedelta(days)).isoformat(),
            "email": f"{user.name.lower().replace(' ', '.')}.{rng.below(9000) + 1000}@new-mail.example",
            "complaint": words.complaint(kind, order=order, product=product, language=language),
        }  # fmt: skip

    def _commit(self, who: tb.User, ticket: int | None, **wanted: Any) -> int:
        """Changes the scene a few seconds later."""
        desk = self.desk
        desk.clock.now += 5 + self.rng.below(15)
        with desk.db.transaction():
            found, _ = commit(desk, who, find(desk.db, tb.Ticket, ticket), wanted=wanted, via=channel("email"))
        return found.id

    def _ticket(self, plan: Plan) -> None:
        item, slots, rng = plan.item, plan.slots, self.rng
        customer = find(self.desk.db, tb.User, slots["id"])
        assert customer is not None, "the base has its users"
        length = 150.0 if self.level == "easy" else min(900.0, words.quantile(rng, words.FIGURES["letters"]))
        body = words.letter(rng, slots["letter"], name=slots["name"], language=slots["language"], length=length,
                            misspelt=self.shares.typos)  # fmt: skip
        subject = item.subject or (None if item.letters else words.subject(rng, KINDS[slots["kind"]], slots["order"]))
        fields = self._wanted({"group": "Support", **item.set}, slots)
        number = self._commit(customer, None, subject=subject, comment={"body": body}, **fields)
        plan.tickets.append(number)
        self.tickets.append(number)
        agent = select(self.desk.db, tb.User, "email = ?", slots.get("other", zendesk.ADMIN))[0]
        thread = [("note", item.note)] * bool(item.note) + item.thread
        for author, text in thread:
            said = {"body": text.format_map(slots), "public": author != "note"}
            self._commit(customer if author == "customer" else agent, number, comment=said)
        if item.after:
            self._commit(self.me, number, **self._wanted(item.after, slots))
        if item.rated:
            self._rate(number, customer, item.rated)

    def _rate(self, ticket: int, customer: tb.User, text: str) -> None:
        body = {"satisfaction_rating": {"score": "bad", "comment": text}}
        url = f"http://acme.zendesk.localhost/api/v2/tickets/{ticket}/satisfaction_rating"
        headers = {"authorization": _basic(customer.email or "")}
        answer = self.desk.respond(request("POST", url, body, headers=headers))
        assert answer.status < 300, answer.body

    def _wanted(self, fields: dict[str, Any], slots: dict[str, Any]) -> dict[str, Any]:
        filled = {name: one.format_map(slots) if isinstance(one, str) else one for name, one in fields.items()}
        call: Any = calls(Intent("update", 0, filled))[0]
        return dict(call[1]["body"]["ticket"])

    # -- the solution

    def _begin(self) -> None:
        """Sets the world going: the task begins some minutes after the scene."""
        desk = self.desk
        desk.clock.now = float(int(desk.clock.now)) + 120 + self.rng.below(480)
        desk.last_answers, desk.is_fresh = "", True
        desk.throttle.windows.clear()
        if self.noise != QUIET:
            desk.noise = msgspec.structs.replace(self.noise, seed=self.seed)
        desk.arm()
        self.shadow = desk.copy()

    def do(self, act: str, record: int = 0, /, **fields: Any) -> dict[str, Any]:
        """Adds an intent to the solution and plays it; returns the last answer."""
        intent = Intent(act, record, fields)
        self.intents.append(intent)
        answer: dict[str, Any] = {}
        for tool, arguments in calls(intent):
            answer = self.send(tool, **arguments)
        if "job_status" in answer:
            self.send("show_job", job=answer["job_status"]["id"])
        return answer

    def send(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Adds a call to the solution and plays it; if it is refused as planned, it is made again."""
        self.play(tool, **arguments)
        answer = getattr(self.shadow, tool)(**arguments)
        if self.shadow.met.refused:
            return self.send(tool, **arguments)
        status, _, body = plain(observe(answer)).partition("\n")
        if not status.startswith("2"):
            raise ValueError(f"the solution's call {tool} {arguments} was answered with {status}: {body[:300]}")
        return json.loads(body) if body else {}

    def _solve(self, plan: Plan) -> None:
        item, slots, (number, *copies) = plan.item, plan.slots, plan.tickets
        self.do("open", number)
        if item.act == "spam":
            self.do("spam", number)
        elif item.act == "merge":
            self.do("merge", number, ids=copies)
        if item.edit:
            self.do("edit", slots["id"], **{name: one.format_map(slots) for name, one in item.edit.items()})
        slots["breach"] = self._breach(number)[11:16]
        fields = {name: one.format_map(slots) if isinstance(one, str) else one for name, one in item.update.items()}
        if item.act == "link":
            fields["problem"] = self.slots["problem"]
        text = (item.reply or item.inside).format_map(slots)
        if text:
            fields |= {"comment": text, "public": bool(item.reply)}
        if fields:
            self.do("update", number, **fields)
        for public, patterns in ((True, item.facts), (False, item.notes)):
            self.facts += [Fact(ticket=number, public=public, pattern=fact(one.format_map(slots))) for one in patterns]
        self.never += [(number, fact(one.format_map(slots))) for one in item.never]

    def _breach(self, ticket: int) -> str:
        metric = find(self.desk.db, tb.Metric, ticket)
        return (metric.next_breach if metric else None) or moment(0.0)

    def _over(self) -> None:
        text = f"The app works again since {self.slots['over']} (UTC). We are sorry for the trouble."
        self.do("update", self.slots["problem"], status="solved", assignee=zendesk.ADMIN, comment=text, public=True)
        reports = [plan.tickets[0] for plan in self.plans if plan.item.act == "link"]
        self.facts += [Fact(ticket=one, public=True, pattern=fact(self.slots["over"])) for one in reports]

    def _hand_over(self) -> None:
        moved = sorted(plan.tickets[0] for plan in self.plans if plan.item.is_wanted)
        person = select(self.desk.db, tb.User, "email = ?", self.slots["next"])[0]
        text = f"Open tickets that are now yours: {', '.join(map(str, moved))}."
        self.do("create", subject="Hand-over", type="task", requester_id=person.id, assignee=person.email,
                comment=text, public=False)  # fmt: skip
        self.facts += [Fact(ticket=0, public=False, pattern=fact(str(one))) for one in moved]

    # -- tasks about the whole account

    def _draw(self) -> dict[str, Any]:
        rng = self.rng
        number = rng.choice([one.group_id for one in select(self.desk.db, tb.Ticket, "status = 'open' ORDER BY id")])
        area = next(name for name, one in numbers()["group"].items() if one == number)
        number = 100 + rng.below(900)
        return self.slots | {
            "area": area, "area_id": numbers()["group"][area], "kind": rng.choice(list(KINDS)),
            "priority": rng.choice(("low", "high", "urgent")), "tag": f"checked_{number}",
            "title": f"Desk rule {number}",
            "keyword": rng.choice(("recall", "smoke", "accident", "lawyer")), "hours": 24 * (1 + rng.below(4)),
            "minutes": 15 * (1 + rng.below(6)),
        }  # fmt: skip

    def _bulk(self, family: Family, of: LevelOf) -> str:
        ids: list[int] = []
        while not of.least <= len(ids) <= of.most:
            self.slots = self._draw()
            where = of.where.format_map(self.slots)
            sql = f"SELECT id FROM zd_tickets WHERE deleted = 0 AND status = 'open' AND {where} ORDER BY id"
            ids = [one for (one,) in self.desk.db.execute(sql)]
        self.tickets = ids
        self.slots["words"] = of.words.format_map(self.slots)
        self._prompt(family.prompt)
        for page in range(len(ids) // 100 + 1):
            self.do("search", query=of.query.format_map(self.slots), per_page="100", page=str(page + 1))
        for start in range(0, len(ids), 100):
            self.do("bulk", ids=ids[start : start + 100], tags=self.slots["tag"], type="task")
        return f"{len(ids)} tickets are changed."

    def _report(self, family: Family, of: LevelOf) -> str:
        found: list[tuple[Any, ...]] = []
        begin = until = dt.datetime(2026, 1, 4, tzinfo=dt.UTC)
        while not found:
            until = dt.datetime(2026, 1, 4, tzinfo=dt.UTC) - dt.timedelta(hours=self.rng.below(24 * 14))
            begin = until - dt.timedelta(hours=24 * of.days + self.rng.below(24))
            sql = """SELECT g.name, count(*) FROM zd_metric_events e JOIN zd_tickets t ON t.id = e.ticket_id
                JOIN zd_agent_groups g ON g.id = t.group_id WHERE e.type = 'breach' AND e.metric = 'reply_time'
                AND e.time >= ? AND e.time < ? GROUP BY 1 ORDER BY 2 DESC, 1"""
            found = self.desk.db.execute(sql, moment(begin.timestamp()), moment(until.timestamp()))
        self.slots |= {"begin": f"{begin:%Y-%m-%d %H:%M}", "end": f"{until:%Y-%m-%d %H:%M}", "words": of.words,
                       "form": of.form}  # fmt: skip
        self._prompt(family.prompt + " Answer with nothing else.")
        lines = [f"{name}: {number}" for name, number in found[: of.top]] or [str(sum(n for _, n in found))]
        self.answer_due = "\n".join(lines)
        self._export(int(begin.timestamp()), moment(until.timestamp()), with_groups=bool(of.top))
        return self.answer_due

    def _export(self, start: int, until: str, *, with_groups: bool) -> None:
        tickets: set[int] = set()
        while True:
            page = self.do("export", start_time=str(start), per_page="200")
            rows = [one for one in page["ticket_metric_events"] if one["time"] < until]
            tickets |= {one["ticket_id"] for one in rows if (one["type"], one["metric"]) == ("breach", "reply_time")}
            if page["end_of_stream"] or len(rows) < len(page["ticket_metric_events"]):
                break
            start = page["end_time"]
        self.tickets = sorted(tickets)
        for first in range(0, len(tickets) if with_groups else 0, 100):
            self.do("show", ids=",".join(map(str, self.tickets[first : first + 100])))

    def _rule(self, family: Family, of: LevelOf) -> str:
        self.slots = self._draw()
        rule = family.rules[self.rng.choice(of.rules)]
        self.slots["words"] = rule.words.format_map(self.slots)
        self._prompt(family.prompt)
        self.do("groups")
        self.do(rule.act, **_filled(rule.rule, self.slots))
        stream = {name: self.slots[name] for name in ("area_id", "keyword", "hours", "title")}
        proof = Proof(kind=rule.proof, hours=stream["hours"] if rule.act == "automation" else 0,
                      keyword=stream["keyword"], group=stream["area_id"], title=stream["title"], shown=())  # fmt: skip
        self.facts.append(msgspec.structs.replace(proof, shown=proof.play(self.shadow)))
        return "The rule is there."

    # -- the task

    def truth(self) -> Truth:
        found = effects(self.desk, self.shadow)
        goals = [Effect(table=t, row=row, field=field, value=value) for (t, row, field), value in found.items()]
        budget = 3 * (self.shadow.clock.now - self.desk.clock.now) + 600
        watched = tuple(sorted(one for plan in self.plans for one in plan.tickets))
        return Truth((*goals, *self.facts), tuple(self.tickets), watched, breached(self.shadow, watched),
                     tuple(self.never), self.answer_due, budget, tuple(self.intents))  # fmt: skip

    def world(self) -> Helpdesk:
        return self.desk


def _filled(value: Any, slots: dict[str, Any]) -> Any:
    """Returns a description with its slots filled; a text that is one slot alone keeps the slot's type."""
    if isinstance(value, dict):
        return {name: _filled(one, slots) for name, one in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        many: list[Any] = cast(Any, value)
        return [_filled(one, slots) for one in many]
    if isinstance(value, str):
        alone = value.strip("{}")
        return slots[alone] if value == f"{{{alone}}}" and alone in slots else value.format_map(slots)
    return value


def _basic(email: str) -> str:
    import base64

    return "Basic " + base64.b64encode(f"{email}/token:{zendesk.TOKEN}".encode()).decode()
