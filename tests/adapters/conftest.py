"""A shop and an airline small enough to read, laid out as upstream lays them out, beside the real ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quintain.adapters.tau2 import load
from quintain.adapters.tau2.convention import respond
from quintain.adapters.tau2.data import Folder
from quintain.adapters.tau2.world import World
from quintain.environment import Environment

ADDRESS = {"address1": "1 Elm", "address2": "", "city": "Bern", "country": "CH", "state": "BE", "zip": "3000"}


def _order(number: int, status: str, items: list[tuple[str, float]], paid_by: str, amount: float) -> dict[str, Any]:
    return {
        "order_id": f"#W{number}",
        "user_id": "ann",
        "address": ADDRESS,
        "items": [
            {"name": "Cup", "product_id": "P1", "item_id": item, "price": price, "options": {"size": "S", "color": "b"}}
            for item, price in items
        ],
        "status": status,
        "fulfillments": [],
        "payment_history": [{"transaction_type": "payment", "amount": amount, "payment_method_id": paid_by}],
    }


RETAIL: dict[str, Any] = {
    "products": {
        "P1": {
            "name": "Cup",
            "product_id": "P1",
            "variants": {
                "z1": {"item_id": "z1", "options": {"size": "S", "color": "é"}, "available": True, "price": 5},
                "a2": {"item_id": "a2", "options": {"size": "L", "color": "b"}, "available": True, "price": 7.5},
                "a3": {"item_id": "a3", "options": {}, "available": False, "price": 7.1},
                "a4": {"item_id": "a4", "options": {"size": "XL"}, "available": True, "price": 900},
            },
        },
        "P2": {"name": "Bowl", "product_id": "P2", "variants": {}},
    },
    "users": {
        "ann": {
            "user_id": "ann",
            "name": {"first_name": "Ann", "last_name": "Lee"},
            "address": ADDRESS,
            "email": "Ann@example.com",
            "payment_methods": {
                "paypal_1": {"source": "paypal", "id": "paypal_1"},
                "card_1": {"source": "credit_card", "id": "card_1", "brand": "visa", "last_four": "1234"},
                "gift_1": {"source": "gift_card", "id": "gift_1", "balance": 20},
            },
            "orders": ["#W1", "#W2", "#W3", "#W4"],
        }
    },
    "orders": {
        "#W1": _order(1, "pending", [("z1", 5), ("z1", 5), ("a2", 7.5)], "gift_1", 17.5),
        "#W2": _order(2, "delivered", [("z1", 5)], "card_1", 5),
        "#W3": _order(3, "pending", [("z1", 5)], "card_1", 5),
        "#W4": _order(4, "pending", [("z1", 5)], "lost", 5)
        | {
            "payment_history": [
                {"transaction_type": "payment", "amount": 1.0, "payment_method_id": "gift_1"},
                {"transaction_type": "payment", "amount": 4.0, "payment_method_id": "lost"},
            ]
        },
    },
}

SEATS = {"basic_economy": 3, "economy": 2, "business": 0}
PRICES = {"basic_economy": 50, "economy": 100, "business": 400}
OPEN = {"status": "available", "available_seats": SEATS, "prices": PRICES}


def _flight(
    number: str, origin: str, destination: str, times: tuple[str, str], dates: dict[str, Any]
) -> dict[str, Any]:
    return {
        "flight_number": number,
        "origin": origin,
        "destination": destination,
        "scheduled_departure_time_est": times[0],
        "scheduled_arrival_time_est": times[1],
        "dates": dates,
    }


AIRLINE: dict[str, Any] = {
    "flights": {
        "F1": _flight("F1", "JFK", "ORD", ("06:00:00", "08:00:00"), {"2024-05-16": OPEN, "2024-05-17": OPEN}),
        "F2": _flight("F2", "ORD", "SEA", ("09:00:00", "12:00:00"), {"2024-05-16": OPEN, "2024-05-17": OPEN}),
        "F3": _flight("F3", "ORD", "SEA", ("07:00:00", "10:00:00"), {"2024-05-16": {"status": "cancelled"}}),
        "F4": _flight("F4", "JFK", "ORD", ("22:00:00", "01:00:00+1"), {"2024-05-16": OPEN}),
    },
    "users": {
        "bob": {
            "user_id": "bob",
            "name": {"first_name": "Bob", "last_name": "Ray"},
            "address": {key: value for key, value in ADDRESS.items() if key != "address2"},
            "email": "bob@example.com",
            "dob": "1990-01-01",
            "payment_methods": {
                "gift_1": {"source": "gift_card", "id": "gift_1", "amount": 120},
                "cert_1": {"source": "certificate", "id": "cert_1", "amount": 100},
                "card_1": {"source": "credit_card", "id": "card_1", "brand": "visa", "last_four": "1234"},
            },
            "saved_passengers": [],
            "membership": "gold",
            "reservations": ["R1"],
        }
    },
    "reservations": {
        "R1": {
            "reservation_id": "R1",
            "user_id": "bob",
            "origin": "JFK",
            "destination": "ORD",
            "flight_type": "one_way",
            "cabin": "economy",
            "flights": [
                {"origin": "JFK", "destination": "ORD", "flight_number": "F1", "date": "2024-05-16", "price": 90}
            ],
            "passengers": [{"first_name": "Bob", "last_name": "Ray", "dob": "1990-01-01"}],
            "payment_history": [{"payment_id": "card_1", "amount": 90}],
            "created_at": "2024-05-01T00:00:00",
            "total_baggages": 1,
            "nonfree_baggages": 0,
            "insurance": "no",
        }
    },
}


def _task(name: str, **criteria: Any) -> dict[str, Any]:
    said = {
        "task_instructions": "Be brief.",
        "domain": "retail",
        "reason_for_call": "A cup.",
        "known_info": "You are Ann.",
    }
    return {"id": name, "user_scenario": {"instructions": said}, "evaluation_criteria": criteria or None}


CANCEL = {"name": "cancel_pending_order", "arguments": {"order_id": "#W3", "reason": "no longer needed"}}
FAILING = {"name": "cancel_pending_order", "arguments": {"order_id": "#W9", "reason": "no longer needed"}}
TASKS = [
    _task(
        "cancel", actions=[CANCEL, FAILING], communicate_info=["5.0", "Gift Card"], reward_basis=["DB", "COMMUNICATE"]
    ),
    _task("ask", actions=[], nl_assertions=["The agent is polite."], reward_basis=["DB", "NL_ASSERTION"]),
    _task("call", actions=[CANCEL], reward_basis=["ACTION", "ENV_ASSERTION"]),
    _task("free"),
]


@pytest.fixture(scope="session")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository as upstream's, with a shop and an airline of its own."""
    root = tmp_path_factory.mktemp("tau2-bench")
    for domain, rows in (("retail", RETAIL), ("airline", AIRLINE)):
        folder = root / "data" / "tau2" / "domains" / domain
        folder.mkdir(parents=True)
        tasks = TASKS if domain == "retail" else []
        (folder / "db.json").write_text(json.dumps(rows))
        (folder / "tasks.json").write_text(json.dumps(tasks))
        names = [task["id"] for task in tasks]
        splits = {"train": names[:1], "test": names[1:2], "base": names}
        (folder / "split_tasks.json").write_text(json.dumps(splits))
        (folder / "policy.md").write_text(f"# {domain} policy")
    return root


Ask = Callable[..., str]


def asker(world: World) -> Ask:
    """Returns a function from a call to the text that the model reads; errors begin with "Error: "."""

    def ask(name: str, **arguments: Any) -> str:
        text, is_error = respond(world, name, arguments)
        assert is_error == text.startswith("Error: ")
        return text

    return ask


@pytest.fixture
def retail(upstream: Path) -> World:
    return Folder("retail", upstream).world()


@pytest.fixture
def airline(upstream: Path) -> World:
    return Folder("airline", upstream).world()


@pytest.fixture(scope="session")
def real(reference_data: Path) -> Callable[[str], Environment[World]]:
    """The real domains, read once."""
    loaded: dict[str, Environment[World]] = {}

    def environment(domain: str) -> Environment[World]:
        if domain not in loaded:
            loaded[domain] = load(domain, data=reference_data / "tau2", nl_assertions="assume-true")
        return loaded[domain]

    return environment
