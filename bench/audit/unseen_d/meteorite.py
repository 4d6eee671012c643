"""The loans desk of a meteorite collection: chips for institutes, surveys of the stock, quarantine of cabinets."""

import hashlib
import re
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from typing import Any, ClassVar, Literal

import quintain as qn
from quintain.state import Rng

RESERVE, PRISTINE = 500, 85.0
FALLS = ("Allende", "Murchison", "Tagish Lake", "Millbillillie", "Bruderheim", "Abee")
CABINETS = ("A1", "A2", "A3", "A10", "A11", "B1", "B2", "B12")
Status = Literal["available", "on_loan", "quarantined"]


@dataclass
class Specimen:
    """One piece of a meteorite; `pristine` is the percentage of its mass that is not weathered."""

    id: str
    meteorite: str
    cabinet: str
    mg: int
    pristine: float
    status: Status = "available"


@dataclass
class Request:
    """An institute asks for material of one specimen, or of any specimen of a meteorite."""

    id: str
    received: str
    meteorite: str
    specimen: str | None
    mg: int
    status: Literal["open", "sent", "declined"] = "sent"
    reason: str = ""
    sent: int = 0
    sent_from: str = ""


class Desk(qn.State):
    """The records of the collection."""

    specimens: dict[str, Specimen]
    requests: dict[str, Request]
    journal: list[str] = []

    @qn.tool
    def find_specimens(self, meteorite: str, status: Status | None = None) -> list[Specimen]:
        """List the specimens of a meteorite, in the order of their numbers.

        Args:
            meteorite: Its full name, such as "Tagish Lake".
            status: Only specimens of this status; null for all of them.
        """
        return self._find(meteorite, status)

    @qn.tool
    def list_requests(self) -> list[Request]:
        """List the open requests, the oldest first."""
        return sorted((r for r in self.requests.values() if r.status == "open"), key=lambda r: (r.received, r.id))

    @qn.tool
    def send_material(self, request: str, specimen: str, mg: int) -> Request:
        """Cut material off a specimen and send it to whoever made an open request, which closes it as sent.

        Args:
            request: Number of the request.
            specimen: Number of the specimen.
            mg: How many milligrams, at least 1.
        """
        asked, card = self._open(request), self.specimens.get(specimen)
        if card is None or card.meteorite != asked.meteorite or asked.specimen not in (None, specimen):
            raise qn.ToolError(f"{request} asks for {asked.specimen or asked.meteorite}, which {specimen!r} is not")
        if card.status != "available" or mg < 1 or card.mg - mg < RESERVE:
            raise qn.ToolError(f"no {mg} mg: {specimen} is {card.status}, has {card.mg} mg, and must keep {RESERVE}")
        card.mg -= mg
        asked.status, asked.sent, asked.sent_from = "sent", mg, specimen
        self._log(specimen, "sent")
        return asked

    @qn.tool
    def decline(self, request: str, reason: Literal["not_available", "weathered", "reserve"]) -> Request:
        """Close an open request without sending material.

        Args:
            request: Number of the request.
            reason: Why.
        """
        asked = self._open(request)
        asked.status, asked.reason = "declined", reason
        return asked

    @qn.tool
    def quarantine_cabinet(self, cabinet: str) -> str:
        """Put every specimen in one cabinet into quarantine, whatever its status.

        Args:
            cabinet: The cabinet, such as "A2".
        """
        if cabinet not in CABINETS:
            raise qn.ToolError(f"there is no cabinet {cabinet!r}")
        for card in self.specimens.values():
            if self._lies_in(card, cabinet):
                card.status = "quarantined"
                self._log(card.id, "quarantined")
        return f"cabinet {cabinet} is in quarantine"

    def _open(self, number: str) -> Request:
        if number not in self.requests or self.requests[number].status != "open":
            raise qn.ToolError(f"there is no open request {number!r}")
        return self.requests[number]

    def _find(self, meteorite: str, status: Status | None) -> list[Specimen]:
        if meteorite not in FALLS:
            raise qn.ToolError(f"nothing of {meteorite!r}; the collection has {', '.join(FALLS)}")
        return [c for c in self.specimens.values() if c.meteorite == meteorite and status in (None, c.status)]

    def _lies_in(self, card: Specimen, cabinet: str) -> bool:
        return card.cabinet == cabinet

    def _log(self, number: str, event: str) -> None:
        self.journal.append(f"{number} {event}")


RULES = f"""You run the loans desk of a meteorite collection. Its rules:
1. Send only from available specimens that are at least {PRISTINE} percent pristine. At least {RESERVE} mg of \
the specimen must stay. Send exactly as much as was asked for. Change nothing that you were not asked to change.
2. Decline what cannot be sent, with the first reason that holds of: not_available, weathered, reserve.
3. A request that names no specimen gets the most pristine one of its meteorite that rule 1 allows. Oldest first."""


class Draft:
    """A task in the making: a collection, what the oracle does in it, and what is to change."""

    def __init__(self, key: str) -> None:
        self.rng = rng = Rng(key=hashlib.blake2b(key.encode(), digest_size=16).digest())
        self.today = date(2023, 1, 2) + timedelta(days=rng.below(900))
        self.cards: list[Specimen] = []
        for n, tenths in enumerate(rng.sample(range(760, 995), 24)):
            status: Status = "available" if rng.below(5) else rng.choice(("on_loan", "quarantined"))
            place = f"M-{1001 + n}", FALLS[n % len(FALLS)], CABINETS[n // 3]
            self.cards.append(Specimen(*place, 900 + rng.below(4000), tenths / 10, status))
        self.requests: list[Request] = []
        for n, number in enumerate(sorted(rng.sample(range(1000, 9999), 8))):
            card, day = rng.choice(self.cards), str(self.today - timedelta(days=90 - 9 * n - rng.below(9)))
            asked = f"R-{number}", day, card.meteorite, card.id, 50 + 10 * rng.below(26)
            self.requests.append(Request(*asked, sent=asked[-1], sent_from=card.id))
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.wanted: dict[str, dict[str, Any]] = {}
        self.answer = ""

    def reopen(self, number: int, card: Specimen, specimen: str | None) -> Request:
        """Returns one of the newest requests, now an open one for this specimen or for any of its meteorite."""
        ask = self.requests[number]
        ask.status, ask.sent, ask.sent_from, ask.meteorite, ask.specimen = "open", 0, "", card.meteorite, specimen
        return ask

    def close(self, ask: Request, card: Specimen, reason: str = "") -> None:
        """Note that a request is to be declined for a reason, or served without one."""
        if reason:
            self.calls.append(("decline", {"request": ask.id, "reason": reason}))
            self.wanted[ask.id] = {"status": "declined", "reason": reason}
        else:
            self.calls.append(("send_material", {"request": ask.id, "specimen": card.id, "mg": ask.mg}))
            self.wanted[ask.id] = {"status": "sent", "sent": ask.mg, "sent_from": card.id}
            self.wanted[card.id] = {"mg": card.mg - ask.mg}


def one_request(draft: Draft, turn: int) -> str:
    """One request is to be served or declined; another one is none of the agent's business."""
    card, other = draft.rng.sample(draft.cards, 2)
    first, _ = draft.reopen(-2, card, card.id), draft.reopen(-1, other, other.id)
    reason = ("", "not_available", "weathered", "reserve", "")[turn]
    card.status = draft.rng.choice(("on_loan", "quarantined")) if reason == "not_available" else "available"
    card.pristine = (760 + draft.rng.below(90)) / 10 if reason == "weathered" else max(card.pristine, PRISTINE)
    card.mg = RESERVE + first.mg - 20 * (turn == 3) if turn in (0, 3) else card.mg
    draft.calls += [("list_requests", {}), ("find_specimens", {"meteorite": card.meteorite})]
    draft.close(first, card, reason)
    return f"Deal with request {first.id}, and with no other."


def survey(draft: Draft, turn: int) -> str:
    """A question about the stock of a meteorite."""
    card = draft.rng.choice(draft.cards)
    card.status = "available"
    held = [one for one in draft.cards if one.meteorite == card.meteorite and one.status == "available"]
    draft.calls.append(("find_specimens", {"meteorite": card.meteorite, "status": "available"}))
    draft.answer = min(held, key=lambda one: one.pristine).id if turn % 2 else str(sum(one.mg for one in held))
    asks, form = ("Which is the least pristine", "M-1234") if turn % 2 else ("How many mg have they together", "1234")
    return f"Look at our available specimens of {card.meteorite}. {asks}? End with a line of the form 'Answer: {form}'."


def two_requests(draft: Draft, turn: int) -> str:
    """After the first request, the best specimen has too little for the second."""
    stock = [one for one in draft.cards if one.meteorite == FALLS[turn]]
    best, following = sorted(stock, key=lambda one: -one.pristine)[:2]
    best.pristine, following.pristine = max(best.pristine, 91.2), max(following.pristine, 88.4)
    best.status = following.status = "available"
    first, second = draft.reopen(-2, best, None), draft.reopen(-1, best, None)
    best.mg = RESERVE + first.mg + draft.rng.below(second.mg)
    draft.calls += [("list_requests", {}), ("find_specimens", {"meteorite": best.meteorite})]
    draft.close(first, best)
    draft.close(second, following)
    return f"Serve the two open requests for {best.meteorite}."


def air_leak(draft: Draft, turn: int) -> str:
    """A cabinet goes into quarantine, and requests for its specimens are declined."""
    cabinet = draft.rng.choice(CABINETS if turn else ("A1", "B1"))
    inside = [one for one in draft.cards if one.cabinet == cabinet]
    outside = draft.rng.choice([one for one in draft.cards if one.cabinet != cabinet])
    draft.calls.append(("quarantine_cabinet", {"cabinet": cabinet}))
    draft.wanted |= {one.id: {"status": "quarantined"} for one in inside if one.status != "quarantined"}
    draft.reopen(-2, outside, outside.id)
    for number, card in ((-3, inside[0]), (-1, inside[turn % 3])):
        draft.close(draft.reopen(number, card, card.id), card, "not_available")
    return f"Cabinet {cabinet} has let in air. Quarantine it, and decline the open requests for its specimens."


def make(split: str, index: int, *, desk: type[Desk], key: str) -> qn.Task[Desk]:
    """Task `index` of a split, in a collection of its own, drawn with the key."""
    kind, draft = (one_request, survey, two_requests, air_leak)[index % 4], Draft(key.format(split=split, index=index))
    return qn.Task(
        id=f"{split}-{index}",
        prompt=f"Today is {draft.today:%d %B %Y}. {kind(draft, index // 4)}",
        start=desk(specimens={one.id: one for one in draft.cards}, requests={one.id: one for one in draft.requests}),
        truth={"changes": draft.wanted, "answer": draft.answer},
        solution=tuple(draft.calls),
        answer=f"Answer: {draft.answer}" if draft.answer else "Done.",
    )


def verifier(*, ignore: tuple[str, ...] = (), enough: int | None = None, anywhere: bool = False) -> qn.Verifier[Desk]:
    """The share of the wanted changes that were made, 0 if anything else changed, times the right answer."""

    def rows(state: Desk, changes: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        new = {r.id: asdict(r) | changes.get(r.id, {}) for r in (*state.specimens.values(), *state.requests.values())}
        return {number: {key: value for key, value in row.items() if key not in ignore} for number, row in new.items()}

    @qn.reward
    def records(view: qn.EpisodeView[Desk]) -> qn.Score:
        before, after, target = rows(view.start, {}), rows(view.state, {}), rows(view.start, view.task.truth["changes"])
        wanted = [number for number in before if target[number] != before[number]]
        stray = [number for number in before if number not in wanted and after[number] != before[number]]
        made = sum(after[number] == target[number] for number in wanted)
        share = min(1.0, made / min(len(wanted), enough or len(wanted))) if wanted else 1.0
        return qn.Score(0.0 if stray else share, f"{made} of {len(wanted)} changes; others: {stray}")

    @qn.reward
    def answer(view: qn.EpisodeView[Desk]) -> qn.Score:
        if not (right := view.task.truth["answer"]):
            return qn.Score(None, "no answer was asked for")
        said = re.findall(r"(?im)^[ *]*answer:[ *]*(.+?)[ *.]*$", view.answer)
        found = right in view.answer if anywhere else [one.replace(",", "") for one in said[-1:]] == [right]
        return qn.Score(float(found), f"right is {right}")

    return qn.Verifier(records, answer, combine="product")


class Remembering(Desk):
    """Searches are kept until a record changes."""

    found: dict[str, list[Specimen]] = {}
    clears: ClassVar[tuple[str, ...]] = ("quarantined",)

    def _memo(self) -> dict[str, list[Specimen]]:
        return self.found

    def _find(self, meteorite: str, status: Status | None) -> list[Specimen]:
        rows = [replace(card) for card in super()._find(meteorite, status)]
        return self._memo().setdefault(f"{meteorite}/{status}", rows)

    def _log(self, number: str, event: str) -> None:
        super()._log(number, event)
        if event in self.clears:
            self._memo().clear()


class OneIndex(Remembering):
    """The searches of the process, kept until a record changes."""

    index: ClassVar[dict[str, list[Specimen]]] = {}
    clears: ClassVar[tuple[str, ...]] = ("quarantined", "sent")

    def _memo(self) -> dict[str, list[Specimen]]:
        return self.index


class Prefix(Desk):
    """Cabinets are matched by the beginning of their name."""

    def _lies_in(self, card: Specimen, cabinet: str) -> bool:
        return card.cabinet.startswith(cabinet)


def build(desk: type[Desk] = Desk, key: str = "meteorite/{split}/{index}", **judging: Any) -> qn.Environment[Desk]:
    """Returns the environment with this desk, this key of a task's random numbers, and arguments of the verifier."""
    return qn.Environment(
        "meteorite",
        tasks=lambda split: [make(split, index, desk=desk, key=key) for index in range(20)],
        harness=qn.ToolLoop(system=RULES),
        verifier=verifier(**judging),
        state=desk,
        splits=("train", "test"),
    )


env = build()
env_search_memo = build(Remembering)
env_answer_anywhere = build(anywhere=True)
env_three_suffice = build(enough=3)
env_amount_ignored = build(ignore=("mg", "sent"))
env_cabinet_prefix = build(Prefix)
env_one_index = build(OneIndex)
env_key_without_split = build(key="meteorite/{index}")
