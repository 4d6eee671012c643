"""Plans of the tasks of `parcels.py`: the rows that they need, their prompts and their solutions."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

from .common import name_of
from .parcels_data import (
    BANDS_G,
    BASE,
    DAYS,
    EXCESS_CENTS,
    NOW,
    STREETS,
    begun,
    claim_of,
    history,
    last_seen,
    pickup,
    postcode_of,
    price,
    shipment_of,
    zone_of,
)

Data = Any
Row = dict[str, Data]
Rows = dict[str, list[Row]]
CASES = (("over", "late"), ("edge", "found"), ("under", "lost"), ("small", "over", "edge"), ("late", "under", "lost"))
FILED_DAYS = {"over": 2, "under": 5, "late": 8, "edge": 7, "small": 3, "found": 4, "lost": 12}
REFUSED = ("late", "found", "small")
CLAIM_RULES = (
    "A claim for damage counts if it was filed at most 7 days after the date (UTC) of the scan that says delivered, a "
    "claim for loss if no scan says delivered. What counts is paid: the smaller of what is claimed and what the "
    "shipment is insured for, less 2500 cents. Reject, with 0 cents, a claim that does not count or of which nothing "
    "would remain."
)


def label_plan(dice: random.Random, number: int, rows: Rows) -> Row:
    """Slots before the right one are full, and the right one has one place left."""
    taken = set[str]()
    weight = {"weight_g": BANDS_G[number]} if number % 2 else {}
    row = shipment_of(dice, taken, status="created", created=str(NOW.date()), **weight)
    service, insured = list(BASE)[(number + 1) % 3], 100 * dice.randrange(50, 900) * (number != 4)
    cents = price(service, row["weight_g"], zone_of(row["postcode"]), insured_cents=insured)
    day, zone = dice.choice(DAYS), zone_of(row["sender_postcode"])
    rows["shipments"].append(row)
    there = [slot for slot in rows["slots"] if (slot["day"], slot["zone"]) == (day, zone)]
    for place, slot in enumerate(there):
        free = 0 if place < number % 4 else 1 if place == number % 4 else dice.randrange(1, slot["places"] + 1)
        for _ in range(slot["places"] - free):
            sender = {"sender_postcode": postcode_of(dice, zone)}
            other = shipment_of(dice, taken, status="labelled", created=str(NOW.date()), **sender)
            rows["shipments"].append(other)
            rows["pickups"].append(pickup(other["id"], slot["id"]))
    asked = {"key": row["id"], "service": service, "insured": insured, "limit": cents + dice.randrange(100)}
    return {**asked, "row": row, "slot": there[number % 4]["id"], "day": day, "zone": zone}


def reroute_plan(dice: random.Random, number: int, rows: Rows) -> Row:
    """Some shipments of a customer can still be sent elsewhere; a namesake's must not."""
    taken, name = set[str](), name_of(dice).strip()
    old = {"street": dice.choice(STREETS), "postcode": postcode_of(dice)}
    other = {"street": dice.choice([one for one in STREETS if one != old["street"]]), "postcode": postcode_of(dice)}
    late = ("in_transit", "out_for_delivery") if number % 2 else ("delivered",)
    moving: list[str] = []
    for status in ("labelled", "in_transit", *late, "namesake"):
        end = last_seen(dice, "in_transit" if status == "namesake" else status)
        typed = dice.choice((name, name, name.upper(), name.lower(), f"{name} "))
        fixed = {"status": "in_transit", **other} if status == "namesake" else {"status": status, **old}
        row = shipment_of(dice, taken, recipient=typed, **fixed)
        scans = history(dice, row, taken, end=end)
        rows["shipments"].append({**row, "created": begun(dice, scans, end)})
        rows["scans"] += scans
        if status in {"labelled", "in_transit"}:
            moving.append(row["id"])
    new = {"street": f"Neue Gasse {dice.randrange(1, 200)}", "postcode": postcode_of(dice)}
    return {"customer": name, "old": old, "new": new, "moving": moving}


def claim_plan(dice: random.Random, number: int, rows: Rows) -> Row:
    taken, decisions = set[str](), list[tuple[str, str, int]]()
    for case in CASES[number]:
        clock = {"late": (20, 40), "edge": (6, 10)}.get(case, (9 + dice.randrange(8), dice.randrange(60)))
        day = NOW - dt.timedelta(days=dice.randrange(13, 19))
        end = day.replace(hour=clock[0], minute=clock[1])
        insured = 100 * dice.randrange(120, 600)
        claimed = {"over": insured + dice.randrange(100, 9000), "small": dice.randrange(900, EXCESS_CENTS + 1)}
        status = "in_transit" if case == "lost" else "delivered"
        row = shipment_of(dice, taken, status=status, insured_cents=insured)
        scans = history(dice, row, taken, end=end)
        claim = claim_of(dice, row, taken, end=end) | {
            "kind": "loss" if case in {"lost", "found"} else "damage",
            "claimed_cents": claimed.get(case, insured - dice.randrange(50, 5000)),
            "filed": str((end + dt.timedelta(days=FILED_DAYS[case])).date()),
            "status": "open",
            "paid_cents": None,
        }
        rows["shipments"].append({**row, "created": begun(dice, scans, end)})
        rows["scans"] += scans
        rows["claims"].append(claim)
        paid = 0 if case in REFUSED else min(insured, claim["claimed_cents"]) - EXCESS_CENTS
        decisions.append((row["id"], claim["id"], paid))
    return {"decisions": decisions}


def said(task: str, plan: Row) -> str:
    """Returns the prompt of a task."""
    if task.startswith("label"):
        insured = f"insured for {plan['insured']} cents" if plan["insured"] else "without insurance"
        included = ", insurance included" if plan["insured"] else ""
        return (
            f"Shipment {plan['key']} waits at its sender's. Buy its label, {insured}, for the fastest service that "
            f"costs at most {plan['limit']} cents{included}. Then have it picked up on {plan['day']}, in "
            "the earliest slot with a free place."
        )
    if task.startswith("reroute"):
        old, new = (f"{where['street']}, {where['postcode']}" for where in (plan["old"], plan["new"]))
        return (
            f"{plan['customer']} has moved from {old} to {new}. Send there each shipment to the old address that is "
            "labelled or in transit; leave all others, and those of people of the same name elsewhere."
        )
    keys = ", ".join(key for key, _, _ in plan["decisions"])
    return f"Settle the open claims of the shipments {keys}. {CLAIM_RULES}"


def solution(task: str, plan: Row) -> list[list[Data]] | None:
    """The calls that do it."""
    calls: list[list[Data]] = []
    if task.startswith("label"):
        key, row = {"shipment_id": plan["key"]}, plan["row"]
        insured = {"insured_cents": plan["insured"]}
        return [
            ["get_shipment", key],
            ["quote_rate", {"weight_g": row["weight_g"], "postcode": row["postcode"], **insured}],
            ["buy_label", {**key, "service": plan["service"], **insured}],
            ["list_slots", {"postcode": row["sender_postcode"], "day": plan["day"]}],
            ["book_pickup", {**key, "slot_id": plan["slot"]}],
        ]
    if task.startswith("reroute"):
        moves = [["reroute", {"shipment_id": key, **plan["new"]}] for key in plan["moving"]]
        return [["find_shipments", {"recipient": plan["customer"]}], *moves]
    for key, claim, paid in plan["decisions"]:
        calls += [["get_shipment", {"shipment_id": key}], ["get_tracking", {"shipment_id": key}]]
        decision = {"decision": "pay" if paid else "reject", "paid_cents": paid}
        calls.append(["settle_claim", {"claim_id": claim, **decision}])
    return calls


def notes(task: str, plan: Row) -> list[str]:
    """Returns notes for checkers of the verdicts."""
    if task.startswith("label"):
        return [f"{plan['key']} goes by {plan['service']} and is picked up in {plan['slot']}"]
    if task.startswith("reroute"):
        return [f"{' and '.join(plan['moving'])} move to {plan['new']['postcode']}"]
    return [f"{claim} is assessed at {paid} cents" for _, claim, paid in plan["decisions"]]
