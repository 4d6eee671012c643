"""A landlord's repairs desk: tickets pass through states by rules. Each `env_<bug>` has one bug."""

import dataclasses
import random
from typing import Any, Literal

import quintain as qn

TROUBLES = {
    "plumbing": ("dripping tap", "blocked drain", "cold radiator", "leak under the sink"),
    "electrics": ("dead socket", "flickering light", "broken doorbell", "tripping fuse"),
    "joinery": ("jammed window", "loose banister", "broken door lock", "warped cupboard"),
}
BLOCKS = {"Elm": "Mrs Osei", "Oak": "Mr Lindqvist", "Ash": "Ms Ferreira"}
TENANTS = ("Abara", "Bianchi", "Castell", "Dufour", "Eriksen", "Farouk", "Gruber", "Hassan", "Ivanova", "Joshi")
FIRMS = ("Baxter", "Coyle", "Doyle", "Everett", "Finch", "Grimes", "Hobbs", "Imlach", "Jessop")
CLERK_LIMIT = 250
Block, Trade = Literal["Elm", "Oak", "Ash"], Literal["plumbing", "electrics", "joinery"]
TicketState = Literal["", "reported", "triaged", "assigned", "ordered", "done", "closed"]
Severity, Liable = Literal["routine", "urgent", "emergency"], Literal["landlord", "tenant"]

RULES = f"""You are the clerk of a landlord's repairs desk. The rules of the house:
1. A ticket is reported, then triaged, assigned, ordered, done and closed.
2. Where the landlord is liable, assign the cheapest insured contractor of the trade; in an emergency, the cheapest
   insured one who works at all hours.
3. You approve orders up to {CLERK_LIMIT} EUR yourself, as "clerk"; dearer ones need the block's manager:
   {", ".join(f"{manager} for {block}" for block, manager in BLOCKS.items())}.
4. Where the tenant is liable, close the ticket as "charged" after triage, without a contractor.
5. Work that is done is closed as "fixed".
6. Change no ticket that you were not asked about."""


@dataclasses.dataclass
class Ticket:
    block: str
    flat: int
    tenant: str
    trade: str
    trouble: str
    state: str = "reported"
    severity: str = ""
    liable: str = ""
    contractor: str = ""
    approver: str = ""
    outcome: str = ""


@dataclasses.dataclass
class Contractor:
    name: str
    trade: str
    price: int  # EUR
    insured: bool
    all_hours: bool


class Desk(qn.State):
    tickets: qn.Table[Ticket]
    contractors: qn.Table[Contractor]

    @qn.tool
    def find_tickets(self, block: Block, state: TicketState = "") -> list[dict[str, Any]]:
        """List the tickets of a block.

        Args:
            block: Name of the block.
            state: Only tickets in this state; all if empty.
        """
        return self._listed(block, state)

    @qn.tool
    def list_contractors(self, trade: Trade) -> list[dict[str, Any]]:
        """List the contractors of a trade, the cheapest first; prices are in EUR.

        Args:
            trade: The trade.
        """
        return self._offers(trade)

    @qn.tool
    def triage(self, ticket: str, severity: Severity, liable: Liable) -> str:
        """Rate a reported ticket.

        Args:
            ticket: Number of the ticket, such as R3.
            severity: How soon it must be repaired.
            liable: Who has to pay.
        """
        row = self._ticket(ticket, "reported")
        row.severity, row.liable, row.state = severity, liable, "triaged"
        return self._save(ticket, row)

    @qn.tool
    def assign(self, ticket: str, contractor: str) -> str:
        """Assign a contractor to a triaged ticket for which the landlord is liable.

        Args:
            ticket: Number of the ticket.
            contractor: Number of the contractor, such as K2.
        """
        row = self._ticket(ticket, "triaged")
        if row.liable != "landlord":
            raise qn.ToolError(f"the tenant is liable for {ticket}")
        key = self._chosen(contractor, row.trade)
        firm = self.contractors[key]
        if firm.trade != row.trade or not firm.insured:
            raise qn.ToolError(f"{firm.name} does {firm.trade}, {'insured' if firm.insured else 'uninsured'}")
        row.contractor, row.state = key, "assigned"
        return self._save(ticket, row)

    @qn.tool
    def order(self, ticket: str, approver: str) -> str:
        """Order the work of an assigned ticket.

        Args:
            ticket: Number of the ticket.
            approver: Who approves the price: "clerk", or the name of the block's manager.
        """
        row = self._ticket(ticket, "assigned")
        price = self.contractors[row.contractor].price
        if approver not in ("clerk", BLOCKS[row.block]):
            raise qn.ToolError(f"{approver} may not approve orders for {row.block}")
        if approver == "clerk" and price > CLERK_LIMIT:
            raise qn.ToolError(f"the price is {price} EUR, and a clerk approves up to {CLERK_LIMIT} EUR")
        row.approver, row.state = approver, "ordered"
        return self._save(ticket, row)

    @qn.tool
    def close(self, ticket: str, outcome: Literal["fixed", "charged"]) -> str:
        """Close a ticket: as "fixed" if it is done, as "charged" if it is triaged and the tenant is liable.

        Args:
            ticket: Number of the ticket.
            outcome: Why it is closed.
        """
        row = self._ticket(ticket, "done" if outcome == "fixed" else "triaged")
        if outcome == "charged" and row.liable != "tenant":
            raise qn.ToolError(f"the landlord is liable for {ticket}")
        row.outcome, row.state = outcome, "closed"
        return self._save(ticket, row)

    def _ticket(self, ticket: str, state: str) -> Ticket:
        if (row := self.tickets.get(ticket)) and row.state == state:
            return row
        raise qn.ToolError(f"{ticket} is {row.state}, it must be {state}" if row else f"there is no ticket {ticket!r}")

    def _listed(self, block: str, state: str) -> list[dict[str, Any]]:
        rows = [(key, row) for key, row in self.tickets.items() if row.block == block and state in ("", row.state)]
        return [{"ticket": key, **dataclasses.asdict(row)} for key, row in rows]

    def _save(self, ticket: str, row: Ticket) -> str:
        self.tickets[ticket] = row
        return f"{ticket} is {row.state}"

    def _offers(self, trade: str) -> list[dict[str, Any]]:
        rows = [(key, row) for key, row in self.contractors.items() if row.trade == trade]
        return [{"contractor": key, **dataclasses.asdict(row)} for key, row in sorted(rows, key=self._rank)]

    def _rank(self, item: tuple[str, Contractor]) -> Any:
        return item[1].price

    def _chosen(self, contractor: str, trade: str) -> str:
        if contractor not in self.contractors:
            raise qn.ToolError(f"there is no contractor {contractor!r}")
        return contractor


def _draw(rng: random.Random, low: int, high: int) -> tuple[dict[str, Ticket], dict[str, Contractor]]:
    firms: list[Contractor] = []
    for number, trade in enumerate(TROUBLES):
        insured, hours = [True, True, False], [True, True, False]
        rng.shuffle(insured)
        rng.shuffle(hours)
        names, prices = FIRMS[3 * number : 3 * number + 3], rng.sample(range(low, high, 5), 3)
        firms += map(Contractor, names, [trade] * 3, prices, insured, hours)
    rng.shuffle(firms)
    tickets: dict[str, Ticket] = {}
    places = rng.sample([(block, flat) for block in BLOCKS for flat in range(1, 10)], 10)
    for number, ((block, flat), tenant) in enumerate(zip(places, rng.sample(TENANTS, 10), strict=True), 1):
        trade = rng.choice(list(TROUBLES))
        row = Ticket(block, flat, tenant, trade, rng.choice(TROUBLES[trade]))
        if number > 6:
            price, at = min((firm.price, n) for n, firm in enumerate(firms, 1) if firm.trade == trade and firm.insured)
            row.state, row.severity, row.liable = ("done", "ordered")[number % 2], "routine", "landlord"
            row.contractor, row.approver = f"K{at}", "clerk" if price <= CLERK_LIMIT else BLOCKS[block]
        tickets[f"R{number}"] = row
    return tickets, {f"K{at}": firm for at, firm in enumerate(firms, 1)}


def make(split: str, n: int, world: type[Desk] = Desk) -> qn.Task[Desk]:
    """Returns task n of a split; its family is n modulo 4."""
    rng = random.Random(f"repairs/{split}/{n}")  # noqa: S311
    family = ("order", "orders", "charge", "sweep")[n % 4]
    tickets, firms = _draw(rng, *((80, 240) if n % 8 < 4 else (260, 1400)))
    truth: dict[str, dict[str, str]] = {}
    calls: list[tuple[str, dict[str, Any]]] = []
    if family in ("order", "orders"):
        keys = rng.sample(["R1", "R2", "R3", "R4"], 1 if family == "order" else 2)
        severity = rng.choice(("routine", "urgent", "emergency"))
        places = " and ".join(f"{key} in {tickets[key].block}" for key in keys)
        prompt = f"Get these repairs ordered, at the landlord's cost. Severity: {severity}. Tickets: {places}."
        for key in keys:
            row = tickets[key]
            fit = [(firm.price, at) for at, firm in firms.items() if firm.trade == row.trade and firm.insured]
            price, firm = min(one for one in fit if severity != "emergency" or firms[one[1]].all_hours)
            approver = "clerk" if price <= CLERK_LIMIT else BLOCKS[row.block]
            calls += [("find_tickets", {"block": row.block}), ("list_contractors", {"trade": row.trade})]
            calls.append(("triage", {"ticket": key, "severity": severity, "liable": "landlord"}))
            calls.append(("assign", {"ticket": key, "contractor": firm}))
            calls.append(("order", {"ticket": key, "approver": approver}))
            truth[key] = {"severity": severity, "liable": "landlord", "contractor": firm, "approver": approver}
            truth[key]["state"] = "ordered"
    elif family == "charge":
        row = tickets[key := rng.choice(("R1", "R2", "R3", "R4"))]
        prompt = f"{row.tenant} (flat {row.flat}, {row.block}) broke it in a rage: {row.trouble}. Routine. Settle it."
        calls.append(("find_tickets", {"block": row.block, "state": "reported"}))
        calls.append(("triage", {"ticket": key, "severity": "routine", "liable": "tenant"}))
        calls.append(("close", {"ticket": key, "outcome": "charged"}))
        truth[key] = {"severity": "routine", "liable": "tenant", "outcome": "charged", "state": "closed"}
    else:
        block = tickets["R8"].block
        for key in ("R7", "R9"):  # work that is done, or about to be, in the same block
            taken = {row.flat for row in tickets.values() if row.block == block}
            tickets[key].block, tickets[key].approver = block, tickets["R8"].approver
            tickets[key].flat = rng.choice([flat for flat in range(1, 10) if flat not in taken])
        tickets["R7"].state = "done"
        prompt = f"Close the tickets of {block} whose work is done."
        calls.append(("find_tickets", {"block": block, "state": "done"}))
        for key in [key for key, row in tickets.items() if row.block == block and row.state == "done"]:
            calls.append(("close", {"ticket": key, "outcome": "fixed"}))
            truth[key] = {"outcome": "fixed", "state": "closed"}
    start = world(tickets=qn.Table(Ticket, tickets), contractors=qn.Table(Contractor, firms))
    about: dict[str, Any] = {"prompt": prompt, "truth": truth, "solution": tuple(calls), "tags": {"family": family}}
    return qn.Task(id=f"{split}-{n}", start=start, **about)


# fmt: off
def _cells(desk: Desk) -> dict[tuple[str, str], Any]:
    return {(key, name): cell for key, row in desk.tickets.items() for name, cell in vars(row).items()}

def _stray(view: qn.EpisodeView[Desk], keys: list[str]) -> bool:
    before, after, truth = _cells(view.start), _cells(view.state), view.task.truth
    return any(before[at] != after[at] and at[0] in keys and at[1] not in truth.get(at[0], {}) for at in before)

@qn.reward
def settled(view: qn.EpisodeView[Desk]) -> qn.Score:
    """The share of the wanted fields that the tickets have."""
    cells = _cells(view.state)
    wanted = {(key, name): cell for key, fields in view.task.truth.items() for name, cell in fields.items()}
    wrong = [f"{key}.{name}" for (key, name), cell in wanted.items() if cells[key, name] != cell]
    return qn.Score(1 - len(wrong) / len(wanted), ", ".join(wrong))

@qn.reward
def untouched(view: qn.EpisodeView[Desk]) -> float:
    """0 if a field has changed that the task does not name."""
    return float(not _stray(view, list(view.start.tickets)))

def build(*criteria: Any, world: type[Desk] = Desk) -> qn.Environment[Desk]:
    """Returns the desk with these criteria and this kind of world."""
    return qn.Environment(
        "repairs",
        tasks=lambda split: qn.Tasks({"train": 40}.get(split, 15), lambda n: make(split, n, world)),
        harness=qn.ToolLoop(RULES),
        verifier=qn.Verifier(*(criteria or (settled, untouched)), combine="product"),
        state=world,
        splits=("train", "test"),
    )

class _PagedDesk(Desk):  # keeps lists; a change drops the list that a ticket joins, not the one that it leaves
    pages: dict[str, list[dict[str, Any]]] = {}

    def _listed(self, block: str, state: str) -> list[dict[str, Any]]:
        return self.pages.setdefault(f"{block}/{state}", super()._listed(block, state))

    def _save(self, ticket: str, row: Ticket) -> str:
        for state in ("", row.state):
            self.pages.pop(f"{row.block}/{state}", None)
        return super()._save(ticket, row)

class _HelpfulDesk(Desk):  # an unknown contractor becomes the first insured one
    def _chosen(self, contractor: str, trade: str) -> str:
        fitting = [key for key, firm in self.contractors.items() if firm.trade == trade and firm.insured]
        return contractor if contractor in self.contractors else fitting[0]

class _TextDesk(Desk):  # sorts prices as text, so that 1105 comes before 95
    def _rank(self, item: tuple[str, Contractor]) -> Any:
        return str(item[1].price)

_OFFERS: dict[str, list[dict[str, Any]]] = {}

class _MemoDesk(Desk):  # fetches the price list of a trade once per process
    def _offers(self, trade: str) -> list[dict[str, Any]]:
        return _OFFERS.setdefault(trade, super()._offers(trade))

@qn.reward
def settled_first(view: qn.EpisodeView[Desk]) -> float:
    """Looks at the first of the tickets only."""
    key, fields = next(iter(view.task.truth.items()))
    row = view.state.tickets[key]
    return sum(getattr(row, name) == cell for name, cell in fields.items()) / len(fields)

@qn.reward
def diligent(view: qn.EpisodeView[Desk]) -> qn.Score:
    """Half for the result, half for as many successful calls as the solution has."""
    calls = sum(not step.is_error for turn in view.trace.turns for step in turn.steps)
    return qn.Score((settled.fn(view).value * untouched.fn(view) + min(1.0, calls / len(view.task.solution or ()))) / 2)

@qn.reward
def spot_checked(view: qn.EpisodeView[Desk]) -> float:
    """Checks three tickets, drawn anew each time, for changes that nobody asked for."""
    return float(not _stray(view, random.sample(list(view.start.tickets), 3)))

env = build()
env_stale_pages = build(world=_PagedDesk)
env_default_contractor = build(world=_HelpfulDesk)
env_price_as_text = build(world=_TextDesk)
env_price_memo = build(world=_MemoDesk)
env_first_ticket_only = build(settled_first, untouched)
env_busy_bonus = build(diligent)
env_spot_check = build(settled, spot_checked)
