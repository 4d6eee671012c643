"""Replies to complaints, graded by a checklist whose judge model is a script that runs in this process.

The judge reads the case from the prompt, as a language model would, and quotes the words that meet an item.
"""

import re

import msgspec

import quintain as qn
from quintain.harness import Request
from quintain.judges import Item, Judge, checklist
from quintain.state import Rng
from quintain.trace import Message, Reply, plain

FENCED = re.compile(r"<(task|text) ([0-9a-f]{16})>\n(.*?)\n</\1 \2>", re.DOTALL)
FACTS = {"order": r"Q-\d{5}", "refund": r"\d+\.\d\d EUR", "date": r"\d{4}-\d\d-\d\d"}
"""Pattern of each fact; a case holds each of them once."""
SORRY = re.compile(r"\b(?:sorry|apologi[sz]e|apolog(?:y|ies))\b", re.IGNORECASE)
ITEMS = (
    Item("order", "It names the order of the case."),
    Item("refund", "It names the refund of the case."),
    Item("date", "It names the day of the refund."),
    Item("polite", "It addresses the customer by name, and says sorry or apologizes."),
    Item("stray", "It holds digits besides these three facts.", -1.0),
    Item("long", "It has more than 80 words.", -1.0),
)
NAMES = ("Abel", "Boyd", "Cruz", "Dunn", "Egan", "Frey", "Gale", "Hart")


class Desk(qn.State):
    """World of a reply: the case stands in the prompt."""


def quotes(case: str, text: str) -> dict[str, str]:
    """Returns the words that meet each item; empty for an item that is not met."""
    found, rest = dict.fromkeys((item.name for item in ITEMS), ""), text
    for name, pattern in FACTS.items():
        fact = re.findall(pattern, case)[0]
        whole = rf"(?<![\w.-]){re.escape(fact)}(?![\w-])"
        found[name] = fact if re.search(whole, text) else ""
        rest = re.sub(whole, "", rest)
    customer = case.partition(" ")[0]
    sorry = SORRY.search(text)
    found["polite"] = sorry[0] if sorry and re.search(rf"\b{customer}\b", text) else ""
    digit = re.search(r"\d", rest)
    found["stray"] = digit[0] if digit else ""
    found["long"] = text if len(text.split()) > 80 else ""
    return found


async def scripted_judge(request: Request) -> Reply:
    """Grades one reply by the items, from nothing but the prompt."""
    fenced = {name: text for name, _, text in FENCED.findall(plain(request.messages[-1].content))}
    met = quotes(fenced["task"], fenced["text"])
    items = [{"name": name, "met": bool(quote), "quote": quote} for name, quote in met.items()]
    return Reply(Message("assistant", msgspec.json.encode({"items": items}).decode()))


def make(split: str, number: int) -> qn.Task[Desk]:
    rng = Rng(key=f"complaint_reply/{split}/{number}".encode())
    order = f"Q-{10_000 + rng.below(90_000)}"
    refund = f"{5 + rng.below(95)}.{rng.below(10)}0 EUR"
    date = f"2025-0{1 + rng.below(9)}-{10 + rng.below(18)}"
    name = rng.choice(NAMES)
    prompt = (
        f"{name} complains that a parcel arrived broken. The order is {order}, the refund is {refund}, and the bank "
        f"books it on {date}. Write the reply to {name}. It is graded by a checklist: one quarter each for the number "
        "of the order, the amount and the day, spelled as they stand here, and one for addressing the customer by name "
        "with the word sorry or apologize. It loses one quarter if it holds any other digits, and one quarter if it "
        "has more than 80 words."
    )
    reply = f"Dear {name}, I am sorry. For order {order} we refund {refund}; the bank books it on {date}."
    return qn.Task(id=f"{split}-{number}", prompt=prompt, start=Desk(), solution=(), answer=reply)


env = qn.Environment(
    "complaint_reply",
    tasks=lambda split: qn.Tasks(12, lambda number: make(split, number)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(checklist(Judge(scripted_judge, name="script"), ITEMS)),
    state=Desk,
)
