"""Data of the courier's desk of `parcels.py`: its tariff, its shipments as production has them, its tools."""

from __future__ import annotations

import bisect
import datetime as dt
import random
from typing import Any

from .common import ToolError, choice, fresh, integer, name_of, optional, rng, text, tool, weighted

Data = Any
Row = dict[str, Data]
NOW = dt.datetime(2031, 5, 12, 8, 0)  # noqa: DTZ001  # the world's own clock, always UTC
DAYS = ("2031-05-13", "2031-05-14", "2031-05-15", "2031-05-16", "2031-05-19")
STARTS = ("08:00", "10:30", "13:00", "16:00")
ZONES = {"1": 1, "2": 1, "3": 2, "4": 2, "5": 3, "6": 3, "7": 4, "8": 4, "9": 5}
BANDS_G = (250, 1000, 2000, 5000, 10000, 31500)
BASE = {
    "economy": (390, 450, 560, 690, 890),
    "standard": (590, 650, 790, 990, 1290),
    "express": (1290, 1390, 1590, 1890, 2390),
}
STEP = {"economy": 110, "standard": 140, "express": 260}
TRANSIT = {"economy": 5, "standard": 3, "express": 1}
REROUTE_CENTS, EXCESS_CENTS, CLAIM_DAYS = 350, 2500, 7
ROUTES = {
    "created": (),
    "labelled": (),
    "in_transit": ("picked_up", "at_depot", "departed"),
    "out_for_delivery": ("picked_up", "at_depot", "departed", "at_depot", "out_for_delivery"),
    "delivered": ("picked_up", "at_depot", "departed", "at_depot", "out_for_delivery", "delivered"),
    "returned": ("picked_up", "at_depot", "out_for_delivery", "not_met", "returned"),
}
STREETS = (
    "Hauptstr. 12a", "12 Rue de l'Église", "c/o Meyer, Am Bühl 3", "Calle Ñuñoa 77, 4º B", "FLAT 2, 18 HIGH ST",
    "ul. Świętej Anny 9/11", "Postfach 204", "Storgatan 5", "unit 7, dock gate 3", "Ελευθερίας 41", "Kirchweg  8",
)  # fmt: skip
SENDERS = (
    ("Buchhandlung Löw", 25), ("ACME Parts Ltd.", 20), ("acme parts ltd", 5), ("Ünlü Tekstil", 14), ("Vélo & Cie", 12),
    ("Etsy seller 88", 10), ("J. Doe (private)", 8), ("株式会社ミナト", 6),
)  # fmt: skip
NOTES = (("", 80), ("locker", 8), ("left with neighbour", 6), ("rain!!", 3), ("n/a", 3))
COMPLAINTS = (
    "box crushed, see photo",
    "kaputt!!!",
    "",
    "where is it???",
    "screen cracked",
    "still not here",
    "écran cassé",
)
DEPOTS = (("HUB-1", 40), ("HUB-2", 30), ("hub-2", 4), ("NORD", 16), ("ÖST", 10))


def zone_of(postcode: str) -> int:
    """Returns the zone of a postcode, 1 to 5.

    Raises:
        ToolError: The postcode is malformed or outside all zones.
    """
    if not (len(postcode) == 5 and postcode.isascii() and postcode.isdigit()):
        raise ToolError("a postcode has five digits")
    if postcode[0] not in ZONES:
        raise ToolError(f"we do not drive to {postcode}")
    return ZONES[postcode[0]]


def price(service: str, weight_g: int, zone: int, *, insured_cents: int) -> int:
    """Cents; a band of weight ends with its last gram, insurance costs a cent for each 100 begun."""
    band = bisect.bisect_left(BANDS_G, weight_g)
    return BASE[service][zone - 1] + STEP[service] * band + (insured_cents + 99) // 100


def barcode(key: str, postcode: str) -> str:
    """The postcode that a parcel is carried to, its number, and a check digit."""
    digits = postcode + key[2:]
    return digits + str(-sum(int(digit) * (3, 1)[place % 2] for place, digit in enumerate(digits)) % 10)


def stamp(moment: dt.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%MZ")


def postcode_of(dice: random.Random, zone: int | None = None) -> str:
    first = dice.choice([digit for digit, one in ZONES.items() if zone in {None, one}])
    return f"{first}{dice.randrange(10**4):04d}"


def shipment_of(dice: random.Random, taken: set[str], **fixed: Data) -> Row:
    """A shipment; without a label it has no service, price and barcode yet."""
    row: Row = {
        "id": fresh(dice, "SH", taken),
        "sender": weighted(dice, SENDERS),
        "sender_postcode": postcode_of(dice),
        "recipient": name_of(dice),
        "street": dice.choice(STREETS),
        "postcode": postcode_of(dice),
        "weight_g": min(30 + int(dice.lognormvariate(7, 1.1)), BANDS_G[-1]),
        "signature": dice.random() < 0.3,
        "service": weighted(dice, [("economy", 50), ("standard", 38), ("express", 12)]),
        "insured_cents": 0 if dice.random() < 0.6 else 100 * int(dice.lognormvariate(5, 0.9)),
        "surcharge_cents": int(weighted(dice, [("0", 94), ("350", 5), ("460", 1)])),
        "status": weighted(
            dice,
            [
                ("created", 14),
                ("labelled", 26),
                ("in_transit", 20),
                ("out_for_delivery", 5),
                ("delivered", 32),
                ("returned", 3),
            ],
        ),
        **fixed,
    }
    if row["status"] == "created":
        row |= {"service": None, "insured_cents": 0, "surcharge_cents": 0}
        return {**row, "price_cents": None, "barcode": None}
    return labelled(row, row["service"], row["insured_cents"]) | {"status": row["status"]}


def labelled(row: Row, service: str, insured_cents: int) -> Row:
    """A shipment with its label."""
    cents = price(service, row["weight_g"], zone_of(row["postcode"]), insured_cents=insured_cents)
    code = barcode(row["id"], row["postcode"])
    bought = {"service": service, "insured_cents": insured_cents, "price_cents": cents, "barcode": code}
    return {**row, **bought, "status": "labelled"}


def history(dice: random.Random, row: Row, taken: set[str], *, end: dt.datetime) -> list[Row]:
    """The scans of a shipment, the last of them at `end`."""
    rows: list[Row] = []
    for code in reversed(ROUTES[row["status"]]):
        rows.append({
            "id": fresh(dice, "N", taken),
            "shipment_id": row["id"],
            "at": stamp(end),
            "code": code,
            "depot": None if dice.random() < 0.06 else weighted(dice, DEPOTS),
            "note": weighted(dice, NOTES),
        })  # fmt: skip
        end -= dt.timedelta(minutes=40 + int(dice.expovariate(1 / 400)))
    return rows[::-1]


def last_seen(dice: random.Random, status: str) -> dt.datetime:
    """Returns the time of the last scan or announcement of a shipment of a status."""
    minutes = {"out_for_delivery": (10, 100), "in_transit": (60, 2400), "delivered": (200, 40000)}
    return NOW - dt.timedelta(minutes=dice.randrange(*minutes.get(status, (200, 4000))))


def begun(dice: random.Random, scans: list[Row], end: dt.datetime) -> str:
    """The day on which a shipment was announced: that of its first scan, or the one before."""
    first = dt.date.fromisoformat(scans[0]["at"][:10]) if scans else end.date()
    return str(first - dt.timedelta(days=dice.randrange(2)))


def claim_of(dice: random.Random, row: Row, taken: set[str], *, end: dt.datetime) -> Row:
    """A claim for a shipment that was delivered at `end`, decided or not."""
    filed = min(end + dt.timedelta(days=dice.randrange(9)), NOW)
    claimed = 100 * int(dice.lognormvariate(4.7, 0.8)) + dice.choice((0, 0, 0, 50, 99))
    paid = max(0, min(claimed, row["insured_cents"]) - EXCESS_CENTS)
    opened = dice.random() < 0.4
    return {
        "id": fresh(dice, "C", taken),
        "shipment_id": row["id"],
        "kind": weighted(dice, [("damage", 85), ("loss", 15)]),
        "claimed_cents": claimed,
        "filed": str(filed.date()),
        "words": dice.choice(COMPLAINTS),
        "status": "open" if opened else "paid" if paid else "rejected",
        "paid_cents": None if opened else paid,
    }


def slots() -> list[Row]:
    """The pick-up slots of the next days, the same in each episode."""
    dice = rng("parcels", "slots")
    return [
        {"id": f"L{day[5:7]}{day[8:]}-{zone}-{start[:2]}", "day": day, "start": start, "zone": zone,
         "places": dice.randrange(2, 5)}
        for day in DAYS for zone in sorted(set(ZONES.values())) for start in STARTS
    ]  # fmt: skip


def pickup(key: str, slot_id: str) -> Row:
    return {"id": f"P{key[2:]}", "shipment_id": key, "slot_id": slot_id}


SHIPMENT = text("Its id, such as SH123456.", 20)
POSTCODE = text("Five digits.", 5)
INSURED = optional(integer("What it is insured for, in cents.", 0, 500000), 0)
TOOLS = (
    tool(
        "find_shipments",
        "Find shipments by a part of the recipient's name, in upper or lower case; ten a page, ordered by id.",
        recipient=optional(text("A part of the name; an empty text finds all.", 80), ""),
        status=optional(choice("Only of this status.", "any", *ROUTES), "any"),
        page=optional(integer("Which page; the first is 1.", 1, 1000), 1),
    ),
    tool(
        "get_shipment",
        "Show a shipment, its claims and the slot of its pick-up. A barcode begins with the postcode that the parcel "
        "is carried to.",
        shipment_id=SHIPMENT,
    ),
    tool("get_tracking", "Show the scans of a shipment, oldest first; times are UTC.", shipment_id=SHIPMENT),
    tool(
        "quote_rate",
        "Tell what each service costs to a postcode, in cents, and how many working days it takes.",
        weight_g=integer("Grams.", 1, BANDS_G[-1]),
        postcode=POSTCODE,
        insured_cents=INSURED,
    ),
    tool(
        "buy_label",
        "Buy the label of a shipment that is not picked up yet; an earlier label of it is void and paid back.",
        shipment_id=SHIPMENT,
        service=choice("Which.", *BASE),
        insured_cents=INSURED,
    ),
    tool(
        "reroute",
        "Send a labelled shipment, or one in transit, to another address of its recipient. Each time costs 350 cents "
        "and what the new zone costs more than the old one.",
        shipment_id=SHIPMENT,
        street=text("Street and number.", 80),
        postcode=POSTCODE,
    ),
    tool(
        "list_slots",
        "Show the pick-up slots for a sender's postcode on a day, earliest first, and the free places of each.",
        postcode=POSTCODE,
        day=choice("When.", *DAYS),
    ),
    tool(
        "book_pickup",
        "Have a labelled shipment picked up in a slot of its sender's zone; a pick-up that it has already is moved.",
        shipment_id=SHIPMENT,
        slot_id=text("The slot's id, such as L0513-1-08.", 20),
    ),
    tool(
        "settle_claim",
        "Pay an open claim, at most what is claimed, or reject it; this is final.",
        claim_id=text("Its id, such as C123456.", 20),
        decision=choice("Which.", "pay", "reject"),
        paid_cents=integer("How much; 0 where it is rejected.", 0, 1000000),
    ),
)
