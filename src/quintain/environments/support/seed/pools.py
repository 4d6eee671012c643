"""Names, places, things and words that the world is drawn from."""

from __future__ import annotations

from typing import NamedTuple

FIRST = (
    "Anna", "Ben", "Chiara", "David", "Elif", "Farid", "Greta", "Hamza", "Ines", "Jonas", "Katarzyna", "Łukasz",
    "Maëlle", "Nils", "Olga", "Pablo", "Quentin", "Renée", "Søren", "Tomás", "Ulrike", "Valentina", "Willem", "Xenia",
    "Yusuf", "Zoë", "Aoife", "Björn", "Claire", "Dmitri", "Eva", "Fiona", "Giulia", "Hanna", "Igor", "José", "Karim",
    "Lena", "Marek", "Noor", "Óscar", "Petra", "Rasmus", "Siobhán", "Théo", "Uwe", "Vera", "Wiebke", "Yara", "Zbigniew",
)  # fmt: skip
LAST = (
    "Albrecht", "Bianchi", "Castro", "Dubois", "Eriksen", "Ferreira", "García", "Hofmann", "Ivanova", "Jansen",
    "Kowalski", "Lindqvist", "Müller", "Nowak", "O'Brien", "Petrov", "Quist", "Rossi", "Schäfer", "Tanaka", "Ünal",
    "van den Berg", "Weiß", "Yalçin", "Zimmermann", "Andersson", "Brandt", "Costa", "Díaz", "Engström", "Fischer",
    "Gruber", "Horváth", "Iglesias", "Jung", "Keller", "Lefèvre", "Moreau", "Nielsen", "Özdemir",
)  # fmt: skip
MAIL = ("posteo.example", "kabelmail.example", "inbox.example", "webpost.example", "mailhaus.example")
FIRM = (
    "Nordlicht",
    "Brücke",
    "Vela",
    "Kaap",
    "Orto",
    "Silva",
    "Tallinna",
    "Rivage",
    "Castell",
    "Fjord",
    "Lumen",
    "Pons",
)
TRADE = ("Logistik", "Studios", "Praxis", "Bakeries", "Immobilien", "Labs", "Hotels", "Kanzlei", "Works", "Verwaltung")
STREET = (
    "Lindenstraße", "Rue des Lilas", "Hoofdstraat", "Calle Mayor", "Via Roma", "Kastanienallee", "Nørregade",
    "Am Markt", "Avenue Foch", "Ringstraße", "Dorpsweg", "Plaza Nueva", "Bergstraße", "Quai Sud", "Schulweg",
)  # fmt: skip


class Country(NamedTuple):
    """A country with its language, zone, tax and some cities with the digits that postcodes begin with."""

    code: str
    language: str
    zone: str
    tax: int
    digits: int
    cities: tuple[tuple[str, str], ...]


COUNTRIES = (
    Country("DE", "de", "Europe/Berlin", 19, 5, (("Köln", "50"), ("Berlin", "10"), ("Leipzig", "04"), ("Ulm", "89"))),
    Country("AT", "de", "Europe/Vienna", 20, 4, (("Wien", "1"), ("Graz", "8"), ("Linz", "4"))),
    Country("FR", "fr", "Europe/Paris", 20, 5, (("Lyon", "69"), ("Nantes", "44"), ("Lille", "59"))),
    Country("NL", "en", "Europe/Amsterdam", 21, 4, (("Utrecht", "35"), ("Breda", "48"), ("Delft", "26"))),
    Country("ES", "es", "Europe/Madrid", 21, 5, (("Madrid", "28"), ("Sevilla", "41"), ("Bilbao", "48"))),
    Country("IT", "en", "Europe/Rome", 22, 5, (("Milano", "20"), ("Torino", "10"), ("Bari", "70"))),
    Country("IE", "en", "Europe/Dublin", 23, 5, (("Cork", "21"), ("Galway", "91"))),
    Country("DK", "en", "Europe/Copenhagen", 25, 4, (("Aarhus", "80"), ("Odense", "50"))),
)
ABROAD = {
    "BR": ("Brazil", "Brasilien", "Brésil", "Brasil"),
    "VN": ("Vietnam", "Viêt Nam", "Viet Nam"),
    "RO": ("Romania", "Rumänien", "Roumanie", "Rumanía"),
    "NG": ("Nigeria", "Nigéria"),
    "US": ("United States", "USA", "Vereinigte Staaten", "Vereinigten Staaten", "États-Unis", "Estados Unidos"),
    "UA": ("Ukraine", "Ucrania"),
}
"""Countries in which no customer of ours lives, by their names in English and other languages."""

GROUPS = (
    ("Support", "everything that reaches us first"),
    ("Finance", "money beyond the limits of an agent"),
    ("Security", "takeovers, impostors, data protection"),
    ("Logistics", "carriers and the warehouse"),
)
PLANS = (
    ("Care Basic", 490, 1, True),
    ("Care Plus", 990, 3, True),
    ("Care Family", 1490, 6, True),
    ("Care Business", 4900, 25, True),
    ("Care Classic", 790, 2, False),
    ("Care Site", 14900, 120, True),
)
"""Name, net price a month in cents, seats, whether it is offered."""
PRODUCTS = (
    ("CAM-01", "Halden Cam", 12900), ("CAM-02", "Halden Cam Outdoor", 17900), ("HUB-01", "Halden Hub", 9900),
    ("SEN-01", "Door sensor", 2490), ("SEN-02", "Water sensor", 2990), ("SEN-03", "Motion sensor", 3490),
    ("SIR-01", "Indoor siren", 4990), ("KEY-01", "Keypad", 5990), ("BAT-04", "Battery pack", 1490),
    ("MNT-02", "Wall mount", 1190), ("BEL-01", "Halden Doorbell", 19900), ("EXT-01", "Range extender", 3990),
)  # fmt: skip
CARRIERS = (("Velox", 8, True, "VX"), ("Postring", 12, False, "PR"), ("Kurio", 6, True, "KU"))
"""Name, days after the last scan from which a parcel counts as lost, whether it redirects, letters of its numbers."""
HUBS = ("Hannover hub", "Lyon Sud", "Eindhoven", "Leipzig LEJ", "Nürnberg depot", "Zaragoza", "Bologna", "Herning")
DEVICES = ("Halden Cam", "Halden Cam Outdoor", "Halden Hub", "Halden Doorbell", "Door sensor")
FIRMWARES = ("3.9.4", "4.0.1", "4.1.0", "4.1.7", "4.2.0", "4.2.0", "4.2.0")
CARDS = ("Visa", "Mastercard", "Girocard", "Amex")
REGIONS: tuple[str, ...] = ("eu-west", "eu-west", "eu-north", "us-east")
COMPONENTS = {
    "sync": "Settings and recordings are not synchronised",
    "video": "Live video does not start",
    "alerts": "Alarms arrive late or not at all",
    "login": "Logging in fails with an error",
    "billing": "The page with invoices stays empty",
}
NOTES = (
    "prefers to be called in the morning", "VIP?", "has asked twice for the Outdoor cam", "very friendly on the phone",
    "old address in the ERP, see 2022", "do not offer the trial again", "speaks some English", "dup of another record?",
    "threatened a chargeback in 2023, settled",
)  # fmt: skip
