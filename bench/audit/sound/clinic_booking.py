"""Front desk of a clinic: logins that expire, rights by role, masked phone numbers, and visits that are kept."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

import quintain as qn
from quintain.state import Rng

SESSION_MINUTES = 10
DOCTORS = ("Dr. Iyer", "Dr. Moss", "Dr. Quist")
TIMES = ("09:00", "09:30", "10:00", "10:30", "11:00", "11:30")
PATIENTS = ("Lena Abt", "Omar Best", "Rosa Cole", "Sven Dahl", "Tara Ek", "Umut Finn", "Vera Gil", "Wim Holt")


class Account(msgspec.Struct):
    pin: str
    role: Literal["reception", "doctor"]
    last_seen: float = 0.0


class Patient(msgspec.Struct):
    name: str
    phone: str


class Visit(msgspec.Struct):
    """One slot of a doctor, free without a patient."""

    doctor: str
    time: str
    patient: str | None = None


class Clinic(qn.State):
    accounts: dict[str, Account]
    patients: dict[str, Patient]
    visits: dict[str, Visit]
    cancelled: list[dict[str, str]] = []
    """Each cancelled visit, in the order of the calls; it only grows."""
    user: str = ""
    ends: float = 0.0

    @qn.tool
    def log_in(self, user: str, pin: str) -> str:
        """Log in for ten minutes; a session before ends. Each accepted call, this one too, takes one minute.

        Args:
            user: Name of the account.
            pin: Its PIN.
        """
        account = self.accounts.get(user)
        if account is None or account.pin != pin:
            raise qn.ToolError("unknown user or wrong PIN")
        self.user, self.ends = user, self.clock.now + 60 * SESSION_MINUTES
        self._minute()
        return f"logged in as {user}, role {account.role}, for {SESSION_MINUTES} minutes"

    @qn.tool
    def find_patients(self, name: str) -> list[dict[str, str]]:
        """Find patients by a part of their name, in any letter case, ordered by id.

        Of the phone number, accounts of the role reception see the last two digits only; doctors see all.

        Args:
            name: A part of the name.
        """
        role = self._account().role
        found = [(key, one) for key, one in sorted(self.patients.items()) if name.casefold() in one.name.casefold()]
        self._minute()
        return [
            {"id": key, "name": one.name, "phone": one.phone if role == "doctor" else f"*****{one.phone[-2:]}"}
            for key, one in found
        ]

    @qn.tool
    def list_slots(self, doctor: str) -> list[dict[str, str | bool]]:
        """List today's slots of a doctor by time. A slot that is not free shows the patient's id.

        Args:
            doctor: Name, such as Dr. Iyer.
        """
        self._account()
        if doctor not in DOCTORS:
            raise qn.ToolError(f"no doctor {doctor!r}; doctors: {', '.join(DOCTORS)}")
        self._minute()
        found = sorted((one.time, key, one.patient) for key, one in self.visits.items() if one.doctor == doctor)
        return [{"slot": key, "time": time, "free": not who, "patient": who or ""} for time, key, who in found]

    @qn.tool
    def book(self, slot: str, patient: str) -> str:
        """Book a free slot for a patient who has no other visit at that time. Only for the role reception.

        Args:
            slot: Id of the slot.
            patient: Id of the patient.
        """
        self._may_write()
        visit = self._visit(slot)
        if patient not in self.patients:
            raise qn.ToolError(f"no patient {patient!r}; `find_patients` shows the ids")
        if visit.patient is not None:
            raise qn.ToolError(f"slot {slot} is taken; `list_slots` shows free ones")
        clash = [key for key, one in self.visits.items() if one.patient == patient and one.time == visit.time]
        if clash:
            raise qn.ToolError(f"{patient} has a visit at {visit.time} already, in slot {clash[0]}")
        visit.patient = patient
        self._minute()
        return f"{patient} sees {visit.doctor} at {visit.time}"

    @qn.tool
    def cancel(self, slot: str, reason: Annotated[str, Meta(min_length=3, max_length=80)]) -> str:
        """Cancel the visit of a slot, which is free afterwards; the visit is kept with its reason. Only for reception.

        Args:
            slot: Id of the slot.
            reason: Reason, 3 to 80 characters.
        """
        self._may_write()
        visit = self._visit(slot)
        if visit.patient is None:
            raise qn.ToolError(f"slot {slot} is free, and holds no visit")
        self.cancelled.append({"slot": slot, "patient": visit.patient, "reason": reason, "by": self.user})
        patient, visit.patient = visit.patient, None
        self._minute()
        return f"cancelled the visit of {patient} at {visit.time}"

    def _account(self) -> Account:
        if not self.user or self.clock.now >= self.ends:
            raise qn.ToolError(f"no session, or it ended after {SESSION_MINUTES} minutes; log in first")
        return self.accounts[self.user]

    def _may_write(self) -> None:
        if (role := self._account().role) != "reception":
            raise qn.ToolError(f"{self.user} has the role {role}; visits are booked and cancelled by reception")

    def _visit(self, slot: str) -> Visit:
        if slot not in self.visits:
            raise qn.ToolError(f"no slot {slot!r}; `list_slots` shows the ids")
        return self.visits[slot]

    def _minute(self) -> None:
        self.clock.advance(60)
        self.accounts[self.user].last_seen = self.clock.now


def clinic(rng: Rng) -> Clinic:
    """Returns a clinic in which each doctor's third slot is free and patients 1 to 5 have visits."""
    patients = {f"P{n + 1}": Patient(name, f"555{rng.below(10_000):04}") for n, name in enumerate(PATIENTS)}
    visits: dict[str, Visit] = {}
    for n, doctor in enumerate(DOCTORS):
        for place, time in enumerate(TIMES):
            taken = place % 3 != 2 and place < 5
            visits[f"S{n * 6 + place + 1}"] = Visit(doctor, time, f"P{(n + place) % 5 + 1}" if taken else None)
    pins = {"frida": f"{rng.below(9000) + 1000}", "iyer": f"{rng.below(9000) + 1000}"}
    accounts = {"frida": Account(pins["frida"], "reception"), "iyer": Account(pins["iyer"], "doctor")}
    return Clinic(accounts=accounts, patients=patients, visits=visits)


def make(split: str, number: int) -> qn.Task[Clinic]:
    rng = Rng(key=f"clinic_booking/{split}/{number}".encode())
    world = clinic(rng)
    log_in = ("log_in", {"user": "frida", "pin": world.accounts["frida"].pin})
    doctor = DOCTORS[number % 3]
    own = {key: one for key, one in world.visits.items() if one.doctor == doctor}
    free = min((one.time, key) for key, one in own.items() if one.patient is None)[1]
    if number % 2:
        slot = next(key for key, one in own.items() if one.patient)
        patient = own[slot].patient or ""
        name, time = PATIENTS[int(patient[1:]) - 1], own[slot].time
        wish = f"{name} cannot come to {doctor} at {time}: cancel the visit and book the earliest other"
        calls: list[tuple[str, dict[str, str]]] = [("cancel", {"slot": slot, "reason": "cannot come"})]
    else:
        slot, patient, calls = "", f"P{6 + rng.below(3)}", []
        wish = f"{PATIENTS[int(patient[1:]) - 1]} wants to see {doctor}: book the earliest"
    truth = {key: one.patient for key, one in world.visits.items()} | ({slot: None} if slot else {}) | {free: patient}
    return qn.Task(
        id=f"{split}-{number}",
        prompt=(
            f"{wish} free slot of {doctor}. Your account is frida with the PIN "
            f"{world.accounts['frida'].pin}. Change no other visit."
        ),
        start=world,
        truth=truth,
        solution=(log_in, ("list_slots", {"doctor": doctor}), *calls, ("book", {"slot": free, "patient": patient})),
    )


@qn.reward
def visits_are_right(view: qn.EpisodeView[Clinic]) -> qn.Score:
    found = {key: one.patient for key, one in view.state.visits.items()}
    wrong = sorted(key for key, patient in view.task.truth.items() if found[key] != patient)
    return qn.Score(float(not wrong), f"wrong slots: {', '.join(wrong) or 'none'}")


env = qn.Environment(
    "clinic_booking",
    tasks=lambda split: qn.Tasks(12, lambda number: make(split, number)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(visits_are_right),
    state=Clinic,
)
