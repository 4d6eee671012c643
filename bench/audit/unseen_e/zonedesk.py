"""Change tickets for the DNS zones of a company network: read and edit the draft of a zone, publish it, report."""

import ipaddress
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import quintain as qn
from quintain.errors import JudgeError

Kind = Literal["A", "CNAME", "MX", "TXT"]
ZONES = ("int.haldenwerk.net", "lab.haldenwerk.net", "plant.haldenwerk.net", "office.tarnby.net", "depot.tarnby.net")
HOSTS = ("web-01", "web-02", "db-01", "db-02", "app-01", "app-02", "build-01", "proxy-01", "print-01", "backup-01")
SERVICES = ("erp", "sso", "wiki", "grafana", "nexus", "moodle", "payroll", "redmine", "harbor", "ldap")
MACHINES = ("core-01", "nas-01", "sap-01", "git-01", "hyper-01", "scan-01", "voip-01", "label-01")
SHORT = ("vpn", "nfs", "ntp", "smtp", "radius", "syslog", "gitlab", "keycloak", "mattermost", "jenkins")
NAME = re.compile(r"@|[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass
class Record:
    """One resource record; names are relative to the zone, "@" is the zone itself."""

    name: str
    kind: Kind
    value: str
    ttl: int


def problem(new: Record, others: list[Record]) -> str:  # noqa: PLR0911
    """What is wrong with a record beside the others of its zone; empty if nothing is."""
    if not NAME.fullmatch(new.name):
        return f"{new.name!r} is no name in this zone"
    if not 60 <= new.ttl <= 604_800:
        return f"a TTL is 60 to 604800 seconds, not {new.ttl}"
    if new.kind == "A":
        try:
            ipaddress.IPv4Address(new.value)
        except ValueError:
            return f"{new.value!r} is no IPv4 address"
    if new.kind == "CNAME" and not NAME.fullmatch(new.value):
        return f"{new.value!r} is no name in this zone"
    if new.kind == "MX" and not re.fullmatch(r"\d{1,5} [a-z0-9-]+", new.value):
        return "an MX has the form '10 host'"
    beside = [one for one in others if one.name == new.name]
    if beside and (new.kind == "CNAME" or any(one.kind == "CNAME" for one in beside)):
        return f"{new.name} has other records; a CNAME stands alone"
    return "this record exists" if any((one.kind, one.value) == (new.kind, new.value) for one in beside) else ""


def rows(zone: dict[str, Record]) -> set[tuple[str, str, str, int]]:
    """The records of a zone, without their ids."""
    return {(one.name, one.kind, one.value, one.ttl) for one in zone.values()}


class Zone(qn.State):
    """A zone: the draft that is edited, and what the name servers answer."""

    origin: str
    today: int
    serial: int
    draft: dict[str, Record]
    live: dict[str, Record]

    def _begin(self) -> None:
        """Called before each edit."""

    def _row(self, record: str) -> Record:
        if record not in self.draft:
            raise qn.ToolError(f"no record {record!r}")
        self._begin()
        return self.draft[record]

    def _put(self, new: dict[str, Record]) -> None:
        after = self.draft | new
        for key, row in new.items():
            if wrong := problem(row, [one for other, one in after.items() if other != key]):
                raise qn.ToolError(wrong)
        self.draft |= {key or self.new_id("n"): row for key, row in new.items()}

    def _lines(self, keep: Callable[[Record], bool]) -> str:
        rows = [f"{k} | {r.name} | {r.ttl} | {r.kind} | {r.value}" for k, r in self.draft.items() if keep(r)]
        return "\n".join(["id | name | ttl | type | value", *rows]) if rows else "no such records"

    def _moved(self, value: str, old: str, new: str) -> str:
        return new if value == old else value

    @qn.tool
    def list_records(self, kind: Literal["all", "A", "CNAME", "MX", "TXT"] = "all") -> str:
        """List the records of the draft.

        Args:
            kind: Only those of this type.
        """
        return self._lines(lambda one: kind in ("all", one.kind))

    @qn.tool
    def find(self, text: str) -> str:
        """List the records of the draft with a text in their name or value.

        Args:
            text: Part of a name, an address or a target.
        """
        return self._lines(lambda one: text.lower() in f"{one.name} {one.value}".lower())

    @qn.tool
    def add_record(self, name: str, kind: Kind, value: str, ttl: int = 3600) -> str:
        """Add a record to the draft.

        Args:
            name: Relative to the zone, "@" for the zone itself.
            kind: Its type.
            value: IPv4 address (A), name in this zone (CNAME), "10 host" (MX), or text (TXT).
            ttl: Time to live in seconds.
        """
        self._begin()
        self._put({"": Record(name.lower(), kind, value, ttl)})
        return "added"

    @qn.tool
    def change_record(self, record: str, value: str | None = None, ttl: int | None = None) -> str:
        """Change the value or the TTL of a record in the draft.

        Args:
            record: Id of the record.
            value: New value; left out, it stays.
            ttl: New time to live in seconds; left out, it stays.
        """
        row = self._row(record)
        new = {"value": row.value if value is None else value, "ttl": row.ttl if ttl is None else ttl}
        self._put({record: replace(row, **new)})
        return "changed"

    @qn.tool
    def remove_record(self, record: str) -> str:
        """Remove a record from the draft.

        Args:
            record: Id of the record.
        """
        self._row(record)
        del self.draft[record]
        return "removed"

    @qn.tool
    def repoint(self, old: str, new: str) -> str:
        """Give all A records with a certain address another one, in the draft.

        Args:
            old: The address that they have now, complete.
            new: The address that they get.
        """
        self._begin()
        moved = {k: self._moved(one.value, old, new) for k, one in self.draft.items() if one.kind == "A"}
        changed = {k: replace(self.draft[k], value=v) for k, v in moved.items() if v != self.draft[k].value}
        if not changed:
            raise qn.ToolError(f"no A record has {old}")
        self._put(changed)
        return f"{len(changed)} records changed"

    @qn.tool
    def publish(self) -> str:
        """Publish the draft under a new serial number, which it returns."""
        self.serial = max(self.serial + 1, self.today * 100 + 1)
        self.live = {key: replace(one) for key, one in self.draft.items()}
        return f"{self.origin} is published with serial {self.serial}"


class PrefixZone(Zone):
    def _moved(self, value: str, old: str, new: str) -> str:
        return value.replace(old, new)


class LockedZone(Zone):
    locks: ClassVar[set[str]] = set()
    holds: bool = False

    def _begin(self) -> None:
        if not self.holds and self.origin in self.locks:
            raise qn.ToolError(f"{self.origin} is locked: somebody else is editing it")
        self.locks.add(self.origin)
        self.holds = True

    @qn.tool
    def publish(self) -> str:
        """Publish the draft under a new serial number, which it returns."""
        if self.holds:
            self.locks.discard(self.origin)
        self.holds = False
        return Zone.publish(self)


def filler(rng: random.Random, nets: list[str], *, odd: bool) -> list[Record]:
    """Records that a zone has anyway; with `odd` their numbers are just drawn."""
    hosts, services, lasts = rng.sample(HOSTS, 6), rng.sample(SERVICES, 4), rng.sample(range(20, 250), 6)
    records = [Record("@", "MX", "10 mail-01", 3600), Record("@", "TXT", "v=spf1 mx -all", 3600)]
    records += [Record("mail-01", "A", f"{nets[1]}.{rng.randrange(12, 20)}", 3600)]
    for place, (host, last) in enumerate(zip(hosts, lasts, strict=True)):
        address = ".".join(str(rng.randrange(1000)) for _ in range(4)) if odd else f"{nets[place % 2]}.{last}"
        ttl = rng.randrange(1, 100_000) if odd else rng.choice((300, 3600, 3600, 86_400))
        records.append(Record(host, "A", address, ttl))
    return records + [Record(one, "CNAME", rng.choice(hosts), 3600) for one in services]


def task(kind: type[Zone], seed: str, split: str, n: int, *, odd: bool) -> qn.Task[Zone]:
    """Task n of a split, drawn with a seed."""
    rng = random.Random(seed)  # noqa: S311
    family = ("move", "new", "retire", "ttl")[n % 4]
    site = rng.randrange(1, 200)
    nets = [f"10.{site}.{third}" for third in rng.sample(range(1, 60), 2)]
    records = filler(rng, nets, odd=odd)
    own = f"{nets[0]}.{rng.randrange(2, 20)}"
    (main, other), (short, alias, free) = rng.sample(MACHINES, 2), rng.sample(SHORT, 3)
    records += [Record(main, "A", own, 3600), Record(main, "TXT", f"rack {rng.randrange(1, 30)}", 3600)]
    records += [Record(alias, "CNAME", main, 3600)]
    records += [Record(short, "A", own, 300)] if family == "move" else []
    records += [Record(other, "A", f"{own}{rng.randrange(10)}", 3600)] if rng.random() < 0.6 else []
    rng.shuffle(records)
    start = {f"r{place + 1}": one for place, one in enumerate(records)}
    end = {key: replace(one) for key, one in start.items()}
    calls: list[tuple[str, dict[str, Any]]] = []
    if family == "move":
        new = f"{nets[1]}.{rng.randrange(2, 12)}"
        ask = f"The server at {own} gets the address {new}. Let every name that has the old address follow."
        end |= {key: replace(one, value=new) for key, one in end.items() if one.value == own}
        calls += [("find", {"text": own}), ("repoint", {"old": own, "new": new})]
    elif family == "new":
        host, new = f"edge-0{rng.randrange(1, 9)}", f"{nets[0]}.{rng.randrange(251, 255)}"
        ask = f"Add the host {host} (A, {new}, TTL 300), and the alias {free} for it (CNAME, TTL 3600)."
        end |= {"n1": Record(host, "A", new, 300), "n2": Record(free, "CNAME", host, 3600)}
        calls += [("add_record", {"name": host, "kind": "A", "value": new, "ttl": 300})]
        calls += [("add_record", {"name": free, "kind": "CNAME", "value": host})]
    elif family == "retire":
        ask = f"The host {main} ({own}) is retired. Remove its records, and each alias (CNAME) that points to it."
        gone = [key for key, one in end.items() if main in (one.name, one.value)]
        end = {key: one for key, one in end.items() if key not in gone}
        calls += [("find", {"text": main}), *(("remove_record", {"record": key}) for key in gone)]
    else:
        ask = f"{nets[0]}.0/24 moves next week. Lower the TTL of its A records to 300 where it is higher."
        slow = {k: one for k, one in end.items() if one.kind == "A" and one.ttl > 300}
        near = [key for key, one in slow.items() if one.value.startswith(f"{nets[0]}.")]
        end |= {key: replace(end[key], ttl=300) for key in near}
        calls += [("list_records", {"kind": "A"}), *(("change_record", {"record": key, "ttl": 300}) for key in near)]
    today = 20260000 + 100 * rng.randrange(3, 11) + rng.randrange(1, 29)
    serial = today * 100 + rng.randrange(1, 4) if rng.random() < 0.3 else (today - 100) * 100 + rng.randrange(1, 4)
    names = sorted({name for name, *_ in rows(start) ^ rows(end)})
    world = kind(origin=rng.choice(ZONES), today=today, serial=serial, draft=start, live=start).copy()
    report = "Publish, and report in a sentence or two: the names whose records changed, no others, and the new serial."
    return qn.Task(
        id=f"{split}-{n}",
        prompt=f"Ticket for the zone {world.origin}: {ask} Leave all other records alone. {report}",
        start=world,
        truth={"rows": sorted(rows(end)), "names": names},
        solution=(*calls, ("publish", {})),
        answer=f"Changed {', '.join(names)}; the serial is now {max(serial + 1, today * 100 + 1)}.",
        tags={"family": family},
    )


async def reviewer(note: str, names: list[str], known: list[str], serial: int) -> str:
    """Stands in for the model that reviews notes, and answers in its words."""
    words = set(re.findall(r"[a-z0-9-]+", note.lower()))
    named, wanted = words & set(known), set(names)
    share = len(named & wanted) / len(named | wanted) * (1.0 if str(serial) in words else 0.5)
    said = f"{len(named & wanted)} of {len(wanted)} names, {len(named - wanted)} too many"
    return f"The note under review is: {note}\nIt has {said}.\nSCORE: {share:.2f}"


def verifier(*, first: bool = False, kept: bool = False, sample: int = 0) -> qn.Verifier[Zone]:
    """Criteria; they read the first score of a review, look at kept rows only, or look at a sample of the rows."""

    def published(view: qn.EpisodeView[Zone]) -> qn.Score:
        """Share of the wanted changes that the name servers show."""
        start, live, wanted = rows(view.start.live), rows(view.state.live), {tuple(r) for r in view.task.truth["rows"]}
        right = len((wanted - start) & live) + len((start - wanted) - live)
        return qn.Score(right / len(wanted ^ start), f"{right} of {len(wanted ^ start)} changes")

    def untouched(view: qn.EpisodeView[Zone]) -> qn.Score:
        """Half after one change that the ticket does not ask for, nothing after two."""
        start, live, wanted = view.start.live, view.state.live, {tuple(r) for r in view.task.truth["rows"]}
        new, old = rows(live) - rows(start) - wanted, (rows(start) & wanted) - rows(live)
        if kept:
            new, old = rows({key: live[key] for key in start.keys() & live.keys()}) - rows(start) - wanted, set()
        if sample:
            old &= set(random.sample(sorted(rows(start) & wanted), sample))
        return qn.Score(max(0.0, 1 - len(new | old) / 2), f"stray: {sorted(new | old)}")

    async def note(view: qn.EpisodeView[Zone]) -> qn.Score:
        """What a reviewer thinks of the report."""
        known = sorted({one.name for zone in (view.start.live, view.state.live) for one in zone.values()} - {"@"})
        said = await reviewer(view.answer, view.task.truth["names"], known, view.state.serial)
        found = re.findall(r"^SCORE: ([01]\.\d\d)$", said, re.MULTILINE)
        if not found:
            raise JudgeError(f"no score in {said!r}", kind="judge_unparseable")
        return qn.Score(float(found[0 if first else -1]), said)

    return qn.Verifier(qn.reward(published), qn.reward(untouched), qn.reward(note), combine="product")


def build(kind: type[Zone] = Zone, *, odd: bool = False, seed: str = "{0}/{1}", **dials: Any) -> qn.Environment[Zone]:
    """Puts an environment together."""

    def tasks(split: str) -> qn.Tasks[Zone]:
        count = {"train": 40, "test": 16}[split]
        return qn.Tasks(count, lambda n: task(kind, f"zonedesk/{seed.format(split, n)}", split, n, odd=odd))

    parts: dict[str, Any] = {"harness": qn.ToolLoop(), "config": qn.Config(max_turns=30), "splits": ("train", "test")}
    return qn.Environment("zonedesk", tasks=tasks, state=kind, verifier=verifier(**dials), **parts)


env = build()
env_prefix_repoint = build(PrefixZone)
env_zone_lock = build(LockedZone)
env_odd_numbers = build(odd=True)
env_same_seeds = build(seed="{1}")
env_first_score = build(first=True)
env_kept_rows = build(kept=True)
env_sampled_rows = build(sample=4)
