"""Unit conversions, graded with a relative tolerance that the prompt states."""

from typing import NamedTuple

from quintain.judges import numeric
from quintain.state import Rng
from quintain.tasks import from_rows

TOLERANCE = 0.01
COUNTS = {"train": 40, "validation": 10, "test": 12}


class Conversion(NamedTuple):
    """One kind of question: target = value * factor + offset."""

    source: str
    target: str
    factor: float
    offset: float
    fact: str


CONVERSIONS = (
    Conversion("miles", "kilometres", 1.609344, 0.0, "1 mile is 1.609344 km"),
    Conversion("pounds", "kilograms", 0.45359237, 0.0, "1 pound is 0.45359237 kg"),
    Conversion("inches", "centimetres", 2.54, 0.0, "1 inch is 2.54 cm"),
    Conversion("US gallons", "litres", 3.785411784, 0.0, "1 US gallon is 3.785411784 litres"),
    Conversion("acres", "hectares", 0.40468564224, 0.0, "1 acre is 0.40468564224 ha"),
    Conversion("degrees Fahrenheit", "degrees Celsius", 5 / 9, -160 / 9, "C = (F - 32) * 5 / 9"),
)


def question(split: str, number: int) -> dict[str, object]:
    """Returns the row of one question; a Fahrenheit value is above 60, so that 1 % of the truth is not near zero."""
    rng = Rng(key=f"unit_conversion/{split}/{number}".encode())
    kind = CONVERSIONS[number % len(CONVERSIONS)]
    value = 60 + rng.below(4000) / 10
    truth = value * kind.factor + kind.offset
    prompt = (
        f"Convert {value} {kind.source} to {kind.target} ({kind.fact}). "
        f"End with a line 'Answer: NUMBER'. A number within {TOLERANCE:.0%} of the exact value is right; "
        "only the last number of that line counts, so give no unit that contains digits."
    )
    return {"id": f"{split}-{number}", "prompt": prompt, "answer": f"{truth:.6f}", "unit": kind.source}


def rows(split: str) -> list[dict[str, object]]:
    return [question(split, number) for number in range(COUNTS[split])]


env = from_rows(
    "unit_conversion",
    {split: rows(split) for split in COUNTS},
    scorer=numeric(relative=TOLERANCE),
    tag_columns=["unit"],
    system="You convert units. You may reason before the last line.",
)
