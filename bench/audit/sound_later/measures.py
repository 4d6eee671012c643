"""Unit conversions: the last line holds a number and a unit, within a tolerance that the prompt states."""

import re
from fractions import Fraction

import quintain as qn
from quintain.tasks import from_rows

# Symbol: names that are accepted for it, besides itself.
UNITS = {
    "km": ("kilometre", "kilometres", "kilometer", "kilometers"),
    "m": ("metre", "metres", "meter", "meters"),
    "mi": ("mile", "miles"),
    "kg": ("kilogram", "kilograms"),
    "lb": ("pound", "pounds"),
    "L": ("litre", "litres", "liter", "liters"),
    "gal": ("gallon", "gallons"),
    "km/h": ("kilometres per hour", "kilometers per hour"),
    "C": ("degrees Celsius", "°C"),
    "F": ("degrees Fahrenheit", "°F"),
    "J": ("joule", "joules"),
}
# From, to, factor, offset: exact by definition.
RULES: list[tuple[str, str, str, str, str]] = [
    ("miles", "mi", "km", "1.609344", "0"),
    ("feet", "ft", "m", "0.3048", "0"),
    ("kilometres", "km", "mi", "15625/25146", "0"),
    ("pounds", "lb", "kg", "0.45359237", "0"),
    ("kilograms", "kg", "lb", "100000000/45359237", "0"),
    ("US gallons", "gal", "L", "3.785411784", "0"),
    ("knots", "kn", "km/h", "1.852", "0"),
    ("degrees Celsius", "C", "F", "9/5", "32"),
    ("degrees Fahrenheit", "F", "C", "5/9", "-160/9"),
    ("thermochemical calories", "cal", "J", "4.184", "0"),
]
TOLERANCE = Fraction(5, 1000)
FORMAT = (
    "Write the result on the last line: a number and the unit {symbol!r}, with these capitals, or its English name. "
    "Use a point for decimals, and neither a power of ten nor a fraction; one full stop at the end is ignored. The "
    "result is right if it differs by at most 0.5 % from the exact value. If you write more lines, only the last one "
    "counts."
)
_LINE = re.compile(
    r"([-+\N{MINUS SIGN}]?)([0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,20})(\.[0-9]{1,20})? ?(\S.{0,30})", re.ASCII
)


def rows(split: str, values: tuple[str, ...]) -> list[dict[str, str]]:
    made: list[dict[str, str]] = []
    for n, (name, short, symbol, factor, offset) in enumerate(RULES):
        value = values[n % len(values)]
        exact = Fraction(value) * Fraction(factor) + Fraction(offset)
        prompt = f"Convert {value} {name} ({short}). {FORMAT.format(symbol=symbol)}"
        # The values are above 5, so eight decimals are far inside the tolerance.
        made.append({"id": f"{split}-{n}", "question": prompt, "answer": f"{float(exact):.8f} {symbol}"})
    return made


def parsed(line: str) -> tuple[Fraction, str] | None:
    """Returns the number and the symbol of a line; None if it is not a number with a known unit."""
    if not (found := _LINE.fullmatch(line)):
        return None
    sign, whole, decimals, unit = found.groups()
    number = Fraction(whole.replace(",", "") + (decimals or ""))
    names = {name.casefold(): symbol for symbol, others in UNITS.items() for name in others}
    symbol = unit if unit in UNITS else names.get(unit.casefold())
    return (-number if sign in ("-", "\N{MINUS SIGN}") else number, symbol) if symbol else None


def close(answer: str, truth: str) -> qn.Score:
    lines = answer.strip().splitlines()
    said, right = parsed(lines[-1].strip().removesuffix(".")) if lines else None, parsed(truth)
    assert right is not None
    if said is None:
        return qn.Score(0.0, "the last line is not a number with a unit")
    same = said[1] == right[1] and abs(said[0] - right[0]) <= TOLERANCE * abs(right[0])
    return qn.Score(float(same), f"read {float(said[0])} {said[1]}, right is {truth}")


env = from_rows(
    "measures",
    {"train": rows("train", ("12", "250", "37.5", "81")), "test": rows("test", ("64", "19", "105", "400.25", "58"))},
    scorer=close,
)
