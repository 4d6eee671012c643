"""Inline SVG pictures: a rate against its limit, histograms, and latency under load.

Colours come from the page's stylesheet, for light, dark and print. Each picture has its numbers as a text alternative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from quintain.audit.facts.data import is_dict, is_list, is_number

from .markup import Html, join, tag

_WIDE, _HIGH = 640, 200
_SERIES = ("one", "two", "three", "four")
_BARS = 40
"""Most bars of a histogram; the rest are counted in its last label."""


def rate(failures: dict[str, Any], line: float) -> Html:
    """Returns a picture of the failure rate with its one-sided bounds and its limit."""
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
    """Returns bars by label, side by side for each series; several series are compared as shares.

    Args:
        title: Title of the picture.
        labels: One for each place.
        counts: By series, one number for each label.
    """
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
    names = [_text(_short(labels[n]), 50 + (n + 0.5) * wide, 168) for n in range(0, places, every)]
    top = f"{most:.0%}" if is_shared else f"{most:,.0f}"
    alternative = "; ".join(f"{name}: {_pairs(labels, numbers)}" for name, numbers in counts.items())
    axis = tag("line", class_="axis", x1=50, x2=_WIDE - 10, y1=150, y2=150)
    picture = _svg(178, f"{title}. {alternative}", axis, _text(top, 44, 26, style="end"), *bars, *names)
    more = f"{title}, the first {places} of {len(labels)}" if len(labels) > places else title
    return tag("figure", tag("figcaption", more, _legend(list(counts)) if is_shared else None), picture)


def _pairs(labels: Sequence[str], numbers: Sequence[float]) -> str:
    return ", ".join(f"{label} {number:g}" for label, number in zip(labels, numbers, strict=False))


def load(points: Sequence[dict[str, Any]]) -> Html:
    """Returns latency percentiles and errors against calls per second, as a picture and a table."""
    names = [name for name in ("p50", "p95", "p99") if any(is_number(point.get(name)) for point in points)]
    most = max((float(point[name]) for point in points for name in names if is_number(point.get(name))), default=0) or 1
    fast = max((float(point["qps"]) for point in points), default=0) or 1

    def at(point: dict[str, Any], name: str) -> tuple[float, float]:
        return round(56 + (_WIDE - 76) * point["qps"] / fast, 1), round(150 - 130 * point[name] / most, 1)

    drawn: list[Html] = []
    for series, name in enumerate(names):
        there = [at(point, name) for point in points if is_number(point.get(name))]
        path = " ".join(f"{'L' if place else 'M'}{x} {y}" for place, (x, y) in enumerate(there))
        drawn.append(tag("path", class_=f"curve {_SERIES[series]}", d=path))
        drawn += [tag("circle", class_=f"dot {_SERIES[series]}", cx=x, cy=y, r=3.5) for x, y in there]
    ticks = [_text(f"{point['qps']:g}", at(point, names[0])[0], 168) for point in points if names and names[0] in point]
    axis = tag("line", class_="axis", x1=50, x2=_WIDE - 10, y1=150, y2=150)
    numbers = "; ".join(", ".join(f"{key} {value}" for key, value in point.items()) for point in points)
    picture = _svg(190, f"Latency under load. {numbers}", axis, _text(f"{most:g}", 50, 26, style="end"), *drawn, *ticks,
                   _text("calls per second", _WIDE / 2, 186))  # fmt: skip
    caption = tag("figcaption", "Latency under load ", _legend(names))
    return tag("figure", caption, picture, _numbers(points))


def _numbers(points: Sequence[dict[str, Any]]) -> Html:
    names = list(dict.fromkeys(name for point in points for name in point))
    head = tag("tr", *(tag("th", name, scope="col") for name in names))
    rows = [tag("tr", *(tag("td", _number(point.get(name))) for name in names)) for point in points]
    return tag(
        "div", tag("table", tag("thead", head), tag("tbody", *rows), class_="numbers"), class_="scroll", tabindex=0
    )


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.4g}" if is_number(value) else "" if value is None else str(value)


def found(value: Any) -> Iterator[Html]:
    """Yields pictures of a finding's value: `histograms` by name, with labels and counts by series; `load`."""
    if not is_dict(value):
        return
    drawings: Any = value.get("histograms")
    if is_dict(drawings):
        for title, one in drawings.items():
            if is_dict(one) and is_list(one.get("labels")) and is_dict(one.get("counts")):
                yield histogram(title, [str(label) for label in one["labels"]], one["counts"])
    if is_load(points := value.get("load")):
        yield load(points)


def is_load(points: Any) -> TypeGuard[list[dict[str, Any]]]:
    """True if a value is a list of measurements under load."""
    return is_list(points) and bool(points) and all(is_dict(one) and is_number(one.get("qps")) for one in points)


def _svg(high: int, alternative: str, *inside: Html) -> Html:
    return tag("svg", *inside, viewBox=f"0 0 {_WIDE} {high}", role="img", aria_label=alternative)


def _text(said: str, x: float, y: float, *, style: str = "") -> Html:
    return tag("text", said, x=round(x, 1), y=y, class_=style or None)


def _short(label: str) -> str:
    return label if len(label) <= 11 else label[:10] + "…"


def _legend(names: Sequence[str]) -> Html:
    parts = [tag("span", name, class_=f"key {_SERIES[place % 4]}") for place, name in enumerate(names)]
    return tag("span", join(parts, " "), class_="legend")
