"""The service desk of an airline: what a customer asks for is done as far as a written policy allows it."""

from __future__ import annotations

import copy
import itertools
import threading
from typing import Any

from .common import ToolError, checked, choice, fresh, integer, name_of, rng, text, tool, weighted

Data = Any
AIRPORTS, CABINS = ("AMS", "BCN", "CPH", "LIS", "OSL", "VIE"), ("basic", "economy", "business")
DAYS = tuple(f"2031-05-{day}" for day in range(11, 17))
POLICY = """You serve the customers of an airline. It is 09:00 on 2031-05-12. The policy:
1. A reservation that was booked less than 24 hours ago, or in business, may be cancelled with a refund of all that was
   paid. Any other that is insured may be cancelled with a refund of all that was paid less 30 for each passenger. No
   other reservation may be cancelled.
2. A reservation may be moved to another flight of its route that has seats, except in basic. The tool settles fares.
3. Each passenger has 0 free bags in basic, 1 in economy and 2 in business, and one more if the customer is gold. Every
   other bag costs 50.
4. For a delayed flight a customer who is gold or flew in business gets a voucher of 80 for each passenger.
Tools do not check the policy. Do what the customer asks and the policy allows, and nothing else: only if the records
are in the end just as they should be, the reward is 1; else it is 0."""
CASES: dict[str, tuple[str, list[dict[str, Data]]]] = {
    "cancel-new": ("Please cancel {0} and refund me.", [{"booked": "2031-05-11T15:40", "insured": False}]),
    "cancel-business": ("I can't travel. Cancel {0}, with a refund.", [{"cabin": "business", "insured": False}]),
    "cancel-insured": ("I am ill, so I want to cancel {0} and get back what I am due.", [{"insured": True}]),
    "cancel-which": ("Cancel those of my trips that you may cancel and refund what I am due; leave the others.",
                     [{"booked": "2031-05-11T19:05"}, {"insured": True}, {"insured": False}]),
    "cancel-else": ("Cancel {0} and refund it. If you may not, move it to its day's last flight with seats for us.",
                    [{"insured": False, "hour": "06"}]),
    "change-cheap": ("Move {0} to the cheapest flight on 2031-05-16 that has seats for us.", [{}, {}]),
    "change-bags": ("Move {0} to the cheapest flight on 2031-05-15 with seats for us; we bring {1} bags in all.", [{}]),
    "bags": ("We shall bring {1} bags in all on {0}. Only charge what you must.", [{"cabin": "business"}, {}]),
    "delayed": ("My flight with {0} was late. Give me what I am owed.", [{"cabin": "business", "day": DAYS[0]}, {}]),
}  # fmt: skip
RESERVATION, CUSTOMER = text("The id of a reservation.", 20), text("The id of a customer.", 20)


def add_customer(db: Data, dice: Data, taken: set[str]) -> str:
    key, name = fresh(dice, "C", taken), name_of(dice)
    tier = weighted(dice, [("regular", 6), ("silver", 3), ("gold", 1)])
    email = None if dice.random() < 0.2 else f"{key.lower()}@post.example"
    db["customers"][key] = {"customer_id": key, "name": name, "tier": tier, "email": email}
    return key


def add_reservation(db: Data, dice: Data, taken: set[str], customer: str, case: Data) -> str:
    day, people = case.get("day", dice.choice(DAYS[2:4])), dice.choice((1, 1, 2, 2, 3))
    cabin = case.get("cabin", "economy" if case else dice.choice(CABINS[1:]))
    moment = f"{day}T{case.get('hour', '')}"
    flights = [one for one in db["flights"].values() if one["departs"].startswith(moment) and one["seats"][cabin] > 0]
    flight, key = dice.choice(flights), fresh(dice, "R", taken)
    if "day" in case:
        flight["status"] = "delayed"
    fare = flight["price"][cabin] - dice.randrange(25)
    booked = case.get("booked", f"2031-04-{dice.randrange(10, 31)}T{dice.randrange(7, 23):02}:{dice.randrange(60):02}")
    insured = case.get("insured", dice.random() < 0.3)
    db["reservations"][key] = {
        "reservation_id": key, "customer_id": customer, "flight_id": flight["flight_id"], "cabin": cabin, "fare": fare,
        "passengers": people, "bags": dice.randrange(people + 1), "insured": insured, "booked": booked,
        "status": "active",
    }  # fmt: skip
    db["payments"].append({"reservation_id": key, "amount": fare * people, "reason": "booking"})
    return key


def build(name: str, seed: int) -> tuple[Data, str, list[str]]:
    """The records, the customer who calls, and his reservations; the seed decides on everybody else."""
    dice, taken = rng("plain_flights", name), set[str]()
    db: Data = {"flights": {}, "customers": {}, "reservations": {}, "payments": [], "vouchers": []}
    for start, end in dice.sample([*itertools.permutations(AIRPORTS, 2)], 3):
        for day in DAYS:
            for price, hour in zip(dice.sample(range(61, 240), 4), (6, 10, 14, 19), strict=True):
                departs = f"{day}T{hour:02}:{dice.randrange(12) * 5:02}"
                departed, late = departs < "2031-05-12T09", dice.random() < 0.3
                key, status = fresh(dice, "QA", taken), ("scheduled", "delayed" if late else "flown")[departed]
                seats = {cabin: dice.choice((0, 1, 3, 4, 9, 17)) for cabin in CABINS}
                seats |= {"economy": 9} if hour in (6, 14) else {"business": 5} if hour == 10 else {}
                prices = {"basic": price - 15, "economy": price, "business": price * 3 + 40}
                db["flights"][key] = {"flight_id": key, "origin": start, "destination": end, "departs": departs,
                                      "status": status, "seats": seats, "price": prices}  # fmt: skip
    hero = add_customer(db, dice, taken)
    own = [add_reservation(db, dice, taken, hero, case) for case in CASES.get(name, ("", []))[1]]
    others = rng("plain_flights", name, seed)
    for _ in range(24):
        add_reservation(db, others, taken, add_customer(db, others, taken), {})
    return db, hero, own


class Flights:
    """A session; several agents may work in it at once."""

    shared = True
    task: str | None = None
    TOOLS = (
        tool("get_customer", "Show a customer, and the ids of his reservations.", customer_id=CUSTOMER),
        tool("get_reservation", "Show a reservation, its flight and its payments.", reservation_id=RESERVATION),
        tool("find_flights", "List the flights of a route on a day, with free seats and price by cabin.",
             origin=choice("From.", *AIRPORTS), destination=choice("To.", *AIRPORTS), day=choice("When.", *DAYS)),
        tool("change_flight", "Move a reservation to another flight of its route. The difference of the fares is paid.",
             reservation_id=RESERVATION, flight_id=text("The new flight's id.", 20)),
        tool("add_bags", "Set how many bags a reservation has in all, and charge 50 for each one of `charged`.",
             reservation_id=RESERVATION, total=integer("Bags in all.", 1, 20), charged=integer("To be paid.", 0, 20)),
        tool("cancel_reservation", "Cancel a reservation whose flight has not departed, and pay a refund.",
             reservation_id=RESERVATION, refund=integer("How much is paid back.", 0, 100_000)),
        tool("send_voucher", "Give a voucher to the customer of a reservation.",
             reservation_id=RESERVATION, amount=integer("Its worth.", 1, 1000)),
    )  # fmt: skip

    def __init__(self) -> None:
        self.lock: Any = threading.RLock()

    def tasks(self) -> list[Data]:
        return [{"id": name} for name in CASES]

    def tools(self) -> list[Data]:
        return copy.deepcopy(list(self.TOOLS))

    def reset(self, task: Data, seed: int) -> str:
        with self.lock:
            self.task = task["id"]
            self.db, hero, own = build(task["id"], seed)
            for name, arguments in self.oracle(task):
                self.call(name, arguments)
            self.goal = self.records()
            self.db = build(task["id"], seed)[0]
            asked = CASES[task["id"]][0].format(own[0], self.bags(own[0]))
        return f"{POLICY}\n\nCustomer {hero} writes: {asked}"

    def bags(self, key: str) -> int:
        return int(self.db["reservations"][key]["passengers"]) * 3 + 1

    def records(self) -> Data:
        """Returns all records; the order of payments does not matter."""
        with self.lock:
            lists = {table: sorted(self.db[table], key=repr) for table in ("payments", "vouchers")}
            return copy.deepcopy({**self.db, **lists})

    def score(self) -> Data:
        return None if self.task is None else float(self.records() == self.goal)

    def call(self, name: str, arguments: Data) -> Data:
        schema = next((one["parameters"] for one in self.TOOLS if one["name"] == name), None)
        if self.task is None or schema is None:
            return {"error": "no such tool, or no episode yet"}
        try:
            with self.lock:
                return getattr(self, name)(**checked(schema, arguments))
        except ToolError as error:
            return {"error": str(error)}

    def one(self, table: str, key: str) -> Data:
        if key not in self.db[table]:
            raise ToolError(f"no {key!r} among the {table}")
        return self.db[table][key]

    def active(self, key: str) -> Data:
        """A reservation that can still be changed."""
        booking = self.one("reservations", key)
        if booking["status"] != "active" or self.db["flights"][booking["flight_id"]]["status"] != "scheduled":
            raise ToolError(f"{key} is cancelled, or its flight has departed")
        return booking

    def pay(self, key: str, amount: int, reason: str) -> None:
        self.db["payments"].append({"reservation_id": key, "amount": amount, "reason": reason})

    def get_customer(self, customer_id: str) -> Data:
        customer = self.one("customers", customer_id)
        own = [key for key, one in self.db["reservations"].items() if one["customer_id"] == customer_id]
        return {**customer, "reservations": own}

    def get_reservation(self, reservation_id: str) -> Data:
        booking = self.one("reservations", reservation_id)
        paid = [{**one} for one in self.db["payments"] if one["reservation_id"] == reservation_id]
        return {**booking, "flight": copy.deepcopy(self.db["flights"][booking["flight_id"]]), "payments": paid}

    def find_flights(self, origin: str, destination: str, day: str) -> Data:
        wanted = (origin, destination, day)
        rows = self.db["flights"].values()
        found = [one for one in rows if (one["origin"], one["destination"], one["departs"][:10]) == wanted]
        return {"flights": copy.deepcopy(found)}

    def change_flight(self, reservation_id: str, flight_id: str) -> Data:
        booking, new = self.active(reservation_id), self.one("flights", flight_id)
        old, cabin, people = self.db["flights"][booking["flight_id"]], booking["cabin"], booking["passengers"]
        if new is old or (new["origin"], new["destination"]) != (old["origin"], old["destination"]):
            raise ToolError("it is the flight that is booked, or one of another route")
        if new["status"] != "scheduled" or new["seats"][cabin] < people:
            raise ToolError(f"{flight_id} has departed, or has too few seats in {cabin}")
        due = (new["price"][cabin] - booking["fare"]) * people
        old["seats"][cabin] += people
        new["seats"][cabin] -= people
        booking |= {"flight_id": flight_id, "fare": new["price"][cabin]}
        self.pay(reservation_id, due, "change")
        return {"reservation_id": reservation_id, "flight_id": flight_id, "paid": due}

    def add_bags(self, reservation_id: str, total: int, charged: int) -> Data:
        booking = self.active(reservation_id)
        if not charged <= total - booking["bags"] or total <= booking["bags"]:
            raise ToolError(f"{reservation_id} has {booking['bags']} bags; only further ones can be added and charged")
        booking["bags"] = total
        if charged:
            self.pay(reservation_id, 50 * charged, "bags")
        return {"reservation_id": reservation_id, "bags": total, "paid": 50 * charged}

    def cancel_reservation(self, reservation_id: str, refund: int) -> Data:
        booking = self.active(reservation_id)
        paid = sum(one["amount"] for one in self.db["payments"] if one["reservation_id"] == reservation_id)
        if refund > paid:
            raise ToolError(f"only {paid} was paid for {reservation_id}")
        self.db["flights"][booking["flight_id"]]["seats"][booking["cabin"]] += booking["passengers"]
        booking["status"] = "cancelled"
        self.pay(reservation_id, -refund, "refund")
        return {"reservation_id": reservation_id, "status": "cancelled", "refunded": refund}

    def send_voucher(self, reservation_id: str, amount: int) -> Data:
        customer = self.one("reservations", reservation_id)["customer_id"]
        self.db["vouchers"].append({"customer_id": customer, "reservation_id": reservation_id, "amount": amount})
        return {"customer_id": customer, "voucher": amount}

    def oracle(self, task: Data) -> list[Data]:
        db, hero, own = build(task["id"], 0)
        kind, first = task["id"], db["reservations"][own[0]]
        cabin, people = first["cabin"], first["passengers"]
        paid = {one["reservation_id"]: one["amount"] for one in db["payments"]}
        calls: list[Data] = [["get_customer", {"customer_id": hero}], ["get_reservation", {"reservation_id": own[0]}]]
        if kind.startswith("cancel") and kind != "cancel-else":
            fees = [30 * db["reservations"][key]["passengers"] * (kind == "cancel-insured" or place == 1)
                    for place, key in enumerate(own[:2])]  # fmt: skip
            return calls + [["cancel_reservation", {"reservation_id": key, "refund": paid[key] - fee}]
                            for key, fee in zip(own, fees, strict=False)]  # fmt: skip
        if kind == "delayed":
            return [*calls, ["send_voucher", {"reservation_id": own[0], "amount": 80 * people}]]
        if kind != "bags":
            old = db["flights"][first["flight_id"]]
            day = {"cancel-else": old["departs"][:10], "change-cheap": DAYS[5], "change-bags": DAYS[4]}[kind]
            free = [one for one in db["flights"].values()
                    if (one["origin"], one["destination"]) == (old["origin"], old["destination"])
                    and one["departs"].startswith(day) and one["seats"][cabin] >= people]  # fmt: skip
            new = max(free, key=lambda one: one["departs"]) if kind == "cancel-else" else min(
                free, key=lambda one: one["price"][cabin])  # fmt: skip
            calls.append(["change_flight", {"reservation_id": own[0], "flight_id": new["flight_id"]}])
        if "bags" in kind:
            total = people * 3 + 1
            free_bags = people * (CABINS.index(cabin) + (db["customers"][hero]["tier"] == "gold"))
            calls.append(["add_bags", {"reservation_id": own[0], "total": total, "charged": total - free_bags}])
        return calls

    def state(self) -> Data:
        records = self.records()
        return records | {table: [*records[table].values()] for table in ("flights", "customers", "reservations")}

    def snapshot(self) -> Data:
        with self.lock:
            return copy.deepcopy((self.task, self.db, self.goal))

    def restore(self, saved: Data) -> None:
        with self.lock:
            self.task, self.db, self.goal = copy.deepcopy(saved)

    def production(self) -> Data:
        self_made = build("production", 0)[0]
        data = {table: list(self_made[table].values()) for table in ("flights", "customers", "reservations")}
        return {"tools": self.tools(), "data": data}
