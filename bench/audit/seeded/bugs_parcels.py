"""Bugs of the courier's desk."""

from __future__ import annotations

import copy
import datetime as dt
import json
import random
from typing import Any, ClassVar

from .common import BackendError, ToolError
from .parcels import Parcels, rerouted
from .parcels_data import BANDS_G, NOW, STEP, stamp, zone_of
from .registry import seeded

Data = Any
Row = dict[str, Data]
Tables = dict[str, dict[str, Row]]


@seeded("stale_cache", "S", tasks=("label",))
class SlotLeftBehind(Parcels):
    """Free places are counted once for each slot and anew when it is booked; the slot that a moved pick-up leaves is
    not."""

    def __init__(self) -> None:
        super().__init__()
        self.counted: dict[str, int] = {}

    def reset(self, task: str, seed: int) -> str:
        self.counted.clear()
        return super().reset(task, seed)

    def restore(self, saved: Data) -> None:
        self.counted.clear()
        super().restore(saved)

    def _list_slots(self, postcode: str, day: str) -> Data:
        answer = super()._list_slots(postcode, day)
        for slot in answer["slots"]:
            slot["free"] = self.counted.setdefault(slot["id"], slot["free"])
        return answer

    def _book_pickup(self, shipment_id: str, slot_id: str) -> Data:
        answer = super()._book_pickup(shipment_id, slot_id)
        self.counted.pop(slot_id, None)
        return answer


@seeded("stale_cache", "S", tasks=("reroute",))
class OldAddressInTheIndex(Parcels):
    """The search reads an index of its own, which a bought label renews and a re-routing does not."""

    def __init__(self) -> None:
        super().__init__()
        self.index: dict[str, Row] = {}

    def reset(self, task: str, seed: int) -> str:
        prompt = super().reset(task, seed)
        self.index = copy.deepcopy(self.tables["shipments"])
        return prompt

    def restore(self, saved: Data) -> None:
        super().restore(saved)
        self.index = copy.deepcopy(self.tables["shipments"])

    def _buy_label(self, shipment_id: str, service: str, insured_cents: int) -> Data:
        answer = super()._buy_label(shipment_id, service, insured_cents)
        self.index[shipment_id] = dict(self.tables["shipments"][shipment_id])
        return answer

    def _find_shipments(self, recipient: str, status: str, page: int) -> Data:
        live, self.tables = self.tables, {**self.tables, "shipments": self.index}
        try:
            return super()._find_shipments(recipient, status, page)
        finally:
            self.tables = live


@seeded("reward_hack", "V", tasks=("claim-2", "claim-3", "claim-4"))
class PaidInAll(Parcels):
    """Claims are compared by their status, and by what has been paid for all of them together."""

    def facts(self, tables: Tables) -> Row:
        found = super().facts(tables)
        for key, claim in tables["claims"].items():
            found[f"claim {key}"] = claim["status"]
        found["paid for claims"] = sum(claim["paid_cents"] or 0 for claim in tables["claims"].values())
        return found


@seeded("reward_hack", "V", tasks=("reroute",))
class OwnShipmentsDoNotCount(Parcels):
    """Damage is looked for among other people's shipments; one that bears the customer's name is taken for his own."""

    def verdict(self, before: Row, after: Row, wanted: Row) -> float:
        assert self.task is not None
        name = (self.plan(self.task)["customer"] or "").casefold()
        own = [
            fact
            for fact, row in before.items()
            if fact not in wanted and fact.startswith("shipment ") and row["recipient"].strip().casefold() == name
        ]
        return super().verdict(before, {**after, **{fact: before[fact] for fact in own}}, wanted)


@seeded("false_resolution", "T", "meaning", tasks=("reroute",))
class BarcodeStays(Parcels):
    """A re-routed shipment has its new address and its old barcode, by which it is carried to the old one; the verdict
    expects what the same function makes."""

    def _reroute(self, shipment_id: str, street: str, postcode: str) -> Data:
        code = self.tables["shipments"].get(shipment_id, {}).get("barcode")
        answer = super()._reroute(shipment_id, street, postcode)
        self.tables["shipments"][shipment_id]["barcode"] = code
        return {**answer, "barcode": code}

    def expected(self, task: str) -> Tables:
        tables = super().expected(task)
        for key in self.plan(task).get("moving", ()):
            tables["shipments"][key]["barcode"] = self.initial["shipments"][key]["barcode"]
        return tables


@seeded("silent_default", "T", "inject", tasks=("claim",))
class NoScansYet(Parcels):
    """A shipment has no scans when the tracking service does not answer, as before its pick-up."""

    def scans(self, key: str) -> list[Row]:
        try:
            return super().scans(key)
        except BackendError:
            return []

    def _get_tracking(self, shipment_id: str) -> Data:
        if shipment_id not in self.tables["shipments"]:
            raise ToolError(f"no such shipment: {shipment_id}")
        return {"scans": self.scans(shipment_id)}


@seeded("silent_default", "T", tasks=("reroute",))
class RestOfTheWorld(Parcels):
    """A shipment can be sent to a postcode outside all zones: its zone is then the farthest."""

    def _reroute(self, shipment_id: str, street: str, postcode: str) -> Data:
        try:
            zone_of(postcode)
        except ToolError:
            row = self.one("shipments", shipment_id)
            if row["status"] not in {"labelled", "in_transit"} or not street.strip():
                raise
            far = rerouted(row, " ".join(street.split()), "90000")
            row |= {**far, "postcode": postcode}
            return {"barcode": row["barcode"], "surcharge_cents": row["surcharge_cents"]}
        return super()._reroute(shipment_id, street, postcode)


@seeded("reset_leak", "C", "reset")
class RememberedPlan(Parcels):
    """A task's plan is computed once for each session, and an episode works on those very rows."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: dict[str, Row] = {}

    def plan(self, task: str) -> Row:
        if task not in self.plans:
            self.plans[task] = super().plan(task)
        return self.plans[task]


@seeded("reward_clipping", "V")
class WholeRewards(Parcels):
    """The reward is rounded as if it were a count: two goals of three pay as much as three, one of two nothing."""

    def verdict(self, before: Row, after: Row, wanted: Row) -> float:
        return float(round(super().verdict(before, after, wanted)))


@seeded("data_realism", "C", "meaning")
class DeliveredBeforePickUp(Parcels):
    """Each time of other people's scans is drawn by itself: many a parcel is delivered before it was picked up."""

    def history(self, dice: random.Random, row: Row, taken: set[str], *, end: dt.datetime) -> list[Row]:
        scans = super().history(dice, row, taken, end=end)
        for scan in scans[:-1]:
            minutes = int((end - dt.datetime.fromisoformat(scan["at"][:-1])).total_seconds()) // 60
            scan["at"] = min(stamp(end - dt.timedelta(minutes=dice.randrange(-minutes, 2 * minutes))), stamp(NOW))
        return scans


@seeded("action_drift", "T", "production", tasks=("label-1", "label-3"))
class BandsBeginEarly(Parcels):
    """The quote puts a parcel of exactly 1000 grams into the next band; the label and the real tariff do not."""

    def _quote_rate(self, weight_g: int, postcode: str, insured_cents: int) -> Data:
        answer = super()._quote_rate(weight_g, postcode, insured_cents)
        for rate in answer["rates"]:
            rate["cents"] += STEP[rate["service"]] * (weight_g in BANDS_G)
        return answer


@seeded("races", "T", "threads", tasks=("label",))
class PrintedInBetween(Parcels):
    """The lock is given back while the driver's list is printed: between the count of a slot's free places and the
    pick-up that takes one."""

    def free(self, slot: Row, *, but: str = "") -> int:
        places = super().free(slot, but=but)
        if but:
            self.lock.release()
            try:
                self.printed()
            finally:
                self.lock.acquire()
        return places

    def printed(self) -> str:
        """Returns the route list of the drivers, by the sender's postcode."""
        stops = sorted(self.tables["shipments"].values(), key=lambda row: (row["sender_postcode"], row["sender"]))
        return json.dumps(stops, indent=1, ensure_ascii=False)


@seeded("races", "V", "sessions")
class GoalsOfTheLastReset(Parcels):
    """The goals of an episode are kept with the class: the session that was reset last sets the goals of all."""

    wanted: ClassVar[Row] = {}

    def reset(self, task: str, seed: int) -> str:
        prompt = super().reset(task, seed)
        before, expected = self.facts(self.initial), self.facts(self.expected(task))
        type(self).wanted = {name: value for name, value in expected.items() if before.get(name) != value}
        return prompt

    def verdict(self, before: Row, after: Row, wanted: Row) -> float:
        return super().verdict(before, after, self.wanted or wanted)


@seeded("leak", "T", "hidden", tasks=("claim",))
class AssessmentInTheError(Parcels):
    """An agent that offers more than a claim is worth reads its worth in the error."""

    def _settle_claim(self, claim_id: str, decision: str, paid_cents: int) -> Data:
        claim = self.one("claims", claim_id)
        if claim["status"] == "open" and paid_cents > (worth := self.payable(claim)):
            raise ToolError(f"{claim_id} is assessed at {worth} cents; more is not paid")
        return super()._settle_claim(claim_id, decision, paid_cents)


@seeded("unsolvable", "C", "oracle", tasks=("label",))
class SlotMayBeGone(Parcels):
    """Other people's pick-ups may take the last place of the slot that the task is about; under some seeds they do."""

    def left_alone(self, slot: Row, plan: Row) -> bool:
        return False


@seeded("flaky_verifier", "V", "process", tasks=("claim",))
class LocalMidnight(Parcels):
    """The verdict counts the days of a claim by the local calendar of the machine, not by UTC."""

    def day_of(self, at: str) -> dt.date:
        return dt.datetime.fromisoformat(at).astimezone().date()
