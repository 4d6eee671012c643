"""The rows of a task while it is being written: people and what they have, in between those of the base."""

from __future__ import annotations

import functools
from datetime import date, timedelta
from typing import Any, Literal, TypeVar, cast

from quintain import authoring
from quintain.authoring import Level
from quintain.resources.database.rows import table_name

from .desk import DAY, HOUR, moment
from .schema.accounts import Account, AccountMember, Device, Lock, Login, Session
from .schema.billing import Card, Coupon, Credit, Invoice, InvoiceLine, Payment, Plan, Subscription
from .schema.desk import Comment, Ticket
from .schema.people import Address, Customer, Organisation
from .schema.row import Row
from .schema.shop import Carrier, Order, OrderLine, OrderPayment, Parcel, Product, Scan
from .seed import base, pools, tickets
from .seed.goods import ship_to
from .seed.money import invoice_facts, tax_of
from .seed.sowing import DAWN, address, mailbox, months_before

W = TypeVar("W", bound=Row)


def known(kind: type[W]) -> tuple[W, ...]:
    """The rows of a small table of the base, such as plans or carriers."""
    return cast("tuple[W, ...]", _known(kind))


@functools.cache
def _known(kind: type[Row]) -> tuple[Row, ...]:
    return tuple(base().all(kind, f"SELECT * FROM {table_name(kind)} ORDER BY id"))  # noqa: S608 (a table of ours)


def named(kind: type[W], name: str) -> W:
    """The row of that name."""
    (found,) = (row for row in known(kind) if getattr(row, "name", None) == name)
    return found


@functools.cache
def last_id(kind: type[Row]) -> int:
    """The greatest number of a table of the base."""
    ((found,),) = base().execute(f"SELECT coalesce(max(id), 0) FROM {table_name(kind)}")  # noqa: S608 (a table of ours)
    return int(found)


class SupportDraft(authoring.Draft[Any]):
    """Rows in the making. All that is random comes from the key, so equal keys make equal rows.

    Attributes:
        start: When the job begins.
        rows: What the task adds to the base, in an order in which every row comes after those that it refers to.
    """

    def __init__(self, key: bytes, level: Level) -> None:
        super().__init__(key, level)
        self.start = DAWN + self.rng.below(5) * DAY + (8 + self.rng.below(6)) * HOUR + self.rng.below(3600)
        self.rows: list[Row] = []
        self._taken: set[tuple[type[Row], int]] = set()
        self._next = {Ticket: last_id(Ticket), Comment: last_id(Comment)}

    @property
    def mess(self) -> int:
        return {"easy": 0, "medium": 1, "hard": 2}[self.level]

    def ago(self, days: float) -> str:
        """A time before the job begins."""
        return moment(self.start - days * DAY - self.rng.below(3000))

    def date(self, days: int = 0) -> date:
        """The day on which the job begins, and those around it."""
        return date.fromisoformat(moment(self.start)[:10]) + timedelta(days=days)

    def add(self, kind: type[W], /, **fields: Any) -> W:
        """A row; its number lies between those of the base."""
        row = kind(id=self._number(kind), **fields)
        self.rows.append(row)
        return row

    def next_id(self, kind: type[Row]) -> int:
        """The number that the first row gets which is made during the job."""
        return max([last_id(kind), *(row.id for row in self.rows if type(row) is kind)]) + 1

    def _number(self, kind: type[Row]) -> int:
        if kind in self._next:  # these are read in the order of their numbers
            self._next[kind] += 1
            return self._next[kind]
        number = 2 * self.rng.below(last_id(kind) // 2 + 40) + 1
        while (kind, number) in self._taken:
            number += 2
        self._taken.add((kind, number))
        return number

    def old_ticket(self, customer: Customer, days: int, **fields: Any) -> Ticket:
        """A ticket that was closed long ago; tickets are numbered as they come, so its number fits its day."""
        place = last_id(Ticket) - 2 * round(days / tickets.EVERY_DAYS)
        number = next(n for n in range(place + 1, place + 200, 2) if (Ticket, n) not in self._taken)
        self._taken.add((Ticket, number))
        at = self.ago(days)
        facts: dict[str, Any] = {
            "status": "closed",
            "resolution": "informed",
            "created": at,
            "updated": at,
            "solved": at,
        }
        row = Ticket(id=number, requester_id=customer.id, organisation_id=customer.organisation_id, **facts | fields)
        self.rows.append(row)
        return row

    # -- people

    def customer(self, *, organisation: Organisation | None = None, **fields: Any) -> Customer:
        """Adds a customer with a name that the base does not have."""
        codes = {country.code: country for country in pools.COUNTRIES}
        country = codes[fields.pop("country", organisation.country if organisation else self.rng.choice(list(codes)))]
        who = str(fields.get("name") or self._name())
        host = organisation.domain if organisation else self.rng.choice(pools.MAIL)
        facts: dict[str, Any] = {
            "name": who,
            "email": mailbox(who, host),
            "country": country.code,
            "language": country.language,
            "zone": country.zone if self.rng.below(3) else None,
            "created": self.ago(100 + self.rng.below(900)),
            "organisation_id": organisation.id if organisation else None,
        }
        return self.add(Customer, **facts | fields)

    def namesake(self, customer: Customer) -> Customer:
        """Adds a customer of the same name and country, with another address."""
        local, _, host = customer.email.partition("@")
        email = f"{local}{1950 + self.rng.below(60)}@{host}"
        return self.customer(name=customer.name, email=email, country=customer.country)

    def organisation(self, tier: Literal["standard", "business"] = "business", **fields: Any) -> Organisation:
        """Adds a firm."""
        firm = f"{self.rng.choice(pools.FIRM)} & {self.rng.choice(pools.LAST)} {self.rng.choice(pools.TRADE)}"
        country = self.rng.choice(pools.COUNTRIES).code
        vat = f"{fields.get('country', country)}{100000000 + self.rng.below(900000000)}"
        facts = {"name": firm, "domain": mailbox(firm, "example").replace("@", "."), "country": country, "vat_id": vat}
        return self.add(Organisation, **facts | fields, tier=tier)

    def home(self, customer: Customer, label: str = "home") -> Address:
        """Adds the home address of a customer."""
        country = next(country for country in pools.COUNTRIES if country.code == customer.country)
        return self.add(Address, customer_id=customer.id, label=label, name=customer.name, **address(self.rng, country))

    def account(self, customer: Customer, **fields: Any) -> Account:
        region = self.rng.choice(pools.REGIONS)
        return self.add(Account, **{"customer_id": customer.id, "region": region, "created": customer.created} | fields)

    def login(self, account: Account, days: float, result: str, *, country: str) -> Login:
        where = f"203.0.113.{1 + self.rng.below(254)}"
        return self.add(Login, account_id=account.id, at=self.ago(days), country=country, address=where, result=result)

    def lock(self, account: Account, reason: str, days: float) -> Lock:
        account.status = "locked"
        return self.add(Lock, account_id=account.id, reason=reason, at=self.ago(days))

    def join(self, account: Account, customer: Customer) -> AccountMember:
        """Adds a further user to an account."""
        return self.add(AccountMember, account_id=account.id, customer_id=customer.id, role="user")

    def session(self, account: Account, country: str, days: float) -> Session:
        return self.add(Session, account_id=account.id, started=self.ago(days), country=country, agent="Chrome")

    def device(self, account: Account, **fields: Any) -> Device:
        serial = f"HD{2 * self.rng.below(90000) + 300001}"
        facts = {"model": self.rng.choice(pools.DEVICES), "serial": serial, "firmware": "4.2.0"}
        return self.add(Device, account_id=account.id, **facts | fields)

    # -- money

    def card(self, customer: Customer, *, expires: str = "2028-05", default: bool = True) -> Card:
        facts = {"brand": self.rng.choice(pools.CARDS), "last4": f"{self.rng.below(10000):04}", "expires": expires}
        return self.add(Card, customer_id=customer.id, is_default=default, added=self.ago(300), **facts)

    def subscription(self, account: Account, plan: Plan, *, days: int, **fields: Any) -> Subscription:
        """A subscription that began so many days ago."""
        began = self.date(-days)
        whole = 1
        while _later(began, whole) <= self.date():
            whole += 1
        facts = {"status": "active", "ordered_plan_id": plan.id, "renews": _later(began, whole).isoformat()}
        facts["started"] = f"{began}T10:00:00Z"
        return self.add(Subscription, account_id=account.id, plan_id=plan.id, **facts | fields)

    def subscription_of(self, account: Account) -> Subscription:
        """The subscription of an account of this task."""
        (found,) = (row for row in self.rows if isinstance(row, Subscription) and row.account_id == account.id)
        return found

    def invoice(self, subscription: Subscription, owner: Customer, *, days: int, **fields: Any) -> Invoice:
        """An invoice issued so many days ago, for the plan that the subscription is on, with the right tax."""
        plan = next(plan for plan in known(Plan) if plan.id == subscription.plan_id)
        organisations = {row.id: row for row in self.rows if isinstance(row, Organisation)}
        percent = fields.pop("tax_percent", tax_of(owner, organisations.get(owner.organisation_id or 0)))
        row = self.add(
            Invoice,
            number=f"R-{100001 + 2 * self._fresh(40000)}",
            account_id=subscription.account_id,
            subscription_id=subscription.id,
            issued=self.date(-days).isoformat(),
            due=self.date(14 - days).isoformat(),
            **{"status": "paid"} | fields,
            **invoice_facts(fields.pop("net_cents", plan.price_cents), percent),
        )
        self.add(InvoiceLine, invoice_id=row.id, text=f"{plan.name}, from {row.issued}", amount_cents=row.net_cents)
        return row

    def payment(self, invoice: Invoice, card: Card | None, *, days: float, **fields: Any) -> Payment:
        facts = {"amount_cents": invoice.total_cents, "at": self.ago(days), "status": "succeeded"}
        return self.add(Payment, invoice_id=invoice.id, card_id=card.id if card else None, **facts | fields)

    def coupon(self, percent: int, *, begins: int, ends: int, **fields: Any) -> Coupon:
        """A coupon, valid from so many days before the job to so many after it."""
        facts = {"valid_from": self.date(-begins).isoformat(), "valid_until": self.date(ends).isoformat()}
        code = f"{self.rng.choice(('LENZ', 'NEST', 'HAVEN', 'MOVE'))}{1000 + self.rng.below(9000)}"
        return self.add(Coupon, code=code, percent=percent, **{"scope": "subscription"} | facts | fields)

    def credit(self, account: Account, cents: int, reason: str, *, days: float) -> Credit:
        facts = {"amount_cents": cents, "reason": reason, "at": self.ago(days), "origin": "agent"}
        return self.add(Credit, account_id=account.id, **facts)

    def payments_of(self, invoice: Invoice) -> list[Payment]:
        """Returns the successful payments of an invoice."""
        paid = [row for row in self.rows if isinstance(row, Payment) and row.invoice_id == invoice.id]
        return [row for row in paid if row.status == "succeeded"]

    # -- goods

    def order(self, customer: Customer, home: Address, *, days: float, status: str, **fields: Any) -> Order:
        """An order of one to three things, paid for; `skus` says which."""
        skus = fields.pop("skus", None) or [self.rng.choice(("SEN-01", "SEN-02", "SEN-03", "BAT-04", "MNT-02")),
                                            self.rng.choice(("SIR-01", "EXT-01"))]  # fmt: skip
        products = [product for sku in skus for product in known(Product) if product.sku == sku]
        total = sum(product.price_cents for product in products)
        row = self.add(
            Order,
            number=f"H-{200001 + 2 * self._fresh(40000)}",
            customer_id=customer.id,
            placed=self.ago(days),
            status=status,
            total_cents=total,
            **ship_to(home),
        )
        for product in products:
            facts = {"product_id": product.id, "quantity": 1, "price_cents": product.price_cents}
            self.add(OrderLine, order_id=row.id, **facts)
        self.add(OrderPayment, order_id=row.id, amount_cents=total, at=row.placed, method="card")
        return row

    def parcel(self, order: Order, carrier: str, *, status: str, days: list[float]) -> Parcel:
        """A parcel that was scanned so many days ago, first to last."""
        row = known(Carrier)[[one[0] for one in pools.CARRIERS].index(carrier)]
        letters = next(one[3] for one in pools.CARRIERS if one[0] == carrier)
        parcel = self.add(
            Parcel,
            order_id=order.id,
            carrier_id=row.id,
            tracking=f"{letters}{100000001 + 2 * self.rng.below(40_000_000)}",
            status=status,
            shipped=self.ago(days[0]),
            promised=self.date(4 - int(days[0])).isoformat() if self.rng.below(4) else None,
            street=order.ship_street,
            postcode=order.ship_postcode,
            city=order.ship_city,
            country=order.ship_country,
        )
        for place, age in enumerate(days):
            where, text = ("Halden warehouse", "Picked up") if place == 0 else (self.rng.choice(pools.HUBS), "Sorted")
            self.scan(parcel, where, text, days=age)
        return parcel

    def scan(self, parcel: Parcel, place: str, text: str, *, days: float) -> Scan:
        return self.add(Scan, parcel_id=parcel.id, at=moment(self.start - days * DAY), place=place, text=text)

    # -- inside

    def _fresh(self, n: int) -> int:
        """A number for something printed, each once."""
        number = self.rng.below(n) + 3000
        while (Row, number) in self._taken:
            number += 1
        self._taken.add((Row, number))
        return number

    def _name(self) -> str:
        """Returns a name that is new in this task and, by its hyphen, in the base."""
        taken = {row.name for row in self.rows if isinstance(row, Customer)}
        while True:
            rng = self.rng
            who = f"{rng.choice(pools.FIRST)} {rng.choice(pools.LAST)}-{rng.choice(pools.LAST)}"
            if who not in taken:
                return who


def _later(day: date, months: int) -> date:
    return months_before(day, -months)
