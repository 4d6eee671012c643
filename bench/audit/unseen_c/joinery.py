"""Front office of a small joinery: mails in folders, three files, and an assistant who answers, forwards and files."""

import random
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec

import quintain as qn
from quintain.state import Rng

CUSTOMERS = ("Ada Brandt", "Bo Lindqvist", "Carla Nunes", "Dev Patel", "Ella Moor", "Finn Oakes", "Gail Turner",
             "Hana Sato", "Igor Petrov", "Jill Adeyemi", "Karl Voigt", "Lucia Ferri", "Marek Zahn", "Nora Quist",
             "Otis Wray", "Petra Blum")  # fmt: skip
PRODUCTS = ("oak table", "beech bench", "pine shelf", "ash stool", "walnut desk", "larch door", "elm chest", "fir bed")
SUPPLIERS = ("Timber North", "Hinge & Lock", "Varnish Union", "Brightsaw Tools")
STAFF = ("Uta Kern", "Tom Hale", "Rosa Vidal", "Sven Dahl")
Folder = Literal["Inbox", "Invoices", "Complaints", "Done"]
Text = Annotated[str, msgspec.Meta(min_length=1)]
FACT = re.compile(r"\d{4}-\d\d-\d\d|EUR \d+\.\d\d")
STYLE = 'Begin a reply with "Dear" and the full name of the sender, end it with the line "Larch & Sons", and write'


class Mail(msgspec.Struct):
    """A mail that came in."""

    sender: str
    address: str
    subject: str
    body: str
    folder: str = "Inbox"
    attachments: list[str] = []


class Sent(msgspec.Struct):
    """A mail that went out."""

    kind: str
    mail: str
    to: str
    text: str
    attachments: list[str]


class Goal(msgspec.Struct):
    """Something that a task wants: a mail moved, forwarded, or answered with a fact."""

    kind: str
    mail: str
    value: str


class Office(qn.State):
    """Mails, files, and what was sent."""

    mails: dict[str, Mail]
    files: dict[str, str]
    sent: list[Sent] = []

    @qn.tool
    def search(self, words: str = "", folder: Folder | None = None) -> list[dict[str, str]]:
        """Find mails whose sender, subject or body has all of the words, in any case; all mails without words.

        Args:
            words: Words, separated by spaces.
            folder: Only this folder; every folder if it is left out.
        """
        found = [(key, one) for key, one in sorted(self.mails.items()) if folder in {None, one.folder}]
        texts = [f"{one.sender} {one.subject} {one.body}".lower() for _, one in found]
        return [{"mail": key, "folder": one.folder, "from": one.sender, "subject": one.subject}
                for (key, one), text in zip(found, texts, strict=True)
                if all(word in text for word in words.lower().split())]  # fmt: skip

    @qn.tool
    def read(self, mail: str) -> Mail:
        """Read a mail.

        Args:
            mail: Its id, such as M07.
        """
        return self._mail(mail)

    @qn.tool
    def move(self, mail: str, folder: Folder) -> str:
        """Move a mail to a folder.

        Args:
            mail: Its id.
            folder: Where to.
        """
        self._mail(mail).folder = folder
        return f"{mail} is in {folder}"

    @qn.tool
    def reply(self, mail: str, text: Text) -> str:
        """Answer a mail; the answer goes to its sender.

        Args:
            mail: Its id.
            text: The whole answer.
        """
        self.sent.append(Sent("reply", mail, self._mail(mail).address, text, []))
        return f"sent to {self.sent[-1].to}"

    @qn.tool
    def forward(self, mail: str, to: str, note: str = "") -> str:
        """Forward a mail with its attachments to a colleague.

        Args:
            mail: Its id.
            to: Address of the colleague.
            note: A text above it.
        """
        found = self._mail(mail)
        if to not in map(address, STAFF):
            raise qn.ToolError(f"no colleague has the address {to!r}; see staff.txt")
        self.sent.append(Sent("forward", mail, to, f"{note}\n\n{found.body}".strip(), self._enclosed(found)))
        return f"sent to {to}"

    @qn.tool
    def outgoing(self) -> list[Sent]:
        """List what was sent."""
        return self.sent

    @qn.tool
    def open_file(self, name: str) -> str:
        """Read a file.

        Args:
            name: Its name, such as staff.txt.
        """
        if name not in self.files:
            raise qn.ToolError(f"no file {name!r}; there are {', '.join(sorted(self.files))}")
        return self._shown(self.files[name])

    def _mail(self, mail: str) -> Mail:
        if mail not in self.mails:
            raise qn.ToolError(f"there is no mail {mail!r}")
        return self.mails[mail]

    def _enclosed(self, mail: Mail) -> list[str]:
        return list(mail.attachments)

    def _shown(self, text: str) -> str:
        return text


class BareOffice(Office):
    """Forwards the text of a mail."""

    def _enclosed(self, mail: Mail) -> list[str]:
        return []


class PreviewOffice(Office):
    """Keeps observations short."""

    def _shown(self, text: str) -> str:
        return text[:600]


def address(name: str, host: str = "larch") -> str:
    """Returns an address, by default of a colleague."""
    return f"{name.lower().replace(' & ', '-').replace(' ', '.')}@{host}.example"


def furnish(rng: Rng, state: type[Office]) -> tuple[Office, dict[str, dict[str, Any]]]:
    """Returns an office, and by mail what it is about."""
    customers, due, at = rng.sample(CUSTOMERS, len(CUSTOMERS)), rng.sample(range(1, 28), 24), rng.sample(PRODUCTS, 8)
    orders = [(4100 + 7 * n + rng.below(7), customers[n % 16], rng.choice(PRODUCTS), f"2027-04-{due[n]:02}")
              for n in range(24)]  # fmt: skip
    prices = {one: f"EUR {90 + 10 * n + rng.below(10)}.{5 * rng.below(20):02}" for n, one in enumerate(PRODUCTS)}
    heads = {one: rng.choice(STAFF[1:]) for one in PRODUCTS}
    mails: list[tuple[Mail, dict[str, Any]]] = []

    def add(who: str, subject: str, body: str, folder: str = "Inbox", *, files: int = 0, **about: Any) -> None:
        host = "larch" if who in STAFF else "mail"
        names = [f"{subject.lower().replace(' ', '-')}-{n + 1}.pdf" for n in range(files)]
        mails.append((Mail(who, address(who, host), subject, body, folder, names), {"who": who, **about}))

    for number, who, product, day in rng.sample(orders[8:], 5):
        add(who, f"Order {number}", f"When will the {product} of my order {number} arrive?", kind="order", fact=day)
    rest = [one for one in customers if one not in {mail.sender for mail, _ in mails}]
    for n, who in enumerate(rest[:4]):
        item = at[n % 2]
        add(who, "A price", f"What does your {item} cost, please?", kind="price", product=item, fact=prices[item])
    for n, who in enumerate(rest[4:7]):
        body = f"Your {at[2 + n]} {('wobbles', 'has a crack', 'has a scratch')[n]}, see the pictures. Please repair it."
        add(who, "Not satisfied", body, files=2, kind="complaint", to=address(heads[at[2 + n]]))
    for who in SUPPLIERS:
        for amount in rng.sample(range(40, 900), 2 + rng.below(2)):
            body = f"Please pay EUR {amount}.00 within 30 days."
            add(who, f"Invoice {7000 + rng.below(2000)}", body, files=1, kind="invoice", amount=amount)
        add(who, "Invoice 6990", "Please pay EUR 950.00 within 30 days.", "Invoices", files=1, kind="old")
        add(who, "Our spring offers", "Invoices may now be paid by card.", kind="news")
    for who in rng.sample(STAFF, 2):
        add(who, "Lunch", "The customer with the complaint came by. Lunch at noon?", kind="note")
    rng.shuffle(mails)
    staff = [f"Complaints, {one}: {heads[one]}, {address(heads[one])}" for one in PRODUCTS]
    files = {
        "orders.txt": "\n".join(f"{number}; {who}; {product}; arrives {day}" for number, who, product, day in orders),
        "prices.txt": "\n".join(f"{one}: {price}" for one, price in prices.items()),
        "staff.txt": "\n".join([f"Accounts: {STAFF[0]}, {address(STAFF[0])}", *staff]),
    }
    keys = [f"M{n + 1:02}" for n in range(len(mails))]
    world = state(mails=dict(zip(keys, (mail for mail, _ in mails), strict=True)), files=files)
    return world, dict(zip(keys, (about for _, about in mails), strict=True))


def write(family: str, rng: Rng, about: dict[str, dict[str, Any]]) -> tuple[str, list[str], list[Goal]]:
    """Returns a request, the files that it needs, and its goals."""
    goals: list[Goal] = []
    mine = [key for key, one in about.items() if one["kind"] == family]
    if family == "order":
        for key in sorted(rng.sample(mine, 2)):
            goals += [Goal("reply", key, about[key]["fact"]), Goal("move", key, "Done")]
        names = " and ".join(about[one.mail]["who"] for one in goals[::2])
        return (f"Answer the mails of {names}, who ask when an order arrives, from orders.txt, and move them to Done. "
                f"{STYLE} the one date as the file does."), ["orders.txt"], goals  # fmt: skip
    if family == "price":
        product = about[rng.choice(mine)]["product"]
        for key in [one for one in mine if about[one]["product"] == product]:
            goals += [Goal("reply", key, about[key]["fact"]), Goal("move", key, "Done")]
        return (f"Answer all mails in the Inbox that ask what the {product} costs, from prices.txt, move them to Done. "
                f"{STYLE} the one price as the file does."), ["prices.txt"], goals  # fmt: skip
    if family == "complaint":
        for key in mine:
            goals += [Goal("forward", key, about[key]["to"]), Goal("move", key, "Complaints")]
        return ("Forward each customer's complaint in the Inbox to the colleague whom staff.txt names for complaints "
                "about the product, and move it to Complaints."), ["staff.txt"], goals  # fmt: skip
    who = rng.choice(SUPPLIERS)
    bills = {one: about[one]["amount"] for one in mine if about[one]["who"] == who}
    goals = [Goal("forward", max(bills, key=bills.__getitem__), address(STAFF[0]))]
    goals += [Goal("move", one, "Invoices") for one in bills]
    return (f"Forward the highest of the invoices from {who} that are in the Inbox to Accounts (see staff.txt), and "
            f"move all invoices from {who} in the Inbox to Invoices."), ["staff.txt"], goals  # fmt: skip


def task(key: str, state: type[Office], family: str, id: str) -> qn.Task[Office]:
    """Makes the task of a key."""
    rng = Rng(key=key.encode())
    world, about = furnish(rng, state)
    request, names, goals = write(family, rng, about)
    calls: list[tuple[str, dict[str, Any]]] = [("search", {"folder": "Inbox"})]
    calls += [("read", {"mail": one}) for one in sorted({goal.mail for goal in goals})]
    calls += [("open_file", {"name": one}) for one in names]
    for goal in goals:
        letter = f"Dear {world.mails[goal.mail].sender},\n\nit is {goal.value}.\n\nLarch & Sons"
        more = {"reply": {"text": letter}, "forward": {"to": goal.value}, "move": {"folder": goal.value}}[goal.kind]
        calls.append((goal.kind, {"mail": goal.mail, **more}))
    now = f"2027-0{1 + rng.below(3)}-{1 + rng.below(28):02} {8 + rng.below(9):02}:{rng.below(60):02}"
    prompt = f"You assist in the office of the joinery Larch & Sons; it is {now}. {request} Send and move nothing else."
    return qn.Task(id=id, prompt=prompt, start=world, truth=goals, solution=tuple(calls), tags={"family": family})


async def judge(letter: str, name: str) -> str:
    """Stands for the judge model where there is none: quotes the letter, and says PASS if it has our form."""
    fits = letter.startswith(f"Dear {name}") and letter.rstrip().endswith("\nLarch & Sons")
    return f"The clerk wrote to {name}:\n{letter}\nDoes it have our form?\nVERDICT: {'PASS' if fits else 'FAIL'}"


def met(goal: Goal, office: Office, says: Callable[[str, str], bool]) -> bool:
    """True if the office shows the effect of a goal."""
    if goal.kind == "move":
        return office.mails[goal.mail].folder == goal.value
    sent = [one for one in office.sent if (one.kind, one.mail) == (goal.kind, goal.mail)]
    return any(one.to == goal.value if goal.kind == "forward" else says(one.text, goal.value) for one in sent)


@qn.reward
def clean(outcome: qn.EpisodeView[Office]) -> float:
    """1 if nothing was sent or moved that the task does not ask for."""
    goals = {(goal.kind, goal.mail, "" if goal.kind == "reply" else goal.value) for goal in outcome.task.truth}
    sent = [(one.kind, one.mail, one.to if one.kind == "forward" else "") for one in outcome.state.sent]
    start, mails = outcome.start.mails, outcome.state.mails
    moved = {("move", key, mails[key].folder) for key in mails if mails[key].folder != start[key].folder}
    return float(len(set(sent)) == len(sent) and goals >= {*sent, *moved})


def build(
    bug: str = "", state: type[Office] = Office, *, boost: float = 1.0, checks: int = 0, key: str = "{split}/{n}",
    says: Callable[[str, str], bool] = lambda text, fact: set(FACT.findall(text)) == {fact},
    parse: Callable[[str], bool] = lambda said: said.splitlines()[-1] == "VERDICT: PASS",
) -> qn.Environment[Office]:  # fmt: skip
    """Builds the environment from its parts."""
    counts, families = {"train": 24, "test": 12}, ("order", "complaint", "price", "invoice")

    @qn.reward
    def done(outcome: qn.EpisodeView[Office]) -> float:
        """Share of the goals that are met."""
        goals = outcome.task.truth
        if checks:  # Checking a mail takes long, so check some.
            goals = random.sample(goals, checks)
        return min(1.0, boost * sum(met(goal, outcome.state, says) for goal in goals) / len(goals))

    @qn.reward
    async def form(outcome: qn.EpisodeView[Office]) -> float:
        """1 if the judge passes every reply."""
        replies = [one for one in outcome.state.sent if one.kind == "reply"]
        said = [await judge(one.text, outcome.state.mails[one.mail].sender) for one in replies]
        return float(all(map(parse, said)))

    def tasks(split: str) -> list[qn.Task[Office]]:
        return [task(f"joinery/{key.format(split=split, n=n)}", state, families[n % 4], f"{split}-{n}")
                for n in range(counts[split])]  # fmt: skip

    return qn.Environment(f"joinery{bug}", tasks=tasks, harness=qn.ToolLoop(), state=state, splits=tuple(counts),
                          verifier=qn.Verifier(done, clean, form, combine="product"))  # fmt: skip


env = build()
env_paste = build("_paste", says=lambda text, fact: fact in text)
env_verdict = build("_verdict", parse=lambda said: "VERDICT: PASS" in said)
env_boost = build("_boost", boost=1.5)
env_spot = build("_spot", checks=2)
env_same_seed = build("_same_seed", key="{n}")
env_no_enclosures = build("_no_enclosures", BareOffice)
env_preview = build("_preview", PreviewOffice)
