"""Section of a finding: the claim, its evidence op by op, the state changes, and the replay command."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.kernel.finding import CLASSES

from . import pictures
from .aligned import Line, Row, aligned, differing, outcome
from .markup import Html, join, lines, plural, tag, text, words

LETTERS = {"T": "the tasks", "H": "the harness", "V": "the verifier", "S": "the state", "C": "the configuration"}
_LONG = 700
"""Characters beyond which a value is folded."""
_MAX_VALUE_CHARS = 20_000
"""Most characters of a value on the page."""
_SIDES = ("expected", "observed")
_BESIDE = 2
"""Other probes per table; more go into further tables."""

Finding = dict[str, Any]


def section(number: int, one: Finding) -> Html:
    """Returns the section of one finding."""
    return tag(
        "article",
        tag("h3", tag("span", f"{number}.", class_="number"), " ", one["title"], id=f"title-{number}"),
        _badges(one),
        _sides(one),
        _teaches(one),
        tag("p", tag("strong", "To mend it: "), one["mend"]) if one.get("mend") else None,
        tag("p", "At ", tag("code", one["where"])) if one["where"] else None,
        tag("p", tag("strong", "Accepted: "), one["accepted"]) if one.get("accepted") else None,
        *(
            tag("p", tag("strong", "Also: "), also["title"], " ", tag("code", also["check"]))
            for also in one.get("symptoms", ())
        ),
        *_shown(one),
        _replay(one),
        id=f"finding-{number}",
        aria_labelledby=f"title-{number}",
        class_=f"finding {one['severity']}",
    )


def _teaches(one: Finding) -> Html | None:
    said = one["teaches"]
    return tag("p", tag("strong", "A model would learn"), f" {said}", class_="teaches") if said else None


def _badges(one: Finding) -> Html:
    tasks: list[str] = one["tasks"]
    first = ", ".join(tasks[:3]) + (f" and {len(tasks) - 3:,} more" if len(tasks) > 3 else "")
    badges = [
        tag("span", one["severity"], class_=f"badge {one['severity']}"),
        tag("span", one["confidence"], class_=f"badge {one['confidence']}"),
        tag("span", CLASSES.get(one["class"], one["class"]), class_="badge"),
        tag("span", f"{one['part']}: {LETTERS.get(one['part'], '')}", class_="badge"),
    ]
    parts = [
        tag("code", one["check"]),
        tag("span", f"{'tasks' if len(tasks) > 1 else 'task'} {first}") if tasks else None,
    ]
    return tag("p", join(badges, " "), " ", join([part for part in parts if part is not None], " · "), class_="badges")


def _sides(one: Finding) -> Html | None:
    """Returns expected and observed values side by side, with differences marked if both have several lines."""
    drawn = {name: list(pictures.found(one[name])) for name in _SIDES}
    values = {name: _undrawn(one[name]) if drawn[name] else one[name] for name in _SIDES}
    said = {name: _said(value) for name, value in values.items() if value is not None}
    shown: dict[str, Html | None] = dict.fromkeys(said)
    if len(said) == 2 and all("\n" in one for one in said.values()):
        shown = dict(zip(said, differing(*said.values()), strict=True))
    sides = [
        tag(
            "div",
            tag("h4", name.capitalize()),
            folded(said[name], shown[name]) if name in said else None,
            *drawn[name],
            class_=f"side {name}",
        )
        for name in _SIDES
        if name in said or drawn[name]
    ]
    style = "sides drawn" if any(drawn.values()) else "sides"
    return tag("div", *sides, class_=style) if sides else None


def _said(value: Any) -> str:
    """Returns a value in words, cut to the page's limit."""
    said = lines(value)
    return (
        said
        if len(said) <= _MAX_VALUE_CHARS
        else f"{said[:_MAX_VALUE_CHARS]}... ({len(said):,} characters, all of them in report.json)"
    )


def _undrawn(value: dict[str, Any]) -> dict[str, Any] | None:
    return {name: part for name, part in value.items() if name not in ("histograms", "load")} or None


def _shown(one: Finding) -> Iterator[Html]:
    """Yields the trajectories and, next to them, the state changes and the reasons of the score."""
    first: list[Line] = one["trajectory"]
    if not first:
        return
    beside: list[dict[str, Any]] = one["beside"]
    parts = [beside[n : n + _BESIDE] for n in range(0, len(beside), _BESIDE)] or [[]]
    tables = [_table(first, part, start=1 + n * _BESIDE) for n, part in enumerate(parts)]
    aside = [*_world(one), *_reasons(one)]
    yield tag("h4", "What shows it")
    if aside:
        yield tag("div", tag("div", *tables), tag("aside", *aside), class_="shown")
    else:
        yield from tables


def _table(first: list[Line], beside: list[dict[str, Any]], start: int) -> Html:
    rows = aligned([first, *(one["trajectory"] for one in beside)])
    heads = ["First probe" if beside else "It gave"]
    heads += [f"Probe {start + n + 1}{_context(one['context'])}" for n, one in enumerate(beside)]
    numbers = itertools.count(1)
    body = [_line(row, str(next(numbers)) if row[0] is not None else "", heads) for row in rows]
    head = tag("tr", *(tag("th", said, scope="col") for said in ("", "It did", *heads)))
    note = None
    if beside:
        note = tag("p", f"{plural(len(beside), 'probe')} beside the first; what differs is marked.", class_="quiet")
    return join([note, tag("table", tag("thead", head), tag("tbody", *body), class_="trajectory")])


def _context(context: dict[str, Any]) -> str:
    parts = ", ".join(f"{name.replace('_', ' ')} {words(value)}" for name, value in context.items())
    return f" ({parts})" if parts else ""


def _line(row: Row, number: str, heads: list[str]) -> Html:
    there = [line for line in row if line is not None]
    asked = {words(_asked(line)) for line in there}
    cells = [
        tag("td", number, class_="place"),
        tag("td", _op(there[0]) if len(asked) == 1 else join(map(_op, there), tag("br")), data_label="It did"),
    ]
    base = outcome(row[0]) if row[0] is not None else None
    differs = any(line is None or outcome(line) != base for line in row)
    if base is not None and not differs:
        said = "All the same" if len(row) > 1 else heads[0]
        first = tag("td", folded(base), class_=_style(row[0]), colspan=len(row), data_label=said)
        return tag("tr", *cells, first)
    for place, line in enumerate(row):
        if line is None:
            said = tag("span", "not done", class_="quiet")
        elif base is None:
            said = folded(outcome(line))
        elif place:
            said = folded(outcome(line), differing(base, outcome(line))[1])
        else:
            other = next((outcome(one) for one in row[1:] if one is not None and outcome(one) != base), base)
            said = folded(base, differing(base, other)[0])
        cells.append(tag("td", said, class_=_style(line), data_label=heads[place]))
    return tag("tr", *cells, class_="differs")


def _asked(line: Line) -> Any:
    return line.get("arguments", line.get("value"))


def _style(line: Line | None) -> str | None:
    return next((how for how in ("crashed", "hung", "refused") if line is not None and how in line), None)


def _op(line: Line) -> Html:
    asked = _asked(line)
    name = line.get("name", "")
    on = f" on {line['on']}" if "on" in line else ""
    lanes = [" → ".join(lane) for lane in line.get("lanes", ())]
    parts = [tag("span", line["do"] + on, class_="do"), " ", tag("code", name, class_="name") if name else None]
    parts += [tag("div", tag("code", lane)) for lane in lanes]
    return join([*parts, folded(_said(asked)) if asked not in (None, {}) else None])


def _world(one: Finding) -> Iterator[Html]:
    """Yields the state changes, op by op."""
    changes: Any = one["details"].get("changes")
    if not is_list(changes) or all(change is None for change in changes):
        return
    yield tag("h4", "What changed in the world")
    items: list[Html] = []
    for number, (line, change) in enumerate(zip(one["trajectory"], changes, strict=False), 1):
        if not is_dict(change):
            continue
        what = tag("span", f"{number}. ", tag("code", line.get("name") or line["do"]))
        if not change:
            items.append(tag("li", what, tag("span", " changed nothing", class_="quiet")))
            continue
        items.append(tag("li", what, tag("dl", *(_change(path, both) for path, both in change.items()))))
    yield tag("ul", *items, class_="changes")


def _change(path: str, both: Any) -> Html:
    before, after = both
    was = tag("del", words(before)) if before is not None else tag("span", "∅", class_="quiet", title="not there")
    now = tag("ins", words(after)) if after is not None else tag("span", "∅", class_="quiet", title="gone")
    return tag("div", tag("dt", tag("code", path)), tag("dd", was, " → ", now))


def _reasons(one: Finding) -> Iterator[Html]:
    """Yields the reasons of the reward."""
    reasons: Any = one["details"].get("reasons")
    if not reasons:
        return
    yield tag("h4", "Why it was paid so")
    if not is_list(reasons) or not all(is_dict(reason) and "name" in reason for reason in reasons):
        yield folded(_said(reasons))
        return
    last = [reason for reason in reasons if reason.get("level", "trajectory") == "trajectory"]
    earlier = [reason for reason in reasons if reason not in last]
    if last:
        yield _rewards(last)
    if earlier:
        yield tag(
            "details", tag("summary", f"{plural(len(earlier), 'reward')} of single steps and phases"), _rewards(earlier)
        )


def _rewards(reasons: list[dict[str, Any]]) -> Html:
    rows = [
        tag(
            "tr",
            tag("th", _at(reason), tag("code", reason["name"]), scope="row"),
            tag("td", _number(reason.get("value", reason.get("raw"))), class_="count"),
            tag("td", reason.get("reason") or "", class_="quiet"),
        )
        for reason in reasons
    ]
    return tag("table", tag("tbody", *rows), class_="rewards")


def _at(reason: dict[str, Any]) -> str:
    places = [f"{name} {reason[name] + 1} " for name in ("turn", "step") if isinstance(reason.get(name), int)]
    return "".join(places)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else words(value)


def _replay(one: Finding) -> Html | None:
    if not one["replay"]:
        return None
    said = "See it again" if one["probes"] else "Look again"
    return tag("div", tag("span", said), " ", tag("code", one["replay"]), class_="replay")


def folded(said: str, shown: Html | None = None) -> Html:
    """Returns a value, folded behind its first characters if it is long."""
    body = tag("pre", shown if shown is not None else text(said), tabindex=0 if len(said) > _LONG else None)
    if len(said) <= _LONG:
        return body
    return tag("details", tag("summary", f"{said[:140]}…"), body, class_="long")
