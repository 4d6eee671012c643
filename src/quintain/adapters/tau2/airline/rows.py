"""Rows of the airline database. Times are in EST; dates are texts such as "2024-05-15". Amounts are in dollars."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from quintain.adapters.tau2.record import Pairs, Verbatim

PAIRED = frozenset({"available_seats", "payment_methods", "prices"})
"""Names of the mappings inside rows."""

Cabin = Literal["business", "economy", "basic_economy"]
FlightType = Literal["round_trip", "one_way"]
Insurance = Literal["yes", "no"]

AIRPORTS = {
    "SFO": "San Francisco",
    "JFK": "New York",
    "LAX": "Los Angeles",
    "ORD": "Chicago",
    "DFW": "Dallas",
    "DEN": "Denver",
    "SEA": "Seattle",
    "ATL": "Atlanta",
    "MIA": "Miami",
    "BOS": "Boston",
    "PHX": "Phoenix",
    "IAH": "Houston",
    "LAS": "Las Vegas",
    "MCO": "Orlando",
    "EWR": "Newark",
    "CLT": "Charlotte",
    "MSP": "Minneapolis",
    "DTW": "Detroit",
    "PHL": "Philadelphia",
    "LGA": "LaGuardia",
}
"""Cities by IATA code, in the order in which they are listed."""


class Airport(msgspec.Struct):
    """An airport by its IATA code."""

    iata: str
    city: str


class Flight(msgspec.Struct):
    """A connection. How it stands on a date is a row of its own: a booking changes that and leaves this alone."""

    flight_number: str
    origin: str
    destination: str
    scheduled_departure_time_est: str
    scheduled_arrival_time_est: str
    """The next day where it ends in "+1"."""
    days: list[str]
    """Days on which it is flown."""


class Available(msgspec.Struct, tag_field="status", tag="available"):
    """Can be booked: seats left and prices by cabin."""

    available_seats: Pairs[int]
    prices: Pairs[int]


class OnTime(msgspec.Struct, tag_field="status", tag="on time"):
    """About to leave."""

    estimated_departure_time_est: str
    estimated_arrival_time_est: str


class Flying(msgspec.Struct, tag_field="status", tag="flying"):
    """In the air."""

    actual_departure_time_est: str
    estimated_arrival_time_est: str


class Landed(msgspec.Struct, tag_field="status", tag="landed"):
    """Flight that has landed."""

    actual_departure_time_est: str
    actual_arrival_time_est: str


class Cancelled(msgspec.Struct, tag_field="status", tag="cancelled"):
    """Does not fly."""


class Delayed(msgspec.Struct, tag_field="status", tag="delayed"):
    """Will leave later than planned."""

    estimated_departure_time_est: str
    estimated_arrival_time_est: str


FlightDate = Available | Landed | Cancelled | Delayed | Flying | OnTime


class DirectFlight(msgspec.Struct):
    """A flight that can be booked, as a search finds it."""

    flight_number: str
    origin: str
    destination: str
    status: str
    scheduled_departure_time_est: str
    scheduled_arrival_time_est: str
    date: str | None
    available_seats: Pairs[int]
    prices: Pairs[int]


class FlightInfo(msgspec.Struct):
    """Number and date of a flight."""

    flight_number: Annotated[str, msgspec.Meta(description="Such as 'HAT001'.")]
    date: Annotated[str, msgspec.Meta(description="Day of departure, such as '2024-05-01'.")]


class ReservationFlight(msgspec.Struct):
    """One flight of a reservation, at the price of one seat when it was booked."""

    flight_number: str
    origin: str
    destination: str
    date: str
    price: int


class Passenger(msgspec.Struct):
    """A passenger of a reservation."""

    first_name: str
    last_name: str
    dob: Annotated[str, msgspec.Meta(description="Date of birth, such as '1990-04-05'.")]


class Payment(msgspec.Struct):
    """Money taken, or given back where the amount is negative."""

    payment_id: Annotated[str, msgspec.Meta(description="A payment method of the user's profile.")]
    amount: Annotated[int, msgspec.Meta(description="In dollars.")]


class CreditCard(msgspec.Struct, tag_field="source", tag="credit_card"):
    """A payment method without a balance."""

    id: str
    brand: str
    last_four: str


class GiftCard(msgspec.Struct, tag_field="source", tag="gift_card"):
    """A payment method that can be used bit by bit."""

    id: str
    amount: float


class Certificate(msgspec.Struct, tag_field="source", tag="certificate"):
    """A payment method that is gone when it was used once."""

    id: str
    amount: float


PaymentMethod = CreditCard | GiftCard | Certificate


class Name(msgspec.Struct):
    """Name of a person."""

    first_name: str
    last_name: str


class Address(msgspec.Struct, kw_only=True):
    """Address of a person."""

    address1: str
    address2: str | None = None
    city: str
    country: str
    state: str
    zip: str


class User(msgspec.Struct):
    """A customer, with payment methods and reservations by their ids."""

    user_id: str
    name: Name
    address: Address
    email: str
    dob: str
    payment_methods: Pairs[PaymentMethod]
    saved_passengers: list[Passenger]
    membership: Literal["gold", "silver", "regular"]
    reservations: list[str]


class Reservation(msgspec.Struct):
    """A booking, and what became of it.

    The reference checks the fields that may be `Verbatim` when a reservation is made, and never again.
    """

    reservation_id: str
    user_id: str
    origin: str
    destination: str
    flight_type: FlightType
    cabin: Cabin | Verbatim
    flights: list[ReservationFlight]
    passengers: list[Passenger] | Verbatim
    payment_history: list[Payment]
    created_at: str
    total_baggages: int | Verbatim
    nonfree_baggages: int | Verbatim
    insurance: Insurance
    status: Literal["cancelled"] | None = None
