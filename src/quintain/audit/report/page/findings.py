"""Section of a finding: the claim, its evidence op by op, the state changes, and the replay command."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict, is_list
from quintain.audit.kernel.finding import CLASSES

from . import pictures
from .markup import Html, join, lines, plural, tag, text, words

LETTERS = {"T": "the tasks", "H": "the harness", "V": "the verifier", "S": "the state", "C": "the configuration"}
_LONG = 700  # characters beyond which a value is folded
_MAX_VALUE_CHARS = 20_000  # most characters of a value on the page
_SIDES = ("expected", "observed")
_BESIDE = 2  # other probes per table; more go into further tables

Finding = dict[str, Any]
Line = dict[str, Any]
Row = list[Line | None]  # row of a comparison: an op of each trajectory, or None for a trajectory without it


def section(number: int, one: Finding) -> Html:
    lessons = (("A model would learn ", "teaches"), ("To mend it: ", "mend"), ("Accepted: ", "accepted"))
    told = [(tag("strong", label), one[key], key) for label, key in lessons if one.get(key)]
    again = tag("span", "See it again" if one["probes"] else "Look again")
    also = [(tag("strong", "Also: "), other["title"], tag("code", other["check"])) for other in one.get("symptoms", ())]
    return tag(
        "article",
        tag("h3", tag("span", f"{number}.", class_="number"), " ", one["title"], id=f"title-{number}"),
        _badges(one),
        _sides(one),
        *(tag("p", label, said, class_=key if key == "teaches" else None) for label, said, key in told),
        tag("p", "At ", tag("code", one["where"])) if one["where"] else None,
        *(tag("p", label, title, " ", check) for label, title, check in also),
        *_shown(one),
        tag("div", again, " ", tag("code", one["replay"]), class_="replay") if one["replay"] else None,
        id=f"finding-{number}",
        aria_labelledby=f"title-{number}",
        class_=f"finding {one['severity']}",
    )


def _badges(one: Finding) -> Html:
    tasks: list[str] = one["tasks"]
    first = ", ".join(tasks[:3]) + (f" and {len(tasks) - 3:,} more" if len(tasks) > 3 else "")
    badges = [tag("span", one[key], class_=f"badge {one[key]}") for key in ("severity", "confidence")]
    part = f"{one['part']}: {LETTERS.get(one['part'], '')}"
    badges += [tag("span", said, class_="badge") for said in (CLASSES.get(one["class"], one["class"]), part)]
    parts = [tag("code", one["check"])]
    parts += [tag("span", f"{'tasks' if len(tasks) > 1 else 'task'} {first}")] if tasks else []
    return tag("p", join(badges, " "), " ", join(parts, " · "), class_="badges")


def _sides(one: Finding) -> Html | None:
    """Returns expected and observed values side by side, with differences marked if both have several lines."""
    drawn = {name: list(pictures.found(one[name])) for name in _SIDES}
    said: dict[str, str] = {}
    for name in _SIDES:
        value = one[name]
        value = {key: part for key, part in value.items() if key != "histograms"} or None if drawn[name] else value
        said |= {name: _said(value)} if value is not None else {}
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
    return tag("div", *sides, class_="sides drawn" if any(drawn.values()) else "sides") if sides else None


def _said(value: Any) -> str:
    said = lines(value)
    if len(said) <= _MAX_VALUE_CHARS:
        return said
    return f"{said[:_MAX_VALUE_CHARS]}... ({len(said):,} characters, all of them in report.json)"


def _shown(one: Finding) -> Iterator[Html]:
    first: list[Line] = one["trajectory"]
    if not first:
        return
    beside: list[dict[str, Any]] = one["beside"]
    parts = [beside[n : n + _BESIDE] for n in range(0, len(beside), _BESIDE)] or [[]]
    tables = [_table(first, part, start=1 + n * _BESIDE) for n, part in enumerate(parts)]
    aside = [*_world(one), *_reasons(one)]
    yield tag("h4", "What shows it")
    yield from [tag("div", tag("div", *tables), tag("aside", *aside), class_="shown")] if aside else tables


def _table(first: list[Line], beside: list[dict[str, Any]], start: int) -> Html:
    rows = aligned([first, *(one["trajectory"] for one in beside)])
    heads = ["First probe" if beside else "It gave"]
    for n, one in enumerate(beside, start + 1):
        context = ", ".join(f"{name.replace('_', ' ')} {words(value)}" for name, value in one["context"].items())
        heads.append(f"Probe {n} ({context})" if context else f"Probe {n}")
    numbers = itertools.count(1)
    body = [_line(row, str(next(numbers)) if row[0] is not None else "", heads) for row in rows]
    head = tag("tr", *(tag("th", said, scope="col") for said in ("", "It did", *heads)))
    note = None
    if beside:
        note = tag("p", f"{plural(len(beside), 'probe')} beside the first; what differs is marked.", class_="quiet")
    return join([note, tag("table", tag("thead", head), tag("tbody", *body), class_="trajectory")])


def _line(row: Row, number: str, heads: list[str]) -> Html:
    there = [line for line in row if line is not None]
    did = _op(there[0]) if len({words(_asked(line)) for line in there}) == 1 else join(map(_op, there), tag("br"))
    cells = [tag("td", number, class_="place"), tag("td", did, data_label="It did")]
    gave = [None if line is None else outcome(line) for line in row]
    base = gave[0]
    if base is not None and all(one == base for one in gave):
        said = "All the same" if len(row) > 1 else heads[0]
        return tag("tr", *cells, tag("td", folded(base), class_=_style(row[0]), colspan=len(row), data_label=said))
    other = next((one for one in gave if one not in (None, base)), base)
    for place, (line, one) in enumerate(zip(row, gave, strict=True)):
        if one is None:
            said = tag("span", "not done", class_="quiet")
        elif base is None:
            said = folded(one)
        else:
            said = folded(one, differing(base, one)[1] if place else differing(base, other or base)[0])
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
    changes: Any = one["details"].get("changes")
    if not is_list(changes) or all(change is None for change in changes):
        return
    yield tag("h4", "What changed in the world")
    items: list[Html] = []
    for number, (line, change) in enumerate(zip(one["trajectory"], changes, strict=False), 1):
        if is_dict(change):
            sides = {
                path: (_side("del", was, "not there"), _side("ins", now, "gone")) for path, (was, now) in change.items()
            }
            rows = [(tag("dt", tag("code", path)), tag("dd", was, " → ", now)) for path, (was, now) in sides.items()]
            listed = tag("dl", *(tag("div", *row) for row in rows))
            said = listed if change else tag("span", " changed nothing", class_="quiet")
            items.append(tag("li", tag("span", f"{number}. ", tag("code", line.get("name") or line["do"])), said))
    yield tag("ul", *items, class_="changes")


def _side(name: str, value: Any, title: str) -> Html:
    return tag("span", "∅", class_="quiet", title=title) if value is None else tag(name, words(value))


def _reasons(one: Finding) -> Iterator[Html]:
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
        summary = tag("summary", f"{plural(len(earlier), 'reward')} of single steps and phases")
        yield tag("details", summary, _rewards(earlier))


def _rewards(reasons: list[dict[str, Any]]) -> Html:
    rows: list[Html] = []
    for one in reasons:
        place = "".join(f"{name} {one[name] + 1} " for name in ("turn", "step") if isinstance(one.get(name), int))
        value = one.get("value", one.get("raw"))
        number = tag("td", f"{value:.4g}" if isinstance(value, float) else words(value), class_="count")
        name = tag("th", place, tag("code", one["name"]), scope="row")
        rows.append(tag("tr", name, number, tag("td", one.get("reason") or "", class_="quiet")))
    return tag("table", tag("tbody", *rows), class_="rewards")


def folded(said: str, shown: Html | None = None) -> Html:
    """Returns a value, folded behind its first characters if it is long."""
    body = tag("pre", shown if shown is not None else text(said), tabindex=0 if len(said) > _LONG else None)
    if len(said) <= _LONG:
        return body
    return tag("details", tag("summary", f"{said[:140]}…"), body, class_="long")


# --- trajectories side by side: corresponding ops in one row, and their differences marked ---


def aligned(trajectories: Sequence[Sequence[Line]]) -> list[Row]:
    """Returns rows of corresponding ops in the order of the first trajectory, with extra ops of others in between."""
    first = list(trajectories[0])
    rows: list[Row] = [[line, *([None] * (len(trajectories) - 1))] for line in first]
    gaps: dict[int, list[Row]] = {}
    for column, other in enumerate(trajectories[1:], 1):
        matcher = difflib.SequenceMatcher(None, [*map(_what, first)], [*map(_what, other)], autojunk=False)
        for _, start, end, there, until in matcher.get_opcodes():
            some, others = (
                [(one["do"], one.get("name")) for one in part] for part in (first[start:end], other[there:until])
            )
            paired = end - start if some == others else 0  # The same ops, arguments aside.
            for n in range(paired):
                rows[start + n][column] = other[there + n]
            for line in other[there + paired : until]:
                row: Row = [None] * len(trajectories)
                row[column] = line
                gaps.setdefault(end, []).append(row)
    found: list[Row] = []
    for place in range(len(first) + 1):
        found += gaps.get(place, [])
        found += rows[place : place + 1]
    return found


def _what(line: Line) -> str:
    return words([line.get(name) for name in ("do", "on", "name", "arguments", "value")])


def outcome(line: Line) -> str:
    for how in ("crashed", "hung", "refused", "absent"):
        if how in line:
            return f"{how}: {line[how]}" + (f"\nat {line['where']}" if line.get("where") else "")
    return lines(line.get("observed"))


def differing(one: str, other: str) -> tuple[Html, Html]:
    """Returns both texts with their differences marked, within a line if lines correspond."""
    some, others = one.split("\n"), other.split("\n")
    left: list[Html] = []
    right: list[Html] = []
    for _, start, end, there, until in difflib.SequenceMatcher(None, some, others, autojunk=False).get_opcodes():
        for mine, theirs in itertools.zip_longest(some[start:end], others[there:until]):
            first, second = _marked(mine, theirs)
            left += [] if first is None else [first]
            right += [] if second is None else [second]
    return join(left, "\n"), join(right, "\n")


def _marked(one: str | None, other: str | None) -> tuple[Html | None, Html | None]:
    if one == other:
        same = text(one)
        return same, same
    if one is None or other is None:
        return (None if one is None else tag("mark", one)), (None if other is None else tag("mark", other))
    most = min(len(one), len(other))
    head = next((n for n in range(most) if one[n] != other[n]), most)
    tail = next((n for n in range(most - head) if one[-1 - n] != other[-1 - n]), most - head)
    parts = [(said[:head], said[head : len(said) - tail], said[len(said) - tail :]) for said in (one, other)]
    first, second = (
        join([begin, tag("mark", inner) if inner else tag("mark", "∅", title="nothing here"), end])
        for begin, inner, end in parts
    )
    return first, second
