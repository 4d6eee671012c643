"""Seeded bugs: clean worlds, large and tiny, each with defects as they are really shipped, one per factory.

`CLEAN` names the sound worlds and `BUGS` what was done to them; `subjects.py` holds a factory for each bug. All was
written from the interface of a plain subject alone, without a look at any detector.
"""

from __future__ import annotations

from . import (
    bugs_chat,
    bugs_data,
    bugs_deploy,
    bugs_desk,
    bugs_ledger,
    bugs_parcels,
    bugs_plain_calendar,
    bugs_plain_flights,
    bugs_plain_search,
    bugs_plain_sheet,
    bugs_quiz,
    bugs_repair,
    bugs_rooms,
    bugs_small,
    bugs_warehouse,
)
from .registry import FOUND, KLASSES, Bug

HERE = "bench/audit/seeded"
CLEAN: dict[str, str] = {
    "chat": f"{HERE}/chat.py:Chat",
    "deploy": f"{HERE}/deploy.py:Deploy",
    "desk": f"{HERE}/desk.py:Desk",
    "ledger": f"{HERE}/ledger.py:Ledger",
    "parcels": f"{HERE}/parcels.py:Parcels",
    "quiz": f"{HERE}/quiz.py:Quiz",
    "repair": f"{HERE}/repair.py:Repair",
    "rooms": f"{HERE}/rooms.py:Rooms",
    "warehouse": f"{HERE}/warehouse.py:Warehouse",
    # Tiny ones, as somebody writes them in an afternoon; their bugs lie together in `bugs_small.py`.
    "small_bank": f"{HERE}/small_bank.py:Bank",
    "small_home": f"{HERE}/small_home.py:Home",
    "small_notes": f"{HERE}/small_notes.py:Notes",
    "small_quiz": f"{HERE}/small_quiz.py:Quiz",
    "small_shop": f"{HERE}/small_shop.py:Shop",
    "small_todo": f"{HERE}/small_todo.py:Todo",
    # Plain ones of a middle size.
    "plain_calendar": f"{HERE}/plain_calendar.py:Calendar",
    "plain_flights": f"{HERE}/plain_flights.py:Flights",
    "plain_search": f"{HERE}/plain_search.py:Search",
    "plain_sheet": f"{HERE}/plain_sheet.py:Sheet",
}
LATE: tuple[str, ...] = (
    "deploy", "parcels", "small_bank", "small_home", "small_notes", "small_quiz", "small_shop", "small_todo",
)  # fmt: skip
"""The worlds that were written when the detectors were there already, by people who had seen none."""
NEWEST: tuple[str, ...] = ("plain_calendar", "plain_flights", "plain_search", "plain_sheet")
"""The worlds that were written last, by people who had seen no detector."""
SCORERS: dict[str, str] = {
    # A scorer that is wrong: its class. The sound ones have no "__"; the cases lie in `cases/NAME.jsonl`.
    "math_answer__contains": "reward_hack",
    "math_answer__tolerance": "reward_clipping",
    "math_answer__letters": "unsolvable",
    "math_answer__first": "reward_hack",
    "math_answer__crash": "races",
    "record__empty": "reward_hack",
    "record__unreadable": "silent_default",
    "record__whole": "reward_clipping",
    "ranking__contains": "reward_hack",
    "ranking__hash": "flaky_verifier",
    "ranking__noise": "flaky_verifier",
    "ranking__longest": "reward_hack",
}
CLEAN_SCORERS = ("math_answer", "record", "ranking")
MODULES = (
    bugs_chat,
    bugs_data,
    bugs_deploy,
    bugs_desk,
    bugs_ledger,
    bugs_parcels,
    bugs_plain_calendar,
    bugs_plain_flights,
    bugs_plain_search,
    bugs_plain_sheet,
    bugs_quiz,
    bugs_repair,
    bugs_rooms,
    bugs_small,
    bugs_warehouse,
)
BUGS: tuple[Bug, ...] = tuple(bug for bug, _ in FOUND.values())

__all__ = ["BUGS", "CLEAN", "CLEAN_SCORERS", "KLASSES", "LATE", "NEWEST", "SCORERS", "Bug"]


def spec(bug: Bug) -> str:
    """Returns the name of a bug on the command line."""
    return f"{HERE}/subjects.py:{bug.name}"
