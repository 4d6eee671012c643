"""The airline domain: a booking desk whose agent may book, change and cancel reservations."""

from __future__ import annotations

import typing
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, ClassVar

from quintain.adapters.tau2.calculator import calculated
from quintain.adapters.tau2.convention import action
from quintain.adapters.tau2.record import builtin, editing, found, is_list, kept, opened, put, shown
from quintain.adapters.tau2.validation import construct, constructed
from quintain.adapters.tau2.world import World
from quintain.errors import ToolError
from quintain.table import Table

from .payments import charge, fare, pay
from .rows import (
    AIRPORTS,
    Airport,
    Available,
    Cabin,
    Certificate,
    DirectFlight,
    Flight,
    FlightDate,
    FlightInfo,
    FlightType,
    Insurance,
    Passenger,
    Payment,
    Reservation,
    ReservationFlight,
    User,
)

_NOW = "2024-05-15T15:00:00"
_NEW_RESERVATIONS = ("HATHAT", "HATHAU", "HATHAV")
_NEW_CERTIFICATES = ("certificate_3221322", "certificate_3221323", "certificate_3221324")


class Airline(World, kw_only=True):
    """The airline's database, and the tools of its agent."""

    toolkit: ClassVar[str] = "AirlineTools"
    sections: ClassVar[tuple[str, ...]] = ("flights", "users", "reservations")

    flights: Table[Flight]
    dates: Table[FlightDate]
    """Status of each flight on each day, by "flight number day"."""
    users: Table[User]
    reservations: Table[Reservation]

    def document(self, section: str, key: str) -> Any:
        row = super().document(section, key)
        if section == "flights" and row is not None:
            # The reference keeps the dates inside the flight.
            row["dates"] = {day: builtin(self.dates[_place(key, day)]) for day in row.pop("days")}
        return row

    def changed(self, other: World, section: str) -> set[str]:
        keys = super().changed(other, section)
        if section == "flights":
            keys |= {place.split(" ", 1)[0] for place in super().changed(other, "dates")}
        return keys

    @action
    def book_reservation(
        self,
        user_id: str,
        *,
        origin: str,
        destination: str,
        flight_type: FlightType,
        cabin: Cabin,
        flights: list[FlightInfo],
        passengers: list[Passenger],
        payment_methods: list[Payment],
        total_baggages: int,
        nonfree_baggages: int,
        insurance: Insurance,
    ) -> str:
        """Book a trip and take the payment; the payments must add up to the price. Returns the reservation.

        Args:
            user_id: Who books, such as 'sara_doe_496'.
            origin: IATA code, such as 'SFO'.
            destination: IATA code, such as 'JFK'.
            flight_type: One way or round trip.
            cabin: The same for all flights and passengers.
            flights: Every flight of the trip, in order.
            passengers: Who flies.
            payment_methods: Which of the user's payment methods pays how much.
            total_baggages: Checked bags of the whole reservation.
            nonfree_baggages: How many of them cost extra.
            insurance: Whether to insure the trip.
        """
        flights, passengers = constructed(FlightInfo, flights), constructed(Passenger, passengers)
        payments: list[Payment] = constructed(Payment, payment_methods)
        with editing(self.users, user_id, f"User {user_id} not found") as user:
            # In the order of a reservation's fields.
            trip: tuple[Any, ...] = (self._new_reservation(), user_id, origin, destination, flight_type, cabin, [])
            rest: tuple[Any, ...] = (passengers, payments, _NOW, total_baggages, nonfree_baggages, insurance)
            fields = dict(zip(Reservation.__struct_fields__, trip + rest, strict=False))
            reservation = construct(Reservation, fields)
            reservation.flights = [self._seats(info, cabin, len(passengers)) for info in flights]
            price = fare(reservation, bags=nonfree_baggages)
            pay(user, payments, price)
            for flight in reservation.flights:
                self._take_seats(flight, cabin, len(passengers))
            self.reservations[reservation.reservation_id] = reservation
            user.reservations.append(reservation.reservation_id)
        return shown(reservation)

    @action
    def calculate(self, expression: str) -> str:
        """Work out an arithmetic expression, rounded to two decimals.

        Args:
            expression: Numbers, the operators + - * /, parentheses and spaces, such as '2 + 2'.
        """
        return calculated(expression)

    @action
    def cancel_reservation(self, reservation_id: str) -> str:
        """Cancel a whole reservation and refund its payments. Returns the reservation.

        Args:
            reservation_id: Such as 'ZFA04Y'.
        """
        with editing(self.reservations, reservation_id, f"Reservation {reservation_id} not found") as reservation:
            history = reservation.payment_history
            history += [Payment(payment.payment_id, -payment.amount) for payment in history]
            reservation.status = "cancelled"
        return shown(reservation)

    @action
    def get_reservation_details(self, reservation_id: str) -> str:
        """Look up a reservation.

        Args:
            reservation_id: Such as '8JX2WO'.
        """
        return shown(found(self.reservations, reservation_id, f"Reservation {reservation_id} not found"))

    @action
    def get_user_details(self, user_id: str) -> str:
        """Look up a customer: profile, payment methods, saved passengers and reservation ids.

        Args:
            user_id: Such as 'sara_doe_496'.
        """
        return shown(found(self.users, user_id, f"User {user_id} not found"))

    @action
    def list_all_airports(self) -> str:
        """List the airports that are served, with their cities."""
        return shown([Airport(iata, city) for iata, city in AIRPORTS.items()])

    @action
    def search_direct_flight(self, origin: str, destination: str, date: str) -> str:
        """Find flights between two airports that can still be booked on a date.

        Args:
            origin: IATA code, such as 'JFK'.
            destination: IATA code, such as 'LAX'.
            date: Such as '2024-01-01'.
        """
        return shown(self._search(list(self.flights.values()), date, origin=origin, destination=destination))

    @action
    def search_onestop_flight(self, origin: str, destination: str, date: str) -> str:
        """Find pairs of bookable flights between two airports, with one change of planes. Returns a list of pairs.

        Args:
            origin: IATA code, such as 'JFK'.
            destination: IATA code, such as 'LAX'.
            date: Day of the first flight, such as '2024-05-01'.
        """
        flights = list(self.flights.values())
        pairs: list[list[DirectFlight]] = []
        for first in self._search(flights, date, origin=origin):
            first.date = date
            arrival = first.scheduled_arrival_time_est
            next_date = f"2024-05-{int(date[-2:]) + 1}" if "+1" in arrival else date
            for second in self._search(
                flights, next_date, origin=first.destination, destination=destination, leave_after=arrival
            ):
                second.date = next_date
                pairs.append([first, second])
        return shown(pairs)

    @action
    def send_certificate(self, user_id: str, amount: int) -> str:
        """Give a customer a travel certificate. It is money: be careful.

        Args:
            user_id: Such as 'sara_doe_496'.
            amount: In dollars.
        """
        with editing(self.users, user_id, f"User {user_id} not found") as user:
            for name in _NEW_CERTIFICATES:
                if name not in dict(user.payment_methods):
                    certificate = construct(Certificate, {"id": name, "amount": amount})
                    user.payment_methods = put(user.payment_methods, name, certificate)
                    return f"Certificate {name} added to user {user_id} with amount {amount}."
            raise ToolError("Too many certificates")

    @action
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the customer over to a human agent.

        Only when they explicitly ask for one, or when neither the policy nor the tools allow what they need.

        Args:
            summary: What the customer's issue is.
        """
        return "Transfer successful"

    @action
    def update_reservation_baggages(
        self, reservation_id: str, *, total_baggages: int, nonfree_baggages: int, payment_id: str
    ) -> str:
        """Change the checked bags of a reservation; added ones that aren't free are paid for. Returns the reservation.

        Args:
            reservation_id: Such as 'ZFA04Y'.
            total_baggages: Checked bags of the whole reservation from now on.
            nonfree_baggages: How many of them cost extra.
            payment_id: From the customer's profile, such as 'credit_card_7815826' or 'gift_card_7815826'.
        """
        with self._changing(reservation_id) as (reservation, user):
            price = 50 * max(0, nonfree_baggages - opened(reservation.nonfree_baggages))
            charge(reservation, user, payment_id, price=price)
            reservation.total_baggages = kept(total_baggages, fits=_is_small_int(total_baggages))
            reservation.nonfree_baggages = kept(nonfree_baggages, fits=_is_small_int(nonfree_baggages))
        return shown(reservation)

    @action
    def update_reservation_flights(
        self, reservation_id: str, *, cabin: Cabin, flights: list[FlightInfo], payment_id: str
    ) -> str:
        """Change the flights or the cabin of a reservation; the difference is paid or refunded.

        Returns the reservation.

        Args:
            reservation_id: Such as 'ZFA04Y'.
            cabin: The cabin from now on, for all flights.
            flights: Every flight of the reservation from now on, also those that stay.
            payment_id: From the customer's profile, such as 'credit_card_7815826' or 'gift_card_7815826'.
        """
        flights = constructed(FlightInfo, flights)
        with self._changing(reservation_id) as (reservation, user):
            count = len(opened(reservation.passengers))
            old = reservation.flights
            new: list[ReservationFlight] = []
            for info in flights:
                stays = [f for f in old if (f.flight_number, f.date) == (info.flight_number, info.date)]
                new.append(
                    stays[0] if stays and cabin == opened(reservation.cabin) else self._seats(info, cabin, count)
                )
            price = sum(flight.price for flight in new) * count - sum(flight.price for flight in old) * count
            charge(reservation, user, payment_id, price=price)
            reservation.flights = new
            reservation.cabin = kept(cabin, fits=cabin in typing.get_args(Cabin))
        return shown(reservation)

    @action
    def update_reservation_passengers(self, reservation_id: str, passengers: list[Passenger]) -> str:
        """Change who flies on a reservation; their number must stay. Returns the reservation.

        Args:
            reservation_id: Such as 'ZFA04Y'.
            passengers: All passengers of the reservation from now on.
        """
        passengers = constructed(Passenger, passengers)
        with editing(self.reservations, reservation_id, f"Reservation {reservation_id} not found") as reservation:
            if len(passengers) != len(opened(reservation.passengers)):
                raise ToolError("Number of passengers does not match")
            reservation.passengers = kept(passengers, fits=_are_passengers(passengers))
        return shown(reservation)

    @action
    def get_flight_status(self, flight_number: str, date: str) -> str:
        """Look up how a flight stands on a date, such as 'available', 'delayed' or 'landed'.

        Args:
            flight_number: Such as 'HAT001'.
            date: Such as '2024-05-15'.
        """
        _, day = self._flight(flight_number, date)
        return str(builtin(day)["status"])

    @contextmanager
    def _changing(self, reservation_id: str) -> Generator[tuple[Reservation, User]]:
        """A reservation and who made it, to be changed together."""
        with (
            editing(self.reservations, reservation_id, f"Reservation {reservation_id} not found") as reservation,
            editing(self.users, reservation.user_id, f"User {reservation.user_id} not found") as user,
        ):
            yield reservation, user

    def _new_reservation(self) -> str:
        for name in _NEW_RESERVATIONS:
            if name not in self.reservations:
                return name
        raise ToolError("Too many reservations")

    def _flight(self, number: str, date: str) -> tuple[Flight, FlightDate]:
        flight = found(self.flights, number, f"Flight {number} not found")
        return flight, found(self.dates, _place(number, date), f"Flight {number} not found on date {date}")

    def _seats(self, info: FlightInfo, cabin: str, count: int) -> ReservationFlight:
        """Room for `count` passengers, at today's price; nothing is taken yet."""
        number, date = info.flight_number, info.date
        flight, day = self._flight(number, date)
        if not isinstance(day, Available):
            raise ToolError(f"Flight {number} not available on date {date}")
        if dict(day.available_seats)[cabin] < count:
            raise ToolError(f"Not enough seats on flight {number}")
        return ReservationFlight(number, flight.origin, flight.destination, date, dict(day.prices)[cabin])

    def _take_seats(self, flight: ReservationFlight, cabin: str, count: int) -> None:
        place = _place(flight.flight_number, flight.date)
        day = self.dates[place]
        assert isinstance(day, Available), place
        day.available_seats = put(day.available_seats, cabin, dict(day.available_seats)[cabin] - count)
        self.dates[place] = day

    def _search(
        self,
        flights: list[Flight],
        date: str,
        *,
        origin: str | None = None,
        destination: str | None = None,
        leave_after: str = "",
    ) -> list[DirectFlight]:
        """Returns the flights that can be booked on a date; None means any airport."""
        results: list[DirectFlight] = []
        for flight in flights:
            if origin not in (None, flight.origin) or destination not in (None, flight.destination):
                continue
            day = self.dates.get(_place(flight.flight_number, date))
            if isinstance(day, Available) and flight.scheduled_departure_time_est >= leave_after:
                results.append(
                    DirectFlight(
                        flight.flight_number,
                        flight.origin,
                        flight.destination,
                        "available",
                        flight.scheduled_departure_time_est,
                        flight.scheduled_arrival_time_est,
                        None,
                        day.available_seats,
                        day.prices,
                    )
                )
        return results


def _are_passengers(value: Any) -> bool:
    return is_list(value) and all(isinstance(item, Passenger) for item in value)


def _is_small_int(value: Any) -> bool:
    return type(value) is int and abs(value) < 2**63


def _place(number: str, date: str) -> str:
    hash(date)  # the reference looks it up in a dict: what cannot be a key is refused as such
    return f"{number} {date}"
