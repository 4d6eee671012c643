"""Page of a report: the verdict on training, the findings, coverage, and failure rate."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quintain.audit.facts.failure_rate import ENOUGH, LINE
from quintain.audit.kernel.finding import CLASSES

from . import findings, pictures
from .markup import Html, join, plural, tag

Document = dict[str, Any]
STATUS = {"checked": "✓", "partly": "◐", "not_checked": "-", "found": "!"}


def header(document: Document) -> Html:
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
    others, accepted = len(fresh) - len(stops), len(document["findings"]) - len(fresh)
    remarks = f" There {'is' if others == 1 else 'are'} also {plural(others, 'remark')}." if others else ""
    remarks += f" The author accepts {plural(accepted, 'finding')}." if accepted else ""
    if stops:
        several = f"{len(stops):,} errors are proven, each by a trajectory below."
        said = "An error is proven, by the trajectory below." if len(stops) == 1 else several
        return "bad", "Do not train on this.", said + remarks
    open_ = [class_ for class_ in CLASSES if document["coverage"].get(class_) != "checked"]
    looked = f"Nothing is proven in {len(CLASSES) - len(open_)} of {len(CLASSES)} classes"
    names, high = ", ".join(CLASSES[one] for one in open_), document["failure_rate"]["high"]
    little = document.get("too_little")
    risk = f"{looked}, but its episodes may fail in {high:.1%} of cases, and {LINE:.0%} is the line."
    rows = (
        (len(open_) == len(CLASSES), "Nothing was checked.", "No check could look at this subject."),
        (little, "Too little was checked.", f"Nothing is proven, but {little}."),
        (open_, "No error is proven in what was checked.", f"{looked}; not looked at: {names}."),
        (high >= LINE, "Not certified.", risk),
    )
    for holds, headline, said in rows:
        if holds:
            return "open", headline, said + remarks
    return "good", "Train on it.", f"{looked}, and its episodes fail in less than {LINE:.0%} of cases.{remarks}"


def coverage(document: Document) -> Html:
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
        skipped = "; ".join(sorted({one["reason"] for one in checks if one["reason"]}))
        reason = why.removeprefix("not_checked: ") if why != "checked" else skipped
        looked = sum(one["status"] != "not_checked" for one in checks)
        said = tag("td", join(cells, " ") if cells else tag("span", reason, class_="quiet"))
        count = tag("td", f"{looked} of {len(checks)}" if checks else "", class_="count")
        last = tag("td", reason if cells else None, class_="quiet reason")
        rows.append(tag("tr", tag("th", name, scope="row"), said, count, last))
    keys = (tag("span", tag("span", STATUS[key], class_=f"mark {key}"), said) for key, said in _LEGEND.items())
    legend = tag("p", join(keys, " "), class_="legend")
    table = _table(("Class", "Checks", "Looked", "Not looked at, because"), rows, "grid")
    return tag("section", tag("h2", "Coverage", id="coverage"), legend, table, _every(document["checks"]))


def _table(heads: tuple[str, ...], rows: list[Html], style: str) -> Html:
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in heads)))
    return tag("table", head, tag("tbody", *rows), class_=style)


_LEGEND = {
    "checked": "looked, nothing found", "found": "found something", "partly": "looked at a part",
    "not_checked": "could not look",
}  # fmt: skip


def _chip(check: dict[str, Any], findings: list[int]) -> Html:
    status = "found" if findings else check["status"]
    mark = tag("span", STATUS[status], class_=f"mark {status}", aria_label=_LEGEND[status], role="img")
    href = f"#finding-{findings[0]}" if findings else None
    title = check["reason"] or check["about"] or None
    return tag("a" if findings else "span", mark, check["check"], href=href, class_=f"chip {status}", title=title)


def _every(checks: list[dict[str, Any]]) -> Html | None:
    rows: list[Html] = []
    for one in checks:
        name, why = tag("th", tag("code", one["check"]), scope="row"), one["reason"] or None
        status = tag("td", one["status"].replace("_", " "), tag("br") if why else None, why)
        counts = [f"{one[key]:,}" for key in ("looked", "probes", "findings")] + [f"{one['seconds']:.1f}"]
        rows.append(tag("tr", name, tag("td", one["about"]), status, *(tag("td", n, class_="count") for n in counts)))
    table = _table(("Check", "Question", "Status", "Compared", "Probes", "Found", "Seconds"), rows, "every")
    region = tag("div", table, class_="scroll", tabindex=0, role="region", aria_label="All checks")
    summary = tag("summary", f"All {plural(len(checks), 'check')}: what each asks, and how often")
    return tag("details", summary, region) if checks else None


def failures(document: Document) -> Html:
    one = document["failure_rate"]
    held = "below" if one["high"] < LINE else "not certified to be below"
    said = (
        f"{one['failures']:,} of {one['episodes']:,} episodes broke. The rate is {held} the {LINE:.0%} line: "
        f"it is between {one['low']:.2%} and {one['high']:.2%} (Clopper-Pearson, 95 % each side). "
        f"{ENOUGH} episodes without a failure are the fewest that show it."
    )
    picture = tag("p", "No episode was played, so nothing is known of the failure rate.")
    if one["episodes"]:
        picture = join([tag("p", said), tag("figure", pictures.rate(one, LINE))])
    scores: Any = one.get("scores") or {}
    title, counts = f"Scores of these {plural(one['episodes'], 'episode')}", [float(count) for count in scores.values()]
    drawn = pictures.histogram(title, list(scores), {"episodes": counts}) if scores else None
    return tag("section", tag("h2", "Failure rate", id="failures"), picture, drawn)


def contents(document: Document) -> Iterator[Html]:
    rows: list[Html] = []
    for number, one in enumerate(document["findings"], 1):
        said = tag("span", f"{one['severity']}, {one['confidence']}", class_=f"quiet {one['severity']}")
        accepted = f", accepted: {one['accepted']}" if one.get("accepted") else None
        rows.append(tag("li", tag("a", one["title"], href=f"#finding-{number}"), " ", said, accepted))
    yield tag("ol", *rows, class_="contents") if rows else tag("p", "There are no findings.")


def page(document: dict[str, Any]) -> str:
    """Returns the HTML page of a report, from the content of report.json."""
    every = [findings.section(number, one) for number, one in enumerate(document["findings"], 1)]
    first = tag("section", tag("h2", "Findings", id="findings"), *contents(document))
    made = ("Made by ", tag("code", "quintain audit"), "; the same is in ", tag("code", "report.json"), ".")
    body = tag(
        "body",
        tag("a", "Skip to the findings", href="#findings", class_="skip"),
        header(document),
        tag("main", first, *every, coverage(document), failures(document)),
        tag("footer", *made),
        tag("script", Html(_file("script.js"))),
    )
    return f"<!doctype html>\n{tag('html', _head(document), body, lang='en')}\n"


def _head(document: dict[str, Any]) -> Html:
    """Returns the head; its content security policy allows only the page's own script and style."""
    style, script = _file("style.css"), _file("script.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"Audit of {document['subject']}"),
        tag("style", Html(style)),
    )


@functools.cache
def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def _hash(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
