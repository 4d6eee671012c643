"""Customer desk on a table of rows: masked contacts, soft deletes, idempotent writes, and a history that only grows."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

import quintain as qn
from quintain.state import Rng
from quintain.task import Call

OWNERS, PAGE = ("Amir", "Bela", "Cora", "Dov"), 5
TAGS: tuple[str, ...] = ("vip", "late-payer", "newsletter", "partner")
Field = Literal["email", "phone", "city", "owner"]
Tag = Literal["vip", "late-payer", "newsletter", "partner"]
FORMS = {
    "email": re.compile(r"[a-z0-9.]{1,40}@[a-z0-9.]{3,40}"),
    "phone": re.compile(r"\+[0-9]{6,15}"),
    "city": re.compile(r"[A-Z][a-z]{1,29}"),
    "owner": re.compile("|".join(OWNERS)),
}


class Customer(msgspec.Struct):
    name: str
    email: str
    phone: str
    city: str
    owner: str
    tags: list[str] = []
    notes: list[str] = []
    deleted: bool = False
    changed_at: float = 0.0


class Crm(qn.State):
    customers: qn.Table[Customer]
    history: list[dict[str, str]] = []

    @qn.tool
    def find_customers(
        self,
        text: Annotated[str, Meta(max_length=40)] = "",
        include_deleted: bool = False,  # noqa: FBT001, FBT002 (tools are called by name)
        page: Annotated[int, Meta(ge=1, le=100)] = 1,
    ) -> dict[str, object]:
        """Find customers by a part of the name, the city or the owner, in any letter case.

        Sorted by name, then by id, five on a page. Deleted customers are left out unless you ask for them.

        Args:
            text: What to look for; empty for all customers.
            include_deleted: True to list deleted customers as well.
            page: Number of the page, from 1.
        """
        wanted = text.casefold()
        rows = [
            (row.name, int(key[1:]), {"id": key, "name": row.name, "city": row.city, "owner": row.owner,
                                      "tags": row.tags, "deleted": row.deleted})
            for key, row in self.customers.items()
            if (include_deleted or not row.deleted)
            and any(wanted in field.casefold() for field in (row.name, row.city, row.owner))
        ]  # fmt: skip
        pages = max(1, -(-len(rows) // PAGE))
        if page > pages:
            raise qn.ToolError(f"page {page} does not exist; pages: 1 to {pages}")
        rows.sort(key=lambda row: row[:2])
        return {
            "total": len(rows),
            "pages": pages,
            "customers": [row for _, _, row in rows[(page - 1) * PAGE :][:PAGE]],
        }

    @qn.tool
    def get_customer(self, customer: str) -> Customer:
        """Show a customer, deleted ones too. E-mail and phone are masked; `reveal_contact` shows them.

        `changed_at` is the second of the clock of the last change; each accepted change takes one second.

        Args:
            customer: Id of the customer.
        """
        row = self._row(customer)
        return msgspec.structs.replace(
            row, email=f"***{row.email[row.email.index('@') :]}", phone=f"***{row.phone[-2:]}"
        )

    @qn.tool
    def reveal_contact(
        self, customer: str, purpose: Annotated[str, Meta(min_length=3, max_length=80)]
    ) -> dict[str, str]:
        """Show e-mail and phone of a customer in full; the history keeps the purpose.

        Args:
            customer: Id of the customer.
            purpose: Why you need it, 3 to 80 characters.
        """
        row = self._row(customer)
        self._record(customer, f"contact revealed: {purpose}")
        return {"email": row.email, "phone": row.phone}

    @qn.tool
    def set_field(self, customer: str, field: Field, value: Annotated[str, Meta(min_length=1, max_length=80)]) -> str:
        """Set a field. The value that is there already changes nothing. Deleted customers cannot be changed.

        Args:
            customer: Id of the customer.
            field: Name of the field.
            value: E-mail in lower case; phone as +4930123456; city as Oslo; owner Amir, Bela, Cora or Dov.
        """
        row = self._live(customer)
        if not FORMS[field].fullmatch(value):
            raise qn.ToolError(f"{value!r} is not a valid {field}; it must match {FORMS[field].pattern}")
        return self._save(customer, msgspec.structs.replace(row, **{field: value}), f"{field} set")

    @qn.tool
    def add_tag(self, customer: str, tag: Tag) -> str:
        """Add a tag; one that is there already changes nothing.

        Args:
            customer: Id of the customer.
            tag: The tag.
        """
        row = self._live(customer)
        return self._save(customer, msgspec.structs.replace(row, tags=sorted({*row.tags, tag})), f"tag {tag} added")

    @qn.tool
    def remove_tag(self, customer: str, tag: Tag) -> str:
        """Remove a tag; one that is not there changes nothing.

        Args:
            customer: Id of the customer.
            tag: The tag.
        """
        row = self._live(customer)
        tags = [one for one in row.tags if one != tag]
        return self._save(customer, msgspec.structs.replace(row, tags=tags), f"tag {tag} removed")

    @qn.tool
    def add_note(self, customer: str, text: Annotated[str, Meta(min_length=1, max_length=200)]) -> str:
        """Add a note at the end of the customer's notes; notes cannot be changed or removed.

        Args:
            customer: Id of the customer.
            text: The note, at most 200 characters.
        """
        row = self._live(customer)
        return self._save(customer, msgspec.structs.replace(row, notes=[*row.notes, text]), "note added")

    @qn.tool
    def delete_customer(self, customer: str) -> str:
        """Delete a customer softly: searches leave it out, all its data stay, and `restore_customer` brings it back.

        Args:
            customer: Id of the customer; a deleted one stays deleted.
        """
        return self._save(customer, msgspec.structs.replace(self._row(customer), deleted=True), "deleted")

    @qn.tool
    def restore_customer(self, customer: str) -> str:
        """Bring a deleted customer back; one that is not deleted stays as it is.

        Args:
            customer: Id of the customer.
        """
        return self._save(customer, msgspec.structs.replace(self._row(customer), deleted=False), "restored")

    @qn.tool
    def read_history(self, customer: str) -> list[dict[str, str]]:
        """Read all changes and revealed contacts of a customer, the oldest first.

        Args:
            customer: Id of the customer.
        """
        self._row(customer)
        return [entry for entry in self.history if entry["customer"] == customer]

    def _row(self, key: str) -> Customer:
        if key not in self.customers:
            raise qn.ToolError(f"no customer {key!r}; `find_customers` shows the ids")
        return self.customers[key]

    def _live(self, key: str) -> Customer:
        row = self._row(key)
        if row.deleted:
            raise qn.ToolError(f"{key} is deleted; `restore_customer` first")
        return row

    def _save(self, key: str, row: Customer, what: str) -> str:
        if row == self.customers[key]:
            return f"{key} was so already; nothing changed"
        self._record(key, what)
        row.changed_at = self.clock.now
        self.customers[key] = row
        return f"{key}: {what}"

    def _record(self, key: str, what: str) -> None:
        self.clock.advance(1)
        self.history.append({"at": f"{self.clock.now:.0f}", "customer": key, "what": what})


NAMES = ("Fjord Foods", "Gable Glass", "Hazel Homes", "Iris Ink", "Jade Joinery", "Kite Kits", "Loom Linen")
CITIES = ("Oslo", "Lyon", "Graz")


def desk(rng: Rng) -> Crm:
    """Returns 14 customers: each name stands in two cities, and C14 is deleted."""
    crm = Crm(customers=qn.Table(Customer))
    for n in range(14):
        name, city = NAMES[n % 7], CITIES[(n % 7 + n // 7) % 3]
        email, phone = f"info{n}@{name.split()[0].lower()}.example", f"+47{rng.below(10**6):06}{n:02}"
        tags = sorted(rng.sample(TAGS, rng.below(3)))
        crm.customers[f"C{n + 1}"] = Customer(name, email, phone, city, rng.choice(OWNERS), tags, deleted=n == 13)
    return crm


def hand_over(crm: Crm, rng: Rng) -> tuple[str, list[Call]]:
    live = {key: row for key, row in crm.customers.items() if not row.deleted}
    old, city = (row := rng.choice(list(live.values()))).owner, row.city
    new = rng.choice([one for one in OWNERS if one != old])
    keys = [key for key, row in live.items() if (row.owner, row.city) == (old, city)]
    note, calls = f"handed over, case {rng.below(9000)}", list[Call]()
    for key in keys:
        calls.append(("set_field", {"customer": key, "field": "owner", "value": new}))
        calls.append(("add_note", {"customer": key, "text": note}))
    wish = (
        f"{new} takes over all customers in {city} that {old} owns; deleted ones stay as they are. Set the owner, and"
    )
    return f"{wish} add one note to each of them: '{note}'.", calls


def move(crm: Crm, rng: Rng) -> tuple[str, list[Call]]:
    key, email, note = f"C{1 + rng.below(13)}", f"desk{rng.below(900)}@new.example", f"moved, case {rng.below(9000)}"
    row = crm.customers[key]
    return f"{row.name} in {row.city} has the new e-mail {email}. Set it, and add one note: '{note}'.", [
        ("set_field", {"customer": key, "field": "email", "value": email}),
        ("add_note", {"customer": key, "text": note}),
    ]


def bring_back(crm: Crm, rng: Rng) -> tuple[str, list[Call]]:
    row, tag, gone = crm.customers["C14"], rng.choice(TAGS), f"C{1 + rng.below(13)}"
    note = f"back again, case {rng.below(9000)}"
    other = crm.customers[gone]
    wish = (
        f"Restore the deleted customer {row.name} in {row.city}, see that it has the tag {tag}, and add one note to "
        f"it: '{note}'. Delete {other.name} in {other.city}."
    )
    return wish, [
        ("restore_customer", {"customer": "C14"}),
        ("add_tag", {"customer": "C14", "tag": tag}),
        ("add_note", {"customer": "C14", "text": note}),
        ("delete_customer", {"customer": gone}),
    ]


FAMILIES: tuple[Callable[[Crm, Rng], tuple[str, list[Call]]], ...] = (hand_over, move, bring_back)


def content(crm: Crm) -> dict[str, Any]:
    """Returns the rows as plain data, without the time of the last change."""
    rows = {key: msgspec.structs.replace(row, changed_at=0.0) for key, row in crm.customers.items()}
    return {key: msgspec.to_builtins(row) for key, row in rows.items()}


def make(split: str, number: int) -> qn.Task[Crm]:
    rng = Rng(key=f"crm_desk/{split}/{number}".encode())
    crm = desk(rng)
    wish, calls = FAMILIES[number % len(FAMILIES)](crm, rng)
    later = crm.copy()
    for name, arguments in calls:
        getattr(later, name)(**arguments)
    return qn.Task(
        id=f"{split}-{number}",
        prompt=f"{wish} Change nothing else.",
        start=crm,
        truth=content(later),
        solution=(("find_customers", {"include_deleted": True}), *calls),
    )


@qn.reward
def rows_are_right(view: qn.EpisodeView[Crm]) -> qn.Score:
    found, wanted = content(view.state), view.task.truth
    wrong = sorted(key for key in wanted if found[key] != wanted[key])
    return qn.Score(float(not wrong), f"customers that differ: {wrong}")


env = qn.Environment(
    "crm_desk",
    tasks=lambda split: qn.Tasks(15, lambda number: make(split, number)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(rows_are_right),
    state=Crm,
)
