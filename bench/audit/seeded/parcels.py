"""A courier's desk: shipments with labels and scans, re-routing, pick-ups in slots, claims; a lock around each call.

The reward is the share of what the task should change, and nothing at all once anything else has changed. What should
become of each row, the verdict works out from the rows that the episode began with. Amounts are cents, times are UTC.
"""

from __future__ import annotations

import copy
import datetime as dt
import random
import threading
from typing import Any

from .common import FAULTS, BackendError, ToolError, World, facts_scored, rng
from .parcels_data import (
    BASE,
    EXCESS_CENTS,
    REROUTE_CENTS,
    TOOLS,
    TRANSIT,
    barcode,
    begun,
    claim_of,
    history,
    labelled,
    last_seen,
    pickup,
    price,
    shipment_of,
    slots,
    zone_of,
)
from .parcels_plans import claim_plan, label_plan, notes, reroute_plan, said, solution

Data = Any
Row = dict[str, Data]
Rows = dict[str, list[Row]]
Tables = dict[str, dict[str, Row]]
TABLES = ("shipments", "scans", "claims", "slots", "pickups")
NOTHING: Row = {"customer": None, "zone": None, "day": None}
CLAIM_DAYS, PAGE = 7, 10


def rerouted(row: Row, street: str, postcode: str) -> Row:
    """A shipment on its way to another address; what it costs more is added to its surcharge."""
    zones = [zone_of(one) for one in (row["postcode"], postcode)]
    before, after = (price(row["service"], row["weight_g"], zone, insured_cents=row["insured_cents"]) for zone in zones)
    cents = row["surcharge_cents"] + REROUTE_CENTS + max(0, after - before)
    where = {"street": street, "postcode": postcode, "barcode": barcode(row["id"], postcode)}
    return {**row, **where, "surcharge_cents": cents}


def settled(claim: Row, paid_cents: int) -> Row:
    return {**claim, "status": "paid" if paid_cents else "rejected", "paid_cents": paid_cents}


class Parcels(World):
    """One courier; a session of its own per instance, which several threads may call."""

    TOOLS = TOOLS
    KINDS = ("label", "reroute", "claim")
    shared = True
    graded = True
    budget = 30

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.RLock()
        self.tables: Tables = {table: {} for table in TABLES}
        self.initial: Tables = {}

    # --- tasks ---

    def tasks(self) -> list[str]:
        return [f"{kind}-{number}" for number in range(5) for kind in self.KINDS]

    def plan(self, task: str) -> Row:
        """Returns the plan of a task, the same under every seed: its rows, and those that filler must leave alone."""
        if task not in self.tasks():
            raise LookupError(f"no such task: {task!r}")
        kind, _, number = task.partition("-")
        make = {"label": label_plan, "reroute": reroute_plan, "claim": claim_plan}[kind]
        rows: Rows = {table: [] for table in TABLES} | {"slots": slots()}
        return {**NOTHING, "rows": rows, **make(rng("parcels", task), int(number), rows)}

    def prompt(self, task: str) -> str:
        return said(task, self.plan(task))

    def oracle(self, task: str) -> list[list[Data]] | None:
        return solution(task, self.plan(task))

    def hidden(self, task: str) -> list[str]:
        """Returns notes for checkers of the verdicts."""
        return notes(task, self.plan(task))

    def production(self) -> Row:
        dice, plan = rng("parcels", "production"), {**NOTHING, "rows": {"slots": slots()}}
        rows = Parcels().filler(dice, set(), plan, count=500)  # not of a session that may be made otherwise
        asked: list[Row] = [{"weight_g": grams, "postcode": "52100"} for grams in (40, 1000, 1001, 5000, 31500)]
        calls = [["quote_rate", one, self.rates(one["weight_g"], "52100", 0)] for one in asked]
        calls.append(["get_shipment", {"shipment_id": "SH1"}, {"error": "no such shipment: SH1"}])
        data = {**rows, "slots": slots()}
        tools = copy.deepcopy(list(TOOLS))
        return {"tools": tools, "data": data, "calls": calls, "rates": {"shipments.signature": 0.3}}

    # --- the episode ---

    def history(self, dice: random.Random, row: Row, taken: set[str], *, end: dt.datetime) -> list[Row]:
        return history(dice, row, taken, end=end)

    def left_alone(self, slot: Row, plan: Row) -> bool:
        """True if other people's pick-ups stay out of a slot, for the task's sake."""
        return (slot["zone"], slot["day"]) == (plan["zone"], plan["day"])

    def filler(self, dice: random.Random, taken: set[str], plan: Row, *, count: int = 200) -> Rows:
        """Other people's shipments, none of a namesake of the task's customer."""
        rows: Rows = {table: [] for table in TABLES if table != "slots"}
        spared, used = (plan["customer"] or "").casefold(), dict[str, int]()
        while len(rows["shipments"]) < count:
            row = shipment_of(dice, taken)
            if row["recipient"].strip().casefold() == spared:
                continue
            end = last_seen(dice, row["status"])
            scans = self.history(dice, row, taken, end=end)
            rows["shipments"].append({**row, "created": begun(dice, scans, end)})
            rows["scans"] += scans
            if row["status"] == "delivered" and dice.random() < 0.6:
                rows["claims"].append(claim_of(dice, row, taken, end=end))
            if row["status"] == "labelled" and dice.random() < 0.6:
                zone = zone_of(row["sender_postcode"])
                slot = dice.choice([one for one in plan["rows"]["slots"] if one["zone"] == zone])
                there = sum(one["slot_id"] == slot["id"] for one in plan["rows"].get("pickups", ()))
                if not self.left_alone(slot, plan) and there + used.get(slot["id"], 0) < slot["places"]:
                    used[slot["id"]] = used.get(slot["id"], 0) + 1
                    rows["pickups"].append(pickup(row["id"], slot["id"]))
        return rows

    def reset(self, task: str, seed: int) -> str:
        with self.lock:
            plan = self.plan(task)
            taken = {row["id"] for rows in plan["rows"].values() for row in rows}
            filler = self.filler(rng("parcels", task, seed), taken, plan)
            self.tables = {}
            for table in TABLES:
                rows = plan["rows"][table] + filler.get(table, [])
                self.tables[table] = {row["id"]: row for row in sorted(rows, key=lambda row: row["id"])}
            self.initial = copy.deepcopy(self.tables)
            self.task, self.fault = task, None
            return self.prompt(task)

    def call(self, name: str, arguments: Data) -> Data:
        with self.lock:
            return super().call(name, arguments)

    def state(self) -> Rows:
        with self.lock:
            return {table: [copy.deepcopy(rows[key]) for key in sorted(rows)] for table, rows in self.tables.items()}

    def snapshot(self) -> Data:
        with self.lock:
            return copy.deepcopy((self.task, self.tables, self.initial, self.fault))

    def restore(self, saved: Data) -> None:
        with self.lock:
            self.task, self.tables, self.initial, self.fault = copy.deepcopy(saved)

    def inject(self, fault: str) -> None:
        if fault not in FAULTS:
            raise ValueError(f"cannot inject {fault!r}")
        with self.lock:
            self.fault = fault

    # --- the tools ---

    def rows(self, table: str) -> dict[str, Row]:
        self.backend()
        return self.tables[table]

    def one(self, table: str, key: str) -> Row:
        rows = self.rows(table)
        if key not in rows:
            raise ToolError(f"no such {table[:-1]}: {key}")
        return rows[key]

    def _find_shipments(self, recipient: str, status: str, page: int) -> Data:
        found = [
            {name: row[name] for name in ("id", "recipient", "street", "postcode", "status")}
            for _, row in sorted(self.rows("shipments").items())
            if recipient.casefold() in row["recipient"].casefold() and status in {"any", row["status"]}
        ]
        shown = found[(page - 1) * PAGE : page * PAGE]
        return {"shipments": shown, "found": len(found), "pages": -(-len(found) // PAGE)}

    def _get_shipment(self, shipment_id: str) -> Data:
        row = self.one("shipments", shipment_id)
        claims = [claim for _, claim in sorted(self.tables["claims"].items()) if claim["shipment_id"] == shipment_id]
        booked = self.tables["pickups"].get(f"P{shipment_id[2:]}")
        return copy.deepcopy({**row, "claims": claims, "pickup": booked and booked["slot_id"]})

    def _get_tracking(self, shipment_id: str) -> Data:
        self.one("shipments", shipment_id)
        return {"scans": self.scans(shipment_id)}

    def scans(self, key: str) -> list[Row]:
        """The scans of a shipment, oldest first, without their ids."""
        found = [row for row in self.rows("scans").values() if row["shipment_id"] == key]
        found.sort(key=lambda row: (row["at"], row["id"]))
        return [{name: row[name] for name in ("at", "code", "depot", "note")} for row in found]

    def rates(self, weight_g: int, postcode: str, insured_cents: int) -> Data:
        zone = zone_of(postcode)
        return {
            "rates": [
                {
                    "service": service,
                    "cents": price(service, weight_g, zone, insured_cents=insured_cents),
                    "days": TRANSIT[service] + (zone >= 4),
                }
                for service in BASE
            ]
        }

    def _quote_rate(self, weight_g: int, postcode: str, insured_cents: int) -> Data:
        self.backend()
        return self.rates(weight_g, postcode, insured_cents)

    def _buy_label(self, shipment_id: str, service: str, insured_cents: int) -> Data:
        row = self.one("shipments", shipment_id)
        if row["status"] not in {"created", "labelled"}:
            raise ToolError(f"shipment {shipment_id} is {row['status']}")
        row |= labelled(row, service, insured_cents)
        return {"barcode": row["barcode"], "price_cents": row["price_cents"]}

    def _reroute(self, shipment_id: str, street: str, postcode: str) -> Data:
        row = self.one("shipments", shipment_id)
        street = " ".join(street.split())
        zone_of(postcode)
        if row["status"] not in {"labelled", "in_transit"}:
            raise ToolError(f"shipment {shipment_id} is {row['status']}")
        if not street or (street, postcode) == (" ".join(row["street"].split()), row["postcode"]):
            raise ToolError("that is the same address")
        row |= rerouted(row, street, postcode)
        return {"barcode": row["barcode"], "surcharge_cents": row["surcharge_cents"]}

    def free(self, slot: Row, *, but: str = "") -> int:
        """Returns the free places of a slot; the shipment `but` does not count."""
        booked = [row for row in self.tables["pickups"].values() if row["slot_id"] == slot["id"]]
        taken = sum(row["shipment_id"] != but for row in booked)
        places: int = slot["places"] - taken
        return places

    def _list_slots(self, postcode: str, day: str) -> Data:
        zone = zone_of(postcode)
        found = [row for row in self.rows("slots").values() if (row["zone"], row["day"]) == (zone, day)]
        found.sort(key=lambda row: row["start"])
        return {"slots": [{"id": row["id"], "start": row["start"], "free": self.free(row)} for row in found]}

    def _book_pickup(self, shipment_id: str, slot_id: str) -> Data:
        row, slot = self.one("shipments", shipment_id), self.one("slots", slot_id)
        if row["status"] != "labelled":
            raise ToolError(f"shipment {shipment_id} is {row['status']}, not labelled")
        if zone_of(row["sender_postcode"]) != slot["zone"]:
            raise ToolError(f"slot {slot_id} is of another zone than the sender's")
        if self.free(slot, but=shipment_id) < 1:
            raise ToolError(f"slot {slot_id} is full")
        booked = pickup(shipment_id, slot_id)
        self.tables["pickups"][booked["id"]] = booked
        return {"pickup_id": booked["id"]}

    def _settle_claim(self, claim_id: str, decision: str, paid_cents: int) -> Data:
        claim = self.one("claims", claim_id)
        if claim["status"] != "open":
            raise ToolError(f"claim {claim_id} is {claim['status']} already")
        if (decision == "pay") != (paid_cents > 0) or paid_cents > claim["claimed_cents"]:
            raise ToolError(f"pay 1 to {claim['claimed_cents']} cents, or reject with 0")
        claim |= settled(claim, paid_cents)
        return {"status": claim["status"]}

    # --- the verdict ---

    def day_of(self, at: str) -> dt.date:
        return dt.date.fromisoformat(at[:10])

    def payable(self, claim: Row) -> int:
        """Returns the amount due for a claim, in cents, as the episode began."""
        scans = [row for row in self.initial["scans"].values() if row["shipment_id"] == claim["shipment_id"]]
        delivered = [self.day_of(row["at"]) for row in scans if row["code"] == "delivered"]
        filed = dt.date.fromisoformat(claim["filed"])
        counts = any((filed - day).days <= CLAIM_DAYS for day in delivered)
        if claim["kind"] == "loss":
            counts = not delivered
        insured: int = self.initial["shipments"][claim["shipment_id"]]["insured_cents"]
        claimed: int = claim["claimed_cents"]
        return max(0, min(claimed, insured) - EXCESS_CENTS) if counts else 0

    def expected(self, task: str) -> Tables:
        """The tables as the task should leave them."""
        plan, tables = self.plan(task), copy.deepcopy(self.initial)
        shipments, claims = tables["shipments"], tables["claims"]
        if task.startswith("label"):
            key = plan["key"]
            shipments[key] = labelled(shipments[key], plan["service"], plan["insured"])
            booked = pickup(key, plan["slot"])
            tables["pickups"][booked["id"]] = booked
        for key in plan.get("moving", ()):
            shipments[key] = rerouted(shipments[key], **plan["new"])
        for _, key, _ in plan.get("decisions", ()):
            claims[key] = settled(claims[key], self.payable(claims[key]))
        return tables

    def facts(self, tables: Tables) -> Row:
        found: Row = {f"{table[:-1]} {key}": row for table in TABLES[:4] for key, row in tables[table].items()}
        return found | {f"pickup of {row['shipment_id']}": row["slot_id"] for row in tables["pickups"].values()}

    def score(self) -> float | None:
        with self.lock:
            if self.task is None:
                return None
            try:
                self.backend()
            except BackendError:
                return None
            before, after = self.facts(self.initial), self.facts(self.tables)
            expected = self.facts(self.expected(self.task))
            wanted = {name: value for name, value in expected.items() if before.get(name) != value}
            return self.verdict(before, after, wanted)

    def verdict(self, before: Row, after: Row, wanted: Row) -> float:
        done, damage = facts_scored(before, after, wanted)
        return 0.0 if damage else len(done) / len(wanted)
