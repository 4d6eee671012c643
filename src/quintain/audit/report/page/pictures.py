"""Inline SVG pictures: a rate against its limit, and histograms.

Colours come from the page's stylesheet, for light, dark and print. Each picture has its numbers as a text alternative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list

from .markup import Html, join, tag

_WIDE, _HIGH = 640, 200
_SERIES = ("one", "two", "three", "four")
_BARS = 40  # most bars of a histogram; the rest are counted in its last label


def rate(failures: dict[str, Any], line: float) -> Html:
    low, high = float(failures["low"]), float(failures["high"])
    seen = failures["failures"] / failures["episodes"]
    most = min(1.0, max(2 * line, 1.15 * high))

    def at(value: float) -> float:
        return round(20 + (_WIDE - 40) * value / most, 1)

    step = next(one for one in (0.01, 0.02, 0.05, 0.1, 0.2) if most / one <= 10)
    ticks = [n * step for n in range(int(most / step + 1e-9) + 1)]
    alternative = f"{seen:.1%} of episodes broke; 95 % bounds {low:.1%} and {high:.1%}; the line is at {line:.0%}"
    return _svg(
        84,
        alternative,
        tag("line", class_="axis", x1=at(0), x2=at(most), y1=56, y2=56),
        *(_text(f"{tick:.0%}", at(tick), 74) for tick in ticks),
        tag("line", class_="limit", x1=at(line), x2=at(line), y1=18, y2=60),
        _text(f"{line:.0%} line", at(line), 12, style="limit"),
        tag("line", class_="bound" if high < line else "bound over", x1=at(low), x2=at(high), y1=38, y2=38),
        tag("line", class_="bound end", x1=at(high), x2=at(high), y1=31, y2=45),
        tag("line", class_="bound end", x1=at(low), x2=at(low), y1=31, y2=45),
        tag("circle", class_="point", cx=at(seen), cy=38, r=5),
    )


def histogram(title: str, labels: Sequence[str], counts: dict[str, Sequence[float]]) -> Html:
    """Returns bars by label, side by side for each series; several series are compared as shares."""
    totals = {name: sum(numbers) or 1 for name, numbers in counts.items()}
    is_shared = len(counts) > 1
    shares = {name: [one / (totals[name] if is_shared else 1) for one in numbers] for name, numbers in counts.items()}
    most = max((one for numbers in shares.values() for one in numbers), default=0) or 1
    places = min(len(labels), _BARS)
    wide = min(72, (_WIDE - 60) / max(1, places))
    bars = [
        tag(
            "rect",
            class_=f"bar {_SERIES[series % 4]}",
            x=round(50 + place * wide + wide * (0.1 + 0.8 * series / len(shares)), 1),
            y=round(20 + 130 * (1 - numbers[place] / most), 1),
            width=round(max(1.0, 0.8 * wide / len(shares)), 1),
            height=round(130 * numbers[place] / most, 1),
        )
        for series, numbers in enumerate(shares.values())
        for place in range(min(places, len(numbers)))
    ]
    every = max(1, -(-places // 8))
    short = [label if len(label) <= 11 else label[:10] + "…" for label in labels]
    names = [_text(short[n], 50 + (n + 0.5) * wide, 168) for n in range(0, places, every)]
    top = f"{most:.0%}" if is_shared else f"{most:,.0f}"
    pairs = {name: zip(labels, numbers, strict=False) for name, numbers in counts.items()}
    said = (f"{name}: " + ", ".join(f"{label} {count:g}" for label, count in pairs[name]) for name in counts)
    axis = tag("line", class_="axis", x1=50, x2=_WIDE - 10, y1=150, y2=150)
    picture = _svg(178, f"{title}. {'; '.join(said)}", axis, _text(top, 44, 26, style="end"), *bars, *names)
    more = f"{title}, the first {places} of {len(labels)}" if len(labels) > places else title
    keys = (tag("span", name, class_=f"key {_SERIES[place % 4]}") for place, name in enumerate(counts))
    legend = tag("span", join(keys, " "), class_="legend") if is_shared else None
    return tag("figure", tag("figcaption", more, legend), picture)


def found(value: Any) -> Iterator[Html]:
    """Yields pictures of a finding's value: `histograms` by name, with labels and counts by series."""
    drawings: Any = value.get("histograms") if is_dict(value) else None
    for title, one in drawings.items() if is_dict(drawings) else ():
        if is_dict(one) and is_list(one.get("labels")) and is_dict(one.get("counts")):
            yield histogram(title, [str(label) for label in one["labels"]], one["counts"])


def _svg(high: int, alternative: str, *inside: Html) -> Html:
    return tag("svg", *inside, viewBox=f"0 0 {_WIDE} {high}", role="img", aria_label=alternative)


def _text(said: str, x: float, y: float, *, style: str = "") -> Html:
    return tag("text", said, x=round(x, 1), y=y, class_=style or None)
