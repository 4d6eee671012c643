"""A contract is checked where it is declared, and no actor sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain import codec
from quintain.contract import NOTHING, Contract
from quintain.table import Table
from quintain.tools import collect


class Ticket(msgspec.Struct):
    status: str = "open"
    address: dict[str, str] = {}


class Crm(qn.State):
    tickets: Table[Ticket] = msgspec.field(default_factory=lambda: Table(Ticket))
    notes: list[str] = []

    @qn.tool(
        reads=("tickets",), writes=(), order="id desc", unit={"fee": "cents"}, filters={"status": "tickets.status"}
    )
    def search(self, status: str = "") -> list[str]:
        """Search.

        Args:
            status: Its status.
        """
        return [key for key in self.tickets if status in ("", self.tickets[key].status)]

    @qn.tool
    def note(self, text: str) -> None:
        """Note.

        Args:
            text: Words.
        """
        self.notes.append(text)


class World(qn.State):
    crm: Crm = msgspec.field(default_factory=Crm)

    @qn.tool(writes=("crm.tickets.address.city", "crm.notes"))
    def move(self) -> None:
        """Move."""


def test_contract_is_kept_with_its_tool_and_not_shown() -> None:
    tools = collect(World)
    assert tools["crm_search"].contract == Contract(
        reads=("tickets",), writes=(), order="id desc", unit={"fee": "cents"}, filters={"status": "tickets.status"}
    )
    assert tools["crm_note"].contract == NOTHING
    assert tools["move"].contract.names == ("crm.tickets.address.city", "crm.notes")
    tool = tools["crm_search"]
    assert "cents" not in codec.text((tool.name, tool.description, tool.parameters))


def test_audit_reads_names_of_parts_as_the_state_shows_them() -> None:
    from quintain.audit.kernel.adapter import SubjectAdapter
    from quintain.audit.subjects import native

    env = qn.Environment(
        "desk",
        tasks=lambda split: [qn.Task(id="t", prompt="Look.", start=World())],
        harness=qn.ToolLoop(),
        verifier=qn.Verifier(solved),
        state=World,
    )
    adapter = SubjectAdapter(native.of(env)())
    assert adapter.contracts() == {
        "crm_search": Contract(
            reads=("crm.tickets",),
            writes=(),
            order="id desc",
            unit={"fee": "cents"},
            filters={"status": "crm.tickets.status"},
        ),
        "move": Contract(writes=("crm.tickets.address.city", "crm.notes")),
    }
    assert "contract" not in codec.text(msgspec.to_builtins(adapter.tools()))


@qn.reward
def solved(view: qn.EpisodeView[World]) -> float:
    return 1.0


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"writes": "tickets"}, "the contract of a tool: Expected `array | null`, got `str` - at `$.writes`"),
        ({"order": "id down"}, "at `$.order`"),
        ({"filters": {"status": 3}}, "at `$.filters"),
    ],
)
def test_contract_of_a_wrong_type_is_refused(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(qn.DefinitionError) as caught:
        qn.tool(**declared)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"reads": ("shared",)}, "declares 'shared', but Desk has the fields ['tickets', 'count']"),
        ({"writes": ("tickets.state",)}, "declares 'tickets.state', but Ticket has the fields ['status', 'address']"),
        ({"filters": ("state",)}, "filters by 'state', but has the parameters ['status']"),
        ({"filters": {"status": "ticket.status"}}, "declares 'ticket.status'"),
    ],
)
def test_unknown_name_is_refused_with_its_place(declared: dict[str, Any], message: str) -> None:
    class Desk(qn.State):
        tickets: dict[str, Ticket] = {}
        count: int = 0

        @qn.tool(**declared)
        def search(self, status: str) -> None:
            """Search.

            Args:
                status: Its status.
            """

    with pytest.raises(qn.DefinitionError) as caught:
        collect(Desk)
    assert message in str(caught.value)
    assert f"{Path(__file__).name}, line " in str(caught.value)


def test_names_below_untyped_rows_are_not_checked() -> None:
    class Desk(qn.State):
        rows: dict[str, Any] = {}

        @qn.tool(writes=("rows.anything",))
        def write(self) -> None:
            """Write."""

    assert collect(Desk)["write"].contract.writes == ("rows.anything",)
