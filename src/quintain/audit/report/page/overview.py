"""Overview: the verdict on training, coverage, and failure rate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from quintain.audit.facts.data import is_dict
from quintain.audit.facts.failure_rate import ENOUGH, LINE
from quintain.audit.kernel.finding import CLASSES

from . import pictures
from .markup import Html, join, plural, tag

Document = dict[str, Any]
STATUS = {"checked": "✓", "partly": "◐", "not_checked": "-", "found": "!"}


def header(document: Document) -> Html:
    """Returns the verdict and the facts that it is based on."""
    style, headline, because = verdict(document)
    tasks = document["tasks"]
    facts = {
        "Subject": tag("code", document["subject"]),
        "Options": join((tag("code", f"{name}={value}") for name, value in document["options"].items()), " ") or None,
        "Kind": document["kind"],
        "Digest": tag("code", document["digest"]),
        "Tasks": f"{tasks['looked_at']:,} of {tasks['there_are']:,}",
        "Time": f"{document['seconds']:,.1f} s",
        "Seed": str(document["seed"]),
    }
    listed = [tag("div", tag("dt", name), tag("dd", said)) for name, said in facts.items() if said is not None]
    return tag(
        "header",
        tag("p", "Quintain audit", class_="kicker"),
        tag("h1", headline, class_=style),
        tag("p", because, class_="because"),
        tag("dl", *listed, class_="facts"),
    )


def verdict(document: Document) -> tuple[str, str, str]:
    """Returns style, headline and reason; it recommends training only after complete coverage."""
    fresh = [one for one in document["findings"] if not one.get("accepted")]
    stops = [one for one in fresh if one["severity"] == "error" and one["confidence"] == "proven"]
    others = len(fresh) - len(stops)
    remarks = f" There is also {plural(others, 'remark')}." if others == 1 else ""
    remarks = f" There are also {plural(others, 'remark')}." if others > 1 else remarks
    accepted = len(document["findings"]) - len(fresh)
    remarks += f" The author accepts {plural(accepted, 'finding')}." if accepted else ""
    if stops:
        several = f"{len(stops):,} errors are proven, each by a trajectory below."
        said = "An error is proven, by the trajectory below." if len(stops) == 1 else several
        return "bad", "Do not train on this.", said + remarks
    open_ = [class_ for class_ in CLASSES if document["coverage"].get(class_) != "checked"]
    looked = f"Nothing is proven in {len(CLASSES) - len(open_)} of {len(CLASSES)} classes"
    if len(open_) == len(CLASSES):
        return "open", "Nothing was checked.", f"No check could look at this subject.{remarks}"
    if document.get("too_little"):
        return "open", "Too little was checked.", f"Nothing is proven, but {document['too_little']}.{remarks}"
    if open_:
        names = ", ".join(CLASSES[one] for one in open_)
        return "open", "No error is proven in what was checked.", f"{looked}; not looked at: {names}.{remarks}"
    if document["failure_rate"]["high"] >= LINE:
        high = document["failure_rate"]["high"]
        said = f"{looked}, but its episodes may fail in {high:.1%} of cases, and {LINE:.0%} is the line.{remarks}"
        return "open", "Not certified.", said
    return "good", "Train on it.", f"{looked}, and its episodes fail in less than {LINE:.0%} of cases.{remarks}"


def coverage(document: Document) -> Html:
    """Returns the table of classes and checks with their status."""
    by_class: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in document["checks"]:
        by_class[one["class"]].append(one)
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, finding in enumerate(document["findings"], 1):
        for one in (finding, *finding.get("symptoms", ())):
            places[one["check"], one["class"]].append(number)
    rows: list[Html] = []
    for class_, name in CLASSES.items():
        checks = by_class[class_]
        cells = [_chip(one, places.pop((one["check"], class_), [])) for one in checks]
        numbers = [n for (_, of), more in places.items() if of == class_ for n in more]
        cells += [tag("a", f"finding {n}", href=f"#finding-{n}", class_="chip found") for n in numbers]
        why = document["coverage"].get(class_, "checked")
        reason = why.removeprefix("not_checked: ") if why != "checked" else _skipped(checks)
        rows.append(
            tag(
                "tr",
                tag("th", name, scope="row"),
                tag("td", join(cells, " ") if cells else tag("span", reason, class_="quiet")),
                tag("td", _done(checks), class_="count"),
                tag("td", reason if cells else None, class_="quiet reason"),
            )
        )
    head = tag(
        "tr", *(tag("th", name, scope="col") for name in ("Class", "Checks", "Looked", "Not looked at, because"))
    )
    legend = join(
        (tag("span", tag("span", STATUS[key], class_=f"mark {key}"), said) for key, said in _LEGEND.items()), " "
    )
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="grid")
    return tag(
        "section",
        tag("h2", "Coverage", id="coverage"),
        tag("p", legend, class_="legend"),
        table,
        _every(document["checks"]),
    )


_HEADS = ("Class", "Checks", "Looked", "Not looked at, because")
_LEGEND = {
    "checked": "looked, nothing found",
    "found": "found something",
    "partly": "looked at a part",
    "not_checked": "could not look",
}


def _chip(check: dict[str, Any], findings: list[int]) -> Html:
    status = "found" if findings else check["status"]
    inside = [
        tag("span", STATUS[status], class_=f"mark {status}", aria_label=_LEGEND[status], role="img"),
        check["check"],
    ]
    title = check["reason"] or check["about"] or None
    if findings:
        return tag("a", *inside, href=f"#finding-{findings[0]}", class_="chip found", title=title)
    return tag("span", *inside, class_=f"chip {status}", title=title)


def _done(checks: list[dict[str, Any]]) -> str:
    return f"{sum(one['status'] != 'not_checked' for one in checks)} of {len(checks)}" if checks else ""


def _skipped(checks: list[dict[str, Any]]) -> str:
    return "; ".join(sorted({one["reason"] for one in checks if one["reason"]}))


def _every(checks: list[dict[str, Any]]) -> Html | None:
    """Returns a folded table of all checks with their questions."""
    if not checks:
        return None
    head = ("Check", "Question", "Status", "Compared", "Probes", "Found", "Seconds")
    rows = [
        tag(
            "tr",
            tag("th", tag("code", one["check"]), scope="row"),
            tag("td", one["about"]),
            tag("td", one["status"].replace("_", " "), tag("br") if one["reason"] else None, one["reason"] or None),
            *(tag("td", f"{one[key]:,}", class_="count") for key in ("looked", "probes", "findings")),
            tag("td", f"{one['seconds']:.1f}", class_="count"),
        )
        for one in checks
    ]
    heads = tag("thead", tag("tr", *(tag("th", said, scope="col") for said in head)))
    table = tag("table", heads, tag("tbody", *rows), class_="every")
    region = tag("div", table, class_="scroll", tabindex=0, role="region", aria_label="All checks")
    return tag("details", tag("summary", f"All {plural(len(checks), 'check')}: what each asks, and how often"), region)


def failures(document: Document) -> Html:
    """Returns the failure rate against its limit, and a histogram of scores."""
    one = document["failure_rate"]
    if not one["episodes"]:
        picture = tag("p", "No episode was played, so nothing is known of the failure rate.")
    else:
        held = "below" if one["high"] < LINE else "not certified to be below"
        said = (
            f"{one['failures']:,} of {one['episodes']:,} episodes broke. The rate is {held} the {LINE:.0%} line: "
            f"it is between {one['low']:.2%} and {one['high']:.2%} (Clopper-Pearson, 95 % each side). "
            f"{ENOUGH} episodes without a failure are the fewest that show it."
        )
        picture = join([tag("p", said), tag("figure", pictures.rate(one, LINE))])
    scores: Any = one.get("scores")
    drawn = None
    if is_dict(scores) and scores:
        labels = list(scores)
        drawn = pictures.histogram(f"Scores of these {plural(one['episodes'], 'episode')}", labels, _episodes(scores))
    return tag("section", tag("h2", "Failure rate", id="failures"), picture, drawn)


def _episodes(scores: dict[str, Any]) -> dict[str, Sequence[float]]:
    return {"episodes": [float(one) for one in scores.values()]}


def load(document: Document) -> Html | None:
    """Returns the latency under load; None if it was not measured for the whole subject."""
    points = document.get("load")
    if not pictures.is_load(points):
        return None
    return tag("section", tag("h2", "Load", id="load"), pictures.load(points))


def contents(document: Document) -> Iterator[Html]:
    """Yields a list with one line per finding."""
    if not document["findings"]:
        yield tag("p", "There are no findings.")
        return
    rows = [
        tag(
            "li",
            tag("a", one["title"], href=f"#finding-{number}"),
            " ",
            tag("span", f"{one['severity']}, {one['confidence']}", class_=f"quiet {one['severity']}"),
            f", accepted: {one['accepted']}" if one.get("accepted") else None,
        )
        for number, one in enumerate(document["findings"], 1)
    ]
    yield tag("ol", *rows, class_="contents")
