"""Extraction of order numbers from a message, with partial credit that the prompt states."""

import re

import quintain as qn
from quintain.judges import final_answer
from quintain.state import Rng

NUMBER = re.compile(r"PX-\d{4}", re.ASCII)
KEEP = ("Please leave {} as it is.", "{} arrived yesterday, thank you.", "{} is for my sister, so keep that one.")
DROP = ("I no longer need {}.", "Please cancel {}.", "Stop the shipment of {}, I bought it elsewhere.")
RULE = (
    "List the numbers of all orders that the customer wants to cancel, and no others. Reply with 'Answer: ' and the "
    "numbers, separated by commas, in any order. The score is (right numbers - wrong numbers) / (numbers to find), at "
    "least 0; a number that you name twice counts once. If the line holds anything but numbers and commas, it scores 0."
)


class Inbox(qn.State):
    """World of an extraction: the message stands in the prompt."""


def make(split: str, number: int) -> qn.Task[Inbox]:
    rng = Rng(key=f"order_extraction/{split}/{number}".encode())
    orders = [f"PX-{one}" for one in rng.sample(range(1000, 10_000), 4 + number % 4)]
    # At least half of the orders stay, so an answer that names every order scores 0.
    dropped = orders[: len(orders) // 2]
    lines = [rng.choice(DROP if order in dropped else KEEP).format(order) for order in orders]
    rng.shuffle(lines)
    return qn.Task(
        id=f"{split}-{number}",
        prompt=f"A customer writes:\n\nHello, about my orders. {' '.join(lines)} Best wishes\n\n{RULE}",
        start=Inbox(),
        truth=sorted(dropped),
        solution=(),
        answer=f"Answer: {', '.join(sorted(dropped))}",
    )


def listed(answer: str) -> set[str] | None:
    """Returns the order numbers of an answer; None if it holds anything else."""
    items = [item.strip() for item in final_answer(answer).removesuffix(".").split(",")]
    return set(items) if all(NUMBER.fullmatch(item) for item in items) else None


@qn.reward
def share_of_orders(view: qn.EpisodeView[Inbox]) -> qn.Score:
    said, truth = listed(view.answer), set(view.task.truth)
    if said is None:
        return qn.Score(0.0, "the answer is not a list of order numbers")
    right, wrong = len(said & truth), len(said - truth)
    return qn.Score(max(0.0, (right - wrong) / len(truth)), f"{right} right, {wrong} wrong, {len(truth)} to find")


env = qn.Environment(
    "order_extraction",
    tasks=lambda split: qn.Tasks(16, lambda number: make(split, number)),
    harness=qn.ToolLoop(system="You read customers' messages."),
    verifier=qn.Verifier(share_of_orders),
    state=Inbox,
)
