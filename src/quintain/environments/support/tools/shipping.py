"""Tools about parcels: where they are, where they should go, and claims against carriers."""

from __future__ import annotations

from typing import Any, Literal

import quintain as qn
from quintain.environments.support.desk import Desk, reading, shown, writing
from quintain.environments.support.schema.shop import Carrier, CarrierClaim, Order, Parcel, Scan

from .people import Line, Number

_OVER = ("delivered", "returned", "lost")


class Shipping(Desk):
    """Parcels and carriers."""

    @reading
    def track_parcel(self, parcel_id: Number) -> dict[str, Any]:
        """Show a parcel with its address, every scan (latest first), claims, and what its carrier can do.

        Args:
            parcel_id: Number of the parcel.
        """
        parcel = self.need(Parcel, parcel_id)
        scans = self.rows(Scan, "parcel_id = ? ORDER BY at DESC, id DESC", parcel_id)
        claims = self.rows(CarrierClaim, "parcel_id = ?", parcel_id)
        return shown(parcel, "carrier_id") | {
            "carrier": shown(self.need(Carrier, parcel.carrier_id)),
            "scans": [shown(row, "id", "parcel_id") for row in scans],
            "claims": [shown(row, "parcel_id") for row in claims],
        }

    @reading
    def find_parcel(self, tracking: Line) -> dict[str, Any]:
        """Find a parcel by its tracking number.

        Args:
            tracking: Such as VX482913377.
        """
        found = self.rows(Parcel, "tracking = ?", tracking.strip().upper())
        if not found:
            raise qn.ToolError(f"there is no parcel {tracking!r}")
        return {"id": found[0].id, "order_id": found[0].order_id, "status": found[0].status}

    @writing
    def redirect_parcel(self, parcel_id: Number, street: Line, postcode: Line, *, city: Line) -> str:
        """Have the carrier bring a parcel elsewhere in the same country. Needs a verified customer.

        Args:
            parcel_id: Number of the parcel.
            street: Street and house number.
            postcode: Postcode.
            city: City.
        """
        parcel = self.need(Parcel, parcel_id)
        carrier = self.need(Carrier, parcel.carrier_id)
        if not carrier.redirects:
            raise qn.ToolError(f"{carrier.name} does not redirect parcels")
        if parcel.status not in {"label", "in_transit", "held"}:
            raise qn.ToolError(f"parcel {parcel.tracking} is {parcel.status} and cannot be redirected any more")
        self.change(Parcel, parcel_id, street=street, postcode=postcode, city=city)
        self.audit("redirect_parcel", self.need(Order, parcel.order_id).customer_id, f"parcel {parcel_id}")
        return f"{carrier.name} brings {parcel.tracking} to {street}, {postcode} {city}"

    @writing
    def open_claim(self, parcel_id: Number, reason: Literal["lost", "not_received", "damaged"]) -> str:
        """Open a claim with the carrier of a parcel. It decides within days; see track_parcel.

        Args:
            parcel_id: Number of the parcel.
            reason: What happened.
        """
        parcel = self.need(Parcel, parcel_id)
        if self.count(CarrierClaim, "parcel_id = ? AND decided IS NULL", parcel_id):
            raise qn.ToolError(f"a claim for parcel {parcel.tracking} is open already")
        claim = self.add(CarrierClaim, parcel_id=parcel_id, reason=reason, opened=self.now)
        self.audit("open_claim", self.need(Order, parcel.order_id).customer_id, f"parcel {parcel_id}: {reason}")
        self.cue(f"claim:{parcel_id}")
        return f"claim {claim.id} was opened"

    def scanned(self, parcel_id: int, *, place: str, text: str, status: str | None = None) -> None:
        """The carrier has seen a parcel."""
        self.add(Scan, parcel_id=parcel_id, at=self.now, place=place, text=text)
        if status is not None:
            self.change(Parcel, parcel_id, status=status)

    def decided(self, parcel_id: int, decision: str) -> None:
        """The carrier has decided the open claims for a parcel."""
        for claim in self.rows(CarrierClaim, "parcel_id = ? AND decided IS NULL", parcel_id):
            self.change(CarrierClaim, claim.id, decided=self.now, decision=decision)
        if decision == "accepted" and self.need(Parcel, parcel_id).status not in _OVER:
            self.change(Parcel, parcel_id, status="lost")
