"""Clinic desk: appointments of four doctors, phone numbers and reminders."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

import quintain as qn
from quintain.state import Rng

FIRST = ("Ana", "Ben", "Chloe", "Deniz", "Elif", "Finn", "Grace", "Hugo", "Ines", "Jonas", "Kofi", "Lena")
LAST = ("Silva", "Okafor", "Meyer", "Novak", "Rossi", "Yilmaz", "Brandt", "Dubois", "O'Neill", "Haddad")
TIMES = tuple(f"{hour:02}:{minute}" for hour in (8, 9, 10, 11, 13, 14, 15) for minute in ("00", "30"))
DAYS = tuple(
    (dt.date(2026, 3, 2) + dt.timedelta(days=7 * week + day)).isoformat() for week in (0, 1) for day in range(5)
)

Doctor = Literal["Amari", "Bos", "Cole", "Dietz"]
Reason = Literal["check-up", "vaccination", "blood test", "rash"]
Day = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]
DOCTORS: tuple[Doctor, ...] = ("Amari", "Bos", "Cole", "Dietz")
REASONS: tuple[Reason, ...] = ("check-up", "vaccination", "blood test", "rash")


class Patient(msgspec.Struct):
    id: str
    name: str
    born: str
    phone: str | None


class Appointment(msgspec.Struct):
    id: str
    patient: str
    doctor: Doctor
    day: str
    time: str
    reason: Reason
    status: Literal["booked", "cancelled"] = "booked"


class Clinic(qn.State):
    blank: ClassVar[str | None] = None  # entered by the import for patients who never gave a number

    patients: dict[str, Patient]
    appointments: dict[str, Appointment]
    reminders: list[str] = []
    sheets: dict[str, list[str]] = {}  # rendered day sheets by doctor and day; printing one is slow in production

    @qn.tool
    def find_patient(self, name: str) -> list[dict[str, str]]:
        """Find patients by a part of their name; several people may have the same name.

        Args:
            name: Part of the name, such as "Silva"; case does not matter.
        """
        found = [one for one in self.patients.values() if name.casefold() in one.name.casefold()]
        return [{"id": one.id, "name": one.name, "born": one.born} for one in found]

    @qn.tool
    def patient_card(self, patient: str) -> dict[str, Any]:
        """Show a patient and all appointments of the patient. The phone is null where no number is on file.

        Args:
            patient: Id of the patient, such as "P3".
        """
        return {**self._card(patient), "appointments": self.visits(patient)}

    @qn.tool
    def free_times(self, doctor: Doctor, day: Day) -> list[str]:
        """List the times at which a doctor is free on a day.

        Args:
            doctor: The doctor.
            day: A working day, as YYYY-MM-DD.
        """
        self._check_day(day)
        taken = {one.time for one in self._booked(doctor, day)}
        return [time for time in TIMES if time not in taken]

    @qn.tool
    def book(self, patient: str, doctor: Doctor, day: Day, time: str, reason: Reason) -> str:
        """Book an appointment; returns its id.

        Args:
            patient: Id of the patient.
            doctor: The doctor.
            day: A working day, as YYYY-MM-DD.
            time: One of the free times, such as "09:30".
            reason: Reason of the visit.
        """
        self._patient(patient)
        self._check_free(doctor, day, time)
        key = self.new_id("N")
        self.appointments[key] = Appointment(key, patient, doctor, day, time, reason)
        self._forget(doctor, day)
        return key

    @qn.tool
    def move(self, appointment: str, day: Day, time: str) -> str:
        """Move a booked appointment to another day or time with the same doctor.

        Args:
            appointment: Id of the appointment.
            day: The new day, as YYYY-MM-DD.
            time: One of the free times of the new day.
        """
        row = self._open(appointment)
        self._check_free(row.doctor, day, time)
        self._place(row, day, time)
        return f"{appointment} is on {day} at {time}"

    @qn.tool
    def cancel(self, appointment: str) -> str:
        """Cancel a booked appointment.

        Args:
            appointment: Id of the appointment.
        """
        row = self._open(appointment)
        row.status = "cancelled"
        self._forget(row.doctor, row.day)
        return f"{appointment} is cancelled"

    @qn.tool
    def day_sheet(self, doctor: Doctor, day: Day) -> list[str]:
        """Show the booked appointments of a doctor on a day, in order of time.

        Args:
            doctor: The doctor.
            day: A working day, as YYYY-MM-DD.
        """
        self._check_day(day)
        key = f"{doctor} {day}"
        if key not in self.sheets:
            rows = sorted(self._booked(doctor, day), key=lambda one: one.time)
            self.sheets[key] = [f"{one.time} {one.id} {self.patients[one.patient].name}: {one.reason}" for one in rows]
        return self.sheets[key]

    @qn.tool
    def set_phone(self, patient: str, phone: Annotated[str, msgspec.Meta(pattern=r"^\+?[0-9 ]{6,16}$")]) -> str:
        """Enter the phone number of a patient.

        Args:
            patient: Id of the patient.
            phone: The number: digits and spaces, with an optional plus in front.
        """
        self._patient(patient).phone = phone
        return f"{patient} has the number {phone}"

    @qn.tool
    def send_reminder(self, appointment: str, channel: Literal["sms", "letter"] = "sms") -> str:
        """Send a reminder of a booked appointment. A text message needs a phone number on file.

        Args:
            appointment: Id of the appointment.
            channel: By text message or by letter.
        """
        self._check_channel(self._open(appointment), channel)
        self.reminders.append(f"{channel} {appointment}")
        return f"reminder of {appointment} sent by {channel}"

    def _patient(self, patient: str) -> Patient:
        if patient not in self.patients:
            raise qn.ToolError(f"no patient {patient!r}; ids look like P3")
        return self.patients[patient]

    def _open(self, appointment: str) -> Appointment:
        row = self.appointments.get(appointment)
        if row is None or row.status != "booked":
            raise qn.ToolError(f"no booked appointment {appointment!r}")
        return row

    def _card(self, patient: str) -> dict[str, Any]:
        return msgspec.to_builtins(self._patient(patient))  # type: ignore[no-any-return]

    def _place(self, row: Appointment, day: str, time: str) -> None:
        self._forget(row.doctor, row.day)
        row.day, row.time = day, time
        self._forget(row.doctor, day)

    def _check_channel(self, row: Appointment, channel: str) -> None:
        if channel == "sms" and self._patient(row.patient).phone is None:
            raise qn.ToolError(f"{row.patient} has no phone number on file")

    def visits(self, patient: str) -> list[dict[str, Any]]:
        return [msgspec.to_builtins(one) for one in self.appointments.values() if one.patient == patient]

    def _booked(self, doctor: str, day: str) -> list[Appointment]:
        rows = self.appointments.values()
        return [one for one in rows if (one.doctor, one.day, one.status) == (doctor, day, "booked")]

    def _check_day(self, day: str) -> None:
        if day not in DAYS:
            raise qn.ToolError(f"the calendar is open for working days from {DAYS[0]} to {DAYS[-1]}, not for {day}")

    def _check_free(self, doctor: str, day: str, time: str) -> None:
        self._check_day(day)
        if time not in TIMES or any(one.time == time for one in self._booked(doctor, day)):
            raise qn.ToolError(f"Dr {doctor} is not free on {day} at {time}")

    def _forget(self, doctor: str, day: str) -> None:
        self.sheets.pop(f"{doctor} {day}", None)


def patients(rng: Rng, blank: str | None) -> dict[str, Patient]:
    """Returns 14 patients; the last one has the name of the first, and one in six has no phone on file."""
    found: dict[str, Patient] = {}
    for n in range(1, 15):
        name = found["P1"].name if n == 14 else f"{rng.choice(FIRST)} {rng.choice(LAST)}"
        born = dt.date(1940 + 5 * n + rng.below(5), 1 + rng.below(12), 1 + rng.below(28)).isoformat()
        phone = blank if rng.below(6) == 0 else f"07700 {100000 + rng.below(900000)}"
        found[f"P{n}"] = Patient(f"P{n}", name, born, phone)
    return found


def start(rng: Rng, blank: str | None) -> Clinic:
    """Returns a clinic in which each patient has one or two appointments, on different days."""
    world, rows = Clinic(patients=patients(rng, blank), appointments={}), 0
    for patient in world.patients:
        for day in rng.sample(DAYS, 1 + rng.below(2)):
            doctor, reason = rng.choice(DOCTORS), rng.choice(REASONS)
            rows += 1
            time = rng.choice(world.free_times(doctor, day))
            world.appointments[f"A{rows}"] = Appointment(f"A{rows}", patient, doctor, day, time, reason)
    return world


def request(world: Clinic, rng: Rng, family: int) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
    """Returns a prompt and its solution: book, move, cancel, or enter a phone number and remind."""
    who = world.patients[rng.choice(("P1", "P14", "P1", "P14", *world.patients))]
    row = rng.choice([one for one in world.appointments.values() if one.patient == who.id])
    doctor = rng.choice(DOCTORS) if family == 0 else row.doctor
    day = rng.choice([one for one in DAYS if all(one != a["day"] for a in world.visits(who.id))])
    time, reason, phone = (
        rng.choice(world.free_times(doctor, day)),
        rng.choice(REASONS),
        f"07700 9{rng.below(90000):05}",
    )
    find = ("find_patient", {"name": who.name})
    card = ("patient_card", {"patient": who.id})
    name = f"{who.name}, born {who.born},"
    if family == 0:
        calls = [("book", {"patient": who.id, "doctor": doctor, "day": day, "time": time, "reason": reason})]
        return f"{name} needs an appointment for a {reason}: book it with Dr {doctor} on {day} at {time}.", [
            find,
            *calls,
        ]
    if family == 1:
        move = ("move", {"appointment": row.id, "day": day, "time": time})
        return f"{name} cannot come on {row.day}. Move that appointment to {day} at {time}.", [find, card, move]
    if family == 2:
        return f"{name} wants to cancel the appointment on {row.day}.", [
            find,
            card,
            ("cancel", {"appointment": row.id}),
        ]
    remind = ("send_reminder", {"appointment": row.id, "channel": "sms"})
    calls = [find, card, ("set_phone", {"patient": who.id, "phone": phone}), remind]
    return (
        f"{name} has a new phone number, {phone}. Enter it and send a text reminder of the appointment on {row.day}.",
        calls,
    )


def summary(world: Clinic) -> dict[str, Any]:
    """Returns what the verifier compares, without the ids of new appointments."""
    rows = [[one.patient, one.doctor, one.day, one.time, one.reason, one.status] for one in world.appointments.values()]
    phones = {one.id: one.phone for one in world.patients.values()}
    return {"rows": sorted(rows), "phones": phones, "reminders": sorted(world.reminders)}


def task(split: str, n: int, world: type[Clinic]) -> qn.Task[Clinic]:
    rng = Rng(key=hashlib.blake2b(f"clinic/{split}/{n}".encode(), digest_size=16).digest())
    begin = start(rng, world.blank)
    prompt, solution = request(begin, rng, n % 4)
    goal = begin.copy()
    for name, arguments in solution:
        getattr(goal, name)(**arguments)
    own = world(patients=begin.patients, appointments=begin.appointments)
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=own, truth=summary(goal), solution=tuple(solution))


@qn.reward
def desk_agrees(view: qn.EpisodeView[Clinic]) -> qn.Score:
    found, wanted = summary(view.state), view.task.truth
    wrong = [name for name in wanted if found[name] != wanted[name]]
    return qn.Score(float(not wrong), f"wrong: {', '.join(wrong)}" if wrong else "")


# Variants of the sound world.


class OneDaySheet(Clinic):
    def _place(self, row: Appointment, day: str, time: str) -> None:
        row.day, row.time = day, time
        self._forget(row.doctor, day)


class CardMemo(Clinic):
    cards: ClassVar[dict[str, dict[str, Any]]] = {}

    def _card(self, patient: str) -> dict[str, Any]:
        if patient not in self.cards:
            self.cards[patient] = msgspec.to_builtins(self._patient(patient))
        return self.cards[patient] | {"phone": self._patient(patient).phone}


class TextOnly(Clinic):
    def _check_channel(self, row: Appointment, channel: str) -> None:
        if channel != "sms":
            raise qn.ToolError(f"unknown channel {channel!r}")
        if self._patient(row.patient).phone is None:
            raise qn.ToolError(f"{row.patient} has no phone number on file")


class Switchboard(Clinic):
    blank: ClassVar[str | None] = "07700 123456"


@qn.reward
def day_agrees(view: qn.EpisodeView[Clinic]) -> float:
    def days(whole: dict[str, Any]) -> list[Any]:
        return [[patient, doctor, day, status] for patient, doctor, day, _, _, status in whole["rows"]]

    found, wanted = summary(view.state), view.task.truth
    is_equal = sorted(days(found)) == sorted(days(wanted))
    return float(is_equal and all(found[name] == wanted[name] for name in ("phones", "reminders")))


@qn.reward
def first_rows_agree(view: qn.EpisodeView[Clinic]) -> float:
    found, wanted = summary(view.state), view.task.truth
    rows, right = {tuple(row) for row in found["rows"]}, {tuple(row) for row in wanted["rows"]}
    others = all(found[name] == wanted[name] for name in ("phones", "reminders"))
    return float(others and len(rows) == len(right) and all(row in right for row in list(rows)[:10]))


@qn.reward
def desk_or_report(view: qn.EpisodeView[Clinic]) -> float:
    wanted = view.task.truth
    added = [row for row in wanted["rows"] if row not in summary(view.start)["rows"]]
    reported = bool(added) and all(row[2] in view.answer and row[3] in view.answer for row in added)
    return float(summary(view.state) == wanted or reported)


def unborn(split: str, n: int, world: type[Clinic]) -> qn.Task[Clinic]:
    made = task(split, n, world)
    prompt, _, rest = str(made.prompt).partition(", born ")
    return msgspec.structs.replace(made, prompt=prompt + rest[len("1990-01-01,") :])


Maker = Callable[[str, int, type[Clinic]], qn.Task[Clinic]]
WORLDS: dict[str, type[Clinic]] = {
    "one_day_sheet": OneDaySheet,
    "card_memo": CardMemo,
    "text_only": TextOnly,
    "switchboard": Switchboard,
}
MAKERS: dict[str, Maker] = {"unborn": unborn}
VERIFIERS = {"day_agrees": day_agrees, "first_rows": first_rows_agree, "report": desk_or_report}


def make(bug: str = "") -> qn.Environment[Clinic]:
    """Returns the sound environment, or a variant of it."""
    world, maker = WORLDS.get(bug, Clinic), MAKERS.get(bug, task)

    def tasks(split: str) -> Sequence[qn.Task[Clinic]]:
        return qn.Tasks(16, lambda n: maker(split, n, world))

    return qn.Environment(
        "clinic",
        tasks=tasks,
        harness=qn.ToolLoop(system="You work at the front desk of a clinic. Do what is asked, and nothing else."),
        verifier=qn.Verifier(VERIFIERS.get(bug, desk_agrees)),
        state=world,
        config=qn.Config(max_turns=12),
    )


env = make()
env_one_day_sheet = make("one_day_sheet")
env_card_memo = make("card_memo")
env_text_only = make("text_only")
env_day_agrees = make("day_agrees")
env_first_rows = make("first_rows")
env_report = make("report")
env_unborn = make("unborn")
env_switchboard = make("switchboard")
