"""Language of customers: greetings, complaints, typos, signatures, quoted mails."""

from __future__ import annotations

from quintain.state import Rng

GREETINGS = {
    "en": ("Hi,", "Hello,", "Hello support team,", "hey", "Good morning,", "To whom it may concern,", ""),
    "de": ("Hallo,", "Guten Tag,", "Sehr geehrte Damen und Herren,", "Moin,"),
    "fr": ("Bonjour,", "Bonjour Madame, Monsieur,"),
    "es": ("Hola,", "Buenos días:"),
}
CLOSINGS = {
    "en": ("Thanks", "Best regards", "Cheers", "Please hurry!", "Kind regards,", "thx"),
    "de": ("Danke", "Mit freundlichen Grüßen", "Viele Grüße", "LG"),
    "fr": ("Merci d'avance", "Cordialement"),
    "es": ("Gracias", "Un saludo"),
}
PROOFS = {
    "en": ("For your reference: {}.", "My details: {}", "({})", "You will want this: {}."),
    "de": ("Zu meinen Daten: {}.", "Hier meine Angaben: {}"),
    "fr": ("Mes coordonnées : {}.",),
    "es": ("Mis datos: {}.",),
}
PROOF_KINDS = {
    "en": {"number": "number {}", "postcode": "postcode {}", "last4": "card ending {}"},
    "de": {"number": "Nummer {}", "postcode": "PLZ {}", "last4": "Karte mit Endziffern {}"},
    "fr": {"number": "numéro {}", "postcode": "code postal {}", "last4": "carte finissant par {}"},
    "es": {"number": "número {}", "postcode": "código postal {}", "last4": "tarjeta terminada en {}"},
}
ASIDES = (
    "I have been a customer for years and this never happened before.",
    "My neighbour recommended you, btw.",
    "I already tried turning it off and on again.",
    "I am travelling from Thursday on.",
    "Please don't send me to the FAQ again.",
    "The app looks nice since the update, by the way.",
    "I called but was on hold for 25 minutes...",
)
QUOTES = (
    "> On Monday you wrote:\n> Thank you for your order. Your Halden team",
    "-----Original Message-----\nFrom: Halden <no-reply@halden.example>\nSubject: Your monthly summary",
    "> Did you know? Halden Care now keeps recordings for 30 days.",
)
DEVICES = ("Sent from my phone", "Get the mail app for Android", "--\nDiese E-Mail ist vertraulich.")

SMALL_TALK = {
    "login": ("Cannot log in", "It says my password is wrong. I am sure it is not."),
    "payment": ("Payment", "Why was my card declined? Nothing has changed on my side."),
    "refund": ("Refund?", "You took money that I do not recognise, please explain."),
    "delivery": ("Where is my parcel", "It should have been here on Tuesday. Nothing so far."),
    "address": ("New address", "I have moved, can you update where you send things?"),
    "plan": ("Plan", "What is the difference between Plus and Family, and what do I have?"),
    "pricing": ("Invoice", "The amount on my invoice is not what the website says."),
    "outage": ("App does not work", "Since this morning nothing loads. Is it me or you?"),
    "other": ("Question", "Does the Outdoor camera work at minus 20 degrees?"),
}
ANSWERS = (
    "Thank you for writing. This has been taken care of; please tell us if anything is left.",
    "Sorry for the trouble. It was on our side and works again.",
    "We have looked into it and sent you the details by e-mail.",
    "Thanks for your patience. You should see the change within an hour.",
)
INTERNAL = (
    "checked with warehouse, all fine", "customer seems upset, be careful", "same as last week, see finance channel",
    "called back, nobody there", "he is right, our mistake", "margin on this one is negative anyway",
)  # fmt: skip
HUNCHES = (
    "from night shift: looks like the outage again? can probably be closed",
    "imho just give him the money, he will not stop writing",
    "seems to be a duplicate, saw something like it last week",
    "nothing to do here I think, user error",
    "probably card problem, told two others the same today",
)
"""Wrong guesses that colleagues note in passing."""
THANKS = ("Thanks, works now!", "great, thank you", "Danke!", "ok", "perfect :)", "Finally.")


def typos(rng: Rng, text: str, rate: int) -> str:
    """Returns the text with typing errors: about one word in `rate` has two letters swapped, doubled or lost.

    Words with digits, capitals inside or signs are left alone, for they are facts.
    """
    words = text.split(" ")
    for place, word in enumerate(words):
        if len(word) > 4 and word.isalpha() and word[1:].islower() and rng.below(rate) == 0:
            cut = 1 + rng.below(len(word) - 2)
            kind = rng.below(3)
            middle = (word[cut + 1] + word[cut], word[cut] * 2 + word[cut + 1], word[cut + 1])[kind]
            words[place] = word[:cut] + middle + word[cut + 2 :]
    return " ".join(words)


def letter(rng: Rng, body: str, *, name: str, language: str = "en", mess: int = 2) -> str:
    """A whole message around a body.

    Args:
        rng: Draws what it looks like.
        body: What it is about; facts in it stay as they are.
        name: Who signs.
        language: Of greeting and closing.
        mess: 0 for tidy; more for typos, asides and what mail programs leave behind.
    """
    pieces = [rng.choice(GREETINGS[language]), typos(rng, body, 9) if mess > 1 else body]
    if mess and rng.below(2) and language == "en":
        pieces.insert(rng.choice((1, 2)), rng.choice(ASIDES))
    pieces.append(f"{rng.choice(CLOSINGS[language])}\n{name if rng.below(5) else name.split(maxsplit=1)[0]}")
    if mess and rng.below(4) == 0:
        pieces.append(rng.choice(DEVICES))
    if mess and rng.below(4) == 0:
        pieces.append(rng.choice(QUOTES))
    return "\n\n".join(piece for piece in pieces if piece)


def proof(rng: Rng, details: dict[str, str], language: str = "en") -> str:
    """Returns a sentence with the details that identify a customer."""
    said = ", ".join(PROOF_KINDS[language][kind].format(value) for kind, value in details.items())
    return rng.choice(PROOFS[language]).format(said)
