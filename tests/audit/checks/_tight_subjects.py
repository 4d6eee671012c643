"""Environments whose episodes end after six turns: sound, and with a cache that a write does not clear."""

from __future__ import annotations

import msgspec

import quintain as qn

DAYS = ("2026-03-02", "2026-03-03", "2026-03-04")
DOCTORS = ("Bos", "Cole")


class Clinic(qn.State):
    """Appointments, each [doctor, day, patient], and the sheets that were shown."""

    appointments: dict[str, dict[str, str]] = {}
    sheets: dict[str, list[str]] = {}
    request: dict[str, str] = msgspec.field(default_factory=lambda: {"status": "open"})

    def clear(self) -> None:
        self.sheets.clear()

    @qn.tool
    def day_sheet(self, doctor: str, day: str) -> list[str]:
        """Show the appointments of a doctor on a day.

        Args:
            doctor: Name of the doctor.
            day: The day, such as 2026-03-02.
        """
        sheet = f"{doctor} {day}"
        if sheet not in self.sheets:
            rows = self.appointments.items()
            self.sheets[sheet] = [
                f"{key} {row['patient']}" for key, row in rows if [row["doctor"], row["day"]] == [doctor, day]
            ]
        return self.sheets[sheet]

    @qn.tool
    def move(self, appointment: str, day: str) -> str:
        """Move an appointment to another day.

        Args:
            appointment: Its id.
            day: The new day.
        """
        if appointment not in self.appointments or day not in DAYS:
            raise qn.ToolError(f"no appointment {appointment!r}, or no working day {day!r}")
        self.appointments[appointment] |= {"day": day}
        self.clear()
        return "moved"

    @qn.tool
    def close_request(self) -> str:
        """Close the request when all is done."""
        self.request["status"] = "done"
        return "closed"


class Stale(Clinic):
    def clear(self) -> None:
        """Keeps what was shown."""


@qn.reward
def moved(outcome: qn.EpisodeView[Clinic]) -> float:
    there = outcome.state.appointments["A2"]["day"] == outcome.task.truth["day"]
    return float(there and outcome.state.request["status"] == "done")


def make(world: type[Clinic]) -> qn.Environment[Clinic]:
    def task(split: str, n: int) -> qn.Task[Clinic]:
        rows = {f"A{k}": {"doctor": DOCTORS[k % 2], "day": DAYS[k % 3], "patient": f"P{k}{n}"} for k in range(1, 6)}
        day = DAYS[n % 2]
        prompt = f"Move appointment A2 of P2{n} to {day}, and close the request."
        look = ("day_sheet", {"doctor": "Bos", "day": day})
        solution = (look, ("move", {"appointment": "A2", "day": day}), ("close_request", dict[str, str]()))
        return qn.Task(
            id=f"{split}-{n}", prompt=prompt, start=world(appointments=rows), truth={"day": day}, solution=solution
        )

    def tasks(split: str) -> list[qn.Task[Clinic]]:
        return [task(split, n) for n in range(6)]

    config = qn.Config(max_turns=6)
    return qn.Environment(
        "clinic", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(moved), state=world, config=config
    )


env, env_stale = make(Clinic), make(Stale)
