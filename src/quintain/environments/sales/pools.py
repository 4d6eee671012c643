"""Words that the world is made of, and how people mistreat them."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Generic, TypeVar

from quintain.state import Rng

T = TypeVar("T")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# A colon stands before the spelling in addresses.

FIRST = _words("""
    Aaliyah Agnieszka Aiko Alejandra Amara André:Andre Anjali Arjun Beatriz Björn:Bjoern Carlos Catalina Chidi
    Chloé:Chloe Daisuke Dana Deepika Diego Eleanor Emre Erika Esther Fatima Felix Fiona Françoise:Francoise Giulia
    Grace Hana Henrik Ibrahim Ines Ivan Jasmin Joaquín:Joaquin Jonas Jürgen:Juergen Kavya Keiko Kwame Lars Leila Liam
    Lucía:Lucia Magnus Mateusz Mei Miguel Naomi Nikhil Noor Olivia Oskar Paulo Priya Rafael Renée:Renee Rohan Ruth
    Sanne Sergio Siobhán:Siobhan Sofia Søren:Soren Tadeusz Tomas Uma Valentina Wanjiru Wei Xiomara Yara Yusuf Zoë:Zoe
""")
LAST = _words("""
    Abara Almeida Andersson Bakker Banerjee Bauer Beaumont Bergström:Bergstrom Bianchi Brennan Castillo Chaudhry Chen
    Costa Dąbrowski:Dabrowski Delgado Demir Dubois Eriksen Fernandes Fischer Fontaine García:Garcia Goldberg Haddad
    Hashimoto Hoang Holloway Ibáñez:Ibanez Iyer Jankowski Jensen Kaplan Kaur Kimura Kowalski Lindqvist López:Lopez
    Marchetti Mbeki McAllister Mendes Meyer Moreau Müller:Mueller Nakamura Nguyen Nowak O'Brien:OBrien Okafor Okonkwo
    Oliveira Östberg:Ostberg Patel Pereira Petrov Quigley Ramanathan Reyes Rossi Saito Schneider Sharma Silva
    Sørensen:Sorensen Suzuki Tan Thompson Van-der-Berg Varga Visser Weber Whitfield Yamamoto Zieliński:Zielinski Zhang
""")
COMPANY = _words("""
    Alder Amber Apex Arc Aurora Basalt Beacon Birch Blue Bright Canyon Cedar Cobalt Coral Crest Delta Drift Echo Ember
    Fable Falcon Fern Flint Garnet Glacier Granite Harbor Hazel Helix Heron Iron Ivory Juniper Kestrel Lantern Larch
    Lumen Maple Meridian Mistral Nimbus Nova Onyx Orchid Osprey Pine Quarry Raven Ridge Saffron Sable Sierra Slate
    Sparrow Sterling Summit Tidal Umber Vale Verdant Willow Zephyr
""")
TRADE = _words("""
    Analytics Biotech Consulting Dynamics Energy Foods Freight Health Industries Insurance Labs Logistics Mobility
    Partners Pharma Robotics Software Systems Textiles Ventures
""")
SUFFIX = ("", "", "", " Inc.", " Ltd", " GmbH", " B.V.", " AB", ", Inc", " Group")
INDUSTRY = ("manufacturing", "software", "healthcare", "retail", "Logistics", "finance", "Financial Services", "energy")
TITLE = (
    "Head of Operations", "VP Sales", "CTO", "cto", "Chief Technology Officer", "IT Manager", "Procurement Lead", "COO",
    "Director of IT", "Dir. IT", "Operations Manger", "Head of Digital", "Purchasing", "CFO", "Project Manager",
    "Office Mgr",
)  # fmt: skip
SOURCE = ("webinar", "website form", "trade fair", "referral", "cold call", "white paper", "LinkedIn", "linkedin")
CHATTER = (
    "Left a voicemail.", "Called, no answer. Try again next week.", "Asked for the security white paper, sent.",
    "Nice chat at the fair, wants to hear about the roadmap.", "Number does not work, ask reception.",
    "Talked about their current tool (spreadsheets...).", "Forwarded to colleague, no name given.", "tbd",
    "Budget round is over for this year he says?", "Very interested!!! call back", "Opened the last three e-mails.",
    "Wants references from the same industry.", "Hung up.", "Meeting moved twice.",
    "Uses a competitor until end of year.",
    "Spoke to the assistant, who will pass it on.", "See e-mail thread.", "Reminder: birthday in June",
)  # fmt: skip
SUBJECTS = (
    "Following up", "Your question about Tessera", "Tessera in 20 minutes", "Webinar recording", "Hello from Tessera",
)  # fmt: skip
INTERNAL = (
    "Pipeline review", "1:1", "Blocked", "Team lunch", "Forecast", "Training", "Customer call", "Dentist", "Focus time",
)  # fmt: skip


class Deck(Generic[T]):
    """Items in a seeded order, each once; unlike a shuffle it costs nothing before it is drawn from."""

    def __init__(self, items: Sequence[T], rng: Rng) -> None:
        size = len(items)
        self._items = items
        self._at = rng.below(size)
        self._step = 1 + rng.below(size - 1)
        while gcd(self._step, size) != 1:
            self._step = 1 + self._step % (size - 1)
        self.left = size

    def draw(self) -> T:
        """The next item.

        Raises:
            IndexError: The deck is empty.
        """
        if not self.left:
            raise IndexError("the deck is empty")
        self.left -= 1
        self._at = (self._at + self._step) % len(self._items)
        return self._items[self._at]


def written(word: str) -> str:
    """A name as its bearer writes it."""
    return word.partition(":")[0].replace("Van-der-", "van der ")


def ascii_of(word: str) -> str:
    """A name as it stands in an address."""
    return (word.partition(":")[2] or word).replace("-", "").replace("'", "").casefold()


def phone(rng: Rng, dial: str) -> str:
    """A number in one of the ways people type one."""
    digits = f"{rng.below(9_000_000) + 1_000_000}"
    area = f"{rng.below(89) + 10}"
    forms = (
        f"+{dial} {area} {digits[:3]} {digits[3:]}",
        f"+{dial}{area}{digits}",
        f"00{dial}-{area}-{digits}",
        f"+{dial} ({area}) {digits[:3]}-{digits[3:]}",
        f"+{dial}.{area}.{digits[:3]}.{digits[3:]}",
    )
    return rng.choice(forms)


def retyped(digits: str) -> str:
    """Returns the same phone number in another spelling."""
    plain = "".join(letter for letter in digits if letter.isdecimal())
    grouped = "-".join(plain[i : i + 3] for i in range(0, len(plain), 3))
    return f"+{grouped}" if grouped != digits.lstrip("+") else f"+{plain}"


def scruffy(rng: Rng, text: str) -> str:
    """A text as hasty people type it: mostly right, at times in the wrong case or with a space too many."""
    match rng.below(12):
        case 0:
            return text.upper()
        case 1:
            return text.lower()
        case 2:
            return f"{text} "
        case 3:
            return text.replace(" ", "  ")
        case _:
            return text
