"""The airline's tools, down to what they change before they refuse; expectations were read off the reference."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from quintain.adapters.tau2.world import Ledger, World, same
from tests.adapters.conftest import AIRLINE, OPEN, Ask, asker

HELP = "\n    For further information visit https://errors.pydantic.dev/2.14/v/"
NO_DOB = f"input_value={{'first_name': 'B', 'last_name': 'R'}}, input_type=dict]{HELP}missing"
WRONG = (
    "7 validation errors for Reservation"
    "\ncabin\n  Input should be 'business', 'economy' or 'basic_economy' "
    f"[type=literal_error, input_value=5, input_type=int]{HELP}literal_error"
    "\npassengers.0.first_name\n  Field required "
    f"[type=missing, input_value={{}}, input_type=dict]{HELP}missing"
)
BOOKING: dict[str, Any] = {
    "user_id": "bob",
    "origin": "JFK",
    "destination": "SEA",
    "flight_type": "one_way",
    "cabin": "economy",
    "flights": [{"flight_number": "F1", "date": "2024-05-16"}],
    "passengers": [{"first_name": "Bob", "last_name": "Ray", "dob": "1990-01-01"}],
    "payment_methods": [{"payment_id": "card_1", "amount": 130}],
    "total_baggages": 0,
    "nonfree_baggages": 0,
    "insurance": "yes",
}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"user_id": "x"}, "User x not found"),
    ({"flights": [{"flight_number": "F9", "date": "2024-05-16"}]}, "Flight F9 not found"),
    ({"flights": [{"flight_number": "F1", "date": "2024-06-16"}]}, "Flight F1 not found on date 2024-06-16"),
    ({"flights": [{"flight_number": "F3", "date": "2024-05-16"}]}, "Flight F3 not available on date 2024-05-16"),
    ({"cabin": "business"}, "Not enough seats on flight F1"),
    ({"payment_methods": [{"payment_id": "x", "amount": 130}]}, "Payment method x not found"),
    ({"payment_methods": [{"payment_id": "gift_1", "amount": 130}]}, "Not enough balance in payment method gift_1"),
    ({"insurance": "no"}, "Payment amount does not add up, total price is 100, but paid 130"),
    ({"nonfree_baggages": "1"}, "unsupported operand type(s) for +=: 'int' and 'str'"),
    ({"flights": ["F1"]}, "'str' object has no attribute 'flight_number'"),
    ({"flights": None}, "'NoneType' object is not iterable"),
    (
        {"passengers": [{"first_name": "B", "last_name": "R"}]},
        f"1 validation error for Passenger\ndob\n  Field required [type=missing, {NO_DOB}",
    ),
    ({"insurance": "nox", "cabin": 5, "total_baggages": 1.5, "passengers": [{}, "x"]}, WRONG),
]


@pytest.fixture
def desk(airline: World) -> Ask:
    return asker(airline)


def test_booking_takes_money_and_seats(airline: World, desk: Ask) -> None:
    payments = [{"payment_id": "cert_1", "amount": 100}, {"payment_id": "gift_1", "amount": "30"}]
    booked = json.loads(desk("book_reservation", **(BOOKING | {"payment_methods": payments})))
    assert booked["reservation_id"] == "HATHAT"
    assert booked["payment_history"][1] == {"payment_id": "gift_1", "amount": 30}
    user = airline.document("users", "bob")
    assert user["payment_methods"].keys() == {"gift_1", "card_1"}
    assert (user["payment_methods"]["gift_1"]["amount"], user["reservations"]) == (90.0, ["R1", "HATHAT"])
    assert user["address"]["address2"] is None
    assert airline.document("flights", "F1")["dates"]["2024-05-16"]["available_seats"]["economy"] == 1
    for name in ("HATHAU", "HATHAV"):
        booked = json.loads(
            desk(
                "book_reservation",
                **(BOOKING | {"cabin": "basic_economy", "payment_methods": [{"payment_id": "card_1", "amount": 80}]}),
            )
        )
        assert booked["reservation_id"] == name
    assert desk("book_reservation", **BOOKING) == "Error: Too many reservations"


@pytest.mark.parametrize(("changes", "refusal"), REFUSED)
def test_bookings_that_are_refused(airline: World, desk: Ask, changes: dict[str, Any], refusal: str) -> None:
    before = airline.copy()
    assert desk("book_reservation", **(BOOKING | changes)).startswith(f"Error: {refusal}")
    assert same(before, airline)


def test_a_certificate_cannot_pay_twice_but_is_gone_once_it_did(airline: World, desk: Ask) -> None:
    twice = [{"payment_id": "cert_1", "amount": 65}, {"payment_id": "cert_1", "amount": 65}]
    assert desk("book_reservation", **(BOOKING | {"payment_methods": twice})) == "Error: 'cert_1'"
    assert "cert_1" not in airline.document("users", "bob")["payment_methods"]
    assert airline.document("reservations", "HATHAT") is None


def test_the_same_flight_twice_takes_its_seats_twice(airline: World, desk: Ask) -> None:
    twice = BOOKING | {"flights": BOOKING["flights"] * 2, "payment_methods": [{"payment_id": "card_1", "amount": 230}]}
    assert not desk("book_reservation", **twice).startswith("Error")
    assert airline.document("flights", "F1")["dates"]["2024-05-16"]["available_seats"]["economy"] == 0


def test_search_returns_the_flights_of_a_day(desk: Ask) -> None:
    (found,) = json.loads(desk("search_direct_flight", origin="ORD", destination="SEA", date="2024-05-16"))
    assert list(found) == [
        "flight_number",
        "origin",
        "destination",
        "status",
        "scheduled_departure_time_est",
        "scheduled_arrival_time_est",
        "date",
        "available_seats",
        "prices",
    ]
    assert (found["flight_number"], found["date"], found["available_seats"]) == ("F2", None, OPEN["available_seats"])
    pairs = json.loads(desk("search_onestop_flight", origin="JFK", destination="SEA", date="2024-05-16"))
    assert [[one["flight_number"] + one["date"][-2:] for one in pair] for pair in pairs] == [
        ["F116", "F216"],
        ["F416", "F217"],  # arrives after midnight
    ]
    assert desk("search_direct_flight", origin="JFK", destination="ORD", date=["x"]) == "Error: unhashable type: 'list'"
    assert desk("get_flight_status", flight_number="F3", date="2024-05-16") == "cancelled"
    assert len(json.loads(desk("list_all_airports"))) == 20


def test_changing_a_reservation(airline: World, desk: Ask) -> None:
    bags = "update_reservation_baggages"
    said = json.loads(desk(bags, reservation_id="R1", total_baggages=3, nonfree_baggages=2, payment_id="gift_1"))
    assert (said["total_baggages"], said["payment_history"][-1]) == (3, {"payment_id": "gift_1", "amount": 100})
    refusal = "Error: Gift card balance is not enough"
    assert desk(bags, reservation_id="R1", total_baggages=3, nonfree_baggages=3, payment_id="gift_1") == refusal
    refusal = "Error: Certificate cannot be used to update reservation"
    assert desk(bags, reservation_id="R1", total_baggages=3, nonfree_baggages=2, payment_id="cert_1") == refusal
    assert desk(bags, reservation_id="R1", total_baggages=3, nonfree_baggages=2, payment_id="x").endswith("not found")
    half = desk(bags, reservation_id="R1", total_baggages=3, nonfree_baggages=2.1, payment_id="gift_1")
    assert half.startswith(
        "Error: 1 validation error for Payment\namount\n  Input should be a valid integer, got a number"
    )
    assert airline.document("users", "bob")["payment_methods"]["gift_1"]["amount"] == pytest.approx(15)


def test_unchecked_fields_hold_whatever_was_written(airline: World, desk: Ask) -> None:
    odd: dict[str, Any] = {"z": 10**30, "a": None}
    said = desk(
        "update_reservation_baggages",
        reservation_id="R1",
        total_baggages=odd,
        nonfree_baggages=-1.5,
        payment_id="card_1",
    )
    assert '"total_baggages": {"z": 1000000000000000000000000000000, "a": null}, "nonfree_baggages": -1.5' in said
    said = desk("update_reservation_passengers", reservation_id="R1", passengers="B")
    assert '"passengers": "B"' in said
    said = desk("update_reservation_flights", reservation_id="R1", cabin=["x"], flights=[], payment_id="card_1")
    assert '"cabin": ["x"], "flights": []' in said
    assert airline.copy().document("reservations", "R1") == airline.document("reservations", "R1")


def test_changing_flights_and_passengers(desk: Ask) -> None:
    same_flight = [{"flight_number": "F1", "date": "2024-05-16"}]
    change = {"reservation_id": "R1", "cabin": "economy", "flights": same_flight, "payment_id": "card_1"}
    kept = json.loads(desk("update_reservation_flights", **change))
    assert (kept["flights"][0]["price"], len(kept["payment_history"])) == (90, 1)
    moved = json.loads(desk("update_reservation_flights", **(change | {"cabin": "basic_economy"})))
    assert (moved["flights"][0]["price"], moved["payment_history"][-1]["amount"], moved["cabin"]) == (
        50,
        -40,
        "basic_economy",
    )
    assert desk("update_reservation_flights", **(change | {"cabin": "first"})) == "Error: 'first'"
    people = [{"first_name": "Al", "last_name": "Ray", "dob": "1999-09-09", "nickname": "x"}]
    renamed = json.loads(desk("update_reservation_passengers", reservation_id="R1", passengers=people))
    assert renamed["passengers"] == [{"first_name": "Al", "last_name": "Ray", "dob": "1999-09-09"}]
    refusal = "Error: Number of passengers does not match"
    assert desk("update_reservation_passengers", reservation_id="R1", passengers=people * 2) == refusal


def test_cancelling_gives_every_payment_back(desk: Ask) -> None:
    said = json.loads(desk("cancel_reservation", reservation_id="R1"))
    assert (said["status"], [p["amount"] for p in said["payment_history"]]) == ("cancelled", [90, -90])
    assert desk("get_reservation_details", reservation_id="R1") == json.dumps(said)
    assert desk("cancel_reservation", reservation_id="x") == "Error: Reservation x not found"


def test_certificates_are_added_to_a_user(airline: World, desk: Ask) -> None:
    said = desk("send_certificate", user_id="bob", amount="7e1")
    assert said == "Certificate certificate_3221322 added to user bob with amount 7e1."
    methods = airline.document("users", "bob")["payment_methods"]
    assert methods["certificate_3221322"] == {"source": "certificate", "id": "certificate_3221322", "amount": 70.0}
    assert desk("send_certificate", user_id="bob", amount=None).startswith("Error: 1 validation error for Certificate")
    desk("send_certificate", user_id="bob", amount=1)
    desk("send_certificate", user_id="bob", amount=True)
    assert desk("send_certificate", user_id="bob", amount=1) == "Error: Too many certificates"


def test_a_ledger_names_databases_as_the_reference_does(airline: World, desk: Ask) -> None:
    ledger = Ledger(airline.copy())

    def whole() -> str:
        rows = {name: {key: airline.document(name, key) for key in airline.keys(name)} for name in airline.sections}
        return hashlib.sha256(json.dumps(rows, sort_keys=True, default=str).encode()).hexdigest()

    assert ledger.digest(airline) == whole()
    dates = {key: flight["dates"] for key, flight in AIRLINE["flights"].items()}
    assert {key: airline.document("flights", key)["dates"] for key in dates} == dates
    desk("book_reservation", **BOOKING)
    desk("cancel_reservation", reservation_id="R1")
    assert ledger.digest(airline) == whole()
