"""The company as an account: staff, customers, rules, and tickets of a year.

Tickets that are still open are played by the product's own rules, each update at its moment. Closed ones are written as
rows in the same shape, which is ten times faster; a test plays one script both ways and compares the rows.
"""

from __future__ import annotations

import functools
import hashlib
import random
from pathlib import Path
from typing import Any, cast

import msgspec

from quintain.products import zendesk
from quintain.products.zendesk import sla
from quintain.products.zendesk import tables as tb
from quintain.products.zendesk.account import channel, seconds
from quintain.products.zendesk.commit import SYSTEM, comment, commit, shown
from quintain.products.zendesk.people import create_user
from quintain.resources.database import Database
from quintain.resources.web import TABLES as WEB_TABLES
from quintain.resources.web.rows import WebRow, insert, select
from quintain.resources.web.world import Due

from . import words
from .words import DATA, FIGURES, KINDS, MEASURED, POOLS, Shares

DAWN = 1_767_603_600.0
"""The base ends here: Monday 2026-01-05, 09:00 UTC."""
SIZES = {"easy": 600, "medium": 4_000, "hard": 20_000}
"""Tickets of the base by the level of the task."""
DAY = 86_400.0
FIELDS = (("Category", "tagger"), ("Order", "text"), ("Product", "text"), ("Refund (EUR)", "decimal"),
          ("Cause", "tagger"), ("Verified", "checkbox"))  # fmt: skip
_WAITING = ("pending", "hold", "solved")
CAUSES = ("replacement", "amount", "silence")
TARGETS = {"urgent": (60, 600), "high": (120, 1200), "normal": (480, 4800), "low": (960, 9600)}
"""Minutes in business hours to the first and each further reply, and to the resolution, by priority."""


class Corruption(WebRow, kw_only=True):
    """Difference between the truth and what the account holds. No tool shows it."""

    record: str
    field: str
    before: str
    after: str
    kind: str


TABLES: tuple[type[WebRow], ...] = (*WEB_TABLES, *tb.TABLES, Corruption)


class ScriptStep(msgspec.Struct):
    """Update of a ticket: when, by whom, the fields it sets, and what it says."""

    at: float
    actor: int
    fields: dict[str, Any]
    text: str = ""
    public: bool = True


class Script(msgspec.Struct):
    """Life of a ticket: its requester, the channel, and its updates, of which the first creates it."""

    requester: int
    via: str
    steps: list[ScriptStep]


class Founder:
    """Builds the account that is described in the table `recipe` of a database with the tables of `TABLES`."""

    def __init__(self, db: Database) -> None:
        size, self.shares = msgspec.json.decode(db.execute("SELECT text FROM recipe")[0][0], type=tuple[int, Shares])
        # The generator's stream is the same for every version of Python; a draw costs a twentieth of one of Rng.
        self.rng = random.Random(size)
        self.db, self.size = db, size
        self.world = zendesk.account(begin=DAWN)
        self.names: dict[int, str] = {}
        self.corruptions: list[Corruption] = []
        self.rows: dict[type[WebRow], list[WebRow]] = {}

    def found(self) -> None:
        """Fills the database."""
        with self.world.db.transaction():
            self._rules()
            self._staff()
            self._customers()
        for kind in TABLES:
            if kind is not Corruption:
                self._insert(select(self.world.db, kind))
        self.world.db = self.db
        self.hours = sla.calendar(self.world)
        live: list[tuple[int, Script]] = []
        for number, script in enumerate(self._scripts(), 1):
            if script.steps[-1].fields.get("status") == "closed":
                self.paint(number, script)
            else:
                live.append((number, script))
        self._flush()
        for number, script in live:
            self.play(number, script)
        self._breach()
        self.db.execute("UPDATE zd_tickets SET has_incidents = id IN (SELECT ifnull(problem_id, 0) FROM zd_tickets)")
        self.world.tickets = self.size
        self._insert(self.corruptions)
        zendesk.index(self.world)

    def _insert(self, rows: Any) -> None:
        for start in range(0, len(rows), 400):
            insert(self.db, *rows[start : start + 400])

    def _add(self, row: Any) -> Any:
        rows = self.rows.setdefault(cast(type[WebRow], type(row)), [])
        rows.append(row)
        if len(rows) == 400:
            insert(self.db, *rows)
            rows.clear()
        return row

    def _flush(self) -> None:
        for rows in self.rows.values():
            insert(self.db, *rows)
            rows.clear()

    def _put(self, kind: Any, **fields: Any) -> Any:
        known = {"created_at": self.world.now, "updated_at": self.world.now, "raw_title": fields.get("title", "")}
        more = {name: value for name, value in known.items() if name in kind.__struct_fields__}
        row = kind(id=self.world.new_number(), **more, **fields)
        insert(self.world.db, row)
        return row

    def _spoil(self, record: object, field: str, kind: str, *, before: Any, after: Any) -> None:
        self.corruptions.append(Corruption(id=len(self.corruptions) + 1, record=str(record), field=field,
                                           before=str(before), after=str(after), kind=kind))  # fmt: skip

    # -- rules and people

    def _rules(self) -> None:
        db = self.world.db
        # A mail to each of a hundred agents for every ticket is the first rule that a firm of this size turns off.
        db.execute("UPDATE zd_triggers SET active = 0 WHERE title = 'Notify all agents of received request'")
        options = {"Category": KINDS, "Cause": CAUSES}
        for position, (title, kind) in enumerate(FIELDS, 8):
            named = [{"id": self.world.new_number(), "name": value.replace("_", " ").capitalize(), "raw_name": value,
                      "value": value} for value in options.get(title, ())]  # fmt: skip
            self._put(tb.TicketField, type=kind, title=title, title_in_portal=title, position=position,
                      custom_field_options=named)  # fmt: skip
        week = [{"start_time": day * 1440 + 480, "end_time": day * 1440 + 1080} for day in range(1, 6)]
        self._put(tb.Schedule, name="Office hours", time_zone="UTC", intervals=week)
        metrics = [
            {"priority": priority, "metric": metric, "target": target, "business_hours": True}
            for priority, (reply, end) in TARGETS.items()
            for metric, target in (
                ("first_reply_time", reply),
                ("next_reply_time", reply),
                ("total_resolution_time", end),
            )
        ]
        self._put(tb.SlaPolicy, title="Standard", position=1, policy_metrics=metrics)
        routing = "; ".join(f"{one.value}: {one.area}" for one in KINDS.values())
        types = "; ".join(f"{one.value}: {one.type}" for one in KINDS.values())
        for title, body in DATA["articles"].items():
            self._put(tb.Article, title=title, body=body.replace("{routing}", routing).replace("{types}", types))

    def _staff(self) -> None:
        regions, areas = DATA["groups"]["regions"], DATA["groups"]["areas"]
        self.groups = {
            f"{area}{region}": self._put(tb.AgentGroup, name=f"{area}{region}").id
            for region in regions
            for area in areas
        }
        self.agents: dict[int, list[int]] = {}
        for number, group in enumerate(self.groups.values()):
            for place in range(2):
                email = f"agent{2 * number + place}@acme.example"
                who = words.person(self.rng)
                fields = {"name": who, "email": email, "role": "agent", "verified": True, "default_group_id": group}
                self.agents.setdefault(group, []).append(create_user(self.world, fields).id)
        self.me = select(self.world.db, tb.User, "email = ?", zendesk.ADMIN)[0].id

    def _customers(self) -> None:
        rng, world = self.rng, self.world
        firms: list[Any] = []
        for number in range(max(20, self.size // 50)):
            name = " ".join(words.pick(rng, POOLS[part]) for part in ("firms", "trades", "kinds"))
            tags = ["enterprise"] if rng.random() < 0.15 else []
            firms.append(self._put(tb.Organization, name=f"{name} {number}", tags=tags))
            if rng.random() < FIGURES["two_accounts"]:
                firms.append(self._put(tb.Organization, name=f"{name.upper()} {number}", tags=tags))
                self._spoil(firms[-1].id, "name", "two accounts", before=firms[-2].name, after=firms[-1].name)
        self.people: list[tuple[int, int | None]] = []
        users: list[Any] = []
        identities: list[Any] = []
        for number in range(int(self.size * 0.75)):
            name, firm = words.person(rng), words.pick(rng, firms).id if rng.random() < 0.3 else None
            digits = f"30{1000000 + int(rng.random() * 8999999)}"
            phone = words.pick(
                rng, (f"+49 {digits[:2]} {digits[2:]}", f"0049{digits}", f"0{digits[:2]}/{digits[2:]}", "")
            )
            email = f"{name.lower().replace(' ', '.')}.{number}@mail.example"
            users.append(tb.User(id=world.new_number(), name=name, email=email, phone=phone or None, verified=True,
                                 created_at=world.now, updated_at=world.now, organization_id=firm,
                                 external_id=f"C{10000 + number}"))  # fmt: skip
            identities.append(tb.Identity(id=world.new_number(), user_id=users[-1].id, value=email, verified=True,
                                          primary=True, created_at=world.now, updated_at=world.now))  # fmt: skip
            self.people.append((users[-1].id, firm))
            self.names[users[-1].id] = name
        for rows in (users, identities):
            for start in range(0, len(rows), 400):
                insert(world.db, *rows[start : start + 400])

    # -- lives of tickets

    def _arrivals(self) -> list[tuple[float, int]]:
        """Returns moments in order, each with the number of its cluster; 0 for one that stands alone."""
        rng, found = self.rng, list[tuple[float, int]]()
        days = min(365, self.size // 25)
        cluster = 0
        while len(found) < self.size:
            day = DAWN - 9 * 3600 - (1 + int(rng.random() * days)) * DAY
            weekend = int((day // DAY + 3) % 7) >= 5
            if weekend and rng.random() < 0.55:
                continue
            at = day + 3600 * (int(words.weighted(rng, FIGURES["hour"])) + rng.random())
            if rng.random() < FIGURES["burst"] / 9:
                # Reports of one trouble come within minutes; a part of them are about the very same thing.
                cluster += 1
                size, is_same = 3 + int(rng.random() ** 2 * 16), rng.random() < 0.35
                found += [(at + rng.random() * 1200, cluster if is_same else 0) for _ in range(size)]
            else:
                found.append((at, 0))
        return sorted(found[: self.size])

    def _scripts(self) -> list[Script]:
        kinds = words.first_weights(list(KINDS), DATA["groups"]["categories"])
        self.weights = words.first_weights(list(self.groups), DATA["groups"]["first"])
        self.outages: dict[int, tuple[str, str, int]] = {}
        self.last: list[tuple[int, str, str, str]] = []
        self.callers = [0.35 + self.rng.random() ** 3 * 3 for _ in self.people]
        total = 0.0
        self.edges = [total := total + one for one in self.callers]
        return [
            self._script(number, at, cluster, kind_name=words.weighted(self.rng, kinds))
            for number, (at, cluster) in enumerate(self._arrivals(), 1)
        ]

    def _caller(self) -> tuple[int, int | None]:
        import bisect

        return self.people[bisect.bisect(self.edges, self.rng.random() * self.edges[-1]) % len(self.people)]

    def _script(self, number: int, at: float, cluster: int, *, kind_name: str) -> Script:
        rng = self.rng
        who, problem = self._caller()[0], 0
        order, product = words.order_number(rng), words.pick(rng, POOLS["products"])
        if cluster:
            kind_name, product, problem = self.outages.setdefault(cluster, (kind_name, product, number))
        elif self.last and rng.random() < self.shares.duplicates:
            who, order, product, kind_name = words.pick(rng, self.last[-20:])
        self.last = [*self.last[-20:], (who, order, product, kind_name)]
        kind = KINDS[kind_name]
        language = words.weighted(rng, self.shares.language) if len(kind.texts) > 1 else "en"
        text = words.complaint(kind, order=order, product=product, language=language)
        length = words.quantile(rng, FIGURES["letters"])
        body = words.letter(rng, text, name=self.names[who], language=language, length=length,
                            misspelt=self.shares.typos)  # fmt: skip
        category = kind.value
        if rng.random() < FIGURES["misfiled"]:
            category = words.pick(rng, list(KINDS))
            self._spoil(order, "Category", "misfiled", before=kind.value, after=category)
        group = self.groups[words.weighted(rng, self.weights)]
        first: dict[str, Any] = {
            "subject": words.subject(rng, kind, order),
            "priority": words.weighted(rng, FIGURES["priority"]),
            "group_id": group,
            "custom": {"Category": category, "Order": order},
        }
        if rng.random() >= self.shares.missing:
            first["type"] = kind.type
        if cluster % 2:  # Half of the troubles got a problem ticket: the first report of them.
            first |= {"type": "problem"} if problem == number else {"type": "incident", "problem_id": problem}
        if rng.random() < 0.4:
            first["tags"] = sorted({POOLS["tags"][int(rng.random() ** 3 * len(POOLS["tags"]))] for _ in range(2)})
        if rng.random() >= FIGURES["unassigned"]:
            first["assignee_id"] = words.pick(rng, self.agents[group])
        return self._steps(Script(who, words.pick(rng, ("web", "email", "email")), [ScriptStep(at, who, first, body)]))

    def _steps(self, script: Script) -> Script:
        """Adds what follows the creation, up to the end of the base."""
        rng, (first, *_) = self.rng, script.steps
        start, hours = first.at, words.quantile(rng, FIGURES["hours"])
        end = start + hours * 3600
        agent = first.fields.get("assignee_id") or words.pick(rng, self.agents[first.fields["group_id"]])
        steps: list[ScriptStep] = []
        if "assignee_id" not in first.fields:
            steps.append(ScriptStep(start + (end - start) * 0.05, agent, {"assignee_id": agent}))
        for _ in range(int(words.weighted(rng, FIGURES["reassigned"]))):
            group = self.groups[words.weighted(rng, self.weights)]
            agent = words.pick(rng, self.agents[group])
            when = start + (end - start) * (0.06 + 0.3 * rng.random())
            steps.append(ScriptStep(when, agent, {"group_id": group, "assignee_id": agent}))
        target = TARGETS[first.fields["priority"]][0]
        late = rng.random() < FIGURES["breached"] * 1.6
        minutes = target * (1.2 + 3 * rng.random() if late else 0.1 + 0.8 * rng.random())
        reply = self.hours.add(start, minutes * 60)
        talk = max(0, int(words.quantile(rng, self.shares.updates)) - len(steps) - 3)
        if reply < end - 600:
            steps.append(
                ScriptStep(reply, agent, {"status": "pending"} if talk else {}, words.pick(rng, POOLS["answers"]))
            )
            for place in range(talk):
                at = reply + (end - reply) * (place + 1) / (talk + 1)
                if place % 3 == 0:
                    steps.append(ScriptStep(at, script.requester, {}, words.pick(rng, POOLS["fill"]["en"])))
                elif place % 3 == 1:
                    steps.append(ScriptStep(at, agent, {}, words.pick(rng, POOLS["notes"]), public=False))
                else:
                    steps.append(ScriptStep(at, agent, {"status": words.pick(rng, ("pending", "pending", "hold"))},
                                      words.pick(rng, POOLS["answers"])))  # fmt: skip
        steps.append(ScriptStep(end, agent, {"status": "solved"}, words.pick(rng, POOLS["answers"])))
        if rng.random() < FIGURES["reopened"]:
            steps.append(ScriptStep(end + 7200, script.requester, {}, "It is not solved, it happened again."))
            steps.append(ScriptStep(end + 36_000, agent, {"status": "solved"}, words.pick(rng, POOLS["answers"])))
        steps.append(ScriptStep((steps[-1].at // 3600 + 97) * 3600, self.me, {"status": "closed"}))
        script.steps += [one for one in sorted(steps, key=lambda one: one.at) if one.at < DAWN]
        return script

    # -- two ways to make it true

    def play(self, number: int, script: Script) -> None:
        """Plays a ticket by the rules of the product, each update at its moment."""
        world = self.world
        world.tickets, ticket = number - 1, None
        for step in script.steps:
            world.clock.now = float(int(step.at))
            wanted = {name: value for name, value in step.fields.items() if name != "custom"}
            ids = self.field_ids
            wanted["custom_fields"] = {ids[k]: v for k, v in step.fields.get("custom", {}).items()}
            if step.text:
                wanted["comment"] = {"body": step.text, "public": step.public}
            actor = world.user(step.actor)
            assert actor is not None, "a script names users that exist"
            ticket, _ = commit(world, actor, ticket, wanted=wanted, via=channel(script.via))
        world.clock.now = DAWN

    @functools.cached_property
    def field_ids(self) -> dict[str, str]:
        """Identifiers of the custom fields, by their titles."""
        return {one.title: str(one.id) for one in select(self.world.db, tb.TicketField, "removable = 1")}

    def paint(self, number: int, script: Script) -> None:
        """Writes the rows of a ticket as the rules would have left them, without its mails."""
        world, first = self.world, script.steps[0]
        world.clock.now = float(int(first.at))
        user = self._user(script.requester)
        ticket = tb.Ticket(
            id=number, requester_id=user.id, submitter_id=user.id, created_at=world.now, via=channel(script.via),
            organization_id=user.organization_id, description=first.text, ticket_form_id=self._form,
            brand_id=self._brand,
        )  # fmt: skip
        metric = tb.Metric(id=number, ticket_id=number, created_at=world.now, since=world.clock.now)
        for name in ("first_reply_time", "total_resolution_time"):
            self._measure(number, name, "activate", instance=1)
        for step in script.steps:
            world.clock.now = float(int(step.at))
            self._paint_step(ticket, metric, step, script=script)
        self._add(ticket)
        self._add(metric)

    def _paint_step(self, ticket: tb.Ticket, metric: tb.Metric, step: ScriptStep, *, script: Script) -> None:
        world, created, before = self.world, step is script.steps[0], ticket.status
        actor, via = self._user(step.actor), channel(script.via)
        fields = {name: value for name, value in step.fields.items() if name != "custom"}
        is_agent = actor.role != "end-user"
        events: list[tb.Json] = []
        if created:
            ticket.custom = {self.field_ids[name]: value for name, value in step.fields["custom"].items()}
            ticket.tags = fields["tags"] = sorted({*fields.get("tags", ()), step.fields["custom"]["Category"]})
            fields["subject"] = fields["subject"] or step.text.strip()[:80]
            fields |= {"status": "open" if "assignee_id" in fields else "new", "requester_id": ticket.requester_id}
            metric.status_updated_at = world.now
        elif ticket.status in (("new",) if "assignee_id" in fields else () if is_agent else _WAITING):
            fields["status"] = "open"
        row = comment(world, actor, step.text, public=step.public, via=via)
        if step.text:
            row.ticket_id = ticket.id
            events.append({"id": row.id, "type": "Comment"})
            metric.latest_comment_added_at = world.now
            if step.public and is_agent and not created:
                metric.replies += 1
                if metric.replies == 1:
                    self._first_reply(ticket, metric)
        events += self._set(ticket, metric, fields, created=created)
        if actor.id == ticket.assignee_id:
            metric.assignee_updated_at = world.now
        if actor.id == ticket.requester_id:
            metric.requester_updated_at = world.now
        if not created and ticket.status != before:
            self._spend(ticket, metric, before)
        audit = tb.Audit(id=world.new_number(), ticket_id=ticket.id, created_at=world.now, author_id=actor.id, via=via,
                         events=events, metadata={"system": SYSTEM, "custom": {}})  # fmt: skip
        self._add(audit)
        if step.text:
            row.audit_id = audit.id
            self._add(row)
        ticket.updated_at, ticket.generated_timestamp = world.now, int(world.clock.now)
        metric.updated_at, ticket.custom_status_id = world.now, self._statuses.get(ticket.status)

    def _set(self, ticket: tb.Ticket, metric: tb.Metric, fields: dict[str, Any], *, created: bool) -> list[tb.Json]:
        events: list[tb.Json] = []
        for name, value in fields.items():
            old = getattr(ticket, name)
            if not created and old == value:
                continue
            more = {} if created else {"previous_value": shown(old)}
            events.append({"id": self.world.new_number(), "type": "Create" if created else "Change",
                           "value": shown(value), "field_name": name, **more})  # fmt: skip
            setattr(ticket, name, value)
            if name == "assignee_id":
                metric.assignee_stations += 1
                metric.assigned_at = self.world.now
                metric.initially_assigned_at = metric.initially_assigned_at or self.world.now
            elif name == "group_id":
                metric.group_stations += 1
        return events

    def _first_reply(self, ticket: tb.Ticket, metric: tb.Metric) -> None:
        since, now = seconds(ticket.created_at), self.world.clock.now
        spent = sla.minutes(now - since, self.hours.between(since, now))
        metric.reply_time_in_minutes = spent
        if spent["business"] >= TARGETS[ticket.priority or "normal"][0]:
            self._measure(ticket.id, "first_reply_time", "breach", instance=1, deleted=False)
        self._measure(ticket.id, "first_reply_time", "fulfill", instance=1)
        self._measure(ticket.id, "first_reply_time", "update_status", instance=1, status=spent)

    def _measure(self, ticket: int, name: str, type: str, *, instance: int, **more: Any) -> None:
        event = tb.MetricEvent(id=self.world.new_number(), ticket_id=ticket, metric=sla.EVENT_METRICS.get(name, name),
                               instance_id=instance, type=type, time=self.world.now, more=more)  # fmt: skip
        self._add(event)

    def _spend(self, ticket: tb.Ticket, metric: tb.Metric, before: str) -> None:
        at, world = self.world.clock.now, self.world
        spent = metric.counted.setdefault(before, [0.0, 0.0])
        spent[0] += at - metric.since
        spent[1] += self.hours.between(metric.since, at)
        metric.since, metric.status_updated_at = at, world.now
        for name, states in (
            ("agent_wait", ("pending",)),
            ("requester_wait", ("new", "open", "hold")),
            ("on_hold", ("hold",)),
        ):
            sums = [sum(metric.counted.get(one, [0.0, 0.0])[part] for one in states) for part in (0, 1)]
            setattr(metric, f"{name}_time_in_minutes", sla.minutes(sums[0], sums[1]))
        metric.reopens += before == "solved" and ticket.status == "open"
        if ticket.status == "solved":
            since = seconds(ticket.created_at)
            full = sla.minutes(at - since, self.hours.between(since, at))
            metric.solved_at, metric.full_resolution_time_in_minutes = world.now, full
            if metric.first_resolution_time_in_minutes["calendar"] is None:
                metric.first_resolution_time_in_minutes = full
            self._measure(ticket.id, "total_resolution_time", "fulfill", instance=1)

    @functools.cache  # noqa: B019 (a founder lives as long as the build)
    def _user(self, number: int) -> tb.User:
        found = self.world.user(number)
        assert found is not None, "a script names users that exist"
        return found

    @functools.cached_property
    def _form(self) -> int:
        return int(self.db.execute('SELECT id FROM zd_ticket_forms WHERE "default" = 1')[0][0])

    @functools.cached_property
    def _brand(self) -> int:
        return int(self.db.execute('SELECT id FROM zd_brands WHERE "default" = 1')[0][0])

    @functools.cached_property
    def _statuses(self) -> dict[str, int]:
        found = self.db.execute('SELECT status_category, id FROM zd_custom_statuses WHERE "default" = 1')
        return dict(cast(Any, found))

    def _breach(self) -> None:
        """Breaches the clocks whose moment came before the end of the base."""
        world = self.world
        while found := select(world.db, Due, "due <= ? AND act = 'breach' ORDER BY due, id LIMIT 1", DAWN):
            world.clock.now = found[0].due
            world.db.execute("DELETE FROM web_due WHERE id = ?", found[0].id)
            sla.breach(world, found[0].argument or 0)
        world.clock.now = DAWN


def _found(db: Database) -> None:
    Founder(db).found()


@functools.cache
def base(level: str, shares: Shares = MEASURED) -> Database:
    """Returns the account for tasks of a level, built once on a machine; take a fork of it."""
    digest = hashlib.blake2b((Path(__file__).parent / "company.toml").read_bytes(), digest_size=16).hexdigest()
    recipe = msgspec.json.encode((SIZES[level], shares)).decode()
    # A seed is a function of the database alone, so what it is to make stands there.
    return Database(*TABLES, f"CREATE TABLE recipe AS SELECT '{recipe}' AS text -- {digest}", seed=_found)
